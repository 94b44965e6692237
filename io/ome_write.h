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

/* Does the name end in .ome.tif or .ome.tiff, and so promise OME-XML? */
bool tgi_is_named_ome(const char *path);
/* Under such a name an axis that OME has not becomes one of times, or of slices where times are there. */
void tgi_ome_letters(const char *path, char *axes);
/* TG_E_ARG where OME-XML has still no such axes or pixels, and the name promises it. */
tg_status tgi_ome_may(const char *path, tg_dtype dtype, const char *axes, tgi_err *err);

/* Is it a unit of length, by any of its spellings, or one of pixels? */
bool tgi_unit_is_known(const char *unit);
/* Micrometres in one `unit` ("um", "nm", ...); 0 when it is no length we know. */
double tgi_unit_micrometres(const char *unit);

/* Size of a pixel along axis i (z,y,x) in the unit of x; 0: unknown. */
double tgi_size_in_x(const tgi_image_meta *m, int i);

/* True for a description in words: the XML, JSON or key lists of other programs describe the
 * layout of another file. */
bool tgi_is_prose(const char *s);

#endif
