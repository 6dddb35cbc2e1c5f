# Rules about the tree itself; where the tool is missing, the test is skipped.
EXTRA_DIST += %reldir%/lib.sh

lint_tests += %reldir%/files.sh
lint_tests += %reldir%/includes.sh
lint_tests += %reldir%/libraries.sh
lint_tests += %reldir%/shell.sh
lint_tests += %reldir%/spelling.sh
lint_tests += %reldir%/format.sh
