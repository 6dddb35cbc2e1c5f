/* JSON documents (over jansson; the only file that includes jansson.h).
 * A reader knows its path, so that every error says where: "plan.json: stages[3].layers".
 */
#ifndef PT_JSON_H
#define PT_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "libpt/error.h"

#define PT_JSON_MAX_BYTES (64u << 20)

/* A value inside a document. Children that a pt_json_get or pt_json_at hands out live as
 * long as the document. */
struct pt_json;

/* Rejects duplicate keys, NaN, trailing text, and files above PT_JSON_MAX_BYTES. */
enum pt_status pt_json_read(const char *path, struct pt_json **doc, struct pt_error *err);
enum pt_status pt_json_parse(const char *where, const char *text, size_t len,
                             struct pt_json **doc, struct pt_error *err);
void pt_json_free(
    struct pt_json *doc); /* of a document (read, parsed or made), not a child */

bool pt_json_has(const struct pt_json *object, const char *key);
/* The typed getters fail with PT_INPUT and path when the key is missing, of the wrong
 * type or out of [lo, hi]. The *_or forms leave *value as it is when the key is absent or
 * null. */
enum pt_status pt_json_get(const struct pt_json *object, const char *key,
                           const struct pt_json **child, struct pt_error *err);
enum pt_status pt_json_u64(const struct pt_json *object, const char *key, uint64_t lo,
                           uint64_t hi, uint64_t *value, struct pt_error *err);
enum pt_status pt_json_number(const struct pt_json *object, const char *key, double lo,
                              double hi, double *value, struct pt_error *err);
enum pt_status pt_json_bool(const struct pt_json *object, const char *key, bool *value,
                            struct pt_error *err);
/* *value lives as long as the document. */
enum pt_status pt_json_string(const struct pt_json *object, const char *key,
                              const char **value, struct pt_error *err);
enum pt_status pt_json_u64_or(const struct pt_json *object, const char *key, uint64_t lo,
                              uint64_t hi, uint64_t *value, struct pt_error *err);
enum pt_status pt_json_number_or(const struct pt_json *object, const char *key, double lo,
                                 double hi, double *value, struct pt_error *err);
enum pt_status pt_json_bool_or(const struct pt_json *object, const char *key, bool *value,
                               struct pt_error *err);
enum pt_status pt_json_string_or(const struct pt_json *object, const char *key,
                                 const char **value, struct pt_error *err);
/* Arrays: length (0 for other types) and element. */
size_t pt_json_length(const struct pt_json *array);
enum pt_status pt_json_at(const struct pt_json *array, size_t index,
                          const struct pt_json **child, struct pt_error *err);
/* Iterates the keys of an object in file order: NULL starts, NULL ends. */
const char *pt_json_next_key(const struct pt_json *object, const char *key);
/* Where this value stands, "file: a.b[3]", for a caller's own message. */
const char *pt_json_where(const struct pt_json *value);

/* Building. Keys keep their order of insertion. A child belongs to its parent at once.
 * Out of memory is latched and reported by pt_json_write. */
struct pt_json *pt_json_new_object(void);
struct pt_json *pt_json_add_object(struct pt_json *parent,
                                   const char *key); /* key NULL: array */
struct pt_json *pt_json_add_array(struct pt_json *parent, const char *key);
void pt_json_put_u64(struct pt_json *parent, const char *key, uint64_t value);
void pt_json_put_number(struct pt_json *parent, const char *key, double value);
void pt_json_put_bool(struct pt_json *parent, const char *key, bool value);
void pt_json_put_string(struct pt_json *parent, const char *key, const char *value);
/* Indented by 2, a newline at the end, numbers as %.17g. PT_SYSTEM on a short write. */
enum pt_status pt_json_write(const struct pt_json *doc, FILE *f, const char *where,
                             struct pt_error *err);

#endif
