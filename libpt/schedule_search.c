/* ZB-auto (what Qi et al., "Zero Bubble Pipeline Parallelism", 2023, call ZB-1p and
 * ZB-2p): the bases are 1F1B orders whose lead of forwards grows by 1 to 3 from stage to
 * stage. */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libpt/schedule_search.h"

/* Work that one search may cost, in passes scheduled. The best policies come first. */
#define SEARCH_PASSES 1200000u

static const struct pt_list_policy policies[] = {
    { PT_RANK_STRICT, 0 },   { PT_RANK_BACKWARD, 0 },   { PT_RANK_BASE, 0 },
    { PT_RANK_STRICT, 1 },   { PT_RANK_BACKWARD, 1 },   { PT_RANK_BASE, 1 },
    { PT_RANK_STRICT, 0.5 }, { PT_RANK_BACKWARD, 0.5 }, { PT_RANK_BASE, 0.5 },
    { PT_RANK_FORWARD, 0 },  { PT_RANK_FORWARD, 1 },
};

/* Per-stage seconds of one chunk. */
static void chunk_times(const struct pt_schedule_spec *spec, struct pt_search *sr)
{
    double uniform[3] = { spec->forward_s, spec->input_s, spec->weight_s };
    const double *stage[3] = { spec->stage_forward_s, spec->stage_input_s,
                               spec->stage_weight_s };

    if (uniform[0] <= 0 && uniform[1] <= 0 && uniform[2] <= 0)
        uniform[0] = uniform[1] = uniform[2] = 1;
    for (uint32_t s = 0; s < spec->pp; s++) {
        double work = 0;

        for (unsigned k = 0; k < 3; k++) {
            double t = stage[k] ? stage[k][s] : uniform[k];

            sr->numbers[k * spec->pp + s] = t / spec->vpp;
            work += t;
        }
        sr->bound_s = fmax(sr->bound_s, work * spec->micro_batches);
    }
    sr->pr.forward_s = sr->numbers;
    sr->pr.input_s = sr->numbers + spec->pp;
    sr->pr.weight_s = sr->numbers + 2 * spec->pp;
    sr->pr.comm_s = spec->comm_s;
}

void pt_search_fini(struct pt_search *sr)
{
    free(sr->numbers);
    free(sr->base.pass);
    free(sr->trial.pass);
}

enum pt_status pt_search_init(struct pt_search *sr, const struct pt_schedule_spec *spec,
                              struct pt_order *order, struct pt_error *err)
{
    size_t n = order->per_stage * order->stages;

    *sr = (struct pt_search){ .base = *order,
                              .trial = *order,
                              .best = order,
                              .best_s = HUGE_VAL,
                              .best_makespan_s = HUGE_VAL };
    sr->numbers = malloc((4 + (size_t)spec->vpp) * spec->pp * sizeof(*sr->numbers));
    sr->base.pass = malloc(n * sizeof(*order->pass));
    sr->trial.pass = malloc(n * sizeof(*order->pass));
    if (sr->numbers == NULL || sr->base.pass == NULL || sr->trial.pass == NULL) {
        pt_search_fini(sr);
        return pt_fail_memory(err);
    }
    chunk_times(spec, sr);
    sr->pr.limit = sr->limit = sr->numbers + 3 * spec->pp;
    sr->pr.size = sr->size = sr->limit + spec->pp;
    for (uint32_t s = 0; s < spec->pp; s++)
        sr->limit[s] = HUGE_VAL;
    for (size_t i = 0; i < (size_t)spec->pp * spec->vpp; i++)
        sr->size[i] = 1;
    return PT_OK;
}

enum pt_status pt_search_run(struct pt_search *sr, const struct pt_bases *bases,
                             double after_frac, double margin, struct pt_error *err)
{
    size_t n = sr->base.per_stage * sr->base.stages;
    size_t tries = bases->n * (sizeof(policies) / sizeof(policies[0]));
    double eps = 1e-12;

    sr->pr.base = &sr->base;
    sr->pr.after_frac = after_frac;
    sr->budget += SEARCH_PASSES;
    for (size_t i = 0; i < tries && sr->best_s > sr->bound_s * (1 + eps); i++) {
        double span_s, makespan_s;
        enum pt_status st;

        if (i > 0 && sr->passes + n > sr->budget)
            break;
        sr->passes += n;
        bases->make(bases, (uint32_t)(i % bases->n), &sr->base);
        if ((st = pt_list_run(&sr->pr, &policies[i / bases->n], &sr->trial, &span_s,
                              &makespan_s, err)))
            return st;
        if (span_s < sr->best_s * (1 - margin) ||
            (span_s <= sr->best_s * (1 + eps) &&
             makespan_s < sr->best_makespan_s * (1 - eps))) {
            sr->best_s = span_s;
            sr->best_makespan_s = makespan_s;
            margin = eps;
            memcpy(sr->best->pass, sr->trial.pass, n * sizeof(*sr->trial.pass));
        }
    }
    return PT_OK;
}

/* Forwards ahead of the first input part grow by this much from stage to stage. */
static const double slopes[] = { 1, 2, 1.5, 2.25, 1.75, 2.5, 1.25, 3 };

static void make_1f1b(const struct pt_bases *bases, uint32_t k, struct pt_order *base)
{
    uint32_t p = base->stages, most = bases->most - 1;

    for (uint32_t s = 0; s < p; s++) {
        uint32_t ahead = (uint32_t)(slopes[k] * (p - s - 1));

        pt_order_split_stage(pt_order_stage(base, s), base->micro_batches,
                             ahead < most ? ahead : most, 0);
    }
}

/* What waits for its weight part may count less than a whole activation
 * (after_input_frac), as in the paper. First orders are sought that do not need it; one
 * that does must be faster by a thousandth. */
enum pt_status pt_order_zb_auto(const struct pt_schedule_spec *spec,
                                struct pt_order *order, struct pt_error *err)
{
    double asked = spec->max_in_flight > 0 ? spec->max_in_flight : order->stages;
    double limit = fmin(asked, order->micro_batches);
    struct pt_bases bases = { sizeof(slopes) / sizeof(slopes[0]), make_1f1b,
                              (uint32_t)limit, NULL };
    double after = spec->after_input_frac > 0 ? spec->after_input_frac : 1;
    struct pt_search sr;
    enum pt_status st;

    if (asked < 1)
        return pt_fail(err, PT_USAGE, NULL, 0,
                       "zb-auto: %g activations in flight; it needs at least 1", asked);
    if ((st = pt_search_init(&sr, spec, order, err)))
        return st;
    for (uint32_t s = 0; s < order->stages; s++)
        sr.limit[s] = limit;
    st = pt_search_run(&sr, &bases, 1, 1e-12, err);
    if (st == PT_OK && after < 1)
        st = pt_search_run(&sr, &bases, after, 1e-3, err);
    pt_search_fini(&sr);
    return st;
}
