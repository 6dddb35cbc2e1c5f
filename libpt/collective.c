/* Collectives and transfers.
 *
 *   one fast domain:  t = start + mul (g - 1) / g * S' / (0.9 * busbw)
 *   over K domains:   t = start + latency * log2 K * mul + max(ti, tn) + 0.1 min(ti, tn),
 *                     tn = mul (K - 1) / K * S' / (injection * g / domain * rate_frac *
 * (1 - degrade log2 K)) S' = S + S0 S / (S + S0), S0 = message_frac * half-rate size; mul
 * = 2 for an all-reduce, else 1.
 *
 * Bus bandwidth as nccl-tests define it; rings and trees both move 2 (n - 1) / n of the
 * buffer. In-switch reduction (NVLS) serves all-reduce over a whole 8-GPU domain; smaller
 * groups run at the ring's rate. Measured values: links.csv. Ranks are placed tp, cp, ep,
 * dp, pp. */
#include "config.h"

#include <math.h>

#include "libpt/cost.h"

/* Ranks of a group in one domain, and domains that it spans. */
static uint32_t per_domain(const struct pt_cluster *c, uint32_t ranks, uint32_t stride,
                           uint32_t *domains)
{
    uint32_t g = stride < c->domain_gpus ? c->domain_gpus / stride : 1;

    if (g > ranks)
        g = ranks;
    *domains = (ranks + g - 1) / g;
    return g;
}

/* Without a switch a rank reaches the others of a small group over the direct links
 * alone. */
static double bus_rate(const struct pt_link *l, enum pt_collective kind, uint32_t g)
{
    double gather = l->allgather_bytes_per_s > 0.0 ? l->allgather_bytes_per_s
                                                   : l->allreduce_bytes_per_s;
    double rate = gather;

    if (kind == PT_ALLREDUCE)
        rate = g < 8 ? fmin(gather, l->allreduce_bytes_per_s) : l->allreduce_bytes_per_s;
    else if (kind == PT_ALLTOALL && l->alltoall_bytes_per_s > 0.0)
        rate = l->alltoall_bytes_per_s;
    if (g < 8 && l->p2p_bytes_per_s > 0.0)
        rate = fmin(rate, l->p2p_bytes_per_s * (g - 1.0));
    return rate;
}

double pt_collective_s(const struct pt_setup *setup, enum pt_collective kind,
                       double bytes, uint32_t ranks, uint32_t stride)
{
    const struct pt_cluster *c = &setup->cluster;
    const struct pt_network *w = &setup->network;
    uint32_t domains;

    if (ranks <= 1 || !(bytes > 0.0))
        return 0.0;
    double g = per_domain(c, ranks, stride, &domains), k = domains;
    double mul = kind == PT_ALLREDUCE ? 2.0 : 1.0;
    double ramp = setup->device.message_frac * c->link.half_bytes;
    double s = bytes + ramp * bytes / (bytes + ramp);
    double inside = 0.0, rate;

    if (g > 1.0)
        inside = mul * (g - 1.0) / g * s / (0.9 * bus_rate(&c->link, kind, (uint32_t)g));
    /* Rings of two start in a third of the time of large ones (Vidur's and nccl-tests'
     * curves). */
    double start = setup->device.collective_s * (1.0 - 1.4 / fmax(2.0, ranks));

    if (domains == 1)
        return start + inside;
    rate = c->nic_bytes_per_s / c->domain_gpus * w->rate_frac *
           fmax(0.2, 1.0 - w->degrade * log2(k));
    if (kind != PT_ALLTOALL)
        rate *= g; /* every rank of the domain drives its own share of the NICs */
    double across = mul * (k - 1.0) / k * s / rate;

    return start + w->latency_s * log2(k) * mul + fmax(inside, across) +
           0.1 * fmin(inside, across);
}

double pt_p2p_s(const struct pt_setup *setup, double bytes, uint32_t stride)
{
    const struct pt_cluster *c = &setup->cluster;

    if (!(bytes > 0.0))
        return 0.0;
    if (stride >= c->domain_gpus)
        return 15e-6 +
               bytes / (c->nic_bytes_per_s / c->domain_gpus * setup->network.p2p_frac);
    return 8e-6 + bytes / (0.85 * c->link.p2p_bytes_per_s);
}
