/* Random small models on real hardware, priced by the real cost and memory models. */
#ifndef TESTS_SEARCH_SETUP_H
#define TESTS_SEARCH_SETUP_H

#include <string.h>

#include "libpt/calibration.h"
#include "planner/search.h"
#include "tests/prop/prop.h"

struct search_profiles {
    struct pt_calibration *calibration;
    struct pt_cluster cluster[3];
};

static inline void search_profiles_init(struct search_profiles *p)
{
    static const char *const gpus[3] = { "H100-80-SXM5", "A100-80-SXM4", "V100-32" };
    char buf[PT_PROFILE_DIR_SIZE];
    const char *dir = pt_profile_dir(buf, sizeof(buf));
    struct pt_error err = PT_ERROR_INIT;
    enum pt_status st =
        pt_calibration_read(dir, NULL, PT_CALIBRATION_DEFAULT, &p->calibration, &err);

    for (int i = 0; i < 3 && st == PT_OK; i++)
        st = pt_cluster_default(dir, gpus[i], &p->cluster[i], &err);
    if (st != PT_OK)
        exit(pt_report("prop_search", &err));
}

static inline uint32_t pick(struct prop_rng *rng, uint32_t n, const uint32_t *from)
{
    return from[prop_below(rng, n)];
}
#define PICK(rng, ...)                                                                   \
    pick(rng, sizeof((const uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t),              \
         (const uint32_t[]){ __VA_ARGS__ })

static inline void random_model(struct prop_rng *rng, struct pt_model *m)
{
    memset(m, 0, sizeof(*m));
    snprintf(m->name, sizeof(m->name), "random");
    m->layers = 1 + (uint32_t)prop_below(rng, 8);
    m->heads = PICK(rng, 4, 8, 16);
    m->kv_heads = m->heads;
    m->head_dim = PICK(rng, 64, 128);
    m->hidden = m->heads * m->head_dim;
    m->ffn = 4 * m->hidden;
    m->vocab = PICK(rng, 1000, 32000, 128000);
    m->max_seq = 4096;
    m->gated = prop_below(rng, 2);
    m->tied = prop_below(rng, 2);
    m->rmsnorm = true;
    if (prop_below(rng, 2) == 0) {
        m->experts = PICK(rng, 4, 8);
        m->topk = 2;
        m->moe_ffn = m->hidden * PICK(rng, 1, 2);
        m->dense_layers = (uint32_t)prop_below(rng, m->layers + 1);
    }
}

/* A job of at most 16 sequences on 1 to 8 GPUs; the memory limit is the caller's. */
static inline void random_setup(struct prop_rng *rng, const struct search_profiles *p,
                                struct pt_setup *s)
{
    static const char *const stacks[] = { "ptexec", "megatron-2022", "deepspeed",
                                          "torchtitan" };
    bool known;

    memset(s, 0, sizeof(*s));
    random_model(rng, &s->model);
    s->cluster = p->cluster[prop_below(rng, 3)];
    s->cluster.gpus = 1u << prop_below(rng, 4);
    s->job.seq = PICK(rng, 512, 2048, 4096);
    s->job.global_batch = PICK(rng, 4, 8, 16, 12);
    s->job.precision = PT_BF16;
    s->job.attention = prop_below(rng, 4) == 0 ? PT_ATTENTION_EAGER : PT_ATTENTION_FLASH;
    s->job.fused_grad_accumulation = prop_below(rng, 2);
    s->job.vocab_unit = 128;
    pt_dtypes_default(s->job.precision, s->job.optimizer, &s->job.dtypes);
    pt_calibration_stack(p->calibration, stacks[prop_below(rng, 4)], &s->stack, &known);
    pt_calibration_device(p->calibration, s->cluster.gpu.family, &s->device, &known);
    pt_calibration_network(p->calibration, s->cluster.network, &s->network, &known);
    s->stack.step_s *= prop_unit(rng); /* else it hides small differences */
}

#endif
