/* The memory of a split: memory.h's rows evaluated per stage, the fullest host, the
 * largest tensor. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libpt/memory.h"
#include "libpt/memory_layer.h"

const char *pt_memory_part_name(enum pt_memory_part part)
{
    static const char *const name[PT_N_MEMORY_PARTS] = {
        "weights",   "gradients", "optimizer",     "activations",   "logits",
        "gathering", "workspace", "fragmentation", "communicators", "context"
    };

    return (unsigned)part < PT_N_MEMORY_PARTS ? name[part] : "unknown";
}

const char *pt_phase_name(enum pt_phase phase)
{
    static const char *const name[PT_N_PHASES] = {
        "building", "loading", "steady step", "first step", "saving", "evaluation"
    };

    return (unsigned)phase < PT_N_PHASES ? name[phase] : "unknown";
}

double pt_memory_limit(const struct pt_setup *setup)
{
    double bytes = setup->cluster.mem_limit_bytes > 0.0 ? setup->cluster.mem_limit_bytes
                                                        : setup->cluster.gpu.mem_bytes;

    return bytes * (1.0 - setup->stack.mem_margin);
}

void pt_stage_content(const struct pt_layout *layout, const struct pt_split *split,
                      uint32_t micro_batches, uint32_t stage,
                      struct pt_stage_content *content)
{
    uint32_t pp = split->pp;

    *content = (struct pt_stage_content){ .offload_frac = split->offload_frac[stage],
                                          .in_flight =
                                              pt_in_flight(layout, micro_batches, stage),
                                          .first = stage == 0 };
    content->last = pt_split_order(layout, pp * split->vpp - 1) % pp == stage;
    for (uint32_t c = 0; c < split->vpp; c++)
        for (int k = 0; k < PT_N_LAYER_KINDS; k++) {
            const struct pt_chunk *chunk = &split->chunk[c * pp + stage];

            content->layers[k] += chunk->layers[k];
            content->recomputed[k] += chunk->recomputed[k];
        }
}

double pt_memory_row_bytes(const struct pt_memory_row *row,
                           const struct pt_stage_content *content)
{
    double bytes = row->constant, flight = 0.0, offload = 0.0;
    bool any = false;

    if (content->first) {
        bytes += row->first;
        flight += row->flight_first;
        offload += row->offload_first;
    }
    if (content->last) {
        bytes += row->last;
        offload += row->offload_last;
    }
    for (int k = 0; k < PT_N_LAYER_KINDS; k++) {
        double n = content->layers[k], r = content->recomputed[k];

        bytes += n * row->layer[k] + r * row->recomputed[k];
        flight += n * row->flight[k] + r * row->flight_recomputed[k];
        offload += n * row->offload[k];
        any = any || r > 0.0;
    }
    bytes += content->in_flight * flight - content->offload_frac * offload;
    return any ? bytes + row->any_recomputed : bytes;
}

static double reserved(const struct pt_memory_terms *terms, double allocated)
{
    return allocated * (1.0 + terms->fragmentation_frac) + terms->fragmentation_bytes;
}

double pt_memory_device_bytes(const struct pt_memory_terms *terms, double allocated_bytes)
{
    return reserved(terms, allocated_bytes) + terms->communicator_bytes +
           terms->context_bytes;
}

/* Weights, gradients and optimizer of a stage, nothing offloaded. */
static void stage_states(const struct pt_memory_terms *terms,
                         const struct pt_stage_content *c, double state[3])
{
    const double *layer[3] = { terms->weight_bytes, terms->grad_bytes,
                               terms->optimizer_bytes };

    for (int i = 0; i < 3; i++) {
        state[i] = (c->first ? terms->embedding_state_bytes[i] : 0.0) +
                   (c->last ? terms->head_state_bytes[i] : 0.0);
        for (int k = 0; k < PT_N_LAYER_KINDS; k++)
            state[i] += c->layers[k] * layer[i][k];
    }
}

/* Saved activations and the transient of a layer's backward. */
static double row_activations(const struct pt_memory_terms *terms,
                              const struct pt_memory_row *row,
                              const struct pt_stage_content *c)
{
    double bytes = row->moment == PT_MOMENT_LAYER ? terms->backward_bytes : 0.0;
    bool any = false;

    if (c->first)
        bytes += c->in_flight * row->flight_first;
    for (int k = 0; k < PT_N_LAYER_KINDS; k++) {
        double states =
            terms->weight_bytes[k] + terms->grad_bytes[k] + terms->optimizer_bytes[k];

        bytes += c->layers[k] * (row->layer[k] - states + c->in_flight * row->flight[k]);
        bytes += c->recomputed[k] *
                 (row->recomputed[k] + c->in_flight * row->flight_recomputed[k]);
        any = any || c->recomputed[k] > 0.0;
    }
    return bytes + (any ? row->any_recomputed : 0.0);
}

/* The parts of a row: what the terms say of states, activations, logits and gathering.
 * Buffers and temporaries are the rest, so that the parts add up to the row. */
static void row_parts(const struct pt_memory_terms *terms,
                      const struct pt_memory_row *row, const struct pt_stage_content *c,
                      double allocated, double *part)
{
    double state[3], built = row->phase == PT_PHASE_BUILD ? 0.0 : 1.0;
    bool head = c->last || terms->spread;

    stage_states(terms, c, state);
    part[PT_MEM_WEIGHTS] = state[0];
    part[PT_MEM_GRADS] = built * state[1];
    part[PT_MEM_OPTIMIZER] = built * (1.0 - c->offload_frac) * state[2];
    part[PT_MEM_ACTIVATIONS] =
        row->phase == PT_PHASE_STEADY ? row_activations(terms, row, c) : 0.0;
    part[PT_MEM_LOGITS] = 0.0;
    if (head && row->moment == PT_MOMENT_HEAD)
        part[PT_MEM_LOGITS] = terms->logits_bytes + terms->head_saved_bytes;
    else if (head && row->phase == PT_PHASE_EVAL)
        part[PT_MEM_LOGITS] = terms->logits_bytes;
    part[PT_MEM_GATHER] =
        built * (terms->gather_bytes + (c->first ? terms->gather_ends_bytes[0] : 0.0) +
                 (c->last ? terms->gather_ends_bytes[1] : 0.0));
    part[PT_MEM_WORKSPACE] = allocated;
    for (int i = 0; i < PT_MEM_WORKSPACE; i++)
        part[PT_MEM_WORKSPACE] -= part[i];
}

static void stage_memory(const struct pt_memory_terms *terms,
                         const struct pt_stage_content *content,
                         struct pt_stage_memory *stage)
{
    unsigned worst = 0;

    *stage = (struct pt_stage_memory){ .in_flight = content->in_flight };
    for (unsigned i = 0; i < terms->n_all; i++) {
        const struct pt_memory_row *row = &terms->row[i];
        double bytes = pt_memory_row_bytes(row, content);
        double device = pt_memory_device_bytes(terms, bytes);

        if (device > stage->phase_device_bytes[row->phase])
            stage->phase_device_bytes[row->phase] = device;
        if (bytes > stage->allocated_bytes) {
            stage->allocated_bytes = bytes;
            worst = i;
        }
    }
    stage->worst_phase = terms->row[worst].phase;
    stage->reserved_bytes = reserved(terms, stage->allocated_bytes);
    stage->device_bytes = pt_memory_device_bytes(terms, stage->allocated_bytes);
    row_parts(terms, &terms->row[worst], content, stage->allocated_bytes,
              stage->part_bytes);
    stage->part_bytes[PT_MEM_FRAGMENTATION] =
        stage->reserved_bytes - stage->allocated_bytes;
    stage->part_bytes[PT_MEM_COMMUNICATORS] = terms->communicator_bytes;
    stage->part_bytes[PT_MEM_CONTEXT] = terms->context_bytes;

    double state[3];

    stage_states(terms, content, state);
    stage->host_bytes = terms->host_rank_bytes + content->offload_frac * state[2] *
                                                     terms->host_bytes_per_offloaded_byte;
}

/* Ranks are numbered tp, cp, ep, dp, pp: a stage is a run of `width` ranks, a host a run
 * of node_gpus. */
static double fullest_host(const struct pt_memory *memory, uint32_t width,
                           uint32_t node_gpus)
{
    double fullest = 0.0;
    uint64_t ranks = (uint64_t)width * memory->stages;

    if (node_gpus == 0)
        node_gpus = 1;
    for (uint64_t at = 0; at < ranks;) {
        uint64_t end = at + node_gpus < ranks ? at + node_gpus : ranks;
        uint64_t s = at / width;
        double bytes = 0.0;

        for (uint64_t from = at; from < end; s++) {
            uint64_t to = (s + 1) * width < end ? (s + 1) * width : end;

            bytes += (double)(to - from) * memory->stage[s].host_bytes;
            from = to;
        }
        if (bytes > fullest)
            fullest = bytes;
        at = end;
    }
    return fullest;
}

static void largest(struct pt_memory *memory, double bytes, const char *what,
                    double width, const double *dim, unsigned dims)
{
    char text[sizeof memory->largest_tensor];
    size_t used;

    if (bytes <= memory->largest_tensor_bytes)
        return;
    memory->largest_tensor_bytes = bytes;
    (void)snprintf(text, sizeof text, "%s %g B", what, width);
    for (unsigned i = 0; i < dims; i++) {
        used = strlen(text);
        (void)snprintf(text + used, sizeof text - used, " x %.0f", dim[i]);
    }
    memcpy(memory->largest_tensor, text, sizeof text);
}

/* The tensors that a failed allocation names: scores of eager attention, logits, the
 * MLP's wide activation, a gradient the size of the embedding. */
static void name_largest(const struct pt_setup *setup, const struct pt_layout *layout,
                         struct pt_memory *memory)
{
    const struct pt_model *m = &setup->model;
    const struct pt_job *job = &setup->job;
    double b = layout->micro_batch, s = job->seq, q = s / (double)layout->cp,
           t = layout->tp;
    double vocab = (double)pt_vocab_padded(m->vocab, job->vocab_unit, layout->tp) / t;
    double wide = (m->gated ? 2.0 : 1.0) * m->ffn / t;
    bool fp32 = job->precision == PT_FP32 || job->precision == PT_TF32;
    double width = fp32 ? 4.0 : 2.0;

    if (job->attention == PT_ATTENTION_EAGER)
        largest(memory, 4.0 * b * m->heads / t * q * s, "fp32 attention scores", 4.0,
                (double[]){ b, m->heads / t, q, s }, 4);
    if (job->fused_cross_entropy && !fp32)
        largest(memory, 2.0 * b * q * vocab, "16-bit logits", 2.0,
                (double[]){ b, q, vocab }, 3);
    else
        largest(memory, 4.0 * b * q * vocab, "fp32 logits", 4.0,
                (double[]){ b, q, vocab }, 3);
    largest(memory, width * b * q * wide,
            fp32 ? "fp32 MLP activation" : "16-bit MLP activation", width,
            (double[]){ b, q, wide }, 3);
}

enum pt_status pt_memory_init(const struct pt_setup *setup,
                              const struct pt_layout *layout,
                              const struct pt_memory_terms *terms,
                              const struct pt_split *split, struct pt_memory *memory,
                              struct pt_error *err)
{
    uint32_t m = pt_micro_batches(&setup->job, layout);

    *memory = (struct pt_memory){ .stages = split->pp };
    memory->stage = calloc(split->pp, sizeof *memory->stage);
    if (memory->stage == NULL)
        return pt_fail(err, PT_SYSTEM, "", 0, "no memory for %u stages", split->pp);
    for (uint32_t s = 0; s < split->pp; s++) {
        struct pt_stage_content content;
        struct pt_stage_memory *stage = &memory->stage[s];

        pt_stage_content(layout, split, m, s, &content);
        stage_memory(terms, &content, stage);
        if (stage->allocated_bytes > memory->allocated_bytes)
            memory->allocated_bytes = stage->allocated_bytes;
        if (stage->reserved_bytes > memory->reserved_bytes)
            memory->reserved_bytes = stage->reserved_bytes;
        if (stage->device_bytes > memory->device_bytes) {
            memory->device_bytes = stage->device_bytes;
            memory->worst_stage = s;
        }
    }
    memory->limit_bytes = pt_memory_limit(setup);
    memory->host_bytes = fullest_host(memory, layout->tp * layout->cp * layout->dp,
                                      setup->cluster.node_gpus);
    memory->host_limit_bytes = setup->cluster.host_mem_bytes;
    memory->fits = memory->device_bytes <= memory->limit_bytes &&
                   (memory->host_limit_bytes <= 0.0 ||
                    memory->host_bytes <= memory->host_limit_bytes);
    name_largest(setup, layout, memory);
    return PT_OK;
}

void pt_memory_fini(struct pt_memory *memory)
{
    free(memory->stage);
    *memory = (struct pt_memory){ 0 };
}
