/* propainter.c - see propainter.h. */
#include "engine/inpaint/propainter_inside.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "engine/base/reserve.h"
#include "engine/base/size.h"
#include "engine/inpaint/pp_cost.h"

#include <stdio.h>
#include <string.h>

#define PAGE ((size_t)4096)
#define FEWEST 4 /* items of a kind in memory: as many are held at once, and one more */

static propainter *of(tgi_method *m)
{
    return (propainter *)m;
}

static const propainter *of_const(const tgi_method *m)
{
    return (const propainter *)m;
}

/* Frames of the film, if their number is known. */
static int64_t length_of(const propainter *p)
{
    return is_endless(p) ? TGI_PP_UNKNOWN : tgi_max(1, p->how.hi - p->how.lo);
}

/* ---- Memory ------------------------------------------------------------------------------ */

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

/* One block for all networks: none of them keeps anything there while others run. */
static size_t block_bytes(const propainter *p)
{
    return tgi_larger(
        p->flow->schedule->block_bytes,
        tgi_larger(tgi_pp_complete_bytes(p->complete), tgi_pp_generate_bytes(p->generate)));
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
    all = tgi_sat_add(all, tgi_sat_add(p.need.packing, tgi_sat_add(p.need.up, p.need.back)));
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

static tg_status count_device(propainter *p, tgi_err *err)
{
    const tgi_device_ops *on = p->how.on->ops;
    TGI_TRY(tgi_schedule_device_need(on, p->flow->schedule, &p->need, err));
    TGI_TRY(tgi_schedule_device_need(on, p->complete->schedule, &p->need, err));
    return tgi_schedule_device_need(on, p->generate->schedule, &p->need, err);
}

static tg_status plan(propainter *p, tgi_err *err)
{
    const tgi_propainter_how *h = &p->how;
    const tgi_pp_at at = {h->be,      h->height, h->width,
                          h->threads, h->flags,  h->on ? &h->on->how : NULL};
    TGI_TRY(tgi_pp_check(&h->set, err));
    if (length_of(p) < 2)
        return one_frame(err);
    TGI_TRY(is_endless(p)
                ? tgi_pp_measure_any(&h->set, &p->most, err)
                : tgi_pp_measure(&h->set, length_of(p), 1, 0, length_of(p), &p->most, err));
    const tgi_pp_at motion = tgi_pp_at_on(&at, h->on ? &h->on->motion : NULL);
    TGI_TRY(tgi_pp_flow_new(h->raft, &motion, h->iterations, &p->flow, err));
    TGI_TRY(tgi_pp_complete_new(h->completion, &at, tgi_max(1, p->most.completion),
                                &p->complete, err));
    TGI_TRY(
        tgi_pp_generate_new(h->generator, &at, p->most.has, p->most.local, &p->generate, err));
    if (h->on)
        TGI_TRY(count_device(p, err));
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
    *p = (propainter){.base.ops = &ops, .how = *how, .made = TGI_PP_NO_FRAME};
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
    tgi_sched_card_close(&p->card);
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

static void let_pages_go(void *weights)
{
    tgi_weights_rest(weights);
}

static tg_status open_networks(propainter *p, tgi_err *err)
{
    tgi_schedule_memory m = {.weights = p->weights[0],
                             .block = p->block,
                             .pool = p->pool,
                             .card = &p->card,
                             .stop = p->how.stop,
                             .stop_user = p->how.user,
                             .packed = let_pages_go};
    if (p->how.on)
        TGI_TRY(
            tgi_sched_card_open(p->how.on->ops, *p->how.on->device, &p->need, &p->card, err));
    p->card.pool = p->pool;
    p->card.be = p->how.be;
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
    p->kept.next = tgi_propainter_next_use;
    p->kept.user = p;
    TGI_TRY(tgi_frame_store_open(&p->kept, p->store_room, &p->store, err));
    return open_networks(p, err);
}

/* ---- As a method ------------------------------------------------------------------------- */

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
    if (p->made == TGI_PP_NO_FRAME || (k != p->made && k != p->made + 1))
        tgi_propainter_start_at(p, k);
    p->made = TGI_PP_NO_FRAME;
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
        tgi_propainter_let_all_go(p);
        return st;
    }
    *out = (tgi_propagated){.height = p->how.height,
                            .width = p->how.width,
                            .pixels = mixed_at(p, at),
                            .hidden = p->hidden};
    return TG_OK;
}

static void propainter_need(const tgi_method *m, tgi_sched_need *out)
{
    *out = of_const(m)->need;
}

static const tgi_sched_card *propainter_card(const tgi_method *m)
{
    return &of_const(m)->card;
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
                                 tgi_sched_pass *of_pass, void *user)
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
            "found there: a smaller --ref-stride has some",
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
                                   .need = propainter_need,
                                   .card = propainter_card,
                                   .flops = propainter_flops,
                                   .seconds = propainter_seconds,
                                   .begin = propainter_begin,
                                   .make = propainter_make,
                                   .note = propainter_note,
                                   .text = propainter_text};
