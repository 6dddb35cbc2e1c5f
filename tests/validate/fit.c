/* fit: the constants of profiles/stacks.csv from measured runs.
 *
 * Minimises  sum_rows w_row * rho(log(predicted / measured)) + sum_params (u / sigma)^2 / 2
 * over bounded u, where u is the logarithm of a constant over its datasheet value (or, for those
 * that may be zero, the difference in units of a scale). rho is the pseudo-Huber loss: measured
 * runs hold outliers. The prior pulls what the runs do not determine to the datasheet. A row
 * weighs 1 / sqrt(rows of its group), between equal rows and equal groups.
 *
 * Damped Gauss-Newton with reweighting. A constant that physics shares (tile quantisation, start-up
 * of a collective) is one parameter for all keys. Deterministic: no randomness, no clock. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libpt/cost.h"
#include "planner/evaluate.h"

#define MAX_GROUPS 64
static double DELTA = 0.03;

struct row {
    struct planner_run run;
    double measured_s;
    unsigned group;
    unsigned tier;
    double weight;     /* 0: held out */
    size_t key[PT_N_SCOPES];
    double log_error;
};

/* One unknown: a constant of one key, or of all keys when shared. */
struct param {
    enum pt_scope scope;
    const struct pt_constant *constant;
    size_t key; /* SIZE_MAX: shared */
    double base, scale, low, high, sigma; /* value = base * exp(u) when scale == 0, else base + scale u */
    double u;
};

struct fit {
    struct planner_runs *runs;
    struct pt_calibration *calibration;
    size_t n_rows, n_params, n_groups;
    struct row *row;
    struct param *param;
    const char *group[MAX_GROUPS];
    size_t group_rows[MAX_GROUPS];
};

/* Width of the prior where it is not a quarter of the way to a bound; 0: not fitted. */
static const struct {
    const char *name;
    double sigma; /* in log, or in the constant's unit */
    bool shared;
} priors[] = {
    { "memory_op_mult", 0.25, false },
    { "compiled_mult", 0.2, false },
    { "loss_mult", 0.4, false },
    { "score_bytes", 3.0, false },
    { "attention_gen", 0.0, false },
    { "attention_mult", 0.25, false },
    { "attention_narrow", 0.1, false },
    { "cp_uneven", 0.3, false },
    { "cast_bytes", 0.2, true },
    { "block_cast_mult", 0.2, true },
    { "tp_exposed_forward", 0.3, false },
    { "tp_exposed_backward", 0.3, false },
    { "dp_exposed", 0.3, false },
    { "dp_exposed_flat", 0.2, false },
    { "fsdp_exposed", 0.2, false },
    { "recompute_mult", 0.08, false },
    { "p2p_exposed", 0.3, false },
    { "layer_s", 30e-6, false },
    { "micro_batch_s", 500e-6, false },
    { "step_s", 0.03, false },
    { "optimizer_bytes", 0.3, false },
    { "owner_s", 3e-3, false },
    { "moe_s", 200e-6, false },
    { "moe_mult", 0.4, false },
    { "slack", 0.015, false },
    { "grad_comm_bytes", 0.0, false },
    { "gemm_frac", 0.08, false },
    { "gemm8_frac", 0.12, false },
    { "gemm4_frac", 0.15, false },
    { "gemm_floor_s", 0.0, false },
    { "wave_weight", 0.15, true },
    { "k_half", 60.0, true },
    { "hbm_frac", 0.08, false },
    { "attention_frac", 0.12, false },
    { "attention_frac1", 0.12, false },
    { "attention_frac0", 0.12, false },
    { "attention_half", 0.0, false },
    { "attention_backward", 0.1, false },
    { "eager_frac", 0.3, true },
    { "eager_odd_frac", 0.5, true },
    { "collective_s", 0.3, true },
    { "message_frac", 0.15, true },
    { "rate_frac", 0.2, false },
    { "p2p_frac", 0.4, false },
    { "degrade", 0.03, false },
    { "latency_s", 0.4, true },
    { "straggler", 0.002, false },
};

static double param_value(const struct param *p)
{
    double v = p->scale > 0.0 ? p->base + p->scale * p->u : p->base * exp(p->u);

    return v < p->low ? p->low : v > p->high ? p->high : v;
}

static void apply(struct fit *f, const struct param *p)
{
    double v = param_value(p);

    for (size_t k = 0; k < pt_calibration_keys(f->calibration, p->scope); k++)
        if (p->key == SIZE_MAX || p->key == k)
            pt_calibration_set(f->calibration, p->scope,
                               pt_calibration_key(f->calibration, p->scope, k),
                               p->constant->name, v);
}

static double predict(struct fit *f, struct row *r)
{
    struct pt_costs costs;
    struct pt_step step;

    planner_run_calibrate(&r->run, f->calibration, NULL);
    pt_costs_init(&r->run.setup, &r->run.layout, &costs);
    pt_step_time(&r->run.setup, &r->run.layout, &costs, &r->run.split, true, &step);
    return step.step_s;
}

static bool concerns(const struct param *p, const struct row *r)
{
    return p->key == SIZE_MAX || r->key[p->scope] == p->key;
}

static double row_loss(const struct row *r, double e)
{
    return r->weight * DELTA * DELTA * (sqrt(1.0 + e * e / (DELTA * DELTA)) - 1.0);
}

static double PRIOR_WEIGHT = 3e-5;

static double total_loss(struct fit *f)
{
    double sum = 0.0;

    for (size_t i = 0; i < f->n_rows; i++) {
        struct row *r = &f->row[i];

        if (!(r->weight > 0.0))
            continue;
        r->log_error = log(predict(f, r) / r->measured_s);
        sum += row_loss(r, r->log_error);
    }
    for (size_t i = 0; i < f->n_params; i++) {
        const struct param *p = &f->param[i];

        sum += PRIOR_WEIGHT * p->u * p->u / (p->sigma * p->sigma);
    }
    return sum;
}

/* Solves A x = b in place, A symmetric positive definite (Cholesky). */
static bool solve(double *a, double *b, size_t n)
{
    for (size_t j = 0; j < n; j++) {
        for (size_t k = 0; k < j; k++)
            for (size_t i = j; i < n; i++)
                a[i * n + j] -= a[i * n + k] * a[j * n + k];
        if (!(a[j * n + j] > 0.0))
            return false;
        double d = sqrt(a[j * n + j]);

        for (size_t i = j; i < n; i++)
            a[i * n + j] /= d;
    }
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < i; k++)
            b[i] -= a[i * n + k] * b[k];
        b[i] /= a[i * n + i];
    }
    for (size_t i = n; i-- > 0;) {
        for (size_t k = i + 1; k < n; k++)
            b[i] -= a[k * n + i] * b[k];
        b[i] /= a[i * n + i];
    }
    return true;
}

/* Normal equations of the reweighted problem at the current point. */
static void normal_equations(struct fit *f, double *jac, double *a, double *b)
{
    size_t n = f->n_params;

    for (size_t j = 0; j < n; j++) {
        struct param *p = &f->param[j];
        double u = p->u, h = 1e-4;

        p->u = u + h;
        if (param_value(p) >= p->high)
            p->u = u - h;
        h = p->u - u;
        apply(f, p);
        for (size_t i = 0; i < f->n_rows; i++) {
            struct row *r = &f->row[i];

            jac[i * n + j] = 0.0;
            if (r->weight > 0.0 && concerns(p, r))
                jac[i * n + j] = (log(predict(f, r) / r->measured_s) - r->log_error) / h;
        }
        p->u = u;
        apply(f, p);
    }
    memset(a, 0, n * n * sizeof(*a));
    memset(b, 0, n * sizeof(*b));
    for (size_t i = 0; i < f->n_rows; i++) {
        const struct row *r = &f->row[i];
        double e = r->log_error, w;

        if (!(r->weight > 0.0))
            continue;
        w = r->weight / sqrt(1.0 + e * e / (DELTA * DELTA));
        for (size_t j = 0; j < n; j++) {
            double x = jac[i * n + j];

            if (x == 0.0)
                continue;
            b[j] -= w * x * e;
            for (size_t k = 0; k <= j; k++)
                a[j * n + k] += w * x * jac[i * n + k];
        }
    }
    for (size_t j = 0; j < n; j++) {
        const struct param *p = &f->param[j];
        double w = 2.0 * PRIOR_WEIGHT / (p->sigma * p->sigma);

        a[j * n + j] += w;
        b[j] -= w * p->u;
    }
}

static void set_u(struct fit *f, struct param *p, double u)
{
    /* Keep u where the value is inside its bounds. */
    double lo = p->scale > 0.0 ? (p->low - p->base) / p->scale : log(p->low / p->base);
    double hi = p->scale > 0.0 ? (p->high - p->base) / p->scale : log(p->high / p->base);

    p->u = u < lo ? lo : u > hi ? hi : u;
    apply(f, p);
}

static void minimise(struct fit *f, unsigned iterations)
{
    size_t n = f->n_params;
    double *jac = calloc(f->n_rows * n, sizeof(*jac)), *a = calloc(n * n, sizeof(*a));
    double *b = calloc(n, sizeof(*b)), *a2 = calloc(n * n, sizeof(*a)), *x = calloc(n, sizeof(*x));
    double *old = calloc(n, sizeof(*old));
    double damp = 1e-2, loss = total_loss(f);

    for (unsigned it = 0; it < iterations && jac && a && b && a2 && x && old; it++) {
        double before = loss;

        normal_equations(f, jac, a, b);
        for (size_t j = 0; j < n; j++)
            old[j] = f->param[j].u;
        for (unsigned attempt = 0; attempt < 8; attempt++) {
            memcpy(a2, a, n * n * sizeof(*a));
            memcpy(x, b, n * sizeof(*x));
            for (size_t j = 0; j < n; j++)
                a2[j * n + j] *= 1.0 + damp;
            if (!solve(a2, x, n)) {
                damp *= 10.0;
                continue;
            }
            for (size_t j = 0; j < n; j++) {
                double d = x[j] > 0.5 ? 0.5 : x[j] < -0.5 ? -0.5 : x[j];

                set_u(f, &f->param[j], old[j] + d);
            }
            double now = total_loss(f);

            if (now < loss) {
                loss = now;
                damp = fmax(damp * 0.3, 1e-6);
                break;
            }
            damp *= 5.0;
            for (size_t j = 0; j < n; j++)
                set_u(f, &f->param[j], old[j]);
        }
        total_loss(f);
        if (before - loss < 1e-6 * before)
            break;
    }
    free(jac);
    free(a);
    free(b);
    free(a2);
    free(x);
    free(old);
}

static size_t key_index(const struct pt_calibration *c, enum pt_scope scope, const char *key)
{
    size_t n = pt_calibration_keys(c, scope);

    for (size_t i = 0; i < n; i++)
        if (strcmp(pt_calibration_key(c, scope, i), key) == 0)
            return i;
    return n;
}

static unsigned group_index(struct fit *f, const char *name)
{
    unsigned i = 0;

    while (i < f->n_groups && strcmp(f->group[i], name) != 0)
        i++;
    if (i == f->n_groups && i < MAX_GROUPS)
        f->group[f->n_groups++] = name;
    return i;
}

static enum pt_status load_rows(struct fit *f, struct pt_error *err)
{
    size_t n = planner_runs_count(f->runs);

    f->row = calloc(n, sizeof(*f->row));
    if (f->row == NULL)
        return pt_fail(err, PT_SYSTEM, "", 0, "out of memory");
    for (size_t i = 0; i < n; i++) {
        struct row *r = &f->row[f->n_rows];
        const char *tier = planner_runs_text(f->runs, i, "time_tier");
        struct pt_error e = PT_ERROR_INIT;

        if (strcmp(tier, "1") != 0 && strcmp(tier, "2") != 0)
            continue;
        r->measured_s = atof(planner_runs_text(f->runs, i, "step_time_s"));
        if (planner_runs_row(f->runs, i, &r->run, &e) != PT_OK) {
            fprintf(stderr, "fit: %s: %s\n", r->run.id, e.text);
            continue;
        }
        r->group = group_index(f, planner_runs_text(f->runs, i, "group"));
        r->tier = (unsigned)(tier[0] - '0');
        f->group_rows[r->group]++;
        r->key[PT_SCOPE_STACK] =
            key_index(f->calibration, PT_SCOPE_STACK, r->run.setup.stack.key);
        r->key[PT_SCOPE_DEVICE] =
            key_index(f->calibration, PT_SCOPE_DEVICE, r->run.setup.cluster.gpu.family);
        r->key[PT_SCOPE_NETWORK] =
            key_index(f->calibration, PT_SCOPE_NETWORK, r->run.setup.cluster.network);
        f->n_rows++;
    }
    for (size_t i = 0; i < f->n_rows; i++)
        f->row[i].weight = 1.0 / sqrt((double)f->group_rows[f->row[i].group]);
    return PT_OK;
}

static double value_of(const struct pt_calibration *c, enum pt_scope scope, size_t key,
                       const struct pt_constant *k)
{
    union {
        struct pt_stack s;
        struct pt_device d;
        struct pt_network n;
    } u;
    const char *name = pt_calibration_key(c, scope, key);
    double v;

    if (scope == PT_SCOPE_STACK)
        pt_calibration_stack(c, name, &u.s, NULL);
    else if (scope == PT_SCOPE_DEVICE)
        pt_calibration_device(c, name, &u.d, NULL);
    else
        pt_calibration_network(c, name, &u.n, NULL);
    memcpy(&v, (const char *)&u + k->offset, sizeof(v));
    return v;
}

static void make_params(struct fit *f)
{
    f->param = calloc(4096, sizeof(*f->param));
    f->n_params = 0;
    for (int s = 0; s < PT_N_SCOPES; s++) {
        enum pt_scope scope = (enum pt_scope)s;
        size_t n, keys = pt_calibration_keys(f->calibration, scope);
        const struct pt_constant *k = pt_constants(scope, &n);

        for (size_t c = 0; c < n; c++) {
            size_t which = 0, n_priors = sizeof(priors) / sizeof(priors[0]);

            while (which < n_priors && strcmp(priors[which].name, k[c].name) != 0)
                which++;
            if (which == n_priors || !(priors[which].sigma > 0.0))
                continue;
            for (size_t key = 0; key < (priors[which].shared ? 1 : keys); key++) {
                struct param *p = &f->param[f->n_params];

                *p = (struct param){ scope, &k[c], priors[which].shared ? SIZE_MAX : key,
                                     value_of(f->calibration, scope, key, &k[c]), 0, k[c].low,
                                     k[c].high, priors[which].sigma, 0 };
                if (p->base == 0.0 && (strcmp(k[c].name, "owner_s") == 0 ||
                                       strcmp(k[c].name, "score_bytes") == 0))
                    continue; /* what this software does not do */
                if (!(k[c].low > 0.0)) { /* may be zero */
                    p->scale = p->sigma;
                    p->sigma = 1.0;
                }
                bool used = false;

                for (size_t i = 0; i < f->n_rows && !used; i++)
                    used = concerns(p, &f->row[i]);
                if (used)
                    f->n_params++;
            }
        }
    }
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Errors of the rows with held weight (held: those not fitted; else all). */
static void report(struct fit *f, const bool *which, bool by_group, FILE *out)
{
    double *all = calloc(f->n_rows, sizeof(*all));
    double macro[3] = { 0 }, groups[3] = { 0 };
    size_t n = 0;

    for (unsigned g = 0; g < f->n_groups; g++) {
        double sum = 0.0, bias = 0.0, worst = 0.0;
        size_t m = 0;
        unsigned tier = 0;

        for (size_t i = 0; i < f->n_rows; i++) {
            struct row *r = &f->row[i];

            if (r->group != g || !which[i])
                continue;
            double e = exp(r->log_error) - 1.0;

            tier = r->tier;
            all[n++] = fabs(e);
            sum += fabs(e);
            bias += e;
            worst = fmax(worst, fabs(e));
            m++;
        }
        if (m == 0)
            continue;
        macro[tier] += sum / (double)m;
        groups[tier]++;
        if (by_group)
            fprintf(out, "  %-16s %4zu mean %6.2f%% worst %6.2f%% bias %+6.2f%%\n", f->group[g],
                    m, 100.0 * sum / (double)m, 100.0 * worst, 100.0 * bias / (double)m);
    }
    qsort(all, n, sizeof(*all), by_value);
    double mean = 0.0;

    for (size_t i = 0; i < n; i++)
        mean += all[i];
    fprintf(out, "rows %zu: mean %.2f%%, median %.2f%%, p90 %.2f%%; macro tier 1 %.2f%%, tier 2 %.2f%%\n",
            n, 100.0 * mean / (double)n, 100.0 * all[n / 2], 100.0 * all[(size_t)(0.9 * (double)n)],
            100.0 * macro[1] / fmax(groups[1], 1.0), 100.0 * macro[2] / fmax(groups[2], 1.0));
    free(all);
}

static void evaluate_all(struct fit *f)
{
    for (size_t i = 0; i < f->n_rows; i++)
        f->row[i].log_error = log(predict(f, &f->row[i]) / f->row[i].measured_s);
}

static void reset(struct fit *f)
{
    for (size_t j = 0; j < f->n_params; j++)
        set_u(f, &f->param[j], 0.0);
}

static void dump_rows(struct fit *f, FILE *out)
{
    for (size_t i = 0; i < f->n_rows; i++) {
        struct row *r = &f->row[i];
        struct pt_costs c;
        struct pt_step s;

        planner_run_calibrate(&r->run, f->calibration, NULL);
        pt_costs_init(&r->run.setup, &r->run.layout, &c);
        pt_step_time(&r->run.setup, &r->run.layout, &c, &r->run.split, true, &s);
        fprintf(out,
                "%s %s %.4g %.4g %+.1f comp %.1f rc %.1f tp %.1f cp %.1f ep %.1f pp %.1f bub %.1f dp %.1f opt %.1f oth %.1f\n",
                f->group[r->group], r->run.id, r->measured_s, s.step_s,
                100 * (s.step_s / r->measured_s - 1), 100 * s.compute_s / s.step_s,
                100 * s.recompute_s / s.step_s, 100 * s.tp_s / s.step_s, 100 * s.cp_s / s.step_s,
                100 * s.ep_s / s.step_s, 100 * s.pp_s / s.step_s, 100 * s.bubble_s / s.step_s,
                100 * s.dp_s / s.step_s, 100 * s.optimizer_s / s.step_s,
                100 * s.other_s / s.step_s);
    }
}

/* The file again, with the fitted values of this run; rows that are not fitted as they were. */
static enum pt_status write_file(struct fit *f, const char *path, FILE *out,
                                 struct pt_error *err)
{
    static const char *const names[] = { "scope",  "key",  "constant", "datasheet",
                                         "fitted", "unit", "how" };
    struct pt_csv *csv;
    int column[7];
    enum pt_status st = pt_csv_read(path, &csv, err);

    if (st != PT_OK)
        return st;
    for (int i = 0; i < 7; i++) {
        column[i] = pt_csv_column(csv, names[i]);
        pt_csv_put(out, names[i], i == 0);
    }
    pt_csv_put_end(out);
    for (size_t row = 0; row < pt_csv_rows(csv); row++) {
        const char *field[7];
        char value[32], how[64];

        for (int i = 0; i < 7; i++)
            field[i] = pt_csv_field(csv, row, column[i]);
        if (strncmp(field[6], "fitted", 6) == 0) {
            field[4] = "";
            field[6] = "not determined by the runs";
        }
        for (size_t j = 0; j < f->n_params; j++) {
            const struct param *p = &f->param[j];
            size_t rows = 0;

            if (strcmp(pt_scope_name(p->scope), field[0]) != 0 ||
                strcmp(p->constant->name, field[2]) != 0 ||
                (p->key != SIZE_MAX &&
                 strcmp(pt_calibration_key(f->calibration, p->scope, p->key), field[1]) != 0))
                continue;
            for (size_t i = 0; i < f->n_rows; i++)
                rows += concerns(p, &f->row[i]);
            snprintf(value, sizeof(value), "%.4g", param_value(p));
            snprintf(how, sizeof(how), "fitted on %zu runs%s", rows,
                     p->key == SIZE_MAX ? ", shared" : "");
            field[4] = value;
            field[6] = how;
        }
        for (int i = 0; i < 7; i++)
            pt_csv_put(out, field[i], i == 0);
        pt_csv_put_end(out);
    }
    pt_csv_free(csv);
    return PT_OK;
}

int main(int argc, char **argv)
{
    if (getenv("PW")) PRIOR_WEIGHT = atof(getenv("PW"));
    if (getenv("DELTA")) DELTA = atof(getenv("DELTA"));
    unsigned K = getenv("K") ? (unsigned)atoi(getenv("K")) : 2;
    double ALPHA = getenv("ALPHA") ? atof(getenv("ALPHA")) : 0.5;
    struct fit f = { 0 };
    struct pt_error err = PT_ERROR_INIT;
    const char *mode = argc > 3 ? argv[3] : "fit";
    unsigned iterations = argc > 4 ? (unsigned)atoi(argv[4]) : 25;

    if (argc < 3) {
        fprintf(stderr, "usage: fit PROFILE_DIR RUNS.csv [none|fit|half|leave|rows] [iterations]\n");
        return 2;
    }
    if (pt_calibration_read(argv[1], NULL, PT_CALIBRATION_NONE, &f.calibration, &err) != PT_OK ||
        planner_runs_open(argv[2], argv[1], &f.runs, &err) != PT_OK ||
        load_rows(&f, &err) != PT_OK)
        return pt_report("fit", &err);
    make_params(&f);
    bool *which = malloc(f.n_rows);
    double *held = calloc(f.n_rows, sizeof(*held));

    memset(which, 1, f.n_rows);
    evaluate_all(&f);
    if (strcmp(mode, "none") == 0) {
        report(&f, which, true, stdout);
        dump_rows(&f, stderr);
        return 0;
    }
    fprintf(stderr, "%zu parameters\n", f.n_params);
    if (strcmp(mode, "half") == 0 || strcmp(mode, "all") == 0) {
        for (unsigned fold = 0; fold < K; fold++) {
            reset(&f);
            for (size_t i = 0; i < f.n_rows; i++) {
                f.row[i].weight = pow((double)f.group_rows[f.row[i].group], -ALPHA);
                if (i % K == fold)
                    f.row[i].weight = 0.0;
            }
            minimise(&f, iterations);
            evaluate_all(&f);
            for (size_t i = 0; i < f.n_rows; i++)
                if (i % K == fold)
                    held[i] = f.row[i].log_error;
        }
        for (size_t i = 0; i < f.n_rows; i++)
            f.row[i].log_error = held[i];
        printf("held-out half:\n");
        report(&f, which, true, stdout);
        for (size_t i = 0; i < f.n_rows; i++) fprintf(stderr, "%s %s %+.1f\n", f.group[f.row[i].group], f.row[i].run.id, 100*(exp(f.row[i].log_error)-1));
    }
    if (strcmp(mode, "leave") == 0 || strcmp(mode, "all") == 0) {
        for (unsigned g = 0; g < f.n_groups; g++) {
            reset(&f);
            for (size_t i = 0; i < f.n_rows; i++)
                f.row[i].weight = f.row[i].group == g
                                      ? 0.0
                                      : pow((double)f.group_rows[f.row[i].group], -ALPHA);
            minimise(&f, iterations);
            evaluate_all(&f);
            for (size_t i = 0; i < f.n_rows; i++)
                if (f.row[i].group == g)
                    held[i] = f.row[i].log_error;
        }
        for (size_t i = 0; i < f.n_rows; i++)
            f.row[i].log_error = held[i];
        printf("group left out:\n");
        report(&f, which, true, stdout);
    }
    if (strcmp(mode, "fit") == 0 || strcmp(mode, "all") == 0) {
        reset(&f);
        for (size_t i = 0; i < f.n_rows; i++)
            f.row[i].weight = pow((double)f.group_rows[f.row[i].group], -ALPHA);
        minimise(&f, iterations);
        evaluate_all(&f);
        printf("in sample:\n");
        report(&f, which, true, stdout);
        for (size_t j = 0; j < f.n_params; j++)
            fprintf(stderr, "%s,%s,%s,%g,%g %+.1f sigma\n", pt_scope_name(f.param[j].scope),
                    f.param[j].key == SIZE_MAX
                        ? "*"
                        : pt_calibration_key(f.calibration, f.param[j].scope, f.param[j].key),
                    f.param[j].constant->name, f.param[j].base, param_value(&f.param[j]),
                    f.param[j].u / f.param[j].sigma);
        dump_rows(&f, stderr);
    }
    if (strcmp(mode, "write") == 0) {
        char path[4096];

        minimise(&f, iterations);
        snprintf(path, sizeof(path), "%s/stacks.csv", argv[1]);
        if (write_file(&f, path, stdout, &err) != PT_OK)
            return pt_report("fit", &err);
    }
    return 0;
}
