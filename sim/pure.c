#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "libpt/json.h"
#include "libpt/units.h"
#include "sim/pure.h"

void sim_pure_fini(struct sim_pure *pure)
{
    pt_schedule_fini(&pure->schedule);
    free(pure->stage_peak);
    free(pure->chunk_times_s);
    memset(pure, 0, sizeof(*pure));
}

static void fill_times(const struct pt_schedule_spec *spec, struct sim_pure *pure)
{
    size_t n = (size_t)spec->pp * spec->vpp;
    double uniform[3] = { spec->forward_s, spec->input_s, spec->weight_s };
    const double *stage[3] = { spec->stage_forward_s, spec->stage_input_s,
                               spec->stage_weight_s };

    for (unsigned k = 0; k < 3; k++)
        for (size_t i = 0; i < n; i++)
            pure->chunk_times_s[k * n + i] =
                (stage[k] ? stage[k][i % spec->pp] : uniform[k]) / spec->vpp;
    pure->times =
        (struct pt_schedule_times){ pure->chunk_times_s, pure->chunk_times_s + n,
                                    pure->chunk_times_s + 2 * n, spec->comm_s };
    for (uint32_t s = 0; s < spec->pp; s++)
        for (unsigned k = 0; k < 3; k++)
            pure->stage_work_s[s] +=
                (stage[k] ? stage[k][s] : uniform[k]) * spec->micro_batches;
}

enum pt_status sim_pure_run(const struct pt_schedule_spec *spec, struct sim_pure *pure,
                            struct pt_error *err)
{
    enum pt_status st;

    *pure = (struct sim_pure){ .spec = *spec };
    if ((st = pt_schedule_pipeline(spec, &pure->schedule, err)))
        goto out;
    pure->stage_peak = calloc(3 * (size_t)spec->pp, sizeof(double));
    pure->chunk_times_s = calloc(3 * (size_t)spec->pp * spec->vpp, sizeof(double));
    if (pure->stage_peak == NULL || pure->chunk_times_s == NULL) {
        st = pt_fail_memory(err);
        goto out;
    }
    pure->stage_span_s = pure->stage_peak + spec->pp;
    pure->stage_work_s = pure->stage_span_s + spec->pp;
    fill_times(spec, pure);
    if ((st = pt_schedule_check(&pure->schedule, err)))
        goto out;
    st = pt_schedule_time(&pure->schedule, &pure->times, &pure->figures, pure->stage_peak,
                          pure->stage_span_s, err);
out:
    if (st != PT_OK)
        sim_pure_fini(pure);
    return st;
}

void sim_pure_world(const struct sim_pure *pure, struct sim_stage *stage,
                    struct sim_chunk *chunk, struct sim_world *world)
{
    size_t n = (size_t)pure->spec.pp * pure->spec.vpp;

    for (size_t i = 0; i < n; i++) {
        chunk[i].forward_s = pure->times.forward_s[i];
        chunk[i].input_s = pure->times.input_s[i];
        chunk[i].weight_s = pure->times.weight_s[i];
        chunk[i].activation_bytes = 1.0 / pure->spec.vpp;
    }
    *world = (struct sim_world){ .schedule = &pure->schedule,
                                 .per_stage = 1,
                                 .gang = 1,
                                 .dense = 1,
                                 .stage = stage,
                                 .chunk = chunk,
                                 .message_s = pure->spec.comm_s,
                                 .no_sharing = true,
                                 .steps = 1 };
}

/* Idle part of a stage's span; rounding of sums is none. */
static double idle_frac(const struct sim_pure *pure, uint32_t s)
{
    double idle =
        pure->stage_span_s[s] > 0 ? 1 - pure->stage_work_s[s] / pure->stage_span_s[s] : 0;

    return idle < 1e-12 ? 0 : idle;
}

void sim_pure_print_csv(const struct sim_pure *pure, FILE *f)
{
    const struct pt_schedule_figures *g = &pure->figures;

    fprintf(f, "schedule,pp,vpp,micro_batches,makespan_s,bubble_of_total,bubble_of_ideal,"
               "peak_activations\n");
    fprintf(f, "%s,%u,%u,%u,%.15g,%.15g,%.15g,%.15g\n", pt_schedule_name(pure->spec.kind),
            pure->spec.pp, pure->spec.vpp, pure->spec.micro_batches, g->makespan_s,
            g->bubble_of_total, g->bubble_of_ideal, g->peak_activations);
}

void sim_pure_print_text(const struct sim_pure *pure, FILE *f)
{
    const struct pt_schedule_figures *g = &pure->figures;
    char a[32], b[32];

    fprintf(f, "%s: %u stage%s of %u chunk%s, %u micro-batch%s\n\n",
            pt_schedule_name(pure->spec.kind), pure->spec.pp,
            pure->spec.pp == 1 ? "" : "s", pure->spec.vpp, pure->spec.vpp == 1 ? "" : "s",
            pure->spec.micro_batches, pure->spec.micro_batches == 1 ? "" : "es");
    fprintf(f, "makespan          %s, first to last pass of any stage\n",
            pt_format_seconds(a, g->makespan_s));
    fprintf(f,
            "longest stage     %s, stage %u from its first forward to its last weight "
            "gradient\n",
            pt_format_seconds(a, g->span_s), g->span_stage);
    fprintf(f, "work              %s, mean over the stages\n",
            pt_format_seconds(a, g->ideal_s));
    fprintf(f, "bubble of total   %.2f%%  (span - work) / span\n",
            100 * g->bubble_of_total);
    fprintf(f, "bubble of ideal   %.2f%%  (span - work) / work\n",
            100 * g->bubble_of_ideal);
    fprintf(f, "peak activations  %.4g of a stage's, the fullest stage\n\n",
            g->peak_activations);
    fprintf(f, "%5s  %10s  %10s  %7s  %5s\n", "stage", "work", "span", "idle", "peak");
    for (uint32_t s = 0; s < pure->spec.pp; s++)
        fprintf(f, "%5u  %10s  %10s  %6.2f%%  %5.4g\n", s,
                pt_format_seconds(a, pure->stage_work_s[s]),
                pt_format_seconds(b, pure->stage_span_s[s]), 100 * idle_frac(pure, s),
                pure->stage_peak[s]);
}

enum pt_status sim_pure_print_json(const struct sim_pure *pure, FILE *f,
                                   struct pt_error *err)
{
    const struct pt_schedule_figures *g = &pure->figures;
    struct pt_json *doc = pt_json_new_object();
    struct pt_json *stages;
    enum pt_status st;

    pt_json_put_string(doc, "schedule", pt_schedule_name(pure->spec.kind));
    pt_json_put_u64(doc, "pp", pure->spec.pp);
    pt_json_put_u64(doc, "vpp", pure->spec.vpp);
    pt_json_put_u64(doc, "micro_batches", pure->spec.micro_batches);
    pt_json_put_number(doc, "makespan_s", g->makespan_s);
    pt_json_put_number(doc, "span_s", g->span_s);
    pt_json_put_number(doc, "bubble_of_total", g->bubble_of_total);
    pt_json_put_number(doc, "bubble_of_ideal", g->bubble_of_ideal);
    pt_json_put_number(doc, "peak_activations", g->peak_activations);
    stages = pt_json_add_array(doc, "stages");
    for (uint32_t s = 0; s < pure->spec.pp; s++) {
        struct pt_json *row = pt_json_add_object(stages, NULL);

        pt_json_put_number(row, "work_s", pure->stage_work_s[s]);
        pt_json_put_number(row, "span_s", pure->stage_span_s[s]);
        pt_json_put_number(row, "peak_activations", pure->stage_peak[s]);
    }
    st = pt_json_write(doc, f, "standard output", err);
    pt_json_free(doc);
    return st;
}

void sim_pure_print_stages(const struct sim_pure *pure, FILE *f)
{
    fprintf(f, "stage,work_s,span_s,idle_frac,peak_activations\n");
    for (uint32_t s = 0; s < pure->spec.pp; s++)
        fprintf(f, "%u,%.15g,%.15g,%.15g,%.15g\n", s, pure->stage_work_s[s],
                pure->stage_span_s[s], idle_frac(pure, s), pure->stage_peak[s]);
}
