/* The local transport and the one over TCP, their ranks as threads over one shared file
 * (so that a thread sanitizer sees them): every collective against plain sums, messages
 * in any order, mismatches in words. */
#include "config.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "exec/comm_local.h"
#include "exec/comm_tcp.h"
#include "exec/comm_wire.h"
#include "tests/unit/unit.h"

#define MAX_RANKS 5
#define N         5000

struct job {
    const struct exec_shared *shared;
    uint32_t rank;
    uint16_t port; /* 0: local */
    void (*run)(struct exec_comm *comm, struct exec_group *world, struct pt_error *err);
    struct pt_error err;
};

static enum pt_status open_comm(const struct job *j, struct exec_comm **comm,
                                struct pt_error *err)
{
    const struct exec_kernels *k = exec_kernels_find(NULL);
    struct exec_tcp_place place = { j->rank, j->shared->header->size, "127.0.0.1",
                                    j->port, 20 };
    struct exec_wire *wire;
    enum pt_status st;

    if (j->port == 0)
        return exec_comm_local_open(j->shared, j->rank, k, comm, err);
    st = exec_tcp_open(&place, &wire, err);
    return st != PT_OK ? st : exec_comm_wire_open(wire, j->shared, 20, k, comm, err);
}

/* A port that nobody listens at just now. */
static uint16_t free_port(void)
{
    struct sockaddr_in a = { .sin_family = AF_INET };
    socklen_t len = sizeof(a);
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    ck_assert_int_eq(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&a, &len), 0);
    close(fd);
    return ntohs(a.sin_port);
}

static void *rank_main(void *arg)
{
    struct job *j = arg;
    struct exec_comm *comm;
    struct exec_group *world;
    uint32_t ranks[MAX_RANKS];

    for (uint32_t i = 0; i < MAX_RANKS; i++)
        ranks[i] = i;
    if (open_comm(j, &comm, &j->err) != PT_OK)
        return NULL;
    if (comm->ops->group(comm, EXEC_DIM_WORLD, ranks, comm->size, &world, &j->err) ==
        PT_OK)
        j->run(comm, world, &j->err);
    if (j->err.status != PT_OK) /* as the supervisor does */
        atomic_store(&j->shared->header->abort, 1);
    comm->ops->close(comm);
    return NULL;
}

/* Runs `run` on n ranks; *err is the first failure that is not an echo. */
static void on_ranks(uint32_t n, bool tcp,
                     void (*run)(struct exec_comm *, struct exec_group *,
                                 struct pt_error *),
                     struct pt_error *err)
{
    struct job job[MAX_RANKS];
    pthread_t thread[MAX_RANKS];
    struct exec_shared shared;
    uint16_t port = tcp ? free_port() : 0;

    ck_assert_int_eq(exec_shared_create(n, 1 << 20, &shared, err), PT_OK);
    for (uint32_t i = 0; i < n; i++) {
        job[i] = (struct job){ &shared, i, port, run, PT_ERROR_INIT };
        ck_assert_int_eq(pthread_create(&thread[i], NULL, rank_main, &job[i]), 0);
    }
    for (uint32_t i = 0; i < n; i++)
        pthread_join(thread[i], NULL);
    for (uint32_t i = 0; i < n; i++)
        if (job[i].err.status != PT_OK && strstr(job[i].err.text, "gives up") == NULL)
            *err = job[i].err;
    exec_shared_close(&shared);
}

/* What rank r holds at i before: fractions, so that the order of a sum shows. */
static float value(uint32_t r, size_t i)
{
    return 1.0f / (float)(3 + r * 7 + i % 1013);
}

#define EXPECT(cond, ...)                                                                \
    do {                                                                                 \
        if (!(cond)) {                                                                   \
            pt_fail(err, PT_BUG, NULL, __LINE__, __VA_ARGS__);                           \
            return;                                                                      \
        }                                                                                \
    } while (0)

static void all_collectives(struct exec_comm *comm, struct exec_group *world,
                            struct pt_error *err)
{
    float *x = comm->arena;
    size_t uneven[MAX_RANKS + 1] = { 0 };

    for (uint32_t r = 1; r <= comm->size; r++) /* some empty, some not */
        uneven[r] = r == comm->size ? N : (size_t)(r / 2) * 700;
    for (int round = 0; round < 40; round++) {
        enum exec_collective_kind kind = (enum exec_collective_kind)(round % 4);
        const size_t *edges = round % 3 == 0 ? uneven : NULL;
        struct exec_collective op = { kind, EXEC_F32, false, false, x, N, edges };
        enum pt_status st;

        for (size_t i = 0; i < N; i++)
            x[i] = value(comm->rank, i);
        st = exec_collective(world, &op, err);
        if (st != PT_OK)
            return;
        for (size_t i = 0; i < N; i++) {
            uint32_t owner = 0;
            float sum = value(0, i);

            for (uint32_t r = 1; r < comm->size; r++)
                sum += value(r, i);
            while (i >= (edges != NULL ? edges[owner + 1]
                                       : exec_even_edge(N, comm->size, owner + 1)))
                owner++;
            if (kind == EXEC_ALLREDUCE ||
                (kind == EXEC_REDUCESCATTER && owner == comm->rank))
                EXPECT(x[i] == sum, "round %d [%zu]: %g, want %g", round, i, (double)x[i],
                       (double)sum);
            else
                EXPECT(x[i] == value(kind == EXEC_ALLGATHER   ? owner
                                     : kind == EXEC_BROADCAST ? 0
                                                              : comm->rank,
                                     i),
                       "round %d [%zu]: %g", round, i, (double)x[i]);
        }
    }
}

START_TEST(collectives_give_the_same_bits)
{
    struct pt_error err = PT_ERROR_INIT;

    on_ranks((uint32_t)_i / 2, _i % 2 == 1, all_collectives, &err);
    ck_assert_msg(err.status == PT_OK, "%d: %s", err.line, err.text);
}
END_TEST

/* More started at once than the ring holds, waited for out of order. */
static void many_at_once(struct exec_comm *comm, struct exec_group *world,
                         struct pt_error *err)
{
    double *x = comm->arena;
    uint64_t ticket[40];

    for (int i = 0; i < 40; i++) {
        struct exec_collective op = { EXEC_ALLREDUCE, EXEC_F64,        false, true,
                                      x + i * 100,    (size_t)(i + 1), NULL };

        for (int j = 0; j <= i; j++)
            x[i * 100 + j] = (double)(comm->rank + 1) * (i + j);
        if (exec_start(world, &op, &ticket[i], err) != PT_OK)
            return;
    }
    for (int i = 39; i >= 0; i--) {
        double want = comm->size * (comm->size + 1) / 2.0;

        if (exec_wait(world, ticket[i], err) != PT_OK)
            return;
        for (int j = 0; j <= i; j++)
            EXPECT(x[i * 100 + j] == want * (i + j), "%d %d", i, j);
    }
}

START_TEST(more_than_the_ring_holds)
{
    struct pt_error err = PT_ERROR_INIT;

    on_ranks(3, _i == 1, many_at_once, &err);
    ck_assert_msg(err.status == PT_OK, "%d: %s", err.line, err.text);
}
END_TEST

/* 100 messages each way, received in another order than sent. */
static void messages(struct exec_comm *comm, struct exec_group *world,
                     struct pt_error *err)
{
    float *x = comm->arena, *y = x + 10000;
    uint32_t other = 1 - comm->rank;
    uint64_t ticket[100];

    (void)world;
    for (int round = 0; round < 5; round++)
        for (int i = 0; i < 20; i++) {
            int k = round * 20 + i, back = round * 20 + (19 - i);

            for (int j = 0; j < 50; j++)
                x[k * 50 + j] = (float)(k * 100 + j + (int)comm->rank);
            if (comm->ops->send(comm, other, (uint64_t)k, x + k * 50, 200, &ticket[k],
                                err) != PT_OK)
                return;
            if (i < 19)
                continue;
            for (int m = 0; m < 20; m++, back++) {
                int tag = round * 20 + (m * 7) % 20;

                if (comm->ops->recv(comm, other, (uint64_t)tag, y, 200, err) != PT_OK)
                    return;
                for (int j = 0; j < 50; j++)
                    EXPECT(y[j] == (float)(tag * 100 + j + (int)other), "%d [%d]: %g",
                           tag, j, (double)y[j]);
            }
        }
    for (int k = 0; k < 100; k++)
        while (!comm->ops->sent(comm, other, ticket[k]))
            if (comm->ops->progress(comm, err) != PT_OK)
                return;
}

START_TEST(messages_are_found_by_their_tag)
{
    struct pt_error err = PT_ERROR_INIT;

    on_ranks(2, _i == 1, messages, &err);
    ck_assert_msg(err.status == PT_OK, "%d: %s", err.line, err.text);
}
END_TEST

static void mismatch(struct exec_comm *comm, struct exec_group *world,
                     struct pt_error *err)
{
    struct exec_collective op = {
        EXEC_ALLREDUCE,           EXEC_F32, false, false, comm->arena,
        comm->rank == 2 ? 9 : 10, NULL
    };

    exec_collective(world, &op, err);
}

START_TEST(a_mismatch_is_said)
{
    struct pt_error err = PT_ERROR_INIT;

    on_ranks(3, _i == 1, mismatch, &err);
    ck_assert_int_eq(err.status, PT_SYSTEM);
    ck_assert_msg(strstr(err.text,
                         "collective mismatch in the world group: its operation 0 is "
                         "all-reduce of") != NULL,
                  "%s", err.text);
}
END_TEST

static void wrong_size(struct exec_comm *comm, struct exec_group *world,
                       struct pt_error *err)
{
    uint64_t ticket;

    (void)world;
    if (comm->rank == 0)
        comm->ops->send(comm, 1, 4, comm->arena, 8, &ticket, err);
    else
        comm->ops->recv(comm, 0, 4, comm->arena, 12, err);
}

START_TEST(a_message_of_another_size_is_said)
{
    struct pt_error err = PT_ERROR_INIT;

    on_ranks(2, _i == 1, wrong_size, &err);
    ck_assert_str_eq(err.text, "rank 0 sent 8 bytes where rank 1 expects 12");
}
END_TEST

static void twice(struct exec_comm *comm, struct exec_group *world, struct pt_error *err)
{
    struct exec_collective op = { EXEC_ALLREDUCE, EXEC_F64, false, true,
                                  comm->arena,    1,        NULL };
    uint32_t ranks[MAX_RANKS] = { 0, 1, 2, 3, 4 };
    double *x = comm->arena;

    for (int i = 0; i < 3; i++) {
        *x = 1 + comm->rank;
        if (exec_collective(world, &op, err) != PT_OK)
            return;
        EXPECT(*x == 6, "round %d: %g", i, *x);
        comm->ops->group_free(world);
        if (comm->ops->group(comm, EXEC_DIM_WORLD, ranks, comm->size, &world, err) !=
            PT_OK)
            return;
    }
}

START_TEST(a_group_may_be_made_again)
{
    struct pt_error err = PT_ERROR_INIT;

    on_ranks(3, _i == 1, twice, &err);
    ck_assert_msg(err.status == PT_OK, "%d: %s", err.line, err.text);
}
END_TEST

/* One rank goes away: the others say whom they lost, and do not wait for ever. */
static void loses(struct exec_comm *comm, struct exec_group *world, struct pt_error *err)
{
    struct exec_collective op = { EXEC_ALLREDUCE, EXEC_F64, false, true,
                                  comm->arena,    1,        NULL };

    if (comm->rank != 1)
        exec_collective(world, &op, err);
}

START_TEST(a_lost_rank_is_said)
{
    struct pt_error err = PT_ERROR_INIT;

    on_ranks(2, true, loses, &err); /* with more, their own ends may be seen first */
    ck_assert_str_eq(err.text, "lost rank 1: it ended its connection");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("comm");
    TCase *t = tcase_create("local and TCP");

    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, collectives_give_the_same_bits, 2, 2 * MAX_RANKS + 2);
    tcase_add_loop_test(t, more_than_the_ring_holds, 0, 2);
    tcase_add_loop_test(t, messages_are_found_by_their_tag, 0, 2);
    tcase_add_loop_test(t, a_mismatch_is_said, 0, 2);
    tcase_add_loop_test(t, a_message_of_another_size_is_said, 0, 2);
    tcase_add_loop_test(t, a_group_may_be_made_again, 0, 2);
    tcase_add_test(t, a_lost_rank_is_said);
    suite_add_tcase(s, t);
    return unit_run(s);
}
