/* av_heard.h - what libav's own log says is wrong with a film that is read. Its demuxers go on behind what they cannot make
 * sense of, some decoders make up what they cannot read, and both tell nobody but the log. Inside the plugin alone. */
#ifndef TGI_AV_HEARD_H
#define TGI_AV_HEARD_H

#include <libavcodec/codec_id.h>
#include <stdatomic.h>

/* Of a container or a decoder of ours: its `opaque`. */
typedef struct tgi_av_heard {
    atomic_int errors;
    /* Of HEVC, H.264 and WMV2: a frame was not there that all behind it are made of, up to a key frame; one that the packet's
     * own frame is made of; the packet's own frame is made up, and with it all behind it, up to the next key frame. */
    atomic_int lacking, lacks_one, hurt;
    int keeps_text;
    char first[120]; /* then: what the first one said */
} tgi_av_heard;

/* From now on errors of our contexts are noted; of other contexts libav prints what its level says, and that is nothing as
 * long as nobody sets it. Who sets a callback of his own behind this takes it away. */
void tgi_av_hear(void);

/* 1: what a demuxer, a decoder of that codec, says is an error is damage of the film. Of others much is said that is not:
 * what they tried, what was before a film was cut. */
int tgi_av_heard_of(const char *demuxer);
int tgi_av_heard_in(enum AVCodecID codec);

#endif
