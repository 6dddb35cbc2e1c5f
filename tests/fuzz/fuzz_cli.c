#include "config.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "libpt/cli.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MAX_ARGS 64

/* A table with every type; each line of the input is one argument. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct {
        bool flag, given;
        const char *choice, *unit;
        uint64_t u, count, bytes;
        double rate, s, frac, x;
        struct pt_cli_list list;
    } v;
    const struct pt_opt opts[] = {
        { PT_OPT_GROUP, 0, "Group", NULL, NULL, NULL, NULL },
        { PT_OPT_FLAG, 'f', "flag", NULL, NULL, "", &v.flag, .given = &v.given },
        { PT_OPT_STR, 0, "choice", "A", "one", "", &v.choice, .choices = "one|two" },
        { PT_OPT_U64, 'u', "u64", "N", "7", "", &v.u, .lo = 1, .hi = 9 },
        { PT_OPT_COUNT, 0, "count", "N", NULL, "", &v.count },
        { PT_OPT_BYTES, 0, "bytes", "N", NULL, "", &v.bytes, .unit = &v.unit },
        { PT_OPT_RATE, 0, "rate", "N", NULL, "", &v.rate },
        { PT_OPT_SECONDS, 0, "seconds", "N", NULL, "", &v.s },
        { PT_OPT_FRACTION, 0, "fraction", "N", NULL, "", &v.frac },
        { PT_OPT_NUMBER, 0, "number", "N", NULL, "", &v.x, .lo = -1, .hi = 1 },
        { PT_OPT_LIST, 'l', "list", "L", NULL, "", &v.list, .choices = "1|2|4" },
    };
    const struct pt_cli cli = { "fuzz", "", "", opts, sizeof(opts) / sizeof(opts[0]) };
    struct pt_error err = PT_ERROR_INIT;
    char *text = malloc(size + 1), *argv[MAX_ARGS + 2], *next;
    enum pt_status st;
    int argc = 1, first = 0;
    bool done = false;

    if (text == NULL)
        abort();
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    argv[0] = text;
    for (char *p = text; p != NULL && argc <= MAX_ARGS; p = next) {
        next = strchr(p, '\n');
        if (next != NULL)
            *next++ = '\0';
        if (!strcmp(p, "--help") || !strcmp(p, "-h") || !strcmp(p, "--dump-options") ||
            !strcmp(p, "--version"))
            continue; /* they print */
        argv[argc++] = p;
    }
    argv[argc] = NULL;
    memset(&v, 0, sizeof(v));
    st = pt_cli_parse(&cli, argc, argv, &first, &done, &err);
    if (st == PT_OK ? first < 1 || first > argc : err.text[0] == '\0')
        abort();
    if (st == PT_OK && (v.u < 1 || v.u > 9 || strlen(v.choice) != 3 || v.list.n > 64))
        abort();
    free(text);
    return 0;
}
