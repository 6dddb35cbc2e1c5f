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

/* What software that nobody measured does differently from the defaults, on average. The
 * rest are facts of a design (what overlaps, what is compiled) or of a network, where an
 * average over good and bad ones would fit neither: they stay as the file says. */
static bool is_generic(const char *name)
{
    static const char *const names[] = {
        "memory_op_mult", "loss_mult",    "attention_mult",  "layer_s", "step_s",
        "micro_batch_s",  "fsdp_exposed", "optimizer_bytes", "slack"
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

/* key SIZE_MAX: all keys of the scope that rows have. */
static void add_params(struct fit *f, enum pt_scope scope, const struct pt_constant *k,
                       size_t key, double sigma, bool shared)
{
    size_t n = pt_calibration_keys(f->calibration, scope);

    for (size_t i = shared || key != SIZE_MAX ? n - 1 : 0;
         i < n && f->n_params < MAX_PARAMS; i++) {
        size_t which = shared ? 0 : key != SIZE_MAX ? key : i;
        struct fit_param p = { .scope = scope,
                               .constant = k,
                               .key = shared ? SIZE_MAX : which,
                               .base = value_of(f->calibration, scope, which, k),
                               .sigma = sigma };

        if (p.base == 0.0 && may_be_absent(k->name))
            continue;
        if (!(k->low > 0.0)) {
            p.scale = sigma;
            p.sigma = 1.0;
        }
        for (size_t r = 0; r < f->n_rows; r++)
            p.rows += !f->row[r].held && fit_concerns(&p, &f->row[r]);
        if (p.rows > 0)
            f->param[f->n_params++] = p;
    }
}

static void find_params(struct fit *f, bool generic)
{
    for (int s = 0; s < PT_N_SCOPES; s++) {
        enum pt_scope scope = (enum pt_scope)s;
        size_t n, key = SIZE_MAX;
        const struct pt_constant *k = pt_constants(scope, &n);

        if (generic && scope == PT_SCOPE_DEVICE)
            continue;
        if (generic)
            key = key_index(f->calibration, scope, PT_CALIBRATION_GENERIC);
        for (size_t c = 0; c < n; c++)
            for (size_t i = 0; i < sizeof(fit_priors) / sizeof(fit_priors[0]); i++)
                if (strcmp(fit_priors[i].name, k[c].name) == 0 &&
                    (!generic || is_generic(k[c].name)))
                    add_params(f, scope, &k[c], key, fit_priors[i].sigma,
                               fit_priors[i].shared);
    }
}

enum pt_status fit_generic(struct fit *f, struct pt_error *err)
{
    struct fit_param *fresh = calloc(MAX_PARAMS, sizeof(*fresh));
    size_t key[PT_N_SCOPES];

    if (fresh == NULL)
        return pt_fail(err, PT_SYSTEM, "", 0, "out of memory");
    for (int s = 0; s < PT_N_SCOPES; s++)
        key[s] = key_index(f->calibration, (enum pt_scope)s, PT_CALIBRATION_GENERIC);
    memset(f->group_rows, 0, sizeof(f->group_rows));
    for (size_t i = 0; i < f->n_rows; i++) {
        struct fit_row *r = &f->row[i];
        enum pt_precision p = r->run.setup.job.precision;

        r->held = p != PT_BF16 && p != PT_FP16;
        r->key[PT_SCOPE_STACK] = key[PT_SCOPE_STACK];
        r->key[PT_SCOPE_NETWORK] = key[PT_SCOPE_NETWORK];
        strcpy(r->run.setup.stack.key, PT_CALIBRATION_GENERIC);
        strcpy(r->run.setup.cluster.network, PT_CALIBRATION_GENERIC);
        f->group_rows[r->group] += !r->held;
    }
    f->equal_groups = true;
    f->done = f->param;
    f->n_done = f->n_params;
    f->param = fresh;
    f->n_params = 0;
    find_params(f, true);
    return fit_minimise(f, err);
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
    if (st == PT_OK)
        find_params(f, false);
    return st;
}

void fit_close(struct fit *f)
{
    for (size_t i = 0; i < f->n_rows; i++)
        pt_split_fini(&f->row[i].run.split);
    free(f->row);
    free(f->param);
    free(f->done);
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
    for (size_t j = 0; j < f->n_done + f->n_params; j++) {
        const struct fit_param *p =
            j < f->n_done ? &f->done[j] : &f->param[j - f->n_done];

        if (strcmp(pt_scope_name(p->scope), field[0]) != 0 ||
            strcmp(p->constant->name, field[2]) != 0 ||
            (p->key != SIZE_MAX &&
             strcmp(pt_calibration_key(f->calibration, p->scope, p->key), field[1]) != 0))
            continue;
        snprintf(value, sizeof(value), "%.4g", fit_value(p));
        snprintf(how, sizeof(how), "fitted on %zu runs%s", p->rows,
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
