/* The engine against the schedule's own timeline, and max-min sharing against its
 * definition. */
#include "config.h"

#include <math.h>
#include <string.h>

#include "sim/engine.h"
#include "sim/links.h"
#include "tests/prop/prop.h"

static uint32_t pick(struct prop_rng *rng, uint32_t lo, uint32_t hi)
{
    return lo + (uint32_t)prop_below(rng, hi - lo + 1);
}

static void close_to(struct prop_rng *rng, const char *what, double got, double want)
{
    REQUIRE(fabs(got - want) <= 1e-9 * (1 + fabs(want)), "%s: %.15g, want %.15g", what,
            got, want);
}

/* Two independent evaluators of one list: by events, and by walking. */
static void engine_is_the_walk(struct prop_rng *rng)
{
    enum pt_schedule_kind kind =
        (enum pt_schedule_kind)pick(rng, PT_SCHEDULE_GPIPE, PT_SCHEDULE_ZB_AUTO);
    bool v_shaped = pt_schedule_is_v(kind), inter = kind == PT_SCHEDULE_INTERLEAVED;
    uint32_t p = pick(rng, v_shaped || inter ? 2 : 1, 9);
    uint32_t v = v_shaped ? 2 : inter ? pick(rng, 1, 3) : 1;
    uint32_t m = inter ? p * pick(rng, 1, 3) : pick(rng, 1, 24);
    struct pt_schedule_spec spec = {
        .kind = kind, .pp = p, .vpp = v, .micro_batches = m, .comm_s = prop_unit(rng) / 3
    };
    size_t n = (size_t)p * v;
    struct sim_chunk *chunk = calloc(n, sizeof(*chunk));
    struct sim_stage *stage = calloc(p, sizeof(*stage));
    double *t = calloc(3 * n, sizeof(*t)), peak[16];
    struct pt_schedule_times times = { t, t + n, t + 2 * n, spec.comm_s };
    struct pt_error err = PT_ERROR_INIT;
    struct pt_schedule_figures f;
    struct pt_schedule sc;
    struct sim_result res;

    REQUIRE(chunk != NULL && stage != NULL && t != NULL, "memory");
    REQUIRE(pt_schedule_pipeline(&spec, &sc, &err) == PT_OK, "%s", err.text);
    for (size_t i = 0; i < n; i++) {
        chunk[i].forward_s = t[i] = 0.1 + prop_unit(rng);
        chunk[i].input_s = t[n + i] = 0.1 + prop_unit(rng);
        chunk[i].weight_s = t[2 * n + i] = prop_unit(rng);
    }
    for (uint32_t s = 0; s < p; s++)
        stage[s].send_bytes = 100;
    struct sim_world world = { .schedule = &sc,
                               .per_stage = 1,
                               .gang = 1,
                               .dense = 1,
                               .stage = stage,
                               .chunk = chunk,
                               .message_s = spec.comm_s,
                               .no_sharing = true,
                               .steps = 1 };

    REQUIRE(pt_schedule_time(&sc, &times, &f, peak, NULL, &err) == PT_OK, "%s", err.text);
    REQUIRE(sim_run(&world, NULL, 0, &res, &err) == PT_OK, "%s", err.text);
    close_to(rng, "makespan", res.end_s, f.makespan_s);
    close_to(rng, "span", res.span_s, f.span_s);
    close_to(rng, "bubble", res.bubble_of_total, f.bubble_of_total);
    double sent = 0, received = 0;

    for (uint32_t s = 0; s < p; s++) {
        close_to(rng, "peak", res.rank[s].peak_held, peak[s] * v);
        REQUIRE(res.rank[s].held == 0, "stage %u still holds %u", s, res.rank[s].held);
        sent += res.rank[s].sent_bytes;
        received += res.rank[s].received_bytes;
    }
    /* every boundary between pieces on two stages is crossed by m activations and
     * gradients */
    uint32_t hops = 0;

    for (uint32_t k = 0; k + 1 < n; k++)
        hops += pt_schedule_piece_stage(&sc, k) != pt_schedule_piece_stage(&sc, k + 1);
    close_to(rng, "bytes", sent, 200.0 * m * hops);
    close_to(rng, "bytes received", received, sent);
    sim_result_fini(&res);
    pt_schedule_fini(&sc);
    free(chunk);
    free(stage);
    free(t);
}

/* A whole step of a random layout, every rank simulated and one rank for all that are
 * alike: the same to the last bit but for the order of sums. */
static void folding_changes_nothing(struct prop_rng *rng)
{
    static const enum pt_schedule_kind kinds[] = { PT_SCHEDULE_1F1B, PT_SCHEDULE_ZB_H1,
                                                   PT_SCHEDULE_GPIPE };
    uint32_t p = pick(rng, 2, 5), m = pick(rng, 1, 8), tp = 1u << prop_below(rng, 3);
    uint32_t dp = pick(rng, 1, 4);
    struct pt_layout layout = { .tp = tp,
                                .pp = p,
                                .vpp = 1,
                                .cp = 1,
                                .ep = 1,
                                .dp = dp,
                                .zero = (uint32_t)prop_below(rng, 4),
                                .schedule = kinds[prop_below(rng, 3)],
                                .micro_batch = 1 };
    struct pt_schedule_spec spec = { .micro_batches = m };
    struct sim_chunk chunk[8] = { { 0 } };
    struct sim_stage stage[8] = { { 0 } };
    struct pt_error err = PT_ERROR_INIT;
    struct pt_split split;
    struct pt_schedule sc;
    struct sim_result one, all;

    REQUIRE(pt_split_init(&split, p, 1, &err) == PT_OK, "%s", err.text);
    for (uint32_t s = 0; s < p; s++) {
        split.offload_frac[s] = prop_below(rng, 2) ? prop_unit(rng) : 0;
        chunk[s] = (struct sim_chunk){ .forward_s = prop_unit(rng),
                                       .input_s = prop_unit(rng),
                                       .weight_s = prop_unit(rng),
                                       .reduce_s = 3 * prop_unit(rng),
                                       .activation_bytes = 1 };
        stage[s] = (struct sim_stage){ .optimizer_s = prop_unit(rng),
                                       .out_s = prop_unit(rng),
                                       .host_s = prop_unit(rng),
                                       .in_s = prop_unit(rng),
                                       .static_bytes = 10,
                                       .send_bytes = 1 };
    }
    REQUIRE(pt_schedule_build(&spec, &layout, &split, true, &sc, &err) == PT_OK, "%s",
            err.text);
    REQUIRE(pt_schedule_check(&sc, &err) == PT_OK, "%s", err.text);
    struct sim_world world = { .schedule = &sc,
                               .per_stage = 1,
                               .gang = 1,
                               .dense = 1,
                               .stage = stage,
                               .chunk = chunk,
                               .message_s = prop_unit(rng) / 4,
                               .message_block_s = prop_unit(rng) / 8,
                               .reduce_hidden_frac = prop_unit(rng),
                               .norm_s = 0.01,
                               .tied_s = 0.1,
                               .step_s = 0.2,
                               .message_net = prop_below(rng, 2),
                               .reduce_net = prop_below(rng, 2),
                               .steps = pick(rng, 1, 3) };

    REQUIRE(sim_run(&world, NULL, 0, &one, &err) == PT_OK, "%s", err.text);
    world.per_stage = tp * dp;
    world.gang = tp;
    world.dense = tp;
    REQUIRE(sim_run(&world, NULL, 0, &all, &err) == PT_OK, "%s", err.text);
    close_to(rng, "end", all.end_s, one.end_s);
    close_to(rng, "span", all.span_s, one.span_s);
    for (uint32_t r = 0; r < all.ranks; r++) {
        const struct sim_rank_sum *a = &all.rank[r], *b = &one.rank[r / world.per_stage];

        close_to(rng, "busy", a->busy_s, b->busy_s);
        close_to(rng, "wait", a->wait_s, b->wait_s);
        close_to(rng, "reduction", a->reduce_wait_s, b->reduce_wait_s);
        close_to(rng, "peak", a->peak_bytes, b->peak_bytes);
        REQUIRE(a->held == 0, "rank %u still holds %u", r, a->held);
    }
    /* Jitter: the same seed twice, and another one. */
    double same;

    world.jitter_frac = 0.1;
    world.seed = rng->seed;
    sim_result_fini(&all);
    REQUIRE(sim_run(&world, NULL, 0, &all, &err) == PT_OK, "%s", err.text);
    same = all.end_s;
    sim_result_fini(&all);
    REQUIRE(sim_run(&world, NULL, 0, &all, &err) == PT_OK, "%s", err.text);
    REQUIRE(!(same < all.end_s) && !(same > all.end_s), "%.17g and %.17g", same,
            all.end_s);
    sim_result_fini(&all);
    world.seed++;
    REQUIRE(sim_run(&world, NULL, 0, &all, &err) == PT_OK, "%s", err.text);
    REQUIRE(same < all.end_s || same > all.end_s, "two seeds agree: %.17g", same);
    /* A straggler never makes the step shorter; where transfers share links it may,
     * because it can keep a reduction out of the way of a message. */
    double *slowdown = malloc(all.ranks * sizeof(*slowdown));

    REQUIRE(slowdown != NULL, "out of memory");
    world.jitter_frac = 0;
    world.no_sharing = true;
    sim_result_fini(&one);
    REQUIRE(sim_run(&world, NULL, 0, &one, &err) == PT_OK, "%s", err.text);
    for (uint32_t r = 0; r < all.ranks; r++)
        slowdown[r] = 1;
    slowdown[pick(rng, 0, all.ranks - 1)] = 1 + prop_unit(rng);
    world.slowdown = slowdown;
    sim_result_fini(&all);
    REQUIRE(sim_run(&world, NULL, 0, &all, &err) == PT_OK, "%s", err.text);
    REQUIRE(all.end_s >= one.end_s * (1 - 1e-9), "%g with a straggler, %g without",
            all.end_s, one.end_s);
    free(slowdown);
    sim_result_fini(&one);
    sim_result_fini(&all);
    pt_schedule_fini(&sc);
    pt_split_fini(&split);
}

/* Rates are max-min fair: measured as the work that remains when the first flow ends. */
static void sharing_is_max_min(struct prop_rng *rng)
{
    enum { LINKS = 5, FLOWS = 7 };
    double capacity[LINKS], rate[FLOWS], left[LINKS];
    uint32_t link[FLOWS][SIM_FLOW_LINKS], n = pick(rng, 1, FLOWS);
    struct sim_evq q = SIM_EVQ_INIT;
    struct pt_error err = PT_ERROR_INIT;
    struct sim_links *links;
    struct sim_event ev;
    double work = 1000, now = 0, done[FLOWS] = { 0 };
    bool fixed[FLOWS] = { false }, failed = false;

    for (unsigned i = 0; i < LINKS; i++)
        capacity[i] = 0.2 + 1.5 * prop_unit(rng);
    REQUIRE(sim_links_new(LINKS, capacity, &q, 7, &links, &err) == PT_OK, "%s", err.text);
    for (uint32_t f = 0; f < n; f++) {
        for (unsigned k = 0; k < SIM_FLOW_LINKS; k++)
            link[f][k] = SIM_NO_LINK;
        link[f][0] = pick(rng, 0, LINKS - 1);
        if (prop_below(rng, 2))
            link[f][1] = (link[f][0] + pick(rng, 1, LINKS - 1)) % LINKS;
        REQUIRE(sim_links_start(links, 0, work, link[f], f), "memory");
    }
    /* the definition, by brute force */
    memcpy(left, capacity, sizeof(left));
    for (uint32_t done_flows = 0; done_flows < n;) {
        double share = 1;
        uint32_t full = LINKS;

        for (uint32_t i = 0; i < LINKS; i++) {
            uint32_t users = 0;

            for (uint32_t f = 0; f < n; f++)
                users += !fixed[f] && (link[f][0] == i || link[f][1] == i);
            if (users > 0 && left[i] / users < share) {
                share = left[i] / users;
                full = i;
            }
        }
        for (uint32_t f = 0; f < n; f++)
            if (!fixed[f] &&
                (full == LINKS || link[f][0] == full || link[f][1] == full)) {
                fixed[f] = true;
                rate[f] = share;
                done_flows++;
                for (unsigned k = 0; k < 2; k++)
                    if (link[f][k] != SIM_NO_LINK)
                        left[link[f][k]] -= share;
            }
    }
    while (sim_evq_pop(&q, &ev)) {
        uint64_t tag;

        now = ev.time_s;
        if (sim_links_end(links, &ev, &tag, &failed) && done[tag] <= 0)
            done[tag] = now;
    }
    double first = HUGE_VAL, fastest = 0;

    for (uint32_t f = 0; f < n; f++) {
        first = fmin(first, done[f]);
        fastest = fmax(fastest, rate[f]);
        REQUIRE(done[f] > 0, "flow %u never ends", f);
    }
    REQUIRE(!failed, "memory");
    close_to(rng, "first end", first, work / fastest);
    for (uint32_t f = 0; f < n;
         f++) /* nobody ends before its first rate allows by slowing */
        REQUIRE(done[f] >= work * (1 - 1e-9), "flow %u ends at %g", f, done[f]);
    sim_links_free(links);
    sim_evq_fini(&q);
}

int main(void)
{
    static const struct prop props[] = {
        { "engine is the walk", engine_is_the_walk },
        { "folding changes nothing", folding_changes_nothing },
        { "sharing is max-min", sharing_is_max_min },
    };

    return prop_run(props, sizeof(props) / sizeof(props[0]), 300);
}
