/* spatial.c - which image sizes a graph works for.
 *
 * Nothing here knows an operator: inference is asked. First a base size for which the shapes
 * work out (the declared one where the file declares it). A declared size is freed when
 * inference also agrees at twice and three times that size (or as far from it in steps that the
 * network takes) and no local operator keeps its extent while its input grows, which is what a
 * baked-in constant looks like. Then, axis by axis, the smallest step d such that base + d,
 * base + 2d, ... work is the divisor, base mod d the remainder (4k+2 is what some networks of
 * valid convolutions and poolings take), and the smallest extent of that form that works the
 * minimum.
 *
 * Batch is 1 in all of this: images are looped over outside. */
#include "engine/graph/graph_priv.h"

#include "engine/base/arith.h"

#include <stdio.h>
#include <string.h>

#define MAX_DIVISOR 512
#define PROBES 8 /* consecutive steps that must all work */
#define SEARCH_FROM 16
#define GROWTH_EVERY 96 /* steps tried one by one from base, then every GROWTH_STRIDE-th */
#define GROWTH_STRIDE 32
#define SEARCH_STEPS 1024 /* extents looked through when none of the list works */

/* z, y, x to try for extents that the file leaves open; y and x differ so that a mixed-up axis
 * shows. All but the last few are multiples of what pooling networks ask for. */
static const int64_t bases[][3] = {
    {64, 512, 768}, {32, 256, 384}, {64, 480, 720},   {16, 224, 224}, {16, 128, 192},
    {8, 96, 64},    {8, 64, 64},    {16, 1024, 2048}, {16, 257, 321}, {16, 32, 32}};
#define N_BASES ((int)(sizeof bases / sizeof bases[0]))

/* Is an input of this rank a line, [N,C,L] or [N,L]? */
static int is_line(const tgi_graph *g, int rank)
{
    return tgi_priv(g)->lines && (rank == 2 || rank == 3);
}

/* Is the first axis that of samples? */
static int has_batch(const tgi_graph *g, int rank)
{
    return rank >= 4 || is_line(g, rank);
}

/* Which file axes of an input are spatial, before anything is known about the graph: the last
 * ones, or those before the last where only the last of [N,?,?,c] is given. */
static void guess_spatial(const tgi_graph *g, const tgi_port *p, int rank, int *first,
                          int *last)
{
    *first = is_line(g, rank) ? rank - 1 : rank >= 4 ? 2 : rank >= 2 ? rank - 2 : 0;
    *last = rank - 1;
    if (rank < (is_line(g, rank) ? 3 : 4) || p->file_rank != rank || p->file_dim[rank - 1] < 0)
        return;
    for (int i = 1; i < rank - 1; i++)
        if (p->file_dim[i] > 0)
            return;
    *first = 1;
    *last = rank - 2;
}

/* Base desc of an input; `open` gets bit 0 for an open extent, bit 1 for open channels. */
static tgi_desc try_input(const tgi_graph *g, int port, const int64_t ext[3], int64_t channels,
                          int *open)
{
    const tgi_port *p = &g->in[port];
    const tgi_graph_priv *priv = tgi_priv(g);
    const int rank = p->file_rank ? p->file_rank : 4;
    tgi_desc d = {.dtype = TG_DTYPE_F32, .rank = rank};
    int first, last;
    guess_spatial(g, p, rank, &first, &last);
    for (int i = 0; i < rank; i++) {
        const int64_t declared = p->file_rank ? p->file_dim[i] : -1;
        const int spatial = i >= first && i <= last;
        const int from_x = last - i; /* 0: x, 1: y, 2: z */
        if (i == 0 && has_batch(g, rank))
            d.dim[i] = 1;
        else if (declared > 0)
            d.dim[i] = declared;
        else if (spatial) {
            d.dim[i] = ext[from_x < 2 ? 2 - from_x : 0] * priv->ratio[port].up /
                       priv->ratio[port].down;
            *open |= 1;
        } else {
            d.dim[i] = channels;
            *open |= 2;
        }
    }
    return d;
}

/* TG_OK, or the failure in err; what ends the search is told apart by its code. */
static tg_status probe(const tgi_graph *g, const tgi_desc *in, tgi_err *err)
{
    tgi_shapes s;
    tg_status st = tgi_graph_infer(g, in, &s, err);
    if (st == TG_OK)
        st = tgi_ties_hold(g, in, &s, err);
    tgi_shapes_free(&s);
    return st;
}

/* Write down what the search found out about an input without a declared shape. */
static void settle_port(const tgi_graph *g, tgi_port *p, const tgi_desc *d)
{
    int first, last;
    const int unknown = p->file_rank == 0;
    if (unknown)
        p->file_rank = d->rank;
    guess_spatial(g, p, d->rank, &first, &last);
    for (int i = has_batch(g, d->rank) ? 1 : 0; i < d->rank; i++)
        if ((i < first || i > last) && p->file_dim[i] < 0)
            p->file_dim[i] = d->dim[i];
}

static void settle(tgi_graph *g)
{
    for (int i = 0; i < g->n_in; i++)
        settle_port(g, &g->in[i], &tgi_priv(g)->base_in[i]);
}

/* One try: all inputs at extents ext (z,y,x) and, where open, that many channels. */
static tg_status try_base(const tgi_graph *g, const int64_t ext[3], int64_t channels, int *open,
                          tgi_err *err)
{
    tgi_desc *in = tgi_priv(g)->base_in;
    for (int i = 0; i < g->n_in; i++)
        in[i] = try_input(g, i, ext, channels, open);
    return probe(g, in, err);
}

/* Networks that take only extents such as 28k + 4: every extent in turn, the same on all axes,
 * and then, so that a mixed-up axis shows, another one for x. TG_OK with *found 0: none works.
 */
static tg_status search_base(const tgi_graph *g, int64_t channels, int *found, tgi_err *err)
{
    int open = 0;
    int64_t ext[3] = {SEARCH_FROM, SEARCH_FROM, SEARCH_FROM};
    for (*found = 0; !*found && ext[2] < SEARCH_FROM + SEARCH_STEPS; ext[2]++) {
        tgi_err e = {0};
        ext[0] = ext[1] = ext[2];
        const tg_status st = try_base(g, ext, channels, &open, &e);
        if (tgi_search_ends(st))
            return tgi_fail(err, st, "%s", e.text);
        *found = st == TG_OK;
    }
    if (!*found)
        return TG_OK;
    for (int64_t x = ext[1] + 1; x < ext[1] + SEARCH_STEPS / 2; x++) {
        tgi_err e = {0};
        ext[2] = x;
        const tg_status st = try_base(g, ext, channels, &open, &e);
        if (st != TG_E_FORMAT)
            return st == TG_OK ? TG_OK : tgi_fail(err, st, "%s", e.text);
    }
    ext[2] = ext[1];
    return try_base(g, ext, channels, &open, err);
}

/* How the sizes of the list failed: whether the size is to blame shows in what is said of it.
 */
typedef struct failures {
    tgi_err first;
    int by_size; /* another size failed in another way */
} failures;

static void note_failure(failures *f, const tgi_err *e)
{
    if (f->first.code == TG_OK)
        f->first = *e;
    else if (strcmp(f->first.text, e->text) != 0)
        f->by_size = 1;
}

/* At the ratios that are set. */
static tg_status find_base(tgi_graph *g, tgi_err *err)
{
    static const int64_t counts[] = {1, 3, 2, 4, 6, 5, 8, 16, 32, 64, 7, 9, 10, 12, 20, 48};
    tgi_err first = {0};
    int open = 0;
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        failures f = {{0}, 0};
        for (int b = 0; b < N_BASES; b++) {
            tgi_err e = {0};
            open = 0;
            const tg_status st = try_base(g, bases[b], counts[c], &open, &e);
            if (st == TG_OK) {
                settle(g);
                return TG_OK;
            }
            if (tgi_search_ends(st))
                return tgi_fail(err, st, "%s", e.text);
            note_failure(&f, &e);
            if (!(open & 1))
                break;
        }
        if (first.code == TG_OK)
            first = f.first;
        if (c < 2 && f.by_size && !tgi_priv(g)->n_tied && f.first.code == TG_E_FORMAT &&
            (open & 1)) {
            int found;
            TGI_TRY(search_base(g, counts[c], &found, err));
            if (found) {
                settle(g);
                return TG_OK;
            }
        }
        if (!(open & 2))
            break;
    }
    return tgi_fail(err, first.code, "%s", first.text);
}

tg_status tgi_size_find_base(tgi_graph *g, tgi_err *err)
{
    tgi_err first = {0};
    for (int64_t k = 0; tgi_ties_set(g, k); k++) {
        tgi_err e = {0};
        const tg_status st = find_base(g, &e);
        if (st == TG_OK || tgi_search_ends(st))
            return st == TG_OK ? TG_OK : tgi_fail(err, st, "%s", e.text);
        if (first.code == TG_OK)
            first = e;
    }
    return tgi_fail(
        err, first.code, "%s%s", first.text,
        g->n_in > 1 && !tgi_priv(g)->n_tied
            ? "; an input that holds what an output gave of the frame before is named "
              "with --state OUT=IN"
            : "");
}

/* ---- Other sizes ------------------------------------------------------------------------- */

#define OTHER_STEPS 96 /* pixels more that are tried where no multiple of the base works */

int tgi_size_channels_last(const tgi_graph *g, int port)
{
    int first, last;
    guess_spatial(g, &g->in[port], tgi_priv(g)->base_in[port].rank, &first, &last);
    return first == 1;
}

/* How another size is made of the base: extents times `times` (z,y,x), and `more` pixels. */
typedef struct other_size {
    int declared; /* of extents that the file declares, too */
    int64_t times[3], more;
} other_size;

/* 1: some extent is another. */
static int other_inputs(const tgi_graph *g, const other_size *o, tgi_desc *in)
{
    int changed = 0;
    for (int i = 0; i < g->n_in; i++) {
        int first, last;
        in[i] = tgi_priv(g)->base_in[i];
        guess_spatial(g, &g->in[i], in[i].rank, &first, &last);
        for (int a = first; a <= last; a++) {
            const int from_x = last - a;
            if (g->in[i].file_dim[a] > 0 && !o->declared)
                continue;
            in[i].dim[a] = in[i].dim[a] * o->times[from_x < 2 ? 2 - from_x : 0] + o->more;
            changed = 1;
        }
    }
    return changed;
}

static tg_status try_other(const tgi_graph *g, const other_size *o, tgi_desc *in, int *found,
                           tgi_err *err)
{
    tgi_err e = {0};
    if (!other_inputs(g, o, in))
        return TG_OK;
    const tg_status st = probe(g, in, &e);
    *found = st == TG_OK;
    return tgi_search_ends(st) ? tgi_fail(err, st, "%s", e.text) : TG_OK;
}

tg_status tgi_size_other(const tgi_graph *g, int k, tgi_desc *in, int *found, tgi_err *err)
{
    /* What rounds extents down shows at odd ones, and what a declared size hides at another:
     * such sizes come first. */
    static const other_size first[] = {{0, {1, 1, 2}, 0}, {1, {1, 1, 2}, 0}},
                            second[] = {{1, {2, 3, 1}, 1},
                                        {1, {2, 3, 1}, 0},
                                        {0, {2, 3, 1}, 1},
                                        {0, {2, 3, 1}, 0}};
    const other_size *list = k == 1 ? first : second;
    const int n =
        k == 1 ? (int)(sizeof first / sizeof *first) : (int)(sizeof second / sizeof *second);
    *found = 0;
    for (int i = 0; i < n && !*found; i++)
        TGI_TRY(try_other(g, &list[i], in, found, err));
    for (int64_t more = k; !*found && more <= k * OTHER_STEPS; more += k) {
        const other_size o = {0, {1, 1, 1}, more};
        TGI_TRY(try_other(g, &o, in, found, err));
    }
    return TG_OK;
}

/* ---- Free or fixed ----------------------------------------------------------------------- */

/* Axis of ext[] (z,y,x) that belongs to axis `a` of an activation of this rank. */
static int ext_axis(int rank, int a)
{
    return a - rank + 3;
}

void tgi_graph_input_descs(const tgi_graph *g, const int64_t ext[3], tgi_desc *in)
{
    const tgi_graph_priv *p = tgi_priv(g);
    const int rank0 = p->base_in[0].rank;
    for (int i = 0; i < g->n_in; i++) {
        in[i] = p->base_in[i];
        for (int a = 2; a < in[i].rank && in[i].rank == rank0; a++) {
            const int64_t b0 = p->base_in[0].dim[a], e = ext[ext_axis(rank0, a)];
            int64_t scaled;
            if (in[i].dim[a] == b0)
                in[i].dim[a] = e;
            else if (tgi_mul64_ok(in[i].dim[a], e, &scaled))
                in[i].dim[a] = scaled / b0;
        }
    }
}

static tg_status probe_ext(const tgi_graph *g, const int64_t ext[3], tgi_err *err)
{
    tgi_desc in[TGI_MAX_PORTS];
    tgi_graph_input_descs(g, ext, in);
    return probe(g, in, err);
}

/* Declared extent of spatial axis `k` (index into z,y,x) of an input: > 0 fixed, -1 free, 0:
 * the file has no such axis. */
static int64_t declared(const tgi_port *p, int rank, int k)
{
    const int a = rank - 3 + k;
    return p->perm[a] < 0 ? 0 : p->file_dim[p->perm[a]];
}

static tg_status set_why(tgi_graph *g, const char *why, tgi_err *err)
{
    g->fixed_size = 1;
    tgi_free(g->fixed_why);
    g->fixed_why = tgi_strdup(TGI_TAG_GRAPH, why);
    return g->fixed_why ? TG_OK : tgi_fail(err, TG_E_NOMEM, "no memory for a message");
}

/* A local node whose input grew from `a` to `b` while its output did not: the constant shows.
 */
static const tgi_node *find_stuck(const tgi_graph *g, const tgi_shapes *a, const tgi_shapes *b,
                                  int *axis)
{
    for (int i = 0; i < g->n_nodes; i++) {
        const tgi_node *n = &g->nodes[i];
        const tgi_desc *d = &a->desc[n->dst[0]];
        if (n->op_class != TGI_OP_LOCAL || d->rank < 4)
            continue;
        for (int k = 0; k < n->n_src; k++) {
            const int v = n->src[k];
            for (int x = 2; v >= 0 && x < d->rank && a->desc[v].rank == d->rank; x++)
                if (a->desc[v].dim[x] != b->desc[v].dim[x] &&
                    d->dim[x] == b->desc[n->dst[0]].dim[x]) {
                    *axis = x;
                    return n;
                }
        }
    }
    return NULL;
}

/* Where an output's extents follow the input's, its file extents are free too. */
static void free_outputs(tgi_graph *g, const tgi_shapes *a, const tgi_shapes *b)
{
    for (int i = 0; i < g->n_out; i++) {
        tgi_port *p = &g->out[i];
        const tgi_desc *da = &a->desc[p->value], *db = &b->desc[p->value];
        for (int x = 0; x < da->rank; x++)
            if (p->perm[x] >= 0 && da->dim[x] != db->dim[x])
                p->file_dim[p->perm[x]] = -1;
    }
}

static void free_inputs(tgi_graph *g)
{
    for (int i = 0; i < g->n_in; i++)
        for (int a = 2; a < tgi_priv(g)->base_in[i].rank; a++)
            if (g->in[i].perm[a] >= 0)
                g->in[i].file_dim[g->in[i].perm[a]] = -1;
}

/* Extents of base plus `times` its own, or plus `times` a step. */
static void grow(const tgi_graph *g, int64_t step, int64_t times, int64_t ext[3])
{
    for (int k = 0; k < 3; k++)
        ext[k] = g->base[k] > 1 ? g->base[k] + times * (step ? step : g->base[k]) : g->base[k];
}

/* Do the shapes at base and at `ext` agree? Then outputs follow the input; else *why, of `cap`
 * bytes, tells what does not. */
static tg_status compare_at(tgi_graph *g, const tgi_shapes *base, const int64_t ext[3],
                            char *why, size_t cap, int *yes, tgi_err *err)
{
    tgi_desc in[TGI_MAX_PORTS];
    tgi_shapes s;
    tgi_err e = {0};
    int axis = 0;
    *yes = 0;
    tgi_graph_input_descs(g, ext, in);
    const tg_status st = tgi_graph_infer(g, in, &s, &e);
    if (tgi_search_ends(st))
        return tgi_fail(err, st, "%s", e.text);
    if (st != TG_OK) {
        snprintf(why, cap, "at %lldx%lld, %s", (long long)ext[1], (long long)ext[2], e.text);
        return TG_OK;
    }
    const tgi_node *stuck = find_stuck(g, base, &s, &axis);
    if (stuck) {
        snprintf(why, cap, "%s \"%s\" holds the constant extent %lld", stuck->op->name,
                 stuck->name, (long long)s.desc[stuck->dst[0]].dim[axis]);
    } else {
        *yes = 1;
        free_outputs(g, base, &s);
    }
    tgi_shapes_free(&s);
    return TG_OK;
}

/* The step in which to grow from base: 0, its own extents, when twice the base works; else the
 * least that works (a network of 4k + 2 does not take twice its base), times what makes it
 * about the base: operators that round extents down show nothing at small steps. */
static tg_status find_growth(const tgi_graph *g, int64_t *step, tgi_err *err)
{
    const int64_t side = tgi_max(g->base[1], g->base[2]);
    int64_t ext[3];
    *step = 0;
    for (int64_t t = 0; t <= MAX_DIVISOR; t += t < GROWTH_EVERY ? 1 : GROWTH_STRIDE) {
        tgi_err e = {0};
        grow(g, t, 1, ext);
        const tg_status st = probe_ext(g, ext, &e);
        if (tgi_search_ends(st))
            return tgi_fail(err, st, "%s", e.text);
        if (st == TG_OK) {
            *step = t ? tgi_align_up(side, t) : 0;
            return TG_OK;
        }
    }
    return TG_OK;
}

/* Of a network whose size is fixed: outputs follow the axis that the file leaves open, where it
 * is another that is held. */
static tg_status follow_open(tgi_graph *g, const tgi_shapes *base, int k, tgi_err *err)
{
    int64_t ext[3] = {g->base[0], g->base[1], g->base[2]};
    char why[1024];
    int yes = g->base[k] > 1 && declared(&g->in[0], g->spatial + 2, k) < 0;
    for (int times = 1; times <= 2 && yes; times++) {
        ext[k] += g->base[k];
        TGI_TRY(compare_at(g, base, ext, why, sizeof why, &yes, err));
    }
    return TG_OK;
}

static tg_status free_or_fix(tgi_graph *g, tgi_err *err)
{
    tgi_shapes base;
    int64_t step = 0, ext[3];
    TGI_TRY(tgi_infer_base(g, &base, err));
    for (int i = 0; i < g->n_out; i++) { /* names of extents tell nothing; shapes do */
        tgi_port *p = &g->out[i];
        for (int x = 1; x < base.desc[p->value].rank; x++)
            if (p->perm[x] >= 0 && p->file_dim[p->perm[x]] < 0)
                p->file_dim[p->perm[x]] = base.desc[p->value].dim[x];
    }
    tg_status st = find_growth(g, &step, err);
    for (int times = 1; times <= 2 && st == TG_OK && !g->fixed_size; times++) {
        char why[1024];
        int yes;
        grow(g, step, times, ext);
        st = compare_at(g, &base, ext, why, sizeof why, &yes, err);
        if (st == TG_OK && !yes)
            st = set_why(g, why, err);
    }
    if (st == TG_OK && !g->fixed_size)
        free_inputs(g);
    for (int k = 3 - g->spatial; k < 3 && st == TG_OK && g->fixed_size; k++)
        st = follow_open(g, &base, k, err);
    tgi_shapes_free(&base);
    return st;
}

/* A size that is held may be held by constants alone: once more with expressions in their
 * place, which stay only if nothing else holds it. */
static tg_status retry_freed(tgi_graph *g, tgi_err *err)
{
    tgi_freed f;
    tg_status st = tgi_free_sizes(g, &f, err);
    char *why = g->fixed_why;
    if (st == TG_OK && f.n) {
        g->fixed_why = NULL;
        g->fixed_size = 0;
        st = free_or_fix(g, err);
        if (st == TG_OK && g->fixed_size) {
            tgi_free(g->fixed_why);
            g->fixed_why = why;
            st = tgi_fix_sizes(g, &f, err);
        } else {
            tgi_free(why);
            if (st == TG_OK)
                st = tgi_graph_note(g, err,
                                    "%d constants of the declared size follow the image", f.n);
        }
    }
    tgi_free(f.item);
    return st;
}

/* ---- Divisors and minima ----------------------------------------------------------------- */

/* Does every one of PROBES steps of d up from base work along axis k, the others at base? */
static tg_status divides(const tgi_graph *g, int k, int64_t d, int *yes, tgi_err *err)
{
    int64_t ext[3] = {g->base[0], g->base[1], g->base[2]};
    *yes = 0;
    for (int64_t m = 1; m <= PROBES; m++) {
        tgi_err e = {0};
        ext[k] = g->base[k] + m * d;
        const tg_status st = probe_ext(g, ext, &e);
        if (tgi_search_ends(st))
            return tgi_fail(err, st, "%s", e.text);
        if (st != TG_OK)
            return TG_OK;
    }
    *yes = 1;
    return TG_OK;
}

static tg_status find_minimum(tgi_graph *g, int k, tgi_err *err)
{
    int64_t ext[3] = {g->base[0], g->base[1], g->base[2]};
    const int64_t d = g->divisor[k], r = g->remainder[k];
    for (ext[k] = r ? r : d; ext[k] < g->base[k]; ext[k] += d) {
        tgi_err e = {0};
        const tg_status st = probe_ext(g, ext, &e);
        if (tgi_search_ends(st))
            return tgi_fail(err, st, "%s", e.text);
        if (st == TG_OK)
            break;
    }
    g->minimum[k] = ext[k];
    return TG_OK;
}

/* *found 0: there is none; the axis has its base then. */
static tg_status find_divisor(tgi_graph *g, int k, int *found, tgi_err *err)
{
    *found = 0;
    for (int64_t d = 1; d <= MAX_DIVISOR && !*found; d++) {
        TGI_TRY(divides(g, k, d, found, err));
        g->divisor[k] = *found ? d : 1;
        g->remainder[k] = *found ? g->base[k] % d : 0;
    }
    g->minimum[k] = g->base[k];
    return *found ? find_minimum(g, k, err) : TG_OK;
}

int tgi_graph_has_axis(const tgi_graph *g, int k)
{
    return declared(&g->in[0], g->spatial + 2, k) != 0;
}

int64_t tgi_graph_fixed_extent(const tgi_graph *g, int k)
{
    const int64_t n = declared(&g->in[0], g->spatial + 2, k);
    return n == 0 ? 1 : g->fixed_size && n > 0 ? n : 0;
}

int64_t tgi_graph_extent(const tgi_graph *g, int k, int64_t n)
{
    const int64_t d = tgi_max(1, g->divisor[k]), r = g->remainder[k];
    const int64_t least = tgi_max(n, g->minimum[k]);
    return tgi_align_up(tgi_max(0, least - r), d) + r;
}

/* "; it is read by Op": who keeps an input of three axes from being a line. */
static const char *first_reader(const tgi_graph *g, char *text, size_t cap)
{
    text[0] = 0;
    for (int i = 0; i < g->n_nodes; i++)
        if (g->nodes[i].src[0] == g->in[0].value) {
            snprintf(text, cap, "; it is read by %s \"%.60s\"", g->nodes[i].op->name,
                     g->nodes[i].name);
            break;
        }
    return text;
}

tg_status tgi_size_find_rank(tgi_graph *g, tgi_err *err)
{
    char text[128];
    const tgi_desc *in0 = &tgi_priv(g)->base_in[0];
    if (in0->rank < 4 || in0->rank > 5)
        return tgi_fail(err, TG_E_UNSUPPORTED,
                        "input \"%s\" has %d axes; images have 4 ([N,C,H,W]) or 5 "
                        "([N,C,D,H,W]), lines that a window slides over 3 ([N,C,L])%s",
                        g->in[0].name, in0->rank, first_reader(g, text, sizeof text));
    g->spatial = in0->rank - 2;
    for (int k = 0; k < 3; k++)
        g->base[k] = k >= 3 - g->spatial ? in0->dim[in0->rank - 3 + k] : 1;
    return TG_OK;
}

static void take_base(tgi_graph *g, int k)
{
    g->minimum[k] = g->base[k];
    g->divisor[k] = 1;
    g->remainder[k] = 0;
}

/* Divisors and minima of the axes that are free, or were left open by the file. */
static tg_status find_steps(tgi_graph *g, tgi_err *err)
{
    for (int k = 3 - g->spatial; k < 3; k++) {
        const int64_t n = declared(&g->in[0], g->spatial + 2, k);
        int found;
        take_base(g, k);
        if (n == 0 || g->base[k] == 1 || (g->fixed_size && n > 0))
            continue;
        TGI_TRY(find_divisor(g, k, &found, err));
        if (!found && !g->fixed_size)
            return set_why(g, "the extents that work do not follow each other in even steps",
                           err);
    }
    return TG_OK;
}

tg_status tgi_size_analyse(tgi_graph *g, tgi_err *err)
{
    TGI_TRY(free_or_fix(g, err));
    if (g->fixed_size)
        TGI_TRY(retry_freed(g, err));
    const int fixed = g->fixed_size;
    TGI_TRY(find_steps(g, err));
    for (int k = 0; k < 3 && g->fixed_size && !fixed; k++)
        take_base(g, k);
    return TG_OK;
}
