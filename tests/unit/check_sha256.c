/* NIST's examples for FIPS 180-4 and its two-block message, and every split of an input.
 */
#include "config.h"

#include <string.h>

#include "libpt/sha256.h"
#include "tests/unit/unit.h"

static const struct {
    const char *message;
    size_t repeat;
    const char *hex;
} vectors[] = {
    { "", 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
    { "abc", 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
    { "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
    { "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmno"
      "ijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
      1, "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1" },
    { "a", 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0" },
};

START_TEST(known_answers)
{
    struct pt_sha256 s;
    uint8_t digest[32];
    char hex[65];

    pt_sha256_init(&s);
    for (size_t i = 0; i < vectors[_i].repeat; i++)
        pt_sha256_update(&s, vectors[_i].message, strlen(vectors[_i].message));
    pt_sha256_final(&s, digest);
    pt_sha256_hex(digest, hex);
    ck_assert_str_eq(hex, vectors[_i].hex);
}
END_TEST

START_TEST(the_split_does_not_matter)
{
    uint8_t data[200], whole[32], parts[32];
    struct pt_sha256 s;

    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (uint8_t)(7 * i);
    for (size_t n = 0; n <= sizeof(data); n++) {
        pt_sha256_init(&s);
        pt_sha256_update(&s, data, n);
        pt_sha256_final(&s, whole);
        for (size_t cut = 0; cut <= n; cut += 13) {
            pt_sha256_init(&s);
            pt_sha256_update(&s, data, cut);
            pt_sha256_update(&s, data + cut, n - cut);
            pt_sha256_final(&s, parts);
            ck_assert_mem_eq(whole, parts, 32);
        }
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("sha256");
    TCase *t = tcase_create("sha256");

    tcase_add_loop_test(t, known_answers, 0, N_ROWS(vectors));
    tcase_add_test(t, the_split_does_not_matter);
    suite_add_tcase(s, t);
    return unit_run(s);
}
