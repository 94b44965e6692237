/* pp_extent.c - see pp_extent.h. */
#include "engine/inpaint/pp_extent.h"

#include "engine/base/arith.h"

static void enter(tgi_pp_extent *x, tgi_pp_kept kind, int64_t from, int64_t until)
{
    if (x->newest[kind] == 0 && x->oldest[kind] == 0)
        x->oldest[kind] = from;
    x->newest[kind] = tgi_max(x->newest[kind], until);
    x->span[kind] = tgi_max(x->span[kind], x->newest[kind] - x->oldest[kind]);
}

static tg_status count_frame(void *user, int64_t k, int *end, tgi_err *err)
{
    tgi_pp_extent *x = user;
    (void)err;
    *end = k >= x->length;
    if (*end)
        return TG_OK;
    enter(x, TGI_PP_FRAMES, k, k + 1);
    x->frames++;
    return TG_OK;
}

static tg_status count_motion(void *user, int64_t k, tgi_err *err)
{
    tgi_pp_extent *x = user;
    (void)err;
    enter(x, TGI_PP_MOTIONS, k, k + 1);
    x->motions++;
    return TG_OK;
}

static tg_status count_complete(void *user, const tgi_pp_window *w, tgi_err *err)
{
    tgi_pp_extent *x = user;
    (void)err;
    enter(x, TGI_PP_COMPLETED, w->keep0, w->keep1);
    x->completion = tgi_max(x->completion, w->e - w->s);
    x->windowed += (double)(w->e - w->s);
    return TG_OK;
}

static tg_status count_propagate(void *user, const tgi_pp_window *w, tgi_err *err)
{
    tgi_pp_extent *x = user;
    (void)err;
    enter(x, TGI_PP_UPDATED, w->keep0, w->keep1);
    x->propagation = tgi_max(x->propagation, w->e - w->s);
    return TG_OK;
}

static tg_status count_step(void *user, const tgi_pp_step *s, tgi_err *err)
{
    tgi_pp_extent *x = user;
    const int local = (int)(s->hi - s->lo), all = local + s->n_refs;
    (void)err;
    x->steps++;
    x->alone += s->n_refs == 0 && 2 * local < x->length;
    x->step_frames += all;
    x->step_local += local;
    x->local = local > x->local ? local : x->local;
    if (all > TGI_PP_MOST_FRAMES)
        x->too_many = all > x->too_many ? all : x->too_many;
    else
        x->has[all] |= (uint64_t)1 << (local - 1);
    return TG_OK;
}

static void count_forget(void *user, tgi_pp_kept kind, int64_t k)
{
    tgi_pp_extent *x = user;
    x->oldest[kind] = tgi_max(x->oldest[kind], tgi_min(k, x->newest[kind]));
}

static tgi_pp_acts counting(tgi_pp_extent *x)
{
    return (tgi_pp_acts){.user = x,
                         .frame = count_frame,
                         .motion = count_motion,
                         .complete = count_complete,
                         .propagate = count_propagate,
                         .step = count_step,
                         .forget = count_forget};
}

void tgi_pp_ahead(const tgi_pp_order *o, int64_t k, tgi_pp_extent *x)
{
    tgi_pp_order walk = *o;
    tgi_err none = {0};
    *x = (tgi_pp_extent){.length = o->length};
    walk.act = counting(x);
    (void)tgi_pp_until(&walk, k, &none); /* counting cannot fail */
}

tg_status tgi_pp_measure(const tgi_pp_settings *s, int64_t length, int known, int64_t first,
                         int64_t until, tgi_pp_extent *x, tgi_err *err)
{
    const tgi_pp_acts acts = counting(x);
    tgi_pp_order o;
    *x = (tgi_pp_extent){.length = length};
    tgi_pp_begin(&o, s, &acts, known ? length : -1, first);
    TGI_TRY(tgi_pp_until(&o, until - 1, err));
    return x->too_many
               ? tgi_fail(err, TG_E_ARG,
                          "a step of %d frames, neighbours and references: %d are possible; "
                          "a larger ref_stride or a smaller neighbor_length has fewer",
                          x->too_many, TGI_PP_MOST_FRAMES)
               : TG_OK;
}

#define MOST_OF_PIPES 2048 /* every end of a film is walked to */

/* Frames that are supposed, where the end is not known. */
static int64_t supposed(const tgi_pp_settings *s)
{
    return 4 * s->subvideo_length + 2 * s->neighbor_length + 500;
}

tg_status tgi_pp_measure_any(const tgi_pp_settings *s, tgi_pp_extent *out, tgi_err *err)
{
    const int64_t set = s->subvideo_length + s->neighbor_length;
    if (set > MOST_OF_PIPES)
        return tgi_fail(err, TG_E_ARG,
                        "a subvideo_length of %lld: of a film through a pipe %d are possible, "
                        "neighbor_length included",
                        (long long)s->subvideo_length, MOST_OF_PIPES);
    TGI_TRY(tgi_pp_measure(s, supposed(s), 0, 0, supposed(s), out, err));
    for (int64_t length = 2; length <= 2 * set + 20; length++) {
        tgi_pp_extent x;
        TGI_TRY(tgi_pp_measure(s, length, 0, 0, length, &x, err));
        for (int i = 0; i < TGI_PP_KEPT; i++)
            out->span[i] = tgi_max(out->span[i], x.span[i]);
        out->completion = tgi_max(out->completion, x.completion);
        out->propagation = tgi_max(out->propagation, x.propagation);
        for (int n = 1; n <= TGI_PP_MOST_FRAMES; n++)
            out->has[n] |= x.has[n];
    }
    return TG_OK;
}
