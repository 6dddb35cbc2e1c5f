/* Values that contradict each other before any search, and warnings that need none.
 *
 * Each combination of pinned values is completed to a layout with the mildest values for
 * what is free, and pt_layout_check decides; when no combination passes, the sentence is
 * that of the first. Only what is certain is asked: the batch, when the number of
 * replicas is. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "planner/options.h"

/* Combinations tried; beyond, the search itself answers. */
#define MAX_COMBINATIONS 20000u

enum { TP, PP, VPP, CP, EP, DP, ZERO, ZERO_GROUP, MICRO_BATCH, SCHEDULE, N_DIMENSIONS };

struct combination {
    uint32_t value[N_DIMENSIONS]; /* 0 for what is free (SCHEDULE: see pinned) */
    bool pinned[N_DIMENSIONS];
};

static const struct planner_list *list_of(const struct planner_space *s, int dimension)
{
    const struct planner_list *const lists[N_DIMENSIONS] = {
        [TP] = &s->tp,
        [PP] = &s->pp,
        [VPP] = &s->vpp,
        [CP] = &s->cp,
        [EP] = &s->ep,
        [DP] = &s->dp,
        [ZERO] = &s->zero,
        [ZERO_GROUP] = &s->zero_group,
        [MICRO_BATCH] = &s->micro_batch,
        [SCHEDULE] = &s->schedule,
    };

    return lists[dimension];
}

/* The k-th combination; false past the last. */
static bool nth(const struct planner_space *s, uint64_t k, struct combination *c)
{
    for (int d = 0; d < N_DIMENSIONS; d++) {
        const struct planner_list *list = list_of(s, d);
        uint32_t n = list->n > 0 ? list->n : 1;

        c->pinned[d] = list->n > 0;
        c->value[d] = list->n > 0 ? list->value[k % n] : 0;
        k /= n;
    }
    return k == 0;
}

static uint32_t or_else(const struct combination *c, int dimension, uint32_t mild)
{
    return c->pinned[dimension] ? c->value[dimension] : mild;
}

/* Fills what is free. *certain: the number of replicas is not a guess. */
static void complete(const struct planner_request *r, const struct combination *c,
                     struct pt_layout *l, bool *certain)
{
    enum pt_schedule_kind kind = (enum pt_schedule_kind)c->value[SCHEDULE];
    bool scheduled = c->pinned[SCHEDULE] && kind != PT_SCHEDULE_NONE;
    uint32_t gpus = r->setup.cluster.gpus, rest;

    memset(l, 0, sizeof(*l));
    l->tp = or_else(c, TP, 1);
    l->cp = or_else(c, CP, 1);
    l->ep = or_else(c, EP, 1);
    l->zero = or_else(c, ZERO, 0);
    l->zero_group = or_else(c, ZERO_GROUP, 0);
    l->micro_batch = or_else(c, MICRO_BATCH, 1);
    l->pp = or_else(c, PP, c->pinned[VPP] && c->value[VPP] > 1 ? 2 : 1);
    l->vpp = or_else(c, VPP, 1);
    if (l->pp > 1 && !c->pinned[VPP] && scheduled &&
        (kind == PT_SCHEDULE_INTERLEAVED || pt_schedule_is_v(kind))) {
        l->vpp = 2;
        l->uneven_chunks = true; /* how many is the search's choice */
    }
    l->schedule = l->pp == 1   ? PT_SCHEDULE_NONE
                  : scheduled  ? kind
                  : l->vpp > 1 ? PT_SCHEDULE_INTERLEAVED
                               : PT_SCHEDULE_1F1B;
    l->sequence_parallel =
        r->space.sequence_parallel.n == 1 && r->space.sequence_parallel.value[0] == 1;
    l->replicate_kv = r->space.replicate_kv;
    rest = l->tp * l->cp;
    rest = rest > 0 && rest <= (1u << 20) / l->pp ? rest * l->pp : 1u << 20;
    l->dp = c->pinned[DP] ? c->value[DP] : gpus > 0 && rest <= gpus ? gpus / rest : 1;
    *certain =
        c->pinned[DP] || (c->pinned[TP] && c->pinned[PP] && c->pinned[CP] && gpus > 0);
}

/* The GPUs must be used up, unless idle ones are allowed. */
static enum pt_status check_use(const struct planner_request *r,
                                const struct combination *c, const struct pt_layout *l,
                                struct pt_error *err)
{
    uint64_t gpus = r->setup.cluster.gpus, rest = (uint64_t)l->tp * l->pp * l->cp;
    uint64_t used;

    if (gpus == 0 || r->space.idle_gpus || rest > gpus)
        return PT_OK;
    if (!c->pinned[DP] && gpus % rest != 0)
        return pt_fail(err, PT_USAGE, NULL, 0,
                       "%" PRIu64 " GPUs are not a multiple of TP%" PRIu32 " x PP%" PRIu32
                       " x CP%" PRIu32 " = %" PRIu64 "; %" PRIu64 " would leave %" PRIu64
                       " idle (--idle-gpus), %" PRIu64 " would be used whole",
                       gpus, l->tp, l->pp, l->cp, rest, gpus / rest * rest, gpus % rest,
                       (gpus / rest + 1) * rest);
    used = rest * l->dp;
    if (!c->pinned[DP] || used > gpus)
        return PT_OK; /* pt_layout_check has the sentence */
    /* tp, pp and cp that are free may still make up the difference. */
    if ((c->pinned[TP] && c->pinned[PP] && c->pinned[CP]) ? used == gpus
                                                          : gpus % used == 0)
        return PT_OK;
    return pt_fail(
        err, PT_USAGE, NULL, 0,
        "TP%" PRIu32 " x PP%" PRIu32 " x CP%" PRIu32 " x DP%" PRIu32 " uses %" PRIu64
        " of %" PRIu64 " GPUs; DP%" PRIu64 " uses %" PRIu64 ", or allow --idle-gpus",
        l->tp, l->pp, l->cp, l->dp, used, gpus, gpus / rest, gpus / rest * rest);
}

static enum pt_status check_one(const struct planner_request *r,
                                const struct combination *c, struct pt_error *err)
{
    const struct pt_setup *s = &r->setup;
    struct pt_job job = s->job;
    struct pt_layout l;
    enum pt_status st;
    bool certain;

    complete(r, c, &l, &certain);
    /* Without a certain number of replicas any batch may do: one that divides. */
    if (!certain) {
        uint64_t mild = (uint64_t)l.dp * l.micro_batch * l.pp;

        job.global_batch = mild > 268435456 ? 268435456 : (uint32_t)mild;
        if (mild > 268435456)
            return PT_OK;
    }
    if (c->pinned[EP] && !certain)
        l.ep = 1; /* the ranks of a stage are not known; experts alone, below */
    st = pt_layout_check(&s->model, &job, &l, s->cluster.gpus, err);
    if (st == PT_OK && c->pinned[EP] && c->value[EP] > 1) {
        l.ep = c->value[EP];
        if (!certain) {
            l.dp = l.ep;
            l.zero_group = 0;
            job.global_batch = l.dp * l.micro_batch * l.pp;
            st = pt_layout_check(&s->model, &job, &l, 0, err);
        }
    }
    return st == PT_OK ? check_use(r, c, &l, err) : st;
}

static enum pt_status check_combinations(const struct planner_request *r,
                                         struct pt_error *err)
{
    struct combination c;
    uint64_t k = 0;

    for (; k < MAX_COMBINATIONS; k++) {
        bool in_range = nth(&r->space, k, &c);

        if (!in_range)
            break;
        if (check_one(r, &c, NULL) == PT_OK)
            return PT_OK;
    }
    if (k == MAX_COMBINATIONS)
        return PT_OK;
    nth(&r->space, 0, &c);
    return check_one(r, &c, err);
}

/* --- warnings and remarks --- */

static bool only(const struct planner_list *list, uint32_t value)
{
    return list->n == 1 && list->value[0] == value;
}

static void warn_no_effect(struct planner_request *r)
{
    const struct planner_space *s = &r->space;
    uint32_t gpus = r->setup.cluster.gpus;
    bool one_rank = (only(&s->dp, 1) && only(&s->cp, 1)) || gpus == 1;

    if (s->tp.n == 1 && s->pp.n == 1 && s->cp.n <= 1 &&
        (s->cp.n == 0 || only(&s->cp, 1)) &&
        s->tp.value[0] * (uint64_t)s->pp.value[0] == gpus)
        one_rank = true;
    if (s->zero.n == 1 && s->zero.value[0] > 0 && one_rank)
        planner_note(&r->warnings,
                     "ZeRO-%" PRIu32 " has nothing to shard over with one "
                     "data-parallel rank: the same as ZeRO-0",
                     s->zero.value[0]);
    if (only(&s->sequence_parallel, 1) && (only(&s->tp, 1) || gpus == 1))
        planner_note(&r->warnings, "--sequence-parallel has no effect with TP 1");
    if (s->schedule.n > 0 && s->schedule.value[0] != PT_SCHEDULE_NONE && only(&s->pp, 1))
        planner_note(&r->warnings, "--schedule has no effect with PP 1");
}

/* "8/8/7/7", or with many stages only the two counts. */
static void stages_text(char *buf, size_t size, uint32_t layers, uint32_t pp)
{
    uint32_t base = layers / pp, more = layers % pp;
    size_t used = 0;

    if (pp > 12) {
        snprintf(buf, size,
                 "%" PRIu32 " stages of %" PRIu32 " and %" PRIu32 " of %" PRIu32, more,
                 base + 1, pp - more, base);
        return;
    }
    buf[0] = '\0';
    for (uint32_t s = 0; s < pp && used < size; s++)
        used += (size_t)snprintf(buf + used, size - used, "%s%" PRIu32, s > 0 ? "/" : "",
                                 base + (s < more ? 1 : 0));
}

static void divisors_text(char *buf, size_t size, uint32_t n)
{
    size_t used = 0;

    buf[0] = '\0';
    for (uint32_t d = 1; d <= n && used + 16 < size; d++)
        if (n % d == 0)
            used += (size_t)snprintf(buf + used, size - used, "%s%" PRIu32,
                                     used > 0 ? "," : "", d);
}

static void remark_uneven(struct planner_request *r)
{
    uint32_t layers = r->setup.model.layers, pp = r->space.pp.value[0];
    char stages[96], even[96];

    if (r->space.pp.n != 1 || pp < 2 || layers % pp == 0)
        return;
    stages_text(stages, sizeof(stages), layers, pp);
    divisors_text(even, sizeof(even), layers);
    planner_note(&r->assumed,
                 "%" PRIu32 " layers over PP %" PRIu32 " are uneven: %s is "
                 "+%.0f%% on the slowest stage; even depths: %s",
                 layers, pp, stages, 100 * ((double)(layers / pp + 1) * pp / layers - 1),
                 even);
    if ((layers + 2) % pp == 0)
        planner_note(&r->assumed,
                     "with embedding and head as a layer each, (%" PRIu32 "+2)/%" PRIu32
                     " = %" PRIu32 " is whole",
                     layers, pp, (layers + 2) / pp);
    if (r->stack->uneven != NULL)
        planner_note(&r->assumed, "uneven stages in %s need %s", r->stack->name,
                     r->stack->uneven);
}

/* Fewer micro-batches than stages: allowed, and mostly bubble. */
static void remark_bubble(struct planner_request *r)
{
    struct combination c;
    struct pt_layout l;
    uint32_t m;
    bool certain;

    nth(&r->space, 0, &c);
    complete(r, &c, &l, &certain);
    m = pt_micro_batches(&r->setup.job, &l);
    if (r->space.pp.n != 1 || !certain || m == 0 || m >= l.pp || l.pp < 2)
        return;
    planner_note(&r->assumed,
                 "%" PRIu32 " micro-batches in %" PRIu32 " stages: a bubble of "
                 "(%" PRIu32 "-1)/(%" PRIu32 "+%" PRIu32
                 "-1) = %.0f%% unless interleaved; "
                 "--global-batch, --micro-batch, --dp and --pp set it",
                 m, l.pp, l.pp, m, l.pp, 100.0 * (l.pp - 1) / (m + l.pp - 1));
}

static void remark_vocabulary(struct planner_request *r)
{
    uint32_t vocab = r->setup.model.vocab, unit = r->setup.job.vocab_unit, tp;
    uint64_t least, megatron, used;

    if (r->space.tp.n != 1)
        return;
    tp = r->space.tp.value[0];
    least = pt_vocab_padded(vocab, 1, tp);
    megatron = pt_vocab_padded(vocab, 128, tp);
    used = pt_vocab_padded(vocab, unit, tp);
    if (used == vocab)
        return;
    planner_note(
        &r->assumed,
        "vocabulary %" PRIu32 " padded to %" PRIu64 " for TP %" PRIu32 " (least %" PRIu64
        "; in units of 128 x TP %" PRIu64 ", +%.2f%%); checkpoints keep the true one",
        vocab, used, tp, least, megatron, 100.0 * ((double)megatron / vocab - 1));
}

enum pt_status planner_request_check(struct planner_request *r,
                                     const struct planner_given *g, struct pt_error *err)
{
    enum pt_status st = check_combinations(r, err);

    (void)g;
    if (st != PT_OK)
        return st;
    warn_no_effect(r);
    remark_uneven(r);
    remark_bubble(r);
    remark_vocabulary(r);
    return PT_OK;
}
