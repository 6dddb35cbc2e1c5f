#include "config.h"

#include <math.h>
#include <string.h>

#include "exec/blas.h"
#include "exec/layer.h"

static struct exec_attention attention_of(const struct exec_env *e)
{
    const struct exec_shape *s = &e->shape;

    return (struct exec_attention){ e->k, s->batch, s->seq, s->heads, s->kv_heads, s->d };
}

static size_t qkv_width(const struct exec_shape *s)
{
    return (s->heads + 2 * s->kv_heads) * s->d;
}

static size_t fc1_width(const struct exec_shape *s)
{
    return s->gated ? 2 * s->f : s->f;
}

/* theta = 10000^(-2 i / d), Su et al., RoFormer. */
static enum pt_status rope_init(struct exec_env *e, struct pt_error *err)
{
    const struct exec_shape *s = &e->shape;
    enum pt_status st =
        exec_alloc(&e->arena, EXEC_USE_WORKSPACE, s->seq * s->d, &e->rope, err);

    for (size_t t = 0; st == PT_OK && t < s->seq; t++)
        for (size_t i = 0; i < s->d / 2; i++) {
            double a = (double)t * pow(10000.0, -2.0 * (double)i / (double)s->d);

            e->rope[t * s->d + 2 * i] = (float)cos(a);
            e->rope[t * s->d + 2 * i + 1] = (float)sin(a);
        }
    return st;
}

enum pt_status exec_env_init(struct exec_env *e, struct pt_error *err)
{
    const struct exec_shape *s = &e->shape;
    struct exec_attention a = attention_of(e);
    size_t wide = s->f > s->heads * s->d ? s->f : s->heads * s->d;
    enum pt_status st;

    st = exec_alloc(&e->arena, EXEC_USE_WORKSPACE, s->T * s->h, &e->full, err);
    if (st == PT_OK)
        st = exec_alloc(&e->arena, EXEC_USE_WORKSPACE, s->T * wide, &e->wide, err);
    if (st == PT_OK)
        st = exec_alloc(&e->arena, EXEC_USE_WORKSPACE, exec_attention_scratch(&a),
                        &e->attention, err);
    if (st == PT_OK && !s->learned)
        st = rope_init(e, err);
    return st;
}

void exec_env_fini(struct exec_env *e)
{
    exec_release(&e->arena, e->full);
    exec_release(&e->arena, e->wide);
    exec_release(&e->arena, e->attention);
    exec_release(&e->arena, e->rope);
}

enum pt_status exec_gather_tokens(struct exec_env *e, const float *x, float *to,
                                  const float **full, struct pt_error *err)
{
    const struct exec_shape *s = &e->shape;
    struct exec_collective op = { EXEC_ALLGATHER, EXEC_F32, false, false, to,
                                  s->T * s->h,    NULL };

    *full = x;
    if (!s->sequence_parallel)
        return PT_OK;
    memcpy(to + s->tp_rank * s->Ts * s->h, x, s->Ts * s->h * sizeof(*x));
    *full = to;
    return exec_collective(e->tp, &op, err);
}

enum pt_status exec_sum_tokens(struct exec_env *e, float *full, const float **mine,
                               struct pt_error *err)
{
    const struct exec_shape *s = &e->shape;
    struct exec_collective op = { s->sequence_parallel ? EXEC_REDUCESCATTER
                                                       : EXEC_ALLREDUCE,
                                  EXEC_F32,
                                  false,
                                  false,
                                  full,
                                  s->T * s->h,
                                  NULL };

    *mine = s->sequence_parallel ? full + s->tp_rank * s->Ts * s->h : full;
    return exec_collective(e->tp, &op, err);
}

void exec_norm(const struct exec_env *e, float *y, float *mean, float *rstd,
               const float *x, const float *w, const float *b, size_t tokens)
{
    const struct exec_shape *s = &e->shape;

    if (s->rmsnorm)
        e->k->rmsnorm(y, rstd, x, w, tokens, s->h, s->eps);
    else
        e->k->layernorm(y, mean, rstd, x, w, b, tokens, s->h, s->eps);
}

void exec_norm_grad(const struct exec_env *e, float *dx, float *dw, float *db,
                    const float *dy, const float *x, const float *mean, const float *rstd,
                    const float *w, size_t tokens)
{
    const struct exec_shape *s = &e->shape;

    if (s->rmsnorm)
        e->k->rmsnorm_grad(dx, dw, dy, x, rstd, w, tokens, s->h);
    else
        e->k->layernorm_grad(dx, dw, db, dy, x, mean, rstd, w, tokens, s->h);
}

/* One allocation cut into pieces. */
struct part {
    float **p;
    size_t n;
};

static enum pt_status cut(struct exec_env *e, enum exec_use use, const struct part *parts,
                          size_t n_parts, float **block, struct pt_error *err)
{
    enum pt_status st;
    size_t total = 0;
    float *at;

    for (size_t i = 0; i < n_parts; i++)
        total += parts[i].n;
    st = exec_alloc(&e->arena, use, total, block, err);
    if (st != PT_OK)
        return st;
    at = *block;
    for (size_t i = 0; i < n_parts; i++) {
        *parts[i].p = parts[i].n > 0 ? at : NULL;
        at += parts[i].n;
    }
    return PT_OK;
}

#define N_PARTS(a) (sizeof(a) / sizeof((a)[0]))

static enum pt_status saved_alloc(struct exec_env *e, enum exec_keep keep,
                                  struct exec_saved *v, struct pt_error *err)
{
    const struct exec_shape *s = &e->shape;
    size_t core = keep == EXEC_KEEP_ALL, means = s->rmsnorm ? 0 : s->Ts;
    const struct part parts[] = {
        { &v->norm1, s->Ts * s->h },
        { &v->mean1, means },
        { &v->rstd1, s->Ts },
        { &v->qkv, s->T * qkv_width(s) },
        { &v->out, core * s->T * s->heads * s->d },
        { &v->lse, core * s->T * s->heads },
        { &v->mid, s->Ts * s->h },
        { &v->norm2, s->Ts * s->h },
        { &v->mean2, means },
        { &v->rstd2, s->Ts },
        { &v->fc1, s->T * fc1_width(s) },
        { &v->act, s->T * s->f },
    };

    return cut(e, EXEC_USE_ACTIVATIONS, parts, N_PARTS(parts), &v->block, err);
}

static enum pt_status pending_alloc(struct exec_env *e, bool core, struct exec_pending *p,
                                    struct pt_error *err)
{
    const struct exec_shape *s = &e->shape;
    size_t gathered = s->sequence_parallel ? s->T * s->h : 0;
    const struct part parts[] = {
        { &p->dy_full, gathered },
        { &p->dmid, s->Ts * s->h },
        { &p->dmid_full, gathered },
        { &p->dfc1, s->T * fc1_width(s) },
        { &p->dqkv, s->T * qkv_width(s) },
        { &p->out, core ? s->T * s->heads * s->d : 0 },
        { &p->lse, core ? s->T * s->heads : 0 },
        { &p->dnorm, 4 * s->h },
    };
    enum pt_status st = cut(e, EXEC_USE_WORKSPACE, parts, N_PARTS(parts), &p->block, err);

    if (st == PT_OK)
        memset(p->dnorm, 0, 4 * s->h * sizeof(float));
    return st;
}

void exec_saved_free(struct exec_env *e, struct exec_saved *v)
{
    exec_release(&e->arena, v->block);
    memset(v, 0, sizeof(*v));
}

void exec_pending_free(struct exec_env *e, struct exec_pending *p)
{
    exec_release(&e->arena, p->block);
    memset(p, 0, sizeof(*p));
}

static const float *tensor(const struct exec_unit *u, const float *w,
                           enum exec_slot_name slot)
{
    return u->slot[slot] == EXEC_ABSENT ? NULL : w + u->slot[slot];
}

static float *grad(const struct exec_unit *u, float *g, enum exec_slot_name slot)
{
    return u->slot[slot] == EXEC_ABSENT ? NULL : g + u->slot[slot];
}

/* y = x + full's own part + bias */
static void residual(const struct exec_env *e, float *y, const float *x,
                     const float *mine, const float *bias)
{
    const struct exec_shape *s = &e->shape;

    e->k->sum2(y, x, mine, s->Ts * s->h);
    if (bias != NULL)
        e->k->bias_add(y, bias, s->Ts, s->h);
}

/* qkv = norm1 Wqkv' + b, rotated where positions are rotary. */
static enum pt_status forward_qkv(struct exec_env *e, const struct exec_unit *u,
                                  const float *w, struct exec_saved *v,
                                  struct pt_error *err)
{
    const struct exec_shape *s = &e->shape;
    size_t width = qkv_width(s);
    const float *in;
    enum pt_status st = exec_gather_tokens(e, v->norm1, e->full, &in, err);

    if (st != PT_OK)
        return st;
    exec_linear(v->qkv, in, tensor(u, w, EXEC_Q_W), s->T, s->h, width);
    if (s->bias)
        e->k->bias_add(v->qkv, tensor(u, w, EXEC_Q_B), s->T, width);
    if (e->rope != NULL)
        e->k->rope(v->qkv, e->rope, s->T, s->seq, s->heads + s->kv_heads, s->d, width,
                   false);
    return PT_OK;
}

static enum pt_status forward_mlp(struct exec_env *e, const struct exec_unit *u,
                                  const float *w, struct exec_saved *v,
                                  struct pt_error *err)
{
    const struct exec_shape *s = &e->shape;
    const float *in;
    enum pt_status st = exec_gather_tokens(e, v->norm2, e->full, &in, err);

    if (st != PT_OK)
        return st;
    exec_linear(v->fc1, in, tensor(u, w, EXEC_FC1_W), s->T, s->h, fc1_width(s));
    if (s->bias)
        e->k->bias_add(v->fc1, tensor(u, w, EXEC_FC1_B), s->T, fc1_width(s));
    if (s->gated)
        e->k->swiglu(v->act, v->fc1, s->T, s->f);
    else
        e->k->gelu(v->act, v->fc1, s->T * s->f);
    return PT_OK;
}

enum pt_status exec_layer_forward(struct exec_env *e, const struct exec_unit *u,
                                  const float *w, const float *x, float *y,
                                  enum exec_keep keep, struct exec_saved *v,
                                  struct pt_error *err)
{
    const struct exec_shape *s = &e->shape;
    struct exec_attention a = attention_of(e);
    float *core_out, *core_lse;
    const float *mine;
    enum pt_status st = saved_alloc(e, keep, v, err);

    if (st != PT_OK)
        return st;
    exec_norm(e, v->norm1, v->mean1, v->rstd1, x, tensor(u, w, EXEC_LN1_W),
              tensor(u, w, EXEC_LN1_B), s->Ts);
    if ((st = forward_qkv(e, u, w, v, err)))
        return st;
    /* without a place for the core's output it goes where act will be, or wide */
    core_out = v->out != NULL ? v->out : e->wide;
    core_lse = v->lse != NULL ? v->lse : v->fc1;
    exec_attention_forward(&a, v->qkv, core_out, core_lse, e->attention);
    exec_linear(e->full, core_out, tensor(u, w, EXEC_PROJ_W), s->T, s->heads * s->d,
                s->h);
    if ((st = exec_sum_tokens(e, e->full, &mine, err)))
        return st;
    residual(e, v->mid, x, mine, tensor(u, w, EXEC_PROJ_B));
    exec_norm(e, v->norm2, v->mean2, v->rstd2, v->mid, tensor(u, w, EXEC_LN2_W),
              tensor(u, w, EXEC_LN2_B), s->Ts);
    if ((st = forward_mlp(e, u, w, v, err)))
        return st;
    if (y == NULL)
        return PT_OK;
    exec_linear(e->full, v->act, tensor(u, w, EXEC_FC2_W), s->T, s->f, s->h);
    if ((st = exec_sum_tokens(e, e->full, &mine, err)))
        return st;
    residual(e, y, v->mid, mine, tensor(u, w, EXEC_FC2_B));
    return PT_OK;
}

static enum pt_status mlp_input(struct exec_env *e, const struct exec_unit *u,
                                const float *w, const float *dy,
                                const struct exec_saved *v, struct exec_pending *p,
                                struct pt_error *err)
{
    const struct exec_shape *s = &e->shape;
    const float *dy_full, *mine;
    enum pt_status st = exec_gather_tokens(e, dy, p->dy_full, &dy_full, err);

    if (st != PT_OK)
        return st;
    exec_linear_input(e->wide, dy_full, tensor(u, w, EXEC_FC2_W), s->T, s->f, s->h,
                      false);
    if (s->gated)
        e->k->swiglu_grad(p->dfc1, e->wide, v->fc1, s->T, s->f);
    else
        e->k->gelu_grad(p->dfc1, e->wide, v->fc1, s->T * s->f);
    exec_linear_input(e->full, p->dfc1, tensor(u, w, EXEC_FC1_W), s->T, s->h,
                      fc1_width(s), false);
    if ((st = exec_sum_tokens(e, e->full, &mine, err)))
        return st;
    memcpy(p->dmid, dy, s->Ts * s->h * sizeof(*dy));
    exec_norm_grad(e, p->dmid, p->dnorm + s->h, p->dnorm + 3 * s->h, mine, v->mid,
                   v->mean2, v->rstd2, tensor(u, w, EXEC_LN2_W), s->Ts);
    return PT_OK;
}

enum pt_status exec_layer_backward_input(struct exec_env *e, const struct exec_unit *u,
                                         const float *w, const float *x, const float *dy,
                                         const struct exec_saved *v,
                                         struct exec_pending *p, float *dx,
                                         struct pt_error *err)
{
    const struct exec_shape *s = &e->shape;
    struct exec_attention a = attention_of(e);
    const float *dmid_full, *mine;
    const float *out, *lse;
    enum pt_status st = pending_alloc(e, v->out == NULL, p, err);

    if (st == PT_OK)
        st = mlp_input(e, u, w, dy, v, p, err);
    if (st == PT_OK)
        st = exec_gather_tokens(e, p->dmid, p->dmid_full, &dmid_full, err);
    if (st != PT_OK)
        return st;
    if (v->out == NULL)
        exec_attention_forward(&a, v->qkv, p->out, p->lse, e->attention);
    out = v->out != NULL ? v->out : p->out;
    lse = v->lse != NULL ? v->lse : p->lse;
    exec_linear_input(e->wide, dmid_full, tensor(u, w, EXEC_PROJ_W), s->T,
                      s->heads * s->d, s->h, false);
    exec_attention_backward(&a, v->qkv, out, lse, e->wide, p->dqkv, e->attention);
    if (e->rope != NULL)
        e->k->rope(p->dqkv, e->rope, s->T, s->seq, s->heads + s->kv_heads, s->d,
                   qkv_width(s), true);
    exec_linear_input(e->full, p->dqkv, tensor(u, w, EXEC_Q_W), s->T, s->h, qkv_width(s),
                      false);
    if ((st = exec_sum_tokens(e, e->full, &mine, err)))
        return st;
    memcpy(dx, p->dmid, s->Ts * s->h * sizeof(*dx));
    exec_norm_grad(e, dx, p->dnorm, p->dnorm + 2 * s->h, mine, x, v->mean1, v->rstd1,
                   tensor(u, w, EXEC_LN1_W), s->Ts);
    return PT_OK;
}

enum pt_status exec_layer_backward_weight(struct exec_env *e, const struct exec_unit *u,
                                          float *g, const float *dy,
                                          const struct exec_saved *v,
                                          const struct exec_pending *p,
                                          struct pt_error *err)
{
    const struct exec_shape *s = &e->shape;
    const float *in, *out = v->out != NULL ? v->out : p->out;
    const float *dy_full = s->sequence_parallel ? p->dy_full : dy;
    const float *dmid_full = s->sequence_parallel ? p->dmid_full : p->dmid;
    enum pt_status st;

    exec_linear_weight(grad(u, g, EXEC_FC2_W), dy_full, v->act, s->T, s->f, s->h);
    if ((st = exec_gather_tokens(e, v->norm2, e->full, &in, err)))
        return st;
    exec_linear_weight(grad(u, g, EXEC_FC1_W), p->dfc1, in, s->T, s->h, fc1_width(s));
    exec_linear_weight(grad(u, g, EXEC_PROJ_W), dmid_full, out, s->T, s->heads * s->d,
                       s->h);
    if ((st = exec_gather_tokens(e, v->norm1, e->full, &in, err)))
        return st;
    exec_linear_weight(grad(u, g, EXEC_Q_W), p->dqkv, in, s->T, s->h, qkv_width(s));
    e->k->add(grad(u, g, EXEC_LN1_W), p->dnorm, s->h);
    e->k->add(grad(u, g, EXEC_LN2_W), p->dnorm + s->h, s->h);
    if (u->slot[EXEC_LN1_B] != EXEC_ABSENT) {
        e->k->add(grad(u, g, EXEC_LN1_B), p->dnorm + 2 * s->h, s->h);
        e->k->add(grad(u, g, EXEC_LN2_B), p->dnorm + 3 * s->h, s->h);
    }
    if (s->bias) {
        e->k->bias_grad(grad(u, g, EXEC_FC2_B), dy, s->Ts, s->h);
        e->k->bias_grad(grad(u, g, EXEC_FC1_B), p->dfc1, s->T, fc1_width(s));
        e->k->bias_grad(grad(u, g, EXEC_PROJ_B), p->dmid, s->Ts, s->h);
        e->k->bias_grad(grad(u, g, EXEC_Q_B), p->dqkv, s->T, qkv_width(s));
    }
    return PT_OK;
}
