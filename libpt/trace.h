/* Timelines in the Chrome trace format (JSON; Perfetto and chrome://tracing open it). The
 * simulator and the executor both write it, so that predicted and measured lie side by
 * side. A process is a rank, a thread is one of its streams. */
#ifndef PT_TRACE_H
#define PT_TRACE_H

#include <stdint.h>

#include "libpt/error.h"
#include "libpt/schedule.h"

enum pt_stream {
    PT_STREAM_COMPUTE,
    PT_STREAM_COMM,    /* reductions, gathers */
    PT_STREAM_TO_HOST, /* copies from the device */
    PT_STREAM_TO_DEVICE,
    PT_STREAM_HOST,     /* optimizer on the host */
    PT_STREAM_MESSAGES, /* sends between stages, from departure to arrival */
    PT_N_STREAMS
};
const char *pt_stream_name(enum pt_stream stream); /* "compute" */

/* A file in the making; events may come in any order of time. Errors of writing are
 * latched and reported by pt_trace_close. */
struct pt_trace;
/* source: the program that writes, kept in the file ("ptsim", "ptexec"). path "-" is
 * standard output; a regular file is replaced atomically when it is closed. */
enum pt_status pt_trace_open(const char *path, const char *source,
                             struct pt_trace **trace, struct pt_error *err);
/* Names a rank's row, "rank 3, stage 1", and those of its streams. */
void pt_trace_rank(struct pt_trace *trace, uint32_t rank, uint32_t stage);
/* One instruction on a stream; times in seconds from the start of the run. */
void pt_trace_span(struct pt_trace *trace, uint32_t rank, enum pt_stream stream,
                   const struct pt_instr *instr, double start_s, double end_s);
/* An arrow from one rank's stream to another's; both ends must lie inside spans. */
void pt_trace_flow(struct pt_trace *trace, uint64_t id, uint32_t from, double start_s,
                   uint32_t to, double end_s);
/* A counter of a rank, drawn as a graph: "memory" in bytes. */
void pt_trace_counter(struct pt_trace *trace, uint32_t rank, const char *name,
                      double time_s, double value);
/* Ends the file. Releases the trace in every case. */
enum pt_status pt_trace_close(struct pt_trace *trace, struct pt_error *err);
/* Drops it, and the file that was begun. NULL is allowed. */
void pt_trace_discard(struct pt_trace *trace);

/* What a trace holds per kind of instruction: spans, and their seconds. */
struct pt_trace_sum {
    uint64_t n;
    double total_s;
};
struct pt_trace_sums {
    struct pt_trace_sum kind[PT_N_INSTR_KINDS];
    double start_s, end_s; /* first start, last end over all spans */
    uint64_t ranks;        /* highest rank + 1 */
};
/* Reads the spans of a trace, ours or one with the same names; other events are skipped.
 * PT_INPUT with file, path and reason. */
enum pt_status pt_trace_read(const char *path, struct pt_trace_sums *sums,
                             struct pt_error *err);
enum pt_status pt_trace_parse(const char *where, const char *text, size_t len,
                              struct pt_trace_sums *sums, struct pt_error *err);

#endif
