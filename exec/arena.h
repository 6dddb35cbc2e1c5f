/* A rank's memory for tensors: one region, first fit, every byte counted under a name.
 * The figures that a run reports as "accounted" are these. Not for more than one thread.
 */
#ifndef PT_EXEC_ARENA_H
#define PT_EXEC_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libpt/error.h"

enum exec_use {
    EXEC_USE_WEIGHTS,
    EXEC_USE_GRADS,
    EXEC_USE_OPTIMIZER,
    EXEC_USE_ACTIVATIONS,
    EXEC_USE_LOGITS,
    EXEC_USE_WORKSPACE, /* temporaries of one layer, buckets, gathered parameters */
    EXEC_USE_MESSAGES,  /* what travels between stages */
    EXEC_USE_CONTROL,   /* norms, losses, flags: not part of the plan's memory */
    EXEC_N_USES
};

struct exec_span {
    size_t at, bytes;
};

struct exec_arena {
    char *base;
    size_t bytes;
    struct exec_span *free; /* by address; owned */
    size_t n_free, cap_free;
    size_t in_use[EXEC_N_USES], total,
        peak;                     /* requested bytes; without EXEC_USE_CONTROL */
    size_t peak_use[EXEC_N_USES]; /* of each use, at its own time */
    size_t at_peak[EXEC_N_USES];  /* of each use, when the total peaked */
    bool damaged;                 /* a block's guard was overwritten: a bug */
};

/* The memory behind base belongs to the caller and is not touched until allocated. */
enum pt_status exec_arena_init(struct exec_arena *arena, void *base, size_t bytes,
                               struct pt_error *err);
void exec_arena_fini(struct exec_arena *arena);
/* n floats, aligned to 64 bytes, not cleared; *out NULL for n = 0. PT_SYSTEM when the
 * region is full, with its figures. */
enum pt_status exec_alloc(struct exec_arena *arena, enum exec_use use, size_t n,
                          float **out, struct pt_error *err);
/* NULL is allowed. */
void exec_release(struct exec_arena *arena, float *p);
extern const char *const exec_use_names[EXEC_N_USES];

#endif
