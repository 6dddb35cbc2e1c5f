/* Measured between the ranks. Clock: rank 0 asks, the other answers with its time; of
 * many rounds the one with the shortest way counts, and half of that way is the error
 * (Cristian, "Probabilistic clock synchronization", 1989). Bandwidth: as bus bandwidth of
 * nccl-tests, 2 (n - 1) / n of the buffer over the time. */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "exec/doctor.h"

#define ROUNDS    200
#define MESSAGE   ((size_t)4 << 20)
#define MESSAGES  8
#define REDUCED   ((size_t)250000) /* floats: 1 MB */
#define REDUCES   20
#define TAG_PING  0x646f63ull
#define TAG_LARGE 0x646f64ull

_Static_assert(sizeof(struct exec_host) % sizeof(double) == 0, "travels as doubles");

#define EPOCH_S 1700000000 /* taken off, so that a double keeps the nanoseconds */

static double clock_s(clockid_t id)
{
    struct timespec t;

    clock_gettime(id, &t);
    if (id == CLOCK_REALTIME)
        t.tv_sec -= EPOCH_S;
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static enum pt_status send_all(struct exec_comm *c, uint32_t to, uint64_t tag,
                               const void *buf, size_t bytes, struct pt_error *err)
{
    uint64_t ticket;
    enum pt_status st = c->ops->send(c, to, tag, buf, bytes, &ticket, err);

    while (st == PT_OK && !c->ops->sent(c, to, ticket))
        st = c->ops->progress(c, err);
    return st;
}

/* Rank 0 asks rank r, which answers with its wall clock. */
static enum pt_status ping(struct exec_comm *c, uint32_t r, struct exec_host *of,
                           struct pt_error *err)
{
    double *x = c->arena, best = HUGE_VAL, skew = 0, first = 0, last = 0;
    enum pt_status st = PT_OK;

    for (int i = 0; i < ROUNDS && st == PT_OK; i++) {
        double begin = clock_s(CLOCK_MONOTONIC), wall = clock_s(CLOCK_REALTIME), way;

        if (c->rank == 0) {
            st = send_all(c, r, TAG_PING, x, sizeof(*x), err);
            if (st == PT_OK)
                st = c->ops->recv(c, r, TAG_PING, x + 8, sizeof(*x), err);
        } else {
            st = c->ops->recv(c, 0, TAG_PING, x + 8, sizeof(*x), err);
            x[0] = clock_s(CLOCK_REALTIME);
            if (st == PT_OK)
                st = send_all(c, 0, TAG_PING, x, sizeof(*x), err);
        }
        last = clock_s(CLOCK_MONOTONIC);
        first = i == 0 ? begin : first;
        way = last - begin;
        if (way < best) {
            best = way;
            skew = x[8] - (wall + way / 2);
        }
    }
    of->latency_s = (last - first) / ROUNDS / 2;
    of->skew_s = skew;
    of->skew_error_s = best / 2;
    return st;
}

/* Large messages there and back; the first pair warms up. */
static enum pt_status large(struct exec_comm *c, uint32_t r, struct exec_host *of,
                            struct pt_error *err)
{
    char *x = c->arena;
    double begin = 0;
    enum pt_status st = PT_OK;

    for (int i = 0; i <= MESSAGES && st == PT_OK; i++) {
        if (i == 1)
            begin = clock_s(CLOCK_MONOTONIC);
        for (uint32_t side = 0; side < 2 && st == PT_OK; side++) {
            bool mine = (c->rank == 0) == (side == 0);
            uint32_t other = c->rank == 0 ? r : 0;

            st = mine ? send_all(c, other, TAG_LARGE, x, MESSAGE, err)
                      : c->ops->recv(c, other, TAG_LARGE, x + MESSAGE, MESSAGE, err);
        }
    }
    of->message_bytes_per_s =
        2.0 * MESSAGES * (double)MESSAGE / (clock_s(CLOCK_MONOTONIC) - begin);
    return st;
}

static enum pt_status reduce(struct exec_comm *c, struct exec_group *world, double *rate,
                             struct pt_error *err)
{
    struct exec_collective op = { EXEC_ALLREDUCE, EXEC_F32, false, true,
                                  c->arena,       REDUCED,  NULL };
    double begin = 0, share = 2.0 * (c->size - 1) / c->size;
    enum pt_status st = PT_OK;

    memset(c->arena, 0, REDUCED * sizeof(float));
    for (int i = 0; i <= REDUCES && st == PT_OK; i++) {
        if (i == 1)
            begin = clock_s(CLOCK_MONOTONIC);
        st = exec_collective(world, &op, err);
    }
    *rate =
        REDUCES * share * REDUCED * sizeof(float) / (clock_s(CLOCK_MONOTONIC) - begin);
    return st;
}

static enum pt_status gather(struct exec_comm *c, struct exec_group *world,
                             const struct exec_host *mine, struct exec_host *all,
                             struct pt_error *err)
{
    const size_t each = sizeof(*mine) / sizeof(double);
    struct exec_collective op = { EXEC_ALLGATHER, EXEC_F64,       false, true,
                                  c->arena,       c->size * each, NULL };
    enum pt_status st;

    memcpy((struct exec_host *)c->arena + c->rank, mine, sizeof(*mine));
    st = exec_collective(world, &op, err);
    if (st == PT_OK)
        memcpy(all, c->arena, c->size * sizeof(*all));
    return st;
}

static enum pt_status measure(struct exec_comm *c, struct exec_group *world,
                              struct exec_host *mine, struct exec_host *all,
                              struct pt_error *err)
{
    enum pt_status st = PT_OK;

    for (uint32_t r = 1; r < c->size && st == PT_OK; r++) {
        struct exec_host *of = c->rank == 0 ? &all[r] : mine;

        if (c->rank != 0 && c->rank != r)
            continue;
        st = ping(c, r, of, err);
        if (st == PT_OK)
            st = large(c, r, of, err);
    }
    if (st == PT_OK && c->size > 1)
        st = reduce(c, world, &mine->allreduce_bytes_per_s, err);
    return st;
}

enum pt_status exec_doctor(struct exec_comm *c, const char *transport,
                           const char *interface, enum exec_doctor_format format,
                           FILE *out, struct pt_error *err)
{
    struct exec_host mine, *seen = calloc(c->size, sizeof(*seen));
    struct exec_host *all = calloc(c->size, sizeof(*all));
    uint32_t *ranks = calloc(c->size, sizeof(*ranks));
    struct exec_group *world = NULL;
    enum pt_status st = PT_OK;

    if (seen == NULL || all == NULL || ranks == NULL) {
        st = pt_fail_memory(err);
        goto out;
    }
    for (uint32_t r = 0; r < c->size; r++)
        ranks[r] = r;
    exec_host_read(&mine, c->rank, interface);
    st = c->ops->group(c, EXEC_DIM_WORLD, ranks, c->size, &world, err);
    if (st == PT_OK)
        st = measure(c, world, &mine, seen, err);
    if (st == PT_OK && c->size > 1)
        st = gather(c, world, &mine, all, err);
    else
        all[0] = mine;
    if (st == PT_OK && c->rank == 0) {
        for (uint32_t r = 1; r < c->size; r++) { /* rank 0's view of the clocks counts */
            all[r].skew_s = seen[r].skew_s;
            all[r].skew_error_s = seen[r].skew_error_s;
            all[r].latency_s = seen[r].latency_s;
            all[r].message_bytes_per_s = seen[r].message_bytes_per_s;
        }
        st = exec_doctor_judge(all, c->size, transport, format, out, err);
    }
out:
    if (world != NULL)
        c->ops->group_free(world);
    free(seen);
    free(all);
    free(ranks);
    return st;
}
