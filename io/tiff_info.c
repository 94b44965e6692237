/* tiff_info.c - see tiff_info.h. */
#include "io/tiff_info.h"

#include <stdio.h>
#include <string.h>

#define TEXT_CAP (64u << 20)

tg_status tgi_tiff_info_texts(const tgi_tiff_file *t, const tgi_tiff_page *first,
                              tg_image_meta *m, tgi_err *err)
{
    tgi_image_meta_free(m);
    TGI_TRY(tgi_tiff_text(t, &first->description, TEXT_CAP, &m->description, err));
    TGI_TRY(tgi_tiff_text(t, &first->software, 4096, &m->software, err));
    m->resolution_unit = first->resolution[1] > 0 ? (int)first->resolution_unit : 0;
    memcpy(m->resolution, first->resolution, sizeof m->resolution);
    if (m->resolution[1] > 0 && !m->resolution_unit)
        m->resolution_unit = 2; /* the default of the tag: inch */
    return TG_OK;
}

/* A level's pixels are larger by as much as it is smaller. */
static void scale_physical(const tgi_tiff_index *x, tg_image_meta *m)
{
    const tgi_tiff_page *f = &x->first, *p = &x->page;
    const double by[2] = {(double)f->height / (double)p->height,
                          (double)f->width / (double)p->width};
    for (int i = 0; i < 2; i++) {
        m->physical[i + 1] *= by[i];
        m->resolution[i] /= by[i];
    }
}

void tgi_tiff_info_fill(const tgi_tiff_file *t, const tgi_tiff_index *x, tg_image_info *i)
{
    const tgi_tiff_page *p = &x->page;
    i->format = "tiff";
    if (!i->flavor[0] && t->bigtiff)
        snprintf(i->flavor, sizeof i->flavor, "bigtiff");
    i->dtype = p->dtype;
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
    i->mappable = p->raw;
    scale_physical(x, &i->meta);
}
