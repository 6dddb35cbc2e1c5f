/* Models: parameter counts of every preset, the synthesis rule, contradictions. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libpt/csv.h"
#include "libpt/hardware.h"
#include "libpt/model.h"
#include "tests/unit/unit.h"

static const char *profiles(void)
{
    const char *dir = getenv("PT_PROFILE_DIR");

    return dir != NULL ? dir : "profiles";
}

static struct pt_csv *table(const char *file)
{
    struct pt_error err = PT_ERROR_INIT;
    struct pt_csv *csv = NULL;
    char path[1024];

    snprintf(path, sizeof(path), "%s/%s", profiles(), file);
    ck_assert_msg(pt_csv_read(path, &csv, &err) == PT_OK, "%s", err.text);
    return csv;
}

static const char *cell(const struct pt_csv *csv, size_t row, const char *column)
{
    ck_assert_msg(pt_csv_column(csv, column) >= 0, "no column %s", column);
    return pt_csv_field(csv, row, pt_csv_column(csv, column));
}

START_TEST(every_preset_weighs_what_was_published)
{
    struct pt_csv *csv = table("models.csv");
    size_t exact = 0;

    ck_assert_uint_ge(pt_csv_rows(csv), 60);
    for (size_t i = 0; i < pt_csv_rows(csv); i++) {
        const char *name = cell(csv, i, "name");
        const char *published = cell(csv, i, "published_exact");
        struct pt_error err = PT_ERROR_INIT;
        struct pt_params params;
        struct pt_model m;

        ck_assert_msg(pt_model_preset(profiles(), name, &m, &err) == PT_OK, "%s: %s",
                      name, err.text);
        pt_model_params(&m, &params);
        ck_assert_msg(params.total == strtoull(cell(csv, i, "params_computed"), NULL, 10),
                      "%s: %llu, not %s", name, (unsigned long long)params.total,
                      cell(csv, i, "params_computed"));
        ck_assert_msg(params.active ==
                          strtoull(cell(csv, i, "active_params_computed"), NULL, 10),
                      "%s", name);
        /* mixtral-8x22B: the publisher's vocabulary differs between two of its configs.
         */
        if (published[0] != '\0' && strcmp(name, "mixtral-8x22B") != 0) {
            ck_assert_msg(params.total == strtoull(published, NULL, 10), "%s", name);
            exact++;
        }
    }
    ck_assert_uint_ge(exact, 70);
    pt_csv_free(csv);
}
END_TEST

static const struct {
    const char *typed, *preset;
} aliases[] = {
    { "llama2-7B", "llama2-7B" },
    { "LLAMA2-7b", "llama2-7B" },
    { "llama_2_7b", "llama2-7B" },
    { "meta-llama/Llama-2-7b-hf", "llama2-7B" },
    { "gpt3-175B", "gpt3-175B" },
    { "GPT3", "gpt3-175B" },
    { "gpt3-1.3b", "gpt3-1.3B" },
    { "gpt2", "gpt2-124M" },
    { "gpt2-xl", "gpt2-1.5B" },
    { "Qwen/Qwen2.5-7B", "qwen2.5-7B" },
    { "deepseek-v3", "deepseek-v3-671B" },
    { "mixtral", "mixtral-8x7B" },
};

START_TEST(a_preset_answers_to_its_common_names)
{
    struct pt_error err = PT_ERROR_INIT;
    struct pt_model m;

    ck_assert_msg(pt_model_preset(profiles(), aliases[_i].typed, &m, &err) == PT_OK, "%s",
                  err.text);
    ck_assert_str_eq(m.name, aliases[_i].preset);
}
END_TEST

START_TEST(an_unknown_preset_names_near_ones)
{
    struct pt_error err = PT_ERROR_INIT;
    struct pt_model m;

    ck_assert_int_eq(pt_model_preset(profiles(), "llama2-8B", &m, &err), PT_USAGE);
    ck_assert_ptr_nonnull(strstr(err.text, "llama2-7B"));
    ck_assert_ptr_nonnull(strstr(err.text, "llama2-8B"));
}
END_TEST

/* The rule is one formula; it meets 43 of the 48 rows exactly, and no row is off by 8%.
 */
START_TEST(synthesis_reproduces_the_reference_shapes)
{
    struct pt_csv *csv = table("shape_synth.csv");
    size_t same = 0;

    for (size_t i = 0; i < pt_csv_rows(csv); i++) {
        bool llama = strcmp(cell(csv, i, "style"), "llama") == 0;
        double target = atof(cell(csv, i, "target_B")) * 1e9, total;
        struct pt_error err = PT_ERROR_INIT;
        struct pt_params params;
        struct pt_model m;

        ck_assert_int_eq(pt_model_synthesise((uint64_t)llround(target),
                                             llama ? PT_STYLE_LLAMA : PT_STYLE_GPT, &m,
                                             &err),
                         PT_OK);
        pt_model_params(&m, &params);
        total = (double)params.total;
        ck_assert_msg(fabs(total / target - 1) < 0.08, "%g is %g", target, total);
        ck_assert_uint_eq(m.head_dim, target < 1e9 ? 64 : 128);
        ck_assert_uint_eq(m.hidden % (target < 5e9 ? 128 : 1024), 0);
        ck_assert_uint_eq(m.layers % 2, 0);
        if (m.hidden == (uint32_t)atoi(cell(csv, i, "hidden")) &&
            m.layers == (uint32_t)atoi(cell(csv, i, "layers"))) {
            ck_assert_uint_eq(m.ffn, (uint32_t)atoi(cell(csv, i, "ffn")));
            ck_assert_uint_eq(m.heads, (uint32_t)atoi(cell(csv, i, "heads")));
            ck_assert_uint_eq(m.vocab, (uint32_t)atoi(cell(csv, i, "vocab")));
            ck_assert_msg(fabs(total / 1e9 / atof(cell(csv, i, "params_B")) - 1) < 0.004,
                          "%g: %g", target, total);
            same++;
        }
    }
    ck_assert_uint_eq(pt_csv_rows(csv), 48);
    ck_assert_uint_ge(same, 43);
    pt_csv_free(csv);
}
END_TEST

START_TEST(ten_billion_is_48_layers_of_4096)
{
    struct pt_error err = PT_ERROR_INIT;
    struct pt_params params;
    struct pt_model m;

    ck_assert_int_eq(pt_model_synthesise(10000000000u, PT_STYLE_GPT, &m, &err), PT_OK);
    ck_assert_uint_eq(m.layers, 48);
    ck_assert_uint_eq(m.hidden, 4096);
    ck_assert_uint_eq(m.heads, 32);
    ck_assert_uint_eq(m.vocab, 51200);
    ck_assert(m.tied && m.bias && m.learned_positions && !m.gated);
    pt_model_params(&m, &params);
    ck_assert(fabs((double)params.total - 9.884e9) < 1e6);
    ck_assert_int_eq(pt_model_synthesise(1000, PT_STYLE_GPT, &m, &err), PT_USAGE);
}
END_TEST

static const struct pt_model sound = {
    .name = "test",
    .layers = 2,
    .hidden = 64,
    .ffn = 256,
    .heads = 4,
    .kv_heads = 4,
    .head_dim = 16,
    .vocab = 100,
    .max_seq = 32,
    .tied = true,
    .bias = true,
};

static const struct {
    size_t offset; /* of a uint32_t in struct pt_model */
    uint32_t value;
    const char *sentence;
} contradictions[] = {
    { offsetof(struct pt_model, kv_heads), 3,
      "4 heads are not a multiple of 3 kv heads; valid kv heads: 1, 2, 4" },
    { offsetof(struct pt_model, layers), 0, "layers is 0" },
    { offsetof(struct pt_model, vocab), 0, "vocabulary is 0" },
    { offsetof(struct pt_model, hidden), 4000000000u, "at most 16777216" },
    { offsetof(struct pt_model, layers), 5000, "5000 layers; at most 4096" },
    { offsetof(struct pt_model, ffn), 0, "dense layers of feed-forward size 0" },
    { offsetof(struct pt_model, topk), 2, "need a number of experts" },
    { offsetof(struct pt_model, experts), 8, "0 experts per token of 8 experts" },
    { offsetof(struct pt_model, kv_lora), 8, "needs head sizes" },
};

START_TEST(a_contradiction_is_a_sentence)
{
    struct pt_error err = PT_ERROR_INIT;
    struct pt_model m = sound;

    ck_assert_int_eq(pt_model_check(&m, &err), PT_OK);
    memcpy((char *)&m + contradictions[_i].offset, &contradictions[_i].value,
           sizeof(uint32_t));
    ck_assert_int_eq(pt_model_check(&m, &err), PT_USAGE);
    ck_assert_msg(strstr(err.text, contradictions[_i].sentence) != NULL, "%s", err.text);
}
END_TEST

START_TEST(huge_sizes_do_not_wrap)
{
    struct pt_error err = PT_ERROR_INIT;
    struct pt_model m = sound;

    m.layers = PT_MAX_LAYERS;
    m.hidden = m.ffn = m.heads = m.kv_heads = m.head_dim = m.vocab = 16777216;
    ck_assert_int_eq(pt_model_check(&m, &err), PT_USAGE);
    ck_assert_ptr_nonnull(strstr(err.text, "1e15"));
}
END_TEST

/* 2 (12 h^2 L + V h) per token plus 4 s^2 h L per sequence, halved when causal. */
START_TEST(flop_of_a_gpt)
{
    double h = 64, s = 32, linear = 2 * s * (2 * 12 * h * h + 100 * h);

    ck_assert_double_eq_tol(pt_model_flop(&sound, 32, false), linear + 2 * 4 * s * s * h,
                            1);
    ck_assert_double_eq_tol(pt_model_flop(&sound, 32, true), linear + 2 * 2 * s * s * h,
                            1);
}
END_TEST

START_TEST(vocabulary_is_padded)
{
    ck_assert_uint_eq(pt_vocab_padded(151669, 1, 4), 151672);
    ck_assert_uint_eq(pt_vocab_padded(151669, 0, 4), 151672);
    ck_assert_uint_eq(pt_vocab_padded(151669, 128, 4), 152064);
    ck_assert_uint_eq(pt_vocab_padded(50257, 128, 1), 50304);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("model");
    TCase *t = tcase_create("model");

    tcase_add_test(t, every_preset_weighs_what_was_published);
    tcase_add_loop_test(t, a_preset_answers_to_its_common_names, 0, N_ROWS(aliases));
    tcase_add_test(t, an_unknown_preset_names_near_ones);
    tcase_add_test(t, synthesis_reproduces_the_reference_shapes);
    tcase_add_test(t, ten_billion_is_48_layers_of_4096);
    tcase_add_loop_test(t, a_contradiction_is_a_sentence, 0, N_ROWS(contradictions));
    tcase_add_test(t, huge_sizes_do_not_wrap);
    tcase_add_test(t, flop_of_a_gpt);
    tcase_add_test(t, vocabulary_is_padded);
    suite_add_tcase(s, t);
    return unit_run(s);
}
