/* pp_generate.c - see pp_generate.h. */
#include "engine/inpaint/pp_generate.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "engine/base/size.h"
#include "engine/inpaint/pp_between.h"

#include <string.h>

#define C TGI_PP_CHANNELS
#define TOKEN TGI_PP_TOKEN
#define MOST TGI_PP_MOST_FRAMES

/* ---- Plan -------------------------------------------------------------------------------- */

/* Behind the last block nobody looks at references: they ask nothing there. */
static int is_last(int b)
{
    return b + 1 == TGI_PP_BLOCKS;
}

static tg_status make_attention(tgi_pp_generate *g, const tgi_weights *w, int b, int all,
                                int asked, tgi_err *err)
{
    tgi_pp_block *k = &g->block[b];
    tgi_pp_attention *a = &k->attend[k->n_attend++];
    *a = (tgi_pp_attention){.all = all, .asked = asked};
    return tgi_pp_attend(w, b, all, asked, g->height, g->width, &a->graph, err);
}

static tg_status make_attentions(tgi_pp_generate *g, const tgi_weights *w,
                                 const tgi_pp_sorts has, int b, tgi_err *err)
{
    int sorts = 0;
    for (int n = 1; n <= MOST; n++)
        for (int local = 1; local <= n; local++)
            sorts += (int)(has[n] >> (local - 1) & 1);
    g->block[b].attend =
        tgi_calloc(TGI_TAG_PLAN, (size_t)sorts + 1, sizeof *g->block[b].attend);
    if (!g->block[b].attend)
        return tgi_fail(err, TG_E_NOMEM, "no memory for the generator");
    for (int n = 1; n <= MOST; n++)
        for (int local = 1; is_last(b) && local <= n; local++)
            if (has[n] >> (local - 1) & 1)
                TGI_TRY(make_attention(g, w, b, n, local, err));
    for (int n = 1; n <= MOST; n++)
        if (has[n] && !is_last(b))
            TGI_TRY(make_attention(g, w, b, n, n, err));
    return TG_OK;
}

const tgi_pp_attention *tgi_pp_attention_of(const tgi_pp_generate *g, int b, int all, int local)
{
    const tgi_pp_block *k = &g->block[b];
    for (int i = 0; i < k->n_attend; i++)
        if (k->attend[i].all == all && k->attend[i].asked == (is_last(b) ? local : all))
            return &k->attend[i];
    return NULL;
}

static tg_status make_block(tgi_pp_generate *g, const tgi_weights *w, const tgi_pp_sorts has,
                            int b, tgi_err *err)
{
    const int64_t h = g->height, width = g->width;
    tgi_pp_block *k = &g->block[b];
    TGI_TRY(tgi_pp_keys(w, b, h, width, &k->keys, err));
    TGI_TRY(tgi_pp_queries(w, b, h, width, &k->queries, err));
    TGI_TRY(tgi_pp_mix(w, b, h, width, &k->mix, err));
    return make_attentions(g, w, has, b, err);
}

static tg_status make_graphs(tgi_pp_generate *g, const tgi_weights *w, const tgi_pp_sorts has,
                             tgi_err *err)
{
    const int64_t h = g->height, width = g->width;
    TGI_TRY(tgi_pp_encode(w, h, width, &g->encode, err));
    for (int i = 0; i < 4; i++)
        TGI_TRY(tgi_pp_propagate(w, i / 2, i % 2, h, width, &g->propagate[i / 2][i % 2], err));
    TGI_TRY(tgi_pp_join(w, h, width, &g->join, err));
    TGI_TRY(tgi_pp_split(w, h, width, &g->split, err));
    TGI_TRY(tgi_pp_compose(w, h, width, &g->compose, err));
    for (int b = 0; b < TGI_PP_BLOCKS; b++)
        TGI_TRY(make_block(g, w, has, b, err));
    return TG_OK;
}

typedef struct plan {
    tgi_pp_generate *g;
    const tgi_kernel_set *be;
    int threads;
} plan;

static int add_net(const plan *p, const tgi_graph *g, int64_t c, int64_t h, int64_t w)
{
    const int n = tgi_schedule_net(p->g->schedule, g, p->be, c, h, w, p->threads);
    tgi_schedule_called(p->g->schedule, n);
    return n;
}

static void add_nets(const plan *p)
{
    tgi_pp_generate *g = p->g;
    const int64_t h = g->height / 4, w = g->width / 4, fh = g->tokens.high, fw = g->tokens.wide;
    g->net_encode = add_net(p, g->encode, 3, g->height, g->width);
    for (int i = 0; i < 4; i++)
        g->net_propagate[i / 2][i % 2] = add_net(p, g->propagate[i / 2][i % 2], C, h, w);
    g->net_join = add_net(p, g->join, C, h, w);
    g->net_split = add_net(p, g->split, C, h, w);
    g->net_compose = add_net(p, g->compose, TOKEN, fh, fw);
    for (int b = 0; b < TGI_PP_BLOCKS; b++) {
        tgi_pp_block *k = &g->block[b];
        k->net_keys = add_net(p, k->keys, TOKEN, fh, fw);
        k->net_queries = add_net(p, k->queries, TOKEN, fh, fw);
        k->net_mix = add_net(p, k->mix, TOKEN, fh, fw);
        for (int i = 0; i < k->n_attend; i++)
            k->attend[i].net =
                add_net(p, k->attend[i].graph, k->attend[i].asked * TOKEN, fh, fw);
    }
}

tg_status tgi_pp_generate_new(const tgi_weights *w, const tgi_pp_at *at, const tgi_pp_sorts has,
                              int most_local, tgi_pp_generate **out, tgi_err *err)
{
    tgi_pp_generate *g = tgi_calloc(TGI_TAG_PLAN, 1, sizeof *g);
    if (!g)
        return tgi_fail(err, TG_E_NOMEM, "no memory for the generator");
    *g = (tgi_pp_generate){.height = at->height,
                           .width = at->width,
                           .most_local = most_local,
                           .keeps_tokens = 1,
                           .tokens = tgi_pp_tokens_of(at->height, at->width)};
    for (int n = 1; n <= MOST; n++)
        g->most = has[n] ? n : g->most;
    tg_status st = tgi_schedule_new(&g->schedule, err);
    if (st == TG_OK)
        st = make_graphs(g, w, has, err);
    if (st == TG_OK) {
        tgi_pp_settle(g->schedule, at);
        add_nets(&(plan){g, at->be, at->threads});
        tgi_pp_between_add(g);
        st = tgi_schedule_plan(g->schedule, err);
    }
    if (st != TG_OK)
        tgi_pp_generate_free(&g);
    *out = g;
    return st;
}

void tgi_pp_generate_free(tgi_pp_generate **gp)
{
    tgi_pp_generate *g = *gp;
    if (!g)
        return;
    tgi_pp_generate_close(g);
    tgi_schedule_free(&g->schedule);
    tgi_graph_free(&g->encode);
    for (int i = 0; i < 4; i++)
        tgi_graph_free(&g->propagate[i / 2][i % 2]);
    tgi_graph_free(&g->join);
    tgi_graph_free(&g->split);
    tgi_graph_free(&g->compose);
    for (int b = 0; b < TGI_PP_BLOCKS; b++) {
        tgi_graph_free(&g->block[b].keys);
        tgi_graph_free(&g->block[b].queries);
        tgi_graph_free(&g->block[b].mix);
        for (int i = 0; i < g->block[b].n_attend; i++)
            tgi_graph_free(&g->block[b].attend[i].graph);
        tgi_free(g->block[b].attend);
    }
    tgi_free(g);
    *gp = NULL;
}

/* ---- Places ------------------------------------------------------------------------------ */

/* The next array behind `*at`; base NULL: it is counted. */
static float *place(char *base, size_t *at, int64_t n)
{
    char *to = base ? base + *at : NULL;
    *at = tgi_sat_add(*at, tgi_align_size((size_t)n * sizeof(float), 64));
    return (float *)(void *)to;
}

static size_t lay_out(tgi_pp_generate *g, char *base)
{
    const int64_t n = g->height * g->width, quarter = n / 16;
    size_t at = tgi_align_size(g->schedule->block_bytes, 64);
    g->input = place(base, &at, 5 * n);
    g->picture = place(base, &at, 3 * n);
    for (int i = 0; i < g->most_local; i++) {
        g->masks[i] = place(base, &at, 2 * quarter);
        g->flow[0][i] = place(base, &at, 2 * quarter);
        g->flow[1][i] = place(base, &at, 2 * quarter);
    }
    g->windows = place(base, &at, g->tokens.win_h * g->tokens.win_w);
    return at;
}

/* Where the buffers lie before the first of them changes places. */
static void place_buffers(tgi_pp_generate *g)
{
    const tgi_pp_between *b = &g->buffer;
    for (int i = 0; i < g->most_local; i++) {
        g->shown[i] = tgi_schedule_place(g->run, b->shown[i]);
        g->way[0][i] = tgi_schedule_place(g->run, b->way[0][i]);
        g->way[1][i] = tgi_schedule_place(g->run, b->way[1][i]);
    }
    for (int i = 0; i < g->most; i++)
        g->x[i] = tgi_schedule_place(g->run, b->x[i]);
    tgi_pp_slots_open(&g->shown_there, g->run, b->shown, g->most_local);
    tgi_pp_slots_open(&g->split_there, g->run, b->split, g->most);
    g->spare = tgi_schedule_place(g->run, b->spare);
    g->spare_x = tgi_schedule_place(g->run, b->spare_x);
}

static size_t feature_bytes(const tgi_pp_generate *g)
{
    const int64_t n = tgi_sched_floats(g->schedule->lanes, C, g->height / 4, g->width / 4);
    return tgi_align_size((size_t)n * sizeof(float), 64);
}

static size_t token_bytes(const tgi_pp_generate *g)
{
    return (size_t)(TOKEN * g->tokens.high * g->tokens.wide) * sizeof(float);
}

#define MARK 64 /* bytes behind that say what is there */

size_t tgi_pp_seen_bytes(const tgi_pp_generate *g)
{
    return feature_bytes(g) + (g->keeps_tokens ? tgi_align_size(token_bytes(g), 64) : 0) + MARK;
}

int tgi_pp_seen_shrink(tgi_pp_generate *g)
{
    const int less = g->keeps_tokens;
    g->keeps_tokens = 0;
    return less;
}

static tgi_pp_seen seen_at(const tgi_pp_generate *g, void *room)
{
    char *at = room;
    const size_t tokens = feature_bytes(g), mark = tgi_pp_seen_bytes(g) - MARK;
    return (tgi_pp_seen){room, (float *)(void *)(at + tokens), (int *)(void *)(at + mark)};
}

size_t tgi_pp_generate_bytes(const tgi_pp_generate *g)
{
    tgi_pp_generate copy = *g;
    return lay_out(&copy, NULL);
}

tg_status tgi_pp_generate_open(tgi_pp_generate *g, const tgi_schedule_memory *m, tgi_err *err)
{
    g->pool = m->pool;
    lay_out(g, m->block);
    TGI_TRY(tgi_schedule_open(g->schedule, m, &g->run, err));
    place_buffers(g);
    return TG_OK;
}

void tgi_pp_generate_close(tgi_pp_generate *g)
{
    tgi_schedule_close(&g->run);
}

void tgi_pp_generate_forget(tgi_pp_generate *g)
{
    tgi_pp_slots_forget(&g->shown_there);
    tgi_pp_slots_forget(&g->split_there);
}

/* ---- What goes in ------------------------------------------------------------------------ */

typedef struct input_rows {
    const tgi_pp_updated *from;
    int64_t height, width;
    float *to;
} input_rows;

/* Colours, hidden, not filled. */
static void input_row(void *arg, int64_t y, int thread)
{
    const input_rows *r = arg;
    const int64_t w = r->width, n = r->height * w;
    const uint8_t *rgb = r->from->rgb + y * w * 3;
    float *to = r->to + y * w;
    (void)thread;
    for (int64_t x = 0; x < w; x++) {
        const int zero = tgi_pp_bit(r->from->zero, w, y, x);
        for (int c = 0; c < 3; c++)
            to[c * n + x] = zero ? 0 : tgi_pp_float(rgb[3 * x + c]);
        to[3 * n + x] = (float)tgi_pp_bit(r->from->hidden, w, y, x);
        to[4 * n + x] = (float)tgi_pp_bit(r->from->open, w, y, x);
    }
}

/* Every fourth pixel of both masks. */
static void quarter_masks(const tgi_pp_generate *g, const tgi_pp_updated *from, float *to)
{
    const int64_t h = g->height / 4, w = g->width / 4;
    for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < w; x++) {
            to[y * w + x] = (float)tgi_pp_bit(from->hidden, g->width, 4 * y, 4 * x);
            to[(h + y) * w + x] = (float)tgi_pp_bit(from->open, g->width, 4 * y, 4 * x);
        }
}

/* Linear between pixel centres: the mean of the four in the middle of 4 x 4; in pixels of the smaller size. */
static void quarter_flow(const tgi_pp_generate *g, const float *from, float *to)
{
    const int64_t h = g->height / 4, w = g->width / 4;
    for (int64_t c = 0; c < 2; c++)
        for (int64_t y = 0; y < h; y++)
            for (int64_t x = 0; x < w; x++) {
                const float *at = from + (c * g->height + 4 * y + 1) * g->width + 4 * x + 1;
                const float *below = at + g->width;
                to[(c * h + y) * w + x] =
                    ((at[0] + at[1]) * 0.5f + (below[0] + below[1]) * 0.5f) * 0.5f * 0.25f;
            }
}

/* A token sees 7 x 7 of a mask; its window is one that is hidden. */
static void mark_windows(const tgi_pp_generate *g, const float *hidden)
{
    const int64_t h = g->height / 4, w = g->width / 4;
    for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < w; x++) {
            if (hidden[y * w + x] == 0)
                continue;
            /* Token t covers the pixels 3t - 3 to 3t + 3. */
            const int64_t t0 = (y - 1) / 3, t1 = tgi_min((y + 3) / 3, g->tokens.high - 1),
                          s0 = (x - 1) / 3, s1 = tgi_min((x + 3) / 3, g->tokens.wide - 1);
            for (int64_t t = t0; t <= t1; t++)
                for (int64_t s = s0; s <= s1; s++)
                    g->windows[t / TGI_PP_WINDOW_H * g->tokens.win_w + s / TGI_PP_WINDOW_W] = 1;
        }
}

/* ---- A step ------------------------------------------------------------------------------ */

typedef struct step {
    tgi_pp_generate *g;
    const tgi_pp_step *s;
    const tgi_pp_generate_io *io;
    int local, all;
    int64_t frame[MOST]; /* neighbours, references */
} step;

static tg_status call(const step *k, int net, const tgi_sched_at *in, const tgi_sched_at *out,
                      tgi_err *err)
{
    return tgi_schedule_call(k->g->run, net, in, out, err);
}

static tg_status call_one(const step *k, int net, tgi_sched_at in, tgi_sched_at out,
                          tgi_err *err)
{
    return call(k, net, &in, &out, err);
}

static tgi_sched_at whole(const step *k, int buffer)
{
    return tgi_schedule_place(k->g->run, buffer);
}

/* Frame i of arrays in which n frames stand one behind the other in channels. */
static tgi_sched_at frame_in(const step *k, int buffer, int64_t width, int i, int n)
{
    return tgi_schedule_part(k->g->run, whole(k, buffer), TOKEN, width, i, n);
}

static tg_status encode_frame(const step *k, int64_t frame, tgi_sched_at to, tgi_err *err)
{
    const tgi_pp_generate *g = k->g;
    tgi_pp_updated from;
    TGI_TRY(k->io->updated(k->io->user, frame, &from, err));
    input_rows r = {&from, g->height, g->width, g->input};
    tgi_parallel(g->pool, g->height, input_row, &r);
    const tgi_sched_at in[] = {tgi_sched_here(g->input),
                               tgi_sched_here(g->input + 3 * g->height * g->width)};
    return call(k, g->net_encode, in, &to, err);
}

/* What frame i shows is there, and held. */
static tg_status look(const step *k, int i, tgi_pp_seen *out, tgi_err *err)
{
    void *room;
    int made;
    TGI_TRY(k->io->seen(k->io->user, k->frame[i], 1, &room, &made, err));
    *out = seen_at(k->g, room);
    if (made)
        return TG_OK;
    *out->split = 0;
    return encode_frame(k, k->frame[i], tgi_sched_here(out->features), err);
}

/* The same in a slot: where the caller has it, it is brought from there. */
static tg_status fill_shown(const step *k, int64_t frame, tgi_sched_at to, tgi_err *err)
{
    const tgi_pp_generate *g = k->g;
    const int64_t shape[3] = {C, g->height / 4, g->width / 4};
    void *room;
    int made;
    TGI_TRY(k->io->seen(k->io->user, frame, 0, &room, &made, err));
    if (!made)
        return encode_frame(k, frame, to, err);
    const tg_status st = tgi_schedule_put(g->run, shape, seen_at(g, room).features, to, err);
    k->io->release(k->io->user, frame);
    return st;
}

/* Features of neighbour i. */
static tg_status show(const step *k, int i, tgi_err *err)
{
    tgi_pp_generate *g = k->g;
    tgi_pp_seen seen;
    int there;
    int64_t *is = tgi_pp_slots_take(&g->shown_there, k->frame[i], k->frame, k->local,
                                    &g->shown[i], &there);
    if (is && !there) {
        TGI_TRY(fill_shown(k, k->frame[i], g->shown[i], err));
        *is = k->frame[i];
    }
    if (is)
        return TG_OK;
    TGI_TRY(look(k, i, &seen, err));
    g->shown[i] = tgi_sched_here(seen.features);
    return TG_OK;
}

/* A frame is a reference of many steps: its tokens are made in the first of them, where they are kept. */
static tg_status split_kept(const step *k, const tgi_pp_seen *seen, tgi_sched_at x,
                            tgi_err *err)
{
    const tgi_pp_generate *g = k->g;
    const int64_t shape[3] = {TOKEN, g->tokens.high, g->tokens.wide};
    const tgi_sched_at features = tgi_sched_here(seen->features);
    if (!g->keeps_tokens)
        return call_one(k, g->net_split, features, x, err);
    if (!*seen->split)
        TGI_TRY(call_one(k, g->net_split, features, tgi_sched_here(seen->tokens), err));
    *seen->split = 1;
    return tgi_schedule_put(g->run, shape, seen->tokens, x, err);
}

/* Tokens of reference i. */
static tg_status split_reference(const step *k, int i, tgi_err *err)
{
    tgi_pp_generate *g = k->g;
    tgi_pp_seen seen;
    tgi_sched_at to = g->x[i];
    int there;
    int64_t *is = tgi_pp_slots_take(&g->split_there, k->frame[i], k->frame + k->local,
                                    k->all - k->local, &to, &there);
    tg_status st = TG_OK;
    if (!there) {
        st = look(k, i, &seen, err);
        if (st == TG_OK)
            st = is ? call_one(k, g->net_split, tgi_sched_here(seen.features), to, err)
                    : split_kept(k, &seen, to, err);
        k->io->release(k->io->user, k->frame[i]);
    }
    if (!is || st != TG_OK)
        return st;
    *is = k->frame[i];
    g->lent[i] = 1;
    g->own_x[i] = g->x[i];
    g->x[i] = to;
    return TG_OK;
}

/* Slots hold what they hold for the next step, too. */
static void give_back(tgi_pp_generate *g)
{
    for (int i = 0; i < g->most; i++) {
        g->x[i] = g->lent[i] ? g->own_x[i] : g->x[i];
        g->lent[i] = 0;
    }
}

/* What becomes of the tokens of frame i goes to another buffer than theirs. */
static tg_status mix(const step *k, int net, int i, tgi_sched_at attended, tgi_err *err)
{
    tgi_pp_generate *g = k->g;
    const tgi_sched_at mixed[] = {attended, g->x[i]},
                       made = g->lent[i] ? g->own_x[i] : g->spare_x;
    TGI_TRY(call(k, net, mixed, &made, err));
    if (!g->lent[i])
        g->spare_x = g->x[i];
    g->lent[i] = 0;
    g->x[i] = made;
    return TG_OK;
}

/* Of references only tokens are needed, of neighbours all. */
static tg_status encode(const step *k, tgi_err *err)
{
    tgi_pp_generate *g = k->g;
    memset(g->windows, 0, (size_t)(g->tokens.win_h * g->tokens.win_w) * sizeof(float));
    for (int i = k->local; i < k->all; i++)
        TGI_TRY(split_reference(k, i, err));
    for (int i = 0; i < k->local; i++) {
        tgi_pp_updated from;
        TGI_TRY(show(k, i, err));
        TGI_TRY(k->io->updated(k->io->user, k->frame[i], &from, err));
        quarter_masks(g, &from, g->masks[i]);
        mark_windows(g, g->masks[i]);
    }
    for (int i = 0; i + 1 < k->local; i++)
        for (int back = 0; back < 2; back++) {
            const float *motion;
            TGI_TRY(k->io->motion(k->io->user, back, k->s->lo + i, &motion, err));
            quarter_flow(g, motion, g->flow[back][i]);
        }
    return TG_OK;
}

/* Back, then forward over what that gave. */
static tg_status propagate(const step *k, tgi_err *err)
{
    tgi_pp_generate *g = k->g;
    const int n = k->local;
    for (int i = n - 1; i >= 0; i--) {
        const int first = i == n - 1;
        const tgi_sched_at masks = tgi_sched_here(g->masks[i]), alone[] = {g->shown[i], masks},
                           in[] = {g->shown[i], first ? tgi_sched_here(NULL) : g->way[0][i + 1],
                                   tgi_sched_here(g->flow[0][i]), tgi_sched_here(g->flow[1][i]),
                                   masks};
        TGI_TRY(call(k, g->net_propagate[0][first], first ? alone : in, &g->way[0][i], err));
    }
    for (int i = 0; i < n; i++) {
        const int before = i ? i - 1 : 0;
        const tgi_sched_at masks = tgi_sched_here(g->masks[i]), alone[] = {g->way[0][i], masks},
                           in[] = {g->way[0][i], g->way[1][before],
                                   tgi_sched_here(g->flow[1][before]),
                                   tgi_sched_here(g->flow[0][before]), masks};
        TGI_TRY(call(k, g->net_propagate[1][i == 0], i == 0 ? alone : in, &g->way[1][i], err));
    }
    for (int i = 0; i < n; i++) {
        const tgi_sched_at in[] = {g->shown[i], g->way[0][i], g->way[1][i],
                                   tgi_sched_here(g->masks[i])};
        g->joined[i] = g->spare; /* what came back is of no use behind that */
        TGI_TRY(call(k, g->net_join, in, &g->joined[i], err));
        g->spare = g->way[0][i];
        g->way[0][i] = g->joined[i];
    }
    return TG_OK;
}

static tg_status attend(const step *k, int b, tgi_err *err)
{
    tgi_pp_generate *g = k->g;
    const tgi_pp_between *to = &g->buffer;
    const tgi_pp_block *is = &g->block[b];
    const tgi_pp_attention *a = tgi_pp_attention_of(g, b, k->all, k->local);
    const int64_t w = g->tokens.wide, few = g->tokens.pool_w;
    const int n = k->all, wanted = is_last(b) ? k->local : k->all;
    if (!a)
        return tgi_fail(err, TG_E_INTERNAL, "a step of %d and %d frames was not planned",
                        k->local, k->all - k->local);
    for (int i = 0; i < k->all; i++) {
        const tgi_sched_at query = frame_in(k, to->queries, w, i, wanted),
                           out[] = {frame_in(k, to->keys, w, i, n),
                                    frame_in(k, to->values, w, i, n),
                                    frame_in(k, to->pooled_keys, few, i, n),
                                    frame_in(k, to->pooled_values, few, i, n)};
        TGI_TRY(call(k, is->net_keys, &g->x[i], out, err));
        if (i < wanted)
            TGI_TRY(call(k, is->net_queries, &g->x[i], &query, err));
    }
    const tgi_sched_at in[] = {whole(k, to->queries),       whole(k, to->keys),
                               whole(k, to->values),        whole(k, to->pooled_keys),
                               whole(k, to->pooled_values), tgi_sched_here(g->windows)},
                       attended = whole(k, to->attended);
    TGI_TRY(call(k, a->net, in, &attended, err));
    for (int i = 0; i < wanted; i++)
        TGI_TRY(mix(k, is->net_mix, i, frame_in(k, to->attended, w, i, wanted), err));
    return TG_OK;
}

static tg_status run(const step *k, tgi_err *err)
{
    tgi_pp_generate *g = k->g;
    TGI_TRY(encode(k, err));
    TGI_TRY(propagate(k, err));
    for (int i = 0; i < k->local; i++)
        TGI_TRY(call_one(k, g->net_split, g->joined[i], g->x[i], err));
    for (int b = 0; b < TGI_PP_BLOCKS; b++)
        TGI_TRY(attend(k, b, err));
    for (int i = 0; i < k->local; i++) {
        const tgi_sched_at in[] = {g->x[i], g->joined[i]}, to = tgi_sched_here(g->picture);
        TGI_TRY(call(k, g->net_compose, in, &to, err));
        TGI_TRY(k->io->put(k->io->user, k->frame[i], g->picture, err));
    }
    return TG_OK;
}

tg_status tgi_pp_generate_run(tgi_pp_generate *g, const tgi_pp_step *s,
                              const tgi_pp_generate_io *io, tgi_err *err)
{
    step k = {.g = g,
              .s = s,
              .io = io,
              .local = (int)(s->hi - s->lo),
              .all = (int)(s->hi - s->lo) + s->n_refs};
    if (k.all > g->most || k.local > g->most_local)
        return tgi_fail(err, TG_E_INTERNAL, "a step of %d frames was not planned", k.all);
    for (int i = 0; i < k.all; i++)
        k.frame[i] = i < k.local ? s->lo + i : s->ref[i - k.local];
    const tg_status st = run(&k, err);
    give_back(g);
    for (int i = 0; i < k.local; i++)
        io->release(io->user, k.frame[i]);
    return st;
}
