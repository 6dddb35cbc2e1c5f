/* A plan as a world to simulate: durations from libpt/cost, bytes from libpt/memory. */
#ifndef SIM_MODEL_H
#define SIM_MODEL_H

#include "libpt/plan.h"
#include "sim/world.h"

struct sim_options {
    uint32_t steps;
    bool unfold; /* every rank; else one per stage when all replicas are alike */
    double jitter_frac;
    uint64_t seed;
    /* Ranks of the plan with their factors: passes take `factor` times as long; links
     * have 1/factor of their bandwidth. Any of them unfolds. */
    uint32_t n_stragglers, n_degraded;
    const struct sim_factor {
        uint32_t rank;
        double factor;
    } * straggler, *degraded;
};

struct sim_model {
    struct sim_world world;
    struct pt_schedule schedule;
    struct sim_stage *stage;
    struct sim_chunk *chunk;
    double *slowdown, *link_capacity;
    struct pt_step closed; /* the closed form's figures for the same plan */
    bool folded;
    double device_per_allocated, device_fixed_bytes; /* device = x * allocated + fixed */
};

/* PT_USAGE when a rank does not exist. sim_model_fini releases. */
enum pt_status sim_model_make(const struct pt_plan *plan,
                              const struct sim_options *options, struct sim_model *model,
                              struct pt_error *err);
void sim_model_fini(struct sim_model *model);

#endif
