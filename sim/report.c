#include "config.h"

#include <math.h>

#include "libpt/json.h"
#include "libpt/units.h"
#include "sim/report.h"

double sim_mean_step_s(const struct sim_result *r)
{
    double sum = 0;

    for (uint32_t i = 0; i < r->steps; i++)
        sum += r->step_s[i];
    return sum / r->steps;
}

static double peak_bytes(const struct sim_result *r)
{
    double peak = 0;

    for (uint32_t i = 0; i < r->ranks; i++)
        peak = fmax(peak, r->rank[i].peak_bytes);
    return peak;
}

static double device_bytes(const struct sim_model *m, double allocated)
{
    return allocated * m->device_per_allocated + m->device_fixed_bytes;
}

/* Sent by the busiest rank. */
static void volumes(const struct sim_result *r, double out[5])
{
    for (unsigned k = 0; k < 5; k++)
        out[k] = 0;
    for (uint32_t i = 0; i < r->ranks; i++) {
        const struct sim_rank_sum *s = &r->rank[i];
        double v[5] = { s->tp_bytes, s->cp_bytes, s->ep_bytes, s->dp_bytes,
                        s->sent_bytes };

        for (unsigned k = 0; k < 5; k++)
            out[k] = fmax(out[k], v[k] / r->steps);
    }
}

static void row(FILE *f, const char *name, double simulated, double closed)
{
    char a[32], b[32];

    fprintf(f, "%-18s %12s %12s", name, pt_format_seconds(a, simulated),
            pt_format_seconds(b, closed));
    if (closed > 0)
        fprintf(f, " %+11.2f%%", 100 * (simulated / closed - 1));
    fputc('\n', f);
}

static void layout_line(const struct pt_plan *plan, FILE *f)
{
    const struct pt_layout *l = &plan->layout;

    fprintf(f,
            "%s on %u x %s: tp %u, pp %u, vpp %u, cp %u, ep %u, dp %u, ZeRO-%u, %s, "
            "%u micro-batches\n",
            plan->setup.model.name, l->tp * l->cp * l->dp * l->pp,
            plan->setup.cluster.gpu.key, l->tp, l->pp, l->vpp, l->cp, l->ep, l->dp,
            l->zero, l->pp == 1 ? "no pipeline" : pt_schedule_name(l->schedule),
            pt_micro_batches(&plan->setup.job, l));
}

static void stage_table(const struct pt_plan *plan, const struct sim_model *m,
                        const struct sim_result *r, FILE *f)
{
    uint32_t per = m->world.per_stage, slow = per > 1;

    fprintf(f, "\n%5s %10s %10s %10s %10s %9s %10s %10s\n", "stage", "busy", "wait",
            "held up", "reduction", "idle", "allocated", "device");
    for (uint32_t s = 0; s < plan->layout.pp; s++) {
        const struct sim_rank_sum *sum = &r->rank[s * per];
        char t[4][32], b[2][32];
        double idle, worst = sum->peak_bytes;

        for (uint32_t i = 1; i < per; i++) { /* unfolded: the rank that works longest */
            const struct sim_rank_sum *other = &r->rank[s * per + i];

            worst = fmax(worst, other->peak_bytes);
            sum = other->busy_s > sum->busy_s ? other : sum;
        }
        idle = 1 - sum->busy_s / (r->end_s > 0 ? r->end_s : 1);
        fprintf(f, "%5u %10s %10s %10s %10s %8.2f%% %10s %10s\n", s,
                pt_format_seconds(t[0], sum->busy_s / r->steps),
                pt_format_seconds(t[1], sum->wait_s / r->steps),
                pt_format_seconds(t[2], sum->block_s / r->steps),
                pt_format_seconds(t[3], sum->reduce_wait_s / r->steps), 100 * idle,
                pt_format_gib(b[0], worst), pt_format_gib(b[1], device_bytes(m, worst)));
    }
    if (slow)
        fprintf(f, "(of each stage's %u ranks, the one that works longest)\n", per);
}

static void step_spread(const struct sim_result *r, FILE *f)
{
    double lo = HUGE_VAL, hi = 0;
    char a[32], b[32];

    if (r->steps < 2)
        return;
    for (uint32_t i = 0; i < r->steps; i++) {
        lo = fmin(lo, r->step_s[i]);
        hi = fmax(hi, r->step_s[i]);
    }
    fprintf(f, "%u steps: %s to %s\n", r->steps, pt_format_seconds(a, lo),
            pt_format_seconds(b, hi));
}

static void whole_run(const struct sim_whole *w, FILE *f)
{
    const struct sim_campaign *c = &w->campaign;
    const struct sim_campaign_result *r = &w->result;
    char a[32], b[32], d[32], e[32];

    fprintf(f, "\nwhole run: %s tokens, %.0f steps, %s of work\n",
            pt_format_count(a, w->tokens), ceil(c->work_s / c->step_s),
            pt_format_seconds(b, c->work_s));
    fprintf(f,
            "failures every %s, checkpoint %s every %s, restart %s, seeds %llu to %llu\n",
            c->mtbf_s > 0 ? pt_format_seconds(a, c->mtbf_s) : "never",
            pt_format_seconds(b, c->checkpoint_s), pt_format_seconds(d, r->interval_s),
            pt_format_seconds(e, c->restart_s), (unsigned long long)c->seed,
            (unsigned long long)(c->seed + c->seeds - 1));
    fprintf(f, "time to train     %s, 10-90%%: %s to %s\n",
            pt_format_seconds(a, r->mean_s), pt_format_seconds(b, r->p10_s),
            pt_format_seconds(d, r->p90_s));
    fprintf(f, "goodput           %.2f%%, %.4g failures\n", 100 * r->goodput_frac,
            r->failures);
    fprintf(
        f,
        "lost              %s done again, %s checkpoints, %s restarts, %s waiting for "
        "nodes\n",
        pt_format_seconds(a, r->lost_s), pt_format_seconds(b, r->checkpoint_s),
        pt_format_seconds(d, r->restart_s), pt_format_seconds(e, r->wait_s));
    if (c->mtbf_s > 0 && r->young_s > 0)
        fprintf(f, "best interval     Young %s, Daly %s, by search %s: %s to train\n",
                pt_format_seconds(a, r->young_s), pt_format_seconds(b, r->daly_s),
                pt_format_seconds(d, r->best_interval_s),
                pt_format_seconds(e, r->best_s));
    if (w->n_spares > 0)
        fprintf(f, "spare nodes      ");
    for (unsigned i = 0; i < w->n_spares; i++)
        fprintf(f, "%s %u: %s", i ? "," : "", i, pt_format_seconds(a, w->by_spares_s[i]));
    if (w->n_spares > 0)
        fputc('\n', f);
}

void sim_report_text(const struct pt_plan *plan, const struct sim_model *m,
                     const struct sim_result *r, const struct sim_whole *whole, FILE *f)
{
    static const char *const names[] = { "tensor", "context", "expert", "data",
                                         "pipeline" };
    const struct pt_step *c = &m->closed;
    const double closed[5] = { c->tp_bytes, c->cp_bytes, c->ep_bytes, c->dp_bytes,
                               c->pp_bytes };
    double peak = peak_bytes(r), sent[5];
    char a[32], b[32];

    layout_line(plan, f);
    if (m->folded)
        fprintf(f, "simulated %u rank%s, each for %u alike; %llu events\n", r->ranks,
                r->ranks == 1 ? "" : "s",
                plan->layout.tp * plan->layout.cp * plan->layout.dp,
                (unsigned long long)r->events);
    else
        fprintf(f, "simulated %u ranks; %llu events; seed %llu\n", r->ranks,
                (unsigned long long)r->events, (unsigned long long)m->world.seed);
    fprintf(f, "\n%-18s %12s %12s %12s\n", "", "simulated", "closed form", "difference");
    row(f, "step", sim_mean_step_s(r), c->step_s);
    row(f, "pipeline", r->pipeline_s, c->pipeline_s);
    row(f, "after it", sim_mean_step_s(r) - r->pipeline_s, c->step_s - c->pipeline_s);
    step_spread(r, f);
    fprintf(f, "%-18s %11.2f%% %11.2f%%\n", "bubble of total", 100 * r->bubble_of_total,
            100 * c->bubble_of_total);
    fprintf(f, "%-18s %11.2f%% %11.2f%%\n", "bubble of ideal", 100 * r->bubble_of_ideal,
            100 * c->bubble_of_ideal);
    fprintf(f, "%-18s %12s %12s\n", "peak allocated", pt_format_gib(a, peak),
            pt_format_gib(b, plan->memory.allocated_bytes));
    fprintf(
        f,
        "(the simulated bubble counts unequal stages, the closed form's is that of the "
        "slowest)\n");
    volumes(r, sent);
    fprintf(f, "\nsent per GPU and step\n");
    for (unsigned k = 0; k < 5; k++)
        if (sent[k] > 0 || closed[k] > 0)
            fprintf(f, "%-18s %12s %12s\n", names[k], pt_format_gib(a, sent[k]),
                    pt_format_gib(b, closed[k]));
    stage_table(plan, m, r, f);
    if (whole != NULL)
        whole_run(whole, f);
}

void sim_report_csv(const struct pt_plan *plan, const struct sim_model *m,
                    const struct sim_result *r, const struct sim_whole *whole, FILE *f)
{
    const struct pt_layout *l = &plan->layout;
    double peak = peak_bytes(r);

    fprintf(f, "schedule,tp,pp,vpp,cp,ep,dp,zero,micro_batches,ranks,steps,step_s,"
               "closed_form_step_s,pipeline_s,closed_form_pipeline_s,bubble_of_total,"
               "bubble_of_ideal,allocated_bytes,device_bytes");
    if (whole != NULL)
        fprintf(f, ",time_to_train_s,p10_s,p90_s,goodput_frac,failures,interval_s,"
                   "best_interval_s");
    fprintf(f, "\n%s,%u,%u,%u,%u,%u,%u,%u,%u,%u,%u", pt_schedule_name(l->schedule), l->tp,
            l->pp, l->vpp, l->cp, l->ep, l->dp, l->zero,
            pt_micro_batches(&plan->setup.job, l), r->ranks, r->steps);
    fprintf(f, ",%.15g,%.15g,%.15g,%.15g,%.15g,%.15g,%.0f,%.0f", sim_mean_step_s(r),
            m->closed.step_s, r->pipeline_s, m->closed.pipeline_s, r->bubble_of_total,
            r->bubble_of_ideal, peak, device_bytes(m, peak));
    if (whole != NULL)
        fprintf(f, ",%.9g,%.9g,%.9g,%.9g,%.9g,%.9g,%.9g", whole->result.mean_s,
                whole->result.p10_s, whole->result.p90_s, whole->result.goodput_frac,
                whole->result.failures, whole->result.interval_s,
                whole->result.best_interval_s);
    fputc('\n', f);
}

static void json_whole(const struct sim_whole *w, struct pt_json *doc)
{
    const struct sim_campaign_result *r = &w->result;
    struct pt_json *o = pt_json_add_object(doc, "whole_run"), *spares;

    pt_json_put_number(o, "tokens", w->tokens);
    pt_json_put_number(o, "work_s", w->campaign.work_s);
    pt_json_put_number(o, "time_to_train_s", r->mean_s);
    pt_json_put_number(o, "p10_s", r->p10_s);
    pt_json_put_number(o, "p90_s", r->p90_s);
    pt_json_put_number(o, "goodput_frac", r->goodput_frac);
    pt_json_put_number(o, "failures", r->failures);
    pt_json_put_number(o, "lost_s", r->lost_s);
    pt_json_put_number(o, "checkpoint_s", r->checkpoint_s);
    pt_json_put_number(o, "restart_s", r->restart_s);
    pt_json_put_number(o, "wait_s", r->wait_s);
    pt_json_put_number(o, "interval_s", r->interval_s);
    pt_json_put_number(o, "young_s", r->young_s);
    pt_json_put_number(o, "daly_s", r->daly_s);
    pt_json_put_number(o, "best_interval_s", r->best_interval_s);
    pt_json_put_number(o, "best_time_to_train_s", r->best_s);
    spares = pt_json_add_array(o, "time_to_train_by_spare_nodes_s");
    for (unsigned i = 0; i < w->n_spares; i++)
        pt_json_put_number(spares, NULL, w->by_spares_s[i]);
}

enum pt_status sim_report_json(const struct pt_plan *plan, const struct sim_model *m,
                               const struct sim_result *r, const struct sim_whole *whole,
                               FILE *f, struct pt_error *err)
{
    struct pt_json *doc = pt_json_new_object(), *part, *ranks, *steps;
    double peak = peak_bytes(r);
    enum pt_status st;

    pt_json_put_string(doc, "plan", plan->hash);
    part = pt_json_add_object(doc, "simulated");
    pt_json_put_number(part, "step_s", sim_mean_step_s(r));
    pt_json_put_number(part, "pipeline_s", r->pipeline_s);
    pt_json_put_number(part, "bubble_of_total", r->bubble_of_total);
    pt_json_put_number(part, "bubble_of_ideal", r->bubble_of_ideal);
    pt_json_put_number(part, "allocated_bytes", peak);
    pt_json_put_number(part, "device_bytes", device_bytes(m, peak));
    pt_json_put_u64(part, "events", r->events);
    pt_json_put_u64(part, "seed", m->world.seed);
    steps = pt_json_add_array(part, "steps_s");
    for (uint32_t i = 0; i < r->steps; i++)
        pt_json_put_number(steps, NULL, r->step_s[i]);
    part = pt_json_add_object(doc, "closed_form");
    pt_json_put_number(part, "step_s", m->closed.step_s);
    pt_json_put_number(part, "pipeline_s", m->closed.pipeline_s);
    pt_json_put_number(part, "bubble_of_total", m->closed.bubble_of_total);
    pt_json_put_number(part, "bubble_of_ideal", m->closed.bubble_of_ideal);
    pt_json_put_number(part, "allocated_bytes", plan->memory.allocated_bytes);
    ranks = pt_json_add_array(doc, "ranks");
    for (uint32_t i = 0; i < r->ranks; i++) {
        struct pt_json *o = pt_json_add_object(ranks, NULL);

        pt_json_put_u64(o, "stage", i / m->world.per_stage);
        pt_json_put_number(o, "busy_s", r->rank[i].busy_s);
        pt_json_put_number(o, "wait_s", r->rank[i].wait_s);
        pt_json_put_number(o, "block_s", r->rank[i].block_s);
        pt_json_put_number(o, "reduce_wait_s", r->rank[i].reduce_wait_s);
        pt_json_put_number(o, "allocated_bytes", r->rank[i].peak_bytes);
    }
    if (whole != NULL)
        json_whole(whole, doc);
    st = pt_json_write(doc, f, "standard output", err);
    pt_json_free(doc);
    return st;
}

void sim_report_ranks(const struct sim_model *m, const struct sim_result *r, FILE *f)
{
    fprintf(f,
            "rank,stage,busy_s,wait_s,block_s,reduce_wait_s,idle_frac,peak_activations,"
            "allocated_bytes,device_bytes,sent_bytes,received_bytes,tp_bytes,cp_bytes,"
            "ep_bytes,dp_bytes\n");
    for (uint32_t i = 0; i < r->ranks; i++) {
        const struct sim_rank_sum *s = &r->rank[i];

        fprintf(f,
                "%u,%u,%.9g,%.9g,%.9g,%.9g,%.9g,%.9g,%.0f,%.0f,%.0f,%.0f,%.0f,%.0f,%.0f,"
                "%.0f\n",
                i, i / m->world.per_stage, s->busy_s, s->wait_s, s->block_s,
                s->reduce_wait_s, r->end_s > 0 ? 1 - s->busy_s / r->end_s : 0,
                (double)s->peak_held / m->schedule.chunks, s->peak_bytes,
                device_bytes(m, s->peak_bytes), s->sent_bytes, s->received_bytes,
                s->tp_bytes, s->cp_bytes, s->ep_bytes, s->dp_bytes);
    }
}

void sim_report_compare(const struct pt_trace_sums *a, const struct pt_trace_sums *b,
                        FILE *f)
{
    char x[32], y[32];

    fprintf(f, "\n%-16s %21s %25s %8s\n", "", "how often", "time of one, mean",
            "meas. /");
    fprintf(f, "%-16s %10s %10s %12s %12s %8s\n", "per instruction", "simulated",
            "measured", "simulated", "measured", "sim.");
    for (int k = 0; k < PT_N_INSTR_KINDS; k++) {
        const struct pt_trace_sum *s = &a->kind[k], *m = &b->kind[k];

        if (s->n == 0 && m->n == 0)
            continue;
        fprintf(f, "%-16s %10llu %10llu", pt_instr_name((enum pt_instr_kind)k),
                (unsigned long long)s->n, (unsigned long long)m->n);
        if (s->n > 0)
            fprintf(f, " %12s", pt_format_seconds(x, s->total_s / (double)s->n));
        else
            fprintf(f, " %12s", "-");
        if (m->n > 0)
            fprintf(f, " %12s", pt_format_seconds(y, m->total_s / (double)m->n));
        else
            fprintf(f, " %12s", "-");
        if (s->n > 0 && m->n > 0 && s->total_s > 0)
            fprintf(f, " %8.3f", m->total_s / (double)m->n / (s->total_s / (double)s->n));
        else
            fprintf(f, " %8s", "-");
        fputc('\n', f);
    }
    fprintf(f, "%-16s %10s %10s %12s %12s %8.3f\n", "whole trace", "", "",
            pt_format_seconds(x, a->end_s - a->start_s),
            pt_format_seconds(y, b->end_s - b->start_s),
            (b->end_s - b->start_s) / (a->end_s - a->start_s));
}
