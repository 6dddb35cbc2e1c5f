#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "exec/stage.h"
#include "libpt/schedule_plan.h"

size_t exec_stage_arena_bytes(const struct pt_plan *plan)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);

    (void)plan; /* address space is free: no rank can use more than the machine has */
    return pages > 0 && page > 0 ? (size_t)pages * (size_t)page : (size_t)1 << 36;
}

static enum pt_status no_memory(struct pt_error *err)
{
    return pt_fail(err, PT_SYSTEM, NULL, 0, "out of memory");
}

/* Ranks are placed tp first, then dp, then pp (cp is 1). */
static enum pt_status make_groups(struct exec_stage *s, struct pt_error *err)
{
    uint32_t tp = s->layout->tp, dp = s->layout->dp, pp = s->layout->pp;
    uint32_t n = s->comm->size, rank = s->comm->rank, base = rank / (tp * dp) * tp * dp;
    uint32_t *ranks = malloc((n + 2) * sizeof(*ranks));
    enum pt_status st;

    if (ranks == NULL)
        return no_memory(err);
    for (uint32_t i = 0; i < tp; i++)
        ranks[i] = rank - s->tp_rank + i;
    st = s->comm->ops->group(s->comm, EXEC_DIM_TP, ranks, tp, &s->env.tp, err);
    for (uint32_t i = 0; i < dp; i++)
        ranks[i] = base + i * tp + s->tp_rank;
    if (st == PT_OK)
        st = s->comm->ops->group(s->comm, EXEC_DIM_DP, ranks, dp, &s->dp, err);
    for (uint32_t i = 0; i < n; i++)
        ranks[i] = i;
    if (st == PT_OK)
        st = s->comm->ops->group(s->comm, EXEC_DIM_WORLD, ranks, n, &s->world, err);
    if (st == PT_OK && s->env.shape.tied) {
        uint32_t pieces = pp * s->layout->vpp;
        uint32_t last = pt_schedule_piece_stage(&s->schedule, pieces - 1);
        uint32_t first = pt_schedule_piece_stage(&s->schedule, 0);

        ranks[0] = first * tp * dp + rank % (tp * dp);
        ranks[1] = last * tp * dp + rank % (tp * dp);
        if (first != last && (s->stage == first || s->stage == last))
            st = s->comm->ops->group(s->comm, EXEC_DIM_TIED, ranks, 2, &s->tied, err);
    }
    free(ranks);
    return st;
}

static enum pt_status hold(struct exec_stage *s, struct exec_held **out,
                           enum exec_unit_kind kind, bool trains, struct pt_error *err)
{
    *out = calloc(1, sizeof(**out));
    if (*out == NULL)
        return no_memory(err);
    return exec_held_init(s, *out, kind, 0, trains, err);
}

static enum pt_status make_piece(struct exec_stage *s, uint32_t chunk,
                                 struct pt_error *err)
{
    const struct pt_split *split = &s->plan->split;
    struct exec_piece *p = &s->piece[chunk];
    uint32_t pieces = s->layout->pp * s->layout->vpp, layer = 0;
    const struct pt_chunk *c = NULL;
    bool both = pt_schedule_piece_stage(&s->schedule, 0) ==
                pt_schedule_piece_stage(&s->schedule, pieces - 1);
    enum pt_status st = PT_OK;

    p->index = pt_schedule_piece(&s->schedule, s->stage, chunk);
    p->first = p->index == 0;
    p->last = p->index == pieces - 1;
    for (uint32_t k = 0; k <= p->index; k++) {
        layer += c != NULL ? c->layers[PT_LAYER_DENSE] : 0;
        c = &split->chunk[pt_split_order(s->layout, k)];
    }
    p->n_layers = c->layers[PT_LAYER_DENSE];
    p->recomputed = c->recomputed[PT_LAYER_DENSE];
    p->layers = calloc(p->n_layers + 1, sizeof(*p->layers));
    if (p->layers == NULL)
        return no_memory(err);
    if (p->first)
        st = hold(s, &p->tokens, EXEC_TOKENS, true, err);
    if (st == PT_OK && p->first && s->env.shape.learned)
        st = hold(s, &p->positions, EXEC_POSITIONS, true, err);
    for (uint32_t l = 0; l < p->n_layers && st == PT_OK; l++)
        st = exec_held_init(s, &p->layers[l], EXEC_LAYER, layer + l, true, err);
    if (st == PT_OK && p->last)
        st = hold(s, &p->norm, EXEC_NORM, true, err);
    if (st == PT_OK && p->last)
        st = hold(s, &p->head, EXEC_HEAD, !(s->env.shape.tied && both), err);
    return st;
}

/* The schedule promises that each chunk's micro-batches come in ascending order, which is
 * what makes gradients the same to the bit under every schedule. */
static enum pt_status check_order(const struct exec_stage *s, struct pt_error *err)
{
    const struct pt_program *prog = &s->schedule.stage[s->stage];
    uint32_t next[3][256] = { { 0 } };

    for (size_t i = 0; i < prog->n; i++) {
        const struct pt_instr *in = &prog->instr[i];
        int row = in->kind == PT_FORWARD                                     ? 0
                  : in->kind == PT_BACKWARD || in->kind == PT_BACKWARD_INPUT ? 1
                  : in->kind == PT_BACKWARD_WEIGHT                           ? 2
                                                                             : -1;

        if (row >= 0 && in->micro_batch != next[row][in->chunk]++)
            return pt_fail(err, PT_BUG, NULL, 0,
                           "stage %u: %s of chunk %u takes micro-batch %u out of order",
                           s->stage, pt_instr_name((enum pt_instr_kind)in->kind),
                           in->chunk, in->micro_batch);
    }
    return PT_OK;
}

static enum pt_status make_schedule(struct exec_stage *s, struct pt_error *err)
{
    /* the very list that the simulator prices */
    enum pt_status st = pt_schedule_of_plan(s->plan, &s->schedule, err);

    if (st == PT_OK)
        st = pt_schedule_check(&s->schedule, err);
    if (st == PT_OK)
        st = check_order(s, err);
    return st;
}

static enum pt_status make_buffers(struct exec_stage *s, struct pt_error *err)
{
    const struct exec_shape *sh = &s->env.shape;
    size_t n = (size_t)s->schedule.chunks * s->micro_batches;
    float *table, *record = NULL;
    enum pt_status st;

    s->flight = calloc(n, sizeof(*s->flight));
    s->losses = calloc(s->micro_batches, sizeof(*s->losses));
    s->tokens = calloc(sh->T, sizeof(*s->tokens));
    s->targets = calloc(sh->T, sizeof(*s->targets));
    if (s->flight == NULL || s->losses == NULL || s->tokens == NULL || s->targets == NULL)
        return no_memory(err);
    s->norm_entries = exec_norm_entries(sh);
    s->table_n = s->norm_entries + (size_t)s->micro_batches * s->layout->dp + 1;
    st = exec_alloc(&s->env.arena, EXEC_USE_CONTROL, 2 * s->table_n, &table, err);
    s->table = (double *)(void *)table;
    if (st == PT_OK)
        st =
            exec_alloc(&s->env.arena, EXEC_USE_CONTROL,
                       s->schedule.stage[s->stage].n * sizeof(*s->record) / sizeof(float),
                       &record, err);
    s->record = (struct exec_record *)(void *)record;
    return st;
}

/* Host memory for offloaded states: the same size as the arena, touched only where used.
 */
static enum pt_status make_host(struct exec_stage *s, struct pt_error *err)
{
    void *p;

    s->host_bytes =
        s->plan->split.offload_frac[s->stage] > 0 ? s->comm->arena_bytes : 4096;
    p = mmap(NULL, s->host_bytes, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return pt_fail(err, PT_SYSTEM, NULL, 0, "cannot map %zu bytes of host memory",
                       s->host_bytes);
    s->host_base = p;
    return exec_arena_init(&s->host, p, s->host_bytes, err);
}

enum pt_status exec_stage_init(struct exec_stage *s, const struct pt_plan *plan,
                               struct exec_comm *comm, const struct exec_kernels *k,
                               uint64_t seed, struct pt_error *err)
{
    const struct pt_job *job = &plan->setup.job;
    enum pt_status st;

    memset(s, 0, sizeof(*s));
    s->plan = plan;
    s->layout = &plan->layout;
    s->comm = comm;
    s->seed = seed;
    s->env.k = k;
    s->tp_rank = comm->rank % s->layout->tp;
    s->dp_rank = comm->rank / s->layout->tp % s->layout->dp;
    s->stage = comm->rank / (s->layout->tp * s->layout->dp);
    s->zero = s->layout->dp > 1 ? s->layout->zero : 0;
    s->micro_batches = pt_micro_batches(job, s->layout);
    s->scale = (float)(1.0 / ((double)job->global_batch * (double)job->seq));
    st = exec_arena_init(&s->env.arena, comm->arena, comm->arena_bytes, err);
    if (st == PT_OK)
        st = exec_shape_init(&plan->setup.model, job, s->layout, s->tp_rank,
                             &s->env.shape, err);
    if (st == PT_OK)
        st = make_schedule(s, err);
    if (st == PT_OK)
        st = make_groups(s, err);
    if (st == PT_OK)
        st = make_host(s, err);
    if (st == PT_OK)
        st = exec_env_init(&s->env, err);
    if (st != PT_OK)
        return st;
    s->piece = calloc(s->schedule.chunks, sizeof(*s->piece));
    if (s->piece == NULL)
        return no_memory(err);
    for (uint32_t c = 0; c < s->schedule.chunks && st == PT_OK; c++)
        st = make_piece(s, c, err);
    return st == PT_OK ? make_buffers(s, err) : st;
}

static void piece_fini(struct exec_stage *s, struct exec_piece *p)
{
    struct exec_held *ends[] = { p->tokens, p->positions, p->norm, p->head };

    for (size_t i = 0; i < 4; i++) {
        if (ends[i] != NULL)
            exec_held_fini(s, ends[i]);
        free(ends[i]);
    }
    for (uint32_t l = 0; p->layers != NULL && l < p->n_layers; l++)
        exec_held_fini(s, &p->layers[l]);
    free(p->layers);
}

void exec_stage_fini(struct exec_stage *s)
{
    struct exec_group *groups[] = { s->env.tp, s->dp, s->tied, s->world };

    for (uint32_t c = 0; s->piece != NULL && c < s->schedule.chunks; c++) {
        for (uint32_t i = 0; s->flight != NULL && i < s->micro_batches; i++)
            exec_flight_free(s, c, i);
        piece_fini(s, &s->piece[c]);
    }
    for (size_t i = 0; i < 4; i++)
        if (groups[i] != NULL)
            s->comm->ops->group_free(groups[i]);
    pt_schedule_fini(&s->schedule);
    exec_arena_fini(&s->env.arena);
    exec_arena_fini(&s->host);
    if (s->host_base != NULL)
        munmap(s->host_base, s->host_bytes);
    free(s->piece);
    free(s->flight);
    free(s->parcels);
    free(s->losses);
    free(s->tokens);
    free(s->targets);
}
