#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "libpt/calibration.h"
#include "libpt/cli.h"
#include "libpt/cpu_model.h"
#include "libpt/outfile.h"
#include "prof/cpu.h"

static const char *output;
static double seconds;
static uint64_t threads;
static const struct pt_opt opts[] = {
    { PT_OPT_STR, 'o', "output", "FILE.csv", "-", "write the profile there; -: stdout",
      &output },
    { PT_OPT_SECONDS, 0, "time", "TIME", "10s", "about how long to measure", &seconds },
    { PT_OPT_U64, 't', "threads", "N", "1", "threads of the matrix products, per rank",
      &threads, .lo = 1, .hi = 1024 },
};
static const struct pt_cli cli = {
    "ptprof", "[OPTION]... cpu",
    "Measure this machine for ptplan --calibration FILE.csv.", opts,
    sizeof(opts) / sizeof(opts[0])
};

enum how { MEASURED, DEFINED, ASSUMED };
static const char *const hows[] = {
    "measured", "a convention of this table: the rates beside it are relative to it",
    "assumed; not measured"
};

struct row {
    const char *constant;
    double value;
    enum how how;
};

/* Within the bounds of the constant, so that ptplan takes the file. */
static enum pt_status put(FILE *f, enum pt_scope scope, const char *key,
                          const struct row *row, struct pt_error *err)
{
    size_t n;
    const struct pt_constant *k = pt_constants(scope, &n);
    double v = row->value;

    while (n > 0 && strcmp(k->name, row->constant) != 0) {
        k++;
        n--;
    }
    if (n == 0 || !isfinite(v))
        return pt_fail(err, PT_BUG, NULL, 0, "%s of %s is %g", row->constant,
                       pt_scope_name(scope), v);
    v = fmin(fmax(v, k->low), k->high);
    fprintf(f, "%s,%s,%s,%.6g,%.6g,%s,%s%s\n", pt_scope_name(scope), key, k->name, v, v,
            k->unit, hows[row->how], v == row->value ? "" : " (at the constant's bound)");
    return PT_OK;
}

static enum pt_status put_all(FILE *f, enum pt_scope scope, const char *key,
                              const struct row *rows, size_t n, struct pt_error *err)
{
    enum pt_status st = PT_OK;

    for (size_t i = 0; i < n && st == PT_OK; i++)
        st = put(f, scope, key, &rows[i], err);
    return st;
}

/* "model name : Intel ..." of /proc/cpuinfo; architectures without such a line have none.
 */
static void processor_name(char *name, size_t size)
{
    FILE *f = fopen("/proc/cpuinfo", "r");
    char line[256];

    snprintf(name, size, "unnamed processor");
    while (f != NULL && fgets(line, sizeof(line), f) != NULL)
        if (strncmp(line, "model name", 10) == 0 && strchr(line, ':') != NULL) {
            const char *text = strchr(line, ':') + 1;

            text += strspn(text, " \t");
            snprintf(name, size, "%.*s", (int)strcspn(text, "\n"), text);
            break;
        }
    if (f != NULL)
        fclose(f);
}

/* Where, when and with what the figures below were measured. */
static void write_provenance(FILE *f, const struct prof_cpu *p)
{
    char host[64] = "", processor[128], date[32];
    time_t now = time(NULL);
    struct tm utc;

    gethostname(host, sizeof(host) - 1);
    processor_name(processor, sizeof(processor));
    strftime(date, sizeof(date), "%Y-%m-%d %H:%M", gmtime_r(&now, &utc));
    fprintf(f, "# ptprof %s on %s, %s UTC\n", PACKAGE_VERSION, host, date);
    fprintf(f, "# %s, %ld processors\n", processor, sysconf(_SC_NPROCESSORS_ONLN));
    fprintf(f, "# %s, kernels %s, %llu thread(s) a rank, %g s of measuring\n",
            p->products, p->isa, (unsigned long long)threads, seconds);
}

/* The products of a layer beside the formula that the constants give (libpt/gemm.c). */
static void write_curve(FILE *f, const struct prof_cpu *p)
{
    for (int i = 0; i < PROF_POINTS; i++) {
        const struct prof_point *q = &p->curve[i];
        double flop = 2.0 * q->m * q->n * q->k, k = q->k;
        double model =
            flop / (p->gemm_floor_s + flop / p->gemm_flops * (k + p->gemm_k_half) / k);

        fprintf(f, "# sgemm %ux%ux%u: %.4g FLOP/s, by the constants %.4g (%+.0f%%)\n",
                q->m, q->n, q->k, q->flops, model, 100 * (model / q->flops - 1));
    }
}

#define CEILING 0.9 /* of the "peak" that products reach: the peak is defined by it */
#define N(rows) (sizeof(rows) / sizeof((rows)[0]))

static enum pt_status write_profile(FILE *f, const struct prof_cpu *p,
                                    struct pt_error *err)
{
    double peak = p->gemm_flops / CEILING;
    /* rate(s) = rate s / (s + half) through the two lengths */
    double a = p->attention_seq[0] / p->attention_flops[0];
    double b = p->attention_seq[1] / p->attention_flops[1];
    double slope = fmax((b - a) / (p->attention_seq[1] - p->attention_seq[0]), 1e-15);
    double half = fmax(0, a / slope - p->attention_seq[0]);
    const struct row machine[] = {
        { "fp32_flops", peak, MEASURED },
        { "memory_bytes_per_s", p->memory_bytes_per_s, MEASURED },
        { "allreduce_bytes_per_s", p->allreduce_bytes_per_s / 0.9, MEASURED },
        { "gather_bytes_per_s", p->gather_bytes_per_s / 0.9, MEASURED },
        { "message_bytes_per_s", p->message_bytes_per_s / 0.85, MEASURED },
        { "half_bytes", p->half_bytes, MEASURED },
        { "copy_bytes_per_s", 0.5 * p->memory_bytes_per_s, MEASURED },
        { "adam_params_per_s", p->adam_params_per_s, MEASURED },
    };
    const struct row device[] = {
        { "gemm_frac", CEILING, DEFINED },
        { "gemm_floor_s", p->gemm_floor_s, MEASURED },
        { "wave_weight", 0, ASSUMED },
        { "k_half", p->gemm_k_half, MEASURED },
        { "hbm_frac", 0.8, DEFINED },
        { "attention_frac", 1 / slope / peak, MEASURED },
        { "attention_half", half, MEASURED },
        { "attention_backward", p->attention_backward, MEASURED },
        { "collective_s", p->collective_s / 0.3, MEASURED }, /* of a pair: collective.c */
        { "message_frac", 0, ASSUMED },
    };
    const struct row stack[] = {
        { "memory_op_mult", p->cheap_mult, MEASURED },
        { "loss_mult", p->loss_mult / p->cheap_mult, MEASURED },
        { "attention_narrow", 0, ASSUMED },
        { "tp_exposed_forward", 1, ASSUMED },
        { "tp_exposed_backward", 1, ASSUMED },
        { "dp_exposed", 1, ASSUMED },
        { "dp_exposed_flat", 1, ASSUMED },
        { "fsdp_exposed", 1, ASSUMED },
        { "p2p_exposed", 0.5,
          ASSUMED }, /* the receiver copies, the sender does not wait */
        { "p2p_scatter", 0, ASSUMED },
        { "layer_s", 10e-6, ASSUMED },
        { "launch_s", 0, ASSUMED },
        { "micro_batch_s", 20e-6, ASSUMED },
        { "step_s", 200e-6, ASSUMED },
        { "optimizer_bytes", 0.8 * p->memory_bytes_per_s / p->adam_params_per_s,
          MEASURED },
        { "slack", 0.02, ASSUMED },
    };

    enum pt_status st;

    write_provenance(f, p);
    write_curve(f, p);
    fprintf(f,
            "# products %.3g FLOP/s, memory %.3g B/s, all-reduce of 1 MB %.3g B/s and "
            "%.3g s "
            "for 64 bytes, AdamW %.3g parameters/s\n",
            p->gemm_flops, p->memory_bytes_per_s, p->allreduce_bytes_per_s,
            p->collective_s, p->adam_params_per_s);
    fprintf(f, "scope,key,constant,datasheet,fitted,unit,how\n");
    st = put_all(f, PT_SCOPE_MACHINE, "cpu", machine, N(machine), err);
    if (st == PT_OK)
        st = put_all(f, PT_SCOPE_DEVICE, "cpu", device, N(device), err);
    if (st == PT_OK)
        st = put_all(f, PT_SCOPE_STACK, PT_CPU_STACK, stack, N(stack), err);
    return st;
}

static enum pt_status run(struct pt_error *err)
{
    struct prof_cpu p;
    struct pt_outfile out;
    enum pt_status st = prof_cpu_measure(seconds, threads, &p, err);

    if (st == PT_OK)
        st = pt_outfile_open(output, &out, err);
    if (st != PT_OK)
        return st;
    st = write_profile(out.f, &p, err);
    if (st == PT_OK)
        st = pt_outfile_commit(&out, err);
    pt_outfile_discard(&out);
    return st;
}

int main(int argc, char **argv)
{
    struct pt_error err = PT_ERROR_INIT;
    enum pt_status st;
    bool done;
    int first;

    st = pt_cli_parse(&cli, argc, argv, &first, &done, &err);
    if (st == PT_OK && done)
        return pt_close_stdout(cli.prog, 0);
    if (st == PT_OK && (first + 1 != argc || strcmp(argv[first], "cpu") != 0))
        st = pt_fail(&err, PT_USAGE, NULL, 0, "what to measure? 'cpu' is known");
    if (st == PT_OK)
        st = run(&err);
    return pt_close_stdout(cli.prog, st == PT_OK ? 0 : pt_report(cli.prog, &err));
}
