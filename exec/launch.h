/* Local ranks as processes of their own: started by running the program again with a
 * shared memory file inherited, watched until all have ended. */
#ifndef PT_EXEC_LAUNCH_H
#define PT_EXEC_LAUNCH_H

#include <signal.h>
#include <stdio.h>

#include "exec/shared.h"

struct exec_launch {
    char **argv; /* passed on as it is */
    uint32_t ranks;
    uint64_t threads;  /* of the products, per rank */
    double watchdog_s; /* 0: none */
    FILE *log;         /* what the watchdog saw */
};

/* In a rank: true, and where it is. The supervisor has set PTEXEC_RANK=fd:rank:parent. */
bool exec_launched(int *fd, uint32_t *rank, long *parent);
/* Starts the ranks and waits for all of them. Whatever happens, no rank outlives the
 * call. The first failure is the one reported: a rank's own sentence, or how it died and
 * what it was doing. PT_LIMIT after SIGTERM or SIGINT. */
enum pt_status exec_launch_run(const struct exec_launch *l, struct exec_shared *shared,
                               struct pt_error *err);
/* A rank's side: dies with its supervisor, leaves stop signals to it. */
enum pt_status exec_launch_settle(long parent, struct pt_error *err);

#endif
