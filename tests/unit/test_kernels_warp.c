/* test_kernels_warp.c - tuned kernels that read where data point to against their references, and box
 * against whole: warps, consistency of flows, deformable convolutions. Among the data are places far
 * outside, and no numbers. Usage: test_kernels_warp [SEED]. */
#include "tests/unit/kernel_case.h"

/* Cut c channels of source i into segments of any size, or of whole blocks of 16. */
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

/* Every few numbers of source i one that is far, or none; the others up to `scale`. */
static void make_wild(kcase *k, int i, float scale)
{
    static const float far[] = {NAN, INFINITY, -INFINITY, 3e38f, -1e9f, -0.0f, 0.5f, -1.0f};
    for (size_t j = 0; j < kcount(&k->src[i]); j++)
        k->data[i][j] =
            kpick(0, 19) ? scale * k->data[i][j] : far[kpick(0, sizeof far / sizeof *far - 1)];
}

static void finish(kcase *k, double most)
{
    k->want = kcase_ref(k);
    k->bound = kfloats(kcount(&k->dst));
    for (size_t i = 0; i < kcount(&k->dst); i++)
        k->bound[i] = (float)most;
    kcase_check(k, 6);
}

/* ---- Flows ------------------------------------------------------------------------------- */

static void warp_case(int layout, int nearest, int64_t c, int aligned)
{
    kcase k;
    kcase_begin(&k, "FlowWarp");
    k.variant = "flow_warp";
    *(int *)k.a.bytes = nearest;
    k.planar_src = layout & 1;
    k.planar_dst = layout >> 1;
    k.n_src = 2;
    k.src[0] = kdesc(2, c, 1, kpick(1, 12), kpick(1, 150));
    k.src[1] = k.src[0];
    k.src[1].dim[1] = 2;
    cut(&k, 0, aligned);
    cut(&k, 1, 0);
    if (kcase_build(&k, 2.0f)) {
        make_wild(&k, 1, kpick(0, 1) ? 2.0f : 40.0f);
        finish(&k, 0);
    }
    kcase_end(&k);
}

static void test_warps_have_the_numbers_of_the_reference(void)
{
    for (int layout = 0; layout < 4; layout++)
        for (int nearest = 0; nearest < 2; nearest++)
            for (int round = 0; round < 4; round++)
                warp_case(layout, nearest, round < 2 ? kpick(1, 4) : kpick(5, 70), round & 1);
}

static void test_consistency_has_the_numbers_of_the_reference(void)
{
    for (int layout = 0; layout < 4; layout++)
        for (int round = 0; round < 4; round++) {
            kcase k;
            kcase_begin(&k, "FlowConsistency");
            k.variant = "flow_consistency";
            k.planar_src = layout & 1;
            k.planar_dst = layout >> 1;
            k.n_src = 2;
            k.src[0] = k.src[1] = kdesc(2, 2, 1, kpick(1, 12), kpick(1, 150));
            cut(&k, 0, 0);
            cut(&k, 1, 0);
            if (kcase_build(&k, 1.0f)) {
                make_wild(&k, round & 1, round & 2 ? 8.0f : 1.0f);
                finish(&k, 0);
            }
            kcase_end(&k);
        }
}

/* ---- Deformable convolutions ------------------------------------------------------------- */

typedef struct deformed {
    int64_t c, m, groups, kernel, stride, dilation;
    int aligned, masked, relu;
} deformed;

static void deform_case(const deformed *f)
{
    kcase k;
    tgi_op_ctx ctx;
    kcase_begin(&k, "DeformConv");
    deform_attrs *a = (deform_attrs *)(void *)k.a.bytes;
    const int64_t taps = f->kernel * f->kernel, terms = f->c * taps;
    k.variant = "deform";
    a->offset_group = f->groups;
    kset(&a->conv.strides, 2, f->stride);
    kset(&a->conv.dilations, 2, f->dilation);
    kset(&a->conv.pads, 4, kpick(0, 2) + f->kernel / 2 * f->dilation);
    k.n_src = f->masked ? 5 : 4;
    k.src[0] = kdesc(2, f->c, 1, kpick(3, 12), kpick(3, 150));
    k.src[1] = (tgi_desc){TG_DTYPE_F32, 4, {f->m, f->c, f->kernel, f->kernel}};
    kcase_ctx(&k, &ctx);
    tgi_geom g;
    CHECK(tgi_conv_geometry(&ctx, &g, NULL) == TG_OK);
    k.src[2] = kdesc(2, 2 * f->groups * taps, 1, g.out[TGI_Y], g.out[TGI_X]);
    k.src[3] = (tgi_desc){TG_DTYPE_F32, 1, {f->m}};
    if (f->masked)
        k.src[4] = kdesc(2, f->groups * taps, 1, g.out[TGI_Y], g.out[TGI_X]);
    cut(&k, 0, f->aligned);
    cut(&k, 2, 1);
    kcase_build(&k, 1.0f);
    make_wild(&k, 2, 3.0f);
    for (int i = 1; i < 4; i += 2) { /* only now: kcase_build made the data */
        k.cst[i] = (tgi_constant){k.src[i], k.data[i]};
        k.cp[i] = &k.cst[i];
    }
    k.epi[0] = (tgi_epi_step){TGI_EPI_RELU, -1, 0, 0, NULL};
    k.n_epi = f->relu;
    kcase_ctx(&k, &ctx);
    tgi_err err = {0};
    CHECK_OK(k.op->infer(&ctx, &k.dst, &err), err);
    if (!err.text[0]) {
        k.want = kcase_ref(&k);
        k.bound = kfloats(kcount(&k.dst));
        for (size_t i = 0; i < kcount(&k.dst); i++) {
            k.bound[i] = (float)((double)((terms + 8) * terms) * 6e-8);
            if (f->relu && k.want[i] < 0)
                k.want[i] = 0;
        }
        kcase_check(&k, 5);
    }
    kcase_end(&k);
}

static void test_deformable_convolutions_agree(void)
{
    static const deformed forms[] = {
        {128, 40, 16, 3, 1, 1, 1, 1, 0}, {64, 70, 4, 3, 1, 1, 1, 1, 1},
        {48, 33, 6, 3, 1, 1, 0, 1, 0},   {37, 20, 1, 3, 2, 1, 0, 0, 1},
        {21, 17, 21, 3, 1, 2, 0, 1, 0},  {12, 50, 3, 5, 1, 1, 0, 1, 0},
        {70, 9, 7, 1, 1, 1, 0, 0, 1},    {5, 130, 5, 2, 3, 3, 0, 1, 0},
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        for (int round = 0; round < 2; round++)
            deform_case(&forms[i]);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        kseed = strtoull(argv[1], NULL, 10) | 1;
    printf("seed %llu\n", (unsigned long long)kseed);
    kcase_pools_open();
    RUN(test_warps_have_the_numbers_of_the_reference);
    RUN(test_consistency_has_the_numbers_of_the_reference);
    RUN(test_deformable_convolutions_agree);
    kcase_pools_close();
    return TEST_END();
}
