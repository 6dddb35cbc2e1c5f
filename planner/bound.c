#include "config.h"

#include <math.h>

#include "planner/bound.h"

/* The bound allows for rounding of the sums that it compares. */
#define SLACK 1e-9

/* constant + forward F + input I + weight W + param . P of a stage. */
struct line {
    double constant, forward, input, weight, param[2];
};
struct lines {
    unsigned n;
    struct line line[PT_FORM_ROWS];
};

static double value(const struct line *l, const struct pt_stage_load *x)
{
    return l->constant + l->forward * x->forward_s + l->input * x->input_s +
           l->weight * x->weight_s + l->param[0] * x->params[0] +
           l->param[1] * x->params[1];
}

static double per_layer(const struct planner_problem *p, const struct line *l, int kind)
{
    const double *held = p->params.layer[kind];

    return l->forward * p->forward_s[kind] + l->input * p->input_s[kind] +
           l->weight * p->weight_s[kind] + l->param[0] * held[0] + l->param[1] * held[1];
}

/* Whether n layers of a kind with what must be recomputed of them keep every line of a
 * stage at most `most_s`. */
static bool below(const struct planner_problem *p, uint32_t s, int kind,
                  const struct lines *lines, double most_s, uint32_t n)
{
    int r = planner_relief(p, s, kind, n, planner_most_offload(p));

    for (unsigned j = 0; j < lines->n; j++) {
        const struct line *l = &lines->line[j];
        double again = l->input * p->recompute_s[kind];
        double room = most_s - value(l, &p->stage[s].ends);

        if (again > 0.0 && n * per_layer(p, l, kind) + r * again > room * (1.0 + SLACK))
            return false;
    }
    return true;
}

/* The largest n up to `most` that is below: what must be recomputed grows with n. */
static uint32_t within(const struct planner_problem *p, uint32_t s, int kind,
                       const struct lines *lines, double most_s, uint32_t most)
{
    uint32_t lo = p->stage[s].free_layers[kind], hi = most;

    if (hi <= lo || below(p, s, kind, lines, most_s, hi))
        return hi;
    for (hi--; lo < hi;) {
        uint32_t mid = lo + (hi - lo + 1) / 2;

        if (below(p, s, kind, lines, most_s, mid))
            lo = mid;
        else
            hi = mid - 1;
    }
    return lo;
}

/* Most layers of a kind on stage s with every line at most `most_s`, and in memory. Where
 * recomputation shortens a line (a reduction has more to hide under), all of it counts.
 */
static uint32_t most_layers(const struct planner_problem *p, uint32_t s, int kind,
                            const struct lines *lines, double most_s)
{
    double n = p->layers[kind];
    bool recompute = p->recompute_some || p->recompute_all;

    for (unsigned j = 0; j < lines->n; j++) {
        const struct line *l = &lines->line[j];
        double again = recompute ? fmin(l->input * p->recompute_s[kind], 0.0) : 0.0;
        double per = per_layer(p, l, kind) + again;
        double room = most_s - value(l, &p->stage[s].ends);

        if (per <= 0.0)
            continue;
        if (room < 0.0)
            return 0;
        n = fmin(n, floor(room / per * (1.0 + SLACK)));
    }
    return within(p, s, kind, lines, most_s,
                  (uint32_t)fmin(n, p->stage[s].most_layers[kind]));
}

static void slowest_lines(const struct planner_problem *p, struct lines *lines)
{
    lines->n = 1;
    lines->line[0] = (struct line){ p->form.overhead_s, 1.0, 1.0, 1.0, { 0.0, 0.0 } };
}

uint32_t planner_most_layers(const struct planner_problem *p, uint32_t s, int kind,
                             double slowest_s)
{
    struct lines lines;

    slowest_lines(p, &lines);
    return most_layers(p, s, kind, &lines, slowest_s);
}

/* Whether all layers of a kind find a place when no line of a stage exceeds this. */
static bool holds(const struct planner_problem *p, int kind, const struct lines *lines,
                  double most_s)
{
    uint64_t sum = 0;

    for (uint32_t s = 0; s < p->layout.pp && sum < p->layers[kind]; s++)
        sum += most_layers(p, s, kind, lines, most_s);
    return sum >= p->layers[kind];
}

/* Of one kind's layers: the smallest maximum that holds them, at least lo, from below. */
static double smallest(const struct planner_problem *p, int kind,
                       const struct lines *lines, double lo)
{
    double hi = lo;

    if (p->layers[kind] == 0 || holds(p, kind, lines, lo))
        return lo;
    for (unsigned j = 0; j < lines->n; j++) {
        const struct line *l = &lines->line[j];
        double more = p->layers[kind] * (fmax(per_layer(p, l, kind), 0.0) +
                                         fmax(l->input * p->recompute_s[kind], 0.0));

        for (uint32_t s = 0; s < p->layout.pp; s++)
            hi = fmax(hi, value(l, &p->stage[s].ends) + more);
    }
    while (hi - lo > 1e-10 * hi) {
        double mid = 0.5 * (lo + hi);

        if (holds(p, kind, lines, mid))
            hi = mid;
        else
            lo = mid;
    }
    return lo;
}

/* The bound of a maximum over stages of lines: see the header. */
static double largest(const struct planner_problem *p, const struct lines *lines,
                      const struct pt_stage_load *mean, double recompute_s)
{
    bool recompute = p->recompute_some || p->recompute_all;
    double lo = 0.0;

    for (unsigned j = 0; j < lines->n; j++) {
        const struct line *l = &lines->line[j];
        double v = value(l, mean);

        if (l->input > 0.0)
            v += l->input * recompute_s;
        for (int k = 0; recompute && l->input < 0.0 && k < PT_N_LAYER_KINDS; k++)
            v += l->input * p->layers[k] * p->recompute_s[k] / p->layout.pp;
        lo = fmax(lo, v);
    }
    for (int k = 0; k < PT_N_LAYER_KINDS; k++)
        lo = smallest(p, k, lines, lo);
    return lo;
}

/* Layers of a kind that must be recomputed whatever the split. A stage that holds `free`
 * layers (a real number) without recomputation must recompute at least `slope` layers for
 * each further one; the relaxation gives all further layers to the stage with the
 * gentlest slope. */
static double least_recomputed(const struct planner_problem *p, int kind)
{
    double left = p->layers[kind], f = planner_most_offload(p), gentlest = HUGE_VAL;

    if (p->recompute_all)
        return p->layers[kind];
    if (!p->recompute_some)
        return 0.0;
    for (uint32_t s = 0; s < p->layout.pp; s++) {
        const struct planner_stage *stage = &p->stage[s];
        double most = HUGE_VAL, slope = 0.0;

        for (unsigned j = 0; j < stage->n_rows; j++) {
            const struct planner_memory_row *row = &stage->row[j];
            double grow =
                row->layer[kind] + f * p->optimizer_bytes[kind] * row->offloaded;
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

static void reduce_lines(const struct planner_problem *p, struct lines *lines)
{
    lines->n = p->form.n_reduce;
    for (unsigned j = 0; j < lines->n; j++) {
        const struct pt_stage_row *r = &p->form.reduce[j];

        lines->line[j] = (struct line){ r->constant_s,
                                        r->forward,
                                        r->input,
                                        r->weight,
                                        { r->param_s[0], r->param_s[1] } };
    }
}

/* What is offloaded counts where it is pinned; free, it is none, or all where that helps.
 */
static void update_lines(const struct planner_problem *p, struct lines *lines)
{
    lines->n = p->form.n_update;
    for (unsigned j = 0; j < lines->n; j++) {
        const struct pt_stage_row *r = &p->form.update[j];
        struct line *l = &lines->line[j];

        *l =
            (struct line){ r->constant_s, r->forward, r->input, r->weight, { 0.0, 0.0 } };
        for (int i = 0; i < 2; i++)
            l->param[i] =
                r->param_s[i] + (p->offload ? fmin(r->offloaded_s[i], 0.0)
                                            : p->offload_frac * r->offloaded_s[i]);
    }
}

/* Totals of the model without recomputation. */
static struct pt_stage_load totals(const struct planner_problem *p)
{
    struct pt_stage_load t = { 0 };

    for (uint32_t s = 0; s < p->layout.pp; s++) {
        const struct pt_stage_load *e = &p->stage[s].ends;

        t.forward_s += e->forward_s;
        t.input_s += e->input_s;
        t.weight_s += e->weight_s;
        t.params[0] += e->params[0];
        t.params[1] += e->params[1];
    }
    for (int k = 0; k < PT_N_LAYER_KINDS; k++) {
        double n = p->layers[k];

        t.forward_s += n * p->forward_s[k];
        t.input_s += n * p->input_s[k];
        t.weight_s += n * p->weight_s[k];
        t.params[0] += n * p->params.layer[k][0];
        t.params[1] += n * p->params.layer[k][1];
    }
    return t;
}

/* Whether the hosts together hold what every rank needs there and what is offloaded
 * whatever the split: nothing where that is free. */
static bool hosts_hold(const struct planner_problem *p)
{
    double per_stage = (double)p->layout.tp * p->layout.cp * p->layout.dp, bytes = 0.0;
    double world = per_stage * p->layout.pp, hosts = ceil(world / p->host_ranks);
    double most = p->host_limit_bytes;

    for (int k = 0; k < PT_N_LAYER_KINDS; k++)
        bytes += p->layers[k] * p->optimizer_bytes[k];
    for (uint32_t s = 0; s < p->layout.pp; s++)
        bytes += p->stage[s].ends_optimizer_bytes;
    bytes *= p->offload_frac * p->host_per_byte * per_stage;
    return most <= 0.0 || (fmin(world, p->host_ranks) * p->host_rank_bytes <= most &&
                           world * p->host_rank_bytes + bytes <= hosts * most);
}

/* Whether the stages have the memory for each kind's layers, whatever the time. */
static bool memory_holds(const struct planner_problem *p)
{
    const struct lines none = { 0 };

    for (int k = 0; k < PT_N_LAYER_KINDS; k++)
        if (!holds(p, k, &none, 0.0))
            return false;
    return hosts_hold(p);
}

/* Whether the pipeline waits for the widest chain at all. */
static bool widest_counts(const struct planner_problem *p)
{
    for (unsigned j = 0; j < p->form.n_pipeline; j++)
        if (p->form.pipeline[j].widest > 0.0)
            return true;
    return false;
}

static void tail(const struct planner_problem *p, const struct pt_stage_load *mean,
                 struct planner_bound *bound)
{
    struct lines lines;

    reduce_lines(p, &lines);
    bound->reduce_s = largest(p, &lines, mean, 0.0);
    update_lines(p, &lines);
    bound->update_s = largest(p, &lines, mean, 0.0);
}

void planner_bound(const struct planner_problem *p, struct planner_bound *bound)
{
    struct pt_stage_load total = totals(p), mean = total;
    double pp = p->layout.pp, pipeline = 0.0, recompute = 0.0;
    struct lines lines;

    *bound = (struct planner_bound){ .fits = memory_holds(p) };
    if (!bound->fits)
        return;
    for (int k = 0; k < PT_N_LAYER_KINDS; k++)
        if (planner_one_kind(p) || p->recompute_all)
            recompute += p->recompute_s[k] * least_recomputed(p, k);
    mean.forward_s /= pp;
    mean.input_s /= pp;
    mean.weight_s /= pp;
    mean.params[0] /= pp;
    mean.params[1] /= pp;
    slowest_lines(p, &lines);
    bound->slowest_s = largest(p, &lines, &mean, recompute / pp);
    if (widest_counts(p)) {
        lines.n = 1;
        lines.line[0] = (struct line){ .forward = 1.0, .input = 1.0 };
        bound->widest_s = largest(p, &lines, &mean, recompute / pp);
    }
    for (unsigned j = 0; j < p->form.n_pipeline; j++) {
        const struct pt_pipeline_row *r = &p->form.pipeline[j];

        pipeline =
            fmax(pipeline,
                 r->constant_s + r->slowest * bound->slowest_s +
                     r->widest * bound->widest_s + r->forward * total.forward_s +
                     r->input * (total.input_s + recompute) + r->weight * total.weight_s);
    }
    tail(p, &mean, bound);
    bound->step_s =
        (pipeline + bound->reduce_s + bound->update_s + p->form.fixed_s) * (1.0 - SLACK);
}
