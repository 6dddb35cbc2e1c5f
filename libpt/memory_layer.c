/* Activations of one layer: the saved bytes of its operators (ops.c, after Korthikanti et
 * al., "Reducing Activation Recomputation in Large Transformer Models", 2022, section 4),
 * what a software stack keeps beside them, what a recomputation policy leaves, and what
 * the layer's backward allocates for a while. 16-bit elements; h hidden, f ffn, a heads,
 * d head width, t tensor-parallel ranks, T = b s / cp tokens, sp = t with sequence
 * parallelism, else 1. */
#include "config.h"

#include "libpt/memory_layer.h"
#include "libpt/ops.h"

double pt_tokens(const struct pt_job *job, const struct pt_layout *layout)
{
    return (double)layout->micro_batch * (double)job->seq / (double)layout->cp;
}

double pt_tokens_split(const struct pt_job *job, const struct pt_layout *layout)
{
    double t = pt_tokens(job, layout);

    return layout->sequence_parallel ? t / (double)layout->tp : t;
}

/* Elements of one token in the attention block of one GPU. */
struct attention {
    double query, key, value; /* as the core reads them; its output is as wide as the
                                 query's heads times the value's width */
    double output;
};

static struct attention attention_widths(const struct pt_model *m,
                                         const struct pt_layout *layout)
{
    struct attention w;
    double t = layout->tp, heads = (double)m->heads / t;

    if (m->kv_lora) {
        w.query = w.key = heads * (double)(m->qk_nope + m->qk_rope);
        w.value = w.output = heads * (double)m->v_dim;
        return w;
    }
    w.query = w.output = heads * (double)m->head_dim;
    w.key = w.value =
        (m->kv_heads > layout->tp ? (double)m->kv_heads / t : 1.0) * (double)m->head_dim;
    return w;
}

/* Attention scores of the eager kernel: b s^2 a / (t cp). */
static double scores(const struct pt_setup *setup, const struct pt_layout *layout,
                     double tokens)
{
    if (setup->job.attention == PT_ATTENTION_FLASH)
        return 0.0;
    return (double)setup->model.heads / (double)layout->tp * tokens *
           (double)setup->job.seq;
}

/* What the core keeps beside query, key, value and output, and selective recomputation
 * drops: softmax, mask and dropped scores, or flash attention's statistics. */
static double core_bytes(const struct pt_setup *setup, const struct pt_layout *layout,
                         double tokens)
{
    if (setup->job.attention == PT_ATTENTION_FLASH)
        return 4.0 * (double)setup->model.heads / (double)layout->tp * tokens;
    return (setup->job.dropout ? 5.0 : 2.0) * scores(setup, layout, tokens);
}

/* The transient of a layer's backward: the gradient of the MLP's wide activation (by then
 * the saved input of its last product is free), or those of the attention scores, and a
 * few buffers of the hidden size. Experts: the routed rows' gradients besides. */
static double backward_bytes(const struct pt_setup *setup, const struct pt_layout *layout,
                             enum pt_layer_kind kind, double tokens)
{
    const struct pt_model *m = &setup->model;
    const struct pt_stack *stack = &setup->stack;
    double t = layout->tp, gate = m->gated ? 2.0 : 1.0, wide, narrow;

    if (kind == PT_LAYER_MOE) {
        double routed = tokens * (double)m->topk / t;

        wide = routed * (4.0 * (double)m->hidden + 2.0 * gate * (double)m->moe_ffn);
    } else {
        wide = 2.0 * gate * (double)m->ffn / t * tokens;
    }
    narrow = stack->mem_score_backward * scores(setup, layout, tokens);
    return (wide > narrow ? wide : narrow) +
           2.0 * stack->mem_backward_hidden * (double)m->hidden * tokens;
}

/* torchtitan's policy: the outputs of every other product (of query, key, value,
 * projection, gate, up, down: query, value, gate, down) and of the attention core, and
 * the layer's input. */
static double selective_ops_bytes(const struct pt_setup *setup,
                                  const struct pt_layout *layout, enum pt_layer_kind kind,
                                  double tokens)
{
    const struct pt_model *m = &setup->model;
    struct attention w = attention_widths(m, layout);
    double ffn = kind == PT_LAYER_MOE
                     ? (double)(m->topk * m->moe_ffn + m->shared_ffn) / (double)layout->tp
                     : (double)m->ffn / (double)layout->tp;

    return 4.0 * (double)m->hidden * pt_tokens_split(&setup->job, layout) +
           2.0 * (w.query + w.value + w.output + ffn) * tokens +
           core_bytes(setup, layout, tokens);
}

/* In 8- and 4-bit training the inputs of the products may be kept as they were cast. The
 * attention's output is then kept twice: cast for the projection, and as the core needs
 * it. */
static double ops_saved(const struct pt_setup *setup, const struct pt_ops *ops)
{
    enum pt_precision p = setup->job.precision;
    double low = setup->stack.mem_low_saved, saved = 0.0;
    bool cast = low > 0.0 && (p == PT_FP8 || p == PT_MXFP8 || p == PT_NVFP4);

    for (unsigned i = 0; i < ops->n; i++) {
        const struct pt_op *op = &ops->op[i];

        if (!cast || op->kind != PT_OP_GEMM || !op->low)
            saved += op->saved_bytes;
        else if (op->saved_bytes > 0.0)
            saved += 0.5 * low * op->saved_bytes;
        else
            saved += low * op->m * op->k * op->count;
    }
    return saved;
}

void pt_layer_memory(const struct pt_setup *setup, const struct pt_layout *layout,
                     enum pt_layer_kind kind, struct pt_layer_memory *memory)
{
    const struct pt_stack *stack = &setup->stack;
    double tokens = pt_tokens(&setup->job, layout), h = setup->model.hidden;
    double split = pt_tokens_split(&setup->job, layout);
    struct pt_ops ops;

    pt_ops_layer(setup, layout, kind, &ops);
    memory->saved_bytes = stack->mem_norm_bytes * h * split + ops_saved(setup, &ops);
    if (layout->cp > 1) { /* the ring keeps its own copy of keys and values */
        struct attention w = attention_widths(&setup->model, layout);

        memory->saved_bytes +=
            (2.0 * (w.key + w.value) + stack->mem_cp_query_bytes * w.query) * tokens;
    }
    memory->checkpoint_bytes = 2.0 * stack->mem_checkpoint_copies * h * split;
    memory->backward_bytes = backward_bytes(setup, layout, kind, tokens);
    memory->policy_bytes = memory->saved_bytes;
    switch (layout->recompute) {
    case PT_RECOMPUTE_SELECTIVE:
        memory->policy_bytes -= core_bytes(setup, layout, tokens);
        break;
    case PT_RECOMPUTE_SELECTIVE_OPS:
        memory->policy_bytes = selective_ops_bytes(setup, layout, kind, tokens);
        break;
    case PT_RECOMPUTE_HALF:
        memory->policy_bytes = 0.5 * (memory->saved_bytes + memory->checkpoint_bytes);
        break;
    default:
        return;
    }
    if (memory->policy_bytes > memory->saved_bytes)
        memory->policy_bytes = memory->saved_bytes;
    if (layout->recompute == PT_RECOMPUTE_HALF) /* a whole layer comes back at once */
        memory->backward_bytes += memory->saved_bytes - memory->checkpoint_bytes;
    else
        memory->backward_bytes += memory->saved_bytes - memory->policy_bytes;
}
