/* Why nothing fits, and the nearest changes that would. */
#ifndef PLANNER_DIAGNOSE_H
#define PLANNER_DIAGNOSE_H

#include "planner/search.h"

/* Device bytes that the mean GPU of a layout cannot do without, whatever the split:
 * everything offloaded and recomputed that may be, one micro-batch in flight. */
double planner_least_bytes(const struct pt_setup *setup,
                           const struct planner_space *space,
                           const struct pt_layout *layout,
                           const struct pt_memory_terms *terms);

/* Whether the stages can hold all layers: each as many, whole ones, as its memory allows
 * with every relief, without embedding and head. terms: of a layout that differs in
 * schedule, chunks and recomputation only, and needs no more; recompute: layers may be,
 * in full. */
bool planner_may_hold(const struct pt_setup *setup, const struct planner_space *space,
                      const struct pt_layout *layout, const struct pt_memory_terms *terms,
                      bool recompute, uint32_t micro_batches);

/* The memory of the even split of a layout with every relief that the space allows. */
enum pt_status planner_relieved_memory(const struct pt_setup *setup,
                                       const struct planner_space *space,
                                       const struct pt_layout *layout,
                                       struct pt_memory *memory, struct pt_error *err);

/* The layout that misses by least, of those that cannot fit. */
struct planner_closest {
    bool any;
    struct pt_layout layout;
    double bytes; /* of its worst GPU */
};
enum pt_status planner_closest_add(struct planner_closest *closest,
                                   const struct pt_setup *setup,
                                   const struct planner_space *space,
                                   const struct pt_layout *layout, struct pt_error *err);

/* PT_CAPACITY with the sentence, the shortfall filled; PT_SYSTEM. */
enum pt_status planner_shortfall(const struct pt_setup *setup,
                                 const struct planner_space *space,
                                 const struct planner_closest *closest,
                                 struct planner_shortfall *shortfall,
                                 struct pt_error *err);

#endif
