/* A collective of g members as messages, each phase started when the one before is done:
 *
 *   announce   everybody tells everybody what it starts; a difference is a mismatch
 *   scatter    part r of the buffer goes to member r, which adds the parts in rank order
 *              (sums only)
 *   gather     member r's part goes to everybody (all-reduce, all-gather); or member 0's
 *              buffer (broadcast)
 *
 * A message is announced under one tag, in order; its content follows under a tag of its
 * own, so that messages may be taken in another order than they were sent. */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "exec/comm_wire.h"

#define MAX_GROUPS 8
#define SUM_BLOCK                                                                        \
    2048 /* floats that are summed over all members before the next ones                 \
          */
#define TAG_LETTER (4 * EXEC_N_DIMS)
#define TAG_BODY   (TAG_LETTER + 1)
#define SETUP      10 /* setting up may take this many times longer than a wait */

enum phase { ANNOUNCE, SCATTER, GATHER };

struct announce {
    uint32_t kind, dtype, max, seq;
    uint64_t n;
};

struct request {
    struct exec_collective op;
    uint32_t seq;
    enum phase phase;
    struct announce mine, *theirs;
    struct exec_transfer **transfer; /* up to 2 (g - 1); NULL: done */
    uint32_t n_transfers;
    char *scratch; /* the others' parts of my slice, one after the other */
    struct request *next;
};

struct exec_group {
    struct exec_group_base base;
    uint32_t *ranks;
    uint32_t finished, started; /* sequence numbers */
    struct request *head, *tail;
};

struct letter { /* outgoing; or announced and not yet taken */
    uint64_t tag, bytes, serial;
    struct exec_transfer *head, *body;
    uint32_t peer;
    struct letter *next;
};

struct wire_comm {
    struct exec_comm base;
    struct exec_wire *wire;
    const struct exec_kernels *k;
    const struct exec_shared *shared;
    struct exec_rank_status *status;
    double watchdog_s;
    struct exec_group *groups[MAX_GROUPS];
    uint32_t n_groups;
    uint64_t serial;
    struct letter *sent, *announced;
};

static const struct exec_comm_ops wire_ops;

static struct wire_comm *wire_of(struct exec_comm *comm)
{
    return (struct wire_comm *)(void *)comm;
}

struct exec_wire *exec_comm_wire(struct exec_comm *comm)
{
    return comm != NULL && comm->ops == &wire_ops ? wire_of(comm)->wire : NULL;
}

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static size_t width(enum exec_dtype t)
{
    return t == EXEC_F32 ? sizeof(float) : sizeof(double);
}

/* Bytes of the buffer before part r. */
static size_t edge(const struct exec_group *g, const struct exec_collective *op,
                   uint32_t r)
{
    return width(op->dtype) *
           (op->edges != NULL ? op->edges[r] : exec_even_edge(op->n, g->base.n, r));
}

static bool sums(const struct exec_collective *op)
{
    return op->kind == EXEC_ALLREDUCE || op->kind == EXEC_REDUCESCATTER;
}

/* --- one collective --- */

static enum pt_status give(struct exec_group *g, struct request *r, uint32_t member,
                           const void *buf, size_t bytes, struct pt_error *err)
{
    struct exec_wire *w = wire_of(g->base.comm)->wire;

    if (bytes == 0)
        return PT_OK;
    return w->ops->send(w, g->ranks[member], 4 * g->base.dim + r->phase, buf, bytes,
                        &r->transfer[r->n_transfers++], err);
}

static enum pt_status take(struct exec_group *g, struct request *r, uint32_t member,
                           void *buf, size_t bytes, struct pt_error *err)
{
    struct exec_wire *w = wire_of(g->base.comm)->wire;

    if (bytes == 0)
        return PT_OK;
    return w->ops->recv(w, g->ranks[member], 4 * g->base.dim + r->phase, buf, bytes,
                        &r->transfer[r->n_transfers++], err);
}

static enum pt_status announce(struct exec_group *g, struct request *r,
                               struct pt_error *err)
{
    enum pt_status st = PT_OK;

    for (uint32_t i = 0; i < g->base.n && st == PT_OK; i++) {
        if (i == g->base.me)
            continue;
        st = take(g, r, i, &r->theirs[i], sizeof(r->theirs[i]), err);
        if (st == PT_OK)
            st = give(g, r, i, &r->mine, sizeof(r->mine), err);
    }
    return st;
}

static enum pt_status scatter(struct exec_group *g, struct request *r,
                              struct pt_error *err)
{
    size_t slice = edge(g, &r->op, g->base.me + 1) - edge(g, &r->op, g->base.me);
    char *at;
    enum pt_status st = PT_OK;

    r->scratch = malloc(slice * (g->base.n - 1) + 1);
    if (r->scratch == NULL)
        return pt_fail_memory(err);
    at = r->scratch;
    for (uint32_t i = 0; i < g->base.n && st == PT_OK; i++) {
        size_t from = edge(g, &r->op, i), to = edge(g, &r->op, i + 1);

        if (i == g->base.me)
            continue;
        st = take(g, r, i, at, slice, err);
        at += slice;
        if (st == PT_OK)
            st = give(g, r, i, (char *)r->op.buf + from, to - from, err);
    }
    return st;
}

static enum pt_status gather(struct exec_group *g, struct request *r,
                             struct pt_error *err)
{
    bool whole = r->op.kind == EXEC_BROADCAST;
    enum pt_status st = PT_OK;

    for (uint32_t i = 0; i < g->base.n && st == PT_OK; i++) {
        uint32_t me = g->base.me;
        char *buf = r->op.buf;
        size_t all = r->op.n * width(r->op.dtype);

        if (i == me)
            continue;
        if (whole && me == 0)
            st = give(g, r, i, buf, all, err);
        else if (whole)
            st = i == 0 ? take(g, r, 0, buf, all, err) : PT_OK;
        else {
            size_t from = edge(g, &r->op, i), mine = edge(g, &r->op, me);

            st = take(g, r, i, buf + from, edge(g, &r->op, i + 1) - from, err);
            if (st == PT_OK)
                st = give(g, r, i, buf + mine, edge(g, &r->op, me + 1) - mine, err);
        }
    }
    return st;
}

/* Where member i's part of my slice lies. */
static const void *part(const struct exec_group *g, const struct request *r, uint32_t i)
{
    size_t from = edge(g, &r->op, g->base.me);
    size_t slice = edge(g, &r->op, g->base.me + 1) - from;

    if (i == g->base.me)
        return (const char *)r->op.buf + from;
    return r->scratch + slice * (i < g->base.me ? i : i - 1);
}

static void sum_f32(const struct exec_group *g, const struct request *r, float *out,
                    size_t n)
{
    const struct exec_kernels *k = wire_of(g->base.comm)->k;
    const float *first = part(g, r, 0), *second = part(g, r, 1);
    float sum[SUM_BLOCK];

    for (size_t i = 0; i < n; i += SUM_BLOCK) {
        size_t some = n - i < SUM_BLOCK ? n - i : SUM_BLOCK;

        k->sum2(sum, first + i, second + i, some);
        for (uint32_t m = 2; m < g->base.n; m++)
            k->add(sum, (const float *)part(g, r, m) + i, some);
        memcpy(out + i, sum, some * sizeof(*sum));
    }
}

static void sum_f64(const struct exec_group *g, const struct request *r, double *out,
                    size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double s = ((const double *)part(g, r, 0))[i];

        for (uint32_t m = 1; m < g->base.n; m++)
            s += ((const double *)part(g, r, m))[i];
        out[i] = s;
    }
}

static void max_f32(const struct exec_group *g, const struct request *r, float *out,
                    size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float s = ((const float *)part(g, r, 0))[i];

        for (uint32_t m = 1; m < g->base.n; m++) {
            float x = ((const float *)part(g, r, m))[i];

            s = x > s || x != x ? x : s;
        }
        out[i] = s;
    }
}

static void reduce(const struct exec_group *g, struct request *r)
{
    size_t from = edge(g, &r->op, g->base.me);
    size_t n = (edge(g, &r->op, g->base.me + 1) - from) / width(r->op.dtype);
    void *out = (char *)r->op.buf + from;

    if (r->op.dtype == EXEC_F64)
        sum_f64(g, r, out, n);
    else if (r->op.max)
        max_f32(g, r, out, n);
    else
        sum_f32(g, r, out, n);
}

/* Everyone started the same thing? */
static enum pt_status verify(const struct exec_group *g, const struct request *r,
                             struct pt_error *err)
{
    for (uint32_t i = 0; i < g->base.n; i++) {
        const struct announce *p = &r->theirs[i], *mine = &r->mine;

        if (i != g->base.me &&
            (p->kind != mine->kind || p->n != mine->n || p->dtype != mine->dtype ||
             p->max != mine->max || p->seq != mine->seq))
            return pt_fail(
                err, PT_SYSTEM, NULL, 0,
                "collective mismatch in the %s group: its operation %u is %s of "
                "%llu elements on rank %u, %s of %llu on rank %u",
                exec_dim_names[g->base.dim], r->seq,
                exec_collective_names[mine->kind % EXEC_N_COLLECTIVES],
                (unsigned long long)mine->n, g->ranks[g->base.me],
                exec_collective_names[p->kind % EXEC_N_COLLECTIVES],
                (unsigned long long)p->n, g->ranks[i]);
    }
    return PT_OK;
}

static enum pt_status transfers_done(struct exec_group *g, struct request *r, bool *done,
                                     struct pt_error *err)
{
    struct exec_wire *w = wire_of(g->base.comm)->wire;

    *done = true;
    for (uint32_t i = 0; i < r->n_transfers; i++) {
        enum pt_status st = w->ops->test(w, &r->transfer[i], err);

        if (st != PT_OK)
            return st;
        *done = *done && r->transfer[i] == NULL;
    }
    if (*done)
        r->n_transfers = 0;
    return PT_OK;
}

static void request_free(struct exec_group *g, struct request *r)
{
    struct exec_wire *w = wire_of(g->base.comm)->wire;

    if (r == NULL)
        return;
    for (uint32_t i = 0; i < r->n_transfers; i++)
        w->ops->cancel(w, &r->transfer[i]);
    free(r->theirs);
    free(r->transfer);
    free(r->scratch);
    free(r);
}

/* The next phase of a request whose transfers are all done; *done: there is none. */
static enum pt_status next_phase(struct exec_group *g, struct request *r, bool *done,
                                 struct pt_error *err)
{
    enum pt_status st;

    if (r->phase == ANNOUNCE) {
        st = verify(g, r, err);
        if (st != PT_OK)
            return st;
        r->phase = sums(&r->op) ? SCATTER : GATHER;
        return sums(&r->op) ? scatter(g, r, err) : gather(g, r, err);
    }
    if (r->phase == SCATTER) {
        reduce(g, r);
        free(r->scratch);
        r->scratch = NULL;
        if (r->op.kind == EXEC_ALLREDUCE) {
            r->phase = GATHER;
            return gather(g, r, err);
        }
    }
    *done = true;
    return PT_OK;
}

static enum pt_status advance(struct exec_group *g, struct pt_error *err)
{
    while (g->head != NULL) {
        struct request *r = g->head;
        bool ready, done = false;
        enum pt_status st = transfers_done(g, r, &ready, err);

        if (st == PT_OK && ready)
            st = next_phase(g, r, &done, err);
        if (st != PT_OK || !ready)
            return st;
        if (!done)
            continue;
        g->head = r->next;
        g->tail = g->head == NULL ? NULL : g->tail;
        g->finished++;
        request_free(g, r);
    }
    return PT_OK;
}

/* --- messages --- */

/* Drops what has arrived of the outgoing ones. */
static enum pt_status clear_sent(struct wire_comm *c, struct pt_error *err)
{
    struct letter **at = &c->sent;

    while (*at != NULL) {
        struct letter *l = *at;
        enum pt_status st = c->wire->ops->test(c->wire, &l->head, err);

        if (st == PT_OK)
            st = c->wire->ops->test(c->wire, &l->body, err);
        if (st != PT_OK)
            return st;
        if (l->head == NULL && l->body == NULL) {
            *at = l->next;
            free(l);
        } else {
            at = &l->next;
        }
    }
    return PT_OK;
}

static enum pt_status wire_progress(struct exec_comm *comm, struct pt_error *err)
{
    struct wire_comm *c = wire_of(comm);
    enum pt_status st = clear_sent(c, err);

    for (uint32_t i = 0; i < c->n_groups && st == PT_OK; i++)
        st = advance(c->groups[i], err);
    return st;
}

/* --- waiting --- */

static void note(struct wire_comm *c, uint32_t what, uint32_t dim, uint32_t peer,
                 uint64_t n, uint64_t seq)
{
    struct exec_rank_status *s = c->status;

    atomic_store_explicit(&s->now_dim, dim, memory_order_relaxed);
    atomic_store_explicit(&s->now_peer, peer, memory_order_relaxed);
    atomic_store_explicit(&s->now_n, n, memory_order_relaxed);
    atomic_store_explicit(&s->now_seq, seq, memory_order_relaxed);
    atomic_store(&s->now_what, what);
}

static void note_done(struct wire_comm *c)
{
    atomic_store(&c->status->now_what, 0);
    atomic_fetch_add(&c->status->heartbeat, 1);
}

static enum pt_status hang(const struct wire_comm *c, double limit, struct pt_error *err)
{
    const struct exec_rank_status *s = c->status;
    uint32_t what = atomic_load(&s->now_what);
    const char *name = what <= EXEC_N_COLLECTIVES ? exec_collective_names[what - 1]
                       : what == 16               ? "send"
                                                  : "receive";

    return pt_fail(err, PT_SYSTEM, NULL, 0,
                   "rank %u waited %g s (--watchdog) in step %u for a %s (%s, rank %u, "
                   "%llu elements or bytes, number %llu): a hang, cut short",
                   c->base.rank, limit, atomic_load(&s->step), name,
                   exec_dim_names[atomic_load(&s->now_dim) % EXEC_N_DIMS],
                   atomic_load(&s->now_peer), (unsigned long long)atomic_load(&s->now_n),
                   (unsigned long long)atomic_load(&s->now_seq));
}

/* Runs until *at is the value, or ready(arg); a failure ends it. */
static enum pt_status wait_until(struct wire_comm *c,
                                 enum pt_status (*ready)(void *, bool *,
                                                         struct pt_error *),
                                 void *arg, struct pt_error *err)
{
    double begin = now_s();
    double limit =
        c->watchdog_s * (atomic_load(&c->status->phase) == EXEC_STARTING ? SETUP : 1);
    bool done = false;

    for (unsigned spins = 0;; spins++) {
        enum pt_status st = wire_progress(&c->base, err);

        if (st == PT_OK)
            st = ready(arg, &done, err);
        if (st != PT_OK || done)
            return st;
        if (atomic_load(&c->shared->header->abort))
            return pt_fail(err, PT_SYSTEM, NULL, 0,
                           "rank %u gives up: another rank failed", c->base.rank);
        if (spins < c->wire->spins)
            continue;
        c->wire->ops->idle(c->wire);
        if (limit > 0 && now_s() - begin > limit)
            return hang(c, limit, err);
    }
}

struct group_wait {
    struct exec_group *g;
    uint32_t seq;
};

static enum pt_status group_ready(void *arg, bool *done, struct pt_error *err)
{
    struct group_wait *w = arg;

    (void)err;
    *done = (int32_t)(w->g->finished - w->seq) > 0;
    return PT_OK;
}

static enum pt_status wire_wait(struct exec_group *g, uint64_t ticket,
                                struct pt_error *err)
{
    struct wire_comm *c = wire_of(g->base.comm);
    struct group_wait w = { g, (uint32_t)(ticket - 1) };
    enum pt_status st;

    for (const struct request *r = g->head; r != NULL; r = r->next)
        if (r->seq == w.seq)
            note(c, 1 + r->op.kind, g->base.dim, g->ranks[g->base.me == 0 ? 1 : 0],
                 r->op.n, r->seq);
    st = wait_until(c, group_ready, &w, err);
    note_done(c);
    return st;
}

static enum pt_status wire_start(struct exec_group *g, const struct exec_collective *op,
                                 uint64_t *ticket, struct pt_error *err)
{
    struct request *r = calloc(1, sizeof(*r));
    enum pt_status st;

    if (r != NULL) {
        r->theirs = calloc(g->base.n, sizeof(*r->theirs));
        r->transfer = calloc(2 * (size_t)g->base.n, sizeof(struct exec_transfer *));
    }
    if (r == NULL || r->theirs == NULL || r->transfer == NULL) {
        request_free(g, r);
        return pt_fail_memory(err);
    }
    r->op = *op;
    r->seq = g->started++;
    r->mine = (struct announce){ op->kind, op->dtype, op->max, r->seq, op->n };
    if (g->tail != NULL)
        g->tail->next = r;
    else
        g->head = r;
    g->tail = r;
    *ticket = (uint64_t)r->seq + 1;
    st = announce(g, r, err);
    return st != PT_OK ? st : wire_progress(g->base.comm, err);
}

static enum pt_status wire_send(struct exec_comm *comm, uint32_t to, uint64_t tag,
                                const void *buf, size_t bytes, uint64_t *ticket,
                                struct pt_error *err)
{
    struct wire_comm *c = wire_of(comm);
    struct letter *l = calloc(1, sizeof(*l));
    uint32_t body;
    enum pt_status st;

    if (l == NULL)
        return pt_fail_memory(err);
    *l = (struct letter){ tag, bytes, ++c->serial, NULL, NULL, to, c->sent };
    c->sent = l;
    *ticket = l->serial;
    comm->traffic.tensor_bytes[EXEC_DIM_PP] += (double)bytes;
    body = TAG_BODY + (uint32_t)(l->serial % (EXEC_WIRE_TAGS - TAG_BODY));
    /* tag, bytes, serial: the first three members */
    st = c->wire->ops->send(c->wire, to, TAG_LETTER, &l->tag, 3 * sizeof(l->tag),
                            &l->head, err);
    if (st == PT_OK && bytes > 0)
        st = c->wire->ops->send(c->wire, to, body, buf, bytes, &l->body, err);
    return st;
}

static bool wire_sent(struct exec_comm *comm, uint32_t to, uint64_t ticket)
{
    struct wire_comm *c = wire_of(comm);

    (void)to;
    if (clear_sent(c, NULL) != PT_OK)
        return false; /* the next wait says why */
    for (const struct letter *l = c->sent; l != NULL; l = l->next)
        if (l->serial == ticket)
            return false;
    return true;
}

struct letter_wait {
    struct wire_comm *c;
    uint32_t from;
    uint64_t tag;
    struct exec_transfer *transfer;
};

static struct letter *take_announced(struct wire_comm *c, uint32_t from, uint64_t tag)
{
    for (struct letter **at = &c->announced; *at != NULL; at = &(*at)->next)
        if ((*at)->peer == from && (*at)->tag == tag) {
            struct letter *l = *at;

            *at = l->next;
            return l;
        }
    return NULL;
}

static enum pt_status transfer_ready(void *arg, bool *done, struct pt_error *err)
{
    struct letter_wait *w = arg;
    enum pt_status st = w->c->wire->ops->test(w->c->wire, &w->transfer, err);

    *done = w->transfer == NULL;
    return st;
}

/* The oldest stays first: a tag comes again in the next step. */
static void append(struct letter **list, struct letter *l)
{
    while (*list != NULL)
        list = &(*list)->next;
    *list = l;
}

/* Takes announcements of `from` until the one for `tag` has come. */
static enum pt_status find_letter(struct letter_wait *w, struct letter **out,
                                  struct pt_error *err)
{
    struct wire_comm *c = w->c;

    for (;;) {
        struct letter *l = take_announced(c, w->from, w->tag);
        enum pt_status st;

        *out = l;
        if (l != NULL)
            return PT_OK;
        l = calloc(1, sizeof(*l));
        if (l == NULL)
            return pt_fail_memory(err);
        st = c->wire->ops->recv(c->wire, w->from, TAG_LETTER, &l->tag, 3 * sizeof(l->tag),
                                &w->transfer, err);
        if (st == PT_OK)
            st = wait_until(c, transfer_ready, w, err);
        c->wire->ops->cancel(c->wire, &w->transfer);
        l->peer = w->from;
        append(&c->announced, l); /* owned there even if it failed */
        if (st != PT_OK)
            return st;
    }
}

static enum pt_status wire_recv(struct exec_comm *comm, uint32_t from, uint64_t tag,
                                void *buf, size_t bytes, struct pt_error *err)
{
    struct wire_comm *c = wire_of(comm);
    struct letter_wait w = { c, from, tag, NULL };
    struct letter *l;
    enum pt_status st;

    note(c, 17, EXEC_DIM_PP, from, bytes, tag);
    l = NULL;
    st = find_letter(&w, &l, err);
    if (st != PT_OK || l == NULL)
        return st;
    if (l->bytes != bytes)
        st = pt_fail(err, PT_SYSTEM, NULL, 0,
                     "rank %u sent %llu bytes where rank %u expects %zu", from,
                     (unsigned long long)l->bytes, comm->rank, bytes);
    else if (bytes > 0)
        st = c->wire->ops->recv(
            c->wire, from, TAG_BODY + (uint32_t)(l->serial % (EXEC_WIRE_TAGS - TAG_BODY)),
            buf, bytes, &w.transfer, err);
    free(l);
    if (st == PT_OK)
        st = wait_until(c, transfer_ready, &w, err);
    c->wire->ops->cancel(c->wire, &w.transfer);
    note_done(c);
    return st;
}

/* --- the communicator --- */

static enum pt_status wire_group(struct exec_comm *comm, enum exec_dim dim,
                                 const uint32_t *ranks, uint32_t n,
                                 struct exec_group **out, struct pt_error *err)
{
    struct wire_comm *c = wire_of(comm);
    struct exec_group *g = calloc(1, sizeof(*g));

    if (g == NULL)
        return pt_fail_memory(err);
    g->ranks = calloc(n, sizeof(*g->ranks));
    if (g->ranks == NULL || c->n_groups == MAX_GROUPS) {
        free(g->ranks);
        free(g);
        return pt_fail(err, PT_SYSTEM, NULL, 0, "out of memory for a group");
    }
    memcpy(g->ranks, ranks, n * sizeof(*ranks));
    g->base = (struct exec_group_base){ comm, dim, n, 0, g->ranks };
    for (uint32_t i = 0; i < n; i++)
        if (ranks[i] == comm->rank)
            g->base.me = i;
    c->groups[c->n_groups++] = g;
    *out = g;
    return PT_OK;
}

static void wire_group_free(struct exec_group *g)
{
    struct wire_comm *c;

    if (g == NULL)
        return;
    c = wire_of(g->base.comm);
    for (uint32_t i = 0; i < c->n_groups; i++)
        if (c->groups[i] == g)
            c->groups[i] = c->groups[--c->n_groups];
    while (g->head != NULL) {
        struct request *r = g->head;

        g->head = r->next;
        request_free(g, r);
    }
    free(g->ranks);
    free(g);
}

static void free_letters(struct wire_comm *c, struct letter *l)
{
    while (l != NULL) {
        struct letter *next = l->next;

        c->wire->ops->cancel(c->wire, &l->head);
        c->wire->ops->cancel(c->wire, &l->body);
        free(l);
        l = next;
    }
}

static void wire_close(struct exec_comm *comm)
{
    struct wire_comm *c = wire_of(comm);

    while (c->n_groups > 0)
        wire_group_free(c->groups[0]);
    free_letters(c, c->sent);
    free_letters(c, c->announced);
    c->wire->ops->close(c->wire);
    free(c);
}

static const struct exec_comm_ops wire_ops = {
    .name = "messages",
    .group = wire_group,
    .group_free = wire_group_free,
    .start = wire_start,
    .wait = wire_wait,
    .send = wire_send,
    .sent = wire_sent,
    .recv = wire_recv,
    .progress = wire_progress,
    .close = wire_close,
};

enum pt_status exec_comm_wire_open(struct exec_wire *wire,
                                   const struct exec_shared *shared, double watchdog_s,
                                   const struct exec_kernels *k, struct exec_comm **out,
                                   struct pt_error *err)
{
    struct wire_comm *c = calloc(1, sizeof(*c));

    if (c == NULL) {
        wire->ops->close(wire);
        return pt_fail_memory(err);
    }
    c->base = (struct exec_comm){ &wire_ops,
                                  wire->rank,
                                  wire->size,
                                  exec_shared_arena(shared, wire->rank),
                                  shared->header->arena_bytes,
                                  { { 0 }, 0 } };
    c->wire = wire;
    c->k = k;
    c->shared = shared;
    c->status = &shared->header->rank[wire->rank];
    c->watchdog_s = watchdog_s;
    *out = &c->base;
    return PT_OK;
}
