#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "exec/stage.h"

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

uint32_t exec_rank_of_stage(const struct exec_stage *s, uint32_t stage)
{
    uint32_t each = s->layout->tp * s->layout->dp;

    return stage * each + s->comm->rank % each;
}

/* Messages are found by what they are: kind, the piece of the model that receives,
 * micro-batch. */
static uint64_t tag_of(bool gradient, uint32_t piece, uint32_t mb)
{
    return (uint64_t)gradient << 62 | (uint64_t)piece << 40 | mb;
}

/* Releases what has been received; with `all`, waits for every receiver. */
enum pt_status exec_collect(struct exec_stage *s, bool all, struct pt_error *err)
{
    enum pt_status st = PT_OK;

    do {
        size_t kept = 0;

        for (size_t i = 0; i < s->n_parcels; i++) {
            struct exec_parcel *p = &s->parcels[i];

            if (s->comm->ops->sent(s->comm, p->to, p->ticket))
                exec_release(&s->env.arena, p->buf);
            else
                s->parcels[kept++] = *p;
        }
        s->n_parcels = kept;
        if (all && kept > 0)
            st = s->comm->ops->progress(s->comm, err);
    } while (all && s->n_parcels > 0 && st == PT_OK);
    return st;
}

enum pt_status exec_post(struct exec_stage *s, uint32_t to, uint64_t tag, float **buf,
                         struct pt_error *err)
{
    struct exec_parcel p = { *buf, exec_rank_of_stage(s, to), 0 };
    size_t bytes = s->env.shape.Ts * s->env.shape.h * sizeof(float);
    enum pt_status st;

    if (*buf == NULL)
        return pt_fail(err, PT_BUG, NULL, 0, "nothing to send to stage %u", to);
    if (s->n_parcels == s->cap_parcels) {
        size_t cap = s->cap_parcels > 0 ? 2 * s->cap_parcels : 16;
        struct exec_parcel *grown = realloc(s->parcels, cap * sizeof(*grown));

        if (grown == NULL)
            return pt_fail(err, PT_SYSTEM, NULL, 0, "out of memory");
        s->parcels = grown;
        s->cap_parcels = cap;
    }
    st = s->comm->ops->send(s->comm, p.to, tag, p.buf, bytes, &p.ticket, err);
    if (st != PT_OK)
        return st;
    s->parcels[s->n_parcels++] = p;
    *buf = NULL;
    return PT_OK;
}

static enum pt_status message(struct exec_stage *s, const struct pt_instr *in,
                              struct pt_error *err)
{
    struct exec_piece *p = &s->piece[in->chunk];
    struct exec_flight *f = exec_flight(s, in->chunk, in->micro_batch);
    size_t bytes = s->env.shape.Ts * s->env.shape.h * sizeof(float);
    bool gradient = in->kind == PT_SEND_GRADIENT || in->kind == PT_RECV_GRADIENT;
    float **at;
    enum pt_status st;

    if (f == NULL)
        return pt_fail(err, PT_SYSTEM, NULL, 0, "out of memory");
    if (in->kind == PT_SEND_ACTIVATION)
        return exec_post(s, in->peer, tag_of(false, p->index + 1, in->micro_batch),
                         &f->x[p->n_layers], err);
    if (in->kind == PT_SEND_GRADIENT) {
        st = exec_post(s, in->peer, tag_of(true, p->index - 1, in->micro_batch),
                       &f->dy[0], err);
        if (st == PT_OK)
            exec_flight_done(s, in->chunk, in->micro_batch);
        return st;
    }
    at = gradient ? &f->dy[p->n_layers] : &f->x[0];
    st = exec_alloc(&s->env.arena, EXEC_USE_ACTIVATIONS, bytes / sizeof(float), at, err);
    if (st != PT_OK)
        return st;
    return exec_recv(s->comm, exec_rank_of_stage(s, in->peer),
                     tag_of(gradient, p->index, in->micro_batch), *at, bytes, err);
}

static enum pt_status each_piece(struct exec_stage *s, exec_held_fn *f,
                                 struct pt_error *err)
{
    enum pt_status st = PT_OK;

    for (uint32_t c = 0; c < s->schedule.chunks && st == PT_OK; c++)
        st = exec_piece_each(s, &s->piece[c], f, err);
    return st;
}

static enum pt_status finish_all(struct exec_stage *s, struct pt_error *err)
{
    s->reducing = NULL;
    return each_piece(s, exec_held_finish, err);
}

/* Embedding and head of a tied model on this stage, where they are. */
static void tied_units(struct exec_stage *s, struct exec_held **tokens,
                       struct exec_held **head)
{
    *tokens = *head = NULL;
    for (uint32_t c = 0; c < s->schedule.chunks; c++) {
        if (s->piece[c].tokens != NULL)
            *tokens = s->piece[c].tokens;
        if (s->piece[c].head != NULL)
            *head = s->piece[c].head;
    }
}

/* The two gradients of a tied embedding, lookup and head, each already reduced over its
 * replicas, become one sum: in place on one stage, by an all-reduce between two. */
static enum pt_status add_tied(struct exec_stage *s, struct pt_error *err)
{
    struct exec_held *tokens, *head, *mine;
    struct exec_collective op = { EXEC_ALLREDUCE, EXEC_F32, false, false, NULL, 0, NULL };
    enum pt_status st = finish_all(s, err);

    tied_units(s, &tokens, &head);
    if (st != PT_OK || !s->env.shape.tied || s->tied_added ||
        (tokens == NULL && head == NULL))
        return st;
    s->tied_added = true;
    mine = tokens != NULL ? tokens : head;
    if (tokens != NULL && head != NULL) {
        if (mine->to > mine->from)
            s->env.k->add(exec_held_g(s, tokens, tokens->from),
                          exec_held_g(s, head, head->from), mine->to - mine->from);
        return PT_OK;
    }
    op.n = mine->to - mine->from;
    op.buf = op.n > 0 ? exec_held_g(s, mine, mine->from) : NULL;
    return exec_collective(s->tied, &op, err);
}

static enum pt_status norms_of(struct exec_stage *s, struct exec_held *h,
                               struct pt_error *err)
{
    (void)err;
    /* a tied head's gradient is the embedding's, counted there */
    if (h->unit.kind != EXEC_HEAD || !s->env.shape.tied)
        exec_held_norms(s, h, s->table);
    return PT_OK;
}

/* Table: cell norms, then one loss per micro-batch of the global batch, then the stop
 * flag. Each entry has one contributor, so the sum over ranks is exact and every rank
 * adds the same numbers in the same order. */
static enum pt_status global_norm(struct exec_stage *s, enum exec_stop stop,
                                  struct pt_error *err)
{
    struct exec_collective op = { EXEC_ALLREDUCE, EXEC_F64,   false, true,
                                  s->table,       s->table_n, NULL };
    size_t n_losses = (size_t)s->micro_batches * s->layout->dp;
    double *losses = s->table + s->norm_entries, sum = 0, mine = 0, loss = 0;
    enum pt_status st = add_tied(s, err);

    if (st != PT_OK)
        return st;
    memset(s->table, 0, s->table_n * sizeof(*s->table));
    if ((st = each_piece(s, norms_of, err)))
        return st;
    for (size_t i = 0; i < s->norm_entries; i++)
        mine += s->table[i];
    s->norm_local = sqrt(mine);
    for (uint32_t c = 0; c < s->schedule.chunks; c++)
        for (uint32_t i = 0; s->piece[c].last && s->tp_rank == 0 && i < s->micro_batches;
             i++)
            losses[(size_t)i * s->layout->dp + s->dp_rank] = s->losses[i];
    losses[n_losses] = stop;
    if ((st = exec_collective(s->world, &op, err)))
        return st;
    for (size_t i = 0; i < s->norm_entries; i++)
        sum += s->table[i];
    for (size_t i = 0; i < n_losses; i++)
        loss += losses[i];
    s->norm = sqrt(sum);
    s->loss = loss * (double)s->scale;
    s->stop = (enum exec_stop)losses[n_losses];
    return PT_OK;
}

static enum pt_status optimizer_part(struct exec_stage *s, const struct pt_instr *in,
                                     struct pt_error *err)
{
    struct exec_adam adam;

    (void)err;
    exec_adam_init(s->optimizer, s->step, s->norm, &adam);
    for (uint32_t c = 0; c < s->schedule.chunks; c++) {
        struct exec_piece *p = &s->piece[c];
        struct exec_held *ends[] = { p->tokens, p->positions, p->norm, p->head };

        for (size_t i = 0; i < p->n_layers + 4u; i++) {
            struct exec_held *h = i < 4 ? ends[i] : &p->layers[i - 4];

            if (h == NULL)
                continue;
            if (in->kind == PT_OPTIMIZER)
                exec_held_update(s, h, in->micro_batch, &adam);
            else if (in->kind == PT_OFFLOAD_OUT)
                exec_held_out(s, h, in->micro_batch);
            else
                exec_held_in(s, h, in->micro_batch);
        }
    }
    return PT_OK;
}

/* Does another FORWARD of this chunk come before this micro-batch's backward? Then the
 * head's backward runs at once, so that only one micro-batch's logits exist at a time. */
static bool fuses_head(const struct exec_stage *s, const struct pt_program *prog,
                       size_t at)
{
    const struct pt_instr *in = &prog->instr[at];

    if (!s->piece[in->chunk].last)
        return false;
    for (size_t i = at + 1; i < prog->n; i++) {
        const struct pt_instr *next = &prog->instr[i];

        if (next->chunk != in->chunk)
            continue;
        if (next->kind == PT_FORWARD)
            return true;
        if (next->kind == PT_BACKWARD || next->kind == PT_BACKWARD_INPUT)
            return next->micro_batch != in->micro_batch;
    }
    return true;
}

static enum pt_status execute(struct exec_stage *s, const struct pt_program *prog,
                              size_t at, enum exec_stop stop, struct pt_error *err)
{
    const struct pt_instr *in = &prog->instr[at];
    enum pt_status st;

    switch ((enum pt_instr_kind)in->kind) {
    case PT_FORWARD:
        s->fuse_head = fuses_head(s, prog, at);
        return exec_forward(s, in->chunk, in->micro_batch, err);
    case PT_BACKWARD:
        return exec_backward_input(s, in->chunk, in->micro_batch, true, err);
    case PT_BACKWARD_INPUT:
        return exec_backward_input(s, in->chunk, in->micro_batch, false, err);
    case PT_BACKWARD_WEIGHT:
        return exec_backward_weight(s, in->chunk, in->micro_batch, err);
    case PT_SEND_ACTIVATION:
    case PT_RECV_ACTIVATION:
    case PT_SEND_GRADIENT:
    case PT_RECV_GRADIENT:
        return message(s, in, err);
    case PT_GATHER_PARAMS: /* ZeRO-3 gathers unit by unit, where they are used */
        return exec_piece_each(s, &s->piece[in->chunk], exec_held_gather, err);
    case PT_REDUCE_GRADS: /* ZeRO-2 and 3 started it unit by unit */
        if (s->zero >= 2)
            s->reducing = NULL;
        return exec_piece_each(s, &s->piece[in->chunk],
                               s->zero >= 2 ? exec_held_finish : exec_held_reduce, err);
    case PT_REDUCE_TIED:
        return add_tied(s, err);
    case PT_NORM:
        return global_norm(s, stop, err);
    case PT_OFFLOAD_OUT:
        st = add_tied(s, err); /* what leaves must be complete */
        return st == PT_OK ? optimizer_part(s, in, err) : st;
    case PT_OFFLOAD_IN:
    case PT_OPTIMIZER:
        return optimizer_part(s, in, err);
    case PT_BARRIER:
        return finish_all(s, err);
    case PT_SNAPSHOT:
    case PT_N_INSTR_KINDS:
        break;
    }
    return pt_fail(err, PT_BUG, NULL, 0, "instruction %s is not known here",
                   pt_instr_name((enum pt_instr_kind)in->kind));
}

static enum pt_status clear(struct exec_stage *s, struct exec_held *h,
                            struct pt_error *err)
{
    (void)err;
    exec_held_clear(s, h);
    return PT_OK;
}

enum pt_status exec_step(struct exec_stage *s, uint64_t step, enum exec_stop stop,
                         struct pt_error *err)
{
    const struct pt_program *prog = &s->schedule.stage[s->stage];
    enum pt_status st = each_piece(s, clear, err);

    s->step = step;
    s->tied_added = false;
    s->copied_bytes = 0;
    for (size_t i = 0; i < prog->n && st == PT_OK; i++) {
        if (s->heartbeat != NULL)
            s->heartbeat(s->heartbeat_arg, &prog->instr[i]);
        s->record[i].begin_s = now_s();
        st = execute(s, prog, i, stop, err);
        s->record[i].end_s = now_s();
        s->record[i].bytes = (double)s->env.arena.total;
        if (st == PT_OK)
            st = exec_collect(s, false, err);
    }
    if (st == PT_OK && (s->env.arena.damaged || s->host.damaged))
        return pt_fail(err, PT_BUG, NULL, 0, "a block of the arena was overwritten");
    return st;
}

static enum pt_status gathered(struct exec_stage *s, struct exec_held *h,
                               struct pt_error *err)
{
    return s->zero < 3 && h->trains ? exec_held_weights(s, h, err) : PT_OK;
}

enum pt_status exec_settle(struct exec_stage *s, struct pt_error *err)
{
    enum pt_status st = each_piece(s, gathered, err);

    return st == PT_OK ? exec_collect(s, true, err) : st;
}
