/* The K best splits found so far, best first. */
#ifndef PLANNER_TOP_H
#define PLANNER_TOP_H

#include "libpt/layout.h"

struct planner_entry {
    struct pt_layout layout;
    struct pt_layout
        solved;            /* as it was solved: "full" with no layer recomputed is none */
    struct pt_split split; /* owned */
    double step_s;
};
struct planner_top {
    struct planner_entry *entry;
    uint32_t n, most;
};
enum pt_status planner_top_init(struct planner_top *top, uint32_t most,
                                struct pt_error *err);
void planner_top_fini(struct planner_top *top);
/* A copy of the split is kept when it is among the best, in place of an earlier one of
 * the layout that was solved; equal times (to nine digits) are ordered by planner_prefer.
 */
enum pt_status planner_top_add(struct planner_top *top, const struct pt_layout *layout,
                               const struct pt_layout *solved,
                               const struct pt_split *split, double step_s,
                               struct pt_error *err);
/* A layout whose bound is above this cannot enter. */
double planner_top_cutoff(const struct planner_top *top);
enum pt_status planner_split_copy(struct pt_split *to, const struct pt_split *from,
                                  struct pt_error *err);

#endif
