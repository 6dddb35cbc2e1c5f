/* The result for other programs: CSV and JSON, one record per plan. */
#ifndef PLANNER_FORMAT_H
#define PLANNER_FORMAT_H

#include <stdio.h>

#include "planner/search.h"

enum planner_format { PLANNER_TEXT, PLANNER_CSV, PLANNER_JSON };

/* What the search came to: the plans, or one record with status "infeasible" and the
 * sentence `reason` when there is none. Both formats hold the same fields. */
enum pt_status planner_write_csv(FILE *f, const struct pt_setup *setup,
                                 const struct planner_result *result, const char *reason,
                                 struct pt_error *err);
enum pt_status planner_write_json(FILE *f, const struct pt_setup *setup,
                                  const struct planner_result *result, const char *reason,
                                  struct pt_error *err);

/* One plan as named values. */
#define PLANNER_MAX_FIELDS 64
struct planner_field {
    const char *key;
    const char *text; /* NULL: a number */
    double number;
    bool whole;
};
struct planner_record {
    unsigned n;
    struct planner_field field[PLANNER_MAX_FIELDS];
};
void planner_record_plan(struct planner_record *record, uint32_t rank,
                         const struct pt_plan *plan);
/* A header row and one row; numbers with nine digits. */
void planner_put_header(FILE *f, const struct planner_record *record);
void planner_put_row(FILE *f, const struct planner_record *record);

#endif
