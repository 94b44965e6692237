/* tiff_lib.h - libtiff over bytes of ours.
 *
 * libtiff wants a file with a directory. What it gets is a made-up one: a directory of one
 * strip that says what our own index found out, and behind it the bytes of one block. It opens
 * no file, prints nothing, and asks for no more memory at once than it was allowed.
 *
 * Source: TIFFOpen(3), TIFFOpenOptions(3) of libtiff 4.5, where a handle got messages and a
 * limit of its own. */
#ifndef TGI_TIFF_LIB_H
#define TGI_TIFF_LIB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tiffio.h>

#define TGI_TIFF_LIB_HEAD 1024 /* bytes of a made-up directory */

/* A made-up file. */
typedef struct tgi_tiff_lib {
    uint8_t head[TGI_TIFF_LIB_HEAD];
    size_t n_head; /* used of it */
    unsigned n_tags;
    bool big_endian;
    const uint8_t *block; /* borrowed */
    size_t n_block;
    uint64_t at;    /* where libtiff reads */
    bool warned;    /* libtiff doubted something */
    char said[200]; /* its first error, or "" */
} tgi_tiff_lib;

/* Begin a file whose one block has `n` bytes; they are borrowed until it is closed. */
void tgi_tiff_lib_begin(tgi_tiff_lib *f, const uint8_t *block, size_t n, bool big_endian);
/* One more tag of `n` values, all of 16 or all of 32 bits; tags must be added in order. */
void tgi_tiff_lib_short(tgi_tiff_lib *f, uint16_t tag, const uint16_t *values, size_t n);
void tgi_tiff_lib_long(tgi_tiff_lib *f, uint16_t tag, const uint32_t *values, size_t n);
/* n fractions, 2n numbers. */
void tgi_tiff_lib_fractions(tgi_tiff_lib *f, uint16_t tag, const uint32_t *values, size_t n);
void tgi_tiff_lib_one(tgi_tiff_lib *f, uint16_t tag, uint32_t value);
/* The place of the block, as libtiff is to see it. */
void tgi_tiff_lib_place(tgi_tiff_lib *f);
/* Open it; no allocation is larger than `most` bytes. NULL: `said` has why. */
TIFF *tgi_tiff_lib_open(tgi_tiff_lib *f, size_t most);

#endif
