/* stroke_font.h - letters as lines, so that a PNG of a plot needs no font of the system.
 *
 * Drawn for this project: each printable ASCII character is a few lines and arcs on a grid of
 * 100 units to the em, in the proportions of a plain sans serif; a pen of a given width follows
 * them. All other characters are shown as an empty box. */
#ifndef TGI_STROKE_FONT_H
#define TGI_STROKE_FONT_H

#include "engine/draw/canvas.h"

#define TGI_GLYPH_POINTS 128 /* of one line of a glyph, at most */

/* One line of a glyph; x to the right, y up from the baseline, in units. */
typedef void tgi_glyph_line(void *user, const tgi_point *p, int n);

/* Units to the next character; `line` (NULL: only measure) is called for each line of this one.
 */
int tgi_glyph(unsigned char c, tgi_glyph_line *line, void *user);
/* Bytes of the character at s, which is not empty; *c is what to draw for it. */
size_t tgi_glyph_next(const char *s, unsigned char *c);

#endif
