/* png_maker.h - PNG files of every form: depths, colours, filters, interlaced or not. */
#ifndef TGI_PNG_MAKER_H
#define TGI_PNG_MAKER_H

#include <stddef.h>
#include <stdint.h>

typedef struct pic_bytes {
    uint8_t *p;
    size_t n;
} pic_bytes;

typedef struct png_form {
    uint32_t w, h;
    int bits, colour, interlaced;
    int n_palette, n_alpha;
    uint32_t idat;    /* bytes of data in a chunk at most */
    const char *note; /* a chunk in front of the pixels: its type and data; or NULL */
    size_t note_bytes;
} png_form;

/* Samples of a pixel as stored. */
int png_channels(const png_form *f);

/* Samples at random, or numbers of the palette; free it. */
uint16_t *png_draw(const png_form *f, uint64_t *seed);

/* The file of these samples; free .p. */
pic_bytes png_make(const png_form *f, const uint16_t *v, const uint8_t *palette);

/* Behind what is there: four bytes, and a chunk with its checksum. */
void png_put32(pic_bytes *b, uint32_t v);
void png_chunk(pic_bytes *b, const char *type, const void *data, size_t n);

#endif
