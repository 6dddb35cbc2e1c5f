/* The simulator as a second opinion on a plan: what ptplan --verify calls. */
#ifndef SIM_VERIFY_H
#define SIM_VERIFY_H

#include "libpt/plan.h"

struct sim_verdict {
    double step_s, pipeline_s; /* simulated, one step, replicas folded */
    double closed_step_s;      /* the closed form's, from the same constants */
    double difference_frac;    /* step_s / closed_step_s - 1 */
    double allocated_bytes, closed_allocated_bytes; /* the fullest stage */
};

/* Above this the ranking of plans follows the simulator. */
#define SIM_VERIFY_TOLERANCE 0.03

/* Builds the plan's schedule, checks and simulates it. Fails as pt_schedule_of_plan does.
 */
enum pt_status sim_verify(const struct pt_plan *plan, struct sim_verdict *verdict,
                          struct pt_error *err);

#endif
