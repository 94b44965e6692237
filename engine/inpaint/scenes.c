/* scenes.c - see scenes.h. */
#include "engine/inpaint/scenes.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct scenes {
    tgi_method base;
    tgi_scenes_how how; /* its cuts are good in tgi_scenes_new alone */
    int64_t *from;      /* scene i is [from[i], from[i + 1]) */
    int64_t n, joined;
    tgi_method *now; /* of scene `at`; NULL */
    int64_t at;
    int64_t largest; /* the scene that takes most */
    size_t bytes;    /* that are promised, and on disk */
    uint64_t disk;
    size_t least; /* that every scene can do with; then they take this on disk */
    uint64_t least_disk;
    int shrunk;
    tgi_sched_need need; /* of any scene */
} scenes;

static scenes *of(tgi_method *m)
{
    return (scenes *)m;
}

static const scenes *of_const(const tgi_method *m)
{
    return (const scenes *)m;
}

/* ---- Where they begin --------------------------------------------------------------------- */

/* Cuts within the film, and what is too short joined. */
static void take_cuts(scenes *s)
{
    const tgi_scenes_how *h = &s->how;
    s->from[0] = h->lo;
    s->n = 1;
    for (int64_t i = 0; i < h->n_cuts; i++) {
        if (h->cut[i] <= h->lo || h->cut[i] >= h->hi)
            continue;
        if (h->cut[i] - s->from[s->n - 1] < h->least)
            s->joined++;
        else
            s->from[s->n++] = h->cut[i];
    }
    if (s->n > 1 && h->hi - s->from[s->n - 1] < h->least) {
        s->joined++;
        s->n--;
    }
    s->from[s->n] = h->hi;
}

static int64_t length_of(const scenes *s, int64_t i)
{
    return s->from[i + 1] - s->from[i];
}

static int64_t scene_of(const scenes *s, int64_t k)
{
    int64_t lo = 0, hi = s->n;
    while (hi - lo > 1) {
        const int64_t middle = (lo + hi) / 2;
        if (s->from[middle] <= k)
            lo = middle;
        else
            hi = middle;
    }
    return lo;
}

/* ---- One at a time ------------------------------------------------------------------------ */

static void close_scene(scenes *s)
{
    if (s->now)
        s->now->ops->free(&s->now);
    s->at = -1;
}

static tg_status open_scene(scenes *s, int64_t i, tgi_err *err)
{
    close_scene(s);
    TGI_TRY(s->how.open(s->how.user, s->from[i], s->from[i + 1], &s->now, err));
    s->at = i;
    return TG_OK;
}

/* In no more memory than was promised. */
static tg_status go_to(scenes *s, int64_t i, tgi_err *err)
{
    if (s->at == i)
        return TG_OK;
    TGI_TRY(open_scene(s, i, err));
    while (s->now->ops->bytes(s->now) > s->bytes)
        if (!s->now->ops->shrink(s->now)) {
            const size_t takes = s->now->ops->bytes(s->now);
            close_scene(s);
            return tgi_fail(err, TG_E_INTERNAL, "a scene of %lld frames takes %zu bytes of %zu",
                            (long long)length_of(s, i), takes, s->bytes);
        }
    return TG_OK;
}

/* A scene that takes less when all of it is in memory may need more at least, or more of the disk. */
static void note_promise(scenes *s)
{
    const size_t now = s->now->ops->bytes(s->now);
    s->bytes = now > s->least ? now : s->least;
    s->disk = s->shrunk ? s->least_disk : s->now->ops->disk(s->now);
}

static void note_least(scenes *s)
{
    while (s->now->ops->shrink(s->now))
        continue;
    const size_t bytes = s->now->ops->bytes(s->now);
    const uint64_t disk = s->now->ops->disk(s->now);
    s->least = bytes > s->least ? bytes : s->least;
    s->least_disk = disk > s->least_disk ? disk : s->least_disk;
}

/* Of a device: scenes have other networks, by their length. */
static void note_need(scenes *s)
{
    tgi_sched_need now = {0}, *most = &s->need;
    if (s->now->ops->need)
        s->now->ops->need(s->now, &now);
    *most = (tgi_sched_need){.weights = tgi_larger(most->weights, now.weights),
                             .program = tgi_larger(most->program, now.program),
                             .room = tgi_larger(most->room, now.room),
                             .far = tgi_larger(most->far, now.far),
                             .up = tgi_larger(most->up, now.up),
                             .back = tgi_larger(most->back, now.back),
                             .packing = tgi_larger(most->packing, now.packing)};
}

static int by_length(const void *a, const void *b)
{
    const int64_t x = ((const int64_t *)a)[0], y = ((const int64_t *)b)[0];
    return x < y ? 1 : x > y ? -1 : 0;
}

/* Scenes of which something is made, the longest first, each length once: {length, scene}. */
static int64_t list_lengths(const scenes *s, int64_t (*list)[2])
{
    int64_t n = 0, kept = 0;
    for (int64_t i = 0; i < s->n; i++)
        if (s->from[i] < s->how.until && s->from[i + 1] > s->how.first) {
            list[n][0] = length_of(s, i);
            list[n++][1] = i;
        }
    qsort(list, (size_t)n, sizeof *list, by_length);
    for (int64_t i = 0; i < n; i++)
        if (!i || list[i][0] != list[kept - 1][0])
            memmove(list[kept++], list[i], sizeof *list);
    return kept;
}

/* The scene that takes most is opened, so that the plan is of it. */
static tg_status plan(scenes *s, tgi_err *err)
{
    int64_t(*list)[2] = tgi_malloc(TGI_TAG_PLAN, (size_t)s->n * sizeof *list);
    if (!list)
        return tgi_fail(err, TG_E_NOMEM, "no memory for %lld scenes", (long long)s->n);
    const int64_t n = list_lengths(s, list);
    tg_status st = TG_OK;
    size_t most = 0;
    for (int64_t i = 0; i < n && st == TG_OK; i++) {
        st = open_scene(s, list[i][1], err);
        if (st == TG_OK && s->now->ops->bytes(s->now) > most) {
            most = s->now->ops->bytes(s->now);
            s->largest = s->at;
        }
        if (st == TG_OK)
            note_need(s);
        if (st == TG_OK)
            note_least(s);
    }
    tgi_free(list);
    if (st == TG_OK)
        st = open_scene(s, s->largest, err);
    if (st == TG_OK)
        note_promise(s);
    return st;
}

/* ---- As a method -------------------------------------------------------------------------- */

static void scenes_free(tgi_method **m)
{
    if (!*m)
        return;
    close_scene(of(*m));
    tgi_free(of(*m)->from);
    tgi_free(*m);
    *m = NULL;
}

static size_t scenes_bytes(const tgi_method *m)
{
    const scenes *s = of_const(m);
    return tgi_sat_add(s->bytes, sizeof *s + (size_t)(s->how.n_cuts + 2) * sizeof *s->from);
}

static uint64_t scenes_disk(const tgi_method *m)
{
    return of_const(m)->disk;
}

static int scenes_shrink(tgi_method *m)
{
    scenes *s = of(m);
    if (!s->now || s->at != s->largest || s->bytes <= s->least || !s->now->ops->shrink(s->now))
        return 0;
    s->shrunk = 1;
    note_promise(s);
    return 1;
}

static double scenes_flops(const tgi_method *m)
{
    const scenes *s = of_const(m);
    return s->now ? s->now->ops->flops(s->now) : 0;
}

/* By the mean frame of the scene that is open, which plans are made with. */
static double scenes_seconds(const tgi_method *m, int64_t from, int64_t until, int least,
                             tgi_sched_pass *of_pass, void *user)
{
    const scenes *s = of_const(m);
    if (!s->now)
        return 0;
    const double all =
        s->now->ops->seconds(s->now, s->from[s->at], s->from[s->at + 1], least, of_pass, user);
    return all * (double)(until - from) / (double)length_of(s, s->at);
}

static size_t scenes_networks(const tgi_method *m)
{
    const scenes *s = of_const(m);
    return s->now && s->now->ops->networks ? s->now->ops->networks(s->now) : 0;
}

static void scenes_need(const tgi_method *m, tgi_sched_need *out)
{
    *out = of_const(m)->need;
}

static const tgi_sched_card *scenes_card(const tgi_method *m)
{
    const scenes *s = of_const(m);
    return s->now && s->now->ops->card ? s->now->ops->card(s->now) : NULL;
}

static tg_status scenes_begin(tgi_method *m, tgi_err *err)
{
    scenes *s = of(m);
    TGI_TRY(go_to(s, scene_of(s, s->how.first), err));
    return s->now->ops->begin ? s->now->ops->begin(s->now, err) : TG_OK;
}

static tg_status scenes_make(tgi_method *m, int64_t k, tgi_propagated *out, tgi_err *err)
{
    scenes *s = of(m);
    TGI_TRY(go_to(s, scene_of(s, k), err));
    return s->now->ops->make(s->now, k, out, err);
}

static int scenes_motion(tgi_method *m, int64_t k, tgi_motion *out)
{
    scenes *s = of(m);
    return s->now && s->now->ops->motion ? s->now->ops->motion(s->now, k, out) : 0;
}

static void scenes_note(const tgi_method *m, char *buf, size_t cap)
{
    const scenes *s = of_const(m);
    *buf = 0;
    if (s->now && s->now->ops->note)
        s->now->ops->note(s->now, buf, cap);
}

static void scenes_text(const tgi_method *m, char *buf, size_t cap)
{
    const scenes *s = of_const(m);
    *buf = 0;
    if (s->now)
        s->now->ops->text(s->now, buf, cap);
    const size_t n = strlen(buf);
    snprintf(buf + n, cap - n, "; %lld scene%s", (long long)s->n, s->n == 1 ? "" : "s");
}

static const tgi_method_ops ops = {.free = scenes_free,
                                   .bytes = scenes_bytes,
                                   .disk = scenes_disk,
                                   .shrink = scenes_shrink,
                                   .networks = scenes_networks,
                                   .need = scenes_need,
                                   .card = scenes_card,
                                   .flops = scenes_flops,
                                   .seconds = scenes_seconds,
                                   .begin = scenes_begin,
                                   .make = scenes_make,
                                   .motion = scenes_motion,
                                   .note = scenes_note,
                                   .text = scenes_text};

tg_status tgi_scenes_new(const tgi_scenes_how *how, tgi_method **out, tgi_err *err)
{
    scenes *s = tgi_calloc(TGI_TAG_PLAN, 1, sizeof *s);
    *out = NULL;
    if (!s)
        return tgi_fail(err, TG_E_NOMEM, "no memory for scenes");
    *s = (scenes){.base.ops = &ops, .how = *how, .at = -1};
    tgi_method *made = &s->base;
    s->from = tgi_malloc(TGI_TAG_PLAN, (size_t)(how->n_cuts + 2) * sizeof *s->from);
    tg_status st = s->from ? TG_OK
                           : tgi_fail(err, TG_E_NOMEM, "no memory for %lld scenes",
                                      (long long)how->n_cuts);
    if (st == TG_OK) {
        take_cuts(s);
        s->how.cut = NULL;
        st = plan(s, err);
    }
    if (st == TG_OK)
        *out = made;
    else
        scenes_free(&made);
    return st;
}

int64_t tgi_scenes_count(const tgi_method *m)
{
    return m && m->ops == &ops ? of_const(m)->n : 0;
}

int64_t tgi_scenes_joined(const tgi_method *m)
{
    return m && m->ops == &ops ? of_const(m)->joined : 0;
}
