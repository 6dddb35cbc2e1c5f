/* From the command line to a request: the space of layouts, and what the software cannot
 * do. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "libpt/units.h"
#include "planner/options.h"

static enum pt_status numbers(const char *what, const struct pt_cli_list *given,
                              uint64_t lo, uint64_t hi, struct planner_list *list,
                              struct pt_error *err)
{
    list->n = 0;
    for (size_t i = 0; i < given->n; i++) {
        uint64_t value;
        enum pt_status st = pt_parse_u64(what, given->item[i], lo, hi, &value, err);
        bool twice = false;

        if (st != PT_OK)
            return st;
        for (uint32_t k = 0; k < list->n; k++)
            twice = twice || list->value[k] == value;
        if (!twice)
            list->value[list->n++] = (uint32_t)value;
    }
    return PT_OK;
}

static enum pt_status read_numbers(struct planner_space *s, const struct planner_given *g,
                                   struct pt_error *err)
{
    const struct {
        const char *what;
        const struct pt_cli_list *given;
        uint64_t lo, hi;
        struct planner_list *list;
    } lists[] = {
        { "--tp", &g->tp, 1, 1u << 20, &s->tp },
        { "--pp", &g->pp, 1, PT_MAX_PP, &s->pp },
        { "--vpp", &g->vpp, 1, PT_MAX_VPP, &s->vpp },
        { "--dp", &g->dp, 1, 1u << 20, &s->dp },
        { "--cp", &g->cp, 1, 1u << 20, &s->cp },
        { "--ep", &g->ep, 1, 1u << 20, &s->ep },
        { "--zero", &g->zero, 0, 3, &s->zero },
        { "--zero-group", &g->zero_group, 1, 1u << 20, &s->zero_group },
        { "--micro-batch", &g->micro_batch, 1, 1u << 20, &s->micro_batch },
    };

    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        enum pt_status st = numbers(lists[i].what, lists[i].given, lists[i].lo,
                                    lists[i].hi, lists[i].list, err);

        if (st != PT_OK)
            return st;
    }
    return PT_OK;
}

static enum pt_status read_names(struct planner_space *s, const struct planner_given *g,
                                 struct pt_error *err)
{
    for (size_t i = 0; i < g->schedule.n; i++) {
        enum pt_schedule_kind kind;
        enum pt_status st = pt_schedule_parse(g->schedule.item[i], &kind, err);

        if (st != PT_OK)
            return st;
        s->schedule.value[s->schedule.n++] = (uint32_t)kind;
    }
    for (size_t i = 0; i < g->recompute.n; i++) {
        enum pt_recompute mode;
        enum pt_status st = pt_recompute_parse(g->recompute.item[i], &mode, err);

        if (st != PT_OK)
            return st;
        s->recompute.value[s->recompute.n++] = (uint32_t)mode;
    }
    if (g->sequence_parallel_given) {
        s->sequence_parallel.n = 1;
        s->sequence_parallel.value[0] = g->sequence_parallel;
    }
    return PT_OK;
}

/* Chunks alone mean interleaving: the V-shaped schedules, which have two as well, are
 * named. */
static void imply_interleaving(struct planner_space *s)
{
    bool one = false, more = false;

    for (uint32_t i = 0; i < s->vpp.n; i++) {
        one = one || s->vpp.value[i] == 1;
        more = more || s->vpp.value[i] > 1;
    }
    if (s->schedule.n > 0 || !more)
        return;
    s->schedule.value[s->schedule.n++] = PT_SCHEDULE_INTERLEAVED;
    if (one)
        s->schedule.value[s->schedule.n++] = PT_SCHEDULE_1F1B;
}

static enum pt_status read_offload(struct planner_space *s, const char *text,
                                   struct pt_error *err)
{
    s->offload_frac = 0;
    if (strcmp(text, "none") == 0)
        return PT_OK;
    s->offload = true;
    if (strcmp(text, "optimizer") == 0) {
        s->offload_frac = 1;
        return PT_OK;
    }
    if (strcmp(text, "auto") == 0) {
        s->offload_frac = -1;
        return PT_OK;
    }
    if (pt_parse_fraction("--offload", text, 1, &s->offload_frac, NULL) != PT_OK)
        return pt_fail(err, PT_USAGE, NULL, 0,
                       "--offload: '%.40s' is not none, optimizer, "
                       "auto or a fraction of 0 to 1",
                       text);
    s->offload = s->offload_frac > 0;
    return PT_OK;
}

/* --- what the software cannot do --- */

static bool listed(const struct planner_list *list, uint32_t value)
{
    for (uint32_t i = 0; i < list->n; i++)
        if (list->value[i] == value)
            return true;
    return false;
}

static uint32_t lowest(const struct planner_list *list, uint32_t missing)
{
    uint32_t least = list->n > 0 ? list->value[0] : missing;

    for (uint32_t i = 1; i < list->n; i++)
        least = list->value[i] < least ? list->value[i] : least;
    return least;
}

/* Keeps the values up to `max` of a list; a free one becomes 0..max or 1..max. */
static void cap(struct planner_list *list, uint32_t first, uint32_t max)
{
    struct planner_list kept = { 0 };

    for (uint32_t v = first; list->n == 0 && v <= max && kept.n < PLANNER_MAX_LIST; v++)
        kept.value[kept.n++] = v;
    for (uint32_t i = 0; i < list->n; i++)
        if (list->value[i] <= max)
            kept.value[kept.n++] = list->value[i];
    *list = kept;
}

static enum pt_status limit_pipeline(struct planner_request *r, struct pt_error *err)
{
    const struct planner_stack *stack = r->stack;
    struct planner_space *s = &r->space;

    if (lowest(&s->pp, 1) > stack->max_pp)
        return pt_fail(err, PT_USAGE, NULL, 0,
                       "--stack %s (%s) has no pipeline: --pp %" PRIu32
                       " is not possible, --pp 1 is; torchtitan, megatron and ptexec "
                       "have one",
                       stack->name, stack->what, lowest(&s->pp, 1));
    if (stack->max_pp == 1)
        cap(&s->pp, 1, 1);
    return PT_OK;
}

/* Sharding gradients or weights under a pipeline: each micro-batch's backward adds to a
 * gradient that must be whole. */
static enum pt_status limit_zero(struct planner_request *r, struct pt_error *err)
{
    const struct planner_stack *stack = r->stack;
    struct planner_space *s = &r->space;
    uint32_t zero = lowest(&s->zero, 0), pp = lowest(&s->pp, 1);

    s->zero_max_with_pp = stack->zero_max_with_pp;
    if (s->pp.n > 0 && pp > 1 && stack->zero_max_with_pp > 0 &&
        zero > stack->zero_max_with_pp)
        return pt_fail(err, PT_USAGE, NULL, 0,
                       "--zero %" PRIu32 " with --pp %" PRIu32
                       ": in --stack %s sharding gradients conflicts with adding them up "
                       "over micro-batches; use --zero %" PRIu32 ", or --stack ptexec",
                       zero, pp, stack->name, stack->zero_max_with_pp);
    if (zero > stack->zero_max)
        return pt_fail(err, PT_USAGE, NULL, 0,
                       "--stack %s has no ZeRO-%" PRIu32 "; use --zero %" PRIu32,
                       stack->name, zero, stack->zero_max);
    if (stack->zero_max < 3)
        cap(&s->zero, 0, stack->zero_max);
    return PT_OK;
}

static enum pt_status limit_schedules(struct planner_request *r, struct pt_error *err)
{
    const struct planner_stack *stack = r->stack;
    struct planner_space *s = &r->space;
    struct planner_list kept = { 0 };
    char names[160] = "";
    size_t used = 0;

    if (stack->schedules == (1u << PT_N_SCHEDULES) - 1 || stack->max_pp == 1)
        return PT_OK;
    for (int k = PT_SCHEDULE_GPIPE; k < PT_N_SCHEDULES; k++) {
        if ((stack->schedules >> k & 1) == 0)
            continue;
        if (s->schedule.n == 0 || listed(&s->schedule, (uint32_t)k))
            kept.value[kept.n++] = (uint32_t)k;
        used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s",
                                 used > 0 ? ", " : "",
                                 pt_schedule_name((enum pt_schedule_kind)k));
    }
    if (kept.n == 0 && !listed(&s->schedule, PT_SCHEDULE_NONE))
        return pt_fail(err, PT_USAGE, NULL, 0, "--stack %s has no schedule %s; it has %s",
                       stack->name,
                       pt_schedule_name((enum pt_schedule_kind)s->schedule.value[0]),
                       names);
    if (listed(&s->schedule, PT_SCHEDULE_NONE))
        kept.value[kept.n++] = PT_SCHEDULE_NONE;
    s->schedule = kept;
    return PT_OK;
}

static enum pt_status limit_others(struct planner_request *r, struct pt_error *err)
{
    const struct planner_stack *stack = r->stack;
    struct planner_space *s = &r->space;

    if (!stack->cp) {
        if (lowest(&s->cp, 1) > 1)
            return pt_fail(err, PT_USAGE, NULL, 0,
                           "--stack %s has no context parallelism; "
                           "use --cp 1",
                           stack->name);
        cap(&s->cp, 1, 1);
    }
    if (!stack->ep) {
        if (lowest(&s->ep, 1) > 1)
            return pt_fail(err, PT_USAGE, NULL, 0,
                           "--stack %s has no expert parallelism; "
                           "use --ep 1",
                           stack->name);
        cap(&s->ep, 1, 1);
    }
    return PT_OK;
}

enum pt_status planner_request_space(struct planner_request *r,
                                     const struct planner_given *g, struct pt_error *err)
{
    struct planner_space *s = &r->space;
    enum pt_status st;

    memset(s, 0, sizeof(*s));
    s->replicate_kv = g->replicate_kv;
    s->embedding_slots = g->embedding_slots;
    s->idle_gpus = g->idle_gpus;
    st = read_numbers(s, g, err);
    if (st == PT_OK)
        st = read_names(s, g, err);
    if (st == PT_OK)
        st = read_offload(s, g->offload, err);
    imply_interleaving(s);
    if (st == PT_OK)
        st = limit_pipeline(r, err);
    if (st == PT_OK)
        st = limit_zero(r, err);
    if (st == PT_OK)
        st = limit_schedules(r, err);
    return st == PT_OK ? limit_others(r, err) : st;
}
