/* "rank=3,slowdown=1.2;rank=5,slowdown=2": the ranks that --straggler and --link-degrade
 * name. */
#ifndef SIM_FACTORS_H
#define SIM_FACTORS_H

#include "sim/model.h"

#define SIM_MAX_FACTORS 64
struct sim_factors {
    uint32_t n;
    struct sim_factor factor[SIM_MAX_FACTORS];
};
/* text NULL: none. PT_USAGE with the option's name and what is wrong. */
enum pt_status sim_factors_parse(const char *option, const char *text,
                                 struct sim_factors *factors, struct pt_error *err);

#endif
