/* pth.c - .pth and .pt files of torch.save, in both forms, and those of TorchScript.
 *
 * Since version 1.6 a file is a ZIP archive with one folder: data.pkl, a pickle of what was saved, and data/KEY, the bytes of
 * each storage. Before, it was five pickles (a magic number, 1001, facts of the system, what was saved, the keys of the storages)
 * and behind them each storage: the number of its elements, and they. Elements are little-endian, but for archives whose
 * record `byteorder` says "big".
 *
 * What was saved is a dictionary of tensors, or one that holds such a dictionary under a name that everybody gives it
 * (`wrappers`), or anything with tensors in it: then a tensor's name is the path to it, with dots. A storage that several tensors
 * share is shared here, too. Loops and repetitions among values end at MAX_DEPTH and MAX_STEPS.
 *
 * @source torch/serialization.py; caffe2/serialize/inline_container.cc. */
#include "io/weights_inside.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "io/bytes.h"
#include "io/pickle.h"
#include "io/zip_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DEPTH 64
#define MAX_STEPS 1000000
#define MAX_FOLDER 256

static const char *const wrappers[] = {"params_ema", "params", "state_dict", "model_state_dict",
                                       "model"};

/* ---- Tensors among values ---------------------------------------------------------------- */

typedef struct walk walk;

/* Where a storage lies: `record`, `at` of its first byte, `room` in bytes. */
typedef tg_status find_storage(walk *k, const tgi_pickle_storage *s, tgi_weight_place *out,
                               tgi_err *err);

struct walk {
    tgi_weights *w;
    find_storage *find;
    void *of; /* the form's */
    bool swap;
    int64_t steps;
    size_t n; /* bytes of the path */
    char path[TGI_WEIGHTS_NAME + 1];
};

static tg_status add_tensor(walk *k, const tgi_pickle_tensor *t, tgi_err *err)
{
    const tgi_pickle_storage *s = t->storage;
    const size_t size = tgi_dtype_size(t->desc.dtype), unit = s->dtype ? size : 1;
    size_t part, before, first;
    tgi_weight_place p = {.record = TGI_IN_FILE, .swap = k->swap && size > 1};
    if (!tgi_mul_ok((size_t)s->part, unit, &part) ||
        !tgi_mul_ok((size_t)s->first, unit, &before) ||
        !tgi_mul_ok((size_t)t->first, size, &first) || first > part)
        return tgi_fail(err, TG_E_FORMAT, "\"%.*s\" begins past the end of its storage",
                        (int)k->n, k->path);
    TGI_TRY(k->find(k, s, &p, err));
    if (before > p.room || part > p.room - before)
        return tgi_fail(err, TG_E_FORMAT, "\"%.*s\": its storage has %llu bytes, not %zu",
                        (int)k->n, k->path, (unsigned long long)p.room,
                        tgi_sat_add(before, part));
    p.at += before + first;
    p.room = part - first;
    memcpy(p.stride, t->stride, sizeof p.stride);
    return tgi_weights_add(k->w, k->path, k->n, &t->desc, &p, err);
}

/* The path gets ".key"; false: it is too long, or the key is neither text nor a number. */
static bool enter(walk *k, const tgi_pickle *key, int64_t index)
{
    char number[32];
    const char *text = number;
    size_t n;
    if (key && key->kind == TGI_PICKLE_TEXT) {
        text = key->u.text;
        n = key->n;
    } else if (!key || key->kind == TGI_PICKLE_INT) {
        n = (size_t)snprintf(number, sizeof number, "%lld",
                             (long long)(key ? key->u.integer : index));
    } else {
        return false;
    }
    if (n + 1 > TGI_WEIGHTS_NAME - k->n)
        return false;
    if (k->n)
        k->path[k->n++] = '.';
    memcpy(k->path + k->n, text, n);
    k->n += n;
    return true;
}

static bool has_items(const tgi_pickle *v)
{
    return v->kind == TGI_PICKLE_DICT || v->kind == TGI_PICKLE_OBJECT ||
           v->kind == TGI_PICKLE_LIST || v->kind == TGI_PICKLE_TUPLE;
}

static tg_status walk_value(walk *k, const tgi_pickle *v, int depth, tgi_err *err)
{
    int64_t index = 0;
    if (v->kind == TGI_PICKLE_TENSOR)
        return add_tensor(k, v->u.tensor, err);
    if (!has_items(v))
        return TG_OK;
    if (depth > MAX_DEPTH)
        return tgi_fail(err, TG_E_FORMAT, "values nest more than %d deep", MAX_DEPTH);
    for (const tgi_pickle_item *i = v->u.items.first; i; i = i->next, index++) {
        const size_t n = k->n;
        if (++k->steps > MAX_STEPS)
            return tgi_fail(err, TG_E_FORMAT, "the pickle repeats more than %d values",
                            MAX_STEPS);
        if (i->value->kind != TGI_PICKLE_TENSOR && !has_items(i->value))
            continue;
        if (!enter(k, i->key, index))
            return tgi_fail(err, TG_E_FORMAT,
                            "below \"%.*s\": a name that is no text or too long", (int)n,
                            k->path);
        TGI_TRY(walk_value(k, i->value, depth + 1, err));
        k->n = n;
    }
    return TG_OK;
}

static bool has_tensors(const tgi_pickle *v)
{
    for (const tgi_pickle_item *i = v->u.items.first; i; i = i->next)
        if (i->value->kind == TGI_PICKLE_TENSOR)
            return true;
    return false;
}

/* The dictionary of tensors in what was saved. */
static const tgi_pickle *unwrap(const tgi_pickle *v)
{
    for (int depth = 0; depth < 4 && v->kind == TGI_PICKLE_DICT && !has_tensors(v); depth++) {
        const tgi_pickle *in = NULL;
        for (size_t i = 0; i < sizeof wrappers / sizeof wrappers[0] && !in; i++) {
            in = tgi_pickle_get(v, wrappers[i]);
            if (in && (in->kind != TGI_PICKLE_DICT || !in->n))
                in = NULL;
        }
        if (!in)
            break;
        v = in;
    }
    return v;
}

static tg_status add_all(walk *k, const tgi_pickle *saved, tgi_err *err)
{
    if (saved->kind == TGI_PICKLE_TENSOR) /* nobody named it */
        memcpy(k->path, "tensor", k->n = 6);
    return walk_value(k, unwrap(saved), 0, err);
}

/* ---- The ZIP form ------------------------------------------------------------------------ */

static int probe_zip(const uint8_t *head, size_t n)
{
    return n >= 4 && memcmp(head, "PK\3\4", 4) == 0;
}

typedef struct archive {
    tgi_zip *zip;
    char folder[MAX_FOLDER];
} archive;

/* The record with that name in the archive's folder, or -1. */
static int64_t record_of(const archive *a, const char *name)
{
    char path[MAX_FOLDER + 128];
    snprintf(path, sizeof path, "%s/%s", a->folder, name);
    return tgi_zip_find(a->zip, path);
}

static tg_status find_folder(archive *a, tgi_err *err)
{
    const char *name = tgi_zip_first(a->zip), *slash = name ? strchr(name, '/') : NULL;
    const size_t n = slash ? (size_t)(slash - name) : 0;
    if (n == 0 || n >= sizeof a->folder)
        return tgi_fail(err, TG_E_FORMAT,
                        "a ZIP archive that torch.save did not write: it has no folder");
    memcpy(a->folder, name, n);
    if (record_of(a, "data.pkl") >= 0)
        return TG_OK;
    return tgi_fail(err, TG_E_FORMAT,
                    "a ZIP archive that torch.save did not write: %s/data.pkl is not there",
                    a->folder);
}

static tg_status find_record(walk *k, const tgi_pickle_storage *s, tgi_weight_place *out,
                             tgi_err *err)
{
    const archive *a = k->of;
    const tgi_zip_record *r;
    char name[128];
    snprintf(name, sizeof name, "data/%.*s", (int)s->n_key, s->key);
    const int64_t i = record_of(a, name);
    if (i < 0)
        return tgi_fail(err, TG_E_FORMAT, "\"%.*s\": record %s/%s is not there", (int)k->n,
                        k->path, a->folder, name);
    TGI_TRY(tgi_zip_locate(a->zip, i, &r, err));
    out->room = r->bytes;
    out->record = r->stored ? TGI_IN_FILE : i;
    out->at = r->stored ? r->at : 0;
    return TG_OK;
}

/* All of a small record; *out is a view of the archive, or *copy, which the caller frees. */
static tg_status load(const archive *a, const uint8_t *map, int64_t i, size_t max,
                      const uint8_t **out, size_t *n, uint8_t **copy, tgi_err *err)
{
    const tgi_zip_record *r;
    TGI_TRY(tgi_zip_locate(a->zip, i, &r, err));
    if (r->bytes > max)
        return tgi_fail(err, TG_E_FORMAT, "record \"%s\" has %llu bytes, more than %zu",
                        r->name, (unsigned long long)r->bytes, max);
    *n = (size_t)r->bytes;
    *out = map + r->at;
    if (r->stored)
        return TG_OK;
    if (!(*copy = tgi_malloc(TGI_TAG_IO, *n + 1)))
        return tgi_fail(err, TG_E_NOMEM, "no memory for %zu bytes of \"%s\"", *n, r->name);
    *out = *copy;
    return tgi_zip_read(a->zip, i, 0, *copy, *n, err);
}

static tg_status read_byte_order(const archive *a, const uint8_t *map, bool *swap, tgi_err *err)
{
    const int64_t i = record_of(a, "byteorder");
    const uint8_t *text;
    uint8_t *copy = NULL;
    size_t n;
    if (i < 0)
        return TG_OK;
    tg_status st = load(a, map, i, 64, &text, &n, &copy, err);
    if (st == TG_OK && n == 3 && memcmp(text, "big", 3) == 0)
        *swap = true;
    else if (st == TG_OK && (n != 6 || memcmp(text, "little", 6) != 0))
        st = tgi_fail(err, TG_E_FORMAT, "record %s/byteorder is neither little nor big",
                      a->folder);
    tgi_free(copy);
    return st;
}

static tg_status read_archive(tgi_weights *w, archive *a, tgi_err *err)
{
    walk k = {.w = w, .find = find_record, .of = a};
    const uint8_t *pickle;
    uint8_t *copy = NULL;
    size_t n;
    tgi_onnx_arena values = {.limit = TGI_PICKLE_VALUES};
    tgi_pickled got;
    TGI_TRY(read_byte_order(a, w->map, &k.swap, err));
    tg_status st =
        load(a, w->map, record_of(a, "data.pkl"), TGI_PICKLE_BYTES, &pickle, &n, &copy, err);
    if (st == TG_OK)
        st = tgi_pickle_read(pickle, n, &values, &got, err);
    if (st == TG_OK)
        st = add_all(&k, got.value, err);
    if (st == TG_OK)
        st = tgi_zip_check_apart(a->zip, err);
    w->stored_bytes = tgi_zip_unpacked(a->zip);
    if (!w->stored_bytes) /* all lies in the file: nobody is going to ask for it */
        tgi_zip_close(&a->zip);
    tgi_onnx_arena_free(&values);
    tgi_free(copy);
    return st;
}

static tg_status open_zip(tgi_weights *w, tgi_err *err)
{
    archive *a = tgi_calloc(TGI_TAG_IO, 1, sizeof *a);
    if (!a)
        return tgi_fail(err, TG_E_NOMEM, "no memory for an archive");
    w->state = a;
    TGI_TRY(tgi_zip_open(w->map, w->size, &a->zip, err));
    TGI_TRY(find_folder(a, err));
    return read_archive(w, a, err);
}

static tg_status unpack(const tgi_weights *w, int64_t record, uint64_t from, void *dst,
                        size_t n, tgi_err *err)
{
    const archive *a = w->state;
    return tgi_zip_read(a->zip, record, from, dst, n, err);
}

static void close_zip(tgi_weights *w)
{
    archive *a = w->state;
    if (a)
        tgi_zip_close(&a->zip);
    tgi_free(a);
}

const tgi_weights_ops tgi_pth_ops = {.format = "pth",
                                     .fuzzed = TGI_FUZZED,
                                     .probe = probe_zip,
                                     .open = open_zip,
                                     .unpack = unpack,
                                     .close = close_zip};

/* ---- The form of before ------------------------------------------------------------------ */

static int probe_legacy(const uint8_t *head, size_t n)
{
    return n >= 2 && head[0] == 0x80 && head[1] >= 2 && head[1] <= 5;
}

typedef struct stored {
    const char *key;
    size_t n_key;
    size_t unit; /* bytes of an element */
    uint64_t at, bytes;
    bool there; /* the list of keys has it */
} stored;

typedef struct storages {
    stored *at; /* sorted by key */
    size_t n;
} storages;

static int by_key(const void *a, const void *b)
{
    const stored *p = a, *q = b;
    const size_t n = p->n_key < q->n_key ? p->n_key : q->n_key;
    const int c = memcmp(p->key, q->key, n);
    return c ? c : (p->n_key > q->n_key) - (p->n_key < q->n_key);
}

static stored *find_key(const storages *s, const char *key, size_t n)
{
    const stored wanted = {.key = key, .n_key = n};
    return s->n ? bsearch(&wanted, s->at, s->n, sizeof wanted, by_key) : NULL;
}

/* Every storage that the pickle named, once. */
static tg_status list_storages(const tgi_pickle_storage *last, storages *out, tgi_err *err)
{
    size_t n = 0, kept = 0;
    for (const tgi_pickle_storage *s = last; s; s = s->before)
        n++;
    out->at = tgi_calloc(TGI_TAG_IO, n + 1, sizeof *out->at);
    if (!out->at)
        return tgi_fail(err, TG_E_NOMEM, "no memory for %zu storages", n);
    for (const tgi_pickle_storage *s = last; s; s = s->before)
        out->at[out->n++] = (stored){
            .key = s->key, .n_key = s->n_key, .unit = s->dtype ? tgi_dtype_size(s->dtype) : 1};
    qsort(out->at, n, sizeof *out->at, by_key);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || by_key(&out->at[i], &out->at[kept - 1]) != 0)
            out->at[kept++] = out->at[i];
        else if (out->at[i].unit != out->at[kept - 1].unit)
            return tgi_fail(err, TG_E_FORMAT, "a storage is of two types");
    out->n = kept;
    return TG_OK;
}

/* The storages lie behind each other from `at` on, in the order of the keys. */
static tg_status place_storages(const tgi_weights *w, const tgi_pickle *keys, uint64_t at,
                                const storages *s, tgi_err *err)
{
    if (keys->kind != TGI_PICKLE_LIST)
        return tgi_fail(err, TG_E_FORMAT, "the keys of the storages are no list");
    for (const tgi_pickle_item *i = keys->u.items.first; i; i = i->next) {
        const tgi_pickle *key = i->value;
        size_t bytes;
        stored *one = key->kind == TGI_PICKLE_TEXT ? find_key(s, key->u.text, key->n) : NULL;
        if (!one || one->there)
            return tgi_fail(err, TG_E_FORMAT, "a storage that is listed twice or no tensor's");
        if (w->size - at < 8 ||
            !tgi_mul_ok((size_t)tgi_load64(w->map + at, false), one->unit, &bytes) ||
            bytes > w->size - at - 8)
            return tgi_fail(err, TG_E_FORMAT, "storage %.*s goes past the end of the file",
                            (int)one->n_key, one->key);
        one->there = true;
        one->at = at + 8;
        one->bytes = bytes;
        at += 8 + (uint64_t)bytes;
    }
    return TG_OK;
}

static tg_status find_stored(walk *k, const tgi_pickle_storage *s, tgi_weight_place *out,
                             tgi_err *err)
{
    const stored *one = find_key(k->of, s->key, s->n_key);
    if (!one || !one->there)
        return tgi_fail(err, TG_E_FORMAT, "\"%.*s\": its storage is not in the file", (int)k->n,
                        k->path);
    out->at = one->at;
    out->room = one->bytes;
    return TG_OK;
}

static bool is_magic(const tgi_pickle *v)
{
    static const char magic[] = "\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";
    return v->kind == TGI_PICKLE_BYTES_OF && v->n == sizeof magic - 1 &&
           memcmp(v->u.text, magic, v->n) == 0;
}

enum { MAGIC, VERSION, SYSTEM, SAVED, KEYS, N_PICKLES };

static tg_status read_pickles(const tgi_weights *w, tgi_onnx_arena *values, tgi_pickled *p,
                              uint64_t *at, tgi_err *err)
{
    for (int i = 0; i < N_PICKLES; i++) {
        TGI_TRY(tgi_pickle_read(w->map + *at, w->size - (size_t)*at, values, &p[i], err));
        *at += p[i].bytes;
        if (i == MAGIC && !is_magic(p[i].value))
            return tgi_fail(err, TG_E_FORMAT, "a pickle that torch.save did not write");
        if (i == VERSION &&
            (p[i].value->kind != TGI_PICKLE_INT || p[i].value->u.integer != 1001))
            return tgi_fail(err, TG_E_FORMAT, "a file of torch.save of an unknown version");
    }
    return TG_OK;
}

static tg_status open_legacy(tgi_weights *w, tgi_err *err)
{
    storages s = {0};
    walk k = {.w = w, .find = find_stored, .of = &s};
    tgi_onnx_arena values = {.limit = TGI_PICKLE_VALUES};
    tgi_pickled p[N_PICKLES];
    uint64_t at = 0;
    tg_status st = read_pickles(w, &values, p, &at, err);
    if (st == TG_OK)
        st = list_storages(p[SAVED].storages, &s, err);
    if (st == TG_OK)
        st = place_storages(w, p[KEYS].value, at, &s, err);
    if (st == TG_OK)
        st = add_all(&k, p[SAVED].value, err);
    tgi_free(s.at);
    tgi_onnx_arena_free(&values);
    return st;
}

const tgi_weights_ops tgi_pth_legacy_ops = {
    .format = "legacy pth", .fuzzed = TGI_FUZZED, .probe = probe_legacy, .open = open_legacy};
