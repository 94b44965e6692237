/* tiff_lib.h - libtiff over bytes of ours.
 *
 * libtiff wants a file with a directory, so we make one up. Its directory has one strip and
 * says what our own index found. The bytes of one block stand behind it. Parts of old JPEG lie
 * anywhere in a file: there the directory stands behind the bytes of the whole file, and those
 * are read when libtiff asks for them. libtiff opens no file, prints nothing, and asks for no
 * more memory at once than it was allowed.
 *
 * Source: TIFFOpen(3), TIFFOpenOptions(3) of libtiff 4.5, where a handle got messages and a
 * limit of its own. */
#ifndef TGI_TIFF_LIB_H
#define TGI_TIFF_LIB_H

#include "io/tiff_codec.h"

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
    const tgi_rfile *file; /* or NULL; borrowed */
    uint64_t base;         /* where the directory begins: the size of the file, or 0 */
    uint64_t left;         /* bytes of the file that may still be read */
    uint64_t at;           /* where libtiff reads */
    tg_status disk;        /* TG_OK unless the file could not be read */
    bool warned;           /* libtiff doubted something, */
    bool jpeg_warned;      /* or libjpeg did */
    char said[200];        /* its first error, or libjpeg's first doubt, or "" */
} tgi_tiff_lib;

/* Begin a file of one block, `n` bytes, which are borrowed until the file is closed. */
void tgi_tiff_lib_begin(tgi_tiff_lib *f, const uint8_t *block, size_t n, bool big_endian);
/* Begin a file that has all bytes of `file` in front, and `n` bytes of ours behind the
 * directory. At most `most` bytes of `file` are read. All are borrowed. The directory is in
 * this machine's order of bytes: in the other, libtiff 4.5 miscounts the strips of old JPEG. */
void tgi_tiff_lib_begin_file(tgi_tiff_lib *f, const tgi_rfile *file, uint64_t most,
                             const void *block, size_t n);
/* Add a tag of 32 bits whose values lie `at` bytes behind the end of the directory. */
void tgi_tiff_lib_behind(tgi_tiff_lib *f, uint16_t tag, const uint32_t *values, size_t n,
                         size_t at);
/* Add a tag of `n` values, of 16 or of 32 bits. Tags must be added in order. */
void tgi_tiff_lib_short(tgi_tiff_lib *f, uint16_t tag, const uint16_t *values, size_t n);
void tgi_tiff_lib_long(tgi_tiff_lib *f, uint16_t tag, const uint32_t *values, size_t n);
void tgi_tiff_lib_one(tgi_tiff_lib *f, uint16_t tag, uint32_t value);
/* Add the tag that tells libtiff where the block lies. */
void tgi_tiff_lib_place(tgi_tiff_lib *f);
/* Open it; no allocation is larger than `most` bytes. NULL: `said` has why. */
TIFF *tgi_tiff_lib_open(tgi_tiff_lib *f, size_t most);

#endif
