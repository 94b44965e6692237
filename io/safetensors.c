/* safetensors.c - a length, that many bytes of JSON that say each tensor's type, shape and place, then the elements.
 *
 * The header is read by the strict reader of engine/base, whose memory is about 50 bytes for each value: headers of more than
 * 8 MiB, or of more than 400,000 values, are refused before. Tensors fill the rest of the file, without gaps or overlaps.
 *
 * @source the README of safetensors; safetensors/src/tensor.rs. */
#include "io/weights_inside.h"

#include "engine/base/arith.h"
#include "engine/base/json.h"
#include "engine/base/mem.h"
#include "io/bytes.h"

#include <stdlib.h>
#include <string.h>

#define MAX_HEAD ((uint64_t)8 << 20)
#define MAX_VALUES 400000

static const struct {
    const char *name;
    tg_dtype dtype;
} types[] = {{"F64", TG_DTYPE_F64},    {"F32", TG_DTYPE_F32}, {"F16", TG_DTYPE_F16},
             {"BF16", TGI_DTYPE_BF16}, {"I64", TG_DTYPE_I64}, {"I32", TG_DTYPE_I32},
             {"I16", TG_DTYPE_I16},    {"I8", TG_DTYPE_I8},   {"U64", TG_DTYPE_U64},
             {"U32", TG_DTYPE_U32},    {"U16", TG_DTYPE_U16}, {"U8", TG_DTYPE_U8},
             {"BOOL", TG_DTYPE_BOOL}};

static int probe(const uint8_t *head, size_t n)
{
    return n > 8 && head[8] == '{' && tgi_load64(head, false) <= INT64_MAX;
}

static tg_status read_type(const tgi_json *v, tgi_desc *d, const char *name, tgi_err *err)
{
    const char *type;
    if (!tgi_json_str(tgi_json_get(v, "dtype"), &type))
        return tgi_fail(err, TG_E_FORMAT, "\"%s\" has no dtype", name);
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strcmp(type, types[i].name) == 0) {
            d->dtype = types[i].dtype;
            return TG_OK;
        }
    return tgi_fail(err, TG_E_UNSUPPORTED,
                    "\"%s\" has elements of type %.32s, which is not read", name, type);
}

static tg_status read_shape(const tgi_json *v, tgi_desc *d, const char *name, tgi_err *err)
{
    const tgi_json *shape = tgi_json_get(v, "shape");
    if (!shape || !tgi_json_is_array(shape))
        return tgi_fail(err, TG_E_FORMAT, "\"%s\" has no shape", name);
    for (const tgi_json *i = tgi_json_first(shape); i; i = tgi_json_next(i)) {
        if (d->rank == TGI_MAX_RANK)
            return tgi_fail(err, TG_E_UNSUPPORTED, "\"%s\" has more than %d axes", name,
                            TGI_MAX_RANK);
        if (!tgi_json_int(i, &d->dim[d->rank]) || d->dim[d->rank] < 0)
            return tgi_fail(err, TG_E_FORMAT, "\"%s\" has a shape that is none", name);
        d->rank++;
    }
    return TG_OK;
}

static tg_status read_offsets(const tgi_json *v, uint64_t data, tgi_weight_place *p,
                              const char *name, tgi_err *err)
{
    const tgi_json *pair = tgi_json_get(v, "data_offsets");
    const tgi_json *first = pair && tgi_json_is_array(pair) ? tgi_json_first(pair) : NULL;
    const tgi_json *second = first ? tgi_json_next(first) : NULL;
    int64_t from, to, at;
    if (!second || tgi_json_next(second) || !tgi_json_int(first, &from) ||
        !tgi_json_int(second, &to) || from < 0 || to < from ||
        !tgi_add64_ok(to, (int64_t)data, &at))
        return tgi_fail(err, TG_E_FORMAT, "\"%s\" has data_offsets that are none", name);
    p->at = data + (uint64_t)from;
    p->room = (uint64_t)(to - from);
    return TG_OK;
}

static tg_status read_tensor(tgi_weights *w, const tgi_json *v, uint64_t data, tgi_err *err)
{
    const char *name = tgi_json_key(v);
    tgi_desc d = {0};
    tgi_weight_place p = {.record = TGI_IN_FILE};
    int64_t step = 1;
    TGI_TRY(read_type(v, &d, name, err));
    TGI_TRY(read_shape(v, &d, name, err));
    TGI_TRY(read_offsets(v, data, &p, name, err));
    for (int k = d.rank - 1; k >= 0; k--) {
        p.stride[k] = step;
        if (!tgi_mul64_ok(step, d.dim[k], &step))
            return tgi_fail(err, TG_E_FORMAT, "\"%s\": its extents overflow", name);
    }
    TGI_TRY(tgi_weights_add(w, name, strlen(name), &d, &p, err));
    if (w->at[w->n - 1].bytes != p.room)
        return tgi_fail(err, TG_E_FORMAT, "\"%s\" has %zu bytes, its data_offsets %llu", name,
                        w->at[w->n - 1].bytes, (unsigned long long)p.room);
    return TG_OK;
}

static int by_place(const void *a, const void *b, void *w)
{
    const tgi_weight_place *at = ((const tgi_weights *)w)->place;
    const tgi_weight_place *p = &at[*(const int *)a], *q = &at[*(const int *)b];
    if (p->at != q->at)
        return p->at < q->at ? -1 : 1;
    return (p->room > q->room) - (p->room < q->room);
}

/* Each begins where the one before it ends, the last one ends with the file. */
static tg_status check_apart(tgi_weights *w, uint64_t data, tgi_err *err)
{
    int *order = tgi_calloc(TGI_TAG_IO, (size_t)w->n + 1, sizeof *order);
    tg_status st = TG_OK;
    uint64_t at = data;
    if (!order)
        return tgi_fail(err, TG_E_NOMEM, "no memory for %d places", w->n);
    for (int i = 0; i < w->n; i++)
        order[i] = i;
    qsort_r(order, (size_t)w->n, sizeof *order, by_place, w);
    for (int k = 0; k < w->n && st == TG_OK; k++) {
        const tgi_weight_place *p = &w->place[order[k]];
        if (p->at != at)
            st = tgi_fail(err, TG_E_FORMAT, "\"%s\" %s", w->at[order[k]].name,
                          p->at < at ? "shares bytes with another tensor"
                                     : "begins behind bytes that are no tensor's");
        at = p->at + p->room;
    }
    if (st == TG_OK && at != w->size)
        st = tgi_fail(err, TG_E_FORMAT, "%llu bytes at the end are no tensor's",
                      (unsigned long long)(w->size - at));
    tgi_free(order);
    return st;
}

/* An upper bound of the values that the text holds. */
static int64_t count_values(const uint8_t *text, size_t n)
{
    int64_t count = 1;
    for (size_t i = 0; i < n; i++)
        count += text[i] == ',' || text[i] == '{' || text[i] == '[';
    return count;
}

static tg_status open_it(tgi_weights *w, tgi_err *err)
{
    const uint64_t n = tgi_load64(w->map, false), data = 8 + n;
    tgi_json *doc = NULL;
    if (n > MAX_HEAD || n > w->size - 8)
        return tgi_fail(
            err, TG_E_FORMAT,
            "a safetensors header of %llu bytes in a file of %zu; up to %llu are read",
            (unsigned long long)n, w->size, (unsigned long long)MAX_HEAD);
    if (count_values(w->map + 8, (size_t)n) > MAX_VALUES)
        return tgi_fail(err, TG_E_FORMAT, "a safetensors header of more than %d values",
                        MAX_VALUES);
    TGI_TRY(tgi_json_parse((const char *)w->map + 8, (size_t)n, "the safetensors header", &doc,
                           err));
    tg_status st = tgi_json_is_object(doc)
                       ? TG_OK
                       : tgi_fail(err, TG_E_FORMAT, "a safetensors header that is no object");
    for (const tgi_json *v = st == TG_OK ? tgi_json_first(doc) : NULL; v && st == TG_OK;
         v = tgi_json_next(v))
        if (strcmp(tgi_json_key(v), "__metadata__") != 0)
            st = read_tensor(w, v, data, err);
    tgi_json_free(&doc);
    return st == TG_OK ? check_apart(w, data, err) : st;
}

const tgi_weights_ops tgi_safetensors_ops = {
    .format = "safetensors", .fuzzed = TGI_FUZZED, .probe = probe, .open = open_it};
