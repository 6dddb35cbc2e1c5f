/* Sources: getrlimit(2), statvfs(3), proc_meminfo(5), the kernel's cgroup-v2.rst
 * (memory.max, memory.current, cpu.max), sysfs-devices-node, transhuge.rst. */
#include "config.h"

#include <dirent.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "exec/doctor.h"

static double limit(int which)
{
    struct rlimit l;

    if (getrlimit((__rlimit_resource_t)which, &l) != 0)
        return -1;
    return l.rlim_cur == RLIM_INFINITY ? HUGE_VAL : (double)l.rlim_cur;
}

/* The first line of a file; false when there is none. */
static bool first_line(const char *path, char *line, int size)
{
    FILE *f = fopen(path, "r");
    bool got = f != NULL && fgets(line, size, f) != NULL;

    if (f != NULL)
        fclose(f);
    return got;
}

static double number_in(const char *path)
{
    char line[128];

    if (!first_line(path, line, sizeof(line)))
        return -1;
    return strncmp(line, "max", 3) == 0 ? HUGE_VAL : strtod(line, NULL);
}

static double meminfo(const char *key)
{
    FILE *f = fopen("/proc/meminfo", "r");
    char line[128];
    double kib = -1;

    while (f != NULL && fgets(line, sizeof(line), f) != NULL)
        if (strncmp(line, key, strlen(key)) == 0)
            kib = strtod(line + strlen(key), NULL);
    if (f != NULL)
        fclose(f);
    return kib < 0 ? -1 : 1024 * kib;
}

static double available_memory(void)
{
    double host = meminfo("MemAvailable:");
    double most = number_in("/sys/fs/cgroup/memory.max");
    double now = number_in("/sys/fs/cgroup/memory.current");

    if (most >= 0 && now >= 0 && most - now < host)
        return most - now;
    return host;
}

/* Processors of the affinity mask, at most the control group's quota. */
static double processors(const cpu_set_t *set)
{
    double n = CPU_COUNT(set);
    char line[128], *end;

    if (first_line("/sys/fs/cgroup/cpu.max", line, sizeof(line)) &&
        strncmp(line, "max", 3) != 0) {
        double quota = strtod(line, &end), period = strtod(end, NULL);

        if (period > 0)
            n = fmin(n, quota / period);
    }
    return n;
}

/* Directories node0, node1, ... that hold a processor of the set. */
static double numa_nodes(const cpu_set_t *set)
{
    double n = 0;

    for (int node = 0; node < 1024; node++) {
        char path[80];
        bool here = false;
        struct dirent *e;
        DIR *d;

        snprintf(path, sizeof(path), "/sys/devices/system/node/node%d", node);
        d = opendir(path);
        if (d == NULL)
            break;
        while ((e = readdir(d)) != NULL) {
            char *end;
            long cpu;

            if (strncmp(e->d_name, "cpu", 3) != 0)
                continue;
            cpu = strtol(e->d_name + 3, &end, 10);
            if (*end == '\0' && end > e->d_name + 3 && cpu < CPU_SETSIZE)
                here = here || CPU_ISSET((size_t)cpu, set);
        }
        closedir(d);
        n += here ? 1 : 0;
    }
    return n > 0 ? n : 1;
}

/* "always within_size [advise] never deny force" */
static double huge_pages(void)
{
    char line[128];

    if (!first_line("/sys/kernel/mm/transparent_hugepage/shmem_enabled", line,
                    sizeof(line)))
        return -1;
    if (strstr(line, "[always]") != NULL || strstr(line, "[force]") != NULL ||
        strstr(line, "[within_size]") != NULL)
        return 2;
    return strstr(line, "[advise]") != NULL ? 1 : 0;
}

void exec_host_read(struct exec_host *h, uint32_t rank, const char *interface)
{
    struct statvfs shm;
    cpu_set_t set;

    memset(h, 0, sizeof(*h));
    h->rank = rank;
    if (gethostname(h->name, sizeof(h->name) - 1) != 0)
        snprintf(h->name, sizeof(h->name), "unnamed");
    snprintf(h->interface, sizeof(h->interface), "%s", interface);
    h->locked_bytes = limit(RLIMIT_MEMLOCK);
    h->files = limit(RLIMIT_NOFILE);
    h->shm_bytes = h->shm_free_bytes = -1;
    if (statvfs("/dev/shm", &shm) == 0) {
        h->shm_bytes = (double)shm.f_blocks * (double)shm.f_frsize;
        h->shm_free_bytes = (double)shm.f_bavail * (double)shm.f_frsize;
    }
    h->memory_bytes = available_memory();
    if (sched_getaffinity(0, sizeof(set), &set) != 0) {
        CPU_ZERO(&set);
        CPU_SET(0, &set);
    }
    h->cpus = processors(&set);
    h->numa_nodes = numa_nodes(&set);
    h->huge_pages = huge_pages();
}
