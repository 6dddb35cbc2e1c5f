/* The order of passes on each stage: what the families of schedules decide, before sends
 * and receives are put between. Only libpt/schedule*.c include this. */
#ifndef PT_SCHEDULE_ORDER_H
#define PT_SCHEDULE_ORDER_H

#include "libpt/schedule.h"

struct pt_pass {
    uint8_t kind; /* PT_FORWARD, PT_BACKWARD, PT_BACKWARD_INPUT, PT_BACKWARD_WEIGHT */
    uint8_t chunk;
    uint32_t micro_batch;
};
/* All stages run equally many passes; stage s owns pass[s * per_stage ..]. */
struct pt_order {
    uint32_t stages, chunks, micro_batches;
    bool v_shaped, split; /* split: INPUT and WEIGHT instead of BACKWARD */
    size_t per_stage;
    struct pt_pass *pass; /* owned */
};

/* A row's builder. order->pass is allocated and every other field set. */
typedef enum pt_status pt_order_fn(const struct pt_schedule_spec *spec,
                                   struct pt_order *order, struct pt_error *err);
pt_order_fn pt_order_gpipe, pt_order_1f1b, pt_order_interleaved, pt_order_zb_h1,
    pt_order_zb_h2; /* schedule_fixed.c: written down once and for all */
pt_order_fn pt_order_zb_v, pt_order_v_half, pt_order_v_min,
    pt_order_zb_auto; /* schedule_list.c: searched, given times and a memory limit */

static inline struct pt_pass *pt_order_stage(const struct pt_order *order, uint32_t stage)
{
    return order->pass + stage * order->per_stage;
}
/* The piece of the model that (stage, chunk) holds. */
static inline uint32_t pt_piece(uint32_t stages, bool v_shaped, uint32_t stage,
                                uint32_t chunk)
{
    return chunk * stages + (v_shaped && chunk % 2 == 1 ? stages - 1 - stage : stage);
}
static inline uint32_t pt_piece_stage(uint32_t stages, bool v_shaped, uint32_t piece)
{
    uint32_t at = piece % stages;

    return v_shaped && piece / stages % 2 == 1 ? stages - 1 - at : at;
}

/* One stage of a split schedule: `ahead` forwards, then one forward, one input part and
 * the weight part of `late` micro-batches ago in turn. pass: 3 m. */
void pt_order_split_stage(struct pt_pass *pass, uint32_t m, uint32_t ahead,
                          uint32_t late);
/* No stage waits for ever; messages and collectives as in schedule.h. The schedule's
 * fields are in range. */
enum pt_status pt_schedule_runs(const struct pt_schedule *schedule, struct pt_error *err);

#endif
