/* device_case.h - a case of kernel_case.h on a device, for every type of activations it has.
 *
 * As there: the whole image near the reference, random boxes with the bits of the whole from
 * views that hold what `need` asked for and NaN elsewhere, NaN still everywhere outside of the
 * box, zeros in unused lanes. Beyond that, stored columns outside the image hold NaN here, and
 * numbers are rounded to the element type before the reference sees them. */
#ifndef TG_DEVICE_CASE_H
#define TG_DEVICE_CASE_H

#include "tests/cuda/device_run.h"
#include "tests/unit/kernel_case.h"

static const tgi_device_ops *kdevice_ops;
static tgi_device *kdevice;
static int kdevice_runs;   /* cases that a variant took */
static double kdevice_off; /* relative L2 distance of the last whole image from the reference */

/* What a case wants of the element type at hand: fills want and bound, for numbers that are
 * exact in it. */
typedef void (*kdevice_expect)(kcase *k);

/* Columns outside of the image hold anything on a device. */
static void kdevice_poison(const kcase *k, krun *r)
{
    for (int i = 0; i < k->n_src; i++)
        for (int s = 0; s < r->op[i].n_seg; s++) {
            kview *v = &r->seg[i][s];
            const int64_t w =
                tgi_desc_axis(&k->src[i], TGI_X) / (r->view[i][s].doubled ? 2 : 1);
            for (size_t at = 0; at < v->n; at++) {
                const int64_t column = (int64_t)(at % v->v.y_pitch) / v->v.cb + v->v.x0;
                if (column < 0 || column >= w)
                    v->mem[at] = NAN;
            }
        }
}

/* As kcase_run. */
static int kdevice_run(const kcase *k, const tgi_kernel_set *be, const tgi_variant *v,
                       const void *packed, size_t packed_bytes, const tgi_box *box, float *out,
                       int compare)
{
    tgi_op_ctx ctx;
    krun r;
    tgi_err err = {0};
    device_block blocks[TGI_OP_MAX_SRC + 1];
    int n = 0, bad = 0;
    kcase_ctx(k, &ctx);
    krun_make(k, &r, v, box, 0);
    kdevice_poison(k, &r);
    for (int i = 0; i < TGI_OP_MAX_SRC; i++)
        for (int s = 0; s < r.op[i].n_seg; s++)
            blocks[n++] = (device_block){r.seg[i][s].mem, r.seg[i][s].n, 0};
    blocks[n++] = (device_block){r.dst.mem, r.dst.n, 1};
    const tgi_call call = {.ctx = &ctx,
                           .src = r.op,
                           .dst = &r.dst.v,
                           .box = *box,
                           .epi = k->epi,
                           .n_epi = k->n_epi,
                           .packed = packed};
    const int64_t slack = compare ? tg_rand_in(&kseed, 0, 20) : 0;
    CHECK_OK(
        device_run(kdevice_ops, kdevice, be, v, &call, packed_bytes, slack, blocks, n, &err),
        err);
    CHECK_EQ(kcase_stray(&r.dst.v, box), 0);
    bad += kcase_take(k, &r.dst.v, box, compare, out);
    krun_free(&r);
    return bad;
}

/* A half has eleven bits; below 2^-14 it has steps of 2^-24. A bfloat16 has eight, and they
 * reach as far down as those of float32. */
static double kdevice_rounding(const tgi_kernel_set *be, double value)
{
    if (be->element == TGI_DTYPE_BF16)
        return fabs(value) * 0x1.01p-8;
    return be->element == TG_DTYPE_F16 ? fabs(value) * 0x1.01p-11 + 0x1p-24 : 0;
}

static void kdevice_near(const kcase *k, const tgi_kernel_set *be, const tgi_variant *v,
                         const float *whole)
{
    size_t off = 0;
    double worst = 0, d2 = 0, w2 = 0;
    for (size_t i = 0; i < kcount(&k->dst); i++) {
        const double d = fabs((double)whole[i] - (double)k->want[i]);
        const double bound = (double)k->bound[i] + kdevice_rounding(be, (double)k->want[i]);
        d2 += d * d;
        w2 += (double)k->want[i] * (double)k->want[i];
        off += !(d <= bound);
        worst = !(d / bound <= worst) ? d / bound : worst;
    }
    kdevice_off = w2 > 0 ? sqrt(d2 / w2) : 0;
    if (off)
        fprintf(stderr, "%s %s on %s: %zu of %zu beyond the bound, worst %g of it\n",
                k->op->name, v->name, be->name, off, kcount(&k->dst), worst);
    CHECK_EQ(off, 0);
}

/* The cheapest variant; of groups of warps the one that the case names, whatever it costs: they
 * are for large products, and the cases are small. */
static const tgi_variant *kdevice_pick(const kcase *k, const tgi_kernel_set *be,
                                       const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    if (!(k->kinds & TGI_KIND_WGMMA))
        return tgi_variant_pick(be, k->op->name, ctx, lay);
    for (const tgi_variant *const *v = be->variants; *v; v++)
        if (strcmp((*v)->name, k->variant) == 0 && (*v)->accepts(ctx, lay))
            return *v;
    return NULL;
}

static void kdevice_backend(kcase *k, const tgi_kernel_set *be, int boxes)
{
    tgi_op_ctx ctx;
    tgi_layout_hint lay;
    kcase_ctx(k, &ctx);
    kcase_layout(k, be->lanes, &lay);
    const tgi_variant *v = kdevice_pick(k, be, &ctx, &lay);
    CHECK(v != NULL);
    if (!v)
        return;
    if (k->variant)
        CHECK_STR(v->name, k->variant);
    kdevice_runs++;
    const size_t pb = v->packed_bytes ? v->packed_bytes(&ctx, &lay) : 0;
    char *packed = (char *)kfloats(pb / 4 + 16);
    float *whole = kfloats(kcount(&k->dst));
    if (pb)
        v->pack(&ctx, &lay, kalign(packed));
    const tgi_box full = tgi_box_full(&k->dst);
    kdevice_run(k, be, v, kalign(packed), pb, &full, whole, 0);
    kdevice_near(k, be, v, whole);
    for (int i = 0; i < boxes; i++) {
        tgi_box box = full;
        for (int a = 2; a < box.rank; a++) {
            box.ax[a].lo = tg_rand_in(&kseed, 0, full.ax[a].hi - 1);
            box.ax[a].hi = tg_rand_in(&kseed, box.ax[a].lo + 1, full.ax[a].hi);
        }
        const int bad = kdevice_run(k, be, v, kalign(packed), pb, &box, whole, 1);
        if (bad)
            fprintf(stderr, "%s %s on %s: %d elements differ\n", k->op->name, v->name, be->name,
                    bad);
        CHECK_EQ(bad, 0);
    }
    tgi_free(packed);
    tgi_free(whole);
}

/* For each type of activations that the device has, float32 first: `only` is one of them, or
 * TG_DTYPE_NONE. */
static void kdevice_check(kcase *k, kdevice_expect expect, tg_dtype only, int boxes)
{
    static const tg_dtype types[] = {TG_DTYPE_F32, TG_DTYPE_F16, TGI_DTYPE_BF16};
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        const tgi_kernel_set *be = kdevice_ops->backend(types[t]);
        if (!be || !device_has(types[t]) || (only != TG_DTYPE_NONE && only != types[t]))
            continue;
        for (int i = 0; i < k->n_src + k->n_extra; i++)
            if (k->data[i])
                device_round(types[t], k->data[i], kcount(&k->src[i]));
        tgi_free(k->want);
        tgi_free(k->bound);
        expect(k);
        kdevice_backend(k, be, boxes);
    }
}

#endif
