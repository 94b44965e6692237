/* test_cuda_conv.c - the device's convolutions against the reference, and box against whole.
 * Usage: test_cuda_conv [SEED]. */
#include "tests/cuda/device_case.h"

static int64_t pick(int64_t lo, int64_t hi)
{
    return tg_rand_in(&kseed, lo, hi);
}

static void set3(tg_ints *l, int spatial, int64_t v)
{
    l->n = spatial;
    for (int i = 0; i < spatial; i++)
        l->v[i] = v;
}

typedef struct shape {
    int spatial;
    int64_t ci, co, k, s, p, d;
} shape;

static struct {
    int64_t groups;
    int64_t segs[TG_MAX_SEG];
    int n_seg;
    unsigned doubled; /* bit s: segment s is read doubled */
    tg_dtype only;
    int64_t wide; /* columns at most; 0: 40 */
} with;           /* of the next case */

static void expect_sum(kcase *k)
{
    kcase_bound_of_sum(k);
    for (size_t i = 0; k->n_epi && i < kcount(&k->dst); i++) {
        const float v = k->want[i];
        if (k->epi[0].kind == TG_EPI_RELU) /* does not widen the bound */
            k->want[i] = fmaxf(v, 0);
        else if (k->n_epi == 2) { /* plus another operand, which a half holds exactly: twice */
            k->want[i] = 2 * (v + k->data[k->n_src][i]);
            k->bound[i] = 2 * k->bound[i] + 3e-7f * fabsf(k->want[i]);
        }
    }
}

/* Nothing, relu, or the sum with another image of the result's shape, doubled. */
static void choose_epilogue(kcase *k)
{
    const int64_t which = pick(0, 2);
    if (which == 1)
        k->epi[k->n_epi++] = (tg_epi_step){TG_EPI_RELU, -1, 0, 0, NULL};
    if (which < 2)
        return;
    k->epi[k->n_epi++] = (tg_epi_step){TG_EPI_ADD, k->n_src, 0, 0, NULL};
    k->epi[k->n_epi++] = (tg_epi_step){TG_EPI_MUL, -1, 2, 0, NULL};
    k->n_extra = 1;
    const int i = k->n_src;
    k->src[i] = k->dst;
    k->data[i] = krandom(kcount(&k->dst), 1.0f);
    k->n_seg[i] = 1;
    k->seg_c[i][0] = k->dst.dim[1];
}

static void conv_case(const char *op, const shape *s, const char *variant)
{
    kcase k;
    const int64_t even = with.doubled ? 2 : 1, d = pick(2, 4);
    const int64_t h = pick(3, 14) * even, w = pick(3, with.wide ? with.wide : 40) * even;
    const int transposed = strcmp(op, "ConvTranspose") == 0;
    const int64_t groups = with.groups ? with.groups : 1;
    kcase_begin(&k, op);
    set3(&k.a.conv.kernel_shape, s->spatial, s->k);
    set3(&k.a.conv.strides, s->spatial, s->s);
    set3(&k.a.conv.dilations, s->spatial, s->d);
    set3(&k.a.conv.pads, 2 * s->spatial, s->p);
    k.a.conv.group = groups;
    k.variant = variant;
    k.n_src = pick(0, 3) ? 3 : 2;
    k.n_const_from = 1;
    k.src[0] = kdesc(s->spatial, s->ci, d, h, w);
    k.src[1] = kdesc(s->spatial, (transposed ? s->co : s->ci) / groups, s->k, s->k, s->k);
    k.src[1].dim[0] = transposed ? s->ci : s->co;
    k.src[2] = (tg_desc){TG_DTYPE_F32, 1, {s->co}};
    if (k.n_src == 2)
        k.src[2] = (tg_desc){0};
    for (int i = 0; i < with.n_seg; i++)
        k.seg_c[0][i] = with.segs[i];
    k.n_seg[0] = with.n_seg;
    if (kcase_build(&k, 1.0f)) {
        for (int i = 0; i < with.n_seg; i++)
            k.doubled[i] = with.doubled >> i & 1;
        if (with.doubled)
            kcase_double(&k);
        choose_epilogue(&k);
        kdevice_check(&k, expect_sum, with.only, 3);
    }
    kcase_end(&k);
    memset(&with, 0, sizeof with);
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

static void test_depthwise_convolution_agrees(void)
{
    static const shape shapes[] = {{2, 21, 21, 3, 1, 1, 1}, {2, 64, 64, 5, 2, 2, 1},
                                   {2, 16, 16, 3, 1, 2, 2}, {3, 9, 9, 3, 1, 1, 1},
                                   {2, 3, 3, 3, 1, 1, 1},   {2, 2, 2, 3, 1, 1, 1}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        for (int transposed = 0; transposed < 2; transposed++) {
            with.groups = shapes[i].ci;
            if (shapes[i].ci == 64) {
                with.n_seg = 3;
                with.segs[0] = 16;
                with.segs[1] = 32;
                with.segs[2] = 16;
            }
            conv_case(transposed ? "ConvTranspose" : "Conv", &shapes[i],
                      transposed ? "conv_transpose_depthwise" : "conv_depthwise");
        }
    }
}

int main(int argc, char **argv)
{
    if (argc > 1)
        kseed = strtoull(argv[1], NULL, 10) | 1;
    printf("seed %llu\n", (unsigned long long)kseed);
    kcase_pools_open();
    kdevice_ops = device_emulated();
    RUN(test_any_convolution_has_a_variant_that_agrees);
    RUN(test_any_transposed_convolution_has_a_variant_that_agrees);
    RUN(test_depthwise_convolution_agrees);
    printf("%d runs of a case by a variant\n", kdevice_runs);
    kcase_pools_close();
    return TEST_END();
}
