/* av_film.c - frames of a film through libavformat and libavcodec (av.h).
 *
 * When the file is opened (av_input.h) all packets pass once: how many frames there are, when each is shown
 * and which packets are key frames is known from then on. A stream whose packets have no times of
 * their own (raw H.264, old AVI) is decoded once for the count, and can only be read forwards; going
 * back begins it again.
 *
 * A frame that is not the next is found from the key frame before it: decoded until its time comes,
 * and where the first one that comes is later than that, from the key frame before that one. What
 * a demuxer answers to a seek is never believed, only the times of frames. */
#include "io/av/av_film.h"
#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "engine/base/size.h"
#include "io/av/av_form.h"
#include "io/av/av_inside.h"

#include <libavutil/display.h>
#include <libavutil/pixdesc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- What the packets say ---------------------------------------------------------------- */

/* A part of a picture is in it: units of types up to 31, behind 0, 0, 1. Source: H.265, 7.4.2.2 and annex B. */
static int has_picture(const AVPacket *p)
{
    for (int i = 0; i + 3 < p->size; i++)
        if (!p->data[i] && !p->data[i + 1] && p->data[i + 2] == 1 &&
            (p->data[i + 3] >> 1 & 63) < 32)
            return 1;
    return 0;
}

static tg_status note_packet(tgi_av_film *f, tgi_err *err)
{
    if (f->n_packets == f->room) {
        const size_t room = f->room ? 2 * f->room : 256;
        tgi_av_place *more = tgi_realloc_n(TGI_TAG_IO, f->packets, room, sizeof *more);
        if (!more)
            return tgi_fail(err, TG_E_NOMEM, "no memory for the places of %zu packets", room);
        f->packets = more;
        f->room = room;
    }
    const AVPacket *p = f->packet;
    if (p->flags & AV_PKT_FLAG_DISCARD) {
        f->info.hidden++;
        return TG_OK;
    }
    f->info.cut += tgi_av_input_ends_in(&f->in, p) != 0;
    if (tgi_av_is_cut_off(f))
        return TG_OK;
    tgi_av_bad *bad = tgi_av_sums_at(&f->sums, p->pos);
    if (bad)
        bad->has_frames = 1;
    f->info.unsound += bad != NULL;
    if (p->pts != AV_NOPTS_VALUE && (f->n_packets == 0 || p->pts >= f->last)) {
        f->last = p->pts;
        f->last_for = p->duration;
    }
    f->pictures += f->is_raw_hevc && has_picture(p);
    f->packets[f->n_packets++] =
        (tgi_av_place){p->pts, p->dts, (p->flags & AV_PKT_FLAG_KEY) != 0};
    return TG_OK;
}

#define FIRST_FRAMES 32 /* packets among which the frame is that is shown first */

/* When its first frame and its first sound come, and whether its clock starts again. */
static void note_begin(tgi_av_film *f)
{
    const AVPacket *p = f->packet;
    const AVStream *s = f->in.container->streams[p->stream_index],
                   *own = f->in.container->streams[f->stream];
    tgi_av_info *i = &f->info;
    const int64_t at = p->pts != AV_NOPTS_VALUE ? p->pts : p->dts;
    const uint64_t bit = (uint64_t)1 << (p->stream_index & 63);
    if (at < -TGI_AV_MOST_TICKS || at > TGI_AV_MOST_TICKS)
        return;
    if (s == own && p->dts != AV_NOPTS_VALUE) {
        const int64_t before = f->clock != AV_NOPTS_VALUE ? f->clock : p->dts;
        i->restarts |= tgi_av_clock_restarts(s, before, p->dts);
        f->leaps |= tgi_av_clock_leaps(s, before, p->dts);
        f->clock = p->dts;
    }
    if (i->restarts) /* a later clock says nothing of the begin */
        return;
    if (s == own && f->n_packets <= FIRST_FRAMES && (f->n_packets <= 1 || at < i->begins))
        i->begins = at;
    if (s->codecpar->codec_type != AVMEDIA_TYPE_AUDIO || f->heard_sound & bit)
        return;
    const int64_t begins = av_rescale_q(at, s->time_base, own->time_base);
    f->heard_sound |= bit;
    if (i->sound_begins == TGI_AV_NO_TIME || begins < i->sound_begins)
        i->sound_begins = begins;
}

/* When the last packet of any track is over. */
static void note_end(tgi_av_film *f)
{
    const AVPacket *p = f->packet;
    const int64_t at = p->pts != AV_NOPTS_VALUE ? p->pts : p->dts;
    if (at < -TGI_AV_MOST_TICKS || at > TGI_AV_MOST_TICKS)
        return;
    const int64_t end =
        av_rescale_q(at + tgi_clamp(p->duration, 0, TGI_AV_MOST_TICKS),
                     f->in.container->streams[p->stream_index]->time_base, AV_TIME_BASE_Q);
    f->info.seen_end = tgi_max(f->info.seen_end, end);
}

static tg_status read_packets(tgi_av_film *f, tgi_err *err)
{
    for (;;) {
        const int r = av_read_frame(f->in.container, f->packet);
        if (r < 0)
            return f->in.read_error || tgi_av_input_cancelled(&f->in)
                       ? tgi_av_failed(&f->in, r, "the film's data", err)
                       : TG_OK;
        const int ours = f->packet->stream_index == f->stream;
        const tg_status st = ours ? note_packet(f, err) : TG_OK;
        if (ours && f->decoder->codec_id == AV_CODEC_ID_GIF)
            tgi_av_opaque_gif(&f->opaque, f->packet->data, (size_t)f->packet->size);
        f->info.other_packets += !ours;
        *(ours ? &f->info.own_bytes : &f->info.other_bytes) += f->packet->size;
        note_begin(f);
        note_end(f);
        av_packet_unref(f->packet);
        TGI_TRY(st);
    }
}

static int by_time(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* Times of all frames, if packets have them, each its own. */
static tg_status sort_times(tgi_av_film *f, tgi_err *err)
{
    if (!f->n_packets)
        return tgi_fail(err, TG_E_FORMAT, "a film without a frame");
    int64_t *t = tgi_calloc(TGI_TAG_IO, f->n_packets, sizeof *t);
    if (!t)
        return tgi_fail(err, TG_E_NOMEM, "no memory for the times of %zu frames", f->n_packets);
    int good = 1;
    for (size_t i = 0; i < f->n_packets; i++) {
        t[i] = f->packets[i].pts;
        good &= t[i] >= -TGI_AV_MOST_TICKS && t[i] <= TGI_AV_MOST_TICKS;
    }
    const AVStream *s = f->in.container->streams[f->stream];
    good &= !f->info.restarts || s->pts_wrap_bits >= 63; /* their order would be another */
    qsort(t, f->n_packets, sizeof *t, by_time);
    for (size_t i = 1; i < f->n_packets; i++)
        good &= t[i] != t[i - 1];
    f->info.restarts |= f->leaps && !good; /* frames do not leap, so sound must not */
    if (good)
        f->shown = t;
    else
        tgi_free(t);
    return TG_OK;
}

/* How long the last frame is shown: as its packet says, else as long as the others. */
static int64_t last_takes(const tgi_av_film *f)
{
    const tgi_av_info *i = &f->info;
    if (f->last_for > 0)
        return f->last_for;
    if (f->n_packets > 1)
        return (f->shown[f->n_packets - 1] - f->shown[0]) / (int64_t)(f->n_packets - 1);
    return av_rescale_q(1, (AVRational){(int)i->rate.den, i->rate.num ? (int)i->rate.num : 25},
                        tgi_av_rational(i->time_base));
}

static int64_t end_of(const tgi_av_film *f)
{
    return f->shown
               ? f->shown[f->n_packets - 1] + tgi_clamp(last_takes(f), 1, TGI_AV_MOST_TICKS)
               : TGI_AV_NO_TIME;
}

/* Of raw HEVC, whose packets are pictures, or what stands between them. */
static int64_t skipped_frames(const tgi_av_film *f)
{
    return tgi_max(0, f->pictures - f->refused - f->info.frames);
}

/* Without times: by decoding all of it. */
static tg_status count_frames(tgi_av_film *f, tgi_err *err)
{
    int there = 1;
    f->info.frames = f->shown ? (int64_t)f->n_packets : 0;
    f->info.has_times = f->shown != NULL;
    f->info.end = end_of(f);
    if (f->shown)
        return TG_OK;
    TGI_TRY(tgi_av_begin(f, err));
    for (;;) {
        TGI_TRY(tgi_av_decode(f, &there, err));
        if (!there)
            break;
        f->info.frames++;
    }
    f->info.lost = f->refused;
    f->info.skipped = skipped_frames(f);
    return f->info.frames ? TG_OK : tgi_fail(err, TG_E_FORMAT, "a film without a frame");
}

/* ---- What the film says of itself -------------------------------------------------------- */

static int shows_opaque(const AVFrame *p)
{
    return tgi_av_opaque_frame(p->data[0], p->linesize[0], p->width, p->height);
}

/* Pixels whose alpha nobody sees have none; those of a palette are grey or colours. */
static tg_status take_form(tgi_av_film *f, tgi_err *err)
{
    f->stored = f->frame->format;
    f->is_bare =
        f->stored == AV_PIX_FMT_BGRA && tgi_av_opaque_all(&f->opaque) && shows_opaque(f->frame);
    f->as = f->is_bare                      ? AV_PIX_FMT_BGR0
            : tgi_av_palette_has(f->stored) ? tgi_av_palette_as(f->frame)
                                            : f->stored;
    TGI_TRY(tgi_av_form_of(f->as, &f->info.form, err));
    AVFrame *as = f->frame;
    const AVCodecParameters *p = f->in.container->streams[f->stream]->codecpar;
    if (as->color_range ==
        AVCOL_RANGE_UNSPECIFIED) /* what the decoder does not say, the container may */
        as->color_range = p->color_range;
    if (as->colorspace == AVCOL_SPC_UNSPECIFIED)
        as->colorspace = p->color_space;
    if (as->color_primaries == AVCOL_PRI_UNSPECIFIED)
        as->color_primaries = p->color_primaries;
    if (as->color_trc == AVCOL_TRC_UNSPECIFIED)
        as->color_trc = p->color_trc;
    if (as->chroma_location == AVCHROMA_LOC_UNSPECIFIED)
        as->chroma_location = p->chroma_location;
    if (tgi_av_palette_has(f->stored)) /* its colours are RGB */
        as->color_range = AVCOL_RANGE_JPEG;
    tgi_av_tags_of(as, &f->info.form);
    return TG_OK;
}

/* Frames of a palette are made in memory of the decoder's. */
static tg_status make_room(tgi_av_film *f, tgi_err *err)
{
    if (!tgi_av_palette_has(f->stored))
        return TG_OK;
    const size_t n =
        tgi_sat_mul(tgi_av_palette_pitch(f->as, f->info.width), (size_t)f->info.height);
    f->made = av_malloc(n);
    f->info.decoder_bytes = tgi_sat_add(f->info.decoder_bytes, n);
    return f->made ? TG_OK : tgi_fail(err, TG_E_NOMEM, "no memory for a frame of %zu bytes", n);
}

/* How it is turned for viewing: mirrored first, then turned clockwise. The container says it, else the first frame. */
static void take_rotation(tgi_av_film *f)
{
    const AVStream *s = f->in.container->streams[f->stream];
    size_t n = 0;
    const uint8_t *data = av_stream_get_side_data(s, AV_PKT_DATA_DISPLAYMATRIX, &n);
    const AVFrameSideData *d = av_frame_get_side_data(f->frame, AV_FRAME_DATA_DISPLAYMATRIX);
    int32_t m[9];
    if (!data && d) {
        data = d->data;
        n = d->size;
    }
    if (!data || n < sizeof m)
        return;
    memcpy(m, data, sizeof m);
    memcpy(f->info.turn, m, sizeof m);
    f->info.has_turn = 1;
    const double det = (double)m[0] * m[4] - (double)m[1] * m[3];
    f->info.flipped = det < 0;
    if (f->info.flipped)
        av_display_matrix_flip(m, 1, 0);
    const double left = av_display_rotation_get(m); /* counterclockwise */
    const int turns = isnan(left) ? 0 : (int)(((lround(-left / 90) % 4) + 4) % 4);
    /* The matrix mirrors what is turned already: the same as mirrored first, then turned the other way. */
    f->info.rotation = 90 * (f->info.flipped ? (4 - turns) % 4 : turns);
}

/* What a header says that was written through a pipe, and so never set: each frame of an AVI has the head of a chunk. */
#define CHUNK_HEAD 8
#define NEVER_SET (1 << 30)
static int64_t believed(const tgi_av_film *f, int64_t frames)
{
    return strcmp(f->info.container, "avi") == 0 && frames > f->in.size / CHUNK_HEAD ? 0
                                                                                     : frames;
}

static void take_header(tgi_av_film *f)
{
    const AVStream *s = f->in.container->streams[f->stream];
    tgi_av_info *i = &f->info;
    tgi_av_name(i->container, sizeof i->container, f->in.container->iformat->name);
    tgi_av_name(i->codec, sizeof i->codec, avcodec_get_name(s->codecpar->codec_id));
    tgi_av_name(i->profile, sizeof i->profile,
                avcodec_profile_name(s->codecpar->codec_id, s->codecpar->profile));
    i->time_base = tgi_av_ratio_of(s->time_base);
    i->rate = tgi_av_ratio_of(s->avg_frame_rate);
    i->pixel_aspect = tgi_av_ratio_of(av_guess_sample_aspect_ratio(
        f->in.container, f->in.container->streams[f->stream], NULL));
    i->interlaced = s->codecpar->field_order == AV_FIELD_UNKNOWN       ? -1
                    : s->codecpar->field_order == AV_FIELD_PROGRESSIVE ? 0
                                                                       : 1;
    if (i->interlaced == 1) /* the second letter is of what is shown first */
        i->fields =
            s->codecpar->field_order == AV_FIELD_TT || s->codecpar->field_order == AV_FIELD_BT
                ? 1
                : 2;
    const int64_t start =
        f->in.container->start_time == AV_NOPTS_VALUE ? 0 : f->in.container->start_time;
    i->declared_frames = believed(f, s->nb_frames);
    /* What other methods find is no statement; times before 0 count. */
    if (i->declared_frames == s->nb_frames &&
        f->in.container->duration_estimation_method == AVFMT_DURATION_FROM_STREAM &&
        f->in.container->duration > 0)
        i->declared_end =
            f->in.container->duration + tgi_clamp(start, -f->in.container->duration, 0);
    i->lacks = f->in.lacks;
    i->lacks_of = f->in.lacks_of;
    i->unended = f->in.unended;
    i->another = f->in.another;
    if (!i->declared_frames && s->nb_frames > 0 && s->nb_frames < NEVER_SET)
        i->unended = "its header counts more frames than its file has room for";
    i->n_streams = (int)f->in.container->nb_streams;
    i->stream = f->stream;
    i->n_chapters = (int)f->in.container->nb_chapters;
    i->header_bytes = f->in.header_bytes;
    i->attached_bytes = f->in.attached_bytes;
}

/* ---- Open and close ---------------------------------------------------------------------- */

void tgi_av_film_close(tgi_av_film **pf)
{
    tgi_av_film *f = *pf;
    if (!f)
        return;
    tgi_av_close_all(f);
    tgi_av_input_close(&f->in);
    av_packet_free(&f->packet);
    av_frame_free(&f->frame);
    av_freep(&f->made);
    tgi_free(f->packets);
    tgi_free(f->shown);
    tgi_free(f);
    *pf = NULL;
}

/* Frames a second as they are shown, where the header says another rate: a Matroska has the one of its clock. */
static void take_mean(tgi_av_film *f)
{
    tgi_av_info *i = &f->info;
    const double base = av_q2d(tgi_av_rational(i->time_base));
    i->mean = i->rate;
    if (!f->shown || f->n_packets < 2 || !(base > 0))
        return;
    const double span = (double)(end_of(f) - f->shown[0]), n = (double)f->n_packets;
    const double said =
        i->rate.num > 0 ? n * (double)i->rate.den / (double)i->rate.num / base : 0;
    if (span <= 0 || fabs(said - span) <= fmax(2, 0.01 * span))
        return;
    const AVRational mean = av_d2q(n / (span * base), 1000000);
    if (mean.num > 0 && mean.den > 0)
        i->mean = tgi_av_ratio_of(mean);
}

/* Ours, and what a demuxer keeps of a packet (libavformat's index entry, with the tables of an MP4 beside). */
#define DEMUXER_BYTES 48
static size_t index_bytes(const tgi_av_film *f)
{
    return f->room * sizeof *f->packets + (f->shown ? f->n_packets * sizeof *f->shown : 0) +
           (f->n_packets + (size_t)f->info.other_packets) * DEMUXER_BYTES;
}

static void note_beside(tgi_av_film *f)
{
    const AVStream *s = f->in.container->streams[f->stream];
    const tgi_av_look now = tgi_av_look_of(s, f->frame);
    f->beside |= tgi_av_tell_beside(s, f->frame) | tgi_av_look_other(&f->first, &now);
}

/* All there is to know, and the first frame in f->frame. */
static tg_status look(tgi_av_film *f, tgi_err *err)
{
    int there;
    TGI_TRY(tgi_av_begin(f, err));
    take_header(f);
    for (unsigned i = 0; i < f->in.container->nb_streams; i++)
        f->in.container->streams[i]->discard = AVDISCARD_DEFAULT; /* all are counted */
    f->is_raw_hevc = strcmp(f->in.container->iformat->name, "hevc") == 0;
    TGI_TRY(tgi_av_sums_look(&f->in, &f->sums, err));
    TGI_TRY(read_packets(f, err));
    tgi_av_sums_tell(&f->sums, f->info.damage, sizeof f->info.damage);
    if (atomic_load(&f->in.heard.errors) && tgi_av_heard_of(f->in.container->iformat->name))
        snprintf(f->info.damage, sizeof f->info.damage, "libavformat: %.100s",
                 f->in.heard.first);
    TGI_TRY(sort_times(f, err));
    take_mean(f);
    TGI_TRY(count_frames(f, err));
    TGI_TRY(tgi_av_begin(f, err));
    f->refused = 0;
    TGI_TRY(tgi_av_decode(f, &there, err));
    if (!there)
        return tgi_fail(err, TG_E_FORMAT,
                        "a film without a frame that can be decoded (of %lld pixels at most)",
                        (long long)f->in.most_pixels);
    f->info.width = f->frame->width;
    f->info.height = f->frame->height;
    take_rotation(f);
    const AVStream *s = f->in.container->streams[f->stream];
    tgi_av_tell_light(s, f->frame, &f->info.hdr);
    f->beside = tgi_av_tell_beside(s, f->frame);
    f->first = tgi_av_look_of(s, f->frame);
    if (f->frame->interlaced_frame) { /* a raw stream has no header that says it */
        f->info.interlaced = 1;
        f->info.fields = f->frame->top_field_first ? 1 : 2;
    }
    TGI_TRY(take_form(f, err));
    const char *in = f->info.container; /* streams that one may put behind another */
    tgi_av_form stored;
    TGI_TRY(tgi_av_form_of(tgi_av_palette_has(f->stored) ? AV_PIX_FMT_GRAY8 : f->stored,
                           &stored, err));
    f->info.decoder_bytes = tgi_av_decoder_bytes(
        f->decoder, &stored, strcmp(in, "mpegts") == 0 || strcmp(in, "h264") == 0,
        tgi_av_frames_each(&f->frames), &f->frames.most);
    f->info.decoder_bytes =
        tgi_sat_add(f->info.decoder_bytes, tgi_av_others_bytes(f->in.container, f->stream));
    TGI_TRY(make_room(f, err));
    f->info.index_bytes = index_bytes(f);
    return tgi_av_begin(
        f, err); /* the form is that of all frames, but this one may be asked for again */
}

tg_status tgi_av_film_open(const char *path, const tgi_av_open *o, tgi_av_film **out,
                           tgi_err *err)
{
    tgi_av_film *f = tgi_calloc(TGI_TAG_IO, 1, sizeof *f);
    if (!f)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a film");
    f->opts = *o;
    f->in.fd = -1;
    f->info.sound_begins = f->info.begins = TGI_AV_NO_TIME;
    f->clock = AV_NOPTS_VALUE;
    f->in.cancelled = o->cancelled;
    f->in.most_pixels =
        o->most_pixels > 0 ? tgi_min(o->most_pixels, TGI_AV_MOST_PIXELS) : TGI_AV_MOST_PIXELS;
    f->packet = av_packet_alloc();
    f->frame = av_frame_alloc();
    tg_status st = f->packet && f->frame ? tgi_av_input_file(&f->in, path, err)
                                         : tgi_fail(err, TG_E_NOMEM, "no memory for a frame");
    if (st == TG_OK)
        st = look(f, err);
    if (st != TG_OK)
        tgi_av_film_close(&f);
    else
        *out = f;
    return st;
}

/* ---- Frames ------------------------------------------------------------------------------ */

/* The number of the frame shown then; -1: of none. */
static int64_t number_at(const tgi_av_film *f, int64_t time)
{
    int64_t lo = 0, hi = f->info.frames;
    while (lo < hi) {
        const int64_t mid = lo + (hi - lo) / 2;
        if (f->shown[mid] < time)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < f->info.frames && f->shown[lo] == time ? lo : -1;
}

/* The last key packet shown at that time or before, `back` key packets earlier; NULL: there is
 * none. */
static const tgi_av_place *key_for(const tgi_av_film *f, int64_t time, int back)
{
    for (size_t i = f->n_packets; i-- > 0;)
        if (f->packets[i].key && f->packets[i].pts <= time && back-- == 0)
            return &f->packets[i];
    return NULL;
}

/* Decoding goes on there; the next frame tells which it is. */
static tg_status jump(tgi_av_film *f, const tgi_av_place *key, tgi_err *err)
{
    const int64_t to = key->dts != AV_NOPTS_VALUE ? key->dts : key->pts;
    if (av_seek_frame(f->in.container, f->stream, to, AVSEEK_FLAG_BACKWARD) < 0)
        return tgi_av_begin(f, err);
    avcodec_flush_buffers(f->decoder);
    tgi_av_forget_damage(f);
    f->next = f->have = -1;
    f->whole = 0;
    return TG_OK;
}

/* Frames are decoded until number k is in f->frame. *met 0: it did not come. */
static tg_status advance(tgi_av_film *f, int64_t k, int *met, tgi_err *err)
{
    int there;
    for (*met = 0;;) {
        if (tgi_av_input_cancelled(&f->in))
            return tgi_fail(err, TG_E_CANCELLED, "stopped while a film was decoded");
        f->have = -1;
        TGI_TRY(tgi_av_decode(f, &there, err));
        if (!there)
            return TG_OK;
        const int64_t time = f->frame->best_effort_timestamp;
        int64_t n = f->next;
        if (f->shown && time != AV_NOPTS_VALUE)
            n = number_at(f, time);
        if (n < 0)
            continue; /* of a time that no packet has: what stands before a key frame */
        f->gap = f->next;
        f->have = n;
        f->next = n + 1;
        *met = n == k;
        if (n >= k)
            return TG_OK;
    }
}

/* How far ahead decoding on is no slower than a jump. */
#define NEAR 8

static tg_status find(tgi_av_film *f, int64_t k, int *met, tgi_err *err)
{
    const int ahead = f->next >= 0 && k >= f->next && (k - f->next <= NEAR || !f->shown);
    *met = f->have == k;
    if (*met || (f->whole && f->have > k && k >= f->gap))
        return TG_OK;
    if (ahead)
        TGI_TRY(advance(f, k, met, err));
    if (ahead && f->whole) /* nor would it come by another way */
        return TG_OK;
    for (int back = 0; f->shown && !*met && back < 3; back++) {
        const tgi_av_place *key = key_for(f, f->shown[k], back);
        if (!key)
            break;
        TGI_TRY(jump(f, key, err));
        TGI_TRY(advance(f, k, met, err));
    }
    if (*met)
        return TG_OK;
    TGI_TRY(tgi_av_begin(f, err));
    return advance(f, k, met, err);
}

/* What a decoder makes up depends on the frames that it had before. */
static tg_status find_steadily(tgi_av_film *f, int64_t k, int *met, tgi_err *err)
{
    TGI_TRY(find(f, k, met, err));
    const int again =
        f->opts.steady || (*met && f->lacking); /* what lacks may be there before */
    if (!again || f->whole || (*met && !f->bad))
        return TG_OK;
    TGI_TRY(tgi_av_begin(f, err));
    return advance(f, k, met, err);
}

tg_status tgi_av_film_frame(tgi_av_film *f, int64_t k, tgi_av_frame *out, tgi_err *err)
{
    int met;
    if (k < 0 || k >= f->info.frames)
        return tgi_fail(err, TG_E_ARG, "frame %lld of %lld", (long long)k,
                        (long long)f->info.frames);
    TGI_TRY(find_steadily(f, k, &met, err));
    if (!met) {
        if (!f->whole)
            f->next = -1;
        return tgi_fail(err, TG_E_FORMAT,
                        "frame %lld of %lld cannot be decoded; --on-bad-tile keep goes on "
                        "without it, and lists it",
                        (long long)k, (long long)f->info.frames);
    }
    if (f->frame->width != f->info.width || f->frame->height != f->info.height ||
        f->frame->format != f->stored) {
        const char *is = av_get_pix_fmt_name(f->frame->format),
                   *was = av_get_pix_fmt_name(f->stored);
        return tgi_fail(err, TG_E_UNSUPPORTED,
                        "frame %lld is %d x %d %s, the first was %d x %d %s", (long long)k,
                        f->frame->width, f->frame->height, is ? is : "?", f->info.width,
                        f->info.height, was ? was : "?");
    }
    if (f->is_bare && !shows_opaque(f->frame))
        f->bad |= TGI_AV_MADE_UP;
    note_beside(f);
    *out = (tgi_av_frame){.time = f->shown ? f->shown[k] : TGI_AV_NO_TIME, .concealed = f->bad};
    if (f->made) {
        TGI_TRY(tgi_av_palette_make(f->frame, f->as, f->made, err));
        out->plane[0] = f->made;
        out->pitch[0] = (int64_t)tgi_av_palette_pitch(f->as, f->info.width);
        return TG_OK;
    }
    for (int i = 0; i < f->info.form.n_planes; i++) {
        out->plane[i] = f->frame->data[i];
        out->pitch[i] = f->frame->linesize[i];
    }
    return TG_OK;
}

const tgi_av_info *tgi_av_film_info(const tgi_av_film *f)
{
    return &f->info;
}

int tgi_av_film_track(const tgi_av_film *f, int i, tgi_av_track *out)
{
    return tgi_av_tell_track(f->in.container, i, out);
}

int tgi_av_film_word(const tgi_av_film *f, int track, int i, tgi_av_word *out)
{
    return tgi_av_tell_word(f->in.container, track, i, out);
}

int tgi_av_film_chapter(const tgi_av_film *f, int i, tgi_av_chapter *out)
{
    return tgi_av_tell_chapter(f->in.container, i, out);
}

int64_t tgi_av_film_time(const tgi_av_film *f, int64_t k)
{
    return f->shown && k >= 0 && k < f->info.frames ? f->shown[k] : TGI_AV_NO_TIME;
}

int64_t tgi_av_film_refused(const tgi_av_film *f)
{
    return f->refused;
}

unsigned tgi_av_film_beside(const tgi_av_film *f)
{
    return f->beside;
}
