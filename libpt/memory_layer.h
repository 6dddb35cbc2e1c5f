/* Inside the memory model: activations of one layer and of the ends, one micro-batch, one
 * GPU. */
#ifndef PT_MEMORY_LAYER_H
#define PT_MEMORY_LAYER_H

#include "libpt/setup.h"

struct pt_layer_memory {
    double saved_bytes;  /* everything that the backward of a layer reads */
    double policy_bytes; /* what is kept of it under layout.recompute (NONE, FULL: all) */
    double checkpoint_bytes; /* its input alone */
    double
        backward_bytes; /* transient of its backward, over the saved ones, at its peak */
};
void pt_layer_memory(const struct pt_setup *setup, const struct pt_layout *layout,
                     enum pt_layer_kind kind, struct pt_layer_memory *memory);

/* Tokens of one micro-batch on this GPU, outside and inside sequence parallelism. */
double pt_tokens(const struct pt_job *job, const struct pt_layout *layout);
double pt_tokens_split(const struct pt_job *job, const struct pt_layout *layout);

#endif
