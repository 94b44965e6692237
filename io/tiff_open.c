/* tiff_open.c - TIFF and BigTIFF as a tgi_source.
 *
 * Opening parses directories (tiff_ifd.c), builds the index (tiff_index.c), gives the planes
 * their meaning (tiff_series.c) and looks at every block (tiff_block.c). Each thread owns a
 * lane: windows, decoder, slots. All of it is allocated here, at open, or by `expect` before
 * the first read. Source: TIFF 6.0; see the other tiff_*.c for theirs. */
#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "engine/base/size.h"
#include "io/io_formats.h"
#include "io/stack.h"
#include "io/tiff_info.h"
#include "io/tiff_maker.h"
#include "io/tiff_source.h"

#include <stdio.h>
#include <string.h>

#define MAX_THREADS 1024
#define META_WINDOW 65536
#define NAME_BYTES 4096 /* the path, as the plan counts it */
#define LOOKUP_WINDOW ((size_t)4096)
#define READ_WINDOW (64u << 10) /* as fast as 1 MiB (bench_read), and a part of every plan */
#define DEFAULT_BUDGET ((size_t)1 << 30)
#define SLOTS_CAP ((size_t)64 << 20) /* decoded blocks held at most, all threads together */
#define KEEP_BYTES ((size_t)1 << 20) /* rows a stream keeps, */
#define KEEP_ROWS 64                 /* and how many at most */

/* Blocks held whole: a window on the file, slots, a decoder. `packed` false: the window alone.
 */
static tg_status lane_open_slots(tgi_tiff_source *s, tgi_tiff_lane *l, bool packed,
                                 tgi_err *err)
{
    const tgi_tiff_page *p = &s->index.page;
    const size_t cap = packed ? s->max_packed : READ_WINDOW;
    TGI_TRY(tgi_window_init(&l->data, cap, err));
    s->decoder_bytes += cap;
    if (!packed)
        return TG_OK;
    const tgi_packing packing = tgi_packing_whole(&s->packing);
    l->cache = tgi_malloc(TGI_TAG_IO, s->n_slots * p->block_bytes);
    l->slots = tgi_malloc(TGI_TAG_IO, s->n_slots * sizeof *l->slots);
    l->tmp = tgi_malloc(TGI_TAG_IO, p->row_bytes);
    if (!l->cache || !l->slots || !l->tmp)
        return tgi_fail(err, TG_E_NOMEM, "no memory for %zu bytes for decoded tiles",
                        s->n_slots * p->block_bytes);
    for (size_t i = 0; i < s->n_slots; i++)
        l->slots[i] = (tgi_tiff_slot){0, UINT64_MAX};
    TGI_TRY(tgi_unpack_open(&packing, &l->unpack, err));
    s->decoder_bytes += s->n_slots * (p->block_bytes + sizeof *l->slots) + p->row_bytes +
                        tgi_unpack_bytes(&packing);
    return TG_OK;
}

static void close_decoders(tgi_tiff_source *s)
{
    for (int i = 0; s->lanes && i < s->n_lanes; i++) {
        tgi_tiff_lane *l = &s->lanes[i];
        tgi_window_free(&l->data);
        tgi_unpack_close(&l->unpack);
        tgi_free(l->cache);
        tgi_free(l->slots);
        tgi_free(l->tmp);
        l->cache = l->tmp = NULL;
        l->slots = NULL;
    }
    tgi_streams_close(&s->streams);
    s->decoder_bytes = 0;
}

static tgi_stream_shape stream_shape(const tgi_tiff_source *s, size_t columns)
{
    const tgi_tiff_page *p = &s->index.page;
    const size_t room = tgi_min(KEEP_BYTES, s->budget / 4) / columns;
    return (tgi_stream_shape){
        .packing = s->packing,
        .form = s->form,
        .keep = (size_t)tgi_clamp((int64_t)(room / p->row_bytes), 1, KEEP_ROWS),
        .prove = s->on_bad || tgi_unpack_is_sealed(p->codec),
        .cancelled = s->cancelled};
}

/* Refuses before anything is allocated; `least` is what would be enough. */
static tg_status refuse_block(const tgi_tiff_source *s, size_t least, tgi_err *err)
{
    const tgi_tiff_page *p = &s->index.page;
    char text[2][32];
    const tg_status st =
        tgi_fail(err, TG_E_BUDGET,
                 "one %s of %llu x %llu pixels needs %s to be decoded, %s are "
                 "allowed (a quarter of --ram): give a larger one",
                 p->tiled ? "tile" : "strip", (unsigned long long)p->block_w,
                 (unsigned long long)p->block_h, tgi_size_above(least, text[0], sizeof text[0]),
                 tgi_size_below(s->budget, text[1], sizeof text[1]));
    return tgi_err_tried(err, st, TGI_DECODER_ASKS, least);
}

/* How blocks are decoded. Whole when a row of them is small, in all lanes together; else rows
 * are streamed when that takes less; slots fewer than columns are what is left. Sparing: one
 * slot or one stream that keeps one row, whichever is smaller. Fills n_slots or n_streams. */
static tg_status size_decoders(tgi_tiff_source *s, size_t *n_streams, tgi_stream_shape *shape,
                               tgi_err *err)
{
    const tgi_tiff_page *p = &s->index.page;
    const size_t columns = tgi_sat_mul((size_t)tgi_tiff_columns(p), (size_t)s->planes_at_once),
                 lanes = (size_t)s->n_lanes;
    const tgi_packing packing = tgi_packing_whole(&s->packing);
    const size_t fixed =
        tgi_sat_add(s->max_packed, tgi_sat_add(p->row_bytes, tgi_unpack_bytes(&packing)));
    const size_t each = tgi_sat_add(p->block_bytes, sizeof(tgi_tiff_slot));
    const size_t slot = tgi_sat_mul(lanes, tgi_sat_add(fixed, each));
    const size_t all = tgi_sat_mul(lanes, tgi_sat_add(fixed, tgi_sat_mul(each, columns)));
    const size_t room = s->budget > p->row_bytes ? s->budget - p->row_bytes : 0;
    *n_streams = s->n_slots = 0;
    if (!s->spare && all <= s->budget / 16 && all <= SLOTS_CAP) {
        s->n_slots = columns;
        return TG_OK;
    }
    *shape = stream_shape(s, columns);
    const bool knows = s->packing.history || !tgi_unpack_has_history(p->codec);
    const bool may = knows && tgi_unpack_streams(p->codec);
    size_t one = may ? tgi_stream_bytes(shape) : SIZE_MAX;
    if (may && (s->spare || one > room)) {
        shape->keep = 1;
        one = tgi_stream_bytes(shape);
    }
    const bool streams = tgi_sat_mul(one, columns) < all;
    const size_t least = streams && one + p->row_bytes < slot ? one + p->row_bytes : slot;
    if (least > s->budget)
        return refuse_block(s, least, err);
    if (streams && room > 0 && one <= room && (!s->spare || least < slot)) {
        *n_streams = s->spare ? 1 : (room / one < columns ? room / one : columns);
        return TG_OK;
    }
    const size_t fit = s->spare ? 1 : (s->budget / lanes - fixed) / each;
    s->n_slots = fit < columns ? fit : columns;
    return TG_OK;
}

static tg_status open_decoders(tgi_tiff_source *s, tgi_err *err)
{
    const tgi_tiff_page *p = &s->index.page;
    const bool packed = !p->raw;
    tgi_stream_shape shape;
    size_t n_streams = 0;
    close_decoders(s);
    if (packed)
        TGI_TRY(size_decoders(s, &n_streams, &shape, err));
    for (int i = 0; !n_streams && i < s->n_lanes; i++)
        TGI_TRY(lane_open_slots(s, &s->lanes[i], packed, err));
    if (!n_streams)
        return TG_OK;
    s->keep = shape.keep;
    s->decoder_bytes = tgi_streams_bytes(&shape, n_streams);
    return tgi_streams_open(&shape, &s->file.f, n_streams, &s->streams, err);
}

/* What is held at once while a long text of the file is read: itself, what is kept of it, and what the XML reader works in.
 * 2.6 times an honest text was the most that was seen. One that is a single comment takes 4 times of it; names of
 * elements, which the reader remembers, and points of regions take more, and of both there is a limit. */
#define LONG_TEXT ((uint64_t)1 << 18)
#define MOST_BESIDE ((uint64_t)32 << 20)
static size_t text_bytes(const tgi_tiff_page *first)
{
    const uint64_t n = first->description.count;
    const uint64_t beside = 3 * n < MOST_BESIDE ? 3 * n : MOST_BESIDE;
    return n < LONG_TEXT || n > SIZE_MAX / 8 ? 0 : (size_t)(4 * n + beside);
}

static tg_status check_text(const tgi_tiff_page *first, const tgi_open_opts *o, tgi_err *err)
{
    const size_t need = text_bytes(first);
    char text[3][32];
    if (!o->text_budget || need <= o->text_budget)
        return TG_OK;
    return tgi_fail(err, TG_E_BUDGET,
                    "the text that describes the file has %s and takes %s to be read, of the "
                    "budget %s are left: give a larger --ram",
                    tgi_size_text(first->description.count, text[0], sizeof text[0]),
                    tgi_size_above(need, text[1], sizeof text[1]),
                    tgi_size_below(o->text_budget, text[2], sizeof text[2]));
}

static tg_status open_index(tgi_tiff_source *s, const char *path, const tgi_open_opts *o,
                            size_t budget, tgi_err *err)
{
    tgi_tiff_page *first = &s->index.first;
    tgi_image_meta *m = &s->info.meta;
    const char *slash = strrchr(path, '/'), *self = slash ? slash + 1 : path;
    TGI_TRY(tgi_window_init(&s->file.win, META_WINDOW, err));
    TGI_TRY(tgi_tiff_header(&s->file, err));
    TGI_TRY(tgi_tiff_page_parse(&s->file, s->file.first_ifd, first, err));
    TGI_TRY(check_text(first, o, err));
    TGI_TRY(tgi_tiff_info_texts(&s->file, first, m, err));
    const tgi_tiff_flavor flavor =
        o->pages ? TGI_TIFF_PLAIN : tgi_tiff_flavor_of(m->description);
    tgi_tiff_index_opts io = {
        .series = o->series,
        .level = o->level,
        .aperio = m->description && strncmp(m->description, "Aperio", 6) == 0,
        .subifd_levels = flavor == TGI_TIFF_SHAPED,
        .subifd_planes = flavor == TGI_TIFF_PLAIN && !o->pages,
        .max_bytes = budget,
    };
    if (flavor == TGI_TIFF_OME && o->series > 0) {
        TGI_TRY(
            tgi_tiff_series_size(m->description, self, o->series, &io.width, &io.height, err));
        io.series = io.width ? o->series : 0; /* 0: none of the pages here is of it */
    }
    TGI_TRY(tgi_tiff_index_build(&s->file, &io, &s->index, err));
    if (flavor != TGI_TIFF_OME && o->series > 0)
        TGI_TRY(tgi_tiff_info_texts(&s->file, first, m, err));
    TGI_TRY(tgi_tiff_series_resolve(&s->file, &s->index, m->description, self, o, &s->info,
                                    &s->series, err));
    TGI_TRY(tgi_tiff_info_form(&s->file, first, m, err));
    TGI_TRY(tgi_tiff_maker_sizes(&s->file, first, o->series, &s->info, err));
    tgi_tiff_info_fill(&s->file, &s->index, &s->info);
    TGI_TRY(tgi_tiff_info_imagej(&s->file, first, &s->info, err));
    return o->axes ? tgi_image_relabel(&s->info, o->axes, err) : TG_OK;
}

static tg_status open_lanes(tgi_tiff_source *s, size_t budget, tgi_err *err)
{
    const tgi_tiff_page *p = &s->index.page;
    s->form = tgi_form_of(p, s->file.big_endian);
    TGI_TRY(tgi_packing_of(p, s->file.big_endian, &s->file.f, &s->packing, &s->tables, err));
    s->packing.one_more |= s->index.first.photoshop; /* its mark is on page 0 alone */
    s->packing.surplus = s->surplus;
    s->bytes += s->packing.n_tables;
    s->budget = budget;
    s->planes_at_once = s->plane_stride = 1;
    s->lanes = tgi_calloc(TGI_TAG_IO, (size_t)s->n_lanes, sizeof *s->lanes);
    if (!s->lanes)
        return tgi_fail(err, TG_E_NOMEM, "no memory for %d readers", s->n_lanes);
    s->bytes += sizeof *s + NAME_BYTES + META_WINDOW + (size_t)s->n_lanes * sizeof *s->lanes +
                tgi_tiff_index_bytes(&s->index) +
                (s->series.rank ? (size_t)s->info.n_planes * sizeof *s->series.rank : 0) +
                (s->info.meta.description ? strlen(s->info.meta.description) : 0);
    const size_t text = text_bytes(&s->index.first);
    s->bytes += text ? text - (size_t)s->index.first.description.count : 0;
    for (int i = 0; i < s->n_lanes; i++) {
        TGI_TRY(tgi_window_init(&s->lanes[i].offsets, LOOKUP_WINDOW, err));
        TGI_TRY(tgi_window_init(&s->lanes[i].counts, LOOKUP_WINDOW, err));
        s->bytes += 2 * LOOKUP_WINDOW;
    }
    TGI_TRY(tgi_tiff_check_blocks(s, err));
    return open_decoders(s, err);
}

static tg_status tiff_expect(tgi_source *base, int64_t planes, int64_t stride, tgi_err *err)
{
    tgi_tiff_source *s = (tgi_tiff_source *)base;
    if (planes == s->planes_at_once && stride == s->plane_stride)
        return TG_OK;
    s->planes_at_once = planes;
    s->plane_stride = stride;
    return s->index.page.raw ? TG_OK : open_decoders(s, err);
}

static void tiff_close(tgi_source **base)
{
    tgi_tiff_source *s = (tgi_tiff_source *)*base;
    if (!s)
        return;
    close_decoders(s);
    for (int i = 0; s->lanes && i < s->n_lanes; i++) {
        tgi_window_free(&s->lanes[i].offsets);
        tgi_window_free(&s->lanes[i].counts);
    }
    tgi_free(s->lanes);
    pthread_mutex_destroy(&s->lock);
    tgi_free(s->series.rank);
    tgi_free(s->tables);
    tgi_tiff_index_free(&s->index);
    tgi_image_meta_free(&s->info.meta);
    tgi_window_free(&s->file.win);
    tgi_rfile_close(&s->file.f);
    tgi_free(s);
    *base = NULL;
}

/* The image lies in several files: the whole of it, or, when what describes it is gone, what
 * this file holds. */
static tg_status open_set(const tgi_tiff_source *s, const char *path, const tgi_open_opts *o,
                          tgi_source **out, tgi_err *err)
{
    const char *about = s->series.metadata_file;
    *err = (tgi_err){0}; /* what sent us here */
    if (o->any_series && s->series.own > 0) {
        tgi_open_opts own = *o;
        own.series = s->series.own;
        own.any_series = 0;
        return tgi_tiff_source_ops.open(path, &own, out, err);
    }
    if (o->any_series && s->series.own < 0)
        return tgi_fail(err, TG_E_FORMAT, TGI_OME_IN_NONE, s->info.n_series);
    if (!about[0])
        return tgi_ome_set_open(path, s->info.meta.description, o, out, err);
    const tg_status st = tgi_ome_set_open_companion(path, about, o, out, err);
    if (st != TG_E_NOT_FOUND)
        return st;
    tgi_open_opts alone = *o;
    alone.pages = alone.member = 1;
    *err = (tgi_err){0};
    TGI_TRY(tgi_tiff_source_ops.open(path, &alone, out, err));
    tgi_tiff_source *t = (tgi_tiff_source *)*out;
    snprintf(t->info.note, sizeof t->info.note,
             "its metadata are in \"%.60s\", which is missing: only the planes of this file "
             "are read, without names and sizes",
             about);
    return TG_OK;
}

static tg_status tiff_open(const char *path, const tgi_open_opts *o, tgi_source **out,
                           tgi_err *err)
{
    const size_t budget = o->decode_budget ? o->decode_budget : DEFAULT_BUDGET;
    tgi_tiff_source *s = tgi_calloc(TGI_TAG_IO, 1, sizeof *s);
    if (!s)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a TIFF reader");
    s->base.ops = &tgi_tiff_source_ops;
    pthread_mutex_init(&s->lock, NULL);
    s->cancelled = o->cancelled;
    s->on_bad = o->on_bad;
    s->on_bad_arg = o->on_bad_arg;
    s->surplus = o->surplus;
    s->spare = o->spare;
    s->file.f.fd = -1;
    s->n_lanes = (int)tgi_clamp(o->threads, 1, MAX_THREADS);
    tg_status st = tgi_rfile_open(path, &s->file.f, err);
    if (st == TG_OK)
        st = open_index(s, path, o, budget, err);
    if (st == TG_OK)
        st = open_lanes(s, budget, err);
    if (st == TG_OK) {
        *out = &s->base;
        return TG_OK;
    }
    if (s->series.in_files && !o->member)
        st = open_set(s, path, o, out, err);
    tgi_source *base = &s->base;
    tiff_close(&base);
    return st;
}

static const tgi_image_info *tiff_info(const tgi_source *s)
{
    return &((const tgi_tiff_source *)s)->info;
}

static size_t tiff_codec_bytes(const tgi_source *s)
{
    return ((const tgi_tiff_source *)s)->bytes + ((const tgi_tiff_source *)s)->decoder_bytes;
}

static int64_t tiff_stream_rows(const tgi_source *base)
{
    const tgi_tiff_source *s = (const tgi_tiff_source *)base;
    return s->streams ? (int64_t)s->keep : 0;
}

static uint64_t tiff_decoded(const tgi_source *base)
{
    const tgi_tiff_source *s = (const tgi_tiff_source *)base;
    uint64_t n = s->streams ? tgi_streams_decoded(s->streams) : 0;
    for (int i = 0; i < s->n_lanes; i++)
        n += s->lanes[i].decoded;
    return n;
}

static int tiff_held(const tgi_source *s, int64_t i, tgi_held *out)
{
    tgi_rfile_held(&((const tgi_tiff_source *)s)->file.f, out);
    return i == 0;
}

static int tiff_probe(const uint8_t *head, size_t n, const char *path)
{
    (void)path;
    return tgi_tiff_probe(head, n);
}

const tgi_source_ops tgi_tiff_source_ops = {
    .format = "tiff",
    .fuzzed = TGI_FUZZED,
    .probe = tiff_probe,
    .open = tiff_open,
    .info = tiff_info,
    .read = tgi_tiff_read,
    .close = tiff_close,
    .codec_bytes = tiff_codec_bytes,
    .expect = tiff_expect,
    .stream_rows = tiff_stream_rows,
    .decoded_bytes = tiff_decoded,
    .held = tiff_held,
};
