/* film_yuv.h - frames of a film as Y, U and V, dense: the planes one behind the other, numbers of a byte or two, for whoever
 * converts them himself (engine/base/yuv.h). */
#ifndef TGI_FILM_YUV_H
#define TGI_FILM_YUV_H

#include "engine/base/yuv.h"
#include "io/film_pixels.h"

/* 1: frames are Y, U and V of one depth, upright and without alpha, and *out says what they mean. */
int tgi_film_yuv_of(const tgi_film_pixels *p, tgi_yuv *out);

/* The planes of a frame; and those of one that is black. They take no more bytes than its pixels. */
void tgi_film_yuv_take(const tgi_film_pixels *p, const tgi_av_frame *f, void *to);
void tgi_film_yuv_black(const tgi_film_pixels *p, void *to);

/* Rows and columns of the planes, staged. */
void tgi_film_yuv_stage(const tgi_yuv *f, const tgi_yuv_staged *what, const void *planes,
                        void *to);

/* Row y as pixels; room: tgi_film_row_room bytes. */
void tgi_film_yuv_row(const tgi_film_pixels *p, const void *planes, int64_t y, void *row,
                      void *room);

#endif
