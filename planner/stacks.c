#include "config.h"

#include <stdio.h>

#include "libpt/layout.h"
#include "libpt/names.h"
#include "planner/stacks.h"

#define BIT(kind)          (1u << PT_SCHEDULE_##kind)
#define EVERY              ((1u << PT_N_SCHEDULES) - 1)
#define MEGATRON_SCHEDULES (BIT(NONE) | BIT(1F1B) | BIT(INTERLEAVED))

/* The flags of Megatron-Core 0.9 and later. */
#define MEGATRON_UNEVEN                                                                  \
    "--decoder-first-pipeline-num-layers, --decoder-last-pipeline-num-layers or "        \
    "--pipeline-model-parallel-layout"

/* Sources of the limits: Megatron-LM's arguments.py (no overlap of a sharded gradient
 * with pipelining, two schedules), DeepSpeed's pipe/engine.py ("ZeRO-2 and ZeRO-3 are
 * incompatible with pipeline parallelism"), torchtitan's docs/composability.md,
 * InternEvo's zero1 setting. */
static const struct planner_stack stacks[] = {
    { "generic", "generic", "a modern trainer with nothing left out", PT_MAX_PP, 0, 3,
      EVERY, true, true, 1, true, true, false, NULL },
    { "ptexec", "ptexec", "the executor of this suite", PT_MAX_PP, 0, 3, EVERY, true,
      true, 1, true, true, false, NULL },
    { "megatron", "bridge-2025", "Megatron-Core with overlap, 2025", PT_MAX_PP, 1, 1,
      MEGATRON_SCHEDULES, true, true, 128, true, true, false, MEGATRON_UNEVEN },
    { "bridge-2025", "bridge-2025", "Megatron-Bridge, 2025", PT_MAX_PP, 1, 1,
      MEGATRON_SCHEDULES, true, true, 128, true, true, false, MEGATRON_UNEVEN },
    { "nemo-2024", "nemo-2024", "NeMo on Megatron-Core, 2024", PT_MAX_PP, 1, 1,
      MEGATRON_SCHEDULES, true, true, 128, true, true, false, MEGATRON_UNEVEN },
    { "mcore-noovl", "mcore-noovl", "Megatron-Core without overlap", PT_MAX_PP, 1, 1,
      MEGATRON_SCHEDULES, true, true, 128, true, true, false, MEGATRON_UNEVEN },
    { "mlperf", "mlperf", "NVIDIA's MLPerf submissions", PT_MAX_PP, 1, 1,
      MEGATRON_SCHEDULES, true, true, 128, true, true, false, MEGATRON_UNEVEN },
    { "megatron-2022", "megatron-2022", "Megatron-LM with sequence parallelism, 2022",
      PT_MAX_PP, 1, 1, MEGATRON_SCHEDULES, false, false, 128, true, false, false,
      MEGATRON_UNEVEN },
    { "megatron-2021", "megatron-2021", "Megatron-LM of the SC21 paper", PT_MAX_PP, 1, 0,
      MEGATRON_SCHEDULES, false, false, 128, false, false, false, "equal stages" },
    { "zero-bubble", "zero-bubble", "Megatron-LM with zero-bubble schedules", PT_MAX_PP,
      1, 1, EVERY, false, false, 128, true, false, false, "an own layout of the ends" },
    { "vocab-parallel", "vocab-parallel",
      "Megatron-LM with a vocabulary-parallel pipeline", PT_MAX_PP, 1, 1,
      MEGATRON_SCHEDULES, false, false, 128, true, false, false, "equal stages" },
    { "fsdp", "fsdp", "PyTorch FSDP", 1, 0, 3, BIT(NONE), false, false, 1, false, false,
      false, NULL },
    { "torchtitan", "torchtitan", "torchtitan (FSDP2, compiled)", PT_MAX_PP, 0, 3,
      BIT(NONE) | BIT(GPIPE) | BIT(1F1B) | BIT(INTERLEAVED) | BIT(ZB_V), true, true, 1,
      false, false, true, "--parallelism.module_fqns_per_model_part" },
    { "deepspeed", "deepspeed", "DeepSpeed's pipeline engine", PT_MAX_PP, 1, 3,
      BIT(NONE) | BIT(1F1B), false, true, 128, false, false, false,
      "PipelineModule(partition_method='parameters')" },
    { "ds-zero3", "ds-zero3", "DeepSpeed ZeRO without a pipeline", 1, 0, 3, BIT(NONE),
      false, true, 1, false, false, false, NULL },
    { "internevo", "internevo", "InternEvo", PT_MAX_PP, 1, 1, MEGATRON_SCHEDULES, true,
      false, 1, false, false, false, NULL },
};

const struct planner_stack *planner_stack_find(const char *name)
{
    for (size_t i = 0; i < sizeof(stacks) / sizeof(stacks[0]); i++)
        if (pt_name_equal(name, stacks[i].name))
            return &stacks[i];
    return NULL;
}

char *planner_stack_names(char *buf, size_t size)
{
    size_t used = 0;

    buf[0] = '\0';
    for (size_t i = 0; i < sizeof(stacks) / sizeof(stacks[0]) && used < size; i++)
        used += (size_t)snprintf(buf + used, size - used, "%s%s", i > 0 ? ", " : "",
                                 stacks[i].name);
    return buf;
}
