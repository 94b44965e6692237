/* old_jpeg_files.h - TIFF files with old JPEG (compression 6), which nothing writes any more:
 * libjpeg's stream, taken apart as such files have it. */
#ifndef TG_OLD_JPEG_FILES_H
#define TG_OLD_JPEG_FILES_H

#include "engine/base/arith.h"
#include "tests/tg_test.h"

#include <jpeglib.h>
#include <tiffio.h>

typedef enum old_flavour {
    OLD_STREAM, /* one whole JPEG stream; the only strip points into it */
    OLD_HEAD,   /* a stream's header, and strips of what it is about */
    OLD_TABLES, /* tables, and strips */
    OLD_FLAVOURS
} old_flavour;

typedef struct old_form {
    uint32_t w, h, rows; /* of a strip: those of a flavour with strips, units of 8 x down */
    int colour;          /* YCbCr, or grey */
    uint16_t across, down;
    old_flavour flavour;
    int big_endian, bigtiff;
    int pages;
    int rgb_tag;    /* the photometric is RGB, which it is not */
    int no_sharing; /* the tag that says how pixels share colours is missing */
    int tiled;      /* tiles one below the other, of w x rows */
    uint32_t crop;  /* the image is that much narrower and lower than its JPEG */
    int silent;     /* the page does not say how many samples it has, nor of how many bits */
} old_form;

#define OLD_STRIPS 8192
#define OLD_WIDTH 60000

/* A file as it grows. */
typedef struct old_file {
    uint8_t *bytes;
    size_t n;
    const old_form *f;
    uint64_t entries[20][4]; /* tag, type, count, value or place */
    int n_entries;
    size_t strip[OLD_STRIPS], strip_n[OLD_STRIPS]; /* where the strips of the last page lie */
    int n_strips;
} old_file;

static inline size_t old_put(old_file *o, const void *p, size_t n)
{
    const size_t at = o->n + o->n % 2;
    o->bytes = realloc(o->bytes, at + n + 1);
    o->bytes[o->n] = 0;
    memcpy(o->bytes + at, p, n);
    o->n = at + n;
    return at;
}

static inline void old_number(const old_file *o, uint8_t *p, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++)
        p[o->f->big_endian ? bytes - 1 - i : i] = (uint8_t)(v >> 8 * i);
}

/* Values of a type of `size` bytes. */
static inline void old_tag(old_file *o, int tag, int type, int size, const size_t *v, int n)
{
    static uint8_t all[OLD_STRIPS * 8];
    const int room = o->f->bigtiff ? 8 : 4;
    uint64_t *e = o->entries[o->n_entries++];
    for (int i = 0; i < n; i++)
        old_number(o, all + i * size, v[i], size);
    e[0] = (uint64_t)tag, e[1] = (uint64_t)type, e[2] = (uint64_t)n;
    if (n * size > room) {
        const size_t at = old_put(o, all, (size_t)(n * size));
        old_number(o, all, at, room);
    }
    memcpy(&e[3], all, 8);
}

static inline void old_short(old_file *o, int tag, size_t a, size_t b, size_t c, int n)
{
    old_tag(o, tag, 3, 2, (const size_t[]){a, b, c}, n);
}

static inline void old_long(old_file *o, int tag, const size_t *v, int n)
{
    old_tag(o, tag, 4, 4, v, n);
}

/* The directory; returns where the next one's place has to be put. */
static inline size_t old_directory(old_file *o, size_t put_at)
{
    const int room = o->f->bigtiff ? 8 : 4, entry = 4 + 2 * room, head = o->f->bigtiff ? 8 : 2;
    const size_t n = (size_t)(head + entry * o->n_entries + room);
    uint8_t *d = calloc(1, n);
    old_number(o, d, (uint64_t)o->n_entries, head);
    for (int i = 0; i < o->n_entries; i++) {
        uint8_t *e = d + head + entry * i;
        old_number(o, e, o->entries[i][0], 2);
        old_number(o, e + 2, o->entries[i][1], 2);
        old_number(o, e + 4, o->entries[i][2], room);
        memcpy(e + 4 + room, &o->entries[i][3], (size_t)room);
    }
    const size_t at = old_put(o, d, n);
    free(d);
    old_number(o, o->bytes + put_at, at, room);
    o->n_entries = 0;
    return at + n - (size_t)room;
}

/* A JPEG stream of pixels drawn at random, smooth ones. */
static inline uint8_t *old_stream(const old_form *f, uint64_t *seed, unsigned long *n,
                                  struct jpeg_compress_struct *c)
{
    static struct jpeg_error_mgr errors;
    uint8_t *out = NULL;
    static uint8_t row[3 * OLD_WIDTH];
    c->err = jpeg_std_error(&errors);
    jpeg_create_compress(c);
    jpeg_mem_dest(c, &out, n);
    c->image_width = f->w;
    c->image_height = f->h;
    c->input_components = f->colour ? 3 : 1;
    c->in_color_space = f->colour ? JCS_YCbCr : JCS_GRAYSCALE;
    jpeg_set_defaults(c);
    c->comp_info[0].h_samp_factor = f->colour ? f->across : 1;
    c->comp_info[0].v_samp_factor = f->colour ? f->down : 1;
    const unsigned wide = 8u * (unsigned)c->comp_info[0].h_samp_factor,
                   high = 8u * (unsigned)c->comp_info[0].v_samp_factor;
    if (f->rows < f->h)
        c->restart_interval = (f->w + wide - 1) / wide * (f->rows / high);
    jpeg_start_compress(c, TRUE);
    const unsigned slope = (unsigned)tg_rand_in(seed, 1, 9);
    for (unsigned y = 0; y < f->h; y++) {
        for (unsigned i = 0; i < f->w * (f->colour ? 3 : 1); i++)
            row[i] = (uint8_t)(slope * i + 3 * y + (tg_rand(seed) >> 60));
        uint8_t *rows = row;
        jpeg_write_scanlines(c, &rows, 1);
    }
    jpeg_finish_compress(c);
    return out;
}

/* Strips of the scan at p, each up to a restart marker or the end. */
static inline void old_strips(old_file *o, const uint8_t *p, size_t n)
{
    o->n_strips = 0;
    for (size_t from = 0, i = 0; i + 1 < n; i++)
        if (p[i] == 0xff && p[i + 1] && p[i + 1] != 0xff) {
            o->strip_n[o->n_strips] = i - from;
            o->strip[o->n_strips++] = old_put(o, p + from, i - from);
            from = i + 2;
        }
}

static inline void old_tables(old_file *o, const struct jpeg_compress_struct *c,
                              size_t at[3][3])
{
    static const int zigzag[64] = {
        0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48,
        41, 34, 27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23,
        30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};
    for (int k = 0; k < (o->f->colour ? 2 : 1); k++) {
        uint8_t quants[64], huff[16 + 256];
        for (int i = 0; i < 64; i++)
            quants[i] = (uint8_t)c->quant_tbl_ptrs[k]->quantval[zigzag[i]];
        at[0][k] = old_put(o, quants, 64);
        for (int ac = 0; ac < 2; ac++) {
            const JHUFF_TBL *t = ac ? c->ac_huff_tbl_ptrs[k] : c->dc_huff_tbl_ptrs[k];
            size_t n = 0;
            for (int i = 1; i <= 16; i++)
                n += t->bits[i];
            memcpy(huff, t->bits + 1, 16);
            memcpy(huff + 16, t->huffval, n);
            at[1 + ac][k] = old_put(o, huff, 16 + n);
        }
    }
    for (int i = 0; i < 3; i++)
        at[i][2] = at[i][1];
}

static inline size_t old_page(old_file *o, uint64_t *seed, size_t put_at)
{
    const old_form *f = o->f;
    const int samples = f->colour ? 3 : 1;
    struct jpeg_compress_struct c;
    unsigned long n = 0;
    size_t tables[3][3] = {{0}}, stream = 0, scan = 2;
    uint8_t *jpeg = old_stream(f, seed, &n, &c);
    while (jpeg[scan + 1] != 0xda)
        scan += 2u + (size_t)(jpeg[scan + 2] << 8 | jpeg[scan + 3]);
    scan += 2u + (size_t)(jpeg[scan + 2] << 8 | jpeg[scan + 3]);
    const size_t head = f->flavour == OLD_STREAM ? n : scan;
    if (f->flavour != OLD_TABLES)
        stream = old_put(o, jpeg, head);
    if (f->flavour == OLD_STREAM)
        o->strip[0] = stream + scan, o->strip_n[0] = n - scan, o->n_strips = 1;
    else
        old_strips(o, jpeg + scan, n - scan);
    if (f->flavour == OLD_TABLES)
        old_tables(o, &c, tables);
    old_long(o, 256, &(size_t){f->w - f->crop}, 1);
    old_long(o, 257, &(size_t){f->h - f->crop}, 1);
    if (!f->silent)
        old_short(o, 258, 8, 8, 8, samples);
    old_short(o, 259, 6, 0, 0, 1);
    old_short(o, 262, f->colour ? (f->rgb_tag ? 2 : 6) : 1, 0, 0, 1);
    if (!f->tiled)
        old_long(o, 273, o->strip, o->n_strips);
    if (!f->silent)
        old_short(o, 277, (size_t)samples, 0, 0, 1);
    if (f->tiled) {
        old_long(o, 322, &(size_t){f->w}, 1);
        old_long(o, 323, &(size_t){f->rows}, 1);
    } else {
        old_long(o, 278, &(size_t){f->rows}, 1);
    }
    old_long(o, f->tiled ? 324 : 279, f->tiled ? o->strip : o->strip_n, o->n_strips);
    if (f->tiled)
        old_long(o, 325, o->strip_n, o->n_strips);
    old_short(o, 512, 1, 0, 0, 1);
    if (f->flavour != OLD_TABLES) {
        old_long(o, 513, &stream, 1);
        old_long(o, 514, &head, 1);
    } else {
        for (int i = 0; i < 3; i++)
            old_long(o, 519 + i, tables[i], samples);
    }
    if (f->colour && !f->no_sharing)
        old_short(o, 530, f->across, f->down, 0, 2);
    jpeg_destroy_compress(&c);
    free(jpeg);
    return old_directory(o, put_at);
}

/* The file; `bytes` are to be freed. */
static inline old_file old_make(const old_form *f, uint64_t *seed)
{
    old_file o = {.f = f};
    uint8_t head[16] = {0};
    memcpy(head, f->big_endian ? "MM" : "II", 2);
    old_number(&o, head + 2, f->bigtiff ? 43 : 42, 2);
    if (f->bigtiff)
        old_number(&o, head + 4, 8, 2);
    old_put(&o, head, f->bigtiff ? 16 : 8);
    size_t next = f->bigtiff ? 8 : 4;
    for (int i = 0; i < f->pages; i++)
        next = old_page(&o, seed, next);
    return o;
}

static inline void old_write(const char *path, const uint8_t *bytes, size_t n)
{
    FILE *file = fopen(path, "wb");
    CHECK(file && fwrite(bytes, 1, n, file) == n);
    fclose(file);
}

static inline old_form old_drawn(int i, uint64_t *seed)
{
    static const uint16_t sub[][2] = {{2, 2}, {1, 1}, {2, 1}, {4, 1}, {4, 2}, {1, 2}};
    old_form f = {.w = (uint32_t)tg_rand_in(seed, 1, 120),
                  .h = (uint32_t)tg_rand_in(seed, 1, 100),
                  .colour = i % 4 != 0,
                  .across = sub[i % 6][0],
                  .down = sub[i % 6][1],
                  .flavour = (old_flavour)(i / 4 % OLD_FLAVOURS),
                  .big_endian = i / 2 % 2,
                  .bigtiff = i % 5 == 0,
                  .pages = 1 + i % 3,
                  .rgb_tag = i % 7 == 0};
    const uint32_t unit = 8u * (f.colour ? f.down : 1);
    f.rows = unit * (uint32_t)tg_rand_in(seed, 1, 4);
    if (f.flavour == OLD_STREAM || f.rows > f.h)
        f.rows = f.h;
    f.no_sharing = f.flavour == OLD_STREAM && i % 3 == 0;
    return f;
}

#endif
