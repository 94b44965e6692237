/* Operators of ProPainter's networks give what the official modules gave, within the tolerances of
 * the conformance data: lookup and upsampling of RAFT, window attention, norms of tokens, soft split,
 * soft composition, Gelu and the feed-forward layer between them. By reference, then by the variants of each
 * instruction set, direct ones; with TG_TEST_DEVICE by a device's. Argument `attention`: that alone. */
#define RECIPE TG_SHARED_DATA "/conformance/propainter"
#include "tests/unit/golden_kit.h"

#define CHANNELS 512 /* of a token */

/* [n,channels] to [channels,n], or back with the numbers exchanged. */
static float *turned(const float *p, int64_t n, int64_t channels)
{
    float *out = floats((size_t)(n * channels));
    for (int64_t i = 0; i < n; i++)
        for (int64_t c = 0; c < channels; c++)
            out[c * n + i] = p[i * channels + c];
    return out;
}

/* A convolution with square kernels and weights [M,C,k,k] ([C,M,k,k] with `transposed`, whose result
 * has h x w pixels). bias NULL: none. Takes x. */
static float *conv(float *x, tgi_desc *d, const float *w, const float *bias, int64_t m,
                   int64_t k, int64_t s, int64_t p, const int64_t *transposed)
{
    op_node n = open_node(transposed ? "ConvTranspose" : "Conv", bias ? 3 : 2);
    conv_attrs *a = n.attrs;
    const int64_t c = d->dim[1];
    const tgi_desc weights = transposed ? shape4(c, m, k, k) : shape4(m, c, k, k);
    a->kernel_shape = a->strides = (tgi_ints){2, {k, k}};
    a->strides = (tgi_ints){2, {s, s}};
    a->pads = (tgi_ints){4, {p, p, p, p}};
    a->output_padding.n = transposed ? 2 : -1;
    for (int i = 0; i < 2 && transposed; i++)
        a->output_padding.v[i] = transposed[i] - ((d->dim[2 + i] - 1) * s - 2 * p + k);
    give(&n, 0, d, x, 0);
    give(&n, 1, &weights, w, 1);
    if (bias)
        give(&n, 2, &(tgi_desc){TG_DTYPE_F32, 1, {m}}, bias, 1);
    free(x);
    return run(&n, 1, d);
}

/* ---- RAFT -------------------------------------------------------------------------------- */

/* 2x2 means of [1,C,h,w]; an odd last row or column is dropped. */
static float *halved(const float *x, tgi_desc *d)
{
    const int64_t h = d->dim[2], w = d->dim[3];
    d->dim[2] = h / 2;
    d->dim[3] = w / 2;
    float *out = floats(desc_floats(d)), *to = out;
    for (int64_t c = 0; c < d->dim[1]; c++)
        for (int64_t y = 0; y < h / 2; y++)
            for (int64_t i = 0; i < w / 2; i++) {
                const float *p = x + (c * h + 2 * y) * w + 2 * i;
                *to++ = ((p[0] + p[1]) + (p[w] + p[w + 1])) * 0.25f;
            }
    return out;
}

static void test_lookup_is_the_official_one(void)
{
    const char *const name = "raft_corr_lookup";
    tgi_desc d, level, flow;
    op_node n = open_node("CorrelationLookup", 6);
    float *f1 = load(name, "fmap1", &d), *f2 = load(name, "fmap2", &level),
          *at = load(name, "coords", &flow), *x = floats(desc_floats(&level));
    for (int64_t i = 0; i < 2 * d.dim[2] * d.dim[3]; i++) {
        const int64_t p = i % (d.dim[2] * d.dim[3]);
        at[i] -= (float)(i == p ? p % d.dim[3] : p / d.dim[3]);
    }
    give(&n, 0, &d, f1, 0);
    give(&n, 1, &flow, at, 0);
    memcpy(x, f2, desc_floats(&level) * sizeof *x);
    for (int l = 0; l < 4; l++) {
        give(&n, 2 + l, &level, x, 0);
        float *half = halved(x, &level);
        free(x);
        x = half;
    }
    float *got = run(&n, 0, &d);
    compare(name, "lookup", got);
    free(got);
    free(x);
    tgi_free(f1);
    tgi_free(f2);
    tgi_free(at);
}

static void test_upsampling_is_the_official_one(void)
{
    tgi_desc d, mask;
    op_node n = open_node("ConvexUpsample", 2);
    float *flow = load("raft_convex_upsample", "flow", &d),
          *weights = load("raft_convex_upsample", "mask", &mask);
    give(&n, 0, &d, flow, 0);
    give(&n, 1, &mask, weights, 0);
    float *got = run(&n, 0, &d);
    compare("raft_convex_upsample", "up", got);
    free(got);
    tgi_free(flow);
    tgi_free(weights);
}

/* ---- Patches ----------------------------------------------------------------------------- */

enum { FH = 7, FW = 6, H = 20, W = 16, FRAMES = 2, TOKENS = FH * FW, KERNEL = 7, PATCH = 49 };

static const int64_t image[2] = {H, W};

/* Weights [M,C] of a linear layer to patches, M = channels * PATCH, as those of a ConvTranspose. */
static float *to_patches(const char *name, int64_t channels)
{
    const int64_t m = channels * PATCH;
    float *w = recipe_tensor(RECIPE, "gen", name, (size_t)(m * CHANNELS)), *out;
    if (!w)
        abort();
    out = turned(w, m, CHANNELS);
    free(w);
    return out;
}

/* Patches of tokens, laid over each other. Takes x. */
static float *folded(float *x, tgi_desc *d, const char *layer, int64_t channels, int mean)
{
    char name[128];
    snprintf(name, sizeof name, "%s.weight", layer);
    float *w = to_patches(name, channels);
    snprintf(name, sizeof name, "%s.bias", layer);
    float *b = recipe_tensor(RECIPE, "gen", name, (size_t)(channels * PATCH));
    x = conv(x, d, w, NULL, channels, KERNEL, 3, 3, image);
    op_node n = open_node("FoldBias", 2);
    ((fold_attrs *)n.attrs)->mean = mean;
    give(&n, 0, d, x, 0);
    give(&n, 1, &(tgi_desc){TG_DTYPE_F32, 3, {channels, KERNEL, KERNEL}}, b, 1);
    free(x);
    free(w);
    free(b);
    return run(&n, 0, d);
}

/* A linear layer of patches: a convolution. Takes x. */
static float *split(float *x, tgi_desc *d, const char *layer)
{
    char name[128];
    snprintf(name, sizeof name, "%s.weight", layer);
    float *w = recipe_tensor(RECIPE, "gen", name, (size_t)(CHANNELS * PATCH * d->dim[1]));
    snprintf(name, sizeof name, "%s.bias", layer);
    float *b = recipe_tensor(RECIPE, "gen", name, CHANNELS);
    x = conv(x, d, w, b, CHANNELS, KERNEL, 3, 3, NULL);
    free(w);
    free(b);
    return x;
}

static void test_a_split_is_a_convolution(void)
{
    tgi_desc d;
    float *x = load("soft_split", "x", &d), *got = floats(FRAMES * TOKENS * CHANNELS);
    for (int f = 0; f < FRAMES; f++) {
        d = shape4(1, 128, H, W);
        float *one = floats(desc_floats(&d));
        memcpy(one, x + (size_t)f * desc_floats(&d), desc_floats(&d) * sizeof *one);
        one = split(one, &d, "ss.embedding");
        float *t = turned(one, CHANNELS, TOKENS);
        memcpy(got + f * TOKENS * CHANNELS, t, TOKENS * CHANNELS * sizeof *t);
        free(one);
        free(t);
    }
    compare("soft_split", "tokens", got);
    free(got);
    tgi_free(x);
}

static void test_a_composition_is_a_convolution_and_a_bias(void)
{
    tgi_desc d;
    float *x = load("soft_comp", "tokens", &d), *got = floats(FRAMES * 128 * H * W);
    float *w = recipe_tensor(RECIPE, "gen", "sc.bias_conv.weight", 128 * 128 * 9),
          *b = recipe_tensor(RECIPE, "gen", "sc.bias_conv.bias", 128);
    for (int f = 0; f < FRAMES; f++) {
        d = shape4(1, CHANNELS, FH, FW);
        float *one = turned(x + f * TOKENS * CHANNELS, TOKENS, CHANNELS);
        one = folded(one, &d, "sc.embedding", 128, 0);
        one = conv(one, &d, w, b, 128, 3, 1, 1, NULL);
        memcpy(got + (size_t)f * desc_floats(&d), one, desc_floats(&d) * sizeof *one);
        free(one);
    }
    compare("soft_comp", "y", got);
    free(got);
    free(w);
    free(b);
    tgi_free(x);
}

/* Takes x. */
static float *gelu(float *x, tgi_desc *d)
{
    op_node n = open_node("Gelu", 1);
    give(&n, 0, d, x, 0);
    free(x);
    return run(&n, 0, d);
}

static void test_gelu_is_the_official_one(void)
{
    tgi_desc d;
    float *x = load("gelu", "x", &d), *one = floats(desc_floats(&d));
    memcpy(one, x, desc_floats(&d) * sizeof *one);
    d = shape4(1, 16, 4, 8);
    float *got = gelu(one, &d);
    compare("gelu", "y", got);
    free(got);
    tgi_free(x);
}

static void test_a_norm_of_tokens_is_the_official_one(void)
{
    tgi_desc d;
    float *x = load("layer_norm", "x", &d);
    const int64_t n = d.dim[0];
    float *w =
              recipe_tensor(RECIPE, "gen", "transformers.transformer.0.norm1.weight", CHANNELS),
          *b = recipe_tensor(RECIPE, "gen", "transformers.transformer.0.norm1.bias", CHANNELS);
    op_node k = open_node("ChannelNorm", 1);
    ((channel_norm_attrs *)k.attrs)->epsilon = 1e-5f;
    d = shape4(1, CHANNELS, 1, n);
    float *tokens = turned(x, n, CHANNELS);
    give(&k, 0, &d, tokens, 0);
    float *y = run(&k, 0, &d), *got = turned(y, CHANNELS, n);
    for (int64_t i = 0; i < n * CHANNELS; i++)
        got[i] = got[i] * w[i % CHANNELS] + b[i % CHANNELS];
    compare("layer_norm", "y", got);
    free(tokens);
    free(y);
    free(got);
    free(w);
    free(b);
    tgi_free(x);
}

static void test_a_feed_forward_is_two_convolutions(void)
{
    tgi_desc d;
    float *x = load("fusion_ffn", "x", &d), *got = floats(FRAMES * TOKENS * CHANNELS);
    for (int f = 0; f < FRAMES; f++) {
        d = shape4(1, CHANNELS, FH, FW);
        float *one = turned(x + f * TOKENS * CHANNELS, TOKENS, CHANNELS);
        one = folded(one, &d, "transformers.transformer.2.mlp.fc1.0", 40, 1);
        one = gelu(one, &d);
        one = split(one, &d, "transformers.transformer.2.mlp.fc2.1");
        float *t = turned(one, CHANNELS, TOKENS);
        memcpy(got + f * TOKENS * CHANNELS, t, TOKENS * CHANNELS * sizeof *t);
        free(one);
        free(t);
    }
    compare("fusion_ffn", "y", got);
    free(got);
    tgi_free(x);
}

/* ---- Attention --------------------------------------------------------------------------- */

/* A block's linear layer `part` of tokens [n,CHANNELS]. */
static float *linear(int block, const char *part, const float *x, int64_t n)
{
    char name[128];
    snprintf(name, sizeof name, "transformers.transformer.%d.attention.%s.weight", block, part);
    float *w = recipe_tensor(RECIPE, "gen", name, CHANNELS * CHANNELS);
    snprintf(name, sizeof name, "transformers.transformer.%d.attention.%s.bias", block, part);
    float *b = recipe_tensor(RECIPE, "gen", name, CHANNELS);
    tgi_desc d = shape4(1, CHANNELS, 1, n);
    float *y = conv(turned(x, n, CHANNELS), &d, w, b, CHANNELS, 1, 1, 0, NULL);
    float *out = turned(y, CHANNELS, n);
    free(w);
    free(b);
    free(y);
    return out;
}

typedef struct tokens {
    int64_t f, h, w; /* frames of h x w */
} tokens;

/* A mean of 4x4 tokens of a grid of whole windows, zero where there is none. */
static float *pooled(int block, const float *x, const tokens *t, const tokens *p)
{
    char name[128];
    snprintf(name, sizeof name, "transformers.transformer.%d.attention.pool_layer.weight",
             block);
    float *w = recipe_tensor(RECIPE, "gen", name, CHANNELS * 16);
    snprintf(name, sizeof name, "transformers.transformer.%d.attention.pool_layer.bias", block);
    float *b = recipe_tensor(RECIPE, "gen", name, CHANNELS),
          *out = floats((size_t)(p->f * p->h * p->w * CHANNELS));
    for (int64_t i = 0; i < p->f * p->h * p->w; i++)
        for (int64_t c = 0; c < CHANNELS; c++) {
            double sum = (double)b[c];
            for (int64_t k = 0; k < 16; k++) {
                const int64_t y = i / p->w % p->h * 4 + k / 4, at = i % p->w * 4 + k % 4;
                const int64_t frame = i / p->w / p->h;
                if (y < t->h && at < t->w)
                    sum += (double)w[c * 16 + k] *
                           (double)x[((frame * t->h + y) * t->w + at) * CHANNELS + c];
            }
            out[i * CHANNELS + c] = (float)sum;
        }
    free(w);
    free(b);
    return out;
}

/* Tokens [f,h,w,CHANNELS] as source i: frames one behind the other in channels. Takes x. */
static void give_tokens(op_node *n, int i, float *x, const tokens *t)
{
    const int64_t plane = t->h * t->w;
    const tgi_desc d = shape4(1, t->f * CHANNELS, t->h, t->w);
    float *all = floats(desc_floats(&d));
    for (int64_t f = 0; f < t->f; f++) {
        float *one = turned(x + f * plane * CHANNELS, plane, CHANNELS);
        memcpy(all + f * plane * CHANNELS, one, (size_t)(plane * CHANNELS) * sizeof *one);
        free(one);
    }
    give(n, i, &d, all, 0);
    free(all);
    free(x);
}

static void give_masked(op_node *n, const char *name, const tokens *t)
{
    tgi_desc d;
    float *mask = load(name, "mask", &d);
    const tgi_desc windows = shape4(1, 1, (t->h + 4) / 5, (t->w + 8) / 9);
    float *m = floats(desc_floats(&windows));
    for (int64_t i = 0; i < (int64_t)desc_floats(&d); i++)
        if (mask[i] != 0)
            m[i / t->w % t->h / 5 * windows.dim[3] + i % t->w / 9] = 1;
    give(n, 5, &windows, m, 0);
    free(m);
    tgi_free(mask);
}

static void give_bias(op_node *n, int i, int block, const char *part)
{
    char name[128];
    snprintf(name, sizeof name, "transformers.transformer.%d.attention.%s.bias", block, part);
    float *b = recipe_tensor(RECIPE, "gen", name, CHANNELS);
    give(n, i, &(tgi_desc){TG_DTYPE_F32, 1, {CHANNELS}}, b, 1);
    free(b);
}

static void attention(const char *name, int block)
{
    tgi_desc d;
    float *x = load(name, "x", &d);
    const tokens t = {d.dim[1], d.dim[2], d.dim[3]},
                 p = {t.f, (t.h + 4) / 5 * 5 / 4, (t.w + 8) / 9 * 9 / 4};
    const int64_t plane = t.h * t.w, all = t.f * plane;
    op_node n = open_node("WindowAttention", 8);
    window_attrs *a = n.attrs;
    a->frames = t.f;
    a->first = block % 2;
    a->scale = (float)sqrt(1.0 / 128);
    give_tokens(&n, 0, linear(block, "query", x, all), &t);
    give_tokens(&n, 1, linear(block, "key", x, all), &t);
    give_tokens(&n, 2, linear(block, "value", x, all), &t);
    float *few = pooled(block, x, &t, &p);
    give_tokens(&n, 3, linear(block, "key", few, p.f * p.h * p.w), &p);
    give_tokens(&n, 4, linear(block, "value", few, p.f * p.h * p.w), &p);
    free(few);
    give_masked(&n, name, &t);
    give_bias(&n, 6, block, "key");
    give_bias(&n, 7, block, "value");
    float *y = run(&n, 0, &d), *together = floats((size_t)(all * CHANNELS));
    for (int64_t f = 0; f < t.f; f++) {
        float *one = turned(y + f * plane * CHANNELS, CHANNELS, plane);
        memcpy(together + f * plane * CHANNELS, one, (size_t)(plane * CHANNELS) * sizeof *one);
        free(one);
    }
    float *got = linear(block, "proj", together, all);
    compare(name, "y", got);
    free(got);
    free(together);
    free(y);
    tgi_free(x);
}

static void test_attention_is_the_official_one(void)
{
    attention("sparse_attention_exact", 1);
    attention("sparse_attention_nomask", 2);
    attention("sparse_attention_padded", 0);
}

static void test_attention_alone(void)
{
    RUN(test_attention_is_the_official_one);
}

static void test_all(void)
{
    RUN(test_lookup_is_the_official_one);
    RUN(test_upsampling_is_the_official_one);
    RUN(test_a_split_is_a_convolution);
    RUN(test_a_composition_is_a_convolution_and_a_bias);
    RUN(test_gelu_is_the_official_one);
    RUN(test_a_norm_of_tokens_is_the_official_one);
    RUN(test_a_feed_forward_is_two_convolutions);
    RUN(test_attention_is_the_official_one);
}

int main(int argc, char **argv)
{
    if (golden_none())
        return golden_none();
    golden_each_set(argc > 1 && strcmp(argv[1], "attention") == 0 ? test_attention_alone
                                                                  : test_all);
    return TEST_END();
}
