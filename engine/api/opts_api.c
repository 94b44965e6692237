/* opts_api.c - the public face of opts.c: details go to the context the set was made from. */
#include "engine/base/ctx.h"
#include "engine/out/gate.h"
#include "engine/settings/lent.h"
#include "engine/settings/opts_internal.h"
#include "tegula_preset.h"

#include <stdio.h>
#include <sys/stat.h>

tg_status tg_opts_new(tg_ctx *ctx, tg_opts **out)
{
    tgi_err *err = tgi_ctx_err(ctx);
    if (!ctx || !out)
        return tgi_fail(err, TG_E_ARG, "tg_opts_new: NULL argument");
    TGI_TRY(tgi_opts_new(out, err));
    (*out)->ctx = ctx;
    return TG_OK;
}

tg_status tg_opts_set(tg_opts *o, const char *name, const char *value)
{
    if (!o)
        return TG_E_ARG;
    tgi_err *err = tgi_ctx_err(o->ctx);
    if (!name)
        return tgi_fail(err, TG_E_ARG, "tg_opts_set: the name is NULL");
    return tgi_opts_set(o, name, value, err);
}

void tg_opts_set_by(tg_opts *o, const char *who)
{
    if (o)
        snprintf(o->set_by, sizeof o->set_by, "%s", who ? who : "");
}

const char *tg_opts_origin(const tg_opts *o, const char *name)
{
    const tgi_opt id = o && name ? tgi_opt_find(name) : TGI_OPT_COUNT;
    return id == TGI_OPT_COUNT ? NULL : tgi_opts_origin(o, id);
}

const char *tg_opts_get(const tg_opts *o, const char *name)
{
    const tgi_opt id = o && name ? tgi_opt_find(name) : TGI_OPT_COUNT;
    return id == TGI_OPT_COUNT ? NULL : tgi_opts_str(o, id);
}

tg_status tg_opts_set_source(tg_opts *o, const char *input, const tg_array *array)
{
    return o ? tgi_opts_lend(o, TGI_LENT_SOURCE, input, array, tgi_ctx_err(o->ctx)) : TG_E_ARG;
}

tg_status tg_opts_set_sink(tg_opts *o, const char *output, const tg_array *array)
{
    return o ? tgi_opts_lend(o, TGI_LENT_SINK, output, array, tgi_ctx_err(o->ctx)) : TG_E_ARG;
}

tg_status tg_opts_load(tg_opts *o, const char *path)
{
    if (!o)
        return TG_E_ARG;
    tgi_err *err = tgi_ctx_err(o->ctx);
    if (!path)
        return tgi_fail(err, TG_E_ARG, "tg_opts_load: the path is NULL");
    return tgi_opts_load(o, path, err);
}

static tg_status pass(const tg_opts *o, tgi_err *err)
{
    tgi_gate g = {0};
    tg_status st = tgi_gate_options_write(&g, o, err);
    if (st == TG_OK)
        st = tgi_gate_options_read(&g, o, err);
    tgi_gate_close(&g);
    return st;
}

tg_status tg_opts_open_output(const tg_opts *o, const char *name, tg_output_how how, int *fd)
{
    if (!o)
        return TG_E_ARG;
    tgi_err *err = tgi_ctx_err(o->ctx);
    if (!name || !fd)
        return tgi_fail(err, TG_E_ARG, "tg_opts_open_output: NULL argument");
    const tgi_opt id = tgi_opt_find(name);
    const char *path = id == TGI_OPT_COUNT ? NULL : tgi_opts_str(o, id);
    struct stat st;
    tgi_side s;
    *fd = -1;
    if (!path)
        return tgi_fail(err, TG_E_ARG, "tg_opts_open_output: there is no file \"%s\"", name);
    TGI_TRY(pass(o, err));
    if (how == TG_OUTPUT_LOOK && lstat(path, &st) != 0)
        return TG_OK;
    tgi_side_how side = TGI_SIDE_KEEP;
    if (how != TG_OUTPUT_APPEND)
        side = tgi_gate_side(o, id, path);
    if (how == TG_OUTPUT_LOOK && side == TGI_SIDE_REPLACE)
        side = TGI_SIDE_KEEP;
    TGI_TRY(tgi_side_open(path, side, &s, err));
    if (how == TG_OUTPUT_LOOK && !s.is_file && fstat(s.fd, &st) == 0 && S_ISREG(st.st_mode))
        tgi_side_close(&s); /* a descriptor's: nobody may take it for one to be emptied */
    *fd = s.fd;
    return TG_OK;
}

const tg_option *tg_option_find(const char *word, size_t n)
{
    const tgi_opt id = word ? tgi_opt_find_n(word, n) : TGI_OPT_COUNT;
    return id == TGI_OPT_COUNT ? NULL : &tgi_option_table(NULL)[id];
}

const tg_option *tg_option_table(size_t *n)
{
    return tgi_option_table(n);
}

void tg_opts_free(tg_opts **o)
{
    tgi_opts_free(o);
}
