#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "libpt/calibration.h"
#include "libpt/cli.h"
#include "libpt/cpu_model.h"
#include "prof/cpu.h"

static const char *output;
static double seconds;
static uint64_t threads;
static const struct pt_opt opts[] = {
    { PT_OPT_STR, 'o', "output", "FILE.csv", NULL,
      "write the profile there, not to stdout", &output },
    { PT_OPT_SECONDS, 0, "time", "TIME", "10s", "about how long to measure", &seconds },
    { PT_OPT_U64, 't', "threads", "N", "1", "threads of the matrix products, per rank",
      &threads, .lo = 1, .hi = 1024 },
};
static const struct pt_cli cli = {
    "ptprof", "[OPTION]... cpu",
    "Measure this machine for ptplan --calibration FILE.csv.", opts,
    sizeof(opts) / sizeof(opts[0])
};

struct row {
    const char *constant;
    double value;
};

/* Within the bounds of the constant, so that ptplan takes the file. */
static void put(FILE *f, enum pt_scope scope, const char *key, const struct row *row)
{
    size_t n;
    const struct pt_constant *k = pt_constants(scope, &n);
    double v = row->value;

    while (n > 0 && strcmp(k->name, row->constant) != 0) {
        k++;
        n--;
    }
    if (n == 0)
        return;
    v = fmin(fmax(v, k->low), k->high);
    fprintf(f, "%s,%s,%s,%.6g,%.6g,%s,%s\n", pt_scope_name(scope), key, k->name, v, v,
            k->unit,
            v == row->value ? "measured by ptprof" : "measured by ptprof (at its bound)");
}

static void put_all(FILE *f, enum pt_scope scope, const char *key, const struct row *rows,
                    size_t n)
{
    for (size_t i = 0; i < n; i++)
        put(f, scope, key, &rows[i]);
}

#define CEILING 0.9 /* of the "peak" that products reach: the peak is defined by it */
#define N(rows) (sizeof(rows) / sizeof((rows)[0]))

static void write_profile(FILE *f, const struct prof_cpu *p)
{
    double peak = p->gemm_flops / CEILING;
    /* rate(s) = rate s / (s + half) through the two lengths */
    double a = p->attention_seq[0] / p->attention_flops[0];
    double b = p->attention_seq[1] / p->attention_flops[1];
    double slope = fmax((b - a) / (p->attention_seq[1] - p->attention_seq[0]), 1e-15);
    double half = fmax(0, a / slope - p->attention_seq[0]);
    const struct row machine[] = {
        { "fp32_flops", peak },
        { "memory_bytes_per_s", p->memory_bytes_per_s },
        { "allreduce_bytes_per_s", p->allreduce_bytes_per_s / 0.9 },
        { "gather_bytes_per_s", p->gather_bytes_per_s / 0.9 },
        { "message_bytes_per_s", p->message_bytes_per_s / 0.85 },
        { "half_bytes", p->half_bytes },
        { "copy_bytes_per_s", 0.5 * p->memory_bytes_per_s },
        { "adam_params_per_s", p->adam_params_per_s },
    };
    const struct row device[] = {
        { "gemm_frac", CEILING },
        { "gemm_floor_s", p->gemm_floor_s },
        { "wave_weight", 0 },
        { "k_half", p->gemm_k_half },
        { "hbm_frac", 0.8 },
        { "attention_frac", 1 / slope / peak },
        { "attention_half", half },
        { "attention_backward", p->attention_backward },
        { "collective_s", p->collective_s / 0.3 }, /* of a pair: collective.c */
        { "message_frac", 0 },
    };
    const struct row stack[] = {
        { "memory_op_mult", p->cheap_mult },
        { "loss_mult", p->loss_mult / p->cheap_mult },
        { "attention_narrow", 0 },
        { "tp_exposed_forward", 1 },
        { "tp_exposed_backward", 1 },
        { "dp_exposed", 1 },
        { "dp_exposed_flat", 1 },
        { "fsdp_exposed", 1 },
        { "p2p_exposed", 0.5 }, /* the receiver copies, the sender does not wait */
        { "p2p_scatter", 0 },
        { "layer_s", 10e-6 },
        { "launch_s", 0 },
        { "micro_batch_s", 20e-6 },
        { "step_s", 200e-6 },
        { "optimizer_bytes", 0.8 * p->memory_bytes_per_s / p->adam_params_per_s },
        { "slack", 0.02 },
    };

    fprintf(f, "# %s, kernels %s, %llu thread(s) a rank\n", p->products, p->isa,
            (unsigned long long)threads);
    fprintf(f,
            "# products %.3g FLOP/s, memory %.3g B/s, all-reduce of 1 MB %.3g B/s and "
            "%.3g s of "
            "nothing, AdamW %.3g parameters/s\n",
            p->gemm_flops, p->memory_bytes_per_s, p->allreduce_bytes_per_s,
            p->collective_s, p->adam_params_per_s);
    fprintf(f, "scope,key,constant,datasheet,fitted,unit,how\n");
    put_all(f, PT_SCOPE_MACHINE, "cpu", machine, N(machine));
    put_all(f, PT_SCOPE_DEVICE, "cpu", device, N(device));
    put_all(f, PT_SCOPE_STACK, PT_CPU_STACK, stack, N(stack));
}

static enum pt_status run(struct pt_error *err)
{
    struct prof_cpu p;
    FILE *f = stdout;
    enum pt_status st = prof_cpu_measure(seconds, threads, &p, err);

    if (st != PT_OK)
        return st;
    if (output != NULL && (f = fopen(output, "w")) == NULL)
        return pt_fail(err, PT_SYSTEM, output, 0, "%s", strerror(errno));
    write_profile(f, &p);
    if (output != NULL && (ferror(f) | fclose(f)) != 0)
        return pt_fail(err, PT_SYSTEM, output, 0, "cannot write: %s", strerror(errno));
    return PT_OK;
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
