/* ptplan --evaluate: the prediction for every row of a CSV of runs; no search. */
#ifndef PLANNER_EVALUATE_H
#define PLANNER_EVALUATE_H

#include <stddef.h>
#include <stdio.h>

#include "libpt/calibration.h"
#include "libpt/csv.h"
#include "libpt/setup.h"

/* Reads path ("-": standard input), writes the CSV of predictions to out, in the order of
 * the rows. A row that contradicts itself is answered with status invalid and a reason; a
 * run that does not fit with infeasible and its numbers. A stack or network without
 * constants is told once on `warnings` (may be NULL) and priced with the defaults.
 * PT_SYSTEM when out fails. */
enum pt_status planner_evaluate(const char *path,
                                const struct pt_calibration *calibration,
                                const char *profile_dir, FILE *out, FILE *warnings,
                                struct pt_error *err);

/* The same by rows, for the fit and its tests. */
struct planner_runs;
enum pt_status planner_runs_open(const char *path, const char *profile_dir,
                                 struct planner_runs **runs, struct pt_error *err);
void planner_runs_close(struct planner_runs *runs);
size_t planner_runs_count(const struct planner_runs *runs);
/* Any column's text, "" when there is none. */
const char *planner_runs_text(const struct planner_runs *runs, size_t row,
                              const char *column);

/* One row: what was given, without the constants (setup.stack.key, device.key and
 * network.key say which apply). The split is owned by the caller and reused from row to
 * row. */
struct planner_run {
    const char *id;
    struct pt_setup setup;
    struct pt_layout layout;
    struct pt_split split; /* fini after the last row */
};
/* PT_INPUT or PT_USAGE with the reason in err when the row cannot be priced. */
enum pt_status planner_runs_row(struct planner_runs *runs, size_t row,
                                struct planner_run *run, struct pt_error *err);
/* Looks the constants up; known[scope] tells whether each key has some (may be NULL). */
void planner_run_calibrate(struct planner_run *run,
                           const struct pt_calibration *calibration,
                           bool known[PT_N_SCOPES]);

#endif
