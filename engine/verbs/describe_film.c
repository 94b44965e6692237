/* describe_film.c - what a film says of itself, for tegula info. */
#include "engine/verbs/describe_film.h"

#include "io/film_out.h"

#include <stdio.h>

static double seconds_of(int64_t ticks, tgi_av_ratio base)
{
    return (double)ticks * (double)base.num / (double)base.den;
}

/* The frames' times, and whether they are all as far apart. */
static void put_times(tgi_jw *w, const tgi_source *s, const tgi_av_info *i)
{
    const int64_t first = tgi_film_source_time(s, 0), n = i->frames;
    if (!i->has_times || first == TGI_AV_NO_TIME)
        return;
    int varying = 0;
    const int64_t step = n > 1 ? tgi_film_source_time(s, 1) - first : 0;
    for (int64_t k = 2; k < n; k++) {
        const int64_t by = tgi_film_source_time(s, k) - tgi_film_source_time(s, k - 1);
        varying |= by < step - 1 || by > step + 1; /* a coarse clock rounds */
    }
    tgi_jw_num(w, "start_seconds", seconds_of(first, i->time_base));
    if (i->end != TGI_AV_NO_TIME)
        tgi_jw_num(w, "duration_seconds", seconds_of(i->end - first, i->time_base));
    tgi_jw_bool(w, "varying_rate", varying);
}

static void put_ratio(tgi_jw *w, const char *key, tgi_av_ratio r)
{
    char text[48];
    snprintf(text, sizeof text, "%lld/%lld", (long long)r.num, (long long)r.den);
    if (r.num)
        tgi_jw_str(w, key, text);
}

static void put_text(tgi_jw *w, const char *key, const char *text)
{
    if (text[0])
        tgi_jw_str(w, key, text);
}

void tgi_describe_film(tgi_jw *w, const tgi_source *s)
{
    const tgi_av_info *i = tgi_film_source_info(s);
    if (!i)
        return;
    tgi_jw_begin(w, "film", '{');
    put_text(w, "container", i->container);
    put_text(w, "codec", i->codec);
    put_text(w, "profile", i->profile);
    put_text(w, "pixels", i->form.name);
    put_ratio(w, "frames_per_second", i->rate);
    put_times(w, s, i);
    put_ratio(w, "time_base", i->time_base);
    put_ratio(w, "pixel_aspect", i->pixel_aspect);
    tgi_jw_int(w, "rotation", i->rotation);
    tgi_jw_bool(w, "mirrored", i->flipped);
    if (i->interlaced >= 0)
        tgi_jw_bool(w, "interlaced", i->interlaced);
    put_text(w, "range", i->form.range);
    put_text(w, "matrix", i->form.matrix);
    put_text(w, "primaries", i->form.primaries);
    put_text(w, "transfer", i->form.transfer);
    put_text(w, "chroma_place", i->form.chroma_place);
    tgi_jw_int(w, "tracks", i->n_streams);
    tgi_jw_end(w, '}');
}
