/* opts_source.c - see opts_source.h. */
#include "engine/settings/opts_source.h"

#include <string.h>

const char *tgi_opts_name_key(const tg_opts *o, int axis)
{
    static const tgi_opt by_name[3] = {TGI_OPT_KEY_Z, TGI_OPT_KEY_C, TGI_OPT_KEY_T};
    static const tgi_opt old[3] = {TGI_OPT_Z, TGI_OPT_C, TGI_OPT_T};
    const char *key = tgi_opts_str(o, by_name[axis]), *as_before = tgi_opts_str(o, old[axis]);
    return key ? key : as_before && strchr(as_before, '(') ? as_before : NULL;
}

const char *tgi_opts_pick(const tg_opts *o, int which)
{
    static const tgi_opt of[3] = {TGI_OPT_C, TGI_OPT_Z, TGI_OPT_T};
    const char *text = tgi_opts_str(o, of[which]);
    if (which == 0 && tgi_opts_str(o, TGI_OPT_CHANNELS))
        return tgi_opts_str(o, TGI_OPT_CHANNELS);
    return text && !strchr(text, '(') ? text : NULL;
}

tg_status tgi_opts_source_check(const tg_opts *o, tgi_err *err)
{
    const char *c = tgi_opts_str(o, TGI_OPT_C), *channels = tgi_opts_str(o, TGI_OPT_CHANNELS);
    return c && channels && !strchr(c, '(') && strcmp(c, channels) != 0
               ? tgi_fail(err, TG_E_ARG,
                          "--c %s and --channels %s: both choose channels, give one", c,
                          channels)
               : TG_OK;
}

void tgi_opts_source(const tg_opts *o, tgi_open_opts *out)
{
    out->series = (int)tgi_opts_int(o, TGI_OPT_SERIES, 0);
    out->any_series = tgi_opts_int(o, TGI_OPT_SERIES, -1) < 0;
    out->level = (int)tgi_opts_int(o, TGI_OPT_LEVEL, 0);
    out->axes = tgi_opts_str(o, TGI_OPT_AXES);
    for (int i = 0; i < 3; i++)
        out->key[i] = tgi_opts_name_key(o, i);
    out->cut = (tgi_film_cut){tgi_opts_str(o, TGI_OPT_FRAMES), tgi_opts_str(o, TGI_OPT_START),
                              tgi_opts_str(o, TGI_OPT_END)};
    out->pick = (tgi_axis_pick){
        .channels = tgi_opts_pick(o, 0), .z = tgi_opts_pick(o, 1), .t = tgi_opts_pick(o, 2)};
    out->raw = tgi_opts_str(o, TGI_OPT_RAW);
}

void tgi_opts_source_slices(const tg_opts *o, tgi_open_opts *out)
{
    tgi_roi_spec roi;
    if (tgi_opts_roi(o, &roi) && (roi.ax[0].lo > 0 || roi.ax[0].hi < TGI_ROI_OPEN))
        out->pick.slices = roi.ax[0];
}
