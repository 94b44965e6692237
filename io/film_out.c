/* film_out.c - see film_out.h. */
#include "io/film_out.h"

#include "engine/base/arith.h"
#include "engine/base/size.h"
#include "io/av/av_open.h"
#include "io/raw_frames.h"
#include "io/y4m.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Frames of a segment: what follows a key frame, and what a stop costs at most. Where each frame
 * stands alone, few. */
#define SEGMENT 48
#define SEGMENT_ALONE 8

/* That a muxer of MP4 keeps of each packet, in a table that doubles; of others less. */
#define PACKET_BYTES ((size_t)144)
#define PACKET_HEAD 64 /* that a container has for each, about */
/* Of headers and attached files: three while the film is read again, of which one is written; and a buffer of the
 * muxer, that grows by half. */
#define HEADER_COPIES 5

static const struct {
    const char *suffix, *container;
    const char *codec; /* where nobody asks for one */
    int turns;         /* it says how a film is turned for viewing */
} containers[] = {{"mp4", "mp4", "h264", 1},
                  {"m4v", "mp4", "h264", 1},
                  {"mov", "mov", "h264", 1},
                  {"mkv", "matroska", "h264", 0},
                  {"webm", "webm", "vp9", 0},
                  {"y4m", TGI_Y4M_CONTAINER, "rawvideo", 0},
                  {"raw", TGI_RAW_CONTAINER, TGI_RAW_CODEC, 0}};

/* `disk`: bytes for each sample, of noise; what is lossless takes as much as the samples do at most. `crf`: at which that
 * is so, `halves`: a crf so much higher takes half of it. `nanoseconds` of a processor for each pixel, measured over 60
 * frames of 1280 x 720 (tests/film/film_raw.c, encode). */
static const struct {
    const char *codec;
    int alone; /* frames need no other ones */
    int lossless;
    int says;   /* its own bits say range and matrix, whatever the container says */
    int fields; /* frames of two moments have so many rows, or a multiple; 0: there are none */
    int most_crf; /* 0: it has none */
    double disk;
    int crf, halves;
    double nanoseconds;
} codecs[] = {
    {"h264", 0, 0, 1, 4, 51, 0.15, 18, 6, 66}, {"hevc", 0, 0, 1, 0, 51, 0.15, 20, 6, 125},
    {"av1", 0, 0, 1, 0, 63, 0.1, 30, 9, 420},  {"vp9", 0, 0, 1, 0, 63, 0.1, 28, 9, 90},
    {"ffv1", 1, 1, 0, 1, 0, 1.1, 0, 0, 15},    {"prores", 1, 0, 0, 2, 0, 0.5, 0, 0, 320},
    {"rawvideo", 1, 1, 0, 1, 0, 1.1, 0, 0, 2}, {TGI_RAW_CODEC, 1, 1, 0, 0, 0, 1.1, 0, 0, 2},
};

/* One more thing that changes. */
static void note(tgi_film_out *o, const char *fmt, ...) TGI_PRINTF(2, 3);
static void note(tgi_film_out *o, const char *fmt, ...)
{
    va_list args;
    size_t n = strlen(o->note);
    if (n)
        n += (size_t)snprintf(o->note + n, sizeof o->note - n, "; ");
    va_start(args, fmt);
    if (n < sizeof o->note)
        vsnprintf(o->note + n, sizeof o->note - n, fmt, args);
    va_end(args);
}

/* `raw`: what goes to standard output has no header. */
static int container_of(const char *path, int raw)
{
    const char *dot = path && strcmp(path, TGI_FILM_STDOUT) == 0 ? (raw ? ".raw" : ".y4m")
                      : path                                     ? strrchr(path, '.')
                                                                 : NULL;
    char end[8];
    if (!dot || strlen(dot + 1) >= sizeof end)
        return -1;
    for (size_t i = 0; i <= strlen(dot + 1); i++)
        end[i] = (char)tolower((unsigned char)dot[1 + i]);
    for (size_t i = 0; i < sizeof containers / sizeof containers[0]; i++)
        if (strcmp(containers[i].suffix, end) == 0)
            return (int)i;
    return -1;
}

const char *tgi_film_container(const char *path)
{
    const int i = container_of(path, 0);
    return i < 0 ? NULL : containers[i].container;
}

int tgi_film_is_bare(const char *container)
{
    return strcmp(container, TGI_Y4M_CONTAINER) == 0 ||
           strcmp(container, TGI_RAW_CONTAINER) == 0;
}

static int is_bare(const tgi_film_out *o)
{
    return tgi_film_is_bare(o->container);
}

int tgi_film_says_turns(const char *path)
{
    const int i = container_of(path, 0);
    return i >= 0 && containers[i].turns;
}

static int codec_of(const char *name)
{
    for (size_t i = 0; i < sizeof codecs / sizeof codecs[0]; i++)
        if (strcmp(codecs[i].codec, name) == 0)
            return (int)i;
    return -1;
}

/* ---- How frames are stored --------------------------------------------------------------- */

/* A few colours, which nobody chose for chroma of all pixels, that not every player takes. */
static int is_of_a_palette(const tgi_av_info *i)
{
    return strcmp(i->codec, "gif") == 0;
}

/* Bits of the component that has most. */
static int depth_of(const tgi_av_form *f)
{
    int depth = 0;
    for (int c = 0; c < f->n_components; c++)
        depth = f->component[c].depth > depth ? f->component[c].depth : depth;
    return depth;
}

/* Pixels that nobody asked to have fewer bits. */
static void note_depth(tgi_film_out *o, const tgi_film_frames *of)
{
    const int was = of->from ? depth_of(&of->from->form) : 0, now = depth_of(&o->coding.form);
    const int bits = of->dtype != TG_DTYPE_U16 ? 8 : was > 8 ? was : 16;
    if (now >= bits)
        return;
    note(o, "pixels of %d bits are stored with %d: a .mkv with --codec ffv1 keeps 16", bits,
         now);
    o->lost++;
}

/* The form in which these pixels would lie if nothing were lost: that of the film that was read,
 * where it has as many samples of such a type; else plain. */
static const char *like(const tgi_film_frames *of, int lossless)
{
    const tgi_av_form *f =
        of->from && !(is_of_a_palette(of->from) && !lossless) ? &of->from->form : NULL;
    const int wide = of->dtype == TG_DTYPE_U16;
    if (f &&
        f->n_components - f->has_alpha ==
            of->samples - (of->samples == 2 || of->samples == 4) &&
        (depth_of(f) > 8) == wide && (f->has_alpha == (of->samples == 2 || of->samples == 4)))
        return f->name;
    if (of->samples <= 2 && lossless)
        return of->samples == 1 ? (wide ? "gray16le" : "gray") : (wide ? "ya16le" : "ya8");
    if (!lossless)
        return wide ? "yuv420p10le" : "yuv420p";
    return of->samples == 3 ? (wide ? "rgb48le" : "rgb24") : (wide ? "rgba64le" : "rgba");
}

/* Chroma for two columns, or two rows, of a film with an odd number of them: not every codec takes it. */
static int halves_odd(const tgi_av_form *f, int64_t width, int64_t height)
{
    return !f->is_rgb && ((f->log2_chroma_w && width % 2) || (f->log2_chroma_h && height % 2));
}

static int takes_alpha(const char *codec)
{
    return strcmp(codec, "ffv1") == 0 || strcmp(codec, "prores") == 0 ||
           strcmp(codec, TGI_RAW_CODEC) == 0;
}

static int is_raw(const tgi_film_out *o)
{
    return strcmp(o->container, TGI_RAW_CONTAINER) == 0;
}

/* Nobody can tell from frames without a header what they are: of other films they are what everybody expects. */
static int is_plain(const tgi_film_out *o, const tgi_film_frames *of)
{
    return is_raw(o) && of->passing != TGI_FILM_PASSES_BUT_LUMA && of->from &&
           strcmp(of->from->container, TGI_RAW_CONTAINER) != 0;
}

/* The codec has no such frames. */
static tg_status refuse_form(const tgi_film_out *o, const char *form, const char *nearest,
                             tgi_err *err)
{
    char all[600];
    *err = (tgi_err){0};
    o->ops->forms(o->coding.codec, all, sizeof all);
    return tgi_fail(err, TG_E_ARG, "--pix-fmt %s: %s has no such frames%s%s; it takes %s", form,
                    o->coding.codec, nearest[0] ? ", nearest is " : "", nearest, all);
}

static tg_status choose_form(tgi_film_out *o, const tgi_film_frames *of,
                             const tgi_film_wish *wish, int lossless, int turns, tgi_err *err)
{
    tgi_av_form *f = &o->coding.form;
    const int alpha = of->samples == 2 || of->samples == 4;
    tgi_film_frames bare = *of;
    if (alpha && wish->drop_alpha && !takes_alpha(o->coding.codec))
        bare.samples--;
    if (is_plain(o, of))
        bare.from = NULL;
    const char *want = wish->form ? wish->form : like(&bare, lossless);
    const tg_status st = o->ops->form_for(o->coding.codec, want, f, err);
    if (wish->form && (st != TG_OK || strcmp(f->name, wish->form) != 0))
        return refuse_form(o, wish->form, st == TG_OK ? f->name : "", err);
    TGI_TRY(st);
    const int lies = of->from && turns && of->from->rotation % 180; /* stored on its side */
    if (!wish->form && !is_raw(o) &&
        halves_odd(f, lies ? of->height : of->width, lies ? of->width : of->height)) {
        TGI_TRY(o->ops->form_for(o->coding.codec,
                                 of->dtype == TG_DTYPE_U16 ? (f->has_alpha ? "yuva444p16le"
                                                              : lossless   ? "yuv444p16le"
                                                                           : "yuv444p10le")
                                 : f->has_alpha            ? "yuva444p"
                                                           : "yuv444p",
                                 f, err));
        note(o, "an odd number of rows or columns: stored as %s, which not every player takes",
             f->name);
    }
    if (alpha && !wish->drop_alpha && !f->has_alpha && is_raw(o))
        return tgi_fail(err, TG_E_ARG,
                        "--pix-fmt %s has no alpha, and the pictures do: choose another, as "
                        "rgba, or give --drop-alpha",
                        f->name);
    if (alpha && !wish->drop_alpha && !(f->has_alpha && takes_alpha(o->coding.codec)))
        return tgi_fail(
            err, TG_E_UNSUPPORTED,
            "films of codec %s have no alpha, and the pictures do: write a .mov with "
            "--codec prores or a .mkv with --codec ffv1, or give --drop-alpha",
            o->coding.codec);
    return TG_OK;
}

static void set(char *to, size_t cap, const char *text)
{
    snprintf(to, cap, "%s", text);
}

/* These forms of ffmpeg's say their range by their names. */
static int says_full(const tgi_av_form *f)
{
    return strncmp(f->name, "yuvj", 4) == 0;
}

/* What the numbers mean: as in the film that was read where both have colours in the same way. */
static void choose_tags(tgi_av_form *f, const tgi_film_frames *of)
{
    const tgi_av_form *was = of->from ? &of->from->form : NULL;
    const int chroma = !f->is_rgb && f->n_components > 2;
    if (was) {
        set(f->primaries, sizeof f->primaries, was->primaries);
        set(f->transfer, sizeof f->transfer, was->transfer);
    }
    if (was && was->is_rgb == f->is_rgb && (was->n_components > 2) == (f->n_components > 2)) {
        set(f->range, sizeof f->range, was->range);
        set(f->matrix, sizeof f->matrix, was->matrix);
        set(f->chroma_place, sizeof f->chroma_place, was->chroma_place);
        /* what is assumed of it follows from its height */
        if (chroma && !f->matrix[0] && (of->from->height >= 720) != (of->height >= 720))
            set(f->matrix, sizeof f->matrix, of->from->height >= 720 ? "bt709" : "smpte170m");
        return;
    }
    set(f->range, sizeof f->range, chroma ? "tv" : "pc");
    set(f->matrix, sizeof f->matrix, chroma ? "bt709" : f->is_rgb ? "gbr" : "");
    set(f->chroma_place, sizeof f->chroma_place, chroma && f->log2_chroma_w ? "left" : "");
}

/* Nor does a MOV say the range, where its codec does not; of ProRes nobody says it. Then what a reader assumes is what is
 * written: limited, of grey full. */
static void say_range(tgi_film_out *o, int turns)
{
    tgi_av_form *f = &o->coding.form;
    const char *assumed = f->n_components < 3 ? "pc" : "tv";
    if (f->is_rgb || !f->range[0] || strcmp(f->range, assumed) == 0 ||
        !(turns || strcmp(o->coding.codec, "prores") == 0))
        return;
    set(f->range, sizeof f->range, assumed);
    note(o, "a %s of %s does not say that its range is %s: it is %s", o->container,
         o->coding.codec, f->n_components < 3 ? "limited" : "full",
         f->n_components < 3 ? "full" : "limited");
    o->lost++;
}

/* Where chroma of fewer samples lies: H.264 and HEVC say it, a Matroska of all places but those at the bottom. */
static int holds_place(const tgi_film_out *o, const char *place)
{
    if (strcmp(o->coding.codec, "h264") == 0 || strcmp(o->coding.codec, "hevc") == 0)
        return 1;
    return (strcmp(o->container, "matroska") == 0 || strcmp(o->container, "webm") == 0) &&
           strncmp(place, "bottom", 6) != 0;
}

/* Where nobody says it readers take it to lie on the left, so there it is put. Chroma that passes by stays where it was. */
static void say_place(tgi_film_out *o)
{
    tgi_av_form *f = &o->coding.form;
    if (f->is_rgb || !f->log2_chroma_w || !f->chroma_place[0] ||
        strcmp(f->chroma_place, "left") == 0 || holds_place(o, f->chroma_place))
        return;
    note(o, "a %s of %s does not say that chroma lies at %s%s", o->container, o->coding.codec,
         f->chroma_place,
         o->passing == TGI_FILM_PASSES_BUT_LUMA
             ? ": readers show it half a pixel or less beside"
             : ": it is put on the left, where readers take it to lie");
    set(f->chroma_place, sizeof f->chroma_place, "left");
    o->lost++;
}

/* Nor does a YUV4MPEG2 say a matrix, and of places of chroma it knows three. */
static void say_y4m(tgi_film_out *o, const tgi_film_frames *of)
{
    tgi_av_form *f = &o->coding.form;
    const tgi_av_form *was = of->from ? &of->from->form : NULL;
    const char *place = tgi_y4m_place(f), *assumed = of->height >= 720 ? "bt709" : "smpte170m";
    if (f->n_components > 2 && (!was || was->is_rgb || was->n_components < 3))
        set(f->matrix, sizeof f->matrix, assumed);
    if (f->chroma_place[0] && place[0] && strcmp(f->chroma_place, place) != 0)
        note(o, "chroma of %s lies at %s in a .y4m, not at %s", f->name, place,
             f->chroma_place);
    set(f->chroma_place, sizeof f->chroma_place, place);
    if (f->n_components > 2 && f->matrix[0] && strcmp(f->matrix, assumed) != 0 &&
        !(strcmp(f->matrix, "bt470bg") == 0 && of->height < 720))
        note(o, "a .y4m does not say that its matrix is %s: tell who reads it", f->matrix);
}

/* Nor do frames without a header say anything: what is not assumed of them is told here. */
static void say_raw(tgi_film_out *o, const tgi_film_frames *of)
{
    tgi_av_form *f = &o->coding.form;
    const tgi_av_form *was = of->from ? &of->from->form : NULL;
    const char *assumed = of->height >= 720 ? "bt709" : "smpte170m";
    if (f->is_rgb || f->n_components < 3)
        return;
    if (!was || was->is_rgb || was->n_components < 3)
        set(f->matrix, sizeof f->matrix, assumed);
    if (strcmp(f->range, "pc") == 0)
        note(o, "frames without a header do not say that their range is full: tell who reads "
                "them");
    if (f->matrix[0] && strcmp(f->matrix, assumed) != 0 &&
        !(strcmp(f->matrix, "bt470bg") == 0 && of->height < 720))
        note(o,
             "frames without a header do not say that their matrix is %s: tell who reads them",
             f->matrix);
}

/* ---- All of it --------------------------------------------------------------------------- */

/* A WebM says the shape of pixels by how many columns a frame is shown with, a whole number. */
static void note_shape(tgi_film_out *o)
{
    const tgi_av_ratio shape = o->coding.pixel_aspect;
    int64_t n;
    if (strcmp(o->container, "webm") != 0 || shape.num < 1 || shape.den < 1 ||
        !tgi_mul64_ok(o->coding.width, shape.num, &n) || n % shape.den == 0)
        return;
    note(
        o,
        "a webm says the shape of pixels in whole columns: frames are shown with %lld of them, "
        "not %.2f; a .mkv says it as it is",
        llround((double)n / (double)shape.den), (double)n / (double)shape.den);
    o->lost++;
}

static tg_status choose_size(tgi_film_out *o, int container, const tgi_film_frames *of,
                             tgi_err *err)
{
    const tgi_av_info *from = of->from;
    tgi_av_info stored = {.form = o->coding.form};
    if (from && containers[container].turns) {
        stored.rotation = from->rotation;
        stored.flipped = from->flipped;
    }
    const int lies = stored.rotation == 90 || stored.rotation == 270;
    o->coding.width = stored.width = (int)(lies ? of->height : of->width);
    o->coding.height = stored.height = (int)(lies ? of->width : of->height);
    o->coding.pixel_aspect = from ? from->pixel_aspect : (tgi_av_ratio){0, 1};
    TGI_TRY(tgi_film_pixels_make(&stored, &o->pixels, err));
    o->pixels.dtype = of->dtype;
    if (from && !containers[container].turns && (from->rotation || from->flipped)) {
        const int side = from->rotation == 90 || from->rotation == 270;
        if (side && o->coding.pixel_aspect.num)
            o->coding.pixel_aspect =
                (tgi_av_ratio){o->coding.pixel_aspect.den, o->coding.pixel_aspect.num};
        note(o, "a %s does not say how it is turned for viewing: its pixels are turned",
             containers[container].suffix);
        o->lost++;
    }
    note_shape(o);
    return TG_OK;
}

/* Frames a second as a fraction of numbers that containers hold; 25 where nobody knows. */
static tgi_av_ratio rate_of(double rate)
{
    const double every = rate > 0 ? 1 / rate : 0;
    if (every >= 1e-4 && every < 2000)
        return (tgi_av_ratio){1000000, llrint(every * 1e6)};
    if (every >= 2000 && every < 2e6)
        return (tgi_av_ratio){1000, llrint(every * 1000)};
    return (tgi_av_ratio){25, 1};
}

/* Rows of two moments, where each row is what it was. */
static void choose_fields(tgi_film_out *o, int container, int codec, const tgi_av_info *from)
{
    const int turned =
        from && (from->rotation || from->flipped) && !containers[container].turns;
    if (from && from->interlaced == 1 && !turned && codecs[codec].fields &&
        o->coding.width == from->width && o->coding.height == from->height &&
        o->coding.height % codecs[codec].fields == 0)
        o->coding.fields = from->fields;
}

static tg_status choose_rate(tgi_film_out *o, const tgi_film_frames *of, tgi_err *err)
{
    const tgi_av_info *from = of->from;
    const int asked = of->asked.num > 0;
    o->time_base = from && from->has_times && !asked ? from->time_base : (tgi_av_ratio){0, 1};
    o->coding.rate = asked                ? of->asked
                     : from && is_bare(o) ? from->mean
                     : from               ? from->rate
                                          : (tgi_av_ratio){0, 1};
    if (!o->coding.rate.num)
        o->coding.rate = rate_of(of->rate);
    if (!o->time_base.num) /* each frame a tick */
        o->time_base = (tgi_av_ratio){o->coding.rate.den, o->coding.rate.num};
    if (o->coding.rate.num > 1000 * o->coding.rate.den &&
        (strcmp(o->container, "matroska") == 0 || strcmp(o->container, "webm") == 0))
        return tgi_fail(
            err, TG_E_ARG,
            "%lld frames a second: %s has times in milliseconds: write .mov or .mp4, or "
            "give another --fps",
            (long long)(o->coding.rate.num / o->coding.rate.den), o->container);
    return TG_OK;
}

/* Bytes that a film's packets take. What forgets is guessed: as noise, or less where a film was read whose own packets are
 * small: half the square root of its bytes for each pixel covers 19 of 20 films of the
 * samples through a denoiser, and is three times what they take in the median. */
static double guess_disk(const tgi_film_out *o, const tgi_film_frames *of, int codec)
{
    const tgi_av_form *f = &o->coding.form;
    const tgi_av_info *from = of->from;
    const double pixels = (double)of->width * (double)of->height, wide = f->wide ? 2 : 1;
    double samples = 0;
    for (int c = 0; c < f->n_components; c++)
        samples += !f->is_rgb && (c == 1 || c == 2)
                       ? 1.0 / (1 << (f->log2_chroma_w + f->log2_chroma_h))
                       : 1;
    double each = codecs[codec].disk * samples * wide;
    if (!codecs[codec].alone) {
        if (from && from->own_bytes > 0 && from->frames > 0)
            each = fmin(each, 0.5 * sqrt((double)from->own_bytes / (double)from->frames /
                                         from->width / from->height));
        if (o->coding.crf >= 0)
            each *= exp2((double)(codecs[codec].crf - o->coding.crf) / codecs[codec].halves);
        each = fmin(each, 1.1 * samples * wide);
    }
    return PACKET_HEAD + each * pixels;
}

static void count(tgi_film_out *o, const tgi_film_frames *of, int codec)
{
    const int64_t others = of->from ? of->from->other_packets : 0;
    const double frames = o->endless ? 1 : (double)of->frames;
    o->frame_bytes = tgi_sat_mul(tgi_sat_mul((size_t)of->width, (size_t)of->height),
                                 (size_t)o->samples * tgi_dtype_size(of->dtype));
    o->bytes = tgi_sat_add(tgi_sat_add(o->frame_bytes, tgi_film_row_room(&o->pixels)),
                           o->ops->encoder_bytes(&o->coding));
    if (!o->pipe && !o->endless)
        o->tables = tgi_sat_mul(PACKET_BYTES, (size_t)of->frames + (size_t)others);
    o->disk = frames * guess_disk(o, of, codec);
    o->guessed = !codecs[codec].alone;
    o->seconds =
        codecs[codec].nanoseconds * 1e-9 * (double)of->width * (double)of->height * frames;
    if (of->from && !of->asked.num && o->ops != &tgi_y4m_ops) {
        const size_t headers =
            of->from->header_bytes -
            (strcmp(o->container, "matroska") == 0 ? 0 : of->from->attached_bytes);
        o->copied = (double)of->from->other_bytes + (double)headers;
        o->tables = tgi_sat_add(o->tables, tgi_sat_mul(HEADER_COPIES, headers));
    }
}

static tg_status writer_of(tgi_film_out *o, tgi_err *err)
{
    o->ops = &tgi_y4m_ops;
    return is_bare(o) ? TG_OK : tgi_av_ops_get(&o->ops, err);
}

/* All numbers of the film that is read, where nothing is hidden. */
static int keeps(const tgi_film_out *o, const tgi_film_frames *of)
{
    tgi_err none = {0};
    tgi_film_bypass how = {.to = o->pixels, .scale = {1, 1}};
    return tgi_film_pixels_make(of->from, &how.from, &none) == TG_OK &&
           tgi_film_bypass_keeps(&how);
}

tg_status tgi_film_out_make(const char *path, const tgi_film_frames *of,
                            const tgi_film_wish *wish, tgi_film_out *out, tgi_err *err)
{
    tgi_film_out *o = out;
    const int container = container_of(path, wish->raw);
    const int seen = of->samples - (of->passing == TGI_FILM_PASSES_ALPHA);
    *o = (tgi_film_out){.samples = of->passing == TGI_FILM_PASSES_BUT_LUMA ? 1 : seen,
                        .passing = of->passing,
                        .frames = of->frames,
                        .pipe = strcmp(path, TGI_FILM_STDOUT) == 0,
                        .endless = of->endless};
    o->container = containers[container].container;
    TGI_TRY(writer_of(o, err));
    const int own = is_bare(o) && wish->codec && strcmp(wish->codec, "rawvideo") == 0;
    const char *name = wish->codec && !own ? wish->codec : containers[container].codec;
    const int codec = codec_of(name);
    set(o->coding.codec, sizeof o->coding.codec, name);
    if (of->dtype != TG_DTYPE_U8 && of->dtype != TG_DTYPE_U16)
        return tgi_fail(err, TG_E_ARG,
                        "%s: a film has pixels of uint8 or uint16, not %s: choose --dtype",
                        path, tgi_dtype_name(of->dtype));
    if (of->samples > 4 || of->height > 16384 || of->width > 16384)
        return tgi_fail(err, TG_E_ARG,
                        "%s: a film has at most 4 samples in 16384 x 16384 pixels", path);
    if (codec < 0)
        return tgi_fail(
            err, TG_E_ARG,
            wish->like_input
                ? "--codec copy-like-input: the film that is read is %s, and films are written "
                  "as h264, hevc, av1, vp9, ffv1 or prores"
                : "--codec %s: films are written as h264, hevc, av1, vp9, ffv1 or prores",
            name);
    if (wish->crf >= 0 && codecs[codec].alone)
        return tgi_fail(err, TG_E_ARG, "--crf %d: %s %s: leave it out", wish->crf,
                        is_bare(o) ? path : name,
                        is_bare(o)               ? "holds frames as they are"
                        : codecs[codec].lossless ? "loses nothing, and has no such setting"
                                                 : "has no such setting");
    if (wish->crf > codecs[codec].most_crf)
        return tgi_fail(err, TG_E_ARG, "--crf %d: %s has 0 to %d", wish->crf, name,
                        codecs[codec].most_crf);
    if (wish->speed && codecs[codec].alone)
        return tgi_fail(err, TG_E_ARG, "--preset-speed: %s has one speed alone", name);
    o->coding.speed = wish->speed == TGI_AV_MEDIUM ? 0 : wish->speed;
    TGI_TRY(choose_form(o, of, wish, codecs[codec].lossless, containers[container].turns, err));
    if (!wish->form)
        note_depth(o, of);
    if (!o->ops->holds(o->container, name))
        return tgi_fail(err, TG_E_ARG, "%s: a film of codec %s is no %s: write .mkv or .mov",
                        path, name, o->container);
    choose_tags(&o->coding.form, of);
    if (says_full(&o->coding.form))
        set(o->coding.form.range, sizeof o->coding.form.range, "pc");
    if (is_raw(o))
        say_raw(o, of);
    else if (is_bare(o))
        say_y4m(o, of);
    else if (!codecs[codec].says)
        say_range(o, containers[container].turns);
    if (!is_bare(o))
        say_place(o);
    TGI_TRY(choose_size(o, container, of, err));
    choose_fields(o, container, codec, of->from);
    TGI_TRY(choose_rate(o, of, err));
    o->coding.crf = wish->crf;
    o->has_crf = !codecs[codec].alone;
    o->coding.segment = is_bare(o) ? 1 : codecs[codec].alone ? SEGMENT_ALONE : SEGMENT;
    count(o, of, codec);
    static const char *const passing[] = {
        [TGI_FILM_PASSES_NOTHING] = "",
        [TGI_FILM_PASSES_ALPHA] = ", alpha past the network",
        [TGI_FILM_PASSES_BUT_LUMA] = ", luma alone through the network",
        [TGI_FILM_PASSES_OUTSIDE] = ", as it was outside the mask"};
    const int converted = o->passing == TGI_FILM_PASSES_OUTSIDE && !keeps(o, of);
    const char *rest = converted ? ", converted outside the mask, too" : passing[o->passing],
               *fields = o->coding.fields == 1   ? ", interlaced (top rows first)"
                         : o->coding.fields == 2 ? ", interlaced (bottom rows first)"
                                                 : "";
    if (is_bare(o))
        snprintf(o->text, sizeof o->text, "%s in %s%s%s", o->coding.form.name, o->container,
                 rest, fields);
    else
        snprintf(o->text, sizeof o->text, "%s (%s) in %s, segments of %d frames%s%s", name,
                 o->coding.form.name, o->container, o->coding.segment, rest, fields);
    return TG_OK;
}
