/* preset_file.c - one preset file: its keys, its settings, its device part (preset.h). */
#include "engine/settings/preset.h"

#include "engine/base/mem.h"
#include "engine/base/size.h"
#include "engine/settings/config.h"
#include "engine/settings/machine.h"
#include "engine/settings/opts_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define MOST_BYTES ((off_t)256 << 10)
#define N(list) ((int)(sizeof(list) / sizeof((list)[0])))

static const tgi_key top_keys[] = {
    {"schema", TGI_KEY_NUMBER, 1, 1, 1}, {"description", TGI_KEY_TEXT, 1, 0, 0},
    {"why", TGI_KEY_TEXT, 0, 0, 0},      {"settings", TGI_KEY_OBJECT, 0, 0, 0},
    {"device", TGI_KEY_OBJECT, 0, 0, 0}, {"by_memory", TGI_KEY_ARRAY, 0, 0, 0},
};
static const tgi_key memory_keys[] = {
    {"below_gib", TGI_KEY_NUMBER, 0, 0.5, 1048576},
    {"preset", TGI_KEY_TEXT, 1, 0, 0},
};
static const tgi_key device_keys[] = {
    {"gib", TGI_KEY_NUMBER, 1, 0.5, 4096},
    {"tile", TGI_KEY_NUMBER, 1, 16, 1048576},
    {"batch", TGI_KEY_NUMBER, 1, 1, 65536},
    {"precision", TGI_KEY_TEXT, 1, 0, 0},
};

/* A text member, of at most cap - 1 bytes: longer ones are refused, not cut. */
static tg_status read_text(const tgi_json *v, const char *key, const char *what, char *out,
                           size_t cap, tgi_err *err)
{
    const char *text = "";
    (void)tgi_json_str(tgi_json_get(v, key), &text);
    if (strlen(text) >= cap)
        return tgi_fail(err, TG_E_FORMAT, "%s: \"%s\" is longer than %zu bytes", what, key,
                        cap - 1);
    snprintf(out, cap, "%s", text);
    return TG_OK;
}

static tg_status read_count(const tgi_json *v, const char *key, const char *what, int64_t *out,
                            tgi_err *err)
{
    double n = 0;
    (void)tgi_json_num(tgi_json_get(v, key), &n);
    *out = (int64_t)n; /* its range is checked */
    if (floor(n) != n)
        return tgi_fail(err, TG_E_FORMAT, "%s: \"%s\" is %g, no whole number", what, key, n);
    return TG_OK;
}

static tg_status read_device(const tgi_json *v, const char *path, tg_preset_device *d,
                             tgi_err *err)
{
    char what[1100];
    double gib = 0;
    snprintf(what, sizeof what, "%s: device", path);
    TGI_TRY(tgi_config_check(v, device_keys, N(device_keys), what, err));
    TGI_TRY(read_text(v, "precision", what, d->precision, sizeof d->precision, err));
    TGI_TRY(read_count(v, "tile", what, &d->tile, err));
    TGI_TRY(read_count(v, "batch", what, &d->batch, err));
    (void)tgi_json_num(tgi_json_get(v, "gib"), &gib);
    d->memory_bytes = (uint64_t)(gib * 1073741824.0);
    if (tgi_choice_index("fp32|fp16|bf16", d->precision) < 0)
        return tgi_fail(err, TG_E_FORMAT,
                        "%s: \"precision\" is \"%s\"; one of fp32, fp16 and bf16 is expected",
                        what, d->precision);
    return TG_OK;
}

/* The file is small and a file: a pipe would wait, a device has no end. */
static tg_status check_file(const char *path, tgi_err *err)
{
    struct stat s;
    if (stat(path, &s) != 0)
        return tgi_fail(err, TG_E_NOT_FOUND, "%s: there is no such preset file", path);
    if (!S_ISREG(s.st_mode))
        return tgi_fail(err, TG_E_FORMAT, "%s: a preset is a file", path);
    if (s.st_size > MOST_BYTES)
        return tgi_fail(err, TG_E_FORMAT, "%s: %lld bytes; a preset has at most %lld", path,
                        (long long)s.st_size, (long long)MOST_BYTES);
    return TG_OK;
}

/* ---- By memory --------------------------------------------------------------------------- */

static tg_status memory_of(const tg_opts *o, uint64_t *bytes, tgi_err *err)
{
    tgi_machine *m = tgi_calloc(TGI_TAG_MISC, 1, sizeof *m);
    tg_status st = m ? TG_OK : tgi_fail(err, TG_E_NOMEM, "no memory to look at the machine");
    if (m && o)
        st = tgi_machine_of(o, m, err);
    else if (m)
        tgi_machine_here(m);
    if (st == TG_OK) {
        tgi_machine_find_gpus(m);
        *bytes = m->n_gpus ? m->gpu[0].total_bytes : m->free_bytes;
    }
    tgi_free(m);
    return st;
}

/* The first row that is not below it. */
static tg_status choose(const tgi_json *rows, tgi_preset *out, tgi_err *err)
{
    char what[1100];
    snprintf(what, sizeof what, "%s: by_memory", out->info.path);
    TGI_TRY(memory_of(out->of, &out->memory, err));
    for (const tgi_json *row = tgi_json_first(rows); row; row = tgi_json_next(row)) {
        double below = 0;
        TGI_TRY(tgi_config_check(row, memory_keys, N(memory_keys), what, err));
        const int bound = tgi_json_num(tgi_json_get(row, "below_gib"), &below);
        if (!out->chosen[0] && (!bound || (double)out->memory < below * 1073741824.0))
            TGI_TRY(read_text(row, "preset", what, out->chosen, sizeof out->chosen, err));
    }
    return out->chosen[0] ? TG_OK
                          : tgi_fail(err, TG_E_FORMAT,
                                     "%s: the last row has a \"below_gib\": none is left for "
                                     "more memory",
                                     what);
}

static tg_status read_chosen(const tgi_json *rows, tgi_preset *out, tgi_err *err)
{
    tgi_preset inner = {0};
    TGI_TRY(choose(rows, out, err));
    tg_status st = tgi_preset_find(out->chosen, &inner.info, err);
    if (st == TG_OK && strcmp(inner.info.path, out->info.path) == 0)
        st =
            tgi_fail(err, TG_E_FORMAT, "%s: by_memory names the preset itself", out->info.path);
    inner.nested = 1;
    if (st == TG_OK)
        st = tgi_preset_read(&inner, err);
    out->settings = inner.settings;
    return st;
}

static tg_status read_document(const tgi_json *doc, tgi_preset *out, tgi_err *err)
{
    tg_preset_info *i = &out->info;
    char what[1100];
    TGI_TRY(tgi_config_check(doc, top_keys, N(top_keys), i->path, err));
    TGI_TRY(read_text(doc, "description", i->path, i->description, sizeof i->description, err));
    TGI_TRY(read_text(doc, "why", i->path, i->why, sizeof i->why, err));
    const tgi_json *settings = tgi_json_get(doc, "settings");
    const tgi_json *device = tgi_json_get(doc, "device"),
                   *rows = tgi_json_get(doc, "by_memory");
    if (!rows == !settings)
        return tgi_fail(err, TG_E_FORMAT, "%s: \"settings\" or \"by_memory\" is expected",
                        i->path);
    if (rows && out->nested)
        return tgi_fail(err, TG_E_FORMAT,
                        "%s: it chooses by memory, and so does the preset that chose it",
                        i->path);
    if (rows)
        return read_chosen(rows, out, err);
    if (device)
        TGI_TRY(read_device(device, i->path, &i->device, err));
    if (!device && !tgi_json_first(settings))
        return tgi_fail(err, TG_E_FORMAT, "%s: no settings and no device: it says nothing",
                        i->path);
    snprintf(what, sizeof what, "%s: settings", i->path);
    TGI_TRY(tgi_opts_new(&out->settings, err));
    return tgi_opts_read(out->settings, settings, TGI_FROM_PRESET, what, err);
}

tg_status tgi_preset_read(tgi_preset *out, tgi_err *err)
{
    tgi_json *doc = NULL;
    TGI_TRY(check_file(out->info.path, err));
    TGI_TRY(tgi_json_load(out->info.path, &doc, err));
    const tg_status st = read_document(doc, out, err);
    tgi_json_free(&doc);
    return st;
}

void tgi_preset_close(tgi_preset *p)
{
    tgi_opts_free(&p->settings);
}

const char *tgi_preset_device_text(const tg_preset_device *d, char *buf, size_t cap)
{
    char size[32];
    snprintf(buf, cap, "%s: tile %lld, batch %lld, %s",
             tgi_size_text(d->memory_bytes, size, sizeof size), (long long)d->tile,
             (long long)d->batch, d->precision);
    return buf;
}
