#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "planner/enumerate.h"

/* Values of one dimension, ascending. */
struct values {
    uint32_t n, *v;
    bool listed; /* by the user */
};

struct walk {
    const struct pt_setup *setup;
    const struct planner_space *space;
    const struct planner_visitor *visitor;
    struct planner_counts *counts;
    struct values tp, pp, vpp, cp, ep, dp, zero, zero_group, micro_batch, sp, recompute,
        schedule;
    /* Layer prices with [1] and without [0] accumulation over micro-batches. */
    struct planner_group group[2];
    bool priced[2];
    bool stop;
    struct pt_layout nearest; /* the invalid layout that came furthest, and how far */
    int reached;
    uint64_t valid;
};

static int by_value(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

static bool add(struct values *values, uint32_t value)
{
    uint32_t *v;

    if (values->n % 64 == 0) {
        v = realloc(values->v, (values->n + 64) * sizeof(*v));
        if (v == NULL)
            return false;
        values->v = v;
    }
    values->v[values->n++] = value;
    return true;
}

/* The list, sorted and without repetitions. */
static bool from_list(struct values *values, const struct planner_list *list)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < list->n; i++)
        if (!add(values, list->value[i]))
            return false;
    values->listed = list->n > 0;
    if (values->n == 0)
        return true;
    qsort(values->v, values->n, sizeof(*values->v), by_value);
    for (uint32_t i = 0; i < values->n; i++)
        if (kept == 0 || values->v[kept - 1] != values->v[i])
            values->v[kept++] = values->v[i];
    values->n = kept;
    return true;
}

/* Divisors of n up to most, of `also` too when that is not 0. */
static bool divisors(struct values *values, uint64_t n, uint64_t most, uint64_t also)
{
    for (uint64_t d = 1; d <= n && d <= most; d++)
        if (n % d == 0 && (also == 0 || also % d == 0) && !add(values, (uint32_t)d))
            return false;
    return true;
}

/* What each dimension may be when the user names nothing. */
static bool free_values(struct walk *w)
{
    const struct pt_model *m = &w->setup->model;
    const struct planner_space *s = w->space;
    uint32_t gpus = w->setup->cluster.gpus, seq = w->setup->job.seq;
    bool ok = true, idle = s->idle_gpus;
    uint32_t most_pp = m->layers + 2 < PT_MAX_PP ? m->layers + 2 : PT_MAX_PP;

    if (most_pp > gpus)
        most_pp = gpus;
    if (!w->tp.listed)
        ok = ok && divisors(&w->tp, m->heads, gpus, idle ? 0 : gpus);
    if (!w->cp.listed) {
        ok = ok && add(&w->cp, 1);
        for (uint32_t d = 2; d <= gpus && d <= seq / 2; d++)
            if (seq % (2 * (uint64_t)d) == 0 && (idle || gpus % d == 0))
                ok = ok && add(&w->cp, d);
    }
    if (!w->pp.listed) {
        if (idle)
            for (uint32_t d = 1; d <= most_pp; d++)
                ok = ok && add(&w->pp, d);
        else
            ok = ok && divisors(&w->pp, gpus, most_pp, 0);
    }
    if (!w->ep.listed)
        ok = ok && divisors(&w->ep, m->experts > 0 ? m->experts : 1, gpus, 0);
    if (!w->micro_batch.listed)
        ok = ok && divisors(&w->micro_batch, w->setup->job.global_batch, UINT32_MAX, 0);
    if (!w->dp.listed && idle)
        ok = ok && divisors(&w->dp, w->setup->job.global_batch, gpus, 0);
    for (uint32_t i = 0; !w->zero.listed && i < 4; i++)
        ok = ok && add(&w->zero, i);
    if (!w->zero_group.listed)
        ok = ok && add(&w->zero_group, 0);
    for (uint32_t i = 0; !w->sp.listed && i < 2; i++)
        ok = ok && add(&w->sp, i);
    /* FULL is "r of n layers", none of them included. */
    if (!w->recompute.listed)
        ok = ok && add(&w->recompute, PT_RECOMPUTE_SELECTIVE) &&
             add(&w->recompute, PT_RECOMPUTE_FULL);
    if (!w->schedule.listed) {
        static const uint32_t kinds[] = { PT_SCHEDULE_1F1B,  PT_SCHEDULE_INTERLEAVED,
                                          PT_SCHEDULE_ZB_H1, PT_SCHEDULE_ZB_H2,
                                          PT_SCHEDULE_ZB_V,  PT_SCHEDULE_V_HALF,
                                          PT_SCHEDULE_V_MIN };

        for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
            ok = ok && add(&w->schedule, kinds[i]);
    }
    if (!w->vpp.listed)
        for (uint32_t v = 1; v <= PT_MAX_VPP && v <= m->layers + 2; v++)
            ok = ok && add(&w->vpp, v);
    return ok;
}

static void remember(struct walk *w, const struct pt_layout *layout, int reached)
{
    w->counts->seen++;
    w->counts->invalid++;
    if (reached > w->reached) {
        w->reached = reached;
        w->nearest = *layout;
    }
}

static bool valid(struct walk *w, const struct pt_layout *layout, int reached)
{
    if (pt_layout_check(&w->setup->model, &w->setup->job, layout, 0, NULL) == PT_OK)
        return true;
    remember(w, layout, reached);
    return false;
}

static double seconds(const struct pt_time *t)
{
    return t->forward_s + t->forward_comm_s + t->input_s + t->input_comm_s + t->weight_s;
}

/* Prices layers without replicas, pipeline or ZeRO: what those add is left out of the
 * bound. */
static void price(struct walk *w, struct planner_group *g, const struct pt_layout *layout,
                  bool accumulates)
{
    const struct pt_model *model = &w->setup->model;
    struct pt_layout alone = *layout;
    const struct pt_time *e, *h;

    alone.pp = alone.vpp = 1;
    alone.zero = 0;
    alone.recompute = PT_RECOMPUTE_NONE;
    alone.schedule = PT_SCHEDULE_NONE;
    /* Enough replicas to have one micro-batch, or few enough to have several. */
    alone.dp = accumulates ? 1 : w->setup->job.global_batch / layout->micro_batch;
    *g = (struct planner_group){ 0 };
    pt_costs_init(w->setup, &alone, &g->costs);
    e = &g->costs.embedding;
    h = &g->costs.head;
    g->embedding_s = seconds(e);
    g->head_s = seconds(h);
    g->forward_s = e->forward_s + e->forward_comm_s + h->forward_s + h->forward_comm_s;
    g->input_s = e->input_s + e->input_comm_s + h->input_s + h->input_comm_s;
    g->weight_s = e->weight_s + h->weight_s;
    g->layer_s = HUGE_VAL;
    for (int k = 0; k < PT_N_LAYER_KINDS; k++) {
        const struct pt_time *t = &g->costs.layer[k];
        double n = pt_model_layers(model, (enum pt_layer_kind)k);

        if (n == 0.0)
            continue;
        g->layers += (uint32_t)n;
        g->forward_s += n * (t->forward_s + t->forward_comm_s);
        g->input_s += n * (t->input_s + t->input_comm_s);
        g->weight_s += n * t->weight_s;
        g->layer_s = fmin(g->layer_s, seconds(t));
    }
}

/* Whole layers that fit `ends` seconds short of `slowest`. */
static double whole(double slowest, double ends, double layer_s)
{
    return slowest < ends ? 0.0 : floor((slowest - ends) / layer_s * (1.0 + 1e-9));
}

/* The smallest slowest stage when layers are whole: pp - 2 (or pp - 1) stages without
 * ends and the ends' own; the time is that of some stage, so one of few values. */
static double whole_layers_s(const struct planner_group *g, const struct pt_layout *l)
{
    bool v = pt_schedule_is_v(l->schedule);
    double a = g->layer_s, n = g->layers, middle = l->pp - (v ? 1.0 : 2.0);
    double first = v ? g->embedding_s + g->head_s : g->embedding_s;
    double last = v ? HUGE_VAL : g->head_s, best, j;

    for (j = floor(n / l->pp);; j++)
        if (middle * j + whole(j * a, first, a) + whole(j * a, last, a) >= n)
            break;
    best = j * a;
    if (j < 1.0)
        return best;
    /* One layer less on the stages between, and an end as the slowest. */
    for (int end = 0; end < (v ? 1 : 2); end++) {
        double ends = end == 0 ? first : last;
        double t = ends + a * ceil(((j - 1.0) * a - ends) / a * (1.0 - 1e-9));

        if (t >= (j - 1.0) * a && t < best &&
            middle * (j - 1.0) + whole(t, first, a) + whole(t, last, a) >= n)
            best = t;
    }
    return fmin(best, j * a);
}

double planner_group_bound(const struct planner_group *g, const struct pt_layout *l)
{
    const struct pt_form *form = &g->form;
    double slowest = (g->forward_s + g->input_s + g->weight_s) / l->pp, pipeline = 0.0;
    double widest = (g->forward_s + g->input_s) / l->pp;

    if (l->pp > 1)
        slowest = fmax(slowest, whole_layers_s(g, l));
    slowest += form->overhead_s;
    for (unsigned j = 0; j < form->n_pipeline; j++) {
        const struct pt_pipeline_row *r = &form->pipeline[j];

        pipeline = fmax(pipeline, r->constant_s + r->slowest * slowest +
                                      r->widest * widest + r->forward * g->forward_s +
                                      r->input * g->input_s + r->weight * g->weight_s);
    }
    return (pipeline + form->fixed_s) * (1.0 - 1e-9);
}

static void offer(struct walk *w, struct planner_group *g, const struct pt_layout *layout)
{
    pt_form_init(layout, &g->costs, &g->form);
    w->counts->seen++;
    w->valid++;
    if (!w->visitor->candidate(w->visitor->ctx, layout, planner_group_bound(g, layout)))
        w->stop = true;
}

/* Whether a schedule and a number of chunks go together, before the price of asking. */
static bool plausible(const struct walk *w, const struct pt_layout *l)
{
    if (w->vpp.listed && w->schedule.listed)
        return true;
    if (l->schedule == PT_SCHEDULE_INTERLEAVED)
        return l->vpp > 1;
    if (pt_schedule_is_v(l->schedule))
        return l->vpp == 2;
    return l->vpp == 1;
}

static void schedules(struct walk *w, struct planner_group *g, struct pt_layout l)
{
    if (l.pp == 1) {
        l.schedule = PT_SCHEDULE_NONE;
        for (uint32_t i = 0; i < w->vpp.n && !w->stop; i++) {
            l.vpp = w->vpp.v[i];
            if (w->vpp.listed ? valid(w, &l, 6) : l.vpp == 1)
                offer(w, g, &l);
        }
        return;
    }
    for (uint32_t i = 0; i < w->schedule.n; i++) {
        l.schedule = (enum pt_schedule_kind)w->schedule.v[i];
        if (l.schedule == PT_SCHEDULE_NONE && w->schedule.n > 1)
            continue;
        for (uint32_t j = 0; j < w->vpp.n && !w->stop; j++) {
            l.vpp = w->vpp.v[j];
            if (!plausible(w, &l))
                continue;
            if (l.vpp * l.pp > w->setup->model.layers + 2 && !w->vpp.listed)
                break;
            if (valid(w, &l, 6))
                offer(w, g, &l);
        }
    }
}

/* Whether NONE is offered as part of FULL ("r of n layers"). */
static bool covered(const struct walk *w, uint32_t i)
{
    if (w->recompute.v[i] != PT_RECOMPUTE_NONE)
        return false;
    for (uint32_t j = 0; j < w->recompute.n; j++)
        if (w->recompute.v[j] == PT_RECOMPUTE_FULL)
            return true;
    return false;
}

static bool sharding_conflicts(const struct planner_space *s, const struct pt_layout *l)
{
    return l->pp > 1 && s->zero_max_with_pp > 0 && l->zero > s->zero_max_with_pp;
}

static bool may_fit(struct walk *w, const struct pt_layout *l)
{
    if (w->visitor->may_fit(w->visitor->ctx, l))
        return true;
    w->counts->seen++;
    w->counts->no_memory++;
    w->valid++;
    return false;
}

static void sharding(struct walk *w, struct planner_group *g, struct pt_layout l)
{
    bool alone = pt_grad_group(&l, false) == 1 &&
                 (w->setup->model.experts == 0 || pt_grad_group(&l, true) == 1);
    enum pt_recompute cheapest = (enum pt_recompute)w->recompute.v[w->recompute.n - 1];

    for (uint32_t i = 0; i < w->zero.n; i++)
        for (uint32_t j = 0; j < w->zero_group.n; j++) {
            l.zero = w->zero.v[i];
            l.zero_group = w->zero_group.v[j];
            if ((alone && !w->zero.listed && l.zero > 0) || (l.zero == 0 && j > 0))
                continue;
            l.recompute = cheapest;
            if (sharding_conflicts(w->space, &l)) {
                remember(w, &l, 5);
                continue;
            }
            if (!valid(w, &l, 5))
                continue;
            /* Full recomputation is the leanest, other modes are asked one by one. */
            if (cheapest == PT_RECOMPUTE_FULL && !may_fit(w, &l))
                continue;
            for (uint32_t k = 0; k < w->recompute.n && !w->stop; k++) {
                l.recompute = (enum pt_recompute)w->recompute.v[k];
                if (covered(w, k) || (cheapest != PT_RECOMPUTE_FULL && !may_fit(w, &l)))
                    continue;
                schedules(w, g, l);
            }
        }
}

static void replicas(struct walk *w, struct pt_layout l)
{
    uint32_t m;

    if (!valid(w, &l, 4))
        return;
    m = pt_micro_batches(&w->setup->job, &l);
    struct planner_group *g = &w->group[m > 1];

    if (!w->priced[m > 1]) {
        price(w, g, &l, m > 1);
        w->priced[m > 1] = true;
    }
    g->costs.micro_batches = m;
    sharding(w, g, l);
}

static void pipelines(struct walk *w, struct pt_layout l)
{
    uint32_t gpus = w->setup->cluster.gpus;

    w->priced[0] = w->priced[1] = false;
    for (uint32_t i = 0; i < w->pp.n && !w->stop; i++) {
        uint64_t ranks = (uint64_t)l.tp * l.cp * w->pp.v[i];

        l.pp = w->pp.v[i];
        l.schedule = l.pp > 1 ? PT_SCHEDULE_1F1B : PT_SCHEDULE_NONE;
        l.dp = 1;
        if (ranks > gpus ||
            (gpus % ranks != 0 && !w->space->idle_gpus && !w->dp.listed)) {
            if (w->pp.listed || ranks <= gpus)
                remember(w, &l, ranks > gpus ? 1 : 2);
            continue;
        }
        if (!w->dp.listed && !w->space->idle_gpus) {
            l.dp = (uint32_t)(gpus / ranks);
            replicas(w, l);
            continue;
        }
        for (uint32_t j = 0; j < w->dp.n && !w->stop; j++) {
            uint64_t world = ranks * w->dp.v[j];

            l.dp = w->dp.v[j];
            if (world > gpus || (world != gpus && !w->space->idle_gpus)) {
                if (w->dp.listed)
                    remember(w, &l, 2);
                continue;
            }
            replicas(w, l);
        }
    }
}

/* Everything that decides what a layer costs. */
static void layers(struct walk *w)
{
    struct pt_layout l = {
        .pp = 1, .vpp = 1, .dp = 1, .replicate_kv = w->space->replicate_kv
    };

    for (uint32_t i = 0; i < w->tp.n; i++)
        for (uint32_t j = 0; j < w->cp.n; j++)
            for (uint32_t k = 0; k < w->sp.n; k++)
                for (uint32_t b = 0; b < w->micro_batch.n; b++) {
                    l.tp = w->tp.v[i];
                    l.cp = w->cp.v[j];
                    l.sequence_parallel = w->sp.v[k] != 0;
                    l.micro_batch = w->micro_batch.v[b];
                    l.ep = 1;
                    if (l.sequence_parallel && l.tp == 1 && w->sp.n > 1)
                        continue;
                    if ((uint64_t)l.tp * l.cp > w->setup->cluster.gpus && !w->tp.listed &&
                        !w->cp.listed)
                        continue;
                    if (!valid(w, &l, 3))
                        continue;
                    for (uint32_t e = 0; e < w->ep.n && !w->stop; e++) {
                        l.ep = w->ep.v[e];
                        pipelines(w, l);
                    }
                }
}

/* The sentence for a space without a valid layout. */
static enum pt_status explain(const struct walk *w, struct pt_error *err)
{
    const struct pt_layout *l = &w->nearest;
    uint32_t gpus = w->setup->cluster.gpus;
    uint64_t ranks = (uint64_t)l->tp * l->pp * l->cp, world = ranks * l->dp;
    enum pt_status st;

    st = pt_layout_check(&w->setup->model, &w->setup->job, l, gpus, err);
    if (st != PT_OK)
        return st;
    if (gpus % ranks != 0)
        return pt_fail(err, PT_USAGE, NULL, 0,
                       "%" PRIu32 " GPUs are not a multiple of TP%" PRIu32 " x PP%" PRIu32
                       " x CP%" PRIu32 " = %" PRIu64 "; %" PRIu64 " would leave %" PRIu64
                       " idle (--idle-gpus), %" PRIu64 " needed",
                       gpus, l->tp, l->pp, l->cp, ranks, gpus / ranks * ranks,
                       gpus % ranks, (gpus / ranks + 1) * ranks);
    if (world != gpus)
        return pt_fail(err, PT_USAGE, NULL, 0,
                       "TP%" PRIu32 " x PP%" PRIu32 " x CP%" PRIu32 " x DP%" PRIu32
                       " uses %" PRIu64 " of %" PRIu32 " GPUs; DP%" PRIu64
                       " uses all, or --idle-gpus",
                       l->tp, l->pp, l->cp, l->dp, world, gpus, gpus / ranks);
    if (sharding_conflicts(w->space, l))
        return pt_fail(
            err, PT_USAGE, NULL, 0,
            "ZeRO %" PRIu32 " with PP%" PRIu32
            ": this software cannot shard gradients that add up over micro-batches; "
            "use ZeRO %" PRIu32 " or PP 1",
            l->zero, l->pp, w->space->zero_max_with_pp);
    return pt_fail(err, PT_USAGE, NULL, 0, "no combination of the given values is valid");
}

enum pt_status planner_enumerate(const struct pt_setup *setup,
                                 const struct planner_space *space,
                                 const struct planner_visitor *visitor,
                                 struct planner_counts *counts, struct pt_error *err)
{
    struct walk w = {
        .setup = setup, .space = space, .visitor = visitor, .counts = counts
    };
    struct {
        struct values *values;
        const struct planner_list *list;
    } dims[] = {
        { &w.tp, &space->tp },
        { &w.pp, &space->pp },
        { &w.vpp, &space->vpp },
        { &w.cp, &space->cp },
        { &w.ep, &space->ep },
        { &w.dp, &space->dp },
        { &w.zero, &space->zero },
        { &w.zero_group, &space->zero_group },
        { &w.micro_batch, &space->micro_batch },
        { &w.sp, &space->sequence_parallel },
        { &w.recompute, &space->recompute },
        { &w.schedule, &space->schedule },
    };
    enum pt_status st = PT_OK;

    *counts = (struct planner_counts){ 0 };
    for (size_t i = 0; i < sizeof(dims) / sizeof(dims[0]); i++)
        if (!from_list(dims[i].values, dims[i].list))
            st = pt_fail(err, PT_SYSTEM, NULL, 0, "out of memory");
    if (st == PT_OK && !free_values(&w))
        st = pt_fail(err, PT_SYSTEM, NULL, 0, "out of memory");
    if (st == PT_OK) {
        layers(&w);
        if (w.valid == 0)
            st = explain(&w, err);
    }
    for (size_t i = 0; i < sizeof(dims) / sizeof(dims[0]); i++)
        free(dims[i].values->v);
    return st;
}
