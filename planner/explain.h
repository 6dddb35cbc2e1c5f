/* --explain: what more or less of each dimension would do. */
#ifndef PLANNER_EXPLAIN_H
#define PLANNER_EXPLAIN_H

#include <stdio.h>

#include "planner/search.h"

/* One row per change of the best plan's dimensions. Every row is a search with that one
 * value pinned and the rest chosen anew, so it is the best that the change can give. */
void planner_explain(FILE *f, const struct pt_setup *setup,
                     const struct planner_space *space,
                     const struct planner_options *options,
                     const struct planner_result *result);

#endif
