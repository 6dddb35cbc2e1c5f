#include "config.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exec/comm_local.h"
#include "exec/comm_mpi.h"
#include "exec/comm_tcp.h"
#include "exec/comm_wire.h"
#include "exec/data.h"
#include "exec/doctor.h"
#include "exec/launch.h"
#include "exec/place.h"
#include "exec/rank.h"
#include "exec/stage.h"
#include "exec/summary.h"
#include "exec/timeline.h"
#include "libpt/cli.h"

static struct exec_options o;
static bool dry_run, doctor; /* doctor: the operand instead of a plan */
static const char *format;
static bool format_given;
static const struct pt_opt opts[] = {
    { PT_OPT_GROUP, 0, "Run", NULL, NULL, NULL, NULL },
    { PT_OPT_STR, 'd', "data", "SPEC", NULL,
      "training tokens: text:FILE, llmc:FILE, nanogpt:FILE, megatron:PATH or FILE",
      &o.data },
    { PT_OPT_U64, 'n', "steps", "N", "100", "optimizer steps", &o.steps, .lo = 1,
      .hi = 1e9 },
    { PT_OPT_U64, 's', "seed", "N", NULL,
      "of weights and sample order; default: the plan's", &o.seed, &o.seed_given },
    { PT_OPT_U64, 0, "eval-every", "N", "0",
      "steps between evaluations on --eval-data; 0: none", &o.eval_every, .lo = 0,
      .hi = 1e9 },
    { PT_OPT_STR, 0, "eval-data", "SPEC", NULL, "held-out tokens, written like --data",
      &o.eval_data },
    { PT_OPT_U64, 0, "eval-batches", "N", "4", "global batches of one evaluation",
      &o.eval_batches, .lo = 1, .hi = 1e6 },
    { PT_OPT_FLAG, 0, "dry-run", NULL, NULL,
      "print ranks, groups, memory and first instructions, train nothing", &dry_run },
    { PT_OPT_GROUP, 0, "Optimizer (AdamW)", NULL, NULL, NULL, NULL },
    { PT_OPT_NUMBER, 0, "lr", "RATE", NULL,
      "peak learning rate; default: by the number of parameters", &o.optimizer.lr,
      &o.lr_given, .lo = 0, .hi = 10 },
    { PT_OPT_STR, 0, "lr-schedule", "NAME", "cosine", "cosine, linear or constant",
      &o.lr_schedule, .choices = "cosine|linear|constant" },
    { PT_OPT_FRACTION, 0, "min-lr", "FRACTION", "10%", "end of the decay, of the peak",
      &o.optimizer.min_lr_frac },
    { PT_OPT_U64, 0, "warmup", "N", NULL,
      "steps of linear warm-up; default: a tenth of --steps", &o.optimizer.warmup,
      &o.warmup_given, .lo = 0, .hi = 1e9 },
    { PT_OPT_U64, 0, "decay-steps", "N", NULL, "where the decay ends; default: --steps",
      &o.optimizer.decay_steps, &o.decay_given, .lo = 1, .hi = 1e9 },
    { PT_OPT_STR, 0, "lr-scaling", "RULE", "none",
      "scale --lr by the global batch over --reference-batch: none, linear or sqrt",
      &o.lr_scaling, .choices = "none|linear|sqrt" },
    { PT_OPT_U64, 0, "reference-batch", "N", NULL, "sequences that --lr was made for",
      &o.reference_batch, .lo = 1, .hi = 1e9 },
    { PT_OPT_NUMBER, 0, "beta1", "X", "0.9", "of the first moment", &o.optimizer.beta1,
      .lo = 0, .hi = 0.999999 },
    { PT_OPT_NUMBER, 0, "beta2", "X", "0.95", "of the second moment", &o.optimizer.beta2,
      .lo = 0, .hi = 0.999999 },
    { PT_OPT_NUMBER, 0, "eps", "X", "1e-8", "added to the denominator", &o.optimizer.eps,
      .lo = 1e-30, .hi = 1 },
    { PT_OPT_NUMBER, 0, "weight-decay", "X", "0.1",
      "of matrices; norms and biases have none", &o.optimizer.weight_decay, .lo = 0,
      .hi = 10 },
    { PT_OPT_NUMBER, 0, "clip", "NORM", "1",
      "largest global gradient norm; 0: no clipping", &o.optimizer.clip, .lo = 0,
      .hi = 1e9 },
    { PT_OPT_GROUP, 0, "Output", NULL, NULL, NULL, NULL },
    { PT_OPT_STR, 'm', "metrics", "FILE.csv", NULL, "a row per step", &o.metrics },
    { PT_OPT_FLAG, 0, "per-rank", NULL, NULL,
      "more columns in --metrics: each rank's time, waiting, memory, gradient norm",
      &o.per_rank },
    { PT_OPT_STR, 0, "trace", "FILE.json", NULL,
      "the last step's timeline, for Perfetto and ptsim --compare", &o.trace },
    { PT_OPT_STR, 0, "dump", "DIR", NULL,
      "write weights before and after, and the first step's gradients, as .npy",
      &o.dump },
    { PT_OPT_U64, 0, "log-every", "N", "1", "steps between progress lines", &o.log_every,
      .lo = 1, .hi = 1e9 },
    { PT_OPT_STR, 0, "format", "NAME", "text",
      "of what the doctor found: text, csv or json", &format, &format_given,
      .choices = "text|csv|json" },
    { PT_OPT_FLAG, 'q', "quiet", NULL, NULL, "no progress and no summary", &o.quiet },
    { PT_OPT_GROUP, 0, "Machine", NULL, NULL, NULL, NULL },
    { PT_OPT_U64, 't', "threads", "N", "1", "threads of the matrix products, per rank",
      &o.threads, .lo = 1, .hi = 1024 },
    { PT_OPT_STR, 0, "isa", "NAME", NULL,
      "kernels for: avx512, avx2 or base; default: the best", &o.isa,
      .choices = "avx512|avx2|base" },
    { PT_OPT_STR, 0, "comm", "NAME", "auto",
      "how ranks reach each other: auto (as the launcher says), local, mpi or tcp",
      &o.comm, .choices = "auto|local|mpi|tcp" },
    { PT_OPT_SECONDS, 0, "watchdog", "TIME", "60s",
      "end a run that makes no progress for so long; 0: never", &o.watchdog_s },
};
static const struct pt_cli cli = {
    "ptexec", "[OPTION]... PLAN.json | doctor",
    "Train the model of a plan, laid out as the plan says.", opts,
    sizeof(opts) / sizeof(opts[0])
};

static enum pt_status run_doctor(struct exec_comm *comm, struct pt_error *err)
{
    const struct exec_wire *wire = exec_comm_wire(comm);

    return exec_doctor(comm, wire != NULL ? wire->version : "shared memory",
                       wire != NULL ? wire->address : "",
                       strcmp(format, "csv") == 0    ? EXEC_DOCTOR_CSV
                       : strcmp(format, "json") == 0 ? EXEC_DOCTOR_JSON
                                                     : EXEC_DOCTOR_TEXT,
                       stdout, err);
}

/* In a rank: its error goes to the supervisor, which speaks for all. */
static int rank_main(int fd, uint32_t rank, long parent)
{
    struct pt_error err = PT_ERROR_INIT;
    struct exec_shared shared;
    struct exec_rank_status *status;
    struct exec_comm *comm = NULL;
    enum pt_status st = exec_shared_open(fd, &shared, &err);

    if (st != PT_OK)
        return pt_report(cli.prog, &err);
    status = &shared.header->rank[rank];
    st = exec_launch_settle(parent, &err);
    if (st == PT_OK)
        st = exec_comm_local_open(&shared, rank, exec_kernels_find(o.isa), &comm, &err);
    if (st == PT_OK)
        st = doctor ? run_doctor(comm, &err)
                    : exec_rank_run(&o, &shared, comm, stdout, &err);
    if (doctor && fflush(stdout) != 0)
        st = pt_fail(&err, PT_SYSTEM, NULL, 0, "cannot write what was found: %s",
                     strerror(errno));
    if (comm != NULL)
        comm->ops->close(comm);
    status->error = err;
    atomic_store(&status->phase, st == PT_OK ? EXEC_DONE : EXEC_FAILED);
    exec_shared_close(&shared);
    return pt_exit_status(st);
}

/* What can be wrong is found here, before any rank starts. */
static enum pt_status prepare(struct pt_plan *plan, char hash[65], struct pt_error *err)
{
    struct exec_shape shape;
    struct exec_data data;
    uint32_t ranks;
    enum pt_status st = pt_plan_read(o.plan_path, plan, stderr, err);

    if (st == PT_OK)
        st = exec_options_resolve(&o, plan, err);
    if (st == PT_OK)
        st = exec_shape_init(&plan->setup.model, &plan->setup.job, &plan->layout, 0,
                             &shape, err);
    ranks = plan->layout.tp * plan->layout.pp * plan->layout.dp;
    if (st == PT_OK && ranks > EXEC_MAX_RANKS)
        st = pt_fail(err, PT_CAPACITY, NULL, 0,
                     "the plan is made for %u ranks; at most %d train together", ranks,
                     EXEC_MAX_RANKS);
    if (st != PT_OK || dry_run)
        return st;
    if (o.data == NULL)
        return pt_fail(err, PT_USAGE, NULL, 0, "--data is missing: what to train on");
    st = exec_data_open(o.data, plan->setup.job.seq, &data, err);
    if (st != PT_OK)
        return st;
    st = exec_data_check(&data, plan->setup.model.vocab, err);
    if (st == PT_OK)
        exec_data_hash(&data, hash);
    exec_data_close(&data);
    if (st != PT_OK || o.eval_every == 0)
        return st;
    st = exec_data_open(o.eval_data, plan->setup.job.seq, &data, err);
    if (st != PT_OK)
        return st;
    st = exec_data_check(&data, plan->setup.model.vocab, err);
    exec_data_close(&data);
    return st;
}

static enum pt_status supervise(const struct pt_plan *plan, const char *hash, char **argv,
                                struct pt_error *err)
{
    uint32_t ranks = plan->layout.tp * plan->layout.pp * plan->layout.dp;
    struct exec_launch l = { argv, ranks, o.threads, o.watchdog_s, stderr };
    const struct exec_kernels *k = exec_kernels_find(o.isa);
    struct exec_shared shared;
    enum pt_status st;

    if (k == NULL)
        return pt_fail(err, PT_USAGE, NULL, 0, "--isa %s: not on this processor", o.isa);
    st = exec_shared_create(ranks, exec_stage_arena_bytes(plan), &shared, err);
    if (st != PT_OK)
        return st;
    snprintf(shared.header->data_hash, sizeof(shared.header->data_hash), "%s", hash);
    if (!o.quiet) {
        exec_banner(stdout, &o, plan, hash, k->isa);
        fflush(stdout);
    }
    st = exec_launch_run(&l, &shared, err);
    if (!o.quiet && exec_shared_orderly(&shared))
        exec_summary(stdout, plan, &shared);
    if (st == PT_OK && o.trace != NULL)
        st = exec_timeline(o.trace, plan, &shared, err);
    exec_shared_close(&shared);
    return st;
}

/* --- a rank that a launcher started --- */

/* "ptexec: rank 3 on b: ...": many ranks may speak at once. */
static void launched_report(uint32_t rank, const struct pt_error *err)
{
    char who[128], host[64] = "";

    gethostname(host, sizeof(host) - 1);
    snprintf(who, sizeof(who), "%s: rank %u on %s", cli.prog, rank, host);
    pt_report(who, err);
}

static struct exec_header *signalled; /* whose run a stop signal ends */

static void on_stop(int sig)
{
    (void)sig;
    atomic_store(&signalled->stop, 1);
}

/* The first signal asks for a stop after the step, the second one kills. */
static void obey_signals(struct exec_header *header)
{
    struct sigaction stop = { .sa_handler = on_stop, .sa_flags = (int)SA_RESETHAND };

    signalled = header;
    sigaction(SIGTERM, &stop, NULL);
    sigaction(SIGINT, &stop, NULL);
}

/* auto: MPI where the launcher set it up, else TCP. */
static enum pt_status open_wire(const struct exec_place *place, struct exec_wire **wire,
                                struct pt_error *err)
{
    const double setup = o.watchdog_s > 0 ? 10 * o.watchdog_s : 600;
    bool mpi = strcmp(o.comm, "auto") == 0 ? place->mpi : strcmp(o.comm, "mpi") == 0;
    struct exec_tcp_place p = { place->rank, place->size, place->address, place->port,
                                setup };

    if (mpi)
        return exec_mpi_open(wire, err);
    if (place->address[0] == '\0' || place->port == 0)
        return pt_fail(
            err, PT_USAGE, NULL, 0,
            "%s says nowhere where rank 0 is: set MASTER_ADDR and MASTER_PORT, "
            "or use --comm mpi",
            exec_launcher_names[place->launcher]);
    return exec_tcp_open(&p, wire, err);
}

static enum pt_status train_on(struct exec_wire *wire, const struct pt_plan *plan,
                               const char *hash, struct exec_shared *shared,
                               struct pt_error *err)
{
    const struct exec_kernels *k = exec_kernels_find(o.isa);
    struct exec_comm *comm;
    bool orderly;
    enum pt_status st = exec_comm_wire_open(wire, shared, o.watchdog_s, k, &comm, err);

    if (st != PT_OK)
        return st;
    snprintf(shared->header->data_hash, sizeof(shared->header->data_hash), "%s", hash);
    obey_signals(shared->header);
    if (wire->rank == 0 && !o.quiet) {
        exec_banner(stdout, &o, plan, hash, k->isa);
        fflush(stdout);
    }
    st = exec_rank_run(&o, shared, comm, stdout, err);
    orderly = atomic_load(&shared->header->rank[wire->rank].orderly);
    if (orderly) {
        enum pt_status reported = exec_rank_reports(shared, comm, err);

        orderly = reported == PT_OK;
        st = reported != PT_OK ? reported : st;
    }
    if (wire->rank == 0 && !o.quiet && orderly)
        exec_summary(stdout, plan, shared);
    if (st != PT_OK && !orderly && !atomic_load(&shared->header->differ)) {
        fflush(stdout);
        launched_report(wire->rank, err);
        wire->ops->abort(wire, pt_exit_status(st));
    } else if (st != PT_OK && wire->rank == 0) {
        pt_report(cli.prog, err);
    }
    comm->ops->close(comm);
    return st;
}

/* Two ranks here, as ptexec itself starts them. */
static enum pt_status doctor_here(char **argv, struct pt_error *err)
{
    struct exec_launch l = { argv, 2, 1, o.watchdog_s, stderr };
    struct exec_shared shared;
    enum pt_status st = exec_shared_create(l.ranks, EXEC_DOCTOR_ARENA, &shared, err);

    if (st != PT_OK)
        return st;
    st = exec_launch_run(&l, &shared, err);
    exec_shared_close(&shared);
    return st;
}

static int launched_doctor(const struct exec_place *place)
{
    struct pt_error err = PT_ERROR_INIT;
    struct exec_wire *wire = NULL;
    struct exec_shared shared;
    struct exec_comm *comm;
    enum pt_status st = open_wire(place, &wire, &err);

    if (st == PT_OK && place->size > EXEC_MAX_RANKS)
        st = pt_fail(&err, PT_CAPACITY, NULL, 0, "%u ranks; at most %d train together",
                     place->size, EXEC_MAX_RANKS);
    if (st == PT_OK)
        st = exec_shared_create(place->size, EXEC_DOCTOR_ARENA, &shared, &err);
    if (st == PT_OK) {
        st = exec_comm_wire_open(wire, &shared, o.watchdog_s, exec_kernels_find(NULL),
                                 &comm, &err);
        if (st == PT_OK)
            st = run_doctor(comm, &err);
        if (st != PT_OK && st != PT_DIFFERS) {
            launched_report(place->rank, &err);
            wire->ops->abort(wire, pt_exit_status(st));
        } else if (st != PT_OK) {
            pt_report(cli.prog, &err);
        }
        comm->ops->close(comm);
        exec_shared_close(&shared);
    } else {
        launched_report(place->rank, &err);
    }
    return pt_exit_status(st);
}

/* This process is rank place->rank of place->size. Reports by itself. */
static int launched_main(const struct exec_place *place)
{
    struct pt_error err = PT_ERROR_INIT;
    struct exec_shared shared;
    struct exec_wire *wire = NULL;
    struct pt_plan plan;
    char hash[65] = "";
    uint32_t ranks;
    enum pt_status st;

    pt_plan_init(&plan);
    st = prepare(&plan, hash, &err);
    ranks = plan.layout.tp * plan.layout.pp * plan.layout.dp;
    if (st == PT_OK && o.trace != NULL)
        st = pt_fail(&err, PT_USAGE, NULL, 0, "--trace needs --comm local");
    if (st == PT_OK && !dry_run)
        st = exec_place_check(place, ranks, &err);
    if (st == PT_OK && dry_run) {
        st = place->rank == 0 ? exec_dry_run(stdout, &plan, &err) : PT_OK;
    } else if (st == PT_OK) {
        st = open_wire(place, &wire, &err);
        if (st == PT_OK)
            st = exec_shared_create(ranks, exec_stage_arena_bytes(&plan), &shared, &err);
        if (st == PT_OK) {
            st = train_on(wire, &plan, hash, &shared, &err);
            exec_shared_close(&shared);
            pt_plan_fini(&plan);
            return pt_exit_status(st);
        }
    }
    if (st != PT_OK)
        launched_report(place->rank, &err);
    pt_plan_fini(&plan);
    return pt_exit_status(st);
}

int main(int argc, char **argv)
{
    struct exec_place place = { .size = 1 };
    struct pt_error err = PT_ERROR_INIT;
    char hash[65] = "", **copy = calloc((size_t)argc + 1, sizeof(*copy));
    struct pt_plan plan;
    enum pt_status st;
    bool done;
    int first, fd, status;
    uint32_t rank;
    long parent;

    for (int i = 0; copy != NULL && i < argc; i++)
        copy[i] = argv[i]; /* the parser reorders argv; ranks get it as it was */
    st = copy != NULL ? pt_cli_parse(&cli, argc, argv, &first, &done, &err)
                      : pt_fail_memory(&err);
    if (st == PT_OK && done) {
        free(copy);
        return pt_close_stdout(cli.prog, 0);
    }
    if (st == PT_OK && first + 1 != argc)
        st = pt_fail(&err, PT_USAGE, NULL, 0,
                     "one plan is needed; %d operands were given", argc - first);
    if (st != PT_OK) {
        free(copy);
        return pt_report(cli.prog, &err);
    }
    o.plan_path = argv[first];
    doctor = strcmp(o.plan_path, "doctor") == 0;
    if (format_given && !doctor) {
        free(copy);
        pt_fail(&err, PT_USAGE, NULL, 0, "--format belongs to ptexec doctor");
        return pt_report(cli.prog, &err);
    }
    if (exec_launched(&fd, &rank, &parent)) {
        free(copy);
        return rank_main(fd, rank, parent);
    }
    if (strcmp(o.comm, "local") != 0)
        st = exec_place_find(&place, &err);
    if (st != PT_OK) {
        free(copy);
        return pt_report(cli.prog, &err);
    }
    if (place.launcher != EXEC_BY_HAND) {
        free(copy);
        return pt_close_stdout(cli.prog,
                               doctor ? launched_doctor(&place) : launched_main(&place));
    }
    if (strcmp(o.comm, "mpi") == 0 || strcmp(o.comm, "tcp") == 0) {
        free(copy);
        pt_fail(&err, PT_USAGE, NULL, 0,
                "--comm %s: start the ranks with mpirun, srun or torchrun", o.comm);
        return pt_report(cli.prog, &err);
    }
    pt_plan_init(&plan);
    st = doctor ? doctor_here(copy, &err) : prepare(&plan, hash, &err);
    if (st == PT_OK && !doctor)
        st = dry_run ? exec_dry_run(stdout, &plan, &err)
                     : supervise(&plan, hash, copy, &err);
    pt_plan_fini(&plan);
    free(copy);
    status = st == PT_OK ? 0 : pt_report(cli.prog, &err);
    return pt_close_stdout(cli.prog, status);
}
