/* --report DIR: the result as tables (CSV), pictures (gnuplot: SVG and PNG) and one page.
 */
#ifndef PLANNER_REPORT_H
#define PLANNER_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "planner/search.h"
#include "planner/summary.h"

struct planner_report {
    const char *dir; /* made when it is not there */
    const struct pt_setup *setup;
    const struct planner_space *space;
    const struct planner_options *options;
    const struct planner_result *result;         /* n >= 1 */
    const struct planner_notes *assumed, *hints; /* may be NULL */
    FILE *notes; /* where a sentence goes when gnuplot is missing; may be NULL */
};

/* Writes everything below dir. Runs further searches (smaller memory, other GPU counts).
 * PT_SYSTEM when a file cannot be written; a missing gnuplot is no failure. */
enum pt_status planner_report_write(const struct planner_report *report,
                                    struct pt_error *err);

/* --- between the files of the report --- */

/* A curve: best plans under a changed limit or GPU count. */
#define PLANNER_MAX_POINTS 24
struct planner_point {
    double x; /* memory limit in bytes, or GPUs */
    double step_s, device_bytes, tokens_per_s, mfu, efficiency;
    uint32_t gpus; /* in use */
    bool chosen;   /* the plan that this report is about */
    char label[96];
};
struct planner_curve {
    unsigned n;
    struct planner_point point[PLANNER_MAX_POINTS];
};
/* Fastest plan under each of falling memory limits, dominated ones dropped; fullest
 * first. */
void planner_pareto(const struct planner_report *report, struct planner_curve *curve);
/* Best plan on 1/8 to 8 times the GPUs, the global batch unchanged; efficiency is
 * tokens/s a GPU over that of the best count. */
void planner_scaling(const struct planner_report *report, struct planner_curve *curve);

/* The gnuplot scripts, and running them; *ran: pictures were made. */
enum pt_status planner_report_plots(const struct planner_report *report,
                                    const struct planner_curve *pareto,
                                    const struct planner_curve *scaling, bool *ran,
                                    struct pt_error *err);
enum pt_status planner_report_html(const struct planner_report *report,
                                   const struct planner_curve *scaling, bool pictures,
                                   struct pt_error *err);
/* A path below dir; false when too long. */
bool planner_report_path(const struct planner_report *report, const char *name, char *buf,
                         size_t size);

#endif
