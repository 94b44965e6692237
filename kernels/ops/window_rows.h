/* window_rows.h - attribute rows that convolutions and pools share, to be pasted into the op's
 * own list; TYPE is its attribute struct. @source ONNX operators Conv, MaxPool. */
#ifndef TGI_WINDOW_ROWS_H
#define TGI_WINDOW_ROWS_H

/* clang-format off */
#define TGI_WINDOW_ROWS(TYPE)                                                                   \
    {"auto_pad", TGI_ATTR_ENUM, offsetof(TYPE, auto_pad), 0, 0, 3, tgi_auto_pad_names,          \
     "how pads follow from the extent"},                                                       \
    {"dilations", TGI_ATTR_INTS, offsetof(TYPE, dilations), 0, 0, 0, NULL, "tap distance"},     \
    {"kernel_shape", TGI_ATTR_INTS, offsetof(TYPE, kernel_shape), 0, 0, 0, NULL, "extents"},    \
    {"pads", TGI_ATTR_INTS, offsetof(TYPE, pads), 0, 0, 0, NULL, "begins, then ends"},          \
    {"strides", TGI_ATTR_INTS, offsetof(TYPE, strides), 0, 0, 0, NULL, "step per output"}
/* clang-format on */

#endif
