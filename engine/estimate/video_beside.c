/* video_beside.c - ours beside what is published of ProPainter's script (published.h): its table of sizes, the sub-videos that
 * are named for a GPU's memory, and what less precision and other neighbours are said to save. */
#include "engine/estimate/published.h"
#include "engine/estimate/video.h"
#include "engine/job/roofline.h"
#include "engine/settings/words.h"

#include <math.h>
#include <stdio.h>

#define USUAL_NEIGHBORS 10 /* what its percentages begin at */

static void put_ours(tgi_jw *w, const tgi_video_need *n)
{
    tgi_jw_uint(w, "peak_bytes", n->peak);
    tgi_jw_uint(w, "least_bytes", n->least);
    tgi_jw_uint(w, "device_bytes", n->device[TGI_VIDEO_FP32]);
    if (n->device[TGI_VIDEO_FP16])
        tgi_jw_uint(w, "device_fp16_bytes", n->device[TGI_VIDEO_FP16]);
}

/* ---- Sizes ------------------------------------------------------------------------------- */

static tg_status put_size(const tgi_question *q, const tgi_gpus *t, const tgi_json *row,
                          tgi_jw *w, tgi_err *err)
{
    const char *size = "";
    int64_t v[3] = {0, 0, 0};
    tgi_video_need n;
    (void)tgi_json_str(tgi_json_get(row, "size"), &size);
    TGI_TRY(tgi_dims_parse(size, v, err));
    const tgi_video_film f =
        tgi_video_film_of(q, v[0], v[1], (int64_t)tgi_published_number(row, "frames"));
    TGI_TRY(tgi_video_plan(q, &f, 0, &n, err));
    const tgi_gpu *g = tgi_video_smallest(t, TGI_VIDEO_FP32, n.device[TGI_VIDEO_FP32]);
    tgi_jw_begin(w, NULL, '{');
    tgi_jw_str(w, "size", size);
    tgi_jw_int(w, "frames", f.frames);
    tgi_published_put_gb(w, "published_fp32_gb", row, "fp32_gb");
    tgi_published_put_gb(w, "published_fp16_gb", row, "fp16_gb");
    put_ours(w, &n);
    tgi_jw_str(w, "smallest_gpu", g ? g->name : NULL);
    tgi_jw_end(w, '}');
    return TG_OK;
}

/* ---- Sub-videos -------------------------------------------------------------------------- */

/* A film that is no shorter than the sub-video, or its length would not matter. */
static tg_status put_subvideo(const tgi_question *q, const tgi_video_film *asked,
                              const tgi_json *row, tgi_jw *w, tgi_err *err)
{
    const double gb = tgi_published_number(row, "gb");
    tgi_video_film f = *asked;
    tgi_video_need n;
    f.set.subvideo_length = (int64_t)tgi_published_number(row, "subvideo_length");
    if (f.frames < f.set.subvideo_length)
        f.frames = f.set.subvideo_length;
    TGI_TRY(tgi_video_plan(q, &f, 0, &n, err));
    tgi_jw_begin(w, NULL, '{');
    tgi_jw_num(w, "published_gb", gb);
    tgi_jw_int(w, "published_subvideo_length", f.set.subvideo_length);
    tgi_jw_int(w, "frames", f.frames);
    put_ours(w, &n);
    tgi_jw_bool(w, "device_fits",
                n.device[TGI_VIDEO_FP32] <= tgi_device_usable((uint64_t)(gb * TGI_GIB)));
    tgi_jw_end(w, '}');
    return TG_OK;
}

/* ---- What is said to save ---------------------------------------------------------------- */

static double less_percent(uint64_t than, uint64_t bytes)
{
    return than ? round(1000 * (1 - (double)bytes / (double)than)) / 10 : 0;
}

static void put_said(tgi_jw *w, int64_t neighbors, const tgi_json *row)
{
    double v[2] = {0, 0};
    char text[64];
    const tgi_json *at = tgi_published_rows(row, "percent");
    snprintf(text, sizeof text, "neighbor_length %lld", (long long)neighbors);
    tgi_jw_str(w, "change", neighbors ? text : "half precision");
    for (int i = 0; i < 2 && at; i++, at = tgi_json_next(at))
        (void)tgi_json_num(at, &v[i]);
    if (v[0] == v[1])
        snprintf(text, sizeof text, "%g", v[0]);
    else
        snprintf(text, sizeof text, "%g to %g", v[0], v[1]);
    tgi_jw_str(w, "published_less_percent", text);
}

static void put_saved_here(tgi_jw *w, const tgi_video_need *was, const tgi_video_need *is)
{
    tgi_jw_num(w, "peak_less_percent", less_percent(was->peak, is->peak));
    tgi_jw_num(w, "least_less_percent", less_percent(was->least, is->least));
    tgi_jw_uint(w, "peak_bytes", is->peak);
    tgi_jw_uint(w, "least_bytes", is->least);
}

static void put_saved_there(tgi_jw *w, const tgi_video_need *was, uint64_t device)
{
    tgi_jw_num(w, "device_less_percent", less_percent(was->device[TGI_VIDEO_FP32], device));
    tgi_jw_uint(w, "device_bytes", device);
}

/* Half precision: networks on a device take half; on the processor weights alone, where it has bf16. */
static tg_status put_half(const tgi_question *q, const tgi_video_film *f,
                          const tgi_video_need *was, tgi_jw *w, tgi_err *err)
{
    tgi_video_need n;
    if (q->machine.bf16) {
        TGI_TRY(tgi_video_plan(q, f, 1, &n, err));
        put_saved_here(w, was, &n);
    }
    if (was->device[TGI_VIDEO_FP16])
        put_saved_there(w, was, was->device[TGI_VIDEO_FP16]);
    return TG_OK;
}

static tg_status put_neighbors(const tgi_question *q, const tgi_video_film *f, int64_t length,
                               const tgi_video_need *was, tgi_jw *w, tgi_err *err)
{
    tgi_video_film other = *f;
    tgi_video_need n;
    other.set.neighbor_length = length;
    TGI_TRY(tgi_video_plan(q, &other, 0, &n, err));
    put_saved_here(w, was, &n);
    put_saved_there(w, was, n.device[TGI_VIDEO_FP32]);
    return TG_OK;
}

static tg_status put_savings(const tgi_question *q, const tgi_video_film *asked,
                             const tgi_json *doc, tgi_jw *w, tgi_err *err)
{
    tgi_video_film f = *asked;
    tgi_video_need was;
    tg_status st = TG_OK;
    f.set.neighbor_length = USUAL_NEIGHBORS;
    TGI_TRY(tgi_video_plan(q, &f, 0, &was, err));
    tgi_jw_begin(w, "said_to_save", '[');
    for (const tgi_json *row = tgi_published_rows(doc, "less"); row && st == TG_OK;
         row = tgi_json_next(row)) {
        const int64_t length = (int64_t)tgi_published_number(row, "neighbor_length");
        tgi_jw_begin(w, NULL, '{');
        put_said(w, length, row);
        st =
            length ? put_neighbors(q, &f, length, &was, w, err) : put_half(q, &f, &was, w, err);
        tgi_jw_end(w, '}');
    }
    tgi_jw_end(w, ']');
    return st;
}

/* ---- All of it --------------------------------------------------------------------------- */

static tg_status put_tables(const tgi_question *q, const tgi_gpus *t, const tgi_video_film *f,
                            const tgi_json *doc, tgi_jw *w, tgi_err *err)
{
    tg_status st = TG_OK;
    tgi_jw_begin(w, "beside", '[');
    for (const tgi_json *row = tgi_published_rows(doc, "inference"); row && st == TG_OK;
         row = tgi_json_next(row))
        st = put_size(q, t, row, w, err);
    tgi_jw_end(w, ']');
    tgi_jw_begin(w, "by_gpu_memory", '[');
    for (const tgi_json *row = tgi_published_rows(doc, "subvideos"); row && st == TG_OK;
         row = tgi_json_next(row))
        st = put_subvideo(q, f, row, w, err);
    tgi_jw_end(w, ']');
    return st == TG_OK ? put_savings(q, f, doc, w, err) : st;
}

tg_status tgi_video_put_beside(const tgi_question *q, const tgi_gpus *t,
                               const tgi_video_film *f, tgi_jw *w, tgi_err *err)
{
    tgi_json *doc = NULL;
    TGI_TRY(tgi_published_load(&doc, err));
    tgi_published_put_note(doc, w);
    const tg_status st = put_tables(q, t, f, doc, w, err);
    tgi_json_free(&doc);
    return st;
}
