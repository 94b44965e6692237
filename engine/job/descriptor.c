/* descriptor.c - MODEL.json beside MODEL.onnx: what a network expects of an image and gives
 * back (docs/reference/json.md). A key that is not known is refused: a slip of the pen must not
 * become another normalisation. What people say to people goes into "about". */
#include "engine/job/descriptor.h"
#include "engine/base/input.h"
#include "engine/base/json.h"
#include "engine/base/mem.h"
#include "engine/job/job.h"
#include "engine/settings/config.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static const tgi_key keys[] = {
    {"name", TGI_KEY_TEXT, 0, 0, 0},
    {"version", TGI_KEY_TEXT, 0, 0, 0},
    {"license", TGI_KEY_TEXT, 0, 0, 0},
    {"normalize", TGI_KEY_TEXT, 0, 0, 0},
    {"output", TGI_KEY_TEXT, 0, 0, 0},
    {"precision", TGI_KEY_TEXT, 0, 0, 0},
    {"window", TGI_KEY_NUMBER, 0, 1, TGI_FRAME_WINDOW_MOST},
    {"window_edge", TGI_KEY_TEXT, 0, 0, 0},
    {"state", TGI_KEY_TEXT, 0, 0, 0},
    {"post", TGI_KEY_TEXT, 0, 0, 0},
    {"about", TGI_KEY_OBJECT, 0, 0, 0},
};

static void copy_str(const tgi_json *doc, const char *key, char *buf, size_t cap)
{
    const char *s;
    if (tgi_json_str(tgi_json_get(doc, key), &s))
        snprintf(buf, cap, "%s", s);
}

static tg_status read_post(const tgi_json *doc, const char *path, tgi_descriptor *d,
                           tgi_err *err)
{
    tgi_post_spec spec;
    tgi_err why = {0};
    const char *text = NULL;
    copy_str(doc, "post", d->post, sizeof d->post);
    if (!tgi_json_str(tgi_json_get(doc, "post"), &text) ||
        tgi_post_parse(text, &spec, &why) == TG_OK)
        return TG_OK;
    return tgi_fail(err, TG_E_FORMAT, "%s: \"post\": %s", path, why.text);
}

static tg_status read_descriptor(const tgi_json *doc, const char *path, tgi_descriptor *d,
                                 tgi_err *err)
{
    tgi_err why = {0};
    char output[32] = "", precision[32] = "";
    if (!tgi_json_is_object(doc))
        return tgi_fail(err, TG_E_FORMAT, "%s: a descriptor is a JSON object", path);
    const tg_status st =
        tgi_config_check(doc, keys, (int)(sizeof keys / sizeof keys[0]), path, &why);
    if (st != TG_OK)
        return tgi_fail(err, st,
                        "%s; a descriptor has name, version, license, normalize, output, "
                        "precision, window, window_edge, state, post, and about for all else",
                        why.text);
    d->present = 1;
    copy_str(doc, "name", d->name, sizeof d->name);
    copy_str(doc, "version", d->version, sizeof d->version);
    copy_str(doc, "license", d->license, sizeof d->license);
    const char *text;
    if (tgi_json_str(tgi_json_get(doc, "normalize"), &text) &&
        strlen(text) >= sizeof d->normalize)
        return tgi_fail(err, TG_E_FORMAT, "%s: the normalisation \"%.40s...\" is too long",
                        path, text);
    copy_str(doc, "normalize", d->normalize, sizeof d->normalize);
    copy_str(doc, "output", output, sizeof output);
    d->says_values = d->normalize[0] || output[0];
    if (output[0] && strcmp(output, "denormalize") != 0 && strcmp(output, "raw") != 0 &&
        strcmp(output, "argmax") != 0)
        return tgi_fail(err, TG_E_FORMAT,
                        "%s: \"output\" is \"raw\", \"denormalize\" or \"argmax\", not "
                        "\"%s\"",
                        path, output);
    copy_str(doc, "precision", precision, sizeof precision);
    if (precision[0] && strcmp(precision, "fp32") != 0 && strcmp(precision, "auto") != 0)
        return tgi_fail(err, TG_E_FORMAT,
                        "%s: \"precision\" is \"auto\" or \"fp32\", not \"%s\"", path,
                        precision);
    copy_str(doc, "state", d->state, sizeof d->state);
    char edge[32] = "";
    copy_str(doc, "window_edge", edge, sizeof edge);
    if (edge[0] && strcmp(edge, "repeat") != 0 && strcmp(edge, "mirror") != 0)
        return tgi_fail(err, TG_E_FORMAT,
                        "%s: \"window_edge\" is \"repeat\" or \"mirror\", not \"%s\"", path,
                        edge);
    d->window_mirror = strcmp(edge, "mirror") == 0;
    if (tgi_json_get(doc, "window") && !tgi_json_int(tgi_json_get(doc, "window"), &d->window))
        return tgi_fail(err, TG_E_FORMAT, "%s: \"window\" is a whole number of frames", path);
    TGI_TRY(read_post(doc, path, d, err));
    d->fp32_only = strcmp(precision, "fp32") == 0;
    d->labels = strcmp(output, "argmax") == 0;
    d->denormalize = strcmp(output, "denormalize") == 0;
    return TG_OK;
}

/* MODEL.json, when it is there. */
static tg_status load_beside(const char *model, tgi_descriptor *d, tgi_err *err)
{
    char path[4096];
    const size_t n = strlen(model);
    tgi_json *doc = NULL;
    if (n < 6 || n >= sizeof path || strcmp(model + n - 5, ".onnx") != 0)
        return TG_OK;
    snprintf(path, sizeof path, "%.*s.json", (int)(n - 5), model);
    if (access(path, R_OK) != 0)
        return TG_OK;
    if (tgi_input_is_stream(path)) /* nobody named it: nobody waits for it */
        return tgi_fail(err, TG_E_FORMAT,
                        "%s, which would describe the model, is a pipe or a device: name it "
                        "with --descriptor, or move it away",
                        path);
    TGI_TRY(tgi_json_load(path, &doc, err));
    const tg_status st = read_descriptor(doc, path, d, err);
    tgi_json_free(&doc);
    return st;
}

/* ---- Descriptions of others -------------------------------------------------------------- */

static int is_card(const char *path)
{
    return tgi_package_named(path);
}

tg_status tgi_descriptor_load(const char *model, const tg_opts *o, tgi_descriptor *d,
                              tgi_err *err)
{
    const char *path = tgi_opts_str(o, TGI_OPT_DESCRIPTOR);
    tgi_json *doc = NULL;
    memset(d, 0, sizeof *d);
    if (!path)
        return load_beside(model, d, err);
    if (is_card(path))
        return TG_OK;
    TGI_TRY(tgi_opts_json(o, TGI_OPT_DESCRIPTOR, &doc, err));
    const tg_status st = tgi_card_is_plans(doc) ? TG_OK : read_descriptor(doc, path, d, err);
    tgi_json_free(&doc);
    return st;
}

/* A .onnx without MODEL.json, which would describe it. */
static int is_undescribed(const char *model)
{
    char path[4096];
    const size_t n = strlen(model);
    if (n < 6 || strcmp(model + n - 5, ".onnx") != 0)
        return 0;
    return (size_t)snprintf(path, sizeof path, "%.*s.json", (int)(n - 5), model) >=
               sizeof path ||
           access(path, F_OK) != 0;
}

/* plans.json beside the network, where no MODEL.json is: its name. */
static int plans_beside(const char *model, char *path, size_t cap)
{
    const char *slash = strrchr(model, '/');
    const int folder = slash ? (int)(slash - model) + 1 : 0;
    if (!is_undescribed(model))
        return 0;
    return (size_t)snprintf(path, cap, "%.*splans.json", folder, model) < cap &&
           access(path, F_OK) == 0 && !tgi_input_is_stream(path);
}

/* What dataset.json beside the plans calls channels. */
static tg_status add_dataset(tgi_card *card, const char *plans, tgi_err *err)
{
    char path[4096];
    const char *slash = strrchr(plans, '/');
    const int folder = slash ? (int)(slash - plans) + 1 : 0;
    tgi_json *doc = NULL;
    if ((size_t)snprintf(path, sizeof path, "%.*sdataset.json", folder, plans) >= sizeof path ||
        access(path, F_OK) != 0 || tgi_input_is_stream(path))
        return TG_OK;
    TGI_TRY(tgi_json_load(path, &doc, err));
    const tg_status st = tgi_card_add_dataset(card, doc, err);
    tgi_json_free(&doc);
    return st;
}

/* nnU-Net's: the option's, or beside the network. `o` NULL: no options. */
static tg_status load_plans(const char *model, const tg_opts *o, tgi_card **card, tgi_err *err)
{
    const char *path = o ? tgi_opts_str(o, TGI_OPT_DESCRIPTOR) : NULL;
    char beside[4096];
    tgi_json *doc = NULL;
    if (path) {
        TGI_TRY(tgi_opts_json(o, TGI_OPT_DESCRIPTOR, &doc, err));
    } else if (plans_beside(model, beside, sizeof beside)) {
        path = beside;
        TGI_TRY(tgi_json_load(path, &doc, err));
        if (!tgi_card_is_plans(doc)) {
            tgi_json_free(&doc);
            return tgi_fail(err, TG_E_FORMAT,
                            "%s, which would describe the model, is not nnU-Net's: name the "
                            "model's description with --descriptor, or move this one away",
                            beside);
        }
    }
    tg_status st =
        doc && tgi_card_is_plans(doc) ? tgi_card_of_plans(doc, path, card, err) : TG_OK;
    tgi_json_free(&doc);
    if (st == TG_OK && *card)
        st = add_dataset(*card, path, err);
    if (st != TG_OK)
        tgi_card_free(card);
    return st;
}

static tg_status load_package(const char *path, tgi_card **card, tgi_err *err)
{
    tgi_package *p = NULL;
    TGI_TRY(tgi_package_open(path, &p, err));
    const tg_status st = tgi_card_of_package(p, card, err);
    tgi_package_close(&p);
    return st;
}

/* ---- A package around the network --------------------------------------------------------- */

/* The file has the bytes that the description means; `sum` "": it does not say which. */
static tg_status check_sum(const char *model, const char *sum, const char *says, tgi_err *err)
{
    unsigned char block[4096];
    char got[TGI_SHA256_TEXT];
    tgi_sha256 h;
    size_t n;
    FILE *f = *sum ? fopen(model, "rb") : NULL;
    if (!f)
        return TG_OK; /* whoever loads it says why */
    tgi_sha256_begin(&h);
    while ((n = fread(block, 1, sizeof block, f)) > 0)
        tgi_sha256_add(&h, block, n);
    fclose(f);
    tgi_sha256_end(&h, got);
    return strcasecmp(got, sum) == 0
               ? TG_OK
               : tgi_fail(err, TG_E_FORMAT,
                          "%s: it is not the file that %s beside it describes: its SHA-256 is "
                          "%.12s..., not %.12s...",
                          model, says, got, sum);
}

/* Is the network the ONNX file of this description? */
static int names_model(const tgi_package *p, const char *model)
{
    const char *slash = strrchr(model, '/'), *source, *inside;
    tgi_err none = {0};
    const tgi_yaml *weights = tgi_yaml_get(tgi_package_says(p), "weights");
    const tgi_yaml *v = tgi_yaml_get(tgi_yaml_get(weights, "onnx"), "source");
    if (tgi_yaml_is_map(v))
        v = tgi_yaml_get(v, "source");
    return tgi_yaml_text(v, &source) && tgi_package_inside(source, &inside, &none) == TG_OK &&
           strcmp(inside, slash ? slash + 1 : model) == 0;
}

/* Does the text of a file that cannot be read as a description have the network's name in it? */
static int mentions(const char *path, const char *model)
{
    const char *slash = strrchr(model, '/');
    tgi_err none = {0};
    char *text = NULL;
    size_t n;
    const int has = tgi_input_load(path, TGI_YAML_BYTES, &text, &n, &none) == TG_OK &&
                    strstr(text, slash ? slash + 1 : model) != NULL;
    tgi_free(text);
    return has;
}

static tg_status load_around(const char *path, const char *model, tgi_card **card, tgi_err *err)
{
    tgi_package *p = NULL;
    tgi_err why = {0};
    tg_status st = tgi_package_open(path, &p, &why);
    if (st != TG_OK)
        return mentions(path, model) ? tgi_fail(err, st, "%s", why.text) : TG_OK;
    if (names_model(p, model))
        st = tgi_card_of_package(p, card, err);
    tgi_package_close(&p);
    if (st == TG_OK && *card)
        st = check_sum(model, (*card)->sha256, path, err);
    if (st != TG_OK)
        tgi_card_free(card);
    return st;
}

/* The description of a package beside the network that is its own: as if the folder was given. Another's is none. */
static tg_status load_around_it(const char *model, tgi_card **card, tgi_err *err)
{
    char folder[4096], path[4096];
    const char *slash = strrchr(model, '/');
    if (!is_undescribed(model) ||
        (size_t)snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - model) + 1 : 1,
                         slash ? model : ".") >= sizeof folder)
        return TG_OK;
    for (int i = 0; !*card && tgi_package_file(folder, i, path, sizeof path); i++)
        if (access(path, F_OK) == 0 && !tgi_input_is_stream(path))
            TGI_TRY(load_around(path, model, card, err));
    return TG_OK;
}

tg_status tgi_descriptor_card_beside(const char *model, tgi_card **card, tgi_err *err)
{
    *card = NULL;
    if (is_card(model))
        return load_package(model, card, err);
    TGI_TRY(load_around_it(model, card, err));
    return *card ? TG_OK : load_plans(model, NULL, card, err);
}

tg_status tgi_descriptor_card(const char *model, const tg_opts *o, tgi_descriptor *d,
                              tgi_card **card, tgi_err *err)
{
    const char *path = tgi_opts_str(o, TGI_OPT_DESCRIPTOR);
    *card = NULL;
    if (!path && tgi_package_named(model))
        path = model;
    if (!path)
        TGI_TRY(load_around_it(model, card, err));
    if (!*card)
        TGI_TRY(path && is_card(path) ? load_package(path, card, err)
                                      : load_plans(model, o, card, err));
    if (!*card)
        return TG_OK;
    d->present = d->says_values = 1;
    snprintf(d->name, sizeof d->name, "%s", (*card)->name);
    snprintf(d->version, sizeof d->version, "%s", (*card)->version);
    snprintf(d->license, sizeof d->license, "%s", (*card)->license);
    d->type = tgi_card_out_type(*card);
    return TG_OK;
}
