/* tiff_lib.c - see tiff_lib.h. The directory has 12-byte entries from byte 10 on, up to
 * MAX_TAGS of them, then the arrays that do not fit an entry, then the block. */
#include "io/tiff_lib.h"

#include "engine/base/arith.h"
#include "io/bytes.h"

#include <stdio.h>
#include <string.h>

#define MAX_TAGS 24u
#define HEADER 8u
#define ENTRIES 10u                            /* header, number of entries */
#define ARRAYS (ENTRIES + 12u * MAX_TAGS + 4u) /* offset of the next directory: 0 */

static void put16(const tgi_tiff_lib *f, uint8_t *p, uint16_t v)
{
    p[f->big_endian] = (uint8_t)v;
    p[!f->big_endian] = (uint8_t)(v >> 8);
}

static void put32(const tgi_tiff_lib *f, uint8_t *p, uint32_t v)
{
    put16(f, p + (f->big_endian ? 2 : 0), (uint16_t)v);
    put16(f, p + (f->big_endian ? 0 : 2), (uint16_t)(v >> 16));
}

static void begin_head(tgi_tiff_lib *f)
{
    memcpy(f->head, f->big_endian ? "MM" : "II", 2);
    put16(f, f->head + 2, 42);
    put32(f, f->head + 4, (uint32_t)f->base + HEADER);
}

void tgi_tiff_lib_begin(tgi_tiff_lib *f, const uint8_t *block, size_t n, bool big_endian)
{
    *f = (tgi_tiff_lib){
        .n_head = ARRAYS, .big_endian = big_endian, .block = block, .n_block = n};
    begin_head(f);
}

void tgi_tiff_lib_begin_file(tgi_tiff_lib *f, const tgi_rfile *file, uint64_t most,
                             const void *block, size_t n)
{
    *f = (tgi_tiff_lib){.n_head = ARRAYS,
                        .big_endian = TGI_HOST_BIG,
                        .block = block,
                        .n_block = n,
                        .file = file,
                        .base = file->size,
                        .left = most};
    begin_head(f);
}

/* Where `count` values of a new tag go. */
static uint8_t *room_for(tgi_tiff_lib *f, uint16_t tag, uint16_t type, size_t count,
                         size_t size)
{
    uint8_t *e = f->head + ENTRIES + 12u * f->n_tags++;
    put16(f, e, tag);
    put16(f, e + 2, type);
    put32(f, e + 4, (uint32_t)count);
    put16(f, f->head + HEADER, (uint16_t)f->n_tags);
    if (count * size <= 4)
        return e + 8;
    uint8_t *array = f->head + f->n_head;
    put32(f, e + 8, (uint32_t)f->base + (uint32_t)f->n_head);
    f->n_head += count * size;
    return array;
}

void tgi_tiff_lib_short(tgi_tiff_lib *f, uint16_t tag, const uint16_t *values, size_t n)
{
    uint8_t *at = room_for(f, tag, 3, n, 2);
    for (size_t i = 0; i < n; i++)
        put16(f, at + 2 * i, values[i]);
}

void tgi_tiff_lib_long(tgi_tiff_lib *f, uint16_t tag, const uint32_t *values, size_t n)
{
    uint8_t *at = room_for(f, tag, 4, n, 4);
    for (size_t i = 0; i < n; i++)
        put32(f, at + 4 * i, values[i]);
}

void tgi_tiff_lib_one(tgi_tiff_lib *f, uint16_t tag, uint32_t value)
{
    const uint16_t value16 = (uint16_t)value;
    if (value <= UINT16_MAX)
        tgi_tiff_lib_short(f, tag, &value16, 1);
    else
        tgi_tiff_lib_long(f, tag, &value, 1);
}

void tgi_tiff_lib_place(tgi_tiff_lib *f)
{
    const uint32_t at = TGI_TIFF_LIB_HEAD;
    tgi_tiff_lib_long(f, TIFFTAG_STRIPOFFSETS, &at, 1);
}

void tgi_tiff_lib_behind(tgi_tiff_lib *f, uint16_t tag, const uint32_t *values, size_t n,
                         size_t at)
{
    if (n == 1) {
        tgi_tiff_lib_long(f, tag, values, 1);
        return;
    }
    uint8_t *e = f->head + ENTRIES + 12u * f->n_tags++;
    put16(f, e, tag);
    put16(f, e + 2, 4);
    put32(f, e + 4, (uint32_t)n);
    put32(f, e + 8, (uint32_t)(f->base + TGI_TIFF_LIB_HEAD + at));
    put16(f, f->head + HEADER, (uint16_t)f->n_tags);
}

/* ---- What libtiff calls ---- */

/* At most n bytes of the file itself. */
static size_t from_file(tgi_tiff_lib *f, uint8_t *dst, size_t n)
{
    tgi_err err = {0};
    n = tgi_min(n, tgi_min(f->base - f->at, f->left));
    f->left -= n;
    const tg_status st = n ? tgi_rfile_read(f->file, f->at, dst, n, &err) : TG_OK;
    if (st == TG_OK)
        return n;
    if (!f->said[0])
        snprintf(f->said, sizeof f->said, "%.*s", (int)sizeof f->said - 1, err.text);
    f->disk = st;
    return 0;
}

/* The header, the rest of the file, the directory, filled up with zeros, and the block behind
 * it are one file. */
static tmsize_t on_read(thandle_t client, void *buf, tmsize_t n)
{
    tgi_tiff_lib *f = client;
    uint8_t *dst = buf;
    size_t left = n > 0 ? (size_t)n : 0, done = 0;
    while (left) {
        size_t part;
        if (f->at >= HEADER && f->at < f->base) {
            part = from_file(f, dst + done, left);
        } else {
            const bool first = f->at < HEADER;
            const uint64_t at = first ? f->at : f->at - f->base;
            const bool in_head = at < TGI_TIFF_LIB_HEAD;
            const uint64_t from = in_head ? at : at - TGI_TIFF_LIB_HEAD;
            const uint64_t end = first ? HEADER : in_head ? TGI_TIFF_LIB_HEAD : f->n_block;
            part = from < end ? tgi_min(left, end - from) : 0;
            if (part)
                memcpy(dst + done, (in_head ? f->head : f->block) + from, part);
        }
        if (!part)
            break;
        f->at += part;
        done += part;
        left -= part;
    }
    return (tmsize_t)done;
}

static tmsize_t on_write(thandle_t client, void *buf, tmsize_t n)
{
    (void)client, (void)buf, (void)n;
    return -1;
}

static toff_t on_size(thandle_t client)
{
    const tgi_tiff_lib *f = client;
    return f->base + TGI_TIFF_LIB_HEAD + (toff_t)f->n_block;
}

static toff_t on_seek(thandle_t client, toff_t to, int whence)
{
    tgi_tiff_lib *f = client;
    f->at = whence == SEEK_SET ? to : whence == SEEK_CUR ? f->at + to : on_size(client) + to;
    return f->at;
}

static int on_close(thandle_t client)
{
    (void)client;
    return 0;
}

static int on_error(TIFF *t, void *user, const char *module, const char *fmt, va_list ap)
    TGI_PRINTF(4, 0);

static int on_error(TIFF *t, void *user, const char *module, const char *fmt, va_list ap)
{
    tgi_tiff_lib *f = user;
    (void)t, (void)module;
    if (!f->said[0])
        vsnprintf(f->said, sizeof f->said, fmt, ap);
    return 1; /* nobody else is told */
}

static int on_warning(TIFF *t, void *user, const char *module, const char *fmt, va_list ap)
{
    tgi_tiff_lib *f = user;
    f->warned = true;
    if (strcmp(module, "LibJpeg") != 0)
        return 1;
    f->jpeg_warned = true;
    return on_error(t, user, module, fmt, ap);
}

TIFF *tgi_tiff_lib_open(tgi_tiff_lib *f, size_t most)
{
    TIFFOpenOptions *o = TIFFOpenOptionsAlloc();
    if (!o) {
        snprintf(f->said, sizeof f->said, "no memory");
        return NULL;
    }
    TIFFOpenOptionsSetMaxSingleMemAlloc(o, most < TIFF_TMSIZE_T_MAX ? (tmsize_t)most
                                                                    : TIFF_TMSIZE_T_MAX);
    TIFFOpenOptionsSetErrorHandlerExtR(o, on_error, f);
    TIFFOpenOptionsSetWarningHandlerExtR(o, on_warning, f);
    TIFF *t = TIFFClientOpenExt("block", "rmc", f, on_read, on_write, on_seek, on_close,
                                on_size, NULL, NULL, o);
    TIFFOpenOptionsFree(o);
    return t;
}
