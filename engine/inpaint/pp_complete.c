/* pp_complete.c - see pp_complete.h. */
#include "engine/inpaint/pp_complete.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "engine/base/size.h"
#include "engine/inpaint/pp_pixels.h"
#include "engine/models/propainter/networks.h"

#include <string.h>

#define C TGI_PP_COMPLETION
#define FEWEST 5 /* items of a kind in memory: four are held at once, and one more */
#define RING TGI_PP_RING
#define EDGES 64 /* channels */

enum { SEEN, EDGE, BACK };
#define KINDS TGI_PP_COMPLETE_KINDS

/* What is kept of a step: channels, how much smaller than the frame. */
static const struct {
    const char *name;
    int64_t c, scale;
} of_kind[KINDS] = {{"seen", C, 8}, {"edges", EDGES, 4}, {"back", C, 8}};

/* Channels, and how much smaller than the frame, of what blend i reads. */
static const struct {
    int64_t c, scale;
} of_blend[TGI_PP_BLENDS] = {{32, 2}, {64, 4}, {64, 4}, {128, 8}};

/* ---- Plan -------------------------------------------------------------------------------- */

static size_t floats(const tgi_pp_complete *c, int64_t channels, int64_t scale)
{
    return (size_t)tgi_sched_floats(c->schedule->lanes, channels, c->height / scale,
                                    c->width / scale) *
           sizeof(float);
}

static tg_status make_graphs(tgi_pp_complete *c, const tgi_weights *w, tgi_err *err)
{
    const int64_t h = c->height, width = c->width;
    tgi_graph **g = c->graph;
    TGI_TRY(tgi_pp_lead(w, h, width, g++, err));
    for (int i = 0; i < TGI_PP_BLENDS; i++)
        TGI_TRY(tgi_pp_blend(w, i, h, width, g++, err));
    for (int i = 0; i < 4; i++)
        TGI_TRY(tgi_pp_recur(w, i / 2, i % 2, h, width, g++, err));
    return tgi_pp_decode(w, h, width, g, err);
}

static int add_net(tgi_pp_complete *c, const tgi_graph *g, const tgi_kernel_set *be,
                   int64_t channels, int64_t scale, int threads)
{
    const int n = tgi_schedule_net(c->schedule, g, be, channels, c->height / scale,
                                   c->width / scale, threads);
    tgi_schedule_called(c->schedule, n);
    return n;
}

static void add_nets(tgi_pp_complete *c, const tgi_kernel_set *be, int threads)
{
    tgi_graph *const *g = c->graph;
    c->lead = add_net(c, *g++, be, 3, 1, threads);
    for (int i = 0; i < TGI_PP_BLENDS; i++)
        c->blend[i] = add_net(c, *g++, be, of_blend[i].c, of_blend[i].scale, threads);
    for (int i = 0; i < 4; i++)
        c->recur[i / 2][i % 2] = add_net(c, *g++, be, C, 8, threads);
    c->decode = add_net(c, *g, be, C, 8, threads);
}

static int add_buffer(tgi_pp_complete *c, const char *name, int64_t channels, int64_t scale)
{
    tgi_schedule *s = c->schedule;
    const int b = tgi_schedule_buffer(s, name, channels, c->height / scale, c->width / scale);
    tgi_schedule_keep(s, b);
    return b;
}

/* Of a blend that sees `most` steps of each window. */
static void add_ring(tgi_pp_complete *c, int i, int64_t most)
{
    const int64_t times = tgi_ceil_div(most, RING);
    for (int t = 0; t < RING; t++) {
        const int b = add_buffer(c, "seen", of_blend[i].c, of_blend[i].scale);
        c->ring[i][t] = b;
        tgi_schedule_writes(c->schedule, i ? c->blend[i - 1] : c->lead, i == 2, b, times);
        for (int k = 0; k < 3; k++)
            tgi_schedule_reads(c->schedule, c->blend[i], k, b, times);
    }
}

/* What came forward is of use in its step and the next two. */
static void add_results(tgi_pp_complete *c, int64_t most)
{
    const int64_t times = tgi_ceil_div(most, 3);
    for (int i = 0; i < 3; i++) {
        const int b = add_buffer(c, "result", C, 8);
        c->result[i] = b;
        tgi_schedule_writes(c->schedule, c->recur[1][0], 0, b, times);
        tgi_schedule_reads(c->schedule, c->recur[1][0], 2, b, times);
        tgi_schedule_reads(c->schedule, c->recur[1][0], 3, b, times);
        tgi_schedule_reads(c->schedule, c->decode, 2, b, times);
    }
}

static void bind_kept(tgi_pp_complete *c, int kind, int b)
{
    tgi_schedule *s = c->schedule;
    const int back = c->recur[0][0], forward = c->recur[1][0];
    if (kind == EDGE) {
        tgi_schedule_writes(s, c->blend[1], 0, b, 1);
        tgi_schedule_reads(s, c->decode, 3, b, 1);
        return;
    }
    const int i = kind == BACK;
    tgi_schedule_writes(s, i ? back : c->blend[TGI_PP_BLENDS - 1], 0, b, 1);
    for (int k = i; k <= 2 * i; k++)
        tgi_schedule_reads(s, back, k, b, 1);
    tgi_schedule_reads(s, forward, i, b, 1);
    tgi_schedule_reads(s, c->decode, i, b, 1);
}

/* What is kept of a step, on a device. */
static tg_status add_kept(tgi_pp_complete *c, int64_t most, tgi_err *err)
{
    for (int kind = 0; kind < KINDS && c->schedule->device; kind++) {
        c->there[kind] = tgi_calloc(TGI_TAG_PLAN, (size_t)most, sizeof *c->there[kind]);
        if (!c->there[kind])
            return tgi_fail(err, TG_E_NOMEM, "no memory for what moves");
        for (int64_t t = 0; t < most && c->schedule->st == TG_OK; t++) {
            const int b =
                add_buffer(c, of_kind[kind].name, of_kind[kind].c, of_kind[kind].scale);
            c->there[kind][t] = b;
            tgi_schedule_far_only(c->schedule, b);
            bind_kept(c, kind, b);
        }
    }
    return TG_OK;
}

/* Steps of what blends read, and of what came back; `zero` is as large as the largest of them. */
static tg_status add_buffers(tgi_pp_complete *c, int64_t most, tgi_err *err)
{
    if (c->schedule->st != TG_OK)
        return TG_OK;
    for (int i = 0; i < TGI_PP_BLENDS; i++)
        add_ring(c, i, most);
    add_results(c, most);
    c->zero = add_buffer(c, "zero", of_blend[0].c, of_blend[0].scale);
    tgi_schedule_reads(c->schedule, c->blend[0], 0, c->zero, 1);
    return add_kept(c, most, err);
}

/* The store has what does not stay on the device: of the last steps. */
static void place_kept(tgi_pp_complete *c, int64_t most)
{
    c->kept = (tgi_frame_store_how){.n_kinds = KINDS};
    for (int kind = 0; kind < KINDS; kind++) {
        int n = 0;
        while (c->there[kind] && n < most && tgi_schedule_stays(c->schedule, c->there[kind][n]))
            n++;
        c->stay[kind] = n;
        const int64_t left = tgi_max(1, most - n);
        c->kept.kind[kind] = (tgi_frame_kind){floats(c, of_kind[kind].c, of_kind[kind].scale),
                                              left, (int)left, 0};
    }
}

tg_status tgi_pp_complete_new(const tgi_weights *w, const tgi_pp_at *at, int64_t most,
                              tgi_pp_complete **out, tgi_err *err)
{
    tgi_pp_complete *c = tgi_calloc(TGI_TAG_PLAN, 1, sizeof *c);
    if (!c)
        return tgi_fail(err, TG_E_NOMEM, "no memory for what moves");
    *c = (tgi_pp_complete){.height = at->height, .width = at->width};

    tg_status st = tgi_schedule_new(&c->schedule, err);
    if (st == TG_OK)
        st = make_graphs(c, w, err);
    if (st == TG_OK) {
        tgi_pp_settle(c->schedule, at);
        add_nets(c, at->be, at->threads);
        st = add_buffers(c, most, err);
    }
    if (st == TG_OK)
        st = tgi_schedule_plan(c->schedule, err);
    if (st == TG_OK)
        place_kept(c, most);
    if (st != TG_OK)
        tgi_pp_complete_free(&c);
    *out = c;
    return st;
}

void tgi_pp_complete_free(tgi_pp_complete **cp)
{
    tgi_pp_complete *c = *cp;
    if (!c)
        return;
    tgi_pp_complete_close(c);
    tgi_schedule_free(&c->schedule);
    for (size_t i = 0; i < sizeof c->graph / sizeof c->graph[0]; i++)
        tgi_graph_free(&c->graph[i]);
    for (int kind = 0; kind < KINDS; kind++)
        tgi_free(c->there[kind]);
    tgi_free(c);
    *cp = NULL;
}

/* Give what functions look at its place behind `base`, which may be NULL; all that it takes. */
static size_t lay_out(tgi_pp_complete *c, char *base)
{
    const size_t at = tgi_align_size(c->schedule->block_bytes, 64),
                 motion = tgi_sat_add(at, tgi_align_size(floats(c, 3, 1), 64));
    c->input = base ? (float *)(void *)(base + at) : NULL;
    c->motion = base ? (float *)(void *)(base + motion) : NULL;
    return tgi_sat_add(motion, tgi_align_size(floats(c, 2, 1), 64));
}

size_t tgi_pp_complete_bytes(const tgi_pp_complete *c)
{
    tgi_pp_complete copy = *c;
    return tgi_sat_add(lay_out(&copy, NULL), tgi_frame_store_bytes(&c->kept));
}

int tgi_pp_complete_shrink(tgi_pp_complete *c, const char *scratch)
{
    c->kept.scratch = scratch;
    return tgi_frame_store_shrink(&c->kept, FEWEST);
}

/* The ends of a window are where the next walk begins. */
static int64_t next_use(void *user, int kind, int64_t frame)
{
    const tgi_pp_complete *c = user;
    (void)kind;
    return frame < c->at ? c->at - frame : frame - c->at;
}

tg_status tgi_pp_complete_open(tgi_pp_complete *c, const tgi_schedule_memory *m, tgi_err *err)
{
    const size_t behind = lay_out(c, m->block);
    c->kept.next = next_use;
    c->kept.user = c;
    c->pool = m->pool;
    TGI_TRY(tgi_frame_store_open(&c->kept, (char *)m->block + behind, &c->store, err));
    return tgi_schedule_open(c->schedule, m, &c->run, err);
}

void tgi_pp_complete_close(tgi_pp_complete *c)
{
    tgi_schedule_close(&c->run);
    tgi_frame_store_close(&c->store);
}

/* ---- Run --------------------------------------------------------------------------------- */

/* One direction of a window: step t is motion number(t), and hides what frame number(t) + back does. */
typedef struct walk {
    tgi_pp_complete *c;
    const tgi_pp_window *w;
    const tgi_pp_complete_io *io;
    int back;
    int64_t n;
} walk;

static int64_t number(const walk *k, int64_t t)
{
    return k->back ? k->w->e - 1 - t : k->w->s + t;
}

static tgi_sched_at whole(const walk *k, int buffer)
{
    return tgi_schedule_place(k->c->run, buffer);
}

static tgi_sched_at of_ring(const walk *k, int i, int64_t t)
{
    return whole(k, k->c->ring[i][t % RING]);
}

static tg_status call(const walk *k, int net, const tgi_sched_at *in, const tgi_sched_at *out,
                      tgi_err *err)
{
    return tgi_schedule_call(k->c->run, net, in, out, err);
}

typedef struct masked {
    const float *motion;
    const uint8_t *mask;
    float *to;
    int64_t height, width;
} masked;

static tg_status of_step(const walk *k, int64_t t, float *to, masked *out, tgi_err *err)
{
    const tgi_pp_complete *c = k->c;
    *out = (masked){.to = to, .height = c->height, .width = c->width};
    TGI_TRY(k->io->motion(k->io->user, k->back, number(k, t), &out->motion, err));
    return k->io->mask(k->io->user, number(k, t) + k->back, &out->mask, err);
}

/* dx and dy where nothing is hidden, and what is. */
static void input_row(void *arg, int64_t y, int thread)
{
    const masked *m = arg;
    const int64_t w = m->width, n = m->height * w;
    (void)thread;
    for (int64_t x = 0; x < w; x++) {
        const int64_t at = y * w + x;
        const int hidden = tgi_pp_bit(m->mask, w, y, x);
        m->to[at] = hidden ? 0 : m->motion[at];
        m->to[n + at] = hidden ? 0 : m->motion[n + at];
        m->to[2 * n + at] = (float)hidden;
    }
}

static tg_status load_input(const walk *k, int64_t t, tgi_err *err)
{
    masked m;
    TGI_TRY(of_step(k, t, k->c->input, &m, err));
    tgi_parallel(k->c->pool, m.height, input_row, &m);
    return TG_OK;
}

static int stays(const walk *k, int kind, int64_t t)
{
    return t < k->c->stay[kind];
}

/* What is kept of step t, held until it is let go: room for it, or what is there. */
static tg_status keep(const walk *k, int kind, int64_t t, int is_new, tgi_sched_at *out,
                      tgi_err *err)
{
    tgi_pp_complete *c = k->c;
    const void *at;
    void *room;
    if (stays(k, kind, t)) {
        *out = whole(k, c->there[kind][t]);
        return TG_OK;
    }
    if (is_new)
        TGI_TRY(tgi_frame_store_add(c->store, kind, t, &room, err));
    else
        TGI_TRY(tgi_frame_store_get(c->store, kind, t, &at, err));
    *out = tgi_sched_here(is_new ? room : at);
    return TG_OK;
}

static void let_go(const walk *k, int kind, int64_t t)
{
    if (t >= 0 && t < k->n && !stays(k, kind, t))
        tgi_frame_store_let_go(k->c->store, kind, t);
}

/* Blend i of step t, if there is such a step: its inputs are there two steps later. */
static tg_status blend(const walk *k, int i, int64_t t, tgi_err *err)
{
    tgi_pp_complete *c = k->c;
    const int is_last = i == TGI_PP_BLENDS - 1, has_edge = i == 1;
    tgi_sched_at in[3], out[2] = {tgi_sched_here(NULL), tgi_sched_here(NULL)};
    if (t < 0 || t >= k->n)
        return TG_OK;
    for (int j = 0; j < 3; j++) {
        const int64_t at = t + 2 * (j - 1);
        in[j] = at < 0 || at >= k->n ? whole(k, c->zero) : of_ring(k, i, at);
    }
    if (has_edge)
        TGI_TRY(keep(k, EDGE, t, 1, &out[0], err));
    if (is_last)
        TGI_TRY(keep(k, SEEN, t, 1, &out[0], err));
    else
        out[has_edge] = of_ring(k, i + 1, t);
    const tg_status st = call(k, c->blend[i], in, out, err);
    if (has_edge)
        let_go(k, EDGE, t);
    if (is_last)
        let_go(k, SEEN, t);
    return st;
}

static tg_status look(const walk *k, tgi_err *err)
{
    tgi_pp_complete *c = k->c;
    for (int64_t t = 0; t < k->n + 2 * TGI_PP_BLENDS; t++) {
        c->at = t;
        if (t < k->n) {
            const tgi_sched_at in = tgi_sched_here(c->input), out = of_ring(k, 0, t);
            TGI_TRY(load_input(k, t, err));
            TGI_TRY(call(k, c->lead, &in, &out, err));
        }
        for (int i = 0; i < TGI_PP_BLENDS; i++)
            TGI_TRY(blend(k, i, t - 2 * (i + 1), err));
    }
    return TG_OK;
}

/* The results before lie in the store, held while they are needed. */
static tg_status walk_back(const walk *k, tgi_err *err)
{
    tgi_pp_complete *c = k->c;
    tgi_sched_at in[3] = {{0}, whole(k, c->zero), whole(k, c->zero)};
    tg_status st = TG_OK;
    for (int64_t t = k->n - 1; t >= 0 && st == TG_OK; t--) {
        tgi_sched_at out;
        c->at = t;
        st = keep(k, BACK, t, 1, &out, err);
        if (st == TG_OK)
            st = keep(k, SEEN, t, 0, &in[0], err);
        if (st == TG_OK)
            st = call(k, c->recur[0][t == k->n - 1], in, &out, err);
        let_go(k, SEEN, t);
        let_go(k, BACK, t + 2);
        in[2] = in[1];
        in[1] = out;
    }
    let_go(k, BACK, 0);
    let_go(k, BACK, 1);
    return st;
}

/* Where nothing was hidden the motion stays as it was found. */
static void found_row(void *arg, int64_t y, int thread)
{
    const masked *m = arg;
    const int64_t w = m->width, n = m->height * w;
    (void)thread;
    for (int64_t x = 0; x < w; x++)
        if (!tgi_pp_bit(m->mask, w, y, x)) {
            m->to[y * w + x] = m->motion[y * w + x];
            m->to[n + y * w + x] = m->motion[n + y * w + x];
        }
}

static tg_status hand_out(const walk *k, int64_t t, tgi_err *err)
{
    const int64_t at = number(k, t);
    masked m;
    if (at < k->w->keep0 || at >= k->w->keep1)
        return TG_OK;
    TGI_TRY(of_step(k, t, k->c->motion, &m, err));
    tgi_parallel(k->c->pool, m.height, found_row, &m);
    return k->io->put(k->io->user, k->back, at, k->c->motion, err);
}

static tg_status decode(const walk *k, int64_t t, tgi_sched_at seen, tgi_sched_at back,
                        tgi_sched_at forward, tgi_err *err)
{
    tgi_sched_at in[4] = {seen, back, forward};
    const tgi_sched_at out = tgi_sched_here(k->c->motion);
    TGI_TRY(keep(k, EDGE, t, 0, &in[3], err));
    const tg_status st = call(k, k->c->decode, in, &out, err);
    let_go(k, EDGE, t);
    return st == TG_OK ? hand_out(k, t, err) : st;
}

static tg_status walk_forward(const walk *k, tgi_err *err)
{
    tgi_pp_complete *c = k->c;
    tgi_sched_at in[4] = {{0}, {0}, whole(k, c->zero), whole(k, c->zero)};
    for (int64_t t = 0; t < k->n; t++) {
        const tgi_sched_at out = whole(k, c->result[t % 3]);
        c->at = t;
        TGI_TRY(keep(k, SEEN, t, 0, &in[0], err));
        TGI_TRY(keep(k, BACK, t, 0, &in[1], err));
        tg_status st = call(k, c->recur[1][t == 0], in, &out, err);
        if (st == TG_OK)
            st = decode(k, t, in[0], in[1], out, err);
        let_go(k, SEEN, t);
        let_go(k, BACK, t);
        TGI_TRY(st);
        in[3] = in[2];
        in[2] = out;
    }
    return TG_OK;
}

tg_status tgi_pp_complete_run(tgi_pp_complete *c, const tgi_pp_window *w,
                              const tgi_pp_complete_io *io, tgi_err *err)
{
    TGI_TRY(tgi_schedule_clear(c->run, c->zero, err));
    for (int back = 0; back < 2; back++) {
        const walk k = {.c = c, .w = w, .io = io, .back = back, .n = w->e - w->s};
        tgi_frame_store_forget(c->store, INT64_MAX);
        TGI_TRY(look(&k, err));
        TGI_TRY(walk_back(&k, err));
        TGI_TRY(walk_forward(&k, err));
    }
    tgi_frame_store_forget(c->store, INT64_MAX);
    return TG_OK;
}
