/* inpaint_preview.c - see inpaint_preview.h. */
#include "engine/verbs/inpaint_preview.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "engine/inpaint/inpaint.h"
#include "engine/job/job_device.h"
#include "engine/job/job_inpaint.h"
#include "engine/job/job_plan.h"
#include "engine/job/source_device.h"
#include "engine/verbs/preview_inside.h"
#include "io/film_out.h"
#include "io/png.h"

#include <math.h>
#include <string.h>

enum { FRAME, HIDDEN, MOTION, OTHERS, RESULT, PANELS }; /* OTHERS: what other frames show */
#define GAP 4
#define WIDEST 480 /* of a panel, on either side */
#define STRIP_BYTES                                                                            \
    ((size_t)(PANELS * WIDEST + PANELS * GAP) * WIDEST * 3 +                                   \
     ((size_t)2 << 20)) /* with the PNG's */

typedef struct strip {
    const tgi_image_info *info;
    tgi_propagated now;
    tgi_motion motion;
    int64_t by;         /* pixels of the frame for one of a panel, on each side */
    int64_t high, wide; /* of a panel */
    int64_t across;     /* of the strip */
    const int *panel;   /* which there are, from left to right */
    int n_panels;
    float fastest;   /* of the motion, in pixels: the fullest colour */
    uint8_t *pixels; /* [high][across][3] */
} strip;

/* Red, green, blue of a pixel, 0 to 255; of grey all the same. */
static void colour_of(const strip *s, const void *pixels, int64_t y, int64_t x, float rgb[3])
{
    const int n = s->info->samples, wide = s->info->dtype == TG_DTYPE_U16;
    const size_t at = (size_t)(y * s->now.width + x) * (size_t)n;
    for (int c = 0; c < 3; c++) {
        const size_t i = at + (size_t)(n >= 3 ? c : 0);
        rgb[c] = wide ? (float)((const uint16_t *)pixels)[i] / 257.0f
                      : (float)((const uint8_t *)pixels)[i];
    }
}

/* Towards `to`, by `share` of the way. */
static void tint(float rgb[3], const float to[3], float share)
{
    for (int c = 0; c < 3; c++)
        rgb[c] += share * (to[c] - rgb[c]);
}

static void vector_at(const tgi_motion *m, int64_t y, int64_t x, float v[2])
{
    const int64_t i = tgi_min(y / m->step, m->height - 1),
                  j = tgi_min(x / m->step, m->width - 1);
    for (int c = 0; c < 2; c++)
        v[c] = m->at[(c * m->height + i) * m->width + j];
}

/* Its direction is the hue, its length the fullness: white does not move. */
static void colour_of_motion(const strip *s, int64_t y, int64_t x, float rgb[3])
{
    float v[2] = {0, 0};
    if (s->motion.at)
        vector_at(&s->motion, y, x, v);
    const float full = fminf(1, hypotf(v[0], v[1]) / s->fastest), turn = atan2f(v[1], v[0]);
    for (int c = 0; c < 3; c++)
        rgb[c] = 255 * (1 - full * (0.5f - 0.5f * cosf(turn - 2.0943951f * (float)c)));
}

static void paint(const strip *s, int panel, int64_t y, int64_t x, float rgb[3])
{
    static const float green[3] = {0, 255, 0}, dark[3] = {64, 0, 64};
    const size_t at = (size_t)(y * s->now.width + x);
    if (panel == MOTION) {
        colour_of_motion(s, y, x, rgb);
        return;
    }
    colour_of(s, panel <= HIDDEN ? s->now.source : s->now.pixels, y, x, rgb);
    if (panel == HIDDEN && s->now.hidden[at])
        tint(rgb, green, 0.6f);
    if (panel == OTHERS && s->now.left && s->now.left[at])
        tint(rgb, dark, 1);
}

/* The k-th from the left. */
static void paint_panel(const strip *s, int k)
{
    for (int64_t y = 0; y < s->high; y++)
        for (int64_t x = 0; x < s->wide; x++) {
            float sum[3] = {0, 0, 0}, rgb[3];
            const int64_t n = s->by * s->by;
            for (int64_t i = 0; i < n; i++) {
                paint(s, s->panel[k], tgi_min(y * s->by + i / s->by, s->now.height - 1),
                      tgi_min(x * s->by + i % s->by, s->now.width - 1), rgb);
                for (int c = 0; c < 3; c++)
                    sum[c] += rgb[c];
            }
            uint8_t *to = s->pixels + (y * s->across + k * (s->wide + GAP) + x) * 3;
            for (int c = 0; c < 3; c++)
                to[c] = (uint8_t)lrintf(fminf(255, fmaxf(0, sum[c] / (float)n)));
        }
}

static void lay_out(strip *s, int follows)
{
    static const int all[] = {FRAME, HIDDEN, MOTION, OTHERS, RESULT},
                     ends[] = {FRAME, HIDDEN, RESULT};
    s->panel = follows ? all : ends;
    s->n_panels = follows ? PANELS : 3;
    s->by = (tgi_max(s->now.width, s->now.height) + WIDEST - 1) / WIDEST;
    s->high = tgi_max(1, s->now.height / s->by);
    s->wide = tgi_max(1, s->now.width / s->by);
    s->across = s->n_panels * s->wide + (s->n_panels - 1) * GAP;
    s->fastest = 1;
    for (int64_t i = 0; s->motion.at && i < s->motion.height * s->motion.width; i++)
        s->fastest =
            fmaxf(s->fastest, hypotf(s->motion.at[i],
                                     s->motion.at[i + s->motion.height * s->motion.width]));
}

static tg_status draw(tg_job *job, strip *s, tgi_err *err)
{
    lay_out(s, strcmp(tgi_job_method(job->opts), "propagate") == 0);
    const size_t n = (size_t)(s->high * s->across * 3);
    s->pixels = tgi_malloc(TGI_TAG_MISC, n);
    if (!s->pixels)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a strip");
    memset(s->pixels, 255, n);
    for (int p = 0; p < s->n_panels; p++)
        paint_panel(s, p);
    const tg_status st = tgi_png_write(job->set.output, s->pixels, s->high, s->across, 3,
                                       (size_t)s->across * 3, err);
    tgi_free(s->pixels);
    return st;
}

/* Of a film the frame that is shown then; else the one of that number, from 0 on. */
static tg_status find_frame(const tg_job *job, int64_t *k, tgi_err *err)
{
    const char *text = tgi_opts_str(job->opts, TGI_OPT_PREVIEW);
    if (!text)
        return tgi_fail(err, TG_E_ARG, "which frame is missing: tegula inpaint --preview TIME");
    if (tgi_film_source_info(job->source))
        return tgi_preview_frame_at(job, "--preview", text, k, err);
    return tgi_int_parse(text, 0, job->info->n_planes - 1, "--preview: frame", k, err);
}

/* On the device that a run would take. */
static tg_status plan(tg_job *job, tgi_err *err)
{
    const tgi_plan_ask ask = {.remedy = "a larger --ram",
                              .beside = STRIP_BYTES + tgi_inpaint_look_bytes(job->source),
                              .measured = 1};
    if (!tgi_job_wants_device(job->opts))
        return tgi_job_plan_processor(job, ask, err);
    TGI_TRY(tgi_job_device_choose(job, err));
    return tgi_job_plan(job, ask, err);
}

static tg_status look(tg_job *job, int64_t k, strip *s, tgi_err *err)
{
    TGI_TRY(plan(job, err));
    TGI_TRY(tgi_job_source_begin(job, err));
    return tgi_inpaint_look(job->source, k, &s->now, &s->motion, err);
}

/* Again, as a run is, where a device has less memory than it said. */
static tg_status look_at_last(tg_job *job, int64_t k, strip *s, tgi_err *err)
{
    tgi_err e = {0};
    tg_status st = look(job, k, s, &e);
    for (int again = 0; again < 3 && tgi_job_device_shrink(job, st, &e); again++) {
        e = (tgi_err){0};
        st = look(job, k, s, &e);
    }
    return st == TG_OK ? st : tgi_job_device_answer(job, st, &e, err);
}

tg_status tgi_inpaint_preview(tg_job *job, tgi_err *err)
{
    strip s = {.info = job->info};
    int64_t k;
    const tgi_picture_writer *writer = job->set.writer;
    TGI_TRY(find_frame(job, &k, err));
    job->set.writer = NULL; /* the PNG is of the strip */
    tg_status st = look_at_last(job, k, &s, err);
    if (st == TG_OK)
        st = draw(job, &s, err);
    job->set.writer = writer;
    return st;
}
