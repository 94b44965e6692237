/* propagate.c - see propagate.h. */
#include "engine/inpaint/propagate.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "engine/base/reserve.h"
#include "engine/base/size.h"
#include "engine/ends/frame_store.h"
#include "engine/inpaint/fill_smooth.h"
#include "engine/inpaint/motion.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PIXELS, BITS, MOTIONS, KINDS };

#define PAGE ((size_t)4096)
#define FEWEST 4 /* slots of pixels, where the others lie in the scratch file */
#define NO_FRAME INT64_MIN
#define ROWS 8 /* of a frame that one job of a parallel loop takes */
/* Seconds of a pixel beside the network: of a frame that is read, of one that is made. */
#define READING 20e-9
#define BESIDE 40e-9
#define AGREE 0.06f /* of white: colours of both sides that differ by more are not mixed */

struct tgi_propagate {
    tgi_method base;
    tgi_propagate_how how;
    tgi_motions *motions; /* NULL: each frame is filled by itself */
    tgi_frame_store_how store_how;
    tgi_sched_need need; /* of a device */
    /* While it runs. */
    tgi_sched_card card;
    tgi_reserve *reserve;
    tgi_threads *pool;
    tgi_schedule_run *run;
    tgi_frame_store *store;
    void *weights, *block, *kept, *traces, *luma_room, *hidden_room, *picture, *other, *field,
        *room, *left;
    tgi_trace trace[2]; /* later, earlier */
    float *luma[2];
    uint8_t *hidden[2];
    int64_t luma_of[2]; /* the frames whose luma and hidden lie there */
    int64_t at;         /* the frame that is made; NO_FRAME: none was */
    tgi_trace_link link[TGI_REACH_MOST + 1];
    tgi_trace_frame from[TGI_REACH_MOST + 1];
};

/* ---- Sizes ------------------------------------------------------------------------------- */

static size_t plane(const tgi_propagate *p)
{
    return (size_t)(p->how.height * p->how.width);
}

static size_t pixel_bytes(const tgi_propagate *p)
{
    return (size_t)p->how.samples * tgi_dtype_size(p->how.dtype);
}

static size_t bits_bytes(const tgi_propagate *p)
{
    return (size_t)(p->how.height * ((p->how.width + 7) / 8));
}

static size_t trace_bytes(const tgi_propagate *p)
{
    return tgi_align_size(plane(p) * (2 * sizeof(float) + 1), 64);
}

static int follows(const tgi_propagate *p)
{
    return p->motions != NULL;
}

static void plan_store(tgi_propagate *p)
{
    const int64_t all = tgi_max(1, p->how.hi - p->how.lo);
    const int64_t span = follows(p) ? tgi_min(2 * p->how.reach + 2, all + 1) : 1;
    p->store_how = (tgi_frame_store_how){
        .n_kinds = follows(p) ? KINDS : BITS + 1,
        .kind = {{pixel_bytes(p) * plane(p), span, (int)span, 0},
                 {bits_bytes(p), span, (int)span, 0},
                 {follows(p) ? p->motions->bytes : 0, span, (int)span, 0}},
        .scratch = p->how.scratch};
}

/* Blocks of the one reservation. */
static int list_blocks(tgi_propagate *p, tgi_want want[TGI_RESERVE_MAX_BLOCKS])
{
    const size_t n = plane(p), f = sizeof(float);
    const tgi_want all[] = {
        {"store", tgi_frame_store_bytes(&p->store_how), &p->kept},
        {"weights", follows(p) ? p->motions->schedule->weight_bytes : 0, &p->weights},
        {"motions", follows(p) ? p->motions->schedule->block_bytes : 0, &p->block},
        {"traces", follows(p) ? 2 * trace_bytes(p) : 0, &p->traces},
        {"luma", follows(p) ? 2 * n * f : 0, &p->luma_room},
        {"hidden", 2 * n, &p->hidden_room},
        {"picture", n * pixel_bytes(p), &p->picture},
        {"other", follows(p) ? n * pixel_bytes(p) : 0, &p->other},
        {"left", n, &p->left},
        {"field", n * f, &p->field},
        {"room", tgi_fill_smooth_bytes(p->how.height, p->how.width), &p->room}};
    memcpy(want, all, sizeof all);
    return (int)(sizeof all / sizeof all[0]);
}

size_t tgi_propagate_bytes(const tgi_propagate *cp)
{
    tgi_want want[TGI_RESERVE_MAX_BLOCKS];
    tgi_propagate p = *cp;
    size_t all = 0;
    for (int i = list_blocks(&p, want) - 1; i >= 0; i--)
        all = tgi_sat_add(all, tgi_align_size(want[i].bytes, 64));
    all = tgi_sat_add(all, tgi_sat_add(p.need.packing, tgi_sat_add(p.need.up, p.need.back)));
    return tgi_sat_add(all, PAGE); /* it ends on a border of a page */
}

uint64_t tgi_propagate_disk(const tgi_propagate *p)
{
    return tgi_frame_store_disk(&p->store_how);
}

int64_t tgi_propagate_span(const tgi_propagate *p)
{
    return p->store_how.kind[PIXELS].span;
}

int64_t tgi_propagate_in_memory(const tgi_propagate *p)
{
    return p->store_how.kind[PIXELS].slots;
}

double tgi_propagate_flops(const tgi_propagate *p)
{
    return follows(p) ? p->motions->schedule->flops : 0;
}

double tgi_propagate_seconds(const tgi_propagate *p, int64_t from, int64_t until,
                             tgi_sched_pass *of, void *user)
{
    double seconds = 0;
    const tgi_schedule *s = follows(p) ? p->motions->schedule : NULL;
    for (int k = 0; s && k < s->n_steps; k++)
        if (s->step[k].net >= 0)
            seconds += of(user, &s->net[s->step[k].net]);
    const int64_t lo = tgi_max(p->how.lo, from - p->how.reach),
                  hi = tgi_min(p->how.hi, until + p->how.reach);
    const double read = s ? (double)(hi - lo) : (double)(until - from);
    return read * (seconds + (double)plane(p) * READING) +
           (double)(until - from) * (double)plane(p) * BESIDE;
}

/* Of pixels fewer lie in memory. */
int tgi_propagate_shrink(tgi_propagate *p)
{
    int *slots = &p->store_how.kind[PIXELS].slots;
    if (p->reserve || !p->how.scratch || *slots <= FEWEST)
        return 0;
    *slots = (int)tgi_max(FEWEST, *slots * 3 / 4);
    return 1;
}

/* ---- Open -------------------------------------------------------------------------------- */

tg_status tgi_propagate_new(const tgi_propagate_how *how, tgi_propagate **out, tgi_err *err)
{
    tgi_propagate *p = tgi_calloc(TGI_TAG_PLAN, 1, sizeof *p);
    if (!p)
        return tgi_fail(err, TG_E_NOMEM, "no memory for what is removed");
    p->how = *how;
    p->at = p->luma_of[0] = p->luma_of[1] = NO_FRAME;
    tg_status st = TG_OK;
    if (how->network)
        st = tgi_motions_new(how->network, how->be, how->height, how->width, how->threads,
                             how->on, &p->motions, err);
    if (st == TG_OK && how->network && how->on)
        st = tgi_schedule_device_need(how->on->ops, p->motions->schedule, &p->need, err);
    if (st == TG_OK)
        plan_store(p);
    else
        tgi_propagate_free(&p);
    *out = p;
    return st;
}

static void stop_running(tgi_propagate *p)
{
    tgi_schedule_close(&p->run);
    tgi_sched_card_close(&p->card);
    tgi_frame_store_close(&p->store);
    tgi_threads_close(&p->pool);
    tgi_reserve_close(&p->reserve);
}

void tgi_propagate_free(tgi_propagate **pp)
{
    if (!*pp)
        return;
    stop_running(*pp);
    tgi_motions_free(&(*pp)->motions);
    tgi_free(*pp);
    *pp = NULL;
}

static tgi_trace trace_at(const tgi_propagate *p, int i)
{
    char *at = (char *)p->traces + (size_t)i * trace_bytes(p);
    return (tgi_trace){.x = (float *)(void *)at,
                       .y = (float *)(void *)at + plane(p),
                       .frames = (uint8_t *)at + plane(p) * 2 * sizeof(float)};
}

/* What lies farther behind is needed less, and soon not at all; farther ahead it is needed by all that come. */
static int64_t next_use(void *user, int kind, int64_t frame)
{
    const tgi_propagate *p = user;
    (void)kind;
    return frame < p->at ? 2 * (p->at - frame) : frame - p->at;
}

static tg_status take_memory(tgi_propagate *p, tgi_err *err)
{
    tgi_want want[TGI_RESERVE_MAX_BLOCKS];
    TGI_TRY(tgi_threads_open(p->how.threads, &p->pool, err));
    TGI_TRY(tgi_reserve_all(want, list_blocks(p, want), 0, &p->reserve, err));
    p->store_how.next = next_use;
    p->store_how.user = p;
    TGI_TRY(tgi_frame_store_open(&p->store_how, p->kept, &p->store, err));
    for (int i = 0; i < 2; i++)
        p->hidden[i] = (uint8_t *)p->hidden_room + (size_t)i * plane(p);
    if (!follows(p))
        return TG_OK;
    for (int i = 0; i < 2; i++) {
        p->trace[i] = trace_at(p, i);
        p->luma[i] = (float *)p->luma_room + (size_t)i * plane(p);
    }
    p->motions->pool = p->pool;
    if (p->how.on)
        TGI_TRY(
            tgi_sched_card_open(p->how.on->ops, *p->how.on->device, &p->need, &p->card, err));
    p->card.pool = p->pool;
    p->card.be = p->how.be;
    const tgi_schedule_memory m = {.weights = p->weights,
                                   .block = p->block,
                                   .pool = p->pool,
                                   .card = &p->card,
                                   .stop = p->how.stop,
                                   .stop_user = p->how.user};
    return tgi_schedule_open(p->motions->schedule, &m, &p->run, err);
}

static tg_status begin(tgi_propagate *p, tgi_err *err)
{
    if (p->store)
        return TG_OK;
    tgi_mem_trim();
    const tg_status st = take_memory(p, err);
    if (st != TG_OK)
        stop_running(p);
    return st;
}

/* ---- Frames ------------------------------------------------------------------------------ */

static void pack_bits(const tgi_propagate *p, const uint8_t *hidden, uint8_t *bits)
{
    const int64_t pitch = (p->how.width + 7) / 8;
    memset(bits, 0, bits_bytes(p));
    for (int64_t y = 0; y < p->how.height; y++) {
        const uint8_t *row = hidden + y * p->how.width, *end = row + p->how.width;
        for (const uint8_t *at = row; at < end && (at = memchr(at, 1, (size_t)(end - at)));
             at++)
            bits[y * pitch + (at - row) / 8] |= (uint8_t)(1u << (at - row) % 8);
    }
}

static void unpack_bits(const tgi_propagate *p, const uint8_t *bits, uint8_t *hidden)
{
    const int64_t pitch = (p->how.width + 7) / 8;
    for (int64_t y = 0; y < p->how.height; y++)
        for (int64_t x = 0; x < p->how.width; x++)
            hidden[y * p->how.width + x] = bits[y * pitch + x / 8] >> x % 8 & 1;
}

/* Frame k is kept. hidden[0] is spoilt. */
static tg_status keep(tgi_propagate *p, int64_t k, tgi_err *err)
{
    void *pixels, *bits;
    if (tgi_frame_store_has(p->store, PIXELS, k))
        return TG_OK;
    TGI_TRY(tgi_frame_store_add(p->store, PIXELS, k, &pixels, err));
    p->luma_of[0] = NO_FRAME;
    TGI_TRY(p->how.frame(p->how.user, k, pixels, p->hidden[0], err));
    tgi_frame_store_let_go(p->store, PIXELS, k);
    TGI_TRY(tgi_frame_store_add(p->store, BITS, k, &bits, err));
    pack_bits(p, p->hidden[0], bits);
    tgi_frame_store_let_go(p->store, BITS, k);
    return TG_OK;
}

static tg_status get_hidden(tgi_propagate *p, int64_t k, uint8_t *to, tgi_err *err)
{
    const void *bits;
    TGI_TRY(tgi_frame_store_get(p->store, BITS, k, &bits, err));
    unpack_bits(p, bits, to);
    tgi_frame_store_let_go(p->store, BITS, k);
    return TG_OK;
}

typedef struct luma_rows {
    const tgi_propagate *p;
    const void *pixels;
    float *to;
} luma_rows;

static void luma_row(void *arg, int64_t y, int thread)
{
    static const float share[3] = {0.299f, 0.587f, 0.114f};
    const luma_rows *r = arg;
    const int64_t w = r->p->how.width;
    const int n = r->p->how.samples, wide = r->p->how.dtype == TG_DTYPE_U16;
    const float white = wide ? 65535.0f : 255.0f;
    const uint8_t *bytes =
        (const uint8_t *)r->pixels + (size_t)(y * w * n) * (size_t)(wide + 1);
    const uint16_t *words = (const uint16_t *)(const void *)bytes;
    float *to = r->to + y * w;
    (void)thread;
    for (int64_t x = 0; x < w; x++) {
        float v = 0;
        for (int c = 0; c < (n >= 3 ? 3 : 1); c++) {
            const float s = wide ? (float)words[x * n + c] : (float)bytes[x * n + c];
            v += (n >= 3 ? share[c] : 1.0f) * s;
        }
        to[x] = v / white;
    }
}

/* Luma and what is hidden of frame k lie at number i. */
static tg_status look_at(tgi_propagate *p, int i, int64_t k, tgi_err *err)
{
    const void *pixels;
    if (p->luma_of[i] == k)
        return TG_OK;
    TGI_TRY(tgi_frame_store_get(p->store, PIXELS, k, &pixels, err));
    luma_rows r = {.p = p, .pixels = pixels, .to = p->luma[i]};
    tgi_parallel(p->pool, p->how.height, luma_row, &r);
    tgi_frame_store_let_go(p->store, PIXELS, k);
    TGI_TRY(get_hidden(p, k, p->hidden[i], err));
    p->luma_of[i] = k;
    return TG_OK;
}

/* The motion from frame k to the next one is kept. */
static tg_status find_motion(tgi_propagate *p, int64_t k, tgi_err *err)
{
    void *out;
    if (tgi_frame_store_has(p->store, MOTIONS, k))
        return TG_OK;
    if (p->luma_of[1] == k) { /* what was the second one is the first now */
        float *luma = p->luma[0];
        uint8_t *hidden = p->hidden[0];
        p->luma[0] = p->luma[1];
        p->hidden[0] = p->hidden[1];
        p->luma[1] = luma;
        p->hidden[1] = hidden;
        p->luma_of[0] = k;
        p->luma_of[1] = NO_FRAME;
    }
    for (int i = 0; i < 2; i++)
        TGI_TRY(look_at(p, i, k + i, err));
    const tgi_motion_frame a = {p->luma[0], p->hidden[0]}, b = {p->luma[1], p->hidden[1]};
    TGI_TRY(tgi_frame_store_add(p->store, MOTIONS, k, &out, err));
    const tg_status st = tgi_motions_find(p->motions, p->run, &a, &b, out, err);
    tgi_frame_store_let_go(p->store, MOTIONS, k);
    if (st != TG_OK) /* what is there is no motion */
        tgi_frame_store_forget(p->store, INT64_MAX);
    return st;
}

/* ---- Traces ------------------------------------------------------------------------------ */

/* A loop over rows of frame k. */
typedef struct pass {
    tgi_propagate *p;
    int side, reach;
    void *out;
} pass;

static int64_t row_jobs(const tgi_propagate *p)
{
    return (p->how.height + ROWS - 1) / ROWS;
}

static void follow_rows(void *arg, int64_t job, int thread)
{
    const pass *w = arg;
    const tgi_propagate *p = w->p;
    (void)thread;
    tgi_trace_follow(p->how.height, p->how.width, job * ROWS,
                     tgi_min(p->how.height, (job + 1) * ROWS), p->hidden[0], p->link, w->reach,
                     &p->trace[w->side < 0]);
}

/* The n-th frame on the way from frame k, and the motions there and back. */
static tg_status hold_link(tgi_propagate *p, int64_t k, int side, int n, tgi_err *err)
{
    const int64_t frame = k + side * n, pair = side > 0 ? frame - 1 : frame;
    const void *bits, *motion;
    p->link[n] = (tgi_trace_link){0};
    if (frame < p->how.lo || frame >= p->how.hi)
        return TG_OK;
    TGI_TRY(tgi_frame_store_get(p->store, BITS, frame, &bits, err));
    tgi_frame_store_let_go(p->store, BITS, frame); /* all of them have a slot */
    TGI_TRY(tgi_frame_store_get(p->store, MOTIONS, pair, &motion, err));
    tgi_frame_store_let_go(p->store, MOTIONS, pair);
    p->link[n] = (tgi_trace_link){.hidden = bits,
                                  .to = tgi_motion_of(p->motions, motion, side < 0),
                                  .back = tgi_motion_of(p->motions, motion, side > 0)};
    return TG_OK;
}

/* What frame k hides lies at hidden[0]. */
static tg_status follow(tgi_propagate *p, int64_t k, int side, tgi_err *err)
{
    pass w = {.p = p, .side = side, .reach = p->how.reach};
    for (int n = 1; n <= p->how.reach; n++)
        TGI_TRY(hold_link(p, k, side, n, err));
    tgi_parallel(p->pool, row_jobs(p), follow_rows, &w);
    return TG_OK;
}

/* All that frame k needs is kept. */
static tg_status gather(tgi_propagate *p, int64_t k, tgi_err *err)
{
    const int64_t lo = tgi_max(p->how.lo, k - p->how.reach),
                  hi = tgi_min(p->how.hi, k + p->how.reach + 1);
    if (p->at == NO_FRAME || k < p->at)
        tgi_frame_store_forget(p->store, INT64_MAX);
    p->at = k;
    tgi_frame_store_forget(p->store, lo);
    tg_status st = TG_OK;
    int64_t known = lo; /* frames before it are kept already */
    while (known < hi && tgi_frame_store_has(p->store, PIXELS, known))
        known++;
    for (int64_t t = lo; t < hi && st == TG_OK; t++) {
        st = keep(p, t, err);
        if (st == TG_OK && t > lo)
            st = find_motion(p, t - 1, err);
        if (st == TG_OK && p->how.tick && t < hi - 1 && t > known)
            p->how.tick(p->how.user, (double)(t - known) / (double)(hi - known));
    }
    if (st != TG_OK) {
        tgi_frame_store_forget(p->store, INT64_MAX);
        p->at = NO_FRAME;
    }
    return st;
}

/* ---- Colours ----------------------------------------------------------------------------- */

static void take_rows(void *arg, int64_t job, int thread)
{
    const pass *w = arg;
    const tgi_propagate *p = w->p;
    (void)thread;
    tgi_trace_take(p->how.height, p->how.width, job * ROWS,
                   tgi_min(p->how.height, (job + 1) * ROWS), p->how.samples, p->how.dtype,
                   &p->trace[w->side < 0], p->from, p->how.reach, w->out);
}

/* Frames are held, from number n of those that the trace wants on: as many as there are slots for. */
static tg_status hold_frames(tgi_propagate *p, int64_t k, int side, const uint8_t *wanted,
                             int *n, tgi_err *err)
{
    int64_t room = tgi_propagate_in_memory(p) - 1;
    memset(p->from, 0, sizeof p->from);
    for (; *n <= p->how.reach && room > 0; (*n)++) {
        const void *pixels, *bits;
        const int64_t frame = k + side * *n;
        if (!wanted[*n])
            continue;
        TGI_TRY(tgi_frame_store_get(p->store, PIXELS, frame, &pixels, err));
        TGI_TRY(tgi_frame_store_get(p->store, BITS, frame, &bits, err));
        tgi_frame_store_let_go(p->store, BITS, frame);
        p->from[*n] = (tgi_trace_frame){pixels, bits};
        room--;
    }
    return TG_OK;
}

static void let_go_frames(tgi_propagate *p, int64_t k, int side)
{
    for (int n = 1; n <= p->how.reach; n++)
        if (p->from[n].pixels)
            tgi_frame_store_let_go(p->store, PIXELS, k + side * n);
}

/* Colours that a trace leads to. */
static tg_status take(tgi_propagate *p, int64_t k, int side, void *out, tgi_err *err)
{
    const tgi_trace *t = &p->trace[side < 0];
    uint8_t wanted[256] = {0};
    for (size_t i = 0; i < plane(p); i++)
        wanted[t->frames[i]] = 1;
    for (int n = 1; n <= p->how.reach;) {
        pass w = {.p = p, .side = side, .out = out};
        const tg_status st = hold_frames(p, k, side, wanted, &n, err);
        if (st == TG_OK)
            tgi_parallel(p->pool, row_jobs(p), take_rows, &w);
        let_go_frames(p, k, side);
        TGI_TRY(st);
    }
    return TG_OK;
}

static float sample(const tgi_propagate *p, const void *at, size_t i)
{
    return p->how.dtype == TG_DTYPE_U16 ? (float)((const uint16_t *)at)[i]
                                        : (float)((const uint8_t *)at)[i];
}

static void set_sample(const tgi_propagate *p, void *at, size_t i, float v)
{
    const float white = p->how.dtype == TG_DTYPE_U16 ? 65535.0f : 255.0f;
    v = v < 0 ? 0 : v > white ? white : v;
    if (p->how.dtype == TG_DTYPE_U16)
        ((uint16_t *)at)[i] = (uint16_t)lrintf(v);
    else
        ((uint8_t *)at)[i] = (uint8_t)lrintf(v);
}

/* Of pixel i both sides have a colour: `picture` has the later one's. */
static void mix(tgi_propagate *p, size_t i, int later, int earlier)
{
    const int n = p->how.samples;
    const float white = p->how.dtype == TG_DTYPE_U16 ? 65535.0f : 255.0f;
    const float a = 1.0f / (float)(later * later), b = 1.0f / (float)(earlier * earlier);
    float apart = 0;
    for (int c = 0; c < n; c++)
        apart = fmaxf(apart, fabsf(sample(p, p->picture, i * (size_t)n + (size_t)c) -
                                   sample(p, p->other, i * (size_t)n + (size_t)c)));
    if (apart > AGREE * white) {
        if (earlier < later)
            memcpy((char *)p->picture + i * pixel_bytes(p),
                   (const char *)p->other + i * pixel_bytes(p), pixel_bytes(p));
        return;
    }
    for (int c = 0; c < n; c++) {
        const size_t at = i * (size_t)n + (size_t)c;
        set_sample(p, p->picture, at,
                   (a * sample(p, p->picture, at) + b * sample(p, p->other, at)) / (a + b));
    }
}

static void merge(tgi_propagate *p)
{
    const tgi_trace *later = &p->trace[0], *earlier = &p->trace[1];
    const uint8_t *hidden = p->hidden[0];
    uint8_t *left = p->left;
    const size_t n = plane(p);
    for (size_t i = 0; i < n; i++) {
        left[i] = 0;
        if (!hidden[i])
            continue;
        const int a = later->frames[i], b = earlier->frames[i];
        if (a == TGI_TRACE_NONE && b == TGI_TRACE_NONE)
            left[i] = 1;
        else if (a == TGI_TRACE_NONE)
            memcpy((char *)p->picture + i * pixel_bytes(p),
                   (const char *)p->other + i * pixel_bytes(p), pixel_bytes(p));
        else if (b != TGI_TRACE_NONE)
            mix(p, i, a, b);
    }
}

/* Frame k hides all there is: at each place the nearest frame that does not, as it is. */
static tg_status take_nearest(tgi_propagate *p, int64_t k, tgi_err *err)
{
    uint8_t *left = p->left;
    const int64_t w = p->how.width, pitch = (w + 7) / 8;
    const size_t n = plane(p);
    for (int64_t d = 1; d <= 2 * p->how.reach && memchr(left, 1, n); d++) {
        const int64_t frame = d & 1 ? k + (d + 1) / 2 : k - d / 2;
        const void *pixels, *bits;
        if (!tgi_frame_store_has(p->store, PIXELS, frame))
            continue;
        TGI_TRY(tgi_frame_store_get(p->store, PIXELS, frame, &pixels, err));
        TGI_TRY(tgi_frame_store_get(p->store, BITS, frame, &bits, err));
        for (size_t i = 0; i < n; i++) {
            const int64_t y = (int64_t)i / w, x = (int64_t)i % w;
            if (!left[i] || ((const uint8_t *)bits)[y * pitch + x / 8] >> x % 8 & 1)
                continue;
            memcpy((char *)p->picture + i * pixel_bytes(p),
                   (const char *)pixels + i * pixel_bytes(p), pixel_bytes(p));
            left[i] = 0;
        }
        tgi_frame_store_let_go(p->store, BITS, frame);
        tgi_frame_store_let_go(p->store, PIXELS, frame);
    }
    return TG_OK;
}

/* What nobody shows. */
static void fill(tgi_propagate *p)
{
    const size_t n = plane(p), samples = (size_t)p->how.samples;
    const uint8_t *left = p->left;
    float *field = p->field;
    if (!memchr(left, 1, n))
        return;
    for (size_t c = 0; c < samples; c++) {
        for (size_t i = 0; i < n; i++)
            field[i] = sample(p, p->picture, i * samples + c);
        tgi_fill_smooth(field, 1, p->how.height, p->how.width, left, p->room);
        for (size_t i = 0; i < n; i++)
            if (left[i])
                set_sample(p, p->picture, i * samples + c, field[i]);
    }
}

tg_status tgi_propagate_make(tgi_propagate *p, int64_t k, tgi_propagated *out, tgi_err *err)
{
    const void *source;
    if (k < p->how.lo || k >= p->how.hi)
        return tgi_fail(err, TG_E_ARG, "frame %lld is not of the film", (long long)k);
    TGI_TRY(begin(p, err));
    if (!follows(p) && !tgi_frame_store_has(p->store, PIXELS, k))
        tgi_frame_store_forget(p->store, INT64_MAX);
    const tg_status st = follows(p) ? gather(p, k, err) : keep(p, k, err);
    if (st != TG_OK) { /* half of a frame may be there */
        tgi_frame_store_forget(p->store, INT64_MAX);
        return st;
    }
    p->luma_of[0] = NO_FRAME;
    TGI_TRY(get_hidden(p, k, p->hidden[0], err));
    TGI_TRY(tgi_frame_store_get(p->store, PIXELS, k, &source, err));
    memcpy(p->picture, source, plane(p) * pixel_bytes(p));
    tgi_frame_store_let_go(p->store, PIXELS, k);
    if (follows(p)) {
        TGI_TRY(follow(p, k, 1, err));
        TGI_TRY(follow(p, k, -1, err));
        TGI_TRY(take(p, k, 1, p->picture, err));
        TGI_TRY(take(p, k, -1, p->other, err));
        merge(p);
    } else {
        memcpy(p->left, p->hidden[0], plane(p));
    }
    const int all_hidden = !memchr(p->hidden[0], 0, plane(p));
    if (all_hidden && !memchr(p->left, 0, plane(p)))
        TGI_TRY(take_nearest(p, k, err));
    fill(p);
    *out = (tgi_propagated){.height = p->how.height,
                            .width = p->how.width,
                            .pixels = p->picture,
                            .hidden = p->hidden[0],
                            .left = p->left,
                            .all_hidden = all_hidden};
    return TG_OK;
}

int tgi_propagate_motion(tgi_propagate *p, int64_t k, tgi_motion *out)
{
    const void *at;
    tgi_err none = {0};
    if (!follows(p) || !tgi_frame_store_has(p->store, MOTIONS, k) ||
        tgi_frame_store_get(p->store, MOTIONS, k, &at, &none) != TG_OK)
        return 0;
    *out = tgi_motion_of(p->motions, at, 0);
    tgi_frame_store_let_go(p->store, MOTIONS, k);
    return 1;
}

/* ---- As a method ------------------------------------------------------------------------- */

static void method_free(tgi_method **m)
{
    tgi_propagate_free((tgi_propagate **)m);
}

static size_t method_bytes(const tgi_method *m)
{
    return tgi_propagate_bytes((const tgi_propagate *)m);
}

static uint64_t method_disk(const tgi_method *m)
{
    return tgi_propagate_disk((const tgi_propagate *)m);
}

static int method_shrink(tgi_method *m)
{
    return tgi_propagate_shrink((tgi_propagate *)m);
}

static double method_flops(const tgi_method *m)
{
    return tgi_propagate_flops((const tgi_propagate *)m);
}

static double method_seconds(const tgi_method *m, int64_t from, int64_t until, int least,
                             tgi_sched_pass *of, void *user)
{
    (void)least;
    return tgi_propagate_seconds((const tgi_propagate *)m, from, until, of, user);
}

static void method_need(const tgi_method *m, tgi_sched_need *out)
{
    *out = ((const tgi_propagate *)m)->need;
}

static const tgi_sched_card *method_card(const tgi_method *m)
{
    return &((const tgi_propagate *)m)->card;
}

static tg_status method_make(tgi_method *m, int64_t k, tgi_propagated *out, tgi_err *err)
{
    return tgi_propagate_make((tgi_propagate *)m, k, out, err);
}

static tg_status method_begin(tgi_method *m, tgi_err *err)
{
    return begin((tgi_propagate *)m, err);
}

static int method_motion(tgi_method *m, int64_t k, tgi_motion *out)
{
    return tgi_propagate_motion((tgi_propagate *)m, k, out);
}

static void method_text(const tgi_method *m, char *buf, size_t cap)
{
    const tgi_propagate *p = (const tgi_propagate *)m;
    if (!follows(p))
        snprintf(buf, cap, "a frame, its mask, what is filled");
    else
        snprintf(buf, cap, "%lld frames, %lld of them in memory, their motions, networks",
                 (long long)tgi_propagate_span(p), (long long)tgi_propagate_in_memory(p));
}

tgi_method *tgi_propagate_method(tgi_propagate *p)
{
    static const tgi_method_ops ops = {.free = method_free,
                                       .bytes = method_bytes,
                                       .disk = method_disk,
                                       .shrink = method_shrink,
                                       .need = method_need,
                                       .card = method_card,
                                       .flops = method_flops,
                                       .seconds = method_seconds,
                                       .begin = method_begin,
                                       .make = method_make,
                                       .motion = method_motion,
                                       .text = method_text};
    p->base.ops = &ops;
    return &p->base;
}
