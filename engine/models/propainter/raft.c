/* raft.c - the motion between two frames: networks of RAFT, in the form that ProPainter uses ("things").
 *
 * The update gets the context's part of its gates ready made, since it is the same in every iteration, and computes
 * likeness where it looks (CorrelationLookup), from features pooled on the spot: the volume of all pairs is never there.
 * Its state is the flow itself, not the coordinates that it leads to.
 * @source Teed, Deng: RAFT, ECCV 2020. */
#include "engine/models/propainter/networks.h"

#include <stdio.h>
#include <string.h>

#define RADIUS 4
#define LOOKED (TGI_PP_LEVELS * (2 * RADIUS + 1) * (2 * RADIUS + 1))
#define SCALE 8 /* H / h */

enum { INSTANCE, BATCH };

typedef struct encoder {
    tgi_trained t;
    const char *name; /* fnet, cnet */
    int norm;
} encoder;

/* ---- Encoders ---------------------------------------------------------------------------- */

static int instance_norm(tgi_draft *d, int x, int64_t c)
{
    float *one = NULL, *zero = NULL;
    const int src[3] = {x, tgi_draft_floats(d, "one", TGI_DIMS(c), NULL, &one),
                        tgi_draft_floats(d, "zero", TGI_DIMS(c), NULL, &zero)};
    for (int64_t i = 0; i < c && d->st == TG_OK; i++)
        one[i] = 1;
    return tgi_draft_node(d, "InstanceNormalization", "norm", 3, src);
}

static int batch_norm(const tgi_trained *t, int x, const char *name, int64_t c)
{
    static const char *const part[4] = {"weight", "bias", "running_mean", "running_var"};
    char full[160];
    int src[5] = {x};
    for (int i = 0; i < 4; i++) {
        snprintf(full, sizeof full, "%s.%s", name, part[i]);
        src[i + 1] = tgi_trained_const(t, full, TGI_DIMS(c));
    }
    return tgi_draft_node(t->draft, "BatchNormalization", name, 5, src);
}

static int norm(const encoder *e, int x, const char *name, int64_t c)
{
    return e->norm == INSTANCE ? instance_norm(e->t.draft, x, c)
                               : batch_norm(&e->t, x, name, c);
}

/* `where`.`conv` and its norm. */
static int layer(const encoder *e, int x, const char *where, const char *conv,
                 const char *norm_name, int64_t from, int64_t to, int64_t k, int64_t stride)
{
    char name[96];
    snprintf(name, sizeof name, "%s.%s", where, conv);
    const int y = tgi_trained_conv(
        &e->t, x, name, from, to, k,
        &(tgi_draft_window){.stride = {stride, stride}, .pad = {k / 2, k / 2}});
    snprintf(name, sizeof name, "%s.%s", where, norm_name);
    return norm(e, y, name, to);
}

static int relu(tgi_draft *d, int x)
{
    return tgi_draft_unary(d, "Relu", x);
}

static int block(const encoder *e, int x, const char *where, int64_t from, int64_t to,
                 int64_t stride)
{
    tgi_draft *d = e->t.draft;
    int y = relu(d, layer(e, x, where, "conv1", "norm1", from, to, 3, stride));
    y = relu(d, layer(e, y, where, "conv2", "norm2", to, to, 3, 1));
    if (stride > 1)
        x = layer(e, x, where, "downsample.0", "downsample.1", from, to, 1, stride);
    return relu(d, tgi_draft_binary(d, "Add", x, y));
}

/* All but the last convolution: [128,h,w]. */
static int encode(const encoder *e, int x)
{
    static const int64_t to[3] = {64, 96, 128};
    char where[64];
    int64_t from = 64;
    int y = relu(e->t.draft, layer(e, x, e->name, "conv1", "norm1", 3, from, 7, 2));
    for (int l = 0; l < 3; l++) {
        for (int b = 0; b < 2; b++) {
            snprintf(where, sizeof where, "%s.layer%d.%d", e->name, l + 1, b);
            y = block(e, y, where, from, to[l], l > 0 && b == 0 ? 2 : 1);
            from = to[l];
        }
    }
    return y;
}

static int pool(tgi_draft *d, int x)
{
    const int64_t two[2] = {2, 2};
    const int v = tgi_draft_unary(d, "AveragePool", x);
    tgi_draft_ints(d, "kernel_shape", 2, two);
    tgi_draft_ints(d, "strides", 2, two);
    return v;
}

tg_status tgi_pp_features(const tgi_weights *w, int64_t high, int64_t wide, tgi_graph **out,
                          tgi_err *err)
{
    tgi_draft d;
    tgi_draft_begin(&d);
    const encoder e = {{&d, w}, "fnet", INSTANCE};
    const int x = encode(&e, tgi_draft_input(&d, "frame", 3, high, wide));
    int level = tgi_trained_same(&e.t, x, "fnet.conv2", 128, TGI_PP_FEATURES, 1);
    for (int l = 0; l < TGI_PP_LEVELS; l++) {
        tgi_draft_output(&d, level);
        level = l + 1 < TGI_PP_LEVELS ? pool(&d, level) : level;
    }
    return tgi_draft_finish(&d, out, err);
}

/* ---- Gates ------------------------------------------------------------------------------- */

#define STATE TGI_PP_STATE
#define TAPS 5
#define CONTEXT 128
#define MOTION 128
#define GATE_IN (STATE + CONTEXT + MOTION)

/* Which of the gates' inputs a convolution takes: channels [lo, hi) and [lo2, hi2). */
typedef struct picked {
    int64_t lo, hi, lo2, hi2;
} picked;

static const picked of_context = {STATE, STATE + CONTEXT, 0, 0};
static const picked of_rest = {0, STATE, STATE + CONTEXT, GATE_IN};

/* Weights of n gates ("z1", "r1"), one behind the other, of the channels that are picked. */
static int gate_weights(const tgi_trained *t, const char *const *gate, int n, int columns,
                        const picked *p)
{
    const int64_t in = p->hi - p->lo + p->hi2 - p->lo2, kh = columns ? TAPS : 1,
                  kw = columns ? 1 : TAPS;
    char name[64];
    float *to = NULL;
    const int v =
        tgi_draft_floats(t->draft, gate[0], TGI_DIMS(n * STATE, in, kh, kw), NULL, &to);
    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof name, "update_block.gru.conv%s.weight", gate[i]);
        const float *from = tgi_trained_floats(t, name, TGI_DIMS(STATE, GATE_IN, kh, kw));
        for (int64_t o = 0; o < STATE && from; o++, from += GATE_IN * TAPS) {
            memcpy(to, from + p->lo * TAPS, (size_t)(p->hi - p->lo) * TAPS * sizeof *to);
            to += (p->hi - p->lo) * TAPS;
            memcpy(to, from + p->lo2 * TAPS, (size_t)(p->hi2 - p->lo2) * TAPS * sizeof *to);
            to += (p->hi2 - p->lo2) * TAPS;
        }
    }
    return v;
}

static int gate_bias(const tgi_trained *t, const char *const *gate, int n)
{
    char name[64];
    float *to = NULL;
    const int v = tgi_draft_floats(t->draft, gate[0], TGI_DIMS(n * STATE), NULL, &to);
    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof name, "update_block.gru.conv%s.bias", gate[i]);
        const float *from = tgi_trained_floats(t, name, TGI_DIMS(STATE));
        if (from)
            memcpy(to + i * STATE, from, STATE * sizeof *to);
    }
    return v;
}

static int gate_conv(const tgi_trained *t, int x, const char *const *gate, int n, int columns,
                     const picked *p)
{
    tgi_draft_window w = {.kernel = {1, TAPS}, .pad = {0, TAPS / 2}};
    if (columns)
        w = (tgi_draft_window){.kernel = {TAPS, 1}, .pad = {TAPS / 2, 0}};
    const int bias = p == &of_context ? gate_bias(t, gate, n) : -1;
    return tgi_draft_conv(t->draft, gate[0], x, gate_weights(t, gate, n, columns, p), bias, &w);
}

/* Both gates of a pass, and its candidate. */
static const char *const gates[2][2] = {{"z1", "r1"}, {"z2", "r2"}};
static const char *const candidates[2][1] = {{"q1"}, {"q2"}};

tg_status tgi_pp_context(const tgi_weights *w, int64_t high, int64_t wide, tgi_graph **out,
                         tgi_err *err)
{
    tgi_draft d;
    tgi_draft_begin(&d);
    const encoder e = {{&d, w}, "cnet", BATCH};
    const int x = encode(&e, tgi_draft_input(&d, "frame", 3, high, wide));
    const int64_t all = STATE + CONTEXT;
    const int state = tgi_trained_part(&e.t, x, "cnet.conv2", 128, all, 0, STATE, 1);
    tgi_draft_output(&d, tgi_draft_unary(&d, "Tanh", state));
    const int context =
        relu(&d, tgi_trained_part(&e.t, x, "cnet.conv2", 128, all, STATE, all, 1));
    for (int pass = 0; pass < 2; pass++) {
        tgi_draft_output(&d, gate_conv(&e.t, context, gates[pass], 2, pass, &of_context));
        tgi_draft_output(&d, gate_conv(&e.t, context, candidates[pass], 1, pass, &of_context));
    }
    return tgi_draft_finish(&d, out, err);
}

/* ---- Update ------------------------------------------------------------------------------ */

/* One pass of the GRU; `of`: what the context gives gates and candidate. */
static int gru(const tgi_trained *t, int pass, int state, int motion, const int of[2])
{
    tgi_draft *d = t->draft;
    const int both[2] = {state, motion};
    int zr = gate_conv(t, tgi_draft_concat(d, 2, both), gates[pass], 2, pass, &of_rest);
    zr = tgi_draft_unary(d, "Sigmoid", tgi_draft_binary(d, "Add", zr, of[0]));
    const int z = tgi_draft_channels(d, zr, 0, STATE),
              r = tgi_draft_channels(d, zr, STATE, 2 * STATE);
    const int reset[2] = {tgi_draft_binary(d, "Mul", r, state), motion};
    int q = gate_conv(t, tgi_draft_concat(d, 2, reset), candidates[pass], 1, pass, &of_rest);
    q = tgi_draft_unary(d, "Tanh", tgi_draft_binary(d, "Add", q, of[1]));
    const int change = tgi_draft_binary(d, "Mul", z, tgi_draft_binary(d, "Sub", q, state));
    return tgi_draft_binary(d, "Add", state, change);
}

/* level: of the second frame's features. */
static int look_up(tgi_draft *d, int first, const int *level, int flow)
{
    int src[2 + TGI_PP_LEVELS] = {first, flow};
    for (int l = 0; l < TGI_PP_LEVELS; l++)
        src[2 + l] = level[l];
    const int v = tgi_draft_node(d, "CorrelationLookup", "likeness", 2 + TGI_PP_LEVELS, src);
    tgi_draft_int(d, "radius", RADIUS);
    return v;
}

static int same_relu(const tgi_trained *t, int x, const char *name, int64_t from, int64_t to,
                     int64_t k)
{
    return relu(t->draft, tgi_trained_same(t, x, name, from, to, k));
}

static int encode_motion(const tgi_trained *t, int looked, int flow)
{
    tgi_draft *d = t->draft;
    int c = same_relu(t, looked, "update_block.encoder.convc1", LOOKED, 256, 1);
    c = same_relu(t, c, "update_block.encoder.convc2", 256, 192, 3);
    int f = same_relu(t, flow, "update_block.encoder.convf1", 2, 128, 7);
    f = same_relu(t, f, "update_block.encoder.convf2", 128, 64, 3);
    const int both[2] = {c, f};
    const int m = same_relu(t, tgi_draft_concat(d, 2, both), "update_block.encoder.conv", 256,
                            MOTION - 2, 3);
    const int motion[2] = {m, flow};
    return tgi_draft_concat(d, 2, motion);
}

tg_status tgi_pp_update(const tgi_weights *w, int64_t high, int64_t wide, tgi_graph **out,
                        tgi_err *err)
{
    static const struct {
        const char *name;
        int64_t channels;
    } gate[4] = {{"gates of rows", 2 * STATE},
                 {"candidate of rows", STATE},
                 {"gates of columns", 2 * STATE},
                 {"candidate of columns", STATE}};
    const int64_t h = high / SCALE, width = wide / SCALE;
    tgi_draft d;
    int level[TGI_PP_LEVELS], of[4];
    tgi_draft_begin(&d);
    const tgi_trained t = {&d, w};
    const int before = tgi_draft_input(&d, "state", STATE, h, width),
              flow = tgi_draft_input(&d, "flow", 2, h, width),
              first = tgi_draft_input(&d, "first", TGI_PP_FEATURES, h, width);
    for (int l = 0; l < TGI_PP_LEVELS; l++)
        level[l] = tgi_draft_input(&d, "second", TGI_PP_FEATURES, h >> l, width >> l);
    for (int i = 0; i < 4; i++)
        of[i] = tgi_draft_input(&d, gate[i].name, gate[i].channels, h, width);
    const int motion = encode_motion(&t, look_up(&d, first, level, flow), flow);
    int state = gru(&t, 0, before, motion, &of[0]);
    state = gru(&t, 1, state, motion, &of[2]);
    tgi_draft_output(&d, state);
    int delta = same_relu(&t, state, "update_block.flow_head.conv1", STATE, 256, 3);
    delta = tgi_trained_same(&t, delta, "update_block.flow_head.conv2", 256, 2, 3);
    tgi_draft_output(&d, tgi_draft_binary(&d, "Add", delta, flow));
    return tgi_draft_finish(&d, out, err);
}

tg_status tgi_pp_upsample(const tgi_weights *w, int64_t high, int64_t wide, tgi_graph **out,
                          tgi_err *err)
{
    const int64_t of_mask = 9 * SCALE * SCALE;
    tgi_draft d;
    tgi_draft_begin(&d);
    const tgi_trained t = {&d, w};
    const int state = tgi_draft_input(&d, "state", STATE, high / SCALE, wide / SCALE),
              flow = tgi_draft_input(&d, "flow", 2, high / SCALE, wide / SCALE);
    int mask = same_relu(&t, state, "update_block.mask.0", STATE, 256, 3);
    mask = tgi_trained_same(&t, mask, "update_block.mask.2", 256, of_mask, 1);
    const int src[2] = {flow, tgi_draft_scale(&d, mask, 0.25f)};
    tgi_draft_output(&d, tgi_draft_node(&d, "ConvexUpsample", "upsample", 2, src));
    tgi_draft_int(&d, "scale", SCALE);
    return tgi_draft_finish(&d, out, err);
}
