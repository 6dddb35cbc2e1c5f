/* The parameters of a rank: units (embedding, positions, a layer, the final norm, the
 * head), each one flat run of floats made of tensors. A unit is what is gathered,
 * reduced, sharded and offloaded at once.
 *
 * In a unit the tensors that all tensor-parallel ranks hold alike come first. Each tensor
 * is cut into cells of EXEC_GRID floats: shards end on cell edges, and the global norm is
 * summed over cells in one order, so neither depends on how the model is split. */
#ifndef PT_EXEC_UNIT_H
#define PT_EXEC_UNIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libpt/layout.h"

#define EXEC_GRID        2048
#define EXEC_MAX_TENSORS 18

/* The model as one rank sees it. T: tokens of a micro-batch; Ts: those that this rank
 * holds between layers (T / tp with sequence parallelism). */
struct exec_shape {
    uint32_t layers, tp, tp_rank;
    size_t seq, batch, T, Ts, positions; /* positions: rows of learned ones */
    size_t h, d, heads, kv_heads, f, vocab, vocab_local, vocab_first;
    size_t all_heads, all_kv_heads, all_f; /* of the whole model */
    bool gated, bias, rmsnorm, learned, tied, sequence_parallel;
    float eps;
};

enum exec_unit_kind {
    EXEC_TOKENS,
    EXEC_POSITIONS,
    EXEC_LAYER,
    EXEC_NORM,
    EXEC_HEAD,
    EXEC_N_UNIT_KINDS
};

/* Tensors of a layer, in their order; one that a model lacks has offset EXEC_ABSENT. */
enum exec_slot_name {
    EXEC_LN1_W,
    EXEC_LN1_B,
    EXEC_LN2_W,
    EXEC_LN2_B,
    EXEC_PROJ_B,
    EXEC_FC2_B, /* on all alike */
    EXEC_Q_W,
    EXEC_K_W,
    EXEC_V_W,
    EXEC_Q_B,
    EXEC_K_B,
    EXEC_V_B,
    EXEC_PROJ_W,
    EXEC_FC1_W,
    EXEC_UP_W,
    EXEC_FC1_B,
    EXEC_UP_B,
    EXEC_FC2_W,
    EXEC_N_SLOTS
};
#define EXEC_ABSENT SIZE_MAX

/* A matrix (a vector is one of one column), and the part of it that this rank holds: rows
 * row0.. and columns col0.. ; rows from `rows` on are vocabulary padding, always zero. */
struct exec_tensor {
    char name[48];
    uint64_t stream; /* of its random numbers */
    size_t rows, cols, row0, col0, local_rows, local_cols;
    size_t offset, n;      /* in the unit, floats */
    float mean, deviation; /* initial values */
    bool decay, shared;    /* shared: all tensor-parallel ranks hold the same */
};

struct exec_unit {
    enum exec_unit_kind kind;
    uint32_t layer;
    struct exec_tensor tensor[EXEC_MAX_TENSORS];
    unsigned n_tensors;
    size_t slot[EXEC_N_SLOTS]; /* offset by name, for layers */
    size_t n, shared_n;        /* floats; of the leading shared tensors */
    size_t cells;              /* of this rank */
    size_t norm_at;            /* first entry of the unit in the table of cell norms */
};

/* False with a sentence when the CPU backend cannot run this model, job or layout. */
enum pt_status exec_shape_init(const struct pt_model *model, const struct pt_job *job,
                               const struct pt_layout *layout, uint32_t tp_rank,
                               struct exec_shape *shape, struct pt_error *err);
void exec_unit_init(const struct exec_shape *shape, enum exec_unit_kind kind,
                    uint32_t layer, struct exec_unit *unit);
/* Entries of the whole model's table of cell norms (a tied head has none of its own). */
size_t exec_norm_entries(const struct exec_shape *shape);
/* Where cell `cell` of tensor i lies in that table; tp ranks side by side. */
size_t exec_norm_entry(const struct exec_shape *shape, const struct exec_unit *unit,
                       unsigned i, size_t cell);
/* Initial values, whoever asks and however the model is split. */
void exec_unit_fill(const struct exec_unit *unit, uint64_t seed, float *w);
/* The cell edge nearest below or at `at` floats: a shard's edge. */
size_t exec_unit_edge(const struct exec_unit *unit, size_t at);

#endif
