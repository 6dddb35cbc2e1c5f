/* Small plans for the executor's tests, made by hand: no search, no prediction. */
#ifndef PT_TESTS_EXEC_MAKE_PLAN_H
#define PT_TESTS_EXEC_MAKE_PLAN_H

#include "libpt/plan.h"

/* A GPT-2-like model of 4 layers, 64 wide, on one rank, fp32. */
void make_plan_default(struct pt_plan *plan);
/* "pp=2": one decision or size. False when the word is not known. */
bool make_plan_set(struct pt_plan *plan, const char *word);
/* After the last word: sizes that follow from others, the split, the checks. `uneven`:
 * the first stage takes a layer from the last. */
enum pt_status make_plan_finish(struct pt_plan *plan, bool uneven, unsigned recomputed,
                                double offload_frac, struct pt_error *err);

#endif
