/* Random plans on real machines: what the simulator moves is what the planner says, to
 * the byte; what it holds is what the memory model says; folded and unfolded agree; and
 * the step is near the closed form where that is exact. */
#include "config.h"

#include <math.h>
#include <string.h>

#include "sim/engine.h"
#include "sim/model.h"
#include "tests/prop/prop.h"

static uint32_t pick(struct prop_rng *rng, uint32_t lo, uint32_t hi)
{
    return lo + (uint32_t)prop_below(rng, hi - lo + 1);
}

/* A plan that passes every check, or false. */
static bool random_plan(struct prop_rng *rng, struct pt_plan *plan)
{
    static const char *const gpus[] = { "A100-80-SXM4", "H100-80-SXM5", "V100-32-SXM3" };
    struct pt_setup *s = &plan->setup;
    struct pt_layout *l = &plan->layout;
    struct pt_calibration *cal = NULL;
    struct pt_error err = PT_ERROR_INIT;
    char folder[PT_PROFILE_DIR_SIZE];
    const char *dir = pt_profile_dir(folder, sizeof(folder));

    pt_plan_init(plan);
    REQUIRE(pt_model_synthesise(1000000000ull * pick(rng, 1, 60),
                                prop_below(rng, 2) ? PT_STYLE_GPT : PT_STYLE_LLAMA,
                                &s->model, &err) == PT_OK,
            "%s", err.text);
    REQUIRE(pt_cluster_default(dir, gpus[prop_below(rng, 3)], &s->cluster, &err) == PT_OK,
            "%s", err.text);
    REQUIRE(pt_calibration_read(dir, NULL, PT_CALIBRATION_DEFAULT, &cal, &err) == PT_OK,
            "%s", err.text);
    pt_calibration_stack(cal, prop_below(rng, 2) ? "ptexec" : "megatron-2021", &s->stack,
                         NULL);
    pt_calibration_device(cal, s->cluster.gpu.family, &s->device, NULL);
    pt_calibration_network(cal, s->cluster.network, &s->network, NULL);
    pt_calibration_free(cal);
    *l = (struct pt_layout){ .tp = 1u << prop_below(rng, 4),
                             .pp = 1u << prop_below(rng, 5),
                             .vpp = 1,
                             .cp = 1,
                             .ep = 1,
                             .dp = 1u << prop_below(rng, 4),
                             .zero = (uint32_t)prop_below(rng, 4),
                             .micro_batch = 1,
                             .recompute = prop_below(rng, 2) ? PT_RECOMPUTE_NONE
                                                             : PT_RECOMPUTE_FULL };
    l->schedule = l->pp == 1 ? PT_SCHEDULE_NONE
                             : (enum pt_schedule_kind)pick(rng, PT_SCHEDULE_GPIPE,
                                                           PT_SCHEDULE_ZB_AUTO);
    if (pt_schedule_is_v(l->schedule) || l->schedule == PT_SCHEDULE_INTERLEAVED)
        l->vpp = 2;
    l->sequence_parallel = l->tp > 1 && prop_below(rng, 2);
    s->cluster.gpus = l->tp * l->pp * l->dp;
    s->job =
        (struct pt_job){ .seq = 2048,
                         .global_batch = l->dp * l->pp * pick(rng, 1, 6),
                         .precision =
                             s->cluster.gpu.peak_flops[PT_BF16] > 0 ? PT_BF16 : PT_FP16,
                         .attention = PT_ATTENTION_FLASH,
                         .vocab_unit = 128 };
    pt_dtypes_for_stack(&s->stack, s->job.precision, PT_OPT_ADAM, &s->job.dtypes);
    if (pt_layout_check(&s->model, &s->job, l, s->cluster.gpus, NULL) != PT_OK)
        return false;
    REQUIRE(pt_split_init(&plan->split, l->pp, l->vpp, &err) == PT_OK, "%s", err.text);
    pt_split_even(&plan->split, &s->model, l, false);
    for (uint32_t k = 0, offload = prop_below(rng, 4) == 0; offload && k < l->pp; k++)
        plan->split.offload_frac[k] = prop_unit(rng);
    REQUIRE(pt_plan_predict(plan, &err) == PT_OK, "%s", err.text);
    return true;
}

static void same(struct prop_rng *rng, const struct pt_plan *plan, const char *what,
                 double got, double want)
{
    REQUIRE(fabs(got - want) <= 1e-9 * (1 + fabs(want)),
            "%s, %s, pp %u: %.17g, want %.17g", pt_schedule_name(plan->layout.schedule),
            what, plan->layout.pp, got, want);
}

static void check_bytes(struct prop_rng *rng, const struct pt_plan *plan,
                        const struct sim_model *m, const struct sim_result *r)
{
    uint32_t pp = plan->layout.pp, slow = m->closed.slowest_stage;
    double sent = 0, received = 0;

    for (uint32_t s = 0; s < pp; s++) {
        sent += r->rank[s].sent_bytes;
        received += r->rank[s].received_bytes;
        /* every chunk of a stage inside the pipeline has two neighbours */
        if (s > 0 && s + 1 < pp)
            same(rng, plan, "pipeline bytes", r->rank[s].sent_bytes, m->closed.pp_bytes);
        REQUIRE(r->rank[s].sent_bytes <= m->closed.pp_bytes * (1 + 1e-12), "%g of %g",
                r->rank[s].sent_bytes, m->closed.pp_bytes);
    }
    same(rng, plan, "bytes received", received, sent);
    same(rng, plan, "tensor bytes", r->rank[slow].tp_bytes, m->closed.tp_bytes);
    same(rng, plan, "data bytes", r->rank[slow].dp_bytes, m->closed.dp_bytes);
}

/* A stage holds at most what the memory model says of it, which also knows phases that
 * are no step. The V schedules keep every stage within the fullest one's figure, whatever
 * their chunks. */
static void check_memory(struct prop_rng *rng, const struct pt_plan *plan,
                         const struct sim_result *r)
{
    bool v = pt_schedule_is_v(plan->layout.schedule);

    for (uint32_t s = 0; s < plan->layout.pp; s++) {
        double said =
            v ? plan->memory.allocated_bytes : plan->memory.stage[s].allocated_bytes;

        if (plan->layout.schedule == PT_SCHEDULE_INTERLEAVED)
            said *= 1.1; /* chunks of unequal layers count as equal */
        REQUIRE(r->rank[s].peak_bytes <= said * 1.001,
                "%s, stage %u of %u holds %g of %g",
                pt_schedule_name(plan->layout.schedule), s, plan->layout.pp,
                r->rank[s].peak_bytes, said);
    }
}

/* How far the simulated step may be from the closed form. That takes m times the slowest
 * stage; with GPipe the slowest one forwards and the slowest one backwards may be two,
 * which costs a little more. Split backwards are mostly within 3% where the stages are
 * alike; the V schedules' searched lists lose most where one stage is far longer than the
 * others, as in these even splits. */
static double most_above(enum pt_schedule_kind kind)
{
    return kind <= PT_SCHEDULE_1F1B            ? 0.05
           : pt_schedule_is_v(kind)            ? 0.40
           : pt_schedule_splits_backward(kind) ? 0.25
                                               : 0.5;
}

static double most_below(enum pt_schedule_kind kind)
{
    return pt_schedule_is_v(kind)              ? -0.3
           : pt_schedule_splits_backward(kind) ? -0.2
                                               : -0.3;
}

static void plans(struct prop_rng *rng)
{
    struct sim_options options = { .steps = 1 };
    struct pt_error err = PT_ERROR_INIT;
    struct sim_result one, all;
    struct sim_model m;
    struct pt_plan plan;
    double difference;
    bool offload = false;

    if (!random_plan(rng, &plan))
        goto out;
    for (uint32_t k = 0; k < plan.layout.pp; k++)
        offload = offload || plan.split.offload_frac[k] > 0;
    REQUIRE(sim_model_make(&plan, &options, &m, &err) == PT_OK, "%s", err.text);
    REQUIRE(sim_run(&m.world, NULL, 0, &one, &err) == PT_OK, "%s", err.text);
    check_bytes(rng, &plan, &m, &one);
    check_memory(rng, &plan, &one);
    difference = one.step_s[0] / m.closed.step_s - 1;
    if (getenv("PT_SHOW") != NULL) /* a table for people */
        printf("%s tp %u pp %u dp %u zero %u m %u%s: %.4f s against %.4f (%+.2f%%)\n",
               pt_schedule_name(plan.layout.schedule), plan.layout.tp, plan.layout.pp,
               plan.layout.dp, plan.layout.zero, m.schedule.micro_batches,
               offload ? " offload" : "", one.step_s[0], m.closed.step_s,
               100 * difference);
    REQUIRE(difference < most_above(plan.layout.schedule) &&
                difference > (offload ? -0.6 : most_below(plan.layout.schedule)),
            "%s tp %u pp %u dp %u m %u: step %g, closed form %g",
            pt_schedule_name(plan.layout.schedule), plan.layout.tp, plan.layout.pp,
            plan.layout.dp, m.schedule.micro_batches, one.step_s[0], m.closed.step_s);
    sim_model_fini(&m);
    if (plan.setup.cluster.gpus <= 64) {
        options.unfold = true;
        REQUIRE(sim_model_make(&plan, &options, &m, &err) == PT_OK, "%s", err.text);
        REQUIRE(sim_run(&m.world, NULL, 0, &all, &err) == PT_OK, "%s", err.text);
        REQUIRE(all.ranks == plan.setup.cluster.gpus, "%u ranks", all.ranks);
        same(rng, &plan, "unfolded step", all.step_s[0], one.step_s[0]);
        sim_result_fini(&all);
        sim_model_fini(&m);
    }
    sim_result_fini(&one);
out:
    pt_plan_fini(&plan);
}

int main(void)
{
    static const struct prop props[] = { { "plans", plans } };

    return prop_run(props, 1, 200);
}
