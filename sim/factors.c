#include "config.h"

#include <string.h>

#include "libpt/units.h"
#include "sim/factors.h"

/* One "key=value" up to a comma, a semicolon or the end. */
static bool field(const char **text, const char *key, char *value, size_t size)
{
    size_t n = strlen(key), len;

    if (strncmp(*text, key, n) || (*text)[n] != '=')
        return false;
    *text += n + 1;
    len = strcspn(*text, ",;");
    if (len == 0 || len >= size)
        return false;
    memcpy(value, *text, len);
    value[len] = '\0';
    *text += len;
    return true;
}

enum pt_status sim_factors_parse(const char *option, const char *text,
                                 struct sim_factors *factors, struct pt_error *err)
{
    const char *all = text;
    enum pt_status st;

    factors->n = 0;
    while (text != NULL && *text != '\0') {
        char rank[32], slowdown[32];
        uint64_t r;
        double x;

        if (factors->n == SIM_MAX_FACTORS)
            return pt_fail(err, PT_USAGE, NULL, 0, "%s: more than %d ranks", option,
                           SIM_MAX_FACTORS);
        if (!field(&text, "rank", rank, sizeof(rank)) || *text++ != ',' ||
            !field(&text, "slowdown", slowdown, sizeof(slowdown)) ||
            (*text != '\0' && *text != ';'))
            return pt_fail(err, PT_USAGE, NULL, 0,
                           "%s: '%.200s' is not rank=N,slowdown=X[;rank=N,slowdown=X...]",
                           option, all);
        text += *text == ';';
        if ((st = pt_parse_u64(option, rank, 0, UINT32_MAX, &r, err)) ||
            (st = pt_parse_number(option, slowdown, 0.01, 1e6, &x, err)))
            return st;
        factors->factor[factors->n++] = (struct sim_factor){ (uint32_t)r, x };
    }
    return PT_OK;
}
