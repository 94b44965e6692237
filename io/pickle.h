/* pickle.h - what torch.save pickles, as plain values: a machine that builds tensors and nothing else.
 *
 * Python's pickle is a program: it names functions of any module (GLOBAL) and calls them with arguments of the file's choice
 * (REDUCE), so reading one as Python does runs whatever its author wanted. Here a name is looked up in a list (pickle_names.c),
 * and what is called is one of a dozen rules that check their arguments and note where a tensor's elements lie. An
 * opcode or name that is not listed ends the reading with TG_E_FORMAT. What torch.load(weights_only=True) reads is listed, and
 * of TorchScript the objects, as dictionaries of their attributes.
 *
 * Bounds: a pickle is at most 8 MiB, a memo or stack at most a quarter of a million values, values share the arena's limit.
 * Nothing recurses. Values may contain themselves (a list in itself is valid): who walks them counts its steps.
 *
 * @source Lib/pickletools.py; torch/_weights_only_unpickler.py, torch/_utils.py, torch/serialization.py. */
#ifndef TGI_PICKLE_H
#define TGI_PICKLE_H

#include "engine/base/tensor.h"
#include "io/onnx_wire.h"

#define TGI_PICKLE_BYTES ((size_t)8 << 20)
#define TGI_PICKLE_VALUES ((size_t)24 << 20) /* a limit for the arena: some 20,000 tensors */

typedef enum tgi_pickle_kind {
    TGI_PICKLE_NONE,
    TGI_PICKLE_BOOL,
    TGI_PICKLE_INT,
    TGI_PICKLE_TEXT,
    TGI_PICKLE_BYTES_OF, /* bytes, and integers of more than 64 bits */
    TGI_PICKLE_TUPLE,
    TGI_PICKLE_LIST,
    TGI_PICKLE_DICT,
    TGI_PICKLE_OBJECT, /* of TorchScript: the attributes, as in a dictionary */
    TGI_PICKLE_NAME,   /* of the list of what may be named */
    TGI_PICKLE_STORAGE,
    TGI_PICKLE_TENSOR,
    TGI_PICKLE_INERT /* a number with a point, a device, a set: nothing that is asked for */
} tgi_pickle_kind;

struct tgi_pickle_name; /* pickle_names.c */

typedef struct tgi_pickle tgi_pickle;

typedef struct tgi_pickle_item {
    struct tgi_pickle_item *next;
    tgi_pickle *key; /* of dictionaries and objects */
    tgi_pickle *value;
} tgi_pickle_item;

/* Elements that are stored together; several tensors may share them. */
typedef struct tgi_pickle_storage {
    const struct tgi_pickle_storage *before; /* the one that the pickle named before it */
    const char *key; /* a view of the pickle, n_key bytes: which storage */
    size_t n_key;
    tg_dtype dtype; /* TG_DTYPE_NONE: bytes without a type */
    int64_t count;  /* elements, or bytes */
    int64_t first;  /* of old files, where it is a part of a storage: the first element, */
    int64_t part;   /* and how many; else 0 and `count` */
} tgi_pickle_storage;

typedef struct tgi_pickle_tensor {
    const tgi_pickle_storage *storage;
    tgi_desc desc;
    int64_t first; /* element of the storage, in desc's type */
    int64_t stride[TGI_MAX_RANK];
} tgi_pickle_tensor;

struct tgi_pickle {
    tgi_pickle_kind kind;
    uint32_t n; /* bytes of a text, items */
    union {
        int64_t integer;
        const char *text; /* a view of the pickle, not terminated */
        struct {
            tgi_pickle_item *first, *last;
        } items;
        const struct tgi_pickle_name *name;
        const tgi_pickle_storage *storage;
        const tgi_pickle_tensor *tensor;
    } u;
};

typedef struct tgi_pickled {
    const tgi_pickle *value;
    const tgi_pickle_storage *storages; /* the last one that was named, before: the others */
    size_t bytes;                       /* of the pickle */
} tgi_pickled;

/* Read the pickle at the beginning of bytes[0, n). Values live as long as arena and bytes. */
tg_status tgi_pickle_read(const uint8_t *bytes, size_t n, tgi_onnx_arena *arena,
                          tgi_pickled *out, tgi_err *err);

int tgi_pickle_is_text(const tgi_pickle *v, const char *text);
/* The value under a key of text; NULL: there is none, or `v` is no dictionary. */
const tgi_pickle *tgi_pickle_get(const tgi_pickle *v, const char *key);

/* ---- Between pickle.c and pickle_names.c ---- */

/* NULL with `err` filled: not among those that may be named. */
const struct tgi_pickle_name *tgi_pickle_find_name(const char *module, size_t n_module,
                                                   const char *name, size_t n_name,
                                                   tgi_err *err);
/* A new value of a kind; NULL with `err` filled. */
tgi_pickle *tgi_pickle_new(tgi_onnx_arena *a, tgi_pickle_kind kind, tgi_err *err);
tg_status tgi_pickle_append(tgi_onnx_arena *a, tgi_pickle *to, tgi_pickle *key,
                            tgi_pickle *value, tgi_err *err);
/* What calling `name` with a tuple of arguments gives. */
tg_status tgi_pickle_call(tgi_onnx_arena *a, const struct tgi_pickle_name *name,
                          tgi_pickle *args, tgi_pickle **out, tgi_err *err);
/* A new object of a class of TorchScript; TG_E_FORMAT: `name` is none. */
tg_status tgi_pickle_object(tgi_onnx_arena *a, const struct tgi_pickle_name *name,
                            const tgi_pickle *args, tgi_pickle **out, tgi_err *err);
/* What a persistent id ("storage", type, key, place, count) means. */
tg_status tgi_pickle_storage_of(tgi_onnx_arena *a, const tgi_pickle *id,
                                const tgi_pickle_storage *before, tgi_pickle **out,
                                tgi_err *err);

#endif
