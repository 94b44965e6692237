/* opts_source.h - what the options say of how an image is opened and which part of it is taken. */
#ifndef TGI_OPTS_SOURCE_H
#define TGI_OPTS_SOURCE_H

#include "engine/settings/opts.h"
#include "io/image.h"

/* The series, level, axes, names of files, frames, channels, slices and times that `o` names; views of its texts.
 * The rest of `out` is left as it is. */
void tgi_opts_source(const tg_opts *o, tgi_open_opts *out);
/* Slices that --roi names are chosen before the network sees the image, for who knows no depth. */
void tgi_opts_source_slices(const tg_opts *o, tgi_open_opts *out);
/* TG_E_ARG: --c and --channels, which are the same, both say something. */
tg_status tgi_opts_source_check(const tg_opts *o, tgi_err *err);
/* The regular expression for axis 0 to 2, z, c, t, of file names; NULL: none. --z, --c and --t hold one where they
 * have a group, which no list of numbers has. */
const char *tgi_opts_name_key(const tg_opts *o, int axis);
/* What is chosen along channels, z and t (0 to 2); NULL: all. */
const char *tgi_opts_pick(const tg_opts *o, int which);

#endif
