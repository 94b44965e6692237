/* cpu_resize.c - Resize and Upsample: nearest, linear, cubic; blocked or planar.
 *
 * Coordinates and weights come from ops/resize_axis.h, in float64 and in image coordinates;
 * here they become tables of offsets and float32 weights. The table of columns lies in the
 * scratch and is made once per call; rows make theirs as they go. A pixel is sum over columns k
 * of wx[k] * (sum over rows j of wy[j] * src[j][k]) in that order; nearest is a copy. */
#include "kernels/cpu/cpu_common.h"
#include "kernels/ops/resize_axis.h"

typedef struct column {
    int64_t at[4];
    float w[4];
} column;

typedef struct resize {
    tgi_resize_axis ax[3];
    const column *cols; /* of box column 0 */
    int64_t x0;
    int n_x; /* taps of a column */
} resize;

static int accepts(const tg_op_ctx *ctx, const tg_layout_hint *lay)
{
    tgi_resize_axis ax[3];
    return lay->lanes == TG_L && TGS(tgi_blocks_line_up)(lay, 0) &&
           tgi_resize_axes(ctx, ax, NULL) == TG_OK &&
           ax[TG_X].coord != TG_COORD_TF_CROP_AND_RESIZE && !ax[TG_Z].antialias &&
           !ax[TG_Y].antialias && !ax[TG_X].antialias;
}

static size_t scratch_bytes(const tg_op_ctx *ctx, const tg_layout_hint *lay, int64_t width,
                            int threads)
{
    (void)ctx, (void)lay, (void)threads;
    return sizeof(column) * (size_t)width;
}

typedef struct tap_rows {
    const float *row[16]; /* at image column 0 */
    float w[16];
    int n;
} tap_rows;

TG_INLINE void pixels(const resize *r, const tap_rows *t, const tg_row_part *p, float *dst,
                      const int planar, const int n_x)
{
    const int cb = planar ? 1 : TG_L;
    for (int64_t x = p->x0; x < p->x1; x++, dst += cb) {
        const column *c = &r->cols[x - r->x0];
        vf sum = vf_zero();
        for (int k = 0; k < n_x; k++) {
            const ptrdiff_t at = c->at[k] * cb;
            vf v = vf_zero();
            for (int j = 0; j < t->n; j++) {
                const vf s = planar ? vf_set1(t->row[j][at]) : vf_load(t->row[j] + at);
                v = vf_fma(s, vf_set1(t->w[j]), v);
            }
            sum = vf_fma(v, vf_set1(c->w[k]), sum);
        }
        if (planar)
            *dst = sum[0];
        else
            vf_store(dst, sum);
    }
}

static void nearest(const resize *r, const float *row, const tg_row_part *p, float *dst, int cb)
{
    for (int64_t x = p->x0; x < p->x1; x++, dst += cb) {
        const int64_t at = r->cols[x - r->x0].at[0];
        if (cb == 1)
            *dst = row[at];
        else
            vf_store(dst, vf_load(row + at * TG_L));
    }
}

static int part(const tg_call *call, const void *arg, const tg_row_part *p)
{
    const resize *r = arg;
    const tg_view *dv = &call->dst[0];
    tap_rows t = {.n = 0};
    tgi_taps tz, ty;
    int64_t b = p->b0;
    const tg_view *v = TGS(tgi_block_at)(&call->src[0], &b);
    tgi_resize_taps(&r->ax[TG_Z], p->z, &tz);
    tgi_resize_taps(&r->ax[TG_Y], p->y, &ty);
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
    else if (dv->cb == 1)
        pixels(r, &t, p, dst, 1, r->n_x);
    else if (r->n_x == 2)
        pixels(r, &t, p, dst, 0, 2);
    else
        pixels(r, &t, p, dst, 0, 4);
    return 0;
}

static void run(const tg_call *call)
{
    resize r;
    const tg_range x = tgi_box_axis(&call->box, TG_X);
    column *cols = call->scratch;
    if (tgi_box_empty(&call->box) || tgi_resize_axes(call->ctx, r.ax, NULL) != TG_OK)
        return;
    r.cols = cols;
    r.x0 = x.lo;
    r.n_x = 1;
    for (int64_t i = x.lo; i < x.hi; i++) {
        tgi_taps t;
        tgi_resize_taps(&r.ax[TG_X], i, &t);
        for (int k = 0; k < t.n; k++) {
            cols[i - x.lo].at[k] = t.at[k];
            cols[i - x.lo].w[k] = (float)t.w[k];
        }
        r.n_x = t.n;
    }
    TGS(tgi_each_part)(call, part, &r);
}

const tg_variant TGS(tgi_resize) = {.name = "resize",
                                    .op = "Resize",
                                    .accepts = accepts,
                                    .scratch_bytes = scratch_bytes,
                                    .run = run};
const tg_variant TGS(tgi_upsample) = {.name = "resize",
                                      .op = "Upsample",
                                      .accepts = accepts,
                                      .scratch_bytes = scratch_bytes,
                                      .run = run};
