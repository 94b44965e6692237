/* opts_json.c - sets of options as job files, both ways.
 *
 * A job file is one JSON object, option names to values (docs/json.md). Only options of the job
 * are written; the ones that steer a single command (--json, --yes, ...) are not. Strings carry
 * the text of the value as the user gave it, so a written file reads back as the same set. */
#include "engine/base/mem.h"
#include "engine/opts_internal.h"

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
