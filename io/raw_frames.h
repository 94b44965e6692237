/* raw_frames.h - frames without a header, one behind the other, as `ffmpeg -f rawvideo` and NumPy have
 * them: who gives them says beside them how they lie.
 *
 *   640x360,rgb24,25    columns, rows, pixels as ffmpeg spells them, frames a second (25 where not said)
 *
 * What such pixels are as a form of films is told here; y4m.h reads and writes the frames: they are a
 * YUV4MPEG2 without its lines. Elements of 16 bits are little endian, rows and planes have no gaps. */
#ifndef TGI_RAW_FRAMES_H
#define TGI_RAW_FRAMES_H

#include "io/av/av.h"

#include <stddef.h>

#define TGI_RAW_CODEC "raw"          /* of what is written; of what is read "rawvideo" */
#define TGI_RAW_CONTAINER "rawvideo" /* as ffmpeg spells it */
#define TGI_RAW_MOST_SIDE 65536      /* columns, rows; */
#define TGI_RAW_MOST_PIXELS ((int64_t)1 << 28) /* of a frame */
#define TGI_RAW_LIST 400                       /* bytes of tgi_raw_forms' text, and more */

/* "640x360,rgb24,25": all that is known of such frames but how many they are. TG_E_ARG: another text; the
 * message lists what pixels may be. */
tg_status tgi_raw_info(const char *text, tgi_av_info *out, tgi_err *err);

/* Pixels as ffmpeg spells them. 0: none that frames without a header have. */
int tgi_raw_form(const char *name, tgi_av_form *out);
/* Of the red, green and blue that others store, the nearest; 0: `like` is none such. */
int tgi_raw_form_near(const char *like, tgi_av_form *out);
/* All of them, for people. */
void tgi_raw_forms(char *to, size_t cap);

/* "25", "29.97", "30000/1001": frames a second. 0: it is none. */
int tgi_raw_rate(const char *text, tgi_av_ratio *out);

#endif
