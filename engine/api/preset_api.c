/* preset_api.c - tegula_preset.h: check arguments, call down. */
#include "engine/base/ctx.h"
#include "engine/base/mem.h"
#include "engine/settings/opts_internal.h"
#include "engine/settings/preset.h"

tg_status tg_preset_list(tg_ctx *ctx, tg_preset_info **list, size_t *n)
{
    tgi_err *err = tgi_ctx_err(ctx);
    if (!list || !n)
        return tgi_fail(err, TG_E_ARG, "tg_preset_list: NULL argument");
    return tgi_preset_list(list, n, err);
}

void tg_preset_list_free(tg_preset_info *list)
{
    tgi_free(list);
}

tg_status tg_preset_load(tg_ctx *ctx, const char *name, tg_preset_info *info,
                         tg_opts **settings)
{
    tgi_err *err = tgi_ctx_err(ctx);
    tgi_preset p = {0};
    if (!name)
        return tgi_fail(err, TG_E_ARG, "tg_preset_load: the name is NULL");
    const tg_status st = tgi_preset_open(name, &p, err);
    if (st == TG_OK && info)
        *info = p.info;
    if (st == TG_OK && settings) {
        p.settings->ctx = ctx;
        *settings = p.settings;
        p.settings = NULL;
    }
    tgi_preset_close(&p);
    return st;
}

tg_status tg_preset_save(tg_ctx *ctx, const char *name, const tg_opts *o, tg_preset_info *info)
{
    tgi_err *err = tgi_ctx_err(ctx);
    if (!name || !o)
        return tgi_fail(err, TG_E_ARG, "tg_preset_save: NULL argument");
    return tgi_preset_save(name, o, info, err);
}
