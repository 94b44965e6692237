/* status.c - writes the one line of a failure, and the names of the statuses. */
#include "engine/base/status.h"

#undef tgi_fail /* a macro for the analyser, see the header */

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void clean_line(char *s)
{
    for (; *s; s++)
        if ((unsigned char)*s < 0x20 || *s == 0x7f)
            *s = '?';
}

tg_status tgi_fail(tgi_err *err, tg_status st, const char *fmt, ...)
{
    if (!err || err->code != TG_OK)
        return st;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(err->text, sizeof err->text, fmt, ap);
    va_end(ap);
    clean_line(err->text);
    err->code = st;
    return st;
}

tg_status tgi_err_tried(tgi_err *err, tg_status st, const char *asked_by, uint64_t bytes)
{
    if (err && !err->asked_by && (err->code == TG_E_BUDGET || err->code == TG_E_NOMEM)) {
        err->asked_by = asked_by;
        err->tried_bytes = bytes;
    }
    return st;
}

tg_status tgi_err_try(tgi_err *err, tg_status st, const char *option, const char *value)
{
    if (err && err->code == st && strlen(value) < sizeof err->try_value) {
        err->try_option = option;
        snprintf(err->try_value, sizeof err->try_value, "%s", value);
    }
    return st;
}

void tgi_err_prefix(tgi_err *err, const char *fmt, ...)
{
    if (!err || err->code == TG_OK)
        return;
    char text[TGI_ERR_TEXT];
    va_list ap;
    va_start(ap, fmt);
    const int n = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (n < 0 || (size_t)n + 3 > sizeof text)
        return;
    snprintf(text + n, sizeof text - (size_t)n, ": %.*s", (int)(sizeof text - (size_t)n - 3),
             err->text);
    clean_line(text);
    memcpy(err->text, text, sizeof text);
}

const char *tgi_status_name(tg_status st)
{
    switch (st) {
#define X(name, value, sentence)                                                               \
    case name:                                                                                 \
        return #name;
        TG_STATUS_LIST(X)
#undef X
    }
    return "TG_E_?";
}

const char *tgi_status_sentence(tg_status st)
{
    switch (st) {
#define X(name, value, sentence)                                                               \
    case name:                                                                                 \
        return sentence;
        TG_STATUS_LIST(X)
#undef X
    }
    return "unknown status";
}
