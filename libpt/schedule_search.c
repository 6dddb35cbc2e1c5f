/* Schedules that are searched: base orders that are known to run within the memory limit,
 * then the list scheduler on each of them under a handful of policies; the best order is
 * kept.
 *
 * ZB-auto (what Qi et al., "Zero Bubble Pipeline Parallelism", 2023, call ZB-1p and
 * ZB-2p): the bases are 1F1B orders whose lead of forwards grows by 1 to 3 from stage to
 * stage. The V family (Qi et al., "Pipeline Parallelism with Controllable Memory", 2024):
 * two chunks per stage, the second one running back. Its bases repeat a building block
 * every six units, in which F, F', B', B take a unit each and the weight parts the rest:
 * from one stage to the next the four are put off by (4, 2, 4, 2) units in ZB-V, (2, 1,
 * 2, 1) in V-Half and (1, 1, 1, 1) in V-Min. A stage holds what lies between F and B;
 * over all hops that is p, about p/2 and about p/3 activations. */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libpt/schedule_list.h"

/* Work that one search may cost, in passes scheduled. The best policies come first. */
#define SEARCH_PASSES 2000000u

static const struct pt_list_policy policies[] = {
    { PT_RANK_STRICT, 0 },   { PT_RANK_BACKWARD, 0 },   { PT_RANK_BASE, 0 },
    { PT_RANK_STRICT, 1 },   { PT_RANK_BACKWARD, 1 },   { PT_RANK_BASE, 1 },
    { PT_RANK_STRICT, 0.5 }, { PT_RANK_BACKWARD, 0.5 }, { PT_RANK_BASE, 0.5 },
    { PT_RANK_FORWARD, 0 },  { PT_RANK_FORWARD, 1 },
};

/* Base orders, made when they are tried: number k < n_bases. */
struct bases {
    uint32_t n_bases;
    void (*make)(const struct bases *bases, uint32_t k, struct pt_order *base);
    double limit;              /* chunks */
    const struct block *block; /* the V family's */
};

struct search {
    struct pt_list_problem pr;
    double *times; /* 3 pp */
    struct pt_order base, trial, *best;
    double best_s, best_makespan_s;
    double bound_s; /* no span can be shorter: the busiest stage's work */
    size_t passes, budget;
};

/* Per-stage seconds of one chunk. */
static void chunk_times(const struct pt_schedule_spec *spec, struct search *sr)
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

            sr->times[k * spec->pp + s] = t / spec->vpp;
            work += t;
        }
        sr->bound_s = fmax(sr->bound_s, work * spec->micro_batches);
    }
    sr->pr.forward_s = sr->times;
    sr->pr.input_s = sr->times + spec->pp;
    sr->pr.weight_s = sr->times + 2 * spec->pp;
    sr->pr.comm_s = spec->comm_s;
}

static void search_fini(struct search *sr)
{
    free(sr->times);
    free(sr->base.pass);
    free(sr->trial.pass);
}

static enum pt_status search_init(struct search *sr, const struct pt_schedule_spec *spec,
                                  struct pt_order *order, struct pt_error *err)
{
    size_t n = order->per_stage * order->stages;

    *sr = (struct search){ .base = *order,
                           .trial = *order,
                           .best = order,
                           .best_s = HUGE_VAL,
                           .best_makespan_s = HUGE_VAL };
    sr->times = malloc(3 * (size_t)spec->pp * sizeof(*sr->times));
    sr->base.pass = malloc(n * sizeof(*order->pass));
    sr->trial.pass = malloc(n * sizeof(*order->pass));
    if (sr->times == NULL || sr->base.pass == NULL || sr->trial.pass == NULL) {
        search_fini(sr);
        return pt_fail_memory(err);
    }
    chunk_times(spec, sr);
    return PT_OK;
}

/* Tries the policies on every base and keeps the best order. An order is better when its
 * span is shorter by more than `margin` of it, or the span is equal and the makespan
 * shorter. */
static enum pt_status search_run(struct search *sr, const struct bases *bases,
                                 double after_frac, double margin, struct pt_error *err)
{
    size_t n = sr->base.per_stage * sr->base.stages;
    size_t tries = bases->n_bases * (sizeof(policies) / sizeof(policies[0]));
    double eps = 1e-12;

    sr->pr.base = &sr->base;
    sr->pr.limit = bases->limit;
    sr->pr.after_frac = after_frac;
    sr->budget += SEARCH_PASSES;
    for (size_t i = 0; i < tries && sr->best_s > sr->bound_s * (1 + eps); i++) {
        double span_s, makespan_s;
        enum pt_status st;

        if (i > 0 && sr->passes + n > sr->budget)
            break;
        sr->passes += n;
        bases->make(bases, (uint32_t)(i % bases->n_bases), &sr->base);
        if ((st = pt_list_run(&sr->pr, &policies[i / bases->n_bases], &sr->trial, &span_s,
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

static void make_1f1b(const struct bases *bases, uint32_t k, struct pt_order *base)
{
    uint32_t p = base->stages, most = (uint32_t)bases->limit - 1;

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
    struct bases bases = { sizeof(slopes) / sizeof(slopes[0]), make_1f1b,
                           fmin(asked, order->micro_batches), NULL };
    double after = spec->after_input_frac > 0 ? spec->after_input_frac : 1;
    struct search sr;
    enum pt_status st;

    if (asked < 1)
        return pt_fail(err, PT_USAGE, NULL, 0,
                       "zb-auto: %g activations in flight; it needs at least 1", asked);
    if ((st = search_init(&sr, spec, order, err)))
        return st;
    st = search_run(&sr, &bases, 1, 1e-12, err);
    if (st == PT_OK && after < 1)
        st = search_run(&sr, &bases, after, 1e-3, err);
    search_fini(&sr);
    return st;
}

/* ---- the V family ---- */

#define UNIT_PERIOD 6
#define TRIPLES     (UNIT_PERIOD * UNIT_PERIOD * UNIT_PERIOD)

/* Start of F, F', B', B of micro-batch 0 on each stage, in units. */
struct block {
    uint32_t hop[4]; /* units from one stage to the next in the model's order */
    uint32_t gap[3]; /* idle units where the model turns */
};

static uint32_t block_start(const struct block *b, uint32_t p, uint32_t stage, unsigned k)
{
    uint32_t at = 0;

    for (unsigned i = 0; i < k; i++)
        at += b->hop[i] * (p - 1) + 1 + b->gap[i];
    return at + b->hop[k] * (k % 2 == 0 ? stage : p - 1 - stage);
}

/* No two of a stage's four passes may fall on the same unit of the period. */
static bool block_collides(const struct block *b, uint32_t p)
{
    for (uint32_t s = 0; s < p; s++) {
        unsigned used = 0;

        for (unsigned k = 0; k < 4; k++) {
            unsigned bit = 1u << block_start(b, p, s, k) % UNIT_PERIOD;

            if (used & bit)
                return true;
            used |= bit;
        }
    }
    return false;
}

/* One stage's base order: passes by unit; a weight part takes the first idle unit after
 * its input part. Returns the most chunks held at once. */
static uint32_t block_stage(const struct block *b, const struct pt_order *o,
                            uint32_t stage, struct pt_pass *pass)
{
    static const struct pt_pass kinds[4] = { { PT_FORWARD, 0, 0 },
                                             { PT_FORWARD, 1, 0 },
                                             { PT_BACKWARD_INPUT, 1, 0 },
                                             { PT_BACKWARD_INPUT, 0, 0 } };
    uint32_t m = o->micro_batches, done[4] = { 0 }, weights[2] = { 0 }, held = 0,
             peak = 0;
    size_t n = 0;

    for (uint32_t unit = 0; n < o->per_stage; unit++) {
        int k = -1;

        for (unsigned i = 0; i < 4; i++)
            if (done[i] < m &&
                block_start(b, o->stages, stage, i) + done[i] * UNIT_PERIOD == unit)
                k = (int)i;
        if (k >= 0) {
            pass[n] = kinds[k];
            pass[n++].micro_batch = done[k]++;
            if (k < 2 && ++held > peak)
                peak = held;
        } else if (weights[1] < done[2] || weights[0] < done[3]) {
            /* the chunk whose input part came first */
            bool second = weights[1] < done[2] &&
                          (weights[1] <= weights[0] || weights[0] >= done[3]);

            pass[n++] = (struct pt_pass){ PT_BACKWARD_WEIGHT, second, weights[second] };
            weights[second]++;
            held--;
        }
    }
    return peak;
}

static void make_block(const struct bases *bases, uint32_t k, struct pt_order *base)
{
    for (uint32_t s = 0; s < base->stages; s++)
        block_stage(&bases->block[k], base, s, pt_order_stage(base, s));
}

/* All blocks with these hops that do not collide and hold at most the limit, those with
 * the smallest gaps first; the limit is the least that any of them holds, plus `room`, or
 * `limit`. Returns how many. */
static uint32_t find_blocks(struct search *sr, const uint32_t hop[4], uint32_t limit,
                            uint32_t room, struct block block[TRIPLES], double *limit_out)
{
    uint32_t peak[TRIPLES], n = 0, kept = 0, least = UINT32_MAX;

    for (uint32_t sum = 0; sum <= 3 * (UNIT_PERIOD - 1); sum++)
        for (uint32_t g = 0; g < TRIPLES; g++) {
            struct block b = { { hop[0], hop[1], hop[2], hop[3] },
                               { g / UNIT_PERIOD / UNIT_PERIOD,
                                 g / UNIT_PERIOD % UNIT_PERIOD, g % UNIT_PERIOD } };

            if (b.gap[0] + b.gap[1] + b.gap[2] != sum ||
                block_collides(&b, sr->base.stages))
                continue;
            peak[n] = 0;
            for (uint32_t s = 0; s < sr->base.stages; s++) {
                uint32_t held =
                    block_stage(&b, &sr->base, s, pt_order_stage(&sr->base, s));

                peak[n] = held > peak[n] ? held : peak[n];
            }
            least = peak[n] < least ? peak[n] : least;
            block[n++] = b;
        }
    limit = limit > least + room ? limit : least + room;
    for (uint32_t i = 0; i < n; i++)
        if (peak[i] <= limit)
            block[kept++] = block[i];
    *limit_out = limit;
    return kept;
}

/* limit and room: chunks. */
static enum pt_status order_v(const struct pt_schedule_spec *spec, const uint32_t hop[4],
                              uint32_t limit, uint32_t room, struct pt_order *order,
                              struct pt_error *err)
{
    struct block block[TRIPLES];
    struct bases bases = { 0, make_block, 0, block };
    struct search sr;
    enum pt_status st;

    if ((st = search_init(&sr, spec, order, err)))
        return st;
    bases.n_bases = find_blocks(&sr, hop, limit, room, block, &bases.limit);
    if (bases.n_bases == 0)
        st = pt_fail(err, PT_BUG, NULL, 0, "no building block for %u stages",
                     order->stages);
    else
        st = search_run(&sr, &bases, 1, 1e-12, err);
    search_fini(&sr);
    return st;
}

enum pt_status pt_order_zb_v(const struct pt_schedule_spec *spec, struct pt_order *order,
                             struct pt_error *err)
{
    static const uint32_t hop[4] = { 4, 2, 4, 2 };

    return order_v(spec, hop, 2 * order->stages, 0, order, err);
}

/* Half an activation above the block's own p/2 + 1 buys a shorter ramp. */
enum pt_status pt_order_v_half(const struct pt_schedule_spec *spec,
                               struct pt_order *order, struct pt_error *err)
{
    static const uint32_t hop[4] = { 2, 1, 2, 1 };

    return order_v(spec, hop, 0, 1, order, err);
}

enum pt_status pt_order_v_min(const struct pt_schedule_spec *spec, struct pt_order *order,
                              struct pt_error *err)
{
    static const uint32_t hop[4] = { 1, 1, 1, 1 };

    return order_v(spec, hop, 0, 0, order, err);
}
