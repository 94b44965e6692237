/* measured.h - what was measured of a device, once for each driver and version of ours, and
 * kept in the user's cache folder (devices.json). What cannot be read there, or belongs to
 * another driver, is measured again; where there is no folder, every time. */
#ifndef TGI_MEASURED_H
#define TGI_MEASURED_H

#include "kernels/device.h"

typedef struct tgi_measured {
    double half_gain;       /* time in float32 over that in half precision; see half_gain.h */
    uint64_t context_bytes; /* that the context takes on the device; 0: not known */
} tgi_measured;

/* 1: it is there. */
int tgi_measured_read(const tg_device_info *info, tgi_measured *out);
/* Keep it, beside what is there of other devices. */
tg_status tgi_measured_write(const tg_device_info *info, const tgi_measured *m, tgi_err *err);

#endif
