/* Events a second of the simulator's engine, on one core: the queue alone (the hold
 * model: every event that fires plans another one), transfers that share links, and whole
 * steps. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "sim/engine.h"
#include "sim/links.h"
#include "sim/random.h"

static double cpu_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void stop(const char *why)
{
    printf("%s\n", why);
    exit(EXIT_FAILURE);
}

static void show(const char *what, double events, double seconds)
{
    printf("%-44s %6.1f M events/s (%.0f in %.3f s)\n", what, events / seconds / 1e6,
           events, seconds);
}

static void queue(uint32_t live, uint32_t n)
{
    struct sim_evq q = SIM_EVQ_INIT;
    struct sim_event ev;
    double start;
    char what[64];

    for (uint32_t i = 0; i < live; i++)
        if (!sim_evq_push(&q, sim_random_unit(1, i, 0, 0), 0, i, 0))
            stop("out of memory");
    start = cpu_s();
    for (uint32_t i = 0; i < n; i++) {
        if (!sim_evq_pop(&q, &ev) ||
            !sim_evq_push(&q, ev.time_s + (double)(ev.seq * 2654435761u % 1000003) * 1e-6,
                          0, ev.who, 0))
            stop("the queue is empty");
    }
    snprintf(what, sizeof(what), "queue, %u live events", live);
    show(what, n, cpu_s() - start);
    sim_evq_fini(&q);
}

/* Pairs of flows that meet on a link: every start and every end changes the other's rate.
 */
static void links(uint32_t n)
{
    enum { LINKS = 256 };
    double capacity[LINKS], start;
    struct sim_evq q = SIM_EVQ_INIT;
    struct sim_links *l;
    struct sim_event ev;
    uint32_t begun = 0, events = 0;
    bool failed = false;

    for (unsigned i = 0; i < LINKS; i++)
        capacity[i] = 1;
    if (sim_links_new(LINKS, capacity, &q, 0, &l, NULL))
        stop("out of memory");
    start = cpu_s();
    for (; begun < 2 * LINKS; begun++) {
        uint32_t link[SIM_FLOW_LINKS] = { begun % LINKS, SIM_NO_LINK, SIM_NO_LINK,
                                          SIM_NO_LINK };

        if (!sim_links_start(l, 0, 1 + sim_random_unit(1, begun, 0, 0), link,
                             begun % LINKS))
            stop("out of memory");
    }
    while (sim_evq_pop(&q, &ev)) {
        uint64_t tag;

        events++;
        if (!sim_links_end(l, &ev, &tag, &failed) || begun++ >= n)
            continue;
        uint32_t link[SIM_FLOW_LINKS] = { (uint32_t)tag, SIM_NO_LINK, SIM_NO_LINK,
                                          SIM_NO_LINK };

        if (!sim_links_start(l, ev.time_s, 1 + sim_random_unit(1, begun, 0, 0), link,
                             tag))
            stop("out of memory");
    }
    show("two flows on each of 256 links", events, cpu_s() - start);
    sim_links_free(l);
    sim_evq_fini(&q);
}

static void steps(uint32_t p, uint32_t m, uint32_t per_stage, uint32_t n_steps,
                  bool sharing)
{
    struct pt_schedule_spec spec = {
        .kind = PT_SCHEDULE_1F1B, .pp = p, .vpp = 1, .micro_batches = m
    };
    struct sim_stage *stage = calloc(p, sizeof(*stage));
    struct sim_chunk *chunk = calloc(p, sizeof(*chunk));
    struct pt_error err = PT_ERROR_INIT;
    struct sim_result res;
    struct pt_schedule sc;
    double start;
    char what[96];

    if (stage == NULL || chunk == NULL || pt_schedule_pipeline(&spec, &sc, &err))
        stop("out of memory");
    for (uint32_t s = 0; s < p; s++)
        chunk[s] =
            (struct sim_chunk){ .forward_s = 0.010, .input_s = 0.012, .weight_s = 0.008 };
    struct sim_world world = { .schedule = &sc,
                               .per_stage = per_stage,
                               .gang = 1,
                               .dense = per_stage,
                               .stage = stage,
                               .chunk = chunk,
                               .message_s = 0.001,
                               .no_sharing = !sharing,
                               .steps = n_steps };

    start = cpu_s();
    if (sim_run(&world, NULL, 0, &res, &err))
        stop(err.text);
    snprintf(what, sizeof(what), "%u stages x %u ranks x %u micro-batches x %u", p,
             per_stage, m, n_steps);
    show(what, (double)res.events, cpu_s() - start);
    sim_result_fini(&res);
    pt_schedule_fini(&sc);
    free(stage);
    free(chunk);
}

int main(void)
{
    struct rusage before, after;

    queue(1000, 5000000);
    queue(100000, 3000000);
    links(500000);
    steps(8, 64, 1, 200, true);
    steps(64, 512, 1, 4, true);
    steps(16, 128, 128, 1, true);
    getrusage(RUSAGE_SELF, &before);
    steps(8, 64, 1, 2000, true);
    getrusage(RUSAGE_SELF, &after);
    printf("memory of a run ten times as long: %+ld KiB\n",
           after.ru_maxrss - before.ru_maxrss);
    return 0;
}
