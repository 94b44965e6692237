/* onnx.h - the ONNX file as plain structs: untrusted bytes stop here.
 *
 * Our own bounded protobuf wire reader: depth, counts and sizes are capped before anything is
 * allocated; raw tensor data are views of the mapping. External data files must lie inside the
 * model's folder: no "..", no absolute path, no symbolic or hard link, regular files only. */
#ifndef TG_ONNX_H
#define TG_ONNX_H

#include "engine/base/attrs.h"
#include "engine/base/held.h"
#include "engine/base/status.h"
#include "engine/base/tensor.h"

typedef struct tg_onnx_tensor {
    const char *name; /* NUL-terminated copy */
    tg_desc desc;
    const void *data; /* little-endian elements, dense; view of the mapping or decoded copy */
    size_t bytes;
} tg_onnx_tensor;

typedef enum tg_onnx_attr_kind {
    TG_ONNX_INT = 2,
    TG_ONNX_FLOAT = 1,
    TG_ONNX_STRING = 3,
    TG_ONNX_TENSOR = 4,
    TG_ONNX_GRAPH = 5,
    TG_ONNX_FLOATS = 6,
    TG_ONNX_INTS = 7,
    TG_ONNX_STRINGS = 8,
    TG_ONNX_OTHER = 99
} tg_onnx_attr_kind;

struct tg_onnx_graph;

typedef struct tg_onnx_attr {
    const char *name;
    tg_onnx_attr_kind kind;
    int64_t i;
    float f;
    const char *s; /* STRING */
    const tg_onnx_tensor *t;
    const struct tg_onnx_graph *g;
    size_t n; /* elements of ints / floats */
    const int64_t *ints;
    const float *floats;
} tg_onnx_attr;

typedef struct tg_onnx_node {
    const char *name, *op_type, *domain;
    int n_in, n_out, n_attr;
    const char **in, **out; /* "" where not given */
    tg_onnx_attr *attr;
} tg_onnx_node;

typedef struct tg_onnx_port {
    const char *name;
    tg_dtype dtype;
    int rank;                        /* -1: no shape given */
    int64_t dim[TG_MAX_RANK];        /* -1: symbolic or unknown */
    const char *symbol[TG_MAX_RANK]; /* dim_param or NULL */
} tg_onnx_port;

typedef struct tg_onnx_graph {
    const char *name;
    int n_node, n_init, n_in, n_out, n_info;
    tg_onnx_node *node;
    tg_onnx_tensor *init;
    tg_onnx_port *in, *out, *info;
} tg_onnx_graph;

typedef struct tg_onnx_model {
    int64_t ir_version;
    int64_t opset; /* of the default domain */
    const char *producer;
    tg_onnx_graph graph;
    uint64_t file_bytes;
    void *priv_; /* mappings and the arena of all strings and arrays */
} tg_onnx_model;

/* Returned; close with tgi_onnx_close. TG_E_NOT_FOUND, TG_E_FORMAT, TG_E_UNSUPPORTED (element
 * types, functions, foreign domains), TG_E_NOMEM. Uses less than a fixed multiple of the file.
 */
tg_status tgi_onnx_open(const char *path, tg_onnx_model **out, tgi_err *err);
/* Parse bytes in memory (fuzzing); external data refused. `bytes` borrowed for the life. */
tg_status tgi_onnx_parse(const void *bytes, size_t n, tg_onnx_model **out, tgi_err *err);
/* The i-th file of external data, as the model spells it, below its folder; NULL: no more. */
const char *tgi_onnx_file(const tg_onnx_model *m, int i);
/* Its files as they were opened: those of external data, the model itself last. 0: no more. */
typedef struct tgi_onnx_part {
    const char *location; /* NULL: the model itself */
    tgi_stamp was;
    uint64_t sum; /* of all bytes (tgi_fnv), when tgi_onnx_sum was called; else 0 */
} tgi_onnx_part;
int tgi_onnx_part_at(const tg_onnx_model *m, int i, tgi_onnx_part *out);
/* Read all bytes once, for their sums. */
void tgi_onnx_sum(const tg_onnx_model *m);
/* TG_E_FORMAT when one of its files is another one than when it was opened, in size or time of
 * change; where there is a sum, and only the time differs, in the bytes. Weights are views of
 * the files: ask behind reading them. */
tg_status tgi_onnx_unchanged(const tg_onnx_model *m, tgi_err *err);
void tgi_onnx_close(tg_onnx_model **m);

#endif
