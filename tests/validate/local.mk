# validate: the predictions against published measurements; the program that fits the constants.
check_PROGRAMS += tests/validate/fit tests/validate/score
tests_validate_fit_SOURCES = tests/validate/fit.c tests/validate/fit.h \
	tests/validate/fit_priors.h tests/validate/fit_data.c tests/validate/fit_solve.c
tests_validate_fit_LDADD = $(planner_libs)
tests_validate_score_SOURCES = tests/validate/score.c
tests_validate_score_LDADD = libpt/libpt.a $(pt_libs)

cli_tests += tests/validate/runs.sh tests/validate/memory.sh
EXTRA_DIST += tests/validate/run.sh tests/data/validation/runs.csv \
	tests/data/validation/layer_timings.csv tests/data/validation/bubble_rates.csv \
	tests/data/validation/schedules.csv tests/data/validation/memory_theory.csv

# Refits profiles/stacks.csv in place.
.PHONY: fit
fit: tests/validate/fit
	tests/validate/fit $(top_srcdir)/profiles $(top_srcdir)/tests/data/validation/runs.csv \
		write >stacks.csv.new
	mv stacks.csv.new $(top_srcdir)/profiles/stacks.csv

pt_run_programs += %reldir%/validate_schedules
%canon_reldir%_validate_schedules_SOURCES = %reldir%/validate_schedules.c
%canon_reldir%_validate_schedules_LDADD = $(sim_libs)
