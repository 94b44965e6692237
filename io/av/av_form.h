/* av_form.h - how pixels are stored (tgi_av_form), between libav's numbers and ffmpeg's spelling. Inside
 * the plugin alone. */
#ifndef TGI_AV_FORM_H
#define TGI_AV_FORM_H

#include "io/av/av.h"

#include <libavcodec/avcodec.h>

/* The components of a pixel format; its tags stay as they are. TG_E_UNSUPPORTED: palettes, bits in a
 * row (av_palette.h), floats, more than 16 bits. */
tg_status tgi_av_form_of(enum AVPixelFormat format, tgi_av_form *out, tgi_err *err);
/* Its name, or "" where it is "unknown" or "unspecified". */
void tgi_av_name(char *to, size_t cap, const char *name);
/* Range, matrix, primaries, transfer and place of chroma, both ways; "" is unspecified. */
void tgi_av_tags_of(const AVFrame *f, tgi_av_form *out);
void tgi_av_set_tags(const tgi_av_form *form, AVCodecContext *to);
tgi_av_ratio tgi_av_ratio_of(AVRational r);
AVRational tgi_av_rational(tgi_av_ratio r);

/* What a container says of the frames of an encoder (av_encode.c). */
tg_status tgi_av_encoder_parameters(const tgi_av_encoder *e, AVCodecParameters *out,
                                    tgi_err *err);

#endif
