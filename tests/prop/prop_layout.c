/* Validity: what a refusal offers is valid, the quick and the telling path agree, and
 * whatever is valid can be split. */
#include "config.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "libpt/layout.h"
#include "tests/prop/prop.h"

struct instance {
    struct pt_model model;
    struct pt_job job;
    struct pt_layout layout;
    uint32_t gpus;
};

static uint32_t one_of(struct prop_rng *rng, const uint32_t *values, size_t n)
{
    return values[prop_below(rng, n)];
}
#define ONE_OF(rng, ...)                                                                 \
    one_of(rng, (const uint32_t[]){ __VA_ARGS__ },                                       \
           sizeof((const uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t))

static void draw(struct prop_rng *rng, struct instance *x)
{
    struct pt_model *m = &x->model;
    struct pt_layout *l = &x->layout;

    memset(x, 0, sizeof(*x));
    m->layers = 1 + (uint32_t)prop_below(rng, 40);
    m->heads = ONE_OF(rng, 4, 6, 8, 12, 16, 52, 64);
    m->kv_heads = m->heads / ONE_OF(rng, 1, 1, 2, 4);
    if (m->kv_heads == 0 || m->heads % m->kv_heads != 0)
        m->kv_heads = m->heads;
    m->head_dim = 64;
    m->hidden = m->heads * 64;
    m->ffn = ONE_OF(rng, 4 * 64, 1024, 1000, 11008) * (prop_below(rng, 2) ? 1 : m->heads);
    m->vocab = 1000;
    m->max_seq = 2048;
    if (prop_below(rng, 3) == 0) {
        m->experts = ONE_OF(rng, 4, 6, 8, 64);
        m->topk = 2;
        m->moe_ffn = 256;
        m->dense_layers = (uint32_t)prop_below(rng, m->layers + 1);
        m->shared_ffn = ONE_OF(rng, 0, 0, 256, 300);
    }
    x->job.seq = 1 + (uint32_t)prop_below(rng, 300);
    x->job.global_batch = 1 + (uint32_t)prop_below(rng, 96);
    l->tp = ONE_OF(rng, 1, 1, 2, 3, 4, 8, 13, 16);
    l->pp = ONE_OF(rng, 1, 1, 2, 3, 4, 8, 12);
    l->vpp = ONE_OF(rng, 1, 1, 1, 2, 3, 5);
    l->cp = ONE_OF(rng, 1, 1, 1, 2, 3, 4);
    l->ep = ONE_OF(rng, 1, 1, 2, 3, 4, 8);
    l->dp = ONE_OF(rng, 1, 1, 2, 3, 4, 8);
    l->zero = (uint32_t)prop_below(rng, 4);
    l->zero_group = ONE_OF(rng, 0, 0, 0, 2, 3, 4);
    l->micro_batch = ONE_OF(rng, 1, 1, 2, 3);
    l->sequence_parallel = prop_below(rng, 2) != 0;
    l->replicate_kv = prop_below(rng, 4) == 0;
    l->recompute = (enum pt_recompute)prop_below(rng, PT_N_RECOMPUTES);
    l->schedule = l->pp == 1 && prop_below(rng, 10) > 0
                      ? PT_SCHEDULE_NONE
                      : (enum pt_schedule_kind)prop_below(rng, PT_N_SCHEDULES);
    x->gpus = prop_below(rng, 2) ? 0 : 1 + (uint32_t)prop_below(rng, 200);
}

static enum pt_status check(const struct instance *x, struct pt_error *err)
{
    return pt_layout_check(&x->model, &x->job, &x->layout, x->gpus, err);
}

/* The next number of a list "1, 2, 4 or 8"; 0 at its end. */
static uint32_t next_value(const char **p)
{
    char *end;
    unsigned long v = strtoul(*p, &end, 10);

    if (end == *p)
        return 0;
    while (*end == ',' || *end == ' ')
        end++;
    if (strncmp(end, "or ", 3) == 0)
        end += 3;
    *p = end;
    return (uint32_t)v;
}

/* Where a sentence offers values of what, and which field they are for. */
static const struct offer {
    const char *begins, *offers;
    size_t offset; /* of a uint32_t in struct instance */
} offers[] = {
    { "TP ", "valid TP: ", offsetof(struct instance, layout.tp) },
    { "EP ", "valid EP: ", offsetof(struct instance, layout.ep) },
    { "ZeRO group", "valid: ", offsetof(struct instance, layout.zero_group) },
    { "sequence length", "nearest: ", offsetof(struct instance, job.seq) },
    { "global batch",
      "nearest global batch: ", offsetof(struct instance, job.global_batch) },
    { "global batch", ", or DP ", offsetof(struct instance, layout.dp) },
    { "global batch", ", or micro-batch ",
      offsetof(struct instance, layout.micro_batch) },
    { "interleaving needs", "(global batch ",
      offsetof(struct instance, job.global_batch) },
};

/* With an offered value the layout passes, or fails by another rule. */
static void try_offers(struct prop_rng *rng, const struct instance *x,
                       const char *sentence)
{
    for (size_t i = 0; i < sizeof(offers) / sizeof(offers[0]); i++) {
        const struct offer *o = &offers[i];
        const char *p = strstr(sentence, o->offers);
        uint32_t value;

        if (strncmp(sentence, o->begins, strlen(o->begins)) != 0 || p == NULL)
            continue;
        p += strlen(o->offers);
        while ((value = next_value(&p)) > 0) {
            struct pt_error err = PT_ERROR_INIT;
            struct instance y = *x;
            bool heads = o->offset == offsetof(struct instance, layout.tp) &&
                         strstr(sentence, "heads") != NULL;

            memcpy((char *)&y + o->offset, &value, sizeof(value));
            if (check(&y, &err) == PT_OK)
                continue;
            /* Experts divide among more ranks than there may be: a sentence of its own.
             */
            if (strstr(sentence, " experts; valid EP") != NULL &&
                strstr(err.text, "must divide") != NULL)
                continue;
            /* Heads are offered for heads alone; key-value heads and sizes have their
             * own. */
            if (heads)
                REQUIRE(strncmp(err.text, "TP ", 3) != 0 ||
                            strstr(err.text, " kv heads") != NULL ||
                            strstr(err.text, "feed-forward") != NULL,
                        "%s -> %u: %s", sentence, (unsigned)value, err.text);
            else
                REQUIRE(strncmp(err.text, o->begins, strlen(o->begins)) != 0,
                        "%s -> %u: %s", sentence, (unsigned)value, err.text);
        }
    }
}

static void offers_are_valid(struct prop_rng *rng)
{
    struct pt_error err = PT_ERROR_INIT;
    struct instance x;
    enum pt_status st;

    draw(rng, &x);
    st = check(&x, &err);
    REQUIRE(st == check(&x, NULL), "%s", err.text);
    REQUIRE(st == PT_OK || st == PT_USAGE, "%d", (int)st);
    REQUIRE((st == PT_OK) == (err.text[0] == '\0'), "%s", err.text);
    if (st != PT_OK)
        try_offers(rng, &x, err.text);
}

static void valid_layouts_split(struct prop_rng *rng)
{
    struct pt_split split;
    struct instance x;
    uint32_t sum[PT_N_LAYER_KINDS] = { 0 }, least = UINT32_MAX, most = 0, pieces;
    bool slots = prop_below(rng, 2) != 0;

    do
        draw(rng, &x);
    while (check(&x, NULL) != PT_OK);
    pieces = x.layout.pp * x.layout.vpp;
    REQUIRE(pt_split_init(&split, x.layout.pp, x.layout.vpp, NULL) == PT_OK, "split");
    pt_split_even(&split, &x.model, &x.layout, slots);
    for (uint32_t k = 0; k < pieces; k++) {
        const struct pt_chunk *c = &split.chunk[pt_split_order(&x.layout, k)];
        uint32_t n = (uint32_t)c->layers[0] + c->layers[1];

        for (int kind = 0; kind < PT_N_LAYER_KINDS; kind++)
            sum[kind] += c->layers[kind];
        if (slots || x.model.layers < pieces)
            n += pieces > 1 && (k == 0 || k == pieces - 1);
        least = n < least ? n : least;
        most = n > most ? n : most;
    }
    for (int kind = 0; kind < PT_N_LAYER_KINDS; kind++)
        REQUIRE(sum[kind] == pt_model_layers(&x.model, (enum pt_layer_kind)kind),
                "kind %d", kind);
    REQUIRE(most - least <= 1, "%u to %u", (unsigned)least, (unsigned)most);
    pt_split_fini(&split);
}

int main(void)
{
    static const struct prop props[] = {
        { "offers_are_valid", offers_are_valid },
        { "valid_layouts_split", valid_layouts_split },
    };

    return prop_run(props, sizeof(props) / sizeof(props[0]), 20000);
}
