/* PNG files as images, put together here in every form there is, cut and bent as well. */
#include "engine/base/arith.h"
#include "io/exif.h"
#include "tests/unit/picture_kit.h"

#include <zlib.h>

/* ---- Reading ---- */

/* What the samples of a form mean: sample k of pixel p. */
static unsigned meaning(const png_form *f, const uint16_t *v, const uint8_t *palette, size_t p,
                        size_t k)
{
    if (f->colour == 3)
        return palette[4 * v[p] + k];
    const unsigned s = v[p * (size_t)png_channels(f) + k];
    return f->bits < 8 ? s * 255 / ((1u << f->bits) - 1) : s;
}

static int reads_back(const png_form *f, const uint16_t *v, const uint8_t *palette,
                      uint64_t *seed)
{
    tgi_err err = {0};
    tgi_source *s = NULL;
    /* Everything is kept, or a few rows and the file is begun again. */
    const tgi_open_opts o = {.threads = 2, .decode_budget = tg_rand(seed) & 1 ? 0 : 600u << 10};
    CHECK_OK(tgi_source_open(pic_path, &o, &s, &err), err);
    if (!s)
        return 0;
    const tgi_image_info *i = s->ops->info(s);
    const size_t c = (size_t)(f->colour == 3 ? (f->n_alpha ? 4 : 3) : png_channels(f));
    CHECK_EQ(i->samples, c);
    CHECK_EQ(i->dtype, f->bits == 16 ? TG_DTYPE_U16 : TG_DTYPE_U8);
    CHECK_NEAR(i->meta.resolution[1], 100, 1e-9);
    CHECK_NEAR(i->meta.resolution[0], 200, 1e-9);
    int equal = i->width == f->w && i->height == f->h;
    for (int b = 0; b < 5 && equal; b++) {
        const int64_t y0 = b ? tg_rand_in(seed, 0, f->h - 1) : 0;
        const int64_t x0 = b ? tg_rand_in(seed, 0, f->w - 1) : 0;
        const int64_t y1 = b ? tg_rand_in(seed, y0 + 1, f->h) : f->h;
        const int64_t x1 = b ? tg_rand_in(seed, x0 + 1, f->w) : f->w;
        uint16_t *got = pic_read(s, y0, y1, x0, x1, &err);
        CHECK_STR(err.text, "");
        for (size_t k = 0; got && k < (size_t)((y1 - y0) * (x1 - x0)) * c; k++) {
            const size_t w = (size_t)(x1 - x0), p = k / c;
            const size_t at = ((size_t)y0 + p / w) * f->w + (size_t)x0 + p % w;
            equal &= got[k] == meaning(f, v, palette, at, k % c);
        }
        free(got);
    }
    tgi_source_close(&s);
    return equal;
}

static void test_png_of_every_form_is_read_as_the_colours_it_means(void)
{
    static const int forms[][2] = {{0, 1}, {0, 2},  {0, 4},  {0, 8}, {0, 16},
                                   {2, 8}, {2, 16}, {3, 1},  {3, 2}, {3, 4},
                                   {3, 8}, {4, 8},  {4, 16}, {6, 8}, {6, 16}};
    uint64_t seed = 3;
    uint8_t palette[1024];
    int n = 0;
    for (size_t i = 0; i < sizeof palette; i++)
        palette[i] = (uint8_t)tg_rand(&seed);
    for (size_t k = 0; k < sizeof forms / sizeof forms[0]; k++)
        for (int way = 0; way < 8; way++) {
            png_form f = {.w = (uint32_t)tg_rand_in(&seed, 1, way > 5 ? 700 : 40),
                          .h = (uint32_t)tg_rand_in(&seed, 1, way > 5 ? 300 : 40),
                          .colour = forms[k][0],
                          .bits = forms[k][1],
                          .interlaced = way & 1,
                          .idat = way & 2 ? 100 : 1u << 20};
            f.n_palette = f.colour == 3 ? 1 << f.bits : 0;
            f.n_alpha = way & 4 ? f.n_palette / 2 : 0;
            for (int i = f.n_alpha; i < f.n_palette; i++)
                palette[4 * i + 3] = 255;
            if (f.interlaced && way > 5) /* has to fit the small budget as a whole */
                f.w = (uint32_t)tgi_min(f.w, 200), f.h = (uint32_t)tgi_min(f.h, 200);
            uint16_t *v = png_draw(&f, &seed);
            pic_bytes b = png_make(&f, v, palette);
            pic_write(b.p, b.n);
            const int same = reads_back(&f, v, palette, &seed);
            CHECK(same);
            if (!same)
                fprintf(stderr, "  colour %d, %d bits, %ux%u, interlaced %d\n", f.colour,
                        f.bits, f.w, f.h, f.interlaced);
            n += same;
            free(b.p);
            free(v);
        }
    printf("%d files\n", n);
}

/* ---- Damage ---- */

/* Another checksum of the pixels, under a right one of the last chunk. */
static void bend_adler(pic_bytes *b)
{
    size_t at = 8, last = 0;
    while (at + 12 < b->n) {
        last = at;
        at += 12 + ((size_t)b->p[at] << 24 | (size_t)b->p[at + 1] << 16 |
                    (size_t)b->p[at + 2] << 8 | b->p[at + 3]);
    }
    const size_t n = b->n - 12 - last - 12; /* IEND is behind it */
    CHECK(memcmp(b->p + last + 4, "IDAT", 4) == 0);
    b->p[last + 8 + n - 1] ^= 1;
    pic_bytes crc = {b->p + last + 8 + n, 0};
    png_put32(&crc, (uint32_t)crc32_z(0, b->p + last + 4, n + 4));
}

static void test_a_cut_or_bent_png_is_damage(void)
{
    uint64_t seed = 6;
    uint8_t palette[1024] = {0};
    for (int k = 0; k < 2; k++) {
        png_form f = {
            .w = 60, .h = 50, .colour = k ? 3 : 2, .bits = 8, .interlaced = k, .idat = 500};
        f.n_palette = k ? 256 : 0;
        uint16_t *v = png_draw(&f, &seed);
        pic_bytes b = png_make(&f, v, palette);
        pic_cut_and_bend(b, 40, 280); /* bytes of resolution mean something else, no more */
        free(b.p);
        free(v);
    }
}

/* The checksum of the data, which is the end of a PNG but for 16 bytes, is met before a row of
 * it counts: rows that end above it, in one chunk or in many, kept or not. */
static void test_no_row_of_a_png_counts_before_its_checksum(void)
{
    uint64_t seed = 9;
    for (int way = 0; way < 8; way++) {
        const png_form f = {
            .w = 700, .h = 300, .colour = 2, .bits = 8, .idat = way & 1 ? 100000 : 1u << 24};
        const tgi_open_opts o = {.threads = 1, .decode_budget = way & 2 ? 600u << 10 : 0};
        tgi_err err = {0};
        tgi_source *s = NULL;
        uint16_t *v = png_draw(&f, &seed);
        pic_bytes b = png_make(&f, v, NULL);
        if (way & 4) /* of the chunk; else of deflate, and the chunk's is right */
            b.p[b.n - 13] ^= 1;
        else
            bend_adler(&b);
        pic_write(b.p, b.n);
        CHECK_OK(tgi_source_open(pic_path, &o, &s, &err), err);
        CHECK_EQ(s->ops->stream_rows(s) >= f.h, !(way & 2));
        for (int64_t y = 0; y < f.h; y += 37) {
            const int64_t y1 = tgi_min(f.h, y + 37);
            tgi_err why = {0};
            uint16_t *got = pic_read(s, y, y1, 0, f.w, &why);
            CHECK(!got && strstr(why.text, "row 299: ") == why.text);
            free(got);
        }
        tgi_source_close(&s);
        free(b.p);
        free(v);
    }
}

/* Opened and read from end to end; its samples or NULL with *st and err. */
static uint16_t *read_png(const png_form *f, const uint16_t *v, const uint8_t *palette,
                          tg_status *st, tgi_err *err)
{
    tgi_source *s = NULL;
    uint16_t *all = NULL;
    pic_bytes b = png_make(f, v, palette);
    pic_write(b.p, b.n);
    free(b.p);
    *st = tgi_source_open(pic_path, NULL, &s, err);
    if (*st == TG_OK) {
        all = pic_read(s, 0, f->h, 0, f->w, err);
        *st = all ? TG_OK : TG_E_FORMAT;
    }
    tgi_source_close(&s);
    return all;
}

static void test_png_chunks_of_others_are_passed_over_and_critical_ones_refused(void)
{
    static const struct {
        const char *chunk;
        size_t n;
        const char *refusal; /* or NULL */
    } notes[] = {{"tEXtComment\0nobody reads this", 25, NULL},
                 {"prVtanything", 8, NULL},
                 {"gAMA\0\0\xb1\x8f", 4, NULL},
                 {"gAMA\0\0\0\0\0\0\0\0\0", 9, NULL}, /* of a wrong size */
                 {"sRGB\0", 1, NULL},
                 {"iCCPname\0\0no deflate data", 22, NULL},
                 {"eXIfno TIFF", 7, NULL},
                 {"pHYs\0", 1, NULL},
                 {"tRNS\0\0\0\0\0\0", 6, NULL}, /* a transparent colour: not applied */
                 {"PLTE\1\2\3", 3, NULL},       /* colours for those who have few */
                 {"PLTE\1\2", 2, NULL},
                 {"CrITanything", 8, "CrIT"},
                 {"IHDR\0", 1, "IHDR"}};
    const png_form plain = {.w = 20, .h = 10, .colour = 2, .bits = 8, .idat = 1000};
    uint64_t seed = 4;
    uint16_t *v = png_draw(&plain, &seed);
    for (size_t k = 0; k < sizeof notes / sizeof notes[0]; k++) {
        png_form f = plain;
        tgi_err err = {0};
        tg_status st;
        f.note = notes[k].chunk;
        f.note_bytes = notes[k].n;
        uint16_t *got = read_png(&f, v, NULL, &st, &err);
        CHECK(!notes[k].refusal || strstr(err.text, notes[k].refusal));
        CHECK_STATUS(st, notes[k].refusal ? TG_E_FORMAT : TG_OK, err);
        CHECK(!got || memcmp(got, v, 600 * sizeof *v) == 0);
        free(got);
    }
    free(v);
}

static void test_an_index_beyond_the_palette_is_damage(void)
{
    static const uint8_t palette[1024] = {0};
    for (int bits = 1; bits <= 8; bits *= 2)
        for (int interlaced = 0; interlaced < 2; interlaced++) {
            png_form f = {.w = 20, .h = 10, .colour = 3, .bits = bits, .idat = 1000};
            uint16_t v[200] = {0};
            tgi_err err = {0};
            tg_status st;
            f.interlaced = interlaced;
            f.n_palette = bits > 1 ? (1 << bits) - 1 : 1;
            free(read_png(&f, v, palette, &st, &err));
            CHECK_OK(st, err);
            v[137] = (uint16_t)f.n_palette;
            CHECK(!read_png(&f, v, palette, &st, &err));
            CHECK_EQ(st, TG_E_FORMAT);
        }
}

static void test_a_png_says_how_it_is_turned(void)
{
    char note[4 + TGI_EXIF_BYTES] = "eXIf";
    const png_form f = {.w = 4,
                        .h = 4,
                        .colour = 0,
                        .bits = 8,
                        .idat = 1000,
                        .note = note,
                        .note_bytes = TGI_EXIF_BYTES};
    const uint16_t v[16] = {0};
    tgi_exif_make(6, (uint8_t *)note + 4);
    tgi_err err = {0};
    tgi_source *s = NULL;
    pic_bytes b = png_make(&f, v, NULL);
    pic_write(b.p, b.n);
    CHECK_OK(tgi_source_open(pic_path, NULL, &s, &err), err);
    CHECK_EQ(s->ops->info(s)->meta.orientation, 6);
    tgi_source_close(&s);
    free(b.p);
}

/* Two sources of one file, a row of each in turn; and nothing is allocated for rows. */
static void test_two_sources_of_a_png_are_read_in_turns(void)
{
    const png_form f = {.w = 700, .h = 300, .colour = 2, .bits = 8, .idat = 3000};
    const tgi_open_opts o = {.threads = 1, .spare = 1};
    uint64_t seed = 11;
    tgi_err err = {0};
    tgi_source *s[2] = {NULL};
    uint16_t *v = png_draw(&f, &seed);
    pic_bytes b = png_make(&f, v, NULL);
    pic_write(b.p, b.n);
    for (int k = 0; k < 2; k++)
        CHECK_OK(tgi_source_open(pic_path, &o, &s[k], &err), err);
    tgi_mem_stats before = {0}, after = {0};
    tgi_mem_get_stats(&before);
    for (int64_t y = 0; y < f.h; y++)
        for (int k = 0; k < 2; k++) {
            const int64_t at = k ? (y * 7) % 40 : y; /* one goes back, too */
            uint16_t *got = pic_read(s[k], at, at + 1, 0, f.w, &err);
            CHECK(got && memcmp(got, v + (size_t)at * 2100, 2100 * sizeof *v) == 0);
            free(got);
        }
    tgi_mem_get_stats(&after);
    CHECK_EQ(after.requests, before.requests);
    for (int k = 0; k < 2; k++)
        tgi_source_close(&s[k]);
    free(b.p);
    free(v);
}

/* Headers that claim more than there is cost nothing. */
static void test_png_headers_that_claim_too_much_are_refused_before_memory_is_asked_for(void)
{
    static const struct {
        uint32_t w, h;
        int interlaced;
        size_t budget;
        tg_status want;
    } claims[] = {{2000000000, 2000000000, 0, 0, TG_E_FORMAT},
                  {60000, 60000, 1, 0, TG_E_FORMAT},
                  {1u << 31, 1, 0, 0, TG_E_FORMAT},
                  {0, 5, 0, 0, TG_E_FORMAT}};
    const png_form f = {.w = 4, .h = 4, .colour = 2, .bits = 8, .idat = 1000};
    uint16_t v[48] = {0};
    pic_bytes b = png_make(&f, v, NULL);
    for (size_t k = 0; k < sizeof claims / sizeof claims[0]; k++) {
        tgi_mem_stats before, after;
        tgi_err err = {0};
        tgi_source *s = NULL;
        pic_bytes head = {b.p + 16, 0};
        png_put32(&head, claims[k].w);
        png_put32(&head, claims[k].h);
        b.p[28] = (uint8_t)claims[k].interlaced;
        head.p = b.p + 29;
        head.n = 0;
        png_put32(&head, (uint32_t)crc32_z(0, b.p + 12, 17));
        pic_write(b.p, b.n);
        tgi_mem_get_stats(&before);
        CHECK_STATUS(tgi_source_open(pic_path, NULL, &s, &err), claims[k].want, err);
        tgi_mem_get_stats(&after);
        CHECK(after.peak_bytes - before.live_bytes < 64u << 20);
    }
    free(b.p);
}

static void test_an_interlaced_png_over_budget_is_refused_by_name(void)
{
    const png_form f = {
        .w = 300, .h = 300, .colour = 2, .bits = 8, .interlaced = 1, .idat = 9999};
    const tgi_open_opts o = {.threads = 1, .decode_budget = 200u << 10};
    uint64_t seed = 8;
    tgi_err err = {0};
    tgi_source *s = NULL;
    uint16_t *v = png_draw(&f, &seed);
    pic_bytes b = png_make(&f, v, NULL);
    pic_write(b.p, b.n);
    CHECK_EQ(tgi_source_open(pic_path, &o, &s, &err), TG_E_BUDGET);
    CHECK(strstr(err.text, "an interlaced PNG of 300 x 300") != NULL);
    free(b.p);
    free(v);
}

/* The least that a refusal names is enough, and the least. */
static void test_the_memory_that_a_png_is_refused_for_is_what_it_takes(void)
{
    static const uint32_t width[] = {300, 5000, 40000};
    uint64_t seed = 8;
    for (int k = 0; k < 12; k++) {
        png_form f = {.w = width[k / 4], .h = 9, .bits = k / 2 % 2 ? 16 : 8, .idat = 9999};
        f.interlaced = k % 2;
        f.colour = f.bits == 8 ? 2 : 6;
        uint16_t *v = png_draw(&f, &seed);
        pic_bytes b = png_make(&f, v, NULL);
        tgi_open_opts o = {.threads = 1, .decode_budget = 64u << 10};
        pic_write(b.p, b.n);
        tgi_err err = {0}, less = {0};
        tgi_source *s = NULL;
        CHECK_EQ(tgi_source_open(pic_path, &o, &s, &err), TG_E_BUDGET);
        CHECK_STR(err.asked_by, TGI_DECODER_ASKS);
        o.decode_budget = (size_t)err.tried_bytes - 1;
        CHECK_EQ(tgi_source_open(pic_path, &o, &s, &less), TG_E_BUDGET);
        CHECK_EQ(less.tried_bytes, err.tried_bytes);
        o.decode_budget++;
        CHECK_EQ(tgi_source_open(pic_path, &o, &s, NULL), TG_OK);
        CHECK(s && s->ops->codec_bytes(s) <=
                       o.decode_budget + (16u << 10)); /* the picture beside it */
        tgi_source_close(&s);
        free(b.p);
        free(v);
    }
}

/* A chunk with a profile of so many bytes; free it. */
static char *make_profile(size_t length, size_t *n)
{
    static const uint8_t white[12] = {0, 0, 0xf6, 0xd6, 0, 1, 0, 0, 0, 0, 0xd3, 0x2d};
    uint8_t *p = calloc(1, length);
    for (int k = 0; k < 4; k++)
        p[k] = (uint8_t)(length >> (24 - 8 * k));
    memcpy(p + 8, "\2\x40\0\0mntrRGB XYZ ", 16);
    memcpy(p + 36, "acsp", 4);
    memcpy(p + 68, white, 12);
    uLongf packed = compressBound(length);
    char *chunk = malloc(7 + packed);
    memcpy(chunk, "iCCPp\0", 7);
    compress2((Bytef *)chunk + 7, &packed, p, length, 1);
    *n = packed + 3;
    free(p);
    return chunk;
}

/* A profile is held in the budget, and left out where it takes more than the most. Damage behind
 * it is damage, not a lack of memory. */
static void test_a_profile_in_a_png_is_held_within_the_budget(void)
{
    static const struct {
        size_t profile, budget;
        tg_status want;
        int held;
    } turns[] = {
        {100u << 10, 64u << 10, TG_E_BUDGET, 0}, {100u << 10, 4u << 20, TG_OK, 1},
        {17u << 20, 64u << 20, TG_OK, 0},        {17u << 20, 4u << 20, TG_OK, 0},
        {100u << 10, 64u << 10, TG_E_FORMAT, 0}, {17u << 20, 4u << 20, TG_E_FORMAT, 0}};
    uint64_t seed = 8;
    png_form f = {.w = 30, .h = 20, .colour = 2, .bits = 8, .idat = 9999};
    uint16_t *v = png_draw(&f, &seed);
    for (size_t k = 0; k < sizeof turns / sizeof turns[0]; k++) {
        char *chunk = make_profile(turns[k].profile, &f.note_bytes);
        f.note = chunk;
        pic_bytes b = png_make(&f, v, NULL);
        if (turns[k].want == TG_E_FORMAT) /* the checksum of the profile's chunk is wrong */
            b.p[8 + 25 + 21 + f.note_bytes + 8] ^= 1;
        const tgi_open_opts o = {.threads = 1, .decode_budget = turns[k].budget};
        tgi_err err = {0};
        tgi_source *s = NULL;
        pic_write(b.p, b.n);
        CHECK_STATUS(tgi_source_open(pic_path, &o, &s, &err), turns[k].want, err);
        if (s) {
            const tgi_image_info *i = s->ops->info(s);
            CHECK_EQ(i->meta.icc_bytes, turns[k].held ? turns[k].profile : 0);
            CHECK_STR(i->note, turns[k].held ? ""
                                             : "its colour profile takes more than 16.00 MiB "
                                               "and is left out");
        }
        tgi_source_close(&s);
        free(b.p);
        free(chunk);
    }
    free(v);
}

/* Exif of any length costs nothing; where its first part does not say it, that is told. */
static void test_exif_of_any_length_says_how_a_png_is_turned(void)
{
    uint64_t seed = 8;
    png_form f = {.w = 30, .h = 20, .colour = 0, .bits = 8, .idat = 9999};
    uint16_t *v = png_draw(&f, &seed);
    static const size_t length[] = {100u << 10, 9u << 20, 17u << 20};
    for (int k = 0; k < 6; k++) {
        const int far = k % 2;
        f.note_bytes = length[k / 2];
        char *note = calloc(1, f.note_bytes + 4);
        memcpy(note, "eXIf", 4);
        tgi_exif_make(6, (uint8_t *)note + 4);
        note[4 + 5] = (char)far; /* the directory is 64 KiB on */
        f.note = note;
        pic_bytes b = png_make(&f, v, NULL);
        const tgi_open_opts o = {.threads = 1, .decode_budget = 128u << 10};
        tgi_err err = {0};
        tgi_source *s = NULL;
        pic_write(b.p, b.n);
        CHECK_OK(tgi_source_open(pic_path, &o, &s, &err), err);
        if (s) {
            const tgi_image_info *i = s->ops->info(s);
            CHECK_EQ(i->meta.orientation, far ? 0 : 6);
            CHECK_EQ(strstr(i->note, "do not say how the picture is turned") != NULL, far);
        }
        tgi_source_close(&s);
        free(b.p);
        free(note);
    }
    free(v);
}

/* What belongs before the pixels and stands behind them counts for nothing, and is told of. */
static void test_chunks_behind_the_pixels_of_a_png_are_told_of(void)
{
    static const struct {
        const char *chunk;
        size_t n;
        int told;
    } behind[] = {{"tRNS\0\1\0\2\0\3", 6, 1},
                  {"pHYs\0\0\0\1\0\0\0\1\1", 9, 1},
                  {"iCCPp\0\0", 3, 1},
                  {"eXIfMM\0*", 4, 1},
                  {"tRNS", 0, 1},
                  {"tEXta\0b", 3, 0}};
    uint64_t seed = 8;
    for (size_t k = 0; k < 2 * sizeof behind / sizeof behind[0]; k++) {
        png_form f = {.w = 30, .h = 20, .colour = 2, .bits = 8, .idat = 9999};
        f.interlaced = k % 2;
        uint16_t *v = png_draw(&f, &seed);
        atomic_int surplus = 0;
        const tgi_open_opts o = {.threads = 1, .surplus = &surplus};
        tgi_err err = {0};
        tgi_source *s = NULL;
        pic_bytes b = png_make(&f, v, NULL);
        b.n -= 12;
        png_chunk(&b, behind[k / 2].chunk, behind[k / 2].chunk + 4, behind[k / 2].n);
        png_chunk(&b, "IEND", NULL, 0);
        pic_write(b.p, b.n);
        CHECK_OK(tgi_source_open(pic_path, &o, &s, &err), err);
        free(pic_read(s, 3, 5, 0, 30, &err));
        CHECK_STR(err.text, "");
        CHECK_EQ(atomic_load(&surplus), behind[k / 2].told ? TGI_SURPLUS_BEHIND : 0);
        tgi_source_close(&s);
        free(b.p);
        free(v);
    }
}

int main(void)
{
    pic_begin();
    RUN(test_png_of_every_form_is_read_as_the_colours_it_means);
    RUN(test_a_cut_or_bent_png_is_damage);
    RUN(test_no_row_of_a_png_counts_before_its_checksum);
    RUN(test_png_chunks_of_others_are_passed_over_and_critical_ones_refused);
    RUN(test_an_index_beyond_the_palette_is_damage);
    RUN(test_a_png_says_how_it_is_turned);
    RUN(test_two_sources_of_a_png_are_read_in_turns);
    RUN(test_png_headers_that_claim_too_much_are_refused_before_memory_is_asked_for);
    RUN(test_an_interlaced_png_over_budget_is_refused_by_name);
    RUN(test_the_memory_that_a_png_is_refused_for_is_what_it_takes);
    RUN(test_a_profile_in_a_png_is_held_within_the_budget);
    RUN(test_exif_of_any_length_says_how_a_png_is_turned);
    RUN(test_chunks_behind_the_pixels_of_a_png_are_told_of);
    unlink(pic_path);
    return TEST_END();
}
