#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libpt/json.h"
#include "libpt/outfile.h"
#include "libpt/trace.h"

struct pt_trace {
    struct pt_outfile out;
    uint64_t n_events;
};

static const char *const stream_names[PT_N_STREAMS] = {
    "compute", "communication", "to host", "to device", "host", "messages",
};

const char *pt_stream_name(enum pt_stream stream)
{
    return (unsigned)stream < PT_N_STREAMS ? stream_names[stream] : "?";
}

enum pt_status pt_trace_open(const char *path, const char *source,
                             struct pt_trace **trace, struct pt_error *err)
{
    struct pt_trace *t = calloc(1, sizeof(*t));
    enum pt_status st;

    if (t == NULL)
        return pt_fail_memory(err);
    if ((st = pt_outfile_open(path, &t->out, err))) {
        free(t);
        return st;
    }
    fprintf(t->out.f,
            "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"source\":\"%s\"},"
            "\"traceEvents\":[",
            source);
    *trace = t;
    return PT_OK;
}

static FILE *event(struct pt_trace *t)
{
    fputs(t->n_events++ ? ",\n" : "\n", t->out.f);
    return t->out.f;
}

void pt_trace_rank(struct pt_trace *t, uint32_t rank, uint32_t stage)
{
    fprintf(event(t),
            "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%u,\"args\":{\"name\":"
            "\"rank %u, stage %u\"}}",
            rank, rank, stage);
    fprintf(event(t),
            "{\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":%u,\"args\":"
            "{\"sort_index\":%u}}",
            rank, rank);
    for (unsigned k = 0; k < PT_N_STREAMS; k++)
        fprintf(event(t),
                "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%u,\"tid\":%u,"
                "\"args\":{\"name\":\"%s\"}}",
                rank, k, stream_names[k]);
}

/* The format counts in microseconds; three digits keep nanoseconds. */
void pt_trace_span(struct pt_trace *t, uint32_t rank, enum pt_stream stream,
                   const struct pt_instr *in, double start_s, double end_s)
{
    fprintf(event(t),
            "{\"ph\":\"X\",\"name\":\"%s\",\"cat\":\"%s\",\"pid\":%u,\"tid\":%u,"
            "\"ts\":%.3f,\"dur\":%.3f,\"args\":{\"chunk\":%u,\"micro_batch\":%u}}",
            pt_instr_name((enum pt_instr_kind)in->kind), pt_stream_name(stream), rank,
            (unsigned)stream, start_s * 1e6, (end_s - start_s) * 1e6, in->chunk,
            in->micro_batch);
}

void pt_trace_flow(struct pt_trace *t, uint64_t id, uint32_t from, double start_s,
                   uint32_t to, double end_s)
{
    fprintf(event(t),
            "{\"ph\":\"s\",\"name\":\"message\",\"cat\":\"message\",\"id\":%llu,"
            "\"pid\":%u,\"tid\":%u,\"ts\":%.3f}",
            (unsigned long long)id, from, (unsigned)PT_STREAM_MESSAGES, start_s * 1e6);
    fprintf(event(t),
            "{\"ph\":\"f\",\"bp\":\"e\",\"name\":\"message\",\"cat\":\"message\","
            "\"id\":%llu,\"pid\":%u,\"tid\":%u,\"ts\":%.3f}",
            (unsigned long long)id, to, (unsigned)PT_STREAM_COMPUTE, end_s * 1e6);
}

void pt_trace_counter(struct pt_trace *t, uint32_t rank, const char *name, double time_s,
                      double value)
{
    fprintf(event(t),
            "{\"ph\":\"C\",\"name\":\"%s\",\"pid\":%u,\"ts\":%.3f,\"args\":"
            "{\"%s\":%.17g}}",
            name, rank, time_s * 1e6, name, value);
}

enum pt_status pt_trace_close(struct pt_trace *t, struct pt_error *err)
{
    enum pt_status st;

    fputs("\n]}\n", t->out.f);
    st = pt_outfile_commit(&t->out, err);
    pt_trace_discard(t);
    return st;
}

void pt_trace_discard(struct pt_trace *t)
{
    if (t == NULL)
        return;
    pt_outfile_discard(&t->out);
    free(t);
}

static int kind_of(const char *name)
{
    for (int k = 0; k < PT_N_INSTR_KINDS; k++)
        if (!strcmp(name, pt_instr_name((enum pt_instr_kind)k)))
            return k;
    return -1;
}

static enum pt_status add_event(const struct pt_json *ev, struct pt_trace_sums *sums,
                                struct pt_error *err)
{
    const char *phase = "", *name = "";
    double ts = 0, dur = 0;
    uint64_t pid = 0;
    enum pt_status st;
    int kind;

    if ((st = pt_json_string(ev, "ph", &phase, err)))
        return st;
    if (strcmp(phase, "X"))
        return PT_OK;
    if ((st = pt_json_string(ev, "name", &name, err)))
        return st;
    if ((kind = kind_of(name)) < 0)
        return PT_OK;
    if ((st = pt_json_number(ev, "ts", -1e18, 1e18, &ts, err)) ||
        (st = pt_json_number(ev, "dur", 0, 1e18, &dur, err)) ||
        (st = pt_json_u64_or(ev, "pid", 0, UINT32_MAX, &pid, err)))
        return st;
    sums->kind[kind].n++;
    sums->kind[kind].total_s += dur * 1e-6;
    sums->start_s = fmin(sums->start_s, ts * 1e-6);
    sums->end_s = fmax(sums->end_s, (ts + dur) * 1e-6);
    sums->ranks = pid + 1 > sums->ranks ? pid + 1 : sums->ranks;
    return PT_OK;
}

static enum pt_status sum_document(const struct pt_json *doc, struct pt_trace_sums *sums,
                                   struct pt_error *err)
{
    const struct pt_json *events = doc;
    enum pt_status st;
    uint64_t n = 0;

    *sums = (struct pt_trace_sums){ .start_s = HUGE_VAL, .end_s = -HUGE_VAL };
    if (pt_json_has(doc, "traceEvents") &&
        (st = pt_json_get(doc, "traceEvents", &events, err)))
        return st;
    for (size_t i = 0; i < pt_json_length(events); i++) {
        const struct pt_json *ev;

        if ((st = pt_json_at(events, i, &ev, err)) || (st = add_event(ev, sums, err)))
            return st;
    }
    for (unsigned k = 0; k < PT_N_INSTR_KINDS; k++)
        n += sums->kind[k].n;
    if (n == 0)
        return pt_fail(err, PT_INPUT, pt_json_where(doc), 0,
                       "no span of an instruction (FORWARD, BACKWARD, ...) in "
                       "traceEvents: not a trace of ptsim or ptexec");
    return PT_OK;
}

enum pt_status pt_trace_parse(const char *where, const char *text, size_t len,
                              struct pt_trace_sums *sums, struct pt_error *err)
{
    struct pt_json *doc = NULL;
    enum pt_status st = pt_json_parse(where, text, len, &doc, err);

    if (st == PT_OK)
        st = sum_document(doc, sums, err);
    pt_json_free(doc);
    return st;
}

enum pt_status pt_trace_read(const char *path, struct pt_trace_sums *sums,
                             struct pt_error *err)
{
    struct pt_json *doc = NULL;
    enum pt_status st = pt_json_read(path, &doc, err);

    if (st == PT_OK)
        st = sum_document(doc, sums, err);
    pt_json_free(doc);
    return st;
}
