/* fingerprint_text.c - lines of a fingerprint: writing, looking, comparing. */
#include "engine/out/fingerprint_text.h"

#include "engine/base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- Writing ----------------------------------------------------------------------------- */

static int make_room(tgi_lines *t, size_t more)
{
    if (t->lost || more <= t->cap - t->n)
        return !t->lost;
    const size_t want = t->n + more, cap = want < 2048 ? 4096 : 2 * want;
    char *p = tgi_realloc_n(TGI_TAG_JOURNAL, t->p, cap, 1);
    t->lost = !p;
    if (!p)
        return 0;
    t->p = p;
    t->cap = cap;
    return 1;
}

/* `n` bytes; what would end the line is spelled out. */
static void put(tgi_lines *t, const char *s, size_t n)
{
    if (!make_room(t, 4 * n + 2))
        return;
    for (size_t i = 0; i < n; i++) {
        const unsigned char c = (unsigned char)s[i];
        if (c < ' ')
            t->n += (size_t)snprintf(t->p + t->n, t->cap - t->n, "\\x%02x", c);
        else
            t->p[t->n++] = s[i];
    }
}

void tgi_lines_add(tgi_lines *t, const char *key, const char *fmt, ...)
{
    char small[512], *value = small;
    va_list ap;
    va_start(ap, fmt);
    const int n = vsnprintf(small, sizeof small, fmt, ap);
    va_end(ap);
    if (n >= (int)sizeof small && (value = tgi_malloc(TGI_TAG_JOURNAL, (size_t)n + 1))) {
        va_start(ap, fmt);
        vsnprintf(value, (size_t)n + 1, fmt, ap);
        va_end(ap);
    }
    t->lost |= n < 0 || !value;
    if (!t->lost) {
        put(t, key, strlen(key));
        put(t, "=", 1);
        put(t, value, (size_t)n);
    }
    if (make_room(t, 2)) {
        t->p[t->n++] = '\n';
        t->p[t->n] = 0;
    }
    if (value != small)
        tgi_free(value);
}

tg_status tgi_lines_take(tgi_lines *t, char **out, tgi_err *err)
{
    if (t->lost || !t->p) {
        tgi_free(t->p);
        *t = (tgi_lines){0};
        return tgi_fail(err, TG_E_NOMEM, "no memory for the job's fingerprint");
    }
    *out = t->p;
    *t = (tgi_lines){0};
    return TG_OK;
}

/* ---- Looking ----------------------------------------------------------------------------- */

int tgi_lines_next(const char **at, const char *end, tgi_line *out)
{
    const char *line = *at;
    if (line >= end)
        return 0;
    const char *stop = memchr(line, '\n', (size_t)(end - line));
    const size_t n = (size_t)((stop ? stop : end) - line);
    const char *eq = n ? memchr(line, '=', n) : NULL;
    *out = (tgi_line){.key = line, .key_n = eq ? (size_t)(eq - line) : n};
    out->value = eq ? eq + 1 : line + n;
    out->value_n = eq ? n - out->key_n - 1 : 0;
    *at = stop ? stop + 1 : end;
    return 1;
}

static int is_key(const tgi_line *l, const char *key)
{
    return strlen(key) == l->key_n && memcmp(l->key, key, l->key_n) == 0;
}

/* The line of `text` with the key of `like`; 0: there is none. */
static int find(const char *text, const char *end, const tgi_line *like, tgi_line *out)
{
    while (tgi_lines_next(&text, end, out))
        if (out->key_n == like->key_n && memcmp(out->key, like->key, like->key_n) == 0)
            return 1;
    return 0;
}

int tgi_fingerprint_get(const char *text, size_t n, const char *key, char *buf, size_t cap)
{
    const tgi_line like = {.key = key, .key_n = strlen(key)};
    tgi_line l;
    if (!find(text, text + n, &like, &l) || l.value_n >= cap)
        return 0;
    memcpy(buf, l.value, l.value_n);
    buf[l.value_n] = 0;
    return 1;
}

/* ---- Comparing --------------------------------------------------------------------------- */

/* What a user calls a key, and whether only another tegula has another value. */
static const struct {
    const char *key, *name;
    int of_program;
} known[] = {{"tegula", "tegula", 1},
             {"bits", "number of its bits", 1},
             {"journal", "format of its journal", 1},
             {"model_data", "external data of the model", 0},
             {"film", "form of its film", 0},
             {"key_z", "--name-z", 0},
             {"key_c", "--name-c", 0},
             {"key_t", "--name-t", 0}};

enum { SHOWN = 96 };

/* Of two long values what is equal in front and behind is left out, so that the difference is seen; words are
 * whole. */
static size_t skip_equal(const tgi_line *a, const tgi_line *b, size_t *behind)
{
    const size_t n = a->value_n < b->value_n ? a->value_n : b->value_n;
    const size_t longest = a->value_n > b->value_n ? a->value_n : b->value_n;
    const char *end_a = a->value + a->value_n, *end_b = b->value + b->value_n;
    size_t i = 0, k = 0;
    *behind = 0;
    if (longest <= SHOWN)
        return 0;
    while (i < n && a->value[i] == b->value[i])
        i++;
    while (k < n - i && end_a[-1 - (ptrdiff_t)k] == end_b[-1 - (ptrdiff_t)k])
        k++;
    while (k && end_a[-(ptrdiff_t)k] != ' ')
        k--;
    *behind = k;
    const size_t least = i > 16 ? i - 16 : 0;
    for (size_t at = i; at > least; at--)
        if (a->value[at - 1] == ' ')
            return at;
    return least;
}

static void show(const tgi_line *l, size_t skip, size_t behind, char *out, size_t cap)
{
    if (!l) {
        snprintf(out, cap, "none");
        return;
    }
    const size_t from = skip < l->value_n ? skip : l->value_n,
                 n = l->value_n - from > behind ? l->value_n - from - behind : 0;
    snprintf(out, cap, "%s%.*s%s", from ? "..." : "", (int)(n < SHOWN ? n : SHOWN),
             l->value + from, n > SHOWN || behind ? "..." : "");
}

/* Two texts that are compared; `output` (NULL: it was interrupted) is finished. */
typedef struct comparison {
    const char *output;
} comparison;

/* One of them may be NULL: the other side has no such line. */
static tg_status refuse(const comparison *c, const tgi_line *was, const tgi_line *now,
                        tgi_err *err)
{
    char a[SHOWN + 8], b[SHOWN + 8], name[64];
    const tgi_line *l = was ? was : now;
    int of_program = 0;
    snprintf(name, sizeof name, "%.*s", (int)(l->key_n < 48 ? l->key_n : 48), l->key);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (is_key(l, known[i].key)) {
            snprintf(name, sizeof name, "%s", known[i].name);
            of_program = known[i].of_program;
        }
    size_t behind = 0;
    const size_t skip = was && now ? skip_equal(was, now, &behind) : 0;
    show(was, skip, behind, a, sizeof a);
    show(now, skip, behind, b, sizeof b);
    if (c->output)
        return tgi_fail(err, TG_E_EXISTS,
                        "%s: exists already, and was made with another %s (%s, now %s); -y "
                        "replaces it",
                        c->output, name, a, b);
    return tgi_fail(err, TG_E_CHANGED,
                    "the interrupted output was made with another %s (%s, now %s): %s, or give "
                    "-y to discard that output and start over",
                    name, a, b,
                    of_program ? "finish it with the tegula that began it" : "restore it");
}

static int may_differ(const comparison *c, const tgi_line *l)
{
    static const char *const of_making[] = {"tegula",  "bits",    "journal", "isa",
                                            "kernels", "library", "codec"};
    for (size_t i = 0; c->output && i < sizeof of_making / sizeof of_making[0]; i++)
        if (is_key(l, of_making[i]))
            return 1;
    return is_key(l, "plan") || is_key(l, "on_bad_tile") || is_key(l, TGI_INPUT_CHANGED);
}

/* Up to the libraries that wrote a film, whose names and versions stand last. */
static size_t asked_for(const comparison *c, const tgi_line *l)
{
    static const char library[] = ", libavformat ";
    if (c->output && is_key(l, "film"))
        for (size_t i = 0; i + sizeof library <= l->value_n; i++)
            if (memcmp(l->value + i, library, sizeof library - 1) == 0)
                return i;
    return l->value_n;
}

static tg_status compare(const comparison *c, const char *stored, size_t n, const char *ours,
                         tgi_err *err)
{
    const char *end = stored + n, *at = ours, *ours_end = ours + strlen(ours);
    tgi_line now, was;
    while (tgi_lines_next(&at, ours_end, &now)) {
        if (may_differ(c, &now))
            continue;
        if (!find(stored, end, &now, &was))
            return refuse(c, NULL, &now, err);
        const size_t a = asked_for(c, &was), b = asked_for(c, &now);
        if (a != b || memcmp(was.value, now.value, b) != 0)
            return refuse(c, &was, &now, err);
    }
    for (at = stored; tgi_lines_next(&at, end, &was);)
        if (!may_differ(c, &was) && !find(ours, ours_end, &was, &now))
            return refuse(c, &was, NULL, err);
    return TG_OK;
}

tg_status tgi_fingerprint_compare(const char *stored, size_t n, const char *ours, tgi_err *err)
{
    const comparison c = {0};
    return compare(&c, stored, n, ours, err);
}

tg_status tgi_fingerprint_compare_done(const char *stored, size_t n, const char *ours,
                                       const char *output, tgi_err *err)
{
    const comparison c = {.output = output};
    return compare(&c, stored, n, ours, err);
}
