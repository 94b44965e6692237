/* text_file.h - small text files that are there whole or not at all: settings, statistics,
 * receipts, what was measured. */
#ifndef TGI_TEXT_FILE_H
#define TGI_TEXT_FILE_H

#include "engine/base/status.h"

/* Make the folders of a path, as far as they are missing; `path` is as before afterwards. */
tg_status tgi_make_folders(char *path, tgi_err *err);
/* Write, make durable, rename into place. With replace == 0 a file that is there is
 * TG_E_EXISTS. A pipe, a terminal or /dev/null is written to. */
tg_status tgi_write_text(const char *path, const char *text, int replace, tgi_err *err);

/* The path of a file of ours in the user's cache folder: TEGULA_CACHE, or tegula in
 * XDG_CACHE_HOME or ~/.cache. TG_E_NOT_FOUND when none of them is set; TG_E_FORMAT: a pipe or a
 * device has that name. */
tg_status tgi_cache_path(const char *name, char *out, size_t size, tgi_err *err);

#endif
