#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "libpt/outfile.h"
#include "libpt/plan.h"
#include "libpt/plan_fields.h"
#include "libpt/plan_parts.h"

void pt_plan_init(struct pt_plan *plan)
{
    memset(plan, 0, sizeof(*plan));
    plan->causal = true;
}

void pt_plan_fini(struct pt_plan *plan)
{
    pt_split_fini(&plan->split);
    pt_memory_fini(&plan->memory);
    pt_plan_init(plan);
}

/* What the hash covers is what the file holds under these keys, in this order. */
static void put_inputs(struct pt_json *doc, const struct pt_plan *plan)
{
    const struct pt_setup *setup = &plan->setup;
    struct pt_json *o, *k;

    plan_fields_write(pt_json_add_object(doc, "model"), &plan_model, &setup->model);
    o = pt_json_add_object(doc, "hardware");
    plan_fields_write(o, &plan_cluster, &setup->cluster);
    plan_fields_write(pt_json_add_object(o, "gpu"), &plan_gpu, &setup->cluster.gpu);
    plan_fields_write(pt_json_add_object(o, "link"), &plan_link, &setup->cluster.link);
    o = pt_json_add_object(doc, "job");
    plan_fields_write(o, &plan_job, &setup->job);
    plan_fields_write(pt_json_add_object(o, "bytes_per_param"), &plan_dtypes,
                      &setup->job.dtypes);
    o = pt_json_add_object(doc, "stack");
    pt_json_put_string(o, "key", plan->stack_key);
    pt_json_put_string(o, "calibration", plan->calibration);
    k = pt_json_add_object(o, "constants");
    pt_json_put_string(k, "key", setup->stack.key);
    plan_fields_write(k, &plan_stack, &setup->stack);
    k = pt_json_add_object(o, "device");
    pt_json_put_string(k, "key", setup->device.key);
    plan_fields_write(k, &plan_device, &setup->device);
    k = pt_json_add_object(o, "network");
    pt_json_put_string(k, "key", setup->network.key);
    plan_fields_write(k, &plan_network, &setup->network);
}

static void put_decisions(struct pt_json *doc, const struct pt_plan *plan)
{
    plan_fields_write(pt_json_add_object(doc, "layout"), &plan_layout, &plan->layout);
    pt_json_put_string(doc, "rank_order", PLAN_RANK_ORDER);
    plan_put_stages(pt_json_add_array(doc, "stages"), &plan->split,
                    plan->setup.model.experts > 0);
}

/* Over the document, not over the struct: a reader that knows other constants than the
 * writer still sees whether the file is as it was written. */
enum pt_status plan_hash(const struct pt_json *doc, char hash[65], struct pt_error *err)
{
    static const char *const part[] = { "model", "hardware", "job",
                                        "stack", "layout",   "stages" };
    struct pt_sha256 sha;
    uint8_t digest[32];
    const char *order = "";
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    enum pt_status st = pt_json_string(doc, "rank_order", &order, err);

    if (f == NULL)
        return st != PT_OK ? st : pt_fail_memory(err);
    for (size_t i = 0; st == PT_OK && i < sizeof(part) / sizeof(part[0]); i++) {
        const struct pt_json *value = NULL;

        st = pt_json_get(doc, part[i], &value, err);
        if (st == PT_OK)
            st = pt_json_write(value, f, "plan", err);
    }
    if (fclose(f) != 0 && st == PT_OK)
        st = pt_fail_memory(err);
    if (st == PT_OK) {
        pt_sha256_init(&sha);
        pt_sha256_update(&sha, text, n);
        pt_sha256_update(&sha, order, strlen(order));
        pt_sha256_final(&sha, digest);
        pt_sha256_hex(digest, hash);
    }
    free(text);
    return st;
}

enum pt_status pt_plan_write(const char *path, struct pt_plan *plan, struct pt_error *err)
{
    struct pt_json *doc = NULL, *inputs = NULL;
    struct pt_outfile out;
    enum pt_status st;

    if ((st = pt_outfile_open(path, &out, err)))
        return st;
    doc = pt_json_new_object();
    inputs = pt_json_new_object();
    if (doc == NULL || inputs == NULL) {
        st = pt_fail_memory(err);
        goto out;
    }
    put_inputs(inputs, plan);
    put_decisions(inputs, plan);
    if ((st = plan_hash(inputs, plan->hash, err)))
        goto out;
    pt_json_put_u64(doc, "version", PT_PLAN_VERSION);
    (void)pt_json_add_array(doc, "requires");
    pt_json_put_string(doc, "generator", PACKAGE_STRING);
    pt_json_put_string(doc, "hash", plan->hash);
    put_inputs(doc, plan);
    put_decisions(doc, plan);
    if (plan->step.step_s > 0)
        plan_put_predictions(pt_json_add_object(doc, "predictions"), plan);
    st = pt_json_write(doc, out.f, path, err);
    if (st == PT_OK)
        st = pt_outfile_commit(&out, err);
out:
    pt_json_free(inputs);
    pt_json_free(doc);
    pt_outfile_discard(&out);
    return st;
}
