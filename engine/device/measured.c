/* measured.c - reads and writes devices.json in the user's cache folder. */
#include "engine/device/measured.h"

#include "engine/base/json.h"
#include "engine/base/mem.h"
#include "io/text_file.h"

#include <stdio.h>
#include <string.h>

#define FILE_NAME "devices.json"
#define MOST_DEVICES 32 /* kept: the last ones */
#define MOST_GAIN 1e4   /* what is beyond is damage */

/* What the figures belong to. */
typedef struct identity {
    char device[160], driver[64], version[48];
} identity;

static identity identity_of(const tgi_device_info *info)
{
    identity id;
    snprintf(id.device, sizeof id.device, "%s %s", info->name, info->uuid);
    snprintf(id.driver, sizeof id.driver, "%s", info->driver);
    snprintf(id.version, sizeof id.version, "%s, interface %u", TG_VERSION_STRING,
             TGI_DEVICE_ABI);
    return id;
}

static int same_text(const tgi_json *row, const char *key, const char *want)
{
    const char *text;
    return tgi_json_str(tgi_json_get(row, key), &text) && strcmp(text, want) == 0;
}

static void know_nothing(tgi_measured *m)
{
    *m = (tgi_measured){.context_bytes = 0};
    for (int i = 0; i < TGI_GAIN_COUNT; i++)
        m->gain[i] = -1;
}

/* 1: there is no such key, or a size. */
static int read_bytes(const tgi_json *row, const char *key, uint64_t *out)
{
    int64_t bytes = 0;
    const tgi_json *at = tgi_json_get(row, key);
    if (at && (!tgi_json_int(at, &bytes) || bytes < 0))
        return 0;
    *out = (uint64_t)bytes;
    return 1;
}

/* 1: nothing in it is damaged. */
static int read_row(const tgi_json *row, tgi_measured *out)
{
    know_nothing(out);
    int good = read_bytes(row, "context_bytes", &out->context_bytes) &&
               read_bytes(row, "library_bytes", &out->library_bytes);
    for (int i = 0; i < TGI_GAIN_COUNT; i++) {
        const tgi_json *at = tgi_json_get(row, tgi_gain_name((tgi_gain)i));
        if (at)
            good &= tgi_json_num(at, &out->gain[i]) && out->gain[i] >= 0 &&
                    out->gain[i] <= MOST_GAIN;
    }
    return good;
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

void tgi_measured_read(const tgi_device_info *info, tgi_measured *out)
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
    if (!found)
        know_nothing(out);
}

static void put_row(tgi_jw *w, const char *device, const char *driver, const char *version,
                    const tgi_measured *m)
{
    tgi_jw_begin(w, NULL, '{');
    tgi_jw_str(w, "device", device);
    tgi_jw_str(w, "driver", driver);
    tgi_jw_str(w, "version", version);
    for (int i = 0; i < TGI_GAIN_COUNT; i++)
        if (m->gain[i] >= 0)
            tgi_jw_num(w, tgi_gain_name((tgi_gain)i), m->gain[i]);
    if (m->context_bytes)
        tgi_jw_uint(w, "context_bytes", m->context_bytes);
    if (m->library_bytes)
        tgi_jw_uint(w, "library_bytes", m->library_bytes);
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

tg_status tgi_measured_write(const tgi_device_info *info, const tgi_measured *m, tgi_err *err)
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
