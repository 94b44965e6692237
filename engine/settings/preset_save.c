/* preset_save.c - settings into the user's folder, as a file that preset_file.c reads. */
#include "engine/base/json.h"
#include "engine/base/mem.h"
#include "engine/settings/opts_internal.h"
#include "engine/settings/preset.h"
#include "io/text_file.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* What was set by name is meant; of a job file what no preset may have is left out. */
static tg_status check_settings(const tg_opts *o, tgi_err *err)
{
    for (int i = 0; i < TGI_OPT_COUNT; i++)
        if (o->from[i] == TGI_FROM_SET && tgi_opt_in_job((tgi_opt)i) &&
            !tgi_opt_in_preset((tgi_opt)i))
            return tgi_fail(
                err, TG_E_ARG,
                "--%s is no setting of a preset: it names a file, or is of one image",
                tgi_option_table(NULL)[i].name);
    return TG_OK;
}

/* What --about says, else the settings themselves: "ram=1GiB, threads=2". */
static tg_status describe(const tg_opts *o, tg_preset_info *i, tgi_err *err)
{
    const char *about = tgi_opts_str(o, TGI_OPT_ABOUT);
    const size_t cap = sizeof i->description;
    size_t at = 0;
    if (about && strlen(about) >= cap)
        return tgi_fail(err, TG_E_ARG, "--about has at most %zu bytes", cap - 1);
    if (about) {
        snprintf(i->description, cap, "%s", about);
        return TG_OK;
    }
    for (int k = 0; k < TGI_OPT_COUNT && at < cap; k++)
        if (tgi_opt_in_preset((tgi_opt)k) && o->value[k])
            at += (size_t)snprintf(i->description + at, cap - at, "%s%s=%s", at ? ", " : "",
                                   tgi_option_table(NULL)[k].name, o->value[k]);
    return TG_OK;
}

static void write_device(tgi_jw *w, const tg_preset_device *d)
{
    if (!d->memory_bytes)
        return;
    tgi_jw_begin(w, "device", '{');
    tgi_jw_num(w, "gib", (double)d->memory_bytes / 1073741824.0);
    tgi_jw_int(w, "tile", d->tile);
    tgi_jw_int(w, "batch", d->batch);
    tgi_jw_str(w, "precision", d->precision);
    tgi_jw_end(w, '}');
}

static tg_status compose(const tg_opts *o, const tg_preset_info *i, char **text, tgi_err *err)
{
    tgi_jw w = {0};
    tgi_jw_begin(&w, NULL, '{');
    tgi_jw_int(&w, "schema", 1);
    tgi_jw_str(&w, "description", i->description);
    if (i->why[0])
        tgi_jw_str(&w, "why", i->why);
    tgi_jw_begin(&w, "settings", '{');
    const int n = tgi_opts_write(&w, o, tgi_opt_in_preset);
    tgi_jw_end(&w, '}');
    write_device(&w, &i->device);
    tgi_jw_end(&w, '}');
    TGI_TRY(tgi_jw_take(&w, text, err));
    if (n || i->device.memory_bytes)
        return TG_OK;
    tgi_free(*text);
    *text = NULL;
    return tgi_fail(err, TG_E_ARG,
                    "nothing to save: give settings, --config JOB.json or --preset NAME");
}

/* The device part, and what justifies it, come with the preset that was taken. */
static tg_status inherit(const tg_opts *o, tg_preset_info *i, tgi_err *err)
{
    const char *base = tgi_opts_str(o, TGI_OPT_PRESET);
    tgi_preset p = {0};
    if (!base)
        return TG_OK;
    const tg_status st = tgi_preset_open(base, &p, err);
    if (st == TG_OK && p.info.device.memory_bytes) {
        i->device = p.info.device;
        memcpy(i->why, p.info.why, sizeof i->why);
    }
    tgi_preset_close(&p);
    return st;
}

tg_status tgi_preset_save(const char *name, const tg_opts *o, tg_preset_info *info,
                          tgi_err *err)
{
    tg_preset_info i = {.from = TG_PRESET_USER};
    const int replace = tgi_opts_flag(o, TGI_OPT_YES);
    char *text = NULL;
    TGI_TRY(tgi_preset_user_path(name, i.path, sizeof i.path, err));
    snprintf(i.name, sizeof i.name, "%s", name);
    TGI_TRY(check_settings(o, err));
    TGI_TRY(inherit(o, &i, err));
    TGI_TRY(describe(o, &i, err));
    if (!replace && access(i.path, F_OK) == 0)
        return tgi_fail(err, TG_E_EXISTS, "%s is there already; -y overwrites it", i.path);
    TGI_TRY(compose(o, &i, &text, err));
    tg_status st = tgi_make_folders(i.path, err);
    if (st == TG_OK)
        st = tgi_write_text(i.path, text, replace, err);
    tgi_free(text);
    if (st == TG_OK && info)
        *info = i;
    return st;
}
