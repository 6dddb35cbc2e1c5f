/* Validity: each rule says what is wrong, the numbers and the nearest valid values;
 * splits; names. */
#include "config.h"

#include <stddef.h>
#include <string.h>

#include "libpt/layout.h"
#include "tests/unit/unit.h"

static struct pt_model gpt(uint32_t layers, uint32_t heads, uint32_t kv_heads)
{
    return (struct pt_model){ .layers = layers,
                              .hidden = heads * 128,
                              .ffn = heads * 512,
                              .heads = heads,
                              .kv_heads = kv_heads,
                              .head_dim = 128,
                              .vocab = 51200,
                              .max_seq = 2048,
                              .tied = true,
                              .bias = true };
}

static struct pt_job job(uint32_t seq, uint32_t batch)
{
    struct pt_job j = { .seq = seq, .global_batch = batch, .precision = PT_BF16 };

    pt_dtypes_default(PT_BF16, PT_OPT_ADAM, &j.dtypes);
    return j;
}

/* Zeros stand for 1 (schedule: whatever fits pp and vpp). */
struct layout_case {
    uint32_t layers, heads, kv_heads, ffn, experts, seq, batch, gpus;
    uint32_t tp, pp, vpp, cp, ep, dp, zero, zero_group, micro_batch;
    enum pt_schedule_kind schedule;
    bool sp, replicate_kv;
    const char *sentence; /* NULL: valid */
};

static const struct layout_case cases[] = {
    { .sentence = NULL },
    /* stages */
    { .layers = 30, .pp = 4 },
    { .layers = 80,
      .pp = 16,
      .vpp = 2,
      .batch = 16,
      .sentence = "80 layers / (PP16 x VP2) is not whole; valid VP: 1, 5" },
    { .layers = 80, .pp = 16, .vpp = 5, .batch = 16 },
    { .layers = 126, .pp = 8, .vpp = 8, .batch = 8 },
    { .layers = 80,
      .pp = 16,
      .vpp = 5,
      .batch = 24,
      .sentence =
          "multiples of PP16, there are 24; nearest: 16 or 32 (global batch 16 or 32)" },
    { .layers = 80,
      .pp = 16,
      .vpp = 5,
      .batch = 12,
      .sentence = "there are 12; nearest: 16 (global batch 16), or VP 1" },
    { .layers = 70, .pp = 12, .batch = 12 },
    { .layers = 4, .pp = 8, .sentence = "8 pieces of 4 layers; at most 6" },
    { .layers = 6, .pp = 8 },
    { .vpp = 2, .sentence = "with PP 1 only VP 1" },
    { .pp = 4,
      .vpp = 2,
      .schedule = PT_SCHEDULE_1F1B,
      .sentence = "schedule 1f1b has VP 1; VP is 2" },
    { .pp = 4,
      .schedule = PT_SCHEDULE_ZB_V,
      .sentence = "schedule zb-v has VP 2; VP is 1" },
    { .pp = 4, .vpp = 2, .schedule = PT_SCHEDULE_ZB_V },
    { .pp = 4, .schedule = PT_SCHEDULE_INTERLEAVED, .sentence = "VP of at least 2" },
    { .schedule = PT_SCHEDULE_GPIPE, .sentence = "needs PP of at least 2" },
    /* heads */
    { .heads = 52,
      .tp = 8,
      .gpus = 8,
      .sentence = "TP 8 does not divide 52 heads; valid TP: 1, 2, 4, 13, 26, 52" },
    { .heads = 52,
      .tp = 8,
      .gpus = 8,
      .ffn = 17920,
      .sentence = "52 (but kv heads or feed-forward size refuse 13, 26, 52)" },
    { .heads = 64,
      .kv_heads = 8,
      .tp = 16,
      .gpus = 16,
      .sentence = "TP 16 exceeds 8 kv heads; use TP 8, or --replicate-kv at a cost of" },
    { .heads = 64, .kv_heads = 8, .tp = 16, .gpus = 16, .replicate_kv = true },
    { .heads = 24,
      .kv_heads = 6,
      .tp = 4,
      .gpus = 4,
      .sentence = "TP 4 does not divide 6 kv heads; valid TP: 1, 2, 3, 6" },
    { .heads = 32,
      .ffn = 11010,
      .tp = 4,
      .gpus = 4,
      .sentence = "TP 4 does not divide the feed-forward size 11010; valid TP: 1, 2" },
    /* GPUs */
    { .tp = 2,
      .pp = 8,
      .gpus = 8,
      .sentence = "TP2 x PP8 x CP1 needs 16 GPUs, there are 8; TP2 x PP4 x CP1 fits" },
    { .tp = 2, .pp = 2, .dp = 4, .gpus = 8, .sentence = "DP2 fits" },
    { .tp = 16, .gpus = 8, .sentence = "TP x CP must be at most 8" },
    { .tp = 2, .gpus = 8 },
    { .dp = 0, .cp = 1048577, .sentence = "cp is 1048577" },
    { .tp = 32, .pp = 32, .dp = 4096, .gpus = 0, .batch = 4096, .sentence = "more than" },
    /* batch */
    { .batch = 24,
      .dp = 16,
      .sentence =
          "global batch 24 mod (micro-batch 1 x DP 16) = 8; nearest global batch: 16 or "
          "32, or DP 8, 12, 24" },
    { .batch = 4, .dp = 8, .sentence = "less than micro-batch 1 x DP 8 = 8" },
    { .batch = 4, .pp = 16 },
    /* sequence */
    { .seq = 10001,
      .cp = 8,
      .sentence = "multiple of 16, 2 x CP; nearest: 10000 or 10016" },
    { .seq = 10016, .cp = 8 },
    { .seq = 10, .cp = 8, .sentence = "nearest: 16" },
    { .seq = 1002,
      .tp = 4,
      .sp = true,
      .sentence = "multiple of 4, TP (sequence parallel); nearest: 1000 or 1004" },
    { .seq = 1002, .tp = 4 },
    { .seq = 48, .tp = 4, .cp = 4, .sp = true },
    { .seq = 24, .tp = 4, .cp = 4, .sp = true, .sentence = "multiple of 16" },
    { .heads = 30, .seq = 36, .tp = 3, .cp = 6, .sp = true },
    { .heads = 30,
      .seq = 18,
      .tp = 3,
      .cp = 6,
      .sp = true,
      .sentence = "multiple of 36" },
    /* experts */
    { .ep = 2, .dp = 2, .sentence = "the model has no experts" },
    { .experts = 64,
      .ep = 6,
      .dp = 6,
      .sentence = "EP 6 does not divide 64 experts; valid EP: 1, 2, 4, 8, 16, 32, 64" },
    { .experts = 64,
      .ep = 16,
      .dp = 8,
      .sentence = "DP8 x CP1 x TP1 = 8 ranks of a stage; valid EP: 1, 2, 4, 8" },
    { .experts = 64, .ep = 16, .dp = 8, .tp = 2 },
    /* ZeRO */
    { .zero = 4, .sentence = "ZeRO 4 does not exist" },
    { .zero = 1,
      .dp = 12,
      .zero_group = 8,
      .batch = 12,
      .sentence =
          "ZeRO group of 8 ranks does not divide DP12 x CP1 = 12; valid: 1, 2, 3, 4, 6, "
          "12" },
    { .zero = 1, .dp = 12, .zero_group = 4, .batch = 12 },
    { .zero = 3, .pp = 4 },
};

static uint32_t at_least_1(uint32_t n)
{
    return n > 0 ? n : 1;
}

static enum pt_status check(const struct layout_case *c, struct pt_error *err)
{
    struct pt_model m =
        gpt(c->layers > 0 ? c->layers : 32, c->heads > 0 ? c->heads : 32, 0);
    uint32_t dp = at_least_1(c->dp), pp = at_least_1(c->pp), vpp = at_least_1(c->vpp);
    struct pt_job j = job(c->seq > 0 ? c->seq : 2048, c->batch > 0 ? c->batch : dp * pp);
    struct pt_layout l = { .tp = at_least_1(c->tp),
                           .pp = pp,
                           .vpp = vpp,
                           .cp = at_least_1(c->cp),
                           .ep = at_least_1(c->ep),
                           .dp = dp,
                           .zero = c->zero,
                           .zero_group = c->zero_group,
                           .micro_batch = at_least_1(c->micro_batch),
                           .sequence_parallel = c->sp,
                           .replicate_kv = c->replicate_kv };

    m.kv_heads = c->kv_heads > 0 ? c->kv_heads : m.heads;
    if (c->ffn > 0)
        m.ffn = c->ffn;
    if (c->experts > 0) {
        m.experts = c->experts;
        m.topk = 2;
        m.moe_ffn = 512;
    }
    l.schedule = c->schedule != PT_SCHEDULE_NONE ? c->schedule
                 : pp == 1                       ? PT_SCHEDULE_NONE
                 : vpp > 1                       ? PT_SCHEDULE_INTERLEAVED
                                                 : PT_SCHEDULE_1F1B;
    return pt_layout_check(&m, &j, &l, c->gpus, err);
}

START_TEST(says_what_is_valid)
{
    const struct layout_case *c = &cases[_i];
    struct pt_error err = PT_ERROR_INIT;
    enum pt_status st = check(c, &err);

    ck_assert_msg(st == (c->sentence == NULL ? PT_OK : PT_USAGE), "%s", err.text);
    if (c->sentence != NULL)
        ck_assert_msg(strstr(err.text, c->sentence) != NULL, "'%s' lacks '%s'", err.text,
                      c->sentence);
    /* The search's fast path decides alike. */
    ck_assert_int_eq(check(c, NULL), st);
}
END_TEST

START_TEST(hand_made_chunks_may_be_uneven)
{
    struct pt_model m = gpt(61, 32, 32);
    struct pt_job j = job(2048, 16);
    struct pt_layout l = { .tp = 1,
                           .pp = 2,
                           .vpp = 8,
                           .cp = 1,
                           .ep = 1,
                           .dp = 1,
                           .micro_batch = 1,
                           .schedule = PT_SCHEDULE_INTERLEAVED };

    ck_assert_int_eq(pt_layout_check(&m, &j, &l, 2, NULL), PT_USAGE);
    l.uneven_chunks = true;
    ck_assert_int_eq(pt_layout_check(&m, &j, &l, 2, NULL), PT_OK);
}
END_TEST

static const struct {
    uint32_t layers, dense, pp, vpp;
    enum pt_schedule_kind schedule;
    bool slots;
    uint32_t want[8]; /* layers in model order */
} splits[] = {
    { 30, 30, 4, 1, PT_SCHEDULE_1F1B, false, { 8, 8, 7, 7 } },
    { 30, 30, 4, 1, PT_SCHEDULE_1F1B, true, { 7, 8, 8, 7 } },
    { 70, 70, 12, 1, PT_SCHEDULE_1F1B, true, { 5, 6, 6, 6, 6, 6, 6, 6 } },
    { 8, 8, 2, 2, PT_SCHEDULE_INTERLEAVED, false, { 2, 2, 2, 2 } },
    { 9, 9, 2, 2, PT_SCHEDULE_ZB_V, false, { 3, 2, 2, 2 } },
    { 6, 6, 8, 1, PT_SCHEDULE_1F1B, false, { 0, 1, 1, 1, 1, 1, 1, 0 } },
    { 7, 7, 1, 1, PT_SCHEDULE_NONE, true, { 7 } },
    { 10, 3, 4, 1, PT_SCHEDULE_1F1B, false, { 3, 3, 2, 2 } },
};

START_TEST(even_splits)
{
    struct pt_model m = gpt(splits[_i].layers, 8, 8);
    struct pt_layout l = { .pp = splits[_i].pp,
                           .vpp = splits[_i].vpp,
                           .schedule = splits[_i].schedule,
                           .recompute = PT_RECOMPUTE_FULL };
    struct pt_split split;
    uint32_t sum = 0, dense = 0, pieces = l.pp * l.vpp;

    if (splits[_i].dense < splits[_i].layers) {
        m.experts = 8;
        m.topk = 1;
        m.moe_ffn = 64;
        m.dense_layers = splits[_i].dense;
    }
    ck_assert_int_eq(pt_split_init(&split, l.pp, l.vpp, NULL), PT_OK);
    pt_split_even(&split, &m, &l, splits[_i].slots);
    for (uint32_t k = 0; k < pieces; k++) {
        const struct pt_chunk *c = &split.chunk[pt_split_order(&l, k)];
        uint32_t n = (uint32_t)c->layers[0] + c->layers[1];

        if (k < 8)
            ck_assert_uint_eq(n, splits[_i].want[k]);
        ck_assert_uint_eq(c->recomputed[0], c->layers[0]);
        ck_assert_uint_eq(c->recomputed[1], c->layers[1]);
        /* Kinds in order: no dense layer after a sparse one. */
        if (c->layers[PT_LAYER_DENSE] > 0)
            ck_assert_uint_eq(sum, dense);
        sum += n;
        dense += c->layers[PT_LAYER_DENSE];
    }
    ck_assert_uint_eq(sum, splits[_i].layers);
    ck_assert_uint_eq(dense, splits[_i].dense);
    pt_split_fini(&split);
}
END_TEST

START_TEST(the_v_runs_back)
{
    struct pt_layout l = { .pp = 4, .vpp = 2, .schedule = PT_SCHEDULE_ZB_V };
    static const uint32_t want[] = { 0, 1, 2, 3, 7, 6, 5, 4 };

    for (uint32_t k = 0; k < 8; k++)
        ck_assert_uint_eq(pt_split_order(&l, k), want[k]);
    l.schedule = PT_SCHEDULE_INTERLEAVED;
    for (uint32_t k = 0; k < 8; k++)
        ck_assert_uint_eq(pt_split_order(&l, k), k);
}
END_TEST

START_TEST(groups_and_micro_batches)
{
    struct pt_layout l = {
        .tp = 4, .pp = 2, .cp = 2, .dp = 8, .ep = 8, .micro_batch = 2, .zero = 1
    };
    struct pt_job j = job(2048, 128);

    ck_assert_uint_eq(pt_micro_batches(&j, &l), 8);
    j.global_batch = 120;
    ck_assert_uint_eq(pt_micro_batches(&j, &l), 0);
    ck_assert_uint_eq(pt_grad_group(&l, false), 16);
    ck_assert_uint_eq(pt_grad_group(&l, true), 8);
    ck_assert_uint_eq(pt_zero_group(&l, false), 16);
    l.zero_group = 4;
    ck_assert_uint_eq(pt_zero_group(&l, false), 4);
    l.zero = 0;
    ck_assert_uint_eq(pt_zero_group(&l, false), 1);
}
END_TEST

START_TEST(names_go_both_ways)
{
    struct pt_error err = PT_ERROR_INIT;
    enum pt_schedule_kind kind;
    enum pt_recompute mode;

    for (int i = 0; i < PT_N_SCHEDULES; i++) {
        ck_assert_int_eq(
            pt_schedule_parse(pt_schedule_name((enum pt_schedule_kind)i), &kind, &err),
            PT_OK);
        ck_assert_int_eq(kind, i);
    }
    for (int i = 0; i < PT_N_RECOMPUTES; i++) {
        ck_assert_int_eq(
            pt_recompute_parse(pt_recompute_name((enum pt_recompute)i), &mode, &err),
            PT_OK);
        ck_assert_int_eq(mode, i);
    }
    ck_assert_int_eq(pt_schedule_parse("interleaved-1F1B", &kind, &err), PT_OK);
    ck_assert_int_eq(kind, PT_SCHEDULE_INTERLEAVED);
    ck_assert_int_eq(pt_schedule_parse("2f2b", &kind, &err), PT_USAGE);
    ck_assert_msg(
        strstr(err.text, "'2f2b' is not a schedule; valid: none, gpipe, 1f1b") != NULL,
        "%s", err.text);
}
END_TEST

/* 16 bytes per parameter of mixed-precision Adam, and its relatives. */
static const struct {
    enum pt_precision precision;
    enum pt_optimizer optimizer;
    double bytes;
} policies[] = {
    { PT_BF16, PT_OPT_ADAM, 16 },     { PT_FP16, PT_OPT_ADAM, 16 },
    { PT_FP8, PT_OPT_ADAM, 16 },      { PT_FP32, PT_OPT_ADAM, 16 },
    { PT_BF16, PT_OPT_ADAM8BIT, 10 }, { PT_BF16, PT_OPT_SGD, 12 },
};

START_TEST(bytes_per_parameter)
{
    struct pt_dtypes d;

    pt_dtypes_default(policies[_i].precision, policies[_i].optimizer, &d);
    ck_assert_double_eq(d.weight + d.grad + d.master + d.moments, policies[_i].bytes);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("layout");
    TCase *t = tcase_create("layout");

    tcase_add_loop_test(t, says_what_is_valid, 0, N_ROWS(cases));
    tcase_add_test(t, hand_made_chunks_may_be_uneven);
    tcase_add_loop_test(t, even_splits, 0, N_ROWS(splits));
    tcase_add_test(t, the_v_runs_back);
    tcase_add_test(t, groups_and_micro_batches);
    tcase_add_test(t, names_go_both_ways);
    tcase_add_loop_test(t, bytes_per_parameter, 0, N_ROWS(policies));
    suite_add_tcase(s, t);
    return unit_run(s);
}
