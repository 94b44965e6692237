/* av_bytes.c - what libavcodec's decoders and encoders hold: for the plan, before anything runs.
 *
 * A decoder holds frames that others are made of, frames that wait for their turn, one that is being made and one that was handed
 * out; beside each some tables of its blocks (motion), and some memory that grows with nothing. How many frames that are the
 * standards say, or the header. An encoder holds the frames that it looks at before it decides. Measured with libavcodec 59 by
 * tests/film/film_memory.py, which prints both beside each other: no film took more than 0.95 of what is stated here. */
#include "io/av/av_input.h"
#include "io/av/av_inside.h"

#include "engine/base/arith.h"

#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <string.h>

#define MIB ((size_t)1 << 20)
#define MOST_FRAMES 16 /* that H.264 and HEVC allow */

/* Frames that HEVC allows at a level. Source: ITU-T H.265 (V9), A.4.2 and table A.8. */
static int dpb_of(int level, int64_t pixels)
{
    static const struct {
        int level;
        int64_t pixels;
    } most[] = {{30, 36864},    {60, 122880},   {63, 245760},    {90, 552960},    {93, 983040},
                {123, 2228224}, {156, 8912896}, {186, 35651584}, {216, 142606336}};
    for (size_t i = 0; i < sizeof most / sizeof most[0]; i++)
        if (level > 0 && level <= most[i].level)
            return pixels <= most[i].pixels / 4       ? MOST_FRAMES
                   : pixels <= most[i].pixels / 2     ? 12
                   : pixels <= most[i].pixels * 3 / 4 ? 8
                   : pixels <= most[i].pixels         ? 6
                                                      : MOST_FRAMES; /* it lies */
    return MOST_FRAMES;
}

/* `frames` of them; bytes for each of their pixels beside; bytes beside. */
typedef struct holding {
    int frames;
    double tables;
    size_t beside;
} holding;

static const struct {
    enum AVCodecID id;
    holding holds;
} known[] = {
    {AV_CODEC_ID_VP8, {6, 0.3, 3 * MIB}},        {AV_CODEC_ID_VP9, {10, 0.3, 3 * MIB}},
    {AV_CODEC_ID_AV1, {10, 0.4, 4 * MIB}},       {AV_CODEC_ID_MPEG1VIDEO, {4, 0.6, 2 * MIB}},
    {AV_CODEC_ID_MPEG2VIDEO, {4, 0.6, 2 * MIB}}, {AV_CODEC_ID_MPEG4, {4, 0.8, 2 * MIB}},
    {AV_CODEC_ID_FFV1, {3, 0.5, 6 * MIB}},       {AV_CODEC_ID_PRORES, {2, 0, 2 * MIB}},
    {AV_CODEC_ID_MJPEG, {2, 0, 2 * MIB}},        {AV_CODEC_ID_GIF, {3, 4, 2 * MIB}},
    {AV_CODEC_ID_RAWVIDEO, {3, 0, 2 * MIB}},     {AV_CODEC_ID_DNXHD, {2, 0, 2 * MIB}},
};

/* What is decoded, of which less may be shown. */
static int wide(const AVCodecContext *c)
{
    return c->coded_width > c->width ? c->coded_width : c->width;
}

static int high(const AVCodecContext *c)
{
    return c->coded_height > c->height ? c->coded_height : c->height;
}

/* References that a level allows (H.264, table A-1: macroblocks of the decoded picture buffer). */
static int refs_of_level(const AVCodecContext *c)
{
    static const struct {
        int level, blocks;
    } most[] = {{10, 396},   {12, 2376},   {20, 2376},   {21, 4752},
                {30, 8100},  {31, 18000},  {32, 20480},  {41, 32768},
                {42, 34816}, {50, 110400}, {52, 184320}, {62, 696320}};
    const int blocks = ((wide(c) + 15) / 16) * ((high(c) + 15) / 16);
    for (size_t i = 0; i < sizeof most / sizeof most[0]; i++)
        if (c->level > 0 && c->level <= most[i].level)
            return (int)tgi_clamp(most[i].blocks / blocks, 1, MOST_FRAMES);
    return MOST_FRAMES;
}

static holding holding_of(const AVCodecContext *c, int changes)
{
    const int64_t pixels = (int64_t)wide(c) * high(c);
    if (c->codec_id == AV_CODEC_ID_H264) {
        int refs = (int)tgi_clamp(c->refs, 1, MOST_FRAMES);
        if (changes && refs_of_level(c) > refs)
            refs = refs_of_level(c);
        return (holding){refs + (int)tgi_clamp(c->has_b_frames, 2, MOST_FRAMES) + 1, 0.65,
                         4 * MIB};
    }
    if (c->codec_id == AV_CODEC_ID_HEVC)
        return (holding){dpb_of(c->level, pixels) + 2, 0.8, 4 * MIB};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i].id == c->codec_id)
            return known[i].holds;
    return (holding){8, 8, 12 * MIB}; /* nobody measured it */
}

/* Bytes of a pixel, all planes together. */
static double pixel_of(const tgi_av_form *f)
{
    double n = 0;
    for (int i = 0; i < f->n_components; i++) {
        const int chroma = !f->is_rgb && (i == 1 || i == 2);
        n += (f->wide ? 2.0 : 1.0) / (1 << (chroma ? f->log2_chroma_w + f->log2_chroma_h : 0));
    }
    return n;
}

#define NARROW ((size_t)160) /* columns, with a border, of which a row has no fewer */
static size_t all_of(int width, int height, double per_pixel, size_t beside)
{
    const size_t pixels = tgi_sat_mul(tgi_max((size_t)width + 64, NARROW), (size_t)height + 64);
    return tgi_sat_add(beside, (size_t)(per_pixel * (double)pixels));
}

/* Of a track that is not the film libavformat opens a decoder, too, to know what its header does not say; of pictures with their
 * first frames. Measured over 32 tracks of each codec: AAC 0.33 to 0.39 MiB a channel, others up to 0.18; H.264
 * of 640 x 480 3.8 MiB, of 4096 x 2160 18. */
size_t tgi_av_others_bytes(const AVFormatContext *c, int film)
{
    size_t n = 0;
    for (int i = 0; i < (int)c->nb_streams; i++) {
        const AVCodecParameters *p = c->streams[i]->codecpar;
        const double channels = tgi_av_channels_of(p);
        if (i == film || (c->streams[i]->disposition & AV_DISPOSITION_ATTACHED_PIC))
            continue;
        if (p->codec_type == AVMEDIA_TYPE_AUDIO)
            n += (size_t)((p->codec_id == AV_CODEC_ID_AAC ? 0.42 : 0.2) * channels * MIB);
        else if (p->codec_type == AVMEDIA_TYPE_VIDEO && p->width > 0 && p->height > 0)
            n = tgi_sat_add(n, all_of(p->width, p->height, 2.2, 4 * MIB));
    }
    return n;
}

/* libvpx decodes colours and alpha each with a decoder of its own, both of them 4:2:0, into frames with a border, which
 * become a frame of libavcodec's. */
#define VPX_BORDER 320
static size_t bytes_of_two(const AVCodecContext *c, const tgi_av_form *f)
{
    const double frames = c->codec_id == AV_CODEC_ID_VP8 ? 6 : 12;
    const size_t each =
        all_of(wide(c) + VPX_BORDER, high(c) + VPX_BORDER, frames * 1.8, 3 * MIB);
    return tgi_sat_add(tgi_sat_mul(f->has_alpha ? 2 : 1, each),
                       all_of(wide(c), high(c), 3 * pixel_of(f), 0));
}

size_t tgi_av_decoder_bytes(const AVCodecContext *c, const tgi_av_form *f, int changes,
                            size_t each, size_t *frames)
{
    const holding h = holding_of(c, changes);
    *frames = all_of(wide(c), high(c), h.frames * pixel_of(f), 0);
    if (tgi_sat_mul((size_t)h.frames, each) > *frames) /* narrow ones: rows are padded */
        *frames = tgi_sat_mul((size_t)h.frames, each);
    if (strncmp(c->codec->name, "libvpx", 6) == 0)
        return bytes_of_two(c, f);
    return tgi_sat_add(*frames, all_of(wide(c), high(c), h.frames * h.tables, h.beside));
}

/* ---- Encoders ---------------------------------------------------------------------------- */

/* Bytes for each pixel of 4:2:0 and 8 bits, and for others by four fifths of what they have more; or that many frames. */
static const struct {
    const char *codec;
    double per_pixel, frames;
    size_t beside;
    double fields;  /* more for each pixel of frames of two moments; */
    double slow[3]; /* where it is slow, slower, veryslow */
} encoders[] = {{"h264", 95, 0, 5 * MIB, 45, {12, 40, 195}},
                {"hevc", 155, 0, 26 * MIB, 0, {10, 60, 60}},
                {"av1", 92, 0, 52 * MIB, 0, {40, 40, 40}},
                {"vp9", 92, 0, 24 * MIB, 0, {4, 4, 4}},
                {"ffv1", 0, 8, 3 * MIB, 0, {0}},
                {"prores", 0, 5, 2 * MIB, 0, {0}}};

size_t tgi_av_encoder_bytes(const tgi_av_coding *c)
{
    const double pixel = pixel_of(&c->form), more = pixel / 1.5 - 1;
    for (size_t i = 0; i < sizeof encoders / sizeof encoders[0]; i++) {
        if (strcmp(encoders[i].codec, c->codec) != 0)
            continue;
        const int slow = c->speed - TGI_AV_MEDIUM - 1;
        double each = (encoders[i].per_pixel + (slow >= 0 ? encoders[i].slow[slow] : 0) +
                       (c->fields ? encoders[i].fields : 0)) *
                          (more > 0 ? 1 + 0.8 * more : 1) +
                      encoders[i].frames * pixel;
        if (strcmp(c->codec, "ffv1") == 0 && !tgi_av_ffv1_is_lean())
            each += TGI_AV_FFV1_PER_PIXEL;
        return all_of(c->width, c->height, each, encoders[i].beside);
    }
    return SIZE_MAX;
}
