/* config.c - finding and checking the files of configs/ (config.h). */
#include "engine/settings/config.h"

#include "engine/base/own_file.h"
#include "engine/base/spec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

tg_status tgi_config_path(const char *name, char *out, size_t cap, tgi_err *err)
{
    char binary[1024] = "", relative[1024];
    const char *folder = getenv("TEGULA_CONFIGS");
    if (folder && *folder) {
        if (snprintf(out, cap, "%s/%s", folder, name) < (int)cap && access(out, R_OK) == 0)
            return TG_OK;
        return tgi_fail(err, TG_E_NOT_FOUND, "TEGULA_CONFIGS: %s is not in %s", name, folder);
    }
    if (snprintf(relative, sizeof relative, "share/tegula/%s", name) < (int)sizeof relative &&
        tgi_own_file(binary, sizeof binary) &&
        tgi_find_beside(binary, TGI_STEPS_UP, relative, out, cap))
        return TG_OK;
    return tgi_fail(err, TG_E_NOT_FOUND,
                    "%s was not found: share/tegula is not beside %s or up to %d folders above "
                    "it; name its folder in TEGULA_CONFIGS",
                    name, binary, TGI_STEPS_UP);
}

/* The keys there are, offered to one that there is not. */
static tgi_nearest nearest_key(const tgi_key *keys, int n, const char *name)
{
    tgi_nearest near = tgi_nearest_to(name);
    for (int i = 0; i < n; i++)
        tgi_nearest_offer(&near, keys[i].name, keys[i].name);
    return near;
}

static tg_status check_known(const tgi_json *object, const tgi_key *keys, int n,
                             const char *what, tgi_err *err)
{
    for (const tgi_json *m = tgi_json_first(object); m; m = tgi_json_next(m)) {
        const char *name = tgi_json_key(m);
        int i = 0;
        while (i < n && strcmp(keys[i].name, name) != 0)
            i++;
        if (i < n)
            continue;
        char text[96];
        const tgi_nearest near = nearest_key(keys, n, name);
        return tgi_fail(err, TG_E_FORMAT, "%s: there is no key \"%.60s\"%s", what, name,
                        tgi_nearest_text(&near, text, sizeof text));
    }
    return TG_OK;
}

static tg_status check_value(const tgi_json *v, const tgi_key *k, const char *what,
                             tgi_err *err)
{
    static const char *const names[] = {
        [TGI_KEY_TEXT] = "a text",        [TGI_KEY_TEXT_OR_NULL] = "a text or null",
        [TGI_KEY_NUMBER] = "a number",    [TGI_KEY_NUMBER_OR_NULL] = "a number or null",
        [TGI_KEY_BOOL] = "true or false", [TGI_KEY_OBJECT] = "an object",
        [TGI_KEY_ARRAY] = "a list"};
    const int is_text = k->type == TGI_KEY_TEXT || k->type == TGI_KEY_TEXT_OR_NULL,
              is_number = k->type == TGI_KEY_NUMBER || k->type == TGI_KEY_NUMBER_OR_NULL;
    const char *text;
    double number = 0;
    bool on;
    if ((k->type == TGI_KEY_TEXT_OR_NULL || k->type == TGI_KEY_NUMBER_OR_NULL) &&
        tgi_json_is_null(v))
        return TG_OK;
    const int fits = is_text                     ? tgi_json_str(v, &text)
                     : is_number                 ? tgi_json_num(v, &number)
                     : k->type == TGI_KEY_BOOL   ? tgi_json_bool(v, &on)
                     : k->type == TGI_KEY_OBJECT ? tgi_json_is_object(v)
                                                 : tgi_json_is_array(v);
    if (!fits)
        return tgi_fail(err, TG_E_FORMAT, "%s: \"%s\" must be %s", what, k->name,
                        names[k->type]);
    if (is_number && !(number >= k->lo && number <= k->hi))
        return tgi_fail(err, TG_E_FORMAT, "%s: \"%s\" is %g, outside %g to %g", what, k->name,
                        number, k->lo, k->hi);
    return TG_OK;
}

tg_status tgi_config_check(const tgi_json *object, const tgi_key *keys, int n, const char *what,
                           tgi_err *err)
{
    if (tgi_json_is_object(object))
        TGI_TRY(check_known(object, keys, n, what, err));
    return tgi_config_check_newer(object, keys, n, what, err);
}

tg_status tgi_config_check_newer(const tgi_json *object, const tgi_key *keys, int n,
                                 const char *what, tgi_err *err)
{
    if (!tgi_json_is_object(object))
        return tgi_fail(err, TG_E_FORMAT, "%s: must be an object", what);
    for (int i = 0; i < n; i++) {
        const tgi_json *v = tgi_json_get(object, keys[i].name);
        if (v)
            TGI_TRY(check_value(v, &keys[i], what, err));
        else if (keys[i].required)
            return tgi_fail(err, TG_E_FORMAT, "%s: the key \"%s\" is missing", what,
                            keys[i].name);
    }
    return TG_OK;
}
