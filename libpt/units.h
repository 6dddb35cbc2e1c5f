/* Text to numbers and back. Only this file knows prefixes: inside, everything is SI
 * (bytes, seconds, FLOP, bytes per second), and a product of sizes never wraps silently.
 */
#ifndef PT_UNITS_H
#define PT_UNITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libpt/error.h"

#define PT_GB  1e9
#define PT_GIB 1073741824.0
#define PT_MIB 1048576.0

/* Each parser takes the whole text (blanks around it and before the suffix are allowed)
 * or fails with PT_USAGE and a sentence that echoes it: "--params: '10BB' is not a count;
 * ...". `what` is the option or field name for that sentence. */

/* A positive count: "10B", "10b", "10 B", "1e10", "7.5M", "300B"; K M B/G T are powers of
 * 1000. The result is rounded to the nearest integer >= 1. */
enum pt_status pt_parse_count(const char *what, const char *text, uint64_t *count,
                              struct pt_error *err);
/* A memory size: "80G" and "80GiB" are 2^30, "80GB" is 1e9; a bare number is bytes.
 * *unit, when not NULL, is set to a constant text that says how a suffix was read. */
enum pt_status pt_parse_bytes(const char *what, const char *text, uint64_t *bytes,
                              const char **unit, struct pt_error *err);
/* A rate in bits or bytes: "200GB/s", "400Gbps", "25GbE" -> bytes per second. */
enum pt_status pt_parse_rate(const char *what, const char *text, double *bytes_per_s,
                             struct pt_error *err);
/* "18.5ms", "2us", "90s", "30m", "12h", "3d"; a bare number is seconds. >= 0. */
enum pt_status pt_parse_seconds(const char *what, const char *text, double *seconds,
                                struct pt_error *err);
/* "5%" -> 0.05, "0.05" -> 0.05; 0..1 unless max_frac is larger. */
enum pt_status pt_parse_fraction(const char *what, const char *text, double max_frac,
                                 double *frac, struct pt_error *err);
/* A plain finite number with nothing behind it, within [lo, hi]. */
enum pt_status pt_parse_number(const char *what, const char *text, double lo, double hi,
                               double *value, struct pt_error *err);
/* A plain whole number within [lo, hi]. */
enum pt_status pt_parse_u64(const char *what, const char *text, uint64_t lo, uint64_t hi,
                            uint64_t *value, struct pt_error *err);

/* Formatters write into buf (at least 32 bytes) and return it. Locale-independent. */
char *pt_format_count(char *buf, double count); /* "10.2B" */
char *pt_format_gib(char *buf, double bytes);   /* "74.3 GiB" */
char *pt_format_seconds(char *buf, double s);   /* "1.93 s", "412 ms", "3.2 d" */

/* False when the product or sum does not fit. */
bool pt_mul_u64(uint64_t a, uint64_t b, uint64_t *out);
bool pt_add_u64(uint64_t a, uint64_t b, uint64_t *out);

#endif
