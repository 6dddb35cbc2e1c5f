#include "config.h"

#include <math.h>

#include "sim/random.h"

/* splitmix64's mixer (Steele, Lea, Flood 2014) over the seed and the numbers in turn. */
static uint64_t mix(uint64_t z)
{
    z += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

double sim_random_unit(uint64_t seed, uint64_t a, uint64_t b, uint64_t c)
{
    return (double)(mix(mix(mix(mix(seed) ^ a) ^ b) ^ c) >> 11) * 0x1p-53;
}

/* Twelve uniform numbers, less six (Irwin-Hall), are normal enough out to three
 * deviations, and need no function of the mathematics library: the same bits everywhere.
 */
double sim_random_factor(uint64_t seed, uint64_t a, uint64_t b, uint64_t c, double frac)
{
    double sum = -6;

    for (uint64_t i = 0; i < 12; i++)
        sum += sim_random_unit(seed + i * 0x632be59bd9b4e019u, a, b, c);
    return fmax(0.1, 1 + frac * sum);
}
