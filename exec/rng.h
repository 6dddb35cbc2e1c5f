/* Counter-based random numbers: a value depends on (seed, stream, counter) alone, so
 * weights and sample orders do not depend on who computes them. */
#ifndef PT_EXEC_RNG_H
#define PT_EXEC_RNG_H

#include <stdint.h>

/* 64 random bits: two rounds of SplitMix64's finaliser (Steele et al. 2014) over the
 * three. */
uint64_t exec_rng_u64(uint64_t seed, uint64_t stream, uint64_t counter);
/* A standard normal deviate: the inverse distribution of a uniform one, by Wichura's AS
 * 241 (PPND16, relative error 1e-16). */
double exec_rng_normal(uint64_t seed, uint64_t stream, uint64_t counter);

/* A permutation of 0..n-1: image of i under (seed, stream). A balanced Feistel network
 * over the next power of four, walked until it falls inside (Black and Rogaway 2002): no
 * table, O(1). */
uint64_t exec_rng_permute(uint64_t seed, uint64_t stream, uint64_t n, uint64_t i);

#endif
