/* imagej_out.c - ImageJ's own TIFF: classic, one strip for each plane, the planes behind each
 * other with channels fastest, then slices, then frames.
 *
 *     [header | first directory | its values | plane 0 | plane 1 | ... | other directories]
 *
 * ImageJ reads the first directory, believes "images=" and takes the planes from where they
 * must lie; the other directories are for everybody else. So nothing can be compressed, no
 * plane may be elsewhere, and 4 GiB is the end. What the file cannot say is refused by name.
 *
 * Axes that ImageJ does not know take the free ones of z, t, c in that order; samples of other
 * types than 8-bit colours become channels.
 *
 * Source: ImageJ ij/io/TiffEncoder, TiffDecoder, FileSaver.getDescriptionString and
 * FileOpener.decodeDescriptionString; TIFF 6.0. */
#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "engine/base/number.h"
#include "engine/base/size.h"
#include "engine/base/utf8.h"
#include "io/imagej.h"
#include "io/imagej_meta.h"
#include "io/ome_write.h"
#include "io/picture_out.h"
#include "io/rational.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { SHORT = 3, LONG = 4, RATIONAL = 5, ASCII = 2, BYTE = 1, UNDEFINED = 7 };
#define LIMIT 0xffffffffull
#define PIECE ((size_t)256 << 10) /* pixels written at once */
#define MAX_ENTRIES 24
#define MAX_LUTS 64

/* ---- Axes -------------------------------------------------------------------------------- */

/* One of ImageJ's axes: how many, and the step in planes of the image; 0: its samples. */
typedef struct extent {
    int64_t n, step;
    bool taken;
} extent;

typedef struct stack {
    extent z, t, c;
    int64_t images;
    int samples; /* of a pixel in the file: 1, or 3 and 4 of RGB */
    uint64_t plane_bytes;
} stack;

static extent *place_of(stack *k, char letter)
{
    static const char letters[] = {'Z', 'T', 'C'};
    extent *const place[] = {&k->z, &k->t, &k->c};
    for (int i = 0; i < 3; i++)
        if (letters[i] == letter)
            return place[i]->taken ? NULL : place[i];
    for (int i = 0; i < 3; i++)
        if (!place[i]->taken)
            return place[i];
    return NULL;
}

/* ImageJ's own letters first, then the others; axes of length 1 say nothing. */
static tg_status take_axes(const tgi_picture_spec *s, stack *k, tgi_err *err)
{
    for (int known = 1; known >= 0; known--) {
        int64_t step = 1;
        for (int i = (int)strlen(s->axes) - 1; i >= 0; i--) {
            const bool plain = s->axes[i] == 'T' && s->meta && s->meta->in_turn;
            const char a = plain ? 'I' : s->axes[i];
            if (strchr("YXS", a))
                continue;
            if (s->shape[i] > 1 && (strchr("ZTC", a) != NULL) == known) {
                extent *e = place_of(k, a);
                if (!e)
                    return tgi_fail(err, TG_E_ARG,
                                    "an ImageJ stack has slices, frames and channels, no room "
                                    "for axis %c of %s",
                                    a, s->axes);
                *e = (extent){s->shape[i], step, true};
            }
            step *= s->shape[i];
        }
    }
    return TG_OK;
}

static tg_status take_samples(const tgi_picture_spec *s, stack *k, tgi_err *err)
{
    const tg_dtype d = s->dtype;
    if (d != TG_DTYPE_U8 && d != TG_DTYPE_U16 && d != TG_DTYPE_I16 && d != TG_DTYPE_F32)
        return tgi_fail(err, TG_E_ARG,
                        "an ImageJ stack holds uint8, uint16, int16 or float32, not %s",
                        tgi_dtype_name(d));
    k->samples = 1;
    if (s->samples == 1)
        return TG_OK;
    const tgi_stored as = s->meta ? s->meta->stored_as : TGI_STORED_LIGHT;
    const bool lab = as == TGI_STORED_CIELAB || as == TGI_STORED_ICCLAB;
    const bool light = !lab && (s->samples == 3 || as != TGI_STORED_CMYK);
    if (d == TG_DTYPE_U8 && light && (s->samples == 3 || s->samples == 4)) {
        k->samples = s->samples;
        return TG_OK;
    }
    if (strchr(s->axes, 'C') && s->shape[strchr(s->axes, 'C') - s->axes] > 1)
        return tgi_fail(err, TG_E_ARG,
                        "an ImageJ stack has one axis of channels, not %d samples beside it",
                        s->samples);
    k->c = (extent){s->samples, 0, true};
    return TG_OK;
}

static tg_status stack_of(const tgi_picture_spec *s, stack *k, tgi_err *err)
{
    *k = (stack){.z = {1, 0, false}, .t = {1, 0, false}, .c = {1, 0, false}};
    TGI_TRY(take_samples(s, k, err));
    TGI_TRY(take_axes(s, k, err));
    k->images = k->z.n * k->t.n * k->c.n; /* planes of a layout that exists, times samples */
    k->plane_bytes = tgi_sat_mul(tgi_sat_mul((size_t)s->height, (size_t)s->width),
                                 (size_t)k->samples * tgi_dtype_size(s->dtype));
    return TG_OK;
}

/* Where image i of the file comes from. */
static int64_t plane_of(const stack *k, int64_t i, int *sample)
{
    const int64_t c = i % k->c.n, z = i / k->c.n % k->z.n, t = i / k->c.n / k->z.n;
    *sample = k->c.taken && !k->c.step ? (int)c : -1;
    return c * k->c.step + z * k->z.step + t * k->t.step;
}

/* ---- Description ------------------------------------------------------------------------- */

typedef struct line {
    char text[1024];
    size_t n;
} line;

TGI_PRINTF(2, 3)
static void add(line *t, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const int n = vsnprintf(t->text + t->n, sizeof t->text - t->n, fmt, ap);
    va_end(ap);
    if (n > 0)
        t->n = (size_t)tgi_min((int64_t)t->n + n, sizeof t->text - 1);
}

/* As Java's Properties reads it: 7 bits, the rest as \uXXXX. */
static void add_escaped(line *t, const char *s)
{
    for (size_t left = strlen(s), n; left; s += n, left -= n) {
        const unsigned char *p = (const unsigned char *)s;
        n = tgi_utf8_length(s, left);
        if (n == 2)
            add(t, "\\u%04X", (unsigned)(p[0] & 31) << 6 | (p[1] & 63));
        else if (n == 3)
            add(t, "\\u%04X",
                (unsigned)(p[0] & 15) << 12 | (unsigned)(p[1] & 63) << 6 | (p[2] & 63));
        else
            add(t, "%c", n == 1 && p[0] >= 0x20 && p[0] < 0x7f ? (char)p[0] : '?');
        n = n ? n : 1;
    }
}

bool tgi_imagej_says_pixel(const tgi_image_meta *m)
{
    return m->physical[2] > 0 && tgi_size_in_x(m, 1) > 0;
}

bool tgi_imagej_says_spacing(const tgi_image_meta *m)
{
    const bool none = !(m->physical[1] > 0 || m->physical[2] > 0);
    return m->physical[0] > 0 && tgi_size_in_x(m, 0) > 0 && (none || tgi_imagej_says_pixel(m));
}

static void add_number(line *t, const char *key, double v)
{
    char text[TGI_NUMBER_TEXT];
    tgi_number_digits(v, 15, text);
    add(t, "%s%s\n", key, text);
}

static void add_sizes(line *t, const tgi_image_meta *m)
{
    if (tgi_imagej_says_pixel(m) && m->unit[2][0]) {
        add(t, "unit=");
        add_escaped(t, m->unit[2]);
        add(t, "\n");
    }
    if (tgi_imagej_says_spacing(m))
        add_number(t, "spacing=", tgi_size_in_x(m, 0));
    if (m->time_increment > 0 && isfinite(m->time_increment))
        add_number(t, "finterval=", m->time_increment);
}

static void describe(const stack *k, const tgi_image_meta *m, line *t)
{
    t->n = 0;
    add(t, "ImageJ=1.54f\n");
    if (k->images > 1)
        add(t, "images=%lld\n", (long long)k->images);
    if (k->c.n > 1)
        add(t, "channels=%lld\n", (long long)k->c.n);
    if (k->z.n > 1)
        add(t, "slices=%lld\n", (long long)k->z.n);
    if (k->t.n > 1)
        add(t, "frames=%lld\n", (long long)k->t.n);
    if (k->c.n > 1 || (k->z.n > 1 && k->t.n > 1))
        add(t, "hyperstack=true\n");
    if (k->c.n > 1)
        add(t, "mode=%s\n",
            m->mode     ? tgi_imagej_mode(m->mode)
            : m->n_luts ? "composite"
                        : "grayscale");
    add_sizes(t, m);
    add(t, "loop=false\n");
    if (!m->n_ranges || !isfinite(m->range[0]) || !isfinite(m->range[1]))
        return;
    add_number(t, "min=", m->range[0]);
    add_number(t, "max=", m->range[1]);
}

/* ---- Tables, ranges, names --------------------------------------------------------------- */

static bool has_colours(const tgi_image_meta *m, const stack *k)
{
    bool some = false;
    if (!m->channel_color || m->n_channels != k->c.n || k->c.n > MAX_LUTS)
        return false;
    for (int i = 0; i < m->n_channels; i++)
        some |= m->channel_color[i] >> 8 != 0xffffff && m->channel_color[i] >> 8 != 0;
    return some;
}

/* A ramp from black to each channel's colour. */
static void ramps(const tgi_image_meta *m, uint8_t *lut)
{
    for (int c = 0; c < m->n_channels; c++) {
        const uint32_t color = m->channel_color[c] ? m->channel_color[c] : TGI_WHITE;
        for (int k = 0; k < 3; k++)
            for (unsigned v = 0; v < 256; v++)
                *lut++ = (uint8_t)(v * (color >> (24 - 8 * k) & 255) / 255);
    }
}

/* A palette of 256 colours is a table too. */
static bool from_palette(const tgi_image_meta *m, const tgi_picture_spec *s, uint8_t *lut)
{
    if (m->stored_as != TGI_STORED_PALETTE || !m->palette || m->n_palette > 256 ||
        s->dtype != TG_DTYPE_U8)
        return false;
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < m->n_palette; i++)
            lut[256 * k + i] = (uint8_t)(m->palette[k * m->n_palette + i] >> 8);
    return true;
}

/* What ImageJ is told of `m`, as far as it is about this stack. `lut` and `label` are room
 * for tables and names. */
static tgi_image_meta view_of(const tgi_image_meta *m, const tgi_picture_spec *s,
                              const stack *k, uint8_t *lut, char **label)
{
    tgi_image_meta v = *m;
    int64_t planes = 1;
    int sample;
    for (int i = 0; s->axes[i]; i++)
        planes *= strchr("YXS", s->axes[i]) ? 1 : s->shape[i];
    if (v.n_ranges != k->c.n)
        v.n_ranges = 0;
    if (v.n_luts != k->c.n || k->samples > 1)
        v.n_luts = 0;
    if (!v.n_luts && k->samples == 1 && has_colours(m, k)) {
        ramps(m, lut);
        v.lut = lut;
        v.n_luts = m->n_channels;
    } else if (!v.n_luts && k->samples == 1 && k->c.n == 1 && from_palette(m, s, lut)) {
        v.lut = lut;
        v.n_luts = 1;
    }
    v.n_labels = 0;
    const bool labels = m->label && m->n_labels == planes;
    const bool names = m->channel_name && m->n_channels == k->c.n && k->images > 1;
    const bool made = m->n_made && k->c.n % m->n_made == 0 && k->images > 1;
    for (int64_t i = 0; (labels || names || made) && i < k->images; i++) {
        label[i] = labels  ? m->label[plane_of(k, i, &sample)]
                   : names ? m->channel_name[i % k->c.n]
                           : m->made_name[i % k->c.n % m->n_made];
        v.n_labels = k->images;
    }
    v.label = label;
    if (!v.info && v.about)
        v.info = v.about;
    if (!v.info && v.description && tgi_is_prose(v.description))
        v.info = v.description;
    return v;
}

/* ---- Directories ------------------------------------------------------------------------- */

typedef struct entry {
    uint16_t tag, type;
    uint32_t count, value; /* value: or where it lies */
} entry;

typedef struct front {
    uint8_t *bytes; /* header, directory, values; NULL: only counted */
    size_t n, cap;  /* of it used by values */
    entry e[MAX_ENTRIES];
    int n_entries;
} front;

#define VALUES_AT (8 + 2 + 12 * MAX_ENTRIES + 4)

static uint32_t add_value(front *f, const void *v, size_t n)
{
    const size_t at = f->n;
    if (f->bytes)
        memcpy(f->bytes + at, v, n);
    f->n = tgi_align_size(at + n, 4);
    return (uint32_t)at;
}

static void add_entry(front *f, unsigned tag, unsigned type, size_t count, const void *v,
                      size_t n)
{
    entry *e = &f->e[f->n_entries++];
    *e = (entry){(uint16_t)tag, (uint16_t)type, (uint32_t)count, 0};
    if (n > 4)
        e->value = add_value(f, v, n);
    else
        memcpy(&e->value, v, n);
}

static void add_short(front *f, unsigned tag, unsigned v)
{
    const uint16_t x = (uint16_t)v;
    add_entry(f, tag, SHORT, 1, &x, 2);
}

static void add_shorts(front *f, unsigned tag, int n, unsigned v)
{
    uint16_t x[4];
    for (int i = 0; i < n; i++)
        x[i] = (uint16_t)v;
    add_entry(f, tag, SHORT, (size_t)n, x, 2 * (size_t)n);
}

static void add_long(front *f, unsigned tag, uint64_t v)
{
    const uint32_t x = (uint32_t)v;
    add_entry(f, tag, LONG, 1, &x, 4);
}

/* Pixels for each of ImageJ's units, or for an inch or centimetre. */
static void add_resolution(front *f, const tgi_image_meta *m)
{
    uint32_t r[2][2];
    double x = 0, y = 0;
    unsigned unit = 1;
    if (tgi_imagej_says_pixel(m)) {
        x = 1 / m->physical[2];
        y = 1 / tgi_size_in_x(m, 1);
    } else if (m->resolution_unit && !(m->physical[1] > 0 || m->physical[2] > 0)) {
        x = m->resolution[1];
        y = m->resolution[0];
        unit = (unsigned)m->resolution_unit;
    }
    if (!tgi_rational(x, r[0]) || !tgi_rational(y, r[1]))
        return;
    add_entry(f, 282, RATIONAL, 1, r[0], 8);
    add_entry(f, 283, RATIONAL, 1, r[1], 8);
    add_short(f, 296, unit);
}

typedef struct extras {
    uint32_t *counts;
    uint8_t *bytes;
    size_t n_counts, n_bytes;
} extras;

static void fill_front(front *f, const tgi_picture_spec *s, const stack *k,
                       const tgi_image_meta *m, const extras *x)
{
    static const char software[] = "tegula";
    line text;
    describe(k, m, &text);
    f->n = VALUES_AT;
    f->n_entries = 0;
    add_long(f, 254, 0);
    add_long(f, 256, (uint64_t)s->width);
    add_long(f, 257, (uint64_t)s->height);
    add_shorts(f, 258, k->samples, 8 * (unsigned)tgi_dtype_size(s->dtype));
    add_short(f, 259, 1);
    add_short(f, 262, k->samples > 1 ? 2 : 1);
    add_entry(f, 270, ASCII, text.n + 1, text.text, text.n + 1);
    add_long(f, 273, 0);
    if (m->orientation > 1)
        add_short(f, 274, (unsigned)m->orientation);
    add_short(f, 277, (unsigned)k->samples);
    add_long(f, 278, (uint64_t)s->height);
    add_long(f, 279, k->plane_bytes);
    add_resolution(f, m);
    add_entry(f, 305, ASCII, sizeof software, software, sizeof software);
    if (k->samples == 4)
        add_short(f, 338, (unsigned)m->alpha);
    add_shorts(f, 339, k->samples,
               s->dtype == TG_DTYPE_F32   ? 3
               : s->dtype == TG_DTYPE_I16 ? 2
                                          : 1);
    if (m->icc_bytes)
        add_entry(f, 34675, UNDEFINED, m->icc_bytes, m->icc, m->icc_bytes);
    if (x->n_counts) {
        add_entry(f, 50838, LONG, x->n_counts, x->counts, 4 * x->n_counts);
        add_entry(f, 50839, BYTE, x->n_bytes, x->bytes, x->n_bytes);
    }
    f->n = tgi_align_size(f->n, 64);
}

/* What other directories have, too: nothing that belongs to the whole stack. */
static bool is_of_each(unsigned tag)
{
    return tag != 270 && tag != 34675 && tag != 50838 && tag != 50839;
}

static size_t put_directory(const front *f, bool first, uint64_t pixels, uint64_t next,
                            uint8_t *out)
{
    uint8_t *p = out + 2;
    uint16_t n = 0;
    for (int i = 0; i < f->n_entries; i++) {
        entry e = f->e[i];
        if (!first && !is_of_each(e.tag))
            continue;
        if (e.tag == 273)
            e.value = (uint32_t)pixels;
        memcpy(p, &e.tag, 2);
        memcpy(p + 2, &e.type, 2);
        memcpy(p + 4, &e.count, 4);
        memcpy(p + 8, &e.value, 4);
        p += 12;
        n++;
    }
    const uint32_t at = (uint32_t)next;
    memcpy(p, &at, 4);
    memcpy(out, &n, 2);
    return (size_t)(p + 4 - out);
}

static size_t other_bytes(const front *f)
{
    uint8_t room[2 + 12 * MAX_ENTRIES + 4];
    return tgi_align_size(put_directory(f, false, 0, 0, room), 4);
}

/* ---- The file ---------------------------------------------------------------------------- */

typedef struct writer {
    tgi_part *to; /* borrowed */
    stack k;
    front f;
    uint64_t at;     /* where the piece goes */
    uint64_t pixels; /* bytes of all planes */
    size_t row_bytes, n;
    uint8_t *piece;
} writer;

/* All that the front is made of; freed by the caller, also after a failure. */
typedef struct making {
    stack k;
    tgi_image_meta meta;
    uint8_t *lut;
    char **label;
    extras x;
} making;

static void free_making(making *g)
{
    tgi_free(g->lut);
    tgi_free(g->label);
    tgi_free(g->x.counts);
    tgi_free(g->x.bytes);
}

static tg_status make(const tgi_picture_spec *s, making *g, tgi_err *err)
{
    static const tgi_image_meta nothing;
    *g = (making){.meta = nothing};
    TGI_TRY(stack_of(s, &g->k, err));
    if (g->k.plane_bytes > LIMIT || (uint64_t)g->k.images > LIMIT / 64)
        return TG_OK; /* too large whatever is known beside the pixels */
    g->lut = tgi_calloc(TGI_TAG_IO, MAX_LUTS, 768);
    g->label = tgi_calloc(TGI_TAG_IO, (size_t)g->k.images, sizeof *g->label);
    if (!g->lut || !g->label)
        return tgi_fail(err, TG_E_NOMEM, "no memory for ImageJ's metadata");
    g->meta = view_of(s->meta ? s->meta : &nothing, s, &g->k, g->lut, g->label);
    return tgi_imagej_meta_make(&g->meta, g->k.images, &g->x.counts, &g->x.n_counts,
                                &g->x.bytes, &g->x.n_bytes, err);
}

/* Size of the file; SIZE_MAX and the like when it is beyond all bounds. */
static uint64_t file_bytes(const tgi_picture_spec *s, making *g, front *f)
{
    fill_front(f, s, &g->k, &g->meta, &g->x);
    const size_t pixels = tgi_sat_mul(g->k.plane_bytes, (size_t)g->k.images);
    return tgi_sat_add(tgi_sat_add(f->n, pixels + (pixels < SIZE_MAX - 4 ? 4 : 0)),
                       tgi_sat_mul(other_bytes(f), (size_t)(g->k.images - 1)));
}

static tg_status imagej_may(const tgi_picture_spec *s, tgi_err *err)
{
    making g;
    front f = {0};
    char text[32];
    tg_status st = make(s, &g, err);
    const uint64_t all = st == TG_OK ? file_bytes(s, &g, &f) : 0;
    if (st == TG_OK && all > LIMIT)
        st = tgi_fail(err, TG_E_ARG,
                      "an ImageJ stack ends at 4 GiB, this one would take %s: leave out "
                      "--format imagej",
                      tgi_size_text(all, text, sizeof text));
    free_making(&g);
    return st;
}

static size_t imagej_bytes(const tgi_picture_spec *s)
{
    making g;
    front f = {0};
    tgi_err none = {0};
    size_t n = sizeof(writer) + PIECE + 4096;
    if (make(s, &g, &none) == TG_OK) {
        (void)file_bytes(s, &g, &f);
        n += 2 * f.n + (size_t)MAX_LUTS * 768 + (size_t)g.k.images * sizeof *g.label;
    }
    free_making(&g);
    return n;
}

static int64_t imagej_images(const tgi_picture_spec *s)
{
    stack k;
    tgi_err none = {0};
    return stack_of(s, &k, &none) == TG_OK ? k.images : 0;
}

static int64_t imagej_source(const tgi_picture_spec *s, int64_t i, int *sample)
{
    stack k;
    tgi_err none = {0};
    return stack_of(s, &k, &none) == TG_OK ? plane_of(&k, i, sample) : 0;
}

static void imagej_close(void *state)
{
    writer *w = state;
    tgi_free(w->piece);
    tgi_free(w);
}

static tg_status write_front(writer *w, const tgi_picture_spec *s, making *g, tgi_err *err)
{
    front *f = &w->f;
    fill_front(f, s, &g->k, &g->meta, &g->x);
    w->k = g->k;
    w->row_bytes = (size_t)(g->k.plane_bytes / (uint64_t)s->height);
    w->pixels = g->k.plane_bytes * (uint64_t)g->k.images;
    f->bytes = tgi_calloc(TGI_TAG_IO, f->n, 1);
    if (!f->bytes)
        return tgi_fail(err, TG_E_NOMEM, "%s: no memory for %zu bytes of metadata",
                        w->to->partial, f->n);
    fill_front(f, s, &g->k, &g->meta, &g->x);
    const uint32_t at = 8;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    memcpy(f->bytes, "II*\0", 4);
#else
    memcpy(f->bytes, "MM\0*", 4);
#endif
    memcpy(f->bytes + 4, &at, 4);
    const uint64_t behind = tgi_align_size(f->n + w->pixels, 4);
    put_directory(f, true, f->n, w->k.images > 1 ? behind : 0, f->bytes + 8);
    const tg_status st = tgi_part_write(w->to, 0, f->bytes, f->n, err);
    tgi_free(f->bytes);
    f->bytes = NULL;
    w->at = f->n;
    return st;
}

static tg_status imagej_create(tgi_part *to, const tgi_picture_spec *s, void **state,
                               tgi_err *err)
{
    making g = {.lut = NULL};
    writer *w = tgi_calloc(TGI_TAG_IO, 1, sizeof *w);
    if (!w)
        return tgi_fail(err, TG_E_NOMEM, "%s: no memory for the stack", to->partial);
    w->to = to;
    w->piece = tgi_malloc(TGI_TAG_IO, PIECE);
    tg_status st = w->piece
                       ? imagej_may(s, err)
                       : tgi_fail(err, TG_E_NOMEM, "%s: no memory for the stack", to->partial);
    if (st == TG_OK)
        st = make(s, &g, err);
    if (st == TG_OK)
        st = write_front(w, s, &g, err);
    free_making(&g);
    if (st != TG_OK)
        imagej_close(w);
    else
        *state = w;
    return st;
}

static tg_status flush(writer *w, tgi_err *err)
{
    const size_t n = w->n;
    w->n = 0;
    w->at += n;
    return n ? tgi_part_write(w->to, w->at - n, w->piece, n, err) : TG_OK;
}

static tg_status put(writer *w, const void *bytes, size_t n, tgi_err *err)
{
    const uint8_t *p = bytes;
    while (n) {
        const size_t part = n < PIECE - w->n ? n : PIECE - w->n;
        memcpy(w->piece + w->n, p, part);
        w->n += part;
        p += part;
        n -= part;
        if (w->n == PIECE)
            TGI_TRY(flush(w, err));
    }
    return TG_OK;
}

static tg_status imagej_row(void *state, const void *row, tgi_err *err)
{
    writer *w = state;
    return put(w, row, w->row_bytes, err);
}

static tg_status imagej_finish(void *state, tgi_err *err)
{
    writer *w = state;
    uint8_t room[2 + 12 * MAX_ENTRIES + 4 + 4] = {0};
    const uint64_t first = w->f.n, end = first + w->pixels;
    const size_t each = other_bytes(&w->f);
    if (w->at + w->n != end)
        return tgi_fail(err, TG_E_INTERNAL, "%s: %llu bytes of pixels are missing",
                        w->to->partial, (unsigned long long)(end - w->at - w->n));
    if (w->k.images > 1)
        TGI_TRY(put(w, room, (size_t)(tgi_align_size(end, 4) - end), err));
    for (int64_t i = 1; i < w->k.images; i++) {
        const uint64_t here = w->at + w->n;
        put_directory(&w->f, false, first + (uint64_t)i * w->k.plane_bytes,
                      i + 1 < w->k.images ? here + each : 0, room);
        TGI_TRY(put(w, room, each, err));
    }
    TGI_TRY(flush(w, err));
    return tgi_part_sync(w->to, err);
}

const tgi_picture_writer tgi_imagej_writer = {.name = "ImageJ TIFF",
                                              .suffixes = "",
                                              .may = imagej_may,
                                              .bytes = imagej_bytes,
                                              .images = imagej_images,
                                              .source = imagej_source,
                                              .create = imagej_create,
                                              .row = imagej_row,
                                              .finish = imagej_finish,
                                              .close = imagej_close};
