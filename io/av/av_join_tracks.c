/* av_join_tracks.c - what goes with a film beside its own packets: the other tracks of the film that was read, its chapters
 * and words, covers and attached files, each where the container takes it (av_join.h). */
#include "io/av/av_form.h"
#include "io/av/av_join.h"

#include <libavcodec/avcodec.h>
#include <libavutil/timecode.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

int tgi_av_joins_mp4(const tgi_av_joining *w)
{
    return strcmp(w->j->container, "mp4") == 0 || strcmp(w->j->container, "mov") == 0;
}

/* Beside the track's packets. */
tg_status tgi_av_say_beside(AVStream *s, enum AVPacketSideDataType type, const void *what,
                            size_t n, tgi_err *err)
{
    uint8_t *room = av_stream_new_side_data(s, type, n);
    if (!room)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a film");
    memcpy(room, what, n);
    return TG_OK;
}

static void leave_out(const tgi_av_joining *w, const AVStream *s, const char *why)
{
    char text[200];
    const char *kind = av_get_media_type_string(s->codecpar->codec_type);
    snprintf(text, sizeof text, "track %d (%s, %s): %s", s->index, kind ? kind : "unknown",
             avcodec_get_name(s->codecpar->codec_id), why);
    if (w->telling && w->j->dropped)
        w->j->dropped(w->j->user, text);
}

/* What a track is for ("comment"), as far as the container says it; of a subtitle a WebM says more. */
static unsigned says_uses(const tgi_av_joining *w, const AVStream *s)
{
    const unsigned words = AV_DISPOSITION_CAPTIONS | AV_DISPOSITION_DESCRIPTIONS,
                   people = AV_DISPOSITION_HEARING_IMPAIRED | AV_DISPOSITION_VISUAL_IMPAIRED,
                   both = AV_DISPOSITION_DUB | AV_DISPOSITION_COMMENT | AV_DISPOSITION_FORCED;
    const unsigned always = AV_DISPOSITION_DEFAULT | AV_DISPOSITION_ATTACHED_PIC |
                            AV_DISPOSITION_TIMED_THUMBNAILS | AV_DISPOSITION_STILL_IMAGE;
    if (strcmp(w->j->container, "matroska") == 0)
        return always | both | people | AV_DISPOSITION_ORIGINAL;
    if (strcmp(w->j->container, "mp4") == 0)
        return always | both | people | words;
    if (strcmp(w->j->container, "webm") != 0)
        return always;
    return always | AV_DISPOSITION_FORCED |
           (s->codecpar->codec_type == AVMEDIA_TYPE_SUBTITLE ? words | AV_DISPOSITION_METADATA
                                                             : 0);
}

/* An MP4 says captions and hearing impaired by one word, and descriptions and visual impaired. */
static unsigned without_twins(unsigned lost, unsigned kept)
{
    if (kept & AV_DISPOSITION_HEARING_IMPAIRED)
        lost &= ~(unsigned)AV_DISPOSITION_CAPTIONS;
    if (kept & AV_DISPOSITION_VISUAL_IMPAIRED)
        lost &= ~(unsigned)AV_DISPOSITION_DESCRIPTIONS;
    return lost;
}

/* Bytes of a text that a message has room for, of whole characters. */
static int shown(const char *text)
{
    int n = (int)strnlen(text, 41);
    for (n = n > 40 ? 40 : n; n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80;)
        n--;
    return n;
}

static void name_uses(const tgi_av_joining *w, const AVStream *s)
{
    const unsigned says = says_uses(w, s), has = (unsigned)s->disposition;
    unsigned lost = without_twins(has & ~says, has & says);
    for (unsigned bit = 1; w->telling && w->j->dropped && lost; bit <<= 1) {
        const char *name = lost & bit ? av_disposition_to_string((int)bit) : NULL;
        char text[200];
        snprintf(text, sizeof text,
                 "that track %d (%s) is marked \"%s\", which %s does not say", s->index,
                 av_get_media_type_string(s->codecpar->codec_type), name ? name : "",
                 w->j->container);
        if (name)
            w->j->dropped(w->j->user, text);
        lost &= ~bit;
    }
}

/* An MP4 or MOV has codes for languages of three letters ("deu"), and none for "pt-BR". */
static void name_language(const tgi_av_joining *w, const AVStream *s)
{
    char text[200];
    const AVDictionaryEntry *e = av_dict_get(s->metadata, "language", NULL, 0);
    if (!e || !tgi_av_joins_mp4(w) || tgi_av_mp4_has_language(e->value))
        return;
    snprintf(text, sizeof text,
             "that track %d (%s) is in the language \"%.*s\", which %s does not say", s->index,
             av_get_media_type_string(s->codecpar->codec_type), shown(e->value), e->value,
             w->j->container);
    if (w->telling && w->j->dropped)
        w->j->dropped(w->j->user, text);
}

/* A film has one clock in each container: that of its file. */
static void name_clock(const tgi_av_joining *w, const AVStream *s)
{
    char text[200];
    const AVDictionaryEntry *e = av_dict_get(s->metadata, "creation_time", NULL, 0),
                            *all = av_dict_get(w->in.container->metadata, "creation_time", NULL,
                                               0);
    if (!e || (all && strcmp(e->value, all->value) == 0))
        return;
    snprintf(text, sizeof text, "that track %d (%s) was made at %.*s", s->index,
             av_get_media_type_string(s->codecpar->codec_type), shown(e->value), e->value);
    if (w->telling && w->j->dropped)
        w->j->dropped(w->j->user, text);
}

/* What words about a track are lost in this container. */
static void name_words(const tgi_av_joining *w, const AVStream *s)
{
    name_uses(w, s);
    name_language(w, s);
    name_clock(w, s);
}

static tg_status copy_side_data(AVStream *to, const AVStream *from, tgi_err *err)
{
    for (int i = 0; i < from->nb_side_data; i++) {
        const AVPacketSideData *d = &from->side_data[i];
        TGI_TRY(tgi_av_say_beside(to, d->type, d->data, d->size, err));
    }
    return TG_OK;
}

/* A tag is kept where the container knows it, for the codec that it is. */
static unsigned tag_for(const AVOutputFormat *f, const AVCodecParameters *p)
{
    return !f->codec_tag || av_codec_get_id(f->codec_tag, p->codec_tag) == p->codec_id
               ? p->codec_tag
               : 0;
}

/* Would a file of this container begin with the film and that track? What a muxer says of a codec alone is not always so. */
static int takes(const tgi_av_joining *w, const char *container, const AVStream *track)
{
    AVFormatContext *o = NULL;
    int r = avformat_alloc_output_context2(&o, NULL, container, NULL);
    if (r >= 0 &&
        avformat_query_codec(o->oformat, track->codecpar->codec_id, FF_COMPLIANCE_NORMAL) != 1)
        r = AVERROR_INVALIDDATA;
    AVStream *a = r < 0 ? NULL : avformat_new_stream(o, NULL),
             *b = a ? avformat_new_stream(o, NULL) : NULL;
    if (b && avcodec_parameters_copy(a->codecpar, w->film->codecpar) >= 0 &&
        avcodec_parameters_copy(b->codecpar, track->codecpar) >= 0 &&
        av_dict_copy(&b->metadata, track->metadata, 0) >= 0) {
        a->time_base = w->film->time_base;
        b->time_base = track->time_base;
        b->codecpar->codec_tag = tag_for(o->oformat, track->codecpar);
        r = avio_open_dyn_buf(&o->pb);
        r = r < 0 ? r : avformat_write_header(o, NULL);
    }
    if (o && o->pb) {
        uint8_t *bytes = NULL;
        avio_close_dyn_buf(o->pb, &bytes);
        av_free(bytes);
    }
    avformat_free_context(o);
    return b && r >= 0;
}

/* Chapters and the clock of a MOV are tracks of their own there, which its muxer makes again. */
static int is_of_the_container(const tgi_av_joining *w, const AVStream *s)
{
    return s->codecpar->codec_type == AVMEDIA_TYPE_DATA &&
           (s->codecpar->codec_tag == MKTAG('t', 'm', 'c', 'd') ||
            (s->codecpar->codec_tag == MKTAG('t', 'e', 'x', 't') &&
             w->in.container->nb_chapters));
}

int tgi_av_joins_part(const tgi_av_joining *w)
{
    return w->j->begin != w->j->until;
}

/* The header of an attached file is the file: it moves, as nobody reads it again. */
static int take_parameters(AVCodecParameters *to, AVCodecParameters *from, int file)
{
    uint8_t *header = from->extradata;
    const int bytes = from->extradata_size;
    if (!file)
        return avcodec_parameters_copy(to, from);
    from->extradata = NULL;
    from->extradata_size = 0;
    const int r = avcodec_parameters_copy(to, from);
    to->extradata = header;
    to->extradata_size = bytes;
    return r;
}

/* In a Matroska a cover is an attached file; one of an MP4 has no name. 0: it is no such picture. */
static int names_cover(const AVStream *from, const char **name, const char **type)
{
    const enum AVCodecID id = from->codecpar->codec_id;
    *name = id == AV_CODEC_ID_PNG ? "cover.png" : "cover.jpg";
    *type = id == AV_CODEC_ID_PNG ? "image/png" : "image/jpeg";
    return from->attached_pic.size > 0 && (id == AV_CODEC_ID_PNG || id == AV_CODEC_ID_MJPEG);
}

static tg_status attach_cover(tgi_av_joining *w, const AVStream *from, tgi_err *err)
{
    const char *name, *type;
    if (!names_cover(from, &name, &type)) {
        leave_out(w, from, "only PNG and JPEG become covers here");
        return TG_OK;
    }
    const int n = from->attached_pic.size;
    AVStream *s = avformat_new_stream(w->out, NULL);
    uint8_t *bytes = s ? av_mallocz((size_t)n + AV_INPUT_BUFFER_PADDING_SIZE) : NULL;
    if (!bytes)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a film");
    memcpy(bytes, from->attached_pic.data, (size_t)n);
    s->codecpar->codec_type = AVMEDIA_TYPE_ATTACHMENT;
    s->codecpar->codec_id = from->codecpar->codec_id;
    s->codecpar->extradata = bytes;
    s->codecpar->extradata_size = n;
    const int kept = av_dict_copy(&s->metadata, from->metadata, 0) >= 0 &&
                     av_dict_set(&s->metadata, "filename", name, AV_DICT_DONT_OVERWRITE) >= 0 &&
                     av_dict_set(&s->metadata, "mimetype", type, AV_DICT_DONT_OVERWRITE) >= 0;
    return kept ? TG_OK : tgi_fail(err, TG_E_NOMEM, "no memory for a film");
}

/* What mkvmerge counted of a track, under names such as "BPS" and "BPS-eng": of packets that are others now it is not true. */
static void drop_counts(AVDictionary **words)
{
    static const char *const counts[] = {"BPS", "DURATION", "NUMBER_OF_FRAMES",
                                         "NUMBER_OF_BYTES", "_STATISTICS_"};
    const AVDictionaryEntry *e = NULL;
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        while ((e = av_dict_get(*words, counts[i], NULL, AV_DICT_IGNORE_SUFFIX)) != NULL)
            if (av_dict_set(words, e->key, NULL, 0) < 0)
                return;
}

/* The container does not take a track: does another one? */
static void leave_to_another(tgi_av_joining *w, AVStream *from, int cover)
{
    static const char *const others[][2] = {
        {"matroska", ".mkv"}, {"mp4", ".mp4"}, {"mov", ".mov"}};
    const char *other = from->codecpar->codec_type == AVMEDIA_TYPE_ATTACHMENT ? ".mkv" : NULL;
    char why[120];
    for (size_t i = 0; !cover && !other && i < sizeof others / sizeof others[0]; i++)
        if (strcmp(others[i][0], w->j->container) != 0 && takes(w, others[i][0], from))
            other = others[i][1];
    if (other)
        snprintf(why, sizeof why, "%s does not hold it, a %s does", w->j->container, other);
    else
        snprintf(why, sizeof why, "%s does not hold it%s", w->j->container,
                 cover ? " as a cover, .mp4 and .mkv do" : "");
    leave_out(w, from, why);
}

static tg_status copy_track(tgi_av_joining *w, AVStream *from, int *index, tgi_err *err)
{
    const AVOutputFormat *f = w->out->oformat;
    const int cover = (from->disposition & AV_DISPOSITION_ATTACHED_PIC) != 0;
    *index = -1;
    if (is_of_the_container(w, from)) /* its muxer makes it of the chapters, again */
        return TG_OK;
    if (tgi_av_joins_part(w) && from->codecpar->codec_type == AVMEDIA_TYPE_VIDEO && !cover) {
        leave_out(w, from, "a part of it would begin amid frames that need others");
        return TG_OK;
    }
    if (cover && strcmp(f->name, "matroska") == 0)
        return attach_cover(w, from, err);
    const int file = from->codecpar->codec_type == AVMEDIA_TYPE_ATTACHMENT &&
                     strcmp(f->name, "matroska") == 0; /* of any kind: a font */
    const int held = file || takes(w, w->j->container, from);
    if (!held || (cover && strcmp(f->name, "mp4") != 0)) {
        leave_to_another(w, from, cover && held);
        return TG_OK;
    }
    AVStream *s = avformat_new_stream(w->out, NULL);
    if (!s || take_parameters(s->codecpar, from->codecpar, file) < 0 ||
        av_dict_copy(&s->metadata, from->metadata, 0) < 0)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a film");
    if (tgi_av_joins_part(w))
        drop_counts(&s->metadata);
    s->codecpar->codec_tag = tag_for(f, from->codecpar);
    s->time_base = from->time_base;
    s->avg_frame_rate = from->avg_frame_rate;
    s->sample_aspect_ratio = from->sample_aspect_ratio;
    s->disposition = from->disposition;
    *index = s->index;
    name_words(w, from);
    return copy_side_data(s, from, err);
}

/* Ticks of the film, of a track whose ticks are `base`. */
int64_t tgi_av_ticks_of_film(const tgi_av_joining *w, int64_t ticks, AVRational base)
{
    if (ticks == INT64_MAX) /* to the end */
        return ticks;
    return av_rescale_q(ticks, tgi_av_rational(w->j->origin_base), base);
}

int64_t tgi_av_origin(const tgi_av_joining *w, AVRational base)
{
    return av_rescale_q(w->j->origin, tgi_av_rational(w->j->origin_base), base);
}

/* In the part's own time, and within it. 0: it is not in the part. */
static int chapter_time(const tgi_av_joining *w, AVChapter *c)
{
    const int64_t begin = tgi_av_ticks_of_film(w, w->j->begin, c->time_base),
                  until = tgi_av_ticks_of_film(w, w->j->until, c->time_base),
                  origin = tgi_av_origin(w, c->time_base);
    if (tgi_av_joins_part(w)) {
        if (c->end <= begin || c->start >= until)
            return 0;
        c->start = FFMAX(c->start, begin);
        c->end = FFMIN(c->end, until);
    }
    c->start -= origin;
    c->end -= origin;
    return 1;
}

static tg_status copy_chapters(tgi_av_joining *w, tgi_err *err)
{
    const AVFormatContext *from = w->in.container;
    for (unsigned i = 0; i < from->nb_chapters; i++) {
        AVChapter at = *from->chapters[i];
        if (!chapter_time(w, &at))
            continue;
        AVChapter *c = av_mallocz(sizeof *c);
        const int r =
            c ? av_dynarray_add_nofree(&w->out->chapters, (int *)&w->out->nb_chapters, c)
              : AVERROR(ENOMEM);
        if (r < 0)
            av_free(c);
        if (r < 0 || av_dict_copy(&c->metadata, from->chapters[i]->metadata, 0) < 0)
            return tgi_fail(err, TG_E_NOMEM, "no memory for a film");
        c->id = at.id;
        c->time_base = at.time_base;
        c->start = at.start;
        c->end = at.end;
    }
    return TG_OK;
}

/* What a MOV, and what an MP4 has codes for, so that libavformat reads them again; "creation_time" is its clock. */
static int has_code(const tgi_av_joining *w, const char *key)
{
    static const char *const known[] = {
        "title",        "artist",        "album",           "date",
        "comment",      "genre",         "copyright",       "location",
        "timecode",     "creation_time", /* both; an MP4 alone: */
        "album_artist", "author",        "composer",        "grouping",
        "lyrics",       "description",   "synopsis",        "show",
        "episode_id",   "network",       "keywords",        "track",
        "disc",         "compilation",   "media_type",      "hd_video",
        "episode_sort", "season_number", "gapless_playback"};
    const size_t of_both = 10, n = sizeof known / sizeof known[0];
    const int mov = strcmp(w->j->container, "mov") == 0;
    for (size_t i = 0; i < (mov ? of_both : n); i++)
        if (strcasecmp(known[i], key) == 0) /* as libavformat looks for them */
            return 1;
    return mov && (strcasecmp(key, "make") == 0 || strcasecmp(key, "model") == 0);
}

/* "location-eng" with the words of "location": an MP4 says its words in a language, too. */
static int is_again(const tgi_av_joining *w, const AVDictionaryEntry *e)
{
    char key[64];
    const char *dash = strrchr(e->key, '-');
    if (!dash || strlen(dash) != 4 || (size_t)(dash - e->key) >= sizeof key)
        return 0;
    snprintf(key, sizeof key, "%.*s", (int)(dash - e->key), e->key);
    const AVDictionaryEntry *same = av_dict_get(w->out->metadata, key, NULL, 0);
    return has_code(w, key) && same && strcmp(same->value, e->value) == 0;
}

/* An AVI says so which program wrote its file (ISFT), as others do by "encoder". */
static int is_of_the_writer(const tgi_av_joining *w, const char *key)
{
    return strcmp(w->in.container->iformat->name, "avi") == 0 &&
           strcasecmp(key, "software") == 0;
}

/* It would be lost. */
static int has_no_code(const tgi_av_joining *w, const AVDictionaryEntry *e)
{
    return !has_code(w, e->key) && !is_again(w, e) && !is_of_the_writer(w, e->key);
}

/* A phone's camera says where it was, and what it is, by names such as com.apple.quicktime.make: then all words
 * are said by their names, as in a MOV where one has no code. Others than these have no place in an MP4. */
static void choose_words(tgi_av_joining *w)
{
    char text[400] = "";
    const char *more = "";
    size_t n = 0;
    const AVDictionaryEntry *e = NULL;
    const int mov = strcmp(w->j->container, "mov") == 0;
    if (!tgi_av_joins_mp4(w))
        return;
    while ((e = av_dict_get(w->out->metadata, "", e, AV_DICT_IGNORE_SUFFIX)) != NULL)
        w->free_words |= strncmp(e->key, "com.", 4) == 0 || (mov && has_no_code(w, e));
    while (!w->free_words &&
           (e = av_dict_get(w->out->metadata, "", e, AV_DICT_IGNORE_SUFFIX)) != NULL)
        if (has_no_code(w, e) && n + 50 < sizeof text)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%.*s", n ? ", " : "",
                                  shown(e->key), e->key);
        else if (has_no_code(w, e))
            more = ", ...";
    if (n && w->telling && w->j->dropped) {
        char what[480];
        snprintf(what, sizeof what, "%s has no place for these words about the film: %s%s",
                 w->j->container, text, more);
        w->j->dropped(w->j->user, what);
    }
}

static void drop_clock(const tgi_av_joining *w, AVDictionary **words, const char *why)
{
    char text[200];
    const AVDictionaryEntry *e = av_dict_get(*words, "timecode", NULL, 0);
    snprintf(text, sizeof text, "the time code (%.*s), %s", shown(e->value), e->value, why);
    if (w->telling && w->j->dropped)
        w->j->dropped(w->j->user, text);
    av_dict_set(words, "timecode", NULL, 0);
}

/* The time code of a part is that of its first frame. An MP4 or MOV counts it in frames, and not all that is written like one
 * is. */
static tg_status shift_clock(const tgi_av_joining *w, AVDictionary **words, tgi_err *err)
{
    const AVDictionaryEntry *e = av_dict_get(*words, "timecode", NULL, 0);
    char text[AV_TIMECODE_STR_SIZE] = "";
    AVTimecode clock;
    if (e && w->j->words_alone)
        drop_clock(w, words, "which counts the frames of the film that was read");
    if (!e || w->j->words_alone || (!w->j->skipped && !tgi_av_joins_mp4(w)))
        return TG_OK;
    const int counts = av_timecode_init_from_string(&clock, tgi_av_rational(w->j->coding->rate),
                                                    e->value, NULL) >= 0;
    if (counts)
        av_timecode_make_string(&clock, text, 0);
    if (!w->j->skipped && strcmp(text, e->value) != 0)
        drop_clock(w, words, "which this film cannot count");
    if (!w->j->skipped)
        return TG_OK;
    if (!counts || w->j->skipped > INT_MAX - clock.start) {
        drop_clock(w, words, "which cannot be counted on to this part");
        return TG_OK;
    }
    clock.flags |= AV_TIMECODE_FLAG_24HOURSMAX;
    av_timecode_make_string(&clock, text, (int)w->j->skipped);
    return av_dict_set(words, "timecode", text, 0) < 0
               ? tgi_fail(err, TG_E_NOMEM, "no memory for a film")
               : TG_OK;
}

/* Words about the film, but not those about its file. */
static tg_status copy_words(tgi_av_joining *w, tgi_err *err)
{
    static const char *const of_the_file[] = {"major_brand", "minor_version",
                                              "compatible_brands", "encoder"};
    if (av_dict_copy(&w->out->metadata, w->in.container->metadata, 0) < 0)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a film");
    for (size_t i = 0; i < sizeof of_the_file / sizeof of_the_file[0]; i++)
        av_dict_set(&w->out->metadata, of_the_file[i], NULL, 0);
    choose_words(w);
    return shift_clock(w, &w->out->metadata, err);
}

/* Beside the film's own packets. A Matroska says by a word that frames are two views. */
static void name_side_data(const tgi_av_joining *w, const AVStream *from)
{
    static const struct {
        enum AVPacketSideDataType type;
        const char *what;
    } named[] = {{AV_PKT_DATA_STEREO3D, "that frames are two views (stereo)"},
                 {AV_PKT_DATA_SPHERICAL, "that frames are of a sphere (360 degrees)"},
                 {AV_PKT_DATA_ICC_PROFILE, "the ICC profile of its colours"}};
    const int has_word =
        !tgi_av_joins_mp4(w) && av_dict_get(from->metadata, "stereo_mode", NULL, 0);
    for (size_t i = 0; w->telling && w->j->dropped && i < sizeof named / sizeof named[0]; i++)
        if (av_stream_get_side_data(from, named[i].type, NULL) &&
            !(has_word && named[i].type == AV_PKT_DATA_STEREO3D))
            w->j->dropped(w->j->user, named[i].what);
}

/* Words about the film itself. */
static tg_status copy_film(tgi_av_joining *w, const AVStream *from, tgi_err *err)
{
    if (av_dict_copy(&w->film->metadata, from->metadata, 0) < 0)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a film");
    drop_counts(&w->film->metadata);
    av_dict_set(&w->film->metadata, "alpha_mode", NULL,
                0); /* the muxer says it of what has alpha */
    if (from->disposition)
        w->film->disposition = from->disposition;
    name_side_data(w, from);
    name_words(w, from);
    return shift_clock(w, &w->film->metadata, err);
}

tg_status tgi_av_join_others(tgi_av_joining *w, tgi_err *err)
{
    if (!w->j->from)
        return TG_OK;
    TGI_TRY(tgi_av_input_file(&w->in, w->j->from, err));
    w->in.cancelled = w->j->cancelled;
    w->in.bare = w->telling || w->j->words_alone ||
                 strcmp(w->j->container, "matroska") != 0; /* others take none */
    TGI_TRY(tgi_av_input_begin(&w->in, err));
    const AVFormatContext *c = w->in.container;
    const int film = tgi_av_first_video(c);
    for (int i = 0; i < TGI_AV_STREAMS; i++) { /* some demuxers find tracks while they read */
        w->to[i] = -1;
        w->last[i] = w->written[i] = AV_NOPTS_VALUE;
    }
    w->known = (int)c->nb_streams;
    for (unsigned i = 0; i < c->nb_streams && i < TGI_AV_STREAMS; i++) {
        if ((int)i == film)
            TGI_TRY(copy_film(w, c->streams[i], err));
        else if (!w->j->words_alone)
            TGI_TRY(copy_track(w, c->streams[i], &w->to[i], err));
        c->streams[i]->discard = w->to[i] < 0 ? AVDISCARD_ALL : AVDISCARD_DEFAULT;
    }
    av_dict_set(&w->film->metadata, "encoder", NULL, 0);
    if (!w->j->words_alone)
        TGI_TRY(copy_chapters(w, err));
    return copy_words(w, err);
}
