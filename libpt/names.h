/* Keys that people type: equal whatever the case and the dashes, and near when they are
 * not. */
#ifndef PT_NAMES_H
#define PT_NAMES_H

#include <stdbool.h>
#include <stddef.h>

/* Case, '-', '_' and blanks do not count; a dot does (gpt3-1.3B is not gpt3-13B). */
bool pt_name_equal(const char *a, const char *b);
/* The same against a list "a;b;c". */
bool pt_name_in_list(const char *name, const char *list);

/* Keeps the nearest names seen by edit distance, best first. Zero it before the first
 * offer; offered names must outlive it. */
#define PT_NAMES_NEAREST 4
struct pt_nearest {
    unsigned n;
    unsigned distance[PT_NAMES_NEAREST];
    const char *name[PT_NAMES_NEAREST];
};
void pt_nearest_offer(struct pt_nearest *nearest, const char *wanted, const char *name);
/* "a, b, c" into buf; returns buf. */
char *pt_nearest_text(const struct pt_nearest *nearest, char *buf, size_t size);

#endif
