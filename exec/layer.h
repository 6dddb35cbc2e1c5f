/* One decoder layer, forward and backward, on one tensor-parallel rank.
 *
 *   a  = x  + proj(attention(qkv(norm1(x))))        x, a, y: [Ts, h]
 *   y  = a  + fc2(act(fc1(norm2(a))))
 *
 * qkv and fc1 are cut by rows, proj and fc2 by columns (Shoeybi et al., Megatron-LM), so
 * each half ends in one sum over the tensor-parallel ranks: an all-reduce, or with
 * sequence parallelism (Korthikanti et al.) a reduce-scatter with an all-gather before
 * the next product. Backward comes in two parts: the input part is the chain from dy to
 * dx, the weight part may run later. */
#ifndef PT_EXEC_LAYER_H
#define PT_EXEC_LAYER_H

#include "exec/arena.h"
#include "exec/attention.h"
#include "exec/comm.h"
#include "exec/kernels.h"
#include "exec/unit.h"

/* What the model's passes need of their rank. */
struct exec_env {
    const struct exec_kernels *k;
    struct exec_shape shape;
    struct exec_group *tp;
    struct exec_arena arena;
    float *full;      /* [T, h]: gathered inputs, partial outputs */
    float *wide;      /* [T, max(f, heads d)]: gradients inside a layer */
    float *attention; /* exec_attention_scratch */
    float *rope;      /* [seq, d/2, 2] cosines and sines, NULL with learned positions */
};

enum exec_keep {
    EXEC_KEEP_ALL,
    EXEC_KEEP_NO_CORE /* recompute attention */,
    EXEC_KEEP_INPUT
};

/* What forward leaves for backward: one block of the arena. */
struct exec_saved {
    float *block;
    float *norm1, *mean1, *rstd1, *qkv, *out, *lse; /* out, lse NULL without the core */
    float *mid, *norm2, *mean2, *rstd2, *fc1, *act;
};
/* What the input part leaves for the weight part: one block. */
struct exec_pending {
    float *block;
    float *dy_full, *dmid, *dmid_full, *dfc1, *dqkv, *out, *lse;
    float *dnorm; /* gradients of norm1 and norm2, weights then biases: [4, h] */
};

enum pt_status exec_env_init(struct exec_env *env, struct pt_error *err);
void exec_env_fini(struct exec_env *env);

/* x[Ts, h] gathered to [T, h] in `to`; x itself without sequence parallelism. */
enum pt_status exec_gather_tokens(struct exec_env *env, const float *x, float *to,
                                  const float **full, struct pt_error *err);
/* Partial sums full[T, h] become this rank's [Ts, h], inside full. */
enum pt_status exec_sum_tokens(struct exec_env *env, float *full, const float **mine,
                               struct pt_error *err);
void exec_norm(const struct exec_env *env, float *y, float *mean, float *rstd,
               const float *x, const float *w, const float *b, size_t tokens);
void exec_norm_grad(const struct exec_env *env, float *dx, float *dw, float *db,
                    const float *dy, const float *x, const float *mean, const float *rstd,
                    const float *w, size_t tokens);

/* y NULL: stop before fc2, which is all that a recomputation needs. saved is allocated
 * here and released by exec_saved_free; keep must not be EXEC_KEEP_INPUT. */
enum pt_status exec_layer_forward(struct exec_env *env, const struct exec_unit *u,
                                  const float *w, const float *x, float *y,
                                  enum exec_keep keep, struct exec_saved *saved,
                                  struct pt_error *err);
/* Allocates pending; dx[Ts, h] is overwritten. */
enum pt_status exec_layer_backward_input(struct exec_env *env, const struct exec_unit *u,
                                         const float *w, const float *x, const float *dy,
                                         const struct exec_saved *saved,
                                         struct exec_pending *pending, float *dx,
                                         struct pt_error *err);
/* Adds the layer's whole gradient to g. dy as above. */
enum pt_status exec_layer_backward_weight(struct exec_env *env, const struct exec_unit *u,
                                          float *g, const float *dy,
                                          const struct exec_saved *saved,
                                          const struct exec_pending *pending,
                                          struct pt_error *err);
void exec_saved_free(struct exec_env *env, struct exec_saved *saved);
void exec_pending_free(struct exec_env *env, struct exec_pending *pending);

#endif
