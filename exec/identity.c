#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "exec/blas.h"
#include "exec/identity.h"
#include "libpt/file.h"
#include "libpt/sha256.h"

#define MAX_FILE ((size_t)1 << 30)
#define DOUBLES  (sizeof(struct exec_identity) / sizeof(double))

_Static_assert(sizeof(struct exec_identity) % sizeof(double) == 0,
               "travels as doubles, whose bits a gather keeps");

static void hash_text(const char *text, size_t len, char *hex)
{
    struct pt_sha256 h;
    uint8_t digest[32];

    pt_sha256_init(&h);
    pt_sha256_update(&h, text, len);
    pt_sha256_final(&h, digest);
    pt_sha256_hex(digest, hex);
}

static enum pt_status hash_file(const char *path, char *hex, struct pt_error *err)
{
    char *text;
    size_t len;
    enum pt_status st = pt_file_read(path, MAX_FILE, &text, &len, err);

    if (st != PT_OK)
        return st;
    hash_text(text, len, hex);
    free(text);
    return PT_OK;
}

/* "AMD EPYC 9654 96-Core Processor" as Linux names it; the machine's kind where it does
 * not. */
static void name_processor(char *name, size_t size)
{
    FILE *f = fopen("/proc/cpuinfo", "r");
    struct utsname machine;
    char line[256];

    snprintf(name, size, "%.60s", uname(&machine) == 0 ? machine.machine : "processor");
    while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
        const char *colon = strchr(line, ':');

        if (strncmp(line, "model name", 10) != 0 || colon == NULL)
            continue;
        colon += strspn(colon, ": \t");
        snprintf(name, size, "%.*s", (int)strcspn(colon, "\n"), colon);
        break;
    }
    if (f != NULL)
        fclose(f);
}

enum pt_status exec_identity_init(struct exec_identity *id, const char *plan_path,
                                  const char *data_hash, const char *options,
                                  const char *address, const char *isa,
                                  struct pt_error *err)
{
    enum pt_status st;

    memset(id, 0, sizeof(*id));
    st = hash_file("/proc/self/exe", id->binary, err);
    if (st == PT_OK)
        st = hash_file(plan_path, id->plan, err);
    snprintf(id->data, sizeof(id->data), "%s", data_hash);
    hash_text(options, strlen(options), id->options);
    snprintf(id->address, sizeof(id->address), "%s", address);
    snprintf(id->isa, sizeof(id->isa), "%s", isa);
    snprintf(id->blas, sizeof(id->blas), "%s", exec_blas_name());
    name_processor(id->cpu, sizeof(id->cpu));
    if (gethostname(id->host, sizeof(id->host) - 1) != 0)
        snprintf(id->host, sizeof(id->host), "unnamed");
    return st;
}

enum pt_status exec_identity_exchange(struct exec_comm *comm,
                                      const struct exec_identity *mine,
                                      struct exec_identity *all, struct pt_error *err)
{
    size_t bytes = comm->size * sizeof(*mine);
    struct exec_collective op = {
        EXEC_ALLGATHER, EXEC_F64, false, true, comm->arena, comm->size * DOUBLES, NULL
    };
    uint32_t *ranks = calloc(comm->size, sizeof(*ranks));
    struct exec_group *world = NULL;
    enum pt_status st = PT_OK;

    if (ranks == NULL)
        return pt_fail_memory(err);
    if (bytes > comm->arena_bytes)
        st = pt_fail(err, PT_BUG, NULL, 0, "an arena of %zu bytes for %u ranks",
                     comm->arena_bytes, comm->size);
    for (uint32_t r = 0; r < comm->size; r++)
        ranks[r] = r;
    if (st == PT_OK)
        st = comm->ops->group(comm, EXEC_DIM_WORLD, ranks, comm->size, &world, err);
    if (st == PT_OK) {
        memcpy((char *)comm->arena + comm->rank * sizeof(*mine), mine, sizeof(*mine));
        st = exec_collective(world, &op, err);
    }
    if (st == PT_OK)
        memcpy(all, comm->arena, bytes);
    if (world != NULL)
        comm->ops->group_free(world);
    comm->traffic = (struct exec_traffic){ { 0 }, 0 };
    free(ranks);
    return st;
}

enum pt_status exec_identity_compare(const struct exec_identity *all, uint32_t size,
                                     struct pt_error *err)
{
    for (uint32_t r = 1; r < size; r++) {
        const struct {
            const char *what, *first, *this;
        } field[] = {
            { "ptexec program", all[0].binary, all[r].binary },
            { "plan", all[0].plan, all[r].plan },
            { "data", all[0].data, all[r].data },
            { "set of training options", all[0].options, all[r].options },
            { "kernels (--isa)", all[0].isa, all[r].isa },
        };

        for (size_t i = 0; i < sizeof(field) / sizeof(field[0]); i++)
            if (strcmp(field[i].first, field[i].this) != 0)
                return pt_fail(err, PT_USAGE, NULL, 0,
                               "rank %u on %s has another %s than rank 0 on %s: %.16s "
                               "and %.16s; give all ranks the same",
                               r, all[r].host, field[i].what, all[0].host, field[i].this,
                               field[i].first);
    }
    return PT_OK;
}

/* "host a: 0 1 2, eth0 10.0.0.1" for the ranks that name the same host, and what computes
 * there. Products by another library, or for another processor, round otherwise. */
static void print_host(FILE *f, const struct exec_identity *all, uint32_t size,
                       uint32_t first)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    uint32_t n = 0;

    fprintf(f, "host     %s:", all[first].host);
    for (uint32_t r = first; r < size; r++)
        if (strcmp(all[r].host, all[first].host) == 0) {
            fprintf(f, " %u", r);
            n++;
        }
    fprintf(f, "%s%s\n", all[first].address[0] != '\0' ? ", " : "", all[first].address);
    fprintf(f, "         on %s\n", all[first].cpu);
    if (strcmp(all[first].blas, all[0].blas) != 0)
        fprintf(
            f,
            "         products %s,\n         whose sums round otherwise than rank 0's\n",
            all[first].blas);
    /* Rank 0 prints, and knows the processors of its own host. */
    if (first == 0 && processors > 0 && n > processors)
        fprintf(f, "         %u ranks share %ld processor%s: slower than planned\n", n,
                processors, processors == 1 ? "" : "s");
}

void exec_identity_print(FILE *f, const struct exec_identity *all, uint32_t size,
                         const char *transport)
{
    fprintf(f, "device   cpu, one rank a process; messages over %s\n", transport);
    for (uint32_t r = 0; r < size; r++) {
        uint32_t first = 0;

        while (strcmp(all[first].host, all[r].host) != 0)
            first++;
        if (first == r)
            print_host(f, all, size, r);
    }
    fprintf(f, "hashes   ptexec %.12s, plan %.12s, data %.12s: the same on every rank\n",
            all[0].binary, all[0].plan, all[0].data);
}
