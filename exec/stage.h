/* One rank: its place in the layout, the pieces of the model that it holds, what is in
 * flight. */
#ifndef PT_EXEC_STAGE_H
#define PT_EXEC_STAGE_H

#include "exec/data.h"
#include "exec/ends.h"
#include "exec/optimizer.h"
#include "libpt/plan.h"
#include "libpt/schedule.h"

/* A unit's parameters as this rank holds them. The optimizer works on [from, to), the
 * part from host_from on with its states in host memory. With ZeRO-2 g exists between a
 * micro-batch's backward and its reduction only, with ZeRO-3 also w only while it is
 * used. */
struct exec_held {
    struct exec_unit unit;
    bool trains; /* a tied head beside its embedding uses that one's weights */
    float *w, *g;
    float *w_shard, *g_shard; /* [from, to): ZeRO-3; ZeRO-2 and 3 */
    size_t *edges;            /* dp + 1, owned */
    size_t from, to, host_from;
    float *m, *v;                             /* [from, host_from) */
    float *host_w, *host_g, *host_m, *host_v; /* [host_from, to), in the host arena */
    uint64_t reducing, gathering;             /* tickets; 0: nothing under way */
    bool summed; /* over the tensor-parallel ranks, what they share */
};

/* A chunk: consecutive layers, the embedding before the first, norm and head after the
 * last. */
struct exec_piece {
    uint32_t index; /* in model order */
    bool first, last;
    uint32_t n_layers, recomputed;
    struct exec_held *tokens, *positions, *layers, *norm,
        *head; /* owned; NULL: not here */
};

/* One micro-batch on one chunk. x[l] enters layer l, dy[l] is its gradient. */
struct exec_flight {
    float **x, **dy; /* n_layers + 1 each, owned */
    struct exec_saved *saved;
    struct exec_pending *pending;
    struct exec_head head;
    bool weight_done;
};

struct exec_parcel { /* a message until its receiver has it */
    float *buf;
    uint32_t to;
    uint64_t ticket;
};

/* When an instruction ran, in seconds of the monotonic clock that all ranks of a host
 * share, and what the arena held after it. In the arena, so that the supervisor can read
 * it at the end. */
struct exec_record {
    double begin_s, end_s, bytes;
};

/* Why a run ends before its last step. */
enum exec_stop {
    EXEC_STOP_NOT,
    EXEC_STOP_ASKED,   /* by a signal */
    EXEC_STOP_UNSAVED, /* metrics or progress cannot be written */
};

struct exec_stage {
    const struct pt_plan *plan;
    const struct pt_layout *layout;
    struct exec_env env;
    struct exec_comm *comm;
    struct exec_group *dp, *tied,
        *world; /* tied: NULL unless two stages share the embedding */
    uint32_t tp_rank, dp_rank, stage, zero; /* zero: 0 when dp is 1 */
    struct pt_schedule schedule;
    struct exec_piece *piece;    /* one per chunk, owned */
    struct exec_flight **flight; /* [chunk * micro_batches + micro_batch], owned */
    struct exec_parcel *parcels;
    size_t n_parcels, cap_parcels;
    struct exec_arena host; /* of optimizer states that are offloaded */
    void *host_base;
    size_t host_bytes;
    double copied_bytes; /* between the arenas, this step */
    /* Of the step under way. */
    uint64_t step, seed;
    uint32_t micro_batches;
    int32_t *tokens, *targets; /* [T] each, of the micro-batch at hand */
    double *losses;            /* per micro-batch of this replica: sums over tokens */
    bool tied_added;
    float scale;   /* 1 / tokens of the global batch */
    double *table; /* in the arena: cell norms, losses, flags */
    size_t norm_entries, table_n;
    double norm_local;   /* of the gradients that this rank's cells hold */
    double loss, norm;   /* of the whole step, on every rank */
    enum exec_stop stop; /* what the first rank was asked; known to all after a step */
    const struct exec_data *data;
    const struct exec_optimizer *optimizer;
    struct exec_held *reducing; /* ZeRO-2 and 3: the reduction that may still run */
    bool fuse_head; /* of the FORWARD at hand: its head's backward belongs to it */
    struct exec_record *record; /* of the last step's instructions */
    /* Called at every instruction, and with NULL at every layer; may be NULL. */
    void (*heartbeat)(void *arg, const struct pt_instr *at);
    void *heartbeat_arg;
};

/* Everything but data and optimizer; comm stays the caller's. Weights get their initial
 * values. */
enum pt_status exec_stage_init(struct exec_stage *s, const struct pt_plan *plan,
                               struct exec_comm *comm, const struct exec_kernels *k,
                               uint64_t seed, struct pt_error *err);
void exec_stage_fini(struct exec_stage *s);
/* Bytes of arena that a rank of this plan may need: an upper bound. */
size_t exec_stage_arena_bytes(const struct pt_plan *plan);

/* held.c */
enum pt_status exec_held_init(struct exec_stage *s, struct exec_held *h,
                              enum exec_unit_kind kind, uint32_t layer, bool trains,
                              struct pt_error *err);
void exec_held_fini(struct exec_stage *s, struct exec_held *h);
/* Weights and gradients resident; drop: what ZeRO-3 need not keep. */
enum pt_status exec_held_weights(struct exec_stage *s, struct exec_held *h,
                                 struct pt_error *err);
void exec_held_drop(struct exec_stage *s, struct exec_held *h);
enum pt_status exec_held_grads(struct exec_stage *s, struct exec_held *h,
                               struct pt_error *err);
/* Sums the gradient over the tensor-parallel ranks where it is partial, and starts its
 * reduction over the data-parallel ones. */
enum pt_status exec_held_reduce(struct exec_stage *s, struct exec_held *h,
                                struct pt_error *err);
enum pt_status exec_held_finish(struct exec_stage *s, struct exec_held *h,
                                struct pt_error *err);
enum pt_status exec_held_gather(struct exec_stage *s, struct exec_held *h,
                                struct pt_error *err);
void exec_held_clear(struct exec_stage *s, struct exec_held *h);
/* Address of float `at` of the unit within the shard. */
float *exec_held_w(const struct exec_stage *s, const struct exec_held *h, size_t at);
float *exec_held_g(const struct exec_stage *s, const struct exec_held *h, size_t at);
/* Sums of squares of this rank's cells into the table. */
void exec_held_norms(const struct exec_stage *s, const struct exec_held *h,
                     double *table);
/* shard 0: the part on the device; 1..PT_OFFLOAD_SHARDS: a part on the host. */
void exec_held_update(struct exec_stage *s, struct exec_held *h, uint32_t shard,
                      const struct exec_adam *adam);
void exec_held_out(struct exec_stage *s, struct exec_held *h, uint32_t shard);
void exec_held_in(struct exec_stage *s, struct exec_held *h, uint32_t shard);

/* The units of a piece, in model order: calls f for each until one fails. */
typedef enum pt_status exec_held_fn(struct exec_stage *s, struct exec_held *h,
                                    struct pt_error *err);
enum pt_status exec_piece_each(struct exec_stage *s, struct exec_piece *p,
                               exec_held_fn *f, struct pt_error *err);

/* passes.c */
enum pt_status exec_forward(struct exec_stage *s, uint32_t chunk, uint32_t mb,
                            struct pt_error *err);
enum pt_status exec_backward_input(struct exec_stage *s, uint32_t chunk, uint32_t mb,
                                   bool with_weight, struct pt_error *err);
enum pt_status exec_backward_weight(struct exec_stage *s, uint32_t chunk, uint32_t mb,
                                    struct pt_error *err);
struct exec_flight *exec_flight(struct exec_stage *s, uint32_t chunk, uint32_t mb);
/* Releases a flight that has nothing left to do or to send. */
void exec_flight_done(struct exec_stage *s, uint32_t chunk, uint32_t mb);
void exec_flight_free(struct exec_stage *s, uint32_t chunk, uint32_t mb);
/* Chunk of this stage that follows (+1) or precedes (-1) this one in the model without a
 * message, the turn of a V; -1 when there is none. */
int exec_turn(const struct exec_stage *s, uint32_t chunk, int direction);

/* The head's weights: its own, or those of the embedding on this rank. */
struct exec_held *exec_head_weights(struct exec_stage *s, struct exec_piece *p);

/* interpret.c */
uint32_t exec_rank_of_stage(const struct exec_stage *s, uint32_t stage);
/* Sends *buf, Ts x h floats, to a stage's rank of the same place and takes it over: *buf
 * becomes NULL, and it is released once the receiver has it. */
enum pt_status exec_post(struct exec_stage *s, uint32_t to, uint64_t tag, float **buf,
                         struct pt_error *err);
/* Releases what has been received; with `all`, waits for every receiver. */
enum pt_status exec_collect(struct exec_stage *s, bool all, struct pt_error *err);
/* One training step, the whole instruction list. */
enum pt_status exec_step(struct exec_stage *s, uint64_t step, enum exec_stop stop,
                         struct pt_error *err);
/* Waits for what a step leaves under way: gathers and messages. */
enum pt_status exec_settle(struct exec_stage *s, struct pt_error *err);

#endif
