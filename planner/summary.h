/* What ptplan prints for a person: one screen, 80 columns. */
#ifndef PLANNER_SUMMARY_H
#define PLANNER_SUMMARY_H

#include <stdio.h>

#include "planner/search.h"

#define PLANNER_MAX_NOTES 24

/* What the program took for granted, or warns of: one sentence each. */
struct planner_notes {
    unsigned n;
    char text[PLANNER_MAX_NOTES][240];
};
void planner_note(struct planner_notes *notes, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* The best plan of a result (n >= 1), with the runner-up when the result holds it. Notes
 * may be NULL. */
void planner_summary(FILE *f, const struct pt_setup *setup,
                     const struct planner_result *result,
                     const struct planner_notes *assumed,
                     const struct planner_notes *hints);
/* One row per plan, for --top. */
void planner_top_table(FILE *f, const struct planner_result *result);

/* Pieces that other outputs share; each writes into buf (size bytes) and returns it. */
/* "tp 1  pp 4 (1f1b)  dp 4  ..." without the dimensions that are 1. */
char *planner_layout_text(char *buf, size_t size, const struct pt_plan *plan);
/* "tp2s pp4x2 dp2 z1 mb2 re40": one word per dimension, for tables and pictures. */
char *planner_short_label(char *buf, size_t size, const struct pt_plan *plan);
/* "[parallel] pipe_stages=4, micro_batch=8, ..." */
char *planner_log_line(char *buf, size_t size, const struct pt_plan *plan);
/* Which slices of the step make `plan` slower (or faster) than `best`: the two largest.
 */
char *planner_why_slower(char *buf, size_t size, const struct pt_plan *best,
                         const struct pt_plan *plan);
/* Recomputed layers and offloaded share of the optimizer's parameters over the whole
 * plan. */
uint32_t planner_recomputed_layers(const struct pt_split *split);
double planner_offload_share(const struct pt_split *split);

/* The slices that add up to the step time; the last one is whatever the others leave. */
#define PLANNER_N_SLICES 11
struct planner_slice {
    const char *name, *key; /* for people, for columns */
    double s;
};
void planner_slices(const struct pt_step *step,
                    struct planner_slice slice[PLANNER_N_SLICES]);

/* "label" in the left margin, the text beside it, wrapped at 80 columns. */
void planner_paragraph(FILE *f, const char *label, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
