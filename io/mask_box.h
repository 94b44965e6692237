/* mask_box.h - a rectangle of some frames of a film, as somebody writes it. */
#ifndef TGI_MASK_BOX_H
#define TGI_MASK_BOX_H

#include "engine/base/status.h"

#include <stddef.h>
#include <stdint.h>

/* Frames [from, until) by the film's own numbers; until INT64_MAX: to the end. */
typedef struct tgi_mask_box {
    int64_t x, y, width, height, from, until;
} tgi_mask_box;

/* "410,220,90,160" or "410,220,90,160@120-480": frames 120 to 480, both of them in it; "@120-" to the end, "@120"
 * that frame. TG_E_ARG names what is wrong, with an example. */
tg_status tgi_mask_box_parse(const char *text, tgi_mask_box *out, tgi_err *err);
/* TG_E_ARG: it has no pixel or no frame, or numbers that no box of a film has; those of others can be added up. */
tg_status tgi_mask_box_check(const tgi_mask_box *b, tgi_err *err);
/* "box 410,220,90,160@120-480"; returns `to`. */
#define TGI_MASK_BOX_TEXT 160
const char *tgi_mask_box_text(const tgi_mask_box *b, char to[TGI_MASK_BOX_TEXT]);

#endif
