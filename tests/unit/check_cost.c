/* The prices against what is published: products, collectives, bubbles; and the operator
 * table against the parameter count. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "libpt/csv.h"
#include "libpt/form.h"
#include "libpt/ops.h"
#include "libpt/units.h"
#include "tests/unit/unit.h"

static char *path_of(char *buf, size_t size, const char *rest)
{
    const char *top = getenv("top_srcdir");

    snprintf(buf, size, "%s/%s", top != NULL ? top : ".", rest);
    return buf;
}

/* A GPU in its usual node, priced by datasheets and microbenchmarks alone. */
static struct pt_setup setup_of(const char *gpu)
{
    struct pt_setup s = { 0 };
    struct pt_error err = PT_ERROR_INIT;
    struct pt_calibration *c;
    char dir[4096];

    path_of(dir, sizeof(dir), "profiles");
    ck_assert_msg(pt_cluster_default(dir, gpu, &s.cluster, &err) == PT_OK, "%s",
                  err.text);
    ck_assert_msg(pt_calibration_read(dir, NULL, PT_CALIBRATION_NONE, &c, &err) == PT_OK,
                  "%s", err.text);
    s.cluster.gpus = 8;
    pt_calibration_stack(c, "none", &s.stack, NULL);
    pt_calibration_device(c, s.cluster.gpu.family, &s.device, NULL);
    pt_calibration_network(c, "none", &s.network, NULL);
    pt_calibration_free(c);
    s.job.precision = PT_BF16;
    pt_dtypes_default(PT_BF16, PT_OPT_ADAM, &s.job.dtypes);
    return s;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Vidur's profiles of matrix products, M from 512: most of them within a tenth. */
START_TEST(products)
{
    static const struct {
        const char *device, *gpu;
    } cards[] = { { "A100", "A100-80-SXM4" }, { "H100", "H100-80-SXM5" } };
    struct pt_setup s = setup_of(cards[_i].gpu);
    struct pt_error err = PT_ERROR_INIT;
    struct pt_csv *csv;
    double error[256];
    size_t n = 0;
    char path[4096];

    path_of(path, sizeof(path), "profiles/efficiency.csv");
    ck_assert_msg(pt_csv_read(path, &csv, &err) == PT_OK, "%s", err.text);
    for (size_t r = 0; r < pt_csv_rows(csv) && n < 256; r++) {
        unsigned m, nn, k;
        double tflops;

        if (strcmp(pt_csv_field(csv, r, pt_csv_column(csv, "category")), "gemm_shape") !=
                0 ||
            strcmp(pt_csv_field(csv, r, pt_csv_column(csv, "device")),
                   cards[_i].device) != 0 ||
            sscanf(pt_csv_field(csv, r, pt_csv_column(csv, "shape")), "%ux%ux%u", &m, &nn,
                   &k) != 3 ||
            m < 512)
            continue;
        pt_csv_number(csv, r, pt_csv_column(csv, "value"), 0.0, &tflops, NULL);
        double measured = 2.0 * m * nn * k / (tflops * 1e12);

        error[n++] = fabs(pt_gemm_s(&s, m, nn, k, 1.0, PT_BF16, false) / measured - 1.0);
    }
    pt_csv_free(csv);
    ck_assert_uint_ge(n, 30);
    qsort(error, n, sizeof(error[0]), ascending);
    ck_assert_msg(error[n / 2] < 0.08 && error[(size_t)(0.9 * (double)n)] < 0.20,
                  "median %.3f, p90 %.3f", error[n / 2],
                  error[(size_t)(0.9 * (double)n)]);
}
END_TEST

/* nccl-tests, all-reduce of 4 MiB to 16 GiB on one node (stas00/ml-engineering). */
START_TEST(collectives)
{
    static const struct {
        const char *gpu;
        double bytes, seconds;
    } rows[] = {
        { "A100-80-SXM4", 4194304, 101.5e-6 },
        { "A100-80-SXM4", 16777216, 276.6e-6 },
        { "A100-80-SXM4", 67108864, 684.6e-6 },
        { "A100-80-SXM4", 268435456, 2420.6e-6 },
        { "A100-80-SXM4", 4294967296, 32136e-6 },
        { "B200-180", 16777216, 115.2e-6 },
        { "B200-180", 67108864, 293.2e-6 },
        { "B200-180", 268435456, 727.1e-6 },
        { "B200-180", 4294967296, 10148.2e-6 },
    };
    struct pt_setup s = setup_of(rows[_i].gpu);
    double t = pt_collective_s(&s, PT_ALLREDUCE, rows[_i].bytes, 8, 1);

    ck_assert_msg(fabs(t / rows[_i].seconds - 1.0) < 0.30,
                  "%s %.0f B: %g s, measured %g s", rows[_i].gpu, rows[_i].bytes, t,
                  rows[_i].seconds);
}
END_TEST

/* The operators of all layers and ends hold the model's parameters, no more and no fewer.
 */
START_TEST(parameters)
{
    static const char *const names[] = { "gpt3-175B", "llama2-7B", "llama3-70B",
                                         "mixtral-8x7B", "deepseek-v3" };
    struct pt_setup s = setup_of("H100-80-SXM5");
    struct pt_layout l = {
        .tp = 1, .pp = 1, .vpp = 1, .cp = 1, .ep = 1, .dp = 1, .micro_batch = 1
    };
    struct pt_error err = PT_ERROR_INIT;
    struct pt_params par;
    struct pt_ops ops;
    double sum = 0.0;
    char dir[4096];

    path_of(dir, sizeof(dir), "profiles");
    ck_assert_msg(pt_model_preset(dir, names[_i], &s.model, &err) == PT_OK, "%s",
                  err.text);
    s.job.seq = 2048;
    s.job.global_batch = 1;
    pt_model_params(&s.model, &par);
    for (int k = 0; k < PT_N_LAYER_KINDS; k++) {
        pt_ops_layer(&s, &l, (enum pt_layer_kind)k, &ops);
        for (unsigned i = 0; i < ops.n; i++)
            sum += ops.op[i].params * pt_model_layers(&s.model, (enum pt_layer_kind)k);
    }
    pt_ops_embedding(&s, &l, &ops);
    for (unsigned i = 0; i < ops.n; i++)
        sum += ops.op[i].params;
    pt_ops_head(&s, &l, &ops);
    for (unsigned i = 0; i < ops.n; i++)
        sum += ops.op[i].params;
    ck_assert_msg(fabs(sum / (double)par.total - 1.0) < 1e-3, "%s: %.0f of %.0f",
                  names[_i], sum, (double)par.total);
}
END_TEST

static bool schedule_of(const char *name, struct pt_layout *l)
{
    l->vpp = 1;
    if (strcmp(name, "1F1B") == 0) {
        l->schedule = PT_SCHEDULE_1F1B;
    } else if (strcmp(name, "ZB-H1") == 0) {
        l->schedule = PT_SCHEDULE_ZB_H1;
    } else if (strcmp(name, "ZB-H2") == 0) {
        l->schedule = PT_SCHEDULE_ZB_H2;
    } else {
        return false;
    }
    return true;
}

/* Bubbles of Table 5 of arXiv:2401.10241 from its stage times, to half a point. */
START_TEST(bubbles)
{
    struct pt_error err = PT_ERROR_INIT;
    struct pt_csv *csv;
    char path[4096];
    unsigned compared = 0;

    path_of(path, sizeof(path), "tests/data/validation/bubble_rates.csv");
    ck_assert_msg(pt_csv_read(path, &csv, &err) == PT_OK, "%s", err.text);
    for (size_t r = 0; r < pt_csv_rows(csv); r++) {
        static const char *const names[] = { "p",     "m",     "bubble_rate", "TF_ms",
                                             "TB_ms", "TW_ms", "Tcomm_ms" };
        struct pt_layout l = { .tp = 1, .cp = 1, .ep = 1, .dp = 1, .micro_batch = 1 };
        struct pt_costs c = { .p2p_exposed_frac = 1.0 };
        struct pt_stage_load load[64] = { { 0 } };
        struct pt_form form;
        struct pt_form_value value;
        double x[7];

        if (strncmp(pt_csv_field(csv, r, 0), "Zero Bubble", 11) != 0 ||
            !schedule_of(pt_csv_field(csv, r, pt_csv_column(csv, "schedule")), &l))
            continue;
        for (int i = 0; i < 7; i++)
            pt_csv_number(csv, r, pt_csv_column(csv, names[i]), 0.0, &x[i], NULL);
        l.pp = (uint32_t)x[0];
        c.micro_batches = (uint32_t)x[1];
        c.p2p_s = x[6] / 1e3;
        for (uint32_t s = 0; s < l.pp; s++) {
            load[s].forward_s = x[3] / 1e3;
            load[s].input_s = x[4] / 1e3;
            load[s].weight_s = x[5] / 1e3;
        }
        pt_form_init(&l, &c, &form);
        pt_form_value(&form, load, l.pp, &value);
        double work = x[1] * (x[3] + x[4] + x[5]) / 1e3;
        double bubble = 1.0 - work / value.pipeline_s, least = bubble;

        /* The paper's span begins at a stage's own first forward; ZB-H2's last stage has
         * little else to wait for. */
        if (l.schedule == PT_SCHEDULE_ZB_H2)
            least = 1.0 - work / (value.pipeline_s - (x[0] - 1.0) * (x[3] + x[6]) / 1e3);
        ck_assert_msg(bubble > x[2] - 0.005 && least < x[2] + 0.005,
                      "row %zu: %.4f to %.4f, published %.4f", r, least, bubble, x[2]);
        compared++;
    }
    pt_csv_free(csv);
    ck_assert_uint_ge(compared, 18);
}
END_TEST

/* ZeRO-3 gathers and reduces for every micro-batch: four of them move four times as much.
 */
START_TEST(sharded_traffic)
{
    struct pt_setup s = setup_of("A100-80-SXM4");
    struct pt_layout l = {
        .tp = 1, .pp = 1, .vpp = 1, .cp = 1, .ep = 1, .dp = 8, .zero = 3, .micro_batch = 1
    };
    struct pt_error err = PT_ERROR_INIT;
    struct pt_costs c;
    struct pt_split split;
    struct pt_step one, four;
    char dir[4096];

    path_of(dir, sizeof(dir), "profiles");
    ck_assert(pt_model_preset(dir, "llama2-7B", &s.model, &err) == PT_OK);
    ck_assert(pt_split_init(&split, 1, 1, &err) == PT_OK);
    pt_split_even(&split, &s.model, &l, false);
    s.job.seq = 2048;
    s.job.global_batch = 16;
    pt_costs_init(&s, &l, &c);
    pt_step_time(&s, &l, &c, &split, true, &one);
    s.job.global_batch = 64;
    pt_costs_init(&s, &l, &c);
    pt_step_time(&s, &l, &c, &split, true, &four);
    pt_split_fini(&split);
    ck_assert_double_eq_tol(four.dp_bytes / one.dp_bytes, 4.0, 1e-9);
    ck_assert_double_eq_tol(four.pipeline_s / one.pipeline_s, 4.0, 1e-9);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cost");
    TCase *tc = tcase_create("published");

    tcase_add_loop_test(tc, products, 0, 2);
    tcase_add_loop_test(tc, collectives, 0, 9);
    tcase_add_loop_test(tc, parameters, 0, 5);
    tcase_add_test(tc, bubbles);
    tcase_add_test(tc, sharded_traffic);
    suite_add_tcase(suite, tc);
    return unit_run(suite);
}
