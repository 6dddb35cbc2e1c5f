/* plan.json, the one contract between the programs: pt-plan(5).
 * Decisions and inputs are apart from predictions; a plan is reproducible alone. */
#ifndef PT_PLAN_H
#define PT_PLAN_H

#include <stdio.h>

#include "libpt/cost.h"
#include "libpt/memory.h"
#include "libpt/setup.h"

#define PT_PLAN_VERSION 1

struct pt_plan {
    struct pt_setup setup;
    char stack_key[24], calibration[160]; /* which constants priced it */
    struct pt_layout layout;
    struct pt_split split; /* owned */
    /* Predictions; step_s == 0 when the file carries none. */
    struct pt_step step;
    struct pt_memory memory; /* owned */
    bool causal;             /* FLOP convention of mfu */
    char hash[65];           /* SHA-256 of inputs and decisions, hex; "" before writing */
};

void pt_plan_init(struct pt_plan *plan);
void pt_plan_fini(struct pt_plan *plan);
/* Fills step and memory from setup, layout and split. */
enum pt_status pt_plan_predict(struct pt_plan *plan, struct pt_error *err);
/* Reads and checks: version, `requires`, every field, pt_model_check, pt_layout_check,
 * the split's sums. Unknown keys warn on `warnings` (may be NULL). path "-" is standard
 * input. */
enum pt_status pt_plan_read(const char *path, struct pt_plan *plan, FILE *warnings,
                            struct pt_error *err);
/* The same from memory; `where` names it in messages. */
enum pt_status pt_plan_parse(const char *where, const char *text, size_t len,
                             struct pt_plan *plan, FILE *warnings, struct pt_error *err);
/* path "-" is standard output; a file is replaced atomically. */
enum pt_status pt_plan_write(const char *path, struct pt_plan *plan,
                             struct pt_error *err);

#endif
