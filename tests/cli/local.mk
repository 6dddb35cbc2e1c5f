# Shell tests of the programs: lib.sh has golden and fails.
EXTRA_DIST += %reldir%/lib.sh

cli_tests += %reldir%/man-options.sh

cli_tests += %reldir%/man-examples.sh

# Until ptplan writes plans: main.c parses, and evaluates, so far.
cli_tests += %reldir%/every-program.sh

cli_tests += %reldir%/bad-input.sh
EXTRA_DIST += tests/golden/ptplan-bad-input.txt
