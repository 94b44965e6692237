/* token_axes.h - arrays that hold an image in another order of axes: [1,HW,C], [HW,C],
 * [H,W,C], [1,C,HW] and the like.
 *
 * An order says for each axis of the array which axes of the image it is: none (an extent of
 * one), one, or several that are merged, the slowest first. The image's batch is one and is
 * named nowhere, nor is an axis that has extent one at every size that was looked at: where it
 * stands makes no difference.
 *
 * What is said of extents has to hold at several sizes of the image at once: then an axis of
 * 4096 elements is known to be rows times columns, and not channels. */
#ifndef TGI_TOKEN_AXES_H
#define TGI_TOKEN_AXES_H

#include "engine/base/tensor.h"

#define TGI_TOKEN_SIZES 3
#define TGI_IMAGE_MOST 5                     /* axes of a volume */
#define TGI_CHANNELS 1                       /* the axis of an image */
#define TGI_MERGED_MOST (TGI_IMAGE_MOST + 2) /* also of one whose channels are cut in three */

typedef struct tgi_merged {
    int n;
    int of[TGI_MERGED_MOST]; /* axes of the image */
} tgi_merged;

typedef struct tgi_order {
    int rank;
    tgi_merged axis[TGI_MAX_RANK];
} tgi_order;

/* Extents of one value at the sizes. */
typedef struct tgi_extents {
    int n;
    tgi_desc at[TGI_TOKEN_SIZES];
} tgi_extents;

/* The order of the image itself. */
tgi_order tgi_order_of_image(const tgi_extents *image);
int tgi_order_same(const tgi_order *a, const tgi_order *b);
/* The order of an array of the same elements in the same sequence. 0: some axis of it is no
 * product of whole axes of the image. */
int tgi_order_regroup(const tgi_order *o, const tgi_extents *image, const tgi_extents *array,
                      tgi_order *out);
/* Axis i of `out` is axis perm[i] of `o`. */
void tgi_order_permute(const tgi_order *o, const int64_t *perm, tgi_order *out);
void tgi_order_remove(tgi_order *o, int axis);
/* Has an array of this order these extents? */
int tgi_order_fits(const tgi_order *o, const tgi_extents *image, const tgi_extents *array);
/* Is axis `a` that of channels and of nothing else? */
int tgi_order_is_channels(const tgi_order *o, const tgi_extents *image, int a);
/* Let axis `a` be that of the channels of `image`. */
void tgi_order_set_channels(tgi_order *o, const tgi_extents *image, int a);
/* Broadcast `b` against `a`, aligned at the end: axes of extent one take the other's. 0: they
 * hold different axes of the image. */
int tgi_order_join(tgi_order *a, const tgi_order *b);
/* Is the extent of that axis of the value one at every size? */
int tgi_extents_unit(const tgi_extents *e, int axis);
/* Are the extents the same at every size? */
int tgi_extents_fixed(const tgi_extents *e);
int tgi_extents_same(const tgi_extents *a, const tgi_extents *b);

#endif
