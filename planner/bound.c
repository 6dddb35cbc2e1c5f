#include "config.h"

#include <math.h>

#include "planner/bound.h"

/* The bound allows for rounding of the sums that it compares. */
#define SLACK 1e-9

static double layer_s(const struct planner_problem *p, int kind)
{
    return p->forward_s[kind] + p->input_s[kind] + p->weight_s[kind];
}

static double ends_s(const struct planner_problem *p, uint32_t s)
{
    const struct pt_stage_load *e = &p->stage[s].ends;

    return e->forward_s + e->input_s + e->weight_s + p->form.overhead_s;
}

/* Share of the optimizer that may leave the GPU at best. */
static double most_offload(const struct planner_problem *p)
{
    return p->offload ? 1.0 : p->offload_frac;
}

int planner_relief(const struct planner_problem *p, uint32_t s, int kind, uint32_t n,
                   double offloaded_frac)
{
    const struct planner_stage *stage = &p->stage[s];
    double optimizer = stage->ends_optimizer_bytes + n * p->optimizer_bytes[kind];
    double need = p->recompute_all ? n : 0.0, limit = p->limit_bytes * (1.0 + 1e-12);

    /* Recomputing costs a working set once, so a row that fits without it may not with it. */
    for (int pass = 0; pass < 2; pass++) {
        bool any = need > 0.0;

        for (unsigned j = 0; j < stage->n_rows; j++) {
            const struct planner_memory_row *row = &stage->row[j];
            double bytes = row->fixed + n * row->layer[kind] +
                           offloaded_frac * optimizer * row->offloaded;

            if (any)
                bytes += row->any_recomputed;
            if (bytes + need * row->recomputed[kind] <= limit)
                continue;
            if (!p->recompute_some || row->recomputed[kind] >= 0.0)
                return -1;
            if (!any)
                bytes += row->any_recomputed;
            double r = ceil((bytes - limit) / -row->recomputed[kind]);

            if (r > n)
                return -1;
            if (r > need)
                need = r;
        }
        if (any || need <= 0.0)
            break;
    }
    return (int)need;
}

uint32_t planner_most_layers(const struct planner_problem *p, uint32_t s, int kind,
                             double slowest_s)
{
    double room = slowest_s - ends_s(p, s), a = layer_s(p, kind);
    double f = most_offload(p), most;

    if (room < 0.0)
        return 0;
    most = a > 0.0 ? floor(room / a * (1.0 + SLACK)) : p->layers[kind];
    if (most > p->layers[kind])
        most = p->layers[kind];
    for (uint32_t n = (uint32_t)most; n > 0; n--) {
        int r = planner_relief(p, s, kind, n, f);

        if (r >= 0 && n * a + r * p->recompute_s[kind] <= room * (1.0 + SLACK))
            return n;
    }
    return 0;
}

/* Whether all layers of a kind find a place when no stage takes longer than this. */
static bool holds(const struct planner_problem *p, int kind, double slowest_s)
{
    uint64_t sum = 0;

    for (uint32_t s = 0; s < p->layout.pp; s++)
        sum += planner_most_layers(p, s, kind, slowest_s);
    return sum >= p->layers[kind];
}

/* The smallest slowest stage that holds a kind's layers, from below; < 0: none does. */
static double smallest(const struct planner_problem *p, int kind, double lo)
{
    double hi, ends = 0.0;

    if (p->layers[kind] == 0 || holds(p, kind, lo))
        return lo;
    for (uint32_t s = 0; s < p->layout.pp; s++)
        ends = fmax(ends, ends_s(p, s));
    hi = ends + p->layers[kind] * (layer_s(p, kind) + fmax(p->recompute_s[kind], 0.0));
    if (!holds(p, kind, hi))
        return -1.0;
    while (hi - lo > 1e-10 * hi) {
        double mid = 0.5 * (lo + hi);

        if (holds(p, kind, mid))
            hi = mid;
        else
            lo = mid;
    }
    return lo;
}

/* Layers of a kind that must be recomputed whatever the split. A stage that holds `free` layers
 * (a real number) without recomputation must recompute at least `slope` layers for each further
 * one; the relaxation gives all further layers to the stage with the gentlest slope. */
static double least_recomputed(const struct planner_problem *p, int kind)
{
    double left = p->layers[kind], f = most_offload(p), gentlest = HUGE_VAL;

    if (p->recompute_all)
        return p->layers[kind];
    if (!p->recompute_some)
        return 0.0;
    for (uint32_t s = 0; s < p->layout.pp; s++) {
        const struct planner_stage *stage = &p->stage[s];
        double most = HUGE_VAL, slope = 0.0;

        for (unsigned j = 0; j < stage->n_rows; j++) {
            const struct planner_memory_row *row = &stage->row[j];
            double grow = row->layer[kind] + f * p->optimizer_bytes[kind] * row->offloaded;
            double room = p->limit_bytes - row->fixed -
                          f * stage->ends_optimizer_bytes * row->offloaded;

            if (row->recomputed[kind] >= 0.0 || grow <= 0.0 || room / grow >= most)
                continue;
            most = fmax(room / grow, 0.0);
            slope = grow / -row->recomputed[kind];
        }
        left -= most;
        gentlest = fmin(gentlest, slope);
    }
    return left > 0.0 ? left * gentlest : 0.0;
}

static double row_value(const struct pt_stage_row *row, const struct pt_stage_load *mean,
                        double recompute_s)
{
    double v = row->constant_s + row->forward * mean->forward_s + row->input * mean->input_s +
               row->weight * mean->weight_s;

    if (row->input < 0.0) /* recomputation gives a reduction more to hide under */
        v += row->input * recompute_s;
    for (int i = 0; i < 2; i++)
        v += mean->params[i] * row->param_s[i];
    return v;
}

/* Least value of weight x one row + (1 - weight) x another over what may be offloaded. */
static double blended(const struct planner_problem *p, const struct pt_stage_row *a,
                      const struct pt_stage_row *b, double weight,
                      const struct pt_stage_load *mean)
{
    double v = weight * row_value(a, mean, 0.0) + (1.0 - weight) * row_value(b, mean, 0.0);

    for (int i = 0; i < 2; i++) {
        double off = mean->params[i] *
                     (weight * a->offloaded_s[i] + (1.0 - weight) * b->offloaded_s[i]);

        v += p->offload ? fmin(off, 0.0) : p->offload_frac * off;
    }
    return v;
}

/* The update of the mean stage, offloaded as much as helps. The largest of the rows is at least
 * any blend of two, and blends in which offloading cancels bound it best. */
static double update_bound(const struct planner_problem *p, const struct pt_stage_load *mean)
{
    const struct pt_stage_row *row = p->form.update;
    double best = 0.0;

    for (unsigned j = 0; j < p->form.n_update; j++)
        for (unsigned k = j; k < p->form.n_update; k++) {
            best = fmax(best, blended(p, &row[j], &row[k], 1.0, mean));
            for (int i = 0; i < 2; i++) {
                double a = row[j].offloaded_s[i], b = row[k].offloaded_s[i];

                if (a * b < 0.0)
                    best = fmax(best, blended(p, &row[j], &row[k], b / (b - a), mean));
            }
        }
    return best;
}

static double tail_bound(const struct planner_problem *p)
{
    struct pt_stage_load mean = { 0 };
    double pp = p->layout.pp, recompute = 0.0, reduce = 0.0;

    for (uint32_t s = 0; s < p->layout.pp; s++) {
        const struct pt_stage_load *e = &p->stage[s].ends;

        mean.forward_s += e->forward_s / pp;
        mean.input_s += e->input_s / pp;
        mean.weight_s += e->weight_s / pp;
        mean.params[0] += e->params[0] / pp;
        mean.params[1] += e->params[1] / pp;
    }
    for (int k = 0; k < PT_N_LAYER_KINDS; k++) {
        double n = p->layers[k] / pp;

        mean.forward_s += n * p->forward_s[k];
        mean.input_s += n * p->input_s[k];
        mean.weight_s += n * p->weight_s[k];
        mean.params[0] += n * p->params.layer[k][0];
        mean.params[1] += n * p->params.layer[k][1];
        if (p->recompute_some || p->recompute_all)
            recompute += n * p->recompute_s[k];
    }
    for (unsigned j = 0; j < p->form.n_reduce; j++)
        reduce = fmax(reduce, row_value(&p->form.reduce[j], &mean, recompute));
    return reduce + update_bound(p, &mean);
}

/* Whether the hosts hold what every rank needs there, offloading nothing that is not pinned. */
static bool hosts_hold_ranks(const struct planner_problem *p)
{
    uint64_t world = (uint64_t)p->layout.tp * p->layout.cp * p->layout.dp * p->layout.pp;
    uint64_t ranks = world < p->host_ranks ? world : p->host_ranks;

    return p->host_limit_bytes <= 0.0 ||
           (double)ranks * p->host_rank_bytes <= p->host_limit_bytes;
}

void planner_bound(const struct planner_problem *p, struct planner_bound *bound)
{
    double f = 0.0, i = 0.0, w = 0.0, pp = p->layout.pp, slowest, pipeline = 0.0;
    double recompute = 0.0, widest;

    *bound = (struct planner_bound){ 0 };
    if (!hosts_hold_ranks(p))
        return;
    for (uint32_t s = 0; s < p->layout.pp; s++) {
        f += p->stage[s].ends.forward_s;
        i += p->stage[s].ends.input_s;
        w += p->stage[s].ends.weight_s;
    }
    for (int k = 0; k < PT_N_LAYER_KINDS; k++) {
        f += p->layers[k] * p->forward_s[k];
        i += p->layers[k] * p->input_s[k];
        w += p->layers[k] * p->weight_s[k];
    }
    for (int k = 0; k < PT_N_LAYER_KINDS; k++)
        recompute += planner_one_kind(p) || p->recompute_all
                         ? p->recompute_s[k] * least_recomputed(p, k) : 0.0;
    i += recompute;
    slowest = (f + i + w) / pp + p->form.overhead_s;
    for (int k = 0; k < PT_N_LAYER_KINDS; k++) {
        slowest = smallest(p, k, slowest);
        if (slowest < 0.0)
            return;
    }
    widest = (f + i) / pp;
    for (unsigned j = 0; j < p->form.n_pipeline; j++) {
        const struct pt_pipeline_row *r = &p->form.pipeline[j];

        pipeline = fmax(pipeline, r->constant_s + r->slowest * slowest + r->widest * widest +
                                      r->forward * f + r->input * i + r->weight * w);
    }
    bound->fits = true;
    bound->slowest_s = slowest;
    bound->step_s = (pipeline + tail_bound(p) + p->form.fixed_s) * (1.0 - SLACK);
}
