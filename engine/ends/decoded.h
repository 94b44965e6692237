/* decoded.h - a source whose pixels are decoded once, into scratch, and read from there.
 *
 * It stands in front of another source and looks like one. The first time rows are asked for,
 * the rows of that plane up to them are decoded, in order, and written to the scratch file;
 * every later reading takes them from its mapping. So the pass that collects statistics is also
 * the one that decodes, and without statistics decoding goes beside the computation, as it does
 * without scratch.
 *
 * Only the planes and the box that a mapping reads are kept, as [plane][sample][row][column] in
 * native order. Rows of a plane are complete up to a mark, which moves under a lock: what is
 * below it is never written again. */
#ifndef TGI_DECODED_H
#define TGI_DECODED_H

#include "engine/plan/mapping.h"
#include "io/image.h"

/* Disk (or memory filesystem) that the pixels of a mapping take. */
tg_status tgi_decoded_file_bytes(const tgi_mapping *m, const tgi_image_info *info,
                                 uint64_t *bytes, tgi_err *err);
/* Memory that such a source takes beside the one it stands in front of. */
size_t tgi_decoded_bytes(const tgi_mapping *m, const tgi_image_info *info, int threads);
/* `inner`, `m` and `folder` are borrowed and outlive it; `threads` as inner was opened for.
 * Returned; close with tgi_source_close. As tgi_scratch_create. */
tg_status tgi_decoded_open(tgi_source *inner, int threads, const tgi_mapping *m,
                           const char *folder, tgi_source **out, tgi_err *err);

#endif
