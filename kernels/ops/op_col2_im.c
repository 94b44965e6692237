/* op_col2_im.c - Col2Im: blocks of an image, each a column of source 0, are added where they came
 * from. Source 0 is [N, C * block, blocks], sources 1 and 2 are the extents of the image and of a
 * block; blocks and their pixels are counted row by row. On dense tensors with 1 to 3 spatial axes;
 * each pixel is summed in float64, pixels of the block in order.
 * Border: what lies in the padding is dropped.
 * @source ONNX operator Col2Im, version 18. */
#include "kernels/ops/op_shared.h"

typedef struct col2im_attrs {
    tgi_ints dilations, pads, strides;
} col2im_attrs;

#define AT(field) offsetof(col2im_attrs, field)
static const tgi_attr rows[] = {
    {"dilations", TGI_ATTR_INTS, AT(dilations), 0, 0, 0, NULL, "distance of a block's pixels"},
    {"pads", TGI_ATTR_INTS, AT(pads), 0, 0, 0, NULL, "begins, then ends"},
    {"strides", TGI_ATTR_INTS, AT(strides), 0, 0, 0, NULL, "distance of blocks"},
    {0}};

#define MOST_AXES 3

/* Spatial axes: extents of the image and of a block, its dilation, stride and leading pad, and the
 * number of blocks. */
typedef struct layout {
    int axes;
    int64_t image[MOST_AXES], block[MOST_AXES], d[MOST_AXES], s[MOST_AXES], p[MOST_AXES],
        n[MOST_AXES];
    int64_t pixels, blocks; /* of a block; in all */
} layout;

static int64_t entry(const tgi_ints *list, int k, int64_t other)
{
    return list->n < 0 ? other : list->v[k];
}

static tg_status axis(const col2im_attrs *a, layout *l, int k, tgi_err *err)
{
    const int64_t most = 1 << 24, end = entry(&a->pads, l->axes + k, 0);
    l->d[k] = entry(&a->dilations, k, 1);
    l->s[k] = entry(&a->strides, k, 1);
    l->p[k] = entry(&a->pads, k, 0);
    const int64_t of[] = {l->image[k], l->block[k], l->d[k], l->s[k], l->p[k] + 1, end + 1};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        if (of[i] < 1 || of[i] > most)
            return tgi_fail(err, TG_E_FORMAT,
                            "image, block, dilations, strides or pads of axis %d: %" PRId64, k,
                            of[i]);
    const int64_t room = l->image[k] + l->p[k] + end - ((l->block[k] - 1) * l->d[k] + 1);
    if (room < 0)
        return tgi_fail(err, TG_E_FORMAT,
                        "a block of %" PRId64 " does not fit an extent of %" PRId64,
                        l->block[k], l->image[k]);
    l->n[k] = room / l->s[k] + 1;
    return tgi_mul64_ok(l->pixels, l->block[k], &l->pixels) &&
                   tgi_mul64_ok(l->blocks, l->n[k], &l->blocks)
               ? TG_OK
               : tgi_fail(err, TG_E_FORMAT, "the number of blocks overflows");
}

static tg_status lay_out(const tgi_op_ctx *ctx, layout *l, tgi_err *err)
{
    const col2im_attrs *a = ctx->attrs;
    tgi_ints image, block;
    TGI_TRY(tgi_const_ints(ctx, 1, "image_shape", &image, err));
    TGI_TRY(tgi_const_ints(ctx, 2, "block_shape", &block, err));
    *l = (layout){.axes = image.n, .pixels = 1, .blocks = 1};
    if (image.n < 1 || block.n != image.n ||
        (a->dilations.n >= 0 && a->dilations.n != image.n) ||
        (a->strides.n >= 0 && a->strides.n != image.n) ||
        (a->pads.n >= 0 && a->pads.n != 2 * image.n))
        return tgi_fail(err, TG_E_FORMAT,
                        "block_shape, dilations, strides or pads of %d spatial axes", image.n);
    if (image.n > MOST_AXES)
        return tgi_fail(err, TG_E_UNSUPPORTED, "%d spatial axes: done here for %d at most",
                        image.n, MOST_AXES);
    for (int k = 0; k < l->axes; k++) {
        l->image[k] = image.v[k];
        l->block[k] = block.v[k];
        TGI_TRY(axis(a, l, k, err));
    }
    return TG_OK;
}

static tg_status infer(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err)
{
    layout l;
    if (!tgi_given(ctx, 0) || ctx->src[0].rank != 3)
        return tgi_fail(err, TG_E_FORMAT, "data that are not [N, C * block, blocks]");
    TGI_TRY(lay_out(ctx, &l, err));
    const int64_t *dim = ctx->src[0].dim;
    if (dim[1] % l.pixels || dim[2] != l.blocks)
        return tgi_fail(err, TG_E_FORMAT,
                        "data of %" PRId64 " by %" PRId64 ", expected channels of %" PRId64
                        " by %" PRId64,
                        dim[1], dim[2], l.pixels, l.blocks);
    *dst = (tgi_desc){ctx->src[0].dtype, l.axes + 2, {dim[0], dim[1] / l.pixels}};
    for (int k = 0; k < l.axes; k++)
        dst->dim[2 + k] = l.image[k];
    return TG_OK;
}

/* The block of which pixel k is at `at`: 0, there is none. */
static int block_at(const layout *l, const int64_t *at, int64_t k, int64_t *block)
{
    int64_t pixel[MOST_AXES];
    for (int i = l->axes - 1; i >= 0; k /= l->block[i--])
        pixel[i] = k % l->block[i];
    *block = 0;
    for (int i = 0; i < l->axes; i++) {
        const int64_t from = at[i] + l->p[i] - pixel[i] * l->d[i];
        if (from < 0 || from % l->s[i] || from / l->s[i] >= l->n[i])
            return 0;
        *block = *block * l->n[i] + from / l->s[i];
    }
    return 1;
}

static tg_status eval(const tgi_op_ctx *ctx, void *const *dst_data, tgi_err *err)
{
    const tgi_desc *d = &ctx->dst[0];
    int64_t at[TGI_MAX_RANK] = {0}, n = 0, block;
    layout l;
    TGI_TRY(lay_out(ctx, &l, err));
    if (tgi_dense_count(d) == 0)
        return TG_OK;
    do {
        const int64_t first = (at[0] * d->dim[1] + at[1]) * l.pixels;
        double sum = 0;
        for (int64_t k = 0; k < l.pixels; k++)
            if (block_at(&l, at + 2, k, &block))
                sum += tgi_num_at(ctx->const_src[0], (first + k) * l.blocks + block);
        tgi_num_put(d->dtype, dst_data[0], n++, sum);
    } while (tgi_next_index(d, at));
    return TG_OK;
}

const tgi_op tgi_op_col2_im = {
    .name = "Col2Im",
    .op_class = TGI_OP_DENSE,
    .attrs = rows,
    .attrs_size = sizeof(col2im_attrs),
    .infer = infer,
    .eval = eval,
};
