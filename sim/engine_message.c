#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "sim/engine_state.h"

/* A place among the flights; UINT32_MAX when memory runs out. */
static uint32_t new_flight(struct engine *e)
{
    uint32_t f = e->free_flight;

    if (f != UINT32_MAX) {
        e->free_flight = e->flight[f].next;
        return f;
    }
    if (e->n_flights == e->cap_flights) {
        uint32_t cap = e->cap_flights ? 2 * e->cap_flights : 64;
        struct flight *grown = realloc(e->flight, cap * sizeof(*grown));

        if (grown == NULL)
            return UINT32_MAX;
        e->flight = grown;
        e->cap_flights = cap;
    }
    return e->n_flights++;
}

void sim_engine_send(struct engine *e, uint32_t r, const struct pt_instr *in, double now)
{
    struct rank *k = &e->rank[r];
    uint32_t to = in->peer * e->w->per_stage + r % e->w->per_stage, f;
    unsigned out = e->w->message_net ? SIM_NET_OUT : SIM_FAST_OUT;

    if ((f = new_flight(e)) == UINT32_MAX) {
        e->failed = true;
        return;
    }
    e->flight[f] = (struct flight){
        e->messages++, now, r, to, 0, *in, e->w->stage[k->stage].send_bytes
    };
    e->res->rank[r].sent_bytes += e->flight[f].bytes;
    sim_engine_transfer(e, now, e->w->message_s, r * SIM_N_LINK_KINDS + out,
                        to * SIM_N_LINK_KINDS + out + 1, f);
}

void sim_engine_arrive(struct engine *e, uint32_t f, double now)
{
    const struct flight *m = &e->flight[f];
    bool gradient = m->instr.kind == PT_SEND_GRADIENT;
    uint32_t piece = pt_schedule_piece(e->sc, e->rank[m->from].stage, m->instr.chunk);
    uint32_t to = m->to,
             chunk = pt_schedule_piece_chunk(e->sc, gradient ? piece - 1 : piece + 1);
    struct rank *k = &e->rank[to];
    const struct pt_instr *in;

    e->res->rank[to].received_bytes += m->bytes;
    for (size_t i = 0; i < e->n_obs; i++)
        if (e->obs[i].message != NULL)
            e->obs[i].message(e->obs[i].ctx, m->id, m->from, to, &m->instr, m->start_s,
                              now);
    e->flight[f].next = e->free_flight;
    e->free_flight = f;
    channel_of(e, to, gradient, chunk)->arrived++;
    in = k->state == AT_RECV ? &e->sc->stage[k->stage].instr[k->at] : NULL;
    if (in != NULL && in->chunk == chunk && (in->kind == PT_RECV_GRADIENT) == gradient)
        sim_engine_run_rank(e, to, now);
}

bool sim_engine_receive(struct engine *e, uint32_t r, const struct pt_instr *in,
                        double now)
{
    struct rank *k = &e->rank[r];
    struct channel *c = channel_of(e, r, in->kind == PT_RECV_GRADIENT, in->chunk);
    double ready;

    if (k->state != AT_RECV) {
        k->state = AT_RECV;
        k->since_s = now;
    }
    if (c->arrived == c->taken)
        return false;
    c->taken++;
    ready = fmax(now, k->since_s + e->w->message_block_s);
    e->res->rank[r].wait_s += now - k->since_s;
    e->res->rank[r].block_s += ready - now;
    if (ready > k->since_s)
        sim_engine_tell_span(e, r, PT_STREAM_COMPUTE, in, k->since_s, ready);
    k->at++;
    k->state = RUNNING;
    if (ready > now) {
        sim_engine_push(e, ready, EV_RANK, r);
        return false;
    }
    return true;
}
