/* verify_picture.h - what --picture shows: the output computed by tegula, and as others compute
 * large images: tiles with some overlap, each an image of its own. Where a network reads whole
 * images, every tile then has statistics of its own, and seams. */
#ifndef TGI_VERIFY_PICTURE_H
#define TGI_VERIFY_PICTURE_H

#include "engine/verbs/verify_values.h"

typedef struct tgi_verify_picture tgi_verify_picture;

/* *out NULL: no picture is asked for. TG_E_ARG, TG_E_EXISTS, TG_E_UNSUPPORTED: the network's
 * output is no image of its input's size. tgi_verify_picture_free. */
tg_status tgi_verify_picture_plan(tg_job *job, tgi_verify_picture **out, tgi_err *err);
void tgi_verify_picture_free(tgi_verify_picture **p);
/* All that drawing it takes; 0 for NULL. */
size_t tgi_verify_picture_bytes(const tgi_verify_picture *p);

/* Paint `other`, what was computed in tiles; then compute and paint the tiles of others, into
 * `other`, and write the file. NULL: nothing to do. */
tg_status tgi_verify_picture_tiled(tgi_verify_picture *p, const tgi_verify_values *v,
                                   tgi_err *err);
tg_status tgi_verify_picture_finish(tgi_verify_picture *p, const tgi_verify_values *v,
                                    tgi_err *err);

#endif
