/* preview_places.c - where the crops of a preview lie: as asked for, or where pixels vary most. */
#include "engine/base/arith.h"
#include "engine/base/cancel.h"
#include "engine/job/job_film.h"
#include "engine/verbs/preview_inside.h"
#include "io/film_cut.h"
#include "kernels/pixels.h"

#include <math.h>
#include <string.h>

#define CROP 256 /* pixels of the larger of input and output */

/* ---- Geometry ---------------------------------------------------------------------------- */

int tgi_preview_first_axis(const tg_job *job)
{
    return 3 - job->map.spatial;
}

void tgi_preview_lay_axes(tgi_preview *v)
{
    const tg_job *job = v->job;
    for (int k = 0; k < 3; k++) {
        const tgi_fit *f = &job->map.fit[k];
        tgi_preview_axis *a = &v->ax[k];
        *a = (tgi_preview_axis){1, 1, 0, 1, 1, job->map.out_extent[k]};
        if (k < tgi_preview_first_axis(job))
            continue;
        if (f->place.up > 0) {
            a->up = f->place.up;
            a->down = f->place.down;
            a->lead = f->place.lead + f->crop - f->before / a->down * a->up;
        }
        if (k == 0)
            continue; /* one slab of a volume */
        a->align = tgi_max(1, job->graph->divisor[k] * a->up / a->down);
        a->size = tgi_min(a->extent, tgi_align_up(tgi_max(1, CROP / a->down), a->align));
        if (f->box)
            a->size = tgi_min(a->size, f->core);
    }
}

tgi_range tgi_preview_input_of(const tgi_preview *v, int k, int64_t lo, int64_t hi)
{
    const tgi_preview_axis *a = &v->ax[k];
    const int64_t n = v->job->map.extent[k];
    const int64_t from = tgi_floor_div((lo + a->lead) * a->down, a->up);
    const int64_t first = tgi_clamp(from, 0, n - 1);
    return (tgi_range){first, tgi_min(first + tgi_ceil_div((hi - lo) * a->down, a->up), n)};
}

int64_t tgi_preview_inside_cell(const tgi_preview *v, int k, int64_t lo)
{
    const tgi_fit *f = &v->job->map.fit[k];
    return f->box ? tgi_min(lo, (lo / f->core + 1) * f->core - v->ax[k].size) : lo;
}

tgi_range tgi_preview_core_of(const tgi_preview *v, int k, const int64_t at[3])
{
    int64_t in, out;
    tgi_fit_shift(&v->job->map.fit[k], at[k], &in, &out);
    return (tgi_range){at[k] + out, at[k] + out + v->ax[k].size};
}

/* ---- Places ------------------------------------------------------------------------------ */

tg_status tgi_preview_place_given(tgi_preview *v, const int64_t at[3], tgi_err *err)
{
    const tg_job *job = v->job;
    const tgi_mapping *m = &job->map;
    static const char name[] = "zyx";
    for (int k = 0; k < 3; k++) {
        const int is_item = k < tgi_preview_first_axis(job);
        const int64_t n = is_item ? m->n_items : m->extent[k];
        const int64_t i = at[k] < 0 ? n / 2 : is_item ? at[k] : at[k] - m->origin[k];
        if (i < 0 || i >= n)
            return tgi_fail(err, TG_E_ARG,
                            "--at: %c = %lld is outside the image (%lld to %lld)", name[k],
                            (long long)at[k], (long long)(is_item ? 0 : m->origin[k]),
                            (long long)(is_item ? 0 : m->origin[k]) + n - 1);
        if (is_item) {
            v->item = at[k] < 0 ? v->item : i;
            continue;
        }
        const tgi_preview_axis *a = &v->ax[k];
        const int64_t centre = i * a->up / a->down - a->lead;
        const int64_t lo = tgi_clamp(centre - a->size / 2, 0, a->extent - a->size);
        v->place[0].at[k] = tgi_preview_inside_cell(v, k, lo / a->align * a->align);
    }
    if (tgi_preview_first_axis(job) == 0 && tgi_opts_str(job->opts, TGI_OPT_TIME))
        v->place[0].at[0] = v->slice;
    v->n_places = 1;
    return TG_OK;
}

/* The same of a film whose frames have no times: each comes when its number says, at the header's rate. */
static tg_status frame_by_number(const tgi_av_info *film, int64_t first, const char *option,
                                 const char *text, double seconds, int64_t *out, tgi_err *err)
{
    const double rate = film->rate.num ? (double)film->rate.num / (double)film->rate.den : 0,
                 k = floor((seconds + 0.0005) * rate) - (double)first;
    if (!film->rate.num)
        return tgi_fail(err, TG_E_ARG,
                        "%s: its frames have no times, and the film no rate; --frames A:B "
                        "chooses by numbers",
                        option);
    if (k < 0 || k >= (double)film->frames)
        return tgi_fail(err, TG_E_ARG,
                        "%s %s: no frame is shown then: they are from %.3f s to %.3f s", option,
                        text, (double)first / rate, (double)(first + film->frames) / rate);
    *out = (int64_t)k;
    return TG_OK;
}

/* A part of the film counts as all of it does. */
tg_status tgi_preview_frame_at(const tg_job *job, const char *option, const char *text,
                               int64_t *out, tgi_err *err)
{
    const tgi_source *s = job->source;
    const tgi_av_info *film = tgi_film_source_info(s);
    const double seconds = tgi_film_seconds(text);
    if (!film)
        return tgi_fail(err, TG_E_ARG, "%s is for films: give --at z,y,x", option);
    if (seconds < 0)
        return tgi_fail(err, TG_E_ARG,
                        "%s %s: a time from the first frame on, as 90, 1:30 or 00:01:30.04",
                        option, text);
    if (!film->has_times || !film->time_base.num)
        return frame_by_number(film, tgi_film_source_first(s), option, text, seconds, out, err);
    const double second = (double)film->time_base.den / (double)film->time_base.num;
    const int64_t begin = tgi_film_source_time(s, -tgi_film_source_first(s));
    const double at = (double)begin + (seconds + 0.0005) * second; /* players round */
    int64_t lo = 0, hi = film->frames; /* the first one that is shown later */
    while (lo < hi) {
        const int64_t mid = lo + (hi - lo) / 2;
        if ((double)tgi_film_source_time(s, mid) <= at)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (lo == 0 || (double)film->end <= (double)begin + seconds * second)
        return tgi_fail(err, TG_E_ARG,
                        "%s %s: no frame is shown then: they are from %.3f s to %.3f s", option,
                        text, (double)(tgi_film_source_time(s, 0) - begin) / second,
                        (double)(film->end - begin) / second);
    *out = lo - 1;
    return TG_OK;
}

tg_status tgi_preview_frame_given(tgi_preview *v, const char *text, tgi_err *err)
{
    const tgi_mapping *m = &v->job->map;
    const int64_t depth = m->out_extent[0];
    const int64_t each = m->loops_samples ? m->loop[m->n_loop - 1].size : 1;
    int64_t frame = -1;
    TGI_TRY(tgi_preview_frame_at(v->job, "--time", text, &frame, err));
    for (int64_t k = 0; k < m->n_items / each * depth; k++)
        if (tgi_job_film_plane(v->job, k) == frame) {
            v->item = k / depth * each;
            v->slice = k % depth;
            return TG_OK;
        }
    return tgi_fail(
        err, TG_E_ARG,
        "--time %s: frame %lld is shown then, which is not among the planes of this "
        "job",
        text, (long long)frame);
}

static void consider(tgi_preview *v, const tgi_preview_place *p)
{
    int i = v->n_places;
    while (i > 0 && v->place[i - 1].score < p->score)
        i--;
    if (i == TGI_PREVIEW_CROPS)
        return;
    v->n_places = v->n_places < TGI_PREVIEW_CROPS ? v->n_places + 1 : TGI_PREVIEW_CROPS;
    memmove(&v->place[i + 1], &v->place[i], (size_t)(v->n_places - 1 - i) * sizeof v->place[0]);
    v->place[i] = *p;
}

/* Variance of columns [x.lo, x.hi) of rows that are `pitch` bytes apart. */
static double variance(tg_dtype type, const char *rows, int64_t n_rows, size_t pitch,
                       tgi_range x)
{
    float part[512];
    double n = 0, sum = 0, squares = 0, base = 0;
    for (int64_t r = 0; r < n_rows; r++)
        for (int64_t at = x.lo; at < x.hi; at += 512) {
            const int64_t k = tgi_min(512, x.hi - at);
            tgi_pixels_load(type, rows + (size_t)r * pitch + (size_t)at * tgi_dtype_size(type),
                            k, 1.0f, 0.0f, part, 1);
            if (n == 0)
                base = part[0]; /* small numbers stay exact */
            for (int64_t i = 0; i < k; i++) {
                const double d = (double)part[i] - base;
                sum += d;
                squares += d * d;
            }
            n += (double)k;
        }
    const double var = n > 0 ? squares / n - sum / n * (sum / n) : 0;
    return var > 0 ? var : 0; /* NaN too */
}

int64_t tgi_preview_slice_of(const tgi_preview *v, int64_t z)
{
    const tgi_mapping *m = &v->job->map;
    return tgi_range_len(m->own.slices) < m->extent[0]
               ? m->own.slices.lo
               : tgi_min(tgi_preview_input_of(v, 0, z, z + 1).lo, m->extent[0] - 1);
}

/* Score the crops of one row of the grid by rows through their middle. */
static tg_status look_at_row(tgi_preview *v, int64_t z, int64_t y, tgi_err *err)
{
    const tg_job *job = v->job;
    const tgi_mapping *m = &job->map;
    const tgi_range in =
        tgi_range_clip(tgi_preview_input_of(v, 1, y, y + v->ax[1].size), 0, m->extent[1]);
    const int64_t y0 = tgi_max(in.lo, (in.lo + in.hi - TGI_PREVIEW_LOOK_ROWS) / 2);
    const int64_t y1 = tgi_min(in.hi, y0 + TGI_PREVIEW_LOOK_ROWS);
    const size_t pitch = (size_t)m->extent[2] * tgi_dtype_size(job->info->dtype);
    const size_t block = pitch * (size_t)(y1 - y0);
    int sample;
    const int64_t plane = tgi_mapping_plane(m, v->item, tgi_preview_slice_of(v, z), &sample) +
                          m->own.channels.lo * m->channel_stride;
    char *rows = v->staging;
    for (int c = 0; c < v->raw.channels; c++) {
        const int s = m->from_samples ? c : sample;
        TGI_TRY(tgi_source_read(tgi_preview_source_of(v), 0, plane + c * m->channel_stride, s,
                                s + 1, m->origin[1] + y0, m->origin[1] + y1, m->origin[2],
                                m->origin[2] + m->extent[2], rows + (size_t)c * block, pitch,
                                block, err));
    }
    const int64_t n = tgi_max(1, v->ax[2].extent / v->ax[2].size);
    for (int64_t i = 0; i < n; i++) {
        tgi_preview_place p = {.at = {z, y, tgi_preview_inside_cell(v, 2, i * v->ax[2].size)}};
        const tgi_range x = tgi_preview_input_of(v, 2, p.at[2], p.at[2] + v->ax[2].size);
        for (int c = 0; c < v->raw.channels; c++)
            p.score += variance(job->info->dtype, rows + (size_t)c * block, y1 - y0, pitch,
                                tgi_range_clip(x, 0, m->extent[2]));
        consider(v, &p);
    }
    return TG_OK;
}

tg_status tgi_preview_densest_places(tgi_preview *v, tgi_err *err)
{
    const int64_t z = v->slice;
    const int64_t n = tgi_max(1, v->ax[1].extent / v->ax[1].size);
    const int64_t step = tgi_ceil_div(n, TGI_PREVIEW_LOOKS);
    for (int64_t i = 0; i < n; i += step) {
        if (tgi_cancel_signal())
            return tgi_fail(err, TG_E_CANCELLED, "stopped by %s", tgi_cancel_by());
        TGI_TRY(look_at_row(v, z, tgi_preview_inside_cell(v, 1, i * v->ax[1].size), err));
    }
    return TG_OK;
}
