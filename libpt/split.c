/* How the layers lie on stages and chunks. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "libpt/layout.h"

enum pt_status pt_split_init(struct pt_split *split, uint32_t pp, uint32_t vpp,
                             struct pt_error *err)
{
    memset(split, 0, sizeof(*split));
    if (pp < 1 || vpp < 1 || pp > PT_MAX_PP || vpp > PT_MAX_VPP ||
        pp * vpp > PT_MAX_CHUNKS)
        return pt_fail(
            err, PT_USAGE, NULL, 0,
            "%u stages of %u chunks; at most %d x %d and %d in all are supported",
            (unsigned)pp, (unsigned)vpp, PT_MAX_PP, PT_MAX_VPP, PT_MAX_CHUNKS);
    split->chunk = calloc((size_t)pp * vpp, sizeof(*split->chunk));
    split->offload_frac = calloc(pp, sizeof(*split->offload_frac));
    if (split->chunk == NULL || split->offload_frac == NULL) {
        pt_split_fini(split);
        return pt_fail(err, PT_SYSTEM, NULL, 0, "out of memory");
    }
    split->pp = pp;
    split->vpp = vpp;
    return PT_OK;
}

void pt_split_fini(struct pt_split *split)
{
    free(split->chunk);
    free(split->offload_frac);
    memset(split, 0, sizeof(*split));
}

uint32_t pt_split_order(const struct pt_layout *layout, uint32_t k)
{
    if (pt_schedule_is_v(layout->schedule) && k >= layout->pp)
        return 3 * layout->pp - 1 - k; /* chunk 1 of stage 2 pp - 1 - k */
    return k;
}

void pt_split_even(struct pt_split *split, const struct pt_model *model,
                   const struct pt_layout *layout, bool embedding_slots)
{
    uint32_t pieces = split->pp * split->vpp, next = 0;
    uint32_t dense = pt_model_layers(model, PT_LAYER_DENSE);
    /* Fewer layers than pieces: the ends go without first, they have other work. */
    bool slots = pieces > 1 && (embedding_slots || model->layers < pieces);
    uint32_t units = model->layers + (slots ? 2 : 0);

    for (uint32_t k = 0; k < pieces; k++) {
        struct pt_chunk *chunk = &split->chunk[pt_split_order(layout, k)];
        uint32_t n = units / pieces + (k < units % pieces ? 1 : 0), n_dense;

        if (slots && (k == 0 || k == pieces - 1) && n > 0)
            n--;
        n_dense = next >= dense ? 0 : dense - next < n ? dense - next : n;
        next += n;
        chunk->layers[PT_LAYER_DENSE] = (uint16_t)n_dense;
        chunk->layers[PT_LAYER_MOE] = (uint16_t)(n - n_dense);
        for (int kind = 0; kind < PT_N_LAYER_KINDS; kind++)
            chunk->recomputed[kind] =
                layout->recompute == PT_RECOMPUTE_FULL ? chunk->layers[kind] : 0;
    }
}
