#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "planner/greedy.h"
#include "planner/solve.h"
#include "planner/sweep.h"

/* A split this close to the bound is the best one: sums differ by rounding. */
#define EXACT 4e-9

void planner_solver_init(struct planner_solver *solver)
{
    *solver = (struct planner_solver){ .max_nodes = 20000 };
    planner_problem_init(&solver->problem);
}

void planner_solver_fini(struct planner_solver *solver)
{
    planner_problem_fini(&solver->problem);
    pt_split_fini(&solver->split);
    pt_split_fini(&solver->other);
    free(solver->load);
    planner_milp_release();
    *solver = (struct planner_solver){ 0 };
}

static enum pt_status resize(struct planner_solver *s, const struct pt_layout *l,
                             struct pt_error *err)
{
    enum pt_status st;

    if (s->split.chunk != NULL && s->split.pp == l->pp && s->split.vpp == l->vpp)
        return PT_OK;
    pt_split_fini(&s->split);
    pt_split_fini(&s->other);
    free(s->load);
    s->load = calloc(l->pp, sizeof(*s->load));
    if (s->load == NULL)
        return pt_fail(err, PT_SYSTEM, NULL, 0, "out of memory");
    st = pt_split_init(&s->split, l->pp, l->vpp, err);
    return st != PT_OK ? st : pt_split_init(&s->other, l->pp, l->vpp, err);
}

enum pt_status planner_solver_set(struct planner_solver *s, const struct pt_setup *setup,
                                  const struct planner_space *space,
                                  const struct pt_layout *layout, struct pt_error *err)
{
    enum pt_status st = planner_problem_set(&s->problem, setup, space, layout, err);

    if (st != PT_OK)
        return st;
    s->found = false;
    planner_bound(&s->problem, &s->bound);
    s->bound_s = s->bound.step_s;
    return PT_OK;
}

/* Offloaded shares from a tolerance-bound solver, made exact: no more than each stage
 * needs, which never takes longer. */
static bool settle(const struct planner_problem *p, struct pt_split *split)
{
    for (uint32_t s = 0; p->offload && s < p->layout.pp; s++) {
        struct planner_load load;

        planner_stage_load(p, split, s, &load);
        split->offload_frac[s] = planner_least_offload(p, s, &load);
        if (split->offload_frac[s] > 1.0)
            return false;
    }
    return planner_fits(p, split);
}

static void keep_other(struct planner_solver *s)
{
    struct pt_split t = s->split;

    s->split = s->other;
    s->other = t;
}

static enum pt_status run_milp(struct planner_solver *s, double cutoff_s,
                               enum planner_outcome *outcome, struct pt_error *err)
{
    struct planner_milp_stats stats;
    double under = s->found ? fmin(cutoff_s, s->step_s) : cutoff_s, step_s;
    enum pt_status st;

    st = planner_milp(&s->problem, &s->bound, under, s->max_nodes, s->time_limit_s,
                      &s->other, &stats, err);
    s->milps++;
    s->nodes += stats.nodes;
    if (st == PT_BUG || st == PT_SYSTEM)
        return st;
    if (st == PT_OK && settle(&s->problem, &s->other)) {
        step_s = planner_step_s(&s->problem, &s->other, s->load, NULL);
        if (!s->found || step_s < s->step_s) {
            keep_other(s);
            s->step_s = step_s;
            s->found = true;
        }
        s->bound_s = fmax(s->bound_s, fmin(stats.bound_s, s->step_s));
        *outcome = stats.proved ? PLANNER_SOLVED : PLANNER_UNPROVED;
    } else if (st == PT_CAPACITY) { /* nothing under the cutoff */
        s->bound_s = fmax(s->bound_s, under);
        *outcome = s->found && s->step_s <= cutoff_s ? PLANNER_SOLVED
                   : isfinite(under)                 ? PLANNER_CUT
                                                     : PLANNER_NO_MEMORY;
    } else {
        s->bound_s = fmax(s->bound_s, fmin(stats.bound_s, under));
        *outcome = PLANNER_UNPROVED;
    }
    return PT_OK;
}

/* Exact where one kind of layers is to be placed and nothing is traded against the host.
 */
static enum pt_status run_sweep(struct planner_solver *s, double cutoff_s,
                                struct pt_error *err)
{
    struct planner_sweep sweep;
    double under = s->found ? fmin(cutoff_s, s->step_s) : cutoff_s;
    enum pt_status st =
        planner_sweep(&s->problem, &s->bound, under, &s->other, s->load, &sweep, err);

    if (st != PT_OK)
        return st;
    s->bound_s = fmax(s->bound_s, sweep.bound_s);
    if (sweep.found && (!s->found || sweep.step_s < s->step_s)) {
        keep_other(s);
        s->step_s = sweep.step_s;
        s->found = true;
    }
    return PT_OK;
}

static bool exact(const struct planner_solver *s)
{
    return s->found && s->step_s <= s->bound_s * (1.0 + EXACT) && !s->always_milp;
}

enum pt_status planner_solver_start(struct planner_solver *s, double cutoff_s,
                                    enum planner_outcome *outcome, struct pt_error *err)
{
    enum pt_status st;

    s->found = false;
    if (!s->bound.fits) {
        *outcome = PLANNER_NO_MEMORY;
        return PT_OK;
    }
    if (s->bound.step_s > cutoff_s) {
        *outcome = PLANNER_CUT;
        return PT_OK;
    }
    st = resize(s, &s->problem.layout, err);
    if (st != PT_OK)
        return st;
    s->found = planner_greedy(&s->problem, &s->bound, &s->split, s->load, &s->step_s);
    *outcome = PLANNER_UNPROVED;
    if (s->problem.forced) {
        s->bound_s = s->found ? s->step_s : s->bound_s;
        *outcome = s->found ? PLANNER_SOLVED : PLANNER_NO_MEMORY;
        return PT_OK;
    }
    if (!exact(s) && planner_one_kind(&s->problem) && !s->always_milp)
        st = run_sweep(s, cutoff_s, err);
    if (exact(s))
        *outcome = PLANNER_SOLVED;
    else if (!s->found && s->bound_s > cutoff_s)
        *outcome = PLANNER_CUT;
    return st;
}

enum pt_status planner_solver_run(struct planner_solver *s, double cutoff_s,
                                  enum planner_outcome *outcome, struct pt_error *err)
{
    enum pt_status st = planner_solver_start(s, cutoff_s, outcome, err);

    if (st != PT_OK || *outcome != PLANNER_UNPROVED)
        return st;
    return run_milp(s, cutoff_s, outcome, err);
}

enum pt_status planner_solve(const struct pt_setup *setup,
                             const struct planner_space *space,
                             const struct pt_layout *layout, double cutoff_s,
                             struct planner_solution *solution, struct pt_error *err)
{
    struct planner_solver solver;
    enum planner_outcome outcome = PLANNER_NO_MEMORY;
    enum pt_status st;

    *solution = (struct planner_solution){ 0 };
    planner_solver_init(&solver);
    st = planner_solver_set(&solver, setup, space, layout, err);
    if (st == PT_OK)
        st = planner_solver_run(&solver, cutoff_s, &outcome, err);
    if (st != PT_OK)
        goto out;
    solution->bound_s = solver.bound_s;
    if (solver.found && solver.step_s <= cutoff_s) {
        solution->split = solver.split;
        solution->step_s = solver.step_s;
        solver.split = (struct pt_split){ 0 };
    } else {
        st = pt_fail(err, outcome == PLANNER_UNPROVED ? PT_LIMIT : PT_CAPACITY, NULL, 0,
                     outcome == PLANNER_NO_MEMORY ? "no split of the layers fits"
                                                  : "no split is faster than the cutoff");
    }
out:
    planner_solver_fini(&solver);
    return st;
}
