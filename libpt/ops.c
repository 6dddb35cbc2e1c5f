/* The operators of a decoder layer, the embedding and the head.
 *
 * T = micro_batch * seq / cp tokens of a GPU; Ts = T / tp of them with sequence
 * parallelism outside the products (Korthikanti et al. 2022, arXiv:2205.05198, section
 * 4). 16-bit activations. Bytes of a MEMORY operator: what its kernels read and write
 * when nothing is fused across them. Saved bytes: ibid., section 4.1 for the eager
 * kernel; flash attention keeps Q, K, V, its output and 4 bytes of softmax statistics per
 * token and head (Dao et al. 2022, arXiv:2205.14135). */
#include "config.h"

#include "libpt/ops.h"

/* What every operator of a layer needs. */
struct view {
    const struct pt_model *m;
    const struct pt_job *job;
    const struct pt_layout *l;
    double t, ts; /* tokens in and between the products */
    double tp, h;
    double q_dim, v_dim, heads, kv_heads; /* per GPU; q_dim, v_dim per head */
};

static struct view view_of(const struct pt_setup *setup, const struct pt_layout *l)
{
    const struct pt_model *m = &setup->model;
    struct view v = { m, &setup->job, l, 0, 0, l->tp, m->hidden, 0, 0, 0, 0 };

    v.t = (double)l->micro_batch * setup->job.seq / l->cp;
    v.ts = l->sequence_parallel ? v.t / v.tp : v.t;
    v.heads = m->heads / v.tp;
    if (m->kv_lora > 0) {
        v.q_dim = m->qk_nope + m->qk_rope;
        v.v_dim = m->v_dim;
        v.kv_heads = v.heads;
    } else {
        v.q_dim = v.v_dim = m->head_dim;
        v.kv_heads = l->tp > m->kv_heads ? 1.0 : m->kv_heads / v.tp;
    }
    return v;
}

static struct pt_op *add(struct pt_ops *ops, const char *name, enum pt_op_kind kind)
{
    struct pt_op *op = &ops->op[ops->n++];

    *op = (struct pt_op){ .name = name, .kind = kind };
    return op;
}

/* A product with weights [k, n]; its input [m, k] is saved for the weight gradient. */
static struct pt_op *add_gemm(struct pt_ops *ops, const char *name, double m, double n,
                              double k, double count)
{
    struct pt_op *op = add(ops, name, PT_OP_GEMM);

    op->m = m;
    op->n = n;
    op->k = k;
    op->count = count;
    op->forward_flop = 2.0 * m * n * k * count;
    op->params = n * k * count;
    op->low = true;
    return op;
}

static struct pt_op *add_memory(struct pt_ops *ops, const char *name, double forward,
                                double backward, double saved)
{
    struct pt_op *op = add(ops, name, PT_OP_MEMORY);

    op->forward_bytes = forward;
    op->backward_bytes = backward;
    op->saved_bytes = saved;
    return op;
}

static void add_comm(struct pt_ops *ops, const char *name, enum pt_collective kind,
                     enum pt_dim dim, double bytes, double forward, double backward)
{
    struct pt_op *op = add(ops, name, PT_OP_COMM);

    op->collective = kind;
    op->dim = dim;
    op->comm_bytes = bytes;
    op->forward_count = forward;
    op->backward_count = backward;
}

/* Around a pair of products: gather and scatter of the sequence, or a sum of the results.
 * The backward mirrors the forward, and gathers the saved shard once more for the weight
 * gradient (beside a product, so half of it counts). */
static void add_tp_comm(struct pt_ops *ops, const struct view *v)
{
    double bytes = 2.0 * v->t * v->h;

    if (v->l->tp == 1)
        return;
    if (v->l->sequence_parallel) {
        add_comm(ops, "tp gather", PT_ALLGATHER, PT_DIM_TP, bytes, 1.0, 1.5);
        add_comm(ops, "tp scatter", PT_REDUCESCATTER, PT_DIM_TP, bytes, 1.0, 1.0);
    } else {
        add_comm(ops, "tp sum", PT_ALLREDUCE, PT_DIM_TP, bytes, 1.0, 1.0);
    }
}

/* A norm, and the residual addition with bias and dropout that follows the block. */
static void add_block_ends(struct pt_ops *ops, const struct view *v)
{
    struct pt_op *op = add_memory(ops, "norm", 4.0 * v->h * v->ts, 8.0 * v->h * v->ts,
                                  2.0 * v->h * v->ts);

    op->params = (v->m->rmsnorm ? 1.0 : 2.0) * v->h;
    if (v->job->dropout)
        add_memory(ops, "bias dropout residual", 7.0 * v->h * v->ts, 11.0 * v->h * v->ts,
                   1.0 * v->h * v->ts);
    else
        add_memory(ops, "residual", 6.0 * v->h * v->ts, 6.0 * v->h * v->ts, 0.0);
}

static void add_projections(struct pt_ops *ops, const struct view *v)
{
    const struct pt_model *m = v->m;
    double qkv = (v->heads + 2.0 * v->kv_heads) * v->q_dim;

    if (m->kv_lora > 0) {
        double q_up = v->heads * v->q_dim;

        if (m->q_lora > 0) {
            add_gemm(ops, "q down", v->t, m->q_lora, v->h, 1.0)->saved_bytes =
                2.0 * v->ts * v->h;
            add_gemm(ops, "q up", v->t, q_up, m->q_lora, 1.0)->saved_bytes =
                4.0 * v->t * m->q_lora;
        } else {
            add_gemm(ops, "q", v->t, q_up, v->h, 1.0)->saved_bytes = 2.0 * v->ts * v->h;
        }
        add_gemm(ops, "kv down", v->t, m->kv_lora + m->qk_rope, v->h, 1.0)->saved_bytes =
            2.0 * v->t * (m->kv_lora + m->qk_rope);
        add_gemm(ops, "kv up", v->t, v->heads * (m->qk_nope + m->v_dim), m->kv_lora, 1.0)
            ->saved_bytes = 2.0 * v->t * m->kv_lora;
        return;
    }
    struct pt_op *op = add_gemm(ops, "qkv", v->t, qkv, v->h, 1.0);

    op->saved_bytes = 2.0 * v->ts * v->h;
    if (m->bias)
        op->params += qkv;
}

/* Causal flash attention computes half of the square; the eager kernel all of it, and
 * moves the scores through memory: softmax (read, write), dropout (read, write, mask). A
 * sliding window on every other layer is averaged, so that layers of a kind stay alike.
 */
static void add_core(struct pt_ops *ops, const struct view *v)
{
    double b = v->l->micro_batch, s = v->job->seq, sq = s / v->l->cp;
    double pairs = b * s * sq * v->heads, dims = v->q_dim + v->v_dim;
    double qkv_bytes =
        2.0 * v->t * (v->heads * v->q_dim + v->kv_heads * (v->q_dim + v->v_dim));
    struct pt_op *op = add(ops, "attention", PT_OP_ATTENTION);

    op->m = sq;
    op->n = s;
    op->k = v->q_dim;
    op->count = b * v->heads;
    if (v->job->attention == PT_ATTENTION_FLASH) {
        op->forward_flop = pairs * dims;
        if (v->m->sliding_window_half)
            op->forward_flop = 0.5 * op->forward_flop + b * sq * 128.0 * v->heads * dims;
        op->forward_bytes = qkv_bytes + 2.0 * v->t * v->heads * v->v_dim;
        op->backward_bytes = 2.0 * op->forward_bytes;
        op->saved_bytes = qkv_bytes + v->t * v->heads * (2.0 * v->v_dim + 4.0);
        return;
    }
    op->forward_flop = 2.0 * pairs * dims;
    op->forward_bytes = (v->job->dropout ? 7.0 : 4.0) * pairs;
    op->backward_bytes = (v->job->dropout ? 13.0 : 8.0) * pairs;
    op->saved_bytes = qkv_bytes + 2.0 * v->t * v->heads * v->v_dim +
                      (v->job->dropout ? 5.0 : 2.0) * pairs;
    add_memory(ops, "transposes", 6.0 * v->t * v->h / v->tp, 10.0 * v->t * v->h / v->tp,
               0.0);
}

static void add_attention(struct pt_ops *ops, const struct view *v)
{
    const struct pt_model *m = v->m;
    double rope = 4.0 * (v->heads + v->kv_heads) * v->q_dim * v->t;

    add_block_ends(ops, v);
    add_projections(ops, v);
    if (m->qk_norm)
        add_memory(ops, "qk norm", rope, 2.0 * rope, 0.5 * rope)->params = 2.0 * v->q_dim;
    if (!m->learned_positions && v->job->attention == PT_ATTENTION_FLASH)
        add_memory(ops, "rotary", rope, rope, 0.0);
    add_core(ops, v);
    if (v->l->cp > 1)
        add_comm(ops, "kv gather", PT_ALLGATHER, PT_DIM_CP,
                 2.0 * v->t * v->l->cp * v->kv_heads * (v->q_dim + v->v_dim), 1.0, 2.0);
    add_gemm(ops, "projection", v->t, v->h, v->heads * v->v_dim, 1.0);
    if (m->bias)
        ops->op[ops->n - 1].params += v->h;
    add_tp_comm(ops, v);
}

/* Two or three matrices, [h, f] (twice when gated) and [f, h]. */
static void add_mlp(struct pt_ops *ops, const struct view *v, double ffn,
                    double input_bytes, const char *up, const char *act, const char *down)
{
    double f = ffn / v->tp, g = v->m->gated ? 2.0 : 1.0;
    struct pt_op *op = add_gemm(ops, up, v->t, g * f, v->h, 1.0);

    op->saved_bytes = input_bytes;
    if (v->m->bias)
        op->params += g * f;
    add_memory(ops, act, (v->m->gated ? 6.0 : 4.0) * f * v->t,
               (v->m->gated ? 10.0 : 6.0) * f * v->t, 2.0 * g * f * v->t);
    op = add_gemm(ops, down, v->t, v->h, f, 1.0);
    op->saved_bytes = 2.0 * v->t * f;
    if (v->m->bias)
        op->params += v->h;
}

/* Bytes of an all-to-all when copies of a token for experts of one domain travel once:
 * with top-k experts over K domains, K (1 - (1 - 1/K)^k) domains are met on average. */
static double distinct_frac(double domains, uint32_t topk)
{
    double miss = 1.0;

    if (domains <= 1.0)
        return 1.0;
    for (uint32_t i = 0; i < topk; i++)
        miss *= 1.0 - 1.0 / domains;
    double frac = domains * (1.0 - miss) / topk;

    return frac < 1.0 ? frac : 1.0;
}

static void add_experts(struct pt_ops *ops, const struct pt_setup *setup,
                        const struct view *v)
{
    const struct pt_model *m = v->m;
    double local = (double)m->experts / v->l->ep;
    double routed = v->t / v->tp * m->topk, f = m->moe_ffn, g = m->gated ? 2.0 : 1.0;
    double pair_bytes = 2.0 * routed * v->h;
    struct pt_op *op;

    op = add_gemm(ops, "router", v->ts, m->experts, v->h, 1.0);
    op->low = false;
    /* The norm's output serves router, permutation and shared expert; the permuted rows
     * are kept once, as the input of the experts. */
    op->saved_bytes = v->ts * (2.0 * v->h + 8.0 * m->experts);
    add_memory(ops, "permute", 6.0 * pair_bytes, 6.0 * pair_bytes, 0.0)->expert = true;
    if (v->l->ep > 1) {
        uint32_t domain = setup->cluster.domain_gpus;
        double domains = v->l->ep > domain ? (double)v->l->ep / domain : 1.0;

        add_comm(ops, "expert exchange", PT_ALLTOALL, PT_DIM_EP,
                 pair_bytes * distinct_frac(domains, m->topk), 2.0, 2.0);
    }
    op = add_gemm(ops, "expert up", routed / local, g * f, v->h, local);
    op->expert = true;
    op->saved_bytes = pair_bytes;
    op = add_memory(ops, "expert activation", (m->gated ? 6.0 : 4.0) * f * routed,
                    (m->gated ? 10.0 : 6.0) * f * routed, 2.0 * g * f * routed);
    op->expert = true;
    op = add_gemm(ops, "expert down", routed / local, v->h, f, local);
    op->expert = true;
    op->saved_bytes = 2.0 * routed * f;
    if (m->shared_ffn > 0)
        add_mlp(ops, v, m->shared_ffn, 0.0, "shared up", "shared activation",
                "shared down");
}

/* 8- and 4-bit products cast their input forward and their output gradient backward.
 * Block scales cost a third more. */
static void add_casts(struct pt_ops *ops, const struct pt_setup *setup)
{
    enum pt_precision p = setup->job.precision;
    double per_element, in = 0.0, out = 0.0;

    if (p != PT_FP8 && p != PT_MXFP8 && p != PT_NVFP4)
        return;
    per_element =
        setup->stack.cast_bytes * (p == PT_FP8 ? 1.0 : setup->stack.block_cast_mult);
    for (unsigned i = 0; i < ops->n; i++)
        if (ops->op[i].kind == PT_OP_GEMM && ops->op[i].low) {
            in += ops->op[i].m * ops->op[i].k * ops->op[i].count;
            out += ops->op[i].m * ops->op[i].n * ops->op[i].count;
        }
    add_memory(ops, "casts", per_element * in, per_element * out, 0.0);
}

/* Activations of fp32 training are twice as wide. */
static void widen(const struct pt_setup *setup, struct pt_ops *ops)
{
    if (setup->job.precision != PT_FP32)
        return;
    for (unsigned i = 0; i < ops->n; i++) {
        struct pt_op *op = &ops->op[i];

        op->forward_bytes *= 2.0;
        op->backward_bytes *= 2.0;
        op->saved_bytes *= 2.0;
        op->comm_bytes *= 2.0;
    }
}

void pt_ops_layer(const struct pt_setup *setup, const struct pt_layout *layout,
                  enum pt_layer_kind kind, struct pt_ops *ops)
{
    struct view v = view_of(setup, layout);

    ops->n = 0;
    add_attention(ops, &v);
    add_block_ends(ops, &v);
    if (kind == PT_LAYER_MOE) {
        add_experts(ops, setup, &v);
    } else {
        add_mlp(ops, &v, v.m->ffn, 2.0 * v.ts * v.h, "fc1", "activation", "fc2");
        add_tp_comm(ops, &v);
    }
    add_casts(ops, setup);
    widen(setup, ops);
}

/* The lookup reads a row per token; its gradient is scattered into a buffer of the whole
 * table, which is also zeroed and added to the accumulated gradient. */
void pt_ops_embedding(const struct pt_setup *setup, const struct pt_layout *layout,
                      struct pt_ops *ops)
{
    struct view v = view_of(setup, layout);
    double rows =
        (double)pt_vocab_padded(v.m->vocab, v.job->vocab_unit, layout->tp) / v.tp;
    bool accumulates = pt_micro_batches(v.job, layout) > 1;
    struct pt_op *op;

    ops->n = 0;
    op = add_memory(ops, "embedding", v.t * v.h * (v.job->dropout ? 8.0 : 4.0),
                    v.t * v.h * 8.0 + (accumulates ? 10.0 : 4.0) * rows * v.h,
                    v.job->dropout ? v.t * v.h : 0.0);
    op->params = rows * v.h;
    if (v.m->learned_positions)
        op->params += (double)v.m->max_seq * v.h;
    widen(setup, ops);
}

void pt_ops_head(const struct pt_setup *setup, const struct pt_layout *layout,
                 struct pt_ops *ops)
{
    struct view v = view_of(setup, layout);
    double rows =
        (double)pt_vocab_padded(v.m->vocab, v.job->vocab_unit, layout->tp) / v.tp;
    double logits = v.t * rows;
    struct pt_op *op;

    ops->n = 0;
    op = add_memory(ops, "final norm", 4.0 * v.h * v.ts, 8.0 * v.h * v.ts,
                    2.0 * v.h * v.ts);
    op->params = (v.m->rmsnorm ? 1.0 : 2.0) * v.h;
    op = add_gemm(ops, "logits", v.t, rows, v.h, 1.0);
    op->low = false;
    op->saved_bytes = 2.0 * v.ts * v.h;
    if (v.m->tied && layout->pp == 1)
        op->params = 0.0; /* the embedding's */
    if (v.job->fused_cross_entropy)
        add_memory(ops, "loss", 10.0 * logits, 6.0 * logits, 2.0 * logits);
    else
        add_memory(ops, "loss", 26.0 * logits, 14.0 * logits, 6.0 * logits);
    if (layout->tp > 1 && v.l->sequence_parallel) {
        add_comm(ops, "tp gather", PT_ALLGATHER, PT_DIM_TP, 2.0 * v.t * v.h, 1.0, 1.0);
        add_comm(ops, "tp scatter", PT_REDUCESCATTER, PT_DIM_TP, 2.0 * v.t * v.h, 0.0,
                 1.0);
    } else if (layout->tp > 1) {
        add_comm(ops, "tp sum", PT_ALLREDUCE, PT_DIM_TP, 2.0 * v.t * v.h, 0.0, 1.0);
    }
    widen(setup, ops);
}
