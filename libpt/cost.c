/* The time of a layer, of the ends and of what surrounds the pipeline, from the operator
 * tables.
 *
 * A product runs three times: forward, input gradient, weight gradient. A memory-bound
 * operator takes bytes / (hbm_frac * HBM) times the stack's factor. Flash attention:
 * causal FLOP at peak * frac * s / (s + half); its backward computes 2.5 times as much
 * (Dao 2023, arXiv:2307.08691, section 3.1). Eager attention: two batched products and
 * the score traffic. Communication counts by the part that the stack leaves exposed.
 * ZeRO-2/3 traffic is charged per micro-batch: a layer's gather and reduction hide under
 * its own compute, up to a remainder. */
#include "config.h"

#include <math.h>
#include <string.h>

#include "libpt/cpu_model.h"
#include "libpt/form.h"
#include "libpt/ops.h"

/* Seconds of one operator table, by what they are. */
struct sums {
    double forward_s, input_s, weight_s;    /* compute */
    double core_forward_s, core_backward_s; /* of it, the attention core */
    double linear_s, memory_s; /* of forward_s, dense products and cheap operators */
    double tp_forward_s, tp_input_s; /* exposed communication */
    double cp_forward_s, cp_input_s;
    double ep_forward_s, ep_input_s;
    double weights;                      /* elements of weight matrices */
    double tp_bytes, cp_bytes, ep_bytes; /* sent per GPU, forward and backward */
};

static double memory_s(const struct pt_setup *s, double bytes)
{
    return bytes * s->stack.memory_op_mult /
           (s->device.hbm_frac * s->cluster.gpu.hbm_bytes_per_s);
}

static double peak16(const struct pt_gpu *g)
{
    double p = g->peak_flops[PT_BF16];

    return p > 0.0                        ? p
           : g->peak_flops[PT_FP16] > 0.0 ? g->peak_flops[PT_FP16]
                                          : g->peak_flops[PT_FP32];
}

static enum pt_precision wide_precision(const struct pt_job *job)
{
    switch (job->precision) {
    case PT_FP8:
    case PT_MXFP8:
    case PT_NVFP4:
        return PT_BF16;
    default:
        return job->precision;
    }
}

/* A block of query rows of one head runs on one multiprocessor, and the last rows of a
 * causal mask take twice the mean: with fewer than two blocks each, some of them idle. */
static double attention_fill(const struct pt_gpu *g, const struct pt_op *op)
{
    double rows = strncmp(g->arch, "Blackwell", 9) == 0 ? 256.0 : 128.0;
    double sms = g->sm_count > 0 ? (double)g->sm_count : 100.0;
    double waves = 0.5 * op->count * ceil(op->m / rows) / sms;

    return waves < 1.0 ? waves : 1.0;
}

static void attention(const struct pt_setup *s, const struct pt_layout *l,
                      const struct pt_op *op, struct sums *sum)
{
    const struct pt_device *d = &s->device;
    double peak = peak16(&s->cluster.gpu), dim = op->k;

    if (s->job.attention == PT_ATTENTION_FLASH) {
        double gen = s->stack.attention_gen;
        double frac = (gen >= 1.5   ? d->attention_frac
                       : gen >= 0.5 ? d->attention_frac1
                                    : d->attention_frac0) *
                      s->stack.attention_mult;
        double narrow = dim < 128.0 ? pow(dim / 128.0, s->stack.attention_narrow) : 1.0;
        double others = 1.0 - 1.0 / l->cp;
        double uneven = 1.0 + s->stack.cp_uneven * others * others;
        double block = op->n / l->cp; /* a ring attends to one rank's keys at a time */
        double rate = peak * frac * narrow * block / (block + d->attention_half) / uneven;

        rate *= attention_fill(&s->cluster.gpu, op);

        sum->core_forward_s += op->forward_flop / rate + d->gemm_floor_s;
        sum->core_backward_s += 2.5 * op->forward_flop / (rate * d->attention_backward) +
                                2.0 * d->gemm_floor_s;
        return;
    }
    double rate = peak * d->eager_frac * 1.5 * dim / (dim + 40.0) * 2.0 * dim /
                  (dim + 64.0 * ceil(dim / 64.0));
    double extra = s->stack.score_bytes * op->m * op->n * op->count;

    if (fmod(dim, 8.0) != 0.0) /* no tensor cores */
        rate *= d->eager_odd_frac;
    sum->core_forward_s +=
        op->forward_flop / rate + memory_s(s, op->forward_bytes + extra);
    sum->core_backward_s +=
        2.0 * op->forward_flop / rate + memory_s(s, op->backward_bytes);
}

static void product(const struct pt_setup *s, const struct pt_op *op, bool accumulates,
                    struct sums *sum)
{
    enum pt_precision p = op->low ? s->job.precision : wide_precision(&s->job);
    bool fused = s->job.fused_grad_accumulation;
    double forward = pt_gemm_s(s, op->m, op->n, op->k, op->count, p, false);
    double input = pt_gemm_s(s, op->m, op->k, op->n, op->count, p, false);
    double weight = pt_gemm_s(s, op->n, op->k, op->m, op->count, p, fused);

    if (op->expert) { /* uneven loads: the fullest expert ends last */
        double uneven = (op->m + 60.0) / op->m;

        forward *= uneven;
        input *= uneven;
        weight *= uneven;
    }
    sum->forward_s += forward;
    sum->input_s += input;
    sum->weight_s += weight;
    if (!op->expert)
        sum->linear_s += forward;
    sum->weights += op->n * op->k * op->count;
    /* Not fused: read the new gradient, read and write the accumulated one. */
    if (!fused && accumulates)
        sum->weight_s +=
            memory_s(s, (2.0 + 2.0 * (s->job.precision == PT_FP16 ? 3.0 : 5.0)) * op->n *
                            op->k * op->count);
}

static uint32_t group_of(const struct pt_layout *l, enum pt_dim dim, uint32_t *stride)
{
    switch (dim) {
    case PT_DIM_TP:
        *stride = 1;
        return l->tp;
    case PT_DIM_CP:
        *stride = l->tp;
        return l->cp;
    default: /* experts: over tp, cp and dp together */
        *stride = 1;
        return l->ep;
    }
}

static void communication(const struct pt_setup *s, const struct pt_layout *l,
                          const struct pt_op *op, struct sums *sum)
{
    uint32_t stride, n = group_of(l, op->dim, &stride);
    double t = pt_collective_s(s, op->collective, op->comm_bytes, n, stride);
    double sent = op->comm_bytes * (n - 1.0) / n *
                  (op->collective == PT_ALLREDUCE ? 2.0 : 1.0) *
                  (op->forward_count + op->backward_count);

    switch (op->dim) {
    case PT_DIM_TP:
        sum->tp_forward_s += op->forward_count * t * s->stack.tp_exposed_forward;
        sum->tp_input_s += op->backward_count * t * s->stack.tp_exposed_backward;
        sum->tp_bytes += sent;
        break;
    case PT_DIM_CP: /* hides under most of the attention core, priced before it */
        sum->cp_forward_s += fmax(0.0, op->forward_count * t - 0.7 * sum->core_forward_s);
        sum->cp_input_s += fmax(0.0, op->backward_count * t - 0.7 * sum->core_backward_s);
        sum->cp_bytes += sent;
        break;
    default:
        sum->ep_forward_s += op->forward_count * t * s->stack.moe_mult;
        sum->ep_input_s += op->backward_count * t * s->stack.moe_mult;
        sum->ep_bytes += sent;
        break;
    }
}

static void sum_ops(const struct pt_setup *s, const struct pt_layout *l,
                    const struct pt_ops *ops, struct sums *sum)
{
    bool accumulates = pt_micro_batches(&s->job, l) > 1;
    double cheap = s->job.compiled ? s->stack.compiled_mult : 1.0;

    *sum = (struct sums){ 0 };
    for (unsigned i = 0; i < ops->n; i++) {
        const struct pt_op *op = &ops->op[i];
        double f;

        switch (op->kind) {
        case PT_OP_GEMM:
            product(s, op, accumulates, sum);
            break;
        case PT_OP_ATTENTION:
            attention(s, l, op, sum);
            break;
        case PT_OP_MEMORY:
            f = memory_s(s, op->forward_bytes) * (op->expert ? s->stack.moe_mult : cheap);
            sum->forward_s += f;
            sum->memory_s += f;
            sum->input_s += memory_s(s, op->backward_bytes) *
                            (op->expert ? s->stack.moe_mult : cheap);
            break;
        case PT_OP_COMM:
            communication(s, l, op, sum);
            break;
        }
    }
    sum->forward_s += sum->core_forward_s;
    sum->input_s += sum->core_backward_s;
}

/* What compute does not hide of a transfer, and the part that shows even under it. */
static double exposed(const struct pt_setup *s, double comm_s, double compute_s)
{
    return fmax(0.0, comm_s - compute_s) +
           s->stack.fsdp_exposed * fmin(comm_s, compute_s);
}

static double grad_comm_bytes(const struct pt_setup *s)
{
    double own = s->stack.grad_comm_bytes;

    return own > 0.0                       ? own
           : s->job.dtypes.grad_comm > 0.0 ? s->job.dtypes.grad_comm
                                           : s->job.dtypes.grad;
}

/* Gathering and reduction of sharded parameters around one layer. A layer that is
 * recomputed in full has more to hide them under: *recompute_full_s is less by that.
 * Returns what shows. */
static double add_sharding(const struct pt_setup *s, const struct pt_layout *l,
                           const double params[2], double forward_s, double backward_s,
                           double recompute_s, struct pt_time *t,
                           double *recompute_full_s)
{
    double gather = 0.0, reduce = 0.0, before, plain, full;

    for (int e = 0; e < 2; e++) {
        uint32_t n = pt_grad_group(l, e == 1), stride = e == 1 ? l->ep : l->tp;

        if (n <= 1 || !(params[e] > 0.0))
            continue;
        gather +=
            pt_collective_s(s, PT_ALLGATHER, s->job.dtypes.weight * params[e], n, stride);
        reduce += pt_collective_s(s, PT_REDUCESCATTER, grad_comm_bytes(s) * params[e], n,
                                  stride);
    }
    before = exposed(s, gather, forward_s);
    if (l->zero == 3)
        reduce += gather;
    plain = exposed(s, reduce, backward_s + recompute_s);
    full = exposed(s, reduce, backward_s + *recompute_full_s);
    t->forward_comm_s += before;
    t->weight_s += plain; /* it follows the weight gradient */
    *recompute_full_s += full - plain;
    return before + plain;
}

/* Host time to launch a table once: an eager attention core is several kernels. */
static double launch_floor_s(const struct pt_setup *s, const struct pt_ops *ops)
{
    double n = ops->n;

    if (s->job.attention == PT_ATTENTION_EAGER)
        n += 3.0;
    return n * s->stack.launch_s;
}

/* The device waits where the host launches more slowly than it computes. */
static void apply_floor(double floor_s, struct pt_time *t)
{
    t->forward_s = fmax(t->forward_s, floor_s - t->forward_comm_s);
    t->weight_s = fmax(t->weight_s, floor_s - t->input_comm_s - t->input_s);
}

static void layer_costs(const struct pt_setup *s, const struct pt_layout *l,
                        enum pt_layer_kind kind, const struct pt_rank_params *par,
                        struct pt_costs *c)
{
    struct pt_ops ops;
    struct sums sum;
    struct pt_time *t = &c->layer[kind];
    double fixed = s->stack.layer_s + (kind == PT_LAYER_MOE ? s->stack.moe_s : 0.0);

    pt_ops_layer(s, l, kind, &ops);
    sum_ops(s, l, &ops, &sum);
    t->forward_s = sum.forward_s + fixed;
    t->input_s = sum.input_s + fixed;
    t->weight_s = sum.weight_s;
    t->forward_comm_s = sum.tp_forward_s + sum.cp_forward_s + sum.ep_forward_s;
    t->input_comm_s = sum.tp_input_s + sum.cp_input_s + sum.ep_input_s;
    apply_floor(launch_floor_s(s, &ops), t);
    c->tp_bytes[kind] = sum.tp_bytes;
    c->cp_bytes[kind] = sum.cp_bytes;
    c->ep_bytes[kind] = sum.ep_bytes;
    c->tp_s[kind] = sum.tp_forward_s + sum.tp_input_s;
    c->cp_s[kind] = sum.cp_forward_s + sum.cp_input_s;
    c->ep_s[kind] = sum.ep_forward_s + sum.ep_input_s;
    c->recompute_full_s[kind] =
        s->stack.recompute_mult * (t->forward_s + t->forward_comm_s);
    switch (l->recompute) {
    case PT_RECOMPUTE_SELECTIVE:
        c->recompute_s[kind] = sum.core_forward_s;
        break;
    case PT_RECOMPUTE_SELECTIVE_OPS:
        c->recompute_s[kind] = 0.5 * sum.linear_s + sum.memory_s;
        break;
    case PT_RECOMPUTE_HALF:
        c->recompute_s[kind] = 0.5 * c->recompute_full_s[kind];
        break;
    default:
        break;
    }
    if (l->zero >= 2)
        c->dp_s[kind] =
            add_sharding(s, l, par->layer[kind], t->forward_s + t->forward_comm_s,
                         t->input_s + t->weight_s + t->input_comm_s, c->recompute_s[kind],
                         t, &c->recompute_full_s[kind]);
}

static void end_costs(const struct pt_setup *s, const struct pt_layout *l,
                      const struct pt_rank_params *par, struct pt_costs *c)
{
    struct pt_ops ops;
    struct sums sum;
    struct pt_time *h = &c->head, *e = &c->embedding;

    pt_ops_embedding(s, l, &ops);
    sum_ops(s, l, &ops, &sum);
    e->forward_s = sum.forward_s;
    e->input_s = sum.input_s;
    pt_ops_head(s, l, &ops);
    sum_ops(s, l, &ops, &sum);
    h->forward_s = sum.forward_s + (s->stack.loss_mult - 1.0) * sum.memory_s;
    h->input_s = sum.input_s + (s->stack.loss_mult - 1.0) *
                                   (sum.input_s - sum.forward_s + sum.memory_s);
    h->weight_s = sum.weight_s;
    h->forward_comm_s = sum.tp_forward_s;
    h->input_comm_s = sum.tp_input_s;
    if (l->zero >= 2) {
        const double params[2][2] = { { par->embedding, 0.0 }, { par->head, 0.0 } };
        struct pt_time *ends[2] = { e, h };

        for (int i = 0; i < 2; i++) {
            double none = 0.0;

            add_sharding(s, l, params[i], ends[i]->forward_s,
                         ends[i]->input_s + ends[i]->weight_s, 0.0, ends[i], &none);
        }
    }
    if (l->vocab !=
        PT_VOCAB_ENDS) { /* every stage takes part, behind sums over all of them */
        double sync =
            pt_collective_s(s, PT_ALLREDUCE,
                            2.0 * l->micro_batch * (double)s->job.seq * s->model.hidden,
                            l->pp, l->tp) *
            (l->vocab == PT_VOCAB_INTERLACED ? 2.5 : 1.0);

        h->forward_comm_s += 0.5 * sync * l->pp;
        h->input_comm_s += 0.5 * sync * l->pp;
    }
}

/* A collective as fixed + slope * elements, exact to first order about what a rank holds.
 */
static void affine(const struct pt_setup *s, enum pt_collective kind,
                   double bytes_per_element, double elements, uint32_t ranks,
                   uint32_t stride, double *fixed_s, double *slope_s)
{
    double low =
        pt_collective_s(s, kind, 0.9 * elements * bytes_per_element, ranks, stride);
    double high =
        pt_collective_s(s, kind, 1.1 * elements * bytes_per_element, ranks, stride);

    *slope_s += (high - low) / (0.2 * elements);
    *fixed_s += fmax(0.0, 5.5 * low - 4.5 * high);
}

/* Gradients are reduced and parameters gathered after the last micro-batch, unless
 * ZeRO-2/3 already did so per micro-batch. */
static void reduction_costs(const struct pt_setup *s, const struct pt_layout *l,
                            const struct pt_rank_params *par, struct pt_costs *c)
{
    double grad = grad_comm_bytes(s);

    for (int e = 0; e < 2; e++) {
        uint32_t n = pt_grad_group(l, e == 1), z = pt_zero_group(l, e == 1);
        uint32_t stride = e == 1 ? l->ep : l->tp;
        double held = e == 0 ? par->embedding : 0.0;

        for (int k = 0; k < PT_N_LAYER_KINDS; k++)
            held += pt_model_layers(&s->model, (enum pt_layer_kind)k) * par->layer[k][e] /
                    l->pp;
        if (n <= 1 || l->zero >= 2 || !(held > 0.0))
            continue;
        affine(s, z == n ? PT_REDUCESCATTER : PT_ALLREDUCE, grad, held, n, stride,
               &c->reduce_fixed_s[e], &c->reduce_s_per_param[e]);
        if (z > 1)
            affine(s, PT_ALLGATHER, s->job.dtypes.weight, held, z, stride,
                   &c->reduce_fixed_s[e], &c->reduce_s_per_param[e]);
    }
}

/* GPUs that take part: idle ones of the cluster slow nothing down. */
static double world_of(const struct pt_layout *l)
{
    return (double)l->tp * l->cp * l->dp * l->pp;
}

static void update_costs(const struct pt_setup *s, const struct pt_layout *l,
                         struct pt_costs *c)
{
    const struct pt_cluster *cl = &s->cluster;
    double hbm = 0.8 * cl->gpu.hbm_bytes_per_s;
    double host_ranks = cl->node_gpus > 0 ? fmin(world_of(l), cl->node_gpus) : 1.0;
    double cpu_rate =
        cl->cpu_adam_params_per_s > 0.0 ? cl->cpu_adam_params_per_s / host_ranks : 1e8;

    for (int e = 0; e < 2; e++) {
        double z = l->zero >= 1 ? pt_zero_group(l, e == 1) : 1.0;

        c->optimizer_s_per_param[e] = s->stack.optimizer_bytes / z / hbm;
        if (z > 1.0 && l->zero < 3) /* unscaling and copying the whole gradient */
            c->optimizer_s_per_param[e] += 4.0 / hbm;
        c->offload_copy_s_per_param[e] =
            (s->job.dtypes.grad / cl->gpu.d2h_bytes_per_s +
             s->job.dtypes.weight / cl->gpu.h2d_bytes_per_s) /
            z;
        c->offload_cpu_s_per_param[e] = 1.0 / cpu_rate / z;
        if (pt_is_cpu_stack(s)) /* a rank's own core does both */
            c->offload_cpu_s_per_param[e] =
                fmax(c->offload_cpu_s_per_param[e], s->stack.optimizer_bytes / z / hbm);
    }
}

static void pipeline_costs(const struct pt_setup *s, const struct pt_layout *l,
                           const struct pt_rank_params *par, struct pt_costs *c)
{
    uint32_t stride = l->tp * l->cp * l->dp;
    double full = (s->job.precision == PT_FP32 ? 4.0 : 2.0) * l->micro_batch *
                  (double)s->job.seq / l->cp * s->model.hidden;
    double bytes = l->sequence_parallel ? full / l->tp : full;

    if (l->pp == 1)
        return;
    c->p2p_s = pt_p2p_s(s, bytes, stride);
    c->p2p_bytes = bytes;
    if (!l->sequence_parallel && l->tp > 1 && s->stack.p2p_scatter > 0.5) {
        c->p2p_s = pt_p2p_s(s, full / l->tp, stride) +
                   pt_collective_s(s, PT_ALLGATHER, full, l->tp, 1);
        c->p2p_bytes = full / l->tp;
    }
    c->p2p_exposed_frac = s->stack.p2p_exposed;
    if (s->model.tied)
        c->tied_s = pt_p2p_s(s, 2.0 * grad_comm_bytes(s) * par->embedding, l->tp * l->dp);
}

void pt_costs_init(const struct pt_setup *setup, const struct pt_layout *layout,
                   struct pt_costs *costs)
{
    struct pt_rank_params par;
    const struct pt_cluster *cl = &setup->cluster;
    double nodes = world_of(layout) / cl->domain_gpus;

    *costs = (struct pt_costs){ 0 };
    pt_rank_params(setup, layout, &par);
    costs->micro_batches = pt_micro_batches(&setup->job, layout);
    for (int k = 0; k < PT_N_LAYER_KINDS; k++)
        if (pt_model_layers(&setup->model, (enum pt_layer_kind)k) > 0)
            layer_costs(setup, layout, (enum pt_layer_kind)k, &par, costs);
    end_costs(setup, layout, &par, costs);
    pipeline_costs(setup, layout, &par, costs);
    reduction_costs(setup, layout, &par, costs);
    update_costs(setup, layout, costs);
    costs->reduce_hidden_frac =
        fmax(0.0, 1.0 - (layout->pp > 1 ? setup->stack.dp_exposed
                                        : setup->stack.dp_exposed_flat));
    costs->micro_batch_s = setup->stack.micro_batch_s * layout->vpp;
    costs->step_s =
        setup->stack.step_s + (nodes > 1.0 ? setup->stack.skew_s : 0.0) +
        setup->stack.owner_s * (layout->zero >= 1 ? pt_zero_group(layout, false) : 0);
    costs->slack_frac =
        setup->stack.slack + setup->network.straggler * (nodes > 1.0 ? log2(nodes) : 0.0);
}
