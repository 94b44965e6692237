#include "engine/base/json.h"

#include "engine/base/mem.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_DEPTH 64
#define MAX_FILE ((off_t)16 << 20)

/* ---- Writing ----------------------------------------------------------------------------- */

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

static void put_quoted(tgi_jw *w, const char *s)
{
    put(w, "\"", 1);
    for (; *s; s++) {
        char esc[8];
        if (*s == '"' || *s == '\\')
            put(w, esc, (size_t)snprintf(esc, sizeof esc, "\\%c", *s));
        else if ((unsigned char)*s < 0x20)
            put(w, esc, (size_t)snprintf(esc, sizeof esc, "\\u%04x", (unsigned)*s));
        else
            put(w, s, 1);
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
    char t[40];
    begin_member(w, key);
    if (!isfinite(value)) {
        put(w, "null", 4);
        return;
    }
    int n = 0;
    for (int digits = 6; digits <= 17; digits++) {
        n = snprintf(t, sizeof t, "%.*g", digits, value);
        if (strtod(t, NULL) == value)
            break;
    }
    put(w, t, (size_t)n);
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

/* ---- Reading ----------------------------------------------------------------------------- */

static cJSON *raw(const tgi_json *v)
{
    return (cJSON *)(void *)(uintptr_t)v;
}

static const tgi_json *wrap(const cJSON *v)
{
    return (const tgi_json *)(const void *)v;
}

static void *json_malloc(size_t n)
{
    return tgi_malloc(TGI_TAG_MISC, n);
}

/* cJSON nests by calling itself: look at the brackets first, outside of strings. */
static int too_deep(const char *text, size_t n)
{
    int depth = 0, in_string = 0;
    for (size_t i = 0; i < n; i++) {
        if (in_string) {
            if (text[i] == '\\')
                i++;
            else if (text[i] == '"')
                in_string = 0;
            continue;
        }
        if (text[i] == '"')
            in_string = 1;
        else if (text[i] == '{' || text[i] == '[')
            depth++;
        else if (text[i] == '}' || text[i] == ']')
            depth--;
        if (depth > MAX_DEPTH)
            return 1;
    }
    return 0;
}

static const char *find_duplicate(const cJSON *v)
{
    for (const cJSON *a = v->child; a; a = a->next) {
        for (const cJSON *b = cJSON_IsObject(v) ? a->next : NULL; b; b = b->next)
            if (a->string && b->string && strcmp(a->string, b->string) == 0)
                return a->string;
        const char *deeper = find_duplicate(a);
        if (deeper)
            return deeper;
    }
    return NULL;
}

tg_status tgi_json_parse(const char *text, size_t n, const char *what, tgi_json **doc,
                         tgi_err *err)
{
    cJSON_Hooks hooks = {json_malloc, tgi_free};
    const char *end = NULL;
    if (too_deep(text, n))
        return tgi_fail(err, TG_E_FORMAT, "%s: nested more than %d deep", what, MAX_DEPTH);
    cJSON_InitHooks(&hooks);
    cJSON *v = cJSON_ParseWithLengthOpts(text, n, &end, 0);
    if (!v)
        return tgi_fail(err, TG_E_FORMAT, "%s: no JSON at byte %lld", what,
                        end ? (long long)(end - text) : 0LL);
    while (end < text + n && strchr(" \t\r\n", *end) && *end)
        end++;
    const char *twice = find_duplicate(v);
    if (end != text + n || twice) {
        const tg_status st =
            twice ? tgi_fail(err, TG_E_FORMAT, "%s: \"%s\" is given twice", what, twice)
                  : tgi_fail(err, TG_E_FORMAT, "%s: bytes after the end at byte %lld", what,
                             (long long)(end - text));
        cJSON_Delete(v);
        return st;
    }
    *doc = (tgi_json *)(void *)v;
    return TG_OK;
}

static tg_status read_all(int fd, const char *path, char **text, size_t *n, tgi_err *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size > MAX_FILE)
        return tgi_fail(err, TG_E_FORMAT, "%s: not a file of at most 16 MiB", path);
    char *t = tgi_malloc(TGI_TAG_MISC, (size_t)st.st_size + 1);
    if (!t)
        return tgi_fail(err, TG_E_NOMEM, "%s: no memory to read it", path);
    size_t got = 0;
    for (ssize_t k; got < (size_t)st.st_size &&
                    (k = read(fd, t + got, (size_t)st.st_size - got)) > 0;)
        got += (size_t)k;
    *text = t;
    *n = got;
    return TG_OK;
}

tg_status tgi_json_load(const char *path, tgi_json **doc, tgi_err *err)
{
    char *text = NULL;
    size_t n = 0;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return tgi_fail(err, TG_E_NOT_FOUND, "%s: %s", path, strerror(errno));
    tg_status st = read_all(fd, path, &text, &n, err);
    close(fd);
    if (st == TG_OK)
        st = tgi_json_parse(text, n, path, doc, err);
    tgi_free(text);
    return st;
}

void tgi_json_free(tgi_json **doc)
{
    if (doc && *doc) {
        cJSON_Delete(raw(*doc));
        *doc = NULL;
    }
}

const tgi_json *tgi_json_get(const tgi_json *object, const char *key)
{
    return cJSON_IsObject(raw(object)) ? wrap(cJSON_GetObjectItemCaseSensitive(raw(object), key))
                                       : NULL;
}

const char *tgi_json_key(const tgi_json *v)
{
    return raw(v)->string;
}

const tgi_json *tgi_json_first(const tgi_json *v)
{
    return v ? wrap(raw(v)->child) : NULL;
}

const tgi_json *tgi_json_next(const tgi_json *v)
{
    return v ? wrap(raw(v)->next) : NULL;
}

bool tgi_json_is_object(const tgi_json *v)
{
    return cJSON_IsObject(raw(v));
}

bool tgi_json_is_array(const tgi_json *v)
{
    return cJSON_IsArray(raw(v));
}

bool tgi_json_str(const tgi_json *v, const char **out)
{
    if (!cJSON_IsString(raw(v)))
        return false;
    *out = raw(v)->valuestring;
    return true;
}

bool tgi_json_num(const tgi_json *v, double *out)
{
    if (!cJSON_IsNumber(raw(v)))
        return false;
    *out = raw(v)->valuedouble;
    return true;
}

bool tgi_json_bool(const tgi_json *v, bool *out)
{
    if (!cJSON_IsBool(raw(v)))
        return false;
    *out = cJSON_IsTrue(raw(v));
    return true;
}
