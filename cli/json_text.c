/* json_text.c - the library's JSON answers (info, plan --why) as lines for people.
 *
 * The command has no JSON library: it walks the text once, printing as it goes. An object
 * becomes one "key  value" line per member, nested objects are indented, arrays of plain values
 * are joined by commas, objects inside arrays and long texts become one line each. Keys in
 * _bytes and _gib are shown as sizes, those in _seconds as times. The walker accepts what a
 * correct writer makes; on anything else it prints the text itself. */
#include "text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    DEPTH_MAX = 32,
    KEY_COLUMN = 22,
    WIDE = 70 /* a list of texts longer than this is a line each */
};

typedef struct cursor {
    const char *p, *end;
    int most; /* entries of a list within it that are shown; 0: all */
} cursor;

static void blanks(cursor *c)
{
    while (c->p < c->end && strchr(" \t\r\n", *c->p) && *c->p)
        c->p++;
}

static bool at(cursor *c, char ch)
{
    blanks(c);
    return c->p < c->end && *c->p == ch;
}

static bool take(cursor *c, char ch)
{
    if (!at(c, ch))
        return false;
    c->p++;
    return true;
}

/* Step over a string; *s, *n become its inside, escapes untouched. */
static bool string(cursor *c, const char **s, size_t *n)
{
    if (!take(c, '"'))
        return false;
    *s = c->p;
    for (; c->p < c->end && *c->p != '"'; c->p++)
        if (*c->p == '\\' && ++c->p >= c->end)
            return false;
    if (c->p >= c->end)
        return false;
    *n = (size_t)(c->p - *s);
    c->p++;
    return true;
}

/* Step over any value. */
static bool skip(cursor *c, int depth)
{
    const char *s;
    size_t n;
    if (depth > DEPTH_MAX)
        return false;
    if (at(c, '"'))
        return string(c, &s, &n);
    if (take(c, '{')) {
        if (take(c, '}'))
            return true;
        do
            if (!string(c, &s, &n) || !take(c, ':') || !skip(c, depth + 1))
                return false;
        while (take(c, ','));
        return take(c, '}');
    }
    if (take(c, '[')) {
        if (take(c, ']'))
            return true;
        do
            if (!skip(c, depth + 1))
                return false;
        while (take(c, ','));
        return take(c, ']');
    }
    const char *first = c->p;
    while (c->p < c->end && (strchr("+-.", *c->p) || (*c->p >= '0' && *c->p <= '9') ||
                             (*c->p >= 'a' && *c->p <= 'z') || *c->p == 'E'))
        c->p++;
    return c->p > first;
}

/* Four hex digits after \u. */
static unsigned hex4(const char *s)
{
    char buf[5] = {0};
    memcpy(buf, s, 4);
    return (unsigned)strtoul(buf, NULL, 16);
}

static void put_code_point(FILE *to, unsigned u)
{
    if (u < 0x20 || u == 0x7f) {
        fputc(' ', to);
    } else if (u < 0x80) {
        fputc((int)u, to);
    } else if (u < 0x800) {
        fputc((int)(0xc0 | u >> 6), to);
        fputc((int)(0x80 | (u & 0x3f)), to);
    } else if (u >= 0xd800 && u < 0xe000) {
        fputc('?', to); /* half of a pair: rare enough to leave to --json */
    } else {
        fputc((int)(0xe0 | u >> 12), to);
        fputc((int)(0x80 | (u >> 6 & 0x3f)), to);
        fputc((int)(0x80 | (u & 0x3f)), to);
    }
}

/* The inside of a string, unescaped, without control characters. */
static void put_string(FILE *to, const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (s[i] != '\\' || i + 1 >= n) {
            const size_t control = cli_control(s + i, n - i);
            fputc(control ? '?' : s[i], to);
            i += control > 1;
            continue;
        }
        i++;
        if (s[i] == 'u' && n - i > 4) {
            put_code_point(to, hex4(s + i + 1));
            i += 4;
        } else {
            fputc(strchr("nrtbf", s[i]) ? ' ' : s[i], to);
        }
    }
}

/* Words with '_' between them; what a film's words are about may be anything. */
static void put_key(FILE *to, const char *s, size_t n)
{
    for (const char *end = s + n, *next; s < end; s = next + 1) {
        next = memchr(s, '_', (size_t)(end - s));
        put_string(to, s, (size_t)((next ? next : end) - s));
        if (!next)
            break;
        fputc(' ', to);
    }
}

static bool ends_in(const char *key, size_t n, const char *end)
{
    const size_t k = strlen(end);
    return n > k && memcmp(key + n - k, end, k) == 0;
}

/* "file_bytes", "smallest_bytes_for_gigapixel". */
static bool has_bytes(const char *key, size_t n)
{
    for (size_t i = 0; i + 6 <= n; i++)
        if (memcmp(key + i, "_bytes", 6) == 0 && (i + 6 == n || key[i + 6] == '_'))
            return true;
    return false;
}

/* How a number is shown, by the unit in its key. */
typedef enum unit { PLAIN, BYTES, GIB, SECONDS, EXTENT } unit;

static unit unit_of(const char *key, size_t n)
{
    return has_bytes(key, n)                        ? BYTES
           : ends_in(key, n, "_gib")                ? GIB
           : ends_in(key, n, "_seconds")            ? SECONDS
           : n == 5 && memcmp(key, "shape", 5) == 0 ? EXTENT
                                                    : PLAIN;
}

/* A string, number or word. */
static void put_scalar(FILE *to, cursor *c, unit u)
{
    const char *s = NULL;
    size_t n = 0;
    if (at(c, '"')) {
        if (string(c, &s, &n))
            put_string(to, s, n);
        return;
    }
    blanks(c);
    s = c->p;
    if (!skip(c, 0))
        return;
    if (c->p - s == 4 && memcmp(s, "null", 4) == 0) { /* left open, or not known */
        fputs(u == EXTENT ? "any" : "-", to);
        return;
    }
    const double v = strtod(s, NULL);
    char buf[CLI_TEXT];
    if (u == BYTES && v >= 0 && v < 1.8e19)
        fputs(cli_size((uint64_t)v, buf), to);
    else if (u == GIB)
        fprintf(to, "%.2f GiB", v);
    else if (u == SECONDS && v < 1.0)
        fprintf(to, "%.3g s", v);
    else if (u == SECONDS)
        fputs(cli_seconds(v, buf), to);
    else if (memchr(s, '.', (size_t)(c->p - s)) && c->p - s > 8)
        fprintf(to, "%.6g", v);
    else
        fwrite(s, 1, (size_t)(c->p - s), to);
}

/* A value on the current line: scalars, {a 1, b 2}, [1, 2]. */
static void put_inline(FILE *to, cursor *c, unit u)
{
    const char *s;
    size_t n;
    bool first = true;
    if (take(c, '[')) {
        if (at(c, ']'))
            fputs("none", to);
        while (!take(c, ']') && c->p < c->end) {
            if (!first)
                fputs(", ", to);
            first = false;
            put_inline(to, c, u);
            take(c, ',');
        }
    } else if (take(c, '{')) {
        while (!take(c, '}') && string(c, &s, &n) && take(c, ':')) {
            if (!first)
                fputs(", ", to);
            first = false;
            put_string(to, s, n);
            fputc(' ', to);
            put_inline(to, c, unit_of(s, n));
            take(c, ',');
        }
    } else {
        put_scalar(to, c, u);
    }
}

static void put_lines(FILE *to, cursor *c, int indent);

/* The value of a member whose key is printed already; `pad` blanks before it on that line. */
static void put_member(FILE *to, cursor *c, int indent, int pad, unit u)
{
    cursor look = *c;
    if (take(&look, '{') && take(&look, '}')) {
        fprintf(to, "%*s-\n", pad > 1 ? pad : 1, "");
        *c = look;
        return;
    }
    if (at(c, '{')) {
        fputc('\n', to);
        put_lines(to, c, indent + 2);
        return;
    }
    look = *c;
    cursor end = *c;
    const bool array = take(&look, '[');
    const bool texts = array && at(&look, '"') && skip(&end, 0) && end.p - look.p > WIDE;
    if (texts || (array && at(&look, '{'))) {
        fputc('\n', to);
        put_lines(to, c, indent + 2);
        return;
    }
    fprintf(to, "%*s", pad > 1 ? pad : 1, "");
    put_inline(to, c, u);
    fputc('\n', to);
}

/* Behind `shown` entries of a list, or of a table of counts: true where the others are only counted. What an object says of
   other kinds is shown in full: each member says something else. */
static bool cut_short(FILE *to, cursor *c, int indent, int shown, char end)
{
    const char *s;
    size_t n;
    cursor look = *c;
    int more = 0;
    if (!c->most || indent <= 2 || shown < c->most)
        return false;
    for (; !take(&look, end) && look.p < look.end; take(&look, ',')) {
        if (end == '}' && (!string(&look, &s, &n) || !take(&look, ':')))
            return false;
        if (end == '}' && (look.p >= look.end || !strchr("-0123456789", *look.p)))
            return false;
        if (!skip(&look, 0))
            return false;
        more++;
    }
    if (more < 3) /* a line that says so is no shorter */
        return false;
    fprintf(to, "%*s... %d more (-v shows all)\n", indent, "", more);
    *c = look;
    return true;
}

/* An object, one line per member, or an array, one line per element. */
static void put_lines(FILE *to, cursor *c, int indent)
{
    const char *s;
    size_t n;
    int shown = 0;
    if (take(c, '[')) {
        while (!cut_short(to, c, indent, shown++, ']') && !take(c, ']') && c->p < c->end) {
            fprintf(to, "%*s", indent, "");
            put_inline(to, c, PLAIN);
            fputc('\n', to);
            take(c, ',');
        }
    } else if (take(c, '{')) {
        while (!cut_short(to, c, indent, shown++, '}') && !take(c, '}') && string(c, &s, &n) &&
               take(c, ':')) {
            const int pad = KEY_COLUMN - indent - (int)n + (unit_of(s, n) == GIB ? 4 : 0);
            fprintf(to, "%*s", indent, "");
            put_key(to, s,
                    n - (unit_of(s, n) == GIB ? 4 : 0)); /* it stands behind the number */
            put_member(to, c, indent, pad, unit_of(s, n));
            take(c, ',');
        }
    } else {
        fprintf(to, "%*s", indent, "");
        put_inline(to, c, PLAIN);
        fputc('\n', to);
    }
}

static void print(FILE *to, const char *json, size_t n, int most)
{
    cursor all = {json, json + n, most};
    cursor check = all;
    const bool good = skip(&check, 0);
    blanks(&check);
    if (!good || check.p != check.end) {
        fprintf(to, "%.*s\n", (int)(n < 4096 ? n : 4096), json);
        return;
    }
    put_lines(to, &all, 2);
}

void cli_print_json_n(FILE *to, const char *json, size_t n)
{
    print(to, json, n, 0);
}

void cli_print_json(FILE *to, const char *json)
{
    cli_print_json_n(to, json, strlen(json));
}

void cli_print_json_page(FILE *to, const char *json)
{
    print(to, json, strlen(json), 8);
}

const char *cli_json_next(const char **at, const char *end, size_t *n)
{
    cursor c = {*at, end, 0};
    take(&c, ',');
    blanks(&c);
    const char *value = c.p;
    if (c.p >= end || *c.p == ']' || !skip(&c, 0))
        return NULL;
    *at = c.p;
    *n = (size_t)(c.p - value);
    return value;
}

void cli_put_json(FILE *to, const char *json, size_t n)
{
    cursor c = {json, json + n, 0};
    put_scalar(to, &c, PLAIN);
}

const char *cli_json_member(const char *json, const char *key, size_t *n)
{
    cursor c = {json, json + strlen(json), 0};
    const char *s;
    size_t len;
    if (!take(&c, '{'))
        return NULL;
    while (string(&c, &s, &len) && take(&c, ':')) {
        blanks(&c);
        const char *value = c.p;
        if (!skip(&c, 0))
            return NULL;
        if (len == strlen(key) && memcmp(s, key, len) == 0) {
            *n = (size_t)(c.p - value);
            return value;
        }
        if (!take(&c, ','))
            return NULL;
    }
    return NULL;
}
