/* The one list of instructions that belongs to a plan: simulator and executor both take
 * it. */
#ifndef PT_SCHEDULE_PLAN_H
#define PT_SCHEDULE_PLAN_H

#include "libpt/plan.h"
#include "libpt/schedule.h"

/* Prices the plan's stages (what steers the searched schedules), builds the whole step
 * and checks it. */
enum pt_status pt_schedule_of_plan(const struct pt_plan *plan,
                                   struct pt_schedule *schedule, struct pt_error *err);

/* Bytes that each stage of a plan holds whatever runs (static_bytes: pp) and per
 * micro-batch of a chunk (chunk_bytes: [chunk * pp + stage]), by the memory model's
 * steady step; and what the fullest stage allocates by that model. */
void pt_plan_holdings(const struct pt_plan *plan, double *static_bytes,
                      double *chunk_bytes, double *most_bytes);

/* Loads of the pieces of a plan's model in model order: pp * vpp of them, each chunk
 * priced like a stage of its own. */
struct pt_stage_load;
enum pt_status pt_piece_loads(const struct pt_plan *plan, const struct pt_costs *costs,
                              struct pt_stage_load *load, struct pt_error *err);

#endif
