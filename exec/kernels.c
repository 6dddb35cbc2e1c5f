/* Compiled once per instruction set, with EXEC_KERNELS the table's name, EXEC_ISA its
 * text and EXEC_SUPPORTED an expression that says whether this processor has it
 * (local.mk).
 *
 * Float sums run in 16 lanes; a long row is summed in blocks whose totals go to double
 * where the result feeds the loss or the norm. */
#include "config.h"

#include <math.h>

#include "exec/kernels.h"
#include "exec/vec.h"

/* The part of n that whole vectors cover. */
#define WHOLE(n) ((n) / EXEC_VL * EXEC_VL)

static void add(float *y, const float *x, size_t n)
{
    size_t i = 0;

    for (; i < WHOLE(n); i += EXEC_VL)
        vec_store(y + i, vec_load(y + i) + vec_load(x + i));
    for (; i < n; i++)
        y[i] += x[i];
}

static void scale(float *y, float a, size_t n)
{
    size_t i = 0;

    for (; i < WHOLE(n); i += EXEC_VL)
        vec_store(y + i, vec_load(y + i) * vec_set(a));
    for (; i < n; i++)
        y[i] *= a;
}

static void sum2(float *y, const float *a, const float *b, size_t n)
{
    size_t i = 0;

    for (; i < WHOLE(n); i += EXEC_VL)
        vec_store(y + i, vec_load(a + i) + vec_load(b + i));
    for (; i < n; i++)
        y[i] = a[i] + b[i];
}

static void bias_add(float *y, const float *b, size_t T, size_t n)
{
    for (size_t t = 0; t < T; t++)
        add(y + t * n, b, n);
}

static void bias_grad(float *db, const float *dy, size_t T, size_t n)
{
    for (size_t t = 0; t < T; t++)
        add(db, dy + t * n, n);
}

EXEC_INLINE vf load_n(const float *p, size_t i, size_t n)
{
    return n - i >= EXEC_VL ? vec_load(p + i) : vec_load_part(p + i, n - i);
}

EXEC_INLINE void store_n(float *p, size_t i, size_t n, vf v)
{
    if (n - i >= EXEC_VL)
        vec_store(p + i, v);
    else
        vec_store_part(p + i, v, n - i);
}

/* Ones in the lanes below n. */
EXEC_INLINE vi lanes_below(size_t n)
{
    const vi lane = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };
    int32_t k = n < EXEC_VL ? (int32_t)n : EXEC_VL;

    return lane < k;
}

static float row_sum(const float *x, size_t n)
{
    vf s = { 0 };

    for (size_t i = 0; i < n; i += EXEC_VL)
        s += load_n(x, i, n);
    return vec_sum(s);
}

static void layernorm(float *y, float *mean, float *rstd, const float *x, const float *w,
                      const float *b, size_t T, size_t h, float eps)
{
    for (size_t t = 0; t < T; t++) {
        const float *row = x + t * h;
        float m = row_sum(row, h) / (float)h, r;
        vf vm = vec_set(m), s = { 0 }, vr;

        for (size_t i = 0; i < h; i += EXEC_VL) {
            vf d = load_n(row, i, h) - vm;

            d = (vf)((vi)d & lanes_below(h - i));
            s += d * d;
        }
        r = 1.0f / sqrtf(vec_sum(s) / (float)h + eps);
        vr = vec_set(r);
        for (size_t i = 0; i < h; i += EXEC_VL) {
            vf v = (load_n(row, i, h) - vm) * vr * load_n(w, i, h);

            store_n(y + t * h, i, h, b != NULL ? v + load_n(b, i, h) : v);
        }
        mean[t] = m;
        rstd[t] = r;
    }
}

/* With n = (x - mean) rstd and g = dy w:  dx = rstd (g - avg(g) - n avg(g n)). */
static void layernorm_grad(float *dx, float *dw, float *db, const float *dy,
                           const float *x, const float *mean, const float *rstd,
                           const float *w, size_t T, size_t h)
{
    for (size_t t = 0; t < T; t++) {
        const float *px = x + t * h, *pd = dy + t * h;
        float *out = dx + t * h;
        vf vm = vec_set(mean[t]), vr = vec_set(rstd[t]), s1 = { 0 }, s2 = { 0 }, a1, a2;

        for (size_t i = 0; i < h; i += EXEC_VL) {
            vf d = load_n(pd, i, h), n = (load_n(px, i, h) - vm) * vr;
            vf g = d * load_n(w, i, h);

            s1 += g; /* padding: d and w are zero there */
            s2 += g * n;
            if (dw != NULL)
                store_n(dw, i, h, load_n(dw, i, h) + d * n);
            if (db != NULL)
                store_n(db, i, h, load_n(db, i, h) + d);
        }
        a1 = vec_set(vec_sum(s1) / (float)h);
        a2 = vec_set(vec_sum(s2) / (float)h);
        for (size_t i = 0; i < h; i += EXEC_VL) {
            vf n = (load_n(px, i, h) - vm) * vr, g = load_n(pd, i, h) * load_n(w, i, h);

            store_n(out, i, h, load_n(out, i, h) + vr * (g - a1 - n * a2));
        }
    }
}

static void rmsnorm(float *y, float *rstd, const float *x, const float *w, size_t T,
                    size_t h, float eps)
{
    for (size_t t = 0; t < T; t++) {
        const float *row = x + t * h;
        vf s = { 0 }, vr;
        float r;

        for (size_t i = 0; i < h; i += EXEC_VL) {
            vf v = load_n(row, i, h);

            s += v * v;
        }
        r = 1.0f / sqrtf(vec_sum(s) / (float)h + eps);
        vr = vec_set(r);
        for (size_t i = 0; i < h; i += EXEC_VL)
            store_n(y + t * h, i, h, load_n(row, i, h) * vr * load_n(w, i, h));
        rstd[t] = r;
    }
}

/* With n = x rstd and g = dy w:  dx = rstd (g - n avg(g n)). */
static void rmsnorm_grad(float *dx, float *dw, const float *dy, const float *x,
                         const float *rstd, const float *w, size_t T, size_t h)
{
    for (size_t t = 0; t < T; t++) {
        const float *px = x + t * h, *pd = dy + t * h;
        float *out = dx + t * h;
        vf vr = vec_set(rstd[t]), s = { 0 }, a;

        for (size_t i = 0; i < h; i += EXEC_VL) {
            vf d = load_n(pd, i, h), n = load_n(px, i, h) * vr;

            s += d * load_n(w, i, h) * n;
            if (dw != NULL)
                store_n(dw, i, h, load_n(dw, i, h) + d * n);
        }
        a = vec_set(vec_sum(s) / (float)h);
        for (size_t i = 0; i < h; i += EXEC_VL) {
            vf n = load_n(px, i, h) * vr, g = load_n(pd, i, h) * load_n(w, i, h);

            store_n(out, i, h, load_n(out, i, h) + vr * (g - n * a));
        }
    }
}

/* 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), Hendrycks and Gimpel 2016, as GPT-2.
 */
#define GELU_C 0.7978845608028654f
#define GELU_A 0.044715f

static void gelu(float *y, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i += EXEC_VL) {
        vf v = load_n(x, i, n), half = vec_set(0.5f) * v;
        vf t = vec_tanh(vec_set(GELU_C) * (v + vec_set(GELU_A) * v * v * v));

        store_n(y, i, n, half + half * t);
    }
}

static void gelu_grad(float *dx, const float *dy, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i += EXEC_VL) {
        vf v = load_n(x, i, n), one = vec_set(1.0f), half = vec_set(0.5f);
        vf t = vec_tanh(vec_set(GELU_C) * (v + vec_set(GELU_A) * v * v * v));
        vf d = half * (one + t) + half * v * (one - t * t) * vec_set(GELU_C) *
                                      (one + vec_set(3.0f * GELU_A) * v * v);

        store_n(dx, i, n, d * load_n(dy, i, n));
    }
}

EXEC_INLINE vf sigmoid(vf x)
{
    return vec_set(1.0f) / (vec_set(1.0f) + vec_exp(-x));
}

static void swiglu(float *y, const float *x, size_t T, size_t f)
{
    for (size_t t = 0; t < T; t++) {
        const float *gate = x + t * 2 * f, *up = gate + f;

        for (size_t i = 0; i < f; i += EXEC_VL) {
            vf g = load_n(gate, i, f);

            store_n(y + t * f, i, f, g * sigmoid(g) * load_n(up, i, f));
        }
    }
}

static void swiglu_grad(float *dx, const float *dy, const float *x, size_t T, size_t f)
{
    for (size_t t = 0; t < T; t++) {
        const float *gate = x + t * 2 * f, *up = gate + f;
        float *dgate = dx + t * 2 * f, *dup = dgate + f;

        for (size_t i = 0; i < f; i += EXEC_VL) {
            vf g = load_n(gate, i, f), u = load_n(up, i, f), d = load_n(dy + t * f, i, f);
            vf s = sigmoid(g), one = vec_set(1.0f);

            store_n(dgate, i, f, d * u * s * (one + g * (one - s)));
            store_n(dup, i, f, d * g * s);
        }
    }
}

static void rope(float *x, const float *cs, size_t T, size_t seq, size_t heads, size_t d,
                 size_t stride, bool inverse)
{
    const size_t half = d / 2;

    for (size_t t = 0; t < T; t++) {
        const float *c = cs + t % seq * d;

        for (size_t k = 0; k < heads; k++) {
            float *p = x + t * stride + k * d;

            for (size_t i = 0; i < half; i++) {
                float co = c[2 * i], si = inverse ? -c[2 * i + 1] : c[2 * i + 1];
                float a = p[i], b = p[i + half];

                p[i] = a * co - b * si;
                p[i + half] = b * co + a * si;
            }
        }
    }
}

/* Keys that query `row` may see. */
EXEC_INLINE size_t visible(size_t row, size_t first, size_t n)
{
    return first + row + 1 < n ? first + row + 1 : n;
}

EXEC_INLINE float max_of(const float *x, size_t n)
{
    vf m = vec_set(-INFINITY);

    for (size_t i = 0; i < n; i += EXEC_VL)
        m = vec_max(vec_select(lanes_below(n - i), load_n(x, i, n), m), m);
    return vec_hmax(m);
}

static void softmax_causal(float *p, float *lse, float *inv, size_t rows, size_t n,
                           size_t first)
{
    for (size_t r = 0; r < rows; r++) {
        float *row = p + r * n, m, total;
        size_t k = visible(r, first, n);
        vf s = { 0 };

        m = max_of(row, k);
        for (size_t i = 0; i < k; i += EXEC_VL) {
            vf e = vec_exp(load_n(row, i, k) - vec_set(m));

            e = (vf)((vi)e & lanes_below(k - i));
            store_n(row, i, k, e);
            s += e;
        }
        memset(row + k, 0, (n - k) * sizeof(*row));
        total = vec_sum(s);
        lse[r] = m + logf(total);
        inv[r] = 1.0f / total;
    }
}

static void softmax_again(float *p, const float *lse, size_t rows, size_t n, size_t first)
{
    for (size_t r = 0; r < rows; r++) {
        float *row = p + r * n;
        size_t k = visible(r, first, n);

        for (size_t i = 0; i < k; i += EXEC_VL)
            store_n(row, i, k, vec_exp(load_n(row, i, k) - vec_set(lse[r])));
        memset(row + k, 0, (n - k) * sizeof(*row));
    }
}

static void softmax_grad(float *dp, const float *p, const float *delta, size_t rows,
                         size_t n, float a)
{
    for (size_t r = 0; r < rows; r++) {
        float *d = dp + r * n;
        const float *q = p + r * n;

        for (size_t i = 0; i < n; i += EXEC_VL)
            store_n(d, i, n,
                    load_n(q, i, n) * (load_n(d, i, n) - vec_set(delta[r])) * vec_set(a));
    }
}

static void row_scale(float *y, const float *a, size_t rows, size_t n, size_t stride)
{
    for (size_t r = 0; r < rows; r++)
        scale(y + r * stride, a[r], n);
}

static void row_dot(float *out, const float *a, const float *b, size_t rows, size_t n,
                    size_t stride)
{
    for (size_t r = 0; r < rows; r++) {
        vf s = { 0 };

        for (size_t i = 0; i < n; i += EXEC_VL)
            s += load_n(a + r * stride, i, n) * load_n(b + r * stride, i, n);
        out[r] = vec_sum(s);
    }
}

static void row_max(float *max, const float *x, size_t T, size_t n, size_t stride)
{
    for (size_t t = 0; t < T; t++)
        max[t] = max_of(x + t * stride, n);
}

#define SUM_BLOCK 1024 /* floats summed in lanes before the total goes to double */

static void row_sum_exp(double *sum, const float *x, const float *max, size_t T, size_t n,
                        size_t stride)
{
    for (size_t t = 0; t < T; t++) {
        const float *row = x + t * stride;
        double total = 0;

        for (size_t i = 0; i < n; i += SUM_BLOCK) {
            size_t end = n - i < SUM_BLOCK ? n : i + SUM_BLOCK;
            vf s = { 0 };

            for (size_t k = i; k < end; k += EXEC_VL) {
                vf e = vec_exp(load_n(row, k, end) - vec_set(max[t]));

                s += (vf)((vi)e & lanes_below(end - k));
            }
            total += (double)vec_sum(s);
        }
        sum[t] = total;
    }
}

static void row_softmax(float *x, const float *lse, size_t T, size_t n, size_t stride,
                        float a)
{
    for (size_t t = 0; t < T; t++) {
        float *row = x + t * stride;

        for (size_t i = 0; i < n; i += EXEC_VL)
            store_n(row, i, n, vec_exp(load_n(row, i, n) - vec_set(lse[t])) * vec_set(a));
        memset(row + n, 0, (stride - n) * sizeof(*row));
    }
}

typedef double vd __attribute__((vector_size(64)));

static double sum_squares(const float *x, size_t n)
{
    vd s = { 0 };
    double lane[8], total = 0;
    size_t i = 0;

    for (; i + 8 <= n; i += 8) {
        float f[8];
        vd v;

        memcpy(f, x + i, sizeof(f));
        for (int k = 0; k < 8; k++)
            v[k] = (double)f[k];
        s += v * v;
    }
    memcpy(lane, &s, sizeof(lane));
    for (int k = 0; k < 8; k++)
        total += lane[k];
    for (; i < n; i++)
        total += (double)x[i] * (double)x[i];
    return total;
}

EXEC_INLINE vf vec_sqrt(vf x)
{
    float f[EXEC_VL];

    memcpy(f, &x, sizeof(f));
    for (int i = 0; i < EXEC_VL; i++)
        f[i] = sqrtf(f[i]);
    memcpy(&x, f, sizeof(f));
    return x;
}

/* Loshchilov and Hutter, decoupled weight decay; the bias corrections are in step_size
 * and inv_sqrt_c2:  w <- decay w - step_size m / (sqrt(v) inv_sqrt_c2 + eps).
 *
 * Whole vectors only, in one body: which products are fused with which sums is the
 * compiler's choice, so that every element must pass through the same instructions. */
static EXEC_ONE_BODY void adamw_whole(float *w, float *m, float *v, const float *g,
                                      size_t n, const struct exec_adam *c, bool decay)
{
    const vf b1 = vec_set(c->beta1), b2 = vec_set(c->beta2), one = vec_set(1.0f);
    const vf keep = vec_set(decay ? c->decay : 1.0f), clip = vec_set(c->grad_scale);

    for (size_t i = 0; i < n; i += EXEC_VL) {
        vf gi = vec_load(g + i) * clip;
        vf mi = b1 * vec_load(m + i) + (one - b1) * gi;
        vf vi_ = b2 * vec_load(v + i) + (one - b2) * gi * gi;
        vf d = vec_sqrt(vi_) * vec_set(c->inv_sqrt_c2) + vec_set(c->eps);

        vec_store(m + i, mi);
        vec_store(v + i, vi_);
        vec_store(w + i, keep * vec_load(w + i) - vec_set(c->step_size) * mi / d);
    }
}

/* The same bits wherever the range is cut: the rest travels through padded vectors. */
static void adamw(float *w, float *m, float *v, const float *g, size_t n,
                  const struct exec_adam *c, bool decay)
{
    const size_t whole = n - n % EXEC_VL, rest = n - whole;
    float pad[4][EXEC_VL] = { { 0 } };
    float *part[3] = { w + whole, m + whole, v + whole };

    adamw_whole(w, m, v, g, whole, c, decay);
    if (rest == 0)
        return;
    for (int i = 0; i < 3; i++)
        memcpy(pad[i], part[i], rest * sizeof(float));
    memcpy(pad[3], g + whole, rest * sizeof(float));
    adamw_whole(pad[0], pad[1], pad[2], pad[3], EXEC_VL, c, decay);
    for (int i = 0; i < 3; i++)
        memcpy(part[i], pad[i], rest * sizeof(float));
}

static bool supported(void)
{
    return EXEC_SUPPORTED;
}

extern const struct exec_kernels EXEC_KERNELS;
const struct exec_kernels EXEC_KERNELS = {
    .isa = EXEC_ISA,
    .supported = supported,
    .add = add,
    .scale = scale,
    .sum2 = sum2,
    .bias_add = bias_add,
    .bias_grad = bias_grad,
    .layernorm = layernorm,
    .layernorm_grad = layernorm_grad,
    .rmsnorm = rmsnorm,
    .rmsnorm_grad = rmsnorm_grad,
    .gelu = gelu,
    .gelu_grad = gelu_grad,
    .swiglu = swiglu,
    .swiglu_grad = swiglu_grad,
    .rope = rope,
    .softmax_causal = softmax_causal,
    .softmax_again = softmax_again,
    .softmax_grad = softmax_grad,
    .row_scale = row_scale,
    .row_dot = row_dot,
    .row_max = row_max,
    .row_sum_exp = row_sum_exp,
    .row_softmax = row_softmax,
    .sum_squares = sum_squares,
    .adamw = adamw,
};
