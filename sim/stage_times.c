#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "libpt/csv.h"
#include "libpt/file.h"
#include "libpt/units.h"
#include "sim/pure.h"

#define MAX_BYTES (1u << 20)

static const struct {
    const char *name;
    unsigned part;
    double unit_s;
} names[] = {
    { "forward", 0, 1 },       { "forward_s", 0, 1 },
    { "forward_ms", 0, 1e-3 }, { "fwd_ms", 0, 1e-3 },
    { "fwd", 0, 1 },           { "backward", 1, 1 },
    { "backward_s", 1, 1 },    { "backward_ms", 1, 1e-3 },
    { "bwd_ms", 1, 1e-3 },     { "bwd", 1, 1 },
    { "weight", 2, 1 },        { "weight_s", 2, 1 },
    { "weight_ms", 2, 1e-3 },  { "wgrad_ms", 2, 1e-3 },
    { "wgrad", 2, 1 },
};

static const char *const parts[] = { "forward", "backward", "weight" };

void sim_stage_times_fini(struct sim_stage_times *times)
{
    free(times->forward_s); /* one block */
    *times = (struct sim_stage_times){ 0, NULL, NULL, NULL };
}

/* Does the text begin with a number? Then it has no header. */
static bool starts_with_number(const char *text)
{
    while (*text == '#' || *text == '\n') { /* comment lines */
        text += strcspn(text, "\n");
        text += *text == '\n';
    }
    text += strspn(text, " \t\"");
    return strchr("0123456789.+-", *text) != NULL && *text != '\0';
}

/* Thirty years for one pass: beyond it sums of a schedule lose their small terms, and at
 * last overflow. */
#define MOST_SECONDS 1e9

/* The text with a header in front; NULL when memory runs out. */
static char *with_header(unsigned part, const char *text, size_t *len)
{
    static const char *const headers[] = { "forward,backward,weight\n",
                                           "backward,weight\n", "weight\n" };
    size_t n = strlen(headers[part]);
    char *with = malloc(n + *len + 1);

    if (with == NULL)
        return NULL;
    memcpy(with, headers[part], n);
    memcpy(with + n, text, *len);
    with[n + *len] = '\0';
    *len += n;
    return with;
}

static enum pt_status read_cell(const struct pt_csv *csv, const char *path, size_t row,
                                int column, double unit_s, int line, double *seconds,
                                struct pt_error *err)
{
    const char *field = pt_csv_field(csv, row, column);
    struct pt_error why = PT_ERROR_INIT;

    if (pt_parse_seconds("time", field, seconds, &why))
        return pt_fail(err, PT_INPUT, path, line, "%s", why.text);
    *seconds *= unit_s;
    if (*seconds > MOST_SECONDS)
        return pt_fail(err, PT_INPUT, path, line, "time: %g s is more than %g s",
                       *seconds, MOST_SECONDS);
    return PT_OK;
}

static enum pt_status fill(const struct pt_csv *csv, const char *path, unsigned wanted,
                           int line_shift, struct sim_stage_times *times,
                           struct pt_error *err)
{
    double *part[3] = { times->forward_s, times->input_s, times->weight_s };
    size_t rows = pt_csv_rows(csv);
    bool found = false;
    enum pt_status st;

    if (rows != times->n)
        return pt_fail(err, PT_INPUT, path, 0, "%zu rows of times for %u stages", rows,
                       times->n);
    for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++) {
        int column = pt_csv_column(csv, names[k].name);

        if (column < 0)
            continue;
        found = found || names[k].part == wanted;
        if (pt_csv_field(csv, 0, column)[0] == '\0')
            continue; /* an empty column is none */
        for (size_t r = 0; r < rows; r++)
            if ((st = read_cell(csv, path, r, column, names[k].unit_s,
                                pt_csv_line(csv, r) - line_shift, &part[names[k].part][r],
                                err)))
                return st;
    }
    if (!found)
        return pt_fail(err, PT_INPUT, path, 1, "no column '%s' (in seconds, or %s_ms)",
                       parts[wanted], parts[wanted]);
    return PT_OK;
}

enum pt_status sim_stage_times_init(uint32_t stages, const double uniform[3],
                                    struct sim_stage_times *times, struct pt_error *err)
{
    *times = (struct sim_stage_times){ stages, NULL, NULL, NULL };
    times->forward_s = malloc(3 * (size_t)stages * sizeof(double));
    if (times->forward_s == NULL)
        return pt_fail_memory(err);
    times->input_s = times->forward_s + stages;
    times->weight_s = times->input_s + stages;
    for (size_t i = 0; i < 3 * (size_t)stages; i++)
        times->forward_s[i] = uniform[i / stages];
    return PT_OK;
}

enum pt_status sim_stage_times_parse(const char *where, const char *text, size_t len,
                                     unsigned part, struct sim_stage_times *times,
                                     struct pt_error *err)
{
    bool bare = starts_with_number(text);
    struct pt_csv *csv = NULL;
    char *with = NULL;
    enum pt_status st;

    if (bare && (with = with_header(part, text, &len)) == NULL)
        return pt_fail_memory(err);
    if ((st = pt_csv_parse(where, bare ? with : text, len, &csv, err)) == PT_OK) {
        st = fill(csv, where, part, bare, times, err);
        pt_csv_free(csv);
    }
    free(with);
    return st;
}

enum pt_status sim_stage_times_read(const char *path, unsigned part,
                                    struct sim_stage_times *times, struct pt_error *err)
{
    char *text = NULL;
    size_t len;
    enum pt_status st = pt_file_read(path, MAX_BYTES, &text, &len, err);

    if (st == PT_OK)
        st = sim_stage_times_parse(path, text, len, part, times, err);
    free(text);
    return st;
}
