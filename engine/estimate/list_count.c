/* list_count.c - how many samples a .json or .jsonl list holds, without holding it.
 *
 * The file is read in blocks of 64 KiB through a state machine that knows strings, escapes and
 * brackets and nothing else: what a value means is not its business, so what it accepts is a
 * little more than JSON (numbers and words are not spelt out). Brackets that do not match, a
 * string or an array without an end, and nesting beyond MAX_DEPTH are refused with the byte.
 *
 *   .jsonl  every line that is not blank is a sample and a value of its own
 *   .json   the elements of the top array; of a top object, those of its longest array
 *           ({"info": {...}, "questions": [...]}, as question sets are published) */
#include "engine/base/cancel.h"
#include "engine/base/input.h"
#include "engine/estimate/estimate.h"

#include <stdio.h>
#include <string.h>

#define BLOCK 8192
#define MAX_DEPTH 512
#define MEMBER_CAP 64

typedef struct counter {
    const char *path;
    int lines; /* .jsonl */
    int64_t byte, line;
    char open[MAX_DEPTH]; /* the brackets that are open */
    int depth;
    int in_string, escaped;
    int value;     /* the line, or the file, holds something */
    int closed;    /* the top value has ended: only space may follow */
    int element;   /* the counted array holds an element that no comma has ended yet */
    int64_t count; /* of the array that is being counted */
    int64_t best;  /* the longest so far, or the lines */
    char key[MEMBER_CAP], member[MEMBER_CAP]; /* of the top object: last text, longest array */
    int key_n;
} counter;

static tg_status bad(const counter *c, const char *why, tgi_err *err)
{
    if (c->lines)
        return tgi_fail(err, TG_E_FORMAT, "%s: line %lld: %s", c->path, (long long)c->line,
                        why);
    return tgi_fail(err, TG_E_FORMAT, "%s: byte %lld: %s", c->path, (long long)c->byte, why);
}

/* Depth at which the elements of arrays are counted: the top array's, or that of arrays which
 * are members of the top object. 0: not inside one. */
static int counted_depth(const counter *c)
{
    if (c->depth >= 1 && c->open[0] == '[')
        return 1;
    return c->depth >= 2 && c->open[1] == '[' ? 2 : 0;
}

/* Something that is no space stands in the innermost counted array. */
static void note_value(counter *c)
{
    c->value = 1;
    if (!c->lines && c->depth && c->depth == counted_depth(c))
        c->element = 1;
}

static void end_array(counter *c)
{
    c->count += c->element;
    c->element = 0;
    if (c->count > c->best || c->depth == 1) {
        c->best = c->count;
        snprintf(c->member, sizeof c->member, "%s", c->depth == 2 ? c->key : "");
    }
    c->count = 0;
}

static tg_status open_bracket(counter *c, char b, tgi_err *err)
{
    note_value(c);
    if (c->depth == MAX_DEPTH)
        return bad(c, "nested too deep", err);
    c->open[c->depth++] = b;
    if (!c->lines && b == '[' && c->depth == counted_depth(c))
        c->count = c->element = 0;
    return TG_OK;
}

static tg_status close_bracket(counter *c, char b, tgi_err *err)
{
    const char want = b == ']' ? '[' : '{';
    if (c->depth == 0 || c->open[c->depth - 1] != want)
        return bad(c, "a bracket that closes nothing", err);
    if (!c->lines && c->depth == counted_depth(c))
        end_array(c);
    c->depth--;
    c->closed = c->depth == 0;
    return TG_OK;
}

static tg_status end_line(counter *c, tgi_err *err)
{
    c->line++;
    if (!c->lines)
        return TG_OK;
    c->line--;
    if (c->depth || c->in_string)
        return bad(c, "the line ends inside a value", err);
    c->line++;
    c->best += c->value;
    c->value = c->closed = 0;
    return TG_OK;
}

/* Texts of the top object are kept: the last one before an array is its name. */
static void in_text(counter *c, char b)
{
    if (c->depth == 1 && c->open[0] == '{' && c->key_n + 1 < MEMBER_CAP) {
        c->key[c->key_n++] = b;
        c->key[c->key_n] = 0;
    }
}

static tg_status string_byte(counter *c, char b, tgi_err *err)
{
    if (c->escaped) {
        c->escaped = 0;
    } else if (b == '\\') {
        c->escaped = 1;
    } else if (b == '"') {
        c->in_string = 0;
        c->closed = c->depth == 0;
        return TG_OK;
    } else if ((unsigned char)b < 0x20) {
        return bad(c, "a control character in a string", err);
    }
    in_text(c, b);
    return TG_OK;
}

static tg_status one_byte(counter *c, char b, tgi_err *err)
{
    if (c->in_string)
        return string_byte(c, b, err);
    if (b == '\n')
        return end_line(c, err);
    if (b == ' ' || b == '\t' || b == '\r')
        return TG_OK;
    if (c->closed)
        return bad(c, "something follows the end of the value", err);
    switch (b) {
    case '"':
        note_value(c);
        c->in_string = 1;
        c->key_n = c->depth == 1 ? 0 : c->key_n;
        return TG_OK;
    case '[':
    case '{':
        return open_bracket(c, b, err);
    case ']':
    case '}':
        return close_bracket(c, b, err);
    case ',':
        if (c->depth == 0)
            return bad(c, "a comma outside of everything", err);
        if (!c->lines && c->depth == counted_depth(c)) {
            if (!c->element)
                return bad(c, "an element is missing before the comma", err);
            c->count++;
            c->element = 0;
        }
        return TG_OK;
    default:
        if ((unsigned char)b < 0x20)
            return bad(c, "a control character", err);
        note_value(c);
        return TG_OK;
    }
}

static tg_status finish(counter *c, tgi_err *err)
{
    if (c->lines)
        return c->value || c->depth || c->in_string ? end_line(c, err) : TG_OK;
    if (c->depth || c->in_string)
        return bad(c, "the file ends inside a value", err);
    if (!c->closed || (c->best == 0 && c->open[0] != '['))
        return bad(c, "no array: a list is one, or an object with one", err);
    return TG_OK;
}

static tg_status read_through(counter *c, tgi_input *in, tgi_err *err)
{
    char block[BLOCK];
    for (;;) {
        size_t n, i = 0;
        TGI_TRY(tgi_input_read(in, block, sizeof block, &n, err));
        if (n == 0)
            return finish(c, err);
        if (tgi_cancel_signal())
            return tgi_fail(err, TG_E_CANCELLED, "%s: stopped while counting", c->path);
        if (c->byte == 0 && n >= 3 && memcmp(block, "\xef\xbb\xbf", 3) == 0)
            c->byte = (int64_t)(i = 3); /* a byte order mark */
        for (; i < n; i++, c->byte++)
            TGI_TRY(one_byte(c, block[i], err));
    }
}

tg_status tgi_list_count(const char *path, int64_t *samples, char *member, size_t cap,
                         tgi_err *err)
{
    const size_t n = strlen(path);
    counter c = {.path = path, .line = 1};
    c.lines = n > 6 && strcmp(path + n - 6, ".jsonl") == 0;
    tgi_input in;
    TGI_TRY(tgi_input_open(path, &in, err));
    const tg_status got = read_through(&c, &in, err);
    tgi_input_close(&in);
    if (got != TG_OK)
        return got;
    *samples = c.best;
    snprintf(member, cap, "%s", c.member);
    return TG_OK;
}
