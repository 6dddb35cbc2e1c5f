#include "config.h"

#include "libpt/cpu_model.h"
#include "libpt/plan.h"

enum pt_status pt_plan_predict(struct pt_plan *plan, struct pt_error *err)
{
    struct pt_costs costs;
    struct pt_memory_terms terms;

    pt_costs_init(&plan->setup, &plan->layout, &costs);
    pt_step_time(&plan->setup, &plan->layout, &costs, &plan->split, plan->causal,
                 &plan->step);
    if (pt_is_cpu_stack(&plan->setup)) {
        struct pt_cpu_volume v;

        pt_cpu_volume(&plan->setup, &plan->layout, &plan->split, &v);
        plan->step.tp_bytes = v.tp;
        plan->step.dp_bytes = v.dp + v.tied;
        plan->step.pp_bytes = v.pp;
        plan->step.intra_bytes = v.tp + v.dp + v.tied + v.pp;
        plan->step.inter_bytes = 0;
    }
    pt_memory_fini(&plan->memory);
    pt_memory_terms_init(&plan->setup, &plan->layout, &terms);
    return pt_memory_init(&plan->setup, &plan->layout, &terms, &plan->split,
                          &plan->memory, err);
}
