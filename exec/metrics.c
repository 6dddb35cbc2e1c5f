#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "exec/metrics.h"
#include "libpt/units.h"

#define BAR 10

static const char *const column_names[EXEC_N_RANK_COLUMNS] = { "step_time_s", "wait_s",
                                                               "peak_mem_bytes",
                                                               "grad_norm_local" };

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static enum pt_status failed(const struct exec_metrics *m, struct pt_error *err)
{
    return pt_fail(err, PT_SYSTEM, m->path, 0, "cannot write the metrics: %s",
                   strerror(errno));
}

enum pt_status exec_metrics_open(struct exec_metrics *m, const char *path, FILE *out,
                                 uint64_t steps, uint64_t log_every, bool evaluates,
                                 uint32_t ranks, struct pt_error *err)
{
    memset(m, 0, sizeof(*m));
    m->path = path;
    m->out = out;
    m->terminal = out != NULL && isatty(fileno(out));
    m->steps = steps;
    m->log_every = log_every;
    m->evaluates = evaluates;
    m->ranks = ranks;
    m->begin_s = now_s();
    if (path == NULL)
        return PT_OK;
    m->csv = fopen(path, "w");
    if (m->csv == NULL)
        return failed(m, err);
    fprintf(m->csv,
            "step,tokens,loss,grad_norm,lr,step_time_s,tokens_per_s,peak_mem_bytes%s",
            evaluates ? ",eval_loss" : "");
    for (uint32_t r = 0; r < ranks; r++)
        for (int c = 0; c < EXEC_N_RANK_COLUMNS; c++)
            fprintf(m->csv, ",rank%u_%s", r, column_names[c]);
    fputc('\n', m->csv);
    return ferror(m->csv) ? failed(m, err) : PT_OK;
}

/* One row; whether it is on the disk. */
static bool write_row(const struct exec_metrics *m, const struct exec_point *p,
                      const char *eval)
{
    fprintf(m->csv, "%llu,%llu,%.17g,%.17g,%.17g,%.17g,%.17g,%.17g%s%s",
            (unsigned long long)p->step, (unsigned long long)p->tokens, p->loss,
            p->grad_norm, p->lr, p->step_s, p->tokens_per_s, p->peak_bytes,
            m->evaluates ? "," : "", eval);
    for (size_t i = 0; i < (size_t)m->ranks * EXEC_N_RANK_COLUMNS; i++)
        fprintf(m->csv, ",%.17g", p->by_rank[i]);
    fputc('\n', m->csv);
    return fflush(m->csv) == 0 && !ferror(m->csv);
}

/* Small counts with one decimal at most, small memories in MiB. */
static const char *format_rate(char *buf, double x)
{
    if (x < 1000)
        snprintf(buf, 32, "%.0f", x);
    else
        pt_format_count(buf, x);
    return buf;
}

static const char *format_memory(char *buf, double bytes)
{
    if (bytes < PT_GIB)
        snprintf(buf, 32, "%.1f MiB", bytes / PT_MIB);
    else
        pt_format_gib(buf, bytes);
    return buf;
}

static enum pt_status show(struct exec_metrics *m, const struct exec_point *p,
                           struct pt_error *err)
{
    char mem[32], eta[32], rate[32];
    double left = (now_s() - m->begin_s) / (double)p->step * (double)(m->steps - p->step);
    int done = (int)(BAR * p->step / m->steps);

    /* 80 columns: a longer line would wrap, and the carriage return not take it back. */
    if (m->terminal)
        fprintf(m->out, "\r\033[K[%.*s%.*s] ", done, "##########", BAR - done,
                "..........");
    fprintf(m->out, "step %llu/%llu  loss %.4f  ", (unsigned long long)p->step,
            (unsigned long long)m->steps, p->loss);
    if (!m->terminal)
        fprintf(m->out, "norm %.3f  lr %.1e  ", p->grad_norm, p->lr);
    fprintf(m->out, "%s tokens/s  ETA %s", format_rate(rate, p->tokens_per_s),
            pt_format_seconds(eta, left));
    if (m->terminal)
        fprintf(m->out, "  mem %s", format_memory(mem, p->peak_bytes));
    if (!m->terminal || p->step == m->steps)
        fputc('\n', m->out);
    if (fflush(m->out) != 0)
        return pt_fail(err, PT_SYSTEM, NULL, 0, "cannot write the progress: %s",
                       strerror(errno));
    return PT_OK;
}

enum pt_status exec_metrics_add(struct exec_metrics *m, const struct exec_point *p,
                                struct pt_error *err)
{
    char eval[32] = "";

    if (isfinite(p->eval_loss))
        snprintf(eval, sizeof(eval), "%.17g", p->eval_loss);
    if (m->csv != NULL && !write_row(m, p, eval))
        return failed(m, err);
    if (m->out != NULL && eval[0] != '\0')
        fprintf(m->out, "%sstep %llu  evaluation loss %.4f\n",
                m->terminal ? "\r\033[K" : "", (unsigned long long)p->step, p->eval_loss);
    if (m->out == NULL || (p->step % m->log_every != 0 && p->step != m->steps))
        return PT_OK;
    return show(m, p, err);
}

enum pt_status exec_metrics_close(struct exec_metrics *m, struct pt_error *err)
{
    FILE *f = m->csv;

    m->csv = NULL;
    if (f != NULL && fclose(f) != 0)
        return failed(m, err);
    return PT_OK;
}
