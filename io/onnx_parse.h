/* onnx_parse.h - what the two halves of the ONNX reader share: onnx.c reads messages,
 * onnx_tensor.c reads element data wherever the file keeps them. */
#ifndef TGI_ONNX_PARSE_H
#define TGI_ONNX_PARSE_H

#include "io/onnx.h"
#include "io/onnx_wire.h"

/* A file mapped for reading; one per model file and per external data file. */
typedef struct tgi_onnx_map {
    struct tgi_onnx_map *next;
    const char *location; /* as the model spells it; NULL for the model itself */
    const uint8_t *data;
    size_t size;
    tgi_stamp was; /* when it was mapped */
    uint64_t sum;  /* of the bytes; said by: */
    int summed;    /* they were then as when they were mapped */
} tgi_onnx_map;

/* The reader's state while it parses, and afterwards what a model must keep. */
typedef struct tgi_onnx_priv {
    tgi_onnx_arena arena;
    tgi_onnx_map *maps;
    size_t n_maps;
    char *path;     /* of the model; NULL: bytes in memory */
    int dir_fd;     /* the model's folder while parsing; -1: external data is refused */
    void *unpacked; /* of a packed record of an archive; or NULL */
    size_t n_items; /* nodes, attributes, tensors, names read so far */
} tgi_onnx_priv;

/* Map the regular file `fd` (closed here). TG_E_FORMAT when empty, TG_E_IO, TG_E_NOMEM. */
tg_status tgi_onnx_map_fd(tgi_onnx_priv *p, int fd, const char *location, tgi_onnx_map **out,
                          tgi_err *err);
void tgi_onnx_unmap_all(tgi_onnx_priv *p);

/* Read a TensorProto. Element bytes must be exactly what dims and type ask for. */
tg_status tgi_onnx_read_tensor(tgi_onnx_priv *p, const tgi_field *f, tgi_onnx_tensor *out,
                               tgi_err *err);

/* ONNX TensorProto.DataType to ours; TG_DTYPE_NONE where we have no such type. */
tg_dtype tgi_onnx_dtype(uint64_t code);

/* Count one more thing read; TG_E_FORMAT past the cap that keeps a file of empty messages from
 * turning into gigabytes of structs. */
tg_status tgi_onnx_more(tgi_onnx_priv *p, size_t n, tgi_err *err);

#endif
