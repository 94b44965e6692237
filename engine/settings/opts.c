/* opts.c - the option table and sets of options (opts.h).
 *
 * Invariant: value[i] is NULL or text that row i's rule accepted, and from[i] is DEFAULT
 * exactly when there is none. Setting replaces; the exceptions are input-tensor and mask-box,
 * which collect. */
#include "engine/settings/opts.h"

#include "engine/base/input.h"
#include "engine/base/mem.h"
#include "engine/base/size.h"
#include "engine/settings/lent.h"
#include "engine/settings/opts_internal.h"
#include "engine/settings/preset.h"
#include "engine/settings/words.h"

#include <stdio.h>
#include <string.h>

typedef enum rule {
    RULE_TEXT,
    RULE_SWITCH,
    RULE_INT,
    RULE_THREADS, /* auto or RULE_INT */
    RULE_CHOICE,
    RULE_TENSOR,
    RULE_RAM,
    RULE_SIZE,     /* bytes with a unit, no percentage */
    RULE_DURATION, /* seconds with a unit */
    RULE_TILE,
    RULE_ROI,
    RULE_PLANES,
    RULE_AXES,
    RULE_NORMALIZE,
    RULE_DTYPE,
    RULE_COMPRESS,
    RULE_AT,
    RULE_SIZES,
    RULE_DIMS,
    RULE_PARAMS,
    RULE_SHARE,
    RULE_LOSS_SCALE,
    RULE_PRICES,
    RULE_INTERVAL,
    RULE_PICTURE, /* FILE.svg or FILE.png; nothing: beside the output */
    RULE_DEVICE,
    RULE_BOXES, /* a box, or some with ";" between; given again they are more */
    RULE_VRAM,  /* RULE_RAM, or a list of sizes */
    RULE_POST,  /* steps (post_spec.h) */
    RULE_PRESET /* a name or a file, read when it is set */
} rule;

typedef struct row_rule {
    int64_t lo, hi;
    const char *choices;
    rule rule;
    int keep;
} row_rule;

static const tg_option table[TGI_OPT_COUNT] = {
#define TGI_OPT(id, name, alias, arg, fallback, verbs, rule, lo, hi, choices, keep, help)      \
    {name, alias, arg, fallback, verbs, help},
#include "engine/settings/opts_list.h"
#undef TGI_OPT
};

static const row_rule rules[TGI_OPT_COUNT] = {
#define TGI_OPT(id, name, alias, arg, fallback, verbs, rule, lo, hi, choices, keep, help)      \
    {lo, hi, choices, rule, keep},
#include "engine/settings/opts_list.h"
#undef TGI_OPT
};

const tg_option *tgi_option_table(size_t *n)
{
    if (n)
        *n = TGI_OPT_COUNT;
    return table;
}

static int is_spelt(const char *name, const char *word, size_t n)
{
    if (!name || strlen(name) != n)
        return 0;
    for (size_t i = 0; i < n; i++)
        if (name[i] != (word[i] == '_' ? '-' : word[i]))
            return 0;
    return 1;
}

tgi_opt tgi_opt_find_n(const char *word, size_t n)
{
    for (int i = 0; i < TGI_OPT_COUNT; i++)
        if (is_spelt(table[i].name, word, n) || is_spelt(table[i].alias, word, n))
            return (tgi_opt)i;
    return TGI_OPT_COUNT;
}

tgi_opt tgi_opt_find(const char *name)
{
    return tgi_opt_find_n(name, strlen(name));
}

bool tgi_opt_in_job(tgi_opt id)
{
    return rules[id].keep != 0;
}

bool tgi_opt_in_preset(tgi_opt id)
{
    return rules[id].keep == 1;
}

bool tgi_opt_is_switch(tgi_opt id)
{
    return rules[id].rule == RULE_SWITCH;
}

bool tgi_opt_is_number(tgi_opt id)
{
    return rules[id].rule == RULE_INT || rules[id].rule == RULE_THREADS ||
           rules[id].rule == RULE_TILE;
}

/* A beginning of the name is near too ("norm"). */
const char *tgi_opt_nearest(const char *name)
{
    const size_t n = strlen(name);
    tgi_nearest near = tgi_nearest_to(name);
    for (int i = 0; i < TGI_OPT_COUNT; i++) {
        const char *words[] = {table[i].name, table[i].alias};
        for (int k = 0; k < 2; k++)
            if (words[k] && words[k][1]) /* one letter is near to everything short */
                tgi_nearest_offer(&near, words[k], words[k]);
    }
    const char *found = near.found;
    for (int i = 0; !found && n >= 2 && i < TGI_OPT_COUNT; i++)
        if (strncmp(table[i].name, name, n) == 0)
            found = table[i].name;
    return found;
}

/* ---- a set ------------------------------------------------------------------------------- */

tg_status tgi_opts_new(tg_opts **out, tgi_err *err)
{
    tg_opts *o = tgi_calloc(TGI_TAG_MISC, 1, sizeof *o);
    if (o && !(o->kept = tgi_calloc(TGI_TAG_MISC, TGI_OPT_COUNT, sizeof *o->kept))) {
        tgi_free(o);
        o = NULL;
    }
    if (!o)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a set of options");
    *out = o;
    return TG_OK;
}

void tgi_opts_free(tg_opts **o)
{
    if (!o || !*o)
        return;
    for (int i = 0; i < TGI_OPT_COUNT; i++) {
        tgi_free((*o)->value[i]);
        tgi_free((*o)->file[i]);
        tgi_free((*o)->kept[i].text);
    }
    tgi_free((*o)->kept);
    for (int i = 0; i < (*o)->n_tensor; i++)
        tgi_free((*o)->tensor[i]);
    tgi_free((*o)->tensor);
    tgi_lent_free(*o);
    tgi_free(*o);
    *o = NULL;
}

static tg_status parse_switch(const char *text, bool *on, tgi_err *err)
{
    static const char words[] = "true|yes|on|1|false|no|off|0";
    const int i = *text ? tgi_choice_index(words, text) : 0;
    if (i < 0)
        return tgi_fail(err, TG_E_ARG, "\"%s\": a switch is true or false", text);
    *on = i < 4;
    return TG_OK;
}

static tg_status check_tensor(const char *text, tgi_err *err)
{
    const char *eq = strchr(text, '=');
    if (!eq || eq == text || !eq[1])
        return tgi_fail(err, TG_E_ARG, "\"%s\": NAME=FILE is expected, such as noise=n.npy",
                        text);
    return TG_OK;
}

static tg_status check_picture(const char *text, tgi_err *err)
{
    const size_t n = strlen(text);
    if (n == 0 ||
        (n > 4 && (strcmp(text + n - 4, ".svg") == 0 || strcmp(text + n - 4, ".png") == 0)))
        return TG_OK;
    return tgi_fail(err, TG_E_ARG, "\"%s\": FILE.svg or FILE.png is expected", text);
}

/* What a refusal says beside the rule. */
static void say_more(tgi_opt id, const char *text, tgi_err *err)
{
    const char *codec = id == TGI_OPT_CODEC ? tgi_codec_called(text) : NULL;
    const size_t n = strlen(err->text);
    if (codec)
        snprintf(err->text + n, sizeof err->text - n, "; the nearest is \"%s\"", codec);
    if (id == TGI_OPT_CRF)
        snprintf(err->text + n, sizeof err->text - n,
                 " (h264 and hevc have 0 to 51, vp9 and av1 0 to 63, ffv1 and prores none)");
}

static tg_status check_boxes(const char *text, tgi_err *err)
{
    tgi_mask_box box;
    for (const char *at = text; *at;)
        TGI_TRY(tgi_boxes_next(&at, &box, err));
    return TG_OK;
}

/* Parse `text` by the rule of row `id` and throw the result away. */
static tg_status check_value(tgi_opt id, const char *text, tgi_err *err)
{
    const row_rule *r = &rules[id];
    union {
        bool on;
        int64_t i, at[3];
        tgi_ram_spec ram;
        uint64_t bytes;
        double seconds;
        tgi_tile_spec tile;
        tgi_roi_spec roi;
        tgi_planes_spec planes;
        tgi_normalize_spec norm;
        tg_dtype dtype;
        tgi_compress_spec comp;
        double number;
        tgi_interval_spec interval;
        tgi_device_spec device;
        tgi_post_spec post;
    } u;
    switch (r->rule) {
    case RULE_TEXT:
    case RULE_PRESET:
        return TG_OK;
    case RULE_SWITCH:
        return parse_switch(text, &u.on, err);
    case RULE_THREADS:
        if (strcmp(text, "auto") == 0)
            return TG_OK;
        if (tgi_int_parse(text, r->lo, r->hi, "", &u.i, NULL) == TG_OK)
            return TG_OK;
        return tgi_fail(err, TG_E_ARG,
                        "\"%s\": auto or a whole number from %lld to %lld is expected", text,
                        (long long)r->lo, (long long)r->hi);
    case RULE_INT:
        return tgi_int_parse(text, r->lo, r->hi, "value", &u.i, err);
    case RULE_CHOICE:
        if (tgi_choice_index(r->choices, text) < 0)
            return tgi_fail(err, TG_E_ARG, "\"%s\": one of %s is expected", text, r->choices);
        return TG_OK;
    case RULE_TENSOR:
        return check_tensor(text, err);
    case RULE_RAM:
        return tgi_ram_parse(text, &u.ram, err);
    case RULE_SIZE:
        return tgi_size_parse(text, 0, &u.bytes, err);
    case RULE_DURATION:
        return tgi_duration_parse(text, &u.seconds, err);
    case RULE_TILE:
        return tgi_tile_parse(text, &u.tile, err);
    case RULE_ROI:
        return tgi_roi_parse(text, &u.roi, err);
    case RULE_PLANES:
        return tgi_planes_parse(text, &u.planes, err);
    case RULE_AXES:
        return tgi_axes_parse(text, err);
    case RULE_NORMALIZE:
        return tgi_normalize_parse(text, &u.norm, err);
    case RULE_DTYPE:
        return tgi_dtype_spec_parse(text, &u.dtype, err);
    case RULE_COMPRESS:
        return tgi_compress_parse(text, &u.comp, err);
    case RULE_AT:
        return tgi_at_parse(text, u.at, err);
    case RULE_SIZES:
        return tgi_sizes_check(text, err);
    case RULE_DIMS:
        return tgi_dims_parse(text, u.at, err);
    case RULE_PARAMS:
        return tgi_params_parse(text, &u.i, err);
    case RULE_SHARE:
        return tgi_share_parse(text, &u.number, err);
    case RULE_LOSS_SCALE:
        return tgi_loss_scale_parse(text, &u.number, err);
    case RULE_PRICES:
        return tgi_prices_check(text, err);
    case RULE_INTERVAL:
        return tgi_interval_parse(text, &u.interval, err);
    case RULE_PICTURE:
        return check_picture(text, err);
    case RULE_VRAM:
        return strchr(text, ',') ? tgi_sizes_check(text, err)
                                 : tgi_ram_parse(text, &u.ram, err);
    case RULE_DEVICE:
        return tgi_device_parse(text, &u.device, err);
    case RULE_BOXES:
        return check_boxes(text, err);
    case RULE_POST:
        return tgi_post_parse(text, &u.post, err);
    }
    return tgi_fail(err, TG_E_INTERNAL, "option %s has no rule", table[id].name);
}

static tg_status add_tensor(tg_opts *o, char *copy, tgi_err *err)
{
    const size_t name_len = (size_t)(strchr(copy, '=') - copy) + 1;
    for (int i = 0; i < o->n_tensor; i++)
        if (strncmp(o->tensor[i], copy, name_len) == 0)
            return tgi_fail(err, TG_E_ARG, "input-tensor: \"%.*s\" was given twice",
                            (int)name_len - 1, copy);
    char **grown =
        tgi_realloc_n(TGI_TAG_MISC, o->tensor, (size_t)o->n_tensor + 1, sizeof *o->tensor);
    if (!grown)
        return tgi_fail(err, TG_E_NOMEM, "no memory for option input-tensor");
    o->tensor = grown;
    o->tensor[o->n_tensor++] = copy;
    return TG_OK;
}

static tg_status fail_unknown(const char *name, tgi_err *err)
{
    const char *near = tgi_opt_nearest(name);
    if (near)
        return tgi_fail(err, TG_E_ARG, "there is no option \"%s\"; the nearest is \"%s\"", name,
                        near);
    return tgi_fail(err, TG_E_ARG, "there is no option \"%s\"; tegula --help lists them", name);
}

tg_status tgi_opt_check(const char *name, const char *value, tgi_opt *id, tgi_err *err)
{
    const tgi_opt i = tgi_opt_find(name);
    if (i == TGI_OPT_COUNT)
        return fail_unknown(name, err);
    if (!*value && rules[i].rule != RULE_SWITCH && rules[i].rule != RULE_PICTURE)
        return tgi_fail(err, TG_E_ARG, "%s: a value is missing (%s)", table[i].name,
                        table[i].arg);
    const tg_status st = check_value(i, value, err);
    if (st == TG_OK)
        *id = i;
    else if (err) {
        say_more(i, value, err);
        tgi_err_prefix(err, "%s", table[i].name);
    }
    return st;
}

static tg_status no_memory(tgi_opt id, tgi_err *err)
{
    return tgi_fail(err, TG_E_NOMEM, "no memory for option %s", table[id].name);
}

/* A copy of a checked value; of boxes behind those that are there from the same place. */
static char *copy_value(const tg_opts *o, tgi_opt id, const char *value, tgi_from from)
{
    const char *before = o->value[id];
    if (rules[id].rule != RULE_BOXES || !before || o->from[id] != from)
        return tgi_strdup(TGI_TAG_MISC, value);
    const size_t n = strlen(before) + strlen(value) + 2;
    char *both = tgi_malloc(TGI_TAG_MISC, n);
    if (both)
        snprintf(both, n, "%s;%s", before, value);
    return both;
}

/* Keep a copy of a checked value and of where it is from. */
static tg_status keep_value(tg_opts *o, tgi_opt id, const char *value, tgi_from from,
                            const char *file, tgi_err *err)
{
    char *origin = file ? tgi_strdup(TGI_TAG_MISC, file) : NULL;
    char *copy = file && !origin ? NULL : copy_value(o, id, value, from);
    tg_status st = copy ? TG_OK : no_memory(id, err);
    if (st == TG_OK && rules[id].rule == RULE_TENSOR)
        st = add_tensor(o, copy, err);
    if (st != TG_OK) {
        tgi_free(origin);
        tgi_free(copy);
        return st;
    }
    if (rules[id].rule != RULE_TENSOR) {
        tgi_free(o->value[id]);
        o->value[id] = copy;
    }
    tgi_free(o->file[id]);
    o->file[id] = origin;
    o->from[id] = (unsigned char)from;
    tgi_free(o->kept[id].text); /* of another pipe */
    o->kept[id] = (tgi_kept){0};
    return TG_OK;
}

tg_status tgi_opts_set_from(tg_opts *o, const char *name, const char *value, tgi_from from,
                            const char *file, tgi_err *err)
{
    tgi_opt id = TGI_OPT_COUNT;
    TGI_TRY(tgi_opt_check(name, value, &id, err));
    if (rules[id].rule == RULE_PRESET)
        TGI_TRY(tgi_preset_apply(o, value, from == TGI_FROM_SET, err));
    const bool on = !*value && rules[id].rule == RULE_SWITCH;
    TGI_TRY(keep_value(o, id, on ? "true" : value, from, file, err));
    /* A preset may choose by the memory of the machine. */
    return id == TGI_OPT_MACHINE && o->value[TGI_OPT_PRESET]
               ? tgi_preset_apply(o, o->value[TGI_OPT_PRESET], 0, err)
               : TG_OK;
}

tg_status tgi_opts_set(tg_opts *o, const char *name, const char *value, tgi_err *err)
{
    return tgi_opts_set_from(o, name, value ? value : "", TGI_FROM_SET, NULL, err);
}

void tgi_opts_forget(tg_opts *o, tgi_opt id)
{
    tgi_free(o->value[id]);
    tgi_free(o->file[id]);
    tgi_free(o->kept[id].text);
    o->kept[id] = (tgi_kept){0};
    o->value[id] = o->file[id] = NULL;
    o->from[id] = TGI_FROM_DEFAULT;
}

void tgi_opts_drop(tg_opts *o, tgi_from from)
{
    for (int i = 0; i < TGI_OPT_COUNT; i++)
        if (o->from[i] == from && i != TGI_OPT_INPUT_TENSOR)
            tgi_opts_forget(o, (tgi_opt)i);
}

static tg_status copy_kept(tg_opts *to, const tg_opts *from, tgi_err *err)
{
    for (int i = 0; i < TGI_OPT_COUNT; i++) {
        const tgi_kept *k = &from->kept[i];
        if (!k->text)
            continue;
        char *text = tgi_malloc(TGI_TAG_MISC, k->n + 1);
        if (!text)
            return no_memory((tgi_opt)i, err);
        memcpy(text, k->text, k->n + 1);
        to->kept[i] = (tgi_kept){text, k->n};
    }
    return TG_OK;
}

tg_status tgi_opts_copy(tg_opts *to, const tg_opts *from, tgi_err *err)
{
    for (int i = 0; i < TGI_OPT_COUNT; i++)
        if (from->value[i])
            TGI_TRY(
                keep_value(to, (tgi_opt)i, from->value[i], from->from[i], from->file[i], err));
    for (int i = 0; i < from->n_tensor; i++)
        TGI_TRY(keep_value(to, TGI_OPT_INPUT_TENSOR, from->tensor[i],
                           from->from[TGI_OPT_INPUT_TENSOR], from->file[TGI_OPT_INPUT_TENSOR],
                           err));
    memcpy(to->set_by, from->set_by, sizeof to->set_by);
    memcpy(to->lowered, from->lowered, sizeof to->lowered);
    TGI_TRY(tgi_lent_copy(to, from, err));
    return copy_kept(to, from, err);
}

const char *tgi_opts_lowered(const tg_opts *o)
{
    return o->lowered;
}

/* ---- Files that options name ---- */

static tg_status keep_pipe(const tg_opts *o, tgi_opt id, const char *path, tgi_err *err)
{
    tgi_kept *k = &o->kept[id];
    return path && !k->text && tgi_input_is_stream(path)
               ? tgi_input_load(path, TGI_JSON_FILE, &k->text, &k->n, err)
               : TG_OK;
}

tg_status tgi_opts_keep_pipes(const tg_opts *o, tgi_err *err)
{
    static const tgi_opt read[] = {TGI_OPT_DESCRIPTOR, TGI_OPT_STATS, TGI_OPT_MACHINE};
    for (size_t i = 0; i < sizeof read / sizeof read[0]; i++)
        TGI_TRY(keep_pipe(o, read[i], o->value[read[i]], err));
    return TG_OK;
}

tg_status tgi_opts_json(const tg_opts *o, tgi_opt id, tgi_json **doc, tgi_err *err)
{
    const char *path = tgi_opts_str(o, id);
    const tgi_kept *k = &o->kept[id];
    TGI_TRY(keep_pipe(o, id, path, err));
    return k->text ? tgi_json_parse(k->text, k->n, path, doc, err)
                   : tgi_json_load(path, doc, err);
}

/* ---- typed getters: the text parsed when it was set, so nothing below can fail ---- */

bool tgi_opts_given(const tg_opts *o, tgi_opt id)
{
    return id == TGI_OPT_INPUT_TENSOR ? o->n_tensor > 0 : o->value[id] != NULL;
}

bool tgi_opts_asked(const tg_opts *o, tgi_opt id)
{
    return tgi_opts_given(o, id) && o->from[id] > TGI_FROM_PRESET;
}

const char *tgi_opts_origin(const tg_opts *o, tgi_opt id)
{
    if (o->from[id] == TGI_FROM_DEFAULT)
        return "default";
    if (o->from[id] == TGI_FROM_SET)
        return o->set_by[0] ? o->set_by : "program";
    return o->file[id];
}

const char *tgi_opts_str(const tg_opts *o, tgi_opt id)
{
    if (id == TGI_OPT_INPUT_TENSOR)
        return o->n_tensor ? o->tensor[0] : NULL;
    return o->value[id] ? o->value[id] : table[id].fallback;
}

bool tgi_opts_flag(const tg_opts *o, tgi_opt id)
{
    const char *text = tgi_opts_str(o, id);
    bool on = false;
    return text && parse_switch(text, &on, NULL) == TG_OK && on;
}

int64_t tgi_opts_int(const tg_opts *o, tgi_opt id, int64_t otherwise)
{
    const char *text = tgi_opts_str(o, id);
    int64_t v = otherwise;
    if (text && strcmp(text, "auto") != 0)
        (void)tgi_int_parse(text, rules[id].lo, rules[id].hi, "", &v, NULL);
    return v;
}

int tgi_opts_choice(const tg_opts *o, tgi_opt id)
{
    const char *text = tgi_opts_str(o, id);
    return text && rules[id].choices ? tgi_choice_index(rules[id].choices, text) : -1;
}

int tgi_opts_n_tensors(const tg_opts *o)
{
    return o->n_tensor;
}

bool tgi_opts_tensor(const tg_opts *o, int i, char *name, size_t cap, const char **file)
{
    if (i < 0 || i >= o->n_tensor || cap == 0)
        return false;
    const char *eq = strchr(o->tensor[i], '=');
    snprintf(name, cap, "%.*s", (int)(eq - o->tensor[i]), o->tensor[i]);
    *file = eq + 1;
    return true;
}

static bool amount(const tg_opts *o, tgi_opt id, tgi_ram_spec *out)
{
    const char *t = tgi_opts_str(o, id);
    return t && tgi_ram_parse(t, out, NULL) == TG_OK;
}

bool tgi_opts_ram(const tg_opts *o, tgi_ram_spec *out)
{
    return amount(o, TGI_OPT_RAM, out);
}

bool tgi_opts_vram(const tg_opts *o, tgi_ram_spec *out)
{
    return amount(o, TGI_OPT_VRAM, out);
}

void tgi_opts_device(const tg_opts *o, tgi_device_spec *out)
{
    *out = (tgi_device_spec){.kind = TGI_DEVICE_CPU, .id = TGI_DEVICE_ANY};
    (void)tgi_device_parse(tgi_opts_str(o, TGI_OPT_DEVICE), out, NULL);
}

void tgi_opts_tile(const tg_opts *o, tgi_tile_spec *out)
{
    *out = (tgi_tile_spec){.automatic = true};
    (void)tgi_tile_parse(tgi_opts_str(o, TGI_OPT_TILE), out, NULL);
}

bool tgi_opts_roi(const tg_opts *o, tgi_roi_spec *out)
{
    const char *t = tgi_opts_str(o, TGI_OPT_ROI);
    return t && tgi_roi_parse(t, out, NULL) == TG_OK;
}

void tgi_opts_planes(const tg_opts *o, tgi_planes_spec *out)
{
    const char *t = tgi_opts_str(o, TGI_OPT_PLANES);
    *out = (tgi_planes_spec){0};
    if (t)
        (void)tgi_planes_parse(t, out, NULL);
}

bool tgi_opts_normalize(const tg_opts *o, tgi_normalize_spec *out)
{
    const char *t = tgi_opts_str(o, TGI_OPT_NORMALIZE);
    return t && tgi_normalize_parse(t, out, NULL) == TG_OK;
}

bool tgi_opts_dtype(const tg_opts *o, tg_dtype *out)
{
    const char *t = tgi_opts_str(o, TGI_OPT_DTYPE);
    return t && tgi_dtype_spec_parse(t, out, NULL) == TG_OK;
}

void tgi_opts_compress(const tg_opts *o, tgi_compress_spec *out)
{
    *out = (tgi_compress_spec){.kind = TGI_COMPRESS_NONE, .level = -1};
    (void)tgi_compress_parse(tgi_opts_str(o, TGI_OPT_COMPRESS), out, NULL);
}

bool tgi_opts_post(const tg_opts *o, tgi_post_spec *out)
{
    const char *t = tgi_opts_str(o, TGI_OPT_POST);
    return t && tgi_post_parse(t, out, NULL) == TG_OK;
}

bool tgi_opts_at(const tg_opts *o, int64_t out[3])
{
    const char *t = tgi_opts_str(o, TGI_OPT_AT);
    return t && tgi_at_parse(t, out, NULL) == TG_OK;
}

bool tgi_opts_interval(const tg_opts *o, tgi_opt id, tgi_interval_spec *out)
{
    const char *t = tgi_opts_str(o, id);
    return t && tgi_interval_parse(t, out, NULL) == TG_OK;
}
