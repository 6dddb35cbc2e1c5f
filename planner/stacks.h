/* --stack: names of training software, which constants price each, and what each cannot
 * do. */
#ifndef PLANNER_STACKS_H
#define PLANNER_STACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct planner_stack {
    const char *name; /* what --stack takes */
    const char *key;  /* profiles/stacks.csv; a key without rows has the defaults */
    const char *what; /* for people */
    uint32_t max_pp;  /* 1: no pipeline */
    uint32_t zero_max_with_pp; /* 1: gradients cannot be sharded while micro-batches add
                                  up; 0: no limit */
    uint32_t zero_max;
    uint32_t schedules; /* bit per enum pt_schedule_kind */
    bool cp, ep;
    uint32_t vocab_unit; /* pads the vocabulary to a multiple of this x tp */
    bool fused_grad_accumulation, fused_cross_entropy, compiled;
    const char *uneven; /* what uneven stages need there; NULL: nothing */
};

/* By name, whatever the case and dashes; NULL when there is none of that name. */
const struct planner_stack *planner_stack_find(const char *name);
/* "generic, ptexec, ..." into buf. */
char *planner_stack_names(char *buf, size_t size);
/* The name that is assumed; on processors alone it is the executor of this suite, whose
 * constants there have a key of their own. */
#define PLANNER_STACK_DEFAULT "generic"
#define PLANNER_STACK_CPU     "ptexec"
#define PLANNER_STACK_CPU_KEY "ptexec-cpu"

#endif
