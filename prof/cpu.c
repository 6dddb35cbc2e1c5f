/* Each figure is the best of repeated runs: what the machine can do, not what others
 * leave of it. */
#include "config.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "exec/attention.h"
#include "exec/blas.h"
#include "exec/comm_local.h"
#include "exec/kernels.h"
#include "prof/cpu.h"

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

struct bench {
    const struct exec_kernels *k;
    float *x, *y, *z, *w; /* FLOATS each */
    double each_s;        /* time for one figure */
};
#define FLOATS ((size_t)1 << 22)

typedef void work(struct bench *b, const size_t *n);

/* Best seconds of one call. */
static double best(struct bench *b, work *f, const size_t *n)
{
    double end = now_s() + b->each_s, least = HUGE_VAL;
    int runs = 0;

    while (runs < 5 || (now_s() < end && runs < 100000)) {
        double t = now_s();

        f(b, n);
        t = now_s() - t;
        least = t < least ? t : least;
        runs++;
    }
    return least;
}

static void gemm(struct bench *b, const size_t *n)
{
    exec_gemm(false, true, n[0], n[1], n[2], 1, b->x, n[2], b->y, n[2], 0, b->z, n[1]);
}

static double gemm_s(struct bench *b, size_t m, size_t n, size_t k)
{
    const size_t sizes[] = { m, n, k };

    return best(b, gemm, sizes);
}

/* t = floor + flop / rate * (K + half) / K: the rate at large K, half from one quarter of
 * a tile. */
static void measure_gemm(struct bench *b, struct prof_cpu *p)
{
    static const size_t large[][3] = { { 1024, 1024, 1024 },
                                       { 512, 2048, 1024 },
                                       { 1024, 3072, 768 } };
    const double m = 512, n = 512, k = 64;
    double slow;

    for (size_t i = 0; i < 3; i++) {
        const size_t *s = large[i];
        double flop = 2.0 * (double)s[0] * (double)s[1] * (double)s[2];

        p->gemm_flops = fmax(p->gemm_flops, flop / gemm_s(b, s[0], s[1], s[2]));
    }
    p->gemm_floor_s = gemm_s(b, 8, 8, 8);
    slow = gemm_s(b, (size_t)m, (size_t)n, (size_t)k) - p->gemm_floor_s;
    p->gemm_k_half = fmax(0, k * (slow * p->gemm_flops / (2 * m * n * k) - 1));
}

/* The four products of a layer, for few tokens and many: what the formula above is held
 * against. */
static void measure_curve(struct bench *b, struct prof_cpu *p)
{
    static const unsigned tokens[] = { 64, 256, 1024 }, h = 512;
    const unsigned shape[][2] = { { 3 * h, h }, { h, h }, { 4 * h, h }, { h, 4 * h } };

    for (unsigned i = 0; i < PROF_POINTS; i++) {
        struct prof_point *q = &p->curve[i];

        q->m = tokens[i / 4];
        q->n = shape[i % 4][0];
        q->k = shape[i % 4][1];
        q->flops = 2.0 * q->m * q->n * q->k / gemm_s(b, q->m, q->n, q->k);
    }
}

static void copy(struct bench *b, const size_t *n)
{
    memcpy(b->y, b->x, n[0] * sizeof(float));
}

/* A layer's cheap operators on [T, h] with f = 4 h, as the operator table counts their
 * bytes. */
static void cheap(struct bench *b, const size_t *n)
{
    size_t T = n[0], h = n[1], f = 4 * h;

    for (int i = 0; i < 2; i++) {
        b->k->layernorm(b->y, b->w, b->w + T, b->x, b->x, b->x, T, h, 1e-5f);
        b->k->sum2(b->z, b->x, b->y, T * h);
        b->k->bias_add(b->z, b->x, T, h);
        memcpy(b->z, b->y, T * h * sizeof(float));
        b->k->layernorm_grad(b->z, b->y, b->y + h, b->x, b->x, b->w, b->w + T, b->x, T,
                             h);
        b->k->bias_grad(b->w, b->x, T, h);
    }
    b->k->bias_add(b->z, b->x, T, f);
    b->k->gelu(b->y, b->x, T * f);
    b->k->gelu_grad(b->z, b->x, b->y, T * f);
    b->k->bias_grad(b->w, b->x, T, f);
}

/* Rows of logits: statistics, then the gradient in place. */
static void loss(struct bench *b, const size_t *n)
{
    static const float small[1] = { -3 };
    double *sums = (double *)(void *)b->z;

    for (size_t t = 0; t < n[0]; t++) {
        b->k->row_max(b->w, b->x, 1, n[1], n[1]);
        b->k->row_sum_exp(sums, b->x, b->w, 1, n[1], n[1]);
        b->k->row_softmax(b->y, small, 1, n[1], n[1], 1);
    }
}

/* A bench's arrays are compared with the rate of memory at 80%, as the cost model does.
 */
static void measure_memory(struct bench *b, struct prof_cpu *p)
{
    const size_t all = FLOATS, tokens[] = { 256, 768 }, rows[] = { 64, 32768 };
    double T = (double)tokens[0], h = (double)tokens[1], bytes;

    p->memory_bytes_per_s = 2.0 * 4 * (double)all / best(b, copy, &all);
    /* libpt/ops.c, in fp32: two norms and residuals, one activation of 4 h */
    bytes = 2 * T * h * (2 * (4 + 8) + 2 * (6 + 6) + 4 * (4 + 6));
    p->cheap_mult = best(b, cheap, tokens) * 0.8 * p->memory_bytes_per_s / bytes;
    bytes = 2 * (double)rows[0] * (double)rows[1] * (10 + 6);
    p->loss_mult = best(b, loss, rows) * 0.8 * p->memory_bytes_per_s / bytes;
}

#define HEADS 4
#define D     64

static void attention(struct bench *b, const size_t *n)
{
    struct exec_attention a = { b->k, 1, n[0], HEADS, HEADS, D };

    exec_attention_forward(&a, b->x, b->y, b->w, b->w + HEADS * n[0]);
}

static void attention_backward(struct bench *b, const size_t *n)
{
    struct exec_attention a = { b->k, 1, n[0], HEADS, HEADS, D };

    exec_attention_backward(&a, b->x, b->y, b->w, b->y, b->z, b->w + HEADS * n[0]);
}

static void measure_attention(struct bench *b, struct prof_cpu *p)
{
    static const size_t lengths[] = { 128, 1024 };

    for (size_t i = 0; i < 2; i++) {
        double s = (double)lengths[i], flop = 2.0 * HEADS * s * s * D; /* causal half */
        double t = best(b, attention, &lengths[i]);

        p->attention_seq[i] = s;
        p->attention_flops[i] = flop / t;
        p->attention_backward = 2.5 * t / best(b, attention_backward, &lengths[i]);
    }
}

static void adam(struct bench *b, const size_t *n)
{
    static const struct exec_adam c = { 0.9f, 0.95f, 1e-8f, 1e-9f, 1, 1, 1 };

    b->k->adamw(b->x, b->y, b->z, b->w, n[0], &c, true);
    b->w[0] += (float)b->k->sum_squares(b->w, n[0]) * 0;
    memset(b->w, 0, n[0] * sizeof(float)); /* cleared for the next step */
}

/* Two ranks as threads of this process, over the executor's transport. */
struct pair {
    struct exec_shared shared;
    double seconds[4][2]; /* all-reduce, gather, message; large and small */
};
struct side {
    struct pair *pair;
    uint32_t rank;
    enum pt_status st;
    struct pt_error err;
};
#define LARGE  ((size_t)1 << 18) /* floats: 1 MB */
#define SMALL  ((size_t)16)
#define ROUNDS 200

static enum pt_status exchange(struct exec_comm *c, struct exec_group *g, int what,
                               size_t n, struct pt_error *err)
{
    struct exec_collective op = { what == 0 ? EXEC_ALLREDUCE : EXEC_ALLGATHER,
                                  EXEC_F32,
                                  false,
                                  false,
                                  c->arena,
                                  n,
                                  NULL };
    uint64_t ticket;
    enum pt_status st;

    if (what < 2)
        return exec_collective(g, &op, err);
    if (c->rank == 0) { /* there and back */
        st = c->ops->send(c, 1, 1, c->arena, 4 * n, &ticket, err);
        return st == PT_OK ? c->ops->recv(c, 1, 2, c->arena, 4 * n, err) : st;
    }
    st = c->ops->recv(c, 0, 1, c->arena, 4 * n, err);
    return st == PT_OK ? c->ops->send(c, 0, 2, c->arena, 4 * n, &ticket, err) : st;
}

static void *run_side(void *arg)
{
    const uint32_t both[] = { 0, 1 };
    struct side *s = arg;
    struct exec_comm *c;
    struct exec_group *g;

    s->st = exec_comm_local_open(&s->pair->shared, s->rank, exec_kernels_find(NULL), &c,
                                 &s->err);
    if (s->st != PT_OK)
        return NULL;
    memset(c->arena, 0, LARGE * sizeof(float));
    s->st = c->ops->group(c, EXEC_DIM_WORLD, both, 2, &g, &s->err);
    for (int what = 0; what < 3; what++)
        for (int size = 0; size < 2 && s->st == PT_OK; size++) {
            double least = HUGE_VAL;

            for (int i = 0; i < ROUNDS && s->st == PT_OK; i++) {
                double t = now_s();

                s->st = exchange(c, g, what, size == 0 ? LARGE : SMALL, &s->err);
                least = fmin(least, now_s() - t);
            }
            if (s->rank == 0)
                s->pair->seconds[what][size] = what == 2 ? least / 2 : least;
        }
    if (s->st != PT_OK)
        atomic_store(&s->pair->shared.header->abort, 1);
    c->ops->close(c);
    return NULL;
}

/* Of the large one, what the small one does not explain; on a busy machine that may be
 * nothing, but hardly less than half. */
static double beyond(const double seconds[2])
{
    return fmax(seconds[0] - seconds[1], 0.5 * seconds[0]);
}

static enum pt_status measure_pair(struct prof_cpu *p, struct pt_error *err)
{
    struct pair pair = { .shared = { .fd = -1 } };
    struct side side[2] = { { &pair, 0, PT_OK, PT_ERROR_INIT },
                            { &pair, 1, PT_OK, PT_ERROR_INIT } };
    pthread_t other;
    double bytes = 4.0 * LARGE;
    enum pt_status st =
        exec_shared_create(2, 2 * LARGE * sizeof(float), &pair.shared, err);

    if (st != PT_OK)
        return st;
    if (pthread_create(&other, NULL, run_side, &side[1]) != 0) {
        exec_shared_close(&pair.shared);
        return pt_fail(err, PT_SYSTEM, NULL, 0, "cannot start a thread");
    }
    run_side(&side[0]);
    pthread_join(other, NULL);
    exec_shared_close(&pair.shared);
    for (int i = 0; i < 2; i++)
        if (side[i].st != PT_OK) {
            *err = side[i].err;
            return side[i].st;
        }
    /* bus bandwidth: 2 (g-1)/g of the buffer in an all-reduce, (g-1)/g in a gather */
    p->collective_s = pair.seconds[0][1];
    p->allreduce_bytes_per_s = bytes / beyond(pair.seconds[0]);
    p->gather_bytes_per_s = 0.5 * bytes / beyond(pair.seconds[1]);
    p->message_bytes_per_s = bytes / beyond(pair.seconds[2]);
    p->half_bytes = p->collective_s * p->allreduce_bytes_per_s;
    return PT_OK;
}

enum pt_status prof_cpu_measure(double seconds, uint64_t threads, struct prof_cpu *p,
                                struct pt_error *err)
{
    const size_t some = FLOATS / 2;
    struct bench b = { exec_kernels_find(NULL), NULL, NULL, NULL, NULL, seconds / 26 };
    float *block = malloc(4 * FLOATS * sizeof(*block));

    memset(p, 0, sizeof(*p));
    if (block == NULL)
        return pt_fail_memory(err);
    exec_blas_threads((int)threads);
    p->isa = b.k->isa;
    p->products = exec_blas_name();
    for (size_t i = 0; i < 4 * FLOATS; i++)
        block[i] = (float)(i % 251) * 1e-3f;
    b.x = block;
    b.y = block + FLOATS;
    b.z = block + 2 * FLOATS;
    b.w = block + 3 * FLOATS;
    measure_gemm(&b, p);
    measure_curve(&b, p);
    measure_memory(&b, p);
    measure_attention(&b, p);
    p->adam_params_per_s = (double)some / best(&b, adam, &some);
    free(block);
    return measure_pair(p, err);
}
