/* One layout solved: bound, greedy start, MILP. */
#ifndef PLANNER_SOLVE_H
#define PLANNER_SOLVE_H

#include "planner/milp.h"

enum planner_outcome {
    PLANNER_SOLVED,    /* the best split, proved within the bound that is given */
    PLANNER_CUT,       /* no split is faster than the cutoff */
    PLANNER_NO_MEMORY, /* no split fits */
    PLANNER_UNPROVED   /* a limit was reached; the split, if any, may not be the best */
};

struct planner_solver {
    struct planner_problem problem;
    struct planner_bound bound;
    struct pt_split split, other; /* the best split; scratch */
    struct pt_stage_load *load;
    uint32_t pieces, pp;    /* capacity of the above */
    double step_s, bound_s; /* of split; proven */
    bool found;             /* split holds a split that fits */
    uint64_t milps, nodes;  /* solved since init */
    uint32_t max_nodes;     /* of one MILP */
    double time_limit_s;    /* of one MILP; 0: none */
    bool always_milp;       /* tests: even when the greedy split meets the bound */
};

void planner_solver_init(struct planner_solver *solver);
void planner_solver_fini(struct planner_solver *solver);
/* Prices the layout and bounds it: solver->problem and solver->bound. */
enum pt_status planner_solver_set(struct planner_solver *solver,
                                  const struct pt_setup *setup,
                                  const struct planner_space *space,
                                  const struct pt_layout *layout, struct pt_error *err);
/* A greedy split of what was set, without the MILP: PLANNER_UNPROVED when it may not be
 * the best (found tells whether there is one). Failures: PT_SYSTEM. */
enum pt_status planner_solver_start(struct planner_solver *solver, double cutoff_s,
                                    enum planner_outcome *outcome, struct pt_error *err);
/* Solves what was set. Failures: PT_SYSTEM, PT_BUG. */
enum pt_status planner_solver_run(struct planner_solver *solver, double cutoff_s,
                                  enum planner_outcome *outcome, struct pt_error *err);

#endif
