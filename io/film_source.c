/* film_source.c - films as images: a plane for each frame, axis T.
 *
 * The plugin (av/av.h) decodes, and what is YUV4MPEG2, or frames without a header, is read without it (y4m.h). Here a frame
 * becomes upright grey or RGB (film_pixels.h), or its planes are kept for whoever converts them (film_yuv.h), until two later
 * ones were asked for, or more where several planes are read in turn. All readers share one decoder; while a frame is read in
 * parts, the next one is made by a thread of its own. A frame of which parts were made up is a bad region as a tile is that
 * cannot be decoded; whether all of the film is there says film_whole.h. */
#include "engine/base/ahead.h"
#include "engine/base/arith.h"
#include "engine/base/busy.h"
#include "engine/base/mem.h"
#include "engine/base/size.h"
#include "io/av/av_open.h"
#include "io/file_ops.h"
#include "io/film_cut.h"
#include "io/film_kept.h"
#include "io/film_out.h"
#include "io/film_pixels.h"
#include "io/film_whole.h"
#include "io/film_yuv.h"
#include "io/io_formats.h"
#include "io/raw_frames.h"
#include "io/y4m.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define DEFAULT_BUDGET ((size_t)1 << 30)
#define KEEP 2 /* frames: one that is read, one that is read ahead */
#define NO_FRAME INT64_MIN
#define MISSING (-1)                     /* of a kept frame's `bad`: it was not decoded */
#define THREAD_BYTES ((size_t)128 << 10) /* that the thread ahead touches of its stack */

typedef struct film {
    tgi_source base;
    const tgi_av_ops *ops;
    tgi_av_film *film;
    tgi_av_info said; /* of the frames that are read */
    int64_t first;    /* of them, in the film */
    tgi_film_pixels pixels;
    tgi_film_pixels stored; /* where something passes by: of all that a frame has */
    tgi_film_passing passing;
    int yuv;        /* frames are kept as Y, U and V */
    int rest_alone; /* its frames have no pixels: nothing is read, the rest of them alone is put */
    int rest_ahead; /* and frames that are read before the rest of one is put */
    tgi_image_info info;
    tgi_held held;
    int stream;           /* it comes through a pipe, */
    int64_t came;         /* and so many of its frames did; under the lock */
    int keep_bad;         /* what a decoder made up is taken */
    int64_t of_cut;       /* frames that are there, where its header declares more */
    int64_t empty;        /* frames that an AVI counts and that have no picture */
    char axes[16];        /* as somebody says they are; "": nobody does */
    pthread_mutex_t lock; /* of all that decodes */
    tgi_film_kept kept;
    struct { /* the next frame, before somebody asks for it */
        pthread_mutex_t lock;
        tgi_ahead thread;
        int tried, works;
        int64_t at, before; /* frames that were read last */
        int64_t wanted;
        int64_t
            failed; /* a frame that cannot be made, and why; under the film's lock; -1: none */
        tg_status st;
        tgi_err err;
    } ahead;
    size_t frame_bytes, rest_bytes, budget; /* rest: behind the pixels, what passes by */
    char *room;                             /* for converting a row, and behind that the row */
    pthread_mutex_t room_lock; /* of those that read frames which are kept as Y, U and V */
    uint64_t decoded;
    tgi_busy busy;      /* while a frame is made */
    atomic_uint beside; /* of the frames that were read (tgi_av_ops) */
    tgi_bad_region_fn *on_bad;
    void *on_bad_arg;
} film;

/* `s` if it is one, or made of one. */
static film *film_of(const tgi_source *of)
{
    of = tgi_source_inmost(of);
    return of && of->ops == &tgi_film_source_ops ? (film *)(uintptr_t)of : NULL;
}

/* ---- Memory ------------------------------------------------------------------------------ */

/* The first frame is decoded to know what the decoder needs: such a one in any budget; one of more pixels
 * where it may fit, at the bytes that a pixel takes in any codec. */
#define MANY_PIXELS ((int64_t)1 << 26)
#define LEAST_BYTES 14

static size_t line_bytes(const film *f)
{
    return (size_t)f->pixels.wide * (size_t)f->pixels.samples * tgi_dtype_size(f->pixels.dtype);
}

static size_t room_bytes(const film *f)
{
    return tgi_sat_add(tgi_film_row_room(&f->pixels), line_bytes(f));
}

static size_t all_bytes(const film *f, int frames)
{
    return tgi_sat_add(tgi_sat_add(sizeof *f + THREAD_BYTES,
                                   tgi_sat_mul((size_t)frames, f->frame_bytes + f->rest_bytes)),
                       tgi_sat_add(f->said.decoder_bytes, room_bytes(f)));
}

static tg_status keep_frames(film *f, int n, tgi_err *err)
{
    char size[32];
    const size_t all = all_bytes(f, n);
    if (all > f->budget)
        return tgi_err_tried(
            err,
            tgi_fail(err, TG_E_BUDGET,
                     "decoding %s of %d x %d needs %s alone, more than the whole budget: "
                     "the plan's line `decoder`",
                     f->info.compression, (int)f->pixels.width, (int)f->pixels.height,
                     tgi_size_above(all, size, sizeof size)),
            "a film's decoder", all);
    return tgi_film_kept_make(&f->kept, n, f->frame_bytes + f->rest_bytes, err);
}

/* ---- Open -------------------------------------------------------------------------------- */

static tg_status fill_info(film *f, tgi_err *err)
{
    const tgi_av_info *a = &f->said;
    tgi_image_info *i = &f->info;
    i->format = "film";
    snprintf(i->flavor, sizeof i->flavor, "%.*s", (int)strcspn(a->container, ","),
             a->container);
    i->compression = a->codec;
    i->predictor = 1;
    i->n_levels = i->n_series = 1;
    i->dtype = f->pixels.dtype;
    i->samples = f->pixels.samples;
    i->height = i->block_h = i->level_h[0] = f->pixels.high;
    i->width = i->block_w = i->level_w[0] = f->pixels.wide;
    i->n_planes = a->frames;
    memcpy(i->axes, "TYXS", 4);
    i->n_axes = i->samples > 1 ? 4 : 3;
    i->axes[i->n_axes] = 0;
    i->shape[0] = a->frames;
    i->shape[1] = i->height;
    i->shape[2] = i->width;
    i->shape[3] = i->samples;
    i->n_files = 1;
    i->meta.colours = i->samples >= 3 ? 3 : 0;
    i->meta.alpha = f->pixels.form.has_alpha ? 2 : 0;
    if (a->mean.num)
        i->meta.time_increment = (double)a->mean.den / (double)a->mean.num;
    char losses[128];
    tgi_film_tell_losses(a, f->of_cut, losses, sizeof losses);
    char held[80] = "";
    if (f->empty)
        snprintf(held, sizeof held, "; %lld of its frames hold the one before by empty chunks",
                 (long long)f->empty);
    char counted[96] = "";
    if (!a->has_times)
        snprintf(counted, sizeof counted,
                 a->restarts
                     ? "; its clock starts again amid it, so frames come at %.6g a second"
                 : a->rate.num ? "; frames have no times: %.6g a second"
                               : "; frames have no times",
                 a->rate.num ? (double)a->rate.num / (double)a->rate.den : 0);
    const char *const parts[] = {
        losses,
        held,
        f->pixels.assumed[0] ? "; what the film does not say is assumed: " : "",
        f->pixels.assumed,
        a->no_alpha ? "; its alpha is not seen: libavcodec has no decoder libvpx here" : "",
        a->interlaced == 1 ? "; interlaced, so a frame has the rows of two moments" : "",
        counted};
    size_t n = 0;
    for (size_t k = 0; k < sizeof parts / sizeof parts[0]; k++) {
        const char *text = n ? parts[k] : parts[k] + (parts[k][0] == ';' ? 2 : 0);
        for (; *text && n + 1 < sizeof i->note; text++)
            i->note[n++] = *text;
    }
    i->note[n] = 0;
    return f->axes[0] ? tgi_image_relabel(i, f->axes, err) : TG_OK;
}

/* What is told of a part is told of its frames. */
static tg_status cut(film *f, const tgi_film_cut *c, tgi_err *err)
{
    int64_t until;
    f->said = *f->ops->info(f->film);
    TGI_TRY(tgi_film_cut_find(c, &f->said, f->ops->time, f->film, &f->first, &until, err));
    if (until < f->said.frames)
        f->said.end = f->ops->time(f->film, until);
    f->said.frames = until - f->first;
    return TG_OK;
}

static void film_close(tgi_source **base)
{
    film *f = (film *)*base;
    if (!f)
        return;
    tgi_ahead_close(&f->ahead.thread);
    if (f->film)
        f->ops->close(&f->film);
    tgi_film_kept_close(&f->kept);
    tgi_free(f->room);
    tgi_image_meta_free(&f->info.meta);
    pthread_mutex_destroy(&f->lock);
    pthread_mutex_destroy(&f->room_lock);
    pthread_mutex_destroy(&f->ahead.lock);
    tgi_free(f);
    *base = NULL;
}

/* A frame's bytes are even: what passes by lies behind it. */
static void size_frames(film *f)
{
    f->frame_bytes =
        f->rest_alone ? 0 : tgi_align_size(line_bytes(f) * (size_t)f->pixels.high, 2);
    f->rest_bytes = f->passing ? tgi_film_bypass_bytes(&f->stored, f->passing) : 0;
}

/* What reads it. */
static tg_status reader_of(const char *path, int stream, const tgi_av_ops **out, tgi_err *err)
{
    if (!stream && !tgi_file_begins(path, TGI_Y4M_BEGINS, strlen(TGI_Y4M_BEGINS)))
        return tgi_av_ops_get(out, err);
    *out = &tgi_y4m_ops;
    return TG_OK;
}

static tg_status open_reader(film *f, const char *path, const tgi_open_opts *o,
                             const tgi_av_open *how, tgi_err *err)
{
    tgi_av_info raw;
    if (!o->raw) {
        TGI_TRY(reader_of(path, o->stream, &f->ops, err));
        return f->ops->open(path, how, &f->film, err);
    }
    f->ops = &tgi_y4m_ops;
    TGI_TRY(tgi_raw_info(o->raw, &raw, err));
    return tgi_y4m_open_raw(path, &raw, how, &f->film, err);
}

static tg_status open_parts(film *f, const char *path, const tgi_open_opts *o, tgi_err *err)
{
    const tgi_av_open how = {.threads = o->decoders > 1 ? o->decoders : 1,
                             .most_pixels =
                                 tgi_max(MANY_PIXELS, (int64_t)(f->budget / LEAST_BYTES)),
                             .most_bytes = f->budget,
                             .cancelled = o->cancelled,
                             .steady = o->keep_bad,
                             .truncated = o->truncated};
    if (o->stream && (o->cut.frames || o->cut.start || o->cut.end))
        return tgi_fail(err, TG_E_ARG,
                        "a pipe is read as a whole: no --frames, --start or --end");
    if (o->level)
        return tgi_fail(err, TG_E_ARG,
                        "there is no resolution level %d: a film has full size alone, 0",
                        o->level);
    if (o->axes)
        snprintf(f->axes, sizeof f->axes, "%s", o->axes);
    f->held = (tgi_held){.path = path, .fd = -1};
    f->stream = o->stream;
    if (!f->stream && tgi_stamp_path(path, &f->held.was) != 0)
        return tgi_fail(err, TG_E_NOT_FOUND, "no such file");
    f->info.file_bytes = (uint64_t)f->held.was.size;
    TGI_TRY(open_reader(f, path, o, &how, err));
    f->beside = f->ops->beside(f->film);
    TGI_TRY(tgi_film_check_whole(f->ops->info(f->film), f->held.path, o->truncated, &f->empty,
                                 &f->of_cut, err));
    TGI_TRY(cut(f, &o->cut, err));
    TGI_TRY(tgi_film_pixels_make(&f->said, &f->pixels, err));
    size_frames(f);
    TGI_TRY(fill_info(f, err));
    f->room = tgi_malloc(TGI_TAG_IO, room_bytes(f));
    if (!f->room)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a row of a film");
    return keep_frames(f, KEEP, err);
}

static tg_status film_open(const char *path, const tgi_open_opts *o, tgi_source **out,
                           tgi_err *err)
{
    film *f = tgi_calloc(TGI_TAG_IO, 1, sizeof *f);
    if (!f)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a reader of films");
    *f = (film){.base.ops = &tgi_film_source_ops,
                .on_bad = o->on_bad,
                .on_bad_arg = o->on_bad_arg,
                .keep_bad = o->keep_bad,
                .budget = o->budget          ? o->budget
                          : o->decode_budget ? o->decode_budget
                                             : DEFAULT_BUDGET};
    f->ahead.at = f->ahead.before = f->ahead.wanted = -1;
    f->ahead.failed = NO_FRAME;
    pthread_mutex_init(&f->ahead.lock, NULL);
    pthread_mutex_init(&f->lock, NULL);
    pthread_mutex_init(&f->room_lock, NULL);
    tgi_film_kept_open(&f->kept);
    f->kept.in_order = o->stream;
    const tg_status st = open_parts(f, path, o, err);
    *out = &f->base;
    if (st != TG_OK)
        film_close(out);
    return st;
}

/* ---- Read -------------------------------------------------------------------------------- */

/* A frame that is damaged, or did not come: somebody takes that, or it is an error. What became of it stands in front
 * (bad_tiles.h): "concealed: ...", "concealed, kept: ...", "missing: ...". */
static tg_status note_bad(film *f, int64_t k, const char *reason, tgi_err *err)
{
    const tgi_bad_region r = {
        .plane = k, .sample = -1, .y1 = f->info.height, .x1 = f->info.width, .reason = reason};
    return f->on_bad(f->on_bad_arg, &r, err);
}

static void fill_frame(film *f, char *pixels)
{
    memset(pixels, 0, f->frame_bytes);
    if (f->yuv)
        tgi_film_yuv_black(&f->pixels, pixels);
    if (f->passing)
        tgi_film_bypass_nothing(&f->stored, f->passing, pixels + f->frame_bytes);
}

static tg_status note_concealed(film *f, int64_t k, int how, tgi_err *err)
{
    static const char *const reason[2][2] = {
        {"concealed: parts of the frame are damaged",
         "concealed, kept: parts of the frame are damaged, its decoder made them up"},
        {"refused packet: the frame, or one that it is made of, is damaged",
         "refused packet, kept: the frame, or one that it is made of, is damaged, its decoder "
         "made it up"}};
    if (!f->on_bad)
        return tgi_fail(err, TG_E_FORMAT,
                        "frame %lld: parts of it are damaged; --on-bad-tile keep goes on with "
                        "what its decoder made up, and lists such frames",
                        (long long)(f->first + k));
    return note_bad(f, k, reason[!(how & TGI_AV_MADE_UP)][f->keep_bad != 0], err);
}

/* Frame k, which is asked for the first time and is not whole. */
static tg_status tell_bad(film *f, int64_t k, tgi_kept_frame *of, tgi_err *err)
{
    const int how = of->bad;
    TGI_TRY(how == MISSING ? note_bad(f, k, "missing: the frame cannot be decoded", err)
                           : note_concealed(f, k, how, err));
    if (how == MISSING || !f->keep_bad)
        fill_frame(f, of->bytes);
    return TG_OK;
}

static tg_status make_frame(film *f, int64_t k, tgi_kept_frame *to, tgi_err *err)
{
    tgi_av_frame got;
    const tg_status st = f->ops->frame(f->film, f->first + k, &got, err);
    f->decoded += f->frame_bytes;
    atomic_store(&f->beside, f->ops->beside(f->film));
    if (st == TG_E_FORMAT && f->on_bad &&
        !f->stream) { /* the decoder has no such frame, and somebody takes that */
        *err = (tgi_err){0};
        to->bad = MISSING;
        return TG_OK;
    }
    TGI_TRY(st);
    to->bad = got.concealed;
    if (got.concealed && !f->keep_bad)
        return TG_OK;
    if (f->passing)
        tgi_film_bypass_take(&f->stored, f->passing, &got, to->bytes + f->frame_bytes);
    if (f->yuv)
        tgi_film_yuv_take(&f->pixels, &got, to->bytes);
    for (int64_t y = 0; y < f->pixels.height && !f->rest_alone && !f->yuv; y++)
        tgi_film_row(&f->pixels, &got, y, to->bytes, f->room);
    return TG_OK;
}

static tg_status keep_frame(film *f, int64_t k, tgi_err *err)
{
    if (tgi_film_kept_has(&f->kept, f->first + k))
        return TG_OK;
    tgi_kept_frame *room = tgi_film_kept_room(&f->kept);
    tgi_busy_begin(&f->busy);
    const tg_status st = make_frame(f, k, room, err);
    tgi_busy_end(&f->busy);
    TGI_TRY(st);
    tgi_film_kept_name(&f->kept, room, f->first + k);
    f->came = k + 1;
    return TG_OK;
}

/* Frame k is kept then, by its number in the film; of a pipe, after those before it. Under the lock. */
static tg_status get_frame(film *f, int64_t k, tgi_err *err)
{
    while (f->stream && f->came < k)
        TGI_TRY(keep_frame(f, f->came, err));
    return keep_frame(f, k, err);
}

/* ---- Ahead ------------------------------------------------------------------------------- */

static void make_ahead(void *user)
{
    film *f = user;
    pthread_mutex_lock(&f->ahead.lock);
    const int64_t k = f->ahead.wanted;
    pthread_mutex_unlock(&f->ahead.lock);
    pthread_mutex_lock(&f->lock);
    f->ahead.st = get_frame(f, k, &f->ahead.err);
    f->ahead.failed = f->ahead.st == TG_OK ? NO_FRAME : k;
    pthread_mutex_unlock(&f->lock);
    pthread_mutex_lock(&f->ahead.lock);
    f->ahead.works = 0;
    pthread_mutex_unlock(&f->ahead.lock);
}

/* Frame k is read, and not for the first time, as the one before it was: it is read in parts, and nobody needs an earlier one.
 * A pipe is not read for what nobody asked for. */
static void look_ahead(film *f, int64_t k)
{
    tgi_err none = {0};
    pthread_mutex_lock(&f->ahead.lock);
    const int in_parts = k == f->ahead.at && k == f->ahead.before + 1;
    if (k != f->ahead.at) {
        f->ahead.before = f->ahead.at;
        f->ahead.at = k;
    }
    if (in_parts && !f->stream && !f->ahead.works && f->ahead.wanted != k + 1 &&
        k + 1 < f->said.frames) {
        if (!f->ahead.tried)
            (void)tgi_ahead_open(&f->ahead.thread, make_ahead, f, &none);
        f->ahead.tried = 1;
        if (f->ahead.thread.open) {
            (void)tgi_ahead_take(&f->ahead.thread);
            f->ahead.wanted = k + 1;
            f->ahead.works = 1;
            tgi_ahead_ask(&f->ahead.thread);
        }
    }
    pthread_mutex_unlock(&f->ahead.lock);
}

/* Frame k, made now if it has to be; whoever asks for a bad one first is told. Under the lock. */
static tg_status get_asked(film *f, int64_t k, tgi_kept_frame **out, tgi_err *err)
{
    if (f->ahead.failed == k) {
        f->ahead.failed = NO_FRAME;
        return tgi_fail(err, f->ahead.st, "%s", f->ahead.err.text);
    }
    TGI_TRY(get_frame(f, k, err));
    *out = tgi_film_kept_hold(&f->kept, f->first + k);
    tg_status st = TG_OK;
    if ((*out)->bad)
        st = tell_bad(f, k, *out, err);
    if (st == TG_OK)
        (*out)->bad = 0;
    else
        tgi_film_kept_let_go(&f->kept, *out);
    return st;
}

/* Frame k, held. */
static tg_status hold(film *f, int64_t k, tgi_kept_frame **out, tgi_err *err)
{
    *out = tgi_film_kept_hold(&f->kept, f->first + k);
    if (*out && !(*out)->bad)
        return TG_OK;
    if (*out)
        tgi_film_kept_let_go(&f->kept, *out);
    pthread_mutex_lock(&f->lock);
    const tg_status st = get_asked(f, k, out, err);
    pthread_mutex_unlock(&f->lock);
    return st;
}

/* ---- Pixels ------------------------------------------------------------------------------ */

/* Row y of a frame that is held. */
static const char *row_of(film *f, const tgi_kept_frame *frame, int64_t y)
{
    if (!f->yuv)
        return frame->bytes + (size_t)y * line_bytes(f);
    char *line = f->room + tgi_film_row_room(&f->pixels);
    tgi_film_yuv_row(&f->pixels, frame->bytes, y, line, f->room);
    return line;
}

static tg_status film_read(tgi_source *base, int thread, int64_t plane, int s0, int s1,
                           int64_t y0, int64_t y1, int64_t x0, int64_t x1, void *dst,
                           size_t row_pitch, size_t sample_pitch, tgi_err *err)
{
    film *f = (film *)base;
    const tgi_image_info *i = &f->info;
    tgi_kept_frame *frame;
    (void)thread;
    if (f->rest_alone || plane < -f->first ||
        plane >= f->ops->info(f->film)->frames - f->first || s0 < 0 || s1 > i->samples ||
        y0 < 0 || y1 > i->height || x0 < 0 || x1 > i->width)
        return tgi_fail(err, TG_E_ARG, "a box outside the film: frame %lld, rows %lld:%lld",
                        (long long)plane, (long long)y0, (long long)y1);
    TGI_TRY(hold(f, plane, &frame, err));
    look_ahead(f, plane);
    if (f->yuv) /* not the film's lock: who makes a frame under it may wait for this one */
        pthread_mutex_lock(&f->room_lock);
    for (int64_t y = y0; y < y1; y++)
        tgi_pick_row(i->dtype, i->samples, row_of(f, frame, y), s0, s1, x0, x1,
                     (char *)dst + (size_t)(y - y0) * row_pitch, sample_pitch);
    if (f->yuv)
        pthread_mutex_unlock(&f->room_lock);
    tgi_film_kept_let_go(&f->kept, frame);
    return TG_OK;
}

/* ---- As Y, U and V ----------------------------------------------------------------------- */

int tgi_film_source_yuv(const tgi_source *s, tgi_yuv *out)
{
    const film *f = s && s->ops == &tgi_film_source_ops ? (const film *)s : NULL;
    return f && !f->passing && tgi_film_yuv_of(&f->pixels, out);
}

tg_status tgi_film_source_keep_yuv(tgi_source *s, tgi_err *err)
{
    film *f = film_of(s);
    tg_status st = TG_OK;
    pthread_mutex_lock(&f->lock);
    if (!f->yuv && f->stream && f->came)
        st = tgi_fail(err, TG_E_INTERNAL, "frames that came through a pipe are pixels already");
    else if (!f->yuv)
        tgi_film_kept_forget(&f->kept);
    f->yuv |= st == TG_OK;
    pthread_mutex_unlock(&f->lock);
    return st;
}

tg_status tgi_film_source_stage(tgi_source *s, int64_t k, const tgi_yuv *y,
                                const tgi_yuv_staged *what, void *to, tgi_err *err)
{
    film *f = film_of(s);
    tgi_kept_frame *frame;
    const tg_status st = hold(f, k, &frame, err);
    if (st != TG_OK && st != TG_E_CANCELLED && s->path)
        tgi_err_prefix(err, "%s", s->path);
    TGI_TRY(st);
    look_ahead(f, k);
    tgi_film_yuv_stage(y, what, frame->bytes, to);
    tgi_film_kept_let_go(&f->kept, frame);
    return TG_OK;
}

/* ---- What passes by ---------------------------------------------------------------------- */

tg_status tgi_film_source_split(tgi_source *s, tgi_film_passing what, int ahead, tgi_err *err)
{
    film *f = film_of(s);
    if (!tgi_film_bypass_is_there(&f->said.form, what))
        return tgi_fail(err, TG_E_UNSUPPORTED, "frames of %s have no %s", f->said.form.name,
                        what == TGI_FILM_PASSES_ALPHA ? "alpha" : "luma and chroma");
    f->stored = f->pixels;
    f->passing = what;
    f->rest_alone = ahead == 0;
    TGI_TRY(tgi_film_bypass_seen(&f->said, what, &f->pixels, err));
    size_frames(f);
    TGI_TRY(fill_info(f, err));
    f->rest_ahead = ahead;
    return keep_frames(f, f->rest_alone ? 1 : KEEP + f->rest_ahead, err);
}

tgi_film_passing tgi_film_source_passing(const tgi_source *s)
{
    return film_of(s) ? film_of(s)->passing : TGI_FILM_PASSES_NOTHING;
}

/* A frame that is not kept any more is decoded again. */
tg_status tgi_film_source_put(tgi_source *s, int64_t k, tgi_film_bypass *how,
                              const tgi_av_blank *to, tgi_err *err)
{
    film *f = film_of(s);
    tgi_kept_frame *frame;
    TGI_TRY(hold(f, k, &frame, err));
    how->from = f->stored;
    how->what = f->passing;
    tgi_film_bypass_put(how, frame->bytes + f->frame_bytes, to);
    tgi_film_kept_release(&f->kept, frame);
    return TG_OK;
}

static tg_status film_expect(tgi_source *base, int64_t planes, int64_t stride, tgi_err *err)
{
    film *f = (film *)base;
    (void)stride;
    const int64_t n = planes + 1 + f->rest_ahead;
    const int64_t all =
        f->ops->info(f->film)->frames; /* a window sees frames around a part, too */
    return planes < KEEP || n <= f->kept.n
               ? TG_OK
               : keep_frames(f, (int)tgi_min(n, all + 1 + f->rest_ahead), err);
}

static const tgi_image_info *film_info(const tgi_source *s)
{
    return &((const film *)s)->info;
}

static size_t film_bytes(const tgi_source *s)
{
    const film *f = (const film *)s;
    return all_bytes(f, f->kept.n);
}

static uint64_t film_decoded(const tgi_source *s)
{
    film *f = (film *)(uintptr_t)s;
    pthread_mutex_lock(&f->lock);
    const uint64_t n = f->decoded;
    pthread_mutex_unlock(&f->lock);
    return n;
}

/* ---- What it says of itself --------------------------------------------------------------- */

const tgi_av_info *tgi_film_source_info(const tgi_source *s)
{
    const film *f = film_of(s);
    return f ? &f->said : NULL;
}

unsigned tgi_film_source_beside(tgi_source *s)
{
    film *f = film_of(s);
    return f ? atomic_load(&f->beside) : 0;
}

int64_t tgi_film_source_time(const tgi_source *s, int64_t k)
{
    const film *f = film_of(s);
    const tgi_av_info *i = tgi_film_source_info(s);
    if (!i || !i->has_times)
        return TGI_AV_NO_TIME;
    return k >= i->frames ? i->end : f->ops->time(f->film, f->first + k);
}

size_t tgi_film_source_index_bytes(const tgi_source *s)
{
    return film_of(s) ? film_of(s)->said.index_bytes : 0;
}

int tgi_film_source_track(const tgi_source *s, int i, tgi_av_track *out)
{
    const film *f = film_of(s);
    return f && f->ops->track(f->film, i, out);
}

int tgi_film_source_word(const tgi_source *s, int track, int i, tgi_av_word *out)
{
    const film *f = film_of(s);
    return f && f->ops->word && f->ops->word(f->film, track, i, out);
}

int tgi_film_source_chapter(const tgi_source *s, int i, tgi_av_chapter *out)
{
    const film *f = film_of(s);
    return f && f->ops->chapter && f->ops->chapter(f->film, i, out);
}

const char *tgi_film_source_assumed(const tgi_source *s)
{
    return film_of(s) ? film_of(s)->pixels.assumed : "";
}

int64_t tgi_film_source_first(const tgi_source *s)
{
    return film_of(s) ? film_of(s)->first : 0;
}

void tgi_film_source_around(const tgi_source *s, int64_t *lo, int64_t *hi)
{
    const film *f = film_of(s);
    if (!f)
        return;
    *lo = -f->first;
    *hi = f->ops->info(f->film)->frames - f->first;
}

int tgi_film_source_is_part(const tgi_source *s)
{
    const film *f = film_of(s);
    return f && f->said.frames < f->ops->info(f->film)->frames;
}

int tgi_film_source_has_last(const tgi_source *s)
{
    const film *f = film_of(s);
    return f && f->first + f->said.frames == f->ops->info(f->film)->frames;
}

static int film_held(const tgi_source *s, int64_t i, tgi_held *out)
{
    *out = ((const film *)s)->held;
    out->path = s->path ? s->path : out->path;
    return i == 0 && !((const film *)s)->stream;
}

/* Nanoseconds of a processor for each pixel, measured over films of 320 x 240 and 1280 x 720
 * (tests/film/film_raw.c, decode). */
double tgi_film_source_decoding(const tgi_source *s)
{
    static const struct {
        const char *codec;
        double nanoseconds;
    } of[] = {{"ffv1", 15}, {"mpeg4", 2.5}, {"mjpeg", 3}, {"rawvideo", 0.5}};
    const film *f = film_of(s);
    if (!f)
        return 0;
    double each = 6; /* as H.264, HEVC, AV1, VP9 and ProRes, more or less */
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++)
        each = strcmp(f->said.codec, of[i].codec) == 0 ? of[i].nanoseconds : each;
    return each * 1e-9 * (double)f->said.width * (double)f->said.height *
           (f->stream ? 1 : (double)f->said.frames);
}

int tgi_film_source_is_stream(const tgi_source *s)
{
    return film_of(s) && film_of(s)->stream;
}

tgi_busy *tgi_film_source_busy(const tgi_source *s)
{
    film *f = film_of(s);
    return f ? &f->busy : NULL;
}

int tgi_film_source_keeps(const tgi_source *s)
{
    return film_of(s) ? film_of(s)->kept.n : 0;
}

tg_status tgi_film_source_reach(tgi_source *s, int64_t k, int64_t *end, tgi_err *err)
{
    film *f = film_of(s);
    if (!f || !f->stream)
        return TG_OK;
    pthread_mutex_lock(&f->lock);
    tg_status st = k < f->came ? TG_OK : get_frame(f, k, err);
    const int64_t ended = tgi_y4m_ended(f->film);
    pthread_mutex_unlock(&f->lock);
    if (ended >= 0)
        *end = ended;
    if (st != TG_E_CANCELLED || ended < 0)
        return st;
    *err = (tgi_err){0};
    return TG_OK;
}

int64_t tgi_film_source_ended(const tgi_source *s)
{
    return tgi_film_source_is_stream(s) ? tgi_y4m_ended(film_of(s)->film) : -1;
}

const tgi_source_ops tgi_film_source_ops = {.format = "film",
                                            .fuzzed = TGI_FUZZED_LITTLE,
                                            .probe = tgi_film_probe,
                                            .open = film_open,
                                            .info = film_info,
                                            .read = film_read,
                                            .close = film_close,
                                            .codec_bytes = film_bytes,
                                            .expect = film_expect,
                                            .decoded_bytes = film_decoded,
                                            .held = film_held};
