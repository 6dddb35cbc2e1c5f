/* Every kernel, in every instruction set that this processor has, against plain double
 * arithmetic; gradients against differences of it. */
#include "config.h"

#include <math.h>
#include <string.h>

#include "exec/attention.h"
#include "exec/blas.h"
#include "exec/rng.h"
#include "tests/unit/unit.h"

#define T 3
#define H 37 /* whole vectors and a rest */
#define N (T * H)

static const struct exec_kernels *k;
static uint64_t counter;

static void fill(float *x, size_t n, double scale)
{
    for (size_t i = 0; i < n; i++)
        x[i] = (float)(scale * exec_rng_normal(7, 0, counter++));
}

static void close_to(const float *got, const double *want, size_t n, double tolerance)
{
    for (size_t i = 0; i < n; i++)
        ck_assert_msg(fabs((double)got[i] - want[i]) <= tolerance * (1 + fabs(want[i])),
                      "%s [%zu]: %.9g, want %.9g", k->isa, i, (double)got[i], want[i]);
}

/* A loss: sum of y * c. Functions of (x, w, b) with n inputs, in double. */
typedef void fn(const double *x, const double *w, const double *b, double *y);

static void norm_ref(const double *x, const double *w, const double *b, double *y,
                     int rms)
{
    for (int t = 0; t < T; t++) {
        double m = 0, v = 0;

        for (int i = 0; i < H && !rms; i++)
            m += x[t * H + i] / H;
        for (int i = 0; i < H; i++)
            v += (x[t * H + i] - m) * (x[t * H + i] - m) / H;
        for (int i = 0; i < H; i++)
            y[t * H + i] = (x[t * H + i] - m) / sqrt(v + 1e-5) * w[i] + (rms ? 0 : b[i]);
    }
}

static void layernorm_ref(const double *x, const double *w, const double *b, double *y)
{
    norm_ref(x, w, b, y, 0);
}

static void rmsnorm_ref(const double *x, const double *w, const double *b, double *y)
{
    norm_ref(x, w, b, y, 1);
}

static void gelu_ref(const double *x, const double *w, const double *b, double *y)
{
    (void)w, (void)b;
    for (int i = 0; i < N; i++)
        y[i] = 0.5 * x[i] *
               (1 + tanh(sqrt(2 / acos(-1.0)) * (x[i] + 0.044715 * pow(x[i], 3))));
}

/* x[T, 2H] -> y[T, H] */
static void swiglu_ref(const double *x, const double *w, const double *b, double *y)
{
    (void)w, (void)b;
    for (int t = 0; t < T; t++)
        for (int i = 0; i < H; i++) {
            double g = x[t * 2 * H + i];

            y[t * H + i] = g / (1 + exp(-g)) * x[t * 2 * H + H + i];
        }
}

/* d loss / d p[i] by central differences, p one of the inputs. */
static void differences(fn *f, const double *x, const double *w, const double *b,
                        const float *c, double *p, size_t n, double *out)
{
    double hi[N], lo[N];

    for (size_t i = 0; i < n; i++) {
        double old = p[i], e = 1e-5;

        p[i] = old + e;
        f(x, w, b, hi);
        p[i] = old - e;
        f(x, w, b, lo);
        p[i] = old;
        out[i] = 0;
        for (int j = 0; j < N; j++)
            out[i] += (hi[j] - lo[j]) / (2 * e) * (double)c[j];
    }
}

static void widen(double *to, const float *from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] = (double)from[i];
}

struct inputs {
    float x[2 * N], w[H], b[H], c[N], y[N], dx[2 * N], dw[H], db[H], mean[T], rstd[T];
    double dx_[2 * N], dw_[H], db_[H], X[2 * N], W[H], B[H], Y[N];
};

static void inputs_init(struct inputs *in)
{
    memset(in, 0, sizeof(*in));
    fill(in->x, 2 * N, 2);
    fill(in->w, H, 1);
    fill(in->b, H, 1);
    fill(in->c, N, 1);
    widen(in->X, in->x, 2 * N);
    widen(in->W, in->w, H);
    widen(in->B, in->b, H);
}

START_TEST(norms_and_their_gradients)
{
    for (size_t i = 0; exec_kernels_all[i] != NULL; i++)
        for (int rms = 0; rms < 2; rms++) {
            fn *f = rms ? rmsnorm_ref : layernorm_ref;
            struct inputs in;

            k = exec_kernels_all[i];
            if (!k->supported())
                continue;
            inputs_init(&in);
            if (rms) {
                k->rmsnorm(in.y, in.rstd, in.x, in.w, T, H, 1e-5f);
                k->rmsnorm_grad(in.dx, in.dw, in.c, in.x, in.rstd, in.w, T, H);
            } else {
                k->layernorm(in.y, in.mean, in.rstd, in.x, in.w, in.b, T, H, 1e-5f);
                k->layernorm_grad(in.dx, in.dw, in.db, in.c, in.x, in.mean, in.rstd, in.w,
                                  T, H);
            }
            f(in.X, in.W, in.B, in.Y);
            close_to(in.y, in.Y, N, 2e-6);
            differences(f, in.X, in.W, in.B, in.c, in.X, N, in.dx_);
            differences(f, in.X, in.W, in.B, in.c, in.W, H, in.dw_);
            differences(f, in.X, in.W, in.B, in.c, in.B, H, in.db_);
            close_to(in.dx, in.dx_, N, 1e-5);
            close_to(in.dw, in.dw_, H, 1e-5);
            close_to(in.db, in.db_, H, 1e-5);
        }
}
END_TEST

START_TEST(activations_and_their_gradients)
{
    for (size_t i = 0; exec_kernels_all[i] != NULL; i++)
        for (int gated = 0; gated < 2; gated++) {
            fn *f = gated ? swiglu_ref : gelu_ref;
            struct inputs in;

            k = exec_kernels_all[i];
            if (!k->supported())
                continue;
            inputs_init(&in);
            if (gated) {
                k->swiglu(in.y, in.x, T, H);
                k->swiglu_grad(in.dx, in.c, in.x, T, H);
            } else {
                k->gelu(in.y, in.x, N);
                k->gelu_grad(in.dx, in.c, in.x, N);
            }
            f(in.X, in.W, in.B, in.Y);
            close_to(in.y, in.Y, N, 1e-6);
            differences(f, in.X, in.W, in.B, in.c, in.X, gated ? 2 * N : N, in.dx_);
            close_to(in.dx, in.dx_, gated ? 2 * N : N, 1e-5);
        }
}
END_TEST

/* Extremes that a training run meets: saturated activations stay finite, NaN is not
 * hidden. */
START_TEST(extremes)
{
    for (size_t i = 0; exec_kernels_all[i] != NULL; i++) {
        const float x[6] = { -1e4f, -100, -20, 0, 100, 1e4f };
        const double want[6] = { 0, 0, 0, 0, 100, 1e4 };
        float y[6], bad = NAN, out, max[1] = { 0 };
        double sum;

        k = exec_kernels_all[i];
        if (!k->supported())
            continue;
        k->gelu(y, x, 6);
        close_to(y, want, 6, 1e-6);
        k->gelu(&out, &bad, 1);
        ck_assert(isnan(out));
        k->row_sum_exp(&sum, &bad, max, 1, 1, 1);
        ck_assert(isnan(sum));
    }
}
END_TEST

START_TEST(cross_entropy_rows)
{
    for (size_t i = 0; exec_kernels_all[i] != NULL; i++) {
        float x[2 * H], max[2], lse[2];
        double sum[2], p[2 * H] = { 0 };
        size_t n = H - 3; /* three columns of padding */

        k = exec_kernels_all[i];
        if (!k->supported())
            continue;
        fill(x, 2 * H, 5);
        k->row_max(max, x, 2, n, H);
        k->row_sum_exp(sum, x, max, 2, n, H);
        for (size_t t = 0; t < 2; t++) {
            double m = -HUGE_VAL, s = 0;

            for (size_t j = 0; j < n; j++)
                m = fmax(m, (double)x[t * H + j]);
            ck_assert(m == (double)max[t]);
            for (size_t j = 0; j < n; j++)
                s += exp((double)x[t * H + j] - m);
            ck_assert_double_eq_tol(sum[t], s, 1e-6 * s);
            for (size_t j = 0; j < n; j++)
                p[t * H + j] = exp((double)x[t * H + j] - m) / s * 0.5;
            lse[t] = (float)(m + log(s));
        }
        k->row_softmax(x, lse, 2, n, H, 0.5f);
        close_to(x, p, 2 * H, 2e-6);
    }
}
END_TEST

START_TEST(rope_turns_back)
{
    for (size_t i = 0; exec_kernels_all[i] != NULL; i++) {
        float x[4 * 3 * 8], cs[2 * 8];
        double want[4 * 3 * 8];

        k = exec_kernels_all[i];
        if (!k->supported())
            continue;
        fill(x, 96, 1);
        widen(want, x, 96);
        for (int p = 0; p < 2; p++)
            for (int j = 0; j < 4; j++) {
                cs[p * 8 + 2 * j] = (float)cos(p * pow(0.1, j));
                cs[p * 8 + 2 * j + 1] = (float)sin(p * pow(0.1, j));
            }
        /* 4 tokens of 3 heads, two of which turn; positions 0, 1, 0, 1 */
        k->rope(x, cs, 4, 2, 2, 8, 24, false);
        ck_assert(fabs((double)x[24] - (want[24] * cos(1) - want[28] * sin(1))) < 1e-6);
        ck_assert((double)x[24 + 16] == want[24 + 16]);
        k->rope(x, cs, 4, 2, 2, 8, 24, true);
        close_to(x, want, 96, 1e-6);
    }
}
END_TEST

#define SEQ   130 /* more than one block of queries */
#define HEADS 4
#define KV    2
#define D     6
#define WIDTH ((HEADS + 2 * KV) * D)

/* Loss sum(out * c), in double. */
static double attention_ref(const double *qkv, const float *c)
{
    double loss = 0, p[SEQ];

    for (int h = 0; h < HEADS; h++)
        for (int q = 0; q < SEQ; q++) {
            int kv = h / (HEADS / KV);
            double s = 0;

            for (int j = 0; j <= q; j++) {
                p[j] = 0;
                for (int d = 0; d < D; d++)
                    p[j] += qkv[q * WIDTH + h * D + d] *
                            qkv[j * WIDTH + (HEADS + kv) * D + d];
                p[j] = exp(p[j] / sqrt(D));
                s += p[j];
            }
            for (int j = 0; j <= q; j++)
                for (int d = 0; d < D; d++)
                    loss += p[j] / s * qkv[j * WIDTH + (HEADS + KV + kv) * D + d] *
                            (double)c[q * HEADS * D + h * D + d];
        }
    return loss;
}

START_TEST(attention_and_its_gradient)
{
    static float qkv[SEQ * WIDTH], c[SEQ * HEADS * D], out[SEQ * HEADS * D],
        lse[HEADS * SEQ], dqkv[SEQ * WIDTH], scratch[2 * 128 * SEQ + 256];
    static double wide[SEQ * WIDTH];
    struct exec_attention a = { NULL, 1, SEQ, HEADS, KV, D };

    for (size_t i = 0; exec_kernels_all[i] != NULL; i++) {
        double got = 0;

        a.k = k = exec_kernels_all[i];
        if (!k->supported())
            continue;
        ck_assert_uint_le(exec_attention_scratch(&a), sizeof(scratch) / sizeof(*scratch));
        fill(qkv, SEQ * WIDTH, 1);
        fill(c, SEQ * HEADS * D, 1);
        widen(wide, qkv, SEQ * WIDTH);
        exec_attention_forward(&a, qkv, out, lse, scratch);
        for (size_t j = 0; j < SEQ * HEADS * D; j++)
            got += (double)out[j] * (double)c[j];
        ck_assert_double_eq_tol(got, attention_ref(wide, c), 1e-4);
        exec_attention_backward(&a, qkv, out, lse, c, dqkv, scratch);
        for (size_t j = 0; j < SEQ * WIDTH; j += 101) {
            double old = wide[j], e = 1e-4, hi, lo;

            wide[j] = old + e;
            hi = attention_ref(wide, c);
            wide[j] = old - e;
            lo = attention_ref(wide, c);
            wide[j] = old;
            ck_assert_msg(fabs((hi - lo) / (2 * e) - (double)dqkv[j]) < 2e-5,
                          "[%zu] %g %g", j, (hi - lo) / (2 * e), (double)dqkv[j]);
        }
    }
}
END_TEST

START_TEST(adamw_as_published)
{
    for (size_t i = 0; exec_kernels_all[i] != NULL; i++) {
        const struct exec_adam c = { 0.9f, 0.95f, 1e-8f, 0.01f, 1.5f, 0.999f, 0.5f };
        float w[H], m[H], v[H], g[H];
        double want[H], sum = 0;

        k = exec_kernels_all[i];
        if (!k->supported())
            continue;
        fill(w, H, 1);
        fill(g, H, 1);
        for (int j = 0; j < H; j++) {
            double mj, vj, gj = (double)g[j] * 0.5;

            m[j] = 0.25f;
            v[j] = 0.5f;
            mj = 0.9 * 0.25 + 0.1 * gj;
            vj = 0.95 * 0.5 + 0.05 * gj * gj;
            want[j] = (double)w[j] * 0.999 - 0.01 * mj / (sqrt(vj) * 1.5 + 1e-8);
            sum += (double)g[j] * (double)g[j];
        }
        k->adamw(w, m, v, g, H, &c, true);
        close_to(w, want, H, 1e-6);
        ck_assert_double_eq_tol(k->sum_squares(g, H), sum, 1e-12 * sum);
    }
}
END_TEST

/* A cut in the middle changes no bit: what sharding relies on. */
START_TEST(adamw_does_not_see_cuts)
{
    const struct exec_adam c = { 0.9f, 0.95f, 1e-8f, 0.01f, 1.5f, 0.999f, 0.5f };

    for (size_t i = 0; exec_kernels_all[i] != NULL; i++)
        for (size_t cut = 0; cut <= H; cut++) {
            float w[2][H], m[2][H], v[2][H], g[H];

            k = exec_kernels_all[i];
            if (!k->supported())
                continue;
            fill(w[0], H, 1);
            fill(m[0], H, 1);
            fill(g, H, 1);
            for (int j = 0; j < H; j++)
                v[0][j] = m[0][j] * m[0][j];
            memcpy(w[1], w[0], sizeof(w[0]));
            memcpy(m[1], m[0], sizeof(m[0]));
            memcpy(v[1], v[0], sizeof(v[0]));
            k->adamw(w[0], m[0], v[0], g, H, &c, true);
            k->adamw(w[1], m[1], v[1], g, cut, &c, true);
            k->adamw(w[1] + cut, m[1] + cut, v[1] + cut, g + cut, H - cut, &c, true);
            ck_assert(memcmp(w[0], w[1], sizeof(w[0])) == 0);
            ck_assert(memcmp(v[0], v[1], sizeof(v[0])) == 0);
        }
}
END_TEST

START_TEST(products)
{
    float a[5 * 4], b[4 * 3], c[5 * 3], at[4 * 5], bt[3 * 4];

    fill(a, 20, 1);
    fill(b, 12, 1);
    for (int i = 0; i < 5; i++)
        for (int l = 0; l < 4; l++)
            at[l * 5 + i] = a[i * 4 + l];
    for (int l = 0; l < 4; l++)
        for (int j = 0; j < 3; j++)
            bt[j * 4 + l] = b[l * 3 + j];
    for (int mode = 0; mode < 4; mode++) {
        for (int i = 0; i < 15; i++)
            c[i] = 1;
        exec_gemm(mode & 1, mode & 2, 5, 3, 4, 2, mode & 1 ? at : a, mode & 1 ? 5 : 4,
                  mode & 2 ? bt : b, mode & 2 ? 4 : 3, 0.5f, c, 3);
        for (int i = 0; i < 5; i++)
            for (int j = 0; j < 3; j++) {
                double s = 0.5;

                for (int l = 0; l < 4; l++)
                    s += 2 * (double)a[i * 4 + l] * (double)b[l * 3 + j];
                ck_assert_double_eq_tol((double)c[i * 3 + j], s, 1e-5);
            }
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("kernels");
    TCase *t = tcase_create("kernels");

    tcase_set_timeout(t, 60);
    tcase_add_test(t, norms_and_their_gradients);
    tcase_add_test(t, activations_and_their_gradients);
    tcase_add_test(t, extremes);
    tcase_add_test(t, cross_entropy_rows);
    tcase_add_test(t, rope_turns_back);
    tcase_add_test(t, attention_and_its_gradient);
    tcase_add_test(t, adamw_as_published);
    tcase_add_test(t, adamw_does_not_see_cuts);
    tcase_add_test(t, products);
    suite_add_tcase(s, t);
    return unit_run(s);
}
