/* ome_kept.h - what OME-XML says that only OME-TIFF has a place for: instruments, objectives, experimenters,
 * settings of channels, times and positions of planes, annotations, regions of interest.
 *
 * Elements are kept as text, ready to be written into another document, with their own identifiers. Regions of
 * interest are kept as a template: their numbers stand between marks, so that they follow a crop, another scale
 * and a choice of slices (tgi_rois_write). */
#ifndef TGI_OME_KEPT_H
#define TGI_OME_KEPT_H

#include "engine/base/status.h"
#include "io/axis_list.h"

#include <stddef.h>
#include <stdint.h>

enum {
    TGI_PLANE_DELTA,
    TGI_PLANE_EXPOSURE,
    TGI_PLANE_X,
    TGI_PLANE_Y,
    TGI_PLANE_Z,
    TGI_PLANE_VALUES
};

/* What a <Plane> says: value[i] holds where bit i of `has` is set. */
typedef struct tgi_plane_note {
    int32_t z, c, t;
    uint32_t refs; /* its references to annotations: plane_refs + refs - 1; 0: none */
    uint8_t has, unit[TGI_PLANE_VALUES]; /* tgi_plane_unit */
    double value[TGI_PLANE_VALUES];
} tgi_plane_note;

typedef struct tgi_ome_kept {
    char *head;       /* children of OME in front of the Image */
    char *person_ref; /* of the Image: behind AcquisitionDate, */
    char *image_refs; /* behind Description, */
    char *
        image_tail; /* and behind Pixels, but for references to regions of interest (tgi_rois_refs) */
    char *annotations; /* children of StructuredAnnotations */
    char *rois;        /* a template */
    char **channel_said,
        **channel_parts; /* of each: attributes with a blank in front, and children; entries may be NULL */
    int n_channels;
    tgi_plane_note *plane; /* ascending by t, c, z */
    int64_t n_planes;
    char *plane_refs; /* elements of planes, each ended by 0 */
    size_t plane_refs_bytes;
    int significant_bits, type_bits; /* of a pixel: used, of its type; 0: not said */
    int64_t shapes_lost;             /* of regions of interest, that earlier choices left out */
} tgi_ome_kept;

/* Where things lie in the output: x, y of the input times scale, less shift. */
typedef struct tgi_ome_place {
    double scale[2], shift[2]; /* y, x; scale 0: 1 */
    int64_t first_z;           /* slice of the input that is slice 0 of the output */
    int any_channel; /* channels are others: of planes the first channel's times and positions hold */
    int no_planes;     /* slices or times are others: nothing is known of planes */
    int other_slices;  /* what is on one slice is nowhere */
    int other_values;  /* computed, or of another type: nothing is known of their bits */
    int64_t extent[3]; /* z, y, x of the output where it is a part of the input; else 0 */
} tgi_ome_place;

void tgi_ome_kept_clear(tgi_ome_kept *k); /* what it holds; not itself */
void tgi_ome_kept_free(tgi_ome_kept **k); /* NULL is fine */
/* The name of a unit as the schema spells it; an index for it, 0 where it is none. `what`: TGI_PLANE_... */
const char *tgi_plane_unit(int what, int index);
int tgi_plane_unit_of(int what, const char *name);
/* As they are kept: by t, then c, then z. */
void tgi_plane_notes_sort(tgi_plane_note *plane, size_t n);
/* Of the plane at z, c, t, or NULL. */
const tgi_plane_note *tgi_plane_note_at(const tgi_ome_kept *k, const tgi_ome_place *p,
                                        int64_t z, int64_t c, int64_t t);
/* Elements in its <Plane>; NULL: none. */
const char *tgi_plane_refs(const tgi_ome_kept *k, const tgi_plane_note *n);
/* What stays when entries of axes are chosen (a list without `at`: all): planes and regions of interest with other
 * numbers, those of other entries gone. Returned; NULL and TG_OK where `k` is NULL. */
tg_status tgi_ome_kept_pick(const tgi_ome_kept *k, const tgi_axis_list *z,
                            const tgi_axis_list *c, const tgi_axis_list *t, tgi_ome_kept **out,
                            tgi_err *err);

/* Planes that are no combinations of entries of axes, and become one axis of times. */
typedef struct tgi_ome_spots {
    int64_t n;
    int32_t (*at)[3]; /* z, c, t of each; 0 along an axis of which they have all, */
    int along[3];     /* 0 here */
} tgi_ome_spots;

/* What stays then: planes with their times and positions, regions of interest that are on one of them or on all; of a
 * channel what is said of it where all are of it. Returned. */
tg_status tgi_ome_kept_in_turn(const tgi_ome_kept *k, const tgi_ome_spots *spots,
                               tgi_ome_kept **out, tgi_err *err);

/* Marks of a template: a number `n` of kind k is written as MARK k n MARK; a shape lies between SHAPE and SHAPE_END, a
 * region between ROI and ROI_END, and is left out with all of its shapes. */
#define TGI_ROI_MARK '\1'
#define TGI_ROI_SHAPE '\2'
#define TGI_ROI_SHAPE_END '\3'
#define TGI_ROI_ROI '\4'
#define TGI_ROI_ROI_END '\5'
#define TGI_ROI_TRANSFORM                                                                      \
    '\6' /* anywhere in a shape: it has a transform, and its own numbers stay */
#define TGI_ROI_MASK '\7' /* anywhere in a shape: it has pixels, which follow no other scale */

/* The text of a template at its place; `add` gets it character by character. `pick` z, c, t or NULL: numbers of
 * slices, channels and times become those of the choice, and the result is a template again. Returns how many
 * regions are left, -1 where there is no memory for a choice, and the shapes that were left out in *lost: those of entries that are not chosen; of a part of the
 * image those that lie outside of it; and masks at another scale. */
int64_t tgi_rois_write(const char *rois, const tgi_ome_place *p,
                       const tgi_axis_list *const pick[3], void (*add)(void *user, char c),
                       void *user, int64_t *lost);

/* The same for planes that become one axis T; a shape that is on some of them, and not on one or all, is left out. */
int64_t tgi_rois_in_turn(const char *rois, const tgi_ome_spots *spots,
                         void (*add)(void *user, char c), void *user, int64_t *lost);
/* How many shapes were left out on the way to this place. */
int64_t tgi_rois_lost(const tgi_ome_kept *k, const tgi_ome_place *p);
/* The same for elements that refer to the regions that are left. */
void tgi_rois_refs(const char *rois, const tgi_ome_place *p, void (*add)(void *user, char c),
                   void *user);
/* What of `k`, at its place, only an OME-TIFF has a place for, in words; "" nothing. Cut to cap; returns buf. */
const char *tgi_ome_kept_words(const tgi_ome_kept *k, const tgi_ome_place *p, char *buf,
                               size_t cap);

#endif
