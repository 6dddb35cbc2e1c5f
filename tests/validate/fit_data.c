/* Rows and unknowns. */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/validate/fit.h"
#include "tests/validate/fit_priors.h"

#define MAX_PARAMS 2048

double fit_value(const struct fit_param *p)
{
    double v = p->scale > 0.0 ? p->base + p->scale * p->u : p->base * exp(p->u);

    return fmin(fmax(v, p->constant->low), p->constant->high);
}

bool fit_concerns(const struct fit_param *p, const struct fit_row *r)
{
    return p->key == SIZE_MAX || r->key[p->scope] == p->key;
}

static size_t key_index(const struct pt_calibration *c, enum pt_scope scope,
                        const char *key)
{
    size_t n = pt_calibration_keys(c, scope), i = 0;

    while (i < n && strcmp(pt_calibration_key(c, scope, i), key) != 0)
        i++;
    return i;
}

static unsigned group_index(struct fit *f, const char *name)
{
    unsigned i = 0;

    while (i < f->n_groups && strcmp(f->group[i], name) != 0)
        i++;
    if (i == f->n_groups && i < FIT_MAX_GROUPS)
        f->group[f->n_groups++] = name;
    return i;
}

static enum pt_status add_row(struct fit *f, size_t i, struct pt_error *err)
{
    struct fit_row *r = &f->row[f->n_rows];
    const char *tier = planner_runs_text(f->runs, i, "time_tier");
    enum pt_status st;

    if (strcmp(tier, "1") != 0 && strcmp(tier, "2") != 0)
        return PT_OK;
    st = planner_runs_row(f->runs, i, &r->run, err);
    if (st != PT_OK)
        return st;
    r->measured_s = atof(planner_runs_text(f->runs, i, "step_time_s"));
    r->group = group_index(f, planner_runs_text(f->runs, i, "group"));
    if (!(r->measured_s > 0.0) || r->group == FIT_MAX_GROUPS)
        return pt_fail(err, PT_INPUT, r->run.id, 0, "no step time, or too many groups");
    r->tier = (unsigned)(tier[0] - '0');
    r->key[PT_SCOPE_STACK] =
        key_index(f->calibration, PT_SCOPE_STACK, r->run.setup.stack.key);
    r->key[PT_SCOPE_DEVICE] =
        key_index(f->calibration, PT_SCOPE_DEVICE, r->run.setup.cluster.gpu.family);
    r->key[PT_SCOPE_NETWORK] =
        key_index(f->calibration, PT_SCOPE_NETWORK, r->run.setup.cluster.network);
    f->group_rows[r->group]++;
    f->n_rows++;
    return PT_OK;
}

static double value_of(const struct pt_calibration *c, enum pt_scope scope, size_t key,
                       const struct pt_constant *k)
{
    const char *name = pt_calibration_key(c, scope, key);
    struct pt_stack s;
    struct pt_device d;
    struct pt_network n;
    const char *base = (const char *)&n;
    double v;

    if (scope == PT_SCOPE_STACK) {
        pt_calibration_stack(c, name, &s, NULL);
        base = (const char *)&s;
    } else if (scope == PT_SCOPE_DEVICE) {
        pt_calibration_device(c, name, &d, NULL);
        base = (const char *)&d;
    } else {
        pt_calibration_network(c, name, &n, NULL);
    }
    memcpy(&v, base + k->offset, sizeof(v));
    return v;
}

/* What a stack does not do at all stays at zero. */
static bool may_be_absent(const char *name)
{
    return strcmp(name, "owner_s") == 0 || strcmp(name, "score_bytes") == 0;
}

static void add_params(struct fit *f, enum pt_scope scope, const struct pt_constant *k,
                       double sigma, bool shared)
{
    size_t keys = shared ? 1 : pt_calibration_keys(f->calibration, scope);

    for (size_t key = 0; key < keys && f->n_params < MAX_PARAMS; key++) {
        struct fit_param p = { .scope = scope,
                               .constant = k,
                               .key = shared ? SIZE_MAX : key,
                               .base = value_of(f->calibration, scope, key, k),
                               .sigma = sigma };
        bool used = false;

        if (p.base == 0.0 && may_be_absent(k->name))
            continue;
        if (!(k->low > 0.0)) {
            p.scale = sigma;
            p.sigma = 1.0;
        }
        for (size_t i = 0; i < f->n_rows && !used; i++)
            used = fit_concerns(&p, &f->row[i]);
        if (used)
            f->param[f->n_params++] = p;
    }
}

static void find_params(struct fit *f)
{
    for (int s = 0; s < PT_N_SCOPES; s++) {
        size_t n;
        const struct pt_constant *k = pt_constants((enum pt_scope)s, &n);

        for (size_t c = 0; c < n; c++)
            for (size_t i = 0; i < sizeof(fit_priors) / sizeof(fit_priors[0]); i++)
                if (strcmp(fit_priors[i].name, k[c].name) == 0)
                    add_params(f, (enum pt_scope)s, &k[c], fit_priors[i].sigma,
                               fit_priors[i].shared);
    }
}

enum pt_status fit_open(struct fit *f, const char *profile_dir, const char *runs,
                        enum pt_calibration_kind kind, struct pt_error *err)
{
    enum pt_status st;

    *f = (struct fit){ 0 };
    st = pt_calibration_read(profile_dir, NULL, kind, &f->calibration, err);
    if (st == PT_OK)
        st = planner_runs_open(runs, profile_dir, &f->runs, err);
    if (st != PT_OK)
        return st;
    f->row = calloc(planner_runs_count(f->runs) + 1, sizeof(*f->row));
    f->param = calloc(MAX_PARAMS, sizeof(*f->param));
    if (f->row == NULL || f->param == NULL)
        return pt_fail(err, PT_SYSTEM, runs, 0, "out of memory");
    for (size_t i = 0; i < planner_runs_count(f->runs) && st == PT_OK; i++)
        st = add_row(f, i, err);
    find_params(f);
    return st;
}

void fit_close(struct fit *f)
{
    for (size_t i = 0; i < f->n_rows; i++)
        pt_split_fini(&f->row[i].run.split);
    free(f->row);
    free(f->param);
    planner_runs_close(f->runs);
    pt_calibration_free(f->calibration);
}

/* The file again, with the fitted values of this fit; rows that are not fitted as they
 * were. */
static void write_row(const struct fit *f, const char *field[7], FILE *out)
{
    char value[32], how[64];

    if (strncmp(field[6], "fitted", 6) == 0) {
        field[4] = "";
        field[6] = "not determined by the runs";
    }
    for (size_t j = 0; j < f->n_params; j++) {
        const struct fit_param *p = &f->param[j];
        size_t rows = 0;

        if (strcmp(pt_scope_name(p->scope), field[0]) != 0 ||
            strcmp(p->constant->name, field[2]) != 0 ||
            (p->key != SIZE_MAX &&
             strcmp(pt_calibration_key(f->calibration, p->scope, p->key), field[1]) != 0))
            continue;
        for (size_t i = 0; i < f->n_rows; i++)
            rows += fit_concerns(p, &f->row[i]);
        snprintf(value, sizeof(value), "%.4g", fit_value(p));
        snprintf(how, sizeof(how), "fitted on %zu runs%s", rows,
                 p->key == SIZE_MAX ? "; shared" : "");
        field[4] = value;
        field[6] = how;
    }
    for (int i = 0; i < 7; i++)
        pt_csv_put(out, field[i], i == 0);
    pt_csv_put_end(out);
}

enum pt_status fit_write(const struct fit *f, const char *profile_dir, FILE *out,
                         struct pt_error *err)
{
    static const char *const names[] = { "scope",  "key",  "constant", "datasheet",
                                         "fitted", "unit", "how" };
    char path[4096];
    const char *field[7];
    int column[7];
    struct pt_csv *csv;
    enum pt_status st;

    snprintf(path, sizeof(path), "%s/stacks.csv", profile_dir);
    st = pt_csv_read(path, &csv, err);
    if (st != PT_OK)
        return st;
    for (int i = 0; i < 7; i++) {
        column[i] = pt_csv_column(csv, names[i]);
        pt_csv_put(out, names[i], i == 0);
    }
    pt_csv_put_end(out);
    for (size_t row = 0; row < pt_csv_rows(csv); row++) {
        for (int i = 0; i < 7; i++)
            field[i] = pt_csv_field(csv, row, column[i]);
        write_row(f, field, out);
    }
    pt_csv_free(csv);
    if (fflush(out) != 0 || ferror(out))
        return pt_fail(err, PT_SYSTEM, "standard output", 0, "short write");
    return PT_OK;
}
