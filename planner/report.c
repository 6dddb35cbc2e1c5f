#include "config.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "libpt/csv.h"
#include "libpt/outfile.h"
#include "libpt/units.h"
#include "planner/format.h"
#include "planner/report.h"

bool planner_report_path(const struct planner_report *r, const char *name, char *buf,
                         size_t size)
{
    int n = snprintf(buf, size, "%s/%s", r->dir, name);

    return n > 0 && (size_t)n < size;
}

static enum pt_status open_table(const struct planner_report *r, const char *name,
                                 struct pt_outfile *out, struct pt_error *err)
{
    char path[4096];

    if (!planner_report_path(r, name, path, sizeof(path)))
        return pt_fail(err, PT_SYSTEM, NULL, 0,
                       "--report: the folder's name is too long");
    return pt_outfile_open(path, out, err);
}

static void put_number(FILE *f, double v, int first)
{
    char buf[40];

    snprintf(buf, sizeof(buf), "%.9g", v);
    pt_csv_put(f, buf, first);
}

static void put_names(FILE *f, const char *const *name)
{
    for (int i = 0; name[i] != NULL; i++)
        pt_csv_put(f, name[i], i == 0);
}

static enum pt_status write_stages(const struct planner_report *r, struct pt_error *err)
{
    static const char *const head[] = {
        "stage", "layers", "recomputed", "offload_frac", "in_flight", "phase", NULL
    };
    static const char *const tail[] = { "allocated_GiB",     "reserved_GiB",
                                        "device_GiB",        "limit_GiB",
                                        "host_GiB_per_rank", NULL };
    const struct pt_plan *plan = &r->result->plan[0];
    struct pt_outfile out;
    enum pt_status st = open_table(r, "stages.csv", &out, err);
    char buf[64];

    if (st != PT_OK)
        return st;
    put_names(out.f, head);
    for (unsigned p = 0; p < PT_N_MEMORY_PARTS; p++) {
        snprintf(buf, sizeof(buf), "%s_GiB", pt_memory_part_name((enum pt_memory_part)p));
        pt_csv_put(out.f, buf, 0);
    }
    for (int i = 0; tail[i] != NULL; i++)
        pt_csv_put(out.f, tail[i], 0);
    pt_csv_put_end(out.f);
    for (uint32_t s = 0; s < plan->memory.stages; s++) {
        const struct pt_stage_memory *m = &plan->memory.stage[s];
        uint32_t layers = 0, recomputed = 0;

        for (uint32_t c = 0; c < plan->split.vpp; c++)
            for (unsigned k = 0; k < PT_N_LAYER_KINDS; k++) {
                layers += plan->split.chunk[c * plan->split.pp + s].layers[k];
                recomputed += plan->split.chunk[c * plan->split.pp + s].recomputed[k];
            }
        put_number(out.f, s, 1);
        put_number(out.f, layers, 0);
        put_number(out.f, recomputed, 0);
        put_number(out.f, plan->split.offload_frac[s], 0);
        put_number(out.f, m->in_flight, 0);
        pt_csv_put(out.f, pt_phase_name(m->worst_phase), 0);
        for (unsigned p = 0; p < PT_N_MEMORY_PARTS; p++)
            put_number(out.f, m->part_bytes[p] / PT_GIB, 0);
        put_number(out.f, m->allocated_bytes / PT_GIB, 0);
        put_number(out.f, m->reserved_bytes / PT_GIB, 0);
        put_number(out.f, m->device_bytes / PT_GIB, 0);
        put_number(out.f, plan->memory.limit_bytes / PT_GIB, 0);
        put_number(out.f, m->host_bytes / PT_GIB, 0);
        pt_csv_put_end(out.f);
    }
    st = pt_outfile_commit(&out, err);
    pt_outfile_discard(&out);
    return st;
}

static enum pt_status write_plans(const struct planner_report *r, struct pt_error *err)
{
    struct planner_record record;
    struct pt_outfile out;
    enum pt_status st = open_table(r, "plans.csv", &out, err);
    char label[96];

    if (st != PT_OK)
        return st;
    for (uint32_t i = 0; i < r->result->n; i++) {
        planner_record_plan(&record, i + 1, &r->result->plan[i]);
        record.field[record.n++] = (struct planner_field){
            "label", planner_short_label(label, sizeof(label), &r->result->plan[i]), 0,
            false
        };
        if (i == 0)
            planner_put_header(out.f, &record);
        planner_put_row(out.f, &record);
    }
    st = pt_outfile_commit(&out, err);
    pt_outfile_discard(&out);
    return st;
}

static enum pt_status write_curve(const struct planner_report *r, const char *name,
                                  const char *x_name, double x_unit,
                                  const struct planner_curve *curve, struct pt_error *err)
{
    static const char *const head[] = { "gpus_used", "step_time_s",    "tokens_per_s",
                                        "mfu_pct",   "efficiency_pct", "mem_device_GiB",
                                        "chosen",    "layout",         NULL };
    struct pt_outfile out;
    enum pt_status st = open_table(r, name, &out, err);

    if (st != PT_OK)
        return st;
    pt_csv_put(out.f, x_name, 1);
    for (int i = 0; head[i] != NULL; i++)
        pt_csv_put(out.f, head[i], 0);
    pt_csv_put_end(out.f);
    for (unsigned i = 0; i < curve->n; i++) {
        const struct planner_point *p = &curve->point[i];

        put_number(out.f, p->x / x_unit, 1);
        put_number(out.f, p->gpus, 0);
        put_number(out.f, p->step_s, 0);
        put_number(out.f, p->tokens_per_s, 0);
        put_number(out.f, 100 * p->mfu, 0);
        put_number(out.f, 100 * p->efficiency, 0);
        put_number(out.f, p->device_bytes / PT_GIB, 0);
        put_number(out.f, p->chosen, 0);
        pt_csv_put(out.f, p->label, 0);
        pt_csv_put_end(out.f);
    }
    st = pt_outfile_commit(&out, err);
    pt_outfile_discard(&out);
    return st;
}

static enum pt_status write_traffic(const struct planner_report *r, struct pt_error *err)
{
    const struct pt_step *t = &r->result->plan[0].step;
    const struct {
        const char *name;
        double bytes, s;
    } row[] = { { "tp", t->tp_bytes, t->tp_s },
                { "cp", t->cp_bytes, t->cp_s },
                { "ep", t->ep_bytes, t->ep_s },
                { "pp", t->pp_bytes, t->pp_s },
                { "dp", t->dp_bytes, t->dp_s } };
    static const char *const head[] = { "dimension", "sent_bytes_per_gpu_step",
                                        "exposed_s", NULL };
    struct pt_outfile out;
    enum pt_status st = open_table(r, "traffic.csv", &out, err);

    if (st != PT_OK)
        return st;
    put_names(out.f, head);
    pt_csv_put_end(out.f);
    for (unsigned i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        pt_csv_put(out.f, row[i].name, 1);
        put_number(out.f, row[i].bytes, 0);
        put_number(out.f, row[i].s, 0);
        pt_csv_put_end(out.f);
    }
    st = pt_outfile_commit(&out, err);
    pt_outfile_discard(&out);
    return st;
}

static enum pt_status write_summary(const struct planner_report *r, struct pt_error *err)
{
    struct pt_outfile out;
    enum pt_status st = open_table(r, "summary.txt", &out, err);

    if (st != PT_OK)
        return st;
    planner_summary(out.f, r->setup, r->result, r->assumed, r->hints);
    if (r->result->n > 1)
        planner_top_table(out.f, r->result);
    st = pt_outfile_commit(&out, err);
    pt_outfile_discard(&out);
    return st;
}

enum pt_status planner_report_write(const struct planner_report *r, struct pt_error *err)
{
    struct planner_curve pareto, scaling;
    bool pictures = false;
    enum pt_status st;

    if (mkdir(r->dir, 0777) != 0 && errno != EEXIST)
        return pt_fail(err, PT_SYSTEM, r->dir, 0, "cannot make the folder: %s",
                       strerror(errno));
    planner_pareto(r, &pareto);
    planner_scaling(r, &scaling);
    if ((st = write_summary(r, err)) || (st = write_stages(r, err)) ||
        (st = write_plans(r, err)) || (st = write_traffic(r, err)) ||
        (st = write_curve(r, "pareto.csv", "limit_GiB", PT_GIB, &pareto, err)) ||
        (st = write_curve(r, "scaling.csv", "gpus", 1, &scaling, err)) ||
        (st = planner_report_plots(r, &pareto, &scaling, &pictures, err)))
        return st;
    return planner_report_html(r, &scaling, pictures, err);
}
