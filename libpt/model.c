/* What a decoder weighs and how much it computes.
 *
 * Parameters of one layer (h hidden, a heads, k key-value heads, d head size, f
 * feed-forward): attention   2 h a d + 2 h k d            (+ biases, + 2 d for norms of
 * query and key) MLP         2 h f, gated 3 h f           (+ biases) latent attention
 * (DeepSeek-V2, arXiv 2405.04434, section 2.1) h q + q + q a (n + r) + h (c + r) + c + c
 * a (n + v) + a v h mixture     h E router, E experts of 2 or 3 h f_e, shared experts as
 * one MLP of their sum Embedding V h, head V h unless tied, final norm. The presets'
 * published counts test this. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "libpt/model.h"
#include "libpt/units.h"

#define MAX_PARAMS UINT64_C(1000000000000000)
/* No dimension of a real decoder is near this; below it the sums here cannot wrap. */
#define MAX_DIM 16777216u

static uint64_t mlp_params(const struct pt_model *m, uint64_t ffn)
{
    uint64_t h = m->hidden, matrices = m->gated ? 3 : 2;

    if (ffn == 0)
        return 0;
    return matrices * h * ffn + (m->bias ? (matrices - 1) * ffn + h : 0);
}

static uint64_t attention_params(const struct pt_model *m)
{
    uint64_t h = m->hidden, a = m->heads, d = m->head_dim, kv = m->kv_heads * d;
    uint64_t sum;

    if (m->kv_lora > 0) {
        uint64_t c = m->kv_lora, q = m->q_lora, qk = m->qk_nope + m->qk_rope;

        sum = q > 0 ? h * q + q + q * a * qk : h * a * qk;
        return sum + h * (c + m->qk_rope) + c + c * a * (m->qk_nope + m->v_dim) +
               a * m->v_dim * h;
    }
    sum = 2 * h * a * d + 2 * h * kv;
    if (m->bias || m->qkv_bias)
        sum += a * d + 2 * kv;
    if (m->bias)
        sum += h;
    if (m->qk_norm)
        sum += 2 * d;
    return sum;
}

uint32_t pt_model_layers(const struct pt_model *model, enum pt_layer_kind kind)
{
    uint32_t dense = model->experts == 0 ? model->layers : model->dense_layers;

    return kind == PT_LAYER_DENSE ? dense : model->layers - dense;
}

uint64_t pt_vocab_padded(uint32_t vocab, uint32_t unit, uint32_t tp)
{
    uint64_t step = (uint64_t)(unit > 1 ? unit : 1) * (tp > 0 ? tp : 1);

    return (vocab + step - 1) / step * step;
}

/* Adds a signed correction without going below zero. */
static void correct(uint64_t *sum, int64_t extra)
{
    if (extra >= 0)
        *sum += (uint64_t)extra;
    else if ((uint64_t)-extra <= *sum)
        *sum -= (uint64_t)-extra;
    else
        *sum = 0;
}

void pt_model_params(const struct pt_model *model, struct pt_params *params)
{
    const struct pt_model *m = model;
    uint64_t h = m->hidden, norm = m->rmsnorm ? h : 2 * h, layer, moe, inactive;
    uint64_t n_dense = pt_model_layers(m, PT_LAYER_DENSE);
    uint64_t n_moe = pt_model_layers(m, PT_LAYER_MOE);

    memset(params, 0, sizeof(*params));
    params->attention = attention_params(m);
    params->norms = (m->norms > 0 ? m->norms : 2) * norm;
    /* A missing scale is a norm's; anything added is a product's. */
    correct(m->extra_layer_params < 0 ? &params->norms : &params->attention,
            m->extra_layer_params);
    if (n_dense > 0)
        params->dense_mlp = mlp_params(m, m->ffn);
    if (m->experts > 0) {
        params->router =
            h * m->experts + (m->router_bias ? m->experts : 0) + (m->shared_gate ? h : 0);
        params->expert = mlp_params(m, m->moe_ffn);
        params->shared = mlp_params(m, m->shared_ffn);
    }
    params->embedding = m->vocab * h;
    correct(&params->embedding, m->extra_params);
    if (m->learned_positions)
        params->positions = (m->position_rows > 0 ? m->position_rows : m->max_seq) * h;
    params->head = m->tied ? 0 : m->vocab * h;
    params->final_norm = norm;

    layer = params->attention + params->norms;
    moe = params->router + m->experts * params->expert + params->shared;
    params->total = n_dense * (layer + params->dense_mlp) + n_moe * (layer + moe) +
                    params->embedding + params->positions + params->head +
                    params->final_norm;
    inactive = n_moe * (m->experts - m->topk) * params->expert;
    params->active = params->total - (m->experts > 0 ? inactive : 0);
}

double pt_model_flop(const struct pt_model *model, uint32_t seq, bool causal)
{
    const struct pt_model *m = model;
    double s = seq, h = m->hidden, a = m->heads, matrices = m->gated ? 3 : 2;
    double n_dense = pt_model_layers(m, PT_LAYER_DENSE);
    double n_moe = pt_model_layers(m, PT_LAYER_MOE);
    double linear, qk = m->head_dim, v = m->head_dim, span = s, core, mlp;

    if (m->kv_lora > 0) {
        double q = m->q_lora, c = m->kv_lora;

        qk = (double)m->qk_nope + m->qk_rope;
        v = m->v_dim;
        linear = (q > 0 ? h * q + q * a * qk : h * a * qk) + h * (c + m->qk_rope) +
                 c * a * ((double)m->qk_nope + v) + a * v * h;
    } else {
        linear = 2 * h * a * m->head_dim + 2 * h * m->kv_heads * (double)m->head_dim;
    }
    /* Scores and context: 2 s (q + v) per token and head over the whole square. */
    core = 2 * span * a * (qk + v) * (causal ? 0.5 : 1.0);
    if (m->sliding_window_half && s > 128)
        core = 0.5 * core + 0.5 * 2 * 128 * a * (qk + v);
    mlp = n_dense * matrices * h * m->ffn +
          n_moe * (h * m->experts +
                   matrices * h * ((double)m->topk * m->moe_ffn + m->shared_ffn));
    return s * ((double)m->layers * (2 * linear + core) + 2 * mlp + 2 * h * m->vocab);
}

static enum pt_status check_dims(const struct pt_model *m, struct pt_error *err)
{
    const struct {
        const char *name;
        uint32_t value, least;
    } dims[] = {
        { "layers", m->layers, 1 },
        { "hidden", m->hidden, 1 },
        { "heads", m->heads, 1 },
        { "kv heads", m->kv_heads, 1 },
        { "head size", m->head_dim, 1 },
        { "vocabulary", m->vocab, 1 },
        { "sequence length", m->max_seq, 1 },
        { "feed-forward size", m->ffn, 0 },
        { "experts", m->experts, 0 },
        { "expert feed-forward size", m->moe_ffn, 0 },
        { "shared feed-forward size", m->shared_ffn, 0 },
        { "query rank", m->q_lora, 0 },
        { "key-value rank", m->kv_lora, 0 },
        { "non-rotary head size", m->qk_nope, 0 },
        { "rotary head size", m->qk_rope, 0 },
        { "value head size", m->v_dim, 0 },
        { "position rows", m->position_rows, 0 },
        { "norms per layer", m->norms, 0 },
    };

    for (size_t i = 0; i < sizeof(dims) / sizeof(dims[0]); i++) {
        if (dims[i].value < dims[i].least)
            return pt_fail(err, PT_USAGE, NULL, 0,
                           "the model's %s is 0; at least %" PRIu32 " is needed",
                           dims[i].name, dims[i].least);
        if (dims[i].value > MAX_DIM)
            return pt_fail(err, PT_USAGE, NULL, 0,
                           "the model's %s is %" PRIu32 "; at most %u is supported",
                           dims[i].name, dims[i].value, MAX_DIM);
    }
    return PT_OK;
}

/* The divisors of n, "1, 2, 4 ...", for the sentence that offers valid values. */
static void list_divisors(char *buf, size_t size, uint32_t n)
{
    size_t used = 0;

    buf[0] = '\0';
    for (uint32_t d = 1; d <= n && used + 16 < size; d++)
        if (n % d == 0)
            used += (size_t)snprintf(buf + used, size - used, "%s%" PRIu32,
                                     used > 0 ? ", " : "", d);
}

static enum pt_status check_moe(const struct pt_model *m, struct pt_error *err)
{
    if (m->experts == 0) {
        if (m->topk > 0 || m->moe_ffn > 0 || m->shared_ffn > 0)
            return pt_fail(err, PT_USAGE, NULL, 0,
                           "experts per token %" PRIu32 ", expert size %" PRIu32
                           " and shared size %" PRIu32 " need a number of experts",
                           m->topk, m->moe_ffn, m->shared_ffn);
        return PT_OK;
    }
    if (m->topk < 1 || m->topk > m->experts)
        return pt_fail(err, PT_USAGE, NULL, 0,
                       "%" PRIu32 " experts per token of %" PRIu32
                       " experts; between 1 and %" PRIu32 " are possible",
                       m->topk, m->experts, m->experts);
    if (m->moe_ffn == 0)
        return pt_fail(err, PT_USAGE, NULL, 0,
                       "%" PRIu32 " experts of feed-forward size 0", m->experts);
    if (m->dense_layers > m->layers)
        return pt_fail(err, PT_USAGE, NULL, 0,
                       "%" PRIu32 " dense layers of %" PRIu32 " layers", m->dense_layers,
                       m->layers);
    return PT_OK;
}

/* An upper estimate in floating point, before whole numbers could wrap. */
static double estimate(const struct pt_model *m)
{
    double h = m->hidden, widest = m->kv_lora > 0
                                       ? (double)m->q_lora + m->kv_lora +
                                             (double)m->qk_nope + m->qk_rope + m->v_dim
                                       : m->head_dim;
    double attention = 4 * h * m->heads * widest + h * ((double)m->q_lora + m->kv_lora) +
                       ((double)m->q_lora + m->kv_lora) * m->heads * widest;
    double mlp =
        3 * h *
        ((double)m->ffn + (double)m->experts * m->moe_ffn + m->shared_ffn + m->experts);

    return m->layers * (attention + mlp + 16 * h) + 2 * h * m->vocab +
           h * ((double)m->position_rows + m->max_seq);
}

enum pt_status pt_model_check(const struct pt_model *model, struct pt_error *err)
{
    const struct pt_model *m = model;
    struct pt_params params;
    enum pt_status st = check_dims(m, err);
    char divisors[128];

    if (st != PT_OK)
        return st;
    if (m->layers > PT_MAX_LAYERS)
        return pt_fail(err, PT_USAGE, NULL, 0,
                       "%" PRIu32 " layers; at most %d are supported", m->layers,
                       PT_MAX_LAYERS);
    if (m->heads % m->kv_heads != 0) {
        list_divisors(divisors, sizeof(divisors), m->heads);
        return pt_fail(err, PT_USAGE, NULL, 0,
                       "%" PRIu32 " heads are not a multiple of %" PRIu32
                       " kv heads; valid kv heads: %s",
                       m->heads, m->kv_heads, divisors);
    }
    if (m->kv_lora > 0 && (m->qk_nope == 0 || m->v_dim == 0))
        return pt_fail(err, PT_USAGE, NULL, 0,
                       "latent attention of rank %" PRIu32
                       " needs head sizes for keys and values",
                       m->kv_lora);
    st = check_moe(m, err);
    if (st != PT_OK)
        return st;
    if (pt_model_layers(m, PT_LAYER_DENSE) > 0 && m->ffn == 0)
        return pt_fail(err, PT_USAGE, NULL, 0,
                       "%" PRIu32 " dense layers of feed-forward size 0",
                       pt_model_layers(m, PT_LAYER_DENSE));
    if (m->extra_params > (int64_t)1 << 40 || m->extra_layer_params > (int64_t)1 << 40 ||
        m->extra_params < -((int64_t)1 << 40) ||
        m->extra_layer_params < -((int64_t)1 << 40))
        return pt_fail(err, PT_USAGE, NULL, 0,
                       "the model's extra parameters (%" PRId64 " per layer, %" PRId64
                       " at the ends) are beyond 2^40",
                       m->extra_layer_params, m->extra_params);
    if (estimate(m) > 4e15)
        return pt_fail(err, PT_USAGE, NULL, 0,
                       "the model has about %.3g parameters; at "
                       "most 1e15 are supported",
                       estimate(m));
    pt_model_params(m, &params);
    if (params.total > MAX_PARAMS)
        return pt_fail(err, PT_USAGE, NULL, 0,
                       "the model has %" PRIu64 " parameters; at most 1e15 are supported",
                       params.total);
    return PT_OK;
}
