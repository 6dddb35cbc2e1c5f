# Sourced by the lint tests: the files of the tree, and how a rule is broken.
# sources FOLDER...: the .c, .h and .cu files there.
set -eu
: "${top_srcdir:=.}"
cd "$top_srcdir"
bad=0
complain() {
    echo "$*"
    bad=1
}
folders=
for d in libpt planner sim exec prof queue tests; do
    if [ -d "$d" ]; then folders="$folders $d"; fi
done
sources() {
    # shellcheck disable=SC2086 # a list of folders
    [ $# -gt 0 ] || set -- $folders
    find "$@" -name '*.[ch]' -o -name '*.cu' | LC_ALL=C sort
}
# Everything that a person wrote, wherever it is: a checkout or an unpacked tarball.
texts() {
    # shellcheck disable=SC2086
    find $folders profiles man doc m4 ./*.md ./*.sh configure.ac Makefile.am \
        .ci .clang-format .clang-tidy Containerfile -type f \
        ! -path '*/corpus/*' ! -name '*.png' 2>/dev/null | LC_ALL=C sort
}
need() {
    command -v "$1" >/dev/null || {
        echo "$1 is not here"
        exit 77
    }
}
[ -n "$(sources libpt)" ] || { echo "no sources in $PWD/libpt"; exit 1; }
