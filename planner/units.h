/* What the MILP counts layers of: whole stages where the order of kinds does not matter,
 * single pieces at the front of the model where dense layers may lie. Pieces of one stage
 * that can hold one kind only are one unit: fewer variables, and nothing to permute. */
#ifndef PLANNER_UNITS_H
#define PLANNER_UNITS_H

#include "planner/problem.h"

struct planner_unit {
    uint32_t stage, pieces, least; /* layers it must hold at least */
    uint32_t piece; /* of the model, when it is a single one at the front */
    bool front;
};
struct planner_units {
    uint32_t n, n_front;       /* those at the front come first, in model order */
    struct planner_unit *unit; /* owned */
};
enum pt_status planner_units_init(struct planner_units *units,
                                  const struct planner_problem *problem,
                                  struct pt_error *err);
/* Every stage is one unit, whatever the kinds. */
enum pt_status planner_units_stages(struct planner_units *units,
                                    const struct planner_problem *problem,
                                    struct pt_error *err);
void planner_units_fini(struct planner_units *units);
/* Layers of each unit (both kinds) to layers of each piece. */
void planner_units_spread(const struct planner_units *units,
                          const struct planner_problem *problem, const uint32_t *layers,
                          uint32_t *piece);

#endif
