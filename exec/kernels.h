/* The kernels that are not matrix products, fp32, one thread. One table per instruction
 * set: kernels.c is compiled once for each. Results depend on the instruction set, never
 * on where buffers lie or how a model is split; reductions have a fixed order. Shapes: T
 * tokens, h columns, row major. "+=" kernels add to what is there. */
#ifndef PT_EXEC_KERNELS_H
#define PT_EXEC_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* AdamW's constants of one step, see optimizer.c. */
struct exec_adam {
    float beta1, beta2;
    float eps;
    float step_size;   /* learning rate / (1 - beta1^t) */
    float inv_sqrt_c2; /* 1 / sqrt(1 - beta2^t) */
    float decay;       /* 1 - lr * weight decay, for tensors that decay */
    float grad_scale;  /* clipping */
};

struct exec_kernels {
    const char *isa;
    bool (*supported)(void);
    void (*add)(float *y, const float *x, size_t n);                  /* y += x */
    void (*scale)(float *y, float a, size_t n);                       /* y *= a */
    void (*sum2)(float *y, const float *a, const float *b, size_t n); /* y = a + b */
    /* y[T,n] = y + b; db[n] += column sums of dy[T,n]. */
    void (*bias_add)(float *y, const float *b, size_t T, size_t n);
    void (*bias_grad)(float *db, const float *dy, size_t T, size_t n);
    /* y = (x - mean) * rstd * w + b; b may be NULL. mean, rstd: [T], kept for backward.
     */
    void (*layernorm)(float *y, float *mean, float *rstd, const float *x, const float *w,
                      const float *b, size_t T, size_t h, float eps);
    /* dx += ...; dw, db += ...; db may be NULL, dw may be NULL (input part only). */
    void (*layernorm_grad)(float *dx, float *dw, float *db, const float *dy,
                           const float *x, const float *mean, const float *rstd,
                           const float *w, size_t T, size_t h);
    void (*rmsnorm)(float *y, float *rstd, const float *x, const float *w, size_t T,
                    size_t h, float eps);
    void (*rmsnorm_grad)(float *dx, float *dw, const float *dy, const float *x,
                         const float *rstd, const float *w, size_t T, size_t h);
    /* GELU with tanh, as GPT-2. dx may be dy. */
    void (*gelu)(float *y, const float *x, size_t n);
    void (*gelu_grad)(float *dx, const float *dy, const float *x, size_t n);
    /* x[T,2f] holds gate then up: y[T,f] = gate * sigmoid(gate) * up. */
    void (*swiglu)(float *y, const float *x, size_t T, size_t f);
    void (*swiglu_grad)(float *dx, const float *dy, const float *x, size_t T, size_t f);
    /* Rotate-half in place on `heads` heads of d columns from x, rows `stride` apart; row
     * t has position t % seq; cs[seq, d/2, 2] holds cosines and sines. inverse: the
     * gradient. */
    void (*rope)(float *x, const float *cs, size_t T, size_t seq, size_t heads, size_t d,
                 size_t stride, bool inverse);
    /* p[rows, n] holds scaled scores of queries first.. first+rows; keys after a query
     * are masked. In place: exp(p - max); lse[rows] = log of the row's sum, l[rows] = 1 /
     * sum. */
    void (*softmax_causal)(float *p, float *lse, float *inv, size_t rows, size_t n,
                           size_t first);
    /* p = exp(p - lse), masked as above. */
    void (*softmax_again)(float *p, const float *lse, size_t rows, size_t n,
                          size_t first);
    /* ds = p * (dp - delta) * scale in place of dp. */
    void (*softmax_grad)(float *dp, const float *p, const float *delta, size_t rows,
                         size_t n, float scale);
    /* rows of y[rows, n] (stride apart) times a[row]. */
    void (*row_scale)(float *y, const float *a, size_t rows, size_t n, size_t stride);
    /* out[row] = dot of the rows of a and b (stride apart). */
    void (*row_dot)(float *out, const float *a, const float *b, size_t rows, size_t n,
                    size_t stride);
    /* Cross-entropy over the first n of `stride` columns: row maxima; sums of exp(x -
     * max) in double; then in place exp(x - lse) * scale, zero in the padding. */
    void (*row_max)(float *max, const float *x, size_t T, size_t n, size_t stride);
    void (*row_sum_exp)(double *sum, const float *x, const float *max, size_t T, size_t n,
                        size_t stride);
    void (*row_softmax)(float *x, const float *lse, size_t T, size_t n, size_t stride,
                        float scale);
    /* Sum of squares in double, lanes in a fixed order. */
    double (*sum_squares)(const float *x, size_t n);
    /* One AdamW update of n parameters. */
    void (*adamw)(float *w, float *m, float *v, const float *g, size_t n,
                  const struct exec_adam *c, bool decay);
};

/* The best table that this processor runs; `isa` picks one by name (NULL: the best), NULL
 * comes back when it is unknown or not supported. */
const struct exec_kernels *exec_kernels_find(const char *isa);
/* Every table compiled in, best first, NULL at the end. */
extern const struct exec_kernels *const exec_kernels_all[];

#endif
