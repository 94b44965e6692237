/* weights.h - the tensors that a network was trained to have, by name: .pth of PyTorch (both forms) and safetensors.
 *
 * The file is mapped, and a tensor that lies in it as networks want it (dense, aligned, in this machine's byte order) is
 * borrowed from the mapping: no copy of it is ever in memory. Others are read into the caller's buffer. Who cuts the file short
 * meanwhile ends the process by SIGBUS, as with a model: a new version of a file is to be moved over the old one.
 *
 * Opening looks at names, shapes and places only. Of a .pth file nothing is run: pickle.h says what is read of it. */
#ifndef TGI_WEIGHTS_H
#define TGI_WEIGHTS_H

#include "engine/base/held.h"
#include "engine/base/sha256.h"
#include "engine/base/status.h"
#include "engine/base/tensor.h"

typedef struct tgi_weights tgi_weights;

typedef struct tgi_weight {
    const char *name; /* without a `module.` that every name has */
    tgi_desc desc;    /* dtype, rank, shape (rank 0: a scalar) */
    size_t bytes;     /* of the dense array */
} tgi_weight;

/* Returned; tgi_weights_close. TG_E_NOT_FOUND, TG_E_FORMAT, TG_E_UNSUPPORTED (element types, what a library that is not
 * there would read), TG_E_NOMEM. */
tg_status tgi_weights_open(const char *path, tgi_weights **out, tgi_err *err);
void tgi_weights_close(tgi_weights **w);

const char *tgi_weights_path(const tgi_weights *w);   /* as it was opened */
const char *tgi_weights_format(const tgi_weights *w); /* "pth", "legacy pth", "safetensors" */
int tgi_weights_count(const tgi_weights *w);
const tgi_weight *tgi_weights_at(const tgi_weights *w, int i); /* in the file's order */
int tgi_weights_find(const tgi_weights *w, const char *name);  /* -1: there is none */

/* The dense row-major little-endian elements in the mapping, aligned to its element, or NULL: it must be read. */
const void *tgi_weights_mapped(const tgi_weights *w, int i);
/* The same elements into `dst`, which has room for their bytes. One thread at a time. TG_E_FORMAT: the bytes are damaged. */
tg_status tgi_weights_read(const tgi_weights *w, int i, void *dst, tgi_err *err);

/* Elements were copied: pages of the mapping need not stay in memory. They may be read again. */
void tgi_weights_rest(const tgi_weights *w);

/* TG_E_FORMAT: the file changed since it was opened. Ask behind reading. */
tg_status tgi_weights_unchanged(const tgi_weights *w, tgi_err *err);
/* The file as it was opened. */
void tgi_weights_held(const tgi_weights *w, tgi_held *out);
/* SHA-256 over names, types, shapes and elements, sorted by name: of the same weights it is the same, whatever file has them.
 */
tg_status tgi_weights_sum(const tgi_weights *w, char text[TGI_SHA256_TEXT], tgi_err *err);

#endif
