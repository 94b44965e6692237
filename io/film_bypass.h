/* film_bypass.h - what of a film's frames passes by a network: chroma and alpha where it sees luma alone, alpha where it
 * sees all else, and, where something is removed, all that a mask does not hide.
 *
 * They are kept as they are stored, each component's numbers in rows without gaps, and become those of the frame
 * that is written: the same numbers where the frame is as large and is stored in the same way, else linear
 * between the nearest, at the places where both frames have their samples. */
#ifndef TGI_FILM_BYPASS_H
#define TGI_FILM_BYPASS_H

#include "io/film_pixels.h"

/* What does; it is the last of a pixel's components. */
typedef enum tgi_film_passing {
    TGI_FILM_PASSES_NOTHING,
    TGI_FILM_PASSES_ALPHA,
    TGI_FILM_PASSES_BUT_LUMA,
    TGI_FILM_PASSES_OUTSIDE /* all of them, where nothing is hidden */
} tgi_film_passing;

/* From frames of the film that was read to those that are written, both as stored. */
typedef struct tgi_film_bypass {
    tgi_film_pixels from, to;
    tgi_film_passing what;
    double scale[2],
        origin[2]; /* y, x: luma pixels of `from` for each of `to`; where pixel 0 begins */
    /* TGI_FILM_PASSES_OUTSIDE: pixels [height][width] as `to` stores them, 1: hidden, 0: not. A sample of chroma is hidden
     * where a pixel is that it stands for. Components that `to` stores otherwise are left as they are there.
     * A frame of `from` may be smaller than one of `to`: it lies -origin pixels inside. */
    const uint8_t *hidden;
} tgi_film_bypass;

/* 1: the frames have it, and something beside it. */
int tgi_film_bypass_is_there(const tgi_av_form *f, tgi_film_passing what);
/* The same film without it; luma alone as grey. */
tg_status tgi_film_bypass_seen(const tgi_av_info *i, tgi_film_passing what,
                               tgi_film_pixels *out, tgi_err *err);
size_t tgi_film_bypass_bytes(const tgi_film_pixels *p, tgi_film_passing what);
/* What passes by, out of the frame; into tgi_film_bypass_bytes at `kept`, 2-byte aligned. */
void tgi_film_bypass_take(const tgi_film_pixels *p, tgi_film_passing what,
                          const tgi_av_frame *f, void *kept);
/* In place of a frame that cannot be seen: no colour, nothing hidden by it. */
void tgi_film_bypass_nothing(const tgi_film_pixels *p, tgi_film_passing what, void *kept);
/* A component that the frame has not is left out; what it has, and the film that was read has not, stays. */
/* 1: frames that are written get all numbers of the one that is read, where nothing is hidden (TGI_FILM_PASSES_OUTSIDE). */
int tgi_film_bypass_keeps(const tgi_film_bypass *how);
void tgi_film_bypass_put(const tgi_film_bypass *how, const void *kept, const tgi_av_blank *to);

#endif
