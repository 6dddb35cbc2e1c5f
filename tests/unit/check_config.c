/* Hugging Face configs: each weighs what the preset of the same model does, to the
 * parameter. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libpt/model.h"
#include "tests/unit/unit.h"

static const struct {
    const char *file, *preset;
} files[] = {
    { "gpt2", "gpt2-124M" },
    { "gpt2-xl", "gpt2-1.5B" },
    { "opt-350m", "opt-350M" },
    { "opt-6.7b", "opt-6.7B" },
    { "pythia-6.9b", "pythia-6.9b" },
    { "llama-1-13b", "llama1-13B" },
    { "llama-2-7b", "llama2-7B" },
    { "llama-3-8b", "llama3-8B" },
    { "llama-3.2-1b", "llama3.2-1B" },
    { "mistral-7b-v0.1", "mistral-7B-v0.1" },
    { "qwen2-7b", "qwen2-7B" },
    { "qwen2.5-0.5b", "qwen2.5-0.5B" },
    { "qwen2-57b-a14b", "qwen2-57B-A14B" },
    { "qwen3-8b", "qwen3-8B" },
    { "qwen3-30b-a3b", "qwen3-30B-A3B" },
    { "mixtral-8x7b", "mixtral-8x7B" },
    { "deepseek-v2-lite", "deepseek-v2-lite-16B" },
    { "deepseek-v3", "deepseek-v3-671B" },
};

START_TEST(a_config_weighs_what_its_preset_does)
{
    const char *top = getenv("top_srcdir"), *dir = getenv("PT_PROFILE_DIR");
    struct pt_error err = PT_ERROR_INIT;
    struct pt_model config, preset;
    struct pt_params a, b;
    char path[1024];

    snprintf(path, sizeof(path), "%s/tests/data/config/%s.json", top != NULL ? top : ".",
             files[_i].file);
    ck_assert_msg(pt_model_config(path, &config, &err) == PT_OK, "%s: %s", path,
                  err.text);
    ck_assert_msg(pt_model_preset(dir != NULL ? dir : "profiles", files[_i].preset,
                                  &preset, &err) == PT_OK,
                  "%s", err.text);
    pt_model_params(&config, &a);
    pt_model_params(&preset, &b);
    ck_assert_uint_eq(a.total, b.total);
    ck_assert_uint_eq(a.active, b.active);
    ck_assert_uint_eq(config.layers, preset.layers);
    ck_assert_uint_eq(config.kv_heads, preset.kv_heads);
    ck_assert_uint_eq(config.head_dim, preset.head_dim);
    ck_assert_uint_eq(config.dense_layers, preset.dense_layers);
    ck_assert_int_eq(config.gated, preset.gated);
    ck_assert_int_eq(config.learned_positions, preset.learned_positions);
}
END_TEST

#define LLAMA                                                                            \
    "\"model_type\":\"llama\",\"num_hidden_layers\":2,\"hidden_size\":64,"               \
    "\"intermediate_size\":128,\"vocab_size\":100"

static const struct {
    const char *text, *sentence;
} bad[] = {
    { "", "" },
    { "[]", "" },
    { "{}", "model_type" },
    { "{\"model_type\": 7}", "model_type" },
    { "{\"model_type\": \"bert\"}",
      "model_type 'bert' is not supported; supported: gpt2" },
    { "{" LLAMA "}", "num_attention_heads" },
    { "{" LLAMA ",\"num_attention_heads\":3}", "64 is not a multiple of 3 heads" },
    { "{" LLAMA ",\"num_attention_heads\":0}", "num_attention_heads" },
    { "{" LLAMA ",\"num_attention_heads\":-4}", "num_attention_heads" },
    { "{" LLAMA ",\"num_attention_heads\":4.5}", "num_attention_heads" },
    { "{" LLAMA ",\"num_attention_heads\":\"4\"}", "num_attention_heads" },
    { "{" LLAMA ",\"num_attention_heads\":1e30}", "num_attention_heads" },
    { "{" LLAMA ",\"num_attention_heads\":4,\"num_key_value_heads\":3}",
      "4 heads are not a multiple of 3 kv heads" },
    { "{" LLAMA ",\"num_attention_heads\":4,\"num_experts\":8}", "num_experts_per_tok" },
    { "{" LLAMA ",\"num_attention_heads\":4,\"num_experts\":8,\"num_experts_per_tok\":9}",
      "9 experts per token of 8" },
    { "{" LLAMA ",\"num_attention_heads\":4,\"num_experts\":8,\"num_experts_per_tok\":2,"
      "\"decoder_sparse_step\":2}",
      "decoder_sparse_step 2" },
    { "{" LLAMA ",\"num_attention_heads\":4,\"num_experts\":8,\"num_experts_per_tok\":2,"
      "\"n_shared_experts\":100000}",
      "n_shared_experts is 100000" },
    { "{" LLAMA ",\"num_attention_heads\":4,\"tie_word_embeddings\":\"yes\"}",
      "tie_word_embeddings" },
    { "{" LLAMA ",\"num_attention_heads\":4,\"num_attention_heads\":4}", "" },
    { "{" LLAMA ",\"num_attention_heads\":4} x", "" },
    { "{\"model_type\":\"gpt2\",\"n_layer\":5000,\"n_embd\":64,\"n_head\":4,\"vocab_"
      "size\":9}",
      "5000 layers; at most 4096" },
    { "{\"model_type\":\"gpt2\",\"n_layer\":4000,\"n_embd\":4194304,\"n_head\":4,"
      "\"vocab_size\":1000}",
      "1e15" },
    { "{\"model_type\":\"deepseek_v3\",\"num_hidden_layers\":2,\"hidden_size\":64,"
      "\"intermediate_size\":128,\"vocab_size\":100,\"num_attention_heads\":4}",
      "kv_lora_rank" },
};

START_TEST(a_bad_config_is_a_sentence)
{
    struct pt_error err = PT_ERROR_INIT;
    struct pt_model m;
    enum pt_status st =
        pt_model_config_parse("c.json", bad[_i].text, strlen(bad[_i].text), &m, &err);

    ck_assert_msg(st == PT_INPUT || st == PT_USAGE, "%s", bad[_i].text);
    ck_assert_str_ne(err.text, "");
    ck_assert_msg(strstr(err.text, bad[_i].sentence) != NULL ||
                      strstr(err.where, bad[_i].sentence) != NULL,
                  "%s: '%s' '%s' lacks '%s'", bad[_i].text, err.where, err.text,
                  bad[_i].sentence);
}
END_TEST

START_TEST(unusual_but_good)
{
    static const char text[] = "{\"text_config\": {" LLAMA
                               ",\"num_attention_heads\":4,\"attention_bias\":true}}";
    struct pt_error err = PT_ERROR_INIT;
    struct pt_params params;
    struct pt_model m;

    ck_assert_msg(pt_model_config_parse("c.json", text, strlen(text), &m, &err) == PT_OK,
                  "%s", err.text);
    pt_model_params(&m, &params);
    /* q, k, v and output biases: 4 x 64. */
    ck_assert_uint_eq(params.attention, 4 * 64 * 64 + 4 * 64);
    ck_assert_int_eq(pt_model_config("/nonexistent/config.json", &m, &err), PT_INPUT);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("config");
    TCase *t = tcase_create("config.json");

    tcase_add_loop_test(t, a_config_weighs_what_its_preset_does, 0, N_ROWS(files));
    tcase_add_loop_test(t, a_bad_config_is_a_sentence, 0, N_ROWS(bad));
    tcase_add_test(t, unusual_but_good);
    suite_add_tcase(s, t);
    return unit_run(s);
}
