/* Command lines: what is refused and why, what is assumed, what is warned of. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "planner/options.h"
#include "tests/unit/unit.h"

#define MAX_WORDS 64

/* A request from words parted by blanks; "_" stands for a blank inside a word. */
struct line {
    char text[2048];
    char *argv[MAX_WORDS + 1];
    int argc;
};

static void split(struct line *l, const char *text)
{
    static char name[] = "ptplan";

    snprintf(l->text, sizeof(l->text), "%s", text);
    l->argc = 1;
    l->argv[0] = name;
    for (char *p = l->text; *p != '\0' && l->argc < MAX_WORDS;) {
        char *end = p + strcspn(p, " ");
        bool last = *end == '\0';

        *end = '\0';
        l->argv[l->argc++] = p;
        for (char *c = p; *c != '\0'; c++)
            if (*c == '_')
                *c = ' ';
        p = last ? end : end + 1;
    }
    l->argv[l->argc] = NULL;
}

static enum pt_status request_of(const char *text, struct planner_request *r,
                                 struct pt_error *err)
{
    const char *dir = getenv("PT_PROFILE_DIR");
    struct planner_given given;
    struct line l;
    bool done;
    enum pt_status st;

    split(&l, text);
    st = planner_options_parse(l.argc, l.argv, &given, &done, err);
    return st != PT_OK
               ? st
               : planner_request_init(r, &given, dir != NULL ? dir : "profiles", err);
}

static const struct {
    const char *line, *sentence;
} refused[] = {
    { "", "which model?" },
    { "--params 7B", "how many GPUs?" },
    { "--params 7B --gpus 8", "which GPU?" },
    { "--params 7B --model gpt3 --gpus 8 --mem 80G", "give one of them" },
    { "--params -1 --gpus 8 --mem 80G", "'-1'" },
    { "--params 0 --gpus 8 --mem 80G", "'0'" },
    { "--params nan --gpus 8 --mem 80G", "'nan'" },
    { "--params= --gpus 8 --mem 80G", "''" },
    { "--params 10BB --gpus 8 --mem 80G", "'10BB'" },
    { "--params 1K --gpus 8 --mem 80G", "10M to 100T" },
    { "--params 7B --gpus 0 --mem 80G", "--gpus" },
    { "--params 7B --gpus 8x --mem 80G", "'8x'" },
    { "--params 7B --gpus 8 --mem 10BB", "'10BB'" },
    { "--params 7B --gpus 8 --mem 80", "not a GPU's memory" },
    { "--params 7B --gpus 8 --mem 900G", "no known GPU has 900.0 GiB" },
    { "--params 7B --gpus 8 --gpu H100 --mem 90G",
      "more than H100-80-SXM5 has (79.7 GiB)" },
    { "--params 7B --gpus 8 --gpu H101",
      "GPU 'H101' is not known; nearest: H20-141, H100-94-NVL, H100" },
    { "--params 7B --gpus 8 --node dgx-h101",
      "node 'dgx-h101' is not known; nearest: dgx-h100" },
    { "--params 7B --gpus 8 --gpu V100 --precision bf16", "V100-32 has no bf16; it has" },
    { "--params 7B --gpus 8 --gpu H100 --network fast", "neither a rate" },
    { "--params 7B --gpus 8 --gpu H100 --network 3Mb", "'3Mb' is not a rate" },
    { "--params 7B --gpus 8 --gpu H100 --stack none", "--stack: 'none' is not known" },
    { "--params 7B --gpus 8 --gpu H100 --offload 2", "'2' is not none, optimizer" },
    { "--params 7B --gpus 8 --gpu H100 --calibration /nonexistent", "/nonexistent" },
    { "--params 7B --gpus 8 --gpu H100 extra", "'extra' is not an option" },
    { "--params 7B --gpus 8 --gpu H100 --tp 1,,2", "empty element" },
    { "--params 7B --gpus 8 --gpu H100 --tp 1,x", "'x'" },
    { "--params 7B --gpus 8 --gpu H100 --zero 4", "--zero" },
    { "--params 7B --gpus 8 --gpu H100 --schedule 2f2b", "'2f2b' is not a schedule" },
    { "--params 7B --gpus 8 --gpu H100 --recompute some", "not a recomputation mode" },
    { "--params 7B --gpus 8 --gpu H100 --micro-batch 0", "--micro-batch" },
    { "--params max --gpus auto --gpu H100", "one of them must be a number" },
    { "--params max --gpus 8 --gpu H100 --layers 3", "cannot have sizes given" },
    { "--model llama2-8B --gpus 8 --mem 80G", "nearest: llama2-7B" },
    { "--layers 4 --hidden 100 --gpus 8 --mem 80G", "--layers, --hidden and --heads" },
    { "--layers 4 --hidden 100 --heads 8 --gpus 8 --mem 80G",
      "hidden size 100 is not a multiple of 8 heads; give --head-dim, or a hidden size "
      "of 104" },
    { "--layers 4 --hidden 96 --heads 3 --kv-heads 2 --gpus 1 --mem 80G",
      "3 heads are not a multiple of 2 kv heads; valid kv heads: 1, 3" },
    /* the pinned layout */
    { "--layers 80 --hidden 8192 --heads 64 --pp 16 --vpp 2 --gpus 128 --mem 80G",
      "80 layers / (PP16 x VP2) is not whole; valid VP: 1, 5" },
    { "--layers 80 --hidden 8192 --heads 64 --tp 4 --cp 1 --pp 16 --vpp 5 --dp 2 "
      "--micro-batch "
      "1 --global-batch 40 --gpus 128 --mem 80G",
      "multiples of PP16, there are 20; nearest: 16 or 32" },
    { "--layers 60 --hidden 6656 --heads 52 --tp 8 --gpus 8 --mem 80G",
      "TP 8 does not divide 52 heads; valid TP: 1, 2, 4, 13, 26, 52" },
    { "--layers 80 --hidden 8192 --heads 64 --kv-heads 8 --tp 16 --gpus 16 --mem 80G",
      "TP 16 exceeds 8 kv heads; use TP 8, or --replicate-kv at a cost of 21.5 GB" },
    { "--params 7B --gpus 12 --tp 8 --mem 80G",
      "12 GPUs are not a multiple of TP8 x PP1 x CP1 = 8; 8 would leave 4 idle "
      "(--idle-gpus), "
      "16" },
    { "--params 7B --gpus 8 --tp 2 --pp 8 --mem 80G",
      "needs 16 GPUs, there are 8; TP2 x PP4" },
    { "--params 7B --gpus 8 --tp 2 --pp 2 --cp 1 --dp 1 --mem 80G",
      "uses 4 of 8 GPUs; DP2" },
    { "--params 7B --gpus 8 --dp 3 --mem 80G", "uses 3 of 8 GPUs" },
    { "--params 7B --gpus 16 --global-batch 24 --micro-batch 1 --dp 16 --mem 80G",
      "global batch 24 mod (micro-batch 1 x DP 16) = 8; nearest global batch: 16 or 32, "
      "or DP "
      "8, 12, 24" },
    { "--params 7B --seq-length 10001 --cp 8 --gpus 8 --mem 80G", "10000 or 10016" },
    { "--params 7B --zero 2 --pp 4 --gpus 16 --mem 80G --stack megatron",
      "--zero 2 with --pp 4: in --stack megatron sharding gradients conflicts" },
    { "--params 7B --zero 3 --gpus 16 --mem 80G --stack megatron",
      "--stack megatron has no ZeRO-3; use --zero 1" },
    { "--params 7B --zero 3 --pp 2 --gpus 16 --mem 80G --stack deepspeed",
      "use --zero 1" },
    { "--params 7B --pp 2 --gpus 16 --mem 80G --stack fsdp", "has no pipeline" },
    { "--params 7B --cp 2 --gpus 16 --mem 80G --stack deepspeed",
      "no context parallelism" },
    { "--params 7B --schedule zb-v --gpus 16 --mem 80G --stack megatron",
      "has no schedule zb-v; it has 1f1b, interleaved" },
    { "--layers 16 --hidden 1024 --heads 16 --moe-experts 64 --moe-topk 6 --ep 6 --gpus "
      "48 "
      "--mem 80G",
      "EP 6 does not divide 64 experts; valid EP: 1, 2, 4, 8, 16, 32, 64" },
    { "--layers 16 --hidden 1024 --heads 16 --moe-experts 64 --ep 64 --dp 8 --tp 1 --cp "
      "1 --pp 1 "
      "--gpus 8 --mem 80G",
      "DP8 x CP1 x TP1 = 8 ranks of a stage; valid EP: 1, 2, 4, 8" },
    { "--params 7B --ep 2 --gpus 8 --mem 80G", "the model has no experts" },
    { "--params 7B --pp 1 --vpp 2 --gpus 8 --mem 80G", "with PP 1 only VP 1" },
    { "--params 7B --schedule interleaved --vpp 1 --pp 2 --gpus 8 --mem 80G",
      "VP of at least 2" },
};

START_TEST(refuses_with_a_sentence)
{
    struct pt_error err = PT_ERROR_INIT;
    struct planner_request r;
    enum pt_status st = request_of(refused[_i].line, &r, &err);

    ck_assert_msg(pt_exit_status(st) == 2, "%s: exit %d", refused[_i].line,
                  pt_exit_status(st));
    ck_assert_msg(strstr(err.text, refused[_i].sentence) != NULL ||
                      strstr(err.where, refused[_i].sentence) != NULL,
                  "%s: '%s' lacks '%s'", refused[_i].line, err.text,
                  refused[_i].sentence);
}
END_TEST

/* Accepted; the sentence is among the assumptions ('=') or the warnings ('!'). */
static const struct {
    const char *line, *sentence;
} accepted[] = {
    { "--params 10B --gpus 16 --mem 80G", "=GPU H100-80-SXM5 in DGX H100" },
    { "--params 10b --gpus 16 --mem 80G", "=G read as GiB" },
    { "--params 10_B --gpus 16 --mem 80GiB",
      "=precision bf16, sequences of 2048 tokens, global batch 1024 (2.1M tokens)" },
    { "--params 1e10 --gpus 16 --mem 80GB", "=GB of 1e9 bytes" },
    { "--params 10e9 --gpus 16 --mem 80G", "=global batch 1024 (" },
    { "--params 7B --gpus 12 --mem 80G", "=global batch 768 (" },
    { "--params 7B --gpus 12 --dp 3,5 --idle-gpus --mem 80G", "=global batch 960 (" },
    { "--model llama3.1-405B --gpus 1024 --gpu H100",
      "=sequences of 8192 tokens (the model allows 131072)" },
    { "--params 1B --seq-length 4096 --gpus 8 --mem 80G", "=4096 learned positions" },
    { "--params 100M --gpu cpu --gpus 4 --mem 2G", "=precision fp32" },
    { "--params 1B --gpu V100 --gpus 4", "=precision fp16" },
    { "--layers 30 --hidden 4096 --heads 32 --pp 4 --gpus 16 --mem 80G",
      "=30 layers over PP 4 are uneven: 8/8/7/7 is +7% on the slowest stage; even "
      "depths: "
      "1,2,3,5,6,10,15,30" },
    { "--layers 30 --hidden 4096 --heads 32 --pp 4 --gpus 16 --mem 80G --stack megatron",
      "=uneven stages in megatron need --decoder-first-pipeline-num-layers" },
    { "--layers 40 --hidden 5120 --heads 40 --pp 16 --gpus 16 --mem 80G",
      "=40 layers over PP 16 are uneven: 8 stages of 3 and 8 of 2 is +20%" },
    { "--layers 70 --hidden 14336 --heads 112 --vocab 250880 --pp 12 --gpus 384 --mem "
      "80G",
      "=(70+2)/12 = 6 is whole" },
    { "--params 7B --gpus 16 --global-batch 4 --micro-batch 1 --pp 16 --tp 1 --cp 1 "
      "--mem 80G",
      "=4 micro-batches in 16 stages: a bubble of (16-1)/(4+16-1) = 79%" },
    { "--model qwen3-8B --vocab 151669 --tp 4 --gpus 8 --mem 80G",
      "=vocabulary 151669 padded to 151672 for TP 4 (least 151672; in units of 128 x TP "
      "152064, "
      "+0.26%)" },
    { "--model qwen3-8B --vocab 151669 --tp 4 --gpus 8 --mem 80G --stack megatron",
      "=padded to 152064" },
    { "--params 1B --zero 2 --gpus 1 --mem 80G", "!ZeRO-2 has nothing to shard over" },
    { "--params 1B --zero 1 --tp 2 --pp 4 --gpus 8 --mem 80G", "!ZeRO-1 has nothing" },
    { "--params 1B --sequence-parallel --tp 1 --gpus 8 --mem 80G",
      "!--sequence-parallel has no effect with TP 1" },
    { "--params 1B --schedule 1f1b --pp 1 --gpus 8 --mem 80G",
      "!--schedule has no effect" },
    { "--params 70B --precision fp32 --gpu A100 --gpus 64",
      "!fp32 runs at 19.5 TFLOP/s on A100-80-SXM4 and bf16 at 312: was --precision bf16 "
      "forgotten?" },
    { "--params 7B --gpu H100 --gpus 8 --tflops 1979",
      "!--tflops 1979 is the sparse figure of H100-80-SXM5 in bf16; the dense peak is "
      "989" },
    { "--params 7B --gpu H100 --gpus 8 --tflops 1500", "!above the dense peak" },
};

START_TEST(says_what_it_assumes)
{
    bool warning = accepted[_i].sentence[0] == '!', found = false;
    const char *sentence = accepted[_i].sentence + 1;
    struct pt_error err = PT_ERROR_INIT;
    const struct planner_notes *notes;
    struct planner_request r;

    ck_assert_msg(request_of(accepted[_i].line, &r, &err) == PT_OK, "%s: %s",
                  accepted[_i].line, err.text);
    notes = warning ? &r.warnings : &r.assumed;
    for (unsigned i = 0; i < notes->n; i++)
        found = found || strstr(notes->text[i], sentence) != NULL;
    ck_assert_msg(found, "%s: nothing says '%s'", accepted[_i].line, sentence);
    /* A plain command line warns of nothing. */
    ck_assert_msg(warning || r.warnings.n == 0, "%s: %s", accepted[_i].line,
                  r.warnings.text[0]);
    planner_request_fini(&r);
}
END_TEST

START_TEST(explicit_sizes_override_a_preset_one_by_one)
{
    struct pt_error err = PT_ERROR_INIT;
    struct planner_request r;
    const struct pt_model *m = &r.setup.model;

    ck_assert_int_eq(
        request_of("--model llama2-7B --layers 4 --vocab 50304 --gpus 1 --mem 80G", &r,
                   &err),
        PT_OK);
    ck_assert_uint_eq(m->layers, 4);
    ck_assert_uint_eq(m->vocab, 50304);
    ck_assert_uint_eq(m->hidden, 4096);
    ck_assert_uint_eq(m->ffn, 11008);
    ck_assert_uint_eq(m->heads, 32);
    ck_assert(m->gated && !m->tied);
    ck_assert_ptr_nonnull(strstr(m->source, "overridden"));
    planner_request_fini(&r);

    ck_assert_int_eq(
        request_of("--model llama2-7B --hidden 2048 --heads 16 --no-gated --tied "
                   "--gpus 1 --mem 80G",
                   &r, &err),
        PT_OK);
    ck_assert_uint_eq(m->hidden, 2048);
    ck_assert_uint_eq(m->kv_heads, 16);
    ck_assert_uint_eq(m->head_dim, 128);
    ck_assert_uint_eq(m->ffn, 8192);
    ck_assert(!m->gated && m->tied);
    planner_request_fini(&r);
}
END_TEST

START_TEST(sizes_alone_are_a_gpt)
{
    struct pt_error err = PT_ERROR_INIT;
    struct planner_request r;
    const struct pt_model *m = &r.setup.model;

    ck_assert_int_eq(
        request_of("--layers 12 --hidden 768 --heads 12 --vocab 50257 --seq-length "
                   "1024 --gpus 1 --mem 80G",
                   &r, &err),
        PT_OK);
    ck_assert(m->tied && m->bias && m->learned_positions && !m->gated && !m->rmsnorm);
    ck_assert_uint_eq(m->ffn, 3072);
    ck_assert_uint_eq(m->position_rows, 1024);
    {
        struct pt_params p;

        pt_model_params(m, &p);
        ck_assert_uint_eq(p.total, 124439808); /* GPT-2's own count */
    }
    planner_request_fini(&r);
    ck_assert_int_eq(
        request_of("--style llama --layers 32 --hidden 4096 --heads 32 --ffn 11008 "
                   "--vocab 32000 --gpus 1 --mem 80G",
                   &r, &err),
        PT_OK);
    ck_assert(!m->tied && !m->bias && !m->learned_positions && m->gated && m->rmsnorm);
    planner_request_fini(&r);
}
END_TEST

START_TEST(hardware_options)
{
    struct pt_error err = PT_ERROR_INIT;
    struct planner_request r;
    const struct pt_cluster *c = &r.setup.cluster;

    ck_assert_int_eq(
        request_of("--params 7B --gpus 32 --gpu H100 --gpus-per-node 4 --network "
                   "400Gbps --host-mem 512GB --mem 40G --tflops 900",
                   &r, &err),
        PT_OK);
    ck_assert_uint_eq(c->gpus, 32);
    ck_assert_uint_eq(c->domain_gpus, 4);
    ck_assert_uint_eq(c->node_gpus, 4);
    ck_assert_double_eq(c->nic_bytes_per_s, 50e9);
    ck_assert_double_eq(c->host_mem_bytes, 512e9);
    ck_assert_double_eq(c->mem_limit_bytes, 40.0 * 1024 * 1024 * 1024);
    ck_assert_double_eq(c->gpu.peak_flops[PT_BF16], 900e12);
    planner_request_fini(&r);
    /* The nominal size of a card means the card. */
    ck_assert_int_eq(request_of("--params 7B --gpus 8 --gpu H100 --mem 80G", &r, &err),
                     PT_OK);
    ck_assert_double_eq(c->mem_limit_bytes, 0);
    planner_request_fini(&r);
    ck_assert_int_eq(request_of("--params 7B --gpus auto --gpu H100", &r, &err), PT_OK);
    ck_assert(r.gpus_auto && c->gpus == 0);
    planner_request_fini(&r);
}
END_TEST

START_TEST(the_space)
{
    struct pt_error err = PT_ERROR_INIT;
    struct planner_request r;
    const struct planner_space *s = &r.space;

    ck_assert_int_eq(
        request_of("--params 7B --gpus 16 --mem 80G --tp 1,2,2,4 --pp 2 --zero 1 "
                   "--no-sequence-parallel --offload auto --recompute full",
                   &r, &err),
        PT_OK);
    ck_assert_uint_eq(s->tp.n, 3);
    ck_assert_uint_eq(s->tp.value[2], 4);
    ck_assert_uint_eq(s->dp.n, 0);
    ck_assert(s->sequence_parallel.n == 1 && s->sequence_parallel.value[0] == 0);
    ck_assert(s->offload && s->offload_frac < 0);
    ck_assert_uint_eq(s->recompute.value[0], PT_RECOMPUTE_FULL);
    ck_assert_uint_eq(s->zero_max_with_pp, 0);
    planner_request_fini(&r);

    ck_assert_int_eq(
        request_of("--params 7B --gpus 16 --mem 80G --stack deepspeed --offload 25%", &r,
                   &err),
        PT_OK);
    ck_assert_uint_eq(s->zero_max_with_pp, 1);
    ck_assert(s->schedule.n == 1 && s->schedule.value[0] == PT_SCHEDULE_1F1B);
    ck_assert(s->cp.n == 1 && s->cp.value[0] == 1);
    ck_assert_double_eq(s->offload_frac, 0.25);
    planner_request_fini(&r);

    ck_assert_int_eq(request_of("--params 7B --gpus 16 --mem 80G --stack fsdp", &r, &err),
                     PT_OK);
    ck_assert(s->pp.n == 1 && s->pp.value[0] == 1);
    planner_request_fini(&r);

    /* Chunks alone mean interleaving. */
    ck_assert_int_eq(
        request_of("--layers 32 --hidden 1024 --heads 8 --gpus 16 --mem 80G --vpp 2", &r,
                   &err),
        PT_OK);
    ck_assert(s->schedule.n == 1 && s->schedule.value[0] == PT_SCHEDULE_INTERLEAVED);
    planner_request_fini(&r);
}
END_TEST

/* Replicas of every GPU count divide the default batch, and it is near what is published.
 */
START_TEST(default_batch)
{
    for (uint32_t gpus = 1; gpus <= 96; gpus++) {
        uint32_t batch = planner_default_batch(7e9, 2048, gpus, 1), pp = gpus;

        while (pp % 2 == 0)
            pp /= 2;
        ck_assert_uint_eq(batch % pp, 0);
        ck_assert_msg(batch >= 690 && batch <= 1480, "%u GPUs: %u", (unsigned)gpus,
                      (unsigned)batch);
    }
    ck_assert_uint_eq(planner_default_batch(175e9, 2048, 1024, 1), 2048);
    ck_assert_uint_eq(planner_default_batch(1e8, 1u << 28, 1, 1), 1);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("options");
    TCase *t = tcase_create("options");

    tcase_add_loop_test(t, refuses_with_a_sentence, 0, N_ROWS(refused));
    tcase_add_loop_test(t, says_what_it_assumes, 0, N_ROWS(accepted));
    tcase_add_test(t, explicit_sizes_override_a_preset_one_by_one);
    tcase_add_test(t, sizes_alone_are_a_gpt);
    tcase_add_test(t, hardware_options);
    tcase_add_test(t, the_space);
    tcase_add_test(t, default_batch);
    suite_add_tcase(s, t);
    return unit_run(s);
}
