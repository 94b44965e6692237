/* kernel_case.h - one operator with random data, run through every instruction set.
 *
 * A case fixes the op, its attributes, shapes, constants, segments and layouts. kcase_check
 * then, for each backend that this processor runs:
 *   1. computes the whole image and compares it with the op's reference (float64 sums) within
 * the caller's bound;
 *   2. computes random boxes with 1 to 3 threads from views that hold nothing but what `need`
 *      asked for (all else is NaN, rings wrap, x0 is random) and wants the same bits;
 *   3. wants NaN still in every element of dst outside the box, and zero in unused lanes. */
#ifndef KERNEL_CASE_H
#define KERNEL_CASE_H

#include "kernels/backend.h"
#include "kernels/ops/geometry.h"
#include "kernels/ops/op_attrs.h"
#include "kernels/threads.h"
#include "tests/tg_test.h"

#define K_SRC 4

typedef struct kcase {
    const tgi_op *op;
    union {
        conv_attrs conv;
        pool_attrs pool;
        resize_attrs resize;
        d2s_attrs d2s;
        slice_attrs slice;
        clip_attrs clip;
        alpha_attrs alpha;
        axis_attrs axis;
        pad_attrs pad;
        instance_norm_attrs norm;
        norm_numbers_attrs numbers;
        attention_attrs attention;
        window_attrs window;
        lookup_attrs lookup;
        convex_attrs convex;
        fold_attrs fold;
        channel_norm_attrs channel_norm;
        unary_attrs unary;
        char bytes[2048];
    } a;
    const char *variant;            /* the name that must be picked; NULL: any */
    int rearranged;                 /* variants that rearrange sums may be picked */
    unsigned kinds;                 /* those of these kinds too (TGI_KIND_*) */
    int64_t phase;                  /* where their blocks start */
    int opset, n_src, n_const_from; /* sources from n_const_from on are constants */
    tgi_desc src[TGI_OP_MAX_SRC], dst;
    float *data[TGI_OP_MAX_SRC]; /* dense, planar */
    float *half;                 /* source 0 at every second pixel, see kcase_double */
    tgi_constant cst[TGI_OP_MAX_SRC];
    const tgi_constant *cp[TGI_OP_MAX_SRC];
    int planar_src, planar_dst;
    int n_seg[TGI_OP_MAX_SRC];
    int64_t seg_c[TGI_OP_MAX_SRC][TGI_MAX_SEG];
    int doubled[TGI_MAX_SEG]; /* segments of source 0 whose pixels repeat in squares of 2x2 */
    int n_extra;              /* activations that the epilogue reads, behind the op's own */
    tgi_epi_step epi[4];
    int n_epi;
    float *want, *bound; /* dense; |got - want| <= bound */
} kcase;

typedef struct kview { /* a view and the block it lives in */
    tgi_view v;
    float *mem;
    size_t n;
} kview;

static uint64_t kseed = 88172645463325252ull;

/* A number of the case's own. */
static inline int64_t kpick(int64_t lo, int64_t hi)
{
    return tg_rand_in(&kseed, lo, hi);
}

static inline void kset(tgi_ints *l, int n, int64_t v)
{
    l->n = n;
    for (int i = 0; i < n; i++)
        l->v[i] = v;
}
static tgi_threads *kpool[4]; /* [n]: n threads */

static size_t kcount(const tgi_desc *d)
{
    int64_t n = 0;
    return tgi_desc_count(d, &n) ? (size_t)n : 0;
}

static tgi_desc kdesc(int spatial, int64_t c, int64_t d, int64_t h, int64_t w)
{
    return spatial == 2 ? (tgi_desc){TG_DTYPE_F32, 4, {1, c, h, w}}
                        : (tgi_desc){TG_DTYPE_F32, 5, {1, c, d, h, w}};
}

static float *kfloats(size_t n)
{
    float *p = tgi_malloc(TGI_TAG_MISC, (n + 1) * sizeof *p);
    if (!p)
        abort();
    return p;
}

static float *krandom(size_t n, float scale)
{
    float *p = kfloats(n);
    for (size_t i = 0; i < n; i++)
        p[i] = scale * tg_rand_unit(&kseed);
    return p;
}

static size_t kat(const tgi_desc *d, int64_t c, int64_t z, int64_t y, int64_t x)
{
    const int64_t D = tgi_desc_axis(d, TGI_Z), H = tgi_desc_axis(d, TGI_Y);
    return (size_t)(((c * D + z) * H + y) * tgi_desc_axis(d, TGI_X) + x);
}

/* A view of c channels that can hold `box`, all NaN. cb = 0: pixels lie whole. */
static kview kview_make(int64_t c, int cb, const tgi_box *box)
{
    if (!cb)
        cb = (int)tgi_whole_pixel(c);
    const tgi_range z = tgi_box_axis(box, TGI_Z), y = tgi_box_axis(box, TGI_Y),
                    x = tgi_box_axis(box, TGI_X);
    kview k = {.v = {.c = c, .cb = cb}};
    k.v.x0 = x.lo;
    k.v.width = tgi_range_len(x);
    k.v.z_ring = tgi_range_len(z) + tg_rand_in(&kseed, 0, 1);
    k.v.y_ring = tgi_range_len(y) + tg_rand_in(&kseed, 0, 2);
    k.v.y_pitch = (size_t)(k.v.width * cb);
    k.v.z_pitch = k.v.y_pitch * (size_t)k.v.y_ring;
    k.v.block_pitch = k.v.z_pitch * (size_t)k.v.z_ring;
    k.n = k.v.block_pitch * (size_t)tgi_view_blocks(&k.v);
    k.mem = kfloats(k.n);
    for (size_t i = 0; i < k.n; i++)
        k.mem[i] = NAN;
    k.v.base = k.mem;
    return k;
}

/* Store channels from c0 of a dense image over `box`: zero columns outside the image, no rows.
 */
static void kview_fill(kview *k, const tgi_desc *d, const float *data, int64_t c0,
                       const tgi_box *box)
{
    const tgi_range z = tgi_range_clip(tgi_box_axis(box, TGI_Z), 0, tgi_desc_axis(d, TGI_Z));
    const tgi_range y = tgi_range_clip(tgi_box_axis(box, TGI_Y), 0, tgi_desc_axis(d, TGI_Y));
    const tgi_range x = tgi_box_axis(box, TGI_X);
    for (int64_t c = 0; c < tgi_view_blocks(&k->v) * k->v.cb; c++)
        for (int64_t iz = z.lo; iz < z.hi; iz++)
            for (int64_t iy = y.lo; iy < y.hi; iy++)
                for (int64_t ix = x.lo; ix < x.hi; ix++)
                    *tgi_view_at(&k->v, c, iz, iy, ix) =
                        c >= k->v.c || ix < 0 || ix >= tgi_desc_axis(d, TGI_X)
                            ? 0.0f
                            : data[kat(d, c0 + c, iz, iy, ix)];
}

static void kcase_ctx(const kcase *k, tgi_op_ctx *ctx)
{
    *ctx = (tgi_op_ctx){.attrs = &k->a,
                        .opset = k->opset ? k->opset : 17,
                        .n_src = k->n_src,
                        .n_dst = 1,
                        .src = k->src,
                        .dst = &k->dst,
                        .const_src = k->cp,
                        .phase = k->phase};
}

/* Defaults, before attributes and shapes are set. */
static void kcase_begin(kcase *k, const char *op)
{
    memset(k, 0, sizeof *k);
    k->op = tgi_op_find(op);
    if (!k->op) {
        fprintf(stderr, "no operator %s\n", op);
        abort();
    }
    tgi_attrs_default(k->op->attrs, &k->a);
    k->n_const_from = TGI_OP_MAX_SRC;
}

/* Random data for all sources and the shape of the result. 0: the shapes do not fit. */
static int kcase_build(kcase *k, float scale)
{
    tgi_op_ctx ctx;
    for (int i = 0; i < k->n_src + k->n_extra; i++) {
        if (!k->src[i].rank)
            continue;
        k->data[i] = krandom(kcount(&k->src[i]), i ? 1.0f : scale);
        if (i >= k->n_const_from && i < k->n_src) {
            k->cst[i] = (tgi_constant){k->src[i], k->data[i]};
            k->cp[i] = &k->cst[i];
        }
        if (!k->n_seg[i]) {
            k->n_seg[i] = 1;
            k->seg_c[i][0] = k->src[i].dim[1];
        }
    }
    kcase_ctx(k, &ctx);
    return k->op->infer(&ctx, &k->dst, NULL) == TG_OK;
}

static void kcase_end(kcase *k)
{
    for (int i = 0; i < TGI_OP_MAX_SRC; i++)
        tgi_free(k->data[i]);
    tgi_free(k->half);
    tgi_free(k->want);
    tgi_free(k->bound);
}

typedef struct krun { /* operands of one call */
    kview seg[TGI_OP_MAX_SRC][TGI_MAX_SEG];
    tgi_view view[TGI_OP_MAX_SRC][TGI_MAX_SEG];
    tgi_operand op[TGI_OP_MAX_SRC];
    kview dst;
} krun;

static void krun_free(krun *r)
{
    for (int i = 0; i < TGI_OP_MAX_SRC; i++)
        for (int s = 0; s < r->op[i].n_seg; s++)
            tgi_free(r->seg[i][s].mem);
    tgi_free(r->dst.mem);
}

/* What is stored where an operand is read doubled. */
static void khalve(tgi_desc *d, tgi_box *box)
{
    for (int a = 2; a < d->rank; a++) {
        d->dim[a] /= 2;
        tgi_range *r = &box->ax[a];
        *r = (tgi_range){(r->lo - (r->lo < 0)) / 2, (r->hi - 1 - (r->hi < 1)) / 2 + 1};
    }
}

/* Source 0 of even extents becomes what `doubled` says of its segments; `half` is then what is
 * stored of it. */
static inline void kcase_double(kcase *k)
{
    const tgi_desc *d = &k->src[0];
    tgi_desc h = *d;
    h.dim[2] /= 2;
    h.dim[3] /= 2;
    k->half = kfloats(kcount(&h));
    int64_t c = 0;
    for (int s = 0; s < k->n_seg[0]; s++)
        for (const int64_t end = c + k->seg_c[0][s]; c < end; c++)
            for (int64_t y = 0; y < d->dim[2]; y++)
                for (int64_t x = 0; x < d->dim[3]; x++) {
                    float *at = &k->data[0][kat(d, c, 0, y, x)];
                    float *from = &k->half[kat(&h, c, 0, y / 2, x / 2)];
                    if (y % 2 == 0 && x % 2 == 0)
                        *from = *at;
                    if (k->doubled[s])
                        *at = *from;
                }
}

static void krun_make(const kcase *k, krun *r, const tgi_variant *v, const tgi_box *box,
                      int lanes)
{
    tgi_op_ctx ctx;
    kcase_ctx(k, &ctx);
    memset(r, 0, sizeof *r);
    for (int i = 0; i < k->n_src + k->n_extra; i++) {
        if (!k->src[i].rank || k->cp[i])
            continue;
        tgi_box need = *box;
        if (i < k->n_src)
            tgi_variant_need(v, k->op, &ctx, 0, box, i, &need);
        int64_t c0 = 0;
        const int planar = i < k->n_src ? k->planar_src : k->planar_dst;
        r->op[i] = (tgi_operand){k->n_seg[i], r->view[i]};
        for (int s = 0; s < k->n_seg[i]; c0 += k->seg_c[i][s++]) {
            const int twice = i == 0 && k->doubled[s] && v;
            tgi_desc d = k->src[i];
            tgi_box part = need;
            if (twice)
                khalve(&d, &part);
            r->seg[i][s] = kview_make(k->seg_c[i][s], planar ? 1 : lanes, &part);
            kview_fill(&r->seg[i][s], &d, twice ? k->half : k->data[i], c0, &part);
            r->view[i][s] = r->seg[i][s].v;
            r->view[i][s].doubled = twice;
        }
    }
    tgi_box room = *box; /* dst holds more than the box: what is outside must stay */
    for (int a = 2; a < room.rank; a++) {
        room.ax[a].lo = tg_rand_in(&kseed, 0, 1) ? 0 : room.ax[a].lo;
        room.ax[a].hi += tg_rand_in(&kseed, 0, 2);
    }
    r->dst = kview_make(k->dst.dim[1], k->planar_dst ? 1 : lanes, &room);
}

/* Reference result and, when `abs_in` is set, the sum of absolute products (linear ops). */
static float *kcase_ref(kcase *k)
{
    tgi_op_ctx ctx;
    krun r;
    tgi_err err = {0};
    kcase_ctx(k, &ctx);
    const tgi_box box = tgi_box_full(&k->dst);
    const int ps = k->planar_src, pd = k->planar_dst;
    k->planar_src = k->planar_dst = 1;
    krun_make(k, &r, NULL, &box, 1);
    k->planar_src = ps;
    k->planar_dst = pd;
    tgi_call call = {.ctx = &ctx, .src = r.op, .dst = &r.dst.v, .box = box};
    CHECK_OK(k->op->ref(&call, &err), err);
    float *out = kfloats(kcount(&k->dst));
    const tgi_range z = tgi_box_axis(&box, TGI_Z), y = tgi_box_axis(&box, TGI_Y),
                    x = tgi_box_axis(&box, TGI_X);
    for (int64_t c = 0; c < k->dst.dim[1]; c++)
        for (int64_t iz = z.lo; iz < z.hi; iz++)
            for (int64_t iy = y.lo; iy < y.hi; iy++)
                for (int64_t ix = x.lo; ix < x.hi; ix++)
                    out[kat(&k->dst, c, iz, iy, ix)] = *tgi_view_at(&r.dst.v, c, iz, iy, ix);
    krun_free(&r);
    return out;
}

/* |sum in float32 - sum in float64| <= (n + 2) * 2^-24 * sum |a b|, n terms. The sum of
 * absolute products comes from the reference itself, run on absolute values. The bound misses
 * no wrong tap: one tap is some 1/n of that sum, far above n * 6e-8 of it. */
static inline void kcase_bound_of_sum(kcase *k)
{
    float *keep[3] = {0};
    k->want = kcase_ref(k);
    for (int i = 0; i < k->n_src; i++) {
        if (!k->data[i])
            continue;
        const size_t n = kcount(&k->src[i]);
        keep[i] = kfloats(n);
        memcpy(keep[i], k->data[i], n * sizeof(float));
        for (size_t j = 0; j < n; j++)
            k->data[i][j] = fabsf(k->data[i][j]);
    }
    k->bound = kcase_ref(k);
    double terms = 2;
    const tgi_desc *w = &k->src[1];
    terms += (double)kcount(w) / (double)w->dim[0] + (double)w->dim[0];
    for (size_t j = 0; j < kcount(&k->dst); j++)
        k->bound[j] = (float)((double)k->bound[j] * terms * 6e-8);
    for (int i = 0; i < k->n_src; i++)
        if (keep[i]) {
            memcpy(k->data[i], keep[i], kcount(&k->src[i]) * sizeof(float));
            tgi_free(keep[i]);
        }
}

static void kcase_layout(const kcase *k, int lanes, tgi_layout_hint *lay)
{
    memset(lay, 0, sizeof *lay);
    lay->lanes = lanes;
    lay->exact = !k->rearranged;
    lay->kinds = k->kinds;
    lay->n_src = k->n_src;
    for (int i = 0; i < k->n_src; i++) {
        lay->src_cb[i] = k->planar_src ? 1 : lanes;
        lay->src_segs[i] = k->cp[i] || !k->src[i].rank ? 0 : k->n_seg[i];
        for (int s = 0; s < lay->src_segs[i]; s++)
            lay->seg_c[i][s] = k->seg_c[i][s];
        for (int s = 0; i == 0 && s < lay->src_segs[0]; s++)
            lay->n_doubled += k->doubled[s];
    }
    lay->dst_cb = k->planar_dst ? 1 : lanes;
    lay->epi = k->epi;
    lay->n_epi = k->n_epi;
}

static int kinside(const tgi_box *b, int64_t z, int64_t y, int64_t x)
{
    const tgi_range rz = tgi_box_axis(b, TGI_Z), ry = tgi_box_axis(b, TGI_Y),
                    rx = tgi_box_axis(b, TGI_X);
    return z >= rz.lo && z < rz.hi && y >= ry.lo && y < ry.hi && x >= rx.lo && x < rx.hi;
}

/* Elements of dst that hold a number although they are outside the box, and unused lanes inside
 * it that are not zero. */
static int kcase_stray(const tgi_view *v, const tgi_box *box)
{
    const tgi_range rz = tgi_box_axis(box, TGI_Z), ry = tgi_box_axis(box, TGI_Y);
    int bad = 0;
    size_t numbers = 0;
    for (int64_t c = 0; c < tgi_view_blocks(v) * v->cb; c++)
        for (int64_t z = rz.lo; z < rz.hi; z++)
            for (int64_t y = ry.lo; y < ry.hi; y++)
                for (int64_t x = v->x0; x < v->x0 + v->width; x++) {
                    const float got = *tgi_view_at(v, c, z, y, x);
                    numbers += !isnan(got);
                    if (kinside(box, z, y, x) ? c >= v->c && got != 0.0f : !isnan(got))
                        bad++;
                }
    size_t all = 0;
    for (size_t i = 0; i < v->block_pitch * (size_t)tgi_view_blocks(v); i++)
        all += !isnan(v->base[i]);
    return bad + (all != numbers);
}

/* Keep the box of a result in `out`, or count the bits there that it does not repeat. */
static inline int kcase_take(const kcase *k, const tgi_view *v, const tgi_box *box, int compare,
                             float *out)
{
    int bad = 0;
    for (int64_t c = 0; c < k->dst.dim[1]; c++)
        for (int64_t z = tgi_box_axis(box, TGI_Z).lo; z < tgi_box_axis(box, TGI_Z).hi; z++)
            for (int64_t y = tgi_box_axis(box, TGI_Y).lo; y < tgi_box_axis(box, TGI_Y).hi; y++)
                for (int64_t x = tgi_box_axis(box, TGI_X).lo; x < tgi_box_axis(box, TGI_X).hi;
                     x++) {
                    const float got = *tgi_view_at(v, c, z, y, x);
                    float *to = &out[kat(&k->dst, c, z, y, x)];
                    if (compare)
                        bad += memcmp(to, &got, sizeof got) != 0;
                    else
                        *to = got;
                }
    return bad;
}

/* Run one box; copy its values into the dense `out`, or count those that differ in a bit. */
static inline int kcase_run(const kcase *k, const tgi_kernel_set *be, const tgi_variant *v,
                            const void *packed, void *scratch, const tgi_box *box, int threads,
                            float *out, int compare)
{
    tgi_op_ctx ctx;
    krun r;
    int bad = 0;
    kcase_ctx(k, &ctx);
    krun_make(k, &r, v, box, be->lanes);
    const tgi_call call = {.ctx = &ctx,
                           .src = r.op,
                           .dst = &r.dst.v,
                           .box = *box,
                           .epi = k->epi,
                           .n_epi = k->n_epi,
                           .packed = packed,
                           .scratch = scratch,
                           .threads = kpool[threads]};
    v->run(&call);
    CHECK_EQ(kcase_stray(&r.dst.v, box), 0);
    bad += kcase_take(k, &r.dst.v, box, compare, out);
    krun_free(&r);
    return bad;
}

static void *kalign(void *p)
{
    return (void *)(((uintptr_t)p + 63) & ~(uintptr_t)63);
}

static inline void kcase_backend(const kcase *k, const tgi_kernel_set *be, int boxes)
{
    tgi_op_ctx ctx;
    tgi_layout_hint lay;
    kcase_ctx(k, &ctx);
    kcase_layout(k, be->lanes, &lay);
    const tgi_variant *v = tgi_variant_pick(be, k->op->name, &ctx, &lay);
    CHECK(v != NULL);
    if (!v)
        return;
    if (k->variant)
        CHECK_STR(v->name, k->variant);
    const size_t pb = v->packed_bytes ? v->packed_bytes(&ctx, &lay) : 0;
    const size_t sb =
        v->scratch_bytes ? v->scratch_bytes(&ctx, &lay, tgi_desc_axis(&k->dst, TGI_X), 3) : 0;
    /* Blocks end where they were said to end, for the sanitizer to see. */
    char *packed = (char *)kfloats(pb / 4 + 16), *scratch = (char *)kfloats(sb / 4 + 16);
    float *whole = kfloats(kcount(&k->dst));
    if (pb)
        v->pack(&ctx, &lay, kalign(packed));
    const tgi_box full = tgi_box_full(&k->dst);
    kcase_run(k, be, v, kalign(packed), kalign(scratch), &full, 1, whole, 0);
    size_t off = 0;
    double worst = 0;
    for (size_t i = 0; i < kcount(&k->dst); i++) {
        const double d = fabs((double)whole[i] - (double)k->want[i]);
        off += !(d <= (double)k->bound[i]);
        worst = d / (double)k->bound[i] > worst ? d / (double)k->bound[i] : worst;
    }
    if (off)
        fprintf(stderr, "%s %s on %s: %zu of %zu beyond the bound, worst %g of it\n",
                k->op->name, v->name, be->name, off, kcount(&k->dst), worst);
    CHECK_EQ(off, 0);
    for (int i = 0; i < boxes; i++) {
        tgi_box box = full;
        for (int a = 2; a < box.rank; a++) {
            box.ax[a].lo = tg_rand_in(&kseed, 0, full.ax[a].hi - 1);
            box.ax[a].hi = tg_rand_in(&kseed, box.ax[a].lo + 1, full.ax[a].hi);
        }
        const int bad =
            kcase_run(k, be, v, kalign(packed), kalign(scratch), &box, 1 + i % 3, whole, 1);
        if (bad)
            fprintf(stderr, "%s %s on %s, %d threads: %d elements differ\n", k->op->name,
                    v->name, be->name, 1 + i % 3, bad);
        CHECK_EQ(bad, 0);
    }
    tgi_free(packed);
    tgi_free(scratch);
    tgi_free(whole);
}

static inline void kcase_check(const kcase *k, int boxes)
{
    for (int isa = 0; isa < TGI_ISA_COUNT; isa++)
        if (tgi_isa_detect((tgi_isa)isa) == (tgi_isa)isa &&
            (!(k->kinds & TGI_KIND_BF16) || tgi_isa_has_bf16((tgi_isa)isa)))
            kcase_backend(k, tgi_backend_for((tgi_isa)isa), boxes);
}

static void kcase_pools_open(void)
{
    tgi_err err = {0};
    for (int n = 2; n < 4; n++)
        CHECK_OK(tgi_threads_open(n, &kpool[n], &err), err);
}
static void kcase_pools_close(void)
{
    for (int n = 2; n < 4; n++)
        tgi_threads_close(&kpool[n]);
}

#endif
