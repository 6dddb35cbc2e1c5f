/* Time of a matrix product.
 *
 *   t = floor + max( 2 count M N K / (ceiling * peak) * q * (K + k_half max(1, peak /
 * 1e15)) / K, bytes / (hbm_frac * HBM) ) q = 1 + wave_weight * (1 / u - 1),  u = share of
 * the tensor cores' time that tiles fill: u = max over tiles of  penalty * M N / (n tm
 * tn) * w / ceil(w),  n tiles in w = n / SMs waves
 *
 * The ceiling and the floor: best shapes of mamf-finder (stas00/ml-engineering) and a fit
 * over 483 to 546 shapes from Vidur's profiles (microsoft/vidur; median error 6-7%). Tile
 * and wave quantisation: NVIDIA, Matrix Multiplication Background User's Guide, sections
 * 3 and 4. */
#include "config.h"

#include <math.h>

#include "libpt/cost.h"

static const struct {
    unsigned m_bits, n_bits;
    double penalty;
} tiles[] = { { 8, 7, 1.0 }, { 7, 8, 1.0 }, { 7, 7, 0.93 }, { 6, 7, 0.75 } };

static double tile_use(double m, double n, double count, double sms)
{
    uint64_t mi = (uint64_t)(m + 0.999), ni = (uint64_t)(n + 0.999);
    double best = 0.0;

    for (unsigned i = 0; i < sizeof(tiles) / sizeof(tiles[0]); i++) {
        unsigned a = tiles[i].m_bits, b = tiles[i].n_bits;
        uint64_t rows = (mi + (1u << a) - 1) >> a, cols = (ni + (1u << b) - 1) >> b;
        double n_tiles = (double)(rows * cols), waves = n_tiles * count / sms;
        double full = (double)(uint64_t)waves;

        if (full < waves)
            full += 1.0;
        double u =
            tiles[i].penalty * m * n / (n_tiles * (double)(1u << (a + b))) * waves / full;
        if (u > best)
            best = u;
    }
    return best;
}

double pt_gemm_s(const struct pt_setup *setup, double m, double n, double k, double count,
                 enum pt_precision precision, bool accumulate_fp32)
{
    const struct pt_device *d = &setup->device;
    const struct pt_gpu *g = &setup->cluster.gpu;
    double frac = d->gemm_frac, bytes_in = 2.0, peak = g->peak_flops[precision];

    if (!(m > 0.0 && n > 0.0 && k > 0.0 && count > 0.0))
        return 0.0;
    if (precision == PT_FP8 || precision == PT_MXFP8) {
        frac = d->gemm8_frac;
        bytes_in = 1.0;
    } else if (precision == PT_NVFP4) {
        frac = d->gemm4_frac;
        bytes_in = 0.5;
    } else if (precision == PT_FP32 || precision == PT_TF32) {
        bytes_in = 4.0;
    }
    if (!(peak > 0.0)) /* not supported: the fastest that is */
        peak = g->peak_flops[PT_BF16] > 0.0 ? g->peak_flops[PT_BF16]
                                            : g->peak_flops[PT_FP16];
    double u = tile_use(m, n, count, g->sm_count > 0 ? (double)g->sm_count : 100.0);
    double quantised = 1.0 + d->wave_weight * (1.0 / u - 1.0);
    /* A faster core needs more depth to fill its pipeline. */
    double k_half = d->k_half * fmax(1.0, peak / 1e15);
    double math_s =
        2.0 * count * m * n * k / (frac * peak) * quantised * (k + k_half) / k;
    double bytes =
        count * (bytes_in * (m * k + n * k) + (accumulate_fp32 ? 8.0 : 2.0) * m * n);
    double move_s = bytes / (0.8 * g->hbm_bytes_per_s);

    return d->gemm_floor_s + fmax(math_s, move_s);
}
