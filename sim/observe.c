#include "config.h"

#include <math.h>

#include "sim/observe.h"

static void trace_span(void *ctx, uint32_t rank, enum pt_stream stream,
                       const struct pt_instr *in, double start_s, double end_s)
{
    pt_trace_span(ctx, rank, stream, in, start_s, end_s);
}

static void trace_message(void *ctx, uint64_t id, uint32_t from, uint32_t to,
                          const struct pt_instr *in, double start_s, double end_s)
{
    pt_trace_span(ctx, from, PT_STREAM_MESSAGES, in, start_s, end_s);
    pt_trace_flow(ctx, id, from, start_s, to, end_s);
}

static void trace_memory(void *ctx, uint32_t rank, double time_s, double bytes)
{
    pt_trace_counter(ctx, rank, "allocated bytes", time_s, bytes);
}

struct sim_observer sim_observe_trace(struct pt_trace *trace)
{
    return (struct sim_observer){ trace, trace_span, trace_message, trace_memory, NULL };
}

static void memory_row(void *ctx, uint32_t rank, double time_s, double bytes)
{
    fprintf(ctx, "%u,%.9g,%.0f\n", rank, time_s, bytes);
}

struct sim_observer sim_observe_memory(FILE *f)
{
    fprintf(f, "rank,time_s,allocated_bytes\n");
    return (struct sim_observer){ .ctx = f, .memory = memory_row };
}

static void sum_span(void *ctx, uint32_t rank, enum pt_stream stream,
                     const struct pt_instr *in, double start_s, double end_s)
{
    struct pt_trace_sums *sums = ctx;

    (void)stream;
    sums->kind[in->kind].n++;
    sums->kind[in->kind].total_s += end_s - start_s;
    sums->start_s = fmin(sums->start_s, start_s);
    sums->end_s = fmax(sums->end_s, end_s);
    sums->ranks = rank + 1 > sums->ranks ? rank + 1 : sums->ranks;
}

static void sum_message(void *ctx, uint64_t id, uint32_t from, uint32_t to,
                        const struct pt_instr *in, double start_s, double end_s)
{
    (void)id;
    (void)to;
    sum_span(ctx, from, PT_STREAM_MESSAGES, in, start_s, end_s);
}

struct sim_observer sim_observe_sums(struct pt_trace_sums *sums)
{
    *sums = (struct pt_trace_sums){ .start_s = HUGE_VAL, .end_s = -HUGE_VAL };
    return (struct sim_observer){ .ctx = sums, .span = sum_span, .message = sum_message };
}
