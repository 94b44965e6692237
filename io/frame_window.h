/* frame_window.h - a stack of frames as a stack of windows: for each frame the frames around it, whose samples
 * together are the channels that a network takes, or whose planes are its depth. Beyond the first frame and
 * the last one frames are repeated or mirrored; frames that a cut left out (tgi_film_cut) are there. */
#ifndef TGI_FRAME_WINDOW_H
#define TGI_FRAME_WINDOW_H

#include "io/image.h"

#define TGI_FRAME_WINDOW_MOST 64

typedef enum tgi_window_edge { TGI_WINDOW_REPEAT, TGI_WINDOW_MIRROR } tgi_window_edge;

typedef struct tgi_frame_window {
    int frames; /* the frame itself is number (frames - 1) / 2 of them, from 0 */
    tgi_window_edge edge;
    int volume; /* 1: the frames are slices of a volume, axis Z; 0: their channels are channels, axis C */
    int64_t channels; /* of a frame that are taken: all, or all but alpha */
} tgi_frame_window;

/* `inner` is owned on TG_OK: its windows are closed with tgi_source_close. Frames are its axis T, or the only
 * axis of planes with more than one entry beside C. TG_E_ARG: it has none such, or other channels. */
tg_status tgi_frame_window_open(tgi_source *inner, const tgi_frame_window *how,
                                tgi_source **out, tgi_err *err);
/* The plane of that which is the middle of the window that plane k belongs to. */
int64_t tgi_frame_window_middle(const tgi_source *s, int64_t k);

#endif
