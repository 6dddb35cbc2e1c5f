/* Names and small arithmetic of jobs and layouts. */
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "libpt/layout.h"

static const char *const schedule_names[PT_N_SCHEDULES] = {
    [PT_SCHEDULE_NONE] = "none",   [PT_SCHEDULE_GPIPE] = "gpipe",
    [PT_SCHEDULE_1F1B] = "1f1b",   [PT_SCHEDULE_INTERLEAVED] = "interleaved",
    [PT_SCHEDULE_ZB_H1] = "zb-h1", [PT_SCHEDULE_ZB_H2] = "zb-h2",
    [PT_SCHEDULE_ZB_V] = "zb-v",   [PT_SCHEDULE_V_HALF] = "v-half",
    [PT_SCHEDULE_V_MIN] = "v-min", [PT_SCHEDULE_ZB_AUTO] = "zb-auto",
};

static const char *const recompute_names[PT_N_RECOMPUTES] = {
    [PT_RECOMPUTE_NONE] = "none",
    [PT_RECOMPUTE_SELECTIVE] = "selective",
    [PT_RECOMPUTE_SELECTIVE_OPS] = "selective-ops",
    [PT_RECOMPUTE_HALF] = "half",
    [PT_RECOMPUTE_FULL] = "full",
};

/* What published runs call them. */
static const struct {
    const char *text;
    int value;
} schedule_aliases[] = {
    { "interleaved-1f1b", PT_SCHEDULE_INTERLEAVED },
    { "1f1b-i", PT_SCHEDULE_INTERLEAVED },
    { "zb-1p", PT_SCHEDULE_ZB_AUTO },
    { "zbh1", PT_SCHEDULE_ZB_H1 },
    { "zbh2", PT_SCHEDULE_ZB_H2 },
    { "zbv", PT_SCHEDULE_ZB_V },
}, recompute_aliases[] = {
    { "selective-attention", PT_RECOMPUTE_SELECTIVE },
    { "every-other", PT_RECOMPUTE_HALF },
};

uint32_t pt_micro_batches(const struct pt_job *job, const struct pt_layout *layout)
{
    uint64_t per = (uint64_t)layout->dp * layout->micro_batch;

    if (per == 0 || per > job->global_batch || job->global_batch % per != 0)
        return 0;
    return (uint32_t)(job->global_batch / per);
}

uint32_t pt_grad_group(const struct pt_layout *layout, bool expert)
{
    uint32_t ranks = layout->dp * layout->cp;

    return expert ? ranks * layout->tp / layout->ep : ranks;
}

uint32_t pt_zero_group(const struct pt_layout *layout, bool expert)
{
    uint32_t all = pt_grad_group(layout, expert);

    if (layout->zero == 0)
        return 1;
    if (layout->zero_group == 0 || layout->zero_group > all)
        return all;
    return layout->zero_group;
}

bool pt_schedule_splits_backward(enum pt_schedule_kind kind)
{
    return kind >= PT_SCHEDULE_ZB_H1;
}

bool pt_schedule_is_v(enum pt_schedule_kind kind)
{
    return kind == PT_SCHEDULE_ZB_V || kind == PT_SCHEDULE_V_HALF ||
           kind == PT_SCHEDULE_V_MIN;
}

const char *pt_schedule_name(enum pt_schedule_kind kind)
{
    return schedule_names[kind];
}

const char *pt_recompute_name(enum pt_recompute recompute)
{
    return recompute_names[recompute];
}

/* Fails with the list of what is accepted. */
static enum pt_status unknown(const char *what, const char *text,
                              const char *const *names, int n, struct pt_error *err)
{
    char list[256];
    size_t used = 0;

    list[0] = '\0';
    for (int i = 0; i < n && used + 32 < sizeof(list); i++)
        used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s",
                                 i > 0 ? ", " : "", names[i]);
    return pt_fail(err, PT_USAGE, NULL, 0, "'%.40s' is not a %s; valid: %s", text, what,
                   list);
}

enum pt_status pt_schedule_parse(const char *text, enum pt_schedule_kind *kind,
                                 struct pt_error *err)
{
    for (int i = 0; i < PT_N_SCHEDULES; i++) {
        if (strcasecmp(text, schedule_names[i]) == 0) {
            *kind = (enum pt_schedule_kind)i;
            return PT_OK;
        }
    }
    for (size_t i = 0; i < sizeof(schedule_aliases) / sizeof(schedule_aliases[0]); i++) {
        if (strcasecmp(text, schedule_aliases[i].text) == 0) {
            *kind = (enum pt_schedule_kind)schedule_aliases[i].value;
            return PT_OK;
        }
    }
    return unknown("schedule", text, schedule_names, PT_N_SCHEDULES, err);
}

enum pt_status pt_recompute_parse(const char *text, enum pt_recompute *recompute,
                                  struct pt_error *err)
{
    for (int i = 0; i < PT_N_RECOMPUTES; i++) {
        if (strcasecmp(text, recompute_names[i]) == 0) {
            *recompute = (enum pt_recompute)i;
            return PT_OK;
        }
    }
    for (size_t i = 0; i < sizeof(recompute_aliases) / sizeof(recompute_aliases[0]);
         i++) {
        if (strcasecmp(text, recompute_aliases[i].text) == 0) {
            *recompute = (enum pt_recompute)recompute_aliases[i].value;
            return PT_OK;
        }
    }
    return unknown("recomputation mode", text, recompute_names, PT_N_RECOMPUTES, err);
}

/* Micikevicius et al., arXiv 1710.03740; 16 bytes per parameter: Rajbhandari et al.,
 * arXiv 1910.02054, section 3.1. 8-bit moments: Dettmers et al., arXiv 2110.02861. */
void pt_dtypes_default(enum pt_precision precision, enum pt_optimizer optimizer,
                       struct pt_dtypes *dtypes)
{
    bool full = precision == PT_FP32 || precision == PT_TF32;

    dtypes->weight = full ? 4 : 2;
    dtypes->grad = full ? 4 : 2;
    dtypes->master = full ? 0 : 4;
    dtypes->moments = optimizer == PT_OPT_ADAM ? 8 : optimizer == PT_OPT_ADAM8BIT ? 2 : 4;
    dtypes->grad_comm = dtypes->grad;
}
