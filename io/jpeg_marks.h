/* jpeg_marks.h - what stands in front of a JPEG's pixels and is no picture: Exif's orientation
 * and the colour profile. */
#ifndef TGI_JPEG_MARKS_H
#define TGI_JPEG_MARKS_H

#include "io/image.h"
#include "io/rfile.h"

/* Read into m what is well formed; what is not is left out, since no pixel depends on it.
 * TG_E_IO, TG_E_NOMEM. `w`: a window of at least 4 KiB. */
tg_status tgi_jpeg_marks(const tgi_rfile *f, tgi_window *w, tgi_image_meta *m, tgi_err *err);

#endif
