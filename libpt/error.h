/* Errors: a code for the program, a place and a text for the person. */
#ifndef PT_ERROR_H
#define PT_ERROR_H

#include <stdarg.h>

/* One line per code: name, exit status, short text. Every man page lists the same. */
#define PT_ERR_MAP(X)                                                                    \
    X(OK, 0, "success")                                                                  \
    X(DIFFERS, 1, "a comparison, an alert or a divergence says no")                      \
    X(USAGE, 2, "wrong usage, or values that contradict each other")                     \
    X(INPUT, 2, "an input cannot be read or parsed")                                     \
    X(CAPACITY, 3, "valid, but the capacity does not suffice")                           \
    X(SYSTEM, 4, "output, system or device failure")                                     \
    X(LIMIT, 5, "a limit or a stop request was reached")                                 \
    X(BUG, 70, "a bug of ours")

enum pt_status {
#define X(name, exit_status, text) PT_##name,
    PT_ERR_MAP(X)
#undef X
};

/* Filled by the innermost failure; later ones keep it. NULL is allowed everywhere. */
struct pt_error {
    enum pt_status status;
    int line;        /* 1-based line in `where`, 0 if none */
    char where[256]; /* file, option or JSON path; empty if none */
    char text[1024];
};
#define PT_ERROR_INIT                                                                    \
    {                                                                                    \
        PT_OK, 0, "", ""                                                                 \
    }

const char *pt_status_text(enum pt_status status);
int pt_exit_status(enum pt_status status);

/* Records the error unless one is already there. Returns `status`, so: return
 * pt_fail(...) */
enum pt_status pt_fail(struct pt_error *err, enum pt_status status, const char *where,
                       int line, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));

/* The one sentence for a failed allocation. Returns PT_SYSTEM. */
enum pt_status pt_fail_memory(struct pt_error *err);

/* "prog: where:line: text" on stderr; returns the exit status. */
int pt_report(const char *prog, const struct pt_error *err);

/* The last call of every main: `return pt_close_stdout(prog, status)`. Output that was
 * buffered and could not be written (a full disk, a closed pipe) becomes exit status 4
 * and a sentence. */
int pt_close_stdout(const char *prog, int exit_status);

#endif
