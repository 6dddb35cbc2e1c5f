/* The lists of constants: X(name, datasheet default, low, high, unit, meaning). */
#ifndef PT_CALIBRATION_CONSTANTS_H
#define PT_CALIBRATION_CONSTANTS_H

#define PT_STACK_CONSTANTS(X)                                                            \
    X(memory_op_mult, 1.1, 0.5, 3.0, "", "time of memory-bound operators over roofline") \
    X(loss_mult, 1.0, 0.3, 4.0, "", "the same for the loss over the logits")             \
    X(score_bytes, 0.0, 0.0, 40.0, "B",                                                  \
      "extra traffic per attention score of an unfused forward softmax")                 \
    X(attention_gen, 0.0, 0.0, 1.0, "",                                                  \
      "0: flash attention 1 and 2, 1: flash attention 3 and cuDNN")                      \
    X(attention_mult, 1.0, 0.3, 1.5, "", "rate of flash attention over the device's")    \
    X(cast_bytes, 5.5, 1.0, 12.0, "B", "traffic of an fp8 cast per element")             \
    X(tp_exposed_forward, 1.0, 0.05, 2.0, "", "tensor-parallel time not hidden")         \
    X(tp_exposed_backward, 0.9, 0.05, 2.0, "", "the same in the backward pass")          \
    X(dp_exposed, 0.5, 0.0, 1.5, "", "gradient reduction that cannot hide at all")       \
    X(fsdp_exposed, 0.15, 0.0, 1.0, "", "ZeRO-2/3 traffic under compute that shows")     \
    X(p2p_exposed, 0.7, 0.0, 2.0, "", "pipeline transfers that show in steady state")    \
    X(layer_s, 30e-6, 0.0, 1e-3, "s", "gaps between the kernels of a layer and pass")    \
    X(micro_batch_s, 300e-6, 0.0, 20e-3, "s", "engine time per micro-batch and stage")   \
    X(step_s, 0.02, 0.0, 1.0, "s", "fixed time per step")                                \
    X(optimizer_bytes, 50.0, 16.0, 200.0, "B", "optimizer traffic per parameter")        \
    X(owner_s, 0.0, 0.0, 5e-3, "s",                                                      \
      "parameters broadcast owner by owner: per rank of the ZeRO group")                 \
    X(moe_s, 250e-6, 0.0, 3e-3, "s", "routing, sorting and syncs of an MoE layer, pass") \
    X(moe_mult, 1.0, 0.3, 4.0, "", "time of permutation and all-to-all over the model")  \
    X(slack, 0.02, 0.0, 0.2, "", "run-to-run slack of the pipeline")                     \
    X(grad_comm_bytes, 0.0, 0.0, 4.0, "B",                                               \
      "bytes per element in a gradient reduction; 0: those of the accumulated gradient")

#define PT_DEVICE_CONSTANTS(X)                                                           \
    X(gemm_frac, 0.74, 0.3, 0.95, "", "ceiling of 16-bit products over the dense peak")  \
    X(gemm8_frac, 0.68, 0.2, 0.95, "", "ceiling of 8-bit products")                      \
    X(gemm4_frac, 0.55, 0.1, 0.95, "", "ceiling of 4-bit products")                      \
    X(gemm_floor_s, 6e-6, 1e-6, 2e-5, "s", "launch and tail of one product")             \
    X(wave_weight, 0.4, 0.0, 1.0, "", "share of a product's time that tiles quantise")   \
    X(k_half, 100.0, 0.0, 600.0, "", "inner dimension that reaches half the rate")       \
    X(hbm_frac, 0.80, 0.3, 1.0, "", "memory-bound kernels over the HBM peak")            \
    X(attention_frac, 0.60, 0.1, 0.9, "",                                                \
      "causal flash attention forward over the dense peak, third generation")            \
    X(attention_frac_gen0, 0.35, 0.1, 0.9, "", "the same, generations before")           \
    X(attention_half, 700.0, 100.0, 3000.0, "", "sequence at which it reaches half")     \
    X(attention_backward, 0.8, 0.3, 1.2, "", "rate of its backward over its forward")    \
    X(eager_frac, 0.45, 0.1, 0.9, "", "batched products of eager attention over peak")   \
    X(eager_odd_frac, 0.10, 0.02, 1.0, "", "of that, head sizes not a multiple of 8")    \
    X(collective_s, 25e-6, 2e-6, 2e-4, "s", "start-up of a collective")                  \
    X(message_frac, 0.2, 0.0, 2.0, "", "of the half-rate message size, per collective")

#define PT_NETWORK_CONSTANTS(X)                                                          \
    X(rate_frac, 0.73, 0.1, 1.0, "", "rate of collectives over the injection rate")      \
    X(p2p_frac, 0.73, 0.02, 1.0, "", "rate of pipeline transfers over the NIC's share")  \
    X(degrade, 0.0, 0.0, 0.12, "", "of the rate lost per doubling of nodes")             \
    X(latency_s, 30e-6, 5e-6, 5e-4, "s", "per doubling of the nodes of a collective")    \
    X(straggler, 0.002, 0.0, 0.03, "", "slack per doubling of nodes in the job")

#endif
