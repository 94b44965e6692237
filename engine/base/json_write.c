/* json_write.c - JSON text, member by member, into one growing buffer. */
#include "engine/base/json.h"

#include "engine/base/mem.h"
#include "engine/base/number.h"
#include "engine/base/utf8.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void put(tgi_jw *w, const char *s, size_t n)
{
    if (w->failed)
        return;
    if (w->n + n + 1 > w->cap) {
        const size_t cap = (w->n + n + 256) * 2;
        char *t = tgi_realloc_n(TGI_TAG_MISC, w->text, cap, 1);
        if (!t) {
            w->failed = 1;
            return;
        }
        w->text = t;
        w->cap = cap;
    }
    memcpy(w->text + w->n, s, n);
    w->n += n;
    w->text[w->n] = 0;
}

/* File names are bytes and JSON is UTF-8: a byte that belongs to no character is written as
 * \udcXX, from which the reader (and Python, PEP 383) makes the same byte again. */
static void put_quoted(tgi_jw *w, const char *s)
{
    put(w, "\"", 1);
    for (size_t n; *s; s += n ? n : 1) {
        char esc[8];
        n = tgi_utf8_length(s, strnlen(s, 4));
        if (n == 0)
            put(w, esc, (size_t)snprintf(esc, sizeof esc, "\\udc%02x", (unsigned char)*s));
        else if (*s == '"' || *s == '\\')
            put(w, esc, (size_t)snprintf(esc, sizeof esc, "\\%c", *s));
        else if (n == 1 && (unsigned char)*s < 0x20)
            put(w, esc, (size_t)snprintf(esc, sizeof esc, "\\u%04x", (unsigned)*s));
        else
            put(w, s, n);
    }
    put(w, "\"", 1);
}

static void begin_member(tgi_jw *w, const char *key)
{
    if (w->comma)
        put(w, ",", 1);
    w->comma = 1;
    if (key) {
        put_quoted(w, key);
        put(w, ":", 1);
    }
}

void tgi_jw_begin(tgi_jw *w, const char *key, char bracket)
{
    begin_member(w, key);
    put(w, &bracket, 1);
    w->comma = 0;
}

void tgi_jw_end(tgi_jw *w, char bracket)
{
    put(w, &bracket, 1);
    w->comma = 1;
}

void tgi_jw_str(tgi_jw *w, const char *key, const char *value)
{
    begin_member(w, key);
    if (value)
        put_quoted(w, value);
    else
        put(w, "null", 4);
}

void tgi_jw_int(tgi_jw *w, const char *key, int64_t value)
{
    char t[32];
    begin_member(w, key);
    put(w, t, (size_t)snprintf(t, sizeof t, "%lld", (long long)value));
}

void tgi_jw_uint(tgi_jw *w, const char *key, uint64_t value)
{
    char t[32];
    begin_member(w, key);
    put(w, t, (size_t)snprintf(t, sizeof t, "%llu", (unsigned long long)value));
}

void tgi_jw_num(tgi_jw *w, const char *key, double value)
{
    char t[TGI_NUMBER_TEXT];
    begin_member(w, key);
    if (!isfinite(value)) {
        put(w, "null", 4);
        return;
    }
    put(w, t, tgi_number_text(value, t));
}

void tgi_jw_bool(tgi_jw *w, const char *key, int value)
{
    begin_member(w, key);
    put(w, value ? "true" : "false", value ? 4 : 5);
}

tg_status tgi_jw_take(tgi_jw *w, char **out, tgi_err *err)
{
    tg_status st = TG_OK;
    if (w->failed || !w->text) {
        tgi_free(w->text);
        st = tgi_fail(err, TG_E_NOMEM, "no memory for a JSON text");
    } else {
        *out = w->text;
    }
    memset(w, 0, sizeof *w);
    return st;
}
