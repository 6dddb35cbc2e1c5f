#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "exec/comm_tcp.h"
#include "exec/tcp_link.h"

#define MAGIC 0x3163707478657470ull /* "ptextpc1" */

#define SPINS    20 /* each costs system calls */
#define IDLE_MS  2
#define MAX_POLL 256

struct tcp_wire {
    struct exec_wire base;
    struct exec_link *link; /* [size]; own: none */
};

struct hello {
    uint64_t magic;
    uint32_t rank, size, port, pad;
};

struct whereabouts { /* as rank 0 sees a rank */
    struct sockaddr_storage address;
    uint32_t port;
};

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static struct tcp_wire *tcp_of(struct exec_wire *wire)
{
    return (struct tcp_wire *)(void *)wire;
}

/* --- the wire --- */

static struct exec_transfer *transfer_new(uint32_t peer, uint32_t tag, void *buf,
                                          size_t bytes, bool sends)
{
    struct exec_transfer *t = calloc(1, sizeof(*t));

    if (t != NULL)
        *t = (struct exec_transfer){
            .peer = peer, .tag = tag, .buf = buf, .bytes = bytes, .sends = sends
        };
    return t;
}

static enum pt_status tcp_send(struct exec_wire *wire, uint32_t to, uint32_t tag,
                               const void *buf, size_t bytes, struct exec_transfer **out,
                               struct pt_error *err)
{
    union {
        const void *in;
        void *out;
    } same = { buf }; /* a transfer of either direction holds it; a send only reads */
    struct exec_link *l = &tcp_of(wire)->link[to];

    *out = transfer_new(to, tag, same.out, bytes, true);
    if (*out == NULL)
        return pt_fail_memory(err);
    exec_link_send(l, *out);
    return exec_link_move(l, err);
}

static enum pt_status tcp_recv(struct exec_wire *wire, uint32_t from, uint32_t tag,
                               void *buf, size_t bytes, struct exec_transfer **out,
                               struct pt_error *err)
{
    *out = transfer_new(from, tag, buf, bytes, false);
    if (*out == NULL)
        return pt_fail_memory(err);
    return exec_link_want(&tcp_of(wire)->link[from], *out, err);
}

static enum pt_status tcp_test(struct exec_wire *wire, struct exec_transfer **transfer,
                               struct pt_error *err)
{
    struct exec_transfer *t = *transfer;
    enum pt_status st = PT_OK;

    if (t == NULL)
        return PT_OK;
    if (!t->complete)
        st = exec_link_move(&tcp_of(wire)->link[t->peer], err);
    if (t->complete) {
        free(t);
        *transfer = NULL;
    }
    return st;
}

static void tcp_cancel(struct exec_wire *wire, struct exec_transfer **transfer)
{
    struct exec_transfer *t = *transfer;

    *transfer = NULL;
    if (t != NULL && !t->complete)
        exec_link_forget(&tcp_of(wire)->link[t->peer], t);
    free(t);
}

/* Failures of a link show again when somebody waits for it. */
static void tcp_idle(struct exec_wire *wire)
{
    struct tcp_wire *w = tcp_of(wire);
    struct pollfd fds[MAX_POLL];
    uint32_t peer[MAX_POLL];
    nfds_t n = 0;

    for (uint32_t i = 0; i < wire->size && n < MAX_POLL; i++) {
        const struct exec_link *l = &w->link[i];

        if (l->fd < 0 || l->ended)
            continue;
        peer[n] = i;
        fds[n++] = (struct pollfd){ l->fd, (short)(POLLIN | (l->out ? POLLOUT : 0)), 0 };
    }
    if (poll(fds, n, IDLE_MS) <= 0)
        return;
    for (nfds_t i = 0; i < n; i++)
        if (fds[i].revents != 0)
            exec_link_move(&w->link[peer[i]], NULL);
}

static void tcp_abort(struct exec_wire *wire, int exit_status)
{
    struct tcp_wire *w = tcp_of(wire);

    (void)exit_status; /* the others see the connections end */
    for (uint32_t i = 0; i < wire->size; i++)
        if (w->link[i].fd >= 0)
            shutdown(w->link[i].fd, SHUT_RDWR);
}

static void tcp_close(struct exec_wire *wire)
{
    struct tcp_wire *w = tcp_of(wire);

    for (uint32_t i = 0; i < wire->size; i++)
        exec_link_fini(&w->link[i]);
    free(w->link);
    free(w);
}

static const struct exec_wire_ops tcp_ops = {
    .name = "tcp",
    .send = tcp_send,
    .recv = tcp_recv,
    .test = tcp_test,
    .cancel = tcp_cancel,
    .idle = tcp_idle,
    .abort = tcp_abort,
    .close = tcp_close,
};

/* --- coming together --- */

/* All bytes or a failure, until the deadline. */
static bool transfer_all(int fd, void *buf, size_t bytes, bool sends, double deadline)
{
    size_t done = 0;

    while (done < bytes) {
        struct pollfd p = { fd, sends ? POLLOUT : POLLIN, 0 };
        double left = deadline - now_s();
        ssize_t n;

        if (left <= 0 || poll(&p, 1, (int)(left * 1e3) + 1) <= 0)
            return false;
        n = sends ? send(fd, (char *)buf + done, bytes - done, MSG_NOSIGNAL)
                  : recv(fd, (char *)buf + done, bytes - done, 0);
        if (n <= 0 && !(n < 0 && (errno == EINTR || errno == EAGAIN)))
            return false;
        done += n > 0 ? (size_t)n : 0;
    }
    return true;
}

/* Listens on every address; port 0: any. */
static int listen_at(uint16_t port, uint16_t *got)
{
    struct sockaddr_storage own;
    struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
    struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = htons(port) };
    int one = 1, zero = 0, fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool bound = false;
    socklen_t len = sizeof(own);

    if (fd >= 0) {
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero));
        bound = bind(fd, (struct sockaddr *)&six, sizeof(six)) == 0;
        if (!bound)
            close(fd);
    }
    if (!bound) { /* no IPv6 here */
        fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0)
            return -1;
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
        bound = bind(fd, (struct sockaddr *)&four, sizeof(four)) == 0;
    }
    if (!bound || listen(fd, 1024) != 0 ||
        getsockname(fd, (struct sockaddr *)&own, &len) != 0) {
        close(fd);
        return -1;
    }
    *got = own.ss_family == AF_INET6
               ? ntohs(((struct sockaddr_in6 *)(void *)&own)->sin6_port)
               : ntohs(((struct sockaddr_in *)(void *)&own)->sin_port);
    return fd;
}

static void set_options(int fd)
{
    int one = 1;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
}

static int accept_until(int listener, double deadline)
{
    struct pollfd p = { listener, POLLIN, 0 };
    double left = deadline - now_s();
    int fd;

    if (left <= 0 || poll(&p, 1, (int)(left * 1e3) + 1) <= 0)
        return -1;
    fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd >= 0)
        set_options(fd);
    return fd;
}

static int connect_once(const struct sockaddr *address, socklen_t len)
{
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd >= 0 && connect(fd, address, len) != 0) {
        int e = errno;

        close(fd);
        errno = e;
        return -1;
    }
    if (fd >= 0)
        set_options(fd);
    return fd;
}

/* Rank 0 may start later than we do: again and again until the deadline. */
static int connect_name(const char *name, uint16_t port, double deadline,
                        struct pt_error *err)
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV };
    const struct timespec pause = { 0, 50000000 };
    char service[16];
    const char *why = "";

    snprintf(service, sizeof(service), "%u", port);
    do {
        struct addrinfo *list = NULL;
        int e = getaddrinfo(name, service, &hints, &list);

        why = e != 0 ? gai_strerror(e) : why;
        for (const struct addrinfo *a = list; a != NULL; a = a->ai_next) {
            int fd = connect_once(a->ai_addr, a->ai_addrlen);

            if (fd >= 0) {
                freeaddrinfo(list);
                return fd;
            }
            why = strerror(errno);
        }
        if (list != NULL)
            freeaddrinfo(list);
        nanosleep(&pause, NULL);
    } while (now_s() < deadline);
    pt_fail(err, PT_SYSTEM, NULL, 0,
            "rank 0 does not answer at %s, port %u: %s; is MASTER_ADDR (or the first "
            "host of the job) reachable from here?",
            name, port, why);
    return -1;
}

static enum pt_status missing(const struct tcp_wire *w, uint32_t after,
                              struct pt_error *err)
{
    uint32_t n = 0, first = w->base.size;

    for (uint32_t r = after; r < w->base.size; r++)
        if (w->link[r].fd < 0 && r != w->base.rank) {
            first = n++ == 0 ? r : first;
        }
    return pt_fail(err, PT_SYSTEM, NULL, 0,
                   "rank %u waited for all ranks to come: %u of %u are missing, the "
                   "first is rank %u",
                   w->base.rank, n, w->base.size, first);
}

static enum pt_status check_hello(struct tcp_wire *w, const struct hello *h,
                                  uint32_t lowest, struct pt_error *err)
{
    if (h->magic != MAGIC)
        return PT_INPUT; /* a stranger */
    if (h->size != w->base.size || h->rank >= h->size)
        return pt_fail(err, PT_USAGE, NULL, 0,
                       "rank %u of %u comes to a run of %u ranks: two runs share an "
                       "address and port?",
                       h->rank, h->size, w->base.size);
    if (h->rank < lowest || w->link[h->rank].fd >= 0)
        return pt_fail(err, PT_USAGE, NULL, 0, "two processes say that they are rank %u",
                       h->rank);
    return PT_OK;
}

/* Accepts the ranks from `lowest` on; strangers are sent away. */
static enum pt_status accept_ranks(struct tcp_wire *w, int listener, uint32_t lowest,
                                   struct whereabouts *where, double deadline,
                                   struct pt_error *err)
{
    for (uint32_t n = w->base.size - lowest; n > 0;) {
        struct hello h;
        int fd = accept_until(listener, deadline);
        enum pt_status st = PT_INPUT;

        if (fd < 0)
            return missing(w, lowest, err);
        if (transfer_all(fd, &h, sizeof(h), false, now_s() + 5))
            st = check_hello(w, &h, lowest, err);
        if (st != PT_OK)
            close(fd);
        if (st != PT_OK && st != PT_INPUT)
            return st;
        if (st != PT_OK)
            continue;
        if (where != NULL) {
            socklen_t len = sizeof(where->address);

            getpeername(fd, (struct sockaddr *)&where[h.rank].address, &len);
            where[h.rank].port = h.port;
        }
        w->link[h.rank].fd = fd;
        n--;
    }
    return PT_OK;
}

static bool is_loopback(const struct sockaddr_storage *a)
{
    if (a->ss_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)a;

        return (ntohl(in->sin_addr.s_addr) >> 24) == 127;
    }
    const struct in6_addr *six =
        &((const struct sockaddr_in6 *)(const void *)a)->sin6_addr;

    return IN6_IS_ADDR_LOOPBACK(six) ||
           (IN6_IS_ADDR_V4MAPPED(six) && six->s6_addr[12] == 127);
}

/* A rank that came to rank 0 over the loopback lives on rank 0's host, which from here
 * has the address that we came to. */
static int connect_rank(const struct tcp_wire *w, const struct whereabouts *where,
                        uint16_t listening)
{
    struct sockaddr_storage a = where->address;
    struct hello h = { MAGIC, w->base.rank, w->base.size, listening, 0 };
    socklen_t len = sizeof(a);
    int fd;

    if (is_loopback(&a))
        getpeername(w->link[0].fd, (struct sockaddr *)&a, &len);
    if (a.ss_family == AF_INET6)
        ((struct sockaddr_in6 *)(void *)&a)->sin6_port = htons((uint16_t)where->port);
    else
        ((struct sockaddr_in *)(void *)&a)->sin_port = htons((uint16_t)where->port);
    fd = connect_once((const struct sockaddr *)&a, a.ss_family == AF_INET6
                                                       ? sizeof(struct sockaddr_in6)
                                                       : sizeof(struct sockaddr_in));
    if (fd >= 0 && !transfer_all(fd, &h, sizeof(h), true, now_s() + 5)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static enum pt_status join(struct tcp_wire *w, const struct exec_tcp_place *p,
                           int listener, uint16_t listening, struct whereabouts *where,
                           double deadline, struct pt_error *err)
{
    struct hello h = { MAGIC, p->rank, p->size, listening, 0 };
    size_t bytes = sizeof(*where) * p->size;
    int fd = connect_name(p->address, p->port, deadline, err);

    if (fd < 0)
        return PT_SYSTEM;
    w->link[0].fd = fd;
    if (!transfer_all(fd, &h, sizeof(h), true, deadline) ||
        !transfer_all(fd, where, bytes, false, deadline))
        return pt_fail(err, PT_SYSTEM, NULL, 0,
                       "rank %u: rank 0 at %s, port %u, did not let it in", p->rank,
                       p->address, p->port);
    for (uint32_t r = 1; r < p->rank; r++) {
        w->link[r].fd = connect_rank(w, &where[r], listening);
        if (w->link[r].fd < 0)
            return pt_fail(err, PT_SYSTEM, NULL, 0, "rank %u cannot reach rank %u: %s",
                           p->rank, r, strerror(errno));
    }
    return accept_ranks(w, listener, p->rank + 1, NULL, deadline, err);
}

static enum pt_status lead(struct tcp_wire *w, const struct exec_tcp_place *p,
                           int listener, struct whereabouts *where, double deadline,
                           struct pt_error *err)
{
    enum pt_status st = accept_ranks(w, listener, 1, where, deadline, err);

    for (uint32_t r = 1; r < p->size && st == PT_OK; r++)
        if (!transfer_all(w->link[r].fd, where, sizeof(*where) * p->size, true, deadline))
            st = pt_fail(err, PT_SYSTEM, NULL, 0, "lost rank %u while starting", r);
    return st;
}

/* This end's address of a connection, without a port. */
static bool own_address(const struct exec_link *l, char host[NI_MAXHOST], bool *loopback)
{
    struct sockaddr_storage own;
    socklen_t len = sizeof(own);

    if (l->fd < 0 || getsockname(l->fd, (struct sockaddr *)&own, &len) != 0 ||
        getnameinfo((struct sockaddr *)&own, len, host, NI_MAXHOST, NULL, 0,
                    NI_NUMERICHOST) != 0)
        return false;
    if (strncmp(host, "::ffff:", 7) == 0)
        memmove(host, host + 7, strlen(host + 7) + 1);
    *loopback = is_loopback(&own);
    return true;
}

/* "eth0 10.0.0.1": where the ranks on other hosts, else the others here, are reached. */
static void describe(struct tcp_wire *w)
{
    struct ifaddrs *list = NULL;
    char host[NI_MAXHOST] = "", found[NI_MAXHOST] = "";
    bool loopback = true;

    snprintf(w->base.version, sizeof(w->base.version), "TCP");
    for (uint32_t r = 0; r < w->base.size && loopback; r++)
        if (own_address(&w->link[r], found, &loopback))
            memcpy(host, found, sizeof(host));
    snprintf(w->base.address, sizeof(w->base.address), "%.100s", host);
    if (getifaddrs(&list) != 0)
        return;
    for (const struct ifaddrs *i = list; i != NULL; i = i->ifa_next) {
        int family = i->ifa_addr != NULL ? i->ifa_addr->sa_family : AF_UNSPEC;
        socklen_t len =
            family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);

        if ((family == AF_INET || family == AF_INET6) &&
            getnameinfo(i->ifa_addr, len, found, sizeof(found), NULL, 0,
                        NI_NUMERICHOST) == 0 &&
            strcmp(found, host) == 0)
            snprintf(w->base.address, sizeof(w->base.address), "%.20s %.100s",
                     i->ifa_name, host);
    }
    freeifaddrs(list);
}

enum pt_status exec_tcp_open(const struct exec_tcp_place *p, struct exec_wire **out,
                             struct pt_error *err)
{
    double deadline = now_s() + p->timeout_s;
    struct tcp_wire *w = calloc(1, sizeof(*w));
    struct whereabouts *where = calloc(p->size, sizeof(*where));
    uint16_t listening = 0;
    enum pt_status st = PT_OK;
    int listener = -1;

    *out = NULL;
    if (w != NULL)
        w->link = calloc(p->size, sizeof(*w->link));
    if (w == NULL || w->link == NULL || where == NULL) {
        st = pt_fail_memory(err);
        goto out;
    }
    w->base.ops = &tcp_ops;
    w->base.rank = p->rank;
    w->base.size = p->size;
    w->base.spins = SPINS;
    for (uint32_t r = 0; r < p->size; r++)
        exec_link_init(&w->link[r], r, -1);
    listener = listen_at(p->rank == 0 ? p->port : 0, &listening);
    if (listener < 0) {
        st = pt_fail(err, PT_SYSTEM, NULL, 0,
                     "rank %u cannot listen at port %u: %s; choose another MASTER_PORT",
                     p->rank, p->rank == 0 ? p->port : 0, strerror(errno));
        goto out;
    }
    st = p->rank == 0 ? lead(w, p, listener, where, deadline, err)
                      : join(w, p, listener, listening, where, deadline, err);
    for (uint32_t r = 0; r < p->size && st == PT_OK; r++)
        exec_link_init(&w->link[r], r, w->link[r].fd);
    if (st == PT_OK)
        describe(w);
out:
    if (listener >= 0)
        close(listener);
    free(where);
    if (st == PT_OK) {
        *out = &w->base;
    } else if (w != NULL) {
        for (uint32_t r = 0; w->link != NULL && r < p->size; r++)
            exec_link_fini(&w->link[r]);
        free(w->link);
        free(w);
    }
    return st;
}
