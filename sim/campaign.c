/* Failures come at exponential distances with mean M. Work is saved every T seconds at a
 * cost of C; a failure throws back to the last checkpoint and costs R.
 *
 * Young, "A first order approximation to the optimum checkpoint interval", 1974: T =
 * sqrt(2 C M). Daly, "A higher order estimate of the optimum checkpoint interval", 2006,
 * equation 37: T = sqrt(2 C M) (1 + sqrt(C / (2 M)) / 3 + C / (2 M) / 9) - C for C < 2 M,
 * else M. */
#include "config.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "sim/campaign.h"
#include "sim/random.h"

/* More failures than this in one run: it will not end. */
#define MAX_FAILURES 1000000u
/* Nodes under repair at once; with more, the oldest is what one waits for anyway. */
#define MAX_REPAIRS 256u

struct run {
    const struct sim_campaign *c;
    double now_s, fail_s; /* clock, next failure */
    double lost_s, checkpoint_s, restart_s, wait_s;
    uint64_t failures, seed;
    uint32_t spares, n_repairs;
    double back_s[MAX_REPAIRS]; /* when repaired nodes come back, in order */
};

static double exponential(struct run *r)
{
    double u = sim_random_unit(r->seed, r->failures, 0, 0);

    return -r->c->mtbf_s * log1p(-u);
}

static void node_back(struct run *r)
{
    memmove(r->back_s, r->back_s + 1, --r->n_repairs * sizeof(*r->back_s));
    r->spares++;
}

/* A node has failed now; the run goes on when another one stands in for it. */
static void replace_node(struct run *r)
{
    if (r->c->repair_s <= 0)
        return;
    while (r->n_repairs > 0 && r->back_s[0] <= r->now_s)
        node_back(r);
    if (r->n_repairs < MAX_REPAIRS)
        r->back_s[r->n_repairs++] = r->now_s + r->c->repair_s;
    if (r->spares == 0) {
        r->wait_s += r->back_s[0] - r->now_s;
        r->now_s = r->back_s[0];
        node_back(r);
    }
    r->spares--;
}

/* From a failure to the moment when training goes on; restarts can fail too. */
static bool restart(struct run *r)
{
    for (;;) {
        if (++r->failures > MAX_FAILURES)
            return false;
        replace_node(r);
        r->fail_s = r->now_s + exponential(r);
        if (r->fail_s >= r->now_s + r->c->restart_s)
            break;
        r->restart_s += r->fail_s - r->now_s;
        r->now_s = r->fail_s;
    }
    r->restart_s += r->c->restart_s;
    r->now_s += r->c->restart_s;
    return true;
}

/* One run from start to end; false when it makes no progress. */
static bool run_once(struct run *r, double interval_s)
{
    double done_s = 0, segment_s = interval_s + r->c->checkpoint_s;

    r->fail_s = r->c->mtbf_s > 0 ? exponential(r) : HUGE_VAL;
    for (;;) {
        double left_s = r->c->work_s - done_s;
        double saves = fmax(0, ceil(left_s / interval_s) - 1),
               until_s = r->fail_s - r->now_s;
        double end_s = left_s + saves * r->c->checkpoint_s, n;

        if (end_s <= until_s) {
            r->checkpoint_s += saves * r->c->checkpoint_s;
            r->now_s += end_s;
            return true;
        }
        n = floor(until_s / segment_s);
        done_s += n * interval_s;
        r->checkpoint_s += n * r->c->checkpoint_s;
        r->lost_s += until_s - n * segment_s;
        r->now_s = r->fail_s;
        if (!restart(r))
            return false;
    }
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* All seeds with one interval; the same failures for every interval. end_s: seeds of
 * them. */
static enum pt_status run_seeds(const struct sim_campaign *c, double interval_s,
                                double *end_s, struct sim_campaign_result *out,
                                struct pt_error *err)
{
    *out = (struct sim_campaign_result){ .interval_s = interval_s };
    for (uint32_t i = 0; i < c->seeds; i++) {
        struct run r = { .c = c, .seed = c->seed + i, .spares = c->spares };

        if (!run_once(&r, interval_s))
            return pt_fail(
                err, PT_CAPACITY, NULL, 0,
                "the run makes no progress: %u failures, one every %g s, against a "
                "restart of %g s and checkpoints every %g s that take %g s",
                MAX_FAILURES, c->mtbf_s, c->restart_s, interval_s, c->checkpoint_s);
        end_s[i] = r.now_s;
        out->mean_s += r.now_s / c->seeds;
        out->lost_s += r.lost_s / c->seeds;
        out->checkpoint_s += r.checkpoint_s / c->seeds;
        out->restart_s += r.restart_s / c->seeds;
        out->wait_s += r.wait_s / c->seeds;
        out->failures += (double)r.failures / c->seeds;
    }
    qsort(end_s, c->seeds, sizeof(*end_s), ascending);
    out->p10_s = end_s[(c->seeds - 1) / 10];
    out->p90_s = end_s[(c->seeds - 1) - (c->seeds - 1) / 10];
    out->goodput_frac = c->work_s / out->mean_s;
    return PT_OK;
}

static double young(const struct sim_campaign *c)
{
    return fmax(c->step_s, sqrt(2 * c->checkpoint_s * c->mtbf_s));
}

static double daly(const struct sim_campaign *c)
{
    double x = c->checkpoint_s / (2 * c->mtbf_s);

    if (x >= 1)
        return fmax(c->step_s, c->mtbf_s);
    return fmax(c->step_s,
                sqrt(2 * c->checkpoint_s * c->mtbf_s) * (1 + sqrt(x) / 3 + x / 9) -
                    c->checkpoint_s);
}

/* Intervals from an eighth to eight times Young's, beside the one in use; one that makes
 * no progress is none. */
static enum pt_status search(const struct sim_campaign *c, double *end_s,
                             struct sim_campaign_result *result, struct pt_error *err)
{
    for (int i = -24; i <= 24; i++) {
        double interval_s = fmax(c->step_s, result->young_s * exp2(i / 8.0));
        struct sim_campaign_result trial;
        enum pt_status st = run_seeds(c, interval_s, end_s, &trial, NULL);

        if (st == PT_CAPACITY)
            continue;
        if (st != PT_OK)
            return run_seeds(c, interval_s, end_s, &trial, err);
        if (trial.mean_s < result->best_s) {
            result->best_s = trial.mean_s;
            result->best_interval_s = interval_s;
        }
    }
    return PT_OK;
}

enum pt_status sim_campaign_run(const struct sim_campaign *campaign,
                                struct sim_campaign_result *result, struct pt_error *err)
{
    struct sim_campaign c = *campaign;
    double interval_s = c.interval_s, *end_s, young_s, daly_s;
    enum pt_status st;

    if (c.mtbf_s <= 0) /* nothing fails: one run tells all */
        c.seeds = 1;
    young_s = c.mtbf_s > 0 ? young(&c) : 0;
    daly_s = c.mtbf_s > 0 ? daly(&c) : 0;
    if (interval_s <= 0)
        interval_s =
            c.mtbf_s > 0 && c.checkpoint_s > 0 ? daly_s : fmax(c.work_s, c.step_s);
    if (c.mtbf_s > 0 && c.checkpoint_s <= 0 && campaign->interval_s <= 0)
        return pt_fail(
            err, PT_USAGE, NULL, 0,
            "--checkpoint-interval=auto needs --checkpoint-time: what costs nothing "
            "can be done after every step");
    if ((end_s = malloc(c.seeds * sizeof(*end_s))) == NULL)
        return pt_fail_memory(err);
    if ((st = run_seeds(&c, fmax(interval_s, c.step_s), end_s, result, err)))
        goto out;
    result->young_s = young_s;
    result->daly_s = daly_s;
    result->best_interval_s = result->interval_s;
    result->best_s = result->mean_s;
    if (c.mtbf_s > 0 && c.checkpoint_s > 0)
        st = search(&c, end_s, result, err);
out:
    free(end_s);
    return st;
}

enum pt_status sim_whole_run(struct sim_whole *whole, struct pt_error *err)
{
    struct sim_campaign c = whole->campaign;
    enum pt_status st = sim_campaign_run(&c, &whole->result, err);

    whole->n_spares = c.mtbf_s > 0 && c.repair_s > 0 ? SIM_SPARES_SHOWN : 0;
    for (c.spares = 0; st == PT_OK && c.spares < whole->n_spares; c.spares++) {
        struct sim_campaign_result r;

        if ((st = sim_campaign_run(&c, &r, err)) == PT_OK)
            whole->by_spares_s[c.spares] = r.mean_s;
    }
    return st;
}
