/* The exact answer for models of one kind of layers, without a MILP where it can be had.
 *
 * Given the slowest stage's time T, each stage holds up to so many layers and must
 * recompute so many of them; the fewest recomputed layers in all, S(T), follow by dynamic
 * programming over stages and layers. T takes few values: the times of stages with whole
 * layers. The least pipeline(T, S(T)), with the bounds of what follows the pipeline, is a
 * lower bound of the step, and a split that attains it is the best one. */
#ifndef PLANNER_SWEEP_H
#define PLANNER_SWEEP_H

#include "planner/bound.h"

struct planner_sweep {
    double bound_s; /* no split is faster; at most the cutoff */
    double step_s;  /* of the split that was found, when any */
    bool found;     /* split holds one that fits */
};
/* For problems of one kind that are not forced. split: pp x vpp, scratch: pp loads.
 * PT_SYSTEM when memory runs out. */
enum pt_status planner_sweep(const struct planner_problem *problem,
                             const struct planner_bound *bound, double cutoff_s,
                             struct pt_split *split, struct pt_stage_load *scratch,
                             struct planner_sweep *sweep, struct pt_error *err);

#endif
