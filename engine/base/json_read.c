/* json_read.c - a strict JSON reader (RFC 8259), for files that strangers wrote.
 *
 * Why our own and not a library's: keys given twice, control characters, invalid UTF-8, "01"
 * and bytes after the end are refused here; integers keep all 64 bits; memory comes from mem.c.
 *
 * A document is one block: the nodes, then the decoded strings. Both sizes are bounded by the
 * text, so they are known before the first byte is read: every value but the first follows a
 * '[', '{' or ',', and a decoded string with its NUL is never longer than its quoted form. */
#include "engine/base/arith.h"
#include "engine/base/input.h"
#include "engine/base/json.h"
#include "engine/base/mem.h"
#include "engine/base/number.h"
#include "engine/base/utf8.h"

#include <string.h>

#define MAX_DEPTH 64
#define MAX_MEMBERS 16384 /* of one object: looking for duplicates is quadratic */

typedef enum kind { NONE, BOOLEAN, INTEGER, REAL, STRING, ARRAY, OBJECT } kind;

struct tgi_json {
    kind kind;
    uint32_t hash;   /* of the key */
    const char *key; /* NULL outside of objects */
    const tgi_json *next, *child;
    union {
        bool boolean;
        int64_t integer;
        double real;
        const char *string;
    } u;
};

typedef struct reader {
    const char *text, *at, *end, *what;
    tgi_json *node; /* next unused */
    char *string;   /* next unused */
    int depth;
    tgi_err *err;
} reader;

static tg_status read_value(reader *r, tgi_json *v);

static tg_status bad(reader *r, const char *why)
{
    const char *cut =
        r->at >= r->end ? ", and the text ends there: it may have been cut off" : "";
    int64_t line = 1;
    for (const char *p = r->text; p < r->at; p++)
        line += *p == '\n';
    return tgi_fail(r->err, TG_E_FORMAT, "%s: line %lld, byte %lld: %s%s", r->what,
                    (long long)line, (long long)(r->at - r->text), why, cut);
}

static void skip_space(reader *r)
{
    while (r->at < r->end &&
           (*r->at == ' ' || *r->at == '\t' || *r->at == '\r' || *r->at == '\n'))
        r->at++;
}

/* Skip space, then `c` if it is next. */
static bool accept(reader *r, char c)
{
    skip_space(r);
    if (r->at == r->end || *r->at != c)
        return false;
    r->at++;
    return true;
}

static bool accept_word(reader *r, const char *word)
{
    const size_t n = strlen(word);
    if ((size_t)(r->end - r->at) < n || memcmp(r->at, word, n) != 0)
        return false;
    r->at += n;
    return true;
}

/* ---- Strings ----------------------------------------------------------------------------- */

/* Four hexadecimal digits at r->at, or -1. */
static int32_t read_hex4(reader *r)
{
    int32_t v = 0;
    if (r->end - r->at < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        const char c = *r->at++;
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

static char *put_utf8(char *s, uint32_t c)
{
    const int more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static const unsigned char lead[] = {0, 0xc0, 0xe0, 0xf0};
    *s++ = (char)(lead[more] | (c >> (6 * more)));
    for (int i = more - 1; i >= 0; i--)
        *s++ = (char)(0x80 | ((c >> (6 * i)) & 0x3f));
    return s;
}

/* After "\u": a code point, its second half included. */
static tg_status read_unicode(reader *r)
{
    int32_t c = read_hex4(r);
    if (c >= 0xd800 && c < 0xdc00) {
        const int32_t low = accept_word(r, "\\u") ? read_hex4(r) : -1;
        if (low < 0xdc00 || low > 0xdfff)
            return bad(r, "half of a surrogate pair");
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
    } else if (c >= 0xdc80 && c <= 0xdcff) { /* a byte of a file name, see json_write.c */
        *r->string++ = (char)(c - 0xdc00);
        return TG_OK;
    } else if (c >= 0xdc00 && c <= 0xdfff) {
        return bad(r, "half of a surrogate pair");
    }
    if (c <= 0)
        return bad(r, c ? "\\u without four hexadecimal digits" : "\\u0000 in a string");
    r->string = put_utf8(r->string, (uint32_t)c);
    return TG_OK;
}

static tg_status read_escape(reader *r)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    if (r->at == r->end)
        return bad(r, "the string does not end");
    const char c = *r->at++;
    if (c == 'u')
        return read_unicode(r);
    const char *found = c ? strchr(from, c) : NULL;
    if (!found)
        return bad(r, "unknown escape");
    *r->string++ = to[found - from];
    return TG_OK;
}

static tg_status read_utf8(reader *r)
{
    const size_t n = tgi_utf8_length(r->at, (size_t)(r->end - r->at));
    if (n == 0)
        return bad(r, "not UTF-8");
    if ((unsigned char)*r->at < 0x20)
        return bad(r, "a control character in a string");
    memcpy(r->string, r->at, n);
    r->string += n;
    r->at += n;
    return TG_OK;
}

/* After the opening quote. */
static tg_status read_string(reader *r, const char **out)
{
    const char *start = r->string;
    while (r->at < r->end && *r->at != '"') {
        if (*r->at == '\\') {
            r->at++;
            TGI_TRY(read_escape(r));
        } else {
            TGI_TRY(read_utf8(r));
        }
    }
    if (r->at == r->end)
        return bad(r, "the string does not end");
    r->at++;
    *r->string++ = 0;
    *out = start;
    return TG_OK;
}

/* ---- Numbers ----------------------------------------------------------------------------- */

static bool as_integer(const char *s, size_t n, int64_t *out)
{
    const bool minus = s[0] == '-';
    int64_t v = 0;
    for (size_t i = minus; i < n; i++) {
        const int64_t digit = s[i] - '0';
        if (digit < 0 || digit > 9 || !tgi_mul64_ok(v, 10, &v) ||
            !tgi_add64_ok(v, minus ? -digit : digit, &v))
            return false;
    }
    *out = v;
    return true;
}

static tg_status read_number(reader *r, tgi_json *v)
{
    const char *s = r->at;
    while (r->at < r->end && *r->at && strchr("0123456789+-.eE", *r->at))
        r->at++;
    const size_t n = (size_t)(r->at - s), first = n && s[0] == '-';
    double real;
    const bool starts = n > first && s[first] >= '0' && s[first] <= '9';
    const bool padded = n > first + 1 && s[first] == '0' && s[first + 1] >= '0';
    const char *point = n ? memchr(s, '.', n) : NULL;
    const bool open_point =
        point && (point + 1 == s + n || point[1] < '0' || point[1] > '9'); /* "1." */
    if (!starts || padded || open_point || !tgi_number_parse(s, n, &real)) {
        r->at = s;
        return bad(r, n ? "not a number, or beyond a double" : "a value is missing");
    }
    v->kind = INTEGER;
    if (!as_integer(s, n, &v->u.integer)) {
        v->kind = REAL;
        v->u.real = real;
    }
    return TG_OK;
}

/* ---- Containers -------------------------------------------------------------------------- */

static tg_status read_array(reader *r, tgi_json *v)
{
    const tgi_json **link = &v->child;
    v->kind = ARRAY;
    if (accept(r, ']'))
        return TG_OK;
    do {
        tgi_json *e = r->node++;
        TGI_TRY(read_value(r, e));
        *link = e;
        link = &e->next;
    } while (accept(r, ','));
    return accept(r, ']') ? TG_OK : bad(r, "',' or ']' expected");
}

static uint32_t hash_of(const char *s) /* FNV-1a */
{
    uint32_t h = 2166136261u;
    for (; *s; s++)
        h = (h ^ (unsigned char)*s) * 16777619u;
    return h;
}

static tg_status read_key(reader *r, const tgi_json *object, tgi_json *member)
{
    if (!accept(r, '"'))
        return bad(r, "a quoted name expected");
    TGI_TRY(read_string(r, &member->key));
    member->hash = hash_of(member->key);
    int n = 1;
    for (const tgi_json *m = object->child; m; m = m->next, n++)
        if (m->hash == member->hash && strcmp(m->key, member->key) == 0)
            return tgi_fail(r->err, TG_E_FORMAT, "%s: \"%.200s\" is given twice", r->what,
                            member->key);
    if (n > MAX_MEMBERS)
        return bad(r, "an object of too many members");
    return accept(r, ':') ? TG_OK : bad(r, "':' expected");
}

static tg_status read_object(reader *r, tgi_json *v)
{
    const tgi_json **link = &v->child;
    v->kind = OBJECT;
    if (accept(r, '}'))
        return TG_OK;
    do {
        tgi_json *m = r->node++;
        TGI_TRY(read_key(r, v, m));
        TGI_TRY(read_value(r, m));
        *link = m;
        link = &m->next;
    } while (accept(r, ','));
    return accept(r, '}') ? TG_OK : bad(r, "',' or '}' expected");
}

/* `v` is zero but for its key. */
static tg_status read_value(reader *r, tgi_json *v)
{
    skip_space(r);
    if (r->at < r->end && (*r->at == '{' || *r->at == '[')) {
        if (++r->depth > MAX_DEPTH)
            return bad(r, "nested too deep");
        const tg_status st = *r->at++ == '{' ? read_object(r, v) : read_array(r, v);
        r->depth--;
        return st;
    }
    if (accept(r, '"')) {
        v->kind = STRING;
        return read_string(r, &v->u.string);
    }
    if (accept_word(r, "null"))
        return TG_OK;
    v->u.boolean = accept_word(r, "true");
    if (v->u.boolean || accept_word(r, "false")) {
        v->kind = BOOLEAN;
        return TG_OK;
    }
    return read_number(r, v);
}

tg_status tgi_json_parse(const char *text, size_t n, const char *what, tgi_json **doc,
                         tgi_err *err)
{
    size_t n_nodes = 1;
    for (size_t i = 0; i < n; i++)
        n_nodes += text[i] == '[' || text[i] == '{' || text[i] == ',';
    const size_t node_bytes = tgi_sat_mul(n_nodes, sizeof(tgi_json));
    tgi_json *d = tgi_calloc(TGI_TAG_MISC, tgi_sat_add(node_bytes, tgi_sat_add(n, 1)), 1);
    if (!d)
        return tgi_fail(err, TG_E_NOMEM, "%s: no memory for %zu values", what, n_nodes);
    reader r = {.text = text, .at = text, .end = text + n, .what = what, .err = err};
    r.node = d + 1;
    r.string = (char *)d + node_bytes;
    tg_status st = read_value(&r, d);
    skip_space(&r);
    if (st == TG_OK && r.at != r.end)
        st = bad(&r, "bytes after the end of the value");
    if (st != TG_OK) {
        tgi_free(d);
        return st;
    }
    *doc = d;
    return TG_OK;
}

tg_status tgi_json_load(const char *path, tgi_json **doc, tgi_err *err)
{
    char *text = NULL;
    size_t n = 0;
    TGI_TRY(tgi_input_load(path, TGI_JSON_FILE, &text, &n, err));
    const tg_status st = tgi_json_parse(text, n, path, doc, err);
    tgi_free(text);
    return st;
}

void tgi_json_free(tgi_json **doc)
{
    if (doc) {
        tgi_free(*doc);
        *doc = NULL;
    }
}

/* ---- Looking ----------------------------------------------------------------------------- */

const tgi_json *tgi_json_get(const tgi_json *object, const char *key)
{
    if (!tgi_json_is_object(object))
        return NULL;
    for (const tgi_json *m = object->child; m; m = m->next)
        if (strcmp(m->key, key) == 0)
            return m;
    return NULL;
}

const char *tgi_json_key(const tgi_json *v)
{
    return v ? v->key : NULL;
}

const tgi_json *tgi_json_first(const tgi_json *v)
{
    return v ? v->child : NULL;
}

const tgi_json *tgi_json_next(const tgi_json *v)
{
    return v ? v->next : NULL;
}

bool tgi_json_is_object(const tgi_json *v)
{
    return v && v->kind == OBJECT;
}

bool tgi_json_is_array(const tgi_json *v)
{
    return v && v->kind == ARRAY;
}

bool tgi_json_is_null(const tgi_json *v)
{
    return v && v->kind == NONE;
}

bool tgi_json_str(const tgi_json *v, const char **out)
{
    if (!v || v->kind != STRING)
        return false;
    *out = v->u.string;
    return true;
}

bool tgi_json_num(const tgi_json *v, double *out)
{
    if (!v || (v->kind != INTEGER && v->kind != REAL))
        return false;
    *out = v->kind == REAL ? v->u.real : (double)v->u.integer;
    return true;
}

bool tgi_json_int(const tgi_json *v, int64_t *out)
{
    if (!v || v->kind != INTEGER)
        return false;
    *out = v->u.integer;
    return true;
}

bool tgi_json_bool(const tgi_json *v, bool *out)
{
    if (!v || v->kind != BOOLEAN)
        return false;
    *out = v->u.boolean;
    return true;
}
