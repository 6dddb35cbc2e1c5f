/* ptexec doctor: is this machine, and are its ranks, fit for a run? */
#ifndef PT_EXEC_DOCTOR_H
#define PT_EXEC_DOCTOR_H

#include <stdio.h>

#include "exec/comm.h"

#define EXEC_DOCTOR_ARENA ((size_t)32 << 20) /* that each rank needs */

enum exec_doctor_format { EXEC_DOCTOR_TEXT, EXEC_DOCTOR_CSV, EXEC_DOCTOR_JSON };

/* What one rank sees of its host; travels as it is, a multiple of 8 bytes. Limits that do
 * not exist are HUGE_VAL, what cannot be read is -1. */
struct exec_host {
    char name[64], interface[128];
    double rank;
    double locked_bytes, files; /* ulimit -l in bytes, ulimit -n */
    double shm_bytes, shm_free_bytes;
    double memory_bytes; /* that is available, the control group's limit too */
    double cpus;         /* that this rank may use, quota included */
    double numa_nodes;   /* that those lie in */
    double huge_pages;   /* for shared memory: 0 never, 1 on advice, 2 always */
    /* against rank 0 */
    double skew_s, skew_error_s, latency_s, message_bytes_per_s;
    double allreduce_bytes_per_s; /* bus bandwidth of 1 MB, over all ranks */
};

/* Of this process alone. */
void exec_host_read(struct exec_host *host, uint32_t rank, const char *interface);

/* Measures between the ranks, which all call it; rank 0 prints. PT_DIFFERS on rank 0 when
 * a finding would break or spoil a run. transport: for people. */
enum pt_status exec_doctor(struct exec_comm *comm, const char *transport,
                           const char *interface, enum exec_doctor_format format,
                           FILE *out, struct pt_error *err);

/* The findings alone, from what was read: all[n] in rank order. */
enum pt_status exec_doctor_judge(const struct exec_host *all, uint32_t n,
                                 const char *transport, enum exec_doctor_format format,
                                 FILE *out, struct pt_error *err);

#endif
