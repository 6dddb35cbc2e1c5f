/* One decoder layer, the embedding and the head as tables of operators: the one place
 * that knows what a layer does. Time, memory, FLOPs, parameters and communication are
 * sums over it. Per GPU, one micro-batch, under a layout. Units: elements, FLOP, bytes.
 */
#ifndef PT_OPS_H
#define PT_OPS_H

#include "libpt/cost.h"

enum pt_op_kind {
    PT_OP_GEMM,      /* [m,k] x [k,n], `count` of them in one launch (experts) */
    PT_OP_ATTENTION, /* the core: scores, softmax, context */
    PT_OP_MEMORY,    /* bound by bytes moved */
    PT_OP_COMM
};
enum pt_dim { PT_DIM_TP, PT_DIM_CP, PT_DIM_EP, PT_DIM_DP, PT_DIM_PP, PT_N_DIMS };

struct pt_op {
    const char *name; /* "qkv", "attention", "fc1" ... */
    enum pt_op_kind kind;
    bool expert; /* its parameters are shared by the expert group */
    bool low;    /* runs in job.precision when that is 8 or 4 bits, else in 16 */
    double m, n, k, count;
    double forward_flop; /* model FLOP, attention as the kernel computes it */
    double forward_bytes, backward_bytes; /* HBM traffic of MEMORY operators */
    double saved_bytes;            /* kept for backward when nothing is recomputed */
    double params;                 /* held by this GPU */
    enum pt_collective collective; /* COMM: forward; backward is its mirror */
    enum pt_dim dim;
    double comm_bytes;                    /* full buffer */
    double forward_count, backward_count; /* COMM: collectives per pass */
};

#define PT_MAX_OPS 48
struct pt_ops {
    unsigned n;
    struct pt_op op[PT_MAX_OPS];
};

void pt_ops_layer(const struct pt_setup *setup, const struct pt_layout *layout,
                  enum pt_layer_kind kind, struct pt_ops *ops);
void pt_ops_embedding(const struct pt_setup *setup, const struct pt_layout *layout,
                      struct pt_ops *ops);
void pt_ops_head(const struct pt_setup *setup, const struct pt_layout *layout,
                 struct pt_ops *ops);

#endif
