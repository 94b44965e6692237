/* store.c - collects finished rows until a row of tiles is full, converts them and hands the
 * tiles on. */
#include "engine/ends/store.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "kernels/pixels.h"

#include <stdatomic.h>
#include <string.h>

/* The cell and the group of it that tiles are counted in. */
typedef struct where {
    int64_t item;
    tgi_range core[3];            /* z,y,x in pixels of the file, cropped to the image */
    int64_t shift[3];             /* added to those: pixels of the network's output */
    int64_t tx0, n_tx, ty0, n_ty; /* tiles of the group */
} where;

struct tgi_store {
    tgi_store_opts o;
    where at;
    int volume;
    int64_t channels; /* planes a group writes per tile place; 1 when interleaved */
    tgi_affine affine;
    void **slot; /* [channel][tile row][tile column]; NULL: already in the file */
    int64_t *seq;
    int64_t n_slots;
    int64_t group; /* the one that is open, or -1 */
    int64_t next_seq, done;
    _Atomic int64_t nonfinite, clipped, stored; /* values */
};

int64_t tgi_store_group_tiles(const tgi_mapping *m, const tgi_tiling *t, int64_t tile_h,
                              int64_t tile_w, int volume)
{
    const int64_t c = m->out_samples ? 1 : m->out_channels;
    const int64_t across = tgi_ceil_div(tgi_min(t->cut[2], m->out_extent[2]), tile_w);
    const int64_t down =
        volume ? tgi_ceil_div(tgi_min(t->cut[1], m->out_extent[1]), tile_h) : 1;
    return c * across * down;
}

tg_status tgi_store_open(const tgi_store_opts *o, tgi_store **out, tgi_err *err)
{
    tgi_store *s = tgi_calloc(TGI_TAG_IO, 1, sizeof *s);
    if (!s)
        return tgi_fail(err, TG_E_NOMEM, "no memory for the output's tiles");
    s->o = *o;
    s->volume = o->map->spatial == 3;
    s->channels = o->map->out_samples ? 1 : o->map->out_channels;
    s->n_slots = tgi_store_group_tiles(o->map, o->tiling, o->layout->tile_h, o->layout->tile_w,
                                       s->volume);
    s->slot = tgi_calloc(TGI_TAG_IO, (size_t)s->n_slots, sizeof *s->slot);
    s->seq = tgi_calloc(TGI_TAG_IO, (size_t)s->n_slots, sizeof *s->seq);
    s->next_seq = o->to.appended(o->to.user);
    s->group = -1;
    if (!s->slot || !s->seq) {
        tgi_store_close(&s);
        return tgi_fail(err, TG_E_NOMEM, "no memory for the output's tiles");
    }
    *out = s;
    return TG_OK;
}

void tgi_store_close(tgi_store **s)
{
    if (!s || !*s)
        return;
    tgi_free((*s)->slot);
    tgi_free((*s)->seq);
    tgi_free(*s);
    *s = NULL;
}

/* ---- Groups ------------------------------------------------------------------------------ */

static int64_t group_of(const tgi_store *s, int64_t row)
{
    return s->volume ? row : row / s->o.layout->tile_h;
}

/* Rows (slabs) of group g inside the cell. */
static tgi_range rows_of(const tgi_store *s, int64_t g)
{
    if (s->volume)
        return (tgi_range){g, g + 1};
    return tgi_range_clip((tgi_range){g * s->o.layout->tile_h, (g + 1) * s->o.layout->tile_h},
                          s->at.core[1].lo, s->at.core[1].hi);
}

static void frame_group(tgi_store *s, int64_t g)
{
    const tgi_sink_layout *l = s->o.layout;
    s->at.tx0 = s->at.core[2].lo / l->tile_w;
    s->at.n_tx = tgi_ceil_div(s->at.core[2].hi, l->tile_w) - s->at.tx0;
    s->at.ty0 = s->volume ? s->at.core[1].lo / l->tile_h : g;
    s->at.n_ty = s->volume ? tgi_ceil_div(s->at.core[1].hi, l->tile_h) - s->at.ty0 : 1;
}

static int64_t tile_id(const tgi_store *s, int64_t g, int64_t c, int64_t ty, int64_t tx)
{
    const tgi_sink_layout *l = s->o.layout;
    const int64_t plane = tgi_mapping_out_plane(s->o.map, s->at.item, s->volume ? g : 0, c);
    return (plane * l->tiles_y + s->at.ty0 + ty) * l->tiles_x + s->at.tx0 + tx;
}

static int64_t slot_index(const tgi_store *s, int64_t c, int64_t ty, int64_t tx)
{
    return (c * s->at.n_ty + ty) * s->at.n_tx + tx;
}

static int has_tile(const tgi_store *s, int64_t id)
{
    return s->o.to.has(s->o.to.user, id);
}

static int group_is_written(tgi_store *s, int64_t g)
{
    frame_group(s, g);
    for (int64_t c = 0; c < s->channels; c++)
        for (int64_t ty = 0; ty < s->at.n_ty; ty++)
            for (int64_t tx = 0; tx < s->at.n_tx; tx++)
                if (!has_tile(s, tile_id(s, g, c, ty, tx)))
                    return 0;
    return 1;
}

static tg_status open_group(tgi_store *s, int64_t g, tgi_err *err)
{
    frame_group(s, g);
    s->group = g;
    for (int64_t c = 0; c < s->channels; c++)
        for (int64_t ty = 0; ty < s->at.n_ty; ty++)
            for (int64_t tx = 0; tx < s->at.n_tx; tx++) {
                const int64_t i = slot_index(s, c, ty, tx);
                s->slot[i] = NULL;
                if (has_tile(s, tile_id(s, g, c, ty, tx)))
                    continue;
                s->seq[i] = s->next_seq++;
                TGI_TRY(tgi_commit_slot(s->o.commit, s->seq[i], &s->slot[i], err));
            }
    return TG_OK;
}

static tg_status close_group(tgi_store *s, tgi_err *err)
{
    for (int64_t c = 0; c < s->channels; c++)
        for (int64_t ty = 0; ty < s->at.n_ty; ty++)
            for (int64_t tx = 0; tx < s->at.n_tx; tx++) {
                const int64_t i = slot_index(s, c, ty, tx);
                if (!s->slot[i])
                    continue;
                TGI_TRY(tgi_commit_submit(s->o.commit, s->seq[i],
                                          tile_id(s, s->group, c, ty, tx), err));
                s->done++;
            }
    s->group = -1;
    return TG_OK;
}

static tgi_range in_file(const tgi_store *s, tgi_range core, int zyx)
{
    const int64_t by = s->at.shift[zyx];
    return tgi_range_clip((tgi_range){core.lo - by, core.hi - by}, 0,
                          s->o.map->out_extent[zyx]);
}

/* Turn to a cell: what tiles and rows are counted in from now on. */
static void turn_to(tgi_store *s, int64_t item, const tgi_range *core, const int64_t shift[3])
{
    s->at.item = item;
    memcpy(s->at.shift, shift, sizeof s->at.shift);
    s->at.core[0] = s->volume ? in_file(s, core[0], 0) : (tgi_range){0, 1};
    s->at.core[1] = in_file(s, core[s->volume ? 1 : 0], 1);
    s->at.core[2] = in_file(s, core[s->volume ? 2 : 1], 2);
}

/* Of the cell that is turned to, whose rows are `rows` in the network's output. Up to its end,
 * beyond the image's where it has padding, unless the last tiles are there. */
static tgi_range missing_rows(tgi_store *s, tgi_range rows)
{
    const tgi_range stream = s->volume ? s->at.core[0] : s->at.core[1];
    const int64_t shift = s->at.shift[s->volume ? 0 : 1];
    if (tgi_range_empty(s->at.core[1]) || tgi_range_empty(s->at.core[2]) ||
        tgi_range_empty(stream))
        return (tgi_range){rows.hi, rows.hi}; /* only padding */
    const int64_t last = group_of(s, stream.hi - 1);
    int64_t from = group_of(s, stream.lo), to = last;
    while (from <= last && group_is_written(s, from))
        from++;
    if (from > last)
        return (tgi_range){rows.hi, rows.hi};
    while (group_is_written(s, to))
        to--;
    return (tgi_range){rows_of(s, from).lo + shift,
                       to == last ? rows.hi : rows_of(s, to).hi + shift};
}

tgi_range tgi_store_cell(tgi_store *s, int64_t item, const tgi_range *core,
                         const int64_t shift[3], tgi_affine affine)
{
    s->affine = affine;
    turn_to(s, item, core, shift);
    return missing_rows(s, core[0]);
}

tgi_range tgi_store_missing(tgi_store *s, int64_t item, const tgi_range *core,
                            const int64_t shift[3])
{
    const where now = s->at; /* a group of it may be open */
    turn_to(s, item, core, shift);
    const tgi_range missing = missing_rows(s, core[0]);
    s->at = now;
    return missing;
}

/* ---- Rows -------------------------------------------------------------------------------- */

typedef struct copy_job {
    tgi_store *s;
    const tgi_view *view;   /* rows of numbers, or NULL: */
    const char *pixels;     /* rows of pixels over `box` */
    const uint32_t *counts; /* two for each row of `box` */
    const tgi_box *box;     /* in the network's output */
    tgi_range z, y;         /* in the file */
} copy_job;

/* NaN and infinity have an exponent of ones; by bits, so that it vectorises. */
static int64_t nonfinite_in(const tgi_pixels *p)
{
    int64_t bad = 0;
    for (int k = 0; k < p->samples; k++)
        for (int64_t i = 0; i < p->n; i++) {
            uint32_t u;
            memcpy(&u, &p->value[k][i * p->step], sizeof u);
            bad += (u & 0x7f800000u) == 0x7f800000u;
        }
    return bad;
}

/* Values that are none, and values that the output's type does not hold; where all of them fit
 * an integer, none can be NaN or infinite. */
static void count_misfits(tgi_store *s, const tgi_pixels *p)
{
    int64_t outside = 0;
    const int is_float = tgi_dtype_is_float(p->type);
    for (int k = 0; k < p->samples && !is_float; k++)
        outside += tgi_pixels_outside(p->type, p->value[k], p->step, p->n, p->mul, p->add);
    const int64_t bad = is_float || outside ? nonfinite_in(p) : 0;
    if (bad)
        atomic_fetch_add(&s->nonfinite, bad);
    if (!is_float)
        atomic_fetch_add(&s->stored, p->n * p->samples);
    if (outside > bad)
        atomic_fetch_add(&s->clipped, outside - bad);
}

/* Row of `box` that row (z,y) of the file is, slabs counted before. */
static int64_t row_of_box(const copy_job *j, int64_t z, int64_t y)
{
    const tgi_store *s = j->s;
    const tgi_range *ax = &j->box->ax[TGI_STREAM_AXIS];
    if (!s->volume)
        return y + s->at.shift[1] - ax[0].lo;
    return (z + s->at.shift[0] - ax[0].lo) * tgi_range_len(ax[1]) + y + s->at.shift[1] -
           ax[1].lo;
}

/* Pixels that are ready: n of channel c, or of all its samples, from (z,y,x) on. */
static void copy_pixels(const copy_job *j, int64_t c, int64_t z, int64_t y, tgi_range x,
                        char *dst)
{
    const tgi_store *s = j->s;
    const int x_axis = j->box->rank - 1;
    const int64_t rows = tgi_range_len(j->box->ax[x_axis - 1]);
    const int64_t width = tgi_range_len(j->box->ax[x_axis]);
    const int64_t row = row_of_box(j, z, y);
    /* There are rows. */
    // NOLINTNEXTLINE(clang-analyzer-core.DivideZero)
    const int64_t plane = row / rows * s->channels + c;
    const int64_t at =
        (plane * rows + row % rows) * width + x.lo + s->at.shift[2] - j->box->ax[x_axis].lo;
    const size_t pixel = (size_t)s->o.layout->samples * tgi_dtype_size(s->o.layout->dtype);
    memcpy(dst, j->pixels + (size_t)at * pixel, (size_t)tgi_range_len(x) * pixel);
}

/* What the device counted in a row. */
static void add_counts(const copy_job *j, int64_t z, int64_t y)
{
    tgi_store *s = j->s;
    const uint32_t *n = j->counts + 2 * row_of_box(j, z, y);
    atomic_fetch_add(&s->nonfinite, n[0]);
    if (tgi_dtype_is_float(s->o.layout->dtype))
        return;
    atomic_fetch_add(&s->clipped, n[1] > n[0] ? n[1] - n[0] : 0);
    atomic_fetch_add(&s->stored,
                     tgi_range_len(s->at.core[2]) * s->channels * s->o.layout->samples);
}

/* One row of one tile column into its slot. */
static void copy_piece(const copy_job *j, int64_t c, int64_t z, int64_t y, tgi_range x)
{
    const tgi_store *s = j->s;
    const tgi_sink_layout *l = s->o.layout;
    const int64_t tx = x.lo / l->tile_w - s->at.tx0, ty = y / l->tile_h - s->at.ty0;
    char *slot = s->slot[slot_index(s, c, ty, tx)];
    if (!slot)
        return;
    const int64_t at = y % l->tile_h * l->tile_w + x.lo % l->tile_w;
    const size_t size = tgi_dtype_size(l->dtype);
    if (j->pixels) {
        copy_pixels(j, c, z, y, x, slot + (size_t)at * (size_t)l->samples * size);
        return;
    }
    tgi_pixels p = {.type = l->dtype,
                    .samples = l->samples,
                    .stride = l->samples,
                    .n = tgi_range_len(x),
                    .mul = (float)s->affine.mul,
                    .add = (float)s->affine.add,
                    .step = j->view->cb};
    for (int k = 0; k < l->samples; k++) /* at most four, by the mapping */
        p.value[k] = tgi_view_at(j->view, c + k, s->volume ? z + s->at.shift[0] : 0,
                                 y + s->at.shift[1], x.lo + s->at.shift[2]);
    count_misfits(j->s, &p);
    s->o.be->pixels_store(&p, slot + (size_t)at * (size_t)l->samples * size);
}

static void copy_row(void *arg, int64_t job, int thread)
{
    (void)thread;
    const copy_job *j = arg;
    const tgi_store *s = j->s;
    const int64_t w = s->o.layout->tile_w;
    /* There are jobs only where there are rows. */
    // NOLINTNEXTLINE(clang-analyzer-core.DivideZero)
    const int64_t y = j->y.lo + job % tgi_range_len(j->y);
    const int64_t z = j->z.lo + job / tgi_range_len(j->y);
    if (j->pixels)
        add_counts(j, z, y);
    for (int64_t c = 0; c < s->channels; c++)
        for (int64_t x = s->at.core[2].lo; x < s->at.core[2].hi; x = (x / w + 1) * w)
            copy_piece(j, c, z, y, (tgi_range){x, tgi_min((x / w + 1) * w, s->at.core[2].hi)});
}

/* All rows of j->box, group by group. */
static tg_status copy_rows(tgi_store *s, copy_job *j, tgi_err *err)
{
    const int along = s->volume ? 0 : 1;
    const tgi_range rows = {j->box->ax[TGI_STREAM_AXIS].lo - s->at.shift[along],
                            j->box->ax[TGI_STREAM_AXIS].hi - s->at.shift[along]};
    const tgi_range stream = tgi_range_clip(rows, s->at.core[along].lo, s->at.core[along].hi);
    for (int64_t at = stream.lo; at < stream.hi;) {
        const int64_t g = group_of(s, at);
        const tgi_range all = rows_of(s, g);
        const tgi_range part = tgi_range_clip(stream, at, all.hi);
        if (s->group != g)
            TGI_TRY(open_group(s, g, err));
        j->z = s->volume ? part : (tgi_range){0, 1};
        j->y = s->volume ? s->at.core[1] : part;
        tgi_parallel(s->o.pool, tgi_range_len(j->z) * tgi_range_len(j->y), copy_row, j);
        at = part.hi;
        if (at == all.hi)
            TGI_TRY(close_group(s, err));
    }
    return TG_OK;
}

tg_status tgi_store_rows(void *store, int o, const tgi_view *view, const tgi_box *box,
                         tgi_err *err)
{
    copy_job j = {.s = store, .view = view, .box = box};
    return o == 0 ? copy_rows(store, &j, err) : TG_OK; /* an image file takes the first */
}

tg_status tgi_store_pixels(tgi_store *s, const tgi_box *box, const void *pixels,
                           const uint32_t *counts, tgi_err *err)
{
    copy_job j = {.s = s, .pixels = pixels, .counts = counts, .box = box};
    return copy_rows(s, &j, err);
}

int64_t tgi_store_nonfinite(const tgi_store *s)
{
    return atomic_load(&s->nonfinite);
}

double tgi_store_clipped(const tgi_store *s)
{
    const int64_t stored = atomic_load(&s->stored);
    return stored ? (double)atomic_load(&s->clipped) / (double)stored : 0;
}

int64_t tgi_store_tiles_done(const tgi_store *s)
{
    return s->done;
}
