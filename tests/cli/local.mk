# Shell tests of the programs: lib.sh has golden and fails.
EXTRA_DIST += %reldir%/lib.sh

cli_tests += %reldir%/man-options.sh

cli_tests += %reldir%/man-examples.sh

cli_tests += %reldir%/every-program.sh

cli_tests += %reldir%/bad-input.sh
EXTRA_DIST += tests/golden/ptplan-bad-input.txt
cli_tests += %reldir%/outputs.sh
cli_tests += %reldir%/capacity.sh
cli_tests += %reldir%/report.sh
cli_tests += %reldir%/user-case.sh
cli_tests += %reldir%/ptsim.sh
EXTRA_DIST += tests/golden/ptsim-schedules.txt tests/golden/ptsim-text.txt
EXTRA_DIST += tests/golden/ptsim-stages.txt
cli_tests += %reldir%/man-profiles.sh
cli_tests += %reldir%/readme.sh
cli_tests += %reldir%/explain.sh
cli_tests += %reldir%/verify.sh
