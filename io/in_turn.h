/* in_turn.h - planes that are no combinations of channels, slices and times: they become one plain axis, and this is what
 * is known of it. Times and positions stay with each plane; what is said of a channel stays where all are of one;
 * distances do not. */
#ifndef TGI_IN_TURN_H
#define TGI_IN_TURN_H

#include "engine/base/spec.h"
#include "io/image.h"

typedef struct tgi_in_turn {
    tgi_ome_kept *ome; /* or NULL */
    char **label;      /* of the planes, views; NULL: none */
    int64_t n;         /* planes; 0: nothing was made */
    int along[3];      /* z, c, t: axes whose entries they name */
    int64_t
        channel; /* that all are of; -1: of several, or channels are no part of the choice */
} tgi_in_turn;

/* Of `count` planes of a resolved spec, numbered over the axes of planes in `letters` (NULL: all of them). `out` and
 * what tgi_in_turn_meta makes are views of `in`. */
tg_status tgi_in_turn_make(const tgi_image_info *in, const char *letters,
                           const tgi_planes_spec *planes, int64_t count, tgi_in_turn *out,
                           tgi_err *err);
/* `meta`, which was in->meta, becomes that of these planes. */
void tgi_in_turn_meta(const tgi_in_turn *t, const tgi_image_info *in, tgi_image_meta *meta);
/* What of channels is lost, for TGI_PLANES_MIXED. */
const char *tgi_in_turn_told(const tgi_in_turn *t, const tgi_image_info *in);
void tgi_in_turn_free(tgi_in_turn *t);

#endif
