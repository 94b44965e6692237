/* tensor_rows.h - rows of arrays on their way to a device and back.
 *
 * The device converts: what is copied here are elements as the files have them. Channels of a
 * pixel that lie side by side in the file (NHWC) stay so, others go plane by plane: both ways a
 * row is read or written where it lies, and rows that follow each other as one. Arrays with
 * their axes in any other order go through a buffer, element by element.
 *
 * A reader's thread copies the rows of the next band into the second of two staging buffers,
 * and waits for the disk, while the device computes; rows that were not foreseen are copied on
 * the spot. */
#ifndef TGI_TENSOR_ROWS_H
#define TGI_TENSOR_ROWS_H

#include "engine/ends/tensors.h"
#include "engine/exec/device_exec.h"
#include "engine/plan/tiling.h"

/* What arrays are like for a tiling on a device; planned, files need not be there yet. Of an
 * image that goes in nothing is said. */
void tgi_tensor_form(const tgi_tensors *all, const tgi_tiling *t, tgi_device_form *out);
/* One staging buffer: a band of every array that goes in. */
size_t tgi_tensor_band_bytes(const tgi_tensors *all, const tgi_tiling *t);

typedef struct tgi_tensor_reader tgi_tensor_reader;

/* staging: two buffers of tgi_tensor_band_bytes, `rows`: TGI_TENSOR_ROWS bytes, all borrowed.
 * Returned; tgi_tensor_reader_close. */
tg_status tgi_tensor_reader_open(const tgi_tensors *all, const tgi_tiling *t,
                                 void *const staging[2], void *rows, tgi_tensor_reader **out,
                                 tgi_err *err);
void tgi_tensor_reader_close(tgi_tensor_reader **r);
/* Ask for a sample's boxes, one for each input, in the background; at most one set of them is
 * under way. */
void tgi_tensor_reader_ask(tgi_tensor_reader *r, int64_t sample, const tgi_box *box);
/* The staged elements of input i over `box`, *bytes of them at *at, and how they lie. They stay
 * until the next box but one of this input is asked for. */
tg_status tgi_tensor_reader_get(tgi_tensor_reader *r, int64_t sample, int i, const tgi_box *box,
                                tgi_device_pixels *out, const void **at, size_t *bytes,
                                tgi_err *err);
/* Seconds that `get` waited for elements. */
double tgi_tensor_reader_waited(const tgi_tensor_reader *r);

/* Elements of output o of a sample over `box`, as its form says, to their places in the file.
 * `rows`: TGI_TENSOR_ROWS bytes. */
tg_status tgi_tensor_take(tgi_tensors *all, int o, const tgi_device_port *form, int64_t sample,
                          const tgi_box *box, const void *pixels, void *rows, tgi_err *err);

#endif
