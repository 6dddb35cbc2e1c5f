#include "config.h"

#include <math.h>
#include <string.h>

#include "exec/options.h"

/* Kaplan et al. 2020, "Scaling laws for neural language models", equation D.1: the best
 * peak rate falls with the logarithm of the parameters. Meant for up to 10^10; bounded
 * below beyond. */
static double default_lr(const struct pt_model *model)
{
    struct pt_params p;

    pt_model_params(model, &p);
    return fmax(3.239e-3 - 1.395e-4 * log((double)p.total), 3e-5);
}

static enum pt_status scale_lr(struct exec_options *o, const struct pt_plan *plan,
                               struct pt_error *err)
{
    double ratio = (double)plan->setup.job.global_batch / (double)o->reference_batch;

    if (!strcmp(o->lr_scaling, "none"))
        return PT_OK;
    if (o->reference_batch == 0)
        return pt_fail(
            err, PT_USAGE, NULL, 0,
            "--lr-scaling %s needs --reference-batch, the global batch that the "
            "learning rate was made for",
            o->lr_scaling);
    o->optimizer.lr *= !strcmp(o->lr_scaling, "sqrt") ? sqrt(ratio) : ratio;
    return PT_OK;
}

enum pt_status exec_options_resolve(struct exec_options *o, const struct pt_plan *plan,
                                    struct pt_error *err)
{
    struct exec_optimizer *opt = &o->optimizer;

    if (!o->seed_given)
        o->seed = plan->setup.job.seed;
    if (!o->lr_given)
        opt->lr = default_lr(&plan->setup.model);
    if (!o->warmup_given)
        opt->warmup = o->steps / 10;
    if (!o->decay_given)
        opt->decay_steps = o->steps;
    if ((o->eval_every > 0) != (o->eval_data != NULL))
        return pt_fail(
            err, PT_USAGE, NULL, 0,
            "--eval-every and --eval-data belong together: how often, and on what");
    if (o->per_rank && o->metrics == NULL)
        return pt_fail(err, PT_USAGE, NULL, 0,
                       "--per-rank adds columns to --metrics FILE.csv, which is missing");
    if (opt->warmup > o->steps)
        return pt_fail(err, PT_USAGE, NULL, 0, "--warmup %llu exceeds --steps %llu",
                       (unsigned long long)opt->warmup, (unsigned long long)o->steps);
    opt->schedule = !strcmp(o->lr_schedule, "cosine")   ? EXEC_LR_COSINE
                    : !strcmp(o->lr_schedule, "linear") ? EXEC_LR_LINEAR
                                                        : EXEC_LR_CONSTANT;
    return scale_lr(o, plan, err);
}
