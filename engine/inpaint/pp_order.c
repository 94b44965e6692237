/* pp_order.c - see pp_order.h. */
#include "engine/inpaint/pp_order.h"

#include "engine/base/arith.h"

#include <string.h>

#define MOST_OF_PROPAGATION 100
#define PAD_OF_COMPLETION 5
#define PAD_OF_PROPAGATION 10

/* ---- Rules ------------------------------------------------------------------------------- */

static int64_t half(const tgi_pp_settings *s)
{
    return s->neighbor_length / 2;
}

static int64_t of_propagation(const tgi_pp_settings *s)
{
    return tgi_min(MOST_OF_PROPAGATION, s->subvideo_length);
}

int64_t tgi_pp_reach(const tgi_pp_settings *s)
{
    return s->ref_stride * (s->subvideo_length / s->ref_stride / 2);
}

tgi_pp_window tgi_pp_completion(const tgi_pp_settings *s, int64_t length, int64_t motion)
{
    const int64_t all = length - 1, of = s->subvideo_length, at = motion / of * of;
    if (all <= of)
        return (tgi_pp_window){0, all, 0, all};
    return (tgi_pp_window){tgi_max(0, at - PAD_OF_COMPLETION),
                           tgi_min(all, at + of + PAD_OF_COMPLETION), at,
                           tgi_min(all, at + of)};
}

tgi_pp_window tgi_pp_propagation(const tgi_pp_settings *s, int64_t length, int64_t frame)
{
    const int64_t of = of_propagation(s), at = frame / of * of;
    if (length <= of)
        return (tgi_pp_window){0, length, 0, length};
    return (tgi_pp_window){tgi_max(0, at - PAD_OF_PROPAGATION),
                           tgi_min(length, at + of + PAD_OF_PROPAGATION), at,
                           tgi_min(length, at + of)};
}

static void take(tgi_pp_step *out, int64_t k)
{
    if ((k < out->lo || k >= out->hi) && out->n_refs < TGI_PP_MOST_REFS)
        out->ref[out->n_refs++] = k;
}

void tgi_pp_step_of(const tgi_pp_settings *s, int64_t length, int64_t mid, tgi_pp_step *out)
{
    const int64_t most = s->subvideo_length / s->ref_stride;
    out->mid = mid;
    out->lo = tgi_max(0, mid - half(s));
    out->hi = tgi_min(length, mid + half(s) + 1);
    out->n_refs = 0;
    if (length <= s->subvideo_length) {
        for (int64_t k = 0; k < length; k += s->ref_stride)
            take(out, k);
        return;
    }
    const int64_t end = tgi_min(length, mid + tgi_pp_reach(s));
    for (int64_t k = tgi_max(0, mid - tgi_pp_reach(s)); k < end && out->n_refs <= most;
         k += s->ref_stride)
        take(out, k);
}

tg_status tgi_pp_check(const tgi_pp_settings *s, tgi_err *err)
{
    if (s->neighbor_length < 2)
        return tgi_fail(err, TG_E_ARG, "a neighbor_length of %lld: 2 is the least",
                        (long long)s->neighbor_length);
    if (s->subvideo_length < 1 || s->ref_stride < 1)
        return tgi_fail(err, TG_E_ARG,
                        "a subvideo_length of %lld and a ref_stride of %lld: 1 is the least",
                        (long long)s->subvideo_length, (long long)s->ref_stride);
    if (s->subvideo_length / s->ref_stride >= TGI_PP_MOST_REFS)
        return tgi_fail(err, TG_E_ARG,
                        "%lld references of a step (subvideo_length over ref_stride): fewer "
                        "than %d are possible",
                        (long long)(s->subvideo_length / s->ref_stride), TGI_PP_MOST_REFS);
    return TG_OK;
}

/* ---- Order ------------------------------------------------------------------------------- */

/* The first step that frame k is a neighbour of, and the last one of a film without end. */
static int64_t first_step(const tgi_pp_settings *s, int64_t k)
{
    return tgi_max(0, tgi_ceil_div(k - half(s), half(s)) * half(s));
}

static int64_t last_step(const tgi_pp_settings *s, int64_t k)
{
    return (k + half(s)) / half(s) * half(s);
}

void tgi_pp_begin(tgi_pp_order *o, const tgi_pp_settings *s, const tgi_pp_acts *act,
                  int64_t length, int64_t first)
{
    *o = (tgi_pp_order){.set = *s, .act = *act, .length = length < 0 ? TGI_PP_UNKNOWN : length};
    o->step = first_step(s, first);
    /* What the first step reads decides where everything begins. It may begin sooner than need be, where the length is
     * not known. */
    if (o->length <= s->subvideo_length || length < 0)
        return;
    tgi_pp_step_of(s, o->length, o->step, &o->now);
    int64_t frame = o->now.lo;
    for (int i = 0; i < o->now.n_refs; i++)
        frame = tgi_min(frame, o->now.ref[i]);
    const tgi_pp_window p = tgi_pp_propagation(s, o->length, frame);
    const tgi_pp_window c =
        tgi_pp_completion(s, o->length, tgi_min(p.s, tgi_max(0, o->length - 2)));
    o->next[TGI_PP_UPDATED] = p.keep0;
    o->next[TGI_PP_COMPLETED] = c.keep0;
    o->next[TGI_PP_MOTIONS] = o->next[TGI_PP_FRAMES] = c.s;
}

/* Frames below k were read, or the film ends before. */
static tg_status read_until(tgi_pp_order *o, int64_t k, tgi_err *err)
{
    while (o->next[TGI_PP_FRAMES] < tgi_min(k, o->length)) {
        int end = 0;
        TGI_TRY(o->act.frame(o->act.user, o->next[TGI_PP_FRAMES], &end, err));
        if (end)
            o->length = o->next[TGI_PP_FRAMES];
        else
            o->next[TGI_PP_FRAMES]++;
    }
    return TG_OK;
}

/* Whether there are k frames or more is known. */
static tg_status know(tgi_pp_order *o, int64_t k, tgi_err *err)
{
    return o->length == TGI_PP_UNKNOWN ? read_until(o, k, err) : TG_OK;
}

static void forget(tgi_pp_order *o, tgi_pp_kept kind, int64_t k)
{
    o->act.forget(o->act.user, kind, k);
}

static tg_status motions_until(tgi_pp_order *o, int64_t k, tgi_err *err)
{
    for (int64_t *at = &o->next[TGI_PP_MOTIONS]; *at < k; (*at)++) {
        TGI_TRY(read_until(o, *at + 2, err));
        TGI_TRY(o->act.motion(o->act.user, *at, err));
    }
    return TG_OK;
}

/* What the windows that come next begin with; the film's end where there is none. */
static int64_t next_completion(const tgi_pp_order *o)
{
    const int64_t at = o->next[TGI_PP_COMPLETED];
    return at < o->length - 1 ? tgi_pp_completion(&o->set, o->length, at).s : o->length;
}

static int64_t next_propagation(const tgi_pp_order *o)
{
    const int64_t at = o->next[TGI_PP_UPDATED];
    return at < o->length ? tgi_pp_propagation(&o->set, o->length, at).s : o->length;
}

/* Frames are needed by the next windows and the next motion. */
static void forget_frames(tgi_pp_order *o)
{
    const int64_t all = o->length - 1;
    int64_t k = tgi_min(next_completion(o), next_propagation(o));
    if (o->next[TGI_PP_MOTIONS] < all)
        k = tgi_min(k, o->next[TGI_PP_MOTIONS]);
    forget(o, TGI_PP_FRAMES, k);
}

/* Completed motions are needed by the next propagation and by the step that comes. */
static void forget_completed(tgi_pp_order *o)
{
    forget(o, TGI_PP_COMPLETED,
           tgi_min(next_propagation(o), tgi_max(0, o->step - half(&o->set))));
}

static tg_status completed_until(tgi_pp_order *o, int64_t k, tgi_err *err)
{
    while (o->next[TGI_PP_COMPLETED] < k) {
        const int64_t at = o->next[TGI_PP_COMPLETED], of = o->set.subvideo_length;
        TGI_TRY(know(o, tgi_max(of + 2, at + of + PAD_OF_COMPLETION + 1), err));
        const tgi_pp_window w = tgi_pp_completion(&o->set, o->length, at);
        TGI_TRY(motions_until(o, w.e, err));
        TGI_TRY(o->act.complete(o->act.user, &w, err));
        o->next[TGI_PP_COMPLETED] = w.keep1;
        forget(o, TGI_PP_MOTIONS, next_completion(o));
        forget_completed(o);
        forget_frames(o);
    }
    return TG_OK;
}

/* Updated frames are needed by the step that comes; in a short film all of them may be references. Whether it is one is
 * known before the first of them is made. */
static void forget_updated(tgi_pp_order *o)
{
    if (o->length > o->set.subvideo_length)
        forget(o, TGI_PP_UPDATED,
               tgi_max(0, o->step - tgi_max(half(&o->set), tgi_pp_reach(&o->set))));
}

static tg_status updated_until(tgi_pp_order *o, int64_t k, tgi_err *err)
{
    while (o->next[TGI_PP_UPDATED] < tgi_min(k, o->length)) {
        const int64_t at = o->next[TGI_PP_UPDATED], of = of_propagation(&o->set);
        TGI_TRY(know(o, tgi_max(of + 1, at + of + PAD_OF_PROPAGATION), err));
        const tgi_pp_window w = tgi_pp_propagation(&o->set, o->length, at);
        TGI_TRY(completed_until(o, w.e - 1, err));
        TGI_TRY(read_until(o, w.e, err)); /* a film of one frame has no motion */
        TGI_TRY(o->act.propagate(o->act.user, &w, err));
        o->next[TGI_PP_UPDATED] = w.keep1;
        forget_updated(
            o); /* a walk that begins amidst the film makes some that are of use no more */
        forget_completed(o);
        forget_frames(o);
    }
    return TG_OK;
}

static tg_status run_step(tgi_pp_order *o, tgi_err *err)
{
    const tgi_pp_settings *s = &o->set;
    TGI_TRY(know(o, s->subvideo_length + 1, err));
    if (o->length ==
        TGI_PP_UNKNOWN) /* a walk that begins amidst the film: frames before that are not kept for it */
        TGI_TRY(updated_until(o, o->step, err));
    TGI_TRY(know(o, o->step + tgi_max(half(s) + 1, tgi_pp_reach(s)), err));
    if (o->step >= o->length) {
        o->step += half(s);
        return TG_OK;
    }
    tgi_pp_step_of(s, o->length, o->step, &o->now);
    int64_t end = o->now.hi;
    for (int i = 0; i < o->now.n_refs; i++)
        end = tgi_max(end, o->now.ref[i] + 1);
    TGI_TRY(updated_until(o, end, err));
    TGI_TRY(o->act.step(o->act.user, &o->now, err));
    o->step += half(s);
    forget_updated(o);
    forget_completed(o);
    return TG_OK;
}

tg_status tgi_pp_until(tgi_pp_order *o, int64_t k, tgi_err *err)
{
    while (o->step <= last_step(&o->set, k) && o->step < o->length)
        TGI_TRY(run_step(o, err));
    return TG_OK;
}
