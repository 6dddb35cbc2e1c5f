/* The best layout and split under the hardware's limits: enumerate, bound, solve, prove.
 * DESIGN.md, "Search". */
#ifndef PLANNER_SEARCH_H
#define PLANNER_SEARCH_H

#include "libpt/plan.h"

/* Values a dimension may take; n = 0: free (the search chooses what is sensible). */
#define PLANNER_MAX_LIST 64
struct planner_list {
    uint32_t n;
    uint32_t value[PLANNER_MAX_LIST];
};

struct planner_space {
    struct planner_list tp, pp, vpp, cp, ep, dp, zero, zero_group, micro_batch;
    struct planner_list sequence_parallel; /* 0, 1 */
    struct planner_list recompute;         /* enum pt_recompute; FULL alone: every layer,
                                              else r of n layers */
    struct planner_list schedule; /* enum pt_schedule_kind; of pipelines: pp 1 has none */
    uint32_t zero_max_with_pp;    /* when pp > 1: 1 where the software cannot shard
                                     gradients under pipelining; 0: no limit */
    bool offload;                 /* the optimizer may go to the host */
    double offload_frac;          /* < 0: free in 0..1, else pinned for every stage */
    bool replicate_kv;
    bool idle_gpus;       /* fewer than cluster.gpus may be used */
    bool embedding_slots; /* split counts embedding and head as layers */
};

struct planner_options {
    uint32_t top;        /* plans to return, >= 1 */
    double time_limit_s; /* 0: none */
    double gap;          /* stop when within this fraction of the bound; 0: proof */
    bool causal;         /* FLOP convention */
    bool exhaustive;     /* no bounding: for tests */
};

struct planner_stats {
    uint64_t seen;      /* layouts enumerated */
    uint64_t invalid;   /* refused by pt_layout_check */
    uint64_t bounded;   /* discarded because the bound cannot beat the best */
    uint64_t no_memory; /* cannot fit whatever the split */
    uint64_t solved;    /* by a split that meets the bound, or a MILP */
    double bound_s;     /* best lower bound of what is left */
    double gap;         /* (best - bound_s) / best; 0: proved */
    double even_step_s; /* the best plan's layout with layers as even as integers allow
                           and the least relief that fits; 0: does not fit so */
    bool time_limit;    /* the search was cut */
    double wall_s;
};

/* Why nothing fits, and the nearest changes that would (planner/diagnose.c). */
struct planner_shortfall {
    double needed_bytes, usable_bytes; /* of the best layout's worst GPU */
    struct pt_layout closest;
    struct pt_memory memory; /* of `closest`, owned */
};

struct planner_result {
    struct pt_plan *plan; /* n, best first, owned; step time at equal global batch */
    uint32_t n;
    struct planner_stats stats;
    struct planner_shortfall shortfall; /* when n == 0 */
};

/* PT_OK with n >= 1; PT_CAPACITY with n = 0 and shortfall filled when valid layouts exist
 * but none fits; PT_USAGE when the space holds no valid layout (the sentence is that of
 * the nearest one); PT_LIMIT when the time ran out (result holds the best so far, n may
 * be 0). */
enum pt_status planner_search(const struct pt_setup *setup,
                              const struct planner_space *space,
                              const struct planner_options *options,
                              struct planner_result *result, struct pt_error *err);
void planner_result_fini(struct planner_result *result);

/* One layout: the best split by MILP, or the forced one. Also used by tests. */
struct planner_solution {
    struct pt_split split; /* owned */
    double step_s, bound_s;
};
enum pt_status planner_solve(const struct pt_setup *setup,
                             const struct planner_space *space,
                             const struct pt_layout *layout, double cutoff_s,
                             struct planner_solution *solution, struct pt_error *err);

#endif
