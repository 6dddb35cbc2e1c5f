/* A plan as one instruction list per rank: what the simulator prices and the executor runs. */
#ifndef PT_SCHEDULE_H
#define PT_SCHEDULE_H

#include <stddef.h>
#include <stdint.h>

#include "libpt/error.h"
#include "libpt/layout.h"

enum pt_instr_kind {
    PT_FORWARD,         /* chunk, micro_batch */
    PT_BACKWARD,        /* both parts together */
    PT_BACKWARD_INPUT,
    PT_BACKWARD_WEIGHT,
    PT_SEND_ACTIVATION, /* peer: stage; chunk and micro_batch of the sender's FORWARD */
    PT_RECV_ACTIVATION, /* chunk and micro_batch of the receiver's FORWARD */
    PT_SEND_GRADIENT,
    PT_RECV_GRADIENT,
    PT_GATHER_PARAMS,   /* chunk (ZeRO-3: before its use; ZeRO-1/2: after the step) */
    PT_REDUCE_GRADS,    /* bucket = chunk; starts an asynchronous reduction */
    PT_REDUCE_TIED,     /* the tied embedding's gradient, first and last stage */
    PT_OFFLOAD_OUT,     /* shard: gradients to the host */
    PT_OFFLOAD_IN,      /* shard: updated weights back */
    PT_NORM,            /* global gradient norm (a barrier) */
    PT_OPTIMIZER,       /* shard */
    PT_BARRIER,         /* all outstanding reductions of this rank are done */
    PT_SNAPSHOT,
    PT_N_INSTR_KINDS
};

struct pt_instr {
    uint8_t kind;
    uint8_t chunk;        /* of this stage */
    uint16_t peer;        /* stage, for sends and receives */
    uint32_t micro_batch; /* or bucket or shard */
};

struct pt_program {
    struct pt_instr *instr;
    size_t n;
};

/* One list per stage: ranks that differ only in tp, cp, ep or dp run the same list. */
struct pt_schedule {
    uint32_t stages, chunks, micro_batches;
    struct pt_program *stage; /* owned */
};

/* What a schedule needs to know. Times steer ZB_AUTO (and V variants); NULL for the others. */
struct pt_schedule_spec {
    enum pt_schedule_kind kind;
    uint32_t pp, vpp, micro_batches;
    double forward_s, input_s, weight_s, comm_s; /* per stage and micro-batch; a chunk 1/vpp */
    double max_in_flight;                        /* stage activations; 0: the schedule's own */
};

/* Only the pipeline part: forwards, backwards, sends, receives. */
enum pt_status pt_schedule_pipeline(const struct pt_schedule_spec *spec,
                                    struct pt_schedule *schedule, struct pt_error *err);
void pt_schedule_fini(struct pt_schedule *schedule);
/* Sends match receives, no cycle, activation memory never negative. The sentence names stage,
 * instruction and partner, and for a deadlock the cycle. */
enum pt_status pt_schedule_check(const struct pt_schedule *schedule, struct pt_error *err);
const char *pt_instr_name(enum pt_instr_kind kind);

#endif
