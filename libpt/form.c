/* Schedules: 1F1B and GPipe take m slots of the slowest stage plus the others once
 * (Narayanan et al. 2021, arXiv:2104.04473, eq. 2); interleaving divides the second part
 * by v (ibid., section 2.2). Zero bubble: Qi et al. 2023, arXiv:2401.10241, section 2.3
 * (ZB-H1, ZB-H2); Qi et al. 2024, arXiv:2405.15362, table 1 (V schedules). The closed
 * forms hold for m large enough only: clamped at no bubble, and never below the chain of
 * forwards and input gradients that the first and last micro-batch must run through. The
 * step ends when its last pass does: unlike the bubble rates of those papers, which count
 * from a stage's own first forward, the wait for that forward is part of it. */
#include "config.h"

#include <math.h>

#include "libpt/form.h"
#include "libpt/memory.h"

/* Warm-up and drain: every other stage's work once (a v-th of it when interleaved), less
 * the weight gradients that fill it: `free_w` of them per stage but one. `kept` of it
 * stays. */
static struct pt_pipeline_row drain(const struct pt_layout *l, const struct pt_costs *c,
                                    double overhead_s, double v, double free_w,
                                    double kept)
{
    struct pt_pipeline_row row = { 0 };
    bool split = pt_schedule_splits_backward(l->schedule);
    double p = l->pp, m = c->micro_batches;
    /* Transfers of the first and last micro-batch show in full; with a split backward
     * those of the steady state hide behind weight gradients, and the chain crosses each
     * border twice, once where more forwards run ahead. */
    double hops = !split ? 2.0 * (1.0 - c->p2p_exposed_frac) : kept < 1.0 ? 2.0 : 4.0;

    row.slowest = m - kept / v;
    row.forward = row.input = kept / v;
    row.weight = kept * (1.0 / v - free_w * (p - 1.0) / p);
    row.constant_s = kept * p * overhead_s / v + (p - 1.0) * c->p2p_s * hops;
    /* In warm-up and drain a stage sends one way only: half of what overhead_s counts. */
    if (!split)
        row.constant_s -= p / v * c->p2p_s * c->p2p_exposed_frac * l->vpp;
    return row;
}

/* A row of means: every coefficient times the mean over the stages, transfers in hops. */
struct mean_row {
    double forward, input, weight, hops;
};

static void add_means(const struct mean_row *mean, double times,
                      const struct pt_layout *l, const struct pt_costs *c,
                      struct pt_pipeline_row *row)
{
    double share = times / l->pp;

    row->forward += share * mean->forward;
    row->input += share * mean->input;
    row->weight += share * mean->weight;
    row->constant_s += times * (mean->hops * c->p2p_s +
                                (mean->forward + mean->input) * c->micro_batch_s / 2.0);
}

/* ZB-H2 and the V schedules. `ramp` and `scarce_ramp` per stage but one add to m slots of
 * the slowest stage; where a schedule holds N < p activations its ramp grows as p/N.
 *
 * Where an activation waits for its slot longer than N of them last, memory sets the pace
 * instead: a micro-batch's two chunks are held for p (F + I) + W and 2 p transfers all
 * stages together, in 2 N halves, so that the period is about p/N (F/2 + I/2 + ...): as a
 * schedule made for F = I = W leaves holes wherever they differ, the factors are larger.
 * Fitted to the makespans of the simulated instruction lists of about 500 random plans
 * each (p 2 to 16, m from p to 6 p, I/F 0.5 to 2.5, transfers below 3% of a slot, so that
 * their counts are bounds set by hand). ZB-H2's are exact for equal stages: what the last
 * stage waits for its first forward, or what three weight gradients do not fill. */
struct split_shape {
    struct mean_row ramp, scarce_ramp; /* x (p - 1), x (p - 1) p/N */
    double slot;                       /* the second row: x m times the slowest stage */
    struct mean_row period, fill;      /* x m p/N, x (p - 1) */
};

static const struct split_shape *split_shape(enum pt_schedule_kind kind)
{
    static const struct split_shape h2 = {
        .ramp = { 1.0, 0.0, 0.0, 1.0 },
        .slot = 1.0,
        .fill = { 1.0, 1.0, -2.0, 2.0 },
    };
    static const struct split_shape zb_v = { .ramp = { 0.35, 0.18, -0.18, 4.0 } };
    static const struct split_shape v_half = {
        .ramp = { 0.0, 0.0, -0.49, 4.0 },
        .scarce_ramp = { 0.75, 0.12, 0.0, 0.0 },
        .period = { 0.76, 0.99, 0.43, 3.0 },
        .fill = { 1.2, 0.0, -0.18, 4.0 },
    };
    static const struct split_shape v_min = {
        .ramp = { 0.0, 0.0, -0.32, 4.0 },
        .scarce_ramp = { 0.63, 0.04, 0.0, 0.0 },
        .slot = 0.034,
        .period = { 0.75, 0.89, 0.31, 3.0 },
        .fill = { 0.09, 0.34, 0.32, 4.0 },
    };

    switch (kind) {
    case PT_SCHEDULE_ZB_H2:
        return &h2;
    case PT_SCHEDULE_ZB_V:
        return &zb_v;
    case PT_SCHEDULE_V_HALF:
        return &v_half;
    case PT_SCHEDULE_V_MIN:
        return &v_min;
    default:
        return NULL;
    }
}

/* Stages per activation that the schedule itself can hold, however few there are. */
static double scarcity(const struct pt_layout *l)
{
    struct pt_layout plain = *l;

    plain.vocab = PT_VOCAB_ENDS;
    return l->pp / pt_in_flight(&plain, UINT32_MAX, 0);
}

static void split_rows(const struct split_shape *shape, const struct pt_layout *l,
                       const struct pt_costs *c, struct pt_form *f)
{
    double m = c->micro_batches, r = l->pp - 1.0, scarce = scarcity(l);
    struct pt_pipeline_row row = { .slowest = m };

    add_means(&shape->ramp, r, l, c, &row);
    add_means(&shape->scarce_ramp, r * scarce, l, c, &row);
    f->pipeline[f->n_pipeline++] = row;
    if (shape->slot <= 0.0 && shape->period.input <= 0.0)
        return;
    row = (struct pt_pipeline_row){ .slowest = m * shape->slot };
    add_means(&shape->period, m * scarce, l, c, &row);
    add_means(&shape->fill, r, l, c, &row);
    f->pipeline[f->n_pipeline++] = row;
}

/* The chain of the first micro-batch's forwards and the last one's input gradients. In
 * between the last stage alternates both; a V's last piece is half a stage's, and the
 * chain crosses twice as many borders. */
static struct pt_pipeline_row chain(const struct pt_layout *l, const struct pt_costs *c,
                                    double overhead_s)
{
    double p = l->pp, v = pt_schedule_is_v(l->schedule) ? 2.0 : 1.0;

    return (struct pt_pipeline_row){
        .constant_s = p * overhead_s + (p - 1.0) * 2.0 * v * c->p2p_s,
        .widest = (c->micro_batches - 1.0) / v,
        .forward = 1.0,
        .input = 1.0,
        .weight = 1.0 / (p * v),
    };
}

static void pipeline_rows(const struct pt_layout *l, const struct pt_costs *c,
                          struct pt_form *f)
{
    double m = c->micro_batches, p = l->pp, slack = 1.0 + c->slack_frac;
    struct pt_pipeline_row *row = f->pipeline;

    row[f->n_pipeline++] = (struct pt_pipeline_row){ .slowest = m };
    if (l->pp > 1) {
        const struct split_shape *shape = split_shape(l->schedule);
        double v = l->schedule == PT_SCHEDULE_INTERLEAVED ? l->vpp : 1.0, kept = 1.0;
        bool split = pt_schedule_splits_backward(l->schedule);

        /* A list scheduler that may keep more activations than stages runs more forwards
         * ahead: with nearly twice as many, 2% of a pass are left (ZB-2p,
         * arXiv:2401.10241, table 5). */
        if (l->schedule == PT_SCHEDULE_ZB_AUTO && l->max_in_flight > l->pp)
            kept = fmax(0.02, 1.0 - (l->max_in_flight - p) / (p - 1.0));
        if (shape != NULL) /* ZB-H1 and zb-auto fill two weight gradients in */
            split_rows(shape, l, c, f);
        else
            row[f->n_pipeline++] =
                drain(l, c, f->overhead_s, v, split && kept >= 1.0 ? 2.0 : 0.0, kept);
        /* Long weight gradients leave the drain to the input gradients alone. */
        if (l->schedule == PT_SCHEDULE_ZB_H1) {
            struct pt_pipeline_row last = { .slowest = m };

            add_means(&(struct mean_row){ .input = 1.0, .hops = 1.0 }, p - 1.0, l, c,
                      &last);
            row[f->n_pipeline++] = last;
        }
        if (split)
            row[f->n_pipeline++] = chain(l, c, f->overhead_s);
        /* A link carries one transfer after another, hidden or not: each direction has
         * every chunk's activations or gradients once per micro-batch. */
        row[f->n_pipeline++] =
            (struct pt_pipeline_row){ .constant_s = m * l->vpp * c->p2p_s };
    }
    for (unsigned j = 0; j < f->n_pipeline; j++) {
        row[j].constant_s *= slack;
        row[j].slowest *= slack;
        row[j].widest *= slack;
        row[j].forward *= slack;
        row[j].input *= slack;
        row[j].weight *= slack;
    }
}

/* Reduction: the part that cannot overlap, and what the last backward does not cover.
 * Update: the GPU's pass or the host's, whichever ends later, then the gathering of
 * parameters. What is offloaded does not shorten the GPU's pass: offloading is for room,
 * and a plan with room to spare does without. */
static void tail_rows(const struct pt_costs *c, struct pt_form *f)
{
    double h = c->reduce_hidden_frac;
    struct pt_stage_row *r = f->reduce, *u = f->update;

    f->n_reduce = f->n_update = 2;
    r[0].constant_s = (1.0 - h) * (c->reduce_fixed_s[0] + c->reduce_fixed_s[1]);
    r[1].constant_s = c->reduce_fixed_s[0] + c->reduce_fixed_s[1];
    r[1].input = r[1].weight = -1.0;
    for (int i = 0; i < 2; i++) {
        r[0].param_s[i] = (1.0 - h) * c->reduce_s_per_param[i];
        r[1].param_s[i] = c->reduce_s_per_param[i];
        u[0].param_s[i] = c->gather_s_per_param[i] + c->optimizer_s_per_param[i];
        u[1].param_s[i] = c->gather_s_per_param[i];
        u[1].offloaded_s[i] =
            c->offload_copy_s_per_param[i] + c->offload_cpu_s_per_param[i];
    }
}

void pt_form_init(const struct pt_layout *layout, const struct pt_costs *costs,
                  struct pt_form *form)
{
    *form = (struct pt_form){ 0 };
    form->overhead_s = costs->micro_batch_s;
    if (layout->pp > 1 && !pt_schedule_splits_backward(layout->schedule))
        form->overhead_s += 2.0 * layout->vpp * costs->p2p_s * costs->p2p_exposed_frac;
    pipeline_rows(layout, costs, form);
    tail_rows(costs, form);
    form->fixed_s =
        costs->norm_s + costs->step_s + (layout->pp > 1 ? costs->tied_s : 0.0);
}

static double stage_value(const struct pt_stage_row *row, unsigned n,
                          const struct pt_stage_load *s)
{
    double best = 0.0;

    for (unsigned j = 0; j < n; j++) {
        double v = row[j].constant_s + row[j].forward * s->forward_s +
                   row[j].input * s->input_s + row[j].weight * s->weight_s;

        for (int i = 0; i < 2; i++)
            v += s->params[i] *
                 (row[j].param_s[i] + s->offload_frac * row[j].offloaded_s[i]);
        if (v > best)
            best = v;
    }
    return best;
}

void pt_form_value(const struct pt_form *form, const struct pt_stage_load *stage,
                   uint32_t pp, struct pt_form_value *value)
{
    double slowest = 0.0, widest = 0.0, f = 0.0, b = 0.0, w = 0.0;

    *value = (struct pt_form_value){ 0 };
    for (uint32_t s = 0; s < pp; s++) {
        const struct pt_stage_load *x = &stage[s];
        double tau = x->forward_s + x->input_s + x->weight_s + form->overhead_s;
        double wide = x->forward_s + x->input_s;
        double reduce = stage_value(form->reduce, form->n_reduce, x);
        double update = stage_value(form->update, form->n_update, x);

        f += x->forward_s;
        b += x->input_s;
        w += x->weight_s;
        if (tau > slowest) {
            slowest = tau;
            value->slowest_stage = s;
        }
        widest = wide > widest ? wide : widest;
        value->reduce_s = reduce > value->reduce_s ? reduce : value->reduce_s;
        value->update_s = update > value->update_s ? update : value->update_s;
    }
    for (unsigned j = 0; j < form->n_pipeline; j++) {
        const struct pt_pipeline_row *r = &form->pipeline[j];
        double v = r->constant_s + r->slowest * slowest + r->widest * widest +
                   r->forward * f + r->input * b + r->weight * w;

        value->pipeline_s = v > value->pipeline_s ? v : value->pipeline_s;
    }
    value->step_s = value->pipeline_s + value->reduce_s + value->update_s + form->fixed_s;
}

static void add_end(struct pt_stage_load *load, const struct pt_time *t, double params,
                    double share)
{
    load->forward_s += share * (t->forward_s + t->forward_comm_s);
    load->input_s += share * (t->input_s + t->input_comm_s);
    load->weight_s += share * t->weight_s;
    load->params[0] += share * params;
}

void pt_stage_loads(const struct pt_setup *setup, const struct pt_layout *layout,
                    const struct pt_costs *costs, const struct pt_split *split,
                    struct pt_stage_load *load)
{
    struct pt_rank_params par;
    uint32_t pp = layout->pp;

    pt_rank_params(setup, layout, &par);
    for (uint32_t s = 0; s < pp; s++) {
        load[s] = (struct pt_stage_load){ .offload_frac = split->offload_frac[s] };
        for (uint32_t c = 0; c < split->vpp; c++)
            for (int k = 0; k < PT_N_LAYER_KINDS; k++) {
                const struct pt_chunk *chunk = &split->chunk[c * pp + s];
                const struct pt_time *t = &costs->layer[k];
                double n = chunk->layers[k], r = chunk->recomputed[k];

                load[s].forward_s += n * (t->forward_s + t->forward_comm_s);
                load[s].input_s += n * (t->input_s + t->input_comm_s) +
                                   (n - r) * costs->recompute_s[k] +
                                   r * costs->recompute_full_s[k];
                load[s].weight_s += n * t->weight_s;
                load[s].params[0] += n * par.layer[k][0];
                load[s].params[1] += n * par.layer[k][1];
            }
    }
    if (layout->vocab !=
        PT_VOCAB_ENDS) { /* embedding and head are divided over the stages */
        for (uint32_t s = 0; s < pp; s++) {
            add_end(&load[s], &costs->embedding, par.embedding, 1.0 / pp);
            add_end(&load[s], &costs->head, par.head, 1.0 / pp);
        }
        return;
    }
    add_end(&load[0], &costs->embedding, par.embedding, 1.0);
    add_end(&load[pt_split_order(layout, pp * layout->vpp - 1) % pp], &costs->head,
            par.head, 1.0);
}

void pt_rank_params(const struct pt_setup *setup, const struct pt_layout *layout,
                    struct pt_rank_params *params)
{
    const struct pt_model *m = &setup->model;
    struct pt_params p;
    double tp = layout->tp, ep = layout->ep, kv = 1.0;
    double pad = (double)pt_vocab_padded(m->vocab, setup->job.vocab_unit, layout->tp) /
                 (double)m->vocab;

    pt_model_params(m, &p);
    *params = (struct pt_rank_params){ 0 };
    if (layout->tp > m->kv_heads && m->kv_lora == 0) /* replicated key and value heads */
        kv = tp / (double)m->kv_heads;
    double kv_params = m->kv_lora ? 0.0 : 2.0 * m->hidden * m->kv_heads * m->head_dim;
    double attention =
        ((double)p.attention + (kv - 1.0) * kv_params) / tp + (double)p.norms;

    params->layer[PT_LAYER_DENSE][0] = attention + (double)p.dense_mlp / tp;
    params->layer[PT_LAYER_MOE][0] = attention + (double)p.router + (double)p.shared / tp;
    params->layer[PT_LAYER_MOE][1] = (double)m->experts * (double)p.expert / ep;
    params->embedding = (double)p.embedding * pad / tp + (double)p.positions;
    params->head = (double)p.final_norm;
    if (m->tied && layout->pp > 1)
        params->head += (double)p.embedding * pad / tp;
    else
        params->head += (double)p.head * pad / tp;
}
