/* describe_weights.h - a file of weights in JSON: `tegula info`. */
#ifndef TGI_DESCRIBE_WEIGHTS_H
#define TGI_DESCRIBE_WEIGHTS_H

#include "engine/base/json.h"

/* 1: the name is one that files of weights have. */
int tgi_names_weights(const char *path);
/* Members of an object: what is in the file, one row for each tensor. No element is read. */
tg_status tgi_describe_weights(const char *path, tgi_jw *w, tgi_err *err);

#endif
