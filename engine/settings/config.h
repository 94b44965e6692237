/* config.h - files of configs/: where they lie, and whether they say what they may say.
 *
 * They are installed to share/tegula and found from where the library or the program lies, so
 * an installation can be moved; the build folder has a share/tegula of its own that points to
 * configs/. The environment variable TEGULA_CONFIGS names another folder, which is then the
 * only one. */
#ifndef TGI_CONFIG_H
#define TGI_CONFIG_H

#include "engine/base/json.h"

#include <stddef.h>

/* Path of configs/NAME ("gpus.json", "presets/lab.json"); TG_E_NOT_FOUND names the folders that
 * were looked into. */
tg_status tgi_config_path(const char *name, char *out, size_t cap, tgi_err *err);

typedef enum tgi_key_type {
    TGI_KEY_TEXT,
    TGI_KEY_TEXT_OR_NULL,
    TGI_KEY_NUMBER, /* within [lo, hi] */
    TGI_KEY_NUMBER_OR_NULL,
    TGI_KEY_BOOL,
    TGI_KEY_OBJECT,
    TGI_KEY_ARRAY
} tgi_key_type;

/* One member that an object may have. */
typedef struct tgi_key {
    const char *name;
    tgi_key_type type;
    int required;
    double lo, hi;
} tgi_key;

/* Check an object against its keys: TG_E_FORMAT for a key that is not in the list (naming the
 * nearest that is), one that is missing, of another type or out of range. `what` names the
 * object in details. */
tg_status tgi_config_check(const tgi_json *object, const tgi_key *keys, int n, const char *what,
                           tgi_err *err);
/* The same of a file that a newer program wrote: keys that are not in the list are skipped. */
tg_status tgi_config_check_newer(const tgi_json *object, const tgi_key *keys, int n,
                                 const char *what, tgi_err *err);

#endif
