/* ptplan's options, and what they come to: a setup, a space of layouts, what to print. */
#ifndef PLANNER_OPTIONS_H
#define PLANNER_OPTIONS_H

#include "libpt/calibration.h"
#include "libpt/cli.h"
#include "planner/format.h"
#include "planner/search.h"
#include "planner/stacks.h"
#include "planner/summary.h"
#include "planner/verify.h"

/* The command line, checked word by word only. A `given` is false where the default
 * stands. */
struct planner_given {
    /* model */
    const char *params, *model, *config, *style;
    uint64_t layers, hidden, ffn, heads, kv_heads, head_dim, vocab;
    uint64_t experts, topk, moe_ffn, shared_ffn, dense_layers;
    bool gated, tied, bias, rmsnorm;
    bool layers_given, hidden_given, ffn_given, heads_given, kv_heads_given,
        head_dim_given, vocab_given, experts_given, topk_given, moe_ffn_given,
        shared_ffn_given, dense_layers_given, gated_given, tied_given, bias_given,
        rmsnorm_given;
    /* hardware */
    const char *gpus, *gpu, *node, *network;
    uint64_t gpus_per_node, mem, host_mem;
    const char *mem_unit, *host_mem_unit;
    double tflops;
    bool gpus_per_node_given, mem_given, host_mem_given, tflops_given;
    /* job */
    uint64_t global_batch, seq, tokens, seed, vocab_unit;
    const char *precision, *optimizer, *attention, *grad_type;
    bool dropout, compiled, fused_loss, fused_grad;
    bool global_batch_given, seq_given, tokens_given, vocab_unit_given, compiled_given,
        fused_loss_given, fused_grad_given;
    /* layout */
    struct pt_cli_list tp, pp, vpp, dp, cp, ep, zero, zero_group, micro_batch, recompute,
        schedule;
    bool sequence_parallel, sequence_parallel_given;
    const char *offload;
    bool replicate_kv, embedding_slots, idle_gpus;
    /* model of cost */
    const char *stack, *calibration, *flop_convention;
    bool stack_given;
    /* search and output */
    uint64_t top, verify;
    double time_limit, gap;
    bool explain;
    const char *output, *format, *report, *evaluate;
};

/* Parses argv. *done: --help and the like printed. Operands are an error. */
enum pt_status planner_options_parse(int argc, char **argv, struct planner_given *given,
                                     bool *done, struct pt_error *err);

/* What is asked, with every default filled in and named in `assumed`. */
struct planner_request {
    struct pt_setup setup;
    struct planner_space space;
    struct planner_options search;
    const struct planner_stack *stack;
    struct pt_calibration *calibration;        /* owned */
    char stack_key[24], calibration_text[160]; /* for plans */
    bool gpus_auto;                            /* --gpus auto: setup.cluster.gpus is 0 */
    bool params_max; /* --params max: setup.model is the smallest that can be synthesised
                      */
    enum pt_model_style style; /* of --params */
    struct planner_notes assumed, warnings;
    enum planner_format format;
    uint32_t verify; /* plans to simulate */
    bool explain;
    const char *output, *report; /* NULL: none */
};

/* Resolves names through the profiles, fills defaults, and refuses values that contradict
 * each other whatever the search would choose (PT_USAGE, PT_INPUT). */
enum pt_status planner_request_init(struct planner_request *request,
                                    const struct planner_given *given,
                                    const char *profile_dir, struct pt_error *err);
void planner_request_fini(struct planner_request *request);
/* --calibration none|default|FILE. */
enum pt_status planner_calibration_open(const char *what, const char *profile_dir,
                                        struct pt_calibration **calibration,
                                        struct pt_error *err);

/* --- between the files that build a request --- */
enum pt_status planner_request_model(struct planner_request *r,
                                     const struct planner_given *g,
                                     const char *profile_dir, struct pt_error *err);
enum pt_status planner_request_hardware(struct planner_request *r,
                                        const struct planner_given *g,
                                        const char *profile_dir, struct pt_error *err);
enum pt_status planner_request_job(struct planner_request *r,
                                   const struct planner_given *g, struct pt_error *err);
enum pt_status planner_request_space(struct planner_request *r,
                                     const struct planner_given *g, struct pt_error *err);
/* The pinned values against each other, and the warnings that do not depend on the
 * search. */
enum pt_status planner_request_check(struct planner_request *r,
                                     const struct planner_given *g, struct pt_error *err);
/* The global batch when none is given: tokens per step by size, see request_job.c. */
uint32_t planner_default_batch(double params, uint32_t seq, uint32_t gpus,
                               uint32_t micro_batch);

#endif
