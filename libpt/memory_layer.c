/* Activations of one layer.
 *
 * Counting of Korthikanti et al., "Reducing Activation Recomputation in Large Transformer
 * Models" (2022), section 4, extended to grouped-query and latent attention, gated MLPs,
 * flash attention (output and log-sum-exp instead of scores) and experts. 16-bit
 * elements; b s tokens, h hidden, f ffn, a heads, k key heads, d head width, t
 * tensor-parallel ranks, T = b s / cp tokens: norms      2 inputs + 2 outputs          8
 * h T / sp         (sp = t with sequence parallelism) dropout    2 masks of a byte 2 h T
 * / sp attention  q, k, v, output               (2 (a + 2k) d + 2 a d) T / t flash
 * log-sum-exp, fp32             4 a T / t eager      scores: softmax, mask, dropped  (2 +
 * 3 dropout) b s^2 a / (t cp) MLP        4 f T / t, gated 6 f T / t */
#include "libpt/memory_layer.h"

double pt_tokens(const struct pt_job *job, const struct pt_layout *layout)
{
    return (double)layout->micro_batch * (double)job->seq / (double)layout->cp;
}

double pt_tokens_split(const struct pt_job *job, const struct pt_layout *layout)
{
    double t = pt_tokens(job, layout);

    return layout->sequence_parallel ? t / (double)layout->tp : t;
}

/* Widths of one token's tensors in the attention block of one GPU, in elements. */
struct attention {
    double query, key, value, output; /* as the core reads and writes them */
    double latent;    /* MLA: compressed tensors and their norms, not split */
    double key_heads; /* after replication */
};

static struct attention attention_widths(const struct pt_model *m,
                                         const struct pt_layout *layout)
{
    struct attention w = { 0 };
    double t = layout->tp, a = (double)m->heads / t;

    if (m->kv_lora) {
        w.query = w.key = a * (double)(m->qk_nope + m->qk_rope);
        w.value = w.output = a * (double)m->v_dim;
        /* Each low-rank projection keeps its product and the normalised copy of it. */
        w.latent =
            2.0 * (double)m->q_lora + 2.0 * (double)m->kv_lora + (double)m->qk_rope;
        return w;
    }
    w.key_heads = m->kv_heads > layout->tp ? (double)m->kv_heads / t : 1.0;
    w.query = w.output = a * (double)m->head_dim;
    w.key = w.value = w.key_heads * (double)m->head_dim;
    return w;
}

/* What the attention core alone keeps: Korthikanti's selective recomputation drops it. */
static double core_bytes(const struct pt_setup *setup, const struct pt_layout *layout,
                         double tokens)
{
    double heads = (double)setup->model.heads / (double)layout->tp;

    if (setup->job.attention == PT_ATTENTION_FLASH)
        return 4.0 * heads * tokens;
    return (setup->job.dropout ? 5.0 : 2.0) * heads * tokens * (double)setup->job.seq;
}

struct mlp {
    double saved;          /* bytes kept, norms apart */
    double grad;           /* bytes of the gradients alive at once in its backward */
    double input_products; /* bytes of products whose outputs selective-ops keeps */
};

static struct mlp mlp_bytes(const struct pt_setup *setup, const struct pt_layout *layout,
                            enum pt_layer_kind kind, double tokens)
{
    const struct pt_model *m = &setup->model;
    double t = layout->tp, gate = m->gated ? 2.0 : 1.0;

    if (kind == PT_LAYER_DENSE) {
        double f = (double)m->ffn / t * tokens;

        return (struct mlp){ (2.0 * gate + 2.0) * f, 2.0 * gate * f, 2.0 * f };
    }
    /* Balanced routing: every rank's experts see tokens x topk / tp rows. */
    double routed = tokens * (double)m->topk / t, f = (double)m->moe_ffn;
    double h = (double)m->hidden, shared = (double)m->shared_ffn / t * tokens;
    double saved = routed * (2.0 * h + (2.0 * gate + 2.0) * f) +
                   (2.0 * gate + 2.0) * shared + 8.0 * (double)m->experts * tokens / t;

    return (struct mlp){ saved, routed * (4.0 * h + 2.0 * gate * f), 2.0 * routed * f };
}

void pt_layer_memory(const struct pt_setup *setup, const struct pt_layout *layout,
                     enum pt_layer_kind kind, struct pt_layer_memory *memory)
{
    const struct pt_model *m = &setup->model;
    const struct pt_stack *stack = &setup->stack;
    double tokens = pt_tokens(&setup->job, layout);
    double split = pt_tokens_split(&setup->job, layout), h = m->hidden;
    struct attention w = attention_widths(m, layout);
    struct mlp mlp = mlp_bytes(setup, layout, kind, tokens);
    double core = core_bytes(setup, layout, tokens);
    double norms =
        (8.0 + stack->mem_norm_bytes + (setup->job.dropout ? 2.0 : 0.0)) * h * split;
    double qkv = 2.0 * (w.query + w.key + w.value) * tokens,
           output = 2.0 * w.output * tokens;
    double latent = 2.0 * w.latent * tokens;

    if (layout->cp > 1) /* the ring keeps a copy of keys and values */
        qkv += (2.0 * (w.key + w.value) + stack->mem_cp_query_bytes * w.query) * tokens;
    memory->saved_bytes = norms + qkv + latent + output + core + mlp.saved;
    memory->checkpoint_bytes = 2.0 * h * split;
    memory->backward_bytes = mlp.grad + 2.0 * stack->mem_backward_hidden * h * tokens;
    switch (layout->recompute) {
    case PT_RECOMPUTE_SELECTIVE:
        memory->policy_bytes = memory->saved_bytes - core;
        memory->backward_bytes += core;
        break;
    case PT_RECOMPUTE_SELECTIVE_OPS: /* outputs of every other product, and of the core */
        memory->policy_bytes = 2.0 * h * split * 2.0 +
                               2.0 * (w.query + w.value) * tokens + output + core +
                               mlp.input_products;
        memory->backward_bytes += memory->saved_bytes - memory->policy_bytes;
        break;
    case PT_RECOMPUTE_HALF:
        memory->policy_bytes = 0.5 * (memory->saved_bytes + memory->checkpoint_bytes);
        memory->backward_bytes += memory->saved_bytes - memory->checkpoint_bytes;
        break;
    default:
        memory->policy_bytes = memory->saved_bytes;
        break;
    }
}
