/* profiles/stacks.csv: one row per (scope, key, constant), with the datasheet's value,
 * the fitted one, the unit and how it was found. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libpt/calibration.h"
#include "libpt/csv.h"

#define X(name, dflt, lo, hi, unit, help)                                                \
    { #name, offsetof(struct pt_stack, name), dflt, lo, hi, unit, help },
static const struct pt_constant stack_constants[] = { PT_STACK_CONSTANTS(X) };
#undef X
#define X(name, dflt, lo, hi, unit, help)                                                \
    { #name, offsetof(struct pt_device, name), dflt, lo, hi, unit, help },
static const struct pt_constant device_constants[] = { PT_DEVICE_CONSTANTS(X) };
#undef X
#define X(name, dflt, lo, hi, unit, help)                                                \
    { #name, offsetof(struct pt_network, name), dflt, lo, hi, unit, help },
static const struct pt_constant network_constants[] = { PT_NETWORK_CONSTANTS(X) };
#undef X

#define X(name, dflt, lo, hi, unit, help)                                                \
    { #name, offsetof(struct pt_machine, name), dflt, lo, hi, unit, help },
static const struct pt_constant machine_constants[] = { PT_MACHINE_CONSTANTS(X) };
#undef X

#define PT_MAX_KEYS 64

struct pt_calibration {
    size_t n[PT_N_ALL_SCOPES];
    struct pt_stack stack[PT_MAX_KEYS];
    struct pt_device device[PT_MAX_KEYS];
    struct pt_network network[PT_MAX_KEYS];
    struct pt_machine machine[PT_MAX_KEYS];
};

const struct pt_constant *pt_constants(enum pt_scope scope, size_t *n)
{
    switch (scope) {
    case PT_SCOPE_STACK:
        *n = sizeof(stack_constants) / sizeof(stack_constants[0]);
        return stack_constants;
    case PT_SCOPE_DEVICE:
        *n = sizeof(device_constants) / sizeof(device_constants[0]);
        return device_constants;
    case PT_SCOPE_MACHINE:
        *n = sizeof(machine_constants) / sizeof(machine_constants[0]);
        return machine_constants;
    default:
        *n = sizeof(network_constants) / sizeof(network_constants[0]);
        return network_constants;
    }
}

const char *pt_scope_name(enum pt_scope scope)
{
    static const char *const names[] = { "stack", "device", "network", "machine" };

    return names[scope];
}

/* The record of a key. Every record begins with its key. */
static char *record(struct pt_calibration *c, enum pt_scope scope, size_t i)
{
    switch (scope) {
    case PT_SCOPE_STACK:
        return c->stack[i].key;
    case PT_SCOPE_DEVICE:
        return c->device[i].key;
    case PT_SCOPE_MACHINE:
        return c->machine[i].key;
    default:
        return c->network[i].key;
    }
}

static const char *const_record(const struct pt_calibration *c, enum pt_scope scope,
                                size_t i)
{
    switch (scope) {
    case PT_SCOPE_STACK:
        return c->stack[i].key;
    case PT_SCOPE_DEVICE:
        return c->device[i].key;
    case PT_SCOPE_MACHINE:
        return c->machine[i].key;
    default:
        return c->network[i].key;
    }
}

static void set_value(char *base, const struct pt_constant *k, double value)
{
    memcpy(base + k->offset, &value, sizeof(value));
}

static void set_defaults(char *base, enum pt_scope scope)
{
    size_t n;
    const struct pt_constant *k = pt_constants(scope, &n);

    for (size_t i = 0; i < n; i++)
        set_value(base, &k[i], k[i].dflt);
}

static const struct pt_constant *find_constant(enum pt_scope scope, const char *name)
{
    size_t n;
    const struct pt_constant *k = pt_constants(scope, &n);

    for (size_t i = 0; i < n; i++)
        if (strcmp(k[i].name, name) == 0)
            return &k[i];
    return NULL;
}

/* The index of a key, or n when there is none. */
static size_t find_key(const struct pt_calibration *c, enum pt_scope scope,
                       const char *key)
{
    size_t i = 0;

    while (i < c->n[scope] && strcmp(const_record(c, scope, i), key) != 0)
        i++;
    return i;
}

static enum pt_status read_row(struct pt_calibration *c, const struct pt_csv *csv,
                               const char *path, size_t row, const int *column,
                               enum pt_calibration_kind kind, struct pt_error *err)
{
    const char *scope_text = pt_csv_field(csv, row, column[0]);
    const char *key = pt_csv_field(csv, row, column[1]);
    const char *name = pt_csv_field(csv, row, column[2]);
    int line = pt_csv_line(csv, row), scope = 0;
    const struct pt_constant *k;
    enum pt_status st;
    double value;
    size_t i;

    while (scope < PT_N_ALL_SCOPES &&
           strcmp(pt_scope_name((enum pt_scope)scope), scope_text) != 0)
        scope++;
    if (scope == PT_N_ALL_SCOPES)
        return pt_fail(err, PT_INPUT, path, line,
                       "scope '%s' is none of stack, device, network, machine",
                       scope_text);
    k = find_constant((enum pt_scope)scope, name);
    if (k == NULL)
        return pt_fail(err, PT_INPUT, path, line, "'%s' is no constant of a %s", name,
                       scope_text);
    if (key[0] == '\0' || strlen(key) >= sizeof(c->stack[0].key))
        return pt_fail(err, PT_INPUT, path, line, "key '%s' is empty or above %zu bytes",
                       key, sizeof(c->stack[0].key) - 1);
    st = pt_csv_number(csv, row, column[3], k->dflt, &value, err);
    if (st == PT_OK && kind != PT_CALIBRATION_NONE)
        st = pt_csv_number(csv, row, column[4], value, &value, err);
    if (st != PT_OK)
        return st;
    if (!(value >= k->low && value <= k->high))
        return pt_fail(err, PT_INPUT, path, line, "%s of %s is %g, outside [%g, %g]",
                       name, key, value, k->low, k->high);
    i = find_key(c, (enum pt_scope)scope, key);
    if (i == c->n[scope]) {
        if (i == PT_MAX_KEYS)
            return pt_fail(err, PT_INPUT, path, line, "more than %d keys of a scope",
                           PT_MAX_KEYS);
        c->n[scope]++;
        snprintf(record(c, (enum pt_scope)scope, i), sizeof(c->stack[0].key), "%s", key);
        set_defaults(record(c, (enum pt_scope)scope, i), (enum pt_scope)scope);
    }
    set_value(record(c, (enum pt_scope)scope, i), k, value);
    return PT_OK;
}

enum pt_status pt_calibration_read(const char *profile_dir, const char *path,
                                   enum pt_calibration_kind kind,
                                   struct pt_calibration **calibration,
                                   struct pt_error *err)
{
    static const char *const names[] = { "scope", "key", "constant", "datasheet",
                                         "fitted" };
    struct pt_calibration *c = NULL;
    struct pt_csv *csv = NULL;
    char file[4096];
    int column[5];
    enum pt_status st;

    *calibration = NULL;
    if (path == NULL) {
        snprintf(file, sizeof(file), "%s/stacks.csv", profile_dir);
        path = file;
    }
    st = pt_csv_read(path, &csv, err);
    if (st != PT_OK)
        goto out;
    for (int i = 0; i < 5; i++) {
        column[i] = pt_csv_column(csv, names[i]);
        if (column[i] < 0) {
            st = pt_fail(err, PT_INPUT, path, 0, "no column '%s'", names[i]);
            goto out;
        }
    }
    c = calloc(1, sizeof(*c));
    if (c == NULL) {
        st = pt_fail(err, PT_SYSTEM, path, 0, "out of memory");
        goto out;
    }
    for (size_t row = 0; row < pt_csv_rows(csv) && st == PT_OK; row++)
        st = read_row(c, csv, path, row, column, kind, err);
out:
    pt_csv_free(csv);
    if (st == PT_OK)
        *calibration = c;
    else
        free(c);
    return st;
}

void pt_calibration_free(struct pt_calibration *calibration)
{
    free(calibration);
}

/* One body for three record types: copies the record of the key, else of "generic", else
 * the defaults. */
static void lookup(const struct pt_calibration *c, enum pt_scope scope, const char *key,
                   char *out, size_t size, bool *known)
{
    size_t i = find_key(c, scope, key);

    if (known != NULL)
        *known = i < c->n[scope];
    if (i == c->n[scope])
        i = find_key(c, scope, PT_CALIBRATION_GENERIC);
    if (i < c->n[scope]) {
        memcpy(out, const_record(c, scope, i), size);
    } else {
        memset(out, 0, size);
        set_defaults(out, scope);
    }
    snprintf(out, sizeof(c->stack[0].key), "%.23s", key);
}

void pt_calibration_stack(const struct pt_calibration *c, const char *key,
                          struct pt_stack *stack, bool *known)
{
    lookup(c, PT_SCOPE_STACK, key, (char *)stack, sizeof(*stack), known);
}

void pt_calibration_device(const struct pt_calibration *c, const char *family,
                           struct pt_device *device, bool *known)
{
    lookup(c, PT_SCOPE_DEVICE, family, (char *)device, sizeof(*device), known);
}

void pt_calibration_network(const struct pt_calibration *c, const char *key,
                            struct pt_network *network, bool *known)
{
    lookup(c, PT_SCOPE_NETWORK, key, (char *)network, sizeof(*network), known);
}

static void replace(double *value, double measured)
{
    if (measured > 0.0)
        *value = measured;
}

void pt_calibration_machine(const struct pt_calibration *c, const char *family,
                            struct pt_cluster *cluster)
{
    struct pt_machine m;
    double host = cluster->cpu_adam_params_per_s;

    lookup(c, PT_SCOPE_MACHINE, family, (char *)&m, sizeof(m), NULL);
    replace(&cluster->gpu.peak_flops[PT_FP32], m.fp32_flops);
    replace(&cluster->gpu.hbm_bytes_per_s, m.memory_bytes_per_s);
    replace(&cluster->gpu.h2d_bytes_per_s, m.copy_bytes_per_s);
    replace(&cluster->gpu.d2h_bytes_per_s, m.copy_bytes_per_s);
    replace(&cluster->link.allreduce_bytes_per_s, m.allreduce_bytes_per_s);
    replace(&cluster->link.allgather_bytes_per_s, m.gather_bytes_per_s);
    replace(&cluster->link.p2p_bytes_per_s, m.message_bytes_per_s);
    replace(&cluster->link.half_bytes, m.half_bytes);
    replace(&host, m.adam_params_per_s * cluster->node_gpus); /* of the whole host */
    cluster->cpu_adam_params_per_s = host;
}

size_t pt_calibration_keys(const struct pt_calibration *c, enum pt_scope scope)
{
    return c->n[scope];
}

const char *pt_calibration_key(const struct pt_calibration *c, enum pt_scope scope,
                               size_t index)
{
    return index < c->n[scope] ? const_record(c, scope, index) : NULL;
}

enum pt_status pt_calibration_set(struct pt_calibration *c, enum pt_scope scope,
                                  const char *key, const char *constant, double value)
{
    const struct pt_constant *k = find_constant(scope, constant);
    size_t i = find_key(c, scope, key);

    if (k == NULL || i == c->n[scope])
        return PT_USAGE;
    set_value(record(c, scope, i), k, value);
    return PT_OK;
}
