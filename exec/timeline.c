#include "config.h"

#include <math.h>

#include "exec/stage.h"
#include "exec/timeline.h"
#include "libpt/schedule_plan.h"
#include "libpt/trace.h"

/* Where the simulator shows it. A wait inside a pass belongs to the pass. */
static enum pt_stream stream_of(const struct pt_instr *in)
{
    switch ((enum pt_instr_kind)in->kind) {
    case PT_SEND_ACTIVATION:
    case PT_SEND_GRADIENT:
    case PT_RECV_ACTIVATION:
    case PT_RECV_GRADIENT:
        return PT_STREAM_MESSAGES;
    case PT_GATHER_PARAMS:
    case PT_REDUCE_GRADS:
    case PT_REDUCE_TIED:
    case PT_NORM:
    case PT_BARRIER:
        return PT_STREAM_COMM;
    case PT_OFFLOAD_OUT:
        return PT_STREAM_TO_HOST;
    case PT_OFFLOAD_IN:
        return PT_STREAM_TO_DEVICE;
    case PT_OPTIMIZER:
        return in->micro_batch > 0 ? PT_STREAM_HOST : PT_STREAM_COMPUTE;
    default:
        return PT_STREAM_COMPUTE;
    }
}

static const struct exec_record *records(const struct exec_shared *shared, uint32_t rank)
{
    const char *base = (const char *)shared->header;

    return (const struct exec_record *)(const void *)(base + shared->header->rank[rank]
                                                                 .report.records_at);
}

enum pt_status exec_timeline(const char *path, const struct pt_plan *plan,
                             const struct exec_shared *shared, struct pt_error *err)
{
    uint32_t per_stage = plan->layout.tp * plan->layout.dp;
    struct pt_schedule sc;
    struct pt_trace *trace;
    double zero = HUGE_VAL;
    enum pt_status st = pt_schedule_of_plan(plan, &sc, err);

    if (st != PT_OK)
        return st;
    st = pt_trace_open(path, "ptexec", &trace, err);
    if (st != PT_OK)
        goto out;
    for (uint32_t r = 0; r < shared->header->size; r++)
        zero = fmin(zero, records(shared, r)[0].begin_s);
    for (uint32_t r = 0; r < shared->header->size; r++) {
        const struct pt_program *prog = &sc.stage[r / per_stage];
        const struct exec_record *rec = records(shared, r);

        pt_trace_rank(trace, r, r / per_stage);
        for (size_t i = 0; i < prog->n; i++) {
            pt_trace_span(trace, r, stream_of(&prog->instr[i]), &prog->instr[i],
                          rec[i].begin_s - zero, rec[i].end_s - zero);
            pt_trace_counter(trace, r, "allocated bytes", rec[i].end_s - zero,
                             rec[i].bytes);
        }
    }
    st = pt_trace_close(trace, err);
out:
    pt_schedule_fini(&sc);
    return st;
}
