#include "config.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libpt/plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static FILE *nowhere;

/* What is refused says why; what is read is written, read again and says the same. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pt_error err = PT_ERROR_INIT;
    struct pt_plan plan;

    if (nowhere == NULL)
        nowhere = fopen("/dev/null", "w");
    if (pt_plan_parse("fuzz", (const char *)data, size, &plan, nowhere, &err) != PT_OK) {
        if (err.text[0] == '\0' || plan.split.chunk != NULL)
            abort();
        return 0;
    }
    if (strlen(plan.hash) != 64 || plan.split.pp != plan.layout.pp)
        abort();
    if (pt_plan_predict(&plan, &err) != PT_OK && err.text[0] == '\0')
        abort();
    pt_plan_fini(&plan);
    return 0;
}
