/* Observers: what a run leaves behind. Each fills a struct sim_observer. */
#ifndef SIM_OBSERVE_H
#define SIM_OBSERVE_H

#include <stdio.h>

#include "libpt/outfile.h"
#include "libpt/trace.h"
#include "sim/engine.h"

/* Every span, message and memory level into a trace; the caller opens and closes it. */
struct sim_observer sim_observe_trace(struct pt_trace *trace);

/* rank,time_s,allocated_bytes: a row whenever a rank's memory changes. */
struct sim_observer sim_observe_memory(FILE *f);

/* A picture of the first step: a row per stage (the first rank of each), passes and
 * waits. */
struct sim_gantt {
    const struct sim_world *world;
    struct sim_gantt_span {
        double start_s, end_s;
        uint32_t stage, micro_batch;
        uint8_t kind, chunk, stream;
    } * span; /* owned */
    size_t n, cap;
    bool failed, over; /* out of memory; the first step has ended */
    double end_s;
};
void sim_gantt_init(struct sim_gantt *gantt, const struct sim_world *world);
void sim_gantt_fini(struct sim_gantt *gantt);
struct sim_observer sim_observe_gantt(struct sim_gantt *gantt);
/* Draws by gnuplot. path ends in .svg or .png (PT_USAGE); PT_SYSTEM when gnuplot fails or
 * is not there. */
enum pt_status sim_gantt_draw(const struct sim_gantt *gantt, const char *title,
                              const char *path, struct pt_error *err);

/* kind -> seconds per instruction, for --compare: as a trace would sum them. */
struct sim_observer sim_observe_sums(struct pt_trace_sums *sums);

#endif
