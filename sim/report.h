/* What a simulation found, in words and tables. */
#ifndef SIM_REPORT_H
#define SIM_REPORT_H

#include <stdio.h>

#include "libpt/trace.h"
#include "sim/campaign.h"
#include "sim/engine.h"
#include "sim/model.h"

/* whole: the run that the plan's step belongs to, or NULL. */
void sim_report_text(const struct pt_plan *plan, const struct sim_model *model,
                     const struct sim_result *result, const struct sim_whole *whole,
                     FILE *f);
/* One header, one row. */
void sim_report_csv(const struct pt_plan *plan, const struct sim_model *model,
                    const struct sim_result *result, const struct sim_whole *whole,
                    FILE *f);
enum pt_status sim_report_json(const struct pt_plan *plan, const struct sim_model *model,
                               const struct sim_result *result,
                               const struct sim_whole *whole, FILE *f,
                               struct pt_error *err);
/* --csv: a row per rank. */
void sim_report_ranks(const struct sim_model *model, const struct sim_result *result,
                      FILE *f);
/* --compare: per kind of instruction, seconds each: simulated, measured, ratio. */
void sim_report_compare(const struct pt_trace_sums *simulated,
                        const struct pt_trace_sums *measured, FILE *f);

/* Mean over the steps. */
double sim_mean_step_s(const struct sim_result *result);

#endif
