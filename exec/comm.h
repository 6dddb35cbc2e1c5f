/* Communicators: who the ranks are, and how they exchange buffers. One table of functions
 * per transport. All ranks of a group start the same collectives in the same order; a
 * collective is started, progresses whenever its rank waits for anything, and is waited
 * for. Sums run in rank order, element by element, so every rank gets the same bits in
 * every run.
 *
 * Buffers of collectives and messages lie in the rank's arena (exec_comm.arena), which
 * the local transport lets the other ranks read directly. */
#ifndef PT_EXEC_COMM_H
#define PT_EXEC_COMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libpt/error.h"

enum exec_collective_kind {
    EXEC_ALLREDUCE,     /* buf[n]: every rank ends with the sum (or maximum) */
    EXEC_REDUCESCATTER, /* buf[n]: slice r = [edges[r], edges[r+1]) of rank r ends with
                           the sum, the rest of the buffer keeps this rank's values */
    EXEC_ALLGATHER,     /* buf[n]: slice r of rank r goes to everyone */
    EXEC_BROADCAST,     /* buf[n] of member 0 */
    EXEC_N_COLLECTIVES
};
enum exec_dtype { EXEC_F32, EXEC_F64 };
enum exec_dim {
    EXEC_DIM_TP,
    EXEC_DIM_DP,
    EXEC_DIM_TIED,
    EXEC_DIM_WORLD,
    EXEC_DIM_PP,
    EXEC_N_DIMS
};

struct exec_collective {
    enum exec_collective_kind kind;
    enum exec_dtype dtype;
    bool max;     /* all-reduce: maximum instead of sum */
    bool control; /* not tensor traffic: norms, losses, flags */
    void *buf;
    size_t n;            /* elements */
    const size_t *edges; /* members + 1 offsets; NULL: as even as integers allow */
};

struct exec_comm;
struct exec_group; /* members in ascending rank order; this rank is one of them */

/* Bytes that this rank sends, as a ring would: all-reduce 2 (g-1)/g of the buffer, gather
 * and scatter (g-1)/g, a message its size. */
struct exec_traffic {
    double tensor_bytes[EXEC_N_DIMS], control_bytes;
};

struct exec_comm_ops {
    const char *name;
    enum pt_status (*group)(struct exec_comm *comm, enum exec_dim dim,
                            const uint32_t *ranks, uint32_t n, struct exec_group **out,
                            struct pt_error *err);
    void (*group_free)(struct exec_group *group);
    /* *ticket grows by one per collective of the group. */
    enum pt_status (*start)(struct exec_group *group, const struct exec_collective *op,
                            uint64_t *ticket, struct pt_error *err);
    enum pt_status (*wait)(struct exec_group *group, uint64_t ticket,
                           struct pt_error *err);
    /* A message is found by (sender, tag). send returns at once; buf must stay as it is
     * until sent() says true for its *ticket. */
    enum pt_status (*send)(struct exec_comm *comm, uint32_t to, uint64_t tag,
                           const void *buf, size_t bytes, uint64_t *ticket,
                           struct pt_error *err);
    bool (*sent)(struct exec_comm *comm, uint32_t to, uint64_t ticket);
    enum pt_status (*recv)(struct exec_comm *comm, uint32_t from, uint64_t tag, void *buf,
                           size_t bytes, struct pt_error *err);
    /* Moves every outstanding collective on without blocking. */
    enum pt_status (*progress)(struct exec_comm *comm, struct pt_error *err);
    void (*close)(struct exec_comm *comm);
};

/* What every transport's own struct begins with. */
struct exec_comm {
    const struct exec_comm_ops *ops;
    uint32_t rank, size;
    void *arena; /* this rank's memory for tensors */
    size_t arena_bytes;
    struct exec_traffic traffic;
    double waited_s; /* in exec_wait and exec_recv, so far */
};

/* Of a group, whatever the transport: first member of each transport's struct exec_group.
 */
struct exec_group_base {
    struct exec_comm *comm;
    enum exec_dim dim;
    uint32_t n, me; /* members, and which one this rank is */
    const uint32_t *ranks;
};

extern const char *const exec_collective_names[EXEC_N_COLLECTIVES];
extern const char *const exec_dim_names[EXEC_N_DIMS];

const struct exec_group_base *exec_group_info(const struct exec_group *group);
/* Start and wait; nothing to do in a group of one. Counted in the traffic. */
enum pt_status exec_collective(struct exec_group *group, const struct exec_collective *op,
                               struct pt_error *err);
/* Start only, counted; *ticket 0 in a group of one, which exec_wait knows. */
enum pt_status exec_start(struct exec_group *group, const struct exec_collective *op,
                          uint64_t *ticket, struct pt_error *err);
enum pt_status exec_wait(struct exec_group *group, uint64_t ticket, struct pt_error *err);
/* ops->recv, its time counted. */
enum pt_status exec_recv(struct exec_comm *comm, uint32_t from, uint64_t tag, void *buf,
                         size_t bytes, struct pt_error *err);
/* Edge r of the even division of n over `parts`. */
size_t exec_even_edge(size_t n, uint32_t parts, uint32_t r);

#endif
