/* generator.c - frames out of features that are propagated and attended to: networks of ProPainter's generator.
 *
 * "Unfold, then linear" is a convolution of 7 x 7 with stride 3, and "linear, then fold" a transposed one whose bias is
 * folded by itself (FoldBias): the buffer of 49 times the pixels is never there. GELU stands before the unfolding, which
 * copies what it yields. Tokens stay images; the frames of an attention stand one behind the other in channels.
 * @source Zhou, Li, Chan, Loy: ProPainter, ICCV 2023. */
#include "engine/models/propainter/networks.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define C TGI_PP_CHANNELS
#define TOKEN TGI_PP_TOKEN
#define SLOPE 0.2f
#define GROUPS 16
#define OFFSETS (GROUPS * 18)
#define REACH 3.0f /* of offsets, in pixels */
#define PATCH 7
#define STEP 3
#define INNER 40 /* channels of a token's patch between its two linear layers */

static int leaky(const tgi_trained *t, int x)
{
    return tgi_draft_leaky(t->draft, x, SLOPE);
}

/* ---- Encoder ----------------------------------------------------------------------------- */

#define MOST_PARTS 8
#define EDGES 256 /* channels of e */

/* A value as parts that stand side by side, of as many channels each. */
typedef struct parts {
    int n, part[MOST_PARTS];
    int64_t channels; /* of all */
} parts;

/* Part g of `groups`, each of which lies in one part. */
static int group_of(tgi_draft *d, const parts *x, int64_t g, int64_t groups)
{
    const int64_t each = x->channels / groups, in_part = x->channels / x->n,
                  at = g * each % in_part;
    const int part = x->part[g * each / in_part];
    return each == in_part ? part : tgi_draft_channels(d, part, at, at + each);
}

static int named(char name[32], int number)
{
    return snprintf(name, 32, "encoder.layers.%d", number);
}

static int layer(const tgi_trained *t, int x, int number, int64_t from, int64_t to,
                 int64_t stride)
{
    char name[32];
    named(name, number);
    return leaky(
        t, tgi_trained_conv(t, x, name, from, to, 3,
                            &(tgi_draft_window){.stride = {stride, stride}, .pad = {1, 1}}));
}

/* A layer of groups: of each group its part of e and its part of x, by a convolution of its own, which may be a fast one. */
static parts grouped(const tgi_trained *t, const parts *e, const parts *x, int number,
                     int64_t to, int groups)
{
    char name[32];
    const int64_t from = (e->channels + x->channels) / groups, each = to / groups;
    parts out = {.n = groups, .channels = to};
    named(name, number);
    for (int g = 0; g < groups; g++) {
        const int both[2] = {group_of(t->draft, e, g, groups),
                             group_of(t->draft, x, g, groups)};
        out.part[g] = leaky(t, tgi_trained_part(t, tgi_draft_concat(t->draft, 2, both), name,
                                                from, to, g * each, (g + 1) * each, 3));
    }
    return out;
}

tg_status tgi_pp_encode(const tgi_weights *w, int64_t high, int64_t wide, tgi_graph **out,
                        tgi_err *err)
{
    static const struct {
        int number, groups;
        int64_t to;
    } rest[3] = {{10, 2, 512}, {12, 4, 384}, {14, 8, 256}};
    tgi_draft d;
    tgi_draft_begin(&d);
    const tgi_trained t = {&d, w};
    int in[2];
    in[0] = tgi_draft_input(&d, "frame", 3, high, wide);
    in[1] = tgi_draft_input(&d, "masks", 2, high, wide);
    int v = layer(&t, tgi_draft_concat(&d, 2, in), 0, 5, 64, 2);
    v = layer(&t, v, 2, 64, 64, 1);
    v = layer(&t, v, 4, 64, 128, 2);
    const parts e = {1, {layer(&t, v, 6, 128, EDGES, 1)}, EDGES};
    parts x = {1, {layer(&t, e.part[0], 8, EDGES, 384, 1)}, 384};
    for (int i = 0; i < 3; i++)
        x = grouped(&t, &e, &x, rest[i].number, rest[i].to, rest[i].groups);
    int all[1 + MOST_PARTS] = {e.part[0]};
    memcpy(all + 1, x.part, sizeof x.part);
    tgi_draft_output(
        &d, layer(&t, tgi_draft_concat(&d, 1 + x.n, all), 16, EDGES + x.channels, C, 1));
    return tgi_draft_finish(&d, out, err);
}

/* ---- Propagation ------------------------------------------------------------------------- */

/* dy, dx of a flow dx, dy for each of the taps of all groups: a product of 0 and 1, exact. */
static int repeat_flow(tgi_draft *d, int flow)
{
    float *to = NULL;
    const int w = tgi_draft_floats(d, "repeat", TGI_DIMS(OFFSETS, 2, 1, 1), NULL, &to);
    for (int64_t k = 0; k < OFFSETS && d->st == TG_OK; k++)
        to[2 * k + (k % 2 == 0)] = 1;
    return tgi_draft_conv(d, "flow of each tap", flow, w, -1,
                          &(tgi_draft_window){.kernel = {1, 1}});
}

typedef struct step {
    int now, before, to, back, masks; /* values: features, result before, flows, masks */
} step;

static int align(const tgi_trained *t, const char *way, const step *s)
{
    tgi_draft *d = t->draft;
    char name[96];
    const int moved[2] = {s->before, s->to}, both[2] = {s->to, s->back};
    const int warped = tgi_draft_node(d, "FlowWarp", "warped", 2, moved),
              valid = tgi_draft_node(d, "FlowConsistency", "consistent", 2, both);
    const int seen[5] = {s->now, warped, s->to, valid, s->masks};
    int offset, share;
    snprintf(name, sizeof name, "feat_prop_module.deform_align.%s", way);
    tgi_trained_offsets(t, tgi_draft_concat(d, 5, seen), name, 2 * C + 5, C, GROUPS, REACH,
                        &offset, &share);
    offset = tgi_draft_binary(d, "Add", offset, repeat_flow(d, s->to));
    return tgi_trained_deform(t, s->before, offset, share, name, C, C, GROUPS);
}

/* Two convolutions over parts that stand side by side: [128, 128, 2] channels. */
static int two_layers(const tgi_trained *t, const char *name, const int part[3])
{
    tgi_draft *d = t->draft;
    char full[96];
    snprintf(full, sizeof full, "%s.0", name);
    const int x =
        leaky(t, tgi_trained_same(t, tgi_draft_concat(d, 3, part), full, 2 * C + 2, C, 3));
    snprintf(full, sizeof full, "%s.2", name);
    return tgi_trained_same(t, x, full, C, C, 3);
}

tg_status tgi_pp_propagate(const tgi_weights *w, int forward, int first, int64_t high,
                           int64_t wide, tgi_graph **out, tgi_err *err)
{
    const char *way = forward ? "forward_1" : "backward_1";
    const int64_t h = high / 4, width = wide / 4;
    char name[64];
    tgi_draft d;
    tgi_draft_begin(&d);
    const tgi_trained t = {&d, w};
    step s = {.now = tgi_draft_input(&d, "features", C, h, width)};
    int aligned = s.now;
    if (!first) {
        s.before = tgi_draft_input(&d, "before", C, h, width);
        s.to = tgi_draft_input(&d, "flow", 2, h, width);
        s.back = tgi_draft_input(&d, "flow back", 2, h, width);
    }
    s.masks = tgi_draft_input(&d, "masks", 2, h, width);
    if (!first)
        aligned = align(&t, way, &s);
    const int part[3] = {s.now, aligned, s.masks};
    snprintf(name, sizeof name, "feat_prop_module.backbone.%s", way);
    tgi_draft_output(&d, tgi_draft_binary(&d, "Add", two_layers(&t, name, part), aligned));
    return tgi_draft_finish(&d, out, err);
}

tg_status tgi_pp_join(const tgi_weights *w, int64_t high, int64_t wide, tgi_graph **out,
                      tgi_err *err)
{
    const int64_t h = high / 4, width = wide / 4;
    tgi_draft d;
    tgi_draft_begin(&d);
    const tgi_trained t = {&d, w};
    const int x = tgi_draft_input(&d, "features", C, h, width);
    int part[3];
    part[0] = tgi_draft_input(&d, "back", C, h, width);
    part[1] = tgi_draft_input(&d, "forward", C, h, width);
    part[2] = tgi_draft_input(&d, "masks", 2, h, width);
    tgi_draft_output(
        &d, tgi_draft_binary(&d, "Add", two_layers(&t, "feat_prop_module.fuse", part), x));
    return tgi_draft_finish(&d, out, err);
}

/* ---- Patches ----------------------------------------------------------------------------- */

tgi_pp_tokens tgi_pp_tokens_of(int64_t high, int64_t wide)
{
    tgi_pp_tokens n = {.high = (high / 4 - 1) / STEP + 1, .wide = (wide / 4 - 1) / STEP + 1};
    n.win_h = (n.high + TGI_PP_WINDOW_H - 1) / TGI_PP_WINDOW_H;
    n.win_w = (n.wide + TGI_PP_WINDOW_W - 1) / TGI_PP_WINDOW_W;
    n.full_h = n.win_h * TGI_PP_WINDOW_H;
    n.full_w = n.win_w * TGI_PP_WINDOW_W;
    n.pool_h = n.full_h / TGI_PP_POOL;
    n.pool_w = n.full_w / TGI_PP_POOL;
    return n;
}

/* Patches of an image of c channels -> tokens: linear.weight [512, c * 49]. */
static int unfold(const tgi_trained *t, int x, const char *name, int64_t c)
{
    char full[128];
    snprintf(full, sizeof full, "%s.weight", name);
    const float *data = tgi_trained_floats(t, full, TGI_DIMS(TOKEN, c * PATCH * PATCH));
    const int w =
        tgi_draft_floats(t->draft, full, TGI_DIMS(TOKEN, c, PATCH, PATCH), data, NULL);
    snprintf(full, sizeof full, "%s.bias", name);
    const int b = tgi_trained_const(t, full, TGI_DIMS(TOKEN));
    return tgi_draft_conv(t->draft, name, x, w, b,
                          &(tgi_draft_window){.kernel = {PATCH, PATCH},
                                              .stride = {STEP, STEP},
                                              .pad = {STEP, STEP}});
}

/* Tokens -> an image of c channels, high x wide: linear.weight [c * 49, 512]; `mean`: over the patches of a pixel. */
static int fold(const tgi_trained *t, int x, const char *name, int64_t c, int64_t high,
                int64_t wide, int mean)
{
    tgi_draft *d = t->draft;
    const int64_t inner = c * PATCH * PATCH, fh = (high - 1) / STEP + 1,
                  fw = (wide - 1) / STEP + 1;
    char full[128];
    float *to = NULL;
    snprintf(full, sizeof full, "%s.weight", name);
    const float *from = tgi_trained_floats(t, full, TGI_DIMS(inner, TOKEN));
    const int w = tgi_draft_floats(d, full, TGI_DIMS(TOKEN, c, PATCH, PATCH), NULL, &to);
    for (int64_t o = 0; o < inner && d->st == TG_OK; o++)
        for (int64_t i = 0; i < TOKEN; i++)
            to[i * inner + o] = from[o * TOKEN + i];
    const int y = tgi_draft_conv_transpose(
        d, name, x, w, -1,
        &(tgi_draft_window){.kernel = {PATCH, PATCH},
                            .stride = {STEP, STEP},
                            .pad = {STEP, STEP},
                            .more = {high - (STEP * fh - 2), wide - (STEP * fw - 2)}});
    snprintf(full, sizeof full, "%s.bias", name);
    const float *bias = tgi_trained_floats(t, full, TGI_DIMS(inner));
    const int src[2] = {y, tgi_draft_floats(d, full, TGI_DIMS(c, PATCH, PATCH), bias, NULL)};
    const int v = tgi_draft_node(d, "FoldBias", name, 2, src);
    tgi_draft_int(d, "kernel", PATCH);
    tgi_draft_int(d, "stride", STEP);
    tgi_draft_int(d, "pad", STEP);
    tgi_draft_int(d, "mean", mean);
    return v;
}

tg_status tgi_pp_split(const tgi_weights *w, int64_t high, int64_t wide, tgi_graph **out,
                       tgi_err *err)
{
    tgi_draft d;
    tgi_draft_begin(&d);
    const tgi_trained t = {&d, w};
    const int x = tgi_draft_input(&d, "features", C, high / 4, wide / 4);
    tgi_draft_output(&d, unfold(&t, x, "ss.embedding", C));
    return tgi_draft_finish(&d, out, err);
}

/* ---- A block of the transformer ---------------------------------------------------------- */

static const char *part_of(char name[96], int b, const char *part)
{
    snprintf(name, 96, "transformers.transformer.%d.%s", b, part);
    return name;
}

static int norm(const tgi_trained *t, int x, int b, const char *part)
{
    tgi_draft *d = t->draft;
    char name[96], full[112];
    const int y = tgi_draft_unary(d, "ChannelNorm", x);
    tgi_draft_float(d, "epsilon", 1e-5f);
    part_of(name, b, part);
    snprintf(full, sizeof full, "%s.weight", name);
    const float *scale = tgi_trained_floats(t, full, TGI_DIMS(TOKEN));
    const int s = tgi_draft_floats(d, full, TGI_DIMS(1, TOKEN, 1, 1), scale, NULL);
    snprintf(full, sizeof full, "%s.bias", name);
    const float *shift = tgi_trained_floats(t, full, TGI_DIMS(TOKEN));
    const int m = tgi_draft_floats(d, full, TGI_DIMS(1, TOKEN, 1, 1), shift, NULL);
    return tgi_draft_binary(d, "Add", tgi_draft_binary(d, "Mul", y, s), m);
}

/* Means of 4 x 4 normed tokens, weighted, of the grid that whole windows cover. */
static int pooled(const tgi_trained *t, int x, int b, const tgi_pp_tokens *n)
{
    static const int64_t none[2] = {0, 0};
    const int64_t more[2] = {n->full_h - n->high, n->full_w - n->wide};
    char name[96];
    if (more[0] || more[1])
        x = tgi_draft_pad(t->draft, x, none, more, 0);
    return tgi_trained_conv(
        t, x, part_of(name, b, "attention.pool_layer"), TOKEN, TOKEN, TGI_PP_POOL,
        &(tgi_draft_window){.stride = {TGI_PP_POOL, TGI_PP_POOL}, .group = TOKEN});
}

tg_status tgi_pp_keys(const tgi_weights *w, int b, int64_t high, int64_t wide, tgi_graph **out,
                      tgi_err *err)
{
    static const char *const part[2] = {"attention.key", "attention.value"};
    const tgi_pp_tokens n = tgi_pp_tokens_of(high, wide);
    char name[96];
    tgi_draft d;
    tgi_draft_begin(&d);
    const tgi_trained t = {&d, w};
    const int x = norm(&t, tgi_draft_input(&d, "tokens", TOKEN, n.high, n.wide), b, "norm1");
    const int few = pooled(&t, x, b, &n);
    for (int i = 0; i < 2; i++)
        tgi_draft_output(&d,
                         tgi_trained_linear(&t, x, part_of(name, b, part[i]), TOKEN, TOKEN));
    for (int i = 0; i < 2; i++)
        tgi_draft_output(&d,
                         tgi_trained_linear(&t, few, part_of(name, b, part[i]), TOKEN, TOKEN));
    return tgi_draft_finish(&d, out, err);
}

tg_status tgi_pp_queries(const tgi_weights *w, int b, int64_t high, int64_t wide,
                         tgi_graph **out, tgi_err *err)
{
    const tgi_pp_tokens n = tgi_pp_tokens_of(high, wide);
    char name[96];
    tgi_draft d;
    tgi_draft_begin(&d);
    const tgi_trained t = {&d, w};
    const int x = norm(&t, tgi_draft_input(&d, "tokens", TOKEN, n.high, n.wide), b, "norm1");
    tgi_draft_output(
        &d, tgi_trained_linear(&t, x, part_of(name, b, "attention.query"), TOKEN, TOKEN));
    return tgi_draft_finish(&d, out, err);
}

tg_status tgi_pp_attend(const tgi_weights *w, int b, int n, int asked, int64_t high,
                        int64_t wide, tgi_graph **out, tgi_err *err)
{
    const tgi_pp_tokens k = tgi_pp_tokens_of(high, wide);
    char name[96];
    tgi_draft d;
    tgi_draft_begin(&d);
    const tgi_trained t = {&d, w};
    int src[8];
    src[0] = tgi_draft_input(&d, "queries", asked * TOKEN, k.high, k.wide);
    src[1] = tgi_draft_input(&d, "keys", n * TOKEN, k.high, k.wide);
    src[2] = tgi_draft_input(&d, "values", n * TOKEN, k.high, k.wide);
    src[3] = tgi_draft_input(&d, "pooled keys", n * TOKEN, k.pool_h, k.pool_w);
    src[4] = tgi_draft_input(&d, "pooled values", n * TOKEN, k.pool_h, k.pool_w);
    src[5] = tgi_draft_input(&d, "masked windows", 1, k.win_h, k.win_w);
    src[6] = tgi_trained_const(&t, part_of(name, b, "attention.key.bias"), TGI_DIMS(TOKEN));
    src[7] = tgi_trained_const(&t, part_of(name, b, "attention.value.bias"), TGI_DIMS(TOKEN));
    const int v = tgi_draft_node(&d, "WindowAttention", "attention", 8, src);
    tgi_draft_int(&d, "frames", n);
    tgi_draft_int(&d, "asked", asked);
    tgi_draft_int(&d, "heads", TGI_PP_HEADS);
    tgi_draft_int(&d, "window_h", TGI_PP_WINDOW_H);
    tgi_draft_int(&d, "window_w", TGI_PP_WINDOW_W);
    tgi_draft_int(&d, "first", b % 2);
    tgi_draft_float(&d, "scale", 1.0f / sqrtf((float)TOKEN / TGI_PP_HEADS));
    tgi_draft_output(&d, v);
    return tgi_draft_finish(&d, out, err);
}

tg_status tgi_pp_mix(const tgi_weights *w, int b, int64_t high, int64_t wide, tgi_graph **out,
                     tgi_err *err)
{
    const tgi_pp_tokens n = tgi_pp_tokens_of(high, wide);
    char name[96];
    tgi_draft d;
    tgi_draft_begin(&d);
    const tgi_trained t = {&d, w};
    const int seen = tgi_draft_input(&d, "attention", TOKEN, n.high, n.wide);
    int x = tgi_draft_input(&d, "tokens", TOKEN, n.high, n.wide);
    x = tgi_draft_binary(
        &d, "Add",
        tgi_trained_linear(&t, seen, part_of(name, b, "attention.proj"), TOKEN, TOKEN), x);
    int y = norm(&t, x, b, "norm2");
    y = fold(&t, y, part_of(name, b, "mlp.fc1.0"), INNER, high / 4, wide / 4, 1);
    y = tgi_draft_unary(&d, "Gelu", y);
    y = unfold(&t, y, part_of(name, b, "mlp.fc2.1"), INNER);
    tgi_draft_output(&d, tgi_draft_binary(&d, "Add", y, x));
    return tgi_draft_finish(&d, out, err);
}

/* ---- Decoder ----------------------------------------------------------------------------- */

tg_status tgi_pp_compose(const tgi_weights *w, int64_t high, int64_t wide, tgi_graph **out,
                         tgi_err *err)
{
    const tgi_pp_tokens n = tgi_pp_tokens_of(high, wide);
    tgi_draft d;
    tgi_draft_begin(&d);
    const tgi_trained t = {&d, w};
    const int tokens = tgi_draft_input(&d, "tokens", TOKEN, n.high, n.wide);
    const int features = tgi_draft_input(&d, "features", C, high / 4, wide / 4);
    int x = fold(&t, tokens, "sc.embedding", C, high / 4, wide / 4, 0);
    x = tgi_trained_same(&t, x, "sc.bias_conv", C, C, 3);
    tgi_draft_exact(&d); /* by Winograd its rounding is more than soft composition is allowed */
    x = tgi_draft_binary(&d, "Add", x, features);
    x = tgi_draft_enlarge(&d, x, high / 2, wide / 2);
    x = leaky(&t, tgi_trained_same(&t, x, "decoder.0.conv", C, 128, 3));
    x = leaky(&t, tgi_trained_same(&t, x, "decoder.2", 128, 64, 3));
    x = tgi_draft_enlarge(&d, x, high, wide);
    x = leaky(&t, tgi_trained_same(&t, x, "decoder.4.conv", 64, 64, 3));
    x = tgi_trained_same(&t, x, "decoder.6", 64, 3, 3);
    tgi_draft_output(&d, tgi_draft_unary(&d, "Tanh", x));
    return tgi_draft_finish(&d, out, err);
}
