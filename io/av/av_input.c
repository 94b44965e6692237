/* av_input.c - see av_input.h. */
#include "io/av/av_input.h"

#include "engine/base/arith.h"
#include "engine/base/size.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define WINDOW (64 << 10)
#define OPEN_STREAMS 1024     /* where a demuxer stops with an error that says nothing */
#define PROBE_BYTES (5 << 20) /* looked at before it is known what it is */
#define MOST_HEADERS ((size_t)256 << 20)
#define MOST_OF_TRACKS ((int64_t)16 << 20) /* without files that are attached */

/* Containers that are one file. (Playlists and lists of files would name others.) */
static const char containers[] =
    "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,gif,mpegts,mpeg,mpegvideo,ogg,flv,asf,"
    "h264,hevc,m4v,ivf,obu,av1,yuv4mpegpipe,nut,mxf,dv,apng";

/* In place of the element of an attached file: one of a file of one byte, and what is void up to its end. */
#define COVER_BYTES 13
static void cover_of(const tgi_av_attached *a, uint8_t to[COVER_BYTES])
{
    static const uint8_t head[] = {0x46, 0x5c, 0x81, 0, 0xec, 1};
    memcpy(to, head, sizeof head);
    const int64_t rest = a->end - a->at - COVER_BYTES;
    for (int i = 0; i < 7; i++)
        to[6 + i] = (uint8_t)((uint64_t)rest >> 8 * (6 - i));
}

/* n bytes that were read from `at` on. */
static void cover_files(const tgi_av_input *in, uint8_t *bytes, int64_t at, int64_t n)
{
    for (int i = 0; i < in->n_attached; i++) {
        uint8_t cover[COVER_BYTES];
        const tgi_av_attached *a = &in->attached[i];
        const int64_t lo = tgi_max(a->at, at), hi = tgi_min(a->at + COVER_BYTES, at + n);
        if (lo >= hi)
            continue;
        cover_of(a, cover);
        memcpy(bytes + (lo - at), cover + (lo - a->at), (size_t)(hi - lo));
    }
}

static int read_bytes(void *user, uint8_t *to, int n)
{
    tgi_av_input *in = user;
    const int64_t there = in->size > in->at ? in->size - in->at : 0;
    if (in->opening && in->read > (int64_t)MOST_HEADERS + MOST_OF_TRACKS)
        return AVERROR(EFBIG);
    const ssize_t got = pread(in->fd, to, (size_t)(n < there ? n : there), in->at);
    if (got < 0) {
        in->read_error = errno;
        return AVERROR(errno);
    }
    if (in->bare)
        cover_files(in, to, in->at, got);
    in->at += got;
    in->read += in->opening ? got : 0;
    return got ? (int)got : AVERROR_EOF;
}

static int64_t seek_bytes(void *user, int64_t by, int whence)
{
    tgi_av_input *in = user;
    if (whence & AVSEEK_SIZE)
        return in->size;
    const int64_t from = (whence & 3) == SEEK_CUR   ? in->at
                         : (whence & 3) == SEEK_END ? in->size
                                                    : 0;
    if (from + by < 0)
        return AVERROR(EINVAL);
    return in->at = from + by;
}

/* A container that names another file. */
static int open_no_other(AVFormatContext *c, AVIOContext **pb, const char *url, int flags,
                         AVDictionary **options)
{
    (void)c, (void)url, (void)flags, (void)options;
    *pb = NULL;
    return AVERROR(EPERM);
}

int tgi_av_input_ends_in(const tgi_av_input *in, const AVPacket *p)
{
    return (p->flags & AV_PKT_FLAG_CORRUPT) && p->pos >= 0 && p->pos + p->size >= in->size;
}

int tgi_av_input_cancelled(const tgi_av_input *in)
{
    return in->cancelled && in->cancelled();
}

static int is_cancelled(void *user)
{
    return tgi_av_input_cancelled(user);
}

tg_status tgi_av_failed(const tgi_av_input *in, int code, const char *what, tgi_err *err)
{
    char why[AV_ERROR_MAX_STRING_SIZE] = "";
    if (in->read_error)
        return tgi_fail(err, TG_E_IO, "%s: %s", what, strerror(in->read_error));
    if (tgi_av_input_cancelled(in))
        return tgi_fail(err, TG_E_CANCELLED, "stopped while a film was read");
    av_strerror(code, why, sizeof why);
    return tgi_fail(err, code == AVERROR(ENOMEM) ? TG_E_NOMEM : TG_E_FORMAT, "%s: %s", what,
                    why);
}

/* Before libavformat takes memory for them: three times what they have. */
static tg_status too_long(int64_t bytes, int64_t most, tgi_err *err)
{
    char there[32], limit[32];
    return tgi_fail(err, TG_E_UNSUPPORTED, "headers of its tracks have %s: %s are read at most",
                    tgi_size_text((size_t)bytes, there, sizeof there),
                    tgi_size_text((size_t)most, limit, sizeof limit));
}

/* Where it ends, of containers other than MP4. */
static void look_at_end(tgi_av_input *in)
{
    tgi_av_ends e = {.fd = in->fd, .size = in->size, .cancelled = in->cancelled};
    if (in->lacks_of || !tgi_av_ends_look(&e))
        return;
    in->unended = e.unended;
    in->another = e.another;
    in->track_bytes = tgi_max(in->track_bytes, e.header);
    in->n_attached = e.n_attached;
    memcpy(in->attached, e.attached, sizeof in->attached);
    if (!e.of && e.whole)
        in->size = e.whole;
    if (!e.of)
        return;
    in->lacks = e.lacks;
    in->lacks_of = e.of;
    in->size = e.whole;
}

tg_status tgi_av_input_file(tgi_av_input *in, const char *path, tgi_err *err)
{
    struct stat st;
    in->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (in->fd < 0)
        return tgi_fail(err, errno == ENOENT ? TG_E_NOT_FOUND : TG_E_IO, "%s", strerror(errno));
    if (fstat(in->fd, &st) != 0 || !S_ISREG(st.st_mode))
        return tgi_fail(err, TG_E_UNSUPPORTED, "no regular file");
    in->size = st.st_size;
    TGI_TRY(tgi_av_mp4_look(in, err));
    look_at_end(in);
    return in->track_bytes <= MOST_OF_TRACKS ? TG_OK
                                             : too_long(in->track_bytes, MOST_OF_TRACKS, err);
}

void tgi_av_input_end(tgi_av_input *in)
{
    avformat_close_input(&in->container);
    if (in->io)
        av_freep(&in->io->buffer);
    avio_context_free(&in->io);
}

void tgi_av_input_close(tgi_av_input *in)
{
    tgi_av_input_end(in);
    if (in->fd >= 0)
        close(in->fd);
    in->fd = -1;
}

static tg_status count_streams(const tgi_av_input *in, tgi_err *err)
{
    return in->container->nb_streams <= TGI_AV_STREAMS
               ? TG_OK
               : tgi_fail(err, TG_E_UNSUPPORTED, "a film of %u tracks: %d are read at most",
                          in->container->nb_streams, TGI_AV_STREAMS);
}

static tg_status weigh_headers(tgi_av_input *in, tgi_err *err)
{
    char there[32], most[32];
    const AVFormatContext *c = in->container;
    size_t n = 0;
    for (unsigned i = 0; i < c->nb_streams; i++)
        n = tgi_sat_add(n, (size_t)c->streams[i]->codecpar->extradata_size +
                               (size_t)c->streams[i]->attached_pic.size);
    in->attached_bytes = 0;
    for (int i = 0; i < in->n_attached && in->bare; i++)
        in->attached_bytes = tgi_sat_add(in->attached_bytes, (size_t)in->attached[i].bytes);
    in->header_bytes = n = tgi_sat_add(n, in->attached_bytes);
    return n <= MOST_HEADERS
               ? TG_OK
               : tgi_fail(err, TG_E_UNSUPPORTED,
                          "headers and attachments of its tracks have %s: %s are read at most",
                          tgi_size_text(n, there, sizeof there),
                          tgi_size_text(MOST_HEADERS, most, sizeof most));
}

/* Headers of some codecs lie in the frames, so libav decodes some. */
static tg_status know_streams(const tgi_av_input *in, tgi_err *err)
{
    const unsigned n = in->container->nb_streams;
    AVDictionary *options[TGI_AV_STREAMS] = {NULL};
    int r = 0;
    for (unsigned i = 0; i < n && in->most_pixels && r >= 0; i++)
        r = av_dict_set_int(&options[i], "max_pixels", in->most_pixels, 0);
    if (r >= 0)
        r = avformat_find_stream_info(in->container, options);
    for (unsigned i = 0; i < n; i++)
        av_dict_free(&options[i]);
    return r < 0 ? tgi_av_failed(in, r, "the film's header", err) : TG_OK;
}

tg_status tgi_av_input_begin(tgi_av_input *in, tgi_err *err)
{
    tgi_av_input_end(in);
    uint8_t *buffer = av_malloc(WINDOW);
    in->at = 0;
    in->io =
        buffer ? avio_alloc_context(buffer, WINDOW, 0, in, read_bytes, NULL, seek_bytes) : NULL;
    in->container = in->io ? avformat_alloc_context() : NULL;
    if (!in->container) {
        if (!in->io)
            av_free(buffer);
        return tgi_fail(err, TG_E_NOMEM, "no memory for a container");
    }
    in->container->pb = in->io;
    atomic_store(&in->heard.errors, 0);
    in->heard.keeps_text = 1;
    in->heard.first[0] = 0;
    in->container->opaque = &in->heard;
    in->container->io_open = open_no_other;
    in->container->interrupt_callback = (AVIOInterruptCB){is_cancelled, in};
    in->container->max_streams = OPEN_STREAMS;
    in->container->probesize = PROBE_BYTES;
    in->container->format_whitelist = av_strdup(containers);
    in->read = 0;
    in->opening = 1;
    const int r = avformat_open_input(&in->container, NULL, NULL, NULL);
    in->opening = 0;
    if (r < 0 && in->read > (int64_t)MOST_HEADERS + MOST_OF_TRACKS)
        return tgi_fail(err, TG_E_UNSUPPORTED,
                        "not a film that is read: its headers have no end");
    if (r < 0) /* and the container is freed */
        return tgi_av_failed(in, r, "not a film that is read", err);
    TGI_TRY(count_streams(in, err));
    TGI_TRY(weigh_headers(in, err));
    TGI_TRY(know_streams(in, err));
    tgi_av_mp4_titles(in);
    return count_streams(in, err); /* some demuxers find streams while they read */
}

int tgi_av_first_video(const AVFormatContext *c)
{
    for (unsigned i = 0; i < c->nb_streams; i++)
        if (c->streams[i]->codecpar->codec_type == AVMEDIA_TYPE_VIDEO &&
            !(c->streams[i]->disposition & AV_DISPOSITION_ATTACHED_PIC))
            return (int)i;
    return -1;
}

/* Clocks of few bits, 33 in a transport stream and an MPEG-PS, come to their end (there after 26.5 hours) and go on at 0. libavformat
 * takes any time that is more than a minute before a track's first for one behind that end, and adds all that the clock counts: a clock
 * that was set back seems to leap. One that truly came to its end is seen to do so, and no film pauses for half a day. */
#define LEAP_SECONDS 60
#define PAUSE_SECONDS (12 * 3600)

static int64_t seconds_of(const AVStream *s, int n)
{
    return av_rescale_q(n, (AVRational){1, 1}, s->time_base);
}

int tgi_av_clock_restarts(const AVStream *s, int64_t before, int64_t now)
{
    const int64_t by = now - before;
    if (by < -seconds_of(s, 1) || s->pts_wrap_bits >= 63)
        return by < -seconds_of(s, 1);
    const int64_t all = ((int64_t)1 << s->pts_wrap_bits) - 1;
    return by > seconds_of(s, (now & all) < (before & all) ? LEAP_SECONDS : PAUSE_SECONDS);
}

int tgi_av_clock_leaps(const AVStream *s, int64_t before, int64_t now)
{
    return s->pts_wrap_bits < 63 && now - before > seconds_of(s, LEAP_SECONDS);
}

tgi_av_heard *tgi_av_input_heard(const AVFormatContext *c)
{
    return c->io_open == open_no_other ? c->opaque : NULL;
}
