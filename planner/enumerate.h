/* The valid layouts of a space, in an order that prices each layer once.
 *
 * What a layer costs depends on tp, cp, ep, sequence parallelism and micro-batch only;
 * pipeline depth, replicas, ZeRO, schedule and recomputation vary inside. A visitor sees
 * each candidate with a lower bound of its step time that takes a handful of operations.
 */
#ifndef PLANNER_ENUMERATE_H
#define PLANNER_ENUMERATE_H

#include "libpt/form.h"
#include "planner/search.h"

/* Totals and shortest layer of one group of candidates. */
struct planner_group {
    struct pt_costs
        costs; /* with micro_batches, p2p and slack of the candidate at hand */
    struct pt_form form;
    double forward_s, input_s, weight_s; /* of the whole model, ends included */
    double layer_s;                      /* of the quickest kind */
    double embedding_s, head_s;
    uint32_t layers;
};
/* No split of the layout is faster: perfect balance, whole layers, no exposed reduction,
 * no recomputation. */
double planner_group_bound(const struct planner_group *group,
                           const struct pt_layout *layout);

struct planner_visitor {
    /* May stop the enumeration by returning false. */
    bool (*candidate)(void *ctx, const struct pt_layout *layout, double bound_s);
    /* Called once per memory class (everything but schedule and recomputation), before
     * its candidates: false when nothing of it can fit. layout has the cheapest relief
     * set. */
    bool (*may_fit)(void *ctx, const struct pt_layout *layout);
    void *ctx;
};

struct planner_counts {
    uint64_t seen, invalid, no_memory;
};
/* Fills counts. When nothing is valid, PT_USAGE with the sentence of the nearest layout.
 */
enum pt_status planner_enumerate(const struct pt_setup *setup,
                                 const struct planner_space *space,
                                 const struct planner_visitor *visitor,
                                 struct planner_counts *counts, struct pt_error *err);

#endif
