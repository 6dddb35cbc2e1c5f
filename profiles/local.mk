profiledir = $(pkgdatadir)/profiles
dist_profile_DATA =
dist_profile_DATA += %reldir%/collectives.csv
dist_profile_DATA += %reldir%/efficiency.csv
dist_profile_DATA += %reldir%/gpus.csv
dist_profile_DATA += %reldir%/links.csv
dist_profile_DATA += %reldir%/models.csv
dist_profile_DATA += %reldir%/nodes.csv
dist_profile_DATA += %reldir%/sources.csv
dist_profile_DATA += %reldir%/stacks.csv
# The published shapes behind the rule for --params, and its reference table: for tests.
EXTRA_DIST += %reldir%/nccl_tuning.csv %reldir%/shape_points.csv %reldir%/shape_synth.csv
