/* One whole step of a plan: the pipeline part and what stands around it.
 *
 *   ZeRO-0   REDUCE_GRADS after a chunk's last backward
 *   ZeRO-1   the same, and GATHER_PARAMS after the step
 *   ZeRO-2   REDUCE_GRADS after every backward, GATHER_PARAMS after the step
 *   ZeRO-3   GATHER_PARAMS before every forward and backward, REDUCE_GRADS after every
 * backward tail     BARRIER  REDUCE_TIED  OFFLOAD_OUT..  NORM  OPTIMIZER..  OFFLOAD_IN..
 * GATHER_PARAMS..
 *
 * Reductions and gathers stand in the list where some gradient is held by more than one
 * rank. The barrier comes before the norm, because clipping needs every gradient. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "libpt/schedule.h"

/* Growing list; `failed` latches out of memory. */
struct list {
    struct pt_instr *instr;
    size_t n, cap;
    bool failed;
};

static void add(struct list *l, enum pt_instr_kind kind, uint32_t chunk, uint32_t which)
{
    if (l->n == l->cap) {
        size_t cap = l->cap ? 2 * l->cap : 64;
        struct pt_instr *grown = realloc(l->instr, cap * sizeof(*grown));

        if (grown == NULL) {
            l->failed = true;
            return;
        }
        l->instr = grown;
        l->cap = cap;
    }
    l->instr[l->n++] = (struct pt_instr){ (uint8_t)kind, (uint8_t)chunk, 0, which };
}

static void add_instr(struct list *l, const struct pt_instr *in)
{
    size_t n = l->n;

    add(l, (enum pt_instr_kind)in->kind, in->chunk, in->micro_batch);
    if (l->n > n)
        l->instr[n].peer = in->peer;
}

static void add_tail(struct list *l, const struct pt_layout *layout, double offload_frac,
                     bool shared, bool tied_end, const struct pt_schedule *sc)
{
    if (shared)
        add(l, PT_BARRIER, 0, 0);
    if (tied_end)
        add(l, PT_REDUCE_TIED, 0, 0);
    for (uint32_t k = 1; offload_frac > 0 && k <= PT_OFFLOAD_SHARDS; k++)
        add(l, PT_OFFLOAD_OUT, 0, k);
    add(l, PT_NORM, 0, 0);
    if (offload_frac < 1)
        add(l, PT_OPTIMIZER, 0, 0);
    for (uint32_t k = 1; offload_frac > 0 && k <= PT_OFFLOAD_SHARDS; k++) {
        add(l, PT_OPTIMIZER, 0, k);
        add(l, PT_OFFLOAD_IN, 0, k);
    }
    for (uint32_t c = 0;
         shared && (layout->zero == 1 || layout->zero == 2) && c < sc->chunks; c++)
        add(l, PT_GATHER_PARAMS, c, sc->micro_batches);
}

static void build_stage(struct list *l, const struct pt_program *pipe,
                        const struct pt_layout *layout, bool shared, uint32_t m)
{
    for (size_t i = 0; i < pipe->n; i++) {
        const struct pt_instr *in = &pipe->instr[i];
        bool uses = in->kind == PT_FORWARD || in->kind == PT_BACKWARD ||
                    in->kind == PT_BACKWARD_INPUT;
        bool ends = in->kind == PT_BACKWARD || in->kind == PT_BACKWARD_WEIGHT;

        if (shared && layout->zero == 3 && uses)
            add(l, PT_GATHER_PARAMS, in->chunk, in->micro_batch);
        add_instr(l, in);
        if (shared && ends && (layout->zero >= 2 || in->micro_batch == m - 1))
            add(l, PT_REDUCE_GRADS, in->chunk, in->micro_batch);
    }
}

/* Some gradients of this plan are held by more than one rank. */
static bool shares_gradients(const struct pt_layout *layout, const struct pt_split *split)
{
    if (pt_grad_group(layout, false) > 1)
        return true;
    for (size_t i = 0; i < (size_t)split->pp * split->vpp; i++)
        if (split->chunk[i].layers[PT_LAYER_MOE] > 0)
            return pt_grad_group(layout, true) > 1;
    return false;
}

enum pt_status pt_schedule_build(const struct pt_schedule_spec *spec,
                                 const struct pt_layout *layout,
                                 const struct pt_split *split, bool tied,
                                 struct pt_schedule *schedule, struct pt_error *err)
{
    struct pt_schedule_spec full = *spec;
    bool shared = shares_gradients(layout, split);
    enum pt_status st;

    full.kind = layout->schedule;
    full.pp = layout->pp;
    full.vpp = layout->vpp;
    full.max_in_flight = layout->max_in_flight;
    if ((st = pt_schedule_pipeline(&full, schedule, err)))
        return st;
    for (uint32_t s = 0; s < schedule->stages; s++) {
        struct pt_program *prog = &schedule->stage[s];
        bool end = s == 0 || s == schedule->stages - 1;
        struct list l = { NULL, 0, 0, false };

        build_stage(&l, prog, layout, shared, schedule->micro_batches);
        add_tail(&l, layout, split->offload_frac[s], shared,
                 tied && end && schedule->stages > 1, schedule);
        if (l.failed) {
            free(l.instr);
            pt_schedule_fini(schedule);
            return pt_fail_memory(err);
        }
        free(prog->instr);
        prog->instr = l.instr;
        prog->n = l.n;
    }
    return PT_OK;
}
