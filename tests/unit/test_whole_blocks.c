/* LZW and deflate have a faster way for whole blocks: what comes of one, good, damaged, cut off
 * or too long, is what the stream makes of it, word by word. */
#include "engine/base/arith.h"
#include "io/deflate.h"
#include "io/lzw.h"
#include "io/tiff_codec.h"
#include "tests/tg_test.h"

#define MOST 40000

/* Runs, slopes or noise. */
static void draw(uint8_t *p, size_t n, int kind, uint64_t *seed)
{
    uint8_t v = (uint8_t)tg_rand(seed);
    for (size_t i = 0; i < n; i++) {
        if (kind == 2 || tg_rand(seed) % (kind ? 6 : 4000) == 0)
            v = (uint8_t)(v + (tg_rand(seed) >> (kind == 2 ? 0 : 61)));
        p[i] = v;
    }
}

static size_t pack(uint32_t compression, const uint8_t *src, size_t n, uint8_t *dst, size_t cap)
{
    const bool lzw = compression == TGI_TIFF_LZW;
    uint8_t *state = malloc(lzw ? tgi_lzw_state_bytes() : tgi_deflate_state_bytes());
    const size_t got = lzw ? tgi_lzw(state, src, n, dst)
                           : tgi_deflate(tgi_deflate_open(state, 6), src, n, dst, cap);
    CHECK(got > 0);
    free(state);
    return got;
}

static tg_status as_stream(tgi_unpack *u, const uint8_t *src, size_t n, uint8_t *dst,
                           size_t want, tgi_err *err)
{
    tgi_pieces io = {.src = src, .n = n, .dst = dst, .room = want};
    size_t seen = 0;
    tgi_unpack_begin(u);
    for (size_t left = n + 1, room = want + 1; io.room && (io.n < left || io.room < room);) {
        left = io.n, room = io.room;
        TGI_TRY(tgi_unpack_more(u, &io, err));
    }
    return io.room ? tgi_unpack_too_short(u, want - io.room, want, err)
                   : tgi_unpack_seal(u, &io, &seen, 1, err);
}

/* Whether it is good; both ways say the same. */
static bool same_by(uint32_t compression, bool photoshop, const uint8_t *src, size_t n,
                    size_t want)
{
    tgi_packing p = {
        .compression = compression, .fill_order = 1, .one_more = photoshop, .whole = true};
    uint8_t *block = malloc(n ? n : 1), *whole = malloc(want), *stream = malloc(want);
    tgi_unpack *u = NULL, *v = NULL;
    tgi_err a = {0}, b = {0};
    memcpy(block, src, n); /* of just its size, for who looks at bounds */
    CHECK_OK(tgi_unpack_open(&p, &u, &a), a);
    p.whole = false;
    CHECK_OK(tgi_unpack_open(&p, &v, &a), a);
    const tg_status st = tgi_unpack_run(u, block, n, whole, want, want, &a);
    CHECK_EQ(as_stream(v, block, n, stream, want, &b), st);
    CHECK(strcmp(a.text, b.text) == 0);
    CHECK(st != TG_OK || memcmp(whole, stream, want) == 0);
    tgi_unpack_close(&u);
    tgi_unpack_close(&v);
    free(block);
    free(whole);
    free(stream);
    return st == TG_OK;
}

static bool same(uint32_t compression, const uint8_t *src, size_t n, size_t want)
{
    return same_by(compression, false, src, n, want);
}

static void check_codec(uint32_t compression)
{
    static uint8_t src[MOST], packed[3 * MOST];
    uint64_t seed = 91;
    int good = 0, bad = 0;
    for (int i = 0; i < 120; i++) {
        const size_t n = (size_t)tg_rand_in(&seed, 2, i % 2 ? 300 : MOST);
        draw(src, n, i % 3, &seed);
        const size_t m = pack(compression, src, n, packed, sizeof packed);
        CHECK(same(compression, packed, m, n));
        /* more than is wanted: a checksum says that it is whole, a mark that it is not */
        CHECK_EQ(same(compression, packed, m, n - n / 3), compression != TGI_TIFF_LZW || n < 3);
        CHECK(!same(compression, packed, m, n + 1));
        CHECK(!same(compression, packed, (size_t)tg_rand_in(&seed, 0, (int64_t)m / 2), n));
        for (int k = 0; k < 8; k++) {
            const size_t at = (size_t)tg_rand_in(&seed, 0, (int64_t)m - 1);
            const uint8_t was = packed[at];
            packed[at] ^= (uint8_t)(1u << k);
            *(same(compression, packed, m, n) ? &good : &bad) += 1;
            packed[at] = was;
        }
    }
    printf("%s: %d changed blocks decode, %d do not\n", tgi_tiff_compression_name(compression),
           good, bad);
    CHECK(bad > 100);
}

static void test_lzw(void)
{
    check_codec(TGI_TIFF_LZW);
}

/* Some writers set no end mark; but the last string of such a block ends where the block does. */
static void test_lzw_without_a_mark_ends_with_a_string(void)
{
    uint8_t good[] = {0x80, 0x00, 0x40, 0x20, 0x00, 0x28, 0x02, 0x0c,
                      0x00, 0x00, 0xc1, 0x60, 0xb0, 0x68, 0x08}; /* 15 pixels and the mark */
    const size_t n = sizeof good;
    CHECK(same(TGI_TIFF_LZW, good, n, 15));
    good[13] = 0xa0; /* the last code: another string, of a pixel more */
    CHECK(!same(TGI_TIFF_LZW, good, n, 15));
    CHECK(!same_by(TGI_TIFF_LZW, true, good, n, 15)); /* Photoshop sets the mark */
}

/* Photoshop 7 packs a byte more than there are pixels, as a string of its own or as the end of one. */
static void test_lzw_of_photoshop_has_a_byte_more(void)
{
    static uint8_t src[3000], packed[9000];
    uint64_t seed = 17;
    for (int i = 0; i < 30; i++) {
        const size_t n = (size_t)tg_rand_in(&seed, 3, sizeof src);
        draw(src, n, i % 3, &seed);
        const size_t m = pack(TGI_TIFF_LZW, src, n, packed, sizeof packed);
        CHECK(same_by(TGI_TIFF_LZW, true, packed, m, n));
        CHECK(same_by(TGI_TIFF_LZW, true, packed, m, n - 1));
        CHECK(!same_by(TGI_TIFF_LZW, true, packed, m, n - 2));
        CHECK(!same(TGI_TIFF_LZW, packed, m, n - 1));
    }
}

/* Codes as they were before TIFF 5.0: the least significant bit first, no wider than they must. */
typedef struct old_lzw {
    uint8_t *dst;
    size_t bits;
    unsigned width, next;     /* of the next code; what the reader's next string will be */
    uint16_t with[4096][256]; /* the code of a string and a byte, or 0 */
} old_lzw;

static void put_old(old_lzw *o, unsigned code)
{
    for (unsigned b = 0; b < o->width; b++, o->bits++)
        o->dst[o->bits / 8] |= (uint8_t)((code >> b & 1) << o->bits % 8);
    o->next++;
    if (code == 256) {
        memset(o->with, 0, sizeof o->with);
        o->width = 9, o->next = 257; /* the code behind a clear makes no string */
    }
    o->width += o->next == 1u << o->width && o->width < 12;
}

static size_t pack_old(const uint8_t *src, size_t n, uint8_t *dst)
{
    static old_lzw o;
    o = (old_lzw){.dst = dst, .width = 9};
    memset(dst, 0, 3 * n + 64);
    put_old(&o, 256);
    unsigned prefix = src[0];
    for (size_t i = 1; i < n; i++) {
        const unsigned longer = o.with[prefix][src[i]];
        if (!longer) {
            put_old(&o, prefix);
            o.with[prefix][src[i]] = (uint16_t)o.next;
            if (o.next == 4094)
                put_old(&o, 256);
        }
        prefix = longer ? longer : src[i];
    }
    put_old(&o, prefix);
    put_old(&o, 257);
    return (o.bits + 7) / 8;
}

static void test_lzw_in_the_old_order(void)
{
    static uint8_t src[MOST], packed[3 * MOST + 64], got[MOST];
    const tgi_packing p = {.compression = TGI_TIFF_LZW, .fill_order = 1, .whole = true};
    uint64_t seed = 23;
    int bad = 0;
    for (int i = 0; i < 60; i++) {
        const size_t n = (size_t)tg_rand_in(&seed, 2, i % 2 ? 300 : MOST);
        tgi_unpack *u = NULL;
        tgi_err err = {0};
        draw(src, n, i % 3, &seed);
        const size_t m = pack_old(src, n, packed);
        CHECK_OK(tgi_unpack_open(&p, &u, &err), err);
        CHECK_OK(tgi_unpack_run(u, packed, m, got, n, n, &err), err);
        CHECK(memcmp(src, got, n) == 0);
        tgi_unpack_close(&u);
        CHECK(same(TGI_TIFF_LZW, packed, m, n));
        CHECK(!same(TGI_TIFF_LZW, packed, m, n + 1));
        CHECK(!same(TGI_TIFF_LZW, packed, m / 2, n));
        for (int k = 0; k < 8; k++) {
            const size_t at = (size_t)tg_rand_in(&seed, 0, (int64_t)m - 1);
            packed[at] ^= (uint8_t)(1u << k);
            bad += !same(TGI_TIFF_LZW, packed, m, n);
            packed[at] ^= (uint8_t)(1u << k);
        }
    }
    CHECK(bad > 50);
}

static void test_deflate(void)
{
    if (tgi_deflate_available())
        check_codec(TGI_TIFF_DEFLATE);
}

int main(void)
{
    RUN(test_lzw);
    RUN(test_lzw_without_a_mark_ends_with_a_string);
    RUN(test_lzw_of_photoshop_has_a_byte_more);
    RUN(test_lzw_in_the_old_order);
    RUN(test_deflate);
    return TEST_END();
}
