# The executor: plans made by hand, runs compared with each other.
check_PROGRAMS += %reldir%/mkplan
%canon_reldir%_mkplan_SOURCES = %reldir%/mkplan.c %reldir%/make_plan.c %reldir%/make_plan.h
%canon_reldir%_mkplan_LDADD = libpt/libpt.a $(pt_libs)

pt_run_programs += %reldir%/layouts
%canon_reldir%_layouts_SOURCES = %reldir%/layouts.c %reldir%/make_plan.c %reldir%/make_plan.h
%canon_reldir%_layouts_LDADD = libpt/libpt.a $(pt_libs)

cli_tests += %reldir%/accounting.sh
cli_tests += %reldir%/faults.sh
cli_tests += %reldir%/metrics.sh
cli_tests += %reldir%/ptprof.sh
cli_tests += %reldir%/launchers.sh
long_tests += %reldir%/two-hosts.sh
long_tests += %reldir%/transports.sh
cli_tests += %reldir%/pytorch.sh
EXTRA_DIST += %reldir%/pytorch.py

long_tests += %reldir%/many.sh
