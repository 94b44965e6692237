/* test_kernels_tokens.c - lookups, convex upsampling, folds and window attention of the instruction
 * sets against their references, and box against whole. Usage: test_kernels_tokens [SEED]. */
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

/* How far weights are off: see attention_ulps in test_kernels_ops.c. */
static void attention_case(int planar, int segments, int official, float scale)
{
    kcase k;
    const int64_t frames = kpick(1, 4), heads = planar ? 1 : kpick(1, 3);
    const int64_t inner = planar ? 1 : official ? 16 * kpick(1, 3) : kpick(1, 20);
    const int64_t channels = heads * inner, h = kpick(1, 12), w = kpick(1, 20);
    kcase_begin(&k, "WindowAttention");
    k.variant = "window_attention";
    k.a.window = (window_attrs){.frames = frames,
                                .heads = heads,
                                .window_h = official ? 5 : kpick(1, 6),
                                .window_w = official ? 9 : kpick(1, 10),
                                .first = frames > 1 ? kpick(0, 1) : 0,
                                .scale = scale / sqrtf((float)inner)};
    k.planar_src = k.planar_dst = planar;
    k.n_src = 8;
    k.n_const_from = 6;
    for (int i = 0; i < 3; i++)
        k.src[i] = kdesc(2, frames * channels, 1, h, w);
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
    kcase_pools_close();
    return TEST_END();
}
