/* card_plans.c - nnU-Net's plans.json (version 2) to a card: how its intensities were normalised, the spacing and the patch.
 *
 * The schemes, of each channel by itself:
 *     ZScoreNormalization        (x - mean) / max(deviation, 1e-8), of the case
 *     RescaleTo01Normalization   (x - min) / max(max - min, 1e-8), of the case
 *     CTNormalization            x held between two percentiles of the training set, less its mean, by its deviation
 *     RGBTo01Normalization       x / 255
 *     NoNormalization
 * A case is all planes of an image where the network takes planes, else a volume.
 *
 * @source nnunetv2/preprocessing/normalization/default_normalization_schemes.py; nnU-Net's plans file. */
#include "engine/graph/card.h"

#include "engine/base/mem.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define TINY 1e-8
#define MOST 256 /* channels */

typedef enum scheme { ZSCORE, RESCALE, CT, RGB, NONE, N_SCHEMES } scheme;
static const char *const schemes[N_SCHEMES] = {"ZScoreNormalization",
                                               "RescaleTo01Normalization", "CTNormalization",
                                               "RGBTo01Normalization", "NoNormalization"};

int tgi_card_is_plans(const tgi_json *doc)
{
    return tgi_json_is_object(tgi_json_get(doc, "configurations")) &&
           (tgi_json_get(doc, "plans_name") || tgi_json_get(doc, "dataset_name"));
}

static int count(const tgi_json *list)
{
    int n = 0;
    for (const tgi_json *v = tgi_json_first(list); v; v = tgi_json_next(v))
        n++;
    return n;
}

/* A member of a configuration, or of the one that it is built on. */
static const tgi_json *member(const tgi_json *all, const tgi_json *config, const char *key)
{
    const char *from;
    for (int depth = 0; config && depth < 4; depth++) {
        const tgi_json *v = tgi_json_get(config, key);
        if (v)
            return v;
        config = tgi_json_str(tgi_json_get(config, "inherits_from"), &from)
                     ? tgi_json_get(all, from)
                     : NULL;
    }
    return NULL;
}

/* ---- Geometry ---------------------------------------------------------------------------- */

static tg_status read_plan(const tgi_json *all, const tgi_json *config, int axes,
                           tgi_card_plan *out, tgi_err *err)
{
    const tgi_json *spacing = member(all, config, "spacing"),
                   *patch = member(all, config, "patch_size");
    const int whole = count(spacing) == axes && count(patch) == axes;
    spacing = tgi_json_first(spacing);
    patch = tgi_json_first(patch);
    out->is = 1;
    for (int k = 3 - axes; k < 3; k++) {
        if (!whole || !tgi_json_num(spacing, &out->spacing[k]) ||
            !tgi_json_int(patch, &out->patch[k]) || !(out->spacing[k] > 0) ||
            out->patch[k] < 1 || out->patch[k] > 65536)
            return tgi_fail(err, TG_E_FORMAT,
                            "the configuration \"%.40s\" has no spacing and patch_size of %d "
                            "numbers",
                            tgi_json_key(config), axes);
        spacing = tgi_json_next(spacing);
        patch = tgi_json_next(patch);
    }
    return TG_OK;
}

static tg_status read_plans(const tgi_json *doc, tgi_card *card, tgi_err *err)
{
    static const char *const preferred[] = {"2d", "3d_fullres", "3d_lowres"};
    const tgi_json *all = tgi_json_get(doc, "configurations");
    for (int i = 0; i < 3; i++) {
        const tgi_json *config = tgi_json_get(all, preferred[i]);
        tgi_card_plan *p = &card->plan[i > 0];
        if (config && !p->is)
            TGI_TRY(read_plan(all, config, i ? 3 : 2, p, err));
    }
    return card->plan[0].is || card->plan[1].is
               ? TG_OK
               : tgi_fail(err, TG_E_UNSUPPORTED,
                          "none of its configurations is 2d, 3d_fullres or 3d_lowres");
}

static tg_status check_turned(const tgi_json *doc, tgi_err *err)
{
    const tgi_json *axes = tgi_json_get(doc, "transpose_forward");
    int64_t k = 0, at;
    if (axes && !tgi_json_is_array(axes))
        return tgi_fail(err, TG_E_FORMAT, "\"transpose_forward\" is no list of axes");
    for (const tgi_json *v = tgi_json_first(axes); v; v = tgi_json_next(v), k++)
        if (!tgi_json_int(v, &at) || at != k)
            return tgi_fail(err, TG_E_UNSUPPORTED,
                            "\"transpose_forward\": the network sees axes in another order "
                            "than the image");
    return TG_OK;
}

/* ---- Normalisation ----------------------------------------------------------------------- */

static tg_status scheme_of(const tgi_json *v, scheme *out, tgi_err *err)
{
    const char *name = "";
    tgi_json_str(v, &name);
    for (int i = 0; i < N_SCHEMES; i++)
        if (strcmp(name, schemes[i]) == 0) {
            *out = (scheme)i;
            return TG_OK;
        }
    return tgi_fail(err, TG_E_UNSUPPORTED,
                    "the normalisation \"%.60s\" of a channel is not done here", name);
}

static tg_status check_masks(const tgi_json *masked, tgi_err *err)
{
    bool by_mask = false;
    if (masked && !tgi_json_is_array(masked))
        return tgi_fail(err, TG_E_FORMAT, "\"use_mask_for_norm\" is no list");
    for (const tgi_json *v = tgi_json_first(masked); v; v = tgi_json_next(v))
        if (!tgi_json_bool(v, &by_mask))
            return tgi_fail(err, TG_E_FORMAT,
                            "\"use_mask_for_norm\" has a value that is neither true nor false");
        else if (by_mask)
            return tgi_fail(err, TG_E_UNSUPPORTED,
                            "\"use_mask_for_norm\": intensities of a part of the image");
    return TG_OK;
}

/* All configurations say the same. */
static tg_status read_schemes(const tgi_json *doc, scheme *out, int *n, tgi_err *err)
{
    const tgi_json *all = tgi_json_get(doc, "configurations");
    *n = 0;
    for (const tgi_json *c = tgi_json_first(all); c; c = tgi_json_next(c)) {
        const tgi_json *list = member(all, c, "normalization_schemes");
        int i = 0;
        if (count(list) < 1 || count(list) > MOST)
            return tgi_fail(err, TG_E_FORMAT,
                            "the configuration \"%.40s\" has no \"normalization_schemes\"",
                            tgi_json_key(c));
        TGI_TRY(check_masks(member(all, c, "use_mask_for_norm"), err));
        for (const tgi_json *v = tgi_json_first(list); v; v = tgi_json_next(v), i++) {
            scheme s = NONE;
            TGI_TRY(scheme_of(v, &s, err));
            if (*n && (count(list) != *n || s != out[i]))
                return tgi_fail(err, TG_E_UNSUPPORTED,
                                "its configurations normalise in different ways");
            out[i] = s;
        }
        *n = i;
    }
    return TG_OK;
}

static tg_status add_step(tgi_card_port *p, tgi_step_kind kind, const char *name, int n,
                          tgi_step **out, tgi_err *err)
{
    tgi_step *s = &p->step[p->n_step++];
    *s = (tgi_step){.kind = kind, .name = name, .n = n, .eps = TINY, .high = 100};
    *out = s;
    if (!n)
        return TG_OK;
    if (!(s->a = tgi_calloc(TGI_TAG_GRAPH, 2 * (size_t)n, sizeof *s->a)))
        return tgi_fail(err, TG_E_NOMEM, "no memory for a description");
    s->b = s->a + n;
    return TG_OK;
}

static tg_status fixed_of(const tgi_json *doc, int c, double v[4], tgi_err *err)
{
    static const char *const key[] = {"percentile_00_5", "percentile_99_5", "mean", "std"};
    char name[16];
    snprintf(name, sizeof name, "%d", c);
    const tgi_json *of =
        tgi_json_get(tgi_json_get(doc, "foreground_intensity_properties_per_channel"), name);
    for (int i = 0; i < 4; i++)
        if (!tgi_json_num(tgi_json_get(of, key[i]), &v[i]))
            return tgi_fail(err, TG_E_FORMAT,
                            "\"foreground_intensity_properties_per_channel\" has no \"%s\" of "
                            "channel %d",
                            key[i], c);
    return v[0] <= v[1] && v[3] >= 0
               ? TG_OK
               : tgi_fail(err, TG_E_FORMAT, "intensities of channel %d are in no order", c);
}

/* Schemes of constants: each channel is held in a range and scaled. */
static tg_status add_fixed(const tgi_json *doc, const scheme *s, int n, tgi_card_port *p,
                           tgi_err *err)
{
    tgi_step *clip, *scale;
    TGI_TRY(add_step(p, TGI_STEP_CLIP, schemes[s[0]], n, &clip, err));
    TGI_TRY(add_step(p, TGI_STEP_LINEAR, "scaled", n, &scale, err));
    for (int c = 0; c < n; c++) {
        double v[4] = {-(double)INFINITY, (double)INFINITY, 0, s[c] == RGB ? 255 : 1};
        if (s[c] == CT)
            TGI_TRY(fixed_of(doc, c, v, err));
        const double by = 1 / (v[3] > TINY ? v[3] : TINY);
        clip->a[c] = v[0];
        clip->b[c] = v[1];
        scale->a[c] = by;
        scale->b[c] = -v[2] * by;
    }
    return TG_OK;
}

static tg_status add_steps(const tgi_json *doc, const scheme *s, int n, tgi_card_port *p,
                           tgi_err *err)
{
    int measured = 0;
    tgi_step *step;
    for (int c = 0; c < n; c++)
        measured += s[c] == ZSCORE || s[c] == RESCALE;
    for (int c = 1; c < n; c++)
        if (measured && s[c] != s[0])
            return tgi_fail(
                err, TG_E_UNSUPPORTED,
                "%s of one channel and %s of another: schemes that measure the image "
                "are done where all channels have the same",
                schemes[s[0]], schemes[s[c]]);
    if (!measured)
        return add_fixed(doc, s, n, p, err);
    TGI_TRY(add_step(p, s[0] == ZSCORE ? TGI_STEP_ZSCORE : TGI_STEP_RANGE, schemes[s[0]], 0,
                     &step, err));
    step->by_channel = n > 1;
    return TG_OK;
}

/* ---- The whole --------------------------------------------------------------------------- */

/* Of what is used, not of the file: a pipe has no bytes to look at again. */
static void sum_up(tgi_card *card)
{
    tgi_sha256 h;
    const tgi_card_port *p = &card->in[0];
    tgi_sha256_begin(&h);
    tgi_sha256_add(&h, card->plan, sizeof card->plan);
    for (int i = 0; i < p->n_step; i++) {
        const tgi_step *s = &p->step[i];
        tgi_sha256_add(&h, s->name, strlen(s->name) + 1);
        if (s->n)
            tgi_sha256_add(&h, s->a, 2 * (size_t)s->n * sizeof *s->a);
    }
    tgi_sha256_end(&h, card->sum);
}

static tg_status read_all(const tgi_json *doc, tgi_card *card, tgi_err *err)
{
    scheme s[MOST];
    const char *name;
    tgi_card_port *p = &card->in[0];
    TGI_TRY(read_plans(doc, card, err));
    TGI_TRY(check_turned(doc, err));
    TGI_TRY(read_schemes(doc, s, &card->planned, err));
    card->n_in = 1;
    snprintf(p->name, sizeof p->name, "image");
    snprintf(card->format, sizeof card->format, "nnU-Net plans");
    if (tgi_json_str(tgi_json_get(doc, "dataset_name"), &name))
        snprintf(card->name, sizeof card->name, "%s", name);
    TGI_TRY(add_steps(doc, s, card->planned, p, err));
    p->n_loaded = p->n_step;
    sum_up(card);
    return TG_OK;
}

tg_status tgi_card_of_plans(const tgi_json *doc, const char *what, tgi_card **out, tgi_err *err)
{
    tgi_card *card;
    tgi_err e = {0};
    TGI_TRY(tgi_card_new(&card, err));
    const tg_status st = read_all(doc, card, &e);
    if (st != TG_OK) {
        tgi_card_free(&card);
        return tgi_fail(err, st, "%s: %s", what, e.text);
    }
    *out = card;
    return TG_OK;
}
