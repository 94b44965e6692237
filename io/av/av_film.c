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
#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "engine/base/size.h"
#include "io/av/av_form.h"
#include "io/av/av_frames.h"
#include "io/av/av_input.h"
#include "io/av/av_inside.h"
#include "io/av/av_look.h"
#include "io/av/av_opaque.h"

#include <libavutil/crc.h>
#include <libavutil/display.h>
#include <libavutil/pixdesc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_PIXELS ((int64_t)1 << 28)
#define MOST_THREADS 16

typedef struct packet {
    int64_t pts, dts;
    int key;
} packet;

struct tgi_av_film {
    tgi_av_open opts;
    tgi_av_input in;
    AVCodecContext *decoder;
    AVPacket *packet;
    AVFrame *frame;
    int stream;
    int ended;         /* the decoder was told that no packet follows */
    int marred;        /* TGI_AV_MADE_UP, TGI_AV_REFUSED: and no later frame began anew */
    int64_t marred_at; /* number of a packet that was refused; 0: of none */
    int lacking;       /* the decoder made up frames that others are made of, */
    int64_t lacks_from, lacks_last; /* from packets of these numbers on */
    int bad;                        /* what of all this holds for the frame that is there */
    int gives_all; /* the decoder gives frames that need earlier ones than there are, too, and says so of each */
    int64_t sent;   /* packets, since the beginning */
    int broken;     /* the last packet's own checksum does not hold */
    int has_slices; /* of FFV1: they end in a length and a checksum */
    int speaks;     /* an error that the decoder logs is damage of the frame that it gives */
    int sent_key;   /* it is a key packet */
    int tells_no_keys; /* of the decoder's frames each is said to be a key frame; it holds none back */
    packet *packets;
    size_t n_packets, room;
    int64_t *shown; /* times of the frames, sorted; NULL: there are none */
    int64_t next; /* number of the frame that the decoder yields next; -1: the next one tells */
    int64_t have; /* number of the one in `frame`; -1: of none */
    int64_t gap;  /* the decoder yielded none of [gap, have), from the first frame on */
    int whole;    /* it was decoded from the first frame on */
    int64_t refused;
    unsigned beside;
    tgi_av_look first; /* of the first frame */

    int64_t last, last_for; /* when the last frame is shown, and how long */
    tgi_av_opaque opaque;
    enum AVPixelFormat stored; /* as the decoder gives it */
    int is_bare;               /* and its alpha, which is opaque, is left out */
    tgi_av_info info;
    tgi_av_frames frames;
};

static void close_all(tgi_av_film *f)
{
    avcodec_free_context(&f->decoder);
    tgi_av_frames_end(&f->frames);
    tgi_av_input_end(&f->in);
}

/* ---- The decoder ------------------------------------------------------------------------- */

/* Before a decoder takes memory for them. */
static tg_status check_pixels(const tgi_av_film *f, tgi_err *err)
{
    const AVCodecParameters *p = f->in.container->streams[f->stream]->codecpar;
    const int64_t pixels = (int64_t)p->width * p->height;
    if (pixels <= f->in.most_pixels)
        return TG_OK;
    return tgi_fail(err, pixels > MOST_PIXELS ? TG_E_UNSUPPORTED : TG_E_BUDGET,
                    "frames of %d x %d pixels are not decoded%s", p->width, p->height,
                    pixels > MOST_PIXELS ? "" : " in the bytes allowed");
}

/* Of codecs whose frames are slices that need no other: more threads hold no more frames, and what is damaged is told with its
 * frame. A thread for each frame would hold one more each, and tell it later. */
static void use_threads(tgi_av_film *f)
{
    static const enum AVCodecID sliced[] = {AV_CODEC_ID_FFV1, AV_CODEC_ID_PRORES,
                                            AV_CODEC_ID_DNXHD};
    f->decoder->thread_type = FF_THREAD_SLICE;
    f->decoder->thread_count = 1;
    for (size_t i = 0; i < sizeof sliced / sizeof sliced[0]; i++)
        if (sliced[i] == f->decoder->codec_id)
            f->decoder->thread_count = (int)tgi_clamp(f->opts.threads, 1, MOST_THREADS);
}

/* VP8 and VP9 have their alpha as a second film, in additions to each block of a Matroska or WebM, which libavcodec's own
 * decoders do not look at. Source: WebM's "Alpha channel in WebM video". */
static const AVCodec *find_decoder(tgi_av_film *f, const AVStream *s)
{
    const enum AVCodecID id = s->codecpar->codec_id;
    const AVDictionaryEntry *alpha = av_dict_get(s->metadata, "alpha_mode", NULL, 0);
    const AVCodec *c = NULL;
    const int has = alpha && strcmp(alpha->value, "1") == 0 &&
                    (id == AV_CODEC_ID_VP8 || id == AV_CODEC_ID_VP9);
    if (has)
        c = avcodec_find_decoder_by_name(id == AV_CODEC_ID_VP8 ? "libvpx" : "libvpx-vp9");
    f->tells_no_keys = c != NULL;
    f->info.no_alpha = has && !c;
    return c ? c : avcodec_find_decoder(id);
}

/* Decoders of Microsoft's MPEG-4 pass over runs of coefficients that leave their block unless they are asked to mind it; a frame
 * with such is then said to be damaged. (Of the others of this family it changes nothing.) Measured over flipped bits: 0.5 to 0.8 of
 * the films with other pixels are known so, and none of them without. */
static void mind_errors(AVCodecContext *c)
{
    static const enum AVCodecID lax[] = {AV_CODEC_ID_MSMPEG4V1, AV_CODEC_ID_MSMPEG4V2,
                                         AV_CODEC_ID_MSMPEG4V3, AV_CODEC_ID_WMV1,
                                         AV_CODEC_ID_WMV2};
    for (size_t i = 0; i < sizeof lax / sizeof lax[0]; i++)
        if (lax[i] == c->codec_id)
            c->err_recognition |= AV_EF_BITSTREAM | AV_EF_BUFFER;
}

static tg_status open_decoder(tgi_av_film *f, tgi_err *err)
{
    TGI_TRY(check_pixels(f, err));
    const AVCodecParameters *p = f->in.container->streams[f->stream]->codecpar;
    const AVCodec *codec = find_decoder(f, f->in.container->streams[f->stream]);
    if (!codec)
        return tgi_fail(err, TG_E_UNSUPPORTED,
                        "a film of codec %s, which libavcodec does not decode here",
                        avcodec_get_name(p->codec_id));
    f->decoder = avcodec_alloc_context3(codec);
    if (!f->decoder)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a decoder");
    int r = avcodec_parameters_to_context(f->decoder, p);
    f->decoder->pkt_timebase = f->in.container->streams[f->stream]->time_base;
    use_threads(f);
    mind_errors(f->decoder);
    f->decoder->max_pixels = f->in.most_pixels;
    tgi_av_frames_use(f->decoder, &f->frames);
    f->speaks = tgi_av_heard_in(p->codec_id);
    f->gives_all = p->codec_id == AV_CODEC_ID_H264 &&
                   !f->shown; /* else their packets say that they lack */
    if (f->gives_all)
        f->decoder->flags |= AV_CODEC_FLAG_OUTPUT_CORRUPT;
#if LIBAVCODEC_VERSION_MAJOR >= 60
    f->decoder->flags |= AV_CODEC_FLAG_COPY_OPAQUE;
#endif
    if (r >= 0)
        r = avcodec_open2(f->decoder, codec, NULL);
    return r < 0 ? tgi_av_failed(&f->in, r, "the film's decoder", err) : TG_OK;
}

/* What was decoded before is of no account. */
static void forget_damage(tgi_av_film *f)
{
    f->ended = f->marred = f->bad = f->lacking = 0;
    f->marred_at = 0;
    atomic_store(&f->frames.heard.lacking, 0);
}

/* The container from its beginning, with the decoder: frame 0 is next. */
static tg_status begin(tgi_av_film *f, tgi_err *err)
{
    close_all(f);
    f->in.bare = 1;
    TGI_TRY(tgi_av_input_begin(&f->in, err));
    f->stream = tgi_av_first_video(f->in.container);
    if (f->stream < 0)
        return tgi_fail(err, TG_E_FORMAT,
                        "no film in this file: none of its %u streams has pictures",
                        f->in.container->nb_streams);
    for (unsigned i = 0; i < f->in.container->nb_streams; i++)
        f->in.container->streams[i]->discard =
            (int)i == f->stream ? AVDISCARD_DEFAULT : AVDISCARD_ALL;
    f->next = f->gap = 0;
    f->have = -1;
    f->whole = 1;
    f->sent = 0;
    forget_damage(f);
    return open_decoder(f, err);
}

/* Slices of FFV1 end in their length and a checksum, of which the decoder tells nobody but its log; they are the packet,
 * from its end to its beginning. Source: RFC 9043, sections 4.9.1 and 4.9.3. */
#define SLICE_END 8 /* 3 length, 1 error status, 4 checksum */
static int has_broken_slice(tgi_av_film *f, const AVPacket *p)
{
    const AVCRC *table = av_crc_get_table(AV_CRC_32_IEEE);
    int64_t end = p->size;
    int broken = 0;
    while (end > SLICE_END) {
        const uint8_t *last = p->data + end - SLICE_END;
        const int64_t n = ((int64_t)last[0] << 16 | last[1] << 8 | last[2]) + SLICE_END;
        if (n > end) /* it has no such ends, or they are damaged */
            return f->has_slices;
        broken |= n == SLICE_END || av_crc(table, 0, p->data + end - n, (size_t)n) != 0;
        end -= n;
    }
    f->has_slices |= end == 0 && !broken;
    return end == 0 ? broken : f->has_slices;
}

/* The file ends in the packet, and is to be read as if it ended before. */
static int is_cut_off(const tgi_av_film *f)
{
    return f->opts.truncated && tgi_av_input_ends_in(&f->in, f->packet);
}

/* Frames beyond those that memory is planned for: a later header asks for them. */
static tg_status check_frames(const tgi_av_film *f, tgi_err *err)
{
    if (!f->frames.over)
        return TG_OK;
    char most[32];
    return tgi_fail(
        err, TG_E_UNSUPPORTED,
        "the decoder asks for more frames at once than its first header said, which "
        "memory is planned for (%s): decode it to another file first (ffmpeg -c:v "
        "ffv1)",
        tgi_size_text(f->frames.most, most, sizeof most));
}

/* Before it is sent. Packets are numbered from 1 on, and frames say of which they are; 0: nobody knows. */
static void prepare_packet(tgi_av_film *f)
{
    f->sent++;
    f->sent_key = (f->packet->flags & AV_PKT_FLAG_KEY) != 0;
#if LIBAVCODEC_VERSION_MAJOR < 60
    f->decoder->reordered_opaque = f->sent;
#else
    f->packet->opaque = (void *)(intptr_t)f->sent;
#endif
    atomic_store(&f->frames.heard.errors, 0); /* what was said before is not of its frame */
}

static int64_t packet_of(const AVFrame *p)
{
#if LIBAVCODEC_VERSION_MAJOR < 60
    return p->reordered_opaque;
#else
    return (int64_t)(intptr_t)p->opaque;
#endif
}

/* Behind each call of the decoder, which works at the packet that was sent last. */
static void note_lacking(tgi_av_film *f)
{
    if (!atomic_exchange(&f->frames.heard.lacking, 0))
        return;
    if (!f->lacking)
        f->lacks_from = f->sent;
    f->lacking = 1;
    f->lacks_last = f->sent;
}

/* The next packet of the film into the decoder. 0: there was none. */
static tg_status feed(tgi_av_film *f, int *fed, tgi_err *err)
{
    *fed = 0;
    for (;;) {
        int r = av_read_frame(f->in.container, f->packet);
        if (r < 0) {
            if (f->in.read_error || tgi_av_input_cancelled(&f->in))
                return tgi_av_failed(&f->in, r, "the film's data", err);
            f->ended = 1;
            (void)avcodec_send_packet(f->decoder, NULL);
            return TG_OK;
        }
        const int ours = f->packet->stream_index == f->stream && !is_cut_off(f);
        if (ours)
            prepare_packet(f);
        r = ours ? avcodec_send_packet(f->decoder, f->packet) : 0;
        note_lacking(f);
        if (r < 0)
            f->marred_at = f->sent;
        if (ours)
            f->broken = f->decoder->codec_id == AV_CODEC_ID_FFV1 && f->packet->size &&
                        has_broken_slice(f, f->packet);
        av_packet_unref(f->packet);
        TGI_TRY(check_frames(f, err));
        if (r == AVERROR(ENOMEM))
            return tgi_av_failed(&f->in, r, "the film's decoder", err);
        f->refused += r < 0;
        f->marred |= r < 0 ? TGI_AV_REFUSED : 0;
        *fed = 1;
        if (ours)
            return TG_OK;
    }
}

/* It was sent before packet n; 0: of none. */
static int is_before(const AVFrame *p, int64_t n)
{
    return packet_of(p) > 0 && packet_of(p) < n;
}

/* The frame is made of one that was made up. A key frame ends that, of all that is decoded behind it. */
static int is_lacking(tgi_av_film *f)
{
    const AVFrame *p = f->frame;
    if (!f->lacking || is_before(p, f->lacks_from))
        return 0;
    if (!p->key_frame)
        return 1;
    f->lacking = is_before(p, f->lacks_last);
    f->lacks_from = packet_of(p) + 1;
    return 0;
}

/* What was made up goes on in the frames that are made of it, up to one that needs no other. One that was sent before
 * the packet that was refused, and is shown now, begins nothing anew. */
static void note_damage(tgi_av_film *f)
{
    const AVFrame *p = f->frame;
    const int before = is_before(p, f->marred_at);
    const int corrupt = (p->flags & AV_FRAME_FLAG_CORRUPT) != 0;
    const int alone =
        f->tells_no_keys ? f->sent_key : p->key_frame || p->pict_type == AV_PICTURE_TYPE_I;
    if (alone && !before) {
        f->marred = 0;
        f->marred_at = 0;
    }
    const int spoke = atomic_exchange(&f->frames.heard.errors, 0) && f->speaks;
    if (f->broken || spoke || p->decode_error_flags != 0 || (corrupt && !f->gives_all))
        f->marred |= TGI_AV_MADE_UP;
    f->bad = f->marred | (corrupt || is_lacking(f) ? TGI_AV_MADE_UP : 0);
}

/* The next frame that is shown. *there 0: the film is over. */
static tg_status decode(tgi_av_film *f, int *there, tgi_err *err)
{
    *there = 0;
    for (;;) {
        const int r = avcodec_receive_frame(f->decoder, f->frame);
        int fed;
        note_lacking(f);
        TGI_TRY(check_frames(f, err));
        if (r == 0) {
            note_damage(f);
            *there = 1;
            return TG_OK;
        }
        if (r == AVERROR_EOF)
            return TG_OK;
        if (r == AVERROR(ENOMEM))
            return tgi_av_failed(&f->in, r, "the film's decoder", err);
        if (r != AVERROR(EAGAIN)) {
            f->refused++;
            f->marred |= TGI_AV_REFUSED;
            f->marred_at = f->sent;
            continue;
        }
        if (f->ended)
            return TG_OK;
        TGI_TRY(feed(f, &fed, err));
    }
}

/* ---- What the packets say ---------------------------------------------------------------- */

static tg_status note_packet(tgi_av_film *f, tgi_err *err)
{
    if (f->n_packets == f->room) {
        const size_t room = f->room ? 2 * f->room : 256;
        packet *more = tgi_realloc_n(TGI_TAG_IO, f->packets, room, sizeof *more);
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
    if (is_cut_off(f))
        return TG_OK;
    if (p->pts != AV_NOPTS_VALUE && (f->n_packets == 0 || p->pts >= f->last)) {
        f->last = p->pts;
        f->last_for = p->duration;
    }
    f->packets[f->n_packets++] = (packet){p->pts, p->dts, (p->flags & AV_PKT_FLAG_KEY) != 0};
    return TG_OK;
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
    qsort(t, f->n_packets, sizeof *t, by_time);
    for (size_t i = 1; i < f->n_packets; i++)
        good &= t[i] != t[i - 1];
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

/* Of streams in which a packet is a frame: their parsers cut them so. */
static int64_t skipped_frames(const tgi_av_film *f)
{
    const char *in = f->in.container->iformat->name;
    const int each = strcmp(in, "hevc") == 0 || strcmp(in, "mpegvideo") == 0;
    return each ? tgi_max(0, f->sent - f->refused - f->info.frames) : 0;
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
    TGI_TRY(begin(f, err));
    for (;;) {
        TGI_TRY(decode(f, &there, err));
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

/* Pixels whose alpha nobody sees have none. */
static tg_status take_form(tgi_av_film *f, tgi_err *err)
{
    f->stored = f->frame->format;
    f->is_bare =
        f->stored == AV_PIX_FMT_BGRA && tgi_av_opaque_all(&f->opaque) && shows_opaque(f->frame);
    TGI_TRY(tgi_av_form_of(f->is_bare ? AV_PIX_FMT_BGR0 : f->stored, &f->info.form, err));
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
    tgi_av_tags_of(as, &f->info.form);
    return TG_OK;
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
    close_all(f);
    tgi_av_input_close(&f->in);
    av_packet_free(&f->packet);
    av_frame_free(&f->frame);
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
    TGI_TRY(begin(f, err));
    take_header(f);
    for (unsigned i = 0; i < f->in.container->nb_streams; i++)
        f->in.container->streams[i]->discard = AVDISCARD_DEFAULT; /* all are counted */
    TGI_TRY(read_packets(f, err));
    if (atomic_load(&f->in.heard.errors) && tgi_av_heard_of(f->in.container->iformat->name))
        snprintf(f->info.damage, sizeof f->info.damage, "%s", f->in.heard.first);
    TGI_TRY(sort_times(f, err));
    take_mean(f);
    TGI_TRY(count_frames(f, err));
    TGI_TRY(begin(f, err));
    f->refused = 0;
    TGI_TRY(decode(f, &there, err));
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
    TGI_TRY(tgi_av_form_of(f->stored, &stored, err));
    f->info.decoder_bytes = tgi_av_decoder_bytes(
        f->decoder, &stored, strcmp(in, "mpegts") == 0 || strcmp(in, "h264") == 0,
        tgi_av_frames_each(&f->frames), &f->frames.most);
    f->info.index_bytes = index_bytes(f);
    return begin(f,
                 err); /* the form is that of all frames, but this one may be asked for again */
}

tg_status tgi_av_film_open(const char *path, const tgi_av_open *o, tgi_av_film **out,
                           tgi_err *err)
{
    tgi_av_film *f = tgi_calloc(TGI_TAG_IO, 1, sizeof *f);
    if (!f)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a film");
    f->opts = *o;
    f->in.fd = -1;
    f->in.cancelled = o->cancelled;
    f->in.most_pixels = o->most_pixels > 0 ? tgi_min(o->most_pixels, MOST_PIXELS) : MOST_PIXELS;
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
static const packet *key_for(const tgi_av_film *f, int64_t time, int back)
{
    for (size_t i = f->n_packets; i-- > 0;)
        if (f->packets[i].key && f->packets[i].pts <= time && back-- == 0)
            return &f->packets[i];
    return NULL;
}

/* Decoding goes on there; the next frame tells which it is. */
static tg_status jump(tgi_av_film *f, const packet *key, tgi_err *err)
{
    const int64_t to = key->dts != AV_NOPTS_VALUE ? key->dts : key->pts;
    if (av_seek_frame(f->in.container, f->stream, to, AVSEEK_FLAG_BACKWARD) < 0)
        return begin(f, err);
    avcodec_flush_buffers(f->decoder);
    forget_damage(f);
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
        TGI_TRY(decode(f, &there, err));
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
        const packet *key = key_for(f, f->shown[k], back);
        if (!key)
            break;
        TGI_TRY(jump(f, key, err));
        TGI_TRY(advance(f, k, met, err));
    }
    if (*met)
        return TG_OK;
    TGI_TRY(begin(f, err));
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
    TGI_TRY(begin(f, err));
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
        f->marred |= TGI_AV_MADE_UP;
    note_beside(f);
    *out = (tgi_av_frame){.time = f->shown ? f->shown[k] : TGI_AV_NO_TIME, .concealed = f->bad};
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
