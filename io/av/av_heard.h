/* av_heard.h - what libav's own log says is wrong with a film that is read. Its demuxers go on behind what they cannot make
 * sense of, some decoders make up what they cannot read, and both tell nobody but the log. Inside the plugin alone. */
#ifndef TGI_AV_HEARD_H
#define TGI_AV_HEARD_H

#include <libavcodec/codec_id.h>
#include <stdatomic.h>

/* Of a container (AVFormatContext.opaque) or a decoder (AVCodecContext.opaque, as the first member of what it points to). */
typedef struct tgi_av_heard {
    atomic_int errors;
    char first[120]; /* what the first one said; written before `errors` is more than 0 */
} tgi_av_heard;

/* From now on errors of contexts with an `opaque` are noted there, and nothing is printed. */
void tgi_av_hear(void);

/* 1: what a demuxer, a decoder of that codec, says is an error is damage of the film. Of others much is said that is not:
 * what they tried, what was before a film was cut. */
int tgi_av_heard_of(const char *demuxer);
int tgi_av_heard_in(enum AVCodecID codec);

#endif
