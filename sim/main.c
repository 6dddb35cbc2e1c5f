/* ptsim: parses, calls, prints. */
#include "config.h"

#include <string.h>

#include "libpt/cli.h"
#include "sim/pure.h"

static uint64_t pp, micro_batches, vpp;
static double forward_s, backward_s, weight_s, comm_s, max_in_flight, weight_frac;
static const char *schedule, *times_file[3], *format;
static bool pp_given, micro_batches_given, schedule_given, forward_given, vpp_given,
    backward_given;

static const struct pt_opt opts[] = {
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
};

static enum pt_status need(bool given, const char *option, struct pt_error *err)
{
    return given
               ? PT_OK
               : pt_fail(
                     err, PT_USAGE, NULL, 0,
                     "a schedule needs --pp, --micro-batches, --schedule, --forward and "
                     "--backward; %s is missing",
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

static enum pt_status run_pure(struct pt_error *err)
{
    struct sim_stage_times times = { 0, NULL, NULL, NULL };
    struct pt_schedule_spec spec;
    struct sim_pure pure;
    enum pt_status st;

    if ((st = fill_spec(&spec, &times, err)) || (st = sim_pure_run(&spec, &pure, err)))
        goto out;
    if (!strcmp(format, "csv"))
        sim_pure_print_csv(&pure, stdout);
    else if (!strcmp(format, "json"))
        st = sim_pure_print_json(&pure, stdout, err);
    else
        sim_pure_print_text(&pure, stdout);
    sim_pure_fini(&pure);
out:
    sim_stage_times_fini(&times);
    return st;
}

int main(int argc, char **argv)
{
    const struct pt_cli cli = { "ptsim", "[OPTION]...",
                                "Simulate a training step in virtual time.", opts,
                                sizeof(opts) / sizeof(opts[0]) };
    struct pt_error err = PT_ERROR_INIT;
    bool done;
    int first, status = 0;

    if (pt_cli_parse(&cli, argc, argv, &first, &done, &err))
        return pt_report(cli.prog, &err);
    if (!done && first < argc)
        pt_fail(&err, PT_USAGE, NULL, 0, "'%s': no operand is expected", argv[first]);
    else if (!done)
        run_pure(&err);
    if (err.status != PT_OK)
        status = pt_report(cli.prog, &err);
    return pt_close_stdout(cli.prog, status);
}
