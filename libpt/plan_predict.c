#include "libpt/plan.h"

enum pt_status pt_plan_predict(struct pt_plan *plan, struct pt_error *err)
{
    struct pt_costs costs;
    struct pt_memory_terms terms;

    pt_costs_init(&plan->setup, &plan->layout, &costs);
    pt_step_time(&plan->setup, &plan->layout, &costs, &plan->split, plan->causal,
                 &plan->step);
    pt_memory_fini(&plan->memory);
    pt_memory_terms_init(&plan->setup, &plan->layout, &terms);
    return pt_memory_init(&plan->setup, &plan->layout, &terms, &plan->split,
                          &plan->memory, err);
}
