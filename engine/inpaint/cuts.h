/* cuts.h - where the scenes of a film begin: found in it, or as a file says, and as a file.
 *
 *   file   a number a line, of a scene's first frame, from 0 on; or a time a line, from the first frame on, as 90.5, 1:30 or
 *          00:01:30.040: the frame that is shown nearest to it; or a table with a column "Start Frame", from 1 on, as
 *          PySceneDetect's list-scenes writes it, and as it is written here. Lines that begin with # do not count, nor does
 *          that program's first line of timecodes.
 *   found  each frame as 32 x 18 means of its levels. A cut is where these differ by 8 of 255 levels or more on average
 *          from those of the frame before, and 3 times as much as around (two changes before and two behind): a pan or
 *          a thing that moves changes each frame alike. Two that are as sudden are none. A flash: the frames around it are alike, by half of
 *          the change. A fast motion: the frames around it differ still more, 1.15 times, and in the same levels (of 16
 *          fewer than a tenth of the means change theirs). Fades and dissolves are not found, nor are cuts between scenes as dark as that.
 *
 * All of it, and what it tells, is of the film's own numbers. */
#ifndef TGI_CUTS_H
#define TGI_CUTS_H

#include "io/image.h"

typedef struct tgi_cuts {
    int64_t n;
    int64_t *first; /* ascending, none is 0; tgi_free */
} tgi_cuts;

void tgi_cuts_free(tgi_cuts *c);
/* Of the film's file, whose frames can be read from `s`. TG_E_FORMAT, TG_E_ARG: a line that says none, no order, a frame that the
 * film has not, a time and the film has none. */
tg_status tgi_cuts_read(const char *path, const tgi_source *s, tgi_cuts *out, tgi_err *err);
/* All frames are read once, those around a part too, in order. `stop`: asked before each; or NULL. */
tg_status tgi_cuts_find(tgi_source *s, tg_status (*stop)(tgi_err *err), tgi_cuts *out,
                        tgi_err *err);
/* The table, of a film of `frames`; returned, tgi_free. NULL: no memory. */
char *tgi_cuts_text(const tgi_cuts *c, int64_t frames);

#endif
