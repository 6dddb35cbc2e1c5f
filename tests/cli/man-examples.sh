#!/bin/sh
# The EXAMPLES of every manual page run: each line ".Dl $ COMMAND" in order, in one empty folder
# per page, and must succeed. A comment line '.\" exits N' before it names another status.
. "${top_srcdir:-.}/tests/cli/lib.sh"
src=$(cd "$top_srcdir" && pwd)
build=$(cd "$top_builddir" && pwd)
PT_PROFILE_DIR=$src/profiles
PATH=$build:$PATH
export PATH PT_PROFILE_DIR
n=0
for page in "$src"/man/*.[157]; do
    name=$(basename "$page")
    mkdir "$tmp/$name"
    cd "$tmp/$name" || exit 1
    want=0
    while IFS= read -r line; do
        case $line in
        '.\" exits '*)
            want=${line#'.\" exits '}
            continue
            ;;
        '.Dl $ '*) ;;
        *) continue ;;
        esac
        command=$(printf '%s\n' "${line#'.Dl $ '}" | sed 's/\\(dq/"/g; s/\\-/-/g; s/\\e/\\/g; s/\\&//g')
        program=${command%% *}
        if ! command -v "$program" >/dev/null; then
            echo "$name: no $program here: $command"
            exit 77
        fi
        st=0
        sh -c "$command" >out 2>err || st=$?
        if [ "$st" -ne "$want" ]; then
            echo "$name: exit $st, want $want: $command"
            cat err
            exit 1
        fi
        want=0
        n=$((n + 1))
    done <"$page"
    cd "$build" || exit 1
done
echo "$n examples"
[ "$n" -gt 0 ]
