/* Seeded properties of the text formats: what is written reads back as the same thing. */
#include "config.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libpt/csv.h"
#include "libpt/json.h"
#include "libpt/units.h"
#include "tests/prop/prop.h"

/* Any count prints as digits and reads back exactly; any size with a suffix is the
 * product. */
static void units_round_trip(struct prop_rng *rng)
{
    uint64_t count = prop_u64(rng) >> prop_below(rng, 64), back;
    uint64_t small = 1 + prop_below(rng, 1000000);
    char text[64];

    if (count == 0)
        count = 1;
    snprintf(text, sizeof(text), "%" PRIu64, count);
    REQUIRE(pt_parse_count("x", text, &back, NULL) == PT_OK && back == count, "%s", text);
    snprintf(text, sizeof(text), "%" PRIu64 "MiB", small);
    REQUIRE(pt_parse_bytes("x", text, &back, NULL, NULL) == PT_OK && back == small << 20,
            "%s", text);
    snprintf(text, sizeof(text), "%" PRIu64 ".%03" PRIu64 "B", small, count % 1000);
    REQUIRE(pt_parse_count("x", text, &back, NULL) == PT_OK &&
                back == small * 1000000000 + (count % 1000) * 1000000,
            "%s", text);
}

/* What the formatters print for people stays within its own rounding of the number. */
static void formats_stay_close(struct prop_rng *rng)
{
    double v = ldexp(1 + prop_unit(rng), (int)prop_below(rng, 35)), back;
    uint64_t n;
    char buf[32];

    REQUIRE(pt_parse_seconds("x", pt_format_seconds(buf, v * 1e-6), &back, NULL) ==
                    PT_OK &&
                fabs(back - v * 1e-6) <= 0.006 * v * 1e-6,
            "%s for %g", buf, v * 1e-6);
    REQUIRE(pt_parse_bytes("x", pt_format_gib(buf, v * 1e8), &n, NULL, NULL) == PT_OK &&
                fabs((double)n - v * 1e8) <= 0.0051 * (PT_GIB + v * 1e8),
            "%s for %g", buf, v * 1e8);
    REQUIRE(pt_parse_count("x", pt_format_count(buf, floor(v * 1e3)), &n, NULL) ==
                    PT_OK &&
                fabs((double)n - floor(v * 1e3)) <= 0.051 * v * 1e3,
            "%s for %g", buf, floor(v * 1e3));
}

#define COLUMNS 4
#define ROWS    6

/* Fields of the bytes that matter to a CSV reader. */
static void csv_round_trip(struct prop_rng *rng)
{
    static const char alphabet[] = "ab ,\"\n\r\t#;";
    char cell[ROWS][COLUMNS][12];
    char *text = NULL;
    size_t len;
    FILE *f = open_memstream(&text, &len);
    struct pt_error err = PT_ERROR_INIT;
    struct pt_csv *csv;

    for (int c = 0; c < COLUMNS; c++) {
        char name[2] = { (char)('A' + c), '\0' };

        pt_csv_put(f, name, c == 0);
    }
    pt_csv_put_end(f);
    for (int r = 0; r < ROWS; r++) {
        for (int c = 0; c < COLUMNS; c++) {
            size_t n = prop_below(rng, sizeof(cell[r][c]));

            for (size_t i = 0; i < n; i++)
                cell[r][c][i] = alphabet[prop_below(rng, sizeof(alphabet) - 1)];
            cell[r][c][n] = '\0';
            pt_csv_put(f, cell[r][c], c == 0);
        }
        pt_csv_put_end(f);
    }
    fclose(f);
    REQUIRE(pt_csv_parse("t", text, len, &csv, &err) == PT_OK, "%s\n%s", err.text, text);
    REQUIRE(pt_csv_rows(csv) == ROWS, "%zu rows in\n%s", pt_csv_rows(csv), text);
    for (size_t r = 0; r < ROWS; r++)
        for (int c = 0; c < COLUMNS; c++)
            REQUIRE(!strcmp(pt_csv_field(csv, r, c), cell[r][c]),
                    "row %zu column %d of\n%s", r, c, text);
    pt_csv_free(csv);
    free(text);
}

/* Every finite double, by its bits, and every whole number to 2^63. */
static void json_round_trip(struct prop_rng *rng)
{
    struct pt_json *doc = pt_json_new_object(), *read;
    uint64_t bits = prop_u64(rng), u = prop_u64(rng) >> 1, u2 = 0;
    struct pt_error err = PT_ERROR_INIT;
    char *text = NULL;
    double d, d2 = 0;
    size_t len;
    FILE *f = open_memstream(&text, &len);

    memcpy(&d, &bits, sizeof(d));
    if (!isfinite(d))
        d = (double)bits;
    pt_json_put_number(doc, "d", d);
    pt_json_put_u64(doc, "u", u);
    REQUIRE(pt_json_write(doc, f, "t", &err) == PT_OK, "%s", err.text);
    fclose(f);
    REQUIRE(pt_json_parse("t", text, len, &read, &err) == PT_OK, "%s: %s", err.text,
            text);
    REQUIRE(pt_json_number(read, "d", -DBL_MAX, DBL_MAX, &d2, &err) == PT_OK, "%s",
            err.text);
    REQUIRE(!memcmp(&d, &d2, sizeof(d)), "%a became %a in %s", d, d2, text);
    REQUIRE(pt_json_u64(read, "u", 0, UINT64_MAX, &u2, &err) == PT_OK && u == u2, "%s",
            text);
    pt_json_free(doc);
    pt_json_free(read);
    free(text);
}

int main(void)
{
    static const struct prop props[] = {
        { "units round trip", units_round_trip },
        { "formats stay close", formats_stay_close },
        { "csv round trip", csv_round_trip },
        { "json round trip", json_round_trip },
    };

    return prop_run(props, sizeof(props) / sizeof(props[0]), 5000);
}
