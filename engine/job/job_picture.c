/* job_picture.c - the finished tiles, read back row by row, become a PNG or JPEG file or a
 * stack of ImageJ. */
#include "engine/job/job_picture.h"
#include "engine/base/cancel.h"
#include "engine/job/ends.h"
#include "engine/job/job_device.h"
#include "engine/job/job_film.h"
#include "engine/job/job_open.h"
#include "engine/job/job_plan.h"
#include "engine/job/job_post.h"
#include "engine/job/job_settings.h"
#include "engine/job/lost.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "engine/ends/tensors.h"
#include "engine/graph/card.h"
#include "engine/job/job.h"
#include "io/film_out.h"
#include "io/ome_write.h"
#include "io/picked.h"
#include "io/raw_frames.h"

#include <string.h>

#define ROWS_BYTES ((size_t)1 << 20)   /* read at once, unless a row is longer */
#define READER_BYTES ((size_t)2 << 20) /* a window on uncompressed tiles, and the index */

static tgi_picture_spec spec_of(const tgi_sink_layout *l, const tgi_image_meta *meta)
{
    tgi_picture_spec s = {.height = l->height,
                          .width = l->width,
                          .samples = l->samples,
                          .dtype = l->dtype == TG_DTYPE_BOOL ? TG_DTYPE_U8 : l->dtype,
                          .meta = meta};
    memcpy(s.axes, l->axes, sizeof s.axes);
    memcpy(s.shape, l->shape, sizeof s.shape);
    return s;
}

static bool ends_in(const char *s, const char *end)
{
    const size_t n = strlen(s), k = strlen(end);
    return n >= k && strcmp(s + n - k, end) == 0;
}

/* Frames without a header go to standard output, or to what is named so; a plan names nothing. */
static tg_status check_raw(const char *path, tgi_err *err)
{
    const char *container = tgi_film_container(path);
    if (!path || strcmp(path, TGI_FILM_STDOUT) == 0 ||
        (container && strcmp(container, TGI_RAW_CONTAINER) == 0))
        return TG_OK;
    return tgi_fail(err, TG_E_ARG,
                    "--format raw is for a film's frames without a header, -o - or -o OUT.raw, "
                    "and %s is named otherwise",
                    path);
}

tg_status tgi_picture_choose(const tg_opts *opts, const tgi_picture_writer **out, tgi_err *err)
{
    tgi_compress_spec z;
    const char *path = tgi_opts_str(opts, TGI_OPT_OUTPUT);
    const tgi_picture_writer *named = tgi_picture_writer_for(path);
    tgi_opts_compress(opts, &z);
    *out = named;
    if (tgi_opts_choice(opts, TGI_OPT_FORMAT) == TGI_FORMAT_RAW)
        return check_raw(path, err);
    if (tgi_opts_choice(opts, TGI_OPT_FORMAT) != TGI_FORMAT_IMAGEJ)
        return TG_OK;
    if (named || (path && ends_in(path, ".npy")))
        return tgi_fail(err, TG_E_ARG, "--format imagej is a TIFF, and %s is named otherwise",
                        path);
    if (tgi_is_named_ome(path))
        return tgi_fail(
            err, TG_E_ARG,
            "%s: --format imagej writes no OME-XML, and the name says that there is "
            "some: name it OUT.tif, or leave out --format imagej",
            path);
    if (z.kind != TGI_COMPRESS_NONE)
        return tgi_fail(err, TG_E_ARG,
                        "ImageJ reads stacks that are not compressed: leave out --compress, or "
                        "--format imagej");
    if (tgi_opts_pyramid(opts) != TGI_PYRAMID_NONE)
        return tgi_fail(err, TG_E_ARG,
                        "an ImageJ stack has no smaller levels: leave out --pyramid, or "
                        "--format imagej");
    *out = &tgi_imagej_writer;
    return TG_OK;
}

/* Of types that a stack holds it is the shape that does not fit. */
static const char *imagej_cure(tg_dtype d)
{
    return d == TG_DTYPE_U8 || d == TG_DTYPE_U16 || d == TG_DTYPE_I16 || d == TG_DTYPE_F32
               ? "choose --dtype, --channels, --planes or --roi, or leave out --format imagej"
           : d == TG_DTYPE_U32 || d == TG_DTYPE_BOOL ? "give --dtype uint16"
                                                     : "give --dtype float32";
}

tg_status tgi_picture_check(const tgi_picture_writer *w, const char *path,
                            const tgi_sink_layout *l, const tgi_image_meta *meta, tgi_err *err)
{
    const tgi_picture_spec s = spec_of(l, meta);
    if (!w)
        return TG_OK;
    tgi_err why = {0};
    const char *choose = ", or choose --dtype or --roi";
    tg_status st = w->may(&s, &why);
    if (st == TG_OK && !w->images && l->n_planes != 1) {
        st = tgi_fail(&why, TG_E_ARG, "a %s holds one plane, the output has %lld", w->name,
                      (long long)l->n_planes);
        choose = l->axes[0] == 'T'
                     ? ", or a picture for each frame: -o out_%05d with this ending"
                     : ", choose one with --planes, or with --labels the class where they are "
                       "scores";
    }
    if (st == TG_OK && !w->images && meta && meta->stored_as >= TGI_STORED_CMYK) {
        st = tgi_fail(&why, TG_E_ARG, "a %s holds light, the samples are %s", w->name,
                      meta->stored_as == TGI_STORED_CMYK ? "CMYK inks" : "Lab");
        choose = "";
    }
    if (st == TG_OK)
        return TG_OK;
    if (w->images)
        return tgi_fail(err, st, "%s: %s: %s", path, why.text, imagej_cure(s.dtype));
    return tgi_fail(err, st, "%s: %s: write .tif%s", path, why.text, choose);
}

int tgi_job_sets_colours_apart(const tg_job *job)
{
    const char *out = job->set.output;
    return job->graph && out && tgi_net_channels(job->graph) == 1 && !tgi_names_npy(out) &&
           !tgi_picture_writer_for(out) && !tgi_job_wants_film(job);
}

/* Of planes that became one axis: what is known of each, and of a channel while it is the only one. */
static void put_in_turn(const tg_job *job, tgi_image_meta *out)
{
    const tgi_mapping *m = &job->map;
    const int one = m->out_channels == 1 && !m->from_samples;
    tgi_in_turn_meta(&job->in_turn, job->info, out);
    out->n_ranges = 0; /* the values are others */
    out->ome_place.no_planes = out->ome_place.other_slices;
    if (!one || m->spatial == 3)
        out->n_labels = 0;
    if (!one)
        out->n_luts = 0;
    else if (job->in_turn.channel >= 0)
        out->ome_place.any_channel = 0;
}

void tgi_job_meta(const tg_job *job, tgi_image_meta *out)
{
    const tgi_mapping *m = &job->map;
    tgi_mapping_meta(m, job->info, out);
    const int made =
        m->out_channels > 1 ? !m->out_samples : m->channels > 1 && !m->from_samples;
    if (made && job->graph)
        out->channel_stem = job->graph->out[0].name;
    if (job->in_turn.n)
        put_in_turn(job, out);
    const tgi_card_port *says = job->set.card ? &job->set.card->out[0] : NULL;
    if (says && says->n_names == m->out_channels && !m->out_samples) {
        out->made_name = says->channel_name;
        out->n_made = says->n_names;
    }
}

/* Of the output. */
static int64_t channels_of(const tgi_mapping *m)
{
    int64_t n = 1;
    for (int i = 0; m->out_axes[i]; i++)
        n *= strchr("CQ", m->out_axes[i]) ? m->out_shape[i] : 1;
    return n;
}

void tgi_job_tell_input(tg_job *job)
{
    if (job->info->note[0])
        tgi_job_warn(job, "%s: %s", job->set.input, job->info->note);
    if (tgi_more_images(job->info, job->opts))
        tgi_job_warn(job, TGI_MORE_IMAGES, job->set.input, TGI_MORE_IMAGES_OF(job->info));
    if (tgi_in_more_files(job->info, job->opts))
        tgi_job_warn(job, TGI_IN_MORE_FILES, job->set.input, (long long)job->info->n_files);
    if (job->info->meta.malformed[0])
        tgi_job_warn(job, TGI_MALFORMED_META, job->set.input, job->info->meta.malformed);
    if (job->info->meta.left_behind[0])
        tgi_job_warn(job, "%s: it also has %s: outputs do not carry these", job->set.input,
                     job->info->meta.left_behind);
}

static void tell_lost_shapes(tg_job *job, const tgi_image_meta *meta)
{
    const int64_t shapes = tgi_rois_lost(meta->ome, &meta->ome_place);
    if (shapes)
        tgi_job_warn(job, TGI_LOST_SHAPES, job->set.output, (long long)shapes,
                     shapes == 1 ? "" : "s", shapes == 1 ? "is" : "are");
}

static void tell_lost_labels(tg_job *job, const tgi_image_meta *meta)
{
    if (tgi_lost_labels(&job->info->meta, meta))
        tgi_job_warn(job, TGI_LOST_LABELS, tgi_opts_str(tgi_job_asked(job), TGI_OPT_OUTPUT));
}

static void tell_lost_channels(tg_job *job, const tgi_image_meta *meta)
{
    char words[160];
    const tgi_in_turn *turn = &job->in_turn;
    if (turn->n && turn->along[1] && turn->channel < 0)
        return; /* it was said */
    tgi_lost_channels(&job->info->meta, meta, channels_of(&job->map), words, sizeof words);
    if (words[0])
        tgi_job_warn(job, TGI_LOST_CHANNELS, tgi_opts_str(tgi_job_asked(job), TGI_OPT_OUTPUT),
                     words);
}

/* A viewer takes three samples for red, green and blue, whatever the network got and gives. */
static void tell_colours(tg_job *job)
{
    const tgi_image_info *whole = NULL;
    int64_t n;
    if (job->map.out_samples && !job->info->meta.colours &&
        tgi_picked_choice(job->source, &n, &whole) && whole->meta.colours == 3)
        tgi_job_warn(job,
                     "%s: viewers take what the network gives for red, green and blue, and "
                     "--channels gave it other colours, or in another order: a TIFF does not "
                     "say what they are",
                     job->set.output);
}

void tgi_job_tell_lost(tg_job *job, const tgi_image_meta *meta)
{
    char words[480];
    const tgi_lost_to to = job->film ? TGI_LOST_TO_FILM : TGI_LOST_TO_IMAGE;
    const tgi_picture_writer *w = job->set.writer;
    if (!job->set.output || job->told_lost)
        return;
    job->told_lost = 1;
    tgi_lost_words(to, w, job->plan.layout, meta, words, sizeof words);
    if (words[0] && !job->post)
        tgi_job_warn(job, TGI_LOST_META, job->set.output, words, tgi_lost_why(to, w));
    if (w && !w->images && !job->post)
        tell_colours(job);
    if (job->film || (w && !w->images))
        return;
    tell_lost_channels(job, meta);
    tell_lost_labels(job, meta);
    if (!job->post && tgi_lost_nothing(to, w, job->plan.layout))
        tell_lost_shapes(job, meta);
}

/* A picture of numbers on the input's scale is of the input's type; of others there is none. */
static void choose_type(tg_job *job)
{
    tgi_settings *s = &job->set;
    tg_dtype asked;
    const tg_dtype in = job->info ? job->info->dtype : TG_DTYPE_NONE;
    if (job->plan.valid || (!tgi_picture_writer_for(s->output) && !tgi_job_wants_film(job)) ||
        tgi_opts_dtype(job->opts, &asked) || !tgi_dtype_is_float(s->dtype) ||
        s->descriptor.says_values || (in != TG_DTYPE_U8 && in != TG_DTYPE_U16))
        return;
    s->dtype = in;
    s->invert = 1;
}

static tg_status plan_output(tg_job *job, tgi_plan_ask ask, tgi_err *err)
{
    choose_type(job);
    TGI_TRY(tgi_job_device_choose(job, err));
    TGI_TRY(tgi_job_plan(job, ask, err));
    return job->ends->check_output ? job->ends->check_output(job, err) : TG_OK;
}

tg_status tgi_job_plan_output(tg_job *job, tgi_err *err)
{
    return plan_output(job, (tgi_plan_ask){0}, err);
}

tg_status tgi_job_plan_to_run(tg_job *job, tgi_err *err)
{
    return plan_output(job, (tgi_plan_ask){.measured = 1}, err);
}

/* Rows read at once: pixels, and one row of them interleaved. */
static int64_t rows_at_once(const tgi_sink_layout *l, size_t row)
{
    return tgi_clamp((int64_t)(ROWS_BYTES / row), 1, l->height);
}

size_t tgi_picture_make_bytes(const tgi_picture_writer *w, const tgi_sink_layout *l,
                              const tgi_image_meta *meta)
{
    const tgi_picture_spec s = spec_of(l, meta);
    const size_t row = (size_t)l->width * l->pixel_bytes;
    tgi_err none = {0};
    if (!w || w->may(&s, &none) != TG_OK)
        return 0;
    return w->bytes(&s) + READER_BYTES + ((size_t)rows_at_once(l, row) + 1) * row;
}

typedef struct making {
    const tgi_picture_writer *writer;
    const tgi_sink_layout *layout;
    const tgi_image_meta *meta;
} making;

/* Samples that lie in planes, side by side. */
static void interleave(uint8_t *dst, const uint8_t *src, size_t sample_pitch, int64_t n,
                       int samples, size_t size)
{
    for (int k = 0; k < samples; k++)
        for (int64_t x = 0; x < n; x++)
            memcpy(dst + ((size_t)x * (size_t)samples + (size_t)k) * size,
                   src + (size_t)k * sample_pitch + (size_t)x * size, size);
}

/* One image of the file: samples [s0, s1) of a plane. */
static tg_status copy_image(const making *m, tgi_source *s, void *state, int64_t plane, int s0,
                            int s1, uint8_t *band, int64_t rows, uint8_t *row, tgi_err *err)
{
    const tgi_sink_layout *l = m->layout;
    const size_t size = tgi_dtype_size(l->dtype), pitch = (size_t)l->width * size;
    for (int64_t y = 0; y < l->height; y += rows) {
        const int64_t n = tgi_min(rows, l->height - y);
        if (tgi_cancel_signal())
            return tgi_fail(err, TG_E_CANCELLED, "stopped by %s; the same command goes on",
                            tgi_cancel_by());
        TGI_TRY(s->ops->read(s, 0, plane, s0, s1, y, y + n, 0, l->width, band, pitch,
                             pitch * (size_t)n, err));
        for (int64_t r = 0; r < n; r++) {
            interleave(row, band + (size_t)r * pitch, pitch * (size_t)n, l->width, s1 - s0,
                       size);
            TGI_TRY(m->writer->row(state, row, err));
        }
    }
    return TG_OK;
}

static tg_status copy_rows(const making *m, const tgi_picture_spec *spec, tgi_source *s,
                           void *state, uint8_t *band, int64_t rows, uint8_t *row, tgi_err *err)
{
    const tgi_picture_writer *w = m->writer;
    const int64_t images = w->images ? w->images(spec) : 1;
    for (int64_t i = 0; i < images; i++) {
        int sample = -1;
        const int64_t plane = w->source ? w->source(spec, i, &sample) : 0;
        const int s0 = sample < 0 ? 0 : sample, s1 = sample < 0 ? spec->samples : sample + 1;
        TGI_TRY(copy_image(m, s, state, plane, s0, s1, band, rows, row, err));
    }
    return w->finish(state, err);
}

static tg_status make(void *arg, const char *partial, const char *made, tgi_err *err)
{
    const making *m = arg;
    const tgi_sink_layout *l = m->layout;
    const tgi_open_opts o = {.threads = 1};
    const tgi_picture_spec spec = spec_of(l, m->meta);
    const tgi_part_spec part = {
        .path = made, .ending = "", .bytes = TGI_PART_GROWS, .replace = 1};
    tgi_part to = TGI_PART_CLOSED;
    const size_t pixels = (size_t)l->width * l->pixel_bytes;
    const int64_t rows = rows_at_once(l, pixels);
    tgi_source *s = NULL;
    void *state = NULL;
    uint8_t *band = tgi_malloc(TGI_TAG_IO, ((size_t)rows + 1) * pixels);
    tg_status st = band ? tgi_source_open(partial, &o, &s, err)
                        : tgi_fail(err, TG_E_NOMEM, "%s: no memory for rows", made);
    if (st == TG_OK)
        st = tgi_part_create(&part, &to, err);
    if (st == TG_OK)
        st = m->writer->create(&to, &spec, &state, err);
    if (st == TG_OK)
        st = copy_rows(m, &spec, s, state, band, rows, band + (size_t)rows * pixels, err);
    if (state)
        m->writer->close(state);
    to.keep = st == TG_OK; /* the journal gives it its name */
    tgi_part_drop(&to);
    tgi_source_close(&s);
    tgi_free(band);
    return st;
}

tg_status tgi_picture_make(const tgi_picture_writer *w, const tgi_sink_layout *l,
                           const tgi_image_meta *meta, tgi_journal *j, tgi_err *err)
{
    making m = {w, l, meta};
    return w ? tgi_journal_make(j, make, &m, err) : TG_OK;
}
