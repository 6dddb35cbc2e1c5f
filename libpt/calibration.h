/* The constants of the cost model: what a software stack, a device and a network add to
 * the datasheet. One X-macro drives the struct, the file, the fit and the documentation.
 *
 * profiles/stacks.csv holds a row per (scope, key, constant) with the value from
 * datasheets and published microbenchmarks, the value fitted on measured runs, and how it
 * was fitted. */
#ifndef PT_CALIBRATION_H
#define PT_CALIBRATION_H

#include <stdbool.h>
#include <stddef.h>

#include "libpt/error.h"
#include "libpt/hardware.h"

/* name, datasheet default, lower bound, upper bound, unit, meaning.
 * (The lists are owned by the cost model; see calibration.c for sources.) */
#include "libpt/calibration_constants.h"

struct pt_stack {
    char key[24];
#define X(name, dflt, lo, hi, unit, help) double name;
    PT_STACK_CONSTANTS(X)
#undef X
};
struct pt_device {
    char key[24]; /* pt_gpu.family */
#define X(name, dflt, lo, hi, unit, help) double name;
    PT_DEVICE_CONSTANTS(X)
#undef X
};
struct pt_network {
    char key[24];
#define X(name, dflt, lo, hi, unit, help) double name;
    PT_NETWORK_CONSTANTS(X)
#undef X
};

struct pt_machine {
    char key[24]; /* pt_gpu.family; 0: not measured */
#define X(name, dflt, lo, hi, unit, help) double name;
    PT_MACHINE_CONSTANTS(X)
#undef X
};

enum pt_calibration_kind {
    PT_CALIBRATION_NONE,   /* datasheets and published microbenchmarks only */
    PT_CALIBRATION_DEFAULT /* fitted to measured runs */
};

/* The lists as data: the fit, the reader and the manual walk them. */
enum pt_scope {
    PT_SCOPE_STACK,
    PT_SCOPE_DEVICE,
    PT_SCOPE_NETWORK,
    PT_N_SCOPES, /* that are fitted */
    PT_SCOPE_MACHINE = PT_N_SCOPES,
    PT_N_ALL_SCOPES
};
struct pt_constant {
    const char *name;
    size_t offset; /* of the double in its struct */
    double dflt, low, high;
    const char *unit, *meaning;
};
const struct pt_constant *pt_constants(enum pt_scope scope, size_t *n);
const char *pt_scope_name(enum pt_scope scope); /* "stack" .. "machine" */

/* The whole table, read once. */
struct pt_calibration;
/* path NULL: profiles/stacks.csv of profile_dir. */
enum pt_status pt_calibration_read(const char *profile_dir, const char *path,
                                   enum pt_calibration_kind kind,
                                   struct pt_calibration **calibration,
                                   struct pt_error *err);
void pt_calibration_free(struct pt_calibration *calibration);

/* The record that stands for software and networks which nobody measured. */
#define PT_CALIBRATION_GENERIC "generic"

/* The three records for a key. An unknown key gives the generic record, or the defaults
 * where there is none, and *known = false, so that the caller can warn; known may be
 * NULL. */
void pt_calibration_stack(const struct pt_calibration *c, const char *key,
                          struct pt_stack *stack, bool *known);
void pt_calibration_device(const struct pt_calibration *c, const char *family,
                           struct pt_device *device, bool *known);
void pt_calibration_network(const struct pt_calibration *c, const char *key,
                            struct pt_network *network, bool *known);

/* Measured rates, where the table has some: they replace the cluster's. */
void pt_calibration_machine(const struct pt_calibration *c, const char *family,
                            struct pt_cluster *cluster);

/* The fit's view: the keys of a scope in file order (NULL past the end), and a new value
 * for a constant (PT_USAGE: no such key or constant). */
size_t pt_calibration_keys(const struct pt_calibration *c, enum pt_scope scope);
const char *pt_calibration_key(const struct pt_calibration *c, enum pt_scope scope,
                               size_t index);
enum pt_status pt_calibration_set(struct pt_calibration *c, enum pt_scope scope,
                                  const char *key, const char *constant, double value);

#endif
