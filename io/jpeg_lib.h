/* jpeg_lib.h - libjpeg in memory of ours.
 *
 * libjpeg asks for memory while it decodes, and its errors end the process by default. Here it
 * has one block that the caller gave (jpeg_lib.c is its memory manager), so what it may take is
 * known before the first byte is looked at, and an error jumps back to TGI_JPEG_TRY.
 *
 * Damage: libjpeg goes on over damaged data with a warning and grey pixels. The warnings that
 * mean lost or invented pixels set `damaged`; who decodes asks for it. libjpeg-turbo leaves out the
 * warning of a code that is none where it sees enough bytes at once to decode without looking for
 * their end: so it is never shown as many (TGI_JPEG_CAREFUL).
 *
 * Source: libjpeg.txt, "Memory management" and "Error handling"; jpeglib.h. */
#ifndef TGI_JPEG_LIB_H
#define TGI_JPEG_LIB_H

#include "engine/base/status.h"

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h> /* jpeglib.h wants FILE */

#include <jpeglib.h>

/* libjpeg's own small allocations at create, beside the block. */
#define TGI_JPEG_OUTSIDE ((size_t)8192)

typedef struct tgi_jpeg {
    struct jpeg_error_mgr errors;
    struct jpeg_memory_mgr memory;
    struct jpeg_memory_mgr *theirs; /* what create made, given back before destroy */
    jmp_buf escape;
    uint8_t *block;
    size_t cap;
    size_t low;   /* permanent objects (tables) grow from the start */
    size_t high;  /* those of one image from the end */
    size_t most;  /* ever taken */
    bool starved; /* the error is that the block is too small */
    bool damaged;
    char text[JMSG_LENGTH_MAX]; /* of the error or the damage */
} tgi_jpeg;

/* Called once: j->errors becomes info->err, before jpeg_create_*. */
void tgi_jpeg_errors(tgi_jpeg *j, j_common_ptr info);
/* After jpeg_create_* (or after tgi_jpeg_reset, for another block): memory from `block`
 * (64-byte aligned, stays the caller's) from now on. info->client_data becomes j. */
void tgi_jpeg_memory(tgi_jpeg *j, j_common_ptr info, void *block, size_t cap);
/* Forget the image and the tables. */
void tgi_jpeg_reset(tgi_jpeg *j, j_common_ptr info);
/* All scans were read (jpeg_start_decompress of a file of several has returned): what none of them
 * brought is damage, of which libjpeg says nothing. */
void tgi_jpeg_check_scans(tgi_jpeg *j, const struct jpeg_decompress_struct *z);
/* jpeg_destroy. */
void tgi_jpeg_destroy(tgi_jpeg *j, j_common_ptr info);

/* 0 at first; not 0 when libjpeg gave up, with j->text. Nothing may be live across it in the
 * calling function but what does not change. */
#define TGI_JPEG_TRY(j) setjmp((j)->escape)

/* Bytes that libjpeg may see at once while it reads rows, so that it tells of codes that are none: of
 * one block, which is always enough to go on with where the source gives more at any time, times the
 * blocks that it decodes together where it has to see all of them. No block has as many, but where
 * 0xff fills. */
#define TGI_JPEG_CAREFUL ((size_t)DCTSIZE2 * 8 - 1)

/* Room for decoding rows of an image of `width` pixels in one scan of sequential JPEG.
 * Measured: 17 KiB and 8 (grey) to 56 (4:4:0 with four rows) bytes a pixel; 34 for the usual
 * 4:2:0. Four components with strange sampling may take more and are then refused. */
size_t tgi_jpeg_rows_bytes(size_t width);

#endif
