/* cpu_resize.c - Resize and Upsample: nearest, linear, cubic; blocked or planar.
 *
 * Coordinates and weights come from ops/resize_axis.h, in float64 and in image coordinates;
 * here they become tables of offsets and float32 weights. The table of columns lies in the
 * scratch and is made once per call; rows make theirs as they go. A pixel is sum over columns k
 * of wx[k] * (sum over rows j of wy[j] * src[j][k]) in that order; nearest is a copy. */
#include "kernels/cpu/cpu_common.h"
#include "kernels/ops/resize_axis.h"

#define BLEND_PX 1024 /* columns of a planar source that a part may read: 4 KiB */

/* Of the box's columns: where tap k of column x lies, and its weight, at [k * width + x]. */
typedef struct columns {
    int32_t *at;
    float *w;
    int64_t width;
} columns;

typedef struct resize {
    tgi_resize_axis ax[3];
    columns cols;
    int64_t x0; /* the box's first column */
    int n_x;    /* taps of a column */
} resize;

static int accepts(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    tgi_resize_axis ax[3];
    return lay->lanes == TGI_L && TGS(tgi_blocks_line_up)(lay, 0) &&
           tgi_resize_axes(ctx, ax, NULL) == TG_OK &&
           ax[TGI_X].coord != TGI_COORD_TF_CROP_AND_RESIZE && !ax[TGI_Z].antialias &&
           !ax[TGI_Y].antialias && !ax[TGI_X].antialias && ax[TGI_X].in <= INT32_MAX;
}

static size_t scratch_bytes(const tgi_op_ctx *ctx, const tgi_layout_hint *lay, int64_t width,
                            int threads)
{
    (void)ctx, (void)lay, (void)threads;
    return 4 * (sizeof(int32_t) + sizeof(float)) * (size_t)width;
}

typedef struct tap_rows {
    const float *row[16]; /* at image column 0 */
    float w[16];
    int n;
} tap_rows;

/* `n_rows` is t->n, a literal where it is 2. */
TGI_INLINE void pixels(const resize *r, const tap_rows *t, const tgi_row_part *p, float *dst,
                       const int planar, const int n_x, const int n_rows)
{
    const int cb = planar ? 1 : TGI_L;
    for (int64_t x = p->x0; x < p->x1; x++, dst += cb) {
        const int64_t i = x - r->x0;
        vf sum = vf_zero();
        for (int k = 0; k < n_x; k++) {
            const ptrdiff_t at = (ptrdiff_t)r->cols.at[k * r->cols.width + i] * cb;
            vf v = vf_zero();
            for (int j = 0; j < n_rows; j++) {
                const vf s = planar ? vf_set1(t->row[j][at]) : vf_load(t->row[j] + at);
                v = vf_fma(s, vf_set1(t->w[j]), v);
            }
            sum = vf_fma(v, vf_set1(r->cols.w[k * r->cols.width + i]), sum);
        }
        if (planar)
            *dst = sum[0];
        else
            vf_store(dst, sum);
    }
}

/* TGI_L pixels of a planar row, `left` of them wanted, from column i of the box on: each the
 * sum over its taps of numbers in `blend`, which begins at source column `lo`. */
TGI_INLINE vf pick(const resize *r, const float *blend, int64_t lo, int64_t i, int64_t left)
{
    vf sum = vf_zero();
    for (int k = 0; k < r->n_x; k++) {
        const int32_t *at = r->cols.at + k * r->cols.width + i;
        const float *w = r->cols.w + k * r->cols.width + i;
        float v[TGI_L] = {0};
        if (left >= TGI_L) {
            for (int q = 0; q < TGI_L; q++)
                v[q] = blend[at[q] - lo];
            sum = vf_fma(vf_load(v), vf_load(w), sum);
        } else {
            for (int64_t q = 0; q < left; q++)
                v[q] = blend[at[q] - lo];
            sum = vf_fma(vf_load(v), vf_load_n(w, left), sum);
        }
    }
    return sum;
}

/* A planar row: the source rows are added first, for all columns that the part reads, then
 * TGI_L pixels pick theirs. Each pixel has the operations of `pixels`. 0: too many columns. */
static int planar_pixels(const resize *r, const tap_rows *t, const tgi_row_part *p, float *dst)
{
    const int64_t first = p->x0 - r->x0, n = p->x1 - p->x0, lo = r->cols.at[first];
    const int64_t width = r->cols.at[(r->n_x - 1) * r->cols.width + first + n - 1] + 1 - lo;
    float blend[BLEND_PX];
    if (width < 1 || width > BLEND_PX)
        return 0;
    for (int64_t i = 0; i < width; i += TGI_L) {
        const int64_t left = tgi_min64(TGI_L, width - i);
        vf v = vf_zero();
        for (int j = 0; j < t->n; j++)
            v = vf_fma(vf_load_n(t->row[j] + lo + i, left), vf_set1(t->w[j]), v);
        vf_store(blend + i, v);
    }
    for (int64_t i = 0; i < n; i += TGI_L)
        vf_store_n(dst + i, pick(r, blend, lo, first + i, n - i), tgi_min64(TGI_L, n - i));
    return 1;
}

static void nearest(const resize *r, const float *row, const tgi_row_part *p, float *dst,
                    int cb)
{
    for (int64_t x = p->x0; x < p->x1; x++, dst += cb) {
        const int64_t at = r->cols.at[x - r->x0];
        if (cb == 1)
            *dst = row[at];
        else
            vf_store(dst, vf_load(row + at * TGI_L));
    }
}

static int part(const tgi_call *call, const void *arg, const tgi_row_part *p)
{
    const resize *r = arg;
    const tgi_view *dv = &call->dst[0];
    tap_rows t = {.n = 0};
    tgi_taps tz, ty;
    int64_t b = p->b0;
    const tgi_view *v = TGS(tgi_block_at)(&call->src[0], &b);
    tgi_resize_taps(&r->ax[TGI_Z], p->z, &tz);
    tgi_resize_taps(&r->ax[TGI_Y], p->y, &ty);
    for (int i = 0; i < tz.n; i++)
        for (int j = 0; j < ty.n; j++) {
            if (tz.w[i] == 0 || ty.w[j] == 0)
                continue;
            t.w[t.n] = (float)(tz.w[i] * ty.w[j]);
            t.row[t.n++] = tgi_view_row(v, b, tz.at[i], ty.at[j]) - v->x0 * v->cb;
        }
    float *dst = tgi_view_row(dv, p->b0, p->z, p->y) + (p->x0 - dv->x0) * dv->cb;
    if (r->n_x == 1 && t.n > 0)
        nearest(r, t.row[0], p, dst, dv->cb);
    else if (dv->cb == 1 && planar_pixels(r, &t, p, dst))
        return 0;
    else if (dv->cb == 1)
        pixels(r, &t, p, dst, 1, r->n_x, t.n);
    else if (r->n_x == 2 && t.n == 2)
        pixels(r, &t, p, dst, 0, 2, 2);
    else if (r->n_x == 2)
        pixels(r, &t, p, dst, 0, 2, t.n);
    else
        pixels(r, &t, p, dst, 0, 4, t.n);
    return 0;
}

static void run(const tgi_call *call)
{
    resize r;
    const tgi_range x = tgi_box_axis(&call->box, TGI_X);
    if (tgi_box_empty(&call->box) || tgi_resize_axes(call->ctx, r.ax, NULL) != TG_OK)
        return;
    r.cols = (columns){.at = call->scratch, .width = tgi_range_len(x)};
    r.cols.w = (float *)(r.cols.at + 4 * r.cols.width);
    r.x0 = x.lo;
    r.n_x = 1;
    for (int64_t i = x.lo; i < x.hi; i++) {
        tgi_taps t;
        tgi_resize_taps(&r.ax[TGI_X], i, &t);
        for (int k = 0; k < t.n; k++) {
            r.cols.at[k * r.cols.width + i - x.lo] = (int32_t)t.at[k];
            r.cols.w[k * r.cols.width + i - x.lo] = (float)t.w[k];
        }
        r.n_x = t.n;
    }
    TGS(tgi_each_part)(call, part, &r);
}

const tgi_variant TGS(tgi_resize) = {.name = "resize",
                                     .op = "Resize",
                                     .accepts = accepts,
                                     .scratch_bytes = scratch_bytes,
                                     .run = TGI_RUN(run)};
const tgi_variant TGS(tgi_upsample) = {.name = "resize",
                                       .op = "Upsample",
                                       .accepts = accepts,
                                       .scratch_bytes = scratch_bytes,
                                       .run = TGI_RUN(run)};
