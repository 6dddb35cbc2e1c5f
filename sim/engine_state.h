/* The state of the engine, shared by its files and by nobody else. */
#ifndef SIM_ENGINE_STATE_H
#define SIM_ENGINE_STATE_H

#include "sim/engine.h"
#include "sim/links.h"

enum event_kind { EV_RANK, EV_GANG, EV_NORM, EV_TIED, EV_FLOW, EV_HOST };

enum state {
    RUNNING, /* or about to: an event will resume it */
    AT_PASS, /* waits for its gang */
    AT_RECV,
    AT_BARRIER,
    AT_MEETING, /* NORM, REDUCE_TIED */
    AT_STREAMS, /* gather after the step, end of the list */
    DONE
};

/* Work in order on a stream that is not the compute stream. */
struct task {
    struct pt_instr instr;
    double work_s;
    uint64_t after; /* tasks of the stream before it that must have ended */
};
struct stream {
    struct task *task; /* ring */
    uint32_t head, n, cap;
    bool busy;
    double start_s, free_s; /* of the task that runs; when the last one ended */
    uint64_t ended;
};
/* Beside the compute stream; the three of the offload follow each other, shard by shard.
 */
enum { COMM, TO_HOST, HOST, TO_DEVICE, N_SIDE };

struct rank {
    size_t at;
    enum state state;
    uint32_t stage, step;
    double since_s;      /* when the present wait or pass began */
    double last_pass_s;  /* how long its last weight part or backward took */
    double free_s;       /* compute stream: an optimizer that runs on */
    uint64_t issued;     /* side tasks not ended */
    uint32_t reductions; /* of them, reductions */
    double held_bytes;
    struct stream side[N_SIDE];
};

/* Ranks that end their passes together. */
struct gang {
    double end_s;
    uint32_t n;
};

/* Messages of one kind for one chunk of a rank: they come in order, so it is enough to
 * count. */
struct channel {
    uint32_t arrived, taken;
};

struct engine {
    const struct sim_world *w;
    const struct pt_schedule *sc;
    const struct sim_observer *obs;
    size_t n_obs;
    struct sim_result *res;
    struct sim_evq q;
    struct sim_links *links;
    struct rank *rank;
    struct gang *gang;
    struct channel *channel; /* [rank][gradient][chunk] */
    uint32_t *tied, *group;  /* arrivals: [index], [stage][dense][chunk] */
    uint32_t n_ranks, at_norm, done;
    double step_start_s;
    uint64_t messages;
    struct flight *flight; /* messages under way, by tag */
    uint32_t n_flights, cap_flights, free_flight;
    bool failed;
};

/* A message under way. */
struct flight {
    uint64_t id;
    double start_s;
    uint32_t from, to, next;
    struct pt_instr instr;
    double bytes;
};

/* Tags of flows: a message's flight, or a rank's side stream. */
#define TAG_SIDE (1ull << 63)

static inline struct channel *channel_of(struct engine *e, uint32_t r, bool gradient,
                                         uint32_t chunk)
{
    return &e->channel[((size_t)r * 2 + gradient) * e->sc->chunks + chunk];
}

static inline const struct sim_chunk *chunk_of(const struct engine *e, uint32_t r,
                                               uint32_t chunk)
{
    return &e->w->chunk[(size_t)chunk * e->sc->stages + e->rank[r].stage];
}

/* engine.c. Memory that runs out is latched in `failed`. */
void sim_engine_push(struct engine *e, double time_s, uint32_t what, uint32_t who);
void sim_engine_tell_span(struct engine *e, uint32_t r, enum pt_stream stream,
                          const struct pt_instr *in, double start_s, double end_s);
/* Interprets the list of a rank until it waits. */
void sim_engine_run_rank(struct engine *e, uint32_t r, double now);
/* Begins a transfer, alone or on links that it shares. */
void sim_engine_transfer(struct engine *e, double now, double work_s, uint32_t out,
                         uint32_t in, uint64_t tag);

/* engine_message.c: messages between stages. */
void sim_engine_send(struct engine *e, uint32_t r, const struct pt_instr *in, double now);
void sim_engine_arrive(struct engine *e, uint32_t flight, double now);
/* Takes a message that has arrived. It holds up the compute stream for its blocking part,
 * less the time that the rank has waited for it anyway. False: the rank waits. */
bool sim_engine_receive(struct engine *e, uint32_t r, const struct pt_instr *in,
                        double now);

/* engine_side.c: the streams beside the compute stream. */
void sim_engine_add_side(struct engine *e, uint32_t r, unsigned side,
                         const struct pt_instr *in, double work_s, double now);
void sim_engine_end_side(struct engine *e, uint32_t r, unsigned side, double now);
void sim_engine_reduce(struct engine *e, uint32_t r, const struct pt_instr *in,
                       double now);

#endif
