/* The search behind the schedules that depend on times: base orders that are known to run
 * within memory, the list scheduler on each of them under a handful of policies; the best
 * is kept. */
#ifndef PT_SCHEDULE_SEARCH_H
#define PT_SCHEDULE_SEARCH_H

#include "libpt/schedule_list.h"

struct pt_block; /* schedule_v.c */

/* Base orders, made when they are tried: number k < n. */
struct pt_bases {
    uint32_t n;
    void (*make)(const struct pt_bases *bases, uint32_t k, struct pt_order *base);
    uint32_t most;                /* 1F1B: activations in flight */
    const struct pt_block *block; /* the V family's */
};

struct pt_search {
    struct pt_list_problem pr;
    double *numbers;      /* owned: what the four pointers below and pr's point into */
    double *size, *limit; /* the caller's to change: 1 per chunk; HUGE_VAL per stage */
    struct pt_order base, trial, *best;
    double best_s, best_makespan_s;
    double bound_s; /* no span can be shorter: the busiest stage's work */
    size_t passes, budget;
};

/* `order` receives the best order. */
enum pt_status pt_search_init(struct pt_search *search,
                              const struct pt_schedule_spec *spec, struct pt_order *order,
                              struct pt_error *err);
void pt_search_fini(struct pt_search *search);
/* Tries the policies on every base. An order is better when its span is shorter by more
 * than `margin` of it, or the span is equal and the makespan shorter. May be called
 * again. */
enum pt_status pt_search_run(struct pt_search *search, const struct pt_bases *bases,
                             double after_frac, double margin, struct pt_error *err);

#endif
