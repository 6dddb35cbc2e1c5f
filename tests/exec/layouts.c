/* Random layouts train the same model: to the bit against the same tp, dp and micro-batch
 * without pipeline, recomputation and offload (loss, gradient norm, final weights), and
 * within 1e-5 against one rank (loss). PT_CASES=N draws N layouts (12 if not set),
 * PT_SEED=N only that one. */
#include "config.h"

#include <math.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "libpt/csv.h"
#include "tests/exec/make_plan.h"
#include "tests/prop/prop.h"

#define STEPS 10

struct draw {
    char words[16][32]; /* model and job, then layout */
    int n, n_model;
    bool uneven;
    unsigned recomputed;
    double offload;
};

static char dir[] = "layouts.XXXXXX";

static void word(struct draw *d, const char *key, uint64_t value)
{
    snprintf(d->words[d->n++], sizeof(d->words[0]), "%s=%" PRIu64, key, value);
}

static uint64_t pick(struct prop_rng *rng, const unsigned *from, size_t n)
{
    return from[prop_below(rng, n)];
}
#define PICK(...)                                                                        \
    pick(rng, (const unsigned[]){ __VA_ARGS__ },                                         \
         sizeof((const unsigned[]){ __VA_ARGS__ }) / sizeof(unsigned))

static void draw_words(struct prop_rng *rng, struct draw *d)
{
    static const char *const schedules[] = { "1f1b",        "gpipe", "zb-h1", "zb-h2",
                                             "interleaved", "zb-v",  "v-half" };
    static const char *const modes[] = { "none", "none", "full", "selective", "half" };
    uint64_t pp, dp = PICK(1, 1, 2, 2, 4);

    memset(d, 0, sizeof(*d));
    if (prop_below(rng, 2))
        snprintf(d->words[d->n++], sizeof(d->words[0]), "style=llama");
    word(d, "tied", prop_below(rng, 2));
    word(d, "layers", 2 + prop_below(rng, 5));
    word(d, "hidden", PICK(32, 40, 64));
    word(d, "vocab", PICK(256, 260, 301));
    word(d, "seq", PICK(16, 32));
    word(d, "gbs", 8);
    d->n_model = d->n;
    word(d, "tp", PICK(1, 1, 2));
    word(d, "dp", dp);
    word(d, "mb", PICK(1, 1, 2));
    word(d, "sp", prop_below(rng, 2));
    word(d, "zero", dp > 1 ? prop_below(rng, 4) : 0);
    pp = PICK(1, 2, 2, 3, 4);
    word(d, "pp", pp);
    if (pp > 1) {
        const char *s = schedules[prop_below(rng, 7)];

        snprintf(d->words[d->n++], sizeof(d->words[0]), "schedule=%s", s);
        word(d, "vpp", !strcmp(s, "interleaved") ? 2 : 1);
    }
    snprintf(d->words[d->n++], sizeof(d->words[0]), "recompute=%s",
             modes[prop_below(rng, 5)]);
    d->uneven = prop_below(rng, 2);
    d->recomputed = prop_below(rng, 3) == 0;
    d->offload = prop_below(rng, 2) ? 0 : prop_unit(rng);
}

/* keep: words of the layout that stay: all, those that fix the bits, none. */
enum keep { ALL, SAME_BITS, MODEL };

static bool kept(const struct draw *d, int i, enum keep keep)
{
    static const char *const fixed[] = { "tp=", "dp=", "mb=", "sp=", "zero=" };

    if (i < d->n_model || keep == ALL)
        return true;
    for (size_t k = 0; k < 5 && keep == SAME_BITS; k++)
        if (!strncmp(d->words[i], fixed[k], strlen(fixed[k])))
            return true;
    return false;
}

static bool write_plan(const struct draw *d, enum keep keep, const char *name,
                       uint32_t *ranks)
{
    struct pt_error err = PT_ERROR_INIT;
    struct pt_plan plan;
    char path[64];
    bool ok = true;
    enum pt_status st;

    make_plan_default(&plan);
    for (int i = 0; i < d->n && ok; i++)
        ok = !kept(d, i, keep) || make_plan_set(&plan, d->words[i]);
    st =
        make_plan_finish(&plan, keep == ALL && d->uneven, keep == ALL ? d->recomputed : 0,
                         keep == ALL ? d->offload : 0, &err);
    *ranks = plan.layout.tp * plan.layout.pp * plan.layout.dp;
    snprintf(path, sizeof(path), "%s/%s.json", dir, name);
    if (ok && st == PT_OK && *ranks <= 8)
        st = pt_plan_write(path, &plan, &err);
    ok = ok && st == PT_OK && *ranks <= 8;
    pt_plan_fini(&plan);
    return ok;
}

static int run(const char *name)
{
    char command[512];

    snprintf(command, sizeof(command),
             "./ptexec %s/%s.json --data text:%s/text --steps %d --seed 5 -q --metrics "
             "%s/%s.csv --dump %s/%s --eval-every 5 --eval-data text:%s/text "
             "--eval-batches 1 2>%s/err",
             dir, name, dir, STEPS, dir, name, dir, name, dir, dir);
    return system(command);
}

/* Largest relative difference of a column of two runs; HUGE_VAL when it cannot be read.
 */
static double difference(const char *a, const char *b, const char *column)
{
    struct pt_csv *csv[2] = { NULL, NULL };
    const char *names[] = { a, b };
    double worst = 0;

    for (int i = 0; i < 2; i++) {
        char path[64];

        snprintf(path, sizeof(path), "%s/%s.csv", dir, names[i]);
        if (pt_csv_read(path, &csv[i], NULL) != PT_OK || pt_csv_rows(csv[i]) != STEPS)
            worst = HUGE_VAL;
    }
    for (size_t r = 0; r < STEPS && worst < HUGE_VAL; r++) {
        double v[2];

        for (int i = 0; i < 2; i++)
            if (pt_csv_number(csv[i], r, pt_csv_column(csv[i], column), HUGE_VAL, &v[i],
                              NULL))
                v[i] = HUGE_VAL;
        if (v[0] != v[1]) /* both missing: no evaluation at this step */
            worst = fmax(worst, fabs(v[0] - v[1]) / fabs(v[1]));
    }
    pt_csv_free(csv[0]);
    pt_csv_free(csv[1]);
    return worst;
}

static void one_layout(struct prop_rng *rng)
{
    struct draw d;
    char command[256], text[600] = "";
    uint32_t ranks;

    do
        draw_words(rng, &d);
    while (!write_plan(&d, ALL, "all", &ranks));
    for (int i = 0; i < d.n; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s ", d.words[i]);
    REQUIRE(write_plan(&d, SAME_BITS, "same", &ranks) &&
                write_plan(&d, MODEL, "one", &ranks),
            "%s", text);
    snprintf(command, sizeof(command), "rm -rf %s/all %s/same %s/one", dir, dir, dir);
    REQUIRE(system(command) == 0, "%s", command);
    REQUIRE(run("all") == 0 && run("same") == 0 && run("one") == 0, "%s (%s/err)", text,
            dir);
    REQUIRE(difference("all", "same", "loss") == 0,
            "%suneven %d recomputed %u offload %g", text, d.uneven, d.recomputed,
            d.offload);
    REQUIRE(difference("all", "same", "grad_norm") == 0, "%s", text);
    REQUIRE(difference("all", "same", "eval_loss") == 0, "%s", text);
    snprintf(command, sizeof(command), "diff -r %s/all/final %s/same/final", dir, dir);
    REQUIRE(system(command) == 0, "final weights differ: %s", text);
    REQUIRE(difference("all", "one", "loss") <= 1e-5, "%s%g", text,
            difference("all", "one", "loss"));
}

int main(void)
{
    const struct prop props[] = { { "layouts train the same model", one_layout } };
    const char *cases = getenv("PT_CASES");
    char path[64];
    uint64_t x = 1;
    FILE *f;
    int st;

    if (access("ptexec", X_OK) != 0 || mkdtemp(dir) == NULL)
        return 77;
    snprintf(path, sizeof(path), "%s/text", dir);
    f = fopen(path, "w");
    for (int i = 0; f != NULL && i < 40000;
         i++) { /* words of a few letters, in no order */
        x = x * 6364136223846793005u + 1442695040888963407u;
        fputc((x >> 60) < 3 ? ' ' : (int)('a' + (x >> 40) % 7), f);
    }
    if (f == NULL || fclose(f) != 0)
        return EXIT_FAILURE;
    st = prop_run(props, 1, cases ? strtoull(cases, NULL, 10) : 12);
    snprintf(path, sizeof(path), "rm -rf %s", dir);
    return system(path) == 0 ? st : EXIT_FAILURE;
}
