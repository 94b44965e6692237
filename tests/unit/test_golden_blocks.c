/* Blocks of ProPainter's networks, drafted and planned as the networks are, give what the official modules gave, within the
 * tolerances of the conformance data: encoder and decoder of the generator, alignment, RAFT's update and its norms, layers of the
 * completion, sizes. Argument: a folder with the three files of weights (tools/draw_weights.c).
 *
 * Built twice: for the processor, and for a device (TG_TEST_DEVICE), in float32 and in halves. */
#define RECIPE TG_SHARED_DATA "/conformance/propainter"
#include "engine/inpaint/pp_weights.h"
#include "engine/models/propainter/networks.h"
#include "tests/networks_on.h"
#include "tests/unit/golden_kit.h"

#define GROUPS 16 /* of offsets */

enum { RAFT, COMPLETION, GENERATOR };

static tgi_weights *weights[3];
static tgi_threads *pool;
static tgi_draft draft;

/* ---- A network ---------------------------------------------------------------------------- */

/* Results of the network over dense arrays, one behind the other; free(). The graph is taken. */
static float *results_of(tgi_graph *g, const float *const *in, int n_in, const size_t *n,
                         int n_out)
{
    tgi_schedule *s = NULL;
    tgi_schedule_run *run = NULL;
    networks_memory m;
    tgi_err e = {0};
    size_t all = 0, at = 0;
    tgi_sched_at from[TGI_SCHED_PORTS], to[TGI_SCHED_PORTS];
    for (int i = 0; i < n_out; i++)
        all += n[i];
    float *out = floats(all);
    CHECK_OK(tgi_schedule_new(&s, &e), e);
    s->flags = TGI_NET_EXACT;
    s->device = networks_of(0);
    const tgi_desc *d = &g->values[g->in[0].value].decl;
    const int net = tgi_schedule_net(s, g, set, d->dim[1], d->dim[2], d->dim[3], 2);
    tgi_schedule_called(s, net);
    CHECK_OK(tgi_schedule_plan(s, &e), e);
    networks_take(&m, s, s->block_bytes, pool);
    CHECK_OK(tgi_schedule_open(s, &m.m, &run, &e), e);
    for (int i = 0; i < n_in; i++)
        from[i] = tgi_sched_here(in[i]);
    for (int i = 0; i < n_out; at += n[i++])
        to[i] = tgi_sched_here(out + at);
    if (run)
        CHECK_OK(tgi_schedule_call(run, net, from, to, &e), e);
    tgi_schedule_close(&run);
    networks_give(&m);
    tgi_schedule_free(&s);
    tgi_graph_free(&g);
    return out;
}

static float *result_of(tgi_graph *g, const float *const *in, int n_in, size_t n)
{
    return results_of(g, in, n_in, &n, 1);
}

static tgi_trained begin(int model)
{
    tgi_draft_begin(&draft);
    return (tgi_trained){&draft, weights[model]};
}

static tgi_graph *end(int result)
{
    tgi_graph *g = NULL;
    tgi_err e = {0};
    tgi_draft_output(&draft, result);
    CHECK_OK(tgi_draft_finish(&draft, &g, &e), e);
    return g;
}

/* A value that goes in, of the shape of an array. */
static int input(const char *name, const tgi_desc *d)
{
    return tgi_draft_input(&draft, name, d->dim[1], d->dim[2], d->dim[3]);
}

/* Of one array x, the result compared as `output` of the case. */
static void check_one(const char *name, const char *output, tgi_graph *g, float *x, size_t n)
{
    const float *const in[1] = {x};
    float *got = result_of(g, in, 1, n);
    compare(name, output, got);
    free(got);
    tgi_free(x);
}

/* ---- Operators ---------------------------------------------------------------------------- */

static void test_norms_are_the_official_ones(void)
{
    static const char *const part[4] = {"weight", "bias", "running_mean", "running_var"};
    char full[64];
    float *one = NULL;
    tgi_desc d;
    float *x = load("instance_norm", "x", &d);
    (void)begin(RAFT);
    const int of[3] = {
        input("x", &d), tgi_draft_floats(&draft, "one", TGI_DIMS(d.dim[1]), NULL, &one),
        tgi_draft_floats(&draft, "zero", TGI_DIMS(d.dim[1]), NULL, &(float *){0})};
    for (int64_t i = 0; i < d.dim[1] && one; i++)
        one[i] = 1;
    check_one("instance_norm", "y",
              end(tgi_draft_node(&draft, "InstanceNormalization", "norm", 3, of)), x,
              desc_floats(&d));
    x = load("batch_norm_eval", "x", &d);
    const tgi_trained t = begin(RAFT);
    int src[5] = {input("x", &d)};
    for (int i = 0; i < 4; i++) {
        snprintf(full, sizeof full, "cnet.norm1.%s", part[i]);
        src[i + 1] = tgi_trained_const(&t, full, TGI_DIMS(d.dim[1]));
    }
    check_one("batch_norm_eval", "y",
              end(tgi_draft_node(&draft, "BatchNormalization", "norm", 5, src)), x,
              desc_floats(&d));
}

/* Resize to a quarter. */
static int quarter(int x, const tgi_desc *d, const char *mode, const char *coordinates)
{
    const int64_t size[2] = {d->dim[2] / 4, d->dim[3] / 4}, axes[2] = {2, 3};
    const int src[4] = {x, -1, -1, tgi_draft_list(&draft, 2, size)};
    const int v = tgi_draft_node(&draft, "Resize", "quarter", 4, src);
    tgi_draft_enum(&draft, "mode", mode);
    tgi_draft_enum(&draft, "coordinate_transformation_mode", coordinates);
    tgi_draft_ints(&draft, "axes", 2, axes);
    if (strcmp(mode, "nearest") == 0)
        tgi_draft_enum(&draft, "nearest_mode", "floor");
    return v;
}

static void test_sizes_are_the_official_ones(void)
{
    tgi_desc d;
    float *x = load("upsample2x_align_corners", "x", &d);
    (void)begin(RAFT);
    check_one("upsample2x_align_corners", "y",
              end(tgi_draft_enlarge(&draft, input("x", &d), 2 * d.dim[2], 2 * d.dim[3])), x,
              4 * desc_floats(&d));
    x = load("downsample_flow_quarter", "x", &d);
    (void)begin(RAFT);
    const int flow = quarter(input("x", &d), &d, "linear", "half_pixel");
    check_one("downsample_flow_quarter", "y", end(tgi_draft_scale(&draft, flow, 0.25f)), x,
              desc_floats(&d) / 16);
    x = load("downsample_mask_quarter", "x", &d);
    (void)begin(RAFT);
    check_one("downsample_mask_quarter", "y",
              end(quarter(input("x", &d), &d, "nearest", "asymmetric")), x,
              desc_floats(&d) / 16);
}

/* Frame by frame. */
static void test_masks_of_tokens_are_the_official_ones(void)
{
    static const int64_t kernel[2] = {7, 7}, step[2] = {3, 3}, border[4] = {3, 3, 3, 3};
    tgi_desc d;
    float *x = load("mask_maxpool", "x", &d);
    const size_t each = desc_floats(&d) / 2,
                 n = (size_t)(((d.dim[2] - 1) / 3 + 1) * ((d.dim[3] - 1) / 3 + 1));
    float *got = floats(2 * n);
    for (size_t f = 0; f < 2; f++) {
        (void)begin(RAFT);
        const int v = tgi_draft_unary(&draft, "MaxPool", input("x", &d));
        tgi_draft_ints(&draft, "kernel_shape", 2, kernel);
        tgi_draft_ints(&draft, "strides", 2, step);
        tgi_draft_ints(&draft, "pads", 4, border);
        const float *const in[1] = {x + f * each};
        float *one = result_of(end(v), in, 1, n);
        memcpy(got + f * n, one, n * sizeof *got);
        free(one);
    }
    compare("mask_maxpool", "y", got);
    free(got);
    tgi_free(x);
}

/* ---- Generator ---------------------------------------------------------------------------- */

static void test_the_encoder_is_the_official_one(void)
{
    tgi_desc d;
    tgi_err e = {0};
    float *x = load("gen_encoder", "x", &d), *got = floats(2 * 128 * 6 * 8);
    const size_t pixels = (size_t)(d.dim[2] * d.dim[3]), n = 128 * pixels / 16;
    for (size_t f = 0; f < 2; f++) {
        tgi_graph *g = NULL;
        const float *const in[2] = {x + 5 * f * pixels, x + (5 * f + 3) * pixels};
        CHECK_OK(tgi_pp_encode(weights[GENERATOR], d.dim[2], d.dim[3], &g, &e), e);
        float *one = result_of(g, in, 2, n);
        memcpy(got + f * n, one, n * sizeof *got);
        free(one);
    }
    compare("gen_encoder", "y", got);
    free(got);
    tgi_free(x);
}

static int leaky_layer(const tgi_trained *t, int x, const char *name, int64_t from, int64_t to)
{
    return tgi_draft_leaky(t->draft, tgi_trained_same(t, x, name, from, to, 3), 0.2f);
}

static void test_the_decoder_is_the_official_one(void)
{
    tgi_desc d;
    float *in = load("gen_decoder", "x", &d);
    const int64_t h = d.dim[2], w = d.dim[3];
    const tgi_trained t = begin(GENERATOR);
    int x = tgi_draft_enlarge(&draft, input("x", &d), 2 * h, 2 * w);
    x = leaky_layer(&t, x, "decoder.0.conv", 128, 128);
    x = leaky_layer(&t, x, "decoder.2", 128, 64);
    x = tgi_draft_enlarge(&draft, x, 4 * h, 4 * w);
    x = leaky_layer(&t, x, "decoder.4.conv", 64, 64);
    x = tgi_trained_same(&t, x, "decoder.6", 64, 3, 3);
    check_one("gen_decoder", "y", end(tgi_draft_unary(&draft, "Tanh", x)), in,
              (size_t)(3 * 16 * h * w));
}

/* dy, dx of a flow dx, dy for each tap. */
static int flow_of_taps(int flow)
{
    float *to = NULL;
    const int w = tgi_draft_floats(&draft, "repeat", TGI_DIMS(18 * GROUPS, 2, 1, 1), NULL, &to);
    for (int64_t k = 0; k < 18 * GROUPS && to; k++)
        to[2 * k + (k % 2 == 0)] = 1;
    return tgi_draft_conv(&draft, "taps", flow, w, -1, &(tgi_draft_window){.kernel = {1, 1}});
}

static void aligned(const char *name, int model, const char *layer, float reach, int has_flow,
                    golden_share share_of)
{
    char full[96];
    tgi_desc d, seen, motion;
    int offset, share;
    float *x = load(name, "x", &d), *cond = load(name, "cond", &seen),
          *flow = has_flow ? load(name, "flow", &motion) : NULL;
    const float *const in[3] = {x, cond, flow};
    const size_t n = (size_t)(128 * d.dim[2] * d.dim[3]);
    const tgi_trained t = begin(model);
    const int moved = input("x", &d), by = input("cond", &seen);
    snprintf(full, sizeof full, "feat_prop_module.deform_align.%s", layer);
    tgi_trained_offsets(&t, by, full, seen.dim[1], 128, GROUPS, reach, &offset, &share);
    if (has_flow)
        offset = tgi_draft_binary(&draft, "Add", offset, flow_of_taps(input("flow", &motion)));
    float *got = result_of(
        end(tgi_trained_deform(&t, moved, offset, share, full, d.dim[1], 128, GROUPS)), in,
        2 + has_flow, n);
    compare_within(name, "y", share_of, got);
    free(got);
    tgi_free(x);
    tgi_free(cond);
    tgi_free(flow);
}

static void test_alignments_are_the_official_ones(void)
{
    aligned("align_gen", GENERATOR, "backward_1", 3, 1, GOLDEN_SHARE);
    /* Offsets of up to five pixels, in noise that changes by its own size from pixel to pixel: what is rounded in the layers
     * before moves where it is read. The golden is off by 0.6e-5 of float64, the processor by 1.6e-5. */
    aligned("align_rfc", COMPLETION, "backward_", 5, 0, (golden_share){3e-5, 2e-3});
}

/* ---- RAFT --------------------------------------------------------------------------------- */

static int relu_layer(const tgi_trained *t, int x, const char *part, int64_t from, int64_t to,
                      int64_t k)
{
    char name[64];
    snprintf(name, sizeof name, "update_block.%s", part);
    return tgi_draft_unary(t->draft, "Relu", tgi_trained_same(t, x, name, from, to, k));
}

static int joined(int a, int b)
{
    const int both[2] = {a, b};
    return tgi_draft_concat(&draft, 2, both);
}

static int gate(const tgi_trained *t, int x, const char *name, int columns)
{
    char full[64];
    const int64_t kh = columns ? 5 : 1, kw = columns ? 1 : 5;
    snprintf(full, sizeof full, "update_block.gru.conv%s.weight", name);
    const int w = tgi_trained_const(t, full, TGI_DIMS(128, 384, kh, kw));
    snprintf(full, sizeof full, "update_block.gru.conv%s.bias", name);
    return tgi_draft_conv(t->draft, name, x, w, tgi_trained_const(t, full, TGI_DIMS(128)),
                          &(tgi_draft_window){.kernel = {kh, kw}, .pad = {kh / 2, kw / 2}});
}

static int gru(const tgi_trained *t, int state, int x, int columns)
{
    tgi_draft *d = t->draft;
    const int all = joined(state, x);
    const int z = tgi_draft_unary(d, "Sigmoid", gate(t, all, columns ? "z2" : "z1", columns)),
              r = tgi_draft_unary(d, "Sigmoid", gate(t, all, columns ? "r2" : "r1", columns));
    const int reset = joined(tgi_draft_binary(d, "Mul", r, state), x);
    const int q = tgi_draft_unary(d, "Tanh", gate(t, reset, columns ? "q2" : "q1", columns));
    return tgi_draft_binary(
        d, "Add", state, tgi_draft_binary(d, "Mul", z, tgi_draft_binary(d, "Sub", q, state)));
}

/* State, the first 64 channels of the mask, what is added to the flow. */
static tgi_graph *update(const tgi_desc d[4])
{
    const tgi_trained t = begin(RAFT);
    const int state = input("state", &d[0]), context = input("context", &d[1]),
              looked = input("looked", &d[2]), flow = input("flow", &d[3]);
    int c = relu_layer(&t, looked, "encoder.convc1", 324, 256, 1);
    c = relu_layer(&t, c, "encoder.convc2", 256, 192, 3);
    int f = relu_layer(&t, flow, "encoder.convf1", 2, 128, 7);
    f = relu_layer(&t, f, "encoder.convf2", 128, 64, 3);
    const int m = relu_layer(&t, joined(c, f), "encoder.conv", 256, 126, 3);
    const int x = joined(context, joined(m, flow));
    const int made = gru(&t, gru(&t, state, x, 0), x, 1);
    tgi_draft_output(&draft, made);
    const int mask = tgi_trained_part(&t, relu_layer(&t, made, "mask.0", 128, 256, 3),
                                      "update_block.mask.2", 256, 576, 0, 64, 1);
    tgi_draft_output(&draft, tgi_draft_scale(&draft, mask, 0.25f));
    return end(tgi_trained_same(&t, relu_layer(&t, made, "flow_head.conv1", 128, 256, 3),
                                "update_block.flow_head.conv2", 256, 2, 3));
}

static void test_an_update_is_the_official_one(void)
{
    static const char *const name[4] = {"net", "inp", "corr", "flow"};
    tgi_desc d[4];
    float *in[4];
    for (int i = 0; i < 4; i++)
        in[i] = load("raft_update_block", name[i], &d[i]);
    const size_t pixels = (size_t)(d[0].dim[2] * d[0].dim[3]),
                 n[3] = {128 * pixels, 64 * pixels, 2 * pixels};
    float *got = results_of(update(d), (const float *const *)in, 4, n, 3);
    compare("raft_update_block", "net_out", got);
    compare("raft_update_block", "mask", got + n[0]);
    compare("raft_update_block", "delta", got + n[0] + n[1]);
    free(got);
    for (int i = 0; i < 4; i++)
        tgi_free(in[i]);
}

/* ---- Completion --------------------------------------------------------------------------- */

/* A convolution whose weights have an axis of time, of one step. */
static int spatial(const tgi_trained *t, int x, const char *name, int64_t from, int64_t to,
                   int64_t k, int64_t pad)
{
    char full[64];
    snprintf(full, sizeof full, "%s.weight", name);
    const float *data = tgi_trained_floats(t, full, TGI_DIMS(to, from, 1, k, k));
    const int w = tgi_draft_floats(t->draft, full, TGI_DIMS(to, from, k, k), data, NULL);
    snprintf(full, sizeof full, "%s.bias", name);
    x = tgi_draft_conv(
        t->draft, name, x, w, tgi_trained_const(t, full, TGI_DIMS(to)),
        &(tgi_draft_window){.kernel = {k, k}, .stride = {2, 2}, .pad = {pad, pad}});
    return tgi_draft_leaky(t->draft, x, 0.2f);
}

/* Frame f of [1,c,frames,h,w], dense; free(). */
static float *frame_of(const float *x, const tgi_desc *d, int64_t f)
{
    const int64_t n = d->dim[3] * d->dim[4];
    float *to = floats((size_t)(d->dim[1] * n));
    for (int64_t c = 0; c < d->dim[1]; c++)
        memcpy(to + c * n, x + (c * d->dim[2] + f) * n, (size_t)n * sizeof *to);
    return to;
}

static void put_frame(float *x, int64_t channels, int64_t frames, int64_t n, int64_t f,
                      const float *from)
{
    for (int64_t c = 0; c < channels; c++)
        memcpy(x + (c * frames + f) * n, from + c * n, (size_t)n * sizeof *x);
}

static void test_the_first_layer_of_completion_is_the_official_one(void)
{
    static const int64_t border[2] = {2, 2};
    tgi_desc d;
    float *x = load("rfc_downsample", "x", &d);
    const int64_t n = d.dim[3] * d.dim[4] / 4;
    float *got = floats((size_t)(32 * d.dim[2] * n));
    for (int64_t f = 0; f < d.dim[2]; f++) {
        const tgi_trained t = begin(COMPLETION);
        const int v = tgi_draft_pad(&draft, tgi_draft_input(&draft, "x", 3, d.dim[3], d.dim[4]),
                                    border, border, 1);
        float *one = frame_of(x, &d, f);
        const float *const in[1] = {one};
        float *made = result_of(end(spatial(&t, v, "downsample.0", 3, 32, 5, 0)), in, 1,
                                (size_t)(32 * n));
        put_frame(got, 32, d.dim[2], n, f, made);
        free(made);
        free(one);
    }
    compare("rfc_downsample", "y", got);
    free(got);
    tgi_free(x);
}

/* Frames t - 2, t, t + 2, zeros outside, each by itself and then together. */
static tgi_graph *p3d(const tgi_desc *d, int64_t frame)
{
    const tgi_trained t = begin(COMPLETION);
    const int64_t c = 64;
    float *to = NULL;
    int step[3];
    for (int k = 0; k < 3; k++) {
        const int64_t f = frame + 2 * k - 2;
        const int in = tgi_draft_input(&draft, "x", d->dim[1], d->dim[3], d->dim[4]);
        step[k] = spatial(&t, in, "encoder1.2.conv1.0", d->dim[1], c, 3, 1);
        if (f < 0 || f >= d->dim[2])
            step[k] = tgi_draft_scale(&draft, step[k], 0);
    }
    const float *from =
        tgi_trained_floats(&t, "encoder1.2.conv2.0.weight", TGI_DIMS(c, c, 3, 1, 1));
    const int w = tgi_draft_floats(&draft, "over time", TGI_DIMS(c, 3 * c, 1, 1), NULL, &to);
    for (int64_t i = 0; i < c * c * 3 && from && to; i++)
        to[(i / (3 * c) * 3 + i % 3) * c + i / 3 % c] = from[i];
    return end(tgi_draft_conv(&draft, "over time", tgi_draft_concat(&draft, 3, step), w,
                              tgi_trained_const(&t, "encoder1.2.conv2.0.bias", TGI_DIMS(c)),
                              &(tgi_draft_window){.kernel = {1, 1}}));
}

static void test_a_layer_over_time_is_the_official_one(void)
{
    tgi_desc d;
    float *x = load("rfc_p3d", "x", &d);
    const int64_t frames = d.dim[2], n = d.dim[3] * d.dim[4] / 4;
    float *got = floats((size_t)(64 * frames * n));
    for (int64_t f = 0; f < frames; f++) {
        float *part[3];
        for (int64_t k = 0; k < 3; k++)
            part[k] = frame_of(x, &d, tgi_clamp(f + 2 * k - 2, 0, frames - 1));
        float *made = result_of(p3d(&d, f), (const float *const *)part, 3, (size_t)(64 * n));
        put_frame(got, 64, frames, n, f, made);
        free(made);
        for (int k = 0; k < 3; k++)
            free(part[k]);
    }
    compare("rfc_p3d", "y", got);
    free(got);
    tgi_free(x);
}

/* ------------------------------------------------------------------------------------------- */

static void test_all(void)
{
    RUN(test_norms_are_the_official_ones);
    RUN(test_sizes_are_the_official_ones);
    RUN(test_masks_of_tokens_are_the_official_ones);
    RUN(test_the_encoder_is_the_official_one);
    RUN(test_the_decoder_is_the_official_one);
    RUN(test_alignments_are_the_official_ones);
    RUN(test_an_update_is_the_official_one);
    RUN(test_the_first_layer_of_completion_is_the_official_one);
    RUN(test_a_layer_over_time_is_the_official_one);
}

int main(int argc, char **argv)
{
    static const tg_dtype types[2] = {TG_DTYPE_F32, TG_DTYPE_F16};
    tgi_err e = {0};
    if (argc < 2)
        return 2;
    if (!networks_in(TG_DTYPE_F32))
        return 77;
    if (!tg_has(OPS "/index.json"))
        return TEST_END();
    CHECK_OK(tgi_json_load(OPS "/index.json", &ops_index, &e), e);
    CHECK_OK(tgi_pp_weights_open(argv[1], weights, &e), e);
    CHECK_OK(tgi_threads_open(2, &pool, &e), e);
    for (int i = 0; i < 2; i++) {
        if (!networks_in(types[i]))
            continue;
        set = networks_of(0) ? networks_of(0)->be
                             : tgi_backend_for(tgi_isa_detect(TGI_ISA_COUNT));
        test_all();
    }
    tgi_threads_close(&pool);
    for (int i = 0; i < 3; i++)
        tgi_weights_close(&weights[i]);
    tgi_json_free(&ops_index);
    return TEST_END();
}
