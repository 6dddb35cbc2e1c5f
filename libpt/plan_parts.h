/* The parts of plan.json that are no plain tables: stages and predictions. Private to
 * libpt/plan*.c. */
#ifndef PT_PLAN_PARTS_H
#define PT_PLAN_PARTS_H

#include "libpt/json.h"
#include "libpt/plan.h"
#include "libpt/sha256.h"

/* Ranks count up through tp first, then cp, ep, dp, pp: the only order of version 1. */
#define PLAN_RANK_ORDER "tp-cp-ep-dp-pp"

/* SHA-256 of the JSON text of the inputs and decisions of a document. */
enum pt_status plan_hash(const struct pt_json *doc, char hash[65], struct pt_error *err);

void plan_put_stages(struct pt_json *stages, const struct pt_split *split, bool moe);
void plan_put_predictions(struct pt_json *predictions, const struct pt_plan *plan);
/* Fills plan->split from the document, and checks it against plan's model and layout. */
enum pt_status plan_get_stages(const struct pt_json *doc, struct pt_plan *plan,
                               FILE *warnings, struct pt_error *err);
enum pt_status plan_get_predictions(const struct pt_json *doc, struct pt_plan *plan,
                                    FILE *warnings, struct pt_error *err);

#endif
