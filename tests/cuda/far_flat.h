/* far_flat.h - a node over whole arrays of more than 2^31 elements. Every array of the small
 * node is the last corner of the one in the large node: coordinate i of an axis lies at i plus
 * what the axis has more there. Only corners are there; of the large node the emulated device
 * runs the last blocks of each grid, a real one all. */
#ifndef TG_FAR_FLAT_H
#define TG_FAR_FLAT_H

#include "tests/cuda/far_case.h"

typedef struct flat_line {
    const char *symbol, *text; /* the small node, as in tests/cases */
    const char *variant;
    unsigned kinds;
    tg_dtype element;         /* TG_DTYPE_NONE: all three */
    int axis[TGI_OP_MAX_SRC]; /* of each activation, 1 + the one that grows; 0: none does */
    int image;                /* 1: source 0 is an image */
} flat_line;

typedef struct flat_node {
    op_node n;
    const tgi_kernel_set *be;
    const tgi_variant *v;
    tgi_layout_hint lay;
    void *packed, *scratch;
    size_t scratch_bytes;
    held image; /* source 0, where it is one */
    void *src[TGI_OP_MAX_SRC], *dst[TGI_OP_MAX_DST];
    size_t src_bytes[TGI_OP_MAX_SRC], dst_bytes[TGI_OP_MAX_DST];
} flat_node;

/* ---- Corners ----------------------------------------------------------------------------- */

static int64_t desc_count(const tgi_desc *d)
{
    int64_t n = 0;
    return tgi_desc_count(d, &n) ? n : 0;
}

/* Element i of the small array in the large one. */
static int64_t corner(const tgi_desc *small, const tgi_desc *large, int64_t i)
{
    int64_t at = 0, stride = 1;
    for (int k = small->rank - 1; k >= 0; k--) {
        at += (i % small->dim[k] + large->dim[k] - small->dim[k]) * stride;
        stride *= large->dim[k];
        i /= small->dim[k];
    }
    return at;
}

/* The small array's numbers between `dense` and where they are there. */
static void move_corner(const tgi_desc *small, const tgi_desc *large, tg_dtype element,
                        void *there, float *dense, int in)
{
    const size_t size = device_element_bytes(element);
    const int64_t n = desc_count(small);
    char row[4 * 64];
    for (int64_t i = 0, k; i < n; i += k) { /* runs that are neighbours there */
        const int64_t at = corner(small, large, i);
        for (k = 1; k < 64 && i + k < n && corner(small, large, i + k) == at + k;)
            k++;
        char *const p = (char *)there + (size_t)at * size;
        if (in) {
            device_to_elements(element, dense + i, (size_t)k, row);
            put(p, row, (size_t)k * size);
        } else {
            get(row, p, (size_t)k * size);
            device_from_elements(element, row, (size_t)k, dense + i);
        }
    }
}

/* ---- Nodes ------------------------------------------------------------------------------- */

/* Elements that arrays have: in vectors of 16 bytes, too, more than 2^31; and whole rounds of
 * 2^20 blocks, so the last ones are computed by a grid's last. */
static int64_t flat_reach(void)
{
#ifdef TG_TEST_EMULATED
    return (int64_t)1 << 35;
#else
    return far_reach + far_reach / 4;
#endif
}

static int flat_parse(flat_node *f, const flat_line *l, tg_dtype element, int large)
{
    tgi_err err = {0};
    memset(f, 0, sizeof *f);
    f->be = ops->backend(element);
    if (!far_split(&f->n, l->symbol, l->text))
        return 0;
    int64_t extent = 0; /* the first that grows says how far */
    for (int i = 0; i < f->n.ctx.n_src && large; i++) {
        tgi_desc *d = &f->n.src[i];
        const int k = l->axis[i] - 1;
        if (k < 0 || !f->n.data[i] || f->n.is_const[i])
            continue;
        extent = extent ? extent : flat_reach() / (desc_count(d) / d->dim[k]);
        d->dim[k] = extent;
    }
    CHECK_OK(node_bind(&f->n, &err), err);
    return 1;
}

static int flat_pick(flat_node *f, const flat_line *l)
{
    tgi_op_ctx *c = &f->n.ctx;
    f->lay = (tgi_layout_hint){
        .lanes = f->be->lanes, .flat = 1, .kinds = l->kinds, .n_src = c->n_src};
    c->flat_dst = (1u << c->n_dst) - 1u;
    for (int i = 0; i < c->n_src; i++) {
        if (!f->n.data[i] || f->n.is_const[i])
            continue;
        const int image = i == 0 && l->image;
        c->flat_src |= image ? 0 : 1u << i;
        f->lay.src_segs[i] = 1;
        f->lay.seg_c[i][0] = image ? f->n.src[i].dim[1] : 1;
    }
    for (const tgi_variant *const *v = f->be->variants; *v && !f->v; v++)
        if (strcmp((*v)->name, l->variant) == 0 && strcmp((*v)->op, f->n.op->name) == 0 &&
            (*v)->flat && (*v)->accepts(c, &f->lay))
            f->v = *v;
    return f->v != NULL;
}

static int flat_pack(flat_node *f, const flat_line *l)
{
    const size_t bytes = f->v->packed_bytes ? f->v->packed_bytes(&f->n.ctx, &f->lay) : 0;
    void *packed = must(tgi_calloc(TGI_TAG_MISC, bytes + 1, 1));
    if (bytes)
        f->v->pack(&f->n.ctx, &f->lay, packed);
    f->packed = sent(packed, bytes);
    tgi_free(packed);
    f->scratch_bytes = f->v->scratch_bytes ? f->v->scratch_bytes(&f->n.ctx, &f->lay, 0, 1) : 0;
    if (l->image) /* its dense copy comes first */
        f->scratch_bytes += tgi_align_size(
            (size_t)desc_count(&f->n.src[0]) * device_element_bytes(f->be->element), 64);
    return reserve(f->scratch_bytes + 64, &f->scratch);
}

/* Sources get the corner that `small` has as its data, results NaN there. */
static int flat_hold(flat_node *f, const flat_node *small, const flat_line *l)
{
    const size_t size = device_element_bytes(f->be->element);
    for (int i = 0; i < f->n.ctx.n_src; i++) {
        const tgi_desc *d = &f->n.src[i];
        if (!f->n.data[i] || f->n.is_const[i])
            continue;
        if (i == 0 && l->image) {
            tgi_box box = tgi_box_full(d);
            for (int k = 2; k < d->rank; k++)
                box.ax[k].lo = d->dim[k] - small->n.src[0].dim[k];
            if (!hold(&f->image, d, d->dim[1], &box, f->be->element, 1))
                return 0;
            fill_numbers(&f->image, 9);
            continue;
        }
        f->src_bytes[i] = (size_t)desc_count(d) * size + 64;
        if (!reserve(f->src_bytes[i], &f->src[i]))
            return 0;
        move_corner(&small->n.src[i], d, f->be->element, f->src[i], small->n.data[i], 1);
    }
    for (int k = 0; k < f->n.ctx.n_dst; k++) {
        const tgi_desc *d = &f->n.dst[k];
        f->dst_bytes[k] = (size_t)desc_count(d) * size + 64;
        if (!reserve(f->dst_bytes[k], &f->dst[k]))
            return 0;
        float *nans = must(tgi_malloc(TGI_TAG_MISC, (size_t)(desc_count(&small->n.dst[k]) + 1) *
                                                        sizeof *nans));
        for (int64_t i = 0; i < desc_count(&small->n.dst[k]); i++)
            nans[i] = NAN;
        move_corner(&small->n.dst[k], d, f->be->element, f->dst[k], nans, 1);
        tgi_free(nans);
    }
    return 1;
}

static tgi_view flat_view(void *base, const tgi_desc *d)
{
    tgi_view v = {.base = base, .c = 1, .cb = 1, .y_ring = 1, .z_ring = 1};
    v.width = desc_count(d);
    v.y_pitch = v.z_pitch = v.block_pitch = (size_t)v.width;
    return v;
}

static tg_status flat_run(flat_node *f, tgi_err *err)
{
    tgi_view in[TGI_OP_MAX_SRC], out[TGI_OP_MAX_DST];
    tgi_operand src[TGI_OP_MAX_SRC] = {{0}};
    tgi_box boxes[TGI_OP_MAX_DST];
    for (int i = 0; i < f->n.ctx.n_src; i++) {
        if (!f->src[i] && !(i == 0 && f->image.v.base))
            continue;
        in[i] = f->src[i] ? flat_view(f->src[i], &f->n.src[i]) : f->image.v;
        src[i] = (tgi_operand){1, &in[i]};
    }
    for (int k = 0; k < f->n.ctx.n_dst; k++) {
        out[k] = flat_view(f->dst[k], &f->n.dst[k]);
        boxes[k] = (tgi_box){.rank = 4, .ax = {{0, 1}, {0, 1}, {0, 1}, {0, out[k].width}}};
    }
    tgi_device_step step = {.kind = TGI_STEP_NODE, .variant = f->v};
    step.call = (tgi_call){.ctx = &f->n.ctx,
                           .src = src,
                           .dst = out,
                           .box = boxes[0],
                           .boxes = boxes,
                           .packed = f->packed,
                           .scratch = f->scratch};
    for (int k = 0; k < 4; k++)
        step.call.most[k] = tgi_range_len(boxes[0].ax[k]);
    return run_step(&step, err);
}

static void flat_close(flat_node *f)
{
    let_go(&f->image);
    for (int i = 0; i < TGI_OP_MAX_SRC; i++)
        give_back(f->src[i], f->src_bytes[i]);
    for (int k = 0; k < TGI_OP_MAX_DST; k++)
        give_back(f->dst[k], f->dst_bytes[k]);
    give_back(f->scratch, f->scratch_bytes + 64);
    if (f->packed)
        ops->release(device, f->packed);
    node_close(&f->n);
}

/* ---- Checks ------------------------------------------------------------------------------ */

static void flat_compare(const flat_node *near, const flat_node *far)
{
    for (int k = 0; k < near->n.ctx.n_dst; k++) {
        const tgi_desc *d = &near->n.dst[k];
        const int64_t n = desc_count(d);
        int64_t off = 0, nans = 0, zeros = 0;
        float *want = must(tgi_malloc(TGI_TAG_MISC, (size_t)(n + 1) * sizeof *want));
        float *got = must(tgi_malloc(TGI_TAG_MISC, (size_t)(n + 1) * sizeof *got));
        move_corner(d, d, near->be->element, near->dst[k], want, 0);
        move_corner(d, &far->n.dst[k], far->be->element, far->dst[k], got, 0);
        for (int64_t i = 0; i < n; i++) {
            off += memcmp(&want[i], &got[i], sizeof *got) != 0;
            nans += isnan(want[i]) != 0;
            zeros += want[i] == 0;
        }
        tg_checks++;
        if (off || nans || zeros == n) {
            fprintf(stderr,
                    "%s on %s: of %" PRId64 " numbers %" PRId64 " differ, near %" PRId64
                    " are NaN, %" PRId64 " are 0\n",
                    far->v->name, far->be->name, n, off, nans, zeros);
            case_complain("is not the same far away");
        }
        tgi_free(want);
        tgi_free(got);
    }
}

static void flat_check(const flat_line *l, tg_dtype element)
{
    static flat_node near, far;
    tgi_err err = {0};
    memset(&far, 0, sizeof far);
    tg_checks++;
    if (!flat_parse(&near, l, element, 0) || !flat_parse(&far, l, element, 1) ||
        !flat_pick(&near, l) || !flat_pick(&far, l)) {
        case_complain("nobody takes it");
    } else if (!flat_pack(&near, l) || !flat_pack(&far, l) || !flat_hold(&near, &near, l) ||
               !flat_hold(&far, &near, l)) {
        printf("no room for %s in %s\n", l->text, near.be->name);
        far_skipped++;
    } else {
        CHECK_OK(flat_run(&near, &err), err);
        device_blocks(2);
        CHECK_OK(flat_run(&far, &err), err);
        device_blocks(0);
        flat_compare(&near, &far);
        far_runs++;
    }
    flat_close(&near);
    flat_close(&far);
}

#endif
