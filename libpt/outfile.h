/* A file that is either the old one or the whole new one: written beside its place,
 * flushed to the disk, then renamed. */
#ifndef PT_OUTFILE_H
#define PT_OUTFILE_H

#include <stdio.h>

#include "libpt/error.h"

struct pt_outfile {
    FILE *f; /* write here */
    char path[4096],
        temporary[4096]; /* temporary is empty when `path` is written in place */
};

/* path "-" is standard output; what exists and is no regular file (a pipe, /dev/full) is
 * written in place. A symbolic link stays and its target is replaced. */
enum pt_status pt_outfile_open(const char *path, struct pt_outfile *out,
                               struct pt_error *err);
/* Ends it: PT_SYSTEM, and the old file untouched, when any write failed. */
enum pt_status pt_outfile_commit(struct pt_outfile *out, struct pt_error *err);
/* Drops what was written; does nothing after a commit. */
void pt_outfile_discard(struct pt_outfile *out);

#endif
