/* SHA-256 (FIPS 180-4), for the hashes of plans, data sets and checkpoints. Written here
 * because the required dependencies are GLPK, libcsv and jansson alone, and a
 * cryptographic library for one function would be a fourth. */
#ifndef PT_SHA256_H
#define PT_SHA256_H

#include <stddef.h>
#include <stdint.h>

struct pt_sha256 {
    uint32_t state[8];
    uint64_t n_bytes;
    uint8_t block[64];
};

void pt_sha256_init(struct pt_sha256 *s);
void pt_sha256_update(struct pt_sha256 *s, const void *data, size_t len);
/* Ends the message: init again before the next one. */
void pt_sha256_final(struct pt_sha256 *s, uint8_t digest[32]);
/* Lower-case hexadecimal, NUL-terminated. */
void pt_sha256_hex(const uint8_t digest[32], char hex[65]);

#endif
