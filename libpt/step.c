/* The step of a split: pt_form's value, and which slice of it each second belongs to. */
#include "config.h"

#include <math.h>

#include "libpt/form.h"

void pt_stage_times(const struct pt_setup *setup, const struct pt_layout *layout,
                    const struct pt_costs *costs, const struct pt_split *split,
                    double *forward_s, double *input_s, double *weight_s)
{
    struct pt_stage_load load[PT_MAX_PP];

    pt_stage_loads(setup, layout, costs, split, load);
    for (uint32_t s = 0; s < layout->pp; s++) {
        if (forward_s != NULL)
            forward_s[s] = load[s].forward_s;
        if (input_s != NULL)
            input_s[s] = load[s].input_s;
        if (weight_s != NULL)
            weight_s[s] = load[s].weight_s;
    }
}

/* Layers of a kind on a stage, and how many of them are recomputed in full. */
static void stage_layers(const struct pt_split *split, uint32_t pp, uint32_t s, int kind,
                         double *layers, double *recomputed)
{
    *layers = *recomputed = 0.0;
    for (uint32_t c = 0; c < split->vpp; c++) {
        *layers += split->chunk[c * pp + s].layers[kind];
        *recomputed += split->chunk[c * pp + s].recomputed[kind];
    }
}

/* What the pipeline takes longer because its links cannot keep up: the last row of the
 * form. */
static double link_wait_s(const struct pt_form *form, const struct pt_stage_load *load,
                          uint32_t pp, double pipeline_s)
{
    struct pt_form without = *form;
    struct pt_form_value value;

    if (pp == 1)
        return 0.0;
    without.n_pipeline--;
    pt_form_value(&without, load, pp, &value);
    return pipeline_s - value.pipeline_s;
}

static void add_communication(const struct pt_layout *l, const struct pt_costs *c,
                              const struct pt_split *split, struct pt_step *step)
{
    double m = c->micro_batches, slack = 1.0 + c->slack_frac;

    for (int k = 0; k < PT_N_LAYER_KINDS; k++) {
        double n, r;

        stage_layers(split, l->pp, step->slowest_stage, k, &n, &r);
        step->tp_s += m * slack * n * c->tp_s[k];
        step->cp_s += m * slack * n * c->cp_s[k];
        step->ep_s += m * slack * n * c->ep_s[k];
        step->dp_s += m * slack * n * c->dp_s[k];
        step->recompute_s +=
            m * slack * ((n - r) * c->recompute_s[k] + r * c->recompute_full_s[k]);
        step->tp_bytes += m * n * c->tp_bytes[k];
        step->cp_bytes += m * n * c->cp_bytes[k];
        step->ep_bytes += m * n * c->ep_bytes[k];
    }
    if (l->pp > 1) {
        /* With a split backward they hide behind weight gradients (pt_form_init). */
        if (!pt_schedule_splits_backward(l->schedule))
            step->pp_s = m * slack * 2.0 * l->vpp * c->p2p_s * c->p2p_exposed_frac;
        step->pp_bytes = 2.0 * m * l->vpp * c->p2p_bytes;
    }
}

/* Share of a group's bytes that leaves the fast domain, with g of its n ranks in each of
 * K = n/g domains. A hierarchical collective sends (g-1)/g of the buffer inside and
 * (K-1)/K of its g-th part outside; an all-to-all sends to each of the n-1 others alike.
 */
static double outside(uint32_t ranks, uint32_t stride, uint32_t domain, bool all_to_all)
{
    double g = fmin(ranks, domain > stride ? domain / stride : 1), k = ranks / g;
    double in = (g - 1.0) / g, out = (k - 1.0) / (k * g);

    if (k <= 1.0)
        return 0.0;
    return all_to_all ? (ranks - g) / (ranks - 1.0) : out / (in + out);
}

/* Volume of the data-parallel group, and all volumes by the link they cross. */
static void add_volume(const struct pt_setup *s, const struct pt_layout *l,
                       const struct pt_stage_load *load, struct pt_step *step)
{
    double grad =
        s->job.dtypes.grad_comm > 0.0 ? s->job.dtypes.grad_comm : s->job.dtypes.grad;
    double weight = s->job.dtypes.weight, m = pt_micro_batches(&s->job, l);
    uint32_t domain = s->cluster.domain_gpus;
    double replica, leaving;

    for (int e = 0; e < 2; e++) {
        double n = pt_grad_group(l, e == 1), p = load->params[e] * (n - 1.0) / n;

        if (l->zero == 0)
            step->dp_bytes += 2.0 * grad * p;
        else if (l->zero == 1)
            step->dp_bytes += (grad + weight) * p;
        else
            step->dp_bytes += m * (grad + (l->zero == 3 ? 2.0 : 1.0) * weight) * p;
    }
    const struct {
        double bytes;
        uint32_t ranks, stride;
        bool all_to_all;
    } dim[] = {
        { step->tp_bytes, l->tp, 1, false },
        { step->cp_bytes, l->cp, l->tp, false },
        { step->ep_bytes, l->ep, 1, true },
        { step->dp_bytes, l->cp * l->dp, l->tp, false },
    };

    for (unsigned i = 0; i < sizeof(dim) / sizeof(dim[0]); i++) {
        double share = outside(dim[i].ranks, dim[i].stride, domain, dim[i].all_to_all);

        step->inter_bytes += share * dim[i].bytes;
        step->intra_bytes += (1.0 - share) * dim[i].bytes;
    }
    /* Stages are replica apart: of the boundaries that fall on a domain, all bytes leave
     * it. */
    replica = (double)l->tp * l->cp * l->dp;
    leaving =
        l->pp * replica > domain ? fmin(1.0, replica / domain) * step->pp_bytes : 0.0;
    step->inter_bytes += leaving;
    step->intra_bytes += step->pp_bytes - leaving;
}

/* The part of a forward pass that whole-layer recomputation repeats: the layers that the
 * split marks, and never the head. */
static double recomputed_again(const struct pt_model *model, const struct pt_split *split,
                               uint32_t seq, bool causal)
{
    struct pt_model headless = *model;
    double layers = 0.0, repeated = 0.0;

    for (uint32_t c = 0; c < split->pp * split->vpp; c++) {
        for (unsigned k = 0; k < PT_N_LAYER_KINDS; k++) {
            layers += split->chunk[c].layers[k];
            repeated += split->chunk[c].recomputed[k];
        }
    }
    headless.vocab = 0;
    return layers > 0.0 ? repeated / layers * pt_model_flop(&headless, seq, causal) /
                              pt_model_flop(model, seq, causal)
                        : 0.0;
}

static void add_rates(const struct pt_setup *s, const struct pt_layout *l,
                      const struct pt_split *split, bool causal, struct pt_step *step)
{
    const struct pt_gpu *g = &s->cluster.gpu;
    double gpus = (double)l->tp * l->pp * l->cp * l->dp;
    double forward = pt_model_flop(&s->model, s->job.seq, causal) * s->job.global_batch;
    double peak = g->peak_flops[s->job.precision], again = 0.0;

    if (!(peak > 0.0))
        peak = g->peak_flops[PT_BF16] > 0.0 ? g->peak_flops[PT_BF16]
                                            : g->peak_flops[PT_FP16];
    switch (l->recompute) {
    case PT_RECOMPUTE_FULL:
        again = recomputed_again(&s->model, split, s->job.seq, causal);
        break;
    case PT_RECOMPUTE_HALF:
    case PT_RECOMPUTE_SELECTIVE_OPS:
        again = 0.5;
        break;
    case PT_RECOMPUTE_SELECTIVE: { /* the scores and the context */
        struct pt_model none = s->model;

        again = 1.0 - pt_model_flop(&none, 1, causal) * s->job.seq /
                          pt_model_flop(&s->model, s->job.seq, causal);
        break;
    }
    default:
        break;
    }
    step->tokens_per_s_gpu =
        (double)s->job.global_batch * s->job.seq / step->step_s / gpus;
    step->model_flops_gpu = 3.0 * forward / step->step_s / gpus;
    step->mfu = step->model_flops_gpu / peak;
    step->hfu = step->mfu * (3.0 + again) / 3.0;
}

void pt_step_time(const struct pt_setup *setup, const struct pt_layout *layout,
                  const struct pt_costs *costs, const struct pt_split *split, bool causal,
                  struct pt_step *step)
{
    struct pt_stage_load load[PT_MAX_PP];
    struct pt_form form;
    struct pt_form_value value;
    double sum = 0.0, m = costs->micro_batches, slack = 1.0 + costs->slack_frac, mine,
           wait;

    *step = (struct pt_step){ 0 };
    pt_stage_loads(setup, layout, costs, split, load);
    pt_form_init(layout, costs, &form);
    pt_form_value(&form, load, layout->pp, &value);
    for (uint32_t s = 0; s < layout->pp; s++)
        sum += load[s].forward_s + load[s].input_s + load[s].weight_s + form.overhead_s;
    const struct pt_stage_load *slow = &load[value.slowest_stage];

    mine = slow->forward_s + slow->input_s + slow->weight_s + form.overhead_s;
    step->step_s = value.step_s;
    step->pipeline_s = value.pipeline_s;
    step->slowest_stage = value.slowest_stage;
    wait = link_wait_s(&form, load, layout->pp, value.pipeline_s);
    step->bubble_s = fmax(0.0, value.pipeline_s - wait - slack * m * mine);
    step->imbalance_s = slack * m * (mine - sum / layout->pp);
    step->bubble_of_total =
        value.pipeline_s > 0.0 ? step->bubble_s / value.pipeline_s : 0.0;
    step->bubble_of_ideal = mine > 0.0 ? step->bubble_s / (slack * m * mine) : 0.0;
    add_communication(layout, costs, split, step);
    step->compute_s = slack * m * mine - step->tp_s - step->cp_s - step->ep_s -
                      step->pp_s - step->dp_s - step->recompute_s;
    step->dp_s += value.reduce_s + (layout->pp > 1 ? costs->tied_s : 0.0);
    step->pp_s += wait;
    for (uint32_t s = 0; s < layout->pp; s++) {
        double gpu = 0.0;

        for (int e = 0; e < 2; e++)
            gpu += load[s].params[e] * (1.0 - load[s].offload_frac) *
                   costs->optimizer_s_per_param[e];
        step->optimizer_s = fmax(step->optimizer_s, gpu);
    }
    step->optimizer_s = fmin(step->optimizer_s, value.update_s);
    step->offload_s = value.update_s - step->optimizer_s;
    step->other_s = costs->norm_s + costs->step_s;
    add_volume(setup, layout, slow, step);
    add_rates(setup, layout, split, causal, step);
}
