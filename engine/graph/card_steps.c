/* card_steps.c - the steps of a bioimage.io description, one function for each.
 *
 * In format 0.4 a step is {name, kwargs} and axes are a text such as "xy", in 0.5 {id, kwargs} and a list of names. Numbers
 * are as bioimageio.core 0.11 computes them: statistics are those of the unprocessed tensor wherever a step stands, and
 * percentiles of `clip` are values of the image while those of `scale_range` lie between two. */
#include "engine/graph/card.h"

#include "engine/base/mem.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct reading {
    const tgi_yaml *kwargs;
    int format, output;
    const tgi_card *card;
    const tgi_card_port *port;
    tgi_step *step;
} reading;

static tg_status not_done(const reading *r, const char *what, tgi_err *err)
{
    return tgi_fail(err, TG_E_UNSUPPORTED, "%s: %s", r->step->name, what);
}

static tg_status wrong(const reading *r, const char *key, const char *what, tgi_err *err)
{
    return tgi_fail(err, TG_E_FORMAT, "%s: \"%s\" %s", r->step->name, key, what);
}

/* ---- Values ------------------------------------------------------------------------------ */

static tg_status check_keys(const reading *r, const char *known, tgi_err *err)
{
    char word[64];
    if (r->kwargs && !tgi_yaml_is_map(r->kwargs) && !tgi_yaml_is_null(r->kwargs))
        return wrong(r, "kwargs", "is no mapping", err);
    for (const tgi_yaml *v = tgi_yaml_first(r->kwargs); v; v = tgi_yaml_next(v)) {
        const char *key = tgi_yaml_key(v);
        snprintf(word, sizeof word, " %.60s ", key);
        if (!strstr(known, word))
            return tgi_fail(err, TG_E_UNSUPPORTED, "%s: \"%.60s\" is not known here",
                            r->step->name, key);
    }
    return TG_OK;
}

static tg_status number(const reading *r, const char *key, double absent, double lo, double hi,
                        double *out, tgi_err *err)
{
    const tgi_yaml *v = tgi_yaml_get(r->kwargs, key);
    *out = absent;
    if (tgi_yaml_is_null(v) && !isnan(absent))
        return TG_OK;
    if (!tgi_yaml_num(v, out))
        return wrong(r, key, v ? "is no number" : "is missing", err);
    return *out >= lo && *out <= hi ? TG_OK : wrong(r, key, "is out of its range", err);
}

static int64_t channels(const reading *r)
{
    const int c = tgi_card_axis_of(r->port, 'c');
    return c < 0 ? 1 : r->port->axis[c].size;
}

/* A number, or one for each channel, into `to`; *n: how many. */
static tg_status numbers(const reading *r, const char *key, double absent, double *to, int cap,
                         int *n, tgi_err *err)
{
    const tgi_yaml *v = tgi_yaml_get(r->kwargs, key);
    *n = 1;
    if (!tgi_yaml_is_list(v))
        return number(r, key, absent, -INFINITY, INFINITY, to, err);
    *n = tgi_yaml_count(v);
    if (*n < 1 || *n > cap)
        return wrong(r, key, "has too many numbers, or none", err);
    double *d = to;
    for (const tgi_yaml *e = tgi_yaml_first(v); e; e = tgi_yaml_next(e))
        if (!tgi_yaml_num(e, d++))
            return wrong(r, key, "has a member that is no number", err);
    return TG_OK;
}

/* Of two lists, or a list and a number, both get the longer's length; b is NULL where there is one alone. */
static tg_status pair(const reading *r, const char *a, double a_absent, const char *b,
                      double b_absent, tgi_err *err)
{
    tgi_step *s = r->step;
    int n[2] = {1, 1};
    double *v = tgi_calloc(TGI_TAG_GRAPH, 2 * (size_t)TGI_CARD_VALUES, sizeof *v);
    if (!v)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a description");
    tg_status st = numbers(r, a, a_absent, v, TGI_CARD_VALUES, &n[0], err);
    if (st == TG_OK && b)
        st = numbers(r, b, b_absent, v + TGI_CARD_VALUES, TGI_CARD_VALUES, &n[1], err);
    s->n = n[0] > n[1] ? n[0] : n[1];
    if (st == TG_OK && ((n[0] > 1 && n[0] != s->n) || (n[1] > 1 && n[1] != s->n)))
        st = wrong(r, b, "has another length", err);
    if (st == TG_OK && s->n > 1 && channels(r) && s->n != channels(r))
        st = wrong(r, a, "has not one number for each channel", err);
    if (st == TG_OK && !(s->a = tgi_calloc(TGI_TAG_GRAPH, 2 * (size_t)s->n, sizeof *s->a)))
        st = tgi_fail(err, TG_E_NOMEM, "no memory for a description");
    for (int i = 0; st == TG_OK && s->kind != TGI_STEP_CLIP && i < s->n; i++)
        if (!isfinite(v[n[0] > 1 ? i : 0]) ||
            !isfinite(v[TGI_CARD_VALUES + (n[1] > 1 ? i : 0)]))
            st = wrong(r, a, "is not finite", err);
    for (int i = 0; st == TG_OK && i < s->n; i++) {
        s->a[i] = v[n[0] > 1 ? i : 0];
        s->a[s->n + i] = v[TGI_CARD_VALUES + (n[1] > 1 ? i : 0)];
    }
    if (st == TG_OK)
        s->b = s->a + s->n;
    tgi_free(v);
    return st;
}

/* "axis", which numbers are listed along: channels alone. */
static tg_status along_channels(const reading *r, tgi_err *err)
{
    const char *axis = "channel";
    const tgi_yaml *v = tgi_yaml_get(r->kwargs, "axis");
    if (v && !tgi_yaml_text(v, &axis))
        return wrong(r, "axis", "is no name", err);
    if (strcmp(axis, "channel") != 0 && strcmp(axis, "c") != 0)
        return not_done(r, "numbers along another axis than the channels", err);
    return r->step->n > 1 && tgi_card_axis_of(r->port, 'c') < 0
               ? not_done(r, "numbers of channels, and the tensor has no such axis", err)
               : TG_OK;
}

static tg_status epsilon(const reading *r, tgi_err *err)
{
    return number(r, "eps", 1e-6, 1e-300, 0.1, &r->step->eps, err);
}

/* ---- Statistics -------------------------------------------------------------------------- */

/* The letters of `axes`, whatever their form; 0: not said. TG_E_FORMAT. */
static tg_status letters(const reading *r, char out[TGI_CARD_AXES + 1], int *n, tgi_err *err)
{
    const tgi_yaml *v = tgi_yaml_get(r->kwargs, "axes");
    const char *text;
    *n = 0;
    if (tgi_yaml_is_null(v))
        return TG_OK;
    if (tgi_yaml_text(v, &text)) {
        if (r->format != 4)
            return wrong(r, "axes", "is no list", err);
        for (; *text && *n < TGI_CARD_AXES; text++)
            out[(*n)++] = *text;
        return *text ? wrong(r, "axes", "has too many", err) : TG_OK;
    }
    for (const tgi_yaml *e = tgi_yaml_first(v); e; e = tgi_yaml_next(e)) {
        if (!tgi_yaml_text(e, &text) || *n == TGI_CARD_AXES)
            return wrong(r, "axes", "is no list of a few names", err);
        out[(*n)++] = *text;
        if (strcmp(text, "batch") != 0 && strcmp(text, "channel") != 0 && text[1])
            return tgi_fail(err, TG_E_UNSUPPORTED, "%s: an axis \"%.40s\"", r->step->name,
                            text);
    }
    return TG_OK;
}

static int has(const char *list, int n, char letter)
{
    return memchr(list, letter, (size_t)n) != NULL;
}

/* Statistics of whole planes or volumes, of each channel or of all; of each item or of all. */
static tg_status scope(const reading *r, tgi_err *err)
{
    char list[TGI_CARD_AXES + 1], space[] = "zyx";
    tgi_step *s = r->step;
    const char *mode = NULL;
    int n;
    TGI_TRY(letters(r, list, &n, err));
    for (int i = 0; i < n; i++)
        if (tgi_card_axis_of(r->port, list[i]) < 0)
            return wrong(r, "axes", "names one that the tensor has not", err);
    for (const char *a = space; *a && n; a++)
        if (tgi_card_axis_of(r->port, *a) >= 0 && !has(list, n, *a))
            return not_done(r, "statistics of each line or slice by itself", err);
    s->by_channel =
        n && tgi_card_axis_of(r->port, 'c') >= 0 && !has(list, n, 'c') && channels(r) != 1;
    s->whole_set = n ? has(list, n, 'b') : r->format == 5;
    const tgi_yaml *v = tgi_yaml_get(r->kwargs, "mode");
    if (!v)
        return TG_OK;
    if (r->format == 4 && !tgi_yaml_text(v, &mode))
        return wrong(r, "mode", "is no word", err);
    if (r->format != 4 || (strcmp(mode, "per_sample") != 0 && strcmp(mode, "per_dataset") != 0))
        return wrong(r, "mode", "is none that is known", err);
    s->whole_set = strcmp(mode, "per_dataset") == 0;
    return TG_OK;
}

/* "reference_tensor": of an output it must be the input, of an input itself. */
static tg_status reference(const reading *r, int needed, tgi_err *err)
{
    const char *name = NULL;
    const tgi_yaml *v = tgi_yaml_get(r->kwargs, "reference_tensor");
    if (tgi_yaml_is_null(v) && !needed)
        return r->output ? not_done(r, "percentiles of the network's own output", err) : TG_OK;
    if (!tgi_yaml_text(v, &name))
        return wrong(r, "reference_tensor", "is no name", err);
    if (r->card->n_in != 1 || strcmp(name, r->card->in[0].name) != 0)
        return not_done(r, "the reference is another tensor than the input", err);
    r->step->of_input = r->output;
    return TG_OK;
}

/* ---- Each step --------------------------------------------------------------------------- */

static tg_status read_binarize(const reading *r, tgi_err *err)
{
    TGI_TRY(check_keys(r, " threshold axis ", err));
    TGI_TRY(pair(r, "threshold", NAN, NULL, 0, err));
    return along_channels(r, err);
}

static tg_status bound(const reading *r, const char *value, const char *percentile, double none,
                       double lo, double hi, double *rank, int *of, tgi_err *err)
{
    const int has_value = !tgi_yaml_is_null(tgi_yaml_get(r->kwargs, value));
    *of = !tgi_yaml_is_null(tgi_yaml_get(r->kwargs, percentile));
    if (*of && has_value)
        return wrong(r, percentile, "is there beside a value", err);
    if (*of)
        return number(r, percentile, NAN, lo, hi, rank, err);
    *rank = none;
    return TG_OK;
}

static tg_status read_clip(const reading *r, tgi_err *err)
{
    tgi_step *s = r->step;
    TGI_TRY(check_keys(
        r, r->format == 4 ? " min max " : " min max min_percentile max_percentile axes ", err));
    TGI_TRY(pair(r, "min", r->format == 4 ? NAN : -INFINITY, "max",
                 r->format == 4 ? NAN : INFINITY, err));
    TGI_TRY(bound(r, "min", "min_percentile", 0, 0, 99.999999, &s->low, &s->low_of, err));
    TGI_TRY(bound(r, "max", "max_percentile", 100, 1, 100, &s->high, &s->high_of, err));
    if (s->n != 1)
        return wrong(r, "min", "is a list", err);
    if (!s->low_of && !s->high_of && !isfinite(s->a[0]) && !isfinite(s->b[0]))
        return wrong(r, "min", "is missing, and so is every other bound", err);
    if ((!s->low_of && !s->high_of && !(s->a[0] < s->b[0])) ||
        (s->low_of && s->high_of && !(s->low < s->high)))
        return wrong(r, "min", "is not below the other bound", err);
    if (!s->low_of && !s->high_of)
        return tgi_yaml_is_null(tgi_yaml_get(r->kwargs, "axes"))
                   ? TG_OK
                   : wrong(r, "axes", "is there without percentiles", err);
    return r->output ? not_done(r, "percentiles of the network's own output", err)
                     : scope(r, err);
}

static tg_status read_cast(const reading *r, tgi_err *err)
{
    const char *name;
    TGI_TRY(check_keys(r, " dtype ", err));
    if (!tgi_yaml_text(tgi_yaml_get(r->kwargs, "dtype"), &name))
        return wrong(r, "dtype", "is no word", err);
    if (strcmp(name, "bool") == 0)
        return not_done(r, "to bool", err);
    if (strcmp(name, "float64") == 0 && !r->output)
        name = "float32"; /* networks compute in that here */
    if (tgi_dtype_spec_parse(name, &r->step->type, NULL) != TG_OK ||
        r->step->type == TG_DTYPE_NONE)
        return wrong(r, "dtype", "is none that is known", err);
    return TG_OK;
}

static tg_status read_linear(const reading *r, tgi_err *err)
{
    TGI_TRY(check_keys(r, r->format == 4 ? " gain offset axes " : " gain offset axis ", err));
    TGI_TRY(pair(r, "gain", 1, "offset", 0, err));
    if (r->format == 4 && r->step->n == 1)
        return TG_OK;
    if (r->format == 4) { /* "axes" are those that share a number */
        TGI_TRY(scope(r, err));
        return r->step->by_channel ? TG_OK : wrong(r, "axes", "does not leave out c", err);
    }
    return along_channels(r, err);
}

static tg_status read_range(const reading *r, tgi_err *err)
{
    tgi_step *s = r->step;
    TGI_TRY(
        check_keys(r, " mode axes min_percentile max_percentile eps reference_tensor ", err));
    TGI_TRY(number(r, "min_percentile", 0, 0, 99.999999, &s->low, err));
    TGI_TRY(number(r, "max_percentile", 100, 1.000001, 100, &s->high, err));
    if (!(s->low < s->high))
        return wrong(r, "min_percentile", "is not below the other one", err);
    TGI_TRY(epsilon(r, err));
    TGI_TRY(reference(r, 0, err));
    return scope(r, err);
}

static tg_status read_sigmoid(const reading *r, tgi_err *err)
{
    return check_keys(r, " ", err);
}

static tg_status read_softmax(const reading *r, tgi_err *err)
{
    TGI_TRY(check_keys(r, " axis ", err));
    TGI_TRY(along_channels(r, err));
    return tgi_card_axis_of(r->port, 'c') < 0 ? not_done(r, "without channels", err) : TG_OK;
}

/* (x - mean) / (std + eps) is linear. */
static tg_status read_fixed(const reading *r, tgi_err *err)
{
    tgi_step *s = r->step;
    TGI_TRY(
        check_keys(r, r->format == 4 ? " mode axes mean std eps " : " mean std axis ", err));
    TGI_TRY(pair(r, "mean", NAN, "std", NAN, err));
    TGI_TRY(epsilon(r, err));
    for (int i = 0; i < s->n; i++) {
        if (!(s->b[i] > 0))
            return wrong(r, "std", "is not above 0", err);
        const double mul = 1 / (s->b[i] + s->eps);
        s->b[i] = -s->a[i] * mul;
        s->a[i] = mul;
    }
    return along_channels(r, err);
}

static tg_status read_zscore(const reading *r, tgi_err *err)
{
    const char *mode = "fixed"; /* where format 0.4 says nothing */
    if (r->format == 4) {
        const tgi_yaml *v = tgi_yaml_get(r->kwargs, "mode");
        if (v && !tgi_yaml_text(v, &mode))
            return wrong(r, "mode", "is no word", err);
        if (strcmp(mode, "fixed") == 0) {
            r->step->kind = TGI_STEP_LINEAR;
            return read_fixed(r, err);
        }
    }
    TGI_TRY(check_keys(r, r->format == 4 ? " mode axes eps " : " axes eps ", err));
    TGI_TRY(epsilon(r, err));
    return scope(r, err);
}

static tg_status read_match(const reading *r, tgi_err *err)
{
    TGI_TRY(check_keys(r, " mode reference_tensor axes eps ", err));
    if (!r->output)
        return not_done(r, "before a network", err);
    TGI_TRY(epsilon(r, err));
    TGI_TRY(reference(r, 1, err));
    return scope(r, err);
}

static const struct {
    const char *name;
    int since; /* format */
    tgi_step_kind kind;
    tg_status (*read)(const reading *r, tgi_err *err);
} known[] = {{"binarize", 4, TGI_STEP_BINARIZE, read_binarize},
             {"clip", 4, TGI_STEP_CLIP, read_clip},
             {"ensure_dtype", 5, TGI_STEP_CAST, read_cast},
             {"fixed_zero_mean_unit_variance", 5, TGI_STEP_LINEAR, read_fixed},
             {"scale_linear", 4, TGI_STEP_LINEAR, read_linear},
             {"scale_mean_variance", 4, TGI_STEP_MATCH, read_match},
             {"scale_range", 4, TGI_STEP_RANGE, read_range},
             {"sigmoid", 4, TGI_STEP_SIGMOID, read_sigmoid},
             {"softmax", 5, TGI_STEP_SOFTMAX, read_softmax},
             {"zero_mean_unit_variance", 4, TGI_STEP_ZSCORE, read_zscore}};

static tg_status read_step(const tgi_yaml *v, int format, int output, const tgi_card *card,
                           tgi_card_port *port, tgi_err *err)
{
    const char *name, *key = format == 4 ? "name" : "id";
    if (!tgi_yaml_text(tgi_yaml_get(v, key), &name))
        return tgi_fail(err, TG_E_FORMAT, "a step of processing without \"%s\"", key);
    if (port->n_step == TGI_CARD_STEPS)
        return tgi_fail(err, TG_E_UNSUPPORTED, "more than %d steps of processing",
                        TGI_CARD_STEPS);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(known[i].name, name) != 0 || known[i].since > format)
            continue;
        tgi_step *s = &port->step[port->n_step++];
        *s = (tgi_step){.kind = known[i].kind, .name = known[i].name};
        const reading r = {tgi_yaml_get(v, "kwargs"), format, output, card, port, s};
        return known[i].read(&r, err);
    }
    return tgi_fail(err, TG_E_UNSUPPORTED,
                    "the step \"%.60s\" of its processing is not done here, and leaving it out "
                    "would be another result",
                    name);
}

tg_status tgi_card_steps(const tgi_yaml *list, int format, int output, const tgi_card *card,
                         tgi_card_port *port, tgi_err *err)
{
    if (!tgi_yaml_is_null(list) && !tgi_yaml_is_list(list))
        return tgi_fail(err, TG_E_FORMAT, "its processing is no list of steps");
    for (const tgi_yaml *v = tgi_yaml_first(list); v; v = tgi_yaml_next(v))
        TGI_TRY(read_step(v, format, output, card, port, err));
    return TG_OK;
}
