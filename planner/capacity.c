#include "config.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "libpt/units.h"
#include "planner/capacity.h"
#include "planner/summary.h"

/* No trial may keep a person waiting: what is not found in this time is not offered. */
#define TRIAL_SECONDS 5.0
#define MOST_GPUS     65536u

struct planner_fit planner_try(const struct pt_setup *setup,
                               const struct planner_space *space)
{
    /* So wide a gap accepts the first plan that fits (1 itself would multiply infinity).
     */
    const struct planner_options options = {
        .top = 1, .time_limit_s = TRIAL_SECONDS, .gap = 0.999, .causal = true
    };
    struct planner_fit fit = { 0 };
    struct pt_error ignored = PT_ERROR_INIT;
    struct planner_result result;

    memset(&result, 0, sizeof(result));
    (void)planner_search(setup, space, &options, &result, &ignored);
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

uint32_t planner_smallest_gpus(const struct pt_setup *setup,
                               const struct planner_space *given, uint32_t from,
                               uint32_t most)
{
    struct planner_space space = *given;
    uint32_t lo = from > 0 ? from - 1 : 0, hi = from > 0 ? from : 1;

    space.dp.n = 0;
    space.idle_gpus =
        true; /* then more GPUs never fit less, and halving finds the edge */
    while (hi <= most && !fits_on(setup, &space, hi)) {
        lo = hi;
        hi *= 2;
    }
    if (hi > most)
        return 0;
    while (hi - lo > 1) {
        uint32_t mid = lo + (hi - lo) / 2;

        if (fits_on(setup, &space, mid))
            hi = mid;
        else
            lo = mid;
    }
    return hi;
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

static void offer_offload(struct planner_capacity *c, const struct pt_setup *setup,
                          const struct planner_space *given, double params)
{
    struct planner_space space = *given;
    struct planner_fit fit;
    const char *how = "auto";

    if (given->offload && given->offload_frac < 0)
        return;
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
    uint32_t gpus = planner_smallest_gpus(setup, given, setup->cluster.gpus, MOST_GPUS);

    if (gpus > 0)
        offer(c, "%u GPUs like these", gpus);
}

static void headline(struct planner_capacity *c, const struct pt_setup *setup,
                     const struct planner_shortfall *shortfall, double params)
{
    const struct pt_dtypes *d = &setup->job.dtypes;
    const struct pt_memory *m = &shortfall->memory;
    double bytes = d->weight + d->grad + d->master + d->moments,
           usable = shortfall->usable_bytes;
    struct pt_plan plan = { .setup = *setup, .layout = shortfall->closest };
    char count[32], label[96];
    int n;

    planner_short_label(label, sizeof(label), &plan);
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
    headline(c, setup, shortfall, (double)params.total);
    offer_unpinned(c, setup, space);
    offer_relief(c, setup, space);
    offer_offload(c, setup, space, (double)params.total);
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
