/* av_palette.h - frames whose pixels are numbers of a palette's colours, or single bits: made into grey, RGB or RGBA of 8
 * bits. An AVI that Fiji writes has its grey values so. Inside the plugin alone. */
#ifndef TGI_AV_PALETTE_H
#define TGI_AV_PALETTE_H

#include "engine/base/status.h"

#include <libavutil/frame.h>

/* 1: frames of these pixels are made into others. */
int tgi_av_palette_has(enum AVPixelFormat stored);
/* What those of this film are made into: GRAY8 where all colours of the palette are grey, RGBA where a pixel of the frame is
 * transparent, else RGB24. */
enum AVPixelFormat tgi_av_palette_as(const AVFrame *first);
/* Bytes of a row. */
size_t tgi_av_palette_pitch(enum AVPixelFormat as, int width);
/* TG_E_UNSUPPORTED: colours that `as` has not. */
tg_status tgi_av_palette_make(const AVFrame *f, enum AVPixelFormat as, uint8_t *to,
                              tgi_err *err);

#endif
