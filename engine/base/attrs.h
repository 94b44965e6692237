/* attrs.h - operator attributes as data: one row per attribute says its name, where it lives in
 * the op's attribute struct, its type, default and legal range. The importer fills structs from
 * these rows; no op reads attributes by name at run time. */
#ifndef TGI_ATTRS_H
#define TGI_ATTRS_H

#include "engine/base/status.h"

#include <stddef.h>
#include <stdint.h>

#define TGI_ATTR_MAX_INTS 16
#define TGI_ATTR_TEXT 128 /* bytes of a text, with its end */

/* An integer list; n < 0 means "not given". */
typedef struct tgi_ints {
    int n;
    int64_t v[TGI_ATTR_MAX_INTS];
} tgi_ints;

/* A float list (old Upsample scales and the like); n < 0 means "not given". */
typedef struct tgi_floats {
    int n;
    float v[TGI_ATTR_MAX_INTS];
} tgi_floats;

typedef enum tgi_attr_type {
    TGI_ATTR_INT,    /* int64_t */
    TGI_ATTR_FLOAT,  /* float */
    TGI_ATTR_INTS,   /* tgi_ints */
    TGI_ATTR_FLOATS, /* tgi_floats */
    TGI_ATTR_ENUM,   /* int: index into `choices` */
    TGI_ATTR_STRING, /* char[TGI_ATTR_TEXT]; default: empty */
    TGI_ATTR_IGNORED /* accepted and without meaning for inference */
} tgi_attr_type;

typedef struct tgi_attr {
    const char *name; /* ONNX spelling; the list ends with NULL */
    tgi_attr_type type;
    size_t offset;              /* in the op's attribute struct */
    double def, min, max;       /* INT, FLOAT, ENUM: default and range (min == max: no range) */
    const char *const *choices; /* ENUM: NULL-terminated */
    const char *help;
} tgi_attr;

/* Fill `blob` with the defaults of `rows` (NULL rows: nothing). */
void tgi_attrs_default(const tgi_attr *rows, void *blob);

#endif
