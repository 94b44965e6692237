/* card_read.c - a bioimage.io description of a model, formats 0.4 and 0.5, to a card.
 *
 * Of format 0.4 axes are a text ("bcyx") and a shape lists their extents; of 0.5 each axis is a mapping of its own. Authors,
 * tests, covers and whatever else does not change a result is passed over. */
#include "engine/graph/card.h"

#include <stdio.h>
#include <string.h>

/* What of a tensor is read. */
typedef struct reading {
    tgi_card *card;
    tgi_card_port *port;
    int format, output;
} reading;

static void copy_text(const tgi_yaml *v, char *to, size_t cap)
{
    const char *s;
    if (tgi_yaml_text(v, &s))
        snprintf(to, cap, "%s", s);
}

static tg_status wrong(const reading *r, const char *what, tgi_err *err)
{
    return tgi_fail(err, TG_E_FORMAT, "%s \"%s\": %s", r->output ? "output" : "input",
                    r->port->name, what);
}

static tg_status add_axis(const reading *r, char letter, int64_t size, int64_t step,
                          tgi_err *err)
{
    tgi_card_port *p = r->port;
    if (!letter || !strchr("bczyx", letter))
        return tgi_fail(err, TG_E_UNSUPPORTED,
                        "%s \"%s\": the axis \"%c\"; batch, channel, z, y and x are done",
                        r->output ? "output" : "input", p->name, letter ? letter : '?');
    if (tgi_card_axis_of(p, letter) >= 0)
        return wrong(r, "an axis is there twice", err);
    if (p->n_axes == TGI_CARD_AXES)
        return wrong(r, "it has too many axes", err);
    if (size < 0 || step < 0 || size > INT32_MAX || step > INT32_MAX)
        return wrong(r, "a size or step is out of its range", err);
    p->axis[p->n_axes++] = (tgi_card_axis){letter, size, step};
    return TG_OK;
}

/* ---- Format 0.4 -------------------------------------------------------------------------- */

static tg_status number_at(const reading *r, const tgi_yaml *list, int i, int64_t *out,
                           tgi_err *err)
{
    const tgi_yaml *v = tgi_yaml_first(list);
    for (; v && i > 0; i--)
        v = tgi_yaml_next(v);
    return tgi_yaml_int(v, out) ? TG_OK : wrong(r, "its shape is no list of numbers", err);
}

/* Extents of axis i of an input: exact ones, or {min, step}. */
static tg_status extent_4(const reading *r, const tgi_yaml *shape, int i, int64_t *size,
                          int64_t *step, tgi_err *err)
{
    *step = 0;
    if (tgi_yaml_is_list(shape))
        return number_at(r, shape, i, size, err);
    TGI_TRY(number_at(r, tgi_yaml_get(shape, "min"), i, size, err));
    return number_at(r, tgi_yaml_get(shape, "step"), i, step, err);
}

static tg_status axes_4(const reading *r, const tgi_yaml *t, tgi_err *err)
{
    const char *axes;
    const tgi_yaml *shape = tgi_yaml_get(t, "shape");
    if (!tgi_yaml_text(tgi_yaml_get(t, "axes"), &axes))
        return wrong(r, "it has no axes", err);
    const int n = (int)strlen(axes), of_list = tgi_yaml_is_list(shape);
    const tgi_yaml *listed = of_list ? shape : tgi_yaml_get(shape, r->output ? "scale" : "min");
    if (tgi_yaml_count(listed) != n || n < 1)
        return wrong(r, "its shape has not one entry for each axis", err);
    if (!of_list && !r->output && tgi_yaml_count(tgi_yaml_get(shape, "step")) != n)
        return wrong(r, "its shape has not one step for each axis", err);
    for (int i = 0; i < n; i++) {
        int64_t size = 0, step = 0;
        if (!r->output || of_list) /* what an output has follows from the network */
            TGI_TRY(extent_4(r, shape, i, &size, &step, err));
        TGI_TRY(add_axis(r, axes[i], size, step, err));
    }
    return TG_OK;
}

/* ---- Format 0.5 -------------------------------------------------------------------------- */

static tg_status size_5(const reading *r, const tgi_yaml *v, int64_t *size, int64_t *step,
                        tgi_err *err)
{
    *size = *step = 0;
    if (tgi_yaml_is_null(v))
        return wrong(r, "an axis without a size", err);
    if (tgi_yaml_int(v, size))
        return *size > 0 ? TG_OK : wrong(r, "a size that is not above 0", err);
    if (tgi_yaml_get(v, "min") && tgi_yaml_get(v, "step"))
        return tgi_yaml_int(tgi_yaml_get(v, "min"), size) &&
                       tgi_yaml_int(tgi_yaml_get(v, "step"), step) && *size > 0 && *step > 0
                   ? TG_OK
                   : wrong(r, "a size whose min or step is no number", err);
    if (!tgi_yaml_get(v, "tensor_id") && !(r->output && tgi_yaml_get(v, "min")))
        return wrong(r, "a size that is not understood", err);
    return r->output ? TG_OK /* it follows from the network */
                     : tgi_fail(err, TG_E_UNSUPPORTED,
                                "input \"%s\": a size that is another axis's", r->port->name);
}

static tg_status channel_5(const reading *r, const tgi_yaml *axis, tgi_err *err)
{
    const tgi_yaml *names = tgi_yaml_get(axis, "channel_names");
    int64_t size = tgi_yaml_count(names), step = 0;
    if (tgi_yaml_is_list(names))
        TGI_TRY(tgi_card_names_of_list(names, r->port, err));
    else
        TGI_TRY(size_5(r, tgi_yaml_get(axis, "size"), &size, &step, err));
    return add_axis(r, 'c', size, 0, err);
}

static tg_status axis_5(const reading *r, const tgi_yaml *axis, tgi_err *err)
{
    const char *type, *id = "";
    int64_t size, step;
    if (!tgi_yaml_text(tgi_yaml_get(axis, "type"), &type))
        return wrong(r, "an axis without a type", err);
    if (strcmp(type, "batch") == 0)
        return add_axis(r, 'b', 0, 0, err);
    if (strcmp(type, "channel") == 0)
        return channel_5(r, axis, err);
    if (strcmp(type, "space") != 0)
        return tgi_fail(err, TG_E_UNSUPPORTED,
                        "%s \"%s\": an axis of type \"%.40s\"; batch, channel and space are "
                        "done",
                        r->output ? "output" : "input", r->port->name, type);
    if (!tgi_yaml_text(tgi_yaml_get(axis, "id"), &id) || !id[0] || id[1])
        return wrong(r, "an axis of space that is not x, y or z", err);
    TGI_TRY(size_5(r, tgi_yaml_get(axis, "size"), &size, &step, err));
    if (r->output)
        size = step = 0;
    return add_axis(r, id[0], size, step, err);
}

static tg_status axes_5(const reading *r, const tgi_yaml *t, tgi_err *err)
{
    const tgi_yaml *list = tgi_yaml_get(t, "axes");
    if (!tgi_yaml_is_list(list) || !tgi_yaml_count(list))
        return wrong(r, "it has no axes", err);
    for (const tgi_yaml *v = tgi_yaml_first(list); v; v = tgi_yaml_next(v))
        TGI_TRY(axis_5(r, v, err));
    return TG_OK;
}

/* ---- Tensors ----------------------------------------------------------------------------- */

static tg_status read_type(const reading *r, const tgi_yaml *t, tgi_err *err)
{
    const char *type;
    const tgi_yaml *v = r->format == 4 ? tgi_yaml_get(t, "data_type")
                                       : tgi_yaml_get(tgi_yaml_get(t, "data"), "type");
    if (!tgi_yaml_text(v, &type))
        return TG_OK; /* of 0.5 it may be a list of channels */
    if (strcmp(type, "bool") == 0)
        r->port->dtype = TG_DTYPE_BOOL;
    else if (tgi_dtype_spec_parse(type, &r->port->dtype, NULL) != TG_OK)
        return wrong(r, "its type is none that is known", err);
    return TG_OK;
}

/* What tells steps of different scopes apart that one pass of statistics would mix. */
static tg_status check_loaded(const reading *r, tgi_err *err)
{
    const tgi_step *first = NULL, *ranked = NULL;
    for (int i = 0; i < r->port->n_loaded; i++) {
        const tgi_step *s = &r->port->step[i];
        if (s->kind != TGI_STEP_LINEAR && s->kind != TGI_STEP_CLIP && !tgi_step_measures(s) &&
            (s->kind != TGI_STEP_CAST || !tgi_dtype_is_float(s->type)))
            return tgi_fail(err, TG_E_UNSUPPORTED,
                            "input \"%s\": %s before a step that measures the image",
                            r->port->name, s->name);
        if (!tgi_step_measures(s))
            continue;
        if (first && (first->by_channel != s->by_channel || first->whole_set != s->whole_set))
            return tgi_fail(err, TG_E_UNSUPPORTED,
                            "input \"%s\": %s and %s measure along different axes",
                            r->port->name, first->name, s->name);
        first = first ? first : s;
        if (s->kind != TGI_STEP_RANGE && s->kind != TGI_STEP_CLIP)
            continue;
        const int extremes = s->low == 0 && s->high == 100;
        if (!extremes && ranked &&
            (ranked->low != s->low || ranked->high != s->high || ranked->kind != s->kind))
            return tgi_fail(err, TG_E_UNSUPPORTED,
                            "input \"%s\": %s and %s take different percentiles", r->port->name,
                            ranked->name, s->name);
        ranked = extremes ? ranked : s;
    }
    return TG_OK;
}

/* Casts to a type that networks compute in anyway are no steps of the loader's. */
static void find_loaded(tgi_card_port *p)
{
    for (int i = 0; i < p->n_step; i++)
        if (tgi_step_measures(&p->step[i]))
            p->n_loaded = i + 1;
}

static tg_status read_tensor(const reading *r, const tgi_yaml *t, tgi_err *err)
{
    const char *id = r->format == 4 ? "name" : "id";
    const tgi_yaml *steps = tgi_yaml_get(t, r->output ? "postprocessing" : "preprocessing");
    if (!tgi_yaml_is_map(t))
        return wrong(r, "no mapping", err);
    snprintf(r->port->name, sizeof r->port->name, "%s", r->output ? "output" : "input");
    copy_text(tgi_yaml_get(t, id), r->port->name, sizeof r->port->name);
    TGI_TRY(r->format == 4 ? axes_4(r, t, err) : axes_5(r, t, err));
    TGI_TRY(read_type(r, t, err));
    if (tgi_card_axis_of(r->port, 'y') < 0 || tgi_card_axis_of(r->port, 'x') < 0) {
        if (!r->output)
            return tgi_fail(err, TG_E_UNSUPPORTED, "input \"%s\" has no axes y and x",
                            r->port->name);
    }
    tgi_err e = {0};
    const tg_status st = tgi_card_steps(steps, r->format, r->output, r->card, r->port, &e);
    if (st != TG_OK)
        return tgi_fail(err, st, "%s \"%s\": %s", r->output ? "output" : "input", r->port->name,
                        e.text);
    if (r->output)
        return TG_OK;
    find_loaded(r->port);
    return check_loaded(r, err);
}

static tg_status read_tensors(tgi_card *card, const tgi_yaml *says, int format, int output,
                              tgi_err *err)
{
    const char *key = output ? "outputs" : "inputs";
    const tgi_yaml *list = tgi_yaml_get(says, key);
    int *n = output ? &card->n_out : &card->n_in;
    if (!tgi_yaml_is_list(list) || !tgi_yaml_count(list))
        return tgi_fail(err, TG_E_FORMAT, "it has no %s", key);
    for (const tgi_yaml *t = tgi_yaml_first(list); t; t = tgi_yaml_next(t)) {
        if (*n == TGI_CARD_PORTS)
            return tgi_fail(err, TG_E_UNSUPPORTED, "more than %d %s", TGI_CARD_PORTS, key);
        tgi_card_port *p = output ? &card->out[*n] : &card->in[*n];
        const reading r = {card, p, format, output};
        (*n)++;
        TGI_TRY(read_tensor(&r, t, err));
    }
    return TG_OK;
}

static int64_t channels_of(const tgi_card_port *p)
{
    const int c = tgi_card_axis_of(p, 'c');
    return c < 0 ? 1 : p->axis[c].size;
}

/* A step that takes numbers of the image behind the network is the last one there, and takes them as the input's do. */
static tg_status check_back(const tgi_card *card, tgi_err *err)
{
    for (int o = 0; o < card->n_out; o++)
        for (int i = 0; i < card->out[o].n_step; i++) {
            const tgi_step *s = &card->out[o].step[i];
            if (!s->of_input)
                continue;
            const int each = s->by_channel && channels_of(&card->in[0]) != 1;
            if (o > 0 || i + 1 < card->out[o].n_step || each)
                return tgi_fail(err, TG_E_UNSUPPORTED,
                                "output \"%s\": %s by numbers of the input %s",
                                card->out[o].name, s->name,
                                o      ? "behind another output than the first"
                                : each ? "of each channel by itself"
                                       : "that is not the last step");
            for (int k = 0; k < card->in[0].n_loaded; k++) {
                const tgi_step *t = &card->in[0].step[k];
                const int ranks =
                    s->kind == TGI_STEP_RANGE && t->kind != TGI_STEP_ZSCORE &&
                    (t->kind != s->kind || t->low != s->low || t->high != s->high);
                if (tgi_step_measures(t) &&
                    (t->by_channel || t->whole_set != s->whole_set || ranks))
                    return tgi_fail(err, TG_E_UNSUPPORTED,
                                    "%s before the network and %s behind it take different "
                                    "numbers of the input",
                                    t->name, s->name);
            }
        }
    return TG_OK;
}

/* ---- Weights ----------------------------------------------------------------------------- */

/* How an ONNX file is made of what is there. */
static tg_status no_onnx(const tgi_yaml *weights, const char *text, tgi_err *err)
{
    char there[160] = "";
    size_t n = 0;
    int torch = 0;
    for (const tgi_yaml *v = tgi_yaml_first(weights); v; v = tgi_yaml_next(v)) {
        const char *key = tgi_yaml_key(v);
        if (tgi_yaml_is_null(v))
            continue;
        if (n < sizeof there)
            n += (size_t)snprintf(there + n, sizeof there - n, "%s%.40s", n ? ", " : "", key);
        torch |= strcmp(key, "pytorch_state_dict") == 0 || strcmp(key, "torchscript") == 0;
    }
    if (!n)
        return tgi_fail(err, TG_E_FORMAT, "it names no weights");
    return tgi_fail(err, TG_E_UNSUPPORTED, "it has no ONNX weights; there is %s%s%s%s", there,
                    torch ? ". This makes a package that has: python3 tools/export_onnx.py "
                          : ": export one with the program that trained it",
                    torch ? text : "", torch ? " -o PACKAGE/" : "");
}

static tg_status read_sum(const tgi_yaml *v, char out[TGI_SHA256_TEXT], tgi_err *err)
{
    const char *s;
    if (tgi_yaml_is_null(v))
        return TG_OK;
    if (!tgi_yaml_text(v, &s) || strlen(s) != TGI_SHA256_TEXT - 1 ||
        strspn(s, "0123456789abcdefABCDEF") != TGI_SHA256_TEXT - 1)
        return tgi_fail(err, TG_E_FORMAT, "its weights' \"sha256\" is none");
    memcpy(out, s, TGI_SHA256_TEXT);
    return TG_OK;
}

static tg_status read_source(const tgi_yaml *v, char *out, size_t cap, tgi_err *err)
{
    const char *s, *inside;
    if (tgi_yaml_is_map(v))
        v = tgi_yaml_get(v, "source");
    if (!tgi_yaml_text(v, &s))
        return tgi_fail(err, TG_E_FORMAT, "its weights have no \"source\"");
    TGI_TRY(tgi_package_inside(s, &inside, err));
    return (size_t)snprintf(out, cap, "%s", inside) < cap
               ? TG_OK
               : tgi_fail(err, TG_E_FORMAT, "its weights' \"source\" is too long");
}

static tg_status read_weights(tgi_card *card, const tgi_yaml *says, const char *path,
                              tgi_err *err)
{
    const tgi_yaml *weights = tgi_yaml_get(says, "weights"),
                   *onnx = tgi_yaml_get(weights, "onnx");
    if (!tgi_yaml_is_map(weights))
        return tgi_fail(err, TG_E_FORMAT, "it names no weights");
    if (tgi_yaml_is_null(onnx))
        return no_onnx(weights, path, err);
    TGI_TRY(read_source(tgi_yaml_get(onnx, "source"), card->source, sizeof card->source, err));
    TGI_TRY(read_sum(tgi_yaml_get(onnx, "sha256"), card->sha256, err));
    if (!tgi_yaml_is_null(tgi_yaml_get(onnx, "external_data")))
        return read_source(tgi_yaml_get(onnx, "external_data"), card->beside,
                           sizeof card->beside, err);
    return TG_OK;
}

/* ---- The whole --------------------------------------------------------------------------- */

static tg_status read_format(const tgi_yaml *says, int *out, tgi_err *err)
{
    const char *type, *version;
    if (!tgi_yaml_is_map(says))
        return tgi_fail(err, TG_E_FORMAT, "it is no description of a model");
    if (tgi_yaml_text(tgi_yaml_get(says, "type"), &type) && strcmp(type, "model") != 0)
        return tgi_fail(err, TG_E_FORMAT, "it describes a %.40s, no model", type);
    if (!tgi_yaml_text(tgi_yaml_get(says, "format_version"), &version))
        return tgi_fail(err, TG_E_FORMAT, "it has no \"format_version\"");
    *out = strncmp(version, "0.4.", 4) == 0 ? 4 : strncmp(version, "0.5.", 4) == 0 ? 5 : 0;
    return *out ? TG_OK
                : tgi_fail(err, TG_E_UNSUPPORTED,
                           "its format is %.40s; 0.4 and 0.5 of bioimage.io are read", version);
}

static tg_status read_all(tgi_card *card, const tgi_yaml *says, const char *what,
                          const char *sum, tgi_err *err)
{
    int format;
    TGI_TRY(read_format(says, &format, err));
    snprintf(card->format, sizeof card->format, "bioimage.io 0.%d", format);
    snprintf(card->sum, sizeof card->sum, "%s", sum);
    copy_text(tgi_yaml_get(says, "name"), card->name, sizeof card->name);
    copy_text(tgi_yaml_get(says, "version"), card->version, sizeof card->version);
    copy_text(tgi_yaml_get(says, "license"), card->license, sizeof card->license);
    TGI_TRY(read_tensors(card, says, format, 0, err));
    TGI_TRY(read_tensors(card, says, format, 1, err));
    TGI_TRY(check_back(card, err));
    return read_weights(card, says, what, err);
}

tg_status tgi_card_of_yaml(const tgi_yaml *says, const char *what, const char *sum,
                           tgi_card **out, tgi_err *err)
{
    tgi_card *card;
    tgi_err e = {0};
    TGI_TRY(tgi_card_new(&card, err));
    const tg_status st = read_all(card, says, what, sum, &e);
    if (st != TG_OK) {
        tgi_card_free(&card);
        return tgi_fail(err, st, "%s: %s", what, e.text);
    }
    *out = card;
    return TG_OK;
}

tg_status tgi_card_of_package(const tgi_package *p, tgi_card **out, tgi_err *err)
{
    return tgi_card_of_yaml(tgi_package_says(p), tgi_package_text(p), tgi_package_sum(p), out,
                            err);
}
