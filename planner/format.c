#include "config.h"

#include <math.h>
#include <string.h>

#include "libpt/csv.h"
#include "libpt/json.h"
#include "libpt/units.h"
#include "planner/format.h"
#include "planner/summary.h"

static struct planner_field *add(struct planner_record *r, const char *key)
{
    struct planner_field *f = &r->field[r->n < PLANNER_MAX_FIELDS - 1 ? r->n++ : r->n];

    memset(f, 0, sizeof(*f));
    f->key = key;
    return f;
}

static void number(struct planner_record *r, const char *key, double v)
{
    add(r, key)->number = v;
}

static void whole(struct planner_record *r, const char *key, uint64_t v)
{
    struct planner_field *f = add(r, key);

    f->number = (double)v;
    f->whole = true;
}

static void text(struct planner_record *r, const char *key, const char *v)
{
    add(r, key)->text = v;
}

static void add_layout(struct planner_record *r, const struct pt_layout *l)
{
    whole(r, "gpus", (uint64_t)l->tp * l->pp * l->cp * l->dp);
    whole(r, "tp", l->tp);
    whole(r, "pp", l->pp);
    whole(r, "vpp", l->vpp);
    whole(r, "cp", l->cp);
    whole(r, "ep", l->ep);
    whole(r, "dp", l->dp);
    whole(r, "sp", l->sequence_parallel);
    whole(r, "zero", l->zero);
    whole(r, "zero_group", l->zero_group);
    text(r, "schedule", pt_schedule_name(l->schedule));
    text(r, "recompute", pt_recompute_name(l->recompute));
    whole(r, "micro_batch", l->micro_batch);
}

static void add_memory(struct planner_record *r, const struct pt_memory *m)
{
    number(r, "mem_allocated_GiB", m->allocated_bytes / PT_GIB);
    number(r, "mem_reserved_GiB", m->reserved_bytes / PT_GIB);
    number(r, "mem_device_GiB", m->device_bytes / PT_GIB);
    number(r, "mem_limit_GiB", m->limit_bytes / PT_GIB);
    number(r, "host_GiB", m->host_bytes / PT_GIB);
    number(r, "host_limit_GiB", m->host_limit_bytes / PT_GIB);
}

static void add_step(struct planner_record *r, const struct pt_plan *plan)
{
    const struct pt_step *t = &plan->step;
    const struct pt_job *j = &plan->setup.job;
    struct planner_slice slice[PLANNER_N_SLICES];
    double step_tokens = (double)j->global_batch * j->seq;

    number(r, "step_time_s", t->step_s);
    number(r, "tokens_per_s_gpu", t->tokens_per_s_gpu);
    number(r, "tflops_per_gpu", t->model_flops_gpu / 1e12);
    number(r, "mfu_pct", 100 * t->mfu);
    number(r, "hfu_pct", 100 * t->hfu);
    text(r, "flop_convention", plan->causal ? "causal" : "full");
    number(r, "bubble_of_total_pct", 100 * t->bubble_of_total);
    number(r, "bubble_of_ideal_pct", 100 * t->bubble_of_ideal);
    number(r, "train_time_s", t->step_s > 0 ? j->tokens / step_tokens * t->step_s : 0);
    planner_slices(t, slice);
    for (unsigned i = 0; i < PLANNER_N_SLICES; i++)
        number(r, slice[i].key, slice[i].s);
    number(r, "imbalance_s", t->imbalance_s);
    number(r, "tp_bytes", t->tp_bytes);
    number(r, "cp_bytes", t->cp_bytes);
    number(r, "ep_bytes", t->ep_bytes);
    number(r, "pp_bytes", t->pp_bytes);
    number(r, "dp_bytes", t->dp_bytes);
    number(r, "intra_bytes", t->intra_bytes);
    number(r, "inter_bytes", t->inter_bytes);
}

void planner_record_plan(struct planner_record *r, uint32_t rank,
                         const struct pt_plan *plan)
{
    r->n = 0;
    whole(r, "rank", rank);
    text(r, "status", plan->memory.fits ? "ok" : "infeasible");
    text(r, "reason", "");
    add_layout(r, &plan->layout);
    whole(r, "micro_batches", pt_micro_batches(&plan->setup.job, &plan->layout));
    whole(r, "global_batch", plan->setup.job.global_batch);
    whole(r, "recomputed_layers", planner_recomputed_layers(&plan->split));
    number(r, "offload_frac", planner_offload_share(&plan->split));
    add_memory(r, &plan->memory);
    add_step(r, plan);
}

/* The same fields, with what the closest layout would need. No step time: it cannot run.
 */
static void record_shortfall(struct planner_record *r, const struct pt_setup *setup,
                             const struct planner_shortfall *shortfall,
                             const char *reason)
{
    struct pt_plan plan;

    memset(&plan, 0, sizeof(plan));
    plan.setup = *setup;
    plan.layout = shortfall->closest;
    plan.causal = true;
    plan.memory = shortfall->memory; /* borrowed for the numbers alone */
    if (plan.memory.stages == 0) {
        plan.memory.device_bytes = shortfall->needed_bytes;
        plan.memory.limit_bytes = shortfall->usable_bytes;
    }
    planner_record_plan(r, 0, &plan);
    r->field[1].text = "infeasible";
    r->field[2].text = reason;
}

void planner_put_header(FILE *f, const struct planner_record *r)
{
    for (unsigned i = 0; i < r->n; i++)
        pt_csv_put(f, r->field[i].key, i == 0);
    pt_csv_put_end(f);
}

void planner_put_row(FILE *f, const struct planner_record *r)
{
    char buf[40];

    for (unsigned i = 0; i < r->n; i++) {
        const struct planner_field *field = &r->field[i];

        snprintf(buf, sizeof(buf), field->whole ? "%.0f" : "%.9g", field->number);
        pt_csv_put(f, field->text != NULL ? field->text : buf, i == 0);
    }
    pt_csv_put_end(f);
}

static enum pt_status written(FILE *f, struct pt_error *err)
{
    if (ferror(f) || fflush(f) != 0)
        return pt_fail(err, PT_SYSTEM, NULL, 0, "cannot write the output");
    return PT_OK;
}

enum pt_status planner_write_csv(FILE *f, const struct pt_setup *setup,
                                 const struct planner_result *result, const char *reason,
                                 struct pt_error *err)
{
    struct planner_record record;

    if (result->n == 0) {
        record_shortfall(&record, setup, &result->shortfall, reason);
        planner_put_header(f, &record);
        planner_put_row(f, &record);
    }
    for (uint32_t i = 0; i < result->n; i++) {
        planner_record_plan(&record, i + 1, &result->plan[i]);
        if (i == 0)
            planner_put_header(f, &record);
        planner_put_row(f, &record);
    }
    return written(f, err);
}

static void put_record(struct pt_json *array, const struct planner_record *r)
{
    struct pt_json *o = pt_json_add_object(array, NULL);

    for (unsigned i = 0; i < r->n; i++) {
        const struct planner_field *field = &r->field[i];

        if (field->text != NULL)
            pt_json_put_string(o, field->key, field->text);
        else if (field->whole)
            pt_json_put_u64(o, field->key, (uint64_t)field->number);
        else
            pt_json_put_number(o, field->key, field->number);
    }
}

static void put_stats(struct pt_json *doc, const struct planner_stats *s)
{
    struct pt_json *o = pt_json_add_object(doc, "search");

    pt_json_put_u64(o, "seen", s->seen);
    pt_json_put_u64(o, "invalid", s->invalid);
    pt_json_put_u64(o, "no_memory", s->no_memory);
    pt_json_put_u64(o, "bounded", s->bounded);
    pt_json_put_u64(o, "solved", s->solved);
    if (isfinite(s->bound_s)) /* nothing was left to bound when nothing fits */
        pt_json_put_number(o, "bound_s", s->bound_s);
    pt_json_put_number(o, "gap", s->gap);
    pt_json_put_bool(o, "time_limit", s->time_limit);
}

enum pt_status planner_write_json(FILE *f, const struct pt_setup *setup,
                                  const struct planner_result *result, const char *reason,
                                  struct pt_error *err)
{
    struct pt_json *doc = pt_json_new_object(), *plans;
    struct planner_record record;
    enum pt_status st;

    if (doc == NULL)
        return pt_fail_memory(err);
    pt_json_put_string(doc, "status", result->n > 0 ? "ok" : "infeasible");
    pt_json_put_string(doc, "reason", result->n > 0 ? "" : reason);
    pt_json_put_string(doc, "generator", PACKAGE_STRING);
    pt_json_put_string(doc, "model", setup->model.name);
    pt_json_put_string(doc, "gpu", setup->cluster.gpu.key);
    put_stats(doc, &result->stats);
    plans = pt_json_add_array(doc, "plans");
    for (uint32_t i = 0; i < result->n; i++) {
        planner_record_plan(&record, i + 1, &result->plan[i]);
        put_record(plans, &record);
    }
    if (result->n == 0) {
        record_shortfall(&record, setup, &result->shortfall, reason);
        put_record(plans, &record);
    }
    st = pt_json_write(doc, f, "standard output", err);
    pt_json_free(doc);
    return st;
}
