/* picked.h - a part of an image's channels, slices and times as an image: what --channels, --z and --t choose.
 *
 * The axes stay, with as many entries as were chosen, in the order in which they were named; what is known of
 * the entries that stay (names, colours, tables, distances) stays with them. Distances that are not the same
 * everywhere are dropped, and info.note says so. */
#ifndef TGI_PICKED_H
#define TGI_PICKED_H

#include "engine/base/spec.h"
#include "io/axis_list.h"
#include "io/image.h"

/* Channels of the image that are there, of *all; NULL: all of them. A view, of the first choice behind `s`. */
const int64_t *tgi_picked_channels(const tgi_source *s, int64_t *n, int64_t *all);
/* The channels, or samples of pixels, that were chosen of *whole, and how many; NULL: all of them. Views. */
const int64_t *tgi_picked_choice(const tgi_source *s, int64_t *n, const tgi_image_info **whole);
/* Entries of the file's axis (samples of a pixel: 'S') that are there, however many choices lie behind each other;
 * out->at NULL: all. */
tg_status tgi_picked_entries(const tgi_source *s, char letter, tgi_axis_list *out,
                             tgi_err *err);
/* 1: something is chosen. */
int tgi_axis_pick_any(const tgi_axis_pick *p);
/* `inner` is owned on TG_OK: both are closed with tgi_source_close. TG_E_ARG: no such axis, or an entry that
 * is not there; a film, whose frames have options of their own. */
tg_status tgi_picked_open(tgi_source *inner, const tgi_axis_pick *how, tgi_source **out,
                          tgi_err *err);
/* For the user, with the name of the input: what is lost where planes are no combinations of entries. */
#define TGI_PLANES_MIXED                                                                       \
    "%s: the planes that --planes names are not all combinations of some channels, slices "    \
    "and times: they become one plain axis, without distances and a time between planes%s "    \
    "(--channels, --z and --t keep them)"
#define TGI_PLANES_MIXED_CHANNELS                                                              \
    ", and without what is said of channels, since they are of several"

/* Put a choice of planes in front of *s: where those that are named are all combinations of entries of its axes
 * it is replaced, and *done is 1. Films, and what is no such combination, stay as they are. Planes are numbered
 * over the axes in `letters` alone, NULL: all axes of planes; count: of a resolved spec. */
tg_status tgi_picked_planes(tgi_source **s, const char *letters, const tgi_planes_spec *planes,
                            int64_t count, int *done, tgi_err *err);

#endif
