#include "config.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "libpt/names.h"

#define MAX_NAME 64

/* Lower case without separators, cut at MAX_NAME - 1. Returns the length. */
static size_t fold(const char *text, size_t len, char *out)
{
    size_t n = 0;

    for (size_t i = 0; i < len && n < MAX_NAME - 1; i++) {
        unsigned char c = (unsigned char)text[i];

        if (c != '-' && c != '_' && c != ' ')
            out[n++] = (char)tolower(c);
    }
    out[n] = '\0';
    return n;
}

static bool equal(const char *a, size_t len_a, const char *b, size_t len_b)
{
    char fa[MAX_NAME], fb[MAX_NAME];

    if (len_a >= MAX_NAME || len_b >= MAX_NAME)
        return false;
    return fold(a, len_a, fa) == fold(b, len_b, fb) && fa[0] != '\0' &&
           strcmp(fa, fb) == 0;
}

bool pt_name_equal(const char *a, const char *b)
{
    return equal(a, strlen(a), b, strlen(b));
}

bool pt_name_in_list(const char *name, const char *list)
{
    while (*list != '\0') {
        size_t len = strcspn(list, ";");

        if (equal(name, strlen(name), list, len))
            return true;
        list += len + (list[len] == ';' ? 1 : 0);
    }
    return false;
}

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* Levenshtein distance to the nearest beginning of b, because keys are longer than what
 * people type; what is left of b counts little. */
static unsigned distance(const char *a, const char *b)
{
    char fa[MAX_NAME], fb[MAX_NAME];
    unsigned row[MAX_NAME + 1], diagonal, above;
    size_t na = fold(a, strlen(a), fa), nb = fold(b, strlen(b), fb);
    unsigned best = 8 * MAX_NAME * 2;

    for (size_t j = 0; j <= nb; j++)
        row[j] = (unsigned)j;
    for (size_t i = 1; i <= na; i++) {
        diagonal = row[0];
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= nb; j++) {
            above = row[j];
            row[j] = least(least(above + 1, row[j - 1] + 1),
                           diagonal + (fa[i - 1] == fb[j - 1] ? 0 : 1));
            diagonal = above;
        }
    }
    for (size_t j = 0; j <= nb; j++)
        best = least(best, 8 * row[j] + (unsigned)(nb - j));
    return best;
}

void pt_nearest_offer(struct pt_nearest *nearest, const char *wanted, const char *name)
{
    unsigned d = distance(wanted, name), i = nearest->n;

    if (i == PT_NAMES_NEAREST) {
        if (d >= nearest->distance[i - 1])
            return;
        i--;
    } else {
        nearest->n++;
    }
    for (; i > 0 && nearest->distance[i - 1] > d; i--) {
        nearest->distance[i] = nearest->distance[i - 1];
        nearest->name[i] = nearest->name[i - 1];
    }
    nearest->distance[i] = d;
    nearest->name[i] = name;
}

char *pt_nearest_text(const struct pt_nearest *nearest, char *buf, size_t size)
{
    size_t used = 0;

    buf[0] = '\0';
    for (unsigned i = 0; i < nearest->n && used < size; i++)
        used += (size_t)snprintf(buf + used, size - used, "%s%s", i > 0 ? ", " : "",
                                 nearest->name[i]);
    return buf;
}
