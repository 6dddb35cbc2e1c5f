/* Best first. Every candidate enters a heap with a bound that costs a handful of
 * operations (enumerate.c). The least is taken: when its bound is the cheap one, it is
 * priced in full and bounded again (bound.c) and goes back if another is now ahead; else
 * it is solved (solve.c). The search ends when the least bound cannot beat the K-th best
 * plan: then it is proved. */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "planner/diagnose.h"
#include "planner/enumerate.h"
#include "planner/greedy.h"
#include "planner/heap.h"
#include "planner/solve.h"
#include "planner/top.h"

/* A heap of this many candidates makes the search solve its best ones, to prune the
 * others. */
#define PROBE_FIRST 2048

struct search {
    const struct pt_setup *setup;
    const struct planner_space *space;
    const struct planner_options *options;
    struct planner_solver solver;
    struct planner_heap heap;
    struct planner_heap waiting; /* for their MILP, until all layouts have been seen */
    struct planner_top top;
    struct planner_stats *stats;
    struct planner_closest closest;
    struct pt_memory_terms terms; /* of the candidates at hand, at their leanest */
    bool recompute;               /* their layers may be recomputed in full */
    size_t probe_at;
    uint64_t started; /* layouts with a greedy split */
    double start_s;
    bool enumerated;   /* every layout has been seen */
    double unproved_s; /* least bound of a layout whose MILP was cut */
    enum pt_status st;
    struct pt_error *err;
};

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool out_of_time(struct search *s)
{
    double limit = s->options->time_limit_s;

    if (limit > 0.0 && now_s() - s->start_s > limit)
        s->stats->time_limit = true;
    return s->stats->time_limit;
}

/* What a candidate must beat; within the gap that the user allows. */
static double cutoff_s(const struct search *s)
{
    double best = planner_top_cutoff(&s->top);

    return s->options->exhaustive ? HUGE_VAL : best * (1.0 - s->options->gap);
}

static double least_bound(const struct search *s)
{
    double bound = s->unproved_s;

    return s->heap.n > 0 ? fmin(bound, s->heap.item[0].bound_s) : bound;
}

/* "r of n layers" with r = 0 is no recomputation; chunks that differ say so. */
static void normalise(struct pt_layout *l, const struct pt_split *split)
{
    uint32_t recomputed = 0, least = UINT32_MAX, most = 0;

    for (uint32_t k = 0; k < split->pp * split->vpp; k++) {
        const struct pt_chunk *c = &split->chunk[k];
        uint32_t n = (uint32_t)c->layers[0] + c->layers[1];

        recomputed += (uint32_t)c->recomputed[0] + c->recomputed[1];
        least = n < least ? n : least;
        most = n > most ? n : most;
    }
    if (l->recompute == PT_RECOMPUTE_FULL && recomputed == 0)
        l->recompute = PT_RECOMPUTE_NONE;
    l->uneven_chunks = l->schedule == PT_SCHEDULE_INTERLEAVED && least != most;
}

static enum pt_status no_memory(struct search *s, const struct pt_layout *layout)
{
    s->stats->no_memory++;
    if (s->top.n > 0)
        return PT_OK;
    return planner_closest_add(&s->closest, s->setup, s->space, layout, s->err);
}

static enum pt_status keep(struct search *s)
{
    struct planner_solver *v = &s->solver;
    struct pt_layout layout = v->problem.layout;

    if (!v->found)
        return PT_OK;
    normalise(&layout, &v->split);
    return planner_top_add(&s->top, &layout, &v->problem.layout, &v->split, v->step_s,
                           s->err);
}

static enum pt_status conclude(struct search *s, enum planner_outcome outcome)
{
    switch (outcome) {
    case PLANNER_NO_MEMORY:
        return no_memory(s, &s->solver.problem.layout);
    case PLANNER_CUT:
        s->stats->bounded++;
        return PT_OK;
    case PLANNER_UNPROVED:
        s->unproved_s = fmin(s->unproved_s, s->solver.bound_s);
        break;
    case PLANNER_SOLVED:
        break;
    }
    s->stats->solved++;
    return keep(s);
}

/* Back into the heap with a sharper bound. */
static enum pt_status put_back(struct search *s, struct planner_candidate *c,
                               uint8_t level)
{
    bool later = level == 2 && !s->enumerated;

    c->level = level;
    c->bound_s = s->solver.bound_s;
    return planner_heap_push(later ? &s->waiting : &s->heap, c)
               ? PT_OK
               : pt_fail(s->err, PT_SYSTEM, NULL, 0, "out of memory");
}

static enum pt_status end_waiting(struct search *s)
{
    struct planner_candidate c;

    while (planner_heap_pop(&s->waiting, &c))
        if (!planner_heap_push(&s->heap, &c))
            return pt_fail(s->err, PT_SYSTEM, NULL, 0, "out of memory");
    return PT_OK;
}

/* A greedy split first; the MILP only when the layout comes up again, so that it has the
 * best of all greedy splits to beat. */
static enum pt_status solve(struct search *s, struct planner_candidate *c)
{
    struct planner_solver *v = &s->solver;
    double cutoff = cutoff_s(s);
    enum planner_outcome outcome;
    enum pt_status st;

    if (c->level < 2) {
        s->started++;
        st = planner_solver_start(v, cutoff, &outcome, s->err);
        if (st != PT_OK || outcome != PLANNER_UNPROVED)
            return st != PT_OK ? st : conclude(s, outcome);
        st = keep(s);
        return st != PT_OK ? st : put_back(s, c, 2);
    }
    if (s->options->time_limit_s > 0.0)
        v->time_limit_s = fmax(1e-3, s->options->time_limit_s - (now_s() - s->start_s));
    st = planner_solver_run(v, cutoff, &outcome, s->err);
    return st != PT_OK ? st : conclude(s, outcome);
}

/* Takes the most promising candidate one step further. */
static enum pt_status advance(struct search *s)
{
    struct planner_candidate c;
    struct pt_layout layout;
    enum pt_status st;

    planner_heap_pop(&s->heap, &c);
    planner_unpack(&c, &layout);
    st = planner_solver_set(&s->solver, s->setup, s->space, &layout, s->err);
    if (st != PT_OK)
        return st;
    if (!s->solver.bound.fits)
        return no_memory(s, &layout);
    if (s->solver.bound.step_s > cutoff_s(s)) {
        s->stats->bounded++;
        return PT_OK;
    }
    if (c.level == 0 && s->heap.n > 0 && s->heap.item[0].bound_s < s->solver.bound.step_s)
        return put_back(s, &c, 1);
    return solve(s, &c);
}

/* Splits the best ones so far greedily, so that fewer candidates need to be kept. */
static enum pt_status probe(struct search *s)
{
    uint64_t started = s->started;
    enum pt_status st = PT_OK;

    while (st == PT_OK && s->heap.n > 0 && s->started < started + s->top.most &&
           s->heap.item[0].bound_s <= cutoff_s(s) && !out_of_time(s))
        st = advance(s);
    s->stats->bounded += planner_heap_prune(&s->heap, cutoff_s(s));
    s->probe_at = 2 * s->heap.n > PROBE_FIRST ? 2 * s->heap.n : PROBE_FIRST;
    return st;
}

static bool on_candidate(void *ctx, const struct pt_layout *layout, double bound_s)
{
    struct search *s = ctx;
    struct planner_candidate c;

    if (bound_s > cutoff_s(s)) {
        s->stats->bounded++;
        return true;
    }
    if (!planner_may_hold(s->setup, s->space, layout, &s->terms, s->recompute,
                          pt_micro_batches(&s->setup->job, layout))) {
        s->st = no_memory(s, layout);
        return s->st == PT_OK && !out_of_time(s);
    }
    planner_pack(layout, bound_s, &c);
    if (!planner_heap_push(&s->heap, &c)) {
        s->st = pt_fail(s->err, PT_SYSTEM, NULL, 0, "out of memory");
        return false;
    }
    if (s->heap.n >= s->probe_at)
        s->st = probe(s);
    return s->st == PT_OK && !out_of_time(s);
}

/* The terms of all candidates that differ in schedule and recomputation only. A list
 * scheduler frees part of an activation early, so where it may be chosen it stands for
 * all. */
static bool on_memory(void *ctx, const struct pt_layout *layout)
{
    struct search *s = ctx;
    struct pt_layout least = *layout;

    for (uint32_t i = 0; layout->pp > 1 && i < s->space->schedule.n; i++)
        if (s->space->schedule.value[i] == PT_SCHEDULE_ZB_AUTO)
            least.schedule = PT_SCHEDULE_ZB_AUTO;
    pt_memory_terms_init(s->setup, &least, &s->terms);
    s->recompute = layout->recompute == PT_RECOMPUTE_FULL;
    if (planner_least_bytes(s->setup, s->space, layout, &s->terms) <=
        pt_memory_limit(s->setup))
        return true;
    if (s->top.n == 0 && s->st == PT_OK)
        s->st = planner_closest_add(&s->closest, s->setup, s->space, layout, s->err);
    return false;
}

static enum pt_status make_plans(struct search *s, struct planner_result *result)
{
    result->plan = calloc(s->top.n > 0 ? s->top.n : 1, sizeof(*result->plan));
    if (result->plan == NULL)
        return pt_fail(s->err, PT_SYSTEM, NULL, 0, "out of memory");
    for (uint32_t i = 0; i < s->top.n; i++) {
        struct pt_plan *plan = &result->plan[i];
        struct planner_entry *e = &s->top.entry[i];
        enum pt_status st;

        pt_plan_init(plan);
        result->n++;
        plan->setup = *s->setup;
        memcpy(plan->stack_key, s->setup->stack.key, sizeof(plan->stack_key));
        plan->layout = e->layout;
        plan->causal = s->options->causal;
        plan->split = e->split;
        e->split = (struct pt_split){ 0 };
        st = pt_plan_predict(plan, s->err);
        if (st != PT_OK)
            return st;
    }
    return PT_OK;
}

/* What balance by count alone would give: the best layout with an even split. */
static enum pt_status price_even(struct search *s)
{
    struct planner_entry *best = &s->top.entry[0];
    struct planner_problem *p = &s->solver.problem;
    struct pt_layout layout = best->solved;
    struct pt_stage_load *load = calloc(layout.pp, sizeof(*load));
    struct pt_split even = { 0 };
    enum pt_status st = pt_split_init(&even, layout.pp, layout.vpp, s->err);

    if (st == PT_OK && load == NULL)
        st = pt_fail(s->err, PT_SYSTEM, NULL, 0, "out of memory");
    if (st == PT_OK)
        st = planner_problem_set(p, s->setup, s->space, &layout, s->err);
    if (st == PT_OK) {
        pt_split_even(&even, &s->setup->model, &layout, s->space->embedding_slots);
        if (planner_relieve(p, true, &even))
            s->stats->even_step_s = planner_step_s(p, &even, load, NULL);
    }
    pt_split_fini(&even);
    free(load);
    return st;
}

/* What no layout can beat: the model's arithmetic at the highest peak rate there is. */
static double floor_s(const struct pt_setup *setup)
{
    double peak = 0.0;

    for (int i = 0; i < PT_N_PRECISIONS; i++)
        peak = fmax(peak, setup->cluster.gpu.peak_flops[i]);
    return 3.0 * pt_model_flop(&setup->model, setup->job.seq, true) *
           setup->job.global_batch / (peak * setup->cluster.gpus);
}

static enum pt_status finish(struct search *s, struct planner_result *result)
{
    struct planner_stats *stats = s->stats;
    enum pt_status st;

    stats->bound_s = least_bound(s);
    if (!s->enumerated) /* some layouts were never looked at */
        stats->bound_s = fmin(stats->bound_s, floor_s(s->setup));
    if (s->top.n > 0) {
        double best = s->top.entry[0].step_s;

        stats->bound_s = fmin(stats->bound_s, best);
        stats->gap =
            stats->bound_s < best * (1.0 - 4e-9) ? (best - stats->bound_s) / best : 0.0;
    }
    stats->bounded += s->heap.n;
    st = s->top.n > 0 ? price_even(s) : PT_OK;
    if (st == PT_OK)
        st = make_plans(s, result);
    stats->wall_s = now_s() - s->start_s;
    if (st != PT_OK)
        return st;
    if (stats->time_limit)
        return pt_fail(s->err, PT_LIMIT, NULL, 0, "the time limit of %g s was reached",
                       s->options->time_limit_s);
    if (result->n > 0)
        return PT_OK;
    return planner_shortfall(s->setup, s->space, &s->closest, &result->shortfall, s->err);
}

enum pt_status planner_search(const struct pt_setup *setup,
                              const struct planner_space *space,
                              const struct planner_options *options,
                              struct planner_result *result, struct pt_error *err)
{
    struct search s = { .setup = setup,
                        .space = space,
                        .options = options,
                        .stats = &result->stats,
                        .probe_at = PROBE_FIRST,
                        .start_s = now_s(),
                        .unproved_s = HUGE_VAL,
                        .err = err };
    const struct planner_visitor visitor = { on_candidate, on_memory, &s };
    struct planner_counts counts;
    enum pt_status st;

    *result = (struct planner_result){ 0 };
    planner_solver_init(&s.solver);
    st = planner_top_init(&s.top, options->top, err);
    if (st == PT_OK)
        st = planner_enumerate(setup, space, &visitor, &counts, err);
    if (st != PT_OK)
        goto out;
    result->stats.seen = counts.seen;
    result->stats.invalid = counts.invalid;
    result->stats.no_memory += counts.no_memory;
    st = s.st;
    s.enumerated = st == PT_OK && !result->stats.time_limit;
    if (st == PT_OK)
        st = end_waiting(&s);
    while (st == PT_OK && s.heap.n > 0 && s.heap.item[0].bound_s <= cutoff_s(&s) &&
           !out_of_time(&s))
        st = advance(&s);
    if (st == PT_OK)
        st = finish(&s, result);
out:
    planner_solver_fini(&s.solver);
    planner_heap_fini(&s.heap);
    planner_heap_fini(&s.waiting);
    planner_top_fini(&s.top);
    if (st != PT_OK && st != PT_LIMIT && st != PT_CAPACITY)
        planner_result_fini(result);
    return st;
}

void planner_result_fini(struct planner_result *result)
{
    for (uint32_t i = 0; i < result->n; i++)
        pt_plan_fini(&result->plan[i]);
    free(result->plan);
    pt_memory_fini(&result->shortfall.memory);
    *result = (struct planner_result){ 0 };
}
