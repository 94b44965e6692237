/* gpus.c - the table of GPUs (configs/gpus.json).
 *
 * The file is checked whole when it is loaded: unknown keys, missing ones, figures out of any
 * range and a name given twice are errors that say which row. */
#include "engine/settings/gpus.h"
#include "engine/base/mem.h"
#include "engine/base/spec.h"
#include "engine/settings/config.h"
#include "engine/settings/words.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const tgi_key top_keys[] = {
    {"schema", TGI_KEY_NUMBER, 1, 1, 1},
    {"note", TGI_KEY_TEXT, 0, 0, 0},
    {"gpus", TGI_KEY_ARRAY, 1, 0, 0},
};
static const tgi_key row_keys[] = {
    {"name", TGI_KEY_TEXT, 1, 0, 0},
    {"gib", TGI_KEY_NUMBER, 1, 0.5, 4096},
    {"compute_capability", TGI_KEY_NUMBER, 0, 1, 99},
    {"multiprocessors", TGI_KEY_NUMBER, 0, 1, 4096},
    {"fp16_tflops", TGI_KEY_NUMBER, 1, 0.1, 1e6},
    {"fp32_tflops", TGI_KEY_NUMBER, 0, 0.1, 1e6},
    {"gb_per_second", TGI_KEY_NUMBER, 1, 1, 1e6},
    {"verified", TGI_KEY_BOOL, 1, 0, 0},
    {"source", TGI_KEY_TEXT, 1, 0, 0},
};
#define N(list) ((int)(sizeof(list) / sizeof((list)[0])))

static void copy_text(const tgi_json *row, const char *key, char *out, size_t cap)
{
    const char *text = "";
    (void)tgi_json_str(tgi_json_get(row, key), &text);
    snprintf(out, cap, "%s", text);
}

static double number(const tgi_json *row, const char *key)
{
    double v = 0;
    (void)tgi_json_num(tgi_json_get(row, key), &v);
    return v;
}

static const tgi_gpu *by_name(const tgi_gpus *t, const char *name, size_t n)
{
    for (int i = 0; i < t->n; i++)
        if (tgi_same_name(name, n, t->gpu[i].name))
            return &t->gpu[i];
    return NULL;
}

static tg_status read_row(const tgi_json *row, const char *path, tgi_gpus *t, tgi_err *err)
{
    char what[1200];
    tgi_gpu g = {0};
    bool verified = false;
    snprintf(what, sizeof what, "%s: row %d", path, t->n + 1);
    TGI_TRY(tgi_config_check(row, row_keys, N(row_keys), what, err));
    copy_text(row, "name", g.name, sizeof g.name);
    copy_text(row, "source", g.source, sizeof g.source);
    (void)tgi_json_bool(tgi_json_get(row, "verified"), &verified);
    g.verified = verified;
    g.memory_bytes = (uint64_t)(number(row, "gib") * TGI_GIB);
    g.fp16_flops = number(row, "fp16_tflops") * 1e12;
    g.fp32_flops = number(row, "fp32_tflops") * 1e12;
    g.bytes_per_second = number(row, "gb_per_second") * 1e9;
    g.multiprocessors = (int)number(row, "multiprocessors");
    g.major = (int)number(row, "compute_capability");
    g.minor = (int)lround(10 * (number(row, "compute_capability") - g.major));
    if (!g.name[0] || strpbrk(g.name, ",="))
        return tgi_fail(err, TG_E_FORMAT, "%s: \"name\" is empty, or has a comma or '=' in it",
                        what);
    if (by_name(t, g.name, strlen(g.name)))
        return tgi_fail(err, TG_E_FORMAT, "%s: \"%s\" is there already", what, g.name);
    if (t->n == TGI_MAX_GPUS)
        return tgi_fail(err, TG_E_FORMAT, "%s: more than %d rows", path, TGI_MAX_GPUS);
    t->gpu[t->n++] = g;
    return TG_OK;
}

static tg_status read_table(const tgi_json *doc, const char *path, tgi_gpus *t, tgi_err *err)
{
    TGI_TRY(tgi_config_check(doc, top_keys, N(top_keys), path, err));
    for (const tgi_json *row = tgi_json_first(tgi_json_get(doc, "gpus")); row;
         row = tgi_json_next(row))
        TGI_TRY(read_row(row, path, t, err));
    return t->n ? TG_OK : tgi_fail(err, TG_E_FORMAT, "%s: no GPUs", path);
}

tg_status tgi_gpus_load(tgi_gpus **out, tgi_err *err)
{
    char path[1024];
    tgi_json *doc = NULL;
    TGI_TRY(tgi_config_path("gpus.json", path, sizeof path, err));
    TGI_TRY(tgi_json_load(path, &doc, err));
    tgi_gpus *t = tgi_calloc(TGI_TAG_MISC, 1, sizeof *t);
    tg_status st = t ? read_table(doc, path, t, err)
                     : tgi_fail(err, TG_E_NOMEM, "no memory for the table of GPUs");
    tgi_json_free(&doc);
    if (st == TG_OK)
        *out = t;
    else
        tgi_free(t);
    return st;
}

/* A word of a row's name that says which build of a GPU it is, and not which GPU. */
static int is_build(const char *word, size_t n)
{
    return (n == 3 && strncmp(word, "SXM", 3) == 0) ||
           (n == 4 && strncmp(word, "PCIe", 4) == 0) ||
           (n > 2 && strncmp(word + n - 2, "GB", 2) == 0 && word[0] >= '0' && word[0] <= '9');
}

/* The name is the first `most` bytes of a row's. */
static int same_model(const char *name, size_t n, const char *row, size_t most)
{
    char model[48];
    snprintf(model, sizeof model, "%.*s", (int)most, row);
    return tgi_same_name(name, n, model);
}

/* "RTX 3060" is "RTX 3060 12GB" where there is no other one. Returns how many builds there are;
 * `list` names them: "A100 40GB or A100 80GB". */
static int builds_of(const tgi_gpus *t, const char *name, size_t n, const tgi_gpu **one,
                     char *list, size_t cap)
{
    int found = 0;
    size_t at = 0;
    list[0] = 0;
    for (int i = 0; i < t->n; i++) {
        const char *row = t->gpu[i].name, *last = strrchr(row, ' ');
        if (!last || !is_build(last + 1, strlen(last + 1)) ||
            !same_model(name, n, row, (size_t)(last - row)))
            continue;
        *one = &t->gpu[i];
        if (at < cap)
            at += (size_t)snprintf(list + at, cap - at, "%s%s", found ? " or " : "", row);
        found++;
    }
    return found;
}

tg_status tgi_gpus_find(const tgi_gpus *t, const char *name, size_t n, const tgi_gpu **out,
                        tgi_err *err)
{
    char asked[48], plain[48], other[48], text[160];
    *out = by_name(t, name, n);
    if (*out)
        return TG_OK;
    snprintf(asked, sizeof asked, "%.*s", (int)n, name);
    const int builds = builds_of(t, name, n, out, text, sizeof text);
    if (builds == 1)
        return TG_OK;
    *out = NULL;
    if (builds)
        return tgi_fail(err, TG_E_ARG, "\"%s\" is there in more than one build: %s", asked,
                        text);
    tgi_plain_name(name, n, plain, sizeof plain);
    tgi_nearest near = {.asked = plain, .best = 4}; /* models differ in a digit or two */
    for (int i = 0; i < t->n; i++) {
        tgi_plain_name(t->gpu[i].name, strlen(t->gpu[i].name), other, sizeof other);
        tgi_nearest_offer(&near, other, t->gpu[i].name);
    }
    return tgi_fail(err, TG_E_ARG,
                    "there is no GPU \"%s\" in the table%s; tegula estimate gpu lists it",
                    asked, tgi_nearest_text(&near, text, sizeof text));
}

/* ---- Of a machine ------------------------------------------------------------------------ */

int tgi_gpu_is_served(const tgi_gpu *g)
{
    return !g->major || 10 * g->major + g->minor >= 75;
}

/* How well a row's name is found in `plain`: letters of the GPU's name, then builds that agree;
 * 0: it is another GPU. */
static int likeness(const char *row, const char *plain)
{
    char model[48] = "", word[48];
    int builds = 0;
    size_t n = 0;
    for (const char *p = row; *p; p += strspn(p, " ")) {
        const size_t len = strcspn(p, " ");
        tgi_plain_name(p, len, word, sizeof word);
        if (is_build(p, len))
            builds += strstr(plain, word) != NULL;
        else
            n += (size_t)snprintf(model + n, sizeof model - n, "%s", word);
        p += len;
    }
    return n && strstr(plain, model) ? 8 * (int)n + builds : 0;
}

const tgi_gpu *tgi_gpus_like(const tgi_gpus *t, const char *name, uint64_t total_bytes)
{
    char plain[128];
    const tgi_gpu *best = NULL;
    int most = 0;
    tgi_plain_name(name, strlen(name), plain, sizeof plain);
    for (int i = 0; i < t->n; i++) {
        const double size = (double)total_bytes / (double)t->gpu[i].memory_bytes;
        const int like = likeness(t->gpu[i].name, plain);
        if (like > most && size > 0.88 && size < 1.12) {
            most = like;
            best = &t->gpu[i];
        }
    }
    return best;
}

void tgi_gpus_of_machine(const tgi_machine *m, const tgi_gpus *table, tgi_gpus *out)
{
    out->n = 0;
    for (int i = 0; i < m->n_gpus && out->n < TGI_MAX_GPUS; i++) {
        const tgi_machine_gpu *there = &m->gpu[i];
        const tgi_gpu *like = tgi_gpus_like(table, there->name, there->total_bytes);
        tgi_gpu *g = &out->gpu[out->n++];
        *g = like ? *like : (tgi_gpu){.verified = 0};
        g->memory_bytes = there->free_bytes;
        snprintf(g->name, sizeof g->name, "%.30s #%d", there->name, i);
    }
}
