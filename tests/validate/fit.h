/* The fit of profiles/stacks.csv: rows of measured runs, unknown constants, errors. */
#ifndef VALIDATE_FIT_H
#define VALIDATE_FIT_H

#include <stdio.h>

#include "libpt/cost.h"
#include "planner/evaluate.h"

#define FIT_MAX_GROUPS 64

struct fit_row {
    struct planner_run run;
    double measured_s;
    unsigned group, tier;
    bool held;               /* not seen by the fit */
    size_t key[PT_N_SCOPES]; /* index of its stack, device and network */
    double log_error;        /* log(predicted / measured) */
};

/* One unknown: a constant of one key, or of all keys when physics shares it. Its value is
 * base * exp(u), or base + scale u when it may be zero; the prior pulls u to 0. */
struct fit_param {
    enum pt_scope scope;
    const struct pt_constant *constant;
    size_t key; /* SIZE_MAX: shared */
    double base, scale, sigma, u;
    size_t rows; /* that it concerns */
};

struct fit {
    struct planner_runs *runs;
    struct pt_calibration *calibration;
    size_t n_rows, n_params, n_groups;
    struct fit_row *row;
    struct fit_param *param;
    const char *group[FIT_MAX_GROUPS];
    size_t group_rows[FIT_MAX_GROUPS];
    bool equal_groups; /* a row weighs 1 / rows of its group, not the root of that */
    size_t n_done;     /* params of an earlier fit, which fit_write writes too */
    struct fit_param *done;
};

/* The rows of time tier 1 and 2, and the unknowns that they determine; the constants of
 * profile_dir/stacks.csv of that kind. Closed by fit_close also after an error. */
enum pt_status fit_open(struct fit *fit, const char *profile_dir, const char *runs,
                        enum pt_calibration_kind kind, struct pt_error *err);
void fit_close(struct fit *fit);

/* All unknowns back to the datasheet. */
void fit_reset(struct fit *fit);
/* Least robust error of the rows that are not held. PT_SYSTEM when memory is short. */
enum pt_status fit_minimise(struct fit *fit, struct pt_error *err);
/* After a fit on all rows: what is unknown now are the generic stack and network, fitted
 * on the 16-bit runs of all groups as if nobody had told which software they ran. The
 * devices stay. */
enum pt_status fit_generic(struct fit *fit, struct pt_error *err);
/* log_error of every row. */
void fit_evaluate(struct fit *fit);
double fit_value(const struct fit_param *param);
bool fit_concerns(const struct fit_param *param, const struct fit_row *row);

struct fit_figures {
    size_t rows;
    double mean, median, p90, macro[2]; /* of |predicted / measured - 1|; by tier 1, 2 */
};
/* By log_error; groups (may be NULL) gets a line per group. */
void fit_figures(const struct fit *fit, FILE *groups, struct fit_figures *figures);
/* profile_dir/stacks.csv with the fitted values of this fit. */
enum pt_status fit_write(const struct fit *fit, const char *profile_dir, FILE *out,
                         struct pt_error *err);

#endif
