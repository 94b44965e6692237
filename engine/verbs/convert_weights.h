/* convert_weights.h - weights of one file into another: `tegula convert-weights`. */
#ifndef TGI_CONVERT_WEIGHTS_H
#define TGI_CONVERT_WEIGHTS_H

#include "engine/settings/opts.h"

/* The options name input and output. */
tg_status tgi_convert_weights(const tg_opts *o, tgi_err *err);

#endif
