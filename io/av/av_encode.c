/* av_encode.c - packets of the frames of a segment, through libavcodec (av.h).
 *
 * Bits must not depend on the machine: how many threads an encoder has, how far it looks ahead and how
 * it is asked is the same everywhere. A segment's frames need no other segment's, so it begins with
 * a key frame, and what follows it in the order of decoding is shown after it. */
#include "engine/base/mem.h"
#include "io/av/av_form.h"
#include "io/av/av_inside.h"

#include <libavformat/avformat.h>
#include <libavutil/imgutils.h>
#include <libavutil/pixdesc.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>

#define THREADS 2 /* as everywhere: what x264 makes depends on how many they are */

struct tgi_av_encoder {
    tgi_av_coding c;
    AVCodecContext *codec;
    AVFrame *frame;
    AVPacket *packet;
};

/* ---- The codecs -------------------------------------------------------------------------- */

/* What libavcodec's encoders are told beside what all are: "name=value" in a row, apart by spaces. */
static const struct {
    const char *name, *encoder, *options;
    int crf; /* the usual one; -1: it has none */
    const char *speed,
        *speeds; /* the option, and its values by TGI_AV_SPEEDS; NULL: it has none */
} codecs[] = {
    {"h264", "libx264", "rc-lookahead=10 x264-params=sync-lookahead=0:bf=2", 18, "preset",
     TGI_AV_SPEEDS},
    {"hevc", "libx265",
     "x265-params=log-level=none:frame-threads=1:pools=2:rc-lookahead=12:open-gop=0", 20,
     "preset", TGI_AV_SPEEDS},
    {"av1", "libaom-av1", "b=0 cpu-used=6 row-mt=1 lag-in-frames=12", 30, "cpu-used",
     "6|6|6|6|6|6|4|3|2"},
    {"vp9", "libvpx-vp9",
     "b=0 deadline=good cpu-used=3 row-mt=1 lag-in-frames=8 auto-alt-ref=0", 28, "cpu-used",
     "5|5|5|5|4|3|2|1|0"},
    {"ffv1", "ffv1", "level=3 slices=4 slicecrc=1", -1, NULL, NULL},
    {"prores", "prores_ks", "vendor=apl0", -1, NULL, NULL},
};

static int number_of(const char *codec)
{
    for (size_t i = 0; i < sizeof codecs / sizeof codecs[0]; i++)
        if (strcmp(codecs[i].name, codec) == 0)
            return (int)i;
    return -1;
}

static const AVCodec *find(const char *codec, tgi_err *err)
{
    const int i = number_of(codec);
    const AVCodec *c = i < 0 ? NULL : avcodec_find_encoder_by_name(codecs[i].encoder);
    if (!c)
        tgi_fail(err, TG_E_UNSUPPORTED, "films of codec %s are not written%s%s", codec,
                 i < 0 ? "" : ": libavcodec has no encoder ", i < 0 ? "" : codecs[i].encoder);
    return c;
}

tg_status tgi_av_encoder_form(const char *codec, const char *like, tgi_av_form *out,
                              tgi_err *err)
{
    const AVCodec *c = find(codec, err);
    const enum AVPixelFormat from = av_get_pix_fmt(like);
    enum AVPixelFormat best = AV_PIX_FMT_NONE;
    if (!c)
        return TG_E_UNSUPPORTED;
    for (const enum AVPixelFormat *f = c->pix_fmts; f && *f != AV_PIX_FMT_NONE; f++) {
        tgi_av_form try = {0};
        tgi_err no = {0};
        int loss = 0;
        if (tgi_av_form_of(*f, &try, &no) != TG_OK)
            continue;
        if (*f == from)
            best = *f;
        if (best == from)
            break;
        best =
            best == AV_PIX_FMT_NONE ? *f : av_find_best_pix_fmt_of_2(best, *f, from, 1, &loss);
    }
    if (best == AV_PIX_FMT_NONE)
        return tgi_fail(err, TG_E_UNSUPPORTED, "films of codec %s have no form for %s", codec,
                        like);
    return tgi_av_form_of(best, out, err);
}

void tgi_av_encoder_forms(const char *codec, char *to, size_t cap)
{
    tgi_err no = {0};
    const AVCodec *c = find(codec, &no);
    size_t n = 0;
    to[0] = 0;
    for (const enum AVPixelFormat *f = c ? c->pix_fmts : NULL; f && *f != AV_PIX_FMT_NONE;
         f++) {
        tgi_av_form form = {0};
        if (tgi_av_form_of(*f, &form, &no) == TG_OK && n < cap)
            n += (size_t)snprintf(to + n, cap - n, "%s%s", n ? ", " : "", form.name);
    }
}

int tgi_av_encoder_fits(const char *container, const char *codec)
{
    tgi_err no = {0};
    const AVOutputFormat *f = av_guess_format(container, NULL, NULL);
    const AVCodec *c = find(codec, &no);
    const struct AVCodecTag *const by_number[] = {avformat_get_riff_video_tags(), NULL};
    const int mov = strcmp(container, "mov") == 0;
    if (!f || !c || (mov && (c->id == AV_CODEC_ID_AV1 || c->id == AV_CODEC_ID_VP9)))
        return 0; /* the muxer of MOV says so no earlier than when it begins */
    /* a MOV takes the codes of AVI for what it has none for, and everybody reads them */
    return avformat_query_codec(f, c->id, FF_COMPLIANCE_NORMAL) == 1 ||
           (mov && av_codec_get_tag(by_number, c->id) != 0);
}

/* ---- Open -------------------------------------------------------------------------------- */

static tg_status failed(int code, const char *what, tgi_err *err)
{
    char why[AV_ERROR_MAX_STRING_SIZE] = "";
    av_strerror(code, why, sizeof why);
    return tgi_fail(err, code == AVERROR(ENOMEM) ? TG_E_NOMEM : TG_E_INTERNAL, "%s: %s", what,
                    why);
}

/* The k-th of "a|b|c", from 1 on, into `to`. */
static void pick_of(const char *list, int k, char *to, size_t cap)
{
    for (; k > 1 && strchr(list, '|'); k--)
        list = strchr(list, '|') + 1;
    snprintf(to, cap, "%.*s", (int)strcspn(list, "|"), list);
}

/* x264 says a limited range only beside something else about the picture: a matrix, or where it came from. */
static int says_limited_alone(const tgi_av_form *f)
{
    return strcmp(f->range, "tv") == 0 && !f->matrix[0] && !f->primaries[0] && !f->transfer[0];
}

/* The options of the table, and those that were asked for. */
static tg_status set_options(const tgi_av_encoder *e, int i, AVDictionary **o, tgi_err *err)
{
    int r = av_dict_parse_string(o, codecs[i].options, "=", " ", 0);
    if (r >= 0 && e->c.fields == 2 && strcmp(codecs[i].encoder, "libx264") == 0)
        r = av_dict_set(o, "x264-params", ":bff=1",
                        AV_DICT_APPEND); /* it begins with the top one else */
    if (r >= 0 && says_limited_alone(&e->c.form) && strcmp(codecs[i].encoder, "libx264") == 0)
        r = av_dict_set(o, "x264-params", ":videoformat=component", AV_DICT_APPEND);
    char speed[24];
    if (r >= 0 && e->c.speed && codecs[i].speed) {
        pick_of(codecs[i].speeds, e->c.speed, speed, sizeof speed);
        r = av_dict_set(o, codecs[i].speed, speed, 0);
    }
    if (r >= 0 && codecs[i].crf >= 0)
        r = av_dict_set_int(o, "crf", e->c.crf >= 0 ? e->c.crf : codecs[i].crf, 0);
    return r < 0 ? failed(r, "an encoder's options", err) : TG_OK;
}

void tgi_av_encoder_words(const tgi_av_coding *c, char *to, size_t cap)
{
    const tgi_av_encoder e = {.c = *c};
    const int i = number_of(c->codec);
    AVDictionary *options = NULL;
    const AVDictionaryEntry *o = NULL;
    tgi_err none = {0};
    size_t n = (size_t)snprintf(to, cap, "-c:v %s -pix_fmt %s -g %d -flags +cgop",
                                i < 0 ? c->codec : codecs[i].encoder, c->form.name, c->segment);
    if (i >= 0 && set_options(&e, i, &options, &none) == TG_OK)
        while ((o = av_dict_get(options, "", o, AV_DICT_IGNORE_SUFFIX)) != NULL && n < cap)
            n += (size_t)snprintf(to + n, cap - n, " -%s %s", o->key, o->value);
    if (c->fields && n < cap)
        snprintf(to + n, cap - n, " -flags +ildct -top %d", c->fields == 1);
    av_dict_free(&options);
}

/* Where the system's malloc has seen one large block go, it takes the next ones out of the heap of a thread, in whose holes
 * tens of megabytes stay (measured with VP9). Large blocks are the system's own again with a threshold that is set. */
static void keep_large_blocks_apart(void)
{
#ifdef M_MMAP_THRESHOLD
    mallopt(M_MMAP_THRESHOLD, 256 << 10);
#endif
}

/* Chroma for two columns, or two rows, of an odd number of them is what most encoders refuse. */
static tg_status refuse(const tgi_av_encoder *e, const AVCodec *codec, tgi_err *err)
{
    const tgi_av_coding *c = &e->c;
    const int by_w = 1 << c->form.log2_chroma_w, by_h = 1 << c->form.log2_chroma_h;
    char why[160] = "";
    if (!c->form.is_rgb && (c->width % by_w || c->height % by_h))
        snprintf(why, sizeof why,
                 ", whose chroma is one for %d x %d pixels: leave --pix-fmt out, give another "
                 "such as yuv444p, or choose by --roi a size that is a multiple",
                 by_w, by_h);
    return tgi_fail(err, TG_E_ARG, "the encoder %s does not take %d x %d %s%s", codec->name,
                    c->width, c->height, c->form.name, why);
}

static tg_status open_codec(tgi_av_encoder *e, const AVCodec *codec, tgi_err *err)
{
    AVDictionary *options = NULL;
    AVCodecContext *c = e->codec;
    const AVRational rate = tgi_av_rational(e->c.rate);
    c->width = e->c.width;
    c->height = e->c.height;
    c->pix_fmt = av_get_pix_fmt(e->c.form.name);
    c->framerate = rate.num ? rate : (AVRational){25, 1};
    c->time_base = av_inv_q(c->framerate);
    c->sample_aspect_ratio = tgi_av_rational(e->c.pixel_aspect);
    c->gop_size = e->c.segment;
    c->flags |= AV_CODEC_FLAG_GLOBAL_HEADER | AV_CODEC_FLAG_CLOSED_GOP;
    if (e->c.fields) {
        c->flags |= AV_CODEC_FLAG_INTERLACED_DCT;
        c->field_order = e->c.fields == 1 ? AV_FIELD_TT : AV_FIELD_BB;
    }
    c->thread_count = THREADS;
    keep_large_blocks_apart();
    tgi_av_set_tags(&e->c.form, c);
    tg_status st = set_options(e, number_of(e->c.codec), &options, err);
    const int r = st == TG_OK ? avcodec_open2(c, codec, &options) : 0;
    if (r == AVERROR(ENOMEM))
        st = tgi_fail(err, TG_E_NOMEM, "no memory for the encoder %s", codec->name);
    else if (r < 0)
        st = refuse(e, codec, err);
    else if (st == TG_OK && av_dict_count(options))
        st = tgi_fail(err, TG_E_INTERNAL, "the encoder %s has no option %s", codec->name,
                      av_dict_get(options, "", NULL, AV_DICT_IGNORE_SUFFIX)->key);
    av_dict_free(&options);
    return st;
}

void tgi_av_encoder_close(tgi_av_encoder **pe)
{
    tgi_av_encoder *e = *pe;
    if (!e)
        return;
    avcodec_free_context(&e->codec);
    av_frame_free(&e->frame);
    av_packet_free(&e->packet);
    tgi_free(e);
    *pe = NULL;
#ifdef M_MMAP_THRESHOLD
    malloc_trim(0); /* what is left in holes grows from segment to segment else */
#endif
}

tg_status tgi_av_encoder_open(const tgi_av_coding *c, tgi_av_encoder **out, tgi_err *err)
{
    const AVCodec *codec = find(c->codec, err);
    if (!codec)
        return TG_E_UNSUPPORTED;
    tgi_av_encoder *e = tgi_calloc(TGI_TAG_IO, 1, sizeof *e);
    if (!e)
        return tgi_fail(err, TG_E_NOMEM, "no memory for an encoder");
    e->c = *c;
    e->codec = avcodec_alloc_context3(codec);
    e->frame = av_frame_alloc();
    e->packet = av_packet_alloc();
    tg_status st = e->codec && e->frame && e->packet
                       ? open_codec(e, codec, err)
                       : tgi_fail(err, TG_E_NOMEM, "no memory for an encoder");
    if (st != TG_OK)
        tgi_av_encoder_close(&e);
    *out = e;
    return st;
}

tg_status tgi_av_encoder_parameters(const tgi_av_encoder *e, AVCodecParameters *out,
                                    tgi_err *err)
{
    return avcodec_parameters_from_context(out, e->codec) < 0
               ? tgi_fail(err, TG_E_NOMEM, "no memory for a film")
               : TG_OK;
}

/* ---- Frames in, packets out -------------------------------------------------------------- */

tg_status tgi_av_encoder_blank(tgi_av_encoder *e, tgi_av_blank *out, tgi_err *err)
{
    AVFrame *f = e->frame;
    if (!f->data[0] || !av_frame_is_writable(f)) { /* the encoder may hold on to the last one */
        av_frame_unref(f);
        f->format = e->codec->pix_fmt;
        f->width = e->codec->width;
        f->height = e->codec->height;
        if (av_frame_get_buffer(f, 0) < 0)
            return tgi_fail(err, TG_E_NOMEM, "no memory for a frame");
    }
    f->color_range = e->codec->color_range;
    f->colorspace = e->codec->colorspace;
    f->color_primaries = e->codec->color_primaries;
    f->color_trc = e->codec->color_trc;
    f->chroma_location = e->codec->chroma_sample_location;
    f->sample_aspect_ratio = e->codec->sample_aspect_ratio;
    f->interlaced_frame = e->c.fields != 0;
    f->top_field_first = e->c.fields == 1;
    *out = (tgi_av_blank){{0}, {0}};
    for (int i = 0; i < e->c.form.n_planes; i++) {
        out->plane[i] = f->data[i];
        out->pitch[i] = f->linesize[i];
    }
    return TG_OK;
}

/* Into FFV1's encoder, which takes 148 zeroed bytes for each pixel of the frame that its context names, to write a packet of
 * a hundredth of that: 1.2 GB of 3840 x 2160. It reads the context's height for nothing else (libavcodec 59: what it codes it
 * laid out when it was opened), so it is told one of which the packet has four times the frame's bytes. */
int tgi_av_ffv1_is_lean(void)
{
    return avcodec_version() >> 16 == 59;
}

static int send_frame(tgi_av_encoder *e, const AVFrame *frame)
{
    AVCodecContext *c = e->codec;
    const int height = c->height;
    if (frame && c->codec_id == AV_CODEC_ID_FFV1 && tgi_av_ffv1_is_lean()) {
        const int n = av_image_get_buffer_size(c->pix_fmt, c->width, height, 1);
        const int64_t rows =
            (4 * (int64_t)n + 65536) / ((int64_t)TGI_AV_FFV1_PER_PIXEL * c->width) + 1;
        c->height = n > 0 && rows < height ? (int)rows : height;
    }
    const int r = avcodec_send_frame(c, frame);
    c->height = height;
    return r;
}

tg_status tgi_av_encoder_give(tgi_av_encoder *e, int64_t number, tgi_err *err)
{
    e->frame->pts = number;
    const int r = send_frame(e, number < 0 ? NULL : e->frame);
    return r < 0 ? failed(r, "a film's encoder", err) : TG_OK;
}

tg_status tgi_av_encoder_take(tgi_av_encoder *e, tgi_av_packet *out, int *there, tgi_err *err)
{
    av_packet_unref(e->packet);
    const int r = avcodec_receive_packet(e->codec, e->packet);
    *there = r >= 0;
    if (r == AVERROR(EAGAIN) || r == AVERROR_EOF)
        return TG_OK;
    if (r < 0)
        return failed(r, "a film's encoder", err);
    *out = (tgi_av_packet){.bytes = e->packet->data,
                           .n = (size_t)e->packet->size,
                           .number = e->packet->pts,
                           .key = (e->packet->flags & AV_PKT_FLAG_KEY) != 0,
                           .header = e->codec->extradata,
                           .header_bytes = (size_t)e->codec->extradata_size};
    if (!out->header_bytes) /* some find it out with the first frame */
        out->header =
            av_packet_get_side_data(e->packet, AV_PKT_DATA_NEW_EXTRADATA, &out->header_bytes);
    return TG_OK;
}
