#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exec/dump.h"

#define HEADER 128 /* a multiple of 64, as the format wants */

/* NumPy format 1.0: magic, version, length of the text, the text padded with blanks. */
static void npy_header(const struct exec_tensor *t, char out[HEADER + 1])
{
    char shape[64];

    if (t->cols == 1)
        snprintf(shape, sizeof(shape), "(%zu,)", t->rows);
    else
        snprintf(shape, sizeof(shape), "(%zu, %zu)", t->rows, t->cols);
    memset(out, ' ', HEADER);
    memcpy(out, "\x93NUMPY\x01\x00", 8);
    out[8] = HEADER - 10;
    out[9] = 0;
    snprintf(out + 10, HEADER - 10,
             "{'descr': '<f4', 'fortran_order': False, 'shape': %s, }", shape);
    out[10 + strlen(out + 10)] = ' ';
    out[HEADER - 1] = '\n';
}

static enum pt_status put(int fd, const char *path, const void *data, size_t bytes,
                          off_t at, struct pt_error *err)
{
    if (pwrite(fd, data, bytes, at) != (ssize_t)bytes)
        return pt_fail(err, PT_SYSTEM, path, 0, "cannot write: %s", strerror(errno));
    return PT_OK;
}

/* Elements [from, to) of the local tensor, at p. */
static enum pt_status put_range(int fd, const char *path, const struct exec_tensor *t,
                                const float *p, size_t from, size_t to,
                                struct pt_error *err)
{
    enum pt_status st = PT_OK;

    while (from < to && st == PT_OK) {
        size_t row = from / t->local_cols, col = from % t->local_cols;
        size_t n = t->local_cols - col < to - from ? t->local_cols - col : to - from;
        size_t at = (t->row0 + row) * t->cols + t->col0 + col;

        if (t->row0 + row < t->rows) /* padding stays here */
            st = put(fd, path, p, n * sizeof(*p), (off_t)(HEADER + at * sizeof(*p)), err);
        from += n;
        p += n;
    }
    return st;
}

static enum pt_status dump_tensor(struct exec_stage *s, struct exec_held *h,
                                  const struct exec_tensor *t, const char *folder,
                                  bool grads, struct pt_error *err)
{
    bool sharded = grads ? s->zero >= 1 : s->zero >= 3;
    size_t from = sharded && h->from > t->offset ? h->from : t->offset;
    size_t end = t->offset + t->n, to = sharded && h->to < end ? h->to : end;
    char path[4400], header[HEADER + 1];
    enum pt_status st;
    int fd;

    if (from >= to || (t->shared && s->tp_rank != 0) || (!sharded && s->dp_rank != 0))
        return PT_OK;
    snprintf(path, sizeof(path), "%s/%s.npy", folder, t->name);
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0)
        return pt_fail(err, PT_SYSTEM, path, 0, "%s", strerror(errno));
    npy_header(t, header);
    st = put(fd, path, header, HEADER, 0, err);
    if (st == PT_OK)
        st = put_range(fd, path, t,
                       grads ? exec_held_g(s, h, from) : exec_held_w(s, h, from),
                       from - t->offset, to - t->offset, err);
    if (close(fd) != 0 && st == PT_OK)
        st = pt_fail(err, PT_SYSTEM, path, 0, "%s", strerror(errno));
    return st;
}

static enum pt_status make_folder(const char *path, struct pt_error *err)
{
    if (mkdir(path, 0777) != 0 && errno != EEXIST)
        return pt_fail(err, PT_SYSTEM, path, 0, "%s", strerror(errno));
    return PT_OK;
}

static enum pt_status dump_piece(struct exec_stage *s, struct exec_piece *p,
                                 const char *folder, bool grads, struct pt_error *err)
{
    struct exec_held *ends[] = { p->tokens, p->positions, p->norm, p->head };
    enum pt_status st = PT_OK;

    for (size_t i = 0; i < p->n_layers + 4u && st == PT_OK; i++) {
        struct exec_held *h = i < 4 ? ends[i] : &p->layers[i - 4];

        /* a tied head is the embedding, which its own stage writes */
        if (h == NULL || (h->unit.kind == EXEC_HEAD && s->env.shape.tied))
            continue;
        for (unsigned k = 0; k < h->unit.n_tensors && st == PT_OK; k++)
            st = dump_tensor(s, h, &h->unit.tensor[k], folder, grads, err);
    }
    return st;
}

enum pt_status exec_dump(struct exec_stage *s, const char *dir, const char *set,
                         bool grads, struct pt_error *err)
{
    char folder[4200];
    enum pt_status st = exec_settle(s, err);

    snprintf(folder, sizeof(folder), "%s/%s", dir, set);
    if (st == PT_OK)
        st = make_folder(dir, err);
    if (st == PT_OK)
        st = make_folder(folder, err);
    for (uint32_t c = 0; c < s->schedule.chunks && st == PT_OK; c++)
        st = dump_piece(s, &s->piece[c], folder, grads, err);
    return st;
}
