#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "exec/tcp_link.h"

#define MAGIC 0x70746578u /* "ptex" */

struct exec_stray {
    uint32_t tag;
    bool complete;
    size_t bytes;
    struct exec_stray *next;
    char data[];
};

void exec_link_init(struct exec_link *l, uint32_t peer, int fd)
{
    *l = (struct exec_link){ .fd = fd, .peer = peer };
    if (fd >= 0)
        fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

static void free_transfers(struct exec_transfer *t)
{
    while (t != NULL) {
        struct exec_transfer *next = t->next;

        free(t);
        t = next;
    }
}

void exec_link_fini(struct exec_link *l)
{
    if (l->fd >= 0)
        close(l->fd);
    l->fd = -1;
    free_transfers(l->out);
    free_transfers(l->wanted);
    free(l->into);
    while (l->strays != NULL) {
        struct exec_stray *next = l->strays->next;

        free(l->strays);
        l->strays = next;
    }
    l->out = l->wanted = l->into = NULL;
}

static void append(struct exec_transfer **list, struct exec_transfer *t)
{
    while (*list != NULL)
        list = &(*list)->next;
    t->next = NULL;
    *list = t;
}

static void unlink_transfer(struct exec_transfer **list, struct exec_transfer *t)
{
    while (*list != NULL && *list != t)
        list = &(*list)->next;
    if (*list != NULL)
        *list = t->next;
}

void exec_link_send(struct exec_link *l, struct exec_transfer *t)
{
    t->frame = (struct exec_frame){ MAGIC, t->tag, t->bytes };
    append(&l->out, t);
}

void exec_link_forget(struct exec_link *l, struct exec_transfer *t)
{
    if (l->into == t) {
        l->into = NULL;
        l->ended = true;
        return;
    }
    l->ended = l->ended || (t->sends && t->frame_done > 0);
    unlink_transfer(t->sends ? &l->out : &l->wanted, t);
}

static enum pt_status size_differs(const struct exec_link *l, size_t got, size_t want,
                                   struct pt_error *err)
{
    return pt_fail(err, PT_SYSTEM, NULL, 0, "rank %u sent %zu bytes, %zu were expected",
                   l->peer, got, want);
}

/* The oldest whole stray of the tag to the oldest receive of it. */
static enum pt_status match_stray(struct exec_link *l, uint32_t tag, struct pt_error *err)
{
    struct exec_stray **at = &l->strays, *s;
    struct exec_transfer *t = l->wanted;

    while (*at != NULL && (*at)->tag != tag)
        at = &(*at)->next;
    while (t != NULL && t->tag != tag)
        t = t->next;
    s = *at;
    if (s == NULL || t == NULL || !s->complete)
        return PT_OK;
    if (s->bytes != t->bytes)
        return size_differs(l, s->bytes, t->bytes, err);
    memcpy(t->buf, s->data, s->bytes);
    *at = s->next;
    free(s);
    unlink_transfer(&l->wanted, t);
    t->complete = true;
    return PT_OK;
}

enum pt_status exec_link_want(struct exec_link *l, struct exec_transfer *t,
                              struct pt_error *err)
{
    append(&l->wanted, t);
    return match_stray(l, t->tag, err);
}

static enum pt_status lost(struct exec_link *l, struct pt_error *err)
{
    l->ended = true;
    if (l->out == NULL && l->wanted == NULL)
        return PT_OK; /* it had nothing more to say */
    return pt_fail(err, PT_SYSTEM, NULL, 0, "lost rank %u: it ended its connection",
                   l->peer);
}

/* PT_OK with *n = 0: nothing more for now. */
static enum pt_status push(struct exec_link *l, const void *buf, size_t bytes, bool more,
                           size_t *n, struct pt_error *err)
{
    ssize_t did = send(l->fd, buf, bytes, MSG_NOSIGNAL | (more ? MSG_MORE : 0));

    *n = did > 0 ? (size_t)did : 0;
    if (did >= 0 || errno == EAGAIN || errno == EINTR)
        return PT_OK;
    if (errno == EPIPE || errno == ECONNRESET)
        return lost(l, err);
    return pt_fail(err, PT_SYSTEM, NULL, 0, "cannot send to rank %u: %s", l->peer,
                   strerror(errno));
}

static enum pt_status move_out(struct exec_link *l, struct pt_error *err)
{
    while (l->out != NULL && !l->ended) {
        struct exec_transfer *t = l->out;
        enum pt_status st;
        size_t n;

        if (t->frame_done < sizeof(t->frame)) {
            st = push(l, (const char *)&t->frame + t->frame_done,
                      sizeof(t->frame) - t->frame_done, t->bytes > 0, &n, err);
            t->frame_done += n;
        } else {
            st = push(l, t->buf + t->done, t->bytes - t->done, false, &n, err);
            t->done += n;
        }
        if (st != PT_OK || n == 0)
            return st;
        if (t->frame_done == sizeof(t->frame) && t->done == t->bytes) {
            l->out = t->next;
            t->complete = true;
        }
    }
    return PT_OK;
}

/* A frame has come: where does its content go? */
static enum pt_status begin_content(struct exec_link *l, struct pt_error *err)
{
    struct exec_transfer *t = l->wanted;
    struct exec_stray *s, **at = &l->strays;

    if (l->frame.magic != MAGIC)
        return pt_fail(err, PT_SYSTEM, NULL, 0,
                       "rank %u sent what is no message of this ptexec", l->peer);
    l->done = 0;
    for (s = l->strays; s != NULL && s->tag != l->frame.tag; s = s->next)
        ;
    while (t != NULL && t->tag != l->frame.tag)
        t = t->next;
    if (t != NULL && s == NULL) {
        if (t->bytes != l->frame.bytes)
            return size_differs(l, l->frame.bytes, t->bytes, err);
        unlink_transfer(&l->wanted, t);
        l->into = t;
        return PT_OK;
    }
    s = malloc(sizeof(*s) + l->frame.bytes);
    if (s == NULL)
        return pt_fail_memory(err);
    *s = (struct exec_stray){ .tag = l->frame.tag, .bytes = l->frame.bytes };
    while (*at != NULL)
        at = &(*at)->next;
    *at = l->into_stray = s;
    return PT_OK;
}

static enum pt_status end_content(struct exec_link *l, struct pt_error *err)
{
    l->frame_done = 0;
    if (l->into != NULL) {
        l->into->complete = true;
        l->into = NULL;
        return PT_OK;
    }
    l->into_stray->complete = true;
    l->into_stray = NULL;
    return match_stray(l, l->frame.tag, err);
}

static enum pt_status pull(struct exec_link *l, void *buf, size_t bytes, size_t *n,
                           struct pt_error *err)
{
    ssize_t did = recv(l->fd, buf, bytes, 0);

    *n = did > 0 ? (size_t)did : 0;
    if (did > 0 || (did < 0 && (errno == EAGAIN || errno == EINTR)))
        return PT_OK;
    if (did == 0 || errno == ECONNRESET) {
        if (l->into != NULL) { /* in the middle of a message */
            l->into->next = l->wanted;
            l->wanted = l->into;
            l->into = NULL;
        }
        return lost(l, err);
    }
    return pt_fail(err, PT_SYSTEM, NULL, 0, "cannot receive from rank %u: %s", l->peer,
                   strerror(errno));
}

static enum pt_status move_in(struct exec_link *l, struct pt_error *err)
{
    while (!l->ended) {
        bool content = l->frame_done == sizeof(l->frame);
        char *to = !content          ? (char *)&l->frame + l->frame_done
                   : l->into != NULL ? l->into->buf + l->done
                                     : l->into_stray->data + l->done;
        size_t left =
            content ? (size_t)l->frame.bytes - l->done : sizeof(l->frame) - l->frame_done;
        size_t n;
        enum pt_status st = pull(l, to, left, &n, err);

        if (st != PT_OK || n == 0)
            return st;
        if (content)
            l->done += n;
        else
            l->frame_done += n;
        if (!content && l->frame_done == sizeof(l->frame))
            st = begin_content(l, err);
        if (st == PT_OK && l->frame_done == sizeof(l->frame) && l->done == l->frame.bytes)
            st = end_content(l, err);
        if (st != PT_OK)
            return st;
    }
    return PT_OK;
}

enum pt_status exec_link_move(struct exec_link *l, struct pt_error *err)
{
    enum pt_status st = move_out(l, err);

    if (st == PT_OK)
        st = move_in(l, err);
    if (st == PT_OK && l->ended)
        st = lost(l, err);
    return st;
}
