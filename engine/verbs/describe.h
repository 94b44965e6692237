/* describe.h - a model, an image, a film, weights in JSON: `tegula info`. */
#ifndef TGI_DESCRIBE_H
#define TGI_DESCRIBE_H

#include "engine/base/status.h"

tg_status tgi_describe(const char *path, char **json, tgi_err *err);

#endif
