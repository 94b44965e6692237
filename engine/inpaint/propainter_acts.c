/* propainter_acts.c - what a step of the order does (pp_order.h), over the frame store. */
#include "engine/inpaint/propainter_inside.h"

#include <string.h>

#define FAR TGI_PP_UNKNOWN

/* The next step that looks at frame k; FAR: there is none. */
static int64_t next_step(const propainter *p, int64_t k)
{
    const tgi_pp_settings *s = &p->how.set;
    const int64_t half = s->neighbor_length / 2, reach = reach_of(p);
    if (p->order.length <= s->subvideo_length && k % s->ref_stride == 0)
        return p->order.step;
    for (int64_t f = p->order.step; f <= k + reach; f += half) {
        const int64_t from = tgi_max(0, f - reach);
        if ((k >= f - half && k <= f + half) ||
            (k >= from && k < f + reach && (k - from) % s->ref_stride == 0))
            return f;
    }
    return FAR;
}

/* What lies ahead on the walk is needed when it comes there, what lies behind on the next one; what is no part of it still
 * later. */
int64_t tgi_propainter_next_use(void *user, int kind, int64_t frame)
{
    const propainter *p = user;
    if (kind == FEATURES)
        return next_step(p, frame);
    const int64_t ahead = p->walk.back ? p->walk.at - frame : frame - p->walk.at;
    if (frame < p->walk.lo || frame >= p->walk.hi)
        return FAR + (ahead < 0 ? -ahead : ahead);
    return ahead >= 0 ? ahead : 2 * (p->walk.hi - p->walk.lo) + ahead;
}

static void walk(propainter *p, int64_t lo, int64_t hi, int64_t at, int back)
{
    p->walk.lo = lo;
    p->walk.hi = hi;
    p->walk.at = at;
    p->walk.back = back;
}

/* ---- Items ------------------------------------------------------------------------------- */

/* Item `frame` of that kind, until the next one is asked for in the same place. */
static tg_status hold(propainter *p, int place, int kind, int64_t frame, const void **out,
                      tgi_err *err)
{
    if (p->held_kind[place] >= 0)
        tgi_frame_store_let_go(p->store, p->held_kind[place], p->held_frame[place]);
    p->held_kind[place] = -1;
    TGI_TRY(tgi_frame_store_get(p->store, kind, frame, out, err));
    p->held_kind[place] = kind;
    p->held_frame[place] = frame;
    return TG_OK;
}

void tgi_propainter_let_all_go(propainter *p)
{
    for (int i = 0; i < 2; i++) {
        if (p->held_kind[i] >= 0)
            tgi_frame_store_let_go(p->store, p->held_kind[i], p->held_frame[i]);
        p->held_kind[i] = -1;
    }
}

/* How much of what the next frame needs is there. */
static void tell(const propainter *p)
{
    const double all = p->how.tick ? of_film(p, &p->ahead, 1, operations, NULL) : 0;
    if (all > 0)
        p->how.tick(p->how.user, of_film(p, &p->done, 1, operations, NULL) / all);
}

/* ---- Acts -------------------------------------------------------------------------------- */

static tg_status read_frame(void *user, int64_t k, int *end, tgi_err *err)
{
    propainter *p = user;
    void *item;
    *end = 0;
    if (is_endless(p)) {
        TGI_TRY(p->how.reach(p->how.user, k + p->how.lo, end, err));
        if (*end)
            return TG_OK;
    }
    TGI_TRY(tgi_frame_store_add(p->store, FRAMES, k, &item, err));
    const tg_status st = p->how.frame(p->how.user, k + p->how.lo, item, p->hidden, err);
    tgi_pp_pack_bits(p->hidden, p->how.height, p->how.width, (uint8_t *)item + 3 * pixels(p));
    tgi_frame_store_let_go(p->store, FRAMES, k);
    return st;
}

static tg_status find_motion(void *user, int64_t k, tgi_err *err)
{
    propainter *p = user;
    const void *first, *second;
    void *there, *back;
    walk(p, k, k + 2, k, 0);
    tgi_pp_generate_forget(p->generate);
    TGI_TRY(hold(p, 0, FRAMES, k, &first, err));
    TGI_TRY(hold(p, 1, FRAMES, k + 1, &second, err));
    TGI_TRY(tgi_frame_store_add(p->store, FOUND, k, &there, err));
    TGI_TRY(tgi_frame_store_add(p->store, FOUND_BACK, k, &back, err));
    const tg_status st = tgi_pp_flow_find(p->flow, k, first, second, there, back, err);
    tgi_frame_store_let_go(p->store, FOUND, k);
    tgi_frame_store_let_go(p->store, FOUND_BACK, k);
    tgi_propainter_let_all_go(p);
    p->done.motions++;
    tell(p);
    return st;
}

static tg_status found_motion(void *user, int back, int64_t k, const float **out, tgi_err *err)
{
    propainter *p = user;
    const void *at;
    walk(p, p->walk.lo, p->walk.hi, k, back);
    TGI_TRY(hold(p, 0, back ? FOUND_BACK : FOUND, k, &at, err));
    *out = at;
    return TG_OK;
}

static tg_status frame_mask(void *user, int64_t k, const uint8_t **out, tgi_err *err)
{
    const propainter *p = user;
    const void *at;
    if (p->unmoved) {
        *out = p->unmoved;
        return TG_OK;
    }
    TGI_TRY(hold(user, 1, FRAMES, k, &at, err));
    *out = (const uint8_t *)at + 3 * pixels(p);
    return TG_OK;
}

static tg_status keep_motion(void *user, int back, int64_t k, const float *motion, tgi_err *err)
{
    propainter *p = user;
    const int kind = back ? COMPLETED_BACK : COMPLETED;
    void *to;
    TGI_TRY(tgi_frame_store_add(p->store, kind, k, &to, err));
    memcpy(to, motion, p->kept.kind[kind].bytes);
    tgi_frame_store_let_go(p->store, kind, k);
    return TG_OK;
}

static tg_status complete(void *user, const tgi_pp_window *w, tgi_err *err)
{
    propainter *p = user;
    const tgi_pp_complete_io io = {p, found_motion, frame_mask, keep_motion};
    tgi_pp_flow_forget(p->flow);
    tgi_pp_generate_forget(p->generate);
    walk(p, w->s, w->e + 1, w->s, 0);
    const tg_status st = tgi_pp_complete_run(p->complete, w, &io, err);
    tgi_propainter_let_all_go(p);
    p->done.windowed += (double)(w->e - w->s);
    tell(p);
    return st;
}

/* Frame t takes from the frame before it on the walk, t + 1 or t - 1. */
static tg_status fill_from(propainter *p, int64_t t, int64_t before, tgi_err *err)
{
    const int64_t h = p->how.height, w = p->how.width, pair = tgi_min(t, before);
    void *now, *then;
    const void *to, *back;
    TGI_TRY(tgi_frame_store_edit(p->store, PASSING, t, &now, err));
    TGI_TRY(tgi_frame_store_edit(p->store, PASSING, before, &then, err));
    TGI_TRY(hold(p, 0, before > t ? COMPLETED : COMPLETED_BACK, pair, &to, err));
    TGI_TRY(hold(p, 1, before > t ? COMPLETED_BACK : COMPLETED, pair, &back, err));
    const tgi_pp_updated is = tgi_pp_updated_at(now, h, w), was = tgi_pp_updated_at(then, h, w);
    tgi_pp_fill_step(&(tgi_pp_fill){p->pool, h, w, &is, &was, to, back});
    tgi_frame_store_let_go(p->store, PASSING, t);
    tgi_frame_store_let_go(p->store, PASSING, before);
    return TG_OK;
}

static tg_status begin_fill(propainter *p, int64_t t, tgi_err *err)
{
    const int64_t h = p->how.height, w = p->how.width;
    const void *frame;
    void *item;
    TGI_TRY(hold(p, 0, FRAMES, t, &frame, err));
    TGI_TRY(tgi_frame_store_add(p->store, PASSING, t, &item, err));
    const tgi_pp_updated to = tgi_pp_updated_at(item, h, w);
    tgi_pp_fill_begin(&to, frame, (const uint8_t *)frame + 3 * pixels(p), h, w);
    tgi_frame_store_let_go(p->store, PASSING, t);
    return TG_OK;
}

static tg_status keep_updated(propainter *p, int64_t t, tgi_err *err)
{
    const void *from;
    void *to;
    TGI_TRY(hold(p, 0, PASSING, t, &from, err));
    TGI_TRY(tgi_frame_store_add(p->store, UPDATED, t, &to, err));
    memcpy(to, from, p->kept.kind[UPDATED].bytes);
    tgi_frame_store_let_go(p->store, UPDATED, t);
    return TG_OK;
}

static tg_status propagate(void *user, const tgi_pp_window *w, tgi_err *err)
{
    propainter *p = user;
    for (int64_t t = w->e - 1; t >= w->s; t--) {
        walk(p, w->s, w->e, t, 1);
        TGI_TRY(begin_fill(p, t, err));
        if (t + 1 < w->e)
            TGI_TRY(fill_from(p, t, t + 1, err));
    }
    for (int64_t t = w->s; t < w->e; t++) {
        walk(p, w->s, w->e, t, 0);
        if (t > w->s)
            TGI_TRY(fill_from(p, t, t - 1, err));
        if (t >= w->keep0 && t < w->keep1)
            TGI_TRY(keep_updated(p, t, err));
    }
    tgi_propainter_let_all_go(p);
    tgi_frame_store_forget_of(p->store, PASSING, INT64_MAX);
    return TG_OK;
}

static tg_status updated(void *user, int64_t k, tgi_pp_updated *out, tgi_err *err)
{
    const propainter *p = user;
    const void *at;
    TGI_TRY(hold(user, 0, UPDATED, k, &at, err));
    *out = tgi_pp_updated_at((void *)(uintptr_t)at, p->how.height, p->how.width);
    return TG_OK;
}

static tg_status completed_motion(void *user, int back, int64_t k, const float **out,
                                  tgi_err *err)
{
    const void *at;
    TGI_TRY(hold(user, 1, back ? COMPLETED_BACK : COMPLETED, k, &at, err));
    *out = at;
    return TG_OK;
}

typedef struct mix_rows {
    const propainter *p;
    const float *picture;
    tgi_pp_updated from;
    uint8_t *to;
    int again; /* it was a neighbour before */
} mix_rows;

/* -1..1 as the published script makes 8 bits of it. */
static uint8_t level(float v)
{
    const float scaled = (v + 1) / 2 * 255;
    return scaled > 0 ? (uint8_t)tgi_min((int64_t)scaled, 255) : 0;
}

static void mix_row(void *arg, int64_t y, int thread)
{
    const mix_rows *r = arg;
    const int64_t w = r->p->how.width, n = r->p->how.height * w;
    (void)thread;
    for (int64_t x = 0; x < w; x++) {
        const int hidden = tgi_pp_bit(r->from.hidden, w, y, x);
        for (int c = 0; c < 3; c++) {
            const int64_t at = (y * w + x) * 3 + c;
            const uint8_t v =
                (uint8_t)(hidden ? level(r->picture[c * n + y * w + x]) : r->from.rgb[at]);
            r->to[at] = (uint8_t)(r->again ? (r->to[at] + v) / 2 : v);
        }
    }
}

static tg_status put(void *user, int64_t k, const float *picture, tgi_err *err)
{
    propainter *p = user;
    mix_rows r = {.p = p, .picture = picture};
    if (k < p->first)
        return TG_OK;
    TGI_TRY(updated(p, k, &r.from, err));
    r.to = mixed_at(p, k);
    r.again = p->mixed_of[k % p->pending] == k;
    tgi_parallel(p->pool, p->how.height, mix_row, &r);
    memcpy(r.to + 3 * pixels(p), r.from.hidden, mask_bytes(p));
    p->mixed_of[k % p->pending] = k;
    return TG_OK;
}

/* Held until it is released. */
static tg_status seen(void *user, int64_t k, int make, void **out, int *made, tgi_err *err)
{
    propainter *p = user;
    const void *there;
    void *room;
    *out = NULL;
    *made = tgi_frame_store_has(p->store, FEATURES, k);
    if (!*made && !make)
        return TG_OK;
    if (*made) {
        TGI_TRY(tgi_frame_store_get(p->store, FEATURES, k, &there, err));
        *out = (void *)(uintptr_t)there;
        return TG_OK;
    }
    TGI_TRY(tgi_frame_store_add(p->store, FEATURES, k, &room, err));
    *out = room;
    return TG_OK;
}

static void release(void *user, int64_t k)
{
    tgi_frame_store_let_go(((propainter *)user)->store, FEATURES, k);
}

static tg_status generate(void *user, const tgi_pp_step *s, tgi_err *err)
{
    propainter *p = user;
    if (s->hi - s->lo + s->n_refs < 2)
        return one_frame(err);
    const tgi_pp_generate_io io = {p, updated, completed_motion, seen, release, put};
    tgi_pp_flow_forget(p->flow);
    walk(p, s->lo, s->hi, s->lo, 0);
    const tg_status st = tgi_pp_generate_run(p->generate, s, &io, err);
    tgi_propainter_let_all_go(p);
    return st;
}

static void forget(void *user, tgi_pp_kept kind, int64_t k)
{
    static const int of_kind[TGI_PP_KEPT] = {FRAMES, FOUND, COMPLETED, UPDATED};
    propainter *p = user;
    tgi_frame_store_forget_of(p->store, of_kind[kind], k);
    if (kind == TGI_PP_UPDATED)
        tgi_frame_store_forget_of(p->store, FEATURES, k);
    if (kind == TGI_PP_MOTIONS)
        tgi_frame_store_forget_of(p->store, FOUND_BACK, k);
    if (kind == TGI_PP_COMPLETED)
        tgi_frame_store_forget_of(p->store, COMPLETED_BACK, k);
}

/* Begin for frame k, as if nothing came before. */
void tgi_propainter_start_at(propainter *p, int64_t k)
{
    const tgi_pp_acts acts = {.user = p,
                              .frame = read_frame,
                              .motion = find_motion,
                              .complete = complete,
                              .propagate = propagate,
                              .step = generate,
                              .forget = forget};
    tgi_frame_store_forget(p->store, INT64_MAX);
    tgi_pp_flow_forget(p->flow);
    tgi_pp_generate_forget(p->generate);
    for (int64_t i = 0; i < p->pending; i++)
        p->mixed_of[i] = TGI_PP_NO_FRAME;
    p->held_kind[0] = p->held_kind[1] = -1;
    p->first = k;
    tgi_pp_begin(&p->order, &p->how.set, &acts, is_endless(p) ? -1 : p->how.hi - p->how.lo, k);
}
