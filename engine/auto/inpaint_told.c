/* inpaint_told.c - what is told of the ways in which a film can be inpainted on a machine. */
#include "engine/auto/inpaint_inside.h"

#include "engine/base/json.h"
#include "engine/job/roofline.h"
#include "engine/job/source_device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *tgi_way_value(const choice *c, const way *w, int which)
{
    return w->value[which][0] ? w->value[which] : tgi_opts_str(c->o, tgi_way_sets[which]);
}

static int is_published(const choice *c, const way *w)
{
    int same = c->drawn && !c->sized && !tgi_opts_given(c->o, TGI_OPT_REGION);
    for (int i = 0; i < 3; i++)
        same &= strtoll(tgi_way_value(c, w, i), NULL, 10) == tgi_way_step[0][i];
    return same;
}

/* Of whole frames or smaller ones. */
static const char *what_is_less(const way *w)
{
    if (w->value[RATIO][0] && w->step > 0)
        return "what is drawn is enlarged, so it is softer, and fewer frames are seen together";
    if (w->value[RATIO][0])
        return "what is drawn is enlarged, so it is softer";
    return w->step > 0 ? "fewer frames are seen together, so less is found of what they show"
                       : NULL;
}

static const char *what_differs(const choice *c, const way *w, char *buf, size_t cap)
{
    const char *less = what_is_less(w);
    const char *rounded = !w->rounded ? NULL
                          : w->far
                              ? "computed in float16: some samples are a step of 8 bits off"
                              : "products are rounded to bfloat16, some 3e-3 relative off";
    if (!w->fits)
        return w->why_not.text;
    if (w->region && w->part.height == w->film_height && w->part.width == w->film_width)
        return "nothing: what is hidden, and what is around it, is all of the frame";
    if (w->region && !c->drawn)
        return "what lies around the region is not looked at";
    if (w->region)
        return "motion and attention see nothing of the rest of the frames, so what is drawn "
               "is "
               "another thing";
    if (less || rounded) {
        snprintf(buf, cap, "%s%s%s", less ? less : "", less && rounded ? "; " : "",
                 rounded ? rounded : "");
        return buf;
    }
    if (w->exact)
        return "direct kernels: it takes longer, and is the same but for rounding";
    if (c->kept)
        return "nothing: the output that is there is gone on with";
    return is_published(c, w) ? "nothing: the published script's settings" : "nothing";
}

static void put_way(tgi_jw *j, const choice *c, int at)
{
    const way *w = &c->tried[at];
    char differs[256];
    const char *scratch = tgi_way_value(c, w, SCRATCH), *kind = tgi_way_value(c, w, PRECISION);
    tgi_jw_begin(j, NULL, '{');
    tgi_jw_str(j, "what", w->what);
    tgi_jw_bool(j, "chosen", at == c->chosen);
    tgi_jw_bool(j, "fits", w->fits);
    tgi_jw_int(j, "width", w->width);
    tgi_jw_int(j, "height", w->height);
    if (c->drawn) {
        tgi_jw_str(j, "precision",
                   w->far && (w->rounded || tgi_job_wants_halves(c->o) ||
                              (kind && strcmp(kind, "fp16") == 0))
                       ? "fp16"
                   : kind && strcmp(kind, "bf16") == 0 ? "bf16"
                                                       : "fp32");
        tgi_jw_bool(j, "exact", w->exact || tgi_opts_flag(c->o, TGI_OPT_EXACT));
        tgi_jw_int(j, "subvideo_length", strtoll(tgi_way_value(c, w, SUBVIDEO), NULL, 10));
        tgi_jw_int(j, "neighbor_length", strtoll(tgi_way_value(c, w, NEIGHBOR), NULL, 10));
        tgi_jw_int(j, "ref_stride", strtoll(tgi_way_value(c, w, STRIDE), NULL, 10));
    }
    if (w->fits) {
        char region[96];
        snprintf(region, sizeof region, "%lld,%lld,%lld,%lld", (long long)w->part.x,
                 (long long)w->part.y, (long long)w->part.width, (long long)w->part.height);
        tgi_jw_str(j, "region", region);
        tgi_jw_uint(j, "peak_bytes", w->peak);
        tgi_jw_uint(j, "scratch_bytes", w->scratch);
        tgi_jw_str(j, "scratch", w->scratch ? scratch : NULL);
        tgi_jw_uint(j, "device_bytes", w->device);
        if (w->far || (c->gpu.total_bytes && w->device))
            tgi_jw_bool(j, "device_fits",
                        w->far || w->device <= tgi_device_usable(c->gpu.total_bytes));
        tgi_jw_num(j, "seconds_least", w->least);
        tgi_jw_num(j, "seconds", w->most);
    }
    if (w->fits || w->far)
        tgi_jw_str(j, "device", w->far ? "computes" : "planned, not run");
    tgi_jw_str(j, "differs", what_differs(c, w, differs, sizeof differs));
    tgi_jw_end(j, '}');
}

/* Of nothing that fits there is no budget. */
tg_status tgi_ways_tell(const choice *c, char **json, tgi_err *err)
{
    tgi_jw j = {0};
    tgi_jw_begin(&j, NULL, '{');
    if (c->chosen >= 0)
        tgi_jw_uint(&j, "budget_bytes", c->tried[c->chosen].budget);
    tgi_jw_bool(&j, "kept", c->kept);
    const int far = c->chosen >= 0 && c->tried[c->chosen].far;
    tgi_jw_str(&j, "device",
               c->named ? tgi_opts_str(c->o, TGI_OPT_DEVICE)
               : far    ? "cuda"
                        : NULL);
    if (!c->named && c->may_far)
        tgi_jw_str(&j, "device_compared", c->device);
    if (c->no_device[0])
        tgi_jw_str(&j, "device_notice", c->no_device);
    tgi_jw_str(&j, "gpu", c->gpu.total_bytes ? c->gpu.name : NULL);
    tgi_jw_begin(&j, "ways", '[');
    for (int i = 0; i < c->n_shown; i++)
        put_way(&j, c, c->shown[i]);
    tgi_jw_end(&j, ']');
    tgi_jw_end(&j, '}');
    return tgi_jw_take(&j, json, err);
}
