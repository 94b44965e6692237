/* stage_spare.c - cuts that store less, for who has no room for all that pays. */
#include "engine/base/mem.h"
#include "engine/plan/stage_cut.h"

#include <stdlib.h>
#include <string.h>

tg_status tgi_stages_spare(tgi_stages *s, tgi_sparing by, tgi_stages **out, tgi_err *err)
{
    for (tgi_stages *t = s->sparing; t; t = t->sparing)
        if (t->spares.most == by.most && t->spares.dearer == by.dearer) {
            *out = t;
            return TG_OK;
        }
    tgi_stages *t = tgi_calloc(TGI_TAG_PLAN, 1, sizeof *t);
    if (!t)
        return tgi_fail(err, TG_E_NOMEM, "no memory to cut %d nodes into stages",
                        s->one.net->n_nodes);
    t->one.net = s->one.net;
    t->floor_used = -1;
    t->spares = by;
    const size_t before = tgi_mem_held() - sizeof *t;
    const tg_status st = tgi_stages_cut(s->one.net, by, t, err);
    if (st != TG_OK) {
        tgi_stages_free(&t);
        return st;
    }
    t->bytes = tgi_mem_held() - before;
    t->sparing = s->sparing;
    s->sparing = t;
    *out = t;
    return TG_OK;
}

/* Takes the cut that *at names out of the list. */
static void drop_cut(tgi_stages **at)
{
    tgi_stages *t = *at;
    *at = t->sparing;
    t->sparing = NULL;
    tgi_stages_free(&t);
}

void tgi_stages_spare_only(tgi_stages *s, const tgi_stages *const *keep, int n)
{
    for (tgi_stages **at = &s->sparing; *at;) {
        int kept = 0;
        for (int i = 0; i < n; i++)
            kept |= keep[i] == *at;
        if (kept)
            at = &(*at)->sparing;
        else
            drop_cut(at);
    }
}

int tgi_stages_alike(const tgi_stages *a, const tgi_stages *b)
{
    int alike = a->n == b->n;
    for (int k = 0; k < a->n && alike; k++) {
        const tgi_stage *s = &a->stage[k], *t = &b->stage[k];
        alike = s->n_nodes == t->n_nodes && s->n_in == t->n_in && s->n_loaded == t->n_loaded &&
                s->n_out == t->n_out &&
                memcmp(s->node, t->node, (size_t)s->n_nodes * sizeof *s->node) == 0;
        for (int i = 0; i < s->n_in && alike; i++)
            alike = s->in[i].value == t->in[i].value;
    }
    return alike;
}

static int descending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

tg_status tgi_stages_sizes(const tgi_stages *s, double **out, int *n, tgi_err *err)
{
    int all = 0, once = 0;
    for (int k = 0; k < s->n; k++)
        all += s->stage[k].n_out;
    double *size = tgi_calloc(TGI_TAG_PLAN, (size_t)all + 1, sizeof *size);
    if (!size)
        return tgi_fail(err, TG_E_NOMEM, "no memory for the sizes of %d values", all);
    all = 0;
    for (int k = 0; k < s->n; k++)
        for (int o = 0; o < s->stage[k].n_out; o++)
            if (!s->stage[k].out[o].reduced && s->stage[k].out[o].port < 0)
                size[all++] = tgi_stage_value_bytes(s->one.net, s->stage[k].out[o].value);
    qsort(size, (size_t)all, sizeof *size, descending);
    for (int i = 0; i < all; i++)
        if (once == 0 || size[i] < size[once - 1])
            size[once++] = size[i];
    *out = size;
    *n = once;
    return TG_OK;
}
