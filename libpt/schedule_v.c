/* The V family (Qi et al., "Pipeline Parallelism with Controllable Memory", 2024): two
 * chunks per stage, the second one running back. Its bases repeat a building block every
 * six units, in which F, F', B', B take a unit each and the weight parts the rest: from
 * one stage to the next the four are put off by (4, 2, 4, 2) units in ZB-V, (2, 1, 2, 1)
 * in V-Half and (1, 1, 1, 1) in V-Min. A stage holds what lies between F and B; over all
 * hops that is p, about p/2 and about p/3 activations. */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libpt/schedule_search.h"

#define UNIT_PERIOD 6
#define TRIPLES     (UNIT_PERIOD * UNIT_PERIOD * UNIT_PERIOD)

/* Start of F, F', B', B of micro-batch 0 on each stage, in units. */
struct pt_block {
    uint32_t hop[4]; /* units from one stage to the next in the model's order */
    uint32_t gap[3]; /* idle units where the model turns */
};

static uint32_t block_start(const struct pt_block *b, uint32_t p, uint32_t stage,
                            unsigned k)
{
    uint32_t at = 0;

    for (unsigned i = 0; i < k; i++)
        at += b->hop[i] * (p - 1) + 1 + b->gap[i];
    return at + b->hop[k] * (k % 2 == 0 ? stage : p - 1 - stage);
}

/* No two of a stage's four passes may fall on the same unit of the period. */
static bool block_collides(const struct pt_block *b, uint32_t p)
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
 * its input part. */
static void block_stage(const struct pt_block *b, const struct pt_order *o,
                        uint32_t stage, struct pt_pass *pass)
{
    static const struct pt_pass kinds[4] = { { PT_FORWARD, 0, 0 },
                                             { PT_FORWARD, 1, 0 },
                                             { PT_BACKWARD_INPUT, 1, 0 },
                                             { PT_BACKWARD_INPUT, 0, 0 } };
    uint32_t m = o->micro_batches, done[4] = { 0 }, weights[2] = { 0 };
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
        } else if (weights[1] < done[2] || weights[0] < done[3]) {
            /* the chunk whose input part came first */
            bool second = weights[1] < done[2] &&
                          (weights[1] <= weights[0] || weights[0] >= done[3]);

            pass[n++] = (struct pt_pass){ PT_BACKWARD_WEIGHT, second, weights[second] };
            weights[second]++;
        }
    }
}

static void make_block(const struct pt_bases *bases, uint32_t k, struct pt_order *base)
{
    for (uint32_t s = 0; s < base->stages; s++)
        block_stage(&bases->block[k], base, s, pt_order_stage(base, s));
}

/* The most that a stage of this order holds at once; size NULL: chunks. */
static double stage_peak(const struct pt_order *o, uint32_t stage, const double *size)
{
    const struct pt_pass *pass = pt_order_stage(o, stage);
    double held = 0, peak = 0;

    for (size_t i = 0; i < o->per_stage; i++) {
        double bytes = size ? size[pass[i].chunk * o->stages + stage] : 1;

        held += pass[i].kind == PT_FORWARD           ? bytes
                : pass[i].kind == PT_BACKWARD_WEIGHT ? -bytes
                                                     : 0;
        peak = fmax(peak, held);
    }
    return peak;
}

struct found {
    struct pt_block block[TRIPLES];
    double chunks[TRIPLES]; /* the fullest stage of each */
    bool fits[TRIPLES];     /* every stage within the search's limit */
    uint32_t n;
};

/* All blocks with these hops that do not collide, those with the smallest gaps first. */
static void find_blocks(struct pt_search *sr, const uint32_t hop[4], struct found *found)
{
    uint32_t p = sr->base.stages;

    found->n = 0;
    for (uint32_t sum = 0; sum <= 3 * (UNIT_PERIOD - 1); sum++)
        for (uint32_t g = 0; g < TRIPLES; g++) {
            struct pt_block b = { { hop[0], hop[1], hop[2], hop[3] },
                                  { g / UNIT_PERIOD / UNIT_PERIOD,
                                    g / UNIT_PERIOD % UNIT_PERIOD, g % UNIT_PERIOD } };
            uint32_t n = found->n;

            if (b.gap[0] + b.gap[1] + b.gap[2] != sum || block_collides(&b, p))
                continue;
            found->block[n] = b;
            found->chunks[n] = 0;
            found->fits[n] = true;
            for (uint32_t s = 0; s < p; s++) {
                block_stage(&b, &sr->base, s, pt_order_stage(&sr->base, s));
                found->chunks[n] = fmax(found->chunks[n], stage_peak(&sr->base, s, NULL));
                found->fits[n] = found->fits[n] && stage_peak(&sr->base, s, sr->size) <=
                                                       sr->limit[s] * (1 + 1e-9);
            }
            found->n++;
        }
}

/* Keeps the blocks that fit. */
static uint32_t keep_fitting(struct found *found)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < found->n; i++)
        if (found->fits[i])
            found->block[kept++] = found->block[i];
    return kept;
}

/* From the family that holds most to the most frugal one. */
static const struct family {
    uint32_t hop[4];
    bool whole;    /* the limit is p activations, else what its blocks hold */
    uint32_t room; /* chunks above the least that any of its blocks holds */
} families[] = {
    { { 4, 2, 4, 2 }, true, 0 },
    { { 2, 1, 2, 1 }, false, 1 }, /* half an activation more buys a shorter ramp */
    { { 1, 1, 1, 1 }, false, 0 },
};
#define N_FAMILIES (sizeof(families) / sizeof(families[0]))

/* Every chunk counts the same. Returns how many blocks there are to try. */
static uint32_t limit_by_count(struct pt_search *sr, const struct family *family,
                               struct found *found)
{
    uint32_t p = sr->base.stages;
    double least = HUGE_VAL, limit;

    for (uint32_t i = 0; i < 2 * p; i++)
        sr->size[i] = 1;
    find_blocks(sr, family->hop, found);
    for (uint32_t i = 0; i < found->n; i++)
        least = fmin(least, found->chunks[i]);
    limit = fmax(family->whole ? 2.0 * p : 0, least + family->room);
    for (uint32_t s = 0; s < p; s++)
        sr->limit[s] = limit;
    for (uint32_t i = 0; i < found->n; i++)
        found->fits[i] = found->chunks[i] <= limit;
    return keep_fitting(found);
}

/* Bytes per stage. A family whose own blocks hold too much somewhere begins with the
 * blocks of a more frugal one; the list scheduler fills what memory is left. 0 when none
 * fits. */
static uint32_t limit_by_bytes(struct pt_search *sr, const struct pt_schedule_spec *spec,
                               size_t family, struct found *found)
{
    uint32_t kept = 0;

    memcpy(sr->limit, spec->limit_bytes, spec->pp * sizeof(*sr->limit));
    memcpy(sr->size, spec->chunk_bytes, 2 * (size_t)spec->pp * sizeof(*sr->size));
    for (; family < N_FAMILIES && kept == 0; family++) {
        find_blocks(sr, families[family].hop, found);
        kept = keep_fitting(found);
    }
    return kept;
}

static enum pt_status order_v(const struct pt_schedule_spec *spec, size_t family,
                              struct pt_order *order, struct pt_error *err)
{
    struct pt_bases bases = { .make = make_block };
    struct found *found = malloc(sizeof(*found));
    struct pt_search sr;
    enum pt_status st;

    if (found == NULL)
        return pt_fail_memory(err);
    if ((st = pt_search_init(&sr, spec, order, err))) {
        free(found);
        return st;
    }
    if (spec->chunk_bytes != NULL && spec->limit_bytes != NULL)
        bases.n = limit_by_bytes(&sr, spec, family, found);
    if (bases.n == 0)
        bases.n = limit_by_count(&sr, &families[family], found);
    bases.block = found->block;
    if (bases.n == 0)
        st = pt_fail(err, PT_BUG, NULL, 0, "no building block for %u stages",
                     order->stages);
    else
        st = pt_search_run(&sr, &bases, 1, 1e-12, err);
    pt_search_fini(&sr);
    free(found);
    return st;
}

enum pt_status pt_order_zb_v(const struct pt_schedule_spec *spec, struct pt_order *order,
                             struct pt_error *err)
{
    return order_v(spec, 0, order, err);
}

enum pt_status pt_order_v_half(const struct pt_schedule_spec *spec,
                               struct pt_order *order, struct pt_error *err)
{
    return order_v(spec, 1, order, err);
}

enum pt_status pt_order_v_min(const struct pt_schedule_spec *spec, struct pt_order *order,
                              struct pt_error *err)
{
    return order_v(spec, 2, order, err);
}
