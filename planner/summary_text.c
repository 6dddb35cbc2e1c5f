/* Pieces of text that several outputs share. */
#include "config.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "libpt/units.h"
#include "planner/summary.h"

#define MARGIN 11
#define WIDTH  79

void planner_note(struct planner_notes *notes, const char *fmt, ...)
{
    va_list ap;

    if (notes->n >= PLANNER_MAX_NOTES)
        return;
    va_start(ap, fmt);
    vsnprintf(notes->text[notes->n++], sizeof(notes->text[0]), fmt, ap);
    va_end(ap);
}

void planner_paragraph(FILE *f, const char *label, const char *fmt, ...)
{
    char text[8192];
    const char *p = text;
    bool first = true;
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    do {
        size_t left = strlen(p), n = left;

        if (n > WIDTH - MARGIN) {
            n = WIDTH - MARGIN;
            while (n > 0 && p[n] != ' ')
                n--;
            if (n == 0)
                n = left; /* one word that is too long stays whole */
        }
        left = n;
        while (left > 0 && p[left - 1] == ' ')
            left--;
        fprintf(f, "%-*s%.*s\n", MARGIN, first ? label : "", (int)left, p);
        for (p += n; *p == ' '; p++)
            ;
        first = false;
    } while (*p != '\0');
}

/* Appends; silently full, which a test of the longest line would show. */
static void append(char *buf, size_t size, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static void append(char *buf, size_t size, const char *fmt, ...)
{
    size_t used = strlen(buf);
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(buf + used, size - used, fmt, ap);
    va_end(ap);
}

uint32_t planner_recomputed_layers(const struct pt_split *split)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < split->pp * split->vpp; i++)
        for (unsigned k = 0; k < PT_N_LAYER_KINDS; k++)
            n += split->chunk[i].recomputed[k];
    return n;
}

static uint32_t stage_layers(const struct pt_split *split, uint32_t s)
{
    uint32_t n = 0;

    for (uint32_t c = 0; c < split->vpp; c++)
        for (unsigned k = 0; k < PT_N_LAYER_KINDS; k++)
            n += split->chunk[c * split->pp + s].layers[k];
    return n;
}

double planner_offload_share(const struct pt_split *split)
{
    double offloaded = 0, all = 0;

    for (uint32_t s = 0; s < split->pp; s++) {
        /* A stage without layers still holds an embedding or the head. */
        double weight = stage_layers(split, s) > 0 ? stage_layers(split, s) : 1;

        offloaded += weight * split->offload_frac[s];
        all += weight;
    }
    return all > 0 ? offloaded / all : 0;
}

char *planner_layout_text(char *buf, size_t size, const struct pt_plan *plan)
{
    const struct pt_layout *l = &plan->layout;
    uint32_t recomputed = planner_recomputed_layers(&plan->split);
    double offload = planner_offload_share(&plan->split);

    buf[0] = '\0';
    append(buf, size, "tp %u", l->tp);
    if (l->sequence_parallel)
        append(buf, size, "+sp");
    append(buf, size, "  pp %u", l->pp);
    if (l->vpp > 1)
        append(buf, size, "  vpp %u", l->vpp);
    if (l->pp > 1)
        append(buf, size, " (%s)", pt_schedule_name(l->schedule));
    append(buf, size, "  dp %u", l->dp);
    if (l->cp > 1)
        append(buf, size, "  cp %u", l->cp);
    if (l->ep > 1)
        append(buf, size, "  ep %u", l->ep);
    append(buf, size, "  zero %u", l->zero);
    if (l->zero > 0 && l->zero_group > 0)
        append(buf, size, " over %u", l->zero_group);
    append(buf, size, "  micro-batch %u x %u", l->micro_batch,
           pt_micro_batches(&plan->setup.job, l));
    if (l->recompute == PT_RECOMPUTE_FULL)
        append(buf, size, "  recompute full, %u of %u layers", recomputed,
               plan->setup.model.layers);
    else if (l->recompute != PT_RECOMPUTE_NONE)
        append(buf, size, "  recompute %s", pt_recompute_name(l->recompute));
    if (offload > 0)
        append(buf, size, "  offload optimizer %.0f%%", 100 * offload);
    return buf;
}

char *planner_short_label(char *buf, size_t size, const struct pt_plan *plan)
{
    const struct pt_layout *l = &plan->layout;

    buf[0] = '\0';
    append(buf, size, "tp%u%s pp%u", l->tp, l->sequence_parallel ? "s" : "", l->pp);
    if (l->vpp > 1)
        append(buf, size, "x%u", l->vpp);
    if (l->pp > 1 && l->schedule != PT_SCHEDULE_1F1B &&
        l->schedule != PT_SCHEDULE_INTERLEAVED)
        append(buf, size, ":%s", pt_schedule_name(l->schedule));
    if (l->cp > 1)
        append(buf, size, " cp%u", l->cp);
    if (l->ep > 1)
        append(buf, size, " ep%u", l->ep);
    append(buf, size, " dp%u z%u mb%u", l->dp, l->zero, l->micro_batch);
    if (l->recompute == PT_RECOMPUTE_FULL)
        append(buf, size, " re%u", planner_recomputed_layers(&plan->split));
    else if (l->recompute != PT_RECOMPUTE_NONE)
        append(buf, size, " %s", pt_recompute_name(l->recompute));
    if (planner_offload_share(&plan->split) > 0)
        append(buf, size, " off%.0f%%", 100 * planner_offload_share(&plan->split));
    return buf;
}

char *planner_log_line(char *buf, size_t size, const struct pt_plan *plan)
{
    double offload = planner_offload_share(&plan->split);
    char share[16] = "";

    if (offload > 0 && offload < 0.995)
        snprintf(share, sizeof(share), "(%.0f%%)", 100 * offload);
    snprintf(buf, size,
             "[parallel] pipe_stages=%u, micro_batch=%u, offload=%s%s, "
             "bubble_ratio=%.0f%% step_time=%.*fs, peak_mem=%.*fG/card",
             plan->layout.pp, plan->layout.micro_batch,
             offload > 0 ? "optimizer" : "none", share, 100 * plan->step.bubble_of_ideal,
             plan->step.step_s < 0.95 ? 2 : 1, plan->step.step_s,
             plan->memory.device_bytes < PT_GIB ? 2 : 0,
             plan->memory.device_bytes / PT_GIB);
    return buf;
}

void planner_slices(const struct pt_step *step,
                    struct planner_slice slice[PLANNER_N_SLICES])
{
    const struct planner_slice all[PLANNER_N_SLICES] = {
        { "compute", "compute_s", step->compute_s },
        { "recompute", "recompute_s", step->recompute_s },
        { "tensor parallel", "tp_s", step->tp_s },
        { "context parallel", "cp_s", step->cp_s },
        { "expert parallel", "ep_s", step->ep_s },
        { "stage transfers", "pp_s", step->pp_s },
        { "bubble", "bubble_s", step->bubble_s },
        { "data parallel", "dp_s", step->dp_s },
        { "optimizer", "optimizer_s", step->optimizer_s },
        { "offload", "offload_s", step->offload_s },
        { "other", "other_s", 0 },
    };
    double rest = step->step_s;

    memcpy(slice, all, sizeof(all));
    for (unsigned i = 0; i + 1 < PLANNER_N_SLICES; i++)
        rest -= slice[i].s;
    slice[PLANNER_N_SLICES - 1].s = fabs(rest) < 1e-9 * step->step_s ? 0 : rest;
}

static int by_size(const void *a, const void *b)
{
    const struct planner_slice *x = a, *y = b;

    if (fabs(x->s) < fabs(y->s) || fabs(y->s) < fabs(x->s))
        return fabs(x->s) < fabs(y->s) ? 1 : -1;
    return strcmp(x->key, y->key);
}

char *planner_why_slower(char *buf, size_t size, const struct pt_plan *best,
                         const struct pt_plan *plan)
{
    struct planner_slice a[PLANNER_N_SLICES], b[PLANNER_N_SLICES];
    double total = plan->step.step_s - best->step.step_s;
    unsigned told = 0;
    char text[32];

    buf[0] = '\0';
    planner_slices(&best->step, a);
    planner_slices(&plan->step, b);
    for (unsigned i = 0; i < PLANNER_N_SLICES; i++)
        b[i].s -= a[i].s;
    qsort(b, PLANNER_N_SLICES, sizeof(b[0]), by_size);
    for (unsigned i = 0; i < PLANNER_N_SLICES && told < 2; i++) {
        if (b[i].s * total <= 0 || fabs(b[i].s) < 0.1 * fabs(total))
            continue;
        append(buf, size, "%s%c%s %s", told++ > 0 ? ", " : "", total < 0 ? '-' : '+',
               pt_format_seconds(text, fabs(b[i].s)), b[i].name);
    }
    return buf;
}
