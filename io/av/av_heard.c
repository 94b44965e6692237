/* av_heard.c - see av_heard.h. */
#include "io/av/av_heard.h"

#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <stdio.h>
#include <string.h>

static tgi_av_heard *ear_of(void *context)
{
    const AVClass *of = context ? *(const AVClass *const *)context : NULL;
    if (of && of == avformat_get_class())
        return ((AVFormatContext *)context)->opaque;
    return of && of == avcodec_get_class() ? ((AVCodecContext *)context)->opaque : NULL;
}

/* From any thread. Where two speak at once for the first time, the text may be of both; it has its end. */
static void note(void *context, int level, const char *fmt, va_list args)
{
    tgi_av_heard *h = level <= AV_LOG_ERROR ? ear_of(context) : NULL;
    if (!h)
        return;
    if (!atomic_load(&h->errors) && !h->first[0]) {
        vsnprintf(h->first, sizeof h->first, fmt, args);
        h->first[strcspn(h->first, "\r\n")] = 0;
    }
    atomic_fetch_add(&h->errors, 1);
}

void tgi_av_hear(void)
{
    av_log_set_callback(note);
}

int tgi_av_heard_of(const char *demuxer)
{
    return strcmp(demuxer, "matroska,webm") == 0 || strcmp(demuxer, "ogg") == 0 ||
           strcmp(demuxer, "flv") == 0 || strcmp(demuxer, "gif") == 0;
}

/* Each frame stands alone. */
int tgi_av_heard_in(enum AVCodecID id)
{
    const AVCodecDescriptor *d = avcodec_descriptor_get(id);
    return id == AV_CODEC_ID_GIF || (d && (d->props & AV_CODEC_PROP_INTRA_ONLY));
}
