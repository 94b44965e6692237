/* job_film.c - see job_film.h. */
#include "engine/job/job_film.h"

#include "engine/base/arith.h"
#include "engine/base/cancel.h"
#include "engine/base/mem.h"
#include "engine/job/job_open.h"
#include "engine/job/job_plan.h"
#include "engine/job/job_settings.h"
#include "io/file_ops.h"
#include "io/numbered.h"
#include "io/y4m.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int tgi_job_wants_film(const tg_job *job)
{
    return job->set.pictures || tgi_film_container(job->set.output) != NULL;
}

tg_status tgi_job_film_name_files(tg_job *job, tgi_err *err)
{
    char list[4096];
    tgi_settings *s = &job->set;
    if (tgi_frames_list_of(s->output, list, sizeof list) == s->output)
        return TG_OK;
    char *named = tgi_strdup(TGI_TAG_MISC, list);
    if (!named)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a path");
    s->pictures = s->output;
    s->output = named;
    s->writer = NULL; /* frame by frame */
    return TG_OK;
}

int tgi_job_wants_pipe(const tg_job *job)
{
    return job->set.output && strcmp(job->set.output, TGI_FILM_STDOUT) == 0;
}

tg_status tgi_job_film_check_stream(const tg_job *job, tgi_err *err)
{
    const char *by = tgi_normalize_needs_stats(&job->set.normalize) ? "--normalize"
                     : tgi_opts_str(job->opts, TGI_OPT_PLANES)      ? "--planes"
                     : tgi_opts_str(job->opts, TGI_OPT_AXES)        ? "--axes"
                                                                    : NULL;
    if (!tgi_film_source_is_stream(job->source) || !by)
        return TG_OK;
    return tgi_fail(
        err, TG_E_ARG,
        "%s: its frames come once, through a pipe, and %s%s: write it to a file first",
        job->set.input,
        strcmp(by, "--normalize") == 0 ? "the statistics of "
                                       : "nobody knows how many "
                                         "will come for ",
        strcmp(by, "--normalize") == 0 ? job->set.normalize_text : by);
}

tg_status tgi_job_film_check_input(const tg_job *job, tgi_err *err)
{
    const tgi_av_info *from = tgi_film_source_info(job->source);
    if (!from || from->interlaced != 1 || tgi_opts_choice(job->opts, TGI_OPT_INTERLACED) == 1)
        return TG_OK;
    return tgi_fail(
        err, TG_E_UNSUPPORTED,
        "%s: interlaced: a frame has the rows of two moments, which a network takes for "
        "one. Make frames of them, `ffmpeg -i %s -vf bwdif -c:v ffv1 -c:a copy "
        "OUT.mkv`, or give --interlaced as-is",
        job->set.input, job->set.input);
}

/* Channels that the network takes or gives, as its file says; 0: it does not. */
static int64_t channels_of(const tgi_port *p)
{
    const int64_t n = p->perm[1] >= 0 ? p->file_dim[p->perm[1]] : 1;
    return n > 0 ? n : 0;
}

/* The container may not say that its frames are turned: then the pixels are, and no rest fits them. */
static int is_turned_out(const tg_job *job, const tgi_av_info *from)
{
    return (from->rotation || from->flipped) && !tgi_film_says_turns(job->set.output);
}

/* Frames between the one that is read and the one that is written: those that are read ahead, computed and put
 * together, and of small ones those whose tiles wait for the writer (tile_ends.c). */
static int frames_ahead(const tg_job *job, const tgi_av_info *from)
{
    const int64_t tiles = (int64_t)from->width * from->height / (512 * 512);
    return 4 + (int)tgi_ceil_div(job->set.threads + 3, tgi_max(1, tiles));
}

tg_status tgi_job_film_split(tg_job *job, tgi_err *err)
{
    const tgi_av_info *from = tgi_film_source_info(job->source);
    const tgi_graph *g = job->graph;
    const int asked = tgi_opts_given(job->opts, TGI_OPT_ON);
    if (!from || !tgi_job_wants_film(job) || job->set.pictures ||
        tgi_opts_choice(job->opts, TGI_OPT_ON) == 1 || g->n_in != 1 ||
        channels_of(&g->in[0]) != 1 || channels_of(&g->out[0]) > 1)
        return TG_OK;
    if (tgi_film_bypass_is_there(&from->form) && !is_turned_out(job, from) &&
        !(from->rotation && tgi_opts_str(job->opts, TGI_OPT_ROI)))
        return tgi_film_source_luma(job->source, frames_ahead(job, from), err);
    if (!asked)
        return TG_OK;
    return tgi_fail(
        err, TG_E_UNSUPPORTED, "--on luma: %s: --on each takes red, green and blue alone",
        !tgi_film_bypass_is_there(&from->form) ? "the film is not stored as luma and chroma"
        : is_turned_out(job, from)
            ? "its frames are turned for viewing, which only .mp4 and .mov say"
            : "its frames are turned for viewing, and --roi is of what is seen");
}

/* "25", "29.97", "30000/1001". TG_E_ARG. */
static tg_status read_rate(const char *text, tgi_av_ratio *out, tgi_err *err)
{
    char *end = NULL;
    double by = 1;
    const double n = text ? strtod(text, &end) : 0;
    *out = (tgi_av_ratio){0, 1};
    if (!text)
        return TG_OK;
    if (end != text && *end == '/' && n == floor(n))
        by = strtod(end + 1, &end);
    if (end == text || *end || !(n > 0) || !(by >= 1) || by != floor(by) ||
        !(n / by >= 0.001) || !(n / by <= 10000) || n > 1e9 || by > 1e9)
        return tgi_fail(err, TG_E_ARG, "--fps %s: frames a second, as 25, 29.97 or 30000/1001",
                        text);
    *out = by == 1 ? (tgi_av_ratio){llrint(n * 1000), 1000}
                   : (tgi_av_ratio){llrint(n), llrint(by)};
    return TG_OK;
}

/* Planes of the output that are the colours of one frame, and samples of a pixel in each. */
static int planes_of_frame(const tg_job *job)
{
    const tgi_mapping *m = &job->map;
    if (m->loops_samples)
        return (int)m->loop[m->n_loop - 1].size;
    return m->out_samples ? 1 : (int)m->out_channels;
}

static tg_status check_frames(const tg_job *job, tgi_err *err)
{
    const tgi_mapping *m = &job->map;
    const int64_t n = planes_of_frame(job) * (m->out_samples ? m->out_channels : 1);
    if (tgi_film_source_is_luma(job->source) && n != 1)
        return tgi_fail(err, TG_E_ARG,
                        "%s: the network makes %lld channels of luma: give --on each",
                        job->set.output, (long long)n);
    if (n > 4 || ((n == 2 || n == 4) && !(job->info->meta.alpha && job->info->samples == n)))
        return tgi_fail(
            err, TG_E_ARG,
            "%s: a frame has grey or RGB, the network gives %lld channels: write .tif",
            job->set.output, (long long)n);
    if (m->loops_samples && m->planes.n)
        return tgi_fail(
            err, TG_E_ARG,
            "%s: the network takes one colour at a time, so --planes numbers colours "
            "and no frames: leave it out, or write .tif",
            job->set.output);
    if (m->out_extent[0] != m->extent[0])
        return tgi_fail(err, TG_E_ARG,
                        "%s: the network makes %lld frames of %lld, and nothing says when they "
                        "are shown: write .tif",
                        job->set.output, (long long)m->out_extent[0], (long long)m->extent[0]);
    if (job->set.writer)
        return tgi_fail(err, TG_E_ARG, "--format imagej is a TIFF, and %s is a film",
                        job->set.output);
    if (job->set.compress.kind != TGI_COMPRESS_NONE || tgi_opts_pyramid(job->opts))
        return tgi_fail(err, TG_E_ARG, "%s: --compress and --pyramid are for TIFF",
                        job->set.output);
    return TG_OK;
}

static int64_t frames_of(const tg_job *job)
{
    const tgi_mapping *m = &job->map;
    return m->n_items * m->out_extent[0] / (m->loops_samples ? m->loop[m->n_loop - 1].size : 1);
}

/* A network over volumes makes all frames of a cell before the next cell. */
tg_status tgi_job_film_check(const tg_job *job, tgi_err *err)
{
    const tgi_tiling *t = &job->plan.choice.tiling;
    if (!job->film || job->map.spatial != 3 || (t->n_cut[1] <= 1 && t->n_cut[2] <= 1))
        return TG_OK;
    return tgi_fail(
        err, TG_E_UNSUPPORTED,
        "%s: the network takes volumes, and the plan cuts frames, whose parts would come "
        "apart: leave out --tile, give more --ram, or write .tif",
        job->set.output);
}

/* The plane of the source that frame k was made of. */
static int64_t plane_of(const tg_job *job, int64_t k)
{
    const tgi_mapping *m = &job->map;
    int sample;
    const int64_t depth = m->out_extent[0];
    const int64_t item = k / depth * (m->loops_samples ? m->loop[m->n_loop - 1].size : 1);
    return tgi_mapping_plane(m, item, k % depth, &sample);
}

/* Of the stored frame: a side that lies is the other one of what is seen. */
tg_status tgi_job_film_rest(void *user, int64_t k, const tgi_av_blank *to, tgi_err *err)
{
    tg_job *job = user;
    const tgi_mapping *m = &job->map;
    const int lies = job->film->out.pixels.rotation % 180 != 0;
    tgi_film_bypass how = {.to = job->film->out.pixels};
    how.to.samples = how.to.form.n_components;
    for (int a = 0; a < 2; a++) {
        const int seen = lies ? 2 - a : 1 + a;
        how.scale[a] = (double)m->extent[seen] / (double)m->out_extent[seen];
        how.origin[a] = (double)m->origin[seen];
    }
    return tgi_film_source_put(job->source, plane_of(job, k), &how, to, err);
}

/* ---- A file for each frame --------------------------------------------------------------- */

/* The number of the first one: that of the first file that is read, where its name has one; else 1. */
static int64_t first_number(const tg_job *job)
{
    tgi_numbered n;
    const char *file = tgi_source_file(job->source, job->set.input, 0);
    const int64_t number = file && tgi_numbered_find(job->set.input, &n)
                               ? tgi_number_of(job->set.input, file)
                               : -1;
    return number < 0 ? 1 : number;
}

static tg_status make_files(tg_job *job, const tgi_film_frames *of, tgi_err *err)
{
    tgi_film_out *o = &job->film->out;
    tgi_frame_files *f = &job->film->files;
    const tg_opts *opts = job->opts;
    static const tgi_opt of_films[] = {TGI_OPT_PIX_FMT, TGI_OPT_FPS, TGI_OPT_CRF,
                                       TGI_OPT_CODEC,   TGI_OPT_ON,  TGI_OPT_DROP_ALPHA,
                                       TGI_OPT_STRICT};
    const char *odd = NULL;
    size_t n;
    for (size_t i = 0; i < sizeof of_films / sizeof of_films[0]; i++)
        if (tgi_opts_asked(opts, of_films[i]))
            odd = tgi_option_table(&n)[of_films[i]].name;
    if (odd)
        return tgi_fail(err, TG_E_ARG, "%s: --%s is for films, and these are pictures",
                        job->set.pictures, odd);
    *f = (tgi_frame_files){.pattern = job->set.pictures,
                           .first = first_number(job) + plane_of(job, 0) +
                                    tgi_film_source_first(job->source),
                           .frames = of->frames,
                           .writer = tgi_picture_writer_for(job->set.pictures),
                           .spec = {.height = of->height,
                                    .width = of->width,
                                    .samples = of->samples,
                                    .dtype = of->dtype,
                                    .axes = "YXS",
                                    .shape = {of->height, of->width, of->samples},
                                    .meta = &job->info->meta}};
    tgi_err why = {0};
    const tg_status st = f->writer->may(&f->spec, &why);
    if (st != TG_OK)
        return tgi_fail(err, st, "%s: %s", job->set.pictures, why.text);
    *o = (tgi_film_out){.container = "pictures",
                        .samples = of->samples,
                        .frames = of->frames,
                        .pictures = 1,
                        .coding = {.segment = 1}};
    o->frame_bytes = tgi_sat_mul(tgi_sat_mul((size_t)of->width, (size_t)of->height),
                                 (size_t)of->samples * tgi_dtype_size(of->dtype));
    o->bytes = tgi_sat_add(o->frame_bytes, f->writer->bytes(&f->spec));
    o->disk =
        1.05 * (double)o->frame_bytes * (double)of->frames / 2; /* counted twice: films are */
    snprintf(o->text, sizeof o->text, "a %s for each frame, from number %lld on",
             f->writer->name, (long long)f->first);
    return TG_OK;
}

tg_status tgi_job_film_begin_files(const tg_job *job, tgi_err *err)
{
    if (!job->film || !job->film->out.pictures)
        return TG_OK;
    const tgi_frame_files *f = &job->film->files;
    const char *file;
    for (int64_t i = 0; (file = tgi_source_file(job->source, job->set.input, i)); i++)
        TGI_TRY(tgi_frames_spare(f, file, err));
    return job->set.overwrite ? TG_OK : tgi_frames_are_new(f, err);
}

static tgi_film_wish wish_of(const tg_job *job)
{
    const tg_opts *o = job->opts;
    const char *codec = tgi_opts_str(o, TGI_OPT_CODEC);
    const tgi_av_info *from = tgi_film_source_info(job->source);
    if (codec && strcmp(codec, "copy-like-input") == 0 && from)
        codec = from->codec;
    return (tgi_film_wish){.codec = codec && strcmp(codec, "auto") != 0 ? codec : NULL,
                           .drop_alpha = tgi_opts_flag(o, TGI_OPT_DROP_ALPHA),
                           .form = tgi_opts_str(o, TGI_OPT_PIX_FMT),
                           .crf = (int)tgi_opts_int(o, TGI_OPT_CRF, -1)};
}

/* ---- The file ---------------------------------------------------------------------------- */

typedef struct joining {
    tg_job *job;
    const tgi_journal *packets;
    void *room;
    size_t room_bytes;
    int delay;
} joining;

static tg_status packet(void *user, int64_t i, tgi_av_packet *out, tgi_err *err)
{
    const joining *w = user;
    return tgi_film_packet(w->packets, i, w->room, w->room_bytes, out, err);
}

/* All frames of a film, in their order. */
static int is_whole(const tg_job *job)
{
    const tgi_av_info *from = tgi_film_source_info(job->source);
    return from && !job->map.planes.n && from->frames == job->film->out.frames &&
           !tgi_opts_str(job->opts, TGI_OPT_FPS);
}

/* When the film begins: as the one that was read, but for some of its frames alone, and where its times
 * count from when a station went on air. */
static int64_t origin_of(const tg_job *job)
{
    const tgi_av_info *from = tgi_film_source_info(job->source);
    if (!from || !from->has_times || tgi_opts_str(job->opts, TGI_OPT_FPS))
        return 0;
    const int on_air =
        strcmp(from->container, "mpegts") == 0 || strcmp(from->container, "mpeg") == 0;
    return on_air || !is_whole(job) || tgi_film_source_is_part(job->source)
               ? tgi_film_source_time(job->source, plane_of(job, 0))
               : 0;
}

static int64_t time_of(void *user, int64_t k)
{
    const tg_job *job = ((const joining *)user)->job;
    const int64_t n = job->film->out.frames;
    const tgi_av_info *from = tgi_film_source_info(job->source);
    if (!from || !from->has_times || tgi_opts_str(job->opts, TGI_OPT_FPS))
        return k; /* each frame a tick */
    return (k < n ? tgi_film_source_time(job->source, plane_of(job, k))
                  : tgi_film_source_time(job->source, plane_of(job, n - 1) + 1)) -
           origin_of(job);
}

/* Something does not go with the film: in words. */
static void leave_out(tg_job *job, const char *fmt, ...) TGI_PRINTF(2, 3);
static void leave_out(tg_job *job, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    job->film->left_out++;
    tgi_job_warn(job, "%s", text);
}

static void dropped(void *user, const char *what)
{
    tg_job *job = ((const joining *)user)->job;
    leave_out(job, "%s: %s: it is left out", job->set.output, what);
}

static tgi_av_join join_of(const joining *w, int fd)
{
    const tg_job *job = w->job;
    const tgi_film_out *f = &job->film->out;
    const int part = is_whole(job) && tgi_film_source_is_part(job->source);
    return (tgi_av_join){.fd = fd,
                         .container = f->container,
                         .coding = &f->coding,
                         .from = is_whole(job) ? job->set.input : NULL,
                         .frames = f->frames,
                         .delay = w->delay,
                         .time_base = f->time_base,
                         .origin = origin_of(job),
                         .begin = part ? tgi_film_source_time(job->source, 0) : 0,
                         .until = part ? tgi_film_source_time(job->source, f->frames) : 0,
                         .rotation = f->pixels.rotation,
                         .flipped = f->pixels.flipped,
                         .user = (void *)(uintptr_t)w,
                         .packet = packet,
                         .time = time_of,
                         .dropped = dropped,
                         .cancelled = tgi_cancel_signal};
}

/* Frames are not all shown as long. */
static int varies(const tgi_source *s)
{
    const tgi_av_info *i = tgi_film_source_info(s);
    int64_t least = INT64_MAX, most = 0;
    if (!i || strcmp(i->container, TGI_Y4M_CONTAINER) == 0)
        return 0;
    for (int64_t k = 1; i->has_times && k < i->frames; k++) {
        const int64_t by = tgi_film_source_time(s, k) - tgi_film_source_time(s, k - 1);
        least = tgi_min(least, by);
        most = tgi_max(most, by);
    }
    return most > least + 2; /* a coarse clock rounds */
}

/* A YUV4MPEG2 has one rate, and nothing but frames. */
static void tell_of_y4m(tg_job *job)
{
    const tgi_av_info *from = tgi_film_source_info(job->source);
    const tgi_av_ratio rate = job->film->out.coding.rate;
    if (strcmp(job->film->out.container, TGI_Y4M_CONTAINER) != 0 || !from)
        return;
    if (varies(job->source) && !tgi_opts_str(job->opts, TGI_OPT_FPS))
        tgi_job_warn(job,
                     "%s: frames of %s are shown at times of their own, and a .y4m has one "
                     "rate: %.6g frames a second, their mean",
                     job->set.output, job->set.input, (double)rate.num / (double)rate.den);
    if (is_whole(job) && from->n_streams > 1)
        tgi_job_warn(job, "%s: a .y4m has frames alone: the other tracks of %s are left out",
                     job->set.output, job->set.input);
}

/* What the film that is written will not have of the one that was read. */
static tg_status tell(tg_job *job, tgi_err *err)
{
    const joining w = {.job = job};
    const tgi_av_join j = join_of(&w, -1);
    if (job->film->out.note[0])
        tgi_job_warn(job, "%s: %s", job->set.output, job->film->out.note);
    if (!j.from && tgi_film_source_info(job->source))
        leave_out(job, "%s: %s of %s: its other tracks are left out", job->set.output,
                  tgi_opts_str(job->opts, TGI_OPT_FPS) ? "not the times" : "only some frames",
                  job->set.input);
    const tgi_av_info *from = tgi_film_source_info(job->source);
    if (from && from->light)
        leave_out(job,
                  "%s: what frames of %s tell a display of their light (HDR mastering display, "
                  "light levels) is left out",
                  job->set.output, job->set.input);
    tell_of_y4m(job);
    TGI_TRY(job->film->out.ops->join_look(&j, err));
    if (!tgi_opts_flag(job->opts, TGI_OPT_STRICT) || !job->film->left_out)
        return TG_OK;
    return tgi_fail(err, TG_E_UNSUPPORTED,
                    "%s: --strict, and it would not have all of %s: the warnings say what",
                    job->set.output, job->set.input);
}

void tgi_job_film_free(tg_job *job)
{
    if (job->film)
        tgi_sink_layout_free(&job->film->packets);
    tgi_free(job->film);
    job->film = NULL;
}

tg_status tgi_job_film_make(tg_job *job, tgi_err *err)
{
    const tgi_mapping *m = &job->map;
    tgi_job_film_free(job);
    if (!tgi_job_wants_film(job))
        return TG_OK;
    TGI_TRY(check_frames(job, err));
    job->film = tgi_calloc(TGI_TAG_PLAN, 1, sizeof *job->film);
    if (!job->film)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a film");
    const double every = job->info->meta.time_increment;
    tgi_av_ratio asked;
    TGI_TRY(read_rate(tgi_opts_str(job->opts, TGI_OPT_FPS), &asked, err));
    const tgi_av_info *from = tgi_film_source_info(job->source);
    const int luma = tgi_film_source_is_luma(job->source);
    const tgi_film_frames frames = {
        .frames = frames_of(job),
        .luma = luma,
        .height = m->out_extent[1],
        .width = m->out_extent[2],
        .samples = luma ? from->form.n_components
                        : planes_of_frame(job) * (m->out_samples ? (int)m->out_channels : 1),
        .dtype = job->set.dtype,
        .from = from,
        .asked = asked,
        .rate = every > 0 ? 1 / every : 0};
    const tgi_film_wish wish = wish_of(job);
    TGI_TRY(job->set.pictures
                ? make_files(job, &frames, err)
                : tgi_film_out_make(job->set.output, &frames, &wish, &job->film->out, err));
    if (!job->film->out.pipe)
        TGI_TRY(tgi_film_packets_layout(frames.frames, &job->film->packets, err));
    if (job->film_told || job->set.pictures)
        return TG_OK;
    job->film_told = 1;
    return tell(job, err);
}

const tgi_sink_layout *tgi_job_stored(const tg_job *job)
{
    return job->film ? job->film->packets : job->plan.layout;
}

size_t tgi_job_film_bytes(const tg_job *job)
{
    return job->film ? tgi_sat_add(job->film->out.bytes, tgi_film_tiles_bytes(&job->film->out))
                     : 0;
}

static tg_status join(const joining *w, int fd, tgi_err *err)
{
    const tgi_av_join j = join_of(w, fd);
    return w->job->film->out.ops->join(&j, err);
}

static tg_status make(void *arg, const char *partial, const char *made, tgi_err *err)
{
    joining *w = arg;
    tgi_part to = TGI_PART_CLOSED;
    const tgi_part_spec part = {
        .path = made, .ending = "", .bytes = TGI_PART_GROWS, .replace = 1, .at_once = 1};
    (void)partial;
    TGI_TRY(
        tgi_film_measure(w->packets, w->job->film->out.frames, &w->room_bytes, &w->delay, err));
    w->room = tgi_malloc(TGI_TAG_IO, w->room_bytes);
    tg_status st = w->room ? tgi_part_create(&part, &to, err)
                           : tgi_fail(err, TG_E_NOMEM, "%s: no memory for a frame", made);
    if (st == TG_OK)
        st = join(w, to.fd, err);
    if (st == TG_E_NO_SPACE || st == TG_E_IO) {
        const tgi_err why = *err;
        st = tgi_fail(err, st, "%.200s: %.200s: make room, then run the same command again",
                      made, why.text);
    }
    if (st == TG_OK)
        st = tgi_part_sync(&to, err);
    to.keep = st == TG_OK; /* the journal gives it its name */
    tgi_part_drop(&to);
    tgi_free(w->room);
    return st;
}

/* The list of the files, out of their records. */
static tg_status make_list(void *arg, const char *partial, const char *made, tgi_err *err)
{
    const joining *w = arg;
    const tgi_frame_files *f = &w->job->film->files;
    tgi_part to = TGI_PART_CLOSED;
    const tgi_part_spec part = {
        .path = made, .ending = "", .bytes = TGI_PART_GROWS, .replace = 1, .at_once = 1};
    uint8_t record[TGI_FRAME_RECORD];
    char line[4200];
    uint64_t at = 0;
    (void)partial;
    tg_status st = tgi_part_create(&part, &to, err);
    for (int64_t k = 0; st == TG_OK && k < f->frames; k++) {
        size_t n = 0;
        st = tgi_journal_read_tile(w->packets, k, record, sizeof record, &n, err);
        if (st == TG_OK)
            n = tgi_frame_line(f, k, record, line, sizeof line);
        if (st == TG_OK)
            st = tgi_file_pwrite(to.fd, made, line, n, at, err);
        at += n;
    }
    if (st == TG_OK)
        st = tgi_part_sync(&to, err);
    to.keep = st == TG_OK; /* the journal gives it its name */
    tgi_part_drop(&to);
    return st;
}

tg_status tgi_job_film_join(tg_job *job, tgi_journal *packets, tgi_err *err)
{
    joining w = {.job = job, .packets = packets};
    return !job->film
               ? TG_OK
               : tgi_journal_make(packets, job->set.pictures ? make_list : make, &w, err);
}
