/* A good split quickly: the incumbent and cutoff of the MILP, and what balance alone
 * gives. */
#ifndef PLANNER_GREEDY_H
#define PLANNER_GREEDY_H

#include "planner/bound.h"

/* False when it finds no split that fits (there may be one). scratch: pp loads. */
bool planner_greedy(const struct planner_problem *problem,
                    const struct planner_bound *bound, struct pt_split *split,
                    struct pt_stage_load *scratch, double *step_s);

/* Layers of each piece (in model order) into chunks: kinds in order. */
void planner_place(const struct planner_problem *problem, const uint32_t *piece,
                   struct pt_split *split);
/* r recomputed layers of each kind of a stage, over its chunks from the first. */
void planner_recompute(struct pt_split *split, uint32_t stage,
                       const uint32_t recomputed[PT_N_LAYER_KINDS]);
/* Share of the optimizer to offload so that the stage fits with this load; > 1: it
 * cannot. */
double planner_least_offload(const struct planner_problem *problem, uint32_t stage,
                             const struct planner_load *load);
/* The least recomputation and offloading under which each stage fits, offloading first or
 * last. False when something does not fit. */
bool planner_relieve(const struct planner_problem *problem, bool offload_first,
                     struct pt_split *split);

#endif
