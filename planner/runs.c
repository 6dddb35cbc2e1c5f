/* Rows of runs.csv: each is a model, a machine, a job and a layout. */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libpt/memory.h"
#include "planner/evaluate.h"

/* Columns that are read. The others are for people. */
#define COLUMNS(X)                                                                       \
    X(id)                                                                                \
    X(group)                                                                             \
    X(stack)                                                                             \
    X(gpu)                                                                               \
    X(gpus)                                                                              \
    X(domain_gpus)                                                                       \
    X(network)                                                                           \
    X(nic_GBps_per_node)                                                                 \
    X(precision)                                                                         \
    X(model_name)                                                                        \
    X(layers)                                                                            \
    X(hidden)                                                                            \
    X(ffn_hidden)                                                                        \
    X(heads)                                                                             \
    X(kv_heads)                                                                          \
    X(head_dim)                                                                          \
    X(vocab)                                                                             \
    X(seq_len)                                                                           \
    X(gated)                                                                             \
    X(tied)                                                                              \
    X(attention)                                                                         \
    X(dropout)                                                                           \
    X(mla)                                                                               \
    X(sliding_window_half)                                                               \
    X(experts)                                                                           \
    X(topk)                                                                              \
    X(moe_ffn)                                                                           \
    X(shared_ffn)                                                                        \
    X(dense_layers)                                                                      \
    X(tp)                                                                                \
    X(pp)                                                                                \
    X(vpp)                                                                               \
    X(dp)                                                                                \
    X(cp)                                                                                \
    X(ep)                                                                                \
    X(sp)                                                                                \
    X(zero)                                                                              \
    X(zero_group)                                                                        \
    X(recompute)                                                                         \
    X(schedule)                                                                          \
    X(stage_layers)                                                                      \
    X(micro_batch)                                                                       \
    X(global_batch)                                                                      \
    X(fused_grad_accumulation)                                                           \
    X(fused_cross_entropy)                                                               \
    X(compiled)

enum column {
#define X(name) COL_##name,
    COLUMNS(X)
#undef X
        N_COLUMNS
};
static const char *const column_names[] = {
#define X(name) #name,
    COLUMNS(X)
#undef X
};

/* Published runs whose `stack` names the family of a fork with other kernels and other
 * states. */
static const struct {
    const char *group, *stack, *profile;
} software[] = {
    /* sail-sg/zero-bubble-pipeline-parallelism: split backward, softmax not fused */
    { "zero_bubble", "megatron-2022", "zero-bubble" },
    /* DLPerf's Megatron-LM of 2020: local data parallelism, transfers not scattered */
    { "dlperf_v100", "megatron-2021", "megatron-2020" },
    /* sail-sg/VocabularyParallelism: flash attention, vocabulary passes */
    { "vocab_parallel", "megatron-2022", "vocab-parallel" },
};

static const char *software_of(const char *group, const char *stack)
{
    for (size_t i = 0; i < sizeof(software) / sizeof(software[0]); i++)
        if (strcmp(software[i].group, group) == 0 &&
            strcmp(software[i].stack, stack) == 0)
            return software[i].profile;
    return stack;
}

#define MAX_CARDS 64

struct card {
    char key[32];
    enum pt_status status;
    struct pt_cluster cluster;
    struct pt_error error;
};

struct planner_runs {
    struct pt_csv *csv;
    int column[N_COLUMNS];
    char profile_dir[4096];
    size_t n_cards;
    struct card card[MAX_CARDS];
};

enum pt_status planner_runs_open(const char *path, const char *profile_dir,
                                 struct planner_runs **runs, struct pt_error *err)
{
    struct planner_runs *r = calloc(1, sizeof(*r));
    enum pt_status st;

    *runs = NULL;
    if (r == NULL)
        return pt_fail(err, PT_SYSTEM, path, 0, "out of memory");
    st = pt_csv_read(path, &r->csv, err);
    if (st != PT_OK)
        goto out;
    for (int i = 0; i < N_COLUMNS; i++)
        r->column[i] = pt_csv_column(r->csv, column_names[i]);
    static const enum column needed[] = { COL_id,          COL_gpu,     COL_layers,
                                          COL_hidden,      COL_seq_len, COL_micro_batch,
                                          COL_global_batch };
    for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
        if (r->column[needed[i]] < 0) {
            st = pt_fail(err, PT_INPUT, path, 0, "no column '%s'",
                         column_names[needed[i]]);
            goto out;
        }
    if (strlen(profile_dir) >= sizeof(r->profile_dir)) {
        st = pt_fail(err, PT_USAGE, profile_dir, 0, "path too long");
        goto out;
    }
    strcpy(r->profile_dir, profile_dir);
    *runs = r;
    r = NULL;
out:
    planner_runs_close(r);
    return st;
}

void planner_runs_close(struct planner_runs *runs)
{
    if (runs == NULL)
        return;
    pt_csv_free(runs->csv);
    free(runs);
}

size_t planner_runs_count(const struct planner_runs *runs)
{
    return pt_csv_rows(runs->csv);
}

const char *planner_runs_text(const struct planner_runs *runs, size_t row,
                              const char *column)
{
    return pt_csv_field(runs->csv, row, pt_csv_column(runs->csv, column));
}

static const char *text(const struct planner_runs *r, size_t row, enum column c)
{
    return pt_csv_field(r->csv, row, r->column[c]);
}

/* A whole number, or `missing` when the field is empty. */
static enum pt_status whole(const struct planner_runs *r, size_t row, enum column c,
                            double missing, double high, uint32_t *value,
                            struct pt_error *err)
{
    double v;

    if (pt_csv_number(r->csv, row, r->column[c], missing, &v, err) != PT_OK)
        return PT_INPUT;
    if (!(v >= 0.0 && v <= high) || v != floor(v))
        return pt_fail(err, PT_INPUT, "", 0,
                       "%s is %g: not a whole number within [0, %g]", column_names[c], v,
                       high);
    *value = (uint32_t)v;
    return PT_OK;
}

static bool flag(const struct planner_runs *r, size_t row, enum column c)
{
    return strcmp(text(r, row, c), "1") == 0;
}

/* The card in its usual node, read once. */
static const struct card *find_card(struct planner_runs *r, const char *key)
{
    size_t i = 0;

    while (i < r->n_cards && strcmp(r->card[i].key, key) != 0)
        i++;
    if (i < r->n_cards)
        return &r->card[i];
    if (i == MAX_CARDS)
        i = MAX_CARDS - 1; /* forget the last */
    else
        r->n_cards++;
    struct card *card = &r->card[i];

    memset(card, 0, sizeof(*card));
    snprintf(card->key, sizeof(card->key), "%s", key);
    card->status = pt_cluster_default(r->profile_dir, key, &card->cluster, &card->error);
    return card;
}

static enum pt_status read_cluster(struct planner_runs *r, size_t row, struct pt_setup *s,
                                   struct pt_error *err)
{
    const struct card *card = find_card(r, text(r, row, COL_gpu));
    struct pt_cluster *c = &s->cluster;
    double nic;
    enum pt_status st;

    if (card->status != PT_OK)
        return pt_fail(err, PT_INPUT, "", 0, "%s", card->error.text);
    *c = card->cluster;
    st = pt_csv_number(r->csv, row, r->column[COL_nic_GBps_per_node],
                       c->nic_bytes_per_s / 1e9, &nic, err);
    if (st == PT_OK)
        st = whole(r, row, COL_gpus, 1, 1e7, &c->gpus, err);
    if (st == PT_OK)
        st = whole(r, row, COL_domain_gpus, c->domain_gpus, 1e7, &c->domain_gpus, err);
    if (st != PT_OK)
        return st;
    if (!(nic > 0.0) || c->gpus == 0 || c->domain_gpus == 0)
        return pt_fail(err, PT_INPUT, "", 0,
                       "gpus, domain_gpus and nic_GBps_per_node must be above 0");
    c->nic_bytes_per_s = nic * 1e9;
    if (c->node_gpus == 0 || c->node_gpus > c->domain_gpus)
        c->node_gpus = c->domain_gpus;
    snprintf(c->network, sizeof(c->network), "%s", text(r, row, COL_network));
    return PT_OK;
}

static enum pt_status read_model(struct planner_runs *r, size_t row, struct pt_model *m,
                                 struct pt_error *err)
{
    static const struct {
        enum column column;
        size_t offset;
        double missing;
    } fields[] = {
        { COL_layers, offsetof(struct pt_model, layers), 0 },
        { COL_hidden, offsetof(struct pt_model, hidden), 0 },
        { COL_ffn_hidden, offsetof(struct pt_model, ffn), 0 },
        { COL_heads, offsetof(struct pt_model, heads), 0 },
        { COL_kv_heads, offsetof(struct pt_model, kv_heads), 0 },
        { COL_head_dim, offsetof(struct pt_model, head_dim), 0 },
        { COL_vocab, offsetof(struct pt_model, vocab), 0 },
        { COL_seq_len, offsetof(struct pt_model, max_seq), 0 },
        { COL_experts, offsetof(struct pt_model, experts), 0 },
        { COL_topk, offsetof(struct pt_model, topk), 0 },
        { COL_moe_ffn, offsetof(struct pt_model, moe_ffn), 0 },
        { COL_shared_ffn, offsetof(struct pt_model, shared_ffn), 0 },
        { COL_dense_layers, offsetof(struct pt_model, dense_layers), 0 },
    };

    *m = (struct pt_model){ 0 };
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        uint32_t v = 0;
        enum pt_status st =
            whole(r, row, fields[i].column, fields[i].missing, 4e9, &v, err);

        if (st != PT_OK)
            return st;
        memcpy((char *)m + fields[i].offset, &v, sizeof(v));
    }
    snprintf(m->name, sizeof(m->name), "%s", text(r, row, COL_model_name));
    m->gated = flag(r, row, COL_gated);
    m->tied = flag(r, row, COL_tied);
    m->sliding_window_half = flag(r, row, COL_sliding_window_half);
    m->rmsnorm = m->gated || m->experts > 0;
    m->bias = !m->rmsnorm;
    m->learned_positions = !m->rmsnorm;
    if (m->kv_heads == 0)
        m->kv_heads = m->heads;
    if (m->head_dim == 0 && m->heads > 0)
        m->head_dim = m->hidden / m->heads;
    if (m->ffn == 0)
        m->ffn = m->moe_ffn > 0 ? m->moe_ffn : 4 * m->hidden;
    if (flag(r, row, COL_mla)) { /* DeepSeek-V2 and V3 share these */
        m->q_lora = 1536;
        m->kv_lora = 512;
        m->qk_nope = m->v_dim = 128;
        m->qk_rope = 64;
    }
    return pt_model_check(m, err);
}

/* The spellings of the published tables. */
static enum pt_status precision_of(const char *t, enum pt_precision *p,
                                   struct pt_error *err)
{
    if (strstr(t, "fp4") != NULL)
        *p = PT_NVFP4;
    else if (strstr(t, "mxfp8") != NULL || strcmp(t, "fp8-mx") == 0)
        *p = PT_MXFP8;
    else if (strncmp(t, "fp8", 3) == 0)
        *p = PT_FP8;
    else if (strncmp(t, "fp16", 4) == 0)
        *p = PT_FP16;
    else if (t[0] == '\0')
        *p = PT_BF16;
    else
        return pt_precision_parse(t, p, err);
    return PT_OK;
}

static enum pt_status read_job(struct planner_runs *r, size_t row, struct pt_job *j,
                               struct pt_error *err)
{
    const char *attention = text(r, row, COL_attention);
    enum pt_status st;

    *j = (struct pt_job){ 0 };
    st = precision_of(text(r, row, COL_precision), &j->precision, err);
    if (st == PT_OK)
        st = whole(r, row, COL_seq_len, 0, 1e9, &j->seq, err);
    if (st == PT_OK)
        st = whole(r, row, COL_global_batch, 0, 4e9, &j->global_batch, err);
    if (st != PT_OK)
        return st;
    j->optimizer = PT_OPT_ADAM;
    pt_dtypes_default(j->precision, j->optimizer, &j->dtypes);
    j->attention =
        strcmp(attention, "eager") == 0 ? PT_ATTENTION_EAGER : PT_ATTENTION_FLASH;
    j->dropout = flag(r, row, COL_dropout);
    j->fused_grad_accumulation = flag(r, row, COL_fused_grad_accumulation);
    j->fused_cross_entropy = flag(r, row, COL_fused_cross_entropy);
    j->compiled = flag(r, row, COL_compiled);
    return PT_OK;
}

static enum pt_status recompute_of(const char *t, enum pt_recompute *rc,
                                   struct pt_error *err)
{
    static const struct {
        const char *text;
        enum pt_recompute recompute;
    } names[] = { { "", PT_RECOMPUTE_NONE },
                  { "none", PT_RECOMPUTE_NONE },
                  { "full", PT_RECOMPUTE_FULL },
                  { "selective-attention", PT_RECOMPUTE_SELECTIVE },
                  { "selective-ops", PT_RECOMPUTE_SELECTIVE_OPS },
                  { "every-other", PT_RECOMPUTE_HALF } };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(names[i].text, t) == 0) {
            *rc = names[i].recompute;
            return PT_OK;
        }
    return pt_recompute_parse(t, rc, err);
}

static enum pt_status schedule_of(const char *t, struct pt_layout *l,
                                  struct pt_error *err)
{
    if (l->pp == 1)
        l->schedule = PT_SCHEDULE_NONE;
    else if (strcmp(t, "ZB-1p") == 0 || strcmp(t, "ZB-2p") == 0) {
        l->schedule = PT_SCHEDULE_ZB_AUTO;
        l->max_in_flight = t[3] == '2' ? 2 * l->pp : l->pp;
    } else if (strncmp(t, "1F1B", 4) == 0 || t[0] == '\0' || strcmp(t, "none") == 0 ||
               strcmp(t, "interlaced") == 0 || strcmp(t, "DualPipe") == 0)
        l->schedule = l->vpp > 1 ? PT_SCHEDULE_INTERLEAVED : PT_SCHEDULE_1F1B;
    else if (strncmp(t, "interleaved-1F1B", 16) == 0)
        l->schedule = l->vpp > 1 ? PT_SCHEDULE_INTERLEAVED : PT_SCHEDULE_1F1B;
    else
        return pt_schedule_parse(t, &l->schedule, err);
    if (strstr(t, "vocab-parallel") != NULL)
        l->vocab = PT_VOCAB_SPREAD_2; /* the published tables do not tell the two apart */
    else if (strcmp(t, "interlaced") == 0)
        l->vocab = PT_VOCAB_INTERLACED;
    return PT_OK;
}

static enum pt_status read_layout(struct planner_runs *r, size_t row, struct pt_layout *l,
                                  struct pt_error *err)
{
    static const struct {
        enum column column;
        size_t offset;
        double missing;
    } fields[] = {
        { COL_tp, offsetof(struct pt_layout, tp), 1 },
        { COL_pp, offsetof(struct pt_layout, pp), 1 },
        { COL_vpp, offsetof(struct pt_layout, vpp), 1 },
        { COL_cp, offsetof(struct pt_layout, cp), 1 },
        { COL_ep, offsetof(struct pt_layout, ep), 1 },
        { COL_dp, offsetof(struct pt_layout, dp), 1 },
        { COL_zero, offsetof(struct pt_layout, zero), 0 },
        { COL_zero_group, offsetof(struct pt_layout, zero_group), 0 },
        { COL_micro_batch, offsetof(struct pt_layout, micro_batch), 1 },
    };

    *l = (struct pt_layout){ 0 };
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        uint32_t v = 0;
        enum pt_status st =
            whole(r, row, fields[i].column, fields[i].missing, 1e7, &v, err);

        if (st != PT_OK)
            return st;
        if (v == 0 && fields[i].missing > 0.0)
            v = 1;
        memcpy((char *)l + fields[i].offset, &v, sizeof(v));
    }
    l->sequence_parallel = flag(r, row, COL_sp);
    l->replicate_kv = true;
    l->uneven_chunks = text(r, row, COL_stage_layers)[0] != '\0';
    if (recompute_of(text(r, row, COL_recompute), &l->recompute, err) != PT_OK)
        return PT_INPUT;
    return schedule_of(text(r, row, COL_schedule), l, err);
}

/* "4;4;3": layers per stage; a stage's chunks share them, the first ones taking what is
 * left. */
static enum pt_status read_split(const char *t, const struct pt_model *m,
                                 const struct pt_layout *l, struct pt_split *split,
                                 struct pt_error *err)
{
    uint32_t dense = pt_model_layers(m, PT_LAYER_DENSE), total = 0;
    const char *p = t;

    for (uint32_t s = 0; s < l->pp; s++) {
        char *end;
        unsigned long n = strtoul(p, &end, 10);

        if (end == p || n > PT_MAX_LAYERS)
            return pt_fail(err, PT_INPUT, "", 0,
                           "stage_layers '%s' names no layers for stage %u", t, s);
        for (uint32_t c = 0; c < l->vpp; c++) {
            struct pt_chunk *chunk = &split->chunk[c * l->pp + s];
            uint32_t mine = (uint32_t)n / l->vpp + (c < n % l->vpp ? 1 : 0);
            uint32_t d = mine < dense ? mine : dense;

            memset(chunk, 0, sizeof(*chunk));
            chunk->layers[PT_LAYER_DENSE] = (uint16_t)d;
            chunk->layers[PT_LAYER_MOE] = (uint16_t)(mine - d);
            if (l->recompute == PT_RECOMPUTE_FULL)
                memcpy(chunk->recomputed, chunk->layers, sizeof(chunk->layers));
            dense -= d;
        }
        total += (uint32_t)n;
        p = *end == ';' ? end + 1 : end;
    }
    if (*p != '\0' || total != m->layers)
        return pt_fail(err, PT_INPUT, "", 0,
                       "stage_layers '%s': %u layers over %u stages, the model has %u", t,
                       total, l->pp, m->layers);
    return PT_OK;
}

static enum pt_status make_split(struct planner_runs *r, size_t row,
                                 struct planner_run *run, struct pt_error *err)
{
    const struct pt_layout *l = &run->layout;
    const char *stages = text(r, row, COL_stage_layers);
    enum pt_status st;

    if (run->split.pp != l->pp || run->split.vpp != l->vpp) {
        pt_split_fini(&run->split);
        st = pt_split_init(&run->split, l->pp, l->vpp, err);
        if (st != PT_OK)
            return st;
    }
    for (uint32_t s = 0; s < l->pp; s++)
        run->split.offload_frac[s] = 0.0;
    if (stages[0] != '\0' && l->pp > 1)
        return read_split(stages, &run->setup.model, l, &run->split, err);
    pt_split_even(&run->split, &run->setup.model, l, false);
    return PT_OK;
}

enum pt_status planner_runs_row(struct planner_runs *runs, size_t row,
                                struct planner_run *run, struct pt_error *err)
{
    struct pt_setup *s = &run->setup;
    enum pt_status st;

    run->id = text(runs, row, COL_id);
    st = read_model(runs, row, &s->model, err);
    if (st == PT_OK)
        st = read_job(runs, row, &s->job, err);
    if (st == PT_OK)
        st = read_cluster(runs, row, s, err);
    if (st == PT_OK)
        st = read_layout(runs, row, &run->layout, err);
    if (st == PT_OK)
        st = pt_layout_check(&s->model, &s->job, &run->layout, s->cluster.gpus, err);
    if (st == PT_OK)
        st = make_split(runs, row, run, err);
    if (st != PT_OK)
        return st;
    snprintf(s->stack.key, sizeof(s->stack.key), "%s",
             software_of(text(runs, row, COL_group), text(runs, row, COL_stack)));
    return PT_OK;
}

void planner_run_calibrate(struct planner_run *run,
                           const struct pt_calibration *calibration,
                           bool known[PT_N_SCOPES])
{
    struct pt_setup *s = &run->setup;
    char stack[sizeof(s->stack.key)];
    bool k[PT_N_SCOPES];

    memcpy(stack, s->stack.key, sizeof(stack));
    pt_calibration_stack(calibration, stack, &s->stack, &k[PT_SCOPE_STACK]);
    s->stack.mem_margin = 0.0; /* a verdict on a run, not a plan */
    pt_dtypes_for_stack(&s->stack, s->job.precision, s->job.optimizer, &s->job.dtypes);
    pt_calibration_device(calibration, s->cluster.gpu.family, &s->device,
                          &k[PT_SCOPE_DEVICE]);
    pt_calibration_network(calibration, s->cluster.network, &s->network,
                           &k[PT_SCOPE_NETWORK]);
    if (known != NULL)
        memcpy(known, k, sizeof(k));
}
