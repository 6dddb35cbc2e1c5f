#include "config.h"

#include <string.h>

#include "libpt/plan_fields.h"
#include "libpt/plan_parts.h"

/* Nothing beyond version 1 has been added yet, so no feature can be required of its
 * readers. */
static enum pt_status check_version(const struct pt_json *doc, struct pt_error *err)
{
    const struct pt_json *requires = NULL, *item = NULL;
    const char *feature = "";
    uint64_t version = 0;
    enum pt_status st;

    if ((st = pt_json_u64(doc, "version", 1, UINT32_MAX, &version, err)))
        return st;
    if (version > PT_PLAN_VERSION)
        return pt_fail(err, PT_INPUT, pt_json_where(doc), 0,
                       "version: %llu, but this program reads versions up to %d",
                       (unsigned long long)version, PT_PLAN_VERSION);
    if ((st = pt_json_get(doc, "requires", &requires, err)))
        return st;
    if (pt_json_length(requires) == 0)
        return PT_OK;
    if ((st = pt_json_at(requires, 0, &item, err)) ||
        (st = pt_json_string(item, NULL, &feature, err)))
        return st;
    return pt_fail(err, PT_INPUT, pt_json_where(item), 0,
                   "the plan needs '%.60s', which this program does not know; a newer "
                   "one does",
                   feature);
}

static enum pt_status get_table(const struct pt_json *parent, const char *key,
                                const struct plan_table *table, void *base,
                                const char *const *others, const struct pt_json **object,
                                FILE *warnings, struct pt_error *err)
{
    enum pt_status st = pt_json_get(parent, key, object, err);

    if (st != PT_OK)
        return st;
    plan_warn_unknown(*object, table, others, warnings);
    return plan_fields_read(*object, table, base, warnings, err);
}

static enum pt_status get_text(const struct pt_json *object, const char *key, char *to,
                               size_t size, struct pt_error *err)
{
    const char *text = "";
    enum pt_status st = pt_json_string(object, key, &text, err);
    char where[256];

    if (st != PT_OK)
        return st;
    if (strlen(text) >= size)
        return pt_fail(err, PT_INPUT, plan_where(where, sizeof(where), object, key), 0,
                       "%zu characters, but at most %zu are kept", strlen(text),
                       size - 1);
    memcpy(to, text, strlen(text) + 1);
    return PT_OK;
}

/* A constant that the file lacks keeps the datasheet value, so those come first. */
static void constants_init(struct pt_setup *setup)
{
#define X(name, dflt, lo, hi, unit, help) setup->stack.name = dflt;
    PT_STACK_CONSTANTS(X)
#undef X
#define X(name, dflt, lo, hi, unit, help) setup->device.name = dflt;
    PT_DEVICE_CONSTANTS(X)
#undef X
#define X(name, dflt, lo, hi, unit, help) setup->network.name = dflt;
    PT_NETWORK_CONSTANTS(X)
#undef X
}

static enum pt_status get_stack(const struct pt_json *doc, struct pt_plan *plan,
                                FILE *warnings, struct pt_error *err)
{
    static const char *const keys[] = { "key",    "calibration", "constants",
                                        "device", "network",     NULL };
    static const char *const key[] = { "key", NULL };
    struct pt_setup *setup = &plan->setup;
    const struct pt_json *o = NULL, *k = NULL;
    enum pt_status st;

    constants_init(setup);
    if ((st = pt_json_get(doc, "stack", &o, err)))
        return st;
    plan_warn_unknown(o, NULL, keys, warnings);
    if ((st = get_text(o, "key", plan->stack_key, sizeof(plan->stack_key), err)) ||
        (st = get_text(o, "calibration", plan->calibration, sizeof(plan->calibration),
                       err)) ||
        (st = get_table(o, "constants", &plan_stack, &setup->stack, key, &k, warnings,
                        err)) ||
        (st = get_text(k, "key", setup->stack.key, sizeof(setup->stack.key), err)) ||
        (st = get_table(o, "device", &plan_device, &setup->device, key, &k, warnings,
                        err)) ||
        (st = get_text(k, "key", setup->device.key, sizeof(setup->device.key), err)) ||
        (st = get_table(o, "network", &plan_network, &setup->network, key, &k, warnings,
                        err)))
        return st;
    return get_text(k, "key", setup->network.key, sizeof(setup->network.key), err);
}

static enum pt_status get_inputs(const struct pt_json *doc, struct pt_plan *plan,
                                 FILE *warnings, struct pt_error *err)
{
    static const char *const gpu_link[] = { "gpu", "link", NULL };
    static const char *const bytes[] = { "bytes_per_param", NULL };
    struct pt_setup *setup = &plan->setup;
    const struct pt_json *o = NULL, *k = NULL;
    enum pt_status st;

    if ((st = get_table(doc, "model", &plan_model, &setup->model, NULL, &o, warnings,
                        err)) ||
        (st = get_table(doc, "hardware", &plan_cluster, &setup->cluster, gpu_link, &o,
                        warnings, err)) ||
        (st = get_table(o, "gpu", &plan_gpu, &setup->cluster.gpu, NULL, &k, warnings,
                        err)) ||
        (st = get_table(o, "link", &plan_link, &setup->cluster.link, NULL, &k, warnings,
                        err)) ||
        (st = get_table(doc, "job", &plan_job, &setup->job, bytes, &o, warnings, err)) ||
        (st = get_table(o, "bytes_per_param", &plan_dtypes, &setup->job.dtypes, NULL, &k,
                        warnings, err)))
        return st;
    return get_stack(doc, plan, warnings, err);
}

/* The checks of meaning know nothing of files; their sentence gets the place in front. */
static enum pt_status judge(const struct pt_plan *plan, const struct pt_json *doc,
                            struct pt_error *err)
{
    struct pt_error why = PT_ERROR_INIT;
    const char *part = "model";
    enum pt_status st = pt_model_check(&plan->setup.model, &why);

    if (st == PT_OK) {
        part = "layout";
        st = pt_layout_check(&plan->setup.model, &plan->setup.job, &plan->layout,
                             plan->setup.cluster.gpus, &why);
    }
    if (st == PT_OK)
        return PT_OK;
    return pt_fail(err, st == PT_USAGE ? PT_INPUT : st, pt_json_where(doc), 0, "%s: %s",
                   part, why.text);
}

static enum pt_status get_decisions(const struct pt_json *doc, struct pt_plan *plan,
                                    FILE *warnings, struct pt_error *err)
{
    const struct pt_json *o = NULL;
    const char *order = "";
    enum pt_status st;

    if ((st = get_table(doc, "layout", &plan_layout, &plan->layout, NULL, &o, warnings,
                        err)) ||
        (st = judge(plan, doc, err)) ||
        (st = pt_json_string(doc, "rank_order", &order, err)))
        return st;
    if (strcmp(order, PLAN_RANK_ORDER) != 0)
        return pt_fail(err, PT_INPUT, pt_json_where(doc), 0,
                       "rank_order: '%.40s' is not known; version %d has only "
                       "'" PLAN_RANK_ORDER "'",
                       order, PT_PLAN_VERSION);
    if ((uint64_t)plan->layout.pp * plan->layout.vpp > PT_MAX_CHUNKS)
        return pt_fail(err, PT_INPUT, pt_json_where(o), 0,
                       "pp %u x vpp %u is more than %d chunks", plan->layout.pp,
                       plan->layout.vpp, PT_MAX_CHUNKS);
    return plan_get_stages(doc, plan, warnings, err);
}

/* An edited plan is a legal way to try something; its old predictions are not true of it.
 */
static enum pt_status check_hash(const struct pt_json *doc, struct pt_plan *plan,
                                 FILE *warnings, struct pt_error *err)
{
    const char *written = "";
    enum pt_status st;

    if ((st = pt_json_string(doc, "hash", &written, err)) ||
        (st = plan_hash(doc, plan->hash, err)))
        return st;
    if (!strcmp(written, plan->hash))
        return PT_OK;
    if (warnings != NULL)
        fprintf(
            warnings,
            "warning: %s: hash: the file was edited after it was written (its content "
            "is %.12s...); its predictions are not used\n",
            pt_json_where(doc), plan->hash);
    memset(&plan->step, 0, sizeof(plan->step));
    pt_memory_fini(&plan->memory);
    memset(&plan->memory, 0, sizeof(plan->memory));
    return PT_OK;
}

static enum pt_status parse(const struct pt_json *doc, struct pt_plan *plan,
                            FILE *warnings, struct pt_error *err)
{
    static const char *const keys[] = {
        "version", "requires", "generator",  "hash",   "model",       "hardware", "job",
        "stack",   "layout",   "rank_order", "stages", "predictions", NULL
    };
    enum pt_status st = check_version(doc, err);

    if (st != PT_OK)
        return st;
    plan_warn_unknown(doc, NULL, keys, warnings);
    if ((st = get_inputs(doc, plan, warnings, err)) ||
        (st = get_decisions(doc, plan, warnings, err)) ||
        (st = plan_get_predictions(doc, plan, warnings, err)))
        return st;
    return check_hash(doc, plan, warnings, err);
}

/* Takes over doc, which may be NULL after a failure `st`. */
static enum pt_status finish(enum pt_status st, struct pt_json *doc, struct pt_plan *plan,
                             FILE *warnings, struct pt_error *err)
{
    pt_plan_init(plan);
    if (st == PT_OK)
        st = parse(doc, plan, warnings, err);
    if (st != PT_OK)
        pt_plan_fini(plan);
    pt_json_free(doc);
    return st;
}

enum pt_status pt_plan_read(const char *path, struct pt_plan *plan, FILE *warnings,
                            struct pt_error *err)
{
    struct pt_json *doc = NULL;
    enum pt_status st = pt_json_read(path, &doc, err);

    return finish(st, doc, plan, warnings, err);
}

enum pt_status pt_plan_parse(const char *where, const char *text, size_t len,
                             struct pt_plan *plan, FILE *warnings, struct pt_error *err)
{
    struct pt_json *doc = NULL;
    enum pt_status st = pt_json_parse(where, text, len, &doc, err);

    return finish(st, doc, plan, warnings, err);
}
