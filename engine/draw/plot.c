/* plot.c - from a log to a picture file. */
#include "engine/draw/plot.h"

#include "engine/base/mem.h"
#include "io/text_file.h"

#include <stdio.h>
#include <string.h>

#define WIDTH 960
#define SCALE 2.0

static int ends_with(const char *path, const char *suffix)
{
    const size_t n = strlen(path), k = strlen(suffix);
    return n > k && strcmp(path + n - k, suffix) == 0;
}

static tg_status make_svg(const tgi_memlog *log, const char *out, const tg_plot_opts *o,
                          const char *title, tgi_err *err)
{
    tgi_canvas *c = NULL;
    char *text = NULL, summary[256];
    size_t n = 0;
    const int theme = o->theme == TG_THEME_AUTO ? -1 : o->theme == TG_THEME_DARK;
    tgi_plot_summary(log, summary, sizeof summary);
    TGI_TRY(tgi_svg_open(o->width, tgi_plot_height(log), theme, title, summary, &c, err));
    tg_status st = tgi_plot_draw(c, o->width, title, log, err);
    const tg_status closed = tgi_svg_close(&c, &text, &n, err);
    if (st == TG_OK)
        st = closed;
    if (st == TG_OK)
        st = tgi_write_text(out, text, 1, err);
    tgi_free(text);
    return st;
}

static tg_status make_png(const tgi_memlog *log, const char *out, const tg_plot_opts *o,
                          const char *title, tgi_err *err)
{
    tgi_canvas *c = NULL;
    TGI_TRY(tgi_png_open(o->width, tgi_plot_height(log), o->scale, o->theme == TG_THEME_DARK,
                         &c, err));
    const tg_status st = tgi_plot_draw(c, o->width, title, log, err);
    const tg_status closed = tgi_png_close(&c, st == TG_OK ? out : NULL, err);
    return st == TG_OK ? closed : st;
}

static tg_status check_opts(const char *out, tg_plot_opts *o, tgi_err *err)
{
    if (!ends_with(out, ".svg") && !ends_with(out, ".png"))
        return tgi_fail(err, TG_E_ARG, "%s: a plot is FILE.svg or FILE.png", out);
    o->width = o->width ? o->width : WIDTH;
    o->scale = o->scale > 0 ? o->scale : SCALE;
    if (o->width < 480 || o->width > 4000)
        return tgi_fail(err, TG_E_ARG, "a plot is 480 to 4000 points wide, not %d", o->width);
    if (!(o->scale >= 0.5 && o->scale <= 8))
        return tgi_fail(err, TG_E_ARG, "a plot has 0.5 to 8 pixels a point, not %g", o->scale);
    if ((unsigned)o->theme > TG_THEME_DARK)
        return tgi_fail(err, TG_E_ARG, "there is no theme %d", (int)o->theme);
    return TG_OK;
}

static void fill_result(const tgi_memlog *log, tg_plot_result *r)
{
    const tgi_memlog_group *last = &log->group[log->n_groups - 1];
    *r = (tg_plot_result){.size = sizeof *r,
                          .samples = log->rows,
                          .seconds = log->to,
                          .maximum = log->max,
                          .predicted_bytes = last->predicted,
                          .budget_bytes = last->budget,
                          .unfinished = log->unfinished};
}

tg_status tgi_plot(const char *csv, const char *out, const tg_plot_opts *opts,
                   tg_plot_result *result, tgi_err *err)
{
    tg_plot_opts o = opts ? *opts : (tg_plot_opts){0};
    tgi_memlog *log = NULL;
    TGI_TRY(check_opts(out, &o, err));
    TGI_TRY(tgi_memlog_read(csv, &log, err));
    const char *title = o.title && *o.title ? o.title : "Memory over time";
    const tg_status st = ends_with(out, ".svg") ? make_svg(log, out, &o, title, err)
                                                : make_png(log, out, &o, title, err);
    if (st == TG_OK && result)
        fill_result(log, result);
    tgi_free(log);
    return st;
}
