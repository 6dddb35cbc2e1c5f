/* Randomness that depends on what it is for, not on the order in which it is asked. */
#ifndef SIM_RANDOM_H
#define SIM_RANDOM_H

#include <stdint.h>

/* Uniform in [0, 1) for a seed and three numbers. */
double sim_random_unit(uint64_t seed, uint64_t a, uint64_t b, uint64_t c);
/* 1 + frac * a standard normal number, not below a tenth. */
double sim_random_factor(uint64_t seed, uint64_t a, uint64_t b, uint64_t c, double frac);

#endif
