#include "config.h"

#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libpt/units.h"

struct unit {
    const char *text;
    double factor;
    const char *says; /* how a memory suffix was read */
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static const char *skip_blanks(const char *s)
{
    while (*s == ' ' || *s == '\t')
        s++;
    return s;
}

/* The decimal number at s: strtod also takes hexadecimal, "inf" and "nan", which no
 * option of ours means. Returns what follows it, NULL when there is none or it overflows.
 */
static const char *scan_decimal(const char *s, double *value)
{
    const char *p = s, *exponent;
    bool digits = false;

    if (*p == '+' || *p == '-')
        p++;
    for (; is_digit(*p); p++)
        digits = true;
    if (*p == '.')
        p++;
    for (; is_digit(*p); p++)
        digits = true;
    if (!digits)
        return NULL;
    if (*p == 'e' || *p == 'E') {
        exponent = p + 1;
        if (*exponent == '+' || *exponent == '-')
            exponent++;
        if (is_digit(*exponent))
            for (p = exponent; is_digit(*p); p++)
                ;
    }
    *value = strtod(s, NULL);
    return isfinite(*value) ? p : NULL;
}

static bool same(const char *a, const char *b, bool any_case)
{
    for (; *a != '\0' && *b != '\0'; a++, b++)
        if (*a != *b && !(any_case && lower(*a) == lower(*b)))
            return false;
    return *a == *b;
}

/* The number in text and the unit behind it; NULL when either is wrong. */
static const struct unit *scan(const char *text, const struct unit *units, bool any_case,
                               double *value)
{
    const char *p = scan_decimal(skip_blanks(text), value);
    char suffix[16];
    size_t n;

    if (p == NULL)
        return NULL;
    p = skip_blanks(p);
    for (n = strlen(p); n > 0 && (p[n - 1] == ' ' || p[n - 1] == '\t'); n--)
        ;
    if (n >= sizeof(suffix))
        return NULL;
    memcpy(suffix, p, n);
    suffix[n] = '\0';
    for (const struct unit *u = units; u->text != NULL; u++)
        if (same(u->text, suffix, any_case))
            return u;
    return NULL;
}

/* The digits of a whole number without sign, point or exponent are read exactly. */
static bool scan_whole(const char *text, uint64_t *value)
{
    const char *s = skip_blanks(text), *p = s;

    while (is_digit(*p))
        p++;
    if (p == s || *skip_blanks(p) != '\0')
        return false;
    errno = 0;
    *value = strtoull(s, NULL, 10);
    return errno == 0;
}

enum pt_status pt_parse_count(const char *what, const char *text, uint64_t *count,
                              struct pt_error *err)
{
    static const struct unit units[] = {
        { "", 1, NULL },    { "K", 1e3, NULL },  { "M", 1e6, NULL }, { "B", 1e9, NULL },
        { "G", 1e9, NULL }, { "T", 1e12, NULL }, { NULL, 0, NULL },
    };
    const struct unit *u;
    double v;

    if (scan_whole(text, count) && *count > 0)
        return PT_OK;
    u = scan(text, units, true, &v);
    if (u == NULL || v <= 0 || v * u->factor >= 0x1p63)
        return pt_fail(err, PT_USAGE, NULL, 0,
                       "%s: '%.80s' is not a positive count; write 10B, 1e10 or 7.5M "
                       "(K M B T are powers of 1000)",
                       what, text);
    v *= u->factor;
    /* "6.7B" is not exact in binary: what rounding alone explains is a whole number. */
    if (v < 0.5 || fabs(v - round(v)) > 4 * DBL_EPSILON * v)
        return pt_fail(err, PT_USAGE, NULL, 0, "%s: '%.80s' is not a whole number", what,
                       text);
    *count = (uint64_t)round(v);
    return PT_OK;
}

enum pt_status pt_parse_bytes(const char *what, const char *text, uint64_t *bytes,
                              const char **unit, struct pt_error *err)
{
#define BINARY(letter, name, power)                                                      \
    { letter, power, letter " read as " name "iB" }, { name "i", power, name "iB" },     \
    {                                                                                    \
        name "iB", power, name "iB"                                                      \
    }
    static const struct unit units[] = {
        { "", 1, "bytes" },
        { "B", 1, "bytes" },
        BINARY("K", "K", 0x1p10),
        BINARY("M", "M", 0x1p20),
        BINARY("G", "G", 0x1p30),
        BINARY("T", "T", 0x1p40),
        BINARY("P", "P", 0x1p50),
        { "KB", 1e3, "KB of 1e3 bytes" },
        { "MB", 1e6, "MB of 1e6 bytes" },
        { "GB", 1e9, "GB of 1e9 bytes" },
        { "TB", 1e12, "TB of 1e12 bytes" },
        { "PB", 1e15, "PB of 1e15 bytes" },
        { NULL, 0, NULL },
    };
#undef BINARY
    const struct unit *u;
    double v;

    u = scan(text, units, true, &v);
    if (u == NULL || v <= 0 || v * u->factor < 0.5 || v * u->factor >= 0x1p63)
        return pt_fail(err, PT_USAGE, NULL, 0,
                       "%s: '%.80s' is not a size; write 80G or 80GiB (2^30 bytes), or "
                       "80GB (1e9 bytes)",
                       what, text);
    *bytes = (uint64_t)round(v * u->factor);
    if (unit != NULL)
        *unit = u->says;
    return PT_OK;
}

enum pt_status pt_parse_rate(const char *what, const char *text, double *bytes_per_s,
                             struct pt_error *err)
{
    /* Case matters here: b is a bit and B a byte. */
#define RATE(p, f)                                                                       \
    { p "B/s", f, NULL }, { p "Bps", f, NULL }, { p "b/s", f / 8, NULL },                \
        { p "bps", f / 8, NULL }, { p "bit/s", f / 8, NULL },                            \
    {                                                                                    \
        p "bE", f / 8, NULL                                                              \
    }
    static const struct unit units[] = {
        RATE("", 1.0),
        RATE("k", 1e3),
        RATE("K", 1e3),
        RATE("M", 1e6),
        RATE("G", 1e9),
        RATE("T", 1e12),
        { "KiB/s", 0x1p10, NULL },
        { "MiB/s", 0x1p20, NULL },
        { "GiB/s", 0x1p30, NULL },
        { "TiB/s", 0x1p40, NULL },
        { NULL, 0, NULL },
    };
#undef RATE
    const struct unit *u;
    double v;

    u = scan(text, units, false, &v);
    if (u == NULL || v <= 0 || !isfinite(v * u->factor))
        return pt_fail(err, PT_USAGE, NULL, 0,
                       "%s: '%.80s' is not a rate; write 200GB/s (bytes), 400Gbps or "
                       "100GbE (bits)",
                       what, text);
    *bytes_per_s = v * u->factor;
    return PT_OK;
}

enum pt_status pt_parse_seconds(const char *what, const char *text, double *seconds,
                                struct pt_error *err)
{
    static const struct unit units[] = {
        { "", 1, NULL },      { "s", 1, NULL },     { "ns", 1e-9, NULL },
        { "us", 1e-6, NULL }, { "ms", 1e-3, NULL }, { "m", 60, NULL },
        { "min", 60, NULL },  { "h", 3600, NULL },  { "d", 86400, NULL },
        { NULL, 0, NULL },
    };
    const struct unit *u;
    double v;

    u = scan(text, units, false, &v);
    if (u == NULL || v < 0 || !isfinite(v * u->factor))
        return pt_fail(err, PT_USAGE, NULL, 0,
                       "%s: '%.80s' is not a time; write 90s, 18.5ms, 30m (minutes), 12h "
                       "or 3d",
                       what, text);
    *seconds = v * u->factor;
    return PT_OK;
}

enum pt_status pt_parse_fraction(const char *what, const char *text, double max_frac,
                                 double *frac, struct pt_error *err)
{
    static const struct unit units[] = { { "", 1, NULL },
                                         { "%", 0.01, NULL },
                                         { NULL, 0, NULL } };
    const struct unit *u;
    double v;

    if (max_frac < 1)
        max_frac = 1;
    u = scan(text, units, false, &v);
    if (u == NULL || v < 0 || v * u->factor > max_frac)
        return pt_fail(err, PT_USAGE, NULL, 0,
                       "%s: '%.80s' is not a fraction; write 0.05 or 5%% (0 to %g)", what,
                       text, max_frac);
    *frac = v * u->factor;
    return PT_OK;
}

enum pt_status pt_parse_number(const char *what, const char *text, double lo, double hi,
                               double *value, struct pt_error *err)
{
    const char *end = scan_decimal(skip_blanks(text), value);

    if (end == NULL || *skip_blanks(end) != '\0')
        return pt_fail(err, PT_USAGE, NULL, 0, "%s: '%.80s' is not a number", what, text);
    if (*value < lo || *value > hi)
        return pt_fail(err, PT_USAGE, NULL, 0, "%s: %g is not within %g to %g", what,
                       *value, lo, hi);
    return PT_OK;
}

enum pt_status pt_parse_u64(const char *what, const char *text, uint64_t lo, uint64_t hi,
                            uint64_t *value, struct pt_error *err)
{
    if (!scan_whole(text, value))
        return pt_fail(err, PT_USAGE, NULL, 0, "%s: '%.80s' is not a whole number", what,
                       text);
    if (*value >= lo && *value <= hi)
        return PT_OK;
    if (hi == UINT64_MAX)
        return pt_fail(err, PT_USAGE, NULL, 0, "%s: %" PRIu64 " is less than %" PRIu64,
                       what, *value, lo);
    return pt_fail(err, PT_USAGE, NULL, 0,
                   "%s: %" PRIu64 " is not within %" PRIu64 " to %" PRIu64, what, *value,
                   lo, hi);
}

/* Three significant digits, but never fewer than the whole part. */
static int decimals(double v)
{
    return v < 9.995 ? 2 : v < 99.95 ? 1 : 0;
}

char *pt_format_count(char *buf, double count)
{
    static const char prefix[] = { ' ', 'K', 'M', 'B', 'T' };
    double v = count;
    size_t i = 0;

    while (fabs(v) >= 999.5 && i + 1 < sizeof(prefix)) {
        v /= 1000;
        i++;
    }
    if (i == 0)
        snprintf(buf, 32, "%.15g", count);
    else if (v > 1e9)
        snprintf(buf, 32, "%.3g%c", v, prefix[i]);
    else
        snprintf(buf, 32, "%.*f%c", v < 99.95 ? 1 : 0, v, prefix[i]);
    return buf;
}

char *pt_format_gib(char *buf, double bytes)
{
    double v = bytes / PT_GIB;

    if (fabs(v) < 1e12)
        snprintf(buf, 32, "%.*f GiB", fabs(v) < 9.995 ? 2 : 1, v);
    else
        snprintf(buf, 32, "%.3g GiB", v);
    return buf;
}

char *pt_format_seconds(char *buf, double s)
{
    static const struct unit units[] = {
        { "d", 86400, NULL }, { "h", 3600, NULL },  { "min", 60, NULL },
        { "s", 1, NULL },     { "ms", 1e-3, NULL }, { "us", 1e-6, NULL },
        { "ns", 1e-9, NULL },
    };
    const size_t n = sizeof(units) / sizeof(units[0]);
    size_t i = 0;

    if (s == 0)
        return strcpy(buf, "0 s");
    /* Minutes, hours and days from two of them on: 90 s reads better than 1.50 min. */
    while (i + 1 < n && fabs(s) < units[i].factor * (i < 3 ? 2 : 0.9995))
        i++;
    if (fabs(s) >= 1e12)
        snprintf(buf, 32, "%.3g d", s / 86400);
    else
        snprintf(buf, 32, "%.*f %s", decimals(fabs(s) / units[i].factor),
                 s / units[i].factor, units[i].text);
    return buf;
}

bool pt_mul_u64(uint64_t a, uint64_t b, uint64_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

bool pt_add_u64(uint64_t a, uint64_t b, uint64_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}
