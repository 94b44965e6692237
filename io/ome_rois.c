/* ome_rois.c - regions of interest at another place, or of another choice: see ome_kept.h. */
#include "io/ome_kept.h"

#include "engine/base/mem.h"
#include "engine/base/number.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct writing {
    const tgi_ome_place *p;
    const tgi_axis_list *const *pick; /* what is chosen: entries of axes, */
    const tgi_ome_spots *spots; /* or planes; NULL both: it is written, not a template again */
    void (*add)(void *user, char c);
    void *user;
    bool no_memory;
    bool refs; /* no regions, but references to them */
    struct look_up
        *by[8]; /* by the axes that are asked for, a bit for each; NULL: not asked for yet */
} writing;

static bool is_template(const writing *w)
{
    return w->pick || w->spots;
}

/* ---- Where what is chosen was ------------------------------------------------------------ */

/* Entries of an axis, or planes, by their numbers along some axes: there may be as many as shapes. */
typedef struct look_up {
    int64_t n;
    struct found {
        int64_t was[3], now;
    } at[];
} look_up;

static int by_place(const void *a, const void *b)
{
    const struct found *x = a, *y = b;
    for (int k = 0; k < 3; k++)
        if (x->was[k] != y->was[k])
            return x->was[k] < y->was[k] ? -1 : 1;
    return (x->now > y->now) - (x->now < y->now);
}

static look_up *look_up_by(writing *w, int axes)
{
    const tgi_axis_list *l = w->spots ? NULL : w->pick[axes >> 1]; /* 1, 2, 4: one of them */
    const int64_t n = l ? l->n : w->spots->n;
    if (w->by[axes])
        return w->by[axes];
    look_up *u = tgi_calloc(TGI_TAG_IO, 1, sizeof *u + (size_t)n * sizeof *u->at);
    if (!u) {
        w->no_memory = true;
        return NULL;
    }
    u->n = n;
    for (int64_t i = 0; i < n; i++) {
        u->at[i].now = i;
        for (int k = 0; k < 3; k++)
            if (axes & 1 << k)
                u->at[i].was[k] = l ? l->at[i] : w->spots->at[i][k];
    }
    qsort(u->at, (size_t)n, sizeof *u->at, by_place);
    return w->by[axes] = u;
}

/* The first that does not come before `was`, `now`. */
static int64_t begin_of(const look_up *u, const int64_t was[3], int64_t now)
{
    const struct found like = {{was[0], was[1], was[2]}, now};
    int64_t lo = 0, hi = u->n;
    while (lo < hi) {
        const int64_t mid = lo + (hi - lo) / 2;
        if (by_place(&u->at[mid], &like) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* How many of them have these numbers along these axes, below 0 along others; *first: the least of them. */
static int64_t count_at(writing *w, int axes, const int64_t at[3], int64_t *first)
{
    int64_t was[3];
    const look_up *u = look_up_by(w, axes);
    for (int k = 0; k < 3; k++)
        was[k] = axes & 1 << k ? at[k] : 0;
    const int64_t lo = u ? begin_of(u, was, 0) : 0, hi = u ? begin_of(u, was, INT64_MAX) : 0;
    if (hi > lo)
        *first = u->at[lo].now;
    return hi - lo;
}

/* The place of an entry of z, channel or time among those that are chosen; -1: it is not. */
static int64_t place_in(writing *w, int axis, int64_t was)
{
    int64_t at[3] = {was, was, was}, now = -1;
    if (!w->pick || !w->pick[axis] || !w->pick[axis]->at)
        return was;
    (void)count_at(w, 1 << axis, at, &now);
    return now;
}

static double scale_of(const writing *w, int axis)
{
    return w->p->scale[axis] > 0 ? w->p->scale[axis] : 1;
}

/* ---- What a shape says ------------------------------------------------------------------- */

/* z, channel or time of a kind of number; -1: it is none of these. */
static int axis_of(char kind)
{
    return kind == 'z' ? 0 : kind == 'k' ? 1 : kind == 't' ? 2 : -1;
}

typedef struct facts {
    int64_t at[3];     /* slice, channel, time; -1: it is on all of them */
    double x[2], y[2]; /* what it covers, before its transform; x[0] > x[1]: not known */
    double w, h;
    double m[6]; /* A00 A10 A01 A11 A02 A12 */
} facts;

static void take_fact(facts *f, char kind, double v)
{
    const int axis = axis_of(kind);
    if (axis >= 0)
        f->at[axis] = (int64_t)v;
    else if (kind >= 'a' && kind <= 'f')
        f->m[kind - 'a'] = v;
    else if (kind == 'W')
        f->w = v;
    else if (kind == 'H')
        f->h = v;
    else if (kind == 'X' || kind == 'Y') {
        double *r = kind == 'X' ? f->x : f->y;
        r[0] = fmin(r[0], v);
        r[1] = fmax(r[1], v);
    }
}

/* Of the shape in [at, to). */
static facts facts_of(const char *at, const char *to)
{
    facts f = {.at = {-1, -1, -1},
               .x = {INFINITY, -INFINITY},
               .y = {INFINITY, -INFINITY},
               .m = {1, 0, 0, 1, 0, 0}};
    for (const char *m = at; m < to; m++) {
        if (*m != TGI_ROI_MARK)
            continue;
        double v = 0;
        (void)tgi_number_begin(m + 2, &v);
        take_fact(&f, m[1], v);
        for (m++; m < to && *m != TGI_ROI_MARK; m++)
            continue;
    }
    while (at < to && *at != '<')
        at++;
    if (strncmp(at, "<Ellipse", 8) == 0) { /* from its centre */
        f.x[0] -= f.w;
        f.y[0] -= f.h;
    }
    f.x[1] += f.w;
    f.y[1] += f.h;
    return f;
}

/* Does [lo, hi] lie beside [0, n)? What is no wider than a point may stand on the border. */
static bool is_beside(double lo, double hi, double n)
{
    return hi > lo ? hi <= 0 || lo >= n : hi < 0 || lo >= n;
}

/* Of a part of the image: does all of the shape lie outside of it? */
static bool is_outside(const writing *w, const facts *f)
{
    const int64_t *n = w->p->extent;
    double lo[2] = {INFINITY, INFINITY}, hi[2] = {-INFINITY, -INFINITY};
    if ((!n[1] && !n[2]) || !(f->x[0] <= f->x[1]) || !(f->y[0] <= f->y[1]))
        return false;
    for (int i = 0; i < 4; i++) { /* its corners */
        const double x = f->x[i & 1], y = f->y[i >> 1];
        const double to[2] = {
            scale_of(w, 0) * (f->m[1] * x + f->m[3] * y + f->m[5]) - w->p->shift[0],
            scale_of(w, 1) * (f->m[0] * x + f->m[2] * y + f->m[4]) - w->p->shift[1]};
        for (int k = 0; k < 2; k++) {
            lo[k] = fmin(lo[k], to[k]);
            hi[k] = fmax(hi[k], to[k]);
        }
    }
    return (n[1] && is_beside(lo[0], hi[0], (double)n[1])) ||
           (n[2] && is_beside(lo[1], hi[1], (double)n[2]));
}

/* Is it on one of several planes that became one axis, on none, or on some? */
static bool fits_spots(writing *w, const facts *f, int64_t *now)
{
    const tgi_ome_spots *s = w->spots;
    int axes = 0;
    for (int k = 0; k < 3; k++)
        axes |= f->at[k] >= 0 && s->along[k] ? 1 << k : 0;
    const int64_t n = axes ? count_at(w, axes, f->at, now) : s->n;
    if (n == s->n)
        *now = -1; /* on all of them: it has no number */
    return n == s->n || n == 1;
}

/* Is the shape of something that is not there any more? */
static bool is_elsewhere(writing *w, const facts *f)
{
    const tgi_ome_place *p = w->p;
    int64_t now;
    if (w->spots)
        return !fits_spots(w, f, &now);
    for (int k = 0; w->pick && k < 3; k++)
        if (f->at[k] >= 0 && place_in(w, k, f->at[k]) < 0)
            return true;
    if (w->pick)
        return false;
    if (f->at[0] >= 0 && (p->other_slices || f->at[0] < p->first_z ||
                          (p->extent[0] && f->at[0] >= p->first_z + p->extent[0])))
        return true;
    return is_outside(w, f);
}

/* ---- Writing ----------------------------------------------------------------------------- */

/* A number of kind `kind` at its place. X, Y: a point; W, H: a length; a to f: A00 A10 A01 A11 A02 A12 of a
 * transform. */
static double placed(const writing *w, char kind, double v, bool transformed)
{
    const double sx = scale_of(w, 1), sy = scale_of(w, 0);
    switch (kind) {
    case 'X':
        return transformed ? v : sx * v - w->p->shift[1];
    case 'Y':
        return transformed ? v : sy * v - w->p->shift[0];
    case 'W':
        return transformed ? v : sx * v;
    case 'H':
        return transformed ? v : sy * v;
    case 'a':
    case 'c':
        return sx * v;
    case 'b':
    case 'd':
        return sy * v;
    case 'e':
        return sx * v - w->p->shift[1];
    case 'f':
        return sy * v - w->p->shift[0];
    default:
        return v;
    }
}

/* XML has no number beyond the greatest. */
static double within(double v)
{
    return fmax(-DBL_MAX, fmin(DBL_MAX, v));
}

static void put(const writing *w, const char *s)
{
    for (; *s; s++)
        w->add(w->user, *s);
}

/* The number behind a mark; returns what follows its end. */
static const char *put_number(writing *w, const char *at, bool transformed)
{
    char text[64];
    const char kind = at[1];
    const int axis = axis_of(kind);
    double v = 0;
    const char *end = at + 2 + tgi_number_begin(at + 2, &v);
    if (is_template(w) && axis < 0)
        snprintf(text, sizeof text, "%.*s%c", (int)(end - at), at, TGI_ROI_MARK);
    else if (is_template(w))
        snprintf(text, sizeof text, "%c%c%lld%c", TGI_ROI_MARK, kind,
                 (long long)place_in(w, axis, (int64_t)v), TGI_ROI_MARK);
    else if (axis >= 0)
        snprintf(text, sizeof text, "%lld",
                 (long long)((int64_t)v - (axis == 0 ? w->p->first_z : 0)));
    else
        tgi_number_digits(within(placed(w, kind, v, transformed)), 17, text);
    put(w, text);
    return *end == TGI_ROI_MARK ? end + 1 : end;
}

static const char *end_of(const char *at, char mark)
{
    const char *e = strchr(at, mark);
    return e ? e : at + strlen(at);
}

/* Are numbers of this axis left out of the shape? Its channels are others, or its planes are in turn now. */
static bool is_dropped(const writing *w, int axis)
{
    return w->spots ? w->spots->along[axis] : !w->pick && axis == 1 && w->p->any_channel;
}

/* The length of an attribute TheZ, TheC or TheT that begins at `at` and is left out; 0: there is none. */
static size_t dropped_here(const writing *w, const char *at, const char *to)
{
    static const char *const begins[] = {" TheZ=\"", " TheC=\"", " TheT=\""};
    for (int k = 0; k < 3; k++)
        if (to - at > 8 && strncmp(at, begins[k], 7) == 0 && at[7] == TGI_ROI_MARK &&
            is_dropped(w, k)) {
            const char *end = memchr(at + 7, '"', (size_t)(to - at - 7));
            return end ? (size_t)(end + 1 - at) : (size_t)(to - at);
        }
    return 0;
}

/* The characters from `at` to `to`, numbers placed; the marks of shapes and regions only stay in templates. */
static void put_part(writing *w, const char *at, const char *to, bool transformed)
{
    while (at < to) {
        const size_t gone = *at == ' ' ? dropped_here(w, at, to) : 0;
        at += gone;
        if (gone)
            continue;
        if (*at == TGI_ROI_MARK) {
            at = put_number(w, at, transformed);
            continue;
        }
        if (is_template(w) || *at > TGI_ROI_MASK || *at < 0)
            w->add(w->user, *at);
        at++;
    }
}

/* A shape that stays. Of planes in turn it says which one it is on behind its name. */
static void put_shape(writing *w, const char *at, const char *to, const facts *f)
{
    const bool transformed = memchr(at, TGI_ROI_TRANSFORM, (size_t)(to - at)) != NULL;
    const char *name = memchr(at, '<', (size_t)(to - at));
    int64_t now = -1;
    char text[48];
    if (w->spots && name && fits_spots(w, f, &now) && now >= 0) {
        const char *behind = name + 1 + strcspn(name + 1, " />");
        put_part(w, at, behind, transformed);
        snprintf(text, sizeof text, " TheT=\"%ct%lld%c\"", TGI_ROI_MARK, (long long)now,
                 TGI_ROI_MARK);
        put(w, text);
        at = behind;
    }
    put_part(w, at, to, transformed);
}

/* Its identifier is an attribute of the element that begins there. */
static void put_ref(writing *w, const char *at, const char *to)
{
    static const char name[] = " ID=\"";
    const char *id = at;
    while (id < to && strncmp(id, name, sizeof name - 1) != 0)
        id++;
    if (id == to)
        return;
    put(w, "<ROIRef");
    put_part(w, id, id + 5 + strcspn(id + 5, "\""), false);
    put(w, "\"/>");
}

/* A region with the shapes that are still there. Returns 1 when there is one. */
static int put_roi(writing *w, const char *at, const char *to, int64_t *lost)
{
    const bool scaled = !is_template(w) && (scale_of(w, 0) != 1 || scale_of(w, 1) != 1);
    int64_t kept = 0;
    for (int pass = 0; pass < 2; pass++) {
        const char *p = at;
        while (p < to) {
            const char *shape = memchr(p, TGI_ROI_SHAPE, (size_t)(to - p));
            if (!shape)
                shape = to;
            if (pass)
                put_part(w, p, shape, false);
            if (shape == to)
                break;
            const char *end = end_of(shape, TGI_ROI_SHAPE_END);
            const facts f = facts_of(shape, end);
            const bool stays = !is_elsewhere(w, &f) &&
                               !(scaled && memchr(shape, TGI_ROI_MASK, (size_t)(end - shape)));
            kept += !pass && stays;
            *lost += !pass && !stays;
            p = end < to ? end + 1 : to;
            if (pass && stays)
                put_shape(w, shape, p, &f);
        }
        if (!kept)
            return 0;
        if (w->refs) {
            put_ref(w, at, to);
            return 1;
        }
    }
    return 1;
}

/* Returns how many are left; -1: no memory. */
static int64_t each_roi(writing *w, const char *rois, int64_t *lost)
{
    int64_t n = 0;
    *lost = 0;
    for (const char *at = rois; at && (at = strchr(at, TGI_ROI_ROI)) != NULL;) {
        const char *end = end_of(at, TGI_ROI_ROI_END);
        const char *behind = *end ? end + 1 : end;
        n += put_roi(w, at, behind, lost);
        at = behind;
    }
    for (int i = 0; i < 8; i++)
        tgi_free(w->by[i]);
    return w->no_memory ? -1 : n;
}

int64_t tgi_rois_write(const char *rois, const tgi_ome_place *p,
                       const tgi_axis_list *const pick[3], void (*add)(void *user, char c),
                       void *user, int64_t *lost)
{
    writing w = {.p = p, .pick = pick, .add = add, .user = user};
    return each_roi(&w, rois, lost);
}

int64_t tgi_rois_in_turn(const char *rois, const tgi_ome_spots *spots,
                         void (*add)(void *user, char c), void *user, int64_t *lost)
{
    static const tgi_ome_place here;
    writing w = {.p = &here, .spots = spots, .add = add, .user = user};
    return each_roi(&w, rois, lost);
}

void tgi_rois_refs(const char *rois, const tgi_ome_place *p, void (*add)(void *user, char c),
                   void *user)
{
    writing w = {.p = p, .add = add, .user = user, .refs = true};
    int64_t lost;
    (void)each_roi(&w, rois, &lost);
}

static void drop_char(void *user, char c)
{
    (void)user;
    (void)c;
}

int64_t tgi_rois_lost(const tgi_ome_kept *k, const tgi_ome_place *p)
{
    int64_t lost = 0;
    if (!k)
        return 0;
    if (k->rois)
        (void)tgi_rois_write(k->rois, p, NULL, drop_char, NULL, &lost);
    return k->shapes_lost + lost;
}
