/* published.h - what is said of ProPainter's published script (configs/published/propainter.json). */
#ifndef TGI_PUBLISHED_H
#define TGI_PUBLISHED_H

#include "engine/base/json.h"

/* The file, its members checked. Returned; tgi_json_free. */
tg_status tgi_published_load(tgi_json **out, tgi_err *err);
/* Its note as the member "published" of `w`: where the figures are from. */
void tgi_published_put_note(const tgi_json *doc, tgi_jw *w);
/* Rows of a member: the first; NULL: none. tgi_json_next. */
const tgi_json *tgi_published_rows(const tgi_json *doc, const char *member);
/* A number of a row; 0: it has none. */
double tgi_published_number(const tgi_json *row, const char *key);
/* Gigabytes of a row as member `key` of `w`, or "out of memory". */
void tgi_published_put_gb(tgi_jw *w, const char *key, const tgi_json *row, const char *from);

#endif
