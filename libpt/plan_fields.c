#include "config.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "libpt/plan.h"
#include "libpt/plan_fields.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define TABLE(name)                                                                      \
    const struct plan_table plan_##name = { name##_fields, COUNT(name##_fields) }

#define U32(s, m, lo, hi)                                                                \
    {                                                                                    \
#m, PLAN_U32, false, offsetof(struct s, m), lo, hi, NULL                         \
    }
#define U64(s, m)                                                                        \
    {                                                                                    \
#m, PLAN_U64, false, offsetof(struct s, m), 0, 9007199254740992.0, NULL          \
    }
#define I64(s, m)                                                                        \
    {                                                                                    \
#m, PLAN_I64, false, offsetof(struct s, m), -9007199254740992.0,                 \
            9007199254740992.0, NULL                                                     \
    }
#define NUMBER(s, m, lo, hi)                                                             \
    {                                                                                    \
#m, PLAN_NUMBER, false, offsetof(struct s, m), lo, hi, NULL                      \
    }
#define SIZE(s, m) NUMBER(s, m, 0, 1e30)
#define BOOL(s, m)                                                                       \
    {                                                                                    \
#m, PLAN_BOOL, false, offsetof(struct s, m), 0, 1, NULL                          \
    }
#define TEXT(s, m)                                                                       \
    {                                                                                    \
#m, PLAN_TEXT, false, offsetof(struct s, m), 0, sizeof(((struct s *)0)->m), NULL \
    }
#define ENUM(s, m, names)                                                                \
    {                                                                                    \
#m, PLAN_ENUM, false, offsetof(struct s, m), 0, 0, names                         \
    }
#define AS(key, s, m)                                                                    \
    {                                                                                    \
        key, PLAN_NUMBER, false, offsetof(struct s, m), 0, 1e30, NULL                    \
    }

static const char *precision_name(unsigned v)
{
    return pt_precision_name((enum pt_precision)v);
}
static const char *schedule_name(unsigned v)
{
    return pt_schedule_name((enum pt_schedule_kind)v);
}
static const char *recompute_name(unsigned v)
{
    return pt_recompute_name((enum pt_recompute)v);
}
static const char *attention_name(unsigned v)
{
    return v == PT_ATTENTION_EAGER ? "eager" : "flash";
}
static const char *optimizer_name(unsigned v)
{
    static const char *const name[PT_N_OPTIMIZERS] = { "adam", "adam8bit", "sgd" };

    return name[v];
}
static const struct plan_names precisions = { precision_name, PT_N_PRECISIONS },
                               schedules = { schedule_name, PT_N_SCHEDULES },
                               recomputes = { recompute_name, PT_N_RECOMPUTES },
                               attentions = { attention_name, 2 },
                               optimizers = { optimizer_name, PT_N_OPTIMIZERS };

/* Wide ranges: pt_model_check and pt_layout_check judge the meaning. These only keep
 * later arithmetic inside its types. */
#define DIM 16777216.0

static const struct plan_field model_fields[] = {
    TEXT(pt_model, name),
    TEXT(pt_model, source),
    U32(pt_model, layers, 1, PT_MAX_LAYERS),
    U32(pt_model, hidden, 1, DIM),
    U32(pt_model, ffn, 0, DIM),
    U32(pt_model, heads, 1, 65536),
    U32(pt_model, kv_heads, 1, 65536),
    U32(pt_model, head_dim, 1, 65536),
    U32(pt_model, vocab, 1, DIM),
    U32(pt_model, max_seq, 0, 1073741824.0),
    BOOL(pt_model, gated),
    BOOL(pt_model, tied),
    BOOL(pt_model, bias),
    BOOL(pt_model, qkv_bias),
    BOOL(pt_model, rmsnorm),
    BOOL(pt_model, learned_positions),
    BOOL(pt_model, qk_norm),
    BOOL(pt_model, router_bias),
    BOOL(pt_model, shared_gate),
    BOOL(pt_model, sliding_window_half),
    U32(pt_model, norms, 0, 16),
    U32(pt_model, position_rows, 0, 1073741824.0),
    I64(pt_model, extra_layer_params),
    I64(pt_model, extra_params),
    U32(pt_model, experts, 0, 65536),
    U32(pt_model, topk, 0, 65536),
    U32(pt_model, moe_ffn, 0, DIM),
    U32(pt_model, shared_ffn, 0, DIM),
    U32(pt_model, dense_layers, 0, PT_MAX_LAYERS),
    U32(pt_model, q_lora, 0, DIM),
    U32(pt_model, kv_lora, 0, DIM),
    U32(pt_model, qk_nope, 0, 65536),
    U32(pt_model, qk_rope, 0, 65536),
    U32(pt_model, v_dim, 0, 65536),
};
TABLE(model);

#define PEAK(key, p)                                                                     \
    {                                                                                    \
        key, PLAN_NUMBER, false, offsetof(struct pt_gpu, peak_flops[p]), 0, 1e30, NULL   \
    }
static const struct plan_field gpu_fields[] = {
    TEXT(pt_gpu, key),
    TEXT(pt_gpu, name),
    TEXT(pt_gpu, arch),
    TEXT(pt_gpu, family),
    SIZE(pt_gpu, mem_bytes),
    SIZE(pt_gpu, smi_bytes),
    SIZE(pt_gpu, hbm_bytes_per_s),
    PEAK("fp32_flop_per_s", PT_FP32),
    PEAK("tf32_flop_per_s", PT_TF32),
    PEAK("fp16_flop_per_s", PT_FP16),
    PEAK("bf16_flop_per_s", PT_BF16),
    PEAK("fp8_flop_per_s", PT_FP8),
    PEAK("mxfp8_flop_per_s", PT_MXFP8),
    PEAK("nvfp4_flop_per_s", PT_NVFP4),
    U32(pt_gpu, sm_count, 0, 65536),
    SIZE(pt_gpu, h2d_bytes_per_s),
    SIZE(pt_gpu, d2h_bytes_per_s),
    SIZE(pt_gpu, link_bytes_per_s),
    SIZE(pt_gpu, tdp_w),
    SIZE(pt_gpu, usd_per_hour),
    TEXT(pt_gpu, usd_date),
};
TABLE(gpu);

static const struct plan_field link_fields[] = {
    TEXT(pt_link, key),
    TEXT(pt_link, name),
    SIZE(pt_link, allreduce_bytes_per_s),
    SIZE(pt_link, allgather_bytes_per_s),
    SIZE(pt_link, alltoall_bytes_per_s),
    SIZE(pt_link, p2p_bytes_per_s),
    SIZE(pt_link, half_bytes),
    SIZE(pt_link, alpha_s),
};
TABLE(link);

static const struct plan_field cluster_fields[] = {
    U32(pt_cluster, gpus, 1, DIM),
    U32(pt_cluster, domain_gpus, 1, DIM),
    U32(pt_cluster, node_gpus, 1, DIM),
    TEXT(pt_cluster, network),
    SIZE(pt_cluster, nic_bytes_per_s),
    SIZE(pt_cluster, host_mem_bytes),
    SIZE(pt_cluster, host_mem_bytes_per_s),
    U32(pt_cluster, host_cores, 0, 65536),
    SIZE(pt_cluster, cpu_adam_params_per_s),
    SIZE(pt_cluster, mem_limit_bytes),
    TEXT(pt_cluster, source),
};
TABLE(cluster);

static const struct plan_field job_fields[] = {
    U32(pt_job, seq, 1, 1073741824.0),
    U32(pt_job, global_batch, 1, 1073741824.0),
    SIZE(pt_job, tokens),
    ENUM(pt_job, precision, &precisions),
    ENUM(pt_job, optimizer, &optimizers),
    ENUM(pt_job, attention, &attentions),
    BOOL(pt_job, dropout),
    BOOL(pt_job, fused_grad_accumulation),
    BOOL(pt_job, fused_cross_entropy),
    BOOL(pt_job, compiled),
    U64(pt_job, seed),
    U32(pt_job, vocab_unit, 0, DIM),
};
TABLE(job);

static const struct plan_field dtypes_fields[] = {
    NUMBER(pt_dtypes, weight, 0, 16),    NUMBER(pt_dtypes, grad, 0, 16),
    NUMBER(pt_dtypes, master, 0, 16),    NUMBER(pt_dtypes, moments, 0, 16),
    NUMBER(pt_dtypes, grad_comm, 0, 16),
};
TABLE(dtypes);

/* A constant that a file does not know yet (an older one) keeps its datasheet value. */
#define CONSTANT(s, m)                                                                   \
    { #m, PLAN_NUMBER, true, offsetof(struct s, m), -DBL_MAX, DBL_MAX, NULL },
#define X(m, dflt, lo, hi, unit, help) CONSTANT(pt_stack, m)
static const struct plan_field stack_fields[] = { PT_STACK_CONSTANTS(X) };
#undef X
TABLE(stack);
#define X(m, dflt, lo, hi, unit, help) CONSTANT(pt_device, m)
static const struct plan_field device_fields[] = { PT_DEVICE_CONSTANTS(X) };
#undef X
TABLE(device);
#define X(m, dflt, lo, hi, unit, help) CONSTANT(pt_network, m)
static const struct plan_field network_fields[] = { PT_NETWORK_CONSTANTS(X) };
#undef X
TABLE(network);

static const struct plan_field layout_fields[] = {
    U32(pt_layout, tp, 1, DIM),
    U32(pt_layout, pp, 1, PT_MAX_PP),
    U32(pt_layout, vpp, 1, PT_MAX_VPP),
    U32(pt_layout, cp, 1, DIM),
    U32(pt_layout, ep, 1, DIM),
    U32(pt_layout, dp, 1, DIM),
    BOOL(pt_layout, sequence_parallel),
    BOOL(pt_layout, replicate_kv),
    BOOL(pt_layout, uneven_chunks),
    U32(pt_layout, zero, 0, 3),
    U32(pt_layout, zero_group, 0, DIM),
    ENUM(pt_layout, recompute, &recomputes),
    ENUM(pt_layout, schedule, &schedules),
    U32(pt_layout, micro_batch, 1, 1073741824.0),
    U32(pt_layout, max_in_flight, 0, 1048576),
};
TABLE(layout);

#define ANY(s, m) NUMBER(s, m, -1e30, 1e30)
static const struct plan_field step_fields[] = {
    SIZE(pt_step, step_s),
    ANY(pt_step, pipeline_s),
    ANY(pt_step, compute_s),
    ANY(pt_step, tp_s),
    ANY(pt_step, cp_s),
    ANY(pt_step, ep_s),
    ANY(pt_step, pp_s),
    ANY(pt_step, recompute_s),
    ANY(pt_step, bubble_s),
    ANY(pt_step, imbalance_s),
    ANY(pt_step, dp_s),
    ANY(pt_step, optimizer_s),
    ANY(pt_step, offload_s),
    ANY(pt_step, other_s),
    ANY(pt_step, bubble_of_total),
    ANY(pt_step, bubble_of_ideal),
    U32(pt_step, slowest_stage, 0, PT_MAX_PP - 1),
    SIZE(pt_step, tp_bytes),
    SIZE(pt_step, cp_bytes),
    SIZE(pt_step, ep_bytes),
    SIZE(pt_step, pp_bytes),
    SIZE(pt_step, dp_bytes),
    SIZE(pt_step, intra_bytes),
    SIZE(pt_step, inter_bytes),
    SIZE(pt_step, tokens_per_s_gpu),
    SIZE(pt_step, model_flops_gpu),
    SIZE(pt_step, mfu),
    SIZE(pt_step, hfu),
};
TABLE(step);

static const struct plan_field memory_fields[] = {
    U32(pt_memory, worst_stage, 0, PT_MAX_PP - 1),
    SIZE(pt_memory, allocated_bytes),
    SIZE(pt_memory, reserved_bytes),
    SIZE(pt_memory, device_bytes),
    SIZE(pt_memory, limit_bytes),
    SIZE(pt_memory, host_bytes),
    SIZE(pt_memory, host_limit_bytes),
    BOOL(pt_memory, fits),
    TEXT(pt_memory, largest_tensor),
    SIZE(pt_memory, largest_tensor_bytes),
};
TABLE(memory);

#define PART(key, p)  AS(key, pt_stage_memory, part_bytes[p])
#define PHASE(key, p) AS(key, pt_stage_memory, phase_device_bytes[p])
static const char *phase_word(unsigned v)
{
    static const char *const word[PT_N_PHASES] = { "build",      "load", "steady",
                                                   "first_step", "save", "eval" };

    return word[v];
}
static const struct plan_names phases = { phase_word, PT_N_PHASES };
static const struct plan_field stage_memory_fields[] = {
    PART("weights_bytes", PT_MEM_WEIGHTS),
    PART("gradients_bytes", PT_MEM_GRADS),
    PART("optimizer_bytes", PT_MEM_OPTIMIZER),
    PART("activations_bytes", PT_MEM_ACTIVATIONS),
    PART("logits_bytes", PT_MEM_LOGITS),
    PART("gather_bytes", PT_MEM_GATHER),
    PART("workspace_bytes", PT_MEM_WORKSPACE),
    PART("fragmentation_bytes", PT_MEM_FRAGMENTATION),
    PART("communicators_bytes", PT_MEM_COMMUNICATORS),
    PART("context_bytes", PT_MEM_CONTEXT),
    SIZE(pt_stage_memory, allocated_bytes),
    SIZE(pt_stage_memory, reserved_bytes),
    SIZE(pt_stage_memory, device_bytes),
    SIZE(pt_stage_memory, host_bytes),
    SIZE(pt_stage_memory, in_flight),
    ENUM(pt_stage_memory, worst_phase, &phases),
    PHASE("build_device_bytes", PT_PHASE_BUILD),
    PHASE("load_device_bytes", PT_PHASE_LOAD),
    PHASE("steady_device_bytes", PT_PHASE_STEADY),
    PHASE("first_step_device_bytes", PT_PHASE_FIRST_STEP),
    PHASE("save_device_bytes", PT_PHASE_SAVE),
    PHASE("eval_device_bytes", PT_PHASE_EVAL),
};
TABLE(stage_memory);

/* Members are reached by offset; memcpy keeps that free of alignment and aliasing
 * questions. */
void plan_fields_write(struct pt_json *object, const struct plan_table *table,
                       const void *base)
{
    for (size_t i = 0; i < table->n; i++) {
        const struct plan_field *f = &table->field[i];
        const char *at = (const char *)base + f->offset;
        uint32_t u32;
        uint64_t u64;
        int64_t i64;
        double number;
        bool flag;
        unsigned value;

        switch (f->type) {
        case PLAN_U32:
            memcpy(&u32, at, sizeof(u32));
            pt_json_put_u64(object, f->key, u32);
            break;
        case PLAN_U64:
            memcpy(&u64, at, sizeof(u64));
            pt_json_put_u64(object, f->key, u64);
            break;
        case PLAN_I64: /* JSON's numbers of ours are unsigned or real */
            memcpy(&i64, at, sizeof(i64));
            pt_json_put_number(object, f->key, (double)i64);
            break;
        case PLAN_NUMBER:
            memcpy(&number, at, sizeof(number));
            pt_json_put_number(object, f->key, number);
            break;
        case PLAN_BOOL:
            memcpy(&flag, at, sizeof(flag));
            pt_json_put_bool(object, f->key, flag);
            break;
        case PLAN_TEXT:
            pt_json_put_string(object, f->key, at);
            break;
        case PLAN_ENUM:
            memcpy(&value, at, sizeof(value));
            pt_json_put_string(object, f->key, f->names->name(value));
            break;
        }
    }
}

const char *plan_where(char *buf, size_t size, const struct pt_json *object,
                       const char *key)
{
    snprintf(buf, size, "%s.%s", pt_json_where(object), key);
    return buf;
}

static enum pt_status read_text(const struct pt_json *object, const struct plan_field *f,
                                char *at, struct pt_error *err)
{
    const char *text = "";
    char where[256];
    enum pt_status st = pt_json_string(object, f->key, &text, err);

    if (st != PT_OK)
        return st;
    if (strlen(text) >= (size_t)f->hi)
        return pt_fail(err, PT_INPUT, plan_where(where, sizeof(where), object, f->key), 0,
                       "%zu characters, but at most %zu are kept", strlen(text),
                       (size_t)f->hi - 1);
    memcpy(at, text, strlen(text) + 1);
    return PT_OK;
}

static enum pt_status read_enum(const struct pt_json *object, const struct plan_field *f,
                                void *at, struct pt_error *err)
{
    const char *text = "";
    char list[256] = "", where[256];
    enum pt_status st = pt_json_string(object, f->key, &text, err);

    if (st != PT_OK)
        return st;
    for (unsigned v = 0; v < f->names->n; v++) {
        size_t used = strlen(list);

        if (!strcmp(text, f->names->name(v))) {
            memcpy(at, &v, sizeof(v));
            return PT_OK;
        }
        snprintf(list + used, sizeof(list) - used, "%s%s", v > 0 ? ", " : "",
                 f->names->name(v));
    }
    return pt_fail(err, PT_INPUT, plan_where(where, sizeof(where), object, f->key), 0,
                   "'%.40s' is not known; it is one of %s", text, list);
}

static enum pt_status read_field(const struct pt_json *object, const struct plan_field *f,
                                 char *at, struct pt_error *err)
{
    enum pt_status st;
    uint64_t u64 = 0;
    double number = 0;
    bool flag = false;

    switch (f->type) {
    case PLAN_U32:
    case PLAN_U64:
        st = pt_json_u64(object, f->key, (uint64_t)f->lo, (uint64_t)f->hi, &u64, err);
        if (st == PT_OK && f->type == PLAN_U32) {
            uint32_t u32 = (uint32_t)u64;

            memcpy(at, &u32, sizeof(u32));
        } else if (st == PT_OK)
            memcpy(at, &u64, sizeof(u64));
        return st;
    case PLAN_I64:
        if ((st = pt_json_number(object, f->key, f->lo, f->hi, &number, err)))
            return st;
        if (number < floor(number) || number > floor(number))
            return pt_fail(err, PT_INPUT, pt_json_where(object), 0,
                           "%s: %g is not a whole number", f->key, number);
        memcpy(at, &(int64_t){ (int64_t)number }, sizeof(int64_t));
        return PT_OK;
    case PLAN_NUMBER:
        if ((st = pt_json_number(object, f->key, f->lo, f->hi, &number, err)) == PT_OK)
            memcpy(at, &number, sizeof(number));
        return st;
    case PLAN_BOOL:
        if ((st = pt_json_bool(object, f->key, &flag, err)) == PT_OK)
            memcpy(at, &flag, sizeof(flag));
        return st;
    case PLAN_TEXT:
        return read_text(object, f, at, err);
    case PLAN_ENUM:
        return read_enum(object, f, at, err);
    }
    return pt_fail(err, PT_BUG, NULL, 0, "%s: a field without a type", f->key);
}

enum pt_status plan_fields_read(const struct pt_json *object,
                                const struct plan_table *table, void *base,
                                FILE *warnings, struct pt_error *err)
{
    char absent[256] = "";

    for (size_t i = 0; i < table->n; i++) {
        const struct plan_field *f = &table->field[i];
        enum pt_status st;

        if (f->optional && !pt_json_has(object, f->key)) {
            size_t used = strlen(absent);

            snprintf(absent + used, sizeof(absent) - used, " %s", f->key);
            continue;
        }
        st = read_field(object, f, (char *)base + f->offset, err);
        if (st != PT_OK)
            return st;
    }
    if (absent[0] != '\0' && warnings != NULL)
        fprintf(warnings, "warning: %s: absent, so as in datasheets:%s\n",
                pt_json_where(object), absent);
    return PT_OK;
}

void plan_warn_unknown(const struct pt_json *object, const struct plan_table *table,
                       const char *const *others, FILE *warnings)
{
    const char *key = NULL;

    if (warnings == NULL)
        return;
    while ((key = pt_json_next_key(object, key)) != NULL) {
        bool known = false;

        for (size_t i = 0; table != NULL && !known && i < table->n; i++)
            known = !strcmp(key, table->field[i].key);
        for (size_t i = 0; others != NULL && !known && others[i] != NULL; i++)
            known = !strcmp(key, others[i]);
        if (!known)
            fprintf(warnings,
                    "warning: %s: the key '%.60s' is not known and is ignored\n",
                    pt_json_where(object), key);
    }
}
