/* Schedules against theory: bubbles that have a closed form, published peaks, and for
 * every schedule and shape that it is complete, matched and free of deadlock. */
#include "config.h"

#include <math.h>

#include "libpt/schedule.h"
#include "tests/prop/prop.h"

struct built {
    struct pt_schedule_spec spec;
    struct pt_schedule sc;
    struct pt_schedule_figures f;
    double *peak, *span_s, *times;
};

static void build(struct prop_rng *rng, struct built *b, enum pt_schedule_kind kind,
                  uint32_t p, uint32_t v, uint32_t m, double forward_s, double input_s,
                  double weight_s, double comm_s)
{
    struct pt_error err = PT_ERROR_INIT;
    size_t n = (size_t)p * v;
    struct pt_schedule_times t;

    b->spec = (struct pt_schedule_spec){ .kind = kind,
                                         .pp = p,
                                         .vpp = v,
                                         .micro_batches = m,
                                         .forward_s = forward_s,
                                         .input_s = input_s,
                                         .weight_s = weight_s,
                                         .comm_s = comm_s };
    b->peak = malloc(2 * p * sizeof(double));
    b->times = malloc(3 * n * sizeof(double));
    REQUIRE(b->peak != NULL && b->times != NULL, "memory");
    b->span_s = b->peak + p;
    for (size_t i = 0; i < n; i++) {
        b->times[i] = forward_s / v;
        b->times[n + i] = input_s / v;
        b->times[2 * n + i] = weight_s / v;
    }
    t = (struct pt_schedule_times){ b->times, b->times + n, b->times + 2 * n, comm_s };
    REQUIRE(pt_schedule_pipeline(&b->spec, &b->sc, &err) == PT_OK,
            "%s p %u v %u m %u: %s", pt_schedule_name(kind), p, v, m, err.text);
    REQUIRE(pt_schedule_check(&b->sc, &err) == PT_OK, "%s p %u v %u m %u: %s",
            pt_schedule_name(kind), p, v, m, err.text);
    REQUIRE(pt_schedule_time(&b->sc, &t, &b->f, b->peak, b->span_s, &err) == PT_OK, "%s",
            err.text);
}

static void release(struct built *b)
{
    pt_schedule_fini(&b->sc);
    free(b->peak);
    free(b->times);
}

static uint32_t pick(struct prop_rng *rng, uint32_t lo, uint32_t hi)
{
    return lo + (uint32_t)prop_below(rng, hi - lo + 1);
}

/* Narayanan et al. 2021: (p - 1)/(v m + p - 1) of total, for any times, without
 * communication. */
static void uniform_bubble(struct prop_rng *rng)
{
    static const enum pt_schedule_kind kinds[] = { PT_SCHEDULE_GPIPE, PT_SCHEDULE_1F1B,
                                                   PT_SCHEDULE_INTERLEAVED };
    enum pt_schedule_kind kind = kinds[prop_below(rng, 3)];
    bool inter = kind == PT_SCHEDULE_INTERLEAVED;
    uint32_t p = pick(rng, inter ? 2 : 1, 24), v = inter ? pick(rng, 1, 6) : 1;
    uint32_t m = inter ? p * pick(rng, 1, 6) : pick(rng, 1, 96);
    double f = 0.001 + prop_unit(rng), i = 0.001 + prop_unit(rng), w = prop_unit(rng);
    double want = (p - 1.0) / ((double)v * m + p - 1.0),
           ideal = (p - 1.0) / ((double)v * m);
    struct built b;

    build(rng, &b, kind, p, v, m, f, i, w, 0);
    if (kind != PT_SCHEDULE_1F1B || m >= p) {
        REQUIRE(fabs(b.f.bubble_of_total - want) < 1e-12,
                "%s p %u v %u m %u: %.15g, want %.15g", pt_schedule_name(kind), p, v, m,
                b.f.bubble_of_total, want);
        REQUIRE(fabs(b.f.bubble_of_ideal - ideal) < 1e-12 * (1 + ideal),
                "%.15g, want %.15g", b.f.bubble_of_ideal, ideal);
    }
    REQUIRE(b.f.makespan_s >= b.f.span_s * (1 - 1e-12), "span beyond the step");
    release(&b);
}

/* Per-stage peaks: GPipe m; 1F1B min(p - s, m); interleaved (2(p - s - 1) + (v - 1)p +
 * 1)/v; ZB-H1 p and ZB-H2 2p - 1, at most m (Qi et al. 2023). */
static void published_peak(struct prop_rng *rng)
{
    uint32_t p = pick(rng, 2, 20), v = pick(rng, 1, 5), m = p * pick(rng, 1, 4);
    struct built b;

    build(rng, &b, PT_SCHEDULE_GPIPE, p, 1, m, 1, 1, 1, 0);
    for (uint32_t s = 0; s < p; s++)
        REQUIRE(fabs(b.peak[s] - m) < 1e-9, "gpipe stage %u holds %g", s, b.peak[s]);
    release(&b);
    build(rng, &b, PT_SCHEDULE_1F1B, p, 1, m, 1, 1, 1, 0.1);
    for (uint32_t s = 0; s < p; s++)
        REQUIRE(fabs(b.peak[s] - fmin(p - s, m)) < 1e-9, "1f1b stage %u holds %g", s,
                b.peak[s]);
    release(&b);
    build(rng, &b, PT_SCHEDULE_INTERLEAVED, p, v, m, 1, 1, 1, 0);
    for (uint32_t s = 0; s < p; s++)
        REQUIRE(fabs(b.peak[s] - fmin((2.0 * (p - s - 1) + (v - 1.0) * p + 1) / v, m)) <
                    1e-9,
                "interleaved p %u v %u m %u stage %u holds %g", p, v, m, s, b.peak[s]);
    release(&b);
    build(rng, &b, PT_SCHEDULE_ZB_H1, p, 1, m, 1, 1, 1, 0);
    for (uint32_t s = 0; s < p; s++)
        REQUIRE(fabs(b.peak[s] - fmin(p, m)) < 1e-9, "zb-h1 stage %u holds %g", s,
                b.peak[s]);
    release(&b);
    build(rng, &b, PT_SCHEDULE_ZB_H2, p, 1, m, 1, 1, 1, 0);
    for (uint32_t s = 0; s < p; s++)
        REQUIRE(fabs(b.peak[s] - fmin(2 * p - 1, m)) < 1e-9, "zb-h2 stage %u holds %g", s,
                b.peak[s]);
    release(&b);
}

/* ZB-H1 and ZB-H2 with equal times F, B >= W: bubbles (p - 1)(F + B - W) and
 * (p - 1)(F + B - 2W) (Qi et al. 2023, table 2), for m large enough. */
static void zero_bubble_forms(struct prop_rng *rng)
{
    uint32_t p = pick(rng, 2, 12), m = pick(rng, 3 * p, 5 * p);
    double t = 0.1 + prop_unit(rng);
    struct built b;

    build(rng, &b, PT_SCHEDULE_ZB_H1, p, 1, m, t, t, t, 0);
    REQUIRE(fabs(b.f.span_s - (3 * m + p - 1) * t) < 1e-9,
            "zb-h1 p %u m %u: span %.12g, t %g", p, m, b.f.span_s, t);
    release(&b);
    build(rng, &b, PT_SCHEDULE_ZB_H2, p, 1, m, t, t, t, 0);
    REQUIRE(fabs(b.f.span_s - 3 * m * t) < 1e-9, "zb-h2 p %u m %u: span %.12g, t %g", p,
            m, b.f.span_s, t);
    release(&b);
}

/* Any schedule, any shape, any times: valid, within its memory, never shorter than the
 * work of a stage or than the chain of one micro-batch. */
static void always_valid(struct prop_rng *rng)
{
    enum pt_schedule_kind kind =
        (enum pt_schedule_kind)pick(rng, PT_SCHEDULE_GPIPE, PT_SCHEDULE_ZB_AUTO);
    bool v_shaped = pt_schedule_is_v(kind), inter = kind == PT_SCHEDULE_INTERLEAVED;
    uint32_t p = pick(rng, v_shaped || inter ? 2 : 1, 14);
    uint32_t v = v_shaped ? 2 : inter ? pick(rng, 1, 4) : 1;
    uint32_t m = inter ? p * pick(rng, 1, 4) : pick(rng, 1, 40);
    double f = prop_unit(rng), i = prop_unit(rng), w = prop_unit(rng),
           c = prop_unit(rng) / 4;
    double chain = p * (f + i) + 2 * c * ((double)p * v - 1) + w / v;
    struct built b;

    build(rng, &b, kind, p, v, m, f, i, w, c);
    REQUIRE(b.f.span_s >= m * (f + i + w) * (1 - 1e-12), "shorter than the work");
    if (!v_shaped)
        REQUIRE(b.f.makespan_s >= chain * (1 - 1e-9),
                "%s: %g, shorter than one micro-batch's way %g", pt_schedule_name(kind),
                b.f.makespan_s, chain);
    if (kind == PT_SCHEDULE_ZB_V || kind == PT_SCHEDULE_ZB_AUTO)
        REQUIRE(b.f.peak_activations <= p + 1e-9, "holds %g", b.f.peak_activations);
    if (kind == PT_SCHEDULE_V_HALF)
        REQUIRE(b.f.peak_activations <= p / 2 + 1.5 + 1e-9, "p %u: %g", p,
                b.f.peak_activations);
    if (kind == PT_SCHEDULE_V_MIN)
        REQUIRE(b.f.peak_activations <= ceil(p / 3.0) + 2 + 1e-9, "p %u: %g", p,
                b.f.peak_activations);
    release(&b);
}

/* The limit of zb-auto is kept, and more room never hurts much. */
static void auto_keeps_its_limit(struct prop_rng *rng)
{
    uint32_t p = pick(rng, 1, 10), m = pick(rng, 1, 30);
    double n = pick(rng, 1, 2 * p + 1);
    struct pt_error err = PT_ERROR_INIT;
    struct pt_schedule_spec spec = { .kind = PT_SCHEDULE_ZB_AUTO,
                                     .pp = p,
                                     .vpp = 1,
                                     .micro_batches = m,
                                     .forward_s = 0.5 + prop_unit(rng),
                                     .input_s = 0.5 + prop_unit(rng),
                                     .weight_s = prop_unit(rng),
                                     .comm_s = prop_unit(rng) / 10,
                                     .max_in_flight = n };
    struct pt_schedule sc;

    REQUIRE(pt_schedule_pipeline(&spec, &sc, &err) == PT_OK, "%s", err.text);
    REQUIRE(pt_schedule_check(&sc, &err) == PT_OK, "%s", err.text);
    for (uint32_t s = 0; s < p; s++) {
        double held = 0, peak = 0;

        for (size_t i = 0; i < sc.stage[s].n; i++) {
            held += sc.stage[s].instr[i].kind == PT_FORWARD;
            held -= sc.stage[s].instr[i].kind == PT_BACKWARD_WEIGHT;
            peak = fmax(peak, held);
        }
        REQUIRE(peak <= n + 1e-9, "p %u m %u: stage %u holds %g of %g", p, m, s, peak, n);
    }
    pt_schedule_fini(&sc);
}

int main(void)
{
    static const struct prop props[] = {
        { "uniform bubble", uniform_bubble },
        { "published peak", published_peak },
        { "zero-bubble forms", zero_bubble_forms },
        { "always valid", always_valid },
        { "zb-auto keeps its limit", auto_keeps_its_limit },
    };

    return prop_run(props, sizeof(props) / sizeof(props[0]), 150);
}
