/* weights_inside.h - what a format of weights tells weights.c about the tensors of its file. */
#ifndef TGI_WEIGHTS_INSIDE_H
#define TGI_WEIGHTS_INSIDE_H

#include "io/image.h"
#include "io/onnx_wire.h"
#include "io/rfile.h"
#include "io/weights.h"

/* Where the elements are. */
typedef struct tgi_weight_place {
    uint64_t at;                  /* of the first: in the file, or in the unpacked record */
    int64_t record;               /* TGI_IN_FILE, or a number of the format's */
    int64_t stride[TGI_MAX_RANK]; /* in elements, none negative */
    uint64_t room;                /* bytes from `at` on that are this storage's */
    uint64_t span; /* of these, to behind the last element: tgi_weights_add says */
    bool dense;    /* row-major without gaps */
    bool swap;     /* big-endian */
} tgi_weight_place;
#define TGI_IN_FILE (-1)

/* A format is one file and one line in weights.c. `w` has path, map, size and an arena, which lives as long; a format
 * calls tgi_weights_add for each tensor. */
typedef struct tgi_weights_ops {
    const char *format;
    tgi_fuzzed fuzzed;
    int (*probe)(const uint8_t *head, size_t n);
    tg_status (*open)(tgi_weights *w, tgi_err *err);
    /* n bytes of a record from `from` on; NULL: there are no records */
    tg_status (*unpack)(const tgi_weights *w, int64_t record, uint64_t from, void *dst,
                        size_t n, tgi_err *err);
    void (*close)(tgi_weights *w); /* what `state` is; NULL: nothing */
} tgi_weights_ops;

extern const tgi_weights_ops tgi_pth_ops, tgi_pth_legacy_ops, tgi_safetensors_ops;

struct tgi_weights {
    const tgi_weights_ops *ops;
    tgi_rfile file;
    const uint8_t *map;
    size_t size;
    char *path;
    tgi_onnx_arena arena;
    int n, cap;
    tgi_weight *at;
    tgi_weight_place *place;
    int *by_name; /* sorted */
    void *state;  /* the format's */
    uint64_t
        stored_bytes; /* of what is unpacked: tensors are no larger than some times what the file holds */
};

#define TGI_WEIGHTS_MAX 65536 /* tensors of a file */
#define TGI_WEIGHTS_NAME 512  /* bytes of a name */

/* One more tensor, whose `name` is copied. Of `place` all is set but span and dense. TG_E_FORMAT where it is larger than its
 * room, or the room lies outside of the file. */
tg_status tgi_weights_add(tgi_weights *w, const char *name, size_t n_name, const tgi_desc *desc,
                          const tgi_weight_place *place, tgi_err *err);

#endif
