/* Whole files in memory, with a limit: every reader of an input goes through here. */
#ifndef PT_FILE_H
#define PT_FILE_H

#include <stddef.h>

#include "libpt/error.h"

/* path "-" is standard input. *text has a NUL behind its last byte (not counted in *len)
 * and is the caller's to free. Fails with PT_INPUT: missing, a directory, larger than
 * max_bytes. */
enum pt_status pt_file_read(const char *path, size_t max_bytes, char **text, size_t *len,
                            struct pt_error *err);

#endif
