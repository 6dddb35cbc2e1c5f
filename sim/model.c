/* Where the seconds of a plan go in the simulation.
 *
 * A pass takes its layers' compute and the communication that stays exposed inside them,
 * with recomputation in the input part, half of the engine's overhead per micro-batch in
 * forward and input part each, all times 1 + slack. A message takes its whole time on its
 * links; the part that the stack does not overlap also holds up the receiver. Gradients
 * are reduced per chunk. Of an offloaded optimizer every shard is copied out, updated and
 * copied back, each on a stream of its own. ZeRO-2/3 traffic per micro-batch is priced
 * inside the passes by libpt/cost. */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libpt/form.h"
#include "libpt/schedule_plan.h"
#include "sim/model.h"

void sim_model_fini(struct sim_model *model)
{
    pt_schedule_fini(&model->schedule);
    free(model->stage);
    free(model->chunk);
    free(model->slowdown);
    free(model->link_capacity);
    memset(model, 0, sizeof(*model));
}

static enum pt_status fill_memory(const struct pt_plan *plan,
                                  const struct pt_memory_terms *terms,
                                  struct sim_model *m, struct pt_error *err)
{
    uint32_t pp = plan->layout.pp, n = pp * plan->layout.vpp;
    double *bytes = malloc(((size_t)pp + n) * sizeof(*bytes)), most;

    if (bytes == NULL)
        return pt_fail_memory(err);
    pt_plan_holdings(plan, bytes, bytes + pp, &most);
    for (uint32_t s = 0; s < pp; s++)
        m->stage[s].static_bytes = bytes[s];
    for (uint32_t i = 0; i < n; i++)
        m->chunk[i].activation_bytes = bytes[pp + i];
    m->device_per_allocated = 1 + terms->fragmentation_frac;
    m->device_fixed_bytes = pt_memory_device_bytes(terms, 0);
    free(bytes);
    return PT_OK;
}

/* Bytes that a rank sends for its gradients and parameters, per step: as pt_step counts.
 */
static double dp_bytes(const struct pt_plan *plan, const double params[2])
{
    const struct pt_dtypes *d = &plan->setup.job.dtypes;
    double grad = d->grad_comm > 0 ? d->grad_comm : d->grad, sum = 0;
    double m = pt_micro_batches(&plan->setup.job, &plan->layout);

    for (int e = 0; e < 2; e++) {
        double n = pt_grad_group(&plan->layout, e == 1), p = params[e] * (n - 1) / n;

        sum += p * (plan->layout.zero == 0 ? 2 * grad
                    : plan->layout.zero == 1
                        ? grad + d->weight
                        : m * (grad + (plan->layout.zero == 3 ? 2 : 1) * d->weight));
    }
    return sum;
}

static void fill_chunk(const struct pt_plan *plan, const struct pt_costs *costs,
                       const struct pt_stage_load *load, const struct pt_chunk *layers,
                       struct sim_chunk *c)
{
    double slack = 1 + costs->slack_frac;
    double overhead = costs->micro_batch_s / plan->layout.vpp / 2;

    c->forward_s = slack * (load->forward_s + overhead);
    c->input_s = slack * (load->input_s + overhead);
    c->weight_s = slack * load->weight_s;
    c->reduce_s =
        (costs->reduce_fixed_s[0] + costs->reduce_fixed_s[1]) / plan->layout.vpp;
    for (int e = 0; e < 2; e++)
        c->reduce_s += load->params[e] * costs->reduce_s_per_param[e];
    for (int k = 0; k < PT_N_LAYER_KINDS; k++) {
        c->tp_bytes += layers->layers[k] * costs->tp_bytes[k];
        c->cp_bytes += layers->layers[k] * costs->cp_bytes[k];
        c->ep_bytes += layers->layers[k] * costs->ep_bytes[k];
    }
    c->dp_bytes = dp_bytes(plan, load->params);
}

static void fill_stage(const struct pt_plan *plan, const struct pt_costs *costs,
                       const struct pt_stage_load *load, struct sim_stage *s)
{
    const struct pt_gpu *gpu = &plan->setup.cluster.gpu;
    const struct pt_dtypes *d = &plan->setup.job.dtypes;
    double out = d->grad / gpu->d2h_bytes_per_s, in = d->weight / gpu->h2d_bytes_per_s;
    double copy = 0;

    for (int e = 0; e < 2; e++) {
        double host = load->params[e] * load->offload_frac;

        s->optimizer_s += (load->params[e] - host) * costs->optimizer_s_per_param[e];
        s->host_s += host * costs->offload_cpu_s_per_param[e] / PT_OFFLOAD_SHARDS;
        copy += host * costs->offload_copy_s_per_param[e] / PT_OFFLOAD_SHARDS;
    }
    s->out_s += copy > 0 ? copy * out / (out + in) : 0;
    s->in_s += copy > 0 ? copy * in / (out + in) : 0;
    s->send_bytes = costs->p2p_bytes;
}

static enum pt_status fill_times(const struct pt_plan *plan, const struct pt_costs *costs,
                                 struct sim_model *m, struct pt_error *err)
{
    const struct pt_layout *l = &plan->layout;
    uint32_t pieces = l->pp * l->vpp;
    struct pt_stage_load *load = calloc(pieces, sizeof(*load));
    enum pt_status st;

    if (load == NULL)
        return pt_fail_memory(err);
    if ((st = pt_piece_loads(plan, costs, load, err)))
        goto out;
    for (uint32_t k = 0; k < pieces; k++) {
        uint32_t at = pt_split_order(l, k);

        fill_chunk(plan, costs, &load[k], &plan->split.chunk[at], &m->chunk[at]);
        fill_stage(plan, costs, &load[k], &m->stage[at % l->pp]);
    }
out:
    free(load);
    return st;
}

static enum pt_status fill_factors(const struct sim_factor *factor, uint32_t n,
                                   bool invert, const char *what, uint32_t ranks,
                                   double **out, struct pt_error *err)
{
    if (n == 0)
        return PT_OK;
    *out = malloc(ranks * sizeof(**out));
    if (*out == NULL)
        return pt_fail_memory(err);
    for (uint32_t r = 0; r < ranks; r++)
        (*out)[r] = 1;
    for (uint32_t i = 0; i < n; i++) {
        if (factor[i].rank >= ranks)
            return pt_fail(err, PT_USAGE, NULL, 0,
                           "%s: rank %u; the plan has ranks 0 to %u", what,
                           factor[i].rank, ranks - 1);
        (*out)[factor[i].rank] = invert ? 1 / factor[i].factor : factor[i].factor;
    }
    return PT_OK;
}

static uint32_t lcm(uint32_t a, uint32_t b)
{
    uint32_t x = a, y = b;

    while (y != 0) {
        uint32_t rest = x % y;

        x = y;
        y = rest;
    }
    return a / x * b;
}

static void fill_world(const struct pt_plan *plan, const struct pt_costs *costs,
                       const struct sim_options *o, struct sim_model *m)
{
    const struct pt_layout *l = &plan->layout;
    uint32_t replica = l->tp * l->cp * l->dp, domain = plan->setup.cluster.domain_gpus;
    double slack = 1 + costs->slack_frac;

    m->folded =
        !o->unfold && o->jitter_frac <= 0 && o->n_stragglers == 0 && o->n_degraded == 0;
    m->world = (struct sim_world){
        .schedule = &m->schedule,
        .stage = m->stage,
        .chunk = m->chunk,
        .per_stage = m->folded ? 1 : replica,
        .gang = 1,
        .dense = 1,
        .message_s = slack * costs->p2p_s,
        /* weight gradients cover the transfers of a split backward, as in pt_form_init */
        .message_block_s = pt_schedule_splits_backward(l->schedule)
                               ? 0
                               : slack * costs->p2p_s * costs->p2p_exposed_frac,
        .reduce_hidden_frac = costs->reduce_hidden_frac,
        .norm_s = costs->norm_s,
        .tied_s = costs->tied_s,
        .step_s = costs->step_s,
        .message_net = replica >= domain,
        .reduce_net = replica > domain,
        .jitter_frac = o->jitter_frac,
        .seed = o->seed,
        .steps = o->steps,
    };
    if (!m->folded) {
        m->world.dense = l->tp * l->cp;
        m->world.gang = lcm(l->tp * l->cp, l->ep);
    }
}

/* Sizes and constants of a plan are checked one by one; together they may still give no
 * time. */
static enum pt_status check_times(const struct sim_model *m, uint32_t pp, uint32_t vpp,
                                  struct pt_error *err)
{
    double sum = m->closed.step_s + m->world.message_s + m->world.norm_s +
                 m->world.tied_s + m->world.step_s;

    for (uint32_t i = 0; i < pp * vpp; i++)
        sum += m->chunk[i].forward_s + m->chunk[i].input_s + m->chunk[i].weight_s +
               m->chunk[i].reduce_s + m->chunk[i].activation_bytes;
    for (uint32_t s = 0; s < pp; s++)
        sum += m->stage[s].optimizer_s + m->stage[s].out_s + m->stage[s].host_s +
               m->stage[s].in_s + m->stage[s].static_bytes;
    return isfinite(sum) && m->closed.step_s > 0
               ? PT_OK
               : pt_fail(err, PT_INPUT, NULL, 0,
                         "the plan's sizes, hardware and constants together give no "
                         "finite step "
                         "time");
}

enum pt_status sim_model_make(const struct pt_plan *plan,
                              const struct sim_options *options, struct sim_model *model,
                              struct pt_error *err)
{
    const struct pt_layout *l = &plan->layout;
    uint32_t ranks = l->tp * l->cp * l->dp * l->pp;
    struct pt_memory_terms terms;
    struct pt_costs costs;
    enum pt_status st;

    memset(model, 0, sizeof(*model));
    pt_costs_init(&plan->setup, l, &costs);
    pt_memory_terms_init(&plan->setup, l, &terms);
    pt_step_time(&plan->setup, l, &costs, &plan->split, plan->causal, &model->closed);
    model->stage = calloc(l->pp, sizeof(*model->stage));
    model->chunk = calloc((size_t)l->pp * l->vpp, sizeof(*model->chunk));
    if (model->stage == NULL || model->chunk == NULL) {
        st = pt_fail_memory(err);
        goto out;
    }
    if ((st = pt_schedule_of_plan(plan, &model->schedule, err)) ||
        (st = fill_times(plan, &costs, model, err)) ||
        (st = fill_memory(plan, &terms, model, err)) ||
        (st = fill_factors(options->straggler, options->n_stragglers, false,
                           "--straggler", ranks, &model->slowdown, err)) ||
        (st = fill_factors(options->degraded, options->n_degraded, true, "--link-degrade",
                           ranks, &model->link_capacity, err)))
        goto out;
    fill_world(plan, &costs, options, model);
    model->world.slowdown = model->slowdown;
    model->world.link_capacity = model->link_capacity;
    st = check_times(model, l->pp, l->vpp, err);
out:
    if (st != PT_OK)
        sim_model_fini(model);
    return st;
}
