/* Which constants are fitted, and how far the runs may pull one from its datasheet value:
 * the standard deviation of its logarithm or, where it may be zero, of its value. Chosen
 * once, by the error of held-out thirds and fifths of the rows. A constant that is not
 * listed is a fact of the software. Shared: one value for all keys of its scope. */
#ifndef VALIDATE_FIT_PRIORS_H
#define VALIDATE_FIT_PRIORS_H

#include <stdbool.h>

static const struct {
    const char *name;
    double sigma;
    bool shared;
} fit_priors[] = {
    { "memory_op_mult", 0.4, false },
    { "compiled_mult", 0.4, false },
    { "loss_mult", 0.4, false },
    { "score_bytes", 3.0, false },
    { "attention_mult", 0.125, false },
    { "attention_narrow", 0.1, false },
    { "cp_uneven", 0.5, false },
    { "cast_bytes", 0.2, true },
    { "block_cast_mult", 0.4, true },
    { "tp_exposed_forward", 0.3, false },
    { "tp_exposed_backward", 0.3, false },
    { "dp_exposed", 0.3, false },
    { "dp_exposed_flat", 0.3, false },
    { "fsdp_exposed", 0.2, false },
    { "recompute_mult", 0.08, false },
    { "p2p_exposed", 0.15, false },
    { "layer_s", 30e-6, false },
    { "micro_batch_s", 500e-6, false },
    { "step_s", 0.015, false },
    { "skew_s", 0.03, false },
    { "optimizer_bytes", 0.15, false },
    { "owner_s", 0.0015, false },
    { "moe_s", 200e-6, false },
    { "moe_mult", 0.4, false },
    { "slack", 0.015, false },
    { "gemm_frac", 0.08, false },
    { "gemm8_frac", 0.06, false },
    { "gemm4_frac", 0.15, false },
    { "wave_weight", 0.1, true },
    { "k_half", 60.0, true },
    { "hbm_frac", 0.04, false },
    { "attention_frac", 0.12, false },
    { "attention_frac1", 0.12, false },
    { "attention_frac0", 0.12, false },
    { "attention_backward", 0.1, false },
    { "eager_frac", 0.3, true },
    { "eager_odd_frac", 0.5, true },
    { "collective_s", 0.3, true },
    { "message_frac", 0.15, true },
    { "rate_frac", 0.2, false },
    { "p2p_frac", 0.4, false },
    { "degrade", 0.03, false },
    { "latency_s", 0.4, true },
    { "straggler", 0.002, false },
};

#endif
