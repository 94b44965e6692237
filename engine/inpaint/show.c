/* show.c - see show.h. */
#include "engine/inpaint/show.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"

#include <stdio.h>
#include <string.h>

typedef struct show {
    tgi_method base;
    tgi_show_how how;
    void *pixels; /* both NULL until the first frame */
    uint8_t *hidden;
} show;

static show *of(tgi_method *m)
{
    return (show *)m;
}

static size_t plane(const show *s)
{
    return (size_t)(s->how.height * s->how.width);
}

static size_t frame_bytes(const show *s)
{
    return tgi_sat_mul(plane(s), (size_t)s->how.samples * tgi_dtype_size(s->how.dtype));
}

static void show_free(tgi_method **m)
{
    if (!*m)
        return;
    tgi_free(of(*m)->pixels);
    tgi_free(of(*m)->hidden);
    tgi_free(*m);
    *m = NULL;
}

static size_t show_bytes(const tgi_method *m)
{
    const show *s = (const show *)m;
    return tgi_sat_add(frame_bytes(s), plane(s));
}

static uint64_t show_disk(const tgi_method *m)
{
    (void)m;
    return 0;
}

static int show_shrink(tgi_method *m)
{
    (void)m;
    return 0;
}

static double show_flops(const tgi_method *m)
{
    return 3 * (double)plane((const show *)m);
}

#define BYTES_A_SECOND 1e9 /* a rough figure: reading and writing a film take more */

static double show_seconds(const tgi_method *m, int64_t from, int64_t until, int least,
                           tgi_sched_pass *of_pass, void *user)
{
    (void)least, (void)of_pass, (void)user;
    return (double)(until - from) * (double)frame_bytes((const show *)m) / BYTES_A_SECOND;
}

/* Of a hidden pixel; alpha, a second or fourth sample, stays. */
static void paint(const show *s, size_t i)
{
    const int n = s->how.samples, colours = n >= 3 ? 3 : 1;
    uint8_t *p8 = (uint8_t *)s->pixels + i * (size_t)n;
    uint16_t *p16 = (uint16_t *)s->pixels + i * (size_t)n;
    for (int c = 0; c < colours; c++) {
        const double full = s->how.dtype == TG_DTYPE_U8 ? 255 : 65535,
                     over = colours == 1 || c == 1 ? full : 0;
        if (s->how.dtype == TG_DTYPE_U8)
            p8[c] = (uint8_t)(0.4 * p8[c] + 0.6 * over);
        else
            p16[c] = (uint16_t)(0.4 * p16[c] + 0.6 * over);
    }
}

static tg_status show_make(tgi_method *m, int64_t k, tgi_propagated *out, tgi_err *err)
{
    show *s = of(m);
    if (!s->pixels)
        s->pixels = tgi_malloc(TGI_TAG_IO, frame_bytes(s) + 1);
    if (!s->hidden)
        s->hidden = tgi_malloc(TGI_TAG_IO, plane(s) + 1);
    if (!s->pixels || !s->hidden)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a frame");
    TGI_TRY(s->how.frame(s->how.user, k, s->pixels, s->hidden, err));
    for (size_t i = 0; i < plane(s); i++)
        if (s->hidden[i])
            paint(s, i);
    *out = (tgi_propagated){.height = s->how.height,
                            .width = s->how.width,
                            .pixels = s->pixels,
                            .hidden = s->hidden};
    return TG_OK;
}

static void show_text(const tgi_method *m, char *buf, size_t cap)
{
    (void)m;
    snprintf(buf, cap, "a frame, its mask");
}

tg_status tgi_show_new(const tgi_show_how *how, tgi_method **out, tgi_err *err)
{
    static const tgi_method_ops ops = {.free = show_free,
                                       .bytes = show_bytes,
                                       .disk = show_disk,
                                       .shrink = show_shrink,
                                       .flops = show_flops,
                                       .seconds = show_seconds,
                                       .make = show_make,
                                       .text = show_text};
    show *s = tgi_calloc(TGI_TAG_PLAN, 1, sizeof *s);
    if (!s)
        return tgi_fail(err, TG_E_NOMEM, "no memory for what is shown");
    *s = (show){.base.ops = &ops, .how = *how};
    *out = &s->base;
    return TG_OK;
}
