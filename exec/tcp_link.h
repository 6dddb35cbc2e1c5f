/* One TCP connection that carries tagged messages, without blocking. */
#ifndef PT_EXEC_TCP_LINK_H
#define PT_EXEC_TCP_LINK_H

#include "exec/wire.h"

struct exec_frame { /* before each message, in the hosts' common byte order */
    uint32_t magic, tag;
    uint64_t bytes;
};

struct exec_transfer {
    uint32_t peer, tag;
    bool sends, complete;
    struct exec_frame frame;
    char *buf; /* of a send: not written to */
    size_t bytes, done, frame_done;
    struct exec_transfer *next;
};

struct exec_stray; /* a message that came before anybody asked for it */

struct exec_link {
    int fd; /* -1: none */
    uint32_t peer;
    bool ended;                         /* the peer closed it */
    struct exec_transfer *out, *wanted; /* sends under way; receives, oldest first */
    struct exec_stray *strays;          /* oldest first */
    struct exec_frame frame;            /* arriving */
    size_t frame_done, done;            /* of the frame, of its content */
    struct exec_transfer *into;         /* where the content goes: this, */
    struct exec_stray *into_stray;      /* or this */
};

/* fd becomes the link's, unblocking. */
void exec_link_init(struct exec_link *link, uint32_t peer, int fd);
void exec_link_fini(struct exec_link *link);
/* Owned by the link until complete; then the caller's to free. */
void exec_link_send(struct exec_link *link, struct exec_transfer *t);
enum pt_status exec_link_want(struct exec_link *link, struct exec_transfer *t,
                              struct pt_error *err);
/* Takes an incomplete transfer off the link; one that is half done ends the link. */
void exec_link_forget(struct exec_link *link, struct exec_transfer *t);
/* Sends and receives what goes without waiting. */
enum pt_status exec_link_move(struct exec_link *link, struct pt_error *err);

#endif
