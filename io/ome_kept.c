/* ome_kept.c - see ome_kept.h. */
#include "io/ome_kept.h"

#include "engine/base/mem.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Units ------------------------------------------------------------------------------- */

static const char *const times[] = {"", "s", "ms", "\xc2\xb5s", "ns", "ps", "min", "h", "d"};
static const char *const lengths[] = {
    "", "\xc2\xb5m", "nm", "mm", "cm", "m", "pm", "in", "pt", "pixel", "reference frame"};
#define N(list) (int)(sizeof(list) / sizeof *(list))

const char *tgi_plane_unit(int what, int index)
{
    const bool is_time = what <= TGI_PLANE_EXPOSURE;
    if (index <= 0 || index >= (is_time ? N(times) : N(lengths)))
        return "";
    return is_time ? times[index] : lengths[index];
}

int tgi_plane_unit_of(int what, const char *name)
{
    const bool is_time = what <= TGI_PLANE_EXPOSURE;
    for (int i = 1; i < (is_time ? N(times) : N(lengths)); i++)
        if (strcmp(is_time ? times[i] : lengths[i], name) == 0)
            return i;
    return 0;
}

/* ---- Planes ------------------------------------------------------------------------------ */

static int by_place(const void *a, const void *b)
{
    const tgi_plane_note *x = a, *y = b;
    const int32_t d[3] = {x->t - y->t, x->c - y->c, x->z - y->z};
    for (int i = 0; i < 3; i++)
        if (d[i])
            return d[i] < 0 ? -1 : 1;
    return 0;
}

void tgi_plane_notes_sort(tgi_plane_note *plane, size_t n)
{
    if (n)
        qsort(plane, n, sizeof *plane, by_place);
}

const tgi_plane_note *tgi_plane_note_at(const tgi_ome_kept *k, const tgi_ome_place *p,
                                        int64_t z, int64_t c, int64_t t)
{
    if (!k || !k->n_planes || p->no_planes || z + p->first_z > INT32_MAX || c > INT32_MAX ||
        t > INT32_MAX)
        return NULL;
    const tgi_plane_note like = {
        .z = (int32_t)(z + p->first_z), .c = p->any_channel ? 0 : (int32_t)c, .t = (int32_t)t};
    return bsearch(&like, k->plane, (size_t)k->n_planes, sizeof *k->plane, by_place);
}

const char *tgi_plane_refs(const tgi_ome_kept *k, const tgi_plane_note *n)
{
    return n->refs ? k->plane_refs + n->refs - 1 : NULL;
}

static int any_values(const tgi_ome_kept *k)
{
    for (int64_t i = 0; i < k->n_planes; i++)
        if (k->plane[i].has)
            return 1;
    return 0;
}

/* ---- Regions of interest ----------------------------------------------------------------- */

typedef struct writing {
    const tgi_ome_place *p;
    const tgi_axis_list *const *pick;
    void (*add)(void *user, char c);
    void *user;
    bool refs; /* no regions, but references to them */
} writing;

static int64_t place_in(const tgi_axis_list *l, int64_t was)
{
    if (!l || !l->at)
        return was;
    for (int64_t i = 0; i < l->n; i++)
        if (l->at[i] == was)
            return i;
    return -1;
}

static double scale_of(const writing *w, int axis)
{
    return w->p->scale[axis] > 0 ? w->p->scale[axis] : 1;
}

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

static void put(const writing *w, const char *s)
{
    for (; *s; s++)
        w->add(w->user, *s);
}

/* The number behind a mark; returns what follows its end. */
static const char *put_number(const writing *w, const char *at, bool transformed)
{
    char text[64];
    const char kind = at[1];
    char *end;
    const double v = strtod(at + 2, &end);
    if (w->pick) { /* it stays a template */
        const int axis = kind == 'z' ? 0 : kind == 'k' ? 1 : kind == 't' ? 2 : -1;
        if (axis < 0)
            snprintf(text, sizeof text, "%c%c%.17g%c", TGI_ROI_MARK, kind, v, TGI_ROI_MARK);
        else
            snprintf(text, sizeof text, "%c%c%lld%c", TGI_ROI_MARK, kind,
                     (long long)place_in(w->pick[axis], (int64_t)v), TGI_ROI_MARK);
    } else if (kind == 'z') {
        snprintf(text, sizeof text, "%lld", (long long)((int64_t)v - w->p->first_z));
    } else if (kind == 'k' || kind == 't') {
        snprintf(text, sizeof text, "%lld", (long long)v);
    } else {
        snprintf(text, sizeof text, "%.17g", placed(w, kind, v, transformed));
    }
    put(w, text);
    return *end == TGI_ROI_MARK ? end + 1 : end;
}

/* Is the shape of something that is not there any more? */
static bool is_elsewhere(const writing *w, const char *from, const char *to)
{
    for (const char *m = from; m < to; m++) {
        if (*m != TGI_ROI_MARK)
            continue;
        const char kind = m[1];
        const int64_t v =
            kind == 'z' || kind == 'k' || kind == 't' ? strtoll(m + 2, NULL, 10) : 0;
        const int axis = kind == 'z' ? 0 : kind == 'k' ? 1 : 2;
        if ((kind == 'z' || kind == 'k' || kind == 't') && w->pick &&
            place_in(w->pick[axis], v) < 0)
            return true;
        if (kind == 'z' && !w->pick && v < w->p->first_z)
            return true;
        for (m++; m < to && *m != TGI_ROI_MARK; m++)
            continue;
    }
    return false;
}

static const char *end_of(const char *at, char mark)
{
    const char *e = strchr(at, mark);
    return e ? e : at + strlen(at);
}

/* The characters from `at` to `to`, numbers placed; the marks of shapes and regions only stay in templates. */
static void put_part(const writing *w, const char *at, const char *to, bool transformed)
{
    static const char channel[] = {' ', 'T', 'h', 'e', 'C', '=', '"', TGI_ROI_MARK, 'k'};
    while (at < to) {
        if (!w->pick && w->p->any_channel && (size_t)(to - at) > sizeof channel &&
            memcmp(at, channel, sizeof channel) == 0) { /* channels are others */
            at += 7;
            while (at < to && *at != '"')
                at++;
            at += at < to;
            continue;
        }
        if (*at == TGI_ROI_MARK) {
            at = put_number(w, at, transformed);
            continue;
        }
        if (w->pick || *at > TGI_ROI_MASK || *at < 0)
            w->add(w->user, *at);
        at++;
    }
}

/* Its identifier is an attribute of the element that begins there. */
static void put_ref(const writing *w, const char *at, const char *to)
{
    const char *id = strstr(at, " ID=\"");
    if (!id || id > to)
        return;
    put(w, "<ROIRef");
    put_part(w, id, id + 5 + strcspn(id + 5, "\""), false);
    put(w, "\"/>");
}

/* A region with the shapes that are still there. Returns 1 when there is one. */
static int put_roi(const writing *w, const char *at, const char *to, int64_t *lost)
{
    const bool scaled = !w->pick && (scale_of(w, 0) != 1 || scale_of(w, 1) != 1);
    int64_t kept = 0, left = 0;
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
            const size_t n = (size_t)(end - shape);
            const bool gone = is_elsewhere(w, shape, end),
                       torn = scaled && memchr(shape, TGI_ROI_MASK, n);
            kept += !pass && !gone && !torn;
            left += !pass && torn;
            p = end < to ? end + 1 : to;
            if (pass && !gone && !torn)
                put_part(w, shape, p, memchr(shape, TGI_ROI_TRANSFORM, n) != NULL);
        }
        if (!pass)
            *lost += left;
        if (!kept)
            return 0;
        if (w->refs) {
            put_ref(w, at, to);
            return 1;
        }
    }
    return 1;
}

static int64_t each_roi(const writing *w, const char *rois, int64_t *lost)
{
    int64_t n = 0;
    *lost = 0;
    for (const char *at = rois; at && (at = strchr(at, TGI_ROI_ROI)) != NULL;) {
        const char *end = end_of(at, TGI_ROI_ROI_END);
        const char *behind = *end ? end + 1 : end;
        n += put_roi(w, at, behind, lost);
        at = behind;
    }
    return n;
}

int64_t tgi_rois_write(const char *rois, const tgi_ome_place *p,
                       const tgi_axis_list *const pick[3], void (*add)(void *user, char c),
                       void *user, int64_t *lost)
{
    const writing w = {p, pick, add, user, false};
    return each_roi(&w, rois, lost);
}

void tgi_rois_refs(const char *rois, const tgi_ome_place *p, void (*add)(void *user, char c),
                   void *user)
{
    const writing w = {p, NULL, add, user, true};
    int64_t lost;
    (void)each_roi(&w, rois, &lost);
}

const char *tgi_ome_kept_words(const tgi_ome_kept *k, const tgi_ome_place *p, char *buf,
                               size_t cap)
{
    int settings = 0;
    buf[0] = 0;
    if (!k)
        return buf;
    for (int i = 0; i < k->n_channels; i++)
        settings |= k->channel_said[i] || k->channel_parts[i];
    const struct {
        int there;
        const char *words;
    } of[] = {{k->head || k->person_ref || k->image_refs,
               "instruments, objectives and experimenters"},
              {settings, "wavelengths and settings of channels"},
              {any_values(k), "times and positions of planes"},
              {k->rois != NULL, "regions of interest"},
              {k->annotations != NULL, "annotations"},
              {k->significant_bits < k->type_bits && !p->other_values,
               "the number of significant bits"}};
    for (size_t i = 0, n = 0; i < sizeof of / sizeof *of; i++)
        if (of[i].there && n < cap)
            n += (size_t)snprintf(buf + n, cap - n, "%s%s", n ? ", " : "", of[i].words);
    return buf;
}

/* ---- All of it --------------------------------------------------------------------------- */

void tgi_ome_kept_clear(tgi_ome_kept *k)
{
    char *const text[] = {k->head,       k->person_ref,  k->image_refs,
                          k->image_tail, k->annotations, k->rois};
    for (size_t i = 0; i < sizeof text / sizeof *text; i++)
        tgi_free(text[i]);
    for (int i = 0; i < k->n_channels; i++) {
        tgi_free(k->channel_said ? k->channel_said[i] : NULL);
        tgi_free(k->channel_parts ? k->channel_parts[i] : NULL);
    }
    tgi_free(k->channel_said);
    tgi_free(k->channel_parts);
    tgi_free(k->plane);
    tgi_free(k->plane_refs);
    *k = (tgi_ome_kept){0};
}

void tgi_ome_kept_free(tgi_ome_kept **k)
{
    if (*k)
        tgi_ome_kept_clear(*k);
    tgi_free(*k);
    *k = NULL;
}

static tg_status copy_text(char **to, const char *from, tgi_err *err)
{
    *to = from ? tgi_strdup(TGI_TAG_IO, from) : NULL;
    return !from || *to ? TG_OK : tgi_fail(err, TG_E_NOMEM, "no memory for OME-XML");
}

static tg_status pick_channels(const tgi_ome_kept *k, const tgi_axis_list *c, tgi_ome_kept *o,
                               tgi_err *err)
{
    const int n = c && c->at ? (int)c->n : k->n_channels;
    if (!k->n_channels)
        return TG_OK;
    o->channel_said = tgi_calloc(TGI_TAG_IO, (size_t)n, sizeof *o->channel_said);
    o->channel_parts = tgi_calloc(TGI_TAG_IO, (size_t)n, sizeof *o->channel_parts);
    if (!o->channel_said || !o->channel_parts)
        return tgi_fail(err, TG_E_NOMEM, "no memory for OME-XML channels");
    o->n_channels = n;
    for (int i = 0; i < n; i++) {
        const int64_t from = c && c->at ? c->at[i] : i;
        if (from >= k->n_channels)
            continue;
        TGI_TRY(copy_text(&o->channel_said[i], k->channel_said[from], err));
        TGI_TRY(copy_text(&o->channel_parts[i], k->channel_parts[from], err));
    }
    return TG_OK;
}

/* Entries of a choice, by what they were: a channel may have been chosen several times. */
typedef struct entry {
    int64_t was, now;
} entry;

typedef struct choice {
    entry *at; /* NULL: all */
    int64_t n;
} choice;

static int by_entry(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    if (x->was != y->was)
        return x->was < y->was ? -1 : 1;
    return (x->now > y->now) - (x->now < y->now);
}

static tg_status make_choice(const tgi_axis_list *l, choice *out, tgi_err *err)
{
    *out = (choice){0};
    if (!l || !l->at)
        return TG_OK;
    out->at = tgi_calloc(TGI_TAG_IO, (size_t)l->n + 1, sizeof *out->at);
    if (!out->at)
        return tgi_fail(err, TG_E_NOMEM, "no memory for what is chosen");
    for (int64_t i = 0; i < l->n; i++)
        out->at[i] = (entry){l->at[i], i};
    out->n = l->n;
    qsort(out->at, (size_t)l->n, sizeof *out->at, by_entry);
    return TG_OK;
}

/* How often an entry was chosen, and the first of these in *first. */
static int64_t times_in(const choice *c, int64_t was, int64_t *first)
{
    int64_t lo = 0, n = c->n, often = 0;
    while (n > 0) {
        const int64_t half = n / 2;
        if (c->at[lo + half].was < was) {
            lo += half + 1;
            n -= half + 1;
        } else {
            n = half;
        }
    }
    *first = lo;
    while (lo + often < c->n && c->at[lo + often].was == was)
        often++;
    return c->at ? often : 1;
}

static int32_t place_at(const choice *c, int64_t was, int64_t i)
{
    return (int32_t)(c->at ? c->at[i].now : was);
}

/* Those that stay into `to`, or NULL: they are counted. */
static int64_t choose_planes(const tgi_ome_kept *k, const choice of[3], tgi_plane_note *to)
{
    int64_t n = 0, z = 0, c = 0, t = 0;
    for (int64_t i = 0; i < k->n_planes; i++) {
        const tgi_plane_note *from = &k->plane[i];
        const int there = times_in(&of[0], from->z, &z) && times_in(&of[2], from->t, &t);
        const int64_t many = there ? times_in(&of[1], from->c, &c) : 0;
        for (int64_t m = 0; m < many && to; m++) {
            to[n + m] = *from;
            to[n + m].z = place_at(&of[0], from->z, z);
            to[n + m].c = place_at(&of[1], from->c, c + m);
            to[n + m].t = place_at(&of[2], from->t, t);
        }
        n += many;
    }
    return n;
}

static tg_status pick_planes(const tgi_ome_kept *k, const tgi_axis_list *z,
                             const tgi_axis_list *c, const tgi_axis_list *t, tgi_ome_kept *o,
                             tgi_err *err)
{
    const tgi_axis_list *const list[3] = {z, c, t};
    choice of[3] = {{0}};
    tg_status st = TG_OK;
    for (int i = 0; st == TG_OK && k->n_planes && i < 3; i++)
        st = make_choice(list[i], &of[i], err);
    const int64_t n = st == TG_OK ? choose_planes(k, of, NULL) : 0;
    if (n && !(o->plane = tgi_calloc(TGI_TAG_IO, (size_t)n, sizeof *o->plane)))
        st = tgi_fail(err, TG_E_NOMEM, "no memory for times and positions of planes");
    if (n && st == TG_OK) {
        o->n_planes = choose_planes(k, of, o->plane);
        tgi_plane_notes_sort(o->plane, (size_t)n);
    }
    for (int i = 0; i < 3; i++)
        tgi_free(of[i].at);
    if (st == TG_OK && n &&
        k->plane_refs) { /* all of them: what is not chosen is not pointed to */
        if (!(o->plane_refs = tgi_malloc(TGI_TAG_IO, k->plane_refs_bytes)))
            return tgi_fail(err, TG_E_NOMEM, "no memory for annotations of planes");
        memcpy(o->plane_refs, k->plane_refs, k->plane_refs_bytes);
        o->plane_refs_bytes = k->plane_refs_bytes;
    }
    return st;
}

typedef struct buffer {
    char *p;
    size_t n;
} buffer;

static void count_or_add(void *user, char c)
{
    buffer *b = user;
    if (b->p)
        b->p[b->n] = c;
    b->n++;
}

static tg_status pick_rois(const tgi_ome_kept *k, const tgi_axis_list *z,
                           const tgi_axis_list *c, const tgi_axis_list *t, tgi_ome_kept *o,
                           tgi_err *err)
{
    const tgi_axis_list *const pick[3] = {z, c, t};
    const tgi_ome_place here = {{0, 0}, {0, 0}, 0, 0, 0, 0};
    buffer b = {NULL, 0};
    int64_t lost;
    if (!k->rois)
        return TG_OK;
    for (int pass = 0; pass < 2; pass++) {
        b.n = 0;
        (void)tgi_rois_write(k->rois, &here, pick, count_or_add, &b, &lost);
        count_or_add(&b, 0);
        if (!b.p && !(b.p = tgi_malloc(TGI_TAG_IO, b.n)))
            return tgi_fail(err, TG_E_NOMEM, "no memory for regions of interest");
    }
    o->rois = b.p;
    return TG_OK;
}

tg_status tgi_ome_kept_pick(const tgi_ome_kept *k, const tgi_axis_list *z,
                            const tgi_axis_list *c, const tgi_axis_list *t, tgi_ome_kept **out,
                            tgi_err *err)
{
    *out = NULL;
    if (!k)
        return TG_OK;
    tgi_ome_kept *o = tgi_calloc(TGI_TAG_IO, 1, sizeof *o);
    if (!o)
        return tgi_fail(err, TG_E_NOMEM, "no memory for OME-XML");
    o->significant_bits = k->significant_bits;
    o->type_bits = k->type_bits;
    tg_status st = copy_text(&o->head, k->head, err);
    if (st == TG_OK)
        st = copy_text(&o->person_ref, k->person_ref, err);
    if (st == TG_OK)
        st = copy_text(&o->image_refs, k->image_refs, err);
    if (st == TG_OK)
        st = copy_text(&o->image_tail, k->image_tail, err);
    if (st == TG_OK)
        st = copy_text(&o->annotations, k->annotations, err);
    if (st == TG_OK)
        st = pick_channels(k, c, o, err);
    if (st == TG_OK)
        st = pick_planes(k, z, c, t, o, err);
    if (st == TG_OK)
        st = pick_rois(k, z, c, t, o, err);
    if (st == TG_OK)
        *out = o;
    else
        tgi_ome_kept_free(&o);
    return st;
}
