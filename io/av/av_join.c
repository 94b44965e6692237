/* av_join.c - a file of the packets that encoders made, and of the other tracks of the film that was
 * read, through libavformat's muxers (av.h).
 *
 * Both rows of packets come in the order of decoding; the one whose time is earlier is written first, so
 * one packet of each is held. Times of decoding are our own: packet i of a film whose packets come up to
 * `delay` frames early is decoded when frame i - delay is shown, which is never after it is shown
 * itself, as no segment needs another's frames. The muxer writes neither dates nor random numbers:
 * the same packets give the same bytes. */
#include "io/av/av_join.h"
#include "engine/base/arith.h"
#include "io/av/av_form.h"

#include <errno.h>
#include <libavutil/intreadwrite.h>
#include <libavutil/mastering_display_metadata.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define WINDOW (64 << 10)

/* ---- The file ---------------------------------------------------------------------------- */

static int write_bytes(void *user, uint8_t *bytes, int n)
{
    tgi_av_joining *w = user;
    for (int done = 0; done < n;) {
        const ssize_t k = pwrite(w->j->fd, bytes + done, (size_t)(n - done), w->at);
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0) {
            w->write_error = k < 0 ? errno : ENOSPC;
            return AVERROR(w->write_error);
        }
        done += (int)k;
        w->at += k;
    }
    return n;
}

static int64_t seek_bytes(void *user, int64_t by, int whence)
{
    tgi_av_joining *w = user;
    if (whence != SEEK_SET && whence != SEEK_CUR)
        return AVERROR(ENOSYS);
    w->at = (whence == SEEK_CUR ? w->at : 0) + by;
    return w->at;
}

static tg_status failed(const tgi_av_joining *w, int code, const char *what, tgi_err *err)
{
    char why[AV_ERROR_MAX_STRING_SIZE] = "";
    if (w->write_error)
        return tgi_fail(
            err, w->write_error == ENOSPC || w->write_error == EDQUOT ? TG_E_NO_SPACE : TG_E_IO,
            "the film cannot be written: %s", strerror(w->write_error));
    av_strerror(code, why, sizeof why);
    const int any = strcmp(w->j->container, "matroska") == 0;
    return tgi_fail(err, code == AVERROR(ENOMEM) ? TG_E_NOMEM : TG_E_UNSUPPORTED,
                    "%s: libavformat's writer of %s says: %s%s", what, w->j->container, why,
                    any ? "" : "; .mkv takes most tracks");
}

static tg_status open_output(tgi_av_joining *w, tgi_err *err)
{
    uint8_t *buffer = av_malloc(WINDOW);
    w->io =
        buffer ? avio_alloc_context(buffer, WINDOW, 1, w, NULL, write_bytes, seek_bytes) : NULL;
    if (!w->io) {
        av_free(buffer);
        return tgi_fail(err, TG_E_NOMEM, "no memory for a film");
    }
    const int r = avformat_alloc_output_context2(&w->out, NULL, w->j->container, NULL);
    if (r < 0 || !w->out)
        return tgi_fail(err, TG_E_UNSUPPORTED, "libavformat writes no %s here",
                        w->j->container);
    w->out->pb = w->io;
    w->out->flags |= AVFMT_FLAG_BITEXACT;
    w->out->avoid_negative_ts = 0; /* times stay what they are */
    return TG_OK;
}

/* ---- Tracks ------------------------------------------------------------------------------ */

static AVRational ratio(double number)
{
    return av_d2q(number, 1 << 24);
}

/* An MP4 or MOV says luminance and colours of a display together, or neither. */
static tg_status say_light(const tgi_av_joining *w, tgi_err *err)
{
    const tgi_av_light *l = &w->j->light;
    AVMasteringDisplayMetadata m = {.has_luminance = l->has_luminance,
                                    .has_primaries = l->has_primaries,
                                    .min_luminance = ratio(l->least),
                                    .max_luminance = ratio(l->most)};
    for (int k = 0; k < 4; k++)
        for (int a = 0; a < 2; a++)
            *(k < 3 ? &m.display_primaries[k][a] : &m.white_point[a]) =
                ratio(l->primaries[k][a]);
    if (m.has_luminance || m.has_primaries)
        TGI_TRY(tgi_av_say_beside(w->film, AV_PKT_DATA_MASTERING_DISPLAY_METADATA, &m, sizeof m,
                                  err));
    if (w->telling && w->j->dropped && tgi_av_joins_mp4(w) &&
        m.has_luminance != m.has_primaries)
        w->j->dropped(w->j->user,
                      m.has_luminance
                          ? "luminance of the mastering display, without its colours"
                          : "colours of the mastering display, without its luminance");
    const AVContentLightMetadata c = {.MaxCLL = (unsigned)l->content,
                                      .MaxFALL = (unsigned)l->average};
    return l->has_levels
               ? tgi_av_say_beside(w->film, AV_PKT_DATA_CONTENT_LIGHT_LEVEL, &c, sizeof c, err)
               : TG_OK;
}

/* The first packet says the codec's header; the rest is what an encoder of its kind says. */
static tg_status add_film(tgi_av_joining *w, tgi_err *err)
{
    const tgi_av_join *j = w->j;
    tgi_av_packet first;
    w->film = avformat_new_stream(w->out, NULL);
    if (!w->film)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a film");
    TGI_TRY(tgi_av_encoder_open(j->coding, &w->encoder, err));
    TGI_TRY(tgi_av_encoder_parameters(w->encoder, w->film->codecpar, err));
    tgi_av_encoder_close(&w->encoder);
    TGI_TRY(j->packet(j->user, 0, &first, err));
    AVCodecParameters *p = w->film->codecpar;
    if (!p->extradata_size && first.header_bytes) {
        p->extradata = av_mallocz(first.header_bytes + AV_INPUT_BUFFER_PADDING_SIZE);
        if (!p->extradata)
            return tgi_fail(err, TG_E_NOMEM, "no memory for a film");
        memcpy(p->extradata, first.header, first.header_bytes);
        p->extradata_size = (int)first.header_bytes;
    }
    if (first.header_bytes != (size_t)p->extradata_size ||
        (p->extradata && memcmp(first.header, p->extradata, first.header_bytes) != 0))
        return tgi_fail(err, TG_E_CHANGED,
                        "what encodes the film is not what began it: give -y to start over");
    if (p->codec_id == AV_CODEC_ID_HEVC && strcmp(j->container, "matroska") != 0)
        p->codec_tag = MKTAG('h', 'v', 'c', '1'); /* what everybody plays */
    w->film->time_base = tgi_av_rational(j->time_base);
    w->film->avg_frame_rate = w->film->r_frame_rate = tgi_av_rational(j->coding->rate);
    w->film->sample_aspect_ratio = p->sample_aspect_ratio;
    w->film->disposition = AV_DISPOSITION_DEFAULT;
    if (j->has_turn)
        TGI_TRY(tgi_av_say_beside(w->film, AV_PKT_DATA_DISPLAYMATRIX, j->turn, sizeof j->turn,
                                  err));
    return say_light(w, err);
}

/* ---- Packets ----------------------------------------------------------------------------- */

/* When packet i is decoded, in ticks of the film. */
static int64_t decoded_at(const tgi_av_joining *w, int64_t i)
{
    const tgi_av_join *j = w->j;
    const int64_t k = i - j->delay, first = j->time(j->user, 0);
    if (k >= 0)
        return j->time(j->user, k);
    const int64_t tick = j->time(j->user, j->frames > 1 ? 1 : j->frames) - first;
    return first + k * (tick > 0 ? tick : 1);
}

/* The film's next packet; without data behind the last. */
static tg_status next_of_film(tgi_av_joining *w, tgi_err *err)
{
    const tgi_av_join *j = w->j;
    tgi_av_packet got;
    AVPacket *p = w->packet;
    av_packet_unref(p);
    if (w->next >= j->frames)
        return TG_OK;
    TGI_TRY(j->packet(j->user, w->next, &got, err));
    if (got.n > INT_MAX || av_new_packet(p, (int)got.n) < 0)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a frame of %zu bytes", got.n);
    memcpy(p->data, got.bytes, got.n);
    p->flags = got.key ? AV_PKT_FLAG_KEY : 0;
    p->stream_index = w->film->index;
    p->pts = j->time(j->user, got.number);
    p->dts = decoded_at(w, w->next);
    p->duration = j->time(j->user, got.number + 1) - p->pts;
    w->next++;
    if (p->dts > p->pts)
        return tgi_fail(err, TG_E_INTERNAL, "frame %lld is decoded after it is shown",
                        (long long)got.number);
    return TG_OK;
}

/* A time that is too far away for sums of some is none. */
static int64_t believed(int64_t ticks)
{
    return ticks >= -TGI_AV_MOST_TICKS && ticks <= TGI_AV_MOST_TICKS ? ticks : AV_NOPTS_VALUE;
}

static int64_t near(int64_t ticks)
{
    return tgi_clamp(ticks, -TGI_AV_MOST_TICKS, TGI_AV_MOST_TICKS);
}

/* A track of sound of which a packet came; -1: there is none. */
static int first_sound(const tgi_av_joining *w)
{
    for (int i = 0; i < w->known && i < TGI_AV_STREAMS; i++)
        if (w->in.container->streams[i]->codecpar->codec_type == AVMEDIA_TYPE_AUDIO &&
            w->last[i] != AV_NOPTS_VALUE)
            return i;
    return -1;
}

static int is_near(const AVStream *s, int64_t a, int64_t b)
{
    return !tgi_av_clock_leaps(s, a, b) && !tgi_av_clock_leaps(s, b, a);
}

/* As much as the sound is moved, and where the sound did not come to the new clock yet from where it is. */
static int64_t with_sound(const tgi_av_joining *w, const AVPacket *p)
{
    const int i = p->stream_index, sound = first_sound(w);
    const AVStream *s = w->in.container->streams[i];
    if (sound < 0 || s->pts_wrap_bits >= 63 || (s->disposition & AV_DISPOSITION_ATTACHED_PIC))
        return 0;
    const AVRational base = w->in.container->streams[sound]->time_base;
    const int64_t now = near(av_rescale_q(w->last[sound], base, s->time_base)),
                  by = near(av_rescale_q(w->again[sound], base, s->time_base));
    if (is_near(s, now, p->dts + by))
        return by;
    return is_near(s, now, p->dts + w->again[i]) ? w->again[i] : near(now - p->dts);
}

/* Where a station's or a disc's clock starts again, as in films behind each other, sound goes on where it ended, and what else
 * there is stays with it. */
static void go_on(tgi_av_joining *w, AVPacket *p)
{
    const int i = p->stream_index;
    const AVStream *s = w->in.container->streams[i];
    const int64_t before = w->last[i] != AV_NOPTS_VALUE ? w->last[i] - w->again[i] : p->dts;
    if (!w->j->restarts)
        return;
    if (s->codecpar->codec_type != AVMEDIA_TYPE_AUDIO)
        w->again[i] = with_sound(w, p);
    else if (tgi_av_clock_restarts(s, before, p->dts) || tgi_av_clock_leaps(s, before, p->dts))
        w->again[i] = near(w->last[i] + w->last_for[i] - p->dts);
    p->pts = near(p->pts + w->again[i]);
    p->dts = near(p->dts + w->again[i]);
}

/* Some demuxers leave times of decoding out. */
static void complete_times(tgi_av_joining *w, AVPacket *p)
{
    const int i = p->stream_index;
    p->pts = believed(p->pts);
    p->dts = believed(p->dts);
    p->duration = near(p->duration);
    if (p->dts == AV_NOPTS_VALUE)
        p->dts = p->pts;
    if (p->dts == AV_NOPTS_VALUE && w->last[i] != AV_NOPTS_VALUE)
        p->dts = near(w->last[i] + w->last_for[i] - w->again[i]);
    if (p->dts == AV_NOPTS_VALUE)
        p->dts = 0;
    if (p->pts == AV_NOPTS_VALUE)
        p->pts = p->dts;
    go_on(w, p);
    w->last[i] = p->dts;
    w->last_for[i] = p->duration;
}

/* Of a part of a film: sound from the first packet on that begins in it (so it may be silent for less than a
 * packet), and what is shown for a while (subtitles) from the part's begin to its end. */
static int in_part(const tgi_av_joining *w, AVPacket *p)
{
    const AVStream *s = w->in.container->streams[p->stream_index];
    if (!tgi_av_joins_part(w) || (s->disposition & AV_DISPOSITION_ATTACHED_PIC))
        return 1;
    const int64_t begin = tgi_av_ticks_of_film(w, w->j->begin, s->time_base),
                  until = tgi_av_ticks_of_film(w, w->j->until, s->time_base);
    if (p->pts >= until)
        return 0;
    if (s->codecpar->codec_type != AVMEDIA_TYPE_AUDIO && p->duration > 0) {
        const int64_t over = FFMIN(p->pts + p->duration, until);
        if (over <= begin)
            return 0;
        if (p->pts < begin)
            p->pts = p->dts = begin;
        p->duration = over - p->pts;
    }
    return p->pts >= begin;
}

static tg_status next_of_others(tgi_av_joining *w, tgi_err *err)
{
    w->has_other = 0;
    while (w->in.container) {
        av_packet_unref(w->other);
        const int r = av_read_frame(w->in.container, w->other);
        if (r < 0)
            return w->in.read_error || tgi_av_input_cancelled(&w->in)
                       ? tgi_av_failed(&w->in, r, "the film's other tracks", err)
                       : TG_OK;
        const int i = w->other->stream_index;
        if (i >= w->known && !w->late && w->j->dropped)
            w->j->dropped(
                w->j->user,
                "a track that begins later than the others is not seen in the header");
        w->late |= i >= w->known;
        if (i < 0 || i >= TGI_AV_STREAMS || w->to[i] < 0 ||
            tgi_av_input_ends_in(&w->in, w->other))
            continue;
        complete_times(w, w->other);
        if (!in_part(w, w->other))
            continue;
        w->has_other = 1;
        return TG_OK;
    }
    return TG_OK;
}

static tg_status write_film(tgi_av_joining *w, tgi_err *err)
{
    AVPacket *p = w->packet;
    av_packet_rescale_ts(p, tgi_av_rational(w->j->time_base), w->film->time_base);
    const int r = av_write_frame(w->out, p);
    if (r < 0) {
        char what[64];
        snprintf(what, sizeof what, "packet %lld of %zu bytes cannot be written",
                 (long long)w->next - 1, (size_t)p->size);
        return failed(w, r, what, err);
    }
    return next_of_film(w, err);
}

/* Matroska keeps apart by how much sound begins early: its demuxer takes that off the times, and its muxer
 * does not put it back. */
static void begin_early(const tgi_av_joining *w, AVPacket *p, const AVStream *to)
{
    const AVCodecParameters *c = to->codecpar;
    if (c->initial_padding <= 0 || c->sample_rate <= 0 ||
        (strcmp(w->j->container, "matroska") != 0 && strcmp(w->j->container, "webm") != 0))
        return;
    const int64_t by =
        av_rescale_q(c->initial_padding, (AVRational){1, c->sample_rate}, to->time_base);
    p->pts += by;
    p->dts += by;
}

/* A Matroska says of a packet how many of its samples are not heard at its end, an MP4 that it is so much shorter. */
static void end_early(const tgi_av_joining *w, AVPacket *p, const AVStream *to)
{
    size_t n = 0;
    const uint8_t *d = av_packet_get_side_data(p, AV_PKT_DATA_SKIP_SAMPLES, &n);
    const int rate = to->codecpar->sample_rate;
    if (!d || n < 8 || rate <= 0 || !tgi_av_joins_mp4(w))
        return;
    const int64_t by = av_rescale_q(AV_RL32(d + 4), (AVRational){1, rate}, to->time_base);
    if (by < p->duration)
        p->duration -= by;
}

/* No packet is decoded at the time of the one before. In an AVI several frames of sound have one time;
 * each begins where the other ends. */
static void space_out(tgi_av_joining *w, AVPacket *p, int i, AVStream *to)
{
    const int64_t before = w->written[i];
    if (before != AV_NOPTS_VALUE && p->dts <= before) {
        AVCodecParameters *c = to->codecpar;
        const int n = c->codec_type == AVMEDIA_TYPE_AUDIO && c->sample_rate > 0
                          ? av_get_audio_frame_duration2(c, p->size)
                          : 0;
        const int64_t takes =
            n > 0 ? av_rescale_q(n, (AVRational){1, c->sample_rate}, to->time_base) : 1;
        p->dts = before + (takes > 0 ? takes : 1);
        p->pts = p->pts > p->dts ? p->pts : p->dts;
    }
    w->written[i] = p->dts;
}

static tg_status write_other(tgi_av_joining *w, tgi_err *err)
{
    AVPacket *p = w->other;
    const int i = p->stream_index, to = w->to[i];
    const int64_t off = near(tgi_av_origin(w, w->in.container->streams[i]->time_base));
    p->pts -= off;
    p->dts -= off;
    av_packet_rescale_ts(p, w->in.container->streams[i]->time_base,
                         w->out->streams[to]->time_base);
    p->pts = near(p->pts);
    p->dts = near(p->dts);
    begin_early(w, p, w->out->streams[to]);
    end_early(w, p, w->out->streams[to]);
    space_out(w, p, i, w->out->streams[to]);
    p->stream_index = to;
    p->pos = -1;
    const int r = av_write_frame(w->out, p);
    if (r < 0) {
        char what[64];
        snprintf(what, sizeof what, "track %d cannot be copied", i);
        return failed(w, r, what, err);
    }
    return next_of_others(w, err);
}

static int film_is_next(const tgi_av_joining *w)
{
    const AVPacket *a = w->packet, *b = w->other;
    if (!a->data || !w->has_other)
        return a->data != NULL;
    const AVRational base = w->in.container->streams[b->stream_index]->time_base;
    return av_compare_ts(a->dts, tgi_av_rational(w->j->time_base),
                         b->dts - near(tgi_av_origin(w, base)), base) <= 0;
}

static tg_status write_packets(tgi_av_joining *w, tgi_err *err)
{
    TGI_TRY(next_of_film(w, err));
    TGI_TRY(next_of_others(w, err));
    while (w->packet->data || w->has_other) {
        if (w->j->cancelled && w->j->cancelled())
            return tgi_fail(err, TG_E_CANCELLED,
                            "stopped while the film was made; the same command goes on");
        if (film_is_next(w))
            TGI_TRY(write_film(w, err));
        else
            TGI_TRY(write_other(w, err));
    }
    return TG_OK;
}

/* ---- The clock of an MP4 or MOV ---------------------------------------------------------- */

/* Of its header: when tracks begin is said in its ticks, which are milliseconds if nobody asks. It takes those in which all
 * tracks' times are whole, the film's first, then sound, then others, as far as the whole film has fewer than 2^31 of them: the
 * muxer breaks longer chapters. */
static int64_t with_ticks(int64_t all, int64_t of_one, int64_t most)
{
    const int64_t more = of_one > 0 ? of_one / av_gcd(all, of_one) : 1;
    return more <= most / all ? all * more : all;
}

/* Seconds, rounded up: of the film that is written, of the one its tracks are of, of chapters. */
static int64_t longest(const tgi_av_joining *w)
{
    const tgi_av_join *j = w->j;
    int64_t most = av_rescale_q_rnd(j->time(j->user, j->frames), tgi_av_rational(j->time_base),
                                    (AVRational){1, 1}, AV_ROUND_UP);
    if (w->in.container && w->in.container->duration > 0)
        most = tgi_max(most, w->in.container->duration / AV_TIME_BASE + 1);
    for (unsigned i = 0; i < w->out->nb_chapters; i++)
        most = tgi_max(most, av_rescale_q_rnd(w->out->chapters[i]->end,
                                              w->out->chapters[i]->time_base,
                                              (AVRational){1, 1}, AV_ROUND_UP));
    return tgi_max(most, 1);
}

static int64_t movie_ticks(const tgi_av_joining *w)
{
    static const enum AVMediaType order[] = {AVMEDIA_TYPE_VIDEO, AVMEDIA_TYPE_AUDIO,
                                             AVMEDIA_TYPE_SUBTITLE, AVMEDIA_TYPE_DATA};
    const int64_t most = INT_MAX / (tgi_clamp(longest(w), 1, INT_MAX / 2) + 1);
    int64_t all = with_ticks(1000, w->film->time_base.den, most);
    for (size_t k = 0; k < sizeof order / sizeof order[0]; k++)
        for (unsigned i = 0; i < w->out->nb_streams; i++) {
            const AVStream *s = w->out->streams[i];
            if (s->codecpar->codec_type == order[k])
                all = with_ticks(all,
                                 order[k] == AVMEDIA_TYPE_AUDIO ? s->codecpar->sample_rate
                                                                : s->time_base.den,
                                 most);
        }
    return all;
}

/* ---- All of it --------------------------------------------------------------------------- */

/* An MP4 or MOV writes what it says of colours together, and of itself only where it says all of it. */
static int says_some_colours(const AVCodecParameters *p)
{
    return p->color_primaries != AVCOL_PRI_UNSPECIFIED ||
           p->color_trc != AVCOL_TRC_UNSPECIFIED || p->color_space != AVCOL_SPC_UNSPECIFIED;
}

static tg_status write_all(tgi_av_joining *w, tgi_err *err)
{
    TGI_TRY(open_output(w, err));
    TGI_TRY(add_film(w, err));
    TGI_TRY(tgi_av_join_others(w, err));
    AVDictionary *how = NULL;
    if (w->free_words)
        av_dict_set(&how, "movflags", "+use_metadata_tags", AV_DICT_APPEND);
    if (tgi_av_joins_mp4(w) && says_some_colours(w->film->codecpar))
        av_dict_set(&how, "movflags", "+write_colr", AV_DICT_APPEND);
    if (tgi_av_joins_mp4(w))
        av_dict_set_int(&how, "movie_timescale", movie_ticks(w), 0);
    int r = avformat_write_header(w->out, &how);
    av_dict_free(&how);
    if (r < 0)
        return failed(w, r, "a film of these tracks cannot be begun", err);
    TGI_TRY(write_packets(w, err));
    r = av_write_trailer(w->out);
    avio_flush(w->io);
    if (r < 0 || w->io->error < 0)
        return failed(w, r < 0 ? r : w->io->error, "the film's end", err);
    if (strcmp(w->j->container, "mov") == 0)
        w->write_error = tgi_av_mp4_languages(w->j->fd, INT64_MAX, w->out);
    return w->write_error ? failed(w, 0, "the languages of its tracks", err) : TG_OK;
}

/* What of the other film's tracks has no place here. */
static tg_status look(tgi_av_joining *w, tgi_err *err)
{
    w->telling = 1;
    TGI_TRY(open_output(w, err));
    w->film = avformat_new_stream(w->out, NULL);
    if (!w->film)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a film");
    w->film->time_base = tgi_av_rational(w->j->time_base);
    TGI_TRY(tgi_av_encoder_open(w->j->coding, &w->encoder, err));
    TGI_TRY(tgi_av_encoder_parameters(w->encoder, w->film->codecpar, err));
    TGI_TRY(say_light(w, err));
    return tgi_av_join_others(w, err);
}

static tg_status begin(const tgi_av_join *j, tg_status (*what)(tgi_av_joining *w, tgi_err *err),
                       tgi_err *err)
{
    tgi_av_joining w = {
        .j = j, .in.fd = -1, .packet = av_packet_alloc(), .other = av_packet_alloc()};
    const tg_status st =
        w.packet && w.other ? what(&w, err) : tgi_fail(err, TG_E_NOMEM, "no memory for a film");
    tgi_av_encoder_close(&w.encoder);
    tgi_av_input_close(&w.in);
    avformat_free_context(w.out);
    if (w.io)
        av_freep(&w.io->buffer);
    avio_context_free(&w.io);
    av_packet_free(&w.packet);
    av_packet_free(&w.other);
    return st;
}

tg_status tgi_av_join_film(const tgi_av_join *j, tgi_err *err)
{
    return begin(j, write_all, err);
}

tg_status tgi_av_join_look(const tgi_av_join *j, tgi_err *err)
{
    return begin(j, look, err);
}
