#!/bin/sh
# The commands that the README shows run: exit 0, and 3 for the model that does not fit.
. "${top_srcdir:-.}/tests/cli/lib.sh"
src=$(cd "$top_srcdir" && pwd)
build=$(cd "$top_builddir" && pwd)
PT_PROFILE_DIR=$src/profiles
PATH=$build:$PATH
export PATH PT_PROFILE_DIR
cd "$tmp" || exit 1
cp "$src/tests/data/config/llama-2-7b.json" config.json
sed -n 's/^    \(\$ \)\{0,1\}\(ptplan [^#]*\).*/\2/p' "$src/README.md" >commands
[ "$(wc -l <commands)" -ge 6 ] || { echo "too few commands in the README"; exit 1; }
while IFS= read -r command; do
    want=0
    case $command in *"--params 24B --gpus 4"*) want=3 ;; esac
    st=0
    sh -c "$command" >out 2>err </dev/null || st=$?
    [ "$st" -eq "$want" ] || { echo "exit $st, want $want: $command"; cat err; exit 1; }
done <commands
