#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libpt/schedule.h"
#include "tests/unit/unit.h"

static void build(enum pt_schedule_kind kind, uint32_t pp, uint32_t vpp, uint32_t m,
                  struct pt_schedule *sc)
{
    struct pt_schedule_spec spec = {
        .kind = kind, .pp = pp, .vpp = vpp, .micro_batches = m
    };
    struct pt_error err = PT_ERROR_INIT;

    ck_assert_msg(pt_schedule_pipeline(&spec, sc, &err) == PT_OK, "%s", err.text);
}

static void list_is(const struct pt_program *prog, const char *want)
{
    char got[512] = "";

    for (size_t i = 0; i < prog->n; i++) {
        static const char letters[] = "FBIWsrsr";
        size_t n = strlen(got);

        if (prog->instr[i].kind <= PT_RECV_GRADIENT)
            snprintf(got + n, sizeof(got) - n, "%s%c%u", n ? " " : "",
                     letters[prog->instr[i].kind], prog->instr[i].micro_batch);
    }
    ck_assert_str_eq(got, want);
}

static const struct {
    enum pt_schedule_kind kind;
    uint32_t pp, m, stage;
    const char *want;
} lists[] = {
    { PT_SCHEDULE_NONE, 1, 2, 0, "F0 B0 F1 B1" },
    { PT_SCHEDULE_GPIPE, 2, 2, 0, "F0 s0 F1 s1 r0 B0 r1 B1" },
    { PT_SCHEDULE_GPIPE, 2, 2, 1, "r0 F0 r1 F1 B0 s0 B1 s1" },
    { PT_SCHEDULE_1F1B, 3, 4, 0, "F0 s0 F1 s1 F2 s2 r0 B0 F3 s3 r1 B1 r2 B2 r3 B3" },
    { PT_SCHEDULE_1F1B, 3, 2, 2, "r0 F0 B0 s0 r1 F1 B1 s1" },
    { PT_SCHEDULE_ZB_H1, 2, 3, 1, "r0 F0 I0 s0 r1 F1 I1 s1 W0 r2 F2 I2 s2 W1 W2" },
    { PT_SCHEDULE_ZB_H2, 2, 3, 0, "F0 s0 F1 s1 F2 s2 r0 I0 W0 r1 I1 W1 r2 I2 W2" },
};

START_TEST(writes_the_published_order)
{
    struct pt_schedule sc;

    build(lists[_i].kind, lists[_i].pp, 1, lists[_i].m, &sc);
    list_is(&sc.stage[lists[_i].stage], lists[_i].want);
    pt_schedule_fini(&sc);
}
END_TEST

/* Unit times: makespans of tests/data/validation/schedules.csv in thousandths. */
static const struct {
    enum pt_schedule_kind kind;
    uint32_t pp, vpp, m;
    double makespan, peak;
} figures[] = {
    { PT_SCHEDULE_GPIPE, 4, 1, 16, 57, 16 },
    { PT_SCHEDULE_1F1B, 4, 1, 16, 57, 4 },
    { PT_SCHEDULE_1F1B, 16, 1, 64, 237, 16 },
    { PT_SCHEDULE_INTERLEAVED, 4, 2, 16, 52.5, 5.5 },
    { PT_SCHEDULE_INTERLEAVED, 8, 2, 32, 106.5, 11.5 },
    { PT_SCHEDULE_ZB_H1, 8, 1, 32, 103, 8 },
    { PT_SCHEDULE_ZB_H2, 8, 1, 32, 103, 15 },
    { PT_SCHEDULE_ZB_H1, 16, 1, 64, 207, 16 },
};

START_TEST(has_the_published_makespan_and_peak)
{
    double one[32];
    struct pt_schedule_times times = { one, one, one, 0 };
    struct pt_schedule_figures f;
    struct pt_schedule sc;

    for (unsigned i = 0; i < 32; i++)
        one[i] = 1.0 / figures[_i].vpp;
    build(figures[_i].kind, figures[_i].pp, figures[_i].vpp, figures[_i].m, &sc);
    ck_assert_int_eq(pt_schedule_check(&sc, NULL), PT_OK);
    ck_assert_int_eq(pt_schedule_time(&sc, &times, &f, NULL, NULL, NULL), PT_OK);
    ck_assert_double_eq_tol(f.makespan_s, figures[_i].makespan, 1e-9);
    ck_assert_double_eq_tol(f.peak_activations, figures[_i].peak, 1e-9);
    pt_schedule_fini(&sc);
}
END_TEST

START_TEST(refuses_a_ragged_interleaving)
{
    struct pt_schedule_spec spec = {
        .kind = PT_SCHEDULE_INTERLEAVED, .pp = 4, .vpp = 2, .micro_batches = 10
    };
    struct pt_error err = PT_ERROR_INIT;
    struct pt_schedule sc;

    ck_assert_int_eq(pt_schedule_pipeline(&spec, &sc, &err), PT_USAGE);
    ck_assert_ptr_nonnull(strstr(err.text, "8 and 12"));
}
END_TEST

/* Two stages that both receive first. */
START_TEST(names_the_cycle_of_a_deadlock)
{
    struct pt_error err = PT_ERROR_INIT;
    struct pt_schedule sc;
    struct pt_instr swap;
    struct pt_program *first;

    build(PT_SCHEDULE_1F1B, 2, 1, 2, &sc);
    first = &sc.stage[0]; /* F0 s0 F1 s1 r0 B0 r1 B1 -> F0 F1 r0 B0 s0 .. */
    swap = first->instr[1];
    memmove(&first->instr[1], &first->instr[2], 3 * sizeof(swap));
    first->instr[4] =
        swap; /* F0 F1 s1 r0 s0: gradient 0 is awaited before activation 0 goes */
    swap = first->instr[2];
    memmove(&first->instr[2], &first->instr[3], 2 * sizeof(swap));
    first->instr[4] = swap;
    swap = first->instr[3];
    ck_assert_int_eq(swap.kind, PT_SEND_ACTIVATION);
    ck_assert_int_eq(pt_schedule_check(&sc, &err), PT_INPUT);
    ck_assert_msg(strstr(err.text, "deadlocks") && strstr(err.text, "RECV_GRADIENT") &&
                      strstr(err.text, "RECV_ACTIVATION") && strstr(err.text, "stage 1"),
                  "%s", err.text);
    pt_schedule_fini(&sc);
}
END_TEST

/* One fault each; the sentence must say which. */
static const struct {
    size_t at; /* instruction of stage 0 in 1F1B, 2 stages, 2 micro-batches */
    struct pt_instr put;
    const char *says;
} faults[] = {
    { 3, { PT_BARRIER, 0, 0, 0 }, "waits for the activation of chunk 0, micro-batch 1" },
    { 1, { PT_BARRIER, 0, 0, 0 }, "out of the order of its channel" },
    { 1, { PT_SEND_ACTIVATION, 0, 0, 0 }, "to itself" },
    { 1, { PT_SEND_GRADIENT, 0, 1, 0 }, "neighbouring piece" },
    { 2, { PT_FORWARD, 0, 0, 0 }, "computed twice" },
    { 0, { PT_BARRIER, 0, 0, 0 }, "sent before it is computed" },
    { 0, { PT_BACKWARD, 0, 0, 0 }, "no activation is held" },
    { 4, { PT_BARRIER, 0, 0, 0 }, "its input was not received" },
    { 7, { PT_BARRIER, 0, 0, 0 }, "never ends micro-batch 1 of chunk 0" },
    { 0, { PT_FORWARD, 0, 0, 2 }, "out of range" },
    { 0, { PT_FORWARD, 1, 0, 0 }, "out of range" },
    { 0, { 200, 0, 0, 0 }, "unknown kind" },
    { 0, { PT_FORWARD, 0, 0, 1 }, "ascending" },
    { 7, { PT_NORM, 0, 0, 0 }, "never ends" },
};

START_TEST(names_stage_instruction_and_fault)
{
    struct pt_error err = PT_ERROR_INIT;
    struct pt_schedule sc;

    build(PT_SCHEDULE_1F1B, 2, 1, 2, &sc);
    sc.stage[0].instr[faults[_i].at] = faults[_i].put;
    ck_assert_int_eq(pt_schedule_check(&sc, &err), PT_INPUT);
    ck_assert_msg(strstr(err.text, faults[_i].says) != NULL, "%s", err.text);
    ck_assert_msg(strstr(err.text, "stage ") != NULL, "%s", err.text);
    pt_schedule_fini(&sc);
}
END_TEST

/* A collective that one stage lacks is a deadlock that names it. */
START_TEST(names_the_stage_that_misses_a_collective)
{
    struct pt_error err = PT_ERROR_INIT;
    struct pt_schedule sc;
    struct pt_program *prog;

    build(PT_SCHEDULE_1F1B, 2, 1, 2, &sc);
    prog = &sc.stage[1];
    prog->instr = realloc(prog->instr, (prog->n + 1) * sizeof(*prog->instr));
    ck_assert_ptr_nonnull(prog->instr);
    prog->instr[prog->n++] = (struct pt_instr){ PT_NORM, 0, 0, 0 };
    ck_assert_int_eq(pt_schedule_check(&sc, &err), PT_INPUT);
    ck_assert_msg(strstr(err.text, "stage 1 waits at NORM") &&
                      strstr(err.text, "stage 0, which has ended"),
                  "%s", err.text);
    pt_schedule_fini(&sc);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("schedule");
    TCase *t = tcase_create("lists");

    tcase_add_loop_test(t, writes_the_published_order, 0,
                        sizeof(lists) / sizeof(lists[0]));
    tcase_add_loop_test(t, has_the_published_makespan_and_peak, 0,
                        sizeof(figures) / sizeof(figures[0]));
    tcase_add_test(t, refuses_a_ragged_interleaving);
    tcase_add_test(t, names_the_cycle_of_a_deadlock);
    tcase_add_loop_test(t, names_stage_instruction_and_fault, 0,
                        sizeof(faults) / sizeof(faults[0]));
    tcase_add_test(t, names_the_stage_that_misses_a_collective);
    suite_add_tcase(s, t);
    return unit_run(s);
}
