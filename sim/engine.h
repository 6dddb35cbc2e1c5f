/* The interpreter of schedules in virtual time. Observers listen; they change nothing. */
#ifndef SIM_ENGINE_H
#define SIM_ENGINE_H

#include "libpt/error.h"
#include "libpt/trace.h"
#include "sim/world.h"

/* Every function may be NULL. Times in seconds since the run began; called in the order
 * in which things end. */
struct sim_observer {
    void *ctx;
    /* An instruction on a stream; start_s <= end_s. Receives are reported when they
     * waited or held up the compute stream. */
    void (*span)(void *ctx, uint32_t rank, enum pt_stream stream,
                 const struct pt_instr *instr, double start_s, double end_s);
    /* A message from its departure to its arrival. */
    void (*message)(void *ctx, uint64_t id, uint32_t from, uint32_t to,
                    const struct pt_instr *instr, double start_s, double end_s);
    /* Bytes that a rank holds from now on, activations included. */
    void (*memory)(void *ctx, uint32_t rank, double time_s, double bytes);
    void (*step_end)(void *ctx, uint32_t step, double start_s, double end_s);
};

/* What one rank did, over all steps. */
struct sim_rank_sum {
    double busy_s;        /* passes and the optimizer on the device */
    double wait_s;        /* for messages */
    double block_s;       /* held up by messages that had arrived */
    double reduce_wait_s; /* at BARRIER */
    double first_s,
        last_s; /* first forward begins, last weight part ends; of the last step */
    double peak_bytes, static_bytes;
    double sent_bytes, received_bytes; /* messages between stages */
    double tp_bytes, cp_bytes, ep_bytes, dp_bytes;
    uint32_t held, peak_held; /* chunks */
};
struct sim_result {
    uint32_t ranks, steps;
    uint64_t events;
    double end_s;              /* of the last step */
    double *step_s;            /* steps, owned */
    struct sim_rank_sum *rank; /* owned */
    /* Of the last step, as in struct pt_schedule_figures */
    double pipeline_s, span_s, ideal_s, bubble_of_total, bubble_of_ideal;
    uint32_t span_rank;
};

/* The schedule must have passed pt_schedule_check. PT_BUG when it stops half-way, with
 * the ranks that wait. `observers`: n of them, may be NULL. */
enum pt_status sim_run(const struct sim_world *world,
                       const struct sim_observer *observers, size_t n_observers,
                       struct sim_result *result, struct pt_error *err);
void sim_result_fini(struct sim_result *result);

#endif
