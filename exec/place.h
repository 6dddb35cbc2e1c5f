/* Who started this process: a launcher says rank, size and where the others are in its
 * variables. */
#ifndef PT_EXEC_PLACE_H
#define PT_EXEC_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "libpt/error.h"

enum exec_launcher {
    EXEC_BY_HAND, /* this process starts the ranks */
    EXEC_BY_MPIRUN,
    EXEC_BY_SLURM,
    EXEC_BY_TORCHRUN,
    EXEC_N_LAUNCHERS
};
extern const char *const exec_launcher_names[EXEC_N_LAUNCHERS];

struct exec_place {
    enum exec_launcher launcher;
    bool mpi;                   /* the launcher set up MPI (or PMI) for its processes */
    uint32_t rank, size, local; /* local: rank on its host */
    char address[128];          /* host of rank 0; empty: not said */
    uint16_t port;              /* 0: not said */
};

/* From the environment; the most specific launcher wins (mpirun inside a Slurm job is
 * mpirun). PT_USAGE when variables contradict each other or are no numbers. */
enum pt_status exec_place_find(struct exec_place *place, struct pt_error *err);
/* The first host of "n[01-04,07],m3": "n01". */
void exec_first_host(const char *list, char *host, unsigned size);
/* PT_USAGE, with both numbers, unless the plan's ranks are the launcher's. */
enum pt_status exec_place_check(const struct exec_place *place, uint32_t ranks,
                                struct pt_error *err);

#endif
