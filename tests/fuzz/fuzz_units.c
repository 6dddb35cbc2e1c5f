#include "config.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "libpt/units.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A parser either refuses with a sentence or gives a value in its range. */
static void check(enum pt_status st, const struct pt_error *err, bool in_range)
{
    if (st == PT_OK ? !in_range : err->text[0] == '\0')
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    uint64_t u = 0;
    double d = 0;

    if (text == NULL)
        abort();
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
#define TRY(call, in_range)                                                              \
    do {                                                                                 \
        struct pt_error err = PT_ERROR_INIT;                                             \
        enum pt_status st = call;                                                        \
                                                                                         \
        check(st, &err, in_range);                                                       \
    } while (0)
    TRY(pt_parse_count("x", text, &u, &err), u >= 1);
    TRY(pt_parse_bytes("x", text, &u, NULL, &err), u >= 1);
    TRY(pt_parse_u64("x", text, 3, 9, &u, &err), u >= 3 && u <= 9);
    TRY(pt_parse_rate("x", text, &d, &err), d >= 0 && isfinite(d));
    TRY(pt_parse_seconds("x", text, &d, &err), d >= 0 && isfinite(d));
    TRY(pt_parse_fraction("x", text, 1, &d, &err), d >= 0 && d <= 1);
    TRY(pt_parse_number("x", text, -5, 5, &d, &err), d >= -5 && d <= 5);
#undef TRY
    free(text);
    return 0;
}
