/* Learning rate and AdamW constants. The arithmetic is the kernels' adamw. */
#ifndef PT_EXEC_OPTIMIZER_H
#define PT_EXEC_OPTIMIZER_H

#include <stdint.h>

#include "exec/kernels.h"

enum exec_lr_schedule { EXEC_LR_COSINE, EXEC_LR_LINEAR, EXEC_LR_CONSTANT };

struct exec_optimizer {
    double lr, min_lr_frac; /* the peak, and where the decay ends as a fraction of it */
    uint64_t warmup, decay_steps;
    enum exec_lr_schedule schedule;
    double beta1, beta2, eps, weight_decay, clip; /* clip 0: none */
};

/* Of step 1, 2, ...: linear from lr/warmup to lr over the warm-up, then as the schedule
 * says, down to min_lr_frac at decay_steps. */
double exec_lr(const struct exec_optimizer *o, uint64_t step);
/* norm: of the gradient of this step, before clipping. */
void exec_adam_init(const struct exec_optimizer *o, uint64_t step, double norm,
                    struct exec_adam *adam);

#endif
