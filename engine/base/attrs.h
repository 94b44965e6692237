/* attrs.h - operator attributes as data: one row per attribute says its name, where it lives in
 * the op's attribute struct, its type, default and legal range. The importer fills structs from
 * these rows; no op reads attributes by name at run time. */
#ifndef TGI_ATTRS_H
#define TGI_ATTRS_H

#include "engine/base/status.h"

#include <stddef.h>
#include <stdint.h>

#define TG_ATTR_MAX_INTS 16
#define TG_ATTR_TEXT 128 /* bytes of a text, with its end */

/* An integer list; n < 0 means "not given". */
typedef struct tg_ints {
    int n;
    int64_t v[TG_ATTR_MAX_INTS];
} tg_ints;

/* A float list (old Upsample scales and the like); n < 0 means "not given". */
typedef struct tg_floats {
    int n;
    float v[TG_ATTR_MAX_INTS];
} tg_floats;

typedef enum tg_attr_type {
    TG_ATTR_INT,    /* int64_t */
    TG_ATTR_FLOAT,  /* float */
    TG_ATTR_INTS,   /* tg_ints */
    TG_ATTR_FLOATS, /* tg_floats */
    TG_ATTR_ENUM,   /* int: index into `choices` */
    TG_ATTR_STRING, /* char[TG_ATTR_TEXT]; default: empty */
    TG_ATTR_IGNORED /* accepted and without meaning for inference */
} tg_attr_type;

typedef struct tg_attr {
    const char *name; /* ONNX spelling; the list ends with NULL */
    tg_attr_type type;
    size_t offset;              /* in the op's attribute struct */
    double def, min, max;       /* INT, FLOAT, ENUM: default and range (min == max: no range) */
    const char *const *choices; /* ENUM: NULL-terminated */
    const char *help;
} tg_attr;

/* Fill `blob` with the defaults of `rows` (NULL rows: nothing). */
void tgi_attrs_default(const tg_attr *rows, void *blob);

#endif
