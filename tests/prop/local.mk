# Seeded random tests against an oracle or an invariant (prop.h).

pt_run_programs += %reldir%/prop_text
%canon_reldir%_prop_text_SOURCES = %reldir%/prop_text.c %reldir%/prop.h
%canon_reldir%_prop_text_LDADD = libpt/libpt.a $(pt_libs)

pt_run_programs += %reldir%/prop_layout
%canon_reldir%_prop_layout_SOURCES = %reldir%/prop_layout.c %reldir%/prop.h
%canon_reldir%_prop_layout_LDADD = libpt/libpt.a $(pt_libs)

pt_run_programs += %reldir%/prop_schedule
%canon_reldir%_prop_schedule_SOURCES = %reldir%/prop_schedule.c %reldir%/prop.h
%canon_reldir%_prop_schedule_LDADD = libpt/libpt.a $(pt_libs)
pt_run_programs += %reldir%/prop_solve
%canon_reldir%_prop_solve_SOURCES = %reldir%/prop_solve.c %reldir%/prop.h %reldir%/search_setup.h
%canon_reldir%_prop_solve_LDADD = $(planner_libs)

pt_run_programs += %reldir%/prop_memory
%canon_reldir%_prop_memory_SOURCES = %reldir%/prop_memory.c %reldir%/prop.h
%canon_reldir%_prop_memory_LDADD = libpt/libpt.a $(pt_libs)
pt_run_programs += %reldir%/prop_search
%canon_reldir%_prop_search_SOURCES = %reldir%/prop_search.c %reldir%/prop.h \
	%reldir%/search_setup.h
%canon_reldir%_prop_search_LDADD = $(planner_libs)
pt_run_programs += %reldir%/prop_sim
%canon_reldir%_prop_sim_SOURCES = %reldir%/prop_sim.c %reldir%/prop.h
%canon_reldir%_prop_sim_LDADD = $(sim_libs)

pt_run_programs += %reldir%/prop_plan_sim
%canon_reldir%_prop_plan_sim_SOURCES = %reldir%/prop_plan_sim.c %reldir%/prop.h
%canon_reldir%_prop_plan_sim_LDADD = $(sim_libs)
pt_run_programs += %reldir%/prop_cost
%canon_reldir%_prop_cost_SOURCES = %reldir%/prop_cost.c %reldir%/prop.h
%canon_reldir%_prop_cost_LDADD = libpt/libpt.a $(pt_libs)

long_tests += %reldir%/many.sh
