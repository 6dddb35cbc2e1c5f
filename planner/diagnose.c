#include "config.h"

#include <math.h>

#include "libpt/units.h"
#include "planner/diagnose.h"

double planner_least_bytes(const struct pt_setup *setup,
                           const struct planner_space *space,
                           const struct pt_layout *layout)
{
    struct pt_memory_terms t;
    double worst = 0.0, pp = layout->pp;
    double offload = !space->offload             ? 0.0
                     : space->offload_frac < 0.0 ? 1.0
                                                 : space->offload_frac;

    pt_memory_terms_init(setup, layout, &t);
    for (unsigned j = 0; j < t.n_rows; j++) {
        const struct pt_memory_row *r = &t.row[j];
        double bytes = r->first + r->last + r->flight_first -
                       offload * (r->offload_first + r->offload_last);

        for (int k = 0; k < PT_N_LAYER_KINDS; k++) {
            double flight = r->flight[k];

            if (layout->recompute == PT_RECOMPUTE_FULL)
                flight = fmin(flight, flight + r->flight_recomputed[k]);
            bytes += pt_model_layers(&setup->model, (enum pt_layer_kind)k) *
                     (r->layer[k] + flight - offload * r->offload[k]);
        }
        worst = fmax(worst, r->constant + bytes / pp);
    }
    return pt_memory_device_bytes(&t, worst);
}

enum pt_status planner_relieved_memory(const struct pt_setup *setup,
                                       const struct planner_space *space,
                                       const struct pt_layout *layout,
                                       struct pt_memory *memory, struct pt_error *err)
{
    struct pt_memory_terms terms;
    struct pt_split split;
    double offload = !space->offload             ? 0.0
                     : space->offload_frac < 0.0 ? 1.0
                                                 : space->offload_frac;
    enum pt_status st = pt_split_init(&split, layout->pp, layout->vpp, err);

    if (st != PT_OK)
        return st;
    pt_split_even(&split, &setup->model, layout, space->embedding_slots);
    for (uint32_t s = 0; s < layout->pp; s++)
        split.offload_frac[s] = offload;
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
    struct pt_memory memory;
    enum pt_status st;

    if (closest->any && planner_least_bytes(setup, space, layout) >= closest->bytes)
        return PT_OK;
    st = planner_relieved_memory(setup, space, layout, &memory, err);
    if (st != PT_OK)
        return st;
    if (!closest->any || memory.device_bytes < closest->bytes) {
        closest->any = true;
        closest->bytes = memory.device_bytes;
        closest->layout = *layout;
    }
    pt_memory_fini(&memory);
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
