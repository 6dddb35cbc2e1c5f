#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "planner/problem.h"

void planner_problem_init(struct planner_problem *problem)
{
    *problem = (struct planner_problem){ 0 };
}

void planner_problem_fini(struct planner_problem *problem)
{
    free(problem->stage);
    *problem = (struct planner_problem){ 0 };
}

static void set_layers(struct planner_problem *p)
{
    const struct pt_costs *c = &p->costs;

    for (int k = 0; k < PT_N_LAYER_KINDS; k++) {
        const struct pt_time *t = &c->layer[k];

        p->layers[k] = pt_model_layers(&p->setup->model, (enum pt_layer_kind)k);
        p->forward_s[k] = t->forward_s + t->forward_comm_s;
        p->input_s[k] = t->input_s + t->input_comm_s + c->recompute_s[k];
        p->weight_s[k] = t->weight_s;
        p->recompute_s[k] = c->recompute_full_s[k] - c->recompute_s[k];
        p->optimizer_bytes[k] = p->terms.optimizer_bytes[k];
    }
}

/* A row of the memory model at one stage, in device bytes. The model's rows are linear,
 * so that their values at no layer, one layer and one recomputed layer give the
 * coefficients. */
static void set_row(const struct planner_problem *p, const struct pt_memory_row *from,
                    struct pt_stage_content content, struct planner_memory_row *to)
{
    const struct pt_memory_terms *t = &p->terms;
    double scale = 1.0 + t->fragmentation_frac, empty, offload = 0.0;

    content.offload_frac = 0.0;
    memset(content.layers, 0, sizeof(content.layers));
    memset(content.recomputed, 0, sizeof(content.recomputed));
    empty = pt_memory_row_bytes(from, &content);
    to->fixed = pt_memory_device_bytes(t, empty);
    to->any_recomputed = scale * from->any_recomputed;
    for (int k = 0; k < PT_N_LAYER_KINDS; k++) {
        double one, again;

        if (p->layers[k] == 0)
            continue;
        content.layers[k] = 1.0;
        one = pt_memory_row_bytes(from, &content);
        content.recomputed[k] = 1.0;
        again = pt_memory_row_bytes(from, &content);
        content.layers[k] = content.recomputed[k] = 0.0;
        to->layer[k] = scale * (one - empty);
        to->recomputed[k] = scale * (again - one - from->any_recomputed);
        if (p->optimizer_bytes[k] > 0.0)
            offload = from->offload[k] / p->optimizer_bytes[k];
    }
    to->offloaded = -scale * offload;
}

static enum pt_status set_stages(struct planner_problem *p, struct pt_error *err)
{
    const struct pt_layout *l = &p->layout;
    enum pt_status st;
    struct pt_stage_load *load = NULL;
    struct pt_split empty = { 0 };
    uint32_t pieces = l->pp * l->vpp;

    if (l->pp > p->stage_capacity) {
        struct planner_stage *stage = realloc(p->stage, l->pp * sizeof(*stage));

        if (stage == NULL)
            return pt_fail(err, PT_SYSTEM, NULL, 0, "out of memory");
        p->stage = stage;
        p->stage_capacity = l->pp;
    }
    st = pt_split_init(&empty, l->pp, l->vpp, err);
    load = calloc(l->pp, sizeof(*load));
    if (st != PT_OK || load == NULL) {
        st = pt_fail(err, PT_SYSTEM, NULL, 0, "out of memory");
        goto out;
    }
    pt_stage_loads(p->setup, l, &p->costs, &empty, load);
    for (uint32_t s = 0; s < l->pp; s++) {
        struct planner_stage *stage = &p->stage[s];
        struct pt_stage_content content;

        *stage = (struct planner_stage){ .ends = load[s], .min_layers = l->vpp };
        pt_stage_content(l, &empty, p->costs.micro_batches, s, &content);
        if (content.first) {
            stage->ends_optimizer_bytes += p->terms.embedding_state_bytes[2];
            stage->min_layers--;
        }
        if (content.last) {
            stage->ends_optimizer_bytes += p->terms.head_state_bytes[2];
            stage->min_layers -= pieces > 1;
        }
        stage->n_rows = p->terms.n_rows;
        for (unsigned j = 0; j < stage->n_rows; j++)
            set_row(p, &p->terms.row[j], content, &stage->row[j]);
    }
out:
    free(load);
    pt_split_fini(&empty);
    return st;
}

double planner_most_offload(const struct planner_problem *p)
{
    return p->offload ? 1.0 : p->offload_frac;
}

int planner_relief(const struct planner_problem *p, uint32_t s, int kind, uint32_t n,
                   double offloaded_frac)
{
    const struct planner_stage *stage = &p->stage[s];
    double optimizer = stage->ends_optimizer_bytes + n * p->optimizer_bytes[kind];
    double need = p->recompute_all ? n : 0.0, limit = p->limit_bytes * (1.0 + 1e-12);

    /* Recomputing costs a working set once, so a row that fits without it may not with
     * it. */
    for (int pass = 0; pass < 2; pass++) {
        bool any = need > 0.0;

        for (unsigned j = 0; j < stage->n_rows; j++) {
            const struct planner_memory_row *row = &stage->row[j];
            double bytes = row->fixed + n * row->layer[kind] +
                           offloaded_frac * optimizer * row->offloaded;

            if (any)
                bytes += row->any_recomputed;
            if (bytes + need * row->recomputed[kind] <= limit)
                continue;
            if (!p->recompute_some || row->recomputed[kind] >= 0.0)
                return -1;
            if (!any)
                bytes += row->any_recomputed;
            double r = ceil((bytes - limit) / -row->recomputed[kind]);

            if (r > n)
                return -1;
            if (r > need)
                need = r;
        }
        if (any || need <= 0.0)
            break;
    }
    return (int)need;
}

/* The largest n <= layers whose relief is at most `most_again` x n: it grows with n. */
static uint32_t largest_n(const struct planner_problem *p, uint32_t s, int kind,
                          uint32_t most_again)
{
    uint32_t lo = 0, hi = p->layers[kind];

    while (lo < hi) {
        uint32_t mid = lo + (hi - lo + 1) / 2;
        int r = planner_relief(p, s, kind, mid, planner_most_offload(p));

        if (r >= 0 && (uint32_t)r <= most_again * mid)
            lo = mid;
        else
            hi = mid - 1;
    }
    return lo;
}

static void set_limits(struct planner_problem *p)
{
    for (uint32_t s = 0; s < p->layout.pp; s++) {
        struct planner_stage *stage = &p->stage[s], *before = stage - 1;
        bool same =
            s > 0 && before->n_rows == stage->n_rows &&
            before->ends_optimizer_bytes == stage->ends_optimizer_bytes &&
            memcmp(before->row, stage->row, stage->n_rows * sizeof(stage->row[0])) == 0;

        for (int k = 0; k < PT_N_LAYER_KINDS; k++) {
            stage->most_layers[k] = same ? before->most_layers[k] : largest_n(p, s, k, 1);
            stage->free_layers[k] = same ? before->free_layers[k] : largest_n(p, s, k, 0);
        }
    }
}

enum pt_status planner_problem_set(struct planner_problem *p,
                                   const struct pt_setup *setup,
                                   const struct planner_space *space,
                                   const struct pt_layout *layout, struct pt_error *err)
{
    enum pt_status st;

    p->setup = setup;
    p->layout = *layout;
    pt_costs_init(setup, layout, &p->costs);
    pt_memory_terms_init(setup, layout, &p->terms);
    pt_rank_params(setup, layout, &p->params);
    pt_form_init(layout, &p->costs, &p->form);
    set_layers(p);
    /* A hair less, so that what fits here also fits in pt_memory_init's order of sums. */
    p->limit_bytes = pt_memory_limit(setup) * (1.0 - 1e-12);
    p->host_limit_bytes = setup->cluster.host_mem_bytes * (1.0 - 1e-12);
    p->host_rank_bytes = p->terms.host_rank_bytes;
    p->host_per_byte = p->terms.host_bytes_per_offloaded_byte;
    p->host_ranks = setup->cluster.node_gpus > 0 ? setup->cluster.node_gpus : 1;
    p->recompute_some = layout->recompute == PT_RECOMPUTE_FULL;
    p->recompute_all = p->recompute_some && space->recompute.n == 1;
    if (p->recompute_all)
        p->recompute_some = false;
    p->offload = space->offload && space->offload_frac < 0.0;
    p->offload_frac =
        space->offload && space->offload_frac > 0.0 ? space->offload_frac : 0.0;
    p->forced = space->embedding_slots;
    st = set_stages(p, err);
    if (st == PT_OK)
        set_limits(p);
    return st;
}

void planner_stage_load(const struct planner_problem *p, const struct pt_split *split,
                        uint32_t stage, struct planner_load *load)
{
    *load =
        (struct planner_load){ .optimizer_bytes = p->stage[stage].ends_optimizer_bytes };
    for (uint32_t c = 0; c < split->vpp; c++)
        for (int k = 0; k < PT_N_LAYER_KINDS; k++) {
            const struct pt_chunk *chunk = &split->chunk[c * split->pp + stage];

            load->layers[k] += chunk->layers[k];
            load->recomputed[k] += chunk->recomputed[k];
            load->optimizer_bytes += chunk->layers[k] * p->optimizer_bytes[k];
        }
}

double planner_stage_bytes(const struct planner_problem *p, uint32_t stage,
                           const struct planner_load *load, double offloaded_bytes)
{
    double worst = 0.0;
    bool any = load->recomputed[0] + load->recomputed[1] > 0;

    for (unsigned j = 0; j < p->stage[stage].n_rows; j++) {
        const struct planner_memory_row *row = &p->stage[stage].row[j];
        double bytes = row->fixed + offloaded_bytes * row->offloaded +
                       (any ? row->any_recomputed : 0.0);

        for (int k = 0; k < PT_N_LAYER_KINDS; k++)
            bytes += load->layers[k] * row->layer[k] +
                     load->recomputed[k] * row->recomputed[k];
        if (bytes > worst)
            worst = bytes;
    }
    return worst;
}

/* When hosts hold ranks of one stage each, one host of each stage stands for its like. */
bool planner_host(const struct planner_problem *p, uint32_t k, struct planner_host *host)
{
    const struct pt_layout *l = &p->layout;
    uint64_t per_stage = (uint64_t)l->tp * l->cp * l->dp, world = per_stage * l->pp;
    uint64_t from = (uint64_t)k * p->host_ranks, to = from + p->host_ranks;

    if (per_stage % p->host_ranks == 0) {
        *host = (struct planner_host){ k, k, p->host_ranks, p->host_ranks, 0 };
        return k < l->pp;
    }
    if (from >= world)
        return false;
    if (to > world)
        to = world;
    *host = (struct planner_host){
        .first = (uint32_t)(from / per_stage),
        .last = (uint32_t)((to - 1) / per_stage),
        .middle_ranks = (uint32_t)per_stage,
    };
    if (host->first == host->last) {
        host->first_ranks = host->last_ranks = (uint32_t)(to - from);
    } else {
        host->first_ranks = (uint32_t)((host->first + 1) * per_stage - from);
        host->last_ranks = (uint32_t)(to - host->last * per_stage);
    }
    return true;
}

static bool hosts_fit(const struct planner_problem *p, const struct pt_split *split)
{
    struct planner_host host;

    if (p->host_limit_bytes <= 0.0)
        return true;
    for (uint32_t k = 0; planner_host(p, k, &host); k++) {
        double bytes = 0.0;

        for (uint32_t s = host.first; s <= host.last; s++) {
            struct planner_load load;

            planner_stage_load(p, split, s, &load);
            bytes += planner_host_ranks(&host, s) *
                     (p->host_rank_bytes +
                      p->host_per_byte * load.optimizer_bytes * split->offload_frac[s]);
        }
        if (bytes > p->host_limit_bytes)
            return false;
    }
    return true;
}

bool planner_fits(const struct planner_problem *p, const struct pt_split *split)
{
    for (uint32_t s = 0; s < p->layout.pp; s++) {
        struct planner_load load;

        planner_stage_load(p, split, s, &load);
        if (planner_stage_bytes(p, s, &load,
                                load.optimizer_bytes * split->offload_frac[s]) >
            p->limit_bytes)
            return false;
    }
    return hosts_fit(p, split);
}

double planner_step_s(const struct planner_problem *p, const struct pt_split *split,
                      struct pt_stage_load *scratch, struct pt_form_value *value)
{
    struct pt_form_value v;

    pt_stage_loads(p->setup, &p->layout, &p->costs, split, scratch);
    pt_form_value(&p->form, scratch, p->layout.pp, &v);
    if (value != NULL)
        *value = v;
    return v.step_s;
}
