/* json.h - JSON out (a small writer) and in (strict, RFC 8259: no trailing bytes, no duplicate
 * keys, no control characters, valid UTF-8, at most 64 levels; integers keep 64 bits). */
#ifndef TGI_JSON_H
#define TGI_JSON_H

#include "engine/base/status.h"

#include <stdbool.h>

/* ---- Writing: begin and end nest; a NULL key inside arrays. A failed allocation sticks and
 * shows in tgi_jw_take. Zero-initialise. ---- */
typedef struct tgi_jw {
    char *text;
    size_t n, cap;
    int failed, comma;
} tgi_jw;

void tgi_jw_begin(tgi_jw *w, const char *key, char bracket);    /* '{' or '[' */
void tgi_jw_end(tgi_jw *w, char bracket);                       /* '}' or ']' */
void tgi_jw_str(tgi_jw *w, const char *key, const char *value); /* NULL: null */
void tgi_jw_int(tgi_jw *w, const char *key, int64_t value);
void tgi_jw_uint(tgi_jw *w, const char *key, uint64_t value);
void tgi_jw_num(tgi_jw *w, const char *key,
                double value); /* shortest that reads back; NaN: null */
void tgi_jw_bool(tgi_jw *w, const char *key, int value);
/* The text, or TG_E_NOMEM. Returned; tgi_free. The writer is empty afterwards. */
tg_status tgi_jw_take(tgi_jw *w, char **out, tgi_err *err);

/* ---- Reading ---- */
typedef struct tgi_json tgi_json; /* a value inside a document; view */

/* Parse n bytes; `what` names them in details. Returned document; tgi_json_free. */
tg_status tgi_json_parse(const char *text, size_t n, const char *what, tgi_json **doc,
                         tgi_err *err);
/* Read and parse a file, or a pipe, of at most 16 MiB. TG_E_NOT_FOUND, TG_E_FORMAT, TG_E_NOMEM,
 * of a pipe TG_E_CANCELLED and TG_E_IO too (input.h). */
#define TGI_JSON_FILE ((size_t)16 << 20)
tg_status tgi_json_load(const char *path, tgi_json **doc, tgi_err *err);
void tgi_json_free(tgi_json **doc);

const tgi_json *tgi_json_get(const tgi_json *object, const char *key); /* NULL when absent */
const char *tgi_json_key(const tgi_json *v);
const tgi_json *tgi_json_first(const tgi_json *v); /* of an object or array; NULL: empty */
const tgi_json *tgi_json_next(const tgi_json *v);
bool tgi_json_is_object(const tgi_json *v);
bool tgi_json_is_array(const tgi_json *v);
bool tgi_json_is_null(const tgi_json *v); /* there, and null */
/* False, *out untouched, when v is NULL or of another type; strings are UTF-8, but for
 * bytes of file names that are none and were written as \udcXX. */
bool tgi_json_str(const tgi_json *v, const char **out);
bool tgi_json_num(const tgi_json *v, double *out);
bool tgi_json_int(const tgi_json *v, int64_t *out); /* written without point or exponent */
bool tgi_json_bool(const tgi_json *v, bool *out);

#endif
