/* Traces: whatever the bytes are, they are summed up or refused with a reason. */
#include "config.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "libpt/trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pt_error err = PT_ERROR_INIT;
    struct pt_trace_sums sums;
    char *text = malloc(size + 1);
    enum pt_status st;

    if (text == NULL)
        return 0;
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    st = pt_trace_parse("fuzz", text, size, &sums, &err);
    if ((st != PT_OK && (st != PT_INPUT || err.text[0] == '\0')) ||
        (st == PT_OK && !(sums.end_s >= sums.start_s)))
        abort();
    free(text);
    return 0;
}
