#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "libpt/form.h"
#include "libpt/schedule_plan.h"

/* The largest row of the steady step at the model's own count of micro-batches in flight.
 */
static const struct pt_memory_row *steady_row(const struct pt_memory_terms *terms,
                                              const struct pt_stage_content *content,
                                              double *bytes)
{
    const struct pt_memory_row *best = NULL;

    *bytes = 0;
    for (unsigned i = 0; i < terms->n_all; i++) {
        double row = pt_memory_row_bytes(&terms->row[i], content);

        if (terms->row[i].phase == PT_PHASE_STEADY && (best == NULL || row > *bytes)) {
            best = &terms->row[i];
            *bytes = row;
        }
    }
    return best;
}

void pt_plan_holdings(const struct pt_plan *plan, double *static_bytes,
                      double *chunk_bytes, double *most_bytes)
{
    uint32_t pp = plan->layout.pp, m = pt_micro_batches(&plan->setup.job, &plan->layout);
    struct pt_memory_terms terms;

    *most_bytes = 0;
    pt_memory_terms_init(&plan->setup, &plan->layout, &terms);
    for (uint32_t s = 0; s < pp; s++) {
        struct pt_stage_content content;
        const struct pt_memory_row *row;
        double bytes;

        pt_stage_content(&plan->layout, &plan->split, m, s, &content);
        row = steady_row(&terms, &content, &bytes);
        *most_bytes = bytes > *most_bytes ? bytes : *most_bytes;
        content.in_flight = 0;
        static_bytes[s] = row ? pt_memory_row_bytes(row, &content) : 0;
        for (uint32_t c = 0; c < plan->layout.vpp; c++) {
            const struct pt_chunk *chunk = &plan->split.chunk[c * pp + s];
            double held = row && c == 0 && s == 0 ? row->flight_first : 0;

            for (int k = 0; row && k < PT_N_LAYER_KINDS; k++)
                held += chunk->layers[k] * row->flight[k] +
                        chunk->recomputed[k] * row->flight_recomputed[k];
            chunk_bytes[c * pp + s] = held;
        }
    }
}

/* A plan written by hand may name hardware without rates; no order follows from that. */
static enum pt_status check_times(const double *times, size_t n, double comm_s,
                                  struct pt_error *err)
{
    bool ok = isfinite(comm_s);

    for (size_t i = 0; i < n; i++)
        ok = ok && isfinite(times[i]);
    return ok ? PT_OK
              : pt_fail(err, PT_INPUT, NULL, 0,
                        "the plan's hardware has a rate of zero: its passes or transfers "
                        "take "
                        "for ever");
}

enum pt_status pt_schedule_of_plan(const struct pt_plan *plan,
                                   struct pt_schedule *schedule, struct pt_error *err)
{
    uint32_t pp = plan->layout.pp;
    double *times = malloc((4 + (size_t)plan->layout.vpp) * pp * sizeof(*times));
    double *limit = times + 3 * (size_t)pp, *chunk = limit + pp, most;
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
    /* Every stage may hold activations up to what the fullest one allocates. */
    pt_plan_holdings(plan, limit, chunk, &most);
    for (uint32_t s = 0; s < pp; s++)
        limit[s] = most - limit[s];
    spec.chunk_bytes = chunk;
    spec.limit_bytes = limit;
    st = pt_schedule_is_v(plan->layout.schedule) ||
                 plan->layout.schedule == PT_SCHEDULE_ZB_AUTO
             ? check_times(times, 3 * (size_t)pp, spec.comm_s, err)
             : PT_OK;
    if (st == PT_OK)
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
