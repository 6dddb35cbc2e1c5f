#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "exec/blas.h"
#include "exec/comm_wire.h"
#include "exec/dump.h"
#include "exec/evaluate.h"
#include "exec/identity.h"
#include "exec/metrics.h"
#include "exec/rank.h"
#include "exec/stage.h"

_Static_assert(sizeof(struct exec_report) % sizeof(double) == 0, "travels as doubles");

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void heartbeat(void *arg, const struct pt_instr *at)
{
    struct exec_rank_status *r = arg;

    atomic_fetch_add_explicit(&r->heartbeat, 1, memory_order_relaxed);
    if (at == NULL)
        return;
    atomic_store_explicit(&r->instr_kind, at->kind, memory_order_relaxed);
    atomic_store_explicit(&r->chunk, at->chunk, memory_order_relaxed);
    atomic_store_explicit(&r->micro_batch, at->micro_batch, memory_order_relaxed);
}

/* Time of the passes of the last step, and from its first to its last. */
static void measure_step(const struct exec_stage *s, struct exec_report *r)
{
    const struct pt_program *prog = &s->schedule.stage[s->stage];
    double first = 0, last = 0;

    r->busy_s = 0;
    for (size_t i = 0; i < prog->n; i++) {
        const struct exec_record *t = &s->record[i];

        if (prog->instr[i].kind > PT_BACKWARD_WEIGHT)
            continue;
        first = first == 0 ? t->begin_s : first;
        last = t->end_s;
        r->busy_s += t->end_s - t->begin_s;
    }
    r->span_s = last - first;
}

static void sub_traffic(struct exec_traffic *t, const struct exec_traffic *before)
{
    for (int d = 0; d < EXEC_N_DIMS; d++)
        t->tensor_bytes[d] -= before->tensor_bytes[d];
    t->control_bytes -= before->control_bytes;
}

struct run {
    const struct exec_options *o;
    struct exec_stage *s;
    struct exec_rank_status *status;
    struct exec_header *header;
    struct exec_metrics metrics;
    struct exec_data eval; /* open when options ask for evaluations */
    double *by_rank;       /* [size][EXEC_N_RANK_COLUMNS]; NULL: not asked for */
    double total_s;        /* of the steps after the first */
    /* PT_OK, or why rank 0 cannot write what it measures. The run then ends after the
     * next step, as if a stop had been asked for. */
    enum pt_status unsaved;
    struct pt_error unsaved_error;
};

/* Every rank's columns, on every rank. They travel through the table of norms, which is
 * free between steps, so that measuring takes no memory of the model's. Each entry has
 * one contributor: the sums are exact. */
static enum pt_status gather_ranks(struct run *r, double took_s, double waited_s,
                                   struct pt_error *err)
{
    struct exec_stage *s = r->s;
    const size_t n = (size_t)s->comm->size * EXEC_N_RANK_COLUMNS;
    double *mine = r->by_rank + (size_t)s->comm->rank * EXEC_N_RANK_COLUMNS;
    enum pt_status st = PT_OK;

    memset(r->by_rank, 0, n * sizeof(*r->by_rank));
    mine[EXEC_RANK_STEP_S] = took_s;
    mine[EXEC_RANK_WAIT_S] = waited_s;
    mine[EXEC_RANK_PEAK_BYTES] = (double)s->env.arena.peak;
    mine[EXEC_RANK_NORM] = s->norm_local;
    for (size_t at = 0; at < n && st == PT_OK; at += s->table_n) {
        size_t part = n - at < s->table_n ? n - at : s->table_n;
        struct exec_collective op = { EXEC_ALLREDUCE, EXEC_F64, false, true,
                                      s->table,       part,     NULL };

        memcpy(s->table, r->by_rank + at, part * sizeof(*s->table));
        st = exec_collective(s->world, &op, err);
        memcpy(r->by_rank + at, s->table, part * sizeof(*s->table));
    }
    return st;
}

static enum pt_status one_step(struct run *r, uint64_t step, struct pt_error *err)
{
    struct exec_stage *s = r->s;
    const struct pt_job *job = &s->plan->setup.job;
    struct exec_report *rep = &r->status->report;
    struct exec_traffic before = s->comm->traffic;
    enum exec_stop stop = s->comm->rank != 0                   ? EXEC_STOP_NOT
                          : r->unsaved != PT_OK                ? EXEC_STOP_UNSAVED
                          : atomic_load(&r->header->stop) != 0 ? EXEC_STOP_ASKED
                                                               : EXEC_STOP_NOT;
    double begin = now_s(), waited = s->comm->waited_s;
    double took, batch = (double)job->global_batch * (double)job->seq;
    double eval_loss = (double)NAN;
    struct exec_point p;
    enum pt_status st;

    atomic_store(&r->status->step, (uint32_t)step);
    st = exec_step(s, step, stop, err);
    if (st != PT_OK)
        return st;
    took = now_s() - begin;
    waited = s->comm->waited_s - waited;
    r->total_s += step > 1 ? took : 0;
    rep->steps = step;
    rep->records_at = (uint64_t)((const char *)s->record - (const char *)r->header);
    rep->loss = s->loss;
    rep->step_s = step > 1 ? r->total_s / (double)(step - 1) : took;
    rep->peak_bytes = (double)s->env.arena.peak;
    for (int u = 0; u < EXEC_N_USES; u++)
        rep->use_bytes[u] = (double)s->env.arena.at_peak[u];
    rep->host_peak_bytes = (double)s->host.peak;
    rep->copied_bytes = s->copied_bytes;
    rep->traffic = s->comm->traffic;
    sub_traffic(&rep->traffic, &before);
    measure_step(s, rep);
    if (!isfinite(s->loss) || !isfinite(s->norm))
        return pt_fail(
            err, PT_DIFFERS, NULL, 0,
            "step %llu: the loss is %g and the gradient norm %g; lower --lr (%g) or "
            "raise --warmup",
            (unsigned long long)step, s->loss, s->norm, exec_lr(s->optimizer, step));
    if (r->o->eval_every > 0 && step % r->o->eval_every == 0 &&
        (st = exec_evaluate(s, &r->eval, r->o->eval_batches, &eval_loss, err)))
        return st;
    if (r->by_rank != NULL && (st = gather_ranks(r, took, waited, err)))
        return st;
    if (s->comm->rank != 0 || r->unsaved != PT_OK)
        return PT_OK;
    p = (struct exec_point){ step,
                             (uint64_t)(batch * (double)step),
                             s->loss,
                             s->norm,
                             exec_lr(s->optimizer, step),
                             took,
                             batch / took,
                             rep->peak_bytes,
                             eval_loss,
                             r->by_rank };
    r->unsaved = exec_metrics_add(&r->metrics, &p, &r->unsaved_error);
    return PT_OK;
}

static enum pt_status stopped(const struct run *r, uint64_t step, struct pt_error *err)
{
    if (r->s->stop == EXEC_STOP_UNSAVED)
        return pt_fail(
            err, PT_SYSTEM, NULL, 0,
            "stopped after step %llu of %llu: another rank failed to write what "
            "it measures",
            (unsigned long long)step, (unsigned long long)r->o->steps);
    return pt_fail(err, PT_LIMIT, NULL, 0, "stopped as asked after step %llu of %llu",
                   (unsigned long long)step, (unsigned long long)r->o->steps);
}

/* *orderly: all ranks have ended after the same step, the last one or another. */
static enum pt_status train(struct run *r, bool *orderly, struct pt_error *err)
{
    enum pt_status st = PT_OK;

    if (r->o->dump != NULL)
        st = exec_dump(r->s, r->o->dump, "initial", false, err);
    for (uint64_t step = 1; step <= r->o->steps && st == PT_OK; step++) {
        st = one_step(r, step, err);
        if (st == PT_OK && r->o->dump != NULL && step == 1)
            st = exec_dump(r->s, r->o->dump, "grad1", true, err);
        if (st == PT_OK && r->s->stop != EXEC_STOP_NOT && step < r->o->steps) {
            *orderly = true;
            return stopped(r, step, err);
        }
    }
    *orderly = st == PT_OK;
    return st;
}

static enum pt_status with_stage(struct run *r, const struct pt_plan *plan,
                                 struct exec_comm *comm, const struct exec_kernels *k,
                                 const struct exec_data *data, FILE *out,
                                 struct pt_error *err)
{
    struct exec_stage stage;
    bool orderly = false;
    enum pt_status st = exec_stage_init(&stage, plan, comm, k, r->o->seed, err);

    stage.data = data;
    stage.optimizer = &r->o->optimizer;
    stage.heartbeat = heartbeat;
    stage.heartbeat_arg = r->status;
    r->s = &stage;
    if (st == PT_OK && comm->rank == 0)
        st = exec_metrics_open(&r->metrics, r->o->metrics, r->o->quiet ? NULL : out,
                               r->o->steps, r->o->log_every, r->o->eval_every > 0,
                               r->o->per_rank ? comm->size : 0, err);
    atomic_store(&r->status->phase, EXEC_RUNNING);
    if (st == PT_OK && r->o->per_rank) {
        r->by_rank =
            calloc((size_t)comm->size * EXEC_N_RANK_COLUMNS, sizeof(*r->by_rank));
        if (r->by_rank == NULL)
            st = pt_fail_memory(err);
    }
    if (st == PT_OK)
        st = train(r, &orderly, err);
    if (orderly) {
        enum pt_status settled = exec_settle(&stage, err);

        if (settled == PT_OK && r->o->dump != NULL)
            settled = exec_dump(&stage, r->o->dump, "final", false, err);
        orderly = settled == PT_OK;
        st = orderly ? st : settled;
    }
    if (exec_metrics_close(&r->metrics, &r->unsaved_error) != PT_OK)
        r->unsaved = PT_SYSTEM;
    if (orderly && r->unsaved != PT_OK) {
        *err = r->unsaved_error;
        st = r->unsaved;
    }
    atomic_store(&r->status->orderly, orderly);
    free(r->by_rank);
    exec_stage_fini(&stage);
    return st;
}

/* What the ranks must agree on beside the plan and the data. */
static void options_text(const struct exec_options *o, char *text, size_t size)
{
    const struct exec_optimizer *p = &o->optimizer;

    snprintf(text, size,
             "%llu steps, seed %llu, %llu threads, evaluations %llu of %llu, per rank "
             "%d, lr %.17g "
             "%.17g %llu %llu %d, adam %.17g %.17g %.17g %.17g, clip %.17g",
             (unsigned long long)o->steps, (unsigned long long)o->seed,
             (unsigned long long)o->threads, (unsigned long long)o->eval_every,
             (unsigned long long)o->eval_batches, o->per_rank, p->lr, p->min_lr_frac,
             (unsigned long long)p->warmup, (unsigned long long)p->decay_steps,
             (int)p->schedule, p->beta1, p->beta2, p->eps, p->weight_decay, p->clip);
}

/* Every rank has the same program, plan and data? Says so, or fails on all of them. */
static enum pt_status meet(const struct exec_options *o, const struct exec_shared *shared,
                           struct exec_comm *comm, const struct exec_kernels *k,
                           FILE *out, struct pt_error *err)
{
    const struct exec_wire *wire = exec_comm_wire(comm);
    struct exec_identity mine, *all = calloc(comm->size, sizeof(*all));
    char text[512];
    enum pt_status st;

    if (all == NULL)
        return pt_fail_memory(err);
    options_text(o, text, sizeof(text));
    st = exec_identity_init(&mine, o->plan_path, shared->header->data_hash, text,
                            wire != NULL ? wire->address : "", k->isa, err);
    if (st == PT_OK)
        st = exec_identity_exchange(comm, &mine, all, err);
    if (st == PT_OK) {
        st = exec_identity_compare(all, comm->size, err);
        if (st != PT_OK)
            atomic_store(&shared->header->differ, 1);
    }
    if (st == PT_OK && comm->rank == 0 && !o->quiet) {
        exec_identity_print(out, all, comm->size,
                            wire != NULL ? wire->version : "shared memory");
        fflush(out);
    }
    free(all);
    return st;
}

enum pt_status exec_rank_run(const struct exec_options *options,
                             const struct exec_shared *shared, struct exec_comm *comm,
                             FILE *out, struct pt_error *err)
{
    struct exec_options o = *options;
    struct run r = { .o = &o,
                     .status = &shared->header->rank[comm->rank],
                     .header = shared->header,
                     .unsaved_error = PT_ERROR_INIT };
    const struct exec_kernels *k = exec_kernels_find(o.isa);
    struct exec_data data;
    struct pt_plan plan;
    enum pt_status st;

    memset(&data, 0, sizeof(data));
    pt_plan_init(&plan);
    exec_blas_threads((int)o.threads);
    st = pt_plan_read(o.plan_path, &plan, NULL, err);
    if (st == PT_OK)
        st = exec_options_resolve(&o, &plan, err);
    if (st == PT_OK)
        st = exec_data_open(o.data, plan.setup.job.seq, &data, err);
    if (st == PT_OK && o.eval_every > 0)
        st = exec_data_open(o.eval_data, plan.setup.job.seq, &r.eval, err);
    if (st == PT_OK && k == NULL)
        st = pt_fail(err, PT_USAGE, NULL, 0, "--isa: '%s' is not available here", o.isa);
    if (st == PT_OK)
        st = meet(&o, shared, comm, k, out, err);
    if (st == PT_OK)
        st = with_stage(&r, &plan, comm, k, &data, out, err);
    exec_data_close(&data);
    exec_data_close(&r.eval);
    pt_plan_fini(&plan);
    return st;
}

enum pt_status exec_rank_reports(const struct exec_shared *shared, struct exec_comm *comm,
                                 struct pt_error *err)
{
    const size_t each = sizeof(struct exec_report) / sizeof(double);
    struct exec_report *all = calloc(comm->size, sizeof(*all));
    uint32_t *ranks = calloc(comm->size, sizeof(*ranks));
    struct exec_collective op = { EXEC_ALLGATHER,    EXEC_F64, false, true, all,
                                  comm->size * each, NULL };
    struct exec_group *world = NULL;
    enum pt_status st = PT_OK;

    if (all == NULL || ranks == NULL) {
        st = pt_fail_memory(err);
        goto out;
    }
    for (uint32_t r = 0; r < comm->size; r++)
        ranks[r] = r;
    all[comm->rank] = shared->header->rank[comm->rank].report;
    st = comm->ops->group(comm, EXEC_DIM_WORLD, ranks, comm->size, &world, err);
    if (st == PT_OK)
        st = exec_collective(world, &op, err);
    for (uint32_t r = 0; st == PT_OK && r < comm->size; r++)
        shared->header->rank[r].report = all[r];
out:
    if (world != NULL)
        comm->ops->group_free(world);
    free(ranks);
    free(all);
    return st;
}
