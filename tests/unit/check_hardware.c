/* Hardware profiles: every row loads, every default resolves, names are forgiving. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libpt/csv.h"
#include "libpt/hardware.h"
#include "libpt/units.h"
#include "tests/unit/unit.h"

static const char *profiles(void)
{
    const char *dir = getenv("PT_PROFILE_DIR");

    return dir != NULL ? dir : "profiles";
}

static struct pt_csv *table(const char *file)
{
    struct pt_error err = PT_ERROR_INIT;
    struct pt_csv *csv = NULL;
    char path[1024];

    snprintf(path, sizeof(path), "%s/%s", profiles(), file);
    ck_assert_msg(pt_csv_read(path, &csv, &err) == PT_OK, "%s", err.text);
    return csv;
}

static const char *key_of(const struct pt_csv *csv, size_t row)
{
    return pt_csv_field(csv, row, pt_csv_column(csv, "key"));
}

static void check_cluster(const struct pt_cluster *c, const char *key)
{
    ck_assert_msg(c->node_gpus >= 1 && c->domain_gpus >= 1, "%s", key);
    ck_assert_msg(c->nic_bytes_per_s > 0 && c->host_mem_bytes > 1e9, "%s", key);
    ck_assert_msg(c->host_cores >= 1 && c->cpu_adam_params_per_s > 0, "%s", key);
    ck_assert_msg(c->link.allreduce_bytes_per_s > 0 &&
                      c->link.allgather_bytes_per_s > 0 &&
                      c->link.alltoall_bytes_per_s > 0 && c->link.p2p_bytes_per_s > 0 &&
                      c->link.half_bytes > 0 && c->link.alpha_s > 0,
                  "%s", key);
    ck_assert_msg(c->gpu.mem_bytes > 0 && c->gpu.mem_bytes <= c->gpu.smi_bytes &&
                      c->gpu.family[0] != '\0',
                  "%s", key);
}

START_TEST(every_gpu_has_its_usual_node)
{
    struct pt_csv *csv = table("gpus.csv");

    ck_assert_uint_ge(pt_csv_rows(csv), 40);
    for (size_t i = 0; i < pt_csv_rows(csv); i++) {
        struct pt_error err = PT_ERROR_INIT;
        struct pt_cluster c;

        ck_assert_msg(pt_cluster_default(profiles(), key_of(csv, i), &c, &err) == PT_OK,
                      "%s: %s", key_of(csv, i), err.text);
        ck_assert_str_eq(c.gpu.key, key_of(csv, i));
        check_cluster(&c, key_of(csv, i));
    }
    pt_csv_free(csv);
}
END_TEST

START_TEST(every_node_loads)
{
    struct pt_csv *csv = table("nodes.csv");

    for (size_t i = 0; i < pt_csv_rows(csv); i++) {
        struct pt_error err = PT_ERROR_INIT;
        struct pt_cluster c;

        ck_assert_msg(pt_node_find(profiles(), key_of(csv, i), &c, &err) == PT_OK,
                      "%s: %s", key_of(csv, i), err.text);
        check_cluster(&c, key_of(csv, i));
    }
    pt_csv_free(csv);
}
END_TEST

/* Each source that a row names stands in sources.csv. */
static void check_sources(const char *file)
{
    struct pt_csv *csv = table(file), *sources = table("sources.csv");
    int column = pt_csv_column(csv, "source"), id = pt_csv_column(sources, "id");

    for (size_t i = 0; i < pt_csv_rows(csv); i++) {
        char list[256], *save = NULL;

        snprintf(list, sizeof(list), "%s", pt_csv_field(csv, i, column));
        for (char *s = strtok_r(list, ";", &save); s != NULL;
             s = strtok_r(NULL, ";", &save)) {
            bool found = false;

            for (size_t k = 0; k < pt_csv_rows(sources); k++)
                found = found || strcmp(pt_csv_field(sources, k, id), s) == 0;
            ck_assert_msg(found, "%s: %s: source %s is not listed", file, key_of(csv, i),
                          s);
        }
    }
    pt_csv_free(csv);
    pt_csv_free(sources);
}

START_TEST(every_source_is_listed)
{
    check_sources("gpus.csv");
    check_sources("links.csv");
    check_sources("nodes.csv");
}
END_TEST

START_TEST(the_h100_in_si)
{
    struct pt_error err = PT_ERROR_INIT;
    struct pt_cluster c;

    ck_assert_int_eq(pt_cluster_default(profiles(), "h100", &c, &err), PT_OK);
    ck_assert_str_eq(c.gpu.key, "H100-80-SXM5");
    ck_assert_double_eq(c.gpu.peak_flops[PT_BF16], 989e12);
    ck_assert_double_eq(c.gpu.peak_flops[PT_MXFP8], 0);
    ck_assert_double_eq(c.gpu.hbm_bytes_per_s, 3350e9);
    ck_assert_double_eq(c.gpu.mem_bytes, 79.11 * PT_GIB);
    ck_assert_double_eq(c.nic_bytes_per_s, 400e9);
    ck_assert_double_eq(c.link.allreduce_bytes_per_s, 480e9);
    ck_assert_uint_eq(c.domain_gpus, 8);
    ck_assert_str_eq(c.network, "ndr");
}
END_TEST

START_TEST(a_domain_of_many_hosts_injects_through_all)
{
    struct pt_error err = PT_ERROR_INIT;
    struct pt_cluster c;

    ck_assert_int_eq(pt_node_find(profiles(), "gb200-nvl72", &c, &err), PT_OK);
    ck_assert_uint_eq(c.node_gpus, 4);
    ck_assert_uint_eq(c.domain_gpus, 64);
    ck_assert_double_eq_tol(c.nic_bytes_per_s, 200e9 * 16, 1);
}
END_TEST

START_TEST(unknown_keys_name_near_ones)
{
    struct pt_error err = PT_ERROR_INIT;
    struct pt_cluster c;
    struct pt_link link;

    ck_assert_int_eq(pt_cluster_default(profiles(), "H1000", &c, &err), PT_USAGE);
    ck_assert_msg(strstr(err.text, "H100-80-SXM5") != NULL, "%s", err.text);
    err = (struct pt_error)PT_ERROR_INIT;
    ck_assert_int_eq(pt_node_find(profiles(), "dgx-h101", &c, &err), PT_USAGE);
    ck_assert_msg(strstr(err.text, "dgx-h100") != NULL, "%s", err.text);
    err = (struct pt_error)PT_ERROR_INIT;
    ck_assert_int_eq(pt_link_find(profiles(), "nvswitch-h10", &link, &err), PT_USAGE);
    err = (struct pt_error)PT_ERROR_INIT;
    ck_assert_int_eq(pt_gpu_find("/nonexistent", "H100", &c.gpu, &err), PT_INPUT);
}
END_TEST

static const struct {
    double gib;
    const char *key;
} cards[] = { { 8, "V100-16" },       { 40, "A100-40-SXM4" }, { 79, "H100-80-SXM5" },
              { 80, "H100-80-SXM5" }, { 81, "H100-94-NVL" },  { 141, "H200-141" } };

START_TEST(memory_alone_gives_a_card)
{
    ck_assert_str_eq(pt_gpu_default_for(cards[_i].gib * PT_GIB), cards[_i].key);
    ck_assert_ptr_null(pt_gpu_default_for(1e12));
}
END_TEST

START_TEST(precisions_have_names)
{
    struct pt_error err = PT_ERROR_INIT;
    enum pt_precision p;

    for (int i = 0; i < PT_N_PRECISIONS; i++) {
        ck_assert_int_eq(
            pt_precision_parse(pt_precision_name((enum pt_precision)i), &p, &err), PT_OK);
        ck_assert_int_eq(p, i);
    }
    ck_assert_int_eq(pt_precision_parse("bf17", &p, &err), PT_USAGE);
    ck_assert_ptr_nonnull(strstr(err.text, "bf16"));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("hardware");
    TCase *t = tcase_create("profiles");

    tcase_add_test(t, every_gpu_has_its_usual_node);
    tcase_add_test(t, every_node_loads);
    tcase_add_test(t, every_source_is_listed);
    tcase_add_test(t, the_h100_in_si);
    tcase_add_test(t, a_domain_of_many_hosts_injects_through_all);
    tcase_add_test(t, unknown_keys_name_near_ones);
    tcase_add_loop_test(t, memory_alone_gives_a_card, 0, N_ROWS(cards));
    tcase_add_test(t, precisions_have_names);
    suite_add_tcase(s, t);
    return unit_run(s);
}
