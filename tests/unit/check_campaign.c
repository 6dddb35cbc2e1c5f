#include "config.h"

#include <math.h>
#include <string.h>

#include "sim/campaign.h"
#include "tests/unit/unit.h"

static struct sim_campaign base(void)
{
    return (struct sim_campaign){ .work_s = 1e6,
                                  .step_s = 10,
                                  .mtbf_s = 40000,
                                  .checkpoint_s = 60,
                                  .interval_s = 2000,
                                  .restart_s = 900,
                                  .seed = 1,
                                  .seeds = 2000 };
}

START_TEST(without_failures_only_checkpoints_cost)
{
    struct sim_campaign c = base();
    struct sim_campaign_result r;

    c.mtbf_s = 0;
    ck_assert_int_eq(sim_campaign_run(&c, &r, NULL), PT_OK);
    ck_assert_double_eq_tol(r.mean_s, 1e6 + 499 * 60,
                            1e-6); /* none behind the last segment */
    ck_assert_double_eq_tol(r.failures, 0, 1e-12);
    ck_assert_double_eq_tol(r.p10_s, r.p90_s, 1e-12);
}
END_TEST

/* Daly 2006, equation 20: M e^(R/M) (e^((T + C)/M) - 1) for each segment. */
START_TEST(the_mean_is_dalys)
{
    static const double mtbf[] = { 20000, 40000, 200000 },
                        interval[] = { 500, 2000, 8000 };
    struct sim_campaign c = base();
    struct sim_campaign_result r;
    double want;

    c.mtbf_s = mtbf[_i / 3];
    c.interval_s = interval[_i % 3];
    ck_assert_int_eq(sim_campaign_run(&c, &r, NULL), PT_OK);
    want = c.mtbf_s * exp(c.restart_s / c.mtbf_s) *
           expm1((c.interval_s + c.checkpoint_s) / c.mtbf_s) * c.work_s / c.interval_s;
    ck_assert_msg(fabs(r.mean_s / want - 1) < 0.01, "%g, want %g", r.mean_s, want);
    ck_assert(r.p10_s < r.mean_s && r.mean_s < r.p90_s);
    ck_assert_double_eq_tol(r.mean_s, c.work_s + r.lost_s + r.checkpoint_s + r.restart_s,
                            1e-6 * r.mean_s);
}
END_TEST

START_TEST(the_formulas_are_near_the_searched_best)
{
    struct sim_campaign c = base();
    struct sim_campaign_result r;

    c.interval_s = 0;
    ck_assert_int_eq(sim_campaign_run(&c, &r, NULL), PT_OK);
    ck_assert_double_eq_tol(r.young_s, sqrt(2 * 60 * 40000.0), 1e-9);
    ck_assert(r.daly_s < r.young_s);
    ck_assert_double_eq_tol(r.interval_s, r.daly_s, 1e-12);
    ck_assert(r.best_s <= r.mean_s);
    ck_assert(r.mean_s < 1.01 * r.best_s);
    ck_assert(r.best_interval_s > r.young_s / 3 && r.best_interval_s < 3 * r.young_s);
}
END_TEST

START_TEST(spare_nodes_help)
{
    struct sim_whole w = { .campaign = base() };

    w.campaign.seeds = 200;
    w.campaign.repair_s = 2 * 86400;
    ck_assert_int_eq(sim_whole_run(&w, NULL), PT_OK);
    ck_assert_uint_eq(w.n_spares, SIM_SPARES_SHOWN);
    for (unsigned i = 1; i < w.n_spares; i++)
        ck_assert(w.by_spares_s[i] < w.by_spares_s[i - 1]);
    ck_assert(w.result.wait_s > 0);
    /* with none standing by every failure waits for its repair */
    ck_assert_double_eq_tol(w.result.wait_s, w.result.failures * w.campaign.repair_s,
                            1e-6 * w.result.wait_s);
}
END_TEST

START_TEST(no_progress_is_said)
{
    struct sim_campaign c = base();
    struct pt_error err = PT_ERROR_INIT;
    struct sim_campaign_result r;

    c.mtbf_s = 60;
    c.seeds = 1;
    ck_assert_int_eq(sim_campaign_run(&c, &r, &err), PT_CAPACITY);
    ck_assert_msg(strstr(err.text, "no progress") != NULL, "%s", err.text);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("campaign");
    TCase *t = tcase_create("runs");

    tcase_set_timeout(t, 60);
    tcase_add_test(t, without_failures_only_checkpoints_cost);
    tcase_add_loop_test(t, the_mean_is_dalys, 0, 9);
    tcase_add_test(t, the_formulas_are_near_the_searched_best);
    tcase_add_test(t, spare_nodes_help);
    tcase_add_test(t, no_progress_is_said);
    suite_add_tcase(s, t);
    return unit_run(s);
}
