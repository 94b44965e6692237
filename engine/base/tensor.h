/* tensor.h - element types and logical shapes. No data is moved here. */
#ifndef TGI_TENSOR_H
#define TGI_TENSOR_H

#include "tegula.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TGI_MAX_RANK 8

/* Logical shape of a tensor, outermost first. Image-like activations are [N,C,H,W] or
 * [N,C,D,H,W]; dim is never negative once inferred. */
typedef struct tgi_desc {
    tg_dtype dtype;
    int rank;
    int64_t dim[TGI_MAX_RANK];
} tgi_desc;

/* bfloat16: a type that activations on a device and files of weights can have, and no image, array or ONNX network. */
#define TGI_DTYPE_BF16 ((tg_dtype)(TG_DTYPE_BOOL + 1))

size_t tgi_dtype_size(tg_dtype t);      /* bytes; 0 for TG_DTYPE_NONE */
const char *tgi_dtype_name(tg_dtype t); /* numpy spelling: "uint16" */
bool tgi_dtype_parse(const char *name, tg_dtype *out);
bool tgi_dtype_is_float(tg_dtype t);
/* Smallest and largest value an integer type holds, as double (exact up to 32 bits). */
void tgi_dtype_range(tg_dtype t, double *lo, double *hi);

/* Number of elements; false when it overflows int64 or a dim is negative. */
bool tgi_desc_count(const tgi_desc *d, int64_t *out);
bool tgi_desc_same_shape(const tgi_desc *a, const tgi_desc *b);
/* "[1,3,480,640] float32" into buf; returns buf. */
const char *tgi_desc_text(const tgi_desc *d, char *buf, size_t cap);

#endif
