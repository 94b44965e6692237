#include "engine/device/measured.h"

#include "engine/base/json.h"
#include "engine/base/mem.h"
#include "engine/text_file.h"

#include <stdio.h>
#include <string.h>

#define FILE_NAME "devices.json"
#define MOST_DEVICES 32 /* kept: the last ones */
#define MOST_GAIN 1e4   /* what is beyond is damage */

/* What the figures belong to. */
typedef struct identity {
    char device[160], driver[64], version[48];
} identity;

static identity identity_of(const tg_device_info *info)
{
    identity id;
    snprintf(id.device, sizeof id.device, "%s %s", info->name, info->uuid);
    snprintf(id.driver, sizeof id.driver, "%s", info->driver);
    snprintf(id.version, sizeof id.version, "%s, interface %u", TG_VERSION_STRING,
             TG_DEVICE_ABI);
    return id;
}

static int same_text(const tgi_json *row, const char *key, const char *want)
{
    const char *text;
    return tgi_json_str(tgi_json_get(row, key), &text) && strcmp(text, want) == 0;
}

/* 1: a whole row. */
static int read_row(const tgi_json *row, tgi_measured *out)
{
    int64_t bytes = 0;
    double gain = 0;
    if (!tgi_json_num(tgi_json_get(row, "half_gain"), &gain) || !(gain > 0) ||
        gain > MOST_GAIN || !tgi_json_int(tgi_json_get(row, "context_bytes"), &bytes) ||
        bytes < 0)
        return 0;
    *out = (tgi_measured){gain, (uint64_t)bytes};
    return 1;
}

static const tgi_json *rows_of(const tgi_json *doc)
{
    const tgi_json *all = doc ? tgi_json_get(doc, "devices") : NULL;
    return all && tgi_json_is_array(all) ? tgi_json_first(all) : NULL;
}

static tgi_json *load(char *path, size_t cap)
{
    tgi_json *doc = NULL;
    if (tgi_cache_path(FILE_NAME, path, cap, NULL) != TG_OK ||
        tgi_json_load(path, &doc, NULL) != TG_OK)
        return NULL;
    if (!tgi_json_is_object(doc))
        tgi_json_free(&doc);
    return doc;
}

int tgi_measured_read(const tg_device_info *info, tgi_measured *out)
{
    const identity id = identity_of(info);
    char path[1024];
    int found = 0;
    tgi_json *doc = load(path, sizeof path);
    for (const tgi_json *row = rows_of(doc); row && !found; row = tgi_json_next(row))
        found = tgi_json_is_object(row) && same_text(row, "device", id.device) &&
                same_text(row, "driver", id.driver) && same_text(row, "version", id.version) &&
                read_row(row, out);
    tgi_json_free(&doc);
    return found;
}

static void put_row(tgi_jw *w, const char *device, const char *driver, const char *version,
                    const tgi_measured *m)
{
    tgi_jw_begin(w, NULL, '{');
    tgi_jw_str(w, "device", device);
    tgi_jw_str(w, "driver", driver);
    tgi_jw_str(w, "version", version);
    tgi_jw_num(w, "half_gain", m->half_gain);
    tgi_jw_uint(w, "context_bytes", m->context_bytes);
    tgi_jw_end(w, '}');
}

/* Rows of other devices stay; of this one the new row replaces every other. */
static void put_others(tgi_jw *w, const tgi_json *doc, const char *device)
{
    int n = 1;
    for (const tgi_json *row = rows_of(doc); row && n < MOST_DEVICES;
         row = tgi_json_next(row)) {
        const char *name, *driver, *version;
        tgi_measured m;
        if (!tgi_json_is_object(row) || !tgi_json_str(tgi_json_get(row, "device"), &name) ||
            !tgi_json_str(tgi_json_get(row, "driver"), &driver) ||
            !tgi_json_str(tgi_json_get(row, "version"), &version) || !read_row(row, &m) ||
            strcmp(name, device) == 0)
            continue;
        put_row(w, name, driver, version, &m);
        n++;
    }
}

tg_status tgi_measured_write(const tg_device_info *info, const tgi_measured *m, tgi_err *err)
{
    const identity id = identity_of(info);
    char path[1024], *text = NULL;
    tgi_jw w = {0};
    TGI_TRY(tgi_cache_path(FILE_NAME, path, sizeof path, err));
    tgi_json *doc = load(path, sizeof path);
    tgi_jw_begin(&w, NULL, '{');
    tgi_jw_begin(&w, "devices", '[');
    put_row(&w, id.device, id.driver, id.version, m);
    put_others(&w, doc, id.device);
    tgi_jw_end(&w, ']');
    tgi_jw_end(&w, '}');
    tgi_json_free(&doc);
    TGI_TRY(tgi_jw_take(&w, &text, err));
    tg_status st = tgi_make_folders(path, err);
    if (st == TG_OK)
        st = tgi_write_text(path, text, 1, err);
    tgi_free(text);
    return st;
}
