/* size.h - bytes, and times, as people write them. KiB, MiB, GiB, TiB are powers of 1024; KB,
 * MB, GB, TB powers of 1000; "80%" is of what is free. A bare number is refused: a guess is a
 * bug. */
#ifndef TGI_SIZE_H
#define TGI_SIZE_H

#include "engine/base/status.h"

/* Parse "1.5GiB", "800MB", "80%". `of` is what a percentage refers to (0: refuse percentages).
 * TG_E_ARG with advice. */
tg_status tgi_size_parse(const char *text, uint64_t of, uint64_t *bytes, tgi_err *err);
/* Parse "500ms", "1.5s", "2m", "1h" into seconds, above 0 and at most ten days. */
tg_status tgi_duration_parse(const char *text, double *seconds, tgi_err *err);
/* "1.00 GiB", "512.00 MiB", "17.20 KiB", "17 B"; returns buf (cap >= 16). */
const char *tgi_size_text(uint64_t bytes, char *buf, size_t cap);
/* The same, rounded up: what is needed, so that who gives what he reads gives enough. */
const char *tgi_size_above(uint64_t bytes, char *buf, size_t cap);
/* The same, rounded down: what there is. */
const char *tgi_size_below(uint64_t bytes, char *buf, size_t cap);

#endif
