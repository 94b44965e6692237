/* jpeg_marks.c - see jpeg_marks.h. The segments in front of the first scan, one after the
 * other: 0xff, a number, two bytes of length that count themselves.
 *
 * A profile comes in up to 255 parts that say their place; it is taken when all are there.
 * Source: ITU-T T.81, annex B; Exif 2.3, section 4.5.5; ICC.1:2010, annex B.4. */
#include "io/jpeg_marks.h"

#include "engine/base/mem.h"
#include "io/bytes.h"
#include "io/exif.h"

#include <string.h>

#define MAX_SEGMENTS 4096
#define MAX_PARTS 255
#define ICC_HEAD 14
#define ICC_CAP ((size_t)16 << 20)
#define EXIF_LOOK 4096 /* the orientation stands in its first directory */

enum { APP1 = 0xe1, APP2 = 0xe2, SOS = 0xda, EOI = 0xd9 };

typedef struct marks {
    const tgi_rfile *f;
    tgi_window *w;
    tgi_image_meta *m;
    uint64_t part[MAX_PARTS]; /* where the parts of the profile lie; 0: not seen */
    uint16_t bytes[MAX_PARTS];
    int parts; /* as all of them say; -1: they do not agree */
} marks;

static tg_status get(const marks *k, uint64_t at, size_t n, const uint8_t **out, tgi_err *err)
{
    return tgi_window_get(k->w, k->f, at, n, n, out, err);
}

static tg_status take_exif(marks *k, uint64_t at, size_t n, tgi_err *err)
{
    const uint8_t *p;
    const size_t look = n < EXIF_LOOK ? n : EXIF_LOOK;
    if (n < 20 || k->m->orientation)
        return TG_OK;
    TGI_TRY(get(k, at, look, &p, err));
    if (memcmp(p, "Exif\0", 6) == 0)
        k->m->orientation = tgi_exif_orientation(p + 6, look - 6);
    return TG_OK;
}

static tg_status take_part(marks *k, uint64_t at, size_t n, tgi_err *err)
{
    const uint8_t *p;
    if (n <= ICC_HEAD)
        return TG_OK;
    TGI_TRY(get(k, at, ICC_HEAD, &p, err));
    if (memcmp(p, "ICC_PROFILE", 12) != 0)
        return TG_OK;
    const int number = p[12], all = p[13];
    if (!number || number > all || (k->parts && k->parts != all) || k->part[number - 1]) {
        k->parts = -1;
        return TG_OK;
    }
    k->parts = all;
    k->part[number - 1] = at + ICC_HEAD;
    k->bytes[number - 1] = (uint16_t)(n - ICC_HEAD);
    return TG_OK;
}

static tg_status join_parts(const marks *k, tgi_err *err)
{
    size_t n = 0;
    for (int i = 0; i < k->parts; i++) {
        if (!k->part[i])
            return TG_OK;
        n += k->bytes[i];
    }
    if (k->parts <= 0 || n > ICC_CAP)
        return TG_OK;
    k->m->icc = tgi_malloc(TGI_TAG_IO, n);
    if (!k->m->icc)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a colour profile of %zu bytes", n);
    for (int i = 0; i < k->parts; i++) {
        TGI_TRY(
            tgi_rfile_read(k->f, k->part[i], k->m->icc + k->m->icc_bytes, k->bytes[i], err));
        k->m->icc_bytes += k->bytes[i];
    }
    return TG_OK;
}

tg_status tgi_jpeg_marks(const tgi_rfile *f, tgi_window *w, tgi_image_meta *m, tgi_err *err)
{
    marks k = {.f = f, .w = w, .m = m};
    uint64_t at = 2;
    for (int i = 0; i < MAX_SEGMENTS && f->size >= 4 && at <= f->size - 4; i++) {
        const uint8_t *p;
        TGI_TRY(get(&k, at, 4, &p, err));
        const size_t n = tgi_load16(p + 2, true);
        const int mark = p[1];
        if (p[0] != 0xff || mark == SOS || mark == EOI)
            break;
        if (mark == 0xff) { /* fill bytes may stand in front of a mark */
            at++;
            continue;
        }
        if (n < 2 || n > f->size - at - 2)
            break;
        if (mark == APP1)
            TGI_TRY(take_exif(&k, at + 4, n - 2, err));
        else if (mark == APP2)
            TGI_TRY(take_part(&k, at + 4, n - 2, err));
        at += 2 + n;
    }
    return join_parts(&k, err);
}
