noinst_LIBRARIES += %reldir%/libplanner.a
%canon_reldir%_libplanner_a_SOURCES = %reldir%/search.h
%canon_reldir%_libplanner_a_CPPFLAGS = $(AM_CPPFLAGS) $(GLPK_CFLAGS)
