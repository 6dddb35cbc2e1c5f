#include "config.h"

#include <stdint.h>
#include <stdlib.h>

#include "libpt/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void visit(const struct pt_json *v, int depth)
{
    const struct pt_json *child;
    const char *text;
    uint64_t u;
    double d;
    bool b;

    if (pt_json_where(v)[0] == '\0')
        abort();
    if (pt_json_u64(v, NULL, 1, 100, &u, NULL) == PT_OK && (u < 1 || u > 100))
        abort();
    pt_json_number(v, NULL, -1, 1, &d, NULL);
    pt_json_bool(v, NULL, &b, NULL);
    pt_json_string(v, NULL, &text, NULL);
    if (depth == 0)
        return;
    for (size_t i = 0; i < pt_json_length(v); i++)
        if (pt_json_at(v, i, &child, NULL) == PT_OK)
            visit(child, depth - 1);
    for (const char *k = NULL; (k = pt_json_next_key(v, k)) != NULL;)
        if (pt_json_has(v, k) && pt_json_get(v, k, &child, NULL) == PT_OK)
            visit(child, depth - 1);
}

/* Asks every value for every type, and where it stands. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pt_error err = PT_ERROR_INIT;
    struct pt_json *doc;

    if (pt_json_parse("fuzz", (const char *)data, size, &doc, &err) != PT_OK) {
        if (doc != NULL || err.text[0] == '\0')
            abort();
        return 0;
    }
    visit(doc, 64);
    pt_json_free(doc);
    return 0;
}
