#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libpt/units.h"
#include "planner/capacity.h"
#include "planner/explain.h"
#include "planner/report.h"
#include "planner/run.h"

#define MOST_GPUS    65536u
#define REPORT_PLANS 8u

/* --- --gpus auto and --params max: a number found, then put in the option's place --- */

/* Nothing fits: a record without a layout where one is asked for. */
static enum pt_status unresolved(const struct planner_request *r, FILE *out,
                                 struct pt_error *err)
{
    const struct pt_layout alone = { 1, 1, 1, 1, 1, 1, .micro_batch = 1 };
    struct planner_result none = { .shortfall = { .closest = alone } };
    char text[sizeof(err->text)];
    enum pt_status st = PT_OK;

    snprintf(text, sizeof(text), "%s", err->text);
    if (r->format == PLANNER_CSV)
        st = planner_write_csv(out, &r->setup, &none, text, err);
    else if (r->format == PLANNER_JSON)
        st = planner_write_json(out, &r->setup, &none, text, err);
    return st == PT_OK ? PT_CAPACITY : st;
}

/* Whether the values contradict each other whatever the number of GPUs. */
static enum pt_status contradiction(const struct planner_request *r, struct pt_error *err)
{
    const struct planner_options options = { .top = 1, .time_limit_s = 1, .gap = 0.999 };
    struct pt_setup setup = r->setup;
    struct planner_space space = r->space;
    struct pt_error why = PT_ERROR_INIT;
    struct planner_result result;
    enum pt_status st;

    memset(&result, 0, sizeof(result));
    setup.cluster.gpus = MOST_GPUS;
    space.idle_gpus = true;
    st = planner_search(&setup, &space, &options, &result, &why);
    planner_result_fini(&result);
    return st == PT_USAGE ? pt_fail(err, st, NULL, 0, "%s", why.text) : PT_OK;
}

static enum pt_status find_gpus(struct planner_given *given, struct planner_request *r,
                                char *text, size_t size, struct pt_error *err)
{
    uint32_t gpus = planner_smallest_gpus(&r->setup, &r->space, 1, MOST_GPUS, MOST_GPUS);

    if (gpus == 0 && contradiction(r, err) != PT_OK)
        return PT_USAGE;
    if (gpus == 0)
        return pt_fail(err, PT_CAPACITY, NULL, 0,
                       "--gpus auto: no number of GPUs up to %u fits", MOST_GPUS);
    snprintf(text, size, "%" PRIu32, gpus);
    given->gpus = text;
    return PT_OK;
}

static bool params_fit(const struct planner_given *given, const char *profile_dir,
                       uint64_t params)
{
    struct planner_given with = *given;
    struct pt_error ignored = PT_ERROR_INIT;
    struct planner_request r;
    char text[32];
    bool fits;

    snprintf(text, sizeof(text), "%" PRIu64, params);
    with.params = text;
    fits = planner_request_init(&r, &with, profile_dir, &ignored) == PT_OK &&
           planner_try(&r.setup, &r.space).fits;
    planner_request_fini(&r);
    return fits;
}

/* Every trial is a request of its own: a larger model brings its own global batch. */
static enum pt_status find_params(struct planner_given *given, const char *profile_dir,
                                  char *text, size_t size, struct pt_error *err)
{
    double lo = 1e7, hi = 1e14;

    if (!params_fit(given, profile_dir, (uint64_t)lo))
        return pt_fail(err, PT_CAPACITY, NULL, 0,
                       "--params max: not even 10M parameters fit here");
    while (hi / lo > 1.005) {
        double mid = sqrt(lo * hi);

        if (params_fit(given, profile_dir, (uint64_t)mid))
            lo = mid;
        else
            hi = mid;
    }
    snprintf(text, size, "%" PRIu64, (uint64_t)lo);
    given->params = text;
    return PT_OK;
}

static enum pt_status resolve(struct planner_given *given, struct planner_request *r,
                              const char *profile_dir, char *text, size_t size,
                              struct pt_error *err)
{
    enum pt_status st = PT_OK;
    bool gpus = r->gpus_auto, params = r->params_max;

    if (!gpus && !params)
        return PT_OK;
    st = gpus ? find_gpus(given, r, text, size, err)
              : find_params(given, profile_dir, text, size, err);
    if (st != PT_OK)
        return st;
    planner_request_fini(r);
    st = planner_request_init(r, given, profile_dir, err);
    if (st == PT_OK && gpus)
        planner_note(&r->assumed, "%s GPUs are the fewest that fit", text);
    if (st == PT_OK && params) {
        struct pt_params most;
        char count[32], asked[32];

        /* The rule's shape misses the size asked for by some per cent: both are said. */
        pt_model_params(&r->setup.model, &most);
        planner_note(&r->assumed, "%s parameters are the most that fit (--params %s)",
                     pt_format_count(count, (double)most.total),
                     pt_format_count(asked, strtod(text, NULL)));
    }
    return st;
}

/* --- outputs --- */

/* Offloading is off unless asked for. Where the plan pays for memory, with recomputation
 * or by sharding more than the optimizer, or is nearly full, it is worth a look. */
static void hint_offload(const struct planner_request *r, const struct pt_plan *best,
                         struct planner_notes *hints)
{
    struct planner_space space = r->space;
    struct planner_options options = r->search;
    struct pt_error ignored = PT_ERROR_INIT;
    struct planner_result result;

    memset(&result, 0, sizeof(result));
    if (space.offload ||
        (best->layout.recompute == PT_RECOMPUTE_NONE && best->layout.zero < 2 &&
         best->memory.device_bytes < 0.97 * best->memory.limit_bytes))
        return;
    space.offload = true;
    space.offload_frac = -1;
    options.top = 1;
    (void)planner_search(&r->setup, &space, &options, &result, &ignored);
    if (result.n > 0 && result.plan[0].step.step_s < 0.995 * best->step.step_s)
        planner_note(
            hints,
            "--offload auto would take %.1f%% less time (%.0f%% of the optimizer on "
            "the host)",
            100 * (1 - result.plan[0].step.step_s / best->step.step_s),
            100 * planner_offload_share(&result.plan[0].split));
    planner_result_fini(&result);
}

/* Few micro-batches for many stages are allowed; what sets them is named. */
static void hint_bubble(const struct pt_plan *best, struct planner_notes *hints)
{
    const struct pt_layout *l = &best->layout;
    uint32_t m = pt_micro_batches(&best->setup.job, l);

    if (l->pp == 1 || best->step.bubble_of_total < 0.25)
        return;
    if (l->schedule == PT_SCHEDULE_1F1B || l->schedule == PT_SCHEDULE_GPIPE)
        planner_note(hints,
                     "the bubble of %u micro-batches on %u stages is "
                     "(%u-1)/(%u+%u-1) = %.0f%% of total when all are equal",
                     m, l->pp, l->pp, m, l->pp, 100.0 * (l->pp - 1) / (m + l->pp - 1));
    planner_note(hints,
                 "more micro-batches than %u come from a larger --global-batch, a "
                 "smaller --micro-batch or fewer replicas (--dp); fewer stages from --pp",
                 m);
}

static enum pt_status outputs(const struct planner_request *r, planner_verifier *verifier,
                              struct planner_result *result, FILE *out, FILE *notes,
                              struct pt_error *err)
{
    struct planner_verification verification = { .n = 0 };
    uint32_t found = result->n, listed = r->search.top;
    struct planner_notes hints = { 0 };
    const struct planner_report report = { r->report, &r->setup,   &r->space, &r->search,
                                           result,    &r->assumed, &hints,    notes };
    enum pt_status st = PT_OK;

    if (verifier != NULL &&
        (st = planner_verify(verifier, r->verify, result, &verification, &hints, err)))
        return st;
    if (r->format == PLANNER_TEXT) {
        hint_bubble(&result->plan[0], &hints);
        hint_offload(r, &result->plan[0], &hints);
    }
    if (r->report != NULL && (st = planner_report_write(&report, err)))
        return st;
    if (r->output != NULL && (st = pt_plan_write(r->output, &result->plan[0], err)))
        return st;
    if (r->output != NULL && !strcmp(r->output, "-"))
        return PT_OK; /* standard output holds the plan, and nothing else */
    if (r->format == PLANNER_TEXT) {
        planner_summary(out, &r->setup, result, &r->assumed, &hints);
        result->n = listed < found ? listed : found;
        if (result->n > 1)
            planner_top_table(out, result);
        planner_verify_table(out, result, &verification);
        if (r->explain)
            planner_explain(out, &r->setup, &r->space, &r->search, result);
    } else {
        result->n = listed < found ? listed : found;
        st = r->format == PLANNER_CSV
                 ? planner_write_csv(out, &r->setup, result, "", err)
                 : planner_write_json(out, &r->setup, result, "", err);
    }
    result->n = found;
    return st;
}

/* Exit 3: the sentence in err, what fits on `notes`, a record on `out` when asked for. */
static enum pt_status infeasible(const struct planner_request *r,
                                 const struct planner_result *result, FILE *out,
                                 struct pt_error *err)
{
    struct planner_capacity capacity;
    char text[sizeof(err->text)];
    enum pt_status st = PT_OK;

    planner_capacity_init(&capacity, &r->setup, &r->space, &result->shortfall);
    planner_capacity_text(&capacity, false, text, sizeof(text));
    if (r->format == PLANNER_CSV)
        st = planner_write_csv(out, &r->setup, result, text, err);
    else if (r->format == PLANNER_JSON)
        st = planner_write_json(out, &r->setup, result, text, err);
    if (st != PT_OK)
        return st;
    planner_capacity_text(&capacity, true, text, sizeof(text));
    return pt_fail(err, PT_CAPACITY, NULL, 0, "%s", text);
}

static enum pt_status search(struct planner_request *r, planner_verifier *verifier,
                             struct planner_result *result, FILE *out, FILE *notes,
                             struct pt_error *err)
{
    struct planner_options options = r->search;
    struct pt_error why = PT_ERROR_INIT;
    uint32_t at_least = r->report != NULL ? REPORT_PLANS : 2; /* the runner-up is named */
    enum pt_status st, written;

    if (options.top < at_least)
        options.top = at_least;
    if (options.top < r->verify)
        options.top = r->verify;
    st = planner_search(&r->setup, &r->space, &options, result, &why);
    for (uint32_t i = 0; i < result->n; i++)
        snprintf(result->plan[i].calibration, sizeof(result->plan[i].calibration), "%s",
                 r->calibration_text);
    if (st == PT_CAPACITY)
        return infeasible(r, result, out, err);
    if (result->n == 0)
        return pt_fail(err, st, why.where[0] != '\0' ? why.where : NULL, why.line, "%s",
                       why.text);
    written = outputs(r, verifier, result, out, notes, err);
    if (written != PT_OK || st == PT_OK)
        return written;
    return pt_fail(err, st, NULL, 0,
                   "%s; the best so far is printed, and the best possible "
                   "is at most %.1f%% faster",
                   why.text, 100 * result->stats.gap);
}

/* Two things cannot have standard output at once. */
static enum pt_status check_outputs(const struct planner_request *r, struct pt_error *err)
{
    bool plan_there = r->output != NULL && !strcmp(r->output, "-");

    if (r->explain && r->format != PLANNER_TEXT)
        return pt_fail(err, PT_USAGE, NULL, 0,
                       "--explain is text; it cannot go with --format csv or json");
    if (plan_there && (r->format != PLANNER_TEXT || r->explain || r->search.top > 1))
        return pt_fail(err, PT_USAGE, NULL, 0,
                       "-o - writes the plan to standard output; --format, --explain and "
                       "--top need a file there, such as -o plan.json");
    return PT_OK;
}

enum pt_status planner_run(const struct planner_given *asked, const char *profile_dir,
                           planner_verifier *verifier, FILE *out, FILE *notes,
                           struct pt_error *err)
{
    struct planner_given given = *asked;
    struct planner_request request;
    struct planner_result result;
    char text[32];
    enum pt_status st;

    memset(&result, 0, sizeof(result));
    st = planner_request_init(&request, &given, profile_dir, err);
    if (st == PT_OK)
        st = check_outputs(&request, err);
    if (st == PT_OK)
        st = resolve(&given, &request, profile_dir, text, sizeof(text), err);
    if (st == PT_CAPACITY)
        st = unresolved(&request, out, err);
    if (st == PT_OK) {
        for (unsigned i = 0; notes != NULL && i < request.warnings.n; i++)
            fprintf(notes, "ptplan: warning: %s\n", request.warnings.text[i]);
        st = search(&request, verifier, &result, out, notes, err);
    }
    planner_result_fini(&result);
    planner_request_fini(&request);
    return st;
}
