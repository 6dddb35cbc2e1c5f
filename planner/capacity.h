/* When nothing fits: how much is missing, and the nearest changes that do fit. When asked
 * for the smallest machine or the largest model: that. */
#ifndef PLANNER_CAPACITY_H
#define PLANNER_CAPACITY_H

#include "planner/search.h"

#define PLANNER_MAX_FIXES 8
struct planner_capacity {
    char headline[640]; /* what is needed, what there is */
    unsigned n;
    char fix[PLANNER_MAX_FIXES][240]; /* each found by a search, cheapest change first */
};

/* Each change is tried by a search of its own that stops at the first plan that fits. */
void planner_capacity_init(struct planner_capacity *capacity,
                           const struct pt_setup *setup,
                           const struct planner_space *space,
                           const struct planner_shortfall *shortfall);
/* "headline What fits: A; or B" for records, or a line for each. */
char *planner_capacity_text(const struct planner_capacity *capacity, bool lines,
                            char *buf, size_t size);

/* Whether any plan fits; a copy of its layout's numbers in *plan when not NULL (no
 * pointers). */
struct planner_fit {
    bool fits;
    double offload_share, step_s, host_bytes;
    uint32_t gpus;
};
struct planner_fit planner_try(const struct pt_setup *setup,
                               const struct planner_space *space);

/* The smallest number of GPUs from `from` on (idle ones allowed) that fits, 0 when none
 * up to `most` does. Machines of more than `node` GPUs have whole nodes of them. */
uint32_t planner_smallest_gpus(const struct pt_setup *setup,
                               const struct planner_space *space, uint32_t from,
                               uint32_t most, uint32_t node);
/* The largest parameter count, to two digits, whose synthesised shape fits; 0 when none
 * does. */
uint64_t planner_largest_params(const struct pt_setup *setup,
                                const struct planner_space *space,
                                enum pt_model_style style);

#endif
