/* Pictures by gnuplot, run as a process in the report's folder. The scripts stay there,
 * so that a person can change and rerun them. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libpt/outfile.h"
#include "libpt/units.h"
#include "planner/report.h"

extern char **environ;

/* Okabe-Ito: eight colours that colour-blind people tell apart, and greys for what is
 * left. */
static const char *const colour[] = { "#0072B2", "#56B4E9", "#009E73", "#E69F00",
                                      "#D55E00", "#CC79A7", "#F0E442", "#7F7F7F",
                                      "#A6A6A6", "#C9C9C9", "#404040" };

static enum pt_status begin(const struct planner_report *r, const char *name,
                            struct pt_outfile *out, struct pt_error *err)
{
    char path[4096];
    enum pt_status st;

    if (!planner_report_path(r, name, path, sizeof(path)))
        return pt_fail(err, PT_SYSTEM, NULL, 0,
                       "--report: the folder's name is too long");
    if ((st = pt_outfile_open(path, out, err)))
        return st;
    fprintf(out->f,
            "# gnuplot %s draws the SVG and the PNG again.\n"
            "reset\n"
            "set datafile separator \",\"\n"
            "set border 3 lc rgb \"#808080\"\n"
            "set tics nomirror out textcolor rgb \"#303030\"\n"
            "set grid ytics lc rgb \"#E0E0E0\" lt 1 lw 1\n"
            "set key outside right top Left reverse samplen 1 spacing 1.15 noopaque "
            "textcolor rgb \"#303030\"\n"
            "set title font \",15\" textcolor rgb \"#101010\"\n",
            name);
    return PT_OK;
}

/* The SVG is drawn by `plot`, the PNG by `replot`: one description of each picture. */
static void plot(FILE *f, const char *name, int height)
{
    fprintf(f,
            "set terminal svg size 960,%d font \"Helvetica,13\" background \"white\"\n"
            "set output \"%s.svg\"\nplot ",
            height, name);
}

static enum pt_status end(struct pt_outfile *out, const char *name, int height,
                          struct pt_error *err)
{
    enum pt_status st;

    fprintf(out->f,
            "set output\n"
            "if (strstrt(GPVAL_TERMINALS, \"pngcairo\") > 0) {\n"
            "  set terminal pngcairo size 1440,%d font \"Helvetica,13\" fontscale 1.5 "
            "linewidth 1.5 background \"white\"\n"
            "} else {\n  set terminal png size 1440,%d\n}\n"
            "set output \"%s.png\"\nreplot\nset output\n",
            height * 3 / 2, height * 3 / 2, name);
    st = pt_outfile_commit(out, err);
    pt_outfile_discard(out);
    return st;
}

static enum pt_status memory_script(const struct planner_report *r, struct pt_error *err)
{
    const struct pt_memory *m = &r->result->plan[0].memory;
    double limit = m->limit_bytes / PT_GIB, top = fmax(limit, m->device_bytes / PT_GIB);
    uint32_t every = (m->stages + 15) / 16;
    struct pt_outfile out;
    enum pt_status st = begin(r, "memory.gp", &out, err);
    bool first = true;

    if (st != PT_OK)
        return st;
    fprintf(out.f,
            "set title \"Memory of the fullest moment, per stage\"\n"
            "set ylabel \"GiB per GPU\"\nset xlabel \"pipeline stage\"\n"
            "set yrange [0:%.6g]\nset xrange [-0.7:%.6g]\n"
            "set style data histograms\nset style histogram rowstacked\n"
            "set boxwidth %s\nset style fill solid 0.92 border lc rgb \"white\"\n"
            "set xtics 0,%u\n"
            "limit = %.9g\n"
            "set label 1 sprintf(\"limit %%.1f GiB\", limit) at graph 0.01, first limit "
            "offset 0,0.6 textcolor rgb \"#B00020\"\n",
            1.1 * top, m->stages - 0.3, m->stages < 4 ? "0.4" : "0.72",
            every > 0 ? every : 1, limit);
    plot(out.f, "memory", 480);
    for (unsigned p = 0; p < PT_N_MEMORY_PARTS; p++) {
        const char *name = pt_memory_part_name((enum pt_memory_part)p);
        double most = 0;

        for (uint32_t s = 0; s < m->stages; s++)
            most = fmax(most, m->stage[s].part_bytes[p]);
        if (most < 0.002 * m->device_bytes)
            continue;
        fprintf(out.f,
                "%s\"stages.csv\" using (column(\"%s_GiB\")) title \"%s\" lc rgb \"%s\"",
                first ? "" : ", \\\n  ", name, name, colour[p]);
        first = false;
    }
    fprintf(out.f, ", \\\n  limit with lines lw 2 dt 2 lc rgb \"#B00020\" notitle\n");
    return end(&out, "memory", 480, err);
}

static enum pt_status step_script(const struct planner_report *r, struct pt_error *err)
{
    uint32_t rows = r->result->n < 10 ? r->result->n : 10;
    struct planner_slice slice[PLANNER_N_SLICES];
    double most[PLANNER_N_SLICES] = { 0 }, longest = 0, widest = 0;
    char label[96];
    struct pt_outfile out;
    enum pt_status st = begin(r, "step.gp", &out, err);
    char sum[512] = "0";
    bool first = true;

    if (st != PT_OK)
        return st;
    for (uint32_t i = 0; i < rows; i++) {
        planner_slices(&r->result->plan[i].step, slice);
        for (unsigned k = 0; k < PLANNER_N_SLICES; k++)
            most[k] = fmax(most[k], slice[k].s);
        longest = fmax(longest, r->result->plan[i].step.step_s);
        widest = fmax(widest, (double)strlen(planner_short_label(label, sizeof(label),
                                                                 &r->result->plan[i])));
    }
    fprintf(out.f,
            "set title \"Where a step's time goes: the best %u plan%s\"\n"
            "set xlabel \"seconds per step\"\nset yrange [%.6g:0.4]\n"
            "set xrange [0:%.6g]\nunset grid\nset grid xtics lc rgb \"#E0E0E0\" lt 1\n"
            "set style fill solid 0.92 border lc rgb \"white\"\nset border 1\n"
            "set ytics scale 0 font \",11\"\nset lmargin %.0f\n"
            "set key outside bottom center horizontal maxrows 2\n",
            rows, rows == 1 ? "" : "s", rows + 0.6, 1.13 * longest, 2 + 0.74 * widest);
    plot(out.f, "step", 200 + 42 * (int)rows);
    for (unsigned k = 0; k < PLANNER_N_SLICES; k++) {
        char before[512];

        if (most[k] < 0.003 * longest)
            continue;
        snprintf(before, sizeof(before), "%s", sum);
        snprintf(sum + strlen(sum), sizeof(sum) - strlen(sum), "+column(\"%s\")",
                 slice[k].key);
        fprintf(
            out.f,
            "%s\"plans.csv\" every ::0::%u using (%s):(column(\"rank\")):(%s):(%s):"
            "(column(\"rank\")-0.36):(column(\"rank\")+0.36):"
            "ytic(stringcolumn(\"label\")) with boxxyerror title \"%s\" lc rgb \"%s\"",
            first ? "" : ", \\\n  ", rows - 1, sum, before, sum, slice[k].name,
            colour[k]);
        first = false;
    }
    fprintf(
        out.f,
        ", \\\n  \"plans.csv\" every ::0::%u using (column(\"step_time_s\")):"
        "(column(\"rank\")):(sprintf(\"%%.2f s\", column(\"step_time_s\"))) with labels "
        "left offset 0.5,0 font \",11\" textcolor rgb \"#303030\" notitle\n",
        rows - 1);
    return end(&out, "step", 200 + 42 * (int)rows, err);
}

static enum pt_status pareto_script(const struct planner_report *r,
                                    const struct planner_curve *curve,
                                    struct pt_error *err)
{
    struct pt_outfile out;
    enum pt_status st = begin(r, "pareto.gp", &out, err);
    double limit = r->result->plan[0].memory.limit_bytes / PT_GIB, lo = limit, hi = 0,
           slow = 0;

    if (st != PT_OK)
        return st;
    for (unsigned i = 0; i < curve->n; i++) {
        lo = fmin(lo, curve->point[i].device_bytes / PT_GIB);
        hi = fmax(hi, curve->point[i].device_bytes / PT_GIB);
        slow = fmax(slow, curve->point[i].step_s);
    }
    hi = fmax(hi, limit);
    fprintf(
        out.f,
        "set title \"The price of memory: the fastest plan under each limit\"\n"
        "set xlabel \"GiB per GPU (device)\"\nset ylabel \"seconds per step\"\n"
        "set xrange [%.6g:%.6g]\nset yrange [0:%.6g]\n"
        "set arrow 1 from first %.9g, graph 0 to first %.9g, graph 1 nohead lw 2 dt 2 "
        "lc rgb \"#B00020\"\n"
        "set label 1 \"limit\" at first %.9g, graph 0.97 right offset -0.5,0 "
        "textcolor rgb \"#B00020\"\nset key inside bottom left\n",
        fmax(0, lo - 0.1 * (hi - lo) - 1), hi + 0.04 * (hi - lo) + 1, 1.35 * slow, limit,
        limit, limit);
    /* A label at every second corner keeps them apart. */
    plot(out.f, "pareto", 480);
    fprintf(
        out.f,
        "\"pareto.csv\" using (column(\"mem_device_GiB\")):(column(\"step_time_s\")) "
        "with fsteps lw 2 lc rgb \"#56B4E9\" notitle, \\\n"
        "  \"pareto.csv\" using (column(\"mem_device_GiB\")):(column(\"step_time_s\")) "
        "with points pt 7 ps 0.8 lc rgb \"#0072B2\" title \"best plan under a limit\", "
        "\\\n"
        "  \"pareto.csv\" using (column(\"chosen\") > 0 ? column(\"mem_device_GiB\") : "
        "NaN):(column(\"step_time_s\")) with points pt 7 ps 1.6 lc rgb \"#D55E00\" title "
        "\"this plan\", \\\n"
        "  \"pareto.csv\" every %u::%u using (column(\"mem_device_GiB\")):"
        "(column(\"step_time_s\")):(stringcolumn(\"layout\")) with labels left rotate by "
        "28 offset 0.4,0.6 font \",9\" textcolor rgb \"#606060\" notitle\n",
        curve->n > 9   ? 3u
        : curve->n > 5 ? 2u
                       : 1u,
        curve->n > 1 ? 1u : 0u); /* not the chosen one: it stands at the limit */
    return end(&out, "pareto", 480, err);
}

static enum pt_status scaling_script(const struct planner_report *r,
                                     const struct planner_curve *curve,
                                     struct pt_error *err)
{
    struct pt_outfile out;
    enum pt_status st = begin(r, "scaling.gp", &out, err);

    if (st != PT_OK)
        return st;
    fprintf(out.f,
            "set title \"Scaling at the fixed global batch of %u sequences\"\n"
            "set xlabel \"GPUs\"\nset ylabel \"tokens/s a GPU, %% of the best count\"\n"
            "set logscale x 2\nset yrange [0:%.6g]\nset xtics (",
            r->setup->job.global_batch, 115.0);
    for (unsigned i = 0; i < curve->n; i++)
        fprintf(out.f, "%s%.0f", i > 0 ? ", " : "", curve->point[i].x);
    fprintf(
        out.f,
        ")\nset offsets graph 0.06, graph 0.06, 0, 0\n"
        "set key inside bottom left\n"
        "set label 1 \"70 %%\" at graph 0.995, first 70 right offset 0,0.6 textcolor rgb "
        "\"#606060\"\n"
        "set label 2 \"50 %%\" at graph 0.995, first 50 right offset 0,0.6 textcolor rgb "
        "\"#606060\"\n");
    plot(out.f, "scaling", 480);
    fprintf(
        out.f,
        "70 with lines dt 2 lw 1.5 lc rgb \"#E69F00\" notitle, \\\n"
        "  50 with lines dt 2 lw 1.5 lc rgb \"#B00020\" notitle, \\\n"
        "  \"scaling.csv\" using (column(\"gpus\")):(column(\"efficiency_pct\")) with "
        "linespoints lw 2.5 pt 7 ps 1 lc rgb \"#0072B2\" title \"best plan at this "
        "count\", \\\n"
        "  \"scaling.csv\" using (column(\"chosen\") > 0 ? column(\"gpus\") : NaN):"
        "(column(\"efficiency_pct\")) with points pt 7 ps 1.8 lc rgb \"#D55E00\" title "
        "\"this plan\", \\\n"
        "  \"scaling.csv\" using (column(\"gpus\")):(column(\"efficiency_pct\")):"
        "(sprintf(\"%%.3g s\", column(\"step_time_s\"))) with labels offset 0,1.2 font "
        "\",11\" textcolor rgb \"#303030\" notitle\n");
    return end(&out, "scaling", 480, err);
}

/* 0: pictures drawn; else a reason. gnuplot's own words go to gnuplot.log. */
static const char *run_gnuplot(const struct planner_report *r)
{
    static char program[] = "gnuplot", memory[] = "memory.gp", step[] = "step.gp",
                pareto[] = "pareto.gp", scaling[] = "scaling.gp";
    char *const argv[] = { program, memory, step, pareto, scaling, NULL };
    posix_spawn_file_actions_t actions;
    int status = 0, rc;
    pid_t pid;

    if (posix_spawn_file_actions_init(&actions) != 0)
        return "no memory";
    rc = posix_spawn_file_actions_addchdir_np(&actions, r->dir);
    if (rc == 0)
        rc = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null",
                                              O_RDONLY, 0);
    if (rc == 0)
        rc = posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "gnuplot.log",
                                              O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (rc == 0)
        rc = posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
    if (rc == 0)
        rc = posix_spawnp(&pid, "gnuplot", &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (rc == ENOENT)
        return "gnuplot is not installed";
    if (rc != 0)
        return "gnuplot cannot be started";
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return "gnuplot was lost";
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
        return "gnuplot is not installed";
    return WIFEXITED(status) && WEXITSTATUS(status) == 0
               ? NULL
               : "gnuplot failed; gnuplot.log says why";
}

enum pt_status planner_report_plots(const struct planner_report *r,
                                    const struct planner_curve *pareto,
                                    const struct planner_curve *scaling, bool *ran,
                                    struct pt_error *err)
{
    const char *reason;
    enum pt_status st;

    *ran = false;
    if ((st = memory_script(r, err)) || (st = step_script(r, err)) ||
        (st = pareto_script(r, pareto, err)) || (st = scaling_script(r, scaling, err)))
        return st;
    reason = run_gnuplot(r);
    *ran = reason == NULL;
    if (reason != NULL && r->notes != NULL)
        fprintf(r->notes,
                "note: %s: no pictures, %s. The tables and the scripts (*.gp) are there: "
                "run gnuplot *.gp in that folder.\n",
                r->dir, reason);
    return PT_OK;
}
