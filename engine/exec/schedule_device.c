/* schedule_device.c - see schedule_device.h. */
#include "engine/exec/schedule_device.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "engine/exec/device_steps.h"
#include "kernels/pixels.h"

#include <string.h>

struct tgi_sched_on_card {
    const tgi_tiling *t;
    tgi_sched_stay always;
    const tgi_sched_card *card;
    tgi_sched_ends ends;
    tgi_device_exec *exec;
    size_t up_at[TGI_DEVICE_PORTS]; /* in a band's buffer; of what comes in bands */
    size_t up_bytes;                /* of one band */
    int alone;
    size_t part;               /* in front of the bands' two buffers: two of these */
    tgi_device_event *sent[2]; /* what lies in them is on the device */
    int part_turn;
    int turn[TGI_DEVICE_PORTS]; /* which of the two bands is next */
    int sends;                  /* of this cell something comes from the host */
};

/* ---- What it takes ----------------------------------------------------------------------- */

static int is_of(uint32_t ports, int port)
{
    return ports >> port & 1;
}

/* Planes on their way: halves where the network has no more of them. They are rounded here as a device would. */
static tg_dtype type_of(const tgi_tiling *t, int value)
{
    return tgi_sched_type(t->net, value);
}

/* What always stays has no place on its way. */
static tgi_device_form form_of(const tgi_tiling *t, const tgi_sched_stay *always)
{
    tgi_device_form f = {.alone = t->cells == 1 && t->bands == 1};
    for (int i = 0; i < t->stage->n_loaded && i < TGI_DEVICE_PORTS; i++) {
        const int v = t->stage->in[i].value;
        const tg_dtype type = type_of(t, v);
        f.in[i] = (tgi_device_port){
            .type = type,
            .bytes = is_of(always->in, tgi_net_port(t->net, v))
                         ? 0
                         : tgi_sat_mul(tgi_device_load_most(t, v), tgi_dtype_size(type)),
            .once = t->stage->in[i].at_once && t->cells == 1};
    }
    for (int o = 0; o < t->stage->n_out && o < TGI_DEVICE_PORTS; o++) {
        const int v = t->stage->out[o].value;
        f.out[o] = (tgi_device_port){.type = type_of(t, v),
                                     .channels = t->net->values[v].c,
                                     .together = 1,
                                     .stays = is_of(always->out, t->stage->out[o].port)};
    }
    return f;
}

#define PART ((size_t)256 << 10) /* of an input that is loaded once, on its way */

static size_t plane_of(const tgi_tiling *t, int i)
{
    const tgi_net_value *v = &t->net->values[t->stage->in[i].value];
    const size_t floats = (size_t)(v->ext.dim[v->ext.rank - 2] * v->ext.dim[v->ext.rank - 1]);
    return tgi_sat_mul(floats, tgi_dtype_size(type_of(t, t->stage->in[i].value)));
}

/* Bytes of one of two parts that inputs which are loaded once are sent in: planes. */
static size_t part_of(const tgi_tiling *t, const tgi_device_form *f)
{
    size_t part = 0;
    for (int i = 0; i < t->stage->n_loaded; i++) {
        const size_t plane = plane_of(t, i), most = plane > PART ? plane : PART / plane * plane;
        if (f->in[i].once)
            part = tgi_larger(part, most < f->in[i].bytes ? most : f->in[i].bytes);
    }
    return tgi_align_size(part, 64);
}

/* Bytes of the host for what is on its way, and where each input lies: the parts, then one or two bands. */
static size_t up_of(const tgi_tiling *t, const tgi_device_form *f, size_t at[TGI_DEVICE_PORTS],
                    size_t *band)
{
    const size_t parts = tgi_sat_mul(2, part_of(t, f));
    *band = 0;
    for (int i = 0; i < t->stage->n_loaded; i++)
        if (!f->in[i].once) {
            at[i] = tgi_sat_add(parts, *band);
            *band = tgi_sat_add(*band, tgi_align_size(f->in[i].bytes, 64));
        }
    return tgi_sat_add(parts, tgi_sat_mul(f->alone ? 1 : 2, *band));
}

static tg_status check_values(const tgi_tiling *t, tgi_err *err)
{
    for (int i = 0; i < t->stage->n_loaded; i++)
        if (t->net->values[t->stage->in[i].value].flat)
            return tgi_fail(err, TG_E_UNSUPPORTED, "an input that is no image");
    for (int o = 0; o < t->stage->n_out; o++)
        if (t->net->values[t->stage->out[o].value].flat)
            return tgi_fail(err, TG_E_UNSUPPORTED, "an output that is no image");
    return TG_OK;
}

size_t tgi_schedule_device_extra(const tgi_device_ops *ops, const tgi_tiling *t,
                                 const tgi_sched_stay *always)
{
    const tgi_device_form f = form_of(t, always);
    tgi_device_need need;
    tgi_err unused = {0};
    if (check_values(t, &unused) != TG_OK ||
        tgi_device_need_of(ops, t, &f, &need, &unused) != TG_OK)
        return SIZE_MAX;
    return need.room > t->arena_bytes ? need.room - t->arena_bytes : 0;
}

/* Bytes of all of a value on its way. */
static double value_bytes(const tgi_tiling *t, int value)
{
    const tgi_net_value *v = &t->net->values[value];
    double bytes = (double)tgi_dtype_size(type_of(t, value));
    for (int a = 1; a < v->ext.rank; a++)
        bytes *= (double)v->ext.dim[a];
    return bytes;
}

/* Bytes that a pass brings from the host and takes there: those that all bands wait for, and those of the bands. */
static void moved(const tgi_tiling *t, const tgi_sched_stay *stays, double *once, double *bands)
{
    const tgi_device_form f = form_of(t, stays);
    *once = *bands = 0;
    for (int i = 0; i < t->stage->n_loaded; i++) {
        const int v = t->stage->in[i].value;
        if (!is_of(stays->in, tgi_net_port(t->net, v)))
            *(f.in[i].once ? once : bands) += value_bytes(t, v);
    }
    for (int o = 0; o < t->stage->n_out; o++)
        if (!is_of(stays->out, t->stage->out[o].port))
            *bands += value_bytes(t, t->stage->out[o].value);
}

double tgi_schedule_device_seconds(void *user, const tgi_tiling *t, const tgi_sched_stay *stays)
{
    const tgi_rates *r = &((const tgi_sched_pace *)user)->rates;
    double once, bands;
    moved(t, stays, &once, &bands);
    return tgi_device_pixel_seconds(once) + tgi_device_all_seconds(r, t, 1, 1, bands);
}

double tgi_schedule_device_pass(void *user, const tgi_sched_net *n)
{
    return tgi_schedule_device_seconds(user, &n->choice.tiling, &n->stays);
}

static size_t extra(void *user, const tgi_tiling *t, const tgi_sched_stay *always)
{
    return tgi_schedule_device_extra(((const tgi_sched_pace *)user)->ops, t, always);
}

tgi_sched_device tgi_schedule_device_of(const tgi_sched_pace *pace, tg_dtype element,
                                        size_t room, size_t far)
{
    return (tgi_sched_device){.be = pace->ops->backend(element),
                              .wide = pace->ops->backend(TG_DTYPE_F32),
                              .room = room,
                              .far = far,
                              .seconds = tgi_schedule_device_seconds,
                              .extra = extra,
                              .user = (void *)(uintptr_t)pace};
}

tg_status tgi_schedule_device_least(tg_status (*plan)(void *user, size_t room, tgi_err *err),
                                    void *user, tgi_err *err)
{
    size_t room = 1;
    for (int i = 0; i < TGI_ROOMS_TRIED; i++) {
        tgi_err e = {0};
        const tg_status st = plan(user, room, &e);
        if (st == TG_OK)
            return TG_OK;
        if (!e.asked_by || strcmp(e.asked_by, TGI_SCHED_ROOM) != 0 || e.tried_bytes <= room)
            return tgi_fail(err, st, "%s", e.text);
        room = (size_t)e.tried_bytes;
    }
    return tgi_fail(err, TG_E_INTERNAL, "the least room of a device was not found");
}

/* Bytes of `up` that a buffer which stays takes when the host fills it: some rows of it. */
static size_t put_of(const tgi_sched_buffer *b)
{
    const size_t row = (size_t)(b->shape[0] * b->shape[2]) * tgi_dtype_size(b->type);
    return tgi_align_size(row > PART ? row : PART / row * row, 64);
}

tg_status tgi_schedule_device_need(const tgi_device_ops *ops, const tgi_schedule *s,
                                   tgi_sched_need *add, tgi_err *err)
{
    for (int i = 0; i < s->n_nets; i++) {
        const tgi_tiling *t = &s->net[i].choice.tiling;
        size_t at[TGI_DEVICE_PORTS], band;
        tgi_device_need need;
        TGI_TRY(check_values(t, err));
        const tgi_device_form f = form_of(t, &s->net[i].always);
        TGI_TRY(tgi_device_need_of(ops, t, &f, &need, err));
        add->weights = tgi_sat_add(add->weights, need.block - need.room);
        add->program = tgi_sat_add(add->program, need.program);
        add->room = tgi_larger(add->room, need.room);
        add->up = tgi_larger(add->up, up_of(t, &f, at, &band));
        add->back = tgi_larger(add->back, need.pinned);
        add->packing = tgi_larger(add->packing, need.packing);
    }
    add->far = tgi_larger(add->far, s->far_bytes);
    add->missed = tgi_sat_add(add->missed, s->far_missed);
    for (int i = 0; i < s->n_buffers; i++)
        if (s->buffer[i].type != TG_DTYPE_NONE)
            add->up = tgi_larger(add->up, put_of(&s->buffer[i]));
    return TG_OK;
}

size_t tgi_sched_need_device(const tgi_sched_need *n)
{
    return tgi_sat_add(tgi_sat_add(n->weights, n->program), tgi_sat_add(n->room, n->far));
}

size_t tgi_sched_on_card_bytes(const tgi_sched_net *net)
{
    const tgi_tiling *t = &net->choice.tiling;
    const tgi_device_form f = form_of(t, &net->always);
    return sizeof(tgi_sched_on_card) + tgi_device_exec_bytes(t, &f);
}

/* ---- The memory that is shared ----------------------------------------------------------- */

tg_status tgi_sched_card_open(const tgi_device_ops *ops, tgi_device *device,
                              const tgi_sched_need *need, tgi_sched_card *out, tgi_err *err)
{
    *out = (tgi_sched_card){.ops = ops, .device = device, .up_bytes = tgi_larger(need->up, 1)};
    tg_status st = ops->alloc(device, tgi_larger(need->room, 1), &out->room, err);
    if (st == TG_OK && need->far)
        st = ops->alloc(device, need->far, &out->far, err);
    if (st == TG_OK)
        st = ops->event_new(device, &out->computed, err);
    if (st == TG_OK)
        st = ops->event_new(device, &out->sent, err);
    if (st == TG_OK)
        st = tgi_pinned_get(ops, device, tgi_larger(need->up, 1), &out->up, err);
    if (st == TG_OK)
        st = tgi_pinned_get(ops, device, tgi_larger(need->back, 1), &out->back, err);
    if (st != TG_OK)
        tgi_sched_card_close(out);
    return st;
}

void tgi_sched_card_close(tgi_sched_card *c)
{
    if (!c->ops)
        return;
    tgi_pinned_drop(c->ops, c->device, &c->up);
    tgi_pinned_drop(c->ops, c->device, &c->back);
    if (c->room)
        c->ops->release(c->device, c->room);
    if (c->far)
        c->ops->release(c->device, c->far);
    if (c->computed)
        c->ops->event_free(c->device, c->computed);
    if (c->sent)
        c->ops->event_free(c->device, c->sent);
    *c = (tgi_sched_card){0};
}

tg_status tgi_sched_card_copy(const tgi_sched_card *c, void *to, const void *from, size_t bytes,
                              tgi_err *err)
{
    return c->ops->copy(c->device, TGI_QUEUE_COMPUTE, to, from, bytes, err);
}

/* ---- From the host ------------------------------------------------------------------------ */

/* Before the host writes into what is sent from: what lay there has gone. Before the device is sent to: the networks before
 * no longer read there. */
static tg_status begin_sending(const tgi_sched_card *c, tgi_err *err)
{
    TGI_TRY(c->ops->sync(c->device, c->sent, err));
    TGI_TRY(c->ops->record(c->device, TGI_QUEUE_COMPUTE, c->computed, err));
    return c->ops->wait(c->device, TGI_QUEUE_UPLOAD, c->computed, err);
}

/* Rows of all channels, pixel by pixel. */
static void whole_pixels(const tgi_view *from, tgi_range rows, tg_dtype type, char *to)
{
    const size_t size = tgi_dtype_size(type);
    for (int64_t y = rows.lo; y < rows.hi; y++)
        for (int64_t k = 0; k < from->c; k++)
            tgi_pixels_store(
                type, tgi_view_at(from, k, 0, y, from->x0), from->cb, from->width, 1, 0,
                to + (size_t)((y - rows.lo) * from->width * from->c + k) * size, from->c);
}

tg_status tgi_sched_card_put(const tgi_sched_card *c, const tgi_view *from, int64_t height,
                             tgi_sched_at to, tgi_err *err)
{
    const size_t row = (size_t)(from->c * from->width) * tgi_dtype_size(to.type);
    const int64_t most = (int64_t)(c->up_bytes / row);
    for (int64_t y = 0; y < height; y += most) {
        const tgi_range rows = {y, tgi_min(y + most, height)};
        TGI_TRY(begin_sending(c, err));
        whole_pixels(from, rows, to.type, c->up.at);
        TGI_TRY(c->ops->upload(c->device, TGI_QUEUE_UPLOAD,
                               (char *)(uintptr_t)to.at + (size_t)y * row, c->up.at,
                               (size_t)tgi_range_len(rows) * row, err));
        TGI_TRY(c->ops->record(c->device, TGI_QUEUE_UPLOAD, c->sent, err));
    }
    return c->ops->wait(c->device, TGI_QUEUE_COMPUTE, c->sent, err);
}

/* ---- A network --------------------------------------------------------------------------- */

typedef struct planes {
    const tgi_kernel_set *be; /* NULL: the definition (pixels.h) */
    const tgi_view *view;
    char *dense;
    tg_dtype type;
    tgi_range channels, z, y, x;
    int together, up; /* channels that lie beside each other; 1: from the view */
} planes;

static void convert_run(const planes *p, int64_t c, int64_t z, int64_t y)
{
    const int64_t n = tgi_range_len(p->x), slab = z - p->z.lo,
                  plane = slab * tgi_range_len(p->channels) + c - p->channels.lo,
                  row = plane * tgi_range_len(p->y) + y - p->y.lo;
    void *at = p->dense + (size_t)(row * n) * tgi_dtype_size(p->type);
    const tgi_pixels run = {.type = p->type,
                            .samples = 1,
                            .stride = 1,
                            .n = n,
                            .mul = 1,
                            .value = {tgi_view_at(p->view, c, z, y, p->x.lo)},
                            .step = p->view->cb};
    if (p->up)
        (p->be ? p->be->pixels_store : tgi_pixels_store_run)(&run, at);
    else
        (p->be ? p->be->pixels_load : tgi_pixels_load_run)(&run, at);
}

/* A row of the channels that lie beside each other: of the i-th. */
static void convert_row(void *arg, int64_t i, int thread)
{
    const planes *p = arg;
    const int64_t rows = tgi_range_len(p->y), first = p->channels.lo / p->together,
                  blocks = tgi_ceil_div(p->channels.hi, p->together) - first,
                  block = first + i / rows % blocks;
    const tgi_range own = {tgi_max(p->channels.lo, block * p->together),
                           tgi_min(p->channels.hi, (block + 1) * p->together)};
    (void)thread;
    for (int64_t c = own.lo; c < own.hi; c++)
        convert_run(p, c, p->z.lo + i / rows / blocks, p->y.lo + i % rows);
}

#define PARALLEL ((int64_t)1 << 14) /* values: fewer are not worth waking threads for */

/* Rows of a box between floats in a view and a dense buffer of planes: `up`, from the view. */
static void convert(const tgi_sched_card *card, const tgi_view *view, void *dense,
                    tg_dtype type, tgi_range channels, const tgi_box *box, int up)
{
    planes p = {.be = card->be,
                .view = view,
                .dense = dense,
                .type = type,
                .channels = channels,
                .z = box->rank == 5 ? box->ax[2] : (tgi_range){0, 1},
                .y = box->ax[box->rank - 2],
                .x = box->ax[box->rank - 1],
                .together = view->cb,
                .up = up};
    const int64_t blocks = tgi_ceil_div(channels.hi, p.together) - channels.lo / p.together,
                  n = tgi_range_len(p.z) * blocks * tgi_range_len(p.y);
    if (card->pool && n * p.together * tgi_range_len(p.x) >= PARALLEL) {
        tgi_parallel(card->pool, n, convert_row, &p);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        convert_row(&p, i, 0);
}

/* How a box of input i lies in such a buffer. */
static tgi_device_pixels pixels_of(const tgi_sched_on_card *n, int i, const tgi_box *box)
{
    const int v = n->t->stage->in[i].value;
    const tgi_net_value *value = &n->t->net->values[v];
    tgi_device_pixels p = {.type = type_of(n->t, v),
                           .channels = value->c,
                           .together = 1,
                           .rows = box->ax[box->rank - 2],
                           .cols = box->ax[box->rank - 1],
                           .pad = TGI_LOAD_ZERO,
                           .mul = 1};
    for (int k = 0; k < 3; k++)
        p.extent[k] = box->rank - 3 + k < 2 ? 1 : value->ext.dim[box->rank - 3 + k];
    return p;
}

/* Of a value that stays on the device: all of it is there. */
static void lies_there(const tgi_sched_on_card *n, int value, const tgi_sched_at *is,
                       tgi_device_pixels *out)
{
    const tgi_net_value *v = &n->t->net->values[value];
    out->at = (void *)(uintptr_t)is->at;
    out->type = is->type;
    out->channels = out->together = v->c;
    out->pitch = is->row;
    out->rows = (tgi_range){0, v->ext.dim[v->ext.rank - 2]};
    out->cols = (tgi_range){0, v->ext.dim[v->ext.rank - 1]};
}

static int stays(void *user, int o, tgi_device_pixels *out)
{
    const tgi_sched_on_card *n = user;
    const tgi_sched_at *to = n->ends.out(n->ends.user, o);
    if (to->type == TG_DTYPE_NONE)
        return 0;
    lies_there(n, n->t->stage->out[o].value, to, out);
    return 1;
}

static tg_status send_first(tgi_sched_on_card *n, tgi_err *err)
{
    if (n->sends)
        return TG_OK;
    n->sends = 1;
    return begin_sending(n->card, err);
}

/* 1: input i lies on the device, as *out says. 0: its pixels are still to go there. */
static int is_there(tgi_sched_on_card *n, int i, const tgi_box *box, tgi_device_pixels *out)
{
    const tgi_sched_at *is = n->ends.in(n->ends.user, i);
    *out = pixels_of(n, i, box);
    if (is->type == TG_DTYPE_NONE)
        return 0;
    lies_there(n, n->t->stage->in[i].value, is, out);
    return 1;
}

static tg_status fetch(void *user, const tgi_device_cell *cell, int i, const tgi_box *box,
                       tgi_device_pixels *out, const void **at, size_t *bytes, tgi_err *err)
{
    tgi_sched_on_card *n = user;
    const tgi_net_value *value = &n->t->net->values[n->t->stage->in[i].value];
    const tg_dtype type = type_of(n->t, n->t->stage->in[i].value);
    char *to = (char *)n->card->up.at + n->up_at[i] + (size_t)n->turn[i] * n->up_bytes;
    if (is_there(n, i, box, out)) {
        *bytes = 0;
        return TG_OK;
    }
    const tgi_view from = n->ends.from(n->ends.user, i);
    (void)cell;
    TGI_TRY(send_first(n, err));
    n->turn[i] = !n->turn[i] && !n->alone;
    convert(n->card, &from, to, type, (tgi_range){0, value->c}, box, 1);
    *at = to;
    *bytes = tgi_dtype_size(type) * (size_t)value->c;
    for (int a = TGI_STREAM_AXIS; a < box->rank; a++)
        *bytes *= (size_t)tgi_range_len(box->ax[a]);
    return TG_OK;
}

static tg_status tick(void *user, tgi_err *err)
{
    const tgi_sched_on_card *n = user;
    return n->ends.stop ? n->ends.stop(n->ends.user, err) : TG_OK;
}

/* Planes of an input that is loaded once: the next part is made while one is on its way. */
static tg_status send(void *user, const tgi_device_cell *cell, int i, const tgi_box *box,
                      void *to, tgi_device_pixels *out, tgi_err *err)
{
    tgi_sched_on_card *n = user;
    const tgi_device_ops *ops = n->card->ops;
    const size_t plane = plane_of(n->t, i);
    const int64_t c = n->t->net->values[n->t->stage->in[i].value].c;
    const int64_t most = (int64_t)(n->part / plane);
    if (is_there(n, i, box, out))
        return TG_OK;
    const tgi_view from = n->ends.from(n->ends.user, i);
    (void)cell;
    TGI_TRY(send_first(n, err));
    for (int64_t at = 0; at < c; at += most, n->part_turn = !n->part_turn) {
        char *part = (char *)n->card->up.at + (size_t)n->part_turn * n->part;
        const tgi_range these = {at, tgi_min(at + most, c)};
        TGI_TRY(ops->sync(n->card->device, n->sent[n->part_turn], err));
        convert(n->card, &from, part, out->type, these, box, 1);
        TGI_TRY(ops->upload(n->card->device, TGI_QUEUE_UPLOAD, (char *)to + (size_t)at * plane,
                            part, (size_t)tgi_range_len(these) * plane, err));
        TGI_TRY(ops->record(n->card->device, TGI_QUEUE_UPLOAD, n->sent[n->part_turn], err));
        TGI_TRY(tick(n, err));
    }
    return TG_OK;
}

/* All of an input is there already. */
static void ahead(void *user, const tgi_device_cell *cell, const tgi_box *box)
{
    (void)user;
    (void)cell;
    (void)box;
}

static tg_status take(void *user, const tgi_device_cell *cell, int o, const tgi_box *box,
                      const void *pixels, const uint32_t *counts, tgi_err *err)
{
    const tgi_sched_on_card *n = user;
    const int v = n->t->stage->out[o].value;
    const tgi_view to = n->ends.to(n->ends.user, o);
    (void)cell;
    (void)counts;
    (void)err;
    if (to.base)
        convert(n->card, &to, (void *)(uintptr_t)pixels, type_of(n->t, v),
                (tgi_range){0, n->t->net->values[v].c}, box, 0);
    return TG_OK;
}

tg_status tgi_sched_on_card_open(const tgi_sched_card *c, const tgi_sched_net *net,
                                 const tgi_sched_ends *ends, tgi_sched_on_card **out,
                                 tgi_err *err)
{
    const tgi_tiling *t = &net->choice.tiling;
    tgi_sched_on_card *n = tgi_calloc(TGI_TAG_PLAN, 1, sizeof *n);
    if (!n)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a network on a device");
    n->t = t;
    n->card = c;
    n->ends = *ends;
    tgi_device_form f = form_of(t, &net->always);
    n->always = net->always;
    (void)up_of(t, &f, n->up_at, &n->up_bytes);
    n->part = part_of(t, &f);
    n->alone = f.alone;
    f.room = c->room;
    f.back = c->back.at;
    const tgi_device_io io = {
        .user = n, .send = send, .fetch = fetch, .stays = stays, .ahead = ahead, .take = take};
    tg_status st = tgi_device_exec_open(c->ops, c->device, t, &f, &io, &n->exec, err);
    for (int k = 0; k < 2 && n->part && st == TG_OK; k++)
        st = c->ops->event_new(c->device, &n->sent[k], err);
    *out = n;
    if (st != TG_OK)
        tgi_sched_on_card_close(out);
    return st;
}

void tgi_sched_on_card_close(tgi_sched_on_card **np)
{
    if (!*np)
        return;
    tgi_device_exec_close(&(*np)->exec);
    for (int k = 0; k < 2; k++)
        if ((*np)->sent[k])
            (*np)->card->ops->event_free((*np)->card->device, (*np)->sent[k]);
    tgi_free(*np);
    *np = NULL;
}

/* What has no place on its way lies where it was said to. */
static tg_status check_bound(tgi_sched_on_card *n, tgi_err *err)
{
    int wrong = 0;
    for (int i = 0; i < n->t->stage->n_loaded; i++)
        wrong |= is_of(n->always.in, tgi_net_port(n->t->net, n->t->stage->in[i].value)) &&
                 n->ends.in(n->ends.user, i)->type == TG_DTYPE_NONE;
    for (int o = 0; o < n->t->stage->n_out; o++)
        wrong |= is_of(n->always.out, n->t->stage->out[o].port) &&
                 n->ends.out(n->ends.user, o)->type == TG_DTYPE_NONE;
    return wrong ? tgi_fail(err, TG_E_INTERNAL, "a network got what its plan did not say")
                 : TG_OK;
}

tg_status tgi_sched_on_card_cell(tgi_sched_on_card *n, int64_t cell, const tgi_range core[3],
                                 tgi_err *err)
{
    const tgi_device_cell id = {0, cell, 1, 0};
    TGI_TRY(check_bound(n, err));
    n->sends = 0;
    tgi_device_exec_begin(n->exec, &id, core);
    tg_status st = tgi_device_exec_bands(n->exec, tick, n, err);
    if (st == TG_OK)
        st = tgi_device_exec_drain(n->exec, err);
    if (st == TG_OK && n->sends)
        st = n->card->ops->record(n->card->device, TGI_QUEUE_UPLOAD, n->card->sent, err);
    if (st != TG_OK) /* its bands lie where the next network computes */
        tgi_device_exec_give_up(n->exec);
    return st;
}
