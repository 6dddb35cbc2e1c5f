/* CSV files by header name (RFC 4180, over libcsv; the only file that includes csv.h).
 * Lines that begin with '#' before the header are comments. */
#ifndef PT_CSV_H
#define PT_CSV_H

#include <stddef.h>
#include <stdio.h>

#include "libpt/error.h"

#define PT_CSV_MAX_BYTES   (256u << 20)
#define PT_CSV_MAX_COLUMNS 256

/* A whole file in memory: n_rows x n_columns of NUL-terminated fields, shorter rows
 * padded with "". A row longer than the header is an error that names its line. */
struct pt_csv;

/* path "-" is standard input. Fails with PT_INPUT (path, line, reason). */
enum pt_status pt_csv_read(const char *path, struct pt_csv **csv, struct pt_error *err);
enum pt_status pt_csv_parse(const char *where, const char *text, size_t len,
                            struct pt_csv **csv, struct pt_error *err);
void pt_csv_free(struct pt_csv *csv);

size_t pt_csv_rows(const struct pt_csv *csv);
/* Index of a column, or -1. */
int pt_csv_column(const struct pt_csv *csv, const char *name);
/* "" when the column is -1. Lives as long as csv. */
const char *pt_csv_field(const struct pt_csv *csv, size_t row, int column);
/* 1-based line of the row in its file, for messages. */
int pt_csv_line(const struct pt_csv *csv, size_t row);
/* A number, or `missing` for an empty field; PT_INPUT with path, line and column
 * otherwise. */
enum pt_status pt_csv_number(const struct pt_csv *csv, size_t row, int column,
                             double missing, double *value, struct pt_error *err);

/* One field, quoted when it must be; then pt_csv_put_end ends the row. */
void pt_csv_put(FILE *f, const char *field, int first);
void pt_csv_put_end(FILE *f);

#endif
