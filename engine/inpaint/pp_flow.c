/* pp_flow.c - see pp_flow.h. */
#include "engine/inpaint/pp_flow.h"

#include "engine/base/mem.h"
#include "engine/inpaint/pp_pixels.h"

#include <string.h>

enum { FIRST, SECOND };

/* What a run works on. */
typedef struct pass {
    tgi_pp_flow *f;
    const uint8_t *frame;
    float *result[2];
} pass;

/* ---- Steps that are functions ------------------------------------------------------------- */

static tg_status load(void *user, const tgi_sched_step *step, void *const *buffer, tgi_err *err)
{
    const pass *p = user;
    (void)step;
    (void)err;
    tgi_pp_to_floats(p->f->pool, p->frame, p->f->height, p->f->width, buffer[p->f->image]);
    return TG_OK;
}

static tg_status hand_out(void *user, const tgi_sched_step *step, void *const *buffer,
                          tgi_err *err)
{
    const pass *p = user;
    (void)err;
    memcpy(p->result[step->number], buffer[step->in[0]],
           p->f->schedule->buffer[step->in[0]].bytes);
    return TG_OK;
}

/* ---- Plan -------------------------------------------------------------------------------- */

static tg_status make_graphs(tgi_pp_flow *f, const tgi_weights *w, tgi_err *err)
{
    TGI_TRY(tgi_pp_features(w, f->height, f->width, &f->features, err));
    TGI_TRY(tgi_pp_context(w, f->height, f->width, &f->context, err));
    TGI_TRY(tgi_pp_update(w, f->height, f->width, &f->update, err));
    return tgi_pp_upsample(w, f->height, f->width, &f->upsample, err);
}

static int kept_buffer(tgi_schedule *s, const char *name, int64_t c, int64_t h, int64_t w)
{
    const int b = tgi_schedule_buffer(s, name, c, h, w);
    tgi_schedule_keep(s, b);
    return b;
}

static void add_buffers(tgi_pp_flow *f)
{
    static const int64_t channels[TGI_PP_CONTEXT] = {
        TGI_PP_STATE, 2 * TGI_PP_STATE, TGI_PP_STATE, 2 * TGI_PP_STATE, TGI_PP_STATE};
    tgi_schedule *s = f->schedule;
    const int64_t h = f->height / 8, w = f->width / 8;
    f->image = tgi_schedule_buffer(s, "frame", 3, f->height, f->width);
    for (int i = 0; i < 2; i++) {
        for (int l = 0; l < TGI_PP_LEVELS; l++)
            f->of[i][l] = kept_buffer(s, "features", TGI_PP_FEATURES, h >> l, w >> l);
        for (int k = 0; k < TGI_PP_CONTEXT; k++)
            f->context_of[i][k] = kept_buffer(s, "context", channels[k], h, w);
    }
}

/* One direction: `from` is seen, and where it is in the other frame. */
static void add_direction(tgi_pp_flow *f, const tgi_kernel_set *be, int from, int iterations,
                          int threads)
{
    tgi_schedule *s = f->schedule;
    const int64_t h = f->height / 8, w = f->width / 8;
    const int *c = f->context_of[from], *to = f->of[!from];
    int state[2], flow[2];
    for (int i = 0; i < 2; i++) {
        state[i] = tgi_schedule_buffer(s, "state", TGI_PP_STATE, h, w);
        flow[i] = tgi_schedule_buffer(s, "flow", 2, h, w);
    }
    f->result[from] = tgi_schedule_buffer(s, "motion", 2, f->height, f->width);
    /* The state begins as the context's, the flow at 0. */
    tgi_schedule_step(s, &(tgi_sched_step){.name = "start",
                                           .net = TGI_SCHED_COPY,
                                           .in = {c[0]},
                                           .n_in = 1,
                                           .out = {state[0], flow[0]},
                                           .n_out = 2});
    tgi_schedule_step(s, &(tgi_sched_step){.name = "update",
                                           .net = tgi_schedule_net(s, f->update, be,
                                                                   TGI_PP_STATE, h, w, threads),
                                           .repeat = iterations,
                                           .in = {state[0], flow[0], f->of[from][0], to[0],
                                                  to[1], to[2], to[3], c[1], c[2], c[3], c[4]},
                                           .n_in = 11,
                                           .out = {state[1], flow[1]},
                                           .n_out = 2,
                                           .state_in = {0, 1},
                                           .state_out = {0, 1},
                                           .n_state = 2});
    tgi_schedule_step(s, &(tgi_sched_step){.name = "upsample",
                                           .net = tgi_schedule_net(s, f->upsample, be,
                                                                   TGI_PP_STATE, h, w, threads),
                                           .in = {state[1], flow[1]},
                                           .n_in = 2,
                                           .out = {f->result[from]},
                                           .n_out = 1});
    tgi_schedule_step(s, &(tgi_sched_step){.name = "hand out",
                                           .net = TGI_SCHED_WORK,
                                           .work = hand_out,
                                           .number = from,
                                           .in = {f->result[from]},
                                           .n_in = 1});
}

static void add_steps(tgi_pp_flow *f, const tgi_kernel_set *be, int iterations, int threads)
{
    tgi_schedule *s = f->schedule;
    /* What the second frame gave is the first one's. */
    tgi_sched_step old = {.name = "shift",
                          .net = TGI_SCHED_COPY,
                          .n_in = TGI_PP_LEVELS + TGI_PP_CONTEXT,
                          .n_out = TGI_PP_LEVELS + TGI_PP_CONTEXT};
    tgi_sched_step features = {
        .name = "features",
        .net = tgi_schedule_net(s, f->features, be, 3, f->height, f->width, threads),
        .in = {f->image},
        .n_in = 1,
        .n_out = TGI_PP_LEVELS};
    tgi_sched_step context = {
        .name = "context",
        .net = tgi_schedule_net(s, f->context, be, 3, f->height, f->width, threads),
        .in = {f->image},
        .n_in = 1,
        .n_out = TGI_PP_CONTEXT};
    for (int k = 0; k < TGI_PP_CONTEXT; k++) {
        old.in[TGI_PP_LEVELS + k] = context.out[k] = f->context_of[SECOND][k];
        old.out[TGI_PP_LEVELS + k] = f->context_of[FIRST][k];
    }
    for (int l = 0; l < TGI_PP_LEVELS; l++) {
        old.in[l] = features.out[l] = f->of[SECOND][l];
        old.out[l] = f->of[FIRST][l];
    }
    tgi_schedule_step(s, &old);
    f->look = s->n_steps;
    tgi_schedule_step(s, &(tgi_sched_step){.name = "load",
                                           .net = TGI_SCHED_WORK,
                                           .work = load,
                                           .out = {f->image},
                                           .n_out = 1});
    tgi_schedule_step(s, &features);
    tgi_schedule_step(s, &context);
    f->pair = s->n_steps;
    add_direction(f, be, FIRST, iterations, threads);
    add_direction(f, be, SECOND, iterations, threads);
    f->end = s->n_steps;
}

tg_status tgi_pp_flow_new(const tgi_weights *w, const tgi_pp_at *at, int iterations,
                          tgi_pp_flow **out, tgi_err *err)
{
    tgi_pp_flow *f = tgi_calloc(TGI_TAG_PLAN, 1, sizeof *f);
    if (!f)
        return tgi_fail(err, TG_E_NOMEM, "no memory for what moves");
    *f = (tgi_pp_flow){.height = at->height, .width = at->width, .held = -1};
    tg_status st = tgi_schedule_new(&f->schedule, err);
    if (st == TG_OK)
        st = make_graphs(f, w, err);
    if (st == TG_OK) {
        tgi_pp_settle(f->schedule, at);
        add_buffers(f);
        add_steps(f, at->be, iterations, at->threads);
        st = tgi_schedule_plan(f->schedule, err);
    }
    if (st != TG_OK)
        tgi_pp_flow_free(&f);
    *out = f;
    return st;
}

void tgi_pp_flow_free(tgi_pp_flow **fp)
{
    tgi_pp_flow *f = *fp;
    if (!f)
        return;
    tgi_pp_flow_close(f);
    tgi_schedule_free(&f->schedule);
    tgi_graph_free(&f->features);
    tgi_graph_free(&f->context);
    tgi_graph_free(&f->update);
    tgi_graph_free(&f->upsample);
    tgi_free(f);
    *fp = NULL;
}

/* ---- Run --------------------------------------------------------------------------------- */

tg_status tgi_pp_flow_open(tgi_pp_flow *f, const tgi_schedule_memory *m, tgi_err *err)
{
    f->pool = m->pool;
    f->held = -1;
    return tgi_schedule_open(f->schedule, m, &f->run, err);
}

void tgi_pp_flow_close(tgi_pp_flow *f)
{
    tgi_schedule_close(&f->run);
}

void tgi_pp_flow_forget(tgi_pp_flow *f)
{
    f->held = -1;
}

tg_status tgi_pp_flow_find(tgi_pp_flow *f, int64_t k, const uint8_t *first,
                           const uint8_t *second, float *there, float *back, tgi_err *err)
{
    pass p = {.f = f, .frame = first, .result = {there, back}};
    const int64_t held = f->held;
    f->held = -1;
    if (held != k)
        TGI_TRY(tgi_schedule_steps(f->run, f->look, f->pair, &p, err));
    TGI_TRY(tgi_schedule_steps(f->run, 0, f->look, &p, err));
    p.frame = second;
    TGI_TRY(tgi_schedule_steps(f->run, f->look, f->pair, &p, err));
    TGI_TRY(tgi_schedule_steps(f->run, f->pair, f->end, &p, err));
    f->held = k + 1;
    return TG_OK;
}
