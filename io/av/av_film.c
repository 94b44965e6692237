/* av_film.c - frames of a film through libavformat and libavcodec (av.h).
 *
 * The file is read through our own calls, so no protocol of libavformat's and no second file comes
 * into play. When it is opened all packets pass once: how many frames there are, when each is shown
 * and which packets are key frames is known from then on. A stream whose packets have no times of
 * their own (raw H.264, old AVI) is decoded once for the count, and can only be read forwards; going
 * back begins it again.
 *
 * A frame that is not the next is found from the key frame before it: decoded until its time comes,
 * and where the first one that comes is later than that, from the key frame before that one. What
 * a demuxer answers to a seek is never believed, only the times of frames. */
#include "io/av/av.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/display.h>
#include <libavutil/pixdesc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define WINDOW (64 << 10)
#define MOST_PIXELS ((int64_t)1 << 28)
#define MOST_STREAMS 64

/* Containers that are one file. (Playlists and lists of files would name others.) */
static const char containers[] =
    "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,gif,mpegts,mpeg,mpegvideo,ogg,flv,asf,"
    "h264,hevc,m4v,ivf,obu,av1,yuv4mpegpipe,nut,mxf,dv,apng";

typedef struct packet {
    int64_t pts, dts;
    int key;
} packet;

struct tgi_av_film {
    tgi_av_open opts;
    int fd;
    int64_t at, size; /* of the file */
    AVIOContext *io;
    AVFormatContext *container;
    AVCodecContext *decoder;
    AVPacket *packet;
    AVFrame *frame;
    int stream;
    int ended; /* the decoder was told that no packet follows */
    packet *packets;
    size_t n_packets, room;
    int64_t *shown; /* times of the frames, sorted; NULL: there are none */
    int64_t next; /* number of the frame that the decoder yields next; -1: the next one tells */
    int64_t refused;
    int read_error; /* errno of the file */
    tgi_av_info info;
    char *path;
};

/* ---- The file ---------------------------------------------------------------------------- */

static int read_bytes(void *user, uint8_t *to, int n)
{
    tgi_av_film *f = user;
    const ssize_t got = pread(f->fd, to, (size_t)n, f->at);
    if (got < 0) {
        f->read_error = errno;
        return AVERROR(errno);
    }
    f->at += got;
    return got ? (int)got : AVERROR_EOF;
}

static int64_t seek_bytes(void *user, int64_t by, int whence)
{
    tgi_av_film *f = user;
    if (whence & AVSEEK_SIZE)
        return f->size;
    const int64_t from = (whence & 3) == SEEK_CUR   ? f->at
                         : (whence & 3) == SEEK_END ? f->size
                                                    : 0;
    if (from + by < 0)
        return AVERROR(EINVAL);
    return f->at = from + by;
}

/* A container that names another file. */
static int open_no_other(AVFormatContext *c, AVIOContext **pb, const char *url, int flags,
                         AVDictionary **options)
{
    (void)c, (void)url, (void)flags, (void)options;
    *pb = NULL;
    return AVERROR(EPERM);
}

static int is_cancelled(void *user)
{
    const tgi_av_film *f = user;
    return f->opts.cancelled && f->opts.cancelled();
}

static tg_status failed(const tgi_av_film *f, int code, const char *what, tgi_err *err)
{
    char why[AV_ERROR_MAX_STRING_SIZE] = "";
    if (f->read_error)
        return tgi_fail(err, TG_E_IO, "%s: %s", what, strerror(f->read_error));
    if (is_cancelled((void *)(uintptr_t)f))
        return tgi_fail(err, TG_E_CANCELLED, "stopped while a film was read");
    av_strerror(code, why, sizeof why);
    return tgi_fail(err, code == AVERROR(ENOMEM) ? TG_E_NOMEM : TG_E_FORMAT, "%s: %s", what,
                    why);
}

static void close_container(tgi_av_film *f)
{
    avcodec_free_context(&f->decoder);
    avformat_close_input(&f->container);
    if (f->io)
        av_freep(&f->io->buffer);
    avio_context_free(&f->io);
}

static tg_status open_container(tgi_av_film *f, tgi_err *err)
{
    uint8_t *buffer = av_malloc(WINDOW);
    f->at = 0;
    f->io =
        buffer ? avio_alloc_context(buffer, WINDOW, 0, f, read_bytes, NULL, seek_bytes) : NULL;
    f->container = f->io ? avformat_alloc_context() : NULL;
    if (!f->container) {
        if (!f->io)
            av_free(buffer);
        return tgi_fail(err, TG_E_NOMEM, "no memory for a container");
    }
    f->container->pb = f->io;
    f->container->io_open = open_no_other;
    f->container->interrupt_callback = (AVIOInterruptCB){is_cancelled, f};
    f->container->max_streams = MOST_STREAMS;
    f->container->format_whitelist = av_strdup(containers);
    int r = avformat_open_input(&f->container, NULL, NULL, NULL);
    if (r < 0) /* and the container is freed */
        return failed(f, r, "not a film that is read", err);
    r = avformat_find_stream_info(f->container, NULL);
    return r < 0 ? failed(f, r, "the film's header", err) : TG_OK;
}

/* ---- The decoder ------------------------------------------------------------------------- */

static int first_video(const AVFormatContext *c)
{
    for (unsigned i = 0; i < c->nb_streams; i++)
        if (c->streams[i]->codecpar->codec_type == AVMEDIA_TYPE_VIDEO &&
            !(c->streams[i]->disposition & AV_DISPOSITION_ATTACHED_PIC))
            return (int)i;
    return -1;
}

static tg_status open_decoder(tgi_av_film *f, tgi_err *err)
{
    const AVCodecParameters *p = f->container->streams[f->stream]->codecpar;
    const AVCodec *codec = avcodec_find_decoder(p->codec_id);
    if (!codec)
        return tgi_fail(err, TG_E_UNSUPPORTED,
                        "a film of codec %s, which libavcodec does not decode here",
                        avcodec_get_name(p->codec_id));
    f->decoder = avcodec_alloc_context3(codec);
    if (!f->decoder)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a decoder");
    int r = avcodec_parameters_to_context(f->decoder, p);
    f->decoder->pkt_timebase = f->container->streams[f->stream]->time_base;
    f->decoder->thread_count = f->opts.threads > 0 ? f->opts.threads : 1;
    f->decoder->max_pixels = f->opts.most_pixels > 0 ? f->opts.most_pixels : MOST_PIXELS;
    if (r >= 0)
        r = avcodec_open2(f->decoder, codec, NULL);
    return r < 0 ? failed(f, r, "the film's decoder", err) : TG_OK;
}

/* The container from its beginning, with the decoder: frame 0 is next. */
static tg_status begin(tgi_av_film *f, tgi_err *err)
{
    close_container(f);
    TGI_TRY(open_container(f, err));
    f->stream = first_video(f->container);
    if (f->stream < 0)
        return tgi_fail(err, TG_E_FORMAT,
                        "no film in this file: none of its %u streams has pictures",
                        f->container->nb_streams);
    for (unsigned i = 0; i < f->container->nb_streams; i++)
        f->container->streams[i]->discard =
            (int)i == f->stream ? AVDISCARD_DEFAULT : AVDISCARD_ALL;
    f->next = 0;
    f->ended = 0;
    return open_decoder(f, err);
}

/* The next packet of the film into the decoder. 0: there was none. */
static tg_status feed(tgi_av_film *f, int *fed, tgi_err *err)
{
    *fed = 0;
    for (;;) {
        int r = av_read_frame(f->container, f->packet);
        if (r < 0) {
            if (f->read_error || is_cancelled(f))
                return failed(f, r, "the film's data", err);
            f->ended = 1;
            (void)avcodec_send_packet(f->decoder, NULL);
            return TG_OK;
        }
        const int ours = f->packet->stream_index == f->stream;
        r = ours ? avcodec_send_packet(f->decoder, f->packet) : 0;
        av_packet_unref(f->packet);
        if (r == AVERROR(ENOMEM))
            return failed(f, r, "the film's decoder", err);
        f->refused += r < 0;
        *fed = 1;
        if (ours)
            return TG_OK;
    }
}

/* The next frame that is shown. *there 0: the film is over. */
static tg_status decode(tgi_av_film *f, int *there, tgi_err *err)
{
    *there = 0;
    for (;;) {
        const int r = avcodec_receive_frame(f->decoder, f->frame);
        int fed;
        if (r == 0) {
            *there = 1;
            return TG_OK;
        }
        if (r == AVERROR_EOF)
            return TG_OK;
        if (r == AVERROR(ENOMEM))
            return failed(f, r, "the film's decoder", err);
        if (r != AVERROR(EAGAIN)) {
            f->refused++;
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
    if (!(p->flags & AV_PKT_FLAG_DISCARD))
        f->packets[f->n_packets++] =
            (packet){p->pts, p->dts, (p->flags & AV_PKT_FLAG_KEY) != 0};
    return TG_OK;
}

static tg_status read_packets(tgi_av_film *f, tgi_err *err)
{
    for (;;) {
        const int r = av_read_frame(f->container, f->packet);
        if (r < 0)
            return f->read_error || is_cancelled(f) ? failed(f, r, "the film's data", err)
                                                    : TG_OK;
        const tg_status st = f->packet->stream_index == f->stream ? note_packet(f, err) : TG_OK;
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
        good &= t[i] != AV_NOPTS_VALUE;
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

/* Without times: by decoding all of it. */
static tg_status count_frames(tgi_av_film *f, tgi_err *err)
{
    int there = 1;
    f->info.frames = f->shown ? (int64_t)f->n_packets : 0;
    f->info.has_times = f->shown != NULL;
    if (f->shown)
        return TG_OK;
    TGI_TRY(begin(f, err));
    for (;;) {
        TGI_TRY(decode(f, &there, err));
        if (!there)
            break;
        f->info.frames++;
    }
    return f->info.frames ? TG_OK : tgi_fail(err, TG_E_FORMAT, "a film without a frame");
}

/* ---- What the film says of itself -------------------------------------------------------- */

static void take_name(char *to, size_t cap, const char *name)
{
    snprintf(to, cap, "%s", name && strcmp(name, "unknown") != 0 ? name : "");
}

static tg_status take_form(tgi_av_film *f, tgi_err *err)
{
    const AVPixFmtDescriptor *d = av_pix_fmt_desc_get(f->frame->format);
    tgi_av_form *o = &f->info.form;
    const uint64_t strange = AV_PIX_FMT_FLAG_HWACCEL | AV_PIX_FMT_FLAG_BITSTREAM |
                             AV_PIX_FMT_FLAG_PAL | AV_PIX_FMT_FLAG_BAYER |
                             AV_PIX_FMT_FLAG_FLOAT;
    if (!d || d->flags & strange)
        return tgi_fail(err, TG_E_UNSUPPORTED, "a film of pixels %s, which are not read",
                        d ? d->name : "of no name");
    take_name(o->name, sizeof o->name, d->name);
    o->n_components = d->nb_components;
    o->n_planes = av_pix_fmt_count_planes(f->frame->format);
    o->is_rgb = (d->flags & AV_PIX_FMT_FLAG_RGB) != 0;
    o->has_alpha = (d->flags & AV_PIX_FMT_FLAG_ALPHA) != 0;
    o->big_endian = (d->flags & AV_PIX_FMT_FLAG_BE) != 0;
    o->log2_chroma_w = d->log2_chroma_w;
    o->log2_chroma_h = d->log2_chroma_h;
    for (int i = 0; i < d->nb_components; i++) {
        const AVComponentDescriptor *c = &d->comp[i];
        o->component[i] = (tgi_av_component){c->plane, c->step, c->offset, c->shift, c->depth};
        o->wide |= c->depth + c->shift > 8;
        if (c->depth + c->shift > 16)
            return tgi_fail(err, TG_E_UNSUPPORTED, "a film of pixels %s, which are not read",
                            d->name);
    }
    take_name(o->range, sizeof o->range, av_color_range_name(f->frame->color_range));
    take_name(o->matrix, sizeof o->matrix, av_color_space_name(f->frame->colorspace));
    take_name(o->primaries, sizeof o->primaries,
              av_color_primaries_name(f->frame->color_primaries));
    take_name(o->transfer, sizeof o->transfer, av_color_transfer_name(f->frame->color_trc));
    take_name(o->chroma_place, sizeof o->chroma_place,
              av_chroma_location_name(f->frame->chroma_location));
    return TG_OK;
}

/* How it is turned for viewing: mirrored first, then turned clockwise. */
static void take_rotation(tgi_av_film *f)
{
    const AVStream *s = f->container->streams[f->stream];
    size_t n = 0;
    const uint8_t *data = av_stream_get_side_data(s, AV_PKT_DATA_DISPLAYMATRIX, &n);
    int32_t m[9];
    if (!data || n < sizeof m)
        return;
    memcpy(m, data, sizeof m);
    const double det = (double)m[0] * m[4] - (double)m[1] * m[3];
    f->info.flipped = det < 0;
    if (f->info.flipped)
        av_display_matrix_flip(m, 1, 0);
    const double left = av_display_rotation_get(m); /* counterclockwise */
    f->info.rotation = isnan(left) ? 0 : (int)(((lround(-left / 90) % 4) + 4) % 4) * 90;
}

static tgi_av_ratio ratio(AVRational r)
{
    return r.num > 0 && r.den > 0 ? (tgi_av_ratio){r.num, r.den} : (tgi_av_ratio){0, 1};
}

static void take_header(tgi_av_film *f)
{
    const AVStream *s = f->container->streams[f->stream];
    tgi_av_info *i = &f->info;
    take_name(i->container, sizeof i->container, f->container->iformat->name);
    take_name(i->codec, sizeof i->codec, avcodec_get_name(s->codecpar->codec_id));
    take_name(i->profile, sizeof i->profile,
              avcodec_profile_name(s->codecpar->codec_id, s->codecpar->profile));
    i->time_base = ratio(s->time_base);
    i->rate = ratio(s->avg_frame_rate);
    i->pixel_aspect = ratio(s->codecpar->sample_aspect_ratio);
    i->interlaced = s->codecpar->field_order == AV_FIELD_UNKNOWN       ? -1
                    : s->codecpar->field_order == AV_FIELD_PROGRESSIVE ? 0
                                                                       : 1;
    i->declared_frames = s->nb_frames;
    i->n_streams = (int)f->container->nb_streams;
    take_rotation(f);
}

/* ---- Open and close ---------------------------------------------------------------------- */

static void film_close(tgi_av_film **pf)
{
    tgi_av_film *f = *pf;
    if (!f)
        return;
    close_container(f);
    av_packet_free(&f->packet);
    av_frame_free(&f->frame);
    tgi_free(f->packets);
    tgi_free(f->shown);
    if (f->fd >= 0)
        close(f->fd);
    tgi_free(f);
    *pf = NULL;
}

static tg_status open_file(tgi_av_film *f, const char *path, tgi_err *err)
{
    struct stat st;
    f->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (f->fd < 0)
        return tgi_fail(err, errno == ENOENT ? TG_E_NOT_FOUND : TG_E_IO, "%s", strerror(errno));
    if (fstat(f->fd, &st) != 0 || !S_ISREG(st.st_mode))
        return tgi_fail(err, TG_E_UNSUPPORTED, "no regular file");
    f->size = st.st_size;
    return TG_OK;
}

/* All there is to know, and the first frame in f->frame. */
static tg_status look(tgi_av_film *f, tgi_err *err)
{
    int there;
    TGI_TRY(begin(f, err));
    take_header(f);
    TGI_TRY(read_packets(f, err));
    TGI_TRY(sort_times(f, err));
    TGI_TRY(count_frames(f, err));
    TGI_TRY(begin(f, err));
    f->refused = 0;
    TGI_TRY(decode(f, &there, err));
    if (!there)
        return tgi_fail(err, TG_E_FORMAT, "a film without a frame that can be decoded");
    f->info.width = f->frame->width;
    f->info.height = f->frame->height;
    TGI_TRY(take_form(f, err));
    return begin(f,
                 err); /* the form is that of all frames, but this one may be asked for again */
}

static tg_status film_open(const char *path, const tgi_av_open *o, tgi_av_film **out,
                           tgi_err *err)
{
    tgi_av_film *f = tgi_calloc(TGI_TAG_IO, 1, sizeof *f);
    if (!f)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a film");
    f->opts = *o;
    f->fd = -1;
    f->packet = av_packet_alloc();
    f->frame = av_frame_alloc();
    tg_status st = f->packet && f->frame ? open_file(f, path, err)
                                         : tgi_fail(err, TG_E_NOMEM, "no memory for a frame");
    if (st == TG_OK)
        st = look(f, err);
    if (st != TG_OK)
        film_close(&f);
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
    if (av_seek_frame(f->container, f->stream, to, AVSEEK_FLAG_BACKWARD) < 0)
        return begin(f, err);
    avcodec_flush_buffers(f->decoder);
    f->ended = 0;
    f->next = -1;
    return TG_OK;
}

/* Frames are decoded until number k is in f->frame. *met 0: it did not come. */
static tg_status advance(tgi_av_film *f, int64_t k, int *met, tgi_err *err)
{
    int there;
    for (*met = 0;;) {
        if (is_cancelled(f))
            return tgi_fail(err, TG_E_CANCELLED, "stopped while a film was decoded");
        TGI_TRY(decode(f, &there, err));
        if (!there)
            return TG_OK;
        const int64_t time = f->frame->best_effort_timestamp;
        int64_t n = f->next;
        if (f->shown && time != AV_NOPTS_VALUE)
            n = number_at(f, time);
        if (n < 0)
            continue; /* of a time that no packet has: what stands before a key frame */
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
    *met = 0;
    if (f->next >= 0 && k >= f->next && (k - f->next <= NEAR || !f->shown))
        TGI_TRY(advance(f, k, met, err));
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

static tg_status film_frame(tgi_av_film *f, int64_t k, tgi_av_frame *out, tgi_err *err)
{
    int met;
    if (k < 0 || k >= f->info.frames)
        return tgi_fail(err, TG_E_ARG, "frame %lld of %lld", (long long)k,
                        (long long)f->info.frames);
    TGI_TRY(find(f, k, &met, err));
    if (!met) {
        f->next = -1;
        return tgi_fail(err, TG_E_FORMAT, "frame %lld of %lld cannot be decoded", (long long)k,
                        (long long)f->info.frames);
    }
    const AVPixFmtDescriptor *d = av_pix_fmt_desc_get(f->frame->format);
    if (f->frame->width != f->info.width || f->frame->height != f->info.height || !d ||
        strcmp(d->name, f->info.form.name) != 0)
        return tgi_fail(err, TG_E_UNSUPPORTED,
                        "frame %lld is %d x %d %s, the first was %d x %d %s", (long long)k,
                        f->frame->width, f->frame->height, d ? d->name : "?", f->info.width,
                        f->info.height, f->info.form.name);
    *out = (tgi_av_frame){.time = f->shown ? f->shown[k] : TGI_AV_NO_TIME,
                          .concealed = f->frame->decode_error_flags != 0 ||
                                       (f->frame->flags & AV_FRAME_FLAG_CORRUPT) != 0};
    for (int i = 0; i < f->info.form.n_planes; i++) {
        out->plane[i] = f->frame->data[i];
        out->pitch[i] = f->frame->linesize[i];
    }
    return TG_OK;
}

static const tgi_av_info *film_info(const tgi_av_film *f)
{
    return &f->info;
}

static int64_t film_time(const tgi_av_film *f, int64_t k)
{
    return f->shown && k >= 0 && k < f->info.frames ? f->shown[k] : TGI_AV_NO_TIME;
}

static int64_t film_refused(const tgi_av_film *f)
{
    return f->refused;
}

/* ---- The table --------------------------------------------------------------------------- */

static const char *version(void)
{
    static char text[96];
    const unsigned f = avformat_version(), c = avcodec_version();
    snprintf(text, sizeof text, "libavformat %u.%u.%u, libavcodec %u.%u.%u", f >> 16,
             f >> 8 & 255, f & 255, c >> 16, c >> 8 & 255, c & 255);
    return text;
}

static const tgi_av_ops table = {.abi = TGI_AV_ABI,
                                 .version = version,
                                 .open = film_open,
                                 .info = film_info,
                                 .time = film_time,
                                 .frame = film_frame,
                                 .refused = film_refused,
                                 .close = film_close};

__attribute__((visibility("default"))) const tgi_av_ops *tgi_av_plugin(uint32_t abi);
const tgi_av_ops *tgi_av_plugin(uint32_t abi)
{
    av_log_set_level(AV_LOG_QUIET);
    return abi == TGI_AV_ABI ? &table : NULL;
}
