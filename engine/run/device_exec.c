#include "engine/run/device_exec.h"

#include "engine/base/arith.h"
#include "engine/base/clock.h"
#include "engine/base/mem.h"
#include "engine/run/device_steps.h"

#include <string.h>

#define DEPTH TG_DEVICE_DEPTH
#define ALIGN 256u

/* A band whose pixels are on their way back. */
typedef struct pending {
    int used;
    tg_device_cell cell;
    tg_box box;
} pending;

typedef struct event_set {
    tg_device_event *uploaded[DEPTH]; /* staged pixels are on the device */
    tg_device_event *loaded[DEPTH];   /* ... and in their view: both buffers are free */
    tg_device_event *computed[DEPTH]; /* finished pixels lie on the device */
    tg_device_event *back[DEPTH];     /* ... and on the host */
} event_set;

struct tg_device_exec {
    const tg_device_ops *ops;
    tg_device *device;
    tg_device_io io;
    tg_device_steps steps;
    tg_device_program *program;
    void *block, *pinned;
    char *in[DEPTH], *out[DEPTH]; /* on the device: pixels; counts lead those that go back */
    char *host[DEPTH];            /* pinned: counts and pixels that came back */
    size_t counts_bytes;
    event_set event;
    tg_device_cell cell;
    pending pending[DEPTH];
    int64_t fed, made; /* bands that were fed, and that yielded rows, so far */
    tg_device_times seconds;
};

/* ---- What it takes ----------------------------------------------------------------------- */

/* Where the parts of the block begin, and the bytes of one buffer on each side. */
typedef struct layout {
    size_t weights, constants, arena, in, out, total;
    size_t in_bytes, out_bytes, counts_bytes;
} layout;

static size_t part(size_t *at, size_t bytes)
{
    const size_t from = *at;
    *at = tgi_sat_add(from, tgi_align_size(bytes, ALIGN));
    return from;
}

static layout lay_out(const tg_tiling *t, const tg_device_form *form)
{
    layout l = {0};
    int64_t rows, pixels;
    tgi_device_store_most(t, &rows, &pixels);
    l.counts_bytes = tgi_align_size((size_t)rows * 2 * sizeof(uint32_t), ALIGN);
    l.in_bytes = tgi_align_size(form->in_bytes, ALIGN);
    l.out_bytes = tgi_sat_add(
        l.counts_bytes,
        tgi_align_size(tgi_sat_mul((size_t)pixels,
                                   (size_t)form->out_channels * tgi_dtype_size(form->out_type)),
                       ALIGN));
    l.weights = part(&l.total, t->net->packed_bytes);
    l.constants = part(&l.total, tgi_device_constants_bytes(t));
    l.arena = part(&l.total, t->arena_bytes);
    l.in = part(&l.total, tgi_sat_mul(DEPTH, l.in_bytes));
    l.out = part(&l.total, tgi_sat_mul(DEPTH, l.out_bytes));
    return l;
}

tg_status tgi_device_need_of(const tg_device_ops *ops, const tg_tiling *t,
                             const tg_device_form *form, tg_device_need *out, tgi_err *err)
{
    const layout l = lay_out(t, form);
    tg_device_steps steps;
    memset(out, 0, sizeof *out);
    TGI_TRY(tgi_device_steps_open(&steps, t, form, (tg_device_places){0}, err));
    const tg_status st = ops->program_open(NULL, steps.step, steps.n, NULL, &out->program, err);
    tgi_device_steps_close(&steps);
    TGI_TRY(st);
    out->weights = l.constants - l.weights;
    out->constants = l.arena - l.constants;
    out->arena = l.in - l.arena;
    out->pixels = l.total - l.in;
    out->block = l.total;
    out->pinned = DEPTH * l.out_bytes;
    for (int i = 0; i < t->net->n_nodes; i++)
        if (t->net->nodes[i].packed_bytes > out->packing)
            out->packing = t->net->nodes[i].packed_bytes;
    return TG_OK;
}

/* ---- Open and close ---------------------------------------------------------------------- */

static tg_status upload_now(tg_device_exec *e, void *dst, const void *src, size_t bytes,
                            tgi_err *err)
{
    if (bytes == 0)
        return TG_OK;
    TGI_TRY(e->ops->upload(e->device, TG_QUEUE_UPLOAD, dst, src, bytes, err));
    return e->ops->sync(e->device, NULL, err);
}

/* Node by node, so that the host never holds all of them packed. */
static tg_status upload_weights(tg_device_exec *e, const tg_net *net, char *dst, tgi_err *err)
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
        const tg_net_node *n = &net->nodes[i];
        if (n->packed_bytes == 0)
            continue;
        n->variant->pack(&n->ctx, &n->hint, packed);
        st = upload_now(e, dst + n->packed_offset, packed, n->packed_bytes, err);
    }
    tgi_free(packed);
    return st;
}

static tg_status upload_constants(tg_device_exec *e, const tg_tiling *t, char *dst,
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

static tg_status make_events(tg_device_exec *e, tgi_err *err)
{
    for (int k = 0; k < DEPTH; k++) {
        TGI_TRY(e->ops->event_new(e->device, &e->event.uploaded[k], err));
        TGI_TRY(e->ops->event_new(e->device, &e->event.loaded[k], err));
        TGI_TRY(e->ops->event_new(e->device, &e->event.computed[k], err));
        TGI_TRY(e->ops->event_new(e->device, &e->event.back[k], err));
    }
    return TG_OK;
}

static void free_event(tg_device_exec *e, tg_device_event *event)
{
    if (event)
        e->ops->event_free(e->device, event);
}

static tg_status prepare(tg_device_exec *e, const tg_tiling *t, const tg_device_form *form,
                         tgi_err *err)
{
    const layout l = lay_out(t, form);
    size_t bytes;
    TGI_TRY(e->ops->alloc(e->device, l.total, &e->block, err));
    TGI_TRY(e->ops->pin(e->device, DEPTH * l.out_bytes, &e->pinned, err));
    char *base = e->block;
    for (int k = 0; k < DEPTH; k++) {
        e->in[k] = base + l.in + (size_t)k * l.in_bytes;
        e->out[k] = base + l.out + (size_t)k * l.out_bytes;
        e->host[k] = (char *)e->pinned + (size_t)k * l.out_bytes;
    }
    e->counts_bytes = l.counts_bytes;
    const tg_device_places at = {base + l.weights, base + l.constants, base + l.arena};
    TGI_TRY(tgi_device_steps_open(&e->steps, t, form, at, err));
    TGI_TRY(make_events(e, err));
    TGI_TRY(
        e->ops->program_open(e->device, e->steps.step, e->steps.n, &e->program, &bytes, err));
    TGI_TRY(upload_weights(e, t->net, at.weights, err));
    return upload_constants(e, t, at.constants, err);
}

tg_status tgi_device_exec_open(const tg_device_ops *ops, tg_device *device, const tg_tiling *t,
                               const tg_device_form *form, const tg_device_io *io,
                               tg_device_exec **out, tgi_err *err)
{
    tg_device_exec *e = tgi_calloc(TGI_TAG_PLAN, 1, sizeof *e);
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

void tgi_device_exec_close(tg_device_exec **ep)
{
    tgi_err ignored = {0};
    if (!ep || !*ep)
        return;
    tg_device_exec *e = *ep;
    (void)e->ops->sync(e->device, NULL, &ignored);
    e->ops->program_close(&e->program);
    for (int k = 0; k < DEPTH; k++) {
        free_event(e, e->event.uploaded[k]);
        free_event(e, e->event.loaded[k]);
        free_event(e, e->event.computed[k]);
        free_event(e, e->event.back[k]);
    }
    tgi_device_steps_close(&e->steps);
    if (e->block)
        e->ops->release(e->device, e->block);
    if (e->pinned)
        e->ops->unpin(e->device, e->pinned);
    tgi_free(e);
    *ep = NULL;
}

/* ---- Bands ------------------------------------------------------------------------------- */

void tgi_device_exec_begin(tg_device_exec *e, const tg_device_cell *cell, const tg_range *core)
{
    e->cell = *cell;
    tgi_cell_begin(&e->steps.cell, core);
}

static tg_status wait_for(tg_device_exec *e, tg_device_event *event, tgi_err *err)
{
    const double t0 = tgi_seconds();
    const tg_status st = e->ops->sync(e->device, event, err);
    e->seconds.wait += tgi_seconds() - t0;
    return st;
}

/* Read the band's pixels and send them; the reader goes on with those of the next band as soon
 * as the buffer they go to was sent. (So is the one that is read now: a band ago.) */
static tg_status feed(tg_device_exec *e, const tg_box *box, tgi_err *err)
{
    const int k = (int)(e->fed % DEPTH), other = (int)((e->fed + 1) % DEPTH);
    tg_device_pixels px;
    const void *at;
    size_t bytes;
    const double t0 = tgi_seconds();
    TGI_TRY(e->io.fetch(e->io.user, box, &px, &at, &bytes, err));
    e->seconds.fetch += tgi_seconds() - t0;
    TGI_TRY(wait_for(e, e->event.uploaded[other], err));
    const tg_box next = tgi_cell_next_load(&e->steps.cell, 0);
    e->io.ahead(e->io.user, &next);
    TGI_TRY(e->ops->wait(e->device, TG_QUEUE_UPLOAD, e->event.loaded[k], err));
    TGI_TRY(e->ops->upload(e->device, TG_QUEUE_UPLOAD, e->in[k], at, bytes, err));
    TGI_TRY(e->ops->record(e->device, TG_QUEUE_UPLOAD, e->event.uploaded[k], err));
    TGI_TRY(e->ops->wait(e->device, TG_QUEUE_COMPUTE, e->event.uploaded[k], err));
    px.at = e->in[k];
    tgi_device_steps_load(&e->steps, box, &px);
    return TG_OK;
}

/* Give the finished pixels in buffer k to the caller. */
static tg_status hand_out(tg_device_exec *e, int k, tgi_err *err)
{
    pending *p = &e->pending[k];
    if (!p->used)
        return TG_OK;
    p->used = 0;
    TGI_TRY(wait_for(e, e->event.back[k], err));
    const double t0 = tgi_seconds();
    const void *counts = e->host[k];
    const tg_status st =
        e->io.take(e->io.user, &p->cell, &p->box, e->host[k] + e->counts_bytes, counts, err);
    e->seconds.take += tgi_seconds() - t0;
    return st;
}

/* Bring the band's rows back. What the buffer holds on the host is handed out first, while the
 * device has this band and the one before to compute. */
static tg_status fetch_back(tg_device_exec *e, const tg_box *box, size_t bytes, tgi_err *err)
{
    const int k = (int)(e->made % DEPTH);
    TGI_TRY(e->ops->record(e->device, TG_QUEUE_COMPUTE, e->event.computed[k], err));
    TGI_TRY(hand_out(e, k, err));
    TGI_TRY(e->ops->wait(e->device, TG_QUEUE_DOWNLOAD, e->event.computed[k], err));
    TGI_TRY(e->ops->download(e->device, TG_QUEUE_DOWNLOAD, e->host[k], e->out[k],
                             e->counts_bytes + bytes, err));
    TGI_TRY(e->ops->record(e->device, TG_QUEUE_DOWNLOAD, e->event.back[k], err));
    e->pending[k] = (pending){1, e->cell, *box};
    e->made++;
    return TG_OK;
}

tg_status tgi_device_exec_band(tg_device_exec *e, int *done, tgi_err *err)
{
    tg_device_steps *s = &e->steps;
    tg_cell *c = &s->cell;
    const int k = (int)(e->made % DEPTH);
    const int v_in = c->stage->in[0].value;
    tgi_device_steps_rest(s);
    const int64_t from = c->flow.end[c->stage->out[0].value];
    const tg_box in = tgi_cell_rows(c, v_in, tgi_flow_feed(&c->flow, 0));
    const int feeds = !tgi_box_empty(&in);
    if (feeds)
        TGI_TRY(feed(e, &in, err));
    tgi_device_steps_nodes(s);
    const tg_box out = tgi_cell_kept(c, 0, from);
    const int yields = !tgi_box_empty(&out);
    size_t bytes = 0;
    if (yields) {
        TGI_TRY(e->ops->wait(e->device, TG_QUEUE_COMPUTE, e->event.back[k], err));
        bytes = tgi_device_steps_store(s, &out, e->out[k], e->out[k] + e->counts_bytes,
                                       e->cell.mul, e->cell.add);
    }
    TGI_TRY(e->ops->program_run(e->program, s->step, err));
    if (feeds)
        TGI_TRY(e->ops->record(e->device, TG_QUEUE_COMPUTE, e->event.loaded[e->fed++ % DEPTH],
                               err));
    if (yields)
        TGI_TRY(fetch_back(e, &out, bytes, err));
    tgi_flow_release(&c->flow);
    *done = tgi_flow_done(&c->flow);
    return TG_OK;
}

tg_status tgi_device_exec_drain(tg_device_exec *e, tgi_err *err)
{
    for (int64_t i = 0; i < DEPTH; i++)
        TGI_TRY(hand_out(e, (int)((e->made + i) % DEPTH), err));
    return TG_OK;
}

tg_device_times tgi_device_exec_seconds(const tg_device_exec *e)
{
    return e->seconds;
}
