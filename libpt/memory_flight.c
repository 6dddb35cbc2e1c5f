/* Micro-batches in flight, in units of one stage's activations of one micro-batch.
 *
 * s counts from 0; p stages, m micro-batches, v chunks a stage:
 *
 *   GPipe        m                                  Huang et al. 2019
 *   1F1B         p - s                              Narayanan et al. 2021
 *   interleaved  (2 (p - s - 1) + (v - 1) p + 1)/v  ibid.: Megatron-LM's warm-up + 1
 *   ZB-H1        p                                  Qi et al., ICLR 2024
 *   ZB-H2        2 p - 1                            ibid.
 *   ZB auto      its limit                          ibid.
 *   ZB-V         p                                  Qi et al., NeurIPS 2024
 *   V-Half       p/2 + 3/2                          ibid.
 *   V-Min        p/3 + 2                            ibid.
 *
 * What waits for its weight gradient alone counts in full. Vocabulary spread over the
 * stages adds a micro-batch per barrier, interlaced multiplies by 3/2 (Yeung et al. 2024,
 * "Balancing Pipeline Parallelism with Vocabulary Parallelism"). */
#include "config.h"

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
        n = floor(p / 2.0) + 1.5;
        break;
    case PT_SCHEDULE_V_MIN:
        n = fmin(p, ceil(p / 3.0) + 2.0);
        break;
    case PT_SCHEDULE_ZB_AUTO:
        n = layout->max_in_flight ? (double)layout->max_in_flight : p;
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
