/* The executor's buffers, in floats (exec/layer.c, exec/ends.c, exec/held.c):
 *
 *   saved by a layer      Ts (3h + 2 or 4) + T (qkv + out + heads + fc1 + act), and its
 * input Ts h between its two backward parts   T (fc1 + qkv) + Ts h + 4h, twice T h with
 * sequence parallelism, out and log-sums again where the core is recomputed, and a
 * gradient Ts h on either side head                  input, output and gradient 3 Ts h,
 * logits T V/tp workspace             T h, T max(f, out), two blocks of 128 queries'
 * scores, rotary angles
 *
 * Ts = T / tp with sequence parallelism, else T. A tied head keeps a gradient of its own.
 */
#include "config.h"

#include <math.h>
#include <string.h>

#include "libpt/cpu_model.h"

#define FLOAT   4.0
#define QUERIES 128.0  /* exec/attention.c */
#define CELL    2048.0 /* exec/unit.h */
#define CONTEXT 4e7    /* program, libraries and their buffers, as resident pages show */

bool pt_is_cpu_stack(const struct pt_setup *setup)
{
    return strcmp(setup->stack.key, PT_CPU_STACK) == 0 && setup->job.precision == PT_FP32;
}

/* Floats of one rank. */
struct sizes {
    double T, Ts, h, out, qkv, fc1, f, heads,
        rows; /* rows: of the vocabulary, padding too */
    double layer, layer_shared, positions,
        norm; /* parameters; shared: alike on all tp ranks */
    double saved, core, pending, sp_buffers;
    bool sp;
};

static void sizes_of(const struct pt_setup *setup, const struct pt_layout *l,
                     struct sizes *z)
{
    const struct pt_model *m = &setup->model;
    double tp = l->tp, kv;

    z->sp = l->sequence_parallel && l->tp > 1;
    z->T = (double)setup->job.seq * l->micro_batch;
    z->Ts = z->sp ? z->T / tp : z->T;
    z->h = m->hidden;
    z->heads = m->heads / tp;
    z->out = z->heads * m->head_dim;
    kv = m->kv_heads / tp * m->head_dim;
    z->qkv = z->out + 2 * kv;
    z->f = m->ffn / tp;
    z->fc1 = m->gated ? 2 * z->f : z->f;
    z->rows = (double)pt_vocab_padded(m->vocab, setup->job.vocab_unit, l->tp) / tp;
    z->norm = m->bias && !m->rmsnorm ? 2 * z->h : z->h;
    z->layer_shared = 2 * z->norm + (m->bias ? 2 * z->h : 0);
    z->layer = z->layer_shared + z->h * (z->qkv + z->out + z->fc1 + z->f) +
               (m->bias ? z->qkv + z->fc1 : 0);
    z->positions = m->learned_positions ? fmax(m->max_seq, setup->job.seq) * z->h : 0;
    z->core = z->T * (z->out + z->heads);
    z->saved = z->Ts * (3 * z->h + (m->rmsnorm ? 2 : 4)) +
               z->T * (z->qkv + z->fc1 + z->f) + z->core;
    z->sp_buffers = z->sp ? 2 * z->T * z->h : 0;
    z->pending = z->T * (z->fc1 + z->qkv) + z->Ts * z->h + 4 * z->h + z->sp_buffers;
}

static double workspace(const struct pt_setup *setup, const struct sizes *z)
{
    double seq = setup->job.seq, rows = fmin(seq, QUERIES);

    return z->T * z->h + z->T * fmax(z->f, z->out) + 2 * rows * (seq + 1) +
           (setup->model.learned_positions ? 0 : seq * setup->model.head_dim);
}

/* Bytes of `params` parameters as weight, gradient, moments under ZeRO. */
static void states(double params, uint32_t zero, double dp, double out[3])
{
    out[0] = FLOAT * params / (zero >= 3 ? dp : 1);
    out[1] = FLOAT * params / (zero >= 2 ? dp : 1);
    out[2] = 2 * FLOAT * params / (zero >= 1 ? dp : 1);
}

/* The ends' parameters: embedding and positions; norm and head, of which a tied head
 * beside its embedding has a gradient only. */
static void end_states(const struct pt_setup *setup, const struct pt_layout *l,
                       const struct sizes *z, uint32_t zero, struct pt_memory_terms *t)
{
    bool beside = setup->model.tied &&
                  (l->pp == 1 || (pt_schedule_is_v(l->schedule) && l->vpp == 2));
    double head[3];

    states(z->rows * z->h + z->positions, zero, l->dp, t->embedding_state_bytes);
    states(z->norm, zero, l->dp, t->head_state_bytes);
    states(z->rows * z->h, zero, l->dp, head);
    for (int i = 0; i < 3; i++)
        t->head_state_bytes[i] += beside && i != 1 ? 0 : head[i];
}

void pt_cpu_memory_terms(const struct pt_setup *setup, const struct pt_layout *l,
                         struct pt_memory_terms *t)
{
    const int k = PT_LAYER_DENSE;
    uint32_t zero = l->dp > 1 ? l->zero : 0;
    double checkpoint, pending, state[3];
    struct sizes z;

    sizes_of(setup, l, &z);
    checkpoint = z.Ts * z.h;
    states(z.layer, zero, l->dp, state);
    t->weight_bytes[k] = state[0];
    t->grad_bytes[k] = state[1];
    t->optimizer_bytes[k] = state[2];
    end_states(setup, l, &z, zero, t);
    pending = z.pending + (l->recompute == PT_RECOMPUTE_SELECTIVE ? z.core : 0) +
              2 * z.Ts * z.h;
    t->activation_bytes[k] = FLOAT * (z.saved + checkpoint);
    t->checkpoint_bytes[k] = FLOAT * checkpoint;
    if (l->recompute == PT_RECOMPUTE_SELECTIVE)
        t->activation_bytes[k] -= FLOAT * z.core;
    if (l->recompute == PT_RECOMPUTE_HALF)
        t->activation_bytes[k] = FLOAT * (0.5 * z.saved + checkpoint);
    t->backward_bytes =
        FLOAT * (pending + (l->recompute == PT_RECOMPUTE_HALF ? z.saved : 0));
    t->working_bytes = FLOAT * z.saved;
    /* When a zero-bubble pipeline's last stage ends an input part, all its micro-batches
     * are between the parts: they hold what backward needs and what it made, but not the
     * input. */
    if (pt_schedule_splits_backward(l->schedule) && l->pp > 1) {
        double made = pending - z.Ts * z.h - checkpoint;

        t->activation_bytes[k] +=
            FLOAT * (made + (l->recompute == PT_RECOMPUTE_HALF ? 0.5 * z.saved : 0));
        t->checkpoint_bytes[k] += FLOAT * (made + z.saved);
        t->backward_bytes = FLOAT * 2 * z.Ts * z.h;
        t->working_bytes = 0;
    }
    t->logits_bytes = FLOAT * (z.T * z.rows + z.Ts * z.h + fmax(5 * z.T, z.Ts * z.h));
    t->head_saved_bytes = FLOAT * z.Ts * (z.h + 2);
    t->embedding_activation_bytes = t->embedding_backward_bytes = 0;
    /* ZeRO-2 and 3: the whole gradient of a unit that fills and, while it is reduced, of
     * the one before, whose activations are free by then; ZeRO-3: the weights in use */
    if (zero >= 2) {
        t->backward_bytes += FLOAT * (z.layer + fmax(0, z.layer - z.saved));
        t->logits_bytes += FLOAT * (z.rows * z.h + z.norm);
        t->embedding_backward_bytes = FLOAT * (z.rows * z.h + z.positions);
        t->working_bytes += FLOAT * fmin(z.layer, z.saved); /* nothing was free there */
    }
    if (zero ==
        3) /* a layer's weights are gone before its gradient comes, the head's not */
        t->logits_bytes += FLOAT * (z.rows * z.h + z.norm);
    t->gather_bytes = t->gather_ends_bytes[0] = t->gather_ends_bytes[1] = 0;
    t->split_freed = 0;
    t->workspace_bytes = FLOAT * workspace(setup, &z);
    t->bucket_bytes = t->fragmentation_bytes = t->fragmentation_frac = 0;
    t->communicator_bytes = 0;
    t->context_bytes = CONTEXT;
    /* a host copy of weights and gradients beside the moments */
    t->host_rank_bytes = 0;
    t->host_bytes_per_offloaded_byte = 2;
}

/* Sent by one rank of a group of g for a collective over `floats`. */
static double all_reduce(double floats, double g)
{
    return FLOAT * floats * 2 * (g - 1) / g;
}

static double gather(double floats, double g)
{
    return FLOAT * floats * (g - 1) / g;
}

struct part { /* what one stage holds */
    double layers, recomputed;
    bool first, last, beside; /* beside: a tied head on its embedding's stage */
};

static double tp_volume(const struct pt_setup *setup, const struct pt_layout *l,
                        const struct sizes *z, const struct part *p, double m,
                        uint32_t zero)
{
    double tp = l->tp, S = z->T * z->h, sum = z->sp ? gather(S, tp) : all_reduce(S, tp);
    double up = z->sp ? gather(S, tp) : 0, shared = p->layers * z->layer_shared, bytes;

    if (l->tp == 1)
        return 0;
    /* forward 2, backward 4 gathers; 2 sums each way; again all but the last sum */
    bytes = p->layers * (6 * up + 4 * sum) + p->recomputed * (2 * up + sum);
    if (p->first)
        bytes += sum + up;
    if (p->last)
        bytes += 2 * up + sum + all_reduce(z->T, tp) + 2 * all_reduce(2 * z->T, tp);
    bytes *= m;
    shared += (p->first ? z->positions : 0) + (p->last ? z->norm : 0);
    if (z->sp)
        bytes += all_reduce(shared, tp) * (zero >= 2 ? m : 1);
    (void)setup;
    return bytes;
}

static double dp_volume(const struct pt_layout *l, const struct sizes *z,
                        const struct part *p, double m, uint32_t zero)
{
    double dp = l->dp, vocab = z->rows * z->h;
    double held = p->layers * z->layer, uses, trained;

    if (l->dp == 1)
        return 0;
    uses = 2 * held;
    trained = held + (p->first ? vocab + z->positions : 0) +
              (p->last ? z->norm + (p->beside ? 0 : vocab) : 0);
    held += (p->first ? vocab + z->positions : 0) + (p->last ? vocab + z->norm : 0);
    uses += (p->first ? vocab + z->positions : 0) + (p->last ? 2 * (vocab + z->norm) : 0);
    if (zero == 0)
        return all_reduce(held, dp);
    return gather(held, dp) * (zero >= 2 ? m : 1) +
           (zero == 3 ? m * gather(uses, dp) : gather(trained, dp));
}

/* The largest shard of the embedding: edges lie on cells. */
static double tied_floats(const struct sizes *z, const struct pt_layout *l, uint32_t zero)
{
    double n = z->rows * z->h, largest = 0, before = 0;

    if (zero == 0)
        return n;
    for (uint32_t r = 1; r <= l->dp; r++) {
        double each = floor(n / l->dp), more = n - each * l->dp;
        double edge = r == l->dp ? n : floor((each * r + fmin(r, more)) / CELL) * CELL;

        largest = fmax(largest, edge - before);
        before = edge;
    }
    return largest;
}

void pt_cpu_volume(const struct pt_setup *setup, const struct pt_layout *l,
                   const struct pt_split *split, struct pt_cpu_volume *v)
{
    uint32_t pieces = l->pp * l->vpp, zero = l->dp > 1 ? l->zero : 0;
    uint32_t first = pt_split_order(l, 0) % l->pp;
    uint32_t last = pt_split_order(l, pieces - 1) % l->pp;
    double m = pt_micro_batches(&setup->job, l);
    struct sizes z;

    *v = (struct pt_cpu_volume){ 0 };
    sizes_of(setup, l, &z);
    for (uint32_t s = 0; s < l->pp; s++) {
        struct part p = { 0, 0, s == first, s == last,
                          setup->model.tied && first == last };
        double crossings = 0;

        for (uint32_t k = 0; k < pieces; k++) {
            const struct pt_chunk *c = &split->chunk[pt_split_order(l, k)];

            if (pt_split_order(l, k) % l->pp != s)
                continue;
            p.layers += c->layers[PT_LAYER_DENSE];
            p.recomputed += l->recompute == PT_RECOMPUTE_HALF
                                ? ceil(c->layers[PT_LAYER_DENSE] / 2.0)
                                : c->recomputed[PT_LAYER_DENSE];
            crossings += k + 1 < pieces && pt_split_order(l, k + 1) % l->pp != s;
            crossings += k > 0 && pt_split_order(l, k - 1) % l->pp != s;
        }
        v->tp = fmax(v->tp, tp_volume(setup, l, &z, &p, m, zero));
        v->dp = fmax(v->dp, dp_volume(l, &z, &p, m, zero));
        v->pp = fmax(v->pp, FLOAT * m * crossings * z.Ts * z.h);
    }
    if (setup->model.tied && first != last)
        v->tied = FLOAT * tied_floats(&z, l, zero);
}
