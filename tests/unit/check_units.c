#include "config.h"

#include <math.h>
#include <string.h>

#include "libpt/units.h"
#include "tests/unit/unit.h"

/* want 0: the text is refused, and the sentence echoes it. */
static const struct {
    const char *text;
    uint64_t want;
} counts[] = {
    { "10B", 10000000000u },
    { "10b", 10000000000u },
    { "10 B", 10000000000u },
    { "1e10", 10000000000u },
    { "10e9", 10000000000u },
    { " 10G ", 10000000000u },
    { "7.5M", 7500000 },
    { "1.3B", 1300000000 },
    { "6.7B", 6700000000 },
    { "1.5k", 1500 },
    { "2T", 2000000000000u },
    { "0.5K", 500 },
    { "1", 1 },
    { "9007199254740993", 9007199254740993u }, /* 2^53 + 1: no way through a double */
    { "18446744073709551615", UINT64_MAX },
    { "", 0 },
    { " ", 0 },
    { "-1", 0 },
    { "0", 0 },
    { "0B", 0 },
    { "nan", 0 },
    { "inf", 0 },
    { "10BB", 0 },
    { "10 B B", 0 },
    { "B", 0 },
    { "0x10", 0 },
    { "1e", 0 },
    { "1e400", 0 },
    { "1e19", 0 },
    { "1.5", 0 },
    { "0.4", 0 },
    { "1.0000000001B", 0 },
    { "18446744073709551616", 0 },
    { "10Bxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", 0 },
    { "1,5B", 0 },
};

START_TEST(count)
{
    struct pt_error err = PT_ERROR_INIT;
    uint64_t v = 0;
    enum pt_status st = pt_parse_count("--params", counts[_i].text, &v, &err);

    ck_assert_int_eq(st, counts[_i].want ? PT_OK : PT_USAGE);
    if (counts[_i].want) {
        ck_assert_uint_eq(v, counts[_i].want);
    } else {
        ck_assert_ptr_nonnull(strstr(err.text, counts[_i].text));
        ck_assert_ptr_nonnull(strstr(err.text, "--params"));
    }
}
END_TEST

static const struct {
    const char *text;
    uint64_t want;
    const char *unit;
} sizes[] = {
    { "80G", 85899345920u, "G read as GiB" },
    { "80g", 85899345920u, "G read as GiB" },
    { "80 GiB", 85899345920u, "GiB" },
    { "80Gi", 85899345920u, "GiB" },
    { "80GB", 80000000000u, "GB of 1e9 bytes" },
    { "80gb", 80000000000u, "GB of 1e9 bytes" },
    { "1.5T", 1649267441664u, "T read as TiB" },
    { "512", 512, "bytes" },
    { "512B", 512, "bytes" },
    { "4K", 4096, "K read as KiB" },
    { "1e3", 1000, "bytes" },
    { "1MiB", 1048576, "MiB" },
    { "2P", 2251799813685248u, "P read as PiB" },
    { "-80G", 0, NULL },
    { "0", 0, NULL },
    { "0G", 0, NULL },
    { "80GBB", 0, NULL },
    { "80Q", 0, NULL },
    { "nan", 0, NULL },
    { "", 0, NULL },
    { "99999999T", 0, NULL },
    { "0.1", 0, NULL },
};

START_TEST(bytes)
{
    struct pt_error err = PT_ERROR_INIT;
    const char *unit = NULL;
    uint64_t v = 0;
    enum pt_status st = pt_parse_bytes("--mem", sizes[_i].text, &v, &unit, &err);

    ck_assert_int_eq(st, sizes[_i].want ? PT_OK : PT_USAGE);
    if (sizes[_i].want) {
        ck_assert_uint_eq(v, sizes[_i].want);
        ck_assert_str_eq(unit, sizes[_i].unit);
    } else {
        ck_assert_ptr_nonnull(strstr(err.text, sizes[_i].text));
    }
}
END_TEST

enum kind { RATE, SECONDS, FRACTION, NUMBER };
/* want < 0: refused. */
static const struct {
    enum kind kind;
    const char *text;
    double want;
} reals[] = {
    { RATE, "200GB/s", 200e9 },     { RATE, "400Gbps", 50e9 },
    { RATE, "400 Gb/s", 50e9 },     { RATE, "100GbE", 12.5e9 },
    { RATE, "3.35TB/s", 3.35e12 },  { RATE, "1GiB/s", 1073741824 },
    { RATE, "25MBps", 25e6 },       { RATE, "200", -1 }, /* of what? */
    { RATE, "200GB", -1 },          { RATE, "0GB/s", -1 },
    { RATE, "-1GB/s", -1 },         { RATE, "1e308TB/s", -1 },
    { SECONDS, "18.5ms", 18.5e-3 }, { SECONDS, "2us", 2e-6 },
    { SECONDS, "7ns", 7e-9 },       { SECONDS, "90s", 90 },
    { SECONDS, "90", 90 },          { SECONDS, "0", 0 },
    { SECONDS, "30m", 1800 },       { SECONDS, "2min", 120 },
    { SECONDS, "12h", 43200 },      { SECONDS, "3d", 259200 },
    { SECONDS, "-1s", -1 },         { SECONDS, "1M", -1 },
    { SECONDS, "soon", -1 },        { FRACTION, "5%", 0.05 },
    { FRACTION, "0.05", 0.05 },     { FRACTION, "100%", 1 },
    { FRACTION, "1", 1 },           { FRACTION, "0", 0 },
    { FRACTION, "1.01", -1 },       { FRACTION, "101%", -1 },
    { FRACTION, "-0.1", -1 },       { FRACTION, "", -1 },
    { NUMBER, "2.5", 2.5 },         { NUMBER, "+2.5e0", 2.5 },
    { NUMBER, "10", 10 },           { NUMBER, "10.5", -1 }, /* beyond the bound of 10 */
    { NUMBER, "2.5x", -1 },         { NUMBER, "infinity", -1 },
    { NUMBER, "0x1", -1 },          { NUMBER, ".", -1 },
};

START_TEST(real)
{
    struct pt_error err = PT_ERROR_INIT;
    const char *text = reals[_i].text;
    enum pt_status st = PT_BUG;
    double v = -2;

    switch (reals[_i].kind) {
    case RATE:
        st = pt_parse_rate("x", text, &v, &err);
        break;
    case SECONDS:
        st = pt_parse_seconds("x", text, &v, &err);
        break;
    case FRACTION:
        st = pt_parse_fraction("x", text, 1, &v, &err);
        break;
    case NUMBER:
        st = pt_parse_number("x", text, 0, 10, &v, &err);
        break;
    }
    if (reals[_i].want < 0) {
        ck_assert_int_eq(st, PT_USAGE);
        ck_assert_str_ne(err.text, "");
    } else {
        ck_assert_int_eq(st, PT_OK);
        ck_assert_double_eq_tol(v, reals[_i].want, 1e-300 + 1e-15 * reals[_i].want);
    }
}
END_TEST

static const struct {
    const char *text;
    uint64_t lo, hi;
    bool good;
} wholes[] = {
    { "3", 1, 4, true },
    { "4", 1, 4, true },
    { "5", 1, 4, false },
    { "0", 1, 4, false },
    { "-1", 0, 4, false },
    { "3.0", 0, 4, false },
    { "1e0", 0, 4, false },
    { "", 0, 4, false },
    { "99999999999999999999", 0, 4, false },
    { " 3 ", 1, 4, true },
    { "3 4", 0, 99, false },
};

START_TEST(whole)
{
    uint64_t v;

    ck_assert_int_eq(
        pt_parse_u64("x", wholes[_i].text, wholes[_i].lo, wholes[_i].hi, &v, NULL),
        wholes[_i].good ? PT_OK : PT_USAGE);
}
END_TEST

static const struct {
    char kind;
    double value;
    const char *want;
} formats[] = {
    { 'c', 10.2e9, "10.2B" },
    { 'c', 174.6e9, "175B" },
    { 'c', 999.96e6, "1.0B" },
    { 'c', 1e12, "1.0T" },
    { 'c', 512, "512" },
    { 'c', 1536, "1.5K" },
    { 'c', 0, "0" },
    { 'g', 74.3 * PT_GIB, "74.3 GiB" },
    { 'g', 0.5 * PT_GIB, "0.50 GiB" },
    { 'g', 9.999 * PT_GIB, "10.0 GiB" },
    { 'g', 0, "0.00 GiB" },
    { 's', 1.93, "1.93 s" },
    { 's', 0.412, "412 ms" },
    { 's', 3.2 * 86400, "3.20 d" },
    { 's', 90, "90.0 s" },
    { 's', 0, "0 s" },
    { 's', 7200, "2.00 h" },
    { 's', 0.99999, "1.00 s" },
    { 's', 2e-6, "2.00 us" },
    { 's', 8e-12, "0.01 ns" },
    { 's', 300, "5.00 min" },
};

START_TEST(format)
{
    char buf[32];

    switch (formats[_i].kind) {
    case 'c':
        ck_assert_str_eq(pt_format_count(buf, formats[_i].value), formats[_i].want);
        break;
    case 'g':
        ck_assert_str_eq(pt_format_gib(buf, formats[_i].value), formats[_i].want);
        break;
    default:
        ck_assert_str_eq(pt_format_seconds(buf, formats[_i].value), formats[_i].want);
    }
}
END_TEST

START_TEST(overflow_is_seen)
{
    uint64_t v;

    ck_assert(pt_mul_u64(UINT32_MAX, UINT32_MAX, &v));
    ck_assert_uint_eq(v, 18446744065119617025u);
    ck_assert(!pt_mul_u64(1ull << 32, 1ull << 32, &v));
    ck_assert(!pt_add_u64(UINT64_MAX, 1, &v));
    ck_assert(pt_add_u64(UINT64_MAX - 1, 1, &v));
    ck_assert_uint_eq(v, UINT64_MAX);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("units");
    TCase *t = tcase_create("units");

    tcase_add_loop_test(t, count, 0, N_ROWS(counts));
    tcase_add_loop_test(t, bytes, 0, N_ROWS(sizes));
    tcase_add_loop_test(t, real, 0, N_ROWS(reals));
    tcase_add_loop_test(t, whole, 0, N_ROWS(wholes));
    tcase_add_loop_test(t, format, 0, N_ROWS(formats));
    tcase_add_test(t, overflow_is_seen);
    suite_add_tcase(s, t);
    return unit_run(s);
}
