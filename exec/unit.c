#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "exec/rng.h"
#include "exec/unit.h"

static size_t cells_of(size_t n)
{
    return (n + EXEC_GRID - 1) / EXEC_GRID;
}

static enum pt_status refuse(struct pt_error *err, const char *what)
{
    return pt_fail(err, PT_USAGE, NULL, 0, "the cpu backend does not run %s yet", what);
}

static enum pt_status check(const struct pt_model *model, const struct pt_job *job,
                            const struct pt_layout *layout, struct pt_error *err)
{
    if (model->experts > 0)
        return refuse(err, "mixtures of experts");
    if (model->kv_lora > 0)
        return refuse(err, "latent attention (MLA)");
    if (model->qk_norm)
        return refuse(err, "norms of queries and keys");
    if (model->sliding_window_half)
        return refuse(err, "sliding-window attention");
    if (layout->cp > 1)
        return refuse(err, "context parallelism; plan with --cp 1");
    if (layout->tp > model->kv_heads)
        return refuse(err,
                      "replicated key-value heads; plan with a tp of at most kv-heads");
    if (layout->zero_group != 0 && layout->zero_group != layout->dp)
        return refuse(err, "ZeRO groups smaller than the data-parallel group");
    if (layout->vocab != PT_VOCAB_ENDS)
        return refuse(err, "a vocabulary spread over the stages");
    if (layout->recompute == PT_RECOMPUTE_SELECTIVE_OPS)
        return refuse(err,
                      "recompute selective-ops; plan with none, selective, half or full");
    if (job->precision != PT_FP32)
        return pt_fail(
            err, PT_USAGE, NULL, 0,
            "the plan computes in %s, the cpu backend in fp32: plan with --gpu cpu "
            "or --precision fp32",
            pt_precision_name(job->precision));
    if (job->optimizer != PT_OPT_ADAM)
        return refuse(err, "optimizers other than adam");
    if (job->dropout)
        return refuse(err, "dropout");
    if (model->learned_positions && job->seq > model->max_seq)
        return pt_fail(err, PT_USAGE, NULL, 0,
                       "sequences of %u tokens exceed the model's %u learned positions",
                       job->seq, model->max_seq);
    if (!model->learned_positions && model->head_dim % 2 != 0)
        return pt_fail(err, PT_USAGE, NULL, 0,
                       "rotary positions need an even head size, not %u",
                       model->head_dim);
    return PT_OK;
}

enum pt_status exec_shape_init(const struct pt_model *model, const struct pt_job *job,
                               const struct pt_layout *layout, uint32_t tp_rank,
                               struct exec_shape *s, struct pt_error *err)
{
    enum pt_status st = check(model, job, layout, err);
    uint32_t tp = layout->tp;

    if (st != PT_OK)
        return st;
    memset(s, 0, sizeof(*s));
    s->layers = model->layers;
    s->tp = tp;
    s->tp_rank = tp_rank;
    s->seq = job->seq;
    s->batch = layout->micro_batch;
    s->T = s->seq * s->batch;
    s->sequence_parallel = layout->sequence_parallel && tp > 1;
    s->Ts = s->sequence_parallel ? s->T / tp : s->T;
    s->h = model->hidden;
    s->d = model->head_dim;
    s->all_heads = model->heads;
    s->all_kv_heads = model->kv_heads;
    s->all_f = model->ffn;
    s->heads = model->heads / tp;
    s->kv_heads = model->kv_heads / tp;
    s->f = model->ffn / tp;
    s->vocab = model->vocab;
    s->vocab_local = (size_t)(pt_vocab_padded(model->vocab, job->vocab_unit, tp) / tp);
    s->vocab_first = s->vocab_local * tp_rank;
    s->gated = model->gated;
    s->bias = model->bias;
    s->rmsnorm = model->rmsnorm;
    s->learned = model->learned_positions;
    s->tied = model->tied;
    s->positions = model->max_seq > job->seq ? model->max_seq : job->seq;
    s->eps = 1e-5f;
    if (model->heads % tp != 0 || model->kv_heads % tp != 0 || model->ffn % tp != 0)
        return pt_fail(err, PT_USAGE, NULL, 0,
                       "tp %u does not divide heads %u, kv-heads %u and ffn %u", tp,
                       model->heads, model->kv_heads, model->ffn);
    if (s->sequence_parallel && s->T % tp != 0)
        return pt_fail(err, PT_USAGE, NULL, 0, "%zu tokens are not a multiple of tp %u",
                       s->T, tp);
    return PT_OK;
}

enum split { WHOLE, ROWS, COLS };

/* Appends a tensor of the whole model's rows x cols, cut over tp as `split` says. */
static struct exec_tensor *add(struct exec_unit *u, const struct exec_shape *s,
                               const char *name, size_t rows, size_t cols,
                               enum split split)
{
    struct exec_tensor *t = &u->tensor[u->n_tensors++];

    memset(t, 0, sizeof(*t));
    if (u->kind == EXEC_LAYER)
        snprintf(t->name, sizeof(t->name), "layers.%u.%s", u->layer, name);
    else
        snprintf(t->name, sizeof(t->name), "%s", name);
    t->stream = ((uint64_t)u->kind << 48) | ((uint64_t)u->layer << 16) | u->n_tensors;
    t->rows = rows;
    t->cols = cols;
    t->local_rows = split == ROWS ? rows / s->tp : rows;
    t->local_cols = split == COLS ? cols / s->tp : cols;
    t->row0 = split == ROWS ? t->local_rows * s->tp_rank : 0;
    t->col0 = split == COLS ? t->local_cols * s->tp_rank : 0;
    t->shared = split == WHOLE;
    t->offset = u->n;
    t->n = t->local_rows * t->local_cols;
    u->n += t->n;
    u->cells += cells_of(t->n);
    if (t->shared)
        u->shared_n = u->n;
    return t;
}

/* A vector of a layer. */
static void add_vector(struct exec_unit *u, const struct exec_shape *s,
                       enum exec_slot_name slot, const char *name, size_t rows,
                       enum split split, float value)
{
    u->slot[slot] = u->n;
    add(u, s, name, rows, 1, split)->mean = value;
}

static void add_matrix(struct exec_unit *u, const struct exec_shape *s,
                       enum exec_slot_name slot, const char *name, size_t rows,
                       size_t cols, enum split split, float deviation)
{
    struct exec_tensor *t;

    u->slot[slot] = u->n;
    t = add(u, s, name, rows, cols, split);
    t->deviation = deviation;
    t->decay = true;
}

#define DEVIATION 0.02f /* GPT-2 */

/* Residual projections begin smaller by sqrt(2 layers), as GPT-2's. */
static void layer_init(const struct exec_shape *s, struct exec_unit *u)
{
    const float small = DEVIATION / sqrtf(2.0f * (float)s->layers);
    const size_t q = s->all_heads * s->d, kv = s->all_kv_heads * s->d;

    add_vector(u, s, EXEC_LN1_W, "norm1.weight", s->h, WHOLE, 1);
    if (s->bias && !s->rmsnorm)
        add_vector(u, s, EXEC_LN1_B, "norm1.bias", s->h, WHOLE, 0);
    add_vector(u, s, EXEC_LN2_W, "norm2.weight", s->h, WHOLE, 1);
    if (s->bias && !s->rmsnorm)
        add_vector(u, s, EXEC_LN2_B, "norm2.bias", s->h, WHOLE, 0);
    if (s->bias) {
        add_vector(u, s, EXEC_PROJ_B, "attention.proj.bias", s->h, WHOLE, 0);
        add_vector(u, s, EXEC_FC2_B, "mlp.fc2.bias", s->h, WHOLE, 0);
    }
    add_matrix(u, s, EXEC_Q_W, "attention.q.weight", q, s->h, ROWS, DEVIATION);
    add_matrix(u, s, EXEC_K_W, "attention.k.weight", kv, s->h, ROWS, DEVIATION);
    add_matrix(u, s, EXEC_V_W, "attention.v.weight", kv, s->h, ROWS, DEVIATION);
    if (s->bias) {
        add_vector(u, s, EXEC_Q_B, "attention.q.bias", q, ROWS, 0);
        add_vector(u, s, EXEC_K_B, "attention.k.bias", kv, ROWS, 0);
        add_vector(u, s, EXEC_V_B, "attention.v.bias", kv, ROWS, 0);
    }
    add_matrix(u, s, EXEC_PROJ_W, "attention.proj.weight", s->h, q, COLS, small);
    add_matrix(u, s, EXEC_FC1_W, s->gated ? "mlp.gate.weight" : "mlp.fc1.weight",
               s->all_f, s->h, ROWS, DEVIATION);
    if (s->gated)
        add_matrix(u, s, EXEC_UP_W, "mlp.up.weight", s->all_f, s->h, ROWS, DEVIATION);
    if (s->bias) {
        add_vector(u, s, EXEC_FC1_B, s->gated ? "mlp.gate.bias" : "mlp.fc1.bias",
                   s->all_f, ROWS, 0);
        if (s->gated)
            add_vector(u, s, EXEC_UP_B, "mlp.up.bias", s->all_f, ROWS, 0);
    }
    add_matrix(u, s, EXEC_FC2_W, "mlp.fc2.weight", s->h, s->all_f, COLS, small);
}

/* Vocabulary by rows, with the padding after the last true row. */
static void vocab_init(const struct exec_shape *s, struct exec_unit *u, const char *name)
{
    struct exec_tensor *t = add(u, s, name, s->vocab_local * s->tp, s->h, ROWS);

    t->rows = s->vocab;
    t->deviation = DEVIATION;
    t->decay = true;
    t->shared = false;
    u->shared_n = 0;
}

static void unit_tensors(const struct exec_shape *s, struct exec_unit *u)
{
    switch (u->kind) {
    case EXEC_TOKENS:
        vocab_init(s, u, "embedding.weight");
        break;
    case EXEC_POSITIONS: {
        struct exec_tensor *t = add(u, s, "positions.weight", s->positions, s->h, WHOLE);

        t->deviation = DEVIATION / 2;
        t->decay = true;
        break;
    }
    case EXEC_LAYER:
        layer_init(s, u);
        break;
    case EXEC_NORM:
        add(u, s, "norm.weight", s->h, 1, WHOLE)->mean = 1;
        if (s->bias && !s->rmsnorm)
            add(u, s, "norm.bias", s->h, 1, WHOLE);
        break;
    case EXEC_HEAD:
        vocab_init(s, u, s->tied ? "embedding.weight" : "head.weight");
        if (s->tied) /* the same numbers as the embedding's */
            u->tensor[0].stream = ((uint64_t)EXEC_TOKENS << 48) | 1;
        break;
    case EXEC_N_UNIT_KINDS:
        break;
    }
}

/* Entries of one unit in the table: cells, those of cut tensors once per tp rank. */
static size_t entries(const struct exec_shape *s, const struct exec_unit *u)
{
    size_t n = 0;

    for (unsigned i = 0; i < u->n_tensors; i++)
        n += cells_of(u->tensor[i].n) * (u->tensor[i].shared ? 1 : s->tp);
    return n;
}

static size_t entries_of(const struct exec_shape *s, enum exec_unit_kind kind)
{
    struct exec_unit u;

    if ((kind == EXEC_POSITIONS && !s->learned) || (kind == EXEC_HEAD && s->tied))
        return 0;
    memset(&u, 0, sizeof(u));
    u.kind = kind;
    unit_tensors(s, &u);
    return entries(s, &u);
}

void exec_unit_init(const struct exec_shape *s, enum exec_unit_kind kind, uint32_t layer,
                    struct exec_unit *u)
{
    memset(u, 0, sizeof(*u));
    u->kind = kind;
    u->layer = layer;
    for (unsigned i = 0; i < EXEC_N_SLOTS; i++)
        u->slot[i] = EXEC_ABSENT;
    unit_tensors(s, u);
    for (int k = EXEC_TOKENS; k < (int)kind; k++)
        u->norm_at +=
            entries_of(s, (enum exec_unit_kind)k) * (k == EXEC_LAYER ? s->layers : 1);
    if (kind == EXEC_LAYER)
        u->norm_at += entries(s, u) * layer;
}

size_t exec_norm_entries(const struct exec_shape *s)
{
    size_t n = 0;

    for (int k = EXEC_TOKENS; k < EXEC_N_UNIT_KINDS; k++)
        n += entries_of(s, (enum exec_unit_kind)k) * (k == EXEC_LAYER ? s->layers : 1);
    return n;
}

size_t exec_norm_entry(const struct exec_shape *s, const struct exec_unit *u, unsigned i,
                       size_t cell)
{
    size_t at = u->norm_at;

    for (unsigned k = 0; k < i; k++)
        at += cells_of(u->tensor[k].n) * (u->tensor[k].shared ? 1 : s->tp);
    if (!u->tensor[i].shared)
        at += cells_of(u->tensor[i].n) * s->tp_rank;
    return at + cell;
}

void exec_unit_fill(const struct exec_unit *u, uint64_t seed, float *w)
{
    for (unsigned i = 0; i < u->n_tensors; i++) {
        const struct exec_tensor *t = &u->tensor[i];
        float *p = w + t->offset;

        for (size_t r = 0; r < t->local_rows; r++)
            for (size_t c = 0; c < t->local_cols; c++) {
                uint64_t at = (t->row0 + r) * t->cols + t->col0 + c;
                bool padding = t->row0 + r >= t->rows;

                *p++ = padding ? 0
                       : t->deviation == 0
                           ? t->mean
                           : (float)((double)t->deviation *
                                     exec_rng_normal(seed, t->stream, at));
            }
    }
}

size_t exec_unit_edge(const struct exec_unit *u, size_t at)
{
    size_t best = 0;

    if (at >= u->n)
        return u->n;
    for (unsigned i = 0; i < u->n_tensors; i++) {
        const struct exec_tensor *t = &u->tensor[i];

        if (t->offset > at)
            break;
        best = t->offset +
               (at - t->offset < t->n ? (at - t->offset) / EXEC_GRID * EXEC_GRID : t->n);
    }
    return best;
}
