/* cellpose.c - Cellpose from beginning to end, and the numbers it keeps for each pixel: in memory, or in a file without a
 * name. */
#include "engine/post/cellpose.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "engine/post/cell_inside.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

tg_status tgi_cell_get(tgi_cellpose *c, int64_t y0, int64_t y1, uint32_t *dst, tgi_err *err)
{
    const size_t at = (size_t)y0 * (size_t)c->width * 4,
                 n = (size_t)(y1 - y0) * (size_t)c->width * 4;
    if (c->numbers) {
        memcpy(dst, c->numbers + at / 4, n);
        return TG_OK;
    }
    for (size_t done = 0; done < n;) {
        const ssize_t got =
            pread(tgi_scratch_fd(c->file), (char *)dst + done, n - done, (off_t)(at + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return tgi_fail(err, TG_E_IO,
                            "cellpose: the scratch file ends, or cannot be read: %s",
                            got < 0 ? strerror(errno) : "too short");
        done += (size_t)got;
    }
    return TG_OK;
}

tg_status tgi_cell_put(tgi_cellpose *c, int64_t y0, int64_t y1, const uint32_t *src,
                       tgi_err *err)
{
    const size_t at = (size_t)y0 * (size_t)c->width * 4,
                 n = (size_t)(y1 - y0) * (size_t)c->width * 4;
    if (!c->numbers)
        return tgi_scratch_write(c->file, at, src, n, err);
    memcpy(c->numbers + at / 4, src, n);
    return TG_OK;
}

tg_status tgi_cell_put_one(tgi_cellpose *c, uint64_t pixel, uint32_t number, tgi_err *err)
{
    if (!c->numbers)
        return tgi_scratch_write(c->file, pixel * 4, &number, sizeof number, err);
    c->numbers[pixel] = number;
    return TG_OK;
}

static tg_status check(const tgi_post_rows *rows, const tgi_cellpose_how *how, tgi_err *err)
{
    if (rows->planes != 3)
        return tgi_fail(
            err, TG_E_ARG,
            "cellpose: expected 3 planes (flow down, flow to the right, certainty), found %d",
            rows->planes);
    if (rows->height < 2 || rows->width < 2 || rows->height > 1 << 23 ||
        rows->width > 1 << 23 || rows->height * rows->width >= UINT32_MAX)
        return tgi_fail(err, TG_E_ARG,
                        "cellpose: %lld x %lld pixels: expected sides of 2 to 2^23, and fewer "
                        "than 2^32 - 1 "
                        "in all",
                        (long long)rows->width, (long long)rows->height);
    if (how->niter < 0 || isnan(how->cell_threshold) || isnan(how->flow_threshold) ||
        !(how->max_size_fraction > 0))
        return tgi_fail(err, TG_E_ARG,
                        "cellpose: %d steps, largest fraction %g: expected none below 0",
                        how->niter, how->max_size_fraction);
    return TG_OK;
}

static tg_status find(tgi_cellpose *c, tgi_err *err)
{
    const size_t pixels = (size_t)c->height * (size_t)c->width;
    if (c->how.scratch)
        TGI_TRY(tgi_scratch_create(c->how.scratch, (uint64_t)pixels * 4, &c->file, err));
    else
        TGI_TRY(tgi_room_new(&c->memory, (void **)&c->numbers, pixels, sizeof(uint32_t), err));
    size_t n_seeds = 0;
    TGI_TRY(tgi_cell_follow(c, err));
    TGI_TRY(tgi_cell_seed(c, &n_seeds, err));
    TGI_TRY(tgi_cell_number(c, n_seeds, err));
    if (c->how.flow_threshold > 0 && c->n_masks)
        TGI_TRY(tgi_cell_compare(c, err));
    return tgi_cell_fill(c, err);
}

tg_status tgi_cellpose_open(const tgi_post_rows *rows, const tgi_cellpose_how *how,
                            tgi_cellpose **out, tgi_err *err)
{
    TGI_TRY(check(rows, how, err));
    tgi_cellpose *c = tgi_calloc(TGI_TAG_MISC, 1, sizeof *c);
    if (!c)
        return tgi_fail(err, TG_E_NOMEM, "cellpose: no memory");
    c->how = *how;
    c->rows = rows;
    c->height = rows->height;
    c->width = rows->width;
    c->memory =
        (tgi_room){.who = "cellpose",
                   .remedy = how->scratch ? "a higher threshold (prob=X)" : "a scratch folder",
                   .limit = how->limit_bytes};
    const tg_status st = find(c, err);
    c->rows = NULL;
    if (st != TG_OK)
        tgi_cellpose_close(&c);
    else
        *out = c;
    return st;
}

void tgi_cellpose_close(tgi_cellpose **c)
{
    if (!*c)
        return;
    tgi_free((*c)->numbers);
    tgi_free((*c)->ends);
    tgi_free((*c)->masks);
    tgi_scratch_close(&(*c)->file);
    tgi_free(*c);
    *c = NULL;
}

tg_status tgi_cellpose_paint(tgi_cellpose *c, int64_t y0, int64_t y1, uint32_t *dst,
                             tgi_err *err)
{
    TGI_TRY(tgi_cell_get(c, y0, y1, dst, err));
    for (int64_t i = 0; i < (y1 - y0) * c->width; i++) {
        const tgi_cell_mask *m = &c->masks[dst[i]];
        dst[i] = m->is_gone || dst[i] == 0 ? 0 : m->seen;
    }
    return TG_OK;
}

uint32_t tgi_cellpose_count(const tgi_cellpose *c)
{
    return c->n;
}

size_t tgi_cellpose_peak(const tgi_cellpose *c)
{
    return c->memory.peak;
}

size_t tgi_cellpose_bytes(const tgi_cellpose_how *how, int64_t height, int64_t width,
                          int64_t tallest, uint64_t n_masks, uint64_t n_ends)
{
    const size_t w = (size_t)width, band = (size_t)(how->band_rows > 0 ? how->band_rows : 64);
    const size_t margin = (size_t)(how->margin_rows > 0 ? how->margin_rows : 64);
    size_t slots = 4096;
    while (slots < tgi_sat_mul(2, n_ends + 1) && slots < SIZE_MAX / 4)
        slots *= 2;
    /* Flow and cells of a window, certainty, pixels that move, where they end. */
    const size_t follow = tgi_sat_mul(w, (band + 2 * margin) * 9 + band * (4 + 16 + 4));
    /* Rows of the tallest mask and those above it, numbers and heat; half more as they grow, old beside new. */
    const size_t rows = tgi_sat_mul(w, ((size_t)tallest + 4) * 12 * 5 / 2);
    const size_t box = tgi_sat_mul(((size_t)tallest + 2) * 24 * 5 / 2, tgi_sat_add(w, 2));
    const size_t table = tgi_sat_mul(n_masks + 2, sizeof(tgi_cell_mask) * 5 / 2 + 16);
    size_t all = how->scratch ? 0 : tgi_sat_mul(tgi_sat_mul(w, (size_t)height), 4);
    all =
        tgi_sat_add(all, tgi_sat_mul(slots, 3 * sizeof(tgi_cell_end) / 2)); /* old beside new */
    all = tgi_sat_add(all, table);
    const size_t later = tgi_sat_add(rows, box);
    return tgi_sat_add(tgi_sat_add(all, follow > later ? follow : later), 65536);
}
