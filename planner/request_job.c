/* From the command line to a request: the job. */
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "libpt/memory.h"
#include "libpt/units.h"
#include "planner/options.h"

/* Tokens per step that published runs of a size used (GPT-3, arXiv 2005.14165, table 2.1;
 * Llama, arXiv 2302.13971, table 2; Llama 3, arXiv 2407.21783, section 3.4). */
static double default_tokens(double params)
{
    static const struct {
        double below, tokens;
    } table[] = {
        { 1e9, 0.5e6 }, { 5e9, 1e6 }, { 30e9, 2e6 }, { 300e9, 4e6 }, { 1e30, 8e6 },
    };
    size_t i = 0;

    while (params >= table[i].below)
        i++;
    return table[i].tokens;
}

static uint64_t odd_part(uint64_t n)
{
    while (n > 0 && n % 2 == 0)
        n /= 2;
    return n;
}

/* The number of sequences nearest to default_tokens that is a power of two times the odd
 * parts of GPUs and micro-batch, so that replicas divide it. */
uint32_t planner_default_batch(double params, uint32_t seq, uint32_t gpus,
                               uint32_t micro_batch)
{
    double wanted = default_tokens(params) / seq;
    uint64_t unit = odd_part(gpus > 0 ? gpus : 1) * odd_part(micro_batch), batch;
    double power = round(log2(wanted / (double)unit));

    if (power < 0)
        power = 0;
    batch = unit * ((uint64_t)1 << (power > 27 ? 27 : (unsigned)power));
    return batch > 268435456 ? 268435456 : (uint32_t)batch;
}

static enum pt_status set_precision(struct planner_request *r,
                                    const struct planner_given *g, struct pt_error *err)
{
    struct pt_job *j = &r->setup.job;
    const struct pt_gpu *gpu = &r->setup.cluster.gpu;
    char list[96] = "";
    size_t used = 0;

    if (g->precision != NULL) {
        enum pt_status st = pt_precision_parse(g->precision, &j->precision, err);

        if (st != PT_OK)
            return st;
    } else {
        j->precision = gpu->peak_flops[PT_BF16] > 0   ? PT_BF16
                       : gpu->peak_flops[PT_FP16] > 0 ? PT_FP16
                                                      : PT_FP32;
    }
    if (gpu->peak_flops[j->precision] > 0)
        return PT_OK;
    for (int p = 0; p < PT_N_PRECISIONS; p++)
        if (gpu->peak_flops[p] > 0)
            used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s",
                                     used > 0 ? ", " : "",
                                     pt_precision_name((enum pt_precision)p));
    return pt_fail(err, PT_USAGE, NULL, 0, "%s has no %s; it has %s", gpu->key,
                   pt_precision_name(j->precision), list);
}

/* --tflops replaces the peak of the chosen precision. Twice the dense peak is the figure
 * with structured sparsity, which training does not use. */
static void set_peak(struct planner_request *r, const struct planner_given *g)
{
    struct pt_gpu *gpu = &r->setup.cluster.gpu;
    enum pt_precision p = r->setup.job.precision;
    double dense = gpu->peak_flops[p], given = g->tflops * 1e12;

    if (!g->tflops_given)
        return;
    if (fabs(given / dense - 2) < 0.02)
        planner_note(&r->warnings,
                     "--tflops %g is the sparse figure of %s in %s; the dense "
                     "peak is %g; continuing with %g",
                     g->tflops, gpu->key, pt_precision_name(p), dense / 1e12, g->tflops);
    else if (given > 1.25 * dense)
        planner_note(&r->warnings, "--tflops %g is above the dense peak of %s in %s, %g",
                     g->tflops, gpu->key, pt_precision_name(p), dense / 1e12);
    gpu->peak_flops[p] = given;
}

/* fp32 on a card whose 16-bit products are several times as fast, for a model of some
 * size. */
static void warn_precision(struct planner_request *r, const struct planner_given *g)
{
    const struct pt_gpu *gpu = &r->setup.cluster.gpu;
    enum pt_precision p = r->setup.job.precision;
    double half = fmax(gpu->peak_flops[PT_BF16], gpu->peak_flops[PT_FP16]);

    if (g->precision != NULL && p == PT_FP32 && half > 4 * gpu->peak_flops[p])
        planner_note(&r->warnings,
                     "fp32 runs at %.3g TFLOP/s on %s and %s at %.3g: was "
                     "--precision %s forgotten?",
                     gpu->peak_flops[p] / 1e12, gpu->key,
                     gpu->peak_flops[PT_BF16] > 0 ? "bf16" : "fp16", half / 1e12,
                     gpu->peak_flops[PT_BF16] > 0 ? "bf16" : "fp16");
}

static void set_dtypes(struct planner_request *r, const struct planner_given *g)
{
    struct pt_job *j = &r->setup.job;
    struct pt_dtypes *d = &j->dtypes;

    pt_dtypes_for_stack(&r->setup.stack, j->precision, j->optimizer, d);
    if (g->grad_type != NULL) {
        d->grad = strcmp(g->grad_type, "fp32") == 0 ? 4 : 2;
        d->grad_comm = d->grad;
    }
}

static enum pt_status set_sequence(struct planner_request *r,
                                   const struct planner_given *g, struct pt_error *err)
{
    const struct pt_model *m = &r->setup.model;
    struct pt_job *j = &r->setup.job;

    if (g->seq_given) {
        j->seq = (uint32_t)g->seq;
        return j->seq > 0 ? PT_OK
                          : pt_fail(err, PT_USAGE, NULL, 0, "--seq-length: at least 1");
    }
    /* Long contexts are trained last and briefly: the bulk is at 8192 or less. */
    j->seq = m->max_seq < 8192 ? m->max_seq : 8192;
    return PT_OK;
}

static uint64_t gcd(uint64_t a, uint64_t b)
{
    while (b != 0) {
        uint64_t rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

/* The least common multiple of a list's values, or 1; what grows past `max` is left out.
 */
static enum pt_status common(const char *what, const struct pt_cli_list *list,
                             uint64_t max, uint64_t *multiple, struct pt_error *err)
{
    *multiple = 1;
    for (size_t i = 0; i < list->n; i++) {
        uint64_t value, next;
        enum pt_status st = pt_parse_u64(what, list->item[i], 1, 1u << 20, &value, err);

        if (st != PT_OK)
            return st;
        next = *multiple / gcd(*multiple, value) * value;
        if (next <= max)
            *multiple = next;
    }
    return PT_OK;
}

static enum pt_status set_batch(struct planner_request *r, const struct planner_given *g,
                                struct pt_error *err)
{
    struct pt_job *j = &r->setup.job;
    struct pt_params params;
    uint64_t micro, dp, per;
    enum pt_status st;

    if (g->global_batch_given) {
        j->global_batch = (uint32_t)g->global_batch;
        return PT_OK;
    }
    st = common("--micro-batch", &g->micro_batch, 1u << 20, &micro, err);
    if (st == PT_OK)
        st = common("--dp", &g->dp, 1u << 20, &dp, err);
    if (st != PT_OK)
        return st;
    pt_model_params(&r->setup.model, &params);
    j->global_batch = planner_default_batch(
        (double)params.total, j->seq, g->dp.n > 0 ? (uint32_t)dp : r->setup.cluster.gpus,
        (uint32_t)micro);
    per = dp * micro;
    if (j->global_batch < per)
        j->global_batch = per > 268435456 ? 268435456 : (uint32_t)per;
    return PT_OK;
}

/* One sentence for what was not given of the job. */
static void tell_defaults(struct planner_request *r, const struct planner_given *g)
{
    const struct pt_job *j = &r->setup.job;
    uint32_t most = r->setup.model.max_seq;
    char text[160] = "", count[32];
    size_t used = 0;

    if (g->precision == NULL)
        used += (size_t)snprintf(text, sizeof(text), ", precision %s",
                                 pt_precision_name(j->precision));
    if (!g->seq_given)
        used += (size_t)snprintf(text + used, sizeof(text) - used,
                                 ", sequences of %" PRIu32 " tokens", j->seq);
    if (!g->seq_given && j->seq < most)
        used += (size_t)snprintf(text + used, sizeof(text) - used,
                                 " (the model allows %" PRIu32 ")", most);
    if (!g->global_batch_given)
        used += (size_t)snprintf(
            text + used, sizeof(text) - used, ", global batch %" PRIu32 " (%s tokens)",
            j->global_batch, pt_format_count(count, (double)j->global_batch * j->seq));
    if (used > 0)
        planner_note(&r->assumed, "%s", text + 2);
}

static void set_flags(struct planner_request *r, const struct planner_given *g)
{
    struct pt_job *j = &r->setup.job;
    const struct planner_stack *stack = r->stack;

    j->attention =
        strcmp(g->attention, "eager") == 0 ? PT_ATTENTION_EAGER : PT_ATTENTION_FLASH;
    j->dropout = g->dropout;
    j->compiled = g->compiled_given ? g->compiled : stack->compiled;
    j->fused_cross_entropy =
        g->fused_loss_given ? g->fused_loss : stack->fused_cross_entropy;
    j->fused_grad_accumulation =
        g->fused_grad_given ? g->fused_grad : stack->fused_grad_accumulation;
    j->tokens = g->tokens_given ? (double)g->tokens : 0;
    j->seed = g->seed;
    j->vocab_unit = g->vocab_unit_given ? (uint32_t)g->vocab_unit : stack->vocab_unit;
}

enum pt_status planner_request_job(struct planner_request *r,
                                   const struct planner_given *g, struct pt_error *err)
{
    struct pt_job *j = &r->setup.job;
    enum pt_status st;

    memset(j, 0, sizeof(*j));
    j->optimizer = strcmp(g->optimizer, "sgd") == 0        ? PT_OPT_SGD
                   : strcmp(g->optimizer, "adam8bit") == 0 ? PT_OPT_ADAM8BIT
                                                           : PT_OPT_ADAM;
    set_flags(r, g);
    st = set_precision(r, g, err);
    if (st != PT_OK)
        return st;
    set_peak(r, g);
    warn_precision(r, g);
    set_dtypes(r, g);
    st = set_sequence(r, g, err);
    if (st == PT_OK)
        st = set_batch(r, g, err);
    if (st == PT_OK)
        tell_defaults(r, g);
    return st;
}
