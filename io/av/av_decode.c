/* av_decode.c - the decoder of a film: packets in, frames out, and what each of them is worth (av_film.h). */
#include "io/av/av_film.h"

#include "engine/base/arith.h"
#include "engine/base/size.h"

#include <libavutil/crc.h>
#include <string.h>

#define MOST_THREADS 16

void tgi_av_close_all(tgi_av_film *f)
{
    avcodec_free_context(&f->decoder);
    tgi_av_frames_end(&f->frames);
    tgi_av_input_end(&f->in);
}

/* ---- Open -------------------------------------------------------------------------------- */

/* Before a decoder takes memory for them. */
static tg_status check_pixels(const tgi_av_film *f, tgi_err *err)
{
    const AVCodecParameters *p = f->in.container->streams[f->stream]->codecpar;
    const int64_t pixels = (int64_t)p->width * p->height;
    if (pixels <= f->in.most_pixels)
        return TG_OK;
    return tgi_fail(err, pixels > TGI_AV_MOST_PIXELS ? TG_E_UNSUPPORTED : TG_E_BUDGET,
                    "frames of %d x %d pixels are not decoded%s", p->width, p->height,
                    pixels > TGI_AV_MOST_PIXELS ? "" : " in the bytes allowed");
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
 * the films with other pixels are known so. */
static void mind_errors(AVCodecContext *c)
{
    static const enum AVCodecID lax[] = {AV_CODEC_ID_MSMPEG4V1, AV_CODEC_ID_MSMPEG4V2,
                                         AV_CODEC_ID_MSMPEG4V3, AV_CODEC_ID_WMV1,
                                         AV_CODEC_ID_WMV2};
    for (size_t i = 0; i < sizeof lax / sizeof lax[0]; i++)
        if (lax[i] == c->codec_id)
            c->err_recognition |= AV_EF_BITSTREAM | AV_EF_BUFFER;
    if (c->codec_id == AV_CODEC_ID_HEVC) /* of pictures, where the film has them */
        c->err_recognition |= AV_EF_CRCCHECK;
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
    f->may_lack = 0;
    if (p->codec_id == AV_CODEC_ID_H264)
        tgi_av_h264_note_header(&f->may_lack, p->extradata, (size_t)p->extradata_size);
    if (r >= 0)
        r = avcodec_open2(f->decoder, codec, NULL);
    return r < 0 ? tgi_av_failed(&f->in, r, "the film's decoder", err) : TG_OK;
}

void tgi_av_forget_damage(tgi_av_film *f)
{
    f->ended = f->marred = f->bad = f->lacking = 0;
    f->marred_at = f->since = f->hurt_at = 0;
    f->n_lacks_one = 0;
    f->twig_lacks = 0;
    atomic_store(&f->frames.heard.lacking, 0);
    atomic_store(&f->frames.heard.lacks_one, 0);
    atomic_store(&f->frames.heard.hurt, 0);
}

tg_status tgi_av_begin(tgi_av_film *f, tgi_err *err)
{
    tgi_av_close_all(f);
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
    tgi_av_forget_damage(f);
    return open_decoder(f, err);
}

/* ---- Packets ----------------------------------------------------------------------------- */

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

int tgi_av_is_cut_off(const tgi_av_film *f)
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

/* The frame of the last packet is made of one that is not there. */
static void lack_one(tgi_av_film *f)
{
    f->lacks_one[f->n_lacks_one++ % TGI_AV_HELD] = f->sent;
}

/* A picture near one that others are made of, and that lacks one itself, lacks it, too. */
static void note_kind(tgi_av_film *f)
{
    const AVCodecParameters *p = f->in.container->streams[f->stream]->codecpar;
    f->kind = p->codec_id == AV_CODEC_ID_H264
                  ? tgi_av_h264_kind_of(p->extradata, (size_t)p->extradata_size,
                                        f->packet->data, (size_t)f->packet->size)
                  : TGI_AV_STEM;
    f->twig_lacks &= f->kind != TGI_AV_STEM;
    if (f->twig_lacks)
        lack_one(f);
}

/* An H.264 may have a header in a packet (avc3, a transport stream), or beside it, and each may say another. */
static void note_headers(tgi_av_film *f)
{
    const AVCodecParameters *p = f->in.container->streams[f->stream]->codecpar;
    size_t n = 0;
    const uint8_t *beside = av_packet_get_side_data(f->packet, AV_PKT_DATA_NEW_EXTRADATA, &n);
    if (p->codec_id != AV_CODEC_ID_H264)
        return;
    if (beside)
        tgi_av_h264_note_header(&f->may_lack, beside, n);
    tgi_av_h264_note_packet(&f->may_lack, p->extradata, (size_t)p->extradata_size,
                            f->packet->data, (size_t)f->packet->size);
}

/* Before it is sent. Packets are numbered from 1 on, and frames say of which they are; 0: nobody knows. */
static void prepare_packet(tgi_av_film *f)
{
    f->sent++;
    f->since++;
    f->sent_key = (f->packet->flags & AV_PKT_FLAG_KEY) != 0;
#if LIBAVCODEC_VERSION_MAJOR < 60
    f->decoder->reordered_opaque = f->sent;
#else
    f->packet->opaque = (void *)(intptr_t)f->sent;
#endif
    note_kind(f);
    note_headers(f);
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

/* The packet's own frame is made up, or another one, and all behind it up to a key frame. */
static void lack_all(tgi_av_film *f)
{
    if (!f->lacking)
        f->lacks_from = f->sent;
    f->lacking = 1;
    f->lacks_last = f->sent;
}

/* The packet is sent next, and no decoder knows that it lies where a checksum does not hold. */
static void note_unsound(tgi_av_film *f)
{
    if (!tgi_av_sums_at(&f->sums, f->packet->pos))
        return;
    lack_one(f);
    lack_all(f);
    f->hurt_at = f->sent;
}

/* Behind each call of the decoder, which works at the packet that was sent last. Where decoding of an H.264 begins the numbers of frames have a
 * gap, and nothing lacks. */
static void note_lacking(tgi_av_film *f)
{
    int all = atomic_exchange(&f->frames.heard.lacking, 0) != 0;
    const int one = atomic_exchange(&f->frames.heard.lacks_one, 0) != 0,
              hurt = atomic_exchange(&f->frames.heard.hurt, 0) != 0;
    if (f->may_lack || (f->decoder->codec_id == AV_CODEC_ID_H264 && f->since <= 1))
        return;
    if (one && f->kind != TGI_AV_STEM)
        lack_one(f);
    f->twig_lacks |= one && f->kind == TGI_AV_TWIG;
    all |= hurt || (one && f->kind == TGI_AV_STEM);
    if (hurt)
        f->hurt_at = f->sent;
    if (all)
        lack_all(f);
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
        const int ours = f->packet->stream_index == f->stream && !tgi_av_is_cut_off(f);
        if (ours) {
            prepare_packet(f);
            note_unsound(f);
        }
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

/* ---- What its frames are worth ----------------------------------------------------------- */

/* It was sent before packet n; 0: of none. */
static int is_before(const AVFrame *p, int64_t n)
{
    return packet_of(p) > 0 && packet_of(p) < n;
}

/* The frame itself is made of one that was not there. */
static int lacks_one(const tgi_av_film *f)
{
    for (int64_t i = 0; i < TGI_AV_HELD && i < f->n_lacks_one; i++)
        if (f->lacks_one[i] == packet_of(f->frame))
            return 1;
    return 0;
}

/* The frame is made of one that was made up. A key frame ends that, of all that is decoded behind it. */
static int is_lacking(tgi_av_film *f)
{
    const AVFrame *p = f->frame;
    if (!f->lacking || is_before(p, f->lacks_from))
        return 0;
    const int key = f->tells_no_keys ? f->sent_key : p->key_frame;
    if (!key || (f->hurt_at && packet_of(p) == f->hurt_at))
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
    f->bad = f->marred | (is_lacking(f) || lacks_one(f) || corrupt ? TGI_AV_MADE_UP : 0);
}

tg_status tgi_av_decode(tgi_av_film *f, int *there, tgi_err *err)
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
