/* card_names.c - what a description calls the channels of a network: channel_names of bioimage.io, labels and
 * channel_names of nnU-Net's dataset.json.
 *
 * @source nnunetv2/utilities/label_handling/label_handling.py: which channel a label or a region is. */
#include "engine/graph/card.h"

#include "engine/base/mem.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST 4096 /* channels */
#define MOST_TEXT 256

void tgi_card_names_free(tgi_card_port *p)
{
    for (int64_t i = 0; i < p->n_names; i++)
        tgi_free(p->channel_name[i]);
    tgi_free(p->channel_name);
    p->channel_name = NULL;
    p->n_names = 0;
}

static tg_status make_room(tgi_card_port *p, int64_t n, tgi_err *err)
{
    tgi_card_names_free(p);
    if (n < 1 || n > MOST)
        return TG_OK;
    p->channel_name = tgi_calloc(TGI_TAG_GRAPH, (size_t)n, sizeof *p->channel_name);
    if (!p->channel_name)
        return tgi_fail(err, TG_E_NOMEM, "no memory for names of channels");
    p->n_names = (int)n;
    return TG_OK;
}

static tg_status set_name(tgi_card_port *p, int64_t i, const char *name, tgi_err *err)
{
    if (i < 0 || i >= p->n_names || p->channel_name[i] || !name[0] || strlen(name) > MOST_TEXT)
        return TG_OK;
    p->channel_name[i] = tgi_strdup(TGI_TAG_GRAPH, name);
    return p->channel_name[i] ? TG_OK
                              : tgi_fail(err, TG_E_NOMEM, "no memory for names of channels");
}

/* "channel0", "Channel 1", "channel_2": what tools write where nobody named a channel; counted from 0 or 1. */
static int64_t default_number(const char *s)
{
    static const char word[] = "channel";
    char *end;
    for (int i = 0; word[i]; i++)
        if (tolower((unsigned char)*s++) != word[i])
            return -1;
    s += *s == ' ' || *s == '_' || *s == '-';
    if (!isdigit((unsigned char)*s))
        return -1;
    const long long v = strtoll(s, &end, 10);
    return *end ? -1 : v;
}

static int names_nothing(const tgi_card_port *p)
{
    int64_t as[2] = {0, 0};
    for (int64_t i = 0; i < p->n_names; i++) {
        if (!p->channel_name[i])
            return 1;
        const int64_t v = default_number(p->channel_name[i]);
        as[0] += v == i;
        as[1] += v == i + 1;
    }
    return as[0] == p->n_names || as[1] == p->n_names;
}

/* All have a name of somebody's own, or none has. */
static void settle(tgi_card_port *p)
{
    if (names_nothing(p))
        tgi_card_names_free(p);
}

tg_status tgi_card_names_of_list(const tgi_yaml *list, tgi_card_port *p, tgi_err *err)
{
    const char *s;
    int64_t i = 0;
    TGI_TRY(make_room(p, tgi_yaml_count(list), err));
    for (const tgi_yaml *v = tgi_yaml_first(list); v && i < p->n_names;
         v = tgi_yaml_next(v), i++)
        if (tgi_yaml_text(v, &s))
            TGI_TRY(set_name(p, i, s, err));
    settle(p);
    return TG_OK;
}

/* ---- dataset.json ------------------------------------------------------------------------ */

static int64_t count(const tgi_json *of)
{
    int64_t n = 0;
    for (const tgi_json *v = tgi_json_first(of); v; v = tgi_json_next(v))
        n++;
    return n;
}

/* "channel_names": {"0": "CT", "1": "PET"}. */
static tg_status names_of_inputs(const tgi_json *names, tgi_card_port *p, tgi_err *err)
{
    const char *s;
    char key[24];
    TGI_TRY(make_room(p, tgi_json_is_object(names) ? count(names) : 0, err));
    for (int64_t i = 0; i < p->n_names; i++) {
        snprintf(key, sizeof key, "%lld", (long long)i);
        if (tgi_json_str(tgi_json_get(names, key), &s))
            TGI_TRY(set_name(p, i, s, err));
    }
    settle(p);
    return TG_OK;
}

/* What stands for all that is not labelled: in regions it is no channel. */
static int is_background(const tgi_json *v)
{
    int64_t n;
    if (tgi_json_int(v, &n))
        return n == 0;
    for (const tgi_json *e = tgi_json_first(v); e; e = tgi_json_next(e))
        if (!tgi_json_int(e, &n) || n != 0)
            return 0;
    return 1;
}

static int is_ignored(const tgi_json *v)
{
    return strcmp(tgi_json_key(v), "ignore") == 0;
}

/* "labels": {"background": 0, "tumour": 1}: channel n is label n. Where one is a list it is a region, and channels are regions in
 * their order. */
static tg_status names_of_outputs(const tgi_json *labels, tgi_card_port *p, tgi_err *err)
{
    int64_t n = 0, at = 0;
    int regions = 0;
    if (!tgi_json_is_object(labels))
        return TG_OK;
    for (const tgi_json *v = tgi_json_first(labels); v; v = tgi_json_next(v))
        regions |= count(v) > 1;
    for (const tgi_json *v = tgi_json_first(labels); v; v = tgi_json_next(v))
        n += !is_ignored(v) && !(regions && is_background(v));
    TGI_TRY(make_room(p, n, err));
    for (const tgi_json *v = tgi_json_first(labels); v; v = tgi_json_next(v)) {
        if (is_ignored(v) || (regions && is_background(v)))
            continue;
        if (!regions && !tgi_json_int(v, &at) && !tgi_json_int(tgi_json_first(v), &at))
            at = -1;
        TGI_TRY(set_name(p, at, tgi_json_key(v), err));
        at += regions;
    }
    settle(p);
    return TG_OK;
}

static void sum_names(const tgi_card_port *p, tgi_sha256 *h)
{
    for (int i = 0; i < p->n_names; i++)
        tgi_sha256_add(h, p->channel_name[i], strlen(p->channel_name[i]) + 1);
}

tg_status tgi_card_add_dataset(tgi_card *card, const tgi_json *doc, tgi_err *err)
{
    tgi_sha256 h;
    TGI_TRY(names_of_inputs(tgi_json_get(doc, "channel_names"), &card->in[0], err));
    TGI_TRY(names_of_outputs(tgi_json_get(doc, "labels"), &card->out[0], err));
    if (!card->in[0].n_names && !card->out[0].n_names)
        return TG_OK;
    tgi_sha256_begin(&h);
    tgi_sha256_add(&h, card->sum, strlen(card->sum) + 1);
    sum_names(&card->in[0], &h);
    sum_names(&card->out[0], &h);
    tgi_sha256_end(&h, card->sum);
    return TG_OK;
}
