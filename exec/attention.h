/* Causal attention, multi-head or grouped-query, tiled over blocks of queries: the scores
 * of one block exist at a time, and only the output and a log-sum per row are kept for
 * backward (Dao et al., FlashAttention, section 3; here a block sees all its keys at
 * once). */
#ifndef PT_EXEC_ATTENTION_H
#define PT_EXEC_ATTENTION_H

#include "exec/kernels.h"

struct exec_attention {
    const struct exec_kernels *k;
    size_t batch, seq, heads, kv_heads, d;
};

/* Floats of scratch that forward and backward need. */
size_t exec_attention_scratch(const struct exec_attention *a);
/* qkv[batch * seq, (heads + 2 kv_heads) d] holds q, k, v side by side; out[batch * seq,
 * heads d]; lse[heads, batch * seq]. */
void exec_attention_forward(const struct exec_attention *a, const float *qkv, float *out,
                            float *lse, float *scratch);
/* dqkv is overwritten. */
void exec_attention_backward(const struct exec_attention *a, const float *qkv,
                             const float *out, const float *lse, const float *d_out,
                             float *dqkv, float *scratch);

#endif
