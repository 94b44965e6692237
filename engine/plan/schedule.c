/* schedule.c - see schedule.h. */
#include "engine/plan/schedule.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "engine/base/size.h"
#include "engine/plan/stage_cut.h"

#include <stdio.h>
#include <string.h>

tg_status tgi_schedule_new(tgi_schedule **out, tgi_err *err)
{
    *out = tgi_calloc(TGI_TAG_PLAN, 1, sizeof **out);
    return *out ? TG_OK : tgi_fail(err, TG_E_NOMEM, "no memory for a schedule");
}

void tgi_schedule_free(tgi_schedule **sp)
{
    tgi_schedule *s = *sp;
    if (!s)
        return;
    for (int i = 0; i < s->n_nets; i++) {
        tgi_choice_free(&s->net[i].choice);
        tgi_stages_free(&s->net[i].stages);
        tgi_net_free(&s->net[i].net);
    }
    tgi_free(s->buffer);
    tgi_free(s->net);
    tgi_free(s->step);
    tgi_free(s->binding);
    tgi_free(s);
    *sp = NULL;
}

int64_t tgi_sched_row(int lanes, int64_t c, int64_t w)
{
    return (c + lanes - 1) / lanes * lanes * w;
}

int64_t tgi_sched_floats(int lanes, int64_t c, int64_t h, int64_t w)
{
    return lanes && c > TGI_PLANAR_MAX ? tgi_sched_row(lanes, c, w) * h : c * h * w;
}

/* ---- Parts ------------------------------------------------------------------------------- */

static void *grow(tgi_schedule *s, void *list, int n, size_t size)
{
    if (s->st != TG_OK)
        return NULL;
    void *grown = tgi_realloc_n(TGI_TAG_PLAN, list, (size_t)n + 1, size);
    if (!grown)
        s->st = tgi_fail(&s->err, TG_E_NOMEM, "no memory for a schedule");
    return grown;
}

static int add_buffer(tgi_schedule *s, const char *name, const int64_t shape[3], size_t bytes)
{
    tgi_sched_buffer *list = grow(s, s->buffer, s->n_buffers, sizeof *list);
    if (!list)
        return -1;
    s->buffer = list;
    tgi_sched_buffer *b = &list[s->n_buffers];
    *b = (tgi_sched_buffer){
        .shape = {shape[0], shape[1], shape[2]}, .bytes = bytes, .first = 1, .last = 0};
    snprintf(b->name, sizeof b->name, "%s", name);
    return s->n_buffers++;
}

int tgi_schedule_buffer(tgi_schedule *s, const char *name, int64_t c, int64_t h, int64_t w)
{
    const int64_t shape[3] = {c, h, w};
    return add_buffer(s, name, shape,
                      tgi_sat_mul((size_t)tgi_sched_floats(s->lanes, c, h, w), sizeof(float)));
}

int tgi_schedule_bytes(tgi_schedule *s, const char *name, size_t bytes)
{
    const int64_t shape[3] = {1, 1, (int64_t)bytes};
    return add_buffer(s, name, shape, bytes);
}

void tgi_schedule_keep(tgi_schedule *s, int buffer)
{
    if (s->st == TG_OK)
        s->buffer[buffer].kept = 1;
}

static void bind(tgi_schedule *s, const tgi_sched_binding *is)
{
    if (s->st != TG_OK || !s->device)
        return;
    tgi_sched_binding *list = grow(s, s->binding, s->n_bindings, sizeof *list);
    if (!list)
        return;
    s->binding = list;
    list[s->n_bindings++] = *is;
}

void tgi_schedule_reads(tgi_schedule *s, int net, int in, int buffer, int64_t times)
{
    bind(s, &(tgi_sched_binding){net, 0, in, buffer, times});
}

void tgi_schedule_writes(tgi_schedule *s, int net, int out, int buffer, int64_t times)
{
    bind(s, &(tgi_sched_binding){net, 1, out, buffer, times});
}

void tgi_schedule_said(tgi_schedule *s, int net)
{
    if (s->st == TG_OK)
        s->net[net].said = 1;
}

void tgi_schedule_far_only(tgi_schedule *s, int buffer)
{
    if (s->st == TG_OK)
        s->buffer[buffer].far_only = 1;
}

/* Where nothing but inputs is read whole, the rest streams. What is read whole and by nobody else lies in its buffer as it
 * is read, but on a device. */
static tg_status stream(tgi_stage *s, int far, tgi_err *err)
{
    TGI_TRY(tgi_stage_lifetimes(s, err));
    for (int i = 0; i < s->n_loaded && !far; i++)
        s->in[i].in_place = tgi_stage_only_looks(s, i) && s->net->values[s->in[i].value].cb > 1;
    return TG_OK;
}

/* With the kernels that were asked for; on a device those of float32 do where they cannot. */
static tg_status make_net(tgi_sched_net *n, const tgi_kernel_set *be, const tgi_desc *in,
                          const tgi_schedule *s, tgi_err *err)
{
    tgi_err e = {0};
    tg_status st = tgi_net_new(n->graph, be, in, s->flags, &n->net, &e);
    if (st == TG_E_UNSUPPORTED && s->device && s->device->wide && s->device->wide != be) {
        e = (tgi_err){0};
        st = tgi_net_new(n->graph, s->device->wide, in, s->flags, &n->net, &e);
    }
    return st == TG_OK ? TG_OK : tgi_fail(err, st, "%s", e.text);
}

typedef struct of_device {
    const tgi_sched_device *device;
    const tgi_sched_stay *stays, *always;
} of_device;

static double device_seconds(void *user, const tgi_tiling *t)
{
    const of_device *a = user;
    return a->device->seconds(a->device->user, t, a->stays);
}

static size_t device_extra(void *user, const tgi_tiling *t)
{
    const of_device *a = user;
    return a->device->extra(a->device->user, t, a->always);
}

/* What the processor's caches like, or what the device's room takes. */
static tg_status choose(const tgi_schedule *s, tgi_sched_net *n, const tgi_stage *stage,
                        int threads, tgi_err *err)
{
    of_device of = {s->device, &n->stays, &n->always};
    const int far = s->device != NULL;
    const tgi_choose_args a = {.stage = stage,
                               .threads = threads,
                               .limit_bytes = far ? s->device->room : SIZE_MAX / 2,
                               .unit = {1, 1, 1},
                               .flops_per_second = 1e11,
                               .seconds = far ? device_seconds : NULL,
                               .extra = far ? device_extra : NULL,
                               .user = &of};
    const tg_status st = tgi_choose(&a, &n->choice, err);
    return far && st == TG_E_BUDGET
               ? tgi_err_tried(err, st, TGI_SCHED_ROOM, n->choice.smallest_bytes)
               : st;
}

/* The plan of a net alone. */
static tg_status plan_net(tgi_sched_net *n, const tgi_kernel_set *be, const int64_t shape[3],
                          int threads, const tgi_schedule *s, tgi_err *err)
{
    const int far = s->device != NULL;
    const int64_t ext[3] = {1, shape[1], shape[2]};
    tgi_desc in[TGI_MAX_PORTS];
    tgi_graph_input_descs(n->graph, ext, in);
    in[0] = (tgi_desc){TG_DTYPE_F32, 4, {1, shape[0], shape[1], shape[2]}};
    TGI_TRY(make_net(n, be, in, s, err));
    TGI_TRY(tgi_stages_new(n->net, &n->stages, err));
    tgi_stage *stage =
        (s->lanes || far) && n->stages->n == 1 ? &n->stages->stage[0] : &n->stages->one;
    if (stage != &n->stages->one)
        TGI_TRY(stream(stage, far, err));
    return choose(s, n, stage, threads, err);
}

/* Of networks whose arrays stay, as nothing of those has to travel. */
static tg_status choose_again(tgi_schedule *s, tgi_err *err)
{
    for (int i = 0; i < s->n_nets; i++) {
        tgi_sched_net *n = &s->net[i];
        const tgi_stage *stage = n->choice.tiling.stage;
        const int threads = n->choice.tiling.threads;
        if (!n->stays.in && !n->stays.out)
            continue;
        tgi_choice_free(&n->choice);
        TGI_TRY(choose(s, n, stage, threads, err));
    }
    return TG_OK;
}

static int find_net(const tgi_schedule *s, const tgi_graph *g, const tgi_kernel_set *be,
                    const int64_t shape[3], int threads)
{
    for (int i = 0; i < s->n_nets; i++) {
        const int64_t *dim = s->net[i].net->values[s->net[i].net->in[0]].ext.dim;
        if (s->net[i].graph == g &&
            (s->net[i].net->be == be || (s->device && s->net[i].net->be == s->device->wide)) &&
            s->net[i].choice.tiling.threads == threads && dim[1] == shape[0] &&
            dim[2] == shape[1] && dim[3] == shape[2])
            return i;
    }
    return -1;
}

int tgi_schedule_net(tgi_schedule *s, const tgi_graph *g, const tgi_kernel_set *be, int64_t c,
                     int64_t h, int64_t w, int threads)
{
    const int64_t shape[3] = {c, h, w};
    if (s->device)
        be = s->device->be;
    const int there = s->st == TG_OK ? find_net(s, g, be, shape, threads) : -1;
    if (there >= 0)
        return there;
    tgi_sched_net *list = grow(s, s->net, s->n_nets, sizeof *list);
    if (!list)
        return -1;
    s->net = list;
    list[s->n_nets] = (tgi_sched_net){.graph = g};
    s->st = plan_net(&list[s->n_nets], be, shape, threads, s, &s->err);
    return s->n_nets++;
}

void tgi_schedule_called(tgi_schedule *s, int net)
{
    if (s->st == TG_OK)
        s->net[net].called = 1;
}

void tgi_schedule_step(tgi_schedule *s, const tgi_sched_step *step)
{
    tgi_sched_step *list = grow(s, s->step, s->n_steps, sizeof *list);
    if (!list)
        return;
    s->step = list;
    list[s->n_steps++] = *step;
}

/* ---- Plan -------------------------------------------------------------------------------- */

static void use(tgi_schedule *s, int buffer, int step)
{
    tgi_sched_buffer *b = &s->buffer[buffer];
    if (b->first > b->last)
        b->first = step;
    b->last = step;
}

static void live(tgi_schedule *s)
{
    for (int k = 0; k < s->n_steps; k++) {
        const tgi_sched_step *p = &s->step[k];
        for (int i = 0; i < p->n_in; i++)
            use(s, p->in[i], k);
        for (int i = 0; i < p->n_out; i++)
            use(s, p->out[i], k);
    }
    for (int i = 0; i < s->n_buffers; i++)
        if (s->buffer[i].kept) {
            s->buffer[i].first = 0;
            s->buffer[i].last = s->n_steps > 0 ? s->n_steps - 1 : 0;
        }
}

static tg_status check_port(const tgi_schedule *s, const tgi_sched_step *p, int value,
                            int buffer, tgi_err *err)
{
    const int64_t *dim = s->net[p->net].net->values[value].ext.dim;
    const tgi_sched_buffer *b = &s->buffer[buffer];
    if (dim[1] == b->shape[0] && dim[2] == b->shape[1] && dim[3] == b->shape[2])
        return TG_OK;
    return tgi_fail(err, TG_E_ARG,
                    "step \"%s\": buffer \"%s\" is [%lld,%lld,%lld], the network has "
                    "[%lld,%lld,%lld] there",
                    p->name, b->name, (long long)b->shape[0], (long long)b->shape[1],
                    (long long)b->shape[2], (long long)dim[1], (long long)dim[2],
                    (long long)dim[3]);
}

static tg_status check_copy(const tgi_schedule *s, const tgi_sched_step *p, tgi_err *err)
{
    int same = p->n_in <= p->n_out;
    for (int i = 0; i < p->n_in && same; i++)
        same = memcmp(s->buffer[p->in[i]].shape, s->buffer[p->out[i]].shape,
                      sizeof s->buffer[0].shape) == 0;
    return same ? TG_OK
                : tgi_fail(err, TG_E_ARG, "step \"%s\": what it copies is not of one shape",
                           p->name);
}

static tg_status check_step(const tgi_schedule *s, const tgi_sched_step *p, tgi_err *err)
{
    if (p->net == TGI_SCHED_WORK)
        return TG_OK;
    if (p->net == TGI_SCHED_COPY)
        return check_copy(s, p, err);
    const tgi_net *n = s->net[p->net].net;
    if (n->n_in != p->n_in || n->n_out < p->n_out)
        return tgi_fail(err, TG_E_ARG,
                        "step \"%s\" binds %d inputs and %d outputs of a network of %d and %d",
                        p->name, p->n_in, p->n_out, n->n_in, n->n_out);
    for (int i = 0; i < p->n_in; i++)
        TGI_TRY(check_port(s, p, n->in[i], p->in[i], err));
    for (int i = 0; i < p->n_out; i++)
        TGI_TRY(check_port(s, p, n->out[i], p->out[i], err));
    for (int k = 0; k < p->n_state; k++) {
        const int in = p->state_in[k], out = p->state_out[k];
        if (in < 0 || in >= p->n_in || out < 0 || out >= p->n_out ||
            memcmp(s->buffer[p->in[in]].shape, s->buffer[p->out[out]].shape,
                   sizeof s->buffer[0].shape) != 0)
            return tgi_fail(err, TG_E_ARG, "step \"%s\": what it hands on is not of one shape",
                            p->name);
    }
    return TG_OK;
}

/* A net's arena lives in each of its steps, so from the first to the last of them; of one that is called it lies
 * behind everything else. */
static void net_life(const tgi_schedule *s, int net, tgi_item *item)
{
    item->first = s->n_steps;
    item->last = -1;
    for (int k = 0; k < s->n_steps; k++)
        if (s->step[k].net == net) {
            item->first = item->first < k ? item->first : k;
            item->last = k;
        }
    const int outside = item->last < 0 || s->net[net].called || s->device;
    item->bytes = outside ? 0 : s->net[net].choice.tiling.arena_bytes;
    if (outside)
        item->first = item->last = 0;
}

/* Arenas of nets that are called: one behind all that is packed, as large as the largest. */
static void place_called(tgi_schedule *s, tgi_item *of_net)
{
    const size_t behind = tgi_align_size(s->block_bytes, 64);
    size_t most = 0;
    for (int i = 0; i < s->n_nets && !s->device; i++)
        if (s->net[i].called) {
            of_net[i].offset = behind;
            most = s->net[i].choice.tiling.arena_bytes > most
                       ? s->net[i].choice.tiling.arena_bytes
                       : most;
        }
    if (most)
        s->block_bytes = tgi_sat_add(behind, most);
}

static int any_called(const tgi_schedule *s)
{
    int n = 0;
    for (int i = 0; i < s->n_nets; i++)
        n += s->net[i].called;
    return n;
}

static tg_status pack(tgi_schedule *s, tgi_item *item, tgi_err *err)
{
    size_t bound;
    for (int i = 0; i < s->n_buffers; i++) {
        const tgi_sched_buffer *b = &s->buffer[i];
        const int used = b->first <= b->last,
                  here = used && b->type == TG_DTYPE_NONE && !b->far_only;
        item[i] = (tgi_item){.bytes = here ? b->bytes : 0,
                             .first = used ? b->first : 0,
                             .last = used ? b->last : 0};
    }
    for (int i = 0; i < s->n_nets; i++)
        net_life(s, i, &item[s->n_buffers + i]);
    TGI_TRY(tgi_arena_pack(item, s->n_buffers + s->n_nets, &s->block_bytes, &bound, err));
    for (int i = 0; i < s->n_buffers; i++)
        if (s->buffer[i].type == TG_DTYPE_NONE)
            s->buffer[i].offset = item[i].offset;
    place_called(s, item + s->n_buffers);
    s->weight_bytes = 0;
    for (int i = 0; i < s->n_nets; i++) {
        s->net[i].arena_at = item[s->n_buffers + i].offset;
        s->net[i].weights_at = s->weight_bytes;
        s->weight_bytes += s->device ? 0 : tgi_align_size(s->net[i].net->packed_bytes, 64);
    }
    return TG_OK;
}

static double flops_of(const tgi_schedule *s, const tgi_sched_step *p)
{
    return p->net < 0 ? 0
                      : s->net[p->net].choice.tiling.flops * (p->repeat > 1 ? p->repeat : 1);
}

tg_status tgi_schedule_plan(tgi_schedule *s, tgi_err *err)
{
    if (s->st != TG_OK) {
        (void)tgi_fail(err, s->st, "%s", s->err.text);
        return tgi_err_tried(err, s->st, s->err.asked_by, s->err.tried_bytes);
    }
    if (s->n_steps == 0 && !any_called(s))
        return tgi_fail(err, TG_E_ARG, "a schedule without steps");
    live(s);
    for (int k = 0; k < s->n_steps; k++)
        TGI_TRY(check_step(s, &s->step[k], err));
    TGI_TRY(tgi_schedule_plan_far(s, err));
    TGI_TRY(choose_again(s, err));
    s->flops = 0;
    for (int k = 0; k < s->n_steps; k++)
        s->flops += flops_of(s, &s->step[k]);
    tgi_item *item = tgi_calloc(TGI_TAG_PLAN, (size_t)(s->n_buffers + s->n_nets), sizeof *item);
    if (!item)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a schedule");
    const tg_status st = pack(s, item, err);
    tgi_free(item);
    return st;
}
