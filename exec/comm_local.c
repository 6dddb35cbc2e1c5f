#include "config.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "exec/comm_local.h"

#define MAX_GROUPS 8
#define SPINS                                                                            \
    4000 /* polls before a rank sleeps, when every rank has a core of its own            \
          */
#define SUM_BLOCK                                                                        \
    2048 /* floats that are summed over all members before the next ones                 \
          */

struct exec_request {
    struct exec_collective op;
    unsigned phase;
};

struct exec_group {
    struct exec_group_base base;
    uint32_t ranks[EXEC_MAX_RANKS];
    struct exec_slot *slot[EXEC_MAX_RANKS];
    uint32_t head, tail; /* sequence numbers: oldest unfinished, next */
    struct exec_request queue[EXEC_RING];
};

struct local_comm {
    struct exec_comm base;
    const struct exec_shared *shared;
    const struct exec_kernels *k;
    struct exec_rank_status *status;
    struct exec_group *groups[MAX_GROUPS];
    uint32_t n_groups;
    unsigned spins;
    uint64_t serial;
};

static struct local_comm *local_of(struct exec_comm *comm)
{
    return (struct local_comm *)(void *)comm;
}

static size_t width(enum exec_dtype t)
{
    return t == EXEC_F32 ? sizeof(float) : sizeof(double);
}

static void ring_all(const struct exec_group *g)
{
    struct local_comm *c = local_of(g->base.comm);

    for (uint32_t i = 0; i < g->base.n; i++)
        if (i != g->base.me)
            exec_shared_ring(c->shared, g->ranks[i]);
}

static void *peer_buf(const struct exec_group *g, uint32_t member, uint32_t seq)
{
    struct local_comm *c = local_of(g->base.comm);

    return (char *)c->shared->header + g->slot[member]->ring[seq % EXEC_RING].offset;
}

static size_t edge(const struct exec_group *g, const struct exec_collective *op,
                   uint32_t r)
{
    return op->edges != NULL ? op->edges[r] : exec_even_edge(op->n, g->base.n, r);
}

/* Everyone posted the same thing? A difference is a bug of a schedule or of ours: say
 * whose. */
static enum pt_status verify(const struct exec_group *g, uint32_t seq,
                             struct pt_error *err)
{
    const struct exec_posted *mine = &g->slot[g->base.me]->ring[seq % EXEC_RING];

    for (uint32_t i = 0; i < g->base.n; i++) {
        const struct exec_posted *p = &g->slot[i]->ring[seq % EXEC_RING];

        if (p->kind != mine->kind || p->n != mine->n || p->dtype != mine->dtype ||
            p->max != mine->max)
            return pt_fail(
                err, PT_SYSTEM, NULL, 0,
                "collective mismatch in the %s group: its operation %u is %s of "
                "%llu elements on rank %u, %s of %llu on rank %u",
                exec_dim_names[g->base.dim], seq,
                exec_collective_names[mine->kind % EXEC_N_COLLECTIVES],
                (unsigned long long)mine->n, g->ranks[g->base.me],
                exec_collective_names[p->kind % EXEC_N_COLLECTIVES],
                (unsigned long long)p->n, g->ranks[i]);
    }
    return PT_OK;
}

static void reduce_f32(const struct exec_group *g, uint32_t seq, size_t from, size_t to)
{
    const struct exec_kernels *k = local_of(g->base.comm)->k;
    float *out = peer_buf(g, g->base.me, seq), sum[SUM_BLOCK];
    const float *first = peer_buf(g, 0, seq), *second = peer_buf(g, 1, seq);

    if (g->base.n == 2) {
        k->sum2(out + from, first + from, second + from, to - from);
        return;
    }
    for (size_t i = from; i < to; i += SUM_BLOCK) {
        size_t n = to - i < SUM_BLOCK ? to - i : SUM_BLOCK;

        k->sum2(sum, first + i, second + i, n);
        for (uint32_t r = 2; r < g->base.n; r++)
            k->add(sum, (const float *)peer_buf(g, r, seq) + i, n);
        memcpy(out + i, sum, n * sizeof(*sum));
    }
}

static void reduce_f64(const struct exec_group *g, uint32_t seq, size_t from, size_t to)
{
    double *out = peer_buf(g, g->base.me, seq);

    for (size_t i = from; i < to; i++) {
        double s = ((const double *)peer_buf(g, 0, seq))[i];

        for (uint32_t r = 1; r < g->base.n; r++)
            s += ((const double *)peer_buf(g, r, seq))[i];
        out[i] = s;
    }
}

static void max_f32(const struct exec_group *g, uint32_t seq, size_t from, size_t to)
{
    float *out = peer_buf(g, g->base.me, seq);

    for (size_t i = from; i < to; i++) {
        float m = ((const float *)peer_buf(g, 0, seq))[i];

        for (uint32_t r = 1; r < g->base.n; r++) {
            float x = ((const float *)peer_buf(g, r, seq))[i];

            m = x > m || x != x ? x : m;
        }
        out[i] = m;
    }
}

static void reduce(const struct exec_group *g, const struct exec_collective *op,
                   uint32_t seq)
{
    size_t from = edge(g, op, g->base.me), to = edge(g, op, g->base.me + 1);

    if (op->dtype == EXEC_F64)
        reduce_f64(g, seq, from, to);
    else if (op->max)
        max_f32(g, seq, from, to);
    else
        reduce_f32(g, seq, from, to);
}

static void copy_slices(const struct exec_group *g, const struct exec_collective *op,
                        uint32_t seq)
{
    size_t w = width(op->dtype);

    for (uint32_t i = 1; i < g->base.n; i++) {
        uint32_t r = (g->base.me + i) % g->base.n;
        size_t from = edge(g, op, r) * w, to = edge(g, op, r + 1) * w;

        memcpy((char *)op->buf + from, (char *)peer_buf(g, r, seq) + from, to - from);
    }
}

static bool passed(_Atomic uint32_t *counter, uint32_t seq)
{
    return (int32_t)(atomic_load(counter) - seq) > 0;
}

enum { POSTED, REDUCED, FINISHED };

static bool all_passed(const struct exec_group *g, int which, uint32_t seq)
{
    for (uint32_t i = 0; i < g->base.n; i++) {
        struct exec_slot *s = g->slot[i];

        if (!passed(which == POSTED    ? &s->posted
                    : which == REDUCED ? &s->reduced
                                       : &s->finished,
                    seq))
            return false;
    }
    return true;
}

/* What a request does once everyone has posted. */
static enum pt_status first_work(struct exec_group *g, struct exec_request *r,
                                 uint32_t seq, struct pt_error *err)
{
    struct exec_slot *mine = g->slot[g->base.me];
    enum pt_status st = verify(g, seq, err);

    if (st != PT_OK)
        return st;
    if (r->op.kind == EXEC_ALLREDUCE || r->op.kind == EXEC_REDUCESCATTER) {
        reduce(g, &r->op, seq);
        atomic_store(&mine->reduced, seq + 1);
        r->phase = REDUCED;
    } else {
        if (r->op.kind == EXEC_ALLGATHER)
            copy_slices(g, &r->op, seq);
        else if (g->base.me != 0)
            memcpy(r->op.buf, peer_buf(g, 0, seq), r->op.n * width(r->op.dtype));
        atomic_store(&mine->reduced, seq + 1);
        atomic_store(&mine->finished, seq + 1);
        r->phase = FINISHED;
    }
    ring_all(g);
    return PT_OK;
}

/* One state further; *moved says whether, *done whether the request is complete. */
static enum pt_status step(struct exec_group *g, struct exec_request *r, uint32_t seq,
                           bool *moved, bool *done, struct pt_error *err)
{
    *done = false;
    *moved = all_passed(g, (int)r->phase, seq);
    if (!*moved)
        return PT_OK;
    if (r->phase == POSTED)
        return first_work(g, r, seq, err);
    if (r->phase == REDUCED) {
        if (r->op.kind == EXEC_ALLREDUCE)
            copy_slices(g, &r->op, seq);
        atomic_store(&g->slot[g->base.me]->finished, seq + 1);
        ring_all(g);
        r->phase = FINISHED;
        *done = r->op.kind == EXEC_REDUCESCATTER;
        return PT_OK;
    }
    *done = true;
    return PT_OK;
}

static enum pt_status advance(struct exec_group *g, struct pt_error *err)
{
    while (g->head != g->tail) {
        struct exec_request *r = &g->queue[g->head % EXEC_RING];
        bool moved, done;
        enum pt_status st = step(g, r, g->head, &moved, &done, err);

        if (st != PT_OK)
            return st;
        if (!moved)
            return PT_OK;
        if (done)
            g->head++;
    }
    return PT_OK;
}

static enum pt_status local_progress(struct exec_comm *comm, struct pt_error *err)
{
    struct local_comm *c = local_of(comm);
    enum pt_status st = PT_OK;

    for (uint32_t i = 0; i < c->n_groups && st == PT_OK; i++)
        st = advance(c->groups[i], err);
    return st;
}

static enum pt_status aborted(const struct local_comm *c, struct pt_error *err)
{
    if (!atomic_load(&c->shared->header->abort))
        return PT_OK;
    return pt_fail(err, PT_SYSTEM, NULL, 0, "rank %u gives up: another rank failed",
                   c->base.rank);
}

/* Runs until cond(arg) or a failure. */
static enum pt_status wait_until(struct local_comm *c, bool (*cond)(void *), void *arg,
                                 struct pt_error *err)
{
    enum pt_status st = PT_OK;
    unsigned spins = c->spins;

    for (;;) {
        uint32_t seen = atomic_load(&c->status->doorbell);

        st = local_progress(&c->base, err);
        if (st != PT_OK || cond(arg))
            return st;
        st = aborted(c, err);
        if (st != PT_OK)
            return st;
        if (spins > 0) {
            spins--;
#if defined(__x86_64__)
            __builtin_ia32_pause();
#endif
            continue;
        }
        exec_shared_sleep(c->shared, c->base.rank, seen);
    }
}

struct group_wait {
    struct exec_group *g;
    uint32_t seq;
};

static bool request_done(void *arg)
{
    struct group_wait *w = arg;

    return (int32_t)(w->g->head - w->seq) > 0;
}

static void note(struct local_comm *c, uint32_t what, uint32_t dim, uint32_t peer,
                 uint64_t n, uint64_t seq)
{
    struct exec_rank_status *s = c->status;

    atomic_store_explicit(&s->now_dim, dim, memory_order_relaxed);
    atomic_store_explicit(&s->now_peer, peer, memory_order_relaxed);
    atomic_store_explicit(&s->now_n, n, memory_order_relaxed);
    atomic_store_explicit(&s->now_seq, seq, memory_order_relaxed);
    atomic_store(&s->now_what, what);
}

static void note_done(struct local_comm *c)
{
    struct exec_rank_status *s = c->status;

    atomic_store_explicit(&s->last_dim, s->now_dim, memory_order_relaxed);
    atomic_store_explicit(&s->last_peer, s->now_peer, memory_order_relaxed);
    atomic_store_explicit(&s->last_n, s->now_n, memory_order_relaxed);
    atomic_store_explicit(&s->last_seq, s->now_seq, memory_order_relaxed);
    atomic_store_explicit(&s->last_what, s->now_what, memory_order_relaxed);
    atomic_store(&s->now_what, 0);
    atomic_fetch_add(&s->heartbeat, 1);
}

static enum pt_status wait_seq(struct exec_group *g, uint32_t seq, struct pt_error *err)
{
    struct local_comm *c = local_of(g->base.comm);
    struct group_wait w = { g, seq };
    const struct exec_collective *op = &g->queue[seq % EXEC_RING].op;
    enum pt_status st;

    if (request_done(&w))
        return PT_OK;
    note(c, 1 + (uint32_t)op->kind, g->base.dim, g->ranks[0], op->n, seq);
    st = wait_until(c, request_done, &w, err);
    if (st == PT_OK)
        note_done(c);
    return st;
}

static enum pt_status local_start(struct exec_group *g, const struct exec_collective *op,
                                  uint64_t *ticket, struct pt_error *err)
{
    struct local_comm *c = local_of(g->base.comm);
    struct exec_slot *mine = g->slot[g->base.me];
    uint32_t seq = g->tail;
    uint64_t offset = (uint64_t)((char *)op->buf - (char *)c->shared->header);
    enum pt_status st;

    if ((char *)op->buf < (char *)c->base.arena ||
        (char *)op->buf + op->n * width(op->dtype) >
            (char *)c->base.arena + c->base.arena_bytes)
        return pt_fail(err, PT_BUG, NULL, 0, "%s of a buffer outside the arena",
                       exec_collective_names[op->kind]);
    if (g->tail - g->head == EXEC_RING) {
        st = wait_seq(g, g->head, err);
        if (st != PT_OK)
            return st;
    }
    mine->ring[seq % EXEC_RING] =
        (struct exec_posted){ op->kind, op->dtype, op->max, 0, op->n, offset };
    g->queue[seq % EXEC_RING] = (struct exec_request){ *op, POSTED };
    g->tail++;
    atomic_store(&mine->posted, seq + 1);
    ring_all(g);
    *ticket = (uint64_t)seq + 1;
    return advance(g, err);
}

static enum pt_status local_wait(struct exec_group *g, uint64_t ticket,
                                 struct pt_error *err)
{
    return wait_seq(g, (uint32_t)(ticket - 1), err);
}

static enum pt_status local_group(struct exec_comm *comm, enum exec_dim dim,
                                  const uint32_t *ranks, uint32_t n,
                                  struct exec_group **out, struct pt_error *err)
{
    struct local_comm *c = local_of(comm);
    struct exec_group *g = calloc(1, sizeof(*g));

    if (g == NULL || c->n_groups == MAX_GROUPS) {
        free(g);
        return pt_fail(err, PT_SYSTEM, NULL, 0, "out of memory for a group");
    }
    g->base = (struct exec_group_base){ comm, dim, n, 0, g->ranks };
    for (uint32_t i = 0; i < n; i++) {
        g->ranks[i] = ranks[i];
        g->slot[i] = exec_shared_slot(c->shared, dim, ranks[0], i);
        if (ranks[i] == comm->rank)
            g->base.me = i;
    }
    /* where an earlier group of these ranks ended */
    g->head = g->tail = atomic_load(&g->slot[g->base.me]->posted);
    c->groups[c->n_groups++] = g;
    *out = g;
    return PT_OK;
}

static void local_group_free(struct exec_group *g)
{
    struct local_comm *c;

    if (g == NULL)
        return;
    c = local_of(g->base.comm);
    for (uint32_t i = 0; i < c->n_groups; i++)
        if (c->groups[i] == g)
            c->groups[i] = c->groups[--c->n_groups];
    free(g);
}

struct mail_wait {
    struct exec_letter *mail;
    uint64_t tag;
    unsigned found;
    bool empty; /* look for a free letter instead */
};

static bool letter_found(void *arg)
{
    struct mail_wait *w = arg;

    for (w->found = 0; w->found < EXEC_MAIL; w->found++) {
        struct exec_letter *l = &w->mail[w->found];
        uint32_t state = atomic_load(&l->state);

        if (w->empty ? state != 1 : state == 1 && l->tag == w->tag)
            return true;
    }
    return false;
}

static enum pt_status local_send(struct exec_comm *comm, uint32_t to, uint64_t tag,
                                 const void *buf, size_t bytes, uint64_t *ticket,
                                 struct pt_error *err)
{
    struct local_comm *c = local_of(comm);
    struct mail_wait w = { exec_shared_mail(c->shared, comm->rank, to), 0, 0, true };
    struct exec_letter *l;
    enum pt_status st = PT_OK;

    if (!letter_found(&w)) {
        note(c, 16, EXEC_DIM_PP, to, bytes, tag);
        st = wait_until(c, letter_found, &w, err);
        if (st != PT_OK)
            return st;
        note_done(c);
    }
    l = &w.mail[w.found];
    l->tag = tag;
    l->bytes = bytes;
    l->offset = (uint64_t)((const char *)buf - (const char *)c->shared->header);
    l->serial = ++c->serial;
    comm->traffic.tensor_bytes[EXEC_DIM_PP] += (double)bytes;
    atomic_store(&l->state, 1);
    exec_shared_ring(c->shared, to);
    *ticket = l->serial * EXEC_MAIL + w.found;
    return PT_OK;
}

static bool local_sent(struct exec_comm *comm, uint32_t to, uint64_t ticket)
{
    struct local_comm *c = local_of(comm);
    struct exec_letter *l =
        &exec_shared_mail(c->shared, comm->rank, to)[ticket % EXEC_MAIL];

    return l->serial != ticket / EXEC_MAIL || atomic_load(&l->state) == 2;
}

static enum pt_status local_recv(struct exec_comm *comm, uint32_t from, uint64_t tag,
                                 void *buf, size_t bytes, struct pt_error *err)
{
    struct local_comm *c = local_of(comm);
    struct mail_wait w = { exec_shared_mail(c->shared, from, comm->rank), tag, 0, false };
    struct exec_letter *l;
    enum pt_status st;

    note(c, 17, EXEC_DIM_PP, from, bytes, tag);
    st = wait_until(c, letter_found, &w, err);
    if (st != PT_OK)
        return st;
    l = &w.mail[w.found];
    if (l->bytes != bytes)
        return pt_fail(err, PT_SYSTEM, NULL, 0,
                       "rank %u sent %llu bytes where rank %u expects %zu", from,
                       (unsigned long long)l->bytes, comm->rank, bytes);
    memcpy(buf, (char *)c->shared->header + l->offset, bytes);
    atomic_store(&l->state, 2);
    exec_shared_ring(c->shared, from);
    note_done(c);
    return PT_OK;
}

static void local_close(struct exec_comm *comm)
{
    struct local_comm *c = local_of(comm);

    while (c->n_groups > 0)
        local_group_free(c->groups[0]);
    free(c);
}

static const struct exec_comm_ops local_ops = {
    .name = "local",
    .group = local_group,
    .group_free = local_group_free,
    .start = local_start,
    .wait = local_wait,
    .send = local_send,
    .sent = local_sent,
    .recv = local_recv,
    .progress = local_progress,
    .close = local_close,
};

enum pt_status exec_comm_local_open(const struct exec_shared *shared, uint32_t rank,
                                    const struct exec_kernels *k, struct exec_comm **out,
                                    struct pt_error *err)
{
    struct local_comm *c = calloc(1, sizeof(*c));
    cpu_set_t set;
    int cpus = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;

    if (c == NULL)
        return pt_fail(err, PT_SYSTEM, NULL, 0, "out of memory");
    c->base = (struct exec_comm){ &local_ops,
                                  rank,
                                  shared->header->size,
                                  exec_shared_arena(shared, rank),
                                  shared->header->arena_bytes,
                                  { { 0 }, 0 } };
    c->shared = shared;
    c->k = k;
    c->status = &shared->header->rank[rank];
    c->spins = shared->header->size <= (uint32_t)cpus ? SPINS : 0;
    *out = &c->base;
    return PT_OK;
}
