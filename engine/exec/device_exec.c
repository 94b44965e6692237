/* device_exec.c - puts bands into a device's queues, waits for them and hands their results
 * out. */
#include "engine/exec/device_exec.h"

#include "engine/base/arith.h"
#include "engine/base/clock.h"
#include "engine/base/mem.h"
#include "engine/device/pinned.h"
#include "engine/exec/device_steps.h"

#include <string.h>

#define MOST_DEPTH (TGI_DEVICE_LANES + 1)
#define ALIGN 256u

/* A band whose pixels are on their way back. */
typedef struct pending {
    int used;
    tgi_device_cell cell;
    tgi_box box[TGI_DEVICE_PORTS]; /* of each output; empty: none of its rows */
} pending;

/* Where the parts of the block begin, the bytes of one buffer on each side, and where in it the
 * ports lie; counts lead the pixels of an output. */
typedef struct layout {
    size_t weights, constants,
        own; /* in the executor's block, which is `own` bytes and the room */
    size_t arena, in, once, out, room; /* in the room */
    size_t arena_bytes, in_bytes, once_bytes, out_bytes;
    int loaded_once[TGI_DEVICE_PORTS]; /* in_at: in the one place of such inputs */
    size_t in_at[TGI_DEVICE_PORTS], out_at[TGI_DEVICE_PORTS], counts_bytes[TGI_DEVICE_PORTS];
} layout;

/* Of a band's buffers on both sides. */
typedef struct event_set {
    tgi_device_event *uploaded; /* staged pixels are on the device */
    tgi_device_event *loaded;   /* ... and in their view: both buffers are free */
    tgi_device_event *computed; /* finished pixels lie on the device */
    tgi_device_event *back;     /* ... and on the host */
} event_set;

/* What computes a cell beside those of the other lanes. */
typedef struct lane {
    tgi_device_steps steps;
    tgi_device_program *program;
    tgi_device_queue queue;
} lane;

struct tgi_device_exec {
    const tgi_device_ops *ops;
    tgi_device *device;
    tgi_device_io io;
    tgi_busy *busy;   /* or NULL */
    int lanes, depth; /* depth: buffers, so bands in flight, on each side */
    lane lane[TGI_DEVICE_LANES];
    lane *now; /* of the cell that was begun last */
    layout lay;
    void *block;
    char *room, *back; /* of the block and pinned memory, or the caller's */
    tgi_pinned pinned;
    char *in[MOST_DEPTH], *out[MOST_DEPTH]; /* on the device */
    char *host[MOST_DEPTH];                 /* pinned: counts and pixels that came back */
    event_set event[MOST_DEPTH];
    tgi_device_cell cell;
    struct {
        int announced;
        tgi_device_cell id;
        tgi_cell cell;
        tgi_box first[TGI_DEVICE_PORTS]; /* what its first band loads */
    } coming;
    pending pending[MOST_DEPTH];
    int64_t fed, made; /* bands that were fed, and that yielded rows, so far */
    tgi_device_times seconds;
};

/* ---- What it takes ----------------------------------------------------------------------- */

static size_t part(size_t *at, size_t bytes)
{
    const size_t from = *at;
    *at = tgi_sat_add(from, tgi_align_size(bytes, ALIGN));
    return from;
}

/* The ports of a band, one behind the other. */
static void lay_out_ports(const tgi_tiling *t, const tgi_device_form *form, layout *l)
{
    for (int i = 0; i < t->stage->n_loaded; i++) {
        l->loaded_once[i] = form->in[i].once;
        l->in_at[i] = part(form->in[i].once ? &l->once_bytes : &l->in_bytes, form->in[i].bytes);
    }
    for (int o = 0; o < t->stage->n_out; o++) {
        const tgi_device_port *p = &form->out[o];
        int64_t rows;
        if (p->type == TG_DTYPE_NONE || p->stays)
            continue;
        const size_t bytes = tgi_device_store_most(t, o, p, &rows);
        l->counts_bytes[o] = tgi_align_size((size_t)rows * 2 * sizeof(uint32_t), ALIGN);
        l->out_at[o] = part(&l->out_bytes, tgi_sat_add(l->counts_bytes[o], bytes));
    }
}

static int lanes_of(const tgi_device_form *form)
{
    return form->lanes > 1 ? form->lanes : 1;
}

/* Buffers on each side. */
static int depth_of(const tgi_device_form *form)
{
    return form->alone ? 1 : lanes_of(form) + 1;
}

static layout lay_out(const tgi_tiling *t, const tgi_device_form *form)
{
    const size_t lanes = (size_t)lanes_of(form), depth = (size_t)depth_of(form);
    layout l = {0};
    lay_out_ports(t, form, &l);
    l.weights = part(&l.own, t->net->packed_bytes);
    l.constants = part(&l.own, tgi_device_constants_bytes(t));
    l.arena_bytes = tgi_align_size(t->arena_bytes, ALIGN);
    l.arena = part(&l.room, tgi_sat_mul(lanes, l.arena_bytes));
    l.in = part(&l.room, tgi_sat_mul(depth, l.in_bytes));
    l.once = part(&l.room, l.once_bytes);
    l.out = part(&l.room, tgi_sat_mul(depth, l.out_bytes));
    return l;
}

/* What is kept of each port has a place for so many; a network has no more, but a stage that
 * hands out what a later one reads may. */
static tg_status check_ports(const tgi_stage *stage, tgi_err *err)
{
    if (stage->n_loaded <= TGI_DEVICE_PORTS && stage->n_out <= TGI_DEVICE_PORTS)
        return TG_OK;
    return tgi_fail(err, TG_E_UNSUPPORTED,
                    "a pass of %d inputs and %d outputs: devices take up to %d of each; "
                    "--device cpu",
                    stage->n_loaded, stage->n_out, TGI_DEVICE_PORTS);
}

tg_status tgi_device_need_of(const tgi_device_ops *ops, const tgi_tiling *t,
                             const tgi_device_form *form, tgi_device_need *out, tgi_err *err)
{
    memset(out, 0, sizeof *out);
    TGI_TRY(check_ports(t->stage, err));
    const layout l = lay_out(t, form);
    tgi_device_steps steps;
    TGI_TRY(tgi_device_steps_open(&steps, t, form, (tgi_device_places){0}, err));
    const tg_status st = ops->program_open(NULL, TGI_QUEUE_COMPUTE, steps.step, steps.n, NULL,
                                           &out->program, err);
    tgi_device_steps_close(&steps);
    TGI_TRY(st);
    out->program = tgi_sat_mul(out->program, (size_t)lanes_of(form));
    out->weights = l.constants - l.weights;
    out->constants = l.own - l.constants;
    out->arena = l.in - l.arena;
    out->pixels = l.room - l.in;
    out->room = l.room;
    out->block = tgi_sat_add(l.own, l.room);
    out->pinned = tgi_sat_mul((size_t)depth_of(form), l.out_bytes);
    for (int i = 0; i < t->net->n_nodes; i++)
        if (t->net->nodes[i].packed_bytes > out->packing)
            out->packing = t->net->nodes[i].packed_bytes;
    return TG_OK;
}

size_t tgi_device_exec_bytes(const tgi_tiling *t, const tgi_device_form *form)
{
    return sizeof(tgi_device_exec) + tgi_cell_bytes(t) +
           (size_t)lanes_of(form) * tgi_device_steps_bytes(t, form);
}

/* ---- Open and close ---------------------------------------------------------------------- */

static tg_status upload_now(tgi_device_exec *e, void *dst, const void *src, size_t bytes,
                            tgi_err *err)
{
    if (bytes == 0)
        return TG_OK;
    TGI_TRY(e->ops->upload(e->device, TGI_QUEUE_UPLOAD, dst, src, bytes, err));
    return e->ops->sync(e->device, NULL, err);
}

/* Node by node, so that the host never holds all of them packed. */
static tg_status upload_weights(tgi_device_exec *e, const tgi_net *net, char *dst, tgi_err *err)
{
    size_t most = 1;
    for (int i = 0; i < net->n_nodes; i++)
        if (net->nodes[i].packed_bytes > most)
            most = net->nodes[i].packed_bytes;
    void *packed = tgi_malloc(TGI_TAG_PLAN, most);
    if (!packed)
        return tgi_fail(err, TG_E_NOMEM, "no memory to pack weights");
    tg_status st = TG_OK;
    for (int i = 0; st == TG_OK && i < net->n_nodes; i++) {
        const tgi_net_node *n = &net->nodes[i];
        if (n->packed_bytes == 0)
            continue;
        n->variant->pack(&n->ctx, &n->hint, packed);
        st = upload_now(e, dst + n->packed_offset, packed, n->packed_bytes, err);
    }
    tgi_free(packed);
    return st;
}

static tg_status upload_constants(tgi_device_exec *e, const tgi_tiling *t, char *dst,
                                  tgi_err *err)
{
    const size_t bytes = tgi_device_constants_bytes(t);
    if (bytes == 0)
        return TG_OK;
    void *packed = tgi_calloc(TGI_TAG_PLAN, 1, bytes);
    if (!packed)
        return tgi_fail(err, TG_E_NOMEM, "no memory for the network's vectors");
    tgi_device_constants_fill(t, packed);
    const tg_status st = upload_now(e, dst, packed, bytes, err);
    tgi_free(packed);
    return st;
}

static tg_status make_events(tgi_device_exec *e, tgi_err *err)
{
    for (int k = 0; k < e->depth; k++) {
        TGI_TRY(e->ops->event_new(e->device, &e->event[k].uploaded, err));
        TGI_TRY(e->ops->event_new(e->device, &e->event[k].loaded, err));
        TGI_TRY(e->ops->event_new(e->device, &e->event[k].computed, err));
        TGI_TRY(e->ops->event_new(e->device, &e->event[k].back, err));
    }
    return TG_OK;
}

static void free_event(tgi_device_exec *e, tgi_device_event *event)
{
    if (event)
        e->ops->event_free(e->device, event);
}

static tg_status open_lanes(tgi_device_exec *e, const tgi_tiling *t,
                            const tgi_device_form *form, tgi_err *err)
{
    char *base = e->block;
    for (int k = 0; k < e->lanes; k++) {
        lane *l = &e->lane[k];
        size_t bytes;
        const tgi_device_places at = {base + e->lay.weights, base + e->lay.constants,
                                      e->room + e->lay.arena + (size_t)k * e->lay.arena_bytes};
        l->queue = tgi_device_lane(k);
        TGI_TRY(tgi_device_steps_open(&l->steps, t, form, at, err));
        TGI_TRY(e->ops->program_open(e->device, l->queue, l->steps.step, l->steps.n,
                                     &l->program, &bytes, err));
    }
    return TG_OK;
}

static tg_status take_memory(tgi_device_exec *e, const tgi_device_form *form, tgi_err *err)
{
    const layout *l = &e->lay;
    const size_t block = tgi_sat_add(l->own, form->room ? 0 : l->room);
    if (block)
        TGI_TRY(e->ops->alloc(e->device, block, &e->block, err));
    e->room = form->room ? form->room : (char *)e->block + l->own;
    if (!form->back)
        TGI_TRY(tgi_pinned_get(e->ops, e->device, (size_t)e->depth * l->out_bytes, &e->pinned,
                               err));
    e->back = form->back ? form->back : e->pinned.at;
    return TG_OK;
}

static tg_status prepare(tgi_device_exec *e, const tgi_tiling *t, const tgi_device_form *form,
                         tgi_err *err)
{
    const layout l = lay_out(t, form);
    e->lay = l;
    e->lanes = lanes_of(form);
    e->depth = depth_of(form);
    e->now = e->lane;
    TGI_TRY(take_memory(e, form, err));
    char *base = e->block;
    for (int k = 0; k < e->depth; k++) {
        e->in[k] = e->room + l.in + (size_t)k * l.in_bytes;
        e->out[k] = e->room + l.out + (size_t)k * l.out_bytes;
        e->host[k] = e->back + (size_t)k * l.out_bytes;
    }
    TGI_TRY(open_lanes(e, t, form, err));
    TGI_TRY(tgi_cell_open(&e->coming.cell, t, e->room + l.arena, err));
    TGI_TRY(make_events(e, err));
    TGI_TRY(upload_weights(e, t->net, base + l.weights, err));
    return upload_constants(e, t, base + l.constants, err);
}

tg_status tgi_device_exec_open(const tgi_device_ops *ops, tgi_device *device,
                               const tgi_tiling *t, const tgi_device_form *form,
                               const tgi_device_io *io, tgi_device_exec **out, tgi_err *err)
{
    TGI_TRY(check_ports(t->stage, err));
    tgi_device_exec *e = tgi_calloc(TGI_TAG_PLAN, 1, sizeof *e);
    if (!e)
        return tgi_fail(err, TG_E_NOMEM, "no memory for the executor");
    e->ops = ops;
    e->device = device;
    e->io = *io;
    const tg_status st = prepare(e, t, form, err);
    if (st != TG_OK) {
        tgi_device_exec_close(&e);
        return st;
    }
    *out = e;
    return TG_OK;
}

void tgi_device_exec_close(tgi_device_exec **ep)
{
    tgi_err ignored = {0};
    if (!ep || !*ep)
        return;
    tgi_device_exec *e = *ep;
    (void)e->ops->sync(e->device, NULL, &ignored);
    for (int k = 0; k < e->lanes; k++) {
        e->ops->program_close(&e->lane[k].program);
        tgi_device_steps_close(&e->lane[k].steps);
    }
    for (int k = 0; k < e->depth; k++) {
        free_event(e, e->event[k].uploaded);
        free_event(e, e->event[k].loaded);
        free_event(e, e->event[k].computed);
        free_event(e, e->event[k].back);
    }
    tgi_cell_close(&e->coming.cell);
    if (e->block)
        e->ops->release(e->device, e->block);
    tgi_pinned_drop(e->ops, e->device, &e->pinned);
    tgi_free(e);
    *ep = NULL;
}

/* ---- Bands ------------------------------------------------------------------------------- */

void tgi_device_exec_begin(tgi_device_exec *e, const tgi_device_cell *cell,
                           const tgi_range *core)
{
    e->cell = *cell;
    e->coming.announced = 0;
    e->now = e->now + 1 < e->lane + e->lanes ? e->now + 1 : e->lane;
    tgi_cell_begin(&e->now->steps.cell, core);
}

void tgi_device_exec_expect(tgi_device_exec *e, const tgi_device_cell *cell,
                            const tgi_range *core)
{
    tgi_cell *c = &e->coming.cell;
    e->coming.announced = 1;
    e->coming.id = *cell;
    tgi_cell_begin(c, core);
    for (int i = 0; i < c->stage->n_loaded; i++)
        e->coming.first[i] =
            tgi_cell_rows(c, c->stage->in[i].value, tgi_flow_feed(&c->flow, i));
}

static tg_status wait_for(tgi_device_exec *e, tgi_device_event *event, tgi_err *err)
{
    const double t0 = tgi_seconds();
    tgi_busy_begin(e->busy);
    const tg_status st = e->ops->sync(e->device, event, err);
    tgi_busy_end(e->busy);
    e->seconds.wait += tgi_seconds() - t0;
    return st;
}

static int all_empty(const tgi_box *box, int n)
{
    for (int i = 0; i < n; i++)
        if (!tgi_box_empty(&box[i]))
            return 0;
    return 1;
}

/* What will be fetched next: rows of this cell, or the first of the coming one. */
static void ask_ahead(tgi_device_exec *e)
{
    const tgi_cell *c = &e->now->steps.cell;
    tgi_box next[TGI_DEVICE_PORTS];
    for (int i = 0; i < c->stage->n_loaded; i++)
        next[i] = tgi_cell_next_load(c, i);
    if (!all_empty(next, c->stage->n_loaded))
        e->io.ahead(e->io.user, &e->cell, next);
    else if (e->coming.announced)
        e->io.ahead(e->io.user, &e->coming.id, e->coming.first);
}

typedef struct fetched {
    const void *at;
    size_t bytes;
} fetched;

/* Where on the device input i of the bands in buffer k arrives. */
static char *arrives(const tgi_device_exec *e, int k, int i)
{
    return (e->lay.loaded_once[i] ? e->room + e->lay.once : e->in[k]) + e->lay.in_at[i];
}

/* Get the band's pixels from their owner, and tell the load steps how they lie. */
static tg_status fetch(tgi_device_exec *e, const tgi_box *box, int k, fetched *got,
                       tgi_err *err)
{
    const double t0 = tgi_seconds();
    for (int i = 0; i < e->now->steps.n_load; i++) {
        tgi_device_pixels px;
        if (tgi_box_empty(&box[i]) || e->lay.loaded_once[i])
            continue;
        TGI_TRY(
            e->io.fetch(e->io.user, &e->cell, i, &box[i], &px, &got[i].at, &got[i].bytes, err));
        if (got[i].bytes)
            px.at = arrives(e, k, i);
        tgi_device_steps_load(&e->now->steps, i, &box[i], &px);
    }
    e->seconds.fetch += tgi_seconds() - t0;
    return TG_OK;
}

/* What is loaded once is sent by its owner. *sent: something was. */
static tg_status send_once(tgi_device_exec *e, const tgi_box *box, int k, int *sent,
                           tgi_err *err)
{
    const double t0 = tgi_seconds();
    for (int i = 0; i < e->now->steps.n_load; i++) {
        tgi_device_pixels px = {.at = NULL};
        if (tgi_box_empty(&box[i]) || !e->lay.loaded_once[i])
            continue;
        TGI_TRY(e->io.send(e->io.user, &e->cell, i, &box[i], arrives(e, k, i), &px, err));
        *sent |= !px.at;
        if (!px.at)
            px.at = arrives(e, k, i);
        tgi_device_steps_load(&e->now->steps, i, &box[i], &px);
    }
    e->seconds.fetch += tgi_seconds() - t0;
    return TG_OK;
}

/* Read the band's pixels and send them; the reader goes on with those of the next band as soon
 * as the buffer they go to was sent. (So is the one that is read now: a band ago.) */
static tg_status feed(tgi_device_exec *e, const tgi_box *box, tgi_err *err)
{
    const int k = (int)(e->fed % e->depth), before = (int)((e->fed + e->lanes) % e->depth);
    fetched got[TGI_DEVICE_PORTS] = {{0}};
    int sent = 0;
    TGI_TRY(fetch(e, box, k, got, err));
    TGI_TRY(wait_for(e, e->event[before].uploaded, err));
    ask_ahead(e);
    TGI_TRY(e->ops->wait(e->device, TGI_QUEUE_UPLOAD, e->event[k].loaded, err));
    for (int i = 0; i < e->now->steps.n_load; i++) {
        if (got[i].bytes)
            TGI_TRY(e->ops->upload(e->device, TGI_QUEUE_UPLOAD, arrives(e, k, i), got[i].at,
                                   got[i].bytes, err));
        sent |= got[i].bytes > 0;
    }
    TGI_TRY(send_once(e, box, k, &sent, err));
    if (!sent) /* all of it is there already */
        return TG_OK;
    TGI_TRY(e->ops->record(e->device, TGI_QUEUE_UPLOAD, e->event[k].uploaded, err));
    return e->ops->wait(e->device, e->now->queue, e->event[k].uploaded, err);
}

/* Give the finished pixels in buffer k to the caller. */
static tg_status hand_out(tgi_device_exec *e, int k, tgi_err *err)
{
    pending *p = &e->pending[k];
    tg_status st = TG_OK;
    if (!p->used)
        return TG_OK;
    p->used = 0;
    TGI_TRY(wait_for(e, e->event[k].back, err));
    const double t0 = tgi_seconds();
    for (int o = 0; st == TG_OK && o < e->now->steps.cell.stage->n_out; o++) {
        const char *counts = e->host[k] + e->lay.out_at[o];
        if (!tgi_box_empty(&p->box[o]))
            st =
                e->io.take(e->io.user, &p->cell, o, &p->box[o], counts + e->lay.counts_bytes[o],
                           (const uint32_t *)(const void *)counts, err);
    }
    e->seconds.take += tgi_seconds() - t0;
    return st;
}

/* Are there places for the counts and pixels of output o? */
static tg_status check_room(const tgi_device_exec *e, int o, const tgi_box *box, size_t bytes,
                            tgi_err *err)
{
    size_t rows = 1, end = e->lay.out_bytes;
    for (int a = TGI_STREAM_AXIS; a < box->rank - 1; a++)
        rows *= (size_t)tgi_range_len(box->ax[a]);
    for (int i = 0; i < e->now->steps.cell.stage->n_out; i++)
        if (e->lay.out_at[i] > e->lay.out_at[o] && e->lay.out_at[i] < end)
            end = e->lay.out_at[i];
    return rows * 2 * sizeof(uint32_t) <= e->lay.counts_bytes[o] &&
                   bytes <= end - e->lay.out_at[o] - e->lay.counts_bytes[o]
               ? TG_OK
               : tgi_fail(err, TG_E_INTERNAL, "a band of output %d is larger than its buffer",
                          o);
}

/* Output o stays on the device: nothing of it comes back. */
static int stays(tgi_device_exec *e, int o, tgi_box *box)
{
    tgi_device_pixels px;
    if (!e->io.stays || !e->io.stays(e->io.user, o, &px))
        return 0;
    tgi_device_steps_leave(&e->now->steps, o, box, &px);
    *box = (tgi_box){.rank = box->rank};
    return 1;
}

/* The rows that the band completes of each output that somebody takes, into the store steps; to
 * buffer k. *any: there are some that come back. */
static tg_status store(tgi_device_exec *e, const int64_t *from, int k, tgi_box *box,
                       size_t *bytes, int *any, tgi_err *err)
{
    tgi_device_steps *s = &e->now->steps;
    const int n = s->cell.stage->n_out;
    for (int o = 0; o < n; o++) {
        box[o] = (tgi_box){.rank = s->cell.net->rank};
        if (s->store_of[o] >= 0)
            box[o] = tgi_cell_kept(&s->cell, o, from[o]);
        char *at = e->out[k] + e->lay.out_at[o];
        if (tgi_box_empty(&box[o]) || stays(e, o, &box[o]))
            continue;
        const int ends = s->cell.stage->out[o].port >= 0; /* else it passes to another stage */
        bytes[o] = tgi_device_steps_store(s, o, &box[o], at, at + e->lay.counts_bytes[o],
                                          ends ? e->cell.mul : 1, ends ? e->cell.add : 0);
        TGI_TRY(check_room(e, o, &box[o], bytes[o], err));
    }
    *any = !all_empty(box, n);
    return TG_OK;
}

/* Bring the band's rows back. What the buffer holds on the host is handed out first, while the
 * device has this band and the one before to compute. */
static tg_status fetch_back(tgi_device_exec *e, const tgi_box *box, const size_t *bytes,
                            tgi_err *err)
{
    const int k = (int)(e->made % e->depth), n = e->now->steps.cell.stage->n_out;
    TGI_TRY(e->ops->record(e->device, e->now->queue, e->event[k].computed, err));
    TGI_TRY(hand_out(e, k, err));
    TGI_TRY(e->ops->wait(e->device, TGI_QUEUE_DOWNLOAD, e->event[k].computed, err));
    for (int o = 0; o < n; o++)
        if (bytes[o])
            TGI_TRY(e->ops->download(
                e->device, TGI_QUEUE_DOWNLOAD, e->host[k] + e->lay.out_at[o],
                e->out[k] + e->lay.out_at[o], e->lay.counts_bytes[o] + bytes[o], err));
    TGI_TRY(e->ops->record(e->device, TGI_QUEUE_DOWNLOAD, e->event[k].back, err));
    e->pending[k].used = 1;
    e->pending[k].cell = e->cell;
    memcpy(e->pending[k].box, box, (size_t)n * sizeof *box);
    e->made++;
    return TG_OK;
}

/* Put one more band into the queues and hand out one that is back. *done: it was the cell's
 * last. */
static tg_status run_band(tgi_device_exec *e, int *done, tgi_err *err)
{
    tgi_device_steps *s = &e->now->steps;
    tgi_cell *c = &s->cell;
    const int k = (int)(e->made % e->depth);
    int64_t from[TGI_DEVICE_PORTS] = {0};
    tgi_box in[TGI_DEVICE_PORTS], out[TGI_DEVICE_PORTS];
    size_t bytes[TGI_DEVICE_PORTS] = {0};
    tgi_device_steps_rest(s);
    for (int o = 0; o < c->stage->n_out; o++)
        from[o] = c->flow.end[c->stage->out[o].value];
    for (int i = 0; i < s->n_load; i++)
        in[i] = tgi_cell_rows(c, c->stage->in[i].value, tgi_flow_feed(&c->flow, i));
    const int feeds = !all_empty(in, s->n_load);
    if (feeds)
        TGI_TRY(feed(e, in, err));
    tgi_device_steps_nodes(s);
    int yields = 0;
    TGI_TRY(store(e, from, k, out, bytes, &yields, err));
    if (yields)
        TGI_TRY(e->ops->wait(e->device, e->now->queue, e->event[k].back, err));
    TGI_TRY(e->ops->program_run(e->now->program, s->step, err));
    if (feeds)
        TGI_TRY(e->ops->record(e->device, e->now->queue, e->event[e->fed++ % e->depth].loaded,
                               err));
    if (yields)
        TGI_TRY(fetch_back(e, out, bytes, err));
    tgi_flow_release(&c->flow);
    *done = tgi_flow_done(&c->flow);
    return TG_OK;
}

tg_status tgi_device_exec_bands(tgi_device_exec *e, tg_status (*tick)(void *user, tgi_err *err),
                                void *user, tgi_err *err)
{
    for (int done = 0; !done;) {
        TGI_TRY(run_band(e, &done, err));
        if (tick)
            TGI_TRY(tick(user, err));
    }
    return TG_OK;
}

tg_status tgi_device_exec_drain(tgi_device_exec *e, tgi_err *err)
{
    for (int64_t i = 0; i < e->depth; i++)
        TGI_TRY(hand_out(e, (int)((e->made + i) % e->depth), err));
    return TG_OK;
}

void tgi_device_exec_give_up(tgi_device_exec *e)
{
    tgi_err ignored = {0};
    (void)e->ops->sync(e->device, NULL, &ignored);
    for (int k = 0; k < e->depth; k++)
        e->pending[k].used = 0;
}

int tgi_device_exec_is_pinned(const tgi_device_exec *e)
{
    return !e->pinned.ordinary;
}

int tgi_device_exec_loose(const tgi_device_exec *e)
{
    int n = 0;
    for (int k = 0; k < e->lanes; k++)
        n += e->ops->program_loose(e->lane[k].program);
    return n;
}

void tgi_device_exec_watch(tgi_device_exec *e, tgi_busy *busy)
{
    e->busy = busy;
}

tgi_device_times tgi_device_exec_seconds(const tgi_device_exec *e)
{
    return e->seconds;
}
