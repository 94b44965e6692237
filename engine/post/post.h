/* post.h - a source that makes objects of an image: thresholds, masks without holes, numbers (--post).
 *
 * It stands in front of another source and looks like one, of the box and the planes that were
 * chosen of it. A row is made when it is asked for, from one row of the inner source: step by step, and
 * what a step has to know of the whole image (a threshold, which pixels touch) it finds in a pass over the steps
 * before it, when the first row of an image is asked for. So each such step reads the image once more, and no
 * pixels are kept.
 *
 * The image that a step looks at is a plane, or a volume over axis Z. Channels are images by themselves.
 * Planes that a volume has in turn (ZC) are looked at together. stardist and cellpose take all channels of a plane
 * together, and their image has none (post_network.c). */
#ifndef TGI_POST_H
#define TGI_POST_H

#include "engine/base/post_spec.h"
#include "engine/base/spec.h"
#include "io/image.h"

/* Of the inner source: these planes of it, this box, in these axes. */
typedef struct tgi_post_view {
    tgi_planes_spec planes; /* resolved */
    int64_t n_planes;
    tgi_range y, x;
    int n_axes; /* singletons kept */
    char axes[TGI_IMAGE_MAX_AXES + 1];
    int64_t shape[TGI_IMAGE_MAX_AXES];
} tgi_post_view;

/* Another image of the same size, whose intensities are measured: a row of one of its channels, behind the plane of
 * what the objects are made of. */
typedef struct tgi_post_image {
    tg_status (*row)(void *user, int64_t plane, int64_t y, int channel, double *dst,
                     tgi_err *err);
    void *user;
    int channels, whole; /* whole: tgi_post_is_whole */
} tgi_post_image;

typedef struct tgi_post_opts {
    tgi_post_spec spec;
    tgi_post_view view;
    int volume;     /* 1: images are volumes where the list does not say otherwise */
    tg_dtype dtype; /* of numbers of objects: uint8, uint16, uint32; NONE: uint32 */
    int objects;    /* 1: intensities are asked for, too (objects.h) */
    int n_threads;  /* 0: 1; cellpose's */
    /* Pixels that intensities are of; NULL: the inner source's. */
    const struct tgi_post_image *image;
    /* Between rows of a pass; `phase` is static. */
    tg_status (*tick)(void *user, const char *phase, double fraction, tgi_err *err);
    void *user;
} tgi_post_opts;

/* `inner` is taken, on success. Nothing large is allocated. TG_E_ARG: the list does not go with
 * the image. Returned; close with tgi_source_close. */
tg_status tgi_post_open(tgi_source *inner, const tgi_post_opts *o, tgi_source **out,
                        tgi_err *err);

/* What the source keeps of an image in RAM at least, where there is a scratch file, and at most. */
size_t tgi_post_least(const tgi_source *s);
size_t tgi_post_most(const tgi_source *s);
/* 1: how much it keeps is known when it is done (stardist, cellpose), and the most is what it asks for where nobody
 * names a budget. It takes no more than it is given; reading answers TG_E_BUDGET where that is not enough. */
int tgi_post_takes_room(const tgi_source *s);
/* What such a one keeps at least without a scratch file. */
size_t tgi_post_beside(const tgi_source *s);
/* Bytes of its scratch files. */
size_t tgi_post_scratch(const tgi_source *s);
/* So many bytes may be in RAM, tgi_post_least or more; `folder`: for the rest, or NULL where all is
 * (borrowed). Allocates them. Before the first row is read. */
tg_status tgi_post_settle(tgi_source *s, size_t bytes, const char *folder, tgi_err *err);

/* ---- For tables of objects --------------------------------------------------------------- */

/* Images by groups, and parts of a group; a part is one image of depth planes. */
typedef struct tgi_post_shape {
    int64_t groups, parts, depth, height, width;
    int samples, volume;
    int channels, whole; /* of intensities */
    int n_axes;          /* of all planes */
    char axes[TGI_IMAGE_MAX_AXES + 1];
    int64_t shape[TGI_IMAGE_MAX_AXES];
} tgi_post_shape;
tgi_post_shape tgi_post_shape_of(const tgi_source *s);

typedef struct tgi_post_place {
    int64_t group, part, z, y;
} tgi_post_place;
int64_t tgi_post_plane(const tgi_source *s, const tgi_post_place *at);
/* A row of numbers, of a list that ends with label; a view until the next call. */
tg_status tgi_post_numbers(tgi_source *s, const tgi_post_place *at, const uint32_t **row,
                           tgi_err *err);
tg_status tgi_post_intensity(tgi_source *s, const tgi_post_place *at, int channel, double *dst,
                             tgi_err *err);
/* Whole numbers whose sum over an object is counted as one: of up to 16 bits, so that it fits whatever the object's size. */
int tgi_post_is_whole(tg_dtype type);
/* n pixels of any type. */
void tgi_post_to_double(tg_dtype type, const void *src, int64_t n, double *dst);
tg_status tgi_post_tick(tgi_source *s, const char *phase, double fraction, tgi_err *err);

#endif
