#include "config.h"

#include <stdlib.h>

#include "planner/units.h"

static uint32_t pieces_of(const struct planner_problem *p)
{
    return p->layout.pp * p->layout.vpp;
}

/* Pieces without embedding or head are not empty. */
static uint32_t least_of(const struct planner_problem *p, uint32_t piece)
{
    return piece > 0 && piece + 1 < pieces_of(p) ? 1 : 0;
}

/* Dense layers lie on at most this many pieces: the first may be empty, the others are
 * not. */
static uint32_t front_of(const struct planner_problem *p)
{
    uint32_t most = p->layers[PT_LAYER_DENSE] + 1;

    if (planner_one_kind(p))
        return 0;
    return most < pieces_of(p) ? most : pieces_of(p);
}

static enum pt_status fill(struct planner_units *units, const struct planner_problem *p,
                           uint32_t front, struct pt_error *err)
{
    uint32_t pp = p->layout.pp;

    *units = (struct planner_units){ .n_front = front };
    units->unit = calloc((size_t)front + pp, sizeof(*units->unit));
    if (units->unit == NULL)
        return pt_fail(err, PT_SYSTEM, NULL, 0, "out of memory");
    for (uint32_t k = 0; k < front; k++)
        units->unit[units->n++] = (struct planner_unit){ planner_piece_stage(p, k), 1,
                                                         least_of(p, k), k, true };
    for (uint32_t s = 0; s < pp; s++) {
        struct planner_unit unit = { .stage = s };

        for (uint32_t k = front; k < pieces_of(p); k++)
            if (planner_piece_stage(p, k) == s) {
                unit.pieces++;
                unit.least += least_of(p, k);
            }
        if (unit.pieces > 0)
            units->unit[units->n++] = unit;
    }
    return PT_OK;
}

enum pt_status planner_units_init(struct planner_units *units,
                                  const struct planner_problem *p, struct pt_error *err)
{
    return fill(units, p, front_of(p), err);
}

enum pt_status planner_units_stages(struct planner_units *units,
                                    const struct planner_problem *p, struct pt_error *err)
{
    return fill(units, p, 0, err);
}

void planner_units_fini(struct planner_units *units)
{
    free(units->unit);
    *units = (struct planner_units){ 0 };
}

void planner_units_spread(const struct planner_units *units,
                          const struct planner_problem *p, const uint32_t *layers,
                          uint32_t *piece)
{
    for (uint32_t u = 0; u < units->n; u++) {
        const struct planner_unit *unit = &units->unit[u];
        uint32_t left = layers[u], need = unit->least, pieces = unit->pieces;

        if (unit->front) {
            piece[unit->piece] = left;
            continue;
        }
        /* Even shares of what is left over the pieces that are left; never below one
         * where a piece has nothing else. */
        for (uint32_t k = units->n_front; k < pieces_of(p); k++) {
            uint32_t share;

            if (planner_piece_stage(p, k) != unit->stage)
                continue;
            share = (left + pieces - 1) / pieces;
            need -= least_of(p, k);
            if (share + need > left)
                share = left - need;
            piece[k] = share;
            left -= share;
            pieces--;
        }
    }
}
