/* Minimises  sum_rows w rho(log(predicted / measured)) + prior sum_params (u / sigma)^2
 *
 * rho(e) = d^2 (sqrt(1 + (e / d)^2) - 1), the pseudo-Huber loss: measured runs hold
 * outliers. A row weighs 1 / sqrt(rows of its group), between equal rows and equal
 * groups. Damped Gauss-Newton with reweighting (Levenberg 1944, Marquardt 1963), steps
 * kept inside the bounds. No randomness and no clock: the same rows give the same
 * constants. */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/validate/fit.h"

#define DELTA      0.03 /* of log error: where the loss turns linear */
#define PRIOR      3e-5
#define ITERATIONS 60
#define MAX_STEP   0.5

static void apply(struct fit *f, const struct fit_param *p)
{
    for (size_t k = 0; k < pt_calibration_keys(f->calibration, p->scope); k++)
        if (p->key == SIZE_MAX || p->key == k)
            pt_calibration_set(f->calibration, p->scope,
                               pt_calibration_key(f->calibration, p->scope, k),
                               p->constant->name, fit_value(p));
}

static void set_u(struct fit *f, struct fit_param *p, double u)
{
    double low = p->constant->low, high = p->constant->high;
    double lo = p->scale > 0.0 ? (low - p->base) / p->scale : log(low / p->base);
    double hi = p->scale > 0.0 ? (high - p->base) / p->scale : log(high / p->base);

    p->u = fmin(fmax(u, lo), hi);
    apply(f, p);
}

void fit_reset(struct fit *f)
{
    for (size_t j = 0; j < f->n_params; j++)
        set_u(f, &f->param[j], 0.0);
}

static double predict(struct fit *f, struct fit_row *r)
{
    struct pt_costs costs;
    struct pt_step step;

    planner_run_calibrate(&r->run, f->calibration, NULL);
    pt_costs_init(&r->run.setup, &r->run.layout, &costs);
    pt_step_time(&r->run.setup, &r->run.layout, &costs, &r->run.split, true, &step);
    return log(step.step_s / r->measured_s);
}

void fit_evaluate(struct fit *f)
{
    for (size_t i = 0; i < f->n_rows; i++)
        f->row[i].log_error = predict(f, &f->row[i]);
}

static double weight_of(const struct fit *f, const struct fit_row *r)
{
    double n = (double)f->group_rows[r->group];

    return r->held ? 0.0 : 1.0 / (f->equal_groups ? n : sqrt(n));
}

static double total_loss(struct fit *f)
{
    double sum = 0.0;

    for (size_t i = 0; i < f->n_rows; i++) {
        struct fit_row *r = &f->row[i];
        double w = weight_of(f, r), e;

        if (!(w > 0.0))
            continue;
        e = r->log_error = predict(f, r);
        sum += w * DELTA * DELTA * (sqrt(1.0 + e * e / (DELTA * DELTA)) - 1.0);
    }
    for (size_t j = 0; j < f->n_params; j++) {
        const struct fit_param *p = &f->param[j];

        sum += PRIOR * p->u * p->u / (p->sigma * p->sigma);
    }
    return sum;
}

/* A x = b in place by Cholesky; false when A is not positive definite. */
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

/* jac[i][j]: derivative of row i's log error by u of parameter j. */
static void jacobian(struct fit *f, double *jac)
{
    size_t n = f->n_params;

    memset(jac, 0, f->n_rows * n * sizeof(*jac));
    for (size_t j = 0; j < n; j++) {
        struct fit_param *p = &f->param[j];
        double u = p->u, h = 1e-4;

        p->u = u + h;
        if (fit_value(p) >= p->constant->high) {
            h = -h;
            p->u = u + h;
        }
        apply(f, p);
        for (size_t i = 0; i < f->n_rows; i++) {
            struct fit_row *r = &f->row[i];

            if (!r->held && fit_concerns(p, r))
                jac[i * n + j] = (predict(f, r) - r->log_error) / h;
        }
        p->u = u;
        apply(f, p);
    }
}

static void normal_equations(struct fit *f, const double *jac, double *a, double *b)
{
    size_t n = f->n_params;

    memset(a, 0, n * n * sizeof(*a));
    memset(b, 0, n * sizeof(*b));
    for (size_t i = 0; i < f->n_rows; i++) {
        const struct fit_row *r = &f->row[i];
        double e = r->log_error;
        double w = weight_of(f, r) / sqrt(1.0 + e * e / (DELTA * DELTA));

        for (size_t j = 0; j < n && w > 0.0; j++) {
            double x = jac[i * n + j];

            if (x == 0.0)
                continue;
            b[j] -= w * x * e;
            for (size_t k = 0; k <= j; k++)
                a[j * n + k] += w * x * jac[i * n + k];
        }
    }
    for (size_t j = 0; j < n; j++) {
        const struct fit_param *p = &f->param[j];
        double w = 2.0 * PRIOR / (p->sigma * p->sigma);

        a[j * n + j] += w;
        b[j] -= w * p->u;
    }
}

/* One step that lowers the loss, with as much damping as that takes; false when none
 * does. */
static bool improve(struct fit *f, double *loss, double *damp, const double *a,
                    const double *b, double *work)
{
    size_t n = f->n_params;
    double *m = work, *x = work + n * n, *old = x + n;

    for (size_t j = 0; j < n; j++)
        old[j] = f->param[j].u;
    for (unsigned attempt = 0; attempt < 8; attempt++) {
        memcpy(m, a, n * n * sizeof(*m));
        memcpy(x, b, n * sizeof(*x));
        for (size_t j = 0; j < n; j++)
            m[j * n + j] *= 1.0 + *damp;
        if (solve(m, x, n)) {
            for (size_t j = 0; j < n; j++)
                set_u(f, &f->param[j], old[j] + fmin(fmax(x[j], -MAX_STEP), MAX_STEP));
            double now = total_loss(f);

            if (now < *loss) {
                *loss = now;
                *damp = fmax(*damp * 0.3, 1e-6);
                return true;
            }
        }
        *damp *= 5.0;
    }
    for (size_t j = 0; j < n; j++)
        set_u(f, &f->param[j], old[j]);
    total_loss(f);
    return false;
}

enum pt_status fit_minimise(struct fit *f, struct pt_error *err)
{
    size_t n = f->n_params;
    double *jac = calloc(f->n_rows * n + 1, sizeof(*jac));
    double *a = calloc(n * n + 1, sizeof(*a)), *b = calloc(n + 1, sizeof(*b));
    double *work = calloc(n * n + 2 * n + 1, sizeof(*work));
    enum pt_status st = PT_OK;

    if (jac == NULL || a == NULL || b == NULL || work == NULL) {
        st = pt_fail(err, PT_SYSTEM, "", 0, "out of memory");
        goto out;
    }
    double damp = 1e-2, loss = total_loss(f);

    for (unsigned i = 0; i < ITERATIONS; i++) {
        double before = loss;

        jacobian(f, jac);
        normal_equations(f, jac, a, b);
        if (!improve(f, &loss, &damp, a, b, work) || before - loss < 1e-6 * before)
            break;
    }
out:
    free(jac);
    free(a);
    free(b);
    free(work);
    return st;
}
