/* lsm.h - what the microscopes of Zeiss say in tag 34412 of an LSM file: axes and sizes. */
#ifndef TGI_LSM_H
#define TGI_LSM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TGI_LSM_BYTES 120 /* of the block, that are looked at */

typedef struct tgi_lsm {
    const char *axes; /* of the planes, slowest first: "Z", "T", "TZ"; NULL: the scan is not one
                         of planes along x and y; static */
    int64_t z, t;
    double voxel[3]; /* z,y,x in micrometres; 0 unknown */
    double interval; /* seconds between frames; 0 unknown */
} tgi_lsm;

/* True when these n bytes begin with such a block. Untrusted, bounded. */
bool tgi_lsm_parse(const uint8_t *p, size_t n, tgi_lsm *out);

#endif
