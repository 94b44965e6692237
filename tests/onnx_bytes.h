/* onnx_bytes.h - writes ONNX files byte by byte, good and bad ones, for tests: a protobuf
 * message is a buffer, a field is appended to it, a sub-message is another buffer appended as
 * bytes. */
#ifndef TG_ONNX_BYTES_H
#define TG_ONNX_BYTES_H

#include "engine/base/mem.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct bytes {
    uint8_t *p;
    size_t n, cap;
} bytes;

static inline void b_raw(bytes *b, const void *p, size_t n)
{
    if (b->n + n > b->cap) {
        b->cap = 2 * (b->n + n) + 64;
        b->p = tgi_realloc_n(TGI_TAG_MISC, b->p, b->cap, 1);
        if (!b->p)
            abort();
    }
    if (n)
        memcpy(b->p + b->n, p, n);
    b->n += n;
}
static inline void b_var(bytes *b, uint64_t v)
{
    do {
        const uint8_t c = (uint8_t)((v & 0x7f) | (v > 0x7f ? 0x80 : 0));
        b_raw(b, &c, 1);
        v >>= 7;
    } while (v);
}
static inline void b_int(bytes *b, unsigned field, int64_t v)
{
    b_var(b, field << 3);
    b_var(b, (uint64_t)v);
}
static inline void b_blob(bytes *b, unsigned field, const void *p, size_t n)
{
    b_var(b, field << 3 | 2);
    b_var(b, n);
    b_raw(b, p, n);
}
static inline void b_str(bytes *b, unsigned field, const char *s)
{
    b_blob(b, field, s, strlen(s));
}
/* Append `m` as a sub-message and release it. */
static inline void b_msg(bytes *b, unsigned field, bytes *m)
{
    b_blob(b, field, m->p, m->n);
    tgi_free(m->p);
    *m = (bytes){0};
}
static inline void b_free(bytes *b)
{
    tgi_free(b->p);
    *b = (bytes){0};
}

/* ValueInfoProto of a type (1 float, 7 int64, 9 bool) with `rank` extents (0: left open). */
static inline void b_port_of(bytes *graph, unsigned field, const char *name, int type_code,
                             int rank, const int64_t *dim)
{
    bytes v = {0}, type = {0}, tensor = {0}, shape = {0};
    for (int i = 0; i < rank; i++) {
        bytes d = {0};
        if (dim[i])
            b_int(&d, 1, dim[i]);
        else
            b_str(&d, 2, "n");
        b_msg(&shape, 1, &d);
    }
    b_int(&tensor, 1, type_code);
    b_msg(&tensor, 2, &shape);
    b_msg(&type, 1, &tensor);
    b_str(&v, 1, name);
    b_msg(&v, 2, &type);
    b_msg(graph, field, &v);
}
static inline void b_port(bytes *graph, unsigned field, const char *name, int rank,
                          const int64_t *dim)
{
    b_port_of(graph, field, name, 1, rank, dim);
}

/* TensorProto head: dims and type (1 float, 7 int64); the caller adds data and appends it. */
static inline bytes b_tensor(const char *name, int type, int rank, const int64_t *dim)
{
    bytes t = {0};
    for (int i = 0; i < rank; i++)
        b_int(&t, 1, dim[i]);
    b_int(&t, 2, type);
    b_str(&t, 8, name);
    return t;
}

/* An initializer with raw data. */
static inline void b_init(bytes *graph, const char *name, int type, int rank,
                          const int64_t *dim, const void *data, size_t n)
{
    bytes t = b_tensor(name, type, rank, dim);
    b_blob(&t, 9, data, n);
    b_msg(graph, 5, &t);
}

/* A node of up to six inputs (NULL ends) and one output; `attr` (may be NULL) is appended. */
static inline void b_node(bytes *graph, const char *op, const char *const *in, const char *out,
                          bytes *attr)
{
    bytes n = {0};
    for (int i = 0; in[i]; i++)
        b_str(&n, 1, in[i]);
    b_str(&n, 2, out);
    b_str(&n, 4, op);
    if (attr)
        b_raw(&n, attr->p, attr->n);
    if (attr)
        b_free(attr);
    b_msg(graph, 1, &n);
}
/* AttributeProto of ints, appended to a node's attribute buffer. */
static inline void b_attr_ints(bytes *attrs, const char *name, int n, const int64_t *v)
{
    bytes a = {0};
    b_str(&a, 1, name);
    for (int i = 0; i < n; i++)
        b_int(&a, 8, v[i]);
    b_int(&a, 20, 7);
    b_msg(attrs, 5, &a);
}

/* AttributeProto of a text. */
static inline void b_attr_text(bytes *attrs, const char *name, const char *text)
{
    bytes a = {0};
    b_str(&a, 1, name);
    b_str(&a, 4, text);
    b_int(&a, 20, 3);
    b_msg(attrs, 5, &a);
}

/* ModelProto around a graph (released): IR 8, the given operator set. */
static inline bytes b_model(bytes *graph, int opset)
{
    bytes m = {0}, o = {0};
    b_int(&m, 1, 8);
    b_int(&o, 2, opset);
    b_msg(&m, 8, &o);
    b_msg(&m, 7, graph);
    return m;
}

#endif
