#include "config.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libpt/file.h"
#include "libpt/json.h"

/* A node is made for each value that is handed out. It knows its parent, so a path costs
 * nothing until somebody asks for it. All nodes hang on their document and die with it.
 */
struct document {
    char where[256];
    json_t *root;
    struct pt_json *nodes;
    struct text *texts;
    bool no_memory, not_finite, too_large; /* latched while building */
};
struct pt_json {
    struct document *doc;
    json_t *value; /* borrowed from doc->root */
    const struct pt_json *parent;
    const char *key; /* owned by the parent's value; NULL in an array */
    size_t index;
    struct pt_json *next;
};
struct text {
    struct text *next;
    char text[512];
};

static struct pt_json *node(struct document *doc, json_t *value,
                            const struct pt_json *parent, const char *key, size_t index)
{
    struct pt_json *n = malloc(sizeof(*n));

    if (n == NULL) {
        doc->no_memory = true;
        return NULL;
    }
    *n = (struct pt_json){ doc, value, parent, key, index, doc->nodes };
    doc->nodes = n;
    return n;
}

/* Takes over root. */
static struct pt_json *new_document(const char *where, json_t *root)
{
    struct document *doc = calloc(1, sizeof(*doc));
    struct pt_json *n;

    if (doc == NULL || root == NULL)
        goto fail;
    snprintf(doc->where, sizeof(doc->where), "%s", where);
    doc->root = root;
    n = node(doc, root, NULL, NULL, 0);
    if (n != NULL)
        return n;
fail:
    free(doc);
    json_decref(root);
    return NULL;
}

void pt_json_free(struct pt_json *n)
{
    struct document *doc = n ? n->doc : NULL;

    if (doc == NULL)
        return;
    for (struct text *t = doc->texts, *next; t != NULL; t = next) {
        next = t->next;
        free(t);
    }
    for (struct pt_json *p = doc->nodes, *next; p != NULL; p = next) {
        next = p->next;
        free(p);
    }
    json_decref(doc->root);
    free(doc);
}

/* "file: a.b[3]" of n, and of n's member `key` unless NULL. A path too long for the
 * buffer keeps its end, which tells more than its beginning. */
static void where(const struct pt_json *n, const char *key, char *buf, size_t size)
{
    char piece[96], path[256] = "";
    size_t at = sizeof(path) - 1;

    for (bool member = key != NULL; member || n->parent != NULL;) {
        const char *name = member ? key : n->key;
        const struct pt_json *holder = member ? n : n->parent;
        size_t len;

        if (name != NULL)
            snprintf(piece, sizeof(piece), "%s%.80s", holder->parent ? "." : "", name);
        else
            snprintf(piece, sizeof(piece), "[%zu]", n->index);
        len = strlen(piece);
        if (len > at)
            break;
        at -= len;
        memcpy(path + at, piece, len);
        if (member)
            member = false;
        else
            n = n->parent;
    }
    path[sizeof(path) - 1] = '\0';
    snprintf(buf, size, "%s%s%s", n->doc->where, path[at] ? ": " : "", path + at);
}

static enum pt_status __attribute__((format(printf, 4, 5)))
fail(const struct pt_json *n, const char *key, struct pt_error *err, const char *fmt, ...)
{
    char place[256], text[512];
    va_list ap;

    if (err == NULL || err->status != PT_OK)
        return PT_INPUT;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    where(n, key, place, sizeof(place));
    return pt_fail(err, PT_INPUT, place, 0, "%s", text);
}

const char *pt_json_where(const struct pt_json *value)
{
    struct document *doc = value->doc;
    struct text *t = malloc(sizeof(*t));

    if (t == NULL)
        return doc->where;
    where(value, NULL, t->text, sizeof(t->text));
    t->next = doc->texts;
    doc->texts = t;
    return t->text;
}

enum pt_status pt_json_parse(const char *place, const char *text, size_t len,
                             struct pt_json **doc, struct pt_error *err)
{
    json_error_t e;
    json_t *root;

    *doc = NULL;
    if (len > PT_JSON_MAX_BYTES)
        return pt_fail(err, PT_INPUT, place, 0, "is larger than the limit of %u bytes",
                       PT_JSON_MAX_BYTES);
    root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &e);
    if (root == NULL)
        return pt_fail(err, PT_INPUT, place, e.line > 0 ? e.line : 0,
                       "is not valid JSON: %s", e.text);
    *doc = new_document(place, root);
    return *doc != NULL ? PT_OK : pt_fail_memory(err);
}

enum pt_status pt_json_read(const char *path, struct pt_json **doc, struct pt_error *err)
{
    enum pt_status st;
    char *text;
    size_t len;

    *doc = NULL;
    st = pt_file_read(path, PT_JSON_MAX_BYTES, &text, &len, err);
    if (st != PT_OK)
        return st;
    st = pt_json_parse(strcmp(path, "-") ? path : "standard input", text, len, doc, err);
    free(text);
    return st;
}

static const char *type_name(const json_t *v)
{
    if (v == NULL)
        return "missing";
    switch (json_typeof(v)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "an array";
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
    case JSON_REAL:
        return "a number";
    case JSON_TRUE:
    case JSON_FALSE:
        return "true or false";
    case JSON_NULL:
        break;
    }
    return "null";
}

bool pt_json_has(const struct pt_json *object, const char *key)
{
    json_t *v = json_object_get(object->value, key);

    return v != NULL && !json_is_null(v);
}

/* The value of a key (of n itself when key is NULL), absent or null as NULL with PT_OK.
 */
static enum pt_status lookup(const struct pt_json *n, const char *key, json_t **v,
                             struct pt_error *err)
{
    *v = n->value;
    if (key == NULL)
        return PT_OK;
    if (!json_is_object(n->value))
        return fail(n, NULL, err, "is %s, not an object", type_name(n->value));
    *v = json_object_get(n->value, key);
    if (json_is_null(*v))
        *v = NULL;
    return PT_OK;
}

static enum pt_status require(const struct pt_json *n, const char *key, json_t **v,
                              struct pt_error *err)
{
    enum pt_status st = lookup(n, key, v, err);

    if (st == PT_OK && *v == NULL)
        return fail(n, key, err, "is missing");
    return st;
}

static enum pt_status to_u64(const struct pt_json *n, const char *key, const json_t *v,
                             uint64_t lo, uint64_t hi, uint64_t *value,
                             struct pt_error *err)
{
    double d = json_number_value(v);
    uint64_t u;

    if (!json_is_number(v))
        return fail(n, key, err, "is %s, not a whole number", type_name(v));
    if (json_is_real(v) && (fabs(d) > 0x1p53 || d < floor(d) || d > floor(d)))
        return fail(n, key, err, "%g is not a whole number", d);
    if (d < 0)
        return fail(n, key, err, "%.17g is negative", d);
    u = json_is_integer(v) ? (uint64_t)json_integer_value(v) : (uint64_t)d;
    if (u < lo || u > hi)
        return fail(n, key, err, "%llu is not within %llu to %llu", (unsigned long long)u,
                    (unsigned long long)lo, (unsigned long long)hi);
    *value = u;
    return PT_OK;
}

static enum pt_status to_number(const struct pt_json *n, const char *key, const json_t *v,
                                double lo, double hi, double *value, struct pt_error *err)
{
    double d = json_number_value(v);

    if (!json_is_number(v))
        return fail(n, key, err, "is %s, not a number", type_name(v));
    if (!(d >= lo && d <= hi))
        return fail(n, key, err, "%g is not within %g to %g", d, lo, hi);
    *value = d;
    return PT_OK;
}

static enum pt_status to_bool(const struct pt_json *n, const char *key, const json_t *v,
                              bool *value, struct pt_error *err)
{
    if (!json_is_boolean(v))
        return fail(n, key, err, "is %s, not true or false", type_name(v));
    *value = json_is_true(v);
    return PT_OK;
}

static enum pt_status to_string(const struct pt_json *n, const char *key, const json_t *v,
                                const char **value, struct pt_error *err)
{
    if (!json_is_string(v))
        return fail(n, key, err, "is %s, not a string", type_name(v));
    *value = json_string_value(v);
    return PT_OK;
}

enum pt_status pt_json_u64(const struct pt_json *object, const char *key, uint64_t lo,
                           uint64_t hi, uint64_t *value, struct pt_error *err)
{
    json_t *v;
    enum pt_status st = require(object, key, &v, err);

    return st != PT_OK ? st : to_u64(object, key, v, lo, hi, value, err);
}

enum pt_status pt_json_number(const struct pt_json *object, const char *key, double lo,
                              double hi, double *value, struct pt_error *err)
{
    json_t *v;
    enum pt_status st = require(object, key, &v, err);

    return st != PT_OK ? st : to_number(object, key, v, lo, hi, value, err);
}

enum pt_status pt_json_bool(const struct pt_json *object, const char *key, bool *value,
                            struct pt_error *err)
{
    json_t *v;
    enum pt_status st = require(object, key, &v, err);

    return st != PT_OK ? st : to_bool(object, key, v, value, err);
}

enum pt_status pt_json_string(const struct pt_json *object, const char *key,
                              const char **value, struct pt_error *err)
{
    json_t *v;
    enum pt_status st = require(object, key, &v, err);

    return st != PT_OK ? st : to_string(object, key, v, value, err);
}

enum pt_status pt_json_u64_or(const struct pt_json *object, const char *key, uint64_t lo,
                              uint64_t hi, uint64_t *value, struct pt_error *err)
{
    json_t *v;
    enum pt_status st = lookup(object, key, &v, err);

    return st != PT_OK || v == NULL ? st : to_u64(object, key, v, lo, hi, value, err);
}

enum pt_status pt_json_number_or(const struct pt_json *object, const char *key, double lo,
                                 double hi, double *value, struct pt_error *err)
{
    json_t *v;
    enum pt_status st = lookup(object, key, &v, err);

    return st != PT_OK || v == NULL ? st : to_number(object, key, v, lo, hi, value, err);
}

enum pt_status pt_json_bool_or(const struct pt_json *object, const char *key, bool *value,
                               struct pt_error *err)
{
    json_t *v;
    enum pt_status st = lookup(object, key, &v, err);

    return st != PT_OK || v == NULL ? st : to_bool(object, key, v, value, err);
}

enum pt_status pt_json_string_or(const struct pt_json *object, const char *key,
                                 const char **value, struct pt_error *err)
{
    json_t *v;
    enum pt_status st = lookup(object, key, &v, err);

    return st != PT_OK || v == NULL ? st : to_string(object, key, v, value, err);
}

enum pt_status pt_json_get(const struct pt_json *object, const char *key,
                           const struct pt_json **child, struct pt_error *err)
{
    json_t *v;
    enum pt_status st = require(object, key, &v, err);

    if (st != PT_OK)
        return st;
    *child = node(object->doc, v, object,
                  json_object_iter_key(json_object_iter_at(object->value, key)), 0);
    return *child != NULL ? PT_OK : pt_fail_memory(err);
}

size_t pt_json_length(const struct pt_json *array)
{
    return json_array_size(array->value);
}

enum pt_status pt_json_at(const struct pt_json *array, size_t index,
                          const struct pt_json **child, struct pt_error *err)
{
    json_t *v = json_array_get(array->value, index);

    if (!json_is_array(array->value))
        return fail(array, NULL, err, "is %s, not an array", type_name(array->value));
    if (v == NULL)
        return fail(array, NULL, err, "has %zu elements; element %zu is missing",
                    json_array_size(array->value), index);
    *child = node(array->doc, v, array, NULL, index);
    return *child != NULL ? PT_OK : pt_fail_memory(err);
}

const char *pt_json_next_key(const struct pt_json *object, const char *key)
{
    json_t *o = object->value;
    void *it;

    if (key == NULL)
        it = json_object_iter(o);
    else
        it = json_object_iter_next(o, json_object_iter_at(o, key));
    return it != NULL ? json_object_iter_key(it) : NULL;
}

struct pt_json *pt_json_new_object(void)
{
    return new_document("", json_object());
}

/* Takes over value. NULL values and parents come from an earlier failure, which is
 * latched. */
static struct pt_json *add(struct pt_json *parent, const char *key, json_t *value,
                           bool want_node)
{
    int rc;

    if (parent == NULL || value == NULL) {
        if (parent != NULL)
            parent->doc->no_memory = true;
        json_decref(value);
        return NULL;
    }
    rc = key != NULL ? json_object_set_new(parent->value, key, value)
                     : json_array_append_new(parent->value, value);
    if (rc != 0)
        parent->doc->no_memory = true;
    if (rc != 0 || !want_node)
        return NULL;
    return node(parent->doc, value, parent, key,
                key ? 0 : json_array_size(parent->value) - 1);
}

struct pt_json *pt_json_add_object(struct pt_json *parent, const char *key)
{
    return add(parent, key, json_object(), true);
}

struct pt_json *pt_json_add_array(struct pt_json *parent, const char *key)
{
    return add(parent, key, json_array(), true);
}

void pt_json_put_u64(struct pt_json *parent, const char *key, uint64_t value)
{
    if (value <= INT64_MAX)
        add(parent, key, json_integer((json_int_t)value), false);
    else if (parent != NULL)
        parent->doc->too_large = true;
}

void pt_json_put_number(struct pt_json *parent, const char *key, double value)
{
    if (isfinite(value))
        add(parent, key, json_real(value), false);
    else if (parent != NULL)
        parent->doc->not_finite = true;
}

void pt_json_put_bool(struct pt_json *parent, const char *key, bool value)
{
    add(parent, key, json_boolean(value), false);
}

/* A file's name may be no UTF-8, which JSON must be: then each byte outside ASCII becomes
 * '?'. */
static json_t *to_utf8(const char *value)
{
    json_t *text = json_string(value);
    char *copy;

    if (text != NULL || (copy = strdup(value)) == NULL)
        return text;
    for (char *p = copy; *p != '\0'; p++)
        if ((unsigned char)*p > 0x7e)
            *p = '?';
    text = json_string(copy);
    free(copy);
    return text;
}

void pt_json_put_string(struct pt_json *parent, const char *key, const char *value)
{
    add(parent, key, to_utf8(value), false);
}

enum pt_status pt_json_write(const struct pt_json *doc, FILE *f, const char *place,
                             struct pt_error *err)
{
    if (doc == NULL || doc->doc->no_memory)
        return pt_fail_memory(err);
    if (doc->doc->not_finite || doc->doc->too_large)
        return pt_fail(err, PT_BUG, place, 0, "a number to be written is %s",
                       doc->doc->not_finite ? "not finite" : "larger than 2^63");
    if (json_dumpf(doc->value, f, JSON_INDENT(2) | JSON_REAL_PRECISION(17)) != 0 ||
        putc('\n', f) == EOF || fflush(f) != 0)
        return pt_fail(err, PT_SYSTEM, place, 0, "cannot be written completely");
    return PT_OK;
}
