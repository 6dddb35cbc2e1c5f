/* What the executor's CPU backend allocates and sends, in fp32: not a fit, but the sum of
 * its own buffers and messages, which it counts as it runs and compares with these. */
#ifndef PT_CPU_MODEL_H
#define PT_CPU_MODEL_H

#include "libpt/memory.h"

#define PT_CPU_STACK "ptexec-cpu"

/* Whether this setup is priced for that backend. */
bool pt_is_cpu_stack(const struct pt_setup *setup);
/* Replaces what terms hold about tensors, before their rows are made. Dense models. */
void pt_cpu_memory_terms(const struct pt_setup *setup, const struct pt_layout *layout,
                         struct pt_memory_terms *terms);

/* Bytes that the busiest rank sends in one step; a ring's share of a collective:
 * all-reduce 2 (g-1)/g of the buffer, gather and scatter (g-1)/g. tied is the tied
 * embedding's sum between two stages. */
struct pt_cpu_volume {
    double tp, dp, tied, pp;
};
void pt_cpu_volume(const struct pt_setup *setup, const struct pt_layout *layout,
                   const struct pt_split *split, struct pt_cpu_volume *busiest);

#endif
