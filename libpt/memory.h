/* Memory of one GPU and of one host, per stage and phase. Bytes.
 * Linear in the split, so that the MILP and this agree: pt_memory_coefficients gives the terms,
 * pt_memory sums them. Formulas and sources stand in memory.c. */
#ifndef PT_MEMORY_H
#define PT_MEMORY_H

#include "libpt/setup.h"

/* What one layer of a kind, one end, or one stage adds to a GPU under a layout. */
struct pt_memory_terms {
    /* per layer: weights + gradients + the states that stay when nothing is offloaded */
    double weight_bytes[PT_N_LAYER_KINDS], grad_bytes[PT_N_LAYER_KINDS],
        optimizer_bytes[PT_N_LAYER_KINDS];
    /* saved activations of one layer and micro-batch: of a layer that is not in `recomputed`,
     * by layout.recompute (NONE and FULL: all of them), and of one that is */
    double activation_bytes[PT_N_LAYER_KINDS], checkpoint_bytes[PT_N_LAYER_KINDS];
    /* transient: one layer recomputed in full, alive at once */
    double working_bytes[PT_N_LAYER_KINDS];
    double gather_bytes[PT_N_LAYER_KINDS];  /* ZeRO-3: gathered layers and prefetch, per stage */
    double embedding_state_bytes[3], head_state_bytes[3]; /* weight, grad, optimizer */
    double embedding_activation_bytes;      /* per micro-batch in flight, first stage */
    double logits_bytes;                    /* last stage, not per micro-batch in flight */
    double bucket_bytes, workspace_bytes;   /* every stage */
    double communicator_bytes, context_bytes; /* outside the allocator */
    double fragmentation_frac;              /* reserved = allocated * (1 + this) */
    double host_bytes_per_offloaded_byte;   /* pinned copies included */
    double step_temporary_bytes_per_param;  /* first optimizer step */
};

enum pt_phase { PT_PHASE_BUILD, PT_PHASE_LOAD, PT_PHASE_STEADY, PT_PHASE_FIRST_STEP,
                PT_PHASE_SAVE, PT_PHASE_EVAL, PT_N_PHASES };

enum pt_memory_part { PT_MEM_WEIGHTS, PT_MEM_GRADS, PT_MEM_OPTIMIZER, PT_MEM_ACTIVATIONS,
                      PT_MEM_LOGITS, PT_MEM_GATHER, PT_MEM_WORKSPACE, PT_MEM_FRAGMENTATION,
                      PT_MEM_COMMUNICATORS, PT_MEM_CONTEXT, PT_N_MEMORY_PARTS };

struct pt_stage_memory {
    double part_bytes[PT_N_MEMORY_PARTS]; /* at the worst phase */
    double allocated_bytes;  /* tensors: weights .. workspace */
    double reserved_bytes;   /* + fragmentation: the allocator's pool */
    double device_bytes;     /* + communicators + context: what nvidia-smi shows */
    double host_bytes;       /* of this rank, pinned copies included */
    double in_flight;        /* micro-batches whose activations are alive, in stage units */
    enum pt_phase worst_phase;
    double phase_device_bytes[PT_N_PHASES];
};

struct pt_memory {
    uint32_t stages;
    struct pt_stage_memory *stage; /* owned (pt_memory_fini) */
    uint32_t worst_stage;          /* by device_bytes */
    double allocated_bytes, reserved_bytes, device_bytes; /* maxima over stages */
    double limit_bytes;            /* of device_bytes */
    double host_bytes, host_limit_bytes; /* of the fullest host */
    bool fits;
    char largest_tensor[96];       /* "fp32 logits 4 x 4 x 1024 x 50304" */
    double largest_tensor_bytes;
};

/* In-flight micro-batches at stage s, counted from 0, in units of the stage's activations
 * (a chunk counts 1/vpp): GPipe m; 1F1B min(pp - s, m); others as published. */
double pt_in_flight(const struct pt_layout *layout, uint32_t micro_batches, uint32_t stage);

void pt_memory_terms_init(const struct pt_setup *setup, const struct pt_layout *layout,
                          struct pt_memory_terms *terms);
enum pt_status pt_memory_init(const struct pt_setup *setup, const struct pt_layout *layout,
                              const struct pt_memory_terms *terms,
                              const struct pt_split *split, struct pt_memory *memory,
                              struct pt_error *err);
void pt_memory_fini(struct pt_memory *memory);
/* What the user may fill on one GPU: --mem, or the card's, less nothing: the context and the
 * communicators are in device_bytes. */
double pt_memory_limit(const struct pt_setup *setup);
const char *pt_memory_part_name(enum pt_memory_part part);
const char *pt_phase_name(enum pt_phase phase);

#endif
