/* job_inpaint.c - see job_inpaint.h. */
#include "engine/job/job_inpaint.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "engine/base/number.h"
#include "engine/base/sha256.h"
#include "engine/base/size.h"
#include "engine/ends/tensors.h"
#include "engine/inpaint/inpaint.h"
#include "engine/inpaint/pp_weights.h"
#include "engine/inpaint/propainter.h"
#include "engine/inpaint/resized.h"
#include "engine/job/device_kinds.h"
#include "engine/job/fingerprint.h"
#include "engine/job/job_film.h"
#include "engine/job/job_open.h"
#include "engine/job/job_outpaint.h"
#include "engine/job/job_plan.h"
#include "engine/job/job_scenes.h"
#include "engine/job/output_job.h"
#include "engine/job/plan_report.h"
#include "engine/job/source_device.h"
#include "engine/out/gate.h"
#include "engine/settings/config.h"
#include "engine/settings/words.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NETWORK "networks/flow.onnx"
#define MOST_BOXES 64

enum { PROPAGATE, SMOOTH, PROPAINTER, SHOW }; /* of --method */
static const char *const method_name[] = {"propagate", "smooth", "propainter", "show"};

int tgi_job_inpaints(const tg_opts *o)
{
    return tgi_opts_given(o, TGI_OPT_MASK) || tgi_opts_given(o, TGI_OPT_MASK_BOX) ||
           tgi_job_outpaints(o);
}

/* Weights are of one method alone. */
static int method_of(const tg_opts *o)
{
    const int said = tgi_opts_choice(o, TGI_OPT_METHOD);
    if (said >= 0)
        return said;
    return tgi_opts_given(o, TGI_OPT_WEIGHTS) ? PROPAINTER : PROPAGATE;
}

const char *tgi_job_method(const tg_opts *o)
{
    return method_name[method_of(o)];
}

int tgi_job_draws(const tg_opts *o)
{
    return method_of(o) == PROPAINTER;
}

static tg_status check_method(const tg_opts *o, tgi_err *err)
{
    const int weights = tgi_opts_given(o, TGI_OPT_WEIGHTS), drawn = method_of(o) == PROPAINTER;
    if (weights == drawn || method_of(o) == SHOW) /* what one has, and show added to it */
        return TG_OK;
    return drawn ? tgi_fail(err, TG_E_ARG,
                            "--method propainter: --weights DIR is missing, the folder with "
                            "raft-things.pth, recurrent_flow_completion.pth and ProPainter.pth")
                 : tgi_fail(err, TG_E_ARG, "--weights are of --method propainter");
}

tg_status tgi_job_inpaint_settings(const tg_opts *o, tgi_settings *s, tgi_err *err)
{
    char path[4096] = "none";
    TGI_TRY(check_method(o, err));
    if (method_of(o) == PROPAGATE)
        TGI_TRY(tgi_config_path(NETWORK, path, sizeof path, err));
    s->model = tgi_strdup(TGI_TAG_MISC, path);
    return s->model ? TG_OK : tgi_fail(err, TG_E_NOMEM, "no memory for a path");
}

/* ---- Open -------------------------------------------------------------------------------- */

/* What it hands on is what it gets: no number of a frame is below 0. */
static tg_status make_graph(int64_t channels, tgi_graph **out, tgi_err *err)
{
    const int64_t dims[4] = {1, channels, -1, -1};
    tgi_graph *g = NULL;
    tgi_node *node;
    int in = -1, made = -1;
    tg_status st = tgi_graph_new(&g, err);
    if (st == TG_OK)
        st = tgi_graph_add_value(g, "frame", &in, err);
    if (st == TG_OK)
        st = tgi_graph_add_value(g, "result", &made, err);
    if (st == TG_OK)
        st = tgi_graph_add_input(g, in, 4, dims, err);
    if (st == TG_OK)
        st = tgi_graph_add_node(g, "Relu", "hand on", 1, &in, 1, &made, &node, err);
    if (st == TG_OK)
        st = tgi_graph_add_output(g, made, err);
    if (st == TG_OK)
        st = tgi_graph_finish(g, 0, err);
    if (st != TG_OK)
        tgi_graph_free(&g);
    *out = g;
    return st;
}

static tg_status read_boxes(const tg_opts *o, tgi_mask_box box[MOST_BOXES], int *n,
                            tgi_err *err)
{
    const char *text = tgi_opts_str(o, TGI_OPT_MASK_BOX);
    for (*n = 0; text && *text; (*n)++) {
        if (*n == MOST_BOXES)
            return tgi_fail(err, TG_E_ARG, "--mask-box: %d boxes at most", MOST_BOXES);
        TGI_TRY(tgi_boxes_next(&text, &box[*n], err));
    }
    return TG_OK;
}

/* The size of the method's frames, as ProPainter's script reads these options, of what is of that size. */
static tg_status pick_size(const tg_opts *o, int64_t height, int64_t width, int64_t *h,
                           int64_t *w, tgi_err *err)
{
    const char *text = tgi_opts_str(o, TGI_OPT_RESIZE_RATIO);
    double ratio = 1;
    const int is_number = !text || tgi_number_parse(text, strlen(text), &ratio);
    *h = tgi_opts_int(o, TGI_OPT_HEIGHT, height);
    *w = tgi_opts_int(o, TGI_OPT_WIDTH, width);
    if (tgi_opts_given(o, TGI_OPT_HEIGHT) != tgi_opts_given(o, TGI_OPT_WIDTH))
        return tgi_fail(err, TG_E_ARG, "--width and --height are given together");
    if (!is_number || !(ratio > 0 && ratio <= 4))
        return tgi_fail(err, TG_E_ARG, "--resize-ratio %s: a factor of both sides, as 0.5",
                        text);
    *h = (int64_t)(ratio * (double)*h);
    *w = (int64_t)(ratio * (double)*w);
    if (tgi_job_draws(o)) { /* as the published script rounds */
        *h -= *h % 8;
        *w -= *w % 8;
    }
    if (*h < 2 || *w < 2 || *h > 16384 || *w > 16384)
        return tgi_fail(err, TG_E_ARG,
                        "frames of %lld x %lld: sides of 2 to 16384 are possible",
                        (long long)*w, (long long)*h);
    return TG_OK;
}

/* The film and the size that its file has: boxes are said in that, whatever the output's size. */
typedef struct from_film {
    const tgi_image_info *info; /* as it is worked on */
    int64_t height, width;
    tgi_canvas canvas; /* extended, it lies in that; height 0: it is not */
} from_film;

/* Of that size. */
static tg_status open_masks(tg_job *job, const from_film *film, int64_t height, int64_t width,
                            tgi_masks **out, tgi_err *err)
{
    const tgi_image_info *i = film->info;
    tgi_mask_box box[MOST_BOXES];
    const size_t budget = tgi_machine_budget(&job->machine, job->opts, NULL);
    const int endless = tgi_film_source_is_stream(job->source);
    int n;
    int64_t lo = 0, hi = i->n_planes;
    TGI_TRY(read_boxes(job->opts, box, &n, err));
    const int extended = film->canvas.height > 0;
    if (extended)
        n = tgi_canvas_border(&film->canvas, box);
    tgi_film_source_around(job->source, &lo, &hi);
    const tgi_masks_how how = {
        .path = tgi_opts_str(job->opts, TGI_OPT_MASK),
        .box = box,
        .n_boxes = n,
        .threshold = (int)tgi_opts_int(job->opts, TGI_OPT_MASK_THRESHOLD, -1),
        .invert = !extended && tgi_opts_flag(job->opts, TGI_OPT_MASK_INVERT),
        .dilation = extended ? 0 : (int)tgi_opts_int(job->opts, TGI_OPT_MASK_DILATION, 4),
        .frames = endless ? TGI_MASKS_NO_END : i->n_planes,
        .first = tgi_film_source_first(job->source),
        .whole = endless ? TGI_MASKS_NO_END : hi - lo,
        .height = height,
        .width = width,
        .box_height = film->height,
        .box_width = film->width,
        .open = {.threads = 1,
                 .decode_budget = tgi_decode_budget(budget),
                 .budget = budget,
                 .decoders = 1,
                 .spare = job->spare,
                 .cancelled = tgi_cancel_signal,
                 .truncated = tgi_opts_flag(job->opts, TGI_OPT_ALLOW_TRUNCATED)}};
    return tgi_masks_open(&how, out, err);
}

/* What the masks hide in all frames of the film, those around a part too: a part is what the whole is. */
static tg_status find_hidden(tg_job *job, const from_film *film, tgi_crop *out, tgi_err *err)
{
    const tgi_image_info *i = film->info;
    int64_t lo = 0, hi = i->n_planes;
    int none = 0;
    tgi_masks *m = NULL;
    tg_status st = open_masks(job, film, i->height, i->width, &m, err);
    if (st == TG_OK) {
        tgi_film_source_around(job->source, &lo, &hi);
        if (!tgi_masks_is_whole(m)) {
            lo = 0;
            hi = i->n_planes;
        }
        st = tgi_crop_of_masks(m, lo, hi, i->height, i->width, out, &none, err);
    }
    if (st == TG_OK && none)
        st = tgi_fail(err, TG_E_ARG, "--region: no frame hides anything");
    tgi_masks_close(&m);
    return st;
}

/* A source of samples as they are stored, if a film is made of a film that has them. */
static tg_status open_behind(tg_job *job,
                             tg_status (*again)(tg_job *job, tgi_source **out, tgi_err *err),
                             tgi_source **out, tgi_err *err)
{
    const tgi_av_info *from = tgi_film_source_info(job->source);
    if (!from || !tgi_job_wants_film(job) || job->set.pictures ||
        tgi_opts_choice(job->opts, TGI_OPT_COMPOSE) == 1 || tgi_job_squeezes(job->opts) ||
        tgi_opts_given(job->opts, TGI_OPT_OUTPUT_SIZE))
        return TG_OK;
    if (tgi_film_source_is_stream(job->source)) {
        tgi_job_warn(
            job,
            "%s: its frames come once, through a pipe: all samples of the output are what "
            "became of them as RGB (--compose official), also where nothing is removed",
            job->set.input);
        return TG_OK;
    }
    if ((from->rotation || from->flipped) && !tgi_film_says_turns(job->set.output)) {
        tgi_job_warn(job,
                     "%s: its frames are turned for viewing, which only .mp4 and .mov say: all "
                     "samples of %s are those of the turned picture",
                     job->set.input, job->set.output);
        return TG_OK;
    }
    TGI_TRY(again(job, out, err));
    return tgi_film_source_split(*out, TGI_FILM_PASSES_OUTSIDE, 0, err);
}

/* The size that --output-size says; 0 x 0: it is not given. */
static tg_status output_size(const tg_opts *o, int64_t *h, int64_t *w, tgi_err *err)
{
    const char *text = tgi_opts_str(o, TGI_OPT_OUTPUT_SIZE);
    long long high = 0, wide = 0;
    int n = 0;
    *h = *w = 0;
    if (!text)
        return TG_OK;
    if (sscanf(text, "%5lldx%5lld%n", &wide, &high, &n) != 2 || text[n] || wide < 2 ||
        high < 2 || wide > 16384 || high > 16384)
        return tgi_fail(err, TG_E_ARG,
                        "--output-size %s: width and height, as 1280x720; sides of 2 to 16384 "
                        "are possible",
                        text);
    *h = high;
    *w = wide;
    return TG_OK;
}

/* The film becomes one of the output's size, then it is extended. */
static tg_status to_output_size(const tg_job *job, tgi_source **s, tgi_canvas *canvas,
                                tgi_err *err)
{
    const tgi_image_info *i = (*s)->ops->info(*s);
    int64_t h, w;
    TGI_TRY(output_size(job->opts, &h, &w, err));
    if (h && (h != i->height || w != i->width))
        TGI_TRY(tgi_resized_open(*s, h, w, s, err));
    return tgi_job_extend(job->opts, s, canvas, err);
}

/* Of the method's frames: the size, and what of them is the film's. */
static tg_status pick_frames(const tg_opts *o, const from_film *film, const tgi_crop *part,
                             tgi_inpaint_how *how, tgi_err *err)
{
    const tgi_canvas *c = &film->canvas;
    if (!c->height)
        return pick_size(o, part->height, part->width, &how->height, &how->width, err);
    TGI_TRY(pick_size(o, c->y1 - c->y0, c->x1 - c->x0, &how->height, &how->width, err));
    const tgi_canvas own = tgi_job_canvas(o, how->height, how->width);
    how->canvas = tgi_job_squeezes(o) ? own : *c;
    how->height = own.height;
    how->width = own.width;
    return TG_OK;
}

/* What --region says, "" where it is not given: a part of the frames, grown to what the method takes. */
static tg_status pick_region(tg_job *job, const from_film *film, tgi_crop *out, tgi_err *err)
{
    const char *text = tgi_opts_str(job->opts, TGI_OPT_REGION);
    const tgi_image_info *i = film->info;
    const int drawn = tgi_job_draws(job->opts);
    tgi_crop hidden = {0};
    tgi_mask_box box = {0};
    *out = (tgi_crop){.height = i->height, .width = i->width};
    if (!text)
        return TG_OK;
    if (film->canvas.height)
        return tgi_fail(
            err, TG_E_ARG,
            "--region is of frames that keep their size, not of --mode outpainting");
    if (tgi_film_source_is_stream(job->source))
        return tgi_fail(
            err, TG_E_ARG,
            "--region: the frames of %s come once, through a pipe, and what is made "
            "is pasted into them: write it to a file first",
            job->set.input);
    const int found = strcmp(text, "auto") == 0;
    tgi_err none = {0};
    if (!found && (strchr(text, '@') || tgi_mask_box_parse(text, &box, &none) != TG_OK ||
                   box.x + box.width > i->width || box.y + box.height > i->height))
        return tgi_fail(err, TG_E_ARG,
                        "--region %s: auto, or a part of the frames of %lld x %lld: columns "
                        "and rows from the upper left corner, width, height, as 0,40,320,240",
                        text, (long long)i->width, (long long)i->height);
    TGI_TRY(find_hidden(job, film, &hidden, err));
    *out = found ? hidden : (tgi_crop){box.y, box.x, box.height, box.width};
    if (found)
        tgi_crop_add_margin(out);
    const char *ratio = tgi_opts_str(job->opts, TGI_OPT_RESIZE_RATIO);
    double by = 1;
    if (ratio)
        (void)tgi_number_begin(ratio, &by);
    const double least = drawn ? TGI_PP_SMALLEST : 16;
    tgi_crop_align(out, i->height, i->width, drawn ? 8 : 2,
                   (int64_t)(by > 0 && by < 1 ? (least + 8) / by : least));
    if (!tgi_crop_holds(out, &hidden))
        return tgi_fail(err, TG_E_ARG,
                        "--region %s: masks reach out of it: what they hide lies in "
                        "%lld,%lld,%lld,%lld; --region auto takes that and what is around it",
                        text, (long long)hidden.x, (long long)hidden.y, (long long)hidden.width,
                        (long long)hidden.height);
    if (out->height == i->height && out->width == i->width)
        return TG_OK;
    tgi_job_warn(job,
                 "--region: the method sees %lld x %lld pixels at column %lld, row %lld of "
                 "%lld x %lld, and nothing of the rest%s",
                 (long long)out->width, (long long)out->height, (long long)out->x,
                 (long long)out->y, (long long)i->width, (long long)i->height,
                 drawn ? ": motion and attention are of whole frames otherwise, so it draws "
                         "another thing"
                       : "");
    return TG_OK;
}

/* The film and its masks once more, where the method works at another size. */
static tg_status open_at_size(tg_job *job, const from_film *film, tgi_inpaint_how *how,
                              tg_status (*again)(tg_job *job, tgi_source **out, tgi_err *err),
                              tgi_err *err)
{
    const tgi_image_info *i = film->info;
    const int squeezed = tgi_job_squeezes(job->opts);
    tgi_at_size_how at = {.whole =
                              squeezed || tgi_opts_choice(job->opts, TGI_OPT_COMPOSE) == 1};
    from_film within = *film;
    tgi_canvas beside;
    /* The published script: frames as pictures are cubic, its film's are linear. */
    at.larger = at.whole && job->set.pictures ? TGI_RESIZE_CV_CUBIC : TGI_RESIZE_CV_LINEAR;
    TGI_TRY(pick_region(job, film, &at.part, err));
    TGI_TRY(pick_frames(job->opts, film, &at.part, how, err));
    if (squeezed) {
        at.canvas = within.canvas = how->canvas;
        within.height = how->height;
        within.width = how->width;
    }
    at.height = how->height;
    at.width = how->width;
    const int other_form =
        tgi_job_draws(job->opts) && (i->samples != 3 || i->dtype != TG_DTYPE_U8);
    const int is_part = at.part.height < i->height || at.part.width < i->width;
    if (at.height == i->height && at.width == i->width && !other_form)
        return TG_OK;
    if (tgi_film_source_is_stream(job->source))
        return tgi_fail(
            err, TG_E_ARG,
            "%s: frames of %lld x %lld come once, through a pipe, and what is drawn "
            "at %lld x %lld is pasted into them: give frames whose sides are "
            "multiples of 8, in RGB or YUV of 8 bits, name such a size with --output-size, or "
            "write them to a file first",
            job->set.input, (long long)i->width, (long long)i->height, (long long)at.width,
            (long long)at.height);
    tg_status st = again(job, &at.beside, err);
    if (st == TG_OK)
        st = to_output_size(job, &at.beside, &beside, err);
    if (st == TG_OK)
        st = open_masks(job, &within, i->height, i->width, &at.masks, err);
    if (st == TG_OK && (squeezed || (at.whole && !is_part && tgi_job_draws(job->opts))))
        st = open_masks(job, &within, at.height, at.width, &how->small, err);
    if (st == TG_OK)
        st = tgi_at_size_new(i, &at, &how->at_size, err);
    if (st != TG_OK) {
        tgi_masks_close(&at.masks);
        if (at.beside)
            tgi_source_close(&at.beside);
    }
    return st;
}

static tg_status open_parts(tg_job *job, tgi_inpaint_how *how,
                            tg_status (*again)(tg_job *job, tgi_source **out, tgi_err *err),
                            tgi_err *err)
{
    const tgi_image_info *i = job->source->ops->info(job->source);
    from_film film = {.height = i->height, .width = i->width};
    TGI_TRY(tgi_job_cuts(job, &how->cuts, err));
    TGI_TRY(to_output_size(job, &job->source, &film.canvas, err));
    i = film.info = job->source->ops->info(job->source);
    if (film.canvas.height) {
        film.height = film.canvas.height;
        film.width = film.canvas.width;
    }
    if (method_of(job->opts) == PROPAGATE)
        TGI_TRY(tgi_graph_load_onnx(job->set.model, 0, &how->network, err));
    if (method_of(job->opts) == PROPAINTER)
        TGI_TRY(
            tgi_pp_weights_open(tgi_opts_str(job->opts, TGI_OPT_WEIGHTS), how->weights, err));
    TGI_TRY(open_masks(job, &film, i->height, i->width, &how->masks, err));
    TGI_TRY(open_at_size(job, &film, how, again, err));
    TGI_TRY(open_behind(job, again, &how->behind, err));
    TGI_TRY(make_graph(i->samples, &job->graph, err));
    return tgi_inpaint_open(job->source, how, &job->source, err);
}

/* Where the last frame is shown: what cannot be written is told before hours are spent. */
static tg_status check_live(const tg_job *job, tgi_err *err)
{
    char folder[4096];
    const char *path = tgi_opts_str(job->opts, TGI_OPT_LIVE);
    const size_t n = path ? strlen(path) : 0;
    const char *slash = path ? strrchr(path, '/') : NULL;
    if (!path)
        return TG_OK;
    if (n < 5 || strcmp(path + n - 4, ".png") != 0)
        return tgi_fail(err, TG_E_ARG, "--live %s: it is a PNG: --live last.png", path);
    if (access(path, F_OK) == 0 && !job->set.overwrite &&
        !tgi_gate_interrupted(job->set.output))
        return tgi_fail(err, TG_E_EXISTS, "--live %s: exists already; -y replaces it", path);
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) + 1 : 1,
             slash ? path : ".");
    return access(folder, W_OK | X_OK) == 0
               ? TG_OK
               : tgi_fail(err, TG_E_IO, "--live %s: %s: %s", path, folder, strerror(errno));
}

/* The run that is at work on the output, or made it, had a folder for its frames. */
static int saved_there(const char *output)
{
    char said[8] = "", *job = tgi_output_job(output);
    if (job)
        (void)tgi_fingerprint_get(job, strlen(job), "save-frames", said, sizeof said);
    tgi_free(job);
    return strcmp(said, "true") == 0;
}

/* The folder of --save-frames: no other run's, and no input's, so it is not there when a run begins. */
static tg_status check_save(tg_job *job, tgi_err *err)
{
    const char *out = job->set.output;
    const char *dot = out ? strrchr(out, '.') : NULL;
    if (!tgi_opts_flag(job->opts, TGI_OPT_SAVE_FRAMES) || !out)
        return TG_OK;
    if (!dot || strchr(dot, '/') || !tgi_job_wants_film(job) || job->set.pictures ||
        tgi_job_wants_pipe(job))
        return tgi_fail(
            err, TG_E_ARG,
            "--save-frames is beside a film, as -o clean.mp4: -o 'out/%%05d.png' writes "
            "pictures alone");
    const size_t n = (size_t)(dot - out);
    job->set.save_frames = tgi_malloc(TGI_TAG_MISC, n + sizeof "_frames");
    if (!job->set.save_frames)
        return tgi_fail(err, TG_E_NOMEM, "no memory for the name of a folder");
    memcpy(job->set.save_frames, out, n);
    memcpy(job->set.save_frames + n, "_frames", sizeof "_frames");
    struct stat is;
    return lstat(job->set.save_frames, &is) == 0 && !saved_there(out)
               ? tgi_fail(
                     err, TG_E_EXISTS,
                     "--save-frames: %s is there already: remove it, or name another output",
                     job->set.save_frames)
               : TG_OK;
}

/* One film comes of it, so a folder's name says nothing about what is meant. */
static tg_status check_output(const tg_job *job, tgi_err *err)
{
    const char *out = job->set.output;
    if (!out || !tgi_names_folder(out) || tgi_opts_given(job->opts, TGI_OPT_PREVIEW))
        return TG_OK;
    const size_t n = strlen(out);
    const char *slash = out[n - 1] == '/' ? "" : "/";
    return tgi_fail(
        err, TG_E_ARG,
        "-o %s: a folder; -o '%s%s%%05d.png' writes a picture of each frame into it, "
        "-o %s%sclean.mp4 a film",
        out, out, slash, out, slash);
}

/* Settings of another method. */
static void say_unused(tg_job *job)
{
    static const struct {
        tgi_opt opt;
        int method;
    } of[] = {{TGI_OPT_REACH, PROPAGATE},
              {TGI_OPT_WEIGHTS, PROPAINTER},
              {TGI_OPT_SUBVIDEO_LENGTH, PROPAINTER},
              {TGI_OPT_NEIGHBOR_LENGTH, PROPAINTER},
              {TGI_OPT_REF_STRIDE, PROPAINTER},
              {TGI_OPT_RAFT_ITER, PROPAINTER},
              {TGI_OPT_FP16, PROPAINTER},
              {TGI_OPT_FEATURE_CACHE, PROPAINTER}};
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++)
        if (tgi_opts_given(job->opts, of[i].opt) && method_of(job->opts) != of[i].method)
            tgi_job_warn(job, "--%s is not used: it is of --method %s%s",
                         tgi_option_table(NULL)[of[i].opt].name,
                         of[i].method == PROPAINTER ? "propainter" : "propagate",
                         of[i].method == PROPAINTER && of[i].opt != TGI_OPT_WEIGHTS
                             ? ", with --weights"
                             : "");
}

/* What --fp16 asks for and does not get. */
static void say_halves(tg_job *job)
{
    const int precision = tgi_opts_choice(job->opts, TGI_OPT_PRECISION);
    if (!tgi_opts_flag(job->opts, TGI_OPT_FP16) || !tgi_job_draws(job->opts))
        return;
    if (!tgi_job_wants_device(job->opts))
        tgi_job_warn(
            job,
            "--fp16: this processor has no arithmetic of half precision, so it is float32; "
            "sizes and schedule are what they would be");
    else if (precision != TGI_PRECISION_AUTO && precision != TGI_PRECISION_FP16)
        tgi_job_warn(job, "--fp16 is not used: --precision %s says otherwise",
                     tgi_opts_str(job->opts, TGI_OPT_PRECISION));
}

tg_status tgi_job_inpaint_open(tg_job *job,
                               tg_status (*again)(tg_job *job, tgi_source **out, tgi_err *err),
                               tgi_err *err)
{
    TGI_TRY(check_live(job, err));
    TGI_TRY(check_output(job, err));
    TGI_TRY(check_save(job, err));
    say_unused(job);
    TGI_TRY(tgi_job_outpaint_check(job, err));
    say_halves(job);
    if (tgi_film_source_is_stream(job->source) && !tgi_job_draws(job->opts))
        return tgi_fail(err, TG_E_ARG,
                        "%s: its frames come once, through a pipe, and later ones show what is "
                        "behind what is removed: write it to a file first",
                        job->set.input);
    tgi_inpaint_how how = {.shows = method_of(job->opts) == SHOW,
                           .reach = (int)tgi_opts_int(job->opts, TGI_OPT_REACH, 40),
                           .threads = job->set.threads,
                           .set = {tgi_opts_int(job->opts, TGI_OPT_SUBVIDEO_LENGTH, 80),
                                   tgi_opts_int(job->opts, TGI_OPT_NEIGHBOR_LENGTH, 10),
                                   tgi_opts_int(job->opts, TGI_OPT_REF_STRIDE, 10)},
                           .iterations = (int)tgi_opts_int(job->opts, TGI_OPT_RAFT_ITER, 20),
                           .no_cache = tgi_opts_choice(job->opts, TGI_OPT_FEATURE_CACHE) == 1,
                           .flags = tgi_job_net_flags(job),
                           .be = job->set.backend,
                           .scratch = job->set.scratch,
                           .shown = {.live = tgi_opts_str(job->opts, TGI_OPT_LIVE),
                                     .folder = job->set.save_frames,
                                     .first = tgi_film_source_first(job->source)}};
    const tg_status st = open_parts(job, &how, again, err);
    if (st != TG_OK) {
        tgi_masks_close(&how.masks);
        tgi_graph_free(&how.network);
        for (int i = 0; i < 3; i++)
            tgi_weights_close(&how.weights[i]);
        tgi_masks_close(&how.small);
        tgi_at_size_free(&how.at_size);
        tgi_cuts_free(&how.cuts);
        if (how.behind)
            tgi_source_close(&how.behind);
        return st;
    }
    tgi_ram_spec ram;
    if (tgi_opts_ram(job->opts, &ram) && !tgi_opts_asked(job->opts, TGI_OPT_RAM) &&
        tgi_machine_budget(&job->machine, job->opts, NULL) >
            job->machine.free_bytes + job->machine.own_bytes) {
        char size[32];
        tgi_job_warn(job, "the preset's --ram %s is more than is free (%s)",
                     tgi_opts_str(job->opts, TGI_OPT_RAM),
                     tgi_size_text(job->machine.free_bytes, size, sizeof size));
    }
    char settings[256];
    tgi_inpaint_note(job->source, settings, sizeof settings);
    if (*settings)
        tgi_job_warn(job, "%s", settings);
    const int64_t joined = tgi_inpaint_joined(job->source);
    if (joined)
        tgi_job_warn(
            job,
            "--split-scenes: %lld scene%s of one frame joined to the next one (the last "
            "to the one before): ProPainter draws from other frames",
            (long long)joined, joined == 1 ? "" : "s");
    const char *note;
    for (int i = 0; (note = tgi_masks_note(how.masks, i)); i++)
        tgi_job_warn(job, "%s", note);
    return TG_OK;
}

/* ---- Fingerprint ------------------------------------------------------------------------- */

static tg_status sum_of_cuts(const tgi_cuts *c, char sum[TGI_SHA256_TEXT], tgi_err *err)
{
    tgi_sha256 h;
    char *text = tgi_cuts_text(c, 0);
    if (!text)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a list of scenes");
    tgi_sha256_begin(&h);
    tgi_sha256_add(&h, text, strlen(text));
    tgi_sha256_end(&h, sum);
    tgi_free(text);
    return TG_OK;
}

tg_status tgi_job_inpaint_fingerprint(const tg_job *job, tgi_lines *t, tgi_err *err)
{
    static const tgi_opt all[] = {TGI_OPT_REGION,
                                  TGI_OPT_WIDTH,
                                  TGI_OPT_HEIGHT,
                                  TGI_OPT_RESIZE_RATIO,
                                  TGI_OPT_OUTPUT_SIZE,
                                  TGI_OPT_MASK_BOX,
                                  TGI_OPT_MASK_THRESHOLD,
                                  TGI_OPT_MASK_INVERT,
                                  TGI_OPT_MASK_DILATION,
                                  TGI_OPT_METHOD,
                                  TGI_OPT_REACH,
                                  TGI_OPT_COMPOSE,
                                  TGI_OPT_SUBVIDEO_LENGTH,
                                  TGI_OPT_NEIGHBOR_LENGTH,
                                  TGI_OPT_REF_STRIDE,
                                  TGI_OPT_RAFT_ITER,
                                  TGI_OPT_EXACT};
    const tgi_masks *masks = tgi_inpaint_masks(job->source);
    tgi_held any;
    if (!masks)
        return TG_OK;
    if (tgi_masks_held(masks, 0, &any))
        TGI_TRY(tgi_fingerprint_files(t, "mask", tgi_masks_held, masks, err));
    static const char *const of[3] = {"network of motion", "network of completion",
                                      "network of the generator"};
    for (int i = 0; i < 3 && tgi_inpaint_weights(job->source, i); i++) {
        char sum[TGI_SHA256_TEXT];
        TGI_TRY(tgi_weights_sum(tgi_inpaint_weights(job->source, i), sum, err));
        tgi_lines_add(t, of[i], "%s", sum);
    }
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        const char *value = all[i] == TGI_OPT_METHOD ? tgi_job_method(job->opts)
                                                     : tgi_opts_str(job->opts, all[i]);
        /* "region" is what of the output is made (--roi). */
        tgi_lines_add(t,
                      all[i] == TGI_OPT_REGION ? "part of the frames"
                                               : tgi_option_table(NULL)[all[i]].name,
                      "%s", value ? value : "");
    }
    if (job->set.save_frames)
        tgi_lines_add(t, "save-frames", "true");
    if (tgi_job_splits(job->opts)) {
        char sum[TGI_SHA256_TEXT];
        TGI_TRY(sum_of_cuts(tgi_inpaint_cuts(job->source), sum, err));
        tgi_lines_add(t, "scenes", "%s", sum);
    }
    const tgi_canvas *c = tgi_inpaint_canvas(job->source);
    if (c->height)
        tgi_lines_add(t, "extended", "%lldx%lld+%lld+%lld%s", (long long)c->width,
                      (long long)c->height, (long long)c->x0, (long long)c->y0,
                      tgi_job_squeezes(job->opts) ? ", squeezed" : "");
    return TG_OK;
}

/* ---- Plan -------------------------------------------------------------------------------- */

void tgi_job_count_source(tg_job *job, size_t all)
{
    tgi_bytes *b = &job->plan.bytes;
    b->inpaint = tgi_inpaint_bytes(job->source);
    b->decoder = all - b->inpaint;
}

void tgi_job_inpaint_line(tg_job *job)
{
    char text[128];
    if (!job->plan.bytes.inpaint)
        return;
    tgi_inpaint_text(job->source, text, sizeof text);
    tgi_job_add_line(&job->plan, "inpaint", job->plan.bytes.inpaint, TG_PLAN_MEMORY, 0, "%s",
                     text);
    if (tgi_inpaint_disk(job->source))
        tgi_job_add_line(&job->plan, "frames", tgi_inpaint_disk(job->source), TG_PLAN_DISK,
                         job->scratch_place.free_bytes, "%s",
                         "pixels and motions in --scratch");
    tgi_job_source_device_lines(job);
}
