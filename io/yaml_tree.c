/* yaml_tree.c - see yaml_tree.h.
 *
 * libyaml's events become nodes of one growing array; children are chained by index. A node whose children are still
 * coming is open: an alias to it would be a cycle. */
#include "io/yaml_tree.h"

#include "engine/base/mem.h"
#include "engine/base/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

typedef enum kind { SCALAR, LIST, MAP } kind;

struct tgi_yaml {
    const tgi_yaml_doc *doc;
    kind kind;
    int plain;        /* a scalar without quotes */
    int target;       /* an alias: of this node; else -1 */
    int first, next;  /* children, chained; -1: none */
    int count;        /* of children */
    int64_t unfolded; /* nodes below and itself, aliases unfolded; 0 while it is open */
    size_t key, text; /* offsets into the texts; NO_TEXT: none */
};

#define NO_TEXT SIZE_MAX

struct tgi_yaml_doc {
    tgi_yaml *node;
    int n, cap;
    char *text;
    size_t used, room;
};

#define MAX_ANCHORS 256 /* an alias looks at all of them */
#define MAX_DIRECTIVES                                                                         \
    16 /* libyaml compares each with all of them, before it gives its first event */

typedef struct anchor {
    size_t name;
    int node;
} anchor;

typedef struct builder {
    tgi_yaml_doc *d;
    const char *what;
    anchor anchors[MAX_ANCHORS];
    int n_anchors;
    struct {
        int node, last; /* open, and its youngest child */
        size_t key;     /* the next child's; NO_TEXT: a key is expected, or it is a list */
    } open[TGI_YAML_DEPTH];
    int depth;
    int64_t unfolded;
} builder;

/* ---- Memory ------------------------------------------------------------------------------ */

static tg_status no_memory(tgi_err *err)
{
    return tgi_fail(err, TG_E_NOMEM, "no memory for a YAML document");
}

static tg_status add_text(tgi_yaml_doc *d, const void *text, size_t n, size_t *at, tgi_err *err)
{
    if (n + 1 > d->room - d->used) {
        const size_t room = 2 * d->room + n + 1024;
        char *t = tgi_realloc_n(TGI_TAG_MISC, d->text, room, 1);
        if (!t)
            return no_memory(err);
        d->text = t;
        d->room = room;
    }
    *at = d->used;
    memcpy(d->text + d->used, text, n);
    d->text[d->used + n] = 0;
    d->used += n + 1;
    return TG_OK;
}

static tg_status new_node(builder *b, kind k, int *out, tgi_err *err)
{
    tgi_yaml_doc *d = b->d;
    if (d->n == d->cap) {
        const int cap = d->cap ? 2 * d->cap : 64;
        tgi_yaml *v = tgi_realloc_n(TGI_TAG_MISC, d->node, (size_t)cap, sizeof *v);
        if (!v)
            return no_memory(err);
        d->node = v;
        d->cap = cap;
    }
    d->node[d->n] = (tgi_yaml){.doc = d,
                               .kind = k,
                               .target = -1,
                               .first = -1,
                               .next = -1,
                               .unfolded = 1,
                               .key = NO_TEXT,
                               .text = NO_TEXT};
    *out = d->n++;
    return TG_OK;
}

/* ---- Building ---------------------------------------------------------------------------- */

static tg_status refuse(const builder *b, const yaml_mark_t *at, const char *why, tgi_err *err)
{
    return tgi_fail(err, TG_E_FORMAT, "%s: line %zu: %s", b->what, at->line + 1, why);
}

static tg_status count(builder *b, int64_t n, const yaml_mark_t *at, tgi_err *err)
{
    b->unfolded += n;
    return b->unfolded <= TGI_YAML_NODES
               ? TG_OK
               : refuse(b, at, "it has more values than are read, aliases unfolded", err);
}

static int has_key(const builder *b, int map, const char *key)
{
    const tgi_yaml_doc *d = b->d;
    for (int i = d->node[map].first; i >= 0; i = d->node[i].next)
        if (strcmp(d->text + d->node[i].key, key) == 0)
            return 1;
    return 0;
}

/* Hang node `i` below the one that is open. */
static void attach(builder *b, int i)
{
    if (b->depth == 0)
        return;
    const int top = b->depth - 1, parent = b->open[top].node;
    tgi_yaml *node = b->d->node;
    if (b->open[top].last < 0)
        node[parent].first = i;
    else
        node[b->open[top].last].next = i;
    node[parent].count++;
    node[i].key = b->open[top].key;
    b->open[top].last = i;
    b->open[top].key = NO_TEXT;
}

static int wants_key(const builder *b)
{
    const int top = b->depth - 1;
    return b->depth > 0 && b->d->node[b->open[top].node].kind == MAP &&
           b->open[top].key == NO_TEXT;
}

static tg_status take_key(builder *b, const yaml_event_t *e, tgi_err *err)
{
    const char *text = (const char *)e->data.scalar.value;
    const int map = b->open[b->depth - 1].node;
    if (memchr(text, 0, e->data.scalar.length))
        return refuse(b, &e->start_mark, "a key holds a NUL", err);
    if (e->data.scalar.anchor)
        return refuse(b, &e->start_mark, "an anchor on a key", err);
    if (strcmp(text, "<<") == 0)
        return refuse(b, &e->start_mark, "merge keys (\"<<\") are not read", err);
    if (b->d->node[map].count >= 512)
        return refuse(b, &e->start_mark, "a mapping of more than 512 keys", err);
    if (has_key(b, map, text)) {
        char why[96];
        snprintf(why, sizeof why, "the key \"%.60s\" is there twice", text);
        return refuse(b, &e->start_mark, why, err);
    }
    return add_text(b->d, text, e->data.scalar.length, &b->open[b->depth - 1].key, err);
}

static tg_status note_anchor(builder *b, const yaml_char_t *name, int node,
                             const yaml_mark_t *at, tgi_err *err)
{
    if (!name)
        return TG_OK;
    if (b->n_anchors == MAX_ANCHORS)
        return refuse(b, at, "more anchors than are read", err);
    anchor *a = &b->anchors[b->n_anchors++];
    a->node = node;
    return add_text(b->d, name, strlen((const char *)name), &a->name, err);
}

static tg_status take_scalar(builder *b, const yaml_event_t *e, tgi_err *err)
{
    int i = -1;
    if (wants_key(b))
        return take_key(b, e, err);
    if (memchr(e->data.scalar.value, 0, e->data.scalar.length))
        return refuse(b, &e->start_mark, "a text holds a NUL", err);
    TGI_TRY(count(b, 1, &e->start_mark, err));
    TGI_TRY(new_node(b, SCALAR, &i, err));
    b->d->node[i].plain = e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    size_t at;
    TGI_TRY(add_text(b->d, e->data.scalar.value, e->data.scalar.length, &at, err));
    b->d->node[i].text = at;
    TGI_TRY(note_anchor(b, e->data.scalar.anchor, i, &e->start_mark, err));
    attach(b, i);
    return TG_OK;
}

static tg_status take_alias(builder *b, const yaml_event_t *e, tgi_err *err)
{
    const char *name = (const char *)e->data.alias.anchor;
    int i = -1, target = -1;
    if (wants_key(b))
        return refuse(b, &e->start_mark, "an alias for a key", err);
    for (int k = b->n_anchors - 1; k >= 0 && target < 0; k--)
        if (strcmp(b->d->text + b->anchors[k].name, name) == 0)
            target = b->anchors[k].node;
    if (target < 0)
        return refuse(b, &e->start_mark, "an alias of no anchor", err);
    const int64_t n = b->d->node[target].unfolded;
    if (n == 0)
        return refuse(b, &e->start_mark, "a value that contains itself", err);
    TGI_TRY(count(b, n, &e->start_mark, err));
    TGI_TRY(new_node(b, b->d->node[target].kind, &i, err));
    b->d->node[i].target = target;
    attach(b, i);
    return TG_OK;
}

static tg_status begin(builder *b, kind k, const yaml_char_t *name, const yaml_mark_t *at,
                       tgi_err *err)
{
    int i = -1;
    if (wants_key(b))
        return refuse(b, at, "a key that is no text", err);
    if (b->depth == TGI_YAML_DEPTH)
        return refuse(b, at, "values nest too deep", err);
    TGI_TRY(count(b, 1, at, err));
    TGI_TRY(new_node(b, k, &i, err));
    TGI_TRY(note_anchor(b, name, i, at, err));
    attach(b, i);
    b->d->node[i].unfolded = 0;
    b->open[b->depth].node = i;
    b->open[b->depth].last = -1;
    b->open[b->depth++].key = NO_TEXT;
    return TG_OK;
}

static void end(builder *b)
{
    tgi_yaml *node = b->d->node, *v = &node[b->open[--b->depth].node];
    int64_t n = 1;
    for (int i = v->first; i >= 0; i = node[i].next)
        n += node[i].target < 0 ? node[i].unfolded : node[node[i].target].unfolded;
    v->unfolded = n;
}

static tg_status take_event(builder *b, const yaml_event_t *e, int *documents, tgi_err *err)
{
    switch (e->type) {
    case YAML_DOCUMENT_START_EVENT:
        return (*documents)++ ? refuse(b, &e->start_mark, "a second document", err) : TG_OK;
    case YAML_SCALAR_EVENT:
        return take_scalar(b, e, err);
    case YAML_ALIAS_EVENT:
        return take_alias(b, e, err);
    case YAML_SEQUENCE_START_EVENT:
        return begin(b, LIST, e->data.sequence_start.anchor, &e->start_mark, err);
    case YAML_MAPPING_START_EVENT:
        return begin(b, MAP, e->data.mapping_start.anchor, &e->start_mark, err);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        end(b);
        return TG_OK;
    default:
        return TG_OK;
    }
}

static tg_status events(builder *b, yaml_parser_t *p, tgi_err *err)
{
    int documents = 0;
    for (;;) {
        yaml_event_t e;
        if (!yaml_parser_parse(p, &e)) {
            if (p->error == YAML_MEMORY_ERROR)
                return no_memory(err);
            return tgi_fail(err, TG_E_FORMAT, "%s: line %zu: no YAML: %s", b->what,
                            p->problem_mark.line + 1, p->problem ? p->problem : "damaged");
        }
        const int last = e.type == YAML_STREAM_END_EVENT;
        const tg_status st = take_event(b, &e, &documents, err);
        yaml_event_delete(&e);
        if (st != TG_OK || last)
            return st;
    }
}

/* Of UTF-8 text, whose lines also end in U+0085, U+2028 and U+2029 for libyaml; a few that are none may count. */
static int has_many_directives(const uint8_t *text, size_t n)
{
    int found = 0;
    for (size_t i = 0; i < n && found <= MAX_DIRECTIVES; i++)
        found += text[i] == '%' && (i == 0 || memchr("\n\r\x85\xa8\xa9\xbf", text[i - 1], 6));
    return found > MAX_DIRECTIVES;
}

static int is_utf_16(const uint8_t *text, size_t n)
{
    return n > 1 &&
           ((text[0] == 0xff && text[1] == 0xfe) || (text[0] == 0xfe && text[1] == 0xff));
}

tg_status tgi_yaml_parse(const void *bytes, size_t n, const char *what, tgi_yaml_doc **out,
                         tgi_err *err)
{
    yaml_parser_t p;
    if (n > TGI_YAML_BYTES)
        return tgi_fail(err, TG_E_FORMAT, "%s: %zu bytes; descriptions of at most %zu are read",
                        what, n, TGI_YAML_BYTES);
    if (is_utf_16(bytes, n) || has_many_directives(bytes, n))
        return tgi_fail(err, TG_E_FORMAT, "%s: %s", what,
                        is_utf_16(bytes, n) ? "it is UTF-16; descriptions in UTF-8 are read"
                                            : "more directives (%TAG) than are read");
    builder *b = tgi_calloc(TGI_TAG_MISC, 1, sizeof *b);
    tgi_yaml_doc *d = tgi_calloc(TGI_TAG_MISC, 1, sizeof *d);
    if (!b || !d || !yaml_parser_initialize(&p)) {
        tgi_free(b);
        tgi_free(d);
        return no_memory(err);
    }
    b->d = d;
    b->what = what;
    yaml_parser_set_input_string(&p, bytes, n);
    tg_status st = events(b, &p, err);
    int empty = -1;
    if (st == TG_OK && d->n == 0)
        st = new_node(b, SCALAR, &empty, err);
    yaml_parser_delete(&p);
    tgi_free(b);
    if (st != TG_OK)
        tgi_yaml_free(&d);
    else
        *out = d;
    return st;
}

void tgi_yaml_free(tgi_yaml_doc **doc)
{
    if (!doc || !*doc)
        return;
    tgi_free((*doc)->node);
    tgi_free((*doc)->text);
    tgi_free(*doc);
    *doc = NULL;
}

/* ---- Reading ----------------------------------------------------------------------------- */

const tgi_yaml *tgi_yaml_root(const tgi_yaml_doc *doc)
{
    return &doc->node[0];
}

/* What an alias stands for; an anchor is never one itself. */
static const tgi_yaml *real(const tgi_yaml *v)
{
    return v && v->target >= 0 ? &v->doc->node[v->target] : v;
}

const tgi_yaml *tgi_yaml_first(const tgi_yaml *v)
{
    v = real(v);
    return v && v->first >= 0 ? &v->doc->node[v->first] : NULL;
}

const tgi_yaml *tgi_yaml_next(const tgi_yaml *v)
{
    return v && v->next >= 0 ? &v->doc->node[v->next] : NULL;
}

const char *tgi_yaml_key(const tgi_yaml *v)
{
    return v && v->key != NO_TEXT ? v->doc->text + v->key : NULL;
}

const tgi_yaml *tgi_yaml_get(const tgi_yaml *map, const char *key)
{
    if (!tgi_yaml_is_map(map))
        return NULL;
    for (const tgi_yaml *v = tgi_yaml_first(map); v; v = tgi_yaml_next(v))
        if (strcmp(tgi_yaml_key(v), key) == 0)
            return v;
    return NULL;
}

int tgi_yaml_count(const tgi_yaml *v)
{
    v = real(v);
    return v ? v->count : 0;
}

bool tgi_yaml_is_map(const tgi_yaml *v)
{
    v = real(v);
    return v && v->kind == MAP;
}

bool tgi_yaml_is_list(const tgi_yaml *v)
{
    v = real(v);
    return v && v->kind == LIST;
}

static const char *text_of(const tgi_yaml *v)
{
    return v->text == NO_TEXT ? "" : v->doc->text + v->text;
}

bool tgi_yaml_is_null(const tgi_yaml *v)
{
    v = real(v);
    if (!v)
        return true;
    if (v->kind != SCALAR || (v->text != NO_TEXT && !v->plain))
        return false;
    const char *t = text_of(v);
    return !*t || strcmp(t, "~") == 0 || strcmp(t, "null") == 0;
}

bool tgi_yaml_text(const tgi_yaml *v, const char **out)
{
    v = real(v);
    if (!v || v->kind != SCALAR || v->text == NO_TEXT)
        return false;
    *out = text_of(v);
    return true;
}

static size_t digits(const char *s)
{
    return strspn(s, "0123456789");
}

/* [+-]digits[.digits][e[+-]digits], the text's end behind it. */
static bool is_number(const char *s)
{
    s += *s == '-' || *s == '+';
    const size_t whole = digits(s);
    s += whole;
    size_t part = 0;
    if (*s == '.') {
        part = digits(++s);
        s += part;
    }
    if (!whole && !part)
        return false;
    if (*s == 'e' || *s == 'E') {
        s++;
        s += *s == '-' || *s == '+';
        const size_t e = digits(s);
        if (!e)
            return false;
        s += e;
    }
    return !*s;
}

bool tgi_yaml_num(const tgi_yaml *v, double *out)
{
    const char *t;
    if (!tgi_yaml_text(v, &t) || !real(v)->plain)
        return false;
    if (strcmp(t, ".inf") == 0 || strcmp(t, "-.inf") == 0) {
        *out = *t == '-' ? -(double)INFINITY : (double)INFINITY;
        return true;
    }
    if (!is_number(t))
        return false;
    t += *t == '+';
    return tgi_number_parse(t, strlen(t), out);
}

bool tgi_yaml_int(const tgi_yaml *v, int64_t *out)
{
    double x;
    if (!tgi_yaml_num(v, &x) || x != floor(x) || fabs(x) > 9007199254740992.0)
        return false;
    *out = (int64_t)x;
    return true;
}
