/* Published shapes: profiles/models.csv, a source per row. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "libpt/csv.h"
#include "libpt/hardware.h"
#include "libpt/model.h"
#include "libpt/names.h"

/* "meta-llama/Llama-2-7b-hf" -> "Llama-2-7b": the hub's organisation and suffix say
 * nothing. */
static void plain_name(const char *name, char *out, size_t size)
{
    const char *slash = strrchr(name, '/');
    size_t len;

    snprintf(out, size, "%s", slash != NULL ? slash + 1 : name);
    len = strlen(out);
    if (len > 3 && strcmp(out + len - 3, "-hf") == 0)
        out[len - 3] = '\0';
}

static enum pt_status find(const struct pt_csv *csv, const char *name, size_t *row,
                           struct pt_error *err)
{
    int names = pt_csv_column(csv, "name"), aliases = pt_csv_column(csv, "aliases");
    struct pt_nearest nearest = { 0 };
    char plain[96], list[256];

    plain_name(name, plain, sizeof(plain));
    for (*row = 0; *row < pt_csv_rows(csv); (*row)++)
        if (pt_name_equal(plain, pt_csv_field(csv, *row, names)))
            return PT_OK;
    for (*row = 0; *row < pt_csv_rows(csv); (*row)++) {
        if (pt_name_in_list(plain, pt_csv_field(csv, *row, aliases)))
            return PT_OK;
        pt_nearest_offer(&nearest, plain, pt_csv_field(csv, *row, names));
    }
    return pt_fail(err, PT_USAGE, NULL, 0, "model '%.60s' is not known; nearest: %s",
                   name, pt_nearest_text(&nearest, list, sizeof(list)));
}

/* The whole numbers of a row. */
static enum pt_status read_sizes(const struct pt_csv *csv, size_t row, struct pt_model *m,
                                 struct pt_error *err)
{
    const struct {
        const char *column;
        uint32_t *value;
    } list[] = {
        { "layers", &m->layers },
        { "hidden", &m->hidden },
        { "ffn", &m->ffn },
        { "heads", &m->heads },
        { "kv_heads", &m->kv_heads },
        { "head_dim", &m->head_dim },
        { "vocab", &m->vocab },
        { "max_seq", &m->max_seq },
        { "norms_per_layer", &m->norms },
        { "learned_pos_rows", &m->position_rows },
        { "experts", &m->experts },
        { "topk", &m->topk },
        { "shared_ffn_total", &m->shared_ffn },
        { "moe_ffn", &m->moe_ffn },
        { "first_dense_layers", &m->dense_layers },
        { "mla_q_lora", &m->q_lora },
        { "mla_kv_lora", &m->kv_lora },
        { "mla_qk_nope", &m->qk_nope },
        { "mla_qk_rope", &m->qk_rope },
        { "mla_v_dim", &m->v_dim },
    };

    for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
        double value;
        enum pt_status st =
            pt_csv_number(csv, row, pt_csv_column(csv, list[i].column), 0, &value, err);

        if (st != PT_OK)
            return st;
        if (!(value >= 0 && value <= 1e9))
            return pt_fail(err, PT_INPUT, "profile", pt_csv_line(csv, row),
                           "%s is %g; 0 to 1e9 is possible", list[i].column, value);
        *list[i].value = (uint32_t)value;
    }
    return PT_OK;
}

static enum pt_status read_extras(const struct pt_csv *csv, size_t row,
                                  struct pt_model *m, struct pt_error *err)
{
    double layer, ends;
    enum pt_status st =
        pt_csv_number(csv, row, pt_csv_column(csv, "extra_layer_params"), 0, &layer, err);

    if (st == PT_OK)
        st = pt_csv_number(csv, row, pt_csv_column(csv, "extra_params"), 0, &ends, err);
    if (st != PT_OK)
        return st;
    if (!(layer > -1e12 && layer < 1e12 && ends > -1e12 && ends < 1e12))
        return pt_fail(err, PT_INPUT, "profile", pt_csv_line(csv, row),
                       "extra parameters beyond 1e12");
    m->extra_layer_params = (int64_t)layer;
    m->extra_params = (int64_t)ends;
    return PT_OK;
}

static enum pt_status read_row(const struct pt_csv *csv, size_t row, struct pt_model *m,
                               struct pt_error *err)
{
    const char *bias = pt_csv_field(csv, row, pt_csv_column(csv, "bias"));
    const char *norm = pt_csv_field(csv, row, pt_csv_column(csv, "norm"));
    const struct {
        const char *column;
        bool *value;
    } flags[] = {
        { "gated_mlp", &m->gated },         { "tied_embeddings", &m->tied },
        { "qk_norm", &m->qk_norm },         { "router_bias", &m->router_bias },
        { "shared_gate", &m->shared_gate },
    };
    enum pt_status st;

    memset(m, 0, sizeof(*m));
    snprintf(m->name, sizeof(m->name), "%s",
             pt_csv_field(csv, row, pt_csv_column(csv, "name")));
    snprintf(m->source, sizeof(m->source), "%s",
             pt_csv_field(csv, row, pt_csv_column(csv, "source")));
    st = read_sizes(csv, row, m, err);
    if (st == PT_OK)
        st = read_extras(csv, row, m, err);
    if (st != PT_OK)
        return st;
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
        *flags[i].value =
            strcmp(pt_csv_field(csv, row, pt_csv_column(csv, flags[i].column)), "1") == 0;
    m->bias = strcmp(bias, "all") == 0;
    m->qkv_bias = strncmp(bias, "qkv", 3) == 0;
    if (strcmp(bias, "qkvo") == 0)
        m->extra_layer_params += m->hidden; /* the output's */
    m->rmsnorm = strcmp(norm, "RMS") == 0 || strcmp(norm, "LN-nobias") == 0;
    m->learned_positions =
        strcmp(pt_csv_field(csv, row, pt_csv_column(csv, "pos_emb")), "learned") == 0;
    return pt_model_check(m, err);
}

enum pt_status pt_model_preset(const char *profile_dir, const char *name,
                               struct pt_model *model, struct pt_error *err)
{
    char path[PT_PROFILE_DIR_SIZE + 64];
    struct pt_csv *csv = NULL;
    enum pt_status st;
    size_t row;

    snprintf(path, sizeof(path), "%s/models.csv", profile_dir);
    st = pt_csv_read(path, &csv, err);
    if (st == PT_OK)
        st = find(csv, name, &row, err);
    if (st == PT_OK)
        st = read_row(csv, row, model, err);
    pt_csv_free(csv);
    return st;
}
