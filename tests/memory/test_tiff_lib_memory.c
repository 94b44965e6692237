/* libtiff has no hooks for memory: what it takes in decoding a block is bounded by the plan
 * (unpack_tiff.c), and here malloc is interposed and the bound held against what it takes. */
#include "io/tiff_form.h"
#include "tests/memory/weigh.h"
#include "tests/unit/old_jpeg_files.h"
#include "tests/unit/tiff_lib_files.h"

static char path[256];

static void be_quiet(const char *module, const char *fmt, va_list ap)
{
    (void)module, (void)fmt, (void)ap;
}

/* What decoding the block takes beside its pixels, as a share of what is planned; also of
 * blocks that are damaged: `bent` is how many bytes are changed. */
static double share(const tgi_packing *p, const uint8_t *block, size_t n, size_t want, int bent,
                    uint64_t *seed, size_t *bytes)
{
    uint8_t *dst = malloc(want), *src = malloc(n);
    long long left;
    tgi_unpack *u = NULL;
    tgi_err err = {0};
    memcpy(src, block, n);
    for (int i = 0; i < bent; i++)
        src[tg_rand_in(seed, 0, (int64_t)n - 1)] = (uint8_t)tg_rand(seed);
    CHECK_OK(tgi_unpack_open(p, &u, &err),
             err); /* what our own pool keeps is there after that */
    tgi_unpack_close(&u);
    weigh_begin();
    tg_status st = tgi_unpack_open(p, &u, &err);
    CHECK_OK(st, err);
    st = tgi_unpack_run(u, src, n, dst, want, want, &err);
    tgi_unpack_close(&u);
    *bytes = weigh_end(&left);
    CHECK_EQ(left, 0);
    if (!bent)
        CHECK_OK(st, err);
    free(dst);
    free(src);
    return (double)*bytes / (double)tgi_unpack_bytes(p);
}

static void test_decoding_a_block_takes_no_more_than_is_planned(void)
{
    static const uint32_t sides[][2] = {{1, 1}, {64, 64}, {512, 512}, {4096, 8}, {8, 4096}};
    uint64_t seed = 5;
    for (int f = 0; f < LIB_FORMS; f++) {
        double worst = 0, worst_bent = 0;
        for (size_t k = 0; k < sizeof sides / sizeof sides[0]; k++)
            for (lib_noise = 0; lib_noise < 3; lib_noise++) {
                const lib_shape a = {.w = sides[k][0], .h = sides[k][1], .bh = sides[k][1]};
                uint8_t *block;
                size_t n, bytes;
                lib_write(path, &lib_forms[f], &a, &seed);
                const tgi_packing p = lib_first_block(path, &lib_forms[f], &a, &block, &n);
                const size_t want = lib_row(&lib_forms[f], a.w) * a.h;
                const double s = share(&p, block, n, want, 0, &seed, &bytes);
                worst = s > worst ? s : worst;
                CHECK(s <= 1);
                if (k == 2 && lib_noise == 1)
                    printf("%-20s 512 x 512: %zu bytes, %.2f for a byte, %.2f for a sample\n",
                           lib_forms[f].name, bytes, (double)bytes / (double)want,
                           (double)bytes / (512.0 * 512.0 * (double)lib_inner(&lib_forms[f])));
                for (int i = 0; i < 5; i++) {
                    const double b = share(&p, block, n, want, 1 + 2 * i, &seed, &bytes);
                    worst_bent = b > worst_bent ? b : worst_bent;
                    CHECK(b <= 1);
                }
                free(block);
            }
        printf("%-20s at most %.3f of the bound, damaged %.3f\n", lib_forms[f].name, worst,
               worst_bent);
        CHECK(worst > 0.2); /* else nothing was weighed */
    }
}

/* The page of old JPEG that the file has, all strips in order: what libtiff takes, as a share
 * of what is planned for it. 0: the file is none any more. */
static double share_of_old_jpeg(tg_status *st, size_t *bytes, size_t *planned)
{
    tgi_tiff_file t = {.big_endian = false};
    tgi_tiff_page page;
    tgi_packing p;
    tgi_unpack *u = NULL;
    tgi_err err = {0};
    tgi_mem_stats before, open;
    uint8_t *tables = NULL;
    long long left = 0;
    double share = 0;
    CHECK_OK(tgi_rfile_open(path, &t.f, &err), err);
    CHECK_OK(tgi_window_init(&t.win, 65536, &err), err);
    CHECK_OK(tgi_tiff_header(&t, &err), err);
    *st = tgi_tiff_page_parse(&t, t.first_ifd, &page, &err);
    if (*st == TG_OK)
        *st = tgi_tiff_page_layout(&page, t.f.size, &err);
    if (*st == TG_OK && page.codec == TGI_TIFF_OLD_JPEG && page.block_bytes < 1 << 24) {
        CHECK_OK(tgi_packing_of(&page, false, &t.f, &p, &tables, &err), err);
        uint8_t *dst = malloc(page.block_bytes);
        tgi_mem_get_stats(&before);
        CHECK_OK(tgi_unpack_open(&p, &u, &err), err);
        tgi_mem_get_stats(&open);
        tgi_unpack_close(&u); /* what our own pool keeps is there after that */
        weigh_begin();
        CHECK_OK(tgi_unpack_open(&p, &u, &err), err);
        for (uint64_t b = 0; *st == TG_OK && b < page.n_blocks; b++) {
            const uint64_t rows = tgi_min(page.block_h, page.height - b * page.block_h);
            *st = tgi_unpack_place(u, &page, b, &err);
            if (*st == TG_OK)
                *st = tgi_unpack_run(u, dst, 0, dst, page.block_bytes, rows * page.stored_row,
                                     &err);
        }
        tgi_unpack_close(&u);
        *bytes = weigh_end(&left);
        *planned = tgi_unpack_bytes(&p) - (open.live_bytes - before.live_bytes);
        share = (double)*bytes / (double)*planned;
        free(dst);
    }
    CHECK_EQ(left, 0);
    tgi_window_free(&t.win);
    tgi_rfile_close(&t.f);
    return share;
}

/* Each table as large as a marker can be, before the others. */
static void swell(old_file *o)
{
    uint8_t *all = calloc(1, o->n + 8 * 65537), *p = all + o->n;
    memcpy(all, o->bytes, o->n);
    *p++ = 0xff, *p++ = 0xd8;
    for (int i = 0; i < 8; i++, p += 65537) {
        p[0] = 0xff, p[1] = 0xc4, p[2] = p[3] = 0xff;
        p[4] = (uint8_t)(i / 4 << 4 | i % 4);
    }
    free(o->bytes);
    o->bytes = all;
    const size_t stream = o->n;
    o->n = (size_t)(p - all);
    size_t e = (size_t)all[4] | (size_t)all[5] << 8 | (size_t)all[6] << 16;
    for (e += 2; (all[e] | all[e + 1] << 8) != 513; e += 12)
        CHECK(e < stream);
    old_number(o, all + e + 8, stream, 4);
    old_number(o, all + e + 20, o->n - stream, 4);
}

static void test_so_does_a_page_of_old_jpeg(void)
{
    static const struct {
        uint32_t w, h, rows;
        uint16_t across, down;
        int colour, flavour;
    } of[] = {{1, 1, 1, 2, 2, 1, OLD_STREAM},      {120, 100, 100, 2, 2, 1, OLD_STREAM},
              {120, 128, 8, 1, 1, 1, OLD_TABLES},  {4096, 512, 16, 2, 2, 1, OLD_HEAD},
              {4096, 512, 512, 4, 2, 1, OLD_HEAD}, {60000, 16, 16, 2, 1, 1, OLD_TABLES},
              {60000, 16, 8, 1, 1, 0, OLD_TABLES}, {16, 60000, 8, 1, 1, 0, OLD_TABLES},
              {60000, 1, 1, 1, 2, 1, OLD_STREAM},  {60000, 2, 2, 4, 2, 1, OLD_STREAM},
              {60000, 1, 1, 1, 1, 1, OLD_STREAM},  {60000, 1, 1, 1, 1, 0, OLD_STREAM},
              {16, 60000, 16, 2, 2, 1, OLD_HEAD},  {512, 512, 512, 2, 2, 1, OLD_TABLES}};
    uint64_t seed = 7;
    double worst = 0;
    for (size_t k = 0; k < sizeof of / sizeof of[0]; k++) {
        const old_form form = {.w = of[k].w,
                               .h = of[k].h,
                               .rows = of[k].rows,
                               .colour = of[k].colour,
                               .across = of[k].across,
                               .down = of[k].down,
                               .flavour = (old_flavour)of[k].flavour,
                               .pages = 1};
        old_file o = old_make(&form, &seed);
        for (int bent = 0; bent < 7; bent++) {
            size_t bytes = 0, planned = 1;
            tg_status st;
            for (int i = 0; i < bent && bent < 6; i++)
                o.bytes[tg_rand_in(&seed, 8, (int64_t)o.n - 1)] ^= 0x55;
            if (bent == 6) {
                free(o.bytes);
                o = old_make(&form, &seed);
                if (form.flavour != OLD_TABLES)
                    swell(&o);
            }
            old_write(path, o.bytes, o.n);
            const double s = share_of_old_jpeg(&st, &bytes, &planned);
            CHECK(bent || st == TG_OK);
            if (bent == 0 || bent == 6)
                printf("old JPEG %u x %u, %u rows, %u x %u%s: %zu of %zu bytes\n", form.w,
                       form.h, form.rows, form.across, form.down, bent ? ", swollen" : "",
                       bytes, planned);
            worst = s > worst ? s : worst;
            CHECK(s <= 1);
        }
        free(o.bytes);
    }
    printf("old JPEG at most %.3f of the bound\n", worst);
    CHECK(worst > 0.2);
}

/* What libdeflate takes beside zlib, where blocks are decoded whole and it is there: a stream
 * pays for nothing that it does not use. */
static void test_so_does_a_decoder_of_deflate(void)
{
    size_t planned[2] = {0}, bytes[2] = {0};
    for (int whole = 0; whole < 2; whole++) {
        const tgi_packing p = {
            .compression = TGI_TIFF_DEFLATE, .fill_order = 1, .whole = whole};
        tgi_unpack *u = NULL;
        tgi_err err = {0};
        long long left;
        if (tgi_unpack_open(&p, &u, &err) == TG_E_UNSUPPORTED)
            return; /* a build without zlib */
        tgi_unpack_close(&u);
        weigh_begin();
        CHECK_OK(tgi_unpack_open(&p, &u, &err), err);
        tgi_unpack_close(&u);
        bytes[whole] = weigh_end(&left);
        CHECK_EQ(left, 0);
        planned[whole] = tgi_unpack_bytes(&p);
    }
    printf("libdeflate: %zu of %zu bytes\n", bytes[1] - bytes[0], planned[1] - planned[0]);
    CHECK(bytes[1] - bytes[0] <= planned[1] - planned[0]);
}

int main(void)
{
#ifdef TG_WEIGHS_MALLOC
    snprintf(path, sizeof path, "test_tiff_lib_memory.%d.tif", (int)getpid());
    TIFFSetWarningHandler(be_quiet);
    TIFFSetErrorHandler(be_quiet);
    RUN(test_decoding_a_block_takes_no_more_than_is_planned);
    RUN(test_so_does_a_page_of_old_jpeg);
    RUN(test_so_does_a_decoder_of_deflate);
    unlink(path);
    return TEST_END();
#else
    (void)test_decoding_a_block_takes_no_more_than_is_planned;
    (void)test_so_does_a_page_of_old_jpeg, (void)test_so_does_a_decoder_of_deflate;
    (void)be_quiet, (void)path;
    TEST_SKIP("malloc cannot be interposed here");
#endif
}
