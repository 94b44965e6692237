/* onnx_wire.h - the protobuf wire format, as far as ONNX files use it, and the arena that holds
 * what is read from one file.
 *
 * A message is a run of fields: a varint key (number << 3 | type), then a varint (0), eight
 * bytes (1), a length and that many bytes (2) or four bytes (5). Groups (3, 4) are from the
 * last century and refused. A cursor never leaves its bytes: every length is compared with what
 * remains before it is believed, so nesting cannot read outside its parent.
 *
 * @source protobuf encoding specification; onnx.proto3 for the numbers used in onnx.c. */
#ifndef TGI_ONNX_WIRE_H
#define TGI_ONNX_WIRE_H

#include "engine/base/status.h"

#include <stddef.h>
#include <stdint.h>

enum { TGI_WIRE_VARINT = 0, TGI_WIRE_64 = 1, TGI_WIRE_BYTES = 2, TGI_WIRE_32 = 5 };

typedef struct tgi_wire {
    const uint8_t *p, *end;
} tgi_wire;

typedef struct tgi_field {
    uint32_t num;
    int type;
    uint64_t v;       /* VARINT, 64, 32: the value */
    const uint8_t *p; /* BYTES: the payload, inside the parent */
    size_t n;
} tgi_field;

/* The next varint of at most ten bytes. Returns 0 when it is cut off or too long. */
int tgi_wire_varint(tgi_wire *w, uint64_t *out);

/* The next field. Returns 1, or 0 at the end of the message, or -1 where bytes are malformed.
 */
int tgi_wire_next(tgi_wire *w, tgi_field *out);

/* Cursor over a BYTES field. */
static inline tgi_wire tgi_wire_in(const tgi_field *f)
{
    return (tgi_wire){f->p, f->n ? f->p + f->n : f->p}; /* other types hold no bytes */
}

/* How many fields `num` the message holds, or -1 when it is malformed anywhere. Because this
 * walks the whole message, a loop over a counted message needs no further check. */
int64_t tgi_wire_count(tgi_wire w, uint32_t num);

/* Blocks given out one by one and freed together. `limit` bounds their sum. */
typedef struct tgi_onnx_arena {
    struct tgi_onnx_chunk *head;
    size_t used, cap; /* in the head chunk */
    size_t total, limit;
} tgi_onnx_arena;

/* Zeroed memory for n * size bytes, aligned to 16; NULL with `err` filled (TG_E_NOMEM, or
 * TG_E_FORMAT past the limit). n == 0 gives a valid pointer. */
void *tgi_onnx_alloc(tgi_onnx_arena *a, size_t n, size_t size, tgi_err *err);
/* NUL-terminated copy of a BYTES field; refuses embedded NULs, which could make two names one.
 */
const char *tgi_onnx_text(tgi_onnx_arena *a, const tgi_field *f, tgi_err *err);
void tgi_onnx_arena_free(tgi_onnx_arena *a);

#endif
