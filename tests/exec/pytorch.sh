#!/bin/sh
# The same model in PyTorch, where there is a Python with it.
command -v python3 >/dev/null || {
    echo "python3 is not here"
    exit 77
}
exec python3 "${top_srcdir:-.}/tests/exec/pytorch.py"
