#include "config.h"

#include <time.h>

#include "exec/comm.h"

const char *const exec_collective_names[EXEC_N_COLLECTIVES] = {
    "all-reduce", "reduce-scatter", "all-gather", "broadcast"
};
const char *const exec_dim_names[EXEC_N_DIMS] = { "tensor", "data", "tied-embedding",
                                                  "world", "pipeline" };

const struct exec_group_base *exec_group_info(const struct exec_group *group)
{
    return (const struct exec_group_base *)(const void *)group;
}

size_t exec_even_edge(size_t n, uint32_t parts, uint32_t r)
{
    size_t each = n / parts, more = n % parts;

    return each * r + (r < more ? r : more);
}

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void count(const struct exec_group_base *g, const struct exec_collective *op)
{
    double bytes = (double)op->n * (op->dtype == EXEC_F32 ? 4 : 8);
    double share = (double)(g->n - 1) / (double)g->n;
    struct exec_traffic *t = &g->comm->traffic;

    bytes *= op->kind == EXEC_ALLREDUCE ? 2 * share : share;
    if (op->control)
        t->control_bytes += bytes;
    else
        t->tensor_bytes[g->dim] += bytes;
}

enum pt_status exec_start(struct exec_group *group, const struct exec_collective *op,
                          uint64_t *ticket, struct pt_error *err)
{
    const struct exec_group_base *g = exec_group_info(group);

    *ticket = 0;
    if (group == NULL || g->n == 1 || op->n == 0)
        return PT_OK;
    count(g, op);
    return g->comm->ops->start(group, op, ticket, err);
}

enum pt_status exec_wait(struct exec_group *group, uint64_t ticket, struct pt_error *err)
{
    struct exec_comm *comm;
    double begin;
    enum pt_status st;

    if (ticket == 0)
        return PT_OK;
    comm = exec_group_info(group)->comm;
    begin = now_s();
    st = comm->ops->wait(group, ticket, err);
    comm->waited_s += now_s() - begin;
    return st;
}

enum pt_status exec_recv(struct exec_comm *comm, uint32_t from, uint64_t tag, void *buf,
                         size_t bytes, struct pt_error *err)
{
    double begin = now_s();
    enum pt_status st = comm->ops->recv(comm, from, tag, buf, bytes, err);

    comm->waited_s += now_s() - begin;
    return st;
}

enum pt_status exec_collective(struct exec_group *group, const struct exec_collective *op,
                               struct pt_error *err)
{
    uint64_t ticket;
    enum pt_status st = exec_start(group, op, &ticket, err);

    return st != PT_OK ? st : exec_wait(group, ticket, err);
}
