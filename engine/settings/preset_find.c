/* preset_find.c - where presets lie: the user's folder, then configs/presets (preset.h). */
#include "engine/base/mem.h"
#include "engine/base/spec.h"
#include "engine/settings/config.h"
#include "engine/settings/preset.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_PRESETS 1000 /* of a folder; what is beyond is a mistake, not a collection */

static int ends_in_json(const char *name, size_t n)
{
    return n > 5 && memcmp(name + n - 5, ".json", 5) == 0;
}

/* A name is a file name everywhere: letters, digits, '-', '_' and '.', a letter or digit first.
 */
static int is_name(const char *s, size_t n)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789-_.";
    return n > 0 && n < sizeof((tg_preset_info *)0)->name && strspn(s, letters) >= n &&
           !strchr("-_.", s[0]);
}

static tg_status check_name(const char *name, tgi_err *err)
{
    if (is_name(name, strlen(name)) && !ends_in_json(name, strlen(name)))
        return TG_OK;
    return tgi_fail(
        err, TG_E_ARG,
        "\"%.80s\" is no name of a preset: at most 63 letters, digits, '-', '_' and "
        "'.', a letter or digit first",
        name);
}

/* The user's folder, whether it is there or not. */
static tg_status user_folder(char *out, size_t cap, tgi_err *err)
{
    const char *xdg = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    int n;
    if (xdg && xdg[0] == '/')
        n = snprintf(out, cap, "%s/tegula/presets", xdg);
    else if (home && home[0])
        n = snprintf(out, cap, "%s/.config/tegula/presets", home);
    else
        return tgi_fail(err, TG_E_NOT_FOUND,
                        "no folder for presets: set HOME or XDG_CONFIG_HOME");
    return n > 0 && (size_t)n < cap ? TG_OK
                                    : tgi_fail(err, TG_E_ARG,
                                               "the name of the folder for "
                                               "presets is too long");
}

tg_status tgi_preset_user_path(const char *name, char *out, size_t cap, tgi_err *err)
{
    char folder[900];
    TGI_TRY(check_name(name, err));
    TGI_TRY(user_folder(folder, sizeof folder, err));
    snprintf(out, cap, "%s/%s.json", folder, name);
    return TG_OK;
}

/* ---- Names in folders -------------------------------------------------------------------- */

typedef struct names {
    tg_preset_info *at; /* name, from and hides only */
    size_t n, cap;
} names;

static tg_status add_name(names *all, const char *name, size_t n, tg_preset_from from,
                          tgi_err *err)
{
    for (size_t i = 0; i < all->n; i++)
        if (strlen(all->at[i].name) == n && memcmp(all->at[i].name, name, n) == 0) {
            all->at[i].hides = 1; /* the user's are read first */
            return TG_OK;
        }
    if (all->n == all->cap) {
        const size_t cap = all->cap ? 2 * all->cap : 32;
        tg_preset_info *grown = tgi_realloc_n(TGI_TAG_MISC, all->at, cap, sizeof *grown);
        if (!grown)
            return tgi_fail(err, TG_E_NOMEM, "no memory for a list of presets");
        all->at = grown;
        all->cap = cap;
    }
    tg_preset_info *i = &all->at[all->n++];
    *i = (tg_preset_info){.from = from};
    memcpy(i->name, name, n);
    return TG_OK;
}

/* Every NAME.json of a folder; none when there is no folder. */
static tg_status add_folder(names *all, const char *folder, tg_preset_from from, tgi_err *err)
{
    DIR *d = opendir(folder);
    tg_status st = TG_OK;
    int count = 0;
    for (const struct dirent *e; d && st == TG_OK && (e = readdir(d));) {
        const size_t n = strlen(e->d_name);
        if (!ends_in_json(e->d_name, n) || !is_name(e->d_name, n - 5))
            continue;
        st = ++count <= MOST_PRESETS
                 ? add_name(all, e->d_name, n - 5, from, err)
                 : tgi_fail(err, TG_E_FORMAT, "%s: more than %d presets", folder, MOST_PRESETS);
    }
    if (d)
        closedir(d);
    return st;
}

/* gpu-8gib before gpu-12gib. */
static int by_name(const void *a, const void *b)
{
    return strverscmp(((const tg_preset_info *)a)->name, ((const tg_preset_info *)b)->name);
}

/* The names of both folders, sorted. `strict`: that nothing is shipped is an error. */
static tg_status all_names(names *all, int strict, tgi_err *err)
{
    char folder[1024];
    tgi_err quiet = {0};
    if (user_folder(folder, sizeof folder, &quiet) == TG_OK)
        TGI_TRY(add_folder(all, folder, TG_PRESET_USER, err));
    const tg_status st =
        tgi_config_path("presets", folder, sizeof folder, strict ? err : &quiet);
    if (st == TG_OK)
        TGI_TRY(add_folder(all, folder, TG_PRESET_BUILT_IN, err));
    else if (strict)
        return st;
    if (all->n)
        qsort(all->at, all->n, sizeof *all->at, by_name);
    return TG_OK;
}

/* ---- Find one ---------------------------------------------------------------------------- */

static tg_status fail_unknown(const char *name, tgi_err *err)
{
    names all = {0};
    char text[128];
    tgi_nearest near = tgi_nearest_to(name);
    const tg_status st = all_names(&all, 0, err);
    for (size_t i = 0; i < all.n; i++)
        tgi_nearest_offer(&near, all.at[i].name, all.at[i].name);
    if (st == TG_OK)
        (void)tgi_fail(err, TG_E_ARG,
                       "there is no preset \"%s\"%s; tegula preset list lists them", name,
                       tgi_nearest_text(&near, text, sizeof text));
    tgi_free(all.at);
    return st == TG_OK ? TG_E_ARG : st;
}

static tg_status find_path(const char *path, tg_preset_info *info, tgi_err *err)
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    size_t n = strlen(base);
    if (ends_in_json(base, n))
        n -= 5;
    if (strlen(path) >= sizeof info->path)
        return tgi_fail(err, TG_E_ARG, "the path of a preset has at most %zu bytes",
                        sizeof info->path - 1);
    snprintf(info->path, sizeof info->path, "%s", path);
    snprintf(info->name, sizeof info->name, "%.*s", (int)(n < 63 ? n : 63), base);
    info->from = TG_PRESET_FILE;
    return TG_OK;
}

tg_status tgi_preset_find(const char *name, tg_preset_info *info, tgi_err *err)
{
    char shipped[1024], file[80];
    tgi_err quiet = {0};
    *info = (tg_preset_info){0};
    if (strchr(name, '/') || ends_in_json(name, strlen(name)))
        return find_path(name, info, err);
    TGI_TRY(check_name(name, err));
    snprintf(info->name, sizeof info->name, "%s", name);
    snprintf(file, sizeof file, "presets/%s.json", name);
    const int is_shipped = tgi_config_path(file, shipped, sizeof shipped, &quiet) == TG_OK;
    memset(&quiet, 0, sizeof quiet);
    if (tgi_preset_user_path(name, info->path, sizeof info->path, &quiet) == TG_OK &&
        access(info->path, F_OK) == 0) {
        info->from = TG_PRESET_USER;
        info->hides = is_shipped;
        return TG_OK;
    }
    if (!is_shipped)
        return fail_unknown(name, err);
    snprintf(info->path, sizeof info->path, "%s", shipped);
    info->from = TG_PRESET_BUILT_IN;
    return TG_OK;
}

tg_status tgi_preset_list(tg_preset_info **list, size_t *n, tgi_err *err)
{
    names all = {0};
    tg_status st = all_names(&all, 1, err);
    for (size_t i = 0; st == TG_OK && i < all.n; i++) {
        tgi_preset p = {0};
        tgi_err why = {0};
        char name[64];
        memcpy(name, all.at[i].name, sizeof name);
        if (tgi_preset_open(name, &p, &why) == TG_E_NOMEM)
            st = tgi_fail(err, TG_E_NOMEM, "no memory for a list of presets");
        all.at[i] = p.info;
        memcpy(all.at[i].name, name, sizeof name);
        snprintf(all.at[i].problem, sizeof all.at[i].problem, "%.250s", why.text);
        tgi_preset_close(&p);
    }
    if (st != TG_OK) {
        tgi_free(all.at);
        return st;
    }
    *list = all.at;
    *n = all.n;
    return TG_OK;
}
