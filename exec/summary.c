#include "config.h"

#include <math.h>
#include <string.h>

#include "exec/blas.h"
#include "exec/stage.h"
#include "exec/summary.h"
#include "libpt/schedule_plan.h"
#include "libpt/units.h"

static void layout_line(FILE *f, const struct pt_plan *plan)
{
    const struct pt_layout *l = &plan->layout;

    fprintf(f,
            "tp %u, pp %u, vpp %u, dp %u, zero %u, %s, micro-batch %u x %u of %u, %s%s",
            l->tp, l->pp, l->vpp, l->dp, l->zero,
            l->pp > 1 ? pt_schedule_name(l->schedule) : "no pipeline", l->micro_batch,
            pt_micro_batches(&plan->setup.job, l), plan->setup.job.seq,
            pt_recompute_name(l->recompute), " recomputed");
    fprintf(f, "%s\n", l->sequence_parallel ? ", sequence parallel" : "");
}

void exec_banner(FILE *f, const struct exec_options *o, const struct pt_plan *plan,
                 const char *data_hash, const char *isa)
{
    struct pt_params params;
    char count[32];

    pt_model_params(&plan->setup.model, &params);
    fprintf(f, "model    %s, %s parameters\n", plan->setup.model.name,
            pt_format_count(count, (double)params.total));
    fprintf(f, "ranks    %u, ", plan->layout.tp * plan->layout.pp * plan->layout.dp);
    layout_line(f, plan);
    fprintf(f, "products %s,\n         kernels %s, %llu thread%s a rank\n",
            exec_blas_name(), isa, (unsigned long long)o->threads,
            o->threads == 1 ? "" : "s");
    fprintf(f, "data     %s, sha256 %.16s\n", o->data, data_hash);
    fprintf(f,
            "train    %llu steps, seed %llu, lr %.3g %s, warm-up %llu, weight decay %g, "
            "clip %g\n",
            (unsigned long long)o->steps, (unsigned long long)o->seed, o->optimizer.lr,
            o->lr_schedule, (unsigned long long)o->optimizer.warmup,
            o->optimizer.weight_decay, o->optimizer.clip);
}

static void print_instr(FILE *f, const struct pt_instr *in)
{
    fprintf(f, "    %-16s chunk %u, micro-batch %u",
            pt_instr_name((enum pt_instr_kind)in->kind), in->chunk, in->micro_batch);
    if (in->kind >= PT_SEND_ACTIVATION && in->kind <= PT_RECV_GRADIENT)
        fprintf(f, ", stage %u", in->peer);
    fputc('\n', f);
}

#define SHOWN 8

enum pt_status exec_dry_run(FILE *f, const struct pt_plan *plan, struct pt_error *err)
{
    const struct pt_layout *l = &plan->layout;
    struct pt_schedule sc;
    char mem[32];
    enum pt_status st = pt_schedule_of_plan(plan, &sc, err);

    if (st != PT_OK)
        return st;
    st = pt_schedule_check(&sc, err);
    fprintf(f, "ranks %u: ", l->tp * l->pp * l->dp);
    layout_line(f, plan);
    for (uint32_t s = 0; st == PT_OK && s < sc.stages; s++) {
        const struct pt_program *p = &sc.stage[s];
        uint32_t first = s * l->tp * l->dp;
        double bytes =
            s < plan->memory.stages ? plan->memory.stage[s].allocated_bytes : 0;

        fprintf(
            f,
            "stage %u: ranks %u to %u, tensor groups of %u, data groups of %u, %s by the "
            "plan, %zu instructions\n",
            s, first, first + l->tp * l->dp - 1, l->tp, l->dp, pt_format_gib(mem, bytes),
            p->n);
        for (size_t i = 0; i < p->n && i < SHOWN; i++)
            print_instr(f, &p->instr[i]);
    }
    pt_schedule_fini(&sc);
    return st;
}

static void line(FILE *f, const char *what, double measured, double planned,
                 const char *unit)
{
    if (measured >= 1e6 || planned >= 1e6)
        fprintf(f, "%-22s %14.0f %14.0f %s", what, measured, planned, unit);
    else
        fprintf(f, "%-22s %14.6g %14.6g %s", what, measured, planned, unit);
    if (planned > 0)
        fprintf(f, "  (%+.2f%%)", 100 * (measured / planned - 1));
    fputc('\n', f);
}

/* What the fullest rank's memory was made of when it was fullest. */
static void uses_line(FILE *f, const struct exec_header *h)
{
    uint32_t fullest = 0;

    for (uint32_t r = 1; r < h->size; r++)
        if (h->rank[r].report.peak_bytes > h->rank[fullest].report.peak_bytes)
            fullest = r;
    fprintf(f, "  of rank %u:", fullest);
    for (int u = 0; u < EXEC_N_USES; u++)
        if (u != EXEC_USE_CONTROL && h->rank[fullest].report.use_bytes[u] > 0)
            fprintf(f, " %s %.0f", exec_use_names[u],
                    h->rank[fullest].report.use_bytes[u]);
    fputc('\n', f);
}

void exec_summary(FILE *f, const struct pt_plan *plan, const struct exec_shared *shared)
{
    const struct exec_header *h = shared->header;
    const struct pt_step *p = &plan->step;
    double step = 0, peak = 0, host = 0, busy = 0, span = 0, control = 0;
    double bytes[EXEC_N_DIMS] = { 0 };

    for (uint32_t r = 0; r < h->size; r++) {
        const struct exec_report *rep = &h->rank[r].report;

        step = fmax(step, rep->step_s);
        peak = fmax(peak, rep->peak_bytes);
        host = fmax(host, rep->host_peak_bytes);
        span = fmax(span, rep->span_s);
        busy += rep->busy_s / (double)h->size;
        control = fmax(control, rep->traffic.control_bytes);
        for (int d = 0; d < EXEC_N_DIMS; d++)
            bytes[d] = fmax(bytes[d], rep->traffic.tensor_bytes[d]);
    }
    fprintf(f, "%-22s %14s %14s\n", "", "measured", "planned");
    line(f, "step time", step, p->step_s, "s");
    line(f, "bubble of total", span > 0 ? 1 - busy / span : 0, p->bubble_of_total, "");
    line(f, "peak memory", peak, plan->memory.allocated_bytes, "bytes, fullest rank");
    uses_line(f, h);
    if (host > 0)
        line(f, "host memory", host, plan->memory.host_bytes, "bytes, fullest rank");
    line(f, "tensor-parallel bytes", bytes[EXEC_DIM_TP], p->tp_bytes,
         "sent, busiest rank");
    line(f, "data-parallel bytes", bytes[EXEC_DIM_DP] + bytes[EXEC_DIM_TIED], p->dp_bytes,
         "sent, busiest rank");
    line(f, "pipeline bytes", bytes[EXEC_DIM_PP], p->pp_bytes, "sent, busiest rank");
    line(f, "control bytes", control, 0, "sent, busiest rank");
}
