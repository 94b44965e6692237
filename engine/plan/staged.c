/* staged.c - chooses a tiling for each stage, and keeps values in memory as long as that pays. */
#include "engine/plan/staged.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "engine/plan/stage_cut.h"
#include "kernels/granule.h"
#include "kernels/reduce.h"

#include <stdlib.h>
#include <string.h>

/* What a disk moves in a second, for comparing plans: never measured, so that a plan stays what
 * it was (choose.c). */
#define DISK_BYTES_PER_SECOND 1e9
#define PLACES_TRIED 4

/* ---- What is kept ------------------------------------------------------------------------ */

int tgi_kept_lanes(const tgi_net *net, int v)
{
    return net->be->whole_pixels ? 1 : net->values[v].cb;
}

uint64_t tgi_kept_bytes(const tgi_net *net, int v)
{
    const tgi_net_value *t = &net->values[v];
    uint64_t n = (uint64_t)tgi_align_up(t->c, tgi_kept_lanes(net, v)) * sizeof(float);
    for (int a = TGI_STREAM_AXIS; a < net->rank; a++)
        n = tgi_sat_mul(n, (size_t)t->ext.dim[a]);
    return tgi_align_size(n, 64);
}

const tgi_kept_value *tgi_kept_of(const tgi_staged *s, int v)
{
    for (int i = 0; i < s->n_kept; i++)
        if (s->kept[i].value == v)
            return &s->kept[i];
    return NULL;
}

const tgi_gathered *tgi_gathered_of(const tgi_staged *s, int v)
{
    const tgi_net *net = s->cut->one.net;
    for (int i = 0; i < s->n_gathered; i++)
        if (net->nodes[s->gathered[i].node].node->dst[0] == v)
            return &s->gathered[i];
    return NULL;
}

int tgi_stages_last(const tgi_stages *s)
{
    for (int k = 0; k < s->n; k++)
        for (int o = 0; o < s->stage[k].n_out; o++)
            if (s->stage[k].out[o].port == 0)
                return k;
    return s->n - 1;
}

/* The stage that yields value v: -1: none, it is an input or a reduction. */
static int maker_of(const tgi_stages *s, int v)
{
    for (int k = 0; k < s->n; k++)
        for (int o = 0; o < s->stage[k].n_out; o++)
            if (s->stage[k].out[o].value == v && !s->stage[k].out[o].reduced) {
                const tgi_stage *t = &s->stage[k];
                for (int i = 0; i < t->n_loaded; i++) /* handed on: a reduction, an input */
                    if (t->in[i].value == v)
                        return -1;
                return k;
            }
    return -1;
}

static void list_kept(tgi_staged *s, int count_only)
{
    const tgi_stages *cut = s->cut;
    s->n_kept = 0;
    for (int k = 0; k < cut->n; k++)
        for (int i = 0; i < cut->stage[k].n_loaded; i++) {
            const int v = cut->stage[k].in[i].value, made = maker_of(cut, v);
            int at = 0;
            if (made < 0)
                continue;
            while (!count_only && at < s->n_kept && s->kept[at].value != v)
                at++;
            if (count_only || at == s->n_kept)
                at = s->n_kept++;
            if (count_only)
                continue;
            s->kept[at] = (tgi_kept_value){
                .value = v, .made = made, .last = k, .bytes = tgi_kept_bytes(cut->one.net, v)};
        }
}

/* One part of a reduction, at the end of the list. */
static void add_gathered(tgi_staged *s, int k, int o, int count_only)
{
    const tgi_net *net = s->cut->one.net;
    const tgi_stage_out *out = &s->cut->stage[k].out[o];
    const tgi_net_node *n = &net->nodes[out->whole];
    tgi_gathered g = {.node = out->whole,
                      .stage = k,
                      .out = o,
                      .channel = out->channel,
                      .full = net->shapes.desc[out->value]};
    g.state_bytes = tgi_align_size(
        tgi_granules_bytes(&g.full, tgi_reduce_what(tgi_reduce_of(n->node->op, &n->ctx))), 64);
    if (!count_only)
        s->gathered[s->n_gathered] = g;
    s->n_gathered++;
}

static int by_node_and_channel(const void *a, const void *b)
{
    const tgi_gathered *p = a, *q = b;
    if (p->node != q->node)
        return p->node < q->node ? -1 : 1;
    return (p->channel > q->channel) - (p->channel < q->channel);
}

/* Where the states of a stage's parts lie, and the numbers of their nodes. The stage hands its
 * outputs out in an order of its own; the parts of a node follow each other here. */
static void place_gathered(tgi_staged *s, int first)
{
    const tgi_net *net = s->cut->one.net;
    size_t states = 0, channels = 0;
    qsort(s->gathered + first, (size_t)(s->n_gathered - first), sizeof *s->gathered,
          by_node_and_channel);
    for (int i = first; i < s->n_gathered; i++) {
        tgi_gathered *g = &s->gathered[i];
        const tgi_net_node *n = &net->nodes[g->node];
        g->state_at = states;
        states = tgi_sat_add(states, g->state_bytes);
        if (i > first && g[-1].node == g->node) {
            g->numbers_at = g[-1].numbers_at;
            continue;
        }
        g->numbers_at = s->n_numbers;
        s->n_numbers += (size_t)net->values[n->node->dst[0]].c;
        channels = (size_t)n->src[0].dim[1];
        s->n_channels = channels > s->n_channels ? channels : s->n_channels;
    }
    s->moments_at = states > s->moments_at ? states : s->moments_at;
}

static void list_gathered(tgi_staged *s, int count_only)
{
    s->n_gathered = 0;
    s->n_numbers = s->moments_at = s->n_channels = 0;
    for (int k = 0; k < s->cut->n; k++) {
        const tgi_stage *t = &s->cut->stage[k];
        const int first = s->n_gathered;
        for (int o = 0; o < t->n_out; o++)
            if (t->out[o].reduced)
                add_gathered(s, k, o, count_only);
        if (!count_only)
            place_gathered(s, first);
    }
    s->state_bytes =
        tgi_sat_add(s->moments_at, tgi_align_size(s->n_channels * TGI_REDUCE_CHANNEL, 64));
}

/* A table of all values for each stage, so it is no trifle where there are many. */
static void count_held(tgi_staged *s, const tgi_stages *other)
{
    s->held_bytes = sizeof *s + ((size_t)s->n + 1) * sizeof *s->tiling +
                    ((size_t)s->n_kept + 1) * sizeof *s->kept +
                    ((size_t)s->n_gathered + 1) * sizeof *s->gathered +
                    tgi_stages_held(s->cut) + (other ? tgi_stages_held(other) : 0);
    for (int k = 0; k < s->n; k++)
        s->held_bytes += tgi_tiling_held(&s->cut->stage[k]);
}

/* ---- Where it is kept -------------------------------------------------------------------- */

/* A value that is read to make one in memory is wanted as long as that one: a crash takes what is in
 * memory, and the stage that made it runs again. Later stages first. */
static void find_needed(tgi_staged *s)
{
    int more = 1;
    for (int i = 0; i < s->n_kept; i++)
        s->kept[i].needed = s->kept[i].last;
    while (more) {
        more = 0;
        for (int i = s->n_kept - 1; i >= 0; i--) {
            const tgi_kept_value *m = &s->kept[i];
            const tgi_stage *t = &s->cut->stage[m->made];
            for (int j = 0; !m->on_disk && j < t->n_loaded; j++) {
                tgi_kept_value *v = (tgi_kept_value *)tgi_kept_of(s, t->in[j].value);
                if (v && v->needed < m->needed) {
                    v->needed = m->needed;
                    more = 1;
                }
            }
        }
    }
}

/* Offsets of the values that are (not) on disk; their block's size. */
static tg_status pack(tgi_staged *s, int on_disk, size_t *bytes, tgi_err *err)
{
    tgi_item *item = tgi_calloc(TGI_TAG_PLAN, (size_t)s->n_kept + 1, sizeof *item);
    size_t least;
    if (!item)
        return tgi_fail(err, TG_E_NOMEM, "no memory to place %d values", s->n_kept);
    for (int i = 0; i < s->n_kept; i++)
        item[i] = (tgi_item){.bytes = s->kept[i].on_disk == on_disk ? s->kept[i].bytes : 0,
                             .first = s->kept[i].made,
                             .last = on_disk ? s->kept[i].needed : s->kept[i].last};
    const tg_status st = tgi_arena_pack(item, s->n_kept, bytes, &least, err);
    for (int i = 0; i < s->n_kept; i++)
        if (s->kept[i].on_disk == on_disk)
            s->kept[i].at = item[i].offset;
    tgi_free(item);
    return st;
}

/* The `n` largest values go to the disk. */
static tg_status place(tgi_staged *s, int n, tgi_err *err)
{
    size_t disk = 0;
    s->moved_bytes = 0;
    for (int i = 0; i < s->n_kept; i++)
        s->kept[i].on_disk = 0;
    for (; n > 0; n--) {
        tgi_kept_value *most = NULL;
        for (int i = 0; i < s->n_kept; i++)
            if (!s->kept[i].on_disk && (!most || s->kept[i].bytes > most->bytes))
                most = &s->kept[i];
        if (!most)
            break;
        most->on_disk = 1;
        s->moved_bytes += 2 * most->bytes;
    }
    find_needed(s);
    TGI_TRY(pack(s, 1, &disk, err));
    s->disk_bytes = disk;
    return pack(s, 0, &s->kept_bytes, err);
}

/* What is looked at as a whole is read where it lies, if that is in memory, and from the disk piece
 * by piece. 1: the stage needs another arena than before. */
static int mark_stage(const tgi_staged *s, tgi_stage *t)
{
    int changed = 0;
    for (int i = 0; i < t->n_loaded; i++) {
        tgi_stage_in *in = &t->in[i];
        const tgi_kept_value *kept = in->at_once ? tgi_kept_of(s, in->value) : NULL;
        const int looks = kept && tgi_stage_only_looks(t, i);
        const int there = looks && !kept->on_disk;
        changed |= there != in->in_place || in->in_pieces;
        in->in_place = there;
        in->in_pieces = looks && kept->on_disk;
    }
    tgi_stage_agree_on_pieces(t);
    for (int i = 0; i < t->n_loaded; i++)
        changed |= t->in[i].in_pieces;
    return changed;
}

static void mark_looks(const tgi_staged *s, tgi_stages *cut)
{
    for (int k = 0; k < cut->n; k++)
        if (mark_stage(s, &cut->stage[k]))
            cut->floor_used = -1;
}

/* ---- A tiling for each stage ------------------------------------------------------------- */

typedef struct chooser {
    const tgi_staged_args *a;
    tgi_staged *s;
    size_t limit; /* for arena, rows and window together */
    size_t least; /* of that what a plan of these places takes */
    int last;
    size_t floor; /* bytes that the arena has at least: what the other stages need */
    int any;      /* of a stage, the first tiling that fits */
    int apart;    /* each stage has memory of its own */
} chooser;

static size_t rows_of(const tgi_staged_args *a, const tgi_tiling *t)
{
    return a->rows ? a->rows(a->choose.user, t) : 0;
}

static size_t arena_of(const chooser *c, const tgi_tiling *t)
{
    return tgi_sat_add(t->arena_bytes, rows_of(c->a, t));
}

static size_t extra_of(const chooser *c, const tgi_tiling *t)
{
    return c->a->choose.extra ? c->a->choose.extra(c->a->choose.user, t) : 0;
}

/* Of the last stage, in an arena that other stages use, too. */
static size_t extra_above_floor(void *user, const tgi_tiling *t)
{
    const chooser *c = user;
    const size_t arena = arena_of(c, t);
    return tgi_sat_add(extra_of(c, t), c->floor > arena ? c->floor - arena : 0);
}

/* The tiling that an interrupted run had, where it fits. 0: none. */
static int choose_was(const tgi_staged_args *was, const tgi_choose_args *a, tgi_choice *out)
{
    tgi_tiling t;
    if (!was->was_band || tgi_tiling_make(a->stage, was->was_cut, was->was_band, a->threads,
                                          NULL, &t, NULL) != TG_OK)
        return 0;
    const size_t all = tgi_sat_add(t.arena_bytes, a->extra ? a->extra(a->user, &t) : 0);
    if (all > a->limit_bytes) {
        tgi_tiling_free(&t);
        return 0;
    }
    *out = (tgi_choice){.tiling = t,
                        .chosen_bytes = all,
                        .smallest_bytes = all,
                        .seconds = t.work / a->flops_per_second};
    return 1;
}

static tg_status choose_one(const chooser *c, int k, size_t limit, tgi_choice *got,
                            tgi_err *err)
{
    tgi_choose_args one = c->a->choose;
    one.stage = &c->a->cut->stage[k];
    one.any = c->any;
    one.limit_bytes = limit;
    if (k == c->last && c->floor && !c->apart) {
        one.extra = extra_above_floor;
        one.user = (void *)(uintptr_t)c;
    } else if (k != c->last) { /* the user's cell is one of the output */
        memset(one.fixed, 0, sizeof one.fixed);
        one.unit[0] = one.unit[1] = 1;
        one.unit[2] = TGI_GRANULE;
    }
    return k == c->last && choose_was(c->a, &one, got) ? TG_OK : tgi_choose(&one, got, err);
}

static tg_status choose_stage(chooser *c, int k, size_t limit, tgi_err *err)
{
    tgi_choice got;
    const tg_status st = choose_one(c, k, limit, &got, err);
    if (k == c->last)
        c->least = got.smallest_bytes;
    if (st != TG_OK)
        return st;
    tgi_tiling_free(&c->s->tiling[k]);
    c->s->tiling[k] = got.tiling;
    c->s->seconds += got.seconds;
    const size_t arena = arena_of(c, &got.tiling);
    if (arena > c->s->arena_bytes)
        c->s->arena_bytes = arena;
    if (k == c->last && !c->apart)
        c->s->window_bytes = extra_of(c, &got.tiling) - rows_of(c->a, &got.tiling);
    return TG_OK;
}

/* All stages: first the one whose output decides how large the writer's window is. */
static tg_status choose_all(chooser *c, tgi_err *err)
{
    tgi_staged *s = c->s;
    s->seconds = (double)s->moved_bytes / DISK_BYTES_PER_SECOND;
    s->arena_bytes = s->window_bytes = 0;
    TGI_TRY(choose_stage(c, c->last, c->limit, err));
    for (int k = 0; k < s->n; k++)
        if (k != c->last)
            TGI_TRY(choose_stage(
                c, k, c->limit > s->window_bytes ? c->limit - s->window_bytes : 0, err));
    return TG_OK;
}

/* How often stage k loads a value: once in all its cells, in each where it is loaded at once, in
 * pieces for each node that looks at it in each band. */
static double loads_of(const tgi_staged *s, int k, int v)
{
    const tgi_stage *t = &s->cut->stage[k];
    for (int i = 0; i < t->n_loaded; i++)
        if (t->in[i].value == v)
            return t->in[i].in_pieces ? (double)s->tiling[k].bands * tgi_stage_looks_at(t, v)
                   : t->in[i].at_once ? (double)s->tiling[k].cells
                                      : 1;
    return 0;
}

/* What goes to the disk and comes back, now that the cells are known. */
static void count_moved(tgi_staged *s)
{
    double moved = 0;
    for (int i = 0; i < s->n_kept; i++) {
        double times = 1;
        for (int k = 0; k < s->n && s->kept[i].on_disk; k++)
            times += loads_of(s, k, s->kept[i].value);
        moved += s->kept[i].on_disk ? times * (double)s->kept[i].bytes : 0;
    }
    s->seconds += (moved - (double)s->moved_bytes) / DISK_BYTES_PER_SECOND;
    s->moved_bytes = (uint64_t)moved;
}

static int is_floor_known(const chooser *c)
{
    return !c->apart && c->a->cut->floor_used == c->a->cut->one.net->n_used;
}

/* Does an operator of the stage hold all of a value? There is one way to compute it, then. */
static int needs_all(const tgi_stages *cut, int k)
{
    return cut->stage[k].whole_op != NULL;
}

/* A stage that fits what another one needs does not raise it; of a device all is asked. */
static tg_status raise_floor(chooser *c, int k, tgi_err *err)
{
    tgi_choice got;
    c->any = !c->apart;
    const tg_status st = choose_one(c, k, c->apart ? 0 : c->floor, &got, err);
    c->any = 0;
    if (st == TG_E_BUDGET && got.smallest_bytes > c->floor)
        c->floor = got.smallest_bytes;
    tgi_choice_free(&got);
    return st == TG_E_BUDGET ? TG_OK : st;
}

/* What the stages but the last one need: the same for every grid of the output and every place
 * of what is kept. */
static tg_status find_floor(chooser *c, tgi_err *err)
{
    tgi_stages *cut = c->a->cut;
    if (is_floor_known(c)) {
        c->floor = cut->floor;
        return TG_OK;
    }
    c->floor = 0;
    for (int whole = 1; whole >= 0; whole--)
        for (int k = 0; k < c->s->n; k++)
            if (k != c->last && whole == needs_all(cut, k))
                TGI_TRY(raise_floor(c, k, err));
    cut->floor = c->floor;
    cut->floor_used =
        c->apart ? -1 : cut->one.net->n_used; /* places take room of another kind */
    return TG_OK;
}

/* What is fastest for the last stage may leave the others too little. Then it gets what they do
 * not need; that this is too little, too, is a refusal, and c->least says what would do. */
static tg_status choose_tilings(chooser *c, tgi_err *err)
{
    for (int k = 0; k < c->s->n && !c->apart && !is_floor_known(c); k++)
        if (needs_all(c->a->cut, k)) /* it says what no other stage can change */
            TGI_TRY(find_floor(c, err));
    c->floor = 0;
    const int hopeless = is_floor_known(c) && c->a->cut->floor > c->limit;
    const tg_status st = hopeless ? TG_E_BUDGET : choose_all(c, err);
    if (st != TG_E_BUDGET)
        return st;
    TGI_TRY(find_floor(c, err));
    return choose_all(c, err);
}

static void drop_tilings(tgi_staged *s)
{
    for (int k = 0; k < s->n && s->tiling; k++)
        tgi_tiling_free(&s->tiling[k]);
}

void tgi_staged_free(tgi_staged **sp)
{
    tgi_staged *s = *sp;
    if (!s)
        return;
    drop_tilings(s);
    tgi_free(s->tiling);
    tgi_free(s->kept);
    tgi_free(s->gathered);
    tgi_free(s);
    *sp = NULL;
}

static tg_status open_staged(const tgi_staged_args *a, tgi_staged **out, tgi_err *err)
{
    tgi_staged *s = tgi_calloc(TGI_TAG_PLAN, 1, sizeof *s);
    if (!s)
        return tgi_fail(err, TG_E_NOMEM, "no memory to plan %d stages", a->cut->n);
    *out = s;
    s->cut = a->cut;
    s->n = a->cut->n;
    list_kept(s, 1);
    list_gathered(s, 1);
    s->tiling = tgi_calloc(TGI_TAG_PLAN, (size_t)s->n + 1, sizeof *s->tiling);
    s->kept = tgi_calloc(TGI_TAG_PLAN, (size_t)s->n_kept + 1, sizeof *s->kept);
    s->gathered = tgi_calloc(TGI_TAG_PLAN, (size_t)s->n_gathered + 1, sizeof *s->gathered);
    if (!s->tiling || !s->kept || !s->gathered)
        return tgi_fail(err, TG_E_NOMEM, "no memory to plan %d stages", s->n);
    list_kept(s, 0);
    list_gathered(s, 0);
    for (int k = 0; k < s->n; k++)
        TGI_TRY(tgi_stage_lifetimes(&a->cut->stage[k], err));
    count_held(s, a->other);
    return TG_OK;
}

static size_t room_of(const tgi_staged_args *a, size_t beside)
{
    const size_t all = a->choose.limit_bytes;
    if (a->room)
        return a->room(a->choose.user, beside);
    return all > beside ? all - beside : 0;
}

/* One way to keep the values; better ones replace what is in *best. */
static tg_status try_places(const tgi_staged_args *a, int n_on_disk, tgi_staged **best,
                            size_t *least, tgi_err *err)
{
    tgi_staged *s = NULL;
    tg_status st = open_staged(a, &s, err);
    if (st == TG_OK)
        st = place(s, n_on_disk, err);
    if (st == TG_OK && s->disk_bytes > a->disk_limit)
        st = TG_E_NO_SPACE;
    if (st == TG_OK) {
        chooser c = {.a = a, .s = s, .apart = a->room != NULL};
        const size_t shared = c.apart ? 0 : tgi_staged_beside(s);
        c.limit = room_of(a, tgi_staged_beside(s));
        c.last = tgi_stages_last(a->cut);
        mark_looks(s, a->cut);
        const int asked = !a->one_of_many || c.limit > 0;
        st = asked ? choose_tilings(&c, err) : TG_E_BUDGET;
        if (st == TG_OK)
            count_moved(s);
        if (c.apart && c.floor > c.least)
            c.least = c.floor;
        if (asked && tgi_sat_add(c.least, shared) < *least)
            *least = tgi_sat_add(c.least, shared);
    }
    if (st == TG_OK && (!*best || s->seconds < (*best)->seconds)) {
        tgi_staged *worse = *best;
        *best = s;
        s = worse;
    }
    tgi_staged_free(&s);
    return st;
}

void tgi_staged_settle(tgi_staged *s)
{
    if (s)
        mark_looks(s, s->cut);
}

/* How the choice looks to those who know one stage alone: that of the output. */
static tg_status take(const tgi_staged_args *a, tgi_staged *s, tgi_choice *out, tgi_err *err)
{
    const int last = tgi_stages_last(a->cut);
    const tgi_tiling *t = &s->tiling[last];
    tgi_staged_settle(s);
    TGI_TRY(tgi_tiling_make(t->stage, t->cut, t->band, t->threads, NULL, &out->tiling, err));
    out->staged = s;
    out->seconds = s->seconds;
    out->chosen_bytes =
        tgi_sat_add(tgi_sat_add(s->arena_bytes, s->window_bytes), tgi_staged_beside(s));
    return TG_OK;
}

tg_status tgi_choose_staged(const tgi_staged_args *a, tgi_choice *out, tgi_err *err)
{
    tgi_staged *best = NULL, *counted = NULL;
    size_t least = SIZE_MAX;
    int n = 0;
    out->tiling = (tgi_tiling){0};
    out->staged = NULL;
    out->seconds = out->least_seconds = 0;
    out->chosen_bytes = out->beside_bytes = 0;
    out->smallest_bytes = SIZE_MAX;
    tg_status st = open_staged(a, &counted, err);
    n = counted ? counted->n_kept : 0;
    tgi_staged_free(&counted);
    if (st != TG_OK)
        return st;
    const int step = n > PLACES_TRIED ? (n + PLACES_TRIED - 1) / PLACES_TRIED : 1;
    for (int on_disk = 0; on_disk < n + step; on_disk += step) {
        tgi_err why = {0};
        st = try_places(a, on_disk < n ? on_disk : n, &best, &least, &why);
        if (st != TG_OK && st != TG_E_BUDGET && st != TG_E_NO_SPACE) {
            tgi_staged_free(&best);
            return tgi_fail(err, st, "%s", why.text);
        }
        if (a->disk_limit == 0)
            break;
    }
    out->smallest_bytes = least;
    if (!best)
        return tgi_fail(err, TG_E_BUDGET, "%zu bytes are needed at least, %zu are there", least,
                        a->choose.limit_bytes);
    st = take(a, best, out, err);
    if (st != TG_OK)
        tgi_staged_free(&best);
    return st;
}
