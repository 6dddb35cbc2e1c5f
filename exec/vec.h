/* Sixteen floats at a time, in GCC's and Clang's vector types: the compiler lowers them
 * to whatever the file is compiled for. Partial vectors are padded, so that a result does
 * not depend on where a buffer begins. Internal to the kernels. */
#ifndef PT_EXEC_VEC_H
#define PT_EXEC_VEC_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define EXEC_VL 16
typedef float vf __attribute__((vector_size(64)));
typedef int32_t vi __attribute__((vector_size(64)));
/* A function that exists once, for all its callers. */
#ifdef __clang__
#define EXEC_ONE_BODY __attribute__((noinline))
#else
#define EXEC_ONE_BODY __attribute__((noinline, noclone))
#endif
#define EXEC_INLINE static inline __attribute__((always_inline, unused))

EXEC_INLINE vf vec_load(const float *p)
{
    vf v;

    memcpy(&v, p, sizeof(v));
    return v;
}

EXEC_INLINE void vec_store(float *p, vf v)
{
    memcpy(p, &v, sizeof(v));
}

/* The first n < EXEC_VL floats, zero after them. */
EXEC_INLINE vf vec_load_part(const float *p, size_t n)
{
    vf v = { 0 };

    memcpy(&v, p, n * sizeof(float));
    return v;
}

EXEC_INLINE void vec_store_part(float *p, vf v, size_t n)
{
    memcpy(p, &v, n * sizeof(float));
}

EXEC_INLINE vf vec_set(float x)
{
    return (vf){ x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x };
}

/* m ? a : b per lane, m all ones or all zeros. */
EXEC_INLINE vf vec_select(vi m, vf a, vf b)
{
    return (vf)((m & (vi)a) | (~m & (vi)b));
}

EXEC_INLINE vf vec_max(vf a, vf b)
{
    return vec_select(a > b, a, b);
}

EXEC_INLINE vf vec_min(vf a, vf b)
{
    return vec_select(a < b, a, b);
}

/* Sum and maximum of the lanes, pairwise in a fixed order. */
EXEC_INLINE float vec_sum(vf v)
{
    float x[EXEC_VL];

    memcpy(x, &v, sizeof(x));
    for (size_t s = EXEC_VL / 2; s > 0; s /= 2)
        for (size_t i = 0; i < s; i++)
            x[i] += x[i + s];
    return x[0];
}

EXEC_INLINE float vec_hmax(vf v)
{
    float x[EXEC_VL], m;

    memcpy(x, &v, sizeof(x));
    m = x[0];
    for (size_t i = 1; i < EXEC_VL; i++)
        m = x[i] > m ? x[i] : m;
    return m;
}

/* e^x to about 1.5 units in the last place: x = n ln 2 + r, a degree-6 polynomial in r
 * (Cephes' expf), then 2^n into the exponent. Below -87.3 it gives 2^-126 instead of a
 * denormal; NaN stays NaN. */
EXEC_INLINE vf vec_exp(vf x)
{
    const vf magic =
        vec_set(12582912.0f); /* 1.5 * 2^23: adding it rounds to an integer */
    vf c = vec_min(vec_max(x, vec_set(-87.3f)), vec_set(88.3f));
    vf t = c * vec_set(1.44269504088896341f) + magic, n = t - magic, r, p;
    vi e = ((vi)t - (vi)magic + 127) << 23;

    r = c - n * vec_set(0.693359375f);
    r = r - n * vec_set(-2.12194440e-4f);
    p = vec_set(1.9875691500e-4f);
    p = p * r + vec_set(1.3981999507e-3f);
    p = p * r + vec_set(8.3334519073e-3f);
    p = p * r + vec_set(4.1665795894e-2f);
    p = p * r + vec_set(1.6666665459e-1f);
    p = p * r + vec_set(5.0000001201e-1f);
    p = p * r * r + r + vec_set(1.0f);
    return vec_select(x != x, x, p * (vf)e);
}

/* tanh x = 1 - 2 / (e^2x + 1); absolute error below 2e-7, which is what GELU needs. */
EXEC_INLINE vf vec_tanh(vf x)
{
    return vec_set(1.0f) - vec_set(2.0f) / (vec_exp(x + x) + vec_set(1.0f));
}

#endif
