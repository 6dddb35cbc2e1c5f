/* Memory of one GPU and of one host, per stage and phase. Bytes.
 *
 * A stage's peak is the largest of a few rows (a phase, or a moment of the steady step),
 * each linear in what a split decides. pt_memory_terms_init gives the rows under a
 * layout, the search's MILP puts each of them under the limit, and pt_memory_init
 * evaluates the same rows for a split: both are the same arithmetic. Formulas and sources
 * stand in memory.c and memory_layer.c. */
#ifndef PT_MEMORY_H
#define PT_MEMORY_H

#include "libpt/setup.h"

enum pt_phase {
    PT_PHASE_BUILD,
    PT_PHASE_LOAD,
    PT_PHASE_STEADY,
    PT_PHASE_FIRST_STEP,
    PT_PHASE_SAVE,
    PT_PHASE_EVAL,
    PT_N_PHASES
};

/* The first PT_MEM_FRAGMENTATION parts are tensors, inside the allocator. */
enum pt_memory_part {
    PT_MEM_WEIGHTS,
    PT_MEM_GRADS,
    PT_MEM_OPTIMIZER,
    PT_MEM_ACTIVATIONS,
    PT_MEM_LOGITS,
    PT_MEM_GATHER,
    PT_MEM_WORKSPACE,
    PT_MEM_FRAGMENTATION,
    PT_MEM_COMMUNICATORS,
    PT_MEM_CONTEXT,
    PT_N_MEMORY_PARTS
};
#define PT_N_TENSOR_PARTS PT_MEM_FRAGMENTATION

/* Of the steady step: the backward of a layer, the head and loss, the backward of the
 * embedding. */
enum pt_moment { PT_MOMENT_ANY, PT_MOMENT_LAYER, PT_MOMENT_HEAD, PT_MOMENT_EMBEDDING };

/* Allocated bytes of a stage at one moment. With n layers of a kind, r of them recomputed
 * in full, f = pt_in_flight and o the offloaded fraction, it is the sum of
 *
 *   constant; first if it is stage 0; last if it holds the head; any_recomputed if some r
 * > 0; n layer[k] over the kinds; f (flight_first on stage 0, and n flight[k] + r
 * flight_recomputed[k] over the kinds); minus o (offload_first, offload_last likewise,
 * and n offload[k] over the kinds).
 *
 * flight_recomputed is checkpoint minus activation: not positive. */
struct pt_memory_row {
    enum pt_phase phase;
    enum pt_moment moment;
    double constant, first, last, layer[PT_N_LAYER_KINDS], recomputed[PT_N_LAYER_KINDS];
    double flight_first, flight[PT_N_LAYER_KINDS], flight_recomputed[PT_N_LAYER_KINDS];
    double any_recomputed;
    double offload[PT_N_LAYER_KINDS], offload_first, offload_last;
};
#define PT_MEMORY_ROWS 8

/* What one layer of a kind, one end, or one stage adds to a GPU under a layout. */
struct pt_memory_terms {
    /* The rows: n_all of them; only the first n_rows can ever be the largest. */
    unsigned n_rows, n_all;
    struct pt_memory_row row[PT_MEMORY_ROWS];
    /* reserved = allocated (1 + fragmentation_frac) + fragmentation_bytes;
     * device = reserved + communicator_bytes + context_bytes */
    double fragmentation_frac, fragmentation_bytes;
    double communicator_bytes, context_bytes;
    /* Host bytes of a rank: host_rank_bytes + this x optimizer bytes of its GPU that are
     * offloaded. Pinned copies included. */
    double host_rank_bytes, host_bytes_per_offloaded_byte;

    /* What the rows are made of, for the breakdown and for bounds. Per layer: states held
     * by the GPU when nothing is offloaded. */
    double weight_bytes[PT_N_LAYER_KINDS], grad_bytes[PT_N_LAYER_KINDS],
        optimizer_bytes[PT_N_LAYER_KINDS];
    double embedding_state_bytes[3], head_state_bytes[3]; /* weight, grad, optimizer */
    /* Saved activations of one layer and micro-batch: of a layer that is not in
     * `recomputed`, by layout.recompute (NONE and FULL: all of them), and of one that is.
     */
    double activation_bytes[PT_N_LAYER_KINDS], checkpoint_bytes[PT_N_LAYER_KINDS];
    double embedding_activation_bytes; /* per micro-batch in flight, first stage */
    /* Transient, alive at once: the backward of one layer; the saved activations of one
     * layer recomputed in full; head and loss (last stage). The peak is that of the head
     * or that of a layer, not both. */
    double backward_bytes, working_bytes, logits_bytes;
    double head_saved_bytes; /* last stage, with logits_bytes: final norm's input and
                                output */
    double split_freed;      /* micro-batches' worth of in_flight that is free already */
    double gather_bytes;     /* ZeRO-3: gathered layers and prefetch, every stage */
    double gather_ends_bytes[2];     /* ... embedding (first), head (last) */
    double embedding_backward_bytes; /* first stage: the gradient of the whole table */
    double bucket_bytes, workspace_bytes; /* every stage */
    bool spread; /* the vocabulary is spread: logits_bytes on every stage */
};

struct pt_stage_memory {
    double part_bytes[PT_N_MEMORY_PARTS]; /* at the worst moment; their sum is
                                             device_bytes */
    double allocated_bytes;               /* tensors: weights .. workspace */
    double reserved_bytes;                /* + fragmentation: the allocator's pool */
    double device_bytes; /* + communicators + context: what nvidia-smi shows */
    double host_bytes;   /* of one rank of this stage, pinned copies included */
    double in_flight;    /* micro-batches whose activations are alive, in stage units */
    enum pt_phase worst_phase;
    double phase_device_bytes[PT_N_PHASES];
};

struct pt_memory {
    uint32_t stages;
    struct pt_stage_memory *stage;                        /* owned (pt_memory_fini) */
    uint32_t worst_stage;                                 /* by device_bytes */
    double allocated_bytes, reserved_bytes, device_bytes; /* maxima over stages */
    double limit_bytes;                                   /* of device_bytes */
    double host_bytes, host_limit_bytes; /* of the fullest host; limit 0: unknown */
    bool fits;
    char largest_tensor[96]; /* "fp32 logits 4 x 4 x 1024 x 50304" */
    double largest_tensor_bytes;
};

/* In-flight micro-batches at stage s, counted from 0, in units of the stage's activations
 * (a chunk counts 1/vpp): GPipe m; 1F1B min(pp - s, m); others as published. */
double pt_in_flight(const struct pt_layout *layout, uint32_t micro_batches,
                    uint32_t stage);

/* The layout must have passed pt_layout_check. Never fails; allocates nothing. */
void pt_memory_terms_init(const struct pt_setup *setup, const struct pt_layout *layout,
                          struct pt_memory_terms *terms);

/* What the rows read of one stage. */
struct pt_stage_content {
    double layers[PT_N_LAYER_KINDS], recomputed[PT_N_LAYER_KINDS], offload_frac,
        in_flight;
    bool first, last;
};
void pt_stage_content(const struct pt_layout *layout, const struct pt_split *split,
                      uint32_t micro_batches, uint32_t stage,
                      struct pt_stage_content *content);
double pt_memory_row_bytes(const struct pt_memory_row *row,
                           const struct pt_stage_content *content);
/* nvidia-smi's figure for that much allocated. */
double pt_memory_device_bytes(const struct pt_memory_terms *terms,
                              double allocated_bytes);

/* Bytes per parameter that a stack keeps under a precision: the policy of
 * pt_dtypes_default with the stack's own widths of gradients and weights. */
void pt_dtypes_for_stack(const struct pt_stack *stack, enum pt_precision precision,
                         enum pt_optimizer optimizer, struct pt_dtypes *dtypes);

/* PT_SYSTEM when memory runs out. Whether it fits is in memory->fits. */
enum pt_status pt_memory_init(const struct pt_setup *setup,
                              const struct pt_layout *layout,
                              const struct pt_memory_terms *terms,
                              const struct pt_split *split, struct pt_memory *memory,
                              struct pt_error *err);
void pt_memory_fini(struct pt_memory *memory);
/* What a plan may fill on one GPU: --mem, or what the card offers, less the stack's
 * mem_margin. The context and the communicators are in device_bytes. */
double pt_memory_limit(const struct pt_setup *setup);
const char *pt_memory_part_name(enum pt_memory_part part);
const char *pt_phase_name(enum pt_phase phase);

#endif
