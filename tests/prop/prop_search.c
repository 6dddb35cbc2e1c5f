/* The search as a whole on small spaces: bounds lose nothing, more of anything never
 * hurts, and the order of lists does not matter. */
#include "config.h"

#include <math.h>

#include "tests/prop/search_setup.h"

static struct search_profiles profiles;

static void small_setup(struct prop_rng *rng, struct pt_setup *s,
                        struct planner_space *space)
{
    static const uint32_t gpus[] = { 1, 2, 4, 6 };

    random_setup(rng, &profiles, s);
    s->cluster.gpus = gpus[prop_below(rng, 4)];
    s->job.global_batch = PICK(rng, 2, 4, 6);
    *space = (struct planner_space){ .offload_frac = -1.0 };
    space->zero_max_with_pp = (uint32_t)prop_below(rng, 2);
    space->offload = prop_below(rng, 4) == 0;
    /* Around what the model's states need, so that memory matters in most cases. */
    struct pt_params p;

    pt_model_params(&s->model, &p);
    s->cluster.mem_limit_bytes =
        2e9 + (double)p.total * 16.0 / s->cluster.gpus * (0.5 + 2.5 * prop_unit(rng));
}

/* The best step time; infinite when nothing fits. The plan's own figures must agree. */
static double best(struct prop_rng *rng, const struct pt_setup *s,
                   const struct planner_space *space, bool exhaustive,
                   struct pt_layout *layout)
{
    struct planner_options options = { .top = 1,
                                       .causal = true,
                                       .exhaustive = exhaustive };
    struct planner_result result;
    struct pt_error err = PT_ERROR_INIT;
    enum pt_status st = planner_search(s, space, &options, &result, &err);
    double step_s = HUGE_VAL;

    REQUIRE(st == PT_OK || st == PT_CAPACITY, "%s", err.text);
    REQUIRE((st == PT_OK) == (result.n == 1), "status %d with %u plans", (int)st,
            result.n);
    if (st == PT_OK) {
        const struct pt_plan *plan = &result.plan[0];

        step_s = plan->step.step_s;
        REQUIRE(plan->memory.fits, "%.9g of %.9g bytes", plan->memory.device_bytes,
                plan->memory.limit_bytes);
        REQUIRE(result.stats.gap == 0.0, "gap %g", result.stats.gap);
        REQUIRE(fabs(result.stats.bound_s / step_s - 1.0) < 1e-7,
                "bound %.12g step %.12g", result.stats.bound_s, step_s);
        if (layout != NULL)
            *layout = plan->layout;
    } else {
        REQUIRE(result.shortfall.needed_bytes > result.shortfall.usable_bytes ||
                    result.shortfall.memory.host_bytes >
                        result.shortfall.memory.host_limit_bytes,
                "needs %.9g, has %.9g: but it does not fit",
                result.shortfall.needed_bytes, result.shortfall.usable_bytes);
    }
    const struct planner_stats *t = &result.stats;

    REQUIRE(t->seen == t->invalid + t->bounded + t->no_memory + t->solved,
            "seen %" PRIu64 " invalid %" PRIu64 " bounded %" PRIu64 " no memory %" PRIu64
            " solved %" PRIu64,
            t->seen, t->invalid, t->bounded, t->no_memory, t->solved);
    planner_result_fini(&result);
    return step_s;
}

static void bounds_lose_nothing(struct prop_rng *rng)
{
    struct pt_setup s;
    struct planner_space space;
    struct pt_layout a, b;

    small_setup(rng, &s, &space);
    double quick = best(rng, &s, &space, false, &a),
           all = best(rng, &s, &space, true, &b);

    REQUIRE(quick == all || fabs(quick / all - 1.0) < 1e-7,
            "with bounds %.12g, without %.12g", quick, all);
    REQUIRE(!isfinite(quick) || memcmp(&a, &b, sizeof(a)) == 0,
            "tp %u pp %u dp %u mb %u zero %u schedule %d with bounds, tp %u pp %u dp %u "
            "mb %u "
            "zero %u schedule %d without",
            a.tp, a.pp, a.dp, a.micro_batch, a.zero, (int)a.schedule, b.tp, b.pp, b.dp,
            b.micro_batch, b.zero, (int)b.schedule);
}

static void more_never_hurts(struct prop_rng *rng)
{
    struct pt_setup s, t;
    struct planner_space space;
    double before, after, factor = 1.0 + prop_unit(rng);
    const char *what;

    small_setup(rng, &s, &space);
    space.idle_gpus = true;
    t = s;
    switch (prop_below(rng, 7)) {
    case 0:
        what = "memory";
        t.cluster.mem_limit_bytes *= factor;
        break;
    case 1:
        what = "network";
        t.cluster.nic_bytes_per_s *= factor;
        break;
    case 2:
        what = "link";
        t.cluster.link.allreduce_bytes_per_s *= factor;
        t.cluster.link.allgather_bytes_per_s *= factor;
        t.cluster.link.alltoall_bytes_per_s *= factor;
        t.cluster.link.p2p_bytes_per_s *= factor;
        break;
    case 3:
        what = "HBM";
        t.cluster.gpu.hbm_bytes_per_s *= factor;
        break;
    case 4:
        what = "host link";
        t.cluster.gpu.h2d_bytes_per_s *= factor;
        t.cluster.gpu.d2h_bytes_per_s *= factor;
        break;
    case 5:
        what = "host memory";
        t.cluster.host_mem_bytes *= factor;
        break;
    default:
        what = "GPUs";
        t.cluster.gpus += 1 + (uint32_t)prop_below(rng, 4);
        break;
    }
    before = best(rng, &s, &space, false, NULL);
    after = best(rng, &t, &space, false, NULL);
    REQUIRE(after <= before * (1 + 1e-7), "more %s: %.12g s before, %.12g s after", what,
            before, after);
}

static void shuffle(struct prop_rng *rng, struct planner_list *list, uint32_t n,
                    const uint32_t *from)
{
    list->n = n;
    memcpy(list->value, from, n * sizeof(*from));
    for (uint32_t i = n; i > 1; i--) {
        uint32_t j = (uint32_t)prop_below(rng, i), x = list->value[i - 1];

        list->value[i - 1] = list->value[j];
        list->value[j] = x;
    }
}

static void order_does_not_matter(struct prop_rng *rng)
{
    static const uint32_t degrees[] = { 1, 2, 3, 4, 6 }, zero[] = { 0, 1, 2, 3 };
    static const uint32_t modes[] = { PT_RECOMPUTE_NONE, PT_RECOMPUTE_SELECTIVE,
                                      PT_RECOMPUTE_FULL };
    static const uint32_t schedules[] = { PT_SCHEDULE_GPIPE, PT_SCHEDULE_1F1B,
                                          PT_SCHEDULE_ZB_H1, PT_SCHEDULE_ZB_V };
    struct pt_setup s;
    struct planner_space space;
    struct pt_layout layout[2];
    double step_s[2];

    small_setup(rng, &s, &space);
    for (int i = 0; i < 2; i++) {
        memset(&layout[i], 0, sizeof(layout[i]));
        shuffle(rng, &space.tp, 4, degrees);
        shuffle(rng, &space.pp, 5, degrees);
        shuffle(rng, &space.micro_batch, 3, degrees);
        shuffle(rng, &space.zero, 4, zero);
        shuffle(rng, &space.recompute, 3, modes);
        shuffle(rng, &space.schedule, 4, schedules);
        step_s[i] = best(rng, &s, &space, false, &layout[i]);
    }
    REQUIRE(step_s[0] == step_s[1] &&
                memcmp(&layout[0], &layout[1], sizeof(layout[0])) == 0,
            "%.17g and %.17g", step_s[0], step_s[1]);
}

/* On networks from hopeless to excellent: every slice of the step and every volume is
 * there once, none is negative, and no link carries more than it can. */
static void slices_add_up(struct prop_rng *rng)
{
    const struct planner_options options = { .top = 1, .causal = true };
    struct planner_result result;
    struct pt_setup s;
    struct planner_space space;
    struct pt_error err = PT_ERROR_INIT;

    small_setup(rng, &s, &space);
    s.cluster.node_gpus = s.cluster.domain_gpus = PICK(rng, 1, 2, 4);
    s.cluster.nic_bytes_per_s = pow(10.0, 6.5 + 5.0 * prop_unit(rng));
    s.cluster.mem_limit_bytes = 70e9;
    if (s.cluster.gpus > 1 && prop_below(rng, 2) == 0)
        space.pp = (struct planner_list){ .n = 1, .value = { 2 } };
    if (planner_search(&s, &space, &options, &result, &err) != PT_OK)
        return;
    const struct pt_plan *plan = &result.plan[0];
    const struct pt_step *t = &plan->step;
    const double slice[] = { t->compute_s, t->recompute_s, t->tp_s,       t->cp_s,
                             t->ep_s,      t->pp_s,        t->bubble_s,   t->dp_s,
                             t->other_s,   t->offload_s,   t->optimizer_s };
    double sum = 0.0, m = pt_micro_batches(&s.job, &plan->layout);
    double volume = t->tp_bytes + t->cp_bytes + t->ep_bytes + t->pp_bytes + t->dp_bytes;
    struct pt_costs costs;

    for (size_t i = 0; i < sizeof(slice) / sizeof(slice[0]); i++) {
        REQUIRE(slice[i] >= -1e-9 * t->step_s, "slice %zu is %g s of %g", i, slice[i],
                t->step_s);
        sum += slice[i];
    }
    REQUIRE(fabs(sum / t->step_s - 1.0) < 1e-9, "slices %.12g s of %.12g", sum,
            t->step_s);
    REQUIRE(fabs(t->intra_bytes + t->inter_bytes - volume) <= 1e-9 * volume,
            "%g inside + %g between, %g in all", t->intra_bytes, t->inter_bytes, volume);
    if (s.cluster.gpus <= s.cluster.domain_gpus)
        REQUIRE(t->inter_bytes <= 1e-9 * volume, "%g leave one node", t->inter_bytes);
    pt_costs_init(&s, &plan->layout, &costs);
    if (plan->layout.pp > 1)
        REQUIRE(t->pipeline_s >= m * plan->layout.vpp * costs.p2p_s * (1.0 - 1e-9),
                "%g s, and %g transfers of %g s each way", t->pipeline_s,
                m * plan->layout.vpp, costs.p2p_s);
    planner_result_fini(&result);
}

int main(void)
{
    static const struct prop props[] = {
        { "bounds_lose_nothing", bounds_lose_nothing },
        { "more_never_hurts", more_never_hurts },
        { "order_does_not_matter", order_does_not_matter },
        { "slices_add_up", slices_add_up },
    };
    int rc;

    search_profiles_init(&profiles);
    rc = prop_run(props, sizeof(props) / sizeof(props[0]), 60);
    pt_calibration_free(profiles.calibration);
    return rc;
}
