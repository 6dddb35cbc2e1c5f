/* The table of schedules, and a plan's passes as instruction lists with sends and
 * receives. */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libpt/schedule_order.h"

/* chunks: what the schedule implies; 0: vpp as asked. */
static const struct row {
    enum pt_schedule_kind kind;
    bool split, v_shaped;
    uint32_t chunks;
    pt_order_fn *order;
} rows[] = {
    { PT_SCHEDULE_NONE, false, false, 1, pt_order_1f1b },
    { PT_SCHEDULE_GPIPE, false, false, 1, pt_order_gpipe },
    { PT_SCHEDULE_1F1B, false, false, 1, pt_order_1f1b },
    { PT_SCHEDULE_INTERLEAVED, false, false, 0, pt_order_interleaved },
    { PT_SCHEDULE_ZB_H1, true, false, 1, pt_order_zb_h1 },
    { PT_SCHEDULE_ZB_H2, true, false, 1, pt_order_zb_h2 },
    { PT_SCHEDULE_ZB_V, true, true, 2, pt_order_zb_v },
    { PT_SCHEDULE_V_HALF, true, true, 2, pt_order_v_half },
    { PT_SCHEDULE_V_MIN, true, true, 2, pt_order_v_min },
    { PT_SCHEDULE_ZB_AUTO, true, false, 1, pt_order_zb_auto },
};

/* Far beyond any plan, and about a gigabyte of lists. */
#define MAX_PASSES_STAGE (1u << 24)
#define MAX_PASSES       (1u << 25)

static const char *const instr_names[PT_N_INSTR_KINDS] = {
    "FORWARD",         "BACKWARD",
    "BACKWARD_INPUT",  "BACKWARD_WEIGHT",
    "SEND_ACTIVATION", "RECV_ACTIVATION",
    "SEND_GRADIENT",   "RECV_GRADIENT",
    "GATHER_PARAMS",   "REDUCE_GRADS",
    "REDUCE_TIED",     "OFFLOAD_OUT",
    "OFFLOAD_IN",      "NORM",
    "OPTIMIZER",       "BARRIER",
    "SNAPSHOT",
};

const char *pt_instr_name(enum pt_instr_kind kind)
{
    return (unsigned)kind < PT_N_INSTR_KINDS ? instr_names[kind] : "?";
}

uint32_t pt_schedule_piece(const struct pt_schedule *sc, uint32_t stage, uint32_t chunk)
{
    return pt_piece(sc->stages, sc->v_shaped, stage, chunk);
}

uint32_t pt_schedule_piece_stage(const struct pt_schedule *sc, uint32_t piece)
{
    return pt_piece_stage(sc->stages, sc->v_shaped, piece);
}

uint32_t pt_schedule_piece_chunk(const struct pt_schedule *sc, uint32_t piece)
{
    return piece / sc->stages;
}

static enum pt_status check_spec(const struct pt_schedule_spec *spec,
                                 const struct row *row, struct pt_error *err)
{
    const char *name = pt_schedule_name(spec->kind);

    if (spec->pp < 1 || spec->pp > PT_MAX_PP)
        return pt_fail(err, PT_USAGE, NULL, 0, "%u stages are out of 1 to %d", spec->pp,
                       PT_MAX_PP);
    if (spec->vpp < 1 || spec->vpp > PT_MAX_VPP ||
        (row->chunks != 0 && spec->vpp != row->chunks))
        return pt_fail(err, PT_USAGE, NULL, 0, "%s: %u chunks per stage; it has %u", name,
                       spec->vpp, row->chunks ? row->chunks : PT_MAX_VPP);
    if (spec->kind == PT_SCHEDULE_NONE && spec->pp != 1)
        return pt_fail(err, PT_USAGE, NULL, 0, "%u stages need a pipeline schedule",
                       spec->pp);
    if (spec->pp == 1 && spec->vpp != 1)
        return pt_fail(err, PT_USAGE, NULL, 0,
                       "%s: %u chunks on one stage; it needs 2 or "
                       "more stages",
                       name, spec->vpp);
    if (spec->micro_batches < 1 ||
        (uint64_t)spec->micro_batches * spec->vpp * 3 > MAX_PASSES_STAGE ||
        (uint64_t)spec->micro_batches * spec->vpp * 3 * spec->pp > MAX_PASSES)
        return pt_fail(err, PT_USAGE, NULL, 0,
                       "%u micro-batches on %u stages of %u chunks: 1 to %u are possible",
                       spec->micro_batches, spec->pp, spec->vpp,
                       MAX_PASSES / 3 / spec->pp / spec->vpp <
                               MAX_PASSES_STAGE / 3 / spec->vpp
                           ? MAX_PASSES / 3 / spec->pp / spec->vpp
                           : MAX_PASSES_STAGE / 3 / spec->vpp);
    return PT_OK;
}

/* Times that a search can compare. */
static enum pt_status check_times(const struct pt_schedule_spec *spec,
                                  struct pt_error *err)
{
    const double *stage[3] = { spec->stage_forward_s, spec->stage_input_s,
                               spec->stage_weight_s };
    double sum = spec->forward_s + spec->input_s + spec->weight_s + spec->comm_s;

    for (unsigned k = 0; k < 3; k++)
        for (uint32_t s = 0; stage[k] != NULL && s < spec->pp; s++)
            sum += stage[k][s] >= 0 ? stage[k][s] : HUGE_VAL;
    for (size_t i = 0; spec->chunk_bytes != NULL && i < (size_t)spec->pp * spec->vpp; i++)
        sum += spec->chunk_bytes[i] >= 0 ? spec->chunk_bytes[i] : HUGE_VAL;
    return isfinite(sum) ? PT_OK
                         : pt_fail(err, PT_INPUT, NULL, 0,
                                   "%s: a stage's time or size is not a finite number",
                                   pt_schedule_name(spec->kind));
}

static enum pt_status make_order(const struct pt_schedule_spec *spec,
                                 struct pt_order *order, struct pt_error *err)
{
    const struct row *row = NULL;
    enum pt_status st;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (rows[i].kind == spec->kind)
            row = &rows[i];
    if (row == NULL)
        return pt_fail(err, PT_BUG, NULL, 0, "schedule %d has no row", (int)spec->kind);
    if ((st = check_spec(spec, row, err)) || (st = check_times(spec, err)))
        return st;
    *order = (struct pt_order){ spec->pp,      spec->vpp,  spec->micro_batches,
                                row->v_shaped, row->split, 0,
                                NULL };
    order->per_stage = (size_t)spec->micro_batches * spec->vpp * (row->split ? 3 : 2);
    order->pass = calloc(order->per_stage * spec->pp, sizeof(*order->pass));
    if (order->pass == NULL)
        return pt_fail_memory(err);
    return row->order(spec, order, err);
}

/* Neighbours of (stage, chunk) in the model: the stage before, or after; -1 when there is
 * none or it is the same stage. */
static int neighbour(const struct pt_order *o, uint32_t stage, uint32_t chunk, int step)
{
    uint32_t piece = pt_piece(o->stages, o->v_shaped, stage, chunk);
    uint32_t other;

    if ((step < 0 && piece == 0) || (step > 0 && piece == o->stages * o->chunks - 1))
        return -1;
    other = pt_piece_stage(o->stages, o->v_shaped, step < 0 ? piece - 1 : piece + 1);
    return other == stage ? -1 : (int)other;
}

/* Appends to out (NULL: only counts) what one pass becomes; returns how many. */
static size_t emit_pass(const struct pt_order *o, uint32_t stage,
                        const struct pt_pass *pass, struct pt_instr *out)
{
    bool forward = pass->kind == PT_FORWARD;
    int from, to;
    size_t n = 0;

    if (pass->kind == PT_BACKWARD_WEIGHT) {
        from = to = -1;
    } else {
        from = neighbour(o, stage, pass->chunk, forward ? -1 : 1);
        to = neighbour(o, stage, pass->chunk, forward ? 1 : -1);
    }
    if (from >= 0 && ++n && out != NULL)
        *out++ = (struct pt_instr){ forward ? PT_RECV_ACTIVATION : PT_RECV_GRADIENT,
                                    pass->chunk, (uint16_t)from, pass->micro_batch };
    n++;
    if (out != NULL)
        *out++ = (struct pt_instr){ pass->kind, pass->chunk, 0, pass->micro_batch };
    if (to >= 0 && ++n && out != NULL)
        *out++ = (struct pt_instr){ forward ? PT_SEND_ACTIVATION : PT_SEND_GRADIENT,
                                    pass->chunk, (uint16_t)to, pass->micro_batch };
    return n;
}

enum pt_status pt_schedule_pipeline(const struct pt_schedule_spec *spec,
                                    struct pt_schedule *schedule, struct pt_error *err)
{
    struct pt_order order = { 0 };
    enum pt_status st;

    memset(schedule, 0, sizeof(*schedule));
    st = make_order(spec, &order, err);
    if (st != PT_OK)
        goto out;
    *schedule = (struct pt_schedule){ order.stages, order.chunks, order.micro_batches,
                                      order.v_shaped, NULL };
    schedule->stage = calloc(order.stages, sizeof(*schedule->stage));
    for (uint32_t s = 0; schedule->stage != NULL && s < order.stages; s++) {
        const struct pt_pass *pass = pt_order_stage(&order, s);
        struct pt_program *prog = &schedule->stage[s];
        size_t n = 0;

        for (size_t i = 0; i < order.per_stage; i++)
            n += emit_pass(&order, s, &pass[i], NULL);
        prog->instr = calloc(n, sizeof(*prog->instr));
        if (prog->instr == NULL)
            break;
        for (size_t i = 0; i < order.per_stage; i++)
            prog->n += emit_pass(&order, s, &pass[i], prog->instr + prog->n);
    }
    if (schedule->stage == NULL || schedule->stage[order.stages - 1].instr == NULL)
        st = pt_fail_memory(err);
out:
    free(order.pass);
    if (st != PT_OK)
        pt_schedule_fini(schedule);
    return st;
}

void pt_schedule_fini(struct pt_schedule *schedule)
{
    for (uint32_t s = 0; schedule->stage != NULL && s < schedule->stages; s++)
        free(schedule->stage[s].instr);
    free(schedule->stage);
    memset(schedule, 0, sizeof(*schedule));
}
