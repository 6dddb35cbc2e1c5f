#include "config.h"

#include <string.h>
#include <unistd.h>

#include "libpt/csv.h"
#include "libpt/file.h"
#include "tests/unit/unit.h"

static enum pt_status parse(const char *text, struct pt_csv **csv, struct pt_error *err)
{
    return pt_csv_parse("t.csv", text, strlen(text), csv, err);
}

/* Each text has the cell (row, column "b") with this value, on this line. */
static const struct {
    const char *text;
    size_t rows, row;
    const char *b;
    int line;
} good[] = {
    { "a,b\n1,2\n", 1, 0, "2", 2 },
    { "a,b\n1,2", 1, 0, "2", 2 },
    { "a,b\r\n1,2\r\n3,4\r\n", 2, 1, "4", 3 },
    { "# a comment, with a comma\n#\n\na,b\n1,2\n", 1, 0, "2", 5 },
    { "\xef\xbb\xbfz,b\n1,2\n", 1, 0, "2", 2 },
    { "a,b\n1\n", 1, 0, "", 2 },
    { "a,b\n\n\n1,2\n", 1, 0, "2", 4 },
    { "a,b\n1,\"2\n3\"\n4,5\n", 2, 0, "2\n3", 2 },
    { "a,b\n1,\"2\n3\"\n4,5\n", 2, 1, "5", 4 },
    { "a,b\n\"x\n\",2\n4,5\n", 2, 0, "2", 2 },
    { "a,b\n1,\"say \"\"hi\"\"\"\n", 1, 0, "say \"hi\"", 2 },
    { "a,b\n1,  2 \n", 1, 0, "2", 2 },
    { "a,b\n1,\" 2 \"\n", 1, 0, " 2 ", 2 },
    { "b,a\n,\n", 1, 0, "", 2 },
};

START_TEST(reads)
{
    struct pt_error err = PT_ERROR_INIT;
    struct pt_csv *csv;

    ck_assert_msg(parse(good[_i].text, &csv, &err) == PT_OK, "%s", err.text);
    ck_assert_uint_eq(pt_csv_rows(csv), good[_i].rows);
    ck_assert_str_eq(pt_csv_field(csv, good[_i].row, pt_csv_column(csv, "b")),
                     good[_i].b);
    ck_assert_int_eq(pt_csv_line(csv, good[_i].row), good[_i].line);
    ck_assert_int_eq(pt_csv_column(csv, "nope"), -1);
    ck_assert_str_eq(pt_csv_field(csv, 0, -1), "");
    pt_csv_free(csv);
}
END_TEST

static const struct {
    const char *text;
    int line;
    const char *says;
} bad[] = {
    { "", 0, "no header" },
    { "# only a comment\n", 0, "no header" },
    { "# only a comment", 0, "no header" },
    { "a,b\n1,2,3\n", 2, "more fields than the header's 2 columns" },
    { "a,b\n1,2\n3,4,5\n", 3, "more fields" },
    { "a,b\n1,\"2\n", 2, "ends inside a quoted field" },
    { "a,b\n1,2\"3\n", 2, "quote" },
    { "a,b\n1,\"2\"3\n", 2, "quote" },
    { "a,b,a\n", 1, "column 'a' appears twice" },
};

START_TEST(refuses_with_the_line)
{
    struct pt_error err = PT_ERROR_INIT;
    struct pt_csv *csv;

    ck_assert_int_eq(parse(bad[_i].text, &csv, &err), PT_INPUT);
    ck_assert_ptr_null(csv);
    ck_assert_str_eq(err.where, "t.csv");
    ck_assert_int_eq(err.line, bad[_i].line);
    ck_assert_msg(strstr(err.text, bad[_i].says) != NULL, "says: %s", err.text);
}
END_TEST

START_TEST(refuses_a_nul_byte_and_too_many_columns)
{
    char text[2 * PT_CSV_MAX_COLUMNS + 3];
    struct pt_csv *csv;

    ck_assert_int_eq(pt_csv_parse("t", "a\0b\n", 4, &csv, NULL), PT_INPUT);
    memset(text, ',', sizeof(text));
    ck_assert_int_eq(pt_csv_parse("t", text, PT_CSV_MAX_COLUMNS, &csv, NULL), PT_INPUT);
    ck_assert_int_eq(pt_csv_parse("t", text, PT_CSV_MAX_COLUMNS - 1, &csv, NULL), PT_OK);
    pt_csv_free(csv);
}
END_TEST

START_TEST(numbers_or_a_sentence)
{
    struct pt_error err = PT_ERROR_INIT;
    struct pt_csv *csv;
    double v;

    ck_assert_int_eq(parse("a,b\n1.5e3,\n1x,nan\n", &csv, NULL), PT_OK);
    ck_assert_int_eq(pt_csv_number(csv, 0, 0, -1, &v, &err), PT_OK);
    ck_assert_double_eq(v, 1500);
    ck_assert_int_eq(pt_csv_number(csv, 0, 1, -1, &v, &err), PT_OK);
    ck_assert_double_eq(v, -1);
    ck_assert_int_eq(pt_csv_number(csv, 1, 1, -1, &v, NULL), PT_INPUT);
    ck_assert_int_eq(pt_csv_number(csv, 1, 0, -1, &v, &err), PT_INPUT);
    ck_assert_str_eq(err.text, "column 'a': '1x' is not a number");
    ck_assert_int_eq(err.line, 3);
    pt_csv_free(csv);
}
END_TEST

START_TEST(a_file_that_cannot_be_read)
{
    static const char *const paths[] = { "/nonexistent/x.csv", "/" };
    struct pt_error err = PT_ERROR_INIT;
    struct pt_csv *csv;

    ck_assert_int_eq(pt_csv_read(paths[_i], &csv, &err), PT_INPUT);
    ck_assert_str_eq(err.where, paths[_i]);
    ck_assert_ptr_null(csv);
}
END_TEST

START_TEST(a_file_has_a_limit)
{
    char path[] = "/tmp/ptcheckXXXXXX", *text;
    int fd = mkstemp(path);
    size_t len;

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(ftruncate(fd, 100000), 0);
    ck_assert_int_eq(pt_file_read(path, 99999, &text, &len, NULL), PT_INPUT);
    ck_assert_int_eq(pt_file_read(path, 100000, &text, &len, NULL), PT_OK);
    ck_assert_uint_eq(len, 100000);
    ck_assert_int_eq(text[len], '\0');
    free(text);
    close(fd);
    unlink(path);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("csv");
    TCase *t = tcase_create("csv");

    tcase_add_loop_test(t, reads, 0, N_ROWS(good));
    tcase_add_loop_test(t, refuses_with_the_line, 0, N_ROWS(bad));
    tcase_add_test(t, refuses_a_nul_byte_and_too_many_columns);
    tcase_add_test(t, numbers_or_a_sentence);
    tcase_add_loop_test(t, a_file_that_cannot_be_read, 0, 2);
    tcase_add_test(t, a_file_has_a_limit);
    suite_add_tcase(s, t);
    return unit_run(s);
}
