#include "config.h"

#include <stdlib.h>

#include "libpt/form.h"
#include "libpt/schedule_plan.h"

enum pt_status pt_schedule_of_plan(const struct pt_plan *plan,
                                   struct pt_schedule *schedule, struct pt_error *err)
{
    uint32_t pp = plan->layout.pp;
    double *times = malloc(3 * (size_t)pp * sizeof(*times));
    struct pt_schedule_spec spec = { .stage_forward_s = times };
    struct pt_costs costs;
    enum pt_status st;

    if (times == NULL)
        return pt_fail_memory(err);
    pt_costs_init(&plan->setup, &plan->layout, &costs);
    pt_stage_times(&plan->setup, &plan->layout, &costs, &plan->split, times, times + pp,
                   times + 2 * pp);
    spec.stage_input_s = times + pp;
    spec.stage_weight_s = times + 2 * pp;
    spec.comm_s = costs.p2p_s;
    spec.micro_batches = costs.micro_batches;
    st = pt_schedule_build(&spec, &plan->layout, &plan->split, plan->setup.model.tied,
                           schedule, err);
    free(times);
    if (st == PT_OK && (st = pt_schedule_check(schedule, err)))
        pt_schedule_fini(schedule);
    return st;
}

/* The pieces as stages of a longer pipeline without chunks: pt_stage_loads then puts the
 * ends where they belong. */
enum pt_status pt_piece_loads(const struct pt_plan *plan, const struct pt_costs *costs,
                              struct pt_stage_load *load, struct pt_error *err)
{
    struct pt_layout layout = plan->layout;
    struct pt_split split;
    uint32_t n = layout.pp * layout.vpp;
    enum pt_status st;

    if ((st = pt_split_init(&split, n, 1, err)))
        return st;
    for (uint32_t k = 0; k < n; k++) {
        uint32_t at = pt_split_order(&plan->layout, k);

        split.chunk[k] = plan->split.chunk[at];
        split.offload_frac[k] = plan->split.offload_frac[at % layout.pp];
    }
    layout.pp = n;
    layout.vpp = 1;
    layout.schedule = n == 1 ? PT_SCHEDULE_NONE : PT_SCHEDULE_1F1B;
    pt_stage_loads(&plan->setup, &layout, costs, &split, load);
    pt_split_fini(&split);
    return PT_OK;
}
