#!/bin/sh
# From a fresh checkout to a first plan: installs what the build needs, builds, installs, plans.
#
#   ./bootstrap.sh                 as root: packages, then /usr/local; else $HOME/.local
#   PREFIX=/opt/pt ./bootstrap.sh  somewhere else
#   CONFIGURE_FLAGS="--without-cuda" ./bootstrap.sh
#
# As root on Debian or Ubuntu the missing packages are installed with apt-get. Elsewhere they
# are named, and the build goes on with what is there.
set -eu
cd "$(dirname "$0")"

required="autoconf automake make gcc libc6-dev pkg-config libglpk-dev libcsv-dev libjansson-dev"
# Check runs the unit tests, gnuplot draws, OpenBLAS multiplies matrices in ptexec.
useful="check gnuplot-nox libopenblas-dev"

# installed PACKAGE: also where another package stands in for it (gnuplot-qt for gnuplot-nox).
installed() {
    case $1 in
    gnuplot-nox) if command -v gnuplot >/dev/null; then return 0; fi ;;
    gcc) if command -v "${CC:-gcc}" >/dev/null; then return 0; fi ;;
    pkg-config) if command -v pkg-config >/dev/null; then return 0; fi ;;
    esac
    dpkg-query -W -f '${Status}' "$1" 2>/dev/null | grep -q 'ok installed'
}

missing() {
    for package in "$@"; do
        installed "$package" || printf '%s ' "$package"
    done
}

if command -v dpkg-query >/dev/null; then
    # shellcheck disable=SC2086 # lists of packages
    want_required=$(missing $required) want_useful=$(missing $useful)
    if [ -z "$want_required$want_useful" ]; then
        :
    elif [ "$(id -u)" -eq 0 ]; then
        echo "== installing $want_required$want_useful"
        export DEBIAN_FRONTEND=noninteractive
        apt-get update -q
        # shellcheck disable=SC2086
        apt-get install -q -y --no-install-recommends $want_required $want_useful
    elif [ -n "$want_required" ]; then
        echo "Missing packages; as root: apt-get install $want_required$want_useful" >&2
        echo "(or build GLPK, libcsv and jansson yourself and set GLPK_CFLAGS, GLPK_LIBS," >&2
        echo "LIBCSV_CFLAGS, LIBCSV_LIBS, JANSSON_CFLAGS, JANSSON_LIBS)" >&2
        for tool in autoreconf automake make pkg-config; do
            command -v "$tool" >/dev/null || exit 1
        done
    else
        echo "Not installed, and not necessary: $want_useful"
    fi
else
    echo "Not a Debian: autoconf, automake, make, a C compiler, pkg-config, GLPK, libcsv and"
    echo "jansson are needed; Check, gnuplot and OpenBLAS are useful."
fi

if [ -z "${PREFIX-}" ]; then
    if [ "$(id -u)" -eq 0 ]; then PREFIX=/usr/local; else PREFIX=$HOME/.local; fi
fi
jobs=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1)

# Beside the sources, unless they have already been configured in place.
build=b
if [ -f config.status ]; then build=.; fi
echo "== configuring in $build, for $PREFIX"
[ -f configure ] || autoreconf -fi
mkdir -p "$build"
source=$(pwd)
cd "$build"
# shellcheck disable=SC2086 # a list of flags
"$source/configure" -q --prefix="$PREFIX" ${CONFIGURE_FLAGS-}
echo "== building"
make -s -j"$jobs"
echo "== installing into $PREFIX"
make -s install >/dev/null

case :$PATH: in *":$PREFIX/bin:"*) ;; *)
    echo "Add it to your PATH: export PATH=$PREFIX/bin:\$PATH"
    ;;
esac
echo "== ptplan --params 10B --gpus 16 --mem 80G"
"$PREFIX/bin/ptplan" --params 10B --gpus 16 --mem 80G
