/* Schedules whose order does not depend on times.
 *
 * GPipe (Huang et al., 2018): all forwards, then all backwards.
 * 1F1B (PipeDream-Flush, Narayanan et al., 2020): stage s runs p - s forwards ahead.
 * Interleaved 1F1B (Narayanan et al., 2021, figure 4): micro-batches in groups of p pass
 * through chunk after chunk; stage s runs 2(p - s - 1) + (v - 1)p chunk forwards ahead of
 * the first pair. ZB-H1 (Qi et al., 2023, section 2.2): 1F1B with the weight part of
 * stage s put off by s micro-batches, which keeps p activations on every stage. ZB-H2
 * (ibid.): 2(p - s) - 1 forwards ahead, the weight part put off by 2s micro-batches,
 * which keeps 2p - 1 activations on every stage. */
#include "config.h"

#include "libpt/schedule_order.h"

static uint32_t min_u32(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

enum pt_status pt_order_gpipe(const struct pt_schedule_spec *spec, struct pt_order *order,
                              struct pt_error *err)
{
    uint32_t m = spec->micro_batches;

    (void)err;
    for (uint32_t s = 0; s < order->stages; s++) {
        struct pt_pass *pass = pt_order_stage(order, s);

        for (uint32_t i = 0; i < m; i++) {
            pass[i] = (struct pt_pass){ PT_FORWARD, 0, i };
            pass[m + i] = (struct pt_pass){ PT_BACKWARD, 0, i };
        }
    }
    return PT_OK;
}

enum pt_status pt_order_1f1b(const struct pt_schedule_spec *spec, struct pt_order *order,
                             struct pt_error *err)
{
    uint32_t m = spec->micro_batches;

    (void)err;
    for (uint32_t s = 0; s < order->stages; s++) {
        struct pt_pass *pass = pt_order_stage(order, s);
        uint32_t ahead = min_u32(order->stages - s - 1, m);
        size_t n = 0;

        for (uint32_t i = 0; i < ahead; i++)
            pass[n++] = (struct pt_pass){ PT_FORWARD, 0, i };
        for (uint32_t i = 0; i < m; i++) {
            if (ahead + i < m)
                pass[n++] = (struct pt_pass){ PT_FORWARD, 0, ahead + i };
            pass[n++] = (struct pt_pass){ PT_BACKWARD, 0, i };
        }
    }
    return PT_OK;
}

/* The k-th pass of a stage, forwards or backwards counted apart. */
static struct pt_pass interleaved_pass(const struct pt_order *order, uint32_t k,
                                       bool forward)
{
    uint32_t p = order->stages, v = order->chunks;
    uint32_t chunk = k % (p * v) / p;

    return (struct pt_pass){ forward ? PT_FORWARD : PT_BACKWARD,
                             (uint8_t)(forward ? chunk : v - 1 - chunk),
                             k / (p * v) * p + k % p };
}

enum pt_status pt_order_interleaved(const struct pt_schedule_spec *spec,
                                    struct pt_order *order, struct pt_error *err)
{
    uint32_t p = order->stages, v = order->chunks, m = spec->micro_batches;
    uint32_t total = m * v;

    if (m % p != 0)
        return pt_fail(err, PT_USAGE, NULL, 0,
                       "interleaved: %u micro-batches are no multiple of %u stages; the "
                       "nearest are %u and %u",
                       m, p, m < p ? p : m / p * p, m < p ? 2 * p : (m / p + 1) * p);
    for (uint32_t s = 0; s < p; s++) {
        struct pt_pass *pass = pt_order_stage(order, s);
        uint32_t ahead = min_u32(2 * (p - s - 1) + (v - 1) * p, total);
        size_t n = 0;

        for (uint32_t k = 0; k < ahead; k++)
            pass[n++] = interleaved_pass(order, k, true);
        for (uint32_t k = 0; k < total; k++) {
            if (ahead + k < total)
                pass[n++] = interleaved_pass(order, ahead + k, true);
            pass[n++] = interleaved_pass(order, k, false);
        }
    }
    return PT_OK;
}

/* ahead[s] forwards, then (forward,) input part and the weight part of `late`
 * micro-batches ago. */
void pt_order_split_stage(struct pt_pass *pass, uint32_t m, uint32_t ahead, uint32_t late)
{
    uint32_t w = 0;
    size_t n = 0;

    ahead = min_u32(ahead, m);
    for (uint32_t i = 0; i < ahead; i++)
        pass[n++] = (struct pt_pass){ PT_FORWARD, 0, i };
    for (uint32_t i = 0; i < m; i++) {
        if (ahead + i < m)
            pass[n++] = (struct pt_pass){ PT_FORWARD, 0, ahead + i };
        pass[n++] = (struct pt_pass){ PT_BACKWARD_INPUT, 0, i };
        if (i >= late)
            pass[n++] = (struct pt_pass){ PT_BACKWARD_WEIGHT, 0, w++ };
    }
    while (w < m)
        pass[n++] = (struct pt_pass){ PT_BACKWARD_WEIGHT, 0, w++ };
}

enum pt_status pt_order_zb_h1(const struct pt_schedule_spec *spec, struct pt_order *order,
                              struct pt_error *err)
{
    (void)err;
    for (uint32_t s = 0; s < order->stages; s++)
        pt_order_split_stage(pt_order_stage(order, s), spec->micro_batches,
                             order->stages - s - 1, s);
    return PT_OK;
}

enum pt_status pt_order_zb_h2(const struct pt_schedule_spec *spec, struct pt_order *order,
                              struct pt_error *err)
{
    (void)err;
    for (uint32_t s = 0; s < order->stages; s++)
        pt_order_split_stage(pt_order_stage(order, s), spec->micro_batches,
                             2 * (order->stages - s - 1), 2 * s);
    return PT_OK;
}
