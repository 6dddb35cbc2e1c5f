/* The one predicate of validity. Each rule is a function that is silent and quick when
 * err is NULL, because the search asks a million times a second, and explains itself
 * otherwise. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>

#include "libpt/layout.h"
#include "libpt/units.h"

#define MAX_DEGREE (1u << 20)

struct check {
    const struct pt_model *model;
    const struct pt_job *job;
    const struct pt_layout *layout;
    uint32_t gpus;
    struct pt_error *err;
};

/* A short list in a sentence: "1, 2, 4". */
struct list {
    char text[192];
    size_t used;
};

static void list_add(struct list *list, uint64_t value)
{
    if (list->used + 32 < sizeof(list->text))
        list->used +=
            (size_t)snprintf(list->text + list->used, sizeof(list->text) - list->used,
                             "%s%" PRIu64, list->used > 0 ? ", " : "", value);
}

static const char *divisors(struct list *list, uint64_t n)
{
    *list = (struct list){ 0 };
    for (uint64_t d = 1; d <= n && d <= MAX_DEGREE; d++)
        if (n % d == 0)
            list_add(list, d);
    return list->text;
}

static enum pt_status check_ranges(const struct check *c)
{
    const struct pt_layout *l = c->layout;
    const struct {
        const char *name;
        uint32_t value, hi;
    } dims[] = {
        { "tp", l->tp, MAX_DEGREE },
        { "pp", l->pp, PT_MAX_PP },
        { "vpp", l->vpp, PT_MAX_VPP },
        { "cp", l->cp, MAX_DEGREE },
        { "ep", l->ep, MAX_DEGREE },
        { "dp", l->dp, MAX_DEGREE },
        { "micro-batch", l->micro_batch, MAX_DEGREE },
        { "sequence length", c->job->seq, 1u << 28 },
        { "global batch", c->job->global_batch, 1u << 28 },
    };

    for (size_t i = 0; i < sizeof(dims) / sizeof(dims[0]); i++)
        if (dims[i].value < 1 || dims[i].value > dims[i].hi)
            return pt_fail(c->err, PT_USAGE, NULL, 0,
                           "%s is %" PRIu32 "; between 1 and %" PRIu32 " is possible",
                           dims[i].name, dims[i].value, dims[i].hi);
    if (l->zero > 3)
        return pt_fail(c->err, PT_USAGE, NULL, 0,
                       "ZeRO %" PRIu32 " does not exist; valid: 0, 1, 2, 3", l->zero);
    if ((unsigned)l->schedule >= PT_N_SCHEDULES ||
        (unsigned)l->recompute >= PT_N_RECOMPUTES)
        return pt_fail(c->err, PT_USAGE, NULL, 0,
                       "unknown schedule or recomputation mode");
    return PT_OK;
}

static enum pt_status check_world(const struct check *c)
{
    const struct pt_layout *l = c->layout;
    uint64_t tp_pp = (uint64_t)l->tp * l->pp, tp_pp_cp = tp_pp * l->cp, world;
    uint64_t pp;

    if (!pt_mul_u64(tp_pp_cp, l->dp, &world) || world > MAX_DEGREE)
        return pt_fail(c->err, PT_USAGE, NULL, 0,
                       "TP%" PRIu32 " x PP%" PRIu32 " x CP%" PRIu32 " x DP%" PRIu32
                       " needs more than %u GPUs; at most that "
                       "many are supported",
                       l->tp, l->pp, l->cp, l->dp, MAX_DEGREE);
    if (c->gpus == 0 || world <= c->gpus)
        return PT_OK;
    if (c->err == NULL)
        return PT_USAGE;
    /* The nearest that fits: fewer replicas, else a shorter pipeline, else less of tp. */
    if (tp_pp_cp <= c->gpus)
        return pt_fail(c->err, PT_USAGE, NULL, 0,
                       "TP%" PRIu32 " x PP%" PRIu32 " x CP%" PRIu32 " x DP%" PRIu32
                       " needs %" PRIu64 " GPUs, there are %" PRIu32 "; DP%" PRIu64
                       " fits",
                       l->tp, l->pp, l->cp, l->dp, world, c->gpus, c->gpus / tp_pp_cp);
    pp = c->gpus / ((uint64_t)l->tp * l->cp);
    while (pp > 1 && c->gpus % ((uint64_t)l->tp * l->cp * pp) != 0)
        pp--;
    if (pp >= 1)
        return pt_fail(c->err, PT_USAGE, NULL, 0,
                       "TP%" PRIu32 " x PP%" PRIu32 " x CP%" PRIu32 " needs %" PRIu64
                       " GPUs, there are %" PRIu32 "; TP%" PRIu32 " x PP%" PRIu64
                       " x CP%" PRIu32 " fits",
                       l->tp, l->pp, l->cp, tp_pp_cp, c->gpus, l->tp, pp, l->cp);
    return pt_fail(c->err, PT_USAGE, NULL, 0,
                   "TP%" PRIu32 " x PP%" PRIu32 " x CP%" PRIu32 " needs %" PRIu64
                   " GPUs, there are %" PRIu32 "; TP x CP must be at "
                   "most %" PRIu32,
                   l->tp, l->pp, l->cp, tp_pp_cp, c->gpus, c->gpus);
}

/* The extra bytes of key and value weights when each is held by tp / kv_heads ranks:
 * weights, gradients and states of all layers. */
static double replicated_bytes(const struct check *c)
{
    const struct pt_model *m = c->model;
    const struct pt_dtypes *d = &c->job->dtypes;
    double params = 2.0 * m->hidden * m->kv_heads * m->head_dim * m->layers;

    return params * ((double)c->layout->tp / m->kv_heads - 1) *
           (d->weight + d->grad + d->master + d->moments);
}

/* Whether key-value heads and feed-forward sizes allow this degree. */
static bool others_fit(const struct check *c, uint32_t tp)
{
    const struct pt_model *m = c->model;
    uint32_t kv = m->kv_heads;
    bool dense = pt_model_layers(m, PT_LAYER_DENSE) > 0;

    if (m->kv_lora == 0 && kv % tp != 0 && !(c->layout->replicate_kv && tp % kv == 0))
        return false;
    return (!dense || m->ffn % tp == 0) && (m->experts == 0 || m->shared_ffn % tp == 0);
}

/* The degrees that heads and all else allow; returns the largest up to `most`. */
static uint32_t list_tp(const struct check *c, uint32_t most, struct list *list)
{
    uint32_t best = 1;

    *list = (struct list){ 0 };
    for (uint32_t d = 1; d <= c->model->heads; d++) {
        if (c->model->heads % d != 0 || !others_fit(c, d))
            continue;
        list_add(list, d);
        best = d <= most ? d : best;
    }
    return best;
}

static enum pt_status check_heads(const struct check *c)
{
    const struct pt_model *m = c->model;
    uint32_t tp = c->layout->tp, kv = m->kv_heads;
    struct list list, but = { 0 };

    if (m->heads % tp != 0) {
        if (c->err == NULL)
            return PT_USAGE;
        for (uint32_t d = 1; d <= m->heads; d++)
            if (m->heads % d == 0 && !others_fit(c, d))
                list_add(&but, d);
        return pt_fail(c->err, PT_USAGE, NULL, 0,
                       "TP %" PRIu32 " does not divide %" PRIu32
                       " heads; valid TP: %s%s%s%s",
                       tp, m->heads, divisors(&list, m->heads),
                       but.used > 0 ? " (but kv heads or feed-forward size refuse " : "",
                       but.text, but.used > 0 ? ")" : "");
    }
    if (m->kv_lora > 0 || kv % tp == 0)
        return PT_OK;
    if (tp > kv && tp % kv == 0) {
        if (c->layout->replicate_kv)
            return PT_OK;
        if (c->err == NULL)
            return PT_USAGE;
        return pt_fail(c->err, PT_USAGE, NULL, 0,
                       "TP %" PRIu32 " exceeds %" PRIu32 " kv heads; use TP %" PRIu32
                       ", or --replicate-kv at a cost of %.1f GB over the group",
                       tp, kv, list_tp(c, kv, &list), replicated_bytes(c) / PT_GB);
    }
    if (c->err == NULL)
        return PT_USAGE;
    list_tp(c, m->heads, &list);
    return pt_fail(c->err, PT_USAGE, NULL, 0,
                   "TP %" PRIu32 " does not divide %" PRIu32 " kv heads; valid TP: %s",
                   tp, kv, list.text);
}

static enum pt_status check_ffn(const struct check *c)
{
    const struct pt_model *m = c->model;
    uint32_t tp = c->layout->tp;
    bool dense = pt_model_layers(m, PT_LAYER_DENSE) > 0 && m->ffn % tp != 0;
    bool shared = m->experts > 0 && m->shared_ffn % tp != 0;
    struct list list;

    if (!dense && !shared)
        return PT_OK;
    if (c->err == NULL)
        return PT_USAGE;
    list_tp(c, m->heads, &list);
    return pt_fail(c->err, PT_USAGE, NULL, 0,
                   "TP %" PRIu32 " does not divide the %s size %" PRIu32 "; valid TP: %s",
                   tp, dense ? "feed-forward" : "shared expert's feed-forward",
                   dense ? m->ffn : m->shared_ffn, list.text);
}

/* Causal attention is balanced by giving every rank one early and one late piece: 2 cp
 * pieces (Llama 3, arXiv 2407.21783, section 3.3.2). Sequence parallelism cuts the rest
 * by tp. */
static enum pt_status check_sequence(const struct check *c)
{
    const struct pt_layout *l = c->layout;
    uint64_t unit = l->cp > 1 ? 2 * (uint64_t)l->cp : 1, seq = c->job->seq;
    const char *why = "2 x CP";

    if (l->sequence_parallel && l->tp > 1) {
        /* The seq / cp rows of a rank are cut by tp: the least common multiple of both.
         */
        uint64_t rows = (uint64_t)l->cp * l->tp;

        unit = rows % unit == 0 ? rows : 2 * rows;
        why = l->cp > 1 ? "2 x CP and of CP x TP (sequence parallel)"
                        : "TP (sequence parallel)";
    }
    if (seq % unit == 0)
        return PT_OK;
    if (c->err == NULL)
        return PT_USAGE;
    if (seq < unit)
        return pt_fail(c->err, PT_USAGE, NULL, 0,
                       "sequence length %" PRIu64 " must be a "
                       "multiple of %" PRIu64 ", %s; nearest: %" PRIu64,
                       seq, unit, why, unit);
    return pt_fail(c->err, PT_USAGE, NULL, 0,
                   "sequence length %" PRIu64 " must be a "
                   "multiple of %" PRIu64 ", %s; nearest: %" PRIu64 " or %" PRIu64,
                   seq, unit, why, seq / unit * unit, (seq / unit + 1) * unit);
}

/* Context parallelism merges blocks of attention by their running maxima and sums (ring
 * attention, arXiv 2310.01889; Llama 3 gathers keys and values for the same kernel): an
 * eager core, which materialises the scores of the whole sequence, has nothing to merge.
 */
static enum pt_status check_context(const struct check *c)
{
    if (c->layout->cp == 1 || c->job->attention == PT_ATTENTION_FLASH)
        return PT_OK;
    return pt_fail(c->err, PT_USAGE, NULL, 0,
                   "CP %" PRIu32 " needs flash attention: an eager core computes the "
                   "scores of a whole sequence on one GPU; use CP 1, or flash attention",
                   c->layout->cp);
}

/* ", or DP 8, 12, 24": replica counts near this one that divide the batch, else
 * micro-batches that do, else nothing. */
static const char *batch_offers(const struct check *c, struct list *list)
{
    const struct pt_layout *l = c->layout;
    uint64_t gbs = c->job->global_batch, low = l->dp > 1 ? l->dp / 2 : 1;

    *list = (struct list){ 0 };
    if (gbs % l->micro_batch == 0) {
        while (low > 1 && gbs % (low * l->micro_batch) != 0)
            low--;
        for (uint64_t d = low; d <= 2 * (uint64_t)l->dp; d++)
            if (gbs % (d * l->micro_batch) == 0)
                list_add(list, d);
        return ", or DP ";
    }
    for (uint64_t b = 1; b < l->micro_batch; b++)
        if (gbs % (b * l->dp) == 0)
            list_add(list, b);
    return list->used > 0 ? ", or micro-batch " : "";
}

static enum pt_status check_batch(const struct check *c)
{
    const struct pt_layout *l = c->layout;
    uint64_t gbs = c->job->global_batch, per = (uint64_t)l->dp * l->micro_batch;
    struct list list;
    const char *or_what;

    if (gbs % per == 0)
        return PT_OK;
    if (c->err == NULL)
        return PT_USAGE;
    or_what = batch_offers(c, &list);
    if (gbs < per)
        return pt_fail(c->err, PT_USAGE, NULL, 0,
                       "global batch %" PRIu64 " is less than micro-batch %" PRIu32
                       " x DP %" PRIu32 " = %" PRIu64 "; nearest global batch: %" PRIu64
                       "%s%s",
                       gbs, l->micro_batch, l->dp, per, per, or_what, list.text);
    return pt_fail(c->err, PT_USAGE, NULL, 0,
                   "global batch %" PRIu64 " mod (micro-batch %" PRIu32 " x DP %" PRIu32
                   ") = %" PRIu64 "; nearest global batch: %" PRIu64 " or %" PRIu64
                   "%s%s",
                   gbs, l->micro_batch, l->dp, gbs % per, gbs / per * per,
                   (gbs / per + 1) * per, or_what, list.text);
}

/* Chunks per stage that cut the layers evenly; with embedding and head as a layer each
 * too. */
static enum pt_status check_chunks(const struct check *c)
{
    const struct pt_layout *l = c->layout;
    uint32_t layers = c->model->layers, pieces = l->pp * l->vpp;
    struct list list = { 0 };

    if (l->uneven_chunks || layers % pieces == 0 || (layers + 2) % pieces == 0)
        return PT_OK;
    if (c->err == NULL)
        return PT_USAGE;
    for (uint32_t v = 1; v <= PT_MAX_VPP && v * l->pp <= layers + 2; v++)
        if (layers % (l->pp * v) == 0 || (layers + 2) % (l->pp * v) == 0)
            list_add(&list, v);
    if (list.used == 0)
        list_add(&list, 1);
    return pt_fail(c->err, PT_USAGE, NULL, 0,
                   "%" PRIu32 " layers / (PP%" PRIu32 " x VP%" PRIu32
                   ") is not whole; valid VP: %s",
                   layers, l->pp, l->vpp, list.text);
}

static enum pt_status check_interleaving(const struct check *c)
{
    const struct pt_layout *l = c->layout;
    uint64_t m = pt_micro_batches(c->job, l), per = (uint64_t)l->dp * l->micro_batch;
    uint64_t low = m / l->pp * l->pp, high = low + l->pp;
    enum pt_status st = check_chunks(c);

    if (st != PT_OK || m % l->pp == 0)
        return st;
    if (c->err == NULL)
        return PT_USAGE;
    if (low == 0)
        return pt_fail(c->err, PT_USAGE, NULL, 0,
                       "interleaving needs micro-batches in "
                       "multiples of PP%" PRIu32 ", there are %" PRIu64
                       "; nearest: %" PRIu64 " (global batch %" PRIu64 "), or VP 1",
                       l->pp, m, high, high * per);
    return pt_fail(c->err, PT_USAGE, NULL, 0,
                   "interleaving needs micro-batches in "
                   "multiples of PP%" PRIu32 ", there are %" PRIu64 "; nearest: %" PRIu64
                   " or %" PRIu64 " (global batch %" PRIu64 " or %" PRIu64 "), or VP 1",
                   l->pp, m, low, high, low * per, high * per);
}

static enum pt_status check_pipeline(const struct check *c)
{
    const struct pt_layout *l = c->layout;
    uint32_t layers = c->model->layers, pieces = l->pp * l->vpp;
    const char *name = pt_schedule_name(l->schedule);

    if (l->pp == 1) {
        if (l->vpp > 1)
            return pt_fail(c->err, PT_USAGE, NULL, 0,
                           "VP %" PRIu32
                           " needs a pipeline; with PP 1 only VP 1 is possible",
                           l->vpp);
        if (l->schedule != PT_SCHEDULE_NONE)
            return pt_fail(c->err, PT_USAGE, NULL, 0,
                           "schedule %s needs PP of at least 2; PP is 1", name);
        return PT_OK;
    }
    if (l->schedule == PT_SCHEDULE_NONE)
        return pt_fail(
            c->err, PT_USAGE, NULL, 0,
            "PP %" PRIu32
            " needs a schedule; valid: gpipe, 1f1b, interleaved, zb-h1, zb-h2, "
            "zb-v, v-half, v-min, zb-auto",
            l->pp);
    if (pieces > layers + 2)
        return pt_fail(c->err, PT_USAGE, NULL, 0,
                       "PP%" PRIu32 " x VP%" PRIu32 " = %" PRIu32 " pieces of %" PRIu32
                       " layers; at most %" PRIu32
                       " (the layers, the embedding and the head)",
                       l->pp, l->vpp, pieces, layers, layers + 2);
    if (l->schedule == PT_SCHEDULE_INTERLEAVED) {
        if (l->vpp < 2)
            return pt_fail(c->err, PT_USAGE, NULL, 0,
                           "schedule interleaved needs VP of at least 2; VP is 1");
        return check_interleaving(c);
    }
    if (pt_schedule_is_v(l->schedule) ? l->vpp != 2 : l->vpp != 1)
        return pt_fail(c->err, PT_USAGE, NULL, 0, "schedule %s has VP %d; VP is %" PRIu32,
                       name, pt_schedule_is_v(l->schedule) ? 2 : 1, l->vpp);
    return PT_OK;
}

static enum pt_status check_experts(const struct check *c)
{
    const struct pt_layout *l = c->layout;
    uint32_t experts = c->model->experts;
    uint64_t domain = (uint64_t)l->dp * l->cp * l->tp;
    struct list list = { 0 };

    if (l->ep == 1)
        return PT_OK;
    if (experts == 0)
        return pt_fail(c->err, PT_USAGE, NULL, 0,
                       "EP %" PRIu32 " but the model has no "
                       "experts; only EP 1 is possible",
                       l->ep);
    if (experts % l->ep != 0)
        return c->err == NULL ? PT_USAGE
                              : pt_fail(c->err, PT_USAGE, NULL, 0,
                                        "EP %" PRIu32 " does not divide %" PRIu32
                                        " experts; valid EP: %s",
                                        l->ep, experts, divisors(&list, experts));
    if (domain % l->ep == 0)
        return PT_OK;
    if (c->err == NULL)
        return PT_USAGE;
    for (uint32_t d = 1; d <= experts; d++)
        if (experts % d == 0 && domain % d == 0)
            list_add(&list, d);
    return pt_fail(c->err, PT_USAGE, NULL, 0,
                   "EP %" PRIu32 " must divide the DP%" PRIu32 " x CP%" PRIu32
                   " x TP%" PRIu32 " = %" PRIu64 " ranks of a stage; valid "
                   "EP: %s",
                   l->ep, l->dp, l->cp, l->tp, domain, list.text);
}

static enum pt_status check_zero(const struct check *c)
{
    const struct pt_layout *l = c->layout;
    uint32_t ranks = l->dp * l->cp;
    struct list list;

    if (l->zero_group == 0 || ranks % l->zero_group == 0)
        return PT_OK;
    return c->err == NULL
               ? PT_USAGE
               : pt_fail(c->err, PT_USAGE, NULL, 0,
                         "ZeRO group of %" PRIu32 " ranks does not divide DP%" PRIu32
                         " x CP%" PRIu32 " = %" PRIu32 "; valid: %s",
                         l->zero_group, l->dp, l->cp, ranks, divisors(&list, ranks));
}

enum pt_status pt_layout_check(const struct pt_model *model, const struct pt_job *job,
                               const struct pt_layout *layout, uint32_t gpus,
                               struct pt_error *err)
{
    static enum pt_status (*const rules[])(const struct check *) = {
        check_ranges, check_heads,   check_ffn,      check_world,    check_batch,
        check_zero,   check_context, check_sequence, check_pipeline, check_experts,
    };
    const struct check c = { model, job, layout, gpus, err };

    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        enum pt_status st = rules[i](&c);

        if (st != PT_OK)
            return st;
    }
    return PT_OK;
}
