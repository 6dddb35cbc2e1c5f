#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "planner/greedy.h"
#include "planner/units.h"

void planner_place(const struct planner_problem *p, const uint32_t *piece,
                   struct pt_split *split)
{
    uint32_t dense = p->layers[PT_LAYER_DENSE];

    for (uint32_t k = 0; k < p->layout.pp * p->layout.vpp; k++) {
        struct pt_chunk *chunk = &split->chunk[pt_split_order(&p->layout, k)];
        uint32_t d = piece[k] < dense ? piece[k] : dense;

        *chunk = (struct pt_chunk){ .layers = { (uint16_t)d, (uint16_t)(piece[k] - d) } };
        dense -= d;
    }
}

void planner_recompute(struct pt_split *split, uint32_t stage,
                       const uint32_t recomputed[PT_N_LAYER_KINDS])
{
    for (int kind = 0; kind < PT_N_LAYER_KINDS; kind++) {
        uint32_t left = recomputed[kind];

        for (uint32_t c = 0; c < split->vpp; c++) {
            struct pt_chunk *chunk = &split->chunk[c * split->pp + stage];
            uint32_t r = chunk->layers[kind] < left ? chunk->layers[kind] : left;

            chunk->recomputed[kind] = (uint16_t)r;
            left -= r;
        }
    }
}

double planner_least_offload(const struct planner_problem *p, uint32_t s,
                             const struct planner_load *load)
{
    double frac = 0.0;

    for (unsigned j = 0; j < p->stage[s].n_rows; j++) {
        const struct planner_memory_row *row = &p->stage[s].row[j];
        bool any = load->recomputed[0] + load->recomputed[1] > 0;
        double bytes = row->fixed + (any ? row->any_recomputed : 0.0) - p->limit_bytes;

        for (int k = 0; k < PT_N_LAYER_KINDS; k++)
            bytes += load->layers[k] * row->layer[k] +
                     load->recomputed[k] * row->recomputed[k];
        if (bytes <= 0.0)
            continue;
        double room = -row->offloaded * load->optimizer_bytes;

        if (room <= 0.0)
            return 2.0;
        frac = fmax(frac, bytes / room * (1.0 + 1e-9));
    }
    return frac > 1.0 && frac < 1.0 + 1e-8 ? 1.0 : frac;
}

/* Adds recomputed layers, the kind that frees most per second first, until the stage
 * fits. */
static bool recompute_stage(const struct planner_problem *p, uint32_t s, double frac,
                            struct planner_load *load)
{
    while (planner_stage_bytes(p, s, load, frac * load->optimizer_bytes) >
           p->limit_bytes) {
        int best = -1;
        double best_gain = 0.0;

        if (!p->recompute_some)
            return false;
        for (int k = 0; k < PT_N_LAYER_KINDS; k++) {
            double gain = 0.0;

            if (load->recomputed[k] == load->layers[k])
                continue;
            for (unsigned j = 0; j < p->stage[s].n_rows; j++)
                gain = fmax(gain, -p->stage[s].row[j].recomputed[k]);
            gain /= fmax(p->recompute_s[k], 1e-12);
            if (gain > best_gain) {
                best_gain = gain;
                best = k;
            }
        }
        if (best < 0)
            return false;
        load->recomputed[best]++;
    }
    return true;
}

bool planner_relieve(const struct planner_problem *p, bool offload_first,
                     struct pt_split *split)
{
    for (uint32_t s = 0; s < p->layout.pp; s++) {
        struct planner_load load;
        double frac = p->offload_frac;

        planner_stage_load(p, split, s, &load);
        if (p->recompute_all)
            memcpy(load.recomputed, load.layers, sizeof(load.recomputed));
        else
            memset(load.recomputed, 0, sizeof(load.recomputed));
        if (p->offload && offload_first)
            frac = fmin(planner_least_offload(p, s, &load), 1.0);
        if (!recompute_stage(p, s, frac, &load)) {
            if (!p->offload)
                return false;
            frac = planner_least_offload(p, s, &load);
            if (frac > 1.0)
                return false;
        } else if (p->offload && !offload_first) {
            frac = 0.0;
        }
        planner_recompute(split, s, load.recomputed);
        split->offload_frac[s] = frac;
    }
    return planner_fits(p, split);
}

struct greedy {
    const struct planner_problem *p;
    struct planner_units units;
    uint32_t *stage, *piece; /* layers of each */
    struct pt_split *split, best;
    struct pt_stage_load *load;
    double best_s;
};

/* Stage totals to pieces: every stage as one unit, whatever its kinds. */
static void spread(struct greedy *g)
{
    planner_units_spread(&g->units, g->p, g->stage, g->piece);
}

static void copy_split(struct pt_split *to, const struct pt_split *from)
{
    memcpy(to->chunk, from->chunk, (size_t)from->pp * from->vpp * sizeof(*to->chunk));
    memcpy(to->offload_frac, from->offload_frac, from->pp * sizeof(*to->offload_frac));
}

/* Prices the stage totals in g->stage; keeps them when they are the best so far. */
static bool consider(struct greedy *g)
{
    bool better = false;

    if (!g->p->forced)
        spread(g);
    for (int first = 0; first < (g->p->offload ? 2 : 1); first++) {
        double step_s;

        if (g->p->forced)
            pt_split_even(g->split, &g->p->setup->model, &g->p->layout, true);
        else
            planner_place(g->p, g->piece, g->split);
        if (!planner_relieve(g->p, first == 0, g->split))
            continue;
        step_s = planner_step_s(g->p, g->split, g->load, NULL);
        if (step_s < g->best_s * (1.0 - 1e-12)) {
            g->best_s = step_s;
            copy_split(&g->best, g->split);
            better = true;
        }
    }
    return better;
}

/* Fills every stage to the bound's slowest time, then takes surplus layers away where
 * they weigh most. False when the stages cannot hold all layers at that time. */
static bool fill(struct greedy *g, double slowest_s)
{
    const struct planner_problem *p = g->p;
    int kind = p->layers[PT_LAYER_MOE] > p->layers[PT_LAYER_DENSE] ? PT_LAYER_MOE
                                                                   : PT_LAYER_DENSE;
    uint32_t total = p->layers[0] + p->layers[1], sum = 0,
             other = total - p->layers[kind];
    double f = p->offload ? 1.0 : p->offload_frac;

    for (uint32_t s = 0; s < p->layout.pp; s++) {
        g->stage[s] = planner_most_layers(p, s, kind, slowest_s);
        if (g->stage[s] < p->stage[s].min_layers)
            g->stage[s] = p->stage[s].min_layers;
        sum += g->stage[s];
    }
    for (uint32_t s = 0; other > 0 && sum < total; s = (s + 1) % p->layout.pp, other--) {
        g->stage[s]++;
        sum++;
    }
    while (sum > total) {
        uint32_t from = UINT32_MAX;
        double heaviest = -1.0;

        for (uint32_t s = 0; s < p->layout.pp; s++) {
            int r = planner_relief(p, s, kind, g->stage[s], f);
            double a = p->forward_s[kind] + p->input_s[kind] + p->weight_s[kind];
            const struct pt_stage_load *e = &p->stage[s].ends;
            double t = e->forward_s + e->input_s + e->weight_s + g->stage[s] * a +
                       (r > 0 ? r * p->recompute_s[kind] * (1 + p->layout.pp) : 0.0);

            if (g->stage[s] > p->stage[s].min_layers && t > heaviest) {
                heaviest = t;
                from = s;
            }
        }
        if (from == UINT32_MAX)
            return false;
        g->stage[from]--;
        sum--;
    }
    return sum == total;
}

/* Moves one layer at a time from any stage among the slowest to any other while that
 * helps. */
static void improve(struct greedy *g)
{
    const struct planner_problem *p = g->p;
    uint32_t pp = p->layout.pp;

    for (uint32_t round = 0; round < 2 * pp + 8; round++) {
        struct pt_form_value value;
        uint32_t from, keep_to = UINT32_MAX;

        for (uint32_t s = 0; s < pp; s++) {
            struct planner_load load;

            planner_stage_load(p, &g->best, s, &load);
            g->stage[s] = load.layers[0] + load.layers[1];
        }
        planner_step_s(p, &g->best, g->load, &value);
        from = value.slowest_stage;
        if (g->stage[from] <= p->stage[from].min_layers)
            return;
        g->stage[from]--;
        for (uint32_t to = 0; to < pp; to++) {
            if (to == from)
                continue;
            g->stage[to]++;
            if (consider(g))
                keep_to = to;
            g->stage[to]--;
        }
        if (keep_to == UINT32_MAX)
            return;
    }
}

bool planner_greedy(const struct planner_problem *p, const struct planner_bound *bound,
                    struct pt_split *split, struct pt_stage_load *scratch, double *step_s)
{
    struct greedy g = { .p = p, .split = split, .load = scratch, .best_s = HUGE_VAL };
    uint32_t pieces = p->layout.pp * p->layout.vpp;
    bool found = false;

    g.stage = calloc(p->layout.pp, sizeof(*g.stage));
    g.piece = calloc(pieces, sizeof(*g.piece));
    if (g.stage == NULL || g.piece == NULL ||
        planner_units_stages(&g.units, p, NULL) != PT_OK ||
        pt_split_init(&g.best, p->layout.pp, p->layout.vpp, NULL) != PT_OK)
        goto out;
    if (p->forced || p->layout.pp == 1) {
        g.stage[0] = p->layers[0] + p->layers[1];
        consider(&g);
    } else {
        double slowest = bound->slowest_s;

        /* Two kinds, or a host that several stages share, may need a slower stage. */
        for (int try = 0; try < 12 && !isfinite(g.best_s); try++, slowest *= 1.04)
            if (fill(&g, slowest * (1.0 + 1e-9)))
                consider(&g);
        if (isfinite(g.best_s))
            improve(&g);
    }
    found = isfinite(g.best_s);
    if (found) {
        copy_split(split, &g.best);
        *step_s = g.best_s;
    }
out:
    pt_split_fini(&g.best);
    planner_units_fini(&g.units);
    free(g.stage);
    free(g.piece);
    return found;
}
