/* What the user asked for, apart from the plan. */
#ifndef PT_EXEC_OPTIONS_H
#define PT_EXEC_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "exec/optimizer.h"
#include "libpt/plan.h"

struct exec_options {
    const char *plan_path, *data, *metrics, *trace, *dump, *isa, *eval_data;
    const char *comm; /* auto, local, mpi or tcp */
    uint64_t steps, seed, threads, log_every, reference_batch, eval_every, eval_batches;
    bool seed_given, lr_given, warmup_given, decay_given, quiet, per_rank;
    double watchdog_s;
    const char *lr_schedule, *lr_scaling;
    struct exec_optimizer optimizer; /* as given; exec_options_resolve completes it */
};

/* Fills what was left to defaults: seed of the plan; peak learning rate by parameters;
 * warm-up a tenth of the steps; decay over the run; the batch's scaling rule. PT_USAGE on
 * contradictions. */
enum pt_status exec_options_resolve(struct exec_options *o, const struct pt_plan *plan,
                                    struct pt_error *err);

#endif
