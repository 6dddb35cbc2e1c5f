#include "config.h"

#include <float.h>
#include <glpk.h>
#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "planner/greedy.h"
#include "planner/milp.h"
#include "planner/units.h"

/* Seconds are scaled by the mean stage time and bytes by the limit, so that GLPK's
 * absolute tolerances mean the same everywhere. */
struct model {
    const struct planner_problem *p;
    const struct planner_bound *bound;
    glp_prob *lp;
    struct planner_units units;
    bool relief, offload;                          /* r and o exist */
    double second, byte;                           /* scales */
    int slowest, widest, pipeline, reduce, update; /* columns */
    /* First column of each group, 0: absent: layers of each unit and kind, recomputed
     * ones of each stage and kind, whether any is, offloaded bytes of a stage;
     * dense_done[k] allows MoE layers on the k-th piece and forbids dense ones behind it.
     */
    int n, r, any, o, dense_done;
    int *ind, *place; /* the row being written; place[column] in it, 0: not yet */
    double *val;
    int len;
    double most_layers; /* of any stage of a split under the cutoff */
};

static int n_col(const struct model *m, uint32_t unit, int kind)
{
    return m->n + (int)unit * PT_N_LAYER_KINDS + kind;
}

static int r_col(const struct model *m, uint32_t stage, int kind)
{
    return m->r + (int)stage * PT_N_LAYER_KINDS + kind;
}

static int add_cols(struct model *m, uint32_t count, int kind, double hi)
{
    int first = glp_add_cols(m->lp, (int)count);

    for (int j = first; j < first + (int)count; j++) {
        if (hi < DBL_MAX)
            glp_set_col_bnds(m->lp, j, hi > 0.0 ? GLP_DB : GLP_FX, 0.0, hi);
        else
            glp_set_col_bnds(m->lp, j, GLP_LO, 0.0, 0.0);
        glp_set_col_kind(m->lp, j, kind);
    }
    return first;
}

static void term(struct model *m, int col, double value)
{
    if (value == 0.0)
        return;
    if (m->place[col] == 0) {
        m->place[col] = ++m->len;
        m->ind[m->len] = col;
        m->val[m->len] = 0.0;
    }
    m->val[m->place[col]] += value;
}

/* Terms `each[kind]` x layers of a stage. */
static void layer_terms(struct model *m, uint32_t s, const double each[PT_N_LAYER_KINDS])
{
    for (uint32_t u = 0; u < m->units.n; u++)
        for (int k = 0; m->units.unit[u].stage == s && k < PT_N_LAYER_KINDS; k++)
            term(m, n_col(m, u, k), each[k]);
}

/* Terms `each[kind]` x recomputed layers of a stage. */
static void again_terms(struct model *m, uint32_t s, const double each[PT_N_LAYER_KINDS])
{
    for (int k = 0; m->relief && k < PT_N_LAYER_KINDS; k++)
        term(m, r_col(m, s, k), each[k]);
}

/* Ends a row: sum of the terms (type) bound. */
static void row(struct model *m, int type, double bound)
{
    int i = glp_add_rows(m->lp, 1);

    glp_set_row_bnds(m->lp, i, type, bound, bound);
    glp_set_mat_row(m->lp, i, m->len, m->ind, m->val);
    for (int j = 1; j <= m->len; j++)
        m->place[m->ind[j]] = 0;
    m->len = 0;
}

/* Terms -(f F + i I + w W) of a stage without its ends, whose value is returned. */
static double stage_terms(struct model *m, uint32_t s, double f, double i, double w)
{
    const struct planner_problem *p = m->p;
    const struct pt_stage_load *e = &p->stage[s].ends;

    double layer[PT_N_LAYER_KINDS], again[PT_N_LAYER_KINDS];

    for (int k = 0; k < PT_N_LAYER_KINDS; k++) {
        again[k] = -i * p->recompute_s[k] / m->second;
        layer[k] =
            -(f * p->forward_s[k] + i * p->input_s[k] + w * p->weight_s[k]) / m->second +
            (p->recompute_all ? again[k] : 0.0);
    }
    layer_terms(m, s, layer);
    again_terms(m, s, again);
    return (f * e->forward_s + i * e->input_s + w * e->weight_s) / m->second;
}

/* What the bound has proved of a maximum, a hair below. */
static void at_least(struct model *m, int col, double seconds)
{
    glp_set_col_bnds(m->lp, col, GLP_LO, seconds / m->second * (1.0 - 1e-9), 0.0);
}

static void bound_count(struct model *m, int col, double most)
{
    glp_set_col_bnds(m->lp, col, most > 0.0 ? GLP_DB : GLP_FX, 0.0, most);
}

static void columns(struct model *m)
{
    const struct planner_problem *p = m->p;
    uint32_t pp = p->layout.pp;

    m->slowest = add_cols(m, 1, GLP_CV, DBL_MAX);
    m->widest = add_cols(m, 1, GLP_CV, DBL_MAX);
    m->pipeline = add_cols(m, 1, GLP_CV, DBL_MAX);
    m->reduce = add_cols(m, 1, GLP_CV, DBL_MAX);
    m->update = add_cols(m, 1, GLP_CV, DBL_MAX);
    m->n = add_cols(m, m->units.n * PT_N_LAYER_KINDS, GLP_IV, DBL_MAX);
    if (m->relief) {
        m->r = add_cols(m, pp * PT_N_LAYER_KINDS, GLP_IV, DBL_MAX);
        m->any = add_cols(m, pp, GLP_IV, 1.0);
    }
    if (m->offload)
        m->o = add_cols(m, pp, GLP_CV, DBL_MAX);
    if (m->units.n_front > 0)
        m->dense_done = add_cols(m, m->units.n_front, GLP_IV, 1.0);
    at_least(m, m->slowest, m->bound->slowest_s);
    at_least(m, m->widest, m->bound->widest_s);
    at_least(m, m->reduce, m->bound->reduce_s);
    at_least(m, m->update, m->bound->update_s);
    glp_set_obj_coef(m->lp, m->pipeline, 1.0);
    glp_set_obj_coef(m->lp, m->reduce, 1.0);
    glp_set_obj_coef(m->lp, m->update, 1.0);
    for (int k = 0; k < PT_N_LAYER_KINDS; k++) {
        bool only_front = k == PT_LAYER_DENSE && m->units.n_front > 0;

        for (uint32_t u = 0; u < m->units.n; u++)
            bound_count(m, n_col(m, u, k),
                        only_front && !m->units.unit[u].front ? 0.0 : p->layers[k]);
        for (uint32_t s = 0; m->relief && s < pp; s++)
            bound_count(m, r_col(m, s, k), p->layers[k]);
    }
}

static void pipeline_rows(struct model *m)
{
    const struct planner_problem *p = m->p;
    double f = 0.0, i = 0.0, w = 0.0;

    for (uint32_t s = 0; s < p->layout.pp; s++) {
        f += p->stage[s].ends.forward_s;
        i += p->stage[s].ends.input_s;
        w += p->stage[s].ends.weight_s;
    }
    for (int k = 0; k < PT_N_LAYER_KINDS; k++) {
        f += p->layers[k] * p->forward_s[k];
        i +=
            p->layers[k] * (p->input_s[k] + (p->recompute_all ? p->recompute_s[k] : 0.0));
        w += p->layers[k] * p->weight_s[k];
    }
    for (unsigned j = 0; j < p->form.n_pipeline; j++) {
        const struct pt_pipeline_row *x = &p->form.pipeline[j];

        term(m, m->pipeline, 1.0);
        term(m, m->slowest, -x->slowest);
        term(m, m->widest, -x->widest);
        for (uint32_t s = 0; s < p->layout.pp; s++)
            again_terms(m, s,
                        (const double[]){ -x->input * p->recompute_s[0] / m->second,
                                          -x->input * p->recompute_s[1] / m->second });
        row(m, GLP_LO,
            (x->constant_s + x->forward * f + x->input * i + x->weight * w) / m->second);
    }
}

/* a is never above b, whatever a stage holds. */
static bool never_above(const struct model *m, const struct pt_stage_row *a,
                        const struct pt_stage_row *b)
{
    double share = m->offload ? 0.0 : m->p->offload_frac;

    for (int i = 0; i < 2; i++)
        if (a->param_s[i] + share * a->offloaded_s[i] >
                b->param_s[i] + share * b->offloaded_s[i] ||
            (m->offload && a->offloaded_s[i] != b->offloaded_s[i]))
            return false;
    return a->constant_s <= b->constant_s && a->forward <= b->forward &&
           a->input <= b->input && a->weight <= b->weight;
}

/* Whether another row says all that row j does. */
static bool covered(const struct model *m, const struct pt_stage_row *rows, unsigned n,
                    unsigned j)
{
    for (unsigned k = 0; k < n; k++)
        if (k != j && never_above(m, &rows[j], &rows[k]) &&
            (k < j || !never_above(m, &rows[k], &rows[j])))
            return true;
    return false;
}

/* Column >= every row of a stage's reduction or update. */
static void tail_rows(struct model *m, int col, const struct pt_stage_row *rows,
                      unsigned n_rows, uint32_t s)
{
    const struct planner_problem *p = m->p;

    for (unsigned j = 0; j < n_rows; j++) {
        const struct pt_stage_row *x = &rows[j];

        if (covered(m, rows, n_rows, j))
            continue;
        double per_byte = HUGE_VAL, fixed, per_param[2], each[PT_N_LAYER_KINDS];

        for (int i = 0; i < 2; i++)
            per_param[i] =
                x->param_s[i] + (m->offload ? 0.0 : p->offload_frac * x->offloaded_s[i]);
        term(m, col, 1.0);
        fixed = stage_terms(m, s, x->forward, x->input, x->weight);
        for (int k = 0; k < PT_N_LAYER_KINDS; k++) {
            const double *held = p->params.layer[k];
            double off = held[0] * x->offloaded_s[0] + held[1] * x->offloaded_s[1];

            if (p->layers[k] > 0 && p->optimizer_bytes[k] > 0.0)
                per_byte = fmin(per_byte, off / p->optimizer_bytes[k]);
            each[k] = -(held[0] * per_param[0] + held[1] * per_param[1]) / m->second;
        }
        layer_terms(m, s, each);
        if (m->offload && isfinite(per_byte))
            term(m, m->o + (int)s, -per_byte * m->byte / m->second);
        fixed += (x->constant_s + p->stage[s].ends.params[0] * per_param[0] +
                  p->stage[s].ends.params[1] * per_param[1]) /
                 m->second;
        row(m, GLP_LO, fixed);
    }
}

static void time_rows(struct model *m, uint32_t s)
{
    const struct pt_form *form = &m->p->form;
    double fixed;

    term(m, m->slowest, 1.0);
    fixed = stage_terms(m, s, 1.0, 1.0, 1.0);
    row(m, GLP_LO, fixed + form->overhead_s / m->second);
    if (m->bound->widest_s > 0.0) {
        term(m, m->widest, 1.0);
        fixed = stage_terms(m, s, 1.0, 1.0, 0.0);
        row(m, GLP_LO, fixed);
    }
    tail_rows(m, m->reduce, form->reduce, form->n_reduce, s);
    tail_rows(m, m->update, form->update, form->n_update, s);
}

/* Whether a memory row can bind: with as many layers of the largest kind as the cutoff's
 * time allows, nothing recomputed beyond what must be, and nothing offloaded that is
 * free. */
static bool binds(const struct model *m, uint32_t s, const struct planner_memory_row *x)
{
    const struct planner_problem *p = m->p;
    double offloaded = p->offload_frac * x->offloaded, per = 0.0;
    double fixed = x->fixed + offloaded * p->stage[s].ends_optimizer_bytes;

    for (int k = 0; k < PT_N_LAYER_KINDS; k++)
        if (p->layers[k] > 0)
            per = fmax(per, x->layer[k] + offloaded * p->optimizer_bytes[k] +
                                (p->recompute_all ? x->recomputed[k] : 0.0));
    if (p->recompute_all)
        fixed += x->any_recomputed;
    return fixed + m->most_layers * per > p->limit_bytes;
}

/* No more layers than this on any stage, whatever the split under the cutoff. */
static double most_layers(const struct planner_problem *p, double cutoff_s)
{
    double shortest = HUGE_VAL, layers = 0.0;
    double slowest = (cutoff_s - p->form.fixed_s) / p->form.pipeline[0].slowest;

    for (int k = 0; k < PT_N_LAYER_KINDS; k++)
        if (p->layers[k] > 0) {
            shortest = fmin(shortest, p->forward_s[k] + p->input_s[k] + p->weight_s[k]);
            layers += p->layers[k];
        }
    return shortest > 0.0 ? fmin(layers, floor(slowest / shortest)) : layers;
}

/* Whether recomputing can help anywhere. */
static bool needs_relief(const struct model *m)
{
    for (uint32_t s = 0; s < m->p->layout.pp; s++)
        for (unsigned j = 0; j < m->p->stage[s].n_rows; j++)
            if (binds(m, s, &m->p->stage[s].row[j]))
                return true;
    return false;
}

/* Device memory; r <= n; r > 0 needs the working set; o <= the stage's optimizer bytes.
 */
static void memory_rows(struct model *m, uint32_t s)
{
    const struct planner_problem *p = m->p;
    const struct planner_stage *stage = &p->stage[s];
    double layer[PT_N_LAYER_KINDS], again[PT_N_LAYER_KINDS];

    for (unsigned j = 0; j < stage->n_rows; j++) {
        const struct planner_memory_row *x = &stage->row[j];

        if (!binds(m, s, x))
            continue;
        double pinned = m->offload ? 0.0 : p->offload_frac * x->offloaded, fixed;

        fixed = x->fixed + pinned * stage->ends_optimizer_bytes +
                (p->recompute_all ? x->any_recomputed : 0.0);
        for (int k = 0; k < PT_N_LAYER_KINDS; k++) {
            again[k] = x->recomputed[k] / m->byte;
            layer[k] = (x->layer[k] + pinned * p->optimizer_bytes[k]) / m->byte +
                       (p->recompute_all ? again[k] : 0.0);
        }
        layer_terms(m, s, layer);
        again_terms(m, s, again);
        if (m->relief)
            term(m, m->any + (int)s, x->any_recomputed / m->byte);
        if (m->offload)
            term(m, m->o + (int)s, x->offloaded);
        row(m, GLP_UP, (p->limit_bytes - fixed) / m->byte);
    }
    for (int k = 0; m->relief && k < PT_N_LAYER_KINDS; k++) {
        if (p->layers[k] == 0)
            continue;
        layer_terms(m, s, (const double[]){ k == 0, k == 1 });
        term(m, r_col(m, s, k), -1.0);
        row(m, GLP_LO, 0.0);
        term(m, m->any + (int)s, p->layers[k]);
        term(m, r_col(m, s, k), -1.0);
        row(m, GLP_LO, 0.0);
    }
    if (m->offload) {
        layer_terms(m, s,
                    (const double[]){ p->optimizer_bytes[0] / m->byte,
                                      p->optimizer_bytes[1] / m->byte });
        term(m, m->o + (int)s, -1.0);
        row(m, GLP_LO, -stage->ends_optimizer_bytes / m->byte);
    }
}

/* Offloaded bytes of the ranks that share a host: o, or the pinned share of what lies
 * there. */
static void host_rows(struct model *m)
{
    const struct planner_problem *p = m->p;
    struct planner_host host;

    if (p->host_limit_bytes <= 0.0 || (!m->offload && p->offload_frac <= 0.0))
        return;
    for (uint32_t k = 0; planner_host(p, k, &host); k++) {
        double left = p->host_limit_bytes;

        for (uint32_t s = host.first; s <= host.last; s++) {
            double ranks = planner_host_ranks(&host, s);
            double each = ranks * p->host_per_byte * p->offload_frac;

            left -= ranks * p->host_rank_bytes;
            if (m->offload) {
                term(m, m->o + (int)s, ranks * p->host_per_byte);
                continue;
            }
            left -= each * p->stage[s].ends_optimizer_bytes;
            layer_terms(m, s,
                        (const double[]){ each * p->optimizer_bytes[0] / m->byte,
                                          each * p->optimizer_bytes[1] / m->byte });
        }
        row(m, GLP_UP, left / m->byte);
    }
}

/* Stages that are alike in everything may be exchanged: only splits with no fewer layers
 * on the later one are looked at. */
static bool alike(const struct planner_problem *p, uint32_t s, uint32_t t)
{
    const struct planner_stage *a = &p->stage[s], *b = &p->stage[t];
    struct planner_host host;

    if (memcmp(&a->ends, &b->ends, sizeof(a->ends)) != 0 ||
        a->min_layers != b->min_layers || a->n_rows != b->n_rows ||
        memcmp(a->row, b->row, a->n_rows * sizeof(a->row[0])) != 0)
        return false;
    return (!p->offload && p->offload_frac <= 0.0) || p->host_limit_bytes <= 0.0 ||
           (planner_host(p, 0, &host) && host.first == host.last);
}

static void symmetry_rows(struct model *m)
{
    const struct planner_units *units = &m->units;

    for (uint32_t u = units->n_front; u + 1 < units->n; u++) {
        const struct planner_unit *a = &units->unit[u], *b = a + 1;
        bool mixed = false; /* with dense layers, which are no longer alike */

        for (uint32_t i = 0; i < units->n_front; i++)
            mixed = mixed || units->unit[i].stage == a->stage ||
                    units->unit[i].stage == b->stage;
        if (mixed || a->least != b->least || !alike(m->p, a->stage, b->stage))
            continue;
        for (int k = 0; k < PT_N_LAYER_KINDS; k++) {
            term(m, n_col(m, u + 1, k), 1.0);
            term(m, n_col(m, u, k), -1.0);
        }
        row(m, GLP_LO, 0.0);
    }
}

/* All layers placed; no unit below its least; dense layers first. */
static void order_rows(struct model *m)
{
    const struct planner_problem *p = m->p;
    const struct planner_units *units = &m->units;

    for (int k = 0; k < PT_N_LAYER_KINDS; k++) {
        for (uint32_t u = 0; u < units->n; u++)
            term(m, n_col(m, u, k), 1.0);
        row(m, GLP_FX, p->layers[k]);
    }
    for (uint32_t u = 0; u < units->n; u++) {
        if (units->unit[u].least == 0)
            continue;
        term(m, n_col(m, u, 0), 1.0);
        term(m, n_col(m, u, 1), 1.0);
        row(m, GLP_LO, units->unit[u].least);
    }
    for (uint32_t u = 0; u < units->n_front; u++) {
        term(m, m->dense_done + (int)u, p->layers[PT_LAYER_MOE]);
        term(m, n_col(m, u, PT_LAYER_MOE), -1.0);
        row(m, GLP_LO, 0.0);
        if (u + 1 == units->n_front)
            break;
        term(m, m->dense_done + (int)u, p->layers[PT_LAYER_DENSE]);
        term(m, n_col(m, u + 1, PT_LAYER_DENSE), 1.0);
        row(m, GLP_UP, p->layers[PT_LAYER_DENSE]);
        term(m, m->dense_done + (int)u + 1, 1.0);
        term(m, m->dense_done + (int)u, -1.0);
        row(m, GLP_LO, 0.0);
    }
}

static uint32_t whole(const struct model *m, int col)
{
    return (uint32_t)lround(glp_mip_col_val(m->lp, col));
}

static enum pt_status read_layers(const struct model *m, struct pt_split *split,
                                  struct pt_error *err)
{
    uint32_t n = split->pp * split->vpp;
    uint32_t *unit = calloc((size_t)m->units.n + n, sizeof(*unit)), *piece;

    if (unit == NULL)
        return pt_fail(err, PT_SYSTEM, NULL, 0, "out of memory");
    piece = unit + m->units.n;
    for (uint32_t u = 0; u < m->units.n; u++)
        unit[u] = whole(m, n_col(m, u, 0)) + whole(m, n_col(m, u, 1));
    planner_units_spread(&m->units, m->p, unit, piece);
    planner_place(m->p, piece, split);
    free(unit);
    return PT_OK;
}

static enum pt_status read_split(const struct model *m, struct pt_split *split,
                                 struct pt_error *err)
{
    const struct planner_problem *p = m->p;
    enum pt_status st = read_layers(m, split, err);

    for (uint32_t s = 0; st == PT_OK && s < p->layout.pp; s++) {
        struct planner_load load;
        uint32_t r[PT_N_LAYER_KINDS] = { 0 };
        double *frac = &split->offload_frac[s];

        planner_stage_load(p, split, s, &load);
        for (int k = 0; m->relief && k < PT_N_LAYER_KINDS; k++)
            r[k] = whole(m, r_col(m, s, k));
        planner_recompute(split, s, p->recompute_all ? load.layers : r);
        *frac = p->offload_frac;
        if (!m->offload)
            continue;
        *frac = glp_mip_col_val(m->lp, m->o + (int)s) * m->byte /
                fmax(load.optimizer_bytes, 1.0);
        *frac = *frac < 1e-9 ? 0.0 : *frac > 1.0 - 1e-9 ? 1.0 : *frac;
    }
    return st;
}

struct limit {
    uint32_t nodes, max_nodes;
    double bound;
    bool cut;
};

static void watch(glp_tree *tree, void *info)
{
    struct limit *limit = info;

    if (glp_ios_reason(tree) != GLP_ISELECT)
        return;
    int best = glp_ios_best_node(tree);

    if (best != 0)
        limit->bound = glp_ios_node_bound(tree, best);
    if (++limit->nodes > limit->max_nodes) {
        limit->cut = true;
        glp_ios_terminate(tree);
    }
}

static void caught(void *info)
{
    longjmp(*(jmp_buf *)info, 1);
}

static void build(struct model *m, double cutoff_s)
{
    const struct planner_problem *p = m->p;

    columns(m);
    order_rows(m);
    symmetry_rows(m);
    pipeline_rows(m);
    for (uint32_t s = 0; s < p->layout.pp; s++) {
        time_rows(m, s);
        memory_rows(m, s);
    }
    host_rows(m);
    if (isfinite(cutoff_s)) {
        term(m, m->pipeline, 1.0);
        term(m, m->reduce, 1.0);
        term(m, m->update, 1.0);
        row(m, GLP_UP, (cutoff_s * (1.0 - 1e-9) - p->form.fixed_s) / m->second);
    }
}

/* PT_OK: optimal or cut with a solution; PT_CAPACITY: none; PT_LIMIT: cut without one. */
static enum pt_status optimise(struct model *m, uint32_t max_nodes, double time_limit_s,
                               struct planner_milp_stats *stats, struct pt_error *err)
{
    struct limit limit = { .max_nodes = max_nodes, .bound = -DBL_MAX };
    glp_smcp simplex;
    glp_iocp mip;
    int rc;

    glp_init_smcp(&simplex);
    simplex.msg_lev = GLP_MSG_OFF;
    simplex.meth = GLP_DUALP;
    rc = glp_simplex(m->lp, &simplex);
    if (rc != 0)
        return pt_fail(err, PT_BUG, NULL, 0, "GLPK's simplex failed (%d)", rc);
    if (glp_get_status(m->lp) == GLP_NOFEAS)
        return PT_CAPACITY;
    if (glp_get_status(m->lp) != GLP_OPT)
        return pt_fail(err, PT_BUG, NULL, 0, "GLPK's simplex ended with status %d",
                       glp_get_status(m->lp));
    glp_init_iocp(&mip);
    mip.msg_lev = GLP_MSG_OFF;
    mip.br_tech = GLP_BR_DTH;
    mip.bt_tech = GLP_BT_BLB;
    mip.tol_int = 1e-7;
    mip.tol_obj = 1e-9;
    mip.cb_func = watch;
    mip.cb_info = &limit;
    if (time_limit_s > 0.0)
        mip.tm_lim =
            time_limit_s * 1e3 < 1e9 ? (int)(time_limit_s * 1e3) + 1 : 1000000000;
    rc = glp_intopt(m->lp, &mip);
    stats->nodes = limit.nodes;
    if (rc != 0 && rc != GLP_ESTOP && rc != GLP_ETMLIM)
        return pt_fail(err, PT_BUG, NULL, 0, "GLPK's branch and bound failed (%d)", rc);
    stats->proved = rc == 0;
    if (!stats->proved)
        stats->bound_s = limit.bound * m->second + m->p->form.fixed_s;
    switch (glp_mip_status(m->lp)) {
    case GLP_OPT:
    case GLP_FEAS:
        return PT_OK;
    default:
        return stats->proved ? PT_CAPACITY : PT_LIMIT;
    }
}

/* All of GLPK's work, from which it may jump out: nothing here owns memory but GLPK. */
static enum pt_status guarded(struct model *m, double cutoff_s, uint32_t max_nodes,
                              double time_limit_s, struct pt_split *split,
                              struct planner_milp_stats *stats, struct pt_error *err)
{
    jmp_buf jump;
    enum pt_status st;

    if (setjmp(jump) != 0) {
        glp_free_env(); /* its state is not to be trusted */
        return pt_fail(err, PT_BUG, NULL, 0, "GLPK gave up");
    }
    glp_error_hook(caught, &jump);
    glp_term_out(GLP_OFF);
    m->lp = glp_create_prob();
    glp_set_obj_dir(m->lp, GLP_MIN);
    build(m, cutoff_s);
    st = optimise(m, max_nodes, time_limit_s, stats, err);
    if (st == PT_OK) {
        st = read_split(m, split, err);
        if (stats->proved)
            stats->bound_s = glp_mip_obj_val(m->lp) * m->second + m->p->form.fixed_s;
    } else if (st == PT_CAPACITY) {
        stats->bound_s = cutoff_s;
    }
    glp_delete_prob(m->lp);
    glp_error_hook(NULL, NULL);
    return st;
}

enum pt_status planner_milp(const struct planner_problem *p,
                            const struct planner_bound *bound, double cutoff_s,
                            uint32_t max_nodes, double time_limit_s,
                            struct pt_split *split, struct planner_milp_stats *stats,
                            struct pt_error *err)
{
    struct model m = { .p = p, .bound = bound };
    enum pt_status st;
    size_t most;

    *stats = (struct planner_milp_stats){ .bound_s = bound->step_s };
    st = planner_units_init(&m.units, p, err);
    if (st != PT_OK)
        return st;
    m.second = bound->slowest_s;
    m.byte = p->limit_bytes;
    m.offload = p->offload;
    m.most_layers = most_layers(p, cutoff_s);
    m.relief = p->recompute_some && needs_relief(&m);
    most = 8 + (size_t)m.units.n * (PT_N_LAYER_KINDS + 1) +
           (size_t)p->layout.pp * (PT_N_LAYER_KINDS + 2);
    m.ind = calloc(most, sizeof(*m.ind));
    m.place = calloc(most, sizeof(*m.place));
    m.val = calloc(most, sizeof(*m.val));
    if (m.ind == NULL || m.place == NULL || m.val == NULL)
        st = pt_fail(err, PT_SYSTEM, NULL, 0, "out of memory");
    else
        st = guarded(&m, cutoff_s, max_nodes, time_limit_s, split, stats, err);
    free(m.ind);
    free(m.place);
    free(m.val);
    planner_units_fini(&m.units);
    return st;
}

void planner_milp_release(void)
{
    glp_free_env();
}
