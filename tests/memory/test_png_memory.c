/* libpng reads and writes in an arena whose size is the plan's line for it (png_lib.h). Here
 * files of every form, up to wide rows, with all the chunks there are: the arena is enough, what
 * libpng takes of it is not far below, and nothing is taken beside it while rows come. */
#include "io/image.h"
#include "io/png_lib.h"
#include "tests/memory/weigh.h"
#include "tests/tg_test.h"

static char path[256];

typedef struct form {
    uint32_t w, h;
    int colour, bits;
    bool interlaced, clear, notes; /* tRNS; every other chunk */
    size_t idat;                   /* bytes of data in a chunk; 0: 1, 2, 3, ... */
} form;

typedef struct bytes {
    uint8_t *p;
    size_t n, at;
} bytes;

static void write_bytes(png_structp z, png_bytep src, size_t n)
{
    bytes *b = png_get_io_ptr(z);
    b->p = realloc(b->p, b->n + n);
    memcpy(b->p + b->n, src, n);
    b->n += n;
}

static void flush_nothing(png_structp z)
{
    (void)z;
}

static void read_bytes(png_structp z, png_bytep dst, size_t n)
{
    bytes *b = png_get_io_ptr(z);
    if (n > b->n - b->at)
        png_error(z, "cut");
    memcpy(dst, b->p + b->at, n);
    b->at += n;
}

/* ---- Files ---- */

/* Chunks that nobody reads, larger than the arena. */
static void put_notes(png_structp z, png_infop info)
{
    static char text[200000];
    static uint8_t exif[60000] = {'M', 'M', 0, 42};
    memset(text, 'a', sizeof text - 1);
    png_text t[3] = {{.compression = PNG_TEXT_COMPRESSION_NONE, .key = "a", .text = text},
                     {.compression = PNG_TEXT_COMPRESSION_zTXt, .key = "b", .text = text},
                     {.compression = PNG_ITXT_COMPRESSION_zTXt, .key = "c", .text = text}};
    png_set_text(z, info, t, 3);
    png_set_eXIf_1(z, info, sizeof exif, exif);
    png_set_pHYs(z, info, 1000, 1000, PNG_RESOLUTION_METER);
    png_set_gAMA(z, info, 0.45455);
    png_set_sRGB(z, info, 0);
    png_sPLT_entry colour = {0};
    png_sPLT_t suggested = {.name = "p", .depth = 8, .entries = &colour, .nentries = 1};
    png_set_sPLT(z, info, &suggested, 1);
}

static void put_head(png_structp z, png_infop info, const form *f)
{
    static png_color palette[256];
    static png_byte alpha[256];
    const png_color_16 colour = {0};
    png_set_IHDR(z, info, f->w, f->h, f->bits, f->colour, f->interlaced, 0, 0);
    if (f->colour == PNG_COLOR_TYPE_PALETTE)
        png_set_PLTE(z, info, palette, 1 << f->bits);
    if (f->clear)
        png_set_tRNS(z, info, alpha, f->colour == PNG_COLOR_TYPE_PALETTE ? 1 << f->bits : 1,
                     &colour);
    if (f->notes)
        put_notes(z, info);
}

/* Its pixels' data in chunks of other sizes. */
static bytes cut_anew(const bytes *b, size_t idat)
{
    bytes out = {0}, data = {0};
    png_structp z = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_set_write_fn(z, &out, write_bytes, flush_nothing);
    png_write_sig(z);
    for (size_t at = 8; at + 12 <= b->n;) {
        const size_t n = png_get_uint_32(b->p + at);
        const bool is_data = memcmp(b->p + at + 4, "IDAT", 4) == 0;
        if (is_data) {
            data.p = realloc(data.p, data.n + n);
            memcpy(data.p + data.n, b->p + at + 8, n);
            data.n += n;
        }
        for (size_t k = 1; !is_data && data.at < data.n; k++) {
            const size_t left = data.n - data.at, want = idat ? idat : k;
            const size_t piece = want < left ? want : left;
            png_write_chunk(z, (png_const_bytep) "IDAT", data.p + data.at, piece);
            data.at += piece;
        }
        if (!is_data)
            png_write_chunk(z, b->p + at + 4, b->p + at + 8, n);
        at += n + 12;
    }
    png_destroy_write_struct(&z, NULL);
    free(data.p);
    return out;
}

static bytes make(const form *f, uint64_t *seed)
{
    bytes b = {0};
    png_structp z = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(z);
    png_set_user_limits(z, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
    png_set_write_fn(z, &b, write_bytes, flush_nothing);
    png_set_compression_level(z, 1);
    put_head(z, info, f);
    png_write_info(z, info);
    const size_t n = png_get_rowbytes(z, info);
    uint8_t *row = malloc(n);
    for (size_t i = 0; i < n; i++)
        row[i] = (uint8_t)(i % 4096 < 64 ? tg_rand(seed) : i);
    const int passes = f->interlaced ? png_set_interlace_handling(z) : 1;
    for (int k = 0; k < passes; k++)
        for (uint32_t y = 0; y < f->h; y++)
            png_write_row(z, row);
    png_write_end(z, NULL);
    png_destroy_write_struct(&z, &info);
    free(row);
    const bytes cut = cut_anew(&b, f->idat);
    free(b.p);
    return cut;
}

/* ---- What it takes ---- */

typedef struct reading {
    tgi_png lib;
    bytes *file;
    uint8_t *row;
    int times; /* that each row comes */
    uint32_t h;
} reading;

static void read_all(void *arg)
{
    reading *r = arg;
    png_set_read_fn(r->lib.z, r->file, read_bytes);
    tgi_png_read_header(&r->lib, false);
    tgi_png_start_rows(&r->lib);
    for (int k = 0; k < r->times; k++)
        for (uint32_t y = 0; y < r->h; y++)
            png_read_row(r->lib.z, r->row, NULL);
    png_read_end(r->lib.z, NULL);
}

/* The part of the arena that is used. */
static double share(const form *f, bytes *b)
{
    const size_t cap = tgi_png_read_bytes(f->w, f->colour, f->bits);
    reading r = {.lib = {.cap = cap, .arena = aligned_alloc(64, (cap + 63) / 64 * 64)},
                 .file = b,
                 .row = malloc((size_t)f->w * 8 + 64),
                 .times = f->interlaced ? 7 : 1,
                 .h = f->h};
    CHECK(tgi_png_begin(&r.lib, false));
    const bool done = tgi_png_step(&r.lib, read_all, &r);
    CHECK(done && !r.lib.damaged);
    if (!done)
        fprintf(stderr, "  %u x %u, colour %d of %d bits, interlaced %d, notes %d, %zu: %s\n",
                f->w, f->h, f->colour, f->bits, f->interlaced, f->notes, f->idat, r.lib.text);
    const double part = (double)r.lib.most / (double)cap;
    tgi_png_end(&r.lib);
    free(r.lib.arena);
    free(r.row);
    return part;
}

/* By our reader: opened, begun twice; nothing but what is there after open. */
static void read_as_an_image(const bytes *b)
{
    FILE *out = fopen(path, "wb");
    fwrite(b->p, 1, b->n, out);
    fclose(out);
    const tgi_open_opts o = {.threads = 1, .spare = 1};
    tgi_err err = {0};
    tgi_source *s = NULL;
    long long left;
    CHECK_OK(tgi_source_open(path, &o, &s, &err), err);
    if (!s)
        return;
    const tgi_image_info *i = s->ops->info(s);
    const size_t row = (size_t)i->width * (size_t)i->samples * tgi_dtype_size(i->dtype);
    uint8_t *dst = malloc(row);
    tg_status st = TG_OK;
    weigh_begin();
    for (int64_t y = 0; y < 2 * i->height && st == TG_OK; y++) {
        const int64_t at = y % i->height;
        st = s->ops->read(s, 0, 0, 0, i->samples, at, at + 1, 0, i->width, dst, row,
                          TGI_INTERLEAVED, &err);
    }
    CHECK_OK(st, err);
    CHECK_EQ(weigh_end(&left), 0);
    free(dst);
    tgi_source_close(&s);
}

static const int kinds[][2] = {{0, 1}, {0, 2}, {0, 4}, {0, 8}, {0, 16}, {2, 8}, {2, 16}, {3, 1},
                               {3, 2}, {3, 4}, {3, 8}, {4, 8}, {4, 16}, {6, 8}, {6, 16}};

static void weigh_form(form *f, double *least, double *top, uint64_t *seed)
{
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        f->colour = kinds[k][0];
        f->bits = kinds[k][1];
        f->clear = f->colour < 4;
        bytes b = make(f, seed);
        const double s = share(f, &b);
        if (f->w > 1000) /* else the data end before inflate takes its window */
            *least = s < *least ? s : *least;
        *top = s > *top ? s : *top;
        read_as_an_image(&b);
        free(b.p);
    }
}

static void test_reading_a_png_takes_no_more_than_is_planned(void)
{
    static const uint32_t widths[] = {1, 7, 8, 9, 1000, 65537, (1u << 20) + 1};
    static const size_t idats[] = {1u << 20, 100, 8192, 0};
    uint64_t seed = 5;
    double least = 2, top = 0;
    for (size_t w = 0; w < sizeof widths / sizeof widths[0]; w++)
        for (int way = 0; way < 4; way++) {
            const bool wide = widths[w] > 100000;
            form f = {.w = widths[w],
                      .h = wide               ? 2
                           : widths[w] < 1000 ? 50
                                              : 20,
                      .interlaced = way & 1,
                      .notes = way & 2,
                      .idat = wide ? idats[0] : idats[(way + w) % 4]};
            weigh_form(&f, &least, &top, &seed);
        }
    printf("between %.3f and %.3f of the bound\n", least, top);
    CHECK(top <= 1 && least > 0.6);
}

/* ---- Writing ---- */

typedef struct writing {
    tgi_png lib;
    bytes *file;
    uint32_t w, h;
    int colour, bits;
    size_t profile;
    const uint8_t *row;
} writing;

static void write_all(void *arg)
{
    static uint8_t icc[1 << 20];
    writing *w = arg;
    uint64_t seed = 3;
    for (size_t i = 132; i < w->profile; i++) /* it does not get smaller */
        icc[i] = (uint8_t)tg_rand(&seed);
    const uint8_t head[40] = {0,
                              (uint8_t)(w->profile >> 16),
                              (uint8_t)(w->profile >> 8),
                              (uint8_t)w->profile,
                              [12] = 'm',
                              'n',
                              't',
                              'r',
                              'R',
                              'G',
                              'B',
                              ' ',
                              'X',
                              'Y',
                              'Z',
                              ' ',
                              [36] = 'a',
                              'c',
                              's',
                              'p'};
    memcpy(icc, head, sizeof head);
    png_set_write_fn(w->lib.z, w->file, write_bytes, flush_nothing);
    tgi_png_start_writing(&w->lib, w->w, w->h, w->colour, w->bits);
    if (w->profile)
        png_set_iCCP(w->lib.z, w->lib.info, "name", 0, icc, (png_uint_32)w->profile);
    png_write_info(w->lib.z, w->lib.info);
    for (uint32_t y = 0; y < w->h; y++)
        png_write_row(w->lib.z, w->row);
    png_write_end(w->lib.z, NULL);
}

static double write_share(uint32_t width, uint32_t height, int k, size_t profile)
{
    const int samples = k + 1, bits = width % 2 ? 16 : 8;
    const size_t row = (size_t)width * (size_t)(samples * bits / 8);
    const size_t cap = tgi_png_write_bytes(row, profile);
    static const int colours[4] = {0, 4, 2, 6};
    bytes file = {0};
    uint64_t seed = 7;
    uint8_t *noise = malloc(row);
    for (size_t i = 0; i < row; i++)
        noise[i] = (uint8_t)tg_rand(&seed);
    writing w = {.lib = {.cap = cap, .arena = aligned_alloc(64, (cap + 63) / 64 * 64)},
                 .file = &file,
                 .w = width,
                 .h = height,
                 .colour = colours[k],
                 .bits = bits,
                 .profile = k > 1 ? profile : 0,
                 .row = noise};
    CHECK(tgi_png_begin(&w.lib, true));
    const bool done = tgi_png_step(&w.lib, write_all, &w);
    CHECK(done);
    if (!done)
        fprintf(stderr, "  %u x %u of %d samples, profile of %zu: %s\n", width, height, samples,
                w.profile, w.lib.text);
    CHECK(file.n > w.profile);
    const double part = (double)w.lib.most / (double)cap;
    free(w.lib.arena);
    free(file.p);
    free(noise);
    return part;
}

static void test_writing_a_png_takes_no_more_than_is_planned(void)
{
    static const uint32_t widths[] = {1, 64, 333, 40000, (1u << 20) + 1};
    static const size_t profiles[] = {0, 140, 3000, 16384, 300000, 1 << 20};
    double least = 2, top = 0;
    for (size_t w = 0; w < sizeof widths / sizeof widths[0]; w++)
        for (size_t i = 0; i < sizeof profiles / sizeof profiles[0]; i++)
            for (int k = 0; k < 4; k++) {
                const double s =
                    write_share(widths[w], widths[w] > 1000 ? 2 : 50, k, profiles[i]);
                top = s > top ? s : top;
                if (!profiles[i])
                    least = s < least ? s : least;
            }
    printf("between %.3f and %.3f of the bound\n", least, top);
    CHECK(top <= 1 && least > 0.4);
}

int main(void)
{
    snprintf(path, sizeof path, "test_png_memory.%d.png", (int)getpid());
#ifdef TG_WEIGHS_MALLOC
    RUN(test_reading_a_png_takes_no_more_than_is_planned);
    RUN(test_writing_a_png_takes_no_more_than_is_planned);
    unlink(path);
    return TEST_END();
#else
    (void)test_reading_a_png_takes_no_more_than_is_planned;
    (void)test_writing_a_png_takes_no_more_than_is_planned;
    TEST_SKIP("malloc cannot be interposed here");
#endif
}
