noinst_LIBRARIES += %reldir%/libsim.a
%canon_reldir%_libsim_a_SOURCES =
%canon_reldir%_libsim_a_SOURCES += %reldir%/evq.c %reldir%/evq.h
