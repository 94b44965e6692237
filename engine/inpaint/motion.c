/* motion.c - see motion.h. */
#include "engine/inpaint/motion.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "engine/inpaint/fill_smooth.h"

#include <math.h>
#include <string.h>

#define COARSEST 16           /* pixels that the coarsest level has at least */
#define HALVINGS 5            /* at most */
#define SPOILT 12             /* pixels around what is hidden whose motion is not trusted */
#define REPEATS 1             /* times that the network looks at a level */
#define AROUND 8              /* pixels on each side that local light and contrast are of */
#define FLOOR 0.02            /* added to the contrast, in squares */
#define CHANNELS 10           /* of its input */
#define TO_NETWORK (1.0f / 8) /* of F */

/* ---- Levels ------------------------------------------------------------------------------ */

static int levels_of(int64_t height, int64_t width)
{
    int n = 0;
    const int64_t side = tgi_min(height, width);
    while (n < HALVINGS && side >> (n + 1) >= COARSEST)
        n++;
    return n;
}

static int64_t continued(int64_t side, int levels)
{
    const int64_t of = (int64_t)2 << levels;
    return (side + of - 1) / of * of;
}

/* ---- Steps that are functions ------------------------------------------------------------- */

typedef struct pass {
    tgi_motions *m;
    const tgi_motion_frame *frame[2];
    float *out;
} pass;

/* What a job of a parallel loop works on. */
typedef struct rows {
    const float *from, *second, *flow;
    float *to;
    int64_t height, width; /* of the level */
    int64_t shown_h, shown_w;
} rows;

static void continue_row(void *arg, int64_t y, int thread)
{
    const rows *r = arg;
    const float *from = r->from + tgi_min(y, r->shown_h - 1) * r->shown_w;
    float *to = r->to + y * r->width;
    (void)thread;
    memcpy(to, from, (size_t)r->shown_w * sizeof *to);
    for (int64_t x = r->shown_w; x < r->width; x++)
        to[x] = from[r->shown_w - 1];
}

/* Weights 1 3 3 1 over 8 of four neighbours, along y and then along x, the border repeated. */
static void halve_row(void *arg, int64_t y, int thread)
{
    const rows *r = arg; /* height, width: of what is made */
    const int64_t h = 2 * r->height, w = 2 * r->width;
    const float *row[4];
    float *to = r->to + y * r->width;
    (void)thread;
    for (int k = 0; k < 4; k++)
        row[k] = r->from + tgi_clamp(2 * y - 1 + k, 0, h - 1) * w;
    for (int64_t x = 0; x < r->width; x++) {
        float v[4];
        for (int k = 0; k < 4; k++) {
            const int64_t at = tgi_clamp(2 * x - 1 + k, 0, w - 1);
            v[k] = (row[0][at] + 3 * (row[1][at] + row[2][at]) + row[3][at]) * 0.125f;
        }
        to[x] = (v[0] + 3 * (v[1] + v[2]) + v[3]) * 0.125f;
    }
}

/* Light and contrast no longer matter: minus the mean around a pixel, over the deviation there, of what lies in the
 * picture. from -> to; `second`: room of 2 * width doubles for each thread. */
static void even_row(void *arg, int64_t y, int thread)
{
    const rows *r = arg;
    const int64_t w = r->width, lo = tgi_max(0, y - AROUND),
                  hi = tgi_min(r->height, y + AROUND + 1);
    double *sum = (double *)(void *)(uintptr_t)r->second + (int64_t)thread * 2 * w,
           *square = sum + w;
    memset(sum, 0, 2 * (size_t)w * sizeof *sum);
    for (int64_t i = lo; i < hi; i++)
        for (int64_t x = 0; x < w; x++) {
            const double v = r->from[i * w + x];
            sum[x] += v;
            square[x] += v * v;
        }
    double s = 0, q = 0;
    for (int64_t x = 0; x < tgi_min(w, AROUND); x++) {
        s += sum[x];
        q += square[x];
    }
    for (int64_t x = 0; x < w; x++) {
        if (x + AROUND < w) {
            s += sum[x + AROUND];
            q += square[x + AROUND];
        }
        const double n =
            (double)((hi - lo) * (tgi_min(w, x + AROUND + 1) - tgi_max(0, x - AROUND)));
        const double mean = s / n, spread = fmax(q / n - mean * mean, 0);
        r->to[y * w + x] = (float)((r->from[y * w + x] - mean) / sqrt(spread + FLOOR * FLOOR));
        if (x >= AROUND) {
            s -= sum[x - AROUND];
            q -= square[x - AROUND];
        }
    }
}

/* The levels of both frames that the network sees. */
static tg_status make_even(void *user, const tgi_sched_step *step, void *const *buffer,
                           tgi_err *err)
{
    const tgi_motions *m = ((const pass *)user)->m;
    (void)step;
    (void)err;
    for (int f = 0; f < 2; f++)
        for (int l = m->finest; l <= m->levels; l++) {
            rows r = {.from = buffer[m->luma[f][l]],
                      .second = buffer[m->columns_room],
                      .to = buffer[m->even[f][l]],
                      .height = m->high >> l,
                      .width = m->wide >> l};
            tgi_parallel(m->pool, r.height, even_row, &r);
        }
    return TG_OK;
}

/* The pyramid of both frames. */
static tg_status make_pyramids(void *user, const tgi_sched_step *step, void *const *buffer,
                               tgi_err *err)
{
    const pass *p = user;
    const tgi_motions *m = p->m;
    (void)step;
    (void)err;
    for (int f = 0; f < 2; f++) {
        rows r = {.from = p->frame[f]->luma,
                  .to = buffer[m->luma[f][0]],
                  .height = m->high,
                  .width = m->wide,
                  .shown_h = m->height,
                  .shown_w = m->width};
        tgi_parallel(m->pool, r.height, continue_row, &r);
        for (int l = 1; l <= m->levels; l++) {
            r = (rows){.from = buffer[m->luma[f][l - 1]],
                       .to = buffer[m->luma[f][l]],
                       .height = m->high >> l,
                       .width = m->wide >> l};
            tgi_parallel(m->pool, r.height, halve_row, &r);
        }
    }
    return TG_OK;
}

static tg_status begin_flow(void *user, const tgi_sched_step *step, void *const *buffer,
                            tgi_err *err)
{
    const tgi_motions *m = ((const pass *)user)->m;
    (void)err;
    memset(buffer[step->out[0]], 0, m->schedule->buffer[step->out[0]].bytes);
    return TG_OK;
}

/* Of a grid [h][w], linear at place x, y, its border beyond it. */
static float at_place(const float *grid, int64_t h, int64_t w, float x, float y)
{
    x = x < 0 ? 0 : x > (float)(w - 1) ? (float)(w - 1) : x;
    y = y < 0 ? 0 : y > (float)(h - 1) ? (float)(h - 1) : y;
    const int64_t i = tgi_min((int64_t)y, h > 1 ? h - 2 : 0),
                  j = tgi_min((int64_t)x, w > 1 ? w - 2 : 0);
    const int64_t down = h > 1 ? w : 0, right = w > 1;
    const float u = x - (float)j, v = y - (float)i;
    const float *g = grid + i * w + j;
    const float top = g[0] + u * (g[right] - g[0]),
                low = g[down] + u * (g[down + right] - g[down]);
    return top + v * (low - top);
}

/* Of four pixels, a fraction f behind the second: Lagrange's cubic. */
static void weigh(float f, float weight[4])
{
    weight[0] = -f * (f - 1) * (f - 2) / 6;
    weight[1] = (f + 1) * (f - 1) * (f - 2) / 2;
    weight[2] = -(f + 1) * f * (f - 2) / 2;
    weight[3] = (f + 1) * f * (f - 1) / 6;
}

/* Of a picture at place x, y: cubic, the place and then the pixels inside the picture. */
static float cubic_at(const float *picture, int64_t h, int64_t w, float x, float y)
{
    x = x < 0 ? 0 : x > (float)(w - 1) ? (float)(w - 1) : x;
    y = y < 0 ? 0 : y > (float)(h - 1) ? (float)(h - 1) : y;
    const int64_t i = tgi_min((int64_t)y, h - 2), j = tgi_min((int64_t)x, w - 2);
    float across[4], down[4], sum = 0;
    weigh(x - (float)j, across);
    weigh(y - (float)i, down);
    for (int k = 0; k < 4; k++) {
        const float *row = picture + tgi_clamp(i - 1 + k, 0, h - 1) * w;
        sum += down[k] * (across[0] * row[tgi_max(j - 1, 0)] + across[1] * row[j] +
                          across[2] * row[j + 1] + across[3] * row[tgi_min(j + 2, w - 1)]);
    }
    return sum;
}

/* Row i of the network's input: 2 x 2 pixels a place. */
static void input_row(void *arg, int64_t i, int thread)
{
    const rows *r = arg;
    const int64_t h = r->height / 2, w = r->width / 2, plane = h * w;
    const float *dx = r->flow, *dy = r->flow + plane;
    (void)thread;
    for (int64_t j = 0; j < w; j++) {
        float *to = r->to + i * w + j;
        for (int k = 0; k < 4; k++) {
            const int64_t y = 2 * i + k / 2, x = 2 * j + k % 2;
            const float fy = ((float)y + 0.5f) / 2 - 0.5f, fx = ((float)x + 0.5f) / 2 - 0.5f;
            const float u = at_place(dx, h, w, fx, fy), v = at_place(dy, h, w, fx, fy);
            to[k * plane] = r->from[y * r->width + x];
            to[(4 + k) * plane] =
                cubic_at(r->second, r->height, r->width, (float)x + u, (float)y + v);
        }
        to[8 * plane] = dx[i * w + j] * TO_NETWORK;
        to[9 * plane] = dy[i * w + j] * TO_NETWORK;
    }
}

/* step: luma a, luma b, F -> the network's input. */
static tg_status make_input(void *user, const tgi_sched_step *step, void *const *buffer,
                            tgi_err *err)
{
    const tgi_motions *m = ((const pass *)user)->m;
    const int64_t *shape = m->schedule->buffer[step->in[0]].shape;
    rows r = {.from = buffer[step->in[0]],
              .second = buffer[step->in[1]],
              .flow = buffer[step->in[2]],
              .to = buffer[step->out[0]],
              .height = shape[1],
              .width = shape[2]};
    (void)err;
    tgi_parallel(m->pool, r.height / 2, input_row, &r);
    return TG_OK;
}

static tg_status add(void *user, const tgi_sched_step *step, void *const *buffer, tgi_err *err)
{
    const tgi_motions *m = ((const pass *)user)->m;
    const float *more = buffer[step->in[0]];
    float *flow = buffer[step->out[0]];
    const size_t n = m->schedule->buffer[step->out[0]].bytes / sizeof *flow;
    (void)err;
    for (size_t i = 0; i < n; i++)
        flow[i] += more[i];
    return TG_OK;
}

static void double_row(void *arg, int64_t y, int thread)
{
    const rows *r = arg; /* height, width: of the coarse grid */
    const int64_t h = r->height, w = r->width;
    (void)thread;
    for (int c = 0; c < 2; c++)
        for (int64_t x = 0; x < 2 * w; x++)
            r->to[(c * 2 * h + y) * 2 * w + x] =
                2 * at_place(r->from + c * h * w, h, w, ((float)x + 0.5f) / 2 - 0.5f,
                             ((float)y + 0.5f) / 2 - 0.5f);
}

static tg_status make_finer(void *user, const tgi_sched_step *step, void *const *buffer,
                            tgi_err *err)
{
    const tgi_motions *m = ((const pass *)user)->m;
    const int64_t *shape = m->schedule->buffer[step->in[0]].shape;
    rows r = {.from = buffer[step->in[0]],
              .to = buffer[step->out[0]],
              .height = shape[1],
              .width = shape[2]};
    (void)err;
    tgi_parallel(m->pool, 2 * r.height, double_row, &r);
    return TG_OK;
}

/* ---- What is hidden ----------------------------------------------------------------------- */

/* hidden[rows][columns]: a pixel of either frame that a place stands for, or one near, is hidden. */
static tg_status make_hidden(void *user, const tgi_sched_step *step, void *const *buffer,
                             tgi_err *err)
{
    const pass *p = user;
    const tgi_motions *m = p->m;
    uint8_t *to = buffer[m->hidden];
    const int64_t by = m->step, far = (SPOILT + by - 1) / by;
    (void)step;
    (void)err;
    memset(to, 0, (size_t)(m->rows * m->columns));
    for (int f = 0; f < 2; f++)
        for (int64_t y = 0; y < m->height; y++) {
            const uint8_t *row = p->frame[f]->hidden + y * m->width;
            for (const uint8_t *at = row; (at = memchr(at, 1, (size_t)(row + m->width - at)));
                 at++) {
                const int64_t i = y / by, j = (at - row) / by;
                if (to[i * m->columns + j] == 1)
                    continue;
                to[i * m->columns + j] = 1;
            }
        }
    for (int64_t i = 0; i < m->rows; i++) /* 2: near one that is */
        for (int64_t j = 0; j < m->columns; j++)
            if (to[i * m->columns + j] == 1)
                for (int64_t y = tgi_max(0, i - far); y <= tgi_min(m->rows - 1, i + far); y++)
                    for (int64_t x = tgi_max(0, j - far); x <= tgi_min(m->columns - 1, j + far);
                         x++)
                        if (!to[y * m->columns + x])
                            to[y * m->columns + x] = 2;
    return TG_OK;
}

/* F of the finest level -> the motion, in pixels of the frame, completed. number: 0 to, 1 back. */
static tg_status complete(void *user, const tgi_sched_step *step, void *const *buffer,
                          tgi_err *err)
{
    const pass *p = user;
    const tgi_motions *m = p->m;
    const float *flow = buffer[step->in[0]], by = (float)(1 << m->finest);
    const int64_t n = 2 * m->rows * m->columns;
    float *to = p->out + step->number * n;
    (void)err;
    for (int64_t i = 0; i < n; i++)
        to[i] = flow[i] * by;
    tgi_fill_motion(to, m->rows, m->columns, buffer[m->hidden], buffer[m->room]);
    return TG_OK;
}

/* ---- The schedule ------------------------------------------------------------------------- */

static void work(tgi_motions *m, const char *name, tgi_sched_work *f, int number, const int *in,
                 int n_in, int out)
{
    tgi_sched_step s = {.name = name,
                        .net = TGI_SCHED_WORK,
                        .work = f,
                        .number = number,
                        .n_in = n_in,
                        .n_out = out >= 0};
    for (int i = 0; i < n_in; i++)
        s.in[i] = in[i];
    s.out[0] = out;
    tgi_schedule_step(m->schedule, &s);
}

/* One level of one direction: F is made better, twice. */
static void add_level(tgi_motions *m, const tgi_graph *g, const tgi_kernel_set *be, int threads,
                      int back, int level, int flow)
{
    const int64_t h = (m->high >> level) / 2, w = (m->wide >> level) / 2;
    const int net = tgi_schedule_net(m->schedule, g, be, CHANNELS, h, w, threads);
    const int in = tgi_schedule_buffer(m->schedule, "pair", CHANNELS, h, w);
    const int more = tgi_schedule_buffer(m->schedule, "more", 2, h, w);
    const int pair[3] = {m->even[back][level], m->even[!back][level], flow};
    for (int k = 0; k < REPEATS; k++) {
        work(m, "input", make_input, level, pair, 3, in);
        tgi_schedule_step(
            m->schedule,
            &(tgi_sched_step){
                .name = "flow", .net = net, .in = {in}, .n_in = 1, .out = {more}, .n_out = 1});
        work(m, "add", add, level, &more, 1, flow);
    }
}

static void add_direction(tgi_motions *m, const tgi_graph *g, const tgi_kernel_set *be,
                          int threads, int back)
{
    int flow = -1;
    for (int l = m->levels; l >= m->finest; l--) {
        const int now = tgi_schedule_buffer(m->schedule, "motion", 2, (m->high >> l) / 2,
                                            (m->wide >> l) / 2);
        work(m, l == m->levels ? "begin" : "finer", l == m->levels ? begin_flow : make_finer, l,
             &flow, l == m->levels ? 0 : 1, now);
        add_level(m, g, be, threads, back, l, now);
        flow = now;
    }
    const int in[3] = {flow, m->hidden, m->room};
    work(m, "complete", complete, back, in, 3, -1);
}

static void add_pyramids(tgi_motions *m)
{
    tgi_sched_step s = {.name = "pyramids", .net = TGI_SCHED_WORK, .work = make_pyramids};
    for (int i = 0; i < 2; i++)
        for (int l = 0; l <= m->levels; l++)
            s.out[s.n_out++] = m->luma[i][l];
    tgi_schedule_step(m->schedule, &s);
}

static void add_even(tgi_motions *m)
{
    tgi_sched_step s = {.name = "even", .net = TGI_SCHED_WORK, .work = make_even};
    for (int i = 0; i < 2; i++)
        for (int l = 0; l <= m->levels; l++) {
            s.in[s.n_in++] = m->luma[i][l];
            if (l >= m->finest)
                s.out[s.n_out++] = m->even[i][l];
        }
    s.in[s.n_in++] = m->columns_room;
    tgi_schedule_step(m->schedule, &s);
}

static tg_status make_schedule(tgi_motions *m, const tgi_graph *g, const tgi_kernel_set *be,
                               int threads, const tgi_on_device *on, tgi_err *err)
{
    TGI_TRY(tgi_schedule_new(&m->schedule, err));
    if (on) {
        m->schedule->device = &on->motion;
        m->schedule->flags = on->flags;
    }
    for (int f = 0; f < 2; f++)
        for (int l = 0; l <= m->levels; l++) {
            m->luma[f][l] =
                tgi_schedule_buffer(m->schedule, "luma", 1, m->high >> l, m->wide >> l);
        }
    m->columns_room = tgi_schedule_bytes(
        m->schedule, "columns", (size_t)threads * 2 * (size_t)m->wide * sizeof(double));
    for (int f = 0; f < 2; f++)
        for (int l = m->finest; l <= m->levels; l++)
            m->even[f][l] =
                tgi_schedule_buffer(m->schedule, "even", 1, m->high >> l, m->wide >> l);
    m->hidden = tgi_schedule_bytes(m->schedule, "hidden", (size_t)(m->rows * m->columns));
    m->room =
        tgi_schedule_bytes(m->schedule, "room", tgi_fill_smooth_bytes(m->rows, m->columns));
    add_pyramids(m);
    add_even(m);
    work(m, "hidden", make_hidden, 0, NULL, 0, m->hidden);
    for (int back = 0; back < 2; back++)
        add_direction(m, g, be, threads, back);
    return tgi_schedule_plan(m->schedule, err);
}

tg_status tgi_motions_new(const tgi_graph *g, const tgi_kernel_set *be, int64_t height,
                          int64_t width, int threads, const tgi_on_device *on,
                          tgi_motions **out, tgi_err *err)
{
    tgi_motions *m = tgi_calloc(TGI_TAG_PLAN, 1, sizeof *m);
    if (!m)
        return tgi_fail(err, TG_E_NOMEM, "no memory for motions");
    m->height = height;
    m->width = width;
    m->levels = levels_of(height, width);
    m->finest = m->levels > 1;
    m->high = continued(height, m->levels);
    m->wide = continued(width, m->levels);
    m->step = 2 << m->finest;
    m->rows = m->high / m->step;
    m->columns = m->wide / m->step;
    m->bytes = (size_t)(4 * m->rows * m->columns) * sizeof(float);
    const tg_status st = make_schedule(m, g, be, threads, on, err);
    if (st != TG_OK)
        tgi_motions_free(&m);
    *out = m;
    return st;
}

void tgi_motions_free(tgi_motions **mp)
{
    if (!*mp)
        return;
    tgi_schedule_free(&(*mp)->schedule);
    tgi_free(*mp);
    *mp = NULL;
}

tg_status tgi_motions_find(tgi_motions *m, tgi_schedule_run *run, const tgi_motion_frame *a,
                           const tgi_motion_frame *b, float *out, tgi_err *err)
{
    pass p = {.m = m, .frame = {a, b}, .out = out};
    return tgi_schedule_steps(run, 0, m->schedule->n_steps, &p, err);
}

tgi_motion tgi_motion_of(const tgi_motions *m, const float *at, int back)
{
    return (tgi_motion){.at = at + back * 2 * m->rows * m->columns,
                        .height = m->rows,
                        .width = m->columns,
                        .step = m->step};
}
