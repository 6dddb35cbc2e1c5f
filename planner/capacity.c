#include "config.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "libpt/units.h"
#include "planner/capacity.h"
#include "planner/diagnose.h"
#include "planner/summary.h"

/* No trial may keep a person waiting: what is not found in this time is not offered. */
#define TRIAL_SECONDS 5.0
/* Machines that are offered: up to this many times the one that is there. */
#define TIMES_GPUS 64u
#define SOME_GPUS  1024u
#define MOST_GPUS  65536u

struct planner_fit planner_try(const struct pt_setup *setup,
                               const struct planner_space *given)
{
    /* So wide a gap accepts the first plan that fits (1 itself would multiply infinity).
     */
    const struct planner_options options = {
        .top = 1, .time_limit_s = TRIAL_SECONDS, .gap = 0.999, .causal = true
    };
    struct planner_fit fit = { 0 };
    struct pt_error ignored = PT_ERROR_INIT;
    struct planner_space space = *given;
    struct planner_result result;

    /* Only whether it fits is asked: no micro-batch needs less than one sequence. */
    if (space.micro_batch.n == 0)
        space.micro_batch = (struct planner_list){ .n = 1, .value = { 1 } };
    memset(&result, 0, sizeof(result));
    (void)planner_search(setup, &space, &options, &result, &ignored);
    if (result.n > 0) {
        const struct pt_plan *plan = &result.plan[0];

        fit.fits = true;
        fit.offload_share = planner_offload_share(&plan->split);
        fit.step_s = plan->step.step_s;
        fit.host_bytes = plan->memory.host_bytes;
        fit.gpus = plan->layout.tp * plan->layout.pp * plan->layout.cp * plan->layout.dp;
    }
    planner_result_fini(&result);
    return fit;
}

static bool fits_on(const struct pt_setup *setup, const struct planner_space *space,
                    uint32_t gpus)
{
    struct pt_setup machine = *setup;

    machine.cluster.gpus = gpus;
    return planner_try(&machine, space).fits;
}

/* Fewer GPUs cannot hold the weights, and the optimizer states that have to stay. */
static uint32_t least_gpus(const struct pt_setup *setup,
                           const struct planner_space *space)
{
    const struct pt_dtypes *d = &setup->job.dtypes;
    double bytes = d->weight + (space->offload ? 0.0 : d->master + d->moments), n;
    struct pt_params params;

    pt_model_params(&setup->model, &params);
    n = bytes * (double)params.total / pt_memory_limit(setup);
    return n < 1 ? 1 : n > UINT32_MAX / 4 ? UINT32_MAX / 4 : (uint32_t)n;
}

/* The i-th machine: GPU by GPU within a node, then node by node. */
static uint32_t machine_gpus(uint32_t i, uint32_t node)
{
    return i <= node ? i : (i - node + 1) * node;
}

uint32_t planner_smallest_gpus(const struct pt_setup *setup,
                               const struct planner_space *given, uint32_t from,
                               uint32_t most, uint32_t node)
{
    struct planner_space space = *given;
    uint32_t least = least_gpus(setup, given), lo, hi = 1;

    space.dp.n = 0;
    space.idle_gpus =
        true; /* then more GPUs never fit less, and halving finds the edge */
    if (least < from)
        least = from;
    if (least > most)
        return 0;
    if (least > node)
        hi = (least + node - 1) / node + node - 1;
    else if (least > 1)
        hi = least;
    lo = hi - 1;
    while (machine_gpus(hi, node) <= most &&
           !fits_on(setup, &space, machine_gpus(hi, node))) {
        lo = hi;
        hi *= 2;
    }
    if (machine_gpus(hi, node) > most)
        return 0;
    while (hi - lo > 1) {
        uint32_t mid = lo + (hi - lo) / 2;

        if (fits_on(setup, &space, machine_gpus(mid, node)))
            hi = mid;
        else
            lo = mid;
    }
    return machine_gpus(hi, node);
}

static bool fits_params(const struct pt_setup *setup, const struct planner_space *space,
                        enum pt_model_style style, double params)
{
    struct pt_setup smaller = *setup;

    if (pt_model_synthesise((uint64_t)params, style, &smaller.model, NULL) != PT_OK)
        return false;
    return planner_try(&smaller, space).fits;
}

/* Down to two digits, so that the count printed is one that fits. */
static double two_digits(double v)
{
    double unit = pow(10, floor(log10(v)) - 1);

    return floor(v / unit + 1e-9) * unit;
}

uint64_t planner_largest_params(const struct pt_setup *setup,
                                const struct planner_space *space,
                                enum pt_model_style style)
{
    double lo = 1e7, hi = 1e14;

    if (!fits_params(setup, space, style, lo))
        return 0;
    while (hi / lo > 1.01) {
        double mid = sqrt(lo * hi);

        if (fits_params(setup, space, style, mid))
            lo = mid;
        else
            hi = mid;
    }
    /* Shapes are made in steps, so a slightly smaller count may be a slightly larger
     * shape. */
    for (hi = two_digits(lo); hi >= 1e7; hi = two_digits(0.985 * hi))
        if (fits_params(setup, space, style, hi))
            return (uint64_t)hi;
    return 0;
}

static void offer(struct planner_capacity *c, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static void offer(struct planner_capacity *c, const char *fmt, ...)
{
    va_list ap;

    if (c->n == PLANNER_MAX_FIXES)
        return;
    va_start(ap, fmt);
    vsnprintf(c->fix[c->n++], sizeof(c->fix[0]), fmt, ap);
    va_end(ap);
}

/* States of the optimizer that offloading moves, over all hosts. */
static double optimizer_bytes(const struct pt_setup *setup, double params)
{
    return params * (setup->job.dtypes.master + setup->job.dtypes.moments);
}

/* The share of the optimizer that the hosts do have room for, to two digits; 0: none. */
static double host_share(const struct pt_setup *setup, const struct planner_space *given,
                         const struct planner_shortfall *shortfall)
{
    struct planner_space space = *given;
    struct pt_memory none;
    double limit = shortfall->memory.host_limit_bytes, base;

    if (limit <= 0 || shortfall->memory.host_bytes <= limit)
        return 0;
    space.offload_frac = 0;
    if (planner_relieved_memory(setup, &space, &shortfall->closest, &none, NULL) != PT_OK)
        return 0;
    base = none.host_bytes;
    pt_memory_fini(&none);
    return floor(100 * given->offload_frac * (limit - base) /
                 (shortfall->memory.host_bytes - base)) /
           100;
}

static void offer_offload(struct planner_capacity *c, const struct pt_setup *setup,
                          const struct planner_space *given,
                          const struct planner_shortfall *shortfall, double params)
{
    struct planner_space space = *given;
    struct planner_fit fit;
    const char *how = "auto";
    double share;

    if (given->offload && given->offload_frac < 0)
        return;
    if (given->offload && (share = host_share(setup, given, shortfall)) > 0) {
        space.offload_frac = share;
        fit = planner_try(setup, &space);
        if (fit.fits) {
            offer(c,
                  "--offload %g: the share that the hosts have room for, %.0f of %.0f GB "
                  "with pinned copies %.0f GiB a node",
                  share, share * optimizer_bytes(setup, params) / PT_GB,
                  optimizer_bytes(setup, params) / PT_GB, fit.host_bytes / PT_GIB);
            return;
        }
    }
    space.offload = true;
    space.offload_frac = 1;
    fit = planner_try(setup, &space);
    if (fit.fits && !given->offload) {
        how = "optimizer";
    } else {
        space.offload_frac = -1;
        fit = planner_try(setup, &space);
    }
    if (!fit.fits)
        return;
    if (fit.offload_share < 0.995)
        offer(c,
              "--offload %s: %.0f%% of the optimizer on the host, %.0f of %.0f GB with "
              "pinned copies %.0f GiB a node",
              how, 100 * fit.offload_share,
              fit.offload_share * optimizer_bytes(setup, params) / PT_GB,
              optimizer_bytes(setup, params) / PT_GB, fit.host_bytes / PT_GIB);
    else
        offer(
            c,
            "--offload %s: %.0f GB of optimizer states on the hosts, with pinned copies "
            "%.0f GiB a node",
            how, optimizer_bytes(setup, params) / PT_GB, fit.host_bytes / PT_GIB);
}

static void offer_relief(struct planner_capacity *c, const struct pt_setup *setup,
                         const struct planner_space *given)
{
    struct planner_space space = *given;
    struct pt_setup other = *setup;

    if (setup->job.attention == PT_ATTENTION_EAGER) {
        other.job.attention = PT_ATTENTION_FLASH;
        if (planner_try(&other, given).fits)
            offer(c, "--attention flash: it keeps no scores");
        other = *setup;
    }
    if (given->recompute.n > 0) {
        space.recompute.n = 0;
        if (planner_try(setup, &space).fits)
            offer(c, "another --recompute than the one given");
        space = *given;
    }
    if (given->micro_batch.n > 0) {
        space.micro_batch.n = 0;
        if (planner_try(setup, &space).fits)
            offer(c, "a smaller --micro-batch than the one given");
        space = *given;
    }
    if (setup->job.optimizer == PT_OPT_ADAM) {
        other.job.optimizer = PT_OPT_ADAM8BIT;
        pt_dtypes_for_stack(&other.stack, other.job.precision, other.job.optimizer,
                            &other.job.dtypes);
        if (planner_try(&other, given).fits)
            offer(c, "--optimizer adam8bit: %g bytes a parameter in place of %g",
                  other.job.dtypes.weight + other.job.dtypes.grad +
                      other.job.dtypes.master + other.job.dtypes.moments,
                  setup->job.dtypes.weight + setup->job.dtypes.grad +
                      setup->job.dtypes.master + setup->job.dtypes.moments);
    }
}

/* All dimensions free: is it the pinned ones that make it not fit? */
static void offer_unpinned(struct planner_capacity *c, const struct pt_setup *setup,
                           const struct planner_space *given)
{
    struct planner_space space = *given;

    if (given->tp.n + given->pp.n + given->vpp.n + given->cp.n + given->ep.n +
            given->dp.n + given->zero.n + given->schedule.n ==
        0)
        return;
    space.tp.n = space.pp.n = space.vpp.n = space.cp.n = space.ep.n = space.dp.n = 0;
    space.zero.n = space.zero_group.n = space.schedule.n = 0;
    if (planner_try(setup, &space).fits)
        offer(c, "another layout than the one given: leave its dimensions free");
}

static void offer_machine(struct planner_capacity *c, const struct pt_setup *setup,
                          const struct planner_space *given)
{
    struct planner_space space = *given;
    struct pt_setup more = *setup;
    uint32_t node = setup->cluster.node_gpus > 0 ? setup->cluster.node_gpus : 1;
    uint32_t have = setup->cluster.gpus;
    uint32_t most = have >= MOST_GPUS / TIMES_GPUS   ? MOST_GPUS
                    : have >= SOME_GPUS / TIMES_GPUS ? TIMES_GPUS * have
                                                     : SOME_GPUS;
    uint32_t gpus = planner_smallest_gpus(setup, given, have + 1, most, node);

    space.dp.n = 0;
    if (given->dp.n > 0 && planner_try(setup, &space).fits)
        return; /* the machine is not what is missing */
    space = *given;
    space.idle_gpus = true;
    if (!given->idle_gpus && planner_try(setup, &space).fits)
        offer(c, "a layout that leaves some of the GPUs idle: --idle-gpus");
    if (gpus == 0)
        return;
    more.cluster.gpus = gpus;
    space = *given;
    space.dp.n = 0;
    offer(
        c, "%u GPUs like these%s%s", gpus, given->dp.n > 0 ? ", with --dp left free" : "",
        given->idle_gpus || planner_try(&more, &space).fits ? "" : ", with --idle-gpus");
}

/* The closest layout as the summary writes one: relieved as far as the space allows. */
static void closest_text(char *buf, size_t size, const struct pt_setup *setup,
                         const struct planner_space *space,
                         const struct pt_layout *layout)
{
    struct pt_plan plan = { .setup = *setup, .layout = *layout };

    buf[0] = '\0';
    if (pt_split_init(&plan.split, layout->pp, layout->vpp, NULL) == PT_OK) {
        pt_split_even(&plan.split, &setup->model, layout, space->embedding_slots);
        for (uint32_t s = 0; space->offload && s < layout->pp; s++)
            plan.split.offload_frac[s] =
                space->offload_frac < 0 ? 1 : space->offload_frac;
        planner_layout_text(buf, size, &plan);
    }
    pt_split_fini(&plan.split);
}

static void headline(struct planner_capacity *c, const struct pt_setup *setup,
                     const struct planner_space *space,
                     const struct planner_shortfall *shortfall, double params)
{
    const struct pt_dtypes *d = &setup->job.dtypes;
    const struct pt_memory *m = &shortfall->memory;
    double bytes = d->weight + d->grad + d->master + d->moments,
           usable = shortfall->usable_bytes;
    char count[32], label[256];
    int n;

    closest_text(label, sizeof(label), setup, space, &shortfall->closest);
    pt_format_count(count, params);
    if (m->stages > 0 && m->host_limit_bytes > 0 && m->host_bytes > m->host_limit_bytes &&
        m->device_bytes <= m->limit_bytes) {
        snprintf(
            c->headline, sizeof(c->headline),
            "%s parameters do not fit the host memory: %.0f GB of offloaded optimizer "
            "states with pinned copies and buffers need %.0f GiB on the fullest node, "
            "%.0f GiB are there.",
            count, optimizer_bytes(setup, params) / PT_GB, m->host_bytes / PT_GIB,
            m->host_limit_bytes / PT_GIB);
        return;
    }
    n = snprintf(
        c->headline, sizeof(c->headline),
        "%s parameters do not fit %u x %s: %.0f GiB of states (%g bytes a "
        "parameter) and the activations, against %u x %.1f GiB usable. The closest "
        "layout (%s) needs %.1f GiB on its fullest GPU, %.1f GiB too much.",
        count, setup->cluster.gpus, setup->cluster.gpu.name, params * bytes / PT_GIB,
        bytes, setup->cluster.gpus, usable / PT_GIB, label,
        shortfall->needed_bytes / PT_GIB, (shortfall->needed_bytes - usable) / PT_GIB);
    if (n > 0 && (size_t)n < sizeof(c->headline) && m->stages > 0 &&
        m->largest_tensor_bytes > 0.1 * usable)
        snprintf(c->headline + n, sizeof(c->headline) - (size_t)n,
                 " Its largest tensor alone has %.1f GiB: %s.",
                 m->largest_tensor_bytes / PT_GIB, m->largest_tensor);
}

void planner_capacity_init(struct planner_capacity *c, const struct pt_setup *setup,
                           const struct planner_space *space,
                           const struct planner_shortfall *shortfall)
{
    struct pt_params params;
    char count[32];
    uint64_t largest;

    memset(c, 0, sizeof(*c));
    pt_model_params(&setup->model, &params);
    headline(c, setup, space, shortfall, (double)params.total);
    offer_unpinned(c, setup, space);
    offer_relief(c, setup, space);
    offer_offload(c, setup, space, shortfall, (double)params.total);
    offer_machine(c, setup, space);
    largest = planner_largest_params(setup, space,
                                     setup->model.gated ? PT_STYLE_LLAMA : PT_STYLE_GPT);
    if (largest > 0)
        offer(c, "at most about %s parameters here, as it is",
              pt_format_count(count, (double)largest));
}

char *planner_capacity_text(const struct planner_capacity *c, bool lines, char *buf,
                            size_t size)
{
    size_t used;

    snprintf(buf, size, "%s", c->headline);
    for (unsigned i = 0; i < c->n; i++) {
        const char *before = i > 0 ? "; or " : " What fits: ";

        if (lines)
            before = i > 0 ? "\n  - " : "\nWhat fits:\n  - ";
        used = strlen(buf);
        snprintf(buf + used, size - used, "%s%s", before, c->fix[i]);
    }
    return buf;
}
