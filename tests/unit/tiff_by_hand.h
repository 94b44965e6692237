/* tiff_by_hand.h - small TIFF files, tag by tag: classic, little-endian, one strip or tile row
 * per page, no compression. For tags and structures that libtiff would not write. */
#ifndef TG_TIFF_BY_HAND_H
#define TG_TIFF_BY_HAND_H

#include "tests/tg_test.h"

typedef struct hand_tag {
    uint16_t tag, type; /* 1 byte, 2 ASCII, 3 short, 4 long, 5 rational */
    uint32_t count;
    const void *value;
} hand_tag;

typedef struct hand_page {
    int w, h, bits, samples;
    int subfile;       /* NewSubfileType */
    int tiled;         /* one tile of w x h, which are multiples of 16 */
    const char *text;  /* ImageDescription or NULL */
    int sub;           /* 1: a SubIFD of the last page before it that is not */
    int bare;          /* 1: it says nothing of pixels, but where a JPEG lies */
    int photometric;   /* 0: by the samples */
    int more_bits;     /* 1: it has the bits of one sample more than there are, which is 1 */
    uint8_t fill;      /* pixel at (x, y) is fill + x + 3 * y, in every byte */
    hand_tag extra[6]; /* ascending, other tags than those made here */
    int n_extra;
} hand_page;

static inline size_t hand_size(unsigned type)
{
    return type == 3 ? 2 : type == 4 ? 4 : type == 5 ? 8 : 1;
}

typedef struct hand_ifd {
    uint8_t bytes[12 * 40];
    hand_tag tags[40];
    int n;
} hand_ifd;

static inline void hand_add(hand_ifd *d, unsigned tag, unsigned type, uint32_t count,
                            const void *v)
{
    int i = d->n++;
    while (i > 0 && d->tags[i - 1].tag > tag) {
        d->tags[i] = d->tags[i - 1];
        i--;
    }
    d->tags[i] = (hand_tag){(uint16_t)tag, (uint16_t)type, count, v};
}

/* Values behind the directory, which begins at its end; returns its offset. */
static inline uint32_t hand_ifd_write(FILE *f, const hand_ifd *d)
{
    uint32_t value[40] = {0};
    for (int i = 0; i < d->n; i++) {
        const size_t n = hand_size(d->tags[i].type) * d->tags[i].count;
        if (n <= 4) {
            memcpy(&value[i], d->tags[i].value, n);
            continue;
        }
        value[i] = (uint32_t)ftell(f);
        fwrite(d->tags[i].value, 1, n, f);
        if (n % 2)
            fputc(0, f);
    }
    const uint32_t at = (uint32_t)ftell(f);
    const uint16_t n = (uint16_t)d->n;
    fwrite(&n, 2, 1, f);
    for (int i = 0; i < d->n; i++) {
        fwrite(&d->tags[i].tag, 2, 1, f);
        fwrite(&d->tags[i].type, 2, 1, f);
        fwrite(&d->tags[i].count, 4, 1, f);
        fwrite(&value[i], 4, 1, f);
    }
    const uint32_t none = 0;
    fwrite(&none, 4, 1, f);
    return at;
}

static inline uint32_t hand_page_write(FILE *f, const hand_page *p, const uint32_t *subs,
                                       int n_subs)
{
    const uint32_t w = (uint32_t)p->w, h = (uint32_t)p->h, at = (uint32_t)ftell(f);
    const size_t pixel = (size_t)p->bits / 8 * (size_t)p->samples;
    const uint32_t bytes = (uint32_t)(pixel * w * h), subfile = (uint32_t)p->subfile;
    uint16_t bits[8], one = 1, samples = (uint16_t)p->samples, photo = p->samples >= 3 ? 2 : 1;
    hand_ifd d = {.n = 0};
    photo = p->photometric ? (uint16_t)p->photometric : photo;
    if (p->bare) {
        hand_add(&d, 513, 4, 1, &at);
        hand_add(&d, 514, 4, 1, &bytes);
        return hand_ifd_write(f, &d);
    }
    for (uint32_t y = 0; y < h; y++)
        for (uint32_t x = 0; x < w; x++)
            for (size_t b = 0; b < pixel; b++)
                fputc((uint8_t)(p->fill + x + 3 * y), f);
    if (bytes % 2)
        fputc(0, f);
    for (int i = 0; i < 8; i++)
        bits[i] = (uint16_t)p->bits;
    hand_add(&d, 254, 4, 1, &subfile);
    hand_add(&d, 256, 4, 1, &w);
    hand_add(&d, 257, 4, 1, &h);
    bits[samples] = p->more_bits ? 1 : bits[samples];
    hand_add(&d, 258, 3, samples + (uint32_t)p->more_bits, bits);
    hand_add(&d, 259, 3, 1, &one);
    hand_add(&d, 262, 3, 1, &photo);
    hand_add(&d, 277, 3, 1, &samples);
    if (p->text)
        hand_add(&d, 270, 2, (uint32_t)strlen(p->text) + 1, p->text);
    if (!p->tiled)
        hand_add(&d, 278, 4, 1, &h);
    if (p->tiled) {
        hand_add(&d, 322, 4, 1, &w);
        hand_add(&d, 323, 4, 1, &h);
    }
    hand_add(&d, p->tiled ? 324 : 273, 4, 1, &at);
    hand_add(&d, p->tiled ? 325 : 279, 4, 1, &bytes);
    if (n_subs)
        hand_add(&d, 330, 4, (uint32_t)n_subs, subs);
    for (int i = 0; i < p->n_extra; i++)
        hand_add(&d, p->extra[i].tag, p->extra[i].type, p->extra[i].count, p->extra[i].value);
    return hand_ifd_write(f, &d);
}

static inline void hand_tiff(const char *path, const hand_page *p, int n)
{
    FILE *f = fopen(path, "wb+");
    uint32_t next_at = 4, none = 0;
    CHECK(f != NULL);
    if (!f)
        return;
    fwrite("II*\0", 1, 4, f);
    fwrite(&none, 4, 1, f);
    for (int i = 0; i < n; i++) {
        uint32_t subs[8];
        int n_subs = 0;
        while (i + 1 + n_subs < n && p[i + 1 + n_subs].sub) {
            subs[n_subs] = hand_page_write(f, &p[i + 1 + n_subs], NULL, 0);
            n_subs++;
        }
        const uint32_t at = hand_page_write(f, &p[i], subs, n_subs);
        const long end = ftell(f);
        fseek(f, (long)next_at, SEEK_SET);
        fwrite(&at, 4, 1, f);
        fseek(f, end, SEEK_SET);
        next_at = (uint32_t)end - 4;
        i += n_subs;
    }
    fclose(f);
}

#endif
