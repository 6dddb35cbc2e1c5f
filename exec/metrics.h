/* The metrics file and the progress line, written by rank 0. */
#ifndef PT_EXEC_METRICS_H
#define PT_EXEC_METRICS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "libpt/error.h"

struct exec_metrics {
    FILE *csv; /* owned; NULL: no file */
    const char *path;
    FILE *out;                /* NULL: quiet */
    bool terminal, evaluates; /* evaluates: one column more, eval_loss */
    uint64_t steps, log_every;
    uint32_t ranks; /* with columns of their own; 0: none */
    double begin_s;
};
/* A rank's own columns. */
enum exec_rank_column {
    EXEC_RANK_STEP_S,
    EXEC_RANK_WAIT_S,
    EXEC_RANK_PEAK_BYTES,
    EXEC_RANK_NORM,
    EXEC_N_RANK_COLUMNS
};
/* One step, as measured. */
struct exec_point {
    uint64_t step, tokens; /* tokens: seen so far */
    double loss, grad_norm, lr, step_s, tokens_per_s, peak_bytes;
    double eval_loss;      /* NaN: not evaluated at this step */
    const double *by_rank; /* [ranks][EXEC_N_RANK_COLUMNS]; unused without such columns */
};

/* path NULL: no file. A file that exists is replaced. ranks > 0: as many sets of columns
 * more, one per rank. */
enum pt_status exec_metrics_open(struct exec_metrics *m, const char *path, FILE *out,
                                 uint64_t steps, uint64_t log_every, bool evaluates,
                                 uint32_t ranks, struct pt_error *err);
/* Written through at once, so that a full disk is found at the step it happens. */
enum pt_status exec_metrics_add(struct exec_metrics *m, const struct exec_point *p,
                                struct pt_error *err);
enum pt_status exec_metrics_close(struct exec_metrics *m, struct pt_error *err);

#endif
