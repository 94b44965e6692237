/* describe_film.c - what a film says of itself, for tegula info. */
#include "engine/verbs/describe_film.h"

#include "io/film_out.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

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
    tgi_jw_int(w, "first_pts", first);
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

/* The words that a list has, with ", " between them. */
static void put_list(tgi_jw *w, const char *key, const char *list)
{
    char word[64];
    tgi_jw_begin(w, key, '[');
    while (*list) {
        const size_t n = strcspn(list, ",");
        snprintf(word, sizeof word, "%.*s", (int)n, list);
        tgi_jw_str(w, NULL, word);
        list += n + strspn(list + n, ", ");
    }
    tgi_jw_end(w, ']');
}

static void put_point(tgi_jw *w, const char *key, const double at[2])
{
    if (!(at[1] > 0))
        return;
    tgi_jw_begin(w, key, '[');
    tgi_jw_num(w, NULL, at[0]);
    tgi_jw_num(w, NULL, at[1]);
    tgi_jw_end(w, ']');
}

/* What it tells a display of its light. */
static void put_light(tgi_jw *w, const tgi_av_light *l)
{
    tgi_jw_begin(w, "hdr", '{');
    if (l->most > 0) {
        tgi_jw_num(w, "display_min_luminance", l->least);
        tgi_jw_num(w, "display_max_luminance", l->most);
    }
    put_point(w, "red", l->primaries[0]);
    put_point(w, "green", l->primaries[1]);
    put_point(w, "blue", l->primaries[2]);
    put_point(w, "white", l->primaries[3]);
    if (l->content || l->average) {
        tgi_jw_int(w, "max_content_light", l->content);
        tgi_jw_int(w, "max_frame_average_light", l->average);
    }
    if (l->dolby_vision)
        tgi_jw_bool(w, "dolby_vision", 1);
    if (l->hdr10_plus)
        tgi_jw_bool(w, "hdr10_plus", 1);
    tgi_jw_end(w, '}');
}

/* What somebody wrote about a track, -1: about the film. That of `apart`, up to a NULL, stands elsewhere. */
static void put_words(tgi_jw *w, const tgi_source *s, int track, const char *const *apart)
{
    tgi_av_word word;
    int n = 0;
    for (int i = 0; tgi_film_source_word(s, track, i, &word); i++) {
        int is_apart = 0;
        for (const char *const *a = apart; *a; a++)
            is_apart |= strcasecmp(word.key, *a) == 0;
        if (is_apart)
            continue;
        if (n++ == 0)
            tgi_jw_begin(w, "metadata", '{');
        tgi_jw_str(w, word.key, word.text);
    }
    if (n)
        tgi_jw_end(w, '}');
}

static void put_word(tgi_jw *w, const char *key, const tgi_source *s, int track)
{
    tgi_av_word word;
    for (int i = 0; tgi_film_source_word(s, track, i, &word); i++)
        if (strcasecmp(word.key, key) == 0) {
            put_text(w, key, word.text);
            return;
        }
}

static void put_track(tgi_jw *w, const tgi_source *s, int i, const tgi_av_track *t, int is_film)
{
    static const char *const apart[] = {"language", "title", NULL};
    tgi_jw_begin(w, NULL, '{');
    tgi_jw_str(w, "kind", t->kind);
    tgi_jw_str(w, "codec", t->codec);
    put_word(w, "language", s, i);
    put_word(w, "title", s, i);
    if (t->width && t->height) {
        tgi_jw_int(w, "width", t->width);
        tgi_jw_int(w, "height", t->height);
    }
    if (t->channels) {
        tgi_jw_int(w, "channels", t->channels);
        tgi_jw_int(w, "samples_per_second", t->rate);
    }
    tgi_jw_bool(w, "read", is_film);
    put_list(w, "dispositions", t->uses);
    put_words(w, s, i, apart);
    tgi_jw_end(w, '}');
}

static void put_chapters(tgi_jw *w, const tgi_source *s)
{
    tgi_av_chapter c;
    tgi_jw_begin(w, "chapters", '[');
    for (int i = 0; tgi_film_source_chapter(s, i, &c); i++) {
        tgi_jw_begin(w, NULL, '{');
        tgi_jw_num(w, "start_seconds", c.begin);
        tgi_jw_num(w, "end_seconds", c.end);
        if (c.title)
            tgi_jw_str(w, "title", c.title);
        tgi_jw_end(w, '}');
    }
    tgi_jw_end(w, ']');
}

static void put_tracks(tgi_jw *w, const tgi_source *s, const tgi_av_info *info)
{
    tgi_av_track t;
    int attached = 0;
    for (int i = 0; tgi_film_source_track(s, i, &t); i++)
        attached += strcmp(t.kind, "attachment") == 0 || strcmp(t.kind, "cover") == 0;
    put_chapters(w, s);
    tgi_jw_int(w, "attachments", attached);
    tgi_jw_begin(w, "tracks", '[');
    for (int i = 0; tgi_film_source_track(s, i, &t); i++)
        put_track(w, s, i, &t, i == info->stream);
    tgi_jw_end(w, ']');
}

void tgi_describe_film(tgi_jw *w, const tgi_source *s)
{
    static const char *const none[] = {NULL};
    const tgi_av_info *i = tgi_film_source_info(s);
    if (!i)
        return;
    tgi_jw_begin(w, "film", '{');
    put_text(w, "container", i->container);
    put_text(w, "codec", i->codec);
    put_text(w, "profile", i->profile);
    put_text(w, "pixels", i->form.name);
    put_words(w, s, -1, none);
    put_ratio(w, "frames_per_second", i->mean);
    put_times(w, s, i);
    if (i->hidden)
        tgi_jw_int(w, "frames_not_shown", i->hidden);
    put_ratio(w, "time_base", i->time_base);
    put_ratio(w, "pixel_aspect", i->pixel_aspect);
    tgi_jw_int(w, "rotation", i->rotation);
    tgi_jw_bool(w, "mirrored", i->flipped);
    if (i->interlaced >= 0)
        tgi_jw_bool(w, "interlaced", i->interlaced);
    if (i->interlaced > 0 && i->fields)
        tgi_jw_str(w, "first_field", i->fields == 1 ? "top" : "bottom");
    put_text(w, "range", i->form.range);
    put_text(w, "matrix", i->form.matrix);
    put_text(w, "primaries", i->form.primaries);
    put_text(w, "transfer", i->form.transfer);
    put_text(w, "chroma_place", i->form.chroma_place);
    put_list(w, "assumed", tgi_film_source_assumed(s));
    put_light(w, &i->hdr);
    put_tracks(w, s, i);
    tgi_jw_end(w, '}');
}
