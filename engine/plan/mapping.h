/* mapping.h - how the axes of an image meet the axes of a network, and what the output's axes
 * are.
 *
 * RULES
 *  1. One input channel: the network is looped over every plane, and every sample of a pixel.
 *  2. c > 1 channels are, in this order:
 *       - the S samples of a pixel, when S == c;
 *       - the C axis, when it has c entries;
 *       - where C has one entry at most: the only longer axis of planes, when it is not Z and
 *         has c entries (two frames of a flow network);
 *       - else the job is refused, and the refusal says what the image has.
 *     Where --planes names c planes of the only longer axis, equally far apart, they are taken.
 *  3. A network over volumes takes the Z axis as depth; without one, the only plane axis.
 *  4. Every other axis is looped. The output keeps them all, in order. One output channel needs
 *     no axis. Several become samples when they came from samples (at most 4), else an axis C.
 *  5. Alpha is no channel. Where the file says that the last sample is alpha, or that the first
 *     ones are colours and there are more, a network that takes the others gets the others. A
 *     network that takes all samples gets all.
 *
 * FRAMES. A region of interest shifts the origin. fit.h says how an axis of the region is
 * padded to what the network sees, and how the output is cut back. Pixel i of the region has
 * number i + fit.before in what the network sees; output pixel o of the file has number o +
 * fit.crop. */
#ifndef TGI_MAPPING_H
#define TGI_MAPPING_H

#include "engine/base/spec.h"
#include "engine/plan/chosen.h"
#include "engine/plan/fit.h"
#include "io/image.h"

typedef enum tgi_pad_mode { TGI_PAD_REFLECT, TGI_PAD_EDGE, TGI_PAD_ZERO } tgi_pad_mode;

typedef struct tgi_loop_axis {
    char letter;
    int64_t size;
    int64_t stride; /* in planes of the source; samples: 0 */
} tgi_loop_axis;

typedef struct tgi_mapping {
    int spatial;       /* 2 or 3 */
    int64_t origin[3]; /* z,y,x of the region in the source */
    int64_t extent[3]; /* z,y,x of the region; images: extent[0] = 1 */
    tgi_fit fit[3];    /* z,y,x; images: fit[0] of extent 1 */
    tgi_pad_mode pad;
    int64_t channels;  /* of the network's input, but for */
    int64_t appended;  /* those behind them that are none of the image's */
    int from_samples;  /* the channels are the samples of a pixel */
    int left_out;      /* samples at the end of a pixel that the network does not take */
    int loops_samples; /* each sample is an item of its own; the last loop axis */
    int64_t channel_stride, depth_stride; /* in planes; 0 when not from planes */
    int64_t first_plane;                  /* of the planes chosen to be channels; else 0 */
    int planes_are_channels;
    /* What of an item is its own, and no frame around it: statistics are of it, and previews show it. */
    struct {
        tgi_range channels, slices;
    } own;
    int n_loop;
    tgi_loop_axis loop[TGI_IMAGE_MAX_AXES];
    tgi_planes_spec planes; /* which items; n == 0: all */
    tgi_chosen chosen;      /* where n > 0 */
    int64_t n_items;
    int stats_axis;     /* loop axis that numbers the channels for statistics, or -1 */
    int stats_by_item;  /* instead, each item has its own */
    int64_t stats_each; /* sets that an item uses, one after the other: of its channels; 0: 1 */
    int64_t n_stats;
    /* output */
    int64_t out_channels;
    int64_t out_extent[3]; /* z,y,x after cropping the padding */
    int out_samples;       /* channels interleaved in a pixel */
    char out_axes[TGI_IMAGE_MAX_AXES + 1];
    int64_t out_shape[TGI_IMAGE_MAX_AXES];
    int64_t out_item_stride, out_depth_stride, out_channel_stride; /* in output planes */
} tgi_mapping;

/* What the user decides about it. */
typedef struct tgi_mapping_opts {
    const tgi_roi_spec *roi; /* NULL: everything */
    const tgi_planes_spec *planes;
    tgi_pad_mode pad;
    char *const *channel_name; /* of the network's input, for messages; or NULL */
    int64_t n_names;
    struct { /* channels of a larger image, which `info` is a part of; text NULL: all */
        const char *text;
        const tgi_image_info *of;
        const int64_t *at;
        int64_t n;
    } choice;
    int same_size; /* pad for what the network eats */
    int64_t
        appended; /* channels of the network's input, the last ones, that are none of the image's */
    /* Operators that read whole extents read boxes, of whose output `core` (z,y,x; 0: all of an
     * axis, or what a network of one size keeps) is kept: tgi_fit_axis_in_boxes. */
    int in_boxes;
    int64_t core[3];
    int stats_by_channel, stats_by_item; /* as tgi_normalize_spec */
} tgi_mapping_opts;

/* First half: what the network will be fed. Sets all but the output part; `in_desc` receives
 * the shape of the network's input (of a box, where it runs in boxes). TG_E_ARG,
 * TG_E_UNSUPPORTED.
 */
tg_status tgi_mapping_input(const tgi_graph *g, const tgi_image_info *info,
                            const tgi_mapping_opts *o, tgi_mapping *m, tgi_desc *in_desc,
                            tgi_err *err);
/* Second half, once the output's shape is known. */
tg_status tgi_mapping_output(tgi_mapping *m, const tgi_image_info *info,
                             const tgi_desc *in_desc, const tgi_desc *out_desc, tgi_err *err);
/* How many channels the network's first input takes. */
int64_t tgi_net_channels(const tgi_graph *g);
/* What of the input's metadata holds for the output: sizes of pixels at its scale, channels
 * where the axis is still the same, colour where the samples are. A view of `info`. */
void tgi_mapping_meta(const tgi_mapping *m, const tgi_image_info *info, tgi_image_meta *out);
/* 1: the network runs in fixed boxes. */
int tgi_mapping_boxed(const tgi_mapping *m);

/* Source plane and first sample of (item, depth z, channel 0) in network coordinates inside the
 * region; channels follow at channel_stride (or as samples). */
int64_t tgi_mapping_plane(const tgi_mapping *m, int64_t item, int64_t z, int *sample);
/* Which set of statistics an item uses; the first of stats_each. */
int64_t tgi_mapping_stats_of(const tgi_mapping *m, int64_t item);
/* Output plane of (item, depth z, channel c). */
int64_t tgi_mapping_out_plane(const tgi_mapping *m, int64_t item, int64_t z, int64_t c);

/* Where padded coordinate i reads in [0,n): reflect without repeating the edge, edge, or -1 for
 * zero. */
int64_t tgi_pad_index(tgi_pad_mode mode, int64_t i, int64_t n);
/* Pixels of [0,n) that interval r of the region's frame reads: itself, and what its parts
 * beyond the border are mirrored from. */
tgi_range tgi_pad_hull(tgi_pad_mode mode, tgi_range r, int64_t n);

#endif
