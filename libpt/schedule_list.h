/* The list scheduler: runs a pipeline in virtual time and lets each stage take, whenever
 * it is free, what a policy prefers among the passes that are ready and fit in memory. */
#ifndef PT_SCHEDULE_LIST_H
#define PT_SCHEDULE_LIST_H

#include "libpt/schedule_order.h"

/* Which of the ready passes goes first. */
enum pt_list_rank {
    PT_RANK_BASE,     /* as in the base order */
    PT_RANK_STRICT,   /* forwards and input parts in the base order, without overtaking */
    PT_RANK_BACKWARD, /* input parts before forwards */
    PT_RANK_FORWARD,  /* forwards before input parts */
    PT_N_RANKS
};

struct pt_list_policy {
    enum pt_list_rank rank;
    double patience; /* a weight part is not begun when a better pass is known to become
                        ready within this fraction of its time; 0: never wait */
};

struct pt_list_problem {
    const double *forward_s, *input_s, *weight_s; /* of one chunk, per stage */
    double comm_s;
    const double *size; /* of a chunk's activations, [chunk * stages + stage]; any unit */
    const double *limit; /* what a stage may hold of them */
    double after_frac;   /* of them, what is left between the input and the weight part */
    const struct pt_order *base; /* any order that can run within `limit` */
};

/* Writes the order that the policy leads to (`order` like base, pass allocated) and the
 * longest stage's span and the makespan. Cannot deadlock: a pass leaves the base order
 * only when every pass that it overtakes still fits in memory. PT_SYSTEM when memory runs
 * out. */
enum pt_status pt_list_run(const struct pt_list_problem *problem,
                           const struct pt_list_policy *policy, struct pt_order *order,
                           double *span_s, double *makespan_s, struct pt_error *err);

#endif
