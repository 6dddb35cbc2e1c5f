/* Candidates by bound, least first; ties by the order of preference. Owned, grows. */
#ifndef PLANNER_HEAP_H
#define PLANNER_HEAP_H

#include <stddef.h>

#include "libpt/layout.h"

struct planner_candidate {
    double bound_s;
    uint32_t tp, pp, cp, ep, dp, micro_batch, zero_group;
    uint8_t vpp, zero, schedule, recompute, flags,
        level; /* level: how sharp the bound is */
};
void planner_pack(const struct pt_layout *layout, double bound_s,
                  struct planner_candidate *c);
void planner_unpack(const struct planner_candidate *c, struct pt_layout *layout);

/* Fewer moving parts first: < 0 when a is to be preferred at equal time. The order:
 * smaller tp, pp, cp, ep, vpp, zero, zero_group; less recomputation; the simpler
 * schedule; no sequence parallelism; the larger micro-batch. */
int planner_prefer(const struct pt_layout *a, const struct pt_layout *b);

struct planner_heap {
    struct planner_candidate *item;
    size_t n, capacity;
};
bool planner_heap_push(struct planner_heap *heap, const struct planner_candidate *c);
bool planner_heap_pop(struct planner_heap *heap, struct planner_candidate *c);
/* Drops candidates whose bound is above `most_s`; returns how many. */
size_t planner_heap_prune(struct planner_heap *heap, double most_s);
void planner_heap_fini(struct planner_heap *heap);

#endif
