/* report.html: one page that needs no other file and no network. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "libpt/file.h"
#include "libpt/outfile.h"
#include "libpt/units.h"
#include "planner/report.h"

#define MAX_PICTURE_BYTES (16u << 20)

static void escaped(FILE *f, const char *text)
{
    for (; *text != '\0'; text++)
        switch (*text) {
        case '<':
            fputs("&lt;", f);
            break;
        case '>':
            fputs("&gt;", f);
            break;
        case '&':
            fputs("&amp;", f);
            break;
        case '"':
            fputs("&quot;", f);
            break;
        default:
            fputc(*text, f);
        }
}

static void base64(FILE *f, const unsigned char *p, size_t n)
{
    static const char digit[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    for (size_t i = 0; i < n; i += 3) {
        uint32_t v = (uint32_t)p[i] << 16 | (i + 1 < n ? (uint32_t)p[i + 1] << 8 : 0) |
                     (i + 2 < n ? p[i + 2] : 0);

        fputc(digit[v >> 18 & 63], f);
        fputc(digit[v >> 12 & 63], f);
        fputc(i + 1 < n ? digit[v >> 6 & 63] : '=', f);
        fputc(i + 2 < n ? digit[v & 63] : '=', f);
    }
}

/* An image of its own, so that the ids inside two SVG files cannot meet. */
static enum pt_status picture(const struct planner_report *r, FILE *f, const char *file,
                              const char *alt, const char *says, struct pt_error *err)
{
    char path[4096], *text = NULL;
    size_t n = 0;
    enum pt_status st;

    if (!planner_report_path(r, file, path, sizeof(path)))
        return pt_fail(err, PT_SYSTEM, NULL, 0,
                       "--report: the folder's name is too long");
    if ((st = pt_file_read(path, MAX_PICTURE_BYTES, &text, &n, err)))
        return st;
    fprintf(f, "<figure><img alt=\"%s\" src=\"data:image/svg+xml;base64,", alt);
    base64(f, (const unsigned char *)text, n);
    fprintf(f, "\"><figcaption>%s</figcaption></figure>\n", says);
    free(text);
    return PT_OK;
}

static const char head[] =
    "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<title>ptplan report</title>\n<style>\n"
    "body{font:16px/1.5 system-ui,sans-serif;color:#1c1c1c;background:#fff;"
    "max-width:62rem;margin:2rem auto;padding:0 1rem}\n"
    "h1{font-size:1.6rem;margin:0 0 .2rem}h2{font-size:1.15rem;margin:2.2rem 0 .6rem}\n"
    ".lead{color:#555;margin:0 0 1.4rem}\n"
    ".cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(9.5rem,1fr));"
    "gap:.7rem}\n"
    ".card{border:1px solid #ddd;border-radius:.5rem;padding:.7rem .9rem}\n"
    ".card b{display:block;font-size:1.35rem;font-weight:600}\n"
    ".card span{color:#666;font-size:.85rem}\n"
    "figure{margin:1.2rem 0}img{width:100%;height:auto;border:1px solid #eee;"
    "border-radius:.5rem}\n"
    "figcaption{color:#666;font-size:.9rem}\n"
    "pre{background:#f6f6f6;border-radius:.5rem;padding:1rem;overflow-x:auto;"
    "font-size:.82rem;line-height:1.4}\n"
    "table{border-collapse:collapse;font-size:.9rem}\n"
    "td,th{padding:.25rem .8rem;text-align:right;border-bottom:1px solid #eee;"
    "font-variant-numeric:tabular-nums}\n"
    "td:last-child,th:last-child{text-align:left}\n"
    "</style></head><body>\n";

static void card(FILE *f, const char *value, const char *what)
{
    fprintf(f, "<div class=\"card\"><b>");
    escaped(f, value);
    fprintf(f, "</b><span>%s</span></div>\n", what);
}

static void cards(FILE *f, const struct pt_plan *plan)
{
    char a[64], b[64];

    fprintf(f, "<div class=\"cards\">\n");
    card(f, pt_format_seconds(a, plan->step.step_s), "per step");
    snprintf(b, sizeof(b), "%.0f", plan->step.tokens_per_s_gpu);
    card(f, b, "tokens/s a GPU");
    snprintf(b, sizeof(b), "%.1f%%", 100 * plan->step.mfu);
    card(f, b, plan->causal ? "MFU (causal half)" : "MFU (attention in full)");
    snprintf(b, sizeof(b), "%.1f%%", 100 * plan->step.bubble_of_total);
    card(f, b, "bubble of total");
    snprintf(b, sizeof(b), "%.1f of %.1f GiB", plan->memory.device_bytes / PT_GIB,
             plan->memory.limit_bytes / PT_GIB);
    card(f, b, "per GPU (device)");
    if (plan->setup.job.tokens > 0) {
        double step_tokens = (double)plan->setup.job.global_batch * plan->setup.job.seq;

        card(f,
             pt_format_seconds(a,
                               plan->setup.job.tokens / step_tokens * plan->step.step_s),
             "for the whole run");
    }
    fprintf(f, "</div>\n");
}

static void top_table(FILE *f, const struct planner_result *result)
{
    char text[512];

    fprintf(f, "<h2>The best plans</h2>\n<table><tr><th>rank</th><th>step s</th><th>MFU "
               "%%</th><th>bubble %%</th><th>device GiB</th><th>layout</th></tr>\n");
    for (uint32_t i = 0; i < result->n; i++) {
        const struct pt_plan *p = &result->plan[i];

        fprintf(f,
                "<tr><td>%u</td><td>%.3f</td><td>%.1f</td><td>%.1f</td><td>%.1f</td><td>",
                i + 1, p->step.step_s, 100 * p->step.mfu, 100 * p->step.bubble_of_total,
                p->memory.device_bytes / PT_GIB);
        escaped(f, planner_layout_text(text, sizeof(text), p));
        fprintf(f, "</td></tr>\n");
    }
    fprintf(f, "</table>\n");
}

static enum pt_status pictures(const struct planner_report *r, FILE *f,
                               const struct planner_curve *scaling, struct pt_error *err)
{
    static const struct {
        const char *file, *alt, *says;
    } all[] = {
        { "memory.svg", "stacked memory per stage",
          "Every part at the stage's fullest moment, against the card's limit." },
        { "step.svg", "step time breakdown of the best plans",
          "The slices add up to the step time of the slowest stage." },
        { "pareto.svg", "step time against memory",
          "Each point is the best plan of a search of its own under a smaller limit." },
        { "scaling.svg", "scaling efficiency over the number of GPUs",
          "Each point is the best plan for its number of GPUs at the same global "
          "batch." },
    };

    for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        enum pt_status st;

        if (i == 3 && scaling->n < 2)
            continue;
        st = picture(r, f, all[i].file, all[i].alt, all[i].says, err);
        if (st != PT_OK)
            return st;
    }
    return PT_OK;
}

static enum pt_status summary(const struct planner_report *r, FILE *f,
                              struct pt_error *err)
{
    char *text = NULL;
    size_t n = 0;
    FILE *memory = open_memstream(&text, &n);

    if (memory == NULL)
        return pt_fail_memory(err);
    planner_summary(memory, r->setup, r->result, r->assumed, r->hints);
    if (fclose(memory) != 0) {
        free(text);
        return pt_fail_memory(err);
    }
    fprintf(f, "<h2>Summary</h2>\n<pre>");
    escaped(f, text);
    fprintf(f, "</pre>\n");
    free(text);
    return PT_OK;
}

enum pt_status planner_report_html(const struct planner_report *r,
                                   const struct planner_curve *scaling, bool drawn,
                                   struct pt_error *err)
{
    const struct pt_plan *plan = &r->result->plan[0];
    struct pt_outfile out;
    char path[4096], text[512];
    enum pt_status st;

    if (!planner_report_path(r, "report.html", path, sizeof(path)))
        return pt_fail(err, PT_SYSTEM, NULL, 0,
                       "--report: the folder's name is too long");
    if ((st = pt_outfile_open(path, &out, err)))
        return st;
    fputs(head, out.f);
    fprintf(out.f, "<h1>");
    escaped(out.f, r->setup->model.name);
    fprintf(out.f, " on %u x ", r->setup->cluster.gpus);
    escaped(out.f, r->setup->cluster.gpu.name);
    fprintf(out.f, "</h1>\n<p class=\"lead\">");
    escaped(out.f, planner_layout_text(text, sizeof(text), plan));
    fprintf(out.f, "</p>\n");
    cards(out.f, plan);
    if (drawn)
        st = pictures(r, out.f, scaling, err);
    else
        fprintf(out.f,
                "<p>The pictures were not drawn: gnuplot is missing or failed. The "
                "tables are in the CSV files beside this page.</p>\n");
    if (st == PT_OK)
        st = summary(r, out.f, err);
    top_table(out.f, r->result);
    fprintf(out.f,
            "<p class=\"lead\">Made by %s. The tables behind every picture are in "
            "the CSV files beside this page.</p>\n</body></html>\n",
            PACKAGE_STRING);
    if (st == PT_OK)
        st = pt_outfile_commit(&out, err);
    pt_outfile_discard(&out);
    return st;
}
