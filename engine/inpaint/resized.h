/* resized.h - a film at another size, as a source: each frame as Pillow's antialiased bicubic makes it (resize.h).
 *
 * What is removed is then removed from a film of that size, and the output has it (--output-size). */
#ifndef TGI_RESIZED_H
#define TGI_RESIZED_H

#include "io/image.h"

/* `inner` is owned on TG_OK. Pixels of uint8 or uint16; sizes of pixels are those of the new ones. One reader at a time
 * works, others wait. TG_E_UNSUPPORTED: another type. */
tg_status tgi_resized_open(tgi_source *inner, int64_t height, int64_t width, tgi_source **out,
                           tgi_err *err);

#endif
