/* card.c - see card.h: what a card holds, and the normalisation that comes of it. */
#include "engine/graph/card.h"

#include "engine/base/mem.h"

#include <stdio.h>
#include <string.h>

tg_status tgi_card_new(tgi_card **out, tgi_err *err)
{
    tgi_card *c = tgi_calloc(TGI_TAG_GRAPH, 1, sizeof *c);
    if (c) {
        c->in = tgi_calloc(TGI_TAG_GRAPH, TGI_CARD_PORTS, sizeof *c->in);
        c->out = tgi_calloc(TGI_TAG_GRAPH, TGI_CARD_PORTS, sizeof *c->out);
    }
    *out = c;
    if (c && c->in && c->out)
        return TG_OK;
    tgi_card_free(out);
    return tgi_fail(err, TG_E_NOMEM, "no memory for a description");
}

static void free_ports(tgi_card_port *p)
{
    for (int i = 0; p && i < TGI_CARD_PORTS; i++) {
        tgi_card_names_free(&p[i]);
        for (int k = 0; k < p[i].n_step; k++)
            tgi_free(p[i].step[k].a);
    }
    tgi_free(p);
}

void tgi_card_free(tgi_card **card)
{
    if (!card || !*card)
        return;
    free_ports((*card)->in);
    free_ports((*card)->out);
    tgi_free(*card);
    *card = NULL;
}

int tgi_card_axis_of(const tgi_card_port *p, char letter)
{
    for (int i = 0; i < p->n_axes; i++)
        if (p->axis[i].letter == letter)
            return i;
    return -1;
}

int tgi_step_measures(const tgi_step *s)
{
    return s->kind == TGI_STEP_ZSCORE || s->kind == TGI_STEP_RANGE ||
           s->kind == TGI_STEP_MATCH || (s->kind == TGI_STEP_CLIP && (s->low_of || s->high_of));
}

/* ---- The loader's part ------------------------------------------------------------------- */

static tgi_norm_from low_from(const tgi_step *s)
{
    return s->low == 0 ? TGI_FROM_MIN : TGI_FROM_LOW;
}

static tgi_norm_from high_from(const tgi_step *s)
{
    return s->high == 100 ? TGI_FROM_MAX : TGI_FROM_HIGH;
}

static tgi_norm_step norm_step(const tgi_step *s)
{
    tgi_norm_step t = {.op = TGI_NORM_LINEAR, .a = s->a, .b = s->b, .n = s->n, .eps = s->eps};
    switch (s->kind) {
    case TGI_STEP_CLIP:
        t.op = TGI_NORM_CLIP;
        if (s->low_of)
            t.a_from = low_from(s);
        if (s->high_of)
            t.b_from = high_from(s);
        return t;
    case TGI_STEP_ZSCORE:
        t.op = TGI_NORM_CENTRE;
        return t;
    case TGI_STEP_RANGE:
        t.op = TGI_NORM_SPAN;
        t.a_from = low_from(s);
        t.b_from = high_from(s);
        return t;
    default:
        return t;
    }
}

/* Percentiles that are taken, but for the extremes. */
static void take_ranks(const tgi_step *s, tgi_normalize_spec *out)
{
    const int low = s->kind == TGI_STEP_RANGE || s->low_of,
              high = s->kind == TGI_STEP_RANGE || s->high_of;
    if ((!low || s->low == 0) && (!high || s->high == 100))
        return;
    out->ranked = s->kind == TGI_STEP_CLIP && !s->whole_set ? 2 : 1;
    if (low)
        out->a = s->low;
    if (high)
        out->b = s->high;
}

/* The last step behind output 0, where it takes numbers of the image. */
static void take_back(const tgi_card *card, tgi_normalize_spec *out)
{
    const tgi_card_port *p = &card->out[0];
    const tgi_step *s = p->n_step ? &p->step[p->n_step - 1] : NULL;
    if (!s || !s->of_input)
        return;
    out->kind = TGI_NORM_CHAIN;
    out->measures = out->has_back = 1;
    out->by_item |= !s->whole_set;
    out->back = norm_step(s);
    if (s->kind == TGI_STEP_MATCH)
        out->back.op = TGI_NORM_CENTRE;
    else
        take_ranks(s, out);
}

void tgi_card_normalize(const tgi_card *card, tgi_normalize_spec *out, char *text, size_t cap)
{
    const tgi_card_port *p = &card->in[0];
    *out = (tgi_normalize_spec){
        .kind = p->n_loaded ? TGI_NORM_CHAIN : TGI_NORM_NONE, .a = 0, .b = 100};
    size_t n = (size_t)snprintf(text, cap, "%s, %.16s:", card->format, card->sum);
    for (int i = 0; i < p->n_step && n < cap; i++)
        n += (size_t)snprintf(text + n, cap - n, "%s %s", i ? "," : "", p->step[i].name);
    if (!p->n_step && n < cap)
        snprintf(text + n, cap - n, " none");
    for (int i = 0; i < p->n_loaded; i++) {
        const tgi_step *s = &p->step[i];
        if (s->kind != TGI_STEP_CAST) /* to a float, which pixels are by then */
            out->step[out->n_step++] = norm_step(s);
        if (!tgi_step_measures(s))
            continue;
        out->measures = 1;
        out->by_channel |= s->by_channel;
        out->by_item |= !s->whole_set;
        take_ranks(s, out);
    }
    take_back(card, out);
}

int tgi_card_measures_all(const tgi_card *card)
{
    int found = 0;
    for (int o = 0; o < card->n_out; o++)
        for (int i = 0; i < card->out[o].n_step; i++) {
            const tgi_step *s = &card->out[o].step[i];
            found |= s->whole_set && (s->kind == TGI_STEP_ZSCORE || s->kind == TGI_STEP_MATCH);
        }
    return found;
}

tg_dtype tgi_card_out_type(const tgi_card *card)
{
    const tgi_card_port *p = &card->out[0];
    const tgi_step *last = p->n_step ? &p->step[p->n_step - 1] : NULL;
    if (last && last->kind == TGI_STEP_BINARIZE)
        return TG_DTYPE_U8;
    return last && last->kind == TGI_STEP_CAST ? last->type : TG_DTYPE_NONE;
}
