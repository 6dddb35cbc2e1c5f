/* ptplan(1). */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "libpt/hardware.h"
#include "planner/evaluate.h"
#include "planner/options.h"

static enum pt_status evaluate(const struct planner_given *given, const char *profile_dir,
                               struct pt_error *err)
{
    struct pt_calibration *calibration = NULL;
    enum pt_status st =
        planner_calibration_open(given->calibration, profile_dir, &calibration, err);

    if (st == PT_OK)
        st = planner_evaluate(given->evaluate, calibration, profile_dir, stdout, stderr, err);
    pt_calibration_free(calibration);
    return st;
}

static enum pt_status plan(const struct planner_given *given, const char *profile_dir,
                           struct pt_error *err)
{
    struct planner_request request;
    enum pt_status st = planner_request_init(&request, given, profile_dir, err);

    if (st != PT_OK)
        return st;
    for (unsigned i = 0; i < request.warnings.n; i++)
        fprintf(stderr, "ptplan: warning: %s\n", request.warnings.text[i]);
    for (unsigned i = 0; i < request.assumed.n; i++)
        printf("%s\n", request.assumed.text[i]);
    planner_request_fini(&request);
    return PT_OK;
}

int main(int argc, char **argv)
{
    struct pt_error err = PT_ERROR_INIT;
    char dir[PT_PROFILE_DIR_SIZE];
    struct planner_given given;
    enum pt_status st;
    bool done;

    st = planner_options_parse(argc, argv, &given, &done, &err);
    if (st == PT_OK && !done) {
        const char *profile_dir = pt_profile_dir(dir, sizeof(dir));

        st = given.evaluate != NULL ? evaluate(&given, profile_dir, &err)
                                    : plan(&given, profile_dir, &err);
    }
    if (st == PT_OK && (fflush(stdout) != 0 || ferror(stdout)))
        st = pt_fail(&err, PT_SYSTEM, "standard output", 0, "short write");
    return st == PT_OK ? 0 : pt_report("ptplan", &err);
}
