#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libpt/outfile.h"

static enum pt_status fail(const struct pt_outfile *out, int error, struct pt_error *err)
{
    return pt_fail(err, PT_SYSTEM, out->path, 0, "cannot write: %s",
                   error != 0 ? strerror(error) : "the output was cut short");
}

/* Where `path` leads: itself, or the file behind a symbolic link. */
static enum pt_status resolve(const char *path, struct pt_outfile *out, bool *in_place,
                              struct pt_error *err)
{
    struct stat st;
    char *real;

    *in_place = false;
    if (strlen(path) >= sizeof(out->path) - 32)
        return pt_fail(err, PT_SYSTEM, NULL, 0, "'%.40s...': the file name is too long",
                       path);
    snprintf(out->path, sizeof(out->path), "%s", path);
    if (stat(path, &st) != 0)
        return PT_OK; /* new */
    *in_place = !S_ISREG(st.st_mode);
    if (S_ISDIR(st.st_mode))
        return pt_fail(err, PT_SYSTEM, path, 0, "cannot write: it is a directory");
    if (lstat(path, &st) != 0 || !S_ISLNK(st.st_mode) || *in_place)
        return PT_OK;
    real = realpath(path, NULL);
    if (real == NULL || strlen(real) >= sizeof(out->path) - 32) {
        free(real);
        return fail(out, errno, err);
    }
    snprintf(out->path, sizeof(out->path), "%s", real);
    free(real);
    return PT_OK;
}

enum pt_status pt_outfile_open(const char *path, struct pt_outfile *out,
                               struct pt_error *err)
{
    enum pt_status st;
    bool in_place;
    int fd;

    memset(out, 0, sizeof(*out));
    if (!strcmp(path, "-")) {
        snprintf(out->path, sizeof(out->path), "standard output");
        out->f = stdout;
        return PT_OK;
    }
    if ((st = resolve(path, out, &in_place, err)))
        return st;
    if (in_place) {
        out->f = fopen(out->path, "w");
        return out->f != NULL ? PT_OK : fail(out, errno, err);
    }
    /* Not mkstemp: the mode must be what the umask says. */
    snprintf(out->temporary, sizeof(out->temporary), "%.*s.tmp.%ld",
             (int)sizeof(out->temporary) - 32, out->path, (long)getpid());
    fd = open(out->temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0) {
        out->temporary[0] = '\0';
        return fail(out, errno, err);
    }
    out->f = fdopen(fd, "w");
    if (out->f != NULL)
        return PT_OK;
    st = fail(out, errno, err);
    close(fd);
    pt_outfile_discard(out);
    return st;
}

/* The rename itself must survive a power cut. Best effort: not every file system can. */
static void sync_folder(const char *path)
{
    char folder[4096];
    char *slash;
    int fd;

    snprintf(folder, sizeof(folder), "%s", path);
    slash = strrchr(folder, '/');
    if (slash == NULL)
        snprintf(folder, sizeof(folder), ".");
    else
        slash[slash == folder ? 1 : 0] = '\0';
    fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    (void)fsync(fd);
    close(fd);
}

enum pt_status pt_outfile_commit(struct pt_outfile *out, struct pt_error *err)
{
    bool renames = out->temporary[0] != '\0', bad;

    errno = 0; /* an earlier failed write leaves only ferror behind */
    if (out->f == stdout)
        bad = ferror(stdout) != 0 || fflush(stdout) != 0;
    else {
        bad = ferror(out->f) != 0 || fflush(out->f) != 0 ||
              (renames && fsync(fileno(out->f)) != 0);
        if (!bad) {
            bad = fclose(out->f) != 0;
            out->f = NULL;
        }
    }
    if (!bad && renames)
        bad = rename(out->temporary, out->path) != 0;
    if (bad) {
        enum pt_status st = fail(out, errno, err);

        pt_outfile_discard(out);
        return st;
    }
    if (renames)
        sync_folder(out->path);
    out->temporary[0] = '\0';
    out->f = NULL;
    return PT_OK;
}

void pt_outfile_discard(struct pt_outfile *out)
{
    if (out->f != NULL && out->f != stdout)
        fclose(out->f);
    if (out->temporary[0] != '\0')
        (void)unlink(out->temporary);
    out->f = NULL;
    out->temporary[0] = '\0';
}
