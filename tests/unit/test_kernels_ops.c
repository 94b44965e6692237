/* test_kernels_ops.c - tuned pools, resizes, shuffles and pointwise kernels against their
 * references, and box against whole. Usage: test_kernels_ops [SEED]. */
#include "tests/unit/kernel_case.h"

/* Cut c channels of source i into segments, the inner ones of whole blocks of 16. */
static void cut(kcase *k, int i, int aligned)
{
    int64_t left = k->src[i].dim[1];
    k->n_seg[i] = 0;
    while (left > 0) {
        int64_t n = aligned ? 16 * kpick(1, 2) : kpick(1, 20);
        if (n > left || k->n_seg[i] == TGI_MAX_SEG - 1)
            n = left;
        k->seg_c[i][k->n_seg[i]++] = n;
        left -= n;
    }
}

/* A bound of `ulps` float32 roundings of values up to `size`. */
static void finish(kcase *k, double ulps, double size)
{
    k->want = kcase_ref(k);
    k->bound = kfloats(kcount(&k->dst));
    for (size_t i = 0; i < kcount(&k->dst); i++)
        k->bound[i] = (float)(ulps * 6e-8 * size);
    kcase_check(k, 6);
}

static void pool_case(const char *op, int spatial, int64_t kernel, int64_t s, int64_t p,
                      int64_t d, int ceil_mode, int include_pad, int planar)
{
    kcase k;
    kcase_begin(&k, op);
    kset(&k.a.pool.kernel_shape, spatial, kernel);
    kset(&k.a.pool.strides, spatial, s);
    kset(&k.a.pool.pads, 2 * spatial, p);
    kset(&k.a.pool.dilations, spatial, d);
    k.a.pool.ceil_mode = ceil_mode;
    k.a.pool.count_include_pad = include_pad;
    k.planar_src = k.planar_dst = planar;
    k.n_src = 1;
    k.src[0] = kdesc(spatial, planar ? kpick(1, 4) : kpick(1, 50), kpick(5, 7), kpick(5, 15),
                     kpick(5, 120));
    cut(&k, 0, 1);
    if (kcase_build(&k, 4.0f))
        finish(&k, op[0] == 'M' ? 0 : (double)(kernel * kernel * kernel) + 2, 4);
    kcase_end(&k);
}

static void test_pools_agree_with_the_reference(void)
{
    static const char *const ops[] = {"MaxPool", "AveragePool"};
    for (int o = 0; o < 2; o++)
        for (int planar = 0; planar < 2; planar++) {
            pool_case(ops[o], 2, 2, 2, 0, 1, 0, 0, planar);
            pool_case(ops[o], 2, 3, 2, 1, 1, 0, 0, planar);
            pool_case(ops[o], 2, 3, 1, 1, 1, 0, 1, planar);
            pool_case(ops[o], 2, 3, 2, 0, 1, 1, 0, planar);
            pool_case(ops[o], 3, 2, 2, 0, 1, 0, 0, planar);
            pool_case(ops[o], 3, 3, 2, 1, 1, 0, 1, planar);
            pool_case("MaxPool", 2, 3, 1, 2, 2, 0, 0, planar);
        }
}

static void resize_case(int spatial, int mode, int coord, int near_mode, float sy, float sx,
                        int planar)
{
    kcase k;
    kcase_begin(&k, "Resize");
    k.a.resize.mode = mode;
    k.a.resize.coord = coord;
    k.a.resize.nearest = near_mode;
    k.planar_src = k.planar_dst = planar;
    k.n_src = 3;
    k.n_const_from = 1;
    k.src[0] =
        kdesc(spatial, planar ? 3 : kpick(1, 40), kpick(2, 4), kpick(3, 12), kpick(3, 60));
    k.src[2] = (tgi_desc){TG_DTYPE_F32, 1, {spatial + 2}};
    cut(&k, 0, 1);
    kcase_build(&k, 2.0f);
    float *scales = k.data[2];
    scales[0] = scales[1] = 1;
    scales[2] = spatial == 3 ? 2.0f : sy;
    scales[spatial] = sy;
    scales[spatial + 1] = sx;
    tgi_op_ctx ctx;
    kcase_ctx(&k, &ctx);
    if (k.op->infer(&ctx, &k.dst, NULL) == TG_OK) /* cubic weights sum to 1, their sizes to 2 */
        finish(&k, mode == TGI_RESIZE_NEAREST ? 0 : spatial * 12,
               mode == TGI_RESIZE_CUBIC ? 6 : 2);
    kcase_end(&k);
}

static void test_resizes_agree_with_the_reference(void)
{
    static const float scales[][2] = {{2, 2}, {3, 2}, {0.5f, 0.5f}, {1.7f, 0.6f}, {1, 4}};
    for (int planar = 0; planar < 2; planar++)
        for (int coord = 0; coord <= (int)TGI_COORD_PYTORCH_HALF_PIXEL; coord++)
            for (size_t i = 0; i < sizeof scales / sizeof *scales; i++) {
                for (int n = 0; n < 4; n++)
                    resize_case(2, TGI_RESIZE_NEAREST, coord, n, scales[i][0], scales[i][1],
                                planar);
                resize_case(2, TGI_RESIZE_LINEAR, coord, 0, scales[i][0], scales[i][1], planar);
                resize_case(2, TGI_RESIZE_CUBIC, coord, 0, scales[i][0], scales[i][1], planar);
            }
    resize_case(3, TGI_RESIZE_LINEAR, TGI_COORD_HALF_PIXEL, 0, 2, 2, 0);
    resize_case(3, TGI_RESIZE_NEAREST, TGI_COORD_ASYMMETRIC, 2, 2, 2, 0);
}

static void shuffle_case(const char *op, int64_t b, int mode, int64_t c, int planar_src,
                         int planar_dst)
{
    kcase k;
    const int up = op[0] == 'D';
    kcase_begin(&k, op);
    k.a.d2s.blocksize = b;
    k.a.d2s.mode = mode;
    k.planar_src = planar_src;
    k.planar_dst = planar_dst;
    k.n_src = 1;
    k.src[0] = kdesc(2, up ? c * b * b : c, 1, kpick(1, 6) * (up ? 1 : b),
                     kpick(1, 30) * (up ? 1 : b));
    cut(&k, 0, 0);
    if (kcase_build(&k, 2.0f))
        finish(&k, 0, 0);
    kcase_end(&k);
}

static void test_shuffles_move_every_element_to_its_place(void)
{
    for (int mode = 0; mode < 2; mode++)
        for (int layout = 0; layout < 4; layout++)
            for (int64_t b = 2; b < 5; b++) {
                shuffle_case("DepthToSpace", b, mode, kpick(1, 3), layout & 1, layout >> 1);
                shuffle_case("DepthToSpace", b, mode, kpick(4, 33), layout & 1, layout >> 1);
                if (tgi_op_find("SpaceToDepth"))
                    shuffle_case("SpaceToDepth", b, 0, kpick(1, 19), layout & 1, layout >> 1);
            }
}

static void test_concat_copies_segments_that_start_inside_a_block(void)
{
    for (int layout = 0; layout < 4; layout++)
        for (int round = 0; round < 4; round++) {
            kcase k;
            const int64_t h = kpick(1, 6), w = kpick(1, 130), d = kpick(1, 3);
            kcase_begin(&k, "Concat");
            k.a.axis.axis = 1;
            k.n_src = (int)kpick(1, 5);
            k.planar_src = layout & 1;
            k.planar_dst = layout >> 1;
            for (int i = 0; i < k.n_src; i++) {
                k.src[i] = kdesc(round & 1 ? 3 : 2, kpick(1, 40), d, h, w);
                cut(&k, i, 0);
            }
            if (kcase_build(&k, 2.0f))
                finish(&k, 0, 0);
            kcase_end(&k);
        }
}

static void test_slices_copy_what_they_name(void)
{
    for (int layout = 0; layout < 4; layout++)
        for (int round = 0; round < 6; round++) {
            kcase k;
            const int spatial = round & 1 ? 3 : 2;
            kcase_begin(&k, "Slice");
            k.variant = "slice";
            k.opset = 9;
            k.planar_src = layout & 1;
            k.planar_dst = layout >> 1;
            k.n_src = 1;
            k.src[0] = kdesc(spatial, kpick(2, 40), kpick(2, 4), kpick(2, 9), kpick(2, 120));
            cut(&k, 0, 0);
            tgi_ints *from = &k.a.slice.starts, *to = &k.a.slice.ends, *on = &k.a.slice.axes;
            from->n = to->n = on->n = spatial + 1;
            for (int i = 0; i <= spatial; i++) { /* round 0 leaves the channels whole */
                const int64_t n = k.src[0].dim[i + 1];
                on->v[i] = i + 1;
                from->v[i] = round > 1 || i ? kpick(0, n - 1) : 0;
                to->v[i] = round > 1 || i ? kpick(from->v[i] + 1, n) : n;
            }
            if (kcase_build(&k, 2.0f))
                finish(&k, 0, 0);
            kcase_end(&k);
        }
}

static void gate_cases(const char *op)
{
    for (int planar = 0; planar < 2; planar++)
        for (int first = 0; first < 2; first++) {
            kcase k;
            const int64_t c = planar ? 3 : 37;
            kcase_begin(&k, op);
            k.variant = "gate";
            k.n_src = 2;
            k.planar_src = k.planar_dst = planar;
            k.src[first] = kdesc(2, c, 1, 1, 1);
            k.src[1 - first] = kdesc(2, c, 1, kpick(2, 6), kpick(2, 120));
            cut(&k, 0, 1);
            cut(&k, 1, 1);
            if (kcase_build(&k, 2.0f)) {
                for (size_t i = 0; i < kcount(&k.src[1]) && op[0] == 'D'; i++)
                    k.data[1][i] = fabsf(k.data[1][i]) + 0.5f; /* no poles */
                finish(&k, 1, 4);
            }
            kcase_end(&k);
        }
}

static void test_gates_join_each_channel_with_its_number(void)
{
    static const char *const ops[] = {"Mul", "Add", "Sub", "Div"};
    for (int i = 0; i < 4; i++)
        gate_cases(ops[i]);
}

static void test_softmax_over_channels_agrees(void)
{
    for (int planar = 0; planar < 2; planar++)
        for (int round = 0; round < 6; round++) {
            kcase k;
            const int spatial = round & 1 ? 3 : 2;
            kcase_begin(&k, "Softmax");
            k.variant = "softmax";
            k.a.axis.axis = round & 2 ? 1 : -1 - spatial;
            k.planar_src = k.planar_dst = planar;
            k.n_src = 1;
            k.src[0] = kdesc(spatial, planar ? kpick(1, 4) : kpick(1, 50), kpick(1, 3),
                             kpick(1, 6), kpick(1, 150));
            cut(&k, 0, 1);
            if (kcase_build(&k, round > 3 ? 80.0f : 2.0f)) /* far beyond what exp() holds */
                finish(&k, 40, 1);
            kcase_end(&k);
        }
}

/* A weight is off by what its likeness is off: rounded sums of `inner` products and the factor.
 * Sums of weights and of weighted values are those of blocks of 64 keys. Values are below 1, and
 * both sums are off at once. */
static double attention_ulps(const kcase *k, double scale)
{
    const double inner = (double)(k->src[0].dim[1] / k->a.attention.heads);
    const double keys = (double)kcount(&k->src[1]) / (double)k->src[1].dim[1];
    const double likeness = (inner + 2) * inner * scale * fabs((double)k->a.attention.scale);
    return 2 * (2 * likeness + 64 + keys / 64 + 8);
}

/* Keys and values are another image than queries in each other round. */
static void attention_case(int round, int planar, float scale)
{
    kcase k;
    const int spatial = round & 1 ? 3 : 2;
    const int64_t heads = kpick(1, 4), inner = kpick(1, planar ? 2 : 20);
    const int64_t outer = kpick(1, planar ? 2 : 40);
    kcase_begin(&k, "PixelAttention");
    k.variant = "attention";
    k.a.attention.heads = heads;
    k.a.attention.scale = round & 4 ? -0.5f : 1 / sqrtf((float)inner);
    k.planar_src = k.planar_dst = planar;
    k.n_src = 3;
    for (int i = 0; i < 2; i++)
        k.src[i] =
            kdesc(spatial, heads * inner, kpick(1, 3), kpick(1, 6), kpick(1, i ? 40 : 80));
    if (round & 2)
        k.src[0] = k.src[1];
    k.src[2] = k.src[1];
    k.src[2].dim[1] = heads * outer;
    for (int i = 0; i < 3; i++)
        cut(&k, i, 1);
    if (kcase_build(&k, scale))
        finish(&k, attention_ulps(&k, (double)scale), 1);
    kcase_end(&k);
}

static void test_attention_agrees(void)
{
    for (int planar = 0; planar < 2; planar++)
        for (int round = 0; round < 16; round++)
            attention_case(round, planar, round < 8 ? 1.0f : 8.0f);
}

/* One number is a query, a key and a value. Likenesses are whole numbers, up to 4e6 and as far
 * below zero: the float32 sums are exact, and most weights are nothing. */
static void test_attention_of_large_numbers_has_no_gaps(void)
{
    kcase k;
    kcase_begin(&k, "PixelAttention");
    k.n_src = 3;
    k.src[0] = k.src[1] = kdesc(2, 1, 1, 5, 77);
    k.src[2] = kdesc(2, 17, 1, 5, 77);
    CHECK(kcase_build(&k, 2000.0f));
    for (int i = 0; i < 2; i++)
        for (size_t j = 0; j < kcount(&k.src[i]); j++)
            k.data[i][j] = rintf(k.data[i][j] * (i ? 2000.0f : 1.0f));
    finish(&k, 100, 1);
    kcase_end(&k);
}

static void test_pads_copy_mirror_and_repeat(void)
{
    for (int layout = 0; layout < 4; layout++)
        for (int mode = 0; mode <= (int)TGI_PADDING_WRAP; mode++)
            for (int spatial = 2; spatial < 4; spatial++) {
                kcase k;
                kcase_begin(&k, "Pad");
                k.variant = "pad";
                k.opset = 9;
                k.a.pad.mode = mode;
                k.a.pad.value = 0.5f;
                k.planar_src = layout & 1;
                k.planar_dst = layout >> 1;
                k.n_src = 1;
                k.src[0] =
                    kdesc(spatial, kpick(1, 40), kpick(4, 6), kpick(4, 9), kpick(4, 120));
                cut(&k, 0, 0);
                k.a.pad.pads.n = 2 * (spatial + 2);
                for (int i = 0; i < 2 * (spatial + 2); i++) /* negative: a crop */
                    k.a.pad.pads.v[i] = i % (spatial + 2) < 2 ? 0 : kpick(-1, 3);
                if (kcase_build(&k, 2.0f))
                    finish(&k, 0, 0);
                kcase_end(&k);
            }
}

static void test_global_pools_have_the_bits_of_the_reference(void)
{
    static const char *const ops[] = {"GlobalAveragePool", "GlobalMaxPool"};
    for (int layout = 0; layout < 4; layout++)
        for (int o = 0; o < 2; o++)
            for (int spatial = 2; spatial < 4; spatial++) {
                kcase k;
                kcase_begin(&k, ops[o]);
                k.variant = o ? "global_max_pool" : "global_average_pool";
                k.planar_src = layout & 1;
                k.planar_dst = layout >> 1;
                k.n_src = 1;
                k.src[0] =
                    kdesc(spatial, kpick(1, 40), kpick(1, 3), kpick(1, 140), kpick(1, 140));
                cut(&k, 0, 0);
                if (kcase_build(&k, 2.0f))
                    finish(&k, 0, 0);
                kcase_end(&k);
            }
}

/* The numbers of norms come from the same granules, in any layout and any parts. */
static void numbers_case(int spatial, int planar, int64_t per_group)
{
    kcase k;
    kcase_begin(&k, "NormNumbers");
    k.variant = "norm_numbers";
    k.a.numbers.epsilon = 1e-5f;
    k.planar_src = k.planar_dst = planar;
    k.n_src = 3;
    k.n_const_from = 1;
    const int64_t groups = kpick(1, planar ? 2 : 9), c = per_group * groups;
    k.a.numbers.groups = per_group > 1 ? groups : 0;
    k.src[0] = kdesc(spatial, c, kpick(1, 3), kpick(1, 140), kpick(1, 140));
    k.src[1] = k.src[2] = (tgi_desc){TG_DTYPE_F32, 1, {kpick(0, 1) ? c : groups}};
    cut(&k, 0, 0);
    if (kcase_build(&k, 2.0f))
        finish(&k, 0, 0);
    kcase_end(&k);
}

static void test_numbers_of_norms_have_the_bits_of_the_reference(void)
{
    for (int planar = 0; planar < 2; planar++)
        for (int spatial = 2; spatial < 4; spatial++)
            for (int64_t per_group = 1; per_group < 4; per_group++)
                numbers_case(spatial, planar, per_group);
}

/* What InstanceNormalization makes of the source, in float64 throughout. */
static float *instance_norm_of(const kcase *k, const float *scale, const float *shift)
{
    kcase n;
    kcase_begin(&n, "InstanceNormalization");
    n.a.norm.epsilon = 1e-5f;
    n.n_src = 3;
    n.n_const_from = 1;
    n.src[0] = k->src[0];
    n.src[1] = n.src[2] = (tgi_desc){TG_DTYPE_F32, 1, {k->src[0].dim[1]}};
    CHECK(kcase_build(&n, 1.0f));
    memcpy(n.data[0], k->data[0], kcount(&n.src[0]) * sizeof(float));
    memcpy(n.data[1], scale, kcount(&n.src[1]) * sizeof(float));
    memcpy(n.data[2], shift, kcount(&n.src[2]) * sizeof(float));
    float *want = kcase_ref(&n);
    kcase_end(&n);
    return want;
}

/* Source 1 of a NormApply: the numbers of its source 0. */
static void numbers_of(kcase *k, float *scale, float *shift)
{
    kcase n;
    kcase_begin(&n, "NormNumbers");
    n.a.numbers.epsilon = 1e-5f;
    n.n_src = 3;
    n.n_const_from = 1;
    n.src[0] = k->src[0];
    n.src[1] = n.src[2] = (tgi_desc){TG_DTYPE_F32, 1, {k->src[0].dim[1]}};
    CHECK(kcase_build(&n, 1.0f));
    memcpy(n.data[0], k->data[0], kcount(&n.src[0]) * sizeof(float));
    memcpy(scale, n.data[1], kcount(&n.src[1]) * sizeof(float));
    memcpy(shift, n.data[2], kcount(&n.src[2]) * sizeof(float));
    float *numbers = kcase_ref(&n);
    memcpy(k->data[1], numbers, kcount(&k->src[1]) * sizeof(float));
    tgi_free(numbers);
    kcase_end(&n);
}

/* `offset`: the mean of the data; a sum of squares would lose the variance of such. */
static void norm_case(int spatial, int planar, float offset)
{
    float scale[64], shift[64];
    kcase k;
    kcase_begin(&k, "NormApply");
    k.variant = "norm_apply";
    k.planar_src = k.planar_dst = planar;
    k.n_src = 2;
    const int64_t c = planar ? kpick(1, 4) : kpick(1, 40);
    k.src[0] = kdesc(spatial, c, kpick(1, 3), kpick(5, 90), kpick(2, 140));
    k.src[1] = kdesc(spatial, 4 * c, 1, 1, 1);
    cut(&k, 0, 1);
    if (kcase_build(&k, 1.0f)) {
        for (size_t i = 0; i < kcount(&k.src[0]); i++)
            k.data[0][i] += offset;
        numbers_of(&k, scale, shift);
        k.want = instance_norm_of(&k, scale, shift);
        k.bound = kfloats(kcount(&k.dst));
        for (size_t i = 0; i < kcount(&k.dst); i++)
            k.bound[i] = 8 * 6e-8f * 4; /* uniform numbers lie within 1.8 of their deviation;
                                           small samples of them farther */
        kcase_check(&k, 6);
    }
    kcase_end(&k);
}

static void test_norms_hold_their_precision_on_any_offset(void)
{
    static const float offsets[] = {0, 3, -1000, 65535};
    for (int planar = 0; planar < 2; planar++)
        for (int spatial = 2; spatial < 4; spatial++)
            for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++)
                norm_case(spatial, planar, offsets[i]);
}

/* form 0: other activation, 1: channel vector, 2: scalar; second first when `swap`. */
static void eltwise_case(const char *op, int n_src, int form, int swap, int planar)
{
    kcase k;
    kcase_begin(&k, op);
    k.variant = "eltwise";
    k.n_src = n_src;
    k.planar_src = k.planar_dst = planar;
    k.src[0] = kdesc(2, planar ? 3 : 21, 1, kpick(1, 5), kpick(1, 120));
    if (n_src == 2) {
        k.src[1] = form == 0   ? k.src[0]
                   : form == 1 ? (tgi_desc){TG_DTYPE_F32, 4, {1, k.src[0].dim[1], 1, 1}}
                               : (tgi_desc){TG_DTYPE_F32, 1, {1}};
        if (swap) {
            const tgi_desc t = k.src[0];
            k.src[0] = k.src[1];
            k.src[1] = t;
        }
    }
    cut(&k, swap, form != 0);
    kcase_build(&k, 3.0f);
    for (int i = 0; i < n_src; i++)
        for (size_t j = 0; j < kcount(&k.src[i]); j++) {
            float *v = &k.data[i][j]; /* no poles, no roots of negative numbers */
            if (strcmp(op, "Sqrt") == 0 || (strcmp(op, "Div") == 0 && i == 1))
                *v = fabsf(*v) + 0.5f;
        }
    if (n_src == 2 && form) { /* only now: kcase_build made the data */
        const int c = 1 - swap;
        k.cst[c] = (tgi_constant){k.src[c], k.data[c]};
        k.cp[c] = &k.cst[c];
    }
    tgi_op_ctx ctx;
    kcase_ctx(&k, &ctx);
    if (k.op->infer(&ctx, &k.dst, NULL) == TG_OK) {
        k.want = kcase_ref(&k);
        k.bound = kfloats(kcount(&k.dst));
        k.epi[0] = (tgi_epi_step){TGI_EPI_LEAKY, -1, 0.25f, 0, NULL};
        k.n_epi = 1; /* a step behind the node's own */
        for (size_t i = 0; i < kcount(&k.dst); i++) {
            k.bound[i] = 5e-7f * fabsf(k.want[i]) + 2e-7f;
            if (k.want[i] < 0)
                k.want[i] *= 0.25f;
        }
        kcase_check(&k, 5);
    }
    kcase_end(&k);
}

static void test_pointwise_nodes_agree_with_the_reference(void)
{
    static const char *const unary[] = {
        "Relu", "LeakyRelu", "Sigmoid",     "Tanh",      "Abs",      "Sqrt", "Exp",
        "Neg",  "Elu",       "HardSigmoid", "HardSwish", "Identity", "Gelu"};
    static const char *const binary[] = {"Add", "Sub", "Mul", "Div", "Min", "Max"};
    for (int planar = 0; planar < 2; planar++) {
        for (size_t i = 0; i < sizeof unary / sizeof *unary; i++)
            eltwise_case(unary[i], 1, 0, 0, planar);
        for (size_t i = 0; i < sizeof binary / sizeof *binary; i++)
            for (int form = 0; form < 3; form++)
                for (int swap = 0; swap < 2; swap++)
                    eltwise_case(binary[i], 2, form, swap, planar);
        eltwise_case("PRelu", 2, 1, 0, planar);
        eltwise_case("PRelu", 2, 2, 0, planar);
    }
}

int main(int argc, char **argv)
{
    if (argc > 1)
        kseed = strtoull(argv[1], NULL, 10) | 1;
    printf("seed %llu\n", (unsigned long long)kseed);
    kcase_pools_open();
    RUN(test_pools_agree_with_the_reference);
    RUN(test_resizes_agree_with_the_reference);
    RUN(test_shuffles_move_every_element_to_its_place);
    RUN(test_concat_copies_segments_that_start_inside_a_block);
    RUN(test_slices_copy_what_they_name);
    RUN(test_gates_join_each_channel_with_its_number);
    RUN(test_softmax_over_channels_agrees);
    RUN(test_attention_agrees);
    RUN(test_attention_of_large_numbers_has_no_gaps);
    RUN(test_pads_copy_mirror_and_repeat);
    RUN(test_global_pools_have_the_bits_of_the_reference);
    RUN(test_numbers_of_norms_have_the_bits_of_the_reference);
    RUN(test_norms_hold_their_precision_on_any_offset);
    RUN(test_pointwise_nodes_agree_with_the_reference);
    kcase_pools_close();
    return TEST_END();
}
