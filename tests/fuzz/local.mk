# A fuzz target is one file with LLVMFuzzerTestOneInput. replay_NAME runs it over corpus/NAME in
# make check, with any compiler.
fuzz_replay = %reldir%/replay_main.c
EXTRA_DIST += %reldir%/corpus

pt_run_programs += %reldir%/replay_config
%canon_reldir%_replay_config_SOURCES = %reldir%/fuzz_config.c $(fuzz_replay)
%canon_reldir%_replay_config_LDADD = libpt/libpt.a $(pt_libs)

pt_run_programs += %reldir%/replay_options
%canon_reldir%_replay_options_SOURCES = %reldir%/fuzz_options.c $(fuzz_replay)
%canon_reldir%_replay_options_LDADD = $(planner_libs)

pt_run_programs += %reldir%/replay_csv
%canon_reldir%_replay_csv_SOURCES = %reldir%/fuzz_csv.c $(fuzz_replay)
%canon_reldir%_replay_csv_LDADD = libpt/libpt.a $(pt_libs)

pt_run_programs += %reldir%/replay_json
%canon_reldir%_replay_json_SOURCES = %reldir%/fuzz_json.c $(fuzz_replay)
%canon_reldir%_replay_json_LDADD = libpt/libpt.a $(pt_libs)

pt_run_programs += %reldir%/replay_units
%canon_reldir%_replay_units_SOURCES = %reldir%/fuzz_units.c $(fuzz_replay)
%canon_reldir%_replay_units_LDADD = libpt/libpt.a $(pt_libs)

# ./configure CC=clang --enable-fuzzers --enable-sanitizers && make fuzzers; then, to look for new
# inputs: tests/fuzz/fuzz_NAME -max_total_time=60 FOLDER ../tests/fuzz/corpus/NAME
fuzz_ldflags = $(AM_LDFLAGS) -fsanitize=fuzzer
fuzz_programs =
.PHONY: fuzzers
fuzzers: $(fuzz_programs)

fuzz_programs += %reldir%/fuzz_config
%canon_reldir%_fuzz_config_SOURCES = %reldir%/fuzz_config.c
%canon_reldir%_fuzz_config_LDADD = libpt/libpt.a $(pt_libs)
%canon_reldir%_fuzz_config_LDFLAGS = $(fuzz_ldflags)

fuzz_programs += %reldir%/fuzz_options
%canon_reldir%_fuzz_options_SOURCES = %reldir%/fuzz_options.c
%canon_reldir%_fuzz_options_LDADD = $(planner_libs)
%canon_reldir%_fuzz_options_LDFLAGS = $(fuzz_ldflags)

fuzz_programs += %reldir%/fuzz_csv
%canon_reldir%_fuzz_csv_SOURCES = %reldir%/fuzz_csv.c
%canon_reldir%_fuzz_csv_LDADD = libpt/libpt.a $(pt_libs)
%canon_reldir%_fuzz_csv_LDFLAGS = $(fuzz_ldflags)

fuzz_programs += %reldir%/fuzz_json
%canon_reldir%_fuzz_json_SOURCES = %reldir%/fuzz_json.c
%canon_reldir%_fuzz_json_LDADD = libpt/libpt.a $(pt_libs)
%canon_reldir%_fuzz_json_LDFLAGS = $(fuzz_ldflags)

fuzz_programs += %reldir%/fuzz_units
%canon_reldir%_fuzz_units_SOURCES = %reldir%/fuzz_units.c
%canon_reldir%_fuzz_units_LDADD = libpt/libpt.a $(pt_libs)
%canon_reldir%_fuzz_units_LDFLAGS = $(fuzz_ldflags)

pt_run_programs += %reldir%/replay_plan
%canon_reldir%_replay_plan_SOURCES = %reldir%/fuzz_plan.c $(fuzz_replay)
%canon_reldir%_replay_plan_LDADD = libpt/libpt.a $(pt_libs)

fuzz_programs += %reldir%/fuzz_plan
%canon_reldir%_fuzz_plan_SOURCES = %reldir%/fuzz_plan.c
%canon_reldir%_fuzz_plan_LDADD = libpt/libpt.a $(pt_libs)
%canon_reldir%_fuzz_plan_LDFLAGS = $(fuzz_ldflags)

pt_run_programs += %reldir%/replay_cli
%canon_reldir%_replay_cli_SOURCES = %reldir%/fuzz_cli.c $(fuzz_replay)
%canon_reldir%_replay_cli_LDADD = libpt/libpt.a $(pt_libs)
fuzz_programs += %reldir%/fuzz_cli
%canon_reldir%_fuzz_cli_SOURCES = %reldir%/fuzz_cli.c
%canon_reldir%_fuzz_cli_LDADD = libpt/libpt.a $(pt_libs)
%canon_reldir%_fuzz_cli_LDFLAGS = $(fuzz_ldflags)


pt_run_programs += %reldir%/replay_trace
%canon_reldir%_replay_trace_SOURCES = %reldir%/fuzz_trace.c $(fuzz_replay)
%canon_reldir%_replay_trace_LDADD = libpt/libpt.a $(pt_libs)
fuzz_programs += %reldir%/fuzz_trace
%canon_reldir%_fuzz_trace_SOURCES = %reldir%/fuzz_trace.c
%canon_reldir%_fuzz_trace_LDADD = libpt/libpt.a $(pt_libs)
%canon_reldir%_fuzz_trace_LDFLAGS = $(fuzz_ldflags)

pt_run_programs += %reldir%/replay_times
%canon_reldir%_replay_times_SOURCES = %reldir%/fuzz_times.c $(fuzz_replay)
%canon_reldir%_replay_times_LDADD = $(sim_libs)
fuzz_programs += %reldir%/fuzz_times
%canon_reldir%_fuzz_times_SOURCES = %reldir%/fuzz_times.c
%canon_reldir%_fuzz_times_LDADD = $(sim_libs)
%canon_reldir%_fuzz_times_LDFLAGS = $(fuzz_ldflags)
