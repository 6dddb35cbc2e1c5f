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

/* Loads of the pieces of a plan's model in model order: pp * vpp of them, each chunk
 * priced like a stage of its own. */
struct pt_stage_load;
enum pt_status pt_piece_loads(const struct pt_plan *plan, const struct pt_costs *costs,
                              struct pt_stage_load *load, struct pt_error *err);

#endif
