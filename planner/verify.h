/* A second opinion on the best plans: the simulator's. It is another program's library,
 * so main.c hands it in as a function. */
#ifndef PLANNER_VERIFY_H
#define PLANNER_VERIFY_H

#include "planner/search.h"
#include "planner/summary.h"

/* Of one plan: seconds of a step and allocated bytes of the fullest stage, simulated and
 * by the closed forms that ranked it. */
struct planner_opinion {
    double step_s, closed_step_s;
    double allocated_bytes, closed_allocated_bytes;
};
typedef enum pt_status planner_verifier(const struct pt_plan *plan,
                                        struct planner_opinion *opinion,
                                        struct pt_error *err);

/* From this difference on the simulator decides about the order. */
#define PLANNER_VERIFY_TOLERANCE 0.03
#define PLANNER_VERIFY_MOST      64

struct planner_verification {
    uint32_t n; /* plans that were simulated: the first ones of the result */
    struct planner_opinion opinion[PLANNER_VERIFY_MOST];
    bool reordered;
};

/* Simulates the first k plans. Where one of them differs from its closed form by more
 * than the tolerance, these k are put in the order of their simulated steps (opinions
 * with them). Says in `hints` what came out for the best plan. */
enum pt_status planner_verify(planner_verifier *verifier, uint32_t k,
                              struct planner_result *result,
                              struct planner_verification *verification,
                              struct planner_notes *hints, struct pt_error *err);
/* A row per plan; nothing when fewer than two were simulated. */
void planner_verify_table(FILE *f, const struct planner_result *result,
                          const struct planner_verification *verification);

#endif
