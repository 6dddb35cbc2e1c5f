/* A rank's whole run: from its place in shared memory to its report. */
#ifndef PT_EXEC_RANK_H
#define PT_EXEC_RANK_H

#include "exec/options.h"
#include "exec/shared.h"

/* out: where rank 0 writes progress. PT_LIMIT when a stop was asked for and obeyed. */
enum pt_status exec_rank_run(const struct exec_options *options,
                             const struct exec_shared *shared, uint32_t rank, FILE *out,
                             struct pt_error *err);

#endif
