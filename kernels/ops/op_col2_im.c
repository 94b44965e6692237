/* op_col2_im.c - Col2Im: patches laid over each other, [N,C*patch,places] to [N,C,image...]. Source 1
 * says the image's extents, source 2 those of a patch; places lie row by row, `strides` apart, and
 * begin `pads` outside; elements of a patch are `dilations` apart. What falls on a pixel is summed, in
 * float64, in the order of patches' elements.
 * Border: what lies outside is dropped; a pixel that no patch holds is 0.
 * @source ONNX operator Col2Im, version 18. */
#include "kernels/ops/op_shared.h"

#define MOST_AXES 3

typedef struct col2im_attrs {
    tgi_ints dilations, pads, strides;
} col2im_attrs;

static const tgi_attr rows[] = {
    {"dilations", TGI_ATTR_INTS, offsetof(col2im_attrs, dilations), 0, 0, 0, NULL,
     "between elements of a patch"},
    {"pads", TGI_ATTR_INTS, offsetof(col2im_attrs, pads), 0, 0, 0, NULL, "begins, then ends"},
    {"strides", TGI_ATTR_INTS, offsetof(col2im_attrs, strides), 0, 0, 0, NULL,
     "between patches"},
    {0}};

typedef struct fold {
    int axes;
    int64_t image[MOST_AXES], block[MOST_AXES], places[MOST_AXES];
    int64_t stride[MOST_AXES], dilation[MOST_AXES], pad[MOST_AXES];
    int64_t patch, all; /* elements of a patch; places */
} fold;

static tg_status list(const tgi_ints *given, const char *what, int n, int64_t fill,
                      int64_t least, int64_t *out, tgi_err *err)
{
    if (given->n >= 0 && given->n != n)
        return tgi_fail(err, TG_E_FORMAT, "%s has %d entries, expected %d", what, given->n, n);
    for (int k = 0; k < n; k++) {
        out[k] = given->n < 0 ? fill : given->v[k];
        if (out[k] < least || out[k] >= INT32_MAX)
            return tgi_fail(err, TG_E_FORMAT, "%s[%d] is %" PRId64, what, k, out[k]);
    }
    return TG_OK;
}

static tg_status axis_of(fold *f, int k, const int64_t *pads, tgi_err *err)
{
    const int64_t room =
        f->image[k] + pads[k] + pads[f->axes + k] - ((f->block[k] - 1) * f->dilation[k] + 1);
    if (room < 0)
        return tgi_fail(err, TG_E_FORMAT,
                        "a patch of %" PRId64 " does not fit an extent of %" PRId64,
                        f->block[k], f->image[k]);
    f->pad[k] = pads[k];
    f->places[k] = room / f->stride[k] + 1;
    if (!tgi_mul64_ok(f->patch, f->block[k], &f->patch) ||
        !tgi_mul64_ok(f->all, f->places[k], &f->all))
        return tgi_fail(err, TG_E_FORMAT, "too many patches");
    return TG_OK;
}

static tg_status fold_of(const tgi_op_ctx *ctx, fold *f, tgi_err *err)
{
    const col2im_attrs *a = ctx->attrs;
    tgi_ints image, block;
    int64_t pads[2 * MOST_AXES];
    TGI_TRY(tgi_const_ints(ctx, 1, "image_shape", &image, err));
    TGI_TRY(tgi_const_ints(ctx, 2, "block_shape", &block, err));
    if (image.n < 1 || image.n > MOST_AXES)
        return tgi_fail(err, TG_E_UNSUPPORTED, "an image of %d axes", image.n);
    *f = (fold){.axes = image.n, .patch = 1, .all = 1};
    TGI_TRY(list(&image, "image_shape", f->axes, 0, 1, f->image, err));
    TGI_TRY(list(&block, "block_shape", f->axes, 0, 1, f->block, err));
    TGI_TRY(list(&a->strides, "strides", f->axes, 1, 1, f->stride, err));
    TGI_TRY(list(&a->dilations, "dilations", f->axes, 1, 1, f->dilation, err));
    TGI_TRY(list(&a->pads, "pads", 2 * f->axes, 0, 0, pads, err));
    for (int k = 0; k < f->axes; k++)
        TGI_TRY(axis_of(f, k, pads, err));
    return TG_OK;
}

static tg_status infer(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err)
{
    const tgi_desc *d = &ctx->src[0];
    fold f;
    TGI_TRY(fold_of(ctx, &f, err));
    if (d->rank != 3)
        return tgi_fail(err, TG_E_FORMAT, "patches of rank %d, expected 3", d->rank);
    if (d->dim[1] % f.patch || d->dim[2] != f.all)
        return tgi_fail(err, TG_E_FORMAT,
                        "%" PRId64 " x %" PRId64
                        " numbers of patches, expected a multiple of %" PRId64 " x %" PRId64,
                        d->dim[1], d->dim[2], f.patch, f.all);
    *dst = (tgi_desc){d->dtype, 2 + f.axes, {d->dim[0], d->dim[1] / f.patch}};
    for (int k = 0; k < f.axes; k++)
        dst->dim[2 + k] = f.image[k];
    return TG_OK;
}

/* The place whose element `k` of a patch falls on pixel `at`; -1: there is none. */
static int64_t place_of(const fold *f, const int64_t *at, int64_t k)
{
    int64_t place = 0, part[MOST_AXES];
    for (int a = f->axes - 1; a >= 0; k /= f->block[a--])
        part[a] = k % f->block[a];
    for (int a = 0; a < f->axes; a++) {
        const int64_t from = at[a] + f->pad[a] - part[a] * f->dilation[a];
        if (from < 0 || from % f->stride[a] || from / f->stride[a] >= f->places[a])
            return -1;
        place = place * f->places[a] + from / f->stride[a];
    }
    return place;
}

static tg_status eval(const tgi_op_ctx *ctx, void *const *dst_data, tgi_err *err)
{
    fold f;
    int64_t at[TGI_MAX_RANK] = {0}, i = 0;
    TGI_TRY(fold_of(ctx, &f, err));
    if (tgi_dense_count(&ctx->dst[0]) == 0)
        return TG_OK;
    do {
        const int64_t first = (at[0] * ctx->dst[0].dim[1] + at[1]) * f.patch;
        double sum = 0;
        for (int64_t k = 0; k < f.patch; k++) {
            const int64_t place = place_of(&f, at + 2, k);
            if (place >= 0)
                sum += tgi_num_at(ctx->const_src[0], (first + k) * f.all + place);
        }
        tgi_num_put(ctx->dst[0].dtype, dst_data[0], i++, sum);
    } while (tgi_next_index(&ctx->dst[0], at));
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
