/* Training data: a stream of tokens in a file, cut into samples of seq + 1 tokens (the
 * last one of a sample is the first of the next). The order of samples depends on (seed,
 * sample number) alone: a permutation per epoch, whatever the layout.
 *
 *   text:FILE      bytes, a vocabulary of 256
 *   llmc:FILE      llm.c: int32[256] header {20240520, 1, n} then uint16, {20240801, 7,
 * n} then uint32 nanogpt:FILE   uint16 without a header megatron:PATH  PATH.bin and
 * PATH.idx (MMIDIDX version 1)
 *
 * A bare FILE is recognised by its header, a Megatron pair by its .idx; numbers little
 * endian. */
#ifndef PT_EXEC_DATA_H
#define PT_EXEC_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libpt/error.h"

struct exec_data {
    char path[512]; /* of the file that holds the tokens */
    const char *format;
    void *map; /* owned */
    size_t map_bytes;
    const unsigned char *first; /* token 0 */
    unsigned width;             /* bytes per token: 1, 2 or 4 */
    uint64_t tokens, samples;
    uint32_t seq;
};

/* Fails with PT_INPUT when the file is missing, malformed, truncated or too short for one
 * sample of seq + 1 tokens. */
enum pt_status exec_data_open(const char *spec, uint32_t seq, struct exec_data *data,
                              struct pt_error *err);
void exec_data_close(struct exec_data *data);
/* Every token below vocab? The sentence names the first that is not, and where it stands.
 */
enum pt_status exec_data_check(const struct exec_data *data, uint32_t vocab,
                               struct pt_error *err);
/* SHA-256 of the file, in hexadecimal. */
void exec_data_hash(const struct exec_data *data, char hex[65]);
/* Sample `number` counted from the start of the run: seq tokens and the seq that follow
 * each. */
void exec_data_sample(const struct exec_data *data, uint64_t seed, uint64_t number,
                      int32_t *tokens, int32_t *targets);

#endif
