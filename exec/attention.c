#include "config.h"

#include <math.h>
#include <string.h>

#include "exec/attention.h"
#include "exec/blas.h"

#define BLOCK                                                                            \
    128 /* queries at a time: half a block of masked scores is wasted per block */

static size_t block_rows(const struct exec_attention *a)
{
    return a->seq < BLOCK ? a->seq : BLOCK;
}

size_t exec_attention_scratch(const struct exec_attention *a)
{
    return 2 * block_rows(a) * a->seq + 2 * block_rows(a);
}

/* Where one head of one sequence lies. */
struct view {
    size_t stride, out_stride;
    const float *q, *k, *v;
    size_t q_col, k_col, v_col; /* the same columns in dqkv */
};

static void view_init(const struct exec_attention *a, const float *qkv, size_t b,
                      size_t head, struct view *w)
{
    size_t kv = head / (a->heads / a->kv_heads);

    w->stride = (a->heads + 2 * a->kv_heads) * a->d;
    w->out_stride = a->heads * a->d;
    w->q_col = head * a->d;
    w->k_col = (a->heads + kv) * a->d;
    w->v_col = (a->heads + a->kv_heads + kv) * a->d;
    w->q = qkv + b * a->seq * w->stride + w->q_col;
    w->k = qkv + b * a->seq * w->stride + w->k_col;
    w->v = qkv + b * a->seq * w->stride + w->v_col;
}

static void head_forward(const struct exec_attention *a, const struct view *w, float *out,
                         float *lse, float *scratch)
{
    const float scale = 1.0f / sqrtf((float)a->d);
    float *p = scratch, *inv = scratch + 2 * block_rows(a) * a->seq;

    for (size_t q = 0; q < a->seq; q += BLOCK) {
        size_t rows = a->seq - q < BLOCK ? a->seq - q : BLOCK, n = q + rows;
        float *o = out + q * w->out_stride;

        exec_gemm(false, true, rows, n, a->d, scale, w->q + q * w->stride, w->stride,
                  w->k, w->stride, 0, p, n);
        a->k->softmax_causal(p, lse + q, inv, rows, n, q);
        exec_gemm(false, false, rows, a->d, n, 1, p, n, w->v, w->stride, 0, o,
                  w->out_stride);
        a->k->row_scale(o, inv, rows, a->d, w->out_stride);
    }
}

void exec_attention_forward(const struct exec_attention *a, const float *qkv, float *out,
                            float *lse, float *scratch)
{
    for (size_t b = 0; b < a->batch; b++)
        for (size_t head = 0; head < a->heads; head++) {
            struct view w;

            view_init(a, qkv, b, head, &w);
            head_forward(a, &w, out + b * a->seq * w.out_stride + head * a->d,
                         lse + head * a->batch * a->seq + b * a->seq, scratch);
        }
}

/* With P the probabilities and D[row] = dO . O:  dV = P' dO, dP = dO V', dS = P (dP - D)
 * scale, dQ = dS K, dK = dS' Q. */
static void head_backward(const struct exec_attention *a, const struct view *w,
                          const float *out, const float *lse, const float *d_out,
                          float *dqkv, float *scratch)
{
    const float scale = 1.0f / sqrtf((float)a->d);
    const size_t s = w->stride, os = w->out_stride;
    float *p = scratch, *dp = p + block_rows(a) * a->seq;
    float *delta = dp + block_rows(a) * a->seq;

    for (size_t q = 0; q < a->seq; q += BLOCK) {
        size_t rows = a->seq - q < BLOCK ? a->seq - q : BLOCK, n = q + rows;
        const float *qb = w->q + q * s, *dob = d_out + q * os;

        a->k->row_dot(delta, dob, out + q * os, rows, a->d, os);
        exec_gemm(false, true, rows, n, a->d, scale, qb, s, w->k, s, 0, p, n);
        a->k->softmax_again(p, lse + q, rows, n, q);
        exec_gemm(true, false, n, a->d, rows, 1, p, n, dob, os, 1, dqkv + w->v_col, s);
        exec_gemm(false, true, rows, n, a->d, 1, dob, os, w->v, s, 0, dp, n);
        a->k->softmax_grad(dp, p, delta, rows, n, scale);
        exec_gemm(false, false, rows, a->d, n, 1, dp, n, w->k, s, 0,
                  dqkv + q * s + w->q_col, s);
        exec_gemm(true, false, n, a->d, rows, 1, dp, n, qb, s, 1, dqkv + w->k_col, s);
    }
}

void exec_attention_backward(const struct exec_attention *a, const float *qkv,
                             const float *out, const float *lse, const float *d_out,
                             float *dqkv, float *scratch)
{
    const size_t width = (a->heads + 2 * a->kv_heads) * a->d;

    memset(dqkv, 0, a->batch * a->seq * width * sizeof(*dqkv));
    for (size_t b = 0; b < a->batch; b++)
        for (size_t head = 0; head < a->heads; head++) {
            size_t at = b * a->seq * a->heads * a->d + head * a->d;
            struct view w;

            view_init(a, qkv, b, head, &w);
            head_backward(a, &w, out + at, lse + head * a->batch * a->seq + b * a->seq,
                          d_out + at, dqkv + b * a->seq * w.stride, scratch);
        }
}
