/* Each micro-batch runs through the pieces of this stage in model order; stages work on
 * different micro-batches at once, because sends do not wait. Activations are dropped
 * layer by layer. */
#include "config.h"

#include <string.h>

#include "exec/evaluate.h"

struct pass {
    struct exec_stage *s;
    const struct exec_data *data;
    uint64_t first; /* sample of this replica's micro-batch */
    uint32_t mb;    /* number of the micro-batch, for tags */
    double *loss;   /* of this micro-batch: sum over tokens */
};

static void load(const struct pass *p)
{
    const struct exec_shape *sh = &p->s->env.shape;

    for (size_t i = 0; i < sh->batch; i++)
        exec_data_sample(p->data, 0, p->first + i, p->s->tokens + i * sh->seq,
                         p->s->targets + i * sh->seq);
}

static enum pt_status boundary(struct exec_stage *s, float **x, struct pt_error *err)
{
    return exec_alloc(&s->env.arena, EXEC_USE_ACTIVATIONS,
                      s->env.shape.Ts * s->env.shape.h, x, err);
}

static uint64_t tag_of(const struct pass *p, uint32_t piece)
{
    return (uint64_t)piece << 40 | p->mb;
}

/* The input of a piece: embedded, handed over or received. *x is the caller's to release.
 */
static enum pt_status input(struct pass *p, struct exec_piece *piece, float **x,
                            struct pt_error *err)
{
    struct exec_stage *s = p->s;
    size_t bytes = s->env.shape.Ts * s->env.shape.h * sizeof(float);
    enum pt_status st;

    if (*x != NULL) /* the piece before is on this stage too */
        return PT_OK;
    if ((st = boundary(s, x, err)))
        return st;
    if (!piece->first)
        return exec_recv(s->comm,
                         exec_rank_of_stage(
                             s, pt_schedule_piece_stage(&s->schedule, piece->index - 1)),
                         tag_of(p, piece->index), *x, bytes, err);
    st = exec_held_weights(s, piece->tokens, err);
    if (st == PT_OK && piece->positions != NULL)
        st = exec_held_weights(s, piece->positions, err);
    if (st == PT_OK)
        st = exec_embed(&s->env, piece->tokens->w,
                        piece->positions != NULL ? piece->positions->w : NULL, s->tokens,
                        *x, err);
    exec_held_drop(s, piece->tokens);
    if (piece->positions != NULL)
        exec_held_drop(s, piece->positions);
    return st;
}

static enum pt_status layer(struct exec_stage *s, struct exec_held *h, float **x,
                            struct pt_error *err)
{
    struct exec_saved saved = { 0 };
    float *y;
    enum pt_status st = boundary(s, &y, err);

    if (st == PT_OK)
        st = exec_held_weights(s, h, err);
    if (st == PT_OK)
        st = exec_layer_forward(&s->env, &h->unit, h->w, *x, y, EXEC_KEEP_NO_CORE, &saved,
                                err);
    exec_saved_free(&s->env, &saved);
    exec_held_drop(s, h);
    exec_release(&s->env.arena, *x);
    *x = y;
    return st;
}

static enum pt_status head(struct pass *p, struct exec_piece *piece, const float *x,
                           struct pt_error *err)
{
    struct exec_stage *s = p->s;
    struct exec_held *w = exec_head_weights(s, piece), *norm = piece->norm;
    struct exec_head unused;
    enum pt_status st = exec_held_weights(s, w, err);

    if (st == PT_OK)
        st = exec_held_weights(s, norm, err);
    if (st == PT_OK)
        st = exec_head_forward(
            &s->env, norm->w,
            norm->unit.n_tensors > 1 ? norm->w + norm->unit.tensor[1].offset : NULL, w->w,
            x, s->targets, s->scale, false, &unused, p->loss, err);
    exec_held_drop(s, w);
    exec_held_drop(s, norm);
    return st;
}

/* *x: what the piece before left on this stage, and then what this one leaves for the
 * next. */
static enum pt_status run_piece(struct pass *p, uint32_t chunk, float **x,
                                struct pt_error *err)
{
    struct exec_stage *s = p->s;
    struct exec_piece *piece = &s->piece[chunk];
    enum pt_status st = input(p, piece, x, err);

    for (uint32_t l = 0; l < piece->n_layers && st == PT_OK; l++)
        st = layer(s, &piece->layers[l], x, err);
    if (st == PT_OK && piece->last) {
        st = head(p, piece, *x, err);
        exec_release(&s->env.arena, *x);
        *x = NULL;
        return st;
    }
    if (st == PT_OK && exec_turn(s, chunk, 1) < 0)
        st = exec_post(s, pt_schedule_piece_stage(&s->schedule, piece->index + 1),
                       tag_of(p, piece->index + 1), x, err);
    return st;
}

/* This stage's pieces in model order, whatever its chunks are numbered. */
static enum pt_status micro_batch(struct pass *p, struct pt_error *err)
{
    struct exec_stage *s = p->s;
    uint32_t pieces = s->schedule.stages * s->schedule.chunks;
    float *x = NULL;
    enum pt_status st = PT_OK;

    load(p);
    for (uint32_t k = 0; k < pieces && st == PT_OK; k++)
        if (pt_schedule_piece_stage(&s->schedule, k) == s->stage)
            st = run_piece(p, pt_schedule_piece_chunk(&s->schedule, k), &x, err);
    exec_release(&s->env.arena, x);
    return st == PT_OK ? exec_collect(s, false, err) : st;
}

enum pt_status exec_evaluate(struct exec_stage *s, const struct exec_data *data,
                             uint64_t batches, double *loss, struct pt_error *err)
{
    const struct pt_job *job = &s->plan->setup.job;
    uint64_t n = batches * s->micro_batches;
    struct exec_collective op = {
        EXEC_ALLREDUCE, EXEC_F64, false, true, s->table, 1, NULL
    };
    double sum = 0, one = 0;
    struct pass p = { s, data, 0, 0, &one };
    enum pt_status st = exec_settle(s, err);

    for (uint64_t i = 0; i < n && st == PT_OK; i++) {
        p.first = (i * s->layout->dp + s->dp_rank) * s->env.shape.batch;
        p.mb = (uint32_t)(i % s->micro_batches);
        one = 0;
        st = micro_batch(&p, err);
        sum += one;
    }
    if (st != PT_OK)
        return st;
    s->table[0] = s->tp_rank == 0 ? sum : 0;
    st = exec_collective(s->world, &op, err);
    *loss = s->table[0] / ((double)batches * job->global_batch * job->seq);
    return st == PT_OK ? exec_settle(s, err) : st;
}
