/* follow.h - where what a mask hides was seen: each hidden pixel of a frame is followed along the motion
 * from frame to frame to the next one that shows it.
 *
 * A trace of frame t says of each hidden pixel from which frame its colour comes, t + n or t - n, and
 * from which place in it, in pixels with a fraction. Places are handed on with their fractions, from
 * wherever a pixel has come to and not from the nearest pixel, so a slow pan is met like a fast one;
 * and a colour is interpolated once, however far it comes. A pixel is lost where it leaves the picture
 * and where the motion back does not lead to within |f + b|^2 < 0.01 (|f|^2 + |b|^2) + 0.5 of where it
 * was. At most `reach` frames are gone, so a trace depends on the frames t to t + reach and on nothing
 * else.
 *
 * Source: the propagation of S. Zhou et al., ProPainter, ICCV 2023, which hands on colours, from pixel to pixel. */
#ifndef TGI_FOLLOW_H
#define TGI_FOLLOW_H

#include "engine/base/tensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A motion: dx and dy, in pixels of the frame, of every `step`-th place: place (i, j) lies at pixel
 * ((j + 0.5) * step - 0.5, (i + 0.5) * step - 0.5); between places it is linear, beyond them constant. */
typedef struct tgi_motion {
    const float *at; /* [2][height][width] */
    int64_t height, width;
    int step;
} tgi_motion;

/* Of one frame, at each pixel: frames gone, 0: it is not hidden, TGI_TRACE_NONE: nobody shows it; and the
 * place there, where frames is 1 to reach. */
#define TGI_TRACE_NONE 255
typedef struct tgi_trace {
    uint8_t *frames; /* [height][width] */
    float *x, *y;
} tgi_trace;

/* A frame on the way. What it hides is a bit for each pixel, bit x % 8 of byte x / 8 of a row of
 * (width + 7) / 8 bytes. `to`: motion to it from the one before on the way; `back`: the way back. */
typedef struct tgi_trace_link {
    const uint8_t *hidden; /* NULL: the film has ended */
    tgi_motion to, back;
} tgi_trace_link;

/* Rows y0 to y1 of the trace of a frame that hides `mask` [height][width] (not 0: hidden). link[n]: the frame n
 * frames away, n from 1 to `reach` (1 to 254); those behind the end are not looked at. The same bits for any rows. */
void tgi_trace_follow(int64_t height, int64_t width, int64_t y0, int64_t y1,
                      const uint8_t *mask, const tgi_trace_link *link, int reach,
                      const tgi_trace *out);

/* Do a motion and the one back, found where it leads, belong together? */
bool tgi_motion_agrees(float fx, float fy, float bx, float by);

/* A frame that colours are taken from: `samples` side by side, rows without gaps, U8 or U16; what it hides, as
 * above. */
typedef struct tgi_trace_frame {
    const void *pixels; /* NULL: not at hand */
    const uint8_t *hidden;
} tgi_trace_frame;

/* Colours of the pixels in rows y0 to y1 whose trace leads to a frame that is at hand, into `out` (as pixels):
 * from[n] lies n frames away, n from 1 to `reach`. Cubic between the pixels around the place (Catmull and Rom),
 * linear between those that are not hidden where one of them is. */
void tgi_trace_take(int64_t height, int64_t width, int64_t y0, int64_t y1, int samples,
                    tg_dtype dtype, const tgi_trace *trace, const tgi_trace_frame *from,
                    int reach, void *out);

#endif
