/* opts_json.c - sets of options as job files, both ways.
 *
 * A job file is one flat JSON object, option names to values (docs/reference/json.md). Only
 * options of the job are written; the ones that steer a single command (--json, --yes, ...) are
 * not. Strings carry the text of the value as the user gave it, so a written file reads back as
 * the same set. Reading checks every value, also those that lose against an option that is set
 * already. The settings of a preset are read by the same rules, fewer of them (preset.h). */
#include "engine/base/ctx.h"
#include "engine/base/json.h"
#include "engine/base/number.h"
#include "engine/settings/opts_internal.h"

#include <stdio.h>
#include <string.h>

static void write_value(tgi_jw *w, const tg_opts *o, tgi_opt id, const char *name)
{
    if (id == TGI_OPT_INPUT_TENSOR) {
        tgi_jw_begin(w, name, '[');
        for (int i = 0; i < o->n_tensor; i++)
            tgi_jw_str(w, NULL, o->tensor[i]);
        tgi_jw_end(w, ']');
    } else if (tgi_opt_is_switch(id)) {
        tgi_jw_bool(w, name, tgi_opts_flag(o, id));
    } else {
        tgi_jw_str(w, name, o->value[id]);
    }
}

int tgi_opts_write(tgi_jw *w, const tg_opts *o, bool (*which)(tgi_opt id))
{
    int n = 0;
    for (int i = 0; i < TGI_OPT_COUNT; i++)
        if (which((tgi_opt)i) && tgi_opts_given(o, (tgi_opt)i)) {
            write_value(w, o, (tgi_opt)i, tgi_option_table(NULL)[i].name);
            n++;
        }
    return n;
}

tg_status tgi_opts_to_json(const tg_opts *o, char **json, tgi_err *err)
{
    tgi_jw w = {0};
    tgi_jw_begin(&w, NULL, '{');
    (void)tgi_opts_write(&w, o, tgi_opt_in_job);
    tgi_jw_end(&w, '}');
    return tgi_jw_take(&w, json, err);
}

/* ---- read -------------------------------------------------------------------------------- */

typedef struct reader {
    tg_opts *o;
    const char *what; /* the file, for details and as the origin */
    tgi_from from;
    bool wins[TGI_OPT_COUNT];    /* over what was set before the file was read */
    bool seen[TGI_OPT_COUNT];    /* in the file already, under this name or the alias */
    tgi_opt lost[TGI_OPT_COUNT]; /* values of a preset that was set by name */
    int n_lost;
    tgi_err *err;
} reader;

/* A preset that was asked for loses to this file: worth a word. */
static void note_lost(reader *r, tgi_opt id, const char *text)
{
    const tg_opts *o = r->o;
    if (o->from[id] == TGI_FROM_PRESET && o->from[TGI_OPT_PRESET] == TGI_FROM_SET &&
        strcmp(o->value[id], text) != 0)
        r->lost[r->n_lost++] = id;
}

/* Set one value, or only check it when what was set before wins. */
static tg_status set_text(reader *r, const char *name, const char *text)
{
    tgi_opt id = TGI_OPT_COUNT;
    tg_status st = tgi_opt_check(name, text, &id, r->err);
    if (st == TG_OK && r->wins[id]) {
        note_lost(r, id, text);
        st = tgi_opts_set_from(r->o, name, text, r->from, r->what, r->err);
    }
    if (st != TG_OK)
        tgi_err_prefix(r->err, "%s", r->what);
    return st;
}

/* A JSON value as the text the command line would carry; NULL when its type is wrong for the
 * option: "model": 5 is more likely a slip than a file named 5. */
static const char *value_text(tgi_opt id, const tgi_json *v, char *buf, size_t cap)
{
    const char *text = NULL;
    double number;
    bool on;
    if (tgi_json_str(v, &text))
        return text;
    if (tgi_json_bool(v, &on) && tgi_opt_is_switch(id))
        return on ? "true" : "false";
    if (!tgi_json_num(v, &number) || !tgi_opt_is_number(id))
        return NULL;
    char digits[TGI_NUMBER_TEXT];
    tgi_number_digits(number, 17, digits);
    snprintf(buf, cap, "%s", digits); /* 8 for 8; 2.5 is refused as text would be */
    return buf;
}

static tg_status read_tensors(reader *r, const tgi_json *v)
{
    const char *text;
    if (!tgi_json_is_array(v))
        return tgi_fail(r->err, TG_E_FORMAT, "%s: input-tensor is an array of \"NAME=FILE\"",
                        r->what);
    for (const tgi_json *e = tgi_json_first(v); e; e = tgi_json_next(e)) {
        if (!tgi_json_str(e, &text))
            return tgi_fail(r->err, TG_E_FORMAT, "%s: input-tensor holds something but strings",
                            r->what);
        TGI_TRY(set_text(r, "input-tensor", text));
    }
    return TG_OK;
}

/* What may stand in the file at all. */
static tg_status check_place(const reader *r, tgi_opt id, const char *name)
{
    if (r->from != TGI_FROM_PRESET && (id == TGI_OPT_CONFIG || id == TGI_OPT_SAVE))
        return tgi_fail(r->err, TG_E_ARG, "%s: \"%s\" is no key of a job file", r->what, name);
    if (r->from != TGI_FROM_PRESET || tgi_opt_in_preset(id))
        return TG_OK;
    return tgi_fail(r->err, TG_E_ARG, "%s: \"%s\" is no setting of a preset: %s", r->what, name,
                    tgi_opt_in_job(id) ? "it names a file, or is of one image"
                                       : "it says how one command behaves");
}

static tg_status read_member(reader *r, const tgi_json *v)
{
    const char *name = tgi_json_key(v);
    const tgi_opt id = tgi_opt_find(name);
    char buf[40];
    if (id == TGI_OPT_COUNT)
        return set_text(r, name, ""); /* fails, naming the nearest */
    TGI_TRY(check_place(r, id, name));
    if (r->seen[id])
        return tgi_fail(r->err, TG_E_FORMAT, "%s: \"%s\" is given twice", r->what,
                        tgi_option_table(NULL)[id].name);
    r->seen[id] = true;
    if (id == TGI_OPT_INPUT_TENSOR)
        return read_tensors(r, v);
    const char *text = value_text(id, v, buf, sizeof buf);
    if (!text)
        return tgi_fail(r->err, TG_E_ARG, "%s: the value of \"%s\" is %s", r->what, name,
                        tgi_opt_is_switch(id)   ? "true or false"
                        : tgi_opt_is_number(id) ? "a string or a number"
                                                : "a string");
    return set_text(r, name, text);
}

tg_status tgi_opts_read(tg_opts *o, const tgi_json *object, tgi_from from, const char *file,
                        tgi_err *err)
{
    reader r = {.o = o, .what = file, .from = from, .err = err};
    if (!tgi_json_is_object(object))
        return tgi_fail(err, TG_E_FORMAT, "%s: a job file is one JSON object", file);
    for (int i = 0; i < TGI_OPT_COUNT; i++)
        r.wins[i] = o->from[i] < from;
    for (const tgi_json *v = tgi_json_first(object); v; v = tgi_json_next(v))
        TGI_TRY(read_member(&r, v));
    tgi_opts_tell_lost(o, file, o->value[TGI_OPT_PRESET], r.lost, r.n_lost);
    return TG_OK;
}

void tgi_opts_tell_lost(const tg_opts *o, const char *job, const char *preset,
                        const tgi_opt *ids, int n)
{
    char names[160] = "";
    size_t at = 0;
    for (int i = 0; i < n && at < sizeof names; i++)
        at += (size_t)snprintf(names + at, sizeof names - at, "%s%s", i ? ", " : "",
                               tgi_option_table(NULL)[ids[i]].name);
    if (n && o->ctx)
        tgi_ctx_log(o->ctx, TG_LOG_WARN, "%s wins over preset %s in %s", job, preset, names);
}

tg_status tgi_opts_from_json(tg_opts *o, const char *text, size_t n, const char *what,
                             tgi_err *err)
{
    tgi_json *doc = NULL;
    TGI_TRY(tgi_json_parse(text, n, what, &doc, err));
    const tg_status st = tgi_opts_read(o, doc, TGI_FROM_JOB, what, err);
    tgi_json_free(&doc);
    return st;
}

tg_status tgi_opts_load(tg_opts *o, const char *path, tgi_err *err)
{
    tgi_json *doc = NULL;
    TGI_TRY(tgi_json_load(path, &doc, err));
    const tg_status st = tgi_opts_read(o, doc, TGI_FROM_JOB, path, err);
    tgi_json_free(&doc);
    return st;
}
