/* The option table: parsing, --help, --dump-options. */
#include "config.h"

#include <string.h>

#include "planner/options.h"

#define MAX_SIZE  16777216.0
#define MAX_RANKS 1048576.0

/* Numbers of the model: all plain, all with a flag that tells whether they were given. */
#define SIZE(name, arg, help, field)                                                     \
    {                                                                                    \
        PT_OPT_U64, 0, name, arg, NULL, help, &g->field, &g->field##_given, NULL, 0,     \
            MAX_SIZE, NULL                                                               \
    }
#define LIST(name, help, field)                                                          \
    {                                                                                    \
        PT_OPT_LIST, 0, name, "LIST", NULL, help, &g->field, NULL, NULL, 0, 0, NULL      \
    }
#define STR(short_name, name, arg, dflt, help, field)                                    \
    {                                                                                    \
        PT_OPT_STR, short_name, name, arg, dflt, help, &g->field, NULL, NULL, 0, 0, NULL \
    }
#define CHOICE(name, arg, dflt, help, field, choices)                                    \
    {                                                                                    \
        PT_OPT_STR, 0, name, arg, dflt, help, &g->field, NULL, choices, 0, 0, NULL       \
    }
#define FLAG(name, help, field)                                                          \
    {                                                                                    \
        PT_OPT_FLAG, 0, name, NULL, NULL, help, &g->field, NULL, NULL, 0, 0, NULL        \
    }
#define SWITCH(name, help, field)                                                        \
    {                                                                                    \
        PT_OPT_FLAG, 0, name, NULL, NULL, help, &g->field, &g->field##_given, NULL, 0,   \
            0, NULL                                                                      \
    }
#define GROUP(title)                                                                     \
    {                                                                                    \
        PT_OPT_GROUP, 0, title, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, NULL           \
    }

enum pt_status planner_options_parse(int argc, char **argv, struct planner_given *g,
                                     bool *done, struct pt_error *err)
{
    const struct pt_opt opts[] = {
        GROUP("Model (one of the first four; sizes given beside them override)"),
        STR('p', "params", "COUNT", NULL,
            "a model of this many parameters, its shape by rule; max: the largest that "
            "fits",
            params),
        STR('m', "model", "PRESET", NULL, "a published model: gpt3-175B, llama2-7B ...",
            model),
        STR(0, "config", "FILE", NULL, "a Hugging Face config.json", config),
        SIZE("layers", "N", "decoder layers", layers),
        SIZE("hidden", "N", "hidden size", hidden),
        SIZE("heads", "N", "attention heads", heads),
        SIZE("kv-heads", "N", "key-value heads", kv_heads),
        SIZE("head-dim", "N", "head size", head_dim),
        SIZE("ffn", "N", "feed-forward size", ffn),
        SIZE("vocab", "N", "vocabulary", vocab),
        SIZE("moe-experts", "N", "experts of a layer", experts),
        SIZE("moe-topk", "N", "experts of a token", topk),
        SIZE("moe-ffn", "N", "feed-forward size of an expert", moe_ffn),
        SIZE("moe-shared-ffn", "N", "feed-forward size of the shared experts together",
             shared_ffn),
        SIZE("moe-dense-layers", "N", "first layers without experts", dense_layers),
        CHOICE("style", "STYLE", NULL, "family of a shape that is not published", style,
               "gpt|llama"),
        SWITCH("gated", "three matrices in the feed-forward (SwiGLU)", gated),
        SWITCH("tied", "embedding and head share weights", tied),
        SWITCH("bias", "biases in the linear layers", bias),
        SWITCH("rmsnorm", "RMSNorm in place of LayerNorm", rmsnorm),

        GROUP("Hardware"),
        STR('n', "gpus", "N", NULL, "GPUs; auto: the smallest number that fits", gpus),
        STR('g', "gpu", "NAME", NULL, "accelerator: H100-80-SXM5, A100 ..., or cpu", gpu),
        { PT_OPT_BYTES, 0, "mem", "SIZE", NULL, "memory of one GPU that may be used",
          &g->mem, &g->mem_given, NULL, 0, 0, &g->mem_unit },
        STR(0, "node", "NAME", NULL, "node type: dgx-h100, aws-p5 ...", node),
        { PT_OPT_U64, 0, "gpus-per-node", "N", NULL, "GPUs in one fast domain",
          &g->gpus_per_node, &g->gpus_per_node_given, NULL, 1, 65536, NULL },
        { PT_OPT_BYTES, 0, "host-mem", "SIZE", NULL, "memory of one host", &g->host_mem,
          &g->host_mem_given, NULL, 0, 0, &g->host_mem_unit },
        STR(0, "network", "RATE", NULL,
            "network of a node, each way: 400Gbps, or a key of the calibration", network),
        { PT_OPT_NUMBER, 0, "tflops", "X", NULL,
          "dense peak of one GPU in the chosen precision", &g->tflops, &g->tflops_given,
          NULL, 1e-6, 1e6, NULL },

        GROUP("Job"),
        { PT_OPT_U64, 'b', "global-batch", "N", NULL, "sequences per step",
          &g->global_batch, &g->global_batch_given, NULL, 1, 268435456, NULL },
        { PT_OPT_U64, 's', "seq-length", "N", NULL, "tokens per sequence", &g->seq,
          &g->seq_given, NULL, 1, 268435456, NULL },
        { PT_OPT_COUNT, 't', "tokens", "COUNT", NULL, "length of the whole run",
          &g->tokens, &g->tokens_given, NULL, 0, 0, NULL },
        STR(0, "precision", "P", NULL, "fp32, tf32, fp16, bf16, fp8, mxfp8 or nvfp4",
            precision),
        CHOICE("optimizer", "NAME", "adam", "optimizer", optimizer, "adam|adam8bit|sgd"),
        CHOICE("grad-type", "TYPE", NULL,
               "accumulated gradients; the stack's when not given", grad_type,
               "bf16|fp32"),
        CHOICE("attention", "KIND", "flash", "attention kernel", attention,
               "flash|eager"),
        { PT_OPT_U64, 0, "vocab-unit", "N", NULL,
          "pad the vocabulary to a multiple of this and tp", &g->vocab_unit,
          &g->vocab_unit_given, NULL, 1, 65536, NULL },
        FLAG("dropout", "train with dropout", dropout),
        SWITCH("compiled", "elementwise operators are fused by a compiler", compiled),
        SWITCH("fused-loss", "the loss keeps no second copy of the logits", fused_loss),
        SWITCH("fused-grad", "gradients add up inside the products", fused_grad),
        { PT_OPT_U64, 0, "seed", "N", "1234", "seed of the run", &g->seed, NULL, NULL, 0,
          4294967295.0, NULL },

        GROUP("Layout (each a value or a list; what is not given is searched)"),
        LIST("tp", "tensor parallel", tp),
        LIST("pp", "pipeline stages", pp),
        LIST("vpp", "chunks per stage (interleaving)", vpp),
        LIST("dp", "data parallel", dp),
        LIST("cp", "context parallel", cp),
        LIST("ep", "expert parallel", ep),
        LIST("zero", "ZeRO stage, 0 to 3", zero),
        LIST("zero-group", "ranks that share optimizer states", zero_group),
        LIST("micro-batch", "sequences per micro-batch", micro_batch),
        LIST("schedule",
             "gpipe, 1f1b, interleaved, zb-h1, zb-h2, zb-v, v-half, v-min, zb-auto",
             schedule),
        LIST("recompute", "none, selective, selective-ops, half, full", recompute),
        SWITCH("sequence-parallel", "split norms and dropout by tp", sequence_parallel),
        STR(0, "offload", "WHAT", "none",
            "optimizer states on the host: none, optimizer, auto or a fraction", offload),
        FLAG("replicate-kv", "allow tp above the key-value heads", replicate_kv),
        FLAG("embedding-slots", "count embedding and head as a layer each",
             embedding_slots),
        FLAG("idle-gpus", "allow GPUs to stay idle", idle_gpus),

        GROUP("Cost model"),
        { PT_OPT_STR, 0, "stack", "NAME", PLANNER_STACK_DEFAULT,
          "training software: generic, ptexec, megatron, fsdp, deepspeed ...", &g->stack,
          &g->stack_given, NULL, 0, 0, NULL },
        STR(0, "calibration", "WHAT", "default",
            "constants: none (datasheets only), default or a file", calibration),
        CHOICE("flop-convention", "HOW", "causal",
               "attention FLOP in MFU: halved or in full", flop_convention,
               "causal|full"),

        GROUP("Search and output"),
        { PT_OPT_U64, 0, "top", "K", "1", "list the best K plans", &g->top, NULL, NULL, 1,
          1000, NULL },
        { PT_OPT_U64, 0, "verify", "K", "1", "simulate the best K plans too; 0: none",
          &g->verify, NULL, NULL, 0, PLANNER_VERIFY_MOST, NULL },
        { PT_OPT_SECONDS, 0, "time-limit", "TIME", NULL,
          "stop the search then, with the best so far (exit 5)", &g->time_limit, NULL,
          NULL, 0, 0, NULL },
        { PT_OPT_FRACTION, 0, "gap", "FRACTION", NULL,
          "stop when the best is proved to be this near", &g->gap, NULL, NULL, 0, 1,
          NULL },
        FLAG("explain", "what more or less of each dimension would do", explain),
        STR('o', "output", "FILE", NULL, "write the plan (JSON); - is standard output",
            output),
        CHOICE("format", "F", "text", "what is printed", format, "text|csv|json"),
        STR(0, "report", "DIR", NULL, "write tables, pictures and a page there", report),
        STR(0, "evaluate", "FILE", NULL,
            "predict every row of a CSV of runs instead; - is standard input", evaluate),
    };
    const struct pt_cli cli = {
        "ptplan",
        "--params COUNT --gpus N --mem SIZE [OPTION]...",
        "Computes whether a model can be split over the GPUs, and the best way to do it.",
        opts,
        sizeof(opts) / sizeof(opts[0]),
    };
    enum pt_status st;
    int first;

    memset(g, 0, sizeof(*g));
    st = pt_cli_parse(&cli, argc, argv, &first, done, err);
    if (st == PT_OK && !*done && first < argc)
        st = pt_fail(err, PT_USAGE, NULL, 0,
                     "'%.80s' is not an option; ptplan takes options only, try --help",
                     argv[first]);
    return st;
}
