/* lost.h - what of the input's metadata an output does not say, in words: nothing is lost in silence. */
#ifndef TGI_JOB_LOST_H
#define TGI_JOB_LOST_H

#include "engine/settings/opts.h"
#include "io/picture_out.h"
#include "io/sink.h"

/* Outputs without a layout of their own. */
typedef enum tgi_lost_to { TGI_LOST_TO_IMAGE, TGI_LOST_TO_ARRAY, TGI_LOST_TO_FILM } tgi_lost_to;

/* What of `meta`, which is true of the output, it has no place for; "" nothing. `w` NULL: a TIFF of this layout. Cut to
 * cap; returns buf. */
const char *tgi_lost_words(tgi_lost_to to, const tgi_picture_writer *w,
                           const tgi_sink_layout *l, const tgi_image_meta *meta, char *buf,
                           size_t cap);
/* What is said of the channels of `in` and not of those of an output that says `out` of n channels. */
const char *tgi_lost_channels(const tgi_image_meta *in, const tgi_image_meta *out, int64_t n,
                              char *buf, size_t cap);
/* Has `in` names of planes, and `out` none, since it has other planes? */
int tgi_lost_labels(const tgi_image_meta *in, const tgi_image_meta *out);
/* The name of the image among those of its file; "": it has none, or is one of too many. */
const char *tgi_image_title(const tgi_image_info *i);
/* Does the file hold images beside this one, and nobody said which is meant? */
int tgi_more_images(const tgi_image_info *i, const tg_opts *o);
/* Is it one of many images (--each), and has its pixels in other files that may be among them? */
int tgi_in_more_files(const tgi_image_info *i, const tg_opts *o);
/* Is it an output that carries all there is? */
int tgi_lost_nothing(tgi_lost_to to, const tgi_picture_writer *w, const tgi_sink_layout *l);
/* Why it lacks these: the end of TGI_LOST_META. */
const char *tgi_lost_why(tgi_lost_to to, const tgi_picture_writer *w);

#define TGI_LOST_META "%s: the input also has %s: %s"
#define TGI_LOST_CHANNELS                                                                      \
    "%s: its channels are others than those of the image, whose %s it does not say"
#define TGI_LOST_LABELS                                                                        \
    "%s: its planes are others than those of the image, whose names it does not say"
#define TGI_MORE_IMAGES                                                                        \
    "%s: it holds %d images, of which this is %s%s%s%s: --series N takes another "             \
    "(tegula info lists them)"
#define TGI_MORE_IMAGES_OF(info)                                                               \
    (info)->n_series, (info)->at_series ? "the one in this file" : "the first",                \
        tgi_image_title(info)[0] ? ", \"" : "", tgi_image_title(info),                         \
        tgi_image_title(info)[0] ? "\"" : ""
#define TGI_IN_MORE_FILES                                                                      \
    "%s: one of %lld files of an image, all of which this takes: of such files give one alone"
#define TGI_LOST_SHAPES                                                                        \
    "%s: %lld shape%s of regions of interest %s left out: outside of what it shows, on "       \
    "planes "                                                                                  \
    "that it has not, or masks at another scale"

#endif
