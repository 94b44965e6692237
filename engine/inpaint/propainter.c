/* propainter.c - see propainter.h. */
#include "engine/inpaint/propainter.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "engine/base/reserve.h"
#include "engine/base/size.h"
#include "engine/inpaint/pp_cost.h"

#include <stdio.h>
#include <string.h>

#define PAGE ((size_t)4096)
#define NO_FRAME INT64_MIN
#define FEWEST 4 /* items of a kind in memory: as many are held at once, and one more */
#define FAR TGI_PP_UNKNOWN

/* Kinds of the store: motions of both directions are items of their own. */
enum {
    FRAMES,
    FOUND,
    FOUND_BACK,
    COMPLETED,
    COMPLETED_BACK,
    UPDATED,
    PASSING,
    FEATURES,
    KINDS
};

typedef struct propainter {
    tgi_method base;
    tgi_propainter_how how;
    tgi_pp_extent most;
    tgi_pp_flow *flow;
    tgi_pp_complete *complete;
    tgi_pp_generate *generate;
    tgi_frame_store_how kept;
    uint8_t *unmoved; /* bits of how.moving's outside, in place of the frames'; or NULL */
    int64_t pending;  /* frames that are mixed at once */
    size_t
        planned; /* bytes that the plan itself takes: tables, and tensors in another order than their file's */
    /* While it runs. */
    tgi_reserve *reserve;
    tgi_threads *pool;
    tgi_frame_store *store;
    void *store_room, *weights[3], *block, *mixed_room, *hidden;
    int64_t *mixed_of; /* frames that lie there; tgi_free */
    tgi_pp_order order;
    struct { /* what is walked over, to know what is needed again when */
        int64_t at, lo, hi;
        int back; /* 1: from hi to lo */
    } walk;
    tgi_pp_extent ahead, done; /* of what the frame that is made next needs */
    int64_t made, first; /* the frame that was made last; the one that the order began for */
    int held_kind[2];    /* an item that an `until the next call` holds: FRAMES ..., -1 */
    int64_t held_frame[2];
} propainter;

static propainter *of(tgi_method *m)
{
    return (propainter *)m;
}

static const propainter *of_const(const tgi_method *m)
{
    return (const propainter *)m;
}

static size_t pixels(const propainter *p)
{
    return (size_t)(p->how.height * p->how.width);
}

static size_t mask_bytes(const propainter *p)
{
    return tgi_pp_mask_bytes(p->how.height, p->how.width);
}

static int is_endless(const propainter *p)
{
    return p->how.hi == TGI_PP_NO_END;
}

/* Frames of the film, if their number is known. */
static int64_t length_of(const propainter *p)
{
    return is_endless(p) ? TGI_PP_UNKNOWN : tgi_max(1, p->how.hi - p->how.lo);
}

/* Every other block looks at the second frame first: there has to be one. */
static tg_status one_frame(tgi_err *err)
{
    return tgi_fail(
        err, TG_E_ARG,
        "one frame alone: ProPainter draws from other frames; --method smooth fills "
        "a picture by itself");
}

/* Of a frame that is mixed: RGB, and bits of what it hides. */
static size_t mixed_bytes(const propainter *p)
{
    return 3 * pixels(p) + mask_bytes(p);
}

/* ---- Memory ------------------------------------------------------------------------------ */

static int64_t reach_of(const propainter *p)
{
    const tgi_pp_settings *s = &p->how.set;
    return tgi_max(s->neighbor_length / 2, tgi_pp_reach(s));
}

/* Frames whose features may be there at once lie no farther apart. */
static int64_t feature_span(const propainter *p)
{
    const int64_t whole = tgi_max(p->how.set.subvideo_length, p->most.span[TGI_PP_UPDATED]);
    return tgi_min(length_of(p), tgi_max(whole, 2 * reach_of(p)) + 2 * p->pending);
}

/* Of a frame whose features are needed again they are made once, if so many lie in memory: neighbours, and references, which
 * are as far apart as both steps and references allow. */
static int64_t features_of_use(const propainter *p)
{
    const tgi_pp_settings *s = &p->how.set;
    int64_t a = s->neighbor_length / 2, b = s->ref_stride;
    while (b) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return tgi_max(p->generate->most_local, p->pending + 2 * reach_of(p) / a + 2) + 1;
}

static void plan_store(propainter *p)
{
    const tgi_pp_extent *x = &p->most;
    const size_t motion = pixels(p) * 2 * sizeof(float),
                 updated = tgi_pp_updated_bytes(p->how.height, p->how.width);
    const struct {
        size_t bytes;
        int64_t span;
    } all[KINDS] = {{3 * pixels(p) + mask_bytes(p), x->span[TGI_PP_FRAMES]},
                    {motion, x->span[TGI_PP_MOTIONS]},
                    {motion, x->span[TGI_PP_MOTIONS]},
                    {motion, x->span[TGI_PP_COMPLETED]},
                    {motion, x->span[TGI_PP_COMPLETED]},
                    {updated, x->span[TGI_PP_UPDATED]},
                    {updated, x->propagation},
                    {tgi_pp_seen_bytes(p->generate), feature_span(p)}};
    p->kept = (tgi_frame_store_how){.n_kinds = KINDS, .scratch = p->how.scratch};
    for (int i = 0; i < KINDS; i++) {
        const int64_t span = tgi_max(1, all[i].span);
        p->kept.kind[i] = (tgi_frame_kind){all[i].bytes, span, (int)span, 0};
    }
    tgi_frame_kind *f = &p->kept.kind[FEATURES];
    f->drop = 1;
    f->slots = (int)tgi_min(f->span,
                            p->how.no_cache ? p->generate->most_local + 1 : features_of_use(p));
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* One block for all networks: none of them keeps anything there while others run. */
static size_t block_bytes(const propainter *p)
{
    return larger(p->flow->schedule->block_bytes, larger(tgi_pp_complete_bytes(p->complete),
                                                         tgi_pp_generate_bytes(p->generate)));
}

void tgi_propainter_networks(const tgi_method *m, size_t *block, size_t *weights)
{
    const propainter *p = of_const(m);
    *block = block_bytes(p);
    *weights = p->flow->schedule->weight_bytes + p->complete->schedule->weight_bytes +
               p->generate->schedule->weight_bytes;
}

static size_t propainter_networks(const tgi_method *m)
{
    size_t block, weights;
    tgi_propainter_networks(m, &block, &weights);
    return block + weights;
}

static int list_blocks(propainter *p, tgi_want want[TGI_RESERVE_MAX_BLOCKS])
{
    const tgi_want all[] = {
        {"store", tgi_frame_store_bytes(&p->kept), &p->store_room},
        {"weights of motion", p->flow->schedule->weight_bytes, &p->weights[0]},
        {"weights of completion", p->complete->schedule->weight_bytes, &p->weights[1]},
        {"weights of the generator", p->generate->schedule->weight_bytes, &p->weights[2]},
        {"networks", block_bytes(p), &p->block},
        {"mixed", (size_t)p->pending * mixed_bytes(p), &p->mixed_room},
        {"hidden", pixels(p), &p->hidden}};
    memcpy(want, all, sizeof all);
    return (int)(sizeof all / sizeof all[0]);
}

static size_t propainter_bytes(const tgi_method *m)
{
    tgi_want want[TGI_RESERVE_MAX_BLOCKS];
    propainter p = *of_const(m);
    size_t all = p.planned + tgi_schedule_tables(p.flow->schedule) +
                 tgi_schedule_tables(p.complete->schedule) +
                 tgi_schedule_tables(p.generate->schedule);
    for (int i = list_blocks(&p, want) - 1; i >= 0; i--)
        all = tgi_sat_add(all, tgi_align_size(want[i].bytes, 64));
    return tgi_sat_add(all, PAGE); /* it ends on a border of a page */
}

static uint64_t propainter_disk(const tgi_method *m)
{
    const propainter *p = of_const(m);
    return tgi_frame_store_disk(&p->kept) + tgi_frame_store_disk(&p->complete->kept);
}

/* Fewer items of every kind lie in memory. */
static int propainter_shrink(tgi_method *m)
{
    propainter *p = of(m);
    int *features = &p->kept.kind[FEATURES].slots;
    const int fewest = p->generate->most_local + 1;
    if (p->reserve)
        return 0;
    if (*features > fewest) { /* they are made again */
        *features = (int)tgi_max(fewest, *features * 3 / 4);
        return 1;
    }
    if (tgi_pp_seen_shrink(p->generate)) {
        p->kept.kind[FEATURES].bytes = tgi_pp_seen_bytes(p->generate);
        return 1;
    }
    if (!p->how.scratch)
        return 0;
    const int most = *features;
    *features = 0; /* they are as few as can be */
    const int fewer = tgi_frame_store_shrink(&p->kept, FEWEST);
    *features = most;
    return tgi_pp_complete_shrink(p->complete, p->how.scratch) || fewer;
}

/* ---- Open -------------------------------------------------------------------------------- */

static const tgi_method_ops ops; /* below */

/* Where motions are completed in every frame. */
static tg_status mark_unmoved(propainter *p, tgi_err *err)
{
    const tgi_canvas *c = &p->how.moving;
    const int64_t row = (p->how.width + 7) / 8;
    if (!c->height)
        return TG_OK;
    p->unmoved = tgi_malloc(TGI_TAG_PLAN, mask_bytes(p));
    if (!p->unmoved)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a mask of motions");
    memset(p->unmoved, 0xff, mask_bytes(p));
    for (int64_t y = c->y0; y < c->y1; y++)
        for (int64_t x = c->x0; x < c->x1; x++)
            p->unmoved[y * row + x / 8] &= (uint8_t) ~(1u << x % 8);
    return TG_OK;
}

static tg_status plan(propainter *p, tgi_err *err)
{
    const tgi_propainter_how *h = &p->how;
    const tgi_pp_at at = {h->be, h->height, h->width, h->threads, h->flags};
    TGI_TRY(tgi_pp_check(&h->set, err));
    if (length_of(p) < 2)
        return one_frame(err);
    TGI_TRY(is_endless(p)
                ? tgi_pp_measure_any(&h->set, &p->most, err)
                : tgi_pp_measure(&h->set, length_of(p), 1, 0, length_of(p), &p->most, err));
    TGI_TRY(tgi_pp_flow_new(h->raft, &at, h->iterations, &p->flow, err));
    TGI_TRY(tgi_pp_complete_new(h->completion, &at, tgi_max(1, p->most.completion),
                                &p->complete, err));
    TGI_TRY(
        tgi_pp_generate_new(h->generator, &at, p->most.has, p->most.local, &p->generate, err));
    p->pending = h->set.neighbor_length / 2 * 2 + 1;
    plan_store(p);
    return mark_unmoved(p, err);
}

static void propainter_free(tgi_method **m);

tg_status tgi_propainter_new(const tgi_propainter_how *how, tgi_method **out, tgi_err *err)
{
    propainter *p = tgi_calloc(TGI_TAG_PLAN, 1, sizeof *p);
    if (!p)
        return tgi_fail(err, TG_E_NOMEM, "no memory for what is removed");
    *p = (propainter){.base.ops = &ops, .how = *how, .made = NO_FRAME};
    *out = &p->base;
    const size_t before = tgi_mem_held();
    const tg_status st = plan(p, err);
    const size_t after = tgi_mem_held();
    p->planned = after > before ? after - before : 0;
    if (st != TG_OK)
        propainter_free(out);
    return st;
}

static void stop_running(propainter *p)
{
    if (p->flow)
        tgi_pp_flow_close(p->flow);
    if (p->complete)
        tgi_pp_complete_close(p->complete);
    if (p->generate)
        tgi_pp_generate_close(p->generate);
    tgi_frame_store_close(&p->store);
    tgi_threads_close(&p->pool);
    tgi_reserve_close(&p->reserve);
    tgi_free(p->mixed_of);
    p->mixed_of = NULL;
}

static void propainter_free(tgi_method **m)
{
    if (!*m)
        return;
    propainter *p = of(*m);
    stop_running(p);
    tgi_pp_flow_free(&p->flow);
    tgi_pp_complete_free(&p->complete);
    tgi_pp_generate_free(&p->generate);
    tgi_free(p->unmoved);
    tgi_free(p);
    *m = NULL;
}

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
static int64_t next_use(void *user, int kind, int64_t frame)
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

static void let_pages_go(void *weights)
{
    tgi_weights_rest(weights);
}

static tg_status open_networks(propainter *p, tgi_err *err)
{
    tgi_schedule_memory m = {.weights = p->weights[0],
                             .block = p->block,
                             .pool = p->pool,
                             .stop = p->how.stop,
                             .stop_user = p->how.user,
                             .packed = let_pages_go};
    m.packed_user = (void *)(uintptr_t)p->how.raft;
    TGI_TRY(tgi_pp_flow_open(p->flow, &m, err));
    m.weights = p->weights[1];
    m.packed_user = (void *)(uintptr_t)p->how.completion;
    TGI_TRY(tgi_pp_complete_open(p->complete, &m, err));
    m.weights = p->weights[2];
    m.packed_user = (void *)(uintptr_t)p->how.generator;
    return tgi_pp_generate_open(p->generate, &m, err);
}

static tg_status take_memory(propainter *p, tgi_err *err)
{
    tgi_want want[TGI_RESERVE_MAX_BLOCKS];
    TGI_TRY(tgi_threads_open(p->how.threads, &p->pool, err));
    TGI_TRY(tgi_reserve_all(want, list_blocks(p, want), 0, &p->reserve, err));
    p->mixed_of = tgi_calloc(TGI_TAG_PLAN, (size_t)p->pending, sizeof *p->mixed_of);
    if (!p->mixed_of)
        return tgi_fail(err, TG_E_NOMEM, "no memory for what is removed");
    p->kept.next = next_use;
    p->kept.user = p;
    TGI_TRY(tgi_frame_store_open(&p->kept, p->store_room, &p->store, err));
    return open_networks(p, err);
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

static void let_all_go(propainter *p)
{
    for (int i = 0; i < 2; i++) {
        if (p->held_kind[i] >= 0)
            tgi_frame_store_let_go(p->store, p->held_kind[i], p->held_frame[i]);
        p->held_kind[i] = -1;
    }
}

static double operations(void *user, const tgi_tiling *t)
{
    (void)user;
    return t->flops;
}

static double of_film(const propainter *p, const tgi_pp_extent *x, double masked,
                      double (*of_pass)(void *user, const tgi_tiling *t), void *user)
{
    return tgi_pp_cost(&(tgi_pp_networks){p->flow, p->complete, p->generate}, x, masked,
                       of_pass, user);
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
    TGI_TRY(hold(p, 0, FRAMES, k, &first, err));
    TGI_TRY(hold(p, 1, FRAMES, k + 1, &second, err));
    TGI_TRY(tgi_frame_store_add(p->store, FOUND, k, &there, err));
    TGI_TRY(tgi_frame_store_add(p->store, FOUND_BACK, k, &back, err));
    const tg_status st = tgi_pp_flow_find(p->flow, k, first, second, there, back, err);
    tgi_frame_store_let_go(p->store, FOUND, k);
    tgi_frame_store_let_go(p->store, FOUND_BACK, k);
    let_all_go(p);
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
    walk(p, w->s, w->e + 1, w->s, 0);
    const tg_status st = tgi_pp_complete_run(p->complete, w, &io, err);
    let_all_go(p);
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
    let_all_go(p);
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

static uint8_t *mixed_at(const propainter *p, int64_t k)
{
    return (uint8_t *)p->mixed_room + (size_t)(k % p->pending) * mixed_bytes(p);
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
            r->to[at] = r->again ? (uint8_t)((r->to[at] + v) / 2) : v;
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
static tg_status seen(void *user, int64_t k, void **out, int *made, tgi_err *err)
{
    propainter *p = user;
    const void *there;
    void *room;
    *made = tgi_frame_store_has(p->store, FEATURES, k);
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
    let_all_go(p);
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

/* ---- As a method ------------------------------------------------------------------------- */

/* Begin for frame k, as if nothing came before. */
static void start_at(propainter *p, int64_t k)
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
    for (int64_t i = 0; i < p->pending; i++)
        p->mixed_of[i] = NO_FRAME;
    p->held_kind[0] = p->held_kind[1] = -1;
    p->first = k;
    tgi_pp_begin(&p->order, &p->how.set, &acts, is_endless(p) ? -1 : p->how.hi - p->how.lo, k);
}

static tg_status begin(propainter *p, tgi_err *err)
{
    if (p->store)
        return TG_OK;
    tgi_mem_trim();
    const tg_status st = take_memory(p, err);
    if (st != TG_OK)
        stop_running(p);
    return st;
}

/* Frame k lies in the room of those that are mixed. */
static tg_status make_at(propainter *p, int64_t k, tgi_err *err)
{
    if (p->made == NO_FRAME || (k != p->made && k != p->made + 1))
        start_at(p, k);
    p->made = NO_FRAME;
    p->done = p->ahead = (tgi_pp_extent){0};
    if (p->how.tick && !is_endless(p))
        tgi_pp_ahead(&p->order, k, &p->ahead);
    TGI_TRY(tgi_pp_until(&p->order, k, err));
    if (p->mixed_of[k % p->pending] != k)
        return tgi_fail(err, TG_E_INTERNAL, "frame %lld was not made", (long long)k);
    tgi_pp_unpack_bits(mixed_at(p, k) + 3 * pixels(p), p->how.height, p->how.width, p->hidden);
    p->made = k;
    return TG_OK;
}

static tg_status propainter_make(tgi_method *m, int64_t k, tgi_propagated *out, tgi_err *err)
{
    propainter *p = of(m);
    const int64_t at = k - p->how.lo;
    TGI_TRY(begin(p, err));
    const tg_status st = make_at(p, at, err);
    if (st != TG_OK) {
        let_all_go(p);
        return st;
    }
    *out = (tgi_propagated){.height = p->how.height,
                            .width = p->how.width,
                            .pixels = mixed_at(p, at),
                            .hidden = p->hidden};
    return TG_OK;
}

static tg_status propainter_begin(tgi_method *m, tgi_err *err)
{
    return begin(of(m), err);
}

static double propainter_flops(const tgi_method *m)
{
    const propainter *p = of_const(m);
    return of_film(p, &p->most, 1, operations, NULL) / (double)tgi_max(1, p->most.frames);
}

static double propainter_seconds(const tgi_method *m, int64_t from, int64_t until, int least,
                                 double (*of_pass)(void *user, const tgi_tiling *t), void *user)
{
    const propainter *p = of_const(m);
    const double masked = least ? 0 : 1;
    tgi_pp_extent x;
    tgi_err e = {0};
    /* A part takes what is around it, too. */
    if (!is_endless(p) && tgi_pp_measure(&p->how.set, length_of(p), 1, from - p->how.lo,
                                         until - p->how.lo, &x, &e) == TG_OK)
        return of_film(p, &x, masked, of_pass, user);
    return of_film(p, &p->most, masked, of_pass, user) * (double)(until - from) /
           (double)tgi_max(1, p->most.frames);
}

/* A film through a pipe is as long as it may be. */
static void propainter_note(const tgi_method *m, char *buf, size_t cap)
{
    const propainter *p = of_const(m);
    *buf = 0;
    if (p->most.alone)
        snprintf(
            buf, cap,
            "%lld of %lld steps have no reference frame, so what only far frames show is not "
            "found: a --ref-stride of at most half of --subvideo-length has some",
            (long long)p->most.alone, (long long)p->most.steps);
}

static void propainter_text(const tgi_method *m, char *buf, size_t cap)
{
    const propainter *p = of_const(m);
    const tgi_frame_kind *k = p->kept.kind;
    snprintf(buf, cap,
             "%lld frames, %lld completed motions, %lld updated frames (%d, %d, %d of them in "
             "memory), networks",
             (long long)k[FRAMES].span, (long long)k[COMPLETED].span,
             (long long)k[UPDATED].span, k[FRAMES].slots, k[COMPLETED].slots, k[UPDATED].slots);
}

static const tgi_method_ops ops = {.free = propainter_free,
                                   .bytes = propainter_bytes,
                                   .disk = propainter_disk,
                                   .shrink = propainter_shrink,
                                   .networks = propainter_networks,
                                   .flops = propainter_flops,
                                   .seconds = propainter_seconds,
                                   .begin = propainter_begin,
                                   .make = propainter_make,
                                   .note = propainter_note,
                                   .text = propainter_text};
