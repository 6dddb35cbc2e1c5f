/* What is simulated: ranks that interpret a schedule's lists, how long each thing takes,
 * and what it moves and holds. Made from a plan (model.c) or from bare times (pure.c).
 *
 * Ranks are numbered as in a plan: rank = stage * per_stage + index, and the index counts
 * through tp, cp, dp. A gang is a row of `gang` neighbouring ranks that compute a layer
 * together (tp, cp, and ep where experts are spread): each pass of theirs ends when the
 * slowest ends. The ranks of a stage with equal index modulo `dense` reduce gradients
 * together. Folded, per_stage is 1 and one rank stands for all its replicas. */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include "libpt/schedule.h"

/* Links of a rank: its share of the fast domain's and of the network's bandwidth. */
enum sim_link_kind {
    SIM_FAST_OUT,
    SIM_FAST_IN,
    SIM_NET_OUT,
    SIM_NET_IN,
    SIM_N_LINK_KINDS
};

struct sim_stage {
    double optimizer_s;         /* what stays on the device */
    double out_s, host_s, in_s; /* of one offload shard: copy, arithmetic, copy back */
    double static_bytes;        /* all but activations */
    double send_bytes;          /* of one message to a neighbour */
};
/* Of one chunk, [chunk * stages + stage]. */
struct sim_chunk {
    double forward_s, input_s, weight_s;
    double reduce_s; /* gradients, alone on its links; 0: none, or priced inside the
                        passes */
    double activation_bytes; /* per micro-batch */
    /* Sent per GPU: tensor, context, expert parallel traffic per micro-batch; gradients
     * and parameters per step */
    double tp_bytes, cp_bytes, ep_bytes, dp_bytes;
};

struct sim_world {
    const struct pt_schedule *schedule;
    uint32_t per_stage, gang, dense; /* all divide per_stage; folded: 1 */
    const struct sim_stage *stage;   /* schedule->stages */
    const struct sim_chunk *chunk;   /* stages * chunks */
    double message_s;                /* one message between stages, alone on its links */
    double message_block_s;    /* of it, what holds up the receiver's compute stream */
    double reduce_hidden_frac; /* of a reduction that may run under the chunk's last
                                  backward */
    double norm_s, tied_s, step_s; /* step_s: fixed, at the end */
    bool no_sharing;              /* messages and reductions never slow each other down */
    bool message_net, reduce_net; /* over the network, else inside the fast domain */
    /* Disturbances; NULL: none. Per rank. */
    const double *slowdown;      /* multiplies passes */
    const double *link_capacity; /* of all its links: 1 as priced */
    double jitter_frac;          /* standard deviation of a pass's time, 0.05 = 5% */
    uint64_t seed;
    uint32_t steps;
};

static inline uint32_t sim_world_ranks(const struct sim_world *world)
{
    return world->schedule->stages * world->per_stage;
}

#endif
