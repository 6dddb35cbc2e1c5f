#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "exec/arena.h"

#define ALIGN 64

const char *const exec_use_names[EXEC_N_USES] = { "weights",     "gradients", "optimizer",
                                                  "activations", "logits",    "workspace",
                                                  "messages",    "control" };

/* In the cache line before each block. */
struct head {
    size_t span, bytes;
    uint32_t use, guard;
};
#define GUARD 0x70746578u

enum pt_status exec_arena_init(struct exec_arena *a, void *base, size_t bytes,
                               struct pt_error *err)
{
    memset(a, 0, sizeof(*a));
    a->base = base;
    a->bytes = bytes / ALIGN * ALIGN;
    a->cap_free = 64;
    a->free = malloc(a->cap_free * sizeof(*a->free));
    if (a->free == NULL)
        return pt_fail(err, PT_SYSTEM, NULL, 0, "out of memory");
    a->free[0] = (struct exec_span){ 0, a->bytes };
    a->n_free = 1;
    return PT_OK;
}

void exec_arena_fini(struct exec_arena *a)
{
    free(a->free);
    a->free = NULL;
}

static void account(struct exec_arena *a, uint32_t use, size_t bytes)
{
    a->in_use[use] += bytes;
    if (a->in_use[use] > a->peak_use[use])
        a->peak_use[use] = a->in_use[use];
    if (use == EXEC_USE_CONTROL)
        return;
    a->total += bytes;
    if (a->total > a->peak) {
        a->peak = a->total;
        memcpy(a->at_peak, a->in_use, sizeof(a->at_peak));
    }
}

static void remove_span(struct exec_arena *a, size_t i)
{
    a->n_free--;
    memmove(&a->free[i], &a->free[i + 1], (a->n_free - i) * sizeof(*a->free));
}

enum pt_status exec_alloc(struct exec_arena *a, enum exec_use use, size_t n, float **out,
                          struct pt_error *err)
{
    size_t bytes = n * sizeof(float), span = (bytes + ALIGN - 1) / ALIGN * ALIGN + ALIGN;

    *out = NULL;
    if (n == 0)
        return PT_OK;
    for (size_t i = 0; i < a->n_free; i++) {
        char *p = a->base + a->free[i].at;

        if (a->free[i].bytes < span)
            continue;
        a->free[i].at += span;
        a->free[i].bytes -= span;
        if (a->free[i].bytes == 0)
            remove_span(a, i);
        *(struct head *)(void *)p = (struct head){ span, bytes, use, GUARD };
        *out = (float *)(void *)(p + ALIGN);
        account(a, use, bytes);
        return PT_OK;
    }
    return pt_fail(err, PT_SYSTEM, NULL, 0,
                   "the arena of %zu bytes has no room for %zu bytes of %s (%zu in use)",
                   a->bytes, bytes, exec_use_names[use], a->total);
}

static void insert_span(struct exec_arena *a, size_t i, struct exec_span s)
{
    if (a->n_free == a->cap_free) {
        struct exec_span *grown = realloc(a->free, 2 * a->cap_free * sizeof(*grown));

        if (grown == NULL)
            return; /* the span is lost, nothing else */
        a->free = grown;
        a->cap_free *= 2;
    }
    memmove(&a->free[i + 1], &a->free[i], (a->n_free - i) * sizeof(*a->free));
    a->free[i] = s;
    a->n_free++;
}

void exec_release(struct exec_arena *a, float *p)
{
    struct head *h;
    struct exec_span s;
    size_t i = 0, hi = a->n_free;

    if (p == NULL)
        return;
    h = (struct head *)(void *)((char *)p - ALIGN);
    if (h->guard != GUARD) { /* something wrote before its buffer: exec_step reports it */
        a->damaged = true;
        return;
    }
    h->guard = 0;
    a->in_use[h->use] -= h->bytes;
    if (h->use != EXEC_USE_CONTROL)
        a->total -= h->bytes;
    s = (struct exec_span){ (size_t)((char *)h - a->base), h->span };
    while (i < hi) {
        size_t mid = (i + hi) / 2;

        if (a->free[mid].at < s.at)
            i = mid + 1;
        else
            hi = mid;
    }
    if (i < a->n_free && s.at + s.bytes == a->free[i].at) {
        s.bytes += a->free[i].bytes;
        remove_span(a, i);
    }
    if (i > 0 && a->free[i - 1].at + a->free[i - 1].bytes == s.at)
        a->free[i - 1].bytes += s.bytes;
    else
        insert_span(a, i, s);
}
