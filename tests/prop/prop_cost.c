/* What no price may do: rise when the hardware is better, or depend on what it must not.
 */
#include "config.h"

#include <math.h>
#include <string.h>

#include "libpt/cost.h"
#include "tests/prop/prop.h"

struct scene {
    struct pt_setup setup;
    struct pt_layout layout;
    struct pt_split split;
};

static const char *top(void)
{
    const char *t = getenv("top_srcdir");

    return t != NULL ? t : ".";
}

static uint32_t pick(struct prop_rng *rng, const uint32_t *values, uint32_t n)
{
    return values[prop_below(rng, n)];
}

/* The tables are read once: a thousand scenes share them. */
static void random_setup(struct prop_rng *rng, struct pt_setup *s)
{
    static const char *const gpus[] = { "A100-80-SXM4", "H100-80-SXM5", "B200-180",
                                        "V100-32" };
    static struct pt_cluster cluster[4];
    static struct pt_calibration *calibration;
    static bool read;
    char dir[4096];
    uint32_t g = (uint32_t)prop_below(rng, 4);

    if (!read) {
        snprintf(dir, sizeof(dir), "%s/profiles", top());
        for (int i = 0; i < 4; i++)
            REQUIRE(pt_cluster_default(dir, gpus[i], &cluster[i], NULL) == PT_OK, "%s",
                    gpus[i]);
        REQUIRE(pt_calibration_read(dir, NULL, PT_CALIBRATION_DEFAULT, &calibration,
                                    NULL) == PT_OK,
                "%s", dir);
        read = true;
    }
    memset(s, 0, sizeof(*s));
    s->cluster = cluster[g];
    pt_calibration_stack(
        calibration,
        pt_calibration_key(
            calibration, PT_SCOPE_STACK,
            prop_below(rng, pt_calibration_keys(calibration, PT_SCOPE_STACK))),
        &s->stack, NULL);
    pt_calibration_device(calibration, s->cluster.gpu.family, &s->device, NULL);
    pt_calibration_network(
        calibration,
        pt_calibration_key(
            calibration, PT_SCOPE_NETWORK,
            prop_below(rng, pt_calibration_keys(calibration, PT_SCOPE_NETWORK))),
        &s->network, NULL);
}

static void random_scene(struct prop_rng *rng, struct scene *x)
{
    static const uint32_t small[] = { 1, 2, 4, 8 };
    struct pt_setup *s = &x->setup;
    struct pt_layout *l = &x->layout;

    random_setup(rng, s);
    s->model = (struct pt_model){ .layers = 16,
                                  .hidden = 128 * (1 + (uint32_t)prop_below(rng, 64)),
                                  .heads = 32,
                                  .kv_heads = 8,
                                  .vocab = 32000 };
    s->model.head_dim = s->model.hidden / 32;
    s->model.ffn = 4 * s->model.hidden;
    s->model.gated = prop_below(rng, 2) == 0;
    if (prop_below(rng, 3) == 0) {
        s->model.experts = 16;
        s->model.topk = 2;
        s->model.moe_ffn = s->model.hidden;
    }
    s->job.seq = 1024u << prop_below(rng, 4);
    s->job.precision = prop_below(rng, 2) == 0 ? PT_BF16 : PT_FP8;
    s->job.attention = prop_below(rng, 2) == 0 ? PT_ATTENTION_FLASH : PT_ATTENTION_EAGER;
    pt_dtypes_default(s->job.precision, PT_OPT_ADAM, &s->job.dtypes);
    *l = (struct pt_layout){ .tp = pick(rng, small, 4),
                             .pp = pick(rng, small, 4),
                             .vpp = 1,
                             .cp = pick(rng, small, 2),
                             .ep = 1,
                             .dp = pick(rng, small, 4),
                             .micro_batch = pick(rng, small, 3),
                             .sequence_parallel = prop_below(rng, 2) == 0,
                             .zero = (uint32_t)prop_below(rng, 4),
                             .recompute =
                                 (enum pt_recompute)prop_below(rng, PT_N_RECOMPUTES) };
    /* Zero bubble with ZeRO-2/3 is left out: what hides of the traffic moves between the
     * parts of a split backward, which the bubble counts apart. */
    if (s->model.experts > 0 && l->dp >= 4)
        l->ep = 4;
    l->schedule = l->pp == 1                                ? PT_SCHEDULE_NONE
                  : l->zero >= 2 || prop_below(rng, 2) == 0 ? PT_SCHEDULE_1F1B
                                                            : PT_SCHEDULE_ZB_H1;
    s->job.global_batch = l->dp * l->micro_batch * 8;
    s->cluster.gpus = l->tp * l->pp * l->cp * l->dp;
    REQUIRE(pt_split_init(&x->split, l->pp, 1, NULL) == PT_OK, "memory");
    pt_split_even(&x->split, &s->model, l, false);
}

static double step_of(const struct scene *x)
{
    struct pt_costs costs;
    struct pt_step step;

    pt_costs_init(&x->setup, &x->layout, &costs);
    pt_step_time(&x->setup, &x->layout, &costs, &x->split, true, &step);
    return step.step_s;
}

static void better_hardware(struct prop_rng *rng)
{
    static const struct {
        const char *name;
        size_t offset;
    } rates[] = {
        { "HBM", offsetof(struct pt_setup, cluster.gpu.hbm_bytes_per_s) },
        { "bf16 peak", offsetof(struct pt_setup, cluster.gpu.peak_flops[PT_BF16]) },
        { "fp8 peak", offsetof(struct pt_setup, cluster.gpu.peak_flops[PT_FP8]) },
        { "network", offsetof(struct pt_setup, cluster.nic_bytes_per_s) },
        { "all-reduce", offsetof(struct pt_setup, cluster.link.allreduce_bytes_per_s) },
        { "all-gather", offsetof(struct pt_setup, cluster.link.allgather_bytes_per_s) },
        { "all-to-all", offsetof(struct pt_setup, cluster.link.alltoall_bytes_per_s) },
        { "p2p", offsetof(struct pt_setup, cluster.link.p2p_bytes_per_s) },
        { "memory", offsetof(struct pt_setup, cluster.gpu.mem_bytes) },
    };
    struct scene x;

    random_scene(rng, &x);
    double before = step_of(&x);

    REQUIRE(isfinite(before) && before > 0.0, "%g", before);
    for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
        double *rate = (double *)(void *)((char *)&x.setup + rates[i].offset);
        double old = *rate;

        *rate *= 1.0 + 3.0 * prop_unit(rng);
        double after = step_of(&x);

        REQUIRE(after <= before * (1.0 + 1e-12), "%s: %.9g s became %.9g s",
                rates[i].name, before, after);
        *rate = old;
    }
    pt_split_fini(&x.split);
}

/* The slices of a step add up to it. */
static void slices(struct prop_rng *rng)
{
    struct scene x;
    struct pt_costs costs;
    struct pt_step s;

    random_scene(rng, &x);
    pt_costs_init(&x.setup, &x.layout, &costs);
    pt_step_time(&x.setup, &x.layout, &costs, &x.split, true, &s);
    double whole = s.compute_s + s.recompute_s + s.tp_s + s.cp_s + s.ep_s + s.pp_s +
                   s.bubble_s + s.dp_s + s.optimizer_s + s.offload_s + s.other_s;

    REQUIRE(fabs(whole / s.step_s - 1.0) < 1e-9, "%g of %g", whole, s.step_s);
    REQUIRE(s.compute_s > 0.0 && s.bubble_s >= 0.0 && s.imbalance_s >= -1e-12, "%g %g %g",
            s.compute_s, s.bubble_s, s.imbalance_s);
    pt_split_fini(&x.split);
}

int main(void)
{
    static const struct prop props[] = { { "better_hardware", better_hardware },
                                         { "slices", slices } };

    return prop_run(props, sizeof(props) / sizeof(props[0]), 10000);
}
