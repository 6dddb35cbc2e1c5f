/* A request carried out: search, then what was asked for: plan, report, text or records.
 */
#ifndef PLANNER_RUN_H
#define PLANNER_RUN_H

#include <stdio.h>

#include "planner/options.h"
#include "planner/verify.h"

/* Writes the plan and the report first, then prints on `out`; nothing is printed after an
 * error. Warnings, and what fits when nothing does, go to `notes`. PT_LIMIT: the best so
 * far was printed. verifier gives the second opinion for --verify; NULL: there is none.
 */
enum pt_status planner_run(const struct planner_given *given, const char *profile_dir,
                           planner_verifier *verifier, FILE *out, FILE *notes,
                           struct pt_error *err);

#endif
