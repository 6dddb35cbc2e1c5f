/* A whole training run: failures, checkpoints, restarts, spare nodes. */
#ifndef SIM_CAMPAIGN_H
#define SIM_CAMPAIGN_H

#include <stdint.h>

#include "libpt/error.h"

struct sim_campaign {
    double work_s;       /* the run without failures and checkpoints */
    double step_s;       /* no interval is shorter */
    double mtbf_s;       /* of the whole job, exponential; 0: nothing fails */
    double checkpoint_s; /* how long a checkpoint stops the training */
    double interval_s;   /* work between two checkpoints; 0: Daly's */
    double
        restart_s; /* from a failure to the last checkpoint's step, a node being there */
    double repair_s; /* a failed node comes back after this; 0: at once */
    uint32_t spares; /* nodes that stand by */
    uint64_t seed;
    uint32_t seeds; /* runs simulated, >= 1 */
};

struct sim_campaign_result {
    double interval_s;
    double mean_s, p10_s, p90_s; /* time to train */
    double goodput_frac;         /* work / mean_s */
    /* Means: work done again, checkpoints, restarts, waiting for a node; number of
     * failures */
    double lost_s, checkpoint_s, restart_s, wait_s, failures;
    double young_s, daly_s;         /* best intervals by their formulas */
    double best_interval_s, best_s; /* by search: simulated mean at the best interval */
};

/* A campaign with its result, as it is reported. */
#define SIM_SPARES_SHOWN 4
struct sim_whole {
    struct sim_campaign campaign;
    struct sim_campaign_result result;
    double tokens;
    double by_spares_s[SIM_SPARES_SHOWN]; /* time to train with 0, 1, ... nodes standing
                                             by */
    unsigned n_spares;                    /* 0: nodes are replaced at once */
};
/* Fills result and by_spares_s from campaign. */
enum pt_status sim_whole_run(struct sim_whole *whole, struct pt_error *err);

/* Runs it. PT_USAGE for values that contradict each other; PT_CAPACITY when a run makes
 * no progress (a failure comes before nearly every checkpoint). */
enum pt_status sim_campaign_run(const struct sim_campaign *campaign,
                                struct sim_campaign_result *result, struct pt_error *err);

#endif
