#include "config.h"

#include <math.h>

#include "exec/rng.h"

static uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

uint64_t exec_rng_u64(uint64_t seed, uint64_t stream, uint64_t counter)
{
    uint64_t key = mix(seed + 0x9e3779b97f4a7c15u * (stream + 1));

    return mix(mix(key + 0x9e3779b97f4a7c15u * (counter + 1)) ^ key);
}

static double ratio(double r, const double a[8], const double b[7])
{
    double num = a[7], den = b[6];

    for (int i = 6; i >= 0; i--)
        num = num * r + a[i];
    for (int i = 5; i >= 0; i--)
        den = den * r + b[i];
    return num / (den * r + 1.0);
}

/* Algorithm AS 241, Applied Statistics 37 (1988) 477-484. */
static double normal_quantile(double p)
{
    static const double a[8] = { 3.3871328727963666080e0,  1.3314166789178437745e+2,
                                 1.9715909503065514427e+3, 1.3731693765509461125e+4,
                                 4.5921953931549871457e+4, 6.7265770927008700853e+4,
                                 3.3430575583588128105e+4, 2.5090809287301226727e+3 };
    static const double b[7] = { 4.2313330701600911252e+1, 6.8718700749205790830e+2,
                                 5.3941960214247511077e+3, 2.1213794301586595867e+4,
                                 3.9307895800092710610e+4, 2.8729085735721942674e+4,
                                 5.2264952788528545610e+3 };
    static const double c[8] = { 1.42343711074968357734e0,  4.63033784615654529590e0,
                                 5.76949722146069140550e0,  3.64784832476320460504e0,
                                 1.27045825245236838258e0,  2.41780725177450611770e-1,
                                 2.27238449892691845833e-2, 7.74545014278341407640e-4 };
    static const double d[7] = { 2.05319162663775882187e0,  1.67638483018380384940e0,
                                 6.89767334985100004550e-1, 1.48103976427480074590e-1,
                                 1.51986665636164571966e-2, 5.47593808499534494600e-4,
                                 1.05075007164441684324e-9 };
    static const double e[8] = { 6.65790464350110377720e0,  5.46378491116411436990e0,
                                 1.78482653991729133580e0,  2.96560571828504891230e-1,
                                 2.65321895265761230930e-2, 1.24266094738807843860e-3,
                                 2.71155556874348757815e-5, 2.01033439929228813265e-7 };
    static const double f[7] = { 5.99832206555887937690e-1, 1.36929880922735805310e-1,
                                 1.48753612908506148525e-2, 7.86869131145613259100e-4,
                                 1.84631831751005468180e-5, 1.42151175831644588870e-7,
                                 2.04426310338993978564e-15 };
    double q = p - 0.5, r;

    if (fabs(q) <= 0.425)
        return q * ratio(0.180625 - q * q, a, b);
    r = sqrt(-log(q < 0 ? p : 1.0 - p));
    r = r <= 5.0 ? ratio(r - 1.6, c, d) : ratio(r - 5.0, e, f);
    return q < 0 ? -r : r;
}

double exec_rng_normal(uint64_t seed, uint64_t stream, uint64_t counter)
{
    /* 53 bits, centred between grid points: never 0 or 1. */
    double u = ((double)(exec_rng_u64(seed, stream, counter) >> 11) + 0.5) * 0x1p-53;

    return normal_quantile(u);
}

#define FEISTEL_ROUNDS 6

uint64_t exec_rng_permute(uint64_t seed, uint64_t stream, uint64_t n, uint64_t i)
{
    unsigned half = 1;
    uint64_t mask;

    while (half < 32 && ((uint64_t)1 << (2 * half)) < n)
        half++;
    mask = ((uint64_t)1 << half) - 1;
    do {
        uint64_t left = i >> half, right = i & mask;

        for (uint64_t r = 0; r < FEISTEL_ROUNDS; r++) {
            uint64_t next = left ^ (exec_rng_u64(seed, stream, r << 32 | right) & mask);

            left = right;
            right = next;
        }
        i = left << half | right;
    } while (i >= n);
    return i;
}
