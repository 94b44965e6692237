/* tiff_series.c - axes of a TIFF, by who wrote it.
 *
 *   OME-TIFF  DimensionOrder and the TiffData map say which directory is which z,c,t;
 *   ImageJ    images, channels, slices, frames; hyperstacks beyond 4 GiB have one directory and
 *             all planes behind it, which the file's size must prove;
 *   shaped    tifffile's {"shape": [...]}: leading axes are Q unless it names them;
 *   LSM       slices and frames by Zeiss' tag, channels are samples;
 *   plain     pages of equal size: axis I.
 *
 * One rule for all: the planes that the metadata claims are all in the file, or opening fails.
 * Plane 0 alone is never passed off as the stack.
 * Source: OME-TIFF specification; ImageJ ij/io/TiffDecoder and FileInfo; axes letters as in
 * tifffile. */
#include "io/tiff_series.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "io/imagej.h"
#include "io/lsm.h"
#include "io/ome_grid.h"

#include <stdio.h>
#include <string.h>

#define UNSET UINT32_MAX

typedef struct job {
    tgi_tiff_file *t;
    const tgi_tiff_index *x;
    const char *text, *file_name;
    const tgi_open_opts *o;
    tgi_image_info *info;
    tgi_tiff_series *out;
    tgi_err *err;
} job;

tgi_tiff_flavor tgi_tiff_flavor_of(const char *description)
{
    tgi_shaped shaped;
    if (!description)
        return TGI_TIFF_PLAIN;
    if (strncmp(description, "ImageJ=", 7) == 0)
        return TGI_TIFF_IMAGEJ;
    if (tgi_ome_probe(description))
        return TGI_TIFF_OME;
    return tgi_shaped_parse(description, &shaped) ? TGI_TIFF_SHAPED : TGI_TIFF_PLAIN;
}

static void add_axis(tgi_image_info *info, char letter, int64_t n)
{
    info->axes[info->n_axes] = letter;
    info->shape[info->n_axes++] = n;
}

/* Y and X, and S where the page keeps it. */
static void add_page_axes(const job *j)
{
    const tgi_tiff_page *p = &j->x->page;
    if (p->samples > 1 && p->planar)
        add_axis(j->info, 'S', p->samples);
    add_axis(j->info, 'Y', (int64_t)p->height);
    add_axis(j->info, 'X', (int64_t)p->width);
    if (p->samples > 1 && !p->planar)
        add_axis(j->info, 'S', p->samples);
}

static void set_flavor(const job *j, const char *name)
{
    snprintf(j->info->flavor, sizeof j->info->flavor, "%s", name);
}

/* True when the strips of the first page follow each other and `n` planes fit behind them. */
static tg_status prove_contiguous(const job *j, int64_t n, bool *yes)
{
    const tgi_tiff_page *p = &j->x->page;
    tgi_tiff_array offsets, counts;
    size_t bytes;
    *yes = false;
    if (!p->raw || p->tiled || j->o->level != 0 || !j->x->n_refs)
        return TG_OK;
    tgi_tiff_ref_arrays(j->x, 0, &offsets, &counts);
    uint64_t next = 0;
    for (uint64_t i = 0; i < p->n_blocks; i++) {
        uint64_t at;
        TGI_TRY(tgi_tiff_value(j->t, &j->t->win, &offsets, i, &at, j->err));
        if (i == 0)
            j->out->base = at;
        else if (at != next)
            return TG_OK;
        const uint64_t row = i % p->down * p->block_h;
        const uint64_t rows = row + p->block_h > p->height ? p->height - row : p->block_h;
        next = at + rows * p->row_bytes;
    }
    *yes = tgi_mul_ok((size_t)n, p->plane_bytes, &bytes) && j->out->base <= j->t->f.size &&
           bytes <= j->t->f.size - j->out->base;
    return TG_OK;
}

/* `n` planes as pages or behind the only page; otherwise the error that names the lack. */
static tg_status claim_planes(const job *j, int64_t n, const char *who)
{
    bool contiguous = false;
    if ((uint64_t)n <= j->x->n_refs)
        return TG_OK;
    TGI_TRY(prove_contiguous(j, n, &contiguous));
    if (!contiguous)
        return tgi_fail(j->err, TG_E_FORMAT,
                        "%s says %lld planes, but the file holds %llu of this size: it is "
                        "incomplete or its metadata are wrong",
                        who, (long long)n, (unsigned long long)j->x->n_refs);
    j->out->contiguous = true;
    return TG_OK;
}

/* A MetaMorph stack has one directory for all its planes, which lie behind each other; its tag
 * UIC2 has one value for each. Source: the STK file format, as tifffile reads it. */
static tg_status metamorph_planes(const job *j, int64_t *n)
{
    const uint64_t stated = j->x->first.uic2.count;
    *n = (int64_t)j->x->n_refs;
    if (stated < 2 || j->x->n_chain != 1 || j->o->series || j->o->level)
        return TG_OK;
    *n = (int64_t)stated;
    set_flavor(j, "stk");
    return claim_planes(j, *n, "MetaMorph");
}

/* Axes and sizes of a Zeiss LSM file; *known false: plain pages. What the thumbnails among its
 * pages are the index knows. */
static tg_status resolve_lsm(const job *j, bool *known)
{
    const tgi_tiff_array *a = &j->x->first.lsm;
    tgi_image_meta *m = &j->info->meta;
    const uint8_t *p;
    tgi_lsm lsm;
    *known = false;
    if (a->count < TGI_LSM_BYTES || a->type != 1) /* BYTE */
        return TG_OK;
    TGI_TRY(
        tgi_window_get(&j->t->win, &j->t->f, a->pos, TGI_LSM_BYTES, TGI_LSM_BYTES, &p, j->err));
    if (!tgi_lsm_parse(p, TGI_LSM_BYTES, &lsm))
        return TG_OK;
    set_flavor(j, "lsm");
    if (j->t->f.size > UINT32_MAX)
        return tgi_fail(j->err, TG_E_UNSUPPORTED,
                        "an LSM file beyond 4 GiB, whose offsets are cut to 32 bits, is not "
                        "supported: save it as OME-TIFF");
    for (int i = 0; i < 3; i++) {
        m->physical[i] = lsm.voxel[i];
        if (lsm.voxel[i] > 0)
            snprintf(m->unit[i], sizeof m->unit[i], "\xc2\xb5m");
    }
    if (!lsm.axes || j->o->series)
        return TG_OK;
    const int64_t z = strchr(lsm.axes, 'Z') ? lsm.z : 1, t = strchr(lsm.axes, 'T') ? lsm.t : 1;
    const int64_t n = z * t, more = (int64_t)j->x->n_refs / n; /* both below 2^31 */
    if (more < 1)
        return tgi_fail(j->err, TG_E_FORMAT,
                        "Zeiss LSM says %lld planes, but the file holds %llu: it is incomplete "
                        "or its metadata are wrong",
                        (long long)n, (unsigned long long)j->x->n_refs);
    if ((int64_t)j->x->n_refs % n)
        return TG_OK;
    m->time_increment = t > 1 ? lsm.interval : 0;
    if (more > 1) /* positions */
        add_axis(j->info, 'P', more);
    for (const char *c = lsm.axes; *c; c++)
        add_axis(j->info, *c, *c == 'Z' ? z : t);
    add_page_axes(j);
    *known = true;
    return TG_OK;
}

static tg_status resolve_plain(const job *j)
{
    int64_t n;
    bool known;
    TGI_TRY(resolve_lsm(j, &known));
    if (known)
        return TG_OK;
    TGI_TRY(metamorph_planes(j, &n));
    if (n > 1)
        add_axis(j->info, 'I', n);
    add_page_axes(j);
    return TG_OK;
}

/* ---- ImageJ ---- */

static void imagej_meta(const job *j, const tgi_imagej *ij)
{
    tgi_image_meta *m = &j->info->meta;
    m->time_increment = ij->interval;
    m->mode = ij->mode;
    memcpy(m->malformed, ij->malformed, sizeof m->malformed);
    if (!ij->unit[0])
        return;
    for (int i = 0; i < 3; i++) {
        const double r = i == 0 ? 0 : m->resolution[i - 1];
        m->physical[i] = i == 0 ? ij->spacing : r > 0 ? 1 / r : 0;
        if (m->physical[i] > 0)
            memcpy(m->unit[i], ij->unit, sizeof m->unit[i]);
    }
}

/* Slowest axis first, for the order in which ImageJ says the planes run, fastest first. */
static const char *imagej_axes(const char *order)
{
    static const char *const known[][2] = {
        {"ctz", "ZTC"}, {"zct", "TCZ"}, {"ztc", "CTZ"}, {"tcz", "ZCT"}, {"tzc", "CZT"}};
    if (strncmp(order, "xy", 2) == 0)
        order += 2;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strncmp(order, known[i][0], 3) == 0)
            return known[i][1];
    return "TZC";
}

static tg_status resolve_imagej(const job *j)
{
    tgi_imagej ij;
    size_t product;
    tgi_imagej_parse(j->text, &ij);
    set_flavor(j, "imagej");
    imagej_meta(j, &ij);
    const int64_t n = ij.images ? ij.images : (int64_t)j->x->n_refs;
    const int64_t c = tgi_max(ij.channels, 1), z = tgi_max(ij.slices, 1);
    const int64_t t = tgi_max(ij.frames, 1);
    TGI_TRY(claim_planes(j, n, "ImageJ"));
    const bool fits = tgi_mul_ok((size_t)c, (size_t)z, &product) &&
                      tgi_mul_ok(product, (size_t)t, &product) && product <= (size_t)n &&
                      (size_t)n % product == 0;
    if (!fits || (uint64_t)n < j->x->n_refs) { /* metadata of another file: pages decide */
        const int64_t pages = tgi_max(n, (int64_t)j->x->n_refs);
        if (pages > 1)
            add_axis(j->info, 'I', pages);
        add_page_axes(j);
        return TG_OK;
    }
    if ((size_t)n / product > 1)
        add_axis(j->info, 'I', n / (int64_t)product);
    for (const char *a = imagej_axes(ij.order); *a; a++) {
        const int64_t stated = *a == 'T' ? ij.frames : *a == 'Z' ? ij.slices : ij.channels;
        if (stated)
            add_axis(j->info, *a, stated);
    }
    add_page_axes(j);
    return TG_OK;
}

/* ---- tifffile's shape ---- */

static tg_status resolve_shaped(const job *j)
{
    const tgi_tiff_page *p = &j->x->first;
    tgi_shaped s;
    int64_t tail[3], planes = 1;
    int n_tail = 0;
    tgi_shaped_parse(j->text, &s);
    set_flavor(j, "shaped");
    if (p->samples > 1 && p->planar)
        tail[n_tail++] = p->samples;
    tail[n_tail++] = (int64_t)p->height;
    tail[n_tail++] = (int64_t)p->width;
    if (p->samples > 1 && !p->planar)
        tail[n_tail++] = p->samples;
    const int lead = s.n - n_tail;
    bool fits = lead >= 0 && lead + n_tail <= TGI_IMAGE_MAX_AXES;
    for (int i = 0; fits && i < n_tail; i++)
        fits = s.shape[lead + i] == tail[i];
    for (int i = 0; fits && i < lead; i++)
        fits = tgi_mul64_ok(planes, s.shape[i], &planes);
    if (!fits) /* a shape that does not end in the page's: the pages decide */
        return resolve_plain(j);
    TGI_TRY(claim_planes(j, planes, "the shape in ImageDescription"));
    for (int i = 0; i < lead; i++) {
        const char a = s.axes[0] ? s.axes[i] : 'Q';
        add_axis(j->info, a == 'Y' || a == 'X' || a == 'S' ? 'Q' : a, s.shape[i]);
    }
    add_page_axes(j);
    if ((uint64_t)planes < j->x->n_refs)
        j->info->n_series++; /* pages that a later description claims */
    return TG_OK;
}

/* ---- OME ---- */

/* Directory number of the main chain -> place among the refs, or UNSET. */
static uint32_t rank_of(const tgi_tiff_index *x, int64_t ifd)
{
    uint64_t lo = 0, hi = x->n_refs;
    while (lo < hi) {
        const uint64_t mid = lo + (hi - lo) / 2;
        if (x->chain[mid] < ifd)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < x->n_refs && x->chain[lo] == ifd ? (uint32_t)lo : UNSET;
}

static tg_status place_block(const job *j, const tgi_ome_grid *g, const tgi_ome_block *b,
                             uint32_t *rank, int64_t *placed)
{
    int64_t from, n;
    const int64_t ifd = b->ifd < 0 ? 0 : b->ifd;
    TGI_TRY(tgi_ome_grid_block(g, b, g->total, placed, &from, &n, j->err));
    for (int64_t k = 0; k < n; k++) {
        const uint32_t r = rank_of(j->x, ifd + k);
        if (r == UNSET)
            return tgi_fail(j->err, TG_E_FORMAT,
                            "OME-XML puts plane %lld into directory %lld, "
                            "which the file of %llu lacks or is of another size",
                            (long long)(from + k), (long long)(ifd + k),
                            (unsigned long long)j->x->n_chain);
        rank[from + k] = r;
    }
    return TG_OK;
}

static tg_status ome_map(const job *j, const tgi_ome *o, const tgi_ome_grid *g)
{
    int64_t placed = 0;
    bool identity = true;
    if ((uint64_t)g->total > j->x->n_refs) /* also bounds the allocation below */
        return tgi_fail(j->err, TG_E_FORMAT,
                        "OME-XML describes %lld planes, but the file holds %llu",
                        (long long)g->total, (unsigned long long)j->x->n_refs);
    uint32_t *rank = tgi_malloc(TGI_TAG_IO, (size_t)g->total * sizeof *rank);
    if (!rank)
        return tgi_fail(j->err, TG_E_NOMEM, "no memory for the order of %lld planes",
                        (long long)g->total);
    j->out->rank = rank;
    memset(rank, 0xff, (size_t)g->total * sizeof *rank);
    static const tgi_ome_block all = {.ifd = -1, .count = -1};
    for (size_t i = 0; i < o->n_blocks; i++)
        TGI_TRY(place_block(j, g, &o->blocks[i], rank, &placed));
    if (!o->n_blocks)
        TGI_TRY(place_block(j, g, &all, rank, &placed));
    for (int64_t p = 0; p < g->total; p++) {
        if (rank[p] == UNSET)
            return tgi_fail(j->err, TG_E_FORMAT, "OME-XML: no TiffData for plane %lld of %lld",
                            (long long)p, (long long)g->total);
        identity &= rank[p] == (uint32_t)p;
    }
    if (identity) {
        tgi_free(rank);
        j->out->rank = NULL;
    }
    return TG_OK;
}

static bool is_elsewhere(const tgi_ome *o)
{
    bool elsewhere = o->binary_only;
    for (size_t i = 0; i < o->n_blocks; i++)
        elsewhere |= o->blocks[i].elsewhere;
    return elsewhere;
}

/* The image is more than this file: the caller opens the set instead. */
static tg_status in_other_files(const job *j, const tgi_ome *o)
{
    if (!is_elsewhere(o))
        return TG_OK;
    j->out->in_files = true;
    j->out->own = o->own >= 0 ? o->own : o->own_id >= 0 ? o->own_id : o->n_images <= 1 ? 0 : -1;
    snprintf(j->out->metadata_file, sizeof j->out->metadata_file, "%s", o->metadata_file);
    return tgi_fail(j->err, TG_E_UNSUPPORTED,
                    "part of a multi-file OME-TIFF: give this file alone");
}

/* With several Images they are the series, whatever the sizes of the pages. */
static void list_images(const job *j, const tgi_ome *o)
{
    tgi_image_info *info = j->info;
    for (int i = 0; i < o->n_images && i < TGI_OME_MAX_IMAGES; i++) {
        tgi_series_info *s = &info->series[i];
        if (o->n_images > 1)
            *s = (tgi_series_info){.height = o->images[i].height, .width = o->images[i].width};
        snprintf(s->name, sizeof s->name, "%s", o->images[i].name);
    }
    if (o->n_images > 1)
        info->n_series = o->n_images;
}

tg_status tgi_tiff_series_size(const char *description, const char *file_name, int image,
                               int64_t *width, int64_t *height, tgi_err *err)
{
    tgi_ome o;
    TGI_TRY(tgi_ome_parse(description, strlen(description), file_name, image, &o, err));
    const bool elsewhere = is_elsewhere(&o);
    *width = elsewhere ? 0 : o.size_x;
    *height = elsewhere ? 0 : o.size_y;
    tgi_ome_free(&o);
    return TG_OK;
}

static tg_status resolve_ome(const job *j)
{
    const tgi_tiff_page *p = &j->x->first;
    tgi_ome o;
    tgi_ome_grid g;
    set_flavor(j, "ome");
    TGI_TRY(tgi_ome_parse(j->text, strlen(j->text), j->file_name, j->o->series, &o, j->err));
    tg_status st = in_other_files(j, &o);
    if (st == TG_OK)
        st = tgi_ome_grid_make(&o, (int64_t)p->width, (int64_t)p->height, p->samples, j->info,
                               &g, j->err);
    if (st == TG_OK) {
        add_page_axes(j);
        st = ome_map(j, &o, &g);
    }
    if (st == TG_OK)
        st = tgi_ome_take_meta(&o, &j->info->meta, j->err);
    list_images(j, &o);
    tgi_ome_free(&o);
    return st;
}

tg_status tgi_tiff_series_resolve(tgi_tiff_file *t, const tgi_tiff_index *x,
                                  const char *description, const char *file_name,
                                  const tgi_open_opts *o, tgi_image_info *info,
                                  tgi_tiff_series *out, tgi_err *err)
{
    const job j = {t, x, description, file_name, o, info, out, err};
    tg_status st;
    *out = (tgi_tiff_series){0};
    info->n_series = x->n_series;
    info->at_series = o->series;
    memcpy(info->series, x->series, sizeof info->series);
    switch (o->pages ? TGI_TIFF_PLAIN : tgi_tiff_flavor_of(description)) {
    case TGI_TIFF_OME:
        st = resolve_ome(&j);
        break;
    case TGI_TIFF_IMAGEJ:
        st = resolve_imagej(&j);
        break;
    case TGI_TIFF_SHAPED:
        st = resolve_shaped(&j);
        break;
    default:
        st = resolve_plain(&j);
        break;
    }
    if (st != TG_OK) {
        tgi_free(out->rank);
        out->rank = NULL;
        return st;
    }
    info->n_planes = 1;
    for (int i = 0; i < info->n_axes; i++)
        if (!strchr("YXS", info->axes[i]))
            info->n_planes *= info->shape[i]; /* <= planes shown to be in the file */
    return TG_OK;
}
