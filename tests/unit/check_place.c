/* What launchers say in their variables, what the ranks were given, what the doctor says.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec/doctor.h"
#include "exec/identity.h"
#include "exec/place.h"
#include "tests/unit/unit.h"

static const struct {
    const char *set; /* NAME=VALUE, separated by blanks */
    enum exec_launcher launcher;
    bool mpi;
    uint32_t rank, size, local;
    const char *address;
    uint16_t port;
    const char *error; /* instead */
} places[] = {
    { "", EXEC_BY_HAND, false, 0, 1, 0, "", 0, NULL },
    { "OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=8 OMPI_COMM_WORLD_LOCAL_RANK=1",
      EXEC_BY_MPIRUN, true, 3, 8, 1, "", 0, NULL },
    { "PMI_RANK=1 PMI_SIZE=2", EXEC_BY_MPIRUN, true, 1, 2, 0, "", 0, NULL },
    { "RANK=1 WORLD_SIZE=4 LOCAL_RANK=1 MASTER_ADDR=a MASTER_PORT=29500",
      EXEC_BY_TORCHRUN, false, 1, 4, 1, "a", 29500, NULL },
    { "RANK=1 WORLD_SIZE=4 LOCAL_RANK=1 MASTER_ADDR=a MASTER_PORT=29500 "
      "TORCHELASTIC_USE_AGENT_STORE=True",
      EXEC_BY_TORCHRUN, false, 1, 4, 1, "a", 29501, NULL },
    { "SLURM_PROCID=2 SLURM_STEP_NUM_TASKS=4 SLURM_LOCALID=0 SLURM_STEP_ID=1 "
      "SLURM_JOB_ID=7 SLURM_STEP_NODELIST=n[03-04,9],m",
      EXEC_BY_SLURM, false, 2, 4, 0, "n03", 20000 + 7 * 31 + 1, NULL },
    { "SLURM_PROCID=2 SLURM_STEP_NUM_TASKS=4 SLURM_LOCALID=0 SLURM_STEP_ID=1 "
      "SLURM_JOB_ID=7 SLURM_STEP_NODELIST=n PMIX_RANK=2",
      EXEC_BY_SLURM, true, 2, 4, 0, "n", 20000 + 7 * 31 + 1, NULL },
    /* a batch script, and a variable that has nothing to do with torchrun */
    { "SLURM_PROCID=0 SLURM_NTASKS=4 RANK=2", EXEC_BY_HAND, false, 0, 1, 0, "", 0, NULL },
    /* mpirun within a step of srun */
    { "SLURM_PROCID=0 SLURM_STEP_ID=0 OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 "
      "OMPI_COMM_WORLD_LOCAL_RANK=1",
      EXEC_BY_MPIRUN, true, 1, 2, 1, "", 0, NULL },
    { "OMPI_COMM_WORLD_RANK=3", EXEC_BY_HAND, false, 0, 0, 0, "", 0,
      "the launcher's variable is not set, though others of it are" },
    { "RANK=4 WORLD_SIZE=4 LOCAL_RANK=0", EXEC_BY_HAND, false, 0, 0, 0, "", 0,
      "4 is no rank of 4 (WORLD_SIZE)" },
    { "RANK=0 WORLD_SIZE=4 LOCAL_RANK=0 MASTER_PORT=1", EXEC_BY_HAND, false, 0, 0, 0, "",
      0, "not set: where is rank 0? torchrun sets it" },
};

static void set_all(const char *text)
{
    while (*text != '\0') {
        char word[128];
        size_t n = strcspn(text, " ");
        char *value;

        snprintf(word, sizeof(word), "%.*s", (int)n, text);
        value = strchr(word, '=');
        *value++ = '\0';
        ck_assert_int_eq(setenv(word, value, 1), 0);
        text += n + strspn(text + n, " ");
    }
}

START_TEST(launchers_are_known_by_their_variables)
{
    struct pt_error err = PT_ERROR_INIT;
    struct exec_place p;
    enum pt_status st;

    clearenv();
    set_all(places[_i].set);
    st = exec_place_find(&p, &err);
    if (places[_i].error != NULL) {
        ck_assert_int_eq(st, PT_USAGE);
        ck_assert_str_eq(err.text, places[_i].error);
        return;
    }
    ck_assert_msg(st == PT_OK, "%s", err.text);
    ck_assert_int_eq(p.launcher, places[_i].launcher);
    ck_assert_int_eq(p.mpi, places[_i].mpi);
    ck_assert_uint_eq(p.rank, places[_i].rank);
    ck_assert_uint_eq(p.size, places[_i].size);
    ck_assert_uint_eq(p.local, places[_i].local);
    ck_assert_str_eq(p.address, places[_i].address);
    ck_assert_uint_eq(p.port, places[_i].port);
}
END_TEST

START_TEST(first_host_of_a_list)
{
    static const char *const rows[][2] = { { "a", "a" },
                                           { "a,b", "a" },
                                           { "n[1-4]", "n1" },
                                           { "n[01,05-07],m", "n01" },
                                           { "x-[10]", "x-10" } };
    char host[16];

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        exec_first_host(rows[i][0], host, sizeof(host));
        ck_assert_str_eq(host, rows[i][1]);
    }
}
END_TEST

START_TEST(a_rank_that_differs_is_named)
{
    struct exec_identity all[3] = { { .host = "a", .plan = "p", .data = "d" },
                                    { .host = "a", .plan = "p", .data = "d" },
                                    { .host = "b", .plan = "p", .data = "d" } };
    struct pt_error err = PT_ERROR_INIT;

    ck_assert_int_eq(exec_identity_compare(all, 3, &err), PT_OK);
    snprintf(all[2].data, sizeof(all[2].data), "other");
    ck_assert_int_eq(exec_identity_compare(all, 3, &err), PT_USAGE);
    ck_assert_str_eq(err.text, "rank 2 on b has another data than rank 0 on a: other and "
                               "d; give all ranks the same");
}
END_TEST

static const struct exec_host fit = { .name = "a",
                                      .interface = "eth0 10.0.0.1",
                                      .locked_bytes = HUGE_VAL,
                                      .files = 4096,
                                      .shm_bytes = 1e9,
                                      .shm_free_bytes = 1e9,
                                      .memory_bytes = 8e9,
                                      .cpus = 4,
                                      .numa_nodes = 1,
                                      .huge_pages = 1,
                                      .skew_s = 1e-6,
                                      .skew_error_s = 2e-6,
                                      .latency_s = 1e-6,
                                      .message_bytes_per_s = 5e9,
                                      .allreduce_bytes_per_s = 9e9 };

static enum pt_status judged(const struct exec_host *all, uint32_t n, char *text,
                             size_t size, struct pt_error *err)
{
    FILE *f = fmemopen(text, size, "w");
    enum pt_status st;

    ck_assert_ptr_nonnull(f);
    st = exec_doctor_judge(all, n, "words", EXEC_DOCTOR_CSV, f, err);
    fclose(f);
    return st;
}

static const struct {
    const char *check, *verdict;
    size_t at; /* of the member that is unfit */
    double value;
} ills[] = {
    { "locked-memory", "warning", offsetof(struct exec_host, locked_bytes), 65536 },
    { "open-files", "warning", offsetof(struct exec_host, files), 256 },
    { "shared-memory", "warning", offsetof(struct exec_host, shm_free_bytes), 1e6 },
    { "memory", "bad", offsetof(struct exec_host, memory_bytes), 3e8 },
    { "processors", "warning", offsetof(struct exec_host, cpus), 1 },
    { "numa-nodes", "warning", offsetof(struct exec_host, numa_nodes), 2 },
    { "huge-pages", "warning", offsetof(struct exec_host, huge_pages), 0 },
    { "clock-skew", "warning", offsetof(struct exec_host, skew_s), -0.02 },
    { "clock-skew", "bad", offsetof(struct exec_host, skew_s), 3 },
    { "latency", "warning", offsetof(struct exec_host, latency_s), 0.01 },
    { "bandwidth", "warning", offsetof(struct exec_host, message_bytes_per_s), 1e7 },
};

START_TEST(the_doctor_sees_what_is_unfit)
{
    struct exec_host all[2] = { fit, fit };
    struct pt_error err = PT_ERROR_INIT;
    char text[8192] = "", row[64];
    enum pt_status st;

    all[1].rank = 1;
    ck_assert_int_eq(judged(all, 2, text, sizeof(text), &err), PT_OK);
    ck_assert_ptr_null(strstr(text, "warning"));
    for (int r = 0; r < 2; r++)
        memcpy((char *)&all[r] + ills[_i].at, &ills[_i].value, sizeof(double));
    st = judged(all, 2, text, sizeof(text), &err);
    ck_assert_int_eq(st, strcmp(ills[_i].verdict, "bad") == 0 ? PT_DIFFERS : PT_OK);
    snprintf(row, sizeof(row), ",%s,%.17g,", ills[_i].check, ills[_i].value);
    ck_assert_msg(strstr(text, row) != NULL, "no '%s' in: %s", row, text);
    snprintf(row, sizeof(row), ",%s,", ills[_i].verdict);
    ck_assert_msg(strstr(text, row) != NULL, "no '%s' in: %s", row, text);
}
END_TEST

START_TEST(a_loopback_between_hosts_is_bad)
{
    struct exec_host all[2] = { fit, fit };
    struct pt_error err = PT_ERROR_INIT;
    char text[8192] = "";

    all[1].rank = 1;
    snprintf(all[1].name, sizeof(all[1].name), "b");
    ck_assert_int_eq(judged(all, 2, text, sizeof(text), &err), PT_OK);
    ck_assert_ptr_nonnull(strstr(text, "b,1,interface,1,,ok,eth0 10.0.0.1"));
    snprintf(all[1].interface, sizeof(all[1].interface), "lo 127.0.0.1");
    ck_assert_int_eq(judged(all, 2, text, sizeof(text), &err), PT_DIFFERS);
}
END_TEST

START_TEST(this_host_can_be_read)
{
    struct exec_host h;

    exec_host_read(&h, 5, "x");
    ck_assert_str_ne(h.name, "");
    ck_assert(h.rank == 5 && h.cpus > 0 && h.numa_nodes >= 1 && h.memory_bytes > 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("place");
    TCase *t = tcase_create("place");

    tcase_add_loop_test(t, launchers_are_known_by_their_variables, 0,
                        sizeof(places) / sizeof(places[0]));
    tcase_add_test(t, first_host_of_a_list);
    tcase_add_test(t, a_rank_that_differs_is_named);
    tcase_add_loop_test(t, the_doctor_sees_what_is_unfit, 0,
                        sizeof(ills) / sizeof(ills[0]));
    tcase_add_test(t, a_loopback_between_hosts_is_bad);
    tcase_add_test(t, this_host_can_be_read);
    suite_add_tcase(s, t);
    return unit_run(s);
}
