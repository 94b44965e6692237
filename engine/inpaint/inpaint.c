/* inpaint.c - see inpaint.h. */
#include "engine/inpaint/inpaint.h"

#include "engine/base/arith.h"
#include "engine/base/cancel.h"
#include "engine/base/mem.h"
#include "engine/inpaint/propagate.h"
#include "engine/inpaint/propainter.h"
#include "engine/inpaint/rgb8.h"
#include "engine/inpaint/scenes.h"
#include "engine/inpaint/show.h"
#include "io/film_out.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define NO_FRAME INT64_MIN
#define RECENT 8 /* frames that are made and not yet written, usually */

typedef struct inpaint {
    tgi_source base;
    tgi_source *inner;
    tgi_inpaint_how how;
    tgi_on_device on;           /* ops NULL: the processor computes */
    const tgi_image_info *info; /* the inner one's */
    tgi_method *method;
    pthread_mutex_t lock;
    int64_t made; /* the frame that `now` is; NO_FRAME */
    atomic_llong all_hidden;
    tgi_propagated now;    /* of the method's size */
    const void *picture;   /* what is read, of the film's size */
    const uint8_t *hidden; /* the film's mask */
    void *
        form; /* a frame of the method's size in the film's form, where the method has another */
    void *looked;     /* the same, as it was read, and what it hides: for previews */
    tgi_shown *shown; /* NULL: nobody looks */
    struct {
        void (*fn)(void *user, double fraction);
        void *user;
        pthread_t thread;
    } watch;
    struct { /* for tgi_inpaint_put, another thread's: masks are read by one at a time */
        pthread_mutex_t lock;
        uint8_t *hidden, *stored; /* upright; as the film stores it */
        uint8_t *bits;      /* RECENT: of the frames that were made last, a bit for a pixel */
        int64_t of[RECENT]; /* their numbers; NO_FRAME */
    } put;
} inpaint;

static inpaint *inpaint_of(const tgi_source *s);

static size_t plane(const inpaint *p)
{
    return (size_t)(p->info->height * p->info->width);
}

static size_t pixel_bytes(const inpaint *p)
{
    return (size_t)p->info->samples * tgi_dtype_size(p->info->dtype);
}

/* Pixels of the method's frames. */
static size_t method_plane(const inpaint *p)
{
    return (size_t)(p->how.height * p->how.width);
}

/* 1: the method's frames are RGB of 8 bits, the film's are not. */
static int is_converted(const inpaint *p)
{
    return p->how.weights[0] && (p->info->samples != 3 || p->info->dtype != TG_DTYPE_U8);
}

static size_t form_bytes(const inpaint *p)
{
    return is_converted(p) ? method_plane(p) * pixel_bytes(p) : 0;
}

/* ---- What the method asks for ------------------------------------------------------------- */

static tg_status read_mask(inpaint *p, int64_t k, uint8_t *hidden, tgi_err *err)
{
    pthread_mutex_lock(&p->put.lock);
    const tg_status st = tgi_masks_read(p->how.masks, k, hidden, err);
    pthread_mutex_unlock(&p->put.lock);
    return st;
}

/* Part of a frame of the film, and what the frame hides. */
static tg_status read_film(inpaint *p, int64_t k, const tgi_crop *c, void *pixels,
                           uint8_t *hidden, tgi_err *err)
{
    TGI_TRY(tgi_source_read(p->inner, 0, k, 0, p->info->samples, c->y, c->y + c->height, c->x,
                            c->x + c->width, pixels, (size_t)c->width * pixel_bytes(p),
                            TGI_INTERLEAVED, err));
    return read_mask(p, k, hidden, err);
}

/* Of the method's size, in the film's form. */
static tg_status read_own(inpaint *p, int64_t k, void *pixels, uint8_t *hidden, tgi_err *err)
{
    void *large;
    uint8_t *large_hidden;
    const tgi_crop all = {.height = p->info->height, .width = p->info->width};
    if (!p->how.at_size)
        return read_film(p, k, &all, pixels, hidden, err);
    const tgi_crop *part = tgi_at_size_room(p->how.at_size, &large, &large_hidden);
    TGI_TRY(read_film(p, k, part, large, large_hidden, err));
    tgi_at_size_smaller(p->how.at_size, pixels, hidden);
    return TG_OK;
}

static tg_status read_frame(void *user, int64_t k, void *pixels, uint8_t *hidden, tgi_err *err)
{
    inpaint *p = user;
    TGI_TRY(tgi_check_cancel(err));
    TGI_TRY(read_own(p, k, is_converted(p) ? p->form : pixels, hidden, err));
    if (is_converted(p))
        tgi_rgb8_from(p->info->samples, p->info->dtype, p->form, method_plane(p), pixels);
    return p->how.small ? tgi_masks_read(p->how.small, k, hidden, err) : TG_OK;
}

/* Of a film that comes through a pipe: wait for frame k. */
static tg_status reach_frame(void *user, int64_t k, int *end, tgi_err *err)
{
    inpaint *p = user;
    int64_t ended = INT64_MAX;
    TGI_TRY(tgi_check_cancel(err));
    TGI_TRY(tgi_film_source_reach(p->inner, k, &ended, err));
    *end = k >= ended;
    return TG_OK;
}

static tg_status check_stop(void *user, tgi_err *err)
{
    (void)user;
    return tgi_check_cancel(err);
}

static void tick(void *user, double fraction)
{
    const inpaint *p = user;
    if (p->watch.fn && pthread_equal(pthread_self(), p->watch.thread))
        p->watch.fn(p->watch.user, fraction);
}

void tgi_inpaint_watch(tgi_source *s, void (*fn)(void *user, double fraction), void *user)
{
    inpaint *p = inpaint_of(s);
    if (!p)
        return;
    p->watch.user = user;
    p->watch.thread = pthread_self();
    p->watch.fn = fn;
}

/* ---- Masks of frames that are written soon ------------------------------------------------ */

static size_t bits_bytes(const inpaint *p)
{
    return (plane(p) + 7) / 8;
}

static uint8_t *bits_of(const inpaint *p, int64_t k)
{
    return p->put.bits + (size_t)(((k % RECENT) + RECENT) % RECENT) * bits_bytes(p);
}

static void remember_mask(inpaint *p, int64_t k)
{
    pthread_mutex_lock(&p->put.lock);
    uint8_t *bits = bits_of(p, k);
    memset(bits, 0, bits_bytes(p));
    for (size_t i = 0; i < plane(p); i++)
        bits[i / 8] |= (uint8_t)((p->hidden[i] != 0) << i % 8);
    p->put.of[((k % RECENT) + RECENT) % RECENT] = k;
    pthread_mutex_unlock(&p->put.lock);
}

/* Of a film of masks an earlier frame would be looked for from a key frame on. */
static tg_status recall_mask(inpaint *p, int64_t k, tgi_err *err)
{
    tg_status st = TG_OK;
    pthread_mutex_lock(&p->put.lock);
    const uint8_t *bits = bits_of(p, k);
    if (p->put.of[((k % RECENT) + RECENT) % RECENT] != k)
        st = tgi_masks_read(p->how.masks, k, p->put.hidden, err);
    else
        for (size_t i = 0; i < plane(p); i++)
            p->put.hidden[i] = bits[i / 8] >> i % 8 & 1;
    pthread_mutex_unlock(&p->put.lock);
    return st;
}

static void free_method(inpaint *p)
{
    if (p->method)
        p->method->ops->free(&p->method);
}

/* ---- As a source ------------------------------------------------------------------------- */

/* Frame k is made. Under the lock. */
static tg_status make(inpaint *p, int64_t k, tgi_err *err)
{
    if (!p->method)
        return tgi_fail(err, TG_E_INTERNAL, "what is removed was not planned");
    if (p->made == k)
        return TG_OK;
    p->made = NO_FRAME;
    if (tgi_film_source_is_stream(p->inner)) {
        int end = 0;
        TGI_TRY(reach_frame(p, k, &end, err));
        if (end) /* the film's own words for it */
            return tgi_source_read(p->inner, 0, k, 0, 1, 0, 1, 0, 1, p->put.hidden,
                                   sizeof(uint16_t), TGI_INTERLEAVED, err);
    }
    TGI_TRY(p->method->ops->make(p->method, k, &p->now, err));
    if (is_converted(p)) {
        tgi_rgb8_to(p->info->samples, p->info->dtype, p->now.pixels, method_plane(p), p->form);
        p->now.pixels = p->form;
    }
    p->picture = p->now.pixels;
    p->hidden = p->now.hidden;
    if (p->how.at_size)
        TGI_TRY(tgi_at_size_compose(p->how.at_size, k, &p->now, &p->picture, &p->hidden, err));
    p->made = k;
    atomic_fetch_add(&p->all_hidden, p->now.all_hidden);
    remember_mask(p, k);
    return tgi_shown_put(p->shown, k, p->picture, err);
}

static tg_status inpaint_read(tgi_source *base, int thread, int64_t k, int s0, int s1,
                              int64_t y0, int64_t y1, int64_t x0, int64_t x1, void *dst,
                              size_t row_pitch, size_t sample_pitch, tgi_err *err)
{
    inpaint *p = inpaint_of(base);
    (void)thread;
    pthread_mutex_lock(&p->lock);
    const tg_status st = make(p, k, err);
    const char *pixels = st == TG_OK ? p->picture : NULL;
    for (int64_t y = y0; pixels && y < y1; y++)
        tgi_pick_row(p->info->dtype, p->info->samples,
                     pixels + (size_t)(y * p->info->width) * pixel_bytes(p), s0, s1, x0, x1,
                     (char *)dst + (size_t)(y - y0) * row_pitch, sample_pitch);
    pthread_mutex_unlock(&p->lock);
    return st;
}

static const tgi_image_info *inpaint_info(const tgi_source *s)
{
    return inpaint_of(s)->info;
}

static void inpaint_close(tgi_source **base)
{
    inpaint *p = (inpaint *)*base;
    if (!p)
        return;
    free_method(p);
    for (int i = 0; i < 3; i++)
        tgi_weights_close(&p->how.weights[i]);
    tgi_masks_close(&p->how.masks);
    tgi_graph_free(&p->how.network);
    tgi_at_size_free(&p->how.at_size);
    tgi_cuts_free(&p->how.cuts);
    if (p->how.behind)
        tgi_source_close(&p->how.behind);
    if (p->inner)
        tgi_source_close(&p->inner);
    tgi_masks_close(&p->how.small);
    tgi_free(p->form);
    tgi_free(p->looked);
    tgi_free(p->put.hidden);
    tgi_shown_free(&p->shown);
    pthread_mutex_destroy(&p->lock);
    pthread_mutex_destroy(&p->put.lock);
    tgi_free(p);
    *base = NULL;
}

/* Page tables of what is populated are measured as ours. */
size_t tgi_inpaint_bytes(const tgi_source *s)
{
    const inpaint *p = inpaint_of(s);
    if (!p)
        return 0;
    const size_t method = p->method ? p->method->ops->bytes(p->method) : 0;
    return tgi_sat_add(tgi_sat_add(method, method / 512 + ((size_t)64 << 10)),
                       tgi_masks_bytes(p->how.masks) + 2 * plane(p) + RECENT * bits_bytes(p) +
                           (p->how.at_size ? tgi_at_size_bytes(p->how.at_size) : 0) +
                           (p->how.small ? tgi_masks_bytes(p->how.small) : 0) + form_bytes(p) +
                           tgi_shown_bytes(p->shown));
}

static size_t inpaint_codec_bytes(const tgi_source *s)
{
    const inpaint *p = inpaint_of(s);
    const tgi_source *behind = p->how.behind;
    const size_t films = tgi_sat_add(p->inner->ops->codec_bytes(p->inner),
                                     behind ? behind->ops->codec_bytes(behind) : 0);
    return tgi_sat_add(tgi_sat_add(films, sizeof *p), tgi_inpaint_bytes(s));
}

static const tgi_source *inpaint_inner(const tgi_source *s)
{
    return inpaint_of(s)->inner;
}

static const tgi_source_ops inpaint_ops = {.format = "inpainted",
                                           .fuzzed = TGI_FUZZED,
                                           .info = inpaint_info,
                                           .read = inpaint_read,
                                           .close = inpaint_close,
                                           .codec_bytes = inpaint_codec_bytes,
                                           .decoded_bytes = tgi_inner_decoded,
                                           .file = tgi_inner_file,
                                           .held = tgi_inner_held,
                                           .inner = inpaint_inner};

static inpaint *inpaint_of(const tgi_source *s)
{
    return s && s->ops == &inpaint_ops ? (inpaint *)(uintptr_t)s : NULL;
}

/* ---- Open -------------------------------------------------------------------------------- */

static tg_status check_frames(const tgi_image_info *i, tgi_err *err)
{
    int axes = 0;
    for (int k = 0; k < i->n_axes; k++)
        if (!strchr("YXS", i->axes[k]) && i->shape[k] > 1)
            axes += i->axes[k] == 'C' ? 2 : 1;
    if (axes > 1 || i->samples > 4)
        return tgi_fail(err, TG_E_ARG,
                        "the input (axes %s) is no row of frames, grey or RGB: something is "
                        "removed from films, and from pictures that follow each other",
                        i->axes);
    if (i->meta.stored_as != TGI_STORED_LIGHT)
        return tgi_fail(err, TG_E_UNSUPPORTED,
                        "the pixels are stored as %s, whose numbers cannot be mixed: convert "
                        "them to grey or RGB first",
                        tgi_stored_name(i->meta.stored_as));
    if (i->dtype != TG_DTYPE_U8 && i->dtype != TG_DTYPE_U16)
        return tgi_fail(err, TG_E_UNSUPPORTED,
                        "the input has pixels of %s; frames have uint8 or uint16",
                        tgi_dtype_name(i->dtype));
    return TG_OK;
}

static tg_status plan_propagate(inpaint *p, int64_t lo, int64_t hi, tgi_method **out,
                                tgi_err *err)
{
    const tgi_propagate_how how = {.height = p->how.height,
                                   .width = p->how.width,
                                   .samples = p->info->samples,
                                   .dtype = p->info->dtype,
                                   .lo = lo,
                                   .hi = hi,
                                   .reach = p->how.reach,
                                   .threads = p->how.threads,
                                   .network = p->how.network,
                                   .be = p->how.be,
                                   .on = p->on.ops ? &p->on : NULL,
                                   .scratch = p->how.scratch,
                                   .user = p,
                                   .frame = read_frame,
                                   .tick = tick,
                                   .stop = check_stop};
    tgi_propagate *method;
    TGI_TRY(tgi_propagate_new(&how, &method, err));
    *out = tgi_propagate_method(method);
    return TG_OK;
}

static tg_status plan_propainter(inpaint *p, int64_t lo, int64_t hi, tgi_method **out,
                                 tgi_err *err)
{
    tgi_propainter_how how = {.height = p->how.height,
                              .width = p->how.width,
                              .lo = lo,
                              .hi = hi,
                              .set = p->how.set,
                              .iterations = p->how.iterations,
                              .no_cache = p->how.no_cache,
                              .threads = p->how.threads,
                              .flags = p->on.ops ? p->on.flags : p->how.flags,
                              .on = p->on.ops ? &p->on : NULL,
                              .raft = p->how.weights[0],
                              .completion = p->how.weights[1],
                              .generator = p->how.weights[2],
                              .be = p->how.be,
                              .scratch = p->how.scratch,
                              .user = p,
                              .frame = read_frame,
                              .tick = tick,
                              .reach = reach_frame,
                              .stop = check_stop};
    if (p->how.canvas.height) {
        const tgi_canvas c = tgi_canvas_at(&p->how.canvas, p->how.height, p->how.width);
        how.moving = tgi_canvas_moving(&c);
    }
    if (how.height < TGI_PP_SMALLEST || how.width < TGI_PP_SMALLEST)
        return tgi_fail(err, TG_E_ARG,
                        "frames of %lld x %lld: ProPainter takes sides of %d pixels or more; "
                        "--width and --height let it work at a larger size",
                        (long long)how.width, (long long)how.height, TGI_PP_SMALLEST);
    return tgi_propainter_new(&how, out, err);
}

static tg_status plan_show(inpaint *p, tgi_err *err)
{
    const tgi_show_how how = {.height = p->how.height,
                              .width = p->how.width,
                              .samples = p->info->samples,
                              .dtype = p->info->dtype,
                              .user = p,
                              .frame = read_frame};
    return tgi_show_new(&how, &p->method, err);
}

/* Of frames [lo, hi) alone. */
static tg_status open_method(void *user, int64_t lo, int64_t hi, tgi_method **out, tgi_err *err)
{
    inpaint *p = user;
    return p->how.weights[0] ? plan_propainter(p, lo, hi, out, err)
                             : plan_propagate(p, lo, hi, out, err);
}

static tg_status plan_method(inpaint *p, tgi_err *err)
{
    int64_t lo = 0, hi = p->info->n_planes;
    tgi_film_source_around(p->inner, &lo, &hi);
    if (!tgi_masks_is_whole(p->how.masks)) {
        lo = 0;
        hi = p->info->n_planes;
    }
    if (tgi_film_source_is_stream(p->inner))
        hi = TGI_PP_NO_END;
    if (p->how.shows)
        return plan_show(p, err);
    if (!p->how.cuts.n)
        return open_method(p, lo, hi, &p->method, err);
    const tgi_scenes_how how = {.lo = lo,
                                .hi = hi,
                                .first = 0,
                                .until = p->info->n_planes,
                                .cut = p->how.cuts.first,
                                .n_cuts = p->how.cuts.n,
                                .least = p->how.weights[0] ? 2 : 1,
                                .user = p,
                                .open = open_method};
    return tgi_scenes_new(&how, &p->method, err);
}

static tg_status open_parts(inpaint *p, tgi_err *err)
{
    TGI_TRY(check_frames(p->info, err));
    TGI_TRY(plan_method(p, err));
    p->put.hidden = tgi_malloc(TGI_TAG_IO, 2 * plane(p) + RECENT * bits_bytes(p));
    TGI_TRY(tgi_shown_new(p->info, &p->how.shown, &p->shown, err));
    p->form = form_bytes(p) ? tgi_malloc(TGI_TAG_IO, form_bytes(p)) : NULL;
    if (!p->put.hidden || (form_bytes(p) && !p->form))
        return tgi_fail(err, TG_E_NOMEM, "no memory for a mask");
    p->put.stored = p->put.hidden + plane(p);
    p->put.bits = p->put.stored + plane(p);
    for (int i = 0; i < RECENT; i++)
        p->put.of[i] = NO_FRAME;
    return TG_OK;
}

tg_status tgi_inpaint_open(tgi_source *inner, const tgi_inpaint_how *how, tgi_source **out,
                           tgi_err *err)
{
    inpaint *p = tgi_calloc(TGI_TAG_IO, 1, sizeof *p);
    if (!p)
        return tgi_fail(err, TG_E_NOMEM, "no memory for what is removed");
    *p = (inpaint){.base.ops = &inpaint_ops,
                   .inner = inner,
                   .how = *how,
                   .info = inner->ops->info(inner),
                   .made = NO_FRAME};
    pthread_mutex_init(&p->lock, NULL);
    pthread_mutex_init(&p->put.lock, NULL);
    tgi_source *made = &p->base;
    const tg_status st = open_parts(p, err);
    if (st == TG_OK) {
        *out = made;
        return TG_OK;
    }
    p->inner = p->how.behind = NULL; /* they stay the caller's */
    p->how.masks = p->how.small = NULL;
    p->how.at_size = NULL;
    p->how.cuts = (tgi_cuts){0};
    p->how.network = NULL;
    memset(p->how.weights, 0, sizeof p->how.weights);
    inpaint_close(&made);
    return st;
}

static int is_same(const tgi_on_device *a, const tgi_on_device *b)
{
    return a->ops == b->ops && a->flags == b->flags && a->how.be == b->how.be &&
           a->how.wide == b->how.wide && a->how.room == b->how.room && a->how.far == b->how.far;
}

tg_status tgi_inpaint_use(tgi_source *s, const tgi_kernel_set *be, const tgi_on_device *on,
                          tgi_err *err)
{
    static const tgi_on_device none = {0};
    inpaint *p = inpaint_of(s);
    on = on ? on : &none;
    if (!p || (p->method && p->how.be == be && is_same(&p->on, on)))
        return TG_OK;
    pthread_mutex_lock(&p->lock);
    p->how.be = be;
    p->on = *on;
    p->made = NO_FRAME;
    free_method(p);
    const tg_status st = plan_method(p, err);
    pthread_mutex_unlock(&p->lock);
    return st;
}

void tgi_inpaint_leave(tgi_source *s)
{
    inpaint *p = inpaint_of(s);
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    p->made = NO_FRAME;
    free_method(p);
    pthread_mutex_unlock(&p->lock);
}

int tgi_inpaint_may_leave_processor(const tgi_source *s)
{
    const inpaint *p = inpaint_of(s);
    return p && !p->how.shows && (p->how.weights[0] || p->how.network);
}

void tgi_inpaint_need(const tgi_source *s, tgi_sched_need *out)
{
    const inpaint *p = inpaint_of(s);
    *out = (tgi_sched_need){0};
    if (p && p->method && p->method->ops->need)
        p->method->ops->need(p->method, out);
}

/* ---- What it says of itself --------------------------------------------------------------- */

const tgi_graph *tgi_inpaint_network(const tgi_source *s)
{
    const inpaint *p = inpaint_of(s);
    return p ? p->how.network : NULL;
}

const tgi_weights *tgi_inpaint_weights(const tgi_source *s, int i)
{
    const inpaint *p = inpaint_of(s);
    return p ? p->how.weights[i] : NULL;
}

int tgi_inpaint_is(const tgi_source *s)
{
    return inpaint_of(s) != NULL;
}

uint64_t tgi_inpaint_disk(const tgi_source *s)
{
    const inpaint *p = inpaint_of(s);
    return p && p->method ? p->method->ops->disk(p->method) : 0;
}

size_t tgi_inpaint_networks(const tgi_source *s)
{
    const inpaint *p = inpaint_of(s);
    return p && p->method && p->method->ops->networks ? p->method->ops->networks(p->method) : 0;
}

void tgi_inpaint_frames(const tgi_source *s, int64_t *height, int64_t *width, tgi_crop *part)
{
    const inpaint *p = inpaint_of(s);
    *height = p->how.height;
    *width = p->how.width;
    *part = p->how.at_size ? *tgi_at_size_part(p->how.at_size)
                           : (tgi_crop){.height = p->info->height, .width = p->info->width};
}

double tgi_inpaint_flops(const tgi_source *s)
{
    const inpaint *p = inpaint_of(s);
    return p && p->method ? p->method->ops->flops(p->method) : 0;
}

double tgi_inpaint_seconds(const tgi_source *s, int least, tgi_sched_pass *of, void *user)
{
    const inpaint *p = inpaint_of(s);
    if (!p || !p->method)
        return 0;
    /* Of a film whose end nobody knows: of a frame. */
    const int64_t n = tgi_film_source_is_stream(p->inner) ? 1 : p->info->n_planes;
    return p->method->ops->seconds(p->method, 0, n, least, of, user);
}

int64_t tgi_inpaint_all_hidden(const tgi_source *s)
{
    inpaint *p = inpaint_of(s);
    return p ? (int64_t)atomic_load(&p->all_hidden) : 0;
}

tg_status tgi_inpaint_begin(tgi_source *s, tgi_err *err)
{
    inpaint *p = inpaint_of(s);
    if (!p || !p->method || !p->method->ops->begin)
        return TG_OK;
    pthread_mutex_lock(&p->lock);
    const tg_status st = p->method->ops->begin(p->method, err);
    pthread_mutex_unlock(&p->lock);
    return st;
}

int tgi_inpaint_copies_wait(const tgi_source *s)
{
    const inpaint *p = inpaint_of(s);
    const tgi_method *m = p ? p->method : NULL;
    const tgi_sched_card *c = m && m->ops->card ? m->ops->card(m) : NULL;
    return c && (c->up.ordinary || c->back.ordinary);
}

int tgi_inpaint_shrink(tgi_source *s)
{
    inpaint *p = inpaint_of(s);
    return p && p->method && p->method->ops->shrink(p->method);
}

const tgi_masks *tgi_inpaint_masks(const tgi_source *s)
{
    const inpaint *p = inpaint_of(s);
    return p ? p->how.masks : NULL;
}

void tgi_inpaint_note(const tgi_source *s, char *buf, size_t cap)
{
    const inpaint *p = inpaint_of(s);
    *buf = 0;
    if (p && p->method && p->method->ops->note)
        p->method->ops->note(p->method, buf, cap);
}

const tgi_cuts *tgi_inpaint_cuts(const tgi_source *s)
{
    static const tgi_cuts none = {0};
    const inpaint *p = inpaint_of(s);
    return p ? &p->how.cuts : &none;
}

int64_t tgi_inpaint_joined(const tgi_source *s)
{
    const inpaint *p = inpaint_of(s);
    return p && p->method ? tgi_scenes_joined(p->method) : 0;
}

const tgi_canvas *tgi_inpaint_canvas(const tgi_source *s)
{
    static const tgi_canvas none = {0};
    const inpaint *p = inpaint_of(s);
    return p ? &p->how.canvas : &none;
}

void tgi_inpaint_text(const tgi_source *s, char *buf, size_t cap)
{
    const inpaint *p = inpaint_of(s);
    *buf = 0;
    if (!p)
        return;
    if (p->method)
        p->method->ops->text(p->method, buf, cap);
}

/* ---- Composing ---------------------------------------------------------------------------- */

/* What is hidden, as the film stores its frames. */
static const uint8_t *as_stored(const inpaint *p, const tgi_film_pixels *f)
{
    if (!f->rotation && !f->flipped)
        return p->put.hidden;
    for (int64_t y = 0; y < f->height; y++) {
        int64_t step;
        const int64_t at = tgi_film_upright(f, y, &step);
        for (int64_t x = 0; x < f->width; x++)
            p->put.stored[y * f->width + x] = p->put.hidden[at + x * step];
    }
    return p->put.stored;
}

/* Where the film's frame begins in a larger one, as both are stored: at the first pixel that is not hidden. */
static void place_frame(const inpaint *p, tgi_film_bypass *how)
{
    const size_t wide = (size_t)how->to.width;
    const uint8_t *first = memchr(how->hidden, 0, wide * (size_t)how->to.height);
    const size_t at = first ? (size_t)(first - how->hidden) : 0;
    if (!p->how.canvas.height)
        return;
    how->origin[0] = -(double)(at / wide);
    how->origin[1] = -(double)(at % wide);
}

int tgi_inpaint_puts(const tgi_source *s)
{
    const inpaint *p = inpaint_of(s);
    return p && p->how.behind;
}

tg_status tgi_inpaint_put(tgi_source *s, int64_t k, tgi_film_bypass *how,
                          const tgi_av_blank *to, tgi_err *err)
{
    inpaint *p = inpaint_of(s);
    TGI_TRY(recall_mask(p, k, err));
    how->hidden = as_stored(p, &how->to);
    place_frame(p, how);
    return tgi_film_source_put(p->how.behind, k, how, to, err);
}

size_t tgi_inpaint_look_bytes(const tgi_source *s)
{
    const inpaint *p = inpaint_of(s);
    return p ? method_plane(p) * (pixel_bytes(p) + 1) : 0;
}

static tg_status look_again(inpaint *p, int64_t k, const void **out, tgi_err *err)
{
    if (!p->looked)
        p->looked = tgi_malloc(TGI_TAG_IO, method_plane(p) * (pixel_bytes(p) + 1));
    if (!p->looked)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a frame that is looked at");
    *out = p->looked;
    return read_own(p, k, p->looked, (uint8_t *)p->looked + method_plane(p) * pixel_bytes(p),
                    err);
}

tg_status tgi_inpaint_look(tgi_source *s, int64_t k, tgi_propagated *out, tgi_motion *motion,
                           tgi_err *err)
{
    inpaint *p = inpaint_of(s);
    pthread_mutex_lock(&p->lock);
    tg_status st = make(p, k, err);
    if (st == TG_OK) {
        *out = p->now;
        st = look_again(p, k, &out->source, err);
        if (!p->method->ops->motion || !p->method->ops->motion(p->method, k, motion))
            *motion = (tgi_motion){0};
    }
    pthread_mutex_unlock(&p->lock);
    return st;
}
