noinst_LIBRARIES += %reldir%/libsim.a
%canon_reldir%_libsim_a_SOURCES =
%canon_reldir%_libsim_a_SOURCES += %reldir%/evq.c %reldir%/evq.h
%canon_reldir%_libsim_a_SOURCES += %reldir%/pure.c %reldir%/pure.h
%canon_reldir%_libsim_a_SOURCES += %reldir%/stage_times.c

bin_PROGRAMS += ptsim
ptsim_SOURCES = %reldir%/main.c
ptsim_LDADD = $(sim_libs)
