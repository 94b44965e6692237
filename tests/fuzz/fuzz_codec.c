/* fuzz_codec.c - any bytes as one packed block of a TIFF, through every decoder: once whole,
 * once in pieces. Both must give the same pixels, and neither may touch a byte beyond what it
 * was given: source, tables and destination have just their sizes.
 *
 * The first eight bytes say which decoder and how large the block is, then come the bytes of
 * JPEGTables, if any, then the block. Of YCbCr, the tables are what it means. Old JPEG needs a
 * file: the block is one, and its first page is decoded, strip by strip. */
#include "engine/base/arith.h"
#include "io/tiff_form.h"
#include "tests/fuzz/fuzz_target.h"

enum { CODEC, HOW, WIDTH, SAMPLES, ROWS, TABLES, PIECE_IN, PIECE_OUT, HEAD };
#define MOST_HISTORY ((size_t)1 << 20)

static const uint32_t codecs[] = {
    TGI_TIFF_NONE,      TGI_TIFF_LZW,        TGI_TIFF_JPEG,        TGI_TIFF_DEFLATE_OLD,
    TGI_TIFF_PACKBITS,  TGI_TIFF_LZMA,       TGI_TIFF_ZSTD,        TGI_TIFF_WEBP,
    TGI_TIFF_CCITT_RLE, TGI_TIFF_CCITT_FAX3, TGI_TIFF_CCITT_FAX4,  TGI_TIFF_CCITT_RLEW,
    TGI_TIFF_LERC,      TGI_TIFF_PIXARLOG,   TGI_TIFF_SGILOG,      TGI_TIFF_SGILOG24,
    TGI_TIFF_NEXT,      TGI_TIFF_JBIG,       TGI_TIFF_THUNDERSCAN, TGI_TIFF_AS_RGB,
    TGI_TIFF_OLD_JPEG};
static const uint32_t photometrics[] = {1, TGI_TIFF_RGB, 5, TGI_TIFF_YCBCR};

/* What libtiff's codecs take beside what `how` says of all: kinds of numbers, and no other
 * bits. */
static void as_libtiff_takes(tgi_packing *p, unsigned how)
{
    static const uint8_t lerc[8][2] = {{8, 1},  {8, 2},  {16, 1}, {16, 2},
                                       {32, 1}, {32, 2}, {32, 3}, {64, 3}},
                         three[4][2] = {{8, 1}, {16, 1}, {32, 3}, {16, 2}};
    static const uint32_t stored[] = {TGI_TIFF_NONE, TGI_TIFF_LZW, TGI_TIFF_PACKBITS,
                                      TGI_TIFF_DEFLATE};
    const bool log = p->compression == TGI_TIFF_SGILOG || p->compression == TGI_TIFF_SGILOG24;
    const uint8_t *kind =
        p->compression == TGI_TIFF_LERC ? lerc[how >> 1 & 7] : three[how >> 1 & 3];
    p->bits = kind[0];
    p->format = kind[1];
    if (p->compression == TGI_TIFF_NEXT || p->compression == TGI_TIFF_JBIG) {
        p->bits = p->compression == TGI_TIFF_NEXT ? 2 : 1;
        p->format = p->samples = 1;
    } else if (p->compression == TGI_TIFF_PIXARLOG && p->format == 2) {
        p->format = 1;
    } else if (log) {
        p->samples = p->samples < 3 ? 1 : 3;
        p->photometric = p->samples == 3 ? TGI_TIFF_LOG_LUV : TGI_TIFF_LOG_L;
    }
    if (p->compression != TGI_TIFF_JBIG)
        p->fill_order = 1;
    p->big_endian = how >> 4 & 1;
    if (p->compression == TGI_TIFF_AS_RGB) {
        p->bits = 8, p->format = 1, p->samples = 3;
        p->stored_as = stored[how >> 5 & 3];
        p->photometric = TGI_TIFF_YCBCR;
        const unsigned sharing = how >> 1 & 7; /* the seventh: 4 x 4 */
        p->ycbcr.subsampling[0] = (uint16_t)(sharing < 6 ? 1u << sharing % 3 : 4);
        p->ycbcr.subsampling[1] = (uint16_t)(sharing < 6 ? 1 + sharing / 3 : 4);
        p->ycbcr.n_coefficients = p->n_tables >= 12 ? 3 : 0;
        p->ycbcr.n_reference = p->n_tables >= 36 ? 6 : 0;
        if (p->n_tables >= 36)
            memcpy(p->ycbcr.reference, p->tables + 12, 24);
        if (p->n_tables >= 12)
            memcpy(p->ycbcr.coefficients, p->tables, 12);
    }
    p->lerc[1] = (how >> 5) % 3;
    p->extra = how >> 7 ? 2 : 0;
}

/* Bytes at the very end of a block of their own. */
static uint8_t *copy_of(const uint8_t *p, size_t n)
{
    uint8_t *c = malloc(n ? n : 1);
    if (n)
        memcpy(c, p, n);
    return c;
}

static tg_status in_pieces(tgi_unpack *u, const uint8_t *src, size_t n, uint8_t *dst,
                           size_t want, size_t in, size_t out, tgi_err *err)
{
    size_t used = 0, got = 0;
    tgi_unpack_begin(u);
    for (bool moved = true; moved && got < want;) {
        const size_t give = tgi_min(in, n - used), room = tgi_min(out, want - got);
        uint8_t *piece = copy_of(src + used, give);
        tgi_pieces io = {.src = piece, .n = give, .dst = dst + got, .room = room};
        const tg_status st = tgi_unpack_more(u, &io, err);
        moved = io.n < give || io.room < room || (io.n && give < n - used);
        free(piece);
        if (st != TG_OK)
            return st;
        if (io.n > give || io.room > room)
            abort();
        used += give - io.n;
        got += room - io.room;
        if (io.n == give && in <= n) /* too little to go on */
            in *= 2;
        if (io.ended)
            break;
    }
    return got == want ? TG_OK : tgi_fail(err, TG_E_FORMAT, "too few pixels");
}

static void decode(const tgi_packing *p, const uint8_t *src, size_t n, const uint8_t *head)
{
    const size_t stored = p->bits ? ((size_t)p->width * p->samples * p->bits + 7) / 8 : 0;
    const size_t want = stored ? stored * (1u + head[ROWS] % 64u) : p->block_bytes,
                 row = (size_t)p->width * p->samples;
    const size_t in = 1u + head[PIECE_IN], out = row * (1u + head[PIECE_OUT] % 8u);
    tgi_err err = {0};
    tgi_unpack *u = NULL;
    tg_status st = tgi_unpack_open(p, &u, &err);
    fuzz_check(st, &err);
    if (st != TG_OK)
        return;
    tgi_unpack_close(&u); /* what our own pool keeps is there after that */
    const size_t before = fuzz_weigh();
    if (tgi_unpack_open(p, &u, &err) != TG_OK)
        abort();
    uint8_t *whole = malloc(want), *pieces = malloc(want);
    memset(whole, 1, want);
    memset(pieces, 2, want);
    st = tgi_unpack_run(u, src, n, whole, want, want, &err);
    fuzz_check(st, &err);
    if (tgi_unpack_streams(p->compression)) {
        err = (tgi_err){0};
        const tg_status again = in_pieces(u, src, n, pieces, want, in, out, &err);
        fuzz_check(again, &err);
        if (st == TG_OK && (again != TG_OK || memcmp(whole, pieces, want) != 0))
            abort();
    }
    /* A decoder that met damage decodes the next block all the same. */
    err = (tgi_err){0};
    const tg_status twice = tgi_unpack_run(u, src, n, pieces, want, want, &err);
    if (twice != st || (st == TG_OK && memcmp(whole, pieces, want) != 0))
        abort();
    tgi_unpack_close(&u);
    /* libtiff has no hooks for memory: what it took was planned */
    if (tgi_unpack_is_native(p->compression) &&
        fuzz_weighed.most - before > tgi_unpack_bytes(p) + 2 * want)
        abort();
    free(whole);
    free(pieces);
}

/* ---- Old JPEG ---- */

/* All strips of the page, forwards or backwards; sums of what came of each. */
static void old_strips(const tgi_packing *p, const tgi_tiff_page *page, bool backwards,
                       uint32_t *sums)
{
    uint8_t *dst = malloc(page->block_bytes);
    tgi_unpack *u = NULL;
    tgi_err err = {0};
    const tg_status opened = tgi_unpack_open(p, &u, &err);
    if (opened != TG_OK) { /* a build without libtiff */
        fuzz_check(opened, &err);
        memset(sums, 0, (size_t)page->n_blocks * sizeof *sums);
        free(dst);
        return;
    }
    const size_t before = fuzz_weigh();
    for (uint64_t i = 0; i < page->n_blocks; i++) {
        const uint64_t k = backwards ? page->n_blocks - 1 - i : i;
        const size_t want =
            (size_t)tgi_min(page->block_h, page->height - k * page->block_h) * page->stored_row;
        err = (tgi_err){0};
        tg_status st = tgi_unpack_place(u, page, k, &err);
        if (st == TG_OK)
            st = tgi_unpack_run(u, dst, 0, dst, want, want, &err);
        fuzz_check(st, &err);
        sums[k] = 1u - (uint32_t)st;
        for (size_t j = 0; st == TG_OK && j < want; j++)
            sums[k] = sums[k] * 31 + dst[j];
    }
    tgi_unpack_close(&u);
    if (fuzz_weighed.most - before > tgi_unpack_bytes(p))
        abort();
    free(dst);
}

static void old_jpeg(const uint8_t *data, size_t n)
{
    tgi_tiff_file t = {.f.fd = -1};
    tgi_tiff_page page;
    tgi_packing p;
    tgi_err err = {0};
    uint8_t *tables = NULL;
    char path[64];
    fuzz_file(data, n, path);
    tg_status st = tgi_rfile_open(path, &t.f, &err);
    if (st == TG_OK)
        st = tgi_window_init(&t.win, 4096, &err);
    if (st == TG_OK)
        st = tgi_tiff_header(&t, &err);
    if (st == TG_OK)
        st = tgi_tiff_page_parse(&t, t.first_ifd, &page, &err);
    if (st == TG_OK)
        st = tgi_tiff_page_layout(&page, t.f.size, &err);
    if (st == TG_OK && page.codec == TGI_TIFF_OLD_JPEG && page.n_blocks <= 64 &&
        page.block_bytes <= 1 << 18) {
        uint32_t sums[2][64];
        if (tgi_packing_of(&page, t.big_endian, &t.f, &p, &tables, &err) != TG_OK)
            abort();
        for (int k = 0; k < 2; k++)
            old_strips(&p, &page, k, sums[k]);
        if (memcmp(sums[0], sums[1], (size_t)page.n_blocks * sizeof sums[0][0]) != 0)
            abort();
    }
    tgi_window_free(&t.win);
    tgi_rfile_close(&t.f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n < HEAD)
        return -1;
    const size_t n_tables = tgi_min(data[TABLES], n - HEAD), n_block = n - HEAD - n_tables;
    uint8_t *tables = copy_of(data + HEAD, n_tables);
    uint8_t *block = copy_of(data + HEAD + n_tables, n_block);
    tgi_packing p = {.compression = codecs[data[CODEC] % (sizeof codecs / sizeof codecs[0])],
                     .fill_order = data[HOW] & 1 ? 2 : 1,
                     .photometric = photometrics[data[HOW] >> 1 & 3],
                     .fax_options = data[HOW] >> 3,
                     .width = 1u + data[WIDTH],
                     .samples = 1u + data[SAMPLES] % 4u,
                     .tables = n_tables ? tables : NULL,
                     .n_tables = n_tables};
    if (p.compression == TGI_TIFF_THUNDERSCAN)
        p.bits = 4, p.samples = 1;
    if (p.compression == TGI_TIFF_WEBP && p.samples < 3) /* the reader refuses it */
        p.samples += 2;
    if (tgi_unpack_is_native(p.compression) || p.compression == TGI_TIFF_AS_RGB)
        as_libtiff_takes(&p, data[HOW]);
    p.block_bytes =
        (size_t)p.width * p.samples * (1u + data[ROWS] % 64u) * (p.bits > 8 ? p.bits / 8 : 1);
    if (tgi_unpack_has_history(p.compression) != TGI_HISTORY_NONE) {
        uint8_t *head = copy_of(block, tgi_min(n_block, TGI_CODEC_HEAD));
        p.history = tgi_unpack_history(&p, head, tgi_min(n_block, TGI_CODEC_HEAD));
        free(head);
    }
    if (p.compression == TGI_TIFF_OLD_JPEG)
        old_jpeg(block, n_block);
    else if (p.history <= MOST_HISTORY) /* the reader compares it with its budget */
        decode(&p, block, n_block, data);
    free(tables);
    free(block);
    fuzz_check_leaks();
    return 0;
}
