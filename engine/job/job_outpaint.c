/* job_outpaint.c - see job_outpaint.h. */
#include "engine/job/job_outpaint.h"

#include "engine/base/number.h"
#include "engine/job/job_open.h"
#include "engine/settings/config.h"

#include <string.h>

#define MOST 8.0          /* times a side */
#define MOST_PIXELS 16384 /* of a side */

int tgi_job_outpaints(const tg_opts *o)
{
    return tgi_opts_choice(o, TGI_OPT_MODE) % 2 == 1; /* each spelling is there twice */
}

int tgi_job_squeezes(const tg_opts *o)
{
    return tgi_job_outpaints(o) && tgi_opts_flag(o, TGI_OPT_SQUEEZE);
}

tg_status tgi_job_outpaint_check(tg_job *job, tgi_err *err)
{
    static const tgi_opt scales[] = {TGI_OPT_SCALE_H, TGI_OPT_SCALE_W, TGI_OPT_SQUEEZE},
                         masks[] = {TGI_OPT_MASK, TGI_OPT_MASK_BOX, TGI_OPT_MASK_INVERT,
                                    TGI_OPT_MASK_THRESHOLD, TGI_OPT_MASK_DILATION};
    const tg_option *name = tgi_option_table(NULL);
    if (!tgi_job_outpaints(job->opts)) {
        for (int i = 0; i < 3; i++)
            if (tgi_opts_given(job->opts, scales[i]))
                tgi_job_warn(job, "--%s is not used: it is of --mode outpainting",
                             name[scales[i]].name);
        return TG_OK;
    }
    for (int i = 0; i < 2; i++)
        if (tgi_opts_given(job->opts, masks[i]))
            return tgi_fail(err, TG_E_ARG,
                            "--mode outpainting draws what lies around the frames, and --%s "
                            "says what is removed from them: remove it first, then extend "
                            "what came of it",
                            name[masks[i]].name);
    for (int i = 2; i < 5; i++)
        if (tgi_opts_given(job->opts, masks[i]))
            tgi_job_warn(job, "--%s is not used: --mode outpainting takes no mask",
                         name[masks[i]].name);
    return TG_OK;
}

static double scale_of(const tg_opts *o, tgi_opt which)
{
    double by = 1;
    (void)tgi_number_begin(tgi_opts_str(o, which), &by);
    return by;
}

static tg_status check_scale(const tg_opts *o, tgi_opt which, tgi_err *err)
{
    const char *text = tgi_opts_str(o, which);
    double by = 0;
    return tgi_number_parse(text, strlen(text), &by) && by >= 1 && by <= MOST
               ? TG_OK
               : tgi_fail(err, TG_E_ARG, "--%s %s: a factor of 1 to %.0f, as 1.2",
                          tgi_option_table(NULL)[which].name, text, MOST);
}

tgi_canvas tgi_job_canvas(const tg_opts *o, int64_t height, int64_t width)
{
    return tgi_canvas_of(height, width, scale_of(o, TGI_OPT_SCALE_H),
                         scale_of(o, TGI_OPT_SCALE_W));
}

tg_status tgi_job_extend(const tg_opts *o, tgi_source **s, tgi_canvas *out, tgi_err *err)
{
    const tgi_image_info *i = (*s)->ops->info(*s);
    *out = (tgi_canvas){0};
    if (!tgi_job_outpaints(o))
        return TG_OK;
    TGI_TRY(check_scale(o, TGI_OPT_SCALE_H, err));
    TGI_TRY(check_scale(o, TGI_OPT_SCALE_W, err));
    const tgi_canvas c = tgi_job_canvas(o, i->height, i->width);
    if (c.height == i->height && c.width == i->width)
        return tgi_fail(err, TG_E_ARG,
                        "--scale-h %s --scale-w %s: frames of %lld x %lld stay as large as "
                        "they are: sides are rounded down to multiples of 8; a larger factor "
                        "extends them",
                        tgi_opts_str(o, TGI_OPT_SCALE_H), tgi_opts_str(o, TGI_OPT_SCALE_W),
                        (long long)i->width, (long long)i->height);
    if (c.height > MOST_PIXELS || c.width > MOST_PIXELS)
        return tgi_fail(err, TG_E_ARG,
                        "frames of %lld x %lld would become %lld x %lld: sides of %d are the "
                        "most",
                        (long long)i->width, (long long)i->height, (long long)c.width,
                        (long long)c.height, MOST_PIXELS);
    if (!tgi_job_squeezes(o))
        TGI_TRY(tgi_extended_open(*s, &c, s, err));
    *out = c;
    return TG_OK;
}
