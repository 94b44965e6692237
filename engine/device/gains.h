/* gains.h - how much faster a device is with half precision, with matrix units or with a library
 * than without. Each is measured by computing the same both ways. A table of device names would
 * be out of date with the next device. */
#ifndef TGI_GAINS_H
#define TGI_GAINS_H

#include "kernels/device.h"

typedef enum tgi_gain {
    TGI_GAIN_HALF,    /* of half precision over float32, in a convolution */
    TGI_GAIN_WGMMA,   /* of TGI_KIND_WGMMA, in convolutions of 16-bit numbers */
    TGI_GAIN_LIBRARY, /* of TGI_KIND_LIBRARY, which must be open, in products of matrices */
    TGI_GAIN_COUNT
} tgi_gain;

/* "half_gain": how the figure is kept. */
const char *tgi_gain_name(tgi_gain which);
/* "fp16 is 3.20 times as fast as fp32". Returns buf. */
const char *tgi_gain_text(tgi_gain which, double gain, char *buf, size_t cap);
/* From here on it is worth its price: rounding, another kind of kernel, memory. */
double tgi_gain_worth(tgi_gain which);

/* Time of a layer without it over that with it, the least of a few rounds each, with the
 * device's own variants and programs; of several layers the least gain. Some milliseconds.
 * 0: the device has no such variants, or they do not compute what the others do: a kind's
 * results are compared, bit by bit, on numbers whose sums are exact in any order.
 *
 * The device's own clock says what they took: so many of a layer in one program that a round
 * has 5 ms and more. Everything allocated on the device is given back; TG_E_BUDGET: that would
 * be more than `limit` bytes, as it is where --vram leaves little. */
tg_status tgi_gain_measure(tgi_gain which, const tgi_device_ops *ops, tgi_device *d,
                           const tgi_device_info *info, uint64_t limit, double *gain,
                           tgi_err *err);

#endif
