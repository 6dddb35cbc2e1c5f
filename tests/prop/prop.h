/* Seeded random tests. Each case has a seed of its own, printed when it fails:
 * PT_SEED=N runs that case alone. */
#ifndef TESTS_PROP_H
#define TESTS_PROP_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct prop_rng {
    uint64_t state, seed;
    const char *name;
};

struct prop {
    const char *name;
    void (*run)(struct prop_rng *rng);
};

/* splitmix64 (Steele, Lea, Flood 2014). */
static inline uint64_t prop_u64(struct prop_rng *rng)
{
    uint64_t z = rng->state += 0x9e3779b97f4a7c15;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

static inline uint64_t prop_below(struct prop_rng *rng, uint64_t n)
{
    return prop_u64(rng) % n;
}

static inline double prop_unit(struct prop_rng *rng)
{
    return (double)(prop_u64(rng) >> 11) * 0x1p-53;
}

#define REQUIRE(condition, ...)                                                          \
    do {                                                                                 \
        if (!(condition)) {                                                              \
            printf("%s:%d: %s: PT_SEED=%" PRIu64 ": %s: ", __FILE__, __LINE__,           \
                   rng->name, rng->seed, #condition);                                    \
            printf(__VA_ARGS__);                                                         \
            putchar('\n');                                                               \
            exit(EXIT_FAILURE);                                                          \
        }                                                                                \
    } while (0)

/* Runs every property n_cases times, from seed 1 on; PT_SEED: that seed alone;
 * PT_TIMES=K: K times as many cases, the first ones again among them (make check-long).
 */
static inline int prop_run(const struct prop *props, size_t n_props, uint64_t n_cases)
{
    const char *text = getenv("PT_SEED"), *times = getenv("PT_TIMES");
    uint64_t one = text ? strtoull(text, NULL, 10) : 0;

    if (times != NULL)
        n_cases *= strtoull(times, NULL, 10);
    for (size_t p = 0; p < n_props; p++) {
        for (uint64_t seed = one ? one : 1; seed <= (one ? one : n_cases); seed++) {
            struct prop_rng rng = { seed, seed, props[p].name };

            props[p].run(&rng);
        }
        printf("%s: %" PRIu64 " cases\n", props[p].name, one ? (uint64_t)1 : n_cases);
    }
    return n_cases > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif
