#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "sim/engine_state.h"

static const enum pt_stream side_stream[N_SIDE] = { PT_STREAM_COMM, PT_STREAM_TO_HOST,
                                                    PT_STREAM_HOST, PT_STREAM_TO_DEVICE };

static void start_side(struct engine *e, uint32_t r, unsigned s, double now)
{
    struct stream *st = &e->rank[r].side[s];
    const struct task *t = &st->task[st->head];
    uint32_t base =
        r * SIM_N_LINK_KINDS + (e->w->reduce_net ? SIM_NET_OUT : SIM_FAST_OUT);

    if (st->busy || st->n == 0)
        return;
    /* The stages of the offload follow each other, shard by shard. */
    if ((s == HOST || s == TO_DEVICE) && e->rank[r].side[s - 1].ended < t->after)
        return;
    st->busy = true;
    st->start_s = now;
    if (s == COMM) {
        sim_engine_transfer(e, now, t->work_s, base, base + 1,
                            TAG_SIDE | ((uint64_t)r * N_SIDE + s));
    } else {
        sim_engine_push(e, now + t->work_s, EV_HOST, r * N_SIDE + s);
    }
}

void sim_engine_add_side(struct engine *e, uint32_t r, unsigned s,
                         const struct pt_instr *in, double work_s, double now)
{
    struct stream *st = &e->rank[r].side[s];

    if (st->n == st->cap) {
        uint32_t cap = st->cap ? 2 * st->cap : 4;
        struct task *grown = malloc(cap * sizeof(*grown));

        if (grown == NULL) {
            e->failed = true;
            return;
        }
        for (uint32_t i = 0; i < st->n; i++)
            grown[i] = st->task[(st->head + i) % st->cap];
        free(st->task);
        st->task = grown;
        st->head = 0;
        st->cap = cap;
    }
    st->task[(st->head + st->n) % st->cap] =
        (struct task){ *in, work_s, st->ended + st->n + 1 };
    st->n++;
    e->rank[r].issued++;
    e->rank[r].reductions += s == COMM;
    start_side(e, r, s, now);
}

void sim_engine_end_side(struct engine *e, uint32_t r, unsigned s, double now)
{
    struct rank *k = &e->rank[r];
    struct stream *st = &k->side[s];

    sim_engine_tell_span(e, r, side_stream[s], &st->task[st->head].instr, st->start_s,
                         now);
    st->head = (st->head + 1) % st->cap;
    st->n--;
    st->busy = false;
    st->free_s = now;
    st->ended++;
    k->issued--;
    k->reductions -= s == COMM;
    start_side(e, r, s, now);
    if (s == TO_HOST || s == HOST)
        start_side(e, r, s + 1, now);
    if ((k->state == AT_BARRIER && k->reductions == 0) ||
        (k->state == AT_STREAMS && k->issued == 0))
        sim_engine_run_rank(e, r, now);
}

/* A reduction runs under the chunk's last backward as far as its layers are done and the
 * stream is free: it counts as begun up to that part earlier. */
static double left_to_reduce(const struct engine *e, uint32_t r, double reduce_s,
                             double pass_s, double now)
{
    const struct stream *st = &e->rank[r].side[COMM];
    double early = fmin(pass_s, e->w->reduce_hidden_frac * reduce_s);

    if (st->n > 0)
        return reduce_s;
    return reduce_s - fmin(early, now - st->free_s);
}

/* Starts when the whole group is there. */
void sim_engine_reduce(struct engine *e, uint32_t r, const struct pt_instr *in,
                       double now)
{
    double reduce_s = chunk_of(e, r, in->chunk)->reduce_s,
           pass_s = e->rank[r].last_pass_s;
    uint32_t dense = e->w->dense, size = e->w->per_stage / dense, first, *n;

    if (reduce_s <= 0)
        return;
    n = &e->group[((size_t)e->rank[r].stage * dense + r % e->w->per_stage % dense) *
                      e->sc->chunks +
                  in->chunk];
    e->rank[r]
        .reductions++; /* the rank waits at BARRIER even if the group is not there yet */
    e->rank[r].issued++;
    if (++*n < size)
        return;
    *n = 0;
    first = r - r % e->w->per_stage + r % e->w->per_stage % dense;
    for (uint32_t i = 0; i < size; i++) {
        uint32_t k = first + i * dense;

        e->rank[k].reductions--;
        e->rank[k].issued--;
        sim_engine_add_side(e, k, COMM, in, left_to_reduce(e, k, reduce_s, pass_s, now),
                            now);
    }
}
