/* score RUNS.csv PREDICTIONS.csv: errors of what ptplan --evaluate predicts, by group.
 *
 * Scored are rows whose time_tier is 1 or 2 (step time) and whose mem_tier is 1 (memory,
 * against the figure and unit that the row names); a scored row without a number counts
 * as 100%. MACRO is the mean of the groups' means. Choice of layout: over workloads with
 * three or more measured layouts, what throughput the predicted best one loses, and the
 * rank correlation (Spearman). */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libpt/csv.h"

#define MAX_GROUPS  64
#define MAX_LAYOUTS 256

struct group {
    const char *name;
    double *error;
    size_t n;
};
struct table {
    const char *title;
    struct group group[MAX_GROUPS];
    size_t n;
};
/* The layouts of one workload. */
struct set {
    char key[512];
    char layout[MAX_LAYOUTS][192];
    double real[MAX_LAYOUTS], said[MAX_LAYOUTS];
    size_t n;
};

static double number(const char *text)
{
    char *end;
    double v = strtod(text, &end);

    return end == text || *end != '\0' ? (double)NAN : v;
}

static const char *get(const struct pt_csv *csv, size_t row, const char *column)
{
    return pt_csv_field(csv, row, pt_csv_column(csv, column));
}

static int add_error(struct table *t, const char *name, double error)
{
    size_t i = 0;
    double *grown;

    while (i < t->n && strcmp(t->group[i].name, name) != 0)
        i++;
    if (i == MAX_GROUPS)
        return -1;
    if (i == t->n)
        t->group[t->n++].name = name;
    grown = realloc(t->group[i].error, (t->group[i].n + 1) * sizeof(*grown));
    if (grown == NULL)
        return -1;
    t->group[i].error = grown;
    grown[t->group[i].n++] = error;
    return 0;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct group *)a)->name, ((const struct group *)b)->name);
}

/* mean, median, p90 and worst of the magnitudes, and the mean of the errors. */
static double put_line(const char *name, const double *error, size_t n)
{
    double *a = malloc((n + 1) * sizeof(*a)), mean = 0.0, bias = 0.0;

    if (a == NULL || n == 0) {
        free(a);
        return 0.0;
    }
    for (size_t i = 0; i < n; i++) {
        a[i] = fabs(error[i]);
        mean += a[i] / (double)n;
        bias += error[i] / (double)n;
    }
    qsort(a, n, sizeof(*a), ascending);
    size_t p90 = (size_t)(0.9 * (double)n);
    double median = n % 2 == 1 ? a[n / 2] : 0.5 * (a[n / 2 - 1] + a[n / 2]);

    printf("%-18s%5zu%9.2f%9.2f%9.2f%9.2f%9.2f\n", name, n, 100.0 * mean, 100.0 * median,
           100.0 * a[p90 < n ? p90 : n - 1], 100.0 * a[n - 1], 100.0 * bias);
    free(a);
    return mean;
}

static void put_table(struct table *t)
{
    double macro = 0.0, *all = NULL;
    size_t n = 0;

    qsort(t->group, t->n, sizeof(t->group[0]), by_name);
    printf("%-18s%5s%9s%9s%9s%9s%9s\n", t->title, "n", "mean%", "median%", "p90%",
           "worst%", "bias%");
    for (size_t g = 0; g < t->n; g++) {
        double *grown = realloc(all, (n + t->group[g].n) * sizeof(*all));

        if (grown == NULL)
            break;
        all = grown;
        memcpy(all + n, t->group[g].error, t->group[g].n * sizeof(*all));
        n += t->group[g].n;
        macro +=
            put_line(t->group[g].name, t->group[g].error, t->group[g].n) / (double)t->n;
        free(t->group[g].error);
    }
    put_line("ALL", all, n);
    if (t->n > 0)
        printf("%-18s%5zu%9.2f\n\n", "MACRO", t->n, 100.0 * macro);
    free(all);
}

static void join(const struct pt_csv *runs, size_t row, const char *const *columns,
                 char *out, size_t size)
{
    size_t len = 0;

    out[0] = '\0';
    for (; *columns != NULL && len < size; columns++)
        len += (size_t)snprintf(out + len, size - len, "%s|", get(runs, row, *columns));
}

/* The last measurement of a layout counts, as in a dictionary. */
static void add_layout(struct set *sets, size_t *n_sets, size_t max,
                       const struct pt_csv *runs, size_t row, double measured,
                       double predicted)
{
    static const char *const workload[] = { "group", "model_name", "layers",  "hidden",
                                            "heads", "vocab",      "seq_len", "gpu",
                                            "gpus",  "precision",  NULL };
    static const char *const layout[] = {
        "tp",   "pp",        "vpp",      "dp",          "cp",           "ep", "sp",
        "zero", "recompute", "schedule", "micro_batch", "global_batch", NULL
    };
    char key[512], how[192];
    double tokens =
        number(get(runs, row, "global_batch")) * number(get(runs, row, "seq_len"));
    size_t i = 0, j = 0;

    join(runs, row, workload, key, sizeof(key));
    join(runs, row, layout, how, sizeof(how));
    while (i < *n_sets && strcmp(sets[i].key, key) != 0)
        i++;
    if (i == max)
        return;
    if (i == *n_sets) {
        ++*n_sets;
        memcpy(sets[i].key, key, sizeof(key));
    }
    while (j < sets[i].n && strcmp(sets[i].layout[j], how) != 0)
        j++;
    if (j == MAX_LAYOUTS)
        return;
    if (j == sets[i].n) {
        sets[i].n++;
        memcpy(sets[i].layout[j], how, sizeof(how));
    }
    sets[i].real[j] = tokens / measured;
    sets[i].said[j] = predicted > 0.0 ? tokens / predicted : 0.0;
}

/* The rank of v[i]; of equal values the earlier one comes first. */
static double rank_of(const double *v, size_t n, size_t i)
{
    double rank = 0.0;

    for (size_t j = 0; j < n; j++)
        rank += v[j] < v[i] || (v[j] == v[i] && j < i);
    return rank;
}

static void put_choice(const struct set *sets, size_t n_sets)
{
    double rho = 0.0, lost = 0.0, worst = 0.0;
    size_t counted = 0, top = 0;

    for (size_t s = 0; s < n_sets; s++) {
        const struct set *x = &sets[s];
        double low = (double)INFINITY, high = 0.0, square = 0.0, n = (double)x->n;
        size_t pick = 0;

        for (size_t i = 0; i < x->n; i++) {
            double d = rank_of(x->real, x->n, i) - rank_of(x->said, x->n, i);

            low = fmin(low, x->real[i]);
            high = fmax(high, x->real[i]);
            square += d * d;
            if (x->said[i] > x->said[pick])
                pick = i;
        }
        if (x->n < 3 || high < 1.01 * low)
            continue;
        double regret = 1.0 - x->real[pick] / high;

        counted++;
        rho += 1.0 - 6.0 * square / (n * (n * n - 1.0));
        lost += regret;
        worst = fmax(worst, regret);
        top += regret < 0.01;
    }
    if (counted > 0)
        printf("choice of layout: %zu workloads, rank correlation %.2f, best chosen "
               "(ties of 1%%) "
               "%.0f%%, throughput lost %.2f%% mean, %.1f%% worst\n",
               counted, rho / (double)counted, 100.0 * (double)top / (double)counted,
               100.0 * lost / (double)counted, 100.0 * worst);
}

/* The last row of an id, or the number of rows. */
static size_t find_prediction(const struct pt_csv *predictions, int column,
                              const char *id, size_t hint)
{
    size_t n = pt_csv_rows(predictions);

    if (hint < n && strcmp(pt_csv_field(predictions, hint, column), id) == 0)
        return hint;
    for (size_t i = n; i-- > 0;)
        if (strcmp(pt_csv_field(predictions, i, column), id) == 0)
            return i;
    return n;
}

struct verdicts {
    size_t oom, oom_missed, fitted, fitted_missed;
};

static int add_memory(struct table *memory, struct verdicts *v, const struct pt_csv *runs,
                      size_t row, const struct pt_csv *predictions, size_t p,
                      const char *status)
{
    const char *peak = get(runs, row, "peak_mem");
    char column[64];
    double gib, said;

    if (strcmp(get(runs, row, "mem_tier"), "1") != 0)
        return 0;
    if (strcmp(peak, "OOM") == 0) {
        v->oom++;
        v->oom_missed += strcmp(status, "infeasible") != 0;
        return 0;
    }
    gib = number(peak) *
          (strcmp(get(runs, row, "mem_unit"), "GB") == 0 ? 1e9 / 1073741824.0 : 1.0);
    snprintf(column, sizeof(column), "mem_%s_GiB", get(runs, row, "mem_figure"));
    said = status[0] == '\0' ? (double)NAN : number(get(predictions, p, column));
    v->fitted++;
    v->fitted_missed += strcmp(status, "ok") != 0;
    return add_error(memory, get(runs, row, "group"),
                     said > 0.0 ? said / gib - 1.0 : -1.0);
}

static int score(const struct pt_csv *runs, const struct pt_csv *predictions)
{
    struct table tier[2] = { { "step time, tier 1", { { 0 } }, 0 },
                             { "step time, tier 2", { { 0 } }, 0 } };
    struct table memory = { "peak memory", { { 0 } }, 0 };
    struct verdicts v = { 0 };
    size_t n = pt_csv_rows(runs), n_sets = 0, missing = 0;
    struct set *sets = calloc(n + 1, sizeof(*sets));
    int id = pt_csv_column(predictions, "id"), bad = sets == NULL;

    for (size_t i = 0; i < n && !bad; i++) {
        const char *time_tier = get(runs, i, "time_tier");
        size_t p = find_prediction(predictions, id, get(runs, i, "id"), i);
        const char *status =
            p < pt_csv_rows(predictions) ? get(predictions, p, "status") : "";

        if (strcmp(status, "invalid") == 0)
            status = "";
        if (strcmp(time_tier, "1") == 0 || strcmp(time_tier, "2") == 0) {
            double t = number(get(runs, i, "step_time_s"));
            double q = status[0] == '\0' ? (double)NAN
                                         : number(get(predictions, p, "step_time_s"));

            missing += isnan(q) ? 1 : 0;
            bad |= add_error(&tier[time_tier[0] - '1'], get(runs, i, "group"),
                             q > 0.0 ? q / t - 1.0 : -1.0);
            add_layout(sets, &n_sets, n, runs, i, t, q);
        }
        bad |= add_memory(&memory, &v, runs, i, predictions, p, status);
    }
    put_table(&tier[0]);
    put_table(&tier[1]);
    put_table(&memory);
    put_choice(sets, n_sets);
    printf("verdicts: %zu of %zu out-of-memory runs said to fit; %zu of %zu runs that "
           "fitted "
           "said not to\nscored runs without a prediction: %zu\n",
           v.oom_missed, v.oom, v.fitted_missed, v.fitted, missing);
    free(sets);
    return bad;
}

int main(int argc, char **argv)
{
    struct pt_error err = PT_ERROR_INIT;
    struct pt_csv *runs = NULL, *predictions = NULL;
    int status = 0;

    if (argc != 3) {
        fprintf(stderr, "usage: score RUNS.csv PREDICTIONS.csv\n");
        return 2;
    }
    if (pt_csv_read(argv[1], &runs, &err) != PT_OK ||
        pt_csv_read(argv[2], &predictions, &err) != PT_OK)
        status = pt_report("score", &err);
    else if (score(runs, predictions) != 0)
        status = 4;
    pt_csv_free(runs);
    pt_csv_free(predictions);
    return status;
}
