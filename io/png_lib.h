/* png_lib.h - libpng in memory of ours.
 *
 * libpng asks for memory while it works and jumps out of errors. Here it gets its memory from a
 * block whose size is known before the first row (`arena`), and every jump lands in
 * tgi_png_step: a step is a function that returns nothing, holds nothing and calls libpng.
 *
 * Damage: libpng goes on over some of it with a warning. Warnings that may mean other pixels
 * than were written set `damaged`; who reads asks for it.
 *
 * Source: libpng-manual.txt; png.h of 1.6. */
#ifndef TGI_PNG_LIB_H
#define TGI_PNG_LIB_H

#include "engine/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <png.h>
#include <setjmp.h>

typedef struct tgi_png {
    png_structp z; /* NULL: not begun */
    png_infop info;
    uint8_t *arena; /* aligned to 64, borrowed; NULL: each piece is allocated by itself */
    size_t cap;     /* of the arena, or of all pieces together */
    size_t used;    /* of it */
    uint8_t *last;  /* the piece taken last, which can be given back */
    size_t most;    /* ever used */
    size_t lacked;  /* what cap would have had to be, at least, when it first was not enough */
    bool starved;   /* it was not */
    bool refused;   /* the system had no memory */
    bool damaged;   /* by a warning */
    char text[128]; /* of the first such warning, else of the error */
    jmp_buf escape;
} tgi_png;

/* Begin anew: what was begun before is forgotten. False: it did not get its first memory. */
bool tgi_png_begin(tgi_png *p, bool writes);
/* Give everything back. */
void tgi_png_end(tgi_png *p);
/* Run a step; false: libpng gave up in it, p->text says why. */
bool tgi_png_step(tgi_png *p, void (*step)(void *), void *arg);
/* What a step that failed, or a warning, means: never TG_OK. */
tg_status tgi_png_failed(const tgi_png *p, tgi_err *err);

/* ---- Reading ---- */

/* What the header's chunks take beside a profile; in an arena, what is not rows. */
#define TGI_PNG_READ_BESIDE ((size_t)72 << 10)
/* The arena for reading rows of `width` pixels of that PNG colour type and depth. */
size_t tgi_png_read_bytes(size_t width, int colour, int bits);
/* Both in a step, after png_set_read_fn. To the first pixel; `all`: with pHYs and iCCP, which
 * is as large as it says. No other chunk is kept that is not about pixels,
 * each checksum counts. */
void tgi_png_read_header(tgi_png *p, bool all);
/* From now on png_read_row makes indices of a palette a byte each, grey of few bits 8 bits, 16
 * bits in the machine's order. All rows, seven times where interlaced. */
void tgi_png_start_rows(tgi_png *p);

/* ---- Writing ---- */

/* The arena for writing rows of so many bytes, and a profile (0: none). */
size_t tgi_png_write_bytes(size_t row, size_t profile);
/* In a step, after png_set_write_fn: what is to be known before anything is said of the
 * picture. Level 6; every row is filtered by the one above, which costs little and halves smooth
 * pictures. */
void tgi_png_start_writing(tgi_png *p, uint32_t width, uint32_t height, int colour, int bits);

#endif
