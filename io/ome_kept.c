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

/* ---- In words --------------------------------------------------------------------------- */

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

/* All of them: what is not chosen is not pointed to. */
static tg_status copy_refs(const tgi_ome_kept *k, tgi_ome_kept *o, tgi_err *err)
{
    if (!k->plane_refs)
        return TG_OK;
    if (!(o->plane_refs = tgi_malloc(TGI_TAG_IO, k->plane_refs_bytes)))
        return tgi_fail(err, TG_E_NOMEM, "no memory for annotations of planes");
    memcpy(o->plane_refs, k->plane_refs, k->plane_refs_bytes);
    o->plane_refs_bytes = k->plane_refs_bytes;
    return TG_OK;
}

static tg_status pick_planes(const tgi_ome_kept *k, const tgi_axis_list *const pick[3],
                             tgi_ome_kept *o, tgi_err *err)
{
    choice of[3] = {{0}};
    tg_status st = TG_OK;
    for (int i = 0; st == TG_OK && k->n_planes && i < 3; i++)
        st = make_choice(pick[i], &of[i], err);
    const int64_t n = st == TG_OK ? choose_planes(k, of, NULL) : 0;
    if (n && !(o->plane = tgi_calloc(TGI_TAG_IO, (size_t)n, sizeof *o->plane)))
        st = tgi_fail(err, TG_E_NOMEM, "no memory for times and positions of planes");
    if (n && st == TG_OK) {
        o->n_planes = choose_planes(k, of, o->plane);
        tgi_plane_notes_sort(o->plane, (size_t)n);
    }
    for (int i = 0; i < 3; i++)
        tgi_free(of[i].at);
    return st == TG_OK && n ? copy_refs(k, o, err) : st;
}

/* Of each note the plane in turn that it is about: no plane is chosen twice. `to` NULL: they are counted. */
static int64_t notes_in_turn(const tgi_ome_kept *k, const tgi_ome_spots *s,
                             const tgi_plane_note *spot, tgi_plane_note *to)
{
    int64_t n = 0;
    for (int64_t i = 0; i < k->n_planes; i++) {
        const tgi_plane_note *from = &k->plane[i];
        const tgi_plane_note like = {.z = s->along[0] ? from->z : 0,
                                     .c = s->along[1] ? from->c : 0,
                                     .t = s->along[2] ? from->t : 0};
        const tgi_plane_note *at = bsearch(&like, spot, (size_t)s->n, sizeof *spot, by_place);
        if (at && to) {
            to[n] = *from;
            to[n].z = s->along[0] ? 0 : from->z;
            to[n].c = s->along[1] ? 0 : from->c;
            to[n].t = (int32_t)at->refs;
        }
        n += at != NULL;
    }
    return n;
}

static tg_status planes_in_turn(const tgi_ome_kept *k, const tgi_ome_spots *s, tgi_ome_kept *o,
                                tgi_err *err)
{
    if (!k->n_planes || !s->n)
        return TG_OK;
    tgi_plane_note *spot = tgi_calloc(TGI_TAG_IO, (size_t)s->n, sizeof *spot);
    for (int64_t i = 0; spot && i < s->n; i++) /* its number stands in `refs` */
        spot[i] = (tgi_plane_note){
            .z = s->at[i][0], .c = s->at[i][1], .t = s->at[i][2], .refs = (uint32_t)i};
    if (spot)
        tgi_plane_notes_sort(spot, (size_t)s->n);
    const int64_t n = spot ? notes_in_turn(k, s, spot, NULL) : 0;
    if (n)
        o->plane = tgi_calloc(TGI_TAG_IO, (size_t)n, sizeof *o->plane);
    if (o->plane) {
        o->n_planes = notes_in_turn(k, s, spot, o->plane);
        tgi_plane_notes_sort(o->plane, (size_t)n);
    }
    tgi_free(spot);
    if (!spot || (n && !o->plane))
        return tgi_fail(err, TG_E_NOMEM, "no memory for times and positions of planes");
    return copy_refs(k, o, err);
}

typedef struct buffer {
    char *p;
    size_t n, cap;
} buffer;

static void count_or_add(void *user, char c)
{
    buffer *b = user;
    if (b->p && b->n < b->cap)
        b->p[b->n] = c;
    b->n++;
}

/* Those of `pick`, or of `spots`. */
static tg_status pick_rois(const tgi_ome_kept *k, const tgi_axis_list *const pick[3],
                           const tgi_ome_spots *spots, tgi_ome_kept *o, tgi_err *err)
{
    static const tgi_ome_place here;
    buffer b = {NULL, 0, 0};
    int64_t lost = 0;
    if (!k->rois)
        return TG_OK;
    for (int pass = 0; pass < 2; pass++) {
        b.n = 0;
        const int64_t left =
            spots ? tgi_rois_in_turn(k->rois, spots, count_or_add, &b, &lost)
                  : tgi_rois_write(k->rois, &here, pick, count_or_add, &b, &lost);
        count_or_add(&b, 0);
        b.cap = b.p ? b.cap : b.n;
        if (left < 0)
            tgi_free(b.p);
        if (left < 0 || (!b.p && !(b.p = tgi_malloc(TGI_TAG_IO, b.n))))
            return tgi_fail(err, TG_E_NOMEM, "no memory for regions of interest");
    }
    o->rois = b.p;
    o->shapes_lost += lost;
    return TG_OK;
}

/* What belongs to no plane and no channel. */
static tg_status begin_choice(const tgi_ome_kept *k, tgi_ome_kept *o, tgi_err *err)
{
    o->significant_bits = k->significant_bits;
    o->type_bits = k->type_bits;
    o->shapes_lost = k->shapes_lost;
    TGI_TRY(copy_text(&o->head, k->head, err));
    TGI_TRY(copy_text(&o->person_ref, k->person_ref, err));
    TGI_TRY(copy_text(&o->image_refs, k->image_refs, err));
    TGI_TRY(copy_text(&o->image_tail, k->image_tail, err));
    return copy_text(&o->annotations, k->annotations, err);
}

/* The channel that all are of; -1: they are of several. */
static int64_t only_channel(const tgi_ome_spots *s)
{
    for (int64_t i = 1; i < s->n; i++)
        if (s->at[i][1] != s->at[0][1])
            return -1;
    return s->n ? s->at[0][1] : -1;
}

/* Of entries of axes, or, where `s` is not NULL, of planes in turn. */
static tg_status choose(const tgi_ome_kept *k, const tgi_axis_list *const pick[3],
                        const tgi_ome_spots *s, tgi_ome_kept **out, tgi_err *err)
{
    const int among = s && s->along[1]; /* several channels */
    int64_t only = among ? only_channel(s) : -1;
    const tgi_axis_list one = {.at = &only, .n = 1};
    *out = NULL;
    if (!k)
        return TG_OK;
    tgi_ome_kept *o = tgi_calloc(TGI_TAG_IO, 1, sizeof *o);
    if (!o)
        return tgi_fail(err, TG_E_NOMEM, "no memory for OME-XML");
    tg_status st = begin_choice(k, o, err);
    if (st == TG_OK && (!among || only >= 0))
        st = pick_channels(k, among ? &one : s ? NULL : pick[1], o, err);
    if (st == TG_OK)
        st = s ? planes_in_turn(k, s, o, err) : pick_planes(k, pick, o, err);
    if (st == TG_OK)
        st = pick_rois(k, pick, s, o, err);
    if (st == TG_OK)
        *out = o;
    else
        tgi_ome_kept_free(&o);
    return st;
}

tg_status tgi_ome_kept_pick(const tgi_ome_kept *k, const tgi_axis_list *z,
                            const tgi_axis_list *c, const tgi_axis_list *t, tgi_ome_kept **out,
                            tgi_err *err)
{
    const tgi_axis_list *const pick[3] = {z, c, t};
    return choose(k, pick, NULL, out, err);
}

tg_status tgi_ome_kept_in_turn(const tgi_ome_kept *k, const tgi_ome_spots *s,
                               tgi_ome_kept **out, tgi_err *err)
{
    return choose(k, NULL, s, out, err);
}
