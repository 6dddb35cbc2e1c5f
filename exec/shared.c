#include "config.h"

#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "exec/shared.h"

#define MAGIC 0x31636578657470ull /* "ptexec1" */
#define PAGE  ((size_t)2 << 20)   /* arenas begin on a huge page */

static size_t round_up(size_t n, size_t unit)
{
    return (n + unit - 1) / unit * unit;
}

static enum pt_status map(struct exec_shared *s, struct pt_error *err)
{
    void *p = mmap(NULL, s->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
                   s->fd, 0);

    if (p == MAP_FAILED)
        return pt_fail(err, PT_SYSTEM, NULL, 0,
                       "cannot map %zu bytes of shared memory: %s", s->bytes,
                       strerror(errno));
    s->header = p;
    return PT_OK;
}

enum pt_status exec_shared_create(uint32_t ranks, size_t arena_bytes,
                                  struct exec_shared *s, struct pt_error *err)
{
    enum pt_status st;
    size_t slots_at = round_up(sizeof(struct exec_header), 4096);
    size_t mail_at = slots_at + sizeof(struct exec_slot) * EXEC_N_DIMS * ranks * ranks;
    size_t arenas_at =
        round_up(mail_at + sizeof(struct exec_letter) * EXEC_MAIL * ranks * ranks, PAGE);

    arena_bytes = round_up(arena_bytes, PAGE);
    s->bytes = arenas_at + arena_bytes * ranks;
    s->header = NULL;
    s->fd = memfd_create("ptexec", 0);
    if (s->fd < 0)
        return pt_fail(err, PT_SYSTEM, NULL, 0, "memfd_create: %s", strerror(errno));
    if (ftruncate(s->fd, (off_t)s->bytes) != 0) {
        st =
            pt_fail(err, PT_SYSTEM, NULL, 0, "cannot make %zu bytes of shared memory: %s",
                    s->bytes, strerror(errno));
        exec_shared_close(s);
        return st;
    }
    st = map(s, err);
    if (st != PT_OK) {
        exec_shared_close(s);
        return st;
    }
    s->header->magic = MAGIC;
    s->header->size = ranks;
    s->header->file_bytes = s->bytes;
    s->header->arena_bytes = arena_bytes;
    s->header->slots_at = slots_at;
    s->header->mail_at = mail_at;
    s->header->arenas_at = arenas_at;
    return PT_OK;
}

enum pt_status exec_shared_open(int fd, struct exec_shared *s, struct pt_error *err)
{
    struct stat info;
    enum pt_status st;

    s->fd = fd;
    s->header = NULL;
    if (fstat(fd, &info) != 0 || info.st_size < (off_t)sizeof(struct exec_header))
        return pt_fail(err, PT_SYSTEM, NULL, 0, "descriptor %d is not ptexec's memory",
                       fd);
    s->bytes = (size_t)info.st_size;
    st = map(s, err);
    if (st == PT_OK && (s->header->magic != MAGIC || s->header->file_bytes != s->bytes ||
                        s->header->size > EXEC_MAX_RANKS))
        st = pt_fail(err, PT_SYSTEM, NULL, 0, "descriptor %d is not this ptexec's memory",
                     fd);
    return st;
}

void exec_shared_close(struct exec_shared *s)
{
    if (s->header != NULL)
        munmap(s->header, s->bytes);
    if (s->fd >= 0)
        close(s->fd);
    s->header = NULL;
    s->fd = -1;
}

static char *at(const struct exec_shared *s, size_t offset)
{
    return (char *)s->header + offset;
}

bool exec_shared_orderly(const struct exec_shared *shared)
{
    for (uint32_t r = 0; r < shared->header->size; r++)
        if (!atomic_load(&shared->header->rank[r].orderly))
            return false;
    return true;
}

void *exec_shared_arena(const struct exec_shared *s, uint32_t rank)
{
    return at(s, s->header->arenas_at + s->header->arena_bytes * rank);
}

struct exec_slot *exec_shared_slot(const struct exec_shared *s, enum exec_dim dim,
                                   uint32_t first, uint32_t member)
{
    struct exec_slot *slots = (struct exec_slot *)(void *)at(s, s->header->slots_at);
    size_t n = s->header->size;

    return &slots[((size_t)dim * n + first) * n + member];
}

struct exec_letter *exec_shared_mail(const struct exec_shared *s, uint32_t from,
                                     uint32_t to)
{
    struct exec_letter *mail = (struct exec_letter *)(void *)at(s, s->header->mail_at);

    return &mail[((size_t)from * s->header->size + to) * EXEC_MAIL];
}

void exec_shared_ring(const struct exec_shared *s, uint32_t rank)
{
    struct exec_rank_status *r = &s->header->rank[rank];

    atomic_fetch_add(&r->doorbell, 1);
    if (atomic_load(&r->sleeping))
        syscall(SYS_futex, &r->doorbell, FUTEX_WAKE, 1, NULL, NULL, 0);
}

void exec_shared_sleep(const struct exec_shared *s, uint32_t rank, uint32_t seen)
{
    struct exec_rank_status *r = &s->header->rank[rank];
    struct timespec limit = { 0, 50000000 };

    atomic_store(&r->sleeping, 1);
    if (atomic_load(&r->doorbell) == seen)
        syscall(SYS_futex, &r->doorbell, FUTEX_WAIT, seen, &limit, NULL, 0);
    atomic_store(&r->sleeping, 0);
}
