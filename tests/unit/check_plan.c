/* plan.json: what is written is read back, byte for byte; what is wrong is refused in a
 * sentence that names the place. */
#include "config.h"

#include <check.h>
#include <dirent.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libpt/file.h"
#include "libpt/plan.h"
#include "tests/unit/unit.h"

static struct pt_plan plan;
static char path[64];

/* A small plan by hand: 9 layers on 2 stages of 2 chunks, one recomputed, one stage
 * offloaded. */
static void setup(void)
{
    struct pt_setup *s = &plan.setup;
    static const unsigned layers[4] = { 3, 2, 2, 2 };
    struct pt_error err = PT_ERROR_INIT;

    pt_plan_init(&plan);
    s->model = (struct pt_model){ .name = "tiny",
                                  .source = "by hand",
                                  .layers = 9,
                                  .hidden = 64,
                                  .ffn = 256,
                                  .heads = 4,
                                  .kv_heads = 2,
                                  .head_dim = 16,
                                  .vocab = 1000,
                                  .max_seq = 128,
                                  .gated = true,
                                  .rmsnorm = true };
    snprintf(s->cluster.gpu.key, sizeof(s->cluster.gpu.key), "TEST-80");
    s->cluster.gpu.mem_bytes = 80e9;
    s->cluster.gpu.peak_flops[PT_BF16] = 1e15 / 3;
    s->cluster.gpus = 4;
    s->cluster.domain_gpus = s->cluster.node_gpus = 4;
    s->job = (struct pt_job){ .seq = 128,
                              .global_batch = 8,
                              .precision = PT_BF16,
                              .seed = 4503599627370497u,
                              .vocab_unit = 128 };
    s->job.dtypes = (struct pt_dtypes){ 2, 2, 4, 8, 2 };
    snprintf(plan.stack_key, sizeof(plan.stack_key), "ptexec");
    snprintf(plan.calibration, sizeof(plan.calibration), "default");
    plan.layout = (struct pt_layout){ .tp = 1,
                                      .pp = 2,
                                      .vpp = 2,
                                      .uneven_chunks = true,
                                      .cp = 1,
                                      .ep = 1,
                                      .dp = 2,
                                      .zero = 1,
                                      .recompute = PT_RECOMPUTE_FULL,
                                      .schedule = PT_SCHEDULE_INTERLEAVED,
                                      .micro_batch = 1 };
    ck_assert_int_eq(pt_split_init(&plan.split, 2, 2, &err), PT_OK);
    for (unsigned i = 0; i < 4; i++)
        plan.split.chunk[i].layers[PT_LAYER_DENSE] = (uint16_t)layers[i];
    plan.split.chunk[0].recomputed[PT_LAYER_DENSE] = 1;
    plan.split.offload_frac[0] = 0.1 + 0.2; /* needs all 17 digits */
    plan.split.offload_frac[1] = 0;
    plan.step.step_s = 1.0 / 3;
    plan.step.bubble_of_ideal = 0.11;
    plan.memory.stages = 2;
    plan.memory.stage = calloc(2, sizeof(*plan.memory.stage));
    plan.memory.device_bytes = 32e9;
    plan.memory.worst_stage = 1;
    plan.memory.stage[1].part_bytes[PT_MEM_CONTEXT] = 5e8;
    plan.memory.stage[1].worst_phase = PT_PHASE_FIRST_STEP;
    plan.memory.fits = true;
    snprintf(path, sizeof(path), "check_plan.%ld.json", (long)getpid());
}

static void teardown(void)
{
    pt_plan_fini(&plan);
    (void)unlink(path);
}

static char *write_and_load(struct pt_plan *p, size_t *n)
{
    struct pt_error err = PT_ERROR_INIT;
    char *text = NULL;

    ck_assert_msg(pt_plan_write(path, p, &err) == PT_OK, "%s", err.text);
    ck_assert_int_eq(pt_file_read(path, 1 << 20, &text, n, &err), PT_OK);
    return text;
}

START_TEST(round_trip)
{
    struct pt_error err = PT_ERROR_INIT;
    struct pt_plan again;
    size_t n = 0, m = 0;
    char *first = write_and_load(&plan, &n), *second, *warned = NULL;
    size_t n_warned = 0;
    FILE *warnings = open_memstream(&warned, &n_warned);

    ck_assert_msg(pt_plan_read(path, &again, warnings, &err) == PT_OK, "%s: %s",
                  err.where, err.text);
    fclose(warnings);
    ck_assert_str_eq(warned, "");
    free(warned);
    ck_assert_str_eq(again.hash, plan.hash);
    ck_assert_uint_eq(again.setup.job.seed, 4503599627370497u);
    ck_assert(again.split.offload_frac[0] == plan.split.offload_frac[0]);
    ck_assert(again.step.step_s == plan.step.step_s);
    ck_assert_int_eq(again.memory.stage[1].worst_phase, PT_PHASE_FIRST_STEP);
    second = write_and_load(&again, &m);
    ck_assert_uint_eq(n, m);
    ck_assert(memcmp(first, second, n) == 0);
    free(first);
    free(second);
    pt_plan_fini(&again);
}
END_TEST

/* Each struct that a table lists: who adds a member must add its row in plan_fields.c,
 * and then the size here. */
START_TEST(no_member_forgotten)
{
#if defined(__x86_64__) && defined(__linux__)
    ck_assert_uint_eq(sizeof(struct pt_model), 336);
    ck_assert_uint_eq(sizeof(struct pt_gpu), 288);
    ck_assert_uint_eq(sizeof(struct pt_link), 32 + 64 + 6 * 8);
    ck_assert_uint_eq(sizeof(struct pt_job), 88);
    ck_assert_uint_eq(sizeof(struct pt_layout), 56);
    ck_assert_uint_eq(sizeof(struct pt_step), 28 * 8);
    ck_assert_uint_eq(sizeof(struct pt_stage_memory),
                      (PT_N_MEMORY_PARTS + 5 + 1 + PT_N_PHASES) * 8);
#endif
}
END_TEST

/* Text `from` of the written plan becomes `to`; the reader must fail, naming `where` and
 * `says`. */
static const struct {
    const char *from, *to, *where, *says;
} bad[] = {
    { "\"version\": 1", "\"version\": 2", "", "version: 2" },
    { "\"version\": 1", "\"version\": 0", "version", "not within" },
    { "\"version\": 1", "\"version\": \"1\"", "version", "is a string" },
    { "\"requires\": []", "\"requires\": [\"moe-3d\"]", "requires[0]", "moe-3d" },
    { "\"requires\": [],", "", "requires", "missing" },
    { "\"layers\": 9", "\"layers\": 0", "model.layers", "not within" },
    { "\"layers\": 9", "\"layers\": 8", "stages",
      "9 dense layers in all, but the model has 8" },
    { "\"layers\": 9", "\"layers\": 9.5", "model.layers", "whole" },
    { "\"kv_heads\": 2", "\"kv_heads\": 3", "", "model: " },
    { "\"dense\": 3", "\"dense\": 11", "stages[0].chunks[0].layers.dense",
      "11 exceeds the model's 9" },
    { "\"dense\": 1", "\"dense\": 4", "stages[0].chunks[0].recomputed.dense",
      "4 exceeds the chunk's 3" },
    { "\"tp\": 1,", "\"tp\": 3,", "", "layout: " },
    { "\"pp\": 2", "\"pp\": 5000", "layout.pp", "not within" },
    { "\"zero\": 1", "\"zero\": 4", "layout.zero", "not within" },
    { "\"schedule\": \"interleaved\"", "\"schedule\": \"magic\"", "layout.schedule",
      "'magic' is not known; it is one of" },
    { "tp-cp-ep-dp-pp", "pp-dp-tp", "", "rank_order: 'pp-dp-tp'" },
    { "\"offload_frac\": 0.3", "\"offload_frac\": 1.3", "stages[0].offload_frac",
      "not within" },
    { "\"name\": \"tiny\"",
      "\"name\": \"0123456789012345678901234567890123456789012345678901234567890123\"",
      "model.name", "at most 63" },
    { "\"worst_stage\": 1", "\"worst_stage\": 2", "predictions.memory.stages",
      "but layout.pp is 2" },
    { "\"gated\": true", "\"gated\": 1", "model.gated", "true or false" },
};

START_TEST(refuses)
{
    struct pt_error err = PT_ERROR_INIT;
    struct pt_plan again;
    size_t n = 0;
    char *text = write_and_load(&plan, &n), *edited = malloc(n + 4096), *at;
    size_t from = strlen(bad[_i].from), to = strlen(bad[_i].to);

    at = strstr(text, bad[_i].from);
    ck_assert_msg(at != NULL, "no %s in the file", bad[_i].from);
    memcpy(edited, text, (size_t)(at - text));
    memcpy(edited + (at - text), bad[_i].to, to);
    memcpy(edited + (at - text) + to, at + from, n - (size_t)(at - text) - from + 1);
    ck_assert_int_eq(pt_plan_parse("p.json", edited, strlen(edited), &again, NULL, &err),
                     PT_INPUT);
    ck_assert_msg(strstr(err.where, bad[_i].where) != NULL, "%s: '%s'", bad[_i].to,
                  err.where);
    ck_assert_msg(strstr(err.text, bad[_i].says) != NULL, "%s: '%s'", bad[_i].to,
                  err.text);
    free(edited);
    free(text);
}
END_TEST

/* An edit that stays legal is read, but its predictions are not believed; so is an
 * unknown key. */
START_TEST(edited)
{
    struct pt_error err = PT_ERROR_INIT;
    struct pt_plan again;
    size_t n = 0, n_warned = 0;
    char *text = write_and_load(&plan, &n), *at = strstr(text, "\"seq\": 128"),
         *warned = NULL;
    FILE *warnings = open_memstream(&warned, &n_warned);

    memcpy(at, "\"seq\": 256", 10);
    at = strstr(text, "\"generator\"");
    memcpy(at, "\"Generator\"", 11);
    ck_assert_int_eq(pt_plan_parse("p.json", text, n, &again, warnings, &err), PT_OK);
    fclose(warnings);
    ck_assert_msg(strstr(warned, "the key 'Generator' is not known") != NULL, "%s",
                  warned);
    ck_assert_msg(strstr(warned, "was edited") != NULL, "%s", warned);
    ck_assert(again.step.step_s == 0 && again.memory.stage == NULL);
    ck_assert_str_ne(again.hash, plan.hash);
    free(warned);
    free(text);
    pt_plan_fini(&again);
}
END_TEST

START_TEST(replaces_atomically)
{
    struct pt_error err = PT_ERROR_INIT;
    size_t n = 0;
    char *text;

    ck_assert_int_eq(pt_plan_write("/dev/full", &plan, &err), PT_SYSTEM);
    err = (struct pt_error)PT_ERROR_INIT;
    ck_assert_int_eq(pt_plan_write("no/such/folder/p.json", &plan, &err), PT_SYSTEM);
    ck_assert_str_eq(err.where, "no/such/folder/p.json");
    text = write_and_load(&plan, &n);
    free(text);
    /* A failure leaves the old file and no temporary one. */
    plan.step.step_s = 1.0 / 0.0;
    err = (struct pt_error)PT_ERROR_INIT;
    ck_assert_int_eq(pt_plan_write(path, &plan, &err), PT_BUG);
    plan.step.step_s = 1;
    ck_assert_int_eq(access(path, R_OK), 0);
    snprintf(path + strlen(path), 32, ".tmp.%ld", (long)getpid());
    ck_assert_int_ne(access(path, F_OK), 0);
    path[strlen(path) - strlen(strstr(path, ".tmp."))] = '\0';
}
END_TEST

/* Plans that earlier versions wrote are never edited: they must stay readable, be
 * recognised as unedited, and give predictions again. */
START_TEST(old_plans)
{
    char folder[4096], file[4400];
    const char *top = getenv("top_srcdir");
    struct dirent *e;
    unsigned n = 0;
    DIR *d;

    snprintf(folder, sizeof(folder), "%s/tests/data/plans", top != NULL ? top : ".");
    ck_assert_msg((d = opendir(folder)) != NULL, "no %s", folder);
    while ((e = readdir(d)) != NULL) {
        struct pt_error err = PT_ERROR_INIT;
        struct pt_plan old;
        char *warned = NULL;
        size_t n_warned = 0;
        FILE *warnings;

        if (strstr(e->d_name, ".json") == NULL)
            continue;
        snprintf(file, sizeof(file), "%s/%s", folder, e->d_name);
        warnings = open_memstream(&warned, &n_warned);
        ck_assert_msg(pt_plan_read(file, &old, warnings, &err) == PT_OK, "%s: %s",
                      err.where, err.text);
        fclose(warnings);
        ck_assert_msg(strstr(warned, "edited") == NULL, "%s", warned);
        ck_assert(old.step.step_s > 0 && old.memory.fits);
        ck_assert_int_eq(pt_plan_predict(&old, &err), PT_OK);
        ck_assert(old.step.step_s > 0 && old.memory.stages == old.layout.pp);
        free(warned);
        pt_plan_fini(&old);
        n++;
    }
    closedir(d);
    ck_assert_uint_ge(n, 2);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("plan");
    TCase *tc = tcase_create("all");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, round_trip);
    tcase_add_test(tc, no_member_forgotten);
    tcase_add_loop_test(tc, refuses, 0, N_ROWS(bad));
    tcase_add_test(tc, edited);
    tcase_add_test(tc, replaces_atomically);
    tcase_add_test(tc, old_plans);
    suite_add_tcase(suite, tc);
    return unit_run(suite);
}
