/* The memory model against arithmetic done by hand. Each table's comment says where the
 * figure comes from and how it is made up. */
#include "config.h"

#include <math.h>
#include <string.h>

#include "libpt/memory.h"
#include "libpt/memory_layer.h"
#include "libpt/units.h"
#include "tests/unit/unit.h"

#define CLOSE(value, want, tolerance)                                                    \
    ck_assert_msg(fabs((value) - (want)) <= (tolerance), "%s is %.10g, not %.10g",       \
                  #value, (double)(value), (double)(want))

static void stack_defaults(struct pt_stack *stack)
{
    *stack = (struct pt_stack){ 0 };
#define X(name, dflt, lo, hi, unit, help) stack->name = dflt;
    PT_STACK_CONSTANTS(X)
#undef X
}

/* A GPT (learned positions, GELU, tied) of that shape, mixed precision, eager with
 * dropout. */
static struct pt_setup gpt(uint32_t layers, uint32_t hidden, uint32_t heads,
                           uint32_t vocab, uint32_t seq)
{
    struct pt_setup s = { 0 };

    s.model = (struct pt_model){ .layers = layers,
                                 .hidden = hidden,
                                 .ffn = 4 * hidden,
                                 .heads = heads,
                                 .kv_heads = heads,
                                 .head_dim = hidden / heads,
                                 .vocab = vocab,
                                 .max_seq = seq,
                                 .tied = true,
                                 .bias = true,
                                 .learned_positions = true };
    s.job = (struct pt_job){ .seq = seq,
                             .global_batch = 4096,
                             .precision = PT_BF16,
                             .attention = PT_ATTENTION_EAGER,
                             .dropout = true };
    pt_dtypes_default(PT_BF16, PT_OPT_ADAM, &s.job.dtypes);
    stack_defaults(&s.stack);
    s.cluster.gpu.mem_bytes = 80.0 * PT_GIB;
    s.cluster.node_gpus = s.cluster.domain_gpus = 8;
    return s;
}

/* Llama: grouped keys, SwiGLU, RMSNorm, untied, flash attention. */
static struct pt_setup llama(uint32_t layers, uint32_t hidden, uint32_t ffn,
                             uint32_t heads, uint32_t kv_heads, uint32_t vocab,
                             uint32_t seq)
{
    struct pt_setup s = gpt(layers, hidden, heads, vocab, seq);

    s.model.ffn = ffn;
    s.model.kv_heads = kv_heads;
    s.model.gated = s.model.rmsnorm = true;
    s.model.tied = s.model.bias = s.model.learned_positions = false;
    s.job.attention = PT_ATTENTION_FLASH;
    s.job.dropout = false;
    return s;
}

static struct pt_layout layout(uint32_t tp, uint32_t pp, uint32_t dp, uint32_t zero)
{
    return (struct pt_layout){ .tp = tp,
                               .pp = pp,
                               .vpp = 1,
                               .cp = 1,
                               .ep = 1,
                               .dp = dp,
                               .zero = zero,
                               .micro_batch = 1,
                               .schedule = pp > 1 ? PT_SCHEDULE_1F1B : PT_SCHEDULE_NONE };
}

static void memory_of(const struct pt_setup *s, const struct pt_layout *l,
                      struct pt_memory *memory)
{
    struct pt_error err = PT_ERROR_INIT;
    struct pt_memory_terms terms;
    struct pt_split split;

    ck_assert(pt_split_init(&split, l->pp, l->vpp, &err) == PT_OK);
    pt_split_even(&split, &s->model, l, false);
    pt_memory_terms_init(s, l, &terms);
    ck_assert(pt_memory_init(s, l, &terms, &split, memory, &err) == PT_OK);
    pt_split_fini(&split);
}

static double states_of(const struct pt_setup *s, const struct pt_layout *l)
{
    struct pt_memory memory;
    double bytes = 0.0;

    memory_of(s, l, &memory);
    for (int i = PT_MEM_WEIGHTS; i <= PT_MEM_OPTIMIZER; i++)
        bytes += memory.stage[0].part_bytes[i];
    pt_memory_fini(&memory);
    return bytes;
}

/* Mixed-precision Adam: 2 weight + 2 gradient + 4 master + 4 + 4 moments = 16 bytes; 7B
 * parameters are 112 GB. 18 with gradients in fp32. 8-bit moments: 2 instead of 8. fp32:
 * 4 4 8. */
static const struct {
    enum pt_precision precision;
    enum pt_optimizer optimizer;
    double grad; /* 0: the default */
    double bytes;
} policies[] = {
    { PT_BF16, PT_OPT_ADAM, 0, 16 }, { PT_FP16, PT_OPT_ADAM, 0, 16 },
    { PT_BF16, PT_OPT_ADAM, 4, 18 }, { PT_BF16, PT_OPT_ADAM8BIT, 0, 10 },
    { PT_FP32, PT_OPT_ADAM, 0, 16 }, { PT_FP32, PT_OPT_ADAM8BIT, 0, 10 },
    { PT_FP8, PT_OPT_ADAM, 0, 16 },
};

START_TEST(bytes_per_parameter)
{
    struct pt_setup s = llama(32, 4096, 11008, 32, 32, 32000, 4096);
    struct pt_layout l = layout(1, 1, 1, 0);
    struct pt_params params;

    s.job.precision = policies[_i].precision;
    pt_dtypes_for_stack(&s.stack, policies[_i].precision, policies[_i].optimizer,
                        &s.job.dtypes);
    if (policies[_i].grad > 0)
        s.job.dtypes.grad = policies[_i].grad;
    pt_model_params(&s.model, &params);
    /* 32 (4 x 4096^2 + 3 x 4096 x 11008 + 2 x 4096) + 2 x 32000 x 4096 + 4096 */
    ck_assert_uint_eq(params.total, 6738415616);
    CLOSE(states_of(&s, &l) / (double)params.total, policies[_i].bytes, 1e-9);
    /* 7e9 x 16 = 112e9 */
    if (policies[_i].bytes == 16.0)
        CLOSE(states_of(&s, &l) / (double)params.total * 7e9, 112e9, 1.0);
}
END_TEST

/* Rajbhandari et al., "ZeRO", 2020, figure 1: psi = 7.5B, 64 ranks, 120, 31.4, 16.6, 1.9
 * GB. 16; 4 + 12/64; 2 + 14/64; 16/64 bytes per parameter. */
static const struct {
    uint32_t zero;
    double bytes, gb;
} zero_table[] = {
    { 0, 16.0, 120.0 }, { 1, 4.1875, 31.4 }, { 2, 2.21875, 16.6 }, { 3, 0.25, 1.9 }
};

START_TEST(zero_divides_the_states)
{
    struct pt_setup s = llama(32, 4096, 11008, 32, 32, 32000, 4096);
    struct pt_layout l = layout(1, 1, 64, zero_table[_i].zero);
    double per_param = states_of(&s, &l) / 6738415616.0;

    CLOSE(per_param, zero_table[_i].bytes, 1e-9);
    CLOSE(per_param * 7.5, zero_table[_i].gb, 0.05);
}
END_TEST

/* ZeRO-1 over a group of 8 of 64 ranks: 4 + 12/8. */
START_TEST(zero_group_is_smaller)
{
    struct pt_setup s = llama(32, 4096, 11008, 32, 32, 32000, 4096);
    struct pt_layout l = layout(1, 1, 64, 1);

    l.zero_group = 8;
    CLOSE(states_of(&s, &l) / 6738415616.0, 5.5, 1e-9);
}
END_TEST

/* ColossalAI issue 5068: 64.2B parameters, tp 4, ZeRO-1 over dp 8 out of memory on 80 GB
 * cards: 64.2e9 / 4 x (2 + 2 + 12/8) = 88.3e9 = 82.2 GiB. The shape has 63.9B. */
START_TEST(seventy_billion_on_tp4)
{
    struct pt_setup s = llama(80, 8192, 22016, 64, 64, 32000, 1024);
    struct pt_layout l = layout(4, 1, 8, 1);
    struct pt_params params;
    struct pt_memory memory;

    pt_model_params(&s.model, &params);
    CLOSE(64.2e9 / 4.0 * 5.5 / PT_GIB, 82.2, 0.05);
    /* norms are whole on every rank: 161 x 8192 parameters beyond a quarter */
    CLOSE(states_of(&s, &l), ((double)params.total / 4.0 + 0.75 * 161.0 * 8192.0) * 5.5,
          1e3);
    s.cluster.mem_limit_bytes = 80.0 * PT_GIB;
    memory_of(&s, &l, &memory);
    ck_assert(!memory.fits);
    pt_memory_fini(&memory);
}
END_TEST

/* DeepSpeed's estimator (deepspeedai/DeepSpeed issue 4527): ZeRO-3 on 4 GPUs needs 18
 * bytes of each parameter over 4, and 4 of the largest layer: 18 x 6.805e9 / 4 + 4 x
 * 131e6 = 29.0 GiB. With this shape's 6.738e9 parameters 28.7. */
START_TEST(deepspeed_estimator)
{
    struct pt_setup s = llama(32, 4096, 11008, 32, 32, 32000, 4096);
    struct pt_layout l = layout(1, 1, 4, 3);
    struct pt_memory memory;
    double bytes;

    s.job.dtypes.grad = 4.0;
    s.stack.mem_gather_layers = s.stack.mem_gather_grad = 0.0;
    s.stack.mem_gather_ends = 4.0;
    memory_of(&s, &l, &memory);
    bytes = memory.stage[0].part_bytes[PT_MEM_WEIGHTS] +
            memory.stage[0].part_bytes[PT_MEM_GRADS] +
            memory.stage[0].part_bytes[PT_MEM_OPTIMIZER] +
            memory.stage[0].part_bytes[PT_MEM_GATHER] /
                2.0; /* embedding and head are alike */
    pt_memory_fini(&memory);
    CLOSE((18.0 * 6.805e9 / 4.0 + 4.0 * 32000.0 * 4096.0) / PT_GIB, 29.01, 0.02);
    CLOSE(bytes, 18.0 * 6738415616.0 / 4.0 + 4.0 * 32000.0 * 4096.0 + 2.0 * 4096.0, 1.0);
}
END_TEST

/* Korthikanti et al. 2022, "Reducing Activation Recomputation in Large Transformer
 * Models", table 2 and figure 1 (values in GiB as Calculon's validation has them):
 * activations of the first stage, tp 8. Parameters and optimizer at 18 bytes of the
 * layers' matrices: 12 L h^2 / (8 p). */
static const struct {
    uint32_t layers, hidden, heads, micro_batch, pp, vpp;
    double states, plain, selective;
} korthikanti[] = {
    /* 22B: 48 x 4 x 2048 x 6144 x (10 + 24/8 + 5 x 64 x 2048 / (6144 x 8)) */
    { 48, 6144, 64, 4, 1, 1, 45.5625, 59.25, 9.5625 },
    { 96, 12288, 96, 1, 8, 3, 45.5625, 66.84, 12.35 },
    { 105, 20480, 128, 1, 35, 3, 31.64, 114.02, 23.08 },
    { 128, 25600, 160, 1, 64, 1, 32.96, 131.25, 26.56 },
};

START_TEST(korthikanti_activations)
{
    double L = korthikanti[_i].layers, h = korthikanti[_i].hidden, p = korthikanti[_i].pp;
    struct pt_setup s = gpt(korthikanti[_i].layers, korthikanti[_i].hidden,
                            korthikanti[_i].heads, 51200, 2048);
    struct pt_layout l = layout(8, korthikanti[_i].pp, 1, 0);
    struct pt_memory_terms terms;
    double flight;

    l.vpp = korthikanti[_i].vpp;
    l.micro_batch = korthikanti[_i].micro_batch;
    if (l.vpp > 1)
        l.schedule = PT_SCHEDULE_INTERLEAVED;
    CLOSE(18.0 * 12.0 * L * h * h / (8.0 * p) / PT_GIB, korthikanti[_i].states, 0.15);
    flight = pt_in_flight(&l, 4096, 0);
    pt_memory_terms_init(&s, &l, &terms);
    CLOSE(terms.activation_bytes[0] * L / p * flight / PT_GIB, korthikanti[_i].plain,
          0.01);
    l.sequence_parallel = true;
    l.recompute = PT_RECOMPUTE_SELECTIVE;
    pt_memory_terms_init(&s, &l, &terms);
    CLOSE(terms.activation_bytes[0] * L / p * flight / PT_GIB, korthikanti[_i].selective,
          0.01);
}
END_TEST

/* Ibid., figure 7, as read off the bars (0.15 points): per cent of the tensor-parallel
 * baseline. */
static const struct {
    uint32_t hidden, heads;
    double sequence, selective, both, full;
} figure7[] = { { 6144, 64, 66.84, 49.42, 16.18, 7.64 },
                { 12288, 96, 62.04, 56.53, 18.49, 8.71 },
                { 20480, 128, 58.31, 62.04, 20.27, 9.42 },
                { 25600, 160, 58.31, 62.04, 20.27, 9.42 } };

START_TEST(korthikanti_fractions)
{
    struct pt_setup s = gpt(48, figure7[_i].hidden, figure7[_i].heads, 51200, 2048);
    struct pt_layout l = layout(8, 1, 1, 0);
    struct pt_memory_terms base, t;

    pt_memory_terms_init(&s, &l, &base);
    CLOSE(200.0 * 2048.0 * figure7[_i].hidden / base.activation_bytes[0],
          figure7[_i].full, 0.15);
    CLOSE(100.0 * base.checkpoint_bytes[0] / base.activation_bytes[0], figure7[_i].full,
          0.15);
    l.recompute = PT_RECOMPUTE_SELECTIVE;
    pt_memory_terms_init(&s, &l, &t);
    CLOSE(100.0 * t.activation_bytes[0] / base.activation_bytes[0], figure7[_i].selective,
          0.15);
    l.sequence_parallel = true;
    pt_memory_terms_init(&s, &l, &t);
    CLOSE(100.0 * t.activation_bytes[0] / base.activation_bytes[0], figure7[_i].both,
          0.15);
    l.recompute = PT_RECOMPUTE_NONE;
    pt_memory_terms_init(&s, &l, &t);
    CLOSE(100.0 * t.activation_bytes[0] / base.activation_bytes[0], figure7[_i].sequence,
          0.15);
}
END_TEST

/* The same by hand for a small Llama layer: h 64, f 192, a 4, k 2, d 16, 10 tokens, no
 * tp. norms and inputs 8 x 64 = 512; q, k, v 2 (4 + 2 + 2) 16 = 256; output 2 x 64 = 128;
 * statistics 4 x 4 = 16; gate and up 4 x 192 = 768; product 2 x 192 = 384: 2064 a token.
 */
START_TEST(llama_layer_by_hand)
{
    struct pt_setup s = llama(2, 64, 192, 4, 2, 1000, 10);
    struct pt_layout l = layout(1, 1, 1, 0);
    struct pt_layer_memory layer;

    pt_layer_memory(&s, &l, PT_LAYER_DENSE, &layer);
    CLOSE(layer.saved_bytes, 20640.0, 1e-9);
    CLOSE(layer.policy_bytes, 20640.0, 1e-9);
    CLOSE(layer.checkpoint_bytes, 1280.0, 1e-9);
    /* Two of four: sequence parallel halves the 512, tp 2 all the rest. */
    l.tp = 2;
    pt_layer_memory(&s, &l, PT_LAYER_DENSE, &layer);
    CLOSE(layer.saved_bytes,
          10.0 * (512.0 + (256.0 + 128.0 + 16.0 + 768.0 + 384.0) / 2.0), 1e-9);
    l.sequence_parallel = true;
    pt_layer_memory(&s, &l, PT_LAYER_DENSE, &layer);
    CLOSE(layer.saved_bytes, 10320.0, 1e-9);
    CLOSE(layer.checkpoint_bytes, 640.0, 1e-9);
    /* Keys are not split below one head: tp 4 keeps 1 + 1 + 1 heads of 16, not 1 + 1/2 +
     * 1/2. */
    l.tp = 4;
    pt_layer_memory(&s, &l, PT_LAYER_DENSE, &layer);
    CLOSE(layer.saved_bytes,
          10.0 * (128.0 + 2.0 * 3.0 * 16.0 + (128.0 + 16.0 + 768.0 + 384.0) / 4.0), 1e-9);
    /* selective-ops: input and its norm's 2 x 2 x 64, q and v 2 (64 + 32), output 128,
     * one wide product 2 x 192, statistics 16 */
    l = layout(1, 1, 1, 0);
    l.recompute = PT_RECOMPUTE_SELECTIVE_OPS;
    pt_layer_memory(&s, &l, PT_LAYER_DENSE, &layer);
    CLOSE(layer.policy_bytes, 10.0 * (256.0 + 192.0 + 128.0 + 384.0 + 16.0), 1e-9);
    l.recompute = PT_RECOMPUTE_HALF;
    pt_layer_memory(&s, &l, PT_LAYER_DENSE, &layer);
    CLOSE(layer.policy_bytes, (20640.0 + 1280.0) / 2.0, 1e-9);
}
END_TEST

/* p = 4; stage 0, 1, 2, 3 of 1F1B hold 4, 3, 2, 1. Megatron's interleaving with v = 2:
 * (2 (p - s - 1) + p + 1) / 2 = 5.5, 4.5, 3.5, 2.5. Few micro-batches bound all of them.
 */
static const struct {
    enum pt_schedule_kind schedule;
    uint32_t vpp, micro_batches, max_in_flight;
    enum pt_vocab_kind vocab;
    double want[4];
} flights[] = {
    { PT_SCHEDULE_1F1B, 1, 32, 0, PT_VOCAB_ENDS, { 4, 3, 2, 1 } },
    { PT_SCHEDULE_1F1B, 1, 2, 0, PT_VOCAB_ENDS, { 2, 2, 2, 1 } },
    { PT_SCHEDULE_GPIPE, 1, 32, 0, PT_VOCAB_ENDS, { 32, 32, 32, 32 } },
    { PT_SCHEDULE_INTERLEAVED, 2, 32, 0, PT_VOCAB_ENDS, { 5.5, 4.5, 3.5, 2.5 } },
    { PT_SCHEDULE_INTERLEAVED, 2, 4, 0, PT_VOCAB_ENDS, { 4, 4, 3.5, 2.5 } },
    { PT_SCHEDULE_ZB_H1, 1, 32, 0, PT_VOCAB_ENDS, { 4, 4, 4, 4 } },
    { PT_SCHEDULE_ZB_H2, 1, 32, 0, PT_VOCAB_ENDS, { 7, 7, 7, 7 } },
    { PT_SCHEDULE_ZB_V, 2, 32, 0, PT_VOCAB_ENDS, { 4, 4, 4, 4 } },
    { PT_SCHEDULE_ZB_AUTO, 1, 32, 8, PT_VOCAB_ENDS, { 8, 8, 8, 8 } },
    { PT_SCHEDULE_1F1B, 1, 32, 0, PT_VOCAB_SPREAD_2, { 5, 4, 3, 2 } },
    { PT_SCHEDULE_1F1B, 1, 32, 0, PT_VOCAB_SPREAD_1, { 6, 5, 4, 3 } },
    { PT_SCHEDULE_1F1B, 1, 32, 0, PT_VOCAB_INTERLACED, { 6, 4.5, 3, 1.5 } },
};

START_TEST(in_flight)
{
    struct pt_layout l = layout(1, 4, 1, 0);

    l.schedule = flights[_i].schedule;
    l.vpp = flights[_i].vpp;
    l.max_in_flight = flights[_i].max_in_flight;
    l.vocab = flights[_i].vocab;
    for (uint32_t s = 0; s < 4; s++)
        CLOSE(pt_in_flight(&l, flights[_i].micro_batches, s), flights[_i].want[s], 1e-12);
}
END_TEST

/* What a failed allocation names. */
START_TEST(largest_tensors)
{
    struct pt_setup s = gpt(24, 1024, 16, 50304, 1024);
    struct pt_layout l = layout(1, 1, 1, 0);
    struct pt_memory memory;

    /* fp32 logits of GPT-2 medium, 4 sequences: 4 x 4 x 1024 x 50304 = 786 MiB */
    l.micro_batch = 4;
    s.job.attention = PT_ATTENTION_FLASH;
    memory_of(&s, &l, &memory);
    CLOSE(memory.largest_tensor_bytes / PT_MIB, 786.0, 1e-9);
    ck_assert_str_eq(memory.largest_tensor, "fp32 logits 4 B x 4 x 1024 x 50304");
    pt_memory_fini(&memory);

    /* ColossalAI issue 4537: 16 sequences of Llama-2 7B without flash attention ask
     * for 32.0 GiB: 4 x 16 x 32 x 4096^2 */
    s = llama(32, 4096, 11008, 32, 32, 32000, 4096);
    s.job.attention = PT_ATTENTION_EAGER;
    l = layout(1, 1, 8, 3);
    l.micro_batch = 16;
    memory_of(&s, &l, &memory);
    CLOSE(memory.largest_tensor_bytes / PT_GIB, 32.0, 1e-9);
    ck_assert_str_eq(memory.largest_tensor,
                     "fp32 attention scores 4 B x 16 x 32 x 4096 x 4096");
    ck_assert(!memory.fits);
    pt_memory_fini(&memory);
}
END_TEST

/* Chunking the loss: 65,536 tokens x 128,000 logits at 10 B are 83.9 GB at once, an
 * eighth in eight pieces. */
START_TEST(loss_in_pieces)
{
    struct pt_setup s = llama(4, 1024, 4096, 16, 16, 128000, 65536);
    struct pt_layout l = layout(1, 1, 1, 0);
    struct pt_memory_terms whole, pieces;

    pt_memory_terms_init(&s, &l, &whole);
    s.job.loss_chunks = 8;
    pt_memory_terms_init(&s, &l, &pieces);
    CLOSE(whole.logits_bytes - pieces.logits_bytes, 10.0 * 65536.0 * 128000.0 * 7.0 / 8.0,
          1.0);
}
END_TEST

/* Tied embeddings: both ends of a pipeline hold the table, one stage holds it once.
 * Padding: 1000 rows to a multiple of 128 x tp. */
START_TEST(ends)
{
    struct pt_setup s = gpt(8, 256, 8, 1000, 512);
    struct pt_layout one = layout(1, 1, 1, 0), four = layout(1, 4, 1, 0);
    struct pt_memory_terms t;

    pt_memory_terms_init(&s, &one, &t);
    CLOSE(t.embedding_state_bytes[0], 2.0 * (1000.0 + 512.0) * 256.0, 1e-9);
    CLOSE(t.head_state_bytes[0], 2.0 * 2.0 * 256.0, 1e-9); /* final norm, with bias */
    pt_memory_terms_init(&s, &four, &t);
    CLOSE(t.head_state_bytes[0], 2.0 * (1000.0 + 2.0) * 256.0, 1e-9);
    s.job.vocab_unit = 128;
    pt_memory_terms_init(&s, &four, &t);
    CLOSE(t.head_state_bytes[0], 2.0 * (1024.0 + 2.0) * 256.0, 1e-9);
}
END_TEST

/* Experts: 8 of 3 x 64 x 32 parameters over ep 4, states over dp 4 / ep 4 = 1 rank; the
 * rest over dp 4. */
START_TEST(experts_have_their_own_group)
{
    struct pt_setup s = llama(2, 64, 192, 4, 4, 1000, 16);
    struct pt_layout l = layout(1, 1, 4, 1);
    struct pt_memory_terms t;
    double dense = 4.0 * 64.0 * 64.0 + 2.0 * 64.0 + 64.0 * 8.0,
           expert = 3.0 * 64.0 * 32.0;

    s.model.experts = 8;
    s.model.topk = 2;
    s.model.moe_ffn = 32;
    l.ep = 4;
    pt_memory_terms_init(&s, &l, &t);
    CLOSE(t.weight_bytes[PT_LAYER_MOE], 2.0 * (dense + 2.0 * expert), 1e-9);
    CLOSE(t.optimizer_bytes[PT_LAYER_MOE], 12.0 * (dense / 4.0 + 2.0 * expert), 1e-9);
}
END_TEST

/* Offloaded optimizer: a 10B-class model on one host of 8. States leave the card, and
 * stand on the host with their pinned copies. */
START_TEST(offload_moves_states_to_the_host)
{
    struct pt_error err = PT_ERROR_INIT;
    struct pt_setup s = llama(48, 4096, 11008, 32, 32, 32000, 4096);
    struct pt_layout l = layout(1, 4, 2, 0);
    struct pt_memory_terms terms;
    struct pt_memory none, all;
    struct pt_split split;
    double optimizer;

    s.stack.mem_host_rank = 1e9;
    s.stack.mem_host_pinned = 0.25;
    ck_assert(pt_split_init(&split, 4, 1, &err) == PT_OK);
    pt_split_even(&split, &s.model, &l, false);
    pt_memory_terms_init(&s, &l, &terms);
    ck_assert(pt_memory_init(&s, &l, &terms, &split, &none, &err) == PT_OK);
    for (int i = 0; i < 4; i++)
        split.offload_frac[i] = 1.0;
    ck_assert(pt_memory_init(&s, &l, &terms, &split, &all, &err) == PT_OK);
    optimizer = none.stage[1].part_bytes[PT_MEM_OPTIMIZER];
    CLOSE(optimizer,
          12.0 * 12.0 * (4.0 * 4096.0 * 4096.0 + 3.0 * 4096.0 * 11008.0 + 2.0 * 4096.0),
          1.0);
    CLOSE(all.stage[1].part_bytes[PT_MEM_OPTIMIZER], 0.0, 1.0);
    CLOSE(none.stage[1].allocated_bytes - all.stage[1].allocated_bytes, optimizer, 1.0);
    CLOSE(all.stage[1].host_bytes, 1e9 + 1.25 * optimizer, 10.0);
    CLOSE(none.host_bytes, 8e9, 1.0);
    /* two ranks of each of the four stages */
    CLOSE(all.host_bytes,
          2.0 * (all.stage[0].host_bytes + all.stage[1].host_bytes +
                 all.stage[2].host_bytes + all.stage[3].host_bytes),
          10.0);
    pt_memory_fini(&none);
    pt_memory_fini(&all);
    s.cluster.node_gpus = 4; /* the fullest of two hosts: stages 0 and 1, or 2 and 3 */
    s.cluster.host_mem_bytes = 100e9;
    ck_assert(pt_memory_init(&s, &l, &terms, &split, &all, &err) == PT_OK);
    CLOSE(all.host_bytes,
          2.0 * fmax(all.stage[0].host_bytes + all.stage[1].host_bytes,
                     all.stage[2].host_bytes + all.stage[3].host_bytes),
          10.0);
    ck_assert(all.device_bytes < all.limit_bytes);
    ck_assert(!all.fits); /* 2 x 2 x about 40 GB above 100 */
    pt_memory_fini(&all);
    pt_split_fini(&split);
}
END_TEST

/* Building the whole model on each rank before it is split: 80 layers of Llama-2 70B at 2
 * B are 126 GiB on a card that would hold its share well (ColossalAI issue 5068). */
START_TEST(building_may_be_the_worst_phase)
{
    struct pt_setup s = llama(80, 8192, 22016, 64, 64, 32000, 1024);
    struct pt_layout l = layout(8, 2, 2, 1);
    struct pt_memory memory;

    memory_of(&s, &l, &memory);
    ck_assert(memory.fits);
    ck_assert(memory.stage[0].worst_phase == PT_PHASE_STEADY);
    pt_memory_fini(&memory);
    s.stack.mem_build_whole = 2.0;
    memory_of(&s, &l, &memory);
    ck_assert(!memory.fits);
    ck_assert(memory.stage[0].worst_phase == PT_PHASE_BUILD);
    pt_memory_fini(&memory);
}
END_TEST

/* One group of two or more ranks, one communicator: tp, pp, dp, and the tied embedding's.
 */
START_TEST(communicators)
{
    struct pt_setup s = gpt(8, 256, 8, 1000, 512);
    struct pt_layout alone = layout(1, 1, 1, 0), three = layout(2, 2, 2, 0);
    struct pt_memory_terms t;

    pt_memory_terms_init(&s, &alone, &t);
    CLOSE(t.communicator_bytes, 0.0, 0.0);
    pt_memory_terms_init(&s, &three, &t);
    CLOSE(t.communicator_bytes, 4.0 * s.stack.mem_communicator, 1e-6);
    s.model.tied = false;
    pt_memory_terms_init(&s, &three, &t);
    CLOSE(t.communicator_bytes, 3.0 * s.stack.mem_communicator, 1e-6);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("memory");
    TCase *tc = tcase_create("by hand");

    tcase_add_loop_test(tc, bytes_per_parameter, 0, N_ROWS(policies));
    tcase_add_loop_test(tc, zero_divides_the_states, 0, N_ROWS(zero_table));
    tcase_add_test(tc, zero_group_is_smaller);
    tcase_add_test(tc, seventy_billion_on_tp4);
    tcase_add_test(tc, deepspeed_estimator);
    tcase_add_loop_test(tc, korthikanti_activations, 0, N_ROWS(korthikanti));
    tcase_add_loop_test(tc, korthikanti_fractions, 0, N_ROWS(figure7));
    tcase_add_test(tc, llama_layer_by_hand);
    tcase_add_loop_test(tc, in_flight, 0, N_ROWS(flights));
    tcase_add_test(tc, largest_tensors);
    tcase_add_test(tc, loss_in_pieces);
    tcase_add_test(tc, ends);
    tcase_add_test(tc, experts_have_their_own_group);
    tcase_add_test(tc, offload_moves_states_to_the_host);
    tcase_add_test(tc, building_may_be_the_worst_phase);
    tcase_add_test(tc, communicators);
    suite_add_tcase(suite, tc);
    return unit_run(suite);
}
