/* A Hugging Face config.json: the shapes of GPT-2, GPT-NeoX, OPT, Llama, Mistral, Qwen2,
 * Qwen3, their mixtures, Mixtral and DeepSeek-V2/V3. Keys that a family leaves out have
 * the defaults of its configuration class in transformers. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "libpt/json.h"
#include "libpt/model.h"
#include "libpt/names.h"

#define MAX_SIZE (1u << 24)

struct config {
    const struct pt_json *doc;
    struct pt_error *err;
    enum pt_status st; /* the first failure: later reads do nothing */
};

static bool has(struct config *c, const char *key)
{
    return pt_json_has(c->doc, key);
}

/* A size that may be absent: *value stays. */
static void size_or(struct config *c, const char *key, uint32_t *value)
{
    uint64_t v = *value;

    if (c->st != PT_OK)
        return;
    c->st = pt_json_u64_or(c->doc, key, 0, MAX_SIZE, &v, c->err);
    *value = (uint32_t)v;
}

static void size(struct config *c, const char *key, uint32_t *value)
{
    uint64_t v = 0;

    if (c->st != PT_OK)
        return;
    c->st = pt_json_u64(c->doc, key, 1, MAX_SIZE, &v, c->err);
    *value = (uint32_t)v;
}

static void flag_or(struct config *c, const char *key, bool *value)
{
    if (c->st == PT_OK)
        c->st = pt_json_bool_or(c->doc, key, value, c->err);
}

/* n_layer, n_embd, n_head, n_inner (4 n_embd), n_positions. */
static void read_gpt2(struct config *c, struct pt_model *m)
{
    size(c, "n_layer", &m->layers);
    size(c, "n_embd", &m->hidden);
    size(c, "n_head", &m->heads);
    size(c, "vocab_size", &m->vocab);
    m->ffn = 4 * m->hidden;
    size_or(c, "n_inner", &m->ffn);
    m->max_seq = 1024;
    size_or(c, "n_ctx", &m->max_seq);
    size_or(c, "n_positions", &m->max_seq);
    m->kv_heads = m->heads;
    m->learned_positions = m->bias = m->tied = true;
    flag_or(c, "tie_word_embeddings", &m->tied);
    m->position_rows = m->max_seq;
}

static void read_common(struct config *c, struct pt_model *m)
{
    size(c, "num_hidden_layers", &m->layers);
    size(c, "hidden_size", &m->hidden);
    size(c, "num_attention_heads", &m->heads);
    size(c, "vocab_size", &m->vocab);
    m->max_seq = 2048;
    size_or(c, "max_position_embeddings", &m->max_seq);
    flag_or(c, "tie_word_embeddings", &m->tied);
}

static void read_opt(struct config *c, struct pt_model *m)
{
    uint32_t projection;

    m->tied = true;
    read_common(c, m);
    m->ffn = 4 * m->hidden;
    size_or(c, "ffn_dim", &m->ffn);
    m->kv_heads = m->heads;
    m->learned_positions = m->bias = true;
    m->position_rows = m->max_seq + 2; /* OPTLearnedPositionalEmbedding's offset */
    projection = m->hidden;
    size_or(c, "word_embed_proj_dim", &projection);
    if (c->st == PT_OK && projection != m->hidden)
        m->extra_params = ((int64_t)projection - m->hidden) * m->vocab +
                          2 * (int64_t)projection * m->hidden - 2 * (int64_t)m->hidden;
}

static void read_neox(struct config *c, struct pt_model *m)
{
    read_common(c, m);
    size(c, "intermediate_size", &m->ffn);
    m->kv_heads = m->heads;
    m->bias = true;
}

/* Every fixed-size mixture names these one way or the other. */
static void read_experts(struct config *c, struct pt_model *m)
{
    uint32_t shared = 0;

    size_or(c, "num_local_experts", &m->experts);
    size_or(c, "num_experts", &m->experts);
    size_or(c, "n_routed_experts", &m->experts);
    if (m->experts == 0)
        return;
    size(c, "num_experts_per_tok", &m->topk);
    m->moe_ffn = m->ffn;
    size_or(c, "moe_intermediate_size", &m->moe_ffn);
    size_or(c, "n_shared_experts", &shared);
    if (c->st == PT_OK && shared > 1024)
        c->st =
            pt_fail(c->err, PT_INPUT, pt_json_where(c->doc), 0,
                    "n_shared_experts is %" PRIu32 "; at most 1024 is supported", shared);
    else
        m->shared_ffn = shared * m->moe_ffn;
    size_or(c, "shared_expert_intermediate_size", &m->shared_ffn);
    size_or(c, "first_k_dense_replace", &m->dense_layers);
}

/* Layers that are dense between the sparse ones cannot be told by one number. */
static void check_sparse_step(struct config *c)
{
    uint32_t step = 1, frequency = 1;

    size_or(c, "decoder_sparse_step", &step);
    size_or(c, "moe_layer_freq", &frequency);
    if (c->st == PT_OK && (step != 1 || frequency != 1))
        c->st = pt_fail(c->err, PT_INPUT, pt_json_where(c->doc), 0,
                        "decoder_sparse_step %" PRIu32 ", moe_layer_freq %" PRIu32
                        ": only mixtures in every layer after the first dense ones are "
                        "supported (both 1)",
                        step, frequency);
}

static void read_llama(struct config *c, struct pt_model *m, const char *type)
{
    bool qwen2 = strncmp(type, "qwen2", 5) == 0, qwen3 = strncmp(type, "qwen3", 5) == 0;
    bool attention_bias = false, mlp_bias = false;

    read_common(c, m);
    size(c, "intermediate_size", &m->ffn);
    m->kv_heads = m->heads;
    size_or(c, "num_key_value_heads", &m->kv_heads);
    m->gated = m->rmsnorm = true;
    m->qkv_bias = qwen2;
    m->qk_norm = qwen3;
    size_or(c, "head_dim", &m->head_dim);
    flag_or(c, "attention_bias", &attention_bias);
    flag_or(c, "mlp_bias", &mlp_bias);
    if (attention_bias && mlp_bias) {
        m->bias = true;
    } else if (attention_bias) {
        m->qkv_bias = true;
        m->extra_layer_params += m->hidden; /* of the output projection */
    } else if (mlp_bias) {
        m->extra_layer_params += 2 * (int64_t)m->ffn + m->hidden;
    }
    read_experts(c, m);
    check_sparse_step(c);
    m->shared_gate = qwen2 && m->shared_ffn > 0;
}

static void read_deepseek(struct config *c, struct pt_model *m)
{
    const char *method = "";

    read_llama(c, m, "deepseek");
    size_or(c, "q_lora_rank", &m->q_lora);
    size(c, "kv_lora_rank", &m->kv_lora);
    size(c, "qk_nope_head_dim", &m->qk_nope);
    size(c, "qk_rope_head_dim", &m->qk_rope);
    size(c, "v_head_dim", &m->v_dim);
    m->head_dim = m->qk_nope + m->qk_rope;
    if (c->st == PT_OK)
        c->st = pt_json_string_or(c->doc, "topk_method", &method, c->err);
    m->router_bias = strcmp(method, "noaux_tc") == 0;
}

static const char *const gpt2_types[] = { "gpt2", NULL };
static const char *const llama_types[] = { "llama",     "mistral",   "mixtral",
                                           "qwen2",     "qwen2_moe", "qwen3",
                                           "qwen3_moe", "internlm2", "baichuan",
                                           "yi",        NULL };
static const char *const deepseek_types[] = { "deepseek_v2", "deepseek_v3", NULL };

static bool among(const char *text, const char *const *list)
{
    for (; *list != NULL; list++)
        if (strcmp(text, *list) == 0)
            return true;
    return false;
}

static void read_model(struct config *c, struct pt_model *m)
{
    const char *type = "";

    c->st = pt_json_string(c->doc, "model_type", &type, c->err);
    if (c->st != PT_OK)
        return;
    if (among(type, gpt2_types))
        read_gpt2(c, m);
    else if (strcmp(type, "opt") == 0)
        read_opt(c, m);
    else if (strcmp(type, "gpt_neox") == 0)
        read_neox(c, m);
    else if (among(type, deepseek_types))
        read_deepseek(c, m);
    else if (among(type, llama_types))
        read_llama(c, m, type);
    else
        c->st =
            pt_fail(c->err, PT_INPUT, pt_json_where(c->doc), 0,
                    "model_type '%.40s' is not supported; supported: gpt2, opt, "
                    "gpt_neox, llama, mistral, mixtral, qwen2, qwen2_moe, qwen3, "
                    "qwen3_moe, internlm2, baichuan, yi, deepseek_v2, deepseek_v3; or "
                    "give --layers, --hidden, --heads ...",
                    type);
    if (c->st != PT_OK || m->head_dim > 0)
        return;
    if (m->hidden % m->heads != 0) {
        c->st = pt_fail(c->err, PT_INPUT, pt_json_where(c->doc), 0,
                        "hidden size %" PRIu32 " is not a multiple of %" PRIu32
                        " heads and no head_dim is given",
                        m->hidden, m->heads);
        return;
    }
    m->head_dim = m->hidden / m->heads;
}

/* "models/Llama-2-7b-hf/config.json" is called "Llama-2-7b-hf". */
static void name_model(const char *path, struct pt_model *m)
{
    const char *end = strrchr(path, '/'), *start;

    if (end == NULL || end == path || strcmp(end, "/config.json") != 0) {
        snprintf(m->name, sizeof(m->name), "%s", end != NULL ? end + 1 : path);
    } else {
        for (start = end; start > path && start[-1] != '/'; start--)
            ;
        snprintf(m->name, sizeof(m->name), "%.*s", (int)(end - start), start);
    }
    snprintf(m->source, sizeof(m->source), "%s", path);
}

static enum pt_status read_doc(const struct pt_json *doc, const char *path,
                               struct pt_model *model, struct pt_error *err)
{
    struct config c = { doc, err, PT_OK };
    enum pt_status st;

    memset(model, 0, sizeof(*model));
    name_model(path, model);
    /* Models that see and hear keep the decoder inside. */
    if (has(&c, "text_config") && !has(&c, "hidden_size")) {
        st = pt_json_get(doc, "text_config", &c.doc, err);
        if (st != PT_OK)
            return st;
    }
    read_model(&c, model);
    if (c.st != PT_OK)
        return c.st;
    st = pt_model_check(model, err);
    return st == PT_USAGE ? PT_INPUT : st;
}

enum pt_status pt_model_config(const char *path, struct pt_model *model,
                               struct pt_error *err)
{
    struct pt_json *doc = NULL;
    enum pt_status st = pt_json_read(path, &doc, err);

    if (st == PT_OK)
        st = read_doc(doc, path, model, err);
    pt_json_free(doc);
    return st;
}

enum pt_status pt_model_config_parse(const char *where, const char *text, size_t len,
                                     struct pt_model *model, struct pt_error *err)
{
    struct pt_json *doc = NULL;
    enum pt_status st = pt_json_parse(where, text, len, &doc, err);

    if (st == PT_OK)
        st = read_doc(doc, where, model, err);
    pt_json_free(doc);
    return st;
}
