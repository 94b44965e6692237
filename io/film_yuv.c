/* film_yuv.c - see film_yuv.h. */
#include "io/film_yuv.h"

#include "io/bytes.h"

#include <string.h>

int tgi_film_yuv_of(const tgi_film_pixels *p, tgi_yuv *out)
{
    const tgi_av_form *f = &p->form;
    if (!tgi_film_has_chroma(p) || f->has_alpha || f->n_components != 3 || p->samples != 3 ||
        p->rotation || p->flipped)
        return 0;
    for (int c = 1; c < 3; c++)
        if (f->component[c].depth != f->component[0].depth)
            return 0;
    *out = (tgi_yuv){.there = 1,
                     .depth = f->component[0].depth,
                     .log2_w = f->log2_chroma_w,
                     .log2_h = f->log2_chroma_h,
                     .twice_x = (int)(2 * p->place_x), /* halves of pixels: exact */
                     .twice_y = (int)(2 * p->place_y),
                     .width = p->width,
                     .height = p->height,
                     .white = p->white};
    memcpy(out->black, p->black, sizeof out->black);
    memcpy(out->to_one, p->to_one, sizeof out->to_one);
    memcpy(out->rgb, p->rgb, sizeof out->rgb);
    return 1;
}

static size_t number_bytes(const tgi_film_pixels *p)
{
    return tgi_dtype_size(p->dtype);
}

/* n numbers of component c, as they lie in a row of the film. */
static void take_row(const tgi_film_pixels *p, int c, const uint8_t *from, int64_t n, char *to)
{
    const int step = p->form.component[c].step;
    const int as_they_are = tgi_film_lies(&p->form, c) ==
                            (p->dtype == TG_DTYPE_U8 ? TGI_FILM_BYTES : TGI_FILM_WORDS);
    if (as_they_are && (p->dtype == TG_DTYPE_U8 || !TGI_HOST_BIG)) {
        memcpy(to, from, (size_t)n * number_bytes(p));
        return;
    }
    for (int64_t x = 0; x < n; x++, from += step) {
        const unsigned v = tgi_film_number(&p->form, c, from);
        if (p->dtype == TG_DTYPE_U8)
            ((uint8_t *)to)[x] = (uint8_t)v;
        else
            ((uint16_t *)(void *)to)[x] = (uint16_t)v;
    }
}

void tgi_film_yuv_take(const tgi_film_pixels *p, const tgi_av_frame *f, void *to)
{
    char *at = to;
    for (int c = 0; c < 3; c++) {
        const tgi_av_component *k = &p->form.component[c];
        const int64_t n = tgi_film_columns(p, c);
        for (int64_t y = 0; y < tgi_film_rows(p, c); y++, at += (size_t)n * number_bytes(p))
            take_row(p, c, f->plane[k->plane] + y * f->pitch[k->plane] + k->offset, n, at);
    }
}

/* Black of each component is a whole number. */
void tgi_film_yuv_black(const tgi_film_pixels *p, void *to)
{
    char *at = to;
    for (int c = 0; c < 3; c++) {
        const int64_t n = tgi_film_columns(p, c) * tgi_film_rows(p, c);
        for (int64_t i = 0; i < n; i++)
            if (p->dtype == TG_DTYPE_U8)
                ((uint8_t *)at)[i] = (uint8_t)p->black[c];
            else
                ((uint16_t *)(void *)at)[i] = (uint16_t)p->black[c];
        at += (size_t)n * number_bytes(p);
    }
}

/* Rows and columns of one plane, whose rows have `width` numbers. */
static char *stage_plane(const char *plane, int64_t width, tgi_range rows, tgi_range cols,
                         size_t size, char *to)
{
    const size_t n = (size_t)tgi_range_len(cols) * size;
    for (int64_t y = rows.lo; y < rows.hi; y++, to += n)
        memcpy(to, plane + (size_t)(y * width + cols.lo) * size, n);
    return to;
}

void tgi_film_yuv_stage(const tgi_yuv *f, const tgi_yuv_staged *what, const void *planes,
                        void *to)
{
    const size_t size = f->depth > 8 ? 2 : 1;
    const int64_t w = tgi_yuv_chroma(f->width, f->log2_w),
                  h = tgi_yuv_chroma(f->height, f->log2_h);
    const char *from = planes;
    char *at = stage_plane(from, f->width, what->rows, what->cols, size, to);
    from += (size_t)(f->width * f->height) * size;
    for (int c = 1; c < 3; c++, from += (size_t)(w * h) * size)
        at = stage_plane(from, w, what->chroma_rows, what->chroma_cols, size, at);
}

void tgi_film_yuv_row(const tgi_film_pixels *p, const void *planes, int64_t y, void *row,
                      void *room)
{
    tgi_film_pixels dense = *p;
    tgi_av_frame frame = {0};
    const uint8_t *at = planes;
    dense.form.big_endian = TGI_HOST_BIG;
    dense.form.n_planes = 3;
    for (int c = 0; c < 3; c++) {
        const int size = (int)number_bytes(p);
        const int64_t pitch = tgi_film_columns(p, c) * size;
        dense.form.component[c] =
            (tgi_av_component){.plane = c, .step = size, .depth = p->form.component[c].depth};
        frame.plane[c] = at;
        frame.pitch[c] = pitch;
        at += pitch * tgi_film_rows(p, c);
    }
    dense.form.wide = p->dtype != TG_DTYPE_U8;
    tgi_film_line(&dense, &frame, y, row, room);
}
