/* A shape from a bare parameter count P.
 *
 * Fitted on published shapes (profiles/shape_points.csv): head size 64 below 1B, else
 * 128; hidden / layers = 77 (P / 1e9)^0.133; hidden a multiple of 128, from 5B of 1024;
 * feed-forward 4 h, gated 8 h / 3 rounded up to 256; an even number of layers. Of the
 * shapes in reach the one is taken that minimises |params / P - 1| + 0.6 |ln(hidden /
 * layers / wanted)| + 0.01 [layers % 8] + 0.02 [layers % 4] where [x] is 1 unless x is 0:
 * depths that split into many stages are the ones people publish.
 * profiles/shape_synth.csv is the reference: 10B is 48 layers of 4096 with 32 heads. */
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "libpt/model.h"
#include "libpt/units.h"

#define LOWEST  1e7
#define HIGHEST 1e14

static void fill(struct pt_model *m, double params, enum pt_model_style style,
                 uint32_t hidden, uint32_t layers)
{
    memset(m, 0, sizeof(*m));
    m->layers = layers;
    m->hidden = hidden;
    m->head_dim = params < 1e9 ? 64 : 128;
    m->heads = m->kv_heads = hidden / m->head_dim;
    if (style == PT_STYLE_LLAMA) {
        m->ffn = (8 * hidden / 3 + 255) / 256 * 256;
        m->vocab = params < 5e8 ? 32000 : 128256;
        m->max_seq = 8192;
        m->gated = m->rmsnorm = true;
    } else {
        m->ffn = 4 * hidden;
        m->vocab = 51200;
        m->max_seq = m->position_rows = 2048;
        m->tied = m->bias = m->learned_positions = true;
    }
}

/* What the shape costs by the rule above. */
static double score(const struct pt_model *m, double params, double aspect)
{
    struct pt_params sum;

    pt_model_params(m, &sum);
    return fabs((double)sum.total / params - 1) +
           0.6 * fabs(log(m->hidden / (double)m->layers / aspect)) +
           (m->layers % 8 != 0 ? 0.01 : 0) + (m->layers % 4 != 0 ? 0.02 : 0);
}

/* The best depth of one width; score above 1e9 when there is none. */
static double best_depth(double params, enum pt_model_style style, double aspect,
                         uint32_t hidden, struct pt_model *best)
{
    struct pt_model m;
    struct pt_params two, four;
    double per_layer, ends, depth, least = 1e30;
    uint32_t first;

    fill(&m, params, style, hidden, 2);
    pt_model_params(&m, &two);
    m.layers = 4;
    pt_model_params(&m, &four);
    per_layer = (double)(four.total - two.total) / 2;
    ends = (double)two.total - 2 * per_layer;
    depth = (params - ends) / per_layer;
    if (depth < 1 || depth > PT_MAX_LAYERS - 16)
        return least;
    first = depth > 10 ? (uint32_t)(depth - 8) / 2 * 2 : 2;
    for (uint32_t layers = first; layers <= depth + 8; layers += 2) {
        double s;

        m.layers = layers;
        s = score(&m, params, aspect);
        if (s < least) {
            least = s;
            *best = m;
        }
    }
    return least;
}

enum pt_status pt_model_synthesise(uint64_t params, enum pt_model_style style,
                                   struct pt_model *model, struct pt_error *err)
{
    double p = (double)params, aspect = 77 * pow(p / 1e9, 0.133), least = 1e30;
    uint32_t step = p < 5e9 ? 128 : 1024;
    /* Twice the width that the aspect asks for: beyond, no shape is near. */
    double widest = 2 * cbrt(p * aspect / 12) + step;
    char count[32];

    if (p < LOWEST || p > HIGHEST)
        return pt_fail(err, PT_USAGE, NULL, 0,
                       "a model of %s parameters cannot be "
                       "synthesised; 10M to 100T are possible",
                       pt_format_count(count, p));
    for (uint32_t hidden = step; hidden <= widest; hidden += step) {
        struct pt_model m;
        double s = best_depth(p, style, aspect, hidden, &m);

        if (s < least) {
            least = s;
            *model = m;
        }
    }
    if (least > 1e9)
        return pt_fail(err, PT_USAGE, NULL, 0, "no shape of %s parameters was found",
                       pt_format_count(count, p));
    snprintf(model->name, sizeof(model->name), "synthetic %s %s",
             style == PT_STYLE_LLAMA ? "Llama" : "GPT", pt_format_count(count, p));
    snprintf(model->source, sizeof(model->source),
             "synthesised from the count: hidden/layers = 77 P^0.133 (P in billions)");
    return pt_model_check(model, err);
}
