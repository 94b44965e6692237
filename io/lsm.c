/* lsm.c - see lsm.h. The block is little-endian, as LSM files are. Offsets of what is taken:
 *
 *     0 magic    16 z, 20 channels, 24 t    40 voxel x,y,z (metres)    88 type of scan
 *     112 seconds between frames
 *
 * Channels are samples of a page. Source: LSM image file format description 2.0 (Zeiss), as
 * tifffile reads it. */
#include "io/lsm.h"

#include "io/bytes.h"

#include <math.h>
#include <string.h>

#define MAGIC_2 0x00300494cu /* LSM 1.5 and 2.0 */
#define MAGIC_3 0x00400494cu /* LSM 2.8 to 4.2 */

static double positive(const uint8_t *p)
{
    const uint64_t v = tgi_load64(p, false);
    double d;
    memcpy(&d, &v, sizeof d);
    return isfinite(d) && d > 0 ? d : 0;
}

bool tgi_lsm_parse(const uint8_t *p, size_t n, tgi_lsm *out)
{
    /* By type of scan; the others have x and z, lines or points. */
    static const char *const axes[] = {"Z", NULL, NULL, "T", NULL, NULL, "TZ", "TZ"};
    *out = (tgi_lsm){0};
    if (n < TGI_LSM_BYTES)
        return false;
    const uint32_t magic = tgi_load32(p, false);
    if (magic != MAGIC_2 && magic != MAGIC_3)
        return false;
    const unsigned scan = tgi_load16(p + 88, false);
    const int32_t z = (int32_t)tgi_load32(p + 16, false),
                  t = (int32_t)tgi_load32(p + 24, false);
    out->axes = scan < sizeof axes / sizeof axes[0] ? axes[scan] : NULL;
    out->z = z > 0 ? z : 1;
    out->t = t > 0 ? t : 1;
    for (int i = 0; i < 3; i++)
        out->voxel[2 - i] = positive(p + 40 + 8 * i) * 1e6;
    out->interval = positive(p + 112);
    return true;
}
