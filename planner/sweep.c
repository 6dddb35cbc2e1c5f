#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "planner/greedy.h"
#include "planner/sweep.h"
#include "planner/units.h"

#define NONE UINT32_MAX
/* More values of T than this are not worth it: the MILP decides. */
#define MAX_TIMES 1024

struct table {
    const struct planner_problem *p;
    const struct planner_bound *bound;
    int kind;
    uint32_t n, pp;   /* layers, stages */
    double f, i, w;   /* totals without recomputation */
    uint32_t *again;  /* [stage][n]: recomputed layers, NONE: does not fit */
    double *time;     /* [stage][n]: of one micro-batch */
    bool *lean;       /* [stage][n]: no more reduction and update than the bound's */
    uint32_t *least;  /* [n]: fewest recomputed layers of the stages so far */
    uint16_t *choice; /* [stage][n]: layers of the stage in the best split up to it */
    double *times;    /* values of T */
    size_t n_times;
    uint32_t *stage; /* layers of each, of the split read back */
};

static size_t at(const struct table *t, uint32_t s, uint32_t n)
{
    return (size_t)s * (t->n + 1) + n;
}

static double row_s(const struct pt_stage_row *row, const struct pt_stage_load *x)
{
    double v = row->constant_s + row->forward * x->forward_s + row->input * x->input_s +
               row->weight * x->weight_s;

    for (int i = 0; i < 2; i++)
        v += x->params[i] * (row->param_s[i] + x->offload_frac * row->offloaded_s[i]);
    return v;
}

static double largest_row(const struct pt_stage_row *row, unsigned n,
                          const struct pt_stage_load *x)
{
    double v = 0.0;

    for (unsigned j = 0; j < n; j++)
        v = fmax(v, row_s(&row[j], x));
    return v;
}

/* One stage with n layers. */
static void price(struct table *t, uint32_t s, uint32_t n)
{
    const struct planner_problem *p = t->p;
    struct pt_stage_load x = p->stage[s].ends;
    int k = t->kind, r = planner_relief(p, s, k, n, planner_most_offload(p));
    const double near = 1.0 + 1e-9;

    if (r < 0) {
        t->again[at(t, s, n)] = NONE;
        return;
    }
    x.forward_s += n * p->forward_s[k];
    x.input_s += n * p->input_s[k] + r * p->recompute_s[k];
    x.weight_s += n * p->weight_s[k];
    x.params[0] += n * p->params.layer[k][0];
    x.params[1] += n * p->params.layer[k][1];
    x.offload_frac = p->offload_frac;
    t->again[at(t, s, n)] = (uint32_t)r;
    t->time[at(t, s, n)] = x.forward_s + x.input_s + x.weight_s + p->form.overhead_s;
    t->lean[at(t, s, n)] =
        largest_row(p->form.reduce, p->form.n_reduce, &x) <= t->bound->reduce_s * near &&
        largest_row(p->form.update, p->form.n_update, &x) <= t->bound->update_s * near &&
        (t->bound->widest_s <= 0.0 ||
         x.forward_s + x.input_s <= t->bound->widest_s * near);
}

/* The step at least, with this slowest stage and so many layers recomputed. */
static double step_s(const struct table *t, double slowest_s, double recomputed)
{
    const struct planner_problem *p = t->p;
    double pipeline = 0.0, i = t->i + recomputed * p->recompute_s[t->kind];

    for (unsigned j = 0; j < p->form.n_pipeline; j++) {
        const struct pt_pipeline_row *r = &p->form.pipeline[j];

        pipeline = fmax(pipeline, r->constant_s + r->slowest * slowest_s +
                                      r->widest * t->bound->widest_s + r->forward * t->f +
                                      r->input * i + r->weight * t->w);
    }
    return pipeline + t->bound->reduce_s + t->bound->update_s + p->form.fixed_s;
}

static void totals(struct table *t)
{
    const struct planner_problem *p = t->p;

    for (uint32_t s = 0; s < t->pp; s++) {
        t->f += p->stage[s].ends.forward_s;
        t->i += p->stage[s].ends.input_s;
        t->w += p->stage[s].ends.weight_s;
    }
    t->f += t->n * p->forward_s[t->kind];
    t->i += t->n * p->input_s[t->kind];
    t->w += t->n * p->weight_s[t->kind];
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The times of stages between the bound and what the cutoff leaves, ascending, each once.
 * False: too many. */
static bool collect_times(struct table *t, double cutoff_s)
{
    size_t kept = 0;

    for (uint32_t s = 0; s < t->pp; s++)
        for (uint32_t n = 0; n <= t->n; n++) {
            double time = t->time[at(t, s, n)];

            if (t->again[at(t, s, n)] == NONE ||
                time < t->bound->slowest_s * (1.0 - 1e-9))
                continue;
            if (step_s(t, time, 0.0) > cutoff_s)
                break;
            t->times[t->n_times++] = time;
        }
    qsort(t->times, t->n_times, sizeof(*t->times), by_value);
    for (size_t i = 0; i < t->n_times; i++)
        if (kept == 0 || t->times[i] > t->times[kept - 1] * (1.0 + 1e-12))
            t->times[kept++] = t->times[i];
    t->n_times = kept;
    return kept <= MAX_TIMES;
}

/* S(T); NONE when the stages cannot hold the layers. lean: only what does not exceed the
 * bound's reduction and update. */
static uint32_t fewest(struct table *t, double slowest_s, bool lean)
{
    for (uint32_t n = 0; n <= t->n; n++)
        t->least[n] = n == 0 ? 0 : NONE;
    for (uint32_t s = 0; s < t->pp; s++) {
        uint32_t *to = t->least + (s % 2 == 0 ? t->n + 1 : 0);
        const uint32_t *from = t->least + (s % 2 == 0 ? 0 : t->n + 1);

        for (uint32_t n = 0; n <= t->n; n++)
            to[n] = NONE;
        for (uint32_t k = t->p->stage[s].min_layers; k <= t->n; k++) {
            uint32_t r = t->again[at(t, s, k)];

            if (r == NONE || t->time[at(t, s, k)] > slowest_s * (1.0 + 1e-12))
                break; /* both grow with k */
            if (lean && !t->lean[at(t, s, k)])
                continue;
            for (uint32_t n = k; n <= t->n; n++)
                if (from[n - k] != NONE && from[n - k] + r < to[n]) {
                    to[n] = from[n - k] + r;
                    t->choice[at(t, s, n)] = (uint16_t)k;
                }
        }
    }
    return t->least[(t->pp % 2 == 1 ? t->n + 1 : 0) + t->n];
}

/* The least step over all T, and the T of it; *slowest_s = 0: none is below the cutoff.
 */
static double best_time(struct table *t, double cutoff_s, bool lean, double *slowest_s)
{
    double best = cutoff_s;
    uint32_t floor_r;

    *slowest_s = 0.0;
    if (t->n_times == 0)
        return best;
    floor_r = fewest(t, t->times[t->n_times - 1], lean);
    for (size_t i = 0; floor_r != NONE && i < t->n_times; i++) {
        uint32_t r;

        if (step_s(t, t->times[i], floor_r) >= best)
            break;
        r = fewest(t, t->times[i], lean);
        if (r != NONE && step_s(t, t->times[i], r) < best) {
            best = step_s(t, t->times[i], r);
            *slowest_s = t->times[i];
        }
    }
    return best;
}

/* The split that fewest() chose at this T, priced; kept when it is the fastest. */
static enum pt_status read_back(struct table *t, double slowest_s, bool lean,
                                struct pt_split *split, struct pt_stage_load *scratch,
                                struct planner_sweep *sweep, struct pt_error *err)
{
    const struct planner_problem *p = t->p;
    struct planner_units units;
    uint32_t left = t->n, *piece = calloc((size_t)t->pp * p->layout.vpp, sizeof(*piece));
    enum pt_status st = planner_units_stages(&units, p, err);

    if (st != PT_OK || piece == NULL) {
        st = pt_fail(err, PT_SYSTEM, NULL, 0, "out of memory");
        goto out;
    }
    (void)fewest(t, slowest_s, lean);
    for (uint32_t s = t->pp; s-- > 0;) {
        t->stage[s] = t->choice[at(t, s, left)];
        left -= t->stage[s];
    }
    planner_units_spread(&units, p, t->stage, piece);
    planner_place(p, piece, split);
    if (planner_relieve(p, true, split)) {
        sweep->step_s = planner_step_s(p, split, scratch, NULL);
        sweep->found = true;
    }
out:
    planner_units_fini(&units);
    free(piece);
    return st;
}

static enum pt_status table_init(struct table *t, const struct planner_problem *p,
                                 const struct planner_bound *bound, struct pt_error *err)
{
    size_t cells;

    *t = (struct table){ .p = p, .bound = bound, .pp = p->layout.pp };
    t->kind = p->layers[PT_LAYER_MOE] > 0 ? PT_LAYER_MOE : PT_LAYER_DENSE;
    t->n = p->layers[t->kind];
    cells = (size_t)t->pp * (t->n + 1);
    t->again = calloc(cells, sizeof(*t->again));
    t->time = calloc(cells, sizeof(*t->time));
    t->lean = calloc(cells, sizeof(*t->lean));
    t->choice = calloc(cells, sizeof(*t->choice));
    t->times = calloc(cells, sizeof(*t->times));
    t->least = calloc(2 * ((size_t)t->n + 1), sizeof(*t->least));
    t->stage = calloc(t->pp, sizeof(*t->stage));
    if (t->again == NULL || t->time == NULL || t->lean == NULL || t->choice == NULL ||
        t->times == NULL || t->least == NULL || t->stage == NULL)
        return pt_fail(err, PT_SYSTEM, NULL, 0, "out of memory");
    totals(t);
    for (uint32_t s = 0; s < t->pp; s++)
        for (uint32_t n = 0; n <= t->n; n++)
            price(t, s, n);
    return PT_OK;
}

static void table_fini(struct table *t)
{
    free(t->again);
    free(t->time);
    free(t->lean);
    free(t->choice);
    free(t->times);
    free(t->least);
    free(t->stage);
}

enum pt_status planner_sweep(const struct planner_problem *p,
                             const struct planner_bound *bound, double cutoff_s,
                             struct pt_split *split, struct pt_stage_load *scratch,
                             struct planner_sweep *sweep, struct pt_error *err)
{
    struct table t;
    double slowest_s;
    enum pt_status st = table_init(&t, p, bound, err);

    *sweep = (struct planner_sweep){ .bound_s = bound->step_s };
    if (st != PT_OK || !collect_times(&t, cutoff_s))
        goto out;
    sweep->bound_s =
        fmax(bound->step_s, best_time(&t, cutoff_s, false, &slowest_s) * (1.0 - 1e-9));
    if (slowest_s <= 0.0)
        goto out;
    (void)best_time(&t, cutoff_s, true, &slowest_s);
    if (slowest_s > 0.0)
        st = read_back(&t, slowest_s, true, split, scratch, sweep, err);
out:
    table_fini(&t);
    return st;
}
