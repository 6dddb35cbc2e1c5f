/* ptsim: parses, calls, prints. */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libpt/cli.h"
#include "libpt/units.h"
#include "sim/campaign.h"
#include "sim/factors.h"
#include "sim/observe.h"
#include "sim/pure.h"
#include "sim/report.h"

static uint64_t pp, micro_batches, vpp, steps, seed, tokens, spare_nodes, seeds;
static double mtbf, checkpoint_time, restart_time, repair_time;
static const char *checkpoint_interval;
static bool tokens_given;
static double forward_s, backward_s, weight_s, comm_s, max_in_flight, weight_frac, jitter;
static const char *schedule, *times_file[3], *format, *straggler, *degrade;
static const char *trace_path, *gantt_path, *memory_path, *compare_path;
static bool pp_given, micro_batches_given, schedule_given, forward_given, vpp_given,
    backward_given, unfold, csv;

static const struct pt_opt opts[] = {
    { .type = PT_OPT_GROUP, .long_name = "The run" },
    { PT_OPT_U64, 0, "steps", "N", "1", "training steps to simulate", &steps, .lo = 1,
      .hi = 1e6 },
    { PT_OPT_FLAG, 0, "unfold", NULL, NULL,
      "simulate every rank, also those that are alike", &unfold },
    { PT_OPT_FRACTION, 0, "jitter", "FRAC", "0", "standard deviation of a pass's time",
      &jitter },
    { PT_OPT_U64, 0, "seed", "N", "1", "seed of everything random", &seed },
    { PT_OPT_STR, 0, "straggler", "RANK", NULL,
      "rank=N,slowdown=X: its passes take X times as long", &straggler },
    { PT_OPT_STR, 0, "link-degrade", "RANK", NULL,
      "rank=N,slowdown=X: its links have 1/X of their bandwidth", &degrade },
    { .type = PT_OPT_GROUP, .long_name = "A whole run" },
    { PT_OPT_COUNT, 0, "tokens", "COUNT", NULL, "tokens to train on", &tokens,
      .given = &tokens_given },
    { PT_OPT_SECONDS, 0, "mtbf", "TIME", "0",
      "mean time between failures of the job; 0: none", &mtbf },
    { PT_OPT_SECONDS, 0, "checkpoint-time", "TIME", "0",
      "how long a checkpoint stops the training", &checkpoint_time },
    { PT_OPT_STR, 0, "checkpoint-interval", "TIME", "auto",
      "work between two checkpoints; auto: Daly's best", &checkpoint_interval },
    { PT_OPT_SECONDS, 0, "restart-time", "TIME", "10m",
      "from a failure until training goes on", &restart_time },
    { PT_OPT_SECONDS, 0, "repair-time", "TIME", "0",
      "until a failed node comes back; 0: at once", &repair_time },
    { PT_OPT_U64, 0, "spare-nodes", "N", "0", "nodes that stand by", &spare_nodes,
      .lo = 0, .hi = 1000 },
    { PT_OPT_U64, 0, "seeds", "N", "200", "runs to simulate, for the range", &seeds,
      .lo = 1, .hi = 100000 },
    { .type = PT_OPT_GROUP, .long_name = "A schedule alone, without a plan" },
    { PT_OPT_U64, 0, "pp", "N", NULL, "pipeline stages", &pp, .given = &pp_given, .lo = 1,
      .hi = PT_MAX_PP },
    { PT_OPT_U64, 0, "micro-batches", "N", NULL, "micro-batches per step", &micro_batches,
      .given = &micro_batches_given, .lo = 1, .hi = 1e6 },
    { PT_OPT_STR, 0, "schedule", "NAME", NULL,
      "gpipe, 1f1b, interleaved, zb-h1, zb-h2, zb-v, v-half, v-min or zb-auto", &schedule,
      .given = &schedule_given },
    { PT_OPT_U64, 0, "vpp", "N", NULL, "chunks per stage (zb-v, v-half, v-min: 2)", &vpp,
      .given = &vpp_given, .lo = 1, .hi = PT_MAX_VPP },
    { PT_OPT_SECONDS, 0, "forward", "TIME", NULL, "forward of a stage and micro-batch",
      &forward_s, .given = &forward_given },
    { PT_OPT_SECONDS, 0, "backward", "TIME", NULL, "backward, input part", &backward_s,
      .given = &backward_given },
    { PT_OPT_SECONDS, 0, "weight", "TIME", "0", "backward, weight part", &weight_s },
    { PT_OPT_SECONDS, 0, "comm", "TIME", "0", "delay of a message at its receiver",
      &comm_s },
    { PT_OPT_STR, 0, "forward-times", "FILE", NULL,
      "times per stage: forward[,backward[,weight]]", &times_file[0] },
    { PT_OPT_STR, 0, "backward-times", "FILE", NULL, "times per stage: backward[,weight]",
      &times_file[1] },
    { PT_OPT_STR, 0, "weight-times", "FILE", NULL, "times per stage: weight",
      &times_file[2] },
    { PT_OPT_NUMBER, 0, "max-in-flight", "N", "0",
      "zb-auto: stage activations to hold at most; 0: pp", &max_in_flight, .lo = 0,
      .hi = 1e6 },
    { PT_OPT_FRACTION, 0, "weight-activations", "FRAC", "0.5",
      "zb-auto: part of an activation that waits for the weight part", &weight_frac },
    { .type = PT_OPT_GROUP, .long_name = "Output" },
    { PT_OPT_STR, 0, "format", "FORMAT", "text", "text, csv or json", &format,
      .choices = "text|csv|json" },
    { PT_OPT_STR, 0, "trace", "FILE", NULL, "timeline for Perfetto or chrome://tracing",
      &trace_path },
    { PT_OPT_STR, 0, "gantt", "FILE", NULL, "picture of the first step, .svg or .png",
      &gantt_path },
    { PT_OPT_FLAG, 0, "csv", NULL, NULL, "a row per rank (stage) as CSV, nothing else",
      &csv },
    { PT_OPT_STR, 0, "memory-timeline", "FILE", NULL,
      "memory of every rank over time, CSV", &memory_path },
    { PT_OPT_STR, 0, "compare", "TRACE", NULL,
      "a measured trace: simulated against it, per kind of instruction", &compare_path },
};

/* Everything that listens to a run, by the options. */
struct listeners {
    struct sim_observer observer[4];
    size_t n;
    struct pt_trace *trace;
    struct pt_outfile memory;
    bool memory_open;
    struct sim_gantt gantt;
    struct pt_trace_sums simulated, measured;
};

static enum pt_status listen(struct listeners *l, const struct sim_world *world,
                             struct pt_error *err)
{
    enum pt_status st;

    if (trace_path != NULL) {
        if ((st = pt_trace_open(trace_path, "ptsim", &l->trace, err)))
            return st;
        for (uint32_t r = 0; r < sim_world_ranks(world); r++)
            pt_trace_rank(l->trace, r, r / world->per_stage);
        l->observer[l->n++] = sim_observe_trace(l->trace);
    }
    if (memory_path != NULL) {
        if ((st = pt_outfile_open(memory_path, &l->memory, err)))
            return st;
        l->memory_open = true;
        l->observer[l->n++] = sim_observe_memory(l->memory.f);
    }
    if (gantt_path != NULL) {
        sim_gantt_init(&l->gantt, world);
        l->observer[l->n++] = sim_observe_gantt(&l->gantt);
    }
    if (compare_path != NULL)
        l->observer[l->n++] = sim_observe_sums(&l->simulated);
    return PT_OK;
}

static enum pt_status finish(struct listeners *l, const char *title, struct pt_error *err)
{
    enum pt_status st = PT_OK;

    if (l->trace != NULL) {
        st = pt_trace_close(l->trace, err);
        l->trace = NULL;
    }
    if (st == PT_OK && l->memory_open)
        st = pt_outfile_commit(&l->memory, err);
    if (st == PT_OK && gantt_path != NULL)
        st = sim_gantt_draw(&l->gantt, title, gantt_path, err);
    return st;
}

static void release(struct listeners *l)
{
    pt_trace_discard(l->trace);
    if (l->memory_open)
        pt_outfile_discard(&l->memory);
    sim_gantt_fini(&l->gantt);
}

/* ---- a plan ---- */

static enum pt_status report(const struct pt_plan *plan, const struct sim_model *model,
                             const struct sim_result *result,
                             const struct sim_whole *whole, const struct listeners *l,
                             struct pt_error *err)
{
    if (csv)
        sim_report_ranks(model, result, stdout);
    else if (!strcmp(format, "json"))
        return sim_report_json(plan, model, result, whole, stdout, err);
    else if (!strcmp(format, "csv"))
        sim_report_csv(plan, model, result, whole, stdout);
    else
        sim_report_text(plan, model, result, whole, stdout);
    if (compare_path != NULL && !csv && !strcmp(format, "text"))
        sim_report_compare(&l->simulated, &l->measured, stdout);
    return PT_OK;
}

/* *any: a whole run was asked for. */
static enum pt_status run_whole(const struct pt_plan *plan, double step_s, bool *any,
                                struct sim_whole *whole, struct pt_error *err)
{
    struct sim_campaign *c = &whole->campaign;
    double batch = (double)plan->setup.job.global_batch * plan->setup.job.seq;
    enum pt_status st;

    *whole = (struct sim_whole){
        .campaign = { .step_s = step_s,
                      .mtbf_s = mtbf,
                      .checkpoint_s = checkpoint_time,
                      .restart_s = restart_time,
                      .repair_s = repair_time,
                      .spares = (uint32_t)spare_nodes,
                      .seed = seed,
                      .seeds = (uint32_t)seeds },
        .tokens = tokens_given ? (double)tokens : plan->setup.job.tokens,
    };
    *any = whole->tokens > 0;
    if (!*any)
        return mtbf > 0
                   ? pt_fail(err, PT_USAGE, NULL, 0,
                             "--mtbf needs --tokens: the plan does not say how long the "
                             "whole run is")
                   : PT_OK;
    c->work_s = ceil(whole->tokens / batch) * step_s;
    if (strcmp(checkpoint_interval, "auto") &&
        (st = pt_parse_seconds("--checkpoint-interval", checkpoint_interval,
                               &c->interval_s, err)))
        return st;
    return sim_whole_run(whole, err);
}

static enum pt_status run_plan(const char *path, struct pt_error *err)
{
    struct sim_options options = {
        .steps = (uint32_t)steps, .unfold = unfold, .jitter_frac = jitter, .seed = seed
    };
    struct sim_factors stragglers, degraded;
    struct listeners l = { .n = 0 };
    struct sim_model model = { .folded = true };
    struct sim_result result = { .ranks = 0 };
    struct sim_whole whole;
    struct pt_plan plan;
    char title[256];
    bool any;
    enum pt_status st;

    pt_plan_init(&plan);
    if ((st = sim_factors_parse("--straggler", straggler, &stragglers, err)) ||
        (st = sim_factors_parse("--link-degrade", degrade, &degraded, err)) ||
        (st = pt_plan_read(path, &plan, stderr, err)) ||
        (plan.step.step_s <= 0 && (st = pt_plan_predict(&plan, err))) ||
        (compare_path != NULL && (st = pt_trace_read(compare_path, &l.measured, err))))
        goto out;
    options.n_stragglers = stragglers.n;
    options.straggler = stragglers.factor;
    options.n_degraded = degraded.n;
    options.degraded = degraded.factor;
    if ((st = sim_model_make(&plan, &options, &model, err)) ||
        (st = listen(&l, &model.world, err)) ||
        (st = sim_run(&model.world, l.observer, l.n, &result, err)))
        goto out;
    snprintf(title, sizeof(title), "%s: %u stages, %s, %u micro-batches",
             plan.setup.model.name, plan.layout.pp,
             pt_schedule_name(plan.layout.schedule), model.schedule.micro_batches);
    if ((st = finish(&l, title, err)))
        goto out;
    if ((st = run_whole(&plan, sim_mean_step_s(&result), &any, &whole, err)))
        goto out;
    st = report(&plan, &model, &result, any ? &whole : NULL, &l, err);
out:
    release(&l);
    sim_result_fini(&result);
    sim_model_fini(&model);
    pt_plan_fini(&plan);
    return st;
}

/* ---- a schedule alone ---- */

static enum pt_status need(bool given, const char *option, struct pt_error *err)
{
    return given ? PT_OK
                 : pt_fail(
                       err, PT_USAGE, NULL, 0,
                       "give a plan, or a schedule by --pp, --micro-batches, --schedule, "
                       "--forward and --backward; %s is missing",
                       option);
}

static enum pt_status fill_spec(struct pt_schedule_spec *spec,
                                struct sim_stage_times *times, struct pt_error *err)
{
    double uniform[3] = { forward_s, backward_s, weight_s };
    enum pt_schedule_kind kind;
    enum pt_status st;

    if ((st = need(pp_given, "--pp", err)) ||
        (st = need(micro_batches_given, "--micro-batches", err)) ||
        (st = need(schedule_given, "--schedule", err)) ||
        (st = need(forward_given || times_file[0], "--forward", err)) ||
        (st =
             need(backward_given || times_file[0] || times_file[1], "--backward", err)) ||
        (st = pt_schedule_parse(schedule, &kind, err)))
        return st;
    *spec = (struct pt_schedule_spec){
        .kind = kind,
        .pp = (uint32_t)pp,
        .micro_batches = (uint32_t)micro_batches,
        .vpp = vpp_given                ? (uint32_t)vpp
               : pt_schedule_is_v(kind) ? 2
                                        : 1,
        .forward_s = forward_s,
        .input_s = backward_s,
        .weight_s = weight_s,
        .comm_s = comm_s,
        .max_in_flight = max_in_flight,
        .after_input_frac = weight_frac,
    };
    if (times_file[0] == NULL && times_file[1] == NULL && times_file[2] == NULL)
        return PT_OK;
    if ((st = sim_stage_times_init(spec->pp, uniform, times, err)))
        return st;
    for (unsigned part = 0; part < 3; part++)
        if (times_file[part] != NULL &&
            (st = sim_stage_times_read(times_file[part], part, times, err)))
            return st;
    spec->stage_forward_s = times->forward_s;
    spec->stage_input_s = times->input_s;
    spec->stage_weight_s = times->weight_s;
    return PT_OK;
}

/* The pictures and files need the engine; the figures come from the walk. */
static enum pt_status draw_pure(const struct sim_pure *pure, struct pt_error *err)
{
    uint32_t p = pure->spec.pp;
    struct sim_stage *stage = calloc(p, sizeof(*stage));
    struct sim_chunk *chunk = calloc((size_t)p * pure->spec.vpp, sizeof(*chunk));
    struct listeners l = { .n = 0 };
    struct sim_result result = { .ranks = 0 };
    struct sim_world world;
    char title[128];
    enum pt_status st;

    if (stage == NULL || chunk == NULL) {
        st = pt_fail_memory(err);
        goto out;
    }
    sim_pure_world(pure, stage, chunk, &world);
    snprintf(title, sizeof(title),
             "%s: %u stages, %u micro-batches, bubble %.1f%% of total",
             pt_schedule_name(pure->spec.kind), p, pure->spec.micro_batches,
             100 * pure->figures.bubble_of_total);
    if ((st = listen(&l, &world, err)) ||
        (st = sim_run(&world, l.observer, l.n, &result, err)))
        goto out;
    st = finish(&l, title, err);
out:
    release(&l);
    sim_result_fini(&result);
    free(stage);
    free(chunk);
    return st;
}

static enum pt_status run_pure(struct pt_error *err)
{
    struct sim_stage_times times = { 0, NULL, NULL, NULL };
    struct pt_schedule_spec spec;
    struct sim_pure pure;
    enum pt_status st;

    if (unfold || jitter > 0 || straggler || degrade || compare_path || steps > 1)
        return pt_fail(err, PT_USAGE, NULL, 0,
                       "--steps, --unfold, --jitter, --straggler, --link-degrade and "
                       "--compare need a plan");
    if ((st = fill_spec(&spec, &times, err)) || (st = sim_pure_run(&spec, &pure, err)))
        goto out;
    if (trace_path || gantt_path || memory_path)
        st = draw_pure(&pure, err);
    if (st != PT_OK)
        goto fini;
    if (csv)
        sim_pure_print_stages(&pure, stdout);
    else if (!strcmp(format, "csv"))
        sim_pure_print_csv(&pure, stdout);
    else if (!strcmp(format, "json"))
        st = sim_pure_print_json(&pure, stdout, err);
    else
        sim_pure_print_text(&pure, stdout);
fini:
    sim_pure_fini(&pure);
out:
    sim_stage_times_fini(&times);
    return st;
}

int main(int argc, char **argv)
{
    const struct pt_cli cli = { "ptsim", "[OPTION]... PLAN | --schedule=NAME ...",
                                "Simulate a training step in virtual time.", opts,
                                sizeof(opts) / sizeof(opts[0]) };
    struct pt_error err = PT_ERROR_INIT;
    bool done;
    int first, status = 0;

    if (pt_cli_parse(&cli, argc, argv, &first, &done, &err))
        return pt_report(cli.prog, &err);
    if (!done && argc - first > 1)
        pt_fail(&err, PT_USAGE, NULL, 0, "'%s': one plan at a time", argv[first + 1]);
    else if (!done && first < argc && (pp_given || schedule_given || micro_batches_given))
        pt_fail(&err, PT_USAGE, NULL, 0,
                "%s: a plan has its own --pp, --micro-batches and --schedule",
                argv[first]);
    else if (!done && first < argc)
        run_plan(argv[first], &err);
    else if (!done)
        run_pure(&err);
    if (err.status != PT_OK)
        status = pt_report(cli.prog, &err);
    return pt_close_stdout(cli.prog, status);
}
