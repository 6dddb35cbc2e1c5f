#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exec/stage.h"

static enum pt_status alloc_zero(struct exec_arena *a, enum exec_use use, size_t n,
                                 float **out, struct pt_error *err)
{
    enum pt_status st = exec_alloc(a, use, n, out, err);

    if (st == PT_OK && n > 0)
        memset(*out, 0, n * sizeof(**out));
    return st;
}

/* Shards end on the cell edges nearest to an even division. */
static enum pt_status set_edges(struct exec_stage *s, struct exec_held *h,
                                struct pt_error *err)
{
    uint32_t dp = s->layout->dp;

    h->edges = malloc((dp + 1) * sizeof(*h->edges));
    if (h->edges == NULL)
        return pt_fail(err, PT_SYSTEM, NULL, 0, "out of memory");
    for (uint32_t r = 0; r <= dp; r++)
        h->edges[r] = exec_unit_edge(&h->unit, exec_even_edge(h->unit.n, dp, r));
    h->from = s->zero > 0 ? h->edges[s->dp_rank] : 0;
    h->to = s->zero > 0 ? h->edges[s->dp_rank + 1] : h->unit.n;
    h->host_from = h->to;
    return PT_OK;
}

static enum pt_status alloc_states(struct exec_stage *s, struct exec_held *h,
                                   struct pt_error *err)
{
    double frac = s->plan->split.offload_frac[s->stage];
    struct exec_arena *a = &s->env.arena;
    size_t n = h->to - h->from, on_host;
    enum pt_status st;

    if (frac > 0) {
        h->host_from =
            exec_unit_edge(&h->unit, h->from + (size_t)((1 - frac) * (double)n));
        if (h->host_from < h->from)
            h->host_from = h->from;
    }
    on_host = h->to - h->host_from;
    st = alloc_zero(a, EXEC_USE_OPTIMIZER, n - on_host, &h->m, err);
    if (st == PT_OK)
        st = alloc_zero(a, EXEC_USE_OPTIMIZER, n - on_host, &h->v, err);
    if (st == PT_OK)
        st = alloc_zero(&s->host, EXEC_USE_OPTIMIZER, on_host, &h->host_m, err);
    if (st == PT_OK)
        st = alloc_zero(&s->host, EXEC_USE_OPTIMIZER, on_host, &h->host_v, err);
    if (st == PT_OK)
        st = exec_alloc(&s->host, EXEC_USE_WEIGHTS, on_host, &h->host_w, err);
    if (st == PT_OK)
        st = exec_alloc(&s->host, EXEC_USE_GRADS, on_host, &h->host_g, err);
    return st;
}

static enum pt_status alloc_weights(struct exec_stage *s, struct exec_held *h,
                                    struct pt_error *err)
{
    struct exec_arena *a = &s->env.arena;
    size_t on_host = h->to - h->host_from;
    enum pt_status st = exec_alloc(a, EXEC_USE_WEIGHTS, h->unit.n, &h->w, err);

    if (st != PT_OK)
        return st;
    exec_unit_fill(&h->unit, s->seed, h->w);
    if (on_host > 0)
        memcpy(h->host_w, h->w + h->host_from, on_host * sizeof(*h->w));
    if (s->zero < 3)
        return PT_OK;
    st = exec_alloc(a, EXEC_USE_WEIGHTS, h->to - h->from, &h->w_shard, err);
    if (st == PT_OK && h->to > h->from)
        memcpy(h->w_shard, h->w + h->from, (h->to - h->from) * sizeof(*h->w));
    exec_held_drop(s, h);
    return st;
}

enum pt_status exec_held_init(struct exec_stage *s, struct exec_held *h,
                              enum exec_unit_kind kind, uint32_t layer, bool trains,
                              struct pt_error *err)
{
    struct exec_arena *a = &s->env.arena;
    enum pt_status st;

    memset(h, 0, sizeof(*h));
    exec_unit_init(&s->env.shape, kind, layer, &h->unit);
    h->trains = trains;
    st = set_edges(s, h, err);
    if (st == PT_OK && trains)
        st = alloc_states(s, h, err);
    if (st == PT_OK && trains)
        st = alloc_weights(s, h, err);
    if (st != PT_OK)
        return st;
    return s->zero >= 2 ? alloc_zero(a, EXEC_USE_GRADS, h->to - h->from, &h->g_shard, err)
                        : alloc_zero(a, EXEC_USE_GRADS, h->unit.n, &h->g, err);
}

void exec_held_fini(struct exec_stage *s, struct exec_held *h)
{
    float *device[] = { h->w, h->g, h->w_shard, h->g_shard, h->m, h->v };
    float *host[] = { h->host_w, h->host_g, h->host_m, h->host_v };

    for (size_t i = 0; i < sizeof(device) / sizeof(device[0]); i++)
        exec_release(&s->env.arena, device[i]);
    for (size_t i = 0; i < sizeof(host) / sizeof(host[0]); i++)
        exec_release(&s->host, host[i]);
    free(h->edges);
    memset(h, 0, sizeof(*h));
}

enum pt_status exec_held_weights(struct exec_stage *s, struct exec_held *h,
                                 struct pt_error *err)
{
    struct exec_collective op = { EXEC_ALLGATHER, EXEC_F32,  false,   false,
                                  NULL,           h->unit.n, h->edges };
    uint64_t ticket = h->gathering;
    enum pt_status st;

    h->gathering = 0;
    if (ticket != 0 && (st = exec_wait(s->dp, ticket, err)))
        return st;
    if (h->w != NULL)
        return PT_OK;
    st = exec_alloc(&s->env.arena, EXEC_USE_WORKSPACE, h->unit.n, &h->w, err);
    if (st != PT_OK)
        return st;
    if (h->to > h->from)
        memcpy(h->w + h->from, h->w_shard, (h->to - h->from) * sizeof(*h->w));
    op.buf = h->w;
    return exec_collective(s->dp, &op, err);
}

void exec_held_drop(struct exec_stage *s, struct exec_held *h)
{
    if (s->zero < 3 || !h->trains)
        return;
    exec_release(&s->env.arena, h->w);
    h->w = NULL;
}

enum pt_status exec_held_grads(struct exec_stage *s, struct exec_held *h,
                               struct pt_error *err)
{
    enum pt_status st;

    if (s->zero < 2)
        return PT_OK;
    if ((st = exec_held_finish(s, h, err)))
        return st;
    return alloc_zero(&s->env.arena, EXEC_USE_WORKSPACE, h->unit.n, &h->g, err);
}

/* With sequence parallelism a rank sees its own tokens only, so the gradients of what all
 * ranks hold alike are partial. */
static enum pt_status sum_shared(struct exec_stage *s, struct exec_held *h,
                                 struct pt_error *err)
{
    struct exec_collective op = { EXEC_ALLREDUCE, EXEC_F32,         false, false,
                                  h->g,           h->unit.shared_n, NULL };

    if (!s->env.shape.sequence_parallel || h->unit.shared_n == 0 || h->summed)
        return PT_OK;
    h->summed = true;
    return exec_collective(s->env.tp, &op, err);
}

enum pt_status exec_held_reduce(struct exec_stage *s, struct exec_held *h,
                                struct pt_error *err)
{
    struct exec_collective op = { s->zero == 0 ? EXEC_ALLREDUCE : EXEC_REDUCESCATTER,
                                  EXEC_F32,
                                  false,
                                  false,
                                  h->g,
                                  h->unit.n,
                                  h->edges };
    enum pt_status st = sum_shared(s, h, err);

    if (st != PT_OK || s->layout->dp == 1)
        return st;
    return exec_start(s->dp, &op, &h->reducing, err);
}

enum pt_status exec_held_finish(struct exec_stage *s, struct exec_held *h,
                                struct pt_error *err)
{
    uint64_t ticket = h->reducing;
    enum pt_status st;

    if (ticket == 0) /* nothing under way; without data-parallel peers at least this */
        return s->zero < 2 ? sum_shared(s, h, err) : PT_OK;
    h->reducing = 0;
    if ((st = exec_wait(s->dp, ticket, err)))
        return st;
    if (s->zero < 2)
        return PT_OK;
    if (h->to > h->from)
        s->env.k->add(h->g_shard, h->g + h->from, h->to - h->from);
    exec_release(&s->env.arena, h->g);
    h->g = NULL;
    h->summed = false;
    return PT_OK;
}

enum pt_status exec_held_gather(struct exec_stage *s, struct exec_held *h,
                                struct pt_error *err)
{
    struct exec_collective op = { EXEC_ALLGATHER, EXEC_F32,  false,   false,
                                  h->w,           h->unit.n, h->edges };

    if (s->zero != 1 && s->zero != 2)
        return PT_OK;
    return h->trains ? exec_start(s->dp, &op, &h->gathering, err) : PT_OK;
}

void exec_held_clear(struct exec_stage *s, struct exec_held *h)
{
    if (s->zero >= 2 && h->to > h->from) /* a shard may be empty */
        memset(h->g_shard, 0, (h->to - h->from) * sizeof(float));
    else if (s->zero < 2)
        memset(h->g, 0, h->unit.n * sizeof(float));
    h->summed = false;
}

float *exec_held_w(const struct exec_stage *s, const struct exec_held *h, size_t at)
{
    return s->zero >= 3 ? h->w_shard + (at - h->from) : h->w + at;
}

float *exec_held_g(const struct exec_stage *s, const struct exec_held *h, size_t at)
{
    return s->zero >= 2 ? h->g_shard + (at - h->from) : h->g + at;
}

void exec_held_norms(const struct exec_stage *s, const struct exec_held *h, double *table)
{
    const struct exec_shape *sh = &s->env.shape;
    size_t from = h->edges[s->dp_rank], to = h->edges[s->dp_rank + 1];

    for (unsigned i = 0; i < h->unit.n_tensors; i++) {
        const struct exec_tensor *t = &h->unit.tensor[i];

        if (t->shared && sh->tp_rank != 0)
            continue;
        for (size_t c = 0; c * EXEC_GRID < t->n; c++) {
            size_t at = t->offset + c * EXEC_GRID;
            size_t n =
                t->n - c * EXEC_GRID < EXEC_GRID ? t->n - c * EXEC_GRID : EXEC_GRID;

            if (at >= from && at < to)
                table[exec_norm_entry(sh, &h->unit, i, c)] =
                    s->env.k->sum_squares(exec_held_g(s, h, at), n);
        }
    }
}

/* [*from, *to) of the unit that shard k of the offloaded part covers. */
static void host_range(const struct exec_held *h, uint32_t k, size_t *from, size_t *to)
{
    size_t n = h->to - h->host_from;

    *from = h->host_from + exec_even_edge(n, PT_OFFLOAD_SHARDS, k - 1);
    *to = h->host_from + exec_even_edge(n, PT_OFFLOAD_SHARDS, k);
}

static size_t max_size(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Tensor by tensor, because decay differs. w, m, v, g hold float `from` of the unit
 * first. */
static void update_range(const struct exec_stage *s, const struct exec_held *h, float *w,
                         float *m, float *v, const float *g, size_t from, size_t to,
                         const struct exec_adam *adam)
{
    for (unsigned i = 0; i < h->unit.n_tensors; i++) {
        const struct exec_tensor *t = &h->unit.tensor[i];
        size_t a = max_size(from, t->offset);
        size_t b = t->offset + t->n < to ? t->offset + t->n : to;

        if (a < b)
            s->env.k->adamw(w + (a - from), m + (a - from), v + (a - from),
                            g + (a - from), b - a, adam, t->decay);
    }
}

void exec_held_update(struct exec_stage *s, struct exec_held *h, uint32_t shard,
                      const struct exec_adam *adam)
{
    size_t from = h->from, to = h->host_from, at;

    if (!h->trains)
        return;
    if (shard == 0) {
        if (from < to)
            update_range(s, h, exec_held_w(s, h, from), h->m, h->v,
                         exec_held_g(s, h, from), from, to, adam);
        return;
    }
    host_range(h, shard, &from, &to);
    at = from - h->host_from;
    if (from < to)
        update_range(s, h, h->host_w + at, h->host_m + at, h->host_v + at, h->host_g + at,
                     from, to, adam);
}

void exec_held_out(struct exec_stage *s, struct exec_held *h, uint32_t shard)
{
    size_t from, to;

    if (!h->trains)
        return;
    host_range(h, shard, &from, &to);
    if (from == to)
        return;
    memcpy(h->host_g + (from - h->host_from), exec_held_g(s, h, from),
           (to - from) * sizeof(float));
    s->copied_bytes += (double)((to - from) * sizeof(float));
}

void exec_held_in(struct exec_stage *s, struct exec_held *h, uint32_t shard)
{
    size_t from, to;

    if (!h->trains)
        return;
    host_range(h, shard, &from, &to);
    if (from == to)
        return;
    memcpy(exec_held_w(s, h, from), h->host_w + (from - h->host_from),
           (to - from) * sizeof(float));
    s->copied_bytes += (double)((to - from) * sizeof(float));
}

enum pt_status exec_piece_each(struct exec_stage *s, struct exec_piece *p,
                               exec_held_fn *f, struct pt_error *err)
{
    struct exec_held *ends[] = { p->tokens, p->positions };
    struct exec_held *tail[] = { p->norm, p->head };
    enum pt_status st = PT_OK;

    for (size_t i = 0; i < 2 && st == PT_OK; i++)
        if (ends[i] != NULL)
            st = f(s, ends[i], err);
    for (uint32_t l = 0; l < p->n_layers && st == PT_OK; l++)
        st = f(s, &p->layers[l], err);
    for (size_t i = 0; i < 2 && st == PT_OK; i++)
        if (tail[i] != NULL)
            st = f(s, tail[i], err);
    return st;
}
