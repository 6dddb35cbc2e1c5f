#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exec/data.h"
#include "exec/rng.h"
#include "libpt/sha256.h"

#define LLMC_HEADER     1024 /* bytes */
#define LLMC_U16        20240520
#define LLMC_U32        20240801
#define MEGATRON_HEADER 34

static uint64_t little(const unsigned char *p, unsigned bytes)
{
    uint64_t v = 0;

    for (unsigned i = bytes; i > 0; i--)
        v = v << 8 | p[i - 1];
    return v;
}

/* Maps a whole file for reading; *map NULL when it is empty. */
static enum pt_status map_file(const char *path, void **map, size_t *bytes,
                               struct pt_error *err)
{
    struct stat info;
    enum pt_status st = PT_OK;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    *map = NULL;
    *bytes = 0;
    if (fd < 0)
        return pt_fail(err, PT_INPUT, path, 0, "%s", strerror(errno));
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
        st = pt_fail(err, PT_INPUT, path, 0, "not a regular file");
        goto out;
    }
    *bytes = (size_t)info.st_size;
    if (*bytes == 0)
        goto out;
    *map = mmap(NULL, *bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    if (*map == MAP_FAILED) {
        *map = NULL;
        st = pt_fail(err, PT_INPUT, path, 0, "cannot map it: %s", strerror(errno));
    }
out:
    close(fd);
    return st;
}

static void set_plain(struct exec_data *d, const char *format, unsigned width)
{
    d->format = format;
    d->width = width;
    d->first = d->map;
    d->tokens = d->map_bytes / width;
}

static enum pt_status set_llmc(struct exec_data *d, struct pt_error *err)
{
    const unsigned char *p = d->map;
    uint64_t magic, version, n;

    if (d->map_bytes < LLMC_HEADER)
        return pt_fail(err, PT_INPUT, d->path, 0,
                       "%zu bytes are less than llm.c's header of %d", d->map_bytes,
                       LLMC_HEADER);
    magic = little(p, 4);
    version = little(p + 4, 4);
    n = little(p + 8, 4);
    if (!(magic == LLMC_U16 && version == 1) && !(magic == LLMC_U32 && version == 7))
        return pt_fail(
            err, PT_INPUT, d->path, 0,
            "magic %llu, version %llu: llm.c writes 20240520, 1 or 20240801, 7",
            (unsigned long long)magic, (unsigned long long)version);
    d->format = "llm.c";
    d->width = magic == LLMC_U16 ? 2 : 4;
    d->first = p + LLMC_HEADER;
    d->tokens = n;
    if ((d->map_bytes - LLMC_HEADER) / d->width < n)
        return pt_fail(err, PT_INPUT, d->path, 0,
                       "truncated: the header says %llu tokens, the file holds %zu",
                       (unsigned long long)n, (d->map_bytes - LLMC_HEADER) / d->width);
    return PT_OK;
}

/* Sequences must lie one after the other in the .bin, as Megatron writes them. */
static enum pt_status check_index(struct exec_data *d, const char *path,
                                  const unsigned char *p, size_t bytes,
                                  struct pt_error *err)
{
    static const unsigned widths[] = { 0, 1, 1, 2, 4, 8, 4, 8, 2 };
    uint64_t sequences, total = 0;
    unsigned dtype;

    if (bytes < MEGATRON_HEADER || memcmp(p, "MMIDIDX\0\0", 9) != 0 ||
        little(p + 9, 8) != 1)
        return pt_fail(err, PT_INPUT, path, 0,
                       "not a Megatron index (MMIDIDX, version 1)");
    dtype = p[17];
    if (dtype != 1 && dtype != 4 && dtype != 8)
        return pt_fail(err, PT_INPUT, path, 0,
                       "tokens of type %u; 1 (uint8), 4 (int32) and 8 (uint16) are read",
                       dtype);
    d->width = widths[dtype];
    sequences = little(p + 18, 8);
    if (sequences > (bytes - MEGATRON_HEADER) / 12)
        return pt_fail(err, PT_INPUT, path, 0,
                       "truncated: %llu sequences need %llu bytes",
                       (unsigned long long)sequences,
                       (unsigned long long)(MEGATRON_HEADER + sequences * 12));
    for (uint64_t i = 0; i < sequences; i++) {
        const unsigned char *len = p + MEGATRON_HEADER + 4 * i;
        const unsigned char *at = p + MEGATRON_HEADER + 4 * sequences + 8 * i;

        if (little(at, 8) != total * d->width)
            return pt_fail(err, PT_INPUT, path, 0,
                           "sequence %llu begins at byte %llu of the .bin, not at %llu",
                           (unsigned long long)i, (unsigned long long)little(at, 8),
                           (unsigned long long)(total * d->width));
        total += little(len, 4);
    }
    d->tokens = total;
    return PT_OK;
}

static enum pt_status set_megatron(struct exec_data *d, const char *index,
                                   struct pt_error *err)
{
    void *map;
    size_t bytes;
    enum pt_status st = map_file(index, &map, &bytes, err);

    if (st != PT_OK)
        return st;
    st = check_index(d, index, map, bytes, err);
    if (map != NULL)
        munmap(map, bytes);
    d->format = "Megatron";
    d->first = d->map;
    if (st == PT_OK && d->map_bytes / d->width < d->tokens)
        return pt_fail(err, PT_INPUT, d->path, 0,
                       "truncated: the index counts %llu tokens, the file holds %zu",
                       (unsigned long long)d->tokens, d->map_bytes / d->width);
    return st;
}

/* "text", "llmc", ... before a colon; *path what follows, or all of it. */
static size_t scheme(const char *spec, const char **path)
{
    static const char *const names[] = { "text:", "llmc:", "nanogpt:", "megatron:" };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (!strncmp(spec, names[i], strlen(names[i]))) {
            *path = spec + strlen(names[i]);
            return i + 1;
        }
    *path = spec;
    return 0;
}

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), k = strlen(end);

    return n >= k && !strcmp(s + n - k, end);
}

static enum pt_status open_bare(struct exec_data *d, const char *index,
                                struct pt_error *err)
{
    const unsigned char *p = d->map;
    uint64_t magic = d->map_bytes >= 4 ? little(p, 4) : 0;

    if (magic == LLMC_U16 || magic == LLMC_U32)
        return set_llmc(d, err);
    if (access(index, R_OK) == 0)
        return set_megatron(d, index, err);
    if (ends_with(d->path, ".bin")) {
        set_plain(d, "nanoGPT", 2);
        return PT_OK;
    }
    return pt_fail(
        err, PT_INPUT, d->path, 0,
        "its format is not to be seen; write text:, llmc:, nanogpt: or megatron: "
        "before the name");
}

enum pt_status exec_data_open(const char *spec, uint32_t seq, struct exec_data *d,
                              struct pt_error *err)
{
    char index[sizeof(d->path) + 4];
    const char *path;
    size_t kind = scheme(spec, &path), len = strlen(path);
    enum pt_status st;

    memset(d, 0, sizeof(*d));
    d->seq = seq;
    if (len == 0 || len + 5 > sizeof(d->path))
        return pt_fail(err, PT_USAGE, NULL, 0, "--data: '%s' is no file name", spec);
    if (ends_with(path, ".idx") || (kind == 4 && ends_with(path, ".bin")))
        len -= 4;
    snprintf(d->path, sizeof(d->path), "%.*s%s", (int)len, path,
             kind == 4 || ends_with(path, ".idx") ? ".bin" : "");
    snprintf(index, sizeof(index), "%.*s.idx",
             (int)(ends_with(d->path, ".bin") ? strlen(d->path) - 4 : strlen(d->path)),
             d->path);
    st = map_file(d->path, &d->map, &d->map_bytes, err);
    if (st != PT_OK)
        return st;
    if (kind == 1)
        set_plain(d, "text", 1);
    else if (kind == 2)
        st = set_llmc(d, err);
    else if (kind == 3)
        set_plain(d, "nanoGPT", 2);
    else if (kind == 4)
        st = set_megatron(d, index, err);
    else
        st = open_bare(d, index, err);
    if (st == PT_OK && d->tokens < (uint64_t)seq + 1)
        st =
            pt_fail(err, PT_INPUT, d->path, 0,
                    "%llu tokens are too few: one sequence needs %u and the one after it",
                    (unsigned long long)d->tokens, seq);
    if (st != PT_OK)
        exec_data_close(d);
    else
        d->samples = (d->tokens - 1) / seq;
    return st;
}

void exec_data_close(struct exec_data *d)
{
    if (d->map != NULL)
        munmap(d->map, d->map_bytes);
    d->map = NULL;
}

static uint64_t token(const struct exec_data *d, uint64_t i)
{
    return little(d->first + i * d->width, d->width);
}

enum pt_status exec_data_check(const struct exec_data *d, uint32_t vocab,
                               struct pt_error *err)
{
    if (d->width == 1 && vocab >= 256)
        return PT_OK;
    for (uint64_t i = 0; i < d->tokens; i++)
        if (token(d, i) >= vocab)
            return pt_fail(
                err, PT_INPUT, d->path, 0,
                "token %llu at position %llu (byte %llu) is outside the model's "
                "vocabulary of %u",
                (unsigned long long)token(d, i), (unsigned long long)i,
                (unsigned long long)((size_t)(d->first - (const unsigned char *)d->map) +
                                     i * d->width),
                vocab);
    return PT_OK;
}

void exec_data_hash(const struct exec_data *d, char hex[65])
{
    struct pt_sha256 h;
    uint8_t digest[32];

    pt_sha256_init(&h);
    pt_sha256_update(&h, d->map, d->map_bytes);
    pt_sha256_final(&h, digest);
    pt_sha256_hex(digest, hex);
}

void exec_data_sample(const struct exec_data *d, uint64_t seed, uint64_t number,
                      int32_t *tokens, int32_t *targets)
{
    const uint64_t stream = 0x64617461; /* apart from the weights' */
    uint64_t epoch = number / d->samples;
    uint64_t at = exec_rng_permute(seed, stream + epoch, d->samples, number % d->samples);

    for (uint32_t i = 0; i < d->seq; i++) {
        tokens[i] = (int32_t)token(d, at * d->seq + i);
        targets[i] = (int32_t)token(d, at * d->seq + i + 1);
    }
}
