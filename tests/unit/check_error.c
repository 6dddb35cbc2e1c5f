#include "config.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libpt/error.h"
#include "tests/unit/unit.h"

START_TEST(the_first_failure_is_kept)
{
    struct pt_error err = PT_ERROR_INIT;

    ck_assert_int_eq(pt_fail(&err, PT_INPUT, "f.csv", 3, "%d is too many", 9), PT_INPUT);
    ck_assert_int_eq(pt_fail(&err, PT_BUG, "g.csv", 4, "later"), PT_BUG);
    ck_assert_int_eq(err.status, PT_INPUT);
    ck_assert_str_eq(err.where, "f.csv");
    ck_assert_int_eq(err.line, 3);
    ck_assert_str_eq(err.text, "9 is too many");
    ck_assert_int_eq(pt_fail(NULL, PT_USAGE, NULL, 0, "no one listens"), PT_USAGE);
}
END_TEST

START_TEST(long_texts_are_cut)
{
    struct pt_error err = PT_ERROR_INIT;
    char text[4096];

    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    pt_fail(&err, PT_INPUT, text, 0, "%s", text);
    ck_assert_uint_eq(strlen(err.text), sizeof(err.text) - 1);
    ck_assert_uint_eq(strlen(err.where), sizeof(err.where) - 1);
}
END_TEST

static const int exits[][2] = { { PT_OK, 0 },    { PT_DIFFERS, 1 },  { PT_USAGE, 2 },
                                { PT_INPUT, 2 }, { PT_CAPACITY, 3 }, { PT_SYSTEM, 4 },
                                { PT_LIMIT, 5 }, { PT_BUG, 70 } };

START_TEST(exit_statuses_are_the_documented_ones)
{
    ck_assert_int_eq(pt_exit_status((enum pt_status)exits[_i][0]), exits[_i][1]);
    ck_assert_str_ne(pt_status_text((enum pt_status)exits[_i][0]), "");
}
END_TEST

/* pt_close_stdout in a child whose stdout is `path`. */
static int close_in_child(const char *path, int status)
{
    pid_t pid = fork();
    int rc;

    if (pid == 0) {
        if (freopen(path, "w", stdout) == NULL ||
            freopen("/dev/null", "w", stderr) == NULL)
            _exit(99);
        printf("some output\n");
        _exit(pt_close_stdout("t", status));
    }
    ck_assert_int_eq(waitpid(pid, &rc, 0), pid);
    ck_assert(WIFEXITED(rc));
    return WEXITSTATUS(rc);
}

START_TEST(lost_output_is_status_4)
{
    ck_assert_int_eq(close_in_child("/dev/null", 0), 0);
    ck_assert_int_eq(close_in_child("/dev/null", 3), 3);
    if (access("/dev/full", W_OK) == 0)
        ck_assert_int_eq(close_in_child("/dev/full", 0), 4);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("error");
    TCase *t = tcase_create("error");

    tcase_add_test(t, the_first_failure_is_kept);
    tcase_add_test(t, long_texts_are_cut);
    tcase_add_loop_test(t, exit_statuses_are_the_documented_ones, 0, N_ROWS(exits));
    tcase_add_test(t, lost_output_is_status_4);
    suite_add_tcase(s, t);
    return unit_run(s);
}
