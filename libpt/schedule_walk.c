/* Walks a schedule as its interpreters do: every stage goes on until it waits. One walk
 * serves the timeline and the search for deadlocks; it is linear in the number of
 * instructions. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "libpt/schedule_order.h"

struct walk {
    const struct pt_schedule *sc;
    const struct pt_schedule_times *times; /* NULL: all zero */
    size_t *at;                            /* next instruction of each stage */
    double *now_s, *first_s, *last_s;      /* clock; span of the passes */
    double *arrival_s; /* [gradient][piece][micro_batch]; < 0: not sent */
    uint32_t *stack;   /* stages that can go on */
    bool *queued;
    uint32_t n_stack;
    uint32_t *collective; /* stages that wait at their next NORM or TIED */
};

/* Where the message that an instruction sends or receives is kept: by the receiving
 * piece. */
static double *mailbox(const struct walk *w, uint32_t stage, const struct pt_instr *in)
{
    const struct pt_schedule *sc = w->sc;
    uint32_t piece = pt_schedule_piece(sc, stage, in->chunk);
    bool gradient = in->kind == PT_SEND_GRADIENT || in->kind == PT_RECV_GRADIENT;

    if (in->kind == PT_SEND_ACTIVATION)
        piece++;
    if (in->kind == PT_SEND_GRADIENT)
        piece--;
    return w->arrival_s +
           ((size_t)gradient * sc->stages * sc->chunks + piece) * sc->micro_batches +
           in->micro_batch;
}

static double pass_seconds(const struct walk *w, uint32_t stage,
                           const struct pt_instr *in)
{
    const struct pt_schedule_times *t = w->times;
    size_t i = (size_t)in->chunk * w->sc->stages + stage;

    if (t == NULL)
        return 0;
    switch (in->kind) {
    case PT_FORWARD:
        return t->forward_s[i];
    case PT_BACKWARD:
        return t->input_s[i] + t->weight_s[i];
    case PT_BACKWARD_INPUT:
        return t->input_s[i];
    case PT_BACKWARD_WEIGHT:
        return t->weight_s[i];
    default:
        return 0;
    }
}

static void wake(struct walk *w, uint32_t stage)
{
    if (w->queued[stage])
        return;
    w->queued[stage] = true;
    w->stack[w->n_stack++] = stage;
}

static bool takes_part(const struct walk *w, uint32_t stage, uint8_t kind)
{
    return kind == PT_NORM || stage == 0 || stage == w->sc->stages - 1;
}

/* The stages that must meet at the collective where `stage` stands are all there? Then
 * their clocks meet and they go on. */
static bool meet(struct walk *w, uint32_t stage, const struct pt_instr *in)
{
    double latest = 0;

    for (uint32_t s = 0; s < w->sc->stages; s++) {
        const struct pt_program *prog = &w->sc->stage[s];

        if (!takes_part(w, s, in->kind))
            continue;
        if (w->at[s] >= prog->n || prog->instr[w->at[s]].kind != in->kind)
            return false;
        latest = fmax(latest, w->now_s[s]);
    }
    for (uint32_t s = 0; s < w->sc->stages; s++) {
        if (!takes_part(w, s, in->kind))
            continue;
        w->now_s[s] = latest;
        w->at[s]++;
        if (s != stage)
            wake(w, s);
    }
    return true;
}

static void run_stage(struct walk *w, uint32_t stage)
{
    const struct pt_program *prog = &w->sc->stage[stage];

    while (w->at[stage] < prog->n) {
        const struct pt_instr *in = &prog->instr[w->at[stage]];
        double *box;

        switch (in->kind) {
        case PT_FORWARD:
        case PT_BACKWARD:
        case PT_BACKWARD_INPUT:
        case PT_BACKWARD_WEIGHT:
            if (w->first_s[stage] < 0)
                w->first_s[stage] = w->now_s[stage];
            w->now_s[stage] += pass_seconds(w, stage, in);
            w->last_s[stage] = w->now_s[stage];
            break;
        case PT_SEND_ACTIVATION:
        case PT_SEND_GRADIENT:
            *mailbox(w, stage, in) = w->now_s[stage] + (w->times ? w->times->comm_s : 0);
            wake(w, in->peer);
            break;
        case PT_RECV_ACTIVATION:
        case PT_RECV_GRADIENT:
            box = mailbox(w, stage, in);
            if (*box < 0)
                return;
            w->now_s[stage] = fmax(w->now_s[stage], *box);
            break;
        case PT_NORM:
        case PT_REDUCE_TIED:
            if (!meet(w, stage, in))
                return;
            continue;
        default:
            break;
        }
        w->at[stage]++;
    }
}

static void walk_fini(struct walk *w)
{
    free(w->at);
    free(w->now_s);
    free(w->arrival_s);
    free(w->stack);
    free(w->queued);
}

static enum pt_status walk_init(struct walk *w, const struct pt_schedule *sc,
                                const struct pt_schedule_times *times,
                                struct pt_error *err)
{
    size_t n = 2 * (size_t)sc->stages * sc->chunks * sc->micro_batches;

    *w = (struct walk){ .sc = sc, .times = times };
    w->at = calloc(sc->stages, sizeof(*w->at));
    w->now_s = calloc(3 * (size_t)sc->stages, sizeof(*w->now_s));
    w->arrival_s = malloc(n * sizeof(*w->arrival_s));
    w->stack = calloc(sc->stages, sizeof(*w->stack));
    w->queued = calloc(sc->stages, sizeof(*w->queued));
    if (w->at == NULL || w->now_s == NULL || w->arrival_s == NULL || w->stack == NULL ||
        w->queued == NULL) {
        walk_fini(w);
        return pt_fail_memory(err);
    }
    w->first_s = w->now_s + sc->stages;
    w->last_s = w->first_s + sc->stages;
    for (size_t i = 0; i < n; i++)
        w->arrival_s[i] = -1;
    for (uint32_t s = 0; s < sc->stages; s++)
        w->first_s[s] = -1;
    return PT_OK;
}

/* The stage that `stage` waits for. A collective waits for the first one that is not
 * there. */
static uint32_t waits_for(const struct walk *w, uint32_t stage)
{
    const struct pt_instr *in = &w->sc->stage[stage].instr[w->at[stage]];

    if (in->kind == PT_RECV_ACTIVATION || in->kind == PT_RECV_GRADIENT)
        return in->peer;
    for (uint32_t s = 0; s < w->sc->stages; s++)
        if (takes_part(w, s, in->kind) &&
            (w->at[s] >= w->sc->stage[s].n ||
             w->sc->stage[s].instr[w->at[s]].kind != in->kind))
            return s;
    return stage;
}

/* Follows the chain of waiting from a stuck stage into its cycle and prints it. */
static enum pt_status report_deadlock(const struct walk *w, uint32_t stage,
                                      struct pt_error *err)
{
    char text[768] = "";
    size_t len = 0;
    uint32_t s = stage, first;

    for (uint32_t i = 0; i < w->sc->stages; i++) {
        uint32_t next = waits_for(w, s);

        if (w->at[next] >= w->sc->stage[next].n)
            break; /* not a cycle: the partner has ended */
        s = next;
    }
    first = s;
    do {
        const struct pt_instr *in = &w->sc->stage[s].instr[w->at[s]];
        uint32_t next = waits_for(w, s);
        int n = snprintf(
            text + len, sizeof(text) - len,
            "%sstage %u waits at %s(chunk %u, micro-batch %u) for stage %u%s",
            len ? "; " : "", s, pt_instr_name(in->kind), in->chunk, in->micro_batch, next,
            w->at[next] >= w->sc->stage[next].n ? ", which has ended" : "");

        len = len + (size_t)n < sizeof(text) ? len + (size_t)n : sizeof(text) - 1;
        if (w->at[next] >= w->sc->stage[next].n)
            break;
        s = next;
    } while (s != first);
    return pt_fail(err, PT_INPUT, NULL, 0, "the schedule deadlocks: %s", text);
}

static enum pt_status walk_run(struct walk *w, struct pt_error *err)
{
    for (uint32_t s = w->sc->stages; s-- > 0;)
        wake(w, s);
    while (w->n_stack > 0) {
        uint32_t s = w->stack[--w->n_stack];

        w->queued[s] = false;
        run_stage(w, s);
    }
    for (uint32_t s = 0; s < w->sc->stages; s++)
        if (w->at[s] < w->sc->stage[s].n)
            return report_deadlock(w, s, err);
    return PT_OK;
}

/* Peak activations of a stage, in chunks: a forward takes one, the end of the weight part
 * frees it. The order of the list decides; time does not. */
static uint32_t peak_chunks(const struct pt_program *prog)
{
    uint32_t held = 0, peak = 0;

    for (size_t i = 0; i < prog->n; i++) {
        if (prog->instr[i].kind == PT_FORWARD && ++held > peak)
            peak = held;
        if (prog->instr[i].kind == PT_BACKWARD ||
            prog->instr[i].kind == PT_BACKWARD_WEIGHT)
            held--;
    }
    return peak;
}

static double stage_work(const struct pt_schedule *sc, const struct pt_schedule_times *t,
                         uint32_t stage)
{
    double work = 0;

    for (uint32_t c = 0; c < sc->chunks; c++) {
        size_t i = (size_t)c * sc->stages + stage;

        work += t->forward_s[i] + t->input_s[i] + t->weight_s[i];
    }
    return work * sc->micro_batches;
}

enum pt_status pt_schedule_time(const struct pt_schedule *schedule,
                                const struct pt_schedule_times *times,
                                struct pt_schedule_figures *figures, double *stage_peak,
                                double *stage_span_s, struct pt_error *err)
{
    struct pt_schedule_figures f = { 0 };
    struct walk w;
    enum pt_status st;

    if ((st = walk_init(&w, schedule, times, err)))
        return st;
    if ((st = walk_run(&w, err)))
        goto out;
    for (uint32_t s = 0; s < schedule->stages; s++) {
        double span = w.last_s[s] - fmax(w.first_s[s], 0);
        double peak = (double)peak_chunks(&schedule->stage[s]) / schedule->chunks;

        if (span > f.span_s) {
            f.span_s = span;
            f.span_stage = s;
        }
        f.makespan_s = fmax(f.makespan_s, w.now_s[s]);
        f.peak_activations = fmax(f.peak_activations, peak);
        f.ideal_s += stage_work(schedule, times, s);
        if (stage_peak != NULL)
            stage_peak[s] = peak;
        if (stage_span_s != NULL)
            stage_span_s[s] = span;
    }
    f.ideal_s /= schedule->stages;
    if (fabs(f.span_s - f.ideal_s) < 1e-12 * f.span_s) /* rounding of sums */
        f.span_s = f.ideal_s;
    f.bubble_of_total = f.span_s > 0 ? (f.span_s - f.ideal_s) / f.span_s : 0;
    f.bubble_of_ideal = f.ideal_s > 0 ? (f.span_s - f.ideal_s) / f.ideal_s : 0;
    *figures = f;
out:
    walk_fini(&w);
    return st;
}

enum pt_status pt_schedule_runs(const struct pt_schedule *schedule, struct pt_error *err)
{
    struct walk w;
    enum pt_status st = walk_init(&w, schedule, NULL, err);

    if (st == PT_OK) {
        st = walk_run(&w, err);
        walk_fini(&w);
    }
    return st;
}
