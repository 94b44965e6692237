/* av_frames.h - memory of the frames that a decoder holds: counted, and never more than was planned.
 *
 * The decoder asks for each frame; what was shown and is referred to no more is used again. Decoders that
 * bring memory of their own (libdav1d, libvpx) do not ask: their line of the plan is all that is known. */
#ifndef TGI_AV_FRAMES_H
#define TGI_AV_FRAMES_H

#include "io/av/av_heard.h"

#include <libavcodec/avcodec.h>

typedef struct tgi_av_frames {
    tgi_av_heard heard; /* of the decoder; first, as its `opaque` is both */
    AVBufferPool *pool[AV_NUM_DATA_POINTERS]; /* of a plane each */
    size_t pool_bytes[AV_NUM_DATA_POINTERS];
    size_t held; /* bytes */
    size_t most; /* 0: not known yet */
    int over;    /* more was asked for, and refused */
} tgi_av_frames;

/* For a context that is not open yet; *frames stays until all its frames are freed. */
void tgi_av_frames_use(AVCodecContext *c, tgi_av_frames *frames);
/* Bytes of the last frame that was asked for; 0: none was. */
size_t tgi_av_frames_each(const tgi_av_frames *frames);
/* What was heard of a decoder; NULL: it is none of ours. */
tgi_av_heard *tgi_av_frames_heard(const AVCodecContext *c);
/* Idle ones are freed. */
void tgi_av_frames_end(tgi_av_frames *frames);

#endif
