/* A rank's whole run: from its place in shared memory to its report. */
#ifndef PT_EXEC_RANK_H
#define PT_EXEC_RANK_H

#include "exec/options.h"
#include "exec/shared.h"

/* comm stays the caller's, and is open. Compares what all ranks were given, then trains.
 * out: where rank 0 writes progress. PT_LIMIT when a stop was asked for and obeyed. */
enum pt_status exec_rank_run(const struct exec_options *options,
                             const struct exec_shared *shared, struct exec_comm *comm,
                             FILE *out, struct pt_error *err);
/* For ranks that share no memory: every rank's report into `shared`. */
enum pt_status exec_rank_reports(const struct exec_shared *shared, struct exec_comm *comm,
                                 struct pt_error *err);

#endif
