/* fill_smooth.c - see fill_smooth.h.
 *
 * Laplace's equation is where the sum of the squared differences between neighbours is least, and each step here
 * makes that sum less, whatever the shape of the holes: numbers are set one by one to what is best beside their
 * neighbours (Gauss and Seidel), and so are the heights of tents over 3 x 3, 7 x 7, 15 x 15, ... places, which move
 * many numbers at once. Tents do not reach over what is known. The tents of a level are made of those of the level
 * before, at every other place of it with the shares 1/4 1/2 1/4, 1/2 1 1/2, 1/4 1/2 1/4 (multigrid, with the
 * coarse equations of Galerkin); so the sum in terms of their heights has a matrix of 3 x 3 neighbours again.
 *
 *   level 0      the field itself; its ties are 0 or 1 and stand nowhere
 *   level 1..    of each tent its height, what is asked of it, its ties to the next tents (right, lower left, below,
 *                lower right) and 1 / its own square's share (0: over no hole); a column beside and a row above and
 *                below are zeros
 *
 * A cycle goes down to the level of one tent and up again, with SWEEPS at each level on each way. CYCLES of them
 * leave less than a thousandth of the range, in most holes a 50,000th (tests/unit/test_inpaint.c). Only the box
 * around all holes is looked at, and in it only the columns of a row from its first to its last hole.
 *
 * A field of motion less an affine one has no slope where the field ends, so the field itself has the slope of the
 * affine one there: that is all that tells the two apart, and nothing is taken off. */
#include "engine/inpaint/fill_smooth.h"

#include "engine/base/arith.h"
#include "engine/inpaint/fit_motion.h"

#include <math.h>
#include <string.h>

#define CYCLES 8
#define SWEEPS 2  /* at each level, on the way down and again on the way up */
#define TIES 4    /* of a tent that are kept with it */
#define LEVELS 32 /* more than halvings of an int32 */

/* A level; number y * pitch + x of its arrays, from -pitch - 1 on. */
typedef struct level {
    int64_t height, width, pitch;
    int32_t *first, *end; /* [height]: the columns of a row that are looked at */
    float *at, *wanted, *over, *tie[TIES];
} level;

typedef struct extent {
    int64_t y0, y1, x0, x1;
} extent;

typedef struct grid {
    float *x; /* the box of the field around all holes */
    const uint8_t *hole;
    int64_t pitch;
    int64_t top, left;      /* in the field, which ends where a hole meets the box's end */
    float slope_x, slope_y; /* of what the field is near */
    int levels;
    level l[LEVELS]; /* l[0] has no arrays of numbers */
} grid;

/* ---- Room -------------------------------------------------------------------------------- */

/* Bytes handed out one after the other, each part on a line of its own; base NULL: only counted. */
typedef struct parts {
    unsigned char *base;
    size_t used;
} parts;

static void *take(parts *r, size_t n, size_t each)
{
    void *p = r->base ? r->base + r->used : NULL;
    r->used = tgi_sat_add(r->used, tgi_align_size(tgi_sat_mul(n, each), 64));
    return p;
}

static void lay_level(level *l, bool finest, parts *r)
{
    l->pitch = l->width + 1;
    l->first = take(r, (size_t)l->height, sizeof *l->first);
    l->end = take(r, (size_t)l->height, sizeof *l->end);
    if (finest)
        return;
    float **const part[] = {&l->at,     &l->wanted, &l->over,  &l->tie[0],
                            &l->tie[1], &l->tie[2], &l->tie[3]};
    const size_t n = tgi_sat_mul((size_t)l->height + 2, (size_t)l->pitch) + 1;
    for (int i = 0; i < 3 + TIES; i++) {
        float *p = take(r, n, sizeof *p);
        if (!p)
            continue;
        memset(p, 0, n * sizeof *p);
        *part[i] = p + l->pitch + 1;
    }
}

/* All levels for a box of that size. */
static void lay(grid *g, int64_t height, int64_t width, parts *r)
{
    g->levels = 0;
    do {
        level *l = &g->l[g->levels];
        *l = (level){.height = height, .width = width};
        lay_level(l, g->levels++ == 0, r);
        height = (height + 1) / 2;
        width = (width + 1) / 2;
    } while (g->l[g->levels - 1].height > 1 || g->l[g->levels - 1].width > 1);
}

size_t tgi_fill_smooth_bytes(int64_t height, int64_t width)
{
    grid g;
    parts of_levels = {0};
    if (height < 1 || width < 1)
        return 0;
    lay(&g, height, width, &of_levels);
    const size_t of_fit = tgi_fit_motion_bytes(height, width);
    return of_levels.used > of_fit ? of_levels.used : of_fit;
}

/* ---- The box ----------------------------------------------------------------------------- */

static bool none_in(const uint8_t *p, int64_t n)
{
    return n == 0 || (p[0] == 0 && memcmp(p, p + 1, (size_t)n - 1) == 0);
}

/* First and end column of a row's holes; false: it has none. */
static bool span(const uint8_t *row, int64_t width, int64_t *first, int64_t *end)
{
    if (none_in(row, width))
        return false;
    for (*first = 0; !row[*first];)
        ++*first;
    for (*end = width; !row[*end - 1];)
        --*end;
    return true;
}

/* The smallest box with all holes and a known place around where there is one; false: no hole. */
static bool find_box(const uint8_t *hole, int64_t height, int64_t width, extent *box)
{
    *box = (extent){.y0 = height, .x0 = width};
    for (int64_t y = 0, first, end; y < height; y++) {
        if (!span(hole + y * width, width, &first, &end))
            continue;
        box->y0 = tgi_min(box->y0, y);
        box->y1 = y + 1;
        box->x0 = tgi_min(box->x0, first);
        box->x1 = tgi_max(box->x1, end);
    }
    if (box->y1 == 0)
        return false;
    box->y0 = tgi_max(box->y0 - 1, 0);
    box->x0 = tgi_max(box->x0 - 1, 0);
    box->y1 = tgi_min(box->y1 + 1, height);
    box->x1 = tgi_min(box->x1 + 1, width);
    return true;
}

/* ---- Ties -------------------------------------------------------------------------------- */

/* The next places whose ties are kept at a place; those to the others are kept there. */
static const int NEXT_Y[TIES] = {0, 1, 1, 1}, NEXT_X[TIES] = {1, -1, 0, 1};

/* A place's share in tents, at most four of them. */
typedef struct shares {
    int n;
    int64_t y[4], x[4];
    float of[4];
} shares;

static shares shares_at(const level *c, int64_t y, int64_t x)
{
    shares s = {0};
    /* odd: between two tents, or all of the last one */
    const int64_t y1 = tgi_min((y + 1) / 2, c->height - 1),
                  x1 = tgi_min((x + 1) / 2, c->width - 1);
    const float of_y = y1 > y / 2 ? 0.5f : 1, of_x = x1 > x / 2 ? 0.5f : 1;
    for (int64_t i = y / 2; i <= y1; i++)
        for (int64_t j = x / 2; j <= x1; j++) {
            s.y[s.n] = i;
            s.x[s.n] = j;
            s.of[s.n++] = of_y * of_x;
        }
    return s;
}

/* The share of the square of place (y, x) in the sum, and its ties to the next ones; false: it is not solved. */
static bool ties_of(const grid *g, int n, int64_t y, int64_t x, float *square, float tie[TIES])
{
    const level *f = &g->l[n];
    if (n > 0) {
        const int64_t i = y * f->pitch + x;
        for (int k = 0; k < TIES; k++)
            tie[k] = f->tie[k][i];
        *square = f->over[i];
        return *square > 0;
    }
    const uint8_t *h = g->hole + y * g->pitch + x;
    if (!*h)
        return false;
    *square = (float)((y > 0) + (y + 1 < f->height) + (x > 0) + (x + 1 < f->width));
    memset(tie, 0, TIES * sizeof *tie);
    tie[0] = x + 1 < f->width && h[1];
    tie[2] = y + 1 < f->height && h[g->pitch];
    return true;
}

/* Adds to the tie between tent (y, x) and one beside it. */
static void add_tie(const level *c, int64_t y, int64_t x, int64_t to_y, int64_t to_x, float v)
{
    const bool first = to_y > y || (to_y == y && to_x > x);
    const int64_t dy = first ? to_y - y : y - to_y, dx = first ? to_x - x : x - to_x;
    const int64_t i = first ? y * c->pitch + x : to_y * c->pitch + to_x;
    c->tie[dy == 0 ? 0 : dx + 2][i] += v;
}

/* The square of one number, `v` times, in terms of heights. */
static void add_square(const level *c, const shares *s, float v)
{
    for (int i = 0; i < s->n; i++) {
        c->over[s->y[i] * c->pitch + s->x[i]] += v * s->of[i] * s->of[i];
        for (int j = i + 1; j < s->n; j++)
            add_tie(c, s->y[i], s->x[i], s->y[j], s->x[j], -v * s->of[i] * s->of[j]);
    }
}

/* Twice the product of two numbers. */
static void add_product(const level *c, const shares *s, const shares *t, float v)
{
    for (int i = 0; i < s->n; i++)
        for (int j = 0; j < t->n; j++) {
            const float part = v * s->of[i] * t->of[j];
            if (s->y[i] == t->y[j] && s->x[i] == t->x[j])
                c->over[s->y[i] * c->pitch + s->x[i]] -= 2 * part;
            else
                add_tie(c, s->y[i], s->x[i], t->y[j], t->x[j], part);
        }
}

/* The ties of level n + 1 from those of level n; `over` holds the squares' shares for now. */
static void tie_next(const grid *g, int n)
{
    const level *f = &g->l[n], *c = &g->l[n + 1];
    for (int64_t y = 0; y < f->height; y++)
        for (int64_t x = f->first[y]; x < f->end[y]; x++) {
            float square, tie[TIES];
            if (!ties_of(g, n, y, x, &square, tie))
                continue;
            const shares s = shares_at(c, y, x);
            add_square(c, &s, square);
            for (int k = 0; k < TIES; k++)
                if (tie[k] < 0 || tie[k] > 0) {
                    const shares t = shares_at(c, y + NEXT_Y[k], x + NEXT_X[k]);
                    add_product(c, &s, &t, tie[k]);
                }
        }
}

static void turn_over(const level *l)
{
    for (int64_t y = 0; y < l->height; y++)
        for (int64_t x = l->first[y]; x < l->end[y]; x++) {
            float *over = l->over + y * l->pitch + x;
            *over = *over > 0 ? 1 / *over : 0;
        }
}

/* The columns of tents over a row's holes, of three rows each. */
static void widen_spans(const level *f, const level *c)
{
    for (int64_t y = 0; y < c->height; y++) {
        c->first[y] = (int32_t)c->width;
        c->end[y] = 0;
        for (int64_t k = tgi_max(2 * y - 1, 0); k < tgi_min(2 * y + 2, f->height); k++) {
            if (f->first[k] >= f->end[k])
                continue;
            c->first[y] = (int32_t)tgi_min(c->first[y], f->first[k] / 2);
            c->end[y] = (int32_t)tgi_max(c->end[y], tgi_min(f->end[k] / 2 + 1, c->width));
        }
    }
}

static void build(grid *g)
{
    const level *f = &g->l[0];
    for (int64_t y = 0; y < f->height; y++) {
        int64_t first = f->width, end = 0; /* nothing, and nothing to the next level */
        if (!span(g->hole + y * g->pitch, f->width, &first, &end))
            first = f->width, end = 0;
        f->first[y] = (int32_t)first;
        f->end[y] = (int32_t)end;
    }
    for (int n = 1; n < g->levels; n++) {
        widen_spans(&g->l[n - 1], &g->l[n]);
        tie_next(g, n - 1);
    }
    for (int n = 1; n < g->levels; n++)
        turn_over(&g->l[n]);
}

/* The box of the field, with its levels in `r`; false: there is nothing to fill. */
static bool open_grid(grid *g, float *field, int64_t height, int64_t width, const uint8_t *hole,
                      void *where)
{
    extent box;
    parts r = {where, 0};
    if (!find_box(hole, height, width, &box))
        return false;
    const int64_t from = box.y0 * width + box.x0;
    *g = (grid){
        .x = field + from, .hole = hole + from, .pitch = width, .top = box.y0, .left = box.x0};
    lay(g, box.y1 - box.y0, box.x1 - box.x0, &r);
    build(g);
    return true;
}

/* ---- Cycles ------------------------------------------------------------------------------ */

static const float PART[] = {0, 1, 0.5f, 1.0f / 3, 0.25f};

/* A row of the field. */
typedef struct line {
    float *at, *up, *down; /* NULL: the field ends */
    const uint8_t *hole;
    int64_t width;
    float slope_x, beyond; /* what the ends above and below give */
} line;

static line line_of(const grid *g, int64_t y)
{
    const level *f = &g->l[0];
    float *at = g->x + y * g->pitch;
    line l = {.at = at, .hole = g->hole + y * g->pitch, .width = f->width};
    l.slope_x = g->slope_x;
    l.up = y > 0 ? at - g->pitch : NULL;
    l.down = y + 1 < f->height ? at + g->pitch : NULL;
    l.beyond = (l.up ? 0 : -g->slope_y) + (l.down ? 0 : g->slope_y);
    return l;
}

/* What pulls at place x: the sum of the differences to its neighbours; *n of them. */
static inline float pull(const line *l, int64_t x, int *n)
{
    const float at = l->at[x];
    float sum = l->beyond;
    int count = 0;
    if (l->up) {
        sum += l->up[x] - at;
        count++;
    }
    if (l->down) {
        sum += l->down[x] - at;
        count++;
    }
    if (x > 0) {
        sum += l->at[x - 1] - at;
        count++;
    } else {
        sum -= l->slope_x;
    }
    if (x + 1 < l->width) {
        sum += l->at[x + 1] - at;
        count++;
    } else {
        sum += l->slope_x;
    }
    *n = count;
    return sum;
}

/* First column of that colour from `first` on: colours lie as on a chess board. */
static int64_t coloured(int64_t first, int64_t y, int colour)
{
    return first + ((first + y + colour) & 1);
}

static void sweep_field(const grid *g, int colour)
{
    const level *f = &g->l[0];
    for (int64_t y = 0; y < f->height; y++) {
        const line l = line_of(g, y);
        for (int64_t x = coloured(f->first[y], y, colour); x < f->end[y]; x += 2) {
            int n;
            if (!l.hole[x])
                continue;
            const float p = pull(&l, x, &n);
            l.at[x] += p * PART[n];
        }
    }
}

/* What the tents beside tent i ask of it. */
static inline float tied(const level *l, int64_t i)
{
    const float *at = l->at + i, *left = at - l->pitch, *right = at + l->pitch;
    const int64_t p = l->pitch;
    const float row = l->tie[0][i] * at[1] + l->tie[0][i - 1] * at[-1];
    const float below =
        l->tie[1][i] * right[-1] + l->tie[2][i] * right[0] + l->tie[3][i] * right[1];
    const float above = l->tie[1][i - p + 1] * left[1] + l->tie[2][i - p] * left[0] +
                        l->tie[3][i - p - 1] * left[-1];
    return (above + below) + row;
}

/* Each tent's height in turn, or from the last to the first. */
static void sweep_level(const level *l, bool backwards)
{
    for (int64_t k = 0; k < l->height; k++) {
        const int64_t y = backwards ? l->height - 1 - k : k, n = l->end[y] - l->first[y];
        for (int64_t j = 0; j < n; j++) {
            const int64_t i = y * l->pitch + (backwards ? l->end[y] - 1 - j : l->first[y] + j);
            l->at[i] = (l->wanted[i] + tied(l, i)) * l->over[i];
        }
    }
}

static void sweeps(const grid *g, int n, bool up)
{
    for (int i = 0; i < SWEEPS; i++)
        if (n == 0) {
            sweep_field(g, 0);
            sweep_field(g, 1);
        } else {
            sweep_level(&g->l[n], up);
        }
}

static void clear(const level *l)
{
    for (int64_t y = 0; y < l->height; y++) {
        const int64_t n = tgi_max(l->end[y] - l->first[y], 0), i = y * l->pitch + l->first[y];
        memset(l->at + i, 0, (size_t)n * sizeof *l->at);
        memset(l->wanted + i, 0, (size_t)n * sizeof *l->wanted);
    }
}

/* A row or column of a level as two of the next one, of which each has half. */
typedef struct pair {
    int64_t a, b;
} pair;

static inline pair pair_at(int64_t i, int64_t n)
{
    return (pair){i / 2, tgi_min((i + 1) / 2, n - 1)};
}

/* What still pulls at the places of a row, as it is asked of the tents over it. In the field that is colour 0 alone,
 * since the sweep over the other one was the last. */
static void hand_down_row(const grid *g, int n, int64_t y)
{
    const level *f = &g->l[n], *c = &g->l[n + 1];
    const pair r = pair_at(y, c->height);
    const line l = n == 0 ? line_of(g, y) : (line){0};
    float *a = c->wanted + r.a * c->pitch, *b = c->wanted + r.b * c->pitch;
    const int64_t from = n == 0 ? coloured(f->first[y], y, 0) : f->first[y];
    for (int64_t x = from; x < f->end[y]; x += n == 0 ? 2 : 1) {
        const int64_t i = y * f->pitch + x;
        const pair k = pair_at(x, c->width);
        float p;
        int ties;
        if (n == 0 ? !l.hole[x] : !(f->over[i] > 0))
            continue;
        p = n == 0 ? pull(&l, x, &ties) : f->wanted[i] + tied(f, i) - f->at[i] / f->over[i];
        p *= 0.25f;
        a[k.a] += p;
        a[k.b] += p;
        b[k.a] += p;
        b[k.b] += p;
    }
}

static void hand_down(const grid *g, int n)
{
    clear(&g->l[n + 1]);
    for (int64_t y = 0; y < g->l[n].height; y++)
        hand_down_row(g, n, y);
}

/* The tents' heights are added to what lies under them. */
static void hand_up(const grid *g, int n)
{
    const level *f = &g->l[n], *c = &g->l[n + 1];
    for (int64_t y = 0; y < f->height; y++) {
        const pair r = pair_at(y, c->height);
        const float *a = c->at + r.a * c->pitch, *b = c->at + r.b * c->pitch;
        const uint8_t *hole = g->hole + y * g->pitch;
        float *at = n == 0 ? g->x + y * g->pitch : f->at + y * f->pitch;
        const float *over = n == 0 ? NULL : f->over + y * f->pitch;
        for (int64_t x = f->first[y]; x < f->end[y]; x++) {
            const pair k = pair_at(x, c->width);
            if (over ? over[x] > 0 : hole[x])
                at[x] += 0.25f * ((a[k.a] + a[k.b]) + (b[k.a] + b[k.b]));
        }
    }
}

static void cycle(const grid *g)
{
    int n = 0;
    for (; n + 1 < g->levels; n++) {
        sweeps(g, n, false);
        hand_down(g, n);
    }
    sweeps(g, n, false);
    while (n-- > 0) {
        hand_up(g, n);
        sweeps(g, n, true);
    }
}

/* ---- One channel ------------------------------------------------------------------------- */

/* What is known beside holes, less what it is near. */
typedef struct rim {
    double sum, low, high;
    int64_t n;
} rim;

static double near_at(const grid *g, const tgi_affine *a, int c, int64_t y, int64_t x)
{
    return a->at[c] + a->along_x[c] * (double)(x + g->left) +
           a->along_y[c] * (double)(y + g->top);
}

static bool beside_hole(const uint8_t *h, int64_t pitch, const level *f, int64_t y, int64_t x)
{
    return (y > 0 && h[x - pitch]) || (y + 1 < f->height && h[x + pitch]) ||
           (x > 0 && h[x - 1]) || (x + 1 < f->width && h[x + 1]);
}

static rim look_at_rim(const grid *g, const tgi_affine *a, int c)
{
    const level *f = &g->l[0];
    rim r = {0, INFINITY, -INFINITY, 0};
    for (int64_t y = 0; y < f->height; y++) {
        const uint8_t *h = g->hole + y * g->pitch;
        for (int64_t x = 0; x < f->width; x++) {
            if (h[x] || !beside_hole(h, g->pitch, f, y, x))
                continue;
            const double v = (double)g->x[y * g->pitch + x] - near_at(g, a, c, y, x);
            r.sum += v;
            r.n++;
            r.low = v < r.low ? v : r.low;
            r.high = v > r.high ? v : r.high;
        }
    }
    return r;
}

/* Holes begin as what the field is near and the mean of its rim; or, at the end, keep within the rim's range, as
 * the smooth does that has no hill or hollow. */
static void set_holes(const grid *g, const tgi_affine *a, int c, const rim *r, bool begin)
{
    const level *f = &g->l[0];
    const double mean = r->n ? r->sum / (double)r->n : 0;
    for (int64_t y = 0; y < f->height; y++) {
        float *at = g->x + y * g->pitch;
        for (int64_t x = f->first[y]; x < f->end[y]; x++) {
            if (!g->hole[y * g->pitch + x])
                continue;
            const double near = near_at(g, a, c, y, x), v = (double)at[x] - near;
            if (begin)
                at[x] = (float)(near + mean);
            else if (v < r->low || v > r->high)
                at[x] = (float)(near + (v < r->low ? r->low : r->high));
        }
    }
}

static void fill_channel(grid *g, const tgi_affine *a, int c)
{
    const rim r = look_at_rim(g, a, c);
    g->slope_x = (float)a->along_x[c];
    g->slope_y = (float)a->along_y[c];
    set_holes(g, a, c, &r, true);
    if (r.n == 0)
        return;
    for (int i = 0; i < CYCLES; i++)
        cycle(g);
    set_holes(g, a, c, &r, false);
}

void tgi_fill_smooth(float *field, int channels, int64_t height, int64_t width,
                     const uint8_t *hole, void *room)
{
    const tgi_affine flat = {0};
    grid g;
    if (height < 1 || width < 1 || !open_grid(&g, field, height, width, hole, room))
        return;
    float *first = g.x;
    for (int c = 0; c < channels; c++) {
        g.x = first + c * height * width;
        fill_channel(&g, &flat, 0);
    }
}

void tgi_fill_motion(float *field, int64_t height, int64_t width, const uint8_t *hole,
                     void *room)
{
    grid g;
    if (height < 1 || width < 1 || none_in(hole, height * width))
        return;
    const tgi_affine a = tgi_fit_motion(field, height, width, hole, room);
    if (!open_grid(&g, field, height, width, hole, room))
        return;
    float *first = g.x;
    for (int c = 0; c < 2; c++) {
        g.x = first + c * height * width;
        fill_channel(&g, &a, c);
    }
}
