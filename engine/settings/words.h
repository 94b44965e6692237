/* words.h - the small languages of the estimators' options, and names of codecs: "224x224x3", "110M",
 * "16GiB,24GiB". Text in, plain numbers out; details quote the value and say what would be
 * right; outputs are written only on TG_OK. */
#ifndef TGI_WORDS_H
#define TGI_WORDS_H

#include "engine/base/status.h"
#include "io/masks.h"

/* "HxW" or "HxWxC", pixels and channels; v[2] is 0 when there is no C. */
tg_status tgi_dims_parse(const char *text, int64_t v[3], tgi_err *err);
/* "110M", "1.3B", "25557032": parameters. A number below 1000 without a letter is refused: it
 * is more likely millions. */
tg_status tgi_params_parse(const char *text, int64_t *out, tgi_err *err);
/* "1" to "100" with "%": a share in (0,1]. */
tg_status tgi_share_parse(const char *text, double *share, tgi_err *err);
/* "dynamic", "none" or a factor of at least 1; 0 for dynamic, -1 for none. */
tg_status tgi_loss_scale_parse(const char *text, double *factor, tgi_err *err);

/* The next item of a list "A,B,C": its length, 0 at the end; *p moves on, *item is a view. */
size_t tgi_list_next(const char **p, const char **item);
/* A list of sizes, at least one: only checked. */
tg_status tgi_sizes_check(const char *text, tgi_err *err);
/* A list "NAME=3.06,NAME=1.2": only checked. */
tg_status tgi_prices_check(const char *text, tgi_err *err);
/* The price of `name` in such a list, compared as tgi_same_name does; < 0: none. */
double tgi_price_of(const char *list, const char *name);
/* Names of GPUs are compared without case, blanks and dashes: "rtx4090" is "RTX 4090". */
int tgi_same_name(const char *a, size_t n, const char *b);
/* A name in that form, cut to cap. */
void tgi_plain_name(const char *a, size_t n, char *out, size_t cap);

/* The next of a list of boxes "x,y,w,h@A-B;..."; *at moves behind it. */
tg_status tgi_boxes_next(const char **at, tgi_mask_box *out, tgi_err *err);

/* A value of --codec for what ffmpeg, and makers of encoders, call it ("libx265", "h264_nvenc"); NULL: it is none
 * that is known. */
const char *tgi_codec_called(const char *text);

#endif
