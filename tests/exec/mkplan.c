/* mkplan OUT.json WORD...: a small plan for the executor's tests. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "tests/exec/make_plan.h"

int main(int argc, char **argv)
{
    struct pt_error err = PT_ERROR_INIT;
    struct pt_plan plan;
    double offload = 0;
    unsigned recomputed = 0;
    bool uneven = false;
    enum pt_status st;

    if (argc < 2)
        return 2;
    make_plan_default(&plan);
    for (int i = 2; i < argc; i++) {
        if (!strncmp(argv[i], "offload=", 8))
            offload = strtod(argv[i] + 8, NULL);
        else if (!strncmp(argv[i], "recomputed=", 11))
            recomputed = (unsigned)strtoul(argv[i] + 11, NULL, 10);
        else if (!strcmp(argv[i], "uneven=1"))
            uneven = true;
        else if (!make_plan_set(&plan, argv[i])) {
            fprintf(stderr, "mkplan: '%s' is not known\n", argv[i]);
            return 2;
        }
    }
    st = make_plan_finish(&plan, uneven, recomputed, offload, &err);
    if (st == PT_OK)
        st = pt_plan_write(argv[1], &plan, &err);
    pt_plan_fini(&plan);
    return st == PT_OK ? 0 : pt_report("mkplan", &err);
}
