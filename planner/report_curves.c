/* The two curves of the report: each point is a search of its own, so each is a best
 * plan. */
#include "config.h"

#include <math.h>
#include <string.h>

#include "libpt/units.h"
#include "planner/report.h"

/* Seconds for all the searches of one curve, so that a report on a very large machine
 * ends. */
#define CURVE_SECONDS 20.0

static uint32_t used_gpus(const struct pt_plan *plan)
{
    const struct pt_layout *l = &plan->layout;

    return l->tp * l->pp * l->cp * l->dp;
}

static void fill(struct planner_point *p, double x, const struct pt_plan *plan)
{
    p->x = x;
    p->step_s = plan->step.step_s;
    p->device_bytes = plan->memory.device_bytes;
    p->gpus = used_gpus(plan);
    p->tokens_per_s =
        (double)plan->setup.job.global_batch * plan->setup.job.seq / plan->step.step_s;
    p->mfu = plan->step.mfu;
    planner_short_label(p->label, sizeof(p->label), plan);
}

/* The best plan of a changed machine, or false. */
static bool best_of(const struct planner_report *r, const struct pt_setup *setup,
                    const struct planner_space *space, double budget_s, double x,
                    struct planner_point *p)
{
    struct planner_options options = *r->options;
    struct planner_result result;
    struct pt_error ignored = PT_ERROR_INIT;
    bool found;

    options.top = 1;
    if (options.time_limit_s <= 0 || options.time_limit_s > budget_s)
        options.time_limit_s = budget_s;
    memset(&result, 0, sizeof(result));
    (void)planner_search(setup, space, &options, &result, &ignored);
    found = result.n > 0;
    if (found)
        fill(p, x, &result.plan[0]);
    planner_result_fini(&result);
    return found;
}

/* From just below the chosen plan's memory down, each limit just below the last plan's:
 * the next point is then the next corner of the front. Where corners lie closer than 4%
 * they are skipped, so that few searches show the whole curve. */
void planner_pareto(const struct planner_report *r, struct planner_curve *curve)
{
    struct pt_setup setup = *r->setup;
    struct planner_space space = *r->space;
    struct planner_point p;
    double limit;

    memset(curve, 0, sizeof(*curve));
    memset(&p, 0, sizeof(p));
    fill(&p, r->result->plan[0].memory.limit_bytes, &r->result->plan[0]);
    p.chosen = true;
    curve->point[curve->n++] = p;
    limit = 0.95 * p.device_bytes;
    while (curve->n < 12) {
        memset(&p, 0, sizeof(p));
        setup.cluster.mem_limit_bytes = limit;
        if (!best_of(r, &setup, &space, CURVE_SECONDS / 12, limit, &p))
            break;
        curve->point[curve->n++] = p;
        limit = 0.9 * fmin(limit, p.device_bytes);
    }
}

void planner_scaling(const struct planner_report *r, struct planner_curve *curve)
{
    static const double factor[] = { 0.125, 0.25, 0.5, 1, 2, 4, 8 };
    uint32_t here = used_gpus(&r->result->plan[0]);
    struct planner_space space = *r->space;
    double most = 0;

    memset(curve, 0, sizeof(*curve));
    space.dp.n = 0; /* what grows with the machine */
    space.idle_gpus = true;
    for (unsigned i = 0; i < sizeof(factor) / sizeof(factor[0]); i++) {
        struct pt_setup setup = *r->setup;
        struct planner_point p;
        double gpus = here * factor[i];

        if (gpus < 1 || gpus > 1e6 || floor(gpus) < gpus)
            continue;
        memset(&p, 0, sizeof(p));
        setup.cluster.gpus = (uint32_t)gpus;
        if (factor[i] >= 1 && factor[i] <= 1) {
            fill(&p, gpus, &r->result->plan[0]);
            p.chosen = true;
        } else if (!best_of(r, &setup, &space, CURVE_SECONDS / 8, gpus, &p))
            continue;
        most = fmax(most, p.tokens_per_s / p.x);
        curve->point[curve->n++] = p;
    }
    for (unsigned i = 0; i < curve->n; i++)
        curve->point[i].efficiency =
            curve->point[i].tokens_per_s / curve->point[i].x / most;
}
