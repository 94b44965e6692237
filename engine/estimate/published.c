/* published.c - see published.h. */
#include "engine/estimate/published.h"

#include "engine/settings/config.h"

#include <string.h>

#define PATH "published/propainter.json"
#define N(list) ((int)(sizeof(list) / sizeof((list)[0])))

static const tgi_key top_keys[] = {
    {"schema", TGI_KEY_NUMBER, 1, 1, 1},   {"note", TGI_KEY_TEXT, 1, 0, 0},
    {"inference", TGI_KEY_ARRAY, 1, 0, 0}, {"subvideos", TGI_KEY_ARRAY, 1, 0, 0},
    {"less", TGI_KEY_ARRAY, 1, 0, 0},      {"training", TGI_KEY_ARRAY, 1, 0, 0},
};
static const tgi_key inference_keys[] = {
    {"size", TGI_KEY_TEXT, 1, 0, 0},
    {"frames", TGI_KEY_NUMBER, 1, 1, 1e9},
    {"fp32_gb", TGI_KEY_NUMBER_OR_NULL, 1, 0, 1e6},
    {"fp16_gb", TGI_KEY_NUMBER_OR_NULL, 1, 0, 1e6},
};
static const tgi_key subvideo_keys[] = {
    {"gb", TGI_KEY_NUMBER, 1, 1, 1e6},
    {"subvideo_length", TGI_KEY_NUMBER, 1, 2, 1e6},
};
static const tgi_key less_keys[] = {
    {"precision", TGI_KEY_TEXT, 0, 0, 0},
    {"neighbor_length", TGI_KEY_NUMBER, 0, 2, 1e6},
    {"percent", TGI_KEY_ARRAY, 1, 0, 0},
};
static const tgi_key training_keys[] = {
    {"batch", TGI_KEY_NUMBER, 1, 1, 1e6},
    {"size", TGI_KEY_TEXT, 1, 0, 0},
    {"fp32_gb", TGI_KEY_NUMBER_OR_NULL, 1, 0, 1e6},
    {"fp16_gb", TGI_KEY_NUMBER_OR_NULL, 1, 0, 1e6},
};
static const struct {
    const char *member;
    const tgi_key *keys;
    int n;
} parts[] = {{"inference", inference_keys, N(inference_keys)},
             {"subvideos", subvideo_keys, N(subvideo_keys)},
             {"less", less_keys, N(less_keys)},
             {"training", training_keys, N(training_keys)}};

static tg_status check(const tgi_json *doc, tgi_err *err)
{
    TGI_TRY(tgi_config_check(doc, top_keys, N(top_keys), PATH, err));
    for (int i = 0; i < N(parts); i++)
        for (const tgi_json *row = tgi_published_rows(doc, parts[i].member); row;
             row = tgi_json_next(row))
            TGI_TRY(tgi_config_check(row, parts[i].keys, parts[i].n, PATH, err));
    return TG_OK;
}

tg_status tgi_published_load(tgi_json **out, tgi_err *err)
{
    char path[1024];
    tgi_json *doc = NULL;
    TGI_TRY(tgi_config_path(PATH, path, sizeof path, err));
    TGI_TRY(tgi_json_load(path, &doc, err));
    const tg_status st = check(doc, err);
    if (st == TG_OK)
        *out = doc;
    else
        tgi_json_free(&doc);
    return st;
}

void tgi_published_put_note(const tgi_json *doc, tgi_jw *w)
{
    const char *note = "";
    (void)tgi_json_str(tgi_json_get(doc, "note"), &note);
    tgi_jw_str(w, "published", note);
}

const tgi_json *tgi_published_rows(const tgi_json *doc, const char *member)
{
    return tgi_json_first(tgi_json_get(doc, member));
}

double tgi_published_number(const tgi_json *row, const char *key)
{
    double v = 0;
    (void)tgi_json_num(tgi_json_get(row, key), &v);
    return v;
}

void tgi_published_put_gb(tgi_jw *w, const char *key, const tgi_json *row, const char *from)
{
    double v;
    if (tgi_json_num(tgi_json_get(row, from), &v))
        tgi_jw_num(w, key, v);
    else
        tgi_jw_str(w, key, "out of memory");
}
