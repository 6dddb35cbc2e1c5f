#include "config.h"

#include <math.h>

#include "libpt/units.h"
#include "planner/diagnose.h"

static double most_offload(const struct planner_space *space)
{
    return !space->offload ? 0.0 : space->offload_frac < 0.0 ? 1.0 : space->offload_frac;
}

/* What a layer of a kind cannot do without on a row, with f micro-batches in flight (at
 * least one is). */
static double least_layer(const struct pt_memory_row *r, int kind, bool recompute,
                          double f, double offload)
{
    double plain = r->layer[kind] + f * r->flight[kind];
    double again = plain + r->recomputed[kind] + f * r->flight_recomputed[kind];

    return (recompute ? fmin(plain, again) : plain) - offload * r->offload[kind];
}

double planner_least_bytes(const struct pt_setup *setup,
                           const struct planner_space *space,
                           const struct pt_layout *layout,
                           const struct pt_memory_terms *terms)
{
    double worst = 0.0, pp = layout->pp, offload = most_offload(space);
    bool recompute = layout->recompute == PT_RECOMPUTE_FULL;

    for (unsigned j = 0; j < terms->n_rows; j++) {
        const struct pt_memory_row *r = &terms->row[j];
        double bytes = r->first + r->last + r->flight_first -
                       offload * (r->offload_first + r->offload_last);

        for (int k = 0; k < PT_N_LAYER_KINDS; k++)
            bytes += pt_model_layers(&setup->model, (enum pt_layer_kind)k) *
                     least_layer(r, k, recompute, 1.0, offload);
        worst = fmax(worst, r->constant + bytes / pp);
    }
    return pt_memory_device_bytes(terms, worst);
}

bool planner_may_hold(const struct pt_setup *setup, const struct planner_space *space,
                      const struct pt_layout *layout, const struct pt_memory_terms *terms,
                      bool recompute, uint32_t micro_batches)
{
    double limit = (pt_memory_limit(setup) - terms->communicator_bytes -
                    terms->context_bytes - terms->fragmentation_bytes) /
                   (1.0 + terms->fragmentation_frac);
    double offload = most_offload(space), total = setup->model.layers, held = 0.0;

    for (uint32_t s = 0; s < layout->pp && held < total; s++) {
        double f = pt_in_flight(layout, micro_batches, s), n = total;

        for (unsigned j = 0; j < terms->n_rows; j++) {
            const struct pt_memory_row *r = &terms->row[j];
            double least = HUGE_VAL;

            for (int k = 0; k < PT_N_LAYER_KINDS; k++)
                if (pt_model_layers(&setup->model, (enum pt_layer_kind)k) > 0)
                    least = fmin(least, least_layer(r, k, recompute, f, offload));
            if (least > 0.0)
                n = fmin(n, floor((limit - r->constant) / least * (1.0 + 1e-9)));
        }
        held += fmax(n, 0.0);
    }
    return held >= total;
}

/* The even split of a layout with every relief that the space allows. */
static enum pt_status relieved_split(const struct pt_setup *setup,
                                     const struct planner_space *space,
                                     const struct pt_layout *layout,
                                     struct pt_split *split, struct pt_error *err)
{
    enum pt_status st = pt_split_init(split, layout->pp, layout->vpp, err);

    if (st != PT_OK)
        return st;
    pt_split_even(split, &setup->model, layout, space->embedding_slots);
    for (uint32_t s = 0; s < layout->pp; s++)
        split->offload_frac[s] = most_offload(space);
    return PT_OK;
}

/* Device bytes of the fullest stage. */
static double fullest_bytes(const struct pt_setup *setup, const struct pt_layout *layout,
                            const struct pt_memory_terms *terms,
                            const struct pt_split *split)
{
    uint32_t m = pt_micro_batches(&setup->job, layout);
    double most = 0.0;

    for (uint32_t s = 0; s < layout->pp; s++) {
        struct pt_stage_content content;

        pt_stage_content(layout, split, m, s, &content);
        for (unsigned j = 0; j < terms->n_rows; j++)
            most = fmax(most, pt_memory_row_bytes(&terms->row[j], &content));
    }
    return pt_memory_device_bytes(terms, most);
}

enum pt_status planner_relieved_memory(const struct pt_setup *setup,
                                       const struct planner_space *space,
                                       const struct pt_layout *layout,
                                       struct pt_memory *memory, struct pt_error *err)
{
    struct pt_memory_terms terms;
    struct pt_split split;
    enum pt_status st = relieved_split(setup, space, layout, &split, err);

    if (st != PT_OK)
        return st;
    pt_memory_terms_init(setup, layout, &terms);
    st = pt_memory_init(setup, layout, &terms, &split, memory, err);
    pt_split_fini(&split);
    return st;
}

enum pt_status planner_closest_add(struct planner_closest *closest,
                                   const struct pt_setup *setup,
                                   const struct planner_space *space,
                                   const struct pt_layout *layout, struct pt_error *err)
{
    struct pt_memory_terms terms;
    struct pt_split split;
    enum pt_status st;
    double bytes;

    pt_memory_terms_init(setup, layout, &terms);
    if (closest->any &&
        planner_least_bytes(setup, space, layout, &terms) >= closest->bytes)
        return PT_OK;
    st = relieved_split(setup, space, layout, &split, err);
    if (st != PT_OK)
        return st;
    bytes = fullest_bytes(setup, layout, &terms, &split);
    pt_split_fini(&split);
    if (!closest->any || bytes < closest->bytes) {
        closest->any = true;
        closest->bytes = bytes;
        closest->layout = *layout;
    }
    return PT_OK;
}

enum pt_status planner_shortfall(const struct pt_setup *setup,
                                 const struct planner_space *space,
                                 const struct planner_closest *closest,
                                 struct planner_shortfall *shortfall,
                                 struct pt_error *err)
{
    char need[32], have[32];
    enum pt_status st;

    if (!closest->any)
        return pt_fail(err, PT_BUG, NULL, 0, "no layout fits, and none is the closest");
    st = planner_relieved_memory(setup, space, &closest->layout, &shortfall->memory, err);
    if (st != PT_OK)
        return st;
    shortfall->closest = closest->layout;
    shortfall->needed_bytes = shortfall->memory.device_bytes;
    shortfall->usable_bytes = pt_memory_limit(setup);
    return pt_fail(
        err, PT_CAPACITY, NULL, 0,
        "nothing fits: the closest layout (TP%u x PP%u x CP%u x DP%u) needs %s on its "
        "fullest GPU, %s are usable",
        closest->layout.tp, closest->layout.pp, closest->layout.cp, closest->layout.dp,
        pt_format_gib(need, shortfall->needed_bytes),
        pt_format_gib(have, shortfall->usable_bytes));
}
