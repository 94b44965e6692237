/* load.c - fetches rows of the source, pads them and writes them as numbers into the network's
 * input. */
#include "engine/ends/load.h"

#include "engine/base/ahead.h"
#include "engine/base/arith.h"
#include "engine/base/clock.h"
#include "engine/base/mem.h"
#include "io/film_out.h"
#include "kernels/pixels.h"

#include <string.h>

/* What a staging buffer holds: source rectangle `hull` of every (z, channel) of `box`. */
typedef struct fetched {
    int valid;
    int64_t item, shift[3];
    tgi_box box;
    tgi_range rows, cols; /* in the region's coordinates */
    tg_status st;
    tgi_err err;
} fetched;

struct tgi_loader {
    tgi_loader_opts o;
    tg_dtype type;
    int64_t together; /* channels that lie side by side in staging: samples of a pixel, or 1 */
    int64_t item, shift[3];
    tgi_affine *affine; /* of each channel of the image */
    int alike;          /* they are all the same, and none clips */
    fetched slot[2];
    int next; /* staging buffer the next fetch goes to */
    tgi_ahead ahead;
    double waited;
};

/* ---- Geometry ---------------------------------------------------------------------------- */

/* Axis of a box in the region's frame. */
static tgi_range axis_of(const tgi_loader *l, const fetched *f, int zyx)
{
    if (zyx == 0 && l->o.rank != 5)
        return (tgi_range){0, 1};
    const tgi_range r = f->box.ax[l->o.rank - 3 + zyx];
    return (tgi_range){r.lo - f->shift[zyx], r.hi - f->shift[zyx]};
}

/* Pixels of an axis that so many of a box need: mirrored ones lie at most as far inside as the padding reaches outside. */
static int64_t most_of(const tgi_mapping *m, int axis, int64_t n)
{
    return tgi_min(m->extent[axis], n + m->fit[axis].size - m->extent[axis]);
}

size_t tgi_loader_bytes(const tgi_mapping *m, tg_dtype type, int64_t slabs, int64_t rows,
                        int64_t columns)
{
    const int64_t r = most_of(m, 1, rows), c = most_of(m, 2, columns);
    const size_t plane = tgi_sat_mul(tgi_sat_mul((size_t)r, (size_t)c), tgi_dtype_size(type));
    return tgi_align_size(tgi_sat_mul(plane, (size_t)(slabs * m->channels)), 64);
}

/* Samples of chroma that n pixels lie among: one at each end may be for pixels that are not of them. */
static int64_t most_chroma(int64_t n, int log2, int64_t of)
{
    return tgi_min(tgi_yuv_chroma(of, log2), log2 ? tgi_yuv_chroma(n, log2) + 2 : n);
}

size_t tgi_loader_yuv_bytes(const tgi_mapping *m, const tgi_yuv *yuv, int64_t rows,
                            int64_t columns)
{
    const int64_t r = most_of(m, 1, rows), c = most_of(m, 2, columns);
    const int64_t chroma =
        most_chroma(r, yuv->log2_h, yuv->height) * most_chroma(c, yuv->log2_w, yuv->width);
    return tgi_align_size((size_t)(r * c + 2 * chroma) * (yuv->depth > 8 ? 2 : 1), 64);
}

/* ---- Fetch ------------------------------------------------------------------------------- */

static size_t row_bytes(const tgi_loader *l, const fetched *f)
{
    return (size_t)(tgi_range_len(f->cols) * l->together) * tgi_dtype_size(l->type);
}

static size_t plane_bytes(const tgi_loader *l, const fetched *f)
{
    return row_bytes(l, f) * (size_t)tgi_range_len(f->rows);
}

/* Of one slab in staging. */
static int64_t planes_of(const tgi_loader *l)
{
    return l->o.map->channels / l->together;
}

/* Channel c, or all of them when they are samples: as the file most likely has them. */
static tg_status read_channel(tgi_loader *l, int thread, const fetched *f, int64_t z, int64_t c,
                              char *dst, tgi_err *err)
{
    const tgi_mapping *m = l->o.map;
    int sample;
    const int64_t plane = tgi_mapping_plane(m, f->item, z, &sample) + c * m->channel_stride;
    const int s0 = m->from_samples ? 0 : sample, s1 = s0 + (int)l->together;
    return tgi_source_read(l->o.source, thread, plane, s0, s1, m->origin[1] + f->rows.lo,
                           m->origin[1] + f->rows.hi, m->origin[2] + f->cols.lo,
                           m->origin[2] + f->cols.hi, dst, row_bytes(l, f), TGI_INTERLEAVED,
                           err);
}

static size_t staged_bytes(const tgi_loader *l, const fetched *f)
{
    const tgi_yuv_staged what = tgi_yuv_stage(&l->o.yuv, f->rows, f->cols);
    return l->o.yuv.there
               ? tgi_yuv_bytes(&l->o.yuv, &what)
               : plane_bytes(l, f) * (size_t)(tgi_range_len(axis_of(l, f, 0)) * planes_of(l));
}

static tg_status fetch_yuv(tgi_loader *l, fetched *f, void *dst)
{
    int sample;
    const tgi_yuv_staged what = tgi_yuv_stage(&l->o.yuv, f->rows, f->cols);
    if (plane_bytes(l, f) == 0)
        return TG_OK;
    return tgi_film_source_stage(l->o.source, tgi_mapping_plane(l->o.map, f->item, 0, &sample),
                                 &l->o.yuv, &what, dst, &f->err);
}

static tg_status fetch(tgi_loader *l, int which, int thread)
{
    fetched *f = &l->slot[which];
    const tgi_mapping *m = l->o.map;
    f->rows = tgi_pad_hull(m->pad, axis_of(l, f, 1), m->extent[1]);
    f->cols = tgi_pad_hull(m->pad, axis_of(l, f, 2), m->extent[2]);
    const tgi_range z = axis_of(l, f, 0);
    const size_t need = staged_bytes(l, f);
    if (need > l->o.staging_bytes)
        return tgi_fail(&f->err, TG_E_INTERNAL, "staging holds %zu bytes, a band needs %zu",
                        l->o.staging_bytes, need);
    char *dst = l->o.staging[which];
    if (l->o.yuv.there)
        return fetch_yuv(l, f, dst);
    for (int64_t k = z.lo; k < z.hi; k++)
        for (int64_t c = 0; c < planes_of(l); c++, dst += plane_bytes(l, f)) {
            const int64_t sz = tgi_pad_index(m->pad, k, m->extent[0]);
            if (sz < 0 || plane_bytes(l, f) == 0)
                continue;
            TGI_TRY(read_channel(l, thread, f, sz, c, dst, &f->err));
        }
    return TG_OK;
}

static void fetch_next(void *user)
{
    tgi_loader *l = user;
    l->slot[l->next].st = fetch(l, l->next, 1);
}

/* ---- Open and close ---------------------------------------------------------------------- */

tg_status tgi_loader_open(const tgi_loader_opts *o, tgi_loader **out, tgi_err *err)
{
    tgi_loader *l = tgi_calloc(TGI_TAG_IO, 1, sizeof *l);
    if (!l)
        return tgi_fail(err, TG_E_NOMEM, "no memory for the reader");
    l->o = *o;
    l->type = o->source->ops->info(o->source)->dtype;
    l->together = o->map->from_samples ? o->map->channels : 1;
    l->affine = tgi_calloc(TGI_TAG_IO, (size_t)o->map->channels, sizeof *l->affine);
    for (int i = 0; i < 3; i++)
        l->shift[i] = o->map->fit[i].before;
    tg_status st = tgi_ahead_open(&l->ahead, fetch_next, l, err);
    if (st == TG_OK && !l->affine)
        st = tgi_fail(err, TG_E_NOMEM, "no memory for the reader");
    if (st == TG_OK)
        tgi_loader_item(l, 0, (tgi_affine){.mul = 1});
    else
        tgi_loader_close(&l);
    *out = l;
    return st;
}

void tgi_loader_close(tgi_loader **lp)
{
    if (!lp || !*lp)
        return;
    tgi_ahead_close(&(*lp)->ahead);
    tgi_free((*lp)->affine);
    tgi_free(*lp);
    *lp = NULL;
}

static int is_alike(const tgi_affine *a, const tgi_affine *b)
{
    return !a->clips && !b->clips && a->mul == b->mul && a->add == b->add;
}

void tgi_loader_channel(tgi_loader *l, int64_t c, tgi_affine affine)
{
    l->affine[c] = affine;
    l->alike = (c == 0 || l->alike) && is_alike(&l->affine[0], &affine);
}

void tgi_loader_item(tgi_loader *l, int64_t item, tgi_affine affine)
{
    l->item = item;
    for (int64_t c = 0; c < l->o.map->channels; c++)
        tgi_loader_channel(l, c, affine);
}

void tgi_loader_place(tgi_loader *l, const int64_t shift[3])
{
    memcpy(l->shift, shift, sizeof l->shift);
}

/* Begin slot f anew: `box` of an item at a place. */
static void ask(fetched *f, int64_t item, const int64_t shift[3], const tgi_box *box)
{
    memset(f, 0, sizeof *f);
    f->item = item;
    memcpy(f->shift, shift, sizeof f->shift);
    f->box = *box;
}

void tgi_loader_prefetch(tgi_loader *l, const tgi_box *box)
{
    tgi_loader_prefetch_at(l, l->item, l->shift, box);
}

void tgi_loader_prefetch_at(tgi_loader *l, int64_t item, const int64_t shift[3],
                            const tgi_box *box)
{
    if (tgi_box_empty(box) || !tgi_ahead_free(&l->ahead))
        return;
    fetched *f = &l->slot[l->next];
    ask(f, item, shift, box);
    f->valid = 1;
    tgi_ahead_ask(&l->ahead);
}

/* The staging buffer that holds `box`: what the reader has fetched, or fetched now. */
static tg_status obtain(tgi_loader *l, const tgi_box *box, int *which)
{
    l->waited += tgi_ahead_take(&l->ahead);
    *which = l->next;
    l->next = !l->next;
    fetched *f = &l->slot[*which];
    if (f->valid && f->item == l->item && tgi_box_equal(&f->box, box) &&
        memcmp(f->shift, l->shift, sizeof f->shift) == 0)
        return f->st;
    ask(f, l->item, l->shift, box);
    const double t1 = tgi_seconds();
    f->st = fetch(l, *which, 0);
    l->waited += tgi_seconds() - t1;
    return f->st;
}

/* ---- Convert ----------------------------------------------------------------------------- */

typedef struct fill_job {
    const tgi_loader *l;
    const fetched *f;
    const char *staging;
    const tgi_view *view;
} fill_job;

/* Bounds of the image, where the map puts them. */
static void hold(const tgi_affine *a, float *x, int64_t n, int64_t step)
{
    const float mul = (float)a->mul, add = (float)a->add;
    const float p = (float)a->lo * mul + add, q = (float)a->hi * mul + add;
    const float lo = p < q ? p : q, hi = p < q ? q : p;
    for (int64_t i = 0; i < n; i++) {
        float *v = &x[i * step];
        *v = *v < lo ? lo : *v > hi ? hi : *v; /* NaN stays */
    }
}

/* `n` pixels from `src` (all channels that lie together) to dst[0..count), from channel `c` of
 * them on; `first` is channel c's number in the network. */
static void convert(const fill_job *j, const char *src, int64_t n, int64_t c, int64_t first,
                    int count, float *const *dst)
{
    const tgi_loader *l = j->l;
    const int at_once = l->alike ? count : 1;
    for (int k = 0; k < count; k += at_once) {
        const tgi_affine *a = &l->affine[first + k];
        tgi_pixels p = {.type = l->type,
                        .samples = at_once,
                        .stride = l->together,
                        .n = n,
                        .mul = (float)a->mul,
                        .add = (float)a->add,
                        .step = j->view->cb};
        memcpy(p.value, dst + k, (size_t)at_once * sizeof *dst);
        l->o.be->pixels_load(&p, src + (size_t)(c + k) * tgi_dtype_size(l->type));
        if (a->clips)
            hold(a, dst[k], n, p.step);
    }
}

/* Columns [x.lo, x.hi) of the region's frame of `count` channel rows, from channel `c` of those
 * that lie together on, channel `first` of the network; `src` holds f->cols, NULL: rows of zeros. */
static void fill_row(const fill_job *j, const char *src, int64_t c, int64_t first, int count,
                     float *const *dst, tgi_range x)
{
    const tgi_mapping *m = j->l->o.map;
    const int64_t cb = j->view->cb;
    const size_t pixel = tgi_dtype_size(j->l->type) * (size_t)j->l->together;
    const tgi_range in = src ? tgi_range_clip(x, 0, m->extent[2]) : (tgi_range){0, 0};
    for (int64_t i = x.lo; i < x.hi;) {
        const int inside = i == in.lo && !tgi_range_empty(in);
        const int64_t n = inside ? tgi_range_len(in) : 1;
        const int64_t from = inside ? i : src ? tgi_pad_index(m->pad, i, m->extent[2]) : -1;
        float *to[TGI_PIXEL_SAMPLES];
        for (int k = 0; k < count; k++)
            to[k] = dst[k] + (i - x.lo) * cb;
        if (from >= 0)
            convert(j, src + (size_t)(from - j->f->cols.lo) * pixel, n, c, first, count, to);
        for (int k = 0; from < 0 && k < count; k++)
            *to[k] = 0;
        i += n;
    }
}

static void zero_lanes(const tgi_view *v, int64_t z, int64_t y, tgi_range x)
{
    for (int64_t c = v->c; c < tgi_view_blocks(v) * v->cb; c++)
        for (int64_t i = x.lo; i < x.hi; i++)
            *tgi_view_at(v, c, z, y, i) = 0;
}

static void fill_one(void *arg, int64_t job, int thread)
{
    (void)thread;
    const fill_job *j = arg;
    const tgi_loader *l = j->l;
    const tgi_mapping *m = l->o.map;
    const int64_t *shift = j->f->shift;
    const tgi_range z = axis_of(l, j->f, 0), y = axis_of(l, j->f, 1), x = axis_of(l, j->f, 2);
    /* There are jobs only where there are rows. */
    // NOLINTNEXTLINE(clang-analyzer-core.DivideZero)
    const int64_t zi = job / tgi_range_len(y), row = y.lo + job % tgi_range_len(y);
    const int64_t sy = tgi_pad_index(m->pad, row, m->extent[1]);
    const int64_t sz = tgi_pad_index(m->pad, z.lo + zi, m->extent[0]);
    /* the view counts as the network does */
    const int64_t vz = l->o.rank == 5 ? z.lo + zi + shift[0] : 0, vy = row + shift[1];
    const tgi_range vx = {x.lo + shift[2], x.hi + shift[2]};
    for (int64_t c = 0; c < m->channels;) {
        const int64_t at = zi * planes_of(l) + c / l->together, first = c % l->together;
        const int count = (int)tgi_min(TGI_PIXEL_SAMPLES, l->together - first);
        const char *plane = j->staging + (size_t)at * plane_bytes(l, j->f);
        const char *src =
            sy < 0 || sz < 0 ? NULL : plane + (size_t)(sy - j->f->rows.lo) * row_bytes(l, j->f);
        float *dst[TGI_PIXEL_SAMPLES];
        for (int k = 0; k < count; k++)
            dst[k] = tgi_view_at(j->view, c + k, vz, vy, vx.lo);
        fill_row(j, src, first, c, count, dst, x);
        c += count;
    }
    if (m->channels % j->view->cb)
        zero_lanes(j->view, vz, vy, vx);
}

tg_status tgi_loader_fill(tgi_loader *l, const tgi_view *view, const tgi_box *box, tgi_err *err)
{
    int which;
    const tg_status st = obtain(l, box, &which);
    if (st != TG_OK)
        return tgi_fail(err, st, "%s", l->slot[which].err.text);
    fill_job j = {l, &l->slot[which], l->o.staging[which], view};
    const int64_t rows = tgi_range_len(axis_of(l, j.f, 0)) * tgi_range_len(axis_of(l, j.f, 1));
    tgi_parallel(l->o.pool, rows, fill_one, &j);
    return TG_OK;
}

_Static_assert((int)TGI_LOAD_REFLECT == (int)TGI_PAD_REFLECT &&
                   (int)TGI_LOAD_EDGE == (int)TGI_PAD_EDGE &&
                   (int)TGI_LOAD_ZERO == (int)TGI_PAD_ZERO,
               "devices pad as the loader does");

tg_status tgi_loader_pixels(tgi_loader *l, const tgi_box *box, tgi_device_pixels *out,
                            const void **at, size_t *bytes, tgi_err *err)
{
    int which;
    const tg_status st = obtain(l, box, &which);
    const fetched *f = &l->slot[which];
    if (st != TG_OK)
        return tgi_fail(err, st, "%s", f->err.text);
    const tgi_mapping *m = l->o.map;
    if (!l->alike)
        return tgi_fail(err, TG_E_INTERNAL, "a device that is to normalise channel by channel");
    *out = (tgi_device_pixels){.type = l->type,
                               .channels = m->channels,
                               .together = l->together,
                               .rows = f->rows,
                               .cols = f->cols,
                               .pad = (tgi_load_pad)m->pad,
                               .mul = (float)l->affine[0].mul,
                               .add = (float)l->affine[0].add,
                               .yuv = l->o.yuv};
    memcpy(out->shift, f->shift, sizeof out->shift);
    memcpy(out->extent, m->extent, sizeof out->extent);
    *at = l->o.staging[which];
    *bytes = staged_bytes(l, f);
    return TG_OK;
}

double tgi_loader_wait_seconds(const tgi_loader *l)
{
    return l->waited;
}
