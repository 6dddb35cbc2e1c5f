/* The text summary: the verdict first, then what was assumed, what was chosen and what it
 * costs. */
#include "config.h"

#include <math.h>
#include <string.h>

#include "libpt/units.h"
#include "planner/summary.h"

/* Stages shown before a table is cut down to those that matter. */
#define MAX_STAGE_ROWS 8

static double gib(double bytes)
{
    return bytes / PT_GIB;
}

/* A small plan would read as 0.0 GiB everywhere: its memory is in MiB. */
static const char *memory_unit(const struct pt_memory *m)
{
    return m->device_bytes < PT_GIB ? "MiB" : "GiB";
}

static double in_unit(const struct pt_memory *m, double bytes)
{
    return gib(bytes) * (m->device_bytes < PT_GIB ? 1024.0 : 1.0);
}

static void verdict(FILE *f, const struct pt_setup *setup, const struct pt_plan *plan)
{
    const struct pt_memory *m = &plan->memory;
    struct pt_params params;
    char count[32], idle[40] = "";
    uint64_t used =
        (uint64_t)plan->layout.tp * plan->layout.pp * plan->layout.cp * plan->layout.dp;

    pt_model_params(&setup->model, &params);
    if (used < setup->cluster.gpus)
        snprintf(idle, sizeof(idle), " (%llu stay idle)",
                 (unsigned long long)(setup->cluster.gpus - used));
    fprintf(f, "%s parameters on %llu x %s%s: %s, %.1f of %.1f %s a card\n\n",
            pt_format_count(count, (double)params.total), (unsigned long long)used,
            setup->cluster.gpu.name, idle, m->fits ? "it fits" : "IT DOES NOT FIT",
            in_unit(m, m->device_bytes), in_unit(m, m->limit_bytes), memory_unit(m));
}

static void model_lines(FILE *f, const struct pt_setup *setup)
{
    const struct pt_model *m = &setup->model;
    char moe[96] = "", active[32], groups[32] = "";
    struct pt_params params;

    pt_model_params(m, &params);
    if (m->experts > 0)
        snprintf(moe, sizeof(moe), ", %u experts top %u (%s active)", m->experts, m->topk,
                 pt_format_count(active, (double)params.active));
    if (m->kv_heads != m->heads)
        snprintf(groups, sizeof(groups), " (%u key-value)", m->kv_heads);
    planner_paragraph(f, "model",
                      "%s: %u layers, hidden %u, ffn %u, %u heads%s, vocab %u%s", m->name,
                      m->layers, m->hidden, m->ffn, m->heads, groups, m->vocab, moe);
}

static void hardware_lines(FILE *f, const struct pt_setup *setup)
{
    const struct pt_cluster *c = &setup->cluster;
    uint32_t nodes = (c->gpus + c->node_gpus - 1) / (c->node_gpus > 0 ? c->node_gpus : 1);
    char network[48] = "";

    if (nodes > 1)
        snprintf(network, sizeof(network), ", %.4g GB/s between them",
                 c->nic_bytes_per_s / PT_GB);
    planner_paragraph(f, "hardware",
                      "%u x %s, %u node%s of %u (%s)%s, %.0f GiB host memory each",
                      c->gpus, c->gpu.name, nodes, nodes == 1 ? "" : "s",
                      c->gpus < c->node_gpus ? c->gpus : c->node_gpus, c->link.name,
                      network, gib(c->host_mem_bytes));
}

static void job_lines(FILE *f, const struct pt_setup *setup, const struct pt_plan *plan)
{
    const struct pt_job *j = &setup->job;
    const struct pt_dtypes *d = &j->dtypes;

    planner_paragraph(
        f, "job",
        "global batch %u x %u tokens, %s, %s attention, %g bytes a parameter "
        "(%g weight, %g gradient, %g optimizer); stack %s, calibration %s",
        j->global_batch, j->seq, pt_precision_name(j->precision),
        j->attention == PT_ATTENTION_EAGER ? "eager" : "flash",
        d->weight + d->grad + d->master + d->moments, d->weight, d->grad,
        d->master + d->moments, plan->stack_key, plan->calibration);
}

/* Whether a long pipeline's table shows stage s: both ends, the fullest and the slowest.
 */
static bool shown(const struct pt_plan *plan, uint32_t s)
{
    uint32_t pp = plan->layout.pp;

    return pp <= MAX_STAGE_ROWS || s < 2 || s + 2 >= pp ||
           s == plan->memory.worst_stage || s == plan->step.slowest_stage;
}

static void stage_row(FILE *f, const struct pt_plan *plan, uint32_t s)
{
    const struct pt_stage_memory *m = &plan->memory.stage[s];
    char layers[32] = "", one[16];
    uint32_t recomputed = 0;

    for (uint32_t c = 0; c < plan->split.vpp; c++) {
        const struct pt_chunk *chunk = &plan->split.chunk[c * plan->split.pp + s];
        uint32_t n = 0;

        for (unsigned k = 0; k < PT_N_LAYER_KINDS; k++) {
            n += chunk->layers[k];
            recomputed += chunk->recomputed[k];
        }
        snprintf(one, sizeof(one), "%s%u", c > 0 ? "+" : "", n);
        if (strlen(layers) + strlen(one) < 12)
            strcat(layers, one);
        else if (layers[strlen(layers) - 1] != '.')
            strcat(layers, "+..");
    }
    fprintf(f, "%5u %9s  %6u  %6.0f%%  %8.4g  %9.1f %9.1f %7.1f%s\n", s, layers,
            recomputed, 100 * plan->split.offload_frac[s], m->in_flight,
            in_unit(&plan->memory, m->allocated_bytes),
            in_unit(&plan->memory, m->reserved_bytes),
            in_unit(&plan->memory, m->device_bytes),
            s == plan->memory.worst_stage   ? "  fullest"
            : s == plan->step.slowest_stage ? "  slowest"
                                            : "");
}

static void stage_table(FILE *f, const struct pt_plan *plan)
{
    char limit[64] = "limit";
    uint32_t skipped = 0;

    fprintf(f,
            "\nstage    layers  recomp  offload  in-flight  allocated  reserved  device"
            "  %s\n",
            memory_unit(&plan->memory));
    for (uint32_t s = 0; s < plan->layout.pp; s++) {
        if (!shown(plan, s)) {
            skipped++;
            continue;
        }
        if (skipped > 0)
            fprintf(f, "  ...  %u stages between\n", skipped);
        skipped = 0;
        stage_row(f, plan, s);
    }
    if (plan->setup.stack.mem_margin > 0)
        snprintf(limit, sizeof(limit),
                 "limit, with %.0f%% left for what predictions may miss",
                 100 * plan->setup.stack.mem_margin);
    fprintf(f, "%64s %7.1f\n", limit, in_unit(&plan->memory, plan->memory.limit_bytes));
}

/* The verdict is over all phases, so all of them are shown. */
static void phase_line(FILE *f, const struct pt_memory *all,
                       const struct pt_stage_memory *m)
{
    char text[256] = "", piece[48];

    for (unsigned p = 0; p < PT_N_PHASES; p++) {
        if (m->phase_device_bytes[p] <= 0)
            continue;
        snprintf(piece, sizeof(piece), "%s%s %.1f", text[0] != '\0' ? ", " : "",
                 pt_phase_name((enum pt_phase)p), in_unit(all, m->phase_device_bytes[p]));
        strncat(text, piece, sizeof(text) - strlen(text) - 1);
    }
    planner_paragraph(f, "", "by phase: %s", text);
}

static void memory_lines(FILE *f, const struct pt_plan *plan)
{
    const struct pt_memory *m = &plan->memory;
    const struct pt_stage_memory *worst = &m->stage[m->worst_stage];
    char text[512] = "", piece[64];
    double smallest = 0.005 * worst->device_bytes;

    for (unsigned p = 0; p < PT_N_MEMORY_PARTS; p++) {
        if (worst->part_bytes[p] < smallest)
            continue;
        snprintf(piece, sizeof(piece), "%s%s %.1f", text[0] != '\0' ? " + " : "",
                 pt_memory_part_name((enum pt_memory_part)p),
                 in_unit(m, worst->part_bytes[p]));
        strncat(text, piece, sizeof(text) - strlen(text) - 1);
    }
    planner_paragraph(f, "memory", "stage %u, %s, %s: %s", m->worst_stage,
                      pt_phase_name(worst->worst_phase), memory_unit(m), text);
    phase_line(f, m, worst);
    planner_paragraph(f, "", "largest tensor %.1f %s: %s",
                      in_unit(m, m->largest_tensor_bytes), memory_unit(m),
                      m->largest_tensor);
    if (planner_offload_share(&plan->split) > 0 ||
        m->host_bytes > 0.5 * m->host_limit_bytes)
        planner_paragraph(f, "", "host memory of the fullest node %.0f of %.0f GiB",
                          gib(m->host_bytes), gib(m->host_limit_bytes));
}

static void step_lines(FILE *f, const struct pt_plan *plan)
{
    const struct pt_step *t = &plan->step;
    struct planner_slice slice[PLANNER_N_SLICES];
    char text[512] = "", piece[64], s[32];
    double ideal;

    planner_slices(t, slice);
    for (unsigned i = 0; i < PLANNER_N_SLICES; i++) {
        if (fabs(slice[i].s) < 0.0005 * t->step_s)
            continue;
        snprintf(piece, sizeof(piece), "%s%s %.1f%%", text[0] != '\0' ? ", " : "",
                 slice[i].name, 100 * slice[i].s / t->step_s);
        strncat(text, piece, sizeof(text) - strlen(text) - 1);
    }
    planner_paragraph(f, "step time", "%s = %s", pt_format_seconds(s, t->step_s), text);
    if (plan->layout.pp == 1)
        return;
    ideal = t->compute_s - t->imbalance_s;
    planner_paragraph(
        f, "bubble",
        "%.1f%% of total, %.1f%% of ideal; the slowest stage computes %.1f%% "
        "longer than the mean",
        100 * t->bubble_of_total, 100 * t->bubble_of_ideal,
        ideal > 0 ? 100 * t->imbalance_s / ideal : 0);
}

static void speed_lines(FILE *f, const struct pt_setup *setup, const struct pt_plan *plan)
{
    const struct pt_step *t = &plan->step;
    const struct pt_job *j = &setup->job;
    double step_tokens = (double)j->global_batch * j->seq, run_s;
    uint64_t used =
        (uint64_t)plan->layout.tp * plan->layout.pp * plan->layout.cp * plan->layout.dp;
    bool tera = t->model_flops_gpu >= 1e12;
    char s[32], count[32], money[96] = "";

    planner_paragraph(f, "speed",
                      "%.0f tokens/s a GPU, %.0f in all; %.0f model %s a GPU; MFU "
                      "%.1f%%, HFU %.1f%% (%s)",
                      t->tokens_per_s_gpu, step_tokens / t->step_s,
                      t->model_flops_gpu / (tera ? 1e12 : 1e9),
                      tera ? "TFLOP/s" : "GFLOP/s", 100 * t->mfu, 100 * t->hfu,
                      plan->causal ? "causal attention counted half"
                                   : "attention counted in full");
    if (j->tokens <= 0)
        return;
    run_s = ceil(j->tokens / step_tokens) * t->step_s;
    if (setup->cluster.gpu.usd_per_hour > 0)
        snprintf(money, sizeof(money), "; %s USD at %.2f an hour and GPU (%s)",
                 pt_format_count(count, run_s / 3600 * (double)used *
                                            setup->cluster.gpu.usd_per_hour),
                 setup->cluster.gpu.usd_per_hour, setup->cluster.gpu.usd_date);
    planner_paragraph(f, "run", "%s tokens in %s without failures%s",
                      pt_format_count(count, j->tokens), pt_format_seconds(s, run_s),
                      money);
}

/* Three digits, and no exponent for what is larger. */
static char *gigabytes(char *buf, size_t size, double bytes)
{
    double gb = bytes / PT_GB;

    snprintf(buf, size, gb < 999.5 ? "%.3g" : "%.0f", gb);
    return buf;
}

static void volume_lines(FILE *f, const struct pt_plan *plan)
{
    const struct pt_step *t = &plan->step;
    const struct {
        const char *name;
        double bytes;
    } dim[] = { { "tp", t->tp_bytes },
                { "cp", t->cp_bytes },
                { "ep", t->ep_bytes },
                { "pp", t->pp_bytes },
                { "dp", t->dp_bytes } };
    char text[256] = "", piece[64], a[32], b[32];

    for (unsigned i = 0; i < sizeof(dim) / sizeof(dim[0]); i++) {
        if (dim[i].bytes <= 0)
            continue;
        snprintf(piece, sizeof(piece), "%s%s %s", text[0] != '\0' ? ", " : "",
                 dim[i].name, gigabytes(a, sizeof(a), dim[i].bytes));
        strncat(text, piece, sizeof(text) - strlen(text) - 1);
    }
    if (text[0] == '\0')
        return;
    planner_paragraph(
        f, "sent",
        "GB a GPU and step: %s; %s inside the fast domain, %s over the network", text,
        gigabytes(a, sizeof(a), t->intra_bytes), gigabytes(b, sizeof(b), t->inter_bytes));
}

static void proof_lines(FILE *f, const struct planner_result *result)
{
    const struct planner_stats *s = &result->stats;
    const struct pt_plan *best = &result->plan[0];
    char text[256], why[256];

    planner_paragraph(f, "search",
                      "%llu layouts: %llu invalid, %llu without room, %llu bounded away, "
                      "%llu solved; %s",
                      (unsigned long long)s->seen, (unsigned long long)s->invalid,
                      (unsigned long long)s->no_memory, (unsigned long long)s->bounded,
                      (unsigned long long)s->solved,
                      s->time_limit ? "cut by the time limit"
                      : s->gap > 0  ? "stopped within the gap"
                                    : "proved best of this model");
    if (s->gap > 0)
        planner_paragraph(f, "", "the best possible is at most %.1f%% faster",
                          100 * s->gap);
    if (best->layout.pp > 1 && s->even_step_s <= 0)
        planner_paragraph(f, "", "an even split of the layers would not fit");
    else if (s->even_step_s > 1.0005 * best->step.step_s)
        planner_paragraph(f, "", "an even split of the layers takes %.1f%% longer",
                          100 * (s->even_step_s / best->step.step_s - 1));
    if (result->n < 2)
        return;
    planner_why_slower(why, sizeof(why), best, &result->plan[1]);
    planner_paragraph(f, "runner-up", "%s: %.1f%% slower%s%s%s",
                      planner_layout_text(text, sizeof(text), &result->plan[1]),
                      100 * (result->plan[1].step.step_s / best->step.step_s - 1),
                      why[0] != '\0' ? " (" : "", why, why[0] != '\0' ? ")" : "");
}

static void assumed_lines(FILE *f, const struct planner_notes *assumed)
{
    char text[PLANNER_MAX_NOTES * (sizeof(assumed->text[0]) + 2)];
    size_t used = 0;

    text[0] = '\0';
    for (unsigned i = 0; assumed != NULL && i < assumed->n; i++)
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s",
                                 i > 0 ? "; " : "", assumed->text[i]);
    if (used > 0)
        planner_paragraph(f, "assumed", "%s", text);
}

void planner_summary(FILE *f, const struct pt_setup *setup,
                     const struct planner_result *result,
                     const struct planner_notes *assumed,
                     const struct planner_notes *hints)
{
    const struct pt_plan *plan = &result->plan[0];
    char text[512];

    verdict(f, setup, plan);
    model_lines(f, setup);
    hardware_lines(f, setup);
    job_lines(f, setup, plan);
    assumed_lines(f, assumed);
    fputc('\n', f);
    planner_paragraph(f, "layout", "%s", planner_layout_text(text, sizeof(text), plan));
    stage_table(f, plan);
    fputc('\n', f);
    memory_lines(f, plan);
    step_lines(f, plan);
    speed_lines(f, setup, plan);
    volume_lines(f, plan);
    proof_lines(f, result);
    for (unsigned i = 0; hints != NULL && i < hints->n; i++)
        planner_paragraph(f, i == 0 ? "hint" : "", "%s", hints->text[i]);
    fprintf(f, "\n%s\n", planner_log_line(text, sizeof(text), plan));
}

void planner_top_table(FILE *f, const struct planner_result *result)
{
    char label[96];

    fprintf(
        f,
        "\nrank  step s     +%%   MFU%%  bubble%%    GiB  layout (s: sequence parallel, "
        "z: zero)\n");
    for (uint32_t i = 0; i < result->n; i++) {
        const struct pt_plan *p = &result->plan[i];

        fprintf(f, "%4u %7.3f %6.1f  %5.1f  %7.1f  %5.1f  %s\n", i + 1, p->step.step_s,
                100 * (p->step.step_s / result->plan[0].step.step_s - 1),
                100 * p->step.mfu, 100 * p->step.bubble_of_total,
                gib(p->memory.device_bytes),
                planner_short_label(label, sizeof(label), p));
    }
}
