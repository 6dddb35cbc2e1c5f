/* A communicator over messages. Sums run in rank order as the local one's do: each rank
 * receives the others' parts of its slice, adds them in that order and hands the slice
 * round, so both give the same bits. */
#ifndef PT_EXEC_COMM_WIRE_H
#define PT_EXEC_COMM_WIRE_H

#include "exec/kernels.h"
#include "exec/shared.h"
#include "exec/wire.h"

/* The wire becomes the communicator's and is closed with it, on failure too. `shared`
 * holds this rank's arena and status. watchdog_s: the longest wait for one collective or
 * message before it counts as a hang; 0: no limit; ten times that before the first step.
 */
enum pt_status exec_comm_wire_open(struct exec_wire *wire,
                                   const struct exec_shared *shared, double watchdog_s,
                                   const struct exec_kernels *k, struct exec_comm **out,
                                   struct pt_error *err);
/* The wire below; NULL for other communicators. */
struct exec_wire *exec_comm_wire(struct exec_comm *comm);

#endif
