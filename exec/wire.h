/* What carries messages between ranks that share no memory: MPI, or TCP. comm_wire.c
 * builds a communicator on it.
 *
 * Messages of a pair with the same tag arrive in the order in which they were sent, and a
 * receive takes the oldest that nobody took. Nothing blocks; test moves everything on. */
#ifndef PT_EXEC_WIRE_H
#define PT_EXEC_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libpt/error.h"

#define EXEC_WIRE_TAGS 32000 /* tags are below; what MPI promises at least */

struct exec_wire;
struct exec_transfer; /* a send or receive under way, owned by the wire */

struct exec_wire_ops {
    const char *name;
    /* buf stays the caller's and as it is until the transfer is done. */
    enum pt_status (*send)(struct exec_wire *wire, uint32_t to, uint32_t tag,
                           const void *buf, size_t bytes, struct exec_transfer **transfer,
                           struct pt_error *err);
    /* A message of another size is a failure. */
    enum pt_status (*recv)(struct exec_wire *wire, uint32_t from, uint32_t tag, void *buf,
                           size_t bytes, struct exec_transfer **transfer,
                           struct pt_error *err);
    /* Done: *transfer is released and NULL. NULL is done. */
    enum pt_status (*test)(struct exec_wire *wire, struct exec_transfer **transfer,
                           struct pt_error *err);
    /* Gives a transfer up; its buffer is the caller's again. What comes of it is not
     * known: for runs that have failed. NULL is allowed. */
    void (*cancel)(struct exec_wire *wire, struct exec_transfer **transfer);
    /* Gives the processor away, or sleeps until something may have happened: some ms. */
    void (*idle)(struct exec_wire *wire);
    /* Ends every rank, as far as the transport can. May not return. */
    void (*abort)(struct exec_wire *wire, int exit_status);
    void (*close)(struct exec_wire *wire);
};

/* What every wire's own struct begins with. */
struct exec_wire {
    const struct exec_wire_ops *ops;
    uint32_t rank, size;
    unsigned spins;    /* polls that are worth it before idling */
    char version[96];  /* of the transport's library, for people */
    char address[128]; /* where this rank is reached, for people */
};

#endif
