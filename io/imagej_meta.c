/* imagej_meta.c - see imagej_meta.h.
 *
 *   bytes:   [header | entry | entry | ...]       header: "IJIJ", then (type, number) pairs
 *   counts:  [bytes of the header, of each entry]
 *
 * Texts are UTF-16; all numbers are in the file's byte order. Entries of a type follow each
 * other, the types in the order of the header.
 * Source: ImageJ ij/io/TiffDecoder.getMetaData and TiffEncoder.writeMetaData. */
#include "io/imagej_meta.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "io/bytes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC 0x494a494au /* "IJIJ" */
#define INFO 0x696e666fu
#define LABELS 0x6c61626cu
#define RANGES 0x72616e67u
#define LUTS 0x6c757473u
#define ROI 0x726f6920u
#define OVERLAY 0x6f766572u
#define PROPERTIES 0x70726f70u
#define PLOT 0x706c6f74u
#define MAX_TYPES 32
#define MAX_LUTS 64
#define MAX_LABELS 1000000
#define MAX_TEXT (16u << 20)

/* ---- Reading ----------------------------------------------------------------------------- */

/* UTF-16 to UTF-8; NULL without memory. Lone surrogates become '?'. */
static char *to_utf8(const uint8_t *p, size_t bytes, bool big)
{
    char *s = tgi_malloc(TGI_TAG_IO, bytes / 2 * 3 + 1);
    size_t n = 0;
    for (size_t i = 0; s && i + 2 <= bytes; i += 2) {
        uint32_t c = tgi_load16(p + i, big);
        if (c >= 0xd800 && c < 0xdc00 && i + 4 <= bytes) {
            const uint32_t low = tgi_load16(p + i + 2, big);
            if (low >= 0xdc00 && low < 0xe000) {
                c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
                i += 2;
            }
        }
        if (!c)
            break;
        if (c >= 0xd800 && c < 0xe000)
            c = '?';
        if (c >= 0x10000) {
            s[n++] = (char)(0xf0 | c >> 18);
            s[n++] = (char)(0x80 | (c >> 12 & 63));
        } else if (c >= 0x800) {
            s[n++] = (char)(0xe0 | c >> 12);
        }
        if (c >= 0x800)
            s[n++] = (char)(0x80 | (c >> 6 & 63));
        else if (c >= 0x80)
            s[n++] = (char)(0xc0 | c >> 6);
        s[n++] = (char)(c >= 0x80 ? 0x80 | (c & 63) : c);
    }
    if (s)
        s[n] = 0;
    return s;
}

static double load_double(const uint8_t *p, bool big)
{
    const uint64_t v = tgi_load64(p, big);
    double d;
    memcpy(&d, &v, sizeof d);
    return d;
}

/* What ImageJ keeps in forms of its own, and no output carries. */
static void leave_behind(uint32_t type, tgi_image_meta *m)
{
    static const struct {
        uint32_t type;
        const char *words;
    } of[] = {{ROI, "a region of interest of ImageJ"},
              {OVERLAY, "an overlay of ImageJ"},
              {PROPERTIES, "properties of ImageJ"},
              {PLOT, "a plot of ImageJ"}};
    const size_t n = strlen(m->left_behind);
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        if (of[i].type == type && !strstr(m->left_behind, of[i].words))
            snprintf(m->left_behind + n, sizeof m->left_behind - n, "%s%s", n ? ", " : "",
                     of[i].words);
}

/* Entry `i` of `count` of one type. False: no memory. */
static bool take_entry(uint32_t type, uint32_t i, uint32_t count, const uint8_t *p, size_t n,
                       bool big, tgi_image_meta *m)
{
    /* A type that comes twice, with another number, is left out the second time. */
    if (type == LUTS && n == 768 && count <= MAX_LUTS &&
        (!m->lut || (uint32_t)m->n_luts == count)) {
        if (!m->lut && !(m->lut = tgi_calloc(TGI_TAG_IO, count, 768)))
            return false;
        m->n_luts = (int)count;
        memcpy(m->lut + (size_t)i * 768, p, 768);
    } else if (type == RANGES && !m->range && n >= 16 && n <= 16 * MAX_LUTS) {
        m->n_ranges = (int)(n / 16);
        if (!(m->range = tgi_calloc(TGI_TAG_IO, n / 16, 2 * sizeof *m->range)))
            return false;
        for (size_t k = 0; k < n / 16 * 2; k++)
            m->range[k] = load_double(p + 8 * k, big);
    } else if (type == LABELS && count <= MAX_LABELS &&
               (!m->label || m->n_labels == (int64_t)count)) {
        if (!m->label && !(m->label = tgi_calloc(TGI_TAG_IO, count, sizeof *m->label)))
            return false;
        m->n_labels = count;
        return !n || m->label[i] || (m->label[i] = to_utf8(p, n, big)) != NULL;
    } else if (type == INFO && !m->info) {
        return (m->info = to_utf8(p, n, big)) != NULL;
    } else {
        leave_behind(type, m);
    }
    return true;
}

typedef struct cursor {
    const tgi_tiff_file *t;
    const tgi_tiff_page *p;
    uint8_t *all; /* the bytes */
    size_t n, at;
    uint64_t entry;
} cursor;

/* The next entry; false: it lies outside. */
static bool next(cursor *c, const uint8_t **out, size_t *n, tgi_err *err)
{
    uint64_t len;
    if (tgi_tiff_value(c->t, (tgi_window *)(uintptr_t)&c->t->win, &c->p->ij_counts, c->entry++,
                       &len, err) != TG_OK ||
        len > c->n - c->at)
        return false;
    *out = c->all + c->at;
    *n = (size_t)len;
    c->at += (size_t)len;
    return true;
}

static tg_status read_all(cursor *c, tgi_image_meta *m, bool *whole, tgi_err *err)
{
    const bool big = c->t->big_endian;
    const uint8_t *head, *p;
    size_t n, k;
    tgi_err ignored = {0};
    *whole = false;
    if (!next(c, &head, &n, &ignored) || n < 12 || n > 4 + 8 * MAX_TYPES ||
        tgi_load32(head, big) != MAGIC)
        return TG_OK;
    for (size_t t = 0; t < (n - 4) / 8; t++) {
        const uint32_t type = tgi_load32(head + 4 + 8 * t, big);
        const uint32_t count = tgi_load32(head + 8 + 8 * t, big);
        for (uint32_t i = 0; i < count; i++) {
            if (!next(c, &p, &k, &ignored))
                return TG_OK;
            if (!take_entry(type, i, count, p, k, big, m))
                return tgi_fail(err, TG_E_NOMEM, "no memory for ImageJ's metadata");
        }
    }
    *whole = true;
    return TG_OK;
}

tg_status tgi_imagej_meta_read(const tgi_tiff_file *t, const tgi_tiff_page *p,
                               tgi_image_meta *m, bool *whole, tgi_err *err)
{
    cursor c = {.t = t, .p = p, .n = (size_t)p->ij_bytes.count};
    *whole = !p->ij_bytes.count || (p->ij_bytes.count <= MAX_TEXT && p->ij_bytes.type == 1);
    if (!p->ij_bytes.count || !p->ij_counts.count || !*whole)
        return TG_OK;
    c.all = tgi_malloc(TGI_TAG_IO, c.n);
    if (!c.all)
        return tgi_fail(err, TG_E_NOMEM, "no memory for ImageJ's metadata");
    tg_status st = tgi_rfile_read(&t->f, p->ij_bytes.pos, c.all, c.n, err);
    if (st == TG_OK)
        st = read_all(&c, m, whole, err);
    tgi_free(c.all);
    return st;
}

/* ---- Writing ----------------------------------------------------------------------------- */

typedef struct maker {
    uint8_t *p; /* NULL: only count */
    uint32_t *counts;
    size_t n, n_counts;
} maker;

static void put(maker *k, const void *v, size_t n)
{
    if (k->p)
        memcpy(k->p + k->n, v, n);
    k->n += n;
}

static void put32(maker *k, uint32_t v)
{
    put(k, &v, sizeof v);
}

static void end_entry(maker *k, size_t from)
{
    if (k->counts)
        k->counts[k->n_counts] = (uint32_t)(k->n - from);
    k->n_counts++;
}

static void put_text(maker *k, const char *s)
{
    const size_t from = k->n;
    const unsigned char *p = (const unsigned char *)(s ? s : "");
    while (*p) {
        int more = *p >= 0xf0 ? 3 : *p >= 0xe0 ? 2 : *p >= 0xc0 ? 1 : 0;
        uint32_t c = more == 3 ? *p & 7u : more == 2 ? *p & 15u : more == 1 ? *p & 31u : *p;
        for (p++; more && (*p & 0xc0) == 0x80; more--, p++)
            c = c << 6 | (*p & 63u);
        uint16_t u[2] = {(uint16_t)c, 0};
        if (c >= 0x10000) {
            u[0] = (uint16_t)(0xd800 + ((c - 0x10000) >> 10));
            u[1] = (uint16_t)(0xdc00 + ((c - 0x10000) & 1023));
        }
        put(k, u, u[1] ? 4 : 2);
    }
    end_entry(k, from);
}

static void make(maker *k, const tgi_image_meta *m, int64_t labels)
{
    const size_t from = k->n;
    put32(k, MAGIC);
    const struct {
        uint32_t type, n;
    } part[] = {{INFO, m->info != NULL},
                {LABELS, (uint32_t)labels},
                {RANGES, m->n_ranges > 0},
                {LUTS, (uint32_t)m->n_luts}};
    for (size_t i = 0; i < 4; i++)
        if (part[i].n) {
            put32(k, part[i].type);
            put32(k, part[i].n);
        }
    end_entry(k, from);
    if (m->info)
        put_text(k, m->info);
    for (int64_t i = 0; i < labels; i++)
        put_text(k, m->label[i]);
    if (m->n_ranges) {
        const size_t at = k->n;
        put(k, m->range, (size_t)m->n_ranges * 16);
        end_entry(k, at);
    }
    for (int i = 0; i < m->n_luts; i++) {
        const size_t at = k->n;
        put(k, m->lut + (size_t)i * 768, 768);
        end_entry(k, at);
    }
}

tg_status tgi_imagej_meta_make(const tgi_image_meta *m, int64_t n_planes, uint32_t **counts,
                               size_t *n_counts, uint8_t **bytes, size_t *n_bytes, tgi_err *err)
{
    const int64_t labels = m->n_labels == n_planes ? m->n_labels : 0;
    maker k = {0};
    *n_counts = *n_bytes = 0;
    *counts = NULL;
    *bytes = NULL;
    if (!m->info && !labels && !m->n_ranges && !m->n_luts)
        return TG_OK;
    make(&k, m, labels);
    *bytes = tgi_malloc(TGI_TAG_IO, k.n);
    *counts = tgi_malloc(TGI_TAG_IO, k.n_counts * sizeof **counts);
    if (!*bytes || !*counts)
        return tgi_fail(err, TG_E_NOMEM, "no memory for ImageJ's metadata");
    *n_bytes = k.n;
    *n_counts = k.n_counts;
    k = (maker){.p = *bytes, .counts = *counts};
    make(&k, m, labels);
    return TG_OK;
}
