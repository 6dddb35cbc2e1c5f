noinst_LIBRARIES += %reldir%/libplanner.a
%canon_reldir%_libplanner_a_CPPFLAGS = $(AM_CPPFLAGS) $(GLPK_CFLAGS)
%canon_reldir%_libplanner_a_SOURCES =
%canon_reldir%_libplanner_a_SOURCES += %reldir%/search.h
