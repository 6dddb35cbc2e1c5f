#!/bin/sh
# Common misspellings, in code and text alike.
. "${top_srcdir:-.}/tests/lint/lib.sh"
need codespell
# shellcheck disable=SC2046
codespell -L nd,ot,te,fo,ons,inout,parm,re-use,hist,readd $(texts) || bad=1
exit "$bad"
