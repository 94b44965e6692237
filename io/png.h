/* png.h - small 8-bit PNG files at once, for previews and plots. Row by row: picture_out.h. */
#ifndef TGI_PNG_H
#define TGI_PNG_H

#include "engine/base/status.h"

#include <stddef.h>
#include <stdint.h>

/* Write a grey (channels 1), RGB (3) or RGBA (4) picture, rows `pitch` bytes apart. Replaces
 * `path` only when the picture is complete. TG_E_ARG size or channels; TG_E_UNSUPPORTED without
 * libpng; TG_E_EXISTS, TG_E_IO, TG_E_NO_SPACE, TG_E_NOMEM. */
tg_status tgi_png_write(const char *path, const uint8_t *pixels, int64_t height, int64_t width,
                        int channels, size_t pitch, tgi_err *err);

#endif
