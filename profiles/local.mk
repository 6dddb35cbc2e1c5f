profiledir = $(pkgdatadir)/profiles
dist_profile_DATA =
