/* What no split of a layout can beat: a lower bound of its step time, and whether any
 * split fits.
 *
 * Everything that a step waits for (the slowest stage, the widest chain, the slowest
 * reduction and update) is the maximum over stages of some lines: linear forms of what a
 * stage holds. Such a maximum is at least the line of the mean stage (Jensen), and at
 * least the smallest value under which the stages can hold all layers, whole ones, each
 * stage as many as its memory allows with the cheapest relief: everything offloaded that
 * may be, then the fewest layers recomputed. */
#ifndef PLANNER_BOUND_H
#define PLANNER_BOUND_H

#include "planner/problem.h"

struct planner_bound {
    bool fits;        /* some split may fit; false: none can */
    double slowest_s; /* one micro-batch of the slowest stage */
    double widest_s;  /* the longest forward and input gradient of a stage */
    double reduce_s, update_s;
    double step_s;
};
void planner_bound(const struct planner_problem *problem, struct planner_bound *bound);

/* Most layers of a kind that stage s can hold within `slowest_s` and its memory,
 * everything offloaded that may be. */
uint32_t planner_most_layers(const struct planner_problem *problem, uint32_t stage,
                             int kind, double slowest_s);

#endif
