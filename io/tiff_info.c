/* tiff_info.c - see tiff_info.h. */
#include "io/tiff_info.h"

#include "engine/base/mem.h"
#include "io/imagej_meta.h"

#include <stdio.h>
#include <string.h>

#define TEXT_CAP (64u << 20)
#define ICC_CAP (16u << 20)
#define MOST_NAMED 64 /* channels: as many as ImageJ has tables for */

/* A profile larger than any real one is left where it is. */
static tg_status take_icc(const tgi_tiff_file *t, const tgi_tiff_page *p, tgi_image_meta *m,
                          tgi_err *err)
{
    const size_t n = (size_t)p->icc.count;
    if (!p->icc.count || p->icc.count > ICC_CAP || (p->icc.type != 7 && p->icc.type != 1))
        return TG_OK;
    m->icc = tgi_malloc(TGI_TAG_IO, n);
    if (!m->icc)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a colour profile of %zu bytes", n);
    m->icc_bytes = n;
    return tgi_rfile_read(&t->f, p->icc.pos, m->icc, n, err);
}

tg_status tgi_tiff_info_texts(const tgi_tiff_file *t, const tgi_tiff_page *first,
                              tgi_image_meta *m, tgi_err *err)
{
    tgi_image_meta_free(m);
    TGI_TRY(tgi_tiff_text(t, &first->description, TEXT_CAP, &m->description, err));
    TGI_TRY(tgi_tiff_text(t, &first->software, 4096, &m->software, err));
    m->resolution_unit = first->resolution[1] > 0 ? (int)first->resolution_unit : 0;
    memcpy(m->resolution, first->resolution, sizeof m->resolution);
    if (m->resolution[1] > 0 && !m->resolution_unit)
        m->resolution_unit = 2; /* the default of the tag: inch */
    return take_icc(t, first, m, err);
}

/* The table of a palette: 2^bits red, then green, then blue. */
static tg_status take_palette(const tgi_tiff_file *t, const tgi_tiff_page *p, tgi_image_meta *m,
                              tgi_err *err)
{
    const tgi_tiff_array *a = &p->colormap;
    const uint64_t n = p->bits <= 16 ? UINT64_C(1) << p->bits : 0;
    if (!n || a->count != 3 * n || a->type != 3) /* SHORT */
        return TG_OK;
    m->palette = tgi_malloc(TGI_TAG_IO, (size_t)a->count * sizeof *m->palette);
    if (!m->palette)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a palette");
    m->n_palette = (int)n;
    for (uint64_t i = 0; i < a->count; i++) {
        uint64_t v;
        TGI_TRY(tgi_tiff_value(t, (tgi_window *)(uintptr_t)&t->win, a, i, &v, err));
        m->palette[i] = (uint16_t)v;
    }
    return TG_OK;
}

static tgi_stored stored_as(uint32_t photometric)
{
    static const struct {
        uint32_t photometric;
        tgi_stored as;
    } of[] = {{TGI_TIFF_MINISWHITE, TGI_STORED_MINISWHITE},
              {TGI_TIFF_PALETTE, TGI_STORED_PALETTE},
              {TGI_TIFF_CMYK, TGI_STORED_CMYK},
              {TGI_TIFF_CIELAB, TGI_STORED_CIELAB},
              {TGI_TIFF_ICCLAB, TGI_STORED_ICCLAB}};
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++)
        if (of[i].photometric == photometric)
            return of[i].as;
    return TGI_STORED_LIGHT;
}

tg_status tgi_tiff_info_form(const tgi_tiff_file *t, const tgi_tiff_page *p, tgi_image_meta *m,
                             tgi_err *err)
{
    const bool rgb = p->photometric == TGI_TIFF_RGB || p->photometric == TGI_TIFF_YCBCR;
    uint64_t kind = 0;
    m->orientation = p->orientation > 1 && p->orientation < 9 ? (int)p->orientation : 0;
    m->stored_as = stored_as(p->photometric);
    m->colours = rgb || m->stored_as >= TGI_STORED_CIELAB ? 3
                 : p->photometric == TGI_TIFF_CMYK        ? 4
                                                          : 0;
    if (m->colours > (int)p->samples)
        m->colours = 0;
    if (p->extra.count && p->extra.count < p->samples)
        TGI_TRY(tgi_tiff_value(t, (tgi_window *)(uintptr_t)&t->win, &p->extra,
                               p->extra.count - 1, &kind, err));
    m->alpha = kind == 1 || kind == 2 ? (int)kind : 0;
    return m->stored_as == TGI_STORED_PALETTE ? take_palette(t, p, m, err) : TG_OK;
}

/* The brightest colour of a channel's table is the channel's colour. */
static tg_status colour_channels(tgi_image_info *i, tgi_err *err)
{
    tgi_image_meta *m = &i->meta;
    const char *c = strchr(i->axes, 'C');
    if (m->channel_color || !c || i->shape[c - i->axes] != m->n_luts || !m->lut)
        return TG_OK;
    m->channel_color = tgi_calloc(TGI_TAG_IO, (size_t)m->n_luts, sizeof *m->channel_color);
    if (!m->channel_color)
        return tgi_fail(err, TG_E_NOMEM, "no memory for the colours of channels");
    m->n_channels = m->n_luts;
    for (int k = 0; k < m->n_luts; k++) {
        const uint8_t *l = m->lut + (size_t)k * 768;
        m->channel_color[k] =
            (uint32_t)l[255] << 24 | (uint32_t)l[511] << 16 | (uint32_t)l[767] << 8 | 0xff;
    }
    return TG_OK;
}

/* What all planes of channel c are called; NULL: several things, or nothing. `step`: planes from one channel to the next. */
static const char *label_of(const tgi_image_info *i, int64_t step, int64_t n, int64_t c)
{
    const char *name = NULL;
    for (int64_t p = 0; p < i->n_planes; p++) {
        const char *label = i->meta.label[p];
        if (p / step % n != c)
            continue;
        if (!label || !label[0] || (name && strcmp(name, label) != 0))
            return NULL;
        name = label;
    }
    return name;
}

/* Where each channel's planes have one name, it is the channel's: so channels of OME-XML go through ImageJ's stacks. */
static tg_status name_channels(tgi_image_info *i, tgi_err *err)
{
    tgi_image_meta *m = &i->meta;
    const char *c = strchr(i->axes, 'C');
    const int64_t n = c ? i->shape[c - i->axes] : 1;
    int64_t step = 1;
    if (n < 2 || n > MOST_NAMED || m->n_labels != i->n_planes || m->channel_name ||
        (m->n_channels && m->n_channels != n))
        return TG_OK;
    for (const char *a = c + 1; *a; a++)
        step *= strchr("YXS", *a) ? 1 : i->shape[a - i->axes];
    for (int64_t k = 0; k < n; k++)
        if (!label_of(i, step, n, k))
            return TG_OK;
    m->channel_name = tgi_calloc(TGI_TAG_IO, (size_t)n, sizeof *m->channel_name);
    if (!m->channel_name)
        return tgi_fail(err, TG_E_NOMEM, "no memory for names of channels");
    m->n_channels = (int)n;
    for (int64_t k = 0; k < n; k++)
        if (!(m->channel_name[k] = tgi_strdup(TGI_TAG_IO, label_of(i, step, n, k))))
            return tgi_fail(err, TG_E_NOMEM, "no memory for names of channels");
    return TG_OK;
}

tg_status tgi_tiff_info_imagej(const tgi_tiff_file *t, const tgi_tiff_page *first,
                               tgi_image_info *i, tgi_err *err)
{
    bool whole = true;
    if (strcmp(i->flavor, "imagej") != 0)
        return TG_OK;
    TGI_TRY(tgi_imagej_meta_read(t, first, &i->meta, &whole, err));
    if (!whole)
        snprintf(i->note, sizeof i->note,
                 "ImageJ's tables, ranges and names of planes are damaged, and left out");
    TGI_TRY(colour_channels(i, err));
    return name_channels(i, err);
}

/* A level's pixels are larger by as much as it is smaller. */
static void scale_physical(const tgi_tiff_index *x, tgi_image_meta *m)
{
    const tgi_tiff_page *f = &x->first, *p = &x->page;
    const double by[2] = {(double)f->height / (double)p->height,
                          (double)f->width / (double)p->width};
    for (int i = 0; i < 2; i++) {
        m->physical[i + 1] *= by[i];
        m->resolution[i] /= by[i];
        m->ome_place.scale[i] = 1 / by[i];
    }
}

void tgi_tiff_info_fill(const tgi_tiff_file *t, const tgi_tiff_index *x, tgi_image_info *i)
{
    const tgi_tiff_page *p = &x->page;
    i->format = "tiff";
    if (!i->flavor[0] && t->bigtiff)
        snprintf(i->flavor, sizeof i->flavor, "bigtiff");
    i->dtype = p->dtype;
    if (!tgi_dtype_is_float(p->dtype) && p->bits < 8 * tgi_dtype_size(p->dtype))
        i->bits = (int)p->bits;
    i->compression = tgi_tiff_compression_name(p->compression);
    i->predictor = (int)p->predictor;
    i->planar_samples = p->planar && p->samples > 1;
    i->tiled = p->tiled;
    i->block_h = (int64_t)p->block_h;
    i->block_w = (int64_t)p->block_w;
    i->big_endian = t->big_endian;
    i->bigtiff = t->bigtiff;
    i->height = (int64_t)p->height;
    i->width = (int64_t)p->width;
    i->samples = (int)p->samples;
    i->n_levels = x->n_levels;
    memcpy(i->level_h, x->level_h, sizeof i->level_h);
    memcpy(i->level_w, x->level_w, sizeof i->level_w);
    i->n_files = 1;
    i->file_bytes = t->f.size;
    i->plain = p->raw;
    scale_physical(x, &i->meta);
}
