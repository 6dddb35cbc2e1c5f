#include "config.h"

#include <math.h>
#include <string.h>

#include "libpt/calibration.h"
#include "planner/heap.h"
#include "planner/search.h"
#include "planner/top.h"
#include "tests/unit/unit.h"

static struct pt_setup setup;
static struct planner_space space;
static struct planner_options options;
static struct planner_result result;
static struct pt_error err;

static void fill_setup(void)
{
    char buf[PT_PROFILE_DIR_SIZE];
    const char *dir = pt_profile_dir(buf, sizeof(buf));
    struct pt_calibration *c = NULL;

    memset(&setup, 0, sizeof(setup));
    err = (struct pt_error)PT_ERROR_INIT;
    ck_assert_int_eq(pt_model_preset(dir, "gpt3-6.7B", &setup.model, &err), PT_OK);
    ck_assert_int_eq(pt_cluster_default(dir, "H100-80-SXM5", &setup.cluster, &err),
                     PT_OK);
    ck_assert_int_eq(pt_calibration_read(dir, NULL, PT_CALIBRATION_NONE, &c, &err),
                     PT_OK);
    pt_calibration_stack(c, "generic", &setup.stack, NULL);
    pt_calibration_device(c, setup.cluster.gpu.family, &setup.device, NULL);
    pt_calibration_network(c, setup.cluster.network, &setup.network, NULL);
    pt_calibration_free(c);
    setup.cluster.gpus = 16;
    setup.job.seq = 2048;
    setup.job.global_batch = 128;
    setup.job.precision = PT_BF16;
    setup.job.vocab_unit = 128;
    pt_dtypes_default(PT_BF16, PT_OPT_ADAM, &setup.job.dtypes);
    space = (struct planner_space){ .offload_frac = -1.0 };
    options = (struct planner_options){ .top = 1, .causal = true };
    memset(&result, 0, sizeof(result));
}

static void clear_result(void)
{
    planner_result_fini(&result);
}

static void pin(struct planner_list *list, uint32_t value)
{
    list->n = 1;
    list->value[0] = value;
}

/* Values that no layout satisfies, and what the sentence must hold. */
static const struct bad {
    uint32_t gpus, layers, heads, tp, pp, dp, micro_batch, zero, zero_max, batch;
    const char *text[3];
} bad[] = {
    /* gpus layers heads tp pp dp mb zero max batch */
    { 12,
      32,
      32,
      8,
      0,
      0,
      0,
      0,
      0,
      128,
      { "12 GPUs", "8 would leave 4 idle", "16 needed" } },
    { 16, 32, 52, 8, 0, 0, 0, 0, 0, 128, { "52 heads", "1, 2, 4, 13, 26, 52", NULL } },
    { 8, 32, 32, 2, 8, 0, 0, 0, 0, 128, { "needs 16 GPUs", "there are 8", "TP2 x PP4" } },
    { 16, 32, 32, 1, 1, 16, 1, 0, 0, 24, { "24 mod", "16 or 32", NULL } },
    { 16, 32, 32, 0, 4, 0, 0, 2, 1, 128, { "ZeRO 2", "PP4", "ZeRO 1" } },
    { 16, 32, 32, 2, 2, 2, 0, 0, 0, 128, { "uses 8 of 16", "DP4", NULL } },
};

START_TEST(no_valid_layout_names_the_numbers)
{
    const struct bad *b = &bad[_i];

    setup.cluster.gpus = b->gpus;
    setup.model.layers = b->layers;
    setup.model.heads = setup.model.kv_heads = b->heads;
    setup.job.global_batch = b->batch;
    space.zero_max_with_pp = b->zero_max;
    pin(&space.cp, 1);
    if (b->tp > 0)
        pin(&space.tp, b->tp);
    if (b->pp > 0)
        pin(&space.pp, b->pp);
    if (b->dp > 0)
        pin(&space.dp, b->dp);
    if (b->micro_batch > 0)
        pin(&space.micro_batch, b->micro_batch);
    if (b->zero > 0)
        pin(&space.zero, b->zero);
    ck_assert_int_eq(planner_search(&setup, &space, &options, &result, &err), PT_USAGE);
    for (int i = 0; i < 3 && b->text[i] != NULL; i++)
        ck_assert_msg(strstr(err.text, b->text[i]) != NULL, "'%s' lacks '%s'", err.text,
                      b->text[i]);
    ck_assert_uint_eq(result.n, 0);
}
END_TEST

START_TEST(top_plans_are_distinct_and_in_order)
{
    options.top = 20;
    ck_assert_int_eq(planner_search(&setup, &space, &options, &result, &err), PT_OK);
    ck_assert_uint_eq(result.n, 20);
    for (uint32_t i = 0; i < result.n; i++) {
        ck_assert(result.plan[i].memory.fits);
        for (uint32_t j = 0; j < i; j++) {
            ck_assert_double_le(result.plan[j].step.step_s,
                                result.plan[i].step.step_s * (1 + 1e-8));
            ck_assert_int_ne(
                planner_prefer(&result.plan[j].layout, &result.plan[i].layout), 0);
        }
    }
    ck_assert_double_eq(result.stats.gap, 0.0);
}
END_TEST

START_TEST(a_cut_search_claims_no_proof)
{
    setup.cluster.gpus = 4096;
    setup.job.global_batch = 4096;
    options.time_limit_s = 1e-4;
    ck_assert_int_eq(planner_search(&setup, &space, &options, &result, &err), PT_LIMIT);
    ck_assert(result.stats.time_limit);
    ck_assert(result.n == 0 || result.stats.gap > 0.0);
}
END_TEST

START_TEST(layers_need_not_divide)
{
    setup.model.layers = 30;
    pin(&space.pp, 4);
    pin(&space.schedule, PT_SCHEDULE_1F1B);
    ck_assert_int_eq(planner_search(&setup, &space, &options, &result, &err), PT_OK);
    ck_assert_uint_eq(result.plan[0].split.pp, 4);
}
END_TEST

START_TEST(slots_count_the_ends)
{
    setup.model.layers = 70;
    setup.cluster.gpus = 12;
    setup.job.global_batch = 48;
    pin(&space.pp, 12);
    pin(&space.schedule, PT_SCHEDULE_1F1B);
    space.embedding_slots = true;
    ck_assert_int_eq(planner_search(&setup, &space, &options, &result, &err), PT_OK);
    for (uint32_t s = 0; s < 12; s++)
        ck_assert_uint_eq(result.plan[0].split.chunk[s].layers[PT_LAYER_DENSE],
                          s == 0 || s == 11 ? 5 : 6);
}
END_TEST

START_TEST(full_alone_recomputes_every_layer)
{
    uint32_t layers = 0, recomputed = 0;

    pin(&space.recompute, PT_RECOMPUTE_FULL);
    pin(&space.pp, 2);
    ck_assert_int_eq(planner_search(&setup, &space, &options, &result, &err), PT_OK);
    for (uint32_t k = 0; k < result.plan[0].split.pp * result.plan[0].split.vpp; k++) {
        layers += result.plan[0].split.chunk[k].layers[PT_LAYER_DENSE];
        recomputed += result.plan[0].split.chunk[k].recomputed[PT_LAYER_DENSE];
    }
    ck_assert_uint_eq(layers, 32);
    ck_assert_uint_eq(recomputed, 32);
    ck_assert_int_eq(result.plan[0].layout.recompute, PT_RECOMPUTE_FULL);
}
END_TEST

START_TEST(pinned_offload_is_obeyed)
{
    space.offload = true;
    space.offload_frac = 0.5;
    ck_assert_int_eq(planner_search(&setup, &space, &options, &result, &err), PT_OK);
    for (uint32_t s = 0; s < result.plan[0].split.pp; s++)
        ck_assert_double_eq(result.plan[0].split.offload_frac[s], 0.5);
}
END_TEST

START_TEST(nothing_is_offloaded_without_need)
{
    space.offload = true;
    ck_assert_int_eq(planner_search(&setup, &space, &options, &result, &err), PT_OK);
    for (uint32_t s = 0; s < result.plan[0].split.pp; s++)
        ck_assert_double_eq(result.plan[0].split.offload_frac[s], 0.0);
}
END_TEST

START_TEST(too_small_says_what_is_missing)
{
    setup.cluster.mem_limit_bytes = 4e9;
    setup.cluster.gpus = 2;
    ck_assert_int_eq(planner_search(&setup, &space, &options, &result, &err),
                     PT_CAPACITY);
    ck_assert_double_gt(result.shortfall.needed_bytes, result.shortfall.usable_bytes);
    ck_assert_double_eq_tol(result.shortfall.usable_bytes, 4e9 * 0.97, 1.0);
    ck_assert_uint_ge(result.shortfall.memory.stages, 1);
}
END_TEST

START_TEST(heap_gives_least_first_and_ties_by_preference)
{
    struct planner_heap heap = { 0 };
    struct planner_candidate c;
    struct pt_layout l = {
        .tp = 1, .pp = 1, .vpp = 1, .cp = 1, .ep = 1, .dp = 1, .micro_batch = 1
    };
    double last = -1.0;
    uint32_t last_tp = 0;

    for (uint32_t i = 0; i < 500; i++) {
        l.tp = 1 + i * 7919 % 500;
        planner_pack(&l, (double)(i * 31 % 50), &c);
        ck_assert(planner_heap_push(&heap, &c));
    }
    ck_assert_uint_eq(planner_heap_prune(&heap, 39.0), 100);
    for (uint32_t i = 0; i < 400; i++) {
        ck_assert(planner_heap_pop(&heap, &c));
        ck_assert(c.bound_s > last || (c.bound_s == last && c.tp > last_tp));
        last = c.bound_s;
        last_tp = c.tp;
    }
    ck_assert(!planner_heap_pop(&heap, &c));
    planner_heap_fini(&heap);
}
END_TEST

START_TEST(layouts_survive_packing)
{
    struct pt_layout l = { .tp = 8,
                           .pp = 1024,
                           .vpp = 64,
                           .cp = 3,
                           .ep = 128,
                           .dp = 100000,
                           .sequence_parallel = true,
                           .replicate_kv = true,
                           .zero = 3,
                           .zero_group = 7,
                           .recompute = PT_RECOMPUTE_HALF,
                           .schedule = PT_SCHEDULE_ZB_AUTO,
                           .micro_batch = 70000 },
                     back;
    struct planner_candidate c;

    planner_pack(&l, 1.5, &c);
    planner_unpack(&c, &back);
    /* Field by field: a structure's padding has no value. */
#define SAME(field) ck_assert_uint_eq((unsigned)l.field, (unsigned)back.field)
    SAME(tp);
    SAME(pp);
    SAME(vpp);
    SAME(cp);
    SAME(ep);
    SAME(dp);
    SAME(sequence_parallel);
    SAME(replicate_kv);
    SAME(zero);
    SAME(zero_group);
    SAME(recompute);
    SAME(schedule);
    SAME(micro_batch);
#undef SAME
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("search");
    TCase *t = tcase_create("search");

    tcase_add_checked_fixture(t, fill_setup, clear_result);
    tcase_add_loop_test(t, no_valid_layout_names_the_numbers, 0, N_ROWS(bad));
    tcase_add_test(t, top_plans_are_distinct_and_in_order);
    tcase_add_test(t, a_cut_search_claims_no_proof);
    tcase_add_test(t, layers_need_not_divide);
    tcase_add_test(t, slots_count_the_ends);
    tcase_add_test(t, full_alone_recomputes_every_layer);
    tcase_add_test(t, pinned_offload_is_obeyed);
    tcase_add_test(t, nothing_is_offloaded_without_need);
    tcase_add_test(t, too_small_says_what_is_missing);
    tcase_add_test(t, heap_gives_least_first_and_ties_by_preference);
    tcase_add_test(t, layouts_survive_packing);
    suite_add_tcase(suite, t);
    return unit_run(suite);
}
