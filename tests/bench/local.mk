# Speed, measured and printed: never a test.
check_PROGRAMS += %reldir%/bench_search
%canon_reldir%_bench_search_SOURCES = %reldir%/bench_search.c
%canon_reldir%_bench_search_LDADD = $(planner_libs)
EXTRA_DIST += %reldir%/user-case.sh
EXTRA_DIST += %reldir%/readme.sh
EXTRA_DIST += %reldir%/user-case.sh %reldir%/plan-speed.sh

check_PROGRAMS += %reldir%/bench_engine
%canon_reldir%_bench_engine_SOURCES = %reldir%/bench_engine.c
%canon_reldir%_bench_engine_LDADD = $(sim_libs)
EXTRA_DIST += %reldir%/loop.sh %reldir%/train.sh %reldir%/train_torch.py %reldir%/walk.sh
