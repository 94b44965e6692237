/* lent.c - what an array in memory may be, and the list of them in a set of options. */
#include "engine/settings/lent.h"

#include "engine/base/mem.h"
#include "engine/base/sized.h"
#include "engine/settings/opts_internal.h"

#include <stdint.h>
#include <string.h>

/* ---- What an array may be ---------------------------------------------------------------- */

static int all_zero(const int64_t *v, int n)
{
    int any = 0;
    for (int i = 0; i < n; i++)
        any |= v[i] != 0;
    return !any;
}

static tg_status check_strides(const tg_array *a, tgi_err *err)
{
    const int64_t size = (int64_t)tgi_dtype_size(a->dtype);
    for (int i = 0; i < a->rank; i++)
        if (a->stride[i] < 0 || a->stride[i] % size)
            return tgi_fail(err, TG_E_ARG,
                            "array.stride[%d] is %lld: bytes, a multiple of %lld and not "
                            "negative",
                            i, (long long)a->stride[i], (long long)size);
    int64_t room = INT64_MAX / 4; /* the last element lies in it, as the address space does */
    if (a->data && (uintptr_t)room > UINTPTR_MAX - (uintptr_t)a->data)
        room = (int64_t)(UINTPTR_MAX - (uintptr_t)a->data);
    for (int i = 0; i < a->rank; i++) {
        if (a->stride[i] && a->shape[i] - 1 > room / a->stride[i])
            return tgi_fail(
                err, TG_E_ARG,
                "array.stride[%d] leads out of any memory: %lld elements, %lld bytes apart", i,
                (long long)a->shape[i], (long long)a->stride[i]);
        room -= (a->shape[i] - 1) * a->stride[i];
    }
    if (!all_zero(a->stride, a->rank) && a->move && !a->data)
        return tgi_fail(err, TG_E_ARG, "array.move counts elements in C order: no strides");
    return TG_OK;
}

tg_status tgi_lent_look(const tg_array *array, tg_array *now, tgi_desc *shape, tgi_err *err)
{
    int64_t n;
    if (!tgi_sized_take(array, now, sizeof *now))
        return tgi_sized_refuse(array, "array", err);
    const size_t size = tgi_dtype_size(now->dtype);
    if (!size)
        return tgi_fail(
            err, TG_E_ARG,
            "array.dtype is %d, which is no type of elements (tg_job_output tells an "
            "output's)",
            (int)now->dtype);
    if (now->rank < 0 || now->rank > TG_ARRAY_RANK)
        return tgi_fail(err, TG_E_ARG, "array.rank is %d: 0 to %d", now->rank, TG_ARRAY_RANK);
    *shape = (tgi_desc){.dtype = now->dtype, .rank = now->rank};
    for (int i = 0; i < now->rank; i++)
        if ((shape->dim[i] = now->shape[i]) < 1)
            return tgi_fail(err, TG_E_ARG, "array.shape[%d] is %lld: 1 at least", i,
                            (long long)now->shape[i]);
    if (!tgi_desc_count(shape, &n) || n > INT64_MAX / (int64_t)size)
        return tgi_fail(err, TG_E_ARG, "array.shape has more elements than there can be");
    if ((uintptr_t)now->data % size)
        return tgi_fail(err, TG_E_ARG,
                        "array.data is not a multiple of %zu, the size of its elements", size);
    if (now->data && now->move)
        return tgi_fail(err, TG_E_ARG, "array.data and array.move are both set: set one");
    return check_strides(now, err);
}

/* ---- In a set of options ----------------------------------------------------------------- */

static int same_name(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static void forget(tg_opts *o, int i)
{
    tgi_free(o->lent[i].name);
    memmove(o->lent + i, o->lent + i + 1, (size_t)(--o->n_lent - i) * sizeof *o->lent);
}

/* Which array it was, before what is wrong with it. */
static tg_status blame(tg_status st, tgi_lent_way way, const char *name, tgi_err *err)
{
    const char *what = way == TGI_LENT_SOURCE ? "source" : "sink";
    if (st != TG_OK && name)
        tgi_err_prefix(err, "the %s of \"%.100s\"", what, name);
    else if (st != TG_OK)
        tgi_err_prefix(err, "the first %s", what);
    return st;
}

static tg_status append(tg_opts *o, tgi_lent_way way, const char *name, const tg_array *array,
                        tgi_err *err)
{
    tgi_lent *more =
        tgi_realloc_n(TGI_TAG_MISC, o->lent, (size_t)(o->n_lent + 1), sizeof *more);
    char *own = name ? tgi_strdup(TGI_TAG_MISC, name) : NULL;
    if (more)
        o->lent = more;
    if (!more || (name && !own)) {
        tgi_free(own);
        return tgi_fail(err, TG_E_NOMEM, "no memory for the name of an array");
    }
    o->lent[o->n_lent++] = (tgi_lent){way, own, array};
    return TG_OK;
}

tg_status tgi_opts_lend(tg_opts *o, tgi_lent_way way, const char *name, const tg_array *array,
                        tgi_err *err)
{
    tg_array now;
    tgi_desc shape;
    const int before = o->n_lent;
    if (array && way == TGI_LENT_SOURCE)
        TGI_TRY(blame(tgi_lent_look(array, &now, &shape, err), way, name, err));
    if (array && !tgi_sized_take(array, &now, sizeof now))
        return blame(tgi_sized_refuse(array, "array", err), way, name, err);
    if (array)
        TGI_TRY(append(o, way, name, array, err));
    for (int i = before - 1; i >= 0; i--)
        if (o->lent[i].way == way && same_name(o->lent[i].name, name))
            forget(o, i);
    return TG_OK;
}

const tgi_lent *tgi_opts_lent(const tg_opts *o, tgi_lent_way way, int i)
{
    for (int k = 0; k < o->n_lent; k++)
        if (o->lent[k].way == way && i-- == 0)
            return &o->lent[k];
    return NULL;
}

tg_status tgi_lent_copy(tg_opts *to, const tg_opts *from, tgi_err *err)
{
    for (int i = 0; i < from->n_lent; i++)
        TGI_TRY(append(to, from->lent[i].way, from->lent[i].name, from->lent[i].array, err));
    return TG_OK;
}

void tgi_lent_free(tg_opts *o)
{
    while (o->n_lent)
        forget(o, o->n_lent - 1);
    tgi_free(o->lent);
    o->lent = NULL;
}
