/* follow.c - see follow.h. */
#include "engine/inpaint/follow.h"

#include "engine/base/arith.h"

#include <string.h>

#define TOGETHER 256 /* pixels of a row that are followed at once */
#define TAPS 4

/* A vector in pixels. */
typedef struct way {
    float x, y;
} way;

/* ---- Motions ----------------------------------------------------------------------------- */

/* The two places around pixel `at` along one axis of `n` places: the first one, what lies between them, and
 * the share of the second. */
typedef struct between {
    int64_t first, next;
    float share;
} between;

static inline between places(float at, float per_pixel, int64_t n)
{
    float u = (at + 0.5f) * per_pixel - 0.5f;
    const float end = (float)(n - 1);
    u = u > 0 ? u : 0;
    u = u < end ? u : end;
    const int64_t first = tgi_min((int64_t)u, tgi_max(n - 2, 0));
    return (between){first, n > 1, u - (float)first};
}

static inline float linear(const float *p, int64_t right, int64_t below, float x, float y)
{
    const float up = p[0] + x * (p[right] - p[0]);
    const float down = p[below] + x * (p[below + right] - p[below]);
    return up + y * (down - up);
}

static inline way motion_at(const tgi_motion *m, float per_pixel, way at)
{
    const between x = places(at.x, per_pixel, m->width), y = places(at.y, per_pixel, m->height);
    const int64_t i = y.first * m->width + x.first, below = y.next * m->width;
    const float *dx = m->at + i, *dy = dx + m->height * m->width;
    return (way){linear(dx, x.next, below, x.share, y.share),
                 linear(dy, x.next, below, x.share, y.share)};
}

bool tgi_motion_agrees(float fx, float fy, float bx, float by)
{
    const float x = fx + bx, y = fy + by;
    return x * x + y * y < 0.01f * (fx * fx + fy * fy + (bx * bx + by * by)) + 0.5f;
}

/* ---- Following --------------------------------------------------------------------------- */

/* Pixels of a row that are looked for, and where they have come to. */
typedef struct party {
    int64_t n;
    int64_t pixel[TOGETHER]; /* of the frame */
    way at[TOGETHER];
} party;

static inline unsigned bit(const uint8_t *row, int64_t x)
{
    return row[x / 8] >> (x % 8);
}

/* Are all pixels around that place seen? */
static inline bool seen(const uint8_t *hidden, int64_t width, way at)
{
    const int64_t pitch = (width + 7) / 8, x = (int64_t)at.x, y = (int64_t)at.y;
    const int64_t right = x + (at.x > (float)x);
    const uint8_t *row = hidden + y * pitch, *below = row + (at.y > (float)y ? pitch : 0);
    return !((bit(row, x) | bit(row, right) | bit(below, x) | bit(below, right)) & 1);
}

/* The party goes one frame on: who arrives, or is lost, leaves it. */
static void go_on(party *p, int64_t height, int64_t width, const tgi_trace_link *l, int n,
                  const tgi_trace *out)
{
    const float to = 1.0f / (float)l->to.step, back = 1.0f / (float)l->back.step;
    const float right = (float)(width - 1), bottom = (float)(height - 1);
    int64_t still = 0;
    for (int64_t k = 0; k < p->n; k++) {
        const way f = motion_at(&l->to, to, p->at[k]);
        const way at = {p->at[k].x + f.x, p->at[k].y + f.y};
        if (!(at.x >= 0 && at.x <= right && at.y >= 0 && at.y <= bottom))
            continue;
        const way b = motion_at(&l->back, back, at);
        if (!tgi_motion_agrees(f.x, f.y, b.x, b.y))
            continue;
        const int64_t i = p->pixel[k];
        if (seen(l->hidden, width, at)) {
            out->frames[i] = (uint8_t)n;
            out->x[i] = at.x;
            out->y[i] = at.y;
        } else {
            p->pixel[still] = i;
            p->at[still++] = at;
        }
    }
    p->n = still;
}

static void follow(party *p, int64_t height, int64_t width, const tgi_trace_link *link,
                   int reach, const tgi_trace *out)
{
    for (int n = 1; n <= reach && p->n > 0 && link[n].hidden; n++)
        go_on(p, height, width, &link[n], n, out);
    p->n = 0;
}

/* The next x in [x, end) that is set in a row of bytes, or `end`. */
static int64_t next_set(const uint8_t *row, int64_t x, int64_t end)
{
    uint64_t eight = 0;
    for (; x + 8 <= end; x += 8) {
        memcpy(&eight, row + x, 8);
        if (eight)
            break;
    }
    while (x < end && !row[x])
        x++;
    return x;
}

void tgi_trace_follow(int64_t height, int64_t width, int64_t y0, int64_t y1,
                      const uint8_t *mask, const tgi_trace_link *link, int reach,
                      const tgi_trace *out)
{
    party p;
    for (int64_t y = y0; y < y1; y++) {
        const int64_t from = y * width;
        p.n = 0;
        memset(out->frames + from, 0, (size_t)width);
        for (int64_t x = 0; (x = next_set(mask + from, x, width)) < width; x++) {
            out->frames[from + x] = TGI_TRACE_NONE;
            p.pixel[p.n] = from + x;
            p.at[p.n++] = (way){(float)x, (float)y};
            if (p.n == TOGETHER)
                follow(&p, height, width, link, reach, out);
        }
        follow(&p, height, width, link, reach, out);
    }
}

/* ---- Colours ----------------------------------------------------------------------------- */

/* Where a colour is taken: the indices of 4 x 4 pixels, those beyond the picture being its last ones, and the
 * fractions from the second to the third. */
typedef struct patch {
    int64_t x[TAPS], y[TAPS];
    float share_x, share_y;
    int n; /* taps along an axis that count: 4, or 2, the middle ones */
    float weight[TAPS][TAPS];
} patch;

static void four(float at, int64_t n, int64_t *i, float *share)
{
    const int64_t first = (int64_t)at;
    *share = at - (float)first;
    for (int k = 0; k < TAPS; k++)
        i[k] = tgi_clamp(first + k - 1, 0, n - 1);
}

static void catmull_rom(float t, float w[TAPS])
{
    w[0] = 0.5f * t * (t * (2 - t) - 1);
    w[1] = 0.5f * (t * t * (3 * t - 5) + 2);
    w[2] = 0.5f * t * (t * (4 - 3 * t) + 1);
    w[3] = 0.5f * t * t * (t - 1);
}

/* Bit 4 * i + j: pixel (y[i], x[j]) is hidden. */
static unsigned hidden_in(const patch *p, const uint8_t *hidden, int64_t width)
{
    const int64_t pitch = (width + 7) / 8;
    unsigned all = 0;
    for (int i = 0; i < TAPS; i++)
        for (int j = 0; j < TAPS; j++)
            all |= (bit(hidden + p->y[i] * pitch, p->x[j]) & 1) << (TAPS * i + j);
    return all;
}

static void weigh_cubic(patch *p)
{
    float x[TAPS], y[TAPS];
    catmull_rom(p->share_x, x);
    catmull_rom(p->share_y, y);
    p->n = TAPS;
    for (int i = 0; i < TAPS; i++)
        for (int j = 0; j < TAPS; j++)
            p->weight[i][j] = y[i] * x[j];
}

/* The middle four, less what is hidden; all of them where they are all hidden, which no trace leads to. */
static void weigh_linear(patch *p, unsigned hidden)
{
    const float x[2] = {1 - p->share_x, p->share_x}, y[2] = {1 - p->share_y, p->share_y};
    float sum = 0;
    p->n = 2;
    for (int all = 0; all < 2 && !(sum > 0); all++)
        for (int i = 0; i < 2; i++)
            for (int j = 0; j < 2; j++) {
                const bool counts = all || !(hidden >> (TAPS * (i + 1) + j + 1) & 1);
                p->weight[i + 1][j + 1] = counts ? y[i] * x[j] : 0;
                sum += p->weight[i + 1][j + 1];
            }
    for (int i = 1; i < 3; i++)
        for (int j = 1; j < 3; j++)
            p->weight[i][j] /= sum;
}

static inline float sample(const void *pixels, tg_dtype dtype, int64_t i)
{
    return dtype == TG_DTYPE_U8 ? ((const uint8_t *)pixels)[i] : ((const uint16_t *)pixels)[i];
}

static void mix(const patch *p, int64_t width, int samples, tg_dtype dtype, const void *pixels,
                void *out, int64_t to)
{
    const int first = (TAPS - p->n) / 2, end = first + p->n;
    const float top = dtype == TG_DTYPE_U8 ? UINT8_MAX : UINT16_MAX;
    for (int c = 0; c < samples; c++) {
        float sum = 0.5f;
        for (int i = first; i < end; i++)
            for (int j = first; j < end; j++)
                sum += p->weight[i][j] *
                       sample(pixels, dtype, (p->y[i] * width + p->x[j]) * samples + c);
        sum = sum > 0 ? sum : 0;
        sum = sum < top ? sum : top;
        if (dtype == TG_DTYPE_U8)
            ((uint8_t *)out)[to + c] = (uint8_t)sum;
        else
            ((uint16_t *)out)[to + c] = (uint16_t)sum;
    }
}

void tgi_trace_take(int64_t height, int64_t width, int64_t y0, int64_t y1, int samples,
                    tg_dtype dtype, const tgi_trace *trace, const tgi_trace_frame *from,
                    int reach, void *out)
{
    for (int64_t y = y0; y < y1; y++) {
        const uint8_t *frames = trace->frames + y * width;
        for (int64_t x = 0; (x = next_set(frames, x, width)) < width; x++) {
            const int64_t i = y * width + x;
            if (frames[x] > reach || !from[frames[x]].pixels)
                continue;
            const tgi_trace_frame *f = &from[frames[x]];
            patch p;
            four(trace->x[i], width, p.x, &p.share_x);
            four(trace->y[i], height, p.y, &p.share_y);
            const unsigned hidden = hidden_in(&p, f->hidden, width);
            if (hidden)
                weigh_linear(&p, hidden);
            else
                weigh_cubic(&p);
            mix(&p, width, samples, dtype, f->pixels, out, i * samples);
        }
    }
}
