/* A decoder: its shape, and what it weighs. Units: counts. */
#ifndef PT_MODEL_H
#define PT_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libpt/error.h"

#define PT_MAX_LAYERS 4096

/* Layers of one kind cost the same; a model is `dense_layers` dense ones, then MoE ones.
 */
enum pt_layer_kind { PT_LAYER_DENSE, PT_LAYER_MOE, PT_N_LAYER_KINDS };

struct pt_model {
    char name[64];    /* preset, config file or "synthetic 10B" */
    char source[160]; /* where the shape came from, for the assumption block */
    uint32_t layers, hidden, ffn, heads, kv_heads, head_dim, vocab;
    uint32_t max_seq; /* tokens per sequence that the publisher trained with or allows */
    bool gated;       /* SwiGLU (three matrices) or GELU (two) */
    bool tied;        /* embedding and head share weights */
    bool bias;        /* biases on all linears */
    bool qkv_bias;    /* biases on q, k and v though the others have none (Qwen2) */
    bool rmsnorm;     /* norms have a scale alone; else scale and shift (LayerNorm) */
    bool learned_positions; /* else RoPE */
    bool qk_norm;
    bool router_bias;         /* MoE: a correction per expert (DeepSeek-V3) */
    bool shared_gate;         /* MoE: a gate on the shared expert (Qwen2-MoE) */
    bool sliding_window_half; /* every other layer attends to a window of 128 tokens */
    uint32_t norms; /* of hidden size, per layer; 0 means 2; 1 in parallel blocks, 4 in
                       Gemma-2 */
    uint32_t position_rows; /* of learned positions; 0 means max_seq */
    /* Parameters that nothing above describes (relative positions, embedding norms and
     * projections); negative where a norm has none. Per layer, and at the ends. */
    int64_t extra_layer_params, extra_params;
    /* Mixture of experts; experts = 0 means a dense model. ffn is then that of dense
     * layers. */
    uint32_t experts, topk, moe_ffn, shared_ffn, dense_layers;
    /* Multi-head latent attention (DeepSeek); kv_lora = 0 means none. q_lora 0: full
     * query. */
    uint32_t q_lora, kv_lora, qk_nope, qk_rope, v_dim;
};

/* Parameters of one layer or of one end, whole model (not divided by anything). */
struct pt_params {
    uint64_t attention, dense_mlp, norms; /* per layer, biases included */
    uint64_t router, expert, shared;      /* per MoE layer; expert = one expert */
    uint64_t embedding; /* token embedding, vocab x hidden, unpadded, with
                           extra_params */
    uint64_t positions; /* learned positions */
    uint64_t head;      /* 0 when tied */
    uint64_t final_norm;
    uint64_t total, active; /* active: per token (top-k experts) */
};

/* Fails with PT_USAGE and a sentence when the shape contradicts itself (heads not a
 * multiple of kv_heads, zero sizes, more than PT_MAX_LAYERS, a parameter count above 1e15
 * ...). */
enum pt_status pt_model_check(const struct pt_model *model, struct pt_error *err);
/* The model must have passed pt_model_check. */
void pt_model_params(const struct pt_model *model, struct pt_params *params);
/* Layers of a kind in the whole model. */
uint32_t pt_model_layers(const struct pt_model *model, enum pt_layer_kind kind);
/* Vocabulary rounded up to a multiple of `unit` x tp; unit 0 or 1: of tp. */
uint64_t pt_vocab_padded(uint32_t vocab, uint32_t unit, uint32_t tp);

/* Forward FLOP of one sequence of `seq` tokens through the whole model (2 per
 * multiply-add); training is 3 times that. causal: attention counted half (Megatron's
 * code of today), else in full (papers until 2024). Top-k experts only. */
double pt_model_flop(const struct pt_model *model, uint32_t seq, bool causal);

/* --params: the documented rule (DESIGN.md, "Model"). Fails outside 10M..100T. */
enum pt_model_style { PT_STYLE_GPT, PT_STYLE_LLAMA };
enum pt_status pt_model_synthesise(uint64_t params, enum pt_model_style style,
                                   struct pt_model *model, struct pt_error *err);
/* --model: a row of profiles/models.csv; case-insensitive. The error names the nearest
 * ones. */
enum pt_status pt_model_preset(const char *profile_dir, const char *name,
                               struct pt_model *model, struct pt_error *err);
/* --config: a Hugging Face config.json. */
enum pt_status pt_model_config(const char *path, struct pt_model *model,
                               struct pt_error *err);
/* The same from memory; `where` names the text in messages. */
enum pt_status pt_model_config_parse(const char *where, const char *text, size_t len,
                                     struct pt_model *model, struct pt_error *err);

#endif
