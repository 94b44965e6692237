/* ome_write.h - the ImageDescription of an output: OME-XML, or tifffile's shape line. */
#ifndef TGI_OME_WRITE_H
#define TGI_OME_WRITE_H

#include "io/sink.h"

/* Text of the first directory's ImageDescription, UTF-8, for a layout whose axes, shape and
 * samples are set. Axes or types that OME cannot name get {"shape": ..., "axes": ...}
 * instead. Returned (tgi_free); `meta` NULL: nothing known. */
tg_status tgi_ome_describe(const tgi_sink_layout *l, const tgi_image_meta *meta, char **out,
                           tgi_err *err);

/* Can OME name its axes and type? */
bool tgi_ome_can(const tgi_sink_layout *l);

/* Micrometres in one `unit` ("um", "nm", ...); 0 when it is no length we know. */
double tgi_unit_micrometres(const char *unit);

/* Size of a pixel along axis i (z,y,x) in the unit of x; 0: unknown. */
double tgi_size_in_x(const tgi_image_meta *m, int i);

/* True for a description in words: the XML, JSON or key lists of other programs describe the
 * layout of another file. */
bool tgi_is_prose(const char *s);

#endif
