/* opts_json.c - sets of options as job files, both ways.
 *
 * A job file is one JSON object, option names to values (docs/json.md). Only options of the job
 * are written; the ones that steer a single command (--json, --yes, ...) are not. Strings carry
 * the text of the value as the user gave it, so a written file reads back as the same set.
 *
 * The reader is strict: one flat object, no name twice, nothing behind it, at most 1 MiB. It
 * unescapes strings in place (an escape is never shorter than what it stands for). Every value
 * is checked, also those that lose against an option that is set already. Values are text,
 * which must stay as it was written ("0.10" is not 0.1), so numbers are taken as their
 * characters.
 * @source RFC 8259. */
#include "engine/base/mem.h"
#include "engine/opts_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ---- write: the same walk twice, first to count, then to fill ---- */

typedef struct sink {
    char *buf; /* NULL while counting */
    size_t n;
} sink;

static void put(sink *s, const char *text, size_t n)
{
    if (s->buf)
        memcpy(s->buf + s->n, text, n);
    s->n += n;
}

static void put_text(sink *s, const char *text)
{
    put(s, text, strlen(text));
}

/* A JSON string. Bytes above 0x7f pass as they are: a path is bytes, and the reader takes them
 * back unchanged. */
static void put_string(sink *s, const char *text)
{
    put(s, "\"", 1);
    for (; *text; text++) {
        char esc[8];
        if (*text == '"' || *text == '\\')
            put(s, esc, (size_t)snprintf(esc, sizeof esc, "\\%c", *text));
        else if ((unsigned char)*text < 0x20)
            put(s, esc, (size_t)snprintf(esc, sizeof esc, "\\u%04x", (unsigned)*text));
        else
            put(s, text, 1);
    }
    put(s, "\"", 1);
}

static void put_value(sink *s, const tg_opts *o, tgi_opt id)
{
    if (id == TGI_OPT_INPUT_TENSOR) {
        put(s, "[", 1);
        for (int i = 0; i < o->n_tensor; i++) {
            put_text(s, i ? ", " : "");
            put_string(s, o->tensor[i]);
        }
        put(s, "]", 1);
    } else if (tgi_opt_is_switch(id)) {
        put_text(s, tgi_opts_flag(o, id) ? "true" : "false");
    } else {
        put_string(s, o->value[id]);
    }
}

static void put_object(sink *s, const tg_opts *o)
{
    size_t n;
    const tg_option *t = tg_option_table(&n);
    bool any = false;
    put_text(s, "{");
    for (size_t i = 0; i < n; i++) {
        if (!tgi_opt_in_job((tgi_opt)i) || !tgi_opts_given(o, (tgi_opt)i))
            continue;
        put_text(s, any ? ",\n  " : "\n  ");
        put_string(s, t[i].name);
        put_text(s, ": ");
        put_value(s, o, (tgi_opt)i);
        any = true;
    }
    put_text(s, any ? "\n}\n" : "}\n");
}

tg_status tgi_opts_to_json(const tg_opts *o, char **json, tgi_err *err)
{
    sink s = {0};
    put_object(&s, o);
    char *text = tgi_malloc(TGI_TAG_MISC, s.n + 1);
    if (!text)
        return tgi_fail(err, TG_E_NOMEM, "no memory for the text of a job file");
    s = (sink){.buf = text};
    put_object(&s, o);
    text[s.n] = 0;
    *json = text;
    return TG_OK;
}

/* ---- read ---- */

enum { FILE_MAX = 1 << 20 };

typedef struct reader {
    char *p, *end;    /* text, followed by a NUL */
    const char *what; /* for details */
    const char *start;
    tgi_err *err;
} reader;

static tg_status bad(const reader *r, const char *expected)
{
    int line = 1;
    for (const char *p = r->start; p < r->p && p < r->end; p++)
        line += *p == '\n';
    return tgi_fail(r->err, TG_E_FORMAT, "%s: line %d: %s expected in this job file", r->what,
                    line, expected);
}

static bool next_is(reader *r, char c)
{
    while (*r->p == ' ' || *r->p == '\t' || *r->p == '\n' || *r->p == '\r')
        r->p++;
    return *r->p == c && r->p < r->end;
}

static bool accept(reader *r, char c)
{
    if (!next_is(r, c))
        return false;
    r->p++;
    return true;
}

/* Four hex digits at p; -1 when they are not. */
static int hex4(const char *p)
{
    int v = 0;
    for (int i = 0; i < 4; i++) {
        const char c = p[i];
        const int d = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
        if (d < 0)
            return -1;
        v = v * 16 + d;
    }
    return v;
}

static char *put_utf8(char *to, int u)
{
    const int n = u < 0x80 ? 1 : u < 0x800 ? 2 : u < 0x10000 ? 3 : 4;
    static const int lead[5] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (int i = n - 1; i > 0; i--, u >>= 6)
        to[i] = (char)(0x80 | (u & 0x3f));
    to[0] = (char)(lead[n] | u);
    return to + n;
}

/* \uXXXX or a surrogate pair; r->p is behind the 'u'. False for half a pair and for NUL, which
 * no path or name can hold. */
static bool unicode_escape(reader *r, char **to)
{
    int u = hex4(r->p);
    if (u <= 0 || (u >= 0xdc00 && u < 0xe000))
        return false;
    r->p += 4;
    if (u >= 0xd800 && u < 0xdc00) {
        const int low = r->p[0] == '\\' && r->p[1] == 'u' ? hex4(r->p + 2) : -1;
        if (low < 0xdc00 || low >= 0xe000)
            return false;
        u = 0x10000 + ((u - 0xd800) << 10) + (low - 0xdc00);
        r->p += 6;
    }
    *to = put_utf8(*to, u);
    return true;
}

/* A string, unescaped in place; view of the text. */
static tg_status read_string(reader *r, char **out)
{
    static const char from[] = "\"\\/bfnrt", plain[] = "\"\\/\b\f\n\r\t";
    if (!accept(r, '"'))
        return bad(r, "a string in quotes is");
    char *first = r->p, *to = r->p;
    while (*r->p != '"') {
        if ((unsigned char)*r->p < 0x20) /* the NUL at the end too */
            return bad(r, "the end of a string is");
        if (*r->p != '\\') {
            *to++ = *r->p++;
            continue;
        }
        const char *known = r->p[1] ? strchr(from, r->p[1]) : NULL;
        const bool wide = r->p[1] == 'u';
        r->p += known || wide ? 2 : 0;
        if (known)
            *to++ = plain[known - from];
        else if (!wide || !unicode_escape(r, &to))
            return bad(r, "a legal escape is");
    }
    r->p++;
    *to = 0;
    *out = first;
    return TG_OK;
}

/* true, false or a number as its characters, copied to buf. */
static tg_status read_word(reader *r, char *buf, size_t cap)
{
    size_t n = 0;
    while (n + 1 < cap && *r->p && strchr("+-.eE0123456789truefals", *r->p))
        buf[n++] = *r->p++;
    buf[n] = 0;
    return n ? TG_OK : bad(r, "a string, a number, true or false is");
}

/* One value of option `name`; `keep` is false when an option set before wins. */
static tg_status read_value(reader *r, tg_opts *o, const char *name, bool keep)
{
    const tgi_opt id = tgi_opt_find(name);
    char word[40], *text = word;
    if (next_is(r, '"')) {
        TGI_TRY(read_string(r, &text));
    } else {
        TGI_TRY(read_word(r, word, sizeof word));
        const bool is_bool = strcmp(word, "true") == 0 || strcmp(word, "false") == 0;
        if (id != TGI_OPT_COUNT && (is_bool ? !tgi_opt_is_switch(id) : !tgi_opt_is_number(id)))
            return tgi_fail(
                r->err, TG_E_ARG, "%s: \"%s\" is written as a string, such as \"%s\"", r->what,
                name, tg_option_table(NULL)[id].arg ? tg_option_table(NULL)[id].arg : "true");
    }
    tgi_opt checked = TGI_OPT_COUNT;
    tg_status st = keep ? tgi_opts_set(o, name, text, r->err)
                        : tgi_opt_check(name, text, &checked, r->err);
    if (st != TG_OK)
        tgi_err_prefix(r->err, "%s", r->what);
    return st;
}

static tg_status read_tensors(reader *r, tg_opts *o, bool keep)
{
    if (!accept(r, '['))
        return bad(r, "an array of \"NAME=FILE\" is");
    if (accept(r, ']'))
        return TG_OK;
    do
        TGI_TRY(read_value(r, o, "input-tensor", keep));
    while (accept(r, ','));
    return accept(r, ']') ? TG_OK : bad(r, "] or a comma is");
}

/* "name": value; `given` says what was set before the file, `seen` what the file had already.
 */
static tg_status read_member(reader *r, tg_opts *o, const bool *given, bool *seen)
{
    char *name;
    TGI_TRY(read_string(r, &name));
    if (!accept(r, ':'))
        return bad(r, "a colon is");
    const tgi_opt id = tgi_opt_find(name);
    if (id == TGI_OPT_CONFIG || id == TGI_OPT_SAVE)
        return tgi_fail(r->err, TG_E_ARG, "%s: \"%s\" is no key of a job file", r->what, name);
    if (id != TGI_OPT_COUNT) {
        if (seen[id])
            return tgi_fail(r->err, TG_E_FORMAT, "%s: \"%s\" is there twice", r->what, name);
        seen[id] = true;
    }
    const bool keep = id == TGI_OPT_COUNT || !given[id];
    if (id == TGI_OPT_INPUT_TENSOR)
        return read_tensors(r, o, keep);
    return read_value(r, o, name, keep);
}

static tg_status read_object(reader *r, tg_opts *o)
{
    bool given[TGI_OPT_COUNT], seen[TGI_OPT_COUNT] = {false};
    for (int i = 0; i < TGI_OPT_COUNT; i++)
        given[i] = tgi_opts_given(o, (tgi_opt)i);
    if (!accept(r, '{'))
        return bad(r, "{ is");
    if (!accept(r, '}')) {
        do
            TGI_TRY(read_member(r, o, given, seen));
        while (accept(r, ','));
        if (!accept(r, '}'))
            return bad(r, "} or a comma is");
    }
    (void)next_is(r, 0); /* skip blanks */
    return r->p == r->end ? TG_OK : bad(r, "the end is");
}

tg_status tgi_opts_from_json(tg_opts *o, const char *text, size_t n, const char *what,
                             tgi_err *err)
{
    if (n > FILE_MAX)
        return tgi_fail(err, TG_E_FORMAT, "%s: too large for a job file (over 1 MiB)", what);
    char *copy = tgi_malloc(TGI_TAG_MISC, n + 1);
    if (!copy)
        return tgi_fail(err, TG_E_NOMEM, "%s: no memory to read it", what);
    memcpy(copy, text, n);
    copy[n] = 0;
    reader r = {.p = copy, .end = copy + n, .what = what, .start = copy, .err = err};
    const tg_status st = read_object(&r, o);
    tgi_free(copy);
    return st;
}

tg_status tgi_opts_load(tg_opts *o, const char *path, tgi_err *err)
{
    FILE *f = fopen(path, "rbe");
    if (!f)
        return tgi_fail(err, TG_E_NOT_FOUND, "%s: %s", path, strerror(errno));
    char *text = tgi_malloc(TGI_TAG_MISC, FILE_MAX + 1);
    tg_status st = TG_OK;
    if (!text) {
        st = tgi_fail(err, TG_E_NOMEM, "%s: no memory to read it", path);
    } else {
        const size_t n = fread(text, 1, FILE_MAX + 1, f);
        st = ferror(f) ? tgi_fail(err, TG_E_IO, "%s: %s", path, strerror(errno))
                       : tgi_opts_from_json(o, text, n, path, err);
    }
    tgi_free(text);
    fclose(f);
    return st;
}
