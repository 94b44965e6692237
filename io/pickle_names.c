/* pickle_names.c - what a pickle may name, and what calling it gives: each rule checks its arguments and notes numbers.
 *
 * See pickle.h. Nothing here reads a tensor's elements or allocates by a number that the file states. */
#include "io/pickle.h"

#include <string.h>

typedef enum what {
    TYPE,       /* of a storage */
    DTYPE,      /* of elements: torch.float32 */
    TENSOR_V2,  /* (storage, first, size, stride, ...) */
    TENSOR_V3,  /* the same, and the type of elements */
    FIRST,      /* gives its first argument */
    DICTIONARY, /* empty, or of pairs */
    INERT,      /* gives something that nobody asks for */
    CLASS,      /* of TorchScript */
    REFUSED     /* known, and what there is instead */
} what;

struct tgi_pickle_name {
    const char *module, *name;
    what what;
    tg_dtype dtype;
    const char *instead;
};

#define STORAGE(name, type)                                                                    \
    {                                                                                          \
        "torch", name, TYPE, type, NULL                                                        \
    }
#define ELEMENT(name, type)                                                                    \
    {                                                                                          \
        "torch", name, DTYPE, type, NULL                                                       \
    }
#define SPARSE "sparse tensors are not read: make them dense before saving"
#define QUANTISED "quantised tensors are not read: save what dequantize() gives"
#define COMPLEX "complex tensors are not read"
#define FLOAT8 "8-bit floats are not read: convert them to bfloat16 or float32"

static const struct tgi_pickle_name names[] = {
    {"torch._utils", "_rebuild_tensor", TENSOR_V2, TG_DTYPE_NONE, NULL},
    {"torch._utils", "_rebuild_tensor_v2", TENSOR_V2, TG_DTYPE_NONE, NULL},
    {"torch._utils", "_rebuild_tensor_v3", TENSOR_V3, TG_DTYPE_NONE, NULL},
    {"torch._utils", "_rebuild_parameter", FIRST, TG_DTYPE_NONE, NULL},
    {"torch._utils", "_rebuild_parameter_with_state", FIRST, TG_DTYPE_NONE, NULL},
    {"collections", "OrderedDict", DICTIONARY, TG_DTYPE_NONE, NULL},
    {"collections", "Counter", INERT, TG_DTYPE_NONE, NULL},
    STORAGE("FloatStorage", TG_DTYPE_F32),
    STORAGE("DoubleStorage", TG_DTYPE_F64),
    STORAGE("HalfStorage", TG_DTYPE_F16),
    STORAGE("BFloat16Storage", TGI_DTYPE_BF16),
    STORAGE("LongStorage", TG_DTYPE_I64),
    STORAGE("IntStorage", TG_DTYPE_I32),
    STORAGE("ShortStorage", TG_DTYPE_I16),
    STORAGE("CharStorage", TG_DTYPE_I8),
    STORAGE("ByteStorage", TG_DTYPE_U8),
    STORAGE("BoolStorage", TG_DTYPE_BOOL),
    {"torch.storage", "UntypedStorage", TYPE, TG_DTYPE_NONE, NULL},
    {"torch", "UntypedStorage", TYPE, TG_DTYPE_NONE, NULL},
    ELEMENT("float32", TG_DTYPE_F32),
    ELEMENT("float64", TG_DTYPE_F64),
    ELEMENT("float16", TG_DTYPE_F16),
    ELEMENT("bfloat16", TGI_DTYPE_BF16),
    ELEMENT("int64", TG_DTYPE_I64),
    ELEMENT("int32", TG_DTYPE_I32),
    ELEMENT("int16", TG_DTYPE_I16),
    ELEMENT("int8", TG_DTYPE_I8),
    ELEMENT("uint8", TG_DTYPE_U8),
    ELEMENT("uint16", TG_DTYPE_U16),
    ELEMENT("uint32", TG_DTYPE_U32),
    ELEMENT("uint64", TG_DTYPE_U64),
    ELEMENT("bool", TG_DTYPE_BOOL),
    {"torch", "Size", FIRST, TG_DTYPE_NONE, NULL},
    {"torch", "device", INERT, TG_DTYPE_NONE, NULL},
    {"torch.serialization", "_get_layout", INERT, TG_DTYPE_NONE, NULL},
    {"_codecs", "encode", INERT, TG_DTYPE_NONE, NULL},
    {"builtins", "set", INERT, TG_DTYPE_NONE, NULL},
    {"builtins", "bytearray", INERT, TG_DTYPE_NONE, NULL},
    {"__builtin__", "set", INERT, TG_DTYPE_NONE, NULL},
    {"__builtin__", "bytearray", INERT, TG_DTYPE_NONE, NULL},
    {"torch.jit._pickle", "build_intlist", INERT, TG_DTYPE_NONE, NULL},
    {"torch.jit._pickle", "build_doublelist", INERT, TG_DTYPE_NONE, NULL},
    {"torch.jit._pickle", "build_boollist", INERT, TG_DTYPE_NONE, NULL},
    {"torch.jit._pickle", "build_tensorlist", FIRST, TG_DTYPE_NONE, NULL},
    {"torch.jit._pickle", "restore_type_tag", FIRST, TG_DTYPE_NONE, NULL},
    {"torch._utils", "_rebuild_sparse_tensor", REFUSED, TG_DTYPE_NONE, SPARSE},
    {"torch._utils", "_rebuild_qtensor", REFUSED, TG_DTYPE_NONE, QUANTISED},
    {"torch", "QInt8Storage", REFUSED, TG_DTYPE_NONE, QUANTISED},
    {"torch", "QUInt8Storage", REFUSED, TG_DTYPE_NONE, QUANTISED},
    {"torch", "QInt32Storage", REFUSED, TG_DTYPE_NONE, QUANTISED},
    {"torch", "ComplexFloatStorage", REFUSED, TG_DTYPE_NONE, COMPLEX},
    {"torch", "ComplexDoubleStorage", REFUSED, TG_DTYPE_NONE, COMPLEX},
    {"torch", "float8_e4m3fn", REFUSED, TG_DTYPE_NONE, FLOAT8},
    {"torch", "float8_e5m2", REFUSED, TG_DTYPE_NONE, FLOAT8},
};

static const struct tgi_pickle_name torchscript = {"__torch__", "", CLASS, TG_DTYPE_NONE, NULL};

static tg_status why(const tgi_err *err)
{
    return err && err->code != TG_OK ? err->code : TG_E_FORMAT;
}

static int is(const char *text, size_t n, const char *word)
{
    return n == strlen(word) && memcmp(text, word, n) == 0;
}

const struct tgi_pickle_name *tgi_pickle_find_name(const char *module, size_t n_module,
                                                   const char *name, size_t n_name,
                                                   tgi_err *err)
{
    const int width[2] = {n_module < 80 ? (int)n_module : 80, n_name < 80 ? (int)n_name : 80};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (!is(module, n_module, names[i].module) || !is(name, n_name, names[i].name))
            continue;
        if (names[i].what == REFUSED) {
            tgi_fail(err, TG_E_UNSUPPORTED, "%s.%s: %s", names[i].module, names[i].name,
                     names[i].instead);
            return NULL;
        }
        return &names[i];
    }
    if (is(module, n_module, "__torch__") ||
        (n_module > 10 && memcmp(module, "__torch__.", 10) == 0))
        return &torchscript;
    tgi_fail(
        err, TG_E_FORMAT,
        "the pickle names %.*s.%.*s, which is no tensor: nothing of it was run; of files that "
        "you trust, save state_dict() alone with torch.save",
        width[0], module, width[1], name);
    return NULL;
}

/* ---- Arguments --------------------------------------------------------------------------- */

static tgi_pickle *argument(const tgi_pickle *tuple, uint32_t i)
{
    const tgi_pickle_item *item = tuple->u.items.first;
    if (i >= tuple->n)
        return NULL;
    while (i-- > 0)
        item = item->next;
    return item->value;
}

static int integer(const tgi_pickle *v, int64_t *out)
{
    if (!v || v->kind != TGI_PICKLE_INT || v->u.integer < 0)
        return 0;
    *out = v->u.integer;
    return 1;
}

/* A tuple or list of integers. */
static int integers(const tgi_pickle *v, int64_t *out, int *n)
{
    if (!v || (v->kind != TGI_PICKLE_TUPLE && v->kind != TGI_PICKLE_LIST) ||
        v->n > TGI_MAX_RANK)
        return 0;
    *n = 0;
    for (const tgi_pickle_item *i = v->u.items.first; i; i = i->next)
        if (!integer(i->value, &out[(*n)++]))
            return 0;
    return 1;
}

static tg_status bad_call(const struct tgi_pickle_name *name, tgi_err *err)
{
    return tgi_fail(err, TG_E_FORMAT,
                    "the pickle calls %s.%s with arguments that it does not take", name->module,
                    name->name);
}

/* ---- Calls ------------------------------------------------------------------------------- */

/* (storage, first, size, stride, requires_grad, hooks, of v3: type) */
static tg_status make_tensor(tgi_onnx_arena *a, const struct tgi_pickle_name *name,
                             const tgi_pickle *args, tgi_pickle **out, tgi_err *err)
{
    tgi_pickle_tensor t = {0};
    int n_stride;
    const tgi_pickle *storage = argument(args, 0), *type = argument(args, 6);
    if (!storage || storage->kind != TGI_PICKLE_STORAGE ||
        !integer(argument(args, 1), &t.first))
        return bad_call(name, err);
    const tgi_pickle *size = argument(args, 2);
    if (size && size->kind == TGI_PICKLE_TUPLE && size->n > TGI_MAX_RANK)
        return tgi_fail(err, TG_E_UNSUPPORTED, "a tensor has %u axes; up to %d are read",
                        size->n, TGI_MAX_RANK);
    if (!integers(size, t.desc.dim, &t.desc.rank) ||
        !integers(argument(args, 3), t.stride, &n_stride) || n_stride != t.desc.rank)
        return bad_call(name, err);
    t.storage = storage->u.storage;
    t.desc.dtype = t.storage->dtype;
    if (name->what == TENSOR_V3) {
        if (!type || type->kind != TGI_PICKLE_NAME || type->u.name->what != DTYPE)
            return bad_call(name, err);
        t.desc.dtype = type->u.name->dtype;
    }
    if (t.desc.dtype == TG_DTYPE_NONE)
        return bad_call(name, err);
    tgi_pickle_tensor *kept = tgi_onnx_alloc(a, 1, sizeof *kept, err);
    tgi_pickle *v = kept ? tgi_pickle_new(a, TGI_PICKLE_TENSOR, err) : NULL;
    if (!v)
        return why(err);
    *kept = t;
    v->u.tensor = kept;
    *out = v;
    return TG_OK;
}

/* (), or of Python 2 ([[key, value], ...],) */
static tg_status make_dict(tgi_onnx_arena *a, const struct tgi_pickle_name *name,
                           const tgi_pickle *args, tgi_pickle **out, tgi_err *err)
{
    tgi_pickle *v = tgi_pickle_new(a, TGI_PICKLE_DICT, err);
    const tgi_pickle *pairs = argument(args, 0);
    if (!v)
        return why(err);
    if (args->n > 1 || (pairs && pairs->kind != TGI_PICKLE_LIST))
        return bad_call(name, err);
    for (tgi_pickle_item *i = pairs ? pairs->u.items.first : NULL; i; i = i->next) {
        const tgi_pickle *pair = i->value;
        if ((pair->kind != TGI_PICKLE_LIST && pair->kind != TGI_PICKLE_TUPLE) || pair->n != 2)
            return bad_call(name, err);
        TGI_TRY(tgi_pickle_append(a, v, argument(pair, 0), argument(pair, 1), err));
    }
    *out = v;
    return TG_OK;
}

tg_status tgi_pickle_call(tgi_onnx_arena *a, const struct tgi_pickle_name *name,
                          tgi_pickle *args, tgi_pickle **out, tgi_err *err)
{
    switch (name->what) {
    case TENSOR_V2:
    case TENSOR_V3:
        return make_tensor(a, name, args, out, err);
    case FIRST:
        *out = argument(args, 0);
        return *out ? TG_OK : bad_call(name, err);
    case DICTIONARY:
        return make_dict(a, name, args, out, err);
    case INERT:
        *out = tgi_pickle_new(a, TGI_PICKLE_INERT, err);
        return *out ? TG_OK : why(err);
    default:
        return bad_call(name, err);
    }
}

tg_status tgi_pickle_object(tgi_onnx_arena *a, const struct tgi_pickle_name *name,
                            const tgi_pickle *args, tgi_pickle **out, tgi_err *err)
{
    if (name->what != CLASS || args->n)
        return bad_call(name, err);
    *out = tgi_pickle_new(a, TGI_PICKLE_OBJECT, err);
    return *out ? TG_OK : why(err);
}

/* ---- Storages ---------------------------------------------------------------------------- */

static tg_status bad_storage(tgi_err *err)
{
    return tgi_fail(err, TG_E_FORMAT, "the pickle has a persistent id that is no storage");
}

/* Of old files: None, or (key, first element, elements). */
static int read_part(const tgi_pickle *v, tgi_pickle_storage *s)
{
    if (!v || v->kind == TGI_PICKLE_NONE)
        return 1;
    return v->kind == TGI_PICKLE_TUPLE && v->n == 3 && integer(argument(v, 1), &s->first) &&
           integer(argument(v, 2), &s->part) && s->first <= s->count &&
           s->part <= s->count - s->first;
}

tg_status tgi_pickle_storage_of(tgi_onnx_arena *a, const tgi_pickle *id,
                                const tgi_pickle_storage *before, tgi_pickle **out,
                                tgi_err *err)
{
    tgi_pickle_storage s = {.before = before};
    if (id->kind != TGI_PICKLE_TUPLE)
        return bad_storage(err);
    if (tgi_pickle_is_text(argument(id, 0), "module"))
        return tgi_fail(
            err, TG_E_FORMAT,
            "the file holds a network with its code, which is not run; of files that "
            "you trust, save state_dict() alone with torch.save");
    const tgi_pickle *type = argument(id, 1), *key = argument(id, 2);
    if (!tgi_pickle_is_text(argument(id, 0), "storage") || !type ||
        type->kind != TGI_PICKLE_NAME || type->u.name->what != TYPE || !key ||
        key->kind != TGI_PICKLE_TEXT || key->n == 0 || key->n > 64 ||
        !integer(argument(id, 4), &s.count))
        return bad_storage(err);
    s.key = key->u.text;
    s.n_key = key->n;
    s.dtype = type->u.name->dtype;
    s.part = s.count;
    if (!read_part(argument(id, 5), &s))
        return bad_storage(err);
    tgi_pickle_storage *kept = tgi_onnx_alloc(a, 1, sizeof *kept, err);
    tgi_pickle *v = kept ? tgi_pickle_new(a, TGI_PICKLE_STORAGE, err) : NULL;
    if (!v)
        return why(err);
    *kept = s;
    v->u.storage = kept;
    *out = v;
    return TG_OK;
}
