/* ptplan(1). */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "libpt/hardware.h"
#include "planner/evaluate.h"
#include "planner/options.h"
#include "planner/run.h"
#include "sim/verify.h"

static enum pt_status evaluate(const struct planner_given *given, const char *profile_dir,
                               struct pt_error *err)
{
    struct pt_calibration *calibration = NULL;
    enum pt_status st =
        planner_calibration_open(given->calibration, profile_dir, &calibration, err);

    if (st == PT_OK)
        st = planner_evaluate(given->evaluate, calibration, profile_dir, stdout, stderr,
                              err);
    pt_calibration_free(calibration);
    return st;
}

static enum pt_status simulate(const struct pt_plan *plan,
                               struct planner_opinion *opinion, struct pt_error *err)
{
    struct sim_verdict v;
    enum pt_status st = sim_verify(plan, &v, err);

    *opinion = (struct planner_opinion){ v.step_s, v.closed_step_s, v.allocated_bytes,
                                         v.closed_allocated_bytes };
    return st;
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

        st = given.evaluate != NULL
                 ? evaluate(&given, profile_dir, &err)
                 : planner_run(&given, profile_dir, simulate, stdout, stderr, &err);
    }
    return pt_close_stdout("ptplan", st == PT_OK ? 0 : pt_report("ptplan", &err));
}
