#include "config.h"

#include <string.h>

#include "libpt/units.h"
#include "planner/explain.h"
#include "planner/summary.h"

/* A row must not make the person wait long, whatever the machine. */
#define ROW_SECONDS 2.0

struct explanation {
    FILE *f;
    const struct pt_setup *setup;
    const struct planner_space *space;
    const struct planner_options *options;
    const struct pt_plan *best;
};

static void pin(struct planner_list *list, uint32_t value)
{
    list->n = 1;
    list->value[0] = value;
}

/* The first part of a reason, cut at the margin. */
static void put_reason(FILE *f, const char *text)
{
    char line[28];
    const char *end = strpbrk(text, ";,");
    size_t n = end != NULL ? (size_t)(end - text) : strlen(text);

    snprintf(line, sizeof(line), "%.*s", (int)n, text);
    if (n >= sizeof(line))
        memcpy(line + sizeof(line) - 4, "...", 4);
    fprintf(f, "  %s\n", line);
}

static void row(const struct explanation *e, const char *dimension, const char *change,
                const struct pt_setup *setup, const struct planner_space *space)
{
    struct planner_options options = *e->options;
    struct pt_error err = PT_ERROR_INIT;
    struct planner_result result;
    enum pt_status st;
    char why[128];

    memset(&result, 0, sizeof(result));
    options.top = 1;
    if (options.time_limit_s <= 0 || options.time_limit_s > ROW_SECONDS)
        options.time_limit_s = ROW_SECONDS;
    st = planner_search(setup, space, &options, &result, &err);
    fprintf(e->f, "%-11s %-18s", dimension, change);
    if (result.n > 0) {
        const struct pt_plan *plan = &result.plan[0];

        fprintf(e->f, " %7.3f %+6.1f%% %5.1f", plan->step.step_s,
                100 * (plan->step.step_s / e->best->step.step_s - 1),
                plan->memory.device_bytes / PT_GIB);
        put_reason(e->f, planner_why_slower(why, sizeof(why), e->best, plan));
    } else if (st == PT_CAPACITY && result.shortfall.needed_bytes > 0) {
        fprintf(e->f, " %7s %7s %5.1f  does not fit\n", "-", "-",
                result.shortfall.needed_bytes / PT_GIB);
    } else {
        fprintf(e->f, " %7s %7s %5s", "-", "-", "-");
        put_reason(e->f, st == PT_LIMIT ? "not settled in time" : err.text);
    }
    planner_result_fini(&result);
}

/* Half and twice a count, each within lo..hi. `at` is the offset of its list in the
 * space. */
static void halve_and_double(const struct explanation *e, const char *name, size_t at,
                             uint32_t now, uint32_t lo, uint32_t hi)
{
    const uint32_t value[2] = { now / 2, now * 2 };

    for (unsigned i = 0; i < 2; i++) {
        struct planner_space space = *e->space;
        char change[32];

        if (value[i] < lo || value[i] > hi || (i == 0 && now % 2 != 0))
            continue;
        pin((struct planner_list *)(void *)((char *)&space + at), value[i]);
        if (at != offsetof(struct planner_space, dp))
            space.dp.n = 0; /* the GPUs that are left over */
        snprintf(change, sizeof(change), "%u -> %u", now, value[i]);
        row(e, name, change, e->setup, &space);
    }
}

static void other_schedules(const struct explanation *e)
{
    static const enum pt_schedule_kind kind[] = {
        PT_SCHEDULE_GPIPE, PT_SCHEDULE_1F1B,  PT_SCHEDULE_INTERLEAVED,
        PT_SCHEDULE_ZB_H1, PT_SCHEDULE_ZB_H2, PT_SCHEDULE_ZB_V
    };

    if (e->best->layout.pp == 1)
        return;
    for (unsigned i = 0; i < sizeof(kind) / sizeof(kind[0]); i++) {
        struct planner_space space = *e->space;
        char change[48];

        if (kind[i] == e->best->layout.schedule)
            continue;
        pin(&space.schedule, kind[i]);
        space.vpp.n = 0;
        space.dp.n = 0;
        pin(&space.pp, e->best->layout.pp);
        snprintf(change, sizeof(change), "-> %s", pt_schedule_name(kind[i]));
        row(e, "schedule", change, e->setup, &space);
    }
}

static void other_recompute(const struct explanation *e)
{
    static const enum pt_recompute mode[] = { PT_RECOMPUTE_NONE, PT_RECOMPUTE_SELECTIVE,
                                              PT_RECOMPUTE_FULL };

    for (unsigned i = 0; i < sizeof(mode) / sizeof(mode[0]); i++) {
        struct planner_space space = *e->space;
        char change[48];

        if (mode[i] == e->best->layout.recompute)
            continue;
        pin(&space.recompute, mode[i]);
        snprintf(change, sizeof(change), "-> %s", pt_recompute_name(mode[i]));
        row(e, "recompute", change, e->setup, &space);
    }
}

static void other_zero(const struct explanation *e)
{
    for (uint32_t z = 0; z <= 3; z++) {
        struct planner_space space = *e->space;
        char change[32];

        if (z == e->best->layout.zero || e->best->layout.dp * e->best->layout.cp == 1)
            continue;
        pin(&space.zero, z);
        snprintf(change, sizeof(change), "%u -> %u", e->best->layout.zero, z);
        row(e, "zero", change, e->setup, &space);
    }
}

static void other_offload(const struct explanation *e)
{
    struct planner_space space = *e->space;

    space.offload = true;
    if (planner_offload_share(&e->best->split) > 0) {
        space.offload = false;
        space.offload_frac = 0;
        row(e, "offload", "-> none", e->setup, &space);
    }
    space.offload = true;
    space.offload_frac = 1;
    if (planner_offload_share(&e->best->split) < 1)
        row(e, "offload", "-> whole optimizer", e->setup, &space);
}

static void other_machine(const struct explanation *e)
{
    static const double factor[] = { 0.5, 2 };
    struct pt_setup setup = *e->setup;
    char change[48];

    for (unsigned i = 0; i < 2; i++) {
        struct planner_space space = *e->space;
        double gpus = e->setup->cluster.gpus * factor[i];

        if (gpus < 1 || gpus > 1e6)
            continue;
        setup = *e->setup;
        setup.cluster.gpus = (uint32_t)gpus;
        space.dp.n = 0;
        snprintf(change, sizeof(change), "%u -> %u", e->setup->cluster.gpus,
                 setup.cluster.gpus);
        row(e, "GPUs", change, &setup, &space);
    }
    for (unsigned i = 0; i < 2; i++) {
        double limit = e->best->memory.limit_bytes * factor[i];

        setup = *e->setup;
        setup.cluster.mem_limit_bytes = limit;
        setup.cluster.gpu.mem_bytes = limit;
        snprintf(change, sizeof(change), "%.0f -> %.0f GiB",
                 e->best->memory.limit_bytes / PT_GIB, limit / PT_GIB);
        row(e, "memory", change, &setup, e->space);
    }
}

void planner_explain(FILE *f, const struct pt_setup *setup,
                     const struct planner_space *space,
                     const struct planner_options *options,
                     const struct planner_result *result)
{
    const struct explanation e = { f, setup, space, options, &result->plan[0] };
    const struct pt_layout *l = &e.best->layout;
    uint32_t gpus = setup->cluster.gpus;

    fprintf(
        f, "\nWhat a change would do; all else is chosen anew\n"
           "dimension   change              step s       +%%   GiB  mostly because of\n");
    halve_and_double(&e, "tp", offsetof(struct planner_space, tp), l->tp, 1, gpus);
    halve_and_double(&e, "pp", offsetof(struct planner_space, pp), l->pp, 1, gpus);
    if (l->pp > 1)
        halve_and_double(&e, "vpp", offsetof(struct planner_space, vpp), l->vpp, 1,
                         setup->model.layers / l->pp);
    halve_and_double(&e, "dp", offsetof(struct planner_space, dp), l->dp, 1, gpus);
    halve_and_double(&e, "cp", offsetof(struct planner_space, cp), l->cp, 1, gpus);
    if (setup->model.experts > 0)
        halve_and_double(&e, "ep", offsetof(struct planner_space, ep), l->ep, 1,
                         setup->model.experts);
    halve_and_double(&e, "micro-batch", offsetof(struct planner_space, micro_batch),
                     l->micro_batch, 1, setup->job.global_batch);
    other_zero(&e);
    other_schedules(&e);
    other_recompute(&e);
    other_offload(&e);
    other_machine(&e);
}
