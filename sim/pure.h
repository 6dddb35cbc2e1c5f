/* Schedule mode: a pipeline schedule alone, given the times of its passes. */
#ifndef SIM_PURE_H
#define SIM_PURE_H

#include <stdio.h>

#include "libpt/schedule.h"
#include "sim/world.h"

/* Seconds per stage and micro-batch; n stages each, owned. */
struct sim_stage_times {
    uint32_t n;
    double *forward_s, *input_s, *weight_s;
};

enum pt_status sim_stage_times_init(uint32_t stages, const double uniform[3],
                                    struct sim_stage_times *times, struct pt_error *err);
/* --forward-times (part 0), --backward-times (1), --weight-times (2). Either a CSV with a
 * header that names `forward`, `backward` or `weight` (also with a unit behind:
 * forward_ms, forward_s; fwd, bwd and wgrad do too), or no header and columns in that
 * order, the first of which is `part`. A row per stage. Numbers are seconds, or durations
 * such as 18.5ms. Only what has a column is set. PT_INPUT with file, line and reason. */
enum pt_status sim_stage_times_read(const char *path, unsigned part,
                                    struct sim_stage_times *times, struct pt_error *err);
/* The same from memory; `where` names it. text has a NUL behind it. */
enum pt_status sim_stage_times_parse(const char *where, const char *text, size_t len,
                                     unsigned part, struct sim_stage_times *times,
                                     struct pt_error *err);
void sim_stage_times_fini(struct sim_stage_times *times);

struct sim_pure {
    struct pt_schedule_spec spec;
    struct pt_schedule schedule; /* owned */
    struct pt_schedule_figures figures;
    double *stage_peak, *stage_span_s, *stage_work_s; /* spec.pp each, owned */
    double *chunk_times_s;                            /* owned; behind `times` */
    struct pt_schedule_times times;
};

/* The same as a world for the engine: a rank per stage, messages that never slow each
 * other down. stage and chunk (spec.pp, spec.pp * vpp; zeroed) are filled and used. An
 * activation of a stage counts as one byte. */
void sim_pure_world(const struct sim_pure *pure, struct sim_stage *stage,
                    struct sim_chunk *chunk, struct sim_world *world);
/* Builds, checks and times. spec's arrays must live as long as `pure`. */
enum pt_status sim_pure_run(const struct pt_schedule_spec *spec, struct sim_pure *pure,
                            struct pt_error *err);
void sim_pure_fini(struct sim_pure *pure);
void sim_pure_print_text(const struct sim_pure *pure, FILE *f);
void sim_pure_print_csv(const struct sim_pure *pure, FILE *f);
/* --csv: a row per stage. */
void sim_pure_print_stages(const struct sim_pure *pure, FILE *f);
enum pt_status sim_pure_print_json(const struct sim_pure *pure, FILE *f,
                                   struct pt_error *err);

#endif
