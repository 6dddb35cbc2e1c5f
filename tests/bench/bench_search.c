/* The search alone, timed: bench_search PARAMS|MODEL GPU GPUS GLOBAL_BATCH [idle]
 * [offload]. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "libpt/units.h"
#include "planner/search.h"

static enum pt_status make_setup(char **argv, struct pt_setup *s, struct pt_error *err)
{
    struct pt_calibration *c = NULL;
    char buf[PT_PROFILE_DIR_SIZE];
    const char *profiles = pt_profile_dir(buf, sizeof(buf));
    uint64_t params;
    bool known;
    enum pt_status st;

    if (argv[1][0] >= '0' && argv[1][0] <= '9') {
        st = pt_parse_count("params", argv[1], &params, err);
        if (st == PT_OK)
            st = pt_model_synthesise(params, PT_STYLE_LLAMA, &s->model, err);
    } else {
        st = pt_model_preset(profiles, argv[1], &s->model, err);
    }
    if (st == PT_OK)
        st = pt_cluster_default(profiles, argv[2], &s->cluster, err);
    if (st == PT_OK)
        st = pt_calibration_read(profiles, NULL, PT_CALIBRATION_DEFAULT, &c, err);
    if (st != PT_OK)
        return st;
    s->cluster.gpus = (uint32_t)strtoul(argv[3], NULL, 10);
    s->job.global_batch = (uint32_t)strtoul(argv[4], NULL, 10);
    s->job.seq = s->model.max_seq < 4096 ? s->model.max_seq : 4096;
    s->job.precision = PT_BF16;
    s->job.attention = PT_ATTENTION_FLASH;
    s->job.fused_grad_accumulation = true;
    s->job.vocab_unit = 128;
    pt_dtypes_default(s->job.precision, s->job.optimizer, &s->job.dtypes);
    pt_calibration_stack(c, "ptexec", &s->stack, &known);
    pt_calibration_device(c, s->cluster.gpu.family, &s->device, &known);
    pt_calibration_network(c, s->cluster.network, &s->network, &known);
    pt_calibration_free(c);
    return PT_OK;
}

int main(int argc, char **argv)
{
    struct pt_setup setup = { 0 };
    struct planner_space space = { .offload_frac = -1.0 };
    struct planner_options options = { .top = 3, .causal = true };
    struct planner_result result = { 0 };
    struct pt_error err = PT_ERROR_INIT;
    struct rusage u;
    enum pt_status st;

    if (argc < 5)
        return 2;
    for (int i = 5; i < argc; i++) {
        space.idle_gpus = space.idle_gpus || strcmp(argv[i], "idle") == 0;
        space.offload = space.offload || strcmp(argv[i], "offload") == 0;
    }
    st = make_setup(argv, &setup, &err);
    if (st == PT_OK)
        st = planner_search(&setup, &space, &options, &result, &err);
    if (st != PT_OK)
        pt_report("bench_search", &err);
    for (uint32_t i = 0; i < result.n; i++) {
        const struct pt_plan *p = &result.plan[i];
        const struct pt_layout *l = &p->layout;

        printf(
            "%u: %.6f s  tp %u pp %u vpp %u cp %u ep %u dp %u mb %u zero %u sp %d %s %s  "
            "%.1f GiB fits %d  mfu %.3f  layers",
            i, p->step.step_s, l->tp, l->pp, l->vpp, l->cp, l->ep, l->dp, l->micro_batch,
            l->zero, l->sequence_parallel, pt_recompute_name(l->recompute),
            pt_schedule_name(l->schedule), p->memory.device_bytes / PT_GIB,
            p->memory.fits, p->step.mfu);
        for (uint32_t s = 0; s < l->pp * l->vpp && s < 24; s++)
            printf(" %d/%d", p->split.chunk[s].layers[0] + p->split.chunk[s].layers[1],
                   p->split.chunk[s].recomputed[0] + p->split.chunk[s].recomputed[1]);
        printf(" off %.3f\n", p->split.offload_frac[0]);
    }
    const struct planner_stats *t = &result.stats;

    getrusage(RUSAGE_SELF, &u);
    printf("seen %llu invalid %llu bounded %llu no_memory %llu solved %llu gap %g wall "
           "%.3f s  "
           "cpu %.3f s  rss %ld MB\n",
           (unsigned long long)t->seen, (unsigned long long)t->invalid,
           (unsigned long long)t->bounded, (unsigned long long)t->no_memory,
           (unsigned long long)t->solved, t->gap, t->wall_s,
           (double)u.ru_utime.tv_sec + 1e-6 * (double)u.ru_utime.tv_usec,
           u.ru_maxrss / 1024);
    planner_result_fini(&result);
    return pt_exit_status(st);
}
