# ptprof measures with the executor's own kernels and transport.
noinst_LIBRARIES += %reldir%/libprof.a
%canon_reldir%_libprof_a_SOURCES = %reldir%/cpu.c %reldir%/cpu.h
bin_PROGRAMS += ptprof
ptprof_SOURCES = %reldir%/main.c
ptprof_LDADD = %reldir%/libprof.a $(exec_libs)
