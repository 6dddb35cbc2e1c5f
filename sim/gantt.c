/* The Gantt picture: spans are collected while the simulation runs and drawn by gnuplot,
 * which runs as a process of its own and reads its script and data from a temporary file.
 */
#include "config.h"

#include <errno.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/observe.h"

extern char **environ;

void sim_gantt_init(struct sim_gantt *g, const struct sim_world *world)
{
    *g = (struct sim_gantt){ .world = world };
}

void sim_gantt_fini(struct sim_gantt *g)
{
    free(g->span);
    *g = (struct sim_gantt){ .world = NULL };
}

static void gantt_span(void *ctx, uint32_t rank, enum pt_stream stream,
                       const struct pt_instr *in, double start_s, double end_s)
{
    struct sim_gantt *g = ctx;

    if (g->over || g->failed || rank % g->world->per_stage != 0)
        return;
    if (g->n == g->cap) {
        size_t cap = g->cap ? 2 * g->cap : 1024;
        struct sim_gantt_span *grown = realloc(g->span, cap * sizeof(*grown));

        if (grown == NULL) {
            g->failed = true;
            return;
        }
        g->span = grown;
        g->cap = cap;
    }
    g->span[g->n++] =
        (struct sim_gantt_span){ start_s,         end_s,    rank / g->world->per_stage,
                                 in->micro_batch, in->kind, in->chunk,
                                 (uint8_t)stream };
}

static void gantt_step_end(void *ctx, uint32_t step, double start_s, double end_s)
{
    struct sim_gantt *g = ctx;

    (void)start_s;
    if (step == 0)
        g->end_s = end_s;
    g->over = true;
}

struct sim_observer sim_observe_gantt(struct sim_gantt *g)
{
    return (
        struct sim_observer){ .ctx = g, .span = gantt_span, .step_end = gantt_step_end };
}

/* What is drawn: a colour and a name for the key. Chunks behind the first are lighter.
 * Colours after Okabe and Ito, which colour-blind people tell apart. */
static const struct look {
    const char *name;
    uint8_t kinds[3], n_kinds;
    uint8_t later_chunks; /* 0: chunk 0, 1: the others, 2: all */
    const char *colour;
} looks[] = {
    { "forward", { PT_FORWARD }, 1, 0, "#56B4E9" },
    { "forward, later chunks", { PT_FORWARD }, 1, 1, "#B3DCF4" },
    { "backward", { PT_BACKWARD, PT_BACKWARD_INPUT }, 2, 0, "#E69F00" },
    { "backward, later chunks", { PT_BACKWARD, PT_BACKWARD_INPUT }, 2, 1, "#F5D590" },
    { "weight gradient", { PT_BACKWARD_WEIGHT }, 1, 0, "#009E73" },
    { "weight gradient, later chunks", { PT_BACKWARD_WEIGHT }, 1, 1, "#8FD0BC" },
    { "gradient reduction", { PT_REDUCE_GRADS, PT_REDUCE_TIED }, 2, 2, "#CC79A7" },
    { "offload copies", { PT_OFFLOAD_OUT, PT_OFFLOAD_IN }, 2, 2, "#F0E442" },
    { "optimizer", { PT_OPTIMIZER }, 1, 2, "#D55E00" },
};
#define N_LOOKS (sizeof(looks) / sizeof(looks[0]))

static bool shows(const struct look *look, const struct sim_gantt_span *s)
{
    if (look->later_chunks != 2 && look->later_chunks != (s->chunk > 0))
        return false;
    for (unsigned k = 0; k < look->n_kinds; k++)
        if (look->kinds[k] == s->kind)
            return true;
    return false;
}

/* Other streams are drawn as a thin strip at the lower edge of the row. */
static size_t write_data(FILE *f, const struct sim_gantt *g, size_t k, double unit)
{
    size_t n = 0;

    for (size_t i = 0; i < g->n; i++) {
        const struct sim_gantt_span *s = &g->span[i];
        bool thin = s->stream != PT_STREAM_COMPUTE;

        if (!shows(&looks[k], s) || s->end_s <= s->start_s)
            continue;
        if (n++ == 0)
            fprintf(f, "$d%zu << EOD\n", k);
        fprintf(f, "%.9g %.9g %.9g %.9g\n", s->start_s / unit, s->end_s / unit,
                s->stage - (thin ? -0.28 : 0.42), s->stage + 0.42);
    }
    if (n > 0)
        fprintf(f, "EOD\n");
    return n;
}

/* Numbers of micro-batches, where there is room for them. False when there is none at
 * all: gnuplot must not see an empty block. */
static bool write_labels(FILE *f, const struct sim_gantt *g, double unit, double width_px)
{
    bool any = false;

    for (size_t i = 0; i < g->n; i++) {
        const struct sim_gantt_span *s = &g->span[i];
        double px = (s->end_s - s->start_s) / g->end_s * width_px;

        if (s->kind > PT_BACKWARD_WEIGHT || px < (s->micro_batch > 99 ? 24 : 15))
            continue;
        if (!any)
            fprintf(f, "$labels << EOD\n");
        any = true;
        fprintf(f, "%.9g %u %u\n", (s->start_s + s->end_s) / 2 / unit, s->stage,
                s->micro_batch);
    }
    if (any)
        fprintf(f, "EOD\n");
    return any;
}

static void write_frame(FILE *f, const struct sim_gantt *g, const char *title, bool png,
                        double unit)
{
    uint32_t stages = g->world->schedule->stages;
    int row = stages <= 8 ? 34 : stages <= 16 ? 26 : stages <= 32 ? 18 : 12;

    fprintf(f,
            "set terminal %s size 1280,%d font \"Helvetica,12\" background \"white\"\n"
            "set output ARG1\nset title \"%s\" font \",14\" noenhanced\n"
            "set xlabel \"%s\"\nset ylabel \"pipeline stage\"\n"
            "set yrange [%g:-0.6]\nset xrange [0:%.9g]\nset ytics 0,%u out nomirror\n"
            "set xtics out nomirror\nset border 3 lc rgb \"#808080\"\n"
            "set key outside bottom center horizontal reverse Left samplen 1\n"
            "set style fill solid 1.0 border lc rgb \"white\"\n",
            png ? "pngcairo" : "svg", 120 + row * (int)stages, title,
            unit < 1 ? "milliseconds" : "seconds", stages - 0.4, g->end_s / unit,
            stages > 32   ? 4u
            : stages > 16 ? 2u
                          : 1u);
}

static void write_script(FILE *f, const struct sim_gantt *g, const char *title, bool png)
{
    double unit = g->end_s < 1 ? 1e-3 : 1;
    bool drawn[N_LOOKS], labels;
    const char *comma = "";

    write_frame(f, g, title, png, unit);
    for (size_t k = 0; k < N_LOOKS; k++)
        drawn[k] = write_data(f, g, k, unit) > 0;
    labels = write_labels(f, g, unit, 1150);
    fprintf(f, "plot ");
    for (size_t k = 0; k < N_LOOKS; k++)
        if (drawn[k]) {
            fprintf(
                f,
                "%s$d%zu using (($1+$2)/2):(($3+$4)/2):1:2:3:4 with boxxyerror lw 0.2 "
                "fc rgb \"%s\" title \"%s\"",
                comma, k, looks[k].colour, looks[k].name);
            comma = ", ";
        }
    if (labels)
        fprintf(f, "%s$labels using 1:2:3 with labels font \",8\" notitle", comma);
    fputs("\n", f);
}

static enum pt_status run_gnuplot(const char *script, const char *path,
                                  struct pt_error *err)
{
    static char prog[] = "gnuplot", flag[] = "-c";
    char *file = strdup(script), *out = strdup(path);
    char *argv[] = { prog, flag, file, out, NULL };
    enum pt_status st = PT_OK;
    pid_t pid;
    int status, failed;

    if (file == NULL || out == NULL) {
        st = pt_fail_memory(err);
        goto out;
    }
    if ((failed = posix_spawnp(&pid, prog, NULL, NULL, argv, environ)) != 0) {
        st = pt_fail(err, PT_SYSTEM, "--gantt", 0, "cannot run gnuplot: %s",
                     strerror(failed));
        goto out;
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        st = pt_fail(err, PT_SYSTEM, "--gantt", 0, "gnuplot failed to draw %s", path);
out:
    free(file);
    free(out);
    return st;
}

enum pt_status sim_gantt_draw(const struct sim_gantt *g, const char *title,
                              const char *path, struct pt_error *err)
{
    const char *dot = strrchr(path, '.'), *dir = getenv("TMPDIR");
    char script[512];
    enum pt_status st;
    FILE *f;
    int fd;

    if (dot == NULL || (strcmp(dot, ".svg") && strcmp(dot, ".png")))
        return pt_fail(err, PT_USAGE, NULL, 0, "--gantt: %s does not end in .svg or .png",
                       path);
    if (g->failed)
        return pt_fail_memory(err);
    snprintf(script, sizeof(script), "%s/ptsim-gantt.XXXXXX", dir ? dir : "/tmp");
    if ((fd = mkstemp(script)) < 0 || (f = fdopen(fd, "w")) == NULL)
        return pt_fail(err, PT_SYSTEM, script, 0, "cannot write: %s", strerror(errno));
    write_script(f, g, title, !strcmp(dot, ".png"));
    if (fclose(f) != 0)
        st = pt_fail(err, PT_SYSTEM, script, 0, "cannot write: %s", strerror(errno));
    else
        st = run_gnuplot(script, path, err);
    unlink(script);
    if (st == PT_OK && access(path, R_OK) != 0)
        st = pt_fail(err, PT_SYSTEM, path, 0, "gnuplot wrote nothing: %s",
                     strerror(errno));
    return st;
}
