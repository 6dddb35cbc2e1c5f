/* TCP as a wire: a connection between every two ranks, for launchers that bring no
 * transport of their own (torchrun, srun without MPI). For networks whose hosts trust
 * each other: nothing is encrypted. */
#ifndef PT_EXEC_COMM_TCP_H
#define PT_EXEC_COMM_TCP_H

#include "exec/wire.h"

struct exec_tcp_place {
    uint32_t rank, size;
    const char *address; /* of rank 0: a name or number */
    uint16_t port;       /* where rank 0 listens */
    double timeout_s;    /* for all to come together */
};

/* Rank 0 waits at its port, the others come, learn where each one listens and connect to
 * each other. PT_SYSTEM names who is missing. */
enum pt_status exec_tcp_open(const struct exec_tcp_place *place, struct exec_wire **wire,
                             struct pt_error *err);

#endif
