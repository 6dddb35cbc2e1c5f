#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/engine_state.h"
#include "sim/random.h"

static const uint32_t no_links[SIM_FLOW_LINKS] = { SIM_NO_LINK, SIM_NO_LINK, SIM_NO_LINK,
                                                   SIM_NO_LINK };

void sim_engine_push(struct engine *e, double time_s, uint32_t what, uint32_t who)
{
    if (!sim_evq_push(&e->q, time_s, what, who, 0))
        e->failed = true;
}

void sim_engine_tell_span(struct engine *e, uint32_t r, enum pt_stream stream,
                          const struct pt_instr *in, double start_s, double end_s)
{
    for (size_t i = 0; i < e->n_obs; i++)
        if (e->obs[i].span != NULL)
            e->obs[i].span(e->obs[i].ctx, r, stream, in, start_s, end_s);
}

void sim_engine_transfer(struct engine *e, double now, double work_s, uint32_t out,
                         uint32_t in, uint64_t tag)
{
    const uint32_t link[SIM_FLOW_LINKS] = { out, in, SIM_NO_LINK, SIM_NO_LINK };

    if (!sim_links_start(e->links, now, work_s, e->w->no_sharing ? no_links : link, tag))
        e->failed = true;
}

static void tell_memory(struct engine *e, uint32_t r, double now)
{
    double bytes = e->w->stage[e->rank[r].stage].static_bytes + e->rank[r].held_bytes;

    e->res->rank[r].peak_bytes = fmax(e->res->rank[r].peak_bytes, bytes);
    for (size_t i = 0; i < e->n_obs; i++)
        if (e->obs[i].memory != NULL)
            e->obs[i].memory(e->obs[i].ctx, r, now, bytes);
}

/* ---- passes ---- */

static double pass_s(const struct engine *e, uint32_t r, const struct pt_instr *in)
{
    const struct sim_chunk *c = chunk_of(e, r, in->chunk);
    double t = in->kind == PT_FORWARD          ? c->forward_s
               : in->kind == PT_BACKWARD_INPUT ? c->input_s
               : in->kind == PT_BACKWARD       ? c->input_s + c->weight_s
                                               : c->weight_s;

    if (e->w->slowdown != NULL)
        t *= e->w->slowdown[r];
    if (e->w->jitter_frac > 0)
        t *= sim_random_factor(e->w->seed, r, e->rank[r].step, e->rank[r].at,
                               e->w->jitter_frac);
    return t;
}

static void begin_pass(struct engine *e, uint32_t r, const struct pt_instr *in,
                       double now)
{
    struct rank *k = &e->rank[r];
    struct sim_rank_sum *sum = &e->res->rank[r];
    double t = pass_s(e, r, in), start = fmax(now, k->free_s);

    if (in->kind == PT_FORWARD) {
        if (sum->first_s < 0)
            sum->first_s = start;
        if (++sum->held > sum->peak_held)
            sum->peak_held = sum->held;
        k->held_bytes += chunk_of(e, r, in->chunk)->activation_bytes;
        tell_memory(e, r, start);
    }
    k->since_s = start;
    k->state = AT_PASS;
    k->last_pass_s = t;
    sum->busy_s += t;
    if (e->w->gang == 1) {
        sim_engine_push(e, start + t, EV_RANK, r);
        return;
    }
    struct gang *g = &e->gang[r / e->w->gang];

    g->end_s = fmax(g->end_s, start + t);
    if (++g->n == e->w->gang)
        sim_engine_push(e, g->end_s, EV_GANG, r / e->w->gang);
}

static void end_pass(struct engine *e, uint32_t r, double now)
{
    struct rank *k = &e->rank[r];
    struct sim_rank_sum *sum = &e->res->rank[r];
    const struct pt_instr *in = &e->sc->stage[k->stage].instr[k->at];
    const struct sim_chunk *c = chunk_of(e, r, in->chunk);

    sim_engine_tell_span(e, r, PT_STREAM_COMPUTE, in, k->since_s, now);
    sum->last_s = now;
    if (in->kind == PT_BACKWARD || in->kind == PT_BACKWARD_WEIGHT) {
        sum->held--;
        k->held_bytes -= c->activation_bytes;
        sum->tp_bytes += c->tp_bytes;
        sum->cp_bytes += c->cp_bytes;
        sum->ep_bytes += c->ep_bytes;
        if (in->micro_batch == e->sc->micro_batches - 1)
            sum->dp_bytes += c->dp_bytes;
        tell_memory(e, r, now);
    }
    k->at++;
    k->state = RUNNING;
}

/* ---- meetings ---- */

static void at_norm(struct engine *e, uint32_t r, double now)
{
    e->rank[r].state = AT_MEETING;
    e->rank[r].since_s = now;
    if (++e->at_norm == e->n_ranks)
        sim_engine_push(e, now + e->w->norm_s, EV_NORM, 0);
}

static void end_meeting(struct engine *e, uint32_t r, double now)
{
    struct rank *k = &e->rank[r];

    sim_engine_tell_span(e, r, PT_STREAM_COMM, &e->sc->stage[k->stage].instr[k->at],
                         k->since_s, now);
    k->at++;
    k->state = RUNNING;
    sim_engine_run_rank(e, r, now);
}

static void at_tied(struct engine *e, uint32_t r, double now)
{
    uint32_t index = r % e->w->per_stage;

    e->rank[r].state = AT_MEETING;
    e->rank[r].since_s = now;
    if (++e->tied[index] == 2) {
        e->tied[index] = 0;
        sim_engine_push(e, now + e->w->tied_s, EV_TIED, index);
    }
}

/* ---- the interpreter ---- */

static void optimizer(struct engine *e, uint32_t r, const struct pt_instr *in, double now)
{
    const struct sim_stage *s = &e->w->stage[e->rank[r].stage];
    struct rank *k = &e->rank[r];

    if (in->micro_batch > 0) {
        sim_engine_add_side(e, r, HOST, in, s->host_s, now);
        return;
    }
    sim_engine_tell_span(e, r, PT_STREAM_COMPUTE, in, now, now + s->optimizer_s);
    e->res->rank[r].busy_s += s->optimizer_s;
    k->free_s = now + s->optimizer_s; /* the host goes on meanwhile */
}

/* All streams of the rank are idle? Else it waits for them. */
static bool settled(struct engine *e, uint32_t r, double now)
{
    struct rank *k = &e->rank[r];

    if (k->issued > 0) {
        k->state = AT_STREAMS;
        return false;
    }
    if (k->free_s > now) {
        k->state = RUNNING;
        sim_engine_push(e, k->free_s, EV_RANK, r);
        return false;
    }
    return true;
}

static void end_of_list(struct engine *e, uint32_t r, double now)
{
    struct rank *k = &e->rank[r];

    k->state = DONE;
    if (++e->done < e->n_ranks)
        return;
    now += e->w->step_s;
    e->res->step_s[k->step] = now - e->step_start_s;
    for (size_t i = 0; i < e->n_obs; i++)
        if (e->obs[i].step_end != NULL)
            e->obs[i].step_end(e->obs[i].ctx, k->step, e->step_start_s, now);
    e->res->end_s = e->step_start_s = now;
    if (k->step + 1 == e->w->steps)
        return;
    e->done = 0;
    for (uint32_t i = 0; i < e->n_ranks; i++) {
        e->rank[i].at = 0;
        e->rank[i].step++;
        e->rank[i].state = RUNNING;
        e->rank[i].free_s = 0;
        e->res->rank[i].first_s = -1;
        for (uint32_t c = 0; c < 2 * e->sc->chunks; c++)
            e->channel[(size_t)i * 2 * e->sc->chunks + c] = (struct channel){ 0, 0 };
        sim_engine_push(e, now, EV_RANK, i);
    }
}

/* One instruction; false: the rank waits, or an event will resume it. */
static bool step_rank(struct engine *e, uint32_t r, const struct pt_instr *in, double now)
{
    struct rank *k = &e->rank[r];
    const struct sim_stage *s = &e->w->stage[k->stage];

    switch (in->kind) {
    case PT_FORWARD:
    case PT_BACKWARD:
    case PT_BACKWARD_INPUT:
    case PT_BACKWARD_WEIGHT:
        begin_pass(e, r, in, now);
        return false;
    case PT_RECV_ACTIVATION:
    case PT_RECV_GRADIENT:
        return sim_engine_receive(e, r, in, now);
    case PT_SEND_ACTIVATION:
    case PT_SEND_GRADIENT:
        sim_engine_send(e, r, in, now);
        break;
    case PT_REDUCE_GRADS:
        sim_engine_reduce(e, r, in, now);
        break;
    case PT_OFFLOAD_OUT:
        sim_engine_add_side(e, r, TO_HOST, in, s->out_s, now);
        break;
    case PT_OFFLOAD_IN:
        sim_engine_add_side(e, r, TO_DEVICE, in, s->in_s, now);
        break;
    case PT_OPTIMIZER:
        optimizer(e, r, in, now);
        break;
    case PT_BARRIER:
        if (k->reductions > 0) {
            if (k->state != AT_BARRIER)
                k->since_s = now;
            k->state = AT_BARRIER;
            return false;
        }
        if (k->state == AT_BARRIER) {
            e->res->rank[r].reduce_wait_s += now - k->since_s;
            sim_engine_tell_span(e, r, PT_STREAM_COMPUTE, in, k->since_s, now);
        }
        break;
    case PT_NORM:
        at_norm(e, r, now);
        return false;
    case PT_REDUCE_TIED:
        at_tied(e, r, now);
        return false;
    case PT_GATHER_PARAMS: /* before a pass: priced inside it */
        if (in->micro_batch == e->sc->micro_batches && !settled(e, r, now))
            return false;
        break;
    default:
        break;
    }
    k->at++;
    k->state = RUNNING;
    return true;
}

void sim_engine_run_rank(struct engine *e, uint32_t r, double now)
{
    struct rank *k = &e->rank[r];
    const struct pt_program *prog = &e->sc->stage[k->stage];

    while (!e->failed && k->at < prog->n)
        if (!step_rank(e, r, &prog->instr[k->at], now))
            return;
    if (!e->failed && k->state != DONE && settled(e, r, now))
        end_of_list(e, r, now);
}

static void dispatch(struct engine *e, const struct sim_event *ev)
{
    uint64_t tag;

    switch (ev->what) {
    case EV_RANK:
        if (e->rank[ev->who].state == AT_PASS)
            end_pass(e, ev->who, ev->time_s);
        sim_engine_run_rank(e, ev->who, ev->time_s);
        break;
    case EV_GANG:
        e->gang[ev->who] = (struct gang){ 0, 0 };
        for (uint32_t i = 0; i < e->w->gang; i++)
            end_pass(e, ev->who * e->w->gang + i, ev->time_s);
        for (uint32_t i = 0; i < e->w->gang; i++)
            sim_engine_run_rank(e, ev->who * e->w->gang + i, ev->time_s);
        break;
    case EV_NORM:
        e->at_norm = 0;
        for (uint32_t r = 0; r < e->n_ranks; r++)
            end_meeting(e, r, ev->time_s);
        break;
    case EV_TIED:
        end_meeting(e, ev->who, ev->time_s);
        end_meeting(e, ev->who + (e->sc->stages - 1) * e->w->per_stage, ev->time_s);
        break;
    case EV_HOST:
        sim_engine_end_side(e, ev->who / N_SIDE, ev->who % N_SIDE, ev->time_s);
        break;
    default:
        if (!sim_links_end(e->links, ev, &tag, &e->failed))
            break;
        if (tag & TAG_SIDE)
            sim_engine_end_side(e, (uint32_t)((tag & ~TAG_SIDE) / N_SIDE),
                                (unsigned)((tag & ~TAG_SIDE) % N_SIDE), ev->time_s);
        else
            sim_engine_arrive(e, (uint32_t)tag, ev->time_s);
        break;
    }
}

static void engine_fini(struct engine *e)
{
    for (uint32_t r = 0; e->rank != NULL && r < e->n_ranks; r++)
        for (unsigned s = 0; s < N_SIDE; s++)
            free(e->rank[r].side[s].task);
    free(e->rank);
    free(e->gang);
    free(e->channel);
    free(e->tied);
    free(e->group);
    free(e->flight);
    sim_links_free(e->links);
    sim_evq_fini(&e->q);
}

static enum pt_status make_links(struct engine *e, struct pt_error *err)
{
    uint32_t n = e->n_ranks * SIM_N_LINK_KINDS;
    double *capacity = malloc(n * sizeof(*capacity));
    enum pt_status st;

    if (capacity == NULL)
        return pt_fail_memory(err);
    for (uint32_t i = 0; i < n; i++)
        capacity[i] = e->w->link_capacity ? e->w->link_capacity[i / SIM_N_LINK_KINDS] : 1;
    st = sim_links_new(n, capacity, &e->q, EV_FLOW, &e->links, err);
    free(capacity);
    return st;
}

static enum pt_status engine_init(struct engine *e, const struct sim_world *w,
                                  const struct sim_observer *obs, size_t n_obs,
                                  struct sim_result *res, struct pt_error *err)
{
    size_t n = sim_world_ranks(w);

    *e = (struct engine){ .w = w,
                          .sc = w->schedule,
                          .obs = obs,
                          .n_obs = n_obs,
                          .res = res,
                          .n_ranks = (uint32_t)n,
                          .free_flight = UINT32_MAX };
    e->rank = calloc(n, sizeof(*e->rank));
    e->gang = calloc(n / w->gang, sizeof(*e->gang));
    e->channel = calloc(n * 2 * w->schedule->chunks, sizeof(*e->channel));
    e->tied = calloc(w->per_stage, sizeof(*e->tied));
    e->group = calloc((size_t)w->schedule->stages * w->dense * w->schedule->chunks,
                      sizeof(*e->group));
    res->rank = calloc(n, sizeof(*res->rank));
    res->step_s = calloc(w->steps, sizeof(*res->step_s));
    if (e->rank == NULL || e->gang == NULL || e->channel == NULL || e->tied == NULL ||
        e->group == NULL || res->rank == NULL || res->step_s == NULL)
        return pt_fail_memory(err);
    res->ranks = e->n_ranks;
    res->steps = w->steps;
    for (uint32_t r = 0; r < e->n_ranks; r++) {
        e->rank[r].stage = r / w->per_stage;
        res->rank[r].first_s = -1;
        res->rank[r].static_bytes = w->stage[e->rank[r].stage].static_bytes;
        tell_memory(e, r, 0);
        sim_engine_push(e, 0, EV_RANK, r);
    }
    return make_links(e, err);
}

/* Figures of the last step. */
static void sum_up(const struct engine *e, struct sim_result *res)
{
    double start = e->w->steps > 1 ? res->end_s - res->step_s[e->w->steps - 1] : 0,
           work = 0;

    for (uint32_t r = 0; r < e->n_ranks; r++) {
        const struct sim_rank_sum *sum = &res->rank[r];
        double span = sum->last_s - fmax(sum->first_s, 0);

        if (span > res->span_s) {
            res->span_s = span;
            res->span_rank = r;
        }
        res->pipeline_s = fmax(res->pipeline_s, sum->last_s - start);
        for (uint32_t c = 0; c < e->sc->chunks; c++) {
            const struct sim_chunk *k = chunk_of(e, r, c);

            work += (k->forward_s + k->input_s + k->weight_s) * e->sc->micro_batches;
        }
    }
    res->ideal_s = work / e->n_ranks;
    if (fabs(res->span_s - res->ideal_s) < 1e-12 * res->span_s) /* rounding of sums */
        res->span_s = res->ideal_s;
    if (res->span_s > 0)
        res->bubble_of_total = (res->span_s - res->ideal_s) / res->span_s;
    if (res->ideal_s > 0)
        res->bubble_of_ideal = (res->span_s - res->ideal_s) / res->ideal_s;
}

enum pt_status sim_run(const struct sim_world *world,
                       const struct sim_observer *observers, size_t n_observers,
                       struct sim_result *result, struct pt_error *err)
{
    struct engine e;
    struct sim_event ev;
    enum pt_status st;

    memset(result, 0, sizeof(*result));
    if ((st = engine_init(&e, world, observers, n_observers, result, err)))
        goto out;
    while (!e.failed && sim_evq_pop(&e.q, &ev)) {
        result->events++;
        dispatch(&e, &ev);
    }
    if (e.failed) {
        st = pt_fail_memory(err);
        goto out;
    }
    if (e.done < e.n_ranks || e.rank[0].step + 1 != world->steps) {
        uint32_t r = 0;

        while (r + 1 < e.n_ranks && e.rank[r].state == DONE)
            r++;
        st = pt_fail(err, PT_BUG, NULL, 0,
                     "the simulation stops: %u of %u ranks have ended, rank %u stands at "
                     "instruction %zu",
                     e.done, e.n_ranks, r, e.rank[r].at);
        goto out;
    }
    sum_up(&e, result);
out:
    engine_fini(&e);
    if (st != PT_OK)
        sim_result_fini(result);
    return st;
}

void sim_result_fini(struct sim_result *result)
{
    free(result->rank);
    free(result->step_s);
    memset(result, 0, sizeof(*result));
}
