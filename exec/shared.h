/* The memory that the local ranks and their supervisor share: one anonymous file, mapped
 * by all.
 *
 *   header | ranks[n] | group slots | mailboxes | arena of rank 0 | arena of rank 1 | ...
 *
 * Every word that more than one process writes is atomic. A rank that waits sleeps on its
 * own doorbell, which whoever changes something that it may wait for rings. */
#ifndef PT_EXEC_SHARED_H
#define PT_EXEC_SHARED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exec/arena.h"
#include "exec/comm.h"
#include "libpt/error.h"

#define EXEC_MAX_RANKS 64 /* local ranks; more belong on more hosts */
#define EXEC_RING      16 /* collectives of a group outstanding at once */
#define EXEC_MAIL      64 /* messages of a pair outstanding at once */

enum exec_rank_phase { EXEC_STARTING, EXEC_RUNNING, EXEC_DONE, EXEC_FAILED };

/* What a rank is doing, for messages and the watchdog. Written by its owner only. */
/* What a rank measured, for the summary. Valid when it ended orderly. */
struct exec_report {
    double step_s; /* mean over the steps after the first (the only one: that) */
    double busy_s,
        span_s; /* of the last step: its passes; first forward to last backward */
    double peak_bytes, host_peak_bytes, copied_bytes;
    double use_bytes[EXEC_N_USES]; /* when the total peaked */
    struct exec_traffic traffic;   /* of one step */
    uint64_t steps;                /* done */
    uint64_t records_at; /* in the file: struct exec_record of each instruction */
    double loss;
};

struct exec_rank_status {
    _Atomic uint32_t doorbell, sleeping;
    _Atomic uint32_t phase; /* enum exec_rank_phase */
    /* ended after the same whole step as all others, well or not: its report counts */
    _Atomic uint32_t orderly;
    _Atomic uint32_t step, instr_kind, chunk, micro_batch;
    _Atomic uint64_t heartbeat; /* grows with every instruction, layer and collective */
    /* collective or message under way (what: 1 + kind, 16 send, 17 receive; 0 none), the
     * last finished one, and their partners */
    _Atomic uint32_t now_what, now_dim, now_peer, last_what, last_dim, last_peer;
    _Atomic uint64_t now_n, now_seq, last_n, last_seq;
    struct pt_error error; /* valid when phase is EXEC_FAILED */
    struct exec_report report;
};

/* One collective as its member posted it. */
struct exec_posted {
    uint32_t kind, dtype, max, pad;
    uint64_t n, offset; /* in the file */
};
struct exec_slot {
    _Atomic uint32_t posted, reduced, finished; /* sequence numbers passed */
    uint32_t pad;
    struct exec_posted ring[EXEC_RING];
};

struct exec_letter {
    _Atomic uint32_t state; /* 0 free, 1 waits for its reader, 2 read */
    uint32_t pad;
    uint64_t tag, bytes, offset, serial;
};

struct exec_header {
    uint64_t magic;
    uint32_t size, stop_signals;
    uint64_t file_bytes, arena_bytes, slots_at, mail_at, arenas_at;
    _Atomic uint32_t stop;   /* a stop was asked for: finish the step */
    _Atomic uint32_t abort;  /* give up at once */
    _Atomic uint32_t differ; /* what the ranks were given does: all of them know */
    char data_hash[72];      /* SHA-256 of the training data, hexadecimal */
    struct exec_rank_status rank[EXEC_MAX_RANKS];
};

struct exec_shared {
    int fd;
    struct exec_header *header;
    size_t bytes;
};

/* Makes and maps the file; arena_bytes per rank is address space, used when touched. */
enum pt_status exec_shared_create(uint32_t ranks, size_t arena_bytes,
                                  struct exec_shared *shared, struct pt_error *err);
/* Maps an inherited file. */
enum pt_status exec_shared_open(int fd, struct exec_shared *shared, struct pt_error *err);
void exec_shared_close(struct exec_shared *shared);
/* Did every rank end orderly? */
bool exec_shared_orderly(const struct exec_shared *shared);

void *exec_shared_arena(const struct exec_shared *shared, uint32_t rank);
/* Slot of `member` in the group of this dimension whose first rank is `first`. */
struct exec_slot *exec_shared_slot(const struct exec_shared *shared, enum exec_dim dim,
                                   uint32_t first, uint32_t member);
struct exec_letter *exec_shared_mail(const struct exec_shared *shared, uint32_t from,
                                     uint32_t to);
/* Wakes a rank that sleeps in exec_shared_sleep. */
void exec_shared_ring(const struct exec_shared *shared, uint32_t rank);
/* Sleeps until the doorbell differs from `seen`, a signal or 50 ms. */
void exec_shared_sleep(const struct exec_shared *shared, uint32_t rank, uint32_t seen);

#endif
