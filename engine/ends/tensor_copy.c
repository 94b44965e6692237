/* tensor_copy.c - elements between arrays in files, in any order of axes, and views. */
#include "engine/base/arith.h"
#include "engine/ends/tensors.h"
#include "kernels/pixels.h"

#include <stdint.h>
#include <string.h>

enum { C, Z, Y, X, AXES }; /* of a box of an image */

void tgi_tensor_strides(const tgi_port *p, const tgi_tensor_in *in, int rank, int64_t *stride)
{
    for (int a = 0; a < rank; a++)
        stride[a] = p->perm[a] >= 0 ? in->step[p->perm[a]] : 0;
}

static int is_status(tg_status st)
{
    switch ((int)st) {
#define CASE(name, value, sentence) case value:
        TG_STATUS_LIST(CASE)
#undef CASE
        return 1;
    default:
        return 0;
    }
}

/* What a program's function answered, asked about n elements. A number that is no status is a
 * failure all the same. */
static tg_status answer_of(tg_status st, const char *what, const char *port, int64_t element,
                           int64_t n, tgi_err *err)
{
    if (st == TG_OK)
        return TG_OK;
    const tg_status known = is_status(st) ? st : TG_E_IO;
    (void)tgi_fail(
        err, known,
        "the function of the %s \"%.100s\" answered %s (%d), asked for %lld elements "
        "from %lld on",
        what, port, tg_status_name(st), (int)st, (long long)n, (long long)element);
    return tgi_err_tried(err, known, TGI_CALLER_ASKS, 0);
}

static tg_status take_from_memory(const tgi_tensor_in *in, int64_t element, void *dst,
                                  int64_t n, tgi_err *err)
{
    const tg_array *a = &in->now;
    const size_t size = tgi_dtype_size(a->dtype);
    if (!a->data)
        return answer_of(a->move(a->user, element, n, dst), "source", in->port, element, n,
                         err);
    memcpy(dst, (const char *)a->data + (size_t)element * size, (size_t)n * size);
    return TG_OK;
}

static tg_status give_to_memory(const tgi_tensor_out *out, int64_t element, const void *src,
                                int64_t n, tgi_err *err)
{
    const tg_array *a = &out->now;
    const size_t size = tgi_dtype_size(a->dtype);
    if (!a->data) /* of a sink it is only read */
        return answer_of(a->move(a->user, element, n, (void *)(uintptr_t)src), "sink",
                         out->port, element, n, err);
    char *to = (char *)a->data + (size_t)element * size;
    if (to != src)
        memcpy(to, src, (size_t)n * size);
    return TG_OK;
}

/* Where n elements are, read into `rows` unless they lie in memory. */
static tg_status look_at(const tgi_tensor_in *in, int64_t element, void *rows, int64_t n,
                         const char **at, tgi_err *err)
{
    *at = rows;
    if (!in->lent || !in->now.data)
        return tgi_tensor_read(in, element, rows, n, err);
    *at = (const char *)in->now.data + (size_t)element * tgi_dtype_size(in->now.dtype);
    return TG_OK;
}

/* Where elements may be put together, before they are written: at their place in memory. */
static char *room_for(const tgi_tensor_out *out, int64_t element, void *rows)
{
    return out->lent && out->now.data
               ? (char *)out->now.data + (size_t)element * tgi_dtype_size(out->now.dtype)
               : rows;
}

tg_status tgi_tensor_read(const tgi_tensor_in *in, int64_t element, void *dst, int64_t n,
                          tgi_err *err)
{
    const size_t size = tgi_dtype_size(in->desc.dtype);
    if (in->lent)
        return take_from_memory(in, element, dst, n, err);
    const tg_status st =
        tgi_rfile_read(&in->npy.file, in->npy.head.data_off + (uint64_t)element * size, dst,
                       (size_t)n * size, err);
    if (st != TG_OK)
        tgi_err_prefix(err, "%s", in->path);
    return st;
}

tg_status tgi_tensor_write(tgi_tensor_out *out, int64_t element, const void *src, int64_t n,
                           tgi_err *err)
{
    const size_t size = tgi_dtype_size(out->file.dtype);
    if (out->dropped)
        return TG_OK;
    if (out->lent)
        return give_to_memory(out, element, src, n, err);
    return tgi_npy_write(&out->npy, (uint64_t)element * size, src, (size_t)n * size, err);
}

static void box_zyx(const tgi_box *b, tgi_range r[3])
{
    r[0] = b->rank == 5 ? b->ax[2] : (tgi_range){0, 1};
    r[1] = b->ax[b->rank - 2];
    r[2] = b->ax[b->rank - 1];
}

/* A box of an image in a file whose axes have these strides; *first counts from the sample. */
static tgi_file_box image_box(const int64_t *stride, int rank, int64_t channels,
                              const tgi_range q[3], const int64_t origin[3], int64_t *first)
{
    const tgi_file_box b = {
        .rank = AXES,
        .n = {channels, tgi_range_len(q[0]), tgi_range_len(q[1]), tgi_range_len(q[2])},
        .step = {stride[1], rank == 5 ? stride[2] : 0, stride[rank - 2], stride[rank - 1]}};
    *first = 0;
    for (int i = 0; i < 3; i++)
        *first += (q[i].lo - origin[i]) * b.step[Z + i];
    return b;
}

/* A value that is no image: all of it, in the order of the graph. */
static tgi_file_box flat_box(const tgi_desc *d, const int64_t *stride)
{
    tgi_file_box b = {.rank = d->rank};
    for (int a = 0; a < d->rank; a++) {
        b.n[a] = d->dim[a];
        b.step[a] = stride[a];
    }
    return b;
}

/* Element `k` of a piece in row-major order: where it lies behind the piece's first in the
 * file, and in the value. */
static void flat_place(const tgi_desc *d, const tgi_file_box *b, const tgi_file_piece *p,
                       int64_t k, int64_t *in_file, int64_t *in_value)
{
    int64_t step = 1;
    *in_file = *in_value = 0;
    for (int a = d->rank - 1; a >= 0; step *= d->dim[a], k /= p->n[a], a--) {
        *in_file += k % p->n[a] * b->step[a];
        *in_value += (p->lo[a] + k % p->n[a]) * step;
    }
}

static int64_t count_of(const tgi_file_piece *p, int rank)
{
    int64_t n = 1;
    for (int a = 0; a < rank; a++)
        n *= p->n[a];
    return n;
}

/* ---- In ---------------------------------------------------------------------------------- */

static tg_status load_flat(const tgi_tensor_in *in, const tgi_desc *d, const int64_t *stride,
                           int64_t first, const tgi_view *view, void *rows, tgi_err *err)
{
    const size_t size = tgi_dtype_size(in->desc.dtype);
    const tgi_file_box box = flat_box(d, stride);
    tgi_file_walk w;
    tgi_file_piece p;
    tgi_file_walk_begin(&w, &box, (int64_t)(TGI_TENSOR_ROWS / size), TGI_FILE_NEAR, NULL);
    const char *from;
    while (tgi_file_walk_next(&w, &p)) {
        TGI_TRY(look_at(in, first + p.first, rows, p.span, &from, err));
        for (int64_t k = 0, at, to; k < count_of(&p, d->rank); k++) {
            flat_place(d, &box, &p, k, &at, &to);
            tgi_pixels_load(in->desc.dtype, from + (size_t)at * size, 1, 1.0f, 0.0f,
                            view->base + to, 1);
        }
    }
    return TG_OK;
}

/* One piece of an image into the view; `q` is the box it is of. */
static void load_piece(tg_dtype type, const tgi_file_box *box, const tgi_file_piece *p,
                       const tgi_range q[3], const char *src, const tgi_view *view)
{
    const size_t size = tgi_dtype_size(type);
    for (int64_t c = 0; c < p->n[C]; c++)
        for (int64_t z = 0; z < p->n[Z]; z++)
            for (int64_t y = 0; y < p->n[Y]; y++) {
                const char *from =
                    src +
                    (size_t)(c * box->step[C] + z * box->step[Z] + y * box->step[Y]) * size;
                float *dst = tgi_view_at(view, p->lo[C] + c, q[0].lo + p->lo[Z] + z,
                                         q[1].lo + p->lo[Y] + y, q[2].lo + p->lo[X]);
                if (box->step[X] == 1)
                    tgi_pixels_load(type, from, p->n[X], 1.0f, 0.0f, dst, view->cb);
                else
                    for (int64_t x = 0; x < p->n[X]; x++)
                        tgi_pixels_load(type, from + (size_t)(x * box->step[X]) * size, 1, 1.0f,
                                        0.0f, dst + x * view->cb, 1);
            }
}

/* Lanes beyond the last channel are zero. */
static void clear_lanes(const tgi_view *view, const tgi_range q[3])
{
    for (int64_t c = view->c; c < tgi_view_blocks(view) * view->cb; c++)
        for (int64_t z = q[0].lo; z < q[0].hi; z++)
            for (int64_t y = q[1].lo; y < q[1].hi; y++) {
                float *dst = tgi_view_at(view, c, z, y, q[2].lo);
                for (int64_t x = 0; x < tgi_range_len(q[2]); x++)
                    dst[x * view->cb] = 0;
            }
}

tg_status tgi_tensor_load(const tgi_tensors *all, int i, int64_t sample, const tgi_view *view,
                          const tgi_box *box, void *rows, tgi_err *err)
{
    static const int64_t zero[3];
    const tgi_tensor_in *in = &all->in[i];
    const tgi_desc *d = &all->in_desc[i];
    int64_t stride[TGI_MAX_RANK] = {0}, first;
    tgi_range q[3];
    tgi_tensor_strides(&all->set.graph->in[i], in, d->rank, stride);
    if (!tgi_is_image(all->set.graph, d))
        return load_flat(in, d, stride, sample * stride[0], view, rows, err);
    box_zyx(box, q);
    const tgi_file_box b = image_box(stride, d->rank, view->c, q, zero, &first);
    tgi_file_walk w;
    tgi_file_piece p;
    const char *from;
    const int64_t room = (int64_t)(TGI_TENSOR_ROWS / tgi_dtype_size(in->desc.dtype));
    tgi_file_walk_begin(&w, &b, room, TGI_FILE_NEAR, NULL);
    while (tgi_file_walk_next(&w, &p)) {
        TGI_TRY(look_at(in, sample * stride[0] + first + p.first, rows, p.span, &from, err));
        load_piece(in->desc.dtype, &b, &p, q, from, view);
    }
    clear_lanes(view, q);
    return TG_OK;
}

/* ---- Out --------------------------------------------------------------------------------- */

/* A flat value is there as a whole; every cell that ends in it has the same. */
static tg_status store_flat(tgi_tensor_out *t, const tgi_desc *d, int64_t first,
                            const tgi_view *view, char *rows, tgi_err *err)
{
    const size_t size = tgi_dtype_size(d->dtype);
    const char *src = (const char *)view->base;
    const tgi_file_box box = flat_box(d, t->stride);
    tgi_file_walk w;
    tgi_file_piece p;
    tgi_file_walk_begin(&w, &box, (int64_t)(TGI_TENSOR_ROWS / size), TGI_FILE_DENSE, NULL);
    while (tgi_file_walk_next(&w, &p)) {
        char *put = room_for(t, first + p.first, rows);
        for (int64_t k = 0, to, at; k < count_of(&p, d->rank); k++) {
            flat_place(d, &box, &p, k, &to, &at);
            memcpy(put + (size_t)to * size, src + (size_t)at * size, size);
        }
        TGI_TRY(tgi_tensor_write(t, first + p.first, put, p.span, err));
    }
    return TG_OK;
}

static void store_piece(tg_dtype type, const tgi_file_box *box, const tgi_file_piece *p,
                        const tgi_range q[3], const tgi_affine *map, const tgi_view *view,
                        char *dst)
{
    const size_t size = tgi_dtype_size(type);
    for (int64_t c = 0; c < p->n[C]; c++)
        for (int64_t z = 0; z < p->n[Z]; z++)
            for (int64_t y = 0; y < p->n[Y]; y++) {
                const float *from = tgi_view_at(view, p->lo[C] + c, q[0].lo + p->lo[Z] + z,
                                                q[1].lo + p->lo[Y] + y, q[2].lo + p->lo[X]);
                char *to =
                    dst +
                    (size_t)(c * box->step[C] + z * box->step[Z] + y * box->step[Y]) * size;
                tgi_pixels_store(type, from, view->cb, p->n[X], (float)map->mul,
                                 (float)map->add, to, box->step[X]);
            }
}

tg_status tgi_tensor_store(tgi_tensors *all, int o, int64_t sample, const tgi_affine *map,
                           const tgi_view *view, const tgi_box *box, void *rows, tgi_err *err)
{
    tgi_tensor_out *t = &all->out[o];
    const tgi_net *net = all->stage->net;
    const tgi_desc *d = &net->shapes.desc[net->out[o]];
    const int r = d->rank;
    int64_t first = sample * t->sample_stride, corner;
    tgi_range q[3];
    if (t->dropped)
        return TG_OK;
    if (net->values[net->out[o]].flat)
        return store_flat(t, d, first, view, rows, err);
    box_zyx(box, q);
    for (int i = 0; i < 3; i++) { /* a stage may compute more of it than is wanted */
        if (r - 3 + i >= TGI_STREAM_AXIS)
            q[i] = tgi_range_clip(q[i], t->keep[r - 3 + i].lo, t->keep[r - 3 + i].hi);
        if (tgi_range_empty(q[i]))
            return TG_OK;
    }
    /* In views a bool is 0 or 1, an integer itself. */
    const tg_dtype type = t->file.dtype == TG_DTYPE_BOOL ? TG_DTYPE_U8 : t->file.dtype;
    const int64_t origin[3] = {r == 5 ? t->keep[2].lo : 0, t->keep[r - 2].lo,
                               t->keep[r - 1].lo};
    const tgi_file_box b = image_box(t->stride, r, view->c, q, origin, &corner);
    tgi_file_walk w;
    tgi_file_piece p;
    tgi_file_walk_begin(&w, &b, (int64_t)(TGI_TENSOR_ROWS / tgi_dtype_size(type)),
                        TGI_FILE_DENSE, NULL);
    while (tgi_file_walk_next(&w, &p)) {
        char *put = room_for(t, first + corner + p.first, rows);
        store_piece(type, &b, &p, q, map, view, put);
        TGI_TRY(tgi_tensor_write(t, first + corner + p.first, put, p.span, err));
    }
    return TG_OK;
}
