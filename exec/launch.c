#include "config.h"

#include <errno.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "exec/launch.h"
#include "libpt/schedule.h"

extern char **environ;

#define GRACE_S 3.0 /* for the others to notice that one failed */

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

bool exec_launched(int *fd, uint32_t *rank, long *parent)
{
    const char *text = getenv("PTEXEC_RANK");

    return text != NULL && sscanf(text, "%d:%u:%ld", fd, rank, parent) == 3;
}

enum pt_status exec_launch_settle(long parent, struct pt_error *err)
{
    struct sigaction ignore = { .sa_handler = SIG_IGN };

    sigaction(SIGTERM, &ignore, NULL);
    sigaction(SIGINT, &ignore, NULL);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || (long)getppid() != parent)
        return pt_fail(err, PT_SYSTEM, NULL, 0, "the supervisor is gone");
    return PT_OK;
}

struct watch {
    const struct exec_launch *l;
    struct exec_shared *shared;
    pid_t pid[EXEC_MAX_RANKS];
    uint32_t left;
    enum pt_status first; /* failure to report */
    bool stopped;         /* a stop signal came */
    double failed_at, beat_at;
    uint64_t beats;
};

/* The environment with PTEXEC_RANK (and, for OpenBLAS, its threads) in front. */
static char **make_environment(char *rank, char *threads)
{
    size_t n = 0, k = 2;
    char **env;

    while (environ[n] != NULL)
        n++;
    env = calloc(n + 3, sizeof(*env));
    if (env == NULL)
        return NULL;
    env[0] = rank;
    env[1] = threads;
    for (size_t i = 0; i < n; i++)
        if (strncmp(environ[i], "PTEXEC_RANK=", 12) != 0 &&
            strncmp(environ[i], "OPENBLAS_NUM_THREADS=", 21) != 0)
            env[k++] = environ[i];
    return env;
}

static enum pt_status start(struct watch *w, uint32_t rank, struct pt_error *err)
{
    char place[64], threads[64];
    posix_spawnattr_t attr;
    sigset_t none;
    char **env;
    int e;

    snprintf(place, sizeof(place), "PTEXEC_RANK=%d:%u:%ld", w->shared->fd, rank,
             (long)getpid());
    snprintf(threads, sizeof(threads), "OPENBLAS_NUM_THREADS=%llu",
             (unsigned long long)w->l->threads);
    env = make_environment(place, threads);
    if (env == NULL)
        return pt_fail_memory(err);
    sigemptyset(&none);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
    e = posix_spawn(&w->pid[rank], "/proc/self/exe", NULL, &attr, w->l->argv, env);
    posix_spawnattr_destroy(&attr);
    free(env);
    if (e != 0) {
        w->pid[rank] = 0;
        return pt_fail(err, PT_SYSTEM, NULL, 0, "cannot start rank %u: %s", rank,
                       strerror(e));
    }
    w->left++;
    return PT_OK;
}

static void abort_all(struct watch *w)
{
    if (w->failed_at == 0)
        w->failed_at = now_s();
    atomic_store(&w->shared->header->abort, 1);
    for (uint32_t r = 0; r < w->l->ranks; r++)
        exec_shared_ring(w->shared, r);
}

static void kill_all(const struct watch *w)
{
    for (uint32_t r = 0; r < w->l->ranks; r++)
        if (w->pid[r] > 0)
            kill(w->pid[r], SIGKILL);
}

static const char *what_name(uint32_t what)
{
    if (what >= 1 && what <= EXEC_N_COLLECTIVES)
        return exec_collective_names[what - 1];
    return what == 16 ? "send" : what == 17 ? "receive" : "none";
}

/* "in FORWARD of chunk 0, micro-batch 3 of step 7" */
static void describe(const struct exec_rank_status *s, char *text, size_t size)
{
    if (atomic_load(&s->step) == 0)
        snprintf(text, size, "before the first step");
    else
        snprintf(text, size, "in %s of chunk %u, micro-batch %u of step %u",
                 pt_instr_name((enum pt_instr_kind)atomic_load(&s->instr_kind)),
                 atomic_load(&s->chunk), atomic_load(&s->micro_batch),
                 atomic_load(&s->step));
}

/* A rank has ended: was it well? */
static void ended(struct watch *w, uint32_t rank, int status, struct pt_error *err)
{
    struct exec_rank_status *s = &w->shared->header->rank[rank];
    char doing[128];

    w->pid[rank] = 0;
    w->left--;
    if (WIFEXITED(status) && atomic_load(&s->phase) == EXEC_DONE)
        return;
    describe(s, doing, sizeof(doing));
    if (atomic_load(&s->phase) == EXEC_FAILED) {
        bool echo = strstr(s->error.text, "another rank failed") != NULL;

        if (atomic_load(&s->orderly)) { /* all stop after the same step, by themselves */
            if (!echo && (w->first == PT_OK || w->first == PT_LIMIT)) {
                w->first = s->error.status;
                *err = s->error;
            }
            return;
        }
        if (!echo && w->first == PT_OK) {
            w->first = s->error.status;
            *err = s->error;
        }
    } else if (w->first == PT_OK) {
        w->first = WIFSIGNALED(status)
                       ? pt_fail(err, PT_SYSTEM, NULL, 0,
                                 "rank %u was killed by signal %d (%s) %s", rank,
                                 WTERMSIG(status), strsignal(WTERMSIG(status)), doing)
                       : pt_fail(err, PT_SYSTEM, NULL, 0,
                                 "rank %u ended with status %d %s, without a word", rank,
                                 WEXITSTATUS(status), doing);
    }
    abort_all(w);
}

static void reap(struct watch *w, struct pt_error *err)
{
    for (uint32_t r = 0; r < w->l->ranks; r++) {
        int status;

        if (w->pid[r] > 0 && waitpid(w->pid[r], &status, WNOHANG) == w->pid[r])
            ended(w, r, status, err);
    }
}

/* Every rank's current and last collective, for whoever must find out why nothing moves.
 */
static void print_ranks(const struct watch *w)
{
    for (uint32_t r = 0; r < w->l->ranks; r++) {
        const struct exec_rank_status *s = &w->shared->header->rank[r];
        char doing[128];

        describe(s, doing, sizeof(doing));
        fprintf(
            w->l->log,
            "rank %u: %s; now: %s (%s, %llu elements or bytes, number %llu, rank %u); "
            "last: %s (%s, %llu, number %llu)\n",
            r, doing, what_name(atomic_load(&s->now_what)),
            exec_dim_names[atomic_load(&s->now_dim) % EXEC_N_DIMS],
            (unsigned long long)atomic_load(&s->now_n),
            (unsigned long long)atomic_load(&s->now_seq), atomic_load(&s->now_peer),
            what_name(atomic_load(&s->last_what)),
            exec_dim_names[atomic_load(&s->last_dim) % EXEC_N_DIMS],
            (unsigned long long)atomic_load(&s->last_n),
            (unsigned long long)atomic_load(&s->last_seq));
    }
}

#define SETUP_FACTOR 10 /* setting up may take this many times longer than a pause */

static void watch_progress(struct watch *w, struct pt_error *err)
{
    double limit = w->l->watchdog_s;
    uint64_t beats = 0;

    for (uint32_t r = 0; r < w->l->ranks; r++) {
        const struct exec_rank_status *s = &w->shared->header->rank[r];

        beats += atomic_load(&s->heartbeat);
        if (atomic_load(&s->phase) == EXEC_STARTING)
            limit = w->l->watchdog_s * SETUP_FACTOR;
    }
    if (beats != w->beats) {
        w->beats = beats;
        w->beat_at = now_s();
    }
    if (limit <= 0 || w->failed_at > 0 || now_s() - w->beat_at < limit)
        return;
    print_ranks(w);
    w->first =
        pt_fail(err, PT_SYSTEM, NULL, 0,
                "no rank made progress for %g s (--watchdog): a hang, cut short", limit);
    abort_all(w);
}

/* The first signal asks for a stop after the step, the second one ends the run at once.
 */
static void stop_signal(struct watch *w, struct pt_error *err)
{
    if (w->stopped) {
        if (w->first == PT_OK)
            w->first = pt_fail(err, PT_LIMIT, NULL, 0, "stopped at once, as asked twice");
        abort_all(w);
        kill_all(w);
    }
    w->stopped = true;
    atomic_store(&w->shared->header->stop, 1);
}

static void watch_all(struct watch *w, const sigset_t *set, struct pt_error *err)
{
    const struct timespec tick = { 0, 100000000 };

    w->beat_at = now_s();
    while (w->left > 0) {
        int sig = sigtimedwait(set, NULL, &tick);

        if (sig == SIGTERM || sig == SIGINT)
            stop_signal(w, err);
        reap(w, err);
        watch_progress(w, err);
        if (w->failed_at > 0 && now_s() - w->failed_at > GRACE_S)
            kill_all(w);
    }
}

enum pt_status exec_launch_run(const struct exec_launch *l, struct exec_shared *shared,
                               struct pt_error *err)
{
    struct watch w;
    sigset_t set, before;
    enum pt_status st = PT_OK;

    memset(&w, 0, sizeof(w));
    w.l = l;
    w.shared = shared;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigprocmask(SIG_BLOCK, &set, &before);
    for (uint32_t r = 0; r < l->ranks && st == PT_OK; r++)
        st = start(&w, r, err);
    if (st != PT_OK) {
        w.first = st;
        abort_all(&w);
    }
    watch_all(&w, &set, err);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return w.first;
}
