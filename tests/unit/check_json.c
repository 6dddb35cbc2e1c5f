#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libpt/json.h"
#include "tests/unit/unit.h"

static struct pt_json *parse(const char *text)
{
    struct pt_error err = PT_ERROR_INIT;
    struct pt_json *doc;

    ck_assert_msg(pt_json_parse("p.json", text, strlen(text), &doc, &err) == PT_OK, "%s",
                  err.text);
    return doc;
}

static const char *const broken[] = {
    "",
    "{",
    "{\"a\":1}}",
    "{\"a\":1,\"a\":2}",
    "{\"a\":NaN}",
    "{\"a\":1e999}",
    "[1,]",
    "{'a':1}",
    "nul",
    "{\"a\":\"\xff\"}",
    "{\"a\":99999999999999999999}",
};

START_TEST(refuses_broken_text)
{
    struct pt_error err = PT_ERROR_INIT;
    struct pt_json *doc;

    ck_assert_int_eq(pt_json_parse("p.json", broken[_i], strlen(broken[_i]), &doc, &err),
                     PT_INPUT);
    ck_assert_ptr_null(doc);
    ck_assert_str_eq(err.where, "p.json");
}
END_TEST

START_TEST(depth_has_a_limit)
{
    static char text[200000];
    struct pt_json *doc;

    memset(text, '[', sizeof(text));
    ck_assert_int_eq(pt_json_parse("p", text, sizeof(text), &doc, NULL), PT_INPUT);
}
END_TEST

static const char sample[] =
    "{\"n\":3,\"big\":9223372036854775807,\"x\":2.5,\"w\":4.0,\"t\":true,\"s\":\"hi\","
    "\"z\":null,\"neg\":-1,\"stages\":[{\"layers\":9},{\"layers\":[0,0.5]}]}";

START_TEST(reads_every_type)
{
    struct pt_json *doc = parse(sample);
    const struct pt_json *stages, *s1, *list, *item;
    struct pt_error err = PT_ERROR_INIT;
    const char *text, *keys = "";
    uint64_t u;
    double d;
    bool b;

    ck_assert_int_eq(pt_json_u64(doc, "n", 0, 9, &u, &err), PT_OK);
    ck_assert_uint_eq(u, 3);
    ck_assert_int_eq(pt_json_u64(doc, "big", 0, UINT64_MAX, &u, &err), PT_OK);
    ck_assert_uint_eq(u, INT64_MAX);
    ck_assert_int_eq(pt_json_u64(doc, "w", 0, 9, &u, &err), PT_OK); /* 4.0 is whole */
    ck_assert_uint_eq(u, 4);
    ck_assert_int_eq(pt_json_number(doc, "x", 0, 9, &d, &err), PT_OK);
    ck_assert_double_eq(d, 2.5);
    ck_assert_int_eq(pt_json_number(doc, "n", 0, 9, &d, &err), PT_OK);
    ck_assert_double_eq(d, 3);
    ck_assert_int_eq(pt_json_bool(doc, "t", &b, &err), PT_OK);
    ck_assert(b);
    ck_assert_int_eq(pt_json_string(doc, "s", &text, &err), PT_OK);
    ck_assert_str_eq(text, "hi");
    ck_assert(pt_json_has(doc, "n") && !pt_json_has(doc, "z") && !pt_json_has(doc, "q"));
    u = 77;
    ck_assert_int_eq(pt_json_u64_or(doc, "q", 0, 9, &u, &err), PT_OK);
    ck_assert_int_eq(pt_json_u64_or(doc, "z", 0, 9, &u, &err), PT_OK);
    ck_assert_uint_eq(u, 77);
    ck_assert_int_eq(pt_json_get(doc, "stages", &stages, &err), PT_OK);
    ck_assert_uint_eq(pt_json_length(stages), 2);
    ck_assert_uint_eq(pt_json_length(doc), 0);
    ck_assert_int_eq(pt_json_at(stages, 1, &s1, &err), PT_OK);
    ck_assert_int_eq(pt_json_get(s1, "layers", &list, &err), PT_OK);
    ck_assert_int_eq(pt_json_at(list, 1, &item, &err), PT_OK);
    ck_assert_int_eq(pt_json_number(item, NULL, 0, 1, &d, &err), PT_OK);
    ck_assert_double_eq(d, 0.5);
    ck_assert_str_eq(pt_json_where(item), "p.json: stages[1].layers[1]");
    ck_assert_str_eq(pt_json_where(doc), "p.json");
    keys = pt_json_next_key(doc, NULL);
    ck_assert_str_eq(keys, "n");
    ck_assert_str_eq(pt_json_next_key(doc, keys), "big");
    ck_assert_ptr_null(pt_json_next_key(doc, "stages"));
    pt_json_free(doc);
}
END_TEST

/* Each reading fails, at this place, with this sentence. */
enum reader { U64, NUMBER, BOOL, STRING, GET, AT };
static const struct {
    enum reader reader;
    const char *key, *where, *says;
} bad[] = {
    { U64, "q", "p.json: q", "is missing" },
    { U64, "z", "p.json: z", "is missing" },
    { U64, "s", "p.json: s", "is a string, not a whole number" },
    { U64, "x", "p.json: x", "2.5 is not a whole number" },
    { U64, "neg", "p.json: neg", "-1 is negative" },
    { U64, "big", "p.json: big", "9223372036854775807 is not within 0 to 9" },
    { NUMBER, "t", "p.json: t", "is true or false, not a number" },
    { NUMBER, "neg", "p.json: neg", "-1 is not within 0 to 9" },
    { BOOL, "n", "p.json: n", "is a number, not true or false" },
    { STRING, "stages", "p.json: stages", "is an array, not a string" },
    { GET, "q", "p.json: q", "is missing" },
    { AT, NULL, "p.json", "is an object, not an array" },
};

START_TEST(says_what_and_where)
{
    struct pt_error err = PT_ERROR_INIT;
    struct pt_json *doc = parse(sample);
    const struct pt_json *child;
    const char *text;
    enum pt_status st = PT_OK;
    uint64_t u;
    double d;
    bool b;

    switch (bad[_i].reader) {
    case U64:
        st = pt_json_u64(doc, bad[_i].key, 0, 9, &u, &err);
        break;
    case NUMBER:
        st = pt_json_number(doc, bad[_i].key, 0, 9, &d, &err);
        break;
    case BOOL:
        st = pt_json_bool(doc, bad[_i].key, &b, &err);
        break;
    case STRING:
        st = pt_json_string(doc, bad[_i].key, &text, &err);
        break;
    case GET:
        st = pt_json_get(doc, bad[_i].key, &child, &err);
        break;
    case AT:
        st = pt_json_at(doc, 0, &child, &err);
        break;
    }
    ck_assert_int_eq(st, PT_INPUT);
    ck_assert_str_eq(err.where, bad[_i].where);
    ck_assert_str_eq(err.text, bad[_i].says);
    pt_json_free(doc);
}
END_TEST

static char *written(const struct pt_json *doc, enum pt_status *st, struct pt_error *err)
{
    static char buf[1 << 16];
    FILE *f = fmemopen(buf, sizeof(buf), "w");

    *st = pt_json_write(doc, f, "out.json", err);
    fclose(f);
    return buf;
}

START_TEST(writes_in_order_of_insertion)
{
    struct pt_json *doc = pt_json_new_object(), *o, *a;
    enum pt_status st;

    pt_json_put_u64(doc, "z", 1);
    pt_json_put_number(doc, "x", 0.1);
    pt_json_put_bool(doc, "b", false);
    o = pt_json_add_object(doc, "o");
    pt_json_put_string(o, "s", "a \"quote\"");
    a = pt_json_add_array(o, "a");
    pt_json_put_u64(a, NULL, 2);
    pt_json_put_u64(pt_json_add_object(a, NULL), "k", 3);
    pt_json_put_u64(doc, "a", 4);
    ck_assert_str_eq(written(doc, &st, NULL), "{\n"
                                              "  \"z\": 1,\n"
                                              "  \"x\": 0.10000000000000001,\n"
                                              "  \"b\": false,\n"
                                              "  \"o\": {\n"
                                              "    \"s\": \"a \\\"quote\\\"\",\n"
                                              "    \"a\": [\n"
                                              "      2,\n"
                                              "      {\n"
                                              "        \"k\": 3\n"
                                              "      }\n"
                                              "    ]\n"
                                              "  },\n"
                                              "  \"a\": 4\n"
                                              "}\n");
    ck_assert_int_eq(st, PT_OK);
    pt_json_free(doc);
}
END_TEST

START_TEST(what_cannot_be_written_is_not)
{
    struct pt_error err = PT_ERROR_INIT;
    struct pt_json *doc = pt_json_new_object();
    enum pt_status st;

    pt_json_put_number(doc, "x", HUGE_VAL);
    written(doc, &st, &err);
    ck_assert_int_eq(st, PT_BUG);
    pt_json_free(doc);
    doc = pt_json_new_object();
    pt_json_put_u64(doc, "x", 1ull << 63);
    written(doc, &st, NULL);
    ck_assert_int_eq(st, PT_BUG);
    pt_json_free(doc);
}
END_TEST

START_TEST(a_full_disk_is_seen)
{
    struct pt_json *doc = pt_json_new_object();
    struct pt_error err = PT_ERROR_INIT;
    FILE *f = fopen("/dev/full", "w");

    pt_json_put_u64(doc, "x", 1);
    if (f != NULL) {
        ck_assert_int_eq(pt_json_write(doc, f, "/dev/full", &err), PT_SYSTEM);
        fclose(f);
    }
    pt_json_free(doc);
}
END_TEST

/* A path deeper than the buffer keeps its end. */
START_TEST(a_long_path_keeps_its_end)
{
    struct pt_json *doc = pt_json_new_object(), *o = doc;
    char key[64];

    memset(key, 'k', sizeof(key) - 1);
    key[sizeof(key) - 1] = '\0';
    for (int i = 0; i < 20; i++)
        o = pt_json_add_object(o, key);
    o = pt_json_add_object(o, "last");
    ck_assert_ptr_nonnull(strstr(pt_json_where(o), "k.last"));
    ck_assert_uint_lt(strlen(pt_json_where(o)), 512);
    pt_json_free(doc);
}
END_TEST

START_TEST(bytes_that_are_no_utf8)
{
    struct pt_json *doc = pt_json_new_object();
    struct pt_error err = PT_ERROR_INIT;
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);

    pt_json_put_string(doc, "name", "bad\xff.json");
    pt_json_put_string(doc, "good",
                       "gr\xc3\xb6\xc3\x9f"
                       "e");
    ck_assert_int_eq(pt_json_write(doc, f, "p", &err), PT_OK);
    fclose(f);
    ck_assert_ptr_nonnull(strstr(text, "\"bad?.json\""));
    ck_assert_ptr_nonnull(strstr(text, "gr\xc3\xb6\xc3\x9f"
                                       "e"));
    free(text);
    pt_json_free(doc);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("json");
    TCase *t = tcase_create("json");

    tcase_add_loop_test(t, refuses_broken_text, 0, N_ROWS(broken));
    tcase_add_test(t, depth_has_a_limit);
    tcase_add_test(t, reads_every_type);
    tcase_add_loop_test(t, says_what_and_where, 0, N_ROWS(bad));
    tcase_add_test(t, writes_in_order_of_insertion);
    tcase_add_test(t, what_cannot_be_written_is_not);
    tcase_add_test(t, a_full_disk_is_seen);
    tcase_add_test(t, a_long_path_keeps_its_end);
    tcase_add_test(t, bytes_that_are_no_utf8);
    suite_add_tcase(s, t);
    return unit_run(s);
}
