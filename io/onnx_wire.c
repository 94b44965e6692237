/* onnx_wire.c - bounded protobuf cursor and arena; see the header for the format. */
#include "io/onnx_wire.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"

#include <string.h>

#define CHUNK_BYTES ((size_t)32 << 10)

typedef struct tgi_onnx_chunk {
    struct tgi_onnx_chunk *next;
    _Alignas(16) unsigned char data[];
} tgi_onnx_chunk;

int tgi_wire_varint(tgi_wire *w, uint64_t *out)
{
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 70 && w->p < w->end; shift += 7) {
        const uint8_t b = *w->p++;
        if (shift == 63 && b > 1)
            return 0; /* more than 64 bits */
        v |= (uint64_t)(b & 0x7f) << shift;
        if (!(b & 0x80)) {
            *out = v;
            return 1;
        }
    }
    return 0;
}

/* `n` little-endian bytes as a number. */
static int fixed(tgi_wire *w, size_t n, uint64_t *out)
{
    if ((size_t)(w->end - w->p) < n)
        return 0;
    uint64_t v = 0;
    for (size_t i = 0; i < n; i++)
        v |= (uint64_t)w->p[i] << (8 * i);
    w->p += n;
    *out = v;
    return 1;
}

int tgi_wire_next(tgi_wire *w, tgi_field *out)
{
    uint64_t key;
    if (w->p >= w->end)
        return 0;
    if (!tgi_wire_varint(w, &key) || key >> 3 == 0 || key >> 3 > 536870911)
        return -1;
    *out = (tgi_field){.num = (uint32_t)(key >> 3), .type = (int)(key & 7)};
    switch (out->type) {
    case TGI_WIRE_VARINT:
        return tgi_wire_varint(w, &out->v) ? 1 : -1;
    case TGI_WIRE_64:
        return fixed(w, 8, &out->v) ? 1 : -1;
    case TGI_WIRE_32:
        return fixed(w, 4, &out->v) ? 1 : -1;
    case TGI_WIRE_BYTES:
        if (!tgi_wire_varint(w, &out->v) || out->v > (uint64_t)(w->end - w->p))
            return -1;
        out->p = w->p;
        out->n = (size_t)out->v;
        w->p += out->n;
        return 1;
    default:
        return -1;
    }
}

int64_t tgi_wire_count(tgi_wire w, uint32_t num)
{
    tgi_field f;
    int64_t n = 0;
    int r;
    while ((r = tgi_wire_next(&w, &f)) > 0)
        n += f.num == num;
    return r < 0 ? -1 : n;
}

void *tgi_onnx_alloc(tgi_onnx_arena *a, size_t n, size_t size, tgi_err *err)
{
    size_t bytes = tgi_align_size(tgi_sat_mul(n, size), 16);
    if (bytes > a->limit || a->total > a->limit - bytes) {
        tgi_fail(err, TG_E_FORMAT,
                 "the file asks for more than %zu bytes of structure, far beyond its own size",
                 a->limit);
        return NULL;
    }
    if (!a->head || a->cap - a->used < bytes) {
        const size_t cap = bytes > CHUNK_BYTES ? bytes : CHUNK_BYTES;
        tgi_onnx_chunk *c = tgi_malloc(TGI_TAG_GRAPH, sizeof *c + cap);
        if (!c) {
            tgi_fail(err, TG_E_NOMEM, "no memory for %zu bytes of model structure", cap);
            return NULL;
        }
        c->next = a->head;
        a->head = c;
        a->used = 0;
        a->cap = cap;
    }
    void *p = a->head->data + a->used;
    a->used += bytes;
    a->total += bytes;
    memset(p, 0, bytes);
    return p;
}

const char *tgi_onnx_text(tgi_onnx_arena *a, const tgi_field *f, tgi_err *err)
{
    if (f->type != TGI_WIRE_BYTES || (f->n && memchr(f->p, 0, f->n))) {
        tgi_fail(err, TG_E_FORMAT, "a name in the model is not text");
        return NULL;
    }
    char *s = tgi_onnx_alloc(a, f->n + 1, 1, err);
    if (s && f->n)
        memcpy(s, f->p, f->n);
    return s;
}

void tgi_onnx_arena_free(tgi_onnx_arena *a)
{
    while (a->head) {
        tgi_onnx_chunk *c = a->head;
        a->head = c->next;
        tgi_free(c);
    }
    *a = (tgi_onnx_arena){.limit = a->limit};
}
