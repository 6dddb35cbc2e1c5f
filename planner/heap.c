#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "planner/heap.h"

enum { FLAG_SP = 1, FLAG_KV = 2 };

void planner_pack(const struct pt_layout *l, double bound_s, struct planner_candidate *c)
{
    *c = (struct planner_candidate){
        .bound_s = bound_s,
        .tp = l->tp,
        .pp = l->pp,
        .cp = l->cp,
        .ep = l->ep,
        .dp = l->dp,
        .micro_batch = l->micro_batch,
        .zero_group = l->zero_group,
        .vpp = (uint8_t)l->vpp,
        .zero = (uint8_t)l->zero,
        .schedule = (uint8_t)l->schedule,
        .recompute = (uint8_t)l->recompute,
        .flags = (uint8_t)((l->sequence_parallel ? FLAG_SP : 0) |
                           (l->replicate_kv ? FLAG_KV : 0)),
    };
}

void planner_unpack(const struct planner_candidate *c, struct pt_layout *l)
{
    *l = (struct pt_layout){
        .tp = c->tp,
        .pp = c->pp,
        .vpp = c->vpp,
        .cp = c->cp,
        .ep = c->ep,
        .dp = c->dp,
        .sequence_parallel = (c->flags & FLAG_SP) != 0,
        .replicate_kv = (c->flags & FLAG_KV) != 0,
        .zero = c->zero,
        .zero_group = c->zero_group,
        .recompute = (enum pt_recompute)c->recompute,
        .schedule = (enum pt_schedule_kind)c->schedule,
        .micro_batch = c->micro_batch,
    };
}

static int cmp(uint32_t a, uint32_t b)
{
    return (a > b) - (a < b);
}

int planner_prefer(const struct pt_layout *a, const struct pt_layout *b)
{
    const int order[] = {
        cmp(a->tp, b->tp),
        cmp(a->pp, b->pp),
        cmp(a->cp, b->cp),
        cmp(a->ep, b->ep),
        cmp(a->vpp, b->vpp),
        cmp(a->zero, b->zero),
        cmp(a->zero_group, b->zero_group),
        cmp(a->recompute, b->recompute),
        cmp(a->schedule, b->schedule),
        cmp(a->sequence_parallel, b->sequence_parallel),
        cmp(b->micro_batch, a->micro_batch),
        cmp(a->dp, b->dp),
    };

    for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++)
        if (order[i] != 0)
            return order[i];
    return 0;
}

static bool before(const struct planner_candidate *a, const struct planner_candidate *b)
{
    struct pt_layout x, y;

    if (a->bound_s != b->bound_s)
        return a->bound_s < b->bound_s;
    planner_unpack(a, &x);
    planner_unpack(b, &y);
    return planner_prefer(&x, &y) < 0;
}

static void sift_down(struct planner_heap *h, size_t i)
{
    struct planner_candidate moved = h->item[i];

    for (;;) {
        size_t child = 2 * i + 1;

        if (child >= h->n)
            break;
        if (child + 1 < h->n && before(&h->item[child + 1], &h->item[child]))
            child++;
        if (!before(&h->item[child], &moved))
            break;
        h->item[i] = h->item[child];
        i = child;
    }
    h->item[i] = moved;
}

bool planner_heap_push(struct planner_heap *h, const struct planner_candidate *c)
{
    size_t i = h->n;

    if (h->n == h->capacity) {
        size_t more = h->capacity > 0 ? h->capacity + h->capacity / 2 : 1024;
        struct planner_candidate *item = realloc(h->item, more * sizeof(*item));

        if (item == NULL)
            return false;
        h->item = item;
        h->capacity = more;
    }
    h->n++;
    while (i > 0 && before(c, &h->item[(i - 1) / 2])) {
        h->item[i] = h->item[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    h->item[i] = *c;
    return true;
}

bool planner_heap_pop(struct planner_heap *h, struct planner_candidate *c)
{
    if (h->n == 0)
        return false;
    *c = h->item[0];
    h->item[0] = h->item[--h->n];
    if (h->n > 0)
        sift_down(h, 0);
    return true;
}

size_t planner_heap_prune(struct planner_heap *h, double most_s)
{
    size_t kept = 0, dropped;

    for (size_t i = 0; i < h->n; i++)
        if (h->item[i].bound_s <= most_s)
            h->item[kept++] = h->item[i];
    dropped = h->n - kept;
    h->n = kept;
    for (size_t i = kept / 2; i > 0; i--)
        sift_down(h, i - 1);
    return dropped;
}

void planner_heap_fini(struct planner_heap *h)
{
    free(h->item);
    memset(h, 0, sizeof(*h));
}
