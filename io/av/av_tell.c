/* av_tell.c - what else a film has, for who asks (av.h): its tracks, words and chapters, and what it tells a display of its light. */
#include "io/av/av_form.h"
#include "io/av/av_input.h"
#include "io/av/av_inside.h"

#include <libavutil/dovi_meta.h>
#include <libavutil/mastering_display_metadata.h>
#include <stdio.h>

static double number(AVRational r)
{
    return r.den ? av_q2d(r) : 0;
}

/* ---- Tracks ------------------------------------------------------------------------------ */

static const char *kind_of(const AVStream *s)
{
    if (s->disposition & AV_DISPOSITION_ATTACHED_PIC)
        return "cover";
    const char *kind = av_get_media_type_string(s->codecpar->codec_type);
    return kind ? kind : "unknown";
}

/* Bits that have no name say nothing that anybody could read. */
static void tell_uses(const AVStream *s, char *to, size_t cap)
{
    size_t n = 0;
    for (unsigned left = (unsigned)s->disposition; left && n < cap; left &= left - 1) {
        const char *name = av_disposition_to_string((int)(left & -left));
        if (name)
            n += (size_t)snprintf(to + n, cap - n, "%s%s", n ? ", " : "", name);
    }
}

int tgi_av_channels_of(const AVCodecParameters *p)
{
#if LIBAVCODEC_VERSION_INT >= AV_VERSION_INT(59, 24, 100)
    return p->ch_layout.nb_channels;
#else
    return p->channels;
#endif
}

int tgi_av_tell_track(const AVFormatContext *c, int i, tgi_av_track *out)
{
    if (!c || i < 0 || i >= (int)c->nb_streams)
        return 0;
    const AVStream *s = c->streams[i];
    const AVCodecParameters *p = s->codecpar;
    *out = (tgi_av_track){.width = p->width, .height = p->height};
    tgi_av_name(out->kind, sizeof out->kind, kind_of(s));
    tgi_av_name(out->codec, sizeof out->codec, avcodec_get_name(p->codec_id));
    tell_uses(s, out->uses, sizeof out->uses);
    if (p->codec_type == AVMEDIA_TYPE_AUDIO) {
        out->channels = tgi_av_channels_of(p);
        out->rate = p->sample_rate;
    }
    return 1;
}

int tgi_av_tell_word(const AVFormatContext *c, int track, int i, tgi_av_word *out)
{
    if (!c || i < 0 || track >= (int)c->nb_streams)
        return 0;
    const AVDictionary *words = track < 0 ? c->metadata : c->streams[track]->metadata;
    const AVDictionaryEntry *e = NULL;
    do
        e = av_dict_get(words, "", e, AV_DICT_IGNORE_SUFFIX);
    while (e && i--);
    if (e)
        *out = (tgi_av_word){e->key, e->value};
    return e != NULL;
}

int tgi_av_tell_chapter(const AVFormatContext *c, int i, tgi_av_chapter *out)
{
    if (!c || i < 0 || i >= (int)c->nb_chapters)
        return 0;
    const AVChapter *h = c->chapters[i];
    const AVDictionaryEntry *e = av_dict_get(h->metadata, "title", NULL, 0);
    *out = (tgi_av_chapter){.begin = (double)h->start * number(h->time_base),
                            .end = (double)h->end * number(h->time_base),
                            .title = e ? e->value : NULL};
    return 1;
}

/* ---- Light ------------------------------------------------------------------------------- */

/* Of the container, else of the first frame. */
static const void *side_data(const AVStream *s, enum AVPacketSideDataType of_stream,
                             const AVFrame *f, enum AVFrameSideDataType of_frame, size_t least)
{
    size_t n = 0;
    const void *data = av_stream_get_side_data(s, of_stream, &n);
    if (data && n >= least)
        return data;
    const AVFrameSideData *d = av_frame_get_side_data(f, of_frame);
    return d && d->size >= least ? d->data : NULL;
}

/* The container names it, or frames have it in their bits. */
static void tell_dolby(const AVStream *s, const AVFrame *f, tgi_av_light *out)
{
    size_t n = 0;
    const AVDOVIDecoderConfigurationRecord *r =
        (const void *)av_stream_get_side_data(s, AV_PKT_DATA_DOVI_CONF, &n);
    out->dolby_vision = r || av_frame_get_side_data(f, AV_FRAME_DATA_DOVI_RPU_BUFFER);
    out->dolby_alone = r && n >= sizeof *r && !r->dv_bl_signal_compatibility_id;
}

void tgi_av_tell_light(const AVStream *s, const AVFrame *f, tgi_av_light *out)
{
    const AVMasteringDisplayMetadata *m =
        side_data(s, AV_PKT_DATA_MASTERING_DISPLAY_METADATA, f,
                  AV_FRAME_DATA_MASTERING_DISPLAY_METADATA, sizeof *m);
    const AVContentLightMetadata *l = side_data(s, AV_PKT_DATA_CONTENT_LIGHT_LEVEL, f,
                                                AV_FRAME_DATA_CONTENT_LIGHT_LEVEL, sizeof *l);
    *out = (tgi_av_light){
        .has_luminance = m && m->has_luminance,
        .has_primaries = m && m->has_primaries,
        .has_levels = l != NULL,
        .hdr10_plus = av_frame_get_side_data(f, AV_FRAME_DATA_DYNAMIC_HDR_PLUS) != NULL};
    tell_dolby(s, f, out);
    if (m && m->has_luminance) {
        out->least = number(m->min_luminance);
        out->most = number(m->max_luminance);
    }
    for (int k = 0; m && m->has_primaries && k < 4; k++)
        for (int a = 0; a < 2; a++)
            out->primaries[k][a] =
                number(k < 3 ? m->display_primaries[k][a] : m->white_point[a]);
    if (l) {
        out->content = l->MaxCLL;
        out->average = l->MaxFALL;
    }
}

unsigned tgi_av_tell_beside(const AVStream *s, const AVFrame *f)
{
    static const struct {
        unsigned bit;
        enum AVFrameSideDataType of_frame;
        int of_stream; /* -1: it has no word for it */
    } known[] = {{TGI_AV_HDR10_PLUS, AV_FRAME_DATA_DYNAMIC_HDR_PLUS, -1},
                 {TGI_AV_DOLBY_VISION, AV_FRAME_DATA_DOVI_RPU_BUFFER, AV_PKT_DATA_DOVI_CONF},
                 {TGI_AV_CAPTIONS, AV_FRAME_DATA_A53_CC, -1},
                 {TGI_AV_TIME_CODES, AV_FRAME_DATA_S12M_TIMECODE, -1},
                 {TGI_AV_TWO_VIEWS, AV_FRAME_DATA_STEREO3D, AV_PKT_DATA_STEREO3D},
                 {TGI_AV_SPHERE, AV_FRAME_DATA_SPHERICAL, AV_PKT_DATA_SPHERICAL},
                 {TGI_AV_ICC_PROFILE, AV_FRAME_DATA_ICC_PROFILE, AV_PKT_DATA_ICC_PROFILE}};
    unsigned all = 0;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (av_frame_get_side_data(f, known[i].of_frame) &&
            (known[i].of_stream < 0 ||
             !av_stream_get_side_data(s, (enum AVPacketSideDataType)known[i].of_stream, NULL)))
            all |= known[i].bit;
    return all;
}
