/* tensor_copy.c - elements between mapped arrays, in any order of axes, and views. */
#include "engine/base/arith.h"
#include "engine/job/tensors.h"
#include "kernels/pixels.h"

#include <string.h>

void tgi_tensor_strides(const tg_port *p, const tg_desc *file, int rank, int64_t *stride)
{
    int64_t step[TG_MAX_RANK] = {0}, n = 1;
    for (int i = file->rank - 1; i >= 0; i--) {
        step[i] = n;
        n *= file->dim[i];
    }
    for (int a = 0; a < rank; a++)
        stride[a] = p->perm[a] >= 0 ? step[p->perm[a]] : 0;
}

static void box_zyx(const tg_box *b, tg_range r[3])
{
    r[0] = b->rank == 5 ? b->ax[2] : (tg_range){0, 1};
    r[1] = b->ax[b->rank - 2];
    r[2] = b->ax[b->rank - 1];
}

static int64_t element(const int64_t *stride, int rank, int64_t c, int64_t z, int64_t y,
                       int64_t x)
{
    return c * stride[1] + (rank == 5 ? z * stride[2] : 0) + y * stride[rank - 2] +
           x * stride[rank - 1];
}

/* Offset of element k, in row-major order, of a value of shape d. */
static int64_t flat_element(const tg_desc *d, const int64_t *stride, int64_t k)
{
    int64_t at = 0;
    for (int a = d->rank - 1; a >= 0; k /= d->dim[a--])
        at += k % d->dim[a] * stride[a];
    return at;
}

static void load_flat(const tgi_npy_map *m, const tg_desc *d, const int64_t *stride,
                      int64_t first, const tg_view *view)
{
    int64_t n = 0;
    tgi_desc_count(d, &n);
    for (int64_t k = 0; k < n; k++) {
        const int64_t at = first + flat_element(d, stride, k);
        tgi_pixels_load(m->desc.dtype,
                        (const char *)m->data + (size_t)at * tgi_dtype_size(m->desc.dtype), 1,
                        1.0f, 0.0f, view->base + k, 1);
    }
}

void tgi_tensor_load(const tg_job *job, int i, int64_t sample, const tg_view *view,
                     const tg_box *box)
{
    const struct tg_tensors *t = job->tensors;
    const tgi_npy_map *m = &t->in[i];
    const tg_desc *d = &t->in_desc[i];
    int64_t stride[TG_MAX_RANK] = {0};
    tg_range q[3];
    tgi_tensor_strides(&job->graph->in[i], &m->desc, d->rank, stride);
    if (!tgi_is_image(job->graph, d)) {
        load_flat(m, d, stride, sample * stride[0], view);
        return;
    }
    box_zyx(box, q);
    const size_t size = tgi_dtype_size(m->desc.dtype);
    const int64_t sx = stride[d->rank - 1];
    for (int64_t c = 0; c < tgi_view_blocks(view) * view->cb; c++)
        for (int64_t z = q[0].lo; z < q[0].hi; z++)
            for (int64_t y = q[1].lo; y < q[1].hi; y++) {
                float *dst = tgi_view_at(view, c, z, y, q[2].lo);
                const int64_t at =
                    sample * stride[0] + element(stride, d->rank, c, z, y, q[2].lo);
                const char *src = (const char *)m->data + (size_t)at * size;
                for (int64_t x = 0; x < tgi_range_len(q[2]); x++)
                    if (c >= view->c)
                        dst[x * view->cb] = 0;
                    else
                        tgi_pixels_load(m->desc.dtype, src + (size_t)(x * sx) * size, 1, 1.0f,
                                        0.0f, dst + x * view->cb, 1);
            }
}

/* A flat value is there as a whole; every cell that ends in it has the same. */
static void store_flat(const tg_tensor_out *o, const tg_desc *d, char *data, int64_t first,
                       const tg_view *view)
{
    const size_t size = tgi_dtype_size(d->dtype);
    const char *src = (const char *)view->base;
    int64_t n = 0;
    tgi_desc_count(d, &n);
    for (int64_t k = 0; k < n; k++) {
        const int64_t at = first + flat_element(d, o->stride, k);
        memcpy(data + (size_t)at * size, src + (size_t)k * size, size);
    }
}

void tgi_tensor_store(const tg_job *job, int o, int64_t sample, const tg_affine *map,
                      const tg_view *view, const tg_box *box)
{
    const tg_tensor_out *t = &job->tensors->out[o];
    const tg_net *net = job->plan.net;
    const tg_desc *d = &net->shapes.desc[net->out[o]];
    const int64_t first = sample * t->sample_stride;
    char *data = t->map + t->head_bytes;
    tg_range q[3];
    if (net->values[net->out[o]].flat) {
        store_flat(t, d, data, first, view);
        return;
    }
    box_zyx(box, q);
    const int r = d->rank;
    /* In views a bool is 0 or 1, an integer itself. */
    const tg_dtype type = t->file.dtype == TG_DTYPE_BOOL ? TG_DTYPE_U8 : t->file.dtype;
    const int64_t z0 = r == 5 ? t->keep[2].lo : 0, y0 = t->keep[r - 2].lo,
                  x0 = t->keep[r - 1].lo;
    for (int64_t c = 0; c < view->c; c++)
        for (int64_t z = q[0].lo; z < q[0].hi; z++)
            for (int64_t y = q[1].lo; y < q[1].hi; y++) {
                const int64_t at =
                    first + element(t->stride, r, c, z - z0, y - y0, q[2].lo - x0);
                tgi_pixels_store(type, tgi_view_at(view, c, z, y, q[2].lo), view->cb,
                                 tgi_range_len(q[2]), (float)map->mul, (float)map->add,
                                 data + (size_t)at * tgi_dtype_size(type), t->stride[r - 1]);
            }
}
