/* The solver of one layout against every split there is: the MILP, the greedy start that
 * meets the bound, and the bound itself. Prices and memory come from pt_step_time and
 * pt_memory_init. */
#include "config.h"

#include <math.h>

#include "planner/greedy.h"
#include "planner/solve.h"
#include "tests/prop/search_setup.h"

static struct search_profiles profiles;

struct exhaustive {
    const struct pt_setup *setup;
    const struct pt_layout *layout;
    const struct planner_problem *problem;
    struct pt_costs costs;
    struct pt_memory_terms terms;
    struct pt_split split;
    uint32_t *piece;
    double offload;
    double best_s, least_bytes, most_bytes;
    uint64_t splits;
    bool memory_only;
    struct prop_rng *rng;
};

static void price(struct exhaustive *x)
{
    struct pt_memory memory;
    struct pt_step step;

    x->splits++;
    for (uint32_t s = 0; s < x->layout->pp; s++)
        x->split.offload_frac[s] = x->offload;
    if (pt_memory_init(x->setup, x->layout, &x->terms, &x->split, &memory, NULL) != PT_OK)
        exit(EXIT_FAILURE);
    x->least_bytes = fmin(x->least_bytes, memory.device_bytes);
    x->most_bytes = fmax(x->most_bytes, memory.device_bytes);
    if (memory.fits && !x->memory_only) {
        pt_step_time(x->setup, x->layout, &x->costs, &x->split, true, &step);
        x->best_s = fmin(x->best_s, step.step_s);
    }
    pt_memory_fini(&memory);
}

/* Every number of recomputed layers on each stage and kind. */
static void recomputations(struct exhaustive *x, uint32_t s)
{
    struct planner_load load;
    bool some = x->layout->recompute == PT_RECOMPUTE_FULL;

    if (s == x->layout->pp) {
        price(x);
        return;
    }
    planner_stage_load(x->problem, &x->split, s, &load);
    for (uint32_t a = 0; a <= (some ? load.layers[0] : 0); a++)
        for (uint32_t b = 0; b <= (some ? load.layers[1] : 0); b++) {
            planner_recompute(&x->split, s, (const uint32_t[]){ a, b });
            recomputations(x, s + 1);
        }
}

/* Every composition of the layers into pieces. */
static void pieces(struct exhaustive *x, uint32_t k, uint32_t left)
{
    uint32_t n = x->layout->pp * x->layout->vpp;
    uint32_t least = k == 0 || k == n - 1 ? 0 : 1;

    if (k == n - 1) {
        x->piece[k] = left;
        planner_place(x->problem, x->piece, &x->split);
        recomputations(x, 0);
        return;
    }
    for (uint32_t v = least; v <= left; v++) {
        x->piece[k] = v;
        pieces(x, k + 1, left - v);
    }
}

static void exhaust(struct exhaustive *x, const struct planner_problem *problem,
                    bool memory_only)
{
    uint32_t n = problem->layout.pp * problem->layout.vpp;

    x->setup = problem->setup;
    x->layout = &problem->layout;
    x->problem = problem;
    x->best_s = x->least_bytes = HUGE_VAL;
    x->most_bytes = 0.0;
    x->splits = 0;
    x->memory_only = memory_only;
    pt_costs_init(x->setup, x->layout, &x->costs);
    pt_memory_terms_init(x->setup, x->layout, &x->terms);
    x->piece = calloc(n, sizeof(*x->piece));
    if (x->piece == NULL ||
        pt_split_init(&x->split, x->layout->pp, x->layout->vpp, NULL) != PT_OK)
        exit(EXIT_FAILURE);
    pieces(x, 0, x->setup->model.layers);
    pt_split_fini(&x->split);
    free(x->piece);
}

/* A random valid layout of the setup's GPUs; false when this draw is not valid. */
static bool random_layout(struct prop_rng *rng, const struct pt_setup *s,
                          struct pt_layout *l)
{
    memset(l, 0, sizeof(*l));
    l->pp = PICK(rng, 1, 2, 2, 3, 4, 4);
    l->tp = PICK(rng, 1, 1, 2);
    l->cp = 1;
    l->ep = s->model.experts > 0 ? PICK(rng, 1, 2) : 1;
    l->dp = PICK(rng, 1, 2, 4);
    l->micro_batch = PICK(rng, 1, 1, 2);
    l->vpp = 1;
    l->zero = (uint32_t)prop_below(rng, 4);
    l->recompute = (enum pt_recompute)PICK(rng, PT_RECOMPUTE_NONE, PT_RECOMPUTE_SELECTIVE,
                                           PT_RECOMPUTE_FULL, PT_RECOMPUTE_FULL);
    l->sequence_parallel = l->tp > 1;
    if (l->pp > 1) {
        l->schedule = (enum pt_schedule_kind)PICK(
            rng, PT_SCHEDULE_GPIPE, PT_SCHEDULE_1F1B, PT_SCHEDULE_1F1B,
            PT_SCHEDULE_INTERLEAVED, PT_SCHEDULE_INTERLEAVED, PT_SCHEDULE_ZB_H1,
            PT_SCHEDULE_ZB_H2, PT_SCHEDULE_ZB_V, PT_SCHEDULE_V_HALF, PT_SCHEDULE_V_MIN);
        if (l->schedule == PT_SCHEDULE_INTERLEAVED || pt_schedule_is_v(l->schedule))
            l->vpp = 2;
        l->uneven_chunks = l->schedule == PT_SCHEDULE_INTERLEAVED;
    }
    return pt_layout_check(&s->model, &s->job, l, 0, NULL) == PT_OK;
}

/* Setup, layout, and a limit between what the leanest and the fattest split need. */
static void random_case(struct prop_rng *rng, struct pt_setup *setup,
                        struct pt_layout *layout, struct planner_space *space)
{
    struct planner_problem problem;
    struct exhaustive x = { .rng = rng };

    do
        random_setup(rng, &profiles, setup);
    while (!random_layout(rng, setup, layout));
    *space = (struct planner_space){ .offload_frac = -1.0 };
    setup->cluster.gpus = layout->tp * layout->cp * layout->dp * layout->pp;
    setup->cluster.mem_limit_bytes = 1e15;
    planner_problem_init(&problem);
    if (planner_problem_set(&problem, setup, space, layout, NULL) != PT_OK)
        exit(EXIT_FAILURE);
    exhaust(&x, &problem, true);
    setup->cluster.mem_limit_bytes =
        x.least_bytes + (x.most_bytes - x.least_bytes) * (1.3 * prop_unit(rng) - 0.05) +
        1.0;
    planner_problem_fini(&problem);
}

static void solver_equals_exhaustion(struct prop_rng *rng)
{
    struct pt_setup setup;
    struct pt_layout layout;
    struct planner_space space;
    struct planner_solver solver;
    struct pt_error err = PT_ERROR_INIT;
    enum planner_outcome outcome;
    struct exhaustive x = { .rng = rng };

    random_case(rng, &setup, &layout, &space);
    planner_solver_init(&solver);
    solver.always_milp = prop_below(rng, 2);
    REQUIRE(planner_solver_set(&solver, &setup, &space, &layout, &err) == PT_OK, "%s",
            err.text);
    exhaust(&x, &solver.problem, false);
    REQUIRE(planner_solver_run(&solver, HUGE_VAL, &outcome, &err) == PT_OK, "%s",
            err.text);
    if (!isfinite(x.best_s)) {
        REQUIRE(outcome == PLANNER_NO_MEMORY, "outcome %d step %.9g", (int)outcome,
                solver.step_s);
    } else {
        double d = solver.step_s / x.best_s - 1.0;

        REQUIRE(outcome == PLANNER_SOLVED && solver.found, "outcome %d, best of all %.9g",
                (int)outcome, x.best_s);
        REQUIRE(fabs(d) < 1e-7, "solver %.12g, best of %" PRIu64 " splits %.12g (%g)",
                solver.step_s, x.splits, x.best_s, d);
        REQUIRE(solver.bound.step_s <= x.best_s, "bound %.12g best %.12g",
                solver.bound.step_s, x.best_s);
    }
    planner_solver_fini(&solver);
}

/* Where the optimizer may move freely there is no end of splits; a grid of shares is a
 * start. */
static void free_offload_beats_every_pinned_one(struct prop_rng *rng)
{
    struct pt_setup setup;
    struct pt_layout layout;
    struct planner_space space;
    struct planner_solver solver;
    struct pt_error err = PT_ERROR_INIT;
    enum planner_outcome outcome;
    double best = HUGE_VAL;

    random_case(rng, &setup, &layout, &space);
    setup.cluster.mem_limit_bytes *= 0.8;
    setup.cluster.host_mem_bytes *= prop_unit(rng);
    space.offload = true;
    planner_solver_init(&solver);
    REQUIRE(planner_solver_set(&solver, &setup, &space, &layout, &err) == PT_OK, "%s",
            err.text);
    for (int i = 0; i <= 4; i++) {
        struct exhaustive x = { .rng = rng, .offload = 0.25 * i };

        exhaust(&x, &solver.problem, false);
        best = fmin(best, x.best_s);
    }
    REQUIRE(planner_solver_run(&solver, HUGE_VAL, &outcome, &err) == PT_OK, "%s",
            err.text);
    REQUIRE(!isfinite(best) ||
                (outcome == PLANNER_SOLVED && solver.step_s <= best * (1 + 1e-7)),
            "outcome %d step %.12g, a pinned share %.12g", (int)outcome, solver.step_s,
            best);
    REQUIRE(!isfinite(best) || solver.bound.step_s <= best,
            "bound %.12g, a pinned share %.12g", solver.bound.step_s, best);
    if (solver.found) {
        struct pt_memory memory;

        REQUIRE(pt_memory_init(&setup, &layout, &solver.problem.terms, &solver.split,
                               &memory, NULL) == PT_OK,
                "out of memory");
        REQUIRE(memory.fits, "device %.12g of %.12g, host %.12g of %.12g",
                memory.device_bytes, memory.limit_bytes, memory.host_bytes,
                memory.host_limit_bytes);
        REQUIRE(solver.step_s >= solver.bound_s * (1 - 1e-7),
                "step %.12g below its bound %.12g", solver.step_s, solver.bound_s);
        pt_memory_fini(&memory);
    }
    planner_solver_fini(&solver);
}

int main(void)
{
    static const struct prop props[] = {
        { "solver_equals_exhaustion", solver_equals_exhaustion },
        { "free_offload_beats_every_pinned_one", free_offload_beats_every_pinned_one },
    };
    int rc;

    search_profiles_init(&profiles);
    rc = prop_run(props, sizeof(props) / sizeof(props[0]), 500);
    pt_calibration_free(profiles.calibration);
    return rc;
}
