/* half_gain.h - how much faster a device computes in half precision than in float32, by doing
 * it: what `--precision auto` goes by. Some devices have no matrix units, on others they are
 * what the device is for; tables of names would be of yesterday. */
#ifndef TGI_HALF_GAIN_H
#define TGI_HALF_GAIN_H

#include "kernels/device.h"

/* From here on half precision is worth its rounding. */
#define TGI_HALF_IS_FASTER 1.15

/* Time of a convolution (3x3, 64 channels) in float32 over that in half precision, the least of
 * a few rounds each, with the device's own variants and programs; some milliseconds. `now`:
 * seconds. Everything it allocates on the device is given back; TG_E_BUDGET: that would be more
 * than `limit` bytes, as it is where --vram leaves little. TG_E_UNSUPPORTED: the device does
 * not offer both. */
tg_status tgi_half_gain(const tg_device_ops *ops, tg_device *d, const tg_device_info *info,
                        uint64_t limit, double (*now)(void), double *gain, tgi_err *err);

#endif
