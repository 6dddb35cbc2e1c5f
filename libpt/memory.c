/* What a layer, an end and a stage need: the terms and rows of memory.h.
 *
 * States per parameter: weight + gradient + master copy + moments (2 2 4 8 = 16 bytes
 * under mixed-precision Adam), ZeRO-1/2/3 dividing the last two, three or all by the
 * group that shares them (Rajbhandari et al., "ZeRO", 2020). Activations: memory_layer.c.
 * In flight: memory_flight.c. The head: final norm (input and output kept), logits, their
 * gradient, and what the product's backward allocates. */
#include "config.h"

#include <string.h>

#include "libpt/cpu_model.h"
#include "libpt/form.h"
#include "libpt/memory.h"
#include "libpt/memory_layer.h"

void pt_dtypes_for_stack(const struct pt_stack *stack, enum pt_precision precision,
                         enum pt_optimizer optimizer, struct pt_dtypes *dtypes)
{
    pt_dtypes_default(precision, optimizer, dtypes);
    if (precision == PT_FP16)
        dtypes->grad = stack->mem_grad_fp16;
    else if (precision == PT_FP8 || precision == PT_MXFP8 || precision == PT_NVFP4)
        dtypes->grad = stack->mem_grad_low;
    else if (precision != PT_FP32 && precision != PT_TF32)
        dtypes->grad = stack->mem_grad_bf16;
}

/* Bytes per dense [0] and expert [1] parameter of a rank: weight, gradient, optimizer. */
static void state_widths(const struct pt_setup *setup, const struct pt_layout *layout,
                         double width[2][3])
{
    const struct pt_dtypes *d = &setup->job.dtypes;
    const struct pt_stack *stack = &setup->stack;
    double weight = d->weight, master = d->master;
    double extra = setup->job.precision == PT_FP16 ? stack->mem_fp16_extra : 0.0;

    if (stack->mem_fp32_weights > 0.0 &&
        master > 0.0) { /* the master copy is the weight */
        weight = master;
        master = 0.0;
    }
    for (int expert = 0; expert < 2; expert++) {
        double zero = pt_zero_group(layout, expert == 1);
        double grads = pt_grad_group(layout, expert == 1);

        width[expert][0] = weight / (layout->zero >= 3 ? zero : 1.0);
        width[expert][1] = d->grad / (layout->zero >= 2 ? grads : 1.0);
        width[expert][2] =
            (master + d->moments + extra) / (layout->zero >= 1 ? zero : 1.0) +
            stack->mem_state_extra;
    }
}

static void end_states(double params, const double width[3], double bytes[3])
{
    for (int i = 0; i < 3; i++)
        bytes[i] = params * width[i];
}

static unsigned groups(const struct pt_setup *setup, const struct pt_layout *layout)
{
    unsigned n = 0;

    n += layout->tp > 1;
    n += layout->pp > 1;
    n += layout->cp > 1;
    n += layout->ep > 1;
    n += layout->dp > 1;
    n += layout->pp > 1 && setup->model.tied;
    return n;
}

/* The head's transient peaks at the loss (per_logit bytes of each logit: 16-bit, fp32
 * copy and gradient, as the stack's kernels keep them) or in the backward of its product
 * (16-bit gradient of the logits beside the product's weight gradient); with buffers of
 * the hidden size. */
static void head_terms(const struct pt_setup *setup, const struct pt_layout *layout,
                       double stages, struct pt_memory_terms *terms)
{
    const struct pt_stack *stack = &setup->stack;
    const struct pt_model *m = &setup->model;
    double tokens = pt_tokens(&setup->job, layout), h = m->hidden;
    double chunks = setup->job.loss_chunks > 1 ? (double)setup->job.loss_chunks : 1.0;
    double rows = (double)pt_vocab_padded(m->vocab, setup->job.vocab_unit, layout->tp) /
                  ((double)layout->tp * stages);
    double per_logit = setup->job.fused_cross_entropy ? stack->mem_logit_fused
                                                      : stack->mem_logit_unfused;
    double loss = per_logit * rows * tokens / chunks;
    double dummy = setup->job.fused_grad_accumulation ? stack->mem_head_dummy : 0.0;
    double backward = 2.0 * rows * tokens / chunks + dummy * rows * h;

    terms->logits_bytes =
        (loss > backward ? loss : backward) +
        2.0 * (terms->spread ? stack->mem_spread_hidden : stack->mem_head_hidden) * h *
            tokens;
    terms->head_saved_bytes = 4.0 * h * pt_tokens_split(&setup->job, layout);
    terms->embedding_backward_bytes = 2.0 * rows * h;
}

static void layer_terms(const struct pt_setup *setup, const struct pt_layout *layout,
                        const struct pt_rank_params *par, double width[2][3],
                        struct pt_memory_terms *terms)
{
    const struct pt_stack *stack = &setup->stack;
    double gathered = 0.0, dummies = 0.0;

    for (int k = 0; k < PT_N_LAYER_KINDS; k++) {
        const double *p = par->layer[k];
        struct pt_layer_memory layer;
        double params;

        if (pt_model_layers(&setup->model, (enum pt_layer_kind)k) == 0)
            continue;
        pt_layer_memory(setup, layout, (enum pt_layer_kind)k, &layer);
        terms->weight_bytes[k] = p[0] * width[0][0] + p[1] * width[1][0];
        terms->grad_bytes[k] = p[0] * width[0][1] + p[1] * width[1][1];
        terms->optimizer_bytes[k] = p[0] * width[0][2] + p[1] * width[1][2];
        terms->activation_bytes[k] = layer.policy_bytes;
        terms->checkpoint_bytes[k] = layer.checkpoint_bytes;
        if (layer.backward_bytes > terms->backward_bytes)
            terms->backward_bytes = layer.backward_bytes;
        if (layer.saved_bytes > terms->working_bytes)
            terms->working_bytes = layer.saved_bytes;
        params = p[0] + p[1];
        if (params > gathered)
            gathered = params;
        /* One placeholder gradient per shape of weight, whatever the number of layers. */
        params = p[0];
        if (setup->model.experts)
            params += p[1] / ((double)setup->model.experts / (double)layout->ep);
        if (params > dummies)
            dummies = params;
    }
    if (layout->zero >= 3)
        terms->gather_bytes =
            gathered * (2.0 * stack->mem_gather_layers + stack->mem_gather_grad);
    if (setup->job.fused_grad_accumulation)
        terms->workspace_bytes += stack->mem_layer_dummy * dummies;
    if (setup->model.experts) /* exchanged rows that outlive a layer */
        terms->workspace_bytes += 2.0 * stack->mem_moe_buffers *
                                  (double)setup->model.topk *
                                  (double)setup->model.hidden *
                                  pt_tokens(&setup->job, layout) / (double)layout->tp;
}

/* a can never exceed b, whatever the split. */
static bool dominated(const struct pt_memory_row *a, const struct pt_memory_row *b)
{
    double first = b->first - a->first, last = b->last - a->last;
    double constant = b->constant - a->constant;

    if (constant < 0.0 || constant + first < 0.0 || constant + last < 0.0 ||
        constant + first + last < 0.0 || a->any_recomputed > b->any_recomputed ||
        a->flight_first > b->flight_first || a->offload_first != b->offload_first ||
        a->offload_last != b->offload_last)
        return false;
    for (int k = 0; k < PT_N_LAYER_KINDS; k++) {
        if (a->layer[k] > b->layer[k] ||
            a->layer[k] + a->recomputed[k] > b->layer[k] + b->recomputed[k] ||
            a->flight[k] > b->flight[k] ||
            a->flight[k] + a->flight_recomputed[k] >
                b->flight[k] + b->flight_recomputed[k] ||
            a->offload[k] != b->offload[k])
            return false;
    }
    return true;
}

static struct pt_memory_row *add_row(struct pt_memory_terms *terms, enum pt_phase phase,
                                     const struct pt_memory_row *states)
{
    struct pt_memory_row *row = &terms->row[terms->n_all++];

    *row = *states;
    row->phase = phase;
    return row;
}

/* Weights, gradients, optimizer and standing buffers: part of every row. */
static struct pt_memory_row state_row(const struct pt_memory_terms *terms)
{
    struct pt_memory_row row = { 0 };

    row.constant = terms->bucket_bytes + terms->workspace_bytes + terms->gather_bytes;
    for (int i = 0; i < 3; i++) {
        row.first += terms->embedding_state_bytes[i];
        row.last += terms->head_state_bytes[i];
    }
    row.first += terms->gather_ends_bytes[0];
    row.last += terms->gather_ends_bytes[1];
    row.offload_first = terms->embedding_state_bytes[2];
    row.offload_last = terms->head_state_bytes[2];
    for (int k = 0; k < PT_N_LAYER_KINDS; k++) {
        row.layer[k] =
            terms->weight_bytes[k] + terms->grad_bytes[k] + terms->optimizer_bytes[k];
        row.offload[k] = terms->optimizer_bytes[k];
    }
    return row;
}

static void scale_temporary(const struct pt_memory_terms *terms, double frac,
                            struct pt_memory_row *row)
{
    for (int k = 0; k < PT_N_LAYER_KINDS; k++)
        row->layer[k] += frac * terms->optimizer_bytes[k];
    row->first += frac * terms->embedding_state_bytes[2];
    row->last += frac * terms->head_state_bytes[2];
}

/* Between its two backward passes a micro-batch frees what only the input gradient reads.
 * A full zero-bubble pipeline holds that much less, in micro-batches. */
static double split_freed(const struct pt_setup *setup, const struct pt_layout *layout)
{
    double limit = layout->max_in_flight ? layout->max_in_flight : layout->pp;

    if (layout->schedule != PT_SCHEDULE_ZB_AUTO ||
        pt_micro_batches(&setup->job, layout) < limit)
        return 0.0;
    return setup->stack.mem_split_freed * (2.0 * limit / layout->pp - 1.0);
}

static void add_flight(const struct pt_memory_terms *terms, struct pt_memory_row *row)
{
    row->flight_first = terms->embedding_activation_bytes;
    for (int k = 0; k < PT_N_LAYER_KINDS; k++) {
        row->flight[k] = terms->activation_bytes[k];
        row->flight_recomputed[k] =
            terms->checkpoint_bytes[k] - terms->activation_bytes[k];
        row->layer[k] -= terms->split_freed * row->flight[k];
        row->recomputed[k] -= terms->split_freed * row->flight_recomputed[k];
    }
}

static void build_rows(const struct pt_setup *setup, double chunks,
                       struct pt_memory_terms *terms)
{
    const struct pt_stack *stack = &setup->stack;
    struct pt_memory_row states = state_row(terms), *row;
    struct pt_params whole;

    row = add_row(terms, PT_PHASE_STEADY, &states); /* the backward of a layer */
    add_flight(terms, row);
    row->moment = PT_MOMENT_LAYER;
    row->constant += terms->backward_bytes;
    row->any_recomputed = terms->working_bytes;

    row = add_row(terms, PT_PHASE_STEADY, &states); /* the head's moment */
    add_flight(terms, row);
    row->moment = PT_MOMENT_HEAD;
    *(terms->spread ? &row->constant : &row->last) +=
        terms->logits_bytes + terms->head_saved_bytes;

    /* The embedding's backward: its layers' activations of this micro-batch are free
     * again, a gradient of the whole table comes. */
    row = add_row(terms, PT_PHASE_STEADY, &states);
    add_flight(terms, row);
    row->moment = PT_MOMENT_EMBEDDING;
    row->first += terms->embedding_backward_bytes;
    for (int k = 0; k < PT_N_LAYER_KINDS; k++) {
        row->layer[k] -= terms->activation_bytes[k] / chunks;
        row->recomputed[k] -= row->flight_recomputed[k] / chunks;
    }

    row = add_row(terms, PT_PHASE_FIRST_STEP, &states);
    scale_temporary(terms, stack->mem_step_temporary, row);

    row = add_row(terms, PT_PHASE_SAVE, &states);
    scale_temporary(terms, stack->mem_save_staging, row);

    row = add_row(terms, PT_PHASE_LOAD, &states);
    scale_temporary(terms, stack->mem_load_staging, row);

    row = add_row(terms, PT_PHASE_BUILD, &(struct pt_memory_row){ 0 });
    pt_model_params(&setup->model, &whole);
    row->constant = (double)whole.total * stack->mem_build_whole;
    for (int k = 0; k < PT_N_LAYER_KINDS; k++)
        row->layer[k] = terms->weight_bytes[k];
    row->first = terms->embedding_state_bytes[0];
    row->last = terms->head_state_bytes[0];

    row = add_row(terms, PT_PHASE_EVAL, &states); /* forward only: no activations stay */
    *(terms->spread ? &row->constant : &row->last) += terms->logits_bytes;
}

/* Moves the rows that another one always covers behind the others. */
static void prune_rows(struct pt_memory_terms *terms)
{
    unsigned n = 0;

    for (unsigned i = 0; i < terms->n_all; i++) {
        bool covered = false;

        for (unsigned j = 0; j < terms->n_all && !covered; j++)
            covered = j != i && dominated(&terms->row[i], &terms->row[j]) &&
                      (j < i || !dominated(&terms->row[j], &terms->row[i]));
        if (covered)
            continue;
        struct pt_memory_row keep = terms->row[i];

        memmove(&terms->row[n + 1], &terms->row[n], (i - n) * sizeof keep);
        terms->row[n++] = keep;
    }
    terms->n_rows = n;
}

void pt_memory_terms_init(const struct pt_setup *setup, const struct pt_layout *layout,
                          struct pt_memory_terms *terms)
{
    const struct pt_stack *stack = &setup->stack;
    struct pt_rank_params par;
    double width[2][3], stages = 1.0;

    memset(terms, 0, sizeof *terms);
    pt_rank_params(setup, layout, &par);
    state_widths(setup, layout, width);
    if (layout->vocab != PT_VOCAB_ENDS)
        stages = layout->pp;
    terms->spread = layout->vocab != PT_VOCAB_ENDS;
    terms->workspace_bytes = stack->mem_workspace;
    terms->bucket_bytes = stack->mem_bucket;
    layer_terms(setup, layout, &par, width, terms);
    head_terms(setup, layout, stages, terms);
    if (setup->job.dropout)
        terms->embedding_activation_bytes =
            (double)setup->model.hidden * pt_tokens_split(&setup->job, layout);
    end_states(par.embedding, width[0], terms->embedding_state_bytes);
    end_states(par.head, width[0], terms->head_state_bytes);
    if (layout->zero >= 3) {
        terms->gather_ends_bytes[0] = par.embedding * stack->mem_gather_ends;
        terms->gather_ends_bytes[1] = par.head * stack->mem_gather_ends;
    }
    if (stages > 1.0) { /* spread: every stage holds its share of both */
        for (int i = 0; i < 3; i++) {
            double share =
                (terms->embedding_state_bytes[i] + terms->head_state_bytes[i]) / stages;

            terms->workspace_bytes += share;
            terms->embedding_state_bytes[i] = terms->head_state_bytes[i] = 0.0;
        }
    }
    terms->fragmentation_frac = setup->job.compiled ? stack->mem_fragmentation_compiled
                                                    : stack->mem_fragmentation;
    terms->fragmentation_bytes = stack->mem_cache;
    terms->communicator_bytes = stack->mem_communicator * (double)groups(setup, layout);
    terms->context_bytes = stack->mem_context;
    terms->host_rank_bytes = stack->mem_host_rank;
    terms->host_bytes_per_offloaded_byte = 1.0 + stack->mem_host_pinned;
    terms->split_freed = split_freed(setup, layout);
    if (pt_is_cpu_stack(setup))
        pt_cpu_memory_terms(setup, layout, terms);
    build_rows(setup, layout->vpp, terms);
    prune_rows(terms);
}
