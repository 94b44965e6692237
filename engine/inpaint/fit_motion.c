/* fit_motion.c - see fit_motion.h.
 *
 * Least squares, again and again, each place weighted by how far it was from what was fitted before. First so that
 * the sum of distances gets least: that has one answer wherever one begins, and a moving thing's places count no
 * more the farther off they are. Then so that places far off, by the distance that half of them keep, count for
 * nothing. */
#include "engine/inpaint/fit_motion.h"

#include "engine/base/arith.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#define RING 12      /* places from a hole that the affine motion is fitted to */
#define FEW 64       /* fewer of them: all that is known */
#define MANY 4096    /* more of them: each second, third, ... */
#define ROUNDS 12    /* for the sum of distances */
#define ROUNDS_TO 24 /* then without what is far off */
#define SURE 2e-3 /* determinant of the spread, in units of half the extent; less is a line */
#define BINS 2048 /* a distance's sign, exponent and 3 bits */

typedef struct fit {
    const float *field;
    const uint8_t *ring; /* 1: counts */
    int64_t height, width;
    double mid_x, mid_y, unit; /* u = (x - mid_x) * unit, v = (y - mid_y) * unit */
    double m[2][3];            /* of 1, u, v */
    double scale;              /* of what is left */
    int64_t n;
} fit;

/* Marks in ring[height][width] the known places within RING of a hole; returns how many. */
static int64_t mark_ring(const uint8_t *hole, int64_t height, int64_t width, uint8_t *ring,
                         int32_t *last)
{
    int64_t n = 0;
    for (int64_t x = 0; x < width; x++)
        last[x] = -2 * RING - 1; /* the last row with a hole near column x */
    for (int64_t y = -RING; y < height; y++) {
        const int64_t ahead = y + RING;
        const uint8_t *row = hole + ahead * width;
        if (ahead < height)
            for (int64_t x = 0, to = 0; x < width; x++)
                if (row[x])
                    for (to = tgi_max(to, x - RING); to < tgi_min(x + RING + 1, width); to++)
                        last[to] = (int32_t)ahead;
        for (int64_t x = 0; y >= 0 && x < width; x++) {
            const int64_t i = y * width + x;
            ring[i] = !hole[i] && last[x] >= y - RING;
            n += ring[i];
        }
    }
    return n;
}

static int64_t mark_known(const uint8_t *hole, int64_t places, uint8_t *ring)
{
    int64_t n = 0;
    for (int64_t i = 0; i < places; i++)
        n += ring[i] = !hole[i];
    return n;
}

/* Of more than MANY places each k-th stays; returns how many. */
static int64_t thin_out(uint8_t *ring, int64_t places, int64_t n)
{
    const int64_t each = tgi_ceil_div(n, MANY);
    int64_t seen = 0, left = 0;
    for (int64_t i = 0; i < places; i++)
        if (ring[i])
            left += ring[i] = seen++ % each == 0;
    return left;
}

static void set_unit(fit *f, const uint8_t *hole)
{
    int64_t top = f->height, bottom = 0, left = f->width, right = 0;
    for (int64_t y = 0; y < f->height; y++)
        for (int64_t x = 0; x < f->width; x++)
            if (f->ring[y * f->width + x] || hole[y * f->width + x]) {
                top = tgi_min(top, y);
                bottom = y;
                left = tgi_min(left, x);
                right = tgi_max(right, x);
            }
    f->mid_x = 0.5 * (double)(left + right);
    f->mid_y = 0.5 * (double)(top + bottom);
    f->unit = 2.0 / (double)tgi_max(tgi_max(right - left, bottom - top), 1);
}

/* How far the motion of place (y, x) is from what is fitted. */
static double left_over(const fit *f, int64_t y, int64_t x)
{
    const int64_t i = y * f->width + x;
    const double u = ((double)x - f->mid_x) * f->unit, v = ((double)y - f->mid_y) * f->unit;
    double r[2];
    for (int c = 0; c < 2; c++)
        r[c] = (double)f->field[c * f->height * f->width + i] - f->m[c][0] - f->m[c][1] * u -
               f->m[c][2] * v;
    return sqrt(r[0] * r[0] + r[1] * r[1]);
}

/* The middle one of what is left, to an eighth. */
static double middle(const fit *f)
{
    uint32_t bin[BINS] = {0};
    for (int64_t y = 0; y < f->height; y++)
        for (int64_t x = 0; x < f->width; x++) {
            if (!f->ring[y * f->width + x])
                continue;
            const float r = (float)left_over(f, y, x);
            uint32_t bits;
            memcpy(&bits, &r, sizeof bits);
            bin[bits >> 20 & (BINS - 1)]++;
        }
    int64_t below = 0;
    for (uint32_t b = 0; b < BINS; b++) {
        below += bin[b];
        if (2 * below >= f->n) {
            const uint32_t bits = b << 20 | 1u << 19;
            float r;
            memcpy(&r, &bits, sizeof r);
            return (double)r;
        }
    }
    return 0;
}

/* Weighted sums of 1, u, v, uu, uv, vv, and of 1, u, v times dx and dy. */
typedef struct sums {
    double w, u, v, uu, uv, vv, at[2], at_u[2], at_v[2];
} sums;

static double weight(const fit *f, int round, double r)
{
    if (round == 0)
        return 1;
    if (round < ROUNDS)
        return f->scale / (r + 0.1 * f->scale);
    const double far = r / (3 * f->scale);
    return 1 / ((1 + far * far) * (1 + far * far));
}

static sums sum_up(const fit *f, int round)
{
    sums s = {0};
    for (int64_t y = 0; y < f->height; y++)
        for (int64_t x = 0; x < f->width; x++) {
            const int64_t i = y * f->width + x;
            if (!f->ring[i])
                continue;
            const double u = ((double)x - f->mid_x) * f->unit;
            const double v = ((double)y - f->mid_y) * f->unit;
            const double w = weight(f, round, left_over(f, y, x));
            s.w += w;
            s.u += w * u;
            s.v += w * v;
            s.uu += w * u * u;
            s.uv += w * u * v;
            s.vv += w * v * v;
            for (int c = 0; c < 2; c++) {
                const double d = w * (double)f->field[c * f->height * f->width + i];
                s.at[c] += d;
                s.at_u[c] += d * u;
                s.at_v[c] += d * v;
            }
        }
    return s;
}

/* The affine motion of the least weighted sum of squares; the mean where the places do not span a plane. */
static void solve(fit *f, const sums *s)
{
    const double u = s->u / s->w, v = s->v / s->w;
    const double uu = s->uu / s->w - u * u, uv = s->uv / s->w - u * v,
                 vv = s->vv / s->w - v * v;
    const double det = uu * vv - uv * uv;
    for (int c = 0; c < 2; c++) {
        const double d = s->at[c] / s->w;
        const double du = s->at_u[c] / s->w - d * u, dv = s->at_v[c] / s->w - d * v;
        f->m[c][1] = det > SURE ? (du * vv - dv * uv) / det : 0;
        f->m[c][2] = det > SURE ? (dv * uu - du * uv) / det : 0;
        f->m[c][0] = d - f->m[c][1] * u - f->m[c][2] * v;
    }
}

size_t tgi_fit_motion_bytes(int64_t height, int64_t width)
{
    const size_t last = tgi_sat_mul((size_t)width, sizeof(int32_t));
    return tgi_sat_add(tgi_align_size(last, 64), tgi_sat_mul((size_t)height, (size_t)width));
}

tgi_affine tgi_fit_motion(const float *field, int64_t height, int64_t width,
                          const uint8_t *hole, void *room)
{
    tgi_affine a = {0};
    int32_t *last = room;
    uint8_t *ring = (uint8_t *)room + tgi_align_size((size_t)width * sizeof *last, 64);
    fit f = {.field = field, .ring = ring, .height = height, .width = width};
    f.n = mark_ring(hole, height, width, ring, last);
    if (f.n < FEW)
        f.n = mark_known(hole, height * width, ring);
    if (f.n == 0)
        return a;
    f.n = thin_out(ring, height * width, f.n);
    set_unit(&f, hole);
    for (int round = 0; round < ROUNDS_TO; round++) {
        f.scale = fmax(1.5 * middle(&f), 0.02);
        const sums s = sum_up(&f, round);
        solve(&f, &s);
    }
    for (int c = 0; c < 2; c++) {
        a.along_x[c] = f.m[c][1] * f.unit;
        a.along_y[c] = f.m[c][2] * f.unit;
        a.at[c] = f.m[c][0] - a.along_x[c] * f.mid_x - a.along_y[c] * f.mid_y;
    }
    return a;
}
