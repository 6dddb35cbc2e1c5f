#include "config.h"

#include <math.h>

#include "exec/optimizer.h"

double exec_lr(const struct exec_optimizer *o, uint64_t step)
{
    double done, span;

    if (step <= o->warmup)
        return o->lr * (double)step / (double)o->warmup;
    if (o->schedule == EXEC_LR_CONSTANT || o->decay_steps <= o->warmup)
        return o->lr;
    span = (double)(o->decay_steps - o->warmup);
    done = fmin((double)(step - o->warmup) / span, 1.0);
    if (o->schedule == EXEC_LR_COSINE)
        done = 0.5 - 0.5 * cos(acos(-1.0) * done);
    return o->lr * (1.0 - (1.0 - o->min_lr_frac) * done);
}

void exec_adam_init(const struct exec_optimizer *o, uint64_t step, double norm,
                    struct exec_adam *a)
{
    double lr = exec_lr(o, step);

    a->beta1 = (float)o->beta1;
    a->beta2 = (float)o->beta2;
    a->eps = (float)o->eps;
    a->step_size = (float)(lr / (1.0 - pow(o->beta1, (double)step)));
    a->inv_sqrt_c2 = (float)(1.0 / sqrt(1.0 - pow(o->beta2, (double)step)));
    a->decay = (float)(1.0 - lr * o->weight_decay);
    a->grad_scale = o->clip > 0 && norm > o->clip ? (float)(o->clip / norm) : 1.0f;
}
