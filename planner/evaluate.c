/* ptplan --evaluate. */
#include "config.h"

#include <string.h>

#include "libpt/cost.h"
#include "libpt/memory.h"
#include "libpt/units.h"
#include "planner/evaluate.h"

static const char header[] =
    "id,status,reason,step_time_s,tokens_per_s_gpu,tflops_per_gpu,mfu_pct,hfu_pct,"
    "mem_allocated_GiB,mem_reserved_GiB,mem_device_GiB,bubble_pct\n";

/* Keys that were already told to be unknown. */
#define MAX_TOLD 256
struct told {
    unsigned n;
    char key[MAX_TOLD][32];
};

static void warn_unknown(struct told *told, FILE *warnings, enum pt_scope scope,
                         const char *key)
{
    char text[32];

    snprintf(text, sizeof(text), "%c%s", pt_scope_name(scope)[0], key);
    for (unsigned i = 0; i < told->n; i++)
        if (strcmp(told->key[i], text) == 0)
            return;
    if (warnings == NULL || told->n == MAX_TOLD)
        return;
    memcpy(told->key[told->n++], text, sizeof(text));
    fprintf(warnings,
            "ptplan: warning: %s '%s' has no fitted constants: the defaults are used\n",
            pt_scope_name(scope), key);
}

static void put_invalid(FILE *out, const char *id, const struct pt_error *e)
{
    pt_csv_put(out, id, 1);
    pt_csv_put(out, "invalid", 0);
    pt_csv_put(out, e->text, 0);
    fputs(",,,,,,,,,", out);
    pt_csv_put_end(out);
}

static void put_numbers(FILE *out, const struct planner_run *run,
                        const struct pt_step *step, const struct pt_memory *mem)
{
    char reason[160] = "";

    if (!mem->fits)
        snprintf(reason, sizeof(reason), "needs %.1f GiB of a GPU's %.1f GiB",
                 mem->device_bytes / PT_GIB, mem->limit_bytes / PT_GIB);
    pt_csv_put(out, run->id, 1);
    pt_csv_put(out, mem->fits ? "ok" : "infeasible", 0);
    pt_csv_put(out, reason, 0);
    fprintf(out, ",%.6g,%.6g,%.5g,%.5g,%.5g,%.6g,%.6g,%.6g,%.4g", step->step_s,
            step->tokens_per_s_gpu, step->model_flops_gpu / 1e12, 100.0 * step->mfu,
            100.0 * step->hfu, mem->allocated_bytes / PT_GIB,
            mem->reserved_bytes / PT_GIB, mem->device_bytes / PT_GIB,
            100.0 * step->bubble_of_total);
    pt_csv_put_end(out);
}

static enum pt_status evaluate_row(struct planner_run *run,
                                   const struct pt_calibration *calibration, FILE *out,
                                   FILE *warnings, struct told *told,
                                   struct pt_error *err)
{
    struct pt_costs costs;
    struct pt_step step;
    struct pt_memory_terms terms;
    struct pt_memory memory = { 0 };
    bool known[PT_N_SCOPES];
    enum pt_status st;

    planner_run_calibrate(run, calibration, known);
    if (!known[PT_SCOPE_STACK])
        warn_unknown(told, warnings, PT_SCOPE_STACK, run->setup.stack.key);
    if (!known[PT_SCOPE_DEVICE])
        warn_unknown(told, warnings, PT_SCOPE_DEVICE, run->setup.cluster.gpu.family);
    if (!known[PT_SCOPE_NETWORK])
        warn_unknown(told, warnings, PT_SCOPE_NETWORK, run->setup.cluster.network);
    pt_costs_init(&run->setup, &run->layout, &costs);
    pt_step_time(&run->setup, &run->layout, &costs, &run->split, true, &step);
    pt_memory_terms_init(&run->setup, &run->layout, &terms);
    st = pt_memory_init(&run->setup, &run->layout, &terms, &run->split, &memory, err);
    if (st == PT_OK)
        put_numbers(out, run, &step, &memory);
    pt_memory_fini(&memory);
    return st;
}

enum pt_status planner_evaluate(const char *path,
                                const struct pt_calibration *calibration,
                                const char *profile_dir, FILE *out, FILE *warnings,
                                struct pt_error *err)
{
    struct planner_runs *runs = NULL;
    struct planner_run run = { 0 };
    struct told told = { 0 };
    enum pt_status st = planner_runs_open(path, profile_dir, &runs, err);

    if (st != PT_OK)
        goto out;
    fputs(header, out);
    for (size_t row = 0; row < planner_runs_count(runs); row++) {
        struct pt_error reason = PT_ERROR_INIT;

        if (planner_runs_row(runs, row, &run, &reason) != PT_OK) {
            put_invalid(out, run.id, &reason);
            continue;
        }
        st = evaluate_row(&run, calibration, out, warnings, &told, err);
        if (st != PT_OK)
            goto out;
    }
    if (fflush(out) != 0 || ferror(out))
        st = pt_fail(err, PT_SYSTEM, "standard output", 0, "short write");
out:
    pt_split_fini(&run.split);
    planner_runs_close(runs);
    return st;
}
