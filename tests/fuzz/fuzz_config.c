/* A Hugging Face config.json: any bytes give a model that passes its check, or a
 * sentence. */
#include "config.h"

#include <stdint.h>
#include <stdlib.h>

#include "libpt/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pt_error err = PT_ERROR_INIT;
    struct pt_params params;
    struct pt_model m;

    if (pt_model_config_parse("fuzz", (const char *)data, size, &m, &err) != PT_OK) {
        if (err.text[0] == '\0')
            abort();
        return 0;
    }
    if (pt_model_check(&m, &err) != PT_OK)
        abort();
    pt_model_params(&m, &params);
    if (params.total == 0 || params.active > params.total)
        abort();
    return 0;
}
