/* av_look.h - how frames are to be shown, as they say themselves: all of a film are taken as its first one says, and what a
 * later one says otherwise is named. Inside the plugin alone. */
#ifndef TGI_AV_LOOK_H
#define TGI_AV_LOOK_H

#include <libavformat/avformat.h>
#include <stdint.h>

typedef struct tgi_av_look {
    int range, matrix, transfer, primaries, fields;
    AVRational aspect;  /* of a pixel; 1:1 where nobody says it */
    int32_t turn[4];    /* of the display matrix what turns and scales; */
    int says_turn, key; /* the frame says it; it is a key frame */
} tgi_av_look;

/* Of what the container says, too, frames are not asked: it holds for all of them. */
tgi_av_look tgi_av_look_of(const AVStream *s, const AVFrame *f);
/* TGI_AV_OTHER_COLOURS and so on. */
unsigned tgi_av_look_other(const tgi_av_look *first, const tgi_av_look *later);

#endif
