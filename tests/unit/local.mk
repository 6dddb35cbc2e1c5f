# One Check program per module, made only where the Check framework is. To add one: five lines.
unit_cflags = $(AM_CFLAGS) $(CHECK_CFLAGS)
unit_libs = libpt/libpt.a $(pt_libs) $(CHECK_LIBS)
EXTRA_DIST += tests/data/config tests/data/plans

pt_run_programs += %reldir%/check_cli
%canon_reldir%_check_cli_SOURCES = %reldir%/check_cli.c %reldir%/unit.h
%canon_reldir%_check_cli_CFLAGS = $(unit_cflags)
%canon_reldir%_check_cli_LDADD = $(unit_libs)

pt_run_programs += %reldir%/check_config
%canon_reldir%_check_config_SOURCES = %reldir%/check_config.c %reldir%/unit.h
%canon_reldir%_check_config_CFLAGS = $(unit_cflags)
%canon_reldir%_check_config_LDADD = $(unit_libs)

pt_run_programs += %reldir%/check_csv
%canon_reldir%_check_csv_SOURCES = %reldir%/check_csv.c %reldir%/unit.h
%canon_reldir%_check_csv_CFLAGS = $(unit_cflags)
%canon_reldir%_check_csv_LDADD = $(unit_libs)

pt_run_programs += %reldir%/check_error
%canon_reldir%_check_error_SOURCES = %reldir%/check_error.c %reldir%/unit.h
%canon_reldir%_check_error_CFLAGS = $(unit_cflags)
%canon_reldir%_check_error_LDADD = $(unit_libs)

pt_run_programs += %reldir%/check_evq
%canon_reldir%_check_evq_SOURCES = %reldir%/check_evq.c %reldir%/unit.h
%canon_reldir%_check_evq_CFLAGS = $(unit_cflags)
%canon_reldir%_check_evq_LDADD = sim/libsim.a $(unit_libs)

pt_run_programs += %reldir%/check_hardware
%canon_reldir%_check_hardware_SOURCES = %reldir%/check_hardware.c %reldir%/unit.h
%canon_reldir%_check_hardware_CFLAGS = $(unit_cflags)
%canon_reldir%_check_hardware_LDADD = $(unit_libs)

pt_run_programs += %reldir%/check_json
%canon_reldir%_check_json_SOURCES = %reldir%/check_json.c %reldir%/unit.h
%canon_reldir%_check_json_CFLAGS = $(unit_cflags)
%canon_reldir%_check_json_LDADD = $(unit_libs)

pt_run_programs += %reldir%/check_layout
%canon_reldir%_check_layout_SOURCES = %reldir%/check_layout.c %reldir%/unit.h
%canon_reldir%_check_layout_CFLAGS = $(unit_cflags)
%canon_reldir%_check_layout_LDADD = $(unit_libs)

pt_run_programs += %reldir%/check_model
%canon_reldir%_check_model_SOURCES = %reldir%/check_model.c %reldir%/unit.h
%canon_reldir%_check_model_CFLAGS = $(unit_cflags)
%canon_reldir%_check_model_LDADD = $(unit_libs)

pt_run_programs += %reldir%/check_options
%canon_reldir%_check_options_SOURCES = %reldir%/check_options.c %reldir%/unit.h
%canon_reldir%_check_options_CFLAGS = $(unit_cflags)
%canon_reldir%_check_options_LDADD = $(planner_libs) $(CHECK_LIBS)

pt_run_programs += %reldir%/check_sha256
%canon_reldir%_check_sha256_SOURCES = %reldir%/check_sha256.c %reldir%/unit.h
%canon_reldir%_check_sha256_CFLAGS = $(unit_cflags)
%canon_reldir%_check_sha256_LDADD = $(unit_libs)

pt_run_programs += %reldir%/check_units
%canon_reldir%_check_units_SOURCES = %reldir%/check_units.c %reldir%/unit.h
%canon_reldir%_check_units_CFLAGS = $(unit_cflags)
%canon_reldir%_check_units_LDADD = $(unit_libs)

pt_run_programs += %reldir%/check_plan
%canon_reldir%_check_plan_SOURCES = %reldir%/check_plan.c %reldir%/unit.h
%canon_reldir%_check_plan_CFLAGS = $(unit_cflags)
%canon_reldir%_check_plan_LDADD = $(unit_libs)

pt_run_programs += %reldir%/check_schedule
%canon_reldir%_check_schedule_SOURCES = %reldir%/check_schedule.c %reldir%/unit.h
%canon_reldir%_check_schedule_CFLAGS = $(unit_cflags)
%canon_reldir%_check_schedule_LDADD = $(unit_libs)

pt_run_programs += %reldir%/check_trace
%canon_reldir%_check_trace_SOURCES = %reldir%/check_trace.c %reldir%/unit.h
%canon_reldir%_check_trace_CFLAGS = $(unit_cflags)
%canon_reldir%_check_trace_LDADD = $(unit_libs)

pt_run_programs += %reldir%/check_memory
%canon_reldir%_check_memory_SOURCES = %reldir%/check_memory.c %reldir%/unit.h
%canon_reldir%_check_memory_CFLAGS = $(unit_cflags)
%canon_reldir%_check_memory_LDADD = $(unit_libs)
pt_run_programs += %reldir%/check_kernels
%canon_reldir%_check_kernels_SOURCES = %reldir%/check_kernels.c %reldir%/unit.h
%canon_reldir%_check_kernels_CFLAGS = $(unit_cflags)
%canon_reldir%_check_kernels_LDADD = $(exec_libs) $(CHECK_LIBS)

pt_run_programs += %reldir%/check_data
%canon_reldir%_check_data_SOURCES = %reldir%/check_data.c %reldir%/unit.h
%canon_reldir%_check_data_CFLAGS = $(unit_cflags)
%canon_reldir%_check_data_LDADD = $(exec_libs) $(CHECK_LIBS)

pt_run_programs += %reldir%/check_comm
%canon_reldir%_check_comm_SOURCES = %reldir%/check_comm.c %reldir%/unit.h
%canon_reldir%_check_comm_CFLAGS = $(unit_cflags)
%canon_reldir%_check_comm_LDADD = $(exec_libs) $(CHECK_LIBS)

pt_run_programs += %reldir%/check_place
%canon_reldir%_check_place_SOURCES = %reldir%/check_place.c %reldir%/unit.h
%canon_reldir%_check_place_CFLAGS = $(unit_cflags)
%canon_reldir%_check_place_LDADD = $(exec_libs) $(CHECK_LIBS)

pt_run_programs += %reldir%/check_campaign
%canon_reldir%_check_campaign_SOURCES = %reldir%/check_campaign.c %reldir%/unit.h
%canon_reldir%_check_campaign_CFLAGS = $(unit_cflags)
%canon_reldir%_check_campaign_LDADD = sim/libsim.a $(unit_libs)

pt_run_programs += %reldir%/check_search
%canon_reldir%_check_search_SOURCES = %reldir%/check_search.c %reldir%/unit.h
%canon_reldir%_check_search_CFLAGS = $(unit_cflags)
%canon_reldir%_check_search_LDADD = planner/libplanner.a $(unit_libs) $(GLPK_LIBS)

pt_run_programs += %reldir%/check_cost
%canon_reldir%_check_cost_SOURCES = %reldir%/check_cost.c %reldir%/unit.h
%canon_reldir%_check_cost_CFLAGS = $(unit_cflags)
%canon_reldir%_check_cost_LDADD = $(unit_libs)
