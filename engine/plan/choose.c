/* choose.c - tries band heights and cell sizes, and keeps the cheapest tiling that fits. */
#include "engine/plan/choose.h"

#include "engine/base/arith.h"
#include "engine/plan/staged.h"

#include <string.h>

/* What a call of a kernel costs beyond its arithmetic: waking the threads, and streaming its
 * weights past the caches once more. */
#define SECONDS_PER_CALL 15e-6
#define WEIGHT_BYTES_PER_SECOND 30e9
/* Memory is made before the first band: the kernel clears every page. Between 0.1 and 5 GB/s on
 * one virtual machine within a minute, so it is not measured: `run` must choose what `plan`
 * showed, and the same command the same kernels, hence bits, tomorrow. */
#define CLEARED_BYTES_PER_SECOND 1.5e9

#define SPARED 1.02
#define TALLEST_BAND 256    /* what is above leaves the caches */
#define NARROWEST_LINE 2048 /* narrower is tried only where it has to be */

static double seconds_of(const tgi_choose_args *a, const tgi_tiling *t, size_t bytes)
{
    if (a->seconds)
        return a->seconds(a->user, t);
    return t->work / a->flops_per_second + t->cost.calls * SECONDS_PER_CALL +
           t->cost.weight_bytes / WEIGHT_BYTES_PER_SECOND +
           (double)bytes / CLEARED_BYTES_PER_SECOND;
}

static size_t bytes_of(const tgi_choose_args *a, const tgi_tiling *t)
{
    return tgi_sat_add(t->arena_bytes, a->extra ? a->extra(a->user, t) : 0);
}

static void note(tgi_choice *c, const tgi_tiling *t, size_t bytes, double seconds, int fits)
{
    if (c->n_tried == TGI_MAX_TRIED)
        return;
    tgi_tried *r = &c->tried[c->n_tried++];
    *r = (tgi_tried){.band = t->band,
                     .bytes = bytes,
                     .seconds = seconds,
                     .fits = fits,
                     .recomputed = tgi_tiling_recomputed(t)};
    memcpy(r->cut, t->cut, sizeof r->cut);
}

/* Of a device's memory a plan takes no more than pays: what is as fast within SPARED and takes
 * less is better. The processor's seconds have their memory in them. */
static int better(const tgi_choose_args *a, tgi_choice *c, double seconds, size_t bytes)
{
    if (!c->tiling.slot || !a->seconds) {
        c->least_seconds = seconds;
        return !c->tiling.slot || seconds < c->seconds;
    }
    const double least = seconds < c->least_seconds ? seconds : c->least_seconds;
    c->least_seconds = least;
    return seconds <= least * SPARED &&
           (bytes < c->chosen_bytes || c->seconds > least * SPARED);
}

/* Try one tiling; keep it when it fits and is cheaper than the best. *fits tells. */
static tg_status try_one(const tgi_choose_args *a, const int64_t cut[3], int64_t band,
                         tgi_tiling *like, tgi_choice *c, int *fits, tgi_err *err)
{
    tgi_tiling t;
    TGI_TRY(
        tgi_tiling_make(a->stage, cut, band, a->threads, like->slot ? like : NULL, &t, err));
    const size_t bytes = bytes_of(a, &t);
    const double seconds = seconds_of(a, &t, bytes);
    *fits = bytes <= a->limit_bytes;
    note(c, &t, bytes, seconds, *fits);
    c->smallest_bytes = bytes < c->smallest_bytes ? bytes : c->smallest_bytes;
    if (*fits && better(a, c, seconds, bytes)) {
        tgi_tiling_free(&c->tiling);
        c->tiling = t;
        c->seconds = seconds;
        c->chosen_bytes = bytes;
        if (!like->slot) /* the walk must outlive a better choice: make it again cheaply */
            TGI_TRY(tgi_tiling_make(a->stage, cut, band, a->threads, &c->tiling, like, err));
        return TG_OK;
    }
    if (!like->slot)
        *like = t;
    else
        tgi_tiling_free(&t);
    return TG_OK;
}

/* The cut for cell number `n` of the way down: n strips of columns; volumes split the longer of
 * y and x in turn. */
static void cut_for(const tgi_choose_args *a, int64_t n, int64_t cut[3])
{
    const tgi_net *net = a->stage->net;
    int64_t dim[3] = {1, 1, 1}, parts[3] = {1, 1, 1};
    for (int axis = TGI_STREAM_AXIS; axis < net->rank; axis++)
        dim[tgi_cut_of_axis(net, axis)] = a->stage->fit[axis - TGI_STREAM_AXIS].out;
    if (net->rank == 4) {
        parts[2] = n;
    } else {
        for (int64_t k = 1; k < n; k *= 2) {
            const int longer = dim[1] / parts[1] >= dim[2] / parts[2] ? 1 : 2;
            parts[longer] *= 2;
        }
    }
    for (int i = 0; i < 3; i++) {
        cut[i] = a->fixed[i] > 0 ? a->fixed[i]
                                 : tgi_align_up(tgi_ceil_div(dim[i], parts[i]), a->unit[i]);
        if (cut[i] > dim[i])
            cut[i] = dim[i];
    }
}

static int same_cut(const int64_t a[3], const int64_t b[3])
{
    return a[0] == b[0] && a[1] == b[1] && a[2] == b[2];
}

/* An image of one row has no bands: only its cells can be small enough for the caches, and for
 * little memory to clear. */
static int is_one_row(const tgi_choose_args *a)
{
    return a->stage->net->rank == 4 && tgi_stage_in_dim(a->stage, 0, TGI_STREAM_AXIS) == 1;
}

/* For one band height: the fewest parts that fit. Memory falls with the width, so double until
 * it fits, then close in from below. Of one row: and then more parts, as they may be faster. */
static tg_status try_band(const tgi_choose_args *a, int64_t band, tgi_choice *c, tgi_err *err)
{
    tgi_tiling like = {0};
    int64_t last[3] = {-1, -1, -1}, cut[3], good = 0, bad = 0;
    tg_status st = TG_OK;
    for (int64_t n = 1; st == TG_OK && n <= (1 << 20); n *= 2) {
        int fits = 0;
        cut_for(a, n, cut);
        if (same_cut(cut, last))
            break; /* as narrow as it gets */
        memcpy(last, cut, sizeof last);
        st = try_one(a, cut, band, &like, c, &fits, err);
        if (fits && !good)
            good = n;
        if (good && (a->any || !is_one_row(a) || cut[2] <= NARROWEST_LINE))
            break;
        bad = good ? bad : n;
    }
    while (st == TG_OK && !a->any && a->stage->net->rank == 4 && good - bad > 1) {
        int fits = 0;
        const int64_t mid = bad + (good - bad) / 2;
        cut_for(a, mid, cut);
        st = try_one(a, cut, band, &like, c, &fits, err);
        if (fits)
            good = mid;
        else
            bad = mid;
    }
    tgi_tiling_free(&like);
    return st;
}

tg_status tgi_choose(const tgi_choose_args *a, tgi_choice *out, tgi_err *err)
{
    memset(out, 0, sizeof *out);
    out->smallest_bytes = SIZE_MAX;
    const int64_t rows = tgi_stage_in_dim(a->stage, 0, TGI_STREAM_AXIS);
    tg_status st = TG_OK;
    if (a->whole || a->stage->whole_op) {
        tgi_choose_args one = *a;
        memset(one.fixed, 0, sizeof one.fixed);
        one.unit[0] = one.unit[1] = one.unit[2] = INT32_MAX; /* never cut */
        st = try_band(&one, rows, out, err);
    } else {
        const int64_t smallest = rows > 16384 ? 8 : rows > 2048 ? 2 : 1;
        const int64_t tallest = a->tallest > TALLEST_BAND ? a->tallest : TALLEST_BAND;
        for (int64_t band = tallest; st == TG_OK && band >= smallest; band /= 2)
            if (!(a->any && out->tiling.slot) && (band < 2 * rows || band == smallest))
                st = try_band(a, band, out, err);
    }
    if (st != TG_OK) {
        tgi_tiling_free(&out->tiling);
        return st;
    }
    if (!out->tiling.slot)
        return tgi_fail(err, TG_E_BUDGET, "%zu bytes are needed at least, %zu are there",
                        out->smallest_bytes, a->limit_bytes);
    return TG_OK;
}

void tgi_choice_free(tgi_choice *c)
{
    tgi_tiling_free(&c->tiling);
    tgi_staged_free(&c->staged);
}

static size_t least_of(const tgi_choice *c)
{
    return tgi_sat_add(c->smallest_bytes, c->beside_bytes);
}

tg_status tgi_choose_kernels(tgi_net *net, int given, int first,
                             tg_status (*choose)(void *user, tgi_choice *out), void *user,
                             tgi_choice *best)
{
    tg_status st = TG_E_BUDGET;
    int used = 0, any = 0;
    memset(best, 0, sizeof *best);
    for (int quarter = given < 0 ? 4 : 0; quarter >= 0; quarter--) {
        const int n = given < 0 ? net->n_fast * quarter / 4 : given;
        if (quarter < 4 && n == net->n_used && any)
            continue; /* few nodes: the same again */
        tgi_net_use_fast(net, n);
        tgi_choice one;
        const tg_status got = choose(user, &one);
        if (got != TG_OK && got != TG_E_BUDGET) { /* not an answer: what it would be is open */
            tgi_choice_free(best);
            return got;
        }
        if (got != TG_OK && st == TG_OK)
            continue; /* fewer weights and yet no room: rounding of file tiles */
        if (got != TG_OK && any && least_of(best) <= least_of(&one))
            continue; /* a kernel that saves weights may take scratch */
        if (got == TG_OK && st == TG_OK && one.seconds >= best->seconds) {
            tgi_choice_free(&one);
            continue;
        }
        tgi_choice_free(best);
        *best = one; /* also what did not fit: the smallest of it */
        any = 1;
        st = got;
        used = net->n_used;
        if (st == TG_OK && (first || tgi_tiling_recomputed(&best->tiling) <= 0))
            break;
    }
    tgi_net_use_fast(net, used);
    return st;
}
