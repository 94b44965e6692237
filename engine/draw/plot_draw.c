/* plot_draw.c - the picture: where everything goes, on whatever canvas.
 *
 *      Title
 *      what it comes to, in a line
 *      legend
 *           | start | run                              | finish |    ribbon: phases
 *      size |-------------------- budget ----------------------|  budget
 *      axis |- - - - - - - - - -predicted- - - - - - - - - - - |  predicted
 *           |   /\____/\ maximum                               |
 *           +--------------------------------------------------+
 *             time axis                                            (a panel for each GPU below)
 *
 * Of a film, between the two, three rows more: how much of the time frames were decoded, computed
 * and encoded.
 *
 * Lines are named where they end, not only in the legend. A budget far above everything else is
 * named with an arrow instead of pressing the rest to the bottom. File pages, which count
 * nowhere, lie on top of what is measured and never set the scale. */
#include "engine/draw/plot.h"

#include "engine/base/mem.h"
#include "engine/base/size.h"
#include "engine/draw/plot_axis.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define LEFT 80.0
#define RIGHT 116.0
#define RIBBON_TOP 86.0
#define RIBBON_HEIGHT 18.0
#define HOST_TOP (RIBBON_TOP + RIBBON_HEIGHT)
#define HOST_HEIGHT 280.0
#define GPU_GAP 34.0
#define GPU_HEIGHT 96.0
#define BELOW 62.0
#define BUSY_GAP 10.0 /* and a line of text above the first */
#define BUSY_HEIGHT 30.0
#define BUSY_TEXT 20.0
#define TIPS 200
#define BUDGET_IN_SIGHT 2.2 /* times everything else: further up it is only named */

typedef struct view {
    tgi_canvas *c;
    const tgi_memlog *log;
    const tgi_memlog_group *col; /* one for a point of width, at most */
    int n;
    double width;
    tgi_plot_frame f; /* of the panel being drawn */
    tgi_point *p;     /* scratch: 2 * n + 4 */
} view;

/* ---- Scales ------------------------------------------------------------------------------ */

static double x_of(const view *v, double seconds)
{
    const tgi_plot_frame *f = &v->f;
    return f->x[0] + (f->x[1] - f->x[0]) * (seconds - f->from) / (f->to - f->from);
}

static double y_of(const view *v, double bytes)
{
    const tgi_plot_frame *f = &v->f;
    const double y = f->y[1] - (f->y[1] - f->y[0]) * bytes / f->top;
    return y < f->y[0] ? f->y[0] : y;
}

static uint64_t last_known(const tgi_memlog *l, int budget)
{
    for (int i = l->n_groups - 1; i >= 0; i--) {
        const uint64_t v = budget ? l->group[i].budget : l->group[i].predicted;
        if (v)
            return v;
    }
    return 0;
}

static double host_top(const tgi_memlog *l)
{
    double most = (double)l->max.bytes, budget = 0;
    for (int i = 0; i < l->n_groups; i++) {
        most = fmax(most, (double)l->group[i].predicted);
        budget = fmax(budget, (double)l->group[i].budget);
    }
    if (budget > most && budget <= BUDGET_IN_SIGHT * most)
        most = budget;
    return fmax(most * 1.08, 4096);
}

tgi_plot_frame tgi_plot_frame_of(const tgi_memlog *log, double width)
{
    const double from = log->from <= 0.05 * log->to ? 0 : log->from;
    const double least = 1e-3 + 1e-9 * from; /* of a log of one moment; ticks stay apart */
    return (tgi_plot_frame){.x = {LEFT, width - RIGHT},
                            .y = {HOST_TOP, HOST_TOP + HOST_HEIGHT},
                            .from = from,
                            .to = fmax(log->to, from + least),
                            .top = host_top(log)};
}

/* Images are read and written by who knows how many threads: nobody counts that. */
static int has_frames(const tgi_memlog *l)
{
    return l->busy_ms[TGI_BUSY_DECODE] || l->busy_ms[TGI_BUSY_ENCODE];
}

double tgi_plot_height(const tgi_memlog *log)
{
    const double busy =
        has_frames(log) ? BUSY_TEXT + TGI_BUSY_KINDS * (BUSY_GAP + BUSY_HEIGHT) : 0;
    return HOST_TOP + HOST_HEIGHT + busy + log->n_gpus * (GPU_GAP + GPU_HEIGHT) + BELOW;
}

/* ---- Words ------------------------------------------------------------------------------- */

static const char *size_text(uint64_t bytes, char buf[32])
{
    return tgi_size_text(bytes, buf, 32);
}

static const char *time_text(double s, char buf[48])
{
    const long long t = (long long)(s + 0.5);
    if (s < 99.95) {
        const size_t n = tgi_decimal(s, s < 9.995 ? 2 : 1, buf, 40);
        snprintf(buf + n, 48 - n, " s");
    } else if (t < 3600) {
        snprintf(buf, 48, "%lld min %lld s", t / 60, t % 60);
    } else if (t < 86400) {
        snprintf(buf, 48, "%lld h %lld min", t / 3600, t / 60 % 60);
    } else {
        snprintf(buf, 48, "%lld d %lld h", t / 86400, t / 3600 % 24);
    }
    return buf;
}

/* "run, tile 13" */
static void label_text(const tgi_memlog *l, const char *phase, int64_t tile, char *buf,
                       size_t cap)
{
    if (l->has_tile)
        snprintf(buf, cap, "%s%stile %lld", phase, *phase ? ", " : "", (long long)tile);
    else
        snprintf(buf, cap, "%s", phase);
}

void tgi_plot_summary(const tgi_memlog *log, char *buf, size_t cap)
{
    char a[32], t[48];
    const uint64_t budget = last_known(log, 1), predicted = last_known(log, 0);
    const double max = (double)log->max.bytes;
    size_t n = (size_t)snprintf(buf, cap, "maximum %s", size_text(log->max.bytes, a));
    if (budget && n < cap)
        n += (size_t)snprintf(buf + n, cap - n, ", %.0f %% of the budget of %s",
                              100 * max / (double)budget, size_text(budget, a));
    if (predicted && n < cap)
        n += (size_t)snprintf(buf + n, cap - n, "; predicted %s", size_text(predicted, a));
    if (n < cap)
        snprintf(buf + n, cap - n, "; %s, %lld samples", time_text(log->to - log->from, t),
                 (long long)log->rows);
}

static void text(const view *v, double x, double y, tgi_anchor anchor, double size, int bold,
                 tgi_role role, const char *s)
{
    v->c->ops->text(v->c, x, y, anchor, size, bold, role, s);
}

static void line2(const view *v, double x0, double y0, double x1, double y1, tgi_role role,
                  double width, double dash)
{
    const tgi_point p[2] = {{x0, y0}, {x1, y1}};
    v->c->ops->line(v->c, p, 2, role, width, dash);
}

/* ---- Frame ------------------------------------------------------------------------------- */

static void phases(const view *v, int ribbon)
{
    for (int i = 0; i < v->log->n_phases; i++) {
        const tgi_memlog_phase *p = &v->log->phase[i];
        const double x0 = x_of(v, i ? p->from : v->f.from), x1 = x_of(v, p->to);
        const tgi_role tint = i % 2 ? TGI_PHASE_B : TGI_PHASE_A;
        char tip[160], a[48], b[48];
        v->c->ops->rect(v->c, x0, v->f.y[0], x1 - x0, v->f.y[1] - v->f.y[0], tint);
        if (!ribbon)
            continue;
        v->c->ops->rect(v->c, x0, RIBBON_TOP, x1 - x0, RIBBON_HEIGHT,
                        i % 2 ? TGI_RIBBON_B : TGI_RIBBON_A);
        if (tgi_text_width(p->name, 11.5, 0) + 10 <= x1 - x0)
            text(v, (x0 + x1) / 2, RIBBON_TOP + 13, TGI_MIDDLE, 11.5, 0, TGI_INK, p->name);
        snprintf(tip, sizeof tip, "%s: %s to %s", p->name, time_text(p->from, a),
                 time_text(p->to, b));
        v->c->ops->tip(v->c, x0, RIBBON_TOP, x1 - x0, RIBBON_HEIGHT, tip);
    }
}

static void size_axis(const view *v, int ticks)
{
    const tgi_plot_frame *f = &v->f;
    const tgi_axis a = tgi_axis_bytes((uint64_t)f->top, ticks);
    char buf[TGI_AXIS_TEXT];
    for (int tick = 0; tick * a.step <= f->top; tick++) {
        const double at = tick * a.step;
        const double y = y_of(v, at);
        if (at > 0)
            line2(v, f->x[0], y, f->x[1], y, TGI_GRID, 1, 0);
        text(v, f->x[0] - 9, y + 4, TGI_END, 12, 0, TGI_MUTED, tgi_axis_text(&a, at, buf));
    }
}

static void time_axis(const view *v)
{
    const tgi_plot_frame *f = &v->f;
    const tgi_axis a = tgi_axis_seconds(f->to - f->from, (int)((f->x[1] - f->x[0]) / 80));
    char buf[TGI_AXIS_TEXT];
    const double first = ceil(f->from / a.step - 1e-9);
    for (int i = 0; (first + i) * a.step <= f->to + 1e-3 * a.step; i++) {
        const double k = first + i;
        const double x = x_of(v, k * a.step);
        line2(v, x, f->y[1], x, f->y[1] + 5, TGI_AXIS, 1, 0);
        text(v, x, f->y[1] + 19, TGI_MIDDLE, 12, 0, TGI_MUTED,
             tgi_axis_text(&a, k * a.step, buf));
    }
}

static void base_line(const view *v)
{
    line2(v, v->f.x[0], v->f.y[1], v->f.x[1], v->f.y[1], TGI_AXIS, 1, 0);
}

/* ---- Curves ------------------------------------------------------------------------------ */

/* Corners of the measured curve: the least and the largest of each column, as they came. */
static int curve(const view *v)
{
    int n = 0;
    for (int i = 0; i < v->n; i++) {
        const tgi_memlog_group *g = &v->col[i];
        const tgi_point low = {x_of(v, g->low_at), y_of(v, (double)g->low)};
        const tgi_point high = {x_of(v, g->high_at), y_of(v, (double)g->high)};
        const int low_first = g->low_at <= g->high_at;
        if (g->low != g->high)
            v->p[n++] = low_first ? low : high;
        v->p[n++] = g->low == g->high || low_first ? high : low;
    }
    return n;
}

static void measured(const view *v)
{
    const int n = curve(v);
    v->p[n] = (tgi_point){v->p[n - 1].x, v->f.y[1]};
    v->p[n + 1] = (tgi_point){v->p[0].x, v->f.y[1]};
    v->c->ops->area(v->c, v->p, n + 2, TGI_MEASURED_AREA);
    v->c->ops->line(v->c, v->p, n, TGI_MEASURED, 1.8, 0);
}

static uint64_t most_file(const tgi_memlog *l)
{
    uint64_t most = 0;
    for (int i = 0; i < l->n_groups; i++)
        most = l->group[i].file > most ? l->group[i].file : most;
    return most;
}

static void file_pages(const view *v)
{
    for (int i = 0; i < v->n; i++) {
        const tgi_memlog_group *g = &v->col[i];
        const double x = x_of(v, g->high_at);
        v->p[i] = (tgi_point){x, y_of(v, (double)g->high + (double)g->file)};
        v->p[2 * v->n - 1 - i] = (tgi_point){x, y_of(v, (double)g->high)};
    }
    v->c->ops->area(v->c, v->p, 2 * v->n, TGI_FILE_AREA);
}

/* A value that holds from one column to the next: a line where it is known and in sight. */
static void reference(const view *v, int budget)
{
    uint64_t now = 0;
    double since = 0;
    for (int i = 0; i <= v->n; i++) {
        const tgi_memlog_group *g = i < v->n ? &v->col[i] : NULL;
        const uint64_t next = !g ? 0 : budget ? g->budget : g->predicted;
        if (next == now)
            continue;
        const double x = g ? x_of(v, g->from) : v->f.x[1];
        if (now && (double)now <= v->f.top) {
            const double y = y_of(v, (double)now);
            line2(v, since, y, x, y, budget ? TGI_BUDGET : TGI_PREDICTED, 2, budget ? 0 : 7);
        }
        now = next;
        since = i ? x : v->f.x[0];
    }
}

/* Name and size at the right end, centred on y. */
static void end_label(const view *v, double y, tgi_role role, const char *name, uint64_t bytes)
{
    char a[32];
    const double x = v->f.x[1] + 9;
    text(v, x, y - 3, TGI_START, 12, 1, role, name);
    text(v, x, y + 12, TGI_START, 12, 0, role, size_text(bytes, a));
}

static void reference_labels(const view *v)
{
    const uint64_t budget = last_known(v->log, 1), predicted = last_known(v->log, 0);
    const double x = v->f.x[1] + 9, top = v->f.y[0];
    const int far = budget && (double)budget > v->f.top;
    double yb = far ? top + 22 : y_of(v, (double)budget), yp = y_of(v, (double)predicted);
    if (budget && predicted && fabs(yb - yp) < 34) { /* in the order of the lines */
        const double mid = 0.5 * (yb + yp), up = budget >= predicted ? 17 : -17;
        yb = far ? yb : mid - up;
        yp = far ? yb + 34 : mid + up;
    }
    if (budget)
        end_label(v, yb, TGI_BUDGET, "budget", budget);
    if (predicted)
        end_label(v, yp, TGI_PREDICTED, "predicted", predicted);
    if (far) {
        const tgi_point arrow[3] = {{x, top + 6}, {x + 5, top - 2}, {x + 10, top + 6}};
        v->c->ops->area(v->c, arrow, 3, TGI_BUDGET);
    }
}

/* ---- The maximum ------------------------------------------------------------------------- */

typedef struct box {
    double x, y, w, h;
} box;

/* Height of the curve there, between two columns on the straight line. */
static double curve_at(const view *v, double x)
{
    int i = 0;
    while (i + 1 < v->n && x_of(v, v->col[i + 1].high_at) < x)
        i++;
    const tgi_memlog_group *a = &v->col[i], *b = &v->col[i + 1 < v->n ? i + 1 : i];
    const double xa = x_of(v, a->high_at), xb = x_of(v, b->high_at);
    const double part = xb > xa ? fmin(fmax((x - xa) / (xb - xa), 0), 1) : 0;
    return y_of(v, (double)a->high + part * ((double)b->high - (double)a->high));
}

/* How much a label would hide there: of the curve and of reference lines. */
static double hides(const view *v, box b)
{
    const tgi_plot_frame *f = &v->f;
    const uint64_t lines[2] = {last_known(v->log, 0), last_known(v->log, 1)};
    double bad = 0;
    if (b.x < f->x[0] + 2 || b.x + b.w > f->x[1] - 2 || b.y < f->y[0] + 2 ||
        b.y + b.h > f->y[1] - 2)
        bad += 1e6;
    for (int i = 0; i < 2; i++) {
        const double y = y_of(v, (double)lines[i]);
        bad += lines[i] && (double)lines[i] <= f->top && y > b.y - 3 && y < b.y + b.h + 3 ? 500
                                                                                          : 0;
    }
    for (int i = 0; i <= 16; i++) {
        const double y = curve_at(v, b.x + b.w * i / 16);
        bad += y > b.y - 3 && y < b.y + b.h + 3 ? 10 : 0;
    }
    return bad;
}

static box place(const view *v, tgi_point at, double w, double h)
{
    box best = {0};
    double least = 1e300;
    for (int i = 0; i < 12; i++) {
        const int ring = i / 4;
        const double gap = 10 + 22.0 * ring;
        const box b = {i % 2 ? at.x - 12 - w : at.x + 12,
                       i / 2 % 2 ? at.y - gap - h : at.y + gap, w, h};
        const double bad = hides(v, b) + 0.5 * i;
        if (bad < least) {
            least = bad;
            best = b;
        }
    }
    return best;
}

static void maximum(const view *v)
{
    const tg_tracker_maximum *m = &v->log->max;
    const tgi_point at = {x_of(v, m->seconds), y_of(v, (double)m->bytes)};
    char first[64], second[128], label[64], t[48], a[32];
    snprintf(first, sizeof first, "maximum %s", size_text(m->bytes, a));
    label_text(v->log, m->phase, m->tile, label, sizeof label);
    snprintf(second, sizeof second, "%s%sat %s", label, label[0] ? ", " : "",
             time_text(m->seconds, t));
    const double w =
        fmax(tgi_text_width(first, 12, 1), tgi_text_width(second, 11.5, 0)) * 1.03 + 18;
    const box b = place(v, at, w, 38);
    v->c->ops->rect(v->c, b.x - 1, b.y - 1, b.w + 2, b.h + 2, TGI_AXIS);
    v->c->ops->rect(v->c, b.x, b.y, b.w, b.h, TGI_PAPER);
    text(v, b.x + 9, b.y + 16, TGI_START, 12, 1, TGI_INK, first);
    text(v, b.x + 9, b.y + 30, TGI_START, 11.5, 0, TGI_MUTED, second);
    v->c->ops->disc(v->c, at.x, at.y, 6, TGI_PAPER);
    v->c->ops->disc(v->c, at.x, at.y, 4.5, TGI_MEASURED);
}

/* ---- Around ------------------------------------------------------------------------------ */

static double legend_item(const view *v, double x, tgi_role role, const char *name)
{
    const double y = 70;
    if (role == TGI_MEASURED || role == TGI_FILE_AREA)
        v->c->ops->rect(v->c, x, y - 8, 22, 10,
                        role == TGI_MEASURED ? TGI_MEASURED_AREA : TGI_FILE_AREA);
    if (role == TGI_MEASURED)
        line2(v, x, y - 8, x + 22, y - 8, role, 1.8, 0);
    else if (role != TGI_FILE_AREA)
        line2(v, x + 1, y - 4, x + 21, y - 4, role, 2, role == TGI_PREDICTED ? 7 : 0);
    text(v, x + 28, y, TGI_START, 12, 0, TGI_MUTED, name);
    return x + 28 + tgi_text_width(name, 12, 0) + 22;
}

static void heading(const view *v, const char *title)
{
    char line[256], files[80], a[32];
    const uint64_t file = most_file(v->log);
    text(v, LEFT, 27, TGI_START, 17, 1, TGI_INK, title);
    tgi_plot_summary(v->log, line, sizeof line);
    text(v, LEFT, 47, TGI_START, 12.5, 0, TGI_MUTED, line);
    double x = legend_item(v, LEFT, TGI_MEASURED, "measured");
    if (file) {
        snprintf(files, sizeof files, "file pages, not counted (up to %s)", size_text(file, a));
        x = legend_item(v, x, TGI_FILE_AREA, files);
    }
    if (last_known(v->log, 0))
        x = legend_item(v, x, TGI_PREDICTED, "predicted peak");
    if (last_known(v->log, 1))
        legend_item(v, x, TGI_BUDGET, "budget");
}

static void footer(const view *v, double height)
{
    text(v, v->f.x[1], v->f.y[1] + 38, TGI_END, 12, 0, TGI_MUTED, "time since the start");
    text(v, LEFT, height - 10, TGI_START, 11, 0, TGI_MUTED,
         "measured: anonymous, shared and swapped memory and page tables; the largest within "
         "each "
         "interval");
}

/* ---- Work -------------------------------------------------------------------------------- */

static const char *const work_name[TGI_BUSY_KINDS] = {"decoding", "computing", "encoding"};

/* Where the time that column i counts begins, and how much of it was work. */
static double busy_from(const tgi_memlog_group *col, int i)
{
    return i ? col[i - 1].to : col[0].from;
}

static double share_of(const tgi_memlog_group *col, int i, int kind)
{
    const double ms = 1e3 * (col[i].to - busy_from(col, i));
    return ms > 0 ? fmin((double)col[i].busy_ms[kind] / ms, 1) : 0;
}

static void busy_row(view *v, int kind)
{
    char t[48];
    int n = 0;
    const double x = v->f.x[1] + 9;
    v->f.y[0] = v->f.y[1] + BUSY_GAP + (kind ? 0 : BUSY_TEXT);
    v->f.y[1] = v->f.y[0] + BUSY_HEIGHT;
    v->f.top = 1;
    phases(v, 0);
    for (int i = 0; i < v->n; i++) {
        const double y = y_of(v, share_of(v->col, i, kind));
        v->p[n++] = (tgi_point){x_of(v, busy_from(v->col, i)), y};
        v->p[n++] = (tgi_point){x_of(v, v->col[i].to), y};
    }
    v->p[n] = (tgi_point){v->p[n - 1].x, v->f.y[1]};
    v->p[n + 1] = (tgi_point){v->p[0].x, v->f.y[1]};
    v->c->ops->area(v->c, v->p, n + 2, TGI_MEASURED_AREA);
    v->c->ops->line(v->c, v->p, n, TGI_MEASURED, 1.2, 0);
    base_line(v);
    text(v, v->f.x[0] - 9, v->f.y[0] + 9, TGI_END, 12, 0, TGI_MUTED, "100 %");
    text(v, x, v->f.y[0] + 12, TGI_START, 12, 1, TGI_MEASURED, work_name[kind]);
    text(v, x, v->f.y[0] + 27, TGI_START, 12, 0, TGI_MEASURED,
         time_text(1e-3 * (double)v->log->busy_ms[kind], t));
}

static void busy_rows(view *v)
{
    text(v, v->f.x[0], v->f.y[1] + BUSY_GAP + BUSY_TEXT - 8, TGI_START, 12, 1, TGI_INK,
         "Frames: share of the time in which one was decoded, computed, encoded");
    for (int k = 0; k < TGI_BUSY_KINDS; k++)
        busy_row(v, k);
}

/* Of column i. */
static void tip_of(const tgi_memlog *l, const tgi_memlog_group *col, int i, char *buf,
                   size_t cap)
{
    const tgi_memlog_group *g = &col[i];
    char t[48], label[64], a[32], b[32], c[32], d[32];
    label_text(l, l->phase[g->phase].name, g->tile, label, sizeof label);
    size_t n = (size_t)snprintf(buf, cap, "%s, %s\nmeasured %s\nfile pages %s",
                                time_text(g->high_at, t), label, size_text(g->high, a),
                                size_text(g->file, b));
    if (g->pool && n < cap)
        n += (size_t)snprintf(buf + n, cap - n, "\nheld by tegula %s", size_text(g->pool, c));
    if (g->available && n < cap)
        n += (size_t)snprintf(buf + n, cap - n, "\navailable %s", size_text(g->available, d));
    for (int k = 0; k < TGI_BUSY_KINDS && has_frames(l) && n < cap; k++)
        n += (size_t)snprintf(buf + n, cap - n, "\n%s %.0f %%", work_name[k],
                              100 * share_of(col, i, k));
    for (int k = 0; k < l->n_gpus && n < cap; k++)
        n += (size_t)snprintf(buf + n, cap - n, "\nGPU %d %s of %s", k,
                              size_text(g->gpu_used[k], a), size_text(g->gpu_total[k], b));
}

static void tips(const view *v, double foot)
{
    tgi_memlog_group *g = tgi_malloc(TGI_TAG_MISC, TIPS * sizeof *g);
    if (!g)
        return; /* a picture without them is still right */
    const int n = tgi_memlog_columns(v->log, TIPS, g);
    for (int i = 0; i < n; i++) {
        char buf[1400];
        const double x0 = i ? x_of(v, 0.5 * (g[i - 1].to + g[i].from)) : v->f.x[0];
        const double x1 = i + 1 < n ? x_of(v, 0.5 * (g[i].to + g[i + 1].from)) : v->f.x[1];
        tip_of(v->log, g, i, buf, sizeof buf);
        v->c->ops->tip(v->c, x0, HOST_TOP, x1 - x0, foot - HOST_TOP, buf);
    }
    tgi_free(g);
}

/* ---- Panels ------------------------------------------------------------------------------ */

static void gpu_panel(view *v, int gpu)
{
    uint64_t total = 0, used = 0;
    char name[96], a[32], b[32];
    int n = 0;
    for (int i = 0; i < v->n; i++) {
        total = v->col[i].gpu_total[gpu] > total ? v->col[i].gpu_total[gpu] : total;
        used = v->col[i].gpu_used[gpu] > used ? v->col[i].gpu_used[gpu] : used;
    }
    v->f.y[0] = v->f.y[1] + GPU_GAP;
    v->f.y[1] = v->f.y[0] + GPU_HEIGHT;
    v->f.top = fmax(1.08 * (double)total, 4096);
    phases(v, 0);
    size_axis(v, 3);
    for (; n < v->n; n++)
        v->p[n] =
            (tgi_point){x_of(v, v->col[n].high_at), y_of(v, (double)v->col[n].gpu_used[gpu])};
    v->p[n] = (tgi_point){v->p[n - 1].x, v->f.y[1]};
    v->p[n + 1] = (tgi_point){v->p[0].x, v->f.y[1]};
    v->c->ops->area(v->c, v->p, n + 2, TGI_MEASURED_AREA);
    v->c->ops->line(v->c, v->p, n, TGI_MEASURED, 1.8, 0);
    if (total) {
        const double y = y_of(v, (double)total);
        line2(v, v->f.x[0], y, v->f.x[1], y, TGI_BUDGET, 2, 0);
        end_label(v, y + 6, TGI_BUDGET, "total", total);
    }
    base_line(v);
    snprintf(name, sizeof name, "GPU %d: at most %s of %s used, by all programs", gpu,
             size_text(used, a), size_text(total, b));
    text(v, v->f.x[0], v->f.y[0] - 8, TGI_START, 12, 1, TGI_INK, name);
}

static void host_panel(const view *v)
{
    phases(v, 1);
    size_axis(v, 7);
    file_pages(v);
    measured(v);
    reference(v, 0);
    reference(v, 1);
    base_line(v);
    reference_labels(v);
    maximum(v);
}

tg_status tgi_plot_draw(tgi_canvas *c, double width, const char *title, const tgi_memlog *log,
                        tgi_err *err)
{
    view v = {.c = c, .log = log, .width = width, .f = tgi_plot_frame_of(log, width)};
    const int columns = (int)(v.f.x[1] - v.f.x[0]);
    tgi_memlog_group *col = tgi_malloc(TGI_TAG_MISC, (size_t)columns * sizeof *col);
    v.p = tgi_malloc(TGI_TAG_MISC, (2 * (size_t)columns + 4) * sizeof *v.p);
    tg_status st = TG_OK;
    if (!col || !v.p) {
        st = tgi_fail(err, TG_E_NOMEM, "no memory for the picture");
    } else {
        v.col = col;
        v.n = tgi_memlog_columns(log, columns, col);
        heading(&v, title);
        host_panel(&v);
        if (has_frames(log))
            busy_rows(&v);
        for (int i = 0; i < log->n_gpus; i++)
            gpu_panel(&v, i);
        time_axis(&v);
        footer(&v, tgi_plot_height(log));
        tips(&v, v.f.y[1]);
    }
    tgi_free(col);
    tgi_free(v.p);
    return st;
}
