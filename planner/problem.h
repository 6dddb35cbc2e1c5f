/* The stage problem of one layout, as numbers: what a layer costs in time and memory on
 * each stage, and the limits. The bound, the greedy start, the MILP and the tests read
 * only this.
 *
 * Units: seconds per micro-batch, bytes of one GPU. Pieces are chunks in model order. */
#ifndef PLANNER_PROBLEM_H
#define PLANNER_PROBLEM_H

#include "libpt/form.h"
#include "libpt/memory.h"
#include "planner/search.h"

/* Device memory of a stage is the largest row; layers and offloaded bytes are the
 * split's. */
#define PLANNER_MEMORY_ROWS PT_MEMORY_ROWS
struct planner_memory_row {
    double fixed;                        /* ends, buffers, context ... */
    double layer[PT_N_LAYER_KINDS];      /* per layer that is not recomputed */
    double recomputed[PT_N_LAYER_KINDS]; /* added when it is; <= 0 where that helps */
    double any_recomputed;               /* once, when any layer is */
    double offloaded; /* per byte of optimizer state on the host; <= 0 */
};

struct planner_stage {
    struct pt_stage_load ends; /* embedding and head that live here */
    double ends_optimizer_bytes;
    uint32_t min_layers; /* pieces without embedding or head hold at least one each */
    unsigned n_rows;
    struct planner_memory_row row[PLANNER_MEMORY_ROWS];
    /* Most layers of one kind alone, everything offloaded that may be: recomputing as
     * many as need be, and none. */
    uint32_t most_layers[PT_N_LAYER_KINDS], free_layers[PT_N_LAYER_KINDS];
};

struct planner_problem {
    const struct pt_setup *setup;
    struct pt_layout layout;
    struct pt_costs costs;
    struct pt_memory_terms terms;
    struct pt_rank_params params;
    struct pt_form form;
    uint32_t layers[PT_N_LAYER_KINDS];
    /* One layer of a kind; recompute_s: added to input_s when it is recomputed in full.
     */
    double forward_s[PT_N_LAYER_KINDS], input_s[PT_N_LAYER_KINDS],
        weight_s[PT_N_LAYER_KINDS], recompute_s[PT_N_LAYER_KINDS];
    double optimizer_bytes[PT_N_LAYER_KINDS];
    struct planner_stage *stage; /* pp, owned */
    uint32_t stage_capacity;
    double limit_bytes;
    double host_limit_bytes;               /* of one host; 0: unknown, not limited */
    double host_rank_bytes, host_per_byte; /* of one rank: always, per offloaded byte */
    uint32_t host_ranks;                   /* GPUs that share a host */
    bool recompute_some, recompute_all;    /* r is free; r = n */
    bool offload;                          /* o is free in 0..1 */
    double offload_frac;                   /* else this, for every stage */
    bool forced; /* the split is pt_split_even with embedding slots */
};

void planner_problem_init(struct planner_problem *problem); /* empty: for reuse */
void planner_problem_fini(struct planner_problem *problem);
/* The layout must have passed pt_layout_check. Reuses what problem owns. */
enum pt_status planner_problem_set(struct planner_problem *problem,
                                   const struct pt_setup *setup,
                                   const struct planner_space *space,
                                   const struct pt_layout *layout, struct pt_error *err);

/* Share of the optimizer that may leave the GPU at best. */
double planner_most_offload(const struct planner_problem *problem);
/* Fewest layers to recompute so that n layers of a kind (and no others) fit stage s with
 * this much of the optimizer offloaded; -1 when they cannot. */
int planner_relief(const struct planner_problem *problem, uint32_t stage, int kind,
                   uint32_t layers, double offloaded_frac);

static inline bool planner_one_kind(const struct planner_problem *p)
{
    return p->layers[0] == 0 || p->layers[1] == 0;
}
/* Stage of the k-th piece of the model. */
static inline uint32_t planner_piece_stage(const struct planner_problem *p, uint32_t k)
{
    return pt_split_order(&p->layout, k) % p->layout.pp;
}

/* Totals of one stage of a split. */
struct planner_load {
    uint32_t layers[PT_N_LAYER_KINDS], recomputed[PT_N_LAYER_KINDS];
    double optimizer_bytes; /* before offloading */
};
void planner_stage_load(const struct planner_problem *problem,
                        const struct pt_split *split, uint32_t stage,
                        struct planner_load *load);
/* Device bytes of a stage with this load and offloaded bytes. */
double planner_stage_bytes(const struct planner_problem *problem, uint32_t stage,
                           const struct planner_load *load, double offloaded_bytes);
/* Whether every stage and host is within its limit. */
bool planner_fits(const struct planner_problem *problem, const struct pt_split *split);
/* The step time of a split: pt_form_value over its loads. load: pp of scratch. */
double planner_step_s(const struct planner_problem *problem, const struct pt_split *split,
                      struct pt_stage_load *scratch, struct pt_form_value *value);

/* The ranks that share a host, in stages. Hosts that are alike are listed once. */
struct planner_host {
    uint32_t first, last; /* stages */
    uint32_t first_ranks, last_ranks, middle_ranks;
};
/* The k-th host (from 0); false when there is none. */
bool planner_host(const struct planner_problem *problem, uint32_t k,
                  struct planner_host *host);
static inline uint32_t planner_host_ranks(const struct planner_host *h, uint32_t stage)
{
    return stage == h->first  ? h->first_ranks
           : stage == h->last ? h->last_ranks
                              : h->middle_ranks;
}

#endif
