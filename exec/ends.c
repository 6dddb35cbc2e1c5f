#include "config.h"

#include <math.h>
#include <string.h>

#include "exec/blas.h"
#include "exec/ends.h"

/* Row of this rank's part of the vocabulary, or -1. */
static ptrdiff_t local_row(const struct exec_shape *s, int32_t token)
{
    size_t t = (size_t)token;

    return t >= s->vocab_first && t < s->vocab_first + s->vocab_local
               ? (ptrdiff_t)(t - s->vocab_first)
               : -1;
}

/* Place in its sequence of this rank's token i. */
static size_t place(const struct exec_shape *s, size_t i)
{
    size_t first = s->sequence_parallel ? s->tp_rank * s->Ts : 0;

    return (first + i) % s->seq;
}

enum pt_status exec_embed(struct exec_env *e, const float *w, const float *positions,
                          const int32_t *tokens, float *y, struct pt_error *err)
{
    const struct exec_shape *s = &e->shape;
    float *to = s->tp > 1 ? e->full : y;
    const float *mine = y;
    enum pt_status st;

    for (size_t t = 0; t < s->T; t++) {
        ptrdiff_t r = local_row(s, tokens[t]);

        if (r >= 0)
            memcpy(to + t * s->h, w + (size_t)r * s->h, s->h * sizeof(*to));
        else
            memset(to + t * s->h, 0, s->h * sizeof(*to));
    }
    if (s->tp > 1) {
        if ((st = exec_sum_tokens(e, e->full, &mine, err)))
            return st;
        memcpy(y, mine, s->Ts * s->h * sizeof(*y));
    }
    for (size_t i = 0; positions != NULL && i < s->Ts; i++)
        e->k->add(y + i * s->h, positions + place(s, i) * s->h, s->h);
    return PT_OK;
}

enum pt_status exec_embed_grad(struct exec_env *e, float *g, float *gpos,
                               const int32_t *tokens, const float *dy,
                               struct pt_error *err)
{
    const struct exec_shape *s = &e->shape;
    const float *full;
    enum pt_status st = exec_gather_tokens(e, dy, e->full, &full, err);

    if (st != PT_OK)
        return st;
    for (size_t t = 0; t < s->T; t++) {
        ptrdiff_t r = local_row(s, tokens[t]);

        if (r >= 0)
            e->k->add(g + (size_t)r * s->h, full + t * s->h, s->h);
    }
    for (size_t i = 0; gpos != NULL && i < s->Ts; i++)
        e->k->add(gpos + place(s, i) * s->h, dy + i * s->h, s->h);
    return PT_OK;
}

/* Columns of the logits that are not padding. */
static size_t true_columns(const struct exec_shape *s)
{
    if (s->vocab_first >= s->vocab)
        return 0;
    return s->vocab - s->vocab_first < s->vocab_local ? s->vocab - s->vocab_first
                                                      : s->vocab_local;
}

/* Row statistics over the whole vocabulary: max[T], and sum of exp and target's logit. */
struct row_stats {
    float *max;
    double *sums; /* [2, T] */
};

static enum pt_status row_stats(struct exec_env *e, const float *logits,
                                const int32_t *targets, struct row_stats *r,
                                struct pt_error *err)
{
    const struct exec_shape *s = &e->shape;
    size_t n = true_columns(s);
    struct exec_collective top = { EXEC_ALLREDUCE, EXEC_F32, true, false,
                                   r->max,         s->T,     NULL };
    struct exec_collective sum = { EXEC_ALLREDUCE, EXEC_F64, false, false,
                                   r->sums,        2 * s->T, NULL };
    enum pt_status st;

    e->k->row_max(r->max, logits, s->T, n, s->vocab_local);
    if ((st = exec_collective(e->tp, &top, err)))
        return st;
    e->k->row_sum_exp(r->sums, logits, r->max, s->T, n, s->vocab_local);
    for (size_t t = 0; t < s->T; t++) {
        ptrdiff_t c = local_row(s, targets[t]);

        r->sums[s->T + t] = c >= 0 ? (double)logits[t * s->vocab_local + (size_t)c] : 0.0;
    }
    return exec_collective(e->tp, &sum, err);
}

/* Loss, and the logits become their gradient: (softmax - one at the target) * scale. */
static enum pt_status loss_and_grad(struct exec_env *e, float *logits,
                                    const int32_t *targets, float scale, double *loss,
                                    struct pt_error *err)
{
    const struct exec_shape *s = &e->shape;
    struct row_stats r;
    float *block;
    enum pt_status st = exec_alloc(&e->arena, EXEC_USE_LOGITS, 5 * s->T, &block, err);

    if (st != PT_OK)
        return st;
    r.sums = (double *)(void *)block;
    r.max = block + 4 * s->T;
    st = row_stats(e, logits, targets, &r, err);
    *loss = 0;
    for (size_t t = 0; st == PT_OK && t < s->T; t++) {
        double lse = (double)r.max[t] + log(r.sums[t]);

        *loss += lse - r.sums[s->T + t];
        r.max[t] = (float)lse;
    }
    if (st == PT_OK)
        e->k->row_softmax(logits, r.max, s->T, true_columns(s), s->vocab_local, scale);
    for (size_t t = 0; st == PT_OK && t < s->T; t++) {
        ptrdiff_t c = local_row(s, targets[t]);

        if (c >= 0)
            logits[t * s->vocab_local + (size_t)c] -= scale;
    }
    exec_release(&e->arena, block);
    return st;
}

enum pt_status exec_head_forward(struct exec_env *e, const float *norm_w,
                                 const float *norm_b, const float *w, const float *x,
                                 const int32_t *targets, float scale, bool train,
                                 struct exec_head *head, double *loss,
                                 struct pt_error *err)
{
    const struct exec_shape *s = &e->shape;
    size_t n = s->Ts * s->h;
    const float *in;
    enum pt_status st;

    memset(head, 0, sizeof(*head));
    st = exec_alloc(&e->arena, EXEC_USE_ACTIVATIONS, n + 2 * s->Ts, &head->block, err);
    if (st == PT_OK)
        st = exec_alloc(&e->arena, EXEC_USE_LOGITS, s->T * s->vocab_local, &head->logits,
                        err);
    if (st != PT_OK)
        goto out;
    head->norm = head->block;
    head->mean = head->block + n;
    head->rstd = head->mean + s->Ts;
    exec_norm(e, head->norm, head->mean, head->rstd, x, norm_w, norm_b, s->Ts);
    if ((st = exec_gather_tokens(e, head->norm, e->full, &in, err)))
        goto out;
    exec_linear(head->logits, in, w, s->T, s->h, s->vocab_local);
    st = loss_and_grad(e, head->logits, targets, scale, loss, err);
out:
    if (st != PT_OK || !train)
        exec_head_free(e, head);
    return st;
}

enum pt_status exec_head_backward(struct exec_env *e, const float *norm_w, const float *w,
                                  const float *x, struct exec_head *head, float *gw,
                                  float *gb, float *g, float *dx, struct pt_error *err)
{
    const struct exec_shape *s = &e->shape;
    const float *in, *mine;
    enum pt_status st = exec_gather_tokens(e, head->norm, e->full, &in, err);

    if (st != PT_OK)
        goto out;
    exec_linear_weight(g, head->logits, in, s->T, s->h, s->vocab_local);
    exec_linear_input(e->full, head->logits, w, s->T, s->h, s->vocab_local, false);
    if ((st = exec_sum_tokens(e, e->full, &mine, err)))
        goto out;
    memset(dx, 0, s->Ts * s->h * sizeof(*dx));
    exec_norm_grad(e, dx, gw, gb, mine, x, head->mean, head->rstd, norm_w, s->Ts);
out:
    exec_head_free(e, head);
    return st;
}

void exec_head_free(struct exec_env *e, struct exec_head *head)
{
    exec_release(&e->arena, head->block);
    exec_release(&e->arena, head->logits);
    memset(head, 0, sizeof(*head));
}
