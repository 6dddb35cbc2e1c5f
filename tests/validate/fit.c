/* fit PROFILE_DIR RUNS.csv MODE
 *
 * write    profiles/stacks.csv with constants fitted on all rows, to standard output
 * figures  the four figures that a reader should see side by side, and errors by group
 * groups   errors of the shipped constants by group
 * check    fails when the shipped constants, or constants fitted on one half and scored
 * on the other, are worse than what is stated below */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/validate/fit.h"

/* What `check` allows: about a tenth above what was reached. */
static const struct fit_figures shipped_limit = {
    415, 0.025, 0.014, 0.058, { 0.018, 0.025 }
};
static const struct fit_figures half_limit = {
    415, 0.036, 0.023, 0.083, { 0.028, 0.055 }
};

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

void fit_figures(const struct fit *f, FILE *groups, struct fit_figures *out)
{
    double *all = calloc(f->n_rows + 1, sizeof(*all)), count[2] = { 0.0, 0.0 };

    *out = (struct fit_figures){ .rows = f->n_rows };
    if (all == NULL || f->n_rows == 0)
        goto out;
    for (unsigned g = 0; g < f->n_groups; g++) {
        double sum = 0.0, worst = 0.0, bias = 0.0, n = (double)f->group_rows[g];
        unsigned tier = 1;

        for (size_t i = 0; i < f->n_rows; i++) {
            double e = exp(f->row[i].log_error) - 1.0;

            if (f->row[i].group != g)
                continue;
            all[i] = fabs(e);
            tier = f->row[i].tier;
            sum += fabs(e) / n;
            bias += e / n;
            worst = fmax(worst, fabs(e));
        }
        out->macro[tier - 1] += sum;
        count[tier - 1] += 1.0;
        if (groups != NULL)
            fprintf(groups,
                    "  tier %u %-16s %4.0f rows: mean %6.2f%%, worst %6.2f%%, bias "
                    "%+6.2f%%\n",
                    tier, f->group[g], n, 100.0 * sum, 100.0 * worst, 100.0 * bias);
    }
    for (int t = 0; t < 2; t++)
        out->macro[t] /= fmax(1.0, count[t]);
    for (size_t i = 0; i < f->n_rows; i++)
        out->mean += all[i] / (double)f->n_rows;
    qsort(all, f->n_rows, sizeof(*all), by_value);
    out->median = all[f->n_rows / 2];
    out->p90 = all[(size_t)(0.9 * (double)f->n_rows)];
out:
    free(all);
}

static void put_figures(const char *what, const struct fit_figures *x)
{
    printf("%-44s %4zu rows: mean %5.2f%%, median %5.2f%%, p90 %5.2f%%; "
           "macro tier 1 %5.2f%%, tier 2 %5.2f%%\n",
           what, x->rows, 100.0 * x->mean, 100.0 * x->median, 100.0 * x->p90,
           100.0 * x->macro[0], 100.0 * x->macro[1]);
}

/* Rows alternate between the halves inside their group, so that both hold every cluster.
 */
static unsigned half_of(const struct fit *f, size_t row)
{
    unsigned before = 0;

    for (size_t i = 0; i < row; i++)
        before += f->row[i].group == f->row[row].group;
    return before % 2;
}

enum held { HELD_HALF, HELD_GROUP };

/* Fits without each part, and leaves in log_error what the parts said of the rows held.
 */
static enum pt_status cross_validate(struct fit *f, enum held how, struct pt_error *err)
{
    size_t parts = how == HELD_HALF ? 2 : f->n_groups;
    double *said = calloc(f->n_rows + 1, sizeof(*said));
    enum pt_status st =
        said != NULL ? PT_OK : pt_fail(err, PT_SYSTEM, "", 0, "out of memory");

    for (size_t part = 0; part < parts && st == PT_OK; part++) {
        for (size_t i = 0; i < f->n_rows; i++)
            f->row[i].held = (how == HELD_HALF ? half_of(f, i) : f->row[i].group) == part;
        fit_reset(f);
        st = fit_minimise(f, err);
        fit_evaluate(f);
        for (size_t i = 0; i < f->n_rows; i++)
            if (f->row[i].held)
                said[i] = f->row[i].log_error;
    }
    for (size_t i = 0; i < f->n_rows && st == PT_OK; i++) {
        f->row[i].log_error = said[i];
        f->row[i].held = false;
    }
    free(said);
    return st;
}

/* The datasheet's predictions times one factor per (stack, device), the median over the
 * other half of the rows. */
static void one_scale(struct fit *f)
{
    double *raw = calloc(2 * f->n_rows + 1, sizeof(*raw)), *ratio = raw + f->n_rows;

    fit_reset(f);
    fit_evaluate(f);
    for (size_t i = 0; i < f->n_rows && raw != NULL; i++)
        raw[i] = f->row[i].log_error;
    for (size_t i = 0; i < f->n_rows && raw != NULL; i++) {
        const struct fit_row *r = &f->row[i];
        size_t n = 0;

        for (size_t j = 0; j < f->n_rows; j++)
            if (f->row[j].key[PT_SCOPE_STACK] == r->key[PT_SCOPE_STACK] &&
                f->row[j].key[PT_SCOPE_DEVICE] == r->key[PT_SCOPE_DEVICE] &&
                half_of(f, j) != half_of(f, i))
                ratio[n++] = raw[j];
        qsort(ratio, n, sizeof(*ratio), by_value);
        f->row[i].log_error = raw[i] - (n > 0 ? ratio[n / 2] : 0.0);
    }
    free(raw);
}

static enum pt_status figures(struct fit *f, struct pt_error *err)
{
    struct fit_figures x;
    enum pt_status st;

    fit_reset(f);
    fit_evaluate(f);
    fit_figures(f, NULL, &x);
    put_figures("datasheets and microbenchmarks only", &x);
    one_scale(f);
    fit_figures(f, NULL, &x);
    put_figures("one scale per stack and GPU, on the other half", &x);
    st = cross_validate(f, HELD_HALF, err);
    if (st != PT_OK)
        return st;
    fit_figures(f, NULL, &x);
    put_figures("all constants, on the other half", &x);
    st = cross_validate(f, HELD_GROUP, err);
    if (st != PT_OK)
        return st;
    fit_figures(f, stdout, &x);
    put_figures("all constants, on a group left out", &x);
    return PT_OK;
}

static bool within(const char *what, const struct fit_figures *x,
                   const struct fit_figures *limit)
{
    bool good = x->rows == limit->rows && x->mean <= limit->mean &&
                x->median <= limit->median && x->p90 <= limit->p90 &&
                x->macro[0] <= limit->macro[0] && x->macro[1] <= limit->macro[1];

    put_figures(what, x);
    if (!good)
        put_figures("  more than", limit);
    return good;
}

static enum pt_status check(struct fit *shipped, struct fit *f, bool *good,
                            struct pt_error *err)
{
    struct fit_figures x;
    enum pt_status st;

    fit_evaluate(shipped);
    fit_figures(shipped, NULL, &x);
    *good = within("shipped constants", &x, &shipped_limit);
    st = cross_validate(f, HELD_HALF, err);
    fit_figures(f, NULL, &x);
    *good &= within("all constants, on the other half", &x, &half_limit);
    return st;
}

int main(int argc, char **argv)
{
    struct fit f = { 0 }, shipped = { 0 };
    struct pt_error err = PT_ERROR_INIT;
    struct fit_figures x;
    bool good = true;
    enum pt_status st;

    if (argc != 4) {
        fprintf(stderr, "usage: fit PROFILE_DIR RUNS.csv write|figures|groups|check\n");
        return 2;
    }
    st = fit_open(&f, argv[1], argv[2], PT_CALIBRATION_NONE, &err);
    if (st == PT_OK)
        st = fit_open(&shipped, argv[1], argv[2], PT_CALIBRATION_DEFAULT, &err);
    if (st == PT_OK && strcmp(argv[3], "write") == 0) {
        st = fit_minimise(&f, &err);
        if (st == PT_OK)
            st = fit_generic(&f, &err);
        if (st == PT_OK)
            st = fit_write(&f, argv[1], stdout, &err);
    } else if (st == PT_OK && strcmp(argv[3], "figures") == 0) {
        st = figures(&f, &err);
    } else if (st == PT_OK && strcmp(argv[3], "groups") == 0) {
        fit_evaluate(&shipped);
        fit_figures(&shipped, stdout, &x);
        put_figures("shipped constants", &x);
    } else if (st == PT_OK && strcmp(argv[3], "check") == 0) {
        st = check(&shipped, &f, &good, &err);
    } else if (st == PT_OK) {
        st = pt_fail(&err, PT_USAGE, "", 0,
                     "mode '%s' is none of write, figures, groups, check", argv[3]);
    }
    fit_close(&f);
    fit_close(&shipped);
    if (st != PT_OK)
        return pt_report("fit", &err);
    return good ? 0 : 1;
}
