/* Token files of every format, what is wrong with them, and the order of samples. */
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "exec/data.h"
#include "exec/rng.h"
#include "tests/unit/unit.h"

static char dir[] = "check_data.XXXXXX";

static const char *write_file(const char *name, const void *bytes, size_t n)
{
    static char path[128];
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(bytes, 1, n, f), n);
    ck_assert_int_eq(fclose(f), 0);
    return path;
}

static void setup(void)
{
    ck_assert_ptr_nonnull(mkdtemp(dir));
}

static void teardown(void)
{
    static const char *const names[] = { "t", "a.bin", "b.bin", "c.bin", "c.idx" };
    char path[128];

    for (size_t i = 0; i < 5; i++) {
        snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
        unlink(path);
    }
    rmdir(dir);
    strcpy(dir, "check_data.XXXXXX");
}

/* First sample without shuffling: only one fits. */
static void expect(const char *spec, uint32_t seq, const char *format,
                   const int32_t *want)
{
    struct pt_error err = PT_ERROR_INIT;
    struct exec_data d;
    int32_t tokens[8], targets[8];

    ck_assert_msg(exec_data_open(spec, seq, &d, &err) == PT_OK, "%s", err.text);
    ck_assert_str_eq(d.format, format);
    ck_assert_uint_eq(d.samples, 1);
    exec_data_sample(&d, 3, 0, tokens, targets);
    for (uint32_t i = 0; i < seq; i++) {
        ck_assert_int_eq(tokens[i], want[i]);
        ck_assert_int_eq(targets[i], want[i + 1]);
    }
    exec_data_close(&d);
}

static void refuse(const char *spec, uint32_t seq, const char *part)
{
    struct pt_error err = PT_ERROR_INIT;
    struct exec_data d;

    ck_assert_int_eq(pt_exit_status(exec_data_open(spec, seq, &d, &err)), 2);
    ck_assert_msg(strstr(err.text, part) != NULL, "'%s' lacks '%s'", err.text, part);
}

static void put(unsigned char *p, uint64_t v, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        p[i] = (unsigned char)(v >> (8 * i));
}

START_TEST(text_and_nanogpt)
{
    const int32_t bytes[] = { 'h', 'e', 'l', 'l', 'o' }, words[] = { 0x6568, 0x6c6c };
    char spec[160];

    snprintf(spec, sizeof(spec), "text:%s", write_file("t", "hello", 5));
    expect(spec, 4, "text", bytes);
    refuse(spec, 5, "5 tokens are too few");
    expect(write_file("a.bin", "hell", 4), 1, "nanoGPT", words);
    refuse("text:", 4, "no file name");
    refuse("text:check_data.nowhere", 4, "No such file");
    refuse(write_file("t", "hello", 5), 4, "write text:");
}
END_TEST

START_TEST(llmc_headers)
{
    static unsigned char f[1024 + 12];
    const int32_t want[] = { 7, 70000, 9 }, narrow[] = { 7, 8, 9 };

    memset(f, 0, sizeof(f));
    put(f, 20240801, 4);
    put(f + 4, 7, 4);
    put(f + 8, 3, 4);
    put(f + 1024, 7, 4);
    put(f + 1028, 70000, 4);
    put(f + 1032, 9, 4);
    expect(write_file("b.bin", f, sizeof(f)), 2, "llm.c", want);
    refuse(write_file("b.bin", f, sizeof(f) - 4), 2,
           "the header says 3 tokens, the file holds 2");
    put(f + 4, 1, 4);
    refuse(write_file("b.bin", f, sizeof(f)), 2, "version 1");
    put(f, 20240520, 4);
    put(f + 1026, 8, 2);
    put(f + 1028, 9, 2);
    expect(write_file("b.bin", f, 1024 + 6), 2, "llm.c", narrow);
}
END_TEST

START_TEST(megatron_pairs)
{
    unsigned char idx[34 + 2 * 12], bin[8];
    const int32_t want[] = { 1, 2, 3, 4 };
    char spec[160];

    memset(idx, 0, sizeof(idx));
    memcpy(idx, "MMIDIDX\0\0", 9);
    put(idx + 9, 1, 8);
    idx[17] = 8;
    put(idx + 18, 2, 8);
    put(idx + 34, 3, 4);
    put(idx + 38, 1, 4);
    put(idx + 42, 0, 8);
    put(idx + 50, 6, 8);
    for (unsigned i = 0; i < 4; i++)
        put(bin + 2 * i, i + 1, 2);
    write_file("c.idx", idx, sizeof(idx));
    expect(write_file("c.bin", bin, 8), 3, "Megatron", want);
    snprintf(spec, sizeof(spec), "megatron:%s/c", dir);
    expect(spec, 3, "Megatron", want);
    refuse(write_file("c.bin", bin, 6), 2, "the index counts 4 tokens, the file holds 3");
    put(idx + 50, 8, 8);
    write_file("c.idx", idx, sizeof(idx));
    refuse(write_file("c.bin", bin, 8), 3, "sequence 1 begins at byte 8");
    put(idx + 18, 1u << 20, 8);
    write_file("c.idx", idx, sizeof(idx));
    refuse(write_file("c.bin", bin, 8), 3, "truncated");
}
END_TEST

START_TEST(a_token_outside_the_vocabulary_is_named)
{
    struct pt_error err = PT_ERROR_INIT;
    const unsigned char words[] = { 1, 0, 2, 0, 200, 0, 3, 0 };
    struct exec_data d;

    ck_assert_int_eq(exec_data_open(write_file("a.bin", words, 8), 2, &d, &err), PT_OK);
    ck_assert_int_eq(exec_data_check(&d, 201, &err), PT_OK);
    ck_assert_int_eq(exec_data_check(&d, 200, &err), PT_INPUT);
    ck_assert_ptr_nonnull(strstr(err.text, "token 200 at position 2 (byte 4)"));
    exec_data_close(&d);
}
END_TEST

START_TEST(permutations)
{
    for (uint64_t n = 1; n < 200; n++)
        for (uint64_t seed = 0; seed < 3; seed++) {
            unsigned char seen[200] = { 0 };
            uint64_t same = 0;

            for (uint64_t i = 0; i < n; i++) {
                uint64_t j = exec_rng_permute(seed, 5, n, i);

                ck_assert_uint_lt(j, n);
                ck_assert(!seen[j]++);
                same += j == exec_rng_permute(seed, 6, n, i);
            }
            ck_assert(n < 20 || same < n / 2);
        }
}
END_TEST

/* Mean, variance and tails of the deviates. */
START_TEST(normal_deviates)
{
    double sum = 0, squares = 0;
    int n = 200000, beyond = 0;

    for (int i = 0; i < n; i++) {
        double x = exec_rng_normal(1, 2, (uint64_t)i);

        sum += x;
        squares += x * x;
        beyond += x > 2.326347874 || x < -2.326347874; /* 2% */
    }
    ck_assert_double_eq_tol(sum / n, 0, 0.01);
    ck_assert_double_eq_tol(squares / n, 1, 0.02);
    ck_assert_double_eq_tol((double)beyond / n, 0.02, 0.002);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("data");
    TCase *t = tcase_create("data");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, text_and_nanogpt);
    tcase_add_test(t, llmc_headers);
    tcase_add_test(t, megatron_pairs);
    tcase_add_test(t, a_token_outside_the_vocabulary_is_named);
    tcase_add_test(t, permutations);
    tcase_add_test(t, normal_deviates);
    suite_add_tcase(s, t);
    return unit_run(s);
}
