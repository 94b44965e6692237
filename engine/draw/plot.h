/* plot.h - a memory log as a picture. plot.c reads and writes files, plot_draw.c draws. */
#ifndef TGI_PLOT_H
#define TGI_PLOT_H

#include "engine/draw/canvas.h"
#include "engine/memory/log_read.h"

/* How a picture of usual width begins. */
#define TGI_PLOT_SVG "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 960 "
#define TGI_PLOT_PNG "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x07\x80"

/* As tg_plot; opts and result may be NULL. */
tg_status tgi_plot(const char *csv, const char *out, const tg_plot_opts *opts,
                   tg_plot_result *result, tgi_err *err);

/* Height in points of the picture of a log. */
double tgi_plot_height(const tgi_memlog *log);
/* Draw on a canvas that is `width` wide and that high. TG_E_NOMEM. */
tg_status tgi_plot_draw(tgi_canvas *c, double width, const char *title, const tgi_memlog *log,
                        tgi_err *err);
/* The line below the title: "maximum 405.12 MiB, 79 % of the budget of 512.00 MiB; ...". */
void tgi_plot_summary(const tgi_memlog *log, char *buf, size_t cap);

/* Where the host's panel lies, for tests that look at pixels: x[2], y[2] of its corners, and
 * what its top edge stands for. */
typedef struct tgi_plot_frame {
    double x[2], y[2];
    double from, to; /* seconds at x[0] and x[1] */
    double top;      /* bytes at y[0]; y[1] is 0 */
} tgi_plot_frame;
tgi_plot_frame tgi_plot_frame_of(const tgi_memlog *log, double width);

#endif
