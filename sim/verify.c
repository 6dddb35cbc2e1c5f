#include "config.h"

#include <math.h>

#include "sim/engine.h"
#include "sim/model.h"
#include "sim/verify.h"

enum pt_status sim_verify(const struct pt_plan *plan, struct sim_verdict *verdict,
                          struct pt_error *err)
{
    struct sim_options options = { .steps = 1 };
    struct sim_result result;
    struct sim_model model;
    enum pt_status st;

    *verdict = (struct sim_verdict){ 0 };
    if ((st = sim_model_make(plan, &options, &model, err)))
        return st;
    if ((st = sim_run(&model.world, NULL, 0, &result, err)))
        goto out;
    verdict->step_s = result.step_s[0];
    verdict->pipeline_s = result.pipeline_s;
    verdict->closed_step_s = model.closed.step_s;
    verdict->difference_frac = result.step_s[0] / model.closed.step_s - 1;
    verdict->closed_allocated_bytes = plan->memory.allocated_bytes;
    for (uint32_t r = 0; r < result.ranks; r++)
        verdict->allocated_bytes =
            fmax(verdict->allocated_bytes, result.rank[r].peak_bytes);
    sim_result_fini(&result);
out:
    sim_model_fini(&model);
    return st;
}
