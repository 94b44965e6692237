/* test_kernels_conv.c - tuned convolutions against the reference, box against whole, and the
 * epilogue and pool beneath them. Usage: test_kernels_conv [SEED]. */
#include "tests/plain_step.h"
#include "tests/unit/kernel_case.h"

/* Winograd adds and subtracts whole patches, so a pixel has the rounding of its largest
 * neighbours, and more of it: its transforms weigh numbers by up to 10 x 10 on the way in and
 * 18 x 18 on the way out. Measured over twelve seeds: at most 0.25 of the largest bound. */
#define WORST 0.5
static void widen_bound(kcase *k)
{
    float most = 0;
    for (size_t i = 0; i < kcount(&k->dst); i++)
        most = fmaxf(most, k->bound[i]);
    for (size_t i = 0; i < kcount(&k->dst); i++)
        k->bound[i] = (float)WORST * most;
}

/* Numbers that bfloat16 holds: products and the bound are float32's then, so a wrong tap or a
 * lost channel shows; what rounding itself costs is another test's. */
static void cut_to_bf16(float *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t u;
        memcpy(&u, &p[i], sizeof u);
        u &= 0xffff0000u;
        memcpy(&p[i], &u, sizeof u);
    }
}

typedef struct shape {
    int spatial;
    int64_t ci, co, k, s, p, d;
} shape;

static int64_t in_groups = 1; /* of the next cases' convolutions */

/* Bit s of `doubled`: segment s is read doubled. */
static void conv_case_of(const char *op, const shape *s, const int64_t *segs, int n_seg,
                         unsigned doubled, int planar_src, int planar_dst, const char *variant)
{
    kcase k;
    const int64_t even = doubled ? 2 : 1, d = kpick(2, 4);
    const int64_t h = kpick(3, 14) * even, w = kpick(3, 40) * even;
    const int transposed = strcmp(op, "ConvTranspose") == 0;
    kcase_begin(&k, op);
    kset(&k.a.conv.kernel_shape, s->spatial, s->k);
    kset(&k.a.conv.strides, s->spatial, s->s);
    kset(&k.a.conv.dilations, s->spatial, s->d);
    kset(&k.a.conv.pads, 2 * s->spatial, s->p);
    const int depthwise = variant && strcmp(variant, "conv_depthwise") == 0;
    k.rearranged = variant && strcmp(variant, "conv_winograd") == 0;
    k.kinds = variant && strstr(variant, "bf16") ? TGI_KIND_BF16 : 0;
    k.phase = kpick(0, 9);
    k.a.conv.group = depthwise ? s->ci : in_groups;
    k.variant = variant;
    k.planar_src = planar_src;
    k.planar_dst = planar_dst;
    k.n_src = kpick(0, 3) ? 3 : 2;
    k.n_const_from = 1;
    k.src[0] = kdesc(s->spatial, s->ci, d, h, w);
    k.src[1] = kdesc(s->spatial, transposed ? s->co : s->ci / k.a.conv.group, s->k, s->k, s->k);
    k.src[1].dim[0] = transposed ? s->ci : s->co;
    k.src[2] = (tgi_desc){TG_DTYPE_F32, 1, {s->co}};
    for (int i = 0; i < n_seg; i++)
        k.seg_c[0][i] = segs[i];
    k.n_seg[0] = n_seg;
    if (kcase_build(&k, 1.0f)) {
        for (int i = 0; k.kinds && i < 2; i++)
            cut_to_bf16(k.data[i], kcount(&k.src[i]));
        for (int i = 0; i < n_seg; i++)
            k.doubled[i] = doubled >> i & 1;
        if (doubled)
            kcase_double(&k);
        kcase_bound_of_sum(&k);
        if (k.rearranged)
            widen_bound(&k);
        if (kpick(0, 1)) { /* relu does not widen the bound */
            k.epi[0] = (tgi_epi_step){TGI_EPI_RELU, -1, 0, 0, NULL};
            k.n_epi = 1;
            for (size_t i = 0; i < kcount(&k.dst); i++)
                k.want[i] = fmaxf(k.want[i], 0);
        }
        kcase_check(&k, 6);
    }
    kcase_end(&k);
}

static void conv_case(const char *op, const shape *s, const int64_t *segs, int n_seg,
                      int planar_src, int planar_dst, const char *variant)
{
    conv_case_of(op, s, segs, n_seg, 0, planar_src, planar_dst, variant);
}

static void test_direct_convolution_agrees_for_any_kernel_stride_and_dilation(void)
{
    static const shape shapes[] = {
        {2, 32, 32, 3, 1, 1, 1}, {2, 16, 48, 3, 1, 1, 1}, {2, 48, 16, 1, 1, 0, 1},
        {2, 19, 33, 3, 1, 1, 1}, {2, 97, 24, 3, 1, 1, 1}, {2, 16, 144, 3, 1, 1, 1},
        {2, 32, 64, 5, 1, 2, 1}, {2, 16, 16, 7, 1, 3, 1}, {2, 32, 32, 3, 2, 1, 1},
        {2, 16, 32, 3, 1, 2, 2}, {2, 16, 40, 5, 3, 0, 1}, {2, 64, 64, 1, 2, 0, 1},
        {3, 16, 32, 3, 1, 1, 1}, {3, 20, 17, 3, 2, 1, 1}, {2, 8, 8, 2, 2, 0, 1},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        conv_case("Conv", &shapes[i], &shapes[i].ci, 1, 0, 0, "conv_direct");
}

static void test_direct_convolution_reads_segments_as_one_tensor(void)
{
    static const int64_t two[] = {32, 16}, odd[] = {96, 1}, many[] = {3, 16, 8, 21};
    const shape a = {2, 48, 32, 3, 1, 1, 1}, b = {2, 97, 48, 3, 1, 1, 1},
                c = {3, 48, 16, 3, 1, 1, 1};
    conv_case("Conv", &a, two, 2, 0, 0, "conv_direct");
    conv_case("Conv", &b, odd, 2, 0, 0, "conv_direct");
    conv_case("Conv", &c, many, 4, 0, 0, "conv_direct");
    conv_case("Conv", &a, two, 2, 0, 1, "conv_few");
}

static void test_winograd_agrees_for_any_channels_padding_and_phase(void)
{
    static const shape shapes[] = {
        {2, 32, 32, 3, 1, 1, 1}, {2, 16, 48, 3, 1, 1, 1},  {2, 19, 33, 3, 1, 1, 1},
        {2, 97, 24, 3, 1, 0, 1}, {2, 16, 144, 3, 1, 2, 1}, {2, 64, 16, 3, 1, 1, 1},
    };
    static const int64_t odd[] = {96, 1}, many[] = {3, 16, 8, 21};
    const shape a = {2, 97, 48, 3, 1, 1, 1}, b = {2, 48, 16, 3, 1, 1, 1};
    for (int again = 0; again < 3; again++)
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
            conv_case("Conv", &shapes[i], &shapes[i].ci, 1, 0, 0, "conv_winograd");
    conv_case("Conv", &a, odd, 2, 0, 0, "conv_winograd");
    conv_case("Conv", &b, many, 4, 0, 0, "conv_winograd");
}

static void test_convolutions_upsample_what_they_read(void)
{
    static const shape shapes[] = {
        {2, 48, 32, 3, 1, 1, 1}, {2, 48, 16, 5, 1, 2, 1}, {2, 48, 16, 3, 2, 1, 1},
        {2, 48, 33, 3, 1, 2, 2}, {2, 48, 16, 1, 1, 0, 1}, {2, 48, 48, 2, 3, 0, 1},
    };
    static const int64_t two[] = {32, 16}, one[] = {48}, three[] = {16, 16, 16};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        conv_case_of("Conv", &shapes[i], one, 1, 1, 0, 0, "conv_direct");
        conv_case_of("Conv", &shapes[i], two, 2, 1, 0, 0, "conv_direct");
        conv_case_of("Conv", &shapes[i], two, 2, 2, 0, 0, "conv_direct");
        conv_case_of("Conv", &shapes[i], three, 3, 5, 0, 0, "conv_direct");
    }
    for (int again = 0; again < 4; again++) {
        conv_case_of("Conv", &shapes[0], one, 1, 1, 0, 0, "conv_winograd");
        conv_case_of("Conv", &shapes[0], two, 2, 1, 0, 0, "conv_winograd");
        conv_case_of("Conv", &shapes[0], two, 2, 2, 0, 0, "conv_winograd");
    }
}

static void test_winograd_shares_large_products_among_threads(void)
{
    static const shape wide = {2, 256, 160, 3, 1, 1, 1};
    conv_case("Conv", &wide, &wide.ci, 1, 0, 0, "conv_winograd");
}

static void test_stem_reads_planar_images(void)
{
    static const shape shapes[] = {{2, 1, 32, 3, 1, 1, 1}, {2, 3, 48, 3, 1, 1, 1},
                                   {2, 3, 64, 7, 2, 3, 1}, {2, 4, 17, 5, 2, 2, 1},
                                   {3, 1, 16, 3, 1, 1, 1}, {2, 2, 96, 1, 1, 0, 1}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        conv_case("Conv", &shapes[i], &shapes[i].ci, 1, 1, 0, "conv_stem");
}

static void test_few_output_channels_agree(void)
{
    static const shape shapes[] = {{2, 64, 1, 3, 1, 1, 1}, {2, 16, 1, 1, 1, 0, 1},
                                   {2, 48, 3, 3, 1, 1, 1}, {2, 21, 2, 5, 2, 2, 1},
                                   {3, 16, 4, 3, 1, 1, 1}, {2, 32, 6, 3, 1, 2, 2}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        conv_case("Conv", &shapes[i], &shapes[i].ci, 1, 0, 1, "conv_few");
}

static void test_planar_convolutions_agree(void)
{
    static const shape shapes[] = {{2, 3, 3, 3, 1, 1, 1}, {2, 1, 1, 7, 1, 3, 1},
                                   {2, 3, 2, 3, 2, 1, 1}, {2, 2, 4, 3, 1, 2, 2},
                                   {3, 1, 3, 3, 1, 1, 1}, {2, 4, 5, 1, 1, 0, 1}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        conv_case("Conv", &shapes[i], &shapes[i].ci, 1, 1, 1, "conv_planar");
}

static void test_depthwise_convolution_agrees(void)
{
    static const shape shapes[] = {{2, 21, 21, 3, 1, 1, 1},
                                   {2, 64, 64, 5, 2, 2, 1},
                                   {2, 16, 16, 3, 1, 2, 2},
                                   {3, 9, 9, 3, 1, 1, 1}};
    static const int64_t segs[] = {16, 32, 16};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        conv_case("Conv", &shapes[i], shapes[i].ci == 64 ? segs : &shapes[i].ci,
                  shapes[i].ci == 64 ? 3 : 1, 0, 0, "conv_depthwise");
}

static void test_grouped_convolution_agrees_for_any_size_of_groups(void)
{
    static const shape shapes[] = {
        {2, 32, 32, 3, 1, 1, 1}, {2, 64, 64, 3, 1, 1, 1}, {2, 64, 96, 3, 2, 1, 1},
        {2, 20, 30, 3, 1, 2, 2}, {2, 18, 12, 1, 1, 0, 1}, {2, 33, 99, 5, 1, 2, 1},
        {3, 16, 32, 3, 1, 1, 1}, {2, 40, 40, 7, 1, 3, 1}, {2, 160, 24, 3, 1, 1, 1}};
    static const int64_t groups[] = {8, 8, 2, 10, 3, 33, 4, 2, 2}, segs[] = {7, 16, 41};
    static const shape stem = {2, 4, 32, 3, 1, 1, 1};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        in_groups = groups[i];
        conv_case("Conv", &shapes[i], &shapes[i].ci, 1, 0, 0, "conv_grouped");
        if (shapes[i].ci == 64)
            conv_case("Conv", &shapes[i], segs, 3, 0, 0, "conv_grouped");
    }
    for (in_groups = 2; in_groups <= 4; in_groups += 2)
        conv_case("Conv", &stem, &stem.ci, 1, 1, 0, "conv_grouped");
    in_groups = 1;
}

static void test_planar_convolutions_in_groups_agree(void)
{
    static const shape shapes[] = {{2, 2, 2, 3, 2, 1, 1},
                                   {2, 4, 4, 3, 1, 1, 1},
                                   {2, 3, 3, 5, 1, 2, 1},
                                   {2, 4, 12, 3, 1, 1, 1},
                                   {3, 2, 4, 3, 1, 1, 1}};
    static const int64_t groups[] = {2, 2, 3, 2, 2};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        in_groups = groups[i];
        conv_case("Conv", &shapes[i], &shapes[i].ci, 1, 1, 1, "conv_planar");
    }
    in_groups = 1;
}

static void test_transposed_convolution_agrees(void)
{
    static const shape shapes[] = {{2, 32, 16, 2, 2, 0, 1}, {2, 19, 33, 4, 2, 1, 1},
                                   {2, 16, 8, 3, 2, 1, 1},  {2, 16, 48, 3, 1, 1, 1},
                                   {2, 8, 16, 9, 3, 4, 1},  {2, 16, 16, 2, 3, 0, 1},
                                   {3, 16, 16, 2, 2, 0, 1}, {2, 48, 16, 4, 2, 1, 1}};
    static const int64_t segs[] = {32, 7, 9};
    if (!tgi_op_find("ConvTranspose"))
        return;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        conv_case("ConvTranspose", &shapes[i], shapes[i].ci == 48 ? segs : &shapes[i].ci,
                  shapes[i].ci == 48 ? 3 : 1, 0, 0, "conv_transpose");
}

static void test_transposed_convolution_to_few_channels_agrees(void)
{
    static const shape shapes[] = {
        {2, 64, 3, 4, 2, 1, 1}, {2, 56, 1, 9, 2, 3, 1}, {2, 19, 4, 9, 3, 4, 1},
        {2, 16, 2, 2, 2, 0, 1}, {2, 40, 6, 3, 2, 1, 2}, {2, 16, 1, 2, 3, 0, 1},
        {3, 16, 3, 2, 2, 0, 1}, {2, 16, 2, 3, 1, 1, 1}, {2, 48, 3, 4, 4, 0, 1}};
    static const int64_t segs[] = {32, 7, 9};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        conv_case("ConvTranspose", &shapes[i], shapes[i].ci == 48 ? segs : &shapes[i].ci,
                  shapes[i].ci == 48 ? 3 : 1, 0, 1, "conv_transpose_few");
}

static void test_transposed_convolution_of_planar_images_agrees(void)
{
    static const shape shapes[] = {{2, 3, 3, 4, 2, 1, 1}, {2, 1, 1, 9, 3, 4, 1},
                                   {2, 2, 4, 3, 2, 1, 2}, {2, 4, 5, 2, 3, 0, 1},
                                   {3, 1, 2, 3, 2, 1, 1}, {2, 3, 1, 9, 2, 3, 1}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        conv_case("ConvTranspose", &shapes[i], &shapes[i].ci, 1, 1, 1, "conv_transpose_planar");
}

static void test_bf16_convolution_agrees_for_any_kernel_stride_and_dilation(void)
{
    static const shape shapes[] = {
        {2, 32, 32, 3, 1, 1, 1}, {2, 16, 48, 3, 1, 1, 1}, {2, 48, 16, 1, 1, 0, 1},
        {2, 19, 33, 3, 1, 1, 1}, {2, 97, 24, 3, 1, 1, 1}, {2, 16, 144, 3, 1, 1, 1},
        {2, 32, 64, 5, 1, 2, 1}, {2, 16, 16, 7, 1, 3, 1}, {2, 32, 32, 3, 2, 1, 1},
        {2, 16, 32, 3, 1, 2, 2}, {2, 16, 40, 5, 3, 0, 1}, {2, 64, 64, 1, 2, 0, 1},
        {3, 16, 32, 3, 1, 1, 1}, {3, 20, 17, 3, 2, 1, 1}, {2, 8, 8, 2, 2, 0, 1},
    };
    static const int64_t odd[] = {96, 1}, many[] = {3, 16, 8, 21};
    const shape a = {2, 97, 48, 3, 1, 1, 1}, b = {3, 48, 16, 3, 1, 1, 1},
                flat = {2, 48, 16, 3, 1, 1, 1};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        conv_case("Conv", &shapes[i], &shapes[i].ci, 1, 0, 0, "conv_bf16");
    conv_case("Conv", &a, odd, 2, 0, 0, "conv_bf16");
    conv_case("Conv", &b, many, 4, 0, 0, "conv_bf16");
    conv_case_of("Conv", &a, odd, 2, 1, 0, 0, "conv_bf16");
    conv_case_of("Conv", &flat, many, 4, 10, 0, 0, "conv_bf16");
}

static void test_bf16_transposed_convolution_agrees(void)
{
    static const shape shapes[] = {{2, 32, 16, 2, 2, 0, 1}, {2, 19, 33, 4, 2, 1, 1},
                                   {2, 16, 8, 3, 2, 1, 1},  {2, 16, 48, 3, 1, 1, 1},
                                   {2, 8, 16, 9, 3, 4, 1},  {2, 16, 16, 2, 3, 0, 1},
                                   {3, 16, 16, 2, 2, 0, 1}, {2, 48, 16, 4, 2, 1, 1},
                                   {2, 16, 16, 3, 2, 1, 2}, {3, 16, 16, 3, 2, 1, 1}};
    static const int64_t segs[] = {32, 7, 9};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        conv_case("ConvTranspose", &shapes[i], shapes[i].ci == 48 ? segs : &shapes[i].ci,
                  shapes[i].ci == 48 ? 3 : 1, 0, 0, "conv_transpose_bf16");
}

/* One channel times one: the result is the product of the two rounded numbers. */
static void check_bf16_product(float x, float w, float want)
{
    kcase k;
    kcase_begin(&k, "Conv");
    kset(&k.a.conv.kernel_shape, 2, 1);
    k.variant = "conv_bf16";
    k.kinds = TGI_KIND_BF16;
    k.n_src = 2;
    k.n_const_from = 1;
    k.src[0] = kdesc(2, 8, 1, 3, 5);
    k.src[1] = kdesc(2, 8, 1, 1, 1);
    k.src[1].dim[0] = 8;
    CHECK(kcase_build(&k, 1.0f));
    memset(k.data[0], 0, kcount(&k.src[0]) * sizeof(float));
    memset(k.data[1], 0, kcount(&k.src[1]) * sizeof(float));
    for (int i = 0; i < 15; i++)
        k.data[0][3 * 15 + i] = x; /* channel 3 */
    k.data[1][5 * 8 + 3] = w;      /* of output channel 5 */
    k.want = kfloats(kcount(&k.dst));
    k.bound = kfloats(kcount(&k.dst));
    for (size_t i = 0; i < kcount(&k.dst); i++) {
        k.want[i] = i / 15 == 5 ? want : 0;
        k.bound[i] = 0;
    }
    kcase_check(&k, 1);
    kcase_end(&k);
}

static void test_bf16_rounds_pixels_and_weights_to_nearest_even(void)
{
    const float down = 1 + 0x1p-8f, up = 1 + 3 * 0x1p-8f; /* halfway to the neighbours */
    check_bf16_product(1, down, 1);
    check_bf16_product(1, up, 1 + 0x1p-6f);
    check_bf16_product(1, down + 0x1p-20f, 1 + 0x1p-7f);
    check_bf16_product(down, 1, 1);
    check_bf16_product(up, 1, 1 + 0x1p-6f);
    check_bf16_product(down + 0x1p-20f, 1, 1 + 0x1p-7f);
    check_bf16_product(-up, up, -(1 + 0x1p-6f) * (1 + 0x1p-6f));
}

static void test_bf16_is_taken_where_asked_for_and_cheaper_only(void)
{
    kcase k;
    tgi_op_ctx ctx;
    tgi_layout_hint lay;
    const tgi_isa isa = tgi_isa_detect(TGI_ISA_COUNT);
    const tgi_kernel_set *be = tgi_backend_for(isa);
    kcase_begin(&k, "Conv");
    kset(&k.a.conv.kernel_shape, 2, 3);
    kset(&k.a.conv.pads, 4, 1);
    k.n_src = 2;
    k.n_const_from = 1;
    k.src[0] = kdesc(2, 64, 1, 9, 9);
    k.src[1] = kdesc(2, 64, 1, 3, 3);
    k.src[1].dim[0] = 64;
    CHECK(kcase_build(&k, 1.0f));
    kcase_ctx(&k, &ctx);
    kcase_layout(&k, be->lanes, &lay);
    const tgi_variant *v = tgi_variant_pick(be, "Conv", &ctx, &lay);
    CHECK_STR(v->name, "conv_direct"); /* not asked for */
    /* A plan offers the kinds that its processor has: there is AVX-512 without AVX512_BF16. */
    lay.kinds = tgi_isa_has_bf16(isa) ? TGI_KIND_BF16 : 0;
    v = tgi_variant_pick(be, "Conv", &ctx, &lay);
    CHECK_STR(v->name, lay.kinds ? "conv_bf16" : "conv_direct");
    lay.exact = 0;
    v = tgi_variant_pick(be, "Conv", &ctx, &lay);
    CHECK_STR(v->name, "conv_winograd"); /* 3x3: fewer products beat faster ones */
    kcase_end(&k);
}

/* ---- epilogue ---------------------------------------------------------------------------- */

/* One step on a blocked or planar row of odd length against libm, a few float32 ulps wide. */
static void epilogue_case(const tgi_kernel_set *be, tgi_epi_kind kind, int form, int planar)
{
    const tgi_desc d = kdesc(2, 19, 1, 3, 37);
    const tgi_box box = tgi_box_full(&d);
    const int cb = planar ? 1 : be->lanes;
    float *a = krandom(kcount(&d), 8.0f), *b = krandom(kcount(&d), 2.0f), vec[32] = {0};
    for (int c = 0; c < 19; c++)
        vec[c] = 1.5f + tg_rand_unit(&kseed);
    for (size_t i = 0; i < kcount(&d) && kind == TGI_EPI_SQRT; i++)
        a[i] = fabsf(a[i]);
    kview v = kview_make(19, cb, &box), o = kview_make(19, cb, &box);
    kview_fill(&v, &d, a, 0, &box);
    kview_fill(&o, &d, b, 0, &box);
    const tgi_operand src = {1, &o.v};
    const int unary = kind < TGI_EPI_ADD && kind != TGI_EPI_PRELU;
    const tgi_epi_step s = {kind, form == 0 && kind >= TGI_EPI_ADD ? 0 : -1, 0.3f, 0.75f,
                            (form == 1 && !unary) || kind == TGI_EPI_PRELU ? vec : NULL};
    const tgi_call call = {
        .src = &src, .dst = &v.v, .box = box, .epi = &s, .n_epi = 1, .threads = kpool[2]};
    tgi_epilogue_apply(be, &call);
    int bad = 0;
    for (int64_t c = 0; c < 19; c++)
        for (int64_t y = 0; y < 3; y++)
            for (int64_t x = 0; x < 37; x++) {
                const size_t at = kat(&d, c, 0, y, x);
                const double other = unary        ? 0
                                     : s.src >= 0 ? (double)b[at]
                                     : s.vec      ? (double)vec[c]
                                                  : (double)s.a;
                const double want = plain_step(&s, (double)a[at], other);
                const double got = (double)*tgi_view_at(&v.v, c, 0, y, x);
                bad += !(fabs(got - want) <= 4e-7 * fabs(want) + 2e-7);
            }
    if (bad)
        fprintf(stderr, "step %d form %d on %s: %d wrong\n", (int)kind, form, be->name, bad);
    CHECK_EQ(bad, 0);
    for (int64_t c = 19; c < tgi_view_blocks(&v.v) * cb; c++)
        CHECK_NEAR(*tgi_view_at(&v.v, c, 0, 1, 36), 0, 0);
    tgi_free(a);
    tgi_free(b);
    tgi_free(v.mem);
    tgi_free(o.mem);
}

static void test_every_epilogue_step_agrees_with_libm(void)
{
    for (int isa = 0; isa < TGI_ISA_COUNT; isa++)
        if (tgi_isa_detect((tgi_isa)isa) == (tgi_isa)isa)
            for (int kind = 0; kind <= (int)TGI_EPI_MAX; kind++)
                for (int form = 0; form < 3; form++)
                    for (int planar = 0; planar < 2; planar++)
                        epilogue_case(tgi_backend_for((tgi_isa)isa), (tgi_epi_kind)kind, form,
                                      planar);
}

/* ---- threads ----------------------------------------------------------------------------- */

static void count_job(void *arg, int64_t job, int thread)
{
    int *seen = arg;
    __atomic_fetch_add(&seen[job], 1 + 1000 * (thread < 0 || thread > 2), __ATOMIC_RELAXED);
}

static void test_every_job_runs_once_whatever_the_pool(void)
{
    static int seen[1000];
    for (int n = 1; n < 4; n++)
        for (int round = 0; round < 200; round++) {
            const int64_t jobs = kpick(0, 40);
            memset(seen, 0, sizeof seen);
            tgi_parallel(kpool[n], jobs, count_job, seen);
            int bad = 0;
            for (int i = 0; i < 1000; i++)
                bad += seen[i] != (i < jobs);
            CHECK_EQ(bad, 0);
        }
}

static void test_the_environment_caps_the_instruction_set(void)
{
    tgi_isa isa;
    tg_env env;
    const tgi_isa here = tgi_isa_detect(TGI_ISA_COUNT);
    tg_env_lend(&env, "TEGULA_ISA", "portable");
    CHECK_EQ(tgi_isa_detect(TGI_ISA_COUNT), TGI_ISA_PORTABLE);
    setenv("TEGULA_ISA", "avx512-nobf16", 1); /* one of AVX-512 without its bfloat16 products */
    CHECK(!tgi_isa_has_bf16(TGI_ISA_AVX512));
    CHECK(tgi_isa_detect(TGI_ISA_COUNT) >= here);
    setenv("TEGULA_ISA", "sse9", 1); /* no set: no cap */
    CHECK(tgi_isa_detect(TGI_ISA_COUNT) >= here);
    tg_env_back(&env);
    CHECK_EQ(tgi_isa_detect(TGI_ISA_COUNT), here);
    CHECK(tgi_isa_parse("avx2", &isa) && isa == TGI_ISA_AVX2);
    CHECK(!tgi_isa_parse("sse9", &isa));
    CHECK_EQ(tgi_isa_detect(TGI_ISA_PORTABLE), TGI_ISA_PORTABLE);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        kseed = strtoull(argv[1], NULL, 10) | 1;
    printf("seed %llu\n", (unsigned long long)kseed);
    kcase_pools_open();
    RUN(test_every_job_runs_once_whatever_the_pool);
    RUN(test_the_environment_caps_the_instruction_set);
    RUN(test_every_epilogue_step_agrees_with_libm);
    RUN(test_direct_convolution_agrees_for_any_kernel_stride_and_dilation);
    RUN(test_direct_convolution_reads_segments_as_one_tensor);
    RUN(test_winograd_agrees_for_any_channels_padding_and_phase);
    RUN(test_convolutions_upsample_what_they_read);
    RUN(test_winograd_shares_large_products_among_threads);
    RUN(test_stem_reads_planar_images);
    RUN(test_few_output_channels_agree);
    RUN(test_planar_convolutions_agree);
    RUN(test_depthwise_convolution_agrees);
    RUN(test_grouped_convolution_agrees_for_any_size_of_groups);
    RUN(test_planar_convolutions_in_groups_agree);
    RUN(test_transposed_convolution_agrees);
    RUN(test_transposed_convolution_to_few_channels_agrees);
    RUN(test_transposed_convolution_of_planar_images_agrees);
    RUN(test_bf16_is_taken_where_asked_for_and_cheaper_only);
    if (!tgi_isa_has_bf16(tgi_isa_detect(TGI_ISA_COUNT)))
        printf("no AVX512_BF16 here: the tests of bf16 kernels check nothing\n");
    RUN(test_bf16_convolution_agrees_for_any_kernel_stride_and_dilation);
    RUN(test_bf16_transposed_convolution_agrees);
    RUN(test_bf16_rounds_pixels_and_weights_to_nearest_even);
    kcase_pools_close();
    return TEST_END();
}
