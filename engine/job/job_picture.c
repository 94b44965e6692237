/* job_picture.c - the finished tiles, read back row by row, become a PNG or JPEG file or a
 * stack of ImageJ. */
#include "engine/job/job_picture.h"
#include "engine/base/cancel.h"
#include "engine/job/ends.h"
#include "engine/job/job_device.h"
#include "engine/job/job_film.h"
#include "engine/job/job_plan.h"
#include "engine/job/job_settings.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "engine/graph/card.h"
#include "engine/job/job.h"
#include "io/film_out.h"
#include "io/ome_write.h"
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
        return tgi_fail(err, st, "%s: %s: choose --dtype, --planes or --roi", path, why.text);
    return tgi_fail(err, st, "%s: %s: write .tif%s", path, why.text, choose);
}

void tgi_job_meta(const tg_job *job, tgi_image_meta *out)
{
    const tgi_mapping *m = &job->map;
    tgi_mapping_meta(m, job->info, out);
    if (m->out_channels > 1 && !m->out_samples && job->graph)
        out->channel_stem = job->graph->out[0].name;
    const tgi_card_port *says = job->set.card ? &job->set.card->out[0] : NULL;
    if (says && says->n_names == m->out_channels && !m->out_samples) {
        out->made_name = says->channel_name;
        out->n_made = says->n_names;
    }
}

const char *tgi_picture_lost(const tgi_picture_writer *w, int other, const tgi_sink_layout *l,
                             const tgi_image_meta *meta, char *buf, size_t cap)
{
    buf[0] = 0;
    return !w && !other && l && tgi_ome_can(l)
               ? buf
               : tgi_ome_kept_words(meta->ome, &meta->ome_place, buf, cap);
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
