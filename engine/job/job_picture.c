/* job_picture.c - the finished tiles, read back row by row, become a PNG or JPEG file. */
#include "engine/job/job_picture.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "engine/job/job.h"

#include <string.h>

#define ROWS_BYTES ((size_t)1 << 20)   /* read at once, unless a row is longer */
#define READER_BYTES ((size_t)2 << 20) /* a window on uncompressed tiles, and the index */

static tgi_picture_spec spec_of(const tg_sink_layout *l, const tg_image_meta *meta)
{
    return (tgi_picture_spec){.height = l->height,
                              .width = l->width,
                              .samples = l->samples,
                              .dtype = l->dtype == TG_DTYPE_BOOL ? TG_DTYPE_U8 : l->dtype,
                              .meta = meta};
}

tg_status tgi_picture_check(const char *path, const tg_sink_layout *l, tgi_err *err)
{
    const tgi_picture_writer *w = tgi_picture_writer_for(path);
    const tgi_picture_spec s = spec_of(l, NULL);
    if (!w)
        return TG_OK;
    tg_status st = w->may(&s, err);
    if (st == TG_OK && l->n_planes != 1)
        st = tgi_fail(err, TG_E_ARG, "a %s holds one plane, the output has %lld", w->name,
                      (long long)l->n_planes);
    if (st == TG_E_ARG) {
        const tgi_err why = *err;
        st = tgi_fail(err, st, "%s: %s: write .tif, or choose --dtype, --planes or --roi", path,
                      why.text);
    }
    return st;
}

/* A picture of numbers on the input's scale is of the input's type; of others there is none. */
static void choose_type(tg_job *job)
{
    tg_settings *s = &job->set;
    tg_dtype asked;
    const tg_dtype in = job->info ? job->info->dtype : TG_DTYPE_NONE;
    if (job->plan.valid || s->tensor || !tgi_picture_writer_for(s->output) ||
        tgi_opts_dtype(job->opts, &asked) || !tgi_dtype_is_float(s->dtype) ||
        s->descriptor.present || (in != TG_DTYPE_U8 && in != TG_DTYPE_U16))
        return;
    s->dtype = in;
    s->invert = 1;
}

tg_status tgi_job_plan_output(tg_job *job, tgi_err *err)
{
    choose_type(job);
    TGI_TRY(tgi_job_plan(job, err));
    return job->set.tensor ? TG_OK : tgi_picture_check(job->set.output, job->plan.layout, err);
}

/* Rows read at once: pixels, and one row of them interleaved. */
static int64_t rows_at_once(const tg_sink_layout *l, size_t row)
{
    return tgi_clamp((int64_t)(ROWS_BYTES / row), 1, l->height);
}

size_t tgi_picture_make_bytes(const char *path, const tg_sink_layout *l)
{
    const tgi_picture_writer *w = tgi_picture_writer_for(path);
    const tgi_picture_spec s = spec_of(l, NULL);
    const size_t row = (size_t)l->width * l->pixel_bytes;
    tgi_err none = {0};
    if (!w || w->may(&s, &none) != TG_OK)
        return 0;
    return w->bytes(&s) + READER_BYTES + ((size_t)rows_at_once(l, row) + 1) * row;
}

typedef struct making {
    const tgi_picture_writer *writer;
    const tg_sink_layout *layout;
    const tg_image_meta *meta;
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

static tg_status copy_rows(const making *m, tg_source *s, void *state, uint8_t *band,
                           int64_t rows, uint8_t *row, tgi_err *err)
{
    const tg_sink_layout *l = m->layout;
    const size_t size = tgi_dtype_size(l->dtype), pitch = (size_t)l->width * size;
    for (int64_t y = 0; y < l->height; y += rows) {
        const int64_t n = tgi_min(rows, l->height - y);
        if (tg_cancel_signal())
            return tgi_fail(err, TG_E_CANCELLED,
                            "stopped by signal %d; the same command goes on",
                            tg_cancel_signal());
        TGI_TRY(s->ops->read(s, 0, 0, 0, l->samples, y, y + n, 0, l->width, band, pitch,
                             pitch * (size_t)n, err));
        for (int64_t r = 0; r < n; r++) {
            interleave(row, band + (size_t)r * pitch, pitch * (size_t)n, l->width, l->samples,
                       size);
            TGI_TRY(m->writer->row(state, row, err));
        }
    }
    return m->writer->finish(state, err);
}

static tg_status make(void *arg, const char *partial, const char *made, tgi_err *err)
{
    const making *m = arg;
    const tg_sink_layout *l = m->layout;
    const tg_open_opts o = {.threads = 1, .io = TG_IO_READ};
    const tgi_picture_spec spec = spec_of(l, m->meta);
    const size_t pixels = (size_t)l->width * l->pixel_bytes;
    const int64_t rows = rows_at_once(l, pixels);
    tg_source *s = NULL;
    void *state = NULL;
    uint8_t *band = tgi_malloc(TGI_TAG_IO, ((size_t)rows + 1) * pixels);
    tg_status st = band ? tgi_source_open(partial, &o, &s, err)
                        : tgi_fail(err, TG_E_NOMEM, "%s: no memory for rows", made);
    if (st == TG_OK)
        st = m->writer->create(made, &spec, &state, err);
    if (st == TG_OK)
        st = copy_rows(m, s, state, band, rows, band + (size_t)rows * pixels, err);
    if (state)
        m->writer->close(state);
    tgi_source_close(&s);
    tgi_free(band);
    return st;
}

tg_status tgi_picture_make(const char *path, const tg_sink_layout *l, const tg_image_meta *meta,
                           tg_journal *j, tgi_err *err)
{
    making m = {tgi_picture_writer_for(path), l, meta};
    return m.writer ? tgi_journal_make(j, make, &m, err) : TG_OK;
}
