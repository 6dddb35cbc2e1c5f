/* Seeded properties of the memory model: the rows that the search's MILP sees are what
 * pt_memory_init reports, parts add up, and what must help never hurts. */
#include "config.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "libpt/memory.h"
#include "libpt/schedule.h"
#include "tests/prop/prop.h"

static uint32_t pick(struct prop_rng *rng, const uint32_t *from, uint64_t n)
{
    return from[prop_below(rng, n)];
}
#define PICK(rng, ...)                                                                   \
    pick(rng, (const uint32_t[]){ __VA_ARGS__ },                                         \
         sizeof((const uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t))

/* A random stack: any constant anywhere in its range. */
static void random_stack(struct prop_rng *rng, struct pt_stack *stack)
{
#define X(name, dflt, lo, hi, unit, help)                                                \
    stack->name = prop_below(rng, 3) ? dflt : lo + (hi - lo) * prop_unit(rng);
    PT_STACK_CONSTANTS(X)
#undef X
}

struct sample {
    struct pt_setup setup;
    struct pt_layout layout;
    struct pt_split split;
};

static void random_model(struct prop_rng *rng, struct pt_model *m)
{
    *m = (struct pt_model){ .layers = 1 + (uint32_t)prop_below(rng, 40),
                            .hidden = PICK(rng, 256, 1024, 4096, 12288),
                            .heads = PICK(rng, 8, 16, 32),
                            .vocab = PICK(rng, 1000, 50257, 151669),
                            .max_seq = 4096,
                            .gated = prop_below(rng, 2),
                            .tied = prop_below(rng, 2),
                            .bias = prop_below(rng, 2),
                            .learned_positions = prop_below(rng, 2) };
    m->kv_heads = m->heads >> prop_below(rng, 4);
    m->head_dim = m->hidden / m->heads;
    m->ffn = 3 * m->hidden;
    m->rmsnorm = m->gated;
    if (prop_below(rng, 3) == 0) {
        m->experts = 8;
        m->topk = 2;
        m->moe_ffn = m->hidden / 2;
        m->shared_ffn = prop_below(rng, 2) ? m->hidden : 0;
        m->dense_layers = (uint32_t)prop_below(rng, m->layers);
    }
    if (prop_below(rng, 4) == 0) {
        m->q_lora = prop_below(rng, 2) ? 1536 : 0;
        m->kv_lora = 512;
        m->qk_nope = m->v_dim = 128;
        m->qk_rope = 64;
        m->kv_heads = m->heads;
    }
}

static void random_layout(struct prop_rng *rng, const struct pt_model *m,
                          struct pt_layout *l)
{
    *l = (struct pt_layout){ .tp = PICK(rng, 1, 2, 4, 8),
                             .pp = 1 + (uint32_t)prop_below(rng, 6),
                             .vpp = 1,
                             .cp = PICK(rng, 1, 1, 2),
                             .ep = 1,
                             .dp = PICK(rng, 1, 2, 8, 64),
                             .zero = (uint32_t)prop_below(rng, 4),
                             .micro_batch = PICK(rng, 1, 2, 4),
                             .replicate_kv = true };
    l->recompute = (enum pt_recompute)prop_below(rng, PT_N_RECOMPUTES);
    l->sequence_parallel = l->tp > 1 && prop_below(rng, 2);
    if (l->pp > m->layers)
        l->pp = m->layers;
    if (m->experts)
        l->ep = PICK(rng, 1, 2, 4);
    while (l->ep > l->dp * l->cp * l->tp)
        l->ep /= 2;
    l->schedule = PT_SCHEDULE_NONE;
    if (l->pp > 1) {
        l->schedule = (enum pt_schedule_kind)(
            PT_SCHEDULE_GPIPE + prop_below(rng, PT_N_SCHEDULES - PT_SCHEDULE_GPIPE));
        l->vocab = (enum pt_vocab_kind)(
            prop_below(rng, 3) ? 0 : prop_below(rng, PT_N_VOCAB_KINDS));
    }
    if (pt_schedule_is_v(l->schedule))
        l->vpp = 2;
    if (l->schedule == PT_SCHEDULE_INTERLEAVED)
        l->vpp = 2 + (uint32_t)prop_below(rng, 3);
    if (l->schedule == PT_SCHEDULE_ZB_AUTO && prop_below(rng, 2))
        l->max_in_flight = 2 * l->pp;
}

static void random_sample(struct prop_rng *rng, struct sample *x)
{
    struct pt_setup *s = &x->setup;

    memset(x, 0, sizeof(*x));
    random_model(rng, &s->model);
    random_layout(rng, &s->model, &x->layout);
    random_stack(rng, &s->stack);
    s->job =
        (struct pt_job){ .seq = PICK(rng, 512, 4096),
                         .precision = (enum pt_precision)prop_below(rng, PT_N_PRECISIONS),
                         .attention =
                             prop_below(rng, 2) ? PT_ATTENTION_FLASH : PT_ATTENTION_EAGER,
                         .dropout = prop_below(rng, 2),
                         .fused_grad_accumulation = prop_below(rng, 2),
                         .fused_cross_entropy = prop_below(rng, 2),
                         .compiled = prop_below(rng, 2),
                         .loss_chunks = (uint32_t)prop_below(rng, 3),
                         .vocab_unit = PICK(rng, 0, 1, 128) };
    s->job.global_batch = x->layout.dp * x->layout.micro_batch * x->layout.pp *
                          (1 + (uint32_t)prop_below(rng, 9));
    pt_dtypes_for_stack(&s->stack, s->job.precision,
                        (enum pt_optimizer)prop_below(rng, PT_N_OPTIMIZERS),
                        &s->job.dtypes);
    s->cluster.gpu.mem_bytes = 80e9;
    s->cluster.node_gpus = PICK(rng, 1, 4, 8);
    REQUIRE(pt_split_init(&x->split, x->layout.pp, x->layout.vpp, NULL) == PT_OK,
            "memory");
    pt_split_even(&x->split, &s->model, &x->layout, false);
    for (uint32_t i = 0; i < x->layout.pp; i++) {
        x->split.offload_frac[i] = prop_below(rng, 2) ? prop_unit(rng) : 0.0;
        for (uint32_t c = 0; c < x->layout.vpp; c++)
            for (int k = 0; k < PT_N_LAYER_KINDS; k++) {
                struct pt_chunk *chunk = &x->split.chunk[c * x->layout.pp + i];

                chunk->recomputed[k] = (uint16_t)prop_below(rng, chunk->layers[k] + 1U);
            }
    }
}

static void price(struct prop_rng *rng, const struct sample *x,
                  struct pt_memory_terms *terms, struct pt_memory *memory)
{
    pt_memory_terms_init(&x->setup, &x->layout, terms);
    REQUIRE(pt_memory_init(&x->setup, &x->layout, terms, &x->split, memory, NULL) ==
                PT_OK,
            "memory");
}

static bool about(double a, double b)
{
    return fabs(a - b) <= 1e-9 * (fabs(a) + fabs(b)) + 1e-3;
}

/* A stage is the largest of its first n_rows rows; the rest are never larger; parts add
 * up, none is negative; the figures nest. */
static void rows_and_parts(struct prop_rng *rng)
{
    struct pt_memory_terms terms;
    struct pt_memory memory;
    struct sample x;

    random_sample(rng, &x);
    price(rng, &x, &terms, &memory);
    REQUIRE(terms.n_rows >= 1 && terms.n_rows <= terms.n_all &&
                terms.n_all <= PT_MEMORY_ROWS,
            "%u of %u rows", terms.n_rows, terms.n_all);
    for (uint32_t s = 0; s < x.layout.pp; s++) {
        const struct pt_stage_memory *stage = &memory.stage[s];
        struct pt_stage_content content;
        double largest = 0.0, sum = 0.0;

        pt_stage_content(&x.layout, &x.split, pt_micro_batches(&x.setup.job, &x.layout),
                         s, &content);
        for (unsigned i = 0; i < terms.n_rows; i++)
            largest = fmax(largest, pt_memory_row_bytes(&terms.row[i], &content));
        REQUIRE(about(largest, stage->allocated_bytes),
                "stage %u: rows %.17g, stage %.17g", s, largest, stage->allocated_bytes);
        REQUIRE(about(pt_memory_device_bytes(&terms, largest), stage->device_bytes),
                "stage %u", s);
        for (int i = 0; i < PT_N_MEMORY_PARTS; i++) {
            REQUIRE(stage->part_bytes[i] >= -1e-6 * stage->allocated_bytes,
                    "stage %u: %s is %g", s, pt_memory_part_name((enum pt_memory_part)i),
                    stage->part_bytes[i]);
            sum += stage->part_bytes[i];
        }
        REQUIRE(about(sum, stage->device_bytes), "stage %u: parts %.17g, device %.17g", s,
                sum, stage->device_bytes);
        REQUIRE(stage->allocated_bytes <= stage->reserved_bytes &&
                    stage->reserved_bytes <= stage->device_bytes &&
                    stage->device_bytes <= memory.device_bytes,
                "stage %u", s);
    }
    REQUIRE(memory.worst_stage < x.layout.pp &&
                memory.stage[memory.worst_stage].device_bytes == memory.device_bytes,
            "worst stage %u", memory.worst_stage);
    pt_memory_fini(&memory);
    pt_split_fini(&x.split);
}

/* The rows are linear: what a layer, a recomputed layer and a fraction add does not
 * depend on how many there are. */
static void rows_are_linear(struct prop_rng *rng)
{
    struct pt_memory_terms terms;
    struct pt_stage_content a = { 0 };
    struct sample x;

    random_sample(rng, &x);
    pt_memory_terms_init(&x.setup, &x.layout, &terms);
    a.in_flight = 1.0 + 7.0 * prop_unit(rng);
    a.first = prop_below(rng, 2);
    a.last = prop_below(rng, 2);
    for (int k = 0; k < PT_N_LAYER_KINDS; k++) {
        a.layers[k] = 2.0 + (double)prop_below(rng, 9);
        a.recomputed[k] = 1.0;
    }
    for (unsigned i = 0; i < terms.n_all; i++)
        for (int k = 0; k < PT_N_LAYER_KINDS; k++) {
            struct pt_stage_content b = a, c = a;
            double at_a, at_b, at_c;

            b.layers[k] += 1.0;
            c.layers[k] += 2.0;
            b.recomputed[k] += 1.0;
            c.recomputed[k] += 2.0;
            at_a = pt_memory_row_bytes(&terms.row[i], &a);
            at_b = pt_memory_row_bytes(&terms.row[i], &b);
            at_c = pt_memory_row_bytes(&terms.row[i], &c);
            REQUIRE(about(at_b - at_a, at_c - at_b), "row %u", i);
        }
    pt_split_fini(&x.split);
}

/* One more recomputed layer of a stage that recomputes some, more ZeRO below 3, more of
 * the optimizer offloaded: never more memory. (The first recomputed layer brings a
 * working set; ZeRO-3 brings gathered layers.) */
static void relief_never_hurts(struct prop_rng *rng)
{
    struct pt_memory_terms terms;
    struct pt_memory before, after;
    struct sample x;
    uint32_t s;
    int k;

    random_sample(rng, &x);
    s = (uint32_t)prop_below(rng, x.layout.pp);
    k = (int)prop_below(rng, PT_N_LAYER_KINDS);
    price(rng, &x, &terms, &before);
    if (x.split.chunk[s].recomputed[k] > 0 &&
        x.split.chunk[s].recomputed[k] < x.split.chunk[s].layers[k] &&
        terms.checkpoint_bytes[k] <= terms.activation_bytes[k]) {
        x.split.chunk[s].recomputed[k]++;
        price(rng, &x, &terms, &after);
        x.split.chunk[s].recomputed[k]--;
        REQUIRE(after.stage[s].device_bytes <= before.stage[s].device_bytes * (1 + 1e-12),
                "recompute: %g then %g", before.stage[s].device_bytes,
                after.stage[s].device_bytes);
        pt_memory_fini(&after);
    }
    if (x.layout.zero < 2) {
        x.layout.zero++;
        price(rng, &x, &terms, &after);
        x.layout.zero--;
        REQUIRE(after.device_bytes <= before.device_bytes * (1 + 1e-12),
                "zero %u: %g then %g", x.layout.zero, before.device_bytes,
                after.device_bytes);
        pt_memory_fini(&after);
    }
    if (x.split.offload_frac[s] < 1.0) {
        x.split.offload_frac[s] = 1.0;
        price(rng, &x, &terms, &after);
        REQUIRE(after.stage[s].device_bytes <=
                        before.stage[s].device_bytes * (1 + 1e-12) &&
                    after.stage[s].host_bytes >= before.stage[s].host_bytes * (1 - 1e-12),
                "offload: %g then %g", before.stage[s].device_bytes,
                after.stage[s].device_bytes);
        pt_memory_fini(&after);
    }
    pt_memory_fini(&before);
    pt_split_fini(&x.split);
}

/* Half the micro-batch at twice as many: no moment of a layer or of the head needs more,
 * and no stage, but for the gradient of the embedding, which comes when one micro-batch's
 * activations are free: less is free then. */
static void smaller_micro_batch_never_hurts(struct prop_rng *rng)
{
    struct pt_memory_terms large, small;
    struct sample x;
    uint32_t few, many;

    random_sample(rng, &x);
    few = pt_micro_batches(&x.setup.job, &x.layout);
    many = 2 * few;
    x.layout.micro_batch *= 2;
    x.setup.job.global_batch *= 2;
    /* a zero-bubble pipeline that is full frees a part that a shallow one does not */
    x.setup.stack.mem_split_freed = 0.0;
    pt_memory_terms_init(&x.setup, &x.layout, &large);
    x.layout.micro_batch /= 2;
    pt_memory_terms_init(&x.setup, &x.layout, &small);
    REQUIRE(large.n_all == small.n_all, "%u and %u rows", large.n_all, small.n_all);
    for (uint32_t s = 0; s < x.layout.pp; s++) {
        struct pt_stage_content at_few, at_many;

        pt_stage_content(&x.layout, &x.split, few, s, &at_few);
        pt_stage_content(&x.layout, &x.split, many, s, &at_many);
        for (enum pt_moment moment = PT_MOMENT_ANY; moment <= PT_MOMENT_HEAD; moment++) {
            double before = 0.0, after = 0.0;

            for (unsigned i = 0; i < small.n_all; i++) {
                if (large.row[i].moment == moment)
                    before = fmax(before, pt_memory_row_bytes(&large.row[i], &at_few));
                if (small.row[i].moment == moment)
                    after = fmax(after, pt_memory_row_bytes(&small.row[i], &at_many));
            }
            REQUIRE(after <= before * (1 + 1e-12), "stage %u, moment %d: %g then %g", s,
                    (int)moment, before, after);
        }
    }
    pt_split_fini(&x.split);
}

/* The fullest host, rank by rank. */
static void hosts_by_rank(struct prop_rng *rng)
{
    struct pt_memory_terms terms;
    struct pt_memory memory;
    struct sample x;
    uint32_t width;
    double fullest = 0.0, bytes = 0.0;

    random_sample(rng, &x);
    price(rng, &x, &terms, &memory);
    width = x.layout.tp * x.layout.cp * x.layout.dp;
    for (uint32_t rank = 0; rank < width * x.layout.pp; rank++) {
        if (rank % x.setup.cluster.node_gpus == 0)
            bytes = 0.0;
        bytes += memory.stage[rank / width].host_bytes;
        fullest = fmax(fullest, bytes);
    }
    REQUIRE(about(fullest, memory.host_bytes), "by rank %g, said %g", fullest,
            memory.host_bytes);
    pt_memory_fini(&memory);
    pt_split_fini(&x.split);
}

/* pt_in_flight is what the instruction lists hold: never less, and equal for the
 * schedules whose lists are fixed. */
static void in_flight_is_the_schedules_peak(struct prop_rng *rng)
{
    enum { MAX_PIECES = 64 };
    struct pt_layout l = { .tp = 1, .cp = 1, .ep = 1, .dp = 1, .vpp = 1 };
    struct pt_schedule_figures figures;
    struct pt_schedule_spec spec;
    struct pt_schedule schedule;
    struct pt_schedule_times times;
    double second[MAX_PIECES], peak[16];

    if (prop_below(rng, 20) != 0) /* the searched schedules take their time */
        return;
    l.pp = 2 + (uint32_t)prop_below(rng, 11);
    l.schedule = (enum pt_schedule_kind)(
        PT_SCHEDULE_GPIPE + prop_below(rng, PT_N_SCHEDULES - PT_SCHEDULE_GPIPE));
    if (pt_schedule_is_v(l.schedule))
        l.vpp = 2;
    if (l.schedule == PT_SCHEDULE_INTERLEAVED)
        l.vpp = 2 + (uint32_t)prop_below(rng, 3);
    if (l.schedule == PT_SCHEDULE_ZB_AUTO && prop_below(rng, 2))
        l.max_in_flight = 2 * l.pp;
    spec = (struct pt_schedule_spec){ .kind = l.schedule,
                                      .pp = l.pp,
                                      .vpp = l.vpp,
                                      .micro_batches =
                                          l.pp * (1 + (uint32_t)prop_below(rng, 5)),
                                      .max_in_flight = l.max_in_flight };
    REQUIRE(pt_schedule_pipeline(&spec, &schedule, NULL) == PT_OK, "kind %d",
            (int)l.schedule);
    for (uint32_t i = 0; i < MAX_PIECES; i++)
        second[i] = 1.0 / l.vpp;
    times = (struct pt_schedule_times){ second, second, second, 0.0 };
    REQUIRE(pt_schedule_time(&schedule, &times, &figures, peak, NULL, NULL) == PT_OK,
            "time");
    for (uint32_t s = 0; s < l.pp; s++) {
        double said = pt_in_flight(&l, spec.micro_batches, s);

        REQUIRE(said >= peak[s] - 1e-9, "%s p %u v %u m %u stage %u: %g of %g",
                pt_schedule_name(l.schedule), l.pp, l.vpp, spec.micro_batches, s, said,
                peak[s]);
        if (l.schedule <= PT_SCHEDULE_ZB_V)
            REQUIRE(said <= peak[s] + 1e-9, "%s p %u v %u m %u stage %u: %g of %g",
                    pt_schedule_name(l.schedule), l.pp, l.vpp, spec.micro_batches, s,
                    said, peak[s]);
    }
    pt_schedule_fini(&schedule);
}

int main(void)
{
    static const struct prop props[] = {
        { "rows and parts", rows_and_parts },
        { "rows are linear", rows_are_linear },
        { "relief never hurts", relief_never_hurts },
        { "a smaller micro-batch never hurts", smaller_micro_batch_never_hurts },
        { "hosts by rank", hosts_by_rank },
        { "in flight is the schedule's peak", in_flight_is_the_schedules_peak },
    };

    return prop_run(props, sizeof(props) / sizeof(props[0]), 2000);
}
