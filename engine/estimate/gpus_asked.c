/* gpus_asked.c - the GPUs that options name, or a machine has. */
#include "engine/base/mem.h"
#include "engine/base/size.h"
#include "engine/estimate/estimate.h"
#include "engine/settings/words.h"

#include <stdio.h>

/* Memories of --vram are GPUs that have no other name. */
static tg_status add_sizes(const char *list, tgi_gpus *t, tgi_err *err)
{
    const char *item;
    while (list && *list) {
        const size_t n = tgi_list_next(&list, &item);
        if (t->n == TGI_MAX_GPUS)
            return tgi_fail(err, TG_E_ARG, "more than %d GPUs", TGI_MAX_GPUS);
        tgi_gpu *g = &t->gpu[t->n++];
        snprintf(g->name, sizeof g->name, "%.*s", (int)n, item);
        TGI_TRY(tgi_size_parse(g->name, 0, &g->memory_bytes, err));
    }
    return TG_OK;
}

static tg_status add_names(const char *list, tgi_gpus *t, tgi_err *err)
{
    tgi_gpus *table = NULL;
    const char *item;
    if (!list)
        return TG_OK;
    TGI_TRY(tgi_gpus_load(&table, err));
    tg_status st = TG_OK;
    while (st == TG_OK && *list) {
        const tgi_gpu *g = NULL;
        const size_t n = tgi_list_next(&list, &item);
        st = t->n < TGI_MAX_GPUS ? tgi_gpus_find(table, item, n, &g, err)
                                 : tgi_fail(err, TG_E_ARG, "more than %d GPUs", TGI_MAX_GPUS);
        if (st == TG_OK)
            t->gpu[t->n++] = *g;
    }
    tgi_free(table);
    return st;
}

static tg_status add_machine(const tgi_machine *m, tgi_gpus *t, tgi_err *err)
{
    tgi_gpus *table = NULL;
    if (!m->n_gpus)
        return tgi_fail(err, TG_E_ARG, "%s has no GPU", m->name);
    TGI_TRY(tgi_gpus_load(&table, err));
    tgi_gpus_of_machine(m, table, t);
    tgi_free(table);
    return TG_OK;
}

tg_status tgi_gpus_asked(const tgi_question *q, tgi_gpus **out, tgi_err *err)
{
    const tg_opts *o = q->o;
    const int named = tgi_opts_given(o, TGI_OPT_VRAM) || tgi_opts_given(o, TGI_OPT_GPU);
    if (named && !q->machine.here)
        return tgi_fail(err, TG_E_ARG, "--machine says which GPUs there are: leave out %s",
                        tgi_opts_given(o, TGI_OPT_VRAM) ? "--vram" : "--gpu");
    tgi_gpus *t = tgi_calloc(TGI_TAG_MISC, 1, sizeof *t);
    if (!t)
        return tgi_fail(err, TG_E_NOMEM, "no memory for the GPUs");
    tg_status st = add_sizes(tgi_opts_str(o, TGI_OPT_VRAM), t, err);
    if (st == TG_OK)
        st = add_names(tgi_opts_str(o, TGI_OPT_GPU), t, err);
    if (st == TG_OK && !q->machine.here)
        st = add_machine(&q->machine, t, err);
    if (st == TG_OK && !t->n)
        st = tgi_fail(err, TG_E_ARG,
                      "how much memory? give --vram 16GiB, --gpu NAME of configs/gpus.json, or "
                      "--machine FILE");
    if (st == TG_OK)
        *out = t;
    else
        tgi_free(t);
    return st;
}
