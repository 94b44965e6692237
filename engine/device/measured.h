/* measured.h - what was measured of a device, once for each driver and version of ours, and
 * kept in the user's cache folder (devices.json). What cannot be read there, or belongs to
 * another driver, is measured again; where there is no folder, every time. */
#ifndef TGI_MEASURED_H
#define TGI_MEASURED_H

#include "engine/device/gains.h"

typedef struct tgi_measured {
    double gain[TGI_GAIN_COUNT]; /* < 0: not measured */
    uint64_t context_bytes;      /* that the context takes on the device; 0: not known */
    uint64_t library_bytes;      /* and the library when it is open; 0: not known */
} tgi_measured;

/* What is known; nothing, where there is no row. */
void tgi_measured_read(const tgi_device_info *info, tgi_measured *out);
/* Keep it, beside what is there of other devices. */
tg_status tgi_measured_write(const tgi_device_info *info, const tgi_measured *m, tgi_err *err);

#endif
