#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "tests/exec/make_plan.h"

/* Built-in values of a scope's constants into their record. */
static void set_constants(enum pt_scope scope, void *record)
{
    size_t n;
    const struct pt_constant *k = pt_constants(scope, &n);

    for (size_t i = 0; i < n; i++)
        memcpy((char *)record + k[i].offset, &k[i].dflt, sizeof(k[i].dflt));
}

void make_plan_default(struct pt_plan *plan)
{
    struct pt_setup *s = &plan->setup;

    pt_plan_init(plan);
    s->model = (struct pt_model){ .name = "tiny",
                                  .source = "by hand",
                                  .layers = 4,
                                  .hidden = 64,
                                  .heads = 4,
                                  .vocab = 256,
                                  .tied = true,
                                  .bias = true,
                                  .learned_positions = true };
    snprintf(s->cluster.gpu.key, sizeof(s->cluster.gpu.key), "cpu");
    s->cluster.gpu.mem_bytes = 2e9;
    s->cluster.gpu.peak_flops[PT_FP32] = 1e11;
    s->cluster.gpu.hbm_bytes_per_s = 1e10;
    s->cluster.gpu.sm_count = 1;
    set_constants(PT_SCOPE_STACK, &s->stack);
    set_constants(PT_SCOPE_DEVICE, &s->device);
    set_constants(PT_SCOPE_NETWORK, &s->network);
    s->cluster.gpu.h2d_bytes_per_s = s->cluster.gpu.d2h_bytes_per_s = 4e9;
    s->cluster.link.allreduce_bytes_per_s = s->cluster.link.allgather_bytes_per_s = 3e9;
    s->cluster.link.alltoall_bytes_per_s = s->cluster.link.p2p_bytes_per_s = 3e9;
    s->cluster.link.half_bytes = 65536;
    s->cluster.link.alpha_s = 1e-5;
    s->cluster.nic_bytes_per_s = 1e9;
    s->job = (struct pt_job){ .seq = 32,
                              .global_batch = 8,
                              .precision = PT_FP32,
                              .optimizer = PT_OPT_ADAM,
                              .dtypes = { 4, 4, 0, 8, 4 },
                              .seed = 1,
                              .vocab_unit = 1 };
    snprintf(plan->stack_key, sizeof(plan->stack_key), "ptexec");
    snprintf(plan->calibration, sizeof(plan->calibration), "none");
    plan->layout = (struct pt_layout){ .tp = 1,
                                       .pp = 1,
                                       .vpp = 1,
                                       .cp = 1,
                                       .ep = 1,
                                       .dp = 1,
                                       .schedule = PT_SCHEDULE_NONE,
                                       .micro_batch = 1 };
}

struct field {
    const char *name;
    uint32_t *at;
};

static bool set_number(struct pt_plan *p, const char *name, size_t len, const char *value)
{
    struct pt_model *m = &p->setup.model;
    struct pt_layout *l = &p->layout;
    const struct field fields[] = {
        { "layers", &m->layers },
        { "hidden", &m->hidden },
        { "heads", &m->heads },
        { "kv", &m->kv_heads },
        { "ffn", &m->ffn },
        { "vocab", &m->vocab },
        { "seq", &p->setup.job.seq },
        { "gbs", &p->setup.job.global_batch },
        { "unit", &p->setup.job.vocab_unit },
        { "tp", &l->tp },
        { "pp", &l->pp },
        { "vpp", &l->vpp },
        { "dp", &l->dp },
        { "zero", &l->zero },
        { "mb", &l->micro_batch },
    };

    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        if (strlen(fields[i].name) == len && !strncmp(fields[i].name, name, len)) {
            *fields[i].at = (uint32_t)strtoul(value, NULL, 10);
            return true;
        }
    return false;
}

bool make_plan_set(struct pt_plan *p, const char *word)
{
    const char *value = strchr(word, '=');
    struct pt_model *m = &p->setup.model;
    struct pt_error err = PT_ERROR_INIT;

    if (value == NULL)
        return false;
    if (set_number(p, word, (size_t)(value - word), value + 1))
        return true;
    if (!strcmp(word, "style=llama")) {
        m->tied = m->bias = m->learned_positions = false;
        m->gated = m->rmsnorm = true;
        m->kv_heads = 2;
        return true;
    }
    if (!strncmp(word, "tied=", 5))
        m->tied = value[1] == '1';
    else if (!strncmp(word, "sp=", 3))
        p->layout.sequence_parallel = value[1] == '1';
    else if (!strncmp(word, "schedule=", 9))
        return pt_schedule_parse(value + 1, &p->layout.schedule, &err) == PT_OK;
    else if (!strncmp(word, "recompute=", 10))
        return pt_recompute_parse(value + 1, &p->layout.recompute, &err) == PT_OK;
    else
        return false;
    return true;
}

enum pt_status make_plan_finish(struct pt_plan *p, bool uneven, unsigned recomputed,
                                double offload_frac, struct pt_error *err)
{
    struct pt_model *m = &p->setup.model;
    struct pt_layout *l = &p->layout;
    uint32_t ranks = l->tp * l->pp * l->dp, last = l->pp * l->vpp - 1;
    enum pt_status st;

    m->kv_heads = m->kv_heads > 0 ? m->kv_heads : m->heads;
    m->ffn = m->ffn > 0 ? m->ffn : 4 * m->hidden;
    m->head_dim = m->hidden / m->heads;
    m->max_seq = p->setup.job.seq;
    if (l->pp > 1 && l->schedule == PT_SCHEDULE_NONE)
        l->schedule = PT_SCHEDULE_1F1B;
    if (pt_schedule_is_v(l->schedule))
        l->vpp = 2;
    last = l->pp * l->vpp - 1;
    p->setup.cluster.gpus = p->setup.cluster.node_gpus = p->setup.cluster.domain_gpus =
        ranks;
    st = pt_layout_check(m, &p->setup.job, l, ranks, err);
    if (st == PT_OK)
        st = pt_split_init(&p->split, l->pp, l->vpp, err);
    if (st != PT_OK)
        return st;
    pt_split_even(&p->split, m, l, false);
    if (uneven && last > 0 && p->split.chunk[last].layers[PT_LAYER_DENSE] > 1) {
        p->split.chunk[last].layers[PT_LAYER_DENSE]--;
        p->split.chunk[0].layers[PT_LAYER_DENSE]++;
    }
    for (uint32_t i = 0; i <= last; i++) {
        uint16_t n = p->split.chunk[i].layers[PT_LAYER_DENSE];

        if (l->recompute == PT_RECOMPUTE_FULL)
            p->split.chunk[i].recomputed[PT_LAYER_DENSE] = n;
        else if (recomputed > 0)
            p->split.chunk[i].recomputed[PT_LAYER_DENSE] =
                (uint16_t)(recomputed < n ? recomputed : n);
    }
    for (uint32_t s = 0; s < l->pp; s++)
        p->split.offload_frac[s] = offload_frac;
    return PT_OK;
}
