/* The only file that knows MPI. One communicator of our own, so that nothing meets the
 * messages of others; point to point only, because collectives of a library sum in an
 * order of their own. */
#include "config.h"

#include "exec/comm_mpi.h"

#ifdef HAVE_MPI
#include <ifaddrs.h>
#include <limits.h>
#include <mpi.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SPINS 2000

struct mpi_wire {
    struct exec_wire base;
    MPI_Comm comm;
};

struct exec_transfer {
    MPI_Request request;
    int expected; /* bytes or words; -1: a send */
    MPI_Datatype type;
    uint32_t peer;
};

static struct mpi_wire *mpi_of(struct exec_wire *wire)
{
    return (struct mpi_wire *)(void *)wire;
}

static enum pt_status failed(const char *what, uint32_t peer, int code,
                             struct pt_error *err)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int len;

    MPI_Error_string(code, text, &len);
    return pt_fail(err, PT_SYSTEM, NULL, 0, "MPI: %s rank %u: %.300s", what, peer, text);
}

/* Counts are int: long messages travel as words of eight bytes. */
static enum pt_status measure(size_t bytes, int *count, MPI_Datatype *type,
                              struct pt_error *err)
{
    *type = bytes % 8 == 0 ? MPI_UINT64_T : bytes % 4 == 0 ? MPI_UINT32_T : MPI_BYTE;
    bytes /= bytes % 8 == 0 ? 8 : bytes % 4 == 0 ? 4 : 1;
    if (bytes > INT_MAX)
        return pt_fail(err, PT_CAPACITY, NULL, 0,
                       "a message of %zu words; MPI carries %d at most: use a smaller "
                       "micro-batch or more ranks",
                       bytes, INT_MAX);
    *count = (int)bytes;
    return PT_OK;
}

static enum pt_status transfer_new(uint32_t peer, int expected, MPI_Datatype type,
                                   struct exec_transfer **out, struct pt_error *err)
{
    struct exec_transfer *t = calloc(1, sizeof(*t));

    *out = t;
    if (t == NULL)
        return pt_fail_memory(err);
    t->request = MPI_REQUEST_NULL;
    t->expected = expected;
    t->type = type;
    t->peer = peer;
    return PT_OK;
}

static enum pt_status mpi_send(struct exec_wire *wire, uint32_t to, uint32_t tag,
                               const void *buf, size_t bytes, struct exec_transfer **out,
                               struct pt_error *err)
{
    MPI_Datatype type;
    int count, code;
    enum pt_status st = measure(bytes, &count, &type, err);

    if (st == PT_OK)
        st = transfer_new(to, -1, type, out, err);
    if (st != PT_OK)
        return st;
    code = MPI_Isend(buf, count, type, (int)to, (int)tag, mpi_of(wire)->comm,
                     &(*out)->request);
    return code == MPI_SUCCESS ? PT_OK : failed("cannot send to", to, code, err);
}

static enum pt_status mpi_recv(struct exec_wire *wire, uint32_t from, uint32_t tag,
                               void *buf, size_t bytes, struct exec_transfer **out,
                               struct pt_error *err)
{
    MPI_Datatype type;
    int count, code;
    enum pt_status st = measure(bytes, &count, &type, err);

    if (st == PT_OK)
        st = transfer_new(from, count, type, out, err);
    if (st != PT_OK)
        return st;
    code = MPI_Irecv(buf, count, type, (int)from, (int)tag, mpi_of(wire)->comm,
                     &(*out)->request);
    return code == MPI_SUCCESS ? PT_OK : failed("cannot receive from", from, code, err);
}

static enum pt_status mpi_test(struct exec_wire *wire, struct exec_transfer **transfer,
                               struct pt_error *err)
{
    struct exec_transfer *t = *transfer;
    MPI_Status status;
    int done, count, code;

    (void)wire;
    if (t == NULL)
        return PT_OK;
    code = MPI_Test(&t->request, &done, &status);
    if (code != MPI_SUCCESS)
        return failed("lost a message with", t->peer, code, err);
    if (!done)
        return PT_OK;
    *transfer = NULL;
    count = t->expected;
    if (t->expected >= 0)
        MPI_Get_count(&status, t->type, &count);
    if (count != t->expected) {
        enum pt_status st =
            pt_fail(err, PT_SYSTEM, NULL, 0, "rank %u sent %d words, %d were expected",
                    t->peer, count, t->expected);

        free(t);
        return st;
    }
    free(t);
    return PT_OK;
}

static void mpi_cancel(struct exec_wire *wire, struct exec_transfer **transfer)
{
    struct exec_transfer *t = *transfer;

    (void)wire;
    *transfer = NULL;
    if (t != NULL && t->request != MPI_REQUEST_NULL) {
        MPI_Cancel(&t->request);
        MPI_Request_free(&t->request);
    }
    free(t);
}

static void mpi_idle(struct exec_wire *wire)
{
    const struct timespec pause = { 0, 50000 };

    (void)wire;
    nanosleep(&pause, NULL); /* a yield would keep the processor from others' ranks */
}

static void mpi_abort(struct exec_wire *wire, int exit_status)
{
    MPI_Abort(mpi_of(wire)->comm, exit_status);
}

static void mpi_close(struct exec_wire *wire)
{
    struct mpi_wire *w = mpi_of(wire);

    MPI_Comm_free(&w->comm);
    MPI_Finalize();
    free(w);
}

static const struct exec_wire_ops mpi_ops = {
    .name = "mpi",
    .send = mpi_send,
    .recv = mpi_recv,
    .test = mpi_test,
    .cancel = mpi_cancel,
    .idle = mpi_idle,
    .abort = mpi_abort,
    .close = mpi_close,
};

/* The network interfaces that MPI may use, "eth0 10.0.0.1": Open MPI chooses among those
 * that are up, or named in this variable, and does not tell which. */
static void list_interfaces(char *text, size_t size)
{
    const char *told = getenv("OMPI_MCA_btl_tcp_if_include");
    char host[NI_MAXHOST];
    struct ifaddrs *list = NULL;

    text[0] = '\0';
    if (told != NULL) {
        snprintf(text, size, "btl_tcp_if_include %.90s", told);
        return;
    }
    if (getifaddrs(&list) != 0)
        return;
    for (const struct ifaddrs *i = list; i != NULL; i = i->ifa_next) {
        size_t used = strlen(text);

        if (i->ifa_addr == NULL || i->ifa_addr->sa_family != AF_INET ||
            (i->ifa_flags & IFF_UP) == 0 || (i->ifa_flags & IFF_LOOPBACK) != 0 ||
            getnameinfo(i->ifa_addr, sizeof(struct sockaddr_in), host, sizeof(host), NULL,
                        0, NI_NUMERICHOST) != 0 ||
            used + strlen(i->ifa_name) + strlen(host) + 6 > size)
            continue;
        snprintf(text + used, size - used, "%s%s %s", used > 0 ? " or " : "", i->ifa_name,
                 host);
    }
    freeifaddrs(list);
}

static void describe(struct exec_wire *wire)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int len;

    MPI_Get_library_version(text, &len);
    text[strcspn(text, ",\n")] = '\0';
    snprintf(wire->version, sizeof(wire->version), "%.95s", text);
    list_interfaces(wire->address, sizeof(wire->address));
}

enum pt_status exec_mpi_open(struct exec_wire **out, struct pt_error *err)
{
    struct mpi_wire *w = calloc(1, sizeof(*w));
    int level, rank, size, code;

    if (w == NULL)
        return pt_fail_memory(err);
    code = MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level);
    if (code != MPI_SUCCESS) {
        free(w);
        return pt_fail(err, PT_SYSTEM, NULL, 0, "MPI_Init_thread fails with code %d",
                       code);
    }
    MPI_Comm_dup(MPI_COMM_WORLD, &w->comm);
    MPI_Comm_set_errhandler(w->comm, MPI_ERRORS_RETURN);
    MPI_Comm_rank(w->comm, &rank);
    MPI_Comm_size(w->comm, &size);
    w->base.ops = &mpi_ops;
    w->base.rank = (uint32_t)rank;
    w->base.size = (uint32_t)size;
    w->base.spins = SPINS;
    describe(&w->base);
    *out = &w->base;
    return PT_OK;
}

#else

enum pt_status exec_mpi_open(struct exec_wire **out, struct pt_error *err)
{
    *out = NULL;
    return pt_fail(err, PT_USAGE, NULL, 0,
                   "this ptexec was built without MPI; start it by torchrun or srun "
                   "(--comm tcp), or build with --with-mpi");
}

#endif
