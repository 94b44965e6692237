/* What the writer puts on disk is what libtiff (and tifffile, where there is one) reads. */
#include "engine/out/commit.h"
#include "engine/out/journal.h"
#include "io/crc32c.h"
#include "io/deflate.h"
#include "io/png.h"
#include "tests/tg_test.h"

#include <sys/stat.h>
#include <tiffio.h>
#include <zlib.h>

static char folder[] = "/dev/shm/tg_tiff_XXXXXX", other_folder[] = "/tmp/tg_tiff_XXXXXX";
static char path[64];

/* Write a whole image of random pixels through the journal and the window; `pixels` gets them
 * in plane order, samples interleaved. Tiles are submitted in an order shuffled inside the
 * window. */
static void write_image(const tgi_sink_layout *l, uint8_t *pixels, int window, int encoders)
{
    tgi_err e = {0};
    tgi_journal *j = NULL;
    tgi_commit *c = NULL;
    uint64_t seed = 7;
    const size_t pitch = (size_t)l->width * l->pixel_bytes;
    for (size_t i = 0; i < (size_t)(l->n_planes * l->height) * pitch; i++)
        pixels[i] = (uint8_t)(i / 7 + tg_rand(&seed) % 4);
    CHECK_OK(tgi_journal_open(path, 1, NULL, &j, &e), e);
    CHECK_OK(tgi_journal_begin(j, l, "job", 3, &e), e);
    void *memory = NULL;
    if (posix_memalign(&memory, 64, tgi_commit_bytes(l, window, encoders)))
        return;
    const tgi_commit_opts o = {tgi_journal_tiles(j), l, window, encoders, memory};
    CHECK_OK(tgi_commit_open(&o, &c, &e), e);
    for (int64_t s0 = 0; s0 < l->n_tiles; s0 += window) {
        const int64_t n = l->n_tiles - s0 < window ? l->n_tiles - s0 : window;
        for (int64_t k = n - 1; k >= 0;
             k--) { /* the newest first: order is the window's work */
            const int64_t id = s0 + k;
            void *slot = NULL;
            CHECK_OK(tgi_commit_slot(c, id, &slot, &e), e);
            const tgi_tile_place p = tgi_sink_tile_place(l, id);
            memset(slot, 0xaa, l->tile_bytes); /* what the writer must zero outside the image */
            for (int64_t y = 0; y < p.height; y++)
                memcpy((char *)slot + (size_t)(y * l->tile_w) * l->pixel_bytes,
                       pixels + (size_t)(p.plane * l->height + p.y + y) * pitch +
                           (size_t)p.x * l->pixel_bytes,
                       (size_t)p.width * l->pixel_bytes);
            CHECK_OK(tgi_commit_submit(c, id, id, &e), e);
        }
    }
    CHECK_OK(tgi_commit_close(&c, &e), e);
    CHECK_OK(tgi_journal_finish(j, &e), e);
    tgi_journal_close(&j);
    free(memory);
}

/* Bytes of the image that libtiff reads differently; -1 when it does not read it. */
static int64_t differences(const tgi_sink_layout *l, const uint8_t *pixels)
{
    TIFF *t = TIFFOpen(path, "r");
    if (!t)
        return -1;
    int64_t bad = 0;
    uint8_t *tile = malloc((size_t)TIFFTileSize(t));
    const size_t pitch = (size_t)l->width * l->pixel_bytes;
    for (int64_t id = 0; id < l->n_tiles; id++) {
        const tgi_tile_place p = tgi_sink_tile_place(l, id);
        const int64_t per = l->tiles_y * l->tiles_x;
        if (id % per == 0 && id && !TIFFReadDirectory(t))
            bad++;
        if (TIFFReadEncodedTile(t, (uint32_t)(id % per), tile, -1) != (tmsize_t)l->tile_bytes)
            bad++;
        for (int64_t y = 0; y < l->tile_h; y++)
            for (size_t x = 0; x < (size_t)l->tile_w * l->pixel_bytes; x++) {
                const uint8_t got = tile[(size_t)y * (size_t)l->tile_w * l->pixel_bytes + x];
                const int in = y < p.height && x < (size_t)p.width * l->pixel_bytes;
                bad += got != (in ? pixels[(size_t)(p.plane * l->height + p.y + y) * pitch +
                                           (size_t)p.x * l->pixel_bytes + x]
                                  : 0);
            }
    }
    bad += TIFFReadDirectory(t) != 0; /* no plane too many */
    free(tile);
    TIFFClose(t);
    return bad;
}

static void check_round_trip(const tgi_sink_spec *spec)
{
    tgi_err e = {0};
    tgi_sink_layout *l = NULL;
    CHECK_OK(tgi_sink_layout_make(spec, &l, &e), e);
    if (!l)
        return;
    uint8_t *pixels = malloc((size_t)(l->n_planes * l->height * l->width) * l->pixel_bytes);
    write_image(l, pixels, 5, 2);
    const int64_t bad = differences(l, pixels);
    if (bad)
        fprintf(stderr, "%s %s %s predictor %d\n", l->axes, tgi_dtype_name(l->dtype),
                tgi_compression_name(l->compression), l->predictor);
    CHECK_EQ(bad, 0);
    struct stat st;
    CHECK(!stat(path, &st) && (uint64_t)st.st_size <= l->file_bytes);
    if (l->compression == TGI_COMPRESSION_NONE)
        CHECK_EQ(st.st_size, l->file_bytes);
    free(pixels);
    tgi_sink_layout_free(&l);
}

static void test_every_type_and_codec_comes_back_through_libtiff(void)
{
    static const tg_dtype types[] = {TG_DTYPE_U8,  TG_DTYPE_I8,  TG_DTYPE_U16, TG_DTYPE_I16,
                                     TG_DTYPE_U32, TG_DTYPE_I32, TG_DTYPE_U64, TG_DTYPE_I64,
                                     TG_DTYPE_F16, TG_DTYPE_F32, TG_DTYPE_F64};
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++)
        for (int c = TGI_COMPRESSION_NONE; c <= TGI_COMPRESSION_LZW; c++)
            for (int predictor = 1; predictor <= (c ? 2 : 1); predictor++) {
                if (c == TGI_COMPRESSION_ZSTD && !TIFFIsCODECConfigured(50000))
                    continue;
                check_round_trip(&(tgi_sink_spec){.dtype = types[t],
                                                  .axes = "ZCYX",
                                                  .shape = {2, 2, 37, 50},
                                                  .tile_h = 32,
                                                  .tile_w = 16,
                                                  .compression = (tgi_compression)c,
                                                  .predictor = predictor == 1 ? 1
                                                               : tgi_dtype_is_float(types[t])
                                                                   ? 3
                                                                   : 2});
            }
}

static void test_samples_planes_and_single_tiles_come_back(void)
{
    for (int c = TGI_COMPRESSION_NONE; c <= TGI_COMPRESSION_LZW; c++)
        for (int samples = 2; samples <= 5; samples++)
            for (int type = TG_DTYPE_U8; type <= TG_DTYPE_F32;
                 type += TG_DTYPE_U16 - TG_DTYPE_U8)
                check_round_trip(&(tgi_sink_spec){.dtype = (tg_dtype)type,
                                                  .axes = "TYXS",
                                                  .shape = {3, 33, 31, samples},
                                                  .tile_h = 16,
                                                  .tile_w = 32,
                                                  .compression = (tgi_compression)c,
                                                  .predictor = c ? type == TG_DTYPE_F32   ? 3
                                                                   : type != TG_DTYPE_F16 ? 2
                                                                                          : 1
                                                                 : 1});
    check_round_trip(&(tgi_sink_spec){.dtype = TG_DTYPE_U16, .axes = "YX", .shape = {1, 1}});
    check_round_trip(&(tgi_sink_spec){.dtype = TG_DTYPE_U8,
                                      .axes = "TZCYX",
                                      .shape = {2, 3, 2, 16, 32},
                                      .tile_h = 16,
                                      .tile_w = 16,
                                      .compression = TGI_COMPRESSION_LZW});
}

/* LZW restarts its table after some 4,000 codes: noise and constants reach every width. */
static void test_large_tiles_of_noise_and_of_nothing_survive_lzw(void)
{
    tgi_err e = {0};
    tgi_sink_layout *l = NULL;
    const tgi_sink_spec spec = {.dtype = TG_DTYPE_U8,
                                .axes = "YX",
                                .shape = {512, 512},
                                .tile_h = 512,
                                .tile_w = 512,
                                .compression = TGI_COMPRESSION_LZW};
    CHECK_OK(tgi_sink_layout_make(&spec, &l, &e), e);
    uint8_t *raw = malloc(l->tile_bytes), *keep = malloc(l->tile_bytes);
    void *state = NULL;
    if (posix_memalign(&state, 64, tgi_tile_codec_bytes(l)))
        return;
    for (int kind = 0; kind < 3; kind++) {
        uint64_t seed = 3;
        for (size_t i = 0; i < l->tile_bytes; i++)
            raw[i] = (uint8_t)(kind == 0 ? 0 : tg_rand(&seed) >> (kind == 1 ? 0 : 62));
        memcpy(keep, raw, l->tile_bytes);
        tgi_journal *j = NULL;
        tgi_tile_codec *codec = NULL;
        size_t n = 0;
        uint8_t *code = malloc(l->tile_bound);
        CHECK_OK(tgi_tile_codec_open(l, state, &codec, &e), e);
        CHECK_OK(tgi_tile_encode(codec, raw, code, &n, &e), e);
        CHECK_OK(tgi_journal_open(path, 1, NULL, &j, &e), e);
        CHECK_OK(tgi_journal_begin(j, l, "", 0, &e), e);
        CHECK_OK(tgi_journal_append(j, 0, code, n, &e), e);
        CHECK_OK(tgi_journal_finish(j, &e), e);
        tgi_journal_close(&j);
        CHECK_EQ(differences(l, keep), 0);
        free(code);
    }
    free(raw);
    free(keep);
    free(state);
    tgi_sink_layout_free(&l);
}

/* ---- The front alone --------------------------------------------------------------------- */

typedef struct front_bytes {
    uint8_t *p;
    size_t n;
} front_bytes;

static tg_status collect(void *arg, const void *bytes, size_t n, tgi_err *err)
{
    front_bytes *f = arg;
    (void)err;
    memcpy(f->p + f->n, bytes, n);
    f->n += n;
    return TG_OK;
}

/* By two fronts it is known which bytes are an offset's or a length's: none that is fixed, and
 * all that are not. */
static void test_what_is_fixed_in_a_front_is_told_by_two(void)
{
    static char scratch[TGI_SINK_SCRATCH];
    const tgi_sink_spec specs[] = {
        {.dtype = TG_DTYPE_U8, .axes = "ZYX", .shape = {3, 40, 70}, .tile_h = 16, .tile_w = 16},
        {.dtype = TG_DTYPE_F32, .axes = "YX", .shape = {600, 700}, .pyramid = TGI_PYRAMID_MEAN},
        {.dtype = TG_DTYPE_U16, .axes = "YX", .shape = {65536, 65536}}};
    for (size_t s = 0; s < sizeof specs / sizeof specs[0]; s++) {
        tgi_err e = {0};
        tgi_sink_layout *l = NULL;
        CHECK_OK(tgi_sink_layout_make(&specs[s], &l, &e), e);
        const size_t n = (size_t)l->n_tiles;
        uint64_t *offset = malloc(n * sizeof *offset);
        uint32_t *length = malloc(n * sizeof *length);
        for (size_t i = 0; i < n; i++) {
            offset[i] = l->bigtiff ? UINT64_MAX : UINT32_MAX;
            length[i] = UINT32_MAX;
        }
        front_bytes f[3];
        for (int k = 0; k < 3; k++)
            f[k] = (front_bytes){malloc(l->front_bytes), 0};
        CHECK_OK(tgi_sink_front(l, NULL, NULL, scratch, collect, &f[0], &e), e);
        CHECK_OK(tgi_sink_front(l, offset, length, scratch, collect, &f[1], &e), e);
        CHECK_OK(tgi_sink_front_ones(l, scratch, collect, &f[2], &e), e);
        CHECK_EQ(f[2].n, l->front_bytes);
        CHECK(memcmp(f[1].p, f[2].p, l->front_bytes) == 0);
        size_t told = 0;
        for (size_t i = 0; i < l->front_bytes; i++) {
            told += f[0].p[i] != f[2].p[i];
            CHECK(f[0].p[i] == f[2].p[i] || (f[0].p[i] == 0 && f[2].p[i] == 0xff));
        }
        CHECK_EQ(told, n * (l->bigtiff ? 12 : 8));
        for (int k = 0; k < 3; k++)
            free(f[k].p);
        free(offset);
        free(length);
        tgi_sink_layout_free(&l);
    }
}

/* Classic up to 4 GiB, BigTIFF beyond; offsets above 2^32 are read as they were given. */
static void test_bigtiff_begins_where_classic_would_overflow(void)
{
    tgi_err e = {0};
    tgi_sink_layout *l = NULL;
    tgi_sink_spec s = {.dtype = TG_DTYPE_U8,
                       .axes = "YX",
                       .shape = {65536, 65536 - 1024},
                       .tile_h = 1024,
                       .tile_w = 1024};
    CHECK_OK(tgi_sink_layout_make(&s, &l, &e), e);
    CHECK_EQ(l->bigtiff, 0);
    tgi_sink_layout_free(&l);
    s.shape[1] = 65536;
    CHECK_OK(tgi_sink_layout_make(&s, &l, &e), e);
    CHECK_EQ(l->bigtiff, 1);
    CHECK_EQ(l->file_bytes, l->front_bytes + (1ull << 32));

    uint64_t *offset = malloc((size_t)l->n_tiles * sizeof *offset);
    uint32_t *length = malloc((size_t)l->n_tiles * sizeof *length);
    for (int64_t i = 0; i < l->n_tiles; i++) {
        offset[i] = l->front_bytes + (uint64_t)(l->n_tiles - 1 - i) * l->tile_bytes;
        length[i] = (uint32_t)l->tile_bytes;
    }
    front_bytes f = {malloc(l->front_bytes), 0};
    char *scratch = malloc(TGI_SINK_SCRATCH);
    CHECK_OK(tgi_sink_front(l, offset, length, scratch, collect, &f, &e), e);
    CHECK_EQ(f.n, l->front_bytes);
    FILE *out = fopen(path, "wb");
    CHECK(out && fwrite(f.p, 1, f.n, out) == f.n && !fclose(out));
    CHECK(!truncate(path, (off_t)l->file_bytes)); /* sparse: the tiles are a hole */
    TIFF *t = TIFFOpen(path, "r");
    CHECK(t != NULL);
    uint64_t *got = NULL;
    CHECK(t && TIFFGetField(t, TIFFTAG_TILEOFFSETS, &got) && got[0] == offset[0] &&
          got[0] > UINT32_MAX - 4 * 1024 * 1024 && got[l->n_tiles - 1] == l->front_bytes);
    if (t)
        TIFFClose(t);
    free(scratch);
    free(f.p);
    free(length);
    free(offset);
    tgi_sink_layout_free(&l);
}

static void test_small_planes_do_not_take_the_room_of_large_tiles(void)
{
    tgi_err e = {0};
    tgi_sink_layout *l = NULL;
    const tgi_sink_spec series = {
        .dtype = TG_DTYPE_U16, .axes = "TYX", .shape = {1000, 30, 40}};
    CHECK_OK(tgi_sink_layout_make(&series, &l, &e), e);
    CHECK_EQ(l->tile_h, 32);
    CHECK_EQ(l->tile_w, 64);
    CHECK(l->file_bytes < 10u << 20); /* 2.4 MB of pixels; in tiles of 256: 131 MB */
    tgi_sink_layout_free(&l);
    const tgi_sink_spec low = {.dtype = TG_DTYPE_U16, .axes = "YX", .shape = {2, 100000}};
    CHECK_OK(tgi_sink_layout_make(&low, &l, &e), e);
    CHECK_EQ(l->tile_h, 16);
    CHECK_EQ(l->tile_w, 256);
    tgi_sink_layout_free(&l);
    CHECK_EQ(tgi_sink_tile_height(100, 256), 112);
    CHECK_EQ(tgi_sink_tile_height(257, 256), 256);
    CHECK_EQ(tgi_sink_tile_side(1, 1), 16);
    CHECK_EQ(tgi_sink_tile_side(16, 17), 32);
    CHECK_EQ(tgi_sink_tile_side(30, 5000), 256);
    CHECK_EQ(tgi_sink_tile_side(1000000, 1000000), 256);
}

static void test_tiles_divide_the_cells_that_an_image_is_computed_in(void)
{
    CHECK_EQ(tgi_sink_tile_of_cell(1024), 256);
    CHECK_EQ(tgi_sink_tile_of_cell(192), 64);
    CHECK_EQ(tgi_sink_tile_of_cell(1008),
             144); /* 7 x 144: no larger side up to 256 divides it */
    CHECK_EQ(tgi_sink_tile_of_cell(304), 304); /* else 16 */
    CHECK_EQ(tgi_sink_tile_of_cell(1504), 32); /* 16, 32 and 752 */
    CHECK_EQ(tgi_sink_tile_of_cell(976), 16);
    CHECK_EQ(tgi_sink_tile_of_cell(48), 48);
    for (int64_t cell = 16; cell <= 8192; cell += 16) {
        const int64_t side = tgi_sink_tile_of_cell(cell);
        CHECK(side >= 16 && side <= 512 && side % 16 == 0 && cell % side == 0);
        for (int64_t k = 64; k <= 512; k += 16) /* where there is a larger one, it is one */
            CHECK(cell % k || side >= 64);
    }
}

static void test_wrong_specs_are_named(void)
{
    static const tgi_sink_spec bad[] = {
        {.dtype = TG_DTYPE_U8, .axes = "XY", .shape = {4, 4}},
        {.dtype = TG_DTYPE_U8, .axes = "YXC", .shape = {4, 4, 2}},
        {.dtype = TG_DTYPE_U8, .axes = "ZZYX", .shape = {1, 1, 4, 4}},
        {.dtype = TG_DTYPE_U8, .axes = "YX", .shape = {0, 4}},
        {.dtype = TG_DTYPE_U8, .axes = "YX", .shape = {4, 4}, .tile_h = 20},
        {.dtype = TG_DTYPE_U8,
         .axes = "YX",
         .shape = {4, 4},
         .tile_h = 1 << 20,
         .tile_w = 1 << 20},
        {.dtype = TG_DTYPE_F32,
         .axes = "YX",
         .shape = {4, 4},
         .predictor = 2,
         .compression = TGI_COMPRESSION_LZW},
        {.dtype = TG_DTYPE_U8,
         .axes = "TZYX",
         .shape = {4294967295, 4294967295, 4294967295, 4294967295}},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        tgi_err e = {0};
        tgi_sink_layout *l = NULL;
        CHECK_STATUS(tgi_sink_layout_make(&bad[i], &l, &e), TG_E_ARG, e);
        CHECK(!l);
    }
}

/* Sizes, units, names and prose reach tifffile; runs only where python has it. */
static void test_tifffile_reads_axes_sizes_and_names(void)
{
    if (system("python3 -c 'import tifffile' 2>/dev/null")) {
        printf("  (tifffile is not here: not checked)\n");
        return;
    }
    char *names[] = {(char *)"DAPI <1> & \"x\"", (char *)"\xc2\xb5-tubuli"};
    uint32_t colors[] = {0xff0000ffu, 0x00ff00ffu};
    const tgi_image_meta meta = {.physical = {2, 0.5, 0.25},
                                 .unit = {"um", "\xc2\xb5m", "micron"},
                                 .n_channels = 2,
                                 .channel_name = names,
                                 .channel_color = colors,
                                 .description = (char *)"seen < at night"};
    const tgi_sink_spec spec = {.dtype = TG_DTYPE_U16,
                                .axes = "TZCYX",
                                .shape = {2, 3, 2, 20, 30},
                                .tile_h = 16,
                                .tile_w = 16,
                                .compression = TGI_COMPRESSION_DEFLATE,
                                .predictor = 2,
                                .meta = &meta};
    tgi_err e = {0};
    tgi_sink_layout *l = NULL;
    CHECK_OK(tgi_sink_layout_make(&spec, &l, &e), e);
    uint8_t *pixels = malloc((size_t)(l->n_planes * l->height * l->width) * l->pixel_bytes);
    write_image(l, pixels, 5, 2);
    char command[1024];
    snprintf(command, sizeof command,
             "python3 -c '\nimport tifffile, sys\nt = tifffile.TiffFile(\"%s\")\n"
             "s = t.series[0]\nassert t.is_ome and s.axes == \"TZCYX\", s.axes\n"
             "assert s.shape == (2, 3, 2, 20, 30) and s.dtype == \"uint16\", s.shape\n"
             "p = tifffile.xml2dict(t.ome_metadata)[\"OME\"][\"Image\"]\n"
             "assert p[\"Description\"] == \"seen < at night\"\np = p[\"Pixels\"]\n"
             "assert (p[\"PhysicalSizeX\"], p[\"PhysicalSizeY\"], p[\"PhysicalSizeZ\"]) == "
             "(0.25, 0.5, 2), p\nassert p[\"PhysicalSizeXUnit\"] == \"\\u00b5m\"\n"
             "assert [c[\"Name\"] for c in p[\"Channel\"]] == "
             "[\"DAPI <1> & \\x22x\\x22\", \"\\u00b5-tubuli\"]\n"
             "sys.exit(0 if s.asarray().tobytes() == open(\"%s.raw\", \"rb\").read() else 1)'",
             path, path);
    char raw[80];
    snprintf(raw, sizeof raw, "%s.raw", path);
    FILE *f = fopen(raw, "wb");
    const size_t n = (size_t)(l->n_planes * l->height * l->width) * l->pixel_bytes;
    CHECK(f && fwrite(pixels, 1, n, f) == n && !fclose(f));
    CHECK_EQ(system(command), 0);
    unlink(raw);
    free(pixels);
    tgi_sink_layout_free(&l);
}

static uint32_t big32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* Every chunk is whole and checked; pixels are compared by Pillow where there is one. */
static void test_a_png_is_well_formed_and_reads_back(void)
{
    const int sizes[][3] = {{1, 1, 1}, {7, 5, 3}, {700, 900, 3}, {3, 100000, 3}};
    const int has_pillow = !system("python3 -c 'import PIL, numpy' 2>/dev/null");
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const int h = sizes[i][0], w = sizes[i][1], c = sizes[i][2];
        const size_t pitch = (size_t)(w * c) + 3, n = (size_t)h * pitch;
        uint8_t *px = malloc(n);
        uint64_t seed = 5;
        for (size_t k = 0; k < n; k++)
            px[k] = (uint8_t)(tg_rand(&seed) >> (k % 2 ? 58 : 0));
        tgi_err e = {0};
        CHECK_OK(tgi_png_write(path, px, h, w, c, pitch, &e), e);
        FILE *f = fopen(path, "rb");
        uint8_t *png = malloc(4 * n + 4096);
        const size_t size = f ? fread(png, 1, 4 * n + 4096, f) : 0;
        if (f)
            fclose(f);
        size_t at = 8;
        while (at + 12 <= size && at + 12 + big32(png + at) <= size) {
            const uint32_t bytes = big32(png + at);
            CHECK_EQ(big32(png + at + 8 + bytes),
                     (uint32_t)crc32_z(0, png + at + 4, bytes + 4));
            at += 12 + bytes;
        }
        CHECK(size > 8 && at == size && !memcmp(png + size - 8, "IEND", 4));
        if (has_pillow) {
            char raw[80], command[512];
            snprintf(raw, sizeof raw, "%s.raw", path);
            f = fopen(raw, "wb");
            CHECK(f && fwrite(px, 1, n, f) == n && !fclose(f));
            snprintf(command, sizeof command,
                     "python3 -c 'import numpy as n, PIL.Image as p\n"
                     "r = n.fromfile(\"%s\", \"u1\").reshape(%d, %zu)[:, :%d]\n"
                     "assert (n.array(p.open(\"%s\")).reshape(%d, %d) == r).all()'",
                     raw, h, pitch, w * c, path, h, w * c);
            CHECK_EQ(system(command), 0);
            unlink(raw);
        }
        free(png);
        free(px);
    }
    tgi_err e = {0};
    CHECK_STATUS(tgi_png_write(path, NULL, 0, 1, 1, 1, &e), TG_E_ARG, e);
}

static void test_crc32c_is_castagnolis(void)
{
    CHECK_EQ(tgi_crc32c(0, "123456789", 9), 0xe3069283u); /* RFC 3720 check value */
    CHECK_EQ(tgi_crc32c(tgi_crc32c(0, "1234", 4), "56789", 5), 0xe3069283u);
    CHECK_EQ(tgi_crc32c_by_tables(0, "123456789", 9), 0xe3069283u);
    unsigned char noise[61];
    for (unsigned i = 0; i < sizeof noise; i++)
        noise[i] = (unsigned char)(i * 151 + 7);
    for (size_t from = 0; from < 9; from++)
        CHECK_EQ(tgi_crc32c(5, noise + from, sizeof noise - from),
                 tgi_crc32c_by_tables(5, noise + from, sizeof noise - from));
}

int main(void)
{
    /* In memory where that is possible: hundreds of real fdatasyncs are a minute of waiting. */
    if (!mkdtemp(folder) && !mkdtemp(strcpy(folder, other_folder)))
        return 1;
    snprintf(path, sizeof path, "%s/out.tif", folder);
    TIFFSetWarningHandler(NULL);
    RUN(test_crc32c_is_castagnolis);
    RUN(test_every_type_and_codec_comes_back_through_libtiff);
    RUN(test_samples_planes_and_single_tiles_come_back);
    RUN(test_large_tiles_of_noise_and_of_nothing_survive_lzw);
    RUN(test_what_is_fixed_in_a_front_is_told_by_two);
    RUN(test_bigtiff_begins_where_classic_would_overflow);
    RUN(test_small_planes_do_not_take_the_room_of_large_tiles);
    RUN(test_tiles_divide_the_cells_that_an_image_is_computed_in);
    RUN(test_wrong_specs_are_named);
    RUN(test_a_png_is_well_formed_and_reads_back);
    RUN(test_tifffile_reads_axes_sizes_and_names);
    unlink(path);
    rmdir(folder);
    return TEST_END();
}
