/* describe.h - a model, an image, a film, weights in JSON: `tegula info`. */
#ifndef TGI_DESCRIBE_H
#define TGI_DESCRIBE_H

#include "engine/settings/opts.h"

/* `o` says which part of an image (tgi_opts_source), or NULL. */
tg_status tgi_describe(const char *path, const tg_opts *o, char **json, tgi_err *err);

#endif
