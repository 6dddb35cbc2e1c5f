#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libpt/file.h"

/* Grows geometrically: the size of a pipe is not known beforehand. */
static enum pt_status slurp(FILE *f, const char *where, size_t max_bytes, char **text,
                            size_t *len, struct pt_error *err)
{
    size_t cap = 64 * 1024, n = 0, got;
    char *buf = malloc(cap + 1), *grown;

    if (buf == NULL)
        return pt_fail_memory(err);
    while ((got = fread(buf + n, 1, cap - n, f)) > 0) {
        n += got;
        if (n > max_bytes) {
            free(buf);
            return pt_fail(err, PT_INPUT, where, 0,
                           "is larger than the limit of %zu bytes", max_bytes);
        }
        if (n < cap)
            continue;
        grown = realloc(buf, 2 * cap + 1);
        if (grown == NULL) {
            free(buf);
            return pt_fail_memory(err);
        }
        buf = grown;
        cap *= 2;
    }
    if (ferror(f)) {
        free(buf);
        return pt_fail(err, PT_INPUT, where, 0, "cannot be read: %s", strerror(errno));
    }
    buf[n] = '\0';
    *text = buf;
    *len = n;
    return PT_OK;
}

enum pt_status pt_file_read(const char *path, size_t max_bytes, char **text, size_t *len,
                            struct pt_error *err)
{
    enum pt_status st;
    FILE *f;

    if (!strcmp(path, "-"))
        return slurp(stdin, "standard input", max_bytes, text, len, err);
    f = fopen(path, "rb");
    if (f == NULL)
        return pt_fail(err, PT_INPUT, path, 0, "cannot be opened: %s", strerror(errno));
    st = slurp(f, path, max_bytes, text, len, err);
    fclose(f);
    return st;
}
