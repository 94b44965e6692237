/* The mark or checksum behind the pixels of a block: it is met before a pixel of the block
 * counts, whatever is read of it, in whatever order, in whatever budget. */
#include "engine/base/arith.h"
#include "io/deflate.h"
#include "io/image.h"
#include "io/lzw.h"
#include "io/tiff_ifd.h"
#include "io/zstd_codec.h"
#include "tests/tg_test.h"

/* Three tiles across, two down; the lower ones reach far below the image. */
enum { W = 520, H = 5000, TW = 256, TH = 4096, ACROSS = 3, TILES = 6, BOXES = 20 };

static char path[256];
static uint8_t pixels[H][W];

typedef enum damage { WRONG_PIXEL, CUT, LONG, NO_MARK } damage;

typedef struct made_file {
    uint16_t compression;
    int bad; /* tile; -1: none */
    damage how;
} made_file;

/* ---- Files ---- */

static size_t bound_of(unsigned compression, size_t n)
{
    return compression == TGI_TIFF_LZW    ? tgi_lzw_bound(n)
           : compression == TGI_TIFF_ZSTD ? tgi_zstd_bound(n)
                                          : tgi_deflate_bound(n);
}

static size_t pack(unsigned compression, const uint8_t *src, size_t n, uint8_t *dst)
{
    const size_t cap = bound_of(compression, n);
    const size_t state = compression == TGI_TIFF_LZW    ? tgi_lzw_state_bytes()
                         : compression == TGI_TIFF_ZSTD ? tgi_zstd_state_bytes(1, n)
                                                        : tgi_deflate_state_bytes();
    void *memory = aligned_alloc(64, tgi_max(state, 64));
    const size_t got = compression == TGI_TIFF_LZW ? tgi_lzw(memory, src, n, dst)
                       : compression == TGI_TIFF_ZSTD
                           ? tgi_zstd(tgi_zstd_open(memory, 1, n), src, n, dst, cap)
                           : tgi_deflate(tgi_deflate_open(memory, 6), src, n, dst, cap);
    CHECK(got > 8);
    free(memory);
    return got;
}

/* The packed tile k. A wrong pixel is packed as if it were right, with the checksum of before;
 * what is too long by a pixel has its end mark. */
static size_t pack_tile(const made_file *m, int k, uint8_t *dst)
{
    const size_t n = (size_t)TW * TH + (k == m->bad && m->how == LONG);
    uint8_t *raw = calloc(1, n), *bent = malloc(bound_of(m->compression, n));
    for (int y = 0; y < TH && k / ACROSS * TH + y < H; y++)
        for (int x = 0; x < TW && k % ACROSS * TW + x < W; x++)
            raw[y * TW + x] = pixels[k / ACROSS * TH + y][k % ACROSS * TW + x];
    size_t got = pack(m->compression, raw, n, dst);
    if (k == m->bad && m->how == CUT)
        got = got / 2;
    if (k == m->bad && m->how == NO_MARK)
        got--; /* a mark is longer than a byte */
    if (k == m->bad && m->how == WRONG_PIXEL) {
        uint8_t seal[4];
        memcpy(seal, dst + got - 4, 4);
        raw[1000 * TW + 7] ^= 1;
        got = pack(m->compression, raw, n, bent);
        memcpy(dst, bent, got);
        memcpy(dst + got - 4, seal, 4);
    }
    free(raw);
    free(bent);
    return got;
}

static void put(FILE *f, unsigned tag, unsigned type, uint32_t n, uint32_t value)
{
    const uint16_t head[2] = {(uint16_t)tag, (uint16_t)type};
    fwrite(head, 2, 2, f);
    fwrite(&n, 4, 1, f);
    fwrite(&value, 4, 1, f);
}

static void write_file(const made_file *m)
{
    FILE *f = fopen(path, "wb");
    uint8_t *packed = malloc(bound_of(m->compression, (size_t)TW * TH + 1));
    uint32_t at[TILES], count[TILES], arrays, directory;
    const uint16_t n_tags = 10;
    CHECK(f != NULL);
    fwrite("II*\0\0\0\0\0", 1, 8, f);
    for (int k = 0; k < TILES; k++) {
        at[k] = (uint32_t)ftell(f);
        count[k] = (uint32_t)pack_tile(m, k, packed);
        fwrite(packed, 1, count[k], f);
    }
    arrays = (uint32_t)ftell(f);
    fwrite(at, 4, TILES, f);
    fwrite(count, 4, TILES, f);
    directory = (uint32_t)ftell(f);
    fwrite(&n_tags, 2, 1, f);
    put(f, 256, 4, 1, W);
    put(f, 257, 4, 1, H);
    put(f, 258, 3, 1, 8);
    put(f, 259, 3, 1, m->compression);
    put(f, 262, 3, 1, 1);
    put(f, 277, 3, 1, 1);
    put(f, 322, 4, 1, TW);
    put(f, 323, 4, 1, TH);
    put(f, 324, 4, TILES, arrays);
    put(f, 325, 4, TILES, arrays + 4 * TILES);
    fwrite("\0\0\0\0", 1, 4, f);
    fseek(f, 4, SEEK_SET);
    fwrite(&directory, 4, 1, f);
    CHECK(fclose(f) == 0);
    free(packed);
}

/* ---- Reading ---- */

/* Blocks held whole; a stream for each column (of zstd, for two of three); one for all. */
static const struct {
    size_t budget;
    int spare, streams;
} ways[] = {{0, 0, 0}, {4u << 20, 0, 1}, {4u << 20, 1, 1}};
enum { WAYS = sizeof ways / sizeof ways[0] };

typedef struct box {
    int64_t y0, y1, x0, x1;
} box;

/* Bands, single rows, all of it, a box that ends far above the end of its tiles. */
static box draw_box(uint64_t *seed, int i)
{
    const int64_t y0 = tg_rand_in(seed, 0, H - 1), x0 = tg_rand_in(seed, 0, W - 1);
    const int64_t rows = i % 5 == 0 ? H : i % 5 == 1 ? 1 : i % 5 == 2 ? 48 : 500;
    if (i % 10 == 0)
        return (box){0, H, 0, W};
    return (box){y0, tgi_min(H, y0 + rows), x0, tg_rand_in(seed, x0 + 1, W)};
}

static int touches(const box *b, int tile)
{
    const int64_t y = tile / ACROSS * TH, x = tile % ACROSS * TW;
    return tile >= 0 && b->y0 < y + TH && b->y1 > y && b->x0 < x + TW && b->x1 > x;
}

static int64_t tile_of(int64_t y, int64_t x)
{
    return y / TH * ACROSS + x / TW;
}

static tgi_source *opened(int way, tgi_bad_region_fn *on_bad, void *arg)
{
    const tgi_open_opts o = {.threads = 4,
                             .decode_budget = ways[way].budget,
                             .spare = ways[way].spare,
                             .on_bad = on_bad,
                             .on_bad_arg = arg};
    tgi_err err = {0};
    tgi_source *s = NULL;
    CHECK_OK(tgi_source_open(path, &o, &s, &err), err);
    if (s)
        CHECK_EQ(s->ops->stream_rows(s) > 0, ways[way].streams);
    return s;
}

static tg_status read_box(tgi_source *s, int i, const box *b, uint8_t *got, tgi_err *err)
{
    const size_t pitch = (size_t)(b->x1 - b->x0);
    memset(got, 0xee, pitch * (size_t)(b->y1 - b->y0));
    return s->ops->read(s, i % 4, 0, 0, 1, b->y0, b->y1, b->x0, b->x1, got, pitch, 0, err);
}

/* Every pixel is the one written, or 0 in the tile `bad`. */
static int is_right(const box *b, const uint8_t *got, int bad)
{
    int right = 1;
    for (int64_t y = b->y0; y < b->y1; y++)
        for (int64_t x = b->x0; x < b->x1; x++)
            right &= *got++ == (tile_of(y, x) == bad ? 0 : pixels[y][x]);
    return right;
}

static void no_box_of_a_bad_tile_is_handed_out(const made_file *m)
{
    uint8_t *got = malloc(sizeof pixels);
    write_file(m);
    for (int way = 0; way < WAYS; way++) {
        uint64_t seed = 40 + (uint64_t)m->bad;
        tgi_source *s = opened(way, NULL, NULL);
        int silent = 0, wrong = 0;
        for (int i = 0; s && i < BOXES; i++) {
            tgi_err err = {0};
            const box b = draw_box(&seed, i);
            const tg_status st = read_box(s, i, &b, got, &err);
            silent += st == TG_OK && touches(&b, m->bad);
            wrong += !touches(&b, m->bad) && (st != TG_OK || !is_right(&b, got, -1));
        }
        CHECK_EQ(silent, 0);
        CHECK_EQ(wrong, 0);
        if (silent || wrong)
            fprintf(stderr, "  compression %u, tile %d, way %d\n", m->compression, m->bad, way);
        if (s)
            tgi_source_close(&s);
    }
    free(got);
}

static void test_a_wrong_pixel_under_the_old_checksum_is_seen_in_every_budget(void)
{
    static const uint16_t sealed[] = {TGI_TIFF_DEFLATE, TGI_TIFF_ZSTD};
    for (size_t c = 0; c < sizeof sealed / sizeof sealed[0]; c++)
        for (int bad = -1; bad < TILES; bad += bad < 0 ? 2 : 3) /* none, above, at the edge */
            no_box_of_a_bad_tile_is_handed_out(&(made_file){sealed[c], bad, WRONG_PIXEL});
}

static void test_a_tile_with_more_than_its_pixels_is_seen_in_every_budget(void)
{
    no_box_of_a_bad_tile_is_handed_out(&(made_file){TGI_TIFF_LZW, 1, LONG});
    no_box_of_a_bad_tile_is_handed_out(&(made_file){TGI_TIFF_LZW, 5, LONG});
}

/* Some writers leave it out. */
static void test_a_tile_without_an_end_mark_is_read(void)
{
    const made_file m = {TGI_TIFF_LZW, 4, NO_MARK};
    const box all = {0, H, 0, W};
    uint8_t *got = malloc(sizeof pixels);
    write_file(&m);
    for (int way = 0; way < WAYS; way++) {
        tgi_err err = {0};
        tgi_source *s = opened(way, NULL, NULL);
        CHECK_OK(read_box(s, 0, &all, got, &err), err);
        CHECK(is_right(&all, got, -1));
        tgi_source_close(&s);
    }
    free(got);
}

typedef struct told {
    int64_t y0, y1, x0, x1;
    int n, differ;
    char reason[200];
} told;

static tg_status note(void *arg, const tgi_bad_region *r, tgi_err *err)
{
    told *t = arg;
    (void)err;
    if (!t->n++) {
        *t = (told){r->y0, r->y1, r->x0, r->x1, 1, 0, ""};
        snprintf(t->reason, sizeof t->reason, "%s", r->reason);
    }
    t->differ += t->y0 != r->y0 || t->y1 != r->y1 || t->x0 != r->x0 || t->x1 != r->x1;
    return TG_OK;
}

static void a_bad_tile_is_zeros(const made_file *m)
{
    uint8_t *got = malloc(sizeof pixels);
    char reason[200] = "";
    write_file(m);
    for (int way = 0; way < WAYS; way++) {
        uint64_t seed = 50 + (uint64_t)m->bad;
        told t = {0};
        tgi_source *s = opened(way, note, &t);
        int wrong = 0, asked = 0;
        for (int i = 0; s && i < BOXES; i++) {
            tgi_err err = {0};
            const box b = draw_box(&seed, i);
            CHECK_OK(read_box(s, i, &b, got, &err), err);
            wrong += !is_right(&b, got, m->bad);
            asked += touches(&b, m->bad);
        }
        CHECK_EQ(wrong, 0);
        CHECK(asked > 1 && t.n == asked && !t.differ);
        CHECK(t.y0 == m->bad / ACROSS * TH && t.y1 == tgi_min(H, t.y0 + TH));
        CHECK(t.x0 == m->bad % ACROSS * TW && t.x1 == tgi_min(W, t.x0 + TW));
        if (way == 0)
            memcpy(reason, t.reason, sizeof reason);
        CHECK_STR(t.reason, reason);
        if (s)
            tgi_source_close(&s);
    }
    free(got);
}

static void test_a_bad_tile_counts_as_zeros_all_of_it_in_every_budget(void)
{
    static const made_file files[] = {{TGI_TIFF_DEFLATE, 1, WRONG_PIXEL},
                                      {TGI_TIFF_DEFLATE, 5, WRONG_PIXEL},
                                      {TGI_TIFF_DEFLATE, 4, CUT},
                                      {TGI_TIFF_ZSTD, 1, WRONG_PIXEL},
                                      {TGI_TIFF_ZSTD, 4, WRONG_PIXEL},
                                      {TGI_TIFF_ZSTD, 4, CUT},
                                      {TGI_TIFF_LZW, 1, CUT},
                                      {TGI_TIFF_LZW, 4, CUT},
                                      {TGI_TIFF_LZW, 1, LONG},
                                      {TGI_TIFF_LZW, 4, LONG}};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        a_bad_tile_is_zeros(&files[i]);
}

int main(void)
{
    snprintf(path, sizeof path, "/tmp/tegula_seal_%d.tif", (int)getpid());
    uint64_t seed = 1;
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++)
            pixels[y][x] = (uint8_t)(x * 3 + y + (int)(tg_rand(&seed) & 7));
    RUN(test_a_wrong_pixel_under_the_old_checksum_is_seen_in_every_budget);
    RUN(test_a_tile_with_more_than_its_pixels_is_seen_in_every_budget);
    RUN(test_a_tile_without_an_end_mark_is_read);
    RUN(test_a_bad_tile_counts_as_zeros_all_of_it_in_every_budget);
    unlink(path);
    return TEST_END();
}
