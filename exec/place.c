/* Variables: Open MPI's ompi_info and mpirun(1); PMIx_RANK and PMI_RANK of MPICH and
 * srun; srun(1), "OUTPUT ENVIRONMENT VARIABLES"; torchrun's "Environment Variables". */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec/place.h"
#include "libpt/units.h"

const char *const exec_launcher_names[EXEC_N_LAUNCHERS] = { "ptexec", "mpirun", "srun",
                                                            "torchrun" };

static enum pt_status number(const char *name, uint64_t high, uint64_t *value,
                             struct pt_error *err)
{
    const char *text = getenv(name);

    if (text == NULL)
        return pt_fail(err, PT_USAGE, name, 0,
                       "the launcher's variable is not set, though others of it are");
    return pt_parse_u64(name, text, 0, high, value, err);
}

struct names {
    enum exec_launcher launcher;
    const char *rank, *size, *local;
    bool mpi;
};

/* The first whose rank is set. A Slurm batch script has SLURM_PROCID too, but is no step
 * of srun. */
static const struct names *find(void)
{
    static const struct names list[] = {
        { EXEC_BY_MPIRUN, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
          "OMPI_COMM_WORLD_LOCAL_RANK", true },
        { EXEC_BY_TORCHRUN, "RANK", "WORLD_SIZE", "LOCAL_RANK", false },
        { EXEC_BY_SLURM, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", false },
        { EXEC_BY_MPIRUN, "PMI_RANK", "PMI_SIZE", NULL, true },
    };

    for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
        if (getenv(list[i].rank) == NULL)
            continue;
        if (list[i].launcher == EXEC_BY_SLURM && getenv("SLURM_STEP_ID") == NULL)
            continue;
        if (list[i].launcher == EXEC_BY_TORCHRUN && getenv("WORLD_SIZE") == NULL)
            continue; /* RANK is a common word */
        return &list[i];
    }
    return NULL;
}

void exec_first_host(const char *list, char *host, unsigned size)
{
    size_t prefix = strcspn(list, ",[");
    const char *inner = list + prefix;

    snprintf(host, size, "%.*s", (int)prefix, list);
    if (*inner == '[') {
        size_t first = strcspn(inner + 1, ",-]");

        snprintf(host, size, "%.*s%.*s", (int)prefix, list, (int)first, inner + 1);
    }
}

/* MASTER_ADDR and MASTER_PORT, whoever set them. torchrun's agent keeps its own store at
 * MASTER_PORT when it says so: one further. */
static enum pt_status torch_address(struct exec_place *p, struct pt_error *err)
{
    const char *address = getenv("MASTER_ADDR"),
               *own = getenv("TORCHELASTIC_USE_AGENT_STORE");
    uint64_t port = 0;
    enum pt_status st = number("MASTER_PORT", 65534, &port, err);

    if (st != PT_OK)
        return st;
    if (address == NULL)
        return pt_fail(err, PT_USAGE, "MASTER_ADDR", 0,
                       "not set: where is rank 0? torchrun sets it");
    snprintf(p->address, sizeof(p->address), "%.127s", address);
    p->port = (uint16_t)(port + (own != NULL && strcmp(own, "True") == 0));
    return PT_OK;
}

/* The first host of the step; a port that two jobs of one host hardly share. */
static enum pt_status slurm_address(struct exec_place *p, struct pt_error *err)
{
    const char *list = getenv("SLURM_STEP_NODELIST");
    uint64_t job = 0, step = 0;
    enum pt_status st = number("SLURM_JOB_ID", UINT64_MAX, &job, err);

    if (st == PT_OK)
        st = number("SLURM_STEP_ID", UINT64_MAX, &step, err);
    if (st != PT_OK)
        return st;
    if (list == NULL)
        list = getenv("SLURM_NODELIST");
    if (list == NULL)
        return pt_fail(err, PT_USAGE, "SLURM_STEP_NODELIST", 0,
                       "not set: where is rank 0? srun sets it");
    exec_first_host(list, p->address, sizeof(p->address));
    p->port = (uint16_t)(20000 + (job * 31 + step) % 20000);
    return PT_OK;
}

enum pt_status exec_place_find(struct exec_place *p, struct pt_error *err)
{
    const struct names *names = find();
    uint64_t rank, size, local = 0;
    enum pt_status st;

    *p = (struct exec_place){ .size = 1 };
    if (names == NULL)
        return PT_OK;
    st = number(names->size, 1u << 20, &size, err);
    if (st == PT_OK)
        st = number(names->rank, 1u << 20, &rank, err);
    if (st == PT_OK && names->local != NULL)
        st = number(names->local, 1u << 20, &local, err);
    if (st != PT_OK)
        return st;
    if (size == 0 || rank >= size)
        return pt_fail(err, PT_USAGE, names->rank, 0, "%llu is no rank of %llu (%s)",
                       (unsigned long long)rank, (unsigned long long)size, names->size);
    p->launcher = names->launcher;
    p->rank = (uint32_t)rank;
    p->size = (uint32_t)size;
    p->local = (uint32_t)local;
    /* srun --mpi=pmix or pmi2 */
    p->mpi = names->mpi || (p->launcher == EXEC_BY_SLURM &&
                            (getenv("PMIX_RANK") != NULL || getenv("PMI_RANK") != NULL));
    if (p->launcher == EXEC_BY_SLURM && getenv("MASTER_ADDR") == NULL)
        return slurm_address(p, err);
    if (p->launcher == EXEC_BY_TORCHRUN || getenv("MASTER_ADDR") != NULL)
        return torch_address(p, err);
    return PT_OK;
}

enum pt_status exec_place_check(const struct exec_place *p, uint32_t ranks,
                                struct pt_error *err)
{
    if (p->size == ranks)
        return PT_OK;
    return pt_fail(err, PT_USAGE, NULL, 0,
                   "the plan is made for %u rank(s), but %s started %u; start %u, plan "
                   "again with --gpus %u, or start all from this process with --comm "
                   "local",
                   ranks, exec_launcher_names[p->launcher], p->size, ranks, p->size);
}
