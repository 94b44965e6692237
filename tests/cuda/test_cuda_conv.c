/* test_cuda_conv.c - the device's convolutions against the reference, and box against whole.
 * Usage: test_cuda_conv [SEED]. */
#include "tests/cuda/device_case.h"

typedef struct shape {
    int spatial; /* 1: an image of one row, as lines are */
    int64_t ci, co, k, s, p, d;
} shape;

typedef struct with_what {
    int64_t groups;
    int64_t segs[TGI_MAX_SEG];
    int n_seg;
    unsigned doubled; /* bit s: segment s is read doubled */
    tg_dtype only;
    unsigned kinds;
    int64_t wide; /* columns at most; 0: 40 */
    int relu_at_most;
} with_what;
static with_what with; /* of the next case */

static void expect_sum(kcase *k)
{
    kcase_bound_of_sum(k);
    for (size_t i = 0; k->n_epi && i < kcount(&k->dst); i++) {
        const float v = k->want[i];
        if (k->epi[0].kind == TGI_EPI_RELU) /* does not widen the bound */
            k->want[i] = fmaxf(v, 0);
        else if (k->n_epi == 2) { /* plus another operand, which a half holds exactly: twice */
            k->want[i] = 2 * (v + k->data[k->n_src][i]);
            k->bound[i] = 2 * k->bound[i] + 3e-7f * fabsf(k->want[i]);
        }
    }
}

/* Both factors of a product are within 2^-11 of what they were. */
static void expect_tf32_sum(kcase *k)
{
    const double terms =
        2 + (double)kcount(&k->src[1]) / (double)k->src[1].dim[0] + (double)k->src[1].dim[0];
    expect_sum(k);
    for (size_t i = 0; i < kcount(&k->dst); i++)
        k->bound[i] *= (float)(1 + 0x1.01p-10 / (terms * 6e-8));
}

/* Nothing, relu, or the sum with another image of the result's shape, doubled. */
static void choose_epilogue(kcase *k)
{
    const int64_t which = kpick(0, with.relu_at_most ? 1 : 2);
    if (which == 1)
        k->epi[k->n_epi++] = (tgi_epi_step){TGI_EPI_RELU, -1, 0, 0, NULL};
    if (which < 2)
        return;
    k->epi[k->n_epi++] = (tgi_epi_step){TGI_EPI_ADD, k->n_src, 0, 0, NULL};
    k->epi[k->n_epi++] = (tgi_epi_step){TGI_EPI_MUL, -1, 2, 0, NULL};
    k->n_extra = 1;
    const int i = k->n_src;
    k->src[i] = k->dst;
    k->data[i] = krandom(kcount(&k->dst), 1.0f);
    k->n_seg[i] = 1;
    k->seg_c[i][0] = k->dst.dim[1];
}

/* The attributes of a window, and what it slides over. */
static void set_window(kcase *k, const shape *s, int64_t d, int64_t h, int64_t w)
{
    const int n = s->spatial == 1 ? 2 : s->spatial;
    conv_attrs *a = &k->a.conv;
    kset(&a->kernel_shape, n, s->k);
    kset(&a->strides, n, s->s);
    kset(&a->dilations, n, s->d);
    kset(&a->pads, 2 * n, s->p);
    k->src[0] = kdesc(n, s->ci, d, s->spatial == 1 ? 1 : h, w);
    if (s->spatial == 1) {
        a->kernel_shape.v[0] = a->strides.v[0] = a->dilations.v[0] = 1;
        a->pads.v[0] = a->pads.v[2] = 0;
    }
}

/* 1: there was something to compute (a drawn image can be too small for its kernel). */
static int conv_case(const char *op, const shape *s, const char *variant)
{
    kcase k;
    const int runs = kdevice_runs;
    const int64_t even = with.doubled ? 2 : 1, d = kpick(2, 4);
    const int64_t h = kpick(3, 14) * even, w = kpick(3, with.wide ? with.wide : 40) * even;
    const int transposed = strcmp(op, "ConvTranspose") == 0;
    const int64_t groups = with.groups ? with.groups : 1;
    kcase_begin(&k, op);
    set_window(&k, s, d, h, w);
    k.a.conv.group = groups;
    k.variant = variant;
    k.n_src = kpick(0, 3) ? 3 : 2;
    k.n_const_from = 1;
    k.src[1] = kdesc(s->spatial == 1 ? 2 : s->spatial, (transposed ? s->co : s->ci) / groups,
                     s->k, s->spatial == 1 ? 1 : s->k, s->k);
    k.src[1].dim[0] = transposed ? s->ci : s->co;
    k.src[2] = (tgi_desc){TG_DTYPE_F32, 1, {s->co}};
    if (k.n_src == 2)
        k.src[2] = (tgi_desc){0};
    for (int i = 0; i < with.n_seg; i++)
        k.seg_c[0][i] = with.segs[i];
    k.n_seg[0] = with.n_seg;
    if (kcase_build(&k, 1.0f)) {
        for (int i = 0; i < with.n_seg; i++)
            k.doubled[i] = with.doubled >> i & 1;
        if (with.doubled)
            kcase_double(&k);
        choose_epilogue(&k);
        k.kinds = with.kinds;
        kdevice_check(&k, with.kinds & TGI_KIND_TF32 ? expect_tf32_sum : expect_sum, with.only,
                      3);
    }
    kcase_end(&k);
    memset(&with, 0, sizeof with);
    return kdevice_runs > runs;
}

static void test_any_convolution_has_a_variant_that_agrees(void)
{
    static const shape shapes[] = {
        {2, 3, 5, 3, 1, 1, 1},   {2, 1, 1, 7, 1, 3, 1},   {2, 18, 12, 1, 1, 0, 1},
        {2, 12, 20, 3, 2, 1, 1}, {2, 20, 30, 3, 1, 2, 2}, {3, 6, 9, 3, 1, 1, 1},
        {2, 33, 99, 5, 1, 2, 1}, {2, 4, 4, 2, 3, 0, 1},
    };
    static const int64_t groups[] = {1, 1, 3, 4, 10, 3, 33, 2};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        with.groups = groups[i];
        conv_case("Conv", &shapes[i], NULL);
    }
}

static void test_any_transposed_convolution_has_a_variant_that_agrees(void)
{
    static const shape shapes[] = {
        {2, 3, 5, 3, 1, 1, 1},  {2, 19, 33, 4, 2, 1, 1}, {2, 16, 16, 2, 3, 0, 1},
        {2, 6, 10, 3, 2, 1, 2}, {3, 6, 9, 3, 2, 1, 1},   {2, 12, 4, 9, 3, 4, 1},
    };
    static const int64_t groups[] = {1, 1, 4, 2, 3, 1};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        with.groups = groups[i];
        conv_case("ConvTranspose", &shapes[i], NULL);
    }
}

/* Cut the next case's source. */
static void cut(const int64_t *segs, int n, unsigned doubled)
{
    memcpy(with.segs, segs, (size_t)n * sizeof *segs);
    with.n_seg = n;
    with.doubled = doubled;
}

static void test_depthwise_convolution_agrees(void)
{
    static const shape shapes[] = {
        {2, 21, 21, 3, 1, 1, 1}, {2, 64, 64, 5, 2, 2, 1}, {2, 16, 16, 3, 1, 2, 2},
        {3, 9, 9, 3, 1, 1, 1},   {2, 3, 3, 3, 1, 1, 1},   {2, 2, 2, 3, 1, 1, 1},
        {2, 64, 64, 5, 1, 2, 1}, {2, 13, 13, 7, 1, 3, 1},
    };
    static const char *const names[] = {
        "conv_depthwise_row", "conv_depthwise", "conv_depthwise",     "conv_depthwise_row",
        "conv_depthwise",     "conv_depthwise", "conv_depthwise_row", "conv_depthwise_row"};
    static const int64_t segs[] = {16, 32, 16};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        for (int transposed = 0; transposed < 2; transposed++) {
            with.groups = shapes[i].ci;
            if (shapes[i].ci == 64) {
                cut(segs, 3, 0);
                with.wide = transposed ? 0 : 200; /* rows of several blocks */
            }
            conv_case(transposed ? "ConvTranspose" : "Conv", &shapes[i],
                      transposed ? "conv_transpose_depthwise" : names[i]);
        }
    }
}

/* In one of the types that groups of warps multiply, by turns, where the device has them:
 * pixels of 16 bytes and results of more than four channels. */
static void groups_agree(const char *op, const shape *s)
{
    static unsigned turn;
    const with_what keep = with;
    int few = tgi_whole_pixel(s->ci) < 8 || s->co <= 4;
    for (int i = 0; i < with.n_seg; i++)
        few |= tgi_whole_pixel(with.segs[i]) < 8;
    device_generation(90);
    if (!few && device_kinds() & TGI_KIND_WGMMA) {
        with.only = turn++ % 2 ? TGI_DTYPE_BF16 : TG_DTYPE_F16;
        with.kinds = TGI_KIND_WGMMA;
        conv_case(op, s, strcmp(op, "Conv") == 0 ? "conv_wgmma" : "conv_transpose_wgmma");
    }
    with = keep;
}

/* The same case in all types, and in halves two times in three with copies that go on beside
 * the arithmetic (8.0 and later, where all products of bfloat16 numbers are). */
static void products_agree(const char *op, const shape *s)
{
    static unsigned turn;
    const int transposed = strcmp(op, "ConvTranspose") == 0;
    const with_what keep = with;
    groups_agree(op, s);
    device_generation(turn++ % 3 ? 80 : 75);
    with.only = TG_DTYPE_F16;
    conv_case(op, s, transposed ? "conv_transpose_mma" : "conv_mma");
    device_generation(80);
    with = keep;
    with.only = TGI_DTYPE_BF16;
    conv_case(op, s, transposed ? "conv_transpose_mma" : "conv_mma");
    with = keep;
    with.only = TG_DTYPE_F32;
    if (conv_case(op, s, transposed ? "conv_transpose_simt" : "conv_simt"))
        CHECK(kdevice_off < 1e-5); /* in true float32, unless --tf32 is given: */
    if (!(device_kinds() & TGI_KIND_TF32))
        return;
    with = keep;
    with.only = TG_DTYPE_F32;
    with.kinds = TGI_KIND_TF32;
    int few = s->ci <= 2; /* lanes, with which it is not worth it */
    for (int i = 0; i < with.n_seg; i++)
        few |= with.segs[i] <= 2;
    if (few) {
        conv_case(op, s, transposed ? "conv_transpose_simt" : "conv_simt");
        return;
    }
    if (conv_case(op, s, transposed ? "conv_transpose_tf32" : "conv_tf32"))
        CHECK(kdevice_off > 1e-5 && kdevice_off < 2e-3);
}

static void test_products_convolve_any_kernel_stride_and_dilation(void)
{
    static const shape shapes[] = {
        {2, 32, 32, 3, 1, 1, 1},  {2, 16, 48, 3, 1, 1, 1},  {2, 48, 16, 1, 1, 0, 1},
        {2, 19, 33, 3, 1, 1, 1},  {2, 40, 136, 3, 1, 1, 1}, {2, 97, 24, 3, 1, 1, 1},
        {2, 32, 64, 5, 1, 2, 1},  {2, 16, 8, 7, 1, 3, 1},   {2, 32, 32, 3, 2, 1, 1},
        {2, 16, 32, 3, 1, 2, 2},  {2, 16, 40, 5, 3, 0, 1},  {2, 64, 3, 1, 2, 0, 1},
        {3, 16, 32, 3, 1, 1, 1},  {3, 20, 17, 3, 2, 1, 1},  {2, 8, 1, 2, 2, 0, 1},
        {2, 24, 128, 3, 1, 1, 1}, {2, 16, 2, 3, 1, 1, 1},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        products_agree("Conv", &shapes[i]);
    with.wide = 300; /* tiles of one row */
    products_agree("Conv", &shapes[0]);
}

static void test_products_convolve_pixels_of_few_channels(void)
{
    static const shape shapes[] = {{2, 1, 32, 3, 1, 1, 1}, {2, 3, 48, 3, 1, 1, 1},
                                   {2, 3, 64, 7, 2, 3, 1}, {2, 4, 17, 5, 2, 2, 1},
                                   {3, 1, 16, 3, 1, 1, 1}, {2, 2, 96, 3, 1, 0, 1},
                                   {2, 3, 3, 3, 1, 1, 1}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        products_agree("Conv", &shapes[i]);
}

static void test_products_read_segments_as_one_tensor(void)
{
    static const int64_t two[] = {32, 16}, odd[] = {96, 1}, many[] = {3, 16, 8, 21};
    const shape a = {2, 48, 32, 3, 1, 1, 1}, b = {2, 97, 48, 3, 1, 1, 1},
                c = {3, 48, 16, 3, 1, 1, 1};
    cut(two, 2, 0);
    products_agree("Conv", &a);
    cut(odd, 2, 0);
    products_agree("Conv", &b);
    cut(many, 4, 0);
    products_agree("Conv", &c);
}

static void test_products_upsample_what_they_read(void)
{
    static const shape shapes[] = {{2, 48, 32, 3, 1, 1, 1},
                                   {2, 48, 16, 5, 1, 2, 1},
                                   {2, 48, 16, 3, 2, 1, 1},
                                   {2, 48, 33, 3, 1, 2, 2},
                                   {2, 48, 16, 1, 1, 0, 1}};
    static const int64_t two[] = {32, 16}, one[] = {48}, few[] = {45, 3};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        cut(one, 1, 1);
        products_agree("Conv", &shapes[i]);
        cut(two, 2, 1);
        products_agree("Conv", &shapes[i]);
    }
    cut(few, 2, 2);
    products_agree("Conv", &shapes[0]);
}

static void test_products_convolve_in_groups(void)
{
    static const shape shapes[] = {{2, 64, 64, 3, 1, 1, 1},
                                   {2, 64, 96, 3, 2, 1, 1},
                                   {2, 32, 32, 3, 1, 1, 1},
                                   {2, 48, 24, 3, 1, 2, 2}};
    static const int64_t groups[] = {4, 2, 8, 3}, segs[] = {32, 32};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        with.groups = groups[i];
        if (i == 0)
            cut(segs, 2, 0);
        products_agree("Conv", &shapes[i]);
    }
}

static void test_products_convolve_transposed(void)
{
    static const shape shapes[] = {{2, 32, 16, 2, 2, 0, 1}, {2, 19, 33, 4, 2, 1, 1},
                                   {2, 16, 8, 3, 2, 1, 1},  {2, 16, 48, 3, 1, 1, 1},
                                   {2, 8, 16, 9, 3, 4, 1},  {2, 16, 16, 2, 3, 0, 1},
                                   {3, 16, 16, 2, 2, 0, 1}, {2, 48, 3, 4, 2, 1, 1},
                                   {2, 16, 16, 3, 2, 1, 2}, {2, 3, 16, 4, 2, 1, 1}};
    static const int64_t segs[] = {32, 7, 9};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        if (shapes[i].ci == 48)
            cut(segs, 3, 0);
        products_agree("ConvTranspose", &shapes[i]);
    }
}

/* Kernels of one row over images of one row. */
static void test_products_convolve_lines(void)
{
    static const shape shapes[] = {{1, 32, 32, 3, 1, 1, 1}, {1, 19, 33, 5, 1, 2, 1},
                                   {1, 8, 64, 7, 2, 3, 1},  {1, 16, 40, 3, 1, 4, 4},
                                   {1, 48, 16, 1, 1, 0, 1}, {1, 1, 32, 5, 2, 0, 1},
                                   {1, 64, 3, 9, 1, 4, 1},  {1, 24, 128, 3, 3, 1, 2}};
    static const shape up[] = {
        {1, 32, 16, 4, 2, 1, 1}, {1, 16, 33, 2, 2, 0, 1}, {1, 48, 3, 9, 3, 4, 1}};
    static const shape alone = {1, 64, 64, 5, 1, 2, 1};
    for (size_t i = 0; i < 2 * sizeof shapes / sizeof *shapes; i++) {
        with.wide = i % 2 ? 300 : 0;
        products_agree("Conv", &shapes[i / 2]);
    }
    for (size_t i = 0; i < sizeof up / sizeof *up; i++) {
        with.wide = 100;
        products_agree("ConvTranspose", &up[i]);
    }
    for (int transposed = 0; transposed < 2; transposed++) {
        with.groups = alone.ci;
        with.wide = 200;
        conv_case(transposed ? "ConvTranspose" : "Conv", &alone, NULL);
    }
}

/* What stands in for a product of matrices: single pixels, one segment, nothing behind it but a
 * Relu. Rows of few pixels too, and rows that lie without gaps. */
static void test_a_library_convolves_single_pixels(void)
{
    static const shape shapes[] = {{2, 32, 32, 1, 1, 0, 1},  {2, 33, 64, 1, 1, 0, 1},
                                   {2, 100, 40, 1, 1, 0, 1}, {2, 48, 96, 1, 1, 0, 1},
                                   {2, 8, 16, 1, 1, 0, 1},   {2, 5, 8, 1, 1, 0, 1}};
    static const tg_dtype types[] = {TG_DTYPE_F32, TG_DTYPE_F16, TGI_DTYPE_BF16};
    const tgi_device_ops *all = kdevice_ops;
    const int is_open = device_open_library(all, kdevice);
#ifdef TG_TEST_EMULATED
    CHECK(is_open);
#endif
    if (!is_open)
        return;
    kdevice_ops = device_library_alone(all);
    for (size_t i = 0; i < 2 * sizeof shapes / sizeof *shapes; i++)
        for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
            with.only = types[t];
            with.kinds = TGI_KIND_LIBRARY;
            with.relu_at_most = 1;
            with.wide = i % 2 ? 3 : i == 0 ? 1500 : 0; /* other algorithms for the large */
            conv_case("Conv", &shapes[i / 2], "conv_1x1_cublaslt");
            CHECK(types[t] != TG_DTYPE_F32 || kdevice_off < 1e-5);
        }
    kdevice_ops = all;
    tgi_err err = {0};
    CHECK_OK(kdevice_ops->library(kdevice, 0, &err), err);
}

/* What it is not asked for: its words are too few. */
static void test_a_library_is_not_asked_for_other_convolutions(void)
{
    static const shape shapes[] = {{2, 64, 64, 3, 1, 1, 1}, {2, 64, 64, 1, 2, 0, 1},
                                   {2, 64, 64, 1, 1, 1, 1}, {2, 64, 60, 1, 1, 0, 1},
                                   {2, 3, 64, 1, 1, 0, 1},  {3, 64, 64, 1, 1, 0, 1}};
    static const int64_t two[] = {32, 32};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        with.kinds = TGI_KIND_LIBRARY;
        with.only = TG_DTYPE_F16;
        conv_case("Conv", &shapes[i], shapes[i].ci == 3 ? "conv_plain" : "conv_mma");
    }
    const shape pixels = {2, 64, 64, 1, 1, 0, 1};
    with.kinds = TGI_KIND_LIBRARY;
    with.only = TG_DTYPE_F16;
    with.groups = 2;
    conv_case("Conv", &pixels, "conv_mma");
    with.kinds = TGI_KIND_LIBRARY;
    with.only = TG_DTYPE_F16;
    cut(two, 2, 0);
    conv_case("Conv", &pixels, "conv_mma");
    with.only = TG_DTYPE_F16; /* and not without being allowed */
    conv_case("Conv", &pixels, "conv_mma");
}

int main(int argc, char **argv)
{
    if (argc > 1)
        kseed = strtoull(argv[1], NULL, 10) | 1;
    printf("seed %llu\n", (unsigned long long)kseed);
    kdevice_ops = device_of_test(&kdevice);
    if (!kdevice_ops)
        return 77;
    kcase_pools_open();
    RUN(test_any_convolution_has_a_variant_that_agrees);
    RUN(test_any_transposed_convolution_has_a_variant_that_agrees);
    RUN(test_depthwise_convolution_agrees);
    RUN(test_products_convolve_any_kernel_stride_and_dilation);
    RUN(test_products_convolve_pixels_of_few_channels);
    RUN(test_products_read_segments_as_one_tensor);
    RUN(test_products_upsample_what_they_read);
    RUN(test_products_convolve_in_groups);
    RUN(test_products_convolve_transposed);
    RUN(test_products_convolve_lines);
    RUN(test_a_library_convolves_single_pixels);
    RUN(test_a_library_is_not_asked_for_other_convolutions);
    printf("%d runs of a case by a variant\n", kdevice_runs);
    kcase_pools_close();
    return TEST_END();
}
