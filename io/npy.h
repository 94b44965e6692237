/* npy.h - numpy's .npy arrays: raw network tensors, and images for tests and scripts.
 *
 * Read: versions 1 to 3, both byte orders, C and Fortran order. Structured, complex and
 * object arrays are refused by name. Written: version 1, native order.
 * Source: numpy/lib/format.py, "NEP 1 - a simple file format for numpy arrays". */
#ifndef TGI_NPY_H
#define TGI_NPY_H

#include "engine/base/tensor.h"
#include "io/part.h"
#include "io/rfile.h"

typedef struct tgi_npy_head {
    tgi_desc desc;
    bool swap;    /* stored in the other byte order */
    bool fortran; /* the first axis is the fastest; never with one axis */
    uint64_t data_off;
    size_t data_bytes;
} tgi_npy_head;

/* Read and check the header: the data lie in the file. TG_E_FORMAT, TG_E_UNSUPPORTED. */
tg_status tgi_npy_read_head(const tgi_rfile *f, tgi_npy_head *out, tgi_err *err);

/* Elements from one entry to the next, of each axis, as they lie in the file. */
void tgi_npy_steps(const tgi_npy_head *h, int64_t *step);
/* TG_E_UNSUPPORTED: it is in Fortran order, and whoever asks reads rows. */
tg_status tgi_npy_check_order(const tgi_npy_head *h, const char *path, tgi_err *err);

/* Load a whole array in native order. `max_bytes` 0: no limit. *data returned; tgi_free.
 * TG_E_NOT_FOUND, TG_E_FORMAT, TG_E_UNSUPPORTED, TG_E_BUDGET (larger than max_bytes). */
tg_status tgi_npy_load(const char *path, size_t max_bytes, tgi_desc *desc, void **data,
                       tgi_err *err);

/* An array that stays in its file, read in pieces (tgi_rfile_read from head.data_off on). */
typedef struct tgi_npy_in {
    tgi_rfile file;
    tgi_npy_head head;
} tgi_npy_in;

/* TG_E_UNSUPPORTED as well when the bytes are not in native order: use tgi_npy_load then. */
tg_status tgi_npy_open(const char *path, tgi_npy_in *out, tgi_err *err);
void tgi_npy_close(tgi_npy_in *in); /* safe on {.file.fd = -1} and after close */

/* Header bytes for `desc` into buf; *n is a multiple of 64. 512 bytes are always enough. */
tg_status tgi_npy_make_head(const tgi_desc *desc, char *buf, size_t cap, size_t *n,
                            tgi_err *err);

/* Write a whole array, replacing the file. TG_E_EXISTS (cannot create), TG_E_BUSY, TG_E_IO,
 * TG_E_NO_SPACE. */
tg_status tgi_npy_save(const char *path, const tgi_desc *desc, const void *data, tgi_err *err);

/* Streaming: create, write parts in any order and from any thread, finish. */
typedef struct tgi_npy_out {
    tgi_part part;
    uint64_t data_off, data_bytes;
    _Atomic uint64_t written;
} tgi_npy_out;

/* Begin the file, under its partial name and at its full length (part.h). Before the first use
 * `out` is {.part = TGI_PART_CLOSED}. */
tg_status tgi_npy_create(const char *path, const tgi_desc *desc, int replace, tgi_npy_out *out,
                         tgi_err *err);
/* Of such a file; 0: there can be none. */
uint64_t tgi_npy_file_bytes(const tgi_desc *desc);
/* The same in a file without a name in `folder` (tgi_part_unnamed): seal it, and read it as
 * part.partial while it is open. */
tg_status tgi_npy_create_unnamed(const char *folder, const char *of, const tgi_desc *desc,
                                 tgi_npy_out *out, tgi_err *err);
/* `n` bytes of native data at byte `off` of the array. */
tg_status tgi_npy_write(tgi_npy_out *o, uint64_t off, const void *src, size_t n, tgi_err *err);
/* All is written, and on the disk. TG_E_INTERNAL when fewer bytes were written than the array
 * has. */
tg_status tgi_npy_seal(const tgi_npy_out *o, tgi_err *err);
/* Seal, give the file its name, close. (Of several files: seal all, then tgi_part_name each.)
 */
tg_status tgi_npy_finish(tgi_npy_out *o, tgi_err *err);
void tgi_npy_abandon(tgi_npy_out *o); /* close; remove what has no name; safe any time */

#endif
