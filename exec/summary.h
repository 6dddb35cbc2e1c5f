/* What a run prints before it starts and after it ends. */
#ifndef PT_EXEC_SUMMARY_H
#define PT_EXEC_SUMMARY_H

#include "exec/options.h"
#include "exec/shared.h"

/* Ranks, layout, data, learning rate. */
void exec_banner(FILE *f, const struct exec_options *o, const struct pt_plan *plan,
                 const char *data_hash, const char *isa);
/* Ranks, groups, memory by the plan, and the first instructions of each stage's list. */
enum pt_status exec_dry_run(FILE *f, const struct pt_plan *plan, struct pt_error *err);
/* Measured against the plan's prediction. */
void exec_summary(FILE *f, const struct pt_plan *plan, const struct exec_shared *shared);

#endif
