/* What must hold of any schedule before something interprets it. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "libpt/schedule_order.h"

/* What was seen of one stage so far. */
struct seen {
    const struct pt_schedule *sc;
    uint32_t stage;
    uint8_t *pass;     /* [chunk][micro_batch]: 1 forward, 2 input part, 4 weight part */
    uint8_t *received; /* [gradient][chunk][micro_batch] */
    uint32_t *next; /* [forward, input, weight][chunk]: the micro-batch that must come */
};

static enum pt_status bad(const struct pt_instr *in, uint32_t stage, size_t i,
                          struct pt_error *err, const char *why)
{
    return pt_fail(
        err, PT_INPUT, NULL, 0,
        "schedule: stage %u, instruction %zu, %s(chunk %u, micro-batch %u, peer %u): %s",
        stage, i, pt_instr_name(in->kind), in->chunk, in->micro_batch, in->peer, why);
}

static bool is_send(uint8_t kind)
{
    return kind == PT_SEND_ACTIVATION || kind == PT_SEND_GRADIENT;
}

static bool is_recv(uint8_t kind)
{
    return kind == PT_RECV_ACTIVATION || kind == PT_RECV_GRADIENT;
}

/* The piece that a message comes from or goes to, or -1 when there is none. */
static int64_t partner_piece(const struct pt_schedule *sc, uint32_t stage,
                             const struct pt_instr *in)
{
    int64_t piece = pt_schedule_piece(sc, stage, in->chunk);

    piece += in->kind == PT_SEND_ACTIVATION || in->kind == PT_RECV_GRADIENT ? 1 : -1;
    return piece < 0 || piece >= (int64_t)sc->stages * sc->chunks ? -1 : piece;
}

static size_t plane(const struct pt_schedule *sc)
{
    return (size_t)sc->chunks * sc->micro_batches;
}

static const char *check_message(struct seen *seen, const struct pt_instr *in)
{
    const struct pt_schedule *sc = seen->sc;
    int64_t piece = partner_piece(sc, seen->stage, in);
    size_t k = (size_t)in->chunk * sc->micro_batches + in->micro_batch;

    if (in->peer == seen->stage)
        return "a stage needs no message to itself";
    if (piece < 0 || pt_schedule_piece_stage(sc, (uint32_t)piece) != in->peer)
        return "the peer does not hold the neighbouring piece of the model";
    if (is_recv(in->kind))
        return seen->received[k + (in->kind == PT_RECV_GRADIENT ? plane(sc) : 0)]++ > 0
                   ? "received twice"
                   : NULL;
    if (!(seen->pass[k] & (in->kind == PT_SEND_ACTIVATION ? 1 : 2)))
        return "sent before it is computed";
    return NULL;
}

/* What a forward or an input part reads: the message, or the neighbouring piece where
 * that is on the same stage. */
static const char *check_source(const struct seen *seen, const struct pt_instr *in)
{
    const struct pt_schedule *sc = seen->sc;
    struct pt_instr message = *in;
    bool forward = in->kind == PT_FORWARD;
    int64_t from;
    size_t k;

    message.kind = forward ? PT_RECV_ACTIVATION : PT_RECV_GRADIENT;
    from = partner_piece(sc, seen->stage, &message);
    if (from < 0)
        return NULL;
    if (pt_schedule_piece_stage(sc, (uint32_t)from) == seen->stage) {
        k = (size_t)pt_schedule_piece_chunk(sc, (uint32_t)from) * sc->micro_batches +
            in->micro_batch;
        return seen->pass[k] & (forward ? 1 : 2) ? NULL
                                                 : "before the neighbouring chunk's";
    }
    k = (size_t)in->chunk * sc->micro_batches + in->micro_batch;
    return seen->received[k + (forward ? 0 : plane(sc))] ? NULL
                                                         : "its input was not received";
}

static const char *check_pass(struct seen *seen, const struct pt_instr *in)
{
    static const struct {
        uint8_t gives, needs, row; /* row of `next` */
    } rules[] = { { 1, 0, 0 }, { 6, 1, 1 }, { 2, 1, 1 }, { 4, 3, 2 } };
    const struct pt_schedule *sc = seen->sc;
    uint8_t *pass = &seen->pass[(size_t)in->chunk * sc->micro_batches + in->micro_batch];
    unsigned k = in->kind - (unsigned)PT_FORWARD;
    const char *why;

    if (*pass & rules[k].gives)
        return "computed twice";
    if ((*pass & rules[k].needs) != rules[k].needs)
        return in->kind == PT_BACKWARD_WEIGHT && *pass & 1
                   ? "before its input part"
                   : "no activation is held: its forward has not run";
    if (in->kind != PT_BACKWARD_WEIGHT && (why = check_source(seen, in)) != NULL)
        return why;
    if (seen->next[rules[k].row * sc->chunks + in->chunk]++ != in->micro_batch)
        return "not in ascending order of micro-batch";
    *pass |= rules[k].gives;
    return NULL;
}

static enum pt_status check_stage(struct seen *seen, struct pt_error *err)
{
    const struct pt_schedule *sc = seen->sc;
    const struct pt_program *prog = &sc->stage[seen->stage];

    memset(seen->pass, 0, plane(sc));
    memset(seen->received, 0, 2 * plane(sc));
    memset(seen->next, 0, 3 * (size_t)sc->chunks * sizeof(*seen->next));
    for (size_t i = 0; i < prog->n; i++) {
        const struct pt_instr *in = &prog->instr[i];
        const char *why = NULL;

        if (in->kind >= PT_N_INSTR_KINDS)
            return bad(in, seen->stage, i, err, "unknown kind");
        if (in->kind > PT_RECV_GRADIENT)
            continue;
        if (in->chunk >= sc->chunks || in->micro_batch >= sc->micro_batches)
            return bad(in, seen->stage, i, err, "chunk or micro-batch is out of range");
        if (is_send(in->kind) || is_recv(in->kind))
            why = check_message(seen, in);
        else
            why = check_pass(seen, in);
        if (why != NULL)
            return bad(in, seen->stage, i, err, why);
    }
    for (size_t k = 0; k < plane(sc); k++)
        if (seen->pass[k] != 7)
            return pt_fail(
                err, PT_INPUT, NULL, 0,
                "schedule: stage %u never ends micro-batch %zu of chunk %zu (%s)",
                seen->stage, k % sc->micro_batches, k / sc->micro_batches,
                !(seen->pass[k] & 1)   ? "no FORWARD"
                : !(seen->pass[k] & 2) ? "no backward"
                                       : "no weight part");
    return PT_OK;
}

/* Sends and receives of each channel: the same messages in the same order. Both ends are
 * in ascending order of micro-batch when they follow their passes, so it is enough to
 * count. */
static enum pt_status check_channels(const struct pt_schedule *sc, struct pt_error *err)
{
    size_t pieces = (size_t)sc->stages * sc->chunks, m = sc->micro_batches;
    uint8_t *sent =
        calloc(2 * pieces * m, 1); /* by receiving piece: 1 sent, 2 received */
    uint32_t *next = calloc(4 * pieces, sizeof(*next));
    enum pt_status st = PT_OK;

    if (sent == NULL || next == NULL) {
        st = pt_fail_memory(err);
        goto out;
    }
    for (uint32_t s = 0; s < sc->stages && st == PT_OK; s++)
        for (size_t i = 0; i < sc->stage[s].n; i++) {
            const struct pt_instr *in = &sc->stage[s].instr[i];
            bool gradient = in->kind == PT_SEND_GRADIENT || in->kind == PT_RECV_GRADIENT;
            size_t to, box;

            if (!is_send(in->kind) && !is_recv(in->kind))
                continue;
            to = is_send(in->kind) ? (size_t)partner_piece(sc, s, in)
                                   : pt_schedule_piece(sc, s, in->chunk);
            box = (gradient ? pieces : 0) + to;
            if (next[2 * box + is_recv(in->kind)]++ != in->micro_batch) {
                st = bad(in, s, i, err, "out of the order of its channel, or twice");
                break;
            }
            sent[box * m + in->micro_batch] |= is_send(in->kind) ? 1 : 2;
        }
    for (size_t k = 0; st == PT_OK && k < 2 * pieces * m; k++)
        if (sent[k] == 1 || sent[k] == 2) {
            uint32_t piece = (uint32_t)(k / m % pieces);

            st = pt_fail(
                err, PT_INPUT, NULL, 0,
                "schedule: stage %u %s the %s of chunk %u, micro-batch %zu, and its "
                "neighbour %s",
                pt_schedule_piece_stage(sc, piece),
                sent[k] == 1 ? "never receives" : "waits for",
                k / m >= pieces ? "gradient" : "activation",
                pt_schedule_piece_chunk(sc, piece), k % m,
                sent[k] == 1 ? "sends it" : "never sends it");
        }
out:
    free(sent);
    free(next);
    return st;
}

enum pt_status pt_schedule_check(const struct pt_schedule *schedule, struct pt_error *err)
{
    struct seen seen = { .sc = schedule };
    enum pt_status st = PT_OK;

    if (schedule->stages < 1 || plane(schedule) < 1)
        return pt_fail(err, PT_INPUT, NULL, 0, "schedule: no stages or no micro-batches");
    seen.pass = malloc(plane(schedule));
    seen.received = malloc(2 * plane(schedule));
    seen.next = malloc(3 * (size_t)schedule->chunks * sizeof(*seen.next));
    if (seen.pass == NULL || seen.received == NULL || seen.next == NULL) {
        st = pt_fail_memory(err);
        goto out;
    }
    for (; seen.stage < schedule->stages; seen.stage++)
        if ((st = check_stage(&seen, err)))
            goto out;
    if ((st = check_channels(schedule, err)))
        goto out;
    st = pt_schedule_runs(schedule, err);
out:
    free(seen.pass);
    free(seen.received);
    free(seen.next);
    return st;
}
