/* imagej.h - what two programs write into ImageDescription besides XML: ImageJ's key=value
 * lines and tifffile's {"shape": [...]} object. Pure text parsing: untrusted, bounded, silent
 * about what it does not know. */
#ifndef TGI_IMAGEJ_H
#define TGI_IMAGEJ_H

#include "io/text_number.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TGI_SHAPED_MAX 16

/* Counts are 0 when the text does not state them. */
typedef struct tgi_imagej {
    int64_t images, channels, slices, frames;
    char order[8];                 /* "czt" ...; "" default */
    double spacing;                /* between slices, in `unit` */
    double interval;               /* between frames, seconds */
    char malformed[TGI_MALFORMED]; /* numbers that are none, and count as not stated */
    int mode;                      /* TGI_MODE_*; 0: not stated */
    char unit[16];                 /* "µm", "nm", "mm", "cm", "inch" ...; "" none */
} tgi_imagej;

/* How a stack shows its channels, as "mode=" names it: together, one by one in colours, or in grey. */
enum { TGI_MODE_COMPOSITE = 1, TGI_MODE_COLOR, TGI_MODE_GREY };
/* Its word, "" where there is none; and the mode of a word, 0 where there is none. */
const char *tgi_imagej_mode(int mode);
int tgi_imagej_mode_of(const char *word, size_t len);

/* True when `text` is an ImageJ description ("ImageJ=1.53t\nimages=...").
 * @source ImageJ ij/io/TiffEncoder and FileSaver.getDescriptionString. */
bool tgi_imagej_parse(const char *text, tgi_imagej *out);

typedef struct tgi_shaped {
    int n;
    int64_t shape[TGI_SHAPED_MAX];
    char axes[TGI_SHAPED_MAX + 1]; /* "" when not stated */
} tgi_shaped;

/* True when `text` is a tifffile description with a shape. @source tifffile, json_description.
 */
bool tgi_shaped_parse(const char *text, tgi_shaped *out);

/* Canonical spelling of a length unit ("micron", "um", "\u00B5m" escaped or not -> "µm"). */
void tgi_unit_canonical(const char *unit, size_t len, char *out, size_t cap);

#endif
