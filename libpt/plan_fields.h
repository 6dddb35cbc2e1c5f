/* The fields of plan.json as tables: one row drives writing, reading, range checks and
 * the test for unknown keys. Private to libpt/plan*.c. */
#ifndef PT_PLAN_FIELDS_H
#define PT_PLAN_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "libpt/error.h"
#include "libpt/json.h"

enum plan_type {
    PLAN_U32,
    PLAN_U64,
    PLAN_I64,
    PLAN_NUMBER,
    PLAN_BOOL,
    PLAN_TEXT,
    PLAN_ENUM
};

struct plan_names {
    const char *(*name)(unsigned value); /* the word that stands in the file */
    unsigned n;
};

struct plan_field {
    const char *key;
    enum plan_type type;
    bool optional; /* absent: the value stays what it was, with a warning */
    size_t offset;
    double lo, hi; /* of numbers; of a text: hi is the size of its array */
    const struct plan_names *names;
};

struct plan_table {
    const struct plan_field *field;
    size_t n;
};

/* Inputs and decisions. */
extern const struct plan_table plan_model, plan_gpu, plan_link, plan_cluster, plan_job,
    plan_dtypes, plan_stack, plan_device, plan_network, plan_layout;
/* Predictions. */
extern const struct plan_table plan_step, plan_memory, plan_stage_memory;

/* "file: a.b[3].key", into buf, for a message about a member of a nested object. */
const char *plan_where(char *buf, size_t size, const struct pt_json *object,
                       const char *key);

void plan_fields_write(struct pt_json *object, const struct plan_table *table,
                       const void *base);
/* warnings may be NULL. */
enum pt_status plan_fields_read(const struct pt_json *object,
                                const struct plan_table *table, void *base,
                                FILE *warnings, struct pt_error *err);
/* Warns about every key that is neither in the table nor in `others` (NULL-ended, may be
 * NULL). */
void plan_warn_unknown(const struct pt_json *object, const struct plan_table *table,
                       const char *const *others, FILE *warnings);

#endif
