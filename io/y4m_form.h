/* y4m_form.h - pixels of a YUV4MPEG2, and of frames without a header: what a file calls them, which there are,
 * where their planes lie. Inside y4m.h. */
#ifndef TGI_Y4M_FORM_H
#define TGI_Y4M_FORM_H

#include "io/av/av.h"

#include <stddef.h>

/* "420p10", "mono16", "420jpeg": what stands behind C. TG_E_UNSUPPORTED: another word. */
tg_status tgi_y4m_read_form(const char *word, tgi_av_form *out, tgi_err *err);

/* As in tgi_av_ops. */
tg_status tgi_y4m_form_for(const char *codec, const char *like, tgi_av_form *out, tgi_err *err);
void tgi_y4m_forms(const char *codec, char *to, size_t cap);

/* Planes of a frame that lies at `pixels`, one behind the other. */
void tgi_y4m_point(const tgi_av_form *f, int width, int height, uint8_t *pixels,
                   uint8_t *plane[], int64_t pitch[]);

#endif
