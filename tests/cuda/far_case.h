/* far_case.h - one operator on views of more than 2^31 elements, of which a few rows are there:
 * what is computed at their far end has the bits of the same numbers in small views.
 *
 * Memory is reserved and not touched: address space on the emulated device, an allocation on a
 * real one, where what does not fit is skipped and counted. Rows of an image lie as far apart
 * as brings the last ones behind `far_reach` elements; of a volume slabs do. */
#ifndef TG_FAR_CASE_H
#define TG_FAR_CASE_H

#include "engine/base/arith.h"
#include "kernels/ops/geometry.h"
#include "tests/cuda/device_run.h"
#include "tests/unit/op_case.h"

#include <inttypes.h>
#include <math.h>
#ifdef TG_TEST_EMULATED
#include <sys/mman.h>
#endif

#define FAR_VIEWS 8

static const tgi_device_ops *ops;
static tgi_device *device;
static int64_t far_reach; /* elements: far begins behind them */
static int far_runs, far_skipped;

/* ---- Memory ------------------------------------------------------------------------------ */

#ifdef TG_TEST_EMULATED
static int reserve(size_t bytes, void **at)
{
    *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
               -1, 0);
    if (*at == MAP_FAILED) {
        *at = NULL;
        return 0;
    }
    madvise(*at, bytes, MADV_NOHUGEPAGE);
    return 1;
}
static void give_back(void *at, size_t bytes)
{
    if (at)
        munmap(at, bytes);
}
/* Pieces of 8 elements, too, are more than 2^32 then. */
static void choose_reach(void)
{
    far_reach = (int64_t)1 << 36;
}
#else
static int reserve(size_t bytes, void **at)
{
    tgi_err err = {0};
    *at = NULL;
    return ops->alloc(device, bytes, at, &err) == TG_OK;
}
static void give_back(void *at, size_t bytes)
{
    (void)bytes;
    if (at)
        ops->release(device, at);
}
/* 2^32 elements where two such views of float32 fit, else 2^31. */
static void choose_reach(void)
{
    uint64_t free_bytes = 0, total = 0;
    tgi_err err = {0};
    CHECK_OK(ops->memory(device, &free_bytes, &total, &err), err);
    far_reach = (int64_t)1 << (free_bytes >> 30 >= 48 ? 32 : 31);
    printf("views of more than 2^%d elements\n", far_reach >> 32 ? 32 : 31);
}
#endif

static void *must(void *p)
{
    if (!p) {
        fprintf(stderr, "out of memory in a test\n");
        exit(1);
    }
    return p;
}

static void put(void *to, const void *from, size_t bytes)
{
    tgi_err err = {0};
    CHECK_OK(ops->upload(device, TGI_QUEUE_COMPUTE, to, from, bytes, &err), err);
    CHECK_OK(ops->sync(device, NULL, &err), err);
}

static void get(void *to, const void *from, size_t bytes)
{
    tgi_err err = {0};
    CHECK_OK(ops->download(device, TGI_QUEUE_COMPUTE, to, from, bytes, &err), err);
    CHECK_OK(ops->sync(device, NULL, &err), err);
}

/* Zeros everywhere: a real device's memory holds anything. */
static void clear(void *at, size_t bytes)
{
#ifdef TG_TEST_EMULATED
    (void)at, (void)bytes;
#else
    const size_t part = (size_t)64 << 20;
    void *zeros = must(tgi_calloc(TGI_TAG_MISC, part, 1));
    for (size_t done = 0; done < bytes; done += part)
        put((char *)at + done, zeros, bytes - done < part ? bytes - done : part);
    tgi_free(zeros);
#endif
}

/* A copy of n elements there, of as many bytes as a kernel may read. */
static void *sent(const void *from, size_t bytes)
{
    void *at = NULL;
    tgi_err err = {0};
    CHECK_OK(ops->alloc(device, bytes + 64, &at, &err), err);
    put(at, from, bytes);
    return at;
}

static tg_status run_step(const tgi_device_step *step, tgi_err *err)
{
    tgi_device_program *p = NULL;
    size_t bytes = 0;
    TGI_TRY(ops->program_open(device, TGI_QUEUE_COMPUTE, step, 1, &p, &bytes, err));
    tg_status st = ops->program_run(p, step, err);
    if (st == TG_OK)
        st = ops->sync(device, NULL, err);
    ops->program_close(&p);
    return st;
}

/* ---- Views ------------------------------------------------------------------------------- */

/* What is there of a view: a box of pixels, and their lanes row by row. */
typedef struct held {
    tgi_desc d; /* of the image */
    tgi_view v;
    tgi_box box;
    tg_dtype element;
    size_t bytes; /* reserved */
} held;

static int64_t box_len(const tgi_box *b, int axis)
{
    return tgi_range_len(tgi_box_axis(b, axis));
}

static size_t held_count(const held *h)
{
    return (size_t)(box_len(&h->box, TGI_Z) * box_len(&h->box, TGI_Y) *
                    box_len(&h->box, TGI_X) * h->v.cb);
}

/* Rows that lie `far_reach` apart over five sixths of them. */
static size_t far_pitch(int64_t rows, int64_t least)
{
    return (size_t)tgi_align_up(tgi_max(far_reach / (rows - rows / 6), least), 16);
}

/* `far`: all of the image has its place, from column 0 on; else the box alone. 0: no room. */
static int hold(held *h, const tgi_desc *d, int64_t channels, const tgi_box *box,
                tg_dtype element, int far)
{
    tgi_view *v = &h->v;
    *h = (held){.d = *d, .box = *box, .element = element};
    *v = (tgi_view){.c = channels, .cb = (int)tgi_whole_pixel(channels)};
    v->x0 = far ? 0 : tgi_box_axis(box, TGI_X).lo;
    v->width = far ? tgi_desc_axis(d, TGI_X) : box_len(box, TGI_X);
    v->y_ring = far ? tgi_desc_axis(d, TGI_Y) : box_len(box, TGI_Y);
    v->z_ring = far ? tgi_desc_axis(d, TGI_Z) : box_len(box, TGI_Z);
    const int64_t row = tgi_align_up(v->width * v->cb, 16);
    const int slabs = d->rank == 5;
    v->y_pitch = far && !slabs ? far_pitch(v->y_ring, row) : (size_t)row;
    v->z_pitch = v->y_pitch * (size_t)v->y_ring;
    if (far && slabs)
        v->z_pitch = far_pitch(v->z_ring, (int64_t)v->z_pitch);
    v->block_pitch = v->z_pitch * (size_t)v->z_ring;
    h->bytes = v->block_pitch * device_element_bytes(element) + 64;
    void *at;
    const int there = reserve(h->bytes, &at);
    v->base = at;
    if (!slabs)
        v->z_pitch = 0; /* as the engine says it */
    return there;
}

static void let_go(held *h)
{
    give_back(h->v.base, h->bytes);
    h->v.base = NULL;
}

/* The box's pixels between the view and a dense array of floats. */
static void move_pixels(const held *h, float *pixels, int in)
{
    const tgi_range rz = tgi_box_axis(&h->box, TGI_Z), ry = tgi_box_axis(&h->box, TGI_Y);
    const size_t n = (size_t)(box_len(&h->box, TGI_X) * h->v.cb);
    const size_t size = device_element_bytes(h->element);
    void *row = must(tgi_malloc(TGI_TAG_MISC, n * size));
    for (int64_t z = rz.lo; z < rz.hi; z++)
        for (int64_t y = ry.lo; y < ry.hi; y++, pixels += n) {
            const size_t at =
                (size_t)(z % h->v.z_ring) * h->v.z_pitch +
                (size_t)(y % h->v.y_ring) * h->v.y_pitch +
                (size_t)(tgi_box_axis(&h->box, TGI_X).lo - h->v.x0) * (size_t)h->v.cb;
            char *there = (char *)h->v.base + at * size;
            if (in) {
                device_to_elements(h->element, pixels, n, row);
                put(there, row, n * size);
            } else {
                get(row, there, n * size);
                device_from_elements(h->element, row, n, pixels);
            }
        }
    tgi_free(row);
}

/* A number of -1 to 1 that follows from how far from the image's last pixel it is: images of
 * other extents end alike. */
static float number_at(const held *h, uint64_t seed, int64_t z, int64_t y, int64_t x, int64_t c)
{
    uint64_t at = seed;
    at = at * 1000003 + (uint64_t)(tgi_desc_axis(&h->d, TGI_Z) - z);
    at = at * 1000003 + (uint64_t)(tgi_desc_axis(&h->d, TGI_Y) - y);
    at = at * 1000003 + (uint64_t)(tgi_desc_axis(&h->d, TGI_X) - x);
    at = (at * 1000003 + (uint64_t)c) * 0x9e3779b97f4a7c15ull;
    return (float)((double)(at >> 40) * 0x1p-23 - 1);
}

/* Such numbers, zeros in unused lanes. */
static void fill_numbers(const held *h, uint64_t seed)
{
    const tgi_range rz = tgi_box_axis(&h->box, TGI_Z), ry = tgi_box_axis(&h->box, TGI_Y),
                    rx = tgi_box_axis(&h->box, TGI_X);
    float *pixels = must(tgi_malloc(TGI_TAG_MISC, held_count(h) * sizeof *pixels));
    float *to = pixels;
    for (int64_t z = rz.lo; z < rz.hi; z++)
        for (int64_t y = ry.lo; y < ry.hi; y++)
            for (int64_t x = rx.lo; x < rx.hi; x++)
                for (int64_t c = 0; c < h->v.cb; c++)
                    *to++ = c < h->v.c ? number_at(h, seed, z, y, x, c) : 0.0f;
    move_pixels(h, pixels, 1);
    tgi_free(pixels);
}

static void fill_nan(const held *h)
{
    const size_t n = held_count(h);
    float *pixels = must(tgi_malloc(TGI_TAG_MISC, n * sizeof *pixels));
    for (size_t i = 0; i < n; i++)
        pixels[i] = NAN;
    move_pixels(h, pixels, 1);
    tgi_free(pixels);
}

/* ---- A node ------------------------------------------------------------------------------ */

typedef struct far_line {
    const char *symbol, *text; /* as in tests/cases, without what must hold */
    const char *variant;       /* that takes it */
    tg_dtype element;          /* TG_DTYPE_NONE: all three */
    unsigned kinds;            /* that are allowed */
    int capability;            /* whose code runs; 0: 8.0 */
    int64_t segs[4];           /* of source 0; 0: one */
    unsigned doubled;          /* bit s: segment s is read doubled */
    int add;                   /* 1: another image is added to the result */
    int whole;                 /* 1: all of the result, the source is small */
    int64_t tail;  /* rows of the source that are there, its last; 0: what is read */
    int wide;      /* 1: rows are long, too; more: that much shorter */
    unsigned last; /* blocks: of a whole image the emulated device runs these */
} far_line;

typedef struct far_node {
    op_node n;
    const tgi_kernel_set *be;
    const tgi_variant *v;
    tgi_layout_hint lay;
    tgi_epi_step epi[1];
    void *packed, *scratch; /* there */
    tgi_box box;
    int64_t most_rows; /* of a band; 0: those of the box */
    held view[FAR_VIEWS];
    int n_views;
    tgi_view seg[FAR_VIEWS], out[TGI_OP_MAX_DST];
    tgi_operand src[TGI_OP_MAX_SRC + 1];
    int first_out; /* view of output 0 */
} far_node;

static const tgi_op *op_of(const char *symbol)
{
    for (int i = 0; case_symbols[i]; i++)
        if (strcmp(case_symbols[i], symbol) == 0)
            return tgi_op_at(i);
    return NULL;
}

static int is_activation(const far_node *f, int i)
{
    return f->n.data[i] && !f->n.is_const[i];
}

/* Rows of about 2^29 elements at most: what 96 rows of `far_reach` have room for. */
static void widen(far_node *f, const far_line *l)
{
    tgi_desc *s = &f->n.src[0];
    const int x = s->rank - 1;
    const int64_t grows = tgi_ceil_div(f->n.dst[0].dim[x], s->dim[x]) *
                          tgi_ceil_div(f->n.dst[0].dim[x - 1], s->dim[x - 1]);
    const int64_t lanes =
        tgi_max(tgi_whole_pixel(s->dim[1]), tgi_whole_pixel(f->n.dst[0].dim[1]) * grows);
    tgi_err err = {0};
    for (int i = 0; i < f->n.ctx.n_src; i++)
        if (is_activation(f, i))
            f->n.src[i].dim[x] = far_reach / 96 / l->wide / lanes / 64 * 64;
    CHECK_OK(node_bind(&f->n, &err), err);
}

/* Rows at the end of the image, that begin at a multiple of what strides may be. */
static void choose_box(far_node *f, int whole)
{
    f->box = tgi_box_full(&f->n.dst[0]);
    for (int k = 2; k < f->box.rank && !whole; k++) {
        tgi_range *r = &f->box.ax[k];
        r->lo = tgi_max(r->hi - (k == f->box.rank - 1 ? 13 : 5), 0);
    }
}

static void lay_out(far_node *f, const far_line *l)
{
    f->lay = (tgi_layout_hint){
        .lanes = f->be->lanes, .n_src = f->n.ctx.n_src, .kinds = l->kinds, .epi = f->epi};
    for (int i = 0; i < f->n.ctx.n_src; i++) {
        if (!is_activation(f, i))
            continue;
        f->lay.src_segs[i] = 1;
        f->lay.seg_c[i][0] = f->n.src[i].dim[1];
        f->lay.src_cb[i] = (int)tgi_whole_pixel(f->n.src[i].dim[1]);
        for (int s = 0; i == 0 && s < 4 && l->segs[s]; s++) {
            f->lay.seg_c[0][s] = l->segs[s];
            f->lay.src_segs[0] = s + 1;
            f->lay.n_doubled += l->doubled >> s & 1;
        }
    }
    f->lay.dst_cb = (int)tgi_whole_pixel(f->n.dst[0].dim[1]);
    f->epi[0] = (tgi_epi_step){TGI_EPI_ADD, f->n.ctx.n_src, 0, 0, NULL};
    f->lay.n_epi = l->add;
}

/* The variant that the line names; NULL: it does not take the node. */
static const tgi_variant *named(const far_node *f, const char *name)
{
    for (const tgi_variant *const *v = f->be->variants; *v; v++)
        if (strcmp((*v)->name, name) == 0 && strcmp((*v)->op, f->n.op->name) == 0 &&
            (*v)->accepts(&f->n.ctx, &f->lay))
            return *v;
    return NULL;
}

static int pack(far_node *f)
{
    const tgi_variant *v = f->v;
    const size_t bytes = v->packed_bytes ? v->packed_bytes(&f->n.ctx, &f->lay) : 0;
    const size_t scratch =
        v->scratch_bytes
            ? v->scratch_bytes(&f->n.ctx, &f->lay, tgi_desc_axis(&f->n.dst[0], TGI_X), 1)
            : 0;
    void *packed = must(tgi_calloc(TGI_TAG_MISC, bytes + 1, 1));
    if (bytes)
        v->pack(&f->n.ctx, &f->lay, packed);
    f->packed = sent(packed, bytes);
    tgi_free(packed);
    void *zeros = must(tgi_calloc(TGI_TAG_MISC, scratch + 1, 1));
    f->scratch = sent(zeros, scratch);
    tgi_free(zeros);
    return 1;
}

static tgi_box need_of(const far_node *f, int i)
{
    tgi_box hull = {0};
    for (int k = 0; k < f->n.ctx.n_dst; k++) {
        const tgi_box b = box_of_output(&f->n, k, &f->box);
        tgi_box need;
        tgi_variant_need(f->v, f->n.op, &f->n.ctx, k, &b, i, &need);
        hull = k ? tgi_box_hull(&hull, &need) : need;
    }
    return tgi_box_clip(hull, &f->n.src[i]);
}

static int hold_operand(far_node *f, int i, const tgi_desc *full, const tgi_box *need,
                        const far_line *l, int far, uint64_t *seed)
{
    const int n = i < f->n.ctx.n_src ? f->lay.src_segs[i] : 1;
    f->src[i] = (tgi_operand){n, &f->seg[f->n_views]};
    for (int s = 0; s < n; s++) {
        const int64_t c = i < f->n.ctx.n_src ? f->lay.seg_c[i][s] : full->dim[1];
        tgi_desc d = *full;
        tgi_box box = *need;
        const int twice = i == 0 && l->doubled >> s & 1;
        for (int k = 2; twice && k < d.rank; k++) {
            d.dim[k] /= 2;
            box.ax[k] = (tgi_range){box.ax[k].lo / 2, (box.ax[k].hi + 1) / 2};
        }
        held *h = &f->view[f->n_views];
        if (l->tail)
            box.ax[2].lo = tgi_max(box.ax[2].lo, box.ax[2].hi - l->tail);
        if (!hold(h, &d, c, &box, f->be->element, far))
            return 0;
        if (l->tail)
            clear(h->v.base, h->bytes);
        fill_numbers(h, (*seed)++);
        f->seg[f->n_views] = h->v;
        f->seg[f->n_views++].doubled = twice;
    }
    return 1;
}

/* Sources with the numbers that belong to the seed, results of NaN. */
static int hold_all(far_node *f, const far_line *l, int far)
{
    uint64_t seed = 77;
    for (int i = 0; i < f->n.ctx.n_src; i++) {
        if (!is_activation(f, i))
            continue;
        const tgi_box need = need_of(f, i);
        if (!hold_operand(f, i, &f->n.src[i], &need, l, far, &seed))
            return 0;
    }
    if (l->add && !hold_operand(f, f->n.ctx.n_src, &f->n.dst[0], &f->box, l, far, &seed))
        return 0;
    f->first_out = f->n_views;
    for (int k = 0; k < f->n.ctx.n_dst; k++) {
        const tgi_box b = box_of_output(&f->n, k, &f->box);
        held *h = &f->view[f->n_views++];
        if (!hold(h, &f->n.dst[k], f->n.dst[k].dim[1], &b, f->be->element, far))
            return 0;
        fill_nan(h);
        f->out[k] = h->v;
    }
    return 1;
}

static void far_close(far_node *f)
{
    for (int i = 0; i < FAR_VIEWS; i++)
        let_go(&f->view[i]);
    if (f->packed)
        ops->release(device, f->packed);
    if (f->scratch)
        ops->release(device, f->scratch);
    node_close(&f->n);
}

/* "attributes | inputs" of an operator. 0: it does not parse. */
static int far_split(op_node *n, const char *symbol, const char *line)
{
    char text[256], *rest = text;
    uint64_t seed = 5;
    snprintf(text, sizeof text, "%s", line);
    case_where = line;
    char *attrs = strsep(&rest, "|"), *inputs = strsep(&rest, "|");
    return case_node(n, op_of(symbol), case_trim(attrs), inputs, &seed)
               ? 1
               : case_complain("does not parse");
}

/* The line's node, of `extents` (NULL: its own), laid out. 0: it does not parse. */
static int far_parse(far_node *f, const far_line *l, tg_dtype element, const int64_t *extents)
{
    tgi_err err = {0};
    memset(f, 0, sizeof *f);
    f->be = ops->backend(element);
    if (!far_split(&f->n, l->symbol, l->text))
        return 0;
    for (int i = 0; i < f->n.ctx.n_src; i++)
        for (int k = 0; extents && is_activation(f, i) && k < f->n.src[i].rank; k++)
            f->n.src[i].dim[k] = extents[k];
    CHECK_OK(node_bind(&f->n, &err), err);
    if (l->wide)
        widen(f, l);
    lay_out(f, l);
    return 1;
}

/* The same, ready to run; `rows` of its first spatial axis (0: its own). 0: no variant. */
static int far_open(far_node *f, const far_line *l, tg_dtype element, int64_t rows)
{
    int64_t extents[TGI_MAX_RANK];
    if (!far_parse(f, l, element, NULL))
        return 0;
    memcpy(extents, f->n.src[0].dim, sizeof extents);
    extents[2] = rows;
    if (rows) {
        node_close(&f->n);
        far_parse(f, l, element, extents);
    }
    f->v = named(f, l->variant);
    choose_box(f, l->whole);
    return f->v ? pack(f) : 0;
}

static tg_status far_run(far_node *f, tgi_err *err)
{
    tgi_device_step step = {.kind = TGI_STEP_NODE, .variant = f->v};
    step.call = (tgi_call){.ctx = &f->n.ctx,
                           .src = f->src,
                           .dst = f->out,
                           .box = f->box,
                           .epi = f->epi,
                           .n_epi = f->lay.n_epi,
                           .packed = f->packed,
                           .scratch = f->scratch};
    for (int k = 0; k < f->box.rank; k++)
        step.call.most[k] = tgi_range_len(f->box.ax[k]);
    if (f->most_rows)
        step.call.most[2] = f->most_rows;
    return run_step(&step, err);
}

/* All results as floats. */
static float *far_results(const far_node *f, size_t *n)
{
    *n = 0;
    for (int k = 0; k < f->n.ctx.n_dst; k++)
        *n += held_count(&f->view[f->first_out + k]);
    float *all = must(tgi_malloc(TGI_TAG_MISC, (*n + 1) * sizeof *all));
    float *at = all;
    for (int k = 0; k < f->n.ctx.n_dst; k++) {
        move_pixels(&f->view[f->first_out + k], at, 0);
        at += held_count(&f->view[f->first_out + k]);
    }
    return all;
}

/* What is near is all of it, or its end. */
static void far_compare(const far_node *near, const far_node *far)
{
    size_t n, n_far, off = 0, nans = 0, zeros = 0;
    float *want = far_results(near, &n), *got = far_results(far, &n_far);
    CHECK(n_far >= n);
    for (size_t i = 0; i < n && n_far >= n; i++) {
        off += memcmp(&want[i], &got[n_far - n + i], sizeof *got) != 0;
        nans += isnan(want[i]) != 0;
        zeros += want[i] == 0;
    }
    tg_checks++;
    if (off || nans || zeros == n) {
        fprintf(stderr, "%s on %s: of %zu numbers %zu differ, near %zu are NaN, %zu are 0\n",
                far->v->name, far->be->name, n, off, nans, zeros);
        case_complain("is not the same far away");
    }
    tgi_free(want);
    tgi_free(got);
}

/* 0: not on this device. */
static int far_offered(const far_line *l, tg_dtype element)
{
    device_generation(l->capability ? l->capability : 80);
    if (ops->backend(element) && device_has(element) &&
        !(l->kinds & ~(device_kinds() | TGI_KIND_LIBRARY)))
        return 1;
    printf("not on this device: %s of %s\n", l->variant, tgi_dtype_name(element));
    far_skipped++;
    return 0;
}

/* Two nodes that are open are run, and what they end with compared. `lie_far`: the second one's
 * views. */
static void far_check_two(far_node *near, far_node *far, const far_line *l, int lie_far)
{
    tgi_err err = {0};
    if (!hold_all(near, l, 0) || !hold_all(far, l, lie_far)) {
        printf("no room for %s in %s\n", l->text, near->be->name);
        far_skipped++;
        return;
    }
    CHECK_OK(far_run(near, &err), err);
    CHECK_OK(far_run(far, &err), err);
    far_compare(near, far);
    far_runs++;
}

/* One line in one type: near, and far with `rows` (0: as many). */
static void far_check(const far_line *l, tg_dtype element, int64_t rows)
{
    static far_node near, far;
    if (!far_offered(l, element))
        return;
    memset(&far, 0, sizeof far);
    tg_checks++;
    if (far_open(&near, l, element, 0) && far_open(&far, l, element, rows))
        far_check_two(&near, &far, l, 1);
    else
        case_complain("nobody takes it");
    far_close(&near);
    far_close(&far);
}

/* The end of the line's result, and all of one of `rows`. */
static void whole_check(const far_line *l, tg_dtype element, int64_t rows)
{
    static far_node near, all;
    if (!far_offered(l, element))
        return;
    memset(&all, 0, sizeof all);
    tg_checks++;
    if (far_open(&near, l, element, 0) && far_open(&all, l, element, rows)) {
        all.box = tgi_box_full(&all.n.dst[0]);
        device_blocks(l->last);
        far_check_two(&near, &all, l, 0);
        device_blocks(0);
    } else {
        case_complain("nobody takes it");
    }
    far_close(&near);
    far_close(&all);
}

/* The last blocks of a band that has all rows, of which the box is but the end: in views that
 * hold the rows of the box alone, as rings, nothing changes. */
static void behind_check(const far_line *l, tg_dtype element, int64_t rows)
{
    static far_node f;
    tgi_err err = {0};
    size_t n = 0;
    if (!far_offered(l, element))
        return;
    tg_checks++;
    if (far_open(&f, l, element, rows) && hold_all(&f, l, 0)) {
        CHECK_OK(far_run(&f, &err), err);
        float *want = far_results(&f, &n);
        f.most_rows = f.n.dst[0].dim[2];
        device_blocks(64);
        CHECK_OK(far_run(&f, &err), err);
        device_blocks(0);
        float *got = far_results(&f, &n);
        if (memcmp(want, got, n * sizeof *got) != 0)
            case_complain("writes where it has nothing to");
        tgi_free(want);
        tgi_free(got);
    } else {
        case_complain("nobody takes it");
    }
    far_close(&f);
}

#endif
