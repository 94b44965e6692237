/* fake_kernels.c - the fake device's kernels: the references, over views of whole pixels. */
#include "engine/base/arith.h"
#include "engine/plan/mapping.h"
#include "kernels/granule.h"
#include "kernels/op.h"
#include "kernels/pixels.h"
#include "tests/device/fake_device.h"
#include "tests/plain_step.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- One variant for every op ------------------------------------------------------------ */

static int accepts(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    (void)ctx;
    (void)lay;
    return 1;
}

static void never(const tgi_call *call)
{
    (void)call;
    abort(); /* the device runs steps, not variants */
}

/* The same numbers in half of the time, where they are allowed. */
static double half(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    (void)ctx;
    (void)lay;
    return 0.5;
}

static const tgi_variant of_kinds[] = {
    {.name = "fake_wgmma",
     .op = "Conv",
     .kinds = TGI_KIND_WGMMA,
     .accepts = accepts,
     .cost = half,
     .run = never},
    {.name = "fake_library",
     .op = "Conv",
     .kinds = TGI_KIND_LIBRARY,
     .accepts = accepts,
     .cost = half,
     .run = never},
};

enum { KINDS = sizeof of_kinds / sizeof *of_kinds, MOST = 256 };

typedef struct made_set {
    tgi_variant variant[MOST + KINDS];
    const tgi_variant *list[MOST + KINDS + 1];
    tgi_kernel_set be;
} made_set;

static made_set of_floats, of_halves;

const tgi_kernel_set *fake_backend(tg_dtype element)
{
    made_set *m = element == TG_DTYPE_F16 ? &of_halves : &of_floats;
    int n = 0;
    for (int i = 0; tgi_op_at(i) && n < MOST; i++)
        if (tgi_op_at(i)->ref)
            m->variant[n++] = (tgi_variant){
                .name = "fake", .op = tgi_op_at(i)->name, .accepts = accepts, .run = never};
    for (int i = 0; i < KINDS; i++)
        m->variant[n++] = of_kinds[i];
    for (int i = 0; i < n; i++)
        m->list[i] = &m->variant[i];
    m->be = (tgi_kernel_set){.name = "fake",
                             .isa = TGI_ISA_PORTABLE,
                             .lanes = 8,
                             .whole_pixels = 1,
                             .element = element,
                             .variants = m->list};
    return &m->be;
}

static int is_half(const tgi_device_step *s)
{
    int found = 0;
    for (int i = 0; s->kind == TGI_STEP_NODE && i < MOST + KINDS; i++)
        found |= s->variant == &of_halves.variant[i];
    return s->kind == TGI_STEP_NODE ? found : s->pixels.element == TG_DTYPE_F16;
}

/* ---- Epilogue ---------------------------------------------------------------------------- */

static float epilogue_at(const tgi_call *call, float v, int64_t c, int64_t z, int64_t y,
                         int64_t x)
{
    float kept = 0;
    for (int i = 0; i < call->n_epi; i++) {
        const tgi_epi_step *s = &call->epi[i];
        const float old = v;
        if (s->kind == TGI_EPI_KEEP || s->kind == TGI_EPI_SWAP) {
            v = s->kind == TGI_EPI_SWAP ? kept : v;
            kept = old;
        } else {
            const float o = s->src == TGI_EPI_KEPT ? kept
                            : s->src >= 0 ? tgi_operand_get(&call->src[s->src], c, z, y, x)
                            : s->vec      ? s->vec[c]
                                          : s->a;
            v = (float)plain_step(s, (double)v, (double)o);
        }
    }
    return v;
}

typedef struct extent {
    tgi_range z, y, x;
} extent;

static extent extent_of(const tgi_box *b)
{
    const int volume = b->rank == 5;
    return (extent){volume ? b->ax[2] : (tgi_range){0, 1}, b->ax[b->rank - 2],
                    b->ax[b->rank - 1]};
}

static void epilogue(const tgi_call *call)
{
    const extent e = extent_of(&call->box);
    const tgi_view *d = &call->dst[0];
    for (int64_t z = e.z.lo; z < e.z.hi; z++)
        for (int64_t y = e.y.lo; y < e.y.hi; y++)
            for (int64_t x = e.x.lo; x < e.x.hi; x++)
                for (int64_t c = 0; c < tgi_view_blocks(d) * d->cb; c++) {
                    float *at = tgi_view_at(d, c, z, y, x);
                    *at = c < d->c ? epilogue_at(call, *at, c, z, y, x) : 0;
                }
}

/* ---- Steps ------------------------------------------------------------------------------- */

/* The references find zeros in the columns outside of the image; devices keep none there. */
static void zero_outside(const tgi_view *v, int64_t dim)
{
    for (int64_t z = 0; z < v->z_ring; z++)
        for (int64_t y = 0; y < v->y_ring; y++)
            for (int64_t x = v->x0; x < v->x0 + v->width; x++)
                if (x < 0 || x >= dim)
                    memset(tgi_view_at(v, 0, z, y, x), 0, (size_t)v->cb * sizeof(float));
}

static tg_status run_node(const tgi_device_step *s, tgi_err *err)
{
    const tgi_call *c = &s->call;
    for (int j = 0; j < c->ctx->n_src; j++)
        for (int k = 0; k < c->src[j].n_seg; k++)
            zero_outside(&c->src[j].seg[k], c->ctx->src[j].dim[c->ctx->src[j].rank - 1]);
    const char *op = s->variant->op;
    if (!(strcmp(op, "Conv") == 0            ? fake_conv(c)
          : strcmp(op, "ConvTranspose") == 0 ? fake_conv_transpose(c)
                                             : fake_sums(op, c)))
        TGI_TRY(tgi_op_find(s->variant->op)->ref(c, err));
    epilogue(c);
    return TG_OK;
}

/* Where channel c of a pixel lies. */
static char *staged_at(const tgi_device_pixels *p, int64_t slab, int64_t c, int64_t y,
                       int64_t x)
{
    const int64_t plane = slab * (p->channels / p->together) + c / p->together;
    const int64_t pixel =
        (plane * tgi_range_len(p->rows) + y - p->rows.lo) * tgi_range_len(p->cols) + x -
        p->cols.lo;
    const int64_t at = pixel * (p->pitch ? p->pitch : p->together) + c % p->together;
    return (char *)p->at + (size_t)at * tgi_dtype_size(p->type);
}

/* Pixels that are staged as Y, U and V. */
static float converted(const tgi_device_pixels *p, int64_t c, int64_t y, int64_t x)
{
    const tgi_yuv_staged s = tgi_yuv_stage(&p->yuv, p->rows, p->cols);
    uint32_t rgb[3];
    tgi_yuv_pixel(&p->yuv, &s, p->at, y + p->yuv.y0, x + p->yuv.x0, rgb);
    return (float)rgb[c] * p->mul + p->add;
}

static float loaded(const tgi_device_pixels *p, int64_t slab, int64_t c, int64_t y, int64_t x)
{
    float v;
    if (p->yuv.there)
        return converted(p, c, y, x);
    tgi_pixels_load(p->type, staged_at(p, slab, c, y, x), 1, p->mul, p->add, &v, 1);
    return v;
}

static void run_load(const tgi_device_step *s)
{
    const tgi_device_pixels *p = &s->pixels;
    const tgi_view *d = &s->call.dst[0];
    const extent e = extent_of(&s->call.box);
    const int volume = s->call.box.rank == 5;
    for (int64_t z = e.z.lo; z < e.z.hi; z++)
        for (int64_t y = e.y.lo; y < e.y.hi; y++)
            for (int64_t x = e.x.lo; x < e.x.hi; x++)
                for (int64_t c = 0; c < d->cb; c++) {
                    const int64_t sz = volume ? tgi_pad_index((tgi_pad_mode)p->pad,
                                                              z - p->shift[0], p->extent[0])
                                              : 0;
                    const int64_t sy =
                        tgi_pad_index((tgi_pad_mode)p->pad, y - p->shift[1], p->extent[1]);
                    const int64_t sx =
                        tgi_pad_index((tgi_pad_mode)p->pad, x - p->shift[2], p->extent[2]);
                    const int none = c >= d->c || sz < 0 || sy < 0 || sx < 0;
                    *tgi_view_at(d, c, z, y, x) = none ? 0 : loaded(p, z - e.z.lo, c, sy, sx);
                }
}

/* What the step makes of channel c of the pixel. */
static float stored(const tgi_device_step *s, int64_t c, int64_t z, int64_t y, int64_t x)
{
    const tgi_view *v = &s->call.src[0].seg[0];
    const tgi_pick pick = s->pixels.pick;
    if (pick == TGI_PICK_NONE)
        return *tgi_view_at(v, c, z, y, x);
    const int last = pick == TGI_PICK_LAST_LARGEST || pick == TGI_PICK_LAST_SMALLEST;
    const int largest = pick == TGI_PICK_FIRST_LARGEST || pick == TGI_PICK_LAST_LARGEST;
    int64_t at = 0;
    for (int64_t k = 1; k < v->c; k++) {
        const float f = *tgi_view_at(v, k, z, y, x), best = *tgi_view_at(v, at, z, y, x);
        if ((largest ? f > best : f < best) || (last && f == best))
            at = k;
    }
    return (float)at;
}

/* Moments of rows, by the definition (kernels/granule.h). */
static void run_store_moments(const tgi_device_step *s)
{
    const extent e = extent_of(&s->call.box);
    const tgi_view *v = &s->call.src[0].seg[0];
    const int64_t rows = tgi_range_len(e.y);
    double *at = s->pixels.at;
    memset(s->pixels.counts, 0,
           (size_t)(tgi_range_len(e.z) * rows) * 2 * sizeof *s->pixels.counts);
    for (int64_t z = e.z.lo; z < e.z.hi; z++)
        for (int64_t y = e.y.lo; y < e.y.hi; y++)
            for (int64_t x = e.x.lo; x < e.x.hi; x += TGI_GRANULE, at += 2 * v->c)
                for (int64_t c = 0; c < v->c; c++) {
                    const int64_t n = tgi_min(TGI_GRANULE, e.x.hi - x);
                    double sum = 0, m2 = 0;
                    for (int64_t i = 0; i < n; i++)
                        sum += (double)*tgi_view_at(v, c, z, y, x + i);
                    for (int64_t i = 0; i < n; i++) {
                        const double d =
                            (double)*tgi_view_at(v, c, z, y, x + i) - sum / (double)n;
                        m2 += d * d;
                    }
                    at[c] = sum;
                    at[v->c + c] = m2;
                }
}

static void count(const tgi_device_pixels *p, float f, uint32_t n[2])
{
    n[0] += !isfinite(f);
    n[1] += tgi_dtype_is_float(p->type)
                ? 0
                : (uint32_t)tgi_pixels_outside(p->type, &f, 1, 1, p->mul, p->add);
}

static void run_store(const tgi_device_step *s)
{
    const tgi_device_pixels *p = &s->pixels;
    const extent e = extent_of(&s->call.box);
    const int64_t rows = tgi_range_len(e.y);
    if (p->counts)
        memset(p->counts, 0, (size_t)(tgi_range_len(e.z) * rows) * 2 * sizeof *p->counts);
    for (int64_t z = e.z.lo; z < e.z.hi; z++)
        for (int64_t c = 0; c < p->channels; c++)
            for (int64_t y = e.y.lo; y < e.y.hi; y++)
                for (int64_t x = e.x.lo; x < e.x.hi; x++) {
                    const float f = stored(s, c, z, y, x);
                    if (p->counts)
                        count(p, f, p->counts + 2 * ((z - e.z.lo) * rows + y - e.y.lo));
                    tgi_pixels_store(p->type, &f, 1, 1, p->mul, p->add,
                                     staged_at(p, z - e.z.lo, c, y, x), 1);
                }
}

static tg_status run_step(const tgi_device_step *s, tgi_err *err)
{
    if (s->kind == TGI_STEP_NODE)
        return run_node(s, err);
    if (s->kind == TGI_STEP_LOAD)
        run_load(s);
    else if (s->pixels.moments)
        run_store_moments(s);
    else
        run_store(s);
    return TG_OK;
}

tg_status fake_run_step(const tgi_device_step *s, tgi_err *err)
{
    if (tgi_box_empty(&s->call.box) || (s->kind == TGI_STEP_NODE && fake.hollow))
        return TG_OK;
    return is_half(s) ? fake_run_halves(s, run_step, err) : run_step(s, err);
}
