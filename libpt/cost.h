/* Time of one training step: operators, collectives, pipeline, what stays exposed.
 *
 * Two steps, so that a search can price a million candidates: pt_costs_init prices what
 * one layer, one end, one transfer costs under a layout; pt_step_time sums them for a
 * split by the linear forms of form.h. All seconds are per GPU; "per micro-batch" unless
 * said. Sources and formulas stand in cost.c. */
#ifndef PT_COST_H
#define PT_COST_H

#include "libpt/setup.h"

/* One layer of a kind, or one end. The backward is split into the input part (its chain)
 * and the weight part (which may wait). Communication that the kernel schedule hides is
 * not in it. */
struct pt_time {
    double forward_s, input_s, weight_s; /* compute */
    double forward_comm_s, input_comm_s; /* exposed tp, cp, ep communication, and ZeRO-2/3
                                            traffic that compute does not hide */
};

struct pt_costs {
    struct pt_time layer[PT_N_LAYER_KINDS]; /* without recomputation */
    double
        recompute_s[PT_N_LAYER_KINDS]; /* added to the input part of a layer that is not
                                          in `recomputed`, by layout.recompute; 0 for NONE
                                          and for FULL (which is r of n layers) */
    double recompute_full_s[PT_N_LAYER_KINDS]; /* added for each layer in `recomputed` */
    struct pt_time embedding, head;
    double p2p_s;            /* one boundary transfer, one direction */
    double p2p_exposed_frac; /* of it, in the steady state */
    double micro_batch_s;    /* engine overhead per micro-batch and stage */
    uint32_t micro_batches;  /* m */
    double slack_frac; /* run-to-run and straggler slack on the pipeline, 0.02 = 2% */
    double step_s;     /* fixed per step */
    /* Per parameter held by a rank, dense [0] and expert [1]: gradient reduction,
     * parameter gathering after the step, optimizer on the GPU, and offloaded (copies;
     * host arithmetic). */
    double reduce_s_per_param[2], gather_s_per_param[2];
    double reduce_fixed_s[2];
    double optimizer_s_per_param[2]; /* per parameter before ZeRO division */
    double offload_copy_s_per_param[2], offload_cpu_s_per_param[2];
    double reduce_hidden_frac; /* of the reduction that may run under the last backward */
    double tied_s; /* all-reduce of the tied embedding's gradient when pp > 1 */
    double norm_s; /* global gradient norm */
    /* Communication volume per GPU and step, bytes sent, before the split is known. */
    double tp_bytes[PT_N_LAYER_KINDS], cp_bytes[PT_N_LAYER_KINDS],
        ep_bytes[PT_N_LAYER_KINDS];
    double p2p_bytes;
    /* Exposed seconds per micro-batch of a layer that are communication of one kind, for
     * the breakdown. */
    double tp_s[PT_N_LAYER_KINDS], cp_s[PT_N_LAYER_KINDS], ep_s[PT_N_LAYER_KINDS],
        dp_s[PT_N_LAYER_KINDS]; /* dp: ZeRO-2/3 */
};

/* Which slice of the step a second belongs to, for the breakdown. */
struct pt_step {
    double step_s;
    double pipeline_s; /* first forward to last backward, overheads included */
    double compute_s;  /* of the slowest stage, m micro-batches */
    double tp_s, cp_s, ep_s, pp_s; /* exposed communication of the slowest stage */
    double recompute_s;            /* of the slowest stage */
    double bubble_s;               /* pipeline_s minus the slowest stage's own work */
    double imbalance_s;            /* slowest minus mean stage, m micro-batches */
    double dp_s;                   /* exposed gradient reduction and gathering */
    double optimizer_s, offload_s, other_s;
    double bubble_of_total, bubble_of_ideal;
    uint32_t slowest_stage;
    /* Volume per GPU and step (the busiest stage), bytes sent */
    double tp_bytes, cp_bytes, ep_bytes, pp_bytes, dp_bytes;
    double intra_bytes, inter_bytes; /* the same, by link class: fast domain, network */
    double tokens_per_s_gpu, model_flops_gpu, mfu,
        hfu; /* FLOP/s per GPU; mfu by `causal` */
};

/* The layout must have passed pt_layout_check. Never fails. */
void pt_costs_init(const struct pt_setup *setup, const struct pt_layout *layout,
                   struct pt_costs *costs);
/* Per stage seconds for one micro-batch: stage_s[s] (pp of them), the three parts when
 * not NULL. */
void pt_stage_times(const struct pt_setup *setup, const struct pt_layout *layout,
                    const struct pt_costs *costs, const struct pt_split *split,
                    double *forward_s, double *input_s, double *weight_s);
void pt_step_time(const struct pt_setup *setup, const struct pt_layout *layout,
                  const struct pt_costs *costs, const struct pt_split *split, bool causal,
                  struct pt_step *step);

/* Collectives, exposed for the simulator and the reports. bytes is the full buffer (what
 * is reduced, or what a gather ends with); stride is the distance in ranks between
 * neighbours. */
enum pt_collective { PT_ALLREDUCE, PT_ALLGATHER, PT_REDUCESCATTER, PT_ALLTOALL };
double pt_collective_s(const struct pt_setup *setup, enum pt_collective kind,
                       double bytes, uint32_t ranks, uint32_t stride);
double pt_p2p_s(const struct pt_setup *setup, double bytes, uint32_t stride);
/* `count` products [M,K] x [K,N] in one launch; accumulate_fp32: the result is added to a
 * buffer of 4-byte elements. */
double pt_gemm_s(const struct pt_setup *setup, double m, double n, double k, double count,
                 enum pt_precision precision, bool accumulate_fp32);

#endif
