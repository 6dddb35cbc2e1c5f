/* What one rank of the executor does on this machine, measured with its own kernels and
 * transport. */
#ifndef PT_PROF_CPU_H
#define PT_PROF_CPU_H

#include <stdint.h>

#include "libpt/error.h"

#define PROF_POINTS 12

struct prof_point { /* a product [m, k] x [k, n] of a GPT layer */
    unsigned m, n, k;
    double flops; /* per second */
};

struct prof_cpu {
    const char *isa, *products;
    double gemm_flops; /* best of the large products */
    double gemm_k_half,
        gemm_floor_s; /* depth that reaches half of it; the smallest product */
    struct prof_point curve[PROF_POINTS];
    double memory_bytes_per_s; /* copy of arrays beyond the caches, read plus written */
    double cheap_mult; /* norms, activations, residuals over bytes / (0.8 memory rate) */
    double loss_mult;  /* the loss over the same */
    double attention_flops[2]; /* causal forward at two lengths */
    double attention_seq[2];
    double attention_backward; /* rate of its backward (2.5 forwards) over that */
    double adam_params_per_s;
    /* Two ranks on two cores; 0 on a machine of one. */
    double allreduce_bytes_per_s, gather_bytes_per_s, message_bytes_per_s;
    double collective_s, half_bytes;
};

/* seconds: about how long it may take. */
enum pt_status prof_cpu_measure(double seconds, uint64_t threads, struct prof_cpu *p,
                                struct pt_error *err);

#endif
