/* fingerprint_text.h - the form of a fingerprint: lines "key=value", as long as they need be.
 */
#ifndef TGI_FINGERPRINT_TEXT_H
#define TGI_FINGERPRINT_TEXT_H

#include "engine/base/status.h"

#include <stddef.h>

/* Begin with {0}. A line that found no memory is remembered, and told when the text is taken.
 */
typedef struct tgi_lines {
    char *p;
    size_t n, cap;
    int lost;
} tgi_lines;

/* One line: a formatted value. Control characters in it are written as \xHH, so that a value
 * never ends its line or begins another. */
void tgi_lines_add(tgi_lines *t, const char *key, const char *fmt, ...) TGI_PRINTF(3, 4);
/* The text; tgi_free. TG_E_NOMEM frees what there is. */
tg_status tgi_lines_take(tgi_lines *t, char **out, tgi_err *err);

/* Look at the lines of a text one after the other: begin with *at = text. 0 at the end. Keys
 * and values are views without a 0 behind them; a line without '=' is all key. */
typedef struct tgi_line {
    const char *key, *value;
    size_t key_n, value_n;
} tgi_line;
int tgi_lines_next(const char **at, const char *end, tgi_line *out);

/* Value of a key in a text, NUL-terminated into buf; 0 when absent or too long. */
int tgi_fingerprint_get(const char *text, size_t n, const char *key, char *buf, size_t cap);
/* When anything of the input's files was changed last: rights and names, too, so that who asks must know
 * what another value means (tgi_same_input). */
#define TGI_INPUT_CHANGED "input_ctime"
/* TG_E_CHANGED naming the first key that differs, is missing or is only stored. Those of the
 * plan ("plan", "on_bad_tile") may differ, and TGI_INPUT_CHANGED. */
tg_status tgi_fingerprint_compare(const char *stored, size_t n, const char *ours, tgi_err *err);
/* The same of a finished output `output`: TG_E_EXISTS. What computed it may differ too, and which version of
 * which program: nobody goes on with it. */
tg_status tgi_fingerprint_compare_done(const char *stored, size_t n, const char *ours,
                                       const char *output, tgi_err *err);

#endif
