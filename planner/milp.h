/* The stage problem as a mixed-integer linear program, solved by GLPK. The only user of
 * glpk.h.
 *
 * Integers n (layers) and r (recomputed layers) of each kind on each stage, or on each
 * piece when two kinds must stay in order; continuous o (bytes of optimizer state on the
 * host), T (the slowest stage), M (the longest forward and input gradient), R and U (the
 * slowest reduction and update), and the time of the pipeline. The rows are those of
 * form.h and memory.h. */
#ifndef PLANNER_MILP_H
#define PLANNER_MILP_H

#include "planner/bound.h"

struct planner_milp_stats {
    double bound_s; /* proven: no split is faster */
    bool proved;    /* the search was not cut */
    uint32_t nodes;
};
/* Looks for a split faster than cutoff_s. PT_OK: found, in split; PT_CAPACITY: there is
 * none (stats->bound_s >= cutoff_s) or none fits; PT_LIMIT: cut by max_nodes or
 * time_limit_s (0: none) and nothing found; PT_BUG: GLPK failed. */
enum pt_status planner_milp(const struct planner_problem *problem,
                            const struct planner_bound *bound, double cutoff_s,
                            uint32_t max_nodes, double time_limit_s,
                            struct pt_split *split, struct planner_milp_stats *stats,
                            struct pt_error *err);
/* Frees what GLPK keeps. No MILP may be in use. */
void planner_milp_release(void);

#endif
