/* dense.c - copies boxes between dense arrays and the executor's views. */
#include "engine/exec/dense.h"

#include <string.h>

tgi_view tgi_dense_view(const tgi_net *net, int v, float *data)
{
    const tgi_desc *d = &net->values[v].ext;
    const int64_t w = d->dim[net->rank - 1], h = d->dim[net->rank - 2];
    const int64_t depth = net->rank == 5 ? d->dim[2] : 1;
    return (tgi_view){.base = data,
                      .c = d->dim[1],
                      .cb = 1,
                      .width = w,
                      .block_pitch = (size_t)(depth * h * w),
                      .z_pitch = (size_t)(h * w),
                      .y_pitch = (size_t)w,
                      .z_ring = depth,
                      .y_ring = h};
}

tgi_view tgi_planes_view(const float *at, const tgi_box *box, int64_t c)
{
    const int n = box->rank;
    const tgi_range z = n == 5 ? box->ax[2] : (tgi_range){0, 1};
    const tgi_range y = box->ax[n - 2], x = box->ax[n - 1];
    tgi_view v = {.c = c, .cb = 1, .x0 = x.lo, .width = tgi_range_len(x)};
    v.y_pitch = (size_t)v.width;
    v.block_pitch = v.y_pitch * (size_t)tgi_range_len(y);
    v.z_pitch = v.block_pitch * (size_t)c;
    v.z_ring = z.hi;
    v.y_ring = y.hi;
    /* where row and slab 0 would lie, which nobody reads */
    v.base = (float *)((uintptr_t)at -
                       sizeof(float) * ((size_t)z.lo * v.z_pitch + (size_t)y.lo * v.y_pitch));
    return v;
}

static void zyx_of(const tgi_box *b, tgi_range r[3])
{
    r[0] = b->rank == 5 ? b->ax[2] : (tgi_range){0, 1};
    r[1] = b->ax[b->rank - 2];
    r[2] = b->ax[b->rank - 1];
}

static void copy_row(const tgi_view *from, const tgi_view *to, int64_t c, int64_t z, int64_t y,
                     tgi_range x)
{
    const float *s = tgi_view_at(from, c, z, y, x.lo);
    float *d = tgi_view_at(to, c, z, y, x.lo);
    for (int64_t i = 0; i < tgi_range_len(x); i++)
        d[i * to->cb] = s[i * from->cb];
}

void tgi_copy_box(const tgi_view *from, const tgi_view *to, int64_t channels,
                  const tgi_box *box)
{
    tgi_range r[3];
    zyx_of(box, r);
    for (int64_t c = 0; c < channels; c++)
        for (int64_t z = r[0].lo; z < r[0].hi; z++)
            for (int64_t y = r[1].lo; y < r[1].hi; y++)
                copy_row(from, to, c, z, y, r[2]);
}

void tgi_clear_lanes(const tgi_view *v, const tgi_box *box)
{
    tgi_range r[3];
    zyx_of(box, r);
    for (int64_t c = v->c; c < tgi_view_blocks(v) * v->cb; c++)
        for (int64_t z = r[0].lo; z < r[0].hi; z++)
            for (int64_t y = r[1].lo; y < r[1].hi; y++)
                for (int64_t x = r[2].lo; x < r[2].hi; x++)
                    *tgi_view_at(v, c, z, y, x) = 0;
}

/* A flat value is one row of floats to the planner, and bytes here, which need not fill the
 * last of them. */
static size_t flat_start(const tgi_box *box)
{
    return (size_t)box->ax[box->rank - 1].lo * sizeof(float);
}

static size_t flat_bytes(const tgi_net *net, int v, const tgi_box *box)
{
    const size_t all = tgi_net_dense_bytes(net, v);
    const size_t end = (size_t)box->ax[box->rank - 1].hi * sizeof(float);
    return (end < all ? end : all) - flat_start(box);
}

static float *flat_at(const tgi_view *view, const tgi_box *box)
{
    return view->base + (box->ax[box->rank - 1].lo - view->x0);
}

tg_status tgi_dense_load(void *user, int i, const tgi_view *view, const tgi_box *box,
                         tgi_err *err)
{
    (void)err;
    const tgi_dense_io *io = user;
    const int v = io->net->in[i];
    float *data = (float *)(uintptr_t)io->in[i];
    if (io->net->values[v].flat) {
        const size_t at = flat_start(box), n = flat_bytes(io->net, v, box);
        memcpy(flat_at(view, box), (char *)data + at, n);
        return TG_OK;
    }
    const tgi_view from = tgi_dense_view(io->net, v, data);
    tgi_copy_box(&from, view, view->c, box);
    tgi_clear_lanes(view, box);
    return TG_OK;
}

tg_status tgi_dense_store(void *user, int o, const tgi_view *view, const tgi_box *box,
                          tgi_err *err)
{
    (void)err;
    const tgi_dense_io *io = user;
    const int v = io->net->out[o];
    if (!io->out[o])
        return TG_OK;
    if (io->net->values[v].flat) {
        memcpy((char *)io->out[o] + flat_start(box), flat_at(view, box),
               flat_bytes(io->net, v, box));
        return TG_OK;
    }
    const tgi_view to = tgi_dense_view(io->net, v, io->out[o]);
    tgi_copy_box(view, &to, view->c, box);
    return TG_OK;
}
