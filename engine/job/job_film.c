/* job_film.c - see job_film.h. */
#include "engine/job/job_film.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "engine/ends/tensors.h"
#include "engine/inpaint/inpaint.h"
#include "engine/job/ends.h"
#include "engine/job/job_open.h"
#include "engine/job/job_picture.h"
#include "engine/job/job_plan.h"
#include "engine/job/job_settings.h"
#include "engine/job/job_window.h"
#include "io/raw_frames.h"

#include <math.h>
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
    if (tgi_film_source_is_stream(job->source) && job->graph->spatial == 3 &&
        job->set.window == 1)
        return tgi_fail(
            err, TG_E_ARG,
            "%s: its frames come once, through a pipe, and the network takes volumes "
            "of nobody knows how many: write it to a file first",
            job->set.input);
    const char *by = tgi_opts_str(job->opts, TGI_OPT_PLANES) ? "--planes"
                     : tgi_opts_str(job->opts, TGI_OPT_AXES) ? "--axes"
                                                             : NULL;
    if (tgi_film_source_is_stream(job->source) &&
        tgi_normalize_needs_stats(&job->set.normalize))
        return tgi_fail(
            err, TG_E_ARG,
            "%s: its frames come once, through a pipe, and %s takes statistics of all of them "
            "before the first one is computed: write it to a file first (ffmpeg ... -c:v ffv1 "
            "FILM.mkv), which is read twice, or say what the network expects in numbers "
            "(--normalize scale:1/255,0)",
            job->set.input, job->set.normalize_text);
    if (!tgi_film_source_is_stream(job->source) || !by)
        return TG_OK;
    return tgi_fail(
        err, TG_E_ARG,
        "%s: its frames come once, through a pipe, and nobody knows how many will come for %s: "
        "write it to a file first",
        job->set.input, by);
}

/* Characters that a shell takes as they are. */
#define PLAIN "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./%+-:,@"

tg_status tgi_job_film_check_input(const tg_job *job, tgi_err *err)
{
    const tgi_av_info *from = tgi_film_source_info(job->source);
    if (!from || from->interlaced != 1 || tgi_opts_choice(job->opts, TGI_OPT_INTERLACED) == 1)
        return TG_OK;
    if (tgi_film_source_is_stream(job->source))
        return tgi_fail(
            err, TG_E_UNSUPPORTED,
            "%s: interlaced: a frame has the rows of two moments, which a network "
            "takes for one. Make frames of them in what sends it (ffmpeg -vf bwdif), or "
            "give --interlaced as-is",
            job->set.input);
    const char *quote = job->set.input[strspn(job->set.input, PLAIN)] ? "'" : "";
    const char *others = from->n_streams > 1 ? "-map 0:V:0 -map 0:a? -map 0:s? " : "";
    return tgi_fail(
        err, TG_E_UNSUPPORTED,
        "%s: interlaced: a frame has the rows of two moments, which a network takes for "
        "one. Make frames of them, `ffmpeg -i %s%s%s %s-vf bwdif -c:v ffv1 -c:a copy%s "
        "OUT.mkv`, "
        "or give --interlaced as-is",
        job->set.input, quote, job->set.input, quote, others, *others ? " -c:s copy" : "");
}

/* Channels that the network gives, as its file says; 0: it does not. */
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

/* Why the rest of a frame cannot pass by; NULL: it can. */
static const char *why_not(const tg_job *job, const tgi_av_info *from, tgi_film_passing what)
{
    if (!tgi_film_bypass_is_there(&from->form, what))
        return "the film is not stored as luma and chroma";
    if (is_turned_out(job, from))
        return "its frames are turned for viewing, which only .mp4 and .mov say";
    if ((from->rotation || from->flipped) &&
        (tgi_opts_str(job->opts, TGI_OPT_ROI) || job->set.raw_size))
        return "its frames are turned for viewing, and --roi and --raw-size are of what is "
               "seen";
    return job->graph->spatial == 3 && job->set.window == 1 ? "the network takes volumes"
                                                            : NULL;
}

/* Frames between the one that is read and the one whose rest is put: one that is read ahead, one that is computed, and
 * those of which tiles wait for the writer (TGI_REST_FRAMES). */
#define FRAMES_AHEAD (2 + TGI_REST_FRAMES)

/* The job is one of luma alone, if the film can be split so. */
static int is_for_luma(const tg_job *job)
{
    const int frame_by_frame = job->set.window == 1;
    return tgi_opts_choice(job->opts, TGI_OPT_ON) != 1 && tgi_job_frame_channels(job) == 1 &&
           !(frame_by_frame && (!tgi_job_wants_film(job) || job->set.pictures ||
                                channels_of(&job->graph->out[0]) > 1));
}

int tgi_job_film_has_luma(const tg_job *job)
{
    const tgi_av_info *from = tgi_film_source_info(job->source);
    return from && job->graph->n_in == 1 && job->set.window == 1 &&
           tgi_job_frame_channels(job) == 1 && channels_of(&job->graph->out[0]) == 1 &&
           tgi_film_source_passing(job->source) == TGI_FILM_PASSES_NOTHING &&
           tgi_film_bypass_is_there(&from->form, TGI_FILM_PASSES_BUT_LUMA);
}

/* The network takes the film's colours, together or one by one, and its alpha would be lost. */
static int is_for_colours(const tg_job *job, const tgi_av_info *from)
{
    const int64_t n = tgi_job_frame_channels(job);
    return from->form.has_alpha && tgi_job_wants_film(job) && !job->set.pictures &&
           (n == 1 || n == from->form.n_components - 1);
}

/* A film whose alpha can go nowhere. */
static tg_status keep_alpha(tg_job *job, const tgi_av_info *from, tgi_err *err)
{
    const char *why = why_not(job, from, TGI_FILM_PASSES_ALPHA);
    if (!why)
        return tgi_film_source_split(job->source, TGI_FILM_PASSES_ALPHA, FRAMES_AHEAD, err);
    if (tgi_opts_flag(job->opts, TGI_OPT_DROP_ALPHA))
        return TG_OK;
    return tgi_fail(
        err, TG_E_UNSUPPORTED,
        "%s: its alpha cannot pass by the network: %s: give --drop-alpha, and it is "
        "left out",
        job->set.input, why);
}

tg_status tgi_job_film_split(tg_job *job, tgi_err *err)
{
    const tgi_av_info *from = tgi_film_source_info(job->source);
    const int one = job->graph->n_in == 1 || job->set.n_ties;
    const int asked =
        tgi_opts_given(job->opts, TGI_OPT_ON) && tgi_opts_choice(job->opts, TGI_OPT_ON) == 0;
    if (asked && from && (!one || tgi_job_frame_channels(job) != 1))
        return tgi_fail(err, TG_E_ARG,
                        one ? "--on luma: the network takes %lld channels, and luma is one: "
                              "leave --on out"
                            : "--on luma: the network does not take luma alone, it has %lld "
                              "inputs: leave --on out, or say by --state or --constant what "
                              "the others get",
                        one ? (long long)tgi_job_frame_channels(job)
                            : (long long)job->graph->n_in);
    if (asked && from && from->form.n_components - from->form.has_alpha == 1)
        return tgi_fail(err, TG_E_ARG,
                        "--on luma: frames of %s are grey, and a network of one channel gets "
                        "them as they are: leave --on out",
                        job->set.input);
    if (!from || !one)
        return TG_OK;
    const char *why = NULL;
    if (is_for_luma(job)) {
        why = why_not(job, from, TGI_FILM_PASSES_BUT_LUMA);
        if (!why)
            return tgi_film_source_split(job->source, TGI_FILM_PASSES_BUT_LUMA, FRAMES_AHEAD,
                                         err);
    }
    if (asked && why)
        return tgi_fail(err, TG_E_UNSUPPORTED,
                        "--on luma: %s: --on each takes red, green and blue alone", why);
    return is_for_colours(job, from) ? keep_alpha(job, from, err) : TG_OK;
}

/* "25", "29.97", "30000/1001". TG_E_ARG. */
static tg_status read_rate(const char *text, tgi_av_ratio *out, tgi_err *err)
{
    *out = (tgi_av_ratio){0, 1};
    if (!text || tgi_raw_rate(text, out))
        return TG_OK;
    return tgi_fail(err, TG_E_ARG, "--fps %s: frames a second, as 25, 29.97 or 30000/1001",
                    text);
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
    const int64_t n = m->out_channels * (m->loops_samples ? planes_of_frame(job) : 1);
    const tgi_film_passing passing = tgi_film_source_passing(job->source);
    if (passing == TGI_FILM_PASSES_BUT_LUMA && n != 1)
        return tgi_fail(err, TG_E_ARG, "%s: the network makes %lld channels of luma%s",
                        job->set.output, (long long)n,
                        job->set.window == n && n == 3
                            ? ", and a film has one: leave --window out, and it gets the "
                              "colours of a frame, or write .tif"
                        : job->set.window > 1 ? ", and a film has one: write .tif"
                                              : ": give --on each");
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
    if (job->set.window == 1 && m->out_extent[0] != m->extent[0])
        return tgi_fail(err, TG_E_ARG,
                        "%s: the network makes %lld frames of %lld, and nothing says when they "
                        "are shown: write .tif",
                        job->set.output, (long long)m->out_extent[0], (long long)m->extent[0]);
    if (job->set.writer)
        return tgi_fail(err, TG_E_ARG, "--format imagej is a TIFF, and %s is a film",
                        job->set.output);
    if (job->set.compress.kind != TGI_COMPRESS_NONE || tgi_opts_pyramid(job->opts))
        return tgi_fail(err, TG_E_ARG, "%s: --compress and --pyramid are for one TIFF of all",
                        job->set.pictures ? job->set.pictures : job->set.output);
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
    if (!job->film || job->map.spatial != 3 || job->set.window > 1 ||
        (t->n_cut[1] <= 1 && t->n_cut[2] <= 1))
        return TG_OK;
    return tgi_fail(
        err, TG_E_UNSUPPORTED,
        "%s: the network takes volumes, and the plan cuts frames, whose parts would come "
        "apart: leave out --tile, give more --ram, or write .tif",
        job->set.output);
}

/* Numbers of the whole film that a map needs would be read as pixels, and converted for that. */
int tgi_job_film_yuv(const tg_job *job, tgi_yuv *out)
{
    const tgi_mapping *m = &job->map;
    if (!tgi_job_pass_ops(job) || m->spatial != 2 || !m->from_samples || m->channels != 3 ||
        m->appended || job->set.scratch || tgi_normalize_needs_stats(&job->set.normalize) ||
        !tgi_film_source_yuv(job->source, out)) {
        *out = (tgi_yuv){.there = 0};
        return 0;
    }
    out->y0 = m->origin[1];
    out->x0 = m->origin[2];
    return 1;
}

/* The plane of the source that frame k was made of. */
int64_t tgi_job_film_plane(const tg_job *job, int64_t k)
{
    const tgi_mapping *m = &job->map;
    int sample;
    const int64_t depth = m->out_extent[0];
    const int64_t item = k / depth * (m->loops_samples ? m->loop[m->n_loop - 1].size : 1);
    return tgi_frame_window_middle(job->source, tgi_mapping_plane(m, item, k % depth, &sample));
}

/* Of the stored frame: a side that lies is the other one of what is seen. */
tg_status tgi_job_film_rest(void *user, int64_t k, const tgi_av_blank *to, tgi_err *err)
{
    tg_job *job = user;
    const tgi_mapping *m = &job->map;
    const int lies = job->film->out.pixels.rotation % 180 != 0;
    tgi_film_bypass how = {.to = job->film->out.pixels};
    for (int a = 0; a < 2; a++) {
        const int seen = lies ? 2 - a : 1 + a;
        const tgi_fit *f =
            &m->fit[seen]; /* place.h: output pixel 0 lies `lead` pixels inside */
        const double by = f->place.up > 0
                              ? (double)f->place.down / (double)f->place.up
                              : (double)m->extent[seen] / (double)m->out_extent[seen];
        how.scale[a] = by;
        how.origin[a] = (double)m->origin[seen] +
                        (f->place.up > 0 ? (double)(f->crop + f->place.lead) * by : 0) -
                        (double)(f->place.up > 0 ? f->before : 0);
    }
    const int64_t plane = tgi_job_film_plane(job, k);
    return tgi_inpaint_is(job->source) ? tgi_inpaint_put(job->source, plane, &how, to, err)
                                       : tgi_film_source_put(job->source, plane, &how, to, err);
}

static tgi_film_passing passing_of(const tg_job *job)
{
    if (tgi_inpaint_is(job->source))
        return tgi_inpaint_puts(job->source) ? TGI_FILM_PASSES_OUTSIDE
                                             : TGI_FILM_PASSES_NOTHING;
    return tgi_film_source_passing(job->source);
}

static tgi_film_wish wish_of(const tg_job *job)
{
    const tg_opts *o = job->opts;
    const char *codec = tgi_opts_str(o, TGI_OPT_CODEC);
    const tgi_av_info *from = tgi_film_source_info(job->source);
    const int like_input = codec && strcmp(codec, "copy-like-input") == 0 && from;
    if (like_input)
        codec = from->codec;
    return (tgi_film_wish){.codec = codec && strcmp(codec, "auto") != 0 ? codec : NULL,
                           .like_input = like_input,
                           .raw = tgi_opts_choice(o, TGI_OPT_FORMAT) == TGI_FORMAT_RAW,
                           .drop_alpha = tgi_opts_flag(o, TGI_OPT_DROP_ALPHA),
                           .form = tgi_opts_str(o, TGI_OPT_PIX_FMT),
                           .crf = (int)tgi_opts_int(o, TGI_OPT_CRF, -1),
                           .speed = tgi_opts_given(o, TGI_OPT_PRESET_SPEED)
                                        ? (int)tgi_opts_choice(o, TGI_OPT_PRESET_SPEED) + 1
                                        : 0};
}

void tgi_job_film_free(tg_job *job)
{
    if (job->film) {
        tgi_sink_layout_free(&job->film->packets);
        tgi_free(job->film->numbers);
    }
    tgi_free(job->film);
    job->film = NULL;
}

/* Of a film without an ending nobody expects a TIFF of all frames. */
static tg_status check_name(const tg_job *job, tgi_err *err)
{
    const char *out = job->set.output, *in = job->set.input;
    if (!tgi_film_source_info(job->source) || !job->ends->image_out ||
        !tgi_names_no_kind(out) || job->set.writer)
        return TG_OK;
    return tgi_fail(err, TG_E_ARG,
                    "%s: the name has no ending, and %s is a film: name it %s.mp4, .mov, .mkv, "
                    ".webm or .y4m, or %s.tif for one TIFF with all frames",
                    out, in, out, out);
}

tg_status tgi_job_film_make(tg_job *job, tgi_err *err)
{
    const tgi_mapping *m = &job->map;
    tgi_job_film_free(job);
    if (!tgi_job_wants_film(job))
        return check_name(job, err);
    TGI_TRY(check_frames(job, err));
    job->film = tgi_calloc(TGI_TAG_PLAN, 1, sizeof *job->film);
    if (!job->film)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a film");
    const double every = job->info->meta.time_increment;
    tgi_av_ratio asked;
    TGI_TRY(read_rate(tgi_opts_str(job->opts, TGI_OPT_FPS), &asked, err));
    const tgi_av_info *from = tgi_film_source_info(job->source);
    const tgi_film_passing passing = passing_of(job);
    const int luma = passing == TGI_FILM_PASSES_BUT_LUMA;
    const int seen = planes_of_frame(job) * (m->out_samples ? (int)m->out_channels : 1);
    const tgi_film_frames frames = {.frames = frames_of(job),
                                    .passing = passing,
                                    .endless = tgi_film_source_is_stream(job->source),
                                    .height = m->out_extent[1],
                                    .width = m->out_extent[2],
                                    .samples = luma ? from->form.n_components
                                                    : seen + (passing == TGI_FILM_PASSES_ALPHA),
                                    .dtype = job->set.dtype,
                                    .from = from,
                                    .asked = asked,
                                    .rate = every > 0 ? 1 / every : 0};
    const tgi_film_wish wish = wish_of(job);
    TGI_TRY(job->set.pictures
                ? tgi_job_film_files(job, &frames, err)
                : tgi_film_out_make(job->set.output, &frames, &wish, &job->film->out, err));
    if (luma && job->film->out.coding.form.is_rgb)
        return tgi_fail(err, TG_E_ARG,
                        "--pix-fmt %s is red, green and blue, and the network gets luma: give "
                        "--on each, or leave it out",
                        job->film->out.coding.form.name);
    if (!job->film->out.pipe && !job->film->out.endless)
        TGI_TRY(tgi_film_packets_layout(frames.frames, &job->film->packets, err));
    if (job->film_told || job->set.pictures)
        return TG_OK;
    job->film_told = 1;
    return tgi_job_film_tell(job, err);
}

const tgi_sink_layout *tgi_job_stored(const tg_job *job)
{
    return job->film ? job->film->packets : job->plan.layout;
}

static int64_t all_frames(const tg_job *job)
{
    const tgi_mapping *m = &job->map;
    if (job->film)
        return job->film->out.frames;
    return tgi_film_source_info(job->source) && m->spatial == 2
               ? m->n_items / (m->loops_samples ? m->loop[m->n_loop - 1].size : 1)
               : 0;
}

int64_t tgi_job_frames(const tg_job *job)
{
    return tgi_film_source_is_stream(job->source) ? 0 : all_frames(job);
}

/* Tiles of the levels of a pyramid come when all frames are there. */
static int64_t tiles_of_frames(const tgi_sink_layout *l)
{
    return !l ? 0 : l->n_levels > 1 ? l->level_of[1].first : l->n_tiles;
}

int64_t tgi_job_frames_of(const tg_job *job, int64_t tiles)
{
    const int64_t all = all_frames(job), n = tiles_of_frames(job->plan.layout);
    if (all <= 0 || n <= 0)
        return 0;
    return (int64_t)((double)tgi_min(tiles, n) * (double)all / (double)n);
}

size_t tgi_job_film_bytes(const tg_job *job)
{
    return job->film ? tgi_sat_add(job->film->out.bytes, tgi_film_tiles_bytes(&job->film->out))
                     : 0;
}
