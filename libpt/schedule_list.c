#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libpt/schedule_list.h"

/* Types of pass of one stage: 0 forward, 1 input, 2 weight of chunk 0, then of chunk 1.
 */
#define MAX_TYPES 6
static const uint8_t type_kind[3] = { PT_FORWARD, PT_BACKWARD_INPUT, PT_BACKWARD_WEIGHT };

struct stage {
    uint32_t next[MAX_TYPES]; /* micro-batch to come */
    double held;              /* activations that live, in the problem's unit */
    size_t front;             /* first pass of the base order that has not run */
    size_t n;                 /* passes done */
    double free_s, first_s;
};

struct wake {
    double time_s;
    uint32_t seq, stage;
};

struct list {
    const struct pt_list_problem *pr;
    const struct pt_list_policy *policy;
    struct pt_order *order;
    uint32_t p, v, m, types;
    double eps_s;
    struct stage *stage;
    double *ready_s; /* [input][piece][micro_batch]: known time, else HUGE_VAL */
    uint32_t *where; /* [stage][type][micro_batch]: place in the base order */
    uint8_t *done;   /* [stage][place] */
    struct wake *heap;
    size_t n_heap, cap_heap;
    uint32_t seq;
};

static bool sooner(const struct wake *a, const struct wake *b)
{
    if (a->time_s < b->time_s)
        return true;
    return !(b->time_s < a->time_s) && a->seq < b->seq;
}

static bool push(struct list *l, double time_s, uint32_t stage)
{
    struct wake w = { time_s, l->seq++, stage };
    size_t i = l->n_heap;

    if (l->n_heap == l->cap_heap) {
        size_t cap = 2 * l->cap_heap + 64;
        struct wake *grown = realloc(l->heap, cap * sizeof(*grown));

        if (grown == NULL)
            return false;
        l->heap = grown;
        l->cap_heap = cap;
    }
    l->n_heap++;
    for (; i > 0 && sooner(&w, &l->heap[(i - 1) / 2]); i = (i - 1) / 2)
        l->heap[i] = l->heap[(i - 1) / 2];
    l->heap[i] = w;
    return true;
}

static struct wake pop(struct list *l)
{
    struct wake top = l->heap[0], last = l->heap[--l->n_heap];
    size_t i = 0, c;

    for (; (c = 2 * i + 1) < l->n_heap; i = c) {
        if (c + 1 < l->n_heap && sooner(&l->heap[c + 1], &l->heap[c]))
            c++;
        if (!sooner(&l->heap[c], &last))
            break;
        l->heap[i] = l->heap[c];
    }
    l->heap[i] = last;
    return top;
}

static double *ready(const struct list *l, bool input, uint32_t piece,
                     uint32_t micro_batch)
{
    return l->ready_s + ((size_t)input * l->p * l->v + piece) * l->m + micro_batch;
}

/* When the next pass of this type can begin as far as its input goes. */
static double ready_at(const struct list *l, uint32_t s, uint32_t type)
{
    const struct stage *st = &l->stage[s];
    uint32_t mb = st->next[type], chunk = type / 3;

    if (mb >= l->m)
        return HUGE_VAL;
    if (type % 3 == 2)
        return mb < st->next[type - 1] ? 0 : HUGE_VAL;
    return *ready(l, type % 3 == 1, pt_piece(l->p, l->order->v_shaped, s, chunk), mb);
}

static size_t place(const struct list *l, uint32_t s, uint32_t type)
{
    return l->where[((size_t)s * l->types + type) * l->m + l->stage[s].next[type]];
}

/* What a pass adds to the activations held, once it has ended (a forward: begun). */
static double effect(const struct list *l, uint32_t s, uint8_t kind, uint32_t chunk)
{
    double size = l->pr->size[chunk * l->p + s];

    return size * (kind == PT_FORWARD          ? 1
                   : kind == PT_BACKWARD_INPUT ? l->pr->after_frac - 1
                                               : -l->pr->after_frac);
}

/* A forward may run now when it fits, and when everything that it overtakes still fits.
 */
static bool fits(const struct list *l, uint32_t s, uint32_t type)
{
    const struct stage *st = &l->stage[s];
    const struct pt_pass *base = pt_order_stage(l->pr->base, s);
    const uint8_t *done = l->done + s * l->order->per_stage;
    double held = st->held + effect(l, s, PT_FORWARD, type / 3);
    double limit = l->pr->limit[s] * (1 + 1e-9);
    size_t end;

    if (type % 3 != 0)
        return true;
    if (held > limit)
        return false;
    end = place(l, s, type);
    for (size_t i = st->front; i < end; i++) {
        if (done[i])
            continue;
        held += effect(l, s, base[i].kind, base[i].chunk);
        if (base[i].kind == PT_FORWARD && held > limit)
            return false;
    }
    return true;
}

/* Only the first pass of the base order that is no weight part may run (next to weight
 * parts). */
static bool out_of_turn(const struct list *l, uint32_t s, uint32_t type)
{
    size_t at;

    if (l->policy->rank != PT_RANK_STRICT || type % 3 == 2)
        return false;
    at = place(l, s, type);
    for (uint32_t t = 0; t < l->types; t++)
        if (t != type && t % 3 != 2 && l->stage[s].next[t] < l->m && place(l, s, t) < at)
            return true;
    return false;
}

/* Smaller is better. */
static double rank(const struct list *l, uint32_t s, uint32_t type)
{
    double at = (double)place(l, s, type), far = (double)l->order->per_stage;

    if (l->policy->rank == PT_RANK_BACKWARD && type % 3 == 0)
        at += far;
    if (l->policy->rank == PT_RANK_FORWARD && type % 3 == 1)
        at += far;
    return at;
}

static double seconds(const struct list *l, uint32_t s, uint32_t type)
{
    return type % 3 == 0   ? l->pr->forward_s[s]
           : type % 3 == 1 ? l->pr->input_s[s]
                           : l->pr->weight_s[s];
}

/* The pass that a free stage begins now, or -1 and when to look again (HUGE_VAL: when
 * woken). */
static int choose(const struct list *l, uint32_t s, double now, double *again_s)
{
    double best = HUGE_VAL, weight_best = HUGE_VAL, soonest = HUGE_VAL;
    int pick = -1, weight = -1;

    *again_s = HUGE_VAL;
    for (uint32_t t = 0; t < l->types; t++) {
        double at = ready_at(l, s, t), r;

        if (at > now + l->eps_s && (at >= HUGE_VAL || l->policy->patience <= 0))
            continue;
        if (out_of_turn(l, s, t) || !fits(l, s, t))
            continue;
        if (at > now + l->eps_s) {
            soonest = fmin(soonest, at);
            continue;
        }
        r = rank(l, s, t);
        if (t % 3 == 2 && r < weight_best) {
            weight_best = r;
            weight = (int)t;
        }
        if (t % 3 != 2 && r < best) {
            best = r;
            pick = (int)t;
        }
    }
    if (pick >= 0)
        return pick;
    if (weight >= 0 &&
        soonest < now + l->policy->patience * seconds(l, s, (uint32_t)weight)) {
        *again_s = soonest;
        return -1;
    }
    return weight;
}

/* What a finished pass gives to its neighbours. */
static bool deliver(struct list *l, uint32_t s, uint32_t type, double end_s)
{
    uint32_t chunk = type / 3, mb = l->stage[s].next[type];
    bool v = l->order->v_shaped;
    uint32_t piece = pt_piece(l->p, v, s, chunk), last = l->p * l->v - 1, to;
    bool input = type % 3 == 1;

    if (type % 3 == 2)
        return true;
    if (!input && piece == last) { /* the loss turns the forward into a backward */
        *ready(l, true, piece, mb) = end_s;
        return true;
    }
    if (input && piece == 0)
        return true;
    to = input ? piece - 1 : piece + 1;
    if (pt_piece_stage(l->p, v, to) != s)
        end_s += l->pr->comm_s;
    *ready(l, input, to, mb) = end_s;
    return push(l, end_s, pt_piece_stage(l->p, v, to));
}

static bool begin(struct list *l, uint32_t s, uint32_t type, double now)
{
    struct stage *st = &l->stage[s];
    uint8_t *done = l->done + s * l->order->per_stage;
    double end_s = now + seconds(l, s, type);

    if (st->n == 0)
        st->first_s = now;
    pt_order_stage(l->order, s)[st->n++] =
        (struct pt_pass){ type_kind[type % 3], (uint8_t)(type / 3), st->next[type] };
    done[place(l, s, type)] = 1;
    while (st->front < l->order->per_stage && done[st->front])
        st->front++;
    st->held += effect(l, s, type_kind[type % 3], type / 3);
    st->free_s = end_s;
    if (!deliver(l, s, type, end_s))
        return false;
    st->next[type]++;
    return st->n == l->order->per_stage || push(l, end_s, s);
}

static bool run(struct list *l)
{
    for (uint32_t s = 0; s < l->p; s++)
        if (!push(l, 0, s))
            return false;
    while (l->n_heap > 0) {
        struct wake w = pop(l);
        double again_s;
        int type;

        if (l->stage[w.stage].free_s > w.time_s)
            continue;
        type = choose(l, w.stage, w.time_s, &again_s);
        if (type >= 0 && !begin(l, w.stage, (uint32_t)type, w.time_s))
            return false;
        if (type < 0 && again_s < HUGE_VAL && !push(l, again_s, w.stage))
            return false;
    }
    return true;
}

static void index_base(struct list *l)
{
    for (uint32_t s = 0; s < l->p; s++) {
        const struct pt_pass *pass = pt_order_stage(l->pr->base, s);

        for (size_t i = 0; i < l->order->per_stage; i++) {
            uint32_t t = pass[i].chunk * 3u + (pass[i].kind == PT_FORWARD          ? 0
                                               : pass[i].kind == PT_BACKWARD_INPUT ? 1
                                                                                   : 2);

            l->where[((size_t)s * l->types + t) * l->m + pass[i].micro_batch] =
                (uint32_t)i;
        }
    }
}

enum pt_status pt_list_run(const struct pt_list_problem *problem,
                           const struct pt_list_policy *policy, struct pt_order *order,
                           double *span_s, double *makespan_s, struct pt_error *err)
{
    const struct pt_order *base = problem->base;
    size_t n = base->per_stage * base->stages;
    size_t cells = 2 * (size_t)base->stages * base->chunks * base->micro_batches;
    struct list l = { .pr = problem,
                      .policy = policy,
                      .order = order,
                      .p = base->stages,
                      .v = base->chunks,
                      .m = base->micro_batches,
                      .types = 3 * base->chunks };
    enum pt_status st = PT_OK;
    bool ok;

    l.stage = calloc(l.p, sizeof(*l.stage));
    l.ready_s = malloc(cells * sizeof(*l.ready_s));
    l.where = malloc(n * sizeof(*l.where));
    l.done = calloc(n, 1);
    ok = l.stage != NULL && l.ready_s != NULL && l.where != NULL && l.done != NULL;
    if (ok) {
        for (size_t i = 0; i < cells; i++)
            l.ready_s[i] = i < l.m ? 0 : HUGE_VAL; /* the first piece's forwards */
        for (uint32_t s = 0; s < l.p; s++)
            l.eps_s = fmax(l.eps_s, 1e-9 * (problem->forward_s[s] + problem->input_s[s]));
        index_base(&l);
        ok = run(&l);
    }
    if (!ok) {
        st = pt_fail_memory(err);
        goto out;
    }
    *span_s = *makespan_s = 0;
    for (uint32_t s = 0; s < l.p; s++) {
        if (l.stage[s].n != order->per_stage)
            st = pt_fail(err, PT_BUG, NULL, 0,
                         "the list scheduler stops at pass %zu of %zu "
                         "of stage %u",
                         l.stage[s].n, order->per_stage, s);
        *span_s = fmax(*span_s, l.stage[s].free_s - l.stage[s].first_s);
        *makespan_s = fmax(*makespan_s, l.stage[s].free_s);
    }
out:
    free(l.stage);
    free(l.ready_s);
    free(l.where);
    free(l.done);
    free(l.heap);
    return st;
}
