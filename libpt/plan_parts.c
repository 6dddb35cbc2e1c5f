#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "libpt/plan_fields.h"
#include "libpt/plan_parts.h"

static const char *const kind_key[PT_N_LAYER_KINDS] = { "dense", "moe" };

static void put_kinds(struct pt_json *chunk, const char *key, const uint16_t *n, bool moe)
{
    struct pt_json *o = pt_json_add_object(chunk, key);

    for (unsigned k = 0; k < (moe ? PT_N_LAYER_KINDS : 1); k++)
        pt_json_put_u64(o, kind_key[k], n[k]);
}

void plan_put_stages(struct pt_json *stages, const struct pt_split *split, bool moe)
{
    for (uint32_t s = 0; s < split->pp; s++) {
        struct pt_json *stage = pt_json_add_object(stages, NULL);
        struct pt_json *chunks;

        pt_json_put_number(stage, "offload_frac", split->offload_frac[s]);
        chunks = pt_json_add_array(stage, "chunks");
        for (uint32_t c = 0; c < split->vpp; c++) {
            const struct pt_chunk *from = &split->chunk[c * split->pp + s];
            struct pt_json *chunk = pt_json_add_object(chunks, NULL);

            put_kinds(chunk, "layers", from->layers, moe);
            put_kinds(chunk, "recomputed", from->recomputed, moe);
        }
    }
}

/* n[kind], each at most limit[kind]. */
static enum pt_status get_kinds(const struct pt_json *chunk, const char *key,
                                const uint32_t *limit, const char *limit_text,
                                uint16_t *n, FILE *warnings, struct pt_error *err)
{
    static const char *const keys[] = { "dense", "moe", NULL };
    const struct pt_json *o = NULL;
    enum pt_status st = pt_json_get(chunk, key, &o, err);
    char where[256];

    if (st != PT_OK)
        return st;
    plan_warn_unknown(o, NULL, keys, warnings);
    for (unsigned k = 0; k < PT_N_LAYER_KINDS; k++) {
        uint64_t v = 0;

        if ((st = pt_json_u64_or(o, kind_key[k], 0, UINT32_MAX, &v, err)))
            return st;
        if (v > limit[k])
            return pt_fail(
                err, PT_INPUT, plan_where(where, sizeof(where), o, kind_key[k]), 0,
                "%llu exceeds %s %u", (unsigned long long)v, limit_text, limit[k]);
        n[k] = (uint16_t)v; /* a model has at most PT_MAX_LAYERS */
    }
    return PT_OK;
}

static enum pt_status get_chunk(const struct pt_json *json, const uint32_t *model_layers,
                                struct pt_chunk *chunk, FILE *warnings,
                                struct pt_error *err)
{
    static const char *const keys[] = { "layers", "recomputed", NULL };
    uint32_t own[PT_N_LAYER_KINDS];
    enum pt_status st;

    plan_warn_unknown(json, NULL, keys, warnings);
    if ((st = get_kinds(json, "layers", model_layers, "the model's", chunk->layers,
                        warnings, err)))
        return st;
    for (unsigned k = 0; k < PT_N_LAYER_KINDS; k++)
        own[k] = chunk->layers[k];
    return get_kinds(json, "recomputed", own, "the chunk's", chunk->recomputed, warnings,
                     err);
}

static enum pt_status get_stage(const struct pt_json *json, uint32_t s,
                                const uint32_t *model_layers, struct pt_split *split,
                                FILE *warnings, struct pt_error *err)
{
    static const char *const keys[] = { "offload_frac", "chunks", NULL };
    const struct pt_json *chunks = NULL, *chunk = NULL;
    enum pt_status st;

    plan_warn_unknown(json, NULL, keys, warnings);
    if ((st = pt_json_number(json, "offload_frac", 0, 1, &split->offload_frac[s], err)) ||
        (st = pt_json_get(json, "chunks", &chunks, err)))
        return st;
    if (pt_json_length(chunks) != split->vpp)
        return pt_fail(err, PT_INPUT, pt_json_where(chunks), 0,
                       "%zu chunks, but layout.vpp is %u", pt_json_length(chunks),
                       split->vpp);
    for (uint32_t c = 0; c < split->vpp; c++)
        if ((st = pt_json_at(chunks, c, &chunk, err)) ||
            (st = get_chunk(chunk, model_layers, &split->chunk[c * split->pp + s],
                            warnings, err)))
            return st;
    return PT_OK;
}

/* Every layer has one place, and the kinds come in the model's order: dense first, then
 * MoE. */
static enum pt_status check_sums(const struct pt_plan *plan, const char *where,
                                 struct pt_error *err)
{
    uint32_t sum[PT_N_LAYER_KINDS] = { 0 };

    for (uint32_t i = 0; i < plan->split.pp * plan->split.vpp; i++) {
        uint32_t at = pt_split_order(&plan->layout, i);
        const struct pt_chunk *chunk = &plan->split.chunk[at];

        if (chunk->layers[PT_LAYER_DENSE] > 0 && sum[PT_LAYER_MOE] > 0)
            return pt_fail(err, PT_INPUT, where, 0,
                           "stage %u chunk %u: dense layers after MoE layers, but the "
                           "model's %u dense layers come first",
                           at % plan->split.pp, at / plan->split.pp,
                           pt_model_layers(&plan->setup.model, PT_LAYER_DENSE));
        for (unsigned k = 0; k < PT_N_LAYER_KINDS; k++)
            sum[k] += chunk->layers[k];
    }
    for (unsigned k = 0; k < PT_N_LAYER_KINDS; k++) {
        uint32_t want = pt_model_layers(&plan->setup.model, (enum pt_layer_kind)k);

        if (sum[k] != want)
            return pt_fail(err, PT_INPUT, where, 0,
                           "%u %s layers in all, but the model has %u", sum[k],
                           kind_key[k], want);
    }
    return PT_OK;
}

enum pt_status plan_get_stages(const struct pt_json *doc, struct pt_plan *plan,
                               FILE *warnings, struct pt_error *err)
{
    const struct pt_json *stages = NULL, *stage = NULL;
    uint32_t model_layers[PT_N_LAYER_KINDS];
    enum pt_status st;

    if ((st = pt_json_get(doc, "stages", &stages, err)))
        return st;
    if (pt_json_length(stages) != plan->layout.pp)
        return pt_fail(err, PT_INPUT, pt_json_where(stages), 0,
                       "%zu stages, but layout.pp is %u", pt_json_length(stages),
                       plan->layout.pp);
    if ((st = pt_split_init(&plan->split, plan->layout.pp, plan->layout.vpp, err)))
        return st;
    for (unsigned k = 0; k < PT_N_LAYER_KINDS; k++)
        model_layers[k] = pt_model_layers(&plan->setup.model, (enum pt_layer_kind)k);
    for (uint32_t s = 0; s < plan->layout.pp; s++)
        if ((st = pt_json_at(stages, s, &stage, err)) ||
            (st = get_stage(stage, s, model_layers, &plan->split, warnings, err)))
            return st;
    return check_sums(plan, pt_json_where(stages), err);
}

void plan_put_predictions(struct pt_json *predictions, const struct pt_plan *plan)
{
    struct pt_json *memory, *stages;

    pt_json_put_string(predictions, "flop_convention", plan->causal ? "causal" : "full");
    plan_fields_write(pt_json_add_object(predictions, "step"), &plan_step, &plan->step);
    if (plan->memory.stage == NULL)
        return;
    memory = pt_json_add_object(predictions, "memory");
    plan_fields_write(memory, &plan_memory, &plan->memory);
    stages = pt_json_add_array(memory, "stages");
    for (uint32_t s = 0; s < plan->memory.stages; s++)
        plan_fields_write(pt_json_add_object(stages, NULL), &plan_stage_memory,
                          &plan->memory.stage[s]);
}

static enum pt_status get_memory(const struct pt_json *json, struct pt_plan *plan,
                                 FILE *warnings, struct pt_error *err)
{
    static const char *const keys[] = { "stages", NULL };
    const struct pt_json *stages = NULL, *stage = NULL;
    struct pt_memory *memory = &plan->memory;
    enum pt_status st;

    plan_warn_unknown(json, &plan_memory, keys, warnings);
    if ((st = plan_fields_read(json, &plan_memory, memory, warnings, err)) ||
        (st = pt_json_get(json, "stages", &stages, err)))
        return st;
    if (pt_json_length(stages) != plan->layout.pp ||
        memory->worst_stage >= plan->layout.pp)
        return pt_fail(err, PT_INPUT, pt_json_where(stages), 0,
                       "%zu stages (the worst is %u), but layout.pp is %u",
                       pt_json_length(stages), memory->worst_stage, plan->layout.pp);
    memory->stage = calloc(plan->layout.pp, sizeof(*memory->stage));
    if (memory->stage == NULL)
        return pt_fail(err, PT_SYSTEM, NULL, 0, "no memory for %u stages",
                       plan->layout.pp);
    memory->stages = plan->layout.pp;
    for (uint32_t s = 0; s < memory->stages; s++) {
        if ((st = pt_json_at(stages, s, &stage, err)))
            return st;
        plan_warn_unknown(stage, &plan_stage_memory, NULL, warnings);
        st =
            plan_fields_read(stage, &plan_stage_memory, &memory->stage[s], warnings, err);
        if (st != PT_OK)
            return st;
    }
    return PT_OK;
}

enum pt_status plan_get_predictions(const struct pt_json *doc, struct pt_plan *plan,
                                    FILE *warnings, struct pt_error *err)
{
    static const char *const keys[] = { "flop_convention", "step", "memory", NULL };
    const struct pt_json *predictions = NULL, *part = NULL;
    const char *convention = "causal";
    enum pt_status st;

    if (!pt_json_has(doc, "predictions"))
        return PT_OK;
    if ((st = pt_json_get(doc, "predictions", &predictions, err)))
        return st;
    plan_warn_unknown(predictions, NULL, keys, warnings);
    if ((st = pt_json_string(predictions, "flop_convention", &convention, err)))
        return st;
    plan->causal = strcmp(convention, "full") != 0;
    if (plan->causal && strcmp(convention, "causal") != 0)
        return pt_fail(err, PT_INPUT, pt_json_where(predictions), 0,
                       "flop_convention: '%.40s' is neither causal nor full", convention);
    if ((st = pt_json_get(predictions, "step", &part, err)))
        return st;
    plan_warn_unknown(part, &plan_step, NULL, warnings);
    if ((st = plan_fields_read(part, &plan_step, &plan->step, warnings, err)))
        return st;
    if (plan->step.slowest_stage >= plan->layout.pp)
        return pt_fail(err, PT_INPUT, pt_json_where(part), 0,
                       "slowest_stage: %u, but layout.pp is %u", plan->step.slowest_stage,
                       plan->layout.pp);
    if (!pt_json_has(predictions, "memory"))
        return PT_OK;
    if ((st = pt_json_get(predictions, "memory", &part, err)))
        return st;
    return get_memory(part, plan, warnings, err);
}
