/* resolution.c - see resolution.h. */
#include "io/resolution.h"

#include "io/ome_write.h"

int tgi_resolution_of(const tgi_image_meta *m, double per_unit[2])
{
    per_unit[0] = per_unit[1] = 0;
    if (!m)
        return 0;
    for (int i = 0; i < 2; i++) {
        const double um = m->physical[2 - i] * tgi_unit_micrometres(m->unit[2 - i]);
        per_unit[i] = um > 0 ? 1e4 / um : 0;
    }
    if (per_unit[0] > 0 && per_unit[1] > 0)
        return 3;
    if (per_unit[0] > 0 || per_unit[1] > 0) { /* one of them says nothing of the other */
        per_unit[0] = per_unit[1] = 0;
        return 0;
    }
    if (!m->resolution_unit || !(m->resolution[0] > 0 && m->resolution[1] > 0))
        return 0;
    per_unit[0] = m->resolution[1];
    per_unit[1] = m->resolution[0];
    return m->resolution_unit <= 3 && m->resolution_unit > 0 ? m->resolution_unit : 1;
}

int tgi_jpeg_says(const double per_unit[2])
{
    return per_unit[0] >= 0.5 && per_unit[0] < 65535 && per_unit[1] >= 0.5 &&
           per_unit[1] < 65535;
}
