/* The job, the parallel layout and the split of layers over stages: what a plan decides.
 */
#ifndef PT_LAYOUT_H
#define PT_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "libpt/error.h"
#include "libpt/hardware.h"
#include "libpt/model.h"

enum pt_recompute {
    PT_RECOMPUTE_NONE,
    PT_RECOMPUTE_SELECTIVE,     /* the attention core only (Korthikanti et al.) */
    PT_RECOMPUTE_SELECTIVE_OPS, /* every other product and all cheap operators
                                   (torchtitan) */
    PT_RECOMPUTE_HALF,          /* every other layer in full */
    PT_RECOMPUTE_FULL,
    PT_N_RECOMPUTES
};

enum pt_schedule_kind {
    PT_SCHEDULE_NONE, /* pp = 1 */
    PT_SCHEDULE_GPIPE,
    PT_SCHEDULE_1F1B,
    PT_SCHEDULE_INTERLEAVED,
    PT_SCHEDULE_ZB_H1,
    PT_SCHEDULE_ZB_H2,
    PT_SCHEDULE_ZB_V,
    PT_SCHEDULE_V_HALF,
    PT_SCHEDULE_V_MIN,
    PT_SCHEDULE_ZB_AUTO, /* list scheduler under an in-flight limit: ZB-1p, ZB-2p */
    PT_N_SCHEDULES
};

/* Where the vocabulary lives when pp > 1: embedding on the first stage and head on the
 * last, or both spread over all stages ("vocabulary parallelism"), the head's passes
 * either between the layers' behind two (1) or one (2) barriers, or synchronously inside
 * them. */
enum pt_vocab_kind {
    PT_VOCAB_ENDS,
    PT_VOCAB_SPREAD_1,
    PT_VOCAB_SPREAD_2,
    PT_VOCAB_INTERLACED,
    PT_N_VOCAB_KINDS
};

enum pt_attention_impl { PT_ATTENTION_FLASH, PT_ATTENTION_EAGER };
enum pt_optimizer { PT_OPT_ADAM, PT_OPT_ADAM8BIT, PT_OPT_SGD, PT_N_OPTIMIZERS };

/* Bytes per parameter of each kind of state. Mixed-precision Adam: 2 2 4 8 = 16. */
struct pt_dtypes {
    double weight, grad, master, moments; /* grad: the accumulated gradient (2 or 4) */
    double grad_comm;                     /* bytes per element that a reduction moves */
};

/* What is trained, apart from how it is split. */
struct pt_job {
    uint32_t seq;          /* tokens per sequence */
    uint32_t global_batch; /* sequences per optimizer step */
    double tokens;         /* of the whole run; 0: not asked */
    enum pt_precision precision;
    enum pt_optimizer optimizer;
    struct pt_dtypes dtypes;
    enum pt_attention_impl attention;
    bool dropout;
    bool fused_grad_accumulation; /* weight gradients accumulate inside the product */
    bool
        fused_cross_entropy; /* loss does not keep fp32 logits and their gradient apart */
    bool compiled;           /* elementwise operators fused by a compiler */
    uint64_t seed;
    uint32_t loss_chunks; /* logits and loss in this many pieces, one at a time; 0, 1: at
                             once */
    uint32_t vocab_unit;  /* pad the vocabulary to a multiple of this x tp */
};

struct pt_layout {
    uint32_t tp, pp, vpp, cp, ep,
        dp; /* world = tp * cp * dp * pp; ep divides dp * cp * tp */
    bool sequence_parallel;
    bool replicate_kv;   /* allowed when tp > kv_heads */
    bool uneven_chunks;  /* interleaving whose chunks need not be equal: a hand-made split
                          */
    uint32_t zero;       /* 0-3 */
    uint32_t zero_group; /* ranks that share optimizer states; 0: all of dp * cp */
    enum pt_recompute recompute;
    enum pt_schedule_kind schedule;
    uint32_t micro_batch;   /* sequences */
    uint32_t max_in_flight; /* ZB_AUTO: stage activations; 0: pp */
    enum pt_vocab_kind vocab;
};

#define PT_MAX_PP     1024
#define PT_MAX_VPP    64
#define PT_MAX_CHUNKS 4096 /* pp * vpp; no more than layers + 2 anyway */

/* The layers of one chunk of one stage. */
struct pt_chunk {
    uint16_t layers[PT_N_LAYER_KINDS];
    uint16_t recomputed[PT_N_LAYER_KINDS]; /* <= layers: recomputed in full */
};
/* Chunk c of stage s is chunk[c * pp + s], in model order for every schedule but the
 * V-shaped ones, where chunk 1 runs back: chunk[pp + s] of stage s follows chunk[pp + s +
 * 1]. The embedding lives on the first chunk, final norm and head on the last one. */
struct pt_split {
    uint32_t pp, vpp;
    struct pt_chunk *chunk; /* pp * vpp, owned (pt_split_fini) */
    double *offload_frac;   /* pp: fraction of the stage's optimizer states on the host */
};

enum pt_status pt_split_init(struct pt_split *split, uint32_t pp, uint32_t vpp,
                             struct pt_error *err);
void pt_split_fini(struct pt_split *split);
/* As even as integers allow, the longer stages first but never the last; with recompute
 * FULL every layer is recomputed. embedding_slots counts embedding and head as one layer
 * each, as BLOOM did. The V-shaped order is respected. */
void pt_split_even(struct pt_split *split, const struct pt_model *model,
                   const struct pt_layout *layout, bool embedding_slots);
/* Index into chunk[] of the k-th piece of the model in model order (k < pp * vpp). */
uint32_t pt_split_order(const struct pt_layout *layout, uint32_t k);

/* Micro-batches per step of one replica; 0 when global_batch is not a multiple. */
uint32_t pt_micro_batches(const struct pt_job *job, const struct pt_layout *layout);
/* Ranks of the group that shares dense (expert: false) or expert gradients, dp*cp or
 * dp*cp*tp/ep; and of the one that shares optimizer states. */
uint32_t pt_grad_group(const struct pt_layout *layout, bool expert);
uint32_t pt_zero_group(const struct pt_layout *layout, bool expert);

/* Whether this combination can run at all; the sentence says what is wrong, the numbers
 * and the nearest valid values (PT_USAGE; PT_CAPACITY never). The same predicate serves
 * the search, the plan reader, the simulator and the executor. err may be NULL (the
 * search's fast path). The layout may use fewer than `gpus`; 0: their number is not
 * checked. */
enum pt_status pt_layout_check(const struct pt_model *model, const struct pt_job *job,
                               const struct pt_layout *layout, uint32_t gpus,
                               struct pt_error *err);

/* True when a schedule splits the backward pass; chunks it implies (2 for the V family).
 */
bool pt_schedule_splits_backward(enum pt_schedule_kind kind);
bool pt_schedule_is_v(enum pt_schedule_kind kind);
const char *pt_schedule_name(enum pt_schedule_kind kind);   /* "zb-h1" */
const char *pt_recompute_name(enum pt_recompute recompute); /* "none" */
enum pt_status pt_schedule_parse(const char *text, enum pt_schedule_kind *kind,
                                 struct pt_error *err);
enum pt_status pt_recompute_parse(const char *text, enum pt_recompute *recompute,
                                  struct pt_error *err);

/* The default policy for a precision and optimizer: mixed precision 2 2 4 8, fp32 4 4
 * 0 8. */
void pt_dtypes_default(enum pt_precision precision, enum pt_optimizer optimizer,
                       struct pt_dtypes *dtypes);

#endif
