/* post_spec.c - see post_spec.h. */
#include "engine/base/post_spec.h"

#include "engine/base/number.h"
#include "engine/base/spec.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

typedef enum takes { NOTHING, A_NUMBER, A_SIZE, NEIGHBOURS, SETTINGS } takes;

/* Where a step may stand. */
typedef enum place { ON_VALUES, TO_MASK, ON_MASK, LAST, ALONE } place;

static const struct {
    const char *name, *how;
    takes takes;
    place place;
} kinds[] = {
    [TGI_POST_SIGMOID] = {"sigmoid", "sigmoid", NOTHING, ON_VALUES},
    [TGI_POST_SOFTMAX] = {"softmax", "softmax", NOTHING, ON_VALUES},
    [TGI_POST_THRESHOLD] = {"threshold", "threshold:0.5", A_NUMBER, TO_MASK},
    [TGI_POST_OTSU] = {"otsu", "otsu", NOTHING, TO_MASK},
    [TGI_POST_FILL_HOLES] = {"fill-holes", "fill-holes", NOTHING, ON_MASK},
    [TGI_POST_MIN_SIZE] = {"min-size", "min-size:50", A_SIZE, ON_MASK},
    [TGI_POST_LABEL] = {"label", "label, label:4, label:8, label:6 or label:26", NEIGHBOURS,
                        LAST},
    [TGI_POST_STARDIST] = {"stardist", "stardist[:prob=0.5][:nms=0.4][:grid=1][:rays-first]",
                           SETTINGS, ALONE},
    [TGI_POST_CELLPOSE] = {"cellpose", "cellpose[:prob=0][:flow=0.4][:niter=200][:min-size=15]",
                           SETTINGS, ALONE},
};
#define N_KINDS ((int)(sizeof kinds / sizeof kinds[0]))

#define ALL_STEPS                                                                              \
    "sigmoid, softmax, threshold:X, otsu, fill-holes, min-size:N, label, stardist and "        \
    "cellpose, separated by commas"

const char *tgi_post_name(tgi_post_kind kind)
{
    return kinds[kind].name;
}

/* An underscore is a hyphen, as in names of options. */
static int is_word(const char *name, const char *word)
{
    while (*name && *name == (*word == '_' ? '-' : *word))
        name++, word++;
    return !*name && !*word;
}

static int kind_of(const char *word)
{
    for (int k = 0; k < N_KINDS; k++)
        if (is_word(kinds[k].name, word))
            return k;
    return -1;
}

static tg_status unknown(const char *word, tgi_err *err)
{
    char text[96];
    tgi_nearest near = tgi_nearest_to(word);
    for (int k = 0; k < N_KINDS; k++)
        tgi_nearest_offer(&near, kinds[k].name, kinds[k].name);
    return tgi_fail(err, TG_E_ARG, "\"%.60s\" is no step: there are " ALL_STEPS "%s", word,
                    tgi_nearest_text(&near, text, sizeof text));
}

static tg_status read_neighbours(const char *value, tgi_post_step *out)
{
    static const int known[] = {4, 8, 6, 26};
    char text[8];
    for (int i = 0; i < 4; i++) {
        snprintf(text, sizeof text, "%d", known[i]);
        if (strcmp(text, value) == 0) {
            out->neighbours = known[i];
            return TG_OK;
        }
    }
    return TG_E_ARG;
}

/* A number of stardist or cellpose, and what it may be. */
typedef struct setting {
    tgi_post_kind of;
    const char *name;
    size_t at; /* in the step */
    double lo, hi;
    int whole;
} setting;
#define AT(member) offsetof(tgi_post_step, member)
static const setting settings[] = {
    {TGI_POST_STARDIST, "prob", AT(prob), 0, 1, 0},
    {TGI_POST_STARDIST, "nms", AT(nms), 0, 1, 0},
    {TGI_POST_STARDIST, "grid", AT(grid), 1, 64, 1},
    {TGI_POST_CELLPOSE, "prob", AT(prob), -1e6, 1e6, 0},
    {TGI_POST_CELLPOSE, "flow", AT(flow), 0, 1e6, 0},
    {TGI_POST_CELLPOSE, "niter", AT(niter), 1, 1000000, 1},
    {TGI_POST_CELLPOSE, "min-size", AT(size), 0, 1000000000, 1},
};

static tg_status read_setting(int k, char *word, tgi_post_step *out)
{
    char *value = strchr(word, '=');
    double v;
    if (!value) {
        out->rays_first = k == TGI_POST_STARDIST && is_word("rays-first", word);
        return out->rays_first ? TG_OK : TG_E_ARG;
    }
    *value++ = 0;
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        const setting *s = &settings[i];
        if ((int)s->of != k || !is_word(s->name, word))
            continue;
        if (!tgi_number_parse(value, strlen(value), &v) || v < s->lo || v > s->hi ||
            (s->whole && v != (double)(int64_t)v))
            return TG_E_ARG;
        if (s->whole)
            *(int64_t *)(void *)((char *)out + s->at) = (int64_t)v;
        else
            *(double *)(void *)((char *)out + s->at) = v;
        return TG_OK;
    }
    return TG_E_ARG;
}

/* "prob=0.5:nms=0.4"; without `value` their defaults alone. */
static tg_status read_settings(int k, const char *value, tgi_post_step *out)
{
    char text[TGI_POST_TEXT];
    out->prob = k == TGI_POST_STARDIST ? 0.5 : 0;
    out->nms = out->flow = 0.4;
    out->grid = 1;
    out->niter = 200;
    out->size = 15;
    if (!value)
        return TG_OK;
    snprintf(text, sizeof text, "%s", value);
    for (char *at = text, *next; at; at = next) {
        next = strchr(at, ':');
        if (next)
            *next++ = 0;
        TGI_TRY(read_setting(k, at, out));
    }
    return TG_OK;
}

/* The number behind the colon; `value` NULL: there is none. */
static tg_status read_value(int k, const char *value, tgi_post_step *out)
{
    switch (kinds[k].takes) {
    case A_NUMBER:
        return value && tgi_number_parse(value, strlen(value), &out->value) ? TG_OK : TG_E_ARG;
    case A_SIZE:
        return value ? tgi_int_parse(value, 1, INT64_MAX, "", &out->size, NULL) : TG_E_ARG;
    case NEIGHBOURS:
        return value ? read_neighbours(value, out) : TG_OK;
    case SETTINGS:
        return read_settings(k, value, out);
    default:
        return value ? TG_E_ARG : TG_OK;
    }
}

static tg_status check_place(const tgi_post_spec *s, const tgi_post_step *step, tgi_err *err)
{
    const char *name = tgi_post_name(step->kind);
    const place at = kinds[step->kind].place;
    for (int i = 0; i < s->n; i++) {
        const tgi_post_kind before = s->step[i].kind;
        if (before == step->kind)
            return tgi_fail(err, TG_E_ARG, "%s stands there twice", name);
        if (at == ALONE || kinds[before].place == ALONE)
            return tgi_fail(err, TG_E_ARG,
                            "%s behind %s: stardist and cellpose stand alone: they take what "
                            "the network gives and number objects themselves%s",
                            name, tgi_post_name(before),
                            before == TGI_POST_CELLPOSE && step->kind == TGI_POST_MIN_SIZE
                                ? "; cellpose:min-size=N leaves small ones out"
                                : "");
        if (at <= TO_MASK && kinds[before].place == TO_MASK)
            return tgi_fail(err, TG_E_ARG,
                            "%s behind %s: that makes 0 and 1 of the values, once, behind "
                            "sigmoid or softmax",
                            name, tgi_post_name(before));
        if (kinds[before].place > at)
            return tgi_fail(err, TG_E_ARG, "%s behind %s: %s", name, tgi_post_name(before),
                            kinds[before].place == LAST
                                ? "label is the last step"
                                : "what comes there is a mask, not values");
        if (at == ON_VALUES)
            return tgi_fail(err, TG_E_ARG, "%s behind %s: one of them makes probabilities",
                            name, tgi_post_name(before));
    }
    return TG_OK;
}

static tg_status add_step(tgi_post_spec *s, char *word, tgi_err *err)
{
    char *value = strchr(word, ':');
    tgi_post_step step = {0};
    if (value)
        *value++ = 0;
    if (!*word)
        return tgi_fail(err, TG_E_ARG, "a step is missing: there are " ALL_STEPS);
    const int k = kind_of(word);
    if (k < 0)
        return unknown(word, err);
    step.kind = (tgi_post_kind)k;
    if (read_value(k, value, &step) != TG_OK)
        return tgi_fail(err, TG_E_ARG, "\"%.40s%s%.40s\": %s is expected", word,
                        value ? ":" : "", value ? value : "", kinds[k].how);
    TGI_TRY(check_place(s, &step, err));
    s->step[s->n++] = step;
    return TG_OK;
}

/* Behind sigmoid or softmax there are no whole numbers. */
static tg_status check_whole(const tgi_post_spec *s, tgi_err *err)
{
    for (int i = 1; i < s->n; i++)
        if (kinds[s->step[i - 1].kind].place == ON_VALUES &&
            kinds[s->step[i].kind].place > TO_MASK)
            return tgi_fail(err, TG_E_ARG,
                            "%s behind %s: threshold:X or otsu has to make a mask of the "
                            "probabilities first",
                            tgi_post_name(s->step[i].kind), tgi_post_name(s->step[i - 1].kind));
    return TG_OK;
}

tg_status tgi_post_parse(const char *text, tgi_post_spec *out, tgi_err *err)
{
    tgi_post_spec s = {0};
    char word[128];
    if (strlen(text) >= TGI_POST_TEXT)
        return tgi_fail(err, TG_E_ARG, "\"%.60s...\" is too long for a list of steps", text);
    if (strcmp(text, "none") == 0) {
        *out = s;
        return TG_OK;
    }
    for (const char *at = text;; at++) {
        const size_t n = strcspn(at, ",");
        if (n >= sizeof word || s.n == TGI_POST_STEPS)
            return tgi_fail(err, TG_E_ARG, "\"%.60s...\" is too long for a list of steps",
                            text);
        memcpy(word, at, n);
        word[n] = 0;
        TGI_TRY(add_step(&s, word, err));
        at += n;
        if (!*at)
            break;
    }
    TGI_TRY(check_whole(&s, err));
    *out = s;
    return TG_OK;
}

int tgi_post_has(const tgi_post_spec *s, tgi_post_kind kind)
{
    for (int i = 0; i < s->n; i++)
        if (s->step[i].kind == kind)
            return 1;
    return 0;
}

int tgi_post_makes_mask(const tgi_post_spec *s)
{
    return tgi_post_has(s, TGI_POST_THRESHOLD) || tgi_post_has(s, TGI_POST_OTSU);
}

int tgi_post_gives_classes(const tgi_post_spec *s)
{
    return s->n && kinds[s->step[s->n - 1].kind].place != ON_VALUES;
}

int tgi_post_gives_numbers(const tgi_post_spec *s)
{
    return tgi_post_has(s, TGI_POST_LABEL) || tgi_post_network(s) != NULL;
}

const tgi_post_step *tgi_post_network(const tgi_post_spec *s)
{
    return s->n == 1 && kinds[s->step[0].kind].place == ALONE ? &s->step[0] : NULL;
}

int tgi_post_grid(const tgi_post_spec *s)
{
    const tgi_post_step *n = tgi_post_network(s);
    return n ? (int)n->grid : 1;
}

int tgi_post_neighbours(const tgi_post_spec *s)
{
    return s->n ? s->step[s->n - 1].neighbours : 0;
}
