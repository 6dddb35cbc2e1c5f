/* From the command line to a request: model and hardware. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "libpt/names.h"
#include "libpt/units.h"
#include "planner/options.h"

#define SMALLEST_PARAMS 10000000u

enum pt_status planner_calibration_open(const char *what, const char *profile_dir,
                                        struct pt_calibration **calibration,
                                        struct pt_error *err)
{
    if (strcmp(what, "none") == 0)
        return pt_calibration_read(profile_dir, NULL, PT_CALIBRATION_NONE, calibration,
                                   err);
    return pt_calibration_read(profile_dir, strcmp(what, "default") == 0 ? NULL : what,
                               PT_CALIBRATION_DEFAULT, calibration, err);
}

/* --- the model --- */

/* Explicit sizes, over whatever the model had. */
static void override_sizes(struct pt_model *m, const struct planner_given *g)
{
    const struct {
        bool given;
        uint64_t value;
        uint32_t *field;
    } sizes[] = {
        { g->layers_given, g->layers, &m->layers },
        { g->hidden_given, g->hidden, &m->hidden },
        { g->ffn_given, g->ffn, &m->ffn },
        { g->heads_given, g->heads, &m->heads },
        { g->kv_heads_given, g->kv_heads, &m->kv_heads },
        { g->head_dim_given, g->head_dim, &m->head_dim },
        { g->vocab_given, g->vocab, &m->vocab },
        { g->experts_given, g->experts, &m->experts },
        { g->topk_given, g->topk, &m->topk },
        { g->moe_ffn_given, g->moe_ffn, &m->moe_ffn },
        { g->shared_ffn_given, g->shared_ffn, &m->shared_ffn },
        { g->dense_layers_given, g->dense_layers, &m->dense_layers },
    };

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        if (sizes[i].given)
            *sizes[i].field = (uint32_t)sizes[i].value;
    if (g->gated_given)
        m->gated = g->gated;
    if (g->tied_given)
        m->tied = g->tied;
    if (g->bias_given)
        m->bias = g->bias;
    if (g->rmsnorm_given)
        m->rmsnorm = g->rmsnorm;
}

/* What follows from the sizes that were given and was not given itself. */
static enum pt_status derive_sizes(struct pt_model *m, const struct planner_given *g,
                                   bool explicit_shape, struct pt_error *err)
{
    bool latent = m->kv_lora > 0;

    if ((g->heads_given || explicit_shape) && !g->kv_heads_given)
        m->kv_heads = m->heads;
    if ((g->heads_given || g->hidden_given) && !g->head_dim_given && !latent) {
        if (m->heads == 0 || m->hidden % m->heads != 0)
            return pt_fail(err, PT_USAGE, NULL, 0,
                           "hidden size %" PRIu32 " is not a "
                           "multiple of %" PRIu32 " heads; give --head-dim, or a hidden "
                           "size of %" PRIu32,
                           m->hidden, m->heads,
                           m->heads > 0 ? (m->hidden / m->heads + 1) * m->heads : 0);
        m->head_dim = m->hidden / m->heads;
    }
    if ((g->hidden_given || g->gated_given) && !g->ffn_given && m->hidden <= 16777216)
        m->ffn = m->gated ? (8 * m->hidden / 3 + 255) / 256 * 256 : 4 * m->hidden;
    if (g->experts_given && m->experts > 0) {
        if (!g->topk_given && m->topk == 0)
            m->topk = m->experts < 2 ? m->experts : 2;
        if (!g->moe_ffn_given && m->moe_ffn == 0)
            m->moe_ffn = m->ffn;
    } else if (g->experts_given) {
        m->topk = m->moe_ffn = m->shared_ffn = m->dense_layers = 0;
    }
    return PT_OK;
}

/* GPT-2 style unless another is asked for: learned positions, LayerNorm, biases, GELU,
 * tied. */
static void plain_shape(struct pt_model *m, const struct planner_given *g)
{
    bool llama = g->style != NULL && strcmp(g->style, "llama") == 0;

    memset(m, 0, sizeof(*m));
    m->vocab = llama ? 128256 : 51200;
    m->max_seq = llama ? 8192 : 2048;
    m->gated = m->rmsnorm = llama;
    m->tied = m->bias = m->learned_positions = !llama;
}

static enum pt_status explicit_model(struct pt_model *m, const struct planner_given *g,
                                     struct pt_error *err)
{
    if (!g->layers_given || !g->hidden_given || !g->heads_given)
        return pt_fail(err, PT_USAGE, NULL, 0,
                       "which model? Give --params COUNT, --model "
                       "PRESET, --config FILE, or --layers, --hidden and --heads");
    plain_shape(m, g);
    snprintf(m->name, sizeof(m->name), "%s %" PRIu64 " x %" PRIu64,
             g->style != NULL ? g->style : "gpt", g->layers, g->hidden);
    snprintf(m->source, sizeof(m->source), "sizes given; %s",
             m->learned_positions ? "GPT-2 style: LayerNorm, biases, GELU, tied"
                                  : "Llama style: RMSNorm, RoPE, SwiGLU");
    return PT_OK;
}

static enum pt_status base_model(struct planner_request *r, const struct planner_given *g,
                                 const char *profile_dir, struct pt_error *err)
{
    struct pt_model *m = &r->setup.model;
    uint64_t params = SMALLEST_PARAMS;
    int n = (g->params != NULL) + (g->model != NULL) + (g->config != NULL);

    if (n > 1)
        return pt_fail(err, PT_USAGE, NULL, 0,
                       "--params, --model and --config each give "
                       "a model; give one of them");
    if (g->model != NULL)
        return pt_model_preset(profile_dir, g->model, m, err);
    if (g->config != NULL)
        return pt_model_config(g->config, m, err);
    if (g->params == NULL)
        return explicit_model(m, g, err);
    r->params_max = strcmp(g->params, "max") == 0;
    if (!r->params_max) {
        enum pt_status st = pt_parse_count("--params", g->params, &params, err);

        if (st != PT_OK)
            return st;
    }
    return pt_model_synthesise(params, r->style, m, err);
}

static bool overrides(const struct planner_given *g)
{
    return g->layers_given || g->hidden_given || g->ffn_given || g->heads_given ||
           g->kv_heads_given || g->head_dim_given || g->vocab_given || g->experts_given ||
           g->topk_given || g->moe_ffn_given || g->shared_ffn_given ||
           g->dense_layers_given || g->gated_given || g->tied_given || g->bias_given ||
           g->rmsnorm_given;
}

enum pt_status planner_request_model(struct planner_request *r,
                                     const struct planner_given *g,
                                     const char *profile_dir, struct pt_error *err)
{
    struct pt_model *m = &r->setup.model;
    bool explicit_shape = g->params == NULL && g->model == NULL && g->config == NULL;
    enum pt_status st;

    r->style = g->style != NULL && strcmp(g->style, "llama") == 0 ? PT_STYLE_LLAMA
                                                                  : PT_STYLE_GPT;
    st = base_model(r, g, profile_dir, err);
    if (st != PT_OK)
        return st;
    if (r->params_max && overrides(g))
        return pt_fail(err, PT_USAGE, NULL, 0,
                       "--params max looks for a shape; it cannot have sizes given too");
    override_sizes(m, g);
    st = derive_sizes(m, g, explicit_shape, err);
    if (st == PT_OK && g->seq_given && g->seq > m->max_seq && m->learned_positions) {
        planner_note(&r->assumed,
                     "%" PRIu64 " learned positions for --seq-length %" PRIu64
                     " (the shape had %" PRIu32 ")",
                     g->seq, g->seq, m->max_seq);
        m->position_rows = (uint32_t)g->seq;
    }
    if (st == PT_OK && g->seq_given && (explicit_shape || g->seq > m->max_seq)) {
        m->max_seq = (uint32_t)g->seq;
        if (explicit_shape && m->learned_positions)
            m->position_rows = m->max_seq;
    }
    if (st == PT_OK)
        st = pt_model_check(m, err);
    if (st == PT_OK && !explicit_shape && overrides(g))
        snprintf(m->source + strlen(m->source), sizeof(m->source) - strlen(m->source),
                 "; sizes overridden");
    return st;
}

/* --- the hardware --- */

static enum pt_status read_gpus(struct planner_request *r, const struct planner_given *g,
                                struct pt_error *err)
{
    uint64_t gpus = 0;
    enum pt_status st = PT_OK;

    if (g->gpus == NULL)
        return pt_fail(err, PT_USAGE, NULL, 0,
                       "how many GPUs? Give --gpus N, or --gpus auto for the fewest");
    r->gpus_auto = strcmp(g->gpus, "auto") == 0;
    if (r->gpus_auto && r->params_max)
        return pt_fail(err, PT_USAGE, NULL, 0,
                       "--gpus auto with --params max: one of them must be a number");
    if (!r->gpus_auto)
        st = pt_parse_u64("--gpus", g->gpus, 1, 1u << 20, &gpus, err);
    r->setup.cluster.gpus = (uint32_t)gpus;
    return st;
}

/* Which card in which node: --node, --gpu, or the default card for --mem. */
static enum pt_status find_cluster(struct planner_request *r,
                                   const struct planner_given *g, const char *profile_dir,
                                   struct pt_error *err)
{
    struct pt_cluster *c = &r->setup.cluster;
    const char *key = g->gpu;
    char gib[32];
    enum pt_status st;

    if (g->node != NULL) {
        st = pt_node_find(profile_dir, g->node, c, err);
        return st == PT_OK && g->gpu != NULL
                   ? pt_gpu_find(profile_dir, g->gpu, &c->gpu, err)
                   : st;
    }
    if (key == NULL && !g->mem_given)
        return pt_fail(err, PT_USAGE, NULL, 0,
                       "which GPU? Give --gpu NAME, --node NAME or --mem SIZE");
    if (key == NULL) {
        key = pt_gpu_default_for((double)g->mem);
        if (key == NULL)
            return pt_fail(err, PT_USAGE, NULL, 0,
                           "--mem: no known GPU has %s; the "
                           "largest has 288 GiB; give --gpu NAME",
                           pt_format_gib(gib, (double)g->mem));
    }
    st = pt_cluster_default(profile_dir, key, c, err);
    if (st == PT_OK)
        planner_note(&r->assumed,
                     g->gpu == NULL ? "GPU %s in %s, because only memory was given"
                                    : "%s in its usual node, %s",
                     c->gpu.key, c->source);
    return st;
}

/* How a suffix was read, where that could be doubted. */
static const char *doubt(const char *unit)
{
    return unit == NULL || strcmp(unit, "GiB") == 0 ? "" : unit;
}

/* --mem: a limit below the card's memory; the nominal size of the card means the card. */
static enum pt_status limit_memory(struct planner_request *r,
                                   const struct planner_given *g, struct pt_error *err)
{
    struct pt_cluster *c = &r->setup.cluster;
    double mem = (double)g->mem;
    char asked[32], has[32];

    if (!g->mem_given)
        return PT_OK;
    pt_format_gib(asked, mem);
    pt_format_gib(has, c->gpu.smi_bytes);
    if (mem > c->gpu.smi_bytes * 1.08)
        return pt_fail(err, PT_USAGE, NULL, 0,
                       "--mem: %s is more than %s has (%s); give less, or another --gpu",
                       asked, c->gpu.key, has);
    if (mem < 64 * PT_MIB)
        return pt_fail(err, PT_USAGE, NULL, 0,
                       "--mem: %.0f bytes is not a GPU's memory; at "
                       "least 64 MiB is needed, such as 80G",
                       mem);
    if (mem < c->gpu.smi_bytes) {
        c->mem_limit_bytes = mem;
        planner_note(&r->assumed, "%s of each GPU may be used%s%s", asked,
                     *doubt(g->mem_unit) != '\0' ? "; " : "", doubt(g->mem_unit));
    } else {
        planner_note(&r->assumed,
                     "--mem %s is the whole card, %s as its driver counts%s%s", asked,
                     has, *doubt(g->mem_unit) != '\0' ? "; " : "", doubt(g->mem_unit));
    }
    return PT_OK;
}

/* --network: the rate of one node, or the key of constants. */
static enum pt_status set_network(struct planner_request *r, const char *text,
                                  struct pt_error *err)
{
    struct pt_cluster *c = &r->setup.cluster;
    struct pt_network unused;
    char keys[256] = "";
    size_t used = 0;
    bool known = false;
    double rate;

    if ((text[0] >= '0' && text[0] <= '9') || text[0] == '.' || text[0] == '-') {
        enum pt_status st = pt_parse_rate("--network", text, &rate, err);

        if (st == PT_OK)
            c->nic_bytes_per_s =
                rate *
                (c->domain_gpus > c->node_gpus ? c->domain_gpus / c->node_gpus : 1);
        return st;
    }
    pt_calibration_network(r->calibration, text, &unused, &known);
    if (known) {
        snprintf(c->network, sizeof(c->network), "%s", text);
        return PT_OK;
    }
    for (size_t i = 0; used + 32 < sizeof(keys); i++) {
        const char *key = pt_calibration_key(r->calibration, PT_SCOPE_NETWORK, i);

        if (key == NULL)
            break;
        used += (size_t)snprintf(keys + used, sizeof(keys) - used, "%s%.24s",
                                 used > 0 ? ", " : "", key);
    }
    return pt_fail(err, PT_USAGE, NULL, 0,
                   "--network: '%.40s' is neither a rate (400Gbps, 50GB/s) nor one of %s",
                   text, keys);
}

static enum pt_status set_domain(struct planner_request *r, const struct planner_given *g)
{
    struct pt_cluster *c = &r->setup.cluster;
    uint32_t before = c->domain_gpus,
             hosts = before > c->node_gpus ? before / c->node_gpus : 1;

    if (!g->gpus_per_node_given)
        return PT_OK;
    c->domain_gpus = (uint32_t)g->gpus_per_node;
    /* One host per fast domain, unless the node has several (NVL72). */
    if (hosts == 1)
        c->node_gpus = c->domain_gpus;
    else if (c->node_gpus > c->domain_gpus)
        c->node_gpus = c->domain_gpus;
    else
        c->nic_bytes_per_s *= (double)c->domain_gpus / before;
    return PT_OK;
}

enum pt_status planner_request_hardware(struct planner_request *r,
                                        const struct planner_given *g,
                                        const char *profile_dir, struct pt_error *err)
{
    struct pt_cluster *c = &r->setup.cluster;
    uint32_t gpus;
    char gib[32];
    enum pt_status st = read_gpus(r, g, err);

    gpus = c->gpus;
    if (st == PT_OK)
        st = find_cluster(r, g, profile_dir, err);
    if (st != PT_OK)
        return st;
    c->gpus = gpus;
    c->mem_limit_bytes = 0;
    st = limit_memory(r, g, err);
    if (st == PT_OK)
        st = set_domain(r, g);
    if (st == PT_OK && g->network != NULL)
        st = set_network(r, g->network, err);
    if (st == PT_OK && g->host_mem_given) {
        c->host_mem_bytes = (double)g->host_mem;
        planner_note(
            &r->assumed, "host memory %s%s%s", pt_format_gib(gib, c->host_mem_bytes),
            *doubt(g->host_mem_unit) != '\0' ? "; " : "", doubt(g->host_mem_unit));
    }
    return st;
}

/* --- all of it --- */

static enum pt_status choose_stack(struct planner_request *r,
                                   const struct planner_given *g, struct pt_error *err)
{
    bool cpu = strcmp(r->setup.cluster.gpu.family, "cpu") == 0, known;
    char names[320];

    r->stack = planner_stack_find(cpu && !g->stack_given ? PLANNER_STACK_CPU : g->stack);
    if (r->stack == NULL)
        return pt_fail(err, PT_USAGE, NULL, 0, "--stack: '%.40s' is not known; known: %s",
                       g->stack, planner_stack_names(names, sizeof(names)));
    snprintf(r->stack_key, sizeof(r->stack_key), "%s",
             cpu && strcmp(r->stack->name, PLANNER_STACK_CPU) == 0 ? PLANNER_STACK_CPU_KEY
                                                                   : r->stack->key);
    snprintf(r->calibration_text, sizeof(r->calibration_text), "%s", g->calibration);
    pt_calibration_stack(r->calibration, r->stack_key, &r->setup.stack, &known);
    if (!known && strcmp(r->stack->name, PLANNER_STACK_DEFAULT) != 0)
        planner_note(&r->assumed, "stack %s (%s) has no constants of its own: defaults",
                     r->stack->name, r->stack->what);
    return PT_OK;
}

static void calibrate(struct planner_request *r)
{
    struct pt_setup *s = &r->setup;
    bool known;

    pt_calibration_machine(r->calibration, s->cluster.gpu.family, &s->cluster);
    pt_calibration_device(r->calibration, s->cluster.gpu.family, &s->device, &known);
    if (!known)
        planner_note(&r->assumed, "GPU family %s has no constants of its own: datasheet",
                     s->cluster.gpu.family);
    pt_calibration_network(r->calibration, s->cluster.network, &s->network, &known);
}

static enum pt_status search_options(struct planner_request *r,
                                     const struct planner_given *g)
{
    r->search.top = (uint32_t)g->top;
    r->verify = (uint32_t)g->verify;
    r->search.time_limit_s = g->time_limit;
    r->search.gap = g->gap;
    r->search.causal = strcmp(g->flop_convention, "causal") == 0;
    r->explain = g->explain;
    r->output = g->output;
    r->report = g->report;
    r->format = strcmp(g->format, "csv") == 0    ? PLANNER_CSV
                : strcmp(g->format, "json") == 0 ? PLANNER_JSON
                                                 : PLANNER_TEXT;
    return PT_OK;
}

enum pt_status planner_request_init(struct planner_request *r,
                                    const struct planner_given *g,
                                    const char *profile_dir, struct pt_error *err)
{
    enum pt_status st;

    memset(r, 0, sizeof(*r));
    st = planner_calibration_open(g->calibration, profile_dir, &r->calibration, err);
    if (st == PT_OK)
        st = planner_request_model(r, g, profile_dir, err);
    if (st == PT_OK)
        st = planner_request_hardware(r, g, profile_dir, err);
    if (st == PT_OK)
        st = choose_stack(r, g, err);
    if (st == PT_OK)
        calibrate(r);
    if (st == PT_OK)
        st = planner_request_job(r, g, err);
    if (st == PT_OK)
        st = planner_request_space(r, g, err);
    if (st == PT_OK)
        st = planner_request_check(r, g, err);
    if (st == PT_OK)
        st = search_options(r, g);
    if (st != PT_OK)
        planner_request_fini(r);
    return st;
}

void planner_request_fini(struct planner_request *request)
{
    pt_calibration_free(request->calibration);
    request->calibration = NULL;
}
