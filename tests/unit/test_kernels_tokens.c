/* test_kernels_tokens.c - lookups, convex upsampling, folds, norms of tokens, Gelu and window attention
 * of the instruction sets against their references, and box against whole. Usage: test_kernels_tokens [SEED]. */
#include "engine/base/arith.h"
#include "tests/unit/kernel_case.h"

/* A bound of `ulps` float32 roundings of values up to 1. */
static void finish(kcase *k, double ulps)
{
    k->want = kcase_ref(k);
    k->bound = kfloats(kcount(&k->dst));
    for (size_t i = 0; i < kcount(&k->dst); i++)
        k->bound[i] = (float)(ulps * 6e-8);
    kcase_check(k, 6);
}

/* Source i in segments of whole blocks. */
static void cut(kcase *k, int i)
{
    int64_t left = k->src[i].dim[1];
    for (k->n_seg[i] = 0; left > 0; left -= k->seg_c[i][k->n_seg[i]++])
        k->seg_c[i][k->n_seg[i]] =
            k->n_seg[i] == TGI_MAX_SEG - 1 ? left : tgi_min(left, 16 * kpick(1, 6));
}

/* Flows of `reach` pixels; of the wild ones some are no numbers, or far away. */
static void lookup_case(int planar, int segments, float reach, int wild)
{
    static const float odd[] = {NAN, INFINITY, -INFINITY, 3e38f, -1e9f, 9.2e18f};
    kcase k;
    const int levels = (int)kpick(1, 4);
    const int64_t channels = planar ? kpick(1, 4) : kpick(1, 3) * kpick(1, 20);
    kcase_begin(&k, "CorrelationLookup");
    k.variant = "correlation";
    k.a.lookup.radius = kpick(0, 1) ? 4 : kpick(0, 8);
    k.planar_src = k.planar_dst = planar;
    k.n_src = 2 + levels;
    k.src[0] = kdesc(2, channels, 1, kpick(1, 13), kpick(1, 30));
    k.src[1] = kdesc(2, 2, 1, k.src[0].dim[2], k.src[0].dim[3]);
    for (int l = 0; l < levels; l++)
        k.src[2 + l] = kdesc(2, channels, 1, kpick(1, 20), kpick(1, 40));
    for (int i = 0; i < k.n_src && segments; i++)
        cut(&k, i);
    CHECK(kcase_build(&k, 1.0f));
    for (size_t i = 0; i < kcount(&k.src[1]); i++) {
        k.data[1][i] *= reach;
        if (wild && kpick(0, 6) == 0)
            k.data[1][i] = odd[kpick(0, 5)];
        if (kpick(0, 9) == 0)
            k.data[1][i] = rintf(k.data[1][i]);
    }
    finish(&k, ((double)channels + 8) * sqrt((double)channels));
    kcase_end(&k);
}

static void test_lookups_agree(void)
{
    for (int round = 0; round < 24; round++)
        lookup_case(round % 4 == 3, round & 1, round < 12 ? 2.0f : 30.0f, round & 2);
}

static void upsample_case(int planar, int64_t scale, float size)
{
    kcase k;
    kcase_begin(&k, "ConvexUpsample");
    k.variant = "convex";
    k.a.convex.scale = scale;
    k.planar_src = k.planar_dst = planar;
    k.n_src = 2;
    k.src[0] = kdesc(2, kpick(1, 20), 1, kpick(1, 5), kpick(1, 9));
    k.src[1] = kdesc(2, 9 * scale * scale, 1, k.src[0].dim[2], k.src[0].dim[3]);
    CHECK(kcase_build(&k, 1.0f / (float)scale));
    for (size_t i = 0; i < kcount(&k.src[1]); i++)
        k.data[1][i] *= size;
    finish(&k, 40 + 2 * (double)size);
    kcase_end(&k);
}

static void test_upsampling_agrees(void)
{
    for (int planar = 0; planar < 2; planar++)
        for (int64_t s = 1; s < 10; s++)
            upsample_case(planar, s, s & 1 ? 3.0f : 90.0f); /* beyond what exp() holds */
}

static void fold_case(int64_t kernel, int64_t stride, int64_t pad, int64_t mean)
{
    kcase k;
    kcase_begin(&k, "FoldBias");
    k.variant = "fold_bias";
    k.a.fold = (fold_attrs){kernel, stride, pad, mean};
    k.n_src = 2;
    k.n_const_from = 1;
    k.src[0] = kdesc(2, kpick(1, 70), 1, kpick(1, 30), kpick(1, 130));
    k.src[1] = (tgi_desc){TG_DTYPE_F32, 3, {k.src[0].dim[1], kernel, kernel}};
    cut(&k, 0);
    CHECK(kcase_build(&k, 1.0f));
    const double patches = (double)(kernel / stride + 1) * (double)(kernel / stride + 1);
    finish(&k, patches * (patches + 2));
    kcase_end(&k);
}

static void test_folds_agree(void)
{
    for (int64_t mean = 0; mean < 2; mean++) {
        fold_case(7, 3, 3, mean);
        fold_case(7, 3, 3, mean);
        fold_case(3, 1, 1, mean);
        fold_case(2, 5, 0, mean);
        fold_case(64, 64, 63, mean);
        fold_case(1, 1, 0, mean);
    }
}

/* More keys than the kernel copies together, each frame's liked more than those before by `rise`: sums follow the largest
 * so far. A likeness is one product, so it is exact. */
static void rising_case(float rise)
{
    kcase k;
    const int64_t frames = 6, inner = 16, h = 5, w = 9;
    kcase_begin(&k, "WindowAttention");
    k.variant = "window_attention";
    k.a.window = (window_attrs){.frames = frames,
                                .heads = 1,
                                .window_h = h,
                                .window_w = w,
                                .first = kpick(0, 1),
                                .scale = 1};
    k.n_src = 8;
    k.n_const_from = 6;
    for (int i = 0; i < 3; i++)
        k.src[i] = kdesc(2, frames * inner, 1, h, w);
    k.src[3] = k.src[4] = kdesc(2, frames * inner, 1, 11, kpick(10, 20));
    k.src[5] = kdesc(2, 1, 1, 1, 1);
    k.src[6] = k.src[7] = (tgi_desc){TG_DTYPE_F32, 1, {inner}};
    CHECK(kcase_build(&k, 1.0f));
    k.data[5][0] = 1;
    for (int i = 0; i < 4; i += i ? 2 : 1) { /* queries, keys, pooled keys */
        const size_t plane = kcount(&k.src[i]) / (size_t)(frames * inner);
        for (size_t c = 0; c < (size_t)(frames * inner); c++)
            for (size_t p = c * plane; p < (c + 1) * plane; p++)
                k.data[i][p] = i == 0 ? (c % (size_t)inner == 0)
                                      : k.data[i][p] + rise * (float)(c / (size_t)inner);
    }
    finish(&k, 2 * (64 + 20 + 8));
    kcase_end(&k);
}

/* How far weights are off: see attention_ulps in test_kernels_ops.c. */
static void attention_case(int planar, int segments, int official, float scale)
{
    kcase k;
    const int64_t frames = kpick(1, 4), asked = kpick(0, frames),
                  heads = planar ? 1 : kpick(1, 3);
    const int64_t inner = planar ? 1 : official ? 16 * kpick(1, 3) : kpick(1, 20);
    const int64_t channels = heads * inner, h = kpick(1, 12), w = kpick(1, 20);
    kcase_begin(&k, "WindowAttention");
    k.variant = "window_attention";
    k.a.window = (window_attrs){.frames = frames,
                                .asked = asked,
                                .heads = heads,
                                .window_h = official ? 5 : kpick(1, 6),
                                .window_w = official ? 9 : kpick(1, 10),
                                .first = frames > 1 ? kpick(0, 1) : 0,
                                .scale = scale / sqrtf((float)inner)};
    k.planar_src = k.planar_dst = planar;
    k.n_src = 8;
    k.n_const_from = 6;
    for (int i = 0; i < 3; i++)
        k.src[i] = kdesc(2, (i || !asked ? frames : asked) * channels, 1, h, w);
    k.src[3] = k.src[4] = kdesc(2, frames * channels, 1, kpick(1, 3), kpick(1, 4));
    k.src[5] =
        kdesc(2, 1, 1, (h - 1) / k.a.window.window_h + 1, (w - 1) / k.a.window.window_w + 1);
    k.src[6] = k.src[7] = (tgi_desc){TG_DTYPE_F32, 1, {channels}};
    for (int i = 0; i < 5 && segments; i++)
        cut(&k, i);
    CHECK(kcase_build(&k, 1.0f));
    for (size_t i = 0; i < kcount(&k.src[5]); i++)
        k.data[5][i] = (float)kpick(0, 1);
    const double likeness =
        ((double)inner + 2) * (double)inner * fabs((double)k.a.window.scale);
    finish(&k, 2 * (2 * likeness + 64 + 20 + 8));
    kcase_end(&k);
}

static void test_window_attention_agrees(void)
{
    for (int round = 0; round < 32; round++)
        attention_case(round % 8 == 7, round & 1, round & 2, round & 4 ? 1.0f : -6.0f);
    static const float rise[] = {0.3f,  3,    40,   200,  3000, 1e5f,
                                 -1e5f, 1e6f, 2e7f, 1e9f, -3,   -200};
    for (size_t i = 0; i < sizeof rise / sizeof rise[0]; i++)
        rising_case(rise[i]);
}

/* Of values that lie around `offset`. A difference from the mean is off by no more than a few
 * roundings of itself, then by those of the sums over the channels. */
static void norm_case(int spatial, int planar, float offset, int64_t centred)
{
    kcase k;
    const int64_t channels = planar ? kpick(1, 4) : kpick(1, 3) * kpick(1, 180);
    kcase_begin(&k, "ChannelNorm");
    k.variant = "channel_norm";
    k.a.channel_norm = (channel_norm_attrs){1e-5f, centred};
    k.planar_src = k.planar_dst = planar;
    k.n_src = 1;
    k.src[0] = kdesc(spatial, channels, kpick(1, 3), kpick(1, 5), kpick(1, 90));
    if (!planar)
        cut(&k, 0);
    CHECK(kcase_build(&k, 1.0f));
    for (size_t i = 0; i < kcount(&k.src[0]); i++)
        k.data[0][i] += offset;
    finish(&k, 24 * sqrt((double)channels));
    kcase_end(&k);
}

static void test_norms_of_tokens_agree(void)
{
    static const float offsets[] = {0, 3, -1000, 65535};
    for (int round = 0; round < 16; round++)
        norm_case(round & 1 ? 3 : 2, round & 2, offsets[round / 4], 1);
    for (int round = 0; round < 8; round++)
        norm_case(round & 1 ? 3 : 2, round & 2, offsets[round / 4], 0);
}

/* Both forms from where they are 0 to where they are x, at the ends of what float32 holds, too. */
static void gelu_case(int planar, int mode, float size)
{
    static const float odd[] = {3e38f, -3e38f, 1e-30f, -1e-30f, -0.0f, -13.5f};
    kcase k;
    kcase_begin(&k, "Gelu");
    k.variant = "eltwise";
    k.a.unary.mode = mode;
    k.planar_src = k.planar_dst = planar;
    k.n_src = 1;
    k.src[0] = kdesc(2, planar ? 3 : 21, 1, kpick(1, 5), kpick(1, 120));
    CHECK(kcase_build(&k, size));
    for (size_t i = 0; i < kcount(&k.src[0]); i++)
        if (kpick(0, 15) == 0)
            k.data[0][i] = odd[kpick(0, 5)];
    k.want = kcase_ref(&k);
    k.bound = kfloats(kcount(&k.dst));
    for (size_t i = 0; i < kcount(&k.dst); i++)
        k.bound[i] = 4e-7f * fabsf(k.want[i]) + 2e-7f;
    kcase_check(&k, 6);
    kcase_end(&k);
}

static void test_gelu_agrees(void)
{
    for (int planar = 0; planar < 2; planar++)
        for (int mode = 0; mode < 2; mode++) {
            gelu_case(planar, mode, 1.0f);
            gelu_case(planar, mode, 6.0f);
            gelu_case(planar, mode, 40.0f);
        }
}

/* No number stays none; far below zero it is infinity times nothing, as by the reference. */
static void test_gelu_of_what_is_no_number(void)
{
    for (int isa = 0; isa < TGI_ISA_COUNT; isa++)
        for (int tanh_form = 0; tanh_form < 2; tanh_form++) {
            float row[3] = {NAN, INFINITY, -INFINITY};
            const tgi_view v = {
                .base = row, .c = 1, .cb = 1, .width = 3, .y_ring = 1, .z_ring = 1};
            const tgi_desc d = kdesc(2, 1, 1, 1, 3);
            const tgi_epi_step s = {.kind = tanh_form ? TGI_EPI_GELU_TANH : TGI_EPI_GELU,
                                    .src = -1};
            const tgi_call call = {.dst = &v, .box = tgi_box_full(&d), .epi = &s, .n_epi = 1};
            if (tgi_isa_detect((tgi_isa)isa) != (tgi_isa)isa)
                continue;
            tgi_epilogue_apply(tgi_backend_for((tgi_isa)isa), &call);
            CHECK(isnan(row[0]) && isinf(row[1]) && row[1] > 0 && isnan(row[2]));
        }
}

int main(int argc, char **argv)
{
    if (argc > 1)
        kseed = strtoull(argv[1], NULL, 0);
    printf("seed %llu\n", (unsigned long long)kseed);
    kcase_pools_open();
    RUN(test_lookups_agree);
    RUN(test_upsampling_agrees);
    RUN(test_folds_agree);
    RUN(test_window_attention_agrees);
    RUN(test_norms_of_tokens_agree);
    RUN(test_gelu_agrees);
    RUN(test_gelu_of_what_is_no_number);
    kcase_pools_close();
    return TEST_END();
}
