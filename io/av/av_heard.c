/* av_heard.c - see av_heard.h. */
#include "io/av/av_heard.h"

#include "io/av/av_frames.h"
#include "io/av/av_input.h"

#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <stdio.h>
#include <string.h>

/* Words about what is no pixel: of a camera's notes in a JPEG. */
static int is_aside(const char *fmt)
{
    return strstr(fmt, "EXIF") || strstr(fmt, "APP") || strstr(fmt, "ICC") ||
           strstr(fmt, "comment");
}

/* The callback and the classes are the process's: another's contexts are left alone. NULL: not one of ours. */
static tgi_av_heard *ear_of(void *context, const char *fmt)
{
    const AVClass *of = context ? *(const AVClass *const *)context : NULL;
    if (of && of == avformat_get_class()) /* of attached files no frame is made */
        return strstr(fmt, "attachment") ? NULL : tgi_av_input_heard(context);
    if (!of || of != avcodec_get_class() || is_aside(fmt))
        return NULL;
    return tgi_av_frames_heard(context);
}

/* The decoder of HEVC makes one up then, and tells nobody else: neither its frame nor those that are made of it say so. */
static const char lacks_frame[] = "Could not find ref with POC";

/* From any thread; of a container from the one that reads it. */
static void note(void *context, int level, const char *fmt, va_list args)
{
    tgi_av_heard *h = level <= AV_LOG_ERROR ? ear_of(context, fmt) : NULL;
    if (!h) {
        av_log_default_callback(context, level, fmt, args);
        return;
    }
    if (h->keeps_text && !h->first[0]) {
        vsnprintf(h->first, sizeof h->first, fmt, args);
        h->first[strcspn(h->first, "\r\n")] = 0;
    }
    if (strncmp(fmt, lacks_frame, sizeof lacks_frame - 1) == 0)
        atomic_fetch_add(&h->lacking, 1);
    atomic_fetch_add(&h->errors, 1);
}

void tgi_av_hear(void)
{
    av_log_set_level(AV_LOG_QUIET);
    av_log_set_callback(note);
}

int tgi_av_heard_of(const char *demuxer)
{
    return strcmp(demuxer, "matroska,webm") == 0 || strcmp(demuxer, "ogg") == 0 ||
           strcmp(demuxer, "flv") == 0 || strcmp(demuxer, "gif") == 0;
}

/* Each frame stands alone, or is made of the one before (GIF). */
int tgi_av_heard_in(enum AVCodecID id)
{
    const AVCodecDescriptor *d = avcodec_descriptor_get(id);
    return id == AV_CODEC_ID_GIF || (d && (d->props & AV_CODEC_PROP_INTRA_ONLY));
}
