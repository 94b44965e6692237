/* op_resize.c - Resize: nearest, linear and cubic, by scales or sizes; spatial axes of images.
 * Border: coordinates are clamped to the image (linear, nearest) or its edge pixels repeat
 * (cubic), by image coordinates; tf_crop_and_resize writes extrapolation_value outside the
 * crop. The rules are in resize_axis.c. Not done: resized channels.
 * @source ONNX operator Resize, versions 10, 11, 13, 18, 19. */
#include "kernels/ops/op_shared.h"
#include "kernels/ops/resize_axis.h"

static const char *const coords[] = {
    "half_pixel",           "asymmetric",         "align_corners",        "pytorch_half_pixel",
    "half_pixel_symmetric", "tf_crop_and_resize", "tf_half_pixel_for_nn", NULL};
static const char *const nearests[] = {"round_prefer_floor", "round_prefer_ceil", "floor",
                                       "ceil", NULL};
static const char *const policies[] = {"stretch", "not_larger", "not_smaller", NULL};

#define AT(field) offsetof(resize_attrs, field)
static const tgi_attr rows[] = {
    {"antialias", TGI_ATTR_INT, AT(antialias), 0, 0, 1, NULL, "filter when shrinking"},
    {"axes", TGI_ATTR_INTS, AT(axes), 0, 0, 0, NULL, "axes that scales, sizes, roi speak of"},
    {"coordinate_transformation_mode", TGI_ATTR_ENUM, AT(coord), 0, 0, 6, coords,
     "x to source"},
    {"cubic_coeff_a", TGI_ATTR_FLOAT, AT(cubic_coeff_a), -0.75, 0, 0, NULL, "shape of cubic"},
    {"exclude_outside", TGI_ATTR_INT, AT(exclude_outside), 0, 0, 1, NULL,
     "taps outside the image weigh nothing"},
    {"extrapolation_value", TGI_ATTR_FLOAT, AT(extrapolation_value), 0, 0, 0, NULL,
     "outside a crop"},
    {"keep_aspect_ratio_policy", TGI_ATTR_ENUM, AT(keep_aspect_ratio_policy), 0, 0, 2, policies,
     "how sizes bind"},
    {"mode", TGI_ATTR_ENUM, AT(mode), 0, 0, 2, tgi_resize_modes, "interpolation"},
    {"nearest_mode", TGI_ATTR_ENUM, AT(nearest), 0, 0, 3, nearests, "ties of nearest"},
    /* Upsample-7 has scales here; as an unnamed row it gets its default "not given". */
    {"", TGI_ATTR_FLOATS, AT(scales), 0, 0, 0, NULL, "not an attribute of Resize"},
    {0}};

static tg_status eval(const tgi_op_ctx *ctx, void *const *dst_data, tgi_err *err)
{
    return tgi_eval_by_ref(ctx, dst_data, tgi_resize_ref, err);
}

const tgi_op tgi_op_resize = {
    .name = "Resize",
    .attrs = rows,
    .attrs_size = sizeof(resize_attrs),
    .infer = tgi_resize_infer,
    .slide = tgi_resize_slide,
    .rule = tgi_resize_rule,
    .ref = tgi_resize_ref,
    .eval = eval,
    .flops = tgi_resize_flops,
    .doubles = tgi_resize_doubles,
};
