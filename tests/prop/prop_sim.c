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
        { "sharing is max-min", sharing_is_max_min },
    };

    return prop_run(props, sizeof(props) / sizeof(props[0]), 300);
}
