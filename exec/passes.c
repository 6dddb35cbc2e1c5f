#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "exec/stage.h"

int exec_turn(const struct exec_stage *s, uint32_t chunk, int direction)
{
    const struct pt_schedule *sc = &s->schedule;
    uint32_t piece = s->piece[chunk].index;

    if (direction > 0 ? s->piece[chunk].last : s->piece[chunk].first)
        return -1;
    piece = direction > 0 ? piece + 1 : piece - 1;
    return pt_schedule_piece_stage(sc, piece) == s->stage
               ? (int)pt_schedule_piece_chunk(sc, piece)
               : -1;
}

struct exec_flight *exec_flight(struct exec_stage *s, uint32_t chunk, uint32_t mb)
{
    struct exec_flight **at = &s->flight[(size_t)chunk * s->micro_batches + mb];
    size_t n = s->piece[chunk].n_layers;
    struct exec_flight *f = *at;

    if (f != NULL)
        return f;
    f = calloc(1, sizeof(*f));
    if (f == NULL)
        return NULL;
    f->x = calloc(n + 1, sizeof(*f->x));
    f->dy = calloc(n + 1, sizeof(*f->dy));
    f->saved = calloc(n + 1, sizeof(*f->saved));
    f->pending = calloc(n + 1, sizeof(*f->pending));
    *at = f;
    if (f->x == NULL || f->dy == NULL || f->saved == NULL || f->pending == NULL) {
        exec_flight_free(s, chunk, mb);
        return NULL;
    }
    return f;
}

void exec_flight_free(struct exec_stage *s, uint32_t chunk, uint32_t mb)
{
    struct exec_flight **at = &s->flight[(size_t)chunk * s->micro_batches + mb];
    struct exec_flight *f = *at;

    if (f == NULL)
        return;
    for (uint32_t l = 0; l <= s->piece[chunk].n_layers; l++) {
        if (f->x != NULL)
            exec_release(&s->env.arena, f->x[l]);
        if (f->dy != NULL)
            exec_release(&s->env.arena, f->dy[l]);
        if (f->saved != NULL)
            exec_saved_free(&s->env, &f->saved[l]);
        if (f->pending != NULL)
            exec_pending_free(&s->env, &f->pending[l]);
    }
    exec_head_free(&s->env, &f->head);
    free(f->x);
    free(f->dy);
    free(f->saved);
    free(f->pending);
    free(f);
    *at = NULL;
}

void exec_flight_done(struct exec_stage *s, uint32_t chunk, uint32_t mb)
{
    struct exec_flight *f = exec_flight(s, chunk, mb);
    bool gone = f != NULL && f->weight_done && f->dy[0] == NULL;

    if (gone)
        exec_flight_free(s, chunk, mb);
}

static void tick(struct exec_stage *s)
{
    if (s->heartbeat != NULL)
        s->heartbeat(s->heartbeat_arg, NULL);
}

static void drop(struct exec_stage *s, float **p)
{
    exec_release(&s->env.arena, *p);
    *p = NULL;
}

static enum pt_status boundary(struct exec_stage *s, float **p, struct pt_error *err)
{
    return exec_alloc(&s->env.arena, EXEC_USE_ACTIVATIONS,
                      s->env.shape.Ts * s->env.shape.h, p, err);
}

/* Tokens of this replica's micro-batch mb: every replica takes each dp-th micro-batch of
 * the global batch. */
static void load_tokens(struct exec_stage *s, uint32_t mb)
{
    const struct exec_shape *sh = &s->env.shape;
    uint64_t global = (uint64_t)s->plan->setup.job.global_batch;
    uint64_t first =
        (s->step - 1) * global + ((uint64_t)mb * s->layout->dp + s->dp_rank) * sh->batch;

    for (size_t i = 0; i < sh->batch; i++)
        exec_data_sample(s->data, s->seed, first + i, s->tokens + i * sh->seq,
                         s->targets + i * sh->seq);
}

static enum exec_keep keep_of(const struct exec_stage *s, const struct exec_piece *p,
                              uint32_t layer)
{
    if (layer < p->recomputed || s->layout->recompute == PT_RECOMPUTE_FULL)
        return EXEC_KEEP_INPUT;
    if (s->layout->recompute == PT_RECOMPUTE_HALF && layer % 2 == 0)
        return EXEC_KEEP_INPUT;
    return s->layout->recompute == PT_RECOMPUTE_SELECTIVE ? EXEC_KEEP_NO_CORE
                                                          : EXEC_KEEP_ALL;
}

static enum pt_status embed(struct exec_stage *s, struct exec_piece *p,
                            struct exec_flight *f, uint32_t mb, struct pt_error *err)
{
    enum pt_status st = boundary(s, &f->x[0], err);

    if (st == PT_OK)
        st = exec_held_weights(s, p->tokens, err);
    if (st == PT_OK && p->positions != NULL)
        st = exec_held_weights(s, p->positions, err);
    if (st != PT_OK)
        return st;
    load_tokens(s, mb);
    st = exec_embed(&s->env, p->tokens->w, p->positions != NULL ? p->positions->w : NULL,
                    s->tokens, f->x[0], err);
    exec_held_drop(s, p->tokens);
    if (p->positions != NULL)
        exec_held_drop(s, p->positions);
    return st;
}

static enum pt_status forward_layer(struct exec_stage *s, struct exec_piece *p,
                                    struct exec_flight *f, uint32_t l,
                                    struct pt_error *err)
{
    struct exec_held *h = &p->layers[l];
    enum exec_keep keep = keep_of(s, p, l);
    enum pt_status st = exec_held_weights(s, h, err);

    if (st == PT_OK)
        st = boundary(s, &f->x[l + 1], err);
    if (st == PT_OK)
        st = exec_layer_forward(&s->env, &h->unit, h->w, f->x[l], f->x[l + 1],
                                keep == EXEC_KEEP_INPUT ? EXEC_KEEP_NO_CORE : keep,
                                &f->saved[l], err);
    if (keep == EXEC_KEEP_INPUT)
        exec_saved_free(&s->env, &f->saved[l]);
    exec_held_drop(s, h);
    tick(s);
    return st;
}

/* The head's weights: its own, or those of the embedding on this rank. */
struct exec_held *exec_head_weights(struct exec_stage *s, struct exec_piece *p)
{
    if (p->head->trains)
        return p->head;
    for (uint32_t c = 0; c < s->schedule.chunks; c++)
        if (s->piece[c].tokens != NULL)
            return s->piece[c].tokens;
    return NULL;
}

/* ZeRO-2 and 3: this unit's gradient of this micro-batch is complete. */
static enum pt_status reduce_now(struct exec_stage *s, struct exec_held *h,
                                 struct pt_error *err)
{
    enum pt_status st = PT_OK;

    if (s->zero < 2)
        return PT_OK;
    if (s->reducing != NULL)
        st = exec_held_finish(s, s->reducing, err);
    if (st == PT_OK)
        st = exec_held_reduce(s, h, err);
    s->reducing = h;
    return st;
}

static enum pt_status head_backward(struct exec_stage *s, struct exec_piece *p,
                                    struct exec_flight *f, struct pt_error *err)
{
    struct exec_held *w = exec_head_weights(s, p), *norm = p->norm;
    uint32_t n = p->n_layers;
    float *gb;
    enum pt_status st = boundary(s, &f->dy[n], err);

    if (st == PT_OK)
        st = exec_held_weights(s, w, err);
    if (st == PT_OK)
        st = exec_held_weights(s, norm, err);
    if (st == PT_OK)
        st = exec_held_grads(s, norm, err);
    if (st == PT_OK)
        st = exec_held_grads(s, p->head, err);
    if (st != PT_OK)
        return st;
    gb = norm->unit.n_tensors > 1 ? norm->g + norm->unit.tensor[1].offset : NULL;
    st = exec_head_backward(&s->env, norm->w, w->w, f->x[n], &f->head, norm->g, gb,
                            p->head->g, f->dy[n], err);
    exec_held_drop(s, w);
    exec_held_drop(s, norm);
    drop(s, &f->x[n]);
    if (st == PT_OK)
        st = reduce_now(s, p->head, err);
    return st == PT_OK ? reduce_now(s, norm, err) : st;
}

static enum pt_status head_forward(struct exec_stage *s, struct exec_piece *p,
                                   struct exec_flight *f, uint32_t mb,
                                   struct pt_error *err)
{
    struct exec_held *w = exec_head_weights(s, p), *norm = p->norm;
    enum pt_status st = exec_held_weights(s, w, err);
    const float *nb;

    if (st == PT_OK)
        st = exec_held_weights(s, norm, err);
    if (st != PT_OK)
        return st;
    nb = norm->unit.n_tensors > 1 ? norm->w + norm->unit.tensor[1].offset : NULL;
    load_tokens(s, mb);
    st = exec_head_forward(&s->env, norm->w, nb, w->w, f->x[p->n_layers], s->targets,
                           s->scale, true, &f->head, &s->losses[mb], err);
    exec_held_drop(s, w);
    exec_held_drop(s, norm);
    if (st == PT_OK && s->fuse_head)
        st = head_backward(s, p, f, err);
    return st;
}

static enum pt_status no_memory(struct pt_error *err)
{
    return pt_fail(err, PT_SYSTEM, NULL, 0, "out of memory");
}

enum pt_status exec_forward(struct exec_stage *s, uint32_t chunk, uint32_t mb,
                            struct pt_error *err)
{
    struct exec_piece *p = &s->piece[chunk];
    struct exec_flight *f = exec_flight(s, chunk, mb), *next;
    enum pt_status st = PT_OK;
    int turn = exec_turn(s, chunk, 1);

    if (f == NULL)
        return no_memory(err);
    if (p->first)
        st = embed(s, p, f, mb, err);
    for (uint32_t l = 0; l < p->n_layers && st == PT_OK; l++)
        st = forward_layer(s, p, f, l, err);
    if (st == PT_OK && p->last)
        st = head_forward(s, p, f, mb, err);
    if (st == PT_OK && turn >= 0) {
        next = exec_flight(s, (uint32_t)turn, mb);
        if (next == NULL)
            return no_memory(err);
        next->x[0] = f->x[p->n_layers];
        f->x[p->n_layers] = NULL;
    }
    return st;
}

static enum pt_status backward_layer(struct exec_stage *s, struct exec_piece *p,
                                     struct exec_flight *f, uint32_t l,
                                     struct pt_error *err)
{
    struct exec_held *h = &p->layers[l];
    enum pt_status st = exec_held_weights(s, h, err);

    if (st == PT_OK && f->saved[l].block == NULL)
        st = exec_layer_forward(&s->env, &h->unit, h->w, f->x[l], NULL, EXEC_KEEP_ALL,
                                &f->saved[l], err);
    if (st == PT_OK)
        st = boundary(s, &f->dy[l], err);
    if (st == PT_OK)
        st = exec_layer_backward_input(&s->env, &h->unit, h->w, f->x[l], f->dy[l + 1],
                                       &f->saved[l], &f->pending[l], f->dy[l], err);
    exec_held_drop(s, h);
    drop(s, &f->x[l]);
    tick(s);
    return st;
}

static enum pt_status weight_layer(struct exec_stage *s, struct exec_piece *p,
                                   struct exec_flight *f, uint32_t l,
                                   struct pt_error *err)
{
    struct exec_held *h = &p->layers[l];
    enum pt_status st = exec_held_grads(s, h, err);

    if (st == PT_OK)
        st = exec_layer_backward_weight(&s->env, &h->unit, h->g, f->dy[l + 1],
                                        &f->saved[l], &f->pending[l], err);
    exec_saved_free(&s->env, &f->saved[l]);
    exec_pending_free(&s->env, &f->pending[l]);
    drop(s, &f->dy[l + 1]);
    return st == PT_OK ? reduce_now(s, h, err) : st;
}

static enum pt_status embed_backward(struct exec_stage *s, struct exec_piece *p,
                                     struct exec_flight *f, uint32_t mb,
                                     struct pt_error *err)
{
    enum pt_status st = exec_held_grads(s, p->tokens, err);

    if (st == PT_OK && p->positions != NULL)
        st = exec_held_grads(s, p->positions, err);
    if (st != PT_OK)
        return st;
    load_tokens(s, mb);
    st = exec_embed_grad(&s->env, p->tokens->g,
                         p->positions != NULL ? p->positions->g : NULL, s->tokens,
                         f->dy[0], err);
    if (st == PT_OK && p->positions != NULL)
        st = reduce_now(s, p->positions, err);
    return st == PT_OK ? reduce_now(s, p->tokens, err) : st;
}

enum pt_status exec_backward_input(struct exec_stage *s, uint32_t chunk, uint32_t mb,
                                   bool with_weight, struct pt_error *err)
{
    struct exec_piece *p = &s->piece[chunk];
    struct exec_flight *f = exec_flight(s, chunk, mb), *previous;
    enum pt_status st = PT_OK;
    int turn = exec_turn(s, chunk, -1);

    if (f == NULL)
        return no_memory(err);
    if (p->last && f->dy[p->n_layers] == NULL)
        st = head_backward(s, p, f, err);
    for (uint32_t l = p->n_layers; l > 0 && st == PT_OK; l--) {
        st = backward_layer(s, p, f, l - 1, err);
        if (st == PT_OK && with_weight)
            st = weight_layer(s, p, f, l - 1, err);
    }
    if (st == PT_OK && p->first)
        st = embed_backward(s, p, f, mb, err);
    if (st == PT_OK && turn >= 0) {
        previous = exec_flight(s, (uint32_t)turn, mb);
        if (previous == NULL)
            return no_memory(err);
        previous->dy[s->piece[turn].n_layers] = f->dy[0];
        f->dy[0] = NULL;
    }
    f->weight_done = with_weight;
    if (p->first)
        drop(s, &f->dy[0]);
    if (st == PT_OK)
        exec_flight_done(s, chunk, mb);
    return st;
}

enum pt_status exec_backward_weight(struct exec_stage *s, uint32_t chunk, uint32_t mb,
                                    struct pt_error *err)
{
    struct exec_piece *p = &s->piece[chunk];
    struct exec_flight *f = exec_flight(s, chunk, mb);
    enum pt_status st = PT_OK;

    if (f == NULL)
        return no_memory(err);
    for (uint32_t l = p->n_layers; l > 0 && st == PT_OK; l--)
        st = weight_layer(s, p, f, l - 1, err);
    f->weight_done = true;
    if (st == PT_OK)
        exec_flight_done(s, chunk, mb);
    return st;
}
