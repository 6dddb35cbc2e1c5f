/* The step time as the largest of a few linear forms of what a split decides.
 *
 * pt_step_time evaluates this form and the search's MILP optimises it, so that both are
 * the same arithmetic: whoever changes how a pipeline, a reduction or an update is priced
 * changes it here (form.c) and nowhere else. Seconds.
 *
 *   step = pipeline + max_s reduce[s] + max_s update[s] + fixed_s
 *   pipeline = the largest row of  constant + slowest * max_s tau[s] + widest * max_s (F
 * + I)
 *              + forward * sum F + input * sum I + weight * sum W
 *   tau[s]   = F[s] + I[s] + W[s] + overhead_s
 *   reduce[s], update[s] = the largest row of a linear form of the stage
 *
 * F, I, W: forward, input-gradient and weight-gradient seconds of stage s for one
 * micro-batch, all its chunks together, recomputation inside I. P[0], P[1]: dense and
 * expert parameters that one rank of the stage holds (divided by tp or ep, not by ZeRO);
 * Q = offload_frac * P. */
#ifndef PT_FORM_H
#define PT_FORM_H

#include "libpt/cost.h"

struct pt_pipeline_row {
    double constant_s, slowest, widest, forward, input, weight;
};
struct pt_stage_row {
    double constant_s, forward, input, weight; /* x F, I, W */
    double param_s[2], offloaded_s[2];         /* x P, Q */
};

#define PT_FORM_ROWS 5
struct pt_form {
    unsigned n_pipeline, n_reduce, n_update;
    struct pt_pipeline_row pipeline[PT_FORM_ROWS];
    struct pt_stage_row reduce[PT_FORM_ROWS], update[PT_FORM_ROWS];
    double overhead_s; /* per stage and micro-batch: engine, exposed transfers */
    double fixed_s;    /* norm, tied embedding, fixed per step */
};

void pt_form_init(const struct pt_layout *layout, const struct pt_costs *costs,
                  struct pt_form *form);

/* What the forms read of one stage. */
struct pt_stage_load {
    double forward_s, input_s, weight_s;
    double params[2], offload_frac;
};
struct pt_form_value {
    double step_s, pipeline_s, reduce_s, update_s;
    uint32_t slowest_stage;
};
void pt_form_value(const struct pt_form *form, const struct pt_stage_load *stage,
                   uint32_t pp, struct pt_form_value *value);
/* The stages' loads of a split (load: pp of them). */
void pt_stage_loads(const struct pt_setup *setup, const struct pt_layout *layout,
                    const struct pt_costs *costs, const struct pt_split *split,
                    struct pt_stage_load *load);

/* Parameters that one rank holds of a layer of a kind, of the embedding (with positions)
 * and of the head (with the final norm; the copy of a tied embedding when pp > 1): [0]
 * dense, [1] experts. */
struct pt_rank_params {
    double layer[PT_N_LAYER_KINDS][2], embedding, head;
};
void pt_rank_params(const struct pt_setup *setup, const struct pt_layout *layout,
                    struct pt_rank_params *params);

#endif
