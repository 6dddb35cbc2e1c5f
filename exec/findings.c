/* What the doctor says of what it saw. A row per finding; of a host's ranks the first one
 * speaks for the host. */
#include "config.h"

#include <math.h>
#include <string.h>

#include "exec/doctor.h"
#include "libpt/csv.h"
#include "libpt/json.h"
#include "libpt/units.h"

enum verdict { GOOD, WARN, BAD };
static const char *const verdict_names[] = { "ok", "warning", "bad" };

struct printer {
    enum exec_doctor_format format;
    FILE *out;
    struct pt_json *doc, *array;
    bool bad;
};

struct finding {
    const char *check;
    double value;
    const char *unit;
    enum verdict verdict;
    const char *advice; /* what to set; "" when nothing is */
};

/* For people: the value with a fitting unit. */
static const char *readable(char *buf, size_t size, const struct finding *f)
{
    char text[32];

    if (f->value < 0 && strcmp(f->unit, "s") != 0)
        snprintf(buf, size, "unknown");
    else if (isinf(f->value))
        snprintf(buf, size, "unlimited");
    else if (strcmp(f->unit, "B") == 0)
        snprintf(buf, size, "%s", pt_format_gib(text, f->value));
    else if (strcmp(f->unit, "B/s") == 0)
        snprintf(buf, size, "%.3g GB/s", f->value / 1e9);
    else if (strcmp(f->unit, "s") == 0)
        snprintf(buf, size, "%.3g us", f->value * 1e6);
    else
        snprintf(buf, size, f->value < 1e4 ? "%.4g" : "%.0f", f->value);
    return buf;
}

static void print(struct printer *p, const struct exec_host *h, const struct finding *f)
{
    char value[48], rank[16];
    const char *verdict = verdict_names[f->verdict];

    p->bad = p->bad || f->verdict == BAD;
    snprintf(rank, sizeof(rank), "%.0f", h->rank);
    if (p->format == EXEC_DOCTOR_TEXT) {
        fprintf(p->out, "%-12.12s %4s  %-16s %12s  %-7s %s\n", h->name, rank, f->check,
                readable(value, sizeof(value), f), verdict, f->advice);
    } else if (p->format == EXEC_DOCTOR_CSV) {
        snprintf(value, sizeof(value), "%.17g", f->value);
        pt_csv_put(p->out, h->name, 1);
        pt_csv_put(p->out, rank, 0);
        pt_csv_put(p->out, f->check, 0);
        pt_csv_put(p->out, value, 0);
        pt_csv_put(p->out, f->unit, 0);
        pt_csv_put(p->out, verdict, 0);
        pt_csv_put(p->out, f->advice, 0);
        pt_csv_put_end(p->out);
    } else {
        struct pt_json *o = pt_json_add_object(p->array, NULL);

        pt_json_put_string(o, "host", h->name);
        pt_json_put_u64(o, "rank", (uint64_t)h->rank);
        pt_json_put_string(o, "check", f->check);
        if (isfinite(f->value)) /* JSON has no infinity: no limit, no value */
            pt_json_put_number(o, "value", f->value);
        pt_json_put_string(o, "unit", f->unit);
        pt_json_put_string(o, "verdict", verdict);
        pt_json_put_string(o, "advice", f->advice);
    }
}

#define MIB 1048576.0

/* h: the host's first rank; ranks: how many live there. */
static void judge_host(struct printer *p, const struct exec_host *h, double ranks,
                       bool several)
{
    bool few = h->cpus < ranks, little = h->memory_bytes < 256 * MIB * ranks;
    const struct finding list[] = {
        { "locked-memory", h->locked_bytes, "B", h->locked_bytes < 64 * MIB ? WARN : GOOD,
          h->locked_bytes < 64 * MIB
              ? "InfiniBand and pinned copies need more: ulimit -l unlimited (memlock in "
                "limits.conf, LimitMEMLOCK= of the service)"
              : "" },
        { "open-files", h->files, "", h->files < 1024 ? WARN : GOOD,
          h->files < 1024 ? "ulimit -n 4096: a connection per rank and the data files"
                          : "" },
        { "shared-memory", h->shm_free_bytes, "B",
          h->shm_free_bytes < 16 * MIB * ranks ? WARN : GOOD,
          h->shm_free_bytes < 16 * MIB * ranks
              ? "MPI keeps its buffers there: mount -o remount,size=1G /dev/shm, or "
                "--shm-size of the container (ptexec's own ranks need none)"
              : "" },
        { "memory", h->memory_bytes, "B", little ? BAD : GOOD,
          little ? "less than 256 MiB a rank is free: end other programs, raise the "
                   "control group's memory.max, or use fewer ranks"
                 : "" },
        { "processors", h->cpus, "", few ? WARN : GOOD,
          few ? "fewer than ranks: they wait for each other; use fewer ranks, or widen "
                "taskset or cpu.max"
              : "" },
        { "numa-nodes", h->numa_nodes, "", h->numa_nodes > 1 ? WARN : GOOD,
          h->numa_nodes > 1 ? "bind each rank to one: mpirun --map-by numa --bind-to "
                              "core, srun --cpu-bind=cores, numactl"
                            : "" },
        { "huge-pages", h->huge_pages, "", h->huge_pages == 0 ? WARN : GOOD,
          h->huge_pages == 0 ? "large arenas run faster with them: echo advise "
                               ">/sys/kernel/mm/transparent_hugepage/shmem_enabled"
                             : "" },
    };

    for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++)
        print(p, h, &list[i]);
    if (several && h->interface[0] != '\0') {
        bool loopback =
            strstr(h->interface, "127.") != NULL || strstr(h->interface, "::1") != NULL;
        const struct finding f = {
            "interface", 1, "", loopback ? BAD : GOOD,
            loopback ? "only the loopback is used: set MASTER_ADDR to an address that "
                       "the other hosts reach"
                     : h->interface
        };

        print(p, h, &f);
    }
}

/* Between rank 0 and this one. */
static void judge_rank(struct printer *p, const struct exec_host *h, bool same_host)
{
    double off = fabs(h->skew_s) - h->skew_error_s;
    double slow = same_host ? 0.5e9 : 0.1e9;
    enum verdict skew = off > 1 ? BAD : off > 0.01 ? WARN : GOOD;
    const struct finding list[] = {
        { "clock-skew", h->skew_s, "s", skew,
          skew != GOOD ? "traces and logs of the hosts will not fit together: run chrony "
                         "or ntpd on each"
                       : "" },
        { "latency", h->latency_s, "s", h->latency_s > 1e-3 ? WARN : GOOD,
          h->latency_s > 1e-3 ? "a message takes longer than a millisecond: are the "
                                "processors busy, or the network shared?"
                              : "" },
        { "bandwidth", h->message_bytes_per_s, "B/s",
          h->message_bytes_per_s < slow ? WARN : GOOD,
          h->message_bytes_per_s < slow
              ? "slow for its kind: check the interface, its speed and who else uses it"
              : "" },
    };

    for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++)
        print(p, h, &list[i]);
}

static void judge_all(struct printer *p, const struct exec_host *all, uint32_t n)
{
    bool several = false;

    for (uint32_t r = 1; r < n; r++)
        several = several || strcmp(all[r].name, all[0].name) != 0;
    for (uint32_t r = 0; r < n; r++) {
        double here = 0;
        bool first = true;

        for (uint32_t i = 0; i < n; i++)
            if (strcmp(all[i].name, all[r].name) == 0) {
                here++;
                first = first && i >= r;
            }
        if (first)
            judge_host(p, &all[r], here, several);
    }
    for (uint32_t r = 1; r < n; r++)
        judge_rank(p, &all[r], strcmp(all[r].name, all[0].name) == 0);
    if (n > 1) {
        const struct finding f = { "all-reduce", all[0].allreduce_bytes_per_s, "B/s",
                                   GOOD, "" };

        print(p, &all[0], &f);
    }
}

enum pt_status exec_doctor_judge(const struct exec_host *all, uint32_t n,
                                 const char *transport, enum exec_doctor_format format,
                                 FILE *out, struct pt_error *err)
{
    struct printer p = { format, out, NULL, NULL, false };
    enum pt_status st = PT_OK;

    if (format == EXEC_DOCTOR_TEXT) {
        fprintf(out, "%u rank(s), messages over %s\n", n, transport);
        fprintf(out, "%-12s %4s  %-16s %12s  %-7s %s\n", "host", "rank", "check", "value",
                "verdict", "advice");
    } else if (format == EXEC_DOCTOR_CSV) {
        fputs("host,rank,check,value,unit,verdict,advice\n", out);
    } else {
        p.doc = pt_json_new_object();
        pt_json_put_string(p.doc, "transport", transport);
        pt_json_put_u64(p.doc, "ranks", n);
        p.array = pt_json_add_array(p.doc, "findings");
    }
    judge_all(&p, all, n);
    if (format == EXEC_DOCTOR_JSON) {
        st = pt_json_write(p.doc, out, NULL, err);
        pt_json_free(p.doc);
    }
    if (st == PT_OK && p.bad)
        st = pt_fail(err, PT_DIFFERS, NULL, 0,
                     "a finding marked bad would break or spoil a run");
    return st;
}
