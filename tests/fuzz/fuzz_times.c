/* Files of times per stage: read or refused with a reason, and what is read can be run.
 */
#include "config.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sim/pure.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void run(const struct sim_stage_times *times)
{
    struct pt_schedule_spec spec = { .kind = PT_SCHEDULE_ZB_AUTO,
                                     .pp = times->n,
                                     .vpp = 1,
                                     .micro_batches = 5,
                                     .stage_forward_s = times->forward_s,
                                     .stage_input_s = times->input_s,
                                     .stage_weight_s = times->weight_s };
    struct pt_error err = PT_ERROR_INIT;
    struct sim_pure pure;

    if (sim_pure_run(&spec, &pure, &err))
        abort();
    sim_pure_fini(&pure);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const double uniform[3] = { 1, 1, 1 };
    struct pt_error err = PT_ERROR_INIT;
    struct sim_stage_times times;
    char *text = malloc(size + 1);
    enum pt_status st;

    if (text == NULL || sim_stage_times_init(3, uniform, &times, &err)) {
        free(text);
        return 0;
    }
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    st = sim_stage_times_parse("fuzz", text, size, (unsigned)(size % 3), &times, &err);
    if (st != PT_OK && (st != PT_INPUT || err.text[0] == '\0'))
        abort();
    if (st == PT_OK)
        run(&times);
    sim_stage_times_fini(&times);
    free(text);
    return 0;
}
