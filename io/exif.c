/* exif.c - see exif.h. Source: Exif 2.3, section 4.5; TIFF 6.0. */
#include "io/exif.h"

#include "io/bytes.h"

#include <string.h>

#define ORIENTATION 274
#define SHORT 3

int tgi_exif_orientation(const uint8_t *p, size_t n)
{
    if (n < 14 || (memcmp(p, "II*\0", 4) != 0 && memcmp(p, "MM\0*", 4) != 0))
        return 0;
    const bool big = p[0] == 'M';
    const size_t at = tgi_load32(p + 4, big);
    if (at > n - 2)
        return 0;
    const size_t entries = tgi_load16(p + at, big);
    for (size_t i = 0; i < entries && (n - at - 2) / 12 > i; i++) {
        const uint8_t *e = p + at + 2 + 12 * i;
        if (tgi_load16(e, big) != ORIENTATION)
            continue;
        const int v = tgi_load16(e + 8, big);
        return tgi_load16(e + 2, big) == SHORT && v >= 1 && v <= 8 ? v : 0;
    }
    return 0;
}

void tgi_exif_make(int orientation, uint8_t out[TGI_EXIF_BYTES])
{
    static const uint8_t block[TGI_EXIF_BYTES] = {
        'M', 'M', 0, '*', 0, 0, 0, 8,                                /* header */
        0,   1,   1, 18,  0, 3, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0}; /* one entry, the end */
    memcpy(out, block, sizeof block);
    out[19] = (uint8_t)orientation;
}
