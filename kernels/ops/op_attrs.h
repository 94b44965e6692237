/* op_attrs.h - attribute structs of the operators that tuned kernels read too.
 *
 * The op's own source lists the rows (tgi_attr) that fill its struct; a kernel gets the same
 * struct through tgi_op_ctx.attrs. Enums are indices into the `choices` of the row: the order
 * here is the order there. */
#ifndef TGI_OP_ATTRS_H
#define TGI_OP_ATTRS_H

#include "engine/base/attrs.h"

/* auto_pad: choices NOTSET, SAME_UPPER, SAME_LOWER, VALID. */
typedef enum tgi_auto_pad {
    TGI_PAD_NOTSET,
    TGI_PAD_SAME_UPPER,
    TGI_PAD_SAME_LOWER,
    TGI_PAD_VALID
} tgi_auto_pad;

/* Conv and ConvTranspose. Lists with n < 0 were not given; read them through ops/geometry.h. */
typedef struct conv_attrs {
    tgi_ints kernel_shape, strides, pads, dilations;
    tgi_ints output_padding, output_shape; /* ConvTranspose only */
    int64_t group;
    int auto_pad; /* tgi_auto_pad */
} conv_attrs;

/* MaxPool, AveragePool (Global*Pool have no attributes). */
typedef struct pool_attrs {
    tgi_ints kernel_shape, strides, pads, dilations;
    int64_t ceil_mode, count_include_pad, storage_order;
    int auto_pad; /* tgi_auto_pad */
} pool_attrs;

/* Resize, and Upsample lowered to it. */
typedef enum tgi_resize_mode {
    TGI_RESIZE_NEAREST,
    TGI_RESIZE_LINEAR,
    TGI_RESIZE_CUBIC
} tgi_resize_mode; /* choices nearest, linear, cubic */
typedef enum tgi_resize_coord {
    TGI_COORD_HALF_PIXEL,
    TGI_COORD_ASYMMETRIC,
    TGI_COORD_ALIGN_CORNERS,
    TGI_COORD_PYTORCH_HALF_PIXEL,
    TGI_COORD_HALF_PIXEL_SYMMETRIC,
    TGI_COORD_TF_CROP_AND_RESIZE,
    TGI_COORD_TF_HALF_PIXEL_FOR_NN
} tgi_resize_coord; /* choices half_pixel, asymmetric, align_corners, pytorch_half_pixel,
                      half_pixel_symmetric, tf_crop_and_resize, tf_half_pixel_for_nn */
typedef enum tgi_resize_nearest {
    TGI_NEAREST_ROUND_PREFER_FLOOR,
    TGI_NEAREST_ROUND_PREFER_CEIL,
    TGI_NEAREST_FLOOR,
    TGI_NEAREST_CEIL
} tgi_resize_nearest; /* choices round_prefer_floor, round_prefer_ceil, floor, ceil */

typedef struct resize_attrs {
    int mode, coord, nearest; /* the enums above */
    float cubic_coeff_a, extrapolation_value;
    int64_t exclude_outside, antialias;
    tgi_ints axes;
    int keep_aspect_ratio_policy; /* choices stretch, not_larger, not_smaller */
    tgi_floats scales;     /* Upsample-7 attribute; else src[2] (src[1] before opset 11) */
    int64_t opset10_rules; /* 1: Upsample and Resize-10: asymmetric, floor */
} resize_attrs;

/* DepthToSpace: mode choices DCR, CRD. SpaceToDepth uses blocksize only. */
typedef struct d2s_attrs {
    int64_t blocksize;
    int mode; /* 0: DCR, 1: CRD */
} d2s_attrs;

/* Slice before opset 10; later lists are src[1] to src[4]. */
typedef struct slice_attrs {
    tgi_ints axes, ends, starts;
} slice_attrs;

/* LeakyRelu, Elu, HardSigmoid, ...: the scalars of a pointwise op. */
typedef struct alpha_attrs {
    float alpha, beta;
} alpha_attrs;

/* Clip before opset 11; later bounds are src[1], src[2]. */
typedef struct clip_attrs {
    float min, max;
} clip_attrs;

typedef struct axis_attrs { /* Concat, Split, Softmax, ... */
    int64_t axis;
} axis_attrs;

typedef struct pad_attrs {
    int mode;      /* tgi_padding */
    tgi_ints pads; /* these two before opset 11; later src[1], src[2] */
    float value;
} pad_attrs;

typedef struct channel_norm_attrs {
    float epsilon;
    int64_t centred;
} channel_norm_attrs;

/* PixelAttention. */
typedef struct attention_attrs {
    int64_t heads;
    float scale; /* of products of queries with keys */
} attention_attrs;

/* CorrelationLookup. */
typedef struct lookup_attrs {
    int64_t radius;
} lookup_attrs;

/* DeformConv. */
typedef struct deform_attrs {
    conv_attrs conv; /* first: what tgi_conv_geometry reads */
    int64_t offset_group;
} deform_attrs;

/* FlowWarp: mode choices bilinear, nearest. */
typedef struct warp_attrs {
    int mode; /* 0: bilinear, 1: nearest */
} warp_attrs;

/* ConvexUpsample. */
typedef struct convex_attrs {
    int64_t scale;
} convex_attrs;

/* FoldBias. */
typedef struct fold_attrs {
    int64_t kernel, stride, pad, mean;
} fold_attrs;

/* WindowAttention. */
typedef struct window_attrs {
    int64_t frames, heads, window_h, window_w;
    int64_t asked; /* frames with queries, the first ones; 0: all */
    int64_t first; /* frame with keys of masked windows; every other one behind it */
    float scale;   /* of products of queries with keys */
} window_attrs;

/* Frames with queries. */
static inline int64_t tgi_window_asked(const window_attrs *a)
{
    return a->asked ? a->asked : a->frames;
}

typedef struct instance_norm_attrs {
    float epsilon;
} instance_norm_attrs;

/* Unary operators of family_unary.c; which field an attribute fills, its rows there say. */
typedef struct unary_attrs {
    float a, b;
    int64_t low, high;
    int mode;
} unary_attrs;

typedef struct lp_pool_attrs {
    pool_attrs pool; /* first: what tgi_pool_geometry reads */
    int64_t p;
} lp_pool_attrs;

typedef struct lp_norm_attrs {
    int64_t axis, p;
} lp_norm_attrs;

typedef struct lrn_attrs {
    float alpha, beta, bias;
    int64_t size;
} lrn_attrs;

typedef struct arg_attrs { /* ArgMax, ArgMin */
    int64_t axis, keepdims, last;
} arg_attrs;

typedef struct bn_attrs {
    float epsilon, momentum;
    int64_t is_test, spatial, training_mode;
} bn_attrs;

typedef struct gn_attrs {
    float epsilon;
    int64_t groups;
} gn_attrs;

/* NormNumbers: what a norm over pixels does to each channel. */
typedef struct norm_numbers_attrs {
    float epsilon;
    int64_t groups; /* of channels that are normalised together; 0: each by itself */
} norm_numbers_attrs;

typedef struct mod_attrs {
    int64_t axis, broadcast; /* unused: what the other binary operators have */
    int64_t fmod;
} mod_attrs;

/* BitShift: choices LEFT, RIGHT. */
typedef struct shift_attrs {
    int direction;
} shift_attrs;

#endif
