/* shown.c - see shown.h. */
#include "engine/inpaint/shown.h"

#include "engine/base/clock.h"
#include "engine/base/mem.h"
#include "io/png.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define EVERY 1.0                   /* seconds */
#define PNG_BYTES ((size_t)2 << 20) /* that its writer allocates, at most */

struct tgi_shown {
    const tgi_image_info *film;
    tgi_shown_how how;
    double at;      /* when the last picture was written */
    uint8_t *bytes; /* of 8 bits, where the frames have more */
    int failed;     /* the last picture cannot be written: nobody tries again */
};

static size_t samples_of(const tgi_image_info *f)
{
    return (size_t)(f->height * f->width) * (size_t)f->samples;
}

static size_t narrow_bytes(const tgi_image_info *f)
{
    return f->dtype == TG_DTYPE_U16 ? samples_of(f) : 0;
}

tg_status tgi_shown_new(const tgi_image_info *film, const tgi_shown_how *how, tgi_shown **out,
                        tgi_err *err)
{
    *out = NULL;
    if (!how->live && !how->folder)
        return TG_OK;
    tgi_shown *s = tgi_calloc(TGI_TAG_IO, 1, sizeof *s);
    if (s)
        s->bytes = tgi_malloc(TGI_TAG_IO, narrow_bytes(film) + 1);
    if (!s || !s->bytes) {
        tgi_free(s);
        return tgi_fail(err, TG_E_NOMEM, "no memory for frames as pictures");
    }
    s->film = film;
    s->how = *how;
    *out = s;
    return TG_OK;
}

void tgi_shown_free(tgi_shown **s)
{
    if (!*s)
        return;
    tgi_free((*s)->bytes);
    tgi_free(*s);
    *s = NULL;
}

size_t tgi_shown_bytes(const tgi_shown *s)
{
    return s ? narrow_bytes(s->film) + PNG_BYTES : 0;
}

static tg_status write(const tgi_shown *s, const char *path, const void *pixels, tgi_err *err)
{
    const int n = s->film->samples;
    return tgi_png_write(path, narrow_bytes(s->film) ? s->bytes : pixels, s->film->height,
                         s->film->width, n, (size_t)s->film->width * (size_t)n, err);
}

static tg_status save(const tgi_shown *s, int64_t k, const void *pixels, tgi_err *err)
{
    char path[PATH_MAX];
    if (mkdir(s->how.folder, 0777) != 0 && errno != EEXIST)
        return tgi_fail(err, TG_E_IO, "--save-frames: %s: %s", s->how.folder, strerror(errno));
    if (snprintf(path, sizeof path, "%s/%05lld.png", s->how.folder,
                 (long long)(s->how.first + k)) >= (int)sizeof path)
        return tgi_fail(err, TG_E_ARG, "--save-frames: the name of its folder is too long");
    return write(s, path, pixels, err);
}

tg_status tgi_shown_put(tgi_shown *s, int64_t k, const void *pixels, tgi_err *err)
{
    tgi_err none = {0};
    if (!s)
        return TG_OK;
    const int is_live = s->how.live && !s->failed && tgi_seconds() - s->at >= EVERY;
    if (!is_live && !s->how.folder)
        return TG_OK;
    const uint16_t *wide = pixels;
    for (size_t i = 0; i < narrow_bytes(s->film); i++)
        s->bytes[i] = (uint8_t)(wide[i] / 257);
    if (is_live) {
        s->failed = write(s, s->how.live, pixels, &none) != TG_OK;
        s->at = tgi_seconds();
    }
    return s->how.folder ? save(s, k, pixels, err) : TG_OK;
}
