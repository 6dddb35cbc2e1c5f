#include "config.h"

#include <math.h>

#include "libpt/units.h"
#include "planner/verify.h"

static double difference(const struct planner_opinion *o)
{
    return o->step_s / o->closed_step_s - 1;
}

/* By simulated step; equal ones keep their order. */
static void reorder(struct planner_result *result, struct planner_verification *v)
{
    for (uint32_t i = 1; i < v->n; i++)
        for (uint32_t k = i;
             k > 0 && v->opinion[k].step_s < v->opinion[k - 1].step_s * (1 - 1e-9); k--) {
            struct planner_opinion opinion = v->opinion[k];
            struct pt_plan plan = result->plan[k];

            v->opinion[k] = v->opinion[k - 1];
            v->opinion[k - 1] = opinion;
            result->plan[k] = result->plan[k - 1];
            result->plan[k - 1] = plan;
            v->reordered = true;
        }
}

static void say(const struct planner_result *result, const struct planner_verification *v,
                struct planner_notes *hints)
{
    const struct planner_opinion *o = &v->opinion[0];
    const struct pt_memory *m = &result->plan[0].memory;
    double more = o->allocated_bytes - o->closed_allocated_bytes;
    char a[32], b[32];

    bool alone = v->n == 1 && fabs(difference(o)) > PLANNER_VERIFY_TOLERANCE;

    planner_note(hints, "simulated step %s, %.1f%% %s the closed form%s",
                 pt_format_seconds(a, o->step_s), fabs(100 * difference(o)),
                 difference(o) < 0 ? "below" : "above",
                 v->reordered ? "; the order of the plans follows the simulator"
                 : alone      ? "; --verify 8 lets the simulator order the best 8"
                              : "");
    if (more > 0.001 * o->closed_allocated_bytes)
        planner_note(hints, "the simulated step holds %s more than the model says%s",
                     pt_format_gib(b, more),
                     m->device_bytes + more > m->limit_bytes ? ": more than the card has"
                                                             : "");
}

enum pt_status planner_verify(planner_verifier *verifier, uint32_t k,
                              struct planner_result *result,
                              struct planner_verification *v, struct planner_notes *hints,
                              struct pt_error *err)
{
    bool follow = false;
    enum pt_status st;

    v->reordered = false;
    v->n = k < result->n ? k : result->n;
    v->n = v->n < PLANNER_VERIFY_MOST ? v->n : PLANNER_VERIFY_MOST;
    for (uint32_t i = 0; i < v->n; i++) {
        if ((st = verifier(&result->plan[i], &v->opinion[i], err)))
            return st;
        follow = follow || fabs(difference(&v->opinion[i])) > PLANNER_VERIFY_TOLERANCE;
    }
    if (follow)
        reorder(result, v);
    if (v->n > 0 && hints != NULL)
        say(result, v, hints);
    return PT_OK;
}

void planner_verify_table(FILE *f, const struct planner_result *result,
                          const struct planner_verification *v)
{
    char label[96], a[32], b[32];

    if (v->n < 2)
        return;
    fprintf(f, "\nverified by simulation%s\n%4s %10s %12s %11s  %s\n",
            v->reordered ? ", whose order this is" : "", "", "simulated", "closed form",
            "difference", "layout");
    for (uint32_t i = 0; i < v->n; i++)
        fprintf(f, "%4u %10s %12s %+10.1f%%  %s\n", i + 1,
                pt_format_seconds(a, v->opinion[i].step_s),
                pt_format_seconds(b, v->opinion[i].closed_step_s),
                100 * difference(&v->opinion[i]),
                planner_short_label(label, sizeof(label), &result->plan[i]));
}
