/* tensor_rows.c - moves rows between array files and pinned memory, in the form the device
 * takes. */
#include "engine/ends/tensor_rows.h"

#include "engine/base/ahead.h"
#include "engine/base/arith.h"
#include "engine/base/clock.h"
#include "engine/base/mem.h"

#include <string.h>

/* ---- How elements lie -------------------------------------------------------------------- */

/* An array in a file, and the staged box of it. */
typedef struct rows {
    size_t size; /* of an element */
    int rank;
    const tgi_desc *d;       /* in the graph's order */
    const int64_t *stride;   /* elements, per axis of the graph */
    const tgi_range *origin; /* of the file, per axis: its first element's place; NULL: zeros */
    int64_t first;           /* element of the sample */
    int flat;
    int64_t channels, together;
    tgi_range z, y, x;
} rows;

/* Channels lie side by side behind x: as the model declares it, before there is a file. */
static int64_t together_of(const tgi_port *p, const tgi_desc *d)
{
    const int x = p->perm[d->rank - 1], c = p->perm[1];
    return c >= 0 && c == p->file_rank - 1 && x == c - 1 ? d->dim[1] : 1;
}

static void set_box(rows *r, const tgi_box *b)
{
    r->z = b->rank == 5 ? b->ax[2] : (tgi_range){0, 1};
    r->y = b->ax[b->rank - 2];
    r->x = b->ax[b->rank - 1];
}

/* Of input i: `stride` has room for all axes. */
static rows rows_in(const tgi_tensors *all, int i, int64_t sample, int64_t *stride)
{
    const tgi_graph *g = all->set.graph;
    const tgi_desc *d = &all->in_desc[i];
    const int flat = !tgi_is_image(g, d);
    tgi_tensor_strides(&g->in[i], &all->in[i], d->rank, stride);
    return (rows){.size = tgi_dtype_size(all->in[i].desc.dtype),
                  .rank = d->rank,
                  .d = d,
                  .stride = stride,
                  .first = sample * stride[0],
                  .flat = flat,
                  .channels = flat ? 1 : d->dim[1],
                  .together = flat ? 1 : together_of(&g->in[i], d)};
}

static rows rows_out(const tgi_tensors *all, int o, const tgi_device_port *p, int64_t sample)
{
    const tgi_net *net = all->stage->net;
    const tgi_tensor_out *t = &all->out[o];
    return (rows){.size = tgi_dtype_size(t->file.dtype),
                  .rank = net->shapes.desc[net->out[o]].rank,
                  .d = &net->shapes.desc[net->out[o]],
                  .stride = t->stride,
                  .origin = t->keep,
                  .first = sample * t->sample_stride,
                  .flat = net->values[net->out[o]].flat,
                  .channels = p->channels,
                  .together = p->together};
}

/* ---- Rows -------------------------------------------------------------------------------- */

/* A box of a file, and where the same elements lie in staged memory. */
typedef struct copying {
    tgi_file_box box;
    int64_t step[TGI_MAX_RANK]; /* in memory */
    int64_t first;              /* element of the file */
    size_t size;
    const tgi_tensor_in *in; /* one of both */
    tgi_tensor_out *out;
    char *staged, *rows;
} copying;

/* Rows of an image: slab, plane, row, pixels with what lies together. */
static void image_copy(const rows *r, copying *j)
{
    enum { C, Z, Y, X };
    const int64_t nz = tgi_range_len(r->z), ny = tgi_range_len(r->y), nx = tgi_range_len(r->x);
    const int64_t plane = ny * nx * r->together;
    const int n = r->rank;
    const int64_t lo[3] = {r->z.lo - (r->origin && n == 5 ? r->origin[2].lo : 0),
                           r->y.lo - (r->origin ? r->origin[n - 2].lo : 0),
                           r->x.lo - (r->origin ? r->origin[n - 1].lo : 0)};
    j->box = (tgi_file_box){
        4,
        {r->channels, nz, ny, nx},
        {r->stride[1], n == 5 ? r->stride[2] : 0, r->stride[n - 2], r->stride[n - 1]}};
    j->step[C] = r->together > 1 ? 1 : plane;
    j->step[Z] = r->channels / r->together * plane;
    j->step[Y] = nx * r->together;
    j->step[X] = r->together;
    j->first = r->first;
    for (int i = 0; i < 3; i++)
        j->first += lo[i] * j->box.step[Z + i];
}

/* A value that is no image: elements in the order of the graph. */
static void flat_copy(const rows *r, copying *j)
{
    int64_t step = 1;
    j->box = (tgi_file_box){.rank = r->d->rank};
    for (int a = r->d->rank - 1; a >= 0; step *= r->d->dim[a--]) {
        j->box.n[a] = r->d->dim[a];
        j->box.step[a] = r->stride[a];
        j->step[a] = step;
    }
    j->first = r->first;
}

/* Element k, in row-major order, of a piece: where it lies behind the piece's first. */
static void place_of(const copying *j, const tgi_file_piece *p, int64_t k, size_t *in_file,
                     size_t *in_memory)
{
    int64_t file = 0, memory = 0;
    for (int a = j->box.rank - 1; a >= 0; k /= p->n[a], a--) {
        file += k % p->n[a] * j->box.step[a];
        memory += (p->lo[a] + k % p->n[a]) * j->step[a];
    }
    *in_file = (size_t)file * j->size;
    *in_memory = (size_t)memory * j->size;
}

/* Elements that lie in memory in another order than in the file go through `rows`. */
static tg_status copy_turned(const copying *j, tgi_err *err)
{
    tgi_file_walk w;
    tgi_file_piece p;
    tgi_file_walk_begin(&w, &j->box, (int64_t)(TGI_TENSOR_ROWS / j->size),
                        j->in ? TGI_FILE_NEAR : TGI_FILE_DENSE, NULL);
    while (tgi_file_walk_next(&w, &p)) {
        int64_t n = 1;
        size_t file, memory;
        for (int a = 0; a < j->box.rank; a++)
            n *= p.n[a];
        if (j->in)
            TGI_TRY(tgi_tensor_read(j->in, j->first + p.first, j->rows, p.span, err));
        for (int64_t k = 0; k < n; k++) {
            place_of(j, &p, k, &file, &memory);
            if (j->in)
                memcpy(j->staged + memory, j->rows + file, j->size);
            else
                memcpy(j->rows + file, j->staged + memory, j->size);
        }
        if (j->out)
            TGI_TRY(tgi_tensor_write(j->out, j->first + p.first, j->rows, p.span, err));
    }
    return TG_OK;
}

/* Elements that lie in memory as in the file, row by row at least: straight to their place. */
static tg_status copy_rows(const copying *j, tgi_err *err)
{
    tgi_file_walk w;
    tgi_file_piece p;
    tgi_file_walk_begin(&w, &j->box, INT64_MAX / 4, TGI_FILE_DENSE, j->step);
    while (tgi_file_walk_next(&w, &p)) {
        size_t file, memory;
        place_of(j, &p, 0, &file, &memory);
        if (j->in)
            TGI_TRY(
                tgi_tensor_read(j->in, j->first + p.first, j->staged + memory, p.span, err));
        else
            TGI_TRY(
                tgi_tensor_write(j->out, j->first + p.first, j->staged + memory, p.span, err));
    }
    return TG_OK;
}

/* Does the file's innermost axis lie the same way in memory? */
static int in_rows(const copying *j)
{
    int inner = -1;
    for (int a = 0; a < j->box.rank; a++)
        if (j->box.n[a] > 1 && (inner < 0 || j->box.step[a] < j->box.step[inner]))
            inner = a;
    return inner < 0 || (j->box.step[inner] == 1 && j->step[inner] == 1);
}

static tg_status copy_box(const rows *r, copying *j, tgi_err *err)
{
    int64_t all = 0;
    j->size = r->size;
    if (!r->flat)
        image_copy(r, j);
    else if (tgi_desc_count(r->d, &all) && r->x.lo == 0 && r->x.hi == all)
        flat_copy(r, j);
    else
        return tgi_fail(err, TG_E_INTERNAL, "a part of %lld elements that are no image",
                        (long long)all);
    return in_rows(j) ? copy_rows(j, err) : copy_turned(j, err);
}

static int64_t n_rows(const rows *r)
{
    return tgi_range_len(r->z) * (r->channels / r->together) * tgi_range_len(r->y);
}

tg_status tgi_tensor_take(tgi_tensors *all, int o, const tgi_device_port *form, int64_t sample,
                          const tgi_box *box, const void *pixels, void *buffer, tgi_err *err)
{
    rows r = rows_out(all, o, form, sample);
    set_box(&r, box);
    /* Staged elements are only read: one struct serves both directions. */
    copying j = {.out = &all->out[o], .staged = (char *)(uintptr_t)pixels, .rows = buffer};
    return copy_box(&r, &j, err);
}

/* ---- Sizes ------------------------------------------------------------------------------- */

/* Elements of input i that a band loads at most. */
static size_t band_elements(const tgi_tiling *t, int i)
{
    const tgi_net *net = t->net;
    const int v = net->in[i];
    const tgi_slot *s = &t->slot[v];
    const int64_t across = tgi_max(1, s->rows);
    const int64_t columns = tgi_min(s->width, tgi_net_dim(net, v, net->rank - 1));
    return tgi_sat_mul(tgi_sat_mul((size_t)net->values[v].c, (size_t)tgi_max(1, s->fed)),
                       tgi_sat_mul((size_t)across, (size_t)tgi_max(1, columns)));
}

static size_t input_bytes(const tgi_tensors *all, const tgi_tiling *t, int i)
{
    return tgi_align_size(
        tgi_sat_mul(band_elements(t, i), tgi_dtype_size(all->in[i].desc.dtype)), 64);
}

void tgi_tensor_form(const tgi_tensors *all, const tgi_tiling *t, tgi_device_form *out)
{
    const tgi_net *net = t->net;
    memset(out, 0, sizeof *out);
    for (int i = 0; i < net->n_in && !all->set.map; i++)
        out->in[i] =
            (tgi_device_port){.type = all->in[i].desc.dtype, .bytes = input_bytes(all, t, i)};
    for (int o = 0; o < net->n_out; o++) {
        const tgi_desc *d = &net->shapes.desc[net->out[o]];
        const tg_dtype type = tgi_tensor_out_type(all, o, d);
        const int plain = net->values[net->out[o]].flat || tgi_tensor_makes_image(all, o, d);
        out->out[o] =
            (tgi_device_port){.type = type == TG_DTYPE_BOOL ? TG_DTYPE_U8 : type, /* 0 or 1 */
                              .channels = net->values[net->out[o]].c,
                              .together = plain ? 1 : together_of(&all->set.graph->out[o], d)};
    }
}

size_t tgi_tensor_band_bytes(const tgi_tensors *all, const tgi_tiling *t)
{
    size_t bytes = 0;
    for (int i = 0; i < t->net->n_in; i++)
        bytes = tgi_sat_add(bytes, input_bytes(all, t, i));
    return bytes;
}

/* ---- Reading ahead ----------------------------------------------------------------------- */

/* A box of an input in one of its two places. */
typedef struct staged {
    int valid;
    int64_t sample;
    tgi_box box;
} staged;

struct tgi_tensor_reader {
    const tgi_tensors *all;
    int n_in;
    char *place[TGI_MAX_PORTS][2], *rows;
    staged slot[TGI_MAX_PORTS][2];
    int next[TGI_MAX_PORTS]; /* the place that the next box goes to */
    int64_t sample;          /* asked for: */
    tgi_box box[TGI_MAX_PORTS];
    tgi_ahead ahead;
    double waited;
};

static tg_status stage(tgi_tensor_reader *r, int i, int64_t sample, const tgi_box *box,
                       tgi_err *err)
{
    int64_t stride[TGI_MAX_RANK] = {0};
    const int k = r->next[i];
    rows from = rows_in(r->all, i, sample, stride);
    set_box(&from, box);
    r->slot[i][k].valid = 0;
    copying j = {.in = &r->all->in[i], .staged = r->place[i][k], .rows = r->rows};
    TGI_TRY(copy_box(&from, &j, err));
    r->slot[i][k] = (staged){1, sample, *box};
    return TG_OK;
}

static void stage_all(void *user)
{
    tgi_tensor_reader *r = user;
    for (int i = 0; i < r->n_in; i++) {
        tgi_err later = {0}; /* who wants these rows reads them again, and is told */
        if (!tgi_box_empty(&r->box[i]))
            (void)stage(r, i, r->sample, &r->box[i], &later);
    }
}

tg_status tgi_tensor_reader_open(const tgi_tensors *all, const tgi_tiling *t,
                                 void *const staging[2], void *buffer, tgi_tensor_reader **out,
                                 tgi_err *err)
{
    tgi_tensor_reader *r = tgi_calloc(TGI_TAG_IO, 1, sizeof *r);
    if (!r)
        return tgi_fail(err, TG_E_NOMEM, "no memory for the reader");
    r->all = all;
    r->rows = buffer;
    r->n_in = t->net->n_in;
    size_t at = 0;
    for (int i = 0; i < r->n_in; at += input_bytes(all, t, i++))
        for (int k = 0; k < 2; k++)
            r->place[i][k] = (char *)staging[k] + at;
    const tg_status st = tgi_ahead_open(&r->ahead, stage_all, r, err);
    if (st != TG_OK)
        tgi_tensor_reader_close(&r);
    *out = r;
    return st;
}

void tgi_tensor_reader_close(tgi_tensor_reader **rp)
{
    if (!rp || !*rp)
        return;
    tgi_ahead_close(&(*rp)->ahead);
    tgi_free(*rp);
    *rp = NULL;
}

void tgi_tensor_reader_ask(tgi_tensor_reader *r, int64_t sample, const tgi_box *box)
{
    for (int i = 0; i < r->n_in; i++) /* a program's function is called on the job's thread */
        if (r->all->in[i].lent && !r->all->in[i].now.data)
            return;
    if (!tgi_ahead_free(&r->ahead))
        return;
    r->sample = sample;
    memcpy(r->box, box, (size_t)r->n_in * sizeof *box);
    tgi_ahead_ask(&r->ahead);
}

tg_status tgi_tensor_reader_get(tgi_tensor_reader *r, int64_t sample, int i, const tgi_box *box,
                                tgi_device_pixels *out, const void **at, size_t *bytes,
                                tgi_err *err)
{
    int64_t stride[TGI_MAX_RANK] = {0};
    const double t0 = tgi_seconds();
    (void)tgi_ahead_take(&r->ahead);
    const int k = r->next[i];
    const staged *s = &r->slot[i][k];
    if (!s->valid || s->sample != sample || !tgi_box_equal(&s->box, box))
        TGI_TRY(stage(r, i, sample, box, err));
    r->slot[i][k].valid = 0; /* sent; what lies there is next but one's place */
    r->next[i] = !k;
    r->waited += tgi_seconds() - t0;
    const tgi_desc *d = &r->all->in_desc[i];
    rows from = rows_in(r->all, i, sample, stride);
    set_box(&from, box);
    *out = (tgi_device_pixels){.type = r->all->in[i].desc.dtype,
                               .channels = from.channels,
                               .together = from.together,
                               .rows = from.y,
                               .cols = from.x,
                               .extent = {1, 1, from.x.hi},
                               .pad = TGI_LOAD_ZERO,
                               .mul = 1};
    if (!from.flat) {
        out->extent[0] = d->rank == 5 ? d->dim[2] : 1;
        out->extent[1] = d->dim[d->rank - 2];
        out->extent[2] = d->dim[d->rank - 1];
    }
    *at = r->place[i][k];
    *bytes = (size_t)(n_rows(&from) * tgi_range_len(from.x) * from.together) * from.size;
    return TG_OK;
}

double tgi_tensor_reader_waited(const tgi_tensor_reader *r)
{
    return r->waited;
}
