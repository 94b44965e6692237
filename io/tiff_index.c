/* tiff_index.c - walk the chain of directories and sort the pages into series and levels.
 *
 * Pages (and SubIFDs) with the same size, element type and samples form a group. Group 0 is
 * that of the first page: series 0. A group of reduced-resolution pages, or of SubIFDs, that is
 * a scaled copy of another, page for page, is a level of that; every other group is a series of
 * its own. Slides of Aperio scanners (SVS) mark no page as a level: there it is the tiled pages
 * of the chain behind the thumbnail.
 *
 * Hostile chains: Brent's algorithm finds a loop in constant memory, and the bytes of all
 * directories together may not exceed the file, since honest directories do not overlap; that
 * also bounds the time.
 * Source: R. P. Brent, "An improved Monte Carlo factorization algorithm" (1980), section 2. */
#include "io/tiff_index.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "io/tiff_codec.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MAX_GROUPS 64
#define MAX_SUBIFDS 1024

typedef struct group {
    tgi_tiff_page like;
    uint64_t count;
    bool sub;   /* all of them are SubIFDs */
    int series; /* whose, or -1: not sorted in yet */
} group;

typedef struct walker {
    tgi_tiff_file *t;
    const tgi_tiff_index_opts *o;
    tgi_tiff_index *x;
    const tgi_tiff_page *want; /* pages like this one are indexed; NULL: none */
    group groups[MAX_GROUPS];
    int n_groups;
    uint64_t ifd_bytes; /* of all directories seen */
} walker;

static bool same_group(const tgi_tiff_page *a, const tgi_tiff_page *b)
{
    return a->width == b->width && a->height == b->height && a->bits == b->bits &&
           a->format == b->format && a->samples == b->samples && a->planar == b->planar &&
           (a->subfile & 5) == (b->subfile & 5);
}

/* NaN, which a damaged tag may hold, is the same as NaN: a page is like itself. */
static bool same_numbers(const float *a, const float *b, int n)
{
    int i = 0;
    while (i < n && (a[i] == b[i] || (isnan(a[i]) && isnan(b[i]))))
        i++;
    return i == n;
}

static bool same_colours(const tgi_tiff_ycbcr *a, const tgi_tiff_ycbcr *b)
{
    return a->subsampling[0] == b->subsampling[0] && a->subsampling[1] == b->subsampling[1] &&
           a->n_coefficients == b->n_coefficients && a->n_reference == b->n_reference &&
           same_numbers(a->coefficients, b->coefficients, 3) &&
           same_numbers(a->reference, b->reference, 6);
}

static bool same_storage(const tgi_tiff_page *a, const tgi_tiff_page *b)
{
    return a->compression == b->compression && a->predictor == b->predictor &&
           a->tiled == b->tiled && a->block_w == b->block_w && a->block_h == b->block_h &&
           a->fill_order == b->fill_order && a->fax_options == b->fax_options &&
           (a->compression != TGI_TIFF_JPEG || a->photometric == b->photometric) &&
           a->codec == b->codec &&
           (a->compression != TGI_TIFF_LERC ||
            (a->lerc[1] == b->lerc[1] && a->last_extra == b->last_extra)) &&
           (a->codec != TGI_TIFF_AS_RGB || same_colours(&a->ycbcr, &b->ycbcr));
}

/* Decoders are opened with the JPEGTables of one page: those of the others must be the same. */
static tg_status same_tables(walker *w, const tgi_tiff_page *p, bool *same, tgi_err *err)
{
    const tgi_tiff_array *a = &p->jpeg_tables, *b = &w->want->jpeg_tables;
    *same = a->count == b->count;
    for (uint64_t at = 0; *same && a->pos != b->pos && at < a->count; at += 256) {
        uint8_t mine[256], theirs[256];
        const size_t n = a->count - at < 256 ? (size_t)(a->count - at) : 256;
        TGI_TRY(tgi_rfile_read(&w->t->f, a->pos + at, mine, n, err));
        TGI_TRY(tgi_rfile_read(&w->t->f, b->pos + at, theirs, n, err));
        *same = memcmp(mine, theirs, n) == 0;
    }
    return TG_OK;
}

/* What decoders need that are placed is too much to keep for each page: its directory is parsed
 * again when the page is read. */
static bool keep_where(tgi_tiff_index *x, const tgi_tiff_page *p, uint64_t cap)
{
    if (!tgi_unpack_is_placed(p->codec) || (x->where && cap == x->cap))
        return true;
    void *d = tgi_realloc_n(TGI_TAG_IO, x->where, cap, sizeof *x->where);
    if (d)
        x->where = d;
    return d != NULL;
}

static tg_status push_ref(walker *w, const tgi_tiff_page *p, uint64_t chain_at, tgi_err *err)
{
    tgi_tiff_index *x = w->x;
    const size_t each = sizeof *x->refs + sizeof *x->chain +
                        (tgi_unpack_is_placed(p->codec) ? sizeof *x->where : 0);
    if (x->n_refs == x->cap) {
        const uint64_t cap = x->cap ? x->cap + x->cap / 2 : 16;
        if (tgi_sat_mul(cap, each) > w->o->max_bytes)
            return tgi_fail(err, TG_E_BUDGET,
                            "the index of more than %llu pages does not fit %zu bytes",
                            (unsigned long long)x->n_refs, w->o->max_bytes);
        void *r = tgi_realloc_n(TGI_TAG_IO, x->refs, cap, sizeof *x->refs);
        if (r)
            x->refs = r;
        void *c = r ? tgi_realloc_n(TGI_TAG_IO, x->chain, cap, sizeof *x->chain) : NULL;
        if (c)
            x->chain = c;
        if (!c || !keep_where(x, p, cap))
            return tgi_fail(err, TG_E_NOMEM, "no memory for an index of %llu pages",
                            (unsigned long long)cap);
        x->cap = cap;
    }
    if (!keep_where(x, p, x->cap))
        return tgi_fail(err, TG_E_NOMEM, "no memory for an index of %llu pages",
                        (unsigned long long)x->cap);
    if (x->where)
        x->where[x->n_refs] = p->pos;
    x->refs[x->n_refs] = (tgi_tiff_ref){p->offsets.pos | (uint64_t)p->offsets.type << 56,
                                        p->counts.pos | (uint64_t)p->counts.type << 56};
    x->chain[x->n_refs++] = (uint32_t)chain_at;
    return TG_OK;
}

size_t tgi_tiff_index_bytes(const tgi_tiff_index *x)
{
    return (size_t)x->cap * (sizeof *x->refs + sizeof *x->chain) +
           (x->where ? (size_t)x->cap * sizeof *x->where : 0);
}

void tgi_tiff_ref_arrays(const tgi_tiff_index *x, uint64_t rank, tgi_tiff_array *offsets,
                         tgi_tiff_array *counts)
{
    const uint64_t low = (UINT64_C(1) << 56) - 1;
    const tgi_tiff_ref r = x->refs[rank];
    *offsets = (tgi_tiff_array){r.offsets & low, x->page.n_blocks, (uint16_t)(r.offsets >> 56)};
    *counts = (tgi_tiff_array){r.counts & low, x->page.n_blocks, (uint16_t)(r.counts >> 56)};
    if (!counts->type)
        counts->count = 0;
}

/* A page of the wanted kind: it must also be stored the same way, and hold all its blocks. */
static tg_status index_page(walker *w, tgi_tiff_page *p, uint64_t chain_at, tgi_err *err)
{
    if (!same_storage(p, w->want))
        return tgi_fail(err, TG_E_UNSUPPORTED,
                        "page %llu is stored differently (compression %u, %llux%llu blocks) "
                        "from page 0 (compression %u, %llux%llu)",
                        (unsigned long long)chain_at, p->compression,
                        (unsigned long long)p->block_w, (unsigned long long)p->block_h,
                        w->want->compression, (unsigned long long)w->want->block_w,
                        (unsigned long long)w->want->block_h);
    const tg_status st = tgi_tiff_page_layout(p, w->t->f.size, err);
    if (st != TG_OK) {
        tgi_err_prefix(err, "page %llu", (unsigned long long)chain_at);
        return st;
    }
    bool same = true;
    if (p->compression == TGI_TIFF_JPEG)
        TGI_TRY(same_tables(w, p, &same, err));
    if (!same)
        return tgi_fail(err, TG_E_UNSUPPORTED, "page %llu has other JPEGTables than page 0",
                        (unsigned long long)chain_at);
    return push_ref(w, p, chain_at, err);
}

static void count_group(walker *w, const tgi_tiff_page *p, bool is_sub)
{
    for (int i = 0; i < w->n_groups; i++)
        if (same_group(&w->groups[i].like, p)) {
            w->groups[i].count++;
            w->groups[i].sub &= is_sub;
            return;
        }
    if (w->n_groups < MAX_GROUPS) /* more kinds only make n_series a lower bound */
        w->groups[w->n_groups++] = (group){*p, 1, is_sub, -1};
}

static tg_status visit(walker *w, tgi_tiff_page *p, uint64_t chain_at, bool is_sub,
                       tgi_err *err)
{
    const tgi_tiff_page *first = &w->groups[0].like;
    const bool level =
        w->o->subifd_levels && p->width < first->width && p->height < first->height;
    const bool full_sub = is_sub && !(p->subfile & 5) && !w->o->subifd_planes && !level;
    if (!full_sub && w->want && same_group(p, w->want))
        TGI_TRY(index_page(w, p, chain_at, err));
    if (!full_sub)
        count_group(w, p, is_sub);
    return TG_OK;
}

static tg_status parse_counted(walker *w, uint64_t pos, tgi_tiff_page *p, tgi_err *err)
{
    const tg_status st = tgi_tiff_page_parse(w->t, pos, p, err);
    if (st != TG_OK && !p->no_image)
        return st;
    w->ifd_bytes += p->n_entries * (w->t->bigtiff ? 20 : 12);
    if (w->ifd_bytes <= w->t->f.size)
        return st;
    p->no_image = false; /* nor is it one that may be passed over */
    if (err)
        *err = (tgi_err){0};
    return tgi_fail(err, TG_E_FORMAT,
                    "directories overlap: more bytes of them than the "
                    "file has");
}

static tg_status visit_subifds(walker *w, const tgi_tiff_page *parent, uint64_t chain_at,
                               tgi_err *err)
{
    if (parent->subifds.count > MAX_SUBIFDS)
        return tgi_fail(err, TG_E_FORMAT, "page %llu has %llu SubIFDs",
                        (unsigned long long)chain_at,
                        (unsigned long long)parent->subifds.count);
    for (uint64_t i = 0; i < parent->subifds.count; i++) {
        tgi_tiff_page sub;
        uint64_t pos;
        TGI_TRY(tgi_tiff_value(w->t, &w->t->win, &parent->subifds, i, &pos, err));
        tgi_err why = {0};
        const tg_status st = parse_counted(w, pos, &sub, &why);
        if (st == TG_E_FORMAT && sub.no_image) /* a thumbnail as Exif has it */
            continue;
        if (st != TG_OK) {
            tgi_fail(err, st, "%s", why.text);
            tgi_err_prefix(err, "page %llu, SubIFD %llu", (unsigned long long)chain_at,
                           (unsigned long long)i);
            return st;
        }
        TGI_TRY(visit(w, &sub, chain_at, true, err));
    }
    return TG_OK;
}

static tg_status walk(walker *w, tgi_err *err)
{
    uint64_t pos = w->t->first_ifd, mark = 0, steps = 0, power = 1, n = 0;
    w->n_groups = 0;
    w->ifd_bytes = 0;
    for (; pos; n++) {
        tgi_tiff_page p;
        if (pos == mark || n > UINT32_MAX - 1)
            return tgi_fail(err, TG_E_FORMAT,
                            "the chain of directories returns to offset %llu after %llu pages",
                            (unsigned long long)pos, (unsigned long long)n);
        if (steps++ == power) {
            mark = pos;
            power *= 2;
            steps = 0;
        }
        const tg_status st = parse_counted(w, pos, &p, err);
        if (st != TG_OK) {
            tgi_err_prefix(err, "page %llu", (unsigned long long)n);
            return st;
        }
        TGI_TRY(visit(w, &p, n, false, err));
        TGI_TRY(visit_subifds(w, &p, n, err));
        pos = p.next;
    }
    w->x->n_chain = n;
    return TG_OK;
}

/* A scaled copy of the full image: both sides smaller, by the same factor but for rounding. */
static bool is_level_of(const walker *w, const group *g, const tgi_tiff_page *full)
{
    const tgi_tiff_page *p = &g->like;
    const bool marked = p->subfile & 1 || g->sub;
    if (!(marked || (w->o->aperio && p->tiled && full->tiled && !p->subfile)) ||
        p->width >= full->width || p->height > full->height || p->bits != full->bits ||
        p->format != full->format || p->samples != full->samples || p->planar != full->planar)
        return false;
    const double f = (double)full->width / (double)p->width;
    const double h = (double)full->height / f;
    /* Repeated halving may round each time: two pixels in the smaller image are granted. */
    const double off = h > (double)p->height ? h - (double)p->height : (double)p->height - h;
    return off <= 2.0 + 0.01 * h;
}

/* Levels of group `base` in order of size, itself first; their places in `groups`. */
static int find_levels(walker *w, int base, int series, int level_group[TGI_IMAGE_MAX_LEVELS])
{
    uint64_t above = UINT64_MAX;
    int n = 0;
    level_group[n++] = base;
    w->groups[base].series = series;
    while (n < TGI_IMAGE_MAX_LEVELS) {
        int best = -1;
        for (int i = base + 1; i < w->n_groups; i++) {
            const group *g = &w->groups[i];
            if (g->series < 0 && g->count == w->groups[base].count && g->like.width < above &&
                is_level_of(w, g, &w->groups[base].like) &&
                (best < 0 || g->like.width > w->groups[best].like.width))
                best = i;
        }
        if (best < 0)
            break;
        above = w->groups[best].like.width;
        w->groups[best].series = series;
        level_group[n++] = best;
    }
    return n;
}

/* What a slide scanner's pages are, as OpenSlide and tifffile call them. */
static const char *aperio_name(int series, const tgi_tiff_page *p)
{
    return !series           ? "baseline"
           : p->subfile == 1 ? "label"
           : p->subfile == 9 ? "macro"
                             : "thumbnail";
}

/* Sort all groups into series; the levels of the wanted one go to level_group. */
static void find_series(walker *w, tgi_tiff_index *x, int level_group[TGI_IMAGE_MAX_LEVELS])
{
    int own[TGI_IMAGE_MAX_LEVELS] = {0};
    x->n_series = x->n_levels = 0;
    for (int i = 0; i < w->n_groups; i++) {
        const tgi_tiff_page *p = &w->groups[i].like;
        if (w->groups[i].series >= 0)
            continue;
        const int k = x->n_series++, n = find_levels(w, i, k, own);
        if (w->o->width ? !x->n_levels && (int64_t)p->width == w->o->width &&
                              (int64_t)p->height == w->o->height
                        : k == w->o->series) {
            x->n_levels = n;
            memcpy(level_group, own, sizeof own);
        }
        if (k >= TGI_IMAGE_MAX_SERIES)
            continue;
        x->series[k] = (tgi_series_info){.height = (int64_t)p->height,
                                         .width = (int64_t)p->width,
                                         .pages = (int64_t)w->groups[i].count,
                                         .samples = (int)p->samples,
                                         .n_levels = n};
        if (w->o->aperio)
            snprintf(x->series[k].name, sizeof x->series[k].name, "%s", aperio_name(k, p));
    }
    for (int l = 0; l < x->n_levels; l++) {
        x->level_h[l] = (int64_t)w->groups[level_group[l]].like.height;
        x->level_w[l] = (int64_t)w->groups[level_group[l]].like.width;
    }
}

/* Give back the room that growing left over; keeping it is no failure. */
static void trim(tgi_tiff_index *x)
{
    void *r = tgi_realloc_n(TGI_TAG_IO, x->refs, x->n_refs, sizeof *x->refs);
    if (r)
        x->refs = r;
    void *c = r ? tgi_realloc_n(TGI_TAG_IO, x->chain, x->n_refs, sizeof *x->chain) : NULL;
    if (c) {
        x->chain = c;
        x->cap = x->n_refs;
    }
    void *d =
        x->where ? tgi_realloc_n(TGI_TAG_IO, x->where, x->n_refs, sizeof *x->where) : NULL;
    if (d)
        x->where = d;
}

/* The pages of another group than the first one's. */
static tg_status index_group(walker *w, const tgi_tiff_page *like, tgi_tiff_page *out,
                             tgi_err *err)
{
    *out = *like;
    TGI_TRY(tgi_tiff_page_layout(out, w->t->f.size, err));
    w->want = out;
    w->x->n_refs = 0;
    return walk(w, err);
}

static tg_status build(walker *w, tgi_tiff_index *out, tgi_err *err)
{
    const tgi_tiff_index_opts *o = w->o;
    int level_group[TGI_IMAGE_MAX_LEVELS] = {0};
    group *g = w->groups;
    const bool plain = o->series == 0 && o->level == 0 && !o->width;
    if (plain) {
        w->want = &out->first;
        TGI_TRY(tgi_tiff_page_layout(&out->first, w->t->f.size, err));
    }
    TGI_TRY(walk(w, err));
    find_series(w, out, level_group);
    if (!out->n_levels && o->width)
        return tgi_fail(err, TG_E_FORMAT, "no page of %lld x %lld pixels", (long long)o->width,
                        (long long)o->height);
    if (!out->n_levels)
        return tgi_fail(err, TG_E_ARG, "there is no series %d: the file has %d, counted from 0",
                        o->series, out->n_series);
    if (o->level < 0 || o->level >= out->n_levels)
        return tgi_fail(err, TG_E_ARG,
                        "there is no resolution level %d: the image has %d, counted from 0",
                        o->level, out->n_levels);
    out->page = out->first;
    if (plain)
        return TG_OK;
    out->first = g[level_group[0]].like;
    const tgi_tiff_page like = g[level_group[o->level]].like;
    TGI_TRY(index_group(w, &like, &out->page, err));
    tgi_err ignored = {0};
    if (tgi_tiff_page_layout(&out->first, w->t->f.size, &ignored) != TG_OK && o->level == 0)
        return tgi_fail(err, ignored.code, "%s", ignored.text);
    return TG_OK;
}

tg_status tgi_tiff_index_build(tgi_tiff_file *t, const tgi_tiff_index_opts *o,
                               tgi_tiff_index *out, tgi_err *err)
{
    walker *w = tgi_calloc(TGI_TAG_IO, 1, sizeof *w); /* 20 KiB: not on the stack */
    if (!w)
        return tgi_fail(err, TG_E_NOMEM, "no memory for the index of a TIFF");
    *w = (walker){.t = t, .o = o, .x = out};
    const tg_status st = build(w, out, err);
    if (st == TG_OK)
        trim(out);
    tgi_free(w);
    return st;
}

void tgi_tiff_index_free(tgi_tiff_index *x)
{
    tgi_free(x->refs);
    tgi_free(x->chain);
    tgi_free(x->where);
    x->refs = NULL;
    x->chain = NULL;
    x->where = NULL;
}
