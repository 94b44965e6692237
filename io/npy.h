/* npy.h - numpy's .npy arrays: raw network tensors, and images for tests and scripts.
 *
 * Read: versions 1 to 3, both byte orders, C order. Fortran order, structured, complex and
 * object arrays are refused by name. Written: version 1, native order.
 * Source: numpy/lib/format.py, "NEP 1 - a simple file format for numpy arrays". */
#ifndef TGI_NPY_H
#define TGI_NPY_H

#include "engine/base/tensor.h"
#include "io/rfile.h"

typedef struct tgi_npy_head {
    tg_desc desc;
    bool swap; /* stored in the other byte order */
    uint64_t data_off;
    size_t data_bytes;
} tgi_npy_head;

/* Read and check the header: the data lie in the file. TG_E_FORMAT, TG_E_UNSUPPORTED. */
tg_status tgi_npy_read_head(const tgi_rfile *f, tgi_npy_head *out, tgi_err *err);

/* Load a whole array in native order. `max_bytes` 0: no limit. *data returned; tgi_free.
 * TG_E_NOT_FOUND, TG_E_FORMAT, TG_E_UNSUPPORTED, TG_E_BUDGET (larger than max_bytes). */
tg_status tgi_npy_load(const char *path, size_t max_bytes, tg_desc *desc, void **data,
                       tgi_err *err);

typedef struct tgi_npy_map {
    tg_desc desc;
    const void *data; /* view, read-only, aligned for its type */
    void *base;       /* the mapping */
    size_t base_bytes;
} tgi_npy_map;

/* Map an array without copying. TG_E_UNSUPPORTED as well when the bytes are not in native order
 * or not aligned: use tgi_npy_load then. Release with tgi_npy_unmap. */
tg_status tgi_npy_map_open(const char *path, tgi_npy_map *out, tgi_err *err);
void tgi_npy_unmap(tgi_npy_map *m); /* safe on zero and after unmap */

/* Header bytes for `desc` into buf; *n is a multiple of 64. 512 bytes are always enough. */
tg_status tgi_npy_make_head(const tg_desc *desc, char *buf, size_t cap, size_t *n,
                            tgi_err *err);

/* Write a whole array, replacing the file. TG_E_EXISTS (cannot create), TG_E_IO, TG_E_NO_SPACE.
 */
tg_status tgi_npy_save(const char *path, const tg_desc *desc, const void *data, tgi_err *err);

/* Streaming: create, write parts in any order, finish. */
typedef struct tgi_npy_out {
    int fd; /* -1: closed */
    uint64_t data_off, data_bytes, written;
} tgi_npy_out;

/* Create the file at its full length (sparse). */
tg_status tgi_npy_create(const char *path, const tg_desc *desc, tgi_npy_out *out, tgi_err *err);
/* `n` bytes of native data at byte `off` of the array. */
tg_status tgi_npy_write(tgi_npy_out *o, uint64_t off, const void *src, size_t n, tgi_err *err);
/* Flush and close. TG_E_INTERNAL when fewer bytes were written than the array has. */
tg_status tgi_npy_finish(tgi_npy_out *o, tgi_err *err);
void tgi_npy_abandon(tgi_npy_out *o); /* close without checks; safe after finish */

#endif
