/* copy_npy.c - a copy to an array: written to OUT.partial and renamed. */
#include "engine/job/copy_priv.h"

#include "io/npy.h"
#include <string.h>

/* ---- .npy -------------------------------------------------------------------------------- */

/* Elements between neighbours along an axis of the output array. */
static int64_t step_of(const tgi_copying *c, char letter)
{
    int64_t n = 1;
    for (int a = c->n_axes - 1; a >= 0; a--) {
        if (c->axes[a] == letter)
            return n;
        n *= c->shape[a];
    }
    return 0;
}

/* First element of a plane: plane axes in order, whatever lies between them. */
static int64_t plane_at(const tgi_copying *c, int64_t plane)
{
    int64_t at = 0, n = 1;
    for (int a = c->n_axes - 1; a >= 0; a--) {
        if (!strchr("YXS", c->axes[a])) {
            at += plane % c->shape[a] * n;
            plane /= c->shape[a];
        }
        n *= c->shape[a];
    }
    return at;
}

static tg_status npy_rows(tgi_copying *c, tgi_npy_out *out, int64_t plane, int64_t y0,
                          int64_t y1, tgi_err *err)
{
    const size_t size = tgi_dtype_size(c->dtype);
    const int64_t w = tgi_range_len(c->x), s_step = step_of(c, 'S'), x_step = step_of(c, 'X');
    const int interleaved = s_step == 1 && x_step > 1;
    for (int64_t r = 0; r < y1 - y0; r++) {
        const int64_t at = plane_at(c, plane) + (y0 + r) * step_of(c, 'Y');
        for (int64_t s = 0; s < c->info->samples; s++) {
            const char *src = tgi_copy_row_of(c, s, r, y1 - y0);
            tgi_copy_convert(
                c, src, w, interleaved ? c->out_rows + (size_t)s * size : c->out_rows, x_step);
            if (!interleaved)
                TGI_TRY(tgi_npy_write(out, (uint64_t)(at + s * s_step) * size, c->out_rows,
                                      (size_t)w * size, err));
        }
        if (interleaved)
            TGI_TRY(tgi_npy_write(out, (uint64_t)at * size, c->out_rows,
                                  (size_t)(w * c->info->samples) * size, err));
    }
    return TG_OK;
}

static tg_status npy_planes(tgi_copying *c, tgi_npy_out *out, tgi_err *err)
{
    const int64_t h = tgi_range_len(c->y);
    for (int64_t p = 0; p < c->n_planes; p++)
        for (int64_t y = 0; y < h; y += c->step) {
            const int64_t y1 = tgi_min(h, y + c->step);
            TGI_TRY(tgi_copy_read_rows(c, p, y, y1, err));
            TGI_TRY(npy_rows(c, out, p, y, y1, err));
            tgi_copy_tell(c, ((double)p + (double)y1 / (double)h) / (double)c->n_planes);
        }
    return TG_OK;
}

tg_status tgi_copy_to_npy(tgi_copying *c, tgi_err *err)
{
    tgi_desc d = {c->dtype, 0, {0}};
    tgi_npy_out out = {.part = TGI_PART_CLOSED};
    TGI_TRY(tgi_copy_check_budget(c, NULL, NULL, err));
    tgi_copy_tell_lost(c, NULL);
    TGI_TRY(tgi_copy_check_objects(c, 1, err));
    for (int a = 0; a < c->n_axes; a++)
        if (c->shape[a] != 1 ||
            strchr("YX", c->axes[a])) /* a row of pixels is an image still */
            d.dim[d.rank++] = c->shape[a];
    TGI_TRY(tgi_npy_create(c->output, &d, tgi_opts_flag(c->opts, TGI_OPT_YES), &out, err));
    tg_status st = tgi_bad_tiles_begin_output(c->bad, c->output, err);
    if (st == TG_OK)
        st = tgi_copy_watch_input(c, err);
    if (st == TG_OK)
        st = tgi_copy_begin_post(c, err);
    if (st == TG_OK)
        st = npy_planes(c, &out, err);
    if (st == TG_OK)
        st = tgi_copy_write_objects(c, 0, err);
    st = tgi_copy_input_held(c, st, err);
    tgi_copy_forget_objects(c, st);
    if (st == TG_OK)
        st = tgi_copy_list_bad(c, err);
    if (c->bad) /* nothing goes on from it, and behind the name nobody would know it */
        tgi_bad_tiles_clear(c->bad);
    if (st == TG_OK)
        st = tgi_npy_finish(&out, err);
    tgi_npy_abandon(&out);
    return st == TG_OK ? tgi_copy_verdict(c, err) : st;
}
