/* Micro-batches in flight.
 *
 * In units of one stage's activations of one micro-batch; s counts from 0, p stages, m
 * micro-batches, v chunks a stage.
 *   GPipe        m                                  (Huang et al. 2019)
 *   1F1B         p - s                              (Narayanan et al. 2021)
 *   interleaved  (2 (p - s - 1) + (v - 1) p + 1)/v  (ibid.; Megatron-LM's warm-up plus
 * one) ZB-H1        p, ZB-H2 2p - 1                    (Qi et al., ICLR 2024, with the
 * part that waits for the weight gradient counted in full) ZB-V         p (Qi et al.,
 * NeurIPS 2024: the V family; the V-Half       p/2 + 1.5, V-Min p/3 + 2              small
 * constants of its schedules included) ZB auto      its limit Vocabulary spread over the
 * stages adds one micro-batch per barrier, interlaced multiplies by 3/2 (Yeung et al.,
 * "Balancing Pipeline Parallelism with Vocabulary Parallelism", 2024). */
#include <math.h>

#include "libpt/memory.h"

double pt_in_flight(const struct pt_layout *layout, uint32_t micro_batches,
                    uint32_t stage)
{
    double p = layout->pp, v = layout->vpp ? layout->vpp : 1.0, m = micro_batches;
    double n;

    switch (layout->schedule) {
    case PT_SCHEDULE_1F1B:
        n = p - (double)stage;
        break;
    case PT_SCHEDULE_INTERLEAVED:
        n = (2.0 * (p - (double)stage - 1.0) + (v - 1.0) * p + 1.0) / v;
        break;
    case PT_SCHEDULE_GPIPE:
        n = m;
        break;
    case PT_SCHEDULE_ZB_H1:
    case PT_SCHEDULE_ZB_V:
        n = p;
        break;
    case PT_SCHEDULE_ZB_H2:
        n = 2.0 * p - 1.0;
        break;
    case PT_SCHEDULE_V_HALF:
        n = fmin(p, floor(p / 2.0) + 1.5);
        break;
    case PT_SCHEDULE_V_MIN:
        n = fmin(p, ceil(p / 3.0) + 2.0);
        break;
    case PT_SCHEDULE_ZB_AUTO:
        /* Of the limit, what waits for its weight gradient alone holds less: 0.3 of a
         * micro-batch at a limit of p, one at 2p (Qi et al., table 5, peak memory). */
        n = layout->max_in_flight ? (double)layout->max_in_flight : p;
        n = fmax(n * (1.0 - 0.7 / p) + 0.4, 1.0);
        break;
    default:
        n = 1.0;
        break;
    }
    switch (layout->vocab) {
    case PT_VOCAB_SPREAD_1:
        n += 2.0;
        break;
    case PT_VOCAB_SPREAD_2:
        n += 1.0;
        break;
    case PT_VOCAB_INTERLACED:
        n *= 1.5;
        break;
    default:
        break;
    }
    return fmin(n, m);
}
