/* av_heard.c - see av_heard.h. */
#include "io/av/av_heard.h"

#include "io/av/av_frames.h"
#include "io/av/av_input.h"

#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <stddef.h>
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

/* Decoders of HEVC and H.264 make up a frame that is not there, those of HEVC and WMV2 go on with numbers that cannot be, and
 * tell nobody else: neither the frame nor those that are made of it say so. Of a gap in the numbers of frames it is no error to
 * H.264. */
#define GAP "Frame num gap"
static const struct {
    const char *begins;
    size_t counts; /* what of tgi_av_heard */
} lacks[] = {{GAP, offsetof(tgi_av_heard, lacking)},
             {"Could not find ref with POC", offsetof(tgi_av_heard, lacking)},
             {"mismatching checksum of plane", offsetof(tgi_av_heard, hurt)},
             {"The cu_qp_delta", offsetof(tgi_av_heard, hurt)},
             {"ignoring overflow", offsetof(tgi_av_heard, hurt)},
             {"reference picture missing during reorder", offsetof(tgi_av_heard, lacks_one)},
             {"Missing reference picture", offsetof(tgi_av_heard, lacks_one)}};

static void note_lacking(tgi_av_heard *h, const char *fmt)
{
    for (size_t i = 0; i < sizeof lacks / sizeof lacks[0]; i++)
        if (strncmp(fmt, lacks[i].begins, strlen(lacks[i].begins)) == 0)
            atomic_fetch_add((atomic_int *)((char *)h + lacks[i].counts), 1);
}

static int is_a_gap(const char *fmt)
{
    return strncmp(fmt, GAP, sizeof GAP - 1) == 0;
}

/* From any thread; of a container from the one that reads it. */
static void note(void *context, int level, const char *fmt, va_list args)
{
    const int says = level <= AV_LOG_ERROR || is_a_gap(fmt);
    tgi_av_heard *h = says ? ear_of(context, fmt) : NULL;
    if (!h) {
        av_log_default_callback(context, level, fmt, args);
        return;
    }
    note_lacking(h, fmt);
    if (level > AV_LOG_ERROR)
        return;
    if (h->keeps_text && !h->first[0]) {
        vsnprintf(h->first, sizeof h->first, fmt, args);
        h->first[strcspn(h->first, "\r\n")] = 0;
    }
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

/* Each frame stands alone, or is made of the one before (GIF), or its decoder says no other errors. */
int tgi_av_heard_in(enum AVCodecID id)
{
    const AVCodecDescriptor *d = avcodec_descriptor_get(id);
    return id == AV_CODEC_ID_GIF || id == AV_CODEC_ID_THEORA ||
           (d && (d->props & AV_CODEC_PROP_INTRA_ONLY));
}
