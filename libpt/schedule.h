/* A plan as one instruction list per stage: what the simulator prices and the executor
 * runs.
 *
 * Ranks that differ only in tp, cp, ep or dp run the same list. Every list is finite, has
 * no branches and is complete: whoever interprets it adds no instruction of its own.
 *
 * Meaning. The compute instructions of a list run in order. Sends never block (the
 * interpreter buffers); a receive blocks until its message is there. A channel is
 * (sender, receiver, kind, chunk): inside one, messages are received in the order in
 * which they were sent; between channels no order is promised. Two neighbouring pieces of
 * the model on one stage (the turn of a V) exchange nothing. REDUCE_GRADS, GATHER_PARAMS,
 * OFFLOAD_OUT and OFFLOAD_IN start something and do not block: whoever needs the result
 * waits for it (FORWARD and BACKWARD for their chunk's parameters, BARRIER for all
 * reductions, OPTIMIZER for its shard). NORM and REDUCE_TIED block until every
 * participant is there. For each chunk, forwards, backwards and weight parts come in
 * ascending order of micro-batch, so gradients accumulate in one order whatever the
 * schedule. */
#ifndef PT_SCHEDULE_H
#define PT_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libpt/error.h"
#include "libpt/layout.h"

enum pt_instr_kind {
    PT_FORWARD,         /* chunk, micro_batch */
    PT_BACKWARD,        /* both parts together */
    PT_BACKWARD_INPUT,  /* frees nothing */
    PT_BACKWARD_WEIGHT, /* its end frees the activations */
    PT_SEND_ACTIVATION, /* peer: stage; chunk and micro_batch of the sender's FORWARD */
    PT_RECV_ACTIVATION, /* chunk and micro_batch of the receiver's FORWARD */
    PT_SEND_GRADIENT,   /* chunk and micro_batch of the sender's backward */
    PT_RECV_GRADIENT,   /* chunk and micro_batch of the receiver's backward */
    PT_GATHER_PARAMS, /* chunk. ZeRO-3: before each use, micro_batch that uses it; ZeRO-1
                         and 2: after the step, micro_batch = micro_batches */
    PT_REDUCE_GRADS,  /* bucket = chunk. ZeRO-2 and 3: after every micro_batch; ZeRO-0 and
                         1:  after the last one */
    PT_REDUCE_TIED, /* the tied embedding's gradient, first and last stage, after BARRIER
                     */
    PT_OFFLOAD_OUT, /* micro_batch = shard >= 1: gradients to the host */
    PT_OFFLOAD_IN,  /* micro_batch = shard >= 1: updated weights back */
    PT_NORM,        /* global gradient norm, all stages */
    PT_OPTIMIZER, /* micro_batch = shard; 0: what stays on the device, then the offloaded
                     part in PT_OFFLOAD_SHARDS equal shards, on the host */
    PT_BARRIER,   /* all outstanding reductions of this rank are done */
    PT_SNAPSHOT,
    PT_N_INSTR_KINDS
};
#define PT_OFFLOAD_SHARDS 4

struct pt_instr {
    uint8_t kind;
    uint8_t chunk;        /* of this stage */
    uint16_t peer;        /* stage, for sends and receives; else 0 */
    uint32_t micro_batch; /* or shard */
};

struct pt_program {
    struct pt_instr *instr;
    size_t n;
};

struct pt_schedule {
    uint32_t stages, chunks, micro_batches;
    bool v_shaped;            /* odd chunks run back: see struct pt_split */
    struct pt_program *stage; /* owned */
};

/* What a schedule needs to know. Times steer ZB_AUTO and the V family, the others ignore
 * them. */
struct pt_schedule_spec {
    enum pt_schedule_kind kind;
    uint32_t pp, vpp, micro_batches;
    double forward_s, input_s, weight_s, comm_s; /* per stage and micro-batch; a chunk
                                                    1/vpp; all 0: 1, 1, 1, 0 */
    const double *stage_forward_s, *stage_input_s,
        *stage_weight_s;  /* pp each, or NULL: the same for every stage */
    double max_in_flight; /* ZB_AUTO: stage activations; 0: pp */
    /* ZB_AUTO: the fraction of an activation that max_in_flight still counts between the
     * input and the weight part; 0: 1, all of it. */
    double after_input_frac;
    /* The V family, optional (both or none): bytes of the activations of a chunk and
     * micro-batch, [chunk * pp + stage], and what a stage may hold of them at once. NULL:
     * every chunk counts the same, and the schedule's own count is the limit. */
    const double *chunk_bytes, *limit_bytes;
};

/* Only the pipeline part: forwards, backwards, sends, receives. PT_USAGE when the kind
 * cannot run with these numbers (interleaved: micro_batches a multiple of pp), with the
 * nearest ones. */
enum pt_status pt_schedule_pipeline(const struct pt_schedule_spec *spec,
                                    struct pt_schedule *schedule, struct pt_error *err);
/* One whole step: the pipeline part and, as the layout asks, gathers, reductions, the
 * norm, the optimizer and its offload. spec may carry times; its kind, pp and vpp are the
 * layout's. */
enum pt_status pt_schedule_build(const struct pt_schedule_spec *spec,
                                 const struct pt_layout *layout,
                                 const struct pt_split *split, bool tied,
                                 struct pt_schedule *schedule, struct pt_error *err);
void pt_schedule_fini(struct pt_schedule *schedule);

/* Where a chunk stands in the model (0 .. stages * chunks - 1), and back. */
uint32_t pt_schedule_piece(const struct pt_schedule *schedule, uint32_t stage,
                           uint32_t chunk);
uint32_t pt_schedule_piece_stage(const struct pt_schedule *schedule, uint32_t piece);
uint32_t pt_schedule_piece_chunk(const struct pt_schedule *schedule, uint32_t piece);

/* Every send has its receive, no cycle, the same order of collectives on all
 * participants, every forward once and before its backward, activation memory never
 * negative (PT_INPUT). The sentence names stage, instruction and partner, and for a
 * deadlock the cycle. */
enum pt_status pt_schedule_check(const struct pt_schedule *schedule,
                                 struct pt_error *err);

/* Seconds of one chunk and micro-batch, [chunk * stages + stage]; BACKWARD takes input +
 * weight. */
struct pt_schedule_times {
    const double *forward_s, *input_s, *weight_s;
    double
        comm_s; /* from a send until its receiver may go on; costs the sender nothing */
};
struct pt_schedule_figures {
    double makespan_s; /* the whole step */
    double span_s;     /* the longest stage: first forward to last (weight) backward */
    double ideal_s;    /* mean over stages of their own work */
    double bubble_of_total, bubble_of_ideal; /* (span - ideal) / span, / ideal */
    double peak_activations; /* maximum over stages, in stage activations */
    uint32_t span_stage;
};
/* The pipeline part's timeline (other instructions take no time). stage_peak and
 * stage_span_s may be NULL, else stages each. Fails like pt_schedule_check on a deadlock
 * only. */
enum pt_status pt_schedule_time(const struct pt_schedule *schedule,
                                const struct pt_schedule_times *times,
                                struct pt_schedule_figures *figures, double *stage_peak,
                                double *stage_span_s, struct pt_error *err);

const char *pt_instr_name(enum pt_instr_kind kind); /* "FORWARD" */

#endif
