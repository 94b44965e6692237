/* kept.c - moves rows between views and where values are kept, on all threads. */
#include "engine/ends/kept.h"

#include "engine/base/arith.h"
#include "io/file_ops.h"
#include "kernels/reduce.h"

#include <string.h>

/* Sum of n floats that begin at byte `at` of the values. */
static uint64_t sum_of(const void *floats, size_t n, uint64_t at)
{
    const char *p = floats;
    uint64_t sum = 0, odd = at / sizeof(float) * 2 + 1;
    for (size_t i = 0; i < n; i++, odd += 2) {
        uint32_t v;
        memcpy(&v, p + i * sizeof v, sizeof v);
        sum += v * (odd * 0x9e3779b97f4a7c15u);
    }
    return sum;
}

/* Rows of a box on their way. */
typedef struct moving {
    const tgi_kept *k;
    const tgi_kept_value *of;
    const tgi_view *view;
    tgi_range z, y, x;
    int64_t height;         /* of the box */
    int64_t blocks, ny, nx; /* of the whole value */
    int writes;
    atomic_int failed; /* a tg_status */
    tgi_err err;       /* of the first */
} moving;

static void keep_error(moving *m, tg_status st, const tgi_err *err)
{
    int none = TG_OK;
    if (atomic_compare_exchange_strong(&m->failed, &none, (int)st))
        m->err = *err;
}

/* Move the pixels [x) of one row, all blocks of it. `row_of` counts rows over all z. In the view
 * they begin at (z, y, x0). */
static void move_pixels(moving *m, int64_t row_of, tgi_range x, int64_t z, int64_t y,
                        int64_t x0)
{
    const int cb = m->view->cb;
    const size_t n = (size_t)(tgi_range_len(x) * cb) * sizeof(float);
    uint64_t sum = 0;
    for (int64_t b = 0; b < m->blocks; b++) {
        float *row = tgi_view_row(m->view, b, z, y) + (x0 - m->view->x0) * cb;
        const uint64_t at =
            m->of->at +
            (uint64_t)(((row_of * m->blocks + b) * m->nx + x.lo) * cb) * sizeof(float);
        tgi_err e = {0};
        tg_status st = TG_OK;
        if (m->of->on_disk && m->writes) {
            sum += m->k->sums ? sum_of(row, n / sizeof(float), at) : 0;
            st = tgi_file_pwrite(m->k->fd, m->k->path, row, n, m->k->front + at, &e);
        } else if (m->of->on_disk)
            st = tgi_file_pread(m->k->fd, m->k->path, row, n, m->k->front + at, &e);
        else if (m->writes)
            memcpy((char *)m->k->memory + at, row, n);
        else
            memcpy(row, (const char *)m->k->memory + at, n);
        if (st != TG_OK)
            keep_error(m, st, &e);
    }
    if (sum)
        atomic_fetch_add(&m->k->sums[m->of - m->k->plan->kept], sum);
}

/* One row of a box. */
static void move_row(void *arg, int64_t job, int thread)
{
    moving *m = arg;
    const int64_t z = m->z.lo + job / m->height, y = m->y.lo + job % m->height;
    (void)thread;
    move_pixels(m, z * m->ny + y, m->x, z, y, m->x.lo);
}

/* Of a run of pixels what lies in one row. */
static void move_run(void *arg, int64_t job, int thread)
{
    moving *m = arg;
    const int64_t row = m->x.lo / m->nx + job, first = row * m->nx;
    const tgi_range in = tgi_range_clip(m->x, first, first + m->nx);
    (void)thread;
    move_pixels(m, row, (tgi_range){in.lo - first, in.hi - first}, 0, 0, in.lo);
}

static tg_status moved(const tgi_kept *k, moving *m, tgi_err *err)
{
    const tg_status st = (tg_status)atomic_load(&m->failed);
    if (st == TG_E_FORMAT) /* this run has made it long enough, and no input is damaged */
        return tgi_fail(
            err, TG_E_IO,
            "%s: values between stages lie there, and it is shorter than it was made: "
            "did somebody cut it? The same command goes on",
            k->path);
    return st == TG_OK ? TG_OK : tgi_fail(err, st, "%s", m->err.text);
}

static tg_status move(const tgi_kept *k, const tgi_kept_value *of, const tgi_view *view,
                      const tgi_box *box, int writes, tgi_err *err)
{
    const tgi_desc *ext = &k->plan->cut->one.net->values[of->value].ext;
    const int n = ext->rank;
    moving m = {.k = k,
                .of = of,
                .view = view,
                .z = n == 5 ? box->ax[2] : (tgi_range){0, 1},
                .y = box->ax[n - 2],
                .x = box->ax[n - 1],
                .height = tgi_range_len(box->ax[n - 2]),
                .blocks = tgi_view_blocks(view),
                .ny = ext->dim[n - 2],
                .nx = ext->dim[n - 1],
                .writes = writes};
    atomic_init(&m.failed, TG_OK);
    tgi_parallel(k->pool, tgi_range_len(m.z) * m.height, move_row, &m);
    return moved(k, &m, err);
}

tg_status tgi_kept_read_pixels(const tgi_kept *k, int v, const tgi_view *view, tgi_range p,
                               tgi_err *err)
{
    const tgi_kept_value *of = tgi_kept_of(k->plan, v);
    if (!of)
        return tgi_fail(err, TG_E_INTERNAL, "value %d is kept nowhere", v);
    const tgi_desc *ext = &k->plan->cut->one.net->values[v].ext;
    int64_t pixels = 1;
    for (int a = TGI_STREAM_AXIS; a < ext->rank; a++)
        pixels *= ext->dim[a];
    if (p.lo < 0 || p.hi > pixels || p.lo >= p.hi)
        return tgi_fail(err, TG_E_INTERNAL, "pixels %lld to %lld of a value of %lld",
                        (long long)p.lo, (long long)p.hi, (long long)pixels);
    moving m = {.k = k,
                .of = of,
                .view = view,
                .x = p,
                .blocks = tgi_view_blocks(view),
                .nx = ext->dim[ext->rank - 1]};
    atomic_init(&m.failed, TG_OK);
    tgi_parallel(k->pool, (p.hi - 1) / m.nx - p.lo / m.nx + 1, move_run, &m);
    return moved(k, &m, err);
}

tg_status tgi_kept_write(const tgi_kept *k, int v, const tgi_view *view, const tgi_box *box,
                         tgi_err *err)
{
    const tgi_kept_value *of = tgi_kept_of(k->plan, v);
    if (!of)
        return tgi_fail(err, TG_E_INTERNAL, "value %d is kept nowhere", v);
    return move(k, of, view, box, 1, err);
}

tg_status tgi_kept_read(const tgi_kept *k, int v, const tgi_view *view, const tgi_box *box,
                        tgi_err *err)
{
    const tgi_kept_value *of = tgi_kept_of(k->plan, v);
    const tgi_gathered *g = of ? NULL : tgi_gathered_of(k->plan, v);
    if (g) {
        tgi_put_numbers(view, k->numbers + g->numbers_at);
        return TG_OK;
    }
    if (!of)
        return tgi_fail(err, TG_E_INTERNAL, "value %d is kept nowhere", v);
    return move(k, of, view, box, 0, err);
}

const float *tgi_kept_place(const tgi_kept *k, int v)
{
    return (const float *)(const void *)((const char *)k->memory + tgi_kept_of(k->plan, v)->at);
}

tg_status tgi_kept_check(const tgi_kept *k, const tgi_kept_value *of, const tgi_box *box,
                         void *room, size_t room_bytes, uint64_t *sum, tgi_err *err)
{
    const tgi_net_value *v = &k->plan->cut->one.net->values[of->value];
    const int n = v->ext.rank;
    const tgi_range z = n == 5 ? box->ax[2] : (tgi_range){0, 1}, y = box->ax[n - 2],
                    x = box->ax[n - 1];
    if (room_bytes < sizeof(float))
        return tgi_fail(err, TG_E_INTERNAL, "no room to look at what lies on disk");
    const int cb = tgi_kept_lanes(k->plan->cut->one.net, of->value);
    const int64_t blocks = tgi_ceil_div(v->c, cb), ny = v->ext.dim[n - 2],
                  nx = v->ext.dim[n - 1];
    for (int64_t i = z.lo; i < z.hi; i++)
        for (int64_t j = y.lo; j < y.hi; j++) {
            if (k->stop)
                TGI_TRY(k->stop(k->user, err));
            for (int64_t b = 0; b < blocks; b++) {
                uint64_t at =
                    of->at +
                    (uint64_t)((((i * ny + j) * blocks + b) * nx + x.lo) * cb) * sizeof(float);
                size_t left = (size_t)(tgi_range_len(x) * cb) * sizeof(float);
                while (left > 0) {
                    const size_t bytes = left < room_bytes / 4 * 4 ? left : room_bytes / 4 * 4;
                    TGI_TRY(tgi_file_pread(k->fd, k->path, room, bytes, k->front + at, err));
                    *sum += sum_of(room, bytes / sizeof(float), at);
                    at += bytes;
                    left -= bytes;
                }
            }
        }
    return TG_OK;
}
