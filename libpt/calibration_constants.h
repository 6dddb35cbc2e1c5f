/* The lists of constants: X(name, datasheet default, low, high, unit, meaning). */
#ifndef PT_CALIBRATION_CONSTANTS_H
#define PT_CALIBRATION_CONSTANTS_H

/* Memory: bytes per parameter or per element unless said; who keeps what. */
#define PT_STACK_MEMORY_CONSTANTS(X)                                                     \
    X(mem_grad_bf16, 2.0, 2.0, 8.0, "B", "accumulated gradient in bf16 training")        \
    X(mem_grad_fp16, 2.0, 2.0, 8.0, "B", "accumulated gradient in fp16 training")        \
    X(mem_grad_low, 2.0, 2.0, 8.0, "B", "accumulated gradient in 8- and 4-bit training") \
    X(mem_low_saved, 0.0, 0.0, 2.0, "B",                                                 \
      "saved element of a product's input in 8- and "                                    \
      "4-bit training; 0: the 16-bit tensor")                                            \
    X(mem_fp32_weights, 0.0, 0.0, 1.0, "",                                               \
      "1: weights are kept in fp32 (their own "                                          \
      "master), used in 16 bits")                                                        \
    X(mem_state_extra, 0.0, 0.0, 6.0, "B", "further state per parameter, never sharded") \
    X(mem_fp16_extra, 0.0, 0.0, 12.0, "B",                                               \
      "further state in fp16 training (fp32 and "                                        \
      "16-bit copies of gradients), sharded")                                            \
    X(mem_norm_bytes, 0.0, 0.0, 8.0, "B",                                                \
      "kept per hidden element of a layer beyond "                                       \
      "the inputs and outputs of its norms")                                             \
    X(mem_cp_query_bytes, 0.0, 0.0, 4.0, "B",                                            \
      "kept per query element under context "                                            \
      "parallelism, beyond the query itself")                                            \
    X(mem_checkpoint_copies, 1.0, 1.0, 3.0, "", "of the input of a recomputed layer")    \
    X(mem_score_backward, 6.0, 0.0, 16.0, "B",                                           \
      "per attention score in the backward of "                                          \
      "the eager kernel")                                                                \
    X(mem_split_freed, 0.0, 0.0, 1.0, "",                                                \
      "micro-batches that a zero-bubble pipeline of "                                    \
      "depth pp frees between the two backwards")                                        \
    X(mem_moe_buffers, 1.0, 0.0, 6.0, "",                                                \
      "16-bit buffers of the routed rows that "                                          \
      "outlive a layer")                                                                 \
    X(mem_spread_hidden, 20.0, 0.0, 40.0, "",                                            \
      "hidden-sized 16-bit buffers when the "                                            \
      "vocabulary is spread over the stages")                                            \
    X(mem_backward_hidden, 2.0, 0.0, 8.0, "",                                            \
      "hidden-sized 16-bit buffers in a layer's "                                        \
      "backward")                                                                        \
    X(mem_logit_unfused, 10.0, 2.0, 16.0, "B", "per logit at the loss, not fused")       \
    X(mem_logit_fused, 4.0, 2.0, 8.0, "B", "per logit at the loss, fused")               \
    X(mem_head_dummy, 0.0, 0.0, 4.0, "B", "per head weight, in the head's backward")     \
    X(mem_head_hidden, 3.0, 0.0, 8.0, "",                                                \
      "hidden-sized 16-bit buffers in the head's "                                       \
      "backward")                                                                        \
    X(mem_layer_dummy, 0.0, 0.0, 4.0, "B",                                               \
      "placeholder gradients per weight of one "                                         \
      "layer")                                                                           \
    X(mem_gather_layers, 2.0, 1.0, 4.0, "", "ZeRO-3: layers gathered at once")           \
    X(mem_gather_grad, 2.0, 0.0, 8.0, "B",                                               \
      "ZeRO-3: whole gradient of one layer before "                                      \
      "its reduction")                                                                   \
    X(mem_gather_ends, 2.0, 0.0, 8.0, "B", "ZeRO-3: gathered embedding and head")        \
    X(mem_bucket, 0.0, 0.0, 4e9, "bytes", "reduction buckets of a rank")                 \
    X(mem_workspace, 67108864.0, 0.0, 2e9, "bytes", "workspace of the libraries")        \
    X(mem_step_temporary, 0.0, 0.0, 1.0, "",                                             \
      "temporaries of the optimizer step over "                                          \
      "its states")                                                                      \
    X(mem_save_staging, 0.0, 0.0, 1.0, "", "staging of a save over optimizer states")    \
    X(mem_load_staging, 0.0, 0.0, 1.0, "", "staging of a load over optimizer states")    \
    X(mem_build_whole, 0.0, 0.0, 4.0, "B",                                               \
      "per parameter of the whole model on each "                                        \
      "rank while it is built")                                                          \
    X(mem_fragmentation, 0.06, 0.0, 0.5, "", "reserved over allocated, less 1")          \
    X(mem_fragmentation_compiled, 0.055, 0.0, 0.5, "", "the same under a compiler")      \
    X(mem_cache, 0.0, 0.0, 8e9, "bytes", "reserved beyond that")                         \
    X(mem_margin, 0.03, 0.0, 0.3, "",                                                    \
      "of a card's memory that a plan leaves: what the "                                 \
      "model of this stack may be off by")                                               \
    X(mem_context, 6e8, 0.0, 2e9, "bytes", "context of the driver and libraries")        \
    X(mem_communicator, 5e8, 0.0, 2e9, "bytes",                                          \
      "one communicator of a group of two or "                                           \
      "more")                                                                            \
    X(mem_host_rank, 4e9, 0.0, 3e10, "bytes",                                            \
      "host memory of a rank that offloads "                                             \
      "nothing")                                                                         \
    X(mem_host_pinned, 0.33, 0.0, 2.0, "", "pinned copies over offloaded bytes")

#define PT_STACK_CONSTANTS(X)                                                            \
    PT_STACK_MEMORY_CONSTANTS(X)                                                         \
    X(memory_op_mult, 1.1, 0.5, 3.0, "", "time of memory-bound operators over roofline") \
    X(compiled_mult, 1.0, 0.3, 1.5, "", "of that, when a compiler fuses them")           \
    X(loss_mult, 1.0, 0.3, 4.0, "", "the same for the loss over the logits")             \
    X(score_bytes, 0.0, 0.0, 40.0, "B",                                                  \
      "extra traffic per attention score of an unfused forward softmax")                 \
    X(attention_gen, 1.0, 0.0, 2.0, "",                                                  \
      "0: flash attention 1, Triton; 1: flash attention 2; 2: 3 and cuDNN")              \
    X(attention_mult, 1.0, 0.3, 1.5, "", "rate of flash attention over the device's")    \
    X(attention_narrow, 0.14, -0.3, 0.6, "",                                             \
      "its rate falls with the head size below 128 to this power")                       \
    X(cp_uneven, 0.0, 0.0, 1.5, "",                                                      \
      "context parallelism: uneven causal work, 1 = none balanced")                      \
    X(cast_bytes, 5.5, 1.0, 12.0, "B", "traffic of an fp8 cast per element")             \
    X(block_cast_mult, 1.3, 0.8, 3.0, "", "the same with block scales, over it")         \
    X(recompute_mult, 1.0, 0.5, 1.3, "",                                                 \
      "full recomputation over a forward; less when it stops at the last saved tensor")  \
    X(tp_exposed_forward, 1.0, 0.05, 2.0, "", "tensor-parallel time not hidden")         \
    X(tp_exposed_backward, 0.9, 0.05, 2.0, "", "the same in the backward pass")          \
    X(dp_exposed, 0.5, 0.0, 1.5, "", "gradient reduction that cannot hide at all")       \
    X(dp_exposed_flat, 0.15, 0.0, 1.5, "", "the same without a pipeline")                \
    X(fsdp_exposed, 0.15, 0.0, 1.0, "", "ZeRO-2/3 traffic under compute that shows")     \
    X(p2p_exposed, 0.7, 0.0, 2.0, "", "pipeline transfers that show in steady state")    \
    X(p2p_scatter, 1.0, 0.0, 1.0, "",                                                    \
      "1: transfers are scattered over the tensor-parallel group and gathered")          \
    X(layer_s, 30e-6, 0.0, 1e-3, "s", "gaps between the kernels of a layer and pass")    \
    X(launch_s, 25e-6, 0.0, 1e-4, "s",                                                   \
      "host time per operator and pass: a layer cannot be faster than its launches")     \
    X(micro_batch_s, 300e-6, 0.0, 20e-3, "s", "engine time per micro-batch and stage")   \
    X(step_s, 0.01, 0.0, 1.0, "s", "fixed time per step")                                \
    X(skew_s, 0.01, 0.0, 0.3, "s", "nodes wait for each other, per step")                \
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
    X(k_half, 50.0, 0.0, 600.0, "", "inner dimension that reaches half the rate")        \
    X(hbm_frac, 0.80, 0.3, 1.0, "", "memory-bound kernels over the HBM peak")            \
    X(attention_frac, 0.55, 0.1, 0.9, "",                                                \
      "causal flash attention forward over the dense peak, generation 2")                \
    X(attention_frac1, 0.45, 0.1, 0.9, "", "the same, generation 1")                     \
    X(attention_frac0, 0.25, 0.05, 0.9, "", "the same, generation 0")                    \
    X(attention_half, 500.0, 100.0, 3000.0, "", "sequence at which it reaches half")     \
    X(attention_backward, 0.8, 0.3, 1.2, "", "rate of its backward over its forward")    \
    X(eager_frac, 0.45, 0.1, 0.9, "", "batched products of eager attention over peak")   \
    X(eager_odd_frac, 0.10, 0.02, 1.0, "", "of that, head sizes not a multiple of 8")    \
    X(collective_s, 45e-6, 2e-6, 2e-4, "s", "start-up of a collective")                  \
    X(message_frac, 0.4, 0.0, 2.0, "", "of the half-rate message size, per collective")

#define PT_NETWORK_CONSTANTS(X)                                                          \
    X(rate_frac, 0.73, 0.1, 1.0, "", "rate of collectives over the injection rate")      \
    X(p2p_frac, 0.73, 0.02, 1.0, "", "rate of pipeline transfers over the NIC's share")  \
    X(degrade, 0.0, 0.0, 0.12, "", "of the rate lost per doubling of nodes")             \
    X(latency_s, 30e-6, 5e-6, 5e-4, "s", "per doubling of the nodes of a collective")    \
    X(straggler, 0.002, 0.0, 0.03, "", "slack per doubling of nodes in the job")

/* Rates of one machine as a program measured them (ptprof), in place of the profile's
 * row. */
#define PT_MACHINE_CONSTANTS(X)                                                          \
    X(fp32_flops, 0.0, 0.0, 1e16, "FLOP/s", "peak of fp32 products, one rank")           \
    X(memory_bytes_per_s, 0.0, 0.0, 1e14, "B/s", "of its memory, one rank")              \
    X(allreduce_bytes_per_s, 0.0, 0.0, 1e13, "B/s", "bus bandwidth of an all-reduce")    \
    X(gather_bytes_per_s, 0.0, 0.0, 1e13, "B/s", "the same of gather and scatter")       \
    X(message_bytes_per_s, 0.0, 0.0, 1e13, "B/s", "of a message between two ranks")      \
    X(half_bytes, 0.0, 0.0, 1e9, "B", "collective that reaches half of its rate")        \
    X(copy_bytes_per_s, 0.0, 0.0, 1e13, "B/s", "between the arena and host memory")      \
    X(adam_params_per_s, 0.0, 0.0, 1e13, "1/s", "AdamW on one rank's core")

#endif
