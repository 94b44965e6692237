/* onnx.h - the ONNX file as plain structs: untrusted bytes stop here.
 *
 * Our own bounded protobuf wire reader: depth, counts and sizes are capped before anything is
 * allocated; raw tensor data are views of the mapping. External data files must lie inside the
 * model's folder: no "..", no absolute path, no symbolic or hard link, regular files only. */
#ifndef TGI_ONNX_H
#define TGI_ONNX_H

#include "engine/base/attrs.h"
#include "engine/base/held.h"
#include "engine/base/status.h"
#include "engine/base/tensor.h"

typedef struct tgi_onnx_tensor {
    const char *name; /* NUL-terminated copy */
    tgi_desc desc;
    const void *data; /* little-endian elements, dense; view of the mapping or decoded copy */
    size_t bytes;
} tgi_onnx_tensor;

typedef enum tgi_onnx_attr_kind {
    TGI_ONNX_INT = 2,
    TGI_ONNX_FLOAT = 1,
    TGI_ONNX_STRING = 3,
    TGI_ONNX_TENSOR = 4,
    TGI_ONNX_GRAPH = 5,
    TGI_ONNX_FLOATS = 6,
    TGI_ONNX_INTS = 7,
    TGI_ONNX_STRINGS = 8,
    TGI_ONNX_OTHER = 99
} tgi_onnx_attr_kind;

struct tgi_onnx_graph;

typedef struct tgi_onnx_attr {
    const char *name;
    tgi_onnx_attr_kind kind;
    int64_t i;
    float f;
    const char *s; /* STRING */
    const tgi_onnx_tensor *t;
    const struct tgi_onnx_graph *g;
    size_t n; /* elements of ints / floats */
    const int64_t *ints;
    const float *floats;
} tgi_onnx_attr;

typedef struct tgi_onnx_node {
    const char *name, *op_type, *domain;
    int n_in, n_out, n_attr;
    const char **in, **out; /* "" where not given */
    tgi_onnx_attr *attr;
} tgi_onnx_node;

typedef struct tgi_onnx_port {
    const char *name;
    tg_dtype dtype;
    int rank;                         /* -1: no shape given */
    int64_t dim[TGI_MAX_RANK];        /* -1: symbolic or unknown */
    const char *symbol[TGI_MAX_RANK]; /* dim_param or NULL */
} tgi_onnx_port;

typedef struct tgi_onnx_graph {
    const char *name;
    int n_node, n_init, n_in, n_out, n_info;
    tgi_onnx_node *node;
    tgi_onnx_tensor *init;
    tgi_onnx_port *in, *out, *info;
} tgi_onnx_graph;

typedef struct tgi_onnx_model {
    int64_t ir_version;
    int64_t opset; /* of the default domain */
    const char *producer;
    tgi_onnx_graph graph;
    uint64_t file_bytes;
    void *priv_; /* mappings and the arena of all strings and arrays */
} tgi_onnx_model;

/* Returned; close with tgi_onnx_close. TG_E_NOT_FOUND, TG_E_FORMAT, TG_E_UNSUPPORTED (element
 * types, functions, foreign domains), TG_E_NOMEM. Uses less than a fixed multiple of the file.
 */
tg_status tgi_onnx_open(const char *path, tgi_onnx_model **out, tgi_err *err);
/* The same of a record of a ZIP archive, whose name is the model's path from then on; external data refused. `sha256` is ""
 * or what the record's bytes must have. A record that is packed is unpacked into memory. */
tg_status tgi_onnx_open_record(const char *archive, const char *record, const char *sha256,
                               tgi_onnx_model **out, tgi_err *err);
/* Parse bytes in memory (fuzzing); external data refused. `bytes` borrowed for the life. */
tg_status tgi_onnx_parse(const void *bytes, size_t n, tgi_onnx_model **out, tgi_err *err);
/* The i-th file of external data, as the model spells it, below its folder; NULL: no more. */
const char *tgi_onnx_file(const tgi_onnx_model *m, int i);
/* The file that it was read from: an archive's, where it is a record of one. NULL: bytes in memory. */
const char *tgi_onnx_path(const tgi_onnx_model *m);
/* Its files as they were opened: those of external data, the model itself last. 0: no more. */
typedef struct tgi_onnx_part {
    const char *location; /* NULL: the model itself */
    tgi_stamp was;
    uint64_t sum; /* of all bytes (tgi_fnv), when tgi_onnx_sum was called; else 0 */
} tgi_onnx_part;
int tgi_onnx_part_at(const tgi_onnx_model *m, int i, tgi_onnx_part *out);
/* Read all bytes once, for their sums. */
void tgi_onnx_sum(const tgi_onnx_model *m);
/* TG_E_FORMAT when one of its files is another one than when it was opened, in size or time of
 * change; where there is a sum, and only the time differs, in the bytes. Weights are views of
 * the files: ask behind reading them. */
tg_status tgi_onnx_unchanged(const tgi_onnx_model *m, tgi_err *err);
void tgi_onnx_close(tgi_onnx_model **m);

#endif
