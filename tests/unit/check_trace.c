#include "config.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "libpt/trace.h"
#include "tests/unit/unit.h"

START_TEST(reads_back_what_it_writes)
{
    const struct pt_instr f = { PT_FORWARD, 1, 0, 3 }, b = { PT_BACKWARD, 0, 0, 3 };
    struct pt_error err = PT_ERROR_INIT;
    struct pt_trace_sums sums;
    struct pt_trace *trace;
    char path[] = "check_trace.XXXXXX";

    ck_assert_int_ge(mkstemp(path), 0);
    ck_assert_int_eq(pt_trace_open(path, "check", &trace, &err), PT_OK);
    pt_trace_rank(trace, 2, 1);
    pt_trace_span(trace, 2, PT_STREAM_COMPUTE, &f, 0.5, 0.75);
    pt_trace_span(trace, 2, PT_STREAM_COMPUTE, &f, 1, 1.5);
    pt_trace_span(trace, 0, PT_STREAM_COMPUTE, &b, 1, 3);
    pt_trace_flow(trace, 1, 2, 0.75, 0, 1);
    pt_trace_counter(trace, 0, "memory", 1, 12345);
    ck_assert_int_eq(pt_trace_close(trace, &err), PT_OK);
    ck_assert_msg(pt_trace_read(path, &sums, &err) == PT_OK, "%s: %s", err.where,
                  err.text);
    unlink(path);
    ck_assert_uint_eq(sums.kind[PT_FORWARD].n, 2);
    ck_assert_double_eq_tol(sums.kind[PT_FORWARD].total_s, 0.75, 1e-9);
    ck_assert_double_eq_tol(sums.kind[PT_BACKWARD].total_s, 2, 1e-9);
    ck_assert_uint_eq(sums.kind[PT_NORM].n, 0);
    ck_assert_uint_eq(sums.ranks, 3);
    ck_assert_double_eq_tol(sums.start_s, 0.5, 1e-9);
    ck_assert_double_eq_tol(sums.end_s, 3, 1e-9);
}
END_TEST

static const struct {
    const char *text, *says;
} bad[] = {
    { "", "" },
    { "{", "" },
    { "{}", "not a trace" },
    { "[]", "not a trace" },
    { "[3]", "" },
    { "{\"traceEvents\":[{\"ph\":\"X\",\"name\":\"FORWARD\",\"dur\":1}]}", "ts" },
    { "{\"traceEvents\":[{\"ph\":\"X\",\"name\":\"FORWARD\",\"ts\":0,\"dur\":-1}]}",
      "dur" },
    { "{\"traceEvents\":[{\"ph\":\"X\",\"name\":7,\"ts\":0,\"dur\":1}]}", "name" },
    { "{\"traceEvents\":[{\"ph\":\"B\",\"name\":\"FORWARD\",\"ts\":0}]}", "not a trace" },
};

START_TEST(refuses_what_is_no_trace)
{
    struct pt_error err = PT_ERROR_INIT;
    struct pt_trace_sums sums;

    ck_assert_int_eq(
        pt_trace_parse("t.json", bad[_i].text, strlen(bad[_i].text), &sums, &err),
        PT_INPUT);
    ck_assert_msg(strstr(err.where, "t.json") != NULL, "%s", err.where);
    ck_assert_msg(strstr(err.text, bad[_i].says) || strstr(err.where, bad[_i].says),
                  "%s: %s", err.where, err.text);
}
END_TEST

START_TEST(a_full_disk_is_an_error)
{
    const struct pt_instr f = { PT_FORWARD, 0, 0, 0 };
    struct pt_error err = PT_ERROR_INIT;
    struct pt_trace *trace;

    if (access("/dev/full", W_OK) != 0)
        return;
    ck_assert_int_eq(pt_trace_open("/dev/full", "check", &trace, &err), PT_OK);
    pt_trace_span(trace, 0, PT_STREAM_COMPUTE, &f, 0, 1);
    ck_assert_int_eq(pt_trace_close(trace, &err), PT_SYSTEM);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("trace");
    TCase *t = tcase_create("file");

    tcase_add_test(t, reads_back_what_it_writes);
    tcase_add_loop_test(t, refuses_what_is_no_trace, 0, N_ROWS(bad));
    tcase_add_test(t, a_full_disk_is_an_error);
    suite_add_tcase(s, t);
    return unit_run(s);
}
