/* y4m.h - YUV4MPEG2, the films that programs send each other through pipes: a line that says how all frames
 * lie, and for each frame a line and its planes.
 *
 *   YUV4MPEG2 W352 H288 F30000:1001 Ip A1:1 C420jpeg XCOLORRANGE=LIMITED
 *   FRAME
 *   [Y][U][V], rows without gaps, little endian where a sample has more than 8 bits
 *
 * Frames without these lines are read and written, too (raw_frames.h).
 *
 * It does what the plugin of films does (av/av.h), without libav: one codec, "rawvideo", whose packets
 * are the planes, and one container, "yuv4mpegpipe".
 *
 * Source: yuv4mpeg(5) of mjpegtools; for depths above 8 and XCOLORRANGE, which it lacks, the words that
 * ffmpeg writes. */
#ifndef TGI_Y4M_H
#define TGI_Y4M_H

#include "io/av/av.h"

#include <stddef.h>

#define TGI_Y4M_BEGINS "YUV4MPEG2 "
#define TGI_Y4M_CONTAINER "yuv4mpegpipe"
#define TGI_Y4M_FRAME "FRAME\n"
#define TGI_Y4M_ENDLESS ((int64_t)1000000000) /* frames of a film that comes through a pipe */

extern const tgi_av_ops tgi_y4m_ops;

/* Of a film of these: it comes through a pipe, "-" or another one. Its frames can be read in their order,
 * each until the next one was asked for, and nobody knows how many there are: info says
 * TGI_Y4M_ENDLESS, and the one behind the last is answered with TG_E_CANCELLED. */
int tgi_y4m_is_stream(const tgi_av_film *f);
/* Frames that came, once that happened; -1 before. */
int64_t tgi_y4m_ended(const tgi_av_film *f);

/* A film of frames without lines, a file or a pipe, that lie as `raw` says (tgi_raw_info); NULL: a YUV4MPEG2,
 * which says it itself. */
tg_status tgi_y4m_open_raw(const char *path, const tgi_av_info *raw, const tgi_av_open *o,
                           tgi_av_film **out, tgi_err *err);

/* The first line, its end included, of frames of this kind. Returns its length. */
size_t tgi_y4m_head(const tgi_av_coding *c, char *text, size_t cap);
/* What stands in front of each frame. It is "", and the first line empty, of codec TGI_RAW_CODEC. Static. */
const char *tgi_y4m_line(const tgi_av_coding *c);
/* Where such a file says that chroma lies, for what is asked: "left", ... or "", as it cannot say more. */
const char *tgi_y4m_place(const tgi_av_form *f);
/* Bytes of a frame. */
size_t tgi_y4m_frame_bytes(const tgi_av_form *f, int width, int height);

#endif
